//! From the normalized form to a plan.

use smallvec::SmallVec;

use super::steps::{
    ChainPlan, FilterPlan, PickPlan, Plan, Predicate, RootOrSeq, SlotNumber, StepOperator, StepPlan,
};
use super::walk::{QueryPart, walk};
use crate::query::ir::{
    Attr, Axis, Class, CompareOp, DepthSet, Pick, Query, QueryStep, Test, TypeTest, Zone,
};

/// Compiles a query. Linear in its size.
pub fn compile(query: &Query) -> Plan {
    // Slots are numbered by the walk, as `sources` and `PlanShape` see it, so a plan fits every query
    // of its shape.
    let mut chains = Vec::with_capacity(query.chains.len());
    let mut filters = Vec::with_capacity(query.filters.len());
    let mut steps = Vec::new();
    let mut step = OpenStep::new(Axis::Descendant, None, (0, 0));
    let mut slots: SlotNumber = 0;
    let mut in_chains = true;
    walk(query, &mut |part| match part {
        QueryPart::Chain(chain) => steps = Vec::with_capacity(chain.steps.len()),
        QueryPart::Step(axis, QueryStep::Zone(zone)) => {
            step = OpenStep::new(axis, Some(*zone), (0, 0))
        }
        QueryPart::Step(axis, QueryStep::Node(node)) => {
            step = OpenStep::new(axis, None, (node.tests.len(), node.tail.len()));
        }
        QueryPart::Test(test) => {
            let test = predicate(test, slots);
            if in_chains {
                step.test(test)
            } else {
                filters.push(test)
            }
        }
        QueryPart::Pick(pick) => step.picks.push(match pick {
            Pick::First => PickPlan::First,
            Pick::Last => PickPlan::Last,
            Pick::Nth(_) => PickPlan::Nth(slots),
        }),
        QueryPart::StepEnd => {
            let closed = step.close(steps.last());
            steps.push(closed);
        }
        QueryPart::ChainEnd => chains.push(chain(std::mem::take(&mut steps))),
        QueryPart::Filters(_) => in_chains = false,
        QueryPart::Operand(_) => slots += 1,
        QueryPart::Controls(_) => {}
    });
    let controls = &query.controls;
    // The operands of the controls have the last slots.
    let page = controls.page.is_some().then(|| slots - 1);
    let limit = controls.limit.is_some();
    Plan {
        key_slots: key_slots(&chains, &filters),
        chains: chains.into(),
        filters: filters.into(),
        order: controls.order,
        unique: controls.unique,
        limit: limit.then(|| slots - 1 - SlotNumber::from(page.is_some())),
        page,
        mode: controls.mode,
        slots: slots as usize,
    }
}

fn predicate(test: &Test, slot: SlotNumber) -> Predicate {
    match test {
        Test::Type(test) => Predicate::Type(*test),
        Test::Depth(depths) => Predicate::Depth(depths.clone()),
        Test::Attr(test) => Predicate::Attr {
            attr: test.attr.clone(),
            op: test.op,
            slot,
        },
    }
}

/// A step whose parts are being collected.
struct OpenStep {
    axis: Axis,
    zone: Option<Zone>,
    tests: SmallVec<[Predicate; 1]>,
    picks: Vec<PickPlan>,
}

impl OpenStep {
    /// A step with room for some tests and picks.
    fn new(axis: Axis, zone: Option<Zone>, (tests, picks): (usize, usize)) -> Self {
        Self {
            axis,
            zone,
            tests: SmallVec::with_capacity(tests),
            picks: Vec::with_capacity(picks),
        }
    }

    fn test(&mut self, test: Predicate) {
        // What comes before the first pick is one of the tests.
        if self.picks.is_empty() {
            self.tests.push(test)
        } else {
            self.picks.push(PickPlan::Test(test))
        }
    }

    /// The collected step, which comes after `left`.
    fn close(&mut self, left: Option<&StepPlan>) -> StepPlan {
        let axis = self.axis;
        let operator = match self.zone {
            Some(zone) => StepOperator::Zone(zone),
            None => {
                let tests = std::mem::take(&mut self.tests);
                let picks = std::mem::take(&mut self.picks);
                StepOperator::Filter(filter(axis, tests, picks, left))
            }
        };
        StepPlan { axis, operator }
    }
}

fn filter(
    axis: Axis,
    tests: SmallVec<[Predicate; 1]>,
    picks: Vec<PickPlan>,
    left: Option<&StepPlan>,
) -> FilterPlan {
    let mut ambient = RootOrSeq::Maybe;
    // A child is one level below its parent; after white space the level is open. Tests of the
    // root, `^seq` or an anchor fix it whatever is on the left.
    let mut level = match left.map(|left| &left.operator) {
        Some(StepOperator::Filter(left)) if axis == Axis::Child => left.level.map(|up| up + 1),
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
            Predicate::Attr { .. } => {}
        }
    }
    FilterPlan {
        ambient,
        cores: tests.contains(&Predicate::Type(TypeTest::Class(Class::Container))),
        key_slot: pinned_key(&tests),
        level,
        tests,
        picks: picks.into(),
    }
}

/// A group of these steps: where its matches can be.
fn chain(steps: Vec<StepPlan>) -> ChainPlan {
    let (mut separable, mut plain) = (true, true);
    let mut scope: Option<DepthSet> = None;
    // Whether the root or `^seq` can be in the left context.
    let mut left_ambient = true;
    // A chain can be run unit by unit if each group of a pick is inside one unit: if the left
    // context of every pick, and so its group, is below the root and `^seq`. A first step has the
    // whole tree as its group, which is why it starts as if the root were on the left.
    for step in &steps {
        let StepOperator::Filter(filter) = &step.operator else {
            plain = false;
            continue;
        };
        // Depths of any step bound the whole chain: all its nodes are in the units of those depths.
        plain &= filter.picks.is_empty();
        let depths = filter.tests.iter().filter_map(Predicate::depths);
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
    ChainPlan {
        scope,
        separable,
        plain,
        steps: steps.into(),
    }
}

/// The slots of the keys that every group's last step, or a filter, pins (LANGUAGE §6).
fn key_slots(chains: &[ChainPlan], filters: &[Predicate]) -> Box<[SlotNumber]> {
    // Whether the keys are the same is known once values are bound.
    if let Some(slot) = pinned_key(filters) {
        return Box::new([slot]);
    }
    // A filter that pins a key decides for the union. Otherwise every group has to pin one, in its
    // last step.
    let pinned = |chain: &ChainPlan| match &chain.steps.last()?.operator {
        StepOperator::Filter(filter) => filter.key_slot,
        StepOperator::Zone(_) => None,
    };
    // One group without a key is enough for document order.
    let slots: Option<Box<[SlotNumber]>> = chains.iter().map(pinned).collect();
    slots.unwrap_or_default()
}

fn anchor_level(tests: &[Predicate]) -> Option<u32> {
    // Regions are on level 1 and have the depths -1 and 0; turns are on level 2 and have depths
    // from 1 on. A set with both leaves the level open.
    match tests.iter().find_map(Predicate::depths)?.ranges() {
        [.., (_, high)] if *high <= 0 => Some(1),
        [(low, _), ..] if *low >= 1 => Some(2),
        _ => None,
    }
}

/// The slot of a `key = …` among `tests`.
fn pinned_key(tests: &[Predicate]) -> Option<SlotNumber> {
    tests.iter().find_map(|test| match test {
        Predicate::Attr {
            attr: Attr::Key,
            op: CompareOp::Eq,
            slot,
        } => Some(*slot),
        _ => None,
    })
}
