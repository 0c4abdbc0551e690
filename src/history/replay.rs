//! Sessions whose documents are read one after the other, each when its snapshot is first read.
//!
//! A [`Replay`] keeps the newest snapshot that it has made, so that going forwards costs what changed;
//! going back starts again. [`History::walk`] goes through a history with a few snapshots in memory at a
//! time. This file knows documents and snapshots, and no logs.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::archive::{Archive, LoadFailure, Position, SnapshotPart, SnapshotSource};
use super::{History, Session};
use crate::index::{Snapshot, SnapshotBuilder};
use crate::support::cancel::{Cancelled, stopped};
use crate::support::diag::Code;
use crate::support::lock;
use crate::tree::documents::Documents;

/// How many snapshots are in memory at a time.
#[cfg(feature = "store")]
const WINDOW: usize = 64;

#[derive(Debug)]
struct Replay {
    documents: Arc<dyn Documents>,
    made: Mutex<ReplayState>,
}

#[derive(Debug, Default)]
struct ReplayState {
    builder: SnapshotBuilder,
    next: usize,
}

impl ReplayState {
    fn grow(&mut self, documents: &dyn Documents) -> Result<Arc<Snapshot>, LoadFailure> {
        if stopped() {
            return Err(LoadFailure::new(Code::Cancelled, Cancelled.to_string()));
        }
        let document = documents.read(self.next).map_err(failed)?;
        let cycle = self.next as i64 + 1;
        let has_place = if document.working {
            self.next == documents.committed()
        } else {
            document.cycle == Some(cycle) && self.next < documents.committed()
        };
        if !has_place {
            return Err(failed("its documents are not in the order of their cycles"));
        }
        let snapshot = self.builder.next(document).map_err(failed)?;
        self.next += 1;
        Ok(snapshot)
    }

    fn advance(&mut self, to: usize, documents: &dyn Documents) -> Result<(), LoadFailure> {
        if self.next > to {
            *self = Self::default();
        }
        while self.next < to {
            self.grow(documents)?;
        }
        Ok(())
    }
}

fn failed(error: impl std::fmt::Display) -> LoadFailure {
    LoadFailure::new(Code::Input, format!("the session cannot be read: {error}"))
}

impl SnapshotSource for Replay {
    fn cycles(&self) -> Result<Arc<[i64]>, LoadFailure> {
        Ok((1..=self.documents.committed() as i64).collect())
    }

    fn load(&self, wanted: Range<usize>) -> Result<Vec<Arc<Snapshot>>, LoadFailure> {
        let mut made = lock(&self.made);
        made.advance(wanted.start, &*self.documents)?;
        wanted.map(|_| made.grow(&*self.documents)).collect()
    }

    fn load_working(&self) -> Result<Arc<Snapshot>, LoadFailure> {
        let mut made = lock(&self.made);
        made.advance(self.documents.committed(), &*self.documents)?;
        made.grow(&*self.documents)
    }

    fn part(&self, _: Position, _: &SnapshotPart) -> Result<Option<Arc<Snapshot>>, LoadFailure> {
        Ok(None)
    }

    fn again(&self) -> bool {
        true
    }

    fn rest(&self) {
        *lock(&self.made) = ReplayState::default();
    }
}

impl Session {
    /// A session of documents that are read when they are needed. Loads nothing. What was loaded stays in memory
    /// as long as its history.
    #[doc(hidden)]
    pub fn replayed(documents: Arc<dyn Documents>) -> Self {
        let (committed, working) = (documents.committed(), documents.has_working());
        let made = Mutex::default();
        let source = Arc::new(Replay { documents, made });
        let archive = Archive::new(source, committed, working);
        Self::new(History::new_lazy(Arc::new(archive)))
    }
}

#[cfg(feature = "store")]
impl History {
    /// Whether its snapshots can be loaded again at any time, by callers that need few of them at a time.
    pub(crate) fn is_replayed(&self) -> bool {
        self.archive
            .as_ref()
            .is_some_and(|archive| archive.source.again())
    }

    fn renewed(&self) -> Option<Self> {
        let archive = self.archive.as_ref().filter(|_| self.is_replayed())?;
        let source = Arc::clone(&archive.source);
        let renewed = Archive::new(source, archive.len(), archive.has_working());
        Some(Self::new_lazy(Arc::new(renewed)))
    }

    /// Hands out the committed snapshots from an index on, then the working state, each with the committed one
    /// before it. Those of a replayed session are in memory only for that.
    pub(crate) fn walk<E: From<LoadFailure>>(
        &self,
        from: usize,
        mut each: impl FnMut(Option<&Snapshot>, &Snapshot) -> Result<(), E>,
    ) -> Result<(), E> {
        let length = self.committed().len();
        let mut older: Option<Arc<Snapshot>> = None;
        let mut at = from.saturating_sub(1);
        let working = loop {
            let renewed = self.renewed();
            let history = renewed.as_ref().unwrap_or(self);
            let end = match renewed {
                Some(_) => (at + WINDOW).min(length),
                None => length,
            };
            history.fetch_range(at..end)?;
            for index in at..end {
                let Some(snapshot) = history.committed().get(index) else {
                    break;
                };
                if index >= from {
                    each(older.as_deref(), snapshot)?;
                }
                older = Some(Arc::clone(snapshot));
            }
            at = end;
            if at == length {
                history.fetch(Position::Working)?;
                break history.working().cloned();
            }
        };
        if let Some(archive) = &self.archive {
            archive.source.rest();
        }
        match working {
            Some(working) => each(older.as_deref(), &working),
            None => Ok(()),
        }
    }
}
