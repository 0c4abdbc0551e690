//! What is recorded of a call.

use crate::logs::Redaction;
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
    /// Whether all such calls of the session's name are one session, also those that share no beginning.
    pub together: bool,
    /// Whether the provider was called. Else `request` has messages that were kept, such as a checkpoint that ends with those
    /// of a user: their snapshot does not count as a request (`meta.source` is `transcript`).
    pub made: bool,
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
            together: false,
            made: true,
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
