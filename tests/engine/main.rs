//! Tests through the library: golden cases of the sources, one case for each rule of the
//! specification, and properties against a reference interpreter that only walks trees.
//!
//! One binary for all of them, because linking costs more than compiling a test.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing helper fails its test"
)]

mod budget;
mod cancel;
mod cases;
mod citations;
mod comparisons;
mod conditions;
mod content;
mod counters;
mod deltas;
mod diagnostics;
mod diffs;
mod editions;
mod empty;
mod equivalence;
mod explain;
mod facade;
mod golden;
mod inspect;
mod language;
mod layers;
mod lazy;
mod logs;
mod pairs;
mod places;
mod properties;
mod public_api;
mod range_cost;
mod ranges;
mod real_data;
#[cfg(feature = "store")]
mod record;
mod reference;
mod render;
mod restores;
mod rules;
mod runtime;
mod sharing;
#[cfg(feature = "store")]
mod sql;
#[cfg(feature = "store")]
mod store;
mod support;
mod syntax_properties;
mod threads;
mod tree;
