//! What the benches share: the generated sessions, the ten query classes, the three baselines
//! the engine is measured against, and the ways of measuring.
//!
//! Nothing here knows how the engine works; it is asked through its public interface like the
//! baselines are.

#![allow(
    dead_code,
    reason = "every bench is a crate of its own and takes what it needs of this"
)]

pub(crate) mod bitset;
pub(crate) mod contenders;
pub(crate) mod engine;
pub(crate) mod generate;
pub(crate) mod memory;
pub(crate) mod pairs;
pub(crate) mod queries;
pub(crate) mod sqlite;
pub(crate) mod table;
pub(crate) mod timing;
pub(crate) mod walk;
