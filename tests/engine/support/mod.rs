//! The reference interpreter and the generators of random cases.
//!
//! The interpreter is written from the language's rules alone: it does not use the engine's
//! parser, normalized form, index or plan, and prefers plain code to fast code.

pub(crate) mod advised;
pub(crate) mod answer;
pub(crate) mod archive;
pub(crate) mod compare;
pub(crate) mod documents;
pub(crate) mod draft;
pub(crate) mod engine;
pub(crate) mod eval;
pub(crate) mod json;
pub(crate) mod kept;
pub(crate) mod outline;
pub(crate) mod parse;
pub(crate) mod print;
pub(crate) mod random;
pub(crate) mod range;
pub(crate) mod selector;
pub(crate) mod selectors;
pub(crate) mod text;
pub(crate) mod tree;
