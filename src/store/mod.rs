//! Sessions in a database: the relational layout of STORE §2, in SQLite and PostgreSQL.
//!
//! A commit writes the units it touched; everything else is shared rows. This module must not know
//! selectors, arguments or providers; `engine` asks it for sessions, snapshots and parts of them.
//!
//! | part | files |
//! |---|---|
//! | databases | `sql`, `sqlite`, `postgres`, `postgres_client`, `home`, `schema`, `wide` |
//! | units as rows, and back | `encode`, `attrs`, `decode`, `rows`, `present` |
//! | writing | `lease`, `write`, `session`, `queue`, `core`, `records`, `garbage` |
//! | reading | `catalog`, `candidates`, `load`, `archive`, `newest` |
//! | copies as Parquet files | `columnar` |
//! | sessions as wholes | `manage`, `erase`, `verify`, `sums` |
//! | the text index | `texts`, `texts_build`, `texts_check`, `grams` |
//! | errors | `error` |

mod archive;
mod attrs;
mod candidates;
mod catalog;
mod columnar;
mod core;
mod decode;
mod encode;
mod erase;
mod error;
mod garbage;
mod grams;
mod home;
mod lease;
mod load;
mod manage;
mod new_file;
mod newest;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_client;
mod present;
mod queue;
mod records;
mod rows;
mod schema;
mod session;
mod sql;
mod sqlite;
mod sums;
mod texts;
mod texts_build;
mod texts_check;
mod verify;
mod wide;
mod write;

pub(crate) use archive::Stored;
#[cfg(feature = "cli")]
pub(crate) use candidates::metas;
pub(crate) use candidates::{
    Candidate, Glob, Hit, candidates, count, hits, last, listed, matching, near,
};
pub(crate) use catalog::{
    Entry, Listed, all, by_id, find, free, get, last_number, of_response, of_source,
};
pub use columnar::parquet_views;
#[cfg(feature = "parquet")]
pub(crate) use columnar::{ExportOptions, export, import};
pub(crate) use core::{Core, WriteOptions};
pub(crate) use erase::erase;
pub(crate) use error::StoreError;
pub(crate) use home::{Home, Options as HomeOptions};
pub(crate) use manage::{Beside, Import, Keep, Removed, delete, fork, prune, rename};
pub(crate) use newest::{Among, Extent, Newest, newest};
pub(crate) use records::{AttemptRow, attempts, pins};
pub(crate) use session::{Job, SessionWriter, Work, last_time, retired};
pub(crate) use sql::{Database, Row};
pub(crate) use texts::{drop_text_index, text_index};
pub(crate) use texts_build::{index_texts, with_text};
pub(crate) use texts_check::verify_texts;
pub(crate) use verify::verify;
pub(crate) use write::Change;

#[cfg(test)]
mod plans;
#[cfg(test)]
mod tests;
