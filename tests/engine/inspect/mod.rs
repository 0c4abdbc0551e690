//! Reports on what a model saw and what it cost.

#[cfg(feature = "tokens")]
mod tokenizer;
