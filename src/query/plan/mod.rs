//! Query plans: what to do, without a snapshot and without literals.
//!
//! | step | in | out |
//! |---|---|---|
//! | [`compile()`] | query | [`Plan`]: literals lifted into numbered slots |
//! | [`bind()`] | plan, operands, parameters | [`Bound`]: checked values in place, all that execution reads |
//!
//! Plans are immutable and shared by sessions and threads. The index structure that serves a test is chosen per
//! segment at run time.
//!
//! This module knows the normalized form. It must not know indexes, snapshots or selector text.

mod bind;
mod bound;
mod compile;
mod display;
mod number_set;
mod observe;
mod predicate;
mod steps;
mod text_test;
mod value;
mod value_test;

pub use bind::{BindError, bind};
pub use bound::{
    AttrCondition, Bound, BoundChain, BoundFilter, BoundInner, BoundPick, BoundStep, BoundTest,
    BoundTests, NearestEnd, NearestRows,
};
pub use compile::{Sources, compile, sources};
pub use display::{PlanLine, StepWork, operand_label};
pub use number_set::{NumberSet, ObservedNumbers};
pub use observe::Readings;
pub use predicate::Compare;
pub use steps::{
    FilterPlan, GroupStep, InnerPlan, Plan, PlannedGroup, Predicate, RootOrSeq, SlotNumber,
    SlotTest,
};
pub(crate) use text_test::has_text;
pub use text_test::{TextTest, UnfitValue};
pub use value::Value;
pub use value_test::{Scalar, ValueReading, ValueTest};
