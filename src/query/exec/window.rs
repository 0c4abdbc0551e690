//! Windows: the row ranges in which a chain can match.

use std::ops::{ControlFlow, Range};

use smallvec::{SmallVec, smallvec};

use super::access::row_holds;
use super::rows::MatchedRows;
use super::stats::RunInput;
use super::trace::{Counters, Trace};
use crate::index::{NodeRef, Snapshot, SnapshotPiece, UnitKind};
use crate::query::ir::{DepthSet, TypeTest};
use crate::query::plan::{BoundChain, BoundStep, BoundTest};

/// Row ranges in document order.
pub(super) type Windows = SmallVec<[Range<u32>; 4]>;

/// The windows in which a chain can match, and whether the first step is `^seq` and the only window
/// is the rows below it. Breaks with the result of the chain if locating it is enough.
///
/// With a chunk, which is whole units, only what is inside it; without one, counts the windows.
pub(super) fn locate(
    chain: &BoundChain,
    chunk: Option<&Range<u32>>,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> ControlFlow<MatchedRows, (Windows, bool)> {
    let snapshot = input.snapshot;
    let mut below_seq = false;
    let mut windows = match (by_id(chain, chunk, input, trace)?, &chain.scope) {
        (Some(unit), _) => smallvec![unit],
        // A chain that is not separable must see the whole tree: a pick in it compares rows that
        // later steps drop.
        (None, Some(depths)) if chain.separable => of_depths(snapshot, depths),
        (None, _) => {
            below_seq = is_below_seq(chain);
            let rows = if below_seq {
                snapshot.seq_rows()
            } else {
                0..snapshot.end_row()
            };
            if rows.is_empty() {
                return ControlFlow::Break(MatchedRows::none());
            }
            smallvec![rows]
        }
    };
    match chunk {
        None => count(&windows, snapshot, &mut trace.counters),
        Some(chunk) => {
            for window in &mut windows {
                window.start = window.start.max(chunk.start);
                window.end = window.end.min(chunk.end);
            }
            windows.retain(|window| window.start < window.end);
        }
    }
    ControlFlow::Continue((windows, below_seq))
}

/// The unit that has all matches, by the ids a chain requires: all of a separable chain but the root
/// and `^seq` is in the unit of such an id's node. Breaks with the result if an id decides it.
#[inline]
fn by_id(
    chain: &BoundChain,
    chunk: Option<&Range<u32>>,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> ControlFlow<MatchedRows, Option<Range<u32>>> {
    let mut unit = None;
    if !chain.separable {
        return ControlFlow::Continue(unit);
    }
    // All matches of a separable chain, but the root and `^seq`, are in the unit of every node that
    // a step names. If the nodes are in different units, the steps find nothing in the one that is
    // read.
    let named = chain
        .filters()
        .filter_map(|filter| Some((filter, filter.id.as_deref()?)));
    for (filter, id) in named {
        let Some(node) = find(id, input, trace) else {
            return ControlFlow::Break(MatchedRows::none());
        };
        let row = node.row();
        let is_outside = chunk.is_some_and(|chunk| !chunk.contains(&row));
        // The node is the only possible match.
        if chain.steps.len() == 1 && filter.picks.is_empty() {
            if is_outside {
                return ControlFlow::Break(MatchedRows::none());
            }
            trace.counters.probes += 1;
            let tests = &filter.tests;
            let holds = tests.len() == 1 || row_holds(tests, row, input, &mut trace.counters);
            trace.step(0, || (u64::from(holds), 1), Some(1));
            return ControlFlow::Break(MatchedRows::from_row(holds.then_some(row)));
        }
        // What is below the root or `^seq` may be in any unit.
        if node.unit_kind() != UnitKind::Preamble {
            if is_outside {
                return ControlFlow::Break(MatchedRows::none());
            }
            let piece = &input.snapshot.pieces()[node.piece() as usize];
            unit = Some(unit_rows(piece, row));
        }
    }
    ControlFlow::Continue(unit)
}

/// The node of an id; counts every piece as pruned if there is none.
#[inline]
fn find<'a>(id: &str, input: RunInput<'a>, trace: &mut Trace) -> Option<NodeRef<'a>> {
    let node = input.snapshot.find(id);
    if node.is_none() {
        trace.counters.pieces_pruned += input.snapshot.pieces().len() as u64;
    }
    node
}

#[inline]
pub(super) fn of_id(id: &str, input: RunInput<'_>, trace: &mut Trace) -> MatchedRows {
    trace.begin_chain(0);
    let row = find(id, input, trace).map(NodeRef::row);
    if row.is_some() {
        trace.counters.probes += 1;
        trace.step(0, || (1, 1), Some(1));
    }
    MatchedRows::from_row(row)
}

pub(super) fn unit_rows(piece: &SnapshotPiece, row: u32) -> Range<u32> {
    unit_of(piece, row).1
}

/// The unit of a row: its kind and its rows.
pub(super) fn unit_of(piece: &SnapshotPiece, row: u32) -> (UnitKind, Range<u32>) {
    let segment = piece.segment();
    let unit = segment.unit_of(row - piece.shift());
    let rows = segment.unit_rows(unit);
    let rows = rows.start + piece.shift()..rows.end + piece.shift();
    (segment.units()[unit as usize].kind, rows)
}

/// Whether all matches, and every group of a pick, are below the `^seq` that starts the chain.
fn is_below_seq(chain: &BoundChain) -> bool {
    let [BoundStep::Filter(seq), BoundStep::Filter(next), ..] = &*chain.steps else {
        return false;
    };
    matches!(&*seq.tests, [BoundTest::Type(TypeTest::Seq)])
        && seq.picks.is_empty()
        && next.picks.is_empty()
}

pub(super) fn of_depths(snapshot: &Snapshot, depths: &DepthSet) -> Windows {
    let windows = intervals(depths).map(|depths| at_depths(snapshot, depths));
    windows.filter(|rows| !rows.is_empty()).collect()
}

/// The intervals of a depth set in document order: that of `^sys`, those of turns, that of `^ah`.
pub(super) fn intervals(depths: &DepthSet) -> impl Iterator<Item = (i64, i64)> + '_ {
    let region = |depth: i64| depths.contains(depth).then_some((depth, depth));
    // Depths count from the newest turn, so the highest come first.
    let turns = depths.ranges().iter().rev();
    let turns = turns.filter(|(_, high)| *high > 0);
    let turns = turns.map(|&(low, high)| (low.max(1), high));
    region(-1).into_iter().chain(turns).chain(region(0))
}

#[inline]
pub(super) fn at_depths(snapshot: &Snapshot, (low, high): (i64, i64)) -> Range<u32> {
    match low {
        1.. => snapshot.turn_rows(low, high),
        0 => snapshot.head_rows(),
        _ => snapshot.sys_rows(),
    }
}

/// The rows from the first match a separable chain can have to the last.
pub(super) fn extent(chain: &BoundChain, snapshot: &Snapshot) -> Range<u32> {
    let Some(depths) = &chain.scope else {
        return 0..snapshot.end_row();
    };
    let windows = of_depths(snapshot, depths);
    match (windows.first(), windows.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => 0..0,
    }
}

/// Counts windows, and the pieces in and outside them.
fn count(windows: &Windows, snapshot: &Snapshot, counters: &mut Counters) {
    let pieces = snapshot.pieces().len() as u64;
    let mut read = 0;
    for window in windows {
        read += match pieces {
            1 => 1,
            _ => snapshot.pieces_in(window.clone()).len() as u64,
        };
        counters.rows_seen += u64::from(window.end - window.start);
    }
    counters.pieces_read += read;
    counters.pieces_pruned += pieces.saturating_sub(read);
}
