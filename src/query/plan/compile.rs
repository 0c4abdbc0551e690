//! From the normalized form to a plan.

use smallvec::SmallVec;

use super::steps::{
    FilterPlan, GroupStep, InnerPlan, Plan, PlannedGroup, Predicate, RootOrSeq, SlotNumber,
    SlotTest, keeps_cores,
};
use crate::query::ir::{
    Attr, Axis, Chain, CompareOp, DepthSet, InnerTest, NodeStep, Operand, PickOrTest, PickStep,
    QueryStep, SelectorQuery, Test, TypeTest,
};

/// The operands that fill a plan's slots, in slot order.
pub type Sources<'q> = SmallVec<[&'q Operand; 8]>;

/// The operands of `query` in slot order. Linear in the query.
pub fn sources(query: &SelectorQuery) -> Sources<'_> {
    let mut found = Sources::new();
    query.each_operand(&mut |operand| found.push(operand));
    found
}

/// Compiles a query. Linear in its size.
pub fn compile(query: &SelectorQuery) -> Plan {
    // Slots are numbered in the order of `sources`.
    let mut slots = Slots(0);
    let chains = query.chains.iter().map(|chain| slots.chain(chain));
    let chains: Box<[PlannedGroup<FilterPlan>]> = chains.collect();
    let filters = query.filters.iter().map(|test| slots.predicate(test));
    let filters: Box<[Predicate]> = filters.collect();
    let controls = &query.controls;
    Plan {
        key_slots: key_slots(&chains, &filters),
        chains,
        filters,
        order: controls.order,
        unique: controls.unique,
        limit: controls.limit.as_ref().map(|_| slots.next()),
        page: controls.page.as_ref().map(|_| slots.next()),
        mode: controls.mode,
        slots: slots.0 as usize,
    }
}

type SlotPicks = Vec<PickStep<SlotTest, InnerPlan, SlotNumber>>;

struct Slots(SlotNumber);

impl Slots {
    fn next(&mut self) -> SlotNumber {
        self.0 += 1;
        self.0 - 1
    }

    fn chain(&mut self, chain: &Chain) -> PlannedGroup<FilterPlan> {
        let mut steps: Vec<GroupStep<FilterPlan>> = Vec::with_capacity(chain.steps.len());
        for &(axis, ref step) in &chain.steps {
            steps.push(match *step {
                QueryStep::Zone(zone) => GroupStep::Zone { axis, zone },
                QueryStep::Node(ref node) => {
                    let (tests, picks) = self.step(node);
                    GroupStep::Filter(filter(axis, tests, picks, steps.last()))
                }
            });
        }
        group(steps)
    }

    /// The tests of a step, and its picks with the tests after them.
    fn step(&mut self, node: &NodeStep) -> (SmallVec<[Predicate; 1]>, SlotPicks) {
        let mut tests = SmallVec::with_capacity(node.tests.len());
        tests.extend(node.tests.iter().map(|test| self.predicate(test)));
        let mut picks = Vec::with_capacity(node.tail.len());
        for item in &node.tail {
            picks.push(match item {
                PickOrTest::First => PickStep::First,
                PickOrTest::Last => PickStep::Last,
                PickOrTest::Nth(_) => PickStep::Nth(self.next()),
                PickOrTest::Test(test) => PickStep::Test(self.predicate(test)),
            });
        }
        (tests, picks)
    }

    fn predicate(&mut self, test: &Test) -> Predicate {
        match test {
            Test::Type(test) => Predicate::Type(*test),
            Test::Depth(depths) => Predicate::Depth(depths.clone()),
            // Recursion is as deep as conditions are inside each other, which is bounded.
            Test::Inner(test) => Predicate::Inner(Box::new(InnerTest {
                kind: test.kind,
                within: test.within,
                any: test.any.iter().map(|chain| self.chain(chain)).collect(),
            })),
            Test::Attr(test) => Predicate::Attr(SlotTest {
                attr: test.attr.clone(),
                op: test.op,
                slot: self.next(),
            }),
        }
    }
}

fn filter(
    axis: Axis,
    tests: SmallVec<[Predicate; 1]>,
    picks: SlotPicks,
    left: Option<&GroupStep<FilterPlan>>,
) -> FilterPlan {
    let mut ambient = RootOrSeq::Maybe;
    // A child is one level below its parent; after white space the level is open. Tests of the
    // root, `^seq` or an anchor fix it whatever is on the left.
    let mut level = match left {
        Some(GroupStep::Filter(left)) if axis == Axis::Child => left.level.map(|up| up + 1),
        _ => None,
    };
    // A test of a class or a depth excludes the root and `^seq`, which have neither. A test of an
    // attribute does not.
    for test in &tests {
        match test {
            Predicate::Type(TypeTest::Root) => {
                ambient = RootOrSeq::Root;
                level = Some(0);
            }
            Predicate::Type(TypeTest::Seq) => {
                ambient = RootOrSeq::Seq;
                level = Some(1);
            }
            Predicate::Type(TypeTest::Anchor) => {
                ambient = RootOrSeq::Never;
                level = anchor_level(&tests);
            }
            Predicate::Type(_) | Predicate::Depth(_) => ambient = RootOrSeq::Never,
            Predicate::Attr(_) | Predicate::Inner(_) => {}
        }
    }
    FilterPlan {
        axis,
        ambient,
        cores: keeps_cores(&tests),
        key_slot: pinned_key(&tests),
        level,
        tests,
        picks: picks.into(),
    }
}

/// A group of these steps: where its matches can be.
fn group(steps: Vec<GroupStep<FilterPlan>>) -> PlannedGroup<FilterPlan> {
    let (mut separable, mut plain) = (true, true);
    let mut scope: Option<DepthSet> = None;
    // Whether the root or `^seq` can be in the left context.
    let mut left_ambient = true;
    // A chain can be run unit by unit if each group of a pick is inside one unit: if the left
    // context of every pick, and so its group, is below the root and `^seq`. A first step has the
    // whole tree as its group, which is why it starts as if the root were on the left.
    for step in &steps {
        let GroupStep::Filter(filter) = step else {
            plain = false;
            continue;
        };
        // Depths of any step bound the whole chain: all its nodes are in the units of those depths.
        plain &= filter.picks.is_empty();
        let depths = filter.tests.iter().filter_map(Predicate::depth);
        // A group of a pick that spans the tree must be seen whole: what later steps demand does
        // not narrow the scope any more.
        for depths in depths.filter(|_| separable) {
            scope = Some(match scope {
                Some(scope) => scope.intersection(depths),
                None => depths.clone(),
            });
        }
        // Once a group spans the tree, all later steps depend on rows of other units.
        separable &= !left_ambient || filter.picks.is_empty();
        left_ambient = filter.ambient != RootOrSeq::Never;
    }
    // Where a condition reads other units, none can be run alone, and the depths of the steps do not confine what is
    // read.
    let reads_units = |step: &GroupStep<FilterPlan>| match step {
        GroupStep::Filter(filter) => filter.reads_units(),
        GroupStep::Zone { .. } => false,
    };
    if steps.iter().any(reads_units) {
        (separable, scope) = (false, None);
    }
    PlannedGroup {
        scope,
        separable,
        plain,
        steps: steps.into(),
    }
}

/// The slots of the keys that every group's last step, or a filter, pins (LANGUAGE §6).
fn key_slots(chains: &[PlannedGroup<FilterPlan>], filters: &[Predicate]) -> Box<[SlotNumber]> {
    // Whether the keys are the same is known once values are bound.
    if let Some(slot) = pinned_key(filters) {
        return Box::new([slot]);
    }
    // A filter that pins a key decides for the union. Otherwise every group has to pin one, in its
    // last step.
    let pinned = |chain: &PlannedGroup<FilterPlan>| match chain.steps.last()? {
        GroupStep::Filter(filter) => filter.key_slot,
        GroupStep::Zone { .. } => None,
    };
    // One group without a key is enough for document order.
    let slots: Option<Box<[SlotNumber]>> = chains.iter().map(pinned).collect();
    slots.unwrap_or_default()
}

fn anchor_level(tests: &[Predicate]) -> Option<u32> {
    // Regions are on level 1 and have the depths -1 and 0; turns are on level 2 and have depths
    // from 1 on. A set with both leaves the level open.
    match tests.iter().find_map(Predicate::depth)?.ranges() {
        [.., (_, high)] if *high <= 0 => Some(1),
        [(low, _), ..] if *low >= 1 => Some(2),
        _ => None,
    }
}

fn pinned_key(tests: &[Predicate]) -> Option<SlotNumber> {
    tests.iter().find_map(|test| match test {
        Predicate::Attr(SlotTest {
            attr: Attr::Key,
            op: CompareOp::Eq,
            slot,
        }) => Some(*slot),
        _ => None,
    })
}
