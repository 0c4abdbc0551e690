//! Recorded requests, lists of messages, and messages one a record: what the providers' APIs share.
//!
//! An [`Api`] reads one message, the request around messages, and a response. [`RequestsReader`] finds
//! them: a record is
//!
//! - a request: an object with messages and a `model`, or what else says that it is one;
//! - a request and its response: `{"request": …, "response": …}`, where each may be below `body`;
//! - a response alone, the reply to the request before it;
//! - a conversation: an object with messages and no `model`, such as a line of fine-tuning data;
//! - one message of the conversation that all records make.
//!
//! A request belongs to the session whose last request it has most messages of; one that has none,
//! or that starts again, begins a session. This file must not know the members of any one API's messages.

use super::answer::{Answer, error_of};
use super::prelude::*;
use super::reader::RecordAt;
use super::transcript::record as record_of;
use crate::logs::log::RequestOrigin;
use crate::render::{Provider, is_kept};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// Messages before those of the list, such as the system prompt.
    pub(super) system: Vec<Arc<LogMessage>>,
    pub(super) tools: Vec<LogTool>,
    /// The members that are in the tree; the others are parameters.
    pub(super) taken: Vec<&'static str>,
    /// What is left of a member that has tools, as JSON.
    pub(super) rest: Option<(&'static str, String)>,
}

impl Parsed {
    /// With the system prompt, and the member that it was.
    pub(super) fn with_system(
        system: Option<SystemPrompt>,
        tools: Vec<LogTool>,
        mut taken: Vec<&'static str>,
    ) -> Self {
        let (member, system) = system.unzip();
        taken.extend(member);
        Self {
            system: system.map(Arc::new).into_iter().collect(),
            tools,
            taken,
            rest: None,
        }
    }

    /// The members that are not in the tree, as an object.
    pub(super) fn parameters(&self, found: &[Member<'_>]) -> Option<String> {
        let own = found
            .iter()
            .filter(|(name, _)| !self.taken.contains(&&**name));
        let rest = self.rest.iter();
        let rest = rest.map(|(name, json)| (Cow::Borrowed(*name), &**json));
        let parameters: Vec<Member<'_>> = own.cloned().chain(rest).collect();
        let parameters = object_without(&parameters, &[]);
        Some(parameters.unwrap_or_else(|| "{}".to_owned()))
    }
}

/// The messages of a reply, and the call that it answers.
pub(super) type ReadReply = (Vec<LogMessage>, LogCall);

/// The member of a request that is its system prompt, and the prompt.
pub(super) type SystemPrompt = (&'static str, LogMessage);

pub(super) trait Api {
    const PROVIDER: Provider;
    const MESSAGES: &'static str;
    /// Whether neighbouring messages of the model are one reply.
    const JOINED: bool;

    fn message(&self, raw: &str, report: &mut ImportReport) -> LogMessage;

    /// Whether a member is a request's messages; `found` are the members of the request.
    fn is_list(&self, raw: &str, _found: &[Member<'_>]) -> bool {
        value_type(raw) == ValueType::Array
    }

    /// Whether an object with messages, of which `found` are the members, is a request, and not a conversation.
    fn is_request(&self, found: &[Member<'_>]) -> bool {
        get(found, "model").is_some()
    }

    fn messages<'a>(&self, json: Accepted<'_>, raw: &'a str) -> Vec<&'a str> {
        json.elements(raw)
    }

    /// The system prompt of a request that has it in a member of its own, and which that is.
    fn system(&self, _: &[Member<'_>], _: &mut ImportReport) -> Option<SystemPrompt> {
        None
    }

    /// Reads what of a request is not in its messages. A list without any tools stays a parameter.
    fn request(&self, found: &[Member<'_>], report: &mut ImportReport) -> Parsed {
        let mut tools = tools(get(found, "tools"), report);
        for tool in &mut tools {
            let kept = is_kept(&tool.definition, Self::PROVIDER);
            tool.data = LogTool::of_form((!kept).then_some(Self::PROVIDER));
        }
        let mut taken = vec![Self::MESSAGES];
        taken.extend((!tools.is_empty()).then_some("tools"));
        Parsed::with_system(self.system(found, report), tools, taken)
    }

    /// The id of the response whose messages come before those of a request.
    fn previous(&self, _found: &[Member<'_>]) -> Option<String> {
        None
    }

    /// The id by which later requests name a response in the place of messages.
    fn chain_id(&self, _response: &[Member<'_>]) -> Option<String> {
        None
    }

    /// What went wrong by a response's own account, as canonical JSON.
    fn error(&self, response: &[Member<'_>]) -> Option<String> {
        error_of(response)
    }

    fn response(&self, found: &[Member<'_>], report: &mut ImportReport) -> Option<ReadReply>;
}

/// The tool definitions of a request. A tool is called by the name of its function, or its own.
pub(super) fn tools(raw: Option<&str>, report: &mut ImportReport) -> Vec<LogTool> {
    let tool = |raw: &str| {
        let found = members(raw);
        let function = inner(&found, "function");
        let name = text(&function, "name").or_else(|| text(&found, "name"));
        let name = name.or_else(|| text(&found, "type"));
        LogTool {
            name: name.unwrap_or_default().into_owned(),
            definition: raw.to_owned(),
            data: Vec::new(),
        }
    };
    let raw = elements(raw.unwrap_or_default());
    for _ in &raw {
        report.part(Fate::Understood, "tool");
    }
    raw.into_iter().map(tool).collect()
}

/// The first choice of a reply, as its members; others are counted.
pub(super) fn first_choice<'a>(choices: &[&'a str], report: &mut ImportReport) -> Vec<Member<'a>> {
    for _ in choices.iter().skip(1) {
        report.part(Fate::Skipped, "another choice");
    }
    choices.first().copied().map(members).unwrap_or_default()
}

const KEPT: usize = 1_000;

/// The messages that were read, by their texts. Of a log of requests most of each text was there before, so it is
/// compared and not read.
#[derive(Clone, Default)]
pub(super) struct Interner(hashbrown::HashMap<Arc<str>, Arc<LogMessage>>);

impl Interner {
    /// The message of a text; `read` reads it if it is new.
    pub(super) fn get(&mut self, text: &str, read: impl FnOnce() -> LogMessage) -> Arc<LogMessage> {
        if let Some(message) = self.0.get(text) {
            return Arc::clone(message);
        }
        let message = Arc::new(read());
        self.0.insert(text.into(), Arc::clone(&message));
        message
    }

    fn shrink(&mut self, request: usize) {
        if self.0.len() > 2 * request + KEPT {
            self.0.retain(|_, message| Arc::strong_count(message) > 1);
        }
    }
}

/// Of sessions, by their last messages, the last one that has most of these; the system prompt does not count.
pub(super) fn nearest<'a>(
    open: impl Iterator<Item = &'a [Arc<LogMessage>]>,
    sent: &[Arc<LogMessage>],
) -> Option<usize> {
    // Texts that are equal are one message.
    let sent = sent.iter().filter(|message| !message.system);
    let sent: HashSet<*const LogMessage> = sent.map(Arc::as_ptr).collect();
    let common = open.map(|had| {
        let had = had.iter().map(Arc::as_ptr);
        had.filter(|message| sent.contains(message)).count()
    });
    let common = common.enumerate().filter(|(_, common)| *common > 0);
    let best = common.max_by_key(|(at, common)| (*common, *at));
    best.map(|(at, _)| at)
}

const LOST: &str = "a request goes on after a response that is not in the log: what came before is not in its snapshot";

#[derive(Clone)]
struct OpenRequests {
    session: SessionId,
    name: Option<String>,
    messages: Vec<Arc<LogMessage>>,
}

#[derive(Clone, Default)]
pub(super) struct RequestsReader<A> {
    api: A,
    interner: Interner,
    messages: Option<SessionId>,
    /// Messages of it that may belong to an unfinished reply.
    unsaid: Vec<LogMessage>,
    open: Vec<OpenRequests>,
    /// A request whose response may follow.
    waiting: Option<WaitingRequest>,
    records: bool,
    /// What the model saw and said up to a response, by its id; and which of `open` it is of.
    chained: HashMap<String, (usize, Vec<Arc<LogMessage>>)>,
}

#[derive(Clone)]
struct WaitingRequest {
    /// Which of the open sessions it is of.
    at: usize,
    /// How many of its messages, from the first, no later request has before its own.
    own: usize,
    request: LogRequest,
    /// Whether the response was an error, so the next request may be the same again.
    failed: bool,
}

/// What came back for a request by the members of the record around both; `None` if they do not say.
fn answer<'a, A: Api>(json: Accepted<'_>, found: &[Member<'a>]) -> Option<Answer<'a>> {
    let raw = get(found, "response");
    let error = error_of(found).filter(|_| raw.is_some() || get(found, "request").is_some());
    if raw.is_none() && error.is_none() {
        return None;
    }
    let mut answer = raw.map_or_else(Answer::default, |raw| Answer::of(A::PROVIDER, json, raw));
    answer.error = answer.error.or(error.map(Cow::Owned));
    Some(answer)
}

/// Whether something of a reply came.
fn says(reply: &[LogMessage]) -> bool {
    let mut parts = reply.iter().flat_map(|message| &message.parts);
    parts.any(|part| part.content.as_deref().is_some_and(|said| said != "\"\""))
}

/// The name of the session, and the call, as the members that a recorder wrote around a request say. Headers are not
/// looked at; other members are counted.
fn around<'a>(found: &[Member<'a>], report: &mut ImportReport) -> (Option<Cow<'a, str>>, LogCall) {
    let (mut session, mut call) = (None, LogCall::default());
    for (name, value) in found {
        let mut used = |name: &'static str| call.usage.push((name.into(), canonical(value)));
        match &**name {
            "session_id" | "conversation_id" | "thread_id" | "trace_id" => session = string(value),
            "timestamp" | "time" | "started_at" | "created_at" => call.time = time(value),
            "latency_ms" | "duration_ms" => used("latency_ms"),
            "request_id" => used("request_id"),
            "model" => used("model"),
            "url" => call.meta.push(("url".into(), canonical(value))),
            "request" | "response" | "error" => {}
            _ => report.skipped_member(name),
        }
    }
    (session, call)
}

/// Whether an object is a request of an API that names the model in the address, so that a request need not. An object
/// that ends with what `model` said, and has only `known` members, is a conversation. The first of these has the
/// messages.
pub(super) fn is_request_to_address(found: &[Member<'_>], known: &[&str], model: &str) -> bool {
    let last = items(found, known[0]).last().map(|raw| members(raw));
    let is_reply = last.is_some_and(|last| text(&last, "role").as_deref() == Some(model));
    !is_reply || found.iter().any(|(name, _)| !known.contains(&&**name))
}

pub(super) fn body_of<'a>(found: &[Member<'a>]) -> Option<Vec<Member<'a>>> {
    get(found, "request").map(|raw| body(Accepted::default(), raw))
}

/// The request or response itself: below `body`, or right there.
fn body<'a>(json: Accepted<'_>, raw: &'a str) -> Vec<Member<'a>> {
    let found = json.members(raw);
    match get(&found, "body") {
        Some(body) if value_type(body) == ValueType::Object => json.members(body),
        _ => found,
    }
}

impl<A: Api> RequestsReader<A> {
    fn release(&mut self, out: &mut Output) {
        if let Some(waiting) = self.waiting.take() {
            let session = self.open[waiting.at].session;
            out.event(session, Event::Request(waiting.request));
        }
    }

    /// Makes a request the one that waits. One that failed and is made again is an attempt.
    fn wait(&mut self, at: usize, own: usize, request: LogRequest, out: &mut Output) {
        let again = |waiting: &WaitingRequest| {
            waiting.failed && waiting.at == at && waiting.request.messages == request.messages
        };
        if self.waiting.as_ref().is_some_and(again) {
            self.waiting = None;
        }
        self.release(out);
        self.waiting = Some(WaitingRequest {
            at,
            own,
            request,
            failed: false,
        });
    }

    fn single(&mut self, location: &str, origin: RequestOrigin, out: &mut Output) -> SessionId {
        *self.messages.get_or_insert_with(|| {
            out.session(About {
                location: location.to_owned(),
                origin,
                joined: A::JOINED,
                ..About::default()
            })
        })
    }

    fn read(&mut self, raw: &[&str], out: &mut Output) -> Vec<Arc<LogMessage>> {
        let mut messages = Vec::with_capacity(raw.len());
        for raw in raw {
            let read = || self.api.message(raw, &mut out.report);
            messages.push(self.interner.get(raw, read));
        }
        self.interner.shrink(raw.len());
        messages
    }

    fn list(
        &mut self,
        record: &LogRecord<'_>,
        found: &[Member<'_>],
        answer: Option<Answer<'_>>,
        (session, call): (Option<Cow<'_, str>>, LogCall),
        out: &mut Output,
    ) {
        let mut parsed = self.api.request(found, &mut out.report);
        if answer.is_none() && !self.api.is_request(found) {
            self.conversation(record, found, parsed, out);
            return;
        }
        out.report.line(Fate::Understood, "request");
        let raw = get(found, A::MESSAGES).unwrap_or_default();
        let raw = self.api.messages(record.json, raw);
        let mut messages = std::mem::take(&mut parsed.system);
        let own = messages.len();
        let previous = self.api.previous(found);
        let chain = previous.as_ref().and_then(|id| self.chained.get(id));
        let at = chain.map(|(at, earlier)| {
            messages.extend(earlier.iter().cloned());
            *at
        });
        if previous.is_some() && at.is_none() {
            out.report.note(LOST.to_owned());
        }
        messages.extend(self.read(&raw, out));
        let request = LogRequest {
            messages,
            parameters: parsed.parameters(found),
            tools: parsed.tools,
            reply: Vec::new(),
            call,
        };
        let at = match at {
            Some(at) => at,
            None => self.session_of(record, &request, session.map(Cow::into_owned), out),
        };
        self.open[at].messages.clone_from(&request.messages);
        self.wait(at, own, request, out);
        let answer = answer.unwrap_or_default();
        if !self.answered(record.json, &answer, out) {
            self.unread(&answer, out);
        }
    }

    /// Adds what came back to the request that waits for it. Returns false if it is nothing that is understood.
    fn answered(&mut self, json: Accepted<'_>, answer: &Answer<'_>, out: &mut Output) -> bool {
        let Some(waiting) = &mut self.waiting else {
            return false;
        };
        let found = json.members(answer.response.as_deref().unwrap_or_default());
        let error = answer.error.as_deref().map(canonical);
        let error = error.or_else(|| self.api.error(&found));
        match (self.api.response(&found, &mut out.report), error) {
            (Some((reply, mut call)), error) if error.is_none() || says(&reply) => {
                call.usage
                    .extend(error.map(|error| ("error".into(), error)));
                self.replied(&found, reply, call);
                self.release(out);
            }
            (read, Some(error)) => {
                let used = read.map(|(_, call)| call.usage).unwrap_or_default();
                let attempt = if used.is_empty() {
                    failed(&error)
                } else {
                    let status = quoted("error");
                    let used = object(used.iter().map(|(name, value)| (name, value)));
                    canonical(&object([
                        ("error", &error),
                        ("status", &status),
                        ("usage", &used),
                    ]))
                };
                waiting.failed = true;
                out.event(self.open[waiting.at].session, Event::Failed(attempt));
            }
            (_, None) => return false,
        }
        true
    }

    /// Adds a reply to the request that waits for it.
    fn replied(&mut self, found: &[Member<'_>], mut reply: Vec<LogMessage>, call: LogCall) {
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        for message in &mut reply {
            message.time = message.time.or(call.time);
        }
        let request = &mut waiting.request;
        if let Some(id) = self.api.chain_id(found) {
            let before = request.messages.iter().skip(waiting.own).cloned();
            let mut chain: Vec<Arc<LogMessage>> = before.collect();
            for message in &mut reply {
                message.response = Some(id.clone());
                chain.push(Arc::new(message.clone()));
            }
            self.chained.insert(id, (waiting.at, chain));
        }
        request.reply = reply;
        request.call.time = request.call.time.or(call.time);
        for (name, value) in call.usage {
            let usage = &mut request.call.usage;
            match usage.iter().find(|(known, _)| *known == name) {
                None => usage.push((name, value)),
                // The address says which one was asked for.
                Some((_, asked)) if name == "model" && *asked != value => {
                    usage.push(("model_version".into(), value));
                }
                Some(_) => {}
            }
        }
        request.call.meta.extend(call.meta);
    }

    /// Keeps what came back and is not understood with the request that waits for it, and counts it.
    fn unread(&mut self, answer: &Answer<'_>, out: &mut Output) {
        let (Some(waiting), Some(response)) = (&mut self.waiting, &answer.response) else {
            return;
        };
        out.report.part(Fate::Skipped, "response of unknown form");
        let kept = [("response".into(), &**response)];
        let kept = record_of(&kept, &[], &mut out.report);
        waiting.request.call.meta.extend(kept);
        self.release(out);
    }

    /// Which open session a request is of: that of its name, or the one whose last request it has most
    /// messages of.
    fn session_of(
        &mut self,
        record: &LogRecord<'_>,
        request: &LogRequest,
        name: Option<String>,
        out: &mut Output,
    ) -> usize {
        let fresh = !request.messages.iter().any(|message| message.reply);
        let best = match &name {
            Some(_) => self.open.iter().rposition(|open| open.name == name),
            None => {
                let open = self.open.iter().map(|open| &*open.messages);
                nearest(open, &request.messages)
            }
        };
        // One that has no reply in it starts again, unless the last one had none either.
        let shorter = |open: &OpenRequests| request.messages.len() < open.messages.len();
        let goes_on = |open: &OpenRequests| name.is_some() || !fresh || !shorter(open);
        let best = best.filter(|at| goes_on(&self.open[*at]));
        best.unwrap_or_else(|| {
            self.open.push(OpenRequests {
                session: out.session(About {
                    location: record.location(),
                    name: name.clone(),
                    origin: RequestOrigin::Request,
                    joined: A::JOINED,
                    ..About::default()
                }),
                name,
                messages: Vec::new(),
            });
            self.open.len() - 1
        })
    }

    fn conversation(
        &mut self,
        record: &LogRecord<'_>,
        found: &[Member<'_>],
        parsed: Parsed,
        out: &mut Output,
    ) {
        let meta = record_of(found, &parsed.taken, &mut out.report);
        let session = out.session(About {
            location: record.location(),
            joined: A::JOINED,
            meta,
            ..About::default()
        });
        out.event(session, Event::Tools(parsed.tools));
        for message in parsed.system {
            out.event(session, Event::Message(LogMessage::clone(&message)));
        }
        let raw = get(found, A::MESSAGES).unwrap_or_default();
        let mut messages = Vec::new();
        let before = out.report.messages(Fate::Understood);
        for raw in self.api.messages(record.json, raw) {
            messages.push(self.api.message(raw, &mut out.report));
        }
        let fate = if messages.is_empty() {
            Fate::Understood
        } else {
            fate_since(before, &out.report)
        };
        out.report.line(fate, "conversation");
        converse(messages, A::JOINED, session, out);
        out.close(session);
    }
}

impl<A: Api + Clone + Send + 'static> LogReader for RequestsReader<A> {
    fn record(&mut self, record: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        let json = record.json;
        let found = json.members(record.raw);
        let has_list = |found: &[Member<'_>]| {
            get(found, A::MESSAGES).is_some_and(|raw| self.api.is_list(raw, found))
        };
        if has_list(&found) {
            self.records = true;
            self.list(record, &found, None, Default::default(), out);
            return;
        }
        let request = get(&found, "request").map(|raw| body(json, raw));
        let request = request.unwrap_or_default();
        if has_list(&request) {
            self.records = true;
            let around = around(&found, &mut out.report);
            let answer = answer::<A>(json, &found);
            self.list(record, &request, answer, around, out);
            return;
        }
        // A response alone is looked for only where a request waits for it.
        let answer = || answer::<A>(json, &found).unwrap_or_else(|| Answer::whole(record.raw));
        if self.waiting.is_some() && self.answered(json, &answer(), out) {
            out.report.line(Fate::Understood, "response");
            return;
        }
        if self.records && get(&found, "role").is_none() {
            let name = text(&found, "type").unwrap_or("unknown record".into());
            out.report.unknown_line(&name);
            return;
        }
        let before = out.report.messages(Fate::Understood);
        let message = self.api.message(record.raw, &mut out.report);
        // The messages of a list are elements of one value.
        if matches!(record.at, RecordAt::Line(_)) {
            out.report.line(fate_since(before, &out.report), "message");
        }
        let session = self.single(record.list, RequestOrigin::Transcript, out);
        self.unsaid.push(message);
        if !A::JOINED {
            converse(std::mem::take(&mut self.unsaid), false, session, out);
        }
    }

    fn step(&mut self, messages: &[&str], out: &mut Output) -> bool {
        let request = LogRequest {
            messages: self.read(messages, out),
            ..LogRequest::default()
        };
        let session = self.single("", RequestOrigin::Request, out);
        out.event(session, Event::Request(request));
        true
    }

    fn copy(&mut self) -> Option<Box<dyn LogReader>> {
        Some(Box::new(self.clone()))
    }

    fn finish(&mut self, _: &dyn Records, out: &mut Output) {
        self.release(out);
        if let Some(session) = self.messages {
            let unsaid = std::mem::take(&mut self.unsaid);
            converse(unsaid, A::JOINED, session, out);
        }
    }
}

/// What became of a record: it is understood if one more message is than `before`.
fn fate_since(before: u64, report: &ImportReport) -> Fate {
    if report.messages(Fate::Understood) > before {
        Fate::Understood
    } else {
        Fate::Verbatim
    }
}

pub(super) fn converse(
    messages: Vec<LogMessage>,
    joined: bool,
    session: SessionId,
    out: &mut Output,
) {
    let mut reply = Vec::new();
    let mut messages = messages.into_iter().peekable();
    while let Some(message) = messages.next() {
        if !message.reply {
            out.event(session, Event::Message(message));
            continue;
        }
        reply.push(message);
        if !joined || !messages.peek().is_some_and(|next| next.reply) {
            out.event(
                session,
                Event::Reply(std::mem::take(&mut reply), LogCall::default()),
            );
        }
    }
}
