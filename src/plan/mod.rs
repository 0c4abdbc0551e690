//! Query plans: what to do, without any snapshot and without any literal.
//!
//! [`compile()`] turns a normalized query into a [`Plan`]. Literals are lifted into numbered slots
//! on the way, so selectors that differ only in literals share one plan; [`bind()`] puts values
//! back and checks them. A plan is immutable, knows no rows, and can be shared by every session
//! and thread. Which index structure serves a test is decided per segment, when it is run.
//!
//! This room knows the normalized form. It knows no index, no snapshot and no text.

mod bind;
mod compare;
mod compile;
mod display;
mod number;
mod value;

pub use bind::{
    BindError, Bound, BoundChain, BoundStep, BoundTail, BoundTest, BoundTests, Condition, bind,
};
pub(crate) use compare::has_text;
pub use compare::{Compare, NumberSet, Scalar, TextTest, Unfit, ValueTest};
pub use compile::{Compiled, Sources, compile, same_shape, shape_hash, sources};
pub use display::Operator;
pub use number::{Digits, Number};
pub use value::{Source, Value};

use smallvec::SmallVec;

use crate::ir::{Axis, DepthSet, Mode, Op, Order, TypeTest, Zone};

/// The number of a slot: a value the plan needs from outside. Wide enough for any selector, which
/// has at most one literal for each byte of its text.
pub type Slot = u32;

/// A compiled query without its literals and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The groups of the union.
    pub chains: Box<[ChainPlan]>,
    /// Tests of the final set.
    pub filters: Box<[Predicate]>,
    /// The result order asked for.
    pub order: Order,
    /// The slots of the keys that the groups pin, one a group, or the one a filter pins; equal
    /// keys put the result in key order. Empty where a group pins none.
    pub key_slots: Box<[Slot]>,
    /// Keep the first row of each key.
    pub unique: bool,
    /// Rows a page.
    pub limit: Option<Slot>,
    /// Which page.
    pub page: Option<Slot>,
    /// How a range answers.
    pub mode: Mode,
    /// How many slots there are.
    pub slots: usize,
}

/// One group.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainPlan {
    /// Depths outside of which no match can lie; `None` for everywhere. Segments are pruned by
    /// it before anything is touched.
    pub scope: Option<DepthSet>,
    /// Whether the scope's parts can be run one by one: no pick has a group that spans them.
    pub separable: bool,
    /// Whether every step is tests alone: there is no pick and no zone.
    pub plain: bool,
    /// The steps.
    pub steps: Box<[StepPlan]>,
}

/// One step: an axis from the step before, and what is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPlan {
    /// How it hangs from the step before.
    pub axis: Axis,
    /// What it does.
    pub operator: StepOperator,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOperator {
    /// Keeps nodes.
    Filter(FilterPlan),
    /// Gathers a zone.
    Zone(Zone),
}

/// Which nodes a step keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterPlan {
    /// Conditions, all of which hold.
    pub tests: SmallVec<[Predicate; 1]>,
    /// Picks and what stands behind them.
    pub tail: Box<[TailPlan]>,
    /// Whether the root or the `^seq` node can be kept.
    pub ambient: Ambient,
    /// Whether implicit cores can be kept: the step names the container class.
    pub cores: bool,
    /// The slot of the key this step pins, which puts its picks in key order.
    pub key_slot: Option<Slot>,
    /// The level every kept node is on, where the chain tells.
    pub level: Option<u32>,
}

/// Whether a step can keep the root or the `^seq` node, whose subtrees span segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambient {
    /// Neither.
    Never,
    /// Only the root.
    Root,
    /// Only the `^seq` node.
    Seq,
    /// Its tests must be asked.
    Maybe,
}

/// One condition, literals lifted.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// On what the node is.
    Type(TypeTest),
    /// On its depth.
    Depth(DepthSet),
    /// On an attribute, against a slot.
    Attr {
        /// The attribute.
        attr: crate::ir::Attr,
        /// The comparison.
        op: Op,
        /// The right side.
        slot: Slot,
    },
}

/// What follows a step's tests.
#[derive(Clone, Debug, PartialEq)]
pub enum TailPlan {
    /// The first of each group.
    First,
    /// The last of each group.
    Last,
    /// The n-th of each group; the slot holds n.
    Nth(Slot),
    /// Narrows what was picked.
    Test(Predicate),
}
