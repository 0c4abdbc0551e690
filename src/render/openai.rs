//! OpenAI Chat Completions.
//!
//! A session with tools or parameters is a request, an object; any other is the list of its
//! messages. Imported blocks become the messages they came from again, with the help of the custom
//! fields described in `logs::openai`. Other blocks become one message each, except that
//! adjacent assistant blocks of one container become one message, and so do adjacent results of one
//! call. Results come right after their calls.

use super::block::ThreadBlock;
use super::error::RenderError;
use super::grouping::Grouping;
use super::head::Head;
use super::json::{braced, json_text, list, push_member, quoted};
use super::media::{Media, detail, filename};
use super::piece::{
    CHAT, Piece, call_of, is_imported, is_of_form, result_of, role, same_message, text_of,
};
use super::provider::Provider;
use super::source::Source;
use crate::json::{elements, members, string};
use std::borrow::Cow;

/// The custom fields with a fixed meaning, without `data_`.
pub(crate) const RESERVED: [&str; 14] = [
    "message",
    "call_id",
    "call_name",
    "shape",
    "verbatim",
    "part",
    "call",
    "function",
    "members",
    "other",
    "reply",
    "form",
    "response",
    "child_session",
];

/// What a request has besides messages.
pub(super) fn head(source: Source<'_>) -> Result<Head, RenderError> {
    Head::new(source, Provider::OpenAi, None, "messages")
}

type Block<'a> = Cow<'a, ThreadBlock>;

/// The messages of blocks.
///
/// The API asks for the results of all calls right after them. So a message between calls and
/// results, such as the context before the next turn, is held back until the last result. Imported
/// messages never are.
#[derive(Default)]
pub(super) struct Messages<'a> {
    /// The blocks of the open message.
    group: Vec<Block<'a>>,
    /// The ids of the calls without a result so far.
    unanswered: Vec<String>,
    held: Vec<String>,
}

impl<'a> Grouping<'a> for Messages<'a> {
    fn add(&mut self, block: Block<'a>, out: &mut Vec<String>) -> Result<bool, RenderError> {
        if let Some(last) = self.group.last()
            && !same_message(last, &block)
        {
            self.flush(out)?;
        }
        let fresh = self.group.is_empty() && self.unanswered.is_empty() && self.held.is_empty();
        self.group.push(block);
        Ok(fresh)
    }

    fn end(&mut self, out: &mut Vec<String>) -> Result<(), RenderError> {
        self.flush(out)?;
        out.append(&mut self.held);
        Ok(())
    }
}

impl Messages<'_> {
    /// Ends the open message.
    fn flush(&mut self, out: &mut Vec<String>) -> Result<(), RenderError> {
        let blocks = std::mem::take(&mut self.group);
        let (Some(first), Some(message)) = (blocks.first(), message(&blocks)?) else {
            return Ok(());
        };
        if let Some(id) = result_of(first) {
            out.push(message);
            self.unanswered.retain(|other| *other != id);
            if self.unanswered.is_empty() {
                out.append(&mut self.held);
            }
            return Ok(());
        }
        let waits = !self.unanswered.is_empty() && role(first) != "assistant";
        if waits && !is_imported(first) {
            self.held.push(message);
            return Ok(());
        }
        out.append(&mut self.held);
        let calls = blocks.iter().filter(|block| is_call(block));
        let ids = calls.filter_map(|block| string(&call_of(block).0).map(Cow::into_owned));
        self.unanswered = ids.collect();
        out.push(message);
        Ok(())
    }
}

/// The message of some blocks; `None` if they say nothing.
fn message(blocks: &[Block<'_>]) -> Result<Option<String>, RenderError> {
    let Some(first) = blocks.first() else {
        return Ok(None);
    };
    if is_of_form(first, CHAT) {
        let mut out = String::new();
        imported(first, blocks, &mut out);
        return Ok(Some(out));
    }
    let (mut parts, mut calls) = (Vec::new(), Vec::new());
    // One text is written as a string.
    let mut text = None;
    for block in blocks {
        match Piece::of(block)? {
            Piece::Nothing => {}
            Piece::Call(arguments) => calls.push(call(block, &arguments)),
            Piece::Image(media) => parts.push(image(block, &media)?),
            Piece::Text(value) | Piece::Thinking(value) => {
                parts.push(text_part(&value));
                text = Some(value);
            }
            Piece::Document(media) => match document(block, &media) {
                Ok(part) => parts.push(part),
                Err(value) => {
                    parts.push(text_part(&value));
                    text = Some(value);
                }
            },
        }
    }
    let role = role(first);
    let content = match (&parts[..], text) {
        ([], _) if !calls.is_empty() => "null".to_owned(),
        ([], _) if role == "tool" => "\"\"".to_owned(),
        ([], _) => return Ok(None),
        ([_], Some(text)) => text,
        _ => list(&parts),
    };
    let mut out = format!("{{\"role\":{},\"content\":{content}", quoted(role));
    if role == "function"
        && let Some(name) = first.data("data_call_name")
    {
        push_member("name", name, &mut out);
    }
    if let Some(id) = result_of(first).filter(|_| role == "tool") {
        push_member("tool_call_id", &quoted(&id), &mut out);
    }
    if !calls.is_empty() {
        push_member("tool_calls", &list(&calls), &mut out);
    }
    out.push('}');
    Ok(Some(out))
}

fn image(block: &ThreadBlock, media: &Media) -> Result<String, RenderError> {
    let Some(url) = media.url() else {
        return Err(RenderError::block(
            block.id(),
            "expected an image with a URL or base64 data for `openai`, found the id of a file",
            "`--as openai-responses` and `--as anthropic` take file ids",
        ));
    };
    let mut out = String::new();
    push_member("url", &quoted(&url), &mut out);
    if let Some(detail) = detail(block) {
        push_member("detail", &detail, &mut out);
    }
    let image = braced(&out);
    Ok(format!("{{\"type\":\"image_url\",\"image_url\":{image}}}"))
}

fn text_part(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{text}}}")
}

/// A document's part, or its text if it has no part: there is none for text, and none for a URL,
/// which is sent as the text of the content.
fn document(block: &ThreadBlock, media: &Media) -> Result<String, String> {
    let mut file = String::new();
    match media {
        Media::Text(text) => return Err(quoted(text)),
        Media::Url(_) => return Err(text_of(block.content().unwrap_or_default())),
        Media::File(id) => push_member("file_id", &quoted(id), &mut file),
        Media::Bytes { .. } => {
            let data = media.url().unwrap_or_default();
            push_member("filename", &quoted(&filename(block)), &mut file);
            push_member("file_data", &quoted(&data), &mut file);
        }
    }
    Ok(format!("{{\"type\":\"file\",\"file\":{}}}", braced(&file)))
}

/// A call that was not imported.
fn call(block: &ThreadBlock, arguments: &str) -> String {
    let (id, name) = call_of(block);
    let mut out = String::from("{\"type\":\"function\"");
    push_member("id", &id, &mut out);
    out.push_str(",\"function\":{\"name\":");
    out.push_str(&name);
    push_member("arguments", arguments, &mut out);
    out.push_str("}}");
    out
}

fn is_call(block: &ThreadBlock) -> bool {
    block.kind() == Some("call")
}

fn is_verbatim(block: &ThreadBlock, what: &str) -> bool {
    let found = block.text("data_verbatim");
    found.is_some_and(|found| found == what)
}

/// Writes an imported message as it was.
fn imported(first: &ThreadBlock, blocks: &[Block<'_>], out: &mut String) {
    if is_verbatim(first, "message")
        && let Some(content) = first.content()
    {
        out.push_str(content);
        return;
    }
    let role = first.role();
    out.push_str("{\"role\":");
    json_text(role, out);
    content(blocks, out);
    if matches!(role, "tool" | "function") {
        for (field, name) in [("data_call_name", "name"), ("data_call_id", "tool_call_id")] {
            if let Some(value) = first.data(field) {
                push_member(name, value, out);
            }
        }
    }
    let mut open = ",\"tool_calls\":[";
    for block in blocks.iter().filter(|block| is_call(block)) {
        out.push_str(open);
        imported_call(block, out);
        open = ",";
    }
    if open == "," {
        out.push(']');
    }
    if let Some(names) = first.data("data_members") {
        for name in elements(names).into_iter().filter_map(string) {
            if RESERVED.contains(&&*name) {
                continue;
            }
            if let Some(value) = first.data(&format!("data_{name}")) {
                push_member(&name, value, out);
            }
        }
    }
    rest(first.data("data_other"), out);
    out.push('}');
}

/// Writes the `content` member, unless the message had none.
fn content(blocks: &[Block<'_>], out: &mut String) {
    let parts: Vec<(&ThreadBlock, &str)> = blocks
        .iter()
        .filter(|block| !is_call(block))
        .filter_map(|block| Some((&**block, block.content()?)))
        .collect();
    let shape = blocks.first().and_then(|first| first.data("data_shape"));
    let shape = shape.and_then(string).unwrap_or_default();
    match (&parts[..], &*shape) {
        ([], "absent") => {}
        ([], "list") => push_member("content", "[]", out),
        ([], _) => push_member("content", "null", out),
        ([(block, content)], _) if is_verbatim(block, "content") => {
            push_member("content", content, out);
        }
        ([(block, content)], shape) if shape != "list" && is_text(block) => {
            push_member("content", &text_of(content), out);
        }
        (parts, _) => {
            out.push_str(",\"content\":[");
            for (at, (block, content)) in parts.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                part(block, content, out);
            }
            out.push(']');
        }
    }
}

/// Whether a block can be written as content that is a string.
fn is_text(block: &ThreadBlock) -> bool {
    block.kind() != Some("image")
        && block.data("data_verbatim").is_none()
        && block.data("data_part").is_none()
}

fn part(block: &ThreadBlock, content: &str, out: &mut String) {
    if block.data("data_verbatim").is_some() {
        out.push_str(content);
        return;
    }
    if block.kind() == Some("image") {
        out.push_str("{\"type\":\"image_url\"");
        push_member("image_url", content, out);
    } else {
        out.push_str("{\"type\":\"text\"");
        push_member("text", &text_of(content), out);
    }
    rest(block.data("data_part"), out);
    out.push('}');
}

fn imported_call(block: &ThreadBlock, out: &mut String) {
    let content = block.content().unwrap_or("\"\"");
    if is_verbatim(block, "call") {
        out.push_str(content);
        return;
    }
    let (id, name) = call_of(block);
    out.push_str("{\"type\":\"function\"");
    push_member("id", &id, out);
    out.push_str(",\"function\":{\"name\":");
    out.push_str(&name);
    push_member("arguments", &text_of(content), out);
    rest(block.data("data_function"), out);
    out.push('}');
    rest(block.data("data_call"), out);
    out.push('}');
}

/// Writes the unknown members of a message, a part or a call, kept as one object.
fn rest(object: Option<&str>, out: &mut String) {
    for (name, value) in object.map(members).unwrap_or_default() {
        push_member(&name, value, out);
    }
}
