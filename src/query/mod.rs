//! The query pipeline: the text of a selector becomes rows of a snapshot, or a statement of SQL.
//!
//! | phase | in | out | module |
//! |---|---|---|---|
//! | lex, parse | text | AST with spans | `syntax` |
//! | lower, normalize | AST, edition | `Query`: canonical, without sugar | `ir` |
//! | plan, bind | `Query`, values | `Plan`, `Bound` | `plan` |
//! | run | `Bound`, snapshot | rows in result order | `exec` |
//! | or: emit | `Query`, dialect | one statement | `sql` |
//!
//! A phase may import an earlier one, never a later one. `exec` alone meets data, as snapshots of
//! [`crate::index`]. Nothing here knows sessions, files or the command line.

#![allow(
    missing_docs,
    reason = "private but for `sql`, and what the root exports has its documentation"
)]

pub(crate) mod exec;
pub(crate) mod ir;
pub(crate) mod plan;
pub mod sql;
pub(crate) mod syntax;
