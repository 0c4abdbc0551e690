//! Calls of ctxdiff, one a line, as `logs::ctrace` reads them from a file.
//!
//! A call is a request: the blocks that were sent, in order. Which parts were one message is not in the
//! file, so neighbouring parts of a role are one. Texts of parts are JSON with sorted members. Replies are
//! in the requests after them, if at all.
//!
//! | field | on | value |
//! |---|---|---|
//! | `data_label` | any block | the label that the program gave it |

use super::anthropic::Messages;
use super::calls::CallSessions;
use super::openai::Chat;
use super::prelude::*;
use super::requests::{Api, Interner, tools};
use super::responses::Responses;
use crate::logs::json::{push_member, value as json_in};
use crate::render::Provider;

pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    (text(found, "ctrace").as_deref() == Some("call")).into()
}

/// Reads calls. Those of a run are a session, those of its other agents `RUN/AGENT`.
#[derive(Default)]
pub(super) struct Ctrace {
    sessions: CallSessions,
    seen: Interner,
}

impl LogReader for Ctrace {
    fn record(&mut self, record: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        let found = members(record.raw);
        out.report.line(Fate::Understood, "call");
        let blocks = items(&found, "blocks");
        let blocks: Vec<Vec<Member<'_>>> = blocks.into_iter().map(members).collect();
        let is_tool = |block: &&Vec<Member<'_>>| kind(block) == "tool_schema";
        let definitions = blocks.iter().filter(is_tool);
        let definitions: Vec<String> = definitions
            .filter_map(|block| owned(block, "text"))
            .collect();
        let rest: Vec<&Vec<Member<'_>>> = blocks.iter().filter(|block| !is_tool(block)).collect();
        let form = form(&found, &rest);
        let mut messages = Vec::new();
        for (raw, labels) in written(form, &rest) {
            let read = || read(form, &raw, &labels, &mut out.report);
            let key = format!("{form:?} {labels:?} {raw}");
            messages.push(self.seen.get(&key, read));
        }
        let latency = [("latency_ms", get(&found, "latency_ms"))];
        let mut call = LogCall::used(get(&found, "usage"), &latency);
        let known = words![ctrace run params usage latency_ms error blocks];
        let said = object_without(&found, &known);
        call.meta.extend(said.map(|said| ("record".into(), said)));
        let parameters = get(&found, "params").filter(|raw| raw.starts_with('{'));
        let tools = tools(Some(&list(definitions)), &mut out.report);
        let request = LogRequest {
            messages,
            tools,
            parameters: Some(parameters.map_or("{}".to_owned(), canonical)),
            reply: Vec::new(),
            call,
        };
        let error = get_string(&found, "error").map(canonical);
        let attempt = error.map(|error| failed(&error));
        let run = get(&found, "run").unwrap_or("{}");
        let id = owned(&members(run), "id").unwrap_or_default();
        let meta = vec![("run".into(), canonical(run))];
        self.sessions
            .call((id, owned(&found, "agent")), meta, (request, attempt), out);
    }

    fn finish(&mut self, _: &dyn Records, out: &mut Output) {
        self.sessions.end(out);
    }
}

fn owned(found: &[Member<'_>], name: &str) -> Option<String> {
    text(found, name).map(|text| text.into_owned())
}

fn kind<'a>(block: &[Member<'a>]) -> std::borrow::Cow<'a, str> {
    text(block, "kind").unwrap_or_default()
}

fn form(found: &[Member<'_>], blocks: &[&Vec<Member<'_>>]) -> Provider {
    if text(found, "provider").is_some_and(|name| name.contains("anthropic")) {
        return Provider::Anthropic;
    }
    let is_item = |block: &&Vec<Member<'_>>| {
        let text = owned(block, "text").unwrap_or_default();
        let part = members(&text);
        self::text(&part, "type")
            .is_some_and(|kind| matches!(&*kind, "function_call" | "function_call_output"))
    };
    if blocks.iter().any(is_item) {
        Provider::OpenAiResponses
    } else {
        Provider::OpenAi
    }
}

#[derive(Default)]
struct Open {
    role: String,
    content: Option<String>,
    parts: Vec<String>,
    calls: Vec<String>,
    labels: Vec<String>,
}

/// The messages of blocks in the form of an API, each with the labels of its blocks, which may be empty.
fn written(form: Provider, blocks: &[&Vec<Member<'_>>]) -> Vec<(String, Vec<String>)> {
    let mut messages = Vec::new();
    let mut open: Option<Open> = None;
    for block in blocks {
        let role = owned(block, "role").unwrap_or_default();
        let raw = get(block, "text").unwrap_or("\"\"");
        let body = string(raw).unwrap_or_default();
        let is_tagged = text(block, "label_source").as_deref() == Some("tagged");
        let label = owned(block, "label")
            .filter(|_| is_tagged)
            .unwrap_or_default();
        let part = json_in(&body).filter(|body| body.starts_with('{'));
        let is_part = kind(block) != "message";
        if let (Provider::OpenAiResponses, true, Some(item)) = (form, is_part, part)
            && text(&members(item), "type").is_some_and(|kind| kind.starts_with("function_call"))
        {
            messages.extend(open.take().map(Open::write));
            messages.push((item.to_owned(), vec![label]));
            continue;
        }
        let is_call = form == Provider::OpenAi
            && role == "assistant"
            && part.is_some_and(|part| get(&members(part), "function").is_some());
        let goes_on = open.as_ref().is_some_and(|open| {
            open.role == role
                && is_part
                && (is_call || (open.content.is_none() && open.calls.is_empty()))
        });
        if !goes_on {
            messages.extend(open.take().map(Open::write));
        }
        let message = open.get_or_insert_with(|| Open {
            role: role.clone(),
            ..Open::default()
        });
        message.labels.push(label);
        match (is_part, is_call, part) {
            (false, ..) => message.content = Some(raw.to_owned()),
            (true, true, Some(call)) => message.calls.push(call.to_owned()),
            (true, _, Some(part)) if kind(block) == "content_part" => {
                message.parts.push(part.to_owned());
            }
            // The file describes an image in words, and does not have its bytes.
            _ if kind(block) == "image" => {
                let part = format!("{{\"type\":\"image_in_words\",\"text\":{raw}}}");
                message.parts.push(part);
            }
            _ => message.parts.push(text_part(form, &role, raw)),
        }
    }
    messages.extend(open.map(Open::write));
    messages
}

fn text_part(form: Provider, role: &str, raw: &str) -> String {
    let kind = match (form, role) {
        (Provider::OpenAiResponses, "assistant") => "output_text",
        (Provider::OpenAiResponses, _) => "input_text",
        _ => "text",
    };
    format!("{{\"type\":\"{kind}\",\"text\":{raw}}}")
}

impl Open {
    fn write(self) -> (String, Vec<String>) {
        let mut out = format!("{{\"role\":{}", quoted(&self.role));
        let content = match (self.content, &self.parts[..]) {
            (Some(content), _) => content,
            (None, []) => "null".to_owned(),
            (None, parts) => list(parts),
        };
        push_member("content", &content, &mut out);
        if !self.calls.is_empty() {
            push_member("tool_calls", &list(&self.calls), &mut out);
        }
        out.push('}');
        (out, self.labels)
    }
}

fn read(form: Provider, raw: &str, labels: &[String], report: &mut ImportReport) -> LogMessage {
    let mut message = match form {
        Provider::Anthropic => Messages.message(raw, report),
        Provider::OpenAiResponses => Responses.message(raw, report),
        _ => Chat.message(raw, report),
    };
    message.system = message.role.as_deref() == Some("system");
    for (part, label) in message.parts.iter_mut().zip(labels) {
        if !label.is_empty() {
            part.set("data_label", quoted(label));
        }
    }
    message
}
