//! Why a request is not the one before with more at its end.
//!
//! Texts are JSON, as a provider is sent them.

use super::cause::Cause;
use super::pieces::{Place, RequestPiece, tool_name};
use crate::json::{get, members};
use crate::render::{ThreadBlock, canonical};
use regex_automata::meta::Regex;
use std::sync::{Arc, LazyLock};

/// The messages of two requests from the first that differs on.
pub(super) struct Tails<'a> {
    pub(super) older: &'a [&'a str],
    pub(super) newer: &'a [&'a str],
    /// The blocks of the first message of each.
    pub(super) older_blocks: &'a [Arc<ThreadBlock>],
    pub(super) newer_blocks: &'a [Arc<ThreadBlock>],
    /// Whether the newer request is the first after a compaction.
    pub(super) compaction: bool,
}

/// Why the front differs, from the first piece that does. Either side may have ended.
pub(super) fn of_front(older: &[RequestPiece], newer: &[RequestPiece]) -> Cause {
    let (old, new) = (older.first(), newer.first());
    let place = |piece: Option<&'_ RequestPiece>| piece.map(|piece| piece.place.clone());
    match (place(old), place(new)) {
        (Some(Place::Tool { .. }), _) | (_, Some(Place::Tool { .. })) => of_tools(older, newer),
        (Some(Place::System), Some(Place::System)) => {
            let change = of_texts(&older[0].json, &newer[0].json);
            change
                .filter(|cause| *cause != Cause::Extended)
                .unwrap_or(Cause::SystemPrompt)
        }
        (Some(Place::Parameter { name }), Some(Place::Parameter { name: other }))
            if name == other =>
        {
            let value = |piece: &RequestPiece| {
                canonical(&format!("{{{}}}", piece.json.trim_end_matches(',')))
            };
            match &*name {
                "model" | "modelId" => Cause::Model,
                _ if value(&older[0]) == value(&newer[0]) => Cause::KeyOrder,
                _ => Cause::Parameter { name },
            }
        }
        // One of them has a parameter that the other has not.
        (Some(Place::Parameter { name }), _) if !has(newer, &name) => Cause::Parameter { name },
        (_, Some(Place::Parameter { name })) | (Some(Place::Parameter { name }), _) => {
            Cause::Parameter { name }
        }
        _ => Cause::SystemPrompt,
    }
}

fn has(pieces: &[RequestPiece], parameter: &str) -> bool {
    let is_it = |place: &Place| matches!(place, Place::Parameter { name } if name == parameter);
    pieces.iter().any(|piece| is_it(&piece.place))
}

fn of_tools(older: &[RequestPiece], newer: &[RequestPiece]) -> Cause {
    let tools = |pieces: &[RequestPiece]| -> Vec<(String, String)> {
        let tools = pieces.iter();
        let tools = tools.filter(|piece| matches!(piece.place, Place::Tool { .. }));
        let tools = tools.map(|tool| tool.json.trim_end_matches(','));
        tools
            .map(|json| (tool_name(json), canonical(json)))
            .collect()
    };
    let (old, new) = (tools(older), tools(newer));
    let missing = |from: &[(String, String)], name: &str| !from.iter().any(|(n, _)| n == name);
    if let Some((name, _)) = new.iter().find(|(name, _)| missing(&old, name)) {
        return Cause::ToolAdded { name: name.clone() };
    }
    if let Some((name, _)) = old.iter().find(|(name, _)| missing(&new, name)) {
        return Cause::ToolRemoved { name: name.clone() };
    }
    if old == new {
        return Cause::KeyOrder;
    }
    match new.iter().find(|tool| !old.contains(tool)) {
        Some((name, _)) => Cause::ToolChanged { name: name.clone() },
        None => Cause::ToolOrder,
    }
}

/// Why the messages differ, from the first that does. The older side has one at least.
pub(super) fn of_messages(tails: &Tails<'_>) -> Cause {
    let summary =
        |blocks: &[Arc<ThreadBlock>]| blocks.iter().any(|block| block.kind() == Some("summary"));
    let is_new = summary(tails.newer_blocks) && !summary(tails.older_blocks);
    if tails.compaction || is_new {
        return Cause::Compaction;
    }
    let (Some(older), Some(newer)) = (tails.older.first(), tails.newer.first()) else {
        return Cause::MessagesDropped {
            count: tails.older.len(),
        };
    };
    let dropped = tails.older.iter().position(|message| message == newer);
    let inserted = tails.newer.iter().position(|message| message == older);
    match (dropped, inserted) {
        (Some(count), None) => return Cause::MessagesDropped { count },
        (Some(count), Some(inserted)) if count <= inserted => {
            return Cause::MessagesDropped { count };
        }
        (_, Some(count)) => return Cause::MessagesInserted { count },
        (None, None) => {}
    }
    let [old, new] = [older, newer].map(|json| members(json));
    let same = |name: &str| get(&old, name) == get(&new, name);
    if !same("role") || !same("type") {
        return if same("content") {
            Cause::Role
        } else {
            Cause::Rewritten
        };
    }
    if without_call_ids(older, tails.older_blocks) == without_call_ids(newer, tails.newer_blocks) {
        return Cause::CallIds;
    }
    let thinking = |blocks: &[Arc<ThreadBlock>]| {
        let thinking = blocks.iter();
        let thinking = thinking.filter(|block| block.kind() == Some("thinking"));
        thinking.count()
    };
    if thinking(tails.older_blocks) > thinking(tails.newer_blocks) {
        return Cause::ReasoningDropped;
    }
    if !media(tails.older_blocks).eq(media(tails.newer_blocks)) {
        return Cause::Media;
    }
    match of_texts(older, newer) {
        Some(cause) => cause,
        None if same_values(older, newer) => Cause::KeyOrder,
        None => Cause::Rewritten,
    }
}

fn media(blocks: &[Arc<ThreadBlock>]) -> impl Iterator<Item = Option<&str>> {
    let is_media = |kind: &str| matches!(kind, "image" | "document");
    let media = blocks.iter();
    let media = media.filter(move |block| block.kind().is_some_and(is_media));
    media.map(|block| block.content())
}

/// A message with the ids of its calls replaced by their positions.
fn without_call_ids(json: &str, blocks: &[Arc<ThreadBlock>]) -> String {
    let ids = blocks.iter().filter_map(|block| block.data("data_call_id"));
    let ids = ids.filter(|id| id.len() > 2).enumerate();
    // An id that came before is replaced everywhere.
    ids.fold(json.to_owned(), |out, (at, id)| {
        out.replace(id, &format!("\u{1}{at}"))
    })
}

/// Whether two messages have the same values where strings that are JSON, such as arguments, count as
/// that JSON.
fn same_values(older: &str, newer: &str) -> bool {
    let value = |json: &str| {
        let json = json.trim_end_matches(',');
        let whole = serde_json::from_str(json);
        // The brackets of a message that can get more parts are left out.
        let value = whole.or_else(|_| serde_json::from_str(&format!("{json}]}}")));
        value.ok().map(unpacked)
    };
    value(older).is_some_and(|older| Some(older) == value(newer))
}

/// A value with the strings in it that are JSON objects or lists replaced by those.
fn unpacked(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) if text.starts_with(['{', '[']) => {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
        Value::Array(values) => values.into_iter().map(unpacked).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, unpacked(value)))
            .collect(),
        value => value,
    }
}

/// Dates, times of day, and seconds or smaller units since 1970.
static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\\.?";
    let day = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?";
    let clock = "[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?";
    let zone = "(?: ?(?:[AaPp]\\.?[Mm]\\.?|Z|UTC|GMT|[A-Z]{2,4}T|[+-][0-9]{2}:?[0-9]{2}))?";
    regex(&format!(
        "(?:{day} )?(?:\
         [0-9]{{4}}[-/.][0-9]{{1,2}}[-/.][0-9]{{1,2}}(?:[T ,]+{clock}{zone})?\
         |[0-9]{{1,2}}[-/.][0-9]{{1,2}}[-/.][0-9]{{4}}(?:[T ,]+{clock}{zone})?\
         |{month} [0-9]{{1,2}}(?:st|nd|rd|th)?(?:,? [0-9]{{4}})?(?:[T ,]+(?:at )?{clock}{zone})?\
         |[0-9]{{1,2}}(?:st|nd|rd|th)? {month}(?:,? [0-9]{{4}})?(?:[T ,]+(?:at )?{clock}{zone})?\
         |{clock}{zone})\
         |\\b1[4-9][0-9]{{8}}(?:[0-9]{{3}}|[0-9]{{6}}|[0-9]{{9}}|\\.[0-9]+)?\\b\
         |\\b{day}\\b"
    ))
});

static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| regex("[0-9]+(?:[.,][0-9]+)*"));

/// Universally unique ids, hexadecimal digests, and ids that begin with what they are an id of.
static ID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\
         |[A-Za-z]{2,16}[_-][A-Za-z0-9_-]{6,}\
         |\\b[0-9a-fA-F]{7,128}\\b\
         |\\b[A-Za-z0-9_-]{16,}\\b",
    )
});

static SPACE: LazyLock<Option<Regex>> = LazyLock::new(|| regex("(?:\\\\[nrt]|\\s)+"));

/// The patterns are constants, and a test compiles them.
fn regex(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// Why two texts differ, if not in content: in white space, a time, a number, an id, the
/// order or the spelling of JSON, or more at the end. Linear in both, except for the order of keys, which sorts
/// them.
fn of_texts(older: &str, newer: &str) -> Option<Cause> {
    let equal = |regex: &LazyLock<Option<Regex>>, with: &str, only: fn(&str) -> bool| {
        regex.as_ref().is_some_and(|regex| {
            masked(older, regex, with, only) == masked(newer, regex, with, only)
        })
    };
    let any = |_: &str| true;
    let is_json = |text: &str| text.starts_with(['{', '[']);
    // An older text ends in what closes it: quotes, brackets, commas.
    let unclosed = older.trim_end_matches(['"', '}', ']', ',']);
    if equal(&SPACE, "", any) {
        Some(Cause::WhiteSpace)
    } else if equal(&TIME, "\u{1}", any) || differs_in_time(older, newer) {
        Some(Cause::Timestamp)
    } else if equal(&NUMBER, "\u{1}", any) {
        Some(Cause::Counter)
    } else if equal(&ID, "\u{1}", |text| {
        // An id has a digit; a word has none.
        text.contains(|letter: char| letter.is_ascii_digit())
    }) {
        Some(Cause::Id)
    } else if is_json(older) && is_json(newer) && canonical(older) == canonical(newer) {
        Some(Cause::KeyOrder)
    } else {
        newer.starts_with(unclosed).then_some(Cause::Extended)
    }
}

fn masked(text: &str, regex: &Regex, with: &str, only: fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for found in regex.find_iter(text) {
        if only(&text[found.range()]) {
            out.push_str(&text[end..found.start()]);
            out.push_str(with);
            end = found.end();
        }
    }
    out.push_str(&text[end..]);
    out
}

/// Whether the first byte that differs is in a time on both sides, whatever follows.
fn differs_in_time(older: &str, newer: &str) -> bool {
    let at = common_prefix(older, newer);
    let Some(regex) = TIME.as_ref() else {
        return false;
    };
    // The start of a number alone says little, so the whole match has to be around the byte.
    let around = |text: &str| {
        let mut found = regex.find_iter(text);
        let found = found.find(|found| found.end() > at)?;
        (found.start() <= at && found.len() > 4).then(|| found.start())
    };
    around(older).is_some_and(|start| Some(start) == around(newer))
}

/// The bytes that two texts have in common at their beginning, in whole characters.
pub(super) fn common_prefix(older: &str, newer: &str) -> usize {
    let bytes = older.bytes().zip(newer.bytes());
    let mut same = bytes.take_while(|(a, b)| a == b).count();
    while !older.is_char_boundary(same) || !newer.is_char_boundary(same) {
        same -= 1;
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_differ_in_what_they_differ_in() {
        for regex in [&TIME, &NUMBER, &ID, &SPACE] {
            assert!(regex.is_some());
        }
        for (older, newer, change) in [
            ("\"a  b\"", "\"a b\"", Some(Cause::WhiteSpace)),
            ("\"a\\nb\"", "\"a b\"", Some(Cause::WhiteSpace)),
            (
                "\"It is 2026-01-02T10:00:00Z.\"",
                "\"It is 2026-01-02T10:00:01Z.\"",
                Some(Cause::Timestamp),
            ),
            (
                "\"Today is Monday, March 3, 2026\"",
                "\"Today is Tuesday, March 4, 2026\"",
                Some(Cause::Timestamp),
            ),
            (
                "\"now: 1767348000\"",
                "\"now: 1767348060\"",
                Some(Cause::Timestamp),
            ),
            ("\"at 10:59\"", "\"at 11:00\"", Some(Cause::Timestamp)),
            (
                "\"3 Mar 2026, and all else too\"",
                "\"4 Mar 2026, and more\"",
                Some(Cause::Timestamp),
            ),
            ("\"step 1 of 9\"", "\"step 2 of 9\"", Some(Cause::Counter)),
            (
                "\"run 550e8400-e29b-41d4-a716-446655440000\"",
                "\"run 6ba7b810-9dad-11d1-80b4-00c04fd430c8\"",
                Some(Cause::Id),
            ),
            (
                "\"request req_01HXYZ9abc\"",
                "\"request req_02KLMN0xyz\"",
                Some(Cause::Id),
            ),
            (
                "{\"a\":1,\"b\":2}",
                "{\"b\":2,\"a\":1}",
                Some(Cause::KeyOrder),
            ),
            (
                "\"the end\"",
                "\"the end, and more\"",
                Some(Cause::Extended),
            ),
            ("\"refund\"", "\"exchange\"", None),
            ("\"step one\"", "\"step two\"", None),
        ] {
            assert_eq!(of_texts(older, newer), change, "{older} {newer}");
        }
    }

    #[test]
    fn a_common_prefix_ends_between_characters() {
        assert_eq!(common_prefix("aé", "aè"), 1);
        assert_eq!(common_prefix("abc", "ab"), 2);
        assert_eq!(common_prefix("", "x"), 0);
    }
}
