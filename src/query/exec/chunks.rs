//! Strategy "chunks": runs chunk by chunk, for the first rows only.
//!
//! A chunk is a row range of whole units. A separable chain finds in each chunk what it finds there
//! in a whole run, so rows come in document order and the run ends when enough are found. Chunks
//! grow: a result that needs all of them costs little more than one whole run.

use std::ops::Range;

use super::chain::matches;
use super::cost::{FIRST_CHUNK, next_chunk};
use super::stats::RunInput;
use super::strategy::Strategy;
use super::tail::ResultTail;
use super::trace::Trace;
use super::window::{extent, unit_rows};
use crate::index::Snapshot;
use crate::query::plan::Bound;
use crate::support::cancel::ensure;

/// Calls `take` with the rows that pass a tail, until it returns false.
pub(super) fn each<'a>(
    bound: &Bound,
    mut tail: ResultTail<'a>,
    input: RunInput<'a>,
    trace: &mut Trace,
    take: &mut dyn FnMut(u32) -> bool,
) {
    let snapshot = input.snapshot;
    trace.strategy(Strategy::Chunks);
    // No group has a match outside of what lies between the first and the last row of any.
    let extents = bound.chains.iter().map(|chain| extent(chain, snapshot));
    let extent = extents
        .filter(|rows| !rows.is_empty())
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
    let Some(extent) = extent else {
        trace.counters.pieces_pruned += snapshot.pieces().len() as u64;
        return;
    };
    let mut wanted = true;
    let (mut start, mut size) = (extent.start, FIRST_CHUNK);
    while start < extent.end && wanted && !tail.is_done() {
        ensure();
        // A chunk ends with a unit, because separable chains are run by whole units.
        let chunk = start..unit_end(snapshot, start.saturating_add(size)).min(extent.end);
        for row in matches(bound, Some(&chunk), input, trace).iter() {
            if tail.admits(|| snapshot.node(row)) {
                wanted = take(row);
            }
            if !wanted || tail.is_done() {
                break;
            }
        }
        start = chunk.end;
        size = next_chunk(size);
    }
    count(&extent, start, snapshot, trace);
}

/// Counts the rows of `extent` before `end` as read, and the others as left.
fn count(extent: &Range<u32>, end: u32, snapshot: &Snapshot, trace: &mut Trace) {
    let counters = &mut trace.counters;
    let read = if extent.start < end {
        snapshot.pieces_in(extent.start..end).len() as u64
    } else {
        0
    };
    counters.rows_seen += u64::from(end - extent.start);
    counters.rows_left += u64::from(extent.end - end);
    counters.pieces_read += read;
    counters.pieces_pruned += snapshot.pieces().len() as u64 - read;
}

/// The end of the unit of a row; between pieces, the start of the next piece.
pub(super) fn unit_end(snapshot: &Snapshot, row: u32) -> u32 {
    let at = snapshot.piece_of(row);
    let piece = &snapshot.pieces()[at];
    // Numbers between two pieces belong to no unit.
    if row >= piece.end() {
        let next = snapshot.pieces().get(at + 1);
        return next.map_or(snapshot.end_row(), |piece| piece.start());
    }
    unit_rows(piece, row).end
}
