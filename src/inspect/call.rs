//! What a snapshot says of the provider call of its cycle: `usage` and `meta` (INSPECT §1).

use crate::history::{History, LoadFailure, Position};
use crate::index::{NodeRef, Snapshot};
use crate::json::{JsonValue, elements, get, members, string};
use crate::render::Provider;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

/// What is known of a provider call besides the request. What a log does not say is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Call {
    /// The model of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the provider counted as sent, cached tokens included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Of these, read from the prompt cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Of these, written to the prompt cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Of those, written for an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h_tokens: Option<u64>,
    /// The tokens of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// What the call cost by the log's own account, in nano-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logged_nano_dollars: Option<u64>,
    /// How long the call took by the log's own account, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Why the reply ended, in the provider's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Calls of the cycle that failed before the one that was answered, or that was not.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: usize,
    /// What the last failed call said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether what was sent is worked out from a transcript, which does not say it exactly.
    pub reconstructed: bool,
    /// Whether the provider was called. A log may have snapshots without a call, such as that after a compaction,
    /// or a prompt that nothing answered.
    pub made: bool,
    /// Whether the snapshot is the one after a compaction.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub compaction: bool,
}

pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Call {
    /// What a snapshot says. Linear in its `meta` and `usage`.
    #[must_use]
    pub fn from_snapshot(snapshot: &Snapshot) -> Self {
        let of = |name: &str| members(snapshot.meta().value(name).unwrap_or_default());
        let (usage, meta) = (of("usage"), of("meta"));
        let number = |name: &str| get(&usage, name).and_then(|raw| raw.parse().ok());
        let text = |raw: Option<&str>| raw.and_then(string).map(Cow::into_owned);
        let request = snapshot.meta().request().map(members).unwrap_or_default();
        let attempts = get(&meta, "attempts").map(elements).unwrap_or_default();
        let last = attempts.last().map(|attempt| members(attempt));
        let error = last.and_then(|attempt| get(&attempt, "error").map(error_text));
        let asked = text(get(&request, "model")).or_else(|| text(get(&request, "modelId")));
        let reconstructed = text(get(&meta, "source")).as_deref() == Some("transcript");
        let compaction = get(&meta, "compaction").is_some_and(|raw| raw != "null");
        let answered = || {
            let cycle = cycle_of(snapshot).to_string();
            let last = snapshot.last_of_seq().into_iter();
            let mut nodes =
                last.flat_map(|top| snapshot.nodes_in(top.row()..snapshot.end(top.row())));
            nodes.any(|node| is_reply(node, &cycle))
        };
        Self {
            // The one that answered may be a dated version of the one in the request.
            model: asked.or_else(|| text(get(&usage, "model"))),
            input_tokens: number("input_tokens"),
            cached_tokens: number("cached_tokens"),
            cache_write_tokens: number("cache_write_tokens"),
            cache_write_1h_tokens: number("cache_write_1h_tokens"),
            output_tokens: number("output_tokens"),
            // A finite number that is not negative; a float, so it is rounded.
            logged_nano_dollars: get(&usage, "cost_usd")
                .and_then(|raw| raw.parse().ok())
                .map(|dollars: f64| (dollars * 1e9).round() as u64),
            // Recorders write fractions, too.
            latency_ms: get(&usage, "latency_ms")
                .and_then(|raw| raw.parse().ok())
                .map(|milliseconds: f64| milliseconds.round() as u64),
            stop_reason: text(get(&usage, "stop_reason")),
            failed: attempts.len(),
            error,
            made: !usage.is_empty()
                || !attempts.is_empty()
                || answered()
                || !(reconstructed || compaction || snapshot.is_working()),
            reconstructed,
            compaction,
        }
    }
}

/// The cycle whose request a snapshot has: of a working state, the one in progress.
pub(super) fn cycle_of(snapshot: &Snapshot) -> i64 {
    let cycle = snapshot.cycle();
    cycle.saturating_add(i64::from(snapshot.is_working()))
}

/// The committed snapshot before one of `history`.
pub(super) fn before<'h>(
    history: &'h History,
    of: &Snapshot,
) -> Result<Option<&'h Arc<Snapshot>>, LoadFailure> {
    history.fetch_cycles()?;
    let index = if of.is_working() {
        Some(history.committed().len())
    } else {
        history.committed().index_of(of.cycle())
    };
    match index.and_then(|index| index.checked_sub(1)) {
        Some(before) => history.load(Position::Committed(before)),
        None => Ok(None),
    }
}

pub(super) fn is_reply(node: NodeRef<'_>, cycle: &str) -> bool {
    node.field("data_reply") == Some(JsonValue::Number(cycle))
}

/// An error as text: a string, the `message` of an object, or the JSON.
fn error_text(raw: &str) -> String {
    let message = || string(get(&members(raw), "message")?);
    let text = string(raw).or_else(|| raw.starts_with('{').then(message).flatten());
    text.map_or_else(|| raw.to_owned(), |text| text.into_owned())
}

/// The API whose requests a session came in as; `None` for a transcript, and for one that was not imported. Linear as
/// [`provider_of`].
#[must_use]
pub fn came_in_as(snapshot: &Snapshot) -> Option<Provider> {
    let meta = members(snapshot.meta().value("meta").unwrap_or_default());
    let is_request = get(&meta, "source") == Some("\"request\"");
    is_request.then(|| provider_of(snapshot))
}

/// The API whose form the blocks of a snapshot were imported in, or else that of its model;
/// OpenAI's, if neither is known. Linear in the blocks up to the first that was imported.
#[must_use]
pub fn provider_of(snapshot: &Snapshot) -> Provider {
    let imported = snapshot.nodes().find_map(|node| {
        node.field("data_message")?;
        Some(node.field("data_form").and_then(JsonValue::text))
    });
    let known = |form: &str| Provider::ALL.into_iter().find(|known| known.name() == form);
    match imported {
        Some(Some(form)) if known(form).is_some() => known(form).unwrap_or_default(),
        Some(None) => Provider::OpenAi,
        _ => match Call::from_snapshot(snapshot).model {
            Some(model) if model.contains("claude") => Provider::Anthropic,
            _ => Provider::OpenAi,
        },
    }
}
