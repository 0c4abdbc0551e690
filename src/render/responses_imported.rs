//! Items that were imported in the form of Responses, as they were, with the help of the custom
//! fields described in `logs::formats::responses`.

use super::block::ThreadBlock;
use super::json::{braced, list, push_member, quoted};
use super::piece::{call_of, text_of};
use crate::json::{ValueType, members, value_type};
use std::borrow::Cow;

/// The item of some blocks.
pub(super) fn item(blocks: &[Cow<'_, ThreadBlock>]) -> String {
    let Some(first) = blocks.first() else {
        return "null".to_owned();
    };
    if first.text("data_verbatim").as_deref() == Some("message") {
        return first.content().unwrap_or("null").to_owned();
    }
    let mut out = String::new();
    let kind = match (first.kind(), first.role()) {
        (Some("thinking"), _) => "reasoning",
        (Some("call"), _) => "function_call",
        (_, "tool") => "function_call_output",
        _ => "message",
    };
    match first.data("data_item_type") {
        Some("null") => {}
        Some(own) => push_member("type", own, &mut out),
        None => push_member("type", &quoted(kind), &mut out),
    }
    match kind {
        "reasoning" => {
            let summary: Vec<String> = blocks.iter().map(|block| summary(block)).collect();
            let empty = shape(first) == "list";
            let summary = if empty {
                "[]".to_owned()
            } else {
                list(&summary)
            };
            push_member("summary", &summary, &mut out);
            rest(first.data("data_part"), &mut out);
        }
        "function_call" => {
            let (id, name) = call_of(first);
            push_member("call_id", &id, &mut out);
            push_member("name", &name, &mut out);
            let custom = first.text("data_item_type").as_deref() == Some("custom_tool_call");
            let member = if custom { "input" } else { "arguments" };
            let arguments = text_of(first.content().unwrap_or("\"\""));
            push_member(member, &arguments, &mut out);
        }
        "function_call_output" => {
            let id = first.data("data_call_id").unwrap_or("null");
            push_member("call_id", id, &mut out);
            content("output", blocks, &mut out);
        }
        _ => {
            push_member("role", &quoted(first.role()), &mut out);
            content("content", blocks, &mut out);
        }
    }
    rest(first.data("data_item"), &mut out);
    braced(&out)
}

/// The text of `instructions` or of an `input` that is not a list.
pub(super) fn lone(block: &ThreadBlock, what: &str) -> Option<String> {
    let is_lone = shape(block) == what;
    block.content().filter(|_| is_lone).map(text_of)
}

fn summary(block: &ThreadBlock) -> String {
    let text = text_of(block.content().unwrap_or("\"\""));
    format!("{{\"type\":\"summary_text\",\"text\":{text}}}")
}

fn content(member: &str, blocks: &[Cow<'_, ThreadBlock>], out: &mut String) {
    let first = &blocks[0];
    let shape = shape(first);
    let simple = matches!(first.kind(), Some("text" | "result" | "summary"))
        && first.data("data_verbatim").is_none()
        && first.data("data_part").is_none()
        && first.data("data_part_type").is_none();
    let is_text = |content: &&str| value_type(content) == ValueType::String;
    match (blocks, first.content().filter(is_text)) {
        (_, None) if shape == "absent" => {}
        ([_], Some(text)) if simple && shape != "list" => push_member(member, text, out),
        _ => {
            let parts = blocks.iter().filter(|block| block.content().is_some());
            let parts: Vec<String> = parts.map(|block| part(block)).collect();
            push_member(member, &list(&parts), out);
        }
    }
}

fn part(block: &ThreadBlock) -> String {
    let content = block.content().unwrap_or("null");
    if block.data("data_verbatim").is_some() {
        return content.to_owned();
    }
    let mut out = String::new();
    match block.kind() {
        Some("image") => {
            push_member("type", "\"input_image\"", &mut out);
            rest(Some(content), &mut out);
        }
        Some("document") => {
            push_member("type", "\"input_file\"", &mut out);
            rest(Some(content), &mut out);
        }
        _ => {
            let standard = match block.role() {
                "assistant" => "\"output_text\"",
                _ => "\"input_text\"",
            };
            let kind = block.data("data_part_type").unwrap_or(standard);
            push_member("type", kind, &mut out);
            push_member("text", &text_of(content), &mut out);
            rest(block.data("data_part"), &mut out);
        }
    }
    braced(&out)
}

fn shape(block: &ThreadBlock) -> Cow<'_, str> {
    block.text("data_shape").unwrap_or_default()
}

/// Writes members that are kept as one object.
fn rest(object: Option<&str>, out: &mut String) {
    for (name, value) in object.map(members).unwrap_or_default() {
        push_member(&name, value, out);
    }
}
