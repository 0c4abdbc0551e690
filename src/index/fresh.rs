//! What indexing a changed unit needs besides its rows: how its ttls are read, and its previous version. It must not know
//! how a segment is built.

use std::ops::Range;

use super::Segment;
use super::records::NodeRecords;
use crate::tree::hash_text;
use crate::tree::{RecordPlace, Tree};

#[derive(Clone, Copy, Debug)]
pub(super) enum Ttl<'a> {
    /// All ttls count down from this cycle.
    CountFrom(i64),
    /// All ttls stay as they are.
    Stay,
    /// The ttls of these rows of the tree (ascending) are the cycles in which the nodes expire; others stay.
    ExpireAt(&'a [u32]),
}

impl Ttl<'_> {
    /// The cycle in which the ttl of row `at` expires; `None` if it stays as it is.
    #[inline]
    pub(super) fn expires(self, at: u32, ttl: i64) -> Option<i64> {
        match self {
            Self::CountFrom(cycle) => ttl.checked_add(cycle),
            Self::Stay => None,
            Self::ExpireAt(rows) => rows.binary_search(&at).is_ok().then_some(ttl),
        }
    }
}

/// Records of fewer bytes are copied, not shared.
const LEAST: usize = 1 << 14;

/// The unit in the previous snapshot; equal records are shared with it.
#[derive(Debug)]
pub(super) struct Earlier<'a> {
    segment: &'a Segment,
    rows: Range<u32>,
    /// The row after the last match.
    next: u32,
}

impl<'a> Earlier<'a> {
    /// The previous version of a unit of `tree`; `None` if its records are too small.
    pub(super) fn find(
        segment: &'a Segment,
        rows: Range<u32>,
        tree: &Tree,
        unit: Range<u32>,
    ) -> Option<Self> {
        let unit = tree.rows.get(unit.start as usize..unit.end as usize)?;
        let bytes = unit.iter().map(|row| row.payload.len());
        // Sharing a record keeps all records of its old segment in memory, which pays only for large ones.
        (bytes.sum::<usize>() >= LEAST).then_some(Self {
            segment,
            next: rows.start,
            rows,
        })
    }

    /// The earlier record of the node at row `at`, if it is equal. Linear in the record, if most rows
    /// are in the same order in both units.
    pub(super) fn record(
        &mut self,
        tree: &Tree,
        at: u32,
    ) -> Option<(&'a NodeRecords, RecordPlace)> {
        let id = tree.id(at);
        while self.rows.contains(&self.next) && self.segment.is_core(self.next) {
            self.next += 1;
        }
        // Both units are in document order, so the next row is nearly always the match; after a
        // change, one lookup by id finds the place again.
        let is_next = self.rows.contains(&self.next) && self.segment.id(self.next) == id;
        let row = if is_next {
            self.next
        } else {
            let wanted = |row| self.rows.contains(&row);
            self.segment.find(hash_text(id), id, wanted)?
        };
        self.next = row + 1;
        // Records are compared, not hashes: the record is at hand, and it is compared once.
        let is_same = self.segment.record(row) == tree.record(at);
        is_same.then(|| (&self.segment.payload, self.segment.payload_at[row as usize]))
    }
}
