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

use super::bedrock::is_request as is_bedrock;
use super::fields::Others;
use super::forms::answered_by;
use super::openai::is_surely_chat;
use super::prelude::*;
use super::requests::{Api, ReadReply, SystemPrompt, body_of};
use super::transcript::{PartType, contents, fate, typed, unknown};
use crate::logs::json::compact;
use crate::render::Provider;
use crate::render::openai::RESERVED;

const FORM: &str = "\"anthropic\"";

/// Strings that are in these messages and in no other API's.
const MARKS: [&str; 4] = [
    "\"tool_use\"",
    "\"tool_result\"",
    "\"redacted_thinking\"",
    "\"input_schema\"",
];

pub(super) fn sniff(record: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let is_response =
        text(found, "type").as_deref() == Some("message") && is(found, "content", ValueType::Array);
    if is_response && get(found, "stop_reason").is_some() {
        return Sniff::Yes;
    }
    let inner = body_of(found).unwrap_or_else(|| found.to_vec());
    let is_list = is(&inner, "messages", ValueType::Array);
    // Bedrock's parts have no type.
    let is_message = get_string(found, "role").is_some() && get(found, "content").is_some();
    if is_bedrock(&inner) || (!is_list && !is_message) {
        return Sniff::No;
    }
    // Gateways have models of Anthropic behind another API, and others behind this one.
    match answered_by(found) {
        Some(Provider::Anthropic) if is_list => return Sniff::Yes,
        Some(Provider::Anthropic) | None => {}
        Some(_) => return Sniff::No,
    }
    if is_surely_chat(&inner) {
        return Sniff::No;
    }
    let system = get(&inner, "system").map(value_type);
    let has_system = matches!(system, Some(ValueType::String | ValueType::Array));
    // The system prompt has a member of its own in this API.
    let is_prompt = |raw: &str| text(&members(raw), "role").as_deref() == Some("system");
    let is_claude = text(&inner, "model").is_some_and(|model| model.contains("claude"))
        && !items(&inner, "messages").into_iter().any(is_prompt);
    if is_list && (has_system || is_claude) {
        return Sniff::Yes;
    }
    (MARKS.iter().any(|mark| record.raw.contains(mark))).into()
}

#[derive(Clone, Default)]
pub(super) struct Messages;

impl Api for Messages {
    const PROVIDER: Provider = Provider::Anthropic;
    const MESSAGES: &'static str = "messages";
    const JOINED: bool = false;

    fn message(&self, raw: &str, report: &mut ImportReport) -> LogMessage {
        read(raw, report)
    }

    fn system(&self, found: &[Member<'_>], report: &mut ImportReport) -> Option<SystemPrompt> {
        let raw = get(found, "system").filter(|raw| !matches!(*raw, "null" | "[]"))?;
        let mut parts = Vec::new();
        if !read_content(raw, &mut parts, Accepted::default(), report) {
            return None;
        }
        report.message(Fate::Understood, "system");
        Some((
            "system",
            LogMessage::with_system("system", &["system"], parts),
        ))
    }

    fn response(&self, found: &[Member<'_>], report: &mut ImportReport) -> Option<ReadReply> {
        if text(found, "type").as_deref() != Some("message") {
            return None;
        }
        let message = of_content(found, Accepted::default(), report)?;
        Some((vec![message], call(found)))
    }
}

pub(super) fn call(found: &[Member<'_>]) -> LogCall {
    let of = |name| get(found, name).filter(|raw| *raw != "null");
    let said = [
        ("stop_reason", of("stop_reason")),
        ("response_id", of("id")),
        ("model", of("model")),
    ];
    LogCall::used(get(found, "usage"), &said)
}

/// The message of a response, whose other members are not the message's.
pub(super) fn of_content(
    found: &[Member<'_>],
    json: Accepted<'_>,
    report: &mut ImportReport,
) -> Option<LogMessage> {
    let role = text(found, "role")?;
    let mut parts = Vec::new();
    if !read_content(get(found, "content")?, &mut parts, json, report) {
        return None;
    }
    report.message(fate(&parts), role_name(&role));
    Some(LogMessage::new(Some(role.into_owned()), parts))
}

fn read(raw: &str, report: &mut ImportReport) -> LogMessage {
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
    let part = LogPart::verbatim("message", None, raw).with("data_form", FORM.to_owned());
    LogMessage::new(role, vec![part])
}

/// Appends the blocks of a message's content. Returns false if it is neither a string nor a list.
fn read_content(
    raw: &str,
    parts: &mut Vec<LogPart>,
    json: Accepted<'_>,
    report: &mut ImportReport,
) -> bool {
    let read = |raw: &str, parts: &mut Vec<LogPart>, report: &mut ImportReport| {
        read_part(raw, parts, json, report);
    };
    let Some(is_list) = contents(raw, "text", json, parts, report, read) else {
        return false;
    };
    if parts.is_empty() {
        parts.push(LogPart::default());
    }
    if is_list {
        parts[0].set("data_shape", quoted("list"));
    }
    for part in parts {
        part.set("data_form", FORM.to_owned());
    }
    true
}

const TYPES: [PartType<'_>; 4] = [
    ("text", "text", "text"),
    ("thinking", "thinking", "thinking"),
    ("image", "source", "image"),
    ("document", "source", "document"),
];

const OF_RESULT: [PartType<'_>; 3] = [("text", "text", "result"), TYPES[2], TYPES[3]];

fn read_part(raw: &str, parts: &mut Vec<LogPart>, json: Accepted<'_>, report: &mut ImportReport) {
    let found = json.members(raw);
    let name = text(&found, "type").unwrap_or_default();
    match &*name {
        "tool_use" => parts.push(read_call(raw, &found, report)),
        "tool_result" if read_result(&found, parts, json, report) => {}
        _ => parts.push(typed(raw, &found, &TYPES, block_of, report)),
    }
}

fn read_call(raw: &str, found: &[Member<'_>], report: &mut ImportReport) -> LogPart {
    let string_of = |name| get_string(found, name);
    let (Some(id), Some(function), Some(input)) =
        (string_of("id"), string_of("name"), get(found, "input"))
    else {
        return unknown("tool_use", Some("call"), raw, report);
    };
    report.part(Fate::Understood, "call");
    let mut part = LogPart::call(quoted(&compact(input)), Some(id), Some(function));
    part.keep_rest("data_part", found, &["type", "id", "name", "input"]);
    part
}

fn block_of(name: &str) -> Option<&'static str> {
    match name {
        "redacted_thinking" | "thinking" => Some("thinking"),
        _ if name.ends_with("tool_use") => Some("call"),
        _ if name.ends_with("tool_result") => Some("result"),
        _ => None,
    }
}

/// Appends the blocks of a result. Returns false if it is of another form than usual.
fn read_result(
    found: &[Member<'_>],
    parts: &mut Vec<LogPart>,
    json: Accepted<'_>,
    report: &mut ImportReport,
) -> bool {
    let Some(id) = get_string(found, "tool_use_id") else {
        return false;
    };
    // Two results of one call would look the same.
    let own = canonical(id);
    let of_call = |part: &LogPart| part.field("data_call_id") == Some(&own);
    if parts.last().is_some_and(of_call) {
        return false;
    }
    let first = parts.len();
    let read = |raw: &str, parts: &mut Vec<LogPart>, report: &mut ImportReport| {
        let found = json.members(raw);
        parts.push(typed(raw, &found, &OF_RESULT, block_of, report));
    };
    let shape = match get(found, "content") {
        None => Some("absent"),
        Some(raw) => match contents(raw, "result", json, parts, report, read) {
            Some(is_list) => is_list.then_some("list"),
            None => return false,
        },
    };
    if parts.len() == first {
        report.part(Fate::Understood, "result");
        parts.push(LogPart {
            kind: Some("result"),
            ..LogPart::default()
        });
    }
    for part in &mut parts[first..] {
        part.role = Some("tool");
        part.set_some("data_call_id", Some(id));
        part.set_some("data_is_error", get(found, "is_error"));
    }
    if let Some(shape) = shape {
        parts[first].set("data_shape", quoted(shape));
    }
    let known = ["type", "tool_use_id", "content", "is_error"];
    parts[first].keep_rest("data_call", found, &known);
    true
}
