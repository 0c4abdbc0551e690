//! Execution: runs a bound plan over one snapshot.
//!
//! ```text
//! driver ─▶ choose ─▶ word ──────────────────────────▶ access ─▶ eval
//!    ├────▶ nearest ─▶ fill
//!    ├────▶ chunks ─▶ chain ─▶ window, axis, pick, zone, fill ─┘
//!    └────▶ inner ──▶ chain
//! ```
//!
//! [`run`] chooses a [`Strategy`] for a [`Bound`](crate::query::plan::Bound) plan, runs it, and gives
//! [`MatchedRows`] in result order. A step's matches are a set of rows. Tests read whichever index
//! structure of a segment is cheapest there; axes are row ranges and levels. Every run counts its
//! work; `explain --analyze` is the same run with a [`Trace`] that also records each step.
//!
//! Knows bound plans and indexes. It must not know selector text, unbound plans or histories.

mod access;
mod axis;
mod chain;
mod choose;
mod chunks;
mod cost;
mod driver;
mod eval;
mod fill;
mod inner;
mod inner_rows;
mod inside;
mod nearest;
mod order;
mod pick;
mod rows;
mod scan;
mod stats;
mod strategy;
mod tail;
mod trace;
mod window;
mod word;
mod zone;

pub use choose::strategy;
pub use cost::is_local;
pub use driver::{count, run, run_in, run_untailed, run_untailed_while, run_while, run_with_cores};
pub use inside::InsideRows;
pub use rows::{MatchedRows, RowIter};
pub use stats::{RunInput, SessionStats};
pub use strategy::{NotChosen, RunGoal, Strategy};
pub use tail::ResultTail;
pub(crate) use trace::SmallCounters;
pub use trace::{Counters, StepTrace, Trace};
