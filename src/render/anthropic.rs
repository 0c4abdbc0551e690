//! Anthropic Messages.
//!
//! Always a request, an object. System texts of `^sys` are `system`; later ones are the user's, as
//! messages have no such role. Neighbours of one role become one message. In a message, results
//! come before everything else, because the API asks for them right after their calls. Messages that
//! were imported in this form are written as they were.

use super::block::ThreadBlock;
use super::error::RenderError;
use super::head::Head;
use super::json::{
    braced, compact, list, object, object_in, push_member, push_members, quoted, value,
};
use super::media::{Media, filename};
use super::openai::push_others;
use super::piece::{
    SentBlock, SentPiece, call_of, is_of_form, is_plain, member_of_part, result_of, role,
    same_message, shape, text_of, verbatim,
};
use super::provider::Provider;
use super::thread::Source;
use crate::json::{get, members, string};
use std::borrow::Cow;

const FORM: &str = "anthropic";

pub(super) fn head(source: Source<'_>) -> Result<Head, RenderError> {
    let mut system = Vec::new();
    for block in source.system() {
        if let Some(part) = system_part(&block)? {
            system.push(part);
        }
    }
    let system = content(system).map(|content| ("system", content));
    Head::new(source, Provider::Anthropic, system, "messages")
}

pub(super) fn is_system(block: &ThreadBlock) -> Result<bool, RenderError> {
    Ok(system_part(block)?.is_some())
}

/// A part of a message: its JSON, and the text alone if it has nothing else.
struct MessagePart {
    json: String,
    plain: Option<String>,
}

impl MessagePart {
    fn new(members: impl IntoIterator<Item = (&'static str, Option<String>)>) -> Self {
        let members = members.into_iter();
        let json = object(members.filter_map(|(name, value)| Some((name, value?))));
        Self { json, plain: None }
    }
}

/// Content of some parts: a string if it is one plain text. `None` if there are none.
fn content(parts: Vec<MessagePart>) -> Option<String> {
    match <[MessagePart; 1]>::try_from(parts) {
        Ok([part]) => Some(part.plain.unwrap_or_else(|| list([part.json]))),
        Err(parts) if parts.is_empty() => None,
        Err(parts) => Some(list(parts.into_iter().map(|part| part.json))),
    }
}

/// Whether a block is of the system prompt by its place and its role.
fn is_of_system(block: &ThreadBlock) -> bool {
    block.is_system() && !block.is_tool() && matches!(role(block), "system" | "developer")
}

/// Whether a block goes into the system prompt of a request: one that came in this form, or a text.
pub(super) fn is_system_text(block: &ThreadBlock, form: &str) -> Result<bool, RenderError> {
    if !is_of_system(block) {
        return Ok(false);
    }
    let is_text = |piece: &SentPiece| match piece {
        SentPiece::Text(text) => text != "\"\"",
        piece => matches!(piece, SentPiece::Document(Media::Text(_))),
    };
    Ok(is_of_form(block, form) || is_text(&SentPiece::from_block(block)?))
}

/// The part of `system` that a block is, if it is one.
fn system_part(block: &ThreadBlock) -> Result<Option<MessagePart>, RenderError> {
    if !is_of_system(block) {
        return Ok(None);
    }
    if is_of_form(block, FORM) {
        let plain = plain_of(block).filter(|_| block.data("data_shape").is_none());
        let json = imported_part(block);
        return Ok(Some(MessagePart { json, plain }));
    }
    Ok(match SentPiece::from_block(block)? {
        SentPiece::Text(text) => text_part(text, cache_control(block)),
        SentPiece::Document(Media::Text(text)) => text_part(quoted(&text), cache_control(block)),
        _ => None,
    })
}

/// Whether a block goes into a message of the assistant's, else of the user's.
pub(super) fn is_assistant(block: &ThreadBlock) -> bool {
    result_of(block).is_none() && role(block) == "assistant"
}

/// Whether a block has no part in a message: the API refuses empty texts.
pub(super) fn is_refused(block: &ThreadBlock, piece: &SentPiece) -> bool {
    match piece {
        SentPiece::Nothing => true,
        SentPiece::Text(text) => text == "\"\"",
        SentPiece::Thinking(text) => text == "\"\"" && member_of_part(block, "signature").is_none(),
        _ => false,
    }
}

pub(super) fn message(blocks: Vec<SentBlock<'_>>) -> String {
    if blocks[0].piece.is_none() {
        let blocks: Vec<&ThreadBlock> = blocks.iter().map(|sent| &*sent.block).collect();
        return imported_message(&blocks);
    }
    let is_assistant = is_assistant(&blocks[0].block);
    let (mut results, mut parts) = (Vec::new(), Vec::new());
    for SentBlock { block, piece } in blocks {
        let piece = piece.unwrap_or(SentPiece::Nothing);
        match result_of(&block).map(Cow::into_owned) {
            Some(id) => add_result(id, block, piece, &mut results),
            None => parts.extend(part(&block, piece)),
        }
    }
    let mut all: Vec<MessagePart> = results.into_iter().map(ToolResult::into_part).collect();
    all.append(&mut parts);
    let role = quoted(if is_assistant { "assistant" } else { "user" });
    let content = content(all).unwrap_or_else(|| "[]".to_owned());
    object([("role", role), ("content", content)])
}

fn add_result<'a>(
    id: String,
    block: Cow<'a, ThreadBlock>,
    piece: SentPiece,
    results: &mut Vec<ToolResult<'a>>,
) {
    let is_error = match block.data("data_is_error") {
        Some("true") => Some("true"),
        Some("false") => Some("false"),
        _ if block.kind() == Some("error") => Some("true"),
        _ => None,
    };
    let part = match piece {
        // An empty text is a result, too.
        SentPiece::Text(text) if text == "\"\"" => Some(plain_part(text)),
        piece => part(&block, piece),
    };
    match results.last_mut() {
        Some(open) if open.id == id && same_message(&open.last, &block) => {
            open.parts.extend(part);
            open.is_error = open.is_error.or(is_error);
            open.last = block;
        }
        _ => results.push(ToolResult {
            id,
            parts: part.into_iter().collect(),
            is_error,
            cache: block.data("data_cache_control").map(str::to_owned),
            last: block,
        }),
    }
}

struct ToolResult<'a> {
    id: String,
    last: Cow<'a, ThreadBlock>,
    parts: Vec<MessagePart>,
    is_error: Option<&'static str>,
    cache: Option<String>,
}

impl ToolResult<'_> {
    fn into_part(self) -> MessagePart {
        // Empty texts only matter alone.
        let empty = |part: &MessagePart| part.plain.as_deref() == Some("\"\"");
        let mut parts = self.parts;
        if parts.len() > 1 {
            parts.retain(|part| !empty(part));
        }
        let members = [
            ("type", Some(quoted("tool_result"))),
            ("tool_use_id", Some(quoted(&call_id(&self.id)))),
            ("content", content(parts)),
            ("is_error", self.is_error.map(str::to_owned)),
            ("cache_control", self.cache),
        ];
        MessagePart::new(members)
    }
}

/// The part that a block becomes; `None` for an empty text, which the API refuses.
fn part(block: &ThreadBlock, piece: SentPiece) -> Option<MessagePart> {
    let cache = cache_control(block);
    let members = match piece {
        SentPiece::Nothing => return None,
        SentPiece::Text(text) => return text_part(text, cache),
        SentPiece::Thinking(text) => {
            // The API takes only reasoning that it signed. Without a signature it is text.
            let Some(signature) = member_of_part(block, "signature") else {
                return text_part(text, cache);
            };
            vec![
                ("type", Some(quoted("thinking"))),
                ("thinking", Some(text)),
                ("signature", Some(signature)),
            ]
        }
        SentPiece::Call(arguments) => {
            let (id, name) = call_of(block);
            let id = string(&id).unwrap_or(Cow::Borrowed(&id));
            vec![
                ("type", Some(quoted("tool_use"))),
                ("id", Some(quoted(&call_id(&id)))),
                ("name", Some(name)),
                ("input", Some(input(&arguments))),
                ("cache_control", cache),
            ]
        }
        SentPiece::Image(media) => vec![
            ("type", Some(quoted("image"))),
            ("source", Some(media.source())),
            ("cache_control", cache),
        ],
        SentPiece::Document(media) => vec![
            ("type", Some(quoted("document"))),
            ("source", Some(media.source())),
            ("title", title(block, &media)),
            ("cache_control", cache),
        ],
    };
    Some(MessagePart::new(members))
}

/// The part of a text; `None` for an empty one.
fn text_part(text: String, cache: Option<String>) -> Option<MessagePart> {
    if text == "\"\"" {
        return None;
    }
    if cache.is_none() {
        return Some(plain_part(text));
    }
    let members = [("type", Some(quoted("text"))), ("text", Some(text))];
    let cache = ("cache_control", cache);
    Some(MessagePart::new(members.into_iter().chain([cache])))
}

fn plain_part(text: String) -> MessagePart {
    MessagePart {
        json: format!("{{\"type\":\"text\",\"text\":{text}}}"),
        plain: Some(text),
    }
}

/// The mark of the part, or of its whole message. That of a result's message is on the result.
fn cache_control(block: &ThreadBlock) -> Option<String> {
    let of = |field: &str| {
        let found = members(block.data(field).unwrap_or_default());
        get(&found, "cache_control").map(str::to_owned)
    };
    let message = block.data("data_cache_control").map(str::to_owned);
    let message = message.filter(|_| result_of(block).is_none());
    of("data_part").or_else(|| of("data_call")).or(message)
}

/// The title that a document has, or the name of its file, unless that is the block's id.
fn title(block: &ThreadBlock, media: &Media) -> Option<String> {
    let content = members(block.content().unwrap_or_default());
    let own = get(&content, "title").map(str::to_owned);
    let own = own.or_else(|| member_of_part(block, "title"));
    let file = matches!(media, Media::Bytes { .. }).then(|| filename(block));
    own.or_else(|| {
        file.filter(|name| name != block.id())
            .map(|name| quoted(&name))
    })
}

/// The arguments of a call as an object. Text that is none is kept as its member `arguments`.
pub(super) fn input(arguments: &str) -> String {
    let text = string(arguments).unwrap_or_default();
    if let Some(found) = object_in(&text) {
        return compact(found).into_owned();
    }
    if text.trim_ascii().is_empty() {
        return "{}".to_owned();
    }
    object([("arguments", arguments)])
}

/// The id of a call with the characters that the API allows: letters, digits, `_` and `-`.
pub(super) fn call_id(id: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    id.chars()
        .map(|c| if allowed(c) { c } else { '-' })
        .collect()
}

/// The message that some imported blocks were, with the help of the custom fields described in
/// `logs::formats::anthropic`.
fn imported_message(blocks: &[&ThreadBlock]) -> String {
    let first = blocks[0];
    if let Some(whole) = verbatim(first, "message") {
        return whole;
    }
    // The blocks of one result are neighbours.
    let together = |one: &&ThreadBlock, next: &&ThreadBlock| {
        let id = result_id(one);
        id.is_some() && id == result_id(next)
    };
    let mut parts = Vec::new();
    for blocks in blocks.chunk_by(together) {
        if result_id(blocks[0]).is_some() {
            parts.push(imported_result(blocks));
        } else if blocks[0].content().is_some() {
            parts.push(imported_part(blocks[0]));
        }
    }
    let content = match (blocks, plain_of(first)) {
        ([_], Some(text)) if shape(first).is_empty() => text,
        _ => list(&parts),
    };
    let role = match first.role() {
        "tool" => "user",
        role => role,
    };
    let mut out = String::new();
    push_member("role", &quoted(role), &mut out);
    push_member("content", &content, &mut out);
    push_others(first, &mut out);
    braced(&out)
}

/// The text of a part that has nothing else.
fn plain_of(block: &ThreadBlock) -> Option<String> {
    let simple = matches!(block.kind(), Some("text" | "summary")) && is_plain(block);
    block.content().filter(|_| simple).map(text_of)
}

fn imported_part(block: &ThreadBlock) -> String {
    let content = block.content().unwrap_or("null");
    if block.data("data_verbatim").is_some() {
        return content.to_owned();
    }
    let mut out = String::new();
    let mut kind = |name: &str| push_member("type", &quoted(name), &mut out);
    match block.kind() {
        Some("thinking") => {
            kind("thinking");
            push_member("thinking", &text_of(content), &mut out);
        }
        Some("call") => {
            kind("tool_use");
            let (id, name) = call_of(block);
            push_member("id", &id, &mut out);
            push_member("name", &name, &mut out);
            let text = string(content).unwrap_or(Cow::Borrowed(content));
            push_member("input", value(&text).unwrap_or(content), &mut out);
        }
        Some(name @ ("image" | "document")) => {
            kind(name);
            push_member("source", content, &mut out);
        }
        _ => {
            kind("text");
            push_member("text", &text_of(content), &mut out);
        }
    }
    push_members(block.data("data_part"), &mut out);
    braced(&out)
}

fn imported_result(blocks: &[&ThreadBlock]) -> String {
    let first = blocks[0];
    let mut out = String::new();
    push_member("type", "\"tool_result\"", &mut out);
    let id = first.data("data_call_id").unwrap_or("null");
    push_member("tool_use_id", id, &mut out);
    let parts = blocks.iter().filter(|block| block.content().is_some());
    let parts = parts.map(|block| imported_part(block));
    match (blocks, &*shape(first)) {
        (_, "absent") => {}
        ([block], "") if block.kind() == Some("result") && is_plain(block) => {
            let content = text_of(block.content().unwrap_or("\"\""));
            push_member("content", &content, &mut out);
        }
        _ => push_member("content", &list(parts), &mut out),
    }
    if let Some(is_error) = first.data("data_is_error") {
        push_member("is_error", is_error, &mut out);
    }
    push_members(first.data("data_call"), &mut out);
    braced(&out)
}

/// The id of the call that a block is a part of the result of.
fn result_id(block: &ThreadBlock) -> Option<&str> {
    block
        .data("data_call_id")
        .filter(|_| block.role() == "tool")
}
