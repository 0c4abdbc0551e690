//! Bedrock `converse`.
//!
//! Always a request, an object. System texts of `^sys` are `system`; later ones are the user's. Neighbours of one
//! role become one message, and results come before everything else in it. Messages that were imported in this form
//! are written as they were, with the help of the custom fields described in `logs::formats::bedrock`. The API
//! names the model in the address; the request has it only if the imported one had.

use super::anthropic::{call_id, input, is_assistant, is_system_text};
use super::block::ThreadBlock;
use super::error::RenderError;
use super::head::Head;
use super::json::{braced, list, object, push_member, push_members, quoted, value};
use super::media::{Media, filename, format};
use super::piece::{
    SentBlock, SentPiece, call_of, member_of_part, result_of, shape, text_of, verbatim,
};
use super::provider::Provider;
use super::thread::Source;
use crate::json::string;
use std::borrow::Cow;

/// How addresses of S3 begin.
const S3: &str = "s3://";

/// The form of imported blocks that are written as they were.
const FORM: &str = "bedrock";

/// What a request has besides messages.
pub(super) fn head(source: Source<'_>) -> Result<Head, RenderError> {
    let mut system = Vec::new();
    for block in source.system() {
        if is_system(&block)? {
            let sent = SentBlock::new(Provider::Bedrock, block)?;
            push_parts(&sent, &mut system)?;
        }
    }
    let system = (!system.is_empty()).then(|| ("system", list(system)));
    let mut head = Head::new(source, Provider::Bedrock, system, "messages")?;
    let blocks = source.system().filter(|block| block.is_tool());
    head.tool_list = tools(blocks, &head.tools);
    head.tools_in = Some("toolConfig");
    Ok(head)
}

pub(super) fn is_system(block: &ThreadBlock) -> Result<bool, RenderError> {
    is_system_text(block, FORM)
}

/// The list of tools, with the marks that come after them.
fn tools<'a>(blocks: impl Iterator<Item = Cow<'a, ThreadBlock>>, definitions: &[String]) -> String {
    let mut tools = Vec::new();
    for (block, definition) in blocks.zip(definitions) {
        tools.push(definition.clone());
        tools.extend(cache_point(&block));
    }
    list(tools)
}

fn cache_point(block: &ThreadBlock) -> Option<String> {
    let mark = block.data("data_cache_point")?;
    Some(object([("cachePoint", mark)]))
}

pub(super) fn message(blocks: &[SentBlock<'_>]) -> Result<String, RenderError> {
    let first = &*blocks[0].block;
    let is_imported = blocks[0].piece.is_none();
    if let Some(whole) = verbatim(first, "message").filter(|_| is_imported) {
        return Ok(whole);
    }
    let together = |one: &SentBlock<'_>, next: &SentBlock<'_>| {
        let id = result_of(&one.block);
        id.is_some() && id == result_of(&next.block)
    };
    let (mut results, mut parts) = (Vec::new(), Vec::new());
    for blocks in blocks.chunk_by(together) {
        let is_result = result_of(&blocks[0].block).is_some();
        match (is_result, is_imported) {
            (true, true) => push_result(blocks, &mut parts)?,
            (true, false) => push_result(blocks, &mut results)?,
            (false, _) => push_parts(&blocks[0], &mut parts)?,
        }
    }
    results.append(&mut parts);
    let role = match first.role() {
        _ if is_assistant(first) => "assistant",
        role if is_imported && role != "tool" => role,
        _ => "user",
    };
    let mut out = String::new();
    let own = first.data("data_role").filter(|_| is_imported);
    push_member("role", own.unwrap_or(&quoted(role)), &mut out);
    push_member("content", &list(results), &mut out);
    if is_imported {
        push_members(first.data("data_item"), &mut out);
    }
    Ok(braced(&out))
}

/// Appends the part that a block is, and the mark after it.
fn push_parts(sent: &SentBlock<'_>, parts: &mut Vec<String>) -> Result<(), RenderError> {
    match &sent.piece {
        None => {
            parts.extend(imported(&sent.block, "text"));
            parts.extend(cache_point(&sent.block));
        }
        Some(piece) => parts.extend(part(&sent.block, piece)?),
    }
    Ok(())
}

/// The part that an imported block was; `None` if there was none.
fn imported(block: &ThreadBlock, text: &str) -> Option<String> {
    let content = block.content()?;
    if block.data("data_verbatim").is_some() {
        return Some(content.to_owned());
    }
    let json = |content: &str| {
        let text = string(content).unwrap_or(Cow::Borrowed(content));
        value(&text).unwrap_or(content).to_owned()
    };
    let (name, inner) = match block.kind() {
        Some("call") => {
            let (id, name) = call_of(block);
            let mut out = String::new();
            push_member("toolUseId", &id, &mut out);
            push_member("name", &name, &mut out);
            push_member("input", &json(content), &mut out);
            push_members(block.data("data_call"), &mut out);
            ("toolUse", braced(&out))
        }
        Some("thinking") => {
            let mut out = String::new();
            push_member("text", &text_of(content), &mut out);
            push_members(block.data("data_part"), &mut out);
            let text = object([("reasoningText", braced(&out))]);
            ("reasoningContent", text)
        }
        Some(kind @ ("image" | "document")) => (kind, content.to_owned()),
        _ if block.data("data_part_type").is_some() => ("json", json(content)),
        _ => (text, text_of(content)),
    };
    Some(object([(name, inner)]))
}

/// The part that a block of another form becomes.
fn part(block: &ThreadBlock, piece: &SentPiece) -> Result<Option<String>, RenderError> {
    let text = |text: &str| object([("text", text)]);
    Ok(Some(match piece {
        SentPiece::Nothing => return Ok(None),
        SentPiece::Text(found) if found == "\"\"" => return Ok(None),
        SentPiece::Text(found) => text(found),
        SentPiece::Thinking(found) => {
            // Without a signature the API does not know its own reasoning again.
            let Some(signature) = member_of_part(block, "signature") else {
                return Ok((found != "\"\"").then(|| text(found)));
            };
            let inner = object([("text", &**found), ("signature", &signature)]);
            object([("reasoningContent", object([("reasoningText", inner)]))])
        }
        SentPiece::Call(arguments) => {
            let (id, name) = call_of(block);
            let id = quoted(&call_id(&string(&id).unwrap_or(Cow::Borrowed(&id))));
            let call = [
                ("toolUseId", &*id),
                ("name", &name),
                ("input", &input(arguments)),
            ];
            object([("toolUse", object(call))])
        }
        SentPiece::Image(Media::Text(found)) | SentPiece::Document(Media::Text(found)) => {
            text(&quoted(found))
        }
        // It fetches nothing from there.
        SentPiece::Image(Media::Url(uri)) | SentPiece::Document(Media::Url(uri))
            if !uri.starts_with(S3) =>
        {
            text(&text_of(block.content().unwrap_or_default()))
        }
        SentPiece::Image(media) => object([("image", object(source(block, media)?))]),
        SentPiece::Document(media) => {
            let name = [("name", quoted(&filename(block)))];
            object([(
                "document",
                object(name.into_iter().chain(source(block, media)?)),
            )])
        }
    }))
}

/// Format and source of an image or a document.
fn source(block: &ThreadBlock, media: &Media) -> Result<[(&'static str, String); 2], RenderError> {
    let known = match media {
        Media::Bytes { media_type, data } => {
            format(media_type).map(|name| (name, object([("bytes", quoted(data))])))
        }
        Media::Url(uri) if uri.starts_with(S3) => {
            let name = uri.rsplit('.').next().unwrap_or_default();
            let place = object([("uri", quoted(uri))]);
            Some((name, object([("s3Location", place)])))
        }
        _ => None,
    };
    let Some((name, source)) = known else {
        return Err(RenderError::block(
            block.id(),
            "expected base64 data of a type that `bedrock` takes, or an address of S3",
            "`--as anthropic`, `--as gemini` and `--as openai-responses` take files and other types",
        ));
    };
    Ok([("format", quoted(name)), ("source", source)])
}

/// Appends the result that some blocks are, and the mark after it.
fn push_result(blocks: &[SentBlock<'_>], parts: &mut Vec<String>) -> Result<(), RenderError> {
    let first = &*blocks[0].block;
    let id = first.data("data_call_id").map(str::to_owned);
    let id = id
        .or_else(|| result_of(first).map(|id| quoted(&id)))
        .unwrap_or_default();
    let mut content = Vec::new();
    for SentBlock { block, piece } in blocks {
        match piece {
            None => content.extend(imported(block, "text")),
            // An empty text is a result, too.
            Some(SentPiece::Text(text)) => content.push(object([("text", text)])),
            Some(piece) => content.extend(part(block, piece)?),
        }
    }
    let mut out = String::new();
    let is_imported = blocks[0].piece.is_none();
    let id = if is_imported {
        id
    } else {
        quoted(&call_id(&string(&id).unwrap_or(Cow::Borrowed(&id))))
    };
    push_member("toolUseId", &id, &mut out);
    if !(is_imported && shape(first) == "absent") {
        push_member("content", &list(content), &mut out);
    }
    if is_imported {
        push_members(first.data("data_call"), &mut out);
    } else if first.data("data_is_error") == Some("true") || first.kind() == Some("error") {
        push_member("status", "\"error\"", &mut out);
    }
    parts.push(object([("toolResult", braced(&out))]));
    if is_imported {
        parts.extend(blocks.last().and_then(|sent| cache_point(&sent.block)));
    }
    Ok(())
}
