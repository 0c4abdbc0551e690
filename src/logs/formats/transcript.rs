//! What becomes of a message, whatever its format: texts, other parts, calls, results, and what is left over.
//!
//! | in a log | in the tree |
//! |---|---|
//! | a content that is a string, or a list of parts | a block each ([`contents`]) |
//! | a part of a known type | its content; other members in `data_part` ([`typed`]) |
//! | a part of another type | the whole of it as content, `data_verbatim` ([`unknown`]) |
//! | a call | its arguments; `data_call_id`, `data_call_name` ([`call`]) |
//! | a result | a message of a tool with those fields ([`result`]) |
//! | other members of a message | `data_record` of its first block ([`keep`]) |
//!
//! This file must not know the records of any one format.

use super::prelude::*;
use crate::logs::json::compact;

/// A type of part: its name, the member that is its content, the kind of its block. A text is a string.
pub(super) type PartType<'a> = (&'a str, &'a str, &'static str);

/// In the place of a member: all of them but the type are the content.
pub(super) const WHOLE: &str = "";

/// A part of one of these types; one of another type is kept as it is, as a block of the kind that
/// `otherwise` gives for its name.
pub(super) fn typed(
    raw: &str,
    found: &[Member<'_>],
    types: &[PartType<'_>],
    otherwise: impl FnOnce(&str) -> Option<&'static str>,
    report: &mut ImportReport,
) -> LogPart {
    let name = text(found, "type").unwrap_or_default();
    let known = types.iter().find_map(|(known, member, kind)| {
        if *known != name {
            return None;
        }
        if *member == WHOLE {
            return Some(LogPart::new(kind, object_without(found, &["type"])?));
        }
        let is_text = matches!(*kind, "text" | "result" | "thinking");
        let content = get(found, member)?;
        let fits = !is_text || value_type(content) == ValueType::String;
        let mut part = fits.then(|| LogPart::new(kind, canonical(content)))?;
        part.keep_rest("data_part", found, &["type", member]);
        Some(part)
    });
    let Some(part) = known else {
        return unknown(&name, otherwise(&name), raw, report);
    };
    report.part(Fate::Understood, part.kind.unwrap_or_default());
    part
}

pub(super) fn unknown(
    name: &str,
    kind: Option<&'static str>,
    raw: &str,
    report: &mut ImportReport,
) -> LogPart {
    report.part(Fate::Verbatim, named(name));
    LogPart::verbatim("part", kind, raw)
}

pub(super) fn named(name: &str) -> &str {
    if name.is_empty() {
        "without a type"
    } else {
        name
    }
}

/// Why a line is skipped whose type is not known.
pub(super) fn another(kind: &str) -> String {
    format!("{} (another type)", named(kind))
}

pub(super) fn unread(why: &str, raw: &str, report: &mut ImportReport) -> LogMessage {
    report.message(Fate::Verbatim, why);
    LogMessage::new(None, vec![LogPart::verbatim("message", None, raw)])
}

/// Appends the blocks of a content: a string is a text of this kind, and of a list `part` reads each
/// element. Returns whether it is a list that the blocks do not imply; `None` if it is neither, and nothing
/// is appended.
pub(super) fn contents(
    raw: &str,
    kind: &'static str,
    json: Accepted<'_>,
    parts: &mut Vec<LogPart>,
    report: &mut ImportReport,
    mut part: impl FnMut(&str, &mut Vec<LogPart>, &mut ImportReport),
) -> Option<bool> {
    let first = parts.len();
    match value_type(raw) {
        ValueType::String => {
            report.part(Fate::Understood, kind);
            parts.push(LogPart::new(kind, canonical(raw)));
            Some(false)
        }
        ValueType::Array => {
            for raw in json.elements(raw) {
                part(raw, parts, report);
            }
            Some(match &parts[first..] {
                [] => true,
                [part] => part.kind == Some(kind) && part.data.is_empty(),
                _ => false,
            })
        }
        _ => None,
    }
}

/// What becomes of a message of these parts: it is understood if one of them is, or if there is none.
pub(super) fn fate(parts: &[LogPart]) -> Fate {
    let is_raw = |part: &LogPart| part.field("data_verbatim").is_some();
    if !parts.is_empty() && parts.iter().all(is_raw) {
        Fate::Verbatim
    } else {
        Fate::Understood
    }
}

pub(super) fn message(role: &str, parts: Vec<LogPart>, report: &mut ImportReport) -> LogMessage {
    report.message(fate(&parts), role_name(role));
    LogMessage::with_system(role, &["system"], parts)
}

/// The parts of a content: a string, a list of parts, or nothing. `kind` is that of texts.
pub(super) fn content(
    raw: Option<&str>,
    kind: &'static str,
    report: &mut ImportReport,
) -> Vec<LogPart> {
    let mut parts = Vec::new();
    let Some(raw) = raw.filter(|raw| *raw != "null") else {
        return parts;
    };
    let read = |raw: &str, parts: &mut Vec<LogPart>, report: &mut ImportReport| {
        parts.push(part(raw, kind, report));
    };
    match contents(raw, kind, Accepted::default(), &mut parts, report, read) {
        Some(true) if !parts.is_empty() => parts[0].set("data_shape", quoted("list")),
        Some(_) => {}
        None => {
            report.part(Fate::Verbatim, "content");
            parts.push(LogPart::verbatim("content", Some(kind), raw));
        }
    }
    parts
}

/// The address of an image: that of inspect_ai's parts, or of their `source` in ATIF and in Letta, with the bytes in it
/// if they are there. A path of a file is none.
pub(super) fn image_url(found: &[Member<'_>]) -> Option<String> {
    if text(found, "type").as_deref() != Some("image") {
        return None;
    }
    let source = inner(found, "source");
    if let Some(data) = text(&source, "data") {
        let media_type = text(&source, "media_type")?;
        return Some(format!("data:{media_type};base64,{data}"));
    }
    let places = [
        text(found, "image"),
        text(&source, "url"),
        text(&source, "path"),
    ];
    let url = places
        .into_iter()
        .flatten()
        .find(|url| url.starts_with("data:") || url.contains("://"));
    url.map(|url| url.into_owned())
}

/// A part that is an image, with its address as content.
fn image(found: &[Member<'_>], report: &mut ImportReport) -> Option<LogPart> {
    let mut part = LogPart::new("image", object([("url", quoted(&image_url(found)?))]));
    report.part(Fate::Understood, "image");
    part.keep_rest("data_part", found, &["type", "image", "source"]);
    Some(part)
}

fn part(raw: &str, kind: &'static str, report: &mut ImportReport) -> LogPart {
    let otherwise = |name: &str| match name {
        "image" | "image_url" | "input_image" => Some("image"),
        "reasoning" | "thinking" => Some("thinking"),
        _ => None,
    };
    let found = members(raw);
    if let Some(image) = image(&found, report) {
        return image;
    }
    typed(raw, &found, &[("text", "text", kind)], otherwise, report)
}

/// A call. Its arguments are a text, or any JSON, whose spelling is kept.
pub(super) fn call(
    id: Option<&str>,
    name: Option<&str>,
    arguments: &str,
    report: &mut ImportReport,
) -> LogPart {
    report.part(Fate::Understood, "call");
    LogPart::call(as_text(arguments), id, name)
}

/// A value as JSON text in a string; a string is itself.
pub(super) fn as_text(raw: &str) -> String {
    if raw.starts_with('"') {
        canonical(raw)
    } else {
        json_text(raw)
    }
}

/// A value as JSON text in a string, also a string.
pub(super) fn json_text(raw: &str) -> String {
    quoted(&compact(raw))
}

/// The message with the result of a call, of at least one part. The id and the name are JSON.
pub(super) fn result(
    id: Option<&str>,
    name: Option<&str>,
    raw: Option<&str>,
    report: &mut ImportReport,
) -> LogMessage {
    let mut made = message("tool", content(raw, "result", report), report);
    if made.parts.is_empty() {
        made.first().kind = Some("result");
    }
    for part in &mut made.parts {
        part.set_some("data_call_id", id);
        part.set_some("data_call_name", name);
    }
    made
}

/// Keeps the members that are not in `known` and not null in `data_record` of the message's first block.
pub(super) fn keep(
    message: &mut LogMessage,
    found: &[Member<'_>],
    known: &[&str],
    report: &mut ImportReport,
) {
    let rest: Vec<Member<'_>> = found
        .iter()
        .filter(|(name, value)| !known.contains(&&**name) && *value != "null")
        .cloned()
        .collect();
    for (name, _) in &rest {
        report.member(name);
    }
    if let Some(rest) = object_without(&rest, &[]) {
        message.first().set("data_record", rest);
    }
}

/// Keeps the members of a part that are not in `known`, as one object in `field`.
pub(super) fn keep_in(
    part: &mut LogPart,
    field: &'static str,
    found: &[Member<'_>],
    known: &[&str],
    report: &mut ImportReport,
) {
    for (name, _) in found.iter().filter(|(name, _)| !known.contains(&&**name)) {
        report.member(name);
    }
    part.keep_rest(field, found, known);
}

/// The members of a record that are not in `known`, for the `meta` of its session.
pub(super) fn record(
    found: &[Member<'_>],
    known: &[&str],
    report: &mut ImportReport,
) -> Vec<LogField> {
    for (name, _) in found {
        if !known.contains(&&**name) {
            report.count_record_member(name);
        }
    }
    let rest = object_without(found, known);
    rest.map(|rest| ("record".into(), rest))
        .into_iter()
        .collect()
}

/// A time; one without an offset is UTC.
pub(super) fn time_of(found: &[Member<'_>], name: &str) -> Option<i64> {
    let raw = get(found, name)?;
    time(raw).or_else(|| {
        let text = string(raw)?;
        time(&quoted(&format!("{text}Z")))
    })
}

/// The parameters of a call of which only the model is known.
pub(super) fn model(raw: &str) -> String {
    object([("model", canonical(raw))])
}
