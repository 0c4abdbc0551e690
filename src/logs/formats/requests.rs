//! Recorded requests, lists of messages, and messages one a record: what the providers' APIs share.
//!
//! An [`Api`] reads one message, the request around messages, and a response. [`Requests`] finds
//! them: a record is
//!
//! - a request: an object with messages and a `model`;
//! - a request and its response: `{"request": …, "response": …}`, where each may be below `body`;
//! - a response alone, the reply to the request before it;
//! - a conversation: an object with messages and no `model`, such as a line of fine-tuning data;
//! - one message of the conversation that all records make.
//!
//! A request belongs to the session whose last request it has most messages of; one that has none,
//! or that starts again, begins a session. This file must not know the members of any one API's messages.

use super::fields::{text, time};
use super::reader::{Reader, Record, Records};
use crate::json::{Member, ValueType, elements, get, members, string, value_type};
use crate::logs::json::canonical;
use crate::logs::log::{
    About, Call, Event, Message, Origin, Request, Tool, failed, object_without,
};
use crate::logs::output::{Output, SessionId};
use crate::logs::report::{Fate, Report};
use crate::render::{Provider, is_kept};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

/// How an API has its messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListNames {
    /// The member of a request that has them.
    pub(super) messages: &'static str,
    /// Whether neighbouring messages of the model are one reply.
    pub(super) joined: bool,
}

/// A request but for its messages.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// Messages before those of the list, such as the system prompt.
    pub(super) system: Vec<Rc<Message>>,
    pub(super) tools: Vec<Tool>,
    /// The members that are in the tree; the others are parameters.
    pub(super) taken: Vec<&'static str>,
}

impl Parsed {
    /// What is known of a request to an API with these tools. A list without any stays a parameter.
    pub(super) fn new(provider: Provider, messages: &'static str, mut tools: Vec<Tool>) -> Self {
        let mut taken = vec![messages];
        for tool in &mut tools {
            let kept = is_kept(&tool.definition, provider);
            tool.form = (!kept).then_some(provider.name());
        }
        if !tools.is_empty() {
            taken.push("tools");
        }
        Self {
            tools,
            taken,
            ..Self::default()
        }
    }
}

/// The requests and responses of one API.
pub(super) trait Api {
    fn lists(&self) -> ListNames;

    /// Reads one message; any JSON.
    fn message(&self, raw: &str, report: &mut Report) -> Message;

    /// Whether a member is a request's messages; `found` are the members of the request.
    fn is_list(&self, raw: &str, _found: &[Member<'_>]) -> bool {
        value_type(raw) == ValueType::Array
    }

    /// Reads the messages of a request.
    fn messages<'a>(&self, raw: &'a str) -> Vec<&'a str> {
        elements(raw)
    }

    /// Reads what of a request is not in its messages.
    fn request(&self, found: &[Member<'_>], report: &mut Report) -> Parsed;

    /// The id of the response whose messages come before those of a request.
    fn previous(&self, _found: &[Member<'_>]) -> Option<String> {
        None
    }

    /// The id by which later requests name a response in the place of messages.
    fn chain_id(&self, _response: &[Member<'_>]) -> Option<String> {
        None
    }

    /// Reads a response: the reply's messages, and what is known of the call.
    fn response(&self, found: &[Member<'_>], report: &mut Report) -> Option<(Vec<Message>, Call)>;
}

/// The tool definitions of a request. A tool is called by the name of its function, or its own.
pub(super) fn tools(raw: Option<&str>, report: &mut Report) -> Vec<Tool> {
    let tool = |raw: &str| {
        let found = members(raw);
        let function = get(&found, "function").map(members).unwrap_or_default();
        let name = text(&function, "name").or_else(|| text(&found, "name"));
        let name = name.or_else(|| text(&found, "type"));
        Tool {
            name: name.unwrap_or_default().into_owned(),
            definition: raw.to_owned(),
            form: None,
        }
    };
    let raw = elements(raw.unwrap_or_default());
    for _ in &raw {
        report.part(Fate::Understood, "tool");
    }
    raw.into_iter().map(tool).collect()
}

/// The least number of messages that are kept, although no request has them any more.
const KEPT: usize = 1_000;

/// The messages of the last requests, each read once.
struct Interner {
    states: (RandomState, RandomState),
    seen: HashMap<(u64, u64), Rc<Message>>,
}

impl Interner {
    fn new() -> Self {
        Self {
            states: (RandomState::new(), RandomState::new()),
            seen: HashMap::new(),
        }
    }

    /// The messages of these texts; `read` reads those that are new. Two texts with the same two
    /// hashes, which no log can aim at, would be taken for one.
    fn get(&mut self, raw: &[&str], mut read: impl FnMut(&str) -> Message) -> Vec<Rc<Message>> {
        let mut found = Vec::with_capacity(raw.len());
        for raw in raw {
            let key = (self.states.0.hash_one(raw), self.states.1.hash_one(raw));
            let message = self.seen.entry(key).or_insert_with(|| Rc::new(read(raw)));
            found.push(Rc::clone(message));
        }
        if self.seen.len() > 2 * found.len() + KEPT {
            self.seen.retain(|_, message| Rc::strong_count(message) > 1);
        }
        found
    }
}

/// What is said of requests that begin in the middle.
const LOST: &str = "a request goes on after a response that is not in the log: what came before is not in its snapshot";

/// A session of requests.
struct OpenSession {
    session: SessionId,
    /// Its name in the log.
    name: Option<String>,
    /// The messages of its last request.
    messages: Vec<Rc<Message>>,
}

/// Reads the requests and messages of an API.
pub(super) struct Requests<A> {
    api: A,
    interner: Interner,
    /// The conversation that single messages make.
    messages: Option<SessionId>,
    /// Messages of it that may belong to an unfinished reply.
    unsaid: Vec<Message>,
    open: Vec<OpenSession>,
    /// A request whose response may follow.
    waiting: Option<WaitingRequest>,
    /// Whether there was a record other than a message.
    records: bool,
    /// What the model saw and said up to a response, by its id; and which of `open` it is of.
    chained: HashMap<String, (usize, Vec<Rc<Message>>)>,
}

/// A request whose response may follow.
struct WaitingRequest {
    session: SessionId,
    /// Which of the open sessions it is.
    at: usize,
    /// How many of its messages, from the first, no later request has before its own.
    own: usize,
    request: Request,
    /// Whether the response was an error, so the next request may be the same again.
    failed: bool,
}

/// The members around a request.
#[derive(Default)]
struct CallMembers<'a> {
    response: Option<&'a str>,
    /// The name of the session.
    session: Option<String>,
    call: Call,
}

impl<'a> CallMembers<'a> {
    /// The members of a record that a recorder wrote. Headers are not looked at.
    fn of(found: &[Member<'a>]) -> Self {
        let mut around = Self {
            response: get(found, "response"),
            ..Self::default()
        };
        for (name, value) in found {
            match &**name {
                "session_id" | "conversation_id" | "thread_id" | "trace_id" => {
                    around.session = string(value).map(|name| name.into_owned());
                }
                "timestamp" | "time" | "started_at" | "created_at" => {
                    around.call.time = time(value);
                }
                "latency_ms" | "duration_ms" => {
                    let latency = ("latency_ms".into(), canonical(value));
                    around.call.usage.push(latency);
                }
                "request_id" => around
                    .call
                    .usage
                    .push(("request_id".into(), canonical(value))),
                _ => {}
            }
        }
        around
    }

    /// The members of a record that [`CallMembers::of`] or the request and response read.
    const READ: [&'static str; 14] = [
        "request",
        "response",
        "session_id",
        "conversation_id",
        "thread_id",
        "trace_id",
        "timestamp",
        "time",
        "started_at",
        "created_at",
        "latency_ms",
        "duration_ms",
        "request_id",
        "error",
    ];
}

/// The request or response itself: below `body`, or right there.
fn body(raw: &str) -> Vec<Member<'_>> {
    let found = members(raw);
    match get(&found, "body") {
        Some(body) if value_type(body) == ValueType::Object => members(body),
        _ => found,
    }
}

impl<A: Api> Requests<A> {
    pub(super) fn new(api: A) -> Self {
        Self {
            api,
            interner: Interner::new(),
            messages: None,
            unsaid: Vec::new(),
            open: Vec::new(),
            waiting: None,
            records: false,
            chained: HashMap::new(),
        }
    }

    /// Passes on the request that waits.
    fn release(&mut self, out: &mut Output) {
        if let Some(waiting) = self.waiting.take() {
            out.event(waiting.session, Event::Request(waiting.request));
        }
    }

    /// Makes a request the one that waits. One that failed and is made again is an attempt.
    fn wait(&mut self, at: usize, own: usize, request: Request, out: &mut Output) {
        let session = self.open[at].session;
        let again = |waiting: &WaitingRequest| {
            waiting.failed
                && waiting.session == session
                && waiting.request.messages == request.messages
        };
        if self.waiting.as_ref().is_some_and(again) {
            self.waiting = None;
        }
        self.release(out);
        self.waiting = Some(WaitingRequest {
            session,
            at,
            own,
            request,
            failed: false,
        });
    }

    /// Reads everything that was sent in one request.
    fn read(&mut self, raw: &[&str], out: &mut Output) -> Vec<Rc<Message>> {
        let (api, report) = (&self.api, &mut out.report);
        self.interner.get(raw, |raw| api.message(raw, report))
    }

    /// Reads a request or a conversation.
    fn list(
        &mut self,
        record: &Record<'_>,
        found: &[Member<'_>],
        around: CallMembers<'_>,
        out: &mut Output,
    ) {
        let mut parsed = self.api.request(found, &mut out.report);
        if get(found, "model").is_none() && around.response.is_none() {
            self.conversation(record, found, parsed, out);
            return;
        }
        out.report.line(Fate::Understood, "request");
        let raw = get(found, self.api.lists().messages).unwrap_or_default();
        let raw = self.api.messages(raw);
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
        let parameters = object_without(found, &parsed.taken);
        let request = Request {
            messages,
            tools: parsed.tools,
            parameters: Some(parameters.unwrap_or_else(|| "{}".to_owned())),
            reply: Vec::new(),
            call: around.call,
        };
        let at = match at {
            Some(at) => at,
            None => self.session_of(record, &request, around.session, out),
        };
        self.open[at].messages.clone_from(&request.messages);
        self.wait(at, own, request, out);
        if let Some(response) = around.response {
            self.response(&body(response), out);
        }
    }

    /// Adds a response to the request that waits for it. Returns false if it is none.
    fn response(&mut self, found: &[Member<'_>], out: &mut Output) -> bool {
        let Some(waiting) = &mut self.waiting else {
            return false;
        };
        if let Some((mut reply, call)) = self.api.response(found, &mut out.report) {
            for message in &mut reply {
                message.time = message.time.or(call.time);
            }
            let request = &mut waiting.request;
            if let Some(id) = self.api.chain_id(found) {
                let before = request.messages.iter().skip(waiting.own).cloned();
                let mut chain: Vec<Rc<Message>> = before.collect();
                for message in &mut reply {
                    message.response = Some(id.clone());
                    chain.push(Rc::new(message.clone()));
                }
                self.chained.insert(id, (waiting.at, chain));
            }
            request.reply = reply;
            request.call.time = request.call.time.or(call.time);
            request.call.usage.extend(call.usage);
            request.call.meta.extend(call.meta);
            waiting.failed = false;
            self.release(out);
            return true;
        }
        let Some(error) = get(found, "error").filter(|error| *error != "null") else {
            return false;
        };
        let attempt = failed(&canonical(error));
        out.event(waiting.session, Event::Failed(attempt));
        waiting.failed = true;
        true
    }

    /// Which open session a request is of: that of its name, or the one whose last request it has most
    /// messages of.
    fn session_of(
        &mut self,
        record: &Record<'_>,
        request: &Request,
        name: Option<String>,
        out: &mut Output,
    ) -> usize {
        let fresh = !request.messages.iter().any(|message| message.reply);
        // Texts that are equal are one message.
        let messages = request.messages.iter().filter(|message| !message.system);
        let sent: HashSet<*const Message> = messages.map(Rc::as_ptr).collect();
        let common = |open: &OpenSession| {
            let had = open.messages.iter().map(Rc::as_ptr);
            had.filter(|message| sent.contains(message)).count()
        };
        let best = match &name {
            Some(_) => self.open.iter().rposition(|open| open.name == name),
            None => {
                let found = self.open.iter().map(common).enumerate();
                let best = found.filter(|(_, common)| *common > 0);
                best.max_by_key(|(at, common)| (*common, *at))
                    .map(|(at, _)| at)
            }
        };
        // One that has no reply in it starts again, unless the last one had none either.
        let shorter = |open: &OpenSession| request.messages.len() < open.messages.len();
        let goes_on = |open: &OpenSession| name.is_some() || !fresh || !shorter(open);
        let best = best.filter(|at| goes_on(&self.open[*at]));
        best.unwrap_or_else(|| {
            self.open.push(OpenSession {
                session: out.session(About {
                    location: record.location(),
                    name: name.clone(),
                    origin: Origin::Request,
                    joined: self.api.lists().joined,
                    ..About::default()
                }),
                name,
                messages: Vec::new(),
            });
            self.open.len() - 1
        })
    }

    /// Reads a conversation: each reply in it is a cycle.
    fn conversation(
        &mut self,
        record: &Record<'_>,
        found: &[Member<'_>],
        parsed: Parsed,
        out: &mut Output,
    ) {
        out.report.line(Fate::Understood, "conversation");
        let mut about = About {
            location: record.location(),
            joined: self.api.lists().joined,
            ..About::default()
        };
        for (name, _) in found {
            if !parsed.taken.contains(&&**name) {
                out.report.record_member(name);
            }
        }
        if let Some(rest) = object_without(found, &parsed.taken) {
            about.meta.push(("record".into(), rest));
        }
        let session = out.session(about);
        if !parsed.tools.is_empty() {
            out.event(session, Event::Tools(parsed.tools));
        }
        for message in parsed.system {
            out.event(session, Event::Message(Message::clone(&message)));
        }
        let raw = get(found, self.api.lists().messages).unwrap_or_default();
        let mut messages = Vec::new();
        for raw in self.api.messages(raw) {
            messages.push(self.api.message(raw, &mut out.report));
        }
        converse(messages, self.api.lists().joined, session, out);
        out.close(session);
    }
}

impl<A: Api> Reader for Requests<A> {
    fn record(&mut self, record: &Record<'_>, _: &dyn Records, out: &mut Output) {
        let found = members(record.raw);
        let lists = self.api.lists();
        let has_list = |found: &[Member<'_>]| {
            get(found, lists.messages).is_some_and(|raw| self.api.is_list(raw, found))
        };
        if has_list(&found) {
            self.records = true;
            self.list(record, &found, CallMembers::default(), out);
            return;
        }
        let request = get(&found, "request").map(body).unwrap_or_default();
        if has_list(&request) {
            self.records = true;
            for (name, _) in &found {
                if !CallMembers::READ.contains(&&**name) {
                    out.report.skipped_member(name);
                }
            }
            self.list(record, &request, CallMembers::of(&found), out);
            return;
        }
        let response = get(&found, "response").map(body);
        let response = response.as_deref().unwrap_or(&found);
        if self.response(response, out) {
            out.report.line(Fate::Understood, "response");
            return;
        }
        if self.records && get(&found, "role").is_none() {
            let name = text(&found, "type").unwrap_or("unknown record".into());
            out.report.line(Fate::Skipped, &name);
            return;
        }
        let message = self.api.message(record.raw, &mut out.report);
        let joined = lists.joined;
        let session = *self.messages.get_or_insert_with(|| {
            out.session(About {
                location: record.list.to_owned(),
                joined,
                ..About::default()
            })
        });
        self.unsaid.push(message);
        if !joined {
            converse(std::mem::take(&mut self.unsaid), joined, session, out);
        }
    }

    fn step(&mut self, messages: &[&str], out: &mut Output) -> bool {
        let messages = self.read(messages, out);
        let joined = self.api.lists().joined;
        let session = *self.messages.get_or_insert_with(|| {
            out.session(About {
                origin: Origin::Request,
                joined,
                ..About::default()
            })
        });
        let request = Request {
            messages,
            ..Request::default()
        };
        out.event(session, Event::Request(request));
        true
    }

    fn finish(&mut self, _: &dyn Records, out: &mut Output) {
        self.release(out);
        if let Some(session) = self.messages {
            let unsaid = std::mem::take(&mut self.unsaid);
            converse(unsaid, self.api.lists().joined, session, out);
        }
    }
}

/// Passes on a conversation, message by message.
pub(super) fn converse(messages: Vec<Message>, joined: bool, session: SessionId, out: &mut Output) {
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
                Event::Reply(std::mem::take(&mut reply), Call::default()),
            );
        }
    }
}
