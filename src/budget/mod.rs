//! Choosing documents for a number of tokens (source 004, RUNTIME §6).
//!
//! A selection has three steps: score every document by itself (`score`), order the documents by
//! score and id, and fill the budget from the front (`fill`). [`Cache`] reads a directory that
//! [`build()`] or another tool wrote, and resolves queries with it; [`verify`] finds everything
//! that is wrong with one.
//!
//! This module must not know selectors, trees or the command line. No clock, locale, thread count
//! or directory order affects its answers: the caller passes the time of a build.

mod build;
mod cache;
mod error;
pub(crate) mod files;
mod fill;
mod inspect;
pub(crate) mod manifest;
mod resolution;
mod score;

pub use build::{BuildOptions, build};
pub use cache::Cache;
pub use error::{CacheError, CacheFault};
#[doc(hidden)]
pub use fill::{Candidate, Filling, fill};
pub use inspect::{Inspection, inspect, verify};
pub use manifest::{BuildConfig, Entry, Manifest, version_of};
pub use resolution::{Chosen, Resolution, Summary, Why};
pub use score::Query;
#[doc(hidden)]
pub use score::ScoreCounts;
