//! Tests of the engine as a whole: golden tests of the sources, one case a rule, and properties
//! against a reference interpreter that only walks trees.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod content;
mod diffs;
mod editions;
mod equivalence;
mod examples;
mod golden;
mod properties;
mod ranges;
mod real_data;
mod reference;
mod rules;
mod support;
mod threads;
