//! A query engine for LLM context trees.
//!
//! PACT keeps a language model's context as a tree: regions `^sys`, `^seq` and `^ah`, turns,
//! containers, blocks; every cycle commits an immutable snapshot. This crate reads such trees,
//! indexes them, and answers selectors over them.
//!
//! ```
//! use pactql::engine::Engine;
//! use pactql::history::Session;
//!
//! let session = Session::from_slice(
//!     br#"{"root":{"children":[{"id":"seq","nodeType":"^seq","children":[
//!         {"id":"mt:1","nodeType":"mt","children":[
//!             {"id":"cb:1","nodeType":"cb","role":"user","content":"Hello"},
//!             {"id":"cb:2","nodeType":"cb","role":"assistant","content":"Hi!"}]}]}]}}"#,
//! )?;
//! let engine = Engine::new();
//! let replies = engine.rows(&session, "@t0 ^seq .mt:depth(1) .cb[role='assistant']")?;
//! assert_eq!(replies.ids().collect::<Vec<_>>(), ["cb:2"]);
//!
//! let by_role = engine.prepare("@t0 .cb[role=$role]")?;
//! let asked = by_role.bind([("role", "user".into())])?.rows(&session)?;
//! assert_eq!(asked.count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | stage | in | out | module |
//! |---|---|---|---|
//! | lex, parse | text | spanned AST | [`syntax`] |
//! | lower, normalize | AST, edition | [`ir::Query`] | [`ir`] |
//! | plan, bind | query, values | [`plan::Plan`], [`plan::Bound`] | [`plan`] |
//! | run | bound plan, snapshot | rows | [`exec`] |
//! | answer | rows, history | [`engine::Selection`] | [`history`], [`engine`] |
//! | read | bytes | [`tree::Tree`] | [`tree`], [`interop`] |
//! | index | trees | [`index::Snapshot`] | [`index`] |
//! | choose | cache, query, number of tokens | [`budget::Resolution`] | [`budget`] |
//!
//! `docs/architecture.md` has the picture and a paragraph a room; `docs/language.md` the
//! language.

pub mod budget;
#[cfg(feature = "cli")]
pub mod cli;
pub mod diag;
pub mod engine;
pub mod exec;
pub mod history;
pub mod index;
pub mod interop;
pub mod ir;
#[cfg(feature = "mcp")]
mod mcp;
pub mod plan;
#[cfg(feature = "cli")]
mod present;
pub mod syntax;
pub mod tree;
