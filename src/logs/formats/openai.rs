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

use super::fields::Others;
use super::forms::answered_by;
use super::prelude::*;
use super::requests::{Api, ReadReply, body_of, first_choice};
use super::transcript::{contents, fate, record as record_of, typed, unread};
use crate::render::Provider;
use crate::render::openai::RESERVED;

pub(super) fn sniff(_record: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let is_list = |name| is(found, name, ValueType::Array);
    let body = body_of(found).unwrap_or_default();
    if is(&body, "messages", ValueType::Array) && answered_by(found) == Some(Provider::OpenAi) {
        return Sniff::Yes;
    }
    let is_chat = is_message(found) || is_list("choices") || has_chat(found) || has_chat(&body);
    if is_chat { Sniff::Maybe } else { Sniff::No }
}

/// Whether a request has what requests of no other API have, whatever its model: calls, results or tools as only this one
/// has them.
pub(super) fn is_surely_chat(request: &[Member<'_>]) -> bool {
    let any = |name, is_of: fn(&[Member<'_>]) -> bool| {
        let mut all = items(request, name).into_iter();
        all.any(|raw| is_of(&members(raw)))
    };
    let is_own = |message: &[Member<'_>]| {
        let role = text(message, "role").unwrap_or_default();
        let is_own = matches!(&*role, "tool" | "function");
        is_own || is(message, "tool_calls", ValueType::Array)
    };
    any("messages", is_own) || any("tools", |tool| is(tool, "function", ValueType::Object))
}

/// Whether an object has a list of messages. Some of the list are not read in every chat.
fn has_chat(found: &[Member<'_>]) -> bool {
    let list = get(found, "messages").filter(|raw| value_type(raw) == ValueType::Array);
    list.is_some_and(|raw| {
        let messages = elements(raw);
        messages.is_empty() || messages.iter().any(|raw| is_message(&members(raw)))
    })
}

/// Whether a record is one message: an object with a role, and with a text, parts that say what they are, or calls.
pub(in crate::logs) fn is_message(found: &[Member<'_>]) -> bool {
    let is_part = |raw: &&str| get_string(&members(raw), "type").is_some();
    let is_list = |name| get(found, name).map(value_type) == Some(ValueType::Array);
    let has_content = match get(found, "content") {
        Some(raw) if value_type(raw) == ValueType::Array => {
            let parts = elements(raw);
            parts.is_empty() || parts.iter().any(is_part)
        }
        Some(raw) => value_type(raw) == ValueType::String,
        None => false,
    };
    get_string(found, "role").is_some() && (has_content || is_list("tool_calls"))
}

#[derive(Clone, Default)]
pub(super) struct Chat;

impl Api for Chat {
    const PROVIDER: Provider = Provider::OpenAi;
    const MESSAGES: &'static str = "messages";
    const JOINED: bool = false;

    fn message(&self, raw: &str, report: &mut ImportReport) -> LogMessage {
        read(raw, report)
    }

    fn response(&self, found: &[Member<'_>], report: &mut ImportReport) -> Option<ReadReply> {
        let choices = elements(get(found, "choices")?);
        let usage = get(found, "usage").filter(|raw| *raw != "null");
        let has_message = |raw: &&str| get(&members(raw), "message").is_some();
        if usage.is_none() && !choices.first().is_some_and(has_message) {
            return None;
        }
        let choice = first_choice(&choices, report);
        let message = get(&choice, "message").map(|raw| read(raw, report));
        // A choice without a message is of another API, such as that of completions.
        let other = if message.is_some() {
            Vec::new()
        } else {
            record_of(&choice, &["finish_reason", "index"], report)
        };
        let said = [
            ("stop_reason", get(&choice, "finish_reason")),
            ("response_id", get(found, "id")),
            ("model", get(found, "model")),
        ];
        let call = LogCall {
            time: get(found, "created").and_then(super::fields::time),
            meta: other,
            ..LogCall::used(usage, &said)
        };
        Some((message.into_iter().collect(), call))
    }
}

fn read(raw: &str, report: &mut ImportReport) -> LogMessage {
    let found = members(raw);
    let Some(role) = text(&found, "role") else {
        return unread("without a role", raw, report);
    };
    let tool = matches!(&*role, "tool" | "function");
    let mut body = None;
    let mut calls = Vec::new();
    let mut unknown = Others::default();
    let (mut id, mut function) = (None, None);
    for (name, value) in &found {
        match (&**name, value_type(value)) {
            ("role", _) => {}
            ("content", _) => body = Some(*value),
            ("tool_calls", ValueType::Array) if role == "assistant" && value.len() > 2 => {
                calls = elements(value);
                // Brackets with only white space inside: an empty list, which is kept as it is.
                if calls.is_empty() {
                    unknown.keep(name, value, &RESERVED, report);
                }
            }
            ("tool_call_id", ValueType::String) if tool => id = Some(*value),
            ("name", ValueType::String) if tool => function = Some(*value),
            _ => unknown.keep(name, value, &RESERVED, report),
        }
    }
    // SWE-agent has a list of ids. With one it is the id of the call, which is not written a second time.
    let ids = get(&found, "tool_call_ids").filter(|_| tool);
    if let [one] = ids.map(elements).unwrap_or_default()[..]
        && value_type(one) == ValueType::String
    {
        if id.is_some_and(|id| canonical(id) == canonical(one)) {
            unknown.keep("tool_call_id", one, &RESERVED, report);
        }
        id = id.or(Some(one));
    }
    let mut parts = Vec::new();
    let shape = content(body, tool, calls.is_empty(), &mut parts, report);
    parts.extend(calls.into_iter().map(|call| read_call(call, report)));
    let fate = match shape {
        Some("absent" | "null") if !unknown.is_empty() => Fate::Verbatim,
        _ => fate(&parts),
    };
    report.message(fate, role_name(&role));
    let mut message = LogMessage::with_system(&role, &["system", "developer"], parts);
    // A message without parts needs a node too.
    message.first();
    for part in message.parts.iter_mut().filter(|_| tool) {
        part.set_some("data_call_id", id);
        part.set_some("data_call_name", function);
    }
    let first = message.first();
    first.data.extend(unknown.into_fields());
    if let Some(shape) = shape {
        first.set("data_shape", quoted(shape));
    }
    message
}

/// Appends the blocks of a message's content. Returns its shape if the blocks do not imply it: no
/// block implies null in a message with calls, one plain text a string, anything else a list.
fn content(
    raw: Option<&str>,
    tool: bool,
    no_calls: bool,
    parts: &mut Vec<LogPart>,
    report: &mut ImportReport,
) -> Option<&'static str> {
    let kind = if tool { "result" } else { "text" };
    let Some(raw) = raw else {
        return Some("absent");
    };
    if raw == "null" {
        return no_calls.then_some("null");
    }
    let types = [("text", "text", kind), ("image_url", "image_url", "image")];
    let read = |raw: &str, parts: &mut Vec<LogPart>, report: &mut ImportReport| {
        parts.push(typed(raw, &members(raw), &types, |_| None, report));
    };
    match contents(raw, kind, Accepted::default(), parts, report, read) {
        Some(is_list) => is_list.then_some("list"),
        None => {
            report.part(Fate::Verbatim, "content");
            parts.push(LogPart::verbatim("content", None, raw));
            None
        }
    }
}

fn read_call(raw: &str, report: &mut ImportReport) -> LogPart {
    let found = members(raw);
    let function = inner(&found, "function");
    let (Some("function"), Some(id), Some(name), Some(arguments)) = (
        text(&found, "type").as_deref(),
        get_string(&found, "id"),
        get_string(&function, "name"),
        get_string(&function, "arguments"),
    ) else {
        report.part(Fate::Verbatim, "call");
        return LogPart::verbatim("call", Some("call"), raw);
    };
    report.part(Fate::Understood, "call");
    let mut part = LogPart::call(canonical(arguments), Some(id), Some(name));
    part.keep_rest("data_call", &found, &["id", "type", "function"]);
    part.keep_rest("data_function", &function, &["name", "arguments"]);
    part
}
