//! Reports on what a model saw and what it cost.

mod prefix;
#[cfg(feature = "tokens")]
mod tokenizer;
