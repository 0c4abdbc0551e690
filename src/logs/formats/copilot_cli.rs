//! Sessions of Copilot CLI: one event a line, `{id, parentId, type, timestamp, data}`.
//!
//! A transcript with the system prompt, where `system.message` has it. `assistant.message` is a reply, or a piece of
//! one with the same `apiCallId`; `tool.execution_complete` is a result; `session.error` and `model.call_failure` are
//! calls that failed. A text of the user is what was sent (`transformedContent`), with what was typed beside it; a
//! prompt that only a hook was given is a message, too. Events of a subagent are a session of their own. Every other
//! event is of the program.

use super::prelude::*;
use super::transcript::{as_text, call, content, keep, keep_in, message, result};
use std::collections::{BTreeMap, HashMap};

pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let kind = text(found, "type").unwrap_or_default();
    let is_event = kind.contains('.') || kind == "abort";
    (is_event && get_string(found, "id").is_some() && is(found, "data", ValueType::Object)).into()
}

#[derive(Clone, Default)]
pub(super) struct CopilotCli {
    /// That of the session, and those of subagents by their ids.
    agents: BTreeMap<Option<String>, Agent>,
    /// The call that started each subagent, as JSON.
    started: HashMap<String, String>,
    /// The sessions of subagents by those calls; both are JSON.
    children: HashMap<String, String>,
}

#[derive(Clone)]
struct Agent {
    session: SessionId,
    parameters: BTreeMap<&'static str, String>,
    /// The newest reply, which is whole when something else follows.
    reply: Option<AgentReply>,
    /// Texts as JSON. Thoughts that only an event of their own has so far:
    thoughts: Vec<String>,
    /// a prompt that only a hook has so far, and its time,
    prompt: Option<(String, Option<i64>)>,
    /// what was typed since the newest reply, and the system prompts.
    typed: Vec<String>,
    system: Vec<String>,
    /// The name and the arguments of each call, by its id.
    calls: HashMap<String, (Option<String>, String)>,
}

struct CopilotEvent<'a> {
    kind: &'a str,
    data: &'a [Member<'a>],
    /// Its `content`, as JSON.
    said: String,
    time: Option<i64>,
}

#[derive(Clone)]
struct AgentReply {
    message: LogMessage,
    call: LogCall,
    /// The call of the provider that it is of.
    of: Option<String>,
}

impl LogReader for CopilotCli {
    fn record(&mut self, record: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        let found = record.json.members(record.raw);
        let data = record.json.inside(&found, "data");
        let kind = text(&found, "type").unwrap_or_default();
        let call = get_string(&data, "parentToolCallId").map(canonical);
        let id = text(&found, "agentId").or_else(|| text(&data, "parentToolCallId"));
        let id = id.map(|id| id.into_owned());
        if kind == "subagent.started" {
            let call = get_string(&data, "toolCallId").map(canonical);
            self.started.extend(id.zip(call));
            out.report
                .line(Fate::Skipped, "subagent.started (of the program)");
            return;
        }
        if !self.agents.contains_key(&id) {
            let call = id
                .as_ref()
                .and_then(|id| self.started.get(id).cloned())
                .or(call);
            let agent = Agent::new(about(id.as_deref(), call.as_deref(), record, &data), out);
            let child = id.as_ref().map(|id| quoted(&format!("/{id}")));
            self.children.extend(call.zip(child));
            self.agents.insert(id.clone(), agent);
        }
        if let Some(agent) = self.agents.get_mut(&id) {
            let said = get_string(&data, "content").map(canonical);
            let event = CopilotEvent {
                kind: &kind,
                data: &data,
                said: said.unwrap_or_default(),
                time: get(&found, "timestamp").and_then(time),
            };
            agent.event(&event, &self.children, out);
        }
    }

    fn copy(&mut self) -> Option<Box<dyn LogReader>> {
        Some(Box::new(self.clone()))
    }

    fn finish(&mut self, _: &dyn Records, out: &mut Output) {
        for agent in self.agents.values_mut() {
            agent.flush(out);
            for _ in agent.thoughts.drain(..) {
                out.report.line(
                    Fate::Skipped,
                    "assistant.reasoning (of a reply that is not there)",
                );
            }
        }
    }
}

fn about(
    id: Option<&str>,
    call: Option<&str>,
    record: &LogRecord<'_>,
    data: &[Member<'_>],
) -> About {
    let mut about = About {
        location: record.list.to_owned(),
        ..About::default()
    };
    if let Some(id) = id {
        let parent = call.map(|call| object([("call_id", call), ("session", "\"..\"")]));
        about
            .meta
            .push(("parent".into(), parent.unwrap_or_else(|| OWNER.to_owned())));
        about.name = Some(format!("/{id}"));
    } else if get(data, "sessionId").is_some() {
        let said = object_without(data, &[]);
        about.meta.extend(said.map(|said| ("session".into(), said)));
    }
    about.of_agent("copilot-cli", get_string(&inner(data, "context"), "cwd"));
    about
}

impl Agent {
    fn new(about: About, out: &mut Output) -> Self {
        Self {
            session: out.session(about),
            parameters: BTreeMap::new(),
            reply: None,
            thoughts: Vec::new(),
            prompt: None,
            typed: Vec::new(),
            system: Vec::new(),
            calls: HashMap::new(),
        }
    }

    fn event(
        &mut self,
        event: &CopilotEvent<'_>,
        children: &HashMap<String, String>,
        out: &mut Output,
    ) {
        let (kind, data) = (event.kind, event.data);
        if self.waits(event, out) {
            return;
        }
        if let Some(why) = self.skipped(event) {
            out.report.line(Fate::Skipped, &format!("{kind} ({why})"));
            return;
        }
        let said = |(prompt, _): &mut (String, _)| kind == "user.message" && *prompt == event.said;
        if self.prompt.take_if(said).is_some() {
            out.report
                .line(Fate::Skipped, &format!("hook.start ({REPEATS})"));
        }
        if kind == "assistant.message" {
            out.report.line(Fate::Understood, kind);
            return self.assistant(event, out);
        }
        self.made_by(event);
        self.flush(out);
        if let Some(message) = self.message(event, out) {
            out.report.line(Fate::Understood, kind);
            out.event(self.session, Event::Message(message.at(event.time)));
            let call = get_string(data, "toolCallId").map(canonical);
            let child = call.as_ref().and_then(|call| children.get(call)).cloned();
            if kind == "tool.execution_complete"
                && let Some((call, session)) = call.zip(child)
            {
                out.event(self.session, Event::Child { call, session });
            }
        } else if let "session.start" | "session.resume" | "session.model_change" = kind {
            out.report.line(Fate::Understood, kind);
            self.set(data, out);
        } else if let Some(change) = Self::change(event) {
            out.report.line(Fate::Understood, kind);
            out.event(self.session, change);
        } else {
            out.report.unknown_line("another type");
        }
    }

    /// Whether an event is a part of a reply, or of a prompt, that is read with the rest of it.
    fn waits(&mut self, event: &CopilotEvent<'_>, out: &mut Output) -> bool {
        match event.kind {
            "hook.start" => {
                let input = inner(event.data, "input");
                let prompt = get_string(&input, "prompt").map(canonical);
                let Some(prompt) = prompt.filter(|prompt| !self.typed.contains(prompt)) else {
                    return false;
                };
                count_unread(&input, &["prompt"], "input.", &mut out.report);
                self.flush(out);
                self.prompt = Some((prompt, event.time));
            }
            "assistant.reasoning" => {
                if self.skipped(event).is_some() {
                    return false;
                }
                self.thoughts.push(event.said.clone());
            }
            "assistant.usage" => {
                let Some(reply) = &mut self.reply else {
                    return false;
                };
                out.report.line(Fate::Understood, event.kind);
                count_unread(event.data, &OF_USAGE, "assistant.usage.", &mut out.report);
                reply.call = LogCall {
                    time: reply.call.time,
                    ..used(event.data)
                };
            }
            _ => return false,
        }
        true
    }

    /// Why an event is skipped, if it is.
    fn skipped(&self, event: &CopilotEvent<'_>) -> Option<&'static str> {
        let (data, said) = (event.data, &event.said);
        let why = match event.kind {
            "hook.start" => match get_string(&inner(data, "input"), "prompt") {
                Some(_) => REPEATS,
                None => OF_PROGRAM,
            },
            "assistant.reasoning" => {
                let parts = self.reply.iter().flat_map(|reply| &reply.message.parts);
                let mut texts = parts.filter_map(|part| part.content.as_ref());
                return texts.any(|text| text == said).then_some(REPEATS);
            }
            "assistant.usage" => "of a reply that is not there",
            "system.message" => return self.system.contains(said).then_some(REPEATS),
            "system.notification" => return self.typed.contains(said).then_some(REPEATS),
            "session.info" | "session.warning" => "for people",
            "session.truncation" => "which messages went is not said",
            "session.compaction_complete" => {
                let is_there = get_string(data, "summaryContent").is_some();
                return (!is_there).then_some("without a summary");
            }
            "tool.execution_start" => {
                let id = text(data, "toolCallId").unwrap_or_default();
                let given = as_text(get(data, "arguments").unwrap_or("{}"));
                let (_, arguments) = self.calls.get(&*id)?;
                if *arguments == given {
                    REPEATS
                } else {
                    "with arguments that are not the model's"
                }
            }
            kind => {
                let name = kind.split('.').next().unwrap_or_default();
                let is_of_program = NAMES.contains(&name) && !UNDERSTOOD.contains(&kind);
                return is_of_program.then_some(OF_PROGRAM);
            }
        };
        Some(why)
    }

    /// The model that made a call, if its reply does not say it.
    fn made_by(&mut self, event: &CopilotEvent<'_>) {
        if event.kind.starts_with("tool.")
            && let Some(reply) = &mut self.reply
            && let Some(model) = get_string(event.data, "model")
            && reply.call.usage.iter().all(|(name, _)| name != "model")
        {
            reply.call.usage.push(("model".into(), canonical(model)));
        }
    }

    /// What the model is sent by an event.
    fn message(&mut self, event: &CopilotEvent<'_>, out: &mut Output) -> Option<LogMessage> {
        let data = event.data;
        let sent = get_string(data, "transformedContent");
        let raw = sent.or(get(data, "content"));
        let made = match event.kind {
            "user.message" => {
                let parts = content(raw, "text", &mut out.report);
                let mut made = message("user", parts, &mut out.report);
                let own = words![transformedContent agentMode interactionId turnId content];
                let is_same = sent.is_none_or(|sent| canonical(sent) == event.said);
                let known = own.len() - usize::from(!is_same);
                keep(&mut made, data, &own[..known], &mut out.report);
                let source = text(data, "source").unwrap_or_default();
                made.injected = !matches!(&*source, "" | "user");
                made.typed = sent.map(|_| event.said.clone());
                self.typed.push(event.said.clone());
                made
            }
            "system.message" => {
                let role = text(data, "role").unwrap_or("system".into());
                let parts = content(raw, "text", &mut out.report);
                let mut made = message(&role, parts, &mut out.report);
                keep(
                    &mut made,
                    data,
                    &words![content role interactionId],
                    &mut out.report,
                );
                self.system.push(event.said.clone());
                made
            }
            "system.notification" => {
                let parts = content(raw, "text", &mut out.report);
                let mut made = message("user", parts, &mut out.report);
                keep(&mut made, data, &["content"], &mut out.report);
                made.injected = true;
                made
            }
            "tool.execution_complete" => self.result(data, out),
            // The user has the program run a tool.
            "tool.user_requested" | "tool.execution_start" => {
                let part = self.call(data, "toolName", out);
                let mut made = message("user", vec![part], &mut out.report);
                made.injected = true;
                made
            }
            _ => return None,
        };
        Some(made)
    }

    /// What else happens by an event.
    fn change(event: &CopilotEvent<'_>) -> Option<Event> {
        let data = event.data;
        Some(match event.kind {
            "session.error" | "model.call_failure" => {
                let error = object_without(data, &[]).unwrap_or_else(|| "{}".to_owned());
                Event::Failed(failed(&error))
            }
            "session.title_changed" => Event::Title(canonical(get_string(data, "title")?)),
            "session.compaction_complete" | "session.context_cleared" => {
                let summary = get_string(data, "summaryContent").map(|raw| {
                    let part = LogPart::new("summary", canonical(raw));
                    LogMessage::new(Some("user".to_owned()), vec![part]).at(event.time)
                });
                let said = object_without(data, &["summaryContent"]);
                let summary = summary.into_iter().collect();
                Event::compacted(summary, NONE_KEPT, said, event.time)
            }
            _ => return None,
        })
    }

    /// Sets the parameters that an event has for the calls after it.
    fn set(&mut self, data: &[Member<'_>], out: &mut Output) {
        for (member, name) in PARAMETERS {
            if let Some(value) = get_string(data, member) {
                self.parameters.insert(name, canonical(value));
            }
        }
        if !self.parameters.is_empty() {
            let parameters = Event::Parameters(object(&self.parameters));
            out.event(self.session, parameters);
        }
    }

    /// Tells a prompt that only a hook has, or the newest reply.
    fn flush(&mut self, out: &mut Output) {
        if let Some((prompt, time)) = self.prompt.take() {
            out.report.line(Fate::Understood, "hook.start");
            let parts = content(Some(&prompt), "text", &mut out.report);
            let message = message("user", parts, &mut out.report).at(time);
            out.event(self.session, Event::Message(message));
            self.typed.push(prompt);
        }
        if let Some(reply) = self.reply.take() {
            out.event(self.session, Event::said(reply.message, reply.call));
        }
    }

    fn assistant(&mut self, event: &CopilotEvent<'_>, out: &mut Output) {
        let (data, time) = (event.data, event.time);
        let of = text(data, "apiCallId").map(|id| id.into_owned());
        let before = self.reply.take_if(|reply| of.is_some() && reply.of == of);
        if before.is_none() {
            self.flush(out);
            self.typed.clear();
        }
        self.set(data, out);
        let mut parts = Vec::new();
        let thought = get_string(data, "reasoningText").map(canonical);
        for text in self.thoughts.drain(..) {
            let is_there = thought.as_ref() == Some(&text);
            let (fate, why) = if is_there {
                (Fate::Skipped, "assistant.reasoning (repeats a message)")
            } else {
                (Fate::Understood, "assistant.reasoning")
            };
            out.report.line(fate, why);
            parts.extend((!is_there).then(|| LogPart::new("thinking", text)));
        }
        parts.extend(thought.map(|text| LogPart::new("thinking", text)));
        for _ in &parts {
            out.report.part(Fate::Understood, "thinking");
        }
        let text = get(data, "content").filter(|raw| *raw != "\"\"");
        parts.extend(content(text, "text", &mut out.report));
        for raw in items(data, "toolRequests") {
            parts.push(self.call(&members(raw), "name", out));
        }
        let mut message = message("assistant", parts, &mut out.report).at(time);
        keep(&mut message, data, &OF_REPLY, &mut out.report);
        let mut call = LogCall { time, ..used(data) };
        if let Some(before) = before {
            message.parts.splice(0..0, before.message.parts);
            if call.usage.is_empty() {
                call = before.call;
            }
        }
        self.reply = Some(AgentReply { message, call, of });
    }

    fn call(&mut self, found: &[Member<'_>], name: &str, out: &mut Output) -> LogPart {
        let (id, of) = (get_string(found, "toolCallId"), get_string(found, name));
        let arguments = get(found, "arguments").unwrap_or("{}");
        if let Some(id) = text(found, "toolCallId") {
            let known = (of.map(canonical), as_text(arguments));
            self.calls.insert(id.into_owned(), known);
        }
        let mut part = call(id, of, arguments, &mut out.report);
        let known = ["toolCallId", name, "arguments", "type", "turnId", "model"];
        keep_in(&mut part, "data_part", found, &known, &mut out.report);
        part
    }

    fn result(&self, data: &[Member<'_>], out: &mut Output) -> LogMessage {
        let (found, error) = (inner(data, "result"), inner(data, "error"));
        let said = get(&found, "content").or(get(&error, "message"));
        let id = get_string(data, "toolCallId");
        let call = text(data, "toolCallId").and_then(|id| self.calls.get(&*id));
        let name = call.and_then(|(name, _)| name.as_deref());
        let mut message = result(id, name, said, &mut out.report);
        for raw in items(&found, "binaryResultsForLlm") {
            out.report.part(Fate::Understood, "image");
            let part = LogPart::new("image", canonical(raw)).with_some("data_call_id", id);
            message.parts.push(part);
        }
        if get(data, "success") == Some("false") {
            message.set_failed();
        }
        // What is shown to people may be what the model is sent.
        let other = found.iter().chain(&error).chain(data);
        let other = other.filter(|(_, raw)| said != Some(*raw));
        let other: Vec<Member<'_>> = other.cloned().collect();
        keep(&mut message, &other, &OF_RESULT, &mut out.report);
        message
    }
}

const REPEATS: &str = "repeats a message";
const OF_PROGRAM: &str = "of the program";

/// The types of events that say something, besides those that repeat or complete others.
const UNDERSTOOD: [&str; 11] = [
    "session.start",
    "session.resume",
    "session.model_change",
    "session.error",
    "session.title_changed",
    "session.context_cleared",
    "model.call_failure",
    "user.message",
    "assistant.message",
    "tool.user_requested",
    "tool.execution_complete",
];

/// What the types of events begin with.
const NAMES: [&str; 24] = words![
    session assistant user system tool tool_search external_tool hook subagent skill permission abort model
    user_input elicitation sampling mcp mcp_app command commands capabilities pending_messages exit_plan_mode factory
];

/// What events set for the calls after them, and what that is called in a request.
const PARAMETERS: [(&str, &str); 4] = [
    ("model", "model"),
    ("selectedModel", "model"),
    ("newModel", "model"),
    ("reasoningEffort", "reasoning_effort"),
];

const OF_REPLY: [&str; 14] = words![
    messageId content reasoningText toolRequests model outputTokens apiCallId interactionId turnId requestId
    serviceRequestId clientRequestId parentToolCallId rte
];

const OF_RESULT: [&str; 11] = words![
    toolCallId success result error content message binaryResultsForLlm interactionId turnId parentToolCallId model
];

const OF_USAGE: [&str; 8] = words![
    model apiCallId finishReason duration inputTokens outputTokens cacheReadTokens cacheWriteTokens
];

/// What an event says that a reply used. Tokens that were read from the cache, or written to it, are in the input.
fn used(data: &[Member<'_>]) -> LogCall {
    let names = [
        ("inputTokens", "input_tokens"),
        ("cacheReadTokens", "cached_input_tokens"),
        ("outputTokens", "output_tokens"),
    ];
    let used = names
        .into_iter()
        .filter_map(|(name, known)| Some((known, get(data, name)?)));
    let used: Vec<(&str, &str)> = used.collect();
    let raw = (!used.is_empty()).then(|| object(used));
    let said = [
        ("cache_write_tokens", get(data, "cacheWriteTokens")),
        ("model", get(data, "model")),
        ("response_id", get(data, "apiCallId")),
        ("stop_reason", get(data, "finishReason")),
        ("latency_ms", get(data, "duration")),
    ];
    LogCall::used(raw.as_deref(), &said)
}
