//! Which block a byte of a message lies in.

use crate::json::string;
use crate::render::{ThreadBlock, quoted};
use std::borrow::Cow;
use std::sync::Arc;

/// How much of a text an excerpt shows before and after the byte, in characters.
const BEFORE: usize = 24;
const AFTER: usize = 40;

/// The index of the block of a message that byte `at` lies in, and the byte at which its text begins.
/// `None` if the message has no blocks. A byte before all texts is in the first one.
///
/// The texts of the blocks are looked for one after the other, so it is exact as long as no text
/// occurs in what the API puts around another one.
pub(super) fn block(json: &str, at: usize, blocks: &[Arc<ThreadBlock>]) -> Option<(usize, usize)> {
    if json.is_empty() || blocks.is_empty() {
        return None;
    }
    let mut found = (0, at);
    let mut from = 0;
    for (index, block) in blocks.iter().enumerate() {
        let texts = texts(block);
        let starts = texts.iter().filter(|text| !text.is_empty());
        let start =
            starts.filter_map(|text| Some((from + json.get(from..)?.find(&**text)?, text.len())));
        let Some((start, length)) = start.min() else {
            continue;
        };
        if start > at {
            break;
        }
        found = (index, start);
        // An id comes before what is called with it.
        from = start + length;
    }
    Some(found)
}

/// The texts of a block that a message can have: the id of a call, the content as a string's inside, and
/// the content as it is.
fn texts(block: &ThreadBlock) -> Vec<Cow<'_, str>> {
    let mut texts: Vec<Cow<'_, str>> = Vec::new();
    if block.kind() == Some("call") {
        texts.extend(block.data("data_call_id").map(Cow::Borrowed));
    }
    if let Some(content) = block.content() {
        if content.starts_with('"') {
            texts.push(Cow::Borrowed(content.trim_matches('"')));
            let decoded = string(content).unwrap_or_default();
            if decoded.starts_with(['{', '[']) {
                texts.push(decoded);
            }
        } else {
            texts.push(Cow::Borrowed(content));
            let inner = quoted(content);
            texts.push(Cow::Owned(inner[1..inner.len() - 1].to_owned()));
        }
    }
    texts
}

/// The text around a byte, cut in whole characters.
pub(super) fn excerpt(json: &str, at: usize) -> String {
    let Some((before, after)) = json.split_at_checked(at) else {
        return String::new();
    };
    let skipped = before.chars().count().saturating_sub(BEFORE);
    let mut out = String::new();
    if skipped > 0 {
        out.push('…');
    }
    out.extend(before.chars().skip(skipped));
    out.extend(after.chars().take(AFTER));
    if after.chars().nth(AFTER).is_some() {
        out.push('…');
    }
    out
}

/// The inside of a JSON string as text, if it is whole; else as it is.
pub(super) fn unescaped(inside: &str) -> Cow<'_, str> {
    let quotes = format!("\"{inside}\"");
    match string(&quotes) {
        Some(text) => Cow::Owned(text.into_owned()),
        None => Cow::Borrowed(inside),
    }
}
