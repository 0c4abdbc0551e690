//! Snapshots that come into memory when they are asked for.
//!
//! An [`Archive`] has a place for each committed snapshot of a session that is kept elsewhere, and asks its [`SnapshotSource`]
//! for what is missing. It knows no layout and no database: the store brings the source.

use crate::support::lock;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::attempt::Attempts;
use crate::index::{Meta, Snapshot};
use crate::support::diag::{Code, Diagnostic, Error};

/// The position of a snapshot in a [`History`](crate::History).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Index among the committed ones; 0 is the oldest.
    Committed(usize),
    /// The session's own working state.
    Working,
}

/// Where snapshots come from that are not in memory. Its methods are called by any thread, and by
/// one at a time for each archive; they must not read the archive, nor wait for threads that may.
pub trait SnapshotSource: Debug + Send + Sync {
    /// The cycles of all committed snapshots, ascending. Asked once, if at all, unless it fails.
    /// Errors: they cannot be read.
    fn cycles(&self) -> Result<Arc<[i64]>, LoadFailure>;

    /// The committed snapshots at these indexes, whole, oldest first. They share segments with each
    /// other and with those loaded before. Errors: one of them cannot be read.
    fn load(&self, wanted: Range<usize>) -> Result<Vec<Arc<Snapshot>>, LoadFailure>;

    /// The working state, whole. Errors: it cannot be read.
    fn load_working(&self) -> Result<Arc<Snapshot>, LoadFailure>;

    /// A snapshot that has at least this part of the one at a position, with its properties and the
    /// right depths; `None` to have it loaded whole. Errors: it cannot be read.
    fn part(
        &self,
        position: Position,
        part: &SnapshotPart,
    ) -> Result<Option<Arc<Snapshot>>, LoadFailure>;

    /// The provider calls of the session. Asked once, if at all, unless it fails.
    /// Errors: they cannot be read.
    fn attempts(&self) -> Result<Attempts, LoadFailure> {
        Ok(Attempts::default())
    }

    /// What the committed snapshots say of their calls, oldest first; `None` to have them loaded for it.
    /// Errors: they cannot be read.
    fn calls(&self) -> Result<Option<Vec<CommitCall>>, LoadFailure> {
        Ok(None)
    }

    /// Nothing will be asked for soon: what is kept only to be faster can go.
    fn rest(&self) {}

    /// Whether what was loaded can be loaded again by another archive, also while a store writes.
    fn again(&self) -> bool {
        false
    }
}

/// What a committed snapshot says of the provider call of its cycle.
#[derive(Clone, Debug)]
pub struct CommitCall {
    /// What is beside the tree.
    pub meta: Meta,
    /// Blocks of the newest turn and of `^ah`, in document order, and nodes of replies among them.
    pub newest: Vec<Arc<[CallNode]>>,
    /// The same of the last child of `^seq`.
    pub last: Arc<[CallNode]>,
}

/// A node, as far as it says something of a call.
#[derive(Clone, Debug)]
pub struct CallNode {
    /// Whether it is a block.
    pub is_block: bool,
    /// Whether its role is that of the model.
    pub is_of_model: bool,
    /// The number that `data_reply` is, in its spelling.
    pub reply: Option<Box<str>>,
    /// `created_at_iso`.
    pub time: Option<Box<str>>,
}

/// Whether a role is that of the model.
#[must_use]
pub fn is_of_model(role: &str) -> bool {
    matches!(role, "assistant" | "model")
}

/// A part of a snapshot, in whole units. The preamble's root and `^seq` are in every part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotPart {
    /// `^sys` with all below it.
    pub sys: bool,
    /// `^ah`.
    pub head: bool,
    /// This number of the newest turns, with the loose children of `^seq` among and after them.
    pub turns: u64,
    /// The children of the root that are not regions.
    pub rest: bool,
    /// If given, only the units that a node with one of these ids is in. They have the depths of
    /// the whole snapshot ([`UnitPart::Gap`](crate::index::UnitPart::Gap)).
    pub ids: Option<Vec<Box<str>>>,
}

impl SnapshotPart {
    /// Every unit.
    #[cfg(feature = "store")]
    pub(crate) fn whole() -> Self {
        Self {
            sys: true,
            head: true,
            turns: u64::MAX,
            rest: true,
            ids: None,
        }
    }

    /// The units that a node with one of these ids is in.
    pub fn of_ids(ids: Vec<Box<str>>) -> Self {
        Self {
            sys: true,
            head: true,
            turns: u64::MAX,
            rest: true,
            ids: Some(ids),
        }
    }

    /// Whether whatever is in `other` is in this part.
    pub fn covers(&self, other: &Self) -> bool {
        let ids = match (&self.ids, &other.ids) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(others)) => others.iter().all(|id| own.contains(id)),
        };
        ids && self.sys >= other.sys
            && self.head >= other.head
            && self.turns >= other.turns
            && self.rest >= other.rest
    }
}

/// Why snapshots could not be loaded. What is in memory stays readable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LoadFailure {
    /// The code.
    pub code: Code,
    /// What happened.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl LoadFailure {
    pub(super) fn new(code: Code, message: String) -> Self {
        Self {
            code,
            message,
            help: None,
        }
    }

    /// The failure as an error about `text`, which was to be answered.
    #[cold]
    pub fn about(self, text: &str) -> Error {
        let diagnostic = Diagnostic::error(self.code, self.message);
        Error::new(text, diagnostic.with_any_help(self.help))
    }
}

#[doc(hidden)]
impl From<LoadFailure> for Error {
    fn from(failure: LoadFailure) -> Self {
        failure.about("")
    }
}

/// Snapshots in a row of places, which is made when one of them is first used.
const ROW: usize = 256;
/// How many snapshots are prefetched where they are read one after the other.
const BLOCK: usize = 64;
/// The parts that are kept, the newest ones.
const PARTS: usize = 16;

type SnapshotSlot = OnceLock<Arc<Snapshot>>;

/// The committed snapshots, and perhaps the working state, of a session that is kept elsewhere.
#[derive(Debug)]
pub struct Archive {
    pub(super) source: Arc<dyn SnapshotSource>,
    len: usize,
    has_working: bool,
    cycles: OnceLock<Arc<[i64]>>,
    rows: Box<[OnceLock<Box<[SnapshotSlot]>>]>,
    working: SnapshotSlot,
    attempts: OnceLock<Attempts>,
    /// Parts that were loaded, the one used last at the end.
    parts: Mutex<Vec<(Position, SnapshotPart, Arc<Snapshot>)>>,
    /// Its holder is the one that loads.
    loading: Mutex<()>,
}

impl Archive {
    /// An archive of this many committed snapshots, and perhaps a working state. Loads nothing, and makes no places.
    pub fn new(source: Arc<dyn SnapshotSource>, len: usize, has_working: bool) -> Self {
        Self {
            source,
            len,
            has_working,
            cycles: OnceLock::new(),
            rows: (0..len.div_ceil(ROW)).map(|_| OnceLock::new()).collect(),
            working: OnceLock::new(),
            attempts: OnceLock::new(),
            parts: Mutex::default(),
            loading: Mutex::default(),
        }
    }

    /// Number of committed snapshots.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no committed snapshot.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is a working state.
    pub fn has_working(&self) -> bool {
        self.has_working
    }

    /// The cycles of the committed snapshots, ascending. Errors: those of the source.
    pub fn cycles(&self) -> Result<&[i64], LoadFailure> {
        let cycles = self.once(&self.cycles, || {
            let cycles = self.source.cycles()?;
            if cycles.len() != self.len {
                return Err(unexpected("cycles", cycles.len(), self.len));
            }
            Ok(cycles)
        });
        cycles.map(|cycles| &**cycles)
    }

    pub(super) fn attempts(&self) -> Result<&Attempts, LoadFailure> {
        self.once(&self.attempts, || self.source.attempts())
    }

    /// Loads these snapshots, those past the end left out. Neighbours that are missing are loaded together.
    ///
    /// # Errors
    /// Those of the source; snapshots loaded before them stay.
    pub fn fetch(&self, wanted: Range<usize>) -> Result<(), LoadFailure> {
        let end = wanted.end.min(self.len);
        if self.missing(wanted.start..end).is_none() {
            return Ok(());
        }
        let _one = self.alone();
        let mut start = wanted.start;
        while let Some(run) = self.missing(start..end) {
            let loaded = self.source.load(run.clone())?;
            if loaded.len() != run.len() {
                return Err(unexpected("snapshots", loaded.len(), run.len()));
            }
            start = run.end;
            for (at, snapshot) in run.zip(loaded) {
                let _ = self.place(at).map(|place| place.set(snapshot));
            }
        }
        Ok(())
    }

    /// Loads the working state, if there is one. Errors: those of the source.
    pub fn fetch_working(&self) -> Result<(), LoadFailure> {
        if self.has_working {
            self.once(&self.working, || self.source.load_working())?;
        }
        Ok(())
    }

    /// What the committed snapshots say of their calls; `None` if they are loaded, or have to be.
    pub(super) fn calls(&self) -> Result<Option<Vec<CommitCall>>, LoadFailure> {
        if self.missing(0..self.len).is_none() {
            return Ok(None);
        }
        let calls = self.source.calls()?;
        match calls.as_ref().map_or(self.len, Vec::len) {
            found if found == self.len => Ok(calls),
            found => Err(unexpected("snapshots", found, self.len)),
        }
    }

    pub(super) fn has(&self, position: Position) -> bool {
        match position {
            Position::Committed(at) => self.loaded(at).is_some(),
            Position::Working => self.working.get().is_some(),
        }
    }

    /// A snapshot with a part of the one at a position; `None` if it has to be loaded whole.
    pub(super) fn part(
        &self,
        position: Position,
        part: &SnapshotPart,
    ) -> Result<Option<Arc<Snapshot>>, LoadFailure> {
        if let Some(known) = self.known(position, part) {
            return Ok(Some(known));
        }
        let _one = self.alone();
        if let Some(known) = self.known(position, part) {
            return Ok(Some(known));
        }
        let Some(snapshot) = self.source.part(position, part)? else {
            return Ok(None);
        };
        let mut parts = lock(&self.parts);
        if parts.len() == PARTS {
            parts.remove(0);
        }
        parts.push((position, part.clone(), Arc::clone(&snapshot)));
        Ok(Some(snapshot))
    }

    fn known(&self, position: Position, part: &SnapshotPart) -> Option<Arc<Snapshot>> {
        let mut parts = lock(&self.parts);
        let mut known = parts.iter();
        let at = known.position(|(at, known, _)| *at == position && known.covers(part))?;
        parts[at..].rotate_left(1);
        parts.last().map(|(_, _, snapshot)| Arc::clone(snapshot))
    }

    /// The snapshot at an index, which is loaded now if it was not fetched. `None` if that fails.
    pub(super) fn get(&self, at: usize) -> Option<&Arc<Snapshot>> {
        if self.loaded(at).is_none() && at < self.len {
            let beside = [at.wrapping_sub(1), at + 1].map(|at| self.loaded(at).is_some());
            let block = at / BLOCK * BLOCK;
            let fetched = self.fetch(match beside {
                [false, false] => at..at + 1,
                _ => block..block + BLOCK,
            });
            fetched.ok()?;
        }
        self.loaded(at)
    }

    /// The working state, which is loaded now if it was not fetched. `None` if that fails.
    pub(super) fn working(&self) -> Option<&Arc<Snapshot>> {
        self.fetch_working().ok()?;
        self.working.get()
    }

    /// The cycle of the snapshot at an index; `None` if it cannot be read.
    pub(super) fn cycle(&self, at: usize) -> Option<i64> {
        if let Some(snapshot) = self.loaded(at) {
            return Some(snapshot.cycle());
        }
        self.cycles().ok()?.get(at).copied()
    }

    fn loaded(&self, at: usize) -> Option<&Arc<Snapshot>> {
        let row = self.rows.get(at / ROW)?.get()?;
        row.get(at % ROW)?.get()
    }

    fn place(&self, at: usize) -> Option<&SnapshotSlot> {
        let row = self.rows.get(at / ROW)?;
        let len = ROW.min(self.len - at / ROW * ROW);
        row.get_or_init(|| (0..len).map(|_| SnapshotSlot::new()).collect())
            .get(at % ROW)
    }

    fn missing(&self, mut wanted: Range<usize>) -> Option<Range<usize>> {
        let start = wanted.find(|&at| self.loaded(at).is_none())?;
        let end = wanted.find(|&at| self.loaded(at).is_some());
        Some(start..end.unwrap_or(wanted.end))
    }

    /// What is in a slot, loaded now if nothing is.
    fn once<'s, T>(
        &self,
        slot: &'s OnceLock<T>,
        load: impl FnOnce() -> Result<T, LoadFailure>,
    ) -> Result<&'s T, LoadFailure> {
        if let Some(known) = slot.get() {
            return Ok(known);
        }
        let _one = self.alone();
        let loaded = match slot.get() {
            Some(known) => return Ok(known),
            None => load()?,
        };
        Ok(slot.get_or_init(|| loaded))
    }

    fn alone(&self) -> MutexGuard<'_, ()> {
        lock(&self.loading)
    }
}

/// The source gave another number than was asked for.
fn unexpected(what: &str, found: usize, wanted: usize) -> LoadFailure {
    let message = format!("the store is damaged: {found} {what} were read instead of {wanted}");
    LoadFailure {
        help: Some("verify the store, or restore a copy of it".to_owned()),
        ..LoadFailure::new(Code::Store, message)
    }
}
