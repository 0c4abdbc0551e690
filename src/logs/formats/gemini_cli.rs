//! Sessions of Gemini CLI: one object with `messages`, or a record a line, of which later ones change earlier ones.
//!
//! A transcript whose parts are those of the Gemini API ([`super::gemini`]). A record `gemini` is a reply: its
//! thoughts, its content, its calls, and after it a message with their results. `info`, `warning` and `error` are for
//! people, but an error of the API is a failed call, and an `info` of parts is a file that a tool returned.
//!
//! | a line | what happens |
//! |---|---|
//! | a record whose id is there | it takes the place of that; the newest reply grows until another record follows |
//! | `{"$set": {"messages": […]}}` | the model is sent these from now on |
//! | `{"$rewindTo": ID}` | the model is sent what was before that record |
//! | `{"$set": {…}}` | the title, or what is of the program |
//!
//! Each change of what was sent is a snapshot without a call, so that nothing a line said before is lost.

use super::gemini::part as part_of_api;
use super::prelude::*;
use super::transcript::{fate, json_text, keep, keep_in};
use std::borrow::Cow;
use std::collections::HashMap;

pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let has = |name: &str| get_string(found, name).is_some();
    let kind = text(found, "type").unwrap_or_default();
    let is_message = matches!(&*kind, "user" | "gemini" | "info" | "warning" | "error")
        && has("id")
        && has("timestamp")
        && get(found, "content").is_some();
    let is_change = has(REWIND) || is(found, SET, ValueType::Object);
    (is_message || is_header(found) || is_change).into()
}

const SET: &str = "$set";
const REWIND: &str = "$rewindTo";

#[derive(Clone, Default)]
pub(super) struct GeminiCli(Option<Chat>);

#[derive(Clone)]
struct Chat {
    session: SessionId,
    /// What the model is sent now.
    sent: Vec<ChatRecord>,
    /// The newest reply, which lines may write again with more until another record follows; or what the program
    /// writes before it says where in the history that is: a summary, and what goes with it.
    waiting: Vec<ChatReply>,
    /// The newest result of each call, to know a repeated one; JSON.
    results: HashMap<String, Option<String>>,
}

/// What a record is to the model; one that is for people has no messages.
#[derive(Clone)]
struct ChatRecord {
    id: String,
    messages: Vec<LogMessage>,
}

#[derive(Clone)]
struct ChatReply {
    record: ChatRecord,
    /// Of one that the program made up it is `None`.
    call: Option<LogCall>,
    /// What it counts for.
    report: ImportReport,
}

impl LogReader for GeminiCli {
    fn record(&mut self, record: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        let found = record.json.members(record.raw);
        let is_header = is_header(&found);
        let begin = || Chat::begin(record, &found, is_header, out);
        let chat = self.0.get_or_insert_with(begin);
        if is_header {
            out.report.line(Fate::Understood, "session");
            chat.says(&found, "", out);
            for raw in record
                .json
                .elements(get(&found, "messages").unwrap_or("[]"))
            {
                chat.record(&record.json.members(raw), false, out);
            }
        } else if let Some(id) = text(&found, REWIND) {
            out.report.line(Fate::Understood, REWIND);
            chat.flush(out);
            let at = chat.sent.iter().position(|record| record.id == id);
            let left = chat.sent[..at.unwrap_or(0)].to_vec();
            chat.replace(left, changed_by(REWIND), out);
        } else if is(&found, SET, ValueType::Object) {
            let found = record.json.inside(&found, SET);
            let is_said = ["messages", "summary"]
                .iter()
                .any(|name| get(&found, name).is_some());
            let (fate, why) = if is_said {
                (Fate::Understood, SET)
            } else {
                (Fate::Skipped, "$set (of the program)")
            };
            out.report.line(fate, why);
            chat.says(&found, "$set.", out);
            if let Some(raw) = get(&found, "messages") {
                chat.history(record.json.elements(raw), record.json, out);
            }
        } else {
            chat.record(&found, true, out);
        }
    }

    fn copy(&mut self) -> Option<Box<dyn LogReader>> {
        Some(Box::new(self.clone()))
    }

    fn finish(&mut self, _: &dyn Records, out: &mut Output) {
        if let Some(chat) = &mut self.0 {
            chat.flush(out);
        }
    }
}

/// What the snapshot after a change of what was sent says: no call was made for it.
fn changed_by(line: &str) -> LogCall {
    LogCall::without_call("rewritten", Some(quoted(line)), None)
}

impl Chat {
    fn begin(
        record: &LogRecord<'_>,
        found: &[Member<'_>],
        is_header: bool,
        out: &mut Output,
    ) -> Self {
        let mut about = About {
            location: record.list.to_owned(),
            ..About::default()
        };
        // What changes while the log grows is not of the session.
        let changing = words![messages summary lastUpdated memoryScratchpad];
        let said = object_without(found, &changing).filter(|_| is_header);
        about.meta.extend(said.map(|said| ("session".into(), said)));
        // Of other sessions these are directories that the user added.
        let is_subagent = text(found, "kind").as_deref() == Some("subagent");
        let directory = items(found, "directories").into_iter().next();
        about.of_agent("gemini-cli", directory.filter(|_| is_header && is_subagent));
        Self {
            session: out.session(about),
            sent: Vec::new(),
            waiting: Vec::new(),
            results: HashMap::new(),
        }
    }

    /// What a header, or a change of it, says of the session.
    fn says(&self, found: &[Member<'_>], of: &str, out: &mut Output) {
        if let Some(title) = get_string(found, "summary") {
            out.event(self.session, Event::Title(canonical(title)));
        }
        for (name, _) in found {
            let is_skipped = match &**name {
                "messages" | "summary" => false,
                "lastUpdated" | "memoryScratchpad" => true,
                // The header's are in `meta`.
                _ => !of.is_empty(),
            };
            if is_skipped {
                out.report.skipped_member(&format!("{of}{name}"));
            }
        }
    }

    /// A record of a message, which is a line or one of `messages`.
    fn record(&mut self, found: &[Member<'_>], is_line: bool, out: &mut Output) {
        let kind = text(found, "type").unwrap_or_default();
        let id = text(found, "id").unwrap_or_default();
        let is_failure = is_failure(&kind, found);
        let (fate, why): (Fate, Cow<'_, str>) = match &*kind {
            _ if id.is_empty() => (Fate::Skipped, "without an id".into()),
            _ if is_of_model(&kind, found) || is_failure => (Fate::Understood, kind.clone()),
            "info" | "warning" | "error" => (Fate::Skipped, format!("{kind} (for people)").into()),
            _ => (Fate::Skipped, "another type".into()),
        };
        let is_known = fate == Fate::Understood || why.ends_with(')');
        match is_line {
            true if !is_known => out.report.unknown_line(&why),
            true => out.report.line(fate, &why),
            false if fate == Fate::Skipped => out.report.message(fate, &why),
            false => {}
        }
        if !is_known {
            return;
        }
        let is_again = self
            .waiting
            .last()
            .is_some_and(|reply| reply.record.id == id);
        let is_there = self.waiting.iter().any(|reply| reply.record.id == id);
        let goes_with = self.has_summary() && is_of_model(&kind, found) && !is_call(found);
        if !is_again && (is_there || !goes_with) {
            self.flush(out);
        }
        if is_failure {
            let error = get_string(found, "content")
                .map(canonical)
                .unwrap_or_default();
            out.event(self.session, Event::Failed(failed(&error)));
        }
        let waiting = self.waiting.iter().map(|reply| &reply.record);
        let before = waiting
            .chain(&self.sent)
            .rev()
            .find(|record| record.id == id);
        for call in before.into_iter().flat_map(ChatRecord::calls) {
            self.results.remove(call);
        }
        let mut reply = self.read(found);
        if let Some(before) = self.waiting.pop_if(|_| is_again) {
            if before.record.is_in(&reply.record) {
                self.waiting.push(reply);
                return;
            }
            self.waiting.push(before);
            self.flush(out);
        }
        if let Some(at) = self.sent.iter().rposition(|record| record.id == id) {
            self.flush(out);
            let mut sent = self.sent.clone();
            std::mem::swap(&mut sent[at], &mut reply.record);
            out.report.add(&reply.report);
            self.replace(sent, changed_by(&kind), out);
            return;
        }
        self.waiting.push(reply);
        if kind != "gemini" && !self.has_summary() {
            self.flush(out);
        }
    }

    /// Whether what waits is a summary.
    fn has_summary(&self) -> bool {
        let first = self.waiting.first();
        first.is_some_and(|reply| reply.record.parts().any(is_summary))
    }

    fn flush(&mut self, out: &mut Output) {
        for reply in std::mem::take(&mut self.waiting) {
            self.tell(reply, out);
        }
    }

    fn tell(&mut self, reply: ChatReply, out: &mut Output) {
        out.report.add(&reply.report);
        let mut messages = reply.record.messages.iter().cloned();
        if let Some(call) = reply.call {
            let model = call.usage.iter().find(|(name, _)| name == "model");
            if let Some((_, model)) = model {
                out.event(self.session, Event::Parameters(object([("model", model)])));
            }
            let reply = messages.next().into_iter().collect();
            out.event(self.session, Event::Reply(reply, call));
        }
        for message in messages {
            out.event(self.session, Event::Message(message));
        }
        self.sent.push(reply.record);
    }

    /// The model is sent these records from now on.
    fn history(&mut self, records: Vec<&str>, json: Accepted<'_>, out: &mut Output) {
        let records: Vec<Vec<Member<'_>>> =
            records.into_iter().map(|raw| json.members(raw)).collect();
        if self.has_summary() {
            let ids: Vec<_> = records
                .iter()
                .filter_map(|found| text(found, "id"))
                .collect();
            self.waiting
                .retain(|reply| !ids.iter().any(|id| *id == reply.record.id));
        }
        self.flush(out);
        self.results.clear();
        let mut sent = Vec::new();
        for found in records {
            let made = self.read(&found);
            let same = |known: &ChatRecord| {
                known.id == made.record.id && known.messages == made.record.messages
            };
            // A message that is there already was counted.
            if !self.sent.iter().any(same) {
                out.report.add(&made.report);
            }
            sent.push(made.record);
        }
        let ids = |sent: &[ChatRecord]| -> Vec<String> {
            sent.iter().map(|record| record.id.clone()).collect()
        };
        let is_rewound = ids(&self.sent).starts_with(&ids(&sent));
        let call = if !is_rewound && sent.iter().flat_map(ChatRecord::parts).any(is_summary) {
            LogCall::compaction(None, None)
        } else {
            changed_by(SET)
        };
        self.replace(sent, call, out);
    }

    fn replace(&mut self, sent: Vec<ChatRecord>, call: LogCall, out: &mut Output) {
        let all = |sent: &[ChatRecord]| -> Vec<LogMessage> {
            sent.iter()
                .flat_map(|record| record.messages.clone())
                .collect()
        };
        let (before, mut after) = (all(&self.sent), all(&sent));
        self.sent = sent;
        if !after.starts_with(&before) {
            out.event(self.session, Event::Context(after, call));
            return;
        }
        for message in after.drain(before.len()..) {
            out.event(self.session, Event::Message(message));
        }
    }

    fn read(&mut self, found: &[Member<'_>]) -> ChatReply {
        let kind = text(found, "type").unwrap_or_default();
        let mut reply = ChatReply {
            record: ChatRecord {
                id: text(found, "id").unwrap_or_default().into_owned(),
                messages: Vec::new(),
            },
            call: None,
            report: ImportReport::default(),
        };
        if kind == "gemini" {
            (reply.record.messages, reply.call) = self.reply(found, &mut reply.report);
        } else if is_of_model(&kind, found) {
            reply
                .record
                .messages
                .extend(self.user(found, &mut reply.report));
        }
        reply
    }

    /// What the user, or the program in the place of one, says.
    fn user(&mut self, found: &[Member<'_>], report: &mut ImportReport) -> Option<LogMessage> {
        let content = get(found, "content").unwrap_or("null");
        let mut parts = self.parts(content, &[], report);
        if parts.is_empty() && content.len() > 2 {
            return None;
        }
        for part in parts.iter_mut().filter(|part| part.kind == Some("text")) {
            let is_summary = part
                .content
                .as_ref()
                .is_some_and(|text| text.contains("<state_snapshot>"));
            part.kind = if is_summary {
                Some("summary")
            } else {
                part.kind
            };
        }
        report.message(fate(&parts), "user");
        let mut message = LogMessage::new(Some("user".to_owned()), parts);
        message.injected = message.parts.iter().any(|part| part.kind == Some("result"));
        message.typed = get(found, "displayContent").and_then(typed);
        keep(
            &mut message,
            found,
            &words![id timestamp type content],
            report,
        );
        Some(message.at(get(found, "timestamp").and_then(time)))
    }

    /// A reply and the results of its calls, with the call of the provider.
    fn reply(
        &mut self,
        found: &[Member<'_>],
        report: &mut ImportReport,
    ) -> (Vec<LogMessage>, Option<LogCall>) {
        let mut said: Vec<LogPart> = items(found, "thoughts").into_iter().map(thought).collect();
        let thoughts = said.len();
        let calls = items(found, "toolCalls").into_iter().map(members);
        let calls: Vec<Vec<Member<'_>>> = calls.collect();
        said.extend(calls.iter().map(|found| call(found, report)));
        for part in &said {
            report.part(Fate::Understood, part.kind.unwrap_or_default());
        }
        let content = get(found, "content").filter(|raw| *raw != "\"\"");
        let content = self.parts(content.unwrap_or("null"), &said, report);
        said.splice(thoughts..thoughts, content);
        let time = get(found, "timestamp").and_then(time);
        report.message(fate(&said), "assistant");
        let mut message = LogMessage::new(Some("assistant".to_owned()), said).at(time);
        let known = words![id timestamp type content thoughts toolCalls tokens model];
        keep(&mut message, found, &known, report);
        let mut messages = vec![message];
        messages.extend(self.results(&calls, report));
        let of = |name| get(found, name).filter(|raw| *raw != "null");
        let used = (of("model"), of("tokens"));
        let call = is_call(found).then(|| LogCall {
            time,
            ..LogCall::used(used.1.map(usage).as_deref(), &[("model", used.0)])
        });
        (messages, call)
    }

    /// One message, as it is sent. A call that has no result yet is running.
    fn results(
        &mut self,
        calls: &[Vec<Member<'_>>],
        report: &mut ImportReport,
    ) -> Option<LogMessage> {
        let mut all = Vec::new();
        let mut at = None;
        for found in calls {
            let Some(raw) = get(found, "result").filter(|raw| *raw != "null") else {
                continue;
            };
            let (id, name) = (get_string(found, "id"), get_string(found, "name"));
            let status = text(found, "status").unwrap_or_default();
            at = get(found, "timestamp").and_then(time).or(at);
            for mut part in self.parts(raw, &[], report) {
                if value_type(raw) == ValueType::String {
                    part.kind = Some("result");
                    part.role = Some("tool");
                    part.set_some("data_call_id", id);
                    part.set_some("data_call_name", name);
                }
                if part.kind == Some("result") && matches!(&*status, "error" | "cancelled") {
                    part.set("data_is_error", "true".to_owned());
                }
                all.push(part);
            }
        }
        if all.is_empty() {
            return None;
        }
        report.message(fate(&all), "user");
        let mut message = LogMessage::new(Some("user".to_owned()), all).at(at);
        message.injected = true;
        Some(message)
    }

    /// The parts of a content, which is a text, a part, or a list of both, without what the message says already.
    fn parts(&mut self, raw: &str, said: &[LogPart], report: &mut ImportReport) -> Vec<LogPart> {
        let list = match value_type(raw) {
            ValueType::Array => elements(raw),
            _ => vec![raw],
        };
        let mut parts = Vec::new();
        for raw in list.into_iter().filter(|raw| *raw != "null") {
            let mut counted = ImportReport::default();
            let mut part = if value_type(raw) == ValueType::String {
                counted.part(Fate::Understood, "text");
                LogPart::new("text", canonical(raw))
            } else {
                part_of_api(raw, &mut counted)
            };
            match self.repeats(&part, said) {
                Some(why) => report.part(Fate::Skipped, why),
                None => {
                    report.add(&counted);
                    part.set("data_form", quoted("gemini"));
                    parts.push(part);
                }
            }
        }
        parts
    }

    /// Why a part is not told again.
    fn repeats(&mut self, part: &LogPart, said: &[LogPart]) -> Option<&'static str> {
        let id = part.field("data_call_id");
        let mut said = said.iter().filter(|said| said.kind == part.kind);
        let (is_repeated, why) = match part.kind {
            Some("result") => {
                let known = self.results.insert(id?.to_owned(), part.content.clone());
                (
                    known.as_ref() == Some(&part.content),
                    "functionResponse (repeats a result)",
                )
            }
            Some("call") => {
                let is_same = |said: &LogPart| {
                    said.content == part.content
                        && (id.is_none() || said.field("data_call_id") == id)
                };
                (said.any(is_same), "functionCall (repeats a call)")
            }
            Some("thinking") => {
                let said: String = said.map(|said| plain(said.content.as_deref())).collect();
                let is_said = said.contains(&plain(part.content.as_deref()));
                (is_said, "thought (repeats a thought)")
            }
            _ => return None,
        };
        is_repeated.then_some(why)
    }
}

impl ChatRecord {
    fn parts(&self) -> impl Iterator<Item = &LogPart> {
        self.messages.iter().flat_map(|message| &message.parts)
    }

    fn calls(&self) -> impl Iterator<Item = &str> {
        self.parts().filter_map(|part| part.field("data_call_id"))
    }

    /// Whether all that a reply says is in another one. Its results may be others: none of them was sent.
    fn is_in(&self, other: &Self) -> bool {
        let Some(message) = self.messages.first() else {
            return false;
        };
        message.parts.iter().all(|part| {
            other
                .parts()
                .any(|other| (other.kind, &other.content) == (part.kind, &part.content))
        })
    }
}

fn is_header(found: &[Member<'_>]) -> bool {
    get_string(found, "sessionId").is_some() && get_string(found, "projectHash").is_some()
}

/// Whether the model is sent a record. An `info` of parts is a file that a tool returned.
fn is_of_model(kind: &str, found: &[Member<'_>]) -> bool {
    match kind {
        "user" | "gemini" => true,
        "info" => is(found, "content", ValueType::Array),
        _ => false,
    }
}

/// Whether a reply is of a call of the provider: the program does not say so of one that it made up.
fn is_call(found: &[Member<'_>]) -> bool {
    ["model", "tokens"]
        .iter()
        .any(|name| get(found, name).is_some_and(|raw| raw != "null"))
}

fn is_summary(part: &LogPart) -> bool {
    part.kind == Some("summary")
}

/// Whether a record says that a call of the provider failed; other errors are of the program.
fn is_failure(kind: &str, found: &[Member<'_>]) -> bool {
    kind == "error" && text(found, "content").is_some_and(|text| text.starts_with("[API Error"))
}

/// A text without its spaces and asterisks: thoughts are there with their first line in bold, and in two members.
fn plain(content: Option<&str>) -> String {
    let text = content.and_then(string).unwrap_or_default();
    text.chars()
        .filter(|letter| !letter.is_whitespace() && *letter != '*')
        .collect()
}

/// What a person typed, as JSON, where a message has more.
fn typed(raw: &str) -> Option<String> {
    match value_type(raw) {
        ValueType::String => Some(canonical(raw)),
        ValueType::Array => elements(raw).into_iter().find_map(typed),
        _ => get_string(&members(raw), "text").map(canonical),
    }
}

fn thought(raw: &str) -> LogPart {
    let found = members(raw);
    let of = |name| text(&found, name).unwrap_or_default();
    let (subject, description) = (of("subject"), of("description"));
    let text = match &*subject {
        "" => description.into_owned(),
        subject => format!("**{subject}**\n{description}"),
    };
    let mut part = LogPart::new("thinking", quoted(&text));
    part.keep_rest("data_part", &found, &words![subject description timestamp]);
    part.with("data_form", quoted("gemini"))
}

fn call(found: &[Member<'_>], report: &mut ImportReport) -> LogPart {
    let arguments = json_text(get(found, "args").unwrap_or("{}"));
    let mut part = LogPart::call(
        arguments,
        get_string(found, "id"),
        get_string(found, "name"),
    );
    keep_in(
        &mut part,
        "data_record",
        found,
        &words![id name args result timestamp],
        report,
    );
    part.with("data_form", quoted("gemini"))
}

/// What a reply used, in the API's own names.
fn usage(raw: &str) -> String {
    let names = [
        ("input", "promptTokenCount"),
        ("cached", "cachedContentTokenCount"),
        ("output", "candidatesTokenCount"),
        ("thoughts", "thoughtsTokenCount"),
        ("tool", "toolUsePromptTokenCount"),
        ("total", "totalTokenCount"),
    ];
    let found = members(raw);
    let used = names
        .into_iter()
        .filter_map(|(name, of_api)| Some((of_api, get(&found, name)?)));
    object(used)
}
