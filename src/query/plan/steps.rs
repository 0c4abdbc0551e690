//! The operators of a plan.

use smallvec::SmallVec;

use crate::query::ir::{
    Attr, Axis, CompareOp, DepthSet, NodeCondition, PickStep, RangeAnswer, RowOrder, Zone,
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
    pub picks: Box<[PickStep<SlotTest, SlotNumber>]>,
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

pub type Predicate = NodeCondition<SlotTest>;

#[derive(Clone, Debug, PartialEq)]
pub struct SlotTest {
    pub attr: Attr,
    pub op: CompareOp,
    pub slot: SlotNumber,
}
