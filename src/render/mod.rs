//! Snapshots as requests: the provider thread, and the forms of the providers' APIs.
//!
//! A [`Thread`] is an owned request without any provider's form: blocks, tool definitions and
//! parameters. [`render()`] writes a thread or a snapshot in the form of a [`Provider`];
//! [`render_to`] writes it message by message. `docs/rendering.md` says which field of the tree
//! becomes which field of a request.
//!
//! This module knows trees and snapshots. It must not know selectors, log files or the command
//! line, and it sends nothing anywhere.
//!
//! | part | files |
//! |---|---|
//! | the request | `thread`, `block`, `record`, `source` |
//! | the forms | `plain`, `openai`, `responses`, `anthropic` |
//! | imported messages as they were | `openai`, `anthropic_imported`, `responses_imported` |
//! | what the forms share | `piece`, `media`, `tool`, `request`, `json` |

mod anthropic;
mod anthropic_imported;
mod block;
mod error;
pub(crate) mod json;
mod media;
pub(crate) mod openai;
mod piece;
mod plain;
mod provider;
mod record;
mod request;
mod responses;
mod responses_imported;
mod source;
mod thread;
mod tool;

pub use block::ThreadBlock;
pub use error::RenderError;
pub use provider::Provider;
pub use source::Source;
pub use thread::{Scope, Thread, request_of};

use std::io::Write;

/// The request as one line of JSON with a line feed. Equal snapshots give equal bytes. Linear in
/// the blocks.
///
/// # Errors
/// A block, a tool definition or parameters that the provider's API has no form for.
///
/// ```
/// use pactql::{Provider, Session, render};
///
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let newest = session.history().latest().expect("a snapshot").clone();
/// let request = render(&newest, Provider::Anthropic)?;
/// assert!(request.starts_with("{\"system\":"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn render<'a>(
    source: impl Into<Source<'a>>,
    provider: Provider,
) -> Result<String, RenderError> {
    let mut out = Vec::new();
    render_to(source, provider, &mut out)?;
    // The writers write text.
    Ok(String::from_utf8(out).unwrap_or_default())
}

/// [`render()`] into a writer, one message at a time.
///
/// # Errors
/// Those of [`render()`], which can come after part of the request was written, and those of the
/// writer.
pub fn render_to<'a>(
    source: impl Into<Source<'a>>,
    provider: Provider,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let source = source.into();
    match provider {
        Provider::Thread => plain::write(source, out),
        Provider::OpenAi => openai::write(source, out),
        Provider::OpenAiResponses => responses::write(source, out),
        Provider::Anthropic => anthropic::write(source, out),
    }
}
