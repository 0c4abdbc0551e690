//! OpenAI Chat Completions.
//!
//! A session with tools or parameters is a request, an object; any other is the list of its
//! messages. Imported blocks become the messages they came from again, with the help of the custom
//! fields described in `logs::openai`. Other blocks become one message each, except that
//! adjacent assistant blocks of one container become one message, and so do adjacent results of one
//! call. Results come right after their calls.

use super::block::ThreadBlock;
use super::error::RenderError;
use super::json::{braced, list, push_member, push_members, quoted};
use super::media::{Media, detail, filename};
use super::piece::{
    SentBlock, SentPiece, call_of, is_plain, result_of, role, shape, text_of, verbatim,
};
use crate::json::{elements, string};

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

/// The message of some blocks; `None` if they say nothing.
pub(super) fn message(blocks: &[SentBlock<'_>]) -> Result<Option<String>, RenderError> {
    let first = &*blocks[0].block;
    if blocks[0].piece.is_none() {
        let blocks: Vec<&ThreadBlock> = blocks.iter().map(|sent| &*sent.block).collect();
        return Ok(Some(imported(first, &blocks)));
    }
    let (mut parts, mut calls) = (Vec::new(), Vec::new());
    // One text is written as a string.
    let mut text = None;
    for SentBlock { block, piece } in blocks {
        let value = match piece {
            None | Some(SentPiece::Nothing) => continue,
            Some(SentPiece::Call(arguments)) => {
                calls.push(call(block, arguments));
                continue;
            }
            Some(SentPiece::Image(media)) => Err(image(block, media)?),
            Some(SentPiece::Text(value) | SentPiece::Thinking(value)) => Ok(value.clone()),
            Some(SentPiece::Document(media)) => document(block, media),
        };
        parts.push(match &value {
            Ok(value) => text_part(value),
            Err(part) => part.clone(),
        });
        text = value.ok().or(text);
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

/// A document's text if it has no part, or its part: there is none for text, and none for a URL,
/// which is sent as the text of the content.
fn document(block: &ThreadBlock, media: &Media) -> Result<String, String> {
    let mut file = String::new();
    match media {
        Media::Text(text) => return Ok(quoted(text)),
        Media::Url(_) => return Ok(text_of(block.content().unwrap_or_default())),
        Media::File(id) => push_member("file_id", &quoted(id), &mut file),
        Media::Bytes { .. } => {
            let data = media.url().unwrap_or_default();
            push_member("filename", &quoted(&filename(block)), &mut file);
            push_member("file_data", &quoted(&data), &mut file);
        }
    }
    let file = braced(&file);
    Err(format!("{{\"type\":\"file\",\"file\":{file}}}"))
}

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

fn imported(first: &ThreadBlock, blocks: &[&ThreadBlock]) -> String {
    if let Some(whole) = verbatim(first, "message") {
        return whole;
    }
    let role = first.role();
    let mut out = String::new();
    push_member("role", &quoted(role), &mut out);
    if let Some(content) = content(blocks) {
        push_member("content", &content, &mut out);
    }
    if matches!(role, "tool" | "function") {
        for (field, name) in [("data_call_name", "name"), ("data_call_id", "tool_call_id")] {
            if let Some(value) = first.data(field)
                && (name == "name" || !is_listed(first, value))
            {
                push_member(name, value, &mut out);
            }
        }
    }
    let calls = blocks.iter().filter(|block| is_call(block));
    let calls: Vec<String> = calls.map(|block| imported_call(block)).collect();
    if !calls.is_empty() {
        push_member("tool_calls", &list(calls), &mut out);
    }
    push_others(first, &mut out);
    braced(&out)
}

/// Whether a message came with the id of its call in the list that SWE-agent has, and is written with that.
fn is_listed(first: &ThreadBlock, id: &str) -> bool {
    let ids = first.data("data_tool_call_ids").map(elements);
    ids.is_some_and(|ids| ids == [id])
}

/// Appends the members of a message that have no field of their own.
pub(super) fn push_others(first: &ThreadBlock, out: &mut String) {
    let names = first.data("data_members").map(elements).unwrap_or_default();
    for name in names.into_iter().filter_map(string) {
        let own = (!RESERVED.contains(&&*name)).then(|| format!("data_{name}"));
        if let Some(value) = own.and_then(|field| first.data(&field)) {
            push_member(&name, value, out);
        }
    }
    push_members(first.data("data_other"), out);
}

/// The `content` member, unless the message had none.
fn content(blocks: &[&ThreadBlock]) -> Option<String> {
    let parts = blocks.iter().filter(|block| !is_call(block));
    let parts: Vec<&&ThreadBlock> = parts.filter(|block| block.content().is_some()).collect();
    let shape = shape(blocks[0]);
    Some(match (&parts[..], &*shape) {
        ([], "absent") => return None,
        ([], "list") => "[]".to_owned(),
        ([], _) => "null".to_owned(),
        ([block], shape) => match verbatim(block, "content") {
            Some(content) => content,
            None if shape != "list" && is_text(block) => {
                text_of(block.content().unwrap_or_default())
            }
            None => list([part(block)]),
        },
        (parts, _) => list(parts.iter().map(|block| part(block))),
    })
}

/// Whether a block can be written as content that is a string.
fn is_text(block: &ThreadBlock) -> bool {
    block.kind() != Some("image") && is_plain(block)
}

fn part(block: &ThreadBlock) -> String {
    let content = block.content().unwrap_or("null");
    if block.data("data_verbatim").is_some() {
        return content.to_owned();
    }
    let mut out = String::new();
    if block.kind() == Some("image") {
        push_member("type", "\"image_url\"", &mut out);
        push_member("image_url", content, &mut out);
    } else {
        push_member("type", "\"text\"", &mut out);
        push_member("text", &text_of(content), &mut out);
    }
    push_members(block.data("data_part"), &mut out);
    braced(&out)
}

fn imported_call(block: &ThreadBlock) -> String {
    if let Some(whole) = verbatim(block, "call") {
        return whole;
    }
    let call = call(block, &text_of(block.content().unwrap_or("\"\"")));
    // Other members of the function and of the call, before the brackets that close them.
    let mut out = call.strip_suffix("}}").unwrap_or(&call).to_owned();
    push_members(block.data("data_function"), &mut out);
    out.push('}');
    push_members(block.data("data_call"), &mut out);
    out.push('}');
    out
}
