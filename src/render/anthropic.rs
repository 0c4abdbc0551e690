//! Anthropic Messages.
//!
//! Always a request, an object. System texts of `^sys` are `system`; later ones are the user's, as
//! messages have no such role. Neighbours of one role become one message. In a message, results
//! come before everything else, because the API asks for them right after their calls. Messages that
//! were imported in this form are written as they were.

use super::anthropic_imported as imported;
use super::block::ThreadBlock;
use super::error::RenderError;
use super::grouping::Grouping;
use super::head::Head;
use super::json::{braced, compact, list, object_in, push_member, quoted};
use super::media::{Media, filename};
use super::piece::{Piece, call_of, is_of_form, member_of_part, result_of, role, same_message};
use super::provider::Provider;
use super::source::Source;
use crate::json::{get, members, string};
use std::borrow::Cow;

/// The form of imported blocks that are written as they were.
const FORM: &str = "anthropic";

/// What a request has besides messages.
pub(super) fn head(source: Source<'_>) -> Result<Head, RenderError> {
    let mut system = Vec::new();
    for block in source.system() {
        if let Some(part) = system_part(&block)? {
            system.push(part);
        }
    }
    let system = content(system).map(|content| ("system", content));
    Head::new(source, Provider::Anthropic, system, "messages")
}

/// Whether a block is a part of `system`.
pub(super) fn is_system(block: &ThreadBlock) -> Result<bool, RenderError> {
    Ok(system_part(block)?.is_some())
}

/// A part of a message: its JSON, and the text alone if it has nothing else.
struct Part {
    json: String,
    plain: Option<String>,
}

/// Content of some parts: a string if it is one plain text. `None` if there are none.
fn content(parts: Vec<Part>) -> Option<String> {
    match <[Part; 1]>::try_from(parts) {
        Ok([part]) => Some(part.plain.unwrap_or_else(|| list([part.json]))),
        Err(parts) if parts.is_empty() => None,
        Err(parts) => {
            let parts: Vec<String> = parts.into_iter().map(|part| part.json).collect();
            Some(list(&parts))
        }
    }
}

/// The part of `system` that a block is, if it is one.
fn system_part(block: &ThreadBlock) -> Result<Option<Part>, RenderError> {
    let is_system = block.is_system() && matches!(role(block), "system" | "developer");
    if !is_system || block.is_tool() {
        return Ok(None);
    }
    if is_of_form(block, FORM) {
        let plain = imported::plain(block).filter(|_| block.data("data_shape").is_none());
        let json = imported::part(block);
        return Ok(Some(Part { json, plain }));
    }
    Ok(match Piece::of(block)? {
        Piece::Text(text) => text_part(block, text),
        Piece::Document(Media::Text(text)) => text_part(block, quoted(&text)),
        _ => None,
    })
}

/// The messages of blocks.
#[derive(Default)]
pub(super) struct Messages<'a> {
    /// Whether the open message is the assistant's, else the user's.
    assistant: bool,
    /// Results of the open message.
    results: Vec<ToolResult<'a>>,
    /// Its other parts.
    parts: Vec<Part>,
    /// Blocks of an open message that was imported.
    imported: Vec<Cow<'a, ThreadBlock>>,
}

/// The result of one call, from one or several blocks.
struct ToolResult<'a> {
    id: String,
    last: Cow<'a, ThreadBlock>,
    parts: Vec<Part>,
    is_error: Option<&'static str>,
    cache: Option<String>,
}

impl<'a> Grouping<'a> for Messages<'a> {
    fn add(
        &mut self,
        block: Cow<'a, ThreadBlock>,
        out: &mut Vec<String>,
    ) -> Result<bool, RenderError> {
        let before = out.len();
        let empty = self.is_empty();
        self.put(block, out)?;
        Ok(empty || out.len() > before)
    }

    fn end(&mut self, out: &mut Vec<String>) -> Result<(), RenderError> {
        self.close(out);
        Ok(())
    }
}

impl<'a> Messages<'a> {
    /// Whether no message is open.
    fn is_empty(&self) -> bool {
        self.imported.is_empty() && self.results.is_empty() && self.parts.is_empty()
    }

    fn put(
        &mut self,
        block: Cow<'a, ThreadBlock>,
        out: &mut Vec<String>,
    ) -> Result<(), RenderError> {
        if is_of_form(&block, FORM) {
            let message = |block: &ThreadBlock| block.data("data_message").map(str::to_owned);
            let open = self.imported.last().map(|open| message(open));
            if open.is_none_or(|open| open != message(&block)) {
                self.close(out);
            }
            self.imported.push(block);
            return Ok(());
        }
        if !self.imported.is_empty() {
            self.close(out);
        }
        let piece = Piece::of(&block)?;
        if let Some(id) = result_of(&block).map(Cow::into_owned) {
            self.turn(false, out);
            self.result(id, block, piece);
            return Ok(());
        }
        let assistant = role(&block) == "assistant";
        if let Some(part) = part(&block, piece) {
            self.turn(assistant, out);
            self.parts.push(part);
        }
        Ok(())
    }

    /// Adds a block to the result of its call.
    fn result(&mut self, id: String, block: Cow<'a, ThreadBlock>, piece: Piece) {
        let is_error = match block.data("data_is_error") {
            Some("true") => Some("true"),
            Some("false") => Some("false"),
            _ if block.kind() == Some("error") => Some("true"),
            _ => None,
        };
        let part = match piece {
            // An empty text is a result, too.
            Piece::Text(text) if text == "\"\"" => Some(plain_part(text)),
            piece => part(&block, piece),
        };
        match self.results.last_mut() {
            Some(open) if open.id == id && same_message(&open.last, &block) => {
                open.parts.extend(part);
                open.is_error = open.is_error.or(is_error);
                open.last = block;
            }
            _ => self.results.push(ToolResult {
                id,
                parts: part.into_iter().collect(),
                is_error,
                cache: block.data("data_cache_control").map(str::to_owned),
                last: block,
            }),
        }
    }

    /// Ends the open message if it has another role.
    fn turn(&mut self, assistant: bool, out: &mut Vec<String>) {
        if self.assistant != assistant {
            self.close(out);
            self.assistant = assistant;
        }
    }

    /// Ends the open message.
    fn close(&mut self, out: &mut Vec<String>) {
        let blocks = std::mem::take(&mut self.imported);
        if !blocks.is_empty() {
            out.push(imported::message(&blocks));
        }
        let results = std::mem::take(&mut self.results).into_iter();
        let mut parts: Vec<Part> = results.map(ToolResult::into_part).collect();
        parts.append(&mut self.parts);
        if let Some(content) = content(parts) {
            let role = if self.assistant { "assistant" } else { "user" };
            out.push(format!("{{\"role\":\"{role}\",\"content\":{content}}}"));
        }
    }
}

impl ToolResult<'_> {
    fn into_part(self) -> Part {
        let mut json = String::from("{\"type\":\"tool_result\"");
        push_member("tool_use_id", &quoted(&call_id(&self.id)), &mut json);
        // Empty texts only matter alone.
        let empty = |part: &Part| part.plain.as_deref() == Some("\"\"");
        let mut parts = self.parts;
        if parts.len() > 1 {
            parts.retain(|part| !empty(part));
        }
        if let Some(content) = content(parts) {
            push_member("content", &content, &mut json);
        }
        if let Some(is_error) = self.is_error {
            push_member("is_error", is_error, &mut json);
        }
        if let Some(cache) = self.cache {
            push_member("cache_control", &cache, &mut json);
        }
        json.push('}');
        Part { json, plain: None }
    }
}

/// The part that a block becomes; `None` for an empty text, which the API refuses.
fn part(block: &ThreadBlock, piece: Piece) -> Option<Part> {
    let mut json = String::from("{\"type\":");
    match piece {
        Piece::Nothing => return None,
        Piece::Text(text) => return text_part(block, text),
        Piece::Thinking(text) => {
            // The API takes only reasoning that it signed. Without a signature it is text.
            let Some(signature) = member_of_part(block, "signature") else {
                return text_part(block, text);
            };
            json.push_str("\"thinking\"");
            push_member("thinking", &text, &mut json);
            push_member("signature", &signature, &mut json);
            json.push('}');
            return Some(Part { json, plain: None });
        }
        Piece::Call(arguments) => {
            let (id, name) = call_of(block);
            let id = string(&id).unwrap_or(Cow::Borrowed(&id));
            json.push_str("\"tool_use\"");
            push_member("id", &quoted(&call_id(&id)), &mut json);
            push_member("name", &name, &mut json);
            push_member("input", &input(&arguments), &mut json);
        }
        Piece::Image(media) => {
            json.push_str("\"image\"");
            push_member("source", &media.source(), &mut json);
        }
        Piece::Document(media) => {
            json.push_str("\"document\"");
            push_member("source", &media.source(), &mut json);
            if let Some(title) = title(block, &media) {
                push_member("title", &title, &mut json);
            }
        }
    }
    if let Some(cache) = cache_control(block) {
        push_member("cache_control", &cache, &mut json);
    }
    json.push('}');
    Some(Part { json, plain: None })
}

fn text_part(block: &ThreadBlock, text: String) -> Option<Part> {
    if text == "\"\"" {
        return None;
    }
    let mut part = plain_part(text);
    if let Some(cache) = cache_control(block) {
        part.json.pop();
        push_member("cache_control", &cache, &mut part.json);
        part.json.push('}');
        part.plain = None;
    }
    Some(part)
}

fn plain_part(text: String) -> Part {
    Part {
        json: format!("{{\"type\":\"text\",\"text\":{text}}}"),
        plain: Some(text),
    }
}

/// The mark of the part, or of its whole message. That of a result's message is on the result.
fn cache_control(block: &ThreadBlock) -> Option<String> {
    let of = |field: &str| {
        let found = members(block.data(field).unwrap_or_default());
        get(&found, "cache_control").map(str::to_owned)
    };
    let message = block.data("data_cache_control").map(str::to_owned);
    let message = message.filter(|_| result_of(block).is_none());
    of("data_part").or_else(|| of("data_call")).or(message)
}

/// The title that a document has, or the name of its file, unless that is the block's id.
fn title(block: &ThreadBlock, media: &Media) -> Option<String> {
    let content = members(block.content().unwrap_or_default());
    let own = get(&content, "title").map(str::to_owned);
    let own = own.or_else(|| member_of_part(block, "title"));
    let file = matches!(media, Media::Bytes { .. }).then(|| filename(block));
    own.or_else(|| {
        file.filter(|name| name != block.id())
            .map(|name| quoted(&name))
    })
}

/// The arguments of a call as an object. Text that is none is kept as its member `arguments`.
fn input(arguments: &str) -> String {
    let text = string(arguments).unwrap_or_default();
    if let Some(found) = object_in(&text) {
        return compact(found).into_owned();
    }
    if text.trim_ascii().is_empty() {
        return "{}".to_owned();
    }
    let mut out = String::new();
    push_member("arguments", arguments, &mut out);
    braced(&out)
}

/// The id of a call with the characters that the API allows: letters, digits, `_` and `-`.
fn call_id(id: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    id.chars()
        .map(|c| if allowed(c) { c } else { '-' })
        .collect()
}
