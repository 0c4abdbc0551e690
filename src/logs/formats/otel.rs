//! OTLP/JSON of OpenTelemetry: traces and logs with GenAI or OpenInference attributes.
//!
//! A span of a chat is a request, and its outputs are the reply. Spans of one conversation (or,
//! without one, of one trace) are a session, in the order in which they began; other agents of it
//! are sessions `NAME/AGENT`. What a span says of its messages is read by [`super::otel_messages`].
//! A span without messages, whose instrumentation did not record them, is counted as skipped.
//! This file must not know the form of messages.
//!
//! OTLP/JSON has a value as an object that names its type, and attributes as a list; exporters for
//! people write both as plain JSON.

use super::calls::CallSessions;
use super::fields::{inner, is, items, text, time};
use super::otel_messages::{SpanChat, SpanContent, chat, is_chat, is_message_event, numbered};
use super::reader::{Reader, Record, Records, Sniff};
use super::requests::{Interner, tools};
use crate::json::{Member, ValueType, elements, get, members, string};
use crate::logs::json::{canonical, list, object, quoted, value as json_in};
use crate::logs::log::{Call, Field, Request, Tool, failed, object_without};
use crate::logs::output::Output;
use crate::logs::report::{Fate, Report};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

/// An export of traces or logs, or a span with attributes of one of the two conventions.
pub(super) fn sniff(record: &Record<'_>, found: &[Member<'_>]) -> Sniff {
    if is(found, "resourceSpans", ValueType::Array) || is(found, "resourceLogs", ValueType::Array) {
        return Sniff::Yes;
    }
    let has_id = get(found, "traceId").is_some() || is(found, "context", ValueType::Object);
    let of_model = ["\"gen_ai.", "\"llm."];
    (has_id
        && get(found, "attributes").is_some()
        && of_model.iter().any(|mark| record.raw.contains(mark)))
    .into()
}

/// A span, or what log records say of one that is not in the log.
#[derive(Default)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    start: Option<i64>,
    end: Option<i64>,
    given: SpanContent,
    /// What the status says of a failure, as JSON.
    error: Option<String>,
}

/// A log record: when it was written, the name of the event, its body.
type Logged = (Option<i64>, String, String);

/// Collects spans and log records, which come in any order.
#[derive(Default)]
pub(super) struct Otel {
    spans: Vec<Span>,
    /// What log records say, by trace and span.
    logged: BTreeMap<(String, String), Vec<Logged>>,
}

impl Reader for Otel {
    fn record(&mut self, record: &Record<'_>, _: &dyn Records, out: &mut Output) {
        let found = members(record.raw);
        let mut known = false;
        for resource in items(&found, "resourceSpans") {
            known = true;
            for span in in_scopes(
                resource,
                ["scopeSpans", "instrumentationLibrarySpans"],
                "spans",
            ) {
                self.span(&members(span));
            }
        }
        for resource in items(&found, "resourceLogs") {
            known = true;
            let scopes = ["scopeLogs", "instrumentationLibraryLogs"];
            for log in in_scopes(resource, scopes, "logRecords") {
                self.log(&members(log), out);
            }
        }
        if !known && get(&found, "attributes").is_some() {
            known = true;
            self.span(&found);
        }
        if !known {
            out.report
                .line(Fate::Skipped, "without spans or log records");
        }
    }

    fn finish(&mut self, _: &dyn Records, out: &mut Output) {
        let mut spans = std::mem::take(&mut self.spans);
        self.join_logs(&mut spans);
        // Spans are exported when they end.
        spans.sort_by_key(|span| span.start);
        let above = above(&spans);
        let mut sessions = CallSessions::default();
        let mut seen = Interner::default();
        for span in &spans {
            if !is_chat(&span.given) {
                // Most spans are of other kinds; they say nothing of how well the log is understood.
                let kind = span.given.operation();
                out.report.part(Fate::Skipped, &format!("span {kind}"));
                continue;
            }
            let Some(chat) = chat(&span.given, &mut seen, &mut out.report) else {
                let why = "chat without messages (they were not recorded)";
                out.report.line(Fate::Skipped, why);
                continue;
            };
            out.report.line(Fate::Understood, "chat");
            sessions.call(above.agent_of(span), Vec::new(), call_of(span, chat), out);
        }
        sessions.end(out);
    }
}

/// The spans or log records of a resource.
fn in_scopes<'a>(resource: &'a str, scopes: [&str; 2], name: &str) -> Vec<&'a str> {
    let found = members(resource);
    let scopes = scopes.iter().flat_map(|scopes| items(&found, scopes));
    scopes
        .flat_map(|scope| items(&members(scope), name))
        .collect()
}

/// Nanoseconds, or a time as text.
fn nanos(found: &[Member<'_>], names: &[&str]) -> Option<i64> {
    let raw = names.iter().find_map(|name| get(found, name))?;
    match string(raw).and_then(|text| text.parse::<i64>().ok()) {
        Some(nanos) => Some(nanos),
        None => time(raw),
    }
    .filter(|nanos| *nanos > 0)
}

impl Otel {
    fn span(&mut self, found: &[Member<'_>]) {
        let context = inner(found, "context");
        let id = |name: &str, inner: &str| {
            let found = text(found, name).or_else(|| text(&context, inner));
            found.unwrap_or_default().into_owned()
        };
        let parent = text(found, "parentSpanId").or_else(|| text(found, "parent_id"));
        let mut span = Span {
            trace: id("traceId", "trace_id"),
            id: id("spanId", "span_id"),
            parent: parent.unwrap_or_default().into_owned(),
            start: nanos(found, &["startTimeUnixNano", "start_time"]),
            end: nanos(found, &["endTimeUnixNano", "end_time"]),
            given: SpanContent {
                attributes: attributes(get(found, "attributes").unwrap_or_default()),
                events: Vec::new(),
            },
            error: None,
        };
        for event in items(found, "events") {
            let event = members(event);
            let name = text(&event, "name").unwrap_or_default();
            let body = object(attributes(get(&event, "attributes").unwrap_or_default()));
            span.given.add(&name, body);
        }
        let status = inner(found, "status");
        let code = get(&status, "code").or_else(|| get(&status, "status_code"));
        if matches!(code, Some("2" | "\"STATUS_CODE_ERROR\"" | "\"ERROR\"")) {
            let message = get(&status, "message").or_else(|| get(&status, "description"));
            span.error = Some(message.map_or("null".to_owned(), canonical));
        }
        self.spans.push(span);
    }

    /// Keeps a log record that says something of a message.
    fn log(&mut self, found: &[Member<'_>], out: &mut Output) {
        let of_record = attributes(get(found, "attributes").unwrap_or_default());
        let name = text(found, "eventName").map(|name| name.into_owned());
        let name = name.or_else(|| text_of(&of_record, "event.name"));
        let name = name.unwrap_or_default();
        if !is_message_event(&name) {
            out.report.part(Fate::Skipped, "log record of another kind");
            return;
        }
        let body = get(found, "body").map(any_value).unwrap_or_default();
        let body = if body.starts_with('{') {
            body
        } else {
            object(&of_record)
        };
        let at = nanos(found, &["timeUnixNano", "observedTimeUnixNano"]);
        let id = |name| text(found, name).unwrap_or_default().into_owned();
        let of_span = self.logged.entry((id("traceId"), id("spanId")));
        of_span.or_default().push((at, name, body));
    }

    /// Gives the log records to their spans; those of spans that are not here make one.
    fn join_logs(&mut self, spans: &mut Vec<Span>) {
        let by_id: HashMap<(String, String), usize> = spans
            .iter()
            .enumerate()
            .map(|(at, span)| ((span.trace.clone(), span.id.clone()), at))
            .collect();
        for (id, mut logged) in std::mem::take(&mut self.logged) {
            logged.sort_by_key(|(at, ..)| *at);
            let span = match by_id.get(&id).and_then(|at| spans.get_mut(*at)) {
                Some(span) => span,
                None => {
                    spans.push(Span {
                        trace: id.0,
                        id: id.1,
                        start: logged.first().and_then(|(at, ..)| *at),
                        end: logged.last().and_then(|(at, ..)| *at),
                        ..Span::default()
                    });
                    let last = spans.len() - 1;
                    &mut spans[last]
                }
            };
            for (_, name, body) in logged {
                span.given.add(&name, body);
            }
        }
    }
}

/// What spans above say of each span: its conversation and its agent.
struct Above<'a>(HashMap<(&'a str, &'a str), &'a Span>);

fn above(spans: &[Span]) -> Above<'_> {
    let spans = spans.iter();
    let by_id = spans.map(|span| ((&*span.trace, &*span.id), span));
    Above(by_id.collect())
}

impl Above<'_> {
    /// The conversation of a span, or else its trace, and its agent.
    fn agent_of(&self, span: &Span) -> (String, Option<String>) {
        let conversation = self.find(span, &["gen_ai.conversation.id", "session.id"]);
        let names = ["gen_ai.agent.name", "gen_ai.agent.id", "agent.name"];
        let conversation = conversation.unwrap_or_else(|| span.trace.clone());
        (conversation, self.find(span, &names))
    }

    /// The first of the attributes that the span or the nearest span above it has.
    fn find(&self, span: &Span, names: &[&str]) -> Option<String> {
        let mut seen = HashSet::new();
        let mut at = Some(span);
        while let Some(span) = at.filter(|span| seen.insert(span.id.as_str())) {
            let of_span = |name: &&str| text_of(&span.given.attributes, name);
            if let Some(found) = names.iter().find_map(of_span) {
                return Some(found);
            }
            let parent = (span.trace.as_str(), span.parent.as_str());
            at = self.0.get(&parent).copied();
        }
        None
    }
}

/// The call that a span of a chat is, with its failure.
fn call_of(span: &Span, chat: SpanChat) -> (Request, Option<String>) {
    let mut call = Call {
        time: span.start,
        usage: chat.usage,
        meta: Vec::new(),
    };
    if let (Some(start), Some(end)) = (span.start, span.end.filter(|_| !chat.reply.is_empty())) {
        let latency = end.saturating_sub(start) / 1_000_000;
        call.usage.push(("latency_ms".into(), latency.to_string()));
    }
    call.meta.push(("trace".into(), place_of(span)));
    call.meta
        .extend(chat.record.map(|rest| ("record".into(), rest)));
    let mut reply = chat.reply;
    for message in &mut reply {
        message.time = span.end.or(span.start);
    }
    let error = span.error.as_ref().filter(|_| reply.is_empty());
    let attempt = error.map(|message| attempt(message, &span.given.attributes));
    let request = Request {
        messages: chat.messages,
        tools: chat.tools,
        parameters: Some(chat.parameters),
        reply,
        call,
    };
    (request, attempt)
}

/// A failed call, for `meta.attempts`.
fn attempt(message: &str, attributes: &Attributes) -> String {
    let kind = attributes.get("error.type").map_or("null", String::as_str);
    failed(&object([("message", message), ("type", &canonical(kind))]))
}

/// The ids of a span.
fn place_of(span: &Span) -> String {
    object([
        ("span_id", quoted(&span.id)),
        ("trace_id", quoted(&span.trace)),
    ])
}

/// The tool definitions of a request.
pub(super) fn tools_of(attributes: &Attributes, report: &mut Report) -> Vec<Tool> {
    if let Some(raw) = json_of(attributes, "gen_ai.tool.definitions") {
        return tools(Some(&raw), report);
    }
    let all = attributes.iter().map(|(name, raw)| (&**name, &**raw));
    let mut definitions = Vec::new();
    for found in numbered(all, "llm.tools.").values() {
        let schema = found.iter().find(|(name, _)| *name == "tool.json_schema");
        definitions.extend(schema.map(|(_, raw)| match string(raw) {
            // One that is not JSON stays a text.
            Some(text) => json_in(&text).unwrap_or(raw).to_owned(),
            None => (*raw).to_owned(),
        }));
    }
    tools(Some(&list(definitions)), report)
}

/// The parameters of the request, under the names that Chat Completions has for them.
pub(super) fn parameters(attributes: &Attributes) -> String {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    if let Some(raw) = json_of(attributes, "llm.invocation_parameters") {
        for (name, value) in members(&raw) {
            found.insert(name.into_owned(), value.to_owned());
        }
    }
    if let Some(model) = attributes.get("llm.model_name") {
        found.entry("model".to_owned()).or_insert(model.clone());
    }
    let provider = ["gen_ai.provider.name", "gen_ai.system"];
    let provider = provider.iter().find_map(|name| text_of(attributes, name));
    let is_anthropic = provider.is_some_and(|name| name.contains("anthropic"));
    for (name, value) in attributes {
        let Some(name) = parameter(name) else {
            continue;
        };
        let name = match name {
            "stop_sequences" if !is_anthropic => "stop",
            "choice.count" => "n",
            name => name,
        };
        found.insert(name.to_owned(), value.clone());
    }
    // They are in the tree.
    found.remove("messages");
    found.remove("tools");
    canonical(&object(&found))
}

/// The name of a parameter, if an attribute is one.
fn parameter(name: &str) -> Option<&str> {
    let prefixes = [
        "gen_ai.request.",
        "gen_ai.openai.request.",
        "openai.request.",
    ];
    prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))
}

/// Attributes that say what a call used, and their names in the tree.
const USED: [(&str, &str); 20] = [
    ("input_tokens", "gen_ai.usage.input_tokens"),
    ("input_tokens", "gen_ai.usage.prompt_tokens"),
    ("input_tokens", "llm.token_count.prompt"),
    ("output_tokens", "gen_ai.usage.output_tokens"),
    ("output_tokens", "gen_ai.usage.completion_tokens"),
    ("output_tokens", "llm.token_count.completion"),
    ("cached_tokens", "gen_ai.usage.cache_read.input_tokens"),
    ("cached_tokens", "llm.token_count.prompt_details.cache_read"),
    (
        "cache_write_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
    ),
    (
        "cache_write_tokens",
        "llm.token_count.prompt_details.cache_write",
    ),
    ("reasoning_tokens", "gen_ai.usage.reasoning.output_tokens"),
    (
        "reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
    ),
    ("cost_usd", "llm.cost.total"),
    ("model", "gen_ai.response.model"),
    ("response_id", "gen_ai.response.id"),
    ("", "gen_ai.response.finish_reasons"),
    ("", "llm.token_count.total"),
    ("", "gen_ai.usage.total_tokens"),
    ("", "llm.finish_reason"),
    ("", "llm.model_name"),
];

/// What the call used.
pub(super) fn used(attributes: &Attributes, stop: Option<String>) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    for (field, name) in USED {
        let known = fields.iter().any(|(known, _)| known == field);
        if let Some(raw) = attributes.get(name)
            && !field.is_empty()
            && !known
        {
            fields.push((field.into(), canonical(raw)));
        }
    }
    let reasons = attributes.get("gen_ai.response.finish_reasons");
    let first = reasons.and_then(|raw| elements(raw).first().map(|raw| canonical(raw)));
    let reason = attributes
        .get("llm.finish_reason")
        .map(|raw| canonical(raw));
    let stop = first.or(stop).or(reason);
    fields.extend(stop.map(|stop| ("stop_reason".into(), stop)));
    fields
}

/// What else the span says. What repeats messages is counted as skipped.
pub(super) fn record(attributes: &Attributes, report: &mut Report) -> Option<String> {
    let mut rest: Vec<Member<'_>> = Vec::new();
    for (name, value) in attributes {
        let read = parameter(name).is_some()
            || USED.iter().any(|(_, known)| known == name)
            || matches!(
                &**name,
                "gen_ai.system_instructions"
                    | "gen_ai.input.messages"
                    | "gen_ai.output.messages"
                    | "gen_ai.tool.definitions"
                    | "gen_ai.conversation.id"
                    | "llm.invocation_parameters"
            )
            || ["llm.input_messages.", "llm.output_messages.", "llm.tools."]
                .iter()
                .any(|prefix| name.starts_with(prefix));
        if read {
            continue;
        }
        if matches!(&**name, "input.value" | "output.value") {
            report.skipped_member(&format!("{name} (repeats messages)"));
            continue;
        }
        report.record_member(name);
        rest.push((name.into(), value));
    }
    object_without(&rest, &[])
}

/// Attributes by name, values as JSON. The first of a name counts.
pub(super) type Attributes = BTreeMap<String, String>;

/// Attributes: a list of keys with values, or an object.
pub(super) fn attributes(raw: &str) -> Attributes {
    let mut found = Attributes::new();
    for (name, value) in members(raw) {
        found.entry(name.into_owned()).or_insert(value.to_owned());
    }
    for raw in elements(raw) {
        let pair = members(raw);
        let name = text(&pair, "key");
        if let (Some(name), Some(value)) = (name, get(&pair, "value")) {
            let value = any_value(value);
            found.entry(name.into_owned()).or_insert(value);
        }
    }
    found
}

/// The JSON that a typed value is.
pub(super) fn any_value(raw: &str) -> String {
    let found = members(raw);
    let Some((kind, value)) = found.first() else {
        return "null".to_owned();
    };
    match &**kind {
        // Integers of 64 bits are strings. Any other text stays one.
        "intValue" => match string(value) {
            Some(text) if text.parse::<i64>().is_ok_and(|n| n.to_string() == *text) => {
                text.into_owned()
            }
            _ => (*value).to_owned(),
        },
        "stringValue" | "boolValue" | "doubleValue" | "bytesValue" => (*value).to_owned(),
        "arrayValue" => list(items(&members(value), "values").into_iter().map(any_value)),
        "kvlistValue" => {
            let mut names = HashSet::new();
            // Their order is kept: it can be that of the arguments of a call. The first of a name counts.
            let pairs = items(&members(value), "values")
                .into_iter()
                .filter_map(|raw| {
                    let pair = members(raw);
                    let name = text(&pair, "key")?.into_owned();
                    let value = get(&pair, "value").map_or("null".to_owned(), any_value);
                    names.insert(name.clone()).then_some((name, value))
                });
            object(pairs)
        }
        _ => raw.to_owned(),
    }
}

/// The text of an attribute that is a string.
pub(super) fn text_of(attributes: &Attributes, name: &str) -> Option<String> {
    let raw = attributes.get(name)?;
    string(raw).map(Cow::into_owned)
}

/// An attribute that is JSON, or a string of JSON.
pub(super) fn json_of(attributes: &Attributes, name: &str) -> Option<String> {
    let raw = attributes.get(name)?;
    Some(match string(raw) {
        Some(text) => json_in(&text)?.to_owned(),
        None => raw.clone(),
    })
}
