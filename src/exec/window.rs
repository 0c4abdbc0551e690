//! Windows: the row ranges in which a chain can match.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::access::row_holds;
use super::rows::Rows;
use super::stats::Input;
use super::trace::{Counters, Trace};
use crate::index::{NodeRef, Snapshot, UnitKind};
use crate::ir::{DepthSet, TypeTest};
use crate::plan::{BoundChain, BoundStep, BoundTest};

/// Row ranges in document order.
pub(super) type Windows = SmallVec<[Range<u32>; 1]>;

/// Where a chain can match.
pub(super) enum Location {
    /// The result of the chain is known.
    Found(Rows),
    /// In these windows.
    Windows {
        windows: Windows,
        /// Whether the first step is `^seq` and the only window is the rows below it.
        below_seq: bool,
    },
}

/// Locates a chain; inside `chunk`, which is whole units, if one is given. Counts the windows if
/// none is given.
pub(super) fn locate(
    chain: &BoundChain,
    chunk: Option<&Range<u32>>,
    input: Input<'_>,
    trace: &mut Trace,
) -> Location {
    let snapshot = input.snapshot;
    let mut below_seq = false;
    let mut windows: Windows = match by_id(chain, chunk, input, trace) {
        ById::Found(rows) => return Location::Found(rows),
        ById::Unit(unit) => smallvec![unit],
        ById::Anywhere => match &chain.scope {
            Some(depths) if chain.separable => of_depths(snapshot, depths),
            _ => {
                below_seq = is_below_seq(chain);
                let rows = match below_seq {
                    true => snapshot.seq_rows(),
                    false => 0..snapshot.end_row(),
                };
                if rows.is_empty() {
                    return Location::Found(Rows::none());
                }
                smallvec![rows]
            }
        },
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
    Location::Windows { windows, below_seq }
}

/// What the ids that a chain requires decide.
enum ById {
    Found(Rows),
    /// All matches are in this unit.
    Unit(Range<u32>),
    Anywhere,
}

/// Locates a chain by the ids it requires. All of a separable chain but the root and `^seq` is in
/// the unit of such an id's node.
#[inline]
fn by_id(
    chain: &BoundChain,
    chunk: Option<&Range<u32>>,
    input: Input<'_>,
    trace: &mut Trace,
) -> ById {
    let mut location = ById::Anywhere;
    if !chain.separable {
        return location;
    }
    let named = chain
        .filters()
        .filter_map(|filter| Some((filter, filter.id.as_deref()?)));
    for (filter, id) in named {
        let Some(node) = find(id, input, trace) else {
            return ById::Found(Rows::none());
        };
        let row = node.row();
        let is_outside = chunk.is_some_and(|chunk| !chunk.contains(&row));
        if chain.steps.len() == 1 && filter.picks.is_empty() {
            if is_outside {
                return ById::Found(Rows::none());
            }
            trace.counters.probes += 1;
            let tests = &filter.tests;
            let holds = tests.len() == 1 || row_holds(tests, row, input, &mut trace.counters);
            trace.step(0, || u64::from(holds), Some(1));
            return ById::Found(Rows::of(holds.then_some(row)));
        }
        if node.unit_kind() != UnitKind::Preamble {
            if is_outside {
                return ById::Found(Rows::none());
            }
            location = ById::Unit(unit_rows(node));
        }
    }
    location
}

/// The node of an id; counts every piece as pruned if there is none.
#[inline]
fn find<'a>(id: &str, input: Input<'a>, trace: &mut Trace) -> Option<NodeRef<'a>> {
    let node = input.snapshot.find(id);
    if node.is_none() {
        trace.counters.pieces_pruned += input.snapshot.pieces().len() as u64;
    }
    node
}

/// The result of a selector that is an id alone.
#[inline]
pub(super) fn of_id(id: &str, input: Input<'_>, trace: &mut Trace) -> Rows {
    trace.begin_chain(0);
    let row = find(id, input, trace).map(NodeRef::row);
    if row.is_some() {
        trace.counters.probes += 1;
        trace.step(0, || 1, Some(1));
    }
    Rows::of(row)
}

/// The rows of the unit a node belongs to.
fn unit_rows(node: NodeRef<'_>) -> Range<u32> {
    let piece = &node.snapshot().pieces()[node.piece() as usize];
    let segment = piece.segment();
    let rows = segment.unit_rows(segment.unit_of(node.row() - piece.shift()));
    rows.start + piece.shift()..rows.end + piece.shift()
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

/// The windows of a depth set.
pub(super) fn of_depths(snapshot: &Snapshot, depths: &DepthSet) -> Windows {
    let mut windows = Windows::new();
    let mut add = |rows: Range<u32>| {
        if !rows.is_empty() {
            windows.push(rows);
        }
    };
    if depths.contains(-1) {
        add(snapshot.sys_rows());
    }
    for &(low, high) in depths.ranges().iter().rev() {
        add(snapshot.turn_rows(low, high));
    }
    if depths.contains(0) {
        add(snapshot.head_rows());
    }
    windows
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
