//! How long selectors take: runs of many operations by several threads, and what their times say.
//!
//! ```text
//! mix ─▶ run ─▶ tally ─▶ statistics ─▶ baseline
//!        └─▶ compare ──────┘
//! ```
//!
//! It must not know arguments, terminals, or where sessions come from.

pub(crate) mod allocations;
pub(crate) mod baseline;
pub(crate) mod compare;
pub(crate) mod mix;
pub(crate) mod run;
pub(crate) mod statistics;
pub(crate) mod tally;
