//! Writing (RUNTIME §3): a plain model, random runs against it, what is refused, and golden tests
//! of the sources.

mod blame;
mod draft;
mod golden;
mod hashes;
mod invariants;
pub(crate) mod model;
mod ops;
mod panics;
pub(crate) mod properties;
mod refusals;
mod requests;
mod threads;
mod watch;
