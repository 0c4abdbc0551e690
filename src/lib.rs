//! A query engine for LLM context trees.
//!
//! PACT keeps a language model's context as a tree: regions `^sys`, `^seq` and `^ah`; turns,
//! containers and blocks inside them. Every cycle of the conversation commits an immutable snapshot
//! of the tree. This crate reads such snapshots, indexes them, and runs selectors over them: over
//! one snapshot, over all of them, or over a range, which returns what changed.
//!
//! ```
//! use pactql::{DiffOptions, Engine, ExplainOptions, Session};
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
//! text ──syntax::parse──▶ AST ──ir::compile──▶ Query ──plan::compile──▶ Plan ──plan::bind──▶ Bound ─┐
//!                                                                                            exec::run ──▶ rows
//! bytes ──tree::read_slice──▶ Document ──tree::arrange──▶ Tree ──index::Writer::append──▶ Snapshot ─┘
//! ```
//!
//! | phase | in | out | module |
//! |---|---|---|---|
//! | lex, parse | text | spanned AST | `syntax` |
//! | lower, normalize | AST, edition | `Query` | `ir` |
//! | plan, bind | query, values | `Plan`, `Bound` | `plan` |
//! | execute | bound plan, snapshot | rows in result order | `exec` |
//! | read | bytes | `Tree` | `tree`, [`logs`] |
//! | index | trees | `Snapshot` | `index` |
//! | compare, merge | rows of many snapshots | diffs, one list | `history` |
//! | answer | selector, session | [`Selection`], [`RangeDiff`] | `engine` |
//! | keep | commits | rows of a database (`Store`) | `store` |
//! | record | provider calls | the next snapshots of a `Store`'s sessions (`record`) |
//! | render | snapshot | [`Thread`], a provider's request | [`mod@render`] |
//! | inspect | sessions | reports on tokens and costs | [`inspect`] |
//! | choose | documents, query, number of tokens | [`budget::Resolution`] | [`budget`] |
//!
//! `docs/architecture.md` describes each module, `docs/language.md` the selectors. JSON values in
//! the interface are those of `serde_json`, which is part of it.

mod app;
pub mod budget;
mod engine;
mod history;
mod index;
pub mod inspect;
mod json;
pub mod logs;
mod query;
pub mod render;
mod runtime;
#[cfg(feature = "store")]
mod store;
mod support;
mod tree;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use app::cli;
pub use query::sql;

#[cfg(feature = "tokio")]
pub use engine::AsyncContext;
pub use engine::{
    Analysis, Answer, CacheStats, CheckReport, Context, ContextBuilder, Desugared, EmptyReason,
    Engine, EngineBuilder, Explain, ExplainOptions, Fit, Headers, Ids, IntoNode, Kept, Log,
    LogEntry, Message, Node, Nodes, NotChosen, Part, Pass, PlanLine, Prepared, Request, Runs,
    Selection, SelectionAddress, StrategyLine, Stream, sent,
};
pub use history::{
    At, Attempt, AttemptStatus, Attempts, Blame, BlameEvent, BlameKind, Change, ChangedNode,
    Children, ContentDiff, ContentMode, ContentOptions, ContentSummary, Delta, DiffOptions,
    DiffStats, History, LoadError, Material, MaterialFields, Materialized, Move, PairDiff,
    RangeDiff, RangeError, RangeLimits, RangeMode, RangeOptions, Session, SnapshotDiff,
    SnapshotRef, Snapshots, SnapshotsIter, TokenHunk, TokenRun, blame,
};
pub use index::Snapshot;
pub use logs::file::{FileError, SessionFile, write_context};
pub use query::exec::Counters;
pub use query::ir::{Address, Edition};
pub use query::plan::Value;
pub use render::{Provider, RenderError, Thread, render};
pub use runtime::{
    Clock, Commit, Limit, Measure, NewNode, Policy, Reference, Scope, StepClock, SystemClock,
};
#[cfg(feature = "store")]
pub use store::parquet_views;
#[cfg(feature = "store")]
pub use store::{
    Damage, Durability, ImportStopped, LogImport, Pruned, Retention, SessionAnswer, SessionIds,
    SessionInfo, SqlRow, Store, StoreAnswers, StoreBuilder, StoreIds, TextIndex,
};
#[cfg(feature = "parquet")]
pub use store::{ParquetExport, ParquetExported, ParquetImported};
pub use support::cancel::{Cancel, Cancelled};
pub use support::diag::{Code, ColorChoice, Diagnostic, Error, Label, Severity, Warning};
pub use tree::{Fault, InputError, SourceError};

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
}

/// Compiles and runs the Rust blocks of the documents.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/budget.md")]
    struct Budget;
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
