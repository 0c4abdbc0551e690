//! A source of snapshots as a store is one, in memory, which counts what it is asked for and can fail.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pactql::internals::history::{Archive, LoadFailure, Position, SnapshotPart, SnapshotSource};
use pactql::internals::index::Snapshot;
use pactql::{Code, History, Session};

use super::kept::{Kept, Restorer};

/// A session in units, from which snapshots are made.
#[derive(Debug)]
pub(crate) struct Fake {
    kept: Kept,
    cycles: Arc<[i64]>,
    working: bool,
    restorer: Mutex<Restorer>,
    /// What was asked for.
    pub(crate) asked: Mutex<Vec<String>>,
    /// How many more calls succeed.
    left: AtomicUsize,
    /// Whether parts are given.
    parts: bool,
}

impl Fake {
    /// A source of what a history has.
    pub(crate) fn of(history: &History, parts: bool) -> Arc<Self> {
        let snapshots: Vec<_> = history
            .committed()
            .iter()
            .chain(history.working())
            .collect();
        Arc::new(Self {
            kept: Kept::of(snapshots),
            cycles: history.cycles().collect(),
            working: history.working().is_some(),
            restorer: Mutex::default(),
            asked: Mutex::default(),
            left: AtomicUsize::new(usize::MAX),
            parts,
        })
    }

    /// The same session, of which nothing is in memory.
    pub(crate) fn session(self: &Arc<Self>) -> Session {
        self.asked.lock().unwrap().clear();
        let source = Arc::clone(self) as Arc<dyn SnapshotSource>;
        let archive = Archive::new(source, self.cycles.len(), self.working);
        Session::new(History::new_lazy(Arc::new(archive)))
    }

    /// Fails after so many more calls.
    pub(crate) fn fail_after(&self, calls: usize) {
        self.left.store(calls, Ordering::Relaxed);
    }

    /// What was asked for since the last call.
    pub(crate) fn taken(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// Whether a part of a snapshot was given since the last call of [`Fake::taken`].
    pub(crate) fn gave_a_part(&self) -> bool {
        let asked = self.asked.lock().unwrap();
        self.parts && asked.iter().any(|what| what.starts_with("part"))
    }

    fn ask(&self, what: String) -> Result<(), LoadFailure> {
        self.asked.lock().unwrap().push(what);
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Err(LoadFailure {
                code: Code::Store,
                message: "the disk is gone".to_owned(),
                help: Some("find it".to_owned()),
            });
        }
        self.left.store(left - 1, Ordering::Relaxed);
        Ok(())
    }

    fn make(&self, at: usize) -> Arc<Snapshot> {
        Arc::new(self.restorer.lock().unwrap().snapshot(&self.kept, at))
    }
}

impl SnapshotSource for Fake {
    fn cycles(&self) -> Result<Arc<[i64]>, LoadFailure> {
        self.ask("cycles".to_owned())?;
        Ok(Arc::clone(&self.cycles))
    }

    fn load(&self, wanted: Range<usize>) -> Result<Vec<Arc<Snapshot>>, LoadFailure> {
        self.ask(format!("{}..{}", wanted.start, wanted.end))?;
        Ok(wanted.map(|at| self.make(at)).collect())
    }

    fn load_working(&self) -> Result<Arc<Snapshot>, LoadFailure> {
        self.ask("working".to_owned())?;
        Ok(self.make(self.cycles.len()))
    }

    fn part(
        &self,
        position: Position,
        part: &SnapshotPart,
    ) -> Result<Option<Arc<Snapshot>>, LoadFailure> {
        let ids = part.ids.iter().flatten().map(|id| format!(" #{id}"));
        let turns = match part.turns {
            u64::MAX => "all".to_owned(),
            turns => turns.to_string(),
        };
        self.ask(format!(
            "part{}{}{}{} turns{}",
            if part.sys { " sys," } else { "" },
            if part.head { " head," } else { "" },
            if part.rest { " rest," } else { "" },
            format_args!(" {turns}"),
            ids.collect::<String>(),
        ))?;
        if !self.parts {
            return Ok(None);
        }
        let at = match position {
            Position::Committed(at) => at,
            Position::Working => self.cycles.len(),
        };
        Ok(Some(Arc::new(self.kept.part(at, part))))
    }
}
