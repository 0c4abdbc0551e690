//! What the command line and the server of the Model Context Protocol share: sessions by path and in stores,
//! answers as JSON, notes on empty answers, and failures with their codes (RUNTIME §7).
//!
//! Both print what this module makes, in the same bytes. It takes names, limits and options and
//! returns text; it does not know arguments, terminals or protocols.

pub(crate) mod answer;
mod failure;
pub(crate) mod sessions;
pub(crate) mod stores;

#[cfg(feature = "mcp")]
pub(crate) use crate::support::text::{clean, escaped};
pub(crate) use crate::support::text::{counted, printable};
pub use failure::Exit;
pub(crate) use failure::Failure;

/// A text as a literal of a selector. The command line may not know the syntax.
pub(crate) fn quote(text: &str) -> String {
    crate::query::syntax::quote(text)
}
