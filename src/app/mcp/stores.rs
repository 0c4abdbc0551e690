//! Stores that stay open between calls.
//!
//! SQLite opens a file by its path, not through the handle on the root. So the file at the path is compared
//! with the one that the handle opens, before and after; and a store whose file was replaced is reopened.

use super::root::Root;
use crate::app::present::stores::Address;
use crate::app::present::{Exit, Failure};
use crate::history::Session;
use crate::store::Store;
use crate::support::diag::{Diagnostic, Error};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const OPEN: usize = 16;

/// The files that SQLite has beside that of a store.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Open stores by their paths below the root, and which files they were.
#[derive(Debug, Default)]
pub(super) struct Stores(Mutex<HashMap<PathBuf, (FileId, Arc<Store>)>>);

type FileId = Option<(u64, u64)>;

#[cfg(unix)]
fn id(file: &File) -> std::io::Result<FileId> {
    use std::os::unix::fs::MetadataExt;
    let data = file.metadata()?;
    Ok(Some((data.dev(), data.ino())))
}

#[cfg(not(unix))]
fn id(_: &File) -> std::io::Result<FileId> {
    Ok(None)
}

impl Stores {
    /// The session that an address names, as it is now.
    pub(super) fn session(
        &self,
        root: &Root,
        address: Address<'_>,
    ) -> Result<Arc<Session>, Failure> {
        let store = self.open(root, address.store)?;
        let name = address.one_in(|| Ok(Arc::clone(&store)))?;
        Ok(store.session(name)?)
    }

    /// The store that a client calls `name`, for reading.
    ///
    /// # Errors
    /// A URL; a name that leads out of the root, or a file beside the store that does; no such file; it is not a
    /// store.
    pub(super) fn open(&self, root: &Root, name: &str) -> Result<Arc<Store>, Failure> {
        if name.contains("://") {
            let message = "this server reads stores below its root alone, and no database server";
            return Err(Failure::value(message));
        }
        let name = name.strip_prefix("sqlite:").unwrap_or(name);
        let missing =
            || Failure::plain(Exit::Missing, format!("there is no store {}", shown(name)));
        let place = root.resolve(name)?.ok_or_else(missing)?;
        for ending in BESIDE {
            root.resolve(&format!("{}{ending}", place.display()))?;
        }
        let before = identity(root, &place, name)?;
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, store)) = open.get(&place)
            && *known == before
        {
            return Ok(Arc::clone(store));
        }
        let path = root.path_of(&place);
        let store = Store::builder()
            .read_only()
            .open(&path)
            .map_err(|error| called(error, &path, name))?;
        if identity(root, &place, name)? != before {
            let message = format!("the store {} was replaced while it was opened", shown(name));
            return Err(Failure::plain(Exit::Io, message));
        }
        let store = Arc::new(store);
        if open.len() >= OPEN {
            open.clear();
        }
        open.insert(place, (before, Arc::clone(&store)));
        Ok(store)
    }
}

fn identity(root: &Root, place: &Path, name: &str) -> Result<FileId, Failure> {
    let failed = |error| Failure::file(name, &error);
    let file = root.handle().open(place).map_err(failed)?;
    id(&file.into_std()).map_err(failed)
}

fn shown(name: &str) -> String {
    crate::app::present::clean(name, 200)
}

/// An error in which the path of a store is as the client wrote it.
fn called(error: Error, path: &str, name: &str) -> Failure {
    let message = error.message().replace(path, name);
    let diagnostic = Diagnostic::error(error.code(), message);
    let diagnostic = match &error.first().help {
        Some(help) => diagnostic.with_help(help.as_str()),
        None => diagnostic,
    };
    Error::new("", diagnostic).into()
}
