//! A query engine for LLM context trees.

pub mod ir;
pub mod tree;
