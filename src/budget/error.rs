//! What can be wrong with a cache or its sources.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// One thing that is wrong with one file of a cache, or with one source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, relative to the directory of the cache or of the sources, with forward slashes.
    pub file: String,
    /// What is wrong with it.
    pub message: String,
}

impl Fault {
    /// A fault of `file`.
    pub(super) fn new(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.message)
    }
}

/// Why one file of a cache cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    /// It is not what it should be: what is wrong with it.
    Fault(String),
    /// The file system failed.
    Io(io::Error),
}

impl Unusable {
    /// The same of a file of the cache `dir`.
    pub(super) fn of(self, dir: &Path, file: &str) -> CacheError {
        match self {
            Self::Fault(message) => CacheError::invalid(dir, Fault::new(file, message)),
            Self::Io(error) => CacheError::Io(dir.join(file), error),
        }
    }
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Fault("is cut short".to_owned()),
            _ => Self::Io(error),
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(message) => f.write_str(message),
            Self::Io(error) => error.fmt(f),
        }
    }
}

/// Why a cache cannot be built or read.
#[derive(Debug)]
pub enum CacheError {
    /// There is no such directory, of a cache or of sources.
    Missing(PathBuf),
    /// There is a cache already, and replacing it was not asked for.
    Exists(PathBuf),
    /// What would have to be replaced holds something that is no part of a cache, named second.
    Foreign(PathBuf, String),
    /// The cache is not what it says it is. At least one fault.
    Invalid(PathBuf, Vec<Fault>),
    /// Sources cannot be made into a cache. At least one fault.
    Sources(PathBuf, Vec<Fault>),
    /// The file system failed at this path.
    Io(PathBuf, io::Error),
}

impl CacheError {
    /// An invalid cache with one fault.
    pub(super) fn invalid(dir: &Path, fault: Fault) -> Self {
        Self::Invalid(dir.to_owned(), vec![fault])
    }

    /// A failure of the file system at `path`.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Io(path.to_owned(), error)
    }

    /// The faults, where there are any.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        match self {
            Self::Invalid(_, faults) | Self::Sources(_, faults) => faults,
            _ => &[],
        }
    }
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(dir) => write!(f, "{} is not a directory", dir.display()),
            Self::Exists(dir) => write!(f, "{} exists already", dir.display()),
            Self::Foreign(dir, name) => write!(
                f,
                "{} is not replaced, for `{name}` in it is no part of a cache",
                dir.display()
            ),
            Self::Invalid(dir, _) => write!(f, "the cache {} is invalid", dir.display()),
            Self::Sources(dir, _) => write!(f, "no cache can be built of {}", dir.display()),
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for CacheError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            _ => None,
        }
    }
}
