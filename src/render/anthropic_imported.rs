//! Messages that were imported in Anthropic's form, as they were, with the help of the custom fields
//! described in `logs::formats::anthropic`.

use super::block::ThreadBlock;
use super::json::{braced, list, push_member, push_members, quoted, value};
use super::openai::push_others;
use super::piece::{call_of, is_plain, shape, text_of, verbatim};
use crate::json::string;
use std::borrow::Cow;

pub(super) fn message(blocks: &[&ThreadBlock]) -> String {
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
            parts.push(result(blocks));
        } else if blocks[0].content().is_some() {
            parts.push(part(blocks[0]));
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
    let mut out = String::new();
    push_member("role", &quoted(role), &mut out);
    push_member("content", &content, &mut out);
    push_others(first, &mut out);
    braced(&out)
}

/// The text of a part that has nothing else.
pub(super) fn plain(block: &ThreadBlock) -> Option<String> {
    let simple = matches!(block.kind(), Some("text" | "summary")) && is_plain(block);
    block.content().filter(|_| simple).map(text_of)
}

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
    push_members(block.data("data_part"), &mut out);
    braced(&out)
}

fn result(blocks: &[&ThreadBlock]) -> String {
    let first = blocks[0];
    let mut out = String::new();
    push_member("type", "\"tool_result\"", &mut out);
    let id = first.data("data_call_id").unwrap_or("null");
    push_member("tool_use_id", id, &mut out);
    let parts = blocks.iter().filter(|block| block.content().is_some());
    let parts = parts.map(|block| part(block));
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
