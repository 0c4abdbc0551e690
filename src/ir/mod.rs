//! The normalized form of a selector.
//!
//! Lowering turns a spanned syntax tree into a [`Query`]: aliases are expanded, one vocabulary
//! is left, groups and braces have become tests, and equal meanings have equal values wherever
//! that is cheap to reach. A query prints as canonical text that parses back, in the canonical
//! edition, to the same query, and has a fingerprint over that text.
//!
//! This room knows no data: nothing here can see a tree, an index or a snapshot, and nothing
//! here knows which edition a selector was written in.

mod contradiction;
mod depth;
mod edition;
mod lower;
mod name;
mod normal;
mod order;
mod pattern;
mod properties;
mod query;
mod text;
mod translate;

pub use depth::DepthSet;
pub use edition::{Edition, UnknownEdition};
pub use lower::{
    Lowered, MAX_GROUPS, MAX_STEPS, MAX_VALUES, Observer, Sugar, compile, compile_observed,
    desugar, lower,
};
pub use name::normal_type;
pub use order::compare_numbers;
pub use pattern::{MAX_PATTERN_BYTES, Pattern, PatternError, Patterns};
pub use properties::Fingerprint;
pub use query::{
    Address, Attr, AttrTest, Axis, Chain, Class, Controls, Facet, Kind, Literal, Mode, NodeStep,
    Op, Operand, Order, Pick, Query, RangeEnd, Step, Tail, Test, Tests, Time, TypeTest, Zone,
};
pub use translate::{Untranslatable, translate};
