//! Rollouts of Codex: one object a line, `{timestamp, type, payload}`.
//!
//! A transcript whose items are those of the Responses API ([`super::responses`]). Neighbouring
//! items of the model are one reply; its usage is in the `token_count` event after it. `compacted`
//! says what the model was sent from then on. Events repeat items for people and are skipped.

use super::fields::{count_unread, get_string, inner, text, time, words};
use super::reader::{LogReader, LogRecord, Records, Sniff};
use super::responses::{item, plain};
use crate::json::{Accepted, Member, elements, get, members, string};
use crate::logs::json::{canonical, object, quoted};
use crate::logs::log::{
    About, Event, LogCall, LogMessage, LogPart, failed, object_where, object_without,
};
use crate::logs::output::{Output, SessionId};
use crate::logs::report::Fate;
use crate::logs::usage;

pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let kind = text(found, "type").unwrap_or_default();
    let known = matches!(
        &*kind,
        "session_meta" | "response_item" | "turn_context" | "compacted" | "event_msg"
    );
    (known && get(found, "payload").is_some()).into()
}

#[derive(Default)]
pub(super) struct Codex(Option<Rollout>);

struct Rollout {
    session: SessionId,
    begun: bool,
    /// The system prompt, which a compaction keeps.
    system: Vec<LogMessage>,
    reply: Vec<LogMessage>,
    call: LogCall,
    parameters: String,
}

impl LogReader for Codex {
    fn record(&mut self, record: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        let found = record.json.members(record.raw);
        let payload = record.json.members(get(&found, "payload").unwrap_or("{}"));
        let begin = || Rollout::begin(record, &found, &payload, out);
        let rollout = self.0.get_or_insert_with(begin);
        rollout.line(record, &found, &payload, out);
    }

    fn finish(&mut self, _: &dyn Records, out: &mut Output) {
        if let Some(rollout) = &mut self.0 {
            rollout.end(out);
        }
    }
}

/// The session in which this one was started as a subagent, or from which it was forked.
fn parent(payload: &[Member<'_>]) -> Option<String> {
    let source = inner(payload, "source");
    let spawned = inner(&inner(&source, "subagent"), "thread_spawn");
    if let Some(id) = get_string(&spawned, "parent_thread_id") {
        return Some(object([("session_id", canonical(id))]));
    }
    let id = get_string(payload, "forked_from_id")?;
    let id = canonical(id);
    Some(object([("forked", "true"), ("session_id", &id)]))
}

impl Rollout {
    fn begin(
        record: &LogRecord<'_>,
        found: &[Member<'_>],
        payload: &[Member<'_>],
        out: &mut Output,
    ) -> Self {
        let mut meta = Vec::new();
        if text(found, "type").as_deref() == Some("session_meta") {
            let said = object_without(payload, &["base_instructions"]);
            meta.extend(said.map(|said| ("session".into(), said)));
            meta.extend(parent(payload).map(|said| ("parent".into(), said)));
        }
        Self {
            session: out.session(About {
                location: record.list.to_owned(),
                joined: true,
                meta,
                ..About::default()
            }),
            begun: false,
            system: Vec::new(),
            reply: Vec::new(),
            call: LogCall::default(),
            parameters: String::new(),
        }
    }

    fn line(
        &mut self,
        record: &LogRecord<'_>,
        found: &[Member<'_>],
        payload: &[Member<'_>],
        out: &mut Output,
    ) {
        let time = get(found, "timestamp").and_then(time);
        count_unread(
            found,
            &words![timestamp ordinal type payload],
            "",
            &mut out.report,
        );
        let kind = text(found, "type").unwrap_or_default();
        if matches!(
            &*kind,
            "session_meta" | "turn_context" | "response_item" | "compacted"
        ) {
            out.report.line(Fate::Understood, &kind);
        }
        match &*kind {
            // A fork repeats the lines of the session that it began in, this one too.
            "session_meta" if std::mem::replace(&mut self.begun, true) => {}
            "session_meta" => self.instructions(payload, time, out),
            "turn_context" => self.parameters(payload, out),
            "response_item" => {
                let raw = get(found, "payload").unwrap_or("{}");
                let message = item(raw, payload, record.json, &mut out.report);
                self.item(message.at(time), out);
            }
            "compacted" => self.compacted(payload, time, out),
            "event_msg" => self.event(payload, out),
            _ => out.report.unknown_line("another type"),
        }
    }

    fn end(&mut self, out: &mut Output) {
        if !self.reply.is_empty() {
            let reply = std::mem::take(&mut self.reply);
            let call = std::mem::take(&mut self.call);
            out.event(self.session, Event::Reply(reply, call));
        }
    }

    fn instructions(&mut self, payload: &[Member<'_>], time: Option<i64>, out: &mut Output) {
        let base = inner(payload, "base_instructions");
        let Some(text) = get_string(&base, "text") else {
            return;
        };
        let message = plain("system", text, "instructions").at(time);
        self.system.push(message.clone());
        out.event(self.session, Event::Message(message));
    }

    fn parameters(&mut self, payload: &[Member<'_>], out: &mut Output) {
        let known = words![model effort summary approval_policy sandbox_policy];
        count_unread(payload, &known, "turn_context.", &mut out.report);
        let Some(parameters) = object_where(payload, |name| known.contains(&name)) else {
            return;
        };
        if parameters != self.parameters {
            self.end(out);
            self.parameters.clone_from(&parameters);
            out.event(self.session, Event::Parameters(parameters));
        }
    }

    fn item(&mut self, message: LogMessage, out: &mut Output) {
        if message.reply {
            self.call.time = message.time;
            self.reply.push(message);
            return;
        }
        self.end(out);
        out.event(self.session, Event::Message(message));
    }

    fn compacted(&mut self, payload: &[Member<'_>], time: Option<i64>, out: &mut Output) {
        self.end(out);
        let known = ["message", "replacement_history"];
        let said = object_without(payload, &known);
        let summary = get(payload, "message").and_then(string).unwrap_or_default();
        let Some(history) = get(payload, "replacement_history") else {
            let part = LogPart::new("summary", quoted(&summary));
            let part = part.with("data_form", quoted("openai-responses"));
            let message = LogMessage::new(Some("user".to_owned()), vec![part]).at(time);
            let compacted = Event::compacted(vec![message], usize::MAX, said, time);
            out.event(self.session, compacted);
            return;
        };
        let mut messages = self.system.clone();
        for raw in elements(history) {
            let mut message = item(raw, &members(raw), Accepted::default(), &mut out.report);
            message.time = time;
            for part in &mut message.parts {
                let content = part.content.as_deref().and_then(string);
                let content = content.unwrap_or_default();
                if part.kind == Some("text") && !summary.is_empty() && content.contains(&*summary) {
                    part.kind = Some("summary");
                }
            }
            messages.push(message);
        }
        out.event(
            self.session,
            Event::Context(messages, LogCall::compaction(said, time)),
        );
    }

    fn event(&mut self, payload: &[Member<'_>], out: &mut Output) {
        match &*text(payload, "type").unwrap_or_default() {
            "token_count" => {
                out.report.line(Fate::Understood, "token_count");
                let info = inner(payload, "info");
                if let Some(last) = get(&info, "last_token_usage")
                    && !self.reply.is_empty()
                {
                    self.call.usage = usage::fields(last);
                }
            }
            "error" | "stream_error" => {
                out.report.line(Fate::Understood, "error");
                let error = object_without(payload, &["type"]).unwrap_or_else(|| "{}".to_owned());
                out.event(self.session, Event::Failed(failed(&error)));
            }
            _ => out.report.line(
                Fate::Skipped,
                "event_msg (repeats an item, or is for people)",
            ),
        }
    }
}
