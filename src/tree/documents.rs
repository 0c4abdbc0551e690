//! A session's documents where they are, one by one.
//!
//! For sessions that are too large to be read at once: the caller that has the documents says how many there are and
//! gives each when it is asked for.

use super::Document;
use std::fmt::Debug;
use std::io;

/// The documents of a session in the order of their cycles, which are 1, 2, 3, …: each is whole, or a difference
/// to the one before it.
pub trait Documents: Debug + Send + Sync {
    /// The number of committed snapshots.
    fn committed(&self) -> usize;

    /// Whether there is a working state.
    fn has_working(&self) -> bool;

    /// The document of cycle `index + 1`, or, at the index after the last of them, that of the working state.
    /// Errors: it cannot be read.
    fn read(&self, index: usize) -> io::Result<Document>;
}
