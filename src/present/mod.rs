//! What every way of asking has in common, whoever asks: sessions found by their paths, answers
//! as JSON, notes on empty ones, and failures with their codes (RUNTIME §7).
//!
//! The command line prints what this room makes, and the server of the Model Context Protocol
//! hands it on, so that both say the same in the same bytes. It must not know arguments,
//! terminals or protocols: names, limits and options come in, texts go out.

pub(crate) mod answer;
mod failure;
pub(crate) mod node;
pub(crate) mod notes;
pub(crate) mod sessions;
mod text;

pub use failure::Exit;
pub(crate) use failure::Failure;
pub(crate) use text::{clean, counted};
