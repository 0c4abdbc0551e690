//! The units in which two snapshots differ.
//!
//! Neighbouring snapshots share nearly all units. Shared ones are found without reading rows: runs
//! of one segment by its pointer, units that a merge moved by their versions.

use std::ops::Range;

use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use super::commit::UnitAt;
use super::{Snapshot, SnapshotPiece, UnitRef};
use crate::support::cancel::ensure;

/// Ranges of rows, few of them between neighbours.
pub(super) type RowRanges = SmallVec<[Range<u32>; 4]>;

/// The rows of the units in which two snapshots differ: ranges of whole units, ascending, in the row
/// numbers of each snapshot.
///
/// A unit differs if it is in one snapshot only, if rows of it are dead in one only, or if a ttl of
/// it differs. An id outside these rows is in both snapshots, in equal units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub newer: RowRanges,
    pub older: RowRanges,
    /// The rows whose ttls were read in both snapshots to find them.
    pub ttl_rows: u64,
}

impl Changes {
    /// Compares two snapshots. Linear in pieces, differing units, rows with a ttl that counts down,
    /// and units in different segments; shared rows cost nothing.
    pub fn between(newer: &Snapshot, older: &Snapshot) -> Self {
        let units = DifferingUnits::between(newer, older, true);
        let rows = |snapshot: &Snapshot, units: &[UnitAt]| {
            let rows = units.iter();
            let rows = rows.map(|&(at, unit)| snapshot.pieces()[at].rows_of_unit(unit));
            join(rows.collect())
        };
        Self {
            newer: rows(newer, &units.newer),
            older: rows(older, &units.older),
            ttl_rows: units.ttl_rows,
        }
    }

    pub fn has_preamble(&self) -> bool {
        let at_root = |ranges: &[Range<u32>]| ranges.first().is_some_and(|rows| rows.start == 0);
        at_root(&self.newer) || at_root(&self.older)
    }
}

/// The units in which two snapshots differ, as [`Snapshot::unit_changes`] says.
#[derive(Debug)]
pub struct UnitChanges<'a> {
    /// The units of the older snapshot that are not in the newer one, in document order.
    pub gone: Vec<UnitRef<'a>>,
    /// The units of the newer snapshot that are not in the older one, in document order.
    pub came: Vec<UnitRef<'a>>,
}

#[doc(hidden)]
impl Snapshot {
    /// The units in which this snapshot differs from an older one of the same session: those of
    /// another version, and those that lost rows. A ttl that counts down makes no difference. A
    /// unit of the same content that was indexed twice has two versions and is in both lists.
    ///
    /// Linear in pieces, differing units, and units in different segments, plus sorting of what differs.
    pub fn unit_changes<'a>(&'a self, older: &'a Self) -> UnitChanges<'a> {
        let units = DifferingUnits::between(self, older, false);
        let sorted = |snapshot: &'a Self, mut units: UnitList| {
            units.sort_unstable();
            let units = units.into_iter();
            units
                .map(|(at, unit)| UnitRef::new(snapshot, at, unit))
                .collect()
        };
        UnitChanges {
            gone: sorted(older, units.older),
            came: sorted(self, units.newer),
        }
    }
}

type UnitList = SmallVec<[UnitAt; 8]>;

#[doc(hidden)]
impl Snapshot {
    /// How many units at its start are those of an older snapshot, in the same order. Linear in pieces, and in units in
    /// different segments.
    pub fn units_shared(&self, older: &Self) -> usize {
        shared(self, older, usize::MAX, false)
    }

    /// As [`Snapshot::units_shared`], at its end; at most `most`.
    pub fn units_shared_at_end(&self, older: &Self, most: usize) -> usize {
        shared(self, older, most, true)
    }
}

/// How many units two snapshots have in common from the start or, `back`, from the end; at most `most`.
fn shared(newer: &Snapshot, older: &Snapshot, most: usize, back: bool) -> usize {
    // Pieces with their units that are not compared yet; the next one is the last.
    let left = |snapshot: &Snapshot| {
        let pieces = snapshot.pieces().iter().map(|piece| piece.units.clone());
        let mut left: SmallVec<[(usize, Range<u32>); 16]> = pieces.enumerate().collect();
        if !back {
            left.reverse();
        }
        left
    };
    let (mut left, mut right) = (left(newer), left(older));
    let mut count = 0;
    while count < most
        && let (Some((at, units)), Some((other, twins))) = (left.last_mut(), right.last_mut())
    {
        ensure();
        let (piece, twin) = (&newer.pieces()[*at], &older.pieces()[*other]);
        let length = units.len().min(twins.len()).min(most - count) as u32;
        let part = |units: &Range<u32>, length: u32| {
            if back {
                units.end - length..units.end
            } else {
                units.start..units.start + length
            }
        };
        let (run, of_twin) = (part(units, length), part(twins, length));
        let taken = if length > 0 && run == of_twin && std::ptr::eq(&*piece.segment, &*twin.segment)
        {
            let differ = differing(piece, twin, &run, None, &mut 0);
            let first = if back { differ.last() } else { differ.first() };
            match first {
                Some(unit) if back => return count + (run.end - 1 - unit) as usize,
                Some(unit) => return count + (unit - run.start) as usize,
                None => length,
            }
        } else if length > 0 {
            let (unit, other) = (part(units, 1).start, part(twins, 1).start);
            let version =
                |piece: &SnapshotPiece, unit: u32| piece.segment.units()[unit as usize].version;
            if version(piece, unit) != version(twin, other)
                || !same_dead((piece, unit), (twin, other))
            {
                return count;
            }
            1
        } else {
            0
        };
        count += taken as usize;
        for units in [units, twins] {
            if back {
                units.end -= taken;
            } else {
                units.start += taken;
            }
        }
        for left in [&mut left, &mut right] {
            if left.last().is_some_and(|(_, units)| units.is_empty()) {
                left.pop();
            }
        }
    }
    count
}

#[derive(Default)]
struct DifferingUnits {
    newer: UnitList,
    older: UnitList,
    ttl_rows: u64,
}

impl DifferingUnits {
    /// Compares two snapshots; with `ttls` a unit also differs by a ttl as it reads.
    fn between(newer: &Snapshot, older: &Snapshot, ttls: bool) -> Self {
        let mut found = Self::default();
        let (mut left, mut right) = (UnmatchedUnits::new(newer), UnmatchedUnits::new(older));
        let cycles = ttls.then(|| (newer.cycle(), older.cycle()));
        // Start after the last piece found: shared pieces are in the same order in both.
        // Pass 1, by pointer. Two pieces of one segment share the units in both ranges; only masks and ttls
        // can differ there, which `differing` reads without rows. What is left over has been indexed twice or
        // moved by a merge.
        let mut next = 0;
        for (at, piece) in newer.pieces().iter().enumerate() {
            let (before, after) = older.pieces().split_at(next);
            let after = after.iter().zip(next..);
            for (known, other) in after.chain(before.iter().zip(0..)) {
                if !std::ptr::eq(&*piece.segment, &*known.segment) {
                    continue;
                }
                let units =
                    piece.units.start.max(known.units.start)..piece.units.end.min(known.units.end);
                if units.is_empty() {
                    continue;
                }
                for unit in differing(piece, known, &units, cycles, &mut found.ttl_rows) {
                    found.newer.push((at, unit));
                    found.older.push((other, unit));
                }
                left.take(at, &units);
                right.take(other, &units);
                next = other + 1;
                if left.is_done(at) {
                    break;
                }
            }
        }
        // Pass 2, by version. A merge copies a unit to another segment under its version, so equal versions
        // are equal units. With ttls only constant units count: of the others the reading may differ.
        let mut versions: HashMap<u64, UnitAt> = HashMap::new();
        for (at, unit) in right.units() {
            let piece = &older.pieces()[at];
            if !ttls || is_constant(piece, unit) {
                versions.insert(piece.segment.units()[unit as usize].version, (at, unit));
            }
        }
        for (at, unit) in left.units() {
            let piece = &newer.pieces()[at];
            let version = piece.segment.units()[unit as usize].version;
            let same = versions.get(&version).filter(|&&(other, twin)| {
                if ttls {
                    is_constant(piece, unit)
                } else {
                    same_dead((piece, unit), (&older.pieces()[other], twin))
                }
            });
            match same {
                Some(&(other, twin)) => right.take(other, &(twin..twin + 1)),
                None => found.newer.push((at, unit)),
            }
        }
        found.older.extend(right.units());
        found
    }
}

/// The units of a snapshot not matched yet, by piece.
struct UnmatchedUnits(SmallVec<[SmallVec<[Range<u32>; 1]>; 16]>);

impl UnmatchedUnits {
    fn new(snapshot: &Snapshot) -> Self {
        let whole = |piece: &SnapshotPiece| smallvec![piece.units.clone()];
        Self(snapshot.pieces().iter().map(whole).collect())
    }

    fn take(&mut self, piece: usize, units: &Range<u32>) {
        let left = &mut self.0[piece];
        for range in std::mem::take(left) {
            let before = range.start..range.end.min(units.start);
            let after = range.start.max(units.end)..range.end;
            let parts = [before, after].into_iter();
            left.extend(parts.filter(|range| !range.is_empty()));
        }
    }

    fn is_done(&self, piece: usize) -> bool {
        self.0[piece].is_empty()
    }

    fn units(&self) -> UnitList {
        let pieces = self.0.iter().enumerate();
        pieces
            .flat_map(|(at, ranges)| ranges.iter().cloned().flatten().map(move |unit| (at, unit)))
            .collect()
    }
}

/// The units of `units`, which two pieces share, that differ in dead rows or, with the cycles of both, in ttls.
/// Adds the rows whose ttls it reads to `ttl_rows`.
fn differing(
    piece: &SnapshotPiece,
    other: &SnapshotPiece,
    units: &Range<u32>,
    cycles: Option<(i64, i64)>,
    ttl_rows: &mut u64,
) -> SmallVec<[u32; 8]> {
    let segment = &*piece.segment;
    let rows = segment.rows_of(units);
    let mut found: SmallVec<[u32; 8]> = SmallVec::new();
    match (&piece.dead, &other.dead) {
        (None, None) => {}
        // Mostly both see the same list, up to another moment.
        (Some(dead), Some(others)) if std::sync::Arc::ptr_eq(&dead.rows, &others.rows) => {
            let differ = dead.rows.between(dead.at, others.at);
            let differ = differ.filter(|row| rows.contains(row));
            found.extend(differ.map(|row| segment.unit_of(row)));
        }
        _ => {
            // After a row of a large segment has died, the two lists are long and nearly equal: one pass over both.
            let mut left = piece.dead_rows(rows.clone()).peekable();
            let mut right = other.dead_rows(rows.clone()).peekable();
            loop {
                let row = match (left.peek(), right.peek()) {
                    (None, None) => break,
                    (Some(row), Some(other)) if row == other => {
                        left.next();
                        right.next();
                        continue;
                    }
                    (Some(row), Some(other)) if row > other => right.next(),
                    (None, Some(_)) => right.next(),
                    (Some(_), _) => left.next(),
                };
                found.extend(row.map(|row| segment.unit_of(row)));
            }
        }
    }
    // Ttls that have expired in both are equal; before that two cycles read one differently.
    if let Some((cycle, other_cycle)) = cycles
        && cycle != other_cycle
    {
        let mut compared = 0;
        let falls = |row| {
            compared += 1;
            if !piece.is_dead(row) && segment.ttl(row, cycle) != segment.ttl(row, other_cycle) {
                found.push(segment.unit_of(row));
            }
        };
        if let Some(expiring) = &segment.expiring {
            expiring.after(cycle.min(other_cycle), &rows, falls);
        }
        *ttl_rows += compared;
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn is_constant(piece: &SnapshotPiece, unit: u32) -> bool {
    let segment = &*piece.segment;
    let rows = segment.unit_rows(unit);
    let gone = piece.dead_rows(rows.clone()).next().is_some();
    let mut counts = false;
    segment
        .has_ttl
        .for_each_in(rows, |row| counts |= !segment.ttl_stored.contains(row));
    !gone && !counts
}

/// Whether the same rows of two units of one version are dead.
fn same_dead(one: (&SnapshotPiece, u32), other: (&SnapshotPiece, u32)) -> bool {
    let dead = |(piece, unit): (&SnapshotPiece, u32)| {
        let rows = piece.segment.unit_rows(unit);
        let start = rows.start;
        let dead = piece.dead_rows(rows).map(|row| row - start);
        dead.collect::<SmallVec<[u32; 8]>>()
    };
    dead(one) == dead(other)
}

fn join(mut ranges: RowRanges) -> RowRanges {
    ranges.sort_unstable_by_key(|rows| rows.start);
    let mut joined: RowRanges = SmallVec::new();
    for rows in ranges {
        match joined.last_mut() {
            Some(last) if rows.start <= last.end => last.end = last.end.max(rows.end),
            _ => joined.push(rows),
        }
    }
    joined
}
