//! The tail of every result: `@unique`, then skip, then limit (LANGUAGE §6).

use hashbrown::HashSet;

use super::rows::MatchedRows;
use crate::index::{NodeRef, Ones, Snapshot};
use crate::query::plan::Bound;

/// Applies uniqueness, skip and limit to rows in result order, one by one.
#[derive(Debug)]
pub struct ResultTail<'a> {
    seen: Option<HashSet<(bool, &'a str)>>,
    skip: u64,
    left: u64,
}

impl<'a> ResultTail<'a> {
    pub fn new(bound: &Bound) -> Self {
        let (skip, limit) = bound.page.unwrap_or((0, u64::MAX));
        Self {
            seen: bound.unique.then(HashSet::new),
            ..Self::page(skip, limit)
        }
    }

    /// The tail that leaves out `skip` rows and ends after `limit` more.
    pub fn page(skip: u64, limit: u64) -> Self {
        Self {
            seen: None,
            skip,
            left: limit,
        }
    }

    #[inline]
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Whether the next row, a node, passes.
    #[inline]
    pub fn admits(&mut self, node: impl FnOnce() -> NodeRef<'a>) -> bool {
        // A row that is not the first of its key counts neither as skipped nor as returned.
        if let Some(seen) = &mut self.seen
            && !seen.insert(node().identity())
        {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        let admitted = self.left > 0;
        self.left = self.left.saturating_sub(1);
        admitted
    }

    pub(super) fn apply(mut self, snapshot: &'a Snapshot, rows: MatchedRows) -> MatchedRows {
        if let (None, MatchedRows::Word { start, word }) = (&self.seen, &rows) {
            let wanted = self.skip..self.skip.saturating_add(self.left);
            let kept = Ones(*word).zip(0..).filter(|(_, at)| wanted.contains(at));
            return MatchedRows::Word {
                start: *start,
                word: kept.fold(0, |word, (bit, _)| word | 1 << bit),
            };
        }
        let mut kept = smallvec::SmallVec::new();
        for row in rows.iter() {
            if self.is_done() {
                break;
            }
            if self.admits(|| snapshot.node(row)) {
                kept.push(row);
            }
        }
        MatchedRows::List(kept)
    }

    /// How many of `rows` rows pass, if that does not depend on the rows.
    pub(super) fn count(&self, rows: u64) -> Option<u64> {
        let paged = rows.saturating_sub(self.skip).min(self.left);
        self.seen.is_none().then_some(paged)
    }
}
