//! A query engine for LLM context trees.
//!
//! PACT keeps a language model's context as a tree: regions `^sys`, `^seq` and `^ah`; turns,
//! containers and blocks inside them. Every cycle of the conversation commits an immutable snapshot
//! of the tree. This crate reads such snapshots, indexes them, and runs selectors over them: over
//! one snapshot, over all of them, or over a range, which returns what changed.
//!
//! ```
//! use pactql::{Engine, Session, explain::ExplainOptions};
//!
//! let engine = Engine::new(); // plan cache and limits; share one per process
//! let session = Session::open("fixtures/support-agent.jsonl")?;
//!
//! // The nodes that a selector matches.
//! for node in &engine.rows(&session, "@t0 ^seq .mt:depth(1) .cb[role='assistant']")? {
//!     println!("{}: {}", node.id(), node.text());
//! }
//!
//! // Compiled once, with parameters by name.
//! let by_role = engine.prepare("@t0 .cb[role=$role]")?;
//! let questions = by_role.bind([("role", "user".into())])?.rows(&session)?;
//! println!("{} questions", questions.count());
//!
//! // What changed between snapshots.
//! let diff = engine.range(&session, "@t-3..@t0 .cb")?;
//! assert_eq!(diff.diffs.len(), 3);
//!
//! // How a selector is read and planned.
//! println!("{}", engine.explain(Some(&session), "@t0 .cb[ttl<=1]", ExplainOptions::default())?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Phases
//!
//! ```text
//! text ──syntax::parse──▶ AST ──ir::compile──▶ SelectorQuery ──plan::compile──▶ Plan ──plan::bind──▶ Bound ─┐
//!                                                                                            exec::run ──▶ rows
//! bytes ──tree::read_slice──▶ Document ──tree::arrange──▶ Tree ──index::Writer::append──▶ Snapshot ─┘
//! ```
//!
//! | phase | in | out | module |
//! |---|---|---|---|
//! | lex, parse | text | spanned AST | `query::syntax` |
//! | lower, normalize | AST, edition | `SelectorQuery` | `query::ir` |
//! | plan, bind | query, values | `Plan`, `Bound` | `query::plan` |
//! | execute | bound plan, snapshot | rows in result order | `query::exec` |
//! | read | bytes | `Tree` | `tree`, [`logs`] |
//! | index | trees | `Snapshot` | `index` |
//! | compare, merge | rows of many snapshots | diffs, one list | `history` |
//! | answer | selector, session | [`Selection`], [`RangeDiff`] | `engine` |
//! | keep | commits | rows of a database (`Store`) | `store` |
//! | record | provider calls | the next snapshots of a `Store`'s sessions (`record`) |
//! | render | snapshot | [`render::Thread`], a provider's request | [`mod@render`] |
//! | inspect | sessions | reports on tokens and costs | [`inspect`] |
//! | choose | documents, query, number of tokens | [`budget::Resolution`] | [`budget`] |
//!
//! # Where a name is
//!
//! At the root is what most programs write: an engine, sessions and selections; a context and its
//! messages; a store; errors. The rest is in the module of its subject, each name in one place:
//!
//! | module | what is in it |
//! |---|---|
//! | [`selection`] | the nodes and ids of a selection, and why it is empty |
//! | [`history`] | snapshots over time: diffs of ranges, blame, attempts |
//! | [`explain`] | how a selector is read, planned and run |
//! | [`context`] | commits, limits, clocks, references, streams, requests |
//! | [`mod@render`] | requests of providers |
//! | [`error`] | the parts of an error, the errors of files and documents |
//! | [`inspect`] | reports on tokens, costs and what was sent |
//! | [`logs`] | importing chat logs; recording calls |
//! | [`budget`] | documents that fit a number of tokens |
//! | `store` | sessions of a `Store`: retention, imports, text index, answers over many, Parquet files |
//! | [`sql`] | a selector as one statement over a store |
//!
//! `docs/architecture.md` describes each module, `docs/language.md` the selectors. JSON values in
//! the interface are those of `serde_json`, which is part of it.

// The library alone leaves unused what the command line and the servers use. A build with all features finds what nothing
// uses.
#![cfg_attr(
    not(all(feature = "cli", feature = "mcp", feature = "view")),
    allow(dead_code, unused_imports)
)]

mod advice;
mod app;
pub mod budget;
mod engine;
pub mod history;
#[expect(missing_docs, reason = "few of its names are in the interface")]
mod index;
pub mod inspect;
#[expect(missing_docs, reason = "few of its names are in the interface")]
mod json;
pub mod logs;
mod query;
pub mod render;
mod runtime;
#[cfg(feature = "store")]
pub mod store;
mod support;
#[expect(missing_docs, reason = "few of its names are in the interface")]
mod tree;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use app::{cli, opened};
pub use query::sql;

#[cfg(feature = "tokio")]
pub use engine::AsyncContext;
pub use engine::{
    Answer, Context, ContextBuilder, Engine, EngineBuilder, IntoNode, Message, Node, Prepared,
    Selection,
};
pub use history::address::History;
pub use history::range::{RangeDiff, RangeOptions};
pub use history::session::Session;
pub use history::snapshot_diff::DiffOptions;
pub use index::Snapshot;
pub use logs::file::SessionFile;
pub use query::ir::{Address, Edition};
pub use query::plan::Value;
pub use render::provider::Provider;
pub use runtime::{NewNode, Policy};
#[cfg(feature = "store")]
pub use store::build::{Store, StoreBuilder};
pub use support::cancel::{Cancel, Cancelled};
pub use support::diag::{Code, ColorChoice, Error};

/// What the rows of a [`Selection`] are read through, and why there are none.
pub mod selection {
    pub use crate::advice::EmptyReason;
    pub use crate::engine::{Fit, Headers, Ids, Nodes, SelectionAddress};
}

/// How a selector is read, planned and run.
pub mod explain {
    pub use crate::engine::{
        Analysis, CacheStats, CheckReport, Desugared, Explain, ExplainOptions, NotChosen, Pass,
        PlanLine, Runs, StepWork, StrategyLine,
    };
    pub use crate::query::exec::Counters;
}

/// What belongs to writing a session through a [`Context`]: commits, policies' limits, clocks,
/// references, streams, requests, standing selectors, and what is kept between two runs.
pub mod context {
    pub use crate::engine::{ContextState, Log, LogEntry, Request, Stream, Watch, attempted, sent};
    pub use crate::logs::file::write_context;
    pub use crate::runtime::{
        Clock, Commit, Limit, Measure, Reference, Scope, StepClock, SystemClock,
    };
}

/// The parts of an [`Error`], and the errors of reading files and documents.
pub mod error {
    pub use crate::history::session::LoadError;
    pub use crate::logs::file::FileError;
    pub use crate::query::ir::{NoAddress, UnknownEdition};
    pub use crate::support::diag::{Diagnostic, Label, Severity, Warning};
    pub use crate::tree::{InputError, InputFault, SourceError};
}

/// The phases themselves, for this project's benches, fuzz targets and white-box tests. Not part of
/// the crate's interface: anything here may change in any release.
#[doc(hidden)]
pub mod internals {
    /// Declares public modules with everything that private ones have public.
    macro_rules! open {
        ($($($module:ident)::+ as $name:ident,)*) => {
            $(#[allow(missing_docs)] pub mod $name { pub use crate::$($module)::+::*; })*
        };
    }
    open! {
        advice as advice,
        support::diag as diag,
        engine as engine,
        query::exec as exec,
        history as history,
        index as index,
        query::ir as ir,
        json as json,
        query::plan as plan,
        query::sql as sql,
        query::syntax as syntax,
        tree as tree,
    }
    #[cfg(feature = "mcp")]
    open! {
        app::mcp as mcp,
    }
}

/// Compiles and runs the Rust blocks of the documents.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/budget.md")]
    struct Budget;
    #[doc = include_str!("../docs/importing.md")]
    struct Importing;
    #[doc = include_str!("../docs/inspecting.md")]
    struct Inspecting;
    #[doc = include_str!("../docs/limits.md")]
    struct Limits;
    #[doc = include_str!("../docs/rendering.md")]
    struct Rendering;
    #[doc = include_str!("../docs/runtime.md")]
    struct Runtime;
    #[cfg(feature = "store")]
    #[doc = include_str!("../docs/store.md")]
    struct Store;
}
