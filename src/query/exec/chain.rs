//! Strategy "windows": the steps of a chain from left to right, as bit sets over windows.

use std::ops::{ControlFlow, Range};

use smallvec::{SmallVec, smallvec};

use super::access::row_holds;
use super::axis::{NodeSet, below_seq, reach};
use super::eval::core_holds;
use super::fill::{CoreRows, fill_cores, fill_tests};
use super::pick::{PickedMember, pick, pick_groups};
use super::rows::MatchedRows;
use super::scan::remove_cores;
use super::stats::RunInput;
use super::trace::Trace;
use super::window::{locate, of_depths, unit_rows};
use super::zone::Zones;
use crate::index::{Bits, UnitKind};
use crate::query::ir::{Axis, DepthSet, TypeTest, Zone};
use crate::query::plan::{
    Bound, BoundChain, BoundFilter, BoundPick, BoundStep, BoundTest, RootOrSeq,
};

/// Whether implicit cores are among the matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cores {
    /// They are in no answer (LANGUAGE §1).
    Dropped,
    /// A mutation may put a node into one.
    Kept,
}

/// The matches of a plan in document order, before order and tail; only those in `chunk`, which
/// is whole units, if one is given. A chunk takes separable chains.
pub(super) fn matches(
    bound: &Bound,
    chunk: Option<&Range<u32>>,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> MatchedRows {
    matches_and_cores(bound, chunk, Cores::Dropped, input, trace)
}

pub(super) fn matches_and_cores(
    bound: &Bound,
    chunk: Option<&Range<u32>>,
    cores: Cores,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> MatchedRows {
    // A single group, as most plans have, is not copied.
    let mut union = MatchedRows::none();
    let whole = 0..input.snapshot.end_row();
    for (index, chain) in bound.chains.iter().enumerate() {
        trace.begin_chain(index);
        let rows = run(chain, chunk, cores, input, trace);
        union = match index {
            0 => rows,
            _ => union.union(rows, chunk.unwrap_or(&whole)),
        };
    }
    if bound.filters.is_empty() {
        return union;
    }
    let counters = &mut trace.counters;
    let rows = union.iter();
    MatchedRows::List(
        rows.filter(|&row| {
            if cores == Cores::Kept && is_core(row, input) {
                core_row_holds(&bound.filters, row, input)
            } else {
                row_holds(&bound.filters, row, input, counters)
            }
        })
        .collect(),
    )
}

pub(super) fn is_core(row: u32, input: RunInput<'_>) -> bool {
    let piece = &input.snapshot.pieces()[input.snapshot.piece_of(row)];
    piece.segment().is_core(row - piece.shift())
}

fn core_row_holds(tests: &[BoundTest], row: u32, input: RunInput<'_>) -> bool {
    let depth = input.snapshot.depth(row);
    tests.iter().all(|test| match test {
        BoundTest::Depth(depths) => depth.is_some_and(|depth| depths.contains(depth)),
        test => core_holds(test),
    })
}

fn run(
    chain: &BoundChain,
    chunk: Option<&Range<u32>>,
    cores: Cores,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> MatchedRows {
    let (windows, below_seq) = match locate(chain, chunk, input, trace) {
        ControlFlow::Break(rows) => return rows,
        ControlFlow::Continue(located) => located,
    };
    let mut bits = SmallVec::with_capacity(windows.len());
    for window in windows {
        let run = StepRun { window, input };
        let left = if below_seq {
            // The window is what is below `^seq`, so the first step has found its one node already.
            trace.step(0, || (1, 0), Some(1));
            LeftContext::Nodes(NodeSet {
                bits: Bits::new(run.window.start..run.window.start),
                root: false,
                seq: true,
            })
        } else {
            LeftContext::Start
        };
        bits.push(run.steps(chain, usize::from(below_seq), left, cores, trace));
    }
    MatchedRows::Bits(bits)
}

/// What the steps after the first find, given the row that the first one keeps: all of it is in the unit of that row.
pub(super) fn after_first(
    chain: &BoundChain,
    row: u32,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> MatchedRows {
    let window = unit_rows(&input.snapshot.pieces()[input.snapshot.piece_of(row)], row);
    let left = LeftContext::of_row(row, window.clone());
    let run = StepRun { window, input };
    let found = run.steps(chain, 1, left, Cores::Dropped, trace);
    MatchedRows::Bits(smallvec![found])
}

pub(super) enum LeftContext {
    /// The first step: everything, the root included.
    Start,
    Nodes(NodeSet),
    Zones(Zones),
}

impl LeftContext {
    /// One row, in a window that has it.
    pub(super) fn of_row(row: u32, window: Range<u32>) -> Self {
        let mut bits = Bits::new(window);
        bits.insert(row);
        Self::Nodes(NodeSet {
            bits,
            root: false,
            seq: false,
        })
    }
}

#[derive(Clone, Copy)]
struct Join<'a> {
    left: &'a LeftContext,
    axis: Axis,
    /// The level of the left context's nodes, if the chain decides it.
    level: Option<u32>,
}

/// Runs steps over one window.
pub(super) struct StepRun<'a> {
    pub(super) window: Range<u32>,
    pub(super) input: RunInput<'a>,
}

/// The matches of one group over the whole snapshot, in document order, without implicit cores.
pub(super) fn matches_of_chain(
    chain: &BoundChain,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> MatchedRows {
    run(chain, None, Cores::Dropped, input, trace)
}

impl StepRun<'_> {
    /// The rows of the window on which all tests hold, and the implicit cores of `cores`.
    pub(super) fn holding(&self, tests: &[BoundTest], cores: CoreRows, trace: &mut Trace) -> Bits {
        let (window, input) = (self.window.clone(), self.input);
        let mut bits = fill_tests(tests, cores, window, input, &mut trace.counters);
        self.keep_places(&mut bits, tests);
        bits
    }

    /// The implicit cores of the window that a step with these tests keeps.
    pub(super) fn named_cores(&self, tests: &[BoundTest]) -> Bits {
        let mut bits = Bits::new(self.window.clone());
        let window = self.window.clone();
        fill_cores(tests, CoreRows::Named, &mut bits, window, self.input);
        self.keep_places(&mut bits, tests);
        bits
    }

    /// Keeps the rows with the depths and at the places of the tests: they are not in the lists of a segment, so row
    /// ranges cut them out of what was found.
    fn keep_places(&self, bits: &mut Bits, tests: &[BoundTest]) {
        for test in tests {
            match test {
                BoundTest::Depth(depths) => self.keep_depths(bits, depths),
                BoundTest::Type(TypeTest::Anchor) => self.keep_anchors(bits),
                BoundTest::Type(_) | BoundTest::Attr(_) | BoundTest::Inner(_) => {}
            }
        }
    }

    /// Runs the steps from `first` on.
    pub(super) fn steps(
        &self,
        chain: &BoundChain,
        first: usize,
        mut left: LeftContext,
        result: Cores,
        trace: &mut Trace,
    ) -> Bits {
        let mut level = None;
        let mut cores = false;
        for (index, step) in chain.steps.iter().enumerate().skip(first) {
            match step {
                BoundStep::Filter(filter) => {
                    let join = Join {
                        left: &left,
                        axis: filter.axis,
                        level,
                    };
                    let mut nodes = self.filter(join, filter, trace);
                    if !filter.picks.is_empty() {
                        self.pick(&mut nodes, join, filter, trace);
                    }
                    trace.step(index, || (nodes.count(), self.pieces()), None);
                    // Later steps and picks have nothing to start from.
                    if nodes.is_empty() {
                        return nodes.bits;
                    }
                    level = filter.level;
                    cores = filter.cores;
                    left = LeftContext::Nodes(nodes);
                }
                BoundStep::Zone { axis, zone } => {
                    let zones = self.zones(left, *axis, *zone);
                    trace.step(index, || (zones.members.count(), self.pieces()), None);
                    if zones.members.is_empty() {
                        return Bits::new(self.window.clone());
                    }
                    // Members of a zone may be on any level, and none of them is an implicit core.
                    level = None;
                    cores = false;
                    left = LeftContext::Zones(zones);
                }
            }
        }
        let mut bits = match left {
            LeftContext::Start => Bits::new(self.window.clone()),
            LeftContext::Nodes(nodes) => nodes.bits,
            LeftContext::Zones(zones) => zones.members.bits,
        };
        if cores && result == Cores::Dropped {
            // Implicit cores are in no answer (LANGUAGE §1).
            for piece in self.input.snapshot.pieces_in(self.window.clone()) {
                remove_cores(piece, &mut bits);
            }
        }
        bits
    }

    /// The number of pieces in the window.
    fn pieces(&self) -> usize {
        self.input.snapshot.pieces_in(self.window.clone()).len()
    }

    fn zones(&self, left: LeftContext, axis: Axis, zone: Zone) -> Zones {
        let (window, input) = (&self.window, self.input);
        match left {
            LeftContext::Start => Zones::of_nodes(None, axis, zone, window, input),
            LeftContext::Nodes(nodes) => Zones::of_nodes(Some(nodes), axis, zone, window, input),
            LeftContext::Zones(zones) => zones.nested(axis, zone, window, input),
        }
    }

    fn filter(&self, join: Join<'_>, filter: &BoundFilter, trace: &mut Trace) -> NodeSet {
        let (window, input, tests) = (&self.window, self.input, &filter.tests);
        let cores = if filter.cores {
            CoreRows::Named
        } else {
            CoreRows::None
        };
        let mut bits = self.holding(tests, cores, trace);
        let counters = &mut trace.counters;
        // The root and `^seq` are tested apart if they are before the window.
        let (root_reached, seq_reached) = match join.left {
            LeftContext::Start => (true, true),
            LeftContext::Nodes(nodes) => (false, nodes.root),
            LeftContext::Zones(zones) => zones.reaches_ambient(join.axis),
        };
        let mut ambient = |reached: bool, only: RootOrSeq, row: Option<u32>| {
            window.start > 0
                && reached
                && (filter.ambient == only || filter.ambient == RootOrSeq::Maybe)
                && row.is_some_and(|row| row_holds(tests, row, input, counters))
        };
        let root = ambient(root_reached, RootOrSeq::Root, Some(0));
        let seq = ambient(seq_reached, RootOrSeq::Seq, input.snapshot.seq_row());
        // The axis narrows last: what tests and depths left is intersected with what the left
        // context reaches.
        match join.left {
            LeftContext::Start => {}
            LeftContext::Zones(zones) => bits.and(&zones.reach(join.axis, window, input)),
            LeftContext::Nodes(nodes) => {
                let Join { axis, level, .. } = join;
                if let Some(reach) = reach(nodes, axis, level, window.clone(), input) {
                    bits.and(&reach);
                }
            }
        }
        NodeSet { bits, root, seq }
    }

    fn pick(&self, nodes: &mut NodeSet, join: Join<'_>, filter: &BoundFilter, trace: &mut Trace) {
        let (bits, input, by_key) = (&mut nodes.bits, self.input, filter.key_order);
        // From left to right: a test after a pick sees what was picked, and a pick after a test
        // what is left (LANGUAGE §4).
        for pick_or_test in &filter.picks {
            let which = match pick_or_test {
                BoundPick::First => PickedMember::First,
                BoundPick::Last => PickedMember::Last,
                BoundPick::Nth(n) => PickedMember::Nth(*n),
                BoundPick::Test(test) => {
                    self.keep(bits, test, trace);
                    continue;
                }
            };
            match join.left {
                LeftContext::Start => pick(bits, None, None, which, by_key, input),
                LeftContext::Nodes(left) => {
                    pick(bits, Some(left), join.level, which, by_key, input)
                }
                LeftContext::Zones(zones) => {
                    let groups = zones.groups(bits, join.axis, input);
                    *bits = pick_groups(groups, bits, which, by_key, input);
                }
            }
        }
    }

    fn keep(&self, bits: &mut Bits, test: &BoundTest, trace: &mut Trace) {
        if let BoundTest::Depth(depths) = test {
            return self.keep_depths(bits, depths);
        }
        let tests = std::slice::from_ref(test);
        let window = self.window.clone();
        bits.and(&fill_tests(
            tests,
            CoreRows::All,
            window,
            self.input,
            &mut trace.counters,
        ));
        if let BoundTest::Type(TypeTest::Anchor) = test {
            self.keep_anchors(bits);
        }
    }

    /// Keeps rows whose depth is in the set. Loose units between turns have no depth.
    fn keep_depths(&self, bits: &mut Bits, depths: &DepthSet) {
        let snapshot = self.input.snapshot;
        let mut keep = bits.cleared();
        for window in of_depths(snapshot, depths) {
            keep.insert_range(window);
        }
        for piece in snapshot.pieces_in(self.window.clone()) {
            let segment = piece.segment();
            if !segment.has_loose_units() {
                continue;
            }
            let is_loose = |unit: &u32| segment.units()[*unit as usize].kind == UnitKind::Loose;
            for unit in piece.units().filter(is_loose) {
                for row in segment.unit_rows(unit) {
                    keep.remove(row + piece.shift());
                }
            }
        }
        bits.and(&keep);
    }

    /// Keeps `^sys`, `^ah` and the turns directly under `^seq`.
    fn keep_anchors(&self, bits: &mut Bits) {
        let snapshot = self.input.snapshot;
        // A region is the first row of its range.
        let mut keep = below_seq(bits, &self.window, self.input);
        for region in [snapshot.sys_rows(), snapshot.head_rows()] {
            if !region.is_empty() {
                keep.insert(region.start);
            }
        }
        bits.and(&keep);
    }
}
