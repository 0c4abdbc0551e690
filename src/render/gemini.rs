//! Gemini `generateContent`.
//!
//! Always a request, an object. System texts of `^sys` are `systemInstruction`; later ones are the user's.
//! Neighbours of one role become one content. Contents that were imported in this form are written as they were,
//! with the help of the custom fields described in `logs::formats::gemini`. The API names the model in
//! the address; the request has it only if the imported one had.

use super::anthropic::{input, is_assistant, is_system_text};
use super::block::ThreadBlock;
use super::error::RenderError;
use super::head::Head;
use super::json::{braced, list, object, object_in, push_member, push_members, quoted, value};
use super::media::Media;
use super::piece::{SentBlock, SentPiece, call_of, result_of, shape, text_of, verbatim};
use super::provider::Provider;
use super::thread::Source;
use crate::json::{get, members, string};
use std::borrow::Cow;

/// The form of imported blocks that are written as they were.
const FORM: &str = "gemini";

/// What a request has besides contents.
pub(super) fn head(source: Source<'_>) -> Result<Head, RenderError> {
    let mut blocks = Vec::new();
    for block in source.system() {
        if is_system(&block)? {
            blocks.push(SentBlock::new(Provider::Gemini, block)?);
        }
    }
    let mut head = Head::new(source, Provider::Gemini, None, "contents")?;
    let tool_blocks = source.system().filter(|block| block.is_tool());
    head.tool_list = tools(tool_blocks, &head.tools);
    if let Some(first) = blocks.first().map(|sent| &*sent.block) {
        let name = match first.text("data_part_type").as_deref() {
            Some("system_instruction") => "system_instruction",
            _ => "systemInstruction",
        };
        let text = first
            .content()
            .filter(|_| shape(first) == "text" && blocks.len() == 1);
        let prompt = match text {
            Some(text) => text_of(text),
            None => content(&blocks, None)?,
        };
        head.set_system(name, prompt)?;
    }
    Ok(head)
}

pub(super) fn is_system(block: &ThreadBlock) -> Result<bool, RenderError> {
    is_system_text(block, FORM)
}

/// The list of tools, of which `definitions` has a function or a whole tool each: neighbouring functions are in one
/// tool, as they came.
fn tools<'a>(blocks: impl Iterator<Item = Cow<'a, ThreadBlock>>, definitions: &[String]) -> String {
    let mut tools: Vec<String> = Vec::new();
    // The functions of the last tool, and what it calls them.
    let mut open: Option<(String, Vec<&str>)> = None;
    let close = |open: &mut Option<(String, Vec<&str>)>, tools: &mut Vec<String>| {
        tools.extend(open.take().map(|(name, all)| object([(name, list(all))])));
    };
    for (block, definition) in blocks.zip(definitions) {
        let begins = block.text("data_tool").map(Cow::into_owned);
        if get(&members(definition), "name").is_none() {
            close(&mut open, &mut tools);
            tools.push(definition.clone());
            continue;
        }
        if begins.is_some() {
            close(&mut open, &mut tools);
        }
        let name = || begins.unwrap_or_else(|| "functionDeclarations".to_owned());
        let (_, all) = open.get_or_insert_with(|| (name(), Vec::new()));
        all.push(definition);
    }
    close(&mut open, &mut tools);
    list(tools)
}

pub(super) fn message(blocks: &[SentBlock<'_>]) -> Result<String, RenderError> {
    let first = &*blocks[0].block;
    if blocks[0].piece.is_none()
        && let Some(whole) = verbatim(first, "message")
    {
        return Ok(whole);
    }
    let is_reply = is_assistant(first);
    content(blocks, Some(if is_reply { "model" } else { "user" }))
}

/// The content that some blocks are, of this role if it is not another one.
fn content(blocks: &[SentBlock<'_>], role: Option<&str>) -> Result<String, RenderError> {
    let first = &*blocks[0].block;
    let mut parts = Vec::new();
    if blocks[0].piece.is_none() {
        parts.extend(blocks.iter().filter_map(|sent| imported(&sent.block)));
    } else {
        let together = |one: &SentBlock<'_>, next: &SentBlock<'_>| {
            let id = result_of(&one.block);
            id.is_some() && id == result_of(&next.block)
        };
        for blocks in blocks.chunk_by(together) {
            match result_of(&blocks[0].block) {
                Some(_) => response(blocks, &mut parts),
                None => parts.extend(blocks.iter().filter_map(part)),
            }
        }
    }
    let mut out = String::new();
    let own = first
        .data("data_role")
        .filter(|_| blocks[0].piece.is_none());
    let role = role.map(quoted);
    if let Some(role) = own.or(role.as_deref()).filter(|role| *role != "null") {
        push_member("role", role, &mut out);
    }
    push_member("parts", &list(parts), &mut out);
    if blocks[0].piece.is_none() {
        push_members(first.data("data_item"), &mut out);
    }
    Ok(braced(&out))
}

/// The part that an imported block was; `None` if there was none.
fn imported(block: &ThreadBlock) -> Option<String> {
    let content = block.content();
    if block.data("data_verbatim").is_some() {
        return content.map(str::to_owned);
    }
    let mut out = String::new();
    let of_function = |member: &str| {
        let mut out = String::new();
        let fields = [("id", "data_call_id"), ("name", "data_call_name")];
        for (name, field) in fields {
            if let Some(value) = block.data(field) {
                push_member(name, value, &mut out);
            }
        }
        if let Some(content) = content {
            let text = string(content).unwrap_or(Cow::Borrowed(content));
            push_member(member, value(&text).unwrap_or(content), &mut out);
        }
        push_members(block.data("data_call"), &mut out);
        braced(&out)
    };
    let (name, inner) = match block.kind() {
        Some("call") => ("functionCall", of_function("args")),
        Some("result") => ("functionResponse", of_function("response")),
        Some("image" | "document") => ("inlineData", content?.to_owned()),
        _ => ("text", text_of(content?)),
    };
    let own = block.text("data_part_type").filter(|_| name != "text");
    push_member(own.as_deref().unwrap_or(name), &inner, &mut out);
    if block.kind() == Some("thinking") {
        push_member("thought", "true", &mut out);
    }
    push_members(block.data("data_part"), &mut out);
    Some(braced(&out))
}

/// The part that a block of another form becomes.
fn part(sent: &SentBlock<'_>) -> Option<String> {
    let text = |text: &str| Some(object([("text", text)]));
    match sent.piece.as_ref()? {
        SentPiece::Nothing => None,
        SentPiece::Text(found) => text(found),
        SentPiece::Thinking(found) => Some(object([("text", &**found), ("thought", "true")])),
        SentPiece::Call(arguments) => {
            let (id, name) = call_of(&sent.block);
            let call = object([("id", &*id), ("name", &name), ("args", &input(arguments))]);
            Some(object([("functionCall", call)]))
        }
        SentPiece::Document(Media::Text(found)) | SentPiece::Image(Media::Text(found)) => {
            text(&quoted(found))
        }
        SentPiece::Image(media) | SentPiece::Document(media) => Some(data(media)),
    }
}

fn data(media: &Media) -> String {
    let (name, inner) = match media {
        Media::Bytes { media_type, data } => (
            "inlineData",
            object([("mimeType", quoted(media_type)), ("data", quoted(data))]),
        ),
        Media::Url(uri) | Media::File(uri) | Media::Text(uri) => {
            ("fileData", object([("fileUri", quoted(uri))]))
        }
    };
    object([(name, inner)])
}

/// Appends the response of a function that some blocks are: an object, or their text as its `output`. Images and documents
/// come after it.
fn response(blocks: &[SentBlock<'_>], parts: &mut Vec<String>) {
    let (id, name) = call_of(&blocks[0].block);
    let (mut texts, mut others) = (Vec::new(), Vec::new());
    for sent in blocks {
        match &sent.piece {
            Some(SentPiece::Text(text)) => texts.extend(string(text)),
            _ => others.extend(part(sent)),
        }
    }
    let text = texts.join("\n");
    let response = match object_in(&text) {
        Some(found) => found.to_owned(),
        None => object([("output", quoted(&text))]),
    };
    let response = object([("id", &*id), ("name", &name), ("response", &response)]);
    parts.push(object([("functionResponse", response)]));
    parts.append(&mut others);
}
