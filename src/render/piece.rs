//! What a block is to a provider: text, a call, an image, … with the role and the message it
//! belongs to.

use super::block::ThreadBlock;
use super::error::RenderError;
use super::json::quoted;
use super::media::Media;
use super::provider::Provider;
use crate::json::{ValueType, elements, get, members, string, value_type};
use std::borrow::Cow;

/// The part of a request that a block becomes. Texts are JSON strings.
pub(super) enum SentPiece {
    Nothing,
    /// Text, also of a kind that no API has a form for.
    Text(String),
    Call(String),
    Thinking(String),
    Image(Media),
    Document(Media),
}

impl SentPiece {
    /// Reads a block.
    pub(super) fn from_block(block: &ThreadBlock) -> Result<Self, RenderError> {
        let content = block.content().filter(|content| *content != "null");
        if let Some(what) = block.text("data_verbatim") {
            return Ok(of_verbatim(&what, block.content()));
        }
        Ok(match (block.kind(), content) {
            (Some("call"), content) => Self::Call(text_of(content.unwrap_or("\"\""))),
            (Some("image"), content) => {
                let image = content.and_then(Media::image);
                Self::Image(image.ok_or_else(|| no_image(block))?)
            }
            (_, None) => Self::Nothing,
            (Some("thinking"), Some(content)) => Self::Thinking(text_of(content)),
            (Some("document"), Some(content)) => match Media::document(content) {
                Some(media) => Self::Document(media),
                None => Self::Text(text_of(content)),
            },
            (_, Some(content)) => Self::Text(text_of(content)),
        })
    }
}

pub(super) struct SentBlock<'a> {
    pub(super) block: Cow<'a, ThreadBlock>,
    /// What it is; `None` if it is written as it came, because it was imported in the form of the API.
    pub(super) piece: Option<SentPiece>,
}

impl<'a> SentBlock<'a> {
    pub(super) fn new(
        provider: Provider,
        block: Cow<'a, ThreadBlock>,
    ) -> Result<Self, RenderError> {
        let form = match provider {
            Provider::OpenAi => CHAT,
            provider => provider.name(),
        };
        let as_it_came = provider == Provider::Thread || is_of_form(&block, form);
        let piece = if as_it_came {
            None
        } else {
            Some(SentPiece::from_block(&block)?)
        };
        Ok(Self { block, piece })
    }
}

fn no_image(block: &ThreadBlock) -> RenderError {
    RenderError::block(
        block.id(),
        "expected an image as content: a URL, or base64 data with its media type",
        "give it content such as {\"url\": \"https://…\"} or \
         {\"media_type\": \"image/png\", \"data\": \"…\"}, or another kind, such as `text`",
    )
}

/// A part that an import kept as the JSON it was. It is sent as that text, except parts of OpenAI
/// messages that other APIs have, too.
fn of_verbatim(what: &str, content: Option<&str>) -> SentPiece {
    let content = content.unwrap_or("null");
    let found = members(content);
    let kind = get(&found, "type").and_then(string);
    if let ("part", Some(kind)) = (what, kind) {
        let refusal = get(&found, "refusal").filter(|text| value_type(text) == ValueType::String);
        match (&*kind, refusal) {
            ("refusal", Some(text)) => return SentPiece::Text(text.to_owned()),
            ("file", _) => {
                if let Some(media) = Media::document(content) {
                    return SentPiece::Document(media);
                }
            }
            _ => {}
        }
    }
    SentPiece::Text(text_of(content))
}

/// Content as a JSON string: the string itself, or the JSON text of any other value.
pub(super) fn text_of(content: &str) -> String {
    if value_type(content) == ValueType::String {
        content.to_owned()
    } else {
        quoted(content)
    }
}

/// The role that a block is sent with. An imported block has that of its message. Of the others,
/// calls and reasoning are the assistant's, results are a tool's, and an image is the user's
/// unless it belongs to a result, as no API takes it from anyone else.
pub(super) fn role(block: &ThreadBlock) -> &str {
    let role = block.role();
    if is_imported(block) {
        return role;
    }
    let is_tools = matches!(role, "tool" | "function");
    match block.kind() {
        Some("call" | "thinking") => "assistant",
        Some("result") if role != "function" => "tool",
        Some("error") if block.text("data_call_id").is_some() => "tool",
        Some("image") if !is_tools => "user",
        Some("document") if !is_tools && !is_text(block) => "user",
        _ => role,
    }
}

/// Whether the block was a part of an imported message, whose position `data_message` is. Blocks
/// that were added as one message have the id of its first block there.
pub(super) fn is_imported(block: &ThreadBlock) -> bool {
    let message = block.data("data_message");
    message.is_some_and(|message| value_type(message) == ValueType::Other)
}

/// Whether the block was a part of an imported message in the form of an API, which `data_form`
/// names; Chat Completions if there is none.
pub(super) fn is_of_form(block: &ThreadBlock, form: &str) -> bool {
    let found = block.text("data_form");
    is_imported(block) && found.as_deref().unwrap_or(CHAT) == form
}

pub(super) const CHAT: &str = "openai";

fn is_text(block: &ThreadBlock) -> bool {
    block.content().map(value_type) == Some(ValueType::String)
}

/// The id of the call that a block is a result of. SWE-agent's logs have a list of ids, which
/// counts if it has one.
pub(super) fn result_of(block: &ThreadBlock) -> Option<Cow<'_, str>> {
    if !matches!(role(block), "tool" | "function") {
        return None;
    }
    block.text("data_call_id").or_else(|| {
        let ids = elements(block.data("data_tool_call_ids")?);
        match ids[..] {
            [id] => string(id),
            _ => None,
        }
    })
}

/// Whether `next`, the following block, belongs to the same message.
pub(super) fn same_message(block: &ThreadBlock, next: &ThreadBlock) -> bool {
    if role(block) != role(next) {
        return false;
    }
    let message = block.data("data_message");
    if message != next.data("data_message") {
        return false;
    }
    // Results of several calls are several messages, unless they were imported as one.
    let result = result_of(block);
    let same_result = result == result_of(next);
    match message {
        Some(_) if is_of_form(block, CHAT) => true,
        Some(_) => same_result,
        None if block.parent() != next.parent() => false,
        None => role(block) == "assistant" || (result.is_some() && same_result),
    }
}

/// The id of a call and the name of its function, as JSON. A call that was not imported has the
/// block's id, and its function's name as key.
pub(super) fn call_of(block: &ThreadBlock) -> (String, String) {
    let field = |name: &str| block.data(name).map(str::to_owned);
    let id = field("data_call_id").unwrap_or_else(|| quoted(block.id()));
    let name = field("data_call_name");
    (
        id,
        name.unwrap_or_else(|| quoted(block.key().unwrap_or("unknown"))),
    )
}

/// The form that a list was imported in, if its blocks do not imply it.
pub(super) fn shape(block: &ThreadBlock) -> Cow<'_, str> {
    block.text("data_shape").unwrap_or_default()
}

/// The JSON of a block that was imported as the whole of something: a `message`, a `content`, a `call`.
pub(super) fn verbatim(block: &ThreadBlock, what: &str) -> Option<String> {
    let is_it = block.text("data_verbatim").as_deref() == Some(what);
    is_it.then(|| block.content().unwrap_or("null").to_owned())
}

/// Whether an imported part had no members but its type and its content.
pub(super) fn is_plain(block: &ThreadBlock) -> bool {
    block.data("data_verbatim").is_none() && block.data("data_part").is_none()
}

/// A member of the part that the block was, kept in `data_part`, or else in the field of its name.
pub(super) fn member_of_part(block: &ThreadBlock, name: &str) -> Option<String> {
    let part = members(block.data("data_part").unwrap_or_default());
    let kept = get(&part, name).or_else(|| block.data(&format!("data_{name}")));
    kept.filter(|value| *value != "null").map(str::to_owned)
}
