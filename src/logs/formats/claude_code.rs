//! Sessions of Claude Code: one object a line, each naming the line before it.
//!
//! A transcript: the system prompt and the tools are not in it. Messages are those of Anthropic's
//! API ([`super::anthropic`]). A response is written as several lines with one `message.id`, which
//! are one message here; its usage is counted once. Where tools run side by side, lines of one
//! response and their results are branches of each other and belong to one path. The shape is
//! undocumented and moves: lines of unknown type are counted, not refused.

use super::anthropic::{call, of_content};
use super::branches::{BranchLine, Branches, REPEATED};
use super::fields::{count_unread, get_string, text, time, words};
use super::reader::{LogReader, LogRecord, Records, Sniff};
use super::transcript::model;
use crate::json::{Accepted, Member, get, members, string};
use crate::logs::json::{canonical, object, quoted};
use crate::logs::log::{
    About, Event, LogCall, LogMessage, LogPart, OWNER, failed, object_where, object_without,
};
use crate::logs::output::{Output, SessionId};
use crate::logs::report::Fate;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// Lines of messages have a session, an id and a parent.
pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let has = |name| get(found, name).is_some();
    let kind = text(found, "type").unwrap_or_default();
    if kind == "summary" && has("leafUuid") {
        return Sniff::Maybe;
    }
    let is_message = matches!(&*kind, "user" | "assistant" | "system");
    (is_message && has("sessionId") && has("uuid") && has("parentUuid")).into()
}

/// Collects the lines of a log. Its sessions are given out at the end, when all branches are known.
#[derive(Default)]
pub(super) struct ClaudeCode {
    main: Branches,
    /// The lines of subagents in the same file, by the first of each.
    agents: Vec<(String, Branches)>,
    agent_of: HashMap<String, usize>,
    /// The id of the response that each call is of.
    responses: HashMap<String, Rc<str>>,
}

struct Child {
    first: usize,
    /// Its session, after the name of that in which it was started, as JSON.
    session: String,
}

type SubagentsByPrompt = HashMap<String, Child>;

impl LogReader for ClaudeCode {
    fn record(&mut self, record: &LogRecord<'_>, records: &dyn Records, out: &mut Output) {
        let json = record.json;
        let found = json.members(record.raw);
        let kind = text(&found, "type").unwrap_or_default();
        let id = text(&found, "uuid");
        if !matches!(&*kind, "user" | "assistant" | "system" | "attachment") || id.is_none() {
            match reason(&kind) {
                "another type" => out.report.unknown_line("another type"),
                known => out.report.line(Fate::Skipped, known),
            }
            return;
        }
        count_unread(&found, &OF_LINE, "", &mut out.report);
        let message = json.inside(&found, "message");
        if kind == "assistant" {
            count_unread(&message, &OF_RESPONSE, "message.", &mut out.report);
        }
        let key = self.key(&message, json);
        let parent = text(&found, "parentUuid").or_else(|| text(&found, "logicalParentUuid"));
        let parent = parent.as_deref();
        let lines = if get(&found, "isSidechain") != Some("true") {
            &mut self.main
        } else {
            let agent = parent.and_then(|parent| self.agent_of.get(parent));
            let agent = agent.copied().unwrap_or_else(|| {
                let name = text(&found, "agentId").map(|id| id.into_owned());
                let name = name.unwrap_or_else(|| format!("agent-{}", self.agents.len() + 1));
                self.agents.push((name, Branches::default()));
                self.agents.len() - 1
            });
            let id = id.as_deref().unwrap_or_default();
            self.agent_of.insert(id.to_owned(), agent);
            &mut self.agents[agent].1
        };
        if lines.push(record, id.as_deref(), parent, records) {
            lines.set_key(key, kind == "assistant")
        } else {
            out.report.line(Fate::Skipped, REPEATED)
        }
    }

    fn finish(&mut self, records: &dyn Records, out: &mut Output) {
        let alone = self.main.is_empty();
        let mut children = SubagentsByPrompt::new();
        for (name, lines) in &self.agents {
            let first = lines.lines().first().map_or(0, |line| line.number);
            if let Some(prompt) = prompt(first, records) {
                let session = quoted(&format!("/{name}"));
                children.insert(prompt, Child { first, session });
            }
        }
        self.main.join_siblings();
        self.main.read(out, |lines, about, out| {
            tell(lines, about, &children, records, out)
        });
        let calls = if self.agents.is_empty() {
            HashMap::new()
        } else {
            calls(self.main.lines(), records)
        };
        for (name, lines) in &mut self.agents {
            let first = lines.lines().first().map_or(0, |line| line.number);
            let call = prompt(first, records).and_then(|prompt| calls.get(&prompt));
            let parent = call.map_or(OWNER.to_owned(), |call| {
                object([("call_id", &**call), ("session", "\"..\"")])
            });
            let log = records.read(first, |line| {
                let found = line.json.members(line.raw);
                text(&found, "sessionId").map(Cow::into_owned)
            });
            let log = log.flatten();
            lines.join_siblings();
            lines.read(out, |lines, mut about, out| {
                let fork = about.name.take().unwrap_or_default();
                about.name = Some(format!("/{name}{fork}"));
                about.parent = log.clone().filter(|_| alone);
                about.meta.push(("parent".into(), parent.clone()));
                tell(lines, about, &HashMap::new(), records, out)
            });
        }
    }
}

/// The ids of calls by the prompt that each has for a subagent, both as JSON.
fn calls(lines: &[BranchLine], records: &dyn Records) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for line in lines.iter().filter(|line| line.is_reply) {
        records.again(line.number, &mut |line| {
            let json = line.json;
            let record = json.members(line.raw);
            let message = json.inside(&record, "message");
            for part in json.elements(get(&message, "content").unwrap_or_default()) {
                let part = json.members(part);
                let input = json.inside(&part, "input");
                if let (Some(prompt), Some(id)) = (get_string(&input, "prompt"), get(&part, "id")) {
                    found.insert(canonical(prompt), canonical(id));
                }
            }
        });
    }
    found
}

/// The members of a line that are read, say where it is written, or are counted elsewhere.
const OF_LINE: [&str; 26] = words![
    type uuid parentUuid logicalParentUuid sessionId agentId isSidechain timestamp message requestId
    toolUseResult isApiErrorMessage isCompactSummary subtype compactMetadata attachment
    // Of the first line, for the session.
    cwd version gitBranch
    // Of lines for people, and how they were shown.
    userType isMeta isVisibleInTranscriptOnly level content
    // Of failed calls, which are kept whole.
    error retryAttempt
];

const OF_RESPONSE: [&str; 8] = words![id type role model content stop_reason stop_sequence usage];

fn reason(kind: &str) -> &'static str {
    match kind {
        "summary" => "summary (a title)",
        "file-history-snapshot" => "file-history-snapshot (files, not messages)",
        "queue-operation" => "queue-operation (repeats a message)",
        "progress" => "progress (of a tool that is running)",
        _ => "another type",
    }
}

fn prompt(number: usize, records: &dyn Records) -> Option<String> {
    let read = |line: &LogRecord<'_>| {
        let json = line.json;
        let found = json.members(line.raw);
        let message = json.members(get(&found, "message")?);
        let content = get(&message, "content")?;
        let content = match json.elements(content).first() {
            Some(part) => get(&json.members(part), "text")?,
            None => content,
        };
        Some(canonical(content))
    };
    records.read(number, read).flatten()
}

impl ClaudeCode {
    /// What makes lines of branches one: the id of a response, for its lines and the results of its calls.
    fn key(&mut self, message: &[Member<'_>], json: Accepted<'_>) -> Option<Rc<str>> {
        let id: Option<Rc<str>> = text(message, "id").map(Rc::from);
        let mut key = id.clone();
        for part in json.elements(get(message, "content").unwrap_or_default()) {
            let part = json.members(part);
            match (text(&part, "type").as_deref(), &id) {
                (Some("tool_use"), Some(id)) => {
                    let call = text(&part, "id").unwrap_or_default();
                    self.responses.insert(call.into_owned(), Rc::clone(id));
                }
                (Some("tool_result"), _) => {
                    let call = text(&part, "tool_use_id").unwrap_or_default();
                    key = self.responses.get(&*call).cloned();
                }
                _ => {}
            }
        }
        key
    }
}

/// A line without `toolUseResult`, which repeats the result and is often half of the line; the subagent in it stays.
fn without_result(raw: &str, found: &[Member<'_>]) -> Option<String> {
    let result = get(found, "toolUseResult")?;
    let start = (result.as_ptr() as usize).checked_sub(raw.as_ptr() as usize)?;
    let agent = if result.contains("\"agentId\"") {
        get(&members(result), "agentId").unwrap_or("null")
    } else {
        "null"
    };
    let (before, after) = (raw.get(..start)?, raw.get(start + result.len()..)?);
    Some(format!("{before}{{\"agentId\":{agent}}}{after}"))
}

/// Passes on one path. Returns the number of cycles after each line.
fn tell(
    lines: &[&BranchLine],
    mut about: About,
    children: &SubagentsByPrompt,
    records: &dyn Records,
    out: &mut Output,
) -> Vec<usize> {
    let known = words![sessionId version cwd gitBranch agentId];
    let of_log = |line: &LogRecord<'_>| {
        object_where(&line.json.members(line.raw), |name| known.contains(&name))
    };
    let said = lines.first().map(|line| records.read(line.number, of_log));
    if let Some(said) = said.flatten().flatten() {
        about.meta.push(("session".into(), said));
    }
    let mut path = BranchReader {
        session: out.session(about),
        children,
        prompts: HashMap::new(),
        boundary: None,
        failed: Vec::new(),
    };
    // All lines of a response, at the first of them.
    let mut responses: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut seen = HashSet::new();
    let ids: Vec<Option<&str>> = lines.iter().map(|line| response_id(line)).collect();
    for (at, id) in ids.iter().enumerate() {
        if let Some(id) = id {
            responses.entry(id).or_default().push(at);
        }
    }
    let mut cycles = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        match &ids[at] {
            Some(id) if seen.insert(id) => {
                let all: Vec<&BranchLine> = responses[id].iter().map(|at| lines[*at]).collect();
                path.response(&all, records, out);
            }
            Some(_) => {}
            None => records.again(line.number, &mut |line| path.line(line, out)),
        }
        cycles.push(out.cycles(path.session));
    }
    path.end(out);
    out.close(path.session);
    cycles
}

fn response_id(line: &BranchLine) -> Option<&str> {
    let id = line.key.as_deref().or(line.id.as_deref());
    id.filter(|_| line.is_reply)
}

struct BranchReader<'a> {
    session: SessionId,
    children: &'a SubagentsByPrompt,
    /// What calls ask subagents for, by the id of the call.
    prompts: HashMap<String, String>,
    /// A compaction whose summary has not come yet.
    boundary: Option<(Option<i64>, Option<String>)>,
    /// The calls that failed since then.
    failed: Vec<String>,
}

impl BranchReader<'_> {
    fn line(&mut self, line: &LogRecord<'_>, out: &mut Output) {
        let found = line.json.members(line.raw);
        let time = get(&found, "timestamp").and_then(time);
        let kind = text(&found, "type").unwrap_or_default();
        match &*kind {
            "user" => {
                out.report.line(Fate::Understood, "user");
                self.user(&found, line, time, out);
            }
            "system" => self.system(&found, time, out),
            _ => {
                self.end(out);
                out.report.line(Fate::Verbatim, &kind);
                out.event(self.session, Event::Message(verbatim(line, &found, time)));
            }
        }
    }

    fn user(
        &mut self,
        found: &[Member<'_>],
        line: &LogRecord<'_>,
        time: Option<i64>,
        out: &mut Output,
    ) {
        let json = line.json;
        let message = json.inside(found, "message");
        let mut message = match of_content(&message, json, &mut out.report) {
            Some(message) => message,
            None => {
                out.report.message(Fate::Verbatim, "of unknown form");
                verbatim(line, found, time)
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
            let (began, said) = self.boundary.take().unwrap_or((time, None));
            let compacted = Event::compacted(vec![message], usize::MAX, said, began);
            out.event(self.session, compacted);
            self.fail(out);
            return;
        }
        self.end(out);
        self.link(&message, found, line, out);
        out.event(self.session, Event::Message(message));
    }

    fn system(&mut self, found: &[Member<'_>], time: Option<i64>, out: &mut Output) {
        let subtype = text(found, "subtype").unwrap_or_default();
        match &*subtype {
            "compact_boundary" => {
                out.report.line(Fate::Understood, "compact_boundary");
                self.end(out);
                self.boundary = Some((time, get(found, "compactMetadata").map(canonical)));
            }
            "api_error" => {
                out.report.line(Fate::Understood, "api_error");
                let known = ["type", "uuid", "parentUuid", "sessionId", "cwd", "version"];
                let said = object_without(found, &known).unwrap_or_else(|| "{}".to_owned());
                // An attempt of the cycle after the compaction, whether a summary follows or not.
                self.failed.push(failed(&said));
                if self.boundary.is_none() {
                    self.fail(out);
                }
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
            let compacted = Event::compacted(Vec::new(), usize::MAX, said, time);
            out.event(self.session, compacted);
        }
        self.fail(out);
    }

    fn fail(&mut self, out: &mut Output) {
        for failed in self.failed.drain(..) {
            out.event(self.session, Event::Failed(failed));
        }
    }

    fn response(&mut self, lines: &[&BranchLine], records: &dyn Records, out: &mut Output) {
        self.end(out);
        let mut reply: Option<LogMessage> = None;
        let mut known = LogCall::default();
        let mut read = |line: &LogRecord<'_>| {
            let json = line.json;
            let found = json.members(line.raw);
            out.report.line(Fate::Understood, "assistant");
            let message = json.inside(&found, "message");
            if get(&found, "isApiErrorMessage") == Some("true") {
                let error = get(&message, "content").map_or("null".to_owned(), canonical);
                out.event(self.session, Event::Failed(failed(&error)));
                return;
            }
            let time = get(&found, "timestamp").and_then(time);
            let Some(part) = of_content(&message, json, &mut out.report) else {
                out.report.message(Fate::Verbatim, "of unknown form");
                let whole = verbatim(line, &found, time);
                out.event(self.session, Event::Message(whole));
                return;
            };
            known = call(&message);
            known.time = time;
            let request = get_string(&found, "requestId");
            let request = request.map(|id| ("request_id".into(), canonical(id)));
            known.usage.extend(request);
            if let Some(name) = get_string(&message, "model") {
                out.event(self.session, Event::Parameters(model(name)));
            }
            let Some(reply) = &mut reply else {
                reply = Some(part.at(time));
                return;
            };
            // The parts of another line of it: no line says the form of the whole list.
            reply.parts.extend(part.parts);
            for part in &mut reply.parts {
                part.data.retain(|(name, _)| name != "data_shape");
            }
        };
        for line in lines {
            records.again(line.number, &mut read);
        }
        let Some(reply) = reply else {
            return;
        };
        self.note_prompts(&reply);
        out.event(self.session, Event::Reply(vec![reply], known));
    }

    fn note_prompts(&mut self, reply: &LogMessage) {
        if self.children.is_empty() {
            return;
        }
        for part in reply.parts.iter().filter(|part| part.kind == Some("call")) {
            let input = part.content.as_deref().and_then(string);
            let prompt = input.and_then(|input| get(&members(&input), "prompt").map(canonical));
            if let (Some(prompt), Some(id)) = (prompt, part.field("data_call_id")) {
                self.prompts.insert(id.to_owned(), prompt);
            }
        }
    }

    /// Names the session of a subagent on the call that started it: with the result, so that a log that
    /// grows does not change what was told before. The result names the subagent, or the lines before it
    /// have one with the same prompt.
    fn link(
        &self,
        message: &LogMessage,
        found: &[Member<'_>],
        line: &LogRecord<'_>,
        out: &mut Output,
    ) {
        let results = message.parts.iter();
        let calls = results.filter_map(|part| part.field("data_call_id").map(str::to_owned));
        let calls: BTreeSet<String> = calls.collect();
        let result = line.json.inside(found, "toolUseResult");
        let named = text(&result, "agentId").map(|id| quoted(&format!("/{id}")));
        for call in &calls {
            let child = self.prompts.get(call);
            let child = child.and_then(|prompt| self.children.get(prompt));
            let child = child.filter(|child| child.first < line.number);
            let child = child.map(|child| child.session.clone());
            let child = child.or_else(|| named.clone().filter(|_| calls.len() == 1));
            if let Some(session) = child {
                let call = call.clone();
                out.event(self.session, Event::Child { call, session });
            }
        }
    }
}

fn verbatim(line: &LogRecord<'_>, found: &[Member<'_>], time: Option<i64>) -> LogMessage {
    let short = without_result(line.raw, found);
    let part = LogPart::verbatim("line", None, short.as_deref().unwrap_or(line.raw));
    let part = part.with("data_form", quoted("anthropic"));
    LogMessage::new(Some("user".to_owned()), vec![part]).at(time)
}
