//! How the files of a cache are opened: by a path, or through a directory that the caller holds
//! open.

use super::error::CacheError;
use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// The directory of a cache. Paths are relative to it, with forward slashes; `.` is the directory.
pub(crate) trait Files: Debug + Send + Sync {
    /// The directory that has the name now; `None` if it cannot be opened again.
    fn again(&self) -> Option<Box<dyn Files>> {
        None
    }

    fn open(&self, path: &str) -> io::Result<File>;

    /// The kind and the bytes of what is at `path`. Links are not followed.
    fn stat(&self, path: &str) -> io::Result<(FileKind, u64)>;

    /// The names in a directory, in no order.
    fn names(&self, path: &str) -> io::Result<Vec<OsString>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    File,
    Directory,
    /// A link, a device, a pipe.
    Other,
}

impl FileKind {
    pub(crate) fn new(is_file: bool, is_dir: bool) -> Self {
        match (is_file, is_dir) {
            (true, _) => Self::File,
            (_, true) => Self::Directory,
            _ => Self::Other,
        }
    }
}

impl Files for PathBuf {
    fn again(&self) -> Option<Box<dyn Files>> {
        Some(Box::new(self.clone()))
    }

    fn open(&self, path: &str) -> io::Result<File> {
        File::open(self.join(path))
    }

    fn stat(&self, path: &str) -> io::Result<(FileKind, u64)> {
        let kind = |data: Metadata| (FileKind::new(data.is_file(), data.is_dir()), data.len());
        fs::symlink_metadata(self.join(path)).map(kind)
    }

    fn names(&self, path: &str) -> io::Result<Vec<OsString>> {
        let entries = fs::read_dir(self.join(path))?;
        entries.map(|entry| Ok(entry?.file_name())).collect()
    }
}

pub(super) fn check_directory(path: &Path) -> Result<(), CacheError> {
    match fs::metadata(path) {
        Ok(data) if data.is_dir() => Ok(()),
        Err(error) if !is_missing(&error) => Err(CacheError::Io(path.to_owned(), error)),
        _ => Err(CacheError::Missing(path.to_owned())),
    }
}

/// Whether an error says that there is nothing of a name, or can be nothing.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}
