//! Running a bound plan over one snapshot: chooses the strategy, runs it, applies order and tail.

use std::ops::Range;

use smallvec::SmallVec;

use super::chain::{Cores, after_first, is_core, matches, matches_and_cores};
use super::choose::{StrategyChoice, choose};
use super::chunks;
use super::inner::inner_rows;
use super::nearest;
use super::order::arrange;
use super::rows::MatchedRows;
use super::stats::RunInput;
use super::strategy::{RunGoal, Strategy};
use super::tail::ResultTail;
use super::trace::Trace;
use super::window::of_id;
use super::word::{WordWindow, run_all, run_one};
use crate::index::Snapshot;
use crate::query::plan::Bound;
use crate::support::cancel::ensure;

/// The result of `bound` over `input`, in result order.
#[inline(always)]
pub fn run(bound: &Bound, input: RunInput<'_>, trace: &mut Trace) -> MatchedRows {
    if bound.inner > 0 {
        return run_with_inner(bound, input, trace);
    }
    let choice = choose(bound, input, RunGoal::Rows);
    match &choice {
        // Here and not below, as a word is passed on in registers.
        StrategyChoice::Word(window) if bound.is_bare => {
            trace.strategy(Strategy::Word);
            let (start, word) = run_one(bound, window.as_ref(), input, trace);
            MatchedRows::Word { start, word }
        }
        choice => chosen(choice, bound, input, trace),
    }
}

#[inline(never)]
fn run_with_inner(bound: &Bound, input: RunInput<'_>, trace: &mut Trace) -> MatchedRows {
    with_inner(bound, None, input, trace, |input, trace| {
        chosen(&choose(bound, input, RunGoal::Rows), bound, input, trace)
    })
}

/// The result by a strategy that was chosen.
#[inline(never)]
fn chosen(
    choice: &StrategyChoice<'_>,
    bound: &Bound,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> MatchedRows {
    match choice {
        StrategyChoice::Chunks => in_chunks(bound, input, trace),
        choice => finished(choice, bound, input, trace),
    }
}

/// Calls `go` with the input in which the conditions with selectors inside are found; in `chunk`, if one is given.
#[inline(always)]
fn with_inner<T>(
    bound: &Bound,
    chunk: Option<&Range<u32>>,
    input: RunInput<'_>,
    trace: &mut Trace,
    go: impl FnOnce(RunInput<'_>, &mut Trace) -> T,
) -> T {
    let found;
    let input = if bound.inner == 0 {
        input
    } else {
        found = inner_rows(bound, chunk, input, trace);
        RunInput {
            inner: &found,
            ..input
        }
    };
    go(input, trace)
}

/// The result by a strategy other than chunks.
fn finished(
    choice: &StrategyChoice<'_>,
    bound: &Bound,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> MatchedRows {
    let is_done = bound.is_bare || choice.finds_result();
    let rows = found(choice, bound, input, trace);
    if is_done {
        rows
    } else {
        finish(bound, input.snapshot, rows)
    }
}

/// The matches in document order, before order and tail; those next to an end as the strategy says.
fn found(
    choice: &StrategyChoice<'_>,
    bound: &Bound,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> MatchedRows {
    trace.strategy(choice.strategy());
    match choice {
        StrategyChoice::Word(window) => {
            let (start, word) = run_one(bound, window.as_ref(), input, trace);
            MatchedRows::Word { start, word }
        }
        StrategyChoice::Words(spans) => run_all(bound, spans, input, trace),
        StrategyChoice::ById(Some(id)) => of_id(id, input, trace),
        StrategyChoice::Nearest(chain, nearest) => {
            let rows = nearest::run(chain, *nearest, input, trace);
            // With more steps, the first one picks one row.
            match rows.iter().next() {
                Some(row) if chain.steps.len() > 1 => {
                    WordWindow::after_first(bound, row, input, trace)
                        .unwrap_or_else(|| after_first(chain, row, input, trace))
                }
                _ => rows,
            }
        }
        StrategyChoice::Count(_)
        | StrategyChoice::ById(None)
        | StrategyChoice::Chunks
        | StrategyChoice::Windows => matches(bound, None, input, trace),
    }
}

#[inline(never)]
fn finish(bound: &Bound, snapshot: &Snapshot, rows: MatchedRows) -> MatchedRows {
    let rows = arrange(bound.order, snapshot, rows);
    if bound.has_tail() {
        ResultTail::new(bound).apply(snapshot, rows)
    } else {
        rows
    }
}

#[inline(never)]
fn in_chunks(bound: &Bound, input: RunInput<'_>, trace: &mut Trace) -> MatchedRows {
    let mut rows = SmallVec::new();
    chunks::each(bound, ResultTail::new(bound), input, trace, &mut |row| {
        rows.push(row);
        true
    });
    MatchedRows::List(rows)
}

/// Calls `take` with the rows of [`run`], one by one, until it returns false. Rows after that one
/// are not read, if the strategy allows it.
pub fn run_while(
    bound: &Bound,
    input: RunInput<'_>,
    trace: &mut Trace,
    take: &mut dyn FnMut(u32) -> bool,
) {
    with_inner(bound, None, input, trace, |input, trace| {
        match choose(bound, input, RunGoal::First) {
            StrategyChoice::Chunks => {
                chunks::each(bound, ResultTail::new(bound), input, trace, take);
            }
            choice => {
                // `all` ends after the row that is refused.
                let _ = finished(&choice, bound, input, trace).iter().all(take);
            }
        }
    });
}

/// The rows of [`run`] and the implicit cores among the matches, each with whether it is one, in result
/// order: where a mutation may put a node.
pub fn run_with_cores(bound: &Bound, input: RunInput<'_>, trace: &mut Trace) -> Vec<(u32, bool)> {
    // The other strategies find no implicit cores.
    trace.strategy(Strategy::Windows);
    let rows = with_inner(bound, None, input, trace, |input, trace| {
        matches_and_cores(bound, None, Cores::Kept, input, trace)
    });
    let rows = finish(bound, input.snapshot, rows);
    rows.iter().map(|row| (row, is_core(row, input))).collect()
}

/// The number of rows of [`run`], without listing them where possible.
pub fn count(bound: &Bound, input: RunInput<'_>, trace: &mut Trace) -> u64 {
    with_inner(bound, None, input, trace, |input, trace| {
        count_with_inner(bound, input, trace)
    })
}

fn count_with_inner(bound: &Bound, input: RunInput<'_>, trace: &mut Trace) -> u64 {
    match choose(bound, input, RunGoal::Count) {
        StrategyChoice::Count(count) => {
            trace.strategy(Strategy::Count);
            trace.counters.postings += input.snapshot.pieces().len() as u64;
            count
        }
        StrategyChoice::Chunks => in_chunks(bound, input, trace).len() as u64,
        choice => {
            let rows = found(&choice, bound, input, trace);
            // A page of a count is arithmetic; `@unique` has to look at the rows.
            let counted = ResultTail::new(bound).count(rows.len() as u64);
            counted.unwrap_or_else(|| finish(bound, input.snapshot, rows).len() as u64)
        }
    }
}

/// The matches in result order, before the tail.
pub fn run_untailed(bound: &Bound, input: RunInput<'_>, trace: &mut Trace) -> MatchedRows {
    let rows = with_inner(bound, None, input, trace, |input, trace| {
        let choice = choose(bound, input, RunGoal::Matches);
        found(&choice, bound, input, trace)
    });
    arrange(bound.order, input.snapshot, rows)
}

/// Calls `take` with the rows of [`run_untailed`], one by one, until it returns false. Where the plan has a page, the
/// rows after that one are not read, if they are found unit by unit.
pub fn run_untailed_while(
    bound: &Bound,
    input: RunInput<'_>,
    trace: &mut Trace,
    take: &mut dyn FnMut(u32) -> bool,
) {
    if bound.page.is_some() && bound.runs_in_chunks() {
        let all = ResultTail::page(0, u64::MAX);
        return with_inner(bound, None, input, trace, |input, trace| {
            chunks::each(bound, all, input, trace, take);
        });
    }
    let _ = run_untailed(bound, input, trace).iter().all(take);
}

/// The matches of [`run_untailed`] in `chunks`, which are whole units, ascending; for plans whose
/// chains are all separable. Costs the rows of the chunks.
pub fn run_in(
    bound: &Bound,
    input: RunInput<'_>,
    chunks: &[Range<u32>],
    trace: &mut Trace,
) -> MatchedRows {
    trace.strategy(Strategy::Chunks);
    let mut rows = SmallVec::new();
    // Chunks are disjoint and ascend, so their rows are in document order when put one after the
    // other.
    for chunk in chunks {
        ensure();
        trace.counters.rows_seen += u64::from(chunk.end - chunk.start);
        let found = with_inner(bound, Some(chunk), input, trace, |input, trace| {
            matches(bound, Some(chunk), input, trace)
        });
        found.for_each(|row| rows.push(row));
    }
    arrange(bound.order, input.snapshot, MatchedRows::List(rows))
}
