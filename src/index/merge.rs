//! Merges segments, so that a snapshot of T turns has O(log T) pieces.
//!
//! Small neighbouring segments are merged geometrically, as in a log-structured merge tree: every
//! row is copied O(log T) times.

use std::ops::Range;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::snapshot::Run;
use super::{Segment, SegmentBuilder, Snapshot, UnitKind};

/// A merge: runs of units and the segment they were copied to.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The units, in their old segments.
    pub inputs: Vec<(Arc<Segment>, Range<u32>)>,
    /// The new segment, which has the same units from its first on.
    pub output: Arc<Segment>,
}

/// The largest number of pieces of a snapshot. Callers count all units as turns.
fn most_pieces(turns: usize) -> usize {
    2 * (usize::BITS - turns.leading_zeros()) as usize + 8
}

/// Merges runs of turns: the two newest while the older one is less than twice as large, then
/// the two smallest neighbours while there are too many runs.
pub(super) fn merge(runs: &mut Vec<Run>) -> Vec<Merge> {
    let rows = |run: &Run| {
        run.0.unit_rows(run.1.end - 1).end as usize - run.0.unit_rows(run.1.start).start as usize
    };
    // Units of a segment are sorted by rank, so the first and the last are enough.
    let turns = |run: &Run| {
        let rank = |unit: u32| run.0.units()[unit as usize].kind.rank();
        rank(run.1.start) == UnitKind::Turn.rank() && rank(run.1.end - 1) == UnitKind::Turn.rank()
    };
    let mut merges = Vec::new();
    loop {
        let last = runs.iter().rposition(turns);
        let Some(last) = last.filter(|&last| last > 0 && turns(&runs[last - 1])) else {
            break;
        };
        if rows(&runs[last - 1]) >= 2 * rows(&runs[last]) {
            break;
        }
        merges.push(join(runs, last - 1));
    }
    let count: usize = runs.iter().map(|run| run.1.len()).sum();
    while runs.len() > most_pieces(count) {
        let smallest = (1..runs.len())
            .filter(|&at| turns(&runs[at - 1]) && turns(&runs[at]))
            .min_by_key(|&at| rows(&runs[at - 1]) + rows(&runs[at]));
        let Some(at) = smallest else { break };
        merges.push(join(runs, at - 1));
    }
    merges
}

/// Replaces runs `at` and `at + 1` by a run of a new segment.
fn join(runs: &mut Vec<Run>, at: usize) -> Merge {
    let mut builder = SegmentBuilder::default();
    let mut dead = RoaringBitmap::new();
    let mut inputs = Vec::with_capacity(2);
    for (segment, units, masked) in runs.drain(at..at + 2) {
        builder.begin_segment(&segment);
        let start = segment.unit_rows(units.start).start;
        if let Some(masked) = masked {
            let end = segment.unit_rows(units.end - 1).end;
            dead.extend(
                masked
                    .range(start..end)
                    .map(|row| row - start + builder.len()),
            );
        }
        for unit in units.clone() {
            builder.add_segment_unit(&segment, unit);
        }
        inputs.push((segment, units));
    }
    let output = Arc::new(builder.finish());
    let units = 0..output.units().len() as u32;
    let dead = (!dead.is_empty()).then(|| Arc::new(dead));
    runs.insert(at, (Arc::clone(&output), units, dead));
    Merge { inputs, output }
}

impl Snapshot {
    /// The same snapshot on the merged segments, so that the old ones can be freed; `None` if it
    /// has none of them.
    pub fn moved(&self, merges: &[Merge]) -> Option<Self> {
        let mut runs: Vec<Run> = self
            .pieces()
            .iter()
            .map(|piece| {
                (
                    Arc::clone(&piece.segment),
                    piece.units.clone(),
                    piece.dead.clone(),
                )
            })
            .collect();
        let mut changed = false;
        for merge in merges {
            let mut first = 0;
            for (segment, units) in &merge.inputs {
                for run in &mut runs {
                    let inside = units.start <= run.1.start && run.1.end <= units.end;
                    if !Arc::ptr_eq(&run.0, segment) || !inside {
                        continue;
                    }
                    changed = true;
                    let moved = run.1.start - units.start + first..run.1.end - units.start + first;
                    let (from, to) = (
                        segment.unit_rows(run.1.start).start,
                        merge.output.unit_rows(moved.start).start,
                    );
                    let end = segment.unit_rows(run.1.end - 1).end;
                    if let Some(dead) = run.2.take() {
                        let dead: RoaringBitmap =
                            dead.range(from..end).map(|row| row - from + to).collect();
                        run.2 = Some(Arc::new(dead));
                    }
                    run.0 = Arc::clone(&merge.output);
                    run.1 = moved;
                }
                first += units.len() as u32;
            }
            // Neighbouring runs of one segment become one piece.
            let mut joined: Vec<Run> = Vec::with_capacity(runs.len());
            for run in runs {
                push_run(&mut joined, run);
            }
            runs = joined;
        }
        changed.then(|| Self::new(self.meta().clone(), runs))
    }
}

/// Adds a run, or extends the last one if it continues it.
pub(super) fn push_run(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some((segment, units, masked))
            if Arc::ptr_eq(segment, &run.0) && units.end == run.1.start =>
        {
            units.end = run.1.end;
            if let Some(dead) = run.2 {
                *Arc::make_mut(masked.get_or_insert_default()) |= &*dead;
            }
        }
        _ => runs.push(run),
    }
}
