//! Depths as `v0.1` can express them: the regions by name, and `:depth(…)` from 1 on.
//!
//! The depth-axis containers are disjoint, so a set of depths is the union of its parts: the nodes
//! in `^sys`, in `^ah` and in turns. A node in a region is the region itself or below it.

use super::construct::Construct;
use crate::query::ir::depth::DepthSet;
use crate::query::ir::query::{Axis, Class, NodeStep, Step, Tail, Test, TypeTest};

/// Steps that replace one step.
pub(super) type Way = Vec<(Axis, Step)>;

/// The ways to express a step with these tests and this tail.
pub(super) fn ways(
    axis: Axis,
    tests: Vec<Test>,
    tail: &[Tail],
    before: Option<&(Axis, Step)>,
) -> Result<Vec<Way>, Construct> {
    let sealed = DepthSet::range(1, i64::MAX);
    for item in tail {
        if let Tail::Test(Test::Depth(set)) = item
            && set.intersection(&sealed) != *set
        {
            return Err(Construct::Depth);
        }
    }
    let context = Context { axis, tail, before };
    let Some(set) = tests.iter().find_map(Test::depth) else {
        return Ok(vec![vec![context.step(tests)]]);
    };
    let mut ways = Vec::new();
    let turns = set.intersection(&sealed);
    if !turns.is_empty() {
        ways.push(context.turns(&tests, turns)?);
    }
    for region in [0, -1] {
        if set.contains(region) {
            context.region(&tests, region, &mut ways)?;
        }
    }
    Ok(ways)
}

fn is(tests: &[Test], wanted: TypeTest) -> bool {
    tests.contains(&Test::Type(wanted))
}

/// The tests except those of depth and of depth-axis containers.
fn others(tests: &[Test]) -> Vec<Test> {
    let rest = tests.iter().filter(|test| {
        !matches!(
            test,
            Test::Depth(_) | Test::Type(TypeTest::Anchor | TypeTest::TurnOrAnchor)
        )
    });
    rest.cloned().collect()
}

/// What surrounds a step.
struct Context<'a> {
    axis: Axis,
    tail: &'a [Tail],
    before: Option<&'a (Axis, Step)>,
}

impl Context<'_> {
    /// A step with the axis and the picks of this one.
    fn step(&self, tests: Vec<Test>) -> (Axis, Step) {
        let (tests, tail) = (tests.into(), self.tail.into());
        (self.axis, Step::Node(NodeStep { tests, tail }))
    }

    /// The part of a step in turns; `set` has depths from 1 only.
    fn turns(&self, tests: &[Test], set: DepthSet) -> Result<Way, Construct> {
        let mut rest = others(tests);
        let all = set == DepthSet::range(1, i64::MAX);
        if !is(tests, TypeTest::Anchor) {
            if is(tests, TypeTest::TurnOrAnchor) {
                rest.push(Test::Type(TypeTest::Class(Class::Turn)));
            }
            rest.push(Test::Depth(set));
            return Ok(vec![self.step(rest)]);
        }
        let under_seq = self.below(TypeTest::Seq) || self.reaches_everything();
        // `:depth(2)` alone is the container itself.
        if rest.is_empty() && !(all && under_seq) {
            let anchor = Test::Type(TypeTest::Anchor);
            return Ok(vec![self.step(vec![anchor, Test::Depth(set)])]);
        }
        // Otherwise it is a turn directly under `^seq`.
        rest.push(Test::Type(TypeTest::Class(Class::Turn)));
        // With a depth after the pick, `.mt` alone would also match the regions.
        let after_pick = |item: &Tail| matches!(item, Tail::Test(Test::Depth(_)));
        if !all || self.tail.iter().any(after_pick) {
            rest.push(Test::Depth(set));
        }
        let (_, turn) = self.step(rest);
        let turn = (Axis::Child, turn);
        if self.below(TypeTest::Seq) {
            return Ok(vec![turn]);
        }
        if self.reaches_everything() {
            let seq = Step::of([Test::Type(TypeTest::Seq)]);
            return Ok(vec![(Axis::Descendant, seq), turn]);
        }
        Err(Construct::Depth)
    }

    /// The parts of a step in a region: the region itself, and the nodes below it.
    fn region(&self, tests: &[Test], depth: i64, ways: &mut Vec<Way>) -> Result<(), Construct> {
        let region = [
            Test::Type(TypeTest::Anchor),
            Test::Depth(DepthSet::one(depth)),
        ];
        let rest = others(tests);
        let classed = rest.iter().any(|test| matches!(test, Test::Type(_)));
        if !classed {
            let itself = region.iter().chain(&rest).cloned().collect();
            ways.push(vec![self.step(itself)]);
        }
        if is(tests, TypeTest::Anchor) {
            return Ok(());
        }
        if !self.reaches_everything() {
            return Err(Construct::Depth);
        }
        let mut below = rest;
        if is(tests, TypeTest::TurnOrAnchor) {
            below.push(Test::Type(TypeTest::Class(Class::Turn)));
        }
        let region = Step::of(region.to_vec());
        let (_, below) = self.step(below);
        ways.push(vec![(Axis::Descendant, region), (Axis::Descendant, below)]);
        Ok(())
    }

    /// Whether the step before is the node of this type.
    fn below(&self, wanted: TypeTest) -> bool {
        match self.before {
            Some((_, Step::Node(node))) => node.tests.contains(&Test::Type(wanted)),
            Some((_, Step::Zone(_))) | None => false,
        }
    }

    /// Whether the step matches anywhere below the root, so that a region or `^seq` can be put
    /// before it.
    fn reaches_everything(&self) -> bool {
        self.before.is_none() || self.axis == Axis::Descendant && self.below(TypeTest::Root)
    }
}
