//! Sessions of Claude Code: one object a line, each naming the line before it.
//!
//! A transcript: the system prompt and the tools are not in it. Messages are those of Anthropic's
//! API ([`super::anthropic`]). A response is written as several lines with one `message.id`, which
//! are one message here; its usage is counted once. Where tools run side by side, lines of one
//! response and their results are branches of each other and belong to one path. The shape is
//! undocumented and moves: lines of unknown type are counted, not refused.

use super::anthropic::{call, of_content};
use super::branches::{Branches, Line};
use super::fields::{get_string, text, time};
use super::reader::{Reader, Record, Sniff};
use crate::interop::json::{canonical, quoted};
use crate::interop::log::{About, Call, Event, Message, Part, object_without};
use crate::interop::output::{Output, SessionId};
use crate::interop::report::Fate;
use crate::tree::shallow::{Member, elements, get, members, string};
use std::collections::{HashMap, HashSet};

/// Lines of messages have a session, an id and a parent.
pub(super) fn sniff(_: &Record<'_>, found: &[Member<'_>]) -> Sniff {
    let has = |name| get(found, name).is_some();
    let kind = text(found, "type").unwrap_or_default();
    let is_message = matches!(&*kind, "user" | "assistant" | "system");
    match is_message && has("sessionId") && has("uuid") && has("parentUuid") {
        true => Sniff::Yes,
        false if kind == "summary" && has("leafUuid") => Sniff::Maybe,
        false => Sniff::No,
    }
}

/// Collects the lines of a log. Its sessions are given out at the end, when all branches are known.
#[derive(Default)]
pub(super) struct ClaudeCode {
    main: Branches,
    /// The lines of subagents in the same file, by the first of each.
    agents: Vec<(String, Branches)>,
    /// The subagent of each of their lines.
    agent_of: HashMap<String, usize>,
}

impl Reader for ClaudeCode {
    fn record(&mut self, record: &Record<'_>, out: &mut Output) {
        let found = members(record.raw);
        let kind = text(&found, "type").unwrap_or_default();
        let id = text(&found, "uuid").map(|id| id.into_owned());
        if !matches!(&*kind, "user" | "assistant" | "system" | "attachment") || id.is_none() {
            out.report.line(Fate::Skipped, reason(&kind));
            return;
        }
        let parent = text(&found, "parentUuid").or_else(|| text(&found, "logicalParentUuid"));
        let parent = parent.map(|parent| parent.into_owned());
        if get(&found, "isSidechain") != Some("true") {
            self.main.push(record.raw, id, parent);
            return;
        }
        let agent = parent.as_ref().and_then(|parent| self.agent_of.get(parent));
        let agent = agent.copied().unwrap_or_else(|| {
            let name = text(&found, "agentId").map(|id| id.into_owned());
            let name = name.unwrap_or_else(|| format!("agent-{}", self.agents.len() + 1));
            self.agents.push((name, Branches::default()));
            self.agents.len() - 1
        });
        self.agent_of.insert(id.clone().unwrap_or_default(), agent);
        self.agents[agent].1.push(record.raw, id, parent);
    }

    fn finish(&mut self, out: &mut Output) {
        let alone = self.main.is_empty();
        let mut children = HashMap::new();
        for (name, lines) in &self.agents {
            if let Some(prompt) = lines.lines().first().and_then(|line| prompt(&line.raw)) {
                children.insert(prompt, format!("/{name}"));
            }
        }
        self.main.join_siblings(same_response);
        self.main
            .read(out, |lines, about, out| tell(lines, about, &children, out));
        for (name, lines) in &mut self.agents {
            lines.join_siblings(same_response);
            lines.read(out, |lines, mut about, out| {
                let fork = about.name.take().unwrap_or_default();
                if !alone || !fork.is_empty() {
                    let own = if alone {
                        String::new()
                    } else {
                        format!("/{name}")
                    };
                    about.name = Some(format!("{own}{fork}"));
                }
                tell(lines, about, &HashMap::new(), out)
            });
        }
    }
}

/// Why a line is not a part of a session.
fn reason(kind: &str) -> &'static str {
    match kind {
        "summary" => "summary (a title)",
        "file-history-snapshot" => "file-history-snapshot (files, not messages)",
        "queue-operation" => "queue-operation (repeats a message)",
        "progress" => "progress (of a tool that is running)",
        _ => "another type",
    }
}

/// The text that a subagent was started with.
fn prompt(raw: &str) -> Option<String> {
    let found = members(raw);
    let message = members(get(&found, "message")?);
    let content = get(&message, "content")?;
    let content = match elements(content).first() {
        Some(part) => get(&members(part), "text")?,
        None => content,
    };
    Some(canonical(content))
}

/// What makes lines of several branches one: the id of a response, for its lines and for the
/// results of its calls.
fn same_response(lines: &[Line]) -> Vec<Option<String>> {
    let mut calls: HashMap<String, String> = HashMap::new();
    let mut keys = Vec::with_capacity(lines.len());
    for line in lines {
        let found = members(&line.raw);
        let message = get(&found, "message").map(members).unwrap_or_default();
        let parts = elements(get(&message, "content").unwrap_or_default());
        let id = text(&message, "id").map(|id| id.into_owned());
        let mut key = id.clone();
        for part in parts {
            let part = members(part);
            match (text(&part, "type").as_deref(), &id) {
                (Some("tool_use"), Some(id)) => {
                    let call = text(&part, "id").unwrap_or_default();
                    calls.insert(call.into_owned(), id.clone());
                }
                (Some("tool_result"), _) => {
                    let call = text(&part, "tool_use_id").unwrap_or_default();
                    key = calls.get(&*call).cloned();
                }
                _ => {}
            }
        }
        keys.push(key);
    }
    keys
}

/// Tells one path. Returns the number of cycles after each line.
fn tell(
    lines: &[&Line],
    mut about: About,
    children: &HashMap<String, String>,
    out: &mut Output,
) -> Vec<usize> {
    let known = ["sessionId", "version", "cwd", "gitBranch", "agentId"];
    let first = lines
        .first()
        .map(|line| members(&line.raw))
        .unwrap_or_default();
    let of_log: Vec<Member<'_>> = first
        .into_iter()
        .filter(|(name, _)| known.contains(&&**name))
        .collect();
    if let Some(said) = object_without(&of_log, &[]) {
        about.meta.push(("session".into(), said));
    }
    let mut path = Path {
        session: out.session(about),
        children,
        model: String::new(),
        boundary: None,
    };
    // All lines of a response, at the first of them.
    let mut responses: HashMap<String, Vec<usize>> = HashMap::new();
    let mut told = HashSet::new();
    let ids: Vec<Option<String>> = lines.iter().map(|line| response_id(&line.raw)).collect();
    for (at, id) in ids.iter().enumerate() {
        if let Some(id) = id {
            responses.entry(id.clone()).or_default().push(at);
        }
    }
    let mut cycles = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        match &ids[at] {
            Some(id) if told.insert(id) => {
                let all: Vec<&Line> = responses[id].iter().map(|at| lines[*at]).collect();
                path.response(&all, out);
            }
            Some(_) => {}
            None => path.line(&line.raw, out),
        }
        cycles.push(out.cycles(path.session));
    }
    path.end(out);
    cycles
}

/// The id of the response that a line is of.
fn response_id(raw: &str) -> Option<String> {
    let found = members(raw);
    if text(&found, "type").as_deref() != Some("assistant") {
        return None;
    }
    let message = members(get(&found, "message")?);
    let id = text(&message, "id").or_else(|| text(&found, "uuid"));
    id.map(|id| id.into_owned())
}

struct Path<'a> {
    session: SessionId,
    /// The sessions of subagents by what they were asked.
    children: &'a HashMap<String, String>,
    model: String,
    /// A compaction whose summary has not come yet.
    boundary: Option<(Option<i64>, String)>,
}

impl Path<'_> {
    /// Tells a line that is not of a response.
    fn line(&mut self, raw: &str, out: &mut Output) {
        let found = members(raw);
        let time = get(&found, "timestamp").and_then(time);
        let kind = text(&found, "type").unwrap_or_default();
        match &*kind {
            "user" => {
                out.report.line(Fate::Understood, "user");
                self.user(&found, raw, time, out);
            }
            "system" => self.system(&found, time, out),
            _ => {
                self.end(out);
                out.report.line(Fate::Verbatim, &kind);
                out.event(self.session, Event::Message(verbatim(raw, time)));
            }
        }
    }

    fn user(&mut self, found: &[Member<'_>], raw: &str, time: Option<i64>, out: &mut Output) {
        let message = get(found, "message").map(members).unwrap_or_default();
        let mut message = match of_content(&message, &mut out.report) {
            Some(message) => message,
            None => {
                out.report.message(Fate::Verbatim, "of unknown form");
                verbatim(raw, time)
            }
        };
        message.time = time;
        if get(found, "toolUseResult").is_some() {
            out.report
                .skipped_member("toolUseResult (repeats a result)");
        }
        if get(found, "isCompactSummary") == Some("true") {
            for part in &mut message.parts {
                if part.kind == Some("text") {
                    part.kind = Some("summary");
                }
            }
            let (began, said) = self.boundary.take().unwrap_or((time, "{}".to_owned()));
            self.compact(vec![message], began, said, out);
            return;
        }
        self.end(out);
        out.event(self.session, Event::Message(message));
    }

    fn system(&mut self, found: &[Member<'_>], time: Option<i64>, out: &mut Output) {
        let subtype = text(found, "subtype").unwrap_or_default();
        match &*subtype {
            "compact_boundary" => {
                out.report.line(Fate::Understood, "compact_boundary");
                self.end(out);
                let said = get(found, "compactMetadata").map_or("{}".to_owned(), canonical);
                self.boundary = Some((time, said));
            }
            "api_error" => {
                out.report.line(Fate::Understood, "api_error");
                let known = ["type", "uuid", "parentUuid", "sessionId", "cwd", "version"];
                let said = object_without(found, &known).unwrap_or_else(|| "{}".to_owned());
                let failed = format!("{{\"error\":{said},\"status\":\"error\"}}");
                out.event(self.session, Event::Failed(failed));
            }
            _ => out.report.line(
                Fate::Skipped,
                &format!("system {subtype} (shown to the user)"),
            ),
        }
    }

    /// A compaction without a summary is one, too.
    fn end(&mut self, out: &mut Output) {
        if let Some((time, said)) = self.boundary.take() {
            self.compact(Vec::new(), time, said, out);
        }
    }

    fn compact(
        &mut self,
        summary: Vec<Message>,
        time: Option<i64>,
        said: String,
        out: &mut Output,
    ) {
        let compaction = Event::Compaction {
            summary,
            kept_from: usize::MAX,
            call: Call {
                time,
                meta: vec![("compaction".into(), said)],
                ..Call::default()
            },
        };
        out.event(self.session, compaction);
    }

    /// Tells a response, which all its lines make.
    fn response(&mut self, lines: &[&Line], out: &mut Output) {
        self.end(out);
        let mut reply: Option<Message> = None;
        let mut known = Call::default();
        for line in lines {
            let found = members(&line.raw);
            out.report.line(Fate::Understood, "assistant");
            let message = get(&found, "message").map(members).unwrap_or_default();
            if get(&found, "isApiErrorMessage") == Some("true") {
                let error = get(&message, "content").map_or("null".to_owned(), canonical);
                let failed = format!("{{\"error\":{error},\"status\":\"error\"}}");
                out.event(self.session, Event::Failed(failed));
                continue;
            }
            let time = get(&found, "timestamp").and_then(time);
            let Some(part) = of_content(&message, &mut out.report) else {
                out.report.message(Fate::Verbatim, "of unknown form");
                out.event(self.session, Event::Message(verbatim(&line.raw, time)));
                continue;
            };
            known = call(&message);
            known.time = time;
            let request = get_string(&found, "requestId").map(canonical);
            known
                .usage
                .extend(request.map(|id| ("request_id".into(), id)));
            self.model(&message, out);
            match &mut reply {
                Some(reply) => append(reply, part),
                None => reply = Some(Message { time, ..part }),
            }
        }
        let Some(mut reply) = reply else {
            return;
        };
        self.link(&mut reply);
        out.event(self.session, Event::Reply(vec![reply], known));
    }

    fn model(&mut self, message: &[Member<'_>], out: &mut Output) {
        let Some(model) = get_string(message, "model").map(canonical) else {
            return;
        };
        if model != self.model {
            let parameters = format!("{{\"model\":{model}}}");
            out.event(self.session, Event::Parameters(parameters));
            self.model = model;
        }
    }

    /// Names the session of a subagent on the call that started it.
    fn link(&self, reply: &mut Message) {
        for part in &mut reply.parts {
            let input = part.content.as_deref().and_then(string);
            let Some(input) = input.filter(|_| part.kind == Some("call")) else {
                continue;
            };
            let prompt = get(&members(&input), "prompt").map(canonical);
            if let Some(child) = prompt.and_then(|prompt| self.children.get(&prompt)) {
                part.set("data_child_session", quoted(child));
            }
        }
    }
}

/// Adds the parts of another line of a response.
fn append(reply: &mut Message, more: Message) {
    for part in &mut reply.parts {
        part.data.retain(|(name, _)| name != "data_shape");
    }
    reply.parts.extend(more.parts.into_iter().map(|mut part| {
        part.data.retain(|(name, _)| name != "data_shape");
        part
    }));
}

/// A line that is kept as it is.
fn verbatim(raw: &str, time: Option<i64>) -> Message {
    let mut part = Part::verbatim("line", None, raw);
    part.set("data_form", quoted("anthropic"));
    Message {
        role: Some("user".to_owned()),
        time,
        parts: vec![part],
        ..Message::default()
    }
}
