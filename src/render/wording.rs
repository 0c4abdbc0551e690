//! What of a block reaches the model, whatever the provider's form.

use super::block::{BlockFields, ThreadBlock};
use super::media::Media;
use super::piece::{SentPiece, call_of};
use crate::json::{JsonValue, string};
use std::borrow::Cow;

/// What rendering sends of a block, as texts: without quotes of JSON, and without what a provider's
/// form adds around it.
///
/// ```
/// use pactql::{Session, render::{Contents, Thread, Wording}};
///
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let newest = session.history().latest().expect("a snapshot").clone();
/// let thread = Thread::from_snapshot(&newest, Contents::All);
/// let call = thread.blocks().iter().find(|block| block.kind() == Some("call")).expect("a call");
/// let wording = Wording::from_block(call);
/// assert!(wording.name.is_some() && wording.text.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wording {
    /// Of a call, the name of its function.
    pub name: Option<String>,
    /// The text; of a call, its arguments; of a tool definition, its JSON without white space.
    pub text: Option<String>,
    /// Whether it is binary: an image, or a document that is not text.
    pub media: bool,
}

impl Wording {
    /// Reads a block. Linear in its content.
    #[must_use]
    pub fn from_block(block: &ThreadBlock) -> Self {
        if block.is_tool() {
            let definition = block.definition();
            return Self {
                text: definition.map(|text| super::json::compact(&text).into_owned()),
                ..Self::default()
            };
        }
        let plain = |text: &str| string(text).map(|text| text.into_owned());
        let text = |text: String| Self {
            text: plain(&text),
            ..Self::default()
        };
        match SentPiece::from_block(block) {
            Ok(SentPiece::Nothing) => Self::default(),
            Ok(SentPiece::Text(found) | SentPiece::Thinking(found)) => text(found),
            Ok(SentPiece::Document(Media::Text(found))) => Self {
                text: Some(found),
                ..Self::default()
            },
            Ok(SentPiece::Call(arguments)) => Self {
                name: plain(&call_of(block).1),
                ..text(arguments)
            },
            Ok(SentPiece::Image(_) | SentPiece::Document(_)) | Err(_) => Self {
                media: true,
                ..Self::default()
            },
        }
    }

    /// The name and the text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = [&self.name, &self.text].into_iter();
        texts.filter_map(|text| text.as_deref())
    }
}

/// A [`Wording`] that borrows what is stored as it is sent.
#[derive(Debug, Default)]
pub(crate) struct SentTexts<'a> {
    name: Option<Cow<'a, str>>,
    pub(crate) text: Option<Cow<'a, str>>,
    pub(crate) media: bool,
}

impl<'a> SentTexts<'a> {
    /// As [`Wording::from_block`]; `system` says that the block is under `^sys`. Nothing else is read.
    pub(crate) fn new(block: impl BlockFields<'a>, system: bool) -> Self {
        if let Some(JsonValue::Text(text)) = block.field("content")
            && let Some(found) = Self::as_stored(block, system, text)
        {
            return found;
        }
        let wording = Wording::from_block(&ThreadBlock::apart(block, system));
        Self {
            name: wording.name.map(Cow::Owned),
            text: wording.text.map(Cow::Owned),
            media: wording.media,
        }
    }

    /// Of a block whose content is this text; `None` if it is not sent as it is.
    fn as_stored(block: impl BlockFields<'a>, system: bool, text: &'a str) -> Option<Self> {
        let name = match block.kind() {
            Some("image") => return None,
            Some("tool") if system => return None,
            Some("call") => match block.field("data_call_name") {
                None => Some(block.key().unwrap_or("unknown")),
                name => name.and_then(JsonValue::text),
            },
            _ => None,
        };
        block.field("data_verbatim").is_none().then_some(Self {
            name: name.map(Cow::Borrowed),
            text: Some(Cow::Borrowed(text)),
            media: false,
        })
    }

    /// The name and the text.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let texts = [&self.name, &self.text].into_iter();
        texts.filter_map(|text| text.as_deref())
    }
}
