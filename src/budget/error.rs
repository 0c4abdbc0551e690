//! What can be wrong with a cache or its sources.

use crate::support::cancel::Cancelled;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// One thing that is wrong with one file of a cache, or with one source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error, serde::Serialize)]
#[error("{file}: {message}")]
pub struct CacheFault {
    /// The file, relative to the directory of the cache or of the sources, with forward slashes.
    pub file: String,
    /// What is wrong with it.
    pub message: String,
}

impl CacheFault {
    pub(super) fn new(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            message: message.into(),
        }
    }
}

/// Why a cache cannot be built or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CacheError {
    /// There is no such directory, of a cache or of sources.
    #[error("{} is not a directory", .0.display())]
    Missing(PathBuf),
    /// The target exists, and [`BuildOptions::force`](super::BuildOptions::force) is not set.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The directory to replace contains something that is not part of a cache, named second.
    #[error("{} is not replaced: `{_1}` in it is not part of a cache", .0.display())]
    Foreign(PathBuf, String),
    /// The cache is not what its manifest says. At least one fault.
    #[error("the cache {} is invalid", .0.display())]
    Invalid(PathBuf, Vec<CacheFault>),
    /// Sources cannot be made into a cache. At least one fault.
    #[error("cannot build a cache of {}", .0.display())]
    Sources(PathBuf, Vec<CacheFault>),
    /// The work was cancelled; see [`Cancel`](crate::Cancel).
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The file system failed at this path. The message has the cause, so it is not a source.
    #[error("{}: {_1}", .0.display())]
    Io(PathBuf, io::Error),
}

impl CacheError {
    pub(super) fn invalid(dir: &Path, file: &str, message: impl Into<String>) -> Self {
        Self::Invalid(dir.to_owned(), vec![CacheFault::new(file, message)])
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Io(path.to_owned(), error)
    }

    /// The faults of an invalid cache or of unusable sources; empty for other errors.
    pub fn faults(&self) -> &[CacheFault] {
        match self {
            Self::Invalid(_, faults) | Self::Sources(_, faults) => faults,
            _ => &[],
        }
    }
}
