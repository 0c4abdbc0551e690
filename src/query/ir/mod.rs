//! The normalized form of a selector.
//!
//! Lowering turns a syntax tree into a [`SelectorQuery`]: aliases are expanded, types have one vocabulary,
//! groups and braces become tests, and equal meanings become equal values wherever that is cheap.
//! A query prints as canonical text, which parses back to the same query in the canonical edition,
//! and its fingerprint is a hash of that text.
//!
//! Editions matter on the way in (`lower`); a [`SelectorQuery`] does not depend on the edition it was written in.
//! The module must not know any data: no tree, index or snapshot.

mod compile;
mod contradiction;
mod depth;
mod edition;
mod inner;
mod intervals;
mod lower;
mod name;
mod normal;
mod number;
mod pattern;
mod properties;
mod purpose;
mod query;
mod required;
mod settle;
mod short;
mod text;
mod values;

pub use compile::{Desugared, accepts, compile, compile_for, compile_observed, desugar, elsewhere};
pub use depth::DepthSet;
pub use edition::{Edition, UnknownEdition};
pub use intervals::Intervals;
pub use lower::{Lowered, MAX_GROUPS, MAX_STEPS, MAX_VALUES};
pub(crate) use lower::{meant_type, other_spelling};
pub(crate) use name::headers;
pub use name::normal_type;
pub use normal::Observer;
pub use number::{Digits, ExactNumber};
pub use pattern::{MAX_PATTERN_BYTES, Pattern, PatternError, Patterns};
pub use purpose::{InsertionPoint, Purpose};
pub use query::{
    Address, Attr, AttrKind, AttrTest, Axis, Chain, Class, CompareOp, Controls, Facet, InnerKind,
    InnerTest, Literal, NoAddress, NodeCondition, NodeStep, Operand, PickOrTest, PickStep,
    QueryStep, QueryTime, RangeAnswer, RangeEnd, RowOrder, SelectorQuery, Test, Tests, TypeTest,
    Zone,
};
pub(in crate::query) use query::{names_container, tests_of};
pub use required::{Required, fold};
pub use short::{ShortMember, short_node};
