//! Messages of logs that have a form of their own: texts, calls, results, and what is left over.
//!
//! Contents that are lists have parts as the APIs have them, `{"type": "text", "text": …}`; parts of
//! other types are kept as they are. Members without a field are kept together in `data_record` of
//! the message's first block. This file must not know the records of any one format.

use super::fields::{get_string, role_name, text, time};
use crate::json::{Member, Reader, ValueType, elements, get, members, string, value_type};
use crate::logs::json::{canonical, compact, push_member, quoted};
use crate::logs::log::{Field, Message, Part, object_without};
use crate::logs::report::{Fate, Report};

/// A message of a role, which is the model's reply if the role is the assistant's.
pub(super) fn message(role: &str, parts: Vec<Part>, report: &mut Report) -> Message {
    report.message(Fate::Understood, role_name(role));
    Message {
        system: role == "system",
        reply: role == "assistant",
        role: Some(role.to_owned()),
        parts,
        ..Message::default()
    }
}

/// Appends the parts of a content: a string, a list of parts, or nothing. `kind` is that of texts.
pub(super) fn content(
    raw: Option<&str>,
    kind: &'static str,
    parts: &mut Vec<Part>,
    report: &mut Report,
) {
    let raw = raw.unwrap_or("null");
    match value_type(raw) {
        ValueType::Null => {}
        ValueType::String => {
            report.part(Fate::Understood, kind);
            parts.push(Part::new(kind, canonical(raw)));
        }
        ValueType::Array => {
            let first = parts.len();
            parts.extend(elements(raw).into_iter().map(|raw| part(raw, kind, report)));
            if let [one] = &mut parts[first..]
                && one.kind == Some(kind)
                && one.data.is_empty()
            {
                one.set("data_shape", quoted("list"));
            }
        }
        ValueType::Object | ValueType::Other => {
            report.part(Fate::Verbatim, "content");
            parts.push(Part::verbatim("content", Some(kind), raw));
        }
    }
}

/// One part of a content that is a list.
fn part(raw: &str, kind: &'static str, report: &mut Report) -> Part {
    let found = members(raw);
    let name = text(&found, "type").unwrap_or_default();
    if name == "text"
        && let Some(content) = get_string(&found, "text")
    {
        report.part(Fate::Understood, kind);
        let mut part = Part::new(kind, canonical(content));
        part.keep_rest("data_part", &found, &["type", "text"]);
        return part;
    }
    let kind = match &*name {
        "image" | "image_url" | "input_image" => Some("image"),
        "reasoning" | "thinking" => Some("thinking"),
        _ => None,
    };
    let name = match &*name {
        "" => "without a type",
        name => name,
    };
    report.part(Fate::Verbatim, name);
    Part::verbatim("part", kind, raw)
}

/// A call. Its arguments are a text, or any JSON, whose spelling is kept.
pub(super) fn call(
    id: Option<&str>,
    name: Option<&str>,
    arguments: &str,
    report: &mut Report,
) -> Part {
    report.part(Fate::Understood, "call");
    let content = match value_type(arguments) {
        ValueType::String => canonical(arguments),
        _ => quoted(&compact(arguments)),
    };
    let mut part = Part::new("call", content);
    for (field, value) in [("data_call_id", id), ("data_call_name", name)] {
        if let Some(value) = value {
            part.set(field, canonical(value));
        }
    }
    part
}

/// The message with the result of a call: the parts of `raw`, at least one. The id and the name are
/// JSON.
pub(super) fn result(
    id: Option<&str>,
    name: Option<&str>,
    raw: Option<&str>,
    report: &mut Report,
) -> Message {
    let mut parts = Vec::new();
    content(raw, "result", &mut parts, report);
    if parts.is_empty() {
        parts.push(Part {
            kind: Some("result"),
            ..Part::default()
        });
    }
    for part in &mut parts {
        for (field, value) in [("data_call_id", id), ("data_call_name", name)] {
            if let Some(value) = value {
                part.set(field, canonical(value));
            }
        }
    }
    message("tool", parts, report)
}

/// Keeps the members that are not in `known` and not null in `data_record` of the message's first block.
pub(super) fn keep(
    message: &mut Message,
    found: &[Member<'_>],
    known: &[&str],
    report: &mut Report,
) {
    let rest: Vec<Member<'_>> = found
        .iter()
        .filter(|(name, value)| !known.contains(&&**name) && *value != "null")
        .cloned()
        .collect();
    for (name, _) in &rest {
        report.member(name);
    }
    let Some(rest) = object_without(&rest, &[]) else {
        return;
    };
    if message.parts.is_empty() {
        message.parts.push(Part::default());
    }
    message.parts[0].set("data_record", rest);
}

/// The members of a record that are not in `known`, for the `meta` of its session.
pub(super) fn record(found: &[Member<'_>], known: &[&str], report: &mut Report) -> Vec<Field> {
    for (name, _) in found {
        if !known.contains(&&**name) {
            report.record_member(name);
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

/// The one JSON value that a text is.
pub(super) fn json_in(text: &str) -> Option<&str> {
    let mut reader = Reader::new(text);
    let value = reader.skip_value().ok()?;
    reader.end().ok()?;
    reader.problems().is_empty().then_some(value)
}

/// The parameters of a call of which only the model is known.
pub(super) fn model(raw: &str) -> String {
    let mut out = String::new();
    push_member("model", &canonical(raw), &mut out);
    format!("{{{}}}", &out[1..])
}
