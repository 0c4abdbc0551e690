//! A log that grows: what was appended is read, and what is made of the whole log is known.
//!
//! The readers of a log and its sessions are kept as they are after its last whole line ([`FollowedLog::look`]). To say what the
//! log says now, copies of them are given the line that is not whole yet, and ended. The snapshots that stay as they are whatever
//! comes are made once ([`GrowingSession`]). This file must not know which logs are followed, or for whom.

use super::change::document;
use super::formats::{Format, LogReader, reader};
use super::import::{Imported, finished};
use super::input::{ImportOptions, LogError};
use super::mark::{LogBytes, LogHasher};
use super::output::Output;
use super::recording::{PackedChanges, Recording};
use super::stream::{LogFile, ReadSoFar};
use crate::history::{History, Session};
use crate::index::{Snapshot, SnapshotBuilder, Writer, after};
use crate::tree::fault::InputError;
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// How much of what was read last is compared, to see whether the log was rewritten.
const TAIL: u64 = 4096;

/// A log of lines that is read on as it grows.
pub struct FollowedLog {
    file: LogFile,
    place: FilePlace,
    format: Format,
    /// Whether no further line can show that it is of another format.
    is_sure: bool,
    /// What was read last of the whole lines.
    tail: Vec<u8>,
    so_far: ReadSoFar,
    reader: Box<dyn LogReader>,
    out: Output,
    hasher: LogHasher,
    bytes: LogBytes,
    sessions: Vec<GrowingSession>,
}

impl fmt::Debug for FollowedLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("FollowedLog");
        shown
            .field("format", &self.format)
            .field("read", &self.so_far.bytes);
        shown.finish_non_exhaustive()
    }
}

/// What tells a file from one that has taken its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FilePlace(u64, u64);

impl FilePlace {
    #[cfg(unix)]
    fn of(about: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self(about.dev(), about.ino())
    }

    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Self(0, 0)
    }
}

impl FollowedLog {
    /// Begins to follow a log, and reads nothing but its first lines. `None` if it is not one that is read line by line, as of
    /// [`import_file`](super::import_file).
    pub fn open(path: &Path, options: &ImportOptions) -> io::Result<Option<Self>> {
        let opened = File::open(path)?;
        let about = opened.metadata()?;
        if !about.is_file() {
            return Ok(None);
        }
        let file = LogFile::new(&opened, options)?;
        let Some((format, is_sure)) = file.format()? else {
            return Ok(None);
        };
        Ok(Some(Self {
            file,
            place: FilePlace::of(&about),
            format,
            is_sure,
            tail: Vec::new(),
            so_far: ReadSoFar::default(),
            reader: reader(format),
            out: Output::default(),
            hasher: LogHasher::default(),
            bytes: LogHasher::default().finish(),
            sessions: Vec::new(),
        }))
    }

    /// Whether the log at the path is still this one, and has what was read of it.
    fn goes_on(&mut self, path: &Path) -> io::Result<bool> {
        let about = path.metadata()?;
        let is_there = FilePlace::of(&about) == self.place && about.len() >= self.so_far.bytes;
        if !is_there || self.file.before(self.so_far.bytes, TAIL)? != self.tail {
            return Ok(false);
        }
        if !self.is_sure {
            match self.file.format()? {
                Some((format, is_sure)) if format == self.format => self.is_sure = is_sure,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Reads what was appended, and says what the whole log says. The sessions are made, and one that is as it was is the same
    /// value. `None` if it is to be opened again: it was rewritten or replaced, or is another log than its first lines said.
    /// After an error, too, it has to be opened again.
    ///
    /// # Errors
    /// Those of [`import()`](super::import()).
    pub fn look(&mut self, path: &Path) -> Result<Option<Imported>, LogError> {
        self.file.length = path.metadata()?.len();
        if !self.goes_on(path)? {
            return Ok(None);
        }
        let (reader, out) = (&mut self.reader, &mut self.out);
        let hasher = &mut self.hasher;
        let before = self.so_far.bytes;
        let mut each = |line: &[u8]| {
            hasher.add(line);
            Ok(())
        };
        let so_far = &mut self.so_far;
        self.file
            .lines(so_far, false, &mut **reader, out, &mut each)?;
        if so_far.bytes != before {
            self.tail = self.file.before(so_far.bytes, TAIL)?;
        }
        let Some(mut reader) = reader.copy() else {
            return Ok(None);
        };
        let (mut so_far, mut out) = (so_far.clone(), out.copy());
        let mut hasher = self.hasher.clone();
        let mut each = |line: &[u8]| {
            hasher.add(line);
            Ok(())
        };
        let records = self.file.records();
        let ended = self
            .file
            .lines(&mut so_far, true, &mut *reader, &mut out, &mut each);
        let ended = ended.and_then(|()| self.file.finish(so_far, &mut *reader, &mut out));
        self.file.forget(records);
        ended?;
        let mut imported = finished(out, Some(self.format), &self.file.options)?;
        let sessions = imported.sessions.len();
        self.sessions.resize_with(sessions, GrowingSession::default);
        for (growing, session) in self.sessions.iter_mut().zip(&mut imported.sessions) {
            let made = growing.grow(&session.recording);
            session.recording.made = Some(made.map_err(InputError::at_document)?);
        }
        self.bytes = hasher.finish();
        Ok(Some(imported))
    }

    /// The bytes of the log at the last look.
    pub(crate) fn bytes(&self) -> LogBytes {
        self.bytes
    }

    /// The bytes and the lines that were read so far, each as often as it was.
    pub fn work(&self) -> (u64, u64) {
        self.file.work()
    }
}

/// A session whose first snapshots stay.
struct GrowingSession {
    builder: SnapshotBuilder,
    /// The changes of all its snapshots, of which the first have their snapshots in `builder`.
    changes: Vec<Arc<str>>,
    working: Option<Arc<str>>,
    made: Option<Arc<Session>>,
}

impl Default for GrowingSession {
    fn default() -> Self {
        Self {
            builder: SnapshotBuilder::of_all(Writer::new()),
            changes: Vec::new(),
            working: None,
            made: None,
        }
    }
}

impl GrowingSession {
    /// The session of a recording: the one before if it is the same, else one that shares what stayed.
    fn grow(&mut self, recording: &Recording) -> Result<Arc<Session>, String> {
        let Some(PackedChanges {
            snapshots: changes,
            settled,
            working,
        }) = recording.in_memory()
        else {
            return Err("the changes of a log that is followed are not in memory".to_owned());
        };
        let same = self.changes.iter().zip(changes);
        let same = same.take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
        let is_same_working = match (&self.working, working) {
            (None, None) => true,
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            _ => false,
        };
        if let Some(made) = &self.made
            && is_same_working
            && same == changes.len()
            && same == self.changes.len()
        {
            return Ok(Arc::clone(made));
        }
        if same.min(settled) < self.builder.committed.len() {
            *self = Self::default();
        }
        let read = |at: usize, change: &str, working: bool| {
            document(change, at, working).map_err(|error| error.to_string())
        };
        let made = self.builder.committed.len();
        for (at, change) in changes.iter().enumerate().take(settled).skip(made) {
            self.builder.next(read(at, change, false)?)?;
        }
        // The others may be made again, so they are added to copies.
        let mut all: Vec<Arc<Snapshot>> = self.builder.committed.clone();
        for (at, change) in changes.iter().enumerate().skip(all.len()) {
            let newest = all.last().map(|newest| &**newest);
            let next = after(newest, read(at, change, false)?)?;
            all.push(Arc::new(next));
        }
        let newest = all.last().map(|newest| &**newest);
        let of_working = working.map(|change| {
            let document = read(changes.len(), change, true)?;
            after(newest, document).map(Arc::new)
        });
        let of_working = of_working.transpose()?;
        let session = Arc::new(Session::new(History::new(all, of_working)));
        self.changes = changes.to_vec();
        self.working = working.cloned();
        self.made = Some(Arc::clone(&session));
        Ok(session)
    }
}
