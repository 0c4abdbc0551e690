//! From what a log says happened to a session: the part of importing that all formats share.
//!
//! A [`Builder`] is given the [`Event`]s of one session and holds what the model is sent now, a
//! list of messages. Each reply and each request commits a cycle. Leading system messages and tools
//! are in `^sys`; each reply ends a turn; what follows the last reply is in `^ah`. Messages, turns
//! and tools are numbered as they first appear and keep their numbers for good, so a log that has
//! grown, and a request without the oldest messages, change no id.
//!
//! Siblings are ordered by `created_at_ns`. It is the time of the log, or one second a message where
//! a log has no times; a node that lands between older ones gets a time between theirs.
//! This file must not know log formats.

mod arrange;
#[cfg(feature = "store")]
mod resume;
mod title;

#[cfg(feature = "store")]
pub(crate) use resume::Numbers;
pub(crate) use title::from_text as title_from_text;

use crate::json::{get, members};
use crate::logs::change::LogChange;
use crate::logs::json::{canonical, list, object, quoted};
use crate::logs::log::{
    About, Event, LogCall, LogField, LogMessage, LogPart, LogRequest, LogTool, RequestOrigin,
};
use crate::logs::nodes::CreationOrder;
use crate::logs::pairing::pair;
use crate::logs::recording::Recording;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Default)]
pub(super) struct Builder {
    pub(super) about: About,
    recording: Recording,
    change: LogChange,
    /// The nodes it removes, with the time of their turn and their own.
    removed: Vec<((i64, i64), String)>,
    made: i64,
    opened: bool,
    timed: bool,
    /// The time of the call whose messages are added.
    now: Option<i64>,
    base: i64,
    entries: Vec<SentMessage>,
    /// Messages that are no longer sent and still in the tree.
    gone: Vec<SentMessage>,
    /// How many of `entries`, from the first, are in the tree.
    arranged: usize,
    /// The first of them that is another than in the tree, if one is.
    changed: Option<usize>,
    /// The turns of `entries`, the open one last.
    turns: Vec<Turn>,
    tools: Vec<ToolEntry>,
    new_tools: Option<Vec<LogTool>>,
    messages: usize,
    numbered_turns: usize,
    numbered_tools: usize,
    parameters: Option<String>,
    /// The log's own title, and the first words of the user, as JSON.
    title: Option<String>,
    first_words: Option<String>,
    /// Whether no snapshot has the title yet.
    is_news: bool,
    attempts: Vec<String>,
}

#[derive(Clone)]
struct SentMessage {
    message: Arc<LogMessage>,
    number: usize,
    /// Its position among the messages of a transcript.
    serial: usize,
    reply_of: Option<i64>,
    response: Option<String>,
    ends: bool,
    order_ns: i64,
    time: Option<i64>,
    made: Vec<CreationOrder>,
    shown: Option<ShownMessage>,
}

impl SentMessage {
    fn new(message: Arc<LogMessage>, number: usize) -> Self {
        Self {
            number,
            serial: number.saturating_sub(1),
            reply_of: None,
            response: message.response.clone(),
            ends: false,
            order_ns: i64::MIN,
            time: None,
            made: Vec::new(),
            shown: None,
            message,
        }
    }
}

#[derive(Clone)]
struct ShownMessage {
    message: Arc<LogMessage>,
    place: BlockPlace,
    order_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum BlockPlace {
    System,
    Turn(usize),
}

#[derive(Clone)]
struct Turn {
    number: usize,
    start: usize,
    sealed: bool,
    order_ns: i64,
    turn: Option<CreationOrder>,
    core: CreationOrder,
}

#[derive(Clone)]
struct ToolEntry {
    tool: LogTool,
    number: usize,
    order_ns: i64,
    made: CreationOrder,
}

impl Builder {
    pub(super) fn new(about: About, recording: Recording) -> Self {
        Self {
            about,
            recording,
            ..Self::default()
        }
    }

    pub(super) fn event(&mut self, event: Event) {
        match event {
            Event::Message(message) => self.push(Arc::new(message), None),
            Event::Reply(messages, call) => {
                self.reply(messages);
                self.arrange(self.arranged);
                self.commit(call);
            }
            Event::Request(request) => self.request(request),
            Event::Context(messages, call) => {
                self.keep_seen(|entry| messages.contains(&entry.message));
                self.replace(messages.into_iter().map(Arc::new).collect(), false);
                self.arrange(0);
                self.commit(call);
            }
            Event::Compaction {
                summary,
                kept,
                kept_first,
                call,
            } => self.compact(summary, kept, kept_first, call),
            Event::Cleared {
                calls,
                content,
                call,
            } => self.clear(&calls, &content, call),
            Event::TakenBack { turns, call } => self.take_back(turns, call),
            Event::Title(title) => {
                self.is_news |= self.title.as_ref() != Some(&title);
                self.title = Some(title);
            }
            Event::Tools(tools) if tools.is_empty() => {}
            Event::Tools(tools) => self.new_tools = Some(tools),
            Event::Parameters(parameters) => self.parameters = Some(parameters),
            Event::Failed(attempt) => self.attempts.push(attempt),
            Event::Child { call, session } => self.link(&call, &session),
        }
    }

    fn link(&mut self, call: &str, session: &str) {
        let is_call =
            |part: &LogPart| part.kind == Some("call") && part.field("data_call_id") == Some(call);
        let has_call = |entry: &SentMessage| entry.message.parts.iter().any(is_call);
        let Some(at) = self.entries.iter().rposition(has_call) else {
            return;
        };
        let mut message = LogMessage::clone(&self.entries[at].message);
        for part in message.parts.iter_mut().filter(|part| is_call(part)) {
            if part.field("data_child_session").is_none() {
                part.set("data_child_session", session.to_owned());
            }
        }
        self.rewrite(at, message);
    }

    fn rewrite(&mut self, at: usize, message: LogMessage) {
        self.entries[at].message = Arc::new(message);
        if at < self.arranged {
            self.changed = Some(self.changed.map_or(at, |before| before.min(at)));
        }
    }

    /// The result of each of these calls becomes one part with this content.
    fn clear(&mut self, calls: &[String], content: &str, call: LogCall) {
        let id = |part: &LogPart| {
            let id = part
                .field("data_call_id")
                .filter(|_| part.kind != Some("call"));
            id.filter(|id| calls.iter().any(|call| call == id))
                .map(str::to_owned)
        };
        let is_cleared =
            |entry: &SentMessage| entry.message.parts.iter().any(|part| id(part).is_some());
        self.keep_seen(|entry| !is_cleared(entry));
        for at in 0..self.entries.len() {
            if !is_cleared(&self.entries[at]) {
                continue;
            }
            let mut message = LogMessage::clone(&self.entries[at].message);
            let mut cleared = None;
            message.parts.retain_mut(|part| {
                let of = id(part);
                let is_first = of.is_none() || of != cleared;
                if of.is_some() {
                    part.kind = Some("result");
                    part.content = Some(content.to_owned());
                }
                cleared = of;
                is_first
            });
            self.rewrite(at, message);
        }
        self.arrange(self.arranged);
        self.commit(call);
    }

    /// Messages after the last cycle are the working state; so is a session without any cycle.
    pub(super) fn finish(mut self) -> (About, Recording) {
        if self.arranged < self.entries.len()
            || self.recording.snapshots() == 0
            || self.new_tools.is_some()
            || !self.attempts.is_empty()
            || self.is_news
        {
            self.arrange(self.arranged);
            let mut change = self.take_change();
            change.meta = self.meta(&LogCall::default());
            self.recording.set_working(&change);
        }
        (self.about, self.recording)
    }

    /// Says that what was committed so far stays when the log grows.
    pub(super) fn settle(&mut self) {
        self.recording.settle();
    }

    pub(super) fn cycles(&self) -> usize {
        self.recording.snapshots()
    }

    fn cycle(&self) -> i64 {
        self.recording.snapshots() as i64 + 1
    }

    fn make(&mut self) -> CreationOrder {
        self.made += 1;
        CreationOrder {
            cycle: self.cycle(),
            index: self.made - 1,
        }
    }

    fn push(&mut self, message: Arc<LogMessage>, reply_of: Option<i64>) {
        self.messages += 1;
        if self.first_words.is_none() {
            self.first_words = title::from_message(&message);
        }
        self.entries.push(SentMessage {
            reply_of,
            time: message.time.or(self.now),
            ..SentMessage::new(message, self.messages)
        });
    }

    fn reply(&mut self, messages: Vec<LogMessage>) {
        let cycle = self.cycle();
        for message in messages {
            self.push(Arc::new(message), Some(cycle));
        }
        if let Some(last) = self.entries.last_mut() {
            last.ends = true;
        }
    }

    fn request(&mut self, request: LogRequest) {
        self.now = request.call.time;
        self.replace(request.messages, true);
        if !request.reply.is_empty() {
            self.reply(request.reply);
        }
        self.new_tools = Some(request.tools);
        if request.parameters.is_some() {
            self.parameters = request.parameters;
        }
        self.arrange(0);
        self.commit(request.call);
        self.now = None;
    }

    /// Commits messages that no snapshot has yet, if one of them is about to go: what is summarized is
    /// sent for that, and what no snapshot has is lost.
    fn keep_seen(&mut self, stays: impl Fn(&SentMessage) -> bool) {
        if !self.entries[self.arranged..].iter().all(stays) {
            self.arrange(self.arranged);
            self.commit(LogCall::default());
        }
    }

    fn compact(
        &mut self,
        summary: Vec<LogMessage>,
        kept: Range<usize>,
        kept_first: bool,
        call: LogCall,
    ) {
        let lead = self.lead();
        let system = self
            .entries
            .get(lead)
            .map_or(usize::MAX, |entry| entry.serial);
        self.keep_seen(|entry| entry.serial < system || kept.contains(&entry.serial));
        let old = std::mem::take(&mut self.entries);
        let mut rest = Vec::new();
        for (at, entry) in old.into_iter().enumerate() {
            if at < lead {
                self.entries.push(entry);
            } else if kept.contains(&entry.serial) {
                rest.push(entry);
            } else {
                self.gone.push(entry);
            }
        }
        if kept_first {
            self.entries.append(&mut rest);
        }
        for message in summary {
            self.push(Arc::new(message), None);
        }
        self.entries.append(&mut rest);
        self.arrange(0);
        self.commit(call);
    }

    fn take_back(&mut self, turns: usize, call: LogCall) {
        let begins = |at: &usize| title::begins_turn(&self.entries[*at].message);
        let first: Vec<usize> = (0..self.entries.len()).filter(begins).collect();
        let Some(at) = first.get(first.len().saturating_sub(turns)) else {
            return;
        };
        let at = *at;
        // What was sent in no snapshot yet is in one before it goes.
        if self.arranged < self.entries.len() {
            self.arrange(self.arranged);
            self.commit(LogCall::default());
        }
        let gone = self.entries.split_off(at);
        self.gone.extend(gone);
        self.arrange(0);
        self.commit(call);
    }

    /// Makes `messages` what the model is sent. Those that were there keep their numbers.
    fn replace(&mut self, messages: Vec<Arc<LogMessage>>, rewritten: bool) {
        let before: Vec<&Arc<LogMessage>> =
            self.entries.iter().map(|entry| &entry.message).collect();
        let pairs = pair(&before, &messages, rewritten);
        let mut old: Vec<Option<SentMessage>> = std::mem::take(&mut self.entries)
            .into_iter()
            .map(Some)
            .collect();
        for (message, pair) in messages.into_iter().zip(pairs) {
            match pair.and_then(|at| old[at].take()) {
                Some(mut entry) => {
                    entry.message = message;
                    self.entries.push(entry);
                }
                None => self.push(message, None),
            }
        }
        for at in 0..self.entries.len() {
            let next = self.entries.get(at + 1);
            let goes_on = self.about.joined && next.is_some_and(|next| next.message.reply);
            self.entries[at].ends = self.entries[at].message.reply && !goes_on;
        }
        self.gone.extend(old.into_iter().flatten());
    }

    fn commit(&mut self, call: LogCall) {
        let mut change = self.take_change();
        change.meta = self.meta(&call);
        if !call.usage.is_empty() {
            change.usage = Some(canonical_object(call.usage));
        }
        self.attempts.clear();
        self.is_news = false;
        self.recording.push(&change);
        self.made = 0;
    }

    fn take_change(&mut self) -> LogChange {
        let mut change = std::mem::take(&mut self.change);
        self.removed.sort_unstable();
        change.remove = self.removed.drain(..).map(|(_, id)| id).collect();
        change
    }

    fn meta(&self, call: &LogCall) -> Option<String> {
        let source = match self.about.origin {
            RequestOrigin::Request => "request",
            RequestOrigin::Transcript => "transcript",
        };
        let mut fields: Vec<LogField> = vec![("source".into(), quoted(source))];
        if let Some(parameters) = &self.parameters {
            fields.push(("request".into(), parameters.clone()));
        }
        if !self.attempts.is_empty() {
            fields.push(("attempts".into(), list(&self.attempts)));
        }
        let title = self.title.as_ref().or(self.first_words.as_ref());
        fields.extend(title.map(|title| ("title".into(), title.clone())));
        let parameters = members(self.parameters.as_deref().unwrap_or_default());
        let used = call.usage.iter().find(|(name, _)| name == "model");
        let model = get(&parameters, "model")
            .filter(|raw| raw.starts_with('"'))
            .map(canonical);
        let model = model.or_else(|| used.map(|(_, model)| model.clone()));
        fields.extend(model.map(|model| ("model".into(), model)));
        // The first of a name counts.
        for field in call.meta.iter().chain(&self.about.meta) {
            if !fields.iter().any(|(name, _)| *name == field.0) {
                fields.push(field.clone());
            }
        }
        Some(canonical_object(fields))
    }
}

fn canonical_object(mut fields: Vec<LogField>) -> String {
    fields.sort_unstable();
    object(fields)
}
