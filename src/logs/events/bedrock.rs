//! Bedrock `converse-stream`: frames of AWS's event stream, and the reply that they are pieces of.
//!
//! An event is an object with one member, whose name is its type: `{"contentBlockDelta": {…}}`. Check sums of
//! frames are not looked at: a recording is not a connection.

use super::grown::{Grown, Latest, StreamedReply, event, number};
use crate::json::{get, members};
use crate::logs::json::{braced, list, object, push_member, value};
use std::collections::BTreeMap;

/// The frames of an event stream as server-sent events, as far as they go.
pub(in crate::logs) fn frames(mut bytes: &[u8]) -> String {
    let mut out = String::new();
    while let Some((name, payload, rest)) = frame(bytes) {
        let payload = std::str::from_utf8(payload).ok().and_then(value);
        let event = object([(name, payload.unwrap_or("null"))]);
        out.push_str(&format!("data: {event}\n\n"));
        bytes = rest;
    }
    out
}

/// The type of the first event, its payload, and the frames after it.
///
/// A frame is its length and that of its headers (4 bytes each), a check sum, headers, payload, and a check sum.
fn frame(bytes: &[u8]) -> Option<(String, &[u8], &[u8])> {
    let number = |at: usize| {
        let four = bytes.get(at..)?.first_chunk()?;
        usize::try_from(u32::from_be_bytes(*four)).ok()
    };
    let (length, of_headers) = (number(0)?, number(4)?);
    let (frame, rest) = bytes.split_at_checked(length)?;
    let body = frame.get(12..length.checked_sub(4)?)?;
    let (mut headers, payload) = body.split_at_checked(of_headers)?;
    let mut name = String::new();
    while let Some((length, rest)) = headers.split_first() {
        let (header, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        let (size, rest) = match kind {
            0 | 1 => (0, rest),
            2 => (1, rest),
            3 => (2, rest),
            4 => (4, rest),
            5 | 8 => (8, rest),
            9 => (16, rest),
            _ => {
                let (size, rest) = rest.split_first_chunk()?;
                (usize::from(u16::from_be_bytes(*size)), rest)
            }
        };
        let (value, rest) = rest.split_at_checked(size)?;
        if matches!(header, b":event-type" | b":exception-type") {
            name = String::from_utf8_lossy(value).into_owned();
        }
        headers = rest;
    }
    Some((name, payload, rest))
}

pub(super) fn read(events: &[String]) -> StreamedReply {
    let mut message = String::new();
    let mut around = Latest::default();
    let mut blocks: BTreeMap<u64, Grown> = BTreeMap::new();
    let mut out = StreamedReply::default();
    for data in events {
        for (name, inner) in event(data) {
            let found = members(inner);
            let mut piece = |name| {
                let block = blocks.entry(number(&found, "contentBlockIndex"));
                let block = block.or_default();
                block.add(get(&found, name).unwrap_or("{}"));
            };
            match &*name {
                "messageStart" => {
                    push_member("role", get(&found, "role").unwrap_or("null"), &mut message);
                }
                "contentBlockStart" => piece("start"),
                "contentBlockDelta" => piece("delta"),
                "contentBlockStop" => {}
                // What they say is about the whole; `p` fills a frame up.
                "messageStop" | "metadata" => {
                    out.whole |= name == "messageStop";
                    around.note(&found, &["p"]);
                }
                _ => out.error = Some(object([(&*name, inner)])),
            }
        }
    }
    if !message.is_empty() {
        push_member("content", &list(blocks.values().map(block)), &mut message);
        let output = object([("message", braced(&message))]);
        out.response = Some(around.with([("output", output)]));
    }
    out
}

/// A block of content as the API has it in one piece: there the arguments of a call are JSON and not its text, and
/// the text of reasoning is one level deeper.
fn block(grown: &Grown) -> String {
    let json = grown.json(false);
    let found = members(&json);
    let Some((name, inner)) = found.first() else {
        return json;
    };
    let inside = members(inner);
    match &**name {
        "toolUse" => {
            let input = get(&inside, "input").and_then(crate::json::string);
            let input = input.unwrap_or_default();
            // Arguments that were cut off stay a text.
            let input = match value(&input) {
                Some(input) => input.to_owned(),
                None if input.is_empty() => "{}".to_owned(),
                None => crate::logs::json::quoted(&input),
            };
            let rest = inside.iter().filter(|(name, _)| name != "input");
            let rest = rest.map(|(name, raw)| (&**name, *raw));
            object([(name, object(rest.chain([("input", &*input)])))])
        }
        "reasoningContent" if get(&inside, "text").is_some() => {
            let text = object([("reasoningText", inner)]);
            object([(name, text)])
        }
        _ => json,
    }
}
