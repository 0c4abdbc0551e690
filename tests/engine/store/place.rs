//! Where a test keeps a store: a directory that goes with the test.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use pactql::{Session, Store};

use crate::runtime::properties::document;

/// A directory of a test, removed at its end.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// One in memory where the system has that: for tests in which nothing is cut off.
    pub(crate) fn quick() -> Self {
        Self::below(Self::memory())
    }

    /// Where the system has files in memory, or those of a short life.
    pub(crate) fn memory() -> PathBuf {
        let memory = PathBuf::from("/dev/shm");
        if memory.is_dir() {
            memory
        } else {
            std::env::temp_dir()
        }
    }

    /// One on the disk.
    pub(crate) fn new() -> Self {
        Self::below(std::env::temp_dir())
    }

    fn below(directory: PathBuf) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("pactql-store-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The documents of a session, and that of its working state.
pub(crate) fn documents(session: &Session) -> Result<(Vec<String>, Option<String>), String> {
    let history = session.history();
    history
        .fetch_all()
        .map_err(|failure| format!("{failure:?}"))?;
    let committed = history.committed().into_iter();
    let committed = committed.map(|snapshot| document(snapshot)).collect();
    let working = history.working().map(|working| document(working));
    Ok((committed, working))
}

/// What a store says is wrong with it, as an error.
pub(crate) fn sound(store: &Store) -> Result<(), String> {
    match store.verify() {
        Ok(damage) if damage.is_empty() => Ok(()),
        found => Err(format!("verify: {found:?}")),
    }
}
