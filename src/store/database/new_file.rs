//! A copy of a store in a new file, which gets its name when it is whole.
//!
//! This file knows no database.

use crate::store::error::{Result, StoreError};
use crate::support::cancel::{self, Cancelled};
use crate::support::scratch::{PartialFile, private};
use std::path::Path;

/// The name of a copy that is not whole, in a directory of its own.
const COPY: &str = "copy.db";

/// Lets `write` make a file beside `to`, and gives it this name when it is complete and on the disk.
pub(crate) fn into_new_file(to: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let io = |error| StoreError::Io(to.to_owned(), error);
    if to.symlink_metadata().is_ok() {
        return Err(io(std::io::ErrorKind::AlreadyExists.into()));
    }
    // In a directory of its own, so that what SQLite keeps beside it goes with it, whatever ends the program.
    let part = PartialFile::directory(to, is_copy).map_err(io)?;
    let copy = part.path().join(COPY);
    private().open(&copy).map_err(io)?;
    write(&copy)?;
    let synced = std::fs::File::open(&copy).and_then(|file| file.sync_all());
    synced.map_err(io)?;
    cancel::check().map_err(|_| cancelled())?;
    match std::fs::hard_link(&copy, to) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            // A file system without links.
            std::fs::rename(&copy, to)
        }
        done => done,
    }
    .map_err(io)?;
    drop(part);
    // Not every file system can do this.
    let _ = sync_name(to);
    Ok(())
}

/// Waits until the name of a file is on the disk.
pub(crate) fn sync_name(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    if !cfg!(unix) {
        return Ok(());
    }
    let synced = std::fs::File::open(parent).and_then(|directory| directory.sync_all());
    synced.map_err(|error| StoreError::Io(parent.to_owned(), error))
}

fn is_copy(directory: &Path) -> bool {
    let is_ours = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.map(|entry| entry.file_name()).unwrap_or_default();
        name.as_encoded_bytes().starts_with(COPY.as_bytes())
    };
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.all(is_ours))
}

/// The error of work that is cancelled; its caller says more.
pub(crate) fn cancelled() -> StoreError {
    StoreError::Database(Cancelled.to_string())
}
