//! Logs of inspect_ai: `{"eval": …, "samples": [{"id": …, "events": [{"event": "model", …}]}]}`, or
//! one sample; of a `.eval` file ([`mod@crate::logs::eval`]) the log without samples, then each sample.
//!
//! A model event is a request, exactly as inspect_ai gave it to the provider's client, and its
//! output; the reply came when the event was completed, or its `output.time` after its `timestamp`. The requests of a
//! sample that have messages in common are a session: `ID_epoch_N`, and `ID_epoch_N/2`, … for other conversations, such
//! as those of a grader. One that failed and was made again is an attempt. Newer logs have the messages of a sample once,
//! and events have ranges of them. A sample without model events is a transcript of its `messages`. Texts that the sample
//! keeps as attachments are put back in.
//!
//! | field | on | value |
//! |---|---|---|
//! | `data_call_id`, `data_call_name` | calls, results | `id` and `function` |
//! | `data_is_error` | results | true where the result has an `error` |
//! | `data_record` | first block of a message | other members, such as `source` and `metadata` |

use super::calls::CallsSession;
use super::prelude::*;
use super::requests::{Interner, converse, first_choice, nearest, tools};
use super::transcript::{call, content, keep, message, record, result, time_of, unread};
use crate::logs::log::RequestOrigin;
use std::collections::HashMap;
use std::sync::Arc;

pub(super) fn sniff(_record: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let is_object = |name| is(found, name, ValueType::Object);
    let is_list = |name| is(found, name, ValueType::Array);
    let is_log = is_object("eval") && (is_list("samples") || is_object("plan"));
    let is_sample = get(found, "epoch").is_some() && is_list("messages");
    (is_log || is_sample).into()
}

/// Keeps what the log says of all its samples, as `meta.log`.
#[derive(Default)]
pub(super) struct InspectAi(Vec<LogField>);

impl LogReader for InspectAi {
    fn record(&mut self, record_of: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        let found = members(record_of.raw);
        if get(&found, "eval").is_none() {
            sample(record_of.raw, record_of.location(), &self.0, out);
            return;
        }
        let about = record(&found, &["samples"], &mut out.report).into_iter();
        self.0 = about.map(|(_, raw)| ("log".into(), raw)).collect();
        let samples = items(&found, "samples");
        for (at, raw) in samples.into_iter().enumerate() {
            let location = format!("{}/samples/{at}", record_of.location());
            sample(raw, location, &self.0, out);
        }
    }
}

struct Sample {
    name: String,
    location: String,
    meta: Vec<LogField>,
    /// Its sessions, with the messages of the last request of each.
    open: Vec<(CallsSession, Vec<Arc<LogMessage>>)>,
    read: Interner,
}

const OF_EVENT: [&str; 11] = words![
    event input input_refs tools tool_choice config model output error timestamp completed
];

const KNOWN: [&str; 5] = words![messages events attachments message_pool events_data];

fn sample(raw: &str, location: String, log: &[LogField], out: &mut Output) {
    let whole = attached(raw);
    let found = members(whole.as_deref().unwrap_or(raw));
    out.report.line(Fate::Understood, "sample");
    let mut meta = record(&found, &KNOWN, &mut out.report);
    meta.extend(log.iter().cloned());
    let mut pool = items(&found, "message_pool");
    pool.extend(items(&inner(&found, "events_data"), "messages"));
    let id = get(&found, "id").unwrap_or("null");
    let id = string(id).unwrap_or(id.into());
    let epoch = get(&found, "epoch").unwrap_or("1");
    let mut sample = Sample {
        name: format!("{id}_epoch_{epoch}"),
        location,
        meta,
        open: Vec::new(),
        read: Interner::default(),
    };
    for raw in items(&found, "events") {
        let event = members(raw);
        match text(&event, "event").as_deref() {
            Some("model") if is(&event, "input", ValueType::Array) => {
                out.report.line(Fate::Understood, "model");
                sample.call(&event, &pool, out);
            }
            other => {
                let kind = format!("event {}", other.unwrap_or("unknown"));
                out.report.line(Fate::Skipped, &kind);
            }
        }
    }
    for (calls, _) in &mut sample.open {
        calls.end(out);
    }
    if sample.open.is_empty() {
        let session = sample.begin(RequestOrigin::Transcript, out);
        let messages = items(&found, "messages");
        let messages = messages.into_iter();
        let messages = messages
            .map(|raw| read_message(raw, &mut out.report))
            .collect();
        converse(messages, false, session, out);
    }
}

/// A sample with its attachments in the place of their names; `None` if it has none. Linear.
fn attached(raw: &str) -> Option<String> {
    const MARK: &str = "\"attachment://";
    let found = members(raw);
    let attachments: HashMap<_, _> = members(get(&found, "attachments")?).into_iter().collect();
    let mut whole = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find(MARK) {
        let after = &rest[at + MARK.len()..];
        let end = after.find('"').unwrap_or(after.len());
        whole.push_str(&rest[..at]);
        match attachments.get(&after[..end]) {
            // A string, not text with quotation marks in it.
            Some(value) if !rest[..at].ends_with('\\') => {
                whole.push_str(value);
                rest = after.get(end + 1..).unwrap_or_default();
            }
            _ => {
                whole.push_str(MARK);
                rest = after;
            }
        }
    }
    whole.push_str(rest);
    Some(whole)
}

impl Sample {
    fn begin(&mut self, origin: RequestOrigin, out: &mut Output) -> SessionId {
        let name = match self.open.len() {
            0 => self.name.clone(),
            n => format!("{}/{}", self.name, n + 1),
        };
        out.session(About {
            location: self.location.clone(),
            name: Some(name),
            origin,
            meta: self.meta.clone(),
            ..About::default()
        })
    }

    fn call(&mut self, event: &[Member<'_>], pool: &[&str], out: &mut Output) {
        let mut messages = Vec::new();
        let ranges = items(event, "input_refs").into_iter();
        let pooled = ranges.flat_map(|range| range_of(range, pool).unwrap_or_default());
        for raw in items(event, "input").into_iter().chain(pooled.copied()) {
            messages.push(self.read.get(raw, || read_message(raw, &mut out.report)));
        }
        count_unread(event, &OF_EVENT, "event model.", &mut out.report);
        let at = self.calls_of(&messages, out);
        let output = inner(event, "output");
        let choice = first_choice(&items(&output, "choices"), &mut out.report);
        let error = get(event, "error").filter(|raw| *raw != "null");
        let reply = get(&choice, "message").filter(|_| error.is_none());
        let mut call = used(&output, &choice, &mut out.report);
        call.time = time_of(event, "timestamp");
        let took = seconds_of(&output).map(|seconds| (seconds * 1e9) as i64);
        let came = call
            .time
            .zip(took)
            .map(|(at, took)| at.saturating_add(took));
        let reply = reply.map(|raw| LogMessage {
            reply: true,
            time: time_of(event, "completed").or(came).or(call.time),
            ..read_message(raw, &mut out.report)
        });
        let attempt = error.map(|error| failed(&canonical(error)));
        let request = LogRequest {
            messages,
            tools: tools(get(event, "tools"), &mut out.report),
            parameters: Some(parameters(event)),
            reply: reply.into_iter().collect(),
            call,
        };
        self.open[at].0.tell(request, attempt, out);
    }

    /// The conversation whose last request has most messages of this one.
    fn calls_of(&mut self, messages: &[Arc<LogMessage>], out: &mut Output) -> usize {
        let at = nearest(self.open.iter().map(|(_, had)| &**had), messages);
        let at = at.unwrap_or_else(|| {
            let session = self.begin(RequestOrigin::Request, out);
            self.open.push((CallsSession::new(session), Vec::new()));
            self.open.len() - 1
        });
        self.open[at].1 = messages.to_vec();
        at
    }
}

/// The messages of a pool in a range, which is a list of its start and its end.
fn range_of<'p, 'a>(range: &str, pool: &'p [&'a str]) -> Option<&'p [&'a str]> {
    let ends = elements(range);
    let [from, to] = ends[..] else {
        return None;
    };
    pool.get(from.parse().ok()?..to.parse().ok()?)
}

fn parameters(event: &[Member<'_>]) -> String {
    let config = inner(event, "config").into_iter();
    let is_other = |name: &str| !matches!(name, "model" | "tool_choice" | "messages" | "tools");
    let config = config.filter(|(name, _)| is_other(name));
    let own = ["model", "tool_choice"].into_iter();
    let own = own.filter_map(|name| Some((name.into(), get(event, name)?)));
    let all: Vec<Member<'_>> = own
        .chain(config)
        .filter(|(_, raw)| *raw != "null")
        .collect();
    object_without(&all, &[]).unwrap_or_else(|| "{}".to_owned())
}

/// What of an output is read, and `completion`, the text of its first choice.
const OF_OUTPUT: [&str; 6] = words![model choices usage time error completion];

/// How long a call took, in seconds.
fn seconds_of(output: &[Member<'_>]) -> Option<f64> {
    let seconds = get(output, "time")?.parse::<f64>().ok()?;
    (0.0..1e9).contains(&seconds).then_some(seconds)
}

/// What an output says that a call used. Whether the input has its cached part, its total says.
fn used(output: &[Member<'_>], choice: &[Member<'_>], report: &mut ImportReport) -> LogCall {
    count_unread(output, &OF_OUTPUT, "event model.output.", report);
    let latency = seconds_of(output).map(|seconds| ((seconds * 1000.0).round() as u64).to_string());
    let said = [
        ("model", get(output, "model")),
        ("stop_reason", get(choice, "stop_reason")),
        ("latency_ms", latency.as_deref()),
        ("error", get(output, "error")),
    ];
    let said = said.map(|(name, raw)| (name, raw.filter(|raw| *raw != "null")));
    LogCall::used(get(output, "usage"), &said)
}

fn read_message(raw: &str, report: &mut ImportReport) -> LogMessage {
    let found = members(raw);
    let Some(role) = text(&found, "role") else {
        return unread("without a role", raw, report);
    };
    let body = get(&found, "content");
    if role == "tool" {
        let id = get_string(&found, "tool_call_id");
        let mut made = result(id, get_string(&found, "function"), body, report);
        if get(&found, "error").is_some_and(|raw| raw != "null") {
            made.set_failed();
        }
        let known = ["role", "content", "tool_calls", "tool_call_id", "function"];
        keep(&mut made, &found, &known, report);
        return made;
    }
    let mut parts = content(body, "text", report);
    for raw in items(&found, "tool_calls") {
        parts.push(read_call(raw, report));
    }
    let mut made = message(&role, parts, report);
    keep(
        &mut made,
        &found,
        &["role", "content", "tool_calls"],
        report,
    );
    made
}

fn read_call(raw: &str, report: &mut ImportReport) -> LogPart {
    let found = members(raw);
    let (Some(id), Some(name), Some(arguments)) = (
        get_string(&found, "id"),
        get_string(&found, "function"),
        get(&found, "arguments"),
    ) else {
        report.part(Fate::Verbatim, "call");
        return LogPart::verbatim("call", Some("call"), raw);
    };
    let error = get(&found, "parse_error").filter(|raw| *raw != "null");
    let mut part = call(Some(id), Some(name), arguments, report);
    let known = ["id", "function", "arguments", "type", "parse_error"];
    let is_kept = |(name, raw): &&Member<'_>| !known.contains(&&**name) && *raw != "null";
    let rest: Vec<Member<'_>> = found.iter().filter(is_kept).cloned().collect();
    for (name, _) in &rest {
        report.member(name);
    }
    part.keep_rest("data_call", &rest, &[]);
    part.with_some("data_parse_error", error)
}
