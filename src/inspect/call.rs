//! What a snapshot says of the provider call of its cycle: `usage` and `meta` (INSPECT §1).

use crate::history::{
    Attempt, AttemptStatus, CommitCall, History, LoadFailure, Position, is_of_model,
};
use crate::index::{NodeRef, Snapshot};
use crate::json::{JsonValue, Member, elements, get, members, string};
use crate::render::Provider;
use crate::tree::timestamp::{is_position, millis, nanos_of_rfc3339};
use crate::tree::{Meta, NodeClass};
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
    /// How long the call took, in milliseconds: by the log's own account, or by that of the runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// What the log says went wrong while the reply came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_error: Option<String>,
    /// Why the reply ended, in the provider's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Calls of the cycle that failed before the one that was answered, or that was not.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: usize,
    /// Those that were stopped, as the recorder of the log says, and did not fail.
    #[serde(skip_serializing_if = "is_zero")]
    pub canceled: usize,
    /// What the last failed call said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Calls of the cycle without a reply of which `meta` says what they used: a summary, or one that was stopped. The counts
    /// above are not theirs.
    #[serde(skip_serializing_if = "is_zero")]
    pub unanswered: usize,
    /// The completed calls of the cycle before the one whose reply it has. The counts above are not theirs; they were paid
    /// for, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierCall>,
    /// Whether what was sent is worked out from a transcript, which does not say it exactly.
    pub reconstructed: bool,
    /// Whether the provider was called. A log may have snapshots without a call, such as that after a compaction,
    /// or a prompt that nothing answered; and a runtime may commit without one.
    pub made: bool,
    /// Whether the snapshot is the one after a compaction.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub compaction: bool,
}

/// What the provider counted in a completed call that another one of its cycle followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EarlierCall {
    /// The model, where it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// The tokens of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

impl EarlierCall {
    fn new(json: &str) -> Self {
        let all = members(json);
        let number = |name: &str| get(&all, name).and_then(|raw| raw.parse().ok());
        Self {
            model: get(&all, "model").and_then(string).map(Cow::into_owned),
            input_tokens: number("input_tokens"),
            output_tokens: number("output_tokens"),
        }
    }
}

pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Call {
    /// The completed calls of its cycle before it, each as a call of its own.
    pub(super) fn earlier(&self) -> impl Iterator<Item = Self> {
        let earlier = if self.made { &self.earlier[..] } else { &[] };
        earlier.iter().map(|earlier| Self {
            model: earlier.model.clone().or_else(|| self.model.clone()),
            input_tokens: earlier.input_tokens,
            output_tokens: earlier.output_tokens,
            made: true,
            ..Self::default()
        })
    }

    /// What a snapshot says, without the attempts of the runtime, which are beside it. Linear in its `meta` and `usage`.
    #[must_use]
    pub fn from_snapshot(snapshot: &Snapshot) -> Self {
        Self::new(snapshot)
    }

    /// What a snapshot of a history says, and the attempts of its cycle; of a working state, those of the cycle in progress.
    /// Linear in all of these.
    ///
    /// ```
    /// use pactql::{Context, Message, Provider, inspect::Call};
    /// let mut context = Context::new();
    /// context.append(Message::user("Hello"))?;
    /// context.render(Provider::OpenAi)?;
    /// context.fail_attempt("overloaded")?;
    /// let history = context.session().history();
    /// let call = Call::in_history(&history, history.latest().expect("a working state"));
    /// assert_eq!((call.failed, call.error.as_deref()), (1, Some("overloaded")));
    /// # Ok::<(), pactql::Error>(())
    /// ```
    #[must_use]
    pub fn in_history(history: &History, snapshot: &Snapshot) -> Self {
        Self::new(snapshot).with_attempts(history, cycle_of(snapshot))
    }

    /// The call with the attempts that the runtime made in a cycle.
    pub(super) fn with_attempts(mut self, history: &History, cycle: i64) -> Self {
        let (mut answered, mut failed) = (None, None);
        for attempt in history.attempts().of_cycle(cycle) {
            match attempt.status {
                AttemptStatus::Completed => {
                    answered.get_or_insert(attempt);
                }
                AttemptStatus::Error => {
                    self.failed += 1;
                    failed.get_or_insert(attempt);
                }
                AttemptStatus::Canceled => self.canceled += 1,
                AttemptStatus::Running => continue,
            }
            self.made = true;
        }
        let took = |attempt: &Attempt| between(&attempt.started_at, attempt.ended_at.as_deref()?);
        self.error = failed
            .and_then(|attempt| attempt.error.clone())
            .or(self.error);
        self.latency_ms = self.latency_ms.or(answered.and_then(took));
        self
    }

    pub(super) fn new(commit: &impl CallOrigin) -> Self {
        let of = |name: &str| members(commit.meta().value(name).unwrap_or_default());
        let (usage, meta) = (of("usage"), of("meta"));
        let number = |name: &str| get(&usage, name).and_then(|raw| raw.parse().ok());
        let text = |raw: Option<&str>| raw.and_then(string).map(Cow::into_owned);
        let request = commit.meta().request().map(members).unwrap_or_default();
        let attempts = get(&meta, "attempts").map(elements).unwrap_or_default();
        let attempts: Vec<_> = attempts.into_iter().map(members).collect();
        let is_failed = |attempt: &&Vec<Member<'_>>| {
            text(get(attempt, "status")).as_deref() != Some(AttemptStatus::Canceled.as_str())
        };
        let failed = attempts.iter().filter(is_failed);
        let error = failed.clone().next_back();
        let error = error.and_then(|attempt| get(attempt, "error").map(error_text));
        let failed = failed.count();
        let asked = text(get(&request, "model")).or_else(|| text(get(&request, "modelId")));
        let source = text(get(&meta, "source"));
        let reconstructed = source.as_deref() == Some("transcript");
        // A recorder has requests that nothing answered, too.
        let is_request = source.as_deref() == Some("request") || !request.is_empty();
        let compaction = get(&meta, "compaction").filter(|raw| *raw != "null");
        let unanswered = counts_without_reply(&meta).len();
        let compaction = compaction.is_some();
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
            reply_error: get(&usage, "error").map(error_text),
            stop_reason: text(get(&usage, "stop_reason")),
            failed,
            canceled: attempts.len() - failed,
            earlier: {
                let earlier = get(&usage, "earlier").map(elements).unwrap_or_default();
                earlier.into_iter().map(EarlierCall::new).collect()
            },
            unanswered,
            error,
            made: !usage.is_empty()
                || !attempts.is_empty()
                || commit.is_answered()
                || !(reconstructed || compaction || commit.meta().working)
                    && (is_request || commit.has_words_of_model()),
            reconstructed,
            compaction,
        }
    }
}

/// The `usage` of each call without a reply of which `meta` says it: a summary, and attempts.
pub(super) fn counts_without_reply<'a>(meta: &[Member<'a>]) -> Vec<&'a str> {
    let summary = get(meta, "compaction").into_iter();
    let attempts = get(meta, "attempts").map(elements).unwrap_or_default();
    let usages = summary.chain(attempts);
    let usages = usages.filter_map(|said| get(&members(said), "usage"));
    usages.filter(|usage| counts_tokens(usage)).collect()
}

/// Whether a `usage` counts tokens, at most one level down: not another number, such as how long the call took.
fn counts_tokens(usage: &str) -> bool {
    let counts = |raw: &str| raw.parse::<f64>().is_ok_and(|count| count > 0.0);
    let is_named = |name: &str| name.to_ascii_lowercase().contains("token");
    members(usage).iter().any(|(name, raw)| {
        let is_of_tokens = is_named(name);
        let mut inside = members(raw).into_iter();
        is_of_tokens && counts(raw)
            || inside.any(|(name, raw)| (is_of_tokens || is_named(&name)) && counts(raw))
    })
}

/// A snapshot, or what is known of one that is not loaded.
pub(super) trait CallOrigin {
    /// What is beside its tree.
    fn meta(&self) -> &Meta;

    /// Whether the last child of `^seq` has a node of the reply of its cycle.
    fn is_answered(&self) -> bool;

    /// Whether the newest turn, `^ah` or the last child of `^seq` has a block whose role is that of the model.
    fn has_words_of_model(&self) -> bool;

    /// The time of its reply, or else of its newest block, as it is stored.
    fn time(&self) -> Option<String>;
}

impl CallOrigin for Snapshot {
    fn meta(&self) -> &Meta {
        self.meta()
    }

    fn is_answered(&self) -> bool {
        let cycle = cycle_of(self).to_string();
        let last = self.last_of_seq().into_iter();
        let mut nodes = last.flat_map(|top| self.nodes_in(top.row()..self.end(top.row())));
        nodes.any(|node| is_reply(node, &cycle))
    }

    fn has_words_of_model(&self) -> bool {
        let last = self.last_of_seq().into_iter();
        let last = last.flat_map(|top| self.nodes_in(top.row()..self.end(top.row())));
        let blocks = last.filter(|node| node.class() == NodeClass::Block);
        let mut blocks = blocks.chain(newest(self));
        blocks.any(|node| node.role().is_some_and(is_of_model))
    }

    fn time(&self) -> Option<String> {
        last_time(self, true).or_else(|| last_time(self, false))
    }
}

impl CallOrigin for CommitCall {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn is_answered(&self) -> bool {
        let cycle = self.meta.cycle.to_string();
        self.last
            .iter()
            .any(|node| node.reply.as_deref() == Some(&*cycle))
    }

    fn has_words_of_model(&self) -> bool {
        let all = self.newest.iter().chain([&self.last]);
        let mut blocks = all.flat_map(|nodes| nodes.iter());
        blocks.any(|node| node.is_block && node.is_of_model)
    }

    fn time(&self) -> Option<String> {
        let cycle = self.meta.cycle.to_string();
        let nodes = || self.newest.iter().flat_map(|nodes| nodes.iter());
        let blocks = || nodes().filter(|node| node.is_block);
        let times =
            || blocks().map(|node| (node.reply.as_deref() == Some(&*cycle), node.time.as_deref()));
        last_of(times(), true).or_else(|| last_of(times(), false))
    }
}

/// The blocks of the newest turn and of `^ah`.
pub(super) fn newest(snapshot: &Snapshot) -> impl Iterator<Item = NodeRef<'_>> {
    let turn = snapshot.nodes_in(snapshot.turn_rows(1, 1));
    let head = snapshot.nodes_in(snapshot.head_rows());
    turn.chain(head)
        .filter(|node| node.class() == NodeClass::Block)
}

/// The time of a snapshot to the millisecond: that of its reply, or else of its newest block.
pub(crate) fn time_of(snapshot: &Snapshot) -> Option<String> {
    exact_time_of(snapshot).map(|time| millis(&time))
}

/// The same as it is stored.
pub(super) fn exact_time_of(snapshot: &Snapshot) -> Option<String> {
    time_of_summary(snapshot)
        .or_else(|| last_time(snapshot, true))
        .or_else(|| last_time(snapshot, false))
}

/// The time of a compaction, whose summary is mostly not in the newest turn. Linear in the blocks there.
pub(super) fn time_of_summary(snapshot: &Snapshot) -> Option<String> {
    let meta = members(snapshot.meta().value("meta")?);
    get(&meta, "compaction").filter(|said| *said != "null")?;
    let mut blocks = snapshot.nodes_in(snapshot.seq_rows());
    let summary = blocks
        .find(|node| node.kind() == Some("summary") && node.cycle() == Some(snapshot.cycle()));
    let time = summary?.field("created_at_iso");
    time.and_then(JsonValue::text).map(str::to_owned)
}

/// The time of the last block of the newest turn that is wanted, by whether it is of the reply.
pub(super) fn last_time(snapshot: &Snapshot, of_reply: bool) -> Option<String> {
    let cycle = cycle_of(snapshot).to_string();
    let blocks = newest(snapshot).map(|node| {
        let time = node.field("created_at_iso").and_then(JsonValue::text);
        (is_reply(node, &cycle), time)
    });
    last_of(blocks, of_reply)
}

/// The last time of blocks of the reply, or of others. Of each block it is said whether it is one of the reply.
fn last_of<'t>(
    blocks: impl Iterator<Item = (bool, Option<&'t str>)>,
    of_reply: bool,
) -> Option<String> {
    let times = blocks.filter(|(is_reply, _)| *is_reply == of_reply);
    let times = times.filter_map(|(_, time)| time);
    let time = times.last().filter(|time| !is_position(time));
    time.map(str::to_owned)
}

/// From one time to another, in milliseconds; `None` if it is before it.
pub(super) fn between(from: &str, to: &str) -> Option<u64> {
    let [from, to] = [from, to].map(nanos_of_rfc3339);
    u64::try_from(to?.checked_sub(from?)? / 1_000_000).ok()
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
