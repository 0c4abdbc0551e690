//! What every log format is turned into: sessions of messages, replies and requests.
//!
//! A [format](super::formats) reads its records and says what happened as [`Event`]s, in order. The
//! [builder](super::builder) makes trees of them. Contents and values are canonical JSON texts.
//! This file must not know trees, ids or any one format.

use super::json::{canonical, object, quoted};
use crate::json::Member;
use crate::render::Provider;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// After a compaction that keeps no message.
pub(super) const NONE_KEPT: Range<usize> = 0..0;

/// The name of a custom field, and its value as canonical JSON.
pub(super) type LogField = (Cow<'static, str>, String);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogMessage {
    pub(super) role: Option<String>,
    /// Whether it goes to `^sys` when only such messages precede it.
    pub(super) system: bool,
    /// Whether it is the model's reply, which ends a turn and a cycle.
    pub(super) reply: bool,
    /// When it was written, in nanoseconds since the epoch, if the log says so.
    pub(super) time: Option<i64>,
    /// Its parts. A message without parts becomes one empty block.
    pub(super) parts: Vec<LogPart>,
    /// The id of the response whose reply it is, if later requests can name it in the place of messages.
    pub(super) response: Option<String>,
    /// Whether the program wrote it, not a person: such a text is not a title.
    pub(super) injected: bool,
    /// What the person typed, as JSON, if the program put more around it: the words of a title.
    pub(super) typed: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogPart {
    pub(super) kind: Option<&'static str>,
    /// The role of the block, if it is not that of the message.
    pub(super) role: Option<&'static str>,
    /// Canonical JSON.
    pub(super) content: Option<String>,
    /// Custom fields, in any order, each name once.
    pub(super) data: Vec<LogField>,
}

impl LogMessage {
    /// A number that equal messages share. The time plays no part.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.role.hash(&mut hasher);
        for part in &self.parts {
            (&part.kind, &part.role, &part.content, &part.data).hash(&mut hasher);
        }
        hasher.finish()
    }

    pub(super) fn new(role: Option<String>, parts: Vec<LogPart>) -> Self {
        Self {
            reply: role.as_deref() == Some("assistant"),
            role,
            parts,
            ..Self::default()
        }
    }

    pub(super) fn with_system(role: &str, system: &[&str], parts: Vec<LogPart>) -> Self {
        Self {
            system: system.contains(&role),
            ..Self::new(Some(role.to_owned()), parts)
        }
    }

    pub(super) fn at(self, time: Option<i64>) -> Self {
        Self { time, ..self }
    }

    /// The first of its parts; a message without any gets one.
    pub(super) fn first(&mut self) -> &mut LogPart {
        if self.parts.is_empty() {
            self.parts.push(LogPart::default());
        }
        &mut self.parts[0]
    }

    pub(super) fn blocks(&self) -> &[LogPart] {
        const EMPTY: &[LogPart] = &[LogPart {
            kind: None,
            role: None,
            content: None,
            data: Vec::new(),
        }];
        if self.parts.is_empty() {
            EMPTY
        } else {
            &self.parts
        }
    }

    pub(super) fn set_failed(&mut self) {
        for part in &mut self.parts {
            part.set("data_is_error", "true".to_owned());
        }
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        self.role == other.role && self.parts == other.parts
    }
}

impl LogPart {
    pub(super) fn new(kind: &'static str, content: String) -> Self {
        Self {
            kind: Some(kind),
            content: Some(content),
            ..Self::default()
        }
    }

    /// A part whose content is raw JSON. `what` says what of the message it is.
    pub(super) fn verbatim(what: &str, kind: Option<&'static str>, raw: &str) -> Self {
        Self {
            kind,
            content: Some(canonical(raw)),
            ..Self::default()
        }
        .with("data_verbatim", quoted(what))
    }

    pub(super) fn call(content: String, id: Option<&str>, name: Option<&str>) -> Self {
        let part = Self::new("call", content).with_some("data_call_id", id);
        part.with_some("data_call_name", name)
    }

    pub(super) fn with(mut self, field: &'static str, value: String) -> Self {
        self.set(field, value);
        self
    }

    pub(super) fn with_some(mut self, field: &'static str, raw: Option<&str>) -> Self {
        self.set_some(field, raw);
        self
    }

    pub(super) fn set_some(&mut self, field: &'static str, raw: Option<&str>) {
        self.data
            .extend(raw.map(|raw| (field.into(), canonical(raw))));
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self.data.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }

    pub(super) fn set(&mut self, field: &'static str, value: String) {
        self.data.push((field.into(), value));
    }

    /// Keeps the members not in `known`, if there are any, as one object in `field`.
    pub(super) fn keep_rest(&mut self, field: &'static str, found: &[Member<'_>], known: &[&str]) {
        if let Some(rest) = object_without(found, known) {
            self.set(field, rest);
        }
    }
}

/// The members not in `known` as a canonical object; `None` if there are none.
pub(super) fn object_without(found: &[Member<'_>], known: &[&str]) -> Option<String> {
    object_where(found, |name| !known.contains(&name))
}

pub(super) fn object_where(found: &[Member<'_>], is_kept: impl Fn(&str) -> bool) -> Option<String> {
    let mut kept: Vec<&Member<'_>> = found.iter().filter(|(name, _)| is_kept(name)).collect();
    kept.sort_by(|(a, _), (b, _)| a.cmp(b));
    let all = kept.iter().map(|(name, raw)| (name, canonical(raw)));
    (!kept.is_empty()).then(|| object(all))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogTool {
    pub(super) name: String,
    /// JSON text in the spelling it came in.
    pub(super) definition: String,
    /// Custom fields, sorted by name.
    pub(super) data: Vec<LogField>,
}

impl LogTool {
    /// The custom field of the API it was sent to, if it would be sent there in another form than it has.
    pub(super) fn of_form(form: Option<Provider>) -> Vec<LogField> {
        let form = form.map(|form| ("data_form".into(), quoted(form.name())));
        form.into_iter().collect()
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct LogCall {
    pub(super) time: Option<i64>,
    /// Members of the snapshot's `usage`, values as JSON.
    pub(super) usage: Vec<LogField>,
    /// Members of its `meta`, values as JSON.
    pub(super) meta: Vec<LogField>,
}

impl About {
    /// Says which program's session it is, and in which directory it worked, a JSON string.
    pub(super) fn of_agent(&mut self, agent: &str, project: Option<&str>) {
        self.meta.push(("agent".into(), quoted(agent)));
        let project = project.map(|project| ("project".into(), canonical(project)));
        self.meta.extend(project);
    }
}

impl LogCall {
    /// The cycle of a compaction, and what the log says of it, a canonical object.
    pub(super) fn compaction(said: Option<String>, time: Option<i64>) -> Self {
        let said = said.unwrap_or_else(|| "{}".to_owned());
        Self::without_call("compaction", Some(said), time)
    }

    /// A cycle in which the program changed what is sent, and what the log says of that, as a member of `meta`.
    pub(super) fn without_call(
        member: &'static str,
        said: Option<String>,
        time: Option<i64>,
    ) -> Self {
        Self {
            time,
            meta: said.map(|said| (member.into(), said)).into_iter().collect(),
            ..Self::default()
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct LogRequest {
    pub(super) messages: Vec<Arc<LogMessage>>,
    pub(super) tools: Vec<LogTool>,
    /// The parameters, a JSON object; `None` if the log does not say.
    pub(super) parameters: Option<String>,
    pub(super) reply: Vec<LogMessage>,
    pub(super) call: LogCall,
}

/// The `parent` of a session whose owner is the one that its name begins with.
pub(super) const OWNER: &str = "{\"session\":\"..\"}";

/// A call that failed with this error, which is JSON, as `meta.attempts` has it.
pub(super) fn failed(error: &str) -> String {
    format!("{{\"error\":{error},\"status\":\"error\"}}")
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    Message(LogMessage),
    /// The messages of one reply, which end the turn and the cycle.
    Reply(Vec<LogMessage>, LogCall),
    /// Everything that was sent, and the reply: one cycle.
    Request(LogRequest),
    /// From here on the model is sent these messages, and no earlier ones: a cycle without a
    /// reply. Messages that were there before keep their ids.
    Context(Vec<LogMessage>, LogCall),
    /// From here on the model is sent the system messages, these, and the given ones of the session,
    /// counted from 0: a cycle without a reply.
    Compaction {
        summary: Vec<LogMessage>,
        kept: Range<usize>,
        /// Whether the kept ones come before the summary.
        kept_first: bool,
        call: LogCall,
    },
    /// From here on the results of these calls, whose ids are JSON, have this content, JSON too: a cycle
    /// without a reply.
    Cleared {
        calls: Vec<String>,
        content: String,
        call: LogCall,
    },
    /// From here on the model is not sent the last turns, each from a text of a person on: a cycle without a reply.
    /// What came before the first one stays.
    TakenBack {
        turns: usize,
        call: LogCall,
    },
    /// The session's title from here on, as canonical JSON.
    Title(String),
    /// From here on the model has these tools. An empty list changes nothing.
    Tools(Vec<LogTool>),
    /// The parameters of the calls from here on, a JSON object, maybe the same as before.
    Parameters(String),
    /// The session of the subagent that a call started, which is known with the call's result.
    Child {
        /// The id of the call, as canonical JSON.
        call: String,
        /// The name of the session after that of this one, as canonical JSON.
        session: String,
    },
    /// A call that failed and was made again, as a JSON object for `meta.attempts` of the cycle.
    Failed(String),
}

impl Event {
    /// The call that the event is of, if it is of one.
    pub(super) fn call(&self) -> Option<&LogCall> {
        match self {
            Self::Reply(_, call)
            | Self::Context(_, call)
            | Self::Compaction { call, .. }
            | Self::Cleared { call, .. }
            | Self::TakenBack { call, .. }
            | Self::Request(LogRequest { call, .. }) => Some(call),
            _ => None,
        }
    }

    pub(super) fn said(message: LogMessage, call: LogCall) -> Self {
        if message.reply {
            Self::Reply(vec![message], call)
        } else {
            Self::Message(message)
        }
    }

    /// A compaction that says this of itself, a canonical object: the summary, and then the kept messages, are left.
    pub(super) fn compacted(
        summary: Vec<LogMessage>,
        kept: Range<usize>,
        said: Option<String>,
        time: Option<i64>,
    ) -> Self {
        Self::Compaction {
            summary,
            kept,
            kept_first: false,
            call: LogCall::compaction(said, time),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RequestOrigin {
    /// The log says exactly what was sent.
    Request,
    /// What was sent is worked out from the messages.
    #[default]
    Transcript,
}

#[derive(Clone, Debug, Default)]
pub(super) struct About {
    /// Where it was in the input: a JSON pointer, `line N`, or empty for the whole.
    pub(super) location: String,
    /// Its name in the log; a file has one session without a name at most.
    pub(super) name: Option<String>,
    /// The id of the session in which it was started, if that is in another log.
    pub(super) parent: Option<String>,
    pub(super) origin: RequestOrigin,
    /// Whether neighbouring messages of the model are one reply.
    pub(super) joined: bool,
    /// Members of the `meta` of every snapshot, values as JSON.
    pub(super) meta: Vec<LogField>,
}
