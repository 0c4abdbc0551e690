//! Logs that are looked at again and again: of one that has grown, only what was appended is read.
//!
//! What is not read line by line, such as a log that is one document, is left to [`super::sessions`], which reads it as a whole.
//! This file must not know why logs are followed.

use crate::logs::{Fate, FollowedLog, ImportOptions, Imported, LogBytes, LogError};
use crate::support::lock;
use crate::tree::Limits;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes of logs are followed at a time; a larger log is read as a whole. What is kept of a log takes about as much
/// memory.
const MOST: u64 = 64 << 20;

/// How much of the first line is read to see whether it begins a session.
const FIRST: u64 = 64 << 10;

/// The logs that are followed, the one that was looked at last at the end.
#[derive(Debug, Default)]
pub(crate) struct FollowedLogs {
    logs: Mutex<Vec<Followed>>,
    /// The bytes that were read of them.
    read: AtomicU64,
}

#[derive(Debug)]
struct Followed {
    path: PathBuf,
    bytes: u64,
    log: FollowedLog,
}

impl FollowedLogs {
    /// What a log says now. `None` if it has to be read as a whole, which also says what is wrong with it.
    pub(crate) fn look(&self, path: &Path, limits: Limits) -> Option<Imported> {
        let (imported, _) = self.look_with(path, &ImportOptions::default(), limits)?;
        let is_log = imported.report.messages(Fate::Understood) > 0;
        is_log.then_some(imported)
    }

    /// As [`FollowedLogs::look`], with the bytes of the log; the options are the same each time.
    pub(crate) fn look_with(
        &self,
        path: &Path,
        options: &ImportOptions,
        limits: Limits,
    ) -> Option<(Imported, LogBytes)> {
        let about = path.metadata().ok().filter(|about| about.is_file())?;
        let bytes = about.len();
        let known = self.take(path);
        if bytes > MOST.min(limits.max_input) {
            return None;
        }
        let mut found = None;
        if let Some(mut log) = known {
            found = self.read(&mut log, path).ok()?.map(|found| (found, log));
        }
        if found.is_none() {
            let mut log = open(path, options)?;
            found = self.read(&mut log, path).ok()?.map(|found| (found, log));
        }
        let (found, log) = found?;
        self.put(Followed {
            path: path.to_owned(),
            bytes,
            log,
        });
        Some(found)
    }

    fn read(
        &self,
        log: &mut FollowedLog,
        path: &Path,
    ) -> Result<Option<(Imported, LogBytes)>, LogError> {
        let (before, _) = log.work();
        let found = log.look(path);
        let found = found.map(|found| Some((found?, log.bytes())));
        let (after, _) = log.work();
        self.read.fetch_add(after - before, Ordering::Relaxed);
        found
    }

    /// The bytes that were read of logs so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// A log is taken while it is read: one whose reading fails or is cancelled is opened again.
    fn take(&self, path: &Path) -> Option<FollowedLog> {
        let mut logs = lock(&self.logs);
        let at = logs.iter().position(|one| one.path == path)?;
        Some(logs.remove(at).log)
    }

    fn put(&self, followed: Followed) {
        let mut logs = lock(&self.logs);
        logs.retain(|one| one.path != followed.path);
        logs.push(followed);
        let mut bytes: u64 = logs.iter().map(|one| one.bytes).sum();
        while bytes > MOST {
            bytes -= logs.remove(0).bytes;
        }
    }
}

/// Opens a log that is read line by line.
fn open(path: &Path, options: &ImportOptions) -> Option<FollowedLog> {
    let mut first = Vec::new();
    let file = File::open(path).ok()?.take(FIRST);
    BufReader::new(file).read_until(b'\n', &mut first).ok()?;
    if begins_as_session(&first) {
        return None;
    }
    FollowedLog::open(path, options).ok()?
}

/// Whether a text begins as a session: its first line has a tree.
pub(crate) fn begins_as_session(bytes: &[u8]) -> bool {
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    line.windows(6).any(|part| part == b"\"root\"")
}
