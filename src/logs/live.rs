//! Calls as they are made: the next snapshot of a session, from a request body and the response to it.
//!
//! An import reads a whole log; here a session goes on from its newest snapshot with one call ([`LiveCall`]), and the
//! document of the next snapshot is the difference. This file must not know stores.

use super::builder::{Builder, Numbers};
use super::formats::{ReadCall, read_call};
use super::log::{About, Event, LogField, LogMessage, RequestOrigin};
use super::recording::Recording;
use super::report::ImportReport;
use super::surrogates::mend_surrogates;
use crate::index::Snapshot;
use crate::json::{Reader, get, members, string};
use crate::render::Provider;
use crate::tree::Document;
use crate::tree::hash::text_hash;
use std::borrow::Cow;
use std::sync::Arc;

/// What of a message is compared with those of earlier calls: its role, its texts and calls. A reply says the same
/// however a client spells it when it is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Print {
    hash: u64,
    pub(crate) system: bool,
    pub(crate) reply: bool,
    /// Whether it is the reply of the newest cycle, which was not sent yet.
    pub(crate) last: bool,
}

impl Print {
    fn from_message(message: &LogMessage) -> Self {
        let mut text = message.role.clone().unwrap_or_default();
        let parts = message.parts.iter();
        for part in parts.filter(|part| part.content.is_some()) {
            let id = part.field("data_call_id").unwrap_or_default();
            let content = part.content.as_deref().unwrap_or_default();
            for said in [part.kind.unwrap_or_default(), id, content] {
                text.push('\n');
                text.push_str(said);
            }
        }
        let hash = text_hash(&text);
        let first = hash.first_chunk().copied().unwrap_or_default();
        Self {
            hash: u64::from_be_bytes(first),
            system: message.system,
            reply: message.reply,
            last: false,
        }
    }

    fn of_session(builder: &Builder) -> Vec<Self> {
        let sent = builder.sent();
        let print = |(message, last): (&Arc<LogMessage>, bool)| Self {
            last,
            ..Self::from_message(message)
        };
        sent.map(print).collect()
    }

    /// The same number for equal messages, in every version and process.
    pub(crate) fn number(self) -> u64 {
        self.hash
    }
}

/// A provider call: what was sent, and what came back.
#[derive(Debug)]
pub(crate) struct LiveCall {
    read: ReadCall,
    joined: bool,
    origin: RequestOrigin,
}

impl LiveCall {
    /// Reads a call. `usage` are members of the snapshot's `usage` besides what the response says; values are JSON.
    ///
    /// # Errors
    /// The request is not a JSON object, or one that no document can hold.
    pub(crate) fn read(
        provider: Provider,
        request: &str,
        response: Option<&str>,
        times: (i64, i64),
        usage: Vec<(&'static str, String)>,
    ) -> Result<Self, String> {
        let request = object(request).map_err(|why| format!("the request is {why}"))?;
        let response = response.and_then(|response| object(response).ok());
        let mut report = ImportReport::default();
        let mut read = read_call(provider, &request, response.as_deref(), &mut report);
        let request = &mut read.request;
        let (started, ended) = times;
        for message in &mut request.reply {
            message.time = Some(ended);
        }
        request.call.time = Some(started);
        let usage = usage.into_iter().map(|(name, json)| (name.into(), json));
        let known: Vec<LogField> = std::mem::take(&mut request.call.usage);
        request.call.usage = usage.collect();
        request.call.usage.extend(known);
        // Fields as they come back from a tree, so that equal messages are equal.
        let sent = request.messages.iter_mut().map(Arc::make_mut);
        for message in sent.chain(&mut request.reply) {
            for part in &mut message.parts {
                part.data.sort_unstable();
            }
        }
        let joined = provider == Provider::OpenAiResponses;
        Ok(Self {
            read,
            joined,
            origin: RequestOrigin::Request,
        })
    }

    /// Messages that were kept, and not sent.
    pub(crate) fn not_made(mut self) -> Self {
        self.origin = RequestOrigin::Transcript;
        self
    }

    pub(crate) fn prints(&self) -> Vec<Print> {
        self.read
            .request
            .messages
            .iter()
            .map(|message| Print::from_message(message))
            .collect()
    }

    pub(crate) fn has_reply(&self) -> bool {
        let mut parts = self
            .read
            .request
            .reply
            .iter()
            .flat_map(|message| &message.parts);
        parts.any(|part| {
            part.content
                .as_deref()
                .is_some_and(|content| content != "\"\"")
        })
    }

    /// The id of the response that it goes on after, if the API has the messages up to there.
    pub(crate) fn previous(&self) -> Option<&str> {
        self.read.previous.as_deref()
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let found = members(self.read.request.parameters.as_deref()?);
        Some(get(&found, name).and_then(string)?.into_owned())
    }

    pub(crate) fn counted(&self, name: &str) -> Option<u64> {
        let mut usage = self.read.request.call.usage.iter();
        usage.find(|(known, _)| known == name)?.1.parse().ok()
    }

    pub(crate) fn set_stop(&mut self, reason: &str) {
        let usage = &mut self.read.request.call.usage;
        usage.retain(|(name, _)| name != "stop_reason");
        usage.push(("stop_reason".into(), super::json::quoted(reason)));
    }

    pub(crate) fn clear_reply(&mut self) {
        self.read.request.reply.clear();
    }

    /// The document of the snapshot of the call, which comes after another one of the session, or is the first;
    /// [`Numbers`] has the ids that are gone. `attempts` are calls of the same cycle that failed, JSON objects.
    /// Returns the numbers given so far, too, and the messages that were sent, with the reply.
    pub(crate) fn document(
        mut self,
        after: Option<(&Snapshot, Numbers)>,
        attempts: Vec<String>,
    ) -> Option<(Document, Numbers, Vec<Print>)> {
        let about = About {
            origin: self.origin,
            joined: self.joined,
            ..About::default()
        };
        let mut builder = match after {
            Some((snapshot, numbers)) => Builder::after(snapshot, numbers, about)?,
            None => Builder::new(about, Recording::default()),
        };
        if let Some(earlier) = self
            .read
            .previous
            .as_deref()
            .and_then(|id| builder.up_to(id))
        {
            self.read
                .request
                .messages
                .splice(self.read.own..self.read.own, earlier);
        }
        for attempt in attempts {
            builder.event(Event::Failed(attempt));
        }
        builder.event(Event::Request(self.read.request));
        let prints = Print::of_session(&builder);
        let numbers = builder.numbers();
        Some((builder.last()?, numbers, prints))
    }
}

/// The messages that were sent last in a session, and the reply; `None` if it was not made of calls.
pub(crate) fn prints_after(snapshot: &Snapshot, numbers: Numbers) -> Option<Vec<Print>> {
    let builder = Builder::after(snapshot, numbers, About::default())?;
    Some(Print::of_session(&builder))
}

/// A JSON object without white space around it, with U+FFFD for each half of a surrogate pair.
fn object(text: &str) -> Result<Cow<'_, str>, &'static str> {
    match value(text) {
        Err(why) => match mend_surrogates(text) {
            Some((mended, _)) => value(&mended).map(|value| Cow::Owned(value.to_owned())),
            None => Err(why),
        },
        Ok(value) => Ok(Cow::Borrowed(value)),
    }
}

fn value(text: &str) -> Result<&str, &'static str> {
    let mut reader = Reader::new(text);
    let value = reader.skip_value().map_err(|_| "not JSON")?;
    if reader.end().is_err() || !reader.problems().is_empty() {
        return Err("not JSON that a document can hold");
    }
    if value.starts_with('{') {
        Ok(value)
    } else {
        Err("no object")
    }
}
