//! Which documents fit a budget (source 004, RUNTIME §6): caches of documents, their scores
//! against a query, and the greedy filling of a number of tokens.
//!
//! A selection has three phases, strictly one after the other: every document is scored by
//! itself ([`score`]), all are ordered by score and id, and the budget is filled from the front
//! ([`select`]). [`cache`] reads what [`mod@build`] wrote, or what another tool wrote in the same
//! layout; [`mod@verify`] finds everything that is wrong with a cache. `terms` is the index a large
//! cache is scored from, with the same outcome as reading every document.
//!
//! This room must not know selectors, trees or the command line, and no clock, locale, thread
//! count or directory order reaches its answers: the time a cache was built at is the caller's.

pub mod build;
pub mod cache;
mod error;
pub(crate) mod files;
pub mod score;
pub mod select;
mod terms;
pub mod verify;

pub use build::{BuildOptions, Indexing, build};
pub use cache::{Cache, version_of};
pub use error::{CacheError, Fault};
pub use score::Query;
pub use select::Resolution;
pub use verify::{Inspection, inspect, verify};
