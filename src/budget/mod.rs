//! Which documents fit a budget (source 004, RUNTIME §6): caches of documents, their scores
//! against a query, and the greedy filling of a number of tokens.
//!
//! A selection has three phases, strictly one after the other: every document is scored by
//! itself (`score`), all are ordered by score and id, and the budget is filled from the front
//! (`select`). `cache` reads what [`build()`] wrote, or what another tool wrote in the same
//! layout; [`verify()`] finds everything that is wrong with a cache. `terms` is the index a large
//! cache is scored from, with the same outcome as reading every document.
//!
//! This room must not know selectors, trees or the command line, and no clock, locale, thread
//! count or directory order reaches its answers: the time a cache was built at is the caller's.

pub(crate) mod build;
pub(crate) mod cache;
mod error;
pub(crate) mod files;
pub(crate) mod score;
pub(crate) mod select;
mod terms;
mod verify;

pub use build::{BuildOptions, Indexing, build};
pub use cache::{BuildConfig, Cache, Entry, Manifest, version_of};
pub use error::{CacheError, Fault};
pub use score::Query;
#[doc(hidden)]
pub use score::{Measure, tokens};
#[doc(hidden)]
pub use select::{Candidate, Filling, fill};
pub use select::{Chosen, Resolution, Summary, Why};
pub use verify::{Inspection, inspect, verify};
