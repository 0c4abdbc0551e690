//! OpenAI chat messages in, as turns and blocks.
//!
//! Text, tool call, tool result and image parts become blocks of kind `text`, `call`, `result`
//! and `image`. What the tree has no header for goes to custom fields, so that
//! [`write_openai`](super::write_openai) can give back equal messages:
//!
//! | field | on | holds |
//! |---|---|---|
//! | `data_message` | every block | the message's position, from 1 |
//! | `data_call_id` | calls, results | the id of the call |
//! | `data_call_name` | calls, results | the function called; a result's `name` |
//! | `data_shape` | first block | how `content` was given, where that does not follow from the blocks: `list`, `null`, `absent` |
//! | `data_verbatim` | any block | that its content is kept as it came: a `message`, `content`, `part` or `call` |
//! | `data_part`, `data_call`, `data_function` | any block | members of the part, the call or its function that are not known |
//! | `data_<member>` | first block | a member of the message that is not known |
//! | `data_members` | first block | the names of those members |
//! | `data_other` | first block | such members whose field would be one of the above |

use super::flat::{Message, Part};
use super::report::{Fate, Report};
use super::shallow::{Sort, elements, members, sort, string};
use super::{canonical, json_text, quoted};
use std::borrow::Cow;

/// Names of custom fields that have a meaning of their own, less `data_`.
pub(crate) const RESERVED: [&str; 10] = [
    "message",
    "call_id",
    "call_name",
    "shape",
    "verbatim",
    "part",
    "call",
    "function",
    "members",
    "other",
];

/// Whether a value looks like one message: an object with a role.
pub(crate) fn is_message(raw: &str) -> bool {
    super::shallow::member(raw, "role").is_some_and(|role| sort(role) == Sort::String)
}

/// Reads a list of messages (a checked JSON array or the lines of a JSONL file).
pub(crate) fn messages<'a>(
    raw: impl IntoIterator<Item = &'a str>,
    report: &mut Report,
) -> Vec<Message> {
    raw.into_iter()
        .enumerate()
        .map(|(at, raw)| {
            let mut message = read(raw, report);
            for part in &mut message.parts {
                part.data
                    .push(("data_message".into(), (at + 1).to_string()));
            }
            message
        })
        .collect()
}

fn read(raw: &str, report: &mut Report) -> Message {
    let found = if sort(raw) == Sort::Object {
        members(raw)
    } else {
        Vec::new()
    };
    let role = found
        .iter()
        .find(|(name, _)| name == "role")
        .and_then(|(_, value)| string(value));
    let Some(role) = role else {
        report.message(Fate::Verbatim, "without a role");
        return Message {
            parts: vec![verbatim("message", None, raw)],
            ..Message::default()
        };
    };
    report.message(Fate::Understood, role_name(&role));

    let tool = matches!(&*role, "tool" | "function");
    let mut content = None;
    let mut calls = Vec::new();
    // Custom fields for the first block, and names of members among them.
    let mut own: Vec<(String, String)> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    let mut other: Vec<(&str, &str)> = Vec::new();
    let mut of_result: Vec<(String, String)> = Vec::new();
    for (name, value) in &found {
        match (&**name, sort(value)) {
            ("role", _) => {}
            ("content", _) => content = Some(*value),
            ("tool_calls", Sort::Array) if role == "assistant" && value.len() > 2 => {
                calls = elements(value);
                // Brackets around white space only: an empty list, which is no call.
                if calls.is_empty() {
                    keep(name, value, &mut own, &mut names, &mut other, report);
                }
            }
            ("tool_call_id", Sort::String) if tool => {
                of_result.push(("data_call_id".into(), canonical(value)));
            }
            ("name", Sort::String) if tool => {
                of_result.push(("data_call_name".into(), canonical(value)));
            }
            _ => keep(name, value, &mut own, &mut names, &mut other, report),
        }
    }
    if !names.is_empty() {
        names.sort_unstable();
        own.push(("data_members".into(), list_of_text(&names)));
    }
    if !other.is_empty() {
        own.push(("data_other".into(), object(&other)));
    }

    let mut parts = Vec::new();
    let shape = read_content(content, tool, calls.is_empty(), &mut parts, report);
    if let Some(shape) = shape {
        own.push(("data_shape".into(), quoted(shape)));
    }
    parts.extend(calls.into_iter().map(|call| read_call(call, report)));
    if parts.is_empty() {
        // The message has to stand somewhere.
        parts.push(Part::default());
    }
    if tool {
        for part in &mut parts {
            part.data.extend_from_slice(&of_result);
        }
    }
    if let Some(first) = parts.first_mut() {
        first.data.append(&mut own);
    }
    Message {
        system: matches!(&*role, "system" | "developer"),
        reply: role == "assistant",
        role: Some(role.into_owned()),
        parts,
    }
}

/// Keeps a member that is not known as a custom field.
fn keep<'a>(
    name: &'a str,
    value: &'a str,
    own: &mut Vec<(String, String)>,
    names: &mut Vec<&'a str>,
    other: &mut Vec<(&'a str, &'a str)>,
    report: &mut Report,
) {
    report.member(name);
    if RESERVED.contains(&name) {
        other.push((name, value));
    } else {
        own.push((format!("data_{name}"), canonical(value)));
        names.push(name);
    }
}

/// Appends the blocks of a message's content; answers its shape where they do not tell it.
///
/// What the blocks tell: none means null where there are calls, one plain text a string, anything
/// else a list.
fn read_content(
    content: Option<&str>,
    tool: bool,
    no_calls: bool,
    parts: &mut Vec<Part>,
    report: &mut Report,
) -> Option<&'static str> {
    let text = if tool { "result" } else { "text" };
    let Some(content) = content else {
        return Some("absent");
    };
    match sort(content) {
        Sort::Null => no_calls.then_some("null"),
        Sort::String => {
            report.part(Fate::Understood, text);
            parts.push(Part {
                kind: Some(text),
                content: Some(canonical(content)),
                data: Vec::new(),
            });
            None
        }
        Sort::Array => {
            let before = parts.len();
            let elements = elements(content);
            parts.extend(elements.iter().map(|part| read_part(part, text, report)));
            let one_text = match &parts[before..] {
                [] => true,
                [part] => is_plain_text(part),
                _ => false,
            };
            one_text.then_some("list")
        }
        Sort::Object | Sort::Other => {
            report.part(Fate::Verbatim, "content");
            parts.push(verbatim("content", None, content));
            None
        }
    }
}

/// Whether a block alone stands for content that is a string.
fn is_plain_text(part: &Part) -> bool {
    matches!(part.kind, Some("text" | "result")) && part.data.is_empty()
}

fn read_part(raw: &str, text: &'static str, report: &mut Report) -> Part {
    let found = if sort(raw) == Sort::Object {
        members(raw)
    } else {
        Vec::new()
    };
    let value = |name: &str| {
        found
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| *value)
    };
    let name = value("type").and_then(string).unwrap_or_default();
    let (kind, held) = match &*name {
        "text" => (text, "text"),
        "image_url" => ("image", "image_url"),
        _ => ("", ""),
    };
    let content = value(held).filter(|content| kind == "image" || sort(content) == Sort::String);
    let (Some(content), false) = (content, kind.is_empty()) else {
        report.part(
            Fate::Verbatim,
            if name.is_empty() {
                "without a type"
            } else {
                &name
            },
        );
        return verbatim("part", None, raw);
    };
    report.part(Fate::Understood, kind);
    let mut part = Part {
        kind: Some(kind),
        content: Some(canonical(content)),
        data: Vec::new(),
    };
    rest("data_part", &found, &["type", held], &mut part);
    part
}

fn read_call(raw: &str, report: &mut Report) -> Part {
    let found = if sort(raw) == Sort::Object {
        members(raw)
    } else {
        Vec::new()
    };
    let value = |name: &str| {
        found
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| *value)
    };
    let function = value("function").filter(|function| sort(function) == Sort::Object);
    let inner = function.map(members).unwrap_or_default();
    let of_function = |name: &str| {
        let found = inner.iter().find(|(key, _)| key == name);
        found
            .map(|(_, value)| *value)
            .filter(|value| sort(value) == Sort::String)
    };
    let id = value("id").filter(|id| sort(id) == Sort::String);
    let (name, arguments) = (of_function("name"), of_function("arguments"));
    let plain = value("type")
        .and_then(string)
        .is_some_and(|name| name == "function");
    let (true, Some(id), Some(name), Some(arguments)) = (plain, id, name, arguments) else {
        report.part(Fate::Verbatim, "call");
        return verbatim("call", Some("call"), raw);
    };
    report.part(Fate::Understood, "call");
    let mut part = Part {
        kind: Some("call"),
        content: Some(canonical(arguments)),
        data: vec![
            ("data_call_id".into(), canonical(id)),
            ("data_call_name".into(), canonical(name)),
        ],
    };
    rest("data_call", &found, &["id", "type", "function"], &mut part);
    rest("data_function", &inner, &["name", "arguments"], &mut part);
    part
}

/// A block whose content is a value as it came.
fn verbatim(what: &str, kind: Option<&'static str>, raw: &str) -> Part {
    Part {
        kind,
        content: Some(canonical(raw)),
        data: vec![("data_verbatim".into(), quoted(what))],
    }
}

/// Keeps the members not in `known` as one object in `field`, where there are any.
fn rest(field: &str, found: &[(Cow<'_, str>, &str)], known: &[&str], part: &mut Part) {
    let rest: Vec<(&str, &str)> = found
        .iter()
        .filter(|(name, _)| !known.contains(&&**name))
        .map(|(name, value)| (&**name, *value))
        .collect();
    if !rest.is_empty() {
        part.data.push((field.into(), object(&rest)));
    }
}

fn object(members: &[(&str, &str)]) -> String {
    let mut raw = String::from("{");
    for (at, (name, value)) in members.iter().enumerate() {
        if at > 0 {
            raw.push(',');
        }
        json_text(name, &mut raw);
        raw.push(':');
        raw.push_str(value);
    }
    raw.push('}');
    canonical(&raw)
}

fn list_of_text(names: &[&str]) -> String {
    let mut raw = String::from("[");
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            raw.push(',');
        }
        json_text(name, &mut raw);
    }
    raw.push(']');
    raw
}

/// A role for the report: the known ones by name, so that odd input cannot flood it.
fn role_name(role: &str) -> &'static str {
    match role {
        "system" => "system",
        "developer" => "developer",
        "user" => "user",
        "assistant" => "assistant",
        "tool" => "tool",
        "function" => "function",
        _ => "other role",
    }
}
