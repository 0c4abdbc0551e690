//! What is recorded of a call.

use crate::logs::{Redaction, assemble};
use crate::render::Provider;
use serde::de::IgnoredAny;

/// A provider call as a recorder is given it. See [`Recorder`](super::Recorder).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProviderCall {
    /// The API that was called.
    pub provider: Provider,
    /// The name of its session, or of the first of several.
    pub session: String,
    /// The body of the request, a JSON object.
    pub request: String,
    /// The body of the response, a JSON object: all of it, or what came before the call ended.
    pub response: Option<String>,
    /// Why the call failed.
    pub error: Option<String>,
    /// Whether the caller stopped it.
    pub canceled: bool,
    /// When it began, in nanoseconds since the epoch.
    pub started_at_ns: i64,
    /// When it ended.
    pub ended_at_ns: i64,
    /// How long it took, in milliseconds, by a clock that is never set.
    pub latency_ms: Option<u64>,
    /// The id that the provider gave the request.
    pub request_id: Option<String>,
}

impl ProviderCall {
    /// A call of which nothing is known but the request. It began and ended at the epoch.
    pub fn new(provider: Provider, session: impl Into<String>, request: impl Into<String>) -> Self {
        Self {
            provider,
            session: session.into(),
            request: request.into(),
            response: None,
            error: None,
            canceled: false,
            started_at_ns: 0,
            ended_at_ns: 0,
            latency_ms: None,
            request_id: None,
        }
    }

    /// The call without what the patterns match, and without members that authorize a request.
    #[must_use]
    pub fn redacted(&self, patterns: &[Redaction]) -> Self {
        let json = |text: &str| Redaction::apply(patterns, text);
        let plain = |text: &str| Redaction::apply_text(patterns, text);
        let mut call = self.clone();
        call.session = plain(&self.session);
        call.request_id = self.request_id.as_deref().map(plain);
        call.request = json(&self.request);
        call.response = self.response.as_deref().map(json);
        // An API says what went wrong in JSON, after words of the client.
        let error = |text: &str| match text.find('{').map(|at| text.split_at(at)) {
            Some((before, said)) if serde_json::from_str::<IgnoredAny>(said).is_ok() => {
                plain(before) + &json(said)
            }
            _ => plain(text),
        };
        call.error = self.error.as_deref().map(error);
        call
    }
}

/// Where a call is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// The session.
    pub session: String,
    /// The cycle of its snapshot; of a call that failed, the one to come.
    pub cycle: i64,
    /// The id of the attempt, if the call failed or was stopped.
    pub attempt: Option<String>,
}

/// A reply that came as server-sent events, put together.
///
/// ```
/// use pactql::logs::record::StreamedReply;
/// use pactql::Provider;
/// let events = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"On its\"}}]}\n\n\
///               data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" way.\"}}]}\n\n";
/// let reply = StreamedReply::of(Provider::OpenAi, events);
/// assert!(reply.response.is_some_and(|json| json.contains("On its way.")));
/// assert!(!reply.whole); // there is more to come, or the stream was cut off
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamedReply {
    /// The response as the API would have sent it in one piece, JSON; `None` if nothing came.
    pub response: Option<String>,
    /// Whether the API said that it is whole.
    pub whole: bool,
    /// What the API said that went wrong, as JSON.
    pub error: Option<String>,
}

impl StreamedReply {
    /// Puts the events of a response together, as far as they go. Linear in the text.
    #[must_use]
    pub fn of(provider: Provider, events: &str) -> Self {
        let streamed = assemble(provider, events);
        Self {
            response: streamed.response,
            whole: streamed.whole,
            error: streamed.error,
        }
    }
}
