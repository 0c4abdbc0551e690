//! OpenAI Responses: requests, responses, and lists of items.
//!
//! Each item is a message here; neighbouring items of the model are one reply. Text, calls, results,
//! reasoning, images and files become blocks of kind `text`, `call`, `result`, `thinking`, `image`
//! and `document`. Items of other types, such as calls of hosted tools, are kept as they are.
//! [`Provider::OpenAiResponses`] gives equal requests back, with the
//! help of these custom fields:
//!
//! | field | on | value |
//! |---|---|---|
//! | `data_form` | every block | `openai-responses` |
//! | `data_shape` | first block | the form of `content`, `output` or `summary` (`list`, `null`, `absent`), if the blocks do not imply it; `instructions`, `input` for a text that is not an item |
//! | `data_item` | first block | other members of the item |
//! | `data_item_type` | first block | the type, if the kind and the role do not imply it; null if the item has none |
//! | `data_part`, `data_part_type` | any block | other members of the part; its type, if the role does not imply it |
//! | `data_verbatim` | any block | its content is raw JSON: a `message` (the item) or a `part` |

use super::fields::{get_string, role_name, text};
use super::reader::{Record, Sniff};
use super::requests::{Api, ListNames, Parsed, tools};
use crate::json::{Accepted, Member, ValueType, elements, get, members, value_type};
use crate::logs::json::{canonical, quoted};
use crate::logs::log::{Call, Field, Message, Part, object_without};
use crate::logs::report::{Fate, Report};
use crate::logs::usage;
use crate::render::Provider;
use std::rc::Rc;

const FORM: &str = "\"openai-responses\"";

/// A request, a response, or an item, in the form of the Responses API.
pub(super) fn sniff(record: &Record<'_>, found: &[Member<'_>]) -> Sniff {
    if text(found, "object").as_deref() == Some("response") {
        return Sniff::Yes;
    }
    let inner = get(found, "request").map(members).unwrap_or_default();
    let inner = get(&inner, "body").map(members).unwrap_or(inner);
    for found in [found, &inner] {
        let is_input = matches!(
            get(found, "input").map(value_type),
            Some(ValueType::String | ValueType::Array)
        );
        if is_input && get_string(found, "model").is_some() {
            return Sniff::Yes;
        }
    }
    let kind = text(found, "type").unwrap_or_default();
    let is_call = matches!(&*kind, "function_call" | "function_call_output");
    let has_parts = ["\"input_text\"", "\"output_text\""]
        .iter()
        .any(|mark| record.raw.contains(mark));
    if (is_call && get(found, "call_id").is_some())
        || (has_parts && get_string(found, "role").is_some())
    {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

/// OpenAI Responses.
pub(super) struct Responses;

impl Api for Responses {
    fn lists(&self) -> ListNames {
        ListNames {
            messages: "input",
            joined: true,
        }
    }

    fn is_list(&self, raw: &str, found: &[Member<'_>]) -> bool {
        match value_type(raw) {
            ValueType::Array => true,
            // An item of a custom tool has an input, too.
            ValueType::String => get(found, "model").is_some(),
            _ => false,
        }
    }

    fn messages<'a>(&self, raw: &'a str) -> Vec<&'a str> {
        match value_type(raw) {
            ValueType::String => vec![raw],
            _ => elements(raw),
        }
    }

    fn message(&self, raw: &str, report: &mut Report) -> Message {
        item(raw, &members(raw), Accepted::default(), report)
    }

    fn request(&self, found: &[Member<'_>], report: &mut Report) -> Parsed {
        let mut parsed = Parsed::new(
            Provider::OpenAiResponses,
            "input",
            tools(get(found, "tools"), report),
        );
        if let Some(instructions) = get_string(found, "instructions") {
            report.message(Fate::Understood, "system");
            parsed.taken.push("instructions");
            let message = plain("system", instructions, "instructions");
            parsed.system.push(Rc::new(message));
        }
        parsed
    }

    fn previous(&self, found: &[Member<'_>]) -> Option<String> {
        text(found, "previous_response_id").map(|id| id.into_owned())
    }

    fn chain_id(&self, response: &[Member<'_>]) -> Option<String> {
        text(response, "id").map(|id| id.into_owned())
    }

    fn response(&self, found: &[Member<'_>], report: &mut Report) -> Option<(Vec<Message>, Call)> {
        let output = get(found, "output").filter(|raw| value_type(raw) == ValueType::Array)?;
        let reply = elements(output).into_iter();
        let reply = reply
            .map(|raw| item(raw, &members(raw), Accepted::default(), report))
            .collect();
        let mut fields: Vec<Field> = get(found, "usage").map(usage::fields).unwrap_or_default();
        for (name, member) in [
            ("stop_reason", "status"),
            ("response_id", "id"),
            ("model", "model"),
        ] {
            let value = get(found, member).map(canonical);
            fields.extend(value.map(|value| (name.into(), value)));
        }
        let call = Call {
            time: get(found, "created_at").and_then(super::fields::time),
            usage: fields,
            ..Call::default()
        };
        Some((reply, call))
    }
}

/// A text that is not an item.
fn plain(role: &str, raw: &str, shape: &str) -> Message {
    let mut part = Part::new("text", canonical(raw));
    part.set("data_form", FORM.to_owned());
    part.set("data_shape", quoted(shape));
    Message {
        role: Some(role.to_owned()),
        system: role == "system",
        parts: vec![part],
        ..Message::default()
    }
}

/// Reads an item, of which `found` are the members.
pub(super) fn item(
    raw: &str,
    found: &[Member<'_>],
    json: Accepted<'_>,
    report: &mut Report,
) -> Message {
    if value_type(raw) == ValueType::String {
        report.message(Fate::Understood, "user");
        return plain("user", raw, "input");
    }
    let kind = text(found, "type").unwrap_or_default();
    let read = match &*kind {
        "" | "message" => message(found, json, report),
        "function_call" => call(found, "arguments", report),
        "custom_tool_call" => call(found, "input", report),
        "function_call_output" | "custom_tool_call_output" => output(found, json, report),
        "reasoning" => reasoning(found, json, report),
        _ => None,
    };
    let mut message = read.unwrap_or_else(|| unknown(found, &kind, raw, report));
    let implied = match &*kind {
        "message" | "function_call" | "function_call_output" | "reasoning" => true,
        _ => {
            let whole = ("data_verbatim".into(), quoted("message"));
            message.parts[0].data.contains(&whole)
        }
    };
    if !implied {
        let kind = get(found, "type").map_or("null".to_owned(), canonical);
        message.parts[0].set("data_item_type", kind);
    }
    for part in &mut message.parts {
        part.set("data_form", FORM.to_owned());
    }
    message
}

fn unknown(found: &[Member<'_>], kind: &str, raw: &str, report: &mut Report) -> Message {
    report.message(
        Fate::Verbatim,
        if kind.is_empty() {
            "without a type"
        } else {
            kind
        },
    );
    let is_output = kind.ends_with("_output");
    let is_call = kind.ends_with("_call") || kind == "reasoning";
    let block = match kind {
        "reasoning" => Some("thinking"),
        "compaction" => Some("summary"),
        _ if is_output => Some("result"),
        _ if is_call => Some("call"),
        _ => None,
    };
    let mut part = Part::verbatim("message", block, raw);
    if let Some(id) = get_string(found, "call_id") {
        part.set("data_call_id", canonical(id));
    }
    let role = text(found, "role").map(|role| role.into_owned());
    let role = role.or_else(|| match (is_output, is_call) {
        (true, _) => Some("tool".to_owned()),
        (_, true) => Some("assistant".to_owned()),
        _ => None,
    });
    Message {
        reply: role.as_deref() == Some("assistant"),
        role,
        parts: vec![part],
        ..Message::default()
    }
}

/// Adds the form of a list, and the other members of its item, to the first part.
fn finish(
    mut parts: Vec<Part>,
    shape: Option<&str>,
    found: &[Member<'_>],
    known: &[&str],
) -> Vec<Part> {
    if parts.is_empty() {
        parts.push(Part::default());
    }
    if let Some(shape) = shape {
        parts[0].set("data_shape", quoted(shape));
    }
    if let Some(rest) = object_without(found, known) {
        parts[0].set("data_item", rest);
    }
    parts
}

fn message(found: &[Member<'_>], json: Accepted<'_>, report: &mut Report) -> Option<Message> {
    let role = text(found, "role")?;
    let standard = match &*role {
        "assistant" => "output_text",
        _ => "input_text",
    };
    let (parts, shape) = content(get(found, "content"), "text", standard, json, report)?;
    report.message(Fate::Understood, role_name(&role));
    Some(Message {
        system: matches!(&*role, "system" | "developer"),
        reply: role == "assistant",
        parts: finish(parts, shape, found, &["type", "role", "content"]),
        role: Some(role.into_owned()),
        ..Message::default()
    })
}

fn call(found: &[Member<'_>], member: &str, report: &mut Report) -> Option<Message> {
    let arguments = get_string(found, member)?;
    let (id, name) = (get_string(found, "call_id")?, get_string(found, "name")?);
    report.message(Fate::Understood, "call");
    report.part(Fate::Understood, "call");
    let mut part = Part::new("call", canonical(arguments));
    part.set("data_call_id", canonical(id));
    part.set("data_call_name", canonical(name));
    let known = ["type", "call_id", "name", member];
    Some(Message {
        role: Some("assistant".to_owned()),
        reply: true,
        parts: finish(vec![part], None, found, &known),
        ..Message::default()
    })
}

fn output(found: &[Member<'_>], json: Accepted<'_>, report: &mut Report) -> Option<Message> {
    let id = canonical(get_string(found, "call_id")?);
    let (mut parts, shape) = content(get(found, "output"), "result", "input_text", json, report)?;
    report.message(Fate::Understood, "output");
    if parts.is_empty() {
        parts.push(Part {
            kind: Some("result"),
            ..Part::default()
        });
    }
    for part in &mut parts {
        part.set("data_call_id", id.clone());
    }
    Some(Message {
        role: Some("tool".to_owned()),
        parts: finish(parts, shape, found, &["type", "call_id", "output"]),
        ..Message::default()
    })
}

/// Reasoning whose summary is a list of texts, and nothing else.
fn reasoning(found: &[Member<'_>], json: Accepted<'_>, report: &mut Report) -> Option<Message> {
    let summary = get(found, "summary").filter(|raw| value_type(raw) == ValueType::Array)?;
    let mut parts = Vec::new();
    for raw in json.elements(summary) {
        let part = json.members(raw);
        if part.len() != 2 || text(&part, "type").as_deref() != Some("summary_text") {
            return None;
        }
        parts.push(Part::new("thinking", canonical(get_string(&part, "text")?)));
    }
    report.message(Fate::Understood, "reasoning");
    report.part(Fate::Understood, "thinking");
    let shape = parts.is_empty().then_some("list");
    if parts.is_empty() {
        parts.push(Part::new("thinking", quoted("")));
    }
    parts[0].keep_rest("data_part", found, &["type", "summary"]);
    Some(Message {
        role: Some("assistant".to_owned()),
        reply: true,
        parts: finish(parts, shape, &[], &[]),
        ..Message::default()
    })
}

/// The parts of a message's content or an output, and the form if they do not imply it.
fn content(
    raw: Option<&str>,
    kind: &'static str,
    standard: &str,
    json: Accepted<'_>,
    report: &mut Report,
) -> Option<(Vec<Part>, Option<&'static str>)> {
    let Some(raw) = raw else {
        return Some((Vec::new(), Some("absent")));
    };
    match value_type(raw) {
        ValueType::String => {
            report.part(Fate::Understood, kind);
            Some((vec![Part::new(kind, canonical(raw))], None))
        }
        ValueType::Array => {
            let parts: Vec<Part> = json
                .elements(raw)
                .into_iter()
                .map(|raw| part(raw, kind, standard, json, report))
                .collect();
            let implied = match &parts[..] {
                [] => true,
                [part] => part.kind == Some(kind) && part.data.is_empty(),
                _ => false,
            };
            Some((parts, implied.then_some("list")))
        }
        _ => None,
    }
}

fn part(
    raw: &str,
    kind: &'static str,
    standard: &str,
    json: Accepted<'_>,
    report: &mut Report,
) -> Part {
    let found = json.members(raw);
    let name = text(&found, "type").unwrap_or_default();
    let read = match &*name {
        "input_text" | "output_text" => get_string(&found, "text").map(|content| {
            let mut part = Part::new(kind, canonical(content));
            part.keep_rest("data_part", &found, &["type", "text"]);
            if name != standard {
                part.set("data_part_type", quoted(&name));
            }
            part
        }),
        "input_image" => object_without(&found, &["type"]).map(|rest| Part::new("image", rest)),
        "input_file" => object_without(&found, &["type"]).map(|rest| Part::new("document", rest)),
        _ => None,
    };
    let Some(part) = read else {
        let name = if name.is_empty() {
            "without a type"
        } else {
            &name
        };
        report.part(Fate::Verbatim, name);
        return Part::verbatim("part", None, raw);
    };
    report.part(Fate::Understood, part.kind.unwrap_or_default());
    part
}
