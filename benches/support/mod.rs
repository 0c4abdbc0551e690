//! Shared by the benches: generated sessions, the ten query classes, the three baselines, and
//! measuring of time and memory.
//!
//! The engine is used through its public interface, like the baselines.

#![allow(
    dead_code,
    reason = "every bench is a crate of its own and takes what it needs of this"
)]

pub(crate) mod bitset;
pub(crate) mod by_hand;
pub(crate) mod callgrind;
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
