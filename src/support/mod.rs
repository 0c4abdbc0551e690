//! What every layer uses: diagnostics as data, the token of cancelled work, the cost of the clock, names of scratch
//! files, differences of texts, text and tables for terminals, functions written by a table.
//!
//! It must not know anything of the layers above.

pub(crate) mod cancel;
pub(crate) mod clock;
pub(crate) mod diag;
pub(crate) mod edits;
pub(crate) mod macros;
pub(crate) mod scratch;
pub(crate) mod table;
pub(crate) mod text;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is behind a lock. What a thread that panicked has left there is complete: every change under a lock is one assignment,
/// or one of a collection.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
