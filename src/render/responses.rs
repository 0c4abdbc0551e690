//! OpenAI Responses.
//!
//! Always a request, an object. One system text is `instructions`; several are messages. A call,
//! a result and reasoning are one item each, in the order of the tree. Items that were imported in
//! this form are written as they were.

use super::block::ThreadBlock;
use super::error::RenderError;
use super::grouping::Grouping;
use super::head::Head;
use super::json::{list, push_member, quoted};
use super::media::{Media, detail, filename};
use super::piece::{
    Piece, call_of, is_of_form, member_of_part, result_of, role, same_message, text_of,
};
use super::provider::Provider;
use super::responses_imported::{self as imported, lone};
use super::source::Source;
use crate::json::{get, members, string};
use std::borrow::Cow;

/// The form of imported blocks that are written as they were.
const FORM: &str = "openai-responses";

/// What a request has besides items.
pub(super) fn head(source: Source<'_>) -> Result<Head, RenderError> {
    let instructions = instructions(source)?;
    let (id, system) = match instructions {
        Some((id, text)) => (Some(id), Some(("instructions", text))),
        None => (None, None),
    };
    let head = Head::new(source, Provider::OpenAiResponses, system, "input")?;
    let previous = previous(source);
    let alone = text_alone(source, previous, id.as_deref());
    let head = head.with_instructions(id).with_previous(previous);
    Ok(head.with_text_alone(alone))
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
    Ok(match Piece::of(&block)? {
        Piece::Text(text) if role(&block) == "system" => Some((block.id().to_owned(), text)),
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

/// The items of blocks.
#[derive(Default)]
pub(super) struct Items<'a> {
    open: Option<Open<'a>>,
    /// An item that no block can be added to.
    whole: Option<String>,
    /// Blocks of an open item that was imported.
    imported: Vec<Cow<'a, ThreadBlock>>,
}

/// A message or the output of a call, whose next part may follow.
struct Open<'a> {
    /// Its last block.
    last: Cow<'a, ThreadBlock>,
    result: Option<String>,
    parts: Vec<String>,
    /// The text of its last part that is one.
    plain: Option<String>,
}

impl<'a> Grouping<'a> for Items<'a> {
    fn add(
        &mut self,
        block: Cow<'a, ThreadBlock>,
        out: &mut Vec<String>,
    ) -> Result<bool, RenderError> {
        let before = out.len();
        let empty = self.open.is_none() && self.whole.is_none() && self.imported.is_empty();
        self.put(block, out)?;
        Ok(empty || out.len() > before)
    }

    fn end(&mut self, out: &mut Vec<String>) -> Result<(), RenderError> {
        self.close(out);
        Ok(())
    }
}

impl<'a> Items<'a> {
    fn put(
        &mut self,
        block: Cow<'a, ThreadBlock>,
        out: &mut Vec<String>,
    ) -> Result<(), RenderError> {
        if is_of_form(&block, FORM) {
            let last = self.imported.last();
            let item = |block: &ThreadBlock| block.data("data_message").map(str::to_owned);
            let joins = last.is_some_and(|last| item(last) == item(&block));
            if !joins {
                self.close(out);
            }
            self.imported.push(block);
            return Ok(());
        }
        if !self.imported.is_empty() {
            self.close(out);
        }
        let piece = Piece::of(&block)?;
        let result = result_of(&block).map(Cow::into_owned);
        match (&piece, &result) {
            // A result without content is still an answer to its call.
            (Piece::Nothing, None) => return Ok(()),
            (Piece::Call(arguments), _) => {
                let (id, name) = call_of(&block);
                let mut item = String::from("{\"type\":\"function_call\"");
                push_member("call_id", &text_of(&id), &mut item);
                push_member("name", &name, &mut item);
                push_member("arguments", arguments, &mut item);
                item.push('}');
                self.close(out);
                self.whole = Some(item);
                return Ok(());
            }
            (Piece::Thinking(text), _) => {
                if let Some(item) = reasoning(&block, text) {
                    self.close(out);
                    self.whole = Some(item);
                    return Ok(());
                }
            }
            _ => {}
        }
        let joins = |open: &Open<'_>| open.result == result && same_message(&open.last, &block);
        if !self.open.as_ref().is_some_and(joins) {
            self.close(out);
        }
        let (part, plain) = part(&block, piece);
        let open = self.open.get_or_insert_with(|| Open {
            last: Cow::Owned(ThreadBlock::clone(&block)),
            result,
            parts: Vec::new(),
            plain: None,
        });
        open.last = block;
        open.parts.extend(part);
        open.plain = plain;
        Ok(())
    }

    /// Ends the open item.
    fn close(&mut self, out: &mut Vec<String>) {
        out.extend(self.whole.take());
        let imported = std::mem::take(&mut self.imported);
        if !imported.is_empty() {
            out.push(imported::item(&imported));
        }
        let Some(open) = self.open.take() else {
            return;
        };
        let content = match (&open.parts[..], open.plain) {
            ([], _) => "\"\"".to_owned(),
            ([_], Some(text)) => text,
            (parts, _) => list(parts),
        };
        let mut item = String::new();
        if let Some(id) = open.result {
            item.push_str("{\"type\":\"function_call_output\"");
            push_member("call_id", &quoted(&id), &mut item);
            push_member("output", &content, &mut item);
        } else {
            item.push_str("{\"type\":\"message\"");
            push_member("role", &quoted(known_role(&open.last)), &mut item);
            push_member("content", &content, &mut item);
        }
        item.push('}');
        out.push(item);
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
fn part(block: &ThreadBlock, piece: Piece) -> (Option<String>, Option<String>) {
    let kind = match known_role(block) {
        "assistant" => "output_text",
        _ => "input_text",
    };
    let text = |text: String| {
        let part = format!("{{\"type\":\"{kind}\",\"text\":{text}}}");
        (Some(part), Some(text))
    };
    let mut out = String::new();
    match piece {
        Piece::Nothing => return (None, None),
        Piece::Text(value) | Piece::Thinking(value) | Piece::Call(value) => return text(value),
        Piece::Document(Media::Text(value)) | Piece::Image(Media::Text(value)) => {
            return text(quoted(&value));
        }
        Piece::Image(media) => {
            out.push_str("{\"type\":\"input_image\"");
            match &media {
                Media::File(id) => push_member("file_id", &quoted(id), &mut out),
                media => push_member(
                    "image_url",
                    &quoted(&media.url().unwrap_or_default()),
                    &mut out,
                ),
            }
            if let Some(detail) = detail(block) {
                push_member("detail", &detail, &mut out);
            }
        }
        Piece::Document(media) => {
            out.push_str("{\"type\":\"input_file\"");
            match &media {
                Media::File(id) => push_member("file_id", &quoted(id), &mut out),
                Media::Url(url) => push_member("file_url", &quoted(url), &mut out),
                media => {
                    push_member("filename", &quoted(&filename(block)), &mut out);
                    push_member(
                        "file_data",
                        &quoted(&media.url().unwrap_or_default()),
                        &mut out,
                    );
                }
            }
        }
    }
    out.push('}');
    (Some(out), None)
}

/// A reasoning item, if the block kept what makes the API know it again; without that it is text.
fn reasoning(block: &ThreadBlock, text: &str) -> Option<String> {
    let known = ["id", "encrypted_content"];
    let kept = known.map(|name| Some((name, member_of_part(block, name)?)));
    if kept.iter().all(Option::is_none) {
        return None;
    }
    let mut out = String::from("{\"type\":\"reasoning\"");
    let summary = match text {
        "\"\"" => "[]".to_owned(),
        text => format!("[{{\"type\":\"summary_text\",\"text\":{text}}}]"),
    };
    push_member("summary", &summary, &mut out);
    for (name, value) in kept.iter().flatten() {
        push_member(name, value, &mut out);
    }
    out.push('}');
    Some(out)
}
