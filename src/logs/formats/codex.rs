//! Rollouts of Codex: one object a line, `{timestamp, type, payload}`.
//!
//! A transcript whose items are those of the Responses API ([`super::responses`]). Neighbouring
//! items of the model are one reply; its usage is in the `token_count` event after it. `compacted`
//! says what the model was sent from then on, and the event `thread_rolled_back` takes turns out of it. Events repeat
//! items for people and are skipped; what only an event has is a message. A result says that its call failed if
//! Codex says so, at the head of the output or in the event that ended the call.

use super::prelude::*;
use super::responses::{item, plain};
use super::transcript::another;
use crate::logs::json::compact;
use std::collections::HashSet;

pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let kind = text(found, "type").unwrap_or_default();
    let known = matches!(
        &*kind,
        "session_meta"
            | "response_item"
            | "turn_context"
            | "compacted"
            | "event_msg"
            | "world_state"
            | "inter_agent_communication"
    );
    (known && get(found, "payload").is_some()).into()
}

#[derive(Clone, Default)]
pub(super) struct Codex(Option<Rollout>);

#[derive(Clone)]
struct Rollout {
    session: SessionId,
    begun: bool,
    /// The system prompt, which a compaction keeps.
    system: Vec<LogMessage>,
    /// The newest reply, and what came after it. The builder gets both when the next reply begins: until then an
    /// event may say what the reply used, and an item may show that an event only repeats it.
    reply: Vec<Said>,
    input: Vec<Said>,
    /// The texts of the input that the reply answers.
    before: Vec<String>,
    call: LogCall,
    /// What all calls used until now, as the log says, and whether that has the newest reply.
    total: String,
    is_counted: bool,
    /// What a call used that has no reply of its own, such as that for a summary.
    unsaid: Option<String>,
    parameters: String,
    /// The ids of the calls of which an event says that they failed.
    failed: HashSet<String>,
}

/// The number of messages before an event, or before the item that it repeats, in which its text is looked for.
const NEAR: usize = 64;

#[derive(Clone)]
struct Said {
    message: LogMessage,
    /// Of a message that so far only an event has: its type, and what it counts for.
    event: Option<(String, ImportReport)>,
}

impl Said {
    fn texts(&self) -> impl Iterator<Item = &str> {
        let parts = self.message.parts.iter();
        parts.filter_map(|part| part.content.as_deref())
    }
}

/// Whether one of some texts is this one, or contains it if it is too long to be there by chance. All are JSON strings.
fn is_in<'a>(text: &str, mut said: impl Iterator<Item = &'a str>) -> bool {
    let inner = text.trim_matches('"');
    said.any(|said| said == text || inner.len() >= 32 && said.contains(inner))
}

impl LogReader for Codex {
    fn record(&mut self, record: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        let found = record.json.members(record.raw);
        let payload = record.json.members(get(&found, "payload").unwrap_or("{}"));
        let begin = || Rollout::begin(record, &found, &payload, out);
        let rollout = self.0.get_or_insert_with(begin);
        rollout.line(record, &found, &payload, out);
    }

    fn copy(&mut self) -> Option<Box<dyn LogReader>> {
        Some(Box::new(self.clone()))
    }

    fn finish(&mut self, _: &dyn Records, out: &mut Output) {
        if let Some(rollout) = &mut self.0 {
            rollout.flush(out);
        }
    }
}

const UNDO: &str = "ghost_snapshot (undo data, never sent)";

fn is_undo(item: &[Member<'_>]) -> bool {
    text(item, "type").as_deref() == Some("ghost_snapshot")
}

fn repeats(kind: &str) -> String {
    format!("{kind} (repeats an item)")
}

/// Whether an event ends a call, and says that it failed.
fn is_failed_end(kind: &str, payload: &[Member<'_>]) -> bool {
    let is = |name: &str, value: &str| get(payload, name) == Some(value);
    match kind {
        "exec_command_end" => get(payload, "exit_code").is_some_and(|code| code != "0"),
        "patch_apply_end" | "dynamic_tool_call_response" => is("success", "false"),
        "mcp_tool_call_end" => {
            let result = inner(payload, "result");
            let said = inner(&result, "Ok");
            let names = ["isError", "is_error"].into_iter();
            let mut flags = names.filter_map(|name| get(&said, name));
            get(&result, "Err").is_some() || flags.any(|flag| flag == "true")
        }
        _ => false,
    }
}

/// Whether the output of a call says that it failed, in the words that Codex itself puts around what a tool printed.
fn says_failed(found: &[Member<'_>]) -> Option<bool> {
    let output = get(found, "output")?;
    match value_type(output) {
        ValueType::String => says_exit(&string(output)?),
        ValueType::Array => says_exit(&text(&members(elements(output).first()?), "text")?),
        _ => get(&members(output), "success").map(|success| success == "false"),
    }
}

/// As [`says_failed`], of a text: an object with the output and its exit code, or lines before the output.
fn says_exit(text: &str) -> Option<bool> {
    let found = members(text);
    if found.len() == 2 {
        get(&found, "output")?;
        let code = get(&inner(&found, "metadata"), "exit_code")?.to_owned();
        return Some(code != "0");
    }
    let seconds = |said: &str| said.parse::<f64>().is_ok();
    let after = text.strip_prefix("aborted by user after ");
    if after
        .and_then(|said| said.strip_suffix('s'))
        .is_some_and(seconds)
    {
        return Some(true);
    }
    let mut has_failed = None;
    let mut is_timed = false;
    for line in text.lines() {
        let codes = ["Exit code: ", "Process exited with code "].into_iter();
        let mut codes = codes.filter_map(|head| line.strip_prefix(head));
        if let Some(code) = codes.next() {
            has_failed = Some(code.parse::<i64>().ok()? != 0);
        } else if line.starts_with("Process running with session ID ") {
            has_failed = Some(false);
        } else if line.starts_with("Wall time: ") {
            is_timed = true;
        } else if line == "aborted by user" {
            has_failed = Some(true);
            break;
        } else if !OF_OUTPUT.iter().any(|head| line.starts_with(head)) {
            break;
        }
    }
    has_failed.filter(|_| is_timed)
}

/// Other lines that Codex writes before an output.
const OF_OUTPUT: [&str; 3] = [
    "Chunk ID: ",
    "Original token count: ",
    "Total output lines: ",
];

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
            let said = object_without(payload, &["base_instructions", "dynamic_tools"]);
            meta.extend(said.map(|said| ("session".into(), said)));
            meta.extend(parent(payload).map(|said| ("parent".into(), said)));
        }
        let mut about = About {
            location: record.list.to_owned(),
            joined: true,
            meta,
            ..About::default()
        };
        about.of_agent("codex", get_string(payload, "cwd"));
        Self {
            session: out.session(about),
            begun: false,
            system: Vec::new(),
            reply: Vec::new(),
            input: Vec::new(),
            before: Vec::new(),
            call: LogCall::default(),
            total: String::new(),
            is_counted: false,
            unsaid: None,
            parameters: String::new(),
            failed: HashSet::new(),
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
        if matches!(&*kind, "session_meta" | "turn_context" | "compacted") {
            out.report.line(Fate::Understood, &kind);
        }
        match &*kind {
            // A fork repeats the lines of the session that it began in, this one too.
            "session_meta" if std::mem::replace(&mut self.begun, true) => {}
            "session_meta" => self.instructions(payload, time, out),
            "turn_context" => self.parameters(payload, out),
            "response_item" if is_undo(payload) => out.report.line(Fate::Skipped, UNDO),
            "response_item" => {
                let raw = get(found, "payload").unwrap_or("{}");
                let message = self.read(raw, payload, record.json, &mut out.report);
                let parts = message.parts.iter();
                let mut verbatim = parts.filter_map(|part| part.field("data_verbatim"));
                let fate = if verbatim.any(|what| what == "\"message\"") {
                    Fate::Verbatim
                } else {
                    Fate::Understood
                };
                out.report.line(fate, "response_item");
                self.item(message.at(time), out);
            }
            "compacted" => self.compacted(payload, time, out),
            "event_msg" => self.event(payload, time, out),
            "world_state" => out
                .report
                .line(Fate::Skipped, "world_state (of the program)"),
            "inter_agent_communication" => {
                self.said(&kind, payload, time, out);
            }
            _ => out.report.unknown_line(&another(&kind)),
        }
    }

    /// Tells the reply and what came after it.
    fn flush(&mut self, out: &mut Output) {
        self.is_counted = false;
        if self.unsaid.take().is_some() {
            out.report
                .skipped_member("token_count (of a call without a reply)");
        }
        let mut told = |said: Said| {
            if let Some((kind, report)) = &said.event {
                out.report.line(Fate::Understood, kind);
                out.report.add(report);
            }
            said.message
        };
        let reply: Vec<LogMessage> = self.reply.drain(..).map(&mut told).collect();
        let input: Vec<LogMessage> = self.input.drain(..).map(&mut told).collect();
        if !reply.is_empty() {
            let call = std::mem::take(&mut self.call);
            out.event(self.session, Event::Reply(reply, call));
        }
        let of_user = input
            .iter()
            .filter(|message| message.role.as_deref() == Some("user"));
        let texts = of_user.flat_map(|message| &message.parts);
        self.before = texts.filter_map(|part| part.content.clone()).collect();
        for message in input {
            out.event(self.session, Event::Message(message));
        }
    }

    fn instructions(&mut self, payload: &[Member<'_>], time: Option<i64>, out: &mut Output) {
        let tools = items(payload, "dynamic_tools")
            .into_iter()
            .map(|raw| LogTool {
                name: text(&members(raw), "name").unwrap_or_default().into_owned(),
                definition: compact(raw).into_owned(),
                data: Vec::new(),
            });
        out.event(self.session, Event::Tools(tools.collect()));
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
            self.flush(out);
            self.parameters.clone_from(&parameters);
            out.event(self.session, Event::Parameters(parameters));
        }
    }

    fn read(
        &self,
        raw: &str,
        found: &[Member<'_>],
        json: Accepted<'_>,
        report: &mut ImportReport,
    ) -> LogMessage {
        let mut message = item(raw, found, json, report);
        let is_result = message.parts.iter().any(|part| part.kind == Some("result"));
        if is_result {
            let id = text(found, "call_id").unwrap_or_default();
            let has_failed = says_failed(found);
            if has_failed.unwrap_or_else(|| self.failed.contains(&*id)) {
                message.set_failed();
            }
        }
        message
    }

    fn item(&mut self, message: LogMessage, out: &mut Output) {
        let said = Said {
            message,
            event: None,
        };
        if let Some(repeated) = self.earlier(&said) {
            out.report.line(Fate::Skipped, &repeats(&repeated));
        }
        self.push(said, out);
    }

    /// Takes out the event that an item repeats, and returns its type.
    fn earlier(&mut self, said: &Said) -> Option<String> {
        let run = if said.message.reply {
            &mut self.reply
        } else {
            &mut self.input
        };
        let near = run.len().saturating_sub(NEAR);
        let at = run[near..].iter().position(|known| {
            let mut texts = known.texts().filter(|_| known.event.is_some());
            texts.next().is_some_and(|text| is_in(text, said.texts()))
        })?;
        let at = near + at;
        run.remove(at).event.map(|(kind, _)| kind)
    }

    fn push(&mut self, said: Said, out: &mut Output) {
        if !said.message.reply {
            self.input.push(said);
            return;
        }
        if !self.input.is_empty() || self.is_counted {
            self.flush(out);
        }
        self.call.time = said.message.time;
        self.reply.push(said);
    }

    /// An event that says what an item says, before or after it, or alone.
    fn said(&mut self, kind: &str, payload: &[Member<'_>], time: Option<i64>, out: &mut Output) {
        let mut texts = ["message", "text", "content"].into_iter();
        let raw = texts.find_map(|name| get_string(payload, name));
        let words = raw.map(canonical).unwrap_or_default();
        let runs = [&self.reply, &self.input].into_iter();
        let known = runs.flat_map(|run| run.iter().rev().take(NEAR));
        let before = self.before.iter().rev().take(NEAR);
        let known = known.flat_map(Said::texts);
        let known = known.chain(before.map(String::as_str));
        if words.len() <= 2 || is_in(&words, known) {
            out.report.line(Fate::Skipped, &repeats(kind));
            return;
        }
        let part = |kind: &str| object([("text", &*words), ("type", &quoted(kind))]);
        let of_role = |role: &str, parts: String| {
            let role = quoted(role);
            object([
                ("content", &*parts),
                ("role", &role),
                ("type", "\"message\""),
            ])
        };
        let raw = match kind {
            "user_message" => {
                let images = items(payload, "images").into_iter().map(|url| {
                    object([
                        ("image_url", canonical(url)),
                        ("type", quoted("input_image")),
                    ])
                });
                let parts = [part("input_text")].into_iter().chain(images);
                of_role("user", list(parts))
            }
            // With who wrote it and to whom.
            "inter_agent_communication" => {
                let others = payload.iter().filter(|(name, _)| name != "content");
                let others = others.map(|(name, raw)| (&**name, canonical(raw)));
                let own = [
                    ("content", list([part("input_text")])),
                    ("role", quoted("user")),
                    ("type", quoted("message")),
                ];
                object(
                    others
                        .filter(|(name, _)| !matches!(*name, "role" | "type"))
                        .chain(own),
                )
            }
            "agent_message" => of_role("assistant", list([part("output_text")])),
            _ => object([
                ("summary", list([part("summary_text")])),
                ("type", quoted("reasoning")),
            ]),
        };
        let mut report = ImportReport::default();
        let message = item(&raw, &members(&raw), Accepted::default(), &mut report);
        let event = Some((kind.to_owned(), report));
        let message = message.at(time);
        self.push(Said { message, event }, out);
    }

    fn compacted(&mut self, payload: &[Member<'_>], time: Option<i64>, out: &mut Output) {
        let usage = self.unsaid.take();
        self.flush(out);
        let known = ["message", "replacement_history"];
        let usage = usage.as_deref().map(|usage| ("usage".into(), usage));
        let said: Vec<Member<'_>> = payload.iter().cloned().chain(usage).collect();
        let said = object_without(&said, &known);
        let summary = get(payload, "message").and_then(string).unwrap_or_default();
        let Some(history) = get(payload, "replacement_history") else {
            let part = LogPart::new("summary", quoted(&summary));
            let part = part.with("data_form", quoted("openai-responses"));
            let message = LogMessage::new(Some("user".to_owned()), vec![part]).at(time);
            let compacted = Event::compacted(vec![message], NONE_KEPT, said, time);
            out.event(self.session, compacted);
            return;
        };
        let mut messages = self.system.clone();
        for raw in elements(history) {
            let found = members(raw);
            if is_undo(&found) {
                out.report.message(Fate::Skipped, UNDO);
                continue;
            }
            let mut message = self.read(raw, &found, Accepted::default(), &mut out.report);
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

    fn event(&mut self, payload: &[Member<'_>], time: Option<i64>, out: &mut Output) {
        let kind = text(payload, "type").unwrap_or_default();
        match &*kind {
            "token_count" => {
                out.report.line(Fate::Understood, "token_count");
                let info = inner(payload, "info");
                let total = get(&info, "total_token_usage").map(canonical);
                // The program says the same again when it has news of its limits.
                if total.as_ref() == Some(&self.total) {
                    return;
                }
                let is_counted = std::mem::replace(&mut self.is_counted, total.is_some());
                self.total = total.unwrap_or_default();
                let Some(last) = get(&info, "last_token_usage").filter(|_| !self.reply.is_empty())
                else {
                    self.is_counted = is_counted;
                    return;
                };
                if is_counted {
                    self.unsaid = Some(last.to_owned());
                } else {
                    self.call = LogCall {
                        time: self.call.time,
                        ..LogCall::used(Some(last), &[])
                    };
                }
            }
            "user_message"
            | "agent_message"
            | "agent_reasoning"
            | "agent_reasoning_raw_content" => {
                self.said(&kind, payload, time, out);
            }
            "error" | "stream_error" => {
                // A call that fails after the reply is another one.
                if !self.input.is_empty() {
                    self.flush(out);
                }
                out.report.line(Fate::Understood, "error");
                let error = object_without(payload, &["type"]).unwrap_or_else(|| "{}".to_owned());
                out.event(self.session, Event::Failed(failed(&error)));
            }
            "thread_rolled_back" => {
                out.report.line(Fate::Understood, "thread_rolled_back");
                self.flush(out);
                let turns = get(payload, "num_turns").and_then(|raw| raw.parse().ok());
                let said = object_without(payload, &["type"]);
                let call = LogCall::without_call("rolled_back", said, time);
                let turns = turns.unwrap_or(0);
                out.event(self.session, Event::TakenBack { turns, call });
            }
            _ => {
                if is_failed_end(&kind, payload) {
                    let id = text(payload, "call_id").unwrap_or_default();
                    self.failed.insert(id.into_owned());
                }
                out.report.line(Fate::Skipped, "event_msg (for people)");
            }
        }
    }
}
