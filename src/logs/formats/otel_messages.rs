//! What a span says of a chat: messages, tools, parameters and usage, in any of three forms.
//!
//! | form | input | reply |
//! |---|---|---|
//! | GenAI attributes | `gen_ai.system_instructions`, `gen_ai.input.messages` | `gen_ai.output.messages` |
//! | GenAI events, version 1.36 and older | `gen_ai.system.message`, `gen_ai.user.message`, … | `gen_ai.choice` |
//! | OpenInference | `llm.input_messages.N.message.*` | `llm.output_messages.N.message.*` |
//!
//! Messages become those of Chat Completions ([`super::openai`]). This file must not know spans.

use super::fields::{get_string, text};
use super::openai;
use super::otel_call::{parameters, record, tools_of, used};
use super::otel_shapes::{chat_message, choice, flat};
use super::otel_values::{Attributes, as_text, json_of, text_of};
use super::requests::Api;
use super::transcript::{call, message as message_of};
use crate::json::{Member, ValueType, elements, get, members, string, value_type};
use crate::logs::json::{canonical, quoted};
use crate::logs::log::{Field, Message, Part, Tool, object_without};
use crate::logs::report::{Fate, Report};
use std::collections::HashMap;
use std::rc::Rc;

/// What was recorded of a span.
#[derive(Default)]
pub(super) struct SpanContent {
    pub(super) attributes: Attributes,
    /// Events that have messages: name, body.
    pub(super) events: Vec<(String, String)>,
}

/// A request and its reply.
pub(super) struct SpanChat {
    pub(super) messages: Vec<Rc<Message>>,
    pub(super) tools: Vec<Tool>,
    pub(super) parameters: String,
    pub(super) reply: Vec<Message>,
    pub(super) usage: Vec<Field>,
    /// Attributes that nothing here reads, as an object.
    pub(super) record: Option<String>,
}

/// The event that has all messages of a call in its attributes.
const DETAILS: &str = "gen_ai.client.inference.operation.details";

/// Whether an event has messages.
pub(super) fn is_message_event(name: &str) -> bool {
    matches!(
        name,
        DETAILS | "gen_ai.choice" | "gen_ai.content.prompt" | "gen_ai.content.completion"
    ) || role_of(name).is_some()
}

/// The role of the message that an event has.
fn role_of(event: &str) -> Option<&str> {
    let role = event.strip_prefix("gen_ai.")?.strip_suffix(".message")?;
    matches!(role, "system" | "user" | "assistant" | "tool").then_some(role)
}

impl SpanContent {
    /// Adds an event.
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
            let inner = inner.and_then(|text| super::transcript::json_in(&text).map(str::to_owned));
            self.events.push((name.to_owned(), inner.unwrap_or(body)));
        }
    }

    /// What the span is of, for people.
    pub(super) fn operation(&self) -> String {
        let names = ["gen_ai.operation.name", "openinference.span.kind"];
        let found = names
            .iter()
            .find_map(|name| text_of(&self.attributes, name));
        found.unwrap_or_else(|| "of another kind".to_owned())
    }
}

/// Whether a span is a call of a model for messages.
pub(super) fn is_chat(given: &SpanContent) -> bool {
    let of = |name| text_of(&given.attributes, name);
    match (of("gen_ai.operation.name"), of("openinference.span.kind")) {
        (Some(operation), _) => {
            matches!(&*operation, "chat" | "generate_content" | "text_completion")
        }
        (None, Some(kind)) => kind == "LLM",
        // Older emitters do not name the operation.
        (None, None) => {
            !given.events.is_empty()
                || given.attributes.keys().any(|name| {
                    name == "gen_ai.input.messages" || name.starts_with("llm.input_messages.")
                })
        }
    }
}

/// What a span says; `None` if it has no messages. `seen` are the messages read so far.
pub(super) fn chat(
    given: &SpanContent,
    seen: &mut HashMap<String, Rc<Message>>,
    report: &mut Report,
) -> Option<SpanChat> {
    let attributes = &given.attributes;
    let mut said = SpanMessages::default();
    said.of_attributes(attributes);
    if said.is_empty() {
        said.of_events(&given.events);
    }
    if said.is_empty() {
        said.input = flat(attributes, "llm.input_messages.");
        said.output = flat(attributes, "llm.output_messages.");
    }
    if said.is_empty() {
        return None;
    }
    let mut messages = Vec::new();
    for raw in &said.input {
        for raw in split(raw) {
            let message = match seen.get(&raw) {
                Some(message) => Rc::clone(message),
                None => {
                    let message = Rc::new(read(&raw, report));
                    seen.insert(raw, Rc::clone(&message));
                    message
                }
            };
            messages.push(message);
        }
    }
    for _ in said.output.iter().skip(1) {
        report.part(Fate::Skipped, "another choice");
    }
    let mut reply = Vec::new();
    let mut stop = None;
    if let Some(raw) = said.output.first() {
        stop = get(&members(raw), "finish_reason").map(canonical);
        let mut message = read(raw, report);
        message.reply = true;
        reply.push(message);
    }
    Some(SpanChat {
        messages,
        tools: tools_of(attributes, report),
        parameters: parameters(attributes),
        reply,
        usage: used(attributes, stop),
        record: record(attributes, report),
    })
}

/// Messages as JSON, before they are read.
#[derive(Default)]
struct SpanMessages {
    input: Vec<String>,
    output: Vec<String>,
}

impl SpanMessages {
    fn is_empty(&self) -> bool {
        self.input.is_empty() && self.output.is_empty()
    }

    fn of_attributes(&mut self, attributes: &Attributes) {
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
    let parts = elements(get(&found, "parts").unwrap_or_default());
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

/// Reads a message, with parts or in the form of Chat Completions.
fn read(raw: &str, report: &mut Report) -> Message {
    let found = members(raw);
    if get(&found, "parts").map(value_type) != Some(ValueType::Array) {
        let known = object_without(&found, &["finish_reason", "index"]);
        return openai::Chat.message(known.as_deref().unwrap_or(raw), report);
    }
    let role = text(&found, "role").unwrap_or_else(|| "user".into());
    let mut parts = Vec::new();
    let mut is_result = false;
    for raw in elements(get(&found, "parts").unwrap_or_default()) {
        let (part, result) = part(raw, report);
        is_result |= result;
        parts.push(part);
    }
    let role = if is_result { "tool" } else { &role };
    let mut message = message_of(role, parts, report);
    message.system = matches!(role, "system" | "developer");
    let known = ["role", "parts", "finish_reason"];
    if message.parts.is_empty() {
        message.parts.push(Part::default());
    }
    message.parts[0].keep_rest("data_other", &found, &known);
    message
}

/// Reads a part. Also says whether it is the result of a call.
fn part(raw: &str, report: &mut Report) -> (Part, bool) {
    let found = members(raw);
    let kind = text(&found, "type").unwrap_or_default();
    let (mut part, known): (Part, &[&str]) = match &*kind {
        "text" if get_string(&found, "content").is_some() => {
            report.part(Fate::Understood, "text");
            let content = get_string(&found, "content").unwrap_or_default();
            (Part::new("text", canonical(content)), &["type", "content"])
        }
        "reasoning" if get_string(&found, "content").is_some() => {
            report.part(Fate::Understood, "thinking");
            let content = get_string(&found, "content").unwrap_or_default();
            let part = Part::new("thinking", canonical(content));
            (part, &["type", "content"])
        }
        "tool_call" => {
            let arguments = get(&found, "arguments").filter(|raw| *raw != "null");
            let id = get_string(&found, "id");
            let name = get_string(&found, "name");
            let part = call(id, name, arguments.unwrap_or("\"\""), report);
            (part, &["type", "id", "name", "arguments"])
        }
        "tool_call_response" => return (result(&found, report), true),
        "blob" | "uri" => match image(&found) {
            Some(url) => {
                report.part(Fate::Understood, "image");
                let known = ["type", "modality", "mime_type", "content", "uri"];
                let mut part = Part::new("image", canonical(&url));
                part.keep_rest("data_part", &found, &known);
                return (part, false);
            }
            None => return (verbatim(&kind, raw, report), false),
        },
        _ => return (verbatim(&kind, raw, report), false),
    };
    part.keep_rest("data_part", &found, known);
    (part, false)
}

fn verbatim(kind: &str, raw: &str, report: &mut Report) -> Part {
    let block = match kind {
        "reasoning" => Some("thinking"),
        "server_tool_call" => Some("call"),
        "server_tool_call_response" => Some("result"),
        _ => None,
    };
    let name = match kind {
        "" => "without a type",
        name => name,
    };
    report.part(Fate::Verbatim, name);
    Part::verbatim("part", block, raw)
}

/// A result: its text, or the JSON text of any other value. Schema and registry name it differently.
fn result(found: &[Member<'_>], report: &mut Report) -> Part {
    report.part(Fate::Understood, "result");
    let value = get(found, "response").or_else(|| get(found, "result"));
    let mut part = Part::new("result", as_text(value.unwrap_or("\"\"")));
    if let Some(id) = get_string(found, "id") {
        part.set("data_call_id", canonical(id));
    }
    if let Some(name) = get_string(found, "name") {
        part.set("data_call_name", canonical(name));
    }
    let known = ["type", "id", "name", "response", "result"];
    part.keep_rest("data_call", found, &known);
    part
}

/// An image as Chat Completions has it.
fn image(found: &[Member<'_>]) -> Option<String> {
    if text(found, "modality").as_deref() != Some("image") {
        return None;
    }
    let url = match (text(found, "uri"), text(found, "content")) {
        (Some(uri), _) => uri.into_owned(),
        (None, Some(data)) => format!("data:{};base64,{data}", text(found, "mime_type")?),
        (None, None) => return None,
    };
    Some(format!("{{\"url\":{}}}", quoted(&url)))
}
