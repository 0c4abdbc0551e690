//! Why a session file could not be opened or saved.

use std::io;
use std::path::PathBuf;

use crate::history::LoadError;
use crate::support::diag::Error;

/// Why a session file could not be opened or saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It is missing, unreadable or no session.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its working state is one that no mutation could have made.
    #[error(transparent)]
    Context(#[from] Error),
    /// A file of that name exists.
    #[error("{}: the file exists", .0.display())]
    Exists(PathBuf),
    /// Another process, or another [`SessionFile`](super::SessionFile), is writing it.
    #[error("{}: another process, or another part of this one, is writing this session", .0.display())]
    Busy(PathBuf),
    /// It can be read, but not written in place; the text says why.
    #[error("{}: {}", .0.display(), .1)]
    NotInPlace(PathBuf, &'static str),
    /// The operating system failed. The message has the cause, so it is not a source.
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
}
