//! A query engine for LLM context trees.

pub mod diag;
pub mod exec;
pub mod index;
pub mod ir;
pub mod plan;
pub mod tree;
