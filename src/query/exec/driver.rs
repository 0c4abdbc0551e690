//! Running a bound plan over one snapshot: chooses the strategy, runs it, applies order and tail.

use std::ops::Range;

use smallvec::SmallVec;

use super::chain::{Cores, is_core, matches, matches_and_cores};
use super::choose::{Choice, choose};
use super::chunks;
use super::order::arrange;
use super::rows::Rows;
use super::stats::Input;
use super::strategy::{Strategy, Want};
use super::tail::Tail;
use super::trace::Trace;
use super::window::of_id;
use super::word::{run_all, run_one};
use crate::index::Snapshot;
use crate::query::plan::Bound;
use crate::support::cancel::stopped;

/// The result of `bound` over `input`, in result order.
#[inline]
pub fn run(bound: &Bound, input: Input<'_>, trace: &mut Trace) -> Rows {
    match choose(bound, input, Want::Rows) {
        // Small results first, and without a call: setting one up is most of their cost.
        Choice::ById(Some(id)) if bound.is_bare => {
            trace.strategy(Strategy::ById);
            of_id(id, input, trace)
        }
        Choice::Word(window) if bound.is_bare => {
            trace.strategy(Strategy::Word);
            run_one(bound, window, input, trace)
        }
        choice => run_chosen(choice, bound, input, trace),
    }
}

#[inline(never)]
fn run_chosen(choice: Choice<'_>, bound: &Bound, input: Input<'_>, trace: &mut Trace) -> Rows {
    match choice {
        Choice::Chunks => in_chunks(bound, input, trace),
        choice => {
            let rows = found(choice, bound, input, trace);
            if bound.is_bare {
                rows
            } else {
                finish(bound, input.snapshot, rows)
            }
        }
    }
}

/// The matches in document order, before order and tail.
#[inline]
fn found(choice: Choice<'_>, bound: &Bound, input: Input<'_>, trace: &mut Trace) -> Rows {
    trace.strategy(choice.strategy());
    match choice {
        Choice::Word(window) => run_one(bound, window, input, trace),
        Choice::Words(windows) => run_all(bound, &windows, input, trace),
        Choice::ById(Some(id)) => of_id(id, input, trace),
        Choice::Count(_) | Choice::ById(None) | Choice::Chunks | Choice::Windows => {
            matches(bound, None, input, trace)
        }
    }
}

/// Order and tail, for matches in document order.
fn finish(bound: &Bound, snapshot: &Snapshot, rows: Rows) -> Rows {
    let rows = arrange(bound.order, snapshot, rows);
    if bound.has_tail() {
        Tail::of(bound).apply(snapshot, rows)
    } else {
        rows
    }
}

fn in_chunks(bound: &Bound, input: Input<'_>, trace: &mut Trace) -> Rows {
    let mut rows = SmallVec::new();
    chunks::each(bound, input, trace, &mut |row| {
        rows.push(row);
        true
    });
    Rows::List(rows)
}

/// Calls `take` with the rows of [`run`], one by one, until it returns false. Rows after that one
/// are not read, if the strategy allows it.
pub fn run_while(
    bound: &Bound,
    input: Input<'_>,
    trace: &mut Trace,
    take: &mut dyn FnMut(u32) -> bool,
) {
    match choose(bound, input, Want::First) {
        Choice::Chunks => chunks::each(bound, input, trace, take),
        choice => {
            let rows = found(choice, bound, input, trace);
            // `all` ends after the row that is refused.
            let _ = finish(bound, input.snapshot, rows).iter().all(take);
        }
    }
}

/// The rows of [`run`] and the implicit cores among the matches, each with whether it is one, in result
/// order: where a mutation may put a node.
pub fn run_with_cores(bound: &Bound, input: Input<'_>, trace: &mut Trace) -> Vec<(u32, bool)> {
    // The other strategies find no implicit cores.
    trace.strategy(Strategy::Windows);
    let rows = matches_and_cores(bound, None, Cores::Kept, input, trace);
    let rows = finish(bound, input.snapshot, rows);
    rows.iter().map(|row| (row, is_core(row, input))).collect()
}

/// The number of rows of [`run`], without listing them where possible.
pub fn count(bound: &Bound, input: Input<'_>, trace: &mut Trace) -> u64 {
    match choose(bound, input, Want::Count) {
        Choice::Count(count) => {
            trace.strategy(Strategy::Count);
            trace.counters.postings += input.snapshot.pieces().len() as u64;
            count
        }
        Choice::Chunks => in_chunks(bound, input, trace).len() as u64,
        choice => {
            let rows = found(choice, bound, input, trace);
            // A page of a count is arithmetic; `@unique` has to look at the rows.
            let counted = Tail::of(bound).count(rows.len() as u64);
            counted.unwrap_or_else(|| finish(bound, input.snapshot, rows).len() as u64)
        }
    }
}

/// The matches in result order, before the tail.
pub fn run_untailed(bound: &Bound, input: Input<'_>, trace: &mut Trace) -> Rows {
    let choice = choose(bound, input, Want::Matches);
    arrange(
        bound.order,
        input.snapshot,
        found(choice, bound, input, trace),
    )
}

/// The matches of [`run_untailed`] in `chunks`, which are whole units, ascending; for plans whose
/// chains are all separable. Costs the rows of the chunks.
pub fn run_in(bound: &Bound, input: Input<'_>, chunks: &[Range<u32>], trace: &mut Trace) -> Rows {
    trace.strategy(Strategy::Chunks);
    let mut rows = SmallVec::new();
    // Chunks are disjoint and ascend, so their rows are in document order when put one after the
    // other.
    for chunk in chunks {
        if stopped() {
            break;
        }
        trace.counters.rows_seen += u64::from(chunk.end - chunk.start);
        matches(bound, Some(chunk), input, trace).for_each(|row| rows.push(row));
    }
    arrange(bound.order, input.snapshot, Rows::List(rows))
}
