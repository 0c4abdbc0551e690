//! What the command line and the servers share: sessions by path, in folders and in stores, answers as JSON, notes on
//! empty answers, and failures with their codes (RUNTIME §7).
//!
//! All print what this module makes, in the same bytes. It takes names, limits and options and
//! returns text; it does not know arguments, terminals or protocols.

pub(crate) mod answer;
mod failure;
pub(crate) mod folders;
pub(crate) mod followed;
pub(crate) mod known;
pub mod opened;
pub(crate) mod sessions;
pub(crate) mod shell;
pub(crate) mod stores;

pub(crate) use crate::support::text::clean;
pub(crate) use crate::support::text::escaped;
pub(crate) use crate::support::text::{counted, printable};
pub use failure::Exit;
pub(crate) use failure::{Failure, Result};

/// A text as a literal of a selector. The command line may not know the syntax.
pub(crate) fn quote(text: &str) -> String {
    crate::query::syntax::quote(text)
}
