//! What a span says of a chat: messages, tools, parameters and usage, in any of four forms.
//!
//! | form | input | reply |
//! |---|---|---|
//! | GenAI attributes | `gen_ai.system_instructions`, `gen_ai.input.messages` | `gen_ai.output.messages` |
//! | GenAI events, version 1.36 and older | `gen_ai.system.message`, `gen_ai.user.message`, … | `gen_ai.choice` |
//! | OpenInference | `llm.input_messages.N.message.*` | `llm.output_messages.N.message.*` |
//! | OpenLLMetry, older | `gen_ai.prompt.N.*` | `gen_ai.completion.N.*` |
//!
//! Messages become those of Chat Completions ([`super::openai`]). This file must not know spans.

use super::openai;
use super::otel_call::{
    SpanAttributes, json_of, numbered, parameters, record, text_of, tools_of, used,
};
use super::prelude::*;
use super::requests::{Api, Interner, first_choice};
use super::transcript::{PartType, as_text, call, message as message_of, typed, unknown};
use crate::logs::json::{braced, push_member, value as json_in};

#[derive(Default)]
pub(super) struct SpanContent {
    pub(super) attributes: SpanAttributes,
    pub(super) events: Vec<(String, String)>,
}

const DETAILS: &str = "gen_ai.client.inference.operation.details";

pub(super) fn is_message_event(name: &str) -> bool {
    matches!(
        name,
        DETAILS | "gen_ai.choice" | "gen_ai.content.prompt" | "gen_ai.content.completion"
    ) || role_of(name).is_some()
}

fn role_of(event: &str) -> Option<&str> {
    let role = event.strip_prefix("gen_ai.")?.strip_suffix(".message")?;
    matches!(role, "system" | "user" | "assistant" | "tool").then_some(role)
}

impl SpanContent {
    pub(super) fn add(&mut self, name: &str, body: String) {
        if name == DETAILS {
            for (name, value) in members(&body) {
                let own = self.attributes.entry(name.into_owned());
                own.or_insert(value.to_owned());
            }
        } else if is_message_event(name) {
            // Some emitters have the body as a string of JSON.
            let found = members(&body);
            let inner = get(&found, "gen_ai.event.content").and_then(string);
            let inner = inner.and_then(|text| json_in(&text).map(str::to_owned));
            self.events.push((name.to_owned(), inner.unwrap_or(body)));
        }
    }

    pub(super) fn operation(&self) -> String {
        let names = [
            "gen_ai.operation.name",
            "openinference.span.kind",
            "llm.request.type",
            "traceloop.span.kind",
        ];
        let found = names
            .iter()
            .find_map(|name| text_of(&self.attributes, name));
        found.unwrap_or_else(|| "of another kind".to_owned())
    }
}

/// Whether a span is a call of a model for messages.
pub(super) fn is_chat(given: &SpanContent) -> bool {
    let of = |name| text_of(&given.attributes, name);
    let has_messages = |name: &String| {
        let numbered = ["llm.input_messages.", "gen_ai.prompt."];
        name == "gen_ai.input.messages" || numbered.iter().any(|start| name.starts_with(start))
    };
    match (of("gen_ai.operation.name"), of("openinference.span.kind")) {
        (Some(operation), _) => {
            matches!(&*operation, "chat" | "generate_content" | "text_completion")
        }
        (None, Some(kind)) => kind == "LLM",
        // Older emitters do not name the operation.
        (None, None) => !given.events.is_empty() || given.attributes.keys().any(has_messages),
    }
}

/// The request that a span is, with its reply; `None` if it has no messages. `seen` are the messages read so far.
pub(super) fn chat(
    given: &SpanContent,
    seen: &mut Interner,
    report: &mut ImportReport,
) -> Option<LogRequest> {
    let attributes = &given.attributes;
    let mut said = SpanMessages::default();
    said.of_attributes(attributes);
    if said.is_empty() {
        said.of_events(&given.events);
    }
    if said.is_empty() {
        let of = |one, other| {
            [one, other]
                .into_iter()
                .flat_map(|name| flat(attributes, name))
        };
        said.input = of("llm.input_messages.", "gen_ai.prompt.").collect();
        said.output = of("llm.output_messages.", "gen_ai.completion.").collect();
    }
    if said.is_empty() {
        return None;
    }
    let mut messages = Vec::new();
    for raw in &said.input {
        for raw in split(raw) {
            messages.push(seen.get(&raw, || read(&raw, report)));
        }
    }
    let output: Vec<&str> = said.output.iter().map(|raw| &**raw).collect();
    let choice = first_choice(&output, report);
    let stop = get(&choice, "finish_reason").map(canonical);
    let reply = output.first().map(|raw| LogMessage {
        reply: true,
        ..read(raw, report)
    });
    let record = record(attributes, said.input.iter().chain(&said.output), report);
    Some(LogRequest {
        messages,
        tools: tools_of(attributes, report),
        parameters: Some(parameters(attributes)),
        reply: reply.into_iter().collect(),
        call: LogCall {
            time: None,
            usage: used(attributes, stop, report),
            meta: record
                .map(|rest| ("record".into(), rest))
                .into_iter()
                .collect(),
        },
    })
}

#[derive(Default)]
struct SpanMessages {
    input: Vec<String>,
    output: Vec<String>,
}

impl SpanMessages {
    fn is_empty(&self) -> bool {
        self.input.is_empty() && self.output.is_empty()
    }

    fn of_attributes(&mut self, attributes: &SpanAttributes) {
        let list = |name| {
            let raw = json_of(attributes, name).unwrap_or_default();
            let found: Vec<String> = elements(&raw).into_iter().map(str::to_owned).collect();
            found
        };
        let input = list("gen_ai.input.messages");
        self.output = list("gen_ai.output.messages");
        // Instructions are parts, or a text.
        let system = json_of(attributes, "gen_ai.system_instructions");
        let text = attributes.get("gen_ai.system_instructions");
        let parts = match (system, text) {
            (Some(raw), _) if raw.starts_with('[') && raw != "[]" => Some(raw),
            (_, Some(raw)) if raw.starts_with('"') => {
                Some(format!("[{{\"type\":\"text\",\"content\":{raw}}}]"))
            }
            _ => None,
        };
        if let Some(parts) = parts {
            self.input
                .push(format!("{{\"role\":\"system\",\"parts\":{parts}}}"));
        }
        self.input.extend(input);
    }

    fn of_events(&mut self, events: &[(String, String)]) {
        for (name, body) in events {
            let found = members(body);
            if let Some(role) = role_of(name) {
                self.input.push(chat_message(&found, role));
                continue;
            }
            let of_list = |member: &str| -> Vec<String> {
                let text = get(&found, member).and_then(string).unwrap_or_default();
                elements(&text).into_iter().map(str::to_owned).collect()
            };
            match &**name {
                "gen_ai.choice" => self.output.push(choice(&found)),
                "gen_ai.content.prompt" => self.input.extend(of_list("gen_ai.prompt")),
                _ => self.output.extend(of_list("gen_ai.completion")),
            }
        }
    }
}

/// A message whose parts are results, one each: Chat Completions has a message for every result.
fn split(raw: &str) -> Vec<String> {
    let found = members(raw);
    let parts = items(&found, "parts");
    let is_result = |raw: &str| {
        let kind = members(raw);
        text(&kind, "type").is_some_and(|kind| kind == "tool_call_response")
    };
    if parts.len() < 2 || !parts.iter().any(|part| is_result(part)) {
        return vec![raw.to_owned()];
    }
    // Neighbours that are not results stay together.
    let mut groups: Vec<Vec<&str>> = Vec::new();
    let mut goes_on = false;
    for part in parts {
        match (is_result(part), goes_on, groups.last_mut()) {
            (false, true, Some(group)) => group.push(part),
            _ => groups.push(vec![part]),
        }
        goes_on = !is_result(part);
    }
    let role = get(&found, "role").unwrap_or("\"tool\"");
    let message = |group: Vec<&str>| {
        let parts = group.join(",");
        format!("{{\"role\":{role},\"parts\":[{parts}]}}")
    };
    groups.into_iter().map(message).collect()
}

fn read(raw: &str, report: &mut ImportReport) -> LogMessage {
    let found = members(raw);
    if get(&found, "parts").map(value_type) != Some(ValueType::Array) {
        let known = object_without(&found, &["finish_reason", "index"]);
        return openai::Chat.message(known.as_deref().unwrap_or(raw), report);
    }
    let role = text(&found, "role").unwrap_or_else(|| "user".into());
    let mut parts = Vec::new();
    let mut is_result = false;
    for raw in items(&found, "parts") {
        let (part, result) = part(raw, report);
        is_result |= result;
        parts.push(part);
    }
    let role = if is_result { "tool" } else { &role };
    let mut message = message_of(role, parts, report);
    message.system = matches!(role, "system" | "developer");
    let known = ["role", "parts", "finish_reason"];
    message.first().keep_rest("data_other", &found, &known);
    message
}

const TYPES: [PartType<'_>; 2] = [
    ("text", "content", "text"),
    ("reasoning", "content", "thinking"),
];

/// Reads a part. Also says whether it is the result of a call.
fn part(raw: &str, report: &mut ImportReport) -> (LogPart, bool) {
    let found = members(raw);
    let kind = text(&found, "type").unwrap_or_default();
    let otherwise = |name: &str| match name {
        "reasoning" => Some("thinking"),
        "server_tool_call" => Some("call"),
        "server_tool_call_response" => Some("result"),
        _ => None,
    };
    let part = match &*kind {
        "tool_call" => {
            let arguments = get(&found, "arguments").filter(|raw| *raw != "null");
            let (id, name) = (get_string(&found, "id"), get_string(&found, "name"));
            let mut part = call(id, name, arguments.unwrap_or("\"\""), report);
            part.keep_rest("data_part", &found, &["type", "id", "name", "arguments"]);
            part
        }
        "tool_call_response" => return (result(&found, report), true),
        "blob" | "uri" => match image(&found) {
            Some(url) => {
                report.part(Fate::Understood, "image");
                let known = ["type", "modality", "mime_type", "content", "uri"];
                let mut part = LogPart::new("image", canonical(&url));
                part.keep_rest("data_part", &found, &known);
                part
            }
            None => unknown(&kind, None, raw, report),
        },
        _ => typed(raw, &found, &TYPES, otherwise, report),
    };
    (part, false)
}

/// A result: its text, or the JSON text of any other value. Schema and registry name it differently.
fn result(found: &[Member<'_>], report: &mut ImportReport) -> LogPart {
    report.part(Fate::Understood, "result");
    let value = get(found, "response").or_else(|| get(found, "result"));
    let mut part = LogPart::new("result", as_text(value.unwrap_or("\"\"")))
        .with_some("data_call_id", get_string(found, "id"))
        .with_some("data_call_name", get_string(found, "name"));
    let known = ["type", "id", "name", "response", "result"];
    part.keep_rest("data_call", found, &known);
    part
}

fn image(found: &[Member<'_>]) -> Option<String> {
    if text(found, "modality").as_deref() != Some("image") {
        return None;
    }
    let url = match (text(found, "uri"), text(found, "content")) {
        (Some(uri), _) => uri.into_owned(),
        (None, Some(data)) => format!("data:{};base64,{data}", text(found, "mime_type")?),
        (None, None) => return None,
    };
    Some(object([("url", quoted(&url))]))
}

/// The message of a choice: below `message`, or right there.
fn choice(found: &[Member<'_>]) -> String {
    let inner = get(found, "message");
    let body = match inner.map(value_type) {
        Some(ValueType::Object) => members(inner.unwrap_or_default()),
        Some(ValueType::String) => vec![("content".into(), inner.unwrap_or_default())],
        _ => found.to_vec(),
    };
    let mut body: Vec<Member<'_>> = body
        .into_iter()
        .filter(|(name, _)| !matches!(&**name, "index" | "finish_reason"))
        .collect();
    for name in ["tool_calls", "finish_reason"] {
        let missing = get(&body, name).is_none();
        body.extend(
            get(found, name)
                .filter(|_| missing)
                .map(|raw| (name.into(), raw)),
        );
    }
    chat_message(&body, "assistant")
}

/// A message in the form of Chat Completions, of an event's members.
fn chat_message(found: &[Member<'_>], role: &str) -> String {
    let mut out = String::new();
    let own = text(found, "role").unwrap_or(role.into());
    push_member("role", &quoted(&own), &mut out);
    for (name, value) in found {
        match &**name {
            "role" | "gen_ai.system" | "gen_ai.provider.name" | "event.name" => {}
            "id" if own == "tool" => push_member("tool_call_id", value, &mut out),
            "tool_calls" => {
                // A list, or a string of it.
                let text = string(value);
                let inner = text.as_deref().and_then(json_in);
                let calls = elements(inner.unwrap_or(value)).into_iter().map(chat_call);
                push_member(name, &list(calls), &mut out);
            }
            _ => push_member(name, value, &mut out),
        }
    }
    braced(&out)
}

fn chat_call(raw: &str) -> String {
    let found = members(raw);
    let function = inner(&found, "function").into_iter().map(|(name, value)| {
        let is_text = name == "arguments";
        (
            name,
            if is_text {
                as_text(value)
            } else {
                value.to_owned()
            },
        )
    });
    let function = object(function);
    let kind = get(&found, "type").is_none();
    let kind = kind.then_some(("type".into(), "\"function\""));
    let own = found.iter().map(|(name, value)| match &**name {
        "function" => (name.clone(), &*function),
        _ => (name.clone(), *value),
    });
    object(kind.into_iter().chain(own))
}

/// The messages of OpenInference and of OpenLLMetry, in the form of Chat Completions.
fn flat<'a>(attributes: &'a SpanAttributes, prefix: &str) -> Vec<String> {
    let all = attributes.iter().map(|(name, raw)| (&**name, &**raw));
    let by_number = numbered(all, prefix);
    let own =
        |(name, raw): &(&'a str, &'a str)| (name.strip_prefix("message.").unwrap_or(name), *raw);
    let message = |of: &Vec<_>| flat_message(&of.iter().map(own).collect::<Vec<_>>());
    by_number.values().map(message).collect()
}

fn flat_message(found: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let of = |name: &str| found.iter().find(|(known, _)| *known == name);
    let role = of("role").map_or("\"user\"", |(_, raw)| raw);
    push_member("role", role, &mut out);
    let all = |prefix| numbered(found.iter().copied(), prefix);
    let contents = all("contents.");
    match of("content") {
        Some((_, raw)) => {
            // OpenLLMetry has a list of parts as JSON in a string.
            let text = string(raw).filter(|text| text.starts_with("[{\"type\""));
            let parts = text.as_deref().and_then(json_in);
            push_member("content", parts.unwrap_or(raw), &mut out);
        }
        None if contents.is_empty() => push_member("content", "null", &mut out),
        None => {
            let contents = contents.values().map(|of| flat_content(of));
            push_member("content", &list(contents), &mut out);
        }
    }
    let calls = all("tool_calls.");
    if !calls.is_empty() {
        let calls = calls.values().map(|of| flat_call(of));
        push_member("tool_calls", &list(calls), &mut out);
    }
    for (name, value) in found {
        let read = matches!(*name, "role" | "content")
            || name.starts_with("contents.")
            || name.starts_with("tool_calls.");
        if !read {
            push_member(name, value, &mut out);
        }
    }
    braced(&out)
}

fn flat_content(found: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in found {
        match name.strip_prefix("message_content.").unwrap_or(name) {
            "image.image.url" => {
                push_member("image_url", &object([("url", value)]), &mut out);
            }
            "type" if *value == "\"image\"" => push_member("type", "\"image_url\"", &mut out),
            name => push_member(name, value, &mut out),
        }
    }
    braced(&out)
}

fn flat_call(found: &[(&str, &str)]) -> String {
    let (mut out, mut function) = (String::new(), String::new());
    for (name, value) in found {
        let name = name.strip_prefix("tool_call.").unwrap_or(name);
        match (name.strip_prefix("function."), name) {
            (Some("arguments"), _) | (None, "arguments") => {
                push_member("arguments", &as_text(value), &mut function);
            }
            (Some(name), _) | (None, name @ "name") => push_member(name, value, &mut function),
            (None, name) => push_member(name, value, &mut out),
        }
    }
    push_member("function", &braced(&function), &mut out);
    format!("{{\"type\":\"function\"{out}}}")
}
