//! Sessions as importers make them.
//!
//! A recording is a list of changes, one per snapshot: nodes added or replaced, nodes removed. Each change is
//! the difference of a document to the one before it, without a text in between, so a log of n messages takes
//! time and space linear in n. Changes are kept packed, of a log that is larger than memory in a [`Spool`]. This file
//! must not know log formats.

use super::change::{LogChange, document};
use super::delta::write_next;
use super::export::write_document;
use super::spool::{Spool, Spooled};
use crate::history::Session;
use crate::index::{Snapshot, SnapshotBuilder};
use crate::support::cancel::check;
use crate::tree::Document;
use crate::tree::documents::Documents;
use std::io::{self, Write};
use std::sync::Arc;

/// An imported session: its snapshots from cycle 1 on, and the working state if there is one.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// How many snapshots come before those of `snapshots`, and are elsewhere.
    passed: usize,
    snapshots: RecordedChanges,
    working: WorkingState,
    /// How many of the snapshots stay when the log grows.
    settled: usize,
    /// The session of it, if that is made.
    pub(super) made: Option<Arc<Session>>,
}

/// The changes of a recording, packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedChanges<'a> {
    pub(super) snapshots: &'a [Arc<str>],
    /// How many of the snapshots stay when the log grows.
    pub(super) settled: usize,
    pub(super) working: Option<&'a Arc<str>>,
}

#[derive(Clone, Debug, Default)]
enum WorkingState {
    #[default]
    None,
    InMemory(Arc<str>),
    /// After the snapshots in their spool.
    Spooled,
}

#[derive(Clone, Debug)]
enum RecordedChanges {
    InMemory(Vec<Arc<str>>),
    Spooled(Spooled),
}

impl Default for RecordedChanges {
    fn default() -> Self {
        Self::InMemory(Vec::new())
    }
}

impl Recording {
    pub(super) fn spooled(spool: Spool) -> Self {
        Self {
            snapshots: RecordedChanges::Spooled(Spooled::new(spool)),
            ..Self::default()
        }
    }

    /// What comes after some snapshots that are elsewhere.
    #[cfg(feature = "store")]
    pub(super) fn passed(snapshots: usize) -> Self {
        Self {
            passed: snapshots,
            ..Self::default()
        }
    }

    /// The document of the last snapshot that was committed since [`Recording::passed`].
    #[cfg(feature = "store")]
    pub(super) fn last(&self) -> Option<Document> {
        let RecordedChanges::InMemory(changes) = &self.snapshots else {
            return None;
        };
        document(changes.last()?, self.snapshots() - 1, false).ok()
    }

    pub(super) fn is_spooled(&self) -> bool {
        matches!(self.snapshots, RecordedChanges::Spooled(_))
    }

    pub(super) fn push(&mut self, change: &LogChange) {
        let change = change.pack();
        match &mut self.snapshots {
            RecordedChanges::InMemory(changes) => changes.push(change.into()),
            RecordedChanges::Spooled(spooled) => spooled.push(&change),
        }
    }

    /// Ends it with a working state.
    pub(super) fn set_working(&mut self, change: &LogChange) {
        let change = change.pack();
        self.working = match &mut self.snapshots {
            RecordedChanges::Spooled(spooled) => {
                spooled.push(&change);
                WorkingState::Spooled
            }
            _ => WorkingState::InMemory(change.into()),
        };
    }

    /// The number of committed snapshots.
    pub fn snapshots(&self) -> usize {
        match &self.snapshots {
            RecordedChanges::InMemory(changes) => self.passed + changes.len(),
            RecordedChanges::Spooled(spooled) => {
                let working = matches!(self.working, WorkingState::Spooled);
                spooled.len() - usize::from(working)
            }
        }
    }

    /// Whether there is a working state.
    pub fn has_working(&self) -> bool {
        !matches!(self.working, WorkingState::None)
    }

    /// Says that the snapshots so far stay when the log grows.
    pub(super) fn settle(&mut self) {
        self.settled = self.snapshots();
    }

    /// Its changes; `None` unless all are in memory.
    pub(super) fn in_memory(&self) -> Option<PackedChanges<'_>> {
        let RecordedChanges::InMemory(changes) = &self.snapshots else {
            return None;
        };
        let working = match &self.working {
            WorkingState::InMemory(change) => Some(change),
            WorkingState::None | WorkingState::Spooled => None,
        };
        Some(PackedChanges {
            snapshots: changes,
            settled: self.settled,
            working,
        })
    }

    pub(super) fn documents(&self) -> io::Result<Vec<Document>> {
        let all = self.snapshots() + usize::from(self.has_working());
        (0..all).map(|index| self.read(index)).collect()
    }

    /// Writes the session as JSONL, one document a line, the working state last, as
    /// [`write_session`](super::write_session) does, with the newest snapshot in memory.
    ///
    /// # Errors
    /// Those of the writer, and of the spool of a large log.
    pub fn write_jsonl(&self, out: &mut dyn Write, full: bool) -> io::Result<()> {
        let mut builder = SnapshotBuilder::default();
        let mut older: Option<Arc<Snapshot>> = None;
        let all = self.snapshots() + usize::from(self.has_working());
        for index in 0..all {
            check().map_err(io::Error::other)?;
            let next = builder.next(self.read(index)?);
            let snapshot = next.map_err(io::Error::other)?;
            if snapshot.is_working() {
                write_document(&snapshot, out)?;
            } else {
                write_next(older.as_deref(), &snapshot, full, out)?;
                older = Some(snapshot);
            }
        }
        Ok(())
    }
}

impl Documents for Recording {
    fn committed(&self) -> usize {
        self.snapshots()
    }

    fn has_working(&self) -> bool {
        Recording::has_working(self)
    }

    fn read(&self, index: usize) -> io::Result<Document> {
        let length = self.snapshots();
        match (&self.snapshots, &self.working) {
            (_, WorkingState::InMemory(change)) if index == length => {
                document(change, length, true)
            }
            (RecordedChanges::Spooled(spooled), _) => {
                document(&spooled.read(index)?, index, index == length)
            }
            (RecordedChanges::InMemory(changes), _) => {
                let change = index
                    .checked_sub(self.passed)
                    .and_then(|at| changes.get(at));
                document(change.ok_or(io::ErrorKind::NotFound)?, index, false)
            }
        }
    }
}
