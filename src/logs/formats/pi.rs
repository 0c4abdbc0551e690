//! Sessions of the pi coding agent and of its kin, omp and openclaw: one entry a line, version 1 (a list) and later (a
//! tree). Which of them it is only some entries say.
//!
//! A transcript: the system prompt and the tools are not in it. `toolCall`, `thinking` and text
//! parts become blocks of kind `call`, `thinking` and `text`; a message `toolResult` is a result, and
//! `bashExecution`, a command of the user, two blocks of the user: a `text` that is the command, and a `result` that is
//! its output; the words that pi puts around them are not in the log. A reply that was cut off before it said anything is
//! an attempt. A compaction drops what was before the entry that it names, and adds its summary.

use super::branches::{Branches, REPEATED, ReadPaths};
use super::prelude::*;
use super::transcript::{WHOLE, contents, keep_in, named, typed};
use crate::logs::json::compact;
use std::collections::{BTreeMap, HashMap};

pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let has = |name: &str| get_string(found, name).is_some();
    let has_role = get_string(&inner(found, "message"), "role").is_some();
    let kind = text(found, "type").unwrap_or_default();
    let is_entry = match &*kind {
        "session" => has("cwd"),
        "message" => has("timestamp") && has_role,
        _ => {
            let is_known = matches!(&*kind, "compaction" | "branch_summary" | "custom_message");
            (is_known || of_program(&kind).is_some() || sets(&kind).is_some())
                && has("timestamp")
                && get(found, "parentId").is_some()
        }
    };
    is_entry.into()
}

/// What an entry sets for the calls after it: the members of it, and what they are called in a request.
fn sets(kind: &str) -> Option<&'static [(&'static str, &'static str)]> {
    Some(match kind {
        // That of the first version says what the calls begin with.
        "session" => &[
            ("modelId", "model"),
            ("provider", "provider"),
            ("thinkingLevel", "thinkingLevel"),
        ],
        "model_change" => &[("modelId", "model"), ("provider", "provider")],
        "thinking_level_change" => &[("thinkingLevel", "thinkingLevel")],
        "service_tier_change" => &[("tier", "serviceTier")],
        _ => return None,
    })
}

/// Why an entry that the model is never sent is skipped.
fn of_program(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "custom" => "custom (of an extension)",
        "label" => "label (for people)",
        "session_init" => "session_init (of the program)",
        "mode_change" => "mode_change (of the program)",
        "ttsr_injection" => "ttsr_injection (of the program)",
        // With a title they are understood.
        "session_info" => "session_info (without a name)",
        "title" => "title (without a text)",
        _ => return None,
    })
}

fn title<'a>(kind: &str, found: &[Member<'a>]) -> Option<&'a str> {
    match kind {
        "session_info" => get_string(found, "name"),
        "title" => get_string(found, "title"),
        _ => None,
    }
}

/// Why an entry is skipped, if it is.
fn skipped<'a>(kind: &'a str, title: Option<&str>) -> Option<&'a str> {
    match kind {
        "session" | "compaction" | "message" | "branch_summary" | "custom_message" => None,
        _ if title.is_some() || sets(kind).is_some() => None,
        _ => Some(of_program(kind).unwrap_or(named(kind))),
    }
}

/// The agent of pi's kin that writes such an entry.
fn kin(kind: &str, found: &[Member<'_>]) -> Option<&'static str> {
    let provider = text(&inner(found, "message"), "provider");
    let custom = text(found, "customType");
    let is_openclaw = [provider, custom].into_iter().flatten();
    if { is_openclaw }.any(|name| name.starts_with("openclaw")) {
        return Some("openclaw");
    }
    let of_omp = words![session_init title mode_change service_tier_change ttsr_injection];
    of_omp.contains(&kind).then_some("omp")
}

#[derive(Clone, Default)]
pub(super) struct Pi {
    branches: Branches,
    /// The agent that wrote it, if it is not pi itself.
    kin: Option<&'static str>,
    /// The session of a list of entries, which is read as it comes.
    list: Option<EntryList>,
    /// What was told of the paths, if the log may grow.
    told: Option<ReadPaths<EntryList>>,
}

#[derive(Clone)]
struct EntryList {
    session: SessionId,
    messages: usize,
    /// How many messages there were before each entry, by its position and by its id.
    before: Vec<usize>,
    by_id: HashMap<String, usize>,
    /// The parameters of the next call, by name.
    parameters: BTreeMap<&'static str, String>,
}

impl LogReader for Pi {
    fn record(&mut self, record: &LogRecord<'_>, records: &dyn Records, out: &mut Output) {
        let found = record.json.members(record.raw);
        if let Some(path) = &mut self.list {
            path.entry(&found, out);
            return;
        }
        let version = get(&found, "version").and_then(|raw| raw.parse::<u32>().ok());
        let is_header = text(&found, "type").as_deref() == Some("session");
        if self.branches.is_empty() && !(is_header && version.unwrap_or(1) > 1) {
            let path = self
                .list
                .insert(EntryList::new(about(&found, record.list, None), out));
            path.entry(&found, out);
            return;
        }
        let id = text(&found, "id").filter(|_| !is_header);
        let parent = text(&found, "parentId");
        let kind = text(&found, "type").unwrap_or_default();
        if self.kin.is_none() {
            self.kin = kin(&kind, &found);
            // What was read of the paths named another agent.
            if self.kin.is_some() && self.told.is_some() {
                self.told = Some(ReadPaths::default());
            }
        }
        if let Some((id, why)) = id.as_deref().zip(skipped(&kind, title(&kind, &found))) {
            out.report.line(Fate::Skipped, why);
            self.branches.pass(id, parent.as_deref());
            return;
        }
        // Those that some programs write without an id come after the line before.
        let last = self.branches.last_id().filter(|_| id.is_none());
        let parent = parent.as_deref().or(last.as_deref());
        if !self.branches.push(record, id.as_deref(), parent, records) {
            out.report.line(Fate::Skipped, REPEATED);
        }
    }

    fn copy(&mut self) -> Option<Box<dyn LogReader>> {
        self.told.get_or_insert_default();
        Some(Box::new(self.clone()))
    }

    fn finish(&mut self, records: &dyn Records, out: &mut Output) {
        let kin = self.kin;
        let told = self.told.as_ref();
        self.branches
            .read(told, out, |lines, of_branch, marks, out| {
                let (mut path, mut cycles) = match marks.before.take() {
                    Some(mark) => {
                        let session = marks.resume(&mark, lines, out);
                        let reader = EntryList {
                            session,
                            ..mark.reader
                        };
                        (reader, mark.cycles)
                    }
                    None => {
                        let header = lines.first().and_then(|line| {
                            records.read(line.number, |line| {
                                about(&line.json.members(line.raw), "", kin)
                            })
                        });
                        let mut about = header.unwrap_or_default();
                        about.name = of_branch.name;
                        about.meta.extend(of_branch.meta);
                        (EntryList::new(about, out), Vec::with_capacity(lines.len()))
                    }
                };
                for line in &lines[cycles.len()..] {
                    out.report.pause(line.is_told());
                    records.again(line.number, &mut |line| {
                        path.entry(&line.json.members(line.raw), out);
                    });
                    cycles.push(out.cycles(path.session));
                }
                out.report.pause(false);
                marks.mark(&path, path.session, &cycles, out);
                out.close(path.session);
                cycles
            });
    }
}

fn about(found: &[Member<'_>], location: &str, kin: Option<&str>) -> About {
    let is_header = text(found, "type").as_deref() == Some("session");
    let header = object_without(found, &["type"]).filter(|_| is_header);
    let meta = header.map(|header| ("session".into(), header));
    let mut about = About {
        location: location.to_owned(),
        meta: meta.into_iter().collect(),
        ..About::default()
    };
    about.of_agent(kin.unwrap_or("pi"), get_string(found, "cwd"));
    about
}

impl EntryList {
    fn new(about: About, out: &mut Output) -> Self {
        Self {
            session: out.session(about),
            messages: 0,
            before: Vec::new(),
            by_id: HashMap::new(),
            parameters: BTreeMap::new(),
        }
    }

    fn entry(&mut self, found: &[Member<'_>], out: &mut Output) {
        self.before.push(self.messages);
        if let Some(id) = text(found, "id") {
            self.by_id.insert(id.into_owned(), self.messages);
        }
        let time = get(found, "timestamp").and_then(time);
        let kind = text(found, "type").unwrap_or_default();
        let title = title(&kind, found);
        let why = skipped(&kind, title);
        let fate = if why.is_some() {
            Fate::Skipped
        } else {
            Fate::Understood
        };
        out.report.line(fate, why.unwrap_or(named(&kind)));
        let known: &[&str] = match &*kind {
            // The first entry is kept whole, and so is a compaction.
            "session" | "compaction" | "custom_message" => &[],
            "session_info" => &["type", "timestamp", "id", "parentId", "name"],
            "title" => &["type", "timestamp", "id", "parentId", "title"],
            "model_change" | "thinking_level_change" | "service_tier_change" => {
                &words![type timestamp id parentId modelId provider thinkingLevel tier family]
            }
            "branch_summary" => &["type", "timestamp", "id", "parentId", "summary", "fromId"],
            _ => &["type", "timestamp", "id", "parentId", "message"],
        };
        if fate == Fate::Understood && !known.is_empty() {
            count_unread(found, known, "", &mut out.report);
        }
        match &*kind {
            "message" => {
                let raw = get(found, "message").unwrap_or("{}");
                self.message(raw, time, out);
            }
            "compaction" => self.compaction(found, time, out),
            "branch_summary" => {
                self.say(of_user(vec![summary(found)], time), out);
            }
            "custom_message" => {
                self.custom(found, &["type", "timestamp", "id", "parentId"], time, out)
            }
            _ => {
                if let Some(title) = title {
                    out.event(self.session, Event::Title(canonical(title)));
                }
                for (member, name) in sets(&kind).unwrap_or_default() {
                    if let Some(value) = get_string(found, member) {
                        self.parameters.insert(name, canonical(value));
                    }
                }
                if sets(&kind).is_some() {
                    let parameters = Event::Parameters(object(&self.parameters));
                    out.event(self.session, parameters);
                }
            }
        }
    }

    /// What an extension adds to what the model is sent.
    fn custom(
        &mut self,
        found: &[Member<'_>],
        envelope: &[&str],
        time: Option<i64>,
        out: &mut Output,
    ) {
        out.report.message(Fate::Understood, "user");
        let mut parts = content(found, "text", &mut out.report);
        let known: Vec<&str> = envelope.iter().copied().chain(["content"]).collect();
        keep(&mut parts, found, &known, &mut out.report);
        let mut message = of_user(parts, time);
        message.injected = true;
        self.say(message, out);
    }

    fn say(&mut self, message: LogMessage, out: &mut Output) {
        self.messages += 1;
        out.event(self.session, Event::Message(message));
    }

    fn compaction(&mut self, found: &[Member<'_>], time: Option<i64>, out: &mut Output) {
        let index = get(found, "firstKeptEntryIndex").and_then(|raw| raw.parse::<usize>().ok());
        let by_index = index.and_then(|at| self.before.get(at)).copied();
        let id = text(found, "firstKeptEntryId");
        let by_id = id.and_then(|id| self.by_id.get(&*id)).copied();
        let kept = by_index.or(by_id).map(|from| from..usize::MAX);
        let known = ["type", "timestamp", "summary", "id", "parentId"];
        let said = object_without(found, &known);
        self.messages += 1;
        let summary = vec![of_user(vec![summary(found)], time)];
        let compacted = Event::compacted(summary, kept.unwrap_or(NONE_KEPT), said, time);
        out.event(self.session, compacted);
    }

    fn message(&mut self, raw: &str, time: Option<i64>, out: &mut Output) {
        let found = members(raw);
        let own = || get(&found, "timestamp").and_then(super::fields::time);
        let time = time.or_else(own);
        let role = text(&found, "role").unwrap_or_default();
        let report = &mut out.report;
        match &*role {
            "user" => {
                report.message(Fate::Understood, "user");
                let mut parts = content(&found, "text", report);
                keep(
                    &mut parts,
                    &found,
                    &["role", "content", "timestamp"],
                    report,
                );
                self.say(of_user(parts, time), out);
            }
            "toolResult" => {
                report.message(Fate::Understood, "toolResult");
                let message = result(&found, time, report);
                self.say(message, out);
            }
            // The user had it run so that the model does not see it.
            "bashExecution" if get(&found, "excludeFromContext") == Some("true") => {
                let why = "bashExecution (excluded from what is sent)";
                report.message(Fate::Skipped, why);
            }
            "bashExecution" => {
                report.message(Fate::Understood, "bashExecution");
                self.command(&found, time, out);
            }
            "assistant" => self.assistant(&found, time, out),
            "custom" | "hookMessage" => self.custom(&found, &["role", "timestamp"], time, out),
            "branchSummary" | "compactionSummary" => {
                report.message(Fate::Understood, "user");
                let mut parts = vec![summary(&found)];
                keep(
                    &mut parts,
                    &found,
                    &["role", "summary", "timestamp"],
                    report,
                );
                self.say(of_user(parts, time), out);
            }
            _ => {
                report.message(Fate::Verbatim, "other role");
                let part = LogPart::verbatim("message", None, raw);
                self.say(of_user(vec![part], time), out);
            }
        }
    }

    /// What the user had run, and what came of it.
    fn command(&mut self, found: &[Member<'_>], time: Option<i64>, out: &mut Output) {
        let said = |name| canonical(get_string(found, name).unwrap_or("\"\""));
        let mut result = LogPart::new("result", said("output"));
        let exit = get(found, "exitCode").filter(|code| !matches!(*code, "0" | "null"));
        if exit.is_some() || get(found, "cancelled") == Some("true") {
            result.set("data_is_error", "true".to_owned());
        }
        let known = words![role command output timestamp];
        keep_in(&mut result, "data_other", found, &known, &mut out.report);
        let parts = [LogPart::new("text", said("command")), result];
        let parts = parts.map(|part| LogPart {
            role: Some("user"),
            ..part.with("data_call_name", quoted("bash"))
        });
        let mut message = of_user(parts.into(), time);
        // A command is not a title.
        message.injected = true;
        self.say(message, out);
    }

    /// A reply, or an attempt if nothing came.
    fn assistant(&mut self, found: &[Member<'_>], time: Option<i64>, out: &mut Output) {
        // What openclaw delivered to people, a copy, which it writes in the place of a model: there was no request.
        let is_written_by = |name, by| text(found, name).as_deref() == Some(by);
        if is_written_by("provider", "openclaw") && is_written_by("model", "delivery-mirror") {
            out.report.message(Fate::Understood, "assistant");
            count_unread(found, &OF_REPLY, "message.", &mut out.report);
            let parts = content(found, "text", &mut out.report);
            let mut message = LogMessage::new(Some("assistant".to_owned()), parts).at(time);
            message.reply = false;
            message.injected = true;
            self.say(message, out);
            return;
        }
        for name in ["api", "model", "provider"] {
            if let Some(value) = get_string(found, name) {
                self.parameters.insert(name, canonical(value));
            }
        }
        let parameters = Event::Parameters(object(&self.parameters));
        out.event(self.session, parameters);
        out.report.message(Fate::Understood, "assistant");
        count_unread(found, &OF_REPLY, "message.", &mut out.report);
        let parts = content(found, "text", &mut out.report);
        let stop = text(found, "stopReason").unwrap_or_default();
        if parts.is_empty() && matches!(&*stop, "aborted" | "error") {
            let status = if stop == "error" {
                "\"error\""
            } else {
                "\"canceled\""
            };
            let of = |name| get(found, name).map_or("null".to_owned(), canonical);
            let (error, usage) = (of("errorMessage"), of("usage"));
            let said = [("error", &*error), ("status", status), ("usage", &usage)];
            out.event(self.session, Event::Failed(object(said)));
            return;
        }
        let said = [
            ("stop_reason", get(found, "stopReason")),
            ("model", get(found, "model")),
            ("response_id", get(found, "responseId")),
            ("error", get(found, "errorMessage")),
        ];
        let call = LogCall {
            time,
            ..LogCall::used(get(found, "usage"), &said)
        };
        self.messages += 1;
        let message = LogMessage::new(Some("assistant".to_owned()), parts).at(time);
        out.event(self.session, Event::said(message, call));
    }
}

const FORM: &str = "\"pi\"";

const OF_REPLY: [&str; 10] = words![
    role content timestamp api model provider usage stopReason responseId errorMessage
];

fn of_user(mut parts: Vec<LogPart>, time: Option<i64>) -> LogMessage {
    for part in &mut parts {
        if !part.data.iter().any(|(name, _)| name == "data_form") {
            part.set("data_form", FORM.to_owned());
        }
    }
    LogMessage::new(Some("user".to_owned()), parts).at(time)
}

fn summary(found: &[Member<'_>]) -> LogPart {
    let text = get_string(found, "summary").unwrap_or("\"\"");
    LogPart::new("summary", canonical(text))
}

fn result(found: &[Member<'_>], time: Option<i64>, report: &mut ImportReport) -> LogMessage {
    let mut parts = content(found, "result", report);
    if parts.is_empty() {
        parts.push(LogPart::new("result", quoted("")).with("data_form", FORM.to_owned()));
    }
    for part in &mut parts {
        part.set_some("data_call_id", get(found, "toolCallId"));
        part.set_some("data_call_name", get(found, "toolName"));
        part.set_some("data_is_error", get(found, "isError"));
    }
    let known = words![role content timestamp toolCallId toolName isError];
    keep(&mut parts, found, &known, report);
    LogMessage::new(Some("tool".to_owned()), parts).at(time)
}

fn keep(parts: &mut [LogPart], found: &[Member<'_>], known: &[&str], report: &mut ImportReport) {
    if let Some(first) = parts.first_mut() {
        keep_in(first, "data_other", found, known, report);
    }
}

fn content(found: &[Member<'_>], kind: &'static str, report: &mut ImportReport) -> Vec<LogPart> {
    let mut parts = Vec::new();
    let read = |raw: &str, parts: &mut Vec<LogPart>, report: &mut ImportReport| {
        parts.push(part(raw, kind, report));
    };
    let raw = get(found, "content").unwrap_or("[]");
    contents(raw, kind, Accepted::default(), &mut parts, report, read);
    for part in &mut parts {
        part.set("data_form", FORM.to_owned());
    }
    parts
}

fn part(raw: &str, kind: &'static str, report: &mut ImportReport) -> LogPart {
    let found = members(raw);
    let name = text(&found, "type").unwrap_or_default();
    let string_of = |name| get_string(&found, name);
    let (mut part, known): (LogPart, &[&str]) = match &*name {
        "thinking" if string_of("thinking").is_some() => {
            let content = string_of("thinking").unwrap_or_default();
            let signature = string_of("thinkingSignature");
            let part = LogPart::new("thinking", canonical(content));
            let part = part.with_some("data_signature", signature);
            (part, &["type", "thinking", "thinkingSignature"])
        }
        "toolCall" if get(&found, "arguments").is_some() => {
            let arguments = get(&found, "arguments").unwrap_or_default();
            let content = quoted(&compact(arguments));
            let part = LogPart::call(content, string_of("id"), string_of("name"));
            (part, &["type", "id", "name", "arguments"])
        }
        _ => {
            let types = [("text", "text", kind), ("image", WHOLE, "image")];
            return typed(raw, &found, &types, |_| None, report);
        }
    };
    report.part(Fate::Understood, part.kind.unwrap_or_default());
    keep_in(&mut part, "data_part", &found, known, report);
    part
}
