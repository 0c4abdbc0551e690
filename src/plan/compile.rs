//! From the normalized form to a plan, and the shape under which a plan is found again.

use std::hash::{BuildHasher, Hash, Hasher};

use smallvec::SmallVec;

use super::{
    Ambient, ChainPlan, FilterPlan, Plan, Predicate, Slot, StepOperator, StepPlan, TailPlan,
};
use crate::ir::{
    Attr, Axis, Chain, Class, Controls, DepthSet, NodeStep, Op, Operand, Pick, Query, Step, Tail,
    Test, TypeTest,
};

/// What the slots of a plan are filled from, in slot order: operands of the query.
pub type Sources<'q> = SmallVec<[&'q Operand; 8]>;

/// A plan and what its slots are filled from.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled<'q> {
    /// The plan.
    pub plan: Plan,
    /// What fills the slots.
    pub sources: Sources<'q>,
}

/// Compiles a query. Linear in its size.
#[must_use]
pub fn compile(query: &Query) -> Compiled<'_> {
    let mut lift = Lift {
        sources: Sources::new(),
    };
    let chains: Box<[ChainPlan]> = query.chains.iter().map(|chain| lift.chain(chain)).collect();
    let filters: Box<[Predicate]> = query.filters.iter().map(|test| lift.test(test)).collect();
    let key_slots = key_slots(&chains, &filters);
    let plan = Plan {
        key_slots,
        chains,
        filters,
        order: query.controls.order,
        unique: query.controls.unique,
        limit: query
            .controls
            .limit
            .as_ref()
            .map(|operand| lift.slot(operand)),
        page: query
            .controls
            .page
            .as_ref()
            .map(|operand| lift.slot(operand)),
        mode: query.controls.mode,
        slots: lift.sources.len(),
    };
    Compiled {
        plan,
        sources: lift.sources,
    }
}

/// Lifts literals into slots while the plan is built.
struct Lift<'q> {
    sources: Sources<'q>,
}

impl<'q> Lift<'q> {
    fn slot(&mut self, operand: &'q Operand) -> Slot {
        let slot = self.sources.len() as Slot;
        self.sources.push(operand);
        slot
    }

    fn test(&mut self, test: &'q Test) -> Predicate {
        match test {
            Test::Type(test) => Predicate::Type(*test),
            Test::Depth(depths) => Predicate::Depth(depths.clone()),
            Test::Attr(test) => Predicate::Attr {
                attr: test.attr.clone(),
                op: test.op,
                slot: self.slot(&test.operand),
            },
        }
    }

    fn chain(&mut self, chain: &'q Chain) -> ChainPlan {
        let mut steps: Vec<StepPlan> = Vec::with_capacity(chain.steps.len());
        let mut scope: Option<DepthSet> = None;
        let (mut separable, mut scope_open) = (true, true);
        // What is known of the step before: its level, and whether it can be the root or `^seq`.
        let mut level: Option<u32> = None;
        let mut left_ambient = true;
        for (index, (axis, step)) in chain.steps.iter().enumerate() {
            let operator = match step {
                Step::Zone(zone) => {
                    level = None;
                    StepOperator::Zone(*zone)
                }
                Step::Node(node) => {
                    let filter = self.filter(node, (index > 0).then_some((*axis, level)));
                    if scope_open {
                        for test in &filter.tests {
                            if let Predicate::Depth(depths) = test {
                                scope = Some(match scope {
                                    Some(scope) => scope.intersection(depths),
                                    None => depths.clone(),
                                });
                            }
                        }
                    }
                    if left_ambient && !filter.tail.is_empty() {
                        // A group may span the whole tree: what later steps demand must not
                        // narrow what this one picks from.
                        separable = false;
                        scope_open = false;
                    }
                    level = filter.level;
                    left_ambient = filter.ambient != Ambient::Never;
                    StepOperator::Filter(filter)
                }
            };
            steps.push(StepPlan {
                axis: *axis,
                operator,
            });
        }
        let plain = steps.iter().all(|step| match &step.operator {
            StepOperator::Filter(filter) => filter.tail.is_empty(),
            StepOperator::Zone(_) => false,
        });
        ChainPlan {
            scope,
            separable,
            plain,
            steps: steps.into(),
        }
    }

    /// `left` is the axis and the level of the step before, if there is one.
    fn filter(&mut self, step: &'q NodeStep, left: Option<(Axis, Option<u32>)>) -> FilterPlan {
        let tests: SmallVec<[Predicate; 1]> =
            step.tests.iter().map(|test| self.test(test)).collect();
        let tail = step
            .tail
            .iter()
            .map(|tail| match tail {
                Tail::Pick(Pick::First) => TailPlan::First,
                Tail::Pick(Pick::Last) => TailPlan::Last,
                Tail::Pick(Pick::Nth(operand)) => TailPlan::Nth(self.slot(operand)),
                Tail::Test(test) => TailPlan::Test(self.test(test)),
            })
            .collect();
        let mut ambient = Ambient::Maybe;
        let mut level = match left {
            Some((Axis::Child, Some(level))) => Some(level + 1),
            _ => None,
        };
        for test in &tests {
            match test {
                Predicate::Type(TypeTest::Root) => {
                    ambient = Ambient::Root;
                    level = Some(0);
                }
                Predicate::Type(TypeTest::Seq) => {
                    ambient = Ambient::Seq;
                    level = Some(1);
                }
                Predicate::Type(TypeTest::Anchor) => {
                    ambient = Ambient::Never;
                    level = anchor_level(&tests);
                }
                Predicate::Type(_) | Predicate::Depth(_) => ambient = Ambient::Never,
                Predicate::Attr { .. } => {}
            }
        }
        FilterPlan {
            ambient,
            cores: tests.contains(&Predicate::Type(TypeTest::Class(Class::Container))),
            key_slot: pinned_key(&tests),
            level,
            tests,
            tail,
        }
    }
}

/// The slots of the keys that every group's last step, or a filter, pins (LANGUAGE §6). Whether
/// they hold one key is seen when they are bound.
fn key_slots(chains: &[ChainPlan], filters: &[Predicate]) -> Box<[Slot]> {
    if let Some(slot) = pinned_key(filters) {
        return Box::new([slot]);
    }
    let slots: Option<Box<[Slot]>> = chains
        .iter()
        .map(|chain| match &chain.steps.last()?.operator {
            StepOperator::Filter(filter) => filter.key_slot,
            StepOperator::Zone(_) => None,
        })
        .collect();
    slots.unwrap_or_default()
}

/// The level of the anchors of a step, where its depths tell: regions are on 1, turns on 2.
fn anchor_level(tests: &[Predicate]) -> Option<u32> {
    let depths = tests.iter().find_map(|test| match test {
        Predicate::Depth(depths) => Some(depths),
        _ => None,
    })?;
    match depths.ranges() {
        [.., (_, high)] if *high <= 0 => Some(1),
        [(low, _), ..] if *low >= 1 => Some(2),
        _ => None,
    }
}

/// The slot of a `key = …` among `tests`. Whether the value is a single key is seen when it is
/// bound.
fn pinned_key(tests: &[Predicate]) -> Option<Slot> {
    tests.iter().find_map(|test| match test {
        Predicate::Attr {
            attr: Attr::Key,
            op: Op::Eq,
            slot,
        } => Some(*slot),
        _ => None,
    })
}

/// A hash over everything of a query but its literals and its time.
#[must_use]
pub fn shape_hash(query: &Query, hasher: &impl BuildHasher) -> u64 {
    let mut state = hasher.build_hasher();
    for chain in &query.chains {
        chain.steps.len().hash(&mut state);
        for (axis, step) in &chain.steps {
            axis.hash(&mut state);
            match step {
                Step::Zone(zone) => zone.hash(&mut state),
                Step::Node(node) => {
                    node.tests.len().hash(&mut state);
                    node.tests
                        .iter()
                        .for_each(|test| hash_test(test, &mut state));
                    node.tail.len().hash(&mut state);
                    for tail in &node.tail {
                        match tail {
                            Tail::Pick(pick) => std::mem::discriminant(pick).hash(&mut state),
                            Tail::Test(test) => hash_test(test, &mut state),
                        }
                    }
                }
            }
        }
    }
    query
        .filters
        .iter()
        .for_each(|test| hash_test(test, &mut state));
    let controls = &query.controls;
    (controls.order, controls.mode, controls.unique).hash(&mut state);
    (controls.limit.is_some(), controls.page.is_some()).hash(&mut state);
    state.finish()
}

fn hash_test(test: &Test, state: &mut impl Hasher) {
    match test {
        Test::Type(test) => test.hash(state),
        Test::Depth(depths) => depths.hash(state),
        Test::Attr(test) => (&test.attr, test.op).hash(state),
    }
}

/// Whether `plan` is what [`compile`] would make of `query`. Cheaper than compiling: it builds
/// nothing.
#[must_use]
pub fn same_shape(plan: &Plan, query: &Query) -> bool {
    pairwise(&plan.chains, &query.chains, |plan, chain| {
        pairwise(&plan.steps, &chain.steps, |plan, (axis, step)| {
            plan.axis == *axis
                && match (&plan.operator, step) {
                    (StepOperator::Zone(a), Step::Zone(b)) => a == b,
                    (StepOperator::Filter(plan), Step::Node(step)) => {
                        pairwise(&plan.tests, &step.tests, same_test)
                            && pairwise(&plan.tail, &step.tail, same_tail)
                    }
                    _ => false,
                }
        })
    }) && pairwise(&plan.filters, &query.filters, same_test)
        && plan.order == query.controls.order
        && plan.unique == query.controls.unique
        && plan.mode == query.controls.mode
        && plan.limit.is_some() == query.controls.limit.is_some()
        && plan.page.is_some() == query.controls.page.is_some()
}

/// Whether two lists are of one length and `same` holds for what stands at each place.
fn pairwise<A, B>(a: &[A], b: &[B], same: impl Fn(&A, &B) -> bool) -> bool {
    let mut others = b.iter();
    a.len() == b.len() && a.iter().all(|a| others.next().is_some_and(|b| same(a, b)))
}

fn same_tail(plan: &TailPlan, tail: &Tail) -> bool {
    match (plan, tail) {
        (TailPlan::First, Tail::Pick(Pick::First))
        | (TailPlan::Last, Tail::Pick(Pick::Last))
        | (TailPlan::Nth(_), Tail::Pick(Pick::Nth(_))) => true,
        (TailPlan::Test(plan), Tail::Test(test)) => same_test(plan, test),
        _ => false,
    }
}

fn same_test(plan: &Predicate, test: &Test) -> bool {
    match (plan, test) {
        (Predicate::Type(a), Test::Type(b)) => a == b,
        (Predicate::Depth(a), Test::Depth(b)) => a == b,
        (Predicate::Attr { attr, op, .. }, Test::Attr(test)) => {
            *attr == test.attr && *op == test.op
        }
        _ => false,
    }
}

/// What fills the slots of the plan of `query`, in their order. Linear in the query.
#[must_use]
pub fn sources(query: &Query) -> Sources<'_> {
    let mut sources = Sources::new();
    for chain in &query.chains {
        for (_, step) in &chain.steps {
            let Step::Node(step) = step else {
                continue;
            };
            operands(&step.tests, &mut sources);
            for tail in &step.tail {
                match tail {
                    Tail::Pick(Pick::Nth(operand)) => sources.push(operand),
                    Tail::Pick(Pick::First | Pick::Last) => {}
                    Tail::Test(test) => operands(std::slice::from_ref(test), &mut sources),
                }
            }
        }
    }
    operands(&query.filters, &mut sources);
    let Controls { limit, page, .. } = &query.controls;
    for operand in [limit, page].into_iter().flatten() {
        sources.push(operand);
    }
    sources
}

/// Adds what `tests` compare with. By pushes, for these are few and extending costs more.
fn operands<'q>(tests: &'q [Test], sources: &mut Sources<'q>) {
    for test in tests {
        if let Test::Attr(test) = test {
            sources.push(&test.operand);
        }
    }
}
