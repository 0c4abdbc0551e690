//! Sessions of the pi coding agent: one entry a line, version 1 (a list) and later (a tree).
//!
//! A transcript: the system prompt and the tools are not in it. `toolCall`, `thinking` and text
//! parts become blocks of kind `call`, `thinking` and `text`; a message `toolResult` is a result, and
//! `bashExecution`, a command of the user, a result whose `data_command` says what was run. A reply
//! that was cut off before it said anything is an attempt. A compaction drops what was before the
//! entry that it names, and adds its summary.

use super::branches::{BranchLine, Branches, REPEATED};
use super::fields::{count_unread, get_string, text, time};
use super::reader::{Reader, Record, Records, Sniff};
use crate::json::{Member, ValueType, elements, get, members, value_type};
use crate::logs::json::{canonical, compact, quoted};
use crate::logs::log::{About, Call, Event, Field, Message, Part, object_without};
use crate::logs::output::{Output, SessionId};
use crate::logs::report::{Fate, Report};
use crate::logs::usage;
use std::collections::HashMap;

/// Every entry has a type and a time; the first is the session's.
pub(super) fn sniff(_: &Record<'_>, found: &[Member<'_>]) -> Sniff {
    let inner = get(found, "message").map(members).unwrap_or_default();
    let is = |name: &str| get_string(&inner, name).is_some();
    match text(found, "type").as_deref() {
        Some("session") if get_string(found, "cwd").is_some() => Sniff::Yes,
        Some("message") if get_string(found, "timestamp").is_some() && is("role") => Sniff::Yes,
        _ => Sniff::No,
    }
}

/// Reads the entries.
#[derive(Default)]
pub(super) struct Pi {
    branches: Branches,
    /// The session of a list of entries, which is read as it comes.
    list: Option<(SessionId, Path)>,
}

/// The reading of one path of entries.
#[derive(Default)]
struct Path {
    /// The number of messages so far.
    messages: usize,
    /// How many messages there were before each entry, by its position and by its id.
    before: Vec<usize>,
    by_id: HashMap<String, usize>,
    parameters: String,
}

impl Reader for Pi {
    fn record(&mut self, record: &Record<'_>, records: &dyn Records, out: &mut Output) {
        let found = record.json.members(record.raw);
        if let Some((session, path)) = &mut self.list {
            path.entry(&found, *session, out);
            return;
        }
        let version = get(&found, "version").and_then(|raw| raw.parse::<u32>().ok());
        let is_header = text(&found, "type").as_deref() == Some("session");
        if self.branches.is_empty() && !(is_header && version.unwrap_or(1) > 1) {
            let session = out.session(about(&found, record.list));
            let mut path = Path::default();
            path.entry(&found, session, out);
            self.list = Some((session, path));
            return;
        }
        let id = text(&found, "id").filter(|_| !is_header);
        let (id, parent) = (id.as_deref(), text(&found, "parentId"));
        if !self.branches.push(record, id, parent.as_deref(), records) {
            out.report.line(Fate::Skipped, REPEATED);
        }
    }

    fn finish(&mut self, records: &dyn Records, out: &mut Output) {
        let branches = std::mem::take(&mut self.branches);
        branches.read(
            out,
            |lines: &[&BranchLine], about_branch: About, out: &mut Output| {
                let first = lines.first();
                let header = first.and_then(|line| {
                    records.read(line.number, |line| about(&line.json.members(line.raw), ""))
                });
                let mut about = header.unwrap_or_default();
                about.name = about_branch.name;
                about.meta.extend(about_branch.meta);
                let session = out.session(about);
                let mut path = Path::default();
                let cycle = |line: &&BranchLine| {
                    records.again(line.number, &mut |line| {
                        path.entry(&line.json.members(line.raw), session, out);
                    });
                    out.cycles(session)
                };
                let cycles = lines.iter().map(cycle).collect();
                out.close(session);
                cycles
            },
        );
    }
}

/// What the first entry says of the session.
fn about(found: &[Member<'_>], location: &str) -> About {
    let mut about = About {
        location: location.to_owned(),
        ..About::default()
    };
    if text(found, "type").as_deref() == Some("session")
        && let Some(header) = object_without(found, &["type"])
    {
        about.meta.push(("session".into(), header));
    }
    about
}

impl Path {
    fn entry(&mut self, found: &[Member<'_>], session: SessionId, out: &mut Output) {
        self.before.push(self.messages);
        if let Some(id) = text(found, "id") {
            self.by_id.insert(id.into_owned(), self.messages);
        }
        let time = get(found, "timestamp").and_then(time);
        let kind = text(found, "type").unwrap_or_default();
        let fate = match &*kind {
            "session" | "compaction" | "message" | "branch_summary" => Fate::Understood,
            _ => Fate::Skipped,
        };
        out.report.line(
            fate,
            if kind.is_empty() {
                "without a type"
            } else {
                &kind
            },
        );
        let known: &[&str] = match &*kind {
            // The first entry is kept whole, and so is a compaction.
            "session" | "compaction" => &[],
            "branch_summary" => &["type", "timestamp", "id", "parentId", "summary", "fromId"],
            _ => &["type", "timestamp", "id", "parentId", "message"],
        };
        if fate == Fate::Understood && !known.is_empty() {
            count_unread(found, known, "", &mut out.report);
        }
        match &*kind {
            "message" => {
                let raw = get(found, "message").unwrap_or("{}");
                self.message(raw, time, session, out);
            }
            "compaction" => self.compaction(found, time, session, out),
            "branch_summary" => {
                let part = Part::new("summary", summary_of(found));
                let message = of_user(vec![part], time);
                self.say(message, session, out);
            }
            _ => {}
        }
    }

    fn say(&mut self, message: Message, session: SessionId, out: &mut Output) {
        self.messages += 1;
        out.event(session, Event::Message(message));
    }

    fn compaction(
        &mut self,
        found: &[Member<'_>],
        time: Option<i64>,
        session: SessionId,
        out: &mut Output,
    ) {
        let index = get(found, "firstKeptEntryIndex").and_then(|raw| raw.parse::<usize>().ok());
        let by_index = index.and_then(|at| self.before.get(at)).copied();
        let id = text(found, "firstKeptEntryId");
        let by_id = id.and_then(|id| self.by_id.get(&*id)).copied();
        let kept_from = by_index.or(by_id).unwrap_or(usize::MAX);
        let known = ["type", "timestamp", "summary", "id", "parentId"];
        let said = object_without(found, &known).unwrap_or_else(|| "{}".to_owned());
        self.messages += 1;
        out.event(
            session,
            Event::Compaction {
                summary: vec![of_user(vec![Part::new("summary", summary_of(found))], time)],
                kept_from,
                call: Call {
                    time,
                    meta: vec![("compaction".into(), said)],
                    ..Call::default()
                },
            },
        );
    }

    fn message(&mut self, raw: &str, time: Option<i64>, session: SessionId, out: &mut Output) {
        let found = members(raw);
        let role = text(&found, "role").unwrap_or_default();
        let report = &mut out.report;
        match &*role {
            "user" => {
                report.message(Fate::Understood, "user");
                let mut parts = content(&found, "text", report);
                keep(&mut parts, &found, &["role", "content", "timestamp"]);
                self.say(of_user(parts, time), session, out);
            }
            "toolResult" => {
                report.message(Fate::Understood, "toolResult");
                let message = result(&found, time, report);
                self.say(message, session, out);
            }
            "bashExecution" => {
                report.message(Fate::Understood, "bashExecution");
                let output = get_string(&found, "output").map_or_else(|| quoted(""), canonical);
                let mut parts = vec![Part::new("result", output)];
                parts[0].set("data_call_name", quoted("bash"));
                parts[0].role = Some("user");
                keep(&mut parts, &found, &["role", "output", "timestamp"]);
                self.say(of_user(parts, time), session, out);
            }
            "assistant" => self.assistant(&found, time, session, out),
            _ => {
                report.message(Fate::Verbatim, "other role");
                let mut part = Part::verbatim("message", None, raw);
                part.set("data_form", FORM.to_owned());
                self.say(of_user(vec![part], time), session, out);
            }
        }
    }

    /// A reply, or an attempt if nothing came.
    fn assistant(
        &mut self,
        found: &[Member<'_>],
        time: Option<i64>,
        session: SessionId,
        out: &mut Output,
    ) {
        self.parameters(found, session, out);
        out.report.message(Fate::Understood, "assistant");
        count_unread(found, &OF_REPLY, "message.", &mut out.report);
        let parts = content(found, "text", &mut out.report);
        let stop = text(found, "stopReason").unwrap_or_default();
        if parts.is_empty() && matches!(&*stop, "aborted" | "error") {
            let status = if stop == "error" { "error" } else { "canceled" };
            let error = get(found, "errorMessage").map_or("null".to_owned(), canonical);
            let usage = get(found, "usage").map_or("null".to_owned(), canonical);
            out.event(
                session,
                Event::Failed(format!(
                    "{{\"error\":{error},\"status\":\"{status}\",\"usage\":{usage}}}"
                )),
            );
            return;
        }
        let mut fields: Vec<Field> = get(found, "usage").map(usage::fields).unwrap_or_default();
        for (name, member) in [
            ("stop_reason", "stopReason"),
            ("model", "model"),
            ("response_id", "responseId"),
            ("error", "errorMessage"),
        ] {
            let value = get(found, member).map(canonical);
            fields.extend(value.map(|value| (name.into(), value)));
        }
        let call = Call {
            time,
            usage: fields,
            ..Call::default()
        };
        self.messages += 1;
        let message = Message {
            role: Some("assistant".to_owned()),
            reply: true,
            time,
            parts,
            ..Message::default()
        };
        out.event(session, Event::Reply(vec![message], call));
    }

    /// The model that replied, as parameters of its calls.
    fn parameters(&mut self, found: &[Member<'_>], session: SessionId, out: &mut Output) {
        let mut parameters = String::new();
        for name in ["api", "model", "provider"] {
            if let Some(value) = get_string(found, name) {
                parameters += &format!(",\"{name}\":{}", canonical(value));
            }
        }
        let parameters = format!("{{{}}}", parameters.strip_prefix(',').unwrap_or_default());
        if parameters != self.parameters {
            self.parameters.clone_from(&parameters);
            out.event(session, Event::Parameters(parameters));
        }
    }
}

const FORM: &str = "\"pi\"";

/// The members of a reply that are read.
const OF_REPLY: [&str; 10] = [
    "role",
    "content",
    "timestamp",
    "api",
    "model",
    "provider",
    "usage",
    "stopReason",
    "responseId",
    "errorMessage",
];

fn of_user(mut parts: Vec<Part>, time: Option<i64>) -> Message {
    for part in &mut parts {
        if !part.data.iter().any(|(name, _)| name == "data_form") {
            part.set("data_form", FORM.to_owned());
        }
    }
    Message {
        role: Some("user".to_owned()),
        time,
        parts,
        ..Message::default()
    }
}

fn summary_of(found: &[Member<'_>]) -> String {
    get_string(found, "summary").map_or_else(|| quoted(""), canonical)
}

/// A result of a tool.
fn result(found: &[Member<'_>], time: Option<i64>, report: &mut Report) -> Message {
    let mut parts = content(found, "result", report);
    if parts.is_empty() {
        parts.push(Part::new("result", quoted("")));
        parts[0].set("data_form", FORM.to_owned());
    }
    for part in &mut parts {
        for (field, member) in [
            ("data_call_id", "toolCallId"),
            ("data_call_name", "toolName"),
            ("data_is_error", "isError"),
        ] {
            if let Some(value) = get(found, member) {
                part.set(field, canonical(value));
            }
        }
    }
    let known = [
        "role",
        "content",
        "timestamp",
        "toolCallId",
        "toolName",
        "isError",
    ];
    keep(&mut parts, found, &known);
    Message {
        role: Some("tool".to_owned()),
        time,
        parts,
        ..Message::default()
    }
}

/// Keeps the other members of a message on its first block.
fn keep(parts: &mut [Part], found: &[Member<'_>], known: &[&str]) {
    if let Some(first) = parts.first_mut() {
        first.keep_rest("data_other", found, known);
    }
}

/// The parts of a message's content; `kind` is that of its texts.
fn content(found: &[Member<'_>], kind: &'static str, report: &mut Report) -> Vec<Part> {
    let raw = get(found, "content").unwrap_or("[]");
    let mut parts = Vec::new();
    if value_type(raw) == ValueType::String {
        report.part(Fate::Understood, kind);
        parts.push(Part::new(kind, canonical(raw)));
    }
    for raw in elements(raw) {
        parts.push(part(raw, kind, report));
    }
    for part in &mut parts {
        part.set("data_form", FORM.to_owned());
    }
    parts
}

fn part(raw: &str, kind: &'static str, report: &mut Report) -> Part {
    let found = members(raw);
    let name = text(&found, "type").unwrap_or_default();
    let string_of = |name| get_string(&found, name).map(canonical);
    let read = match &*name {
        "text" => string_of("text").map(|content| (Part::new(kind, content), vec!["text"])),
        "thinking" => string_of("thinking").map(|content| {
            let mut part = Part::new("thinking", content);
            if let Some(signature) = string_of("thinkingSignature") {
                part.set("data_signature", signature);
            }
            (part, vec!["thinking", "thinkingSignature"])
        }),
        "toolCall" => get(&found, "arguments").map(|arguments| {
            let mut part = Part::new("call", quoted(&compact(arguments)));
            for (field, member) in [("data_call_id", "id"), ("data_call_name", "name")] {
                if let Some(value) = string_of(member) {
                    part.set(field, value);
                }
            }
            (part, vec!["id", "name", "arguments"])
        }),
        "image" => object_without(&found, &["type"])
            .map(|content| (Part::new("image", content), vec!["data", "mimeType"])),
        _ => None,
    };
    let Some((mut part, mut known)) = read else {
        report.part(Fate::Verbatim, &name);
        return Part::verbatim("part", None, raw);
    };
    report.part(Fate::Understood, part.kind.unwrap_or_default());
    known.push("type");
    part.keep_rest("data_part", &found, &known);
    part
}
