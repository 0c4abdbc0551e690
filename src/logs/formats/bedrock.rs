//! Bedrock `converse`: requests, responses, and lists of messages.
//!
//! Text, calls, results, reasoning, images and documents become blocks of kind `text`, `call`, `result`,
//! `thinking`, `image` and `document`. Results are in messages of the user, and their blocks have the role `tool`.
//! The `input` of a call and a result that is JSON are JSON text, in the order they came in. Other parts are kept
//! as they are. [`Provider::Bedrock`] gives equal requests back, with the help of these custom fields:
//!
//! | field | on | value |
//! |---|---|---|
//! | `data_form` | every block | `bedrock` |
//! | `data_cache_point` | any block, tools | the `cachePoint` that comes after it |
//! | `data_role` | first block of a message | its role, if that is a result and the role is not the user's |
//! | `data_item` | first block of a message | other members of it |
//! | `data_part` | reasoning | other members of it, such as `signature` |
//! | `data_part_type` | results | `json`, if the part is not a text |
//! | `data_is_error` | results | whether `status` is `error` |
//! | `data_call` | calls, first block of a result | other members, such as `status` |
//! | `data_shape` | first block of a result | `absent`, if it has no content |
//! | `data_verbatim` | any block | its content is raw JSON: a `message` or a `part` |

use super::prelude::*;
use super::requests::{Api, Parsed, ReadReply, SystemPrompt, body_of, is_request_to_address};
use super::transcript::{json_text, record as record_of, unknown, unread};
use crate::render::{Provider, is_kept};

const FORM: &str = "\"bedrock\"";

/// A request, a response, or a message.
pub(super) fn sniff(_record: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let inner = body_of(found).unwrap_or_default();
    let output = super::fields::inner(found, "output");
    let is_response = is_message(&super::fields::inner(&output, "message"));
    (is_request(found) || is_request(&inner) || is_response || is_message(found)).into()
}

/// Whether these are the members of a request: its messages are.
pub(super) fn is_request(found: &[Member<'_>]) -> bool {
    let messages = items(found, "messages");
    messages
        .first()
        .is_some_and(|raw| is_message(&members(raw)))
}

/// Whether these are the members of a message: the parts of its content are called by their only member.
fn is_message(found: &[Member<'_>]) -> bool {
    let parts = items(found, "content");
    let is_part = |raw: &&str| match &members(raw)[..] {
        [(name, inner)] => match &**name {
            "text" => value_type(inner) == ValueType::String,
            name => PARTS.contains(&name) && value_type(inner) == ValueType::Object,
        },
        _ => false,
    };
    is(found, "role", ValueType::String) && parts.first().is_some_and(is_part)
}

/// What a part can be besides a text.
const PARTS: [&str; 11] = words![
    toolUse toolResult reasoningContent image document video audio cachePoint guardContent citationsContent
    searchResult
];

/// Bedrock's messages.
#[derive(Clone, Default)]
pub(super) struct Converse;

impl Api for Converse {
    const PROVIDER: Provider = Provider::Bedrock;
    const MESSAGES: &'static str = "messages";
    const JOINED: bool = false;

    fn message(&self, raw: &str, report: &mut ImportReport) -> LogMessage {
        message(&members(raw), report).unwrap_or_else(|| {
            let mut message = unread("of unknown form", raw, report);
            message.first().set("data_form", FORM.to_owned());
            message
        })
    }

    fn is_request(&self, found: &[Member<'_>]) -> bool {
        is_request_to_address(
            found,
            &[Self::MESSAGES, "system", "schemaVersion"],
            "assistant",
        )
    }

    fn system(&self, found: &[Member<'_>], report: &mut ImportReport) -> Option<SystemPrompt> {
        let parts = parts(&items(found, "system"), report);
        let message = LogMessage::with_system("system", &["system"], parts);
        (!message.parts.is_empty()).then(|| {
            report.message(Fate::Understood, "system");
            ("system", message)
        })
    }

    fn request(&self, found: &[Member<'_>], report: &mut ImportReport) -> Parsed {
        let system = self.system(found, report);
        let config = super::fields::inner(found, "toolConfig");
        let tools = tools(&items(&config, "tools"), report);
        let mut taken = vec![Self::MESSAGES];
        let mut rest = None;
        if !tools.is_empty() {
            taken.push("toolConfig");
            rest = object_without(&config, &["tools"]).map(|rest| ("toolConfig", rest));
        }
        Parsed {
            rest,
            ..Parsed::with_system(system, tools, taken)
        }
    }

    fn response(&self, found: &[Member<'_>], report: &mut ImportReport) -> Option<ReadReply> {
        let output = super::fields::inner(found, "output");
        let reply = message(&members(get(&output, "message")?), report)?;
        let metrics = super::fields::inner(found, "metrics");
        let said = [
            ("stop_reason", get(found, "stopReason")),
            ("latency_ms", get(&metrics, "latencyMs")),
        ];
        let call = LogCall {
            meta: record_of(found, &READ, report),
            ..LogCall::used(get(found, "usage"), &said)
        };
        Some((vec![reply], call))
    }
}

/// The members of a response that are read.
const READ: [&str; 4] = ["output", "stopReason", "usage", "metrics"];

fn message(found: &[Member<'_>], report: &mut ImportReport) -> Option<LogMessage> {
    let role = text(found, "role")?;
    let content = get(found, "content").filter(|raw| value_type(raw) == ValueType::Array)?;
    let mut parts = parts(&elements(content), report);
    if parts.is_empty() {
        parts.push(LogPart::default().with("data_form", FORM.to_owned()));
    }
    if parts[0].role.is_some() && role != "user" {
        parts[0].set("data_role", quoted(&role));
    }
    parts[0].keep_rest("data_item", found, &["role", "content"]);
    report.message(Fate::Understood, role_name(&role));
    Some(LogMessage::new(Some(role.into_owned()), parts))
}

/// The blocks of a content or of the system prompt.
fn parts(raw: &[&str], report: &mut ImportReport) -> Vec<LogPart> {
    let mut parts: Vec<LogPart> = Vec::new();
    for raw in raw {
        let found = members(raw);
        let read = match &found[..] {
            [(name, inner)] => match &**name {
                "cachePoint" => marked(&mut parts, inner),
                "toolResult" => result(inner, &mut parts, report),
                name => part(name, inner, report).map(|part| parts.push(part)),
            },
            _ => None,
        };
        if read.is_none() {
            parts.push(verbatim(raw, report));
        }
    }
    for part in &mut parts {
        part.set("data_form", FORM.to_owned());
    }
    parts
}

/// Notes a cache point on the last block; `None` if there is none, or it has one.
fn marked(parts: &mut [LogPart], inner: &str) -> Option<()> {
    let last = parts.last_mut();
    let last = last.filter(|last| last.field("data_cache_point").is_none())?;
    last.set("data_cache_point", canonical(inner));
    Some(())
}

fn verbatim(raw: &str, report: &mut ImportReport) -> LogPart {
    let found = members(raw);
    let name = found.first().map_or("", |(name, _)| &**name);
    let kind = match name {
        "toolUse" => Some("call"),
        "toolResult" => Some("result"),
        "reasoningContent" => Some("thinking"),
        _ => None,
    };
    unknown(name, kind, raw, report)
}

/// A part other than a result; `None` if it is of another form than usual.
fn part(name: &str, inner: &str, report: &mut ImportReport) -> Option<LogPart> {
    let found = members(inner);
    let part = match name {
        "text" => is_text(inner).then(|| LogPart::new("text", canonical(inner))),
        "toolUse" => {
            let string = |name| get_string(&found, name);
            let input = json_text(get(&found, "input")?);
            let mut part = LogPart::call(input, Some(string("toolUseId")?), Some(string("name")?));
            part.keep_rest("data_call", &found, &["toolUseId", "name", "input"]);
            Some(part)
        }
        "reasoningContent" => {
            let [(name, inner)] = &found[..] else {
                return None;
            };
            let found = members(inner);
            let text = get_string(&found, "text").filter(|_| name == "reasoningText")?;
            let mut part = LogPart::new("thinking", canonical(text));
            part.keep_rest("data_part", &found, &["text"]);
            Some(part)
        }
        "image" if !found.is_empty() => Some(LogPart::new("image", canonical(inner))),
        "document" if !found.is_empty() => Some(LogPart::new("document", canonical(inner))),
        _ => None,
    }?;
    report.part(Fate::Understood, part.kind.unwrap_or_default());
    Some(part)
}

fn is_text(raw: &str) -> bool {
    value_type(raw) == ValueType::String
}

/// Appends the blocks of a result; `None` if it is of another form than usual.
fn result(inner: &str, parts: &mut Vec<LogPart>, report: &mut ImportReport) -> Option<()> {
    let found = members(inner);
    let id = get_string(&found, "toolUseId")?;
    let content = get(&found, "content");
    // Two results of one call would look the same.
    let own = canonical(id);
    let of_call =
        |part: &LogPart| part.field("data_call_id") == Some(&own) && part.role == Some("tool");
    if parts.last().is_some_and(of_call)
        || !matches!(content.map(value_type), None | Some(ValueType::Array))
    {
        return None;
    }
    let first = parts.len();
    for raw in elements(content.unwrap_or_default()) {
        let found = members(raw);
        let read = match &found[..] {
            [(name, inner)] => match &**name {
                "text" if is_text(inner) => Some(LogPart::new("result", canonical(inner))),
                "json" => {
                    let part = LogPart::new("result", json_text(inner));
                    Some(part.with("data_part_type", quoted("json")))
                }
                name @ ("image" | "document") => part(name, inner, report),
                _ => None,
            },
            _ => None,
        };
        let counted = read
            .as_ref()
            .is_some_and(|part| part.kind == Some("result"));
        if counted {
            report.part(Fate::Understood, "result");
        }
        parts.push(read.unwrap_or_else(|| verbatim(raw, report)));
    }
    if parts.len() == first {
        report.part(Fate::Understood, "result");
        let mut part = LogPart {
            kind: Some("result"),
            ..LogPart::default()
        };
        if content.is_none() {
            part.set("data_shape", quoted("absent"));
        }
        parts.push(part);
    }
    let is_error = get(&found, "status").map(|status| (status == "\"error\"").to_string());
    for part in &mut parts[first..] {
        part.role = Some("tool");
        part.set_some("data_call_id", Some(id));
        part.set_some("data_is_error", is_error.as_deref());
    }
    parts[first].keep_rest("data_call", &found, &["toolUseId", "content"]);
    Some(())
}

fn tools(raw: &[&str], report: &mut ImportReport) -> Vec<LogTool> {
    let mut tools: Vec<LogTool> = Vec::new();
    for raw in raw {
        let found = members(raw);
        let cache = get(&found, "cachePoint").filter(|_| found.len() == 1);
        let is_marked =
            |tool: &LogTool| tool.data.iter().any(|(name, _)| name == "data_cache_point");
        if let (Some(cache), Some(last)) = (cache, tools.last_mut().filter(|last| !is_marked(last)))
        {
            last.data
                .push(("data_cache_point".into(), canonical(cache)));
            continue;
        }
        report.part(Fate::Understood, "tool");
        let inner = found
            .first()
            .map(|(_, inner)| members(inner))
            .unwrap_or_default();
        let name = text(&inner, "name").map(|name| name.into_owned());
        let name = name.or_else(|| found.first().map(|(name, _)| name.to_string()));
        let kept = is_kept(raw, Provider::Bedrock);
        tools.push(LogTool {
            name: name.unwrap_or_default(),
            definition: (*raw).to_owned(),
            data: LogTool::of_form((!kept).then_some(Provider::Bedrock)),
        });
    }
    // As they come back from a tree.
    tools.iter_mut().for_each(|tool| tool.data.sort_unstable());
    tools
}
