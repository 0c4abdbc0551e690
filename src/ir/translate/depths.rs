//! Depths in the words of `v0.1`: the regions by name, and `:depth(…)` from 1 on.
//!
//! The depth-axis containers lie side by side, so a set of depths is the union of its parts: what
//! lies in `^sys`, what lies in `^ah`, and what lies in turns. In a region a node either is it
//! or lies below it.

use super::super::{Axis, Class, DepthSet, NodeStep, Step, Tail, Test, TypeTest};
use super::Construct;
use super::alternatives::Way;

/// The ways to say a step of these tests and this tail.
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
    let place = Place { axis, tail, before };
    let Some(set) = depths_of(&tests) else {
        return Ok(vec![vec![place.step(tests)]]);
    };
    let mut ways = Vec::new();
    let turns = set.intersection(&sealed);
    if !turns.is_empty() {
        ways.push(place.turns(&tests, turns)?);
    }
    for region in [0, -1] {
        if set.contains(region) {
            place.region(&tests, region, &mut ways)?;
        }
    }
    Ok(ways)
}

/// The one depth set among the tests.
fn depths_of(tests: &[Test]) -> Option<DepthSet> {
    tests.iter().find_map(|test| match test {
        Test::Depth(set) => Some(set.clone()),
        Test::Type(_) | Test::Attr(_) => None,
    })
}

fn is(tests: &[Test], wanted: TypeTest) -> bool {
    tests.contains(&Test::Type(wanted))
}

/// The tests but those of depth, and of what the depth-axis containers are.
fn others(tests: &[Test]) -> Vec<Test> {
    let rest = tests.iter().filter(|test| {
        !matches!(
            test,
            Test::Depth(_) | Test::Type(TypeTest::Anchor | TypeTest::TurnOrAnchor)
        )
    });
    rest.cloned().collect()
}

/// Where a step stands.
struct Place<'a> {
    axis: Axis,
    tail: &'a [Tail],
    before: Option<&'a (Axis, Step)>,
}

impl Place<'_> {
    /// A step of this place with its picks.
    fn step(&self, tests: Vec<Test>) -> (Axis, Step) {
        let node = NodeStep {
            tests: tests.into(),
            tail: self.tail.into(),
        };
        (self.axis, Step::Node(node))
    }

    /// The part of a step that lies in turns, `set` being depths from 1.
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
        // `:depth(2)` with nothing beside it is the container itself.
        if rest.is_empty() && !(all && under_seq) {
            let anchor = Test::Type(TypeTest::Anchor);
            return Ok(vec![self.step(vec![anchor, Test::Depth(set)])]);
        }
        // Otherwise it is a turn right under `^seq`.
        rest.push(Test::Type(TypeTest::Class(Class::Turn)));
        // Beside a depth behind the pick, `.mt` alone would let the regions in.
        if !all
            || self
                .tail
                .iter()
                .any(|item| matches!(item, Tail::Test(Test::Depth(_))))
        {
            rest.push(Test::Depth(set));
        }
        let (_, turn) = self.step(rest);
        let turn = (Axis::Child, turn);
        if self.below(TypeTest::Seq) {
            return Ok(vec![turn]);
        }
        if self.reaches_everything() {
            let seq = NodeStep {
                tests: [Test::Type(TypeTest::Seq)].into(),
                tail: Box::default(),
            };
            return Ok(vec![(Axis::Descendant, Step::Node(seq)), turn]);
        }
        Err(Construct::Depth)
    }

    /// The part of a step that lies in a region: the region itself, and what is below it.
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
        let region = NodeStep {
            tests: region.into_iter().collect(),
            tail: Box::default(),
        };
        let (_, below) = self.step(below);
        ways.push(vec![
            (Axis::Descendant, Step::Node(region)),
            (Axis::Descendant, below),
        ]);
        Ok(())
    }

    /// Whether the step before is the one node of this type.
    fn below(&self, wanted: TypeTest) -> bool {
        match self.before {
            Some((_, Step::Node(node))) => node.tests.contains(&Test::Type(wanted)),
            Some((_, Step::Zone(_))) | None => false,
        }
    }

    /// Whether the step may match anywhere below the root, so that a region or `^seq` can be
    /// named before it.
    fn reaches_everything(&self) -> bool {
        self.before.is_none() || self.axis == Axis::Descendant && self.below(TypeTest::Root)
    }
}
