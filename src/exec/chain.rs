//! Chains: steps from left to right over windows of rows.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::access::{Scope, row_holds};
use super::axis::{Nodes, fill_level, narrow_by_level, reach};
use super::fill::fill_tests;
use super::pick::{Which, pick, pick_groups};
use super::word::WordRun;
use super::zone::Zones;
use super::{Counters, Rows, SessionStats, Trace};
use crate::index::{Bits, Snapshot, UnitKind};
use crate::ir::{Axis, DepthSet, TypeTest};
use crate::plan::{
    Ambient, BoundChain, BoundStep, BoundTail, BoundTest, ChainPlan, FilterPlan, StepOperator,
};

/// The left context of a step.
enum Left {
    /// The first step: anywhere, the root included.
    Start,
    /// Nodes.
    Nodes(Nodes),
    /// Zones.
    Zones(Zones),
}

/// Runs one chain: its matches, in document order; of whole units only those in `block`, if one
/// is given, which takes a separable chain.
pub(super) fn run(
    plan: &ChainPlan,
    chain: &BoundChain,
    block: Option<&Range<u32>>,
    snapshot: &Snapshot,
    stats: &dyn SessionStats,
    trace: &mut Trace,
) -> Rows {
    let scope = Scope { snapshot, stats };
    let mut named = None;
    if plan.separable {
        // A step that names an id has at most one match, and all of the chain but the root and
        // `^seq` lies in that node's unit.
        for step in &chain.steps {
            if let BoundStep::Filter { id: Some(id), .. } = step {
                let Some(node) = snapshot.find(id) else {
                    trace.counters.pieces_pruned += snapshot.pieces().len() as u64;
                    return Rows::none();
                };
                let outside = |block: &Range<u32>| !block.contains(&node.row());
                if block.is_some_and(outside) && node.unit_kind() != UnitKind::Preamble {
                    return Rows::none();
                }
                if let [BoundStep::Filter { tests, tail, .. }] = &*chain.steps
                    && tail.is_empty()
                {
                    if block.is_some_and(outside) {
                        return Rows::none();
                    }
                    trace.counters.probes += 1;
                    let holds = tests.len() == 1
                        || row_holds(tests, node.row(), scope, &mut trace.counters);
                    trace.step(0, || u64::from(holds), Some(1));
                    return Rows::List(if holds {
                        smallvec![node.row()]
                    } else {
                        smallvec![]
                    });
                }
                if node.unit_kind() != UnitKind::Preamble {
                    named = Some(unit_rows(snapshot, node.row()));
                }
            }
        }
    }
    let mut below_seq = below_seq(chain);
    let mut windows: Windows = match (&plan.scope, named) {
        (_, Some(unit)) => {
            below_seq = false;
            smallvec![(unit, None)]
        }
        (Some(depths), None) if plan.separable => {
            below_seq = false;
            windows(snapshot, depths)
        }
        _ if below_seq => {
            let rows = snapshot.seq_rows();
            if rows.start >= rows.end {
                return Rows::none();
            }
            smallvec![(rows, None)]
        }
        _ => smallvec![(0..snapshot.end_row(), None)],
    };
    match block {
        None => count_windows(&windows, snapshot, &mut trace.counters),
        Some(block) => {
            for (window, _) in &mut windows {
                window.start = window.start.max(block.start);
                window.end = window.end.min(block.end);
            }
            windows.retain(|(window, _)| window.start < window.end);
        }
    }
    let small = |window: &Range<u32>, depths: Option<(i64, i64)>, trace: &mut Trace| {
        WordRun::new(window, depths?, scope)?.run(plan, chain, trace)
    };
    let large = |window: &Range<u32>, trace: &mut Trace| {
        let window = Window {
            plan,
            chain,
            scope,
            window: window.clone(),
            below_seq,
        };
        window.run(trace)
    };
    if let [(window, depths)] = windows.as_slice() {
        return match small(window, *depths, trace) {
            Some(word) => Rows::Word {
                start: window.start,
                word,
            },
            None => Rows::Bits(vec![large(window, trace)]),
        };
    }
    let matches = windows
        .iter()
        .map(|(window, depths)| match small(window, *depths, trace) {
            Some(word) => Bits::from_word(window.start, word),
            None => large(window, trace),
        });
    Rows::Bits(matches.collect())
}

/// Counts what is looked at and what is not.
fn count_windows(windows: &Windows, snapshot: &Snapshot, counters: &mut Counters) {
    let pieces = snapshot.pieces().len() as u64;
    let mut read = 0;
    for (window, _) in windows {
        read += if pieces == 1 {
            1
        } else {
            snapshot.pieces_in(window.clone()).len() as u64
        };
        counters.rows_seen += u64::from(window.end - window.start);
    }
    counters.pieces_read += read;
    counters.pieces_pruned += pieces.saturating_sub(read);
}

/// Whether all a chain can match, and every group of its picks, lies below the `^seq` it starts
/// with.
fn below_seq(chain: &BoundChain) -> bool {
    let [
        BoundStep::Filter { tests, tail, .. },
        BoundStep::Filter { tail: next, .. },
        ..,
    ] = &*chain.steps
    else {
        return false;
    };
    matches!(&**tests, [BoundTest::Type(TypeTest::Seq)]) && tail.is_empty() && next.is_empty()
}

/// Rows to look at, with the interval of depths they were made from.
type Windows = SmallVec<[(Range<u32>, Option<(i64, i64)>); 1]>;

/// Keeps the rows that satisfy the tests of the final set.
pub(super) fn filter(
    tests: &[BoundTest],
    snapshot: &Snapshot,
    stats: &dyn SessionStats,
    rows: Rows,
) -> Rows {
    let scope = Scope { snapshot, stats };
    let mut counters = super::Counters::default();
    Rows::List(
        rows.iter()
            .filter(|&row| row_holds(tests, row, scope, &mut counters))
            .collect(),
    )
}

/// The rows of the unit a row belongs to.
fn unit_rows(snapshot: &Snapshot, row: u32) -> Range<u32> {
    let piece = &snapshot.pieces()[snapshot.piece_of(row)];
    let rows = piece
        .segment
        .unit_rows(piece.segment.unit_of(row - piece.shift()));
    rows.start + piece.shift()..rows.end + piece.shift()
}

/// Where a separable chain's matches can lie.
pub(super) fn extent(plan: &ChainPlan, snapshot: &Snapshot) -> Range<u32> {
    let Some(depths) = &plan.scope else {
        return 0..snapshot.end_row();
    };
    let windows = windows(snapshot, depths);
    match (windows.first(), windows.last()) {
        (Some((first, _)), Some((last, _))) => first.start..last.end,
        _ => 0..0,
    }
}

/// The windows of a depth set, in document order.
fn windows(snapshot: &Snapshot, depths: &DepthSet) -> Windows {
    let mut windows: Windows = SmallVec::new();
    let mut add = |rows: Range<u32>, depths| {
        if rows.start < rows.end {
            windows.push((rows, Some(depths)));
        }
    };
    if depths.contains(-1) {
        add(snapshot.sys_rows(), (-1, -1));
    }
    for &(low, high) in depths.ranges().iter().rev() {
        add(snapshot.turn_rows(low, high), (low.max(1), high));
    }
    if depths.contains(0) {
        add(snapshot.head_rows(), (0, 0));
    }
    windows
}

/// How a step hangs from its left context.
#[derive(Clone, Copy)]
struct Join {
    axis: Axis,
    /// The level of the left context's nodes, where the plan tells.
    level: Option<u32>,
}

/// One chain over one window.
struct Window<'a> {
    plan: &'a ChainPlan,
    chain: &'a BoundChain,
    scope: Scope<'a>,
    window: Range<u32>,
    /// Whether the first step is `^seq` and the window is what lies below it.
    below_seq: bool,
}

impl Window<'_> {
    fn run(&self, trace: &mut Trace) -> Bits {
        let mut left = Left::Start;
        let mut level = None;
        let mut cores = false;
        let steps = self.plan.steps.iter().zip(&self.chain.steps);
        let mut steps = steps.enumerate();
        if self.below_seq {
            steps.next();
            trace.step(0, || 1, Some(1));
            left = Left::Nodes(Nodes {
                bits: Bits::new(self.window.start..self.window.start),
                root: false,
                seq: true,
            });
        }
        for (index, (plan, step)) in steps {
            match (&plan.operator, step) {
                (
                    StepOperator::Filter(filter),
                    BoundStep::Filter {
                        axis,
                        tests,
                        tail,
                        key_order,
                        ..
                    },
                ) => {
                    let join = Join { axis: *axis, level };
                    let mut nodes = self.filter(&left, join, filter, tests, trace);
                    if !tail.is_empty() {
                        self.tail(&mut nodes, &left, join, tail, *key_order, trace);
                    }
                    trace.step(index, || nodes.count(), None);
                    if nodes.is_empty() {
                        return nodes.bits;
                    }
                    level = filter.level;
                    cores = filter.cores;
                    left = Left::Nodes(nodes);
                }
                (_, BoundStep::Zone { axis, zone }) => {
                    let zones = match left {
                        Left::Start => {
                            Zones::of_nodes(None, *axis, *zone, &self.window, self.scope)
                        }
                        Left::Nodes(nodes) => {
                            Zones::of_nodes(Some(nodes), *axis, *zone, &self.window, self.scope)
                        }
                        Left::Zones(zones) => zones.nested(*axis, *zone, &self.window, self.scope),
                    };
                    if zones.is_empty() {
                        return Bits::new(self.window.clone());
                    }
                    level = None;
                    cores = false;
                    left = Left::Zones(zones);
                }
                // A bound chain has the operators of its plan.
                (StepOperator::Zone(_), BoundStep::Filter { .. }) => {}
            }
        }
        let mut bits = match left {
            Left::Start => Bits::new(self.window.clone()),
            Left::Nodes(nodes) => nodes.bits,
            Left::Zones(zones) => zones.into_members().bits,
        };
        if cores {
            self.drop_cores(&mut bits);
        }
        bits
    }

    /// The nodes of the left context's reach that satisfy the tests.
    fn filter(
        &self,
        left: &Left,
        join: Join,
        filter: &FilterPlan,
        tests: &[BoundTest],
        trace: &mut Trace,
    ) -> Nodes {
        let counters = &mut trace.counters;
        let mut bits = fill_tests(
            tests,
            filter.cores,
            self.window.clone(),
            self.scope,
            counters,
        );
        for test in tests {
            match test {
                BoundTest::Depth(depths) => self.keep_depths(&mut bits, depths),
                BoundTest::Type(TypeTest::Anchor) => self.keep_anchors(&mut bits),
                BoundTest::Type(_) | BoundTest::Attr(_) => {}
            }
        }
        // The root and `^seq`, where they stand outside the window, are asked by themselves.
        let (root_reached, seq_reached) = match left {
            Left::Start => (true, true),
            Left::Nodes(nodes) => (false, nodes.root),
            Left::Zones(zones) => zones.reaches_ambient(join.axis),
        };
        let outside = self.window.start > 0;
        let mut ambient = |reached: bool, only: Ambient, row: Option<u32>| {
            outside
                && reached
                && (filter.ambient == only || filter.ambient == Ambient::Maybe)
                && row.is_some_and(|row| row_holds(tests, row, self.scope, counters))
        };
        let root = ambient(root_reached, Ambient::Root, Some(0));
        let seq = ambient(seq_reached, Ambient::Seq, self.scope.snapshot.seq_row());
        match left {
            Left::Start => {}
            Left::Nodes(nodes) => {
                if !narrow_by_level(
                    nodes,
                    join.axis,
                    join.level,
                    &mut bits,
                    &self.window,
                    self.scope,
                ) && let Some(reach) = reach(
                    nodes,
                    join.axis,
                    join.level,
                    self.window.clone(),
                    self.scope,
                ) {
                    bits.and(&reach);
                }
            }
            Left::Zones(zones) => bits.and(&zones.reach(join.axis, &self.window, self.scope)),
        }
        Nodes { bits, root, seq }
    }

    /// Does what follows a step's tests.
    fn tail(
        &self,
        nodes: &mut Nodes,
        left: &Left,
        join: Join,
        tail: &[BoundTail],
        key_order: bool,
        trace: &mut Trace,
    ) {
        for tail in tail {
            let which = match tail {
                BoundTail::First => Which::First,
                BoundTail::Last => Which::Last,
                BoundTail::Nth(n) => Which::Nth(*n),
                BoundTail::Test(BoundTest::Depth(depths)) => {
                    self.keep_depths(&mut nodes.bits, depths);
                    continue;
                }
                BoundTail::Test(test) => {
                    let tests = std::slice::from_ref(test);
                    let kept = fill_tests(
                        tests,
                        true,
                        self.window.clone(),
                        self.scope,
                        &mut trace.counters,
                    );
                    nodes.bits.and(&kept);
                    if let BoundTest::Type(TypeTest::Anchor) = test {
                        self.keep_anchors(&mut nodes.bits);
                    }
                    continue;
                }
            };
            let bits = &mut nodes.bits;
            match left {
                Left::Start => pick(bits, None, None, which, key_order, self.scope),
                Left::Nodes(left) => {
                    pick(bits, Some(left), join.level, which, key_order, self.scope);
                }
                Left::Zones(zones) => {
                    let groups = zones.groups(bits, join.axis, self.scope);
                    *bits = pick_groups(groups, bits, which, key_order, self.scope);
                }
            }
        }
    }

    /// Keeps rows whose depth is in the set. Windows made from the scope hold no others, but for
    /// loose nodes between turns.
    fn keep_depths(&self, bits: &mut Bits, depths: &DepthSet) {
        let snapshot = self.scope.snapshot;
        let mut keep = bits.cleared();
        for (window, _) in windows(snapshot, depths) {
            keep.insert_range(window);
        }
        for piece in snapshot.pieces_in(self.window.clone()) {
            if !piece.segment.has_loose {
                continue;
            }
            for unit in piece.units.clone() {
                if piece.segment.units()[unit as usize].kind == UnitKind::Loose {
                    for row in piece.segment.unit_rows(unit) {
                        keep.remove(row + piece.shift());
                    }
                }
            }
        }
        bits.and(&keep);
    }

    /// Keeps `^sys`, `^ah` and the turns directly under `^seq`.
    fn keep_anchors(&self, bits: &mut Bits) {
        let snapshot = self.scope.snapshot;
        let mut keep = bits.cleared();
        fill_level(2, &mut keep, &self.window, self.scope);
        keep.retain_range(snapshot.seq_rows());
        for region in [snapshot.sys_rows(), snapshot.head_rows()] {
            if !region.is_empty() {
                keep.insert(region.start);
            }
        }
        bits.and(&keep);
    }

    /// Takes out implicit cores, which are never in a result.
    fn drop_cores(&self, bits: &mut Bits) {
        for piece in self.scope.snapshot.pieces_in(self.window.clone()) {
            let virtuals = piece.segment.cores();
            if !virtuals.is_empty() {
                virtuals.for_each_in(piece.rows.clone(), |row| bits.remove(row + piece.shift()));
            }
        }
    }
}
