//! OpenHands: lists of events, `{"id": …, "source": …, "action" | "observation": …}`.
//!
//! An event of the agent is a reply: its thought is text, the action is a call. An observation
//! answers the action whose id is its `cause`. Calls that one response of the model made are one
//! reply, whose results follow it. A `condensation` is a cycle in which the model is sent a summary
//! in place of the events that it forgets. Changes of the agent's state are not sent to the model
//! and are skipped.
//!
//! | field | on | value |
//! |---|---|---|
//! | `data_call_id` | calls, results | the id of the model's call, or else that of the event |
//! | `data_record` | first block of a message | members of the event that have no field |
//!
//! Lists of events are whole logs, or `history` or `trajectory` of a record.

use super::prelude::*;
use super::requests::tools;
use super::transcript::{call, content, keep, message, model, record, result, time_of};
use std::collections::{HashMap, HashSet};

pub(super) fn sniff(_record: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    (is_event(found) || list_of(found).is_some()).into()
}

fn is_event(found: &[Member<'_>]) -> bool {
    let is_text = |name| get_string(found, name).is_some();
    is_text("source") && (is_text("action") || is_text("observation"))
}

/// The member of a record that is a list of events, and the events. Old logs have pairs of them.
fn list_of<'a>(found: &[Member<'a>]) -> Option<(&'static str, Vec<&'a str>)> {
    ["history", "trajectory"].into_iter().find_map(|name| {
        let mut events = Vec::new();
        for raw in elements(get(found, name)?) {
            match value_type(raw) {
                ValueType::Array => events.extend(elements(raw)),
                _ => events.push(raw),
            }
        }
        is_event(&members(events.first()?)).then_some((name, events))
    })
}

#[derive(Default)]
pub(super) struct OpenHands {
    run: Option<OpenHandsRun>,
}

impl LogReader for OpenHands {
    fn record(&mut self, record_of: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        let found = members(record_of.raw);
        if let Some((name, events)) = list_of(&found) {
            out.report.line(Fate::Understood, "run");
            let meta = record(&found, &[name], &mut out.report);
            let mut run = OpenHandsRun::new(record_of.location(), meta, out);
            for event in events {
                run.event(event, out);
            }
            run.flush(out);
            return;
        }
        let begin = || OpenHandsRun::new(record_of.list.to_owned(), Vec::new(), out);
        let run = self.run.get_or_insert_with(begin);
        run.event(record_of.raw, out);
    }

    fn finish(&mut self, _: &dyn Records, out: &mut Output) {
        if let Some(run) = &mut self.run {
            run.flush(out);
        }
    }
}

struct OpenHandsRun {
    session: SessionId,
    /// What the model is sent now, with the ids of the events.
    sent: Vec<(Vec<i64>, LogMessage)>,
    /// Id and name, as JSON, of the calls by the id of their event.
    calls: HashMap<i64, (String, String)>,
    /// A reply of which more calls may follow.
    pending: Option<PendingReply>,
}

/// A reply of several calls, which the log has as an event each.
struct PendingReply {
    response: String,
    missing: u64,
    ids: Vec<i64>,
    message: LogMessage,
    call: LogCall,
    held: Vec<(Vec<i64>, LogMessage)>,
}

/// Events that are about the agent and not sent to the model. A `recall` action repeats a message.
const STATES: [&str; 8] = words![
    agent_state_changed change_agent_state condensation_request loop_recovery null pause recall
    resume
];

const KNOWN: [&str; 11] = words![
    id timestamp source action args observation content cause tool_call_metadata
    success llm_metrics
];

impl OpenHandsRun {
    fn new(location: String, meta: Vec<LogField>, out: &mut Output) -> Self {
        let session = out.session(About {
            location,
            meta,
            ..About::default()
        });
        Self {
            session,
            sent: Vec::new(),
            calls: HashMap::new(),
            pending: None,
        }
    }

    fn event(&mut self, raw: &str, out: &mut Output) {
        let found = members(raw);
        let id: Vec<i64> = get(&found, "id")
            .and_then(|raw| raw.parse().ok())
            .into_iter()
            .collect();
        let made = if let Some(action) = text(&found, "action") {
            self.action(&action, &found, &id, out)
        } else if let Some(observation) = text(&found, "observation") {
            self.observation(&observation, &found, out)
        } else {
            out.report.line(Fate::Verbatim, "unknown event");
            Some(LogMessage::new(
                None,
                vec![LogPart::verbatim("message", None, raw)],
            ))
        };
        if let Some(mut message) = made {
            message.time = time_of(&found, "timestamp");
            self.message(id, message, out);
        }
    }

    /// A message that is not a reply of several calls.
    fn message(&mut self, id: Vec<i64>, message: LogMessage, out: &mut Output) {
        if let Some(pending) = &mut self.pending {
            if !message.reply {
                pending.held.push((id, message));
                return;
            }
            self.flush(out);
        }
        self.say(id, message, LogCall::default(), out);
    }

    fn say(&mut self, id: Vec<i64>, message: LogMessage, call: LogCall, out: &mut Output) {
        self.sent.push((id, message.clone()));
        out.event(self.session, Event::said(message, call));
    }

    fn flush(&mut self, out: &mut Output) {
        if let Some(pending) = self.pending.take() {
            self.say(pending.ids, pending.message, pending.call, out);
            for (id, message) in pending.held {
                self.say(id, message, LogCall::default(), out);
            }
        }
    }

    /// Reads an action. Returns the message that it is, unless it is part of a reply of several.
    fn action(
        &mut self,
        action: &str,
        found: &[Member<'_>],
        id: &[i64],
        out: &mut Output,
    ) -> Option<LogMessage> {
        let args = inner(found, "args");
        let source = text(found, "source").unwrap_or_default();
        if STATES.contains(&action) {
            out.report.line(Fate::Skipped, action);
            return None;
        }
        if action == "condensation" {
            self.condense(found, &args, id, out);
            return None;
        }
        out.report.line(Fate::Understood, "action");
        if action != "system" && action != "message" && source == "agent" {
            self.call(action, found, &args, id, out);
            return None;
        }
        let role = match (action, &*source) {
            ("system", _) => "system",
            (_, "agent") => "assistant",
            _ => "user",
        };
        let report = &mut out.report;
        let mut known = vec!["content"];
        let mut parts = if matches!(action, "system" | "message") {
            content(get(&args, "content"), "text", report)
        } else {
            // What a person had the agent run.
            let arguments = get(found, "args").unwrap_or("{}");
            vec![call(None, Some(&quoted(action)), arguments, report)]
        };
        for url in items(&args, "image_urls") {
            out.report.part(Fate::Understood, "image");
            known.push("image_urls");
            parts.push(LogPart::new(
                "image",
                canonical(&format!("{{\"url\":{url}}}")),
            ));
        }
        if action == "system" {
            let tools = tools(get(&args, "tools"), &mut out.report);
            known.extend((!tools.is_empty()).then_some("tools"));
            out.event(self.session, Event::Tools(tools));
        }
        let mut message = message(role, parts, &mut out.report);
        let rest = rest(found, &args, &known);
        keep(&mut message, &rest, &[], &mut out.report);
        Some(message)
    }

    fn call(
        &mut self,
        action: &str,
        found: &[Member<'_>],
        args: &[Member<'_>],
        id: &[i64],
        out: &mut Output,
    ) {
        let about = inner(found, "tool_call_metadata");
        let response = inner(&about, "model_response");
        let event_id = id
            .first()
            .map_or("null".to_owned(), |id| format!("\"{id}\""));
        let call_id = get_string(&about, "tool_call_id").unwrap_or(&event_id);
        let name = get_string(&about, "function_name").map_or_else(|| quoted(action), canonical);
        let thought = get_string(args, "thought").filter(|raw| *raw != "\"\"");
        let mut parts = content(thought, "text", &mut out.report);
        let sent = arguments_of(&response, call_id);
        let own = args.iter().filter(|(name, _)| name != "thought");
        let own = object(own.map(|(name, value)| (name, value)));
        let arguments = sent.unwrap_or(&own);
        parts.push(call(Some(call_id), Some(&name), arguments, &mut out.report));
        for id in id {
            self.calls.insert(*id, (canonical(call_id), name.clone()));
        }
        let mut message = message("assistant", parts, &mut out.report);
        message.time = time_of(found, "timestamp");
        let mut kept = rest(found, &[], &[]);
        if sent.is_some() {
            kept.extend(get(found, "args").map(|raw| ("args".into(), raw)));
        }
        kept.push(("action".into(), get(found, "action").unwrap_or("null")));
        keep(&mut message, &kept, &[], &mut out.report);
        let response_id = text(&response, "id").unwrap_or_default().into_owned();
        if let Some(pending) = &mut self.pending
            && pending.response == response_id
        {
            pending.missing = pending.missing.saturating_sub(1);
            pending.ids.extend(id);
            pending.message.parts.extend(message.parts);
            if pending.missing == 0 {
                self.flush(out);
            }
            return;
        }
        self.flush(out);
        let call = self.call_of(&response, out);
        let total = get(&about, "total_calls_in_response").and_then(|raw| raw.parse().ok());
        let missing: u64 = total.unwrap_or(1);
        if missing > 1 && !response_id.is_empty() {
            self.pending = Some(PendingReply {
                response: response_id,
                missing: missing - 1,
                ids: id.to_vec(),
                message,
                call,
                held: Vec::new(),
            });
            return;
        }
        self.say(id.to_vec(), message, call, out);
    }

    fn call_of(&self, response: &[Member<'_>], out: &mut Output) -> LogCall {
        if let Some(name) = get_string(response, "model") {
            out.event(self.session, Event::Parameters(model(name)));
        }
        let said = [("response_id", get_string(response, "id"))];
        LogCall::used(get(response, "usage"), &said)
    }

    fn observation(
        &mut self,
        observation: &str,
        found: &[Member<'_>],
        out: &mut Output,
    ) -> Option<LogMessage> {
        let body = get(found, "content");
        if STATES.contains(&observation) && (observation != "recall") {
            out.report.line(Fate::Skipped, observation);
            return None;
        }
        out.report.line(Fate::Understood, "observation");
        let about = inner(found, "tool_call_metadata");
        let cause = get(found, "cause").and_then(|raw| raw.parse::<i64>().ok());
        let cause = cause.and_then(|id| self.calls.get(&id)).cloned();
        let own = get_string(&about, "tool_call_id");
        let id = own
            .map(canonical)
            .or(cause.as_ref().map(|(id, _)| id.clone()));
        let name = get_string(&about, "function_name").map(canonical);
        let name = name.or(cause.map(|(_, name)| name));
        let mut message = match id {
            Some(id) => result(Some(&id), name.as_deref(), body, &mut out.report),
            None => {
                let kind = match observation {
                    "condense" => "summary",
                    _ => "text",
                };
                let body = body.filter(|raw| *raw != "\"\"");
                let parts = content(body, kind, &mut out.report);
                message("user", parts, &mut out.report)
            }
        };
        let failed = observation == "error" || get(found, "success") == Some("false");
        if failed && message.role.as_deref() == Some("tool") {
            message.set_failed();
        }
        let mut kept = rest(found, &[], &[]);
        let observation = get(found, "observation").unwrap_or("null");
        kept.push(("observation".into(), observation));
        keep(&mut message, &kept, &[], &mut out.report);
        Some(message)
    }

    fn condense(
        &mut self,
        found: &[Member<'_>],
        args: &[Member<'_>],
        id: &[i64],
        out: &mut Output,
    ) {
        out.report.line(Fate::Understood, "condensation");
        self.flush(out);
        let number = |name| get(args, name).and_then(|raw| raw.parse::<i64>().ok());
        let forgotten = items(args, "forgotten_event_ids").into_iter();
        let forgotten: HashSet<i64> = forgotten.filter_map(|raw| raw.parse().ok()).collect();
        let range = number("forgotten_events_start_id").zip(number("forgotten_events_end_id"));
        let is_forgotten = |(ids, message): &(Vec<i64>, LogMessage)| {
            let gone = |id: &i64| {
                forgotten.contains(id) || range.is_some_and(|(from, to)| (from..=to).contains(id))
            };
            !message.system && !ids.is_empty() && ids.iter().all(gone)
        };
        // What came after the last reply and is forgotten would be in no snapshot.
        let replied = self.sent.iter().rposition(|(_, message)| message.reply);
        let unsent = &self.sent[replied.map_or(0, |at| at + 1)..];
        if unsent.iter().any(is_forgotten) {
            let all = Event::Context(self.messages(), LogCall::default());
            out.event(self.session, all);
        }
        let before = self.sent.len();
        self.sent.retain(|entry| !is_forgotten(entry));
        let dropped = before - self.sent.len();
        let parts = content(get(args, "summary"), "summary", &mut out.report);
        if !parts.is_empty() {
            let mut message = message("user", parts, &mut out.report);
            message.time = time_of(found, "timestamp");
            keep(&mut message, &rest(found, &[], &[]), &[], &mut out.report);
            let at = number("summary_offset").and_then(|at| usize::try_from(at).ok());
            let at = at.unwrap_or(self.sent.len()).min(self.sent.len());
            self.sent.insert(at, (id.to_vec(), message));
        }
        let dropped = object([("dropped", dropped.to_string())]);
        let call = LogCall::compaction(Some(dropped), time_of(found, "timestamp"));
        let after = Event::Context(self.messages(), call);
        out.event(self.session, after);
    }

    fn messages(&self) -> Vec<LogMessage> {
        let messages = self.sent.iter().map(|(_, message)| message.clone());
        messages.collect()
    }
}

/// What of an event has no field: its other members, and those of the arguments. A text that describes it may be that
/// of the message.
fn rest<'a>(found: &[Member<'a>], args: &[Member<'a>], known: &[&str]) -> Vec<Member<'a>> {
    let said = inner(found, "args");
    let is_said = |raw: &str| {
        let texts = ["content", "thought", "summary"].iter();
        raw == "\"\""
            || texts
                .flat_map(|name| [get(&said, name), get(found, name)])
                .any(|text| text == Some(raw))
    };
    let own = found
        .iter()
        .filter(|(name, raw)| !(KNOWN.contains(&&**name) || name == "message" && is_said(raw)));
    let args = args.iter().filter(|(name, _)| !known.contains(&&**name));
    own.chain(args).cloned().collect()
}

fn arguments_of<'a>(response: &[Member<'a>], call_id: &str) -> Option<&'a str> {
    let choices = elements(get(response, "choices")?);
    let message = members(get(&members(choices.first()?), "message")?);
    elements(get(&message, "tool_calls")?)
        .into_iter()
        .map(members)
        .find(|found| get(found, "id") == Some(call_id))
        .and_then(|found| get_string(&members(get(&found, "function")?), "arguments"))
}
