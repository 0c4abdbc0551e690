//! OTLP/JSON of OpenTelemetry: traces and logs with GenAI or OpenInference attributes.
//!
//! A span of a chat is a request, and its outputs are the reply. Spans of one conversation (or,
//! without one, of one trace) are a session, in the order in which they began; other agents of it
//! are sessions `NAME/AGENT`. What a span says of its messages is read by [`super::otel_messages`].
//! `{"spans": […]}` is a list of spans. A span without messages, whose instrumentation did not record them, is counted as skipped.
//! This file must not know the form of messages.

use super::calls::CallSessions;
use super::otel_call::{SpanAttributes, any_value, attributes, text_of};
use super::otel_messages::{SpanContent, chat, is_chat, is_message_event};
use super::prelude::*;
use super::requests::Interner;
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) fn sniff(record: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    if is(found, "resourceSpans", ValueType::Array) || is(found, "resourceLogs", ValueType::Array) {
        return Sniff::Yes;
    }
    let of_model = ["\"gen_ai.", "\"llm."];
    let is_of_model = || of_model.iter().any(|mark| record.raw.contains(mark));
    let spans = items(found, "spans").into_iter();
    ((is_span(found) || spans.take(1).any(|raw| is_span(&members(raw)))) && is_of_model()).into()
}

/// Whether a record is a span as exporters print it.
fn is_span(found: &[Member<'_>]) -> bool {
    let has_id = ["traceId", "trace_id"]
        .iter()
        .any(|name| get(found, name).is_some());
    (has_id || is(found, "context", ValueType::Object)) && get(found, "attributes").is_some()
}

/// A span, or what log records say of one that is not in the log.
#[derive(Default)]
struct OtelSpan {
    trace: String,
    id: String,
    parent: String,
    start: Option<i64>,
    end: Option<i64>,
    given: SpanContent,
    /// What the status says of a failure, as JSON.
    error: Option<String>,
    /// What the event of an exception says.
    exception: Option<SpanAttributes>,
}

/// A log record: when it was written, the name of the event, its body.
type Logged = (Option<i64>, String, String);

/// Collects spans and log records, which come in any order.
#[derive(Default)]
pub(super) struct Otel {
    spans: Vec<OtelSpan>,
    logged: BTreeMap<(String, String), Vec<Logged>>,
}

impl LogReader for Otel {
    fn record(&mut self, record: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        let found = members(record.raw);
        let mut known = false;
        for resource in items(&found, "resourceSpans") {
            known = true;
            for span in in_scopes(
                resource,
                ["scopeSpans", "instrumentationLibrarySpans"],
                "spans",
            ) {
                self.span(&members(span), out);
            }
        }
        for resource in items(&found, "resourceLogs") {
            known = true;
            let scopes = ["scopeLogs", "instrumentationLibraryLogs"];
            for log in in_scopes(resource, scopes, "logRecords") {
                self.log(&members(log), out);
            }
        }
        for span in items(&found, "spans") {
            known = true;
            self.span(&members(span), out);
        }
        if !known && get(&found, "attributes").is_some() {
            known = true;
            self.span(&found, out);
        }
        if !known {
            out.report.unknown_line("without spans or log records");
        }
    }

    fn finish(&mut self, _: &dyn Records, out: &mut Output) {
        let mut spans = std::mem::take(&mut self.spans);
        self.join_logs(&mut spans);
        // Spans are exported when they end.
        spans.sort_by_key(|span| span.start);
        let by_id = spans.iter();
        let by_id = by_id.map(|span| ((&*span.trace, &*span.id), span));
        let above = Above(by_id.collect());
        let mut sessions = CallSessions::default();
        let mut seen = Interner::default();
        for span in &spans {
            if !is_chat(&span.given) {
                let kind = span.given.operation();
                let why = format!("span {kind} (not a call of a model)");
                out.report.line(Fate::Skipped, &why);
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

fn in_scopes<'a>(resource: &'a str, scopes: [&str; 2], name: &str) -> Vec<&'a str> {
    let found = members(resource);
    let scopes = scopes.iter().flat_map(|scopes| items(&found, scopes));
    scopes
        .flat_map(|scope| items(&members(scope), name))
        .collect()
}

fn nanos(found: &[Member<'_>], names: &[&str]) -> Option<i64> {
    let raw = names.iter().find_map(|name| get(found, name))?;
    match string(raw).and_then(|text| text.parse::<i64>().ok()) {
        Some(nanos) => Some(nanos),
        None => time(raw),
    }
    .filter(|nanos| *nanos > 0)
}

impl Otel {
    fn span(&mut self, found: &[Member<'_>], out: &mut Output) {
        let context = inner(found, "context");
        let id = |name: &str, inner: &str| {
            let own = text(found, name).or_else(|| text(found, inner));
            let found = own.or_else(|| text(&context, inner));
            found.unwrap_or_default().into_owned()
        };
        let parent = text(found, "parentSpanId").or_else(|| text(found, "parent_id"));
        let mut span = OtelSpan {
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
            exception: None,
        };
        for event in items(found, "events") {
            let event = members(event);
            let name = text(&event, "name").unwrap_or_default();
            let given = attributes(get(&event, "attributes").unwrap_or_default());
            if name == "exception" {
                // Of several, the last one ended the call.
                span.exception = Some(given);
            } else if is_message_event(&name) {
                span.given.add(&name, object(given));
            } else {
                out.report.skipped_member(&format!("event {name}"));
            }
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
            out.report.line(Fate::Skipped, "log record of another kind");
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
    fn join_logs(&mut self, spans: &mut Vec<OtelSpan>) {
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
                    spans.push(OtelSpan {
                        trace: id.0,
                        id: id.1,
                        start: logged.first().and_then(|(at, ..)| *at),
                        end: logged.last().and_then(|(at, ..)| *at),
                        ..OtelSpan::default()
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
struct Above<'a>(HashMap<(&'a str, &'a str), &'a OtelSpan>);

impl Above<'_> {
    /// The conversation of a span, or else its trace, and its agent.
    fn agent_of(&self, span: &OtelSpan) -> (String, Option<String>) {
        let conversation = self.find(span, &["gen_ai.conversation.id", "session.id"]);
        let names = ["gen_ai.agent.name", "gen_ai.agent.id", "agent.name"];
        let conversation = conversation.unwrap_or_else(|| span.trace.clone());
        (conversation, self.find(span, &names))
    }

    /// The first of the attributes that the span or the nearest span above it has.
    fn find(&self, span: &OtelSpan, names: &[&str]) -> Option<String> {
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

fn call_of(span: &OtelSpan, mut request: LogRequest) -> (LogRequest, Option<String>) {
    let call = &mut request.call;
    call.time = span.start;
    if let (Some(start), Some(end)) = (span.start, span.end.filter(|_| !request.reply.is_empty())) {
        let latency = end.saturating_sub(start) / 1_000_000;
        call.usage.push(("latency_ms".into(), latency.to_string()));
    }
    let place = [
        ("span_id", quoted(&span.id)),
        ("trace_id", quoted(&span.trace)),
    ];
    call.meta.push(("trace".into(), object(place)));
    for message in &mut request.reply {
        message.time = span.end.or(span.start);
    }
    let Some(error) = error_of(span) else {
        return (request, None);
    };
    if request.reply.is_empty() {
        return (request, Some(failed(&error)));
    }
    request.call.usage.push(("error".into(), error));
    (request, None)
}

/// How a call failed: what the status says, and what the exception says beside it.
fn error_of(span: &OtelSpan) -> Option<String> {
    if span.error.is_none() && span.exception.is_none() {
        return None;
    }
    let of_exception = |name: &str| {
        let found = span.exception.as_ref()?.get(&format!("exception.{name}"));
        found.map(|raw| canonical(raw))
    };
    let said = span.error.clone().filter(|raw| raw != "null");
    let kind = span.given.attributes.get("error.type");
    let kind = kind.map(|raw| canonical(raw));
    let null = || "null".to_owned();
    let own = [
        ("message", said.or_else(|| of_exception("message"))),
        ("type", kind.or_else(|| of_exception("type"))),
    ];
    let mut error: Vec<(&str, String)> = own
        .map(|(name, raw)| (name, raw.unwrap_or_else(null)))
        .into();
    if let Some(all) = &span.exception {
        error.push(("exception", canonical(&object(all))));
    }
    error.sort_unstable();
    Some(object(error))
}
