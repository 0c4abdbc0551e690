//! Snapshots as requests: the provider thread, and the forms of the providers' APIs.
//!
//! A [`Thread`] is an owned request without any provider's form: blocks, tool definitions and
//! parameters. [`request()`] writes a thread or a snapshot in the form of a [`Provider`];
//! [`write_request`] writes it message by message. `docs/rendering.md` says which field of the tree
//! becomes which field of a request.
//!
//! This module knows trees and snapshots. It must not know selectors, log files or the command
//! line, and it sends nothing anywhere.
//!
//! | part | files |
//! |---|---|
//! | the request | `thread`, `block`, `record` |
//! | the forms | `plain`, `openai`, `responses`, `anthropic`, `gemini`, `bedrock` |
//! | what of a block reaches the model | `wording` |
//! | which blocks are one message, and which call a result answers | `grouping`, `answers` |
//! | what the forms share | `head`, `piece`, `media`, `tool`, `json` |

mod answers;
mod anthropic;
mod bedrock;
mod block;
mod error;
mod gemini;
mod grouping;
mod head;
pub(crate) mod json;
mod media;
pub(crate) mod openai;
mod piece;
mod plain;
pub(crate) mod provider;
mod record;
mod responses;
mod thread;
mod tool;
mod wording;

pub(crate) use block::BlockFields;
pub use block::ThreadBlock;
pub use error::RenderError;
pub(crate) use grouping::Grouping;
pub(crate) use head::Head;
pub(crate) use json::{canonical, compact, push_member, quoted};
// Exported at the root of the crate.
#[doc(hidden)]
pub use provider::Provider;
pub(crate) use thread::parameters as parameters_of;
pub use thread::{Contents, Source, Thread};
pub(crate) use tool::is_kept;
pub(crate) use wording::SentTexts;
pub use wording::Wording;

use std::io::Write;

/// The request as one line of JSON with a line feed. Equal snapshots give equal bytes. Linear in
/// the blocks.
///
/// # Errors
/// A block, a tool definition or parameters that the provider's API has no form for.
///
/// ```
/// use pactql::{Provider, Session, render::request};
///
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let newest = session.history().latest().expect("a snapshot").clone();
/// let request = request(&newest, Provider::Anthropic)?;
/// assert!(request.starts_with("{\"system\":"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn request<'a>(
    source: impl Into<Source<'a>>,
    provider: Provider,
) -> Result<String, RenderError> {
    let mut out = Vec::new();
    write_request(source, provider, &mut out)?;
    // The writers write text.
    Ok(String::from_utf8(out).unwrap_or_default())
}

/// [`request()`] into a writer, one message at a time.
///
/// # Errors
/// Those of [`request()`], which can come after part of the request was written, and those of the
/// writer.
pub fn write_request<'a>(
    source: impl Into<Source<'a>>,
    provider: Provider,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let source = source.into();
    let head = head_of(source, provider)?;
    let (open, close) = head.around();
    out.write_all(open.as_bytes())?;
    if let Some(text) = &head.alone {
        out.write_all(text.as_bytes())?;
    } else {
        let mut first = true;
        let mut messages = Vec::new();
        let mut grouping = Grouping::new(provider);
        for block in source.blocks().skip(head.previous) {
            if !is_in_head(&block, &head)? {
                grouping.add(block, &mut messages)?;
                write_list(&mut messages, &mut first, out)?;
            }
        }
        grouping.end(&mut messages)?;
        write_list(&mut messages, &mut first, out)?;
    }
    out.write_all(close.as_bytes())?;
    Ok(())
}

/// Writes messages, with commas between all.
fn write_list(
    messages: &mut Vec<String>,
    first: &mut bool,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    for message in messages.drain(..) {
        if !std::mem::take(first) {
            out.write_all(b",")?;
        }
        out.write_all(message.as_bytes())?;
    }
    Ok(())
}

/// What a request in the form of an API has besides messages.
pub(crate) fn head_of(source: Source<'_>, provider: Provider) -> Result<Head, RenderError> {
    let head = match provider {
        Provider::Thread => return Ok(Head::empty()),
        Provider::OpenAi => Head::new(source, provider, None, "messages")?,
        Provider::OpenAiResponses => responses::head(source)?,
        Provider::Anthropic => anthropic::head(source)?,
        Provider::Gemini => gemini::head(source)?,
        Provider::Bedrock => bedrock::head(source)?,
    };
    for block in source.blocks().skip(head.previous) {
        if !is_in_head(&block, &head)? {
            return head.with_messages();
        }
    }
    Ok(head.without_messages())
}

/// Whether a block is in the head, and so in no message.
pub(crate) fn is_in_head(block: &ThreadBlock, head: &Head) -> Result<bool, RenderError> {
    Ok(match head.provider {
        Provider::Thread => false,
        _ if block.is_tool() => true,
        Provider::Anthropic => anthropic::is_system(block)?,
        Provider::Gemini => gemini::is_system(block)?,
        Provider::Bedrock => bedrock::is_system(block)?,
        _ => head.instructions.as_deref() == Some(block.id()),
    })
}

/// The message of some blocks in the form of an API; `None` if they are not exactly one.
#[cfg(feature = "store")]
pub(crate) fn message_of(provider: Provider, blocks: Vec<ThreadBlock>) -> Option<String> {
    let mut grouping = Grouping::new(provider);
    let mut messages = Vec::new();
    for block in blocks {
        grouping
            .add(std::borrow::Cow::Owned(block), &mut messages)
            .ok()?;
    }
    grouping.end(&mut messages).ok()?;
    match messages.len() {
        1 => messages.pop(),
        _ => None,
    }
}
