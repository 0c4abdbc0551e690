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

use super::answer::error_of;
use super::prelude::*;
use super::requests::{Api, ReadReply, SystemPrompt, body_of};
use super::transcript::{WHOLE, contents, fate, named, typed};
use crate::render::Provider;

const FORM: &str = "\"openai-responses\"";

pub(super) fn sniff(record: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    if text(found, "object").as_deref() == Some("response") {
        return Sniff::Yes;
    }
    let inner = body_of(found).unwrap_or_default();
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
    ((is_call && get(found, "call_id").is_some())
        || (has_parts && get_string(found, "role").is_some()))
    .into()
}

#[derive(Clone, Default)]
pub(super) struct Responses;

impl Api for Responses {
    const PROVIDER: Provider = Provider::OpenAiResponses;
    const MESSAGES: &'static str = "input";
    const JOINED: bool = true;

    fn is_list(&self, raw: &str, found: &[Member<'_>]) -> bool {
        match value_type(raw) {
            ValueType::Array => true,
            // An item of a custom tool has an input, too.
            ValueType::String => get(found, "model").is_some(),
            _ => false,
        }
    }

    fn messages<'a>(&self, json: Accepted<'_>, raw: &'a str) -> Vec<&'a str> {
        match value_type(raw) {
            ValueType::String => vec![raw],
            _ => json.elements(raw),
        }
    }

    fn message(&self, raw: &str, report: &mut ImportReport) -> LogMessage {
        item(raw, &members(raw), Accepted::default(), report)
    }

    fn system(&self, found: &[Member<'_>], report: &mut ImportReport) -> Option<SystemPrompt> {
        let instructions = get_string(found, "instructions")?;
        report.message(Fate::Understood, "system");
        let message = plain("system", instructions, "instructions");
        Some(("instructions", message))
    }

    fn previous(&self, found: &[Member<'_>]) -> Option<String> {
        text(found, "previous_response_id").map(|id| id.into_owned())
    }

    fn chain_id(&self, response: &[Member<'_>]) -> Option<String> {
        text(response, "id").map(|id| id.into_owned())
    }

    fn error(&self, response: &[Member<'_>]) -> Option<String> {
        let failed = get_string(response, "status").filter(|status| *status == "\"failed\"");
        error_of(response).or_else(|| failed.map(canonical))
    }

    fn response(&self, found: &[Member<'_>], report: &mut ImportReport) -> Option<ReadReply> {
        let output = get(found, "output").filter(|raw| value_type(raw) == ValueType::Array)?;
        let reply = elements(output).into_iter();
        let reply = reply
            .map(|raw| item(raw, &members(raw), Accepted::default(), report))
            .collect();
        let said = [
            ("stop_reason", get(found, "status")),
            ("response_id", get(found, "id")),
            ("model", get(found, "model")),
        ];
        let call = LogCall {
            time: get(found, "created_at").and_then(super::fields::time),
            ..LogCall::used(get(found, "usage"), &said)
        };
        Some((reply, call))
    }
}

pub(super) fn plain(role: &str, raw: &str, shape: &str) -> LogMessage {
    let part = LogPart::new("text", canonical(raw)).with("data_form", FORM.to_owned());
    let part = part.with("data_shape", quoted(shape));
    LogMessage::with_system(role, &["system"], vec![part])
}

pub(super) fn item(
    raw: &str,
    found: &[Member<'_>],
    json: Accepted<'_>,
    report: &mut ImportReport,
) -> LogMessage {
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

fn unknown(found: &[Member<'_>], kind: &str, raw: &str, report: &mut ImportReport) -> LogMessage {
    report.message(Fate::Verbatim, named(kind));
    let is_output = kind.ends_with("_output");
    let is_call = kind.ends_with("_call") || kind == "reasoning";
    let block = match kind {
        "reasoning" => Some("thinking"),
        "compaction" => Some("summary"),
        _ if is_output => Some("result"),
        _ if is_call => Some("call"),
        _ => None,
    };
    let mut part = LogPart::verbatim("message", block, raw)
        .with_some("data_call_id", get_string(found, "call_id"));
    if block == Some("call") {
        // A tool of the provider has no name but that of its item: `web_search_call`.
        let own = get_string(found, "name").map(canonical);
        let name = own.or_else(|| kind.strip_suffix("_call").map(quoted));
        part = part.with_some("data_call_name", name.as_deref());
    }
    let role = text(found, "role").map(|role| role.into_owned());
    let role = role.or_else(|| match (is_output, is_call) {
        (true, _) => Some("tool".to_owned()),
        (_, true) => Some("assistant".to_owned()),
        _ => None,
    });
    LogMessage::new(role, vec![part])
}

/// Adds the form of a list, and the other members of its item, to the first part.
fn finish(
    mut message: LogMessage,
    shape: Option<&str>,
    found: &[Member<'_>],
    known: &[&str],
) -> LogMessage {
    let first = message.first();
    if let Some(shape) = shape {
        first.set("data_shape", quoted(shape));
    }
    first.keep_rest("data_item", found, known);
    message
}

fn message(
    found: &[Member<'_>],
    json: Accepted<'_>,
    report: &mut ImportReport,
) -> Option<LogMessage> {
    let role = text(found, "role")?;
    let standard = match &*role {
        "assistant" => "output_text",
        _ => "input_text",
    };
    let (parts, shape) = content(get(found, "content"), "text", standard, json, report)?;
    report.message(fate(&parts), role_name(&role));
    let message = LogMessage::with_system(&role, &["system", "developer"], parts);
    let known = ["type", "role", "content"];
    Some(finish(message, shape, found, &known))
}

fn call(found: &[Member<'_>], member: &str, report: &mut ImportReport) -> Option<LogMessage> {
    let arguments = get_string(found, member)?;
    let (id, name) = (get_string(found, "call_id")?, get_string(found, "name")?);
    report.message(Fate::Understood, "call");
    report.part(Fate::Understood, "call");
    let part = LogPart::call(canonical(arguments), Some(id), Some(name));
    let message = LogMessage::new(Some("assistant".to_owned()), vec![part]);
    let known = ["type", "call_id", "name", member];
    Some(finish(message, None, found, &known))
}

fn output(
    found: &[Member<'_>],
    json: Accepted<'_>,
    report: &mut ImportReport,
) -> Option<LogMessage> {
    let id = get_string(found, "call_id")?;
    let (parts, shape) = content(get(found, "output"), "result", "input_text", json, report)?;
    report.message(Fate::Understood, "output");
    let mut message = LogMessage::new(Some("tool".to_owned()), parts);
    if message.parts.is_empty() {
        message.first().kind = Some("result");
    }
    for part in &mut message.parts {
        part.set_some("data_call_id", Some(id));
    }
    let known = ["type", "call_id", "output"];
    Some(finish(message, shape, found, &known))
}

/// Reasoning whose summary is a list of texts, and nothing else.
fn reasoning(
    found: &[Member<'_>],
    json: Accepted<'_>,
    report: &mut ImportReport,
) -> Option<LogMessage> {
    let summary = get(found, "summary").filter(|raw| value_type(raw) == ValueType::Array)?;
    let mut parts = Vec::new();
    for raw in json.elements(summary) {
        let part = json.members(raw);
        if part.len() != 2 || text(&part, "type").as_deref() != Some("summary_text") {
            return None;
        }
        parts.push(LogPart::new(
            "thinking",
            canonical(get_string(&part, "text")?),
        ));
    }
    report.message(Fate::Understood, "reasoning");
    report.part(Fate::Understood, "thinking");
    let shape = parts.is_empty().then_some("list");
    if parts.is_empty() {
        parts.push(LogPart::new("thinking", quoted("")));
    }
    parts[0].keep_rest("data_part", found, &["type", "summary"]);
    let message = LogMessage::new(Some("assistant".to_owned()), parts);
    Some(finish(message, shape, &[], &[]))
}

/// The parts of a message's content or an output, and the form if they do not imply it.
fn content(
    raw: Option<&str>,
    kind: &'static str,
    standard: &str,
    json: Accepted<'_>,
    report: &mut ImportReport,
) -> Option<(Vec<LogPart>, Option<&'static str>)> {
    let mut parts = Vec::new();
    let Some(raw) = raw else {
        return Some((parts, Some("absent")));
    };
    let read = |raw: &str, parts: &mut Vec<LogPart>, report: &mut ImportReport| {
        parts.push(part(raw, kind, standard, json, report));
    };
    let is_list = contents(raw, kind, json, &mut parts, report, read)?;
    Some((parts, is_list.then_some("list")))
}

fn part(
    raw: &str,
    kind: &'static str,
    standard: &str,
    json: Accepted<'_>,
    report: &mut ImportReport,
) -> LogPart {
    let found = json.members(raw);
    let types = [
        ("input_text", "text", kind),
        ("output_text", "text", kind),
        ("input_image", WHOLE, "image"),
        ("input_file", WHOLE, "document"),
    ];
    let mut part = typed(raw, &found, &types, |_| None, report);
    let name = text(&found, "type").unwrap_or_default();
    if name.ends_with("_text") && part.field("data_verbatim").is_none() && name != standard {
        part.set("data_part_type", quoted(&name));
    }
    part
}
