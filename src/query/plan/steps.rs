//! The operators of a plan.

use smallvec::SmallVec;

use crate::query::ir::{Attr, Axis, CompareOp, DepthSet, RangeAnswer, RowOrder, TypeTest, Zone};

/// The number of a slot: a value that binding supplies. A selector has at most one literal for each
/// byte of its text.
pub type SlotNumber = u32;

/// A compiled query without its literals and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The groups of the union.
    pub chains: Box<[Group<FilterPlan>]>,
    /// Tests of the final set.
    pub filters: Box<[Predicate]>,
    /// The result order.
    pub order: RowOrder,
    /// The slots of the keys that the groups pin, one per group, or of the one a filter pins. If
    /// all are the same key, the result is in key order. Empty if a group pins none.
    pub key_slots: Box<[SlotNumber]>,
    /// Keep the first row of each key.
    pub unique: bool,
    /// Rows per page.
    pub limit: Option<SlotNumber>,
    /// The page, from 1.
    pub page: Option<SlotNumber>,
    /// What a range returns.
    pub mode: RangeAnswer,
    /// Number of slots.
    pub slots: usize,
}

/// One group, of steps that keep nodes as `F` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<F> {
    /// The depths that can have matches; `None` for everywhere. Prunes segments first.
    pub scope: Option<DepthSet>,
    /// Whether units can be run one by one: no pick has a group that spans several.
    pub separable: bool,
    /// Whether no step picks and none is a zone.
    pub plain: bool,
    /// The steps.
    pub steps: Box<[GroupStep<F>]>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupStep<F> {
    /// Keeps nodes.
    Filter(F),
    /// Gathers a zone.
    Zone {
        /// The axis from the step before.
        axis: Axis,
        /// The sign of the offsets.
        zone: Zone,
    },
}

/// One condition; on an attribute as `C` says.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition<C> {
    /// On what the node is.
    Type(TypeTest),
    /// On its depth.
    Depth(DepthSet),
    /// On an attribute.
    Attr(C),
}

/// A pick, or a condition after one.
#[derive(Clone, Debug, PartialEq)]
pub enum PickStep<C, N> {
    /// The first of each group.
    First,
    /// The last of each group.
    Last,
    /// The n-th of each group, from 1.
    Nth(N),
    /// Narrows what was picked.
    Test(Condition<C>),
}

/// Which nodes a step keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterPlan {
    /// The axis from the step before.
    pub axis: Axis,
    /// Conditions, all of which must be satisfied.
    pub tests: SmallVec<[Predicate; 1]>,
    /// Picks, and tests after the first pick; n is in a slot.
    pub picks: Box<[PickStep<SlotTest, SlotNumber>]>,
    /// Whether the root or the `^seq` node can be kept.
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
    /// Neither can be kept.
    Never,
    /// Only the root.
    Root,
    /// Only the `^seq` node.
    Seq,
    /// The tests decide.
    Maybe,
}

/// One condition, with a slot for its value.
pub type Predicate = Condition<SlotTest>;

/// A comparison of an attribute with what a slot has.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotTest {
    /// The attribute.
    pub attr: Attr,
    /// The comparison.
    pub op: CompareOp,
    /// The right side.
    pub slot: SlotNumber,
}

impl<C> Condition<C> {
    /// The depths of a depth test.
    pub(super) fn depths(&self) -> Option<&DepthSet> {
        match self {
            Self::Depth(depths) => Some(depths),
            Self::Type(_) | Self::Attr(_) => None,
        }
    }
}
