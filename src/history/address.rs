//! The history of a session at one moment, and how times resolve in it.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use super::archive::{Archive, CommitCall, LoadFailure, Position, SnapshotPart};
use super::attempt::Attempts;
use super::first_seen::FirstSeen;
use super::snapshots::Snapshots;
use super::unit_changes::SharedChanges;
use crate::index::{Merge, Snapshot};
use crate::query::exec::SessionStats;
use crate::query::ir::{Address, QueryTime, RangeEnd};

/// The committed snapshots of a session and its working state, at one moment. Immutable.
///
/// ```
/// let history = pactql::Session::open("fixtures/greenhouse.jsonl")?.history();
/// assert_eq!(history.cycles().collect::<Vec<_>>(), [11, 12, 13, 14]);
/// assert_eq!(history.latest().map(|snapshot| snapshot.cycle()), Some(14));
/// assert!(history.working().is_some());
/// # Ok::<(), pactql::error::LoadError>(())
/// ```
#[derive(Default)]
pub struct History {
    committed: Snapshots,
    working: Working,
    /// `None` if they are those of the archive.
    attempts: Option<Attempts>,
    first_seen: OnceLock<FirstSeen>,
    /// For standing selectors.
    pub(super) shared_changes: SharedChanges,
    /// Where the oldest snapshots, or the working state, come from.
    pub(super) archive: Option<Arc<Archive>>,
    /// The history of which this one shows a part of one snapshot.
    whole: Option<Arc<History>>,
}

/// How much there is. Loads nothing.
impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("History");
        out.field("committed", &self.committed)
            .field("working", &self.has_working());
        if let Some(attempts) = &self.attempts {
            out.field("attempts", &attempts.len());
        }
        out.finish_non_exhaustive()
    }
}

#[derive(Clone, Default)]
enum Working {
    #[default]
    None,
    Made(Arc<LazyLock<Arc<Snapshot>, Make>>),
    Archived,
}

type Make = Box<dyn FnOnce() -> Arc<Snapshot> + Send>;

fn made(snapshot: Arc<Snapshot>) -> Working {
    let working: LazyLock<_, Make> = LazyLock::new(Box::new(|| snapshot));
    LazyLock::force(&working);
    Working::Made(Arc::new(working))
}

/// What a time resolves to.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// One snapshot.
    One(Position),
    /// Every committed snapshot, newest first.
    All,
    /// A range.
    Range(SnapshotRange),
}

/// Neighbouring committed snapshots; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRange {
    /// Index of the newest.
    pub newest: usize,
    /// Index of the oldest; at most `newest`.
    pub oldest: usize,
    /// Whether results name them by cycle (`@c41`) or by distance (`@t-1`).
    pub by_cycle: bool,
    /// Where the range ends, if it was cut at the oldest snapshot.
    pub cut: Option<RangeEnd>,
}

impl SnapshotRange {
    /// The number of snapshots.
    pub fn count(&self) -> usize {
        self.newest - self.oldest + 1
    }

    /// A warning, if the range was cut.
    pub fn warning(&self) -> Option<String> {
        self.cut
            .map(|end| format!("the range reaches past the oldest snapshot and is cut to {end}"))
    }
}

/// Why a time has no snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; {which}")]
pub struct Unresolved {
    /// Why, as text.
    pub why: &'static str,
    /// Which snapshots there are, as text.
    pub which: String,
}

impl History {
    fn with(&self, committed: Snapshots, working: Working) -> Self {
        Self {
            committed,
            working,
            attempts: self.attempts.clone(),
            first_seen: OnceLock::new(),
            shared_changes: SharedChanges::default(),
            archive: self.archive.clone(),
            whole: None,
        }
    }

    /// The provider calls of the session. They may have to be loaded; none if that fails, as with [`Snapshots::get`].
    pub fn attempts(&self) -> &Attempts {
        static NONE: LazyLock<Attempts> = LazyLock::new(Attempts::default);
        match (&self.attempts, &self.archive) {
            (Some(attempts), _) => attempts,
            (None, Some(archive)) => archive.attempts().unwrap_or(&NONE),
            (None, None) => &NONE,
        }
    }

    pub(crate) fn fetch_attempts(&self) -> Result<(), LoadFailure> {
        match (&self.attempts, &self.archive) {
            (None, Some(archive)) => archive.attempts().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The cycles of the committed snapshots, ascending. Loads no snapshot. Cycles of a store that
    /// cannot be read are 0.
    pub fn cycles(&self) -> impl ExactSizeIterator<Item = i64> + DoubleEndedIterator {
        let cycle = |at| self.committed.cycle_at(at).unwrap_or(0);
        (0..self.committed.len()).map(cycle)
    }

    /// The committed snapshots, oldest first.
    #[inline]
    pub fn committed(&self) -> &Snapshots {
        &self.committed
    }

    /// The session's own working state. [`History::latest`] has what an omitted time means. If it has
    /// to be loaded, as [`Snapshots::get`].
    pub fn working(&self) -> Option<&Arc<Snapshot>> {
        match &self.working {
            Working::Made(working) => Some(&**working),
            Working::None => None,
            Working::Archived => self.archive.as_ref()?.working(),
        }
    }

    /// What an omitted time means (LANGUAGE §3): the session's own working state, else what the
    /// last commit left, which is the newest snapshot. `None` if there is neither.
    pub fn latest(&self) -> Option<&Arc<Snapshot>> {
        self.working().or(self.committed.last())
    }

    pub(super) fn nothing(&self) -> Unresolved {
        self.not_found("nothing is committed, and there is no working state")
    }

    #[inline]
    pub(crate) fn index_of(&self, address: Address) -> Result<usize, Unresolved> {
        let found = match address {
            Address::Back(back) => usize::try_from(back)
                .ok()
                .and_then(|back| self.committed.len().checked_sub(back.checked_add(1)?)),
            Address::Cycle(cycle) => self.committed.index_of(cycle),
        };
        found.ok_or_else(|| {
            self.not_found(match address {
                Address::Back(_) => "no commit is that far back",
                Address::Cycle(_) => "no snapshot has this cycle",
            })
        })
    }

    fn not_found(&self, why: &'static str) -> Unresolved {
        let which = self.inventory();
        Unresolved { why, which }
    }

    fn inventory(&self) -> String {
        let Some(back) = self.committed.len().checked_sub(1) else {
            return "there is no committed snapshot".to_owned();
        };
        let cycle = |at| self.committed.cycle_at(at);
        match (back, cycle(0), cycle(back)) {
            (0, _, Some(only)) => format!("there is only @t0 (@c{only})"),
            (_, Some(oldest), Some(newest)) => {
                format!("there are @t0 to @t-{back} (@c{newest} to @c{oldest})")
            }
            _ => format!("there are @t0 to @t-{back}"),
        }
    }

    fn range(&self, a: RangeEnd, b: RangeEnd) -> Result<Lookup, Unresolved> {
        let not_found = || self.not_found("the range touches no snapshot");
        let oldest = (self.committed.len() as u64)
            .checked_sub(1)
            .ok_or_else(not_found)?;
        match (a, b) {
            (RangeEnd::Cycle(a), RangeEnd::Cycle(b)) => {
                let (low, high) = (a.min(b), a.max(b));
                let start = self.committed.cycles_before(|cycle| cycle < low);
                let end = self.committed.cycles_before(|cycle| cycle <= high);
                if start == end {
                    return Err(not_found());
                }
                let first = self.committed.cycle_at(0).unwrap_or(low);
                Ok(Lookup::Range(SnapshotRange {
                    newest: end - 1,
                    oldest: start,
                    by_cycle: true,
                    cut: (low < first).then_some(RangeEnd::Cycle(first)),
                }))
            }
            (a, b) => {
                let back = |end| match end {
                    RangeEnd::Back(back) => back,
                    RangeEnd::Oldest | RangeEnd::Cycle(_) => oldest,
                };
                let (newer, older) = (back(a).min(back(b)), back(a).max(back(b)));
                if newer > oldest {
                    return Err(not_found());
                }
                Ok(Lookup::Range(SnapshotRange {
                    newest: (oldest - newer) as usize,
                    oldest: (oldest - older.min(oldest)) as usize,
                    by_cycle: false,
                    cut: (older > oldest).then_some(RangeEnd::Back(oldest)),
                }))
            }
        }
    }
}

/// State that is loaded on first use.
#[doc(hidden)]
impl History {
    /// A history of snapshots in ascending order of cycle.
    pub fn new(committed: Vec<Arc<Snapshot>>, working: Option<Arc<Snapshot>>) -> Self {
        debug_assert!(committed.is_sorted_by_key(|snapshot| snapshot.cycle()));
        Self {
            committed: Snapshots::new(committed),
            working: working.map_or(Working::None, made),
            ..Self::default()
        }
    }

    /// The history of an archive. Loads nothing.
    pub fn new_lazy(archive: Arc<Archive>) -> Self {
        Self {
            committed: Snapshots::archived(&archive),
            working: if archive.has_working() {
                Working::Archived
            } else {
                Working::None
            },
            archive: Some(archive),
            ..Self::default()
        }
    }

    /// This history after a commit: with `snapshot` as the newest one, older ones moved to the segments that the commit
    /// merged, and without a working state. Logarithmic in the snapshots, and linear in those that moved.
    #[must_use]
    pub fn appended(&self, snapshot: Arc<Snapshot>, merges: &[Merge]) -> Self {
        debug_assert!(
            self.committed
                .range(self.committed.live())
                .next_back()
                .is_none_or(|newest| newest.cycle() < snapshot.cycle())
        );
        let live = self.committed.live();
        let (mut from, mut newest) = (live.end, vec![snapshot]);
        // Only the newest snapshots can refer to what was merged. Merges wait for later commits, whose snapshots may not refer
        // to any: at most one for each merge is passed over.
        for (at, older) in self.committed.range(live).rev().enumerate() {
            newest.push(match older.moved(merges) {
                Some(moved) => Arc::new(moved),
                None if at < merges.len() => Arc::clone(older),
                None => break,
            });
            from -= 1;
        }
        newest.reverse();
        self.with(self.committed.with_newest(from, newest), Working::None)
    }

    /// This history with the working state that `make` makes when it is first asked for; readers that
    /// ask at the same time wait for it. Constant time.
    #[must_use]
    pub fn with_working(&self, make: impl FnOnce() -> Arc<Snapshot> + Send + 'static) -> Self {
        let working = Working::Made(Arc::new(LazyLock::new(Box::new(make))));
        self.with(self.committed.clone(), working)
    }

    /// This history without a working state of its own.
    #[must_use]
    pub fn without_working(&self) -> Self {
        self.with(self.committed.clone(), Working::None)
    }

    /// The history of the first `count` snapshots, without a working state. Logarithmic; loads none.
    #[must_use]
    pub fn first_n(&self, count: usize) -> Self {
        self.with(self.committed.first_n(count), Working::None)
    }

    /// This history with these attempts.
    #[must_use]
    pub fn with_attempts(&self, attempts: Attempts) -> Self {
        Self {
            attempts: Some(attempts),
            ..self.with(self.committed.clone(), self.working.clone())
        }
    }

    /// The position of [`History::latest`]: [`Position::Working`] only if the session has a working state of its own.
    ///
    /// # Errors
    /// There is neither a working state nor a snapshot.
    #[inline]
    pub fn latest_position(&self) -> Result<Position, Unresolved> {
        match (&self.working, self.committed.len().checked_sub(1)) {
            (Working::Made(_) | Working::Archived, _) => Ok(Position::Working),
            (Working::None, Some(newest)) => Ok(Position::Committed(newest)),
            (Working::None, None) => Err(self.nothing()),
        }
    }

    /// The snapshot at a position.
    #[inline]
    pub fn get(&self, position: Position) -> Option<&Arc<Snapshot>> {
        match position {
            Position::Committed(index) => self.committed.get(index),
            Position::Working => self.working(),
        }
    }

    /// The snapshot at an address. O(1) for `@tN`, O(log snapshots) for `@cN`.
    ///
    /// # Errors
    /// There is none.
    #[inline]
    pub fn at(&self, address: Address) -> Result<&Arc<Snapshot>, Unresolved> {
        let index = self.index_of(address)?;
        let found = self.committed.get(index);
        found.ok_or_else(|| self.not_found("the snapshot cannot be loaded"))
    }

    /// Resolves a time (LANGUAGE §3).
    ///
    /// # Errors
    /// No such snapshot, or a range without snapshots.
    #[inline]
    pub fn resolve(&self, time: QueryTime) -> Result<Lookup, Unresolved> {
        match time {
            QueryTime::Working => self.latest_position().map(Lookup::One),
            QueryTime::At(address) => {
                let index = self.index_of(address)?;
                Ok(Lookup::One(Position::Committed(index)))
            }
            QueryTime::All => Ok(Lookup::All),
            QueryTime::Range(a, b) => self.range(a, b),
        }
    }

    /// Whether some of its snapshots may have to be loaded.
    #[inline]
    pub fn is_lazy(&self) -> bool {
        self.archive.is_some()
    }

    /// Whether there is a working state. Makes and loads nothing.
    pub fn has_working(&self) -> bool {
        !matches!(self.working, Working::None)
    }

    pub(crate) fn has(&self, position: Position) -> bool {
        match (position, &self.working, &self.archive) {
            (Position::Committed(at), _, Some(archive)) => {
                at >= self.committed.live().start || archive.has(position)
            }
            (Position::Working, Working::Archived, Some(archive)) => archive.has(position),
            _ => true,
        }
    }

    /// Loads the snapshot at a position, for [`History::get`].
    ///
    /// # Errors
    /// It cannot be loaded.
    pub fn fetch(&self, position: Position) -> Result<(), LoadFailure> {
        match (position, &self.working) {
            (Position::Committed(at), _) => self.committed.fetch(at..at.saturating_add(1)),
            (Position::Working, Working::Archived) => {
                let archive = self.archive.as_ref();
                archive.map_or(Ok(()), |archive| archive.fetch_working())
            }
            (Position::Working, Working::None | Working::Made(_)) => Ok(()),
        }
    }

    /// Loads these committed snapshots, neighbours together.
    ///
    /// # Errors
    /// One of them cannot be loaded.
    pub fn fetch_range(&self, wanted: Range<usize>) -> Result<(), LoadFailure> {
        self.committed.fetch(wanted)
    }

    /// What the committed snapshots say of their calls, oldest first, where that costs less than to load them; else
    /// `None`. Errors: they cannot be read.
    pub(crate) fn calls(&self) -> Result<Option<Vec<CommitCall>>, LoadFailure> {
        self.committed.calls()
    }

    /// Loads all of it: every snapshot, the working state, and the provider calls.
    ///
    /// # Errors
    /// Something cannot be loaded.
    pub fn fetch_all(&self) -> Result<(), LoadFailure> {
        self.fetch_range(0..self.committed.len())?;
        self.fetch(Position::Working)?;
        self.fetch_attempts()
    }

    /// The snapshot at a position, loaded; `None` if there is none.
    pub(crate) fn load(&self, position: Position) -> Result<Option<&Arc<Snapshot>>, LoadFailure> {
        self.fetch(position)?;
        Ok(self.get(position))
    }

    /// Loads the cycles of all snapshots, for [`History::resolve`].
    ///
    /// # Errors
    /// They cannot be loaded.
    pub fn fetch_cycles(&self) -> Result<(), LoadFailure> {
        match &self.archive {
            Some(archive) => archive.cycles().map(|_| ()),
            None => Ok(()),
        }
    }

    /// This history with a part of the snapshot at a position in its place, unless the snapshot is in
    /// memory or has to be loaded whole. [`History::whole`] of that is this one.
    ///
    /// # Errors
    /// The part cannot be loaded.
    pub fn seeing(
        self: &Arc<Self>,
        position: Position,
        part: &SnapshotPart,
    ) -> Result<Option<Self>, LoadFailure> {
        let Some(archive) = self.archive.as_ref().filter(|_| !self.has(position)) else {
            return Ok(None);
        };
        let part = archive.part(position, part)?;
        Ok(part.map(|part| {
            let seen = match position {
                Position::Committed(at) => {
                    self.with(self.committed.seeing(at, part), self.working.clone())
                }
                Position::Working => self.with(self.committed.clone(), made(part)),
            };
            Self {
                whole: Some(Arc::clone(self)),
                ..seen
            }
        }))
    }

    /// The history of which this one shows a part.
    pub fn whole(&self) -> Option<&Arc<Self>> {
        self.whole.as_ref()
    }
}

impl SessionStats for History {
    /// The first call builds the table: one pass over the unit versions of the history.
    fn first_seen(&self, id: &str) -> Option<i64> {
        if let Some(whole) = &self.whole {
            return whole.first_seen(id);
        }
        if self.first_seen.get().is_none() {
            // Before a selector that reads ages runs, its caller has loaded all of it.
            self.fetch_range(0..self.committed.len()).ok()?;
        }
        let seen = self
            .first_seen
            .get_or_init(|| FirstSeen::new(&self.committed));
        seen.cycles.get(id).copied()
    }
}
