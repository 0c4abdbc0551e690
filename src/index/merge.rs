//! Merges segments, so that a snapshot of T turns has O(log T) pieces.
//!
//! Small neighbouring segments are merged geometrically, as in a log-structured merge tree: every
//! row is copied O(log T) times.

use std::ops::Range;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::attributes::Collector;
use super::snapshot::UnitRun;
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

/// A run of fewer units is not merged until the newest such runs have this many together. Most
/// commits then merge nothing.
const BATCH: usize = 4;

/// Merges runs of turns: the newest ones, when they have [`BATCH`] units, with older ones that are
/// less than twice as large; then the two smallest neighbours while there are too many runs.
pub(super) fn merge(runs: &mut Vec<UnitRun>) -> Vec<Merge> {
    let rows = |(segment, units, _): &UnitRun| segment.rows_of(units).len();
    // Units of a segment are sorted by rank, so the first and the last are enough.
    let turns = |run: &UnitRun| {
        let rank = |unit: u32| run.0.units()[unit as usize].kind.rank();
        rank(run.1.start) == UnitKind::Turn.rank() && rank(run.1.end - 1) == UnitKind::Turn.rank()
    };
    // Step 1, the geometric rule of a log-structured merge tree. The newest short runs wait until they are
    // BATCH units together, so three of four commits copy nothing. Then every older run that is less than
    // twice as large as what has been collected joins too: after the merge each run is at least twice as
    // large as the next newer one, so there are O(log T) runs, and a row is copied at most once for each
    // doubling of the run it is in.
    let mut merges = Vec::new();
    if let Some(last) = runs.iter().rposition(turns) {
        let older = |first: usize| first.checked_sub(1).filter(|&at| turns(&runs[at]));
        let (mut first, mut units, mut sum) = (last, runs[last].1.len(), rows(&runs[last]));
        while let Some(at) = older(first)
            && runs[first].1.len() < BATCH
            && runs[at].1.len() < BATCH
        {
            first = at;
            units += runs[at].1.len();
            sum += rows(&runs[at]);
        }
        if units >= BATCH {
            while let Some(at) = older(first)
                && rows(&runs[at]) < 2 * sum
            {
                first = at;
                sum += rows(&runs[at]);
            }
            if first < last {
                merges.push(join(runs, first..last + 1));
            }
        }
    }
    // Step 2, the bound. Changes inside old turns split runs where the rule above does not look, so the
    // cheapest neighbours are joined until the count is small again. Only turns are joined: the preamble
    // and the head change with most commits, and merging them would copy the turns beside them each time.
    let count: usize = runs.iter().map(|run| run.1.len()).sum();
    while runs.len() > most_pieces(count) {
        let smallest = (1..runs.len())
            .filter(|&at| turns(&runs[at - 1]) && turns(&runs[at]))
            .min_by_key(|&at| rows(&runs[at - 1]) + rows(&runs[at]));
        let Some(at) = smallest else { break };
        merges.push(join(runs, at - 1..at + 1));
    }
    merges
}

fn join(runs: &mut Vec<UnitRun>, joined: Range<usize>) -> Merge {
    let at = joined.start;
    let parts: Vec<UnitRun> = runs.drain(joined).collect();
    let rows = |(segment, units, _): &UnitRun| segment.rows_of(units);
    let mut builder = SegmentBuilder::default();
    let mut attributes = Collector::default();
    let mut dead = RoaringBitmap::new();
    builder.reserve_for_runs(&parts);
    // Dead rows are copied with the rest: units keep their versions, and equal versions must mean equal
    // rows in every segment that has them, so that older snapshots can move here as well.
    for part in &parts {
        let (segment, units, masked) = part;
        let (rows, first) = (rows(part), builder.len());
        if let Some(masked) = masked {
            let masked = masked.range(rows.clone());
            dead.extend(masked.map(|row| row - rows.start + first));
        }
        builder.add_run(segment, units.clone());
        // Attributes of a whole segment are posting lists already; of a part, the records are read.
        if rows == (0..segment.len()) {
            attributes.copy(segment, first);
        } else {
            let places = &segment.payload_at[rows.start as usize..rows.end as usize];
            attributes.read(&segment.payload, places, first);
        }
    }
    let attributes = attributes.finish(builder.len());
    let output = Arc::new(builder.finish_merged(attributes));
    let units = 0..output.units().len() as u32;
    let dead = (!dead.is_empty()).then(|| Arc::new(dead));
    runs.insert(at, (Arc::clone(&output), units, dead));
    let inputs = parts
        .into_iter()
        .map(|(segment, units, _)| (segment, units));
    Merge {
        inputs: inputs.collect(),
        output,
    }
}

#[doc(hidden)]
impl Snapshot {
    /// The same snapshot on the merged segments, so that the old ones can be freed; `None` if it has none of them.
    pub fn moved(&self, merges: &[Merge]) -> Option<Self> {
        if merges.is_empty() {
            return None;
        }
        let runs = self.pieces().iter().map(|piece| {
            let segment = Arc::clone(&piece.segment);
            (segment, piece.units.clone(), piece.dead.clone())
        });
        let mut runs: Vec<UnitRun> = runs.collect();
        let mut changed = false;
        // Merges are applied in the order in which they were made: the output of one may be an input of the
        // next. A run moves if it lies within an input; the offset of its first unit stays the same.
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
                    let (from, to) = (segment.rows_of(&run.1), merge.output.rows_of(&moved));
                    if let Some(dead) = run.2.take() {
                        let dead = dead.range(from.clone());
                        let dead = dead.map(|row| row - from.start + to.start);
                        run.2 = Some(Arc::new(dead.collect()));
                    }
                    run.0 = Arc::clone(&merge.output);
                    run.1 = moved;
                }
                first += units.len() as u32;
            }
            // Neighbouring runs of one segment become one piece.
            let mut joined: Vec<UnitRun> = Vec::with_capacity(runs.len());
            for run in runs {
                push_run(&mut joined, run);
            }
            runs = joined;
        }
        changed.then(|| Self::new(self.meta().clone(), runs))
    }
}

/// Adds a run, or extends the last one if it continues it.
pub(super) fn push_run(runs: &mut Vec<UnitRun>, run: UnitRun) {
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
