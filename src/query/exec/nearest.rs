//! One step over rows: word by word, from either end, until enough is found.
//!
//! `:last`, `:nth`, `@first`, `@limit` and the newest of a key want a few rows of all that match. A first step has no
//! axis, so a word of 64 rows is tested without the others. Strategy "chunks", of one word each.

use std::ops::Range;

use super::fill::{PieceTests, piece_word};
use super::order::key_order;
use super::rows::{MatchedRows, RowList};
use super::stats::RunInput;
use super::trace::{Counters, Trace};
use super::window::{Windows, of_depths, unit_rows};
use crate::index::{Ones, Snapshot};
use crate::query::plan::{BoundChain, NearestEnd, NearestRows};

/// Whether document order decides what is nearest in this snapshot. Loose units have no depth, although they are
/// between turns, and other children of the root come last without being the newest.
pub(super) fn fits(chain: &BoundChain, nearest: NearestRows, snapshot: &Snapshot) -> bool {
    nearest.from != NearestEnd::Newest && chain.scope.is_none() || snapshot.all_have_depths()
}

/// The rows next to an end, in result order.
pub(super) fn run(
    chain: &BoundChain,
    mut nearest: NearestRows,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> MatchedRows {
    trace.begin_chain(0);
    let snapshot = input.snapshot;
    let mut windows: Windows = match &chain.scope {
        Some(depths) => of_depths(snapshot, depths),
        None => Windows::from_elem(0..snapshot.end_row(), 1),
    };
    let backward = nearest.from != NearestEnd::First;
    if backward {
        windows.reverse();
    }
    let mut found: RowList = RowList::new();
    // Of the newest, all of the last unit is wanted, as nodes of one depth are compared with each other.
    let wanted = nearest.skip.saturating_add(nearest.take);
    let mut enough = None;
    let mut take = |start: u32, mut word: u64| {
        if nearest.from == NearestEnd::Newest {
            return take_newest(word, start, wanted, snapshot, &mut found, &mut enough);
        }
        while word != 0 && nearest.take > 0 {
            let bit = if backward {
                63 - word.leading_zeros()
            } else {
                word.trailing_zeros()
            };
            word &= !(1 << bit);
            if nearest.skip > 0 {
                nearest.skip -= 1;
            } else {
                nearest.take -= 1;
                found.push(start + bit);
            }
        }
        nearest.take > 0
    };
    let counters = &mut trace.counters;
    let before = counters.pieces_read;
    let all: u64 = windows.iter().map(|window| window.len() as u64).sum();
    let mut seen = 0;
    for window in windows {
        let (stopped, pieces) = scan(chain, window.clone(), backward, input, counters, &mut take);
        let read = match stopped {
            Some(word) if backward => word.max(window.start)..window.end,
            Some(word) => window.start..window.end.min(word + 64),
            None => window,
        };
        seen += read.len() as u64;
        counters.pieces_read += pieces as u64;
        if stopped.is_some() {
            break;
        }
    }
    let pieces = snapshot.pieces().len() as u64;
    let read = counters.pieces_read - before;
    counters.rows_seen += seen;
    counters.rows_left += all - seen;
    counters.pieces_pruned += pieces.saturating_sub(counters.pieces_read);
    if nearest.from == NearestEnd::Newest {
        keep_newest(&mut found, nearest, snapshot);
    }
    trace.step(0, || (found.len() as u64, read as usize), None);
    match *found {
        [] | [_] => MatchedRows::from_row(found.first().copied()),
        _ => MatchedRows::List(found),
    }
}

/// Takes the rows of a word from its end, down to the unit that has the last of those that are `wanted`: `enough` is its
/// first row, as soon as it is known. Returns whether words before this one may have more.
fn take_newest(
    word: u64,
    start: u32,
    wanted: u64,
    snapshot: &Snapshot,
    found: &mut RowList,
    enough: &mut Option<u32>,
) -> bool {
    for bit in Ones(word.reverse_bits()) {
        let row = start + 63 - bit;
        if enough.is_some_and(|unit| row < unit) {
            return false;
        }
        found.push(row);
        if enough.is_none() && found.len() as u64 >= wanted {
            *enough = Some(unit_start(snapshot, row));
        }
    }
    enough.is_none_or(|unit| unit < start)
}

/// Puts rows into key order, and keeps those that are wanted.
fn keep_newest(found: &mut RowList, nearest: NearestRows, snapshot: &Snapshot) {
    let node = |row: u32| snapshot.node(row);
    if found.len() > 1 {
        found.sort_by(|&a, &b| key_order(node(a), node(b)));
    }
    let skipped = nearest.skip.min(found.len() as u64) as usize;
    found.drain(..skipped);
    found.truncate(usize::try_from(nearest.take).unwrap_or(usize::MAX));
}

/// Calls `visit` with the words of `window` that have rows which the only step of a chain keeps: the first row of a
/// word, a multiple of 64, and one bit a row; until it returns false. Returns where it stopped, and how many pieces it
/// went through. Depths are left to windows.
fn scan(
    chain: &BoundChain,
    window: Range<u32>,
    backward: bool,
    input: RunInput<'_>,
    counters: &mut Counters,
    visit: &mut impl FnMut(u32, u64) -> bool,
) -> (Option<u32>, usize) {
    let Some(step) = chain.filters().next() else {
        return (None, 0);
    };
    let pieces = input.snapshot.pieces_in(window.clone());
    for at in 0..pieces.len() {
        let piece = &pieces[if backward { pieces.len() - 1 - at } else { at }];
        let (start, end) = (window.start.max(piece.start()), window.end.min(piece.end()));
        let shift = piece.shift();
        if start >= end {
            continue;
        }
        let mut rows = start - shift..end - shift;
        // Testing one word costs less than looking up what the tests read in a segment, and mostly finds enough.
        let index = if backward {
            (rows.end - 1) / 64
        } else {
            rows.start / 64
        };
        let own = rows.start.max(index * 64)..rows.end.min(index * 64 + 64);
        if backward {
            rows.end = own.start;
        } else {
            rows.start = own.end;
        }
        let word = piece_word(&step.tests, piece, own, input, counters);
        if word != 0 && !visit(index * 64 + shift, word) {
            return (Some(index * 64 + shift), at + 1);
        }
        if rows.is_empty() {
            continue;
        }
        let Some(tests) = PieceTests::new(&step.tests, piece, input, counters) else {
            continue;
        };
        if let Some(index) = tests.scan(rows, backward, input, counters, visit) {
            return (Some(index * 64 + shift), at + 1);
        }
    }
    (None, pieces.len())
}

/// The first row of the unit of a row.
fn unit_start(snapshot: &Snapshot, row: u32) -> u32 {
    unit_rows(&snapshot.pieces()[snapshot.piece_of(row)], row).start
}
