//! Items that were imported in the form of Responses, as they were, with the help of the custom
//! fields described in `logs::formats::responses`.

use super::block::ThreadBlock;
use super::json::{braced, list, push_member, push_members, quoted};
use super::piece::{call_of, is_plain, shape, text_of, verbatim};
use crate::json::{ValueType, value_type};

pub(super) fn item(blocks: &[&ThreadBlock]) -> String {
    let first = blocks[0];
    if let Some(whole) = verbatim(first, "message") {
        return whole;
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
            let summary = if shape(first) == "list" {
                "[]".to_owned()
            } else {
                list(blocks.iter().map(|block| summary(block)))
            };
            push_member("summary", &summary, &mut out);
            push_members(first.data("data_part"), &mut out);
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
    push_members(first.data("data_item"), &mut out);
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

fn content(member: &str, blocks: &[&ThreadBlock], out: &mut String) {
    let first = blocks[0];
    let shape = shape(first);
    let simple = matches!(first.kind(), Some("text" | "result" | "summary"))
        && is_plain(first)
        && first.data("data_part_type").is_none();
    let is_text = |content: &&str| value_type(content) == ValueType::String;
    match (blocks, first.content().filter(is_text)) {
        (_, None) if shape == "absent" => {}
        ([_], Some(text)) if simple && shape != "list" => push_member(member, text, out),
        _ => {
            let parts = blocks.iter().filter(|block| block.content().is_some());
            push_member(member, &list(parts.map(|block| part(block))), out);
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
        Some(kind @ ("image" | "document")) => {
            let is_image = kind == "image";
            let kind = if is_image {
                "\"input_image\""
            } else {
                "\"input_file\""
            };
            push_member("type", kind, &mut out);
            push_members(Some(content), &mut out);
        }
        _ => {
            let standard = match block.role() {
                "assistant" => "\"output_text\"",
                _ => "\"input_text\"",
            };
            let kind = block.data("data_part_type").unwrap_or(standard);
            push_member("type", kind, &mut out);
            push_member("text", &text_of(content), &mut out);
            push_members(block.data("data_part"), &mut out);
        }
    }
    braced(&out)
}
