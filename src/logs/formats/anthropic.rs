//! Anthropic Messages: requests, responses, and lists of messages.
//!
//! `text`, `thinking`, `tool_use`, `tool_result`, `image` and `document` parts become blocks of
//! kind `text`, `thinking`, `call`, `result`, `image` and `document`. Results are in messages of the
//! user, and their blocks have the role `tool`. The `input` of a call is JSON text, in the order it
//! came in. Parts of other types, such as those of tools that the provider runs, are kept as they
//! are. [`Provider::Anthropic`] gives equal requests back, with the help
//! of these custom fields:
//!
//! | field | on | value |
//! |---|---|---|
//! | `data_form` | every block | `anthropic` |
//! | `data_shape` | first block of a message or a result | the form of `content` (`list`, `null`, `absent`), if the blocks do not imply it |
//! | `data_is_error` | results | `is_error` |
//! | `data_part` | any block | other members of the part, such as `signature` and `cache_control` |
//! | `data_call` | first block of a result | other members of the result |
//! | `data_verbatim` | any block | its content is raw JSON: a `message` or a `part` |

use super::fields::{Others, get_string, role_name, text};
use super::reader::{Record, Sniff};
use super::requests::{Api, ListNames, Parsed, tools};
use crate::json::{Accepted, Member, ValueType, get, members, string, value_type};
use crate::logs::json::{canonical, compact, quoted};
use crate::logs::log::{Call, Field, Message, Part};
use crate::logs::report::{Fate, Report};
use crate::logs::usage;
use crate::render::Provider;
use crate::render::openai::RESERVED;
use std::rc::Rc;

const FORM: &str = "\"anthropic\"";

/// Strings that are in these messages and in no other API's.
const MARKS: [&str; 4] = [
    "\"tool_use\"",
    "\"tool_result\"",
    "\"redacted_thinking\"",
    "\"input_schema\"",
];

/// A message, a request or a response, in the form of Anthropic's API.
pub(super) fn sniff(record: &Record<'_>, found: &[Member<'_>]) -> Sniff {
    let is_response = text(found, "type").as_deref() == Some("message")
        && get(found, "content").map(value_type) == Some(ValueType::Array);
    if is_response && get(found, "stop_reason").is_some() {
        return Sniff::Yes;
    }
    let inner = match get(found, "request").map(members) {
        Some(inner) => get(&inner, "body").map(members).unwrap_or(inner),
        None => found.to_vec(),
    };
    let is_list = get(&inner, "messages").map(value_type) == Some(ValueType::Array);
    if !is_list && get_string(found, "role").is_none() {
        return Sniff::No;
    }
    let system = get(&inner, "system").map(value_type);
    let model = text(&inner, "model").unwrap_or_default();
    if is_list
        && (matches!(system, Some(ValueType::String | ValueType::Array))
            || model.contains("claude"))
    {
        return Sniff::Yes;
    }
    if MARKS.iter().any(|mark| record.raw.contains(mark)) {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

/// Anthropic Messages.
pub(super) struct Messages;

impl Api for Messages {
    fn lists(&self) -> ListNames {
        ListNames {
            messages: "messages",
            joined: false,
        }
    }

    fn message(&self, raw: &str, report: &mut Report) -> Message {
        read(raw, report)
    }

    fn request(&self, found: &[Member<'_>], report: &mut Report) -> Parsed {
        let mut parsed = Parsed::new(
            Provider::Anthropic,
            "messages",
            tools(get(found, "tools"), report),
        );
        let system = get(found, "system").filter(|raw| !matches!(*raw, "null" | "[]"));
        let mut parts = Vec::new();
        if let Some(raw) = system
            && read_content(raw, &mut parts, Accepted::default(), report)
        {
            report.message(Fate::Understood, "system");
            parsed.taken.push("system");
            parsed.system.push(Rc::new(Message {
                role: Some("system".to_owned()),
                system: true,
                parts,
                ..Message::default()
            }));
        }
        parsed
    }

    fn response(&self, found: &[Member<'_>], report: &mut Report) -> Option<(Vec<Message>, Call)> {
        if text(found, "type").as_deref() != Some("message") {
            return None;
        }
        let message = of_content(found, Accepted::default(), report)?;
        Some((vec![message], call(found)))
    }
}

/// What a response says of its call.
pub(super) fn call(found: &[Member<'_>]) -> Call {
    let mut fields: Vec<Field> = get(found, "usage").map(usage::fields).unwrap_or_default();
    for (name, value) in [
        ("stop_reason", get(found, "stop_reason")),
        ("response_id", get(found, "id")),
        ("model", get(found, "model")),
    ] {
        let value = value.filter(|value| *value != "null");
        fields.extend(value.map(|value| (name.into(), canonical(value))));
    }
    Call {
        usage: fields,
        ..Call::default()
    }
}

/// The message of a response, whose other members are not the message's.
pub(super) fn of_content(
    found: &[Member<'_>],
    json: Accepted<'_>,
    report: &mut Report,
) -> Option<Message> {
    let role = text(found, "role")?;
    let mut parts = Vec::new();
    if !read_content(get(found, "content")?, &mut parts, json, report) {
        return None;
    }
    report.message(Fate::Understood, role_name(&role));
    Some(Message {
        reply: role == "assistant",
        role: Some(role.into_owned()),
        parts,
        ..Message::default()
    })
}

fn read(raw: &str, report: &mut Report) -> Message {
    let found = members(raw);
    let mut others = Others::default();
    for (name, value) in &found {
        if !matches!(&**name, "role" | "content") {
            others.keep(name, value, &RESERVED, report);
        }
    }
    if let Some(mut message) = of_content(&found, Accepted::default(), report) {
        if let Some(first) = message.parts.first_mut() {
            first.data.extend(others.into_fields());
        }
        return message;
    }
    report.message(Fate::Verbatim, "of unknown form");
    let role = text(&found, "role").map(|role| role.into_owned());
    let mut part = Part::verbatim("message", None, raw);
    part.set("data_form", FORM.to_owned());
    Message {
        reply: role.as_deref() == Some("assistant"),
        role,
        parts: vec![part],
        ..Message::default()
    }
}

/// Appends the blocks of a message's content. Returns false if it is neither a string nor a list.
fn read_content(raw: &str, parts: &mut Vec<Part>, json: Accepted<'_>, report: &mut Report) -> bool {
    match value_type(raw) {
        ValueType::String => {
            report.part(Fate::Understood, "text");
            parts.push(Part::new("text", canonical(raw)));
        }
        ValueType::Array => {
            for part in json.elements(raw) {
                read_part(part, parts, json, report);
            }
            let implied = match &parts[..] {
                [] => true,
                [part] => part.kind == Some("text") && part.data.is_empty(),
                _ => false,
            };
            if parts.is_empty() {
                parts.push(Part::default());
            }
            if implied {
                parts[0].set("data_shape", quoted("list"));
            }
        }
        _ => return false,
    }
    for part in parts {
        part.set("data_form", FORM.to_owned());
    }
    true
}

fn read_part(raw: &str, parts: &mut Vec<Part>, json: Accepted<'_>, report: &mut Report) {
    let found = json.members(raw);
    let name = text(&found, "type").unwrap_or_default();
    let string_of = |name| get_string(&found, name);
    let mut part = match &*name {
        "text" | "thinking" => {
            let kind = if name == "text" { "text" } else { "thinking" };
            let Some(content) = string_of(kind) else {
                parts.push(unknown(&name, raw, report));
                return;
            };
            let mut part = Part::new(kind, canonical(content));
            part.keep_rest("data_part", &found, &["type", kind]);
            part
        }
        "tool_use" => {
            let (Some(id), Some(function), Some(input)) =
                (string_of("id"), string_of("name"), get(&found, "input"))
            else {
                parts.push(unknown(&name, raw, report));
                return;
            };
            let mut part = Part::new("call", quoted(&compact(input)));
            part.set("data_call_id", canonical(id));
            part.set("data_call_name", canonical(function));
            part.keep_rest("data_part", &found, &["type", "id", "name", "input"]);
            part
        }
        "image" | "document" => {
            let kind = if name == "image" { "image" } else { "document" };
            let Some(source) = get(&found, "source") else {
                parts.push(unknown(&name, raw, report));
                return;
            };
            let mut part = Part::new(kind, canonical(source));
            part.keep_rest("data_part", &found, &["type", "source"]);
            part
        }
        "tool_result" if read_result(&found, parts, json, report) => return,
        _ => {
            parts.push(unknown(&name, raw, report));
            return;
        }
    };
    report.part(Fate::Understood, part.kind.unwrap_or_default());
    part.role = None;
    parts.push(part);
}

/// A part that is kept as it is.
fn unknown(name: &str, raw: &str, report: &mut Report) -> Part {
    let kind = match name {
        "redacted_thinking" | "thinking" => Some("thinking"),
        _ if name.ends_with("tool_use") => Some("call"),
        _ if name.ends_with("tool_result") => Some("result"),
        _ => None,
    };
    let name = match name {
        "" => "without a type",
        name => name,
    };
    report.part(Fate::Verbatim, name);
    Part::verbatim("part", kind, raw)
}

/// Appends the blocks of a result. Returns false if it is of another form than usual.
fn read_result(
    found: &[Member<'_>],
    parts: &mut Vec<Part>,
    json: Accepted<'_>,
    report: &mut Report,
) -> bool {
    let Some(id) = get_string(found, "tool_use_id").map(canonical) else {
        return false;
    };
    // Two results of one call would look the same.
    let field = |part: &Part| {
        part.data
            .iter()
            .any(|(name, value)| name == "data_call_id" && *value == id)
    };
    if parts.last().is_some_and(field) {
        return false;
    }
    let first = parts.len();
    let content = get(found, "content");
    let shape = match content.map(value_type) {
        None => Some("absent"),
        Some(ValueType::String) => {
            report.part(Fate::Understood, "result");
            parts.push(Part::new("result", canonical(content.unwrap_or_default())));
            None
        }
        Some(ValueType::Array) => {
            for raw in json.elements(content.unwrap_or_default()) {
                parts.push(part_of_result(raw, json, report));
            }
            let implied = match &parts[first..] {
                [] => true,
                [part] => part.kind == Some("result") && part.data.is_empty(),
                _ => false,
            };
            implied.then_some("list")
        }
        Some(_) => return false,
    };
    if parts.len() == first {
        report.part(Fate::Understood, "result");
        parts.push(Part {
            kind: Some("result"),
            ..Part::default()
        });
    }
    let is_error = get(found, "is_error").map(canonical);
    for part in &mut parts[first..] {
        part.role = Some("tool");
        part.set("data_call_id", id.clone());
        if let Some(is_error) = &is_error {
            part.set("data_is_error", is_error.clone());
        }
    }
    if let Some(shape) = shape {
        parts[first].set("data_shape", quoted(shape));
    }
    let known = ["type", "tool_use_id", "content", "is_error"];
    parts[first].keep_rest("data_call", found, &known);
    true
}

fn part_of_result(raw: &str, json: Accepted<'_>, report: &mut Report) -> Part {
    let found = json.members(raw);
    let name = get(&found, "type").and_then(string).unwrap_or_default();
    let (kind, member, content) = match &*name {
        "text" => ("result", "text", get_string(&found, "text")),
        "image" => ("image", "source", get(&found, "source")),
        "document" => ("document", "source", get(&found, "source")),
        _ => ("", "", None),
    };
    let Some(content) = content else {
        return unknown(&name, raw, report);
    };
    report.part(Fate::Understood, kind);
    let mut part = Part::new(kind, canonical(content));
    part.keep_rest("data_part", &found, &["type", member]);
    part
}
