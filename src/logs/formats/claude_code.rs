//! Sessions of Claude Code: one object a line, each naming the line before it.
//!
//! A transcript: the system prompt and the tools are not in it. Messages are those of Anthropic's
//! API ([`super::anthropic`]). A response is written as several lines with one `message.id`, which
//! are one message here; its usage is counted once. Where tools run side by side, lines of one
//! response and their results are branches of each other and belong to one path. The shape is
//! undocumented and moves: lines of unknown type are counted, not refused.

use super::anthropic::{call, of_content};
use super::branches::{BranchLine, Branches, PathMarks, REPEATED, ReadPaths};
use super::prelude::*;
use super::transcript::{another, model};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// Lines of messages have a session, an id and a parent.
pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let has = |name| get(found, name).is_some();
    let is_known = match &*text(found, "type").unwrap_or_default() {
        "user" | "assistant" => has("uuid") && has("message"),
        "system" | "attachment" | "progress" => has("uuid") && has("parentUuid"),
        "summary" => has("leafUuid"),
        "file-history-snapshot" => has("messageId"),
        "queue-operation" => has("operation"),
        kind => (title(kind, found).is_some() || reason(kind) != ANOTHER) && has("sessionId"),
    };
    is_known.into()
}

/// The session's title in a line that is one, as JSON, and how much it counts.
fn title<'a>(kind: &str, found: &[Member<'a>]) -> Option<(u8, &'a str)> {
    let (rank, member) = match kind {
        "summary" => (0, "summary"),
        "ai-title" => (1, "aiTitle"),
        "custom-title" => (2, "customTitle"),
        _ => return None,
    };
    Some((rank, get_string(found, member)?))
}

/// Collects the lines of a log. Its sessions are given out at the end, when all branches are known.
#[derive(Clone, Default)]
pub(super) struct ClaudeCode {
    main: Branches,
    /// The lines of subagents in the same file, by the first of each.
    agents: Vec<(String, Branches)>,
    agent_of: HashMap<String, usize>,
    /// The id of the response that each call is of.
    responses: HashMap<String, Arc<str>>,
    /// Prompts that were in the queue, and that no message has yet.
    queued: Vec<String>,
    /// What was told of the paths, if the log may grow.
    told: Option<ReadPaths<BranchReader>>,
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
        if title(&kind, &found).is_some() {
            // A summary may be of another conversation of the project, which is in another log.
            let leaf = text(&found, "leafUuid").filter(|_| kind == "summary");
            if leaf.is_some_and(|leaf| !self.main.has(&leaf)) {
                let why = "summary (of a message that is not before it)";
                out.report.line(Fate::Skipped, why);
            } else {
                self.main.push(record, None, None, records);
            }
            return;
        }
        if kind == "queue-operation" {
            match text(&found, "content").filter(|prompt| !prompt.is_empty()) {
                Some(prompt) => self.queued.push(prompt.into_owned()),
                None => out.report.line(Fate::Skipped, reason(&kind)),
            }
            return;
        }
        let about = json.inside(&found, "compactMetadata");
        let kept = json.inside(&about, "preservedSegment");
        let parents = [
            text(&found, "parentUuid"),
            text(&found, "logicalParentUuid"),
            text(&kept, "tailUuid"),
        ];
        let parent = parents.into_iter().flatten().next();
        let id = id.as_deref();
        let agent = self.agent(&found, id, parent.as_deref());
        let lines = self.lines_of(agent);
        // Lines that know of no parents follow each other.
        let last = lines
            .last_id()
            .filter(|_| get(&found, "parentUuid").is_none());
        let parent = parent.as_deref().or(last.as_deref());
        let is_message = matches!(&*kind, "user" | "assistant" | "system" | "attachment");
        let Some(id) = id.filter(|_| is_message) else {
            match reason(&kind) {
                ANOTHER => out.report.unknown_line(&another(&kind)),
                known => out.report.line(Fate::Skipped, known),
            }
            if let Some(id) = id {
                lines.pass(id, parent);
            }
            return;
        };
        if kind == "system" {
            count_unread(&found, &OF_LINE, "", &mut out.report);
        }
        let subtype = text(&found, "subtype").unwrap_or_default();
        if kind == "system" && !is_read(&subtype, &found) {
            let why = format!("system {subtype} (shown to the user)");
            out.report.line(Fate::Skipped, &why);
            lines.pass(id, parent);
            return;
        }
        let message = json.inside(&found, "message");
        if kind == "assistant" {
            count_unread(&message, &OF_RESPONSE, "message.", &mut out.report);
        }
        if !self.queued.is_empty() {
            self.dequeue(&found, &message, json, &mut out.report);
        }
        let key = self.key(&message, json);
        let lines = self.lines_of(agent);
        if !lines.push(record, Some(id), parent, records) {
            out.report.line(Fate::Skipped, REPEATED);
            return;
        }
        lines.set_key(key, kind == "assistant");
        if let Some((head, tail)) = text(&kept, "headUuid").zip(text(&kept, "tailUuid")) {
            let anchor = text(&kept, "anchorUuid").unwrap_or_default();
            lines.keep(&head, &tail, &anchor);
        }
    }

    fn copy(&mut self) -> Option<Box<dyn LogReader>> {
        self.told.get_or_insert_default();
        Some(Box::new(self.clone()))
    }

    fn finish(&mut self, records: &dyn Records, out: &mut Output) {
        for _ in self.queued.drain(..) {
            let why = "queue-operation (a prompt that was withdrawn)";
            out.report.line(Fate::Skipped, why);
        }
        self.agents.retain(|(_, lines)| !lines.is_empty());
        let alone = self.main.last_id().is_none();
        let mut children = SubagentsByPrompt::new();
        for (name, lines) in &self.agents {
            let first = lines.lines().first().map_or(0, |line| line.number);
            if let Some(prompt) = prompt(first, records) {
                let session = quoted(&format!("/{name}"));
                children.insert(prompt, Child { first, session });
            }
        }
        let children = Arc::new(children);
        self.main.join_siblings();
        if alone {
            for _ in self.main.lines() {
                out.report.line(Fate::Skipped, "title (of no message yet)");
            }
        } else {
            // The subagents of the log are looked for among all of its lines.
            let told = self.told.as_ref().filter(|_| self.agents.is_empty());
            self.main.read(told, out, |lines, about, marks, out| {
                tell(lines, about, marks, &children, records, out)
            });
        }
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
            lines.read(None, out, |lines, mut about, marks, out| {
                let fork = about.name.take().unwrap_or_default();
                about.name = Some(format!("/{name}{fork}"));
                about.parent = log.clone().filter(|_| alone);
                about.meta.push(("parent".into(), parent.clone()));
                tell(lines, about, marks, &Arc::default(), records, out)
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
const OF_LINE: [&str; 27] = words![
    type uuid parentUuid logicalParentUuid sessionId agentId isSidechain timestamp message requestId
    toolUseResult isApiErrorMessage isCompactSummary subtype compactMetadata microcompactMetadata attachment
    // Of the first line, for the session.
    cwd version gitBranch
    // Of lines for people, and how they were shown.
    userType isMeta isVisibleInTranscriptOnly level content
    // Of failed calls, which are kept whole.
    error retryAttempt
];

const OF_RESPONSE: [&str; 8] = words![id type role model content stop_reason stop_sequence usage];

const ANOTHER: &str = "another type";

/// Why a line is skipped.
fn reason(kind: &str) -> &'static str {
    match kind {
        "summary" | "ai-title" | "custom-title" => "a title without a text",
        "file-history-snapshot" => "file-history-snapshot (files, not messages)",
        "queue-operation" => "queue-operation (without a prompt)",
        "progress" => "progress (of a tool that is running)",
        "last-prompt" => "last-prompt (for the list of sessions)",
        "permission-mode" | "mode" => "mode (of the program)",
        "agent-name" | "agent-color" | "agent-setting" => "agent setting (of the program)",
        "pr-link" | "tag" | "worktree-state" => "pr-link, tag, worktree-state (for people)",
        _ => ANOTHER,
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

/// Whether the model is sent something of a line of the program, or it says what a call was.
fn is_read(subtype: &str, found: &[Member<'_>]) -> bool {
    match subtype {
        "compact_boundary" | "microcompact_boundary" | "api_error" => true,
        "local_command" => get_string(found, "content").is_some(),
        _ => false,
    }
}

impl ClaudeCode {
    /// The position of the subagent that a line is of.
    fn agent(
        &mut self,
        found: &[Member<'_>],
        id: Option<&str>,
        parent: Option<&str>,
    ) -> Option<usize> {
        if get(found, "isSidechain") != Some("true") {
            return None;
        }
        let of_parent = parent.and_then(|parent| self.agent_of.get(parent)).copied();
        let name = text(found, "agentId");
        let mut names = self.agents.iter().map(|(known, _)| known);
        let of_name = || names.position(|known| Some(&**known) == name.as_deref());
        let agent = of_parent.or_else(of_name).unwrap_or_else(|| {
            let number = self.agents.len();
            let name = name.map_or(format!("agent-{}", number + 1), Cow::into_owned);
            self.agents.push((name, Branches::default()));
            number
        });
        self.agent_of.extend(id.map(|id| (id.to_owned(), agent)));
        Some(agent)
    }

    /// The lines of a subagent, or of the session itself.
    fn lines_of(&mut self, agent: Option<usize>) -> &mut Branches {
        let agent = agent.and_then(|at| self.agents.get_mut(at));
        agent.map_or(&mut self.main, |(_, lines)| lines)
    }

    /// Counts the prompts of the queue that a message or an attachment has.
    fn dequeue(
        &mut self,
        found: &[Member<'_>],
        message: &[Member<'_>],
        json: Accepted<'_>,
        report: &mut ImportReport,
    ) {
        let mut said = Vec::new();
        for raw in [get(message, "content"), get(found, "attachment")] {
            texts(raw.unwrap_or_default(), json, &mut said);
        }
        self.queued.retain(|prompt| {
            let is_there = said.iter().any(|text| text.contains(&**prompt));
            if is_there {
                report.line(Fate::Skipped, "queue-operation (repeats a message)");
            }
            !is_there
        });
    }

    /// What makes lines of branches one: the id of a response, for its lines and the results of its calls.
    fn key(&mut self, message: &[Member<'_>], json: Accepted<'_>) -> Option<Arc<str>> {
        let id: Option<Arc<str>> = text(message, "id").map(Arc::from);
        let mut key = id.clone();
        for part in json.elements(get(message, "content").unwrap_or_default()) {
            let part = json.members(part);
            match (text(&part, "type").as_deref(), &id) {
                (Some("tool_use"), Some(id)) => {
                    let call = text(&part, "id").unwrap_or_default();
                    self.responses.insert(call.into_owned(), Arc::clone(id));
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

/// The strings in a value, members of members too.
fn texts<'a>(raw: &'a str, json: Accepted<'_>, found: &mut Vec<Cow<'a, str>>) {
    let mut open = vec![raw];
    while let Some(raw) = open.pop() {
        match value_type(raw) {
            ValueType::String => found.extend(string(raw)),
            ValueType::Array => open.extend(json.elements(raw)),
            ValueType::Object => open.extend(json.members(raw).iter().map(|(_, raw)| *raw)),
            _ => {}
        }
    }
}

/// Whether all strings of a value are in one of the texts, line by line: there a line may have a number before it.
fn repeats(raw: &str, json: Accepted<'_>, said: &[Cow<'_, str>]) -> bool {
    let mut own = Vec::new();
    texts(raw, json, &mut own);
    own.iter().all(|text| {
        said.iter().any(|said| {
            let mut rest = &**said;
            let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.all(|line| {
                // Mostly one line follows the other there, too, and nothing has to be looked for.
                let next = rest.trim_start();
                let after = next.strip_prefix(line).or_else(|| {
                    let at = rest.find(line)?;
                    rest.get(at + line.len()..)
                });
                rest = after.unwrap_or_default();
                after.is_some()
            })
        })
    })
}

/// Keeps the members of a line that nothing reads and that have words which the message does not have, such as todos;
/// counts them and the others.
fn keep_unread(
    found: &[Member<'_>],
    message: &mut LogMessage,
    json: Accepted<'_>,
    report: &mut ImportReport,
) {
    let is_unread = |(name, raw): &&Member<'_>| !OF_LINE.contains(&&**name) && *raw != "null";
    let mut kept = Vec::new();
    for member @ (name, raw) in found.iter().filter(is_unread) {
        let mut own = Vec::new();
        texts(raw, json, &mut own);
        let parts = message.parts.iter();
        let said = parts.filter_map(|part| string(part.content.as_deref()?));
        let has_words = own.iter().any(|text| text.contains(' '));
        if has_words && !repeats(raw, json, &said.collect::<Vec<_>>()) {
            report.member(name);
            kept.push(member.clone());
        } else {
            report.skipped_member(name);
        }
    }
    message.first().keep_rest("data_record", &kept, &[]);
}

/// What an attachment says to the model, as JSON, and its other members.
fn attached(found: &[Member<'_>], depth: usize) -> Option<(String, Option<String>)> {
    let names = words![prompt content snippet addedLines addedBlocks file];
    names.into_iter().find_map(|name| {
        let raw = get(found, name)?;
        let others = object_without(found, &[name]);
        match value_type(raw) {
            ValueType::String if raw != "\"\"" => Some((canonical(raw), others)),
            ValueType::Array => {
                let lines = elements(raw).into_iter().map(|raw| match value_type(raw) {
                    ValueType::String => string(raw),
                    // With an image in it, the whole is an unknown one.
                    _ => Some(members(raw))
                        .filter(|part| part.len() == 2)
                        .and_then(|part| text(&part, "text")),
                });
                let lines: Option<Vec<_>> = lines.collect();
                let lines = lines.filter(|lines| !lines.is_empty())?;
                Some((quoted(&lines.join("\n")), others))
            }
            ValueType::Object if depth > 0 => {
                let (text, inner) = attached(&members(raw), depth - 1)?;
                let own = found.iter().filter(|(known, _)| known != name).cloned();
                let inner = inner.as_deref().map(|inner| (name.into(), inner));
                let others: Vec<Member<'_>> = own.chain(inner).collect();
                Some((text, object_without(&others, &[])))
            }
            _ => None,
        }
    })
}

/// Passes on one path. Returns the number of cycles after each line.
fn tell(
    lines: &[&BranchLine],
    about: About,
    marks: &mut PathMarks<BranchReader>,
    children: &Arc<SubagentsByPrompt>,
    records: &dyn Records,
    out: &mut Output,
) -> Vec<usize> {
    // All lines of a response, at the first of them.
    let mut responses: HashMap<&str, Vec<usize>> = HashMap::new();
    let ids: Vec<Option<&str>> = lines.iter().map(|line| response_id(line)).collect();
    for (at, id) in ids.iter().enumerate() {
        if let Some(id) = id {
            responses.entry(id).or_default().push(at);
        }
    }
    let boundaries = boundaries(&ids, &responses);
    let before = marks.before.take();
    let before = before.filter(|mark| boundaries.binary_search(&mark.at).is_ok());
    let (mut path, mut cycles) = match before {
        Some(mark) => {
            let session = marks.resume(&mark, lines, out);
            let reader = BranchReader {
                session,
                ..mark.reader
            };
            (reader, mark.cycles)
        }
        None => {
            let path = BranchReader::begin(lines, about, children, records, out);
            (path, Vec::with_capacity(lines.len()))
        }
    };
    let mut seen = HashSet::new();
    for (at, line) in lines.iter().enumerate().skip(cycles.len()) {
        // Lines that come later may belong to the last response.
        if boundaries.last() == Some(&at) {
            marks.mark(&path, path.session, &cycles, out);
        }
        let before = path.messages;
        let place = match &ids[at] {
            Some(id) if seen.insert(id) => {
                let all: Vec<&BranchLine> = responses[id].iter().map(|at| lines[*at]).collect();
                path.response(&all, records, out);
                before..path.messages
            }
            Some(id) => path.places[responses[id][0]].clone(),
            None => {
                out.report.pause(line.is_told());
                records.again(line.number, &mut |line| path.line(line, &lines[..at], out));
                before..path.messages
            }
        };
        path.places.push(place);
        cycles.push(out.cycles(path.session));
    }
    out.report.pause(false);
    path.end(out);
    // The working state has the last one.
    count_title(path.title.take(), usize::MAX, &mut out.report);
    out.close(path.session);
    cycles
}

/// The lines that begin a response, ascending, where each response before has all of its lines before. A path can be told on
/// from there.
fn boundaries(ids: &[Option<&str>], responses: &HashMap<&str, Vec<usize>>) -> Vec<usize> {
    let mut found = Vec::new();
    // Behind the last line of the responses so far.
    let mut end = 0;
    for (at, id) in ids.iter().enumerate() {
        let lines = id.and_then(|id| responses.get(id));
        if let Some([first, .., last] | [first @ last]) = lines.map(Vec::as_slice)
            && *first == at
        {
            if end <= at {
                found.push(at);
            }
            end = end.max(last + 1);
        }
    }
    found
}

fn response_id(line: &BranchLine) -> Option<&str> {
    let id = line.key.as_deref().or(line.id.as_deref());
    id.filter(|_| line.is_reply)
}

/// What is known before a line of a path.
#[derive(Clone)]
struct BranchReader {
    session: SessionId,
    children: Arc<SubagentsByPrompt>,
    /// What calls ask subagents for, by the id of the call.
    prompts: HashMap<String, String>,
    /// A compaction whose summary has not come yet.
    boundary: Option<Boundary>,
    /// The calls that failed since then.
    failed: Vec<String>,
    /// How many messages there were so far.
    messages: usize,
    /// Of each line the messages that it became.
    places: Vec<Range<usize>>,
    /// The arguments of the calls of the last response.
    asked: Vec<String>,
    title: Option<KnownTitle>,
}

#[derive(Clone)]
struct KnownTitle {
    /// How much it counts.
    rank: u8,
    /// How many snapshots came before it.
    cycles: usize,
    kind: String,
    is_counted: bool,
}

fn other_title(kind: &str) -> String {
    format!("{kind} (another title counts)")
}

/// Counts the line of a title once another title or the end comes, after `cycles` snapshots.
fn count_title(title: Option<KnownTitle>, cycles: usize, report: &mut ImportReport) {
    let Some(title) = title else {
        return;
    };
    let paused = report.is_paused();
    report.pause(title.is_counted);
    if title.cycles < cycles {
        report.line(Fate::Understood, &title.kind);
    } else {
        report.line(Fate::Skipped, &other_title(&title.kind));
    }
    report.pause(paused);
}

#[derive(Clone, Default)]
struct Boundary {
    time: Option<i64>,
    said: Option<String>,
    /// The messages that the model is still sent.
    kept: Range<usize>,
    kept_first: bool,
}

impl BranchReader {
    /// Begins the session of some lines.
    fn begin(
        lines: &[&BranchLine],
        mut about: About,
        children: &Arc<SubagentsByPrompt>,
        records: &dyn Records,
        out: &mut Output,
    ) -> Self {
        let known = words![sessionId version cwd gitBranch agentId];
        let of_log = |line: &LogRecord<'_>| {
            object_where(&line.json.members(line.raw), |name| known.contains(&name))
        };
        let first = lines.iter().find(|line| line.id.is_some());
        if let Some(line) = first {
            let said = records.read(line.number, of_log).flatten();
            about.meta.extend(said.map(|said| ("session".into(), said)));
        }
        let project = first.and_then(|line| {
            let read = |line: &LogRecord<'_>| {
                let found = line.json.members(line.raw);
                get_string(&found, "cwd").map(str::to_owned)
            };
            records.read(line.number, read).flatten()
        });
        about.of_agent("claude-code", project.as_deref());
        Self {
            session: out.session(about),
            children: Arc::clone(children),
            prompts: HashMap::new(),
            boundary: None,
            failed: Vec::new(),
            messages: 0,
            places: Vec::with_capacity(lines.len()),
            asked: Vec::new(),
            title: None,
        }
    }

    fn line(&mut self, line: &LogRecord<'_>, before: &[&BranchLine], out: &mut Output) {
        let found = line.json.members(line.raw);
        let time = get(&found, "timestamp").and_then(time);
        let kind = text(&found, "type").unwrap_or_default();
        match &*kind {
            "user" => {
                out.report.line(Fate::Understood, "user");
                self.user(&found, line, time, out);
            }
            "system" => self.system(&found, line, before, time, out),
            "attachment" => {
                self.end(out);
                let mut message = attachment(&found, line, &mut out.report);
                keep_unread(&found, &mut message, line.json, &mut out.report);
                self.say(message.at(time), out);
            }
            _ => {
                if let Some((rank, title)) = title(&kind, &found) {
                    self.title(&kind, rank, title, out);
                }
            }
        }
    }

    /// A title that another one replaces before a snapshot has it is skipped.
    fn title(&mut self, kind: &str, rank: u8, title: &str, out: &mut Output) {
        let cycles = out.cycles(self.session);
        let is_better = self.title.as_ref().is_none_or(|known| rank >= known.rank);
        if !is_better {
            out.report.line(Fate::Skipped, &other_title(kind));
            return;
        }
        let next = KnownTitle {
            rank,
            cycles,
            kind: kind.to_owned(),
            is_counted: out.report.is_paused(),
        };
        let before = self.title.replace(next);
        count_title(before, cycles, &mut out.report);
        out.event(self.session, Event::Title(canonical(title)));
    }

    fn say(&mut self, message: LogMessage, out: &mut Output) {
        self.messages += 1;
        out.event(self.session, Event::Message(message));
    }

    fn compact(&mut self, summary: Vec<LogMessage>, at: Boundary, out: &mut Output) {
        self.messages += summary.len();
        let compacted = Event::Compaction {
            summary,
            kept: at.kept,
            kept_first: at.kept_first,
            call: LogCall::compaction(at.said, at.time),
        };
        out.event(self.session, compacted);
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
                verbatim(line)
            }
        };
        message.time = time;
        message.injected = get(found, "isMeta") == Some("true");
        keep_unread(found, &mut message, json, &mut out.report);
        if let Some(result) = get(found, "toolUseResult") {
            self.keep_result(result, &mut message, json, &mut out.report);
        }
        if get(found, "isCompactSummary") == Some("true") {
            for part in &mut message.parts {
                if part.kind == Some("text") {
                    part.kind = Some("summary");
                }
            }
            let at = self.boundary.take();
            let at = at.unwrap_or_else(|| Boundary {
                time,
                ..Boundary::default()
            });
            self.compact(vec![message], at, out);
            self.fail(out);
            return;
        }
        self.end(out);
        self.link(&message, found, line, out);
        self.say(message, out);
    }

    /// Keeps what a tool said besides what the model is sent of it: members with a text that neither the
    /// result nor the call has.
    fn keep_result(
        &self,
        result: &str,
        message: &mut LogMessage,
        json: Accepted<'_>,
        report: &mut ImportReport,
    ) {
        let mut said: Vec<Cow<'_, str>> = Vec::new();
        let parts = message
            .parts
            .iter()
            .filter_map(|part| part.content.as_deref());
        // A part that is not a text is JSON.
        said.extend(parts.map(|content| string(content).unwrap_or(content.into())));
        said.extend(self.asked.iter().map(|input| input.as_str().into()));
        let rest = match value_type(result) {
            ValueType::Object => {
                let mut found = json.members(result);
                let before = found.len();
                found.retain(|(_, raw)| !repeats(raw, json, &said));
                if found.len() < before {
                    report.skipped_member("toolUseResult (repeats a result)");
                }
                object_without(&found, &[])
            }
            _ if repeats(result, json, &said) => {
                report.skipped_member("toolUseResult (repeats a result)");
                None
            }
            _ => Some(canonical(result)),
        };
        if let Some(rest) = rest {
            report.member("toolUseResult");
            let is_result = |part: &LogPart| part.field("data_call_id").is_some();
            let at = message.parts.iter().position(is_result);
            let part = match at.and_then(|at| message.parts.get_mut(at)) {
                Some(part) => part,
                None => message.first(),
            };
            part.set("data_tool_result", rest);
        }
    }

    fn system(
        &mut self,
        found: &[Member<'_>],
        line: &LogRecord<'_>,
        before: &[&BranchLine],
        time: Option<i64>,
        out: &mut Output,
    ) {
        let subtype = text(found, "subtype").unwrap_or_default();
        let content = get_string(found, "content");
        if subtype.ends_with("compact_boundary") && content.is_some() {
            out.report
                .skipped_member(&format!("text of {subtype} (for people)"));
        }
        match &*subtype {
            "compact_boundary" => {
                out.report.line(Fate::Understood, "compact_boundary");
                self.end(out);
                let about = line.json.inside(found, "compactMetadata");
                let kept = line.json.inside(&about, "preservedSegment");
                let place = |name| {
                    let id = text(&kept, name)?;
                    let at = before
                        .iter()
                        .rposition(|line| line.id.as_deref() == Some(&*id))?;
                    self.places.get(at)
                };
                let kept_places = place("headUuid").zip(place("tailUuid"));
                let kept_places = kept_places.map(|(head, tail)| head.start..tail.end);
                let anchor = text(&kept, "anchorUuid");
                self.boundary = Some(Boundary {
                    time,
                    said: get(found, "compactMetadata").map(canonical),
                    kept: kept_places.unwrap_or(NONE_KEPT),
                    kept_first: anchor.is_some() && anchor == text(found, "uuid"),
                });
            }
            "microcompact_boundary" => {
                out.report.line(Fate::Understood, "microcompact_boundary");
                self.end(out);
                let about = line.json.inside(found, "microcompactMetadata");
                let calls = line
                    .json
                    .elements(get(&about, "compactedToolIds").unwrap_or("[]"));
                let cleared = Event::Cleared {
                    calls: calls.into_iter().map(canonical).collect(),
                    content: quoted(CLEARED),
                    call: LogCall::compaction(
                        get(found, "microcompactMetadata").map(canonical),
                        time,
                    ),
                };
                out.event(self.session, cleared);
            }
            // A command of the user and what it printed, which the model is sent.
            "local_command" => {
                out.report.line(Fate::Understood, "local_command");
                self.end(out);
                let mut message = of_program(content.map(canonical)).at(time);
                message.injected = true;
                self.say(message, out);
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
            _ => {}
        }
    }

    /// A compaction without a summary is one, too.
    fn end(&mut self, out: &mut Output) {
        if let Some(at) = self.boundary.take() {
            self.compact(Vec::new(), at, out);
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
        let mut first_count: Option<String> = None;
        let messages = &mut self.messages;
        let mut read = |line: &LogRecord<'_>, out: &mut Output| {
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
            let Some(mut part) = of_content(&message, json, &mut out.report) else {
                out.report.message(Fate::Verbatim, "of unknown form");
                let whole = verbatim(line).at(time);
                *messages += 1;
                out.event(self.session, Event::Message(whole));
                return;
            };
            keep_unread(&found, &mut part, json, &mut out.report);
            // What the program says in the place of the model is not a reply: there was no request.
            if text(&message, "model").as_deref() == Some("<synthetic>") {
                part.reply = false;
                part.injected = true;
                *messages += 1;
                out.event(self.session, Event::Message(part.at(time)));
                return;
            }
            let mut said = call(&message);
            said.time = time;
            let request = get_string(&found, "requestId");
            let request = request.map(|id| ("request_id".into(), canonical(id)));
            said.usage.extend(request);
            first_count = first_count
                .take()
                .or_else(|| count_at_start(&message, &said));
            add_earlier(&mut said, std::mem::take(&mut known));
            known = said;
            if let Some(name) = get_string(&message, "model") {
                out.event(self.session, Event::Parameters(model(name)));
            }
            let Some(reply) = &mut reply else {
                reply = Some(part.at(time));
                return;
            };
            // The parts of another line of it: no line says the form of the whole list, and it is whole with the last.
            reply.time = time.or(reply.time);
            reply.parts.extend(part.parts);
            for part in &mut reply.parts {
                part.data.retain(|(name, _)| name != "data_shape");
            }
        };
        for line in lines {
            out.report.pause(line.is_told());
            records.again(line.number, &mut |line| read(line, out));
        }
        let Some(reply) = reply else {
            return;
        };
        self.messages += 1;
        let calls = reply.parts.iter().filter(|part| part.kind == Some("call"));
        let mut asked = Vec::new();
        for input in calls.filter_map(|part| string(part.content.as_deref()?)) {
            let mut found = Vec::new();
            texts(&input, Accepted::default(), &mut found);
            asked.extend(found.into_iter().map(Cow::into_owned));
        }
        self.asked = asked;
        self.note_prompts(&reply);
        leave_out_unfinished(&mut known, first_count.as_ref());
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

/// Adds what an earlier line of a response says and a later one does not. Counts are all of one line: the last that has
/// any.
fn add_earlier(call: &mut LogCall, earlier: LogCall) {
    let says = |call: &LogCall, name: &str| call.usage.iter().any(|(known, _)| known == name);
    let is_counted = says(call, "provider");
    for (name, value) in earlier.usage {
        if !says(call, &name) && (!is_counted || name == "stop_reason") {
            call.usage.push((name, value));
        }
    }
}

const OUTPUT: &str = "output_tokens";

/// The count of a line that is not the end of its response: it names no reason to stop, though it has a place for one.
fn count_at_start(message: &[Member<'_>], call: &LogCall) -> Option<String> {
    let mut usage = call.usage.iter();
    let count = usage.find(|(name, _)| name == OUTPUT);
    let count = count.filter(|_| get(message, "stop_reason") == Some("null"));
    count.map(|(_, count)| count.clone())
}

/// Leaves out the count of a reply whose end the log does not have. While a response streams in, each of its lines has
/// the count with which it began, one token or a few; the provider says the whole at the end, with the reason to stop.
/// A count that grew is the whole, too.
fn leave_out_unfinished(call: &mut LogCall, first: Option<&String>) {
    let is_ended = call.usage.iter().any(|(name, _)| name == "stop_reason");
    let is_first = |count: &String| first == Some(count);
    call.usage
        .retain(|(name, count)| is_ended || name != OUTPUT || !is_first(count));
}

/// What the program has the model see in the place of a result that it cleared.
const CLEARED: &str = "[Old tool result content cleared]";

/// A message of the program itself, with the role of the user.
fn of_program(content: Option<String>) -> LogMessage {
    let part = LogPart::new("text", content.unwrap_or_default());
    let part = part.with("data_form", quoted("anthropic"));
    LogMessage::new(Some("user".to_owned()), vec![part])
}

fn attachment(found: &[Member<'_>], line: &LogRecord<'_>, report: &mut ImportReport) -> LogMessage {
    let raw = get(found, "attachment").unwrap_or("{}");
    let inner = line.json.members(raw);
    let Some((content, others)) = attached(&inner, 3) else {
        report.line(Fate::Verbatim, "attachment");
        return verbatim(line);
    };
    report.line(Fate::Understood, "attachment");
    report.message(Fate::Understood, "user");
    report.part(Fate::Understood, "text");
    let mut message = of_program(Some(content));
    message.injected = text(&inner, "type").as_deref() != Some("queued_command");
    if let Some(others) = others {
        report.member("attachment");
        message.first().set("data_attachment", others);
    }
    message
}

fn verbatim(line: &LogRecord<'_>) -> LogMessage {
    let part = LogPart::verbatim("line", None, line.raw).with("data_form", quoted("anthropic"));
    let mut message = LogMessage::new(Some("user".to_owned()), vec![part]);
    message.injected = true;
    message
}
