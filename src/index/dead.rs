//! The rows of a segment that were removed, with the moments in which they were.
//!
//! A segment never changes, so a row that a commit removes stays in it and is dead from then on. The snapshots on a
//! segment share one list, and each sees of it what died up to its own moment. So neighbours that share a list differ
//! by what lies between their moments, whatever its length. This file does not know why a row was removed.

use std::ops::Range;
use std::sync::Arc;

use super::posting::is_dense;
use super::{Bits, Meta, Posting};

/// When a row died: in the commit of this cycle, or in the working state of the cycle before.
pub(super) type Moment = i64;

/// The moment of a snapshot.
pub(super) fn moment(meta: &Meta) -> Moment {
    // A working state has the cycle of the newest commit, and is later.
    meta.cycle.saturating_add(i64::from(meta.working))
}

/// Dead rows of a segment. Never empty.
#[derive(Debug)]
pub(super) struct DeadRows {
    /// Ascending.
    rows: Box<[(u32, Moment)]>,
    /// Indexes of `rows`, by moment.
    by_moment: Box<[u32]>,
    /// When the last of them died.
    last: Moment,
    /// All of them, if a bitmap is small: most snapshots see all.
    all: Option<Posting>,
}

/// The dead rows of a piece, as its snapshot sees them.
#[derive(Clone, Debug)]
pub(super) struct SeenDead {
    pub(super) rows: Arc<DeadRows>,
    /// The moment of the snapshot.
    pub(super) at: Moment,
}

impl DeadRows {
    /// These rows, which ascend, of a segment of `len` rows; `None` if there are none.
    pub(super) fn new(rows: Vec<(u32, Moment)>, len: u32) -> Option<Arc<Self>> {
        let mut by_moment: Box<[u32]> = (0..rows.len() as u32).collect();
        by_moment.sort_by_key(|&at| rows[at as usize].1);
        let last = rows[*by_moment.last()? as usize].1;
        let all = || Posting::from_rows(&Vec::from_iter(rows.iter().map(|(row, _)| *row)), len);
        let all = is_dense(rows.len() as u32, len).then(all);
        let rows = rows.into();
        Some(Arc::new(Self {
            rows,
            by_moment,
            last,
            all,
        }))
    }

    /// All rows, if they are dead at a moment and a bitmap of them is small.
    #[inline]
    fn all_at(&self, at: Moment) -> Option<&Posting> {
        self.all.as_ref().filter(|_| self.last <= at)
    }

    /// Removes those of `rows` that are dead at a moment from `out`, each increased by `shift`, a multiple of 64. Linear in the
    /// words of `rows`, or logarithmic and linear in those that are dead at some moment.
    pub(super) fn remove_from(&self, out: &mut Bits, rows: Range<u32>, shift: u32, at: Moment) {
        match self.all_at(at) {
            Some(all) => all.remove_from(out, rows, shift),
            None => self
                .within(rows, at)
                .for_each(|(row, _)| out.remove(row + shift)),
        }
    }

    /// Whether a row is dead at a moment. Logarithmic.
    pub(super) fn contains(&self, row: u32, at: Moment) -> bool {
        let found = self.rows.binary_search_by_key(&row, |(row, _)| *row);
        found.is_ok_and(|found| self.rows[found].1 <= at)
    }

    /// The rows of `rows` that are dead at a moment, ascending, each with its own. Logarithmic, and linear in those
    /// that are dead at some moment.
    pub(super) fn within(
        &self,
        rows: Range<u32>,
        at: Moment,
    ) -> impl DoubleEndedIterator<Item = (u32, Moment)> + Clone + '_ {
        let before = |wanted: u32| self.rows.partition_point(|(row, _)| *row < wanted);
        let is_after = |(row, _): &(u32, Moment)| rows.end <= *row;
        let is_before = |(row, _): &(u32, Moment)| *row < rows.start;
        // Mostly these rows are before or after all dead ones.
        let is_apart =
            self.rows.first().is_none_or(is_after) || self.rows.last().is_none_or(is_before);
        let found: &[(u32, Moment)] = if is_apart {
            &[]
        } else {
            let start = before(rows.start);
            &self.rows[start..before(rows.end).max(start)]
        };
        found.iter().copied().filter(move |(_, died)| *died <= at)
    }

    /// Those of the 64 rows from `start` that are dead at a moment, a bit each. Constant time, or logarithmic and linear in
    /// those that are dead at some moment.
    #[inline]
    pub(super) fn word_from(&self, start: u32, at: Moment) -> u64 {
        match self.all_at(at) {
            Some(all) => all.word_from(start),
            None => self.found_word(start, at),
        }
    }

    #[inline(never)]
    fn found_word(&self, start: u32, at: Moment) -> u64 {
        let mut word = 0;
        for &(row, died) in &self.rows[self.rows.partition_point(|(row, _)| *row < start)..] {
            if row - start >= 64 {
                break;
            }
            word |= u64::from(died <= at) << (row - start);
        }
        word
    }

    /// The rows that are dead at one of two moments only. Logarithmic, and linear in those.
    pub(super) fn between(&self, one: Moment, other: Moment) -> impl Iterator<Item = u32> + '_ {
        let died = |at: &u32| self.rows[*at as usize].1;
        let (first, last) = (one.min(other), one.max(other));
        let start = self.by_moment.partition_point(|at| died(at) <= first);
        let found = self.by_moment[start..].iter();
        let found = found.take_while(move |at| self.rows[**at as usize].1 <= last);
        found.map(|&at| self.rows[at as usize].0)
    }
}
