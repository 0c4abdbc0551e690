//! The oracle: everything the engine is compared with, written from the language's rules alone.
//!
//! Nothing here uses the engine's parser, normalized form, index or plan; where a rule can be
//! stated plainly or run fast, it is stated plainly.

pub(crate) mod answer;
pub(crate) mod compare;
pub(crate) mod documents;
pub(crate) mod draft;
pub(crate) mod engine;
pub(crate) mod eval;
pub(crate) mod json;
pub(crate) mod outline;
pub(crate) mod parse;
pub(crate) mod random;
pub(crate) mod range;
pub(crate) mod selector;
pub(crate) mod selectors;
pub(crate) mod text;
pub(crate) mod tree;
