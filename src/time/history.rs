//! The history of a session at one moment, and how times address it.

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;

use crate::exec::Facts;
use crate::index::Snapshot;
use crate::ir::{Address, RangeEnd, Time};

/// The committed snapshots of a session, oldest first, and its working state. Immutable.
#[derive(Debug, Default)]
pub struct History {
    committed: Vec<Arc<Snapshot>>,
    working: Option<Arc<Snapshot>>,
    first_seen: OnceLock<HashMap<Box<str>, i64>>,
}

/// Where a snapshot stands in a [`History`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Among the committed ones, from 0, the oldest.
    Committed(usize),
    /// The working state.
    Working,
}

/// What a time leads to.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// One snapshot.
    One(Place),
    /// Every committed snapshot, newest first.
    All,
    /// A range.
    Range(Span),
}

/// Neighbouring committed snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which of the committed ones is the newest.
    pub newest: usize,
    /// Which is the oldest; not behind the newest.
    pub oldest: usize,
    /// Whether they are told by cycle, or by how far they lie back.
    pub by_cycle: bool,
    /// Where the range ends instead of where it was meant to.
    pub cut: Option<RangeEnd>,
}

impl Span {
    /// How many snapshots.
    #[must_use]
    pub fn len(&self) -> usize {
        self.newest - self.oldest + 1
    }

    /// Never: a range that touches no snapshot is an error.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// What a reader should know of where it ends.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.cut.map(|end| {
            let end = super::range::label(end);
            format!("the range reaches past the oldest snapshot and is cut to {end}")
        })
    }
}

/// Why a time leads to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// No such snapshot.
    NotFound {
        /// Why the address leads to none, in words.
        why: &'static str,
        /// Which snapshots there are, in words.
        which: String,
    },
    /// No time was given and there is no working state.
    NoWorkingState,
}

impl History {
    /// A history of snapshots with rising cycles.
    #[must_use]
    pub fn new(committed: Vec<Arc<Snapshot>>, working: Option<Arc<Snapshot>>) -> Self {
        debug_assert!(committed.is_sorted_by_key(|snapshot| snapshot.cycle()));
        Self {
            committed,
            working,
            first_seen: OnceLock::new(),
        }
    }

    /// The committed snapshots, oldest first.
    #[must_use]
    pub fn committed(&self) -> &[Arc<Snapshot>] {
        &self.committed
    }

    /// The working state.
    #[must_use]
    pub fn working(&self) -> Option<&Arc<Snapshot>> {
        self.working.as_ref()
    }

    /// The working state, else the newest snapshot: what commands show that were told no time.
    #[must_use]
    pub fn latest(&self) -> Option<&Arc<Snapshot>> {
        self.working.as_ref().or(self.committed.last())
    }

    /// The snapshot at a place of this history; none for a place of another one.
    #[inline]
    #[must_use]
    pub fn get(&self, place: Place) -> Option<&Arc<Snapshot>> {
        match place {
            Place::Committed(index) => self.committed.get(index),
            Place::Working => self.working.as_ref(),
        }
    }

    /// The snapshot at an address. Constant time for `@tN`, logarithmic for `@cN`.
    ///
    /// # Errors
    /// There is none there.
    #[inline]
    pub fn at(&self, address: Address) -> Result<&Arc<Snapshot>, Unresolved> {
        self.index_of(address).map(|index| &self.committed[index])
    }

    /// Which of the committed snapshots an address means.
    #[inline]
    fn index_of(&self, address: Address) -> Result<usize, Unresolved> {
        let found = match address {
            Address::Back(back) => usize::try_from(back)
                .ok()
                .and_then(|back| self.committed.len().checked_sub(back.checked_add(1)?)),
            Address::Cycle(cycle) => self
                .committed
                .binary_search_by_key(&cycle, |snapshot| snapshot.cycle())
                .ok(),
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
        Unresolved::NotFound { why, which }
    }

    /// Which snapshots there are, in words.
    fn inventory(&self) -> String {
        match self.committed.as_slice() {
            [] => "there is no committed snapshot".to_owned(),
            [only] => format!("there is only @t0 (@c{})", only.cycle()),
            [oldest, .., newest] => format!(
                "there are @t0 to @t-{} (@c{} to @c{})",
                self.committed.len() - 1,
                newest.cycle(),
                oldest.cycle()
            ),
        }
    }

    /// What a time leads to (LANGUAGE §3).
    ///
    /// # Errors
    /// No such snapshot, a range that touches none, or no working state.
    #[inline]
    pub fn resolve(&self, time: Time) -> Result<Lookup, Unresolved> {
        match time {
            Time::Working if self.working.is_some() => Ok(Lookup::One(Place::Working)),
            Time::Working => Err(Unresolved::NoWorkingState),
            Time::At(address) => {
                let index = self.index_of(address)?;
                Ok(Lookup::One(Place::Committed(index)))
            }
            Time::All => Ok(Lookup::All),
            Time::Range(a, b) => self.range(a, b),
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
                let start = self
                    .committed
                    .partition_point(|snapshot| snapshot.cycle() < low);
                let end = self
                    .committed
                    .partition_point(|snapshot| snapshot.cycle() <= high);
                if start == end {
                    return Err(not_found());
                }
                let first = self.committed[0].cycle();
                Ok(Lookup::Range(Span {
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
                Ok(Lookup::Range(Span {
                    newest: (oldest - newer) as usize,
                    oldest: (oldest - older.min(oldest)) as usize,
                    by_cycle: false,
                    cut: (older > oldest).then_some(RangeEnd::Back(oldest)),
                }))
            }
        }
    }
}

impl Facts for History {
    /// Built on the first question: one pass over the versions of the history.
    fn first_seen(&self, id: &str) -> Option<i64> {
        let seen = self.first_seen.get_or_init(|| {
            let mut seen: HashMap<Box<str>, i64> = HashMap::new();
            for snapshot in &self.committed {
                for node in snapshot.nodes() {
                    if !seen.contains_key(node.id()) {
                        seen.insert(node.id().into(), snapshot.cycle());
                    }
                }
            }
            seen
        });
        seen.get(id).copied()
    }
}
