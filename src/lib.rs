//! A query engine for LLM context trees.

#[cfg(feature = "cli")]
pub mod cli;
pub mod diag;
pub mod engine;
pub mod exec;
pub mod index;
pub mod interop;
pub mod ir;
pub mod plan;
pub mod syntax;
pub mod time;
pub mod tree;
