//! Answers block by block, for those who want the first rows only.
//!
//! A block is a run of whole units. A chain whose parts can be run one by one gives in each block
//! what it gives there of the whole, so that rows come out in document order and the run ends
//! when enough are there. Blocks grow, so that an answer that needs them all costs little more
//! than one run.

use std::ops::Range;

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::{Rows, SessionStats, Trace, chain, matches};
use crate::index::{Bits, Snapshot};
use crate::ir::{Attr, Facet};
use crate::plan::{Bound, BoundChain, Predicate, StepOperator, StepPlan, TailPlan};

/// Row numbers in the first block, at least.
const FIRST: u32 = 256;
/// How much larger each next block is.
const GROWTH: u32 = 4;

/// Whether rows come in document order and each unit answers for itself.
pub(super) fn suits(bound: &Bound) -> bool {
    bound.in_document_order()
        && bound.plan.chains.iter().all(|chain| chain.separable)
        // A chain that names an id looks at one unit anyway.
        && !bound.chains.iter().any(BoundChain::names_id)
}

/// Whether all of an answer is [`answers_by_unit`]: there is no row control.
#[must_use]
pub fn is_unit_local(bound: &Bound) -> bool {
    bound.window.is_none() && !bound.plan.unique && answers_by_unit(bound)
}

/// Whether what a unit answers, before any row control, depends on nothing outside of it but the
/// root and `^seq`: no depth, no facet that moves with the snapshot, no pick across units.
#[must_use]
pub fn answers_by_unit(bound: &Bound) -> bool {
    let moves = |test: &Predicate| match test {
        Predicate::Depth(_) => true,
        Predicate::Attr { attr, .. } => {
            matches!(attr, Attr::Facet(Facet::Depth | Facet::Age))
        }
        Predicate::Type(_) => false,
    };
    let plan = &bound.plan;
    let step_moves = |step: &StepPlan| match &step.operator {
        StepOperator::Zone(_) => false,
        StepOperator::Filter(filter) => {
            let behind = filter.tail.iter().any(|tail| match tail {
                TailPlan::Test(test) => moves(test),
                TailPlan::First | TailPlan::Last | TailPlan::Nth(_) => false,
            });
            behind || filter.tests.iter().any(moves)
        }
    };
    !plan.filters.iter().any(moves)
        && plan.chains.iter().all(|chain| {
            chain.separable && chain.scope.is_none() && !chain.steps.iter().any(step_moves)
        })
}

/// Of what [`super::run`] gives, the rows in `blocks`, which are whole units, ascending; for
/// plans that are [`is_unit_local`]. Costs those rows.
#[must_use]
pub fn run_in(
    bound: &Bound,
    snapshot: &Snapshot,
    stats: &dyn SessionStats,
    blocks: &[Range<u32>],
    trace: &mut Trace,
) -> Rows {
    let mut rows = SmallVec::new();
    for block in blocks {
        trace.counters.rows_seen += u64::from(block.end - block.start);
        matches(bound, Some(block), snapshot, stats, trace).for_each(|row| rows.push(row));
    }
    super::order::arrange(bound, snapshot, Rows::List(rows))
}

/// Hands the rows of the result to `take`, uniqueness and window applied, until it refuses one.
pub(super) fn each(
    bound: &Bound,
    snapshot: &Snapshot,
    stats: &dyn SessionStats,
    trace: &mut Trace,
    take: &mut dyn FnMut(u32) -> bool,
) {
    let extent = bound
        .plan
        .chains
        .iter()
        .map(|plan| chain::extent(plan, snapshot))
        .filter(|rows| rows.start < rows.end)
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
    let Some(extent) = extent else {
        trace.counters.pieces_pruned += snapshot.pieces().len() as u64;
        return;
    };
    let (mut skip, mut left) = bound.window.unwrap_or((0, u64::MAX));
    let mut seen: HashSet<(bool, &str)> = HashSet::new();
    let (mut start, mut size) = (extent.start, FIRST);
    while start < extent.end && left > 0 {
        let block = start..unit_end(snapshot, start.saturating_add(size)).min(extent.end);
        let rows = matches(bound, Some(&block), snapshot, stats, trace);
        for row in rows.iter() {
            if bound.plan.unique && !seen.insert(snapshot.node(row).identity()) {
                continue;
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            left -= 1;
            if !take(row) {
                left = 0;
            }
            if left == 0 {
                break;
            }
        }
        start = block.end;
        size = size.saturating_mul(GROWTH);
    }
    count_rows(&extent, start, snapshot, trace);
}

/// Which rows are, or lie inside, a match of a selector; asked of rows that mostly ascend, it is
/// run only as far as it is asked.
pub struct Inside<'a> {
    bound: &'a Bound,
    snapshot: &'a Snapshot,
    stats: &'a dyn SessionStats,
    /// What is known: these rows.
    known: Range<u32>,
    size: u32,
    /// Of the known rows, those inside.
    rows: Bits,
    /// Rows inside the root or `^seq`, which lie in every block.
    ambient: Range<u32>,
}

impl<'a> Inside<'a> {
    /// Nothing is run yet but what the root and `^seq` take.
    #[must_use]
    pub fn new(bound: &'a Bound, snapshot: &'a Snapshot, stats: &'a dyn SessionStats) -> Self {
        let mut inside = Self {
            bound,
            snapshot,
            stats,
            known: 0..0,
            size: FIRST,
            rows: Bits::new(0..0),
            ambient: 0..0,
        };
        if suits(bound) && bound.window.is_none() {
            inside.run(0..unit_end(snapshot, 0));
            let matched = |row: u32| inside.rows.contains(row);
            if matched(0) {
                inside.ambient = 0..snapshot.end_row();
            } else if snapshot.seq_row().is_some_and(matched) {
                inside.ambient = snapshot.seq_rows();
            }
        } else {
            inside.run(0..snapshot.end_row());
        }
        inside
    }

    /// The snapshot it is about.
    #[must_use]
    pub fn snapshot(&self) -> &'a Snapshot {
        self.snapshot
    }

    /// Whether a row is, or lies inside, a match.
    pub fn contains(&mut self, row: u32) -> bool {
        if self.ambient.contains(&row) {
            return true;
        }
        if row < self.known.start {
            self.run(0..self.snapshot.end_row());
        } else if row >= self.known.end {
            let end = unit_end(self.snapshot, row.saturating_add(self.size));
            self.size = self.size.saturating_mul(GROWTH);
            self.run(unit_start(self.snapshot, row)..end);
        }
        self.rows.contains(row)
    }

    fn run(&mut self, block: Range<u32>) {
        let all = 0..self.snapshot.end_row();
        let whole = block == all;
        let mut trace = Trace::off();
        let matched = if whole {
            super::run(self.bound, self.snapshot, self.stats, &mut trace)
        } else {
            matches(
                self.bound,
                Some(&block),
                self.snapshot,
                self.stats,
                &mut trace,
            )
        };
        self.rows = Bits::new(block.clone());
        matched.for_each(|row| {
            self.rows
                .insert_range(row..self.snapshot.end(row).min(block.end));
        });
        self.known = block;
    }
}

/// Counts what was looked at, up to `end`, and what was not.
fn count_rows(extent: &Range<u32>, end: u32, snapshot: &Snapshot, trace: &mut Trace) {
    let counters = &mut trace.counters;
    let read = match extent.start < end {
        true => snapshot.pieces_in(extent.start..end).len() as u64,
        false => 0,
    };
    counters.rows_seen += u64::from(end - extent.start);
    counters.rows_left += u64::from(extent.end - end);
    counters.pieces_read += read;
    counters.pieces_pruned += snapshot.pieces().len() as u64 - read;
}

/// The end of the unit that a row belongs to or, between pieces, the start of the next one.
fn unit_end(snapshot: &Snapshot, row: u32) -> u32 {
    let at = snapshot.piece_of(row);
    let piece = &snapshot.pieces()[at];
    if row >= piece.end() {
        let next = snapshot.pieces().get(at + 1);
        return next.map_or(snapshot.end_row(), |piece| piece.base);
    }
    let unit = piece.segment.unit_of(row - piece.shift());
    piece.segment.unit_rows(unit).end + piece.shift()
}

/// The start of the unit that a row belongs to.
fn unit_start(snapshot: &Snapshot, row: u32) -> u32 {
    let piece = &snapshot.pieces()[snapshot.piece_of(row)];
    let unit = piece.segment.unit_of(row - piece.shift());
    piece.segment.unit_rows(unit).start + piece.shift()
}
