//! Merges segments, so that a snapshot of T turns has O(log T) pieces.
//!
//! Small neighbouring segments are merged geometrically, as in a log-structured merge tree: every
//! row is copied O(log T) times. A snapshot of a few rows with little text is one segment, so that a set of its rows is
//! one word; its rows are copied with each commit, until there are more. So are the newest turns of a larger one, until
//! there are [`BATCH`].

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::attributes::Collector;
use super::dead::{DeadRows, Moment, moment};
use super::snapshot::UnitRun;
use super::{Segment, SegmentBuilder, Snapshot, SnapshotPiece, UnitKind};

/// A merge: runs of units and the segment they were copied to.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The units, in their old segments.
    pub inputs: Vec<(Arc<Segment>, Range<u32>)>,
    /// The new segment, which has the same units from its first on.
    pub output: Arc<Segment>,
    /// The dead rows of the new segment in the snapshot that the merge was made for.
    dead: Option<Arc<DeadRows>>,
}

/// The largest number of pieces of a snapshot. Callers count all units as turns.
fn most_pieces(turns: usize) -> usize {
    2 * (usize::BITS - turns.leading_zeros()) as usize + 8
}

/// Only snapshots of at most this many rows are made one segment.
const FEW_ROWS: usize = 64;

/// The most bytes of records in their segments: each commit copies them.
const FEW_BYTES: usize = 64 << 10;

/// With fewer runs than this they are merged only if no unit stays behind that older snapshots alone have.
const FEW_RUNS: usize = 8;

/// A run of fewer units is not merged with older ones until the newest such runs have this many together. A new turn
/// shares the segment of a shorter run.
const BATCH: usize = 4;

/// Takes the last run, if a new turn is to share its segment: short, alone there, and without dead rows. Questions about the
/// newest turns then read one segment. Linear in the runs.
pub(super) fn short_tail(runs: &mut Vec<UnitRun>, at: Moment) -> Option<UnitRun> {
    // Fewer rows become one segment as they are.
    if runs.iter().map(|run| run.rows().len()).sum::<usize>() <= FEW_ROWS {
        return None;
    }
    runs.pop_if(|run| {
        let (units, segment) = (run.segment.units(), &run.segment);
        run.units.len() < BATCH
            && run.units.len() == units.len()
            && units
                .first()
                .is_some_and(|unit| unit.kind.rank() == UnitKind::Turn.rank())
            && run.rows().len() <= FEW_ROWS
            && segment.payload_bytes() <= FEW_BYTES
            && run.died.is_empty()
            && run.shared_dead(at).next().is_none()
    })
}

/// Merges all runs, if they have few rows. Otherwise runs of turns: the newest ones, when they have [`BATCH`] units,
/// with older ones that are less than twice as large; then the two smallest neighbours while there are too many runs.
/// `at` is the moment of the snapshot.
pub(super) fn merge(runs: &mut Vec<UnitRun>, at: Moment) -> Vec<Merge> {
    let rows = |run: &UnitRun| run.rows().len();
    // Units of a segment are sorted by rank, so the first and the last are enough.
    let turns = |run: &UnitRun| {
        let rank = |unit: u32| run.segment.units()[unit as usize].kind.rank();
        rank(run.units.start) == UnitKind::Turn.rank()
            && rank(run.units.end - 1) == UnitKind::Turn.rank()
    };
    let bytes = |run: &UnitRun| run.segment.payload_bytes();
    if runs.iter().map(rows).sum::<usize>() <= FEW_ROWS
        && runs.iter().map(bytes).sum::<usize>() <= FEW_BYTES
    {
        let joins = runs.len() > 1 && (runs.len() >= FEW_RUNS || has_all_units(runs));
        return Vec::from_iter(joins.then(|| join(runs, 0..runs.len(), at)));
    }
    // Step 1, the geometric rule of a log-structured merge tree. The newest short runs wait until they are
    // BATCH units together, so three of four commits copy no others. Then every older run that is less than
    // twice as large as what has been collected joins too: after the merge each run is at least twice as
    // large as the next newer one, so there are O(log T) runs, and a row is copied at most once for each
    // doubling of the run it is in.
    let mut merges = Vec::new();
    if let Some(last) = runs.iter().rposition(turns) {
        let older = |first: usize| first.checked_sub(1).filter(|&at| turns(&runs[at]));
        let (mut first, mut units, mut sum) = (last, runs[last].units.len(), rows(&runs[last]));
        while let Some(before) = older(first)
            && runs[first].units.len() < BATCH
            && runs[before].units.len() < BATCH
        {
            first = before;
            units += runs[before].units.len();
            sum += rows(&runs[before]);
        }
        if units >= BATCH {
            while let Some(before) = older(first)
                && rows(&runs[before]) < 2 * sum
            {
                first = before;
                sum += rows(&runs[before]);
            }
            if first < last {
                merges.push(join(runs, first..last + 1, at));
            }
        }
    }
    // Step 2, the bound. Changes inside old turns split runs where the rule above does not look, so the
    // cheapest neighbours are joined until the count is small again. Only turns are joined: the preamble
    // and the head change with most commits, and merging them would copy the turns beside them each time.
    let count: usize = runs.iter().map(|run| run.units.len()).sum();
    while runs.len() > most_pieces(count) {
        let smallest = (1..runs.len())
            .filter(|&at| turns(&runs[at - 1]) && turns(&runs[at]))
            .min_by_key(|&at| rows(&runs[at - 1]) + rows(&runs[at]));
        let Some(second) = smallest else { break };
        merges.push(join(runs, second - 1..second + 1, at));
    }
    merges
}

/// Whether the runs have every unit of their segments.
fn has_all_units(runs: &[UnitRun]) -> bool {
    runs.iter().all(|run| {
        let same = runs
            .iter()
            .filter(|other| Arc::ptr_eq(&other.segment, &run.segment));
        let units: usize = same.map(|other| other.units.len()).sum();
        units == run.segment.units().len()
    })
}

fn join(runs: &mut Vec<UnitRun>, joined: Range<usize>, moment: Moment) -> Merge {
    let at = joined.start;
    let mut parts: Vec<UnitRun> = runs.drain(joined).collect();
    let mut builder = SegmentBuilder::begin();
    let mut attributes = Collector::default();
    let mut dead: Vec<(u32, Moment)> = Vec::new();
    builder.reserve_for_runs(&parts);
    // Dead rows are copied with the rest: units keep their versions, and equal versions must mean equal
    // rows in every segment that has them, so that older snapshots can move here as well.
    for part in &mut parts {
        part.settle(moment);
        let (rows, first) = (part.rows(), builder.len());
        let removed = part.shared_dead(moment);
        dead.extend(removed.map(|(row, died)| (row - rows.start + first, died)));
        let segment = &part.segment;
        builder.add_run(segment, part.units.clone());
        // Attributes of a whole segment are posting lists already; of a part, the records are read.
        if rows == (0..segment.len()) {
            attributes.copy(segment, first);
        } else {
            let places = &segment.payload_at[rows.start as usize..rows.end as usize];
            attributes.read(&segment.payload, places, first);
        }
    }
    let output = Arc::new(builder.finish_merged(attributes));
    let units = 0..output.units().len() as u32;
    let dead = DeadRows::new(dead, output.len());
    let run = UnitRun {
        dead: dead.clone(),
        ..UnitRun::new(Arc::clone(&output), units)
    };
    runs.insert(at, run);
    let inputs = parts.into_iter().map(|run| (run.segment, run.units));
    Merge {
        inputs: inputs.collect(),
        output,
        dead,
    }
}

impl Merge {
    /// Whether older snapshots need not move yet: there are few merges, into segments of so few units that one of the next
    /// commits copies them again.
    pub(crate) fn may_wait(merges: &[Self]) -> bool {
        let is_short = |merge: &Self| merge.output.units().len() < BATCH;
        merges.len() < BATCH && merges.iter().all(is_short)
    }

    fn has(&self, other: &Arc<Segment>) -> bool {
        let mut inputs = self.inputs.iter();
        inputs.any(|(segment, _)| Arc::ptr_eq(segment, other))
    }

    /// A run to which units were added in a new segment.
    pub(super) fn of_tail(tail: UnitRun, output: &Arc<Segment>) -> Self {
        Self {
            inputs: vec![(tail.segment, tail.units)],
            output: Arc::clone(output),
            dead: None,
        }
    }

    /// The units of a settled run in the new segment, if they are all there.
    fn moved(&self, run: &UnitRun, at: Moment) -> Option<SmallVec<[UnitRun; 2]>> {
        let (mut parts, mut first, mut left) = (SmallVec::new(), 0, run.units.len());
        for (segment, units) in &self.inputs {
            let own = run.units.start.max(units.start)..run.units.end.min(units.end);
            if Arc::ptr_eq(&run.segment, segment) && !own.is_empty() {
                left -= own.len();
                let shifted = own.start - units.start + first..own.end - units.start + first;
                parts.push(self.moved_part(run, own, shifted, at));
            }
            first += units.len() as u32;
        }
        (left == 0).then_some(parts)
    }

    /// The units `from` of a run, which the new segment has as `to`.
    fn moved_part(&self, run: &UnitRun, from: Range<u32>, to: Range<u32>, at: Moment) -> UnitRun {
        let mut moved = UnitRun::new(Arc::clone(&self.output), to);
        let part = UnitRun {
            units: from,
            ..run.clone()
        };
        // The newer snapshot mostly knows of the same deaths. Otherwise this one keeps its own.
        let (from, to) = (part.rows(), moved.rows());
        let dead = part.shared_dead(at);
        let dead = dead.map(|(row, died)| (row - from.start + to.start, died));
        moved.dead.clone_from(&self.dead);
        let own = (!dead.clone().eq(moved.shared_dead(at))).then(|| dead.collect());
        if let Some(own) = own {
            moved.dead = DeadRows::new(own, self.output.len());
        }
        moved
    }
}

#[doc(hidden)]
impl Snapshot {
    /// The same snapshot on the merged segments, so that the old ones can be freed; `None` if it has none of them.
    pub fn moved(&self, merges: &[Merge]) -> Option<Self> {
        let is_input = |piece: &SnapshotPiece| {
            let mut merges = merges.iter();
            merges.any(|merge| merge.has(piece.segment()))
        };
        // The pieces before the first that moves stay as they are: mostly all but the newest.
        let first = self.pieces().iter().position(is_input)?;
        let (kept, moving) = self.pieces().split_at(first);
        let moment = moment(self.meta());
        let runs = moving.iter();
        let runs = runs.map(|piece| piece.run(piece.units(), moment));
        let mut runs: FewRuns = runs.collect();
        let mut changed = false;
        // Merges are applied in the order in which they were made: the output of one may be an input of the
        // next. A run moves, in parts, if inputs have all of its units.
        for merge in merges {
            if !runs.iter().any(|run| merge.has(&run.segment)) {
                continue;
            }
            let mut joined = FewRuns::new();
            for mut run in runs {
                run.settle(moment);
                match merge.moved(&run, moment) {
                    Some(parts) => {
                        changed = true;
                        // Neighbouring runs of one segment become one piece.
                        for part in parts {
                            let next = next_run(joined.last_mut(), part, moment);
                            joined.extend(next);
                        }
                    }
                    None => {
                        let next = next_run(joined.last_mut(), run, moment);
                        joined.extend(next);
                    }
                }
            }
            runs = joined;
        }
        changed.then(|| Self::after(kept, self.meta().clone(), runs))
    }
}

/// Runs of a snapshot, of which few move.
type FewRuns = SmallVec<[UnitRun; 8]>;

/// The run that comes after the last one of a snapshot of this moment; `None` if it continues that one, which is extended.
pub(super) fn next_run(last: Option<&mut UnitRun>, run: UnitRun, at: Moment) -> Option<UnitRun> {
    match last {
        Some(last)
            if Arc::ptr_eq(&last.segment, &run.segment) && last.units.end == run.units.start =>
        {
            last.extend(run, at);
            None
        }
        _ => Some(run),
    }
}
