//! What of a block reaches the model, whatever the provider's form.

use super::block::ThreadBlock;
use super::media::Media;
use super::piece::{SentPiece, call_of};
use crate::index::NodeRef;
use crate::json::string;

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

    /// As [`Wording::from_block`], of the block of a node; `system` says that it is under `^sys`. No other node is
    /// read.
    pub(crate) fn of_node(node: NodeRef<'_>, system: bool) -> Self {
        Self::from_block(&ThreadBlock::apart(node, system))
    }

    /// The name and the text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = [&self.name, &self.text].into_iter();
        texts.filter_map(|text| text.as_deref())
    }
}
