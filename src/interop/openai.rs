//! OpenAI chat messages in, as turns and blocks.
//!
//! Text, tool call, tool result and image parts become blocks of kind `text`, `call`, `result`
//! and `image`. Custom fields keep what no header of the tree expresses, so that
//! [`Provider::OpenAi`](crate::Provider::OpenAi) can return equal messages:
//!
//! | field | on | value |
//! |---|---|---|
//! | `data_message` | every block | the position of the message, from 1 |
//! | `data_call_id` | calls, results | the id of the call |
//! | `data_call_name` | calls, results | the function called; the `name` of a result |
//! | `data_shape` | first block | the form of `content` (`list`, `null`, `absent`), if the blocks do not imply it |
//! | `data_verbatim` | any block | its content is raw JSON: a `message`, `content`, `part` or `call` |
//! | `data_part`, `data_call`, `data_function` | any block | unknown members of the part, the call or its function |
//! | `data_<member>` | first block | an unknown member of the message |
//! | `data_members` | first block | the names of those members |
//! | `data_other` | first block | unknown members whose field name is one of the above |

use super::json::{canonical, push_member, quoted};
use super::report::{Fate, Report};
use super::turns::{Message, MessagePart};
use crate::render::openai::RESERVED;
use crate::tree::shallow::{Member, ValueType, elements, get, members, string, value_type};

/// Whether a value looks like one message: an object with a role.
pub(super) fn is_message(raw: &str) -> bool {
    get_string(&members(raw), "role").is_some()
}

/// Reads a list of checked messages.
pub(super) fn messages(raw: &[&str], report: &mut Report) -> Vec<Message> {
    let number = |(at, raw): (usize, &&str)| {
        let mut message = read(raw, report);
        for part in &mut message.parts {
            let position = (at + 1).to_string();
            part.data.push(("data_message".into(), position));
        }
        message
    };
    raw.iter().enumerate().map(number).collect()
}

/// The raw value of the member `name`, if it is a string.
fn get_string<'a>(members: &[Member<'a>], name: &str) -> Option<&'a str> {
    get(members, name).filter(|value| value_type(value) == ValueType::String)
}

fn read(raw: &str, report: &mut Report) -> Message {
    let found = members(raw);
    let Some(role) = get(&found, "role").and_then(string) else {
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
    let mut unknown = UnknownMembers::default();
    let mut of_result: Vec<(String, String)> = Vec::new();
    for (name, value) in &found {
        match (&**name, value_type(value)) {
            ("role", _) => {}
            ("content", _) => content = Some(*value),
            ("tool_calls", ValueType::Array) if role == "assistant" && value.len() > 2 => {
                calls = elements(value);
                // Brackets with only white space inside: an empty list, which is kept as it is.
                if calls.is_empty() {
                    unknown.keep(name, value, report);
                }
            }
            ("tool_call_id", ValueType::String) if tool => {
                of_result.push(("data_call_id".into(), canonical(value)));
            }
            ("name", ValueType::String) if tool => {
                of_result.push(("data_call_name".into(), canonical(value)));
            }
            _ => unknown.keep(name, value, report),
        }
    }
    let mut first_data = unknown.into_fields();
    let mut parts = Vec::new();
    let shape = read_content(content, tool, calls.is_empty(), &mut parts, report);
    if let Some(shape) = shape {
        first_data.push(("data_shape".into(), quoted(shape)));
    }
    parts.extend(calls.into_iter().map(|call| read_call(call, report)));
    if parts.is_empty() {
        // A message without parts needs a node too.
        parts.push(MessagePart::default());
    }
    if tool {
        for part in &mut parts {
            part.data.extend_from_slice(&of_result);
        }
    }
    if let Some(first) = parts.first_mut() {
        first.data.append(&mut first_data);
    }
    Message {
        system: matches!(&*role, "system" | "developer"),
        reply: role == "assistant",
        role: Some(role.into_owned()),
        parts,
    }
}

/// The unknown members of a message, which become custom fields of its first block.
#[derive(Default)]
struct UnknownMembers<'a> {
    fields: Vec<(String, String)>,
    /// The names of `fields`, without `data_`.
    names: Vec<&'a str>,
    /// Members whose field name is reserved.
    other: Vec<(&'a str, &'a str)>,
}

impl<'a> UnknownMembers<'a> {
    fn keep(&mut self, name: &'a str, value: &'a str, report: &mut Report) {
        report.member(name);
        if RESERVED.contains(&name) {
            self.other.push((name, value));
        } else {
            self.fields.push((format!("data_{name}"), canonical(value)));
            self.names.push(name);
        }
    }

    fn into_fields(mut self) -> Vec<(String, String)> {
        if !self.names.is_empty() {
            self.names.sort_unstable();
            let names: Vec<String> = self.names.iter().map(|name| quoted(name)).collect();
            let list = format!("[{}]", names.join(","));
            self.fields.push(("data_members".into(), list));
        }
        if !self.other.is_empty() {
            self.fields.push(("data_other".into(), object(&self.other)));
        }
        self.fields
    }
}

/// Appends the blocks of a message's content. Returns its shape if the blocks do not imply it: no
/// block implies null in a message with calls, one plain text a string, anything else a list.
fn read_content(
    content: Option<&str>,
    tool: bool,
    no_calls: bool,
    parts: &mut Vec<MessagePart>,
    report: &mut Report,
) -> Option<&'static str> {
    let text = if tool { "result" } else { "text" };
    let Some(content) = content else {
        return Some("absent");
    };
    match value_type(content) {
        ValueType::Null => no_calls.then_some("null"),
        ValueType::String => {
            report.part(Fate::Understood, text);
            parts.push(MessagePart {
                kind: Some(text),
                content: Some(canonical(content)),
                data: Vec::new(),
            });
            None
        }
        ValueType::Array => {
            let elements = elements(content);
            parts.extend(elements.iter().map(|part| read_part(part, text, report)));
            let one_text = match &parts[..] {
                [] => true,
                [part] => is_plain_text(part),
                _ => false,
            };
            one_text.then_some("list")
        }
        ValueType::Object | ValueType::Other => {
            report.part(Fate::Verbatim, "content");
            parts.push(verbatim("content", None, content));
            None
        }
    }
}

/// Whether a block without others implies content that is a string.
fn is_plain_text(part: &MessagePart) -> bool {
    matches!(part.kind, Some("text" | "result")) && part.data.is_empty()
}

fn read_part(raw: &str, text: &'static str, report: &mut Report) -> MessagePart {
    let found = members(raw);
    let name = get(&found, "type").and_then(string).unwrap_or_default();
    let known = match &*name {
        "text" => get_string(&found, "text").map(|content| (text, "text", content)),
        "image_url" => get(&found, "image_url").map(|content| ("image", "image_url", content)),
        _ => None,
    };
    let Some((kind, content_name, content)) = known else {
        let name = if name.is_empty() {
            "without a type"
        } else {
            &name
        };
        report.part(Fate::Verbatim, name);
        return verbatim("part", None, raw);
    };
    report.part(Fate::Understood, kind);
    let mut part = MessagePart {
        kind: Some(kind),
        content: Some(canonical(content)),
        data: Vec::new(),
    };
    part.keep_rest("data_part", &found, &["type", content_name]);
    part
}

fn read_call(raw: &str, report: &mut Report) -> MessagePart {
    let found = members(raw);
    let function = get(&found, "function").map(members).unwrap_or_default();
    let kind = get(&found, "type").and_then(string);
    let (Some("function"), Some(id), Some(name), Some(arguments)) = (
        kind.as_deref(),
        get_string(&found, "id"),
        get_string(&function, "name"),
        get_string(&function, "arguments"),
    ) else {
        report.part(Fate::Verbatim, "call");
        return verbatim("call", Some("call"), raw);
    };
    report.part(Fate::Understood, "call");
    let mut part = MessagePart {
        kind: Some("call"),
        content: Some(canonical(arguments)),
        data: vec![
            ("data_call_id".into(), canonical(id)),
            ("data_call_name".into(), canonical(name)),
        ],
    };
    part.keep_rest("data_call", &found, &["id", "type", "function"]);
    part.keep_rest("data_function", &function, &["name", "arguments"]);
    part
}

/// A block whose content is raw JSON, canonically written.
fn verbatim(what: &str, kind: Option<&'static str>, raw: &str) -> MessagePart {
    MessagePart {
        kind,
        content: Some(canonical(raw)),
        data: vec![("data_verbatim".into(), quoted(what))],
    }
}

impl MessagePart {
    /// Keeps the members not in `known`, if there are any, as one object in `field`.
    fn keep_rest(&mut self, field: &str, found: &[Member<'_>], known: &[&str]) {
        let rest: Vec<(&str, &str)> = found
            .iter()
            .filter(|(name, _)| !known.contains(&&**name))
            .map(|(name, value)| (&**name, *value))
            .collect();
        if !rest.is_empty() {
            self.data.push((field.into(), object(&rest)));
        }
    }
}

fn object(members: &[(&str, &str)]) -> String {
    let mut raw = String::new();
    for (name, value) in members {
        push_member(name, value, &mut raw);
    }
    canonical(&format!("{{{}}}", raw.trim_start_matches(',')))
}

/// The name a role is counted under. Unknown roles share one, so odd input cannot flood the
/// report.
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
