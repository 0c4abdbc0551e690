//! Running a bound plan over one snapshot.
//!
//! [`run`] takes a [`Bound`] plan, a snapshot and, for facets, what the session knows beyond it,
//! and gives [`Rows`] in result order. Work goes step by step over windows of rows: each step's
//! matches are a bit set, tests are answered from whichever of a segment's structures is
//! cheapest there, and axes are intervals and levels. Counters are always on; `explain --analyze`
//! is this same code with a [`Trace`] that also counts each step's matches.
//!
//! This room knows plans and indexes. It knows no text and no history.

mod access;
mod axis;
mod chain;
mod chunks;
mod eval;
mod fill;
mod order;
mod pick;
mod rows;
mod trace;
mod word;
mod zone;

pub use chunks::{Inside, answers_by_unit, is_unit_local, run_in};
pub use rows::{RowIter, Rows};
pub use trace::{Counters, StepTrace, Trace};

use std::ops::Range;

use smallvec::SmallVec;

use crate::index::{NodeRef, Snapshot};
use crate::plan::{Bound, BoundStep};

/// What a selector can ask that one snapshot does not know.
pub trait SessionStats {
    /// The cycle of the oldest snapshot of the session that has the id.
    fn first_seen(&self, id: &str) -> Option<i64>;
}

/// SessionStats of a lone snapshot: nothing was seen before it.
#[derive(Clone, Copy, Debug)]
pub struct NoStats;

impl SessionStats for NoStats {
    fn first_seen(&self, _: &str) -> Option<i64> {
        None
    }
}

/// Runs `bound` over `snapshot`: the matches in result order, windowed.
#[must_use]
pub fn run(
    bound: &Bound,
    snapshot: &Snapshot,
    stats: &dyn SessionStats,
    trace: &mut Trace,
) -> Rows {
    if let Some(depths) = bound.interval()
        && let Some((start, word)) = word::run(bound, depths, snapshot, stats, trace)
    {
        return Rows::Word { start, word };
    }
    if bound.window.is_some() && chunks::suits(bound) {
        let mut rows = SmallVec::new();
        chunks::each(bound, snapshot, stats, trace, &mut |row| {
            rows.push(row);
            true
        });
        return Rows::List(rows);
    }
    let rows = matches(bound, None, snapshot, stats, trace);
    let mut rows = order::arrange(bound, snapshot, rows);
    if bound.plan.unique {
        rows = order::unique(snapshot, &rows);
    }
    order::window(bound, rows)
}

/// Hands the rows that [`run`] gives to `take`, one by one, until it answers `false`. Where the
/// order allows it, what lies behind is then never looked at.
pub fn run_while(
    bound: &Bound,
    snapshot: &Snapshot,
    stats: &dyn SessionStats,
    trace: &mut Trace,
    take: &mut dyn FnMut(u32) -> bool,
) {
    if chunks::suits(bound) {
        chunks::each(bound, snapshot, stats, trace, take);
    } else {
        let rows = run(bound, snapshot, stats, trace);
        // The last row asked for is the one refused.
        let _ = rows.iter().all(take);
    }
}

/// The matches in result order, before the window is cut.
#[must_use]
pub fn run_unwindowed(
    bound: &Bound,
    snapshot: &Snapshot,
    stats: &dyn SessionStats,
    trace: &mut Trace,
) -> Rows {
    order::arrange(
        bound,
        snapshot,
        matches(bound, None, snapshot, stats, trace),
    )
}

/// How many matches there are, without listing them.
#[must_use]
pub fn count(bound: &Bound, snapshot: &Snapshot, stats: &dyn SessionStats) -> u64 {
    if let Some(count) = access::count(bound, snapshot) {
        return count;
    }
    if bound.plan.unique || bound.window.is_some() && chunks::suits(bound) {
        return run(bound, snapshot, stats, &mut Trace::off()).len() as u64;
    }
    let all = matches(bound, None, snapshot, stats, &mut Trace::off()).len() as u64;
    match bound.window {
        Some((skip, limit)) => all.saturating_sub(skip).min(limit),
        None => all,
    }
}

/// The answer to a selector that takes no setting up of a run: nothing but an id, or tests along
/// one chain over a handful of rows. `None` for every other selector.
#[inline]
#[must_use]
pub fn at_once(bound: &Bound, snapshot: &Snapshot, stats: &dyn SessionStats) -> Option<Rows> {
    if let Some(depths) = bound.interval() {
        let (start, word) = word::run(bound, depths, snapshot, stats, &mut Trace::off())?;
        return Some(Rows::Word { start, word });
    }
    let id = named(bound)?;
    Some(Rows::of(snapshot.find(id).map(NodeRef::row)))
}

/// The id that is all a selector names.
#[inline]
fn named(bound: &Bound) -> Option<&str> {
    let ([plan], [chain], [], None) = (
        &*bound.plan.chains,
        &*bound.chains,
        &*bound.filters,
        bound.window,
    ) else {
        return None;
    };
    match &*chain.steps {
        [
            BoundStep::Filter {
                tests,
                tail,
                id: Some(id),
                ..
            },
        ] if plan.separable && tests.len() == 1 && tail.is_empty() => Some(id),
        _ => None,
    }
}

/// The matches, in document order; of whole units only those in `block`, if one is given.
fn matches(
    bound: &Bound,
    block: Option<&Range<u32>>,
    snapshot: &Snapshot,
    stats: &dyn SessionStats,
    trace: &mut Trace,
) -> Rows {
    if let ([plan], [chain], []) = (&*bound.plan.chains, &*bound.chains, &*bound.filters) {
        trace.begin_chain(0);
        return chain::run(plan, chain, block, snapshot, stats, trace);
    }
    let mut union = Rows::none();
    for (index, (plan, chain)) in bound.plan.chains.iter().zip(&bound.chains).enumerate() {
        trace.begin_chain(index);
        let rows = chain::run(plan, chain, block, snapshot, stats, trace);
        let whole = 0..snapshot.end_row();
        union = match index {
            0 => rows,
            _ => union.union(rows, block.unwrap_or(&whole)),
        };
    }
    if !bound.filters.is_empty() {
        union = chain::filter(&bound.filters, snapshot, stats, union);
    }
    union
}
