//! OpenAI Chat Completions.
//!
//! Imported blocks become the messages they came from again, with the help of the custom fields
//! described in `interop::openai`. Other blocks become one message each, except that adjacent
//! assistant blocks of one container become one message.

use super::block::ThreadBlock;
use super::error::RenderError;
use super::json::{canonical, json_text, push_member, quoted};
use super::source::Source;
use crate::tree::shallow::{ValueType, elements, members, string, value_type};
use std::borrow::Cow;
use std::io::Write;

/// The custom fields with a fixed meaning, without `data_`.
pub(crate) const RESERVED: [&str; 10] = [
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
];

/// Writes the messages as a JSON array and a line feed.
pub(super) fn write(source: Source<'_>, out: &mut dyn Write) -> Result<(), RenderError> {
    let mut text = String::from("[");
    let mut first = true;
    let mut group: Vec<Block<'_>> = Vec::new();
    for block in source.blocks().map(Block) {
        if group
            .first()
            .is_some_and(|first| !first.same_message(&block))
        {
            if !std::mem::take(&mut first) {
                text.push(',');
            }
            message(&group, &mut text);
            out.write_all(text.as_bytes())?;
            text.clear();
            group.clear();
        }
        group.push(block);
    }
    if !group.is_empty() {
        if !first {
            text.push(',');
        }
        message(&group, &mut text);
    }
    text.push_str("]\n");
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// A block, as a part of a message.
struct Block<'a>(Cow<'a, ThreadBlock>);

impl Block<'_> {
    fn is_call(&self) -> bool {
        self.0.kind() == Some("call")
    }

    fn is_verbatim(&self, what: &str) -> bool {
        let found = self.0.text("data_verbatim");
        found.is_some_and(|found| found == what)
    }

    /// Whether `next`, the following block, belongs to the same message.
    fn same_message(&self, next: &Self) -> bool {
        match (self.0.data("data_message"), next.0.data("data_message")) {
            (Some(mine), Some(other)) => mine == other && self.0.role() == next.0.role(),
            (None, None) => {
                self.0.role() == "assistant"
                    && next.0.role() == "assistant"
                    && self.0.parent() == next.0.parent()
            }
            _ => false,
        }
    }
}

/// Writes one message.
fn message(blocks: &[Block<'_>], out: &mut String) {
    let Some(first) = blocks.first() else {
        return;
    };
    if first.is_verbatim("message")
        && let Some(content) = first.0.content()
    {
        out.push_str(&canonical(content));
        return;
    }
    let result = first.0.kind() == Some("result") && first.0.data("data_message").is_none();
    let role = if result { "tool" } else { first.0.role() };
    out.push_str("{\"role\":");
    json_text(role, out);
    content(blocks, out);
    if matches!(role, "tool" | "function") {
        for (field, name) in [("data_call_name", "name"), ("data_call_id", "tool_call_id")] {
            if let Some(value) = first.0.data(field) {
                push_member(name, &canonical(value), out);
            }
        }
    }
    let mut open = ",\"tool_calls\":[";
    for block in blocks.iter().filter(|block| block.is_call()) {
        out.push_str(open);
        call(block, out);
        open = ",";
    }
    if open == "," {
        out.push(']');
    }
    if let Some(names) = first.0.data("data_members") {
        for name in elements(names).into_iter().filter_map(string) {
            if RESERVED.contains(&&*name) {
                continue;
            }
            if let Some(value) = first.0.data(&format!("data_{name}")) {
                push_member(&name, &canonical(value), out);
            }
        }
    }
    rest(first.0.data("data_other"), out);
    out.push('}');
}

/// Writes the `content` member, unless the message had none.
fn content(blocks: &[Block<'_>], out: &mut String) {
    let parts: Vec<(&Block<'_>, &str)> = blocks
        .iter()
        .filter(|block| !block.is_call())
        .filter_map(|block| Some((block, block.0.content()?)))
        .collect();
    let shape = blocks.first().and_then(|first| first.0.data("data_shape"));
    let shape = shape.and_then(string).unwrap_or_default();
    match (&parts[..], &*shape) {
        ([], "absent") => {}
        ([], "list") => push_member("content", "[]", out),
        ([], _) => push_member("content", "null", out),
        ([(block, content)], _) if block.is_verbatim("content") => {
            push_member("content", &canonical(content), out);
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
fn is_text(block: &Block<'_>) -> bool {
    block.0.kind() != Some("image")
        && block.0.data("data_verbatim").is_none()
        && block.0.data("data_part").is_none()
}

fn part(block: &Block<'_>, content: &str, out: &mut String) {
    if block.0.data("data_verbatim").is_some() {
        out.push_str(&canonical(content));
        return;
    }
    if block.0.kind() == Some("image") {
        out.push_str("{\"type\":\"image_url\"");
        push_member("image_url", &canonical(content), out);
    } else {
        out.push_str("{\"type\":\"text\"");
        push_member("text", &text_of(content), out);
    }
    rest(block.0.data("data_part"), out);
    out.push('}');
}

fn call(block: &Block<'_>, out: &mut String) {
    let content = block.0.content().unwrap_or("\"\"");
    if block.is_verbatim("call") {
        out.push_str(&canonical(content));
        return;
    }
    let field = |name: &str| block.0.data(name).map(canonical);
    let id = field("data_call_id").unwrap_or_else(|| quoted(block.0.id()));
    // A call that was not imported has its function's name as key.
    let name = field("data_call_name");
    let name = name.unwrap_or_else(|| quoted(block.0.key().unwrap_or("unknown")));
    out.push_str("{\"type\":\"function\"");
    push_member("id", &id, out);
    out.push_str(",\"function\":{\"name\":");
    out.push_str(&name);
    push_member("arguments", &text_of(content), out);
    rest(block.0.data("data_function"), out);
    out.push('}');
    rest(block.0.data("data_call"), out);
    out.push('}');
}

/// Content as a JSON string: the string itself, or the JSON text of any other value.
fn text_of(content: &str) -> String {
    if value_type(content) == ValueType::String {
        canonical(content)
    } else {
        quoted(&canonical(content))
    }
}

/// Writes the unknown members of a message, a part or a call, kept as one object.
fn rest(object: Option<&str>, out: &mut String) {
    for (name, value) in object.map(members).unwrap_or_default() {
        push_member(&name, &canonical(value), out);
    }
}
