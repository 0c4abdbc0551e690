//! What differs between two snapshots, by whole units.
//!
//! Neighbouring snapshots share nearly all of their units. Whoever compares them need not look
//! at rows to know which: equal runs of one segment are found by their pointers, what a merge
//! has moved by the versions of its units.

use std::ops::Range;

use hashbrown::HashMap;
use roaring::RoaringBitmap;
use smallvec::{SmallVec, smallvec};

use super::{Piece, Snapshot};

/// The rows of two snapshots that lie in units which differ: ascending, whole units, each row
/// numbered as in its own snapshot.
///
/// A unit differs when it is in one snapshot only, when rows of it are gone in one, or when a
/// ttl in it counts down between the two. An id that is in none of these rows is in both
/// snapshots, in equal units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rows of the newer snapshot.
    pub newer: Vec<Range<u32>>,
    /// Rows of the older snapshot.
    pub older: Vec<Range<u32>>,
}

impl Changes {
    /// Finds them. Costs the pieces, the differing units, the rows with a running ttl, and the
    /// units that stand in different segments; not the rows that are shared.
    #[must_use]
    pub fn between(newer: &Snapshot, older: &Snapshot) -> Self {
        let mut found = Self::default();
        let (mut left, mut right) = (Rest::new(newer), Rest::new(older));
        let cycles = (newer.cycle(), older.cycle());
        // Where the last piece was found: what snapshots share stands in one order, so that the
        // next is mostly found at once.
        let mut next = 0;
        for (at, piece) in newer.pieces().iter().enumerate() {
            let (before, behind) = older.pieces().split_at(next);
            let behind = behind.iter().zip(next..);
            for (known, other) in behind.chain(before.iter().zip(0..)) {
                if !std::ptr::eq(&*piece.segment, &*known.segment) {
                    continue;
                }
                let units =
                    piece.units.start.max(known.units.start)..piece.units.end.min(known.units.end);
                if units.is_empty() {
                    continue;
                }
                for unit in differing(piece, known, &units, cycles) {
                    found.newer.push(rows_of(piece, unit..unit + 1));
                    found.older.push(rows_of(known, unit..unit + 1));
                }
                left.take(at, &units);
                right.take(other, &units);
                next = other + 1;
                if left.is_done(at) {
                    break;
                }
            }
        }
        let mut versions: HashMap<u64, (usize, u32)> = HashMap::new();
        for (at, unit) in right.units() {
            let piece = &older.pieces()[at];
            if keeps_still(piece, unit) {
                versions.insert(piece.segment.units()[unit as usize].version, (at, unit));
            }
        }
        for (at, unit) in left.units() {
            let piece = &newer.pieces()[at];
            let version = piece.segment.units()[unit as usize].version;
            let same = match versions.get(&version) {
                Some(_) if !keeps_still(piece, unit) => None,
                same => same,
            };
            match same {
                Some(&(other, twin)) => right.take(other, &(twin..twin + 1)),
                None => found.newer.push(rows_of(piece, unit..unit + 1)),
            }
        }
        for (at, unit) in right.units() {
            found
                .older
                .push(rows_of(&older.pieces()[at], unit..unit + 1));
        }
        join(&mut found.newer);
        join(&mut found.older);
        found
    }

    /// How many row numbers they span, in both snapshots.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let ranges = self.newer.iter().chain(&self.older);
        ranges.map(|rows| u64::from(rows.end - rows.start)).sum()
    }

    /// Whether the unit of the root, `^sys` and the `^seq` node is among them.
    #[must_use]
    pub fn has_preamble(&self) -> bool {
        let at_root = |ranges: &[Range<u32>]| ranges.first().is_some_and(|rows| rows.start == 0);
        at_root(&self.newer) || at_root(&self.older)
    }
}

/// The units of a snapshot that are not yet accounted for, piece by piece.
struct Rest(SmallVec<[SmallVec<[Range<u32>; 1]>; 16]>);

impl Rest {
    fn new(snapshot: &Snapshot) -> Self {
        let whole = |piece: &Piece| smallvec![piece.units.clone()];
        Self(snapshot.pieces().iter().map(whole).collect())
    }

    /// Accounts for some units of a piece.
    fn take(&mut self, piece: usize, units: &Range<u32>) {
        let left = &mut self.0[piece];
        for range in std::mem::take(left) {
            let before = range.start..range.end.min(units.start);
            let behind = range.start.max(units.end)..range.end;
            let parts = [before, behind].into_iter();
            left.extend(parts.filter(|range| !range.is_empty()));
        }
    }

    /// Whether no unit of a piece is left.
    fn is_done(&self, piece: usize) -> bool {
        self.0[piece].is_empty()
    }

    /// Those left: the number of the piece, and the unit.
    fn units(&self) -> Vec<(usize, u32)> {
        let pieces = self.0.iter().enumerate();
        pieces
            .flat_map(|(at, ranges)| ranges.iter().cloned().flatten().map(move |unit| (at, unit)))
            .collect()
    }
}

/// Of units that two pieces share, those whose rows do not read alike in both snapshots.
fn differing(
    piece: &Piece,
    other: &Piece,
    units: &Range<u32>,
    (cycle, other_cycle): (i64, i64),
) -> Vec<u32> {
    let segment = &*piece.segment;
    let rows = || segment.unit_rows(units.start).start..segment.unit_rows(units.end - 1).end;
    let mut found: Vec<u32> = Vec::new();
    let same_dead = match (&piece.dead, &other.dead) {
        (None, None) => true,
        (Some(dead), Some(others)) => std::sync::Arc::ptr_eq(dead, others),
        _ => false,
    };
    if !same_dead {
        let none = RoaringBitmap::new();
        let dead = piece.dead.as_deref().unwrap_or(&none);
        let others = other.dead.as_deref().unwrap_or(&none);
        let differ = dead ^ others;
        found.extend(differ.range(rows()).map(|row| segment.unit_of(row)));
    }
    // A ttl that has run out in both reads alike in both.
    if cycle != other_cycle && segment.counts_until > cycle.min(other_cycle) {
        segment.has_ttl.for_each_in(rows(), |row| {
            let is_dead = piece.dead.as_ref().is_some_and(|dead| dead.contains(row));
            if !is_dead && segment.ttl(row, cycle) != segment.ttl(row, other_cycle) {
                found.push(segment.unit_of(row));
            }
        });
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a unit reads alike in every snapshot: no row of it is gone, no ttl counts down.
fn keeps_still(piece: &Piece, unit: u32) -> bool {
    let segment = &*piece.segment;
    let rows = segment.unit_rows(unit);
    let gone = piece
        .dead
        .as_ref()
        .is_some_and(|dead| dead.range_cardinality(rows.clone()) > 0);
    let mut counts = false;
    segment
        .has_ttl
        .for_each_in(rows, |row| counts |= !segment.ttl_stored.contains(row));
    !gone && !counts
}

fn rows_of(piece: &Piece, units: Range<u32>) -> Range<u32> {
    let segment = &*piece.segment;
    let start = segment.unit_rows(units.start).start;
    let end = segment.unit_rows(units.end - 1).end;
    start + piece.shift()..end + piece.shift()
}

/// Sorts ranges and makes one of those that touch.
fn join(ranges: &mut Vec<Range<u32>>) {
    ranges.sort_unstable_by_key(|rows| rows.start);
    let mut joined: Vec<Range<u32>> = Vec::with_capacity(ranges.len());
    for rows in ranges.drain(..) {
        match joined.last_mut() {
            Some(last) if rows.start <= last.end => last.end = last.end.max(rows.end),
            _ => joined.push(rows),
        }
    }
    *ranges = joined;
}
