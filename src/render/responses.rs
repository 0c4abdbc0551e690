//! OpenAI Responses.
//!
//! Always a request, an object. One system text is `instructions`; several are messages. A call,
//! a result and reasoning are one item each, in the order of the tree. Items that were imported in
//! this form are written as they were.

use super::block::ThreadBlock;
use super::error::RenderError;
use super::head::Head;
use super::json::{braced, list, object, push_member, push_members, quoted};
use super::media::{Media, detail, filename};
use super::piece::{
    SentBlock, SentPiece, call_of, is_of_form, is_plain, member_of_part, result_of, role, shape,
    text_of, verbatim,
};
use super::provider::Provider;
use super::thread::Source;
use crate::json::{ValueType, get, members, string, value_type};
use std::borrow::Cow;

const FORM: &str = "openai-responses";

pub(super) fn head(source: Source<'_>) -> Result<Head, RenderError> {
    let instructions = instructions(source)?;
    let (id, system) = match instructions {
        Some((id, text)) => (Some(id), Some(("instructions", text))),
        None => (None, None),
    };
    let mut head = Head::new(source, Provider::OpenAiResponses, system, "input")?;
    head.previous = previous(source);
    head.alone = text_alone(source, head.previous, id.as_deref());
    head.instructions = id;
    Ok(head)
}

/// The block under `^sys` that is `instructions`, and its text: the only one, with text and the
/// role `system`.
fn instructions(source: Source<'_>) -> Result<Option<(String, String)>, RenderError> {
    let mut imported = source
        .system()
        .filter(|block| is_of_form(block, FORM))
        .peekable();
    if imported.peek().is_some() {
        let own = |block: Cow<'_, ThreadBlock>| {
            lone(&block, "instructions").map(|text| (block.id().to_owned(), text))
        };
        return Ok(imported.find_map(own));
    }
    let mut blocks = source.system().filter(|block| !block.is_tool());
    let (Some(block), None) = (blocks.next(), blocks.next()) else {
        return Ok(None);
    };
    Ok(match SentPiece::from_block(&block)? {
        SentPiece::Text(text) if role(&block) == "system" => Some((block.id().to_owned(), text)),
        _ => None,
    })
}

/// The number of blocks that the request names by `previous_response_id` instead of sending them: those up
/// to the reply of that response, if it is there.
fn previous(source: Source<'_>) -> usize {
    let parameters = source.parameters();
    let found = members(parameters.as_deref().unwrap_or_default());
    let Some(id) = get(&found, "previous_response_id").and_then(string) else {
        return 0;
    };
    let is_of = |block: &ThreadBlock| block.text("data_response").is_some_and(|of| of == id);
    let of_response = source
        .blocks()
        .enumerate()
        .filter(|(_, block)| is_of(block));
    of_response.last().map_or(0, |(at, _)| at + 1)
}

/// The `input` that was imported as a text and is still all that is sent besides `instructions`.
fn text_alone(source: Source<'_>, previous: usize, instructions: Option<&str>) -> Option<String> {
    let is_item =
        |block: &Cow<'_, ThreadBlock>| !block.is_tool() && Some(block.id()) != instructions;
    let mut blocks = source.blocks().skip(previous).filter(is_item);
    let (block, None) = (blocks.next()?, blocks.next()) else {
        return None;
    };
    lone(&block, "input").filter(|_| is_of_form(&block, FORM))
}

pub(super) fn is_item(block: &ThreadBlock, piece: &SentPiece) -> bool {
    match piece {
        SentPiece::Call(_) => true,
        SentPiece::Thinking(_) => kept(block).iter().any(Option::is_some),
        _ => false,
    }
}

pub(super) fn item(blocks: Vec<SentBlock<'_>>) -> String {
    let first = &blocks[0].block;
    match &blocks[0].piece {
        None => {
            let blocks: Vec<&ThreadBlock> = blocks.iter().map(|sent| &*sent.block).collect();
            return imported_item(&blocks);
        }
        Some(SentPiece::Call(arguments)) => {
            let (id, name) = call_of(first);
            return object([
                ("type", "\"function_call\""),
                ("call_id", &text_of(&id)),
                ("name", &name),
                ("arguments", arguments),
            ]);
        }
        Some(piece @ SentPiece::Thinking(text)) if is_item(first, piece) => {
            return reasoning(first, text);
        }
        Some(_) => {}
    }
    let result = result_of(first).map(Cow::into_owned);
    let role = quoted(known_role(first));
    // One text is written as a string.
    let (mut parts, mut text) = (Vec::new(), None);
    for sent in blocks {
        let (part, plain) = part(&sent.block, sent.piece.unwrap_or(SentPiece::Nothing));
        parts.extend(part);
        text = plain;
    }
    let content = match (&parts[..], text) {
        ([], _) => "\"\"".to_owned(),
        ([_], Some(text)) => text,
        (parts, _) => list(parts),
    };
    match result {
        Some(id) => object([
            ("type", "\"function_call_output\""),
            ("call_id", &quoted(&id)),
            ("output", &content),
        ]),
        None => object([
            ("type", "\"message\""),
            ("role", &role),
            ("content", &content),
        ]),
    }
}

/// The role, if a message can have it, or else the user's.
fn known_role(block: &ThreadBlock) -> &str {
    match role(block) {
        role @ ("user" | "assistant" | "system" | "developer") => role,
        _ => "user",
    }
}

/// A part of a message or an output, and its text if it is one.
fn part(block: &ThreadBlock, piece: SentPiece) -> (Option<String>, Option<String>) {
    let kind = match known_role(block) {
        "assistant" => "output_text",
        _ => "input_text",
    };
    let text = |text: String| {
        let part = format!("{{\"type\":\"{kind}\",\"text\":{text}}}");
        (Some(part), Some(text))
    };
    let url = |media: &Media| quoted(&media.url().unwrap_or_default());
    let members = match piece {
        SentPiece::Nothing => return (None, None),
        SentPiece::Text(value) | SentPiece::Thinking(value) | SentPiece::Call(value) => {
            return text(value);
        }
        SentPiece::Document(Media::Text(value)) | SentPiece::Image(Media::Text(value)) => {
            return text(quoted(&value));
        }
        SentPiece::Image(media) => {
            let bytes = match &media {
                Media::File(id) => ("file_id", quoted(id)),
                media => ("image_url", url(media)),
            };
            let detail = detail(block).map(|detail| ("detail", detail));
            let kind = ("type", quoted("input_image"));
            [Some(kind), Some(bytes), detail]
        }
        SentPiece::Document(media) => {
            let bytes = match &media {
                Media::File(id) => ("file_id", quoted(id)),
                Media::Url(url) => ("file_url", quoted(url)),
                media => ("file_data", url(media)),
            };
            let is_here = matches!(media, Media::Bytes { .. });
            let name = is_here.then(|| ("filename", quoted(&filename(block))));
            [Some(("type", quoted("input_file"))), name, Some(bytes)]
        }
    };
    (Some(object(members.into_iter().flatten())), None)
}

/// What a block kept that makes the API know reasoning again; without that it is text.
fn kept(block: &ThreadBlock) -> [Option<(&'static str, String)>; 2] {
    ["id", "encrypted_content"].map(|name| Some((name, member_of_part(block, name)?)))
}

fn reasoning(block: &ThreadBlock, text: &str) -> String {
    let summary = match text {
        "\"\"" => "[]".to_owned(),
        text => format!("[{{\"type\":\"summary_text\",\"text\":{text}}}]"),
    };
    let own = [("type", quoted("reasoning")), ("summary", summary)];
    object(own.into_iter().chain(kept(block).into_iter().flatten()))
}

/// The item that some imported blocks were, with the help of the custom fields described in
/// `logs::formats::responses`.
fn imported_item(blocks: &[&ThreadBlock]) -> String {
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
            push_content("output", blocks, &mut out);
        }
        _ => {
            push_member("role", &quoted(first.role()), &mut out);
            push_content("content", blocks, &mut out);
        }
    }
    push_members(first.data("data_item"), &mut out);
    braced(&out)
}

/// The text of `instructions` or of an `input` that is not a list.
fn lone(block: &ThreadBlock, what: &str) -> Option<String> {
    let is_lone = shape(block) == what;
    block.content().filter(|_| is_lone).map(text_of)
}

fn summary(block: &ThreadBlock) -> String {
    let text = text_of(block.content().unwrap_or("\"\""));
    format!("{{\"type\":\"summary_text\",\"text\":{text}}}")
}

fn push_content(member: &str, blocks: &[&ThreadBlock], out: &mut String) {
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
            push_member(member, &list(parts.map(|block| imported_part(block))), out);
        }
    }
}

fn imported_part(block: &ThreadBlock) -> String {
    let content = block.content().unwrap_or("null");
    if block.data("data_verbatim").is_some() {
        return content.to_owned();
    }
    let mut out = String::new();
    match block.kind() {
        Some("image") => {
            push_member("type", "\"input_image\"", &mut out);
            push_members(Some(content), &mut out);
        }
        Some("document") => {
            push_member("type", "\"input_file\"", &mut out);
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
