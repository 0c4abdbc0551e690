//! OpenAI chat: messages, and requests to Chat Completions with their responses.
//!
//! Text, tool call, tool result and image parts become blocks of kind `text`, `call`, `result`
//! and `image`. Custom fields keep what no header of the tree expresses, so that
//! [`Provider::OpenAi`] can return equal messages:
//!
//! | field | on | value |
//! |---|---|---|
//! | `data_message` | every block | the number of the message |
//! | `data_call_id` | calls, results | the id of the call |
//! | `data_call_name` | calls, results | the function called; the `name` of a result |
//! | `data_shape` | first block | the form of `content` (`list`, `null`, `absent`), if the blocks do not imply it |
//! | `data_verbatim` | any block | its content is raw JSON: a `message`, `content`, `part` or `call` |
//! | `data_part`, `data_call`, `data_function` | any block | unknown members of the part, the call or its function |
//! | `data_<member>` | first block | an unknown member of the message |
//! | `data_members` | first block | the names of those members |
//! | `data_other` | first block | unknown members whose field name is one of the above |

use super::fields::{Others, get_string, role_name};
use super::reader::{Record, Sniff};
use super::requests::{Api, ListNames, Parsed, tools};
use crate::json::{Member, ValueType, elements, get, members, string, value_type};
use crate::logs::json::{canonical, quoted};
use crate::logs::log::{Call, Field, Message, Part};
use crate::logs::report::{Fate, Report};
use crate::logs::usage;
use crate::render::Provider;
use crate::render::openai::RESERVED;

/// A message, a record with `messages`, or a response, in the form of Chat Completions.
pub(super) fn sniff(_record: &Record<'_>, found: &[Member<'_>]) -> Sniff {
    let is_list = |name| get(found, name).map(value_type) == Some(ValueType::Array);
    if is_message(found) || is_list("messages") || is_list("choices") {
        return Sniff::Maybe;
    }
    let inner = get(found, "request").map(members).unwrap_or_default();
    let inner = get(&inner, "body").map(members).unwrap_or(inner);
    match get(&inner, "messages").map(value_type) {
        Some(ValueType::Array) => Sniff::Maybe,
        _ => Sniff::No,
    }
}

/// Whether a record is one message: an object with a role.
pub(in crate::logs) fn is_message(found: &[Member<'_>]) -> bool {
    get_string(found, "role").is_some()
}

/// Chat Completions.
pub(super) struct Chat;

impl Api for Chat {
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
        Parsed::new(
            Provider::OpenAi,
            "messages",
            tools(get(found, "tools"), report),
        )
    }

    fn response(&self, found: &[Member<'_>], report: &mut Report) -> Option<(Vec<Message>, Call)> {
        let choices = elements(get(found, "choices")?);
        let choice = members(choices.first()?);
        let message = read(get(&choice, "message")?, report);
        let mut fields: Vec<Field> = get(found, "usage").map(usage::fields).unwrap_or_default();
        for (name, value) in [
            ("stop_reason", get(&choice, "finish_reason")),
            ("response_id", get(found, "id")),
            ("model", get(found, "model")),
        ] {
            fields.extend(value.map(|value| (name.into(), canonical(value))));
        }
        for _ in choices.iter().skip(1) {
            report.part(Fate::Skipped, "another choice");
        }
        let call = Call {
            time: get(found, "created").and_then(super::fields::time),
            usage: fields,
            ..Call::default()
        };
        Some((vec![message], call))
    }
}

fn read(raw: &str, report: &mut Report) -> Message {
    let found = members(raw);
    let Some(role) = get(&found, "role").and_then(string) else {
        report.message(Fate::Verbatim, "without a role");
        return Message {
            parts: vec![Part::verbatim("message", None, raw)],
            ..Message::default()
        };
    };
    report.message(Fate::Understood, role_name(&role));

    let tool = matches!(&*role, "tool" | "function");
    let mut content = None;
    let mut calls = Vec::new();
    let mut unknown = Others::default();
    let mut of_result: Vec<Field> = Vec::new();
    for (name, value) in &found {
        match (&**name, value_type(value)) {
            ("role", _) => {}
            ("content", _) => content = Some(*value),
            ("tool_calls", ValueType::Array) if role == "assistant" && value.len() > 2 => {
                calls = elements(value);
                // Brackets with only white space inside: an empty list, which is kept as it is.
                if calls.is_empty() {
                    unknown.keep(name, value, &RESERVED, report);
                }
            }
            ("tool_call_id", ValueType::String) if tool => {
                of_result.push(("data_call_id".into(), canonical(value)));
            }
            ("name", ValueType::String) if tool => {
                of_result.push(("data_call_name".into(), canonical(value)));
            }
            _ => unknown.keep(name, value, &RESERVED, report),
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
        parts.push(Part::default());
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
        ..Message::default()
    }
}

/// Appends the blocks of a message's content. Returns its shape if the blocks do not imply it: no
/// block implies null in a message with calls, one plain text a string, anything else a list.
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
    match value_type(content) {
        ValueType::Null => no_calls.then_some("null"),
        ValueType::String => {
            report.part(Fate::Understood, text);
            parts.push(Part::new(text, canonical(content)));
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
            parts.push(Part::verbatim("content", None, content));
            None
        }
    }
}

/// Whether a block without others implies content that is a string.
fn is_plain_text(part: &Part) -> bool {
    matches!(part.kind, Some("text" | "result")) && part.data.is_empty()
}

fn read_part(raw: &str, text: &'static str, report: &mut Report) -> Part {
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
        return Part::verbatim("part", None, raw);
    };
    report.part(Fate::Understood, kind);
    let mut part = Part::new(kind, canonical(content));
    part.keep_rest("data_part", &found, &["type", content_name]);
    part
}

fn read_call(raw: &str, report: &mut Report) -> Part {
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
        return Part::verbatim("call", Some("call"), raw);
    };
    report.part(Fate::Understood, "call");
    let mut part = Part::new("call", canonical(arguments));
    part.set("data_call_id", canonical(id));
    part.set("data_call_name", canonical(name));
    part.keep_rest("data_call", &found, &["id", "type", "function"]);
    part.keep_rest("data_function", &function, &["name", "arguments"]);
    part
}
