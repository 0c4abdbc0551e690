//! Messages that were imported in Anthropic's form, as they were, with the help of the custom fields
//! described in `logs::formats::anthropic`.

use super::block::ThreadBlock;
use super::json::{braced, list, push_member, quoted, value};
use super::piece::{call_of, text_of};
use crate::json::{elements, members, string};
use std::borrow::Cow;

/// The message of some blocks.
pub(super) fn message(blocks: &[Cow<'_, ThreadBlock>]) -> String {
    let Some(first) = blocks.first() else {
        return "null".to_owned();
    };
    if is_verbatim(first, "message") {
        return first.content().unwrap_or("null").to_owned();
    }
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(block) = blocks.get(at) {
        let id = result_id(block);
        let same = |other: &&Cow<'_, ThreadBlock>| id.is_some() && result_id(other) == id;
        let length = blocks[at..].iter().take_while(same).count();
        match length {
            0 if block.content().is_none() => at += 1,
            0 => {
                parts.push(part(block));
                at += 1;
            }
            _ => {
                parts.push(result(&blocks[at..at + length]));
                at += length;
            }
        }
    }
    let content = match (blocks, plain(first)) {
        ([_], Some(text)) if shape(first).is_empty() => text,
        _ => list(&parts),
    };
    let role = match first.role() {
        "tool" => "user",
        role => role,
    };
    let mut out = format!("{{\"role\":{},\"content\":{content}", quoted(role));
    let names = first.data("data_members").map(elements).unwrap_or_default();
    for name in names.into_iter().filter_map(string) {
        if let Some(value) = first.data(&format!("data_{name}")) {
            push_member(&name, value, &mut out);
        }
    }
    rest(first.data("data_other"), &mut out);
    out.push('}');
    out
}

/// The text of a part that has nothing else.
pub(super) fn plain(block: &ThreadBlock) -> Option<String> {
    let simple = matches!(block.kind(), Some("text" | "summary"))
        && block.data("data_verbatim").is_none()
        && block.data("data_part").is_none();
    block.content().filter(|_| simple).map(text_of)
}

/// The part that a block was.
pub(super) fn part(block: &ThreadBlock) -> String {
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
    rest(block.data("data_part"), &mut out);
    braced(&out)
}

/// The result that some blocks were.
fn result(blocks: &[Cow<'_, ThreadBlock>]) -> String {
    let first = &blocks[0];
    let mut out = String::from(",\"type\":\"tool_result\"");
    let id = first.data("data_call_id").unwrap_or("null");
    push_member("tool_use_id", id, &mut out);
    let parts: Vec<String> = blocks
        .iter()
        .filter(|block| block.content().is_some())
        .map(|block| part(block))
        .collect();
    match (blocks, &*shape(first)) {
        (_, "absent") => {}
        ([block], "") if is_text(block) => {
            let content = text_of(block.content().unwrap_or("\"\""));
            push_member("content", &content, &mut out);
        }
        _ => push_member("content", &list(&parts), &mut out),
    }
    if let Some(is_error) = first.data("data_is_error") {
        push_member("is_error", is_error, &mut out);
    }
    rest(first.data("data_call"), &mut out);
    braced(&out)
}

/// Whether a block can be written as content that is a string.
fn is_text(block: &ThreadBlock) -> bool {
    block.kind() == Some("result")
        && block.data("data_verbatim").is_none()
        && block.data("data_part").is_none()
}

/// The id of the call that a block is a part of the result of.
fn result_id(block: &ThreadBlock) -> Option<&str> {
    block
        .data("data_call_id")
        .filter(|_| block.role() == "tool")
}

fn shape(block: &ThreadBlock) -> Cow<'_, str> {
    block.text("data_shape").unwrap_or_default()
}

fn is_verbatim(block: &ThreadBlock, what: &str) -> bool {
    block.text("data_verbatim").as_deref() == Some(what)
}

/// Writes members that are kept as one object.
fn rest(object: Option<&str>, out: &mut String) {
    for (name, value) in object.map(members).unwrap_or_default() {
        push_member(&name, value, out);
    }
}
