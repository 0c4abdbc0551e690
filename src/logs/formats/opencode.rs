//! Sessions of opencode: the export of one, `{"info": …, "messages": [{"info": …, "parts": […]}]}`, which is also what
//! `logs::opencode` makes of its folder and its database; and lists of such messages.
//!
//! A transcript: the tools are not in it. A reply is a step of an assistant's message: what is between two parts
//! `step-start`. Its tool parts have call and result in one, so the results follow it as messages of a tool. What opencode
//! keeps and does not send is in `data_parts` and `data_state`. A reply that failed before it said anything is an attempt;
//! one that failed later is dropped after it, as opencode does. A summary is a call, and then a compaction.

use super::prelude::*;
use super::transcript::{fate, json_text, keep, keep_in, named, unknown, unread};
use crate::support::cancel::ensure;
use std::collections::HashMap;
use std::ops::Range;

pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let info = inner(found, "info");
    let is_message = |found: &[Member<'_>]| {
        is(found, "parts", ValueType::Array) && get_string(&inner(found, "info"), "role").is_some()
    };
    let first = items(found, "messages").first().copied().map(members);
    let is_session = is(found, "messages", ValueType::Array)
        && get_string(&info, "id").is_some()
        && first.is_none_or(|first| is_message(&first));
    (is_session || is_message(found)).into()
}

#[derive(Default)]
pub(super) struct Opencode {
    /// Messages without a session around them.
    messages: Vec<String>,
}

impl LogReader for Opencode {
    fn record(&mut self, record: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        let found = record.json.members(record.raw);
        let Some(messages) = get(&found, "messages") else {
            if is(&found, "info", ValueType::Object) {
                out.report.line(Fate::Understood, "message");
                self.messages.push(record.raw.to_owned());
            } else {
                out.report.unknown_line("without info");
            }
            return;
        };
        out.report.line(Fate::Understood, "session");
        count_unread(&found, &words![info messages path], "", &mut out.report);
        let info = record.json.inside(&found, "info");
        let about = about(text(&found, "path").as_deref(), &info, record.location());
        read(&info, &record.json.elements(messages), about, out);
    }

    fn finish(&mut self, _: &dyn Records, out: &mut Output) {
        if !self.messages.is_empty() {
            let messages: Vec<&str> = self.messages.iter().map(|raw| &**raw).collect();
            read(&[], &messages, about(None, &[], String::new()), out);
        }
    }
}

/// What of a session never changes.
const OF_SESSION: [&str; 6] = words![id slug projectID workspaceID directory version];

/// `path` has the ids of the session and of those in which it was started, if they are in one log.
fn about(path: Option<&str>, info: &[Member<'_>], location: String) -> About {
    let parent = text(info, "parentID").map(|id| id.into_owned());
    let own = text(info, "id").unwrap_or_default();
    let child = parent.as_ref().map(|_| format!("/{own}"));
    let meta = object_where(info, |name| OF_SESSION.contains(&name));
    let mut meta: Vec<LogField> = meta
        .into_iter()
        .map(|info| ("session".into(), info))
        .collect();
    meta.extend(child.is_some().then(|| ("parent".into(), OWNER.to_owned())));
    let mut about = About {
        location,
        name: path.map(str::to_owned).or(child),
        parent: parent.filter(|_| path.is_none()),
        meta,
        ..About::default()
    };
    about.of_agent("opencode", get_string(info, "directory"));
    about
}

/// The session's title, unless it is the one that every new session has.
fn title(info: &[Member<'_>]) -> Option<String> {
    let title = text(info, "title")?;
    let is_default = ["New session - ", "Child session - "]
        .iter()
        .any(|start| title.starts_with(start));
    (!is_default && !title.is_empty()).then(|| quoted(&title))
}

fn read(info: &[Member<'_>], messages: &[&str], about: About, out: &mut Output) {
    let known = words![title time revert parentID];
    let known: Vec<&str> = OF_SESSION.into_iter().chain(known).collect();
    count_unread(info, &known, "info.", &mut out.report);
    let session = out.session(about);
    let mut conversation = Conversation {
        session,
        out,
        sent: 0,
        before: HashMap::new(),
        compactions: HashMap::new(),
        cleared: cleared(messages),
        system: String::new(),
        is_last: false,
    };
    match title(info) {
        Some(title) => conversation.event(Event::Title(title)),
        None if get(info, "title").is_some() => {
            conversation.out.report.skipped_member("info.title");
        }
        None => {}
    }
    // Older versions have the system prompt on replies.
    let infos = messages.iter().map(|raw| inner(&members(raw), "info"));
    if let Some(first) = { infos }.find(|info| get(info, "system").is_some()) {
        conversation.system(&first);
    }
    for (at, raw) in messages.iter().enumerate() {
        ensure();
        conversation.is_last = at + 1 == messages.len();
        conversation.message(raw);
    }
    conversation.clear(i64::MAX);
    conversation.revert(info);
}

/// The calls, as JSON, whose results were cleared, and when, in the order of that.
fn cleared(messages: &[&str]) -> Vec<(i64, String)> {
    let mut found = Vec::new();
    for raw in messages.iter().filter(|raw| raw.contains("\"compacted\"")) {
        for part in items(&members(raw), "parts").into_iter().map(members) {
            let times = inner(&inner(&part, "state"), "time");
            let at = get(&times, "compacted").and_then(time);
            found.extend(at.zip(get_string(&part, "callID").map(canonical)));
        }
    }
    found.sort_by_key(|(at, _)| *at);
    found
}

/// A part with its raw JSON and its type.
struct Part<'a> {
    raw: &'a str,
    kind: String,
    found: Vec<Member<'a>>,
}

/// Of a part, what says which it is and when it was.
const ENVELOPE: [&str; 5] = words![id messageID sessionID type time];

/// Of an assistant's message, what is in `usage`, in the parameters, or who it is.
const OF_REPLY: [&str; 17] = words![
    id sessionID role time parentID modelID providerID agent mode variant tokens cost finish error summary system structured
];

struct Conversation<'a> {
    session: SessionId,
    out: &'a mut Output,
    /// How many messages there were so far.
    sent: usize,
    /// How many there were before each message and each part, by its id.
    before: HashMap<String, usize>,
    /// What a request to summarize says, by the id of its message.
    compactions: HashMap<String, Marker>,
    cleared: Vec<(i64, String)>,
    /// The system prompt, raw.
    system: String,
    /// Whether no message comes after the one that is read.
    is_last: bool,
}

struct Marker {
    /// A canonical object.
    said: Option<String>,
    kept: Range<usize>,
}

impl Conversation<'_> {
    fn event(&mut self, event: Event) {
        self.out.event(self.session, event);
    }

    fn say(&mut self, mut message: LogMessage, call: LogCall) {
        for part in &mut message.parts {
            part.set("data_form", quoted("opencode"));
        }
        self.sent += 1;
        self.event(Event::said(message, call));
    }

    /// From here on the model is sent the system prompt and these messages.
    fn keep_only(&mut self, kept: Range<usize>, call: LogCall) {
        self.event(Event::Compaction {
            summary: Vec::new(),
            kept,
            kept_first: false,
            call,
        });
    }

    fn message(&mut self, raw: &str) {
        let found = members(raw);
        let info = inner(&found, "info");
        count_unread(&found, &words![info parts], "", &mut self.out.report);
        let parts: Vec<Part<'_>> = items(&found, "parts").into_iter().map(Part::new).collect();
        let created = get(&inner(&info, "time"), "created").and_then(time);
        self.clear(created.unwrap_or(i64::MIN));
        self.system(&info);
        if let Some(id) = text(&info, "id") {
            self.before.insert(id.into_owned(), self.sent);
        }
        match text(&info, "role").unwrap_or_default().as_ref() {
            "user" => self.user(&info, &parts, created),
            "assistant" => self.assistant(&info, &parts, created),
            _ => {
                let message = unread("other role", raw, &mut self.out.report);
                self.say(message.at(created), LogCall::default());
            }
        }
    }

    /// A system prompt that another one was before: a string, or a list of them.
    fn system(&mut self, info: &[Member<'_>]) {
        let raw = get(info, "system").unwrap_or_default();
        let texts = match elements(raw) {
            texts if texts.is_empty() => vec![raw],
            texts => texts,
        };
        let is_text = |raw: &&str| string(raw).is_some_and(|text| !text.is_empty());
        let texts: Vec<&str> = texts.into_iter().filter(is_text).collect();
        if texts.is_empty() || self.system == raw {
            return;
        }
        raw.clone_into(&mut self.system);
        let report = &mut self.out.report;
        let part = |raw: &str| {
            report.part(Fate::Understood, "text");
            LogPart::new("text", canonical(raw))
        };
        let parts = texts.into_iter().map(part).collect();
        let message = LogMessage::with_system("system", &["system"], parts);
        self.say(message, LogCall::default());
    }

    /// Results that were cleared until then.
    fn clear(&mut self, until: i64) {
        let due = self.cleared.partition_point(|(at, _)| *at <= until);
        let due: Vec<(i64, String)> = self.cleared.drain(..due).collect();
        if let Some((at, _)) = due.last() {
            let call = LogCall::compaction(None, Some(*at));
            self.event(Event::Cleared {
                calls: due.into_iter().map(|(_, call)| call).collect(),
                content: quoted(CLEARED),
                call,
            });
        }
    }

    /// Takes back what the user has taken back. opencode deletes it only with the next message.
    fn revert(&mut self, info: &[Member<'_>]) {
        let revert = inner(info, "revert");
        let known = words![partID messageID];
        count_unread(&revert, &known, "info.revert.", &mut self.out.report);
        let before = |name: &&str| self.before.get(&*text(&revert, name)?).copied();
        let before = known.iter().find_map(before);
        if let Some(before) = before.filter(|before| *before < self.sent) {
            let said = object_where(&revert, |name| known.contains(&name));
            self.keep_only(0..before, LogCall::without_call("revert", said, None));
        }
    }

    fn user(&mut self, info: &[Member<'_>], parts: &[Part<'_>], created: Option<i64>) {
        let mut message = LogMessage::new(Some("user".to_owned()), Vec::new()).at(created);
        let mut beside = Vec::new();
        let mut marker = None;
        for part in parts {
            if part.kind == "compaction" {
                self.out.report.part(Fate::Understood, "compaction");
                marker = Some(part);
            } else {
                self.part(part, &mut message.parts, &mut beside);
            }
        }
        let is_synthetic = |part: &Part<'_>| get(&part.found, "synthetic") == Some("true");
        let mut texts = parts.iter().filter(|part| part.kind == "text").peekable();
        message.injected = texts.peek().is_some() && texts.all(is_synthetic);
        if let Some(marker) = marker {
            let tail = text(&marker.found, "tail_start_id");
            let from = tail.and_then(|id| self.before.get(&*id)).copied();
            let said = Marker {
                said: object_without(&marker.found, &ENVELOPE),
                kept: from.map_or(NONE_KEPT, |from| from..self.sent),
            };
            let id = text(info, "id").unwrap_or_default();
            self.compactions.insert(id.into_owned(), said);
        }
        let is_empty = message.parts.is_empty() && beside.is_empty();
        let report = &mut self.out.report;
        if is_empty && marker.is_none() {
            report.message(Fate::Skipped, "user (has no part yet)");
            return;
        }
        report.message(fate(&message.parts), "user");
        // Its summary is made of what comes after it, and changes.
        let known = words![id sessionID role time system];
        count_unread(&inner(info, "summary"), &[], "message.summary.", report);
        if is_empty {
            return;
        }
        let known: Vec<&str> = known.into_iter().chain(["summary"]).collect();
        keep(&mut message, info, &known, report);
        put_beside(&mut message, beside);
        self.say(message, LogCall::default());
    }

    /// A part other than a call. What is not sent goes to `beside`.
    fn part(&mut self, part: &Part<'_>, parts: &mut Vec<LogPart>, beside: &mut Vec<String>) {
        let report = &mut self.out.report;
        let found = &part.found;
        let is_ignored = get(found, "ignored") == Some("true");
        let made = match &*part.kind {
            "text" if !is_ignored => words_of(found, "text", report),
            "reasoning" => words_of(found, "thinking", report),
            "file" if is_sent(found) => media(found, report),
            "text" | "file" | "agent" | "subtask" => {
                report.part(Fate::Verbatim, &format!("{} (not sent itself)", part.kind));
                report.member("parts");
                let ids = words![id messageID sessionID];
                beside.extend(object_without(found, &ids));
                return;
            }
            "step-start" | "step-finish" => {
                report.part(Fate::Understood, &part.kind);
                let known = words![reason tokens cost];
                let known: Vec<&str> = ENVELOPE.into_iter().chain(known).collect();
                count_unread(found, &known, &format!("{}.", part.kind), report);
                return;
            }
            "snapshot" | "patch" => {
                report.part(Fate::Skipped, &format!("{} (of the program)", part.kind));
                count_unread(found, &ENVELOPE, &format!("{}.", part.kind), report);
                return;
            }
            "retry" => {
                report.part(Fate::Understood, "retry");
                let error = failure(get(found, "error").unwrap_or("null"), report);
                self.event(Event::Failed(error));
                return;
            }
            _ => None,
        };
        let report = &mut self.out.report;
        parts.push(made.unwrap_or_else(|| unknown(named(&part.kind), None, part.raw, report)));
    }

    fn assistant(&mut self, info: &[Member<'_>], parts: &[Part<'_>], created: Option<i64>) {
        let before = self.sent;
        let mut steps: Vec<&[Part<'_>]> = Vec::new();
        let mut start = 0;
        for (at, part) in parts.iter().enumerate() {
            if part.kind == "step-start" && at > start {
                steps.push(parts.get(start..at).unwrap_or_default());
                start = at;
            }
        }
        steps.push(parts.get(start..).unwrap_or_default());
        let count = steps.len();
        for (at, step) in steps.into_iter().enumerate() {
            let place = StepPlace {
                is_only: count == 1,
                started: created.filter(|_| at == 0),
                ended: end(info, step, at + 1 == count),
            };
            self.step(info, step, &place);
        }
        let report = &mut self.out.report;
        let error = get(info, "error").filter(|raw| raw.starts_with('{'));
        let is_aborted = error.is_some_and(|raw| name_of(raw) == "MessageAbortedError");
        if self.sent > before {
            report.message(Fate::Understood, "assistant");
        } else if let Some(error) = error {
            report.message(Fate::Understood, "assistant");
            let error = failure(error, report);
            self.event(Event::Failed(error));
            return;
        } else {
            report.message(Fate::Skipped, "assistant (has no part yet)");
            return;
        }
        let is_finished = get_string(info, "finish").is_some();
        if error.is_some() && !is_aborted {
            let call = LogCall {
                time: created,
                ..LogCall::default()
            };
            self.keep_only(0..before, call);
        } else if get(info, "summary") == Some("true") && is_finished && error.is_none() {
            self.compact(info, parts, created);
        }
    }

    /// What is between two parts `step-start`: one call, unless the program wrote it itself.
    fn step(&mut self, info: &[Member<'_>], step: &[Part<'_>], place: &StepPlace) {
        let is_only = place.is_only;
        let time = place.ended.or(place.started);
        let mut message = LogMessage::new(Some("assistant".to_owned()), Vec::new()).at(time);
        let (mut beside, mut results) = (Vec::new(), Vec::new());
        for part in step {
            if let Some(id) = text(&part.found, "id") {
                self.before.insert(id.into_owned(), self.sent);
            }
            if part.kind != "tool" {
                self.part(part, &mut message.parts, &mut beside);
                continue;
            }
            let report = &mut self.out.report;
            let state = inner(&part.found, "state");
            let result = result(&part.found, &state, report);
            let mut call = call(&part.found, &state, report);
            if result.is_none() {
                keep_in(&mut call, "data_state", &state, &["input"], report);
            }
            message.parts.push(call);
            results.extend(result.map(|result| (result, child(&part.found, &state))));
        }
        if message.parts.is_empty() {
            return;
        }
        let finish = step.iter().find(|part| part.kind == "step-finish");
        let of_step = finish.map(|finish| &*finish.found);
        let counted = of_step.or(is_only.then_some(info)).unwrap_or_default();
        let tokens = get(counted, "tokens").filter(|raw| has_count(raw));
        let is_started = step.first().is_some_and(|part| part.kind == "step-start");
        let is_completed = get(&inner(info, "time"), "completed").is_some();
        let is_counted_as_none = get(counted, "tokens").is_some() && tokens.is_none();
        // Commands of the user are run by the program, which writes them as the model would. A reply that is being
        // written is none yet: what it says changes in place.
        let is_over = of_step.is_some() || is_completed || get(info, "error").is_some();
        let is_of_program = is_completed && is_counted_as_none && !is_started;
        message.reply = !is_of_program && (is_over || !is_counted_as_none || !self.is_last);
        keep(&mut message, info, &OF_REPLY, &mut self.out.report);
        put_beside(&mut message, beside);
        let mut call = LogCall::default();
        if message.reply {
            self.event(Event::Parameters(parameters(info)));
            let who = if is_only { Some(info) } else { of_step };
            let cost =
                get(counted, "cost").filter(|raw| raw.bytes().any(|b| b > b'0' && b <= b'9'));
            let reason = get_string(counted, "reason").or_else(|| get_string(counted, "finish"));
            let error = get(info, "error").filter(|raw| raw.starts_with('{'));
            call = LogCall::used(
                tokens,
                &[
                    ("cost_usd", cost.filter(|_| tokens.is_some())),
                    ("stop_reason", reason),
                    ("model", get_string(info, "modelID")),
                    ("response_id", who.and_then(|who| get_string(who, "id"))),
                    ("error", error),
                ],
            );
            call.time = time;
            let latency = place.ended.zip(place.started);
            let latency = latency.map(|(end, start)| end.saturating_sub(start));
            let latency = latency.filter(|nanos| *nanos >= 0);
            let latency = latency.map(|nanos| (nanos / 1_000_000).to_string());
            call.usage
                .extend(latency.map(|latency| ("latency_ms".into(), latency)));
        }
        self.say(message, call);
        for (result, child) in results {
            self.say(result, LogCall::default());
            if let Some((call, session)) = child {
                self.event(Event::Child { call, session });
            }
        }
    }

    /// The summary that the model wrote takes the place of what was before it.
    fn compact(&mut self, info: &[Member<'_>], parts: &[Part<'_>], created: Option<i64>) {
        let parent = text(info, "parentID").unwrap_or_default();
        let marker = self.compactions.remove(&*parent);
        let (said, kept) = marker.map_or((None, NONE_KEPT), |marker| (marker.said, marker.kept));
        let texts = parts.iter().filter(|part| part.kind == "text");
        let texts = texts.filter_map(|part| get_string(&part.found, "text"));
        let part = |raw: &str| {
            LogPart::new("summary", canonical(raw)).with("data_form", quoted("opencode"))
        };
        let summary = LogMessage::new(Some("assistant".to_owned()), texts.map(part).collect());
        let summary = LogMessage {
            reply: false,
            ..summary.at(created)
        };
        self.sent += 1;
        self.event(Event::compacted(vec![summary], kept, said, created));
    }
}

/// What the model is sent in the place of a result that was cleared.
const CLEARED: &str = "[Old tool result content cleared]";

impl<'a> Part<'a> {
    fn new(raw: &'a str) -> Self {
        let found = members(raw);
        Self {
            raw,
            kind: text(&found, "type").unwrap_or_default().into_owned(),
            found,
        }
    }

    /// When the model had said it: a call runs once it was said.
    fn said(&self) -> Option<i64> {
        let times = match &*self.kind {
            "tool" => inner(&inner(&self.found, "state"), "time"),
            _ => inner(&self.found, "time"),
        };
        let name = if self.kind == "tool" { "start" } else { "end" };
        get(&times, name).and_then(time)
    }
}

/// Which step of a message it is, and when it was.
struct StepPlace {
    is_only: bool,
    /// When the request was made: that of the first step, with its message. Of the others the log does not say it.
    started: Option<i64>,
    /// When the reply was whole.
    ended: Option<i64>,
}

/// When a reply was whole: when its last part was said, or else, in the last step, when the message was completed.
fn end(info: &[Member<'_>], step: &[Part<'_>], is_last: bool) -> Option<i64> {
    let completed = || get(&inner(info, "time"), "completed").and_then(time);
    let said = step.iter().filter_map(Part::said).max();
    said.or_else(|| completed().filter(|_| is_last))
}

fn put_beside(message: &mut LogMessage, beside: Vec<String>) {
    if !beside.is_empty() {
        message.first().set("data_parts", list(beside));
    }
}

/// Whether a count of tokens is not 0.
fn has_count(raw: &str) -> bool {
    let found = members(raw);
    let is_count = |(_, raw): &Member<'_>| raw.parse::<f64>().is_ok_and(|count| count > 0.0);
    found.iter().any(is_count) || inner(&found, "cache").iter().any(is_count)
}

fn parameters(info: &[Member<'_>]) -> String {
    let agent = get_string(info, "agent").or_else(|| get_string(info, "mode"));
    let named = [
        ("agent", agent),
        ("model", get_string(info, "modelID")),
        ("provider", get_string(info, "providerID")),
        ("variant", get_string(info, "variant")),
    ];
    let named = named.into_iter();
    object(named.filter_map(|(name, raw)| Some((name, canonical(raw?)))))
}

fn words_of(
    found: &[Member<'_>],
    kind: &'static str,
    report: &mut ImportReport,
) -> Option<LogPart> {
    let mut part = LogPart::new(kind, canonical(get_string(found, "text")?));
    report.part(Fate::Understood, kind);
    keep_part(&mut part, found, &["text"], report);
    Some(part)
}

/// Whether the model is sent a file as such: opencode sends the text of others as parts of their own.
fn is_sent(found: &[Member<'_>]) -> bool {
    let mime = text(found, "mime").unwrap_or_default();
    !matches!(&*mime, "text/plain" | "application/x-directory")
}

fn media(found: &[Member<'_>], report: &mut ImportReport) -> Option<LogPart> {
    let url = get_string(found, "url")?;
    let is_image = text(found, "mime").is_some_and(|mime| mime.starts_with("image/"));
    let kind = if is_image { "image" } else { "document" };
    let mut part = LogPart::new(kind, object([("url", canonical(url))]));
    report.part(Fate::Understood, kind);
    keep_part(&mut part, found, &["url"], report);
    Some(part)
}

fn call(found: &[Member<'_>], state: &[Member<'_>], report: &mut ImportReport) -> LogPart {
    report.part(Fate::Understood, "call");
    let input = get(state, "input").unwrap_or("{}");
    let (id, name) = (get_string(found, "callID"), get_string(found, "tool"));
    let mut call = LogPart::call(json_text(input), id, name);
    keep_part(&mut call, found, &words![callID tool state], report);
    call
}

/// The result of a call that is over.
fn result(
    found: &[Member<'_>],
    state: &[Member<'_>],
    report: &mut ImportReport,
) -> Option<LogMessage> {
    let status = text(state, "status").unwrap_or_default();
    let about = inner(state, "metadata");
    let is_cut_off = get(&about, "interrupted") == Some("true");
    let partial = get_string(&about, "output").filter(|_| is_cut_off);
    // A command that ended with another code is completed, too; one that was stopped has no code.
    let exit = get(&about, "exit").filter(|code| !matches!(*code, "0" | "null"));
    let is_failed = match &*status {
        "completed" => exit.is_some(),
        _ => partial.is_none(),
    };
    let (content, from) = match (&*status, partial) {
        ("completed", _) => (get_string(state, "output").unwrap_or("\"\""), "output"),
        ("error", Some(partial)) => (partial, ""),
        ("error", None) => (get_string(state, "error").unwrap_or("\"\""), "error"),
        _ => return None,
    };
    report.part(Fate::Understood, "result");
    let mut first = LogPart::new("result", canonical(content));
    let known = ["input", "status", "attachments", "time", from];
    keep_in(&mut first, "data_state", state, &known, report);
    // When it was cleared is not known yet in the snapshot that has it.
    let times = object_without(&inner(state, "time"), &["compacted"]);
    first
        .data
        .extend(times.map(|times| ("data_time".into(), times)));
    let mut parts = vec![first];
    for raw in items(state, "attachments") {
        let media = media(&members(raw), report);
        parts.push(media.unwrap_or_else(|| unknown("attachment", None, raw, report)));
    }
    for part in &mut parts {
        part.set_some("data_call_id", get_string(found, "callID"));
        part.set_some("data_call_name", get_string(found, "tool"));
        if is_failed {
            part.set("data_is_error", "true".to_owned());
        }
    }
    let end = get(&inner(state, "time"), "end").and_then(time);
    Some(LogMessage::new(Some("tool".to_owned()), parts).at(end))
}

/// The call that started a session, and the name of that session after this one's.
fn child(found: &[Member<'_>], state: &[Member<'_>]) -> Option<(String, String)> {
    let about = inner(state, "metadata");
    let id = text(&about, "sessionId").or_else(|| text(&about, "sessionID"))?;
    let is_task = text(found, "tool").as_deref() == Some("task");
    let call = get_string(found, "callID").filter(|_| is_task)?;
    Some((canonical(call), quoted(&format!("/{id}"))))
}

/// A failed call, as `meta.attempts` has it: the error's own members, beside its name.
fn failure(raw: &str, report: &mut ImportReport) -> String {
    let found = members(raw);
    let data = inner(&found, "data");
    if get(&data, "responseHeaders").is_some() {
        report.skipped_member("error.responseHeaders");
    }
    let status = match &*name_of(raw) {
        "MessageAbortedError" => "\"canceled\"",
        _ => "\"error\"",
    };
    let own = found.into_iter();
    let own: Vec<Member<'_>> = own
        .filter(|(name, _)| name != "data" && get(&data, name).is_none())
        .collect();
    let all: Vec<Member<'_>> = data.into_iter().chain(own).collect();
    let error = object_without(&all, &["responseHeaders"]);
    object([
        ("error", error.unwrap_or_else(|| canonical(raw))),
        ("status", status.to_owned()),
    ])
}

fn name_of(error: &str) -> String {
    text(&members(error), "name")
        .unwrap_or_default()
        .into_owned()
}

fn keep_part(part: &mut LogPart, found: &[Member<'_>], known: &[&str], report: &mut ImportReport) {
    let known: Vec<&str> = ENVELOPE.iter().chain(known).copied().collect();
    keep_in(part, "data_part", found, &known, report);
}
