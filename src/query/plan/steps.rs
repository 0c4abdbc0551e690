//! The operators of a plan.

use smallvec::SmallVec;

use crate::query::ir::{
    Attr, Axis, Class, CompareOp, DepthSet, InnerKind, InnerTest, NodeCondition, PickStep,
    RangeAnswer, RowOrder, TypeTest, Zone,
};

/// The number of a slot: a value that binding supplies. A selector has at most one literal for each
/// byte of its text.
pub type SlotNumber = u32;

/// A compiled query without its literals and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub chains: Box<[PlannedGroup<FilterPlan>]>,
    pub filters: Box<[Predicate]>,
    pub order: RowOrder,
    /// The slots of the keys that the groups pin, one per group, or of the one a filter pins. If
    /// all are the same key, the result is in key order. Empty if a group pins none.
    pub key_slots: Box<[SlotNumber]>,
    pub unique: bool,
    pub limit: Option<SlotNumber>,
    pub page: Option<SlotNumber>,
    pub mode: RangeAnswer,
    pub slots: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PlannedGroup<F> {
    /// The depths that can have matches; `None` for everywhere. Prunes segments first.
    pub scope: Option<DepthSet>,
    /// Whether units can be run one by one: no pick has a group that spans several.
    pub separable: bool,
    /// Whether no step picks and none is a zone.
    pub plain: bool,
    pub steps: Box<[GroupStep<F>]>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum GroupStep<F> {
    Filter(F),
    Zone { axis: Axis, zone: Zone },
}

#[derive(Clone, Debug, PartialEq)]
pub struct FilterPlan {
    pub axis: Axis,
    pub tests: SmallVec<[Predicate; 1]>,
    pub picks: Box<[PickStep<SlotTest, InnerPlan, SlotNumber>]>,
    pub ambient: RootOrSeq,
    /// Whether implicit cores can be kept: the step names the container class.
    pub cores: bool,
    /// The slot of the key this step pins, which puts its picks in key order.
    pub key_slot: Option<SlotNumber>,
    /// The level of every kept node, if the chain decides it.
    pub level: Option<u32>,
}

/// Whether a step can keep the root or the `^seq` node, whose subtrees span segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootOrSeq {
    Never,
    Root,
    Seq,
    Maybe,
}

pub type Predicate = NodeCondition<SlotTest, InnerPlan>;

/// A condition with selectors inside.
pub type InnerPlan = InnerTest<PlannedGroup<FilterPlan>>;

#[derive(Clone, Debug, PartialEq)]
pub struct SlotTest {
    pub attr: Attr,
    pub op: CompareOp,
    pub slot: SlotNumber,
}

impl InnerPlan {
    /// Whether it, or one inside of it, reads nodes outside of the unit of its node.
    fn reads_outside(&self) -> bool {
        let steps = self.any.iter().flat_map(|group| &group.steps);
        self.kind.reads_outside()
            || steps.into_iter().any(|step| match step {
                GroupStep::Filter(filter) => filter.inner().any(Self::reads_outside),
                GroupStep::Zone { .. } => false,
            })
    }
}

impl FilterPlan {
    /// The conditions with selectors inside, before and after picks.
    fn inner(&self) -> impl Iterator<Item = &InnerPlan> {
        let after = self.picks.iter().filter_map(PickStep::test);
        self.tests.iter().chain(after).filter_map(Predicate::inner)
    }

    /// Whether a condition of the step depends on more than the unit of its node: on anything before or after it, or
    /// on what is below the root or `^seq`, which are not in the units that are run alone.
    pub(super) fn reads_units(&self) -> bool {
        let ambient = self.ambient != RootOrSeq::Never;
        self.inner().any(|inner| ambient || inner.reads_outside())
    }
}

/// Whether a step with these tests can keep implicit cores: one of them, or of those of which one must hold, is
/// the class of containers.
pub(super) fn keeps_cores(tests: &[Predicate]) -> bool {
    tests.iter().any(|test| match test {
        Predicate::Type(test) => *test == TypeTest::Class(Class::Container),
        Predicate::Inner(inner) if inner.kind == InnerKind::Is => {
            let steps = inner.any.iter().filter_map(|group| group.steps.first());
            steps
                .into_iter()
                .any(|step| matches!(step, GroupStep::Filter(step) if step.cores))
        }
        _ => false,
    })
}
