//! One line for each cycle of a session: what was sent, what came back, what changed (INSPECT §4).
//!
//! This file knows sessions, selectors and the comparison of requests. It must not know how a line is
//! printed.

use super::call::Call;
use super::counts::Counts;
use super::part::Part;
use super::prefix::{Difference, PrefixStep, walk};
use super::tokenizer::Tokenizer;
use super::tokens::fitting;
use crate::engine::Engine;
use crate::history::{History, Session};
use crate::index::{NodeRef, Snapshot};
use crate::json::JsonValue;
use crate::render::{Provider, RenderError};
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::tree::NodeClass;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The steps of a session.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Steps {
    /// How tokens are counted.
    pub tokenizer: Tokenizer,
    /// Whether requests are worked out from a transcript, which does not say exactly what was sent.
    pub reconstructed: bool,
    /// Why there are no prefixes, if requests have no form for the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_prefixes: Option<String>,
    /// One for each committed snapshot, oldest first.
    pub steps: Vec<Step>,
}

/// One cycle.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// `@t0`, `@t-1`, …
    pub label: String,
    /// The cycle.
    pub cycle: i64,
    /// When the reply came, or else when the newest block was made, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What the snapshot says of the call.
    #[serde(flatten)]
    pub call: Call,
    /// Tokens of the request, counted here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Matches of the selector in the snapshot, by default blocks.
    pub matches: usize,
    /// Of these, the snapshot before does not have them.
    pub added: usize,
    /// Matches of the snapshot before that this one does not have.
    pub removed: usize,
    /// Matches of both that differ.
    pub changed: usize,
    /// What happened.
    pub events: Vec<StepEvent>,
    /// How much of the request before can be reused, in percent. `None` for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_percent: Option<u64>,
    /// What broke the prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<Difference>,
}

/// What happened in a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepEvent {
    /// Earlier messages were replaced by a summary.
    Compaction,
    /// Calls to the provider failed.
    Failed {
        /// How many.
        count: usize,
        /// What the last one said.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// Results of tools that say they are errors came in.
    ToolErrors {
        /// How many.
        count: usize,
    },
    /// The model replied with text.
    Reply,
    /// The model called tools.
    Calls {
        /// The names, each with how often it was called, in the order of the first call.
        tools: Vec<(String, usize)>,
    },
}

/// The steps of the snapshots of `part`; without a time, of all committed ones. Its selector says which
/// nodes are counted; without one, blocks. Provider and tokenizer are as in
/// [`prefixes`](super::prefixes).
///
/// Costs as much as [`Engine::log`] and [`prefixes`](super::prefixes) of the whole session.
///
/// # Errors
/// As [`Engine::log`]; the time is none, or no snapshot has it. A request without a form for the
/// provider is no error: then there are no prefixes.
///
/// ```
/// use pactql::inspect::{Part, steps};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let found = steps(&Engine::new(), &session, &Part::default(), None, None)?;
/// let added: usize = found.steps.iter().map(|step| step.added).sum();
/// assert!(found.steps.len() == 6 && added > 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn steps(
    engine: &Engine,
    session: &Session,
    part: &Part,
    provider: Option<Provider>,
    tokenizer: Option<Tokenizer>,
) -> Result<Steps, Error> {
    let history = session.history();
    let wanted = part.or_history().snapshots(engine, &history)?;
    let log = engine.log(session, part.selector().unwrap_or(".cb"))?;
    let tokenizer = tokenizer.unwrap_or_else(|| fitting(&wanted));
    let mut counts = Counts::new(tokenizer);
    let (prefixes, no_prefixes) = match by_cycle(&history, provider, &mut counts) {
        Ok(found) => (found, None),
        Err(error) => (BTreeMap::new(), Some(error.to_string())),
    };
    let wanted: BTreeSet<i64> = wanted
        .iter()
        .map(|(_, snapshot)| snapshot.cycle())
        .collect();
    let mut steps = Vec::with_capacity(wanted.len());
    for (entry, snapshot) in log.snapshots.iter().rev().zip(history.committed().iter()) {
        ensure();
        if !wanted.contains(&entry.cycle) {
            continue;
        }
        let call = Call::of(snapshot);
        let prefix = prefixes.get(&entry.cycle);
        steps.push(Step {
            label: entry.label.clone(),
            cycle: entry.cycle,
            time: time_of(snapshot),
            tokens: prefix.map(|prefix| prefix.tokens),
            matches: entry.matches,
            added: entry.added,
            removed: entry.removed,
            changed: entry.changed,
            events: events(snapshot, &call),
            prefix_percent: prefix
                .filter(|prefix| prefix.before.is_some())
                .map(PrefixStep::reused_percent),
            broken: prefix.and_then(|prefix| prefix.difference.clone()),
            call,
        });
    }
    Ok(Steps {
        tokenizer,
        reconstructed: steps.iter().any(|step| step.call.reconstructed),
        no_prefixes,
        steps,
    })
}

/// The comparisons of requests by the cycle of the later one.
fn by_cycle(
    history: &History,
    provider: Option<Provider>,
    counts: &mut Counts,
) -> Result<BTreeMap<i64, PrefixStep>, RenderError> {
    let found = walk(history, history.committed().iter(), provider, counts)?;
    let steps = found.steps.into_iter();
    Ok(steps.map(|step| (step.cycle, step)).collect())
}

/// The blocks of the newest turn and of `^ah`.
fn newest(snapshot: &Snapshot) -> impl Iterator<Item = NodeRef<'_>> {
    let turn = snapshot.nodes_in(snapshot.turn_rows(1, 1));
    let head = snapshot.nodes_in(snapshot.head_rows());
    turn.chain(head)
        .filter(|node| node.class() == NodeClass::Block)
}

/// The time of a snapshot: that of its reply, or else of its newest block.
pub(super) fn time_of(snapshot: &Snapshot) -> Option<String> {
    let cycle = snapshot.cycle().to_string();
    let last = |reply: bool| {
        let blocks = newest(snapshot);
        let blocks = blocks
            .filter(|node| !reply || node.field("data_reply") == Some(JsonValue::Number(&cycle)));
        let times = blocks.filter_map(|node| node.field("created_at_iso")?.text());
        times.last().map(str::to_owned)
    };
    last(true).or_else(|| last(false))
}

/// What happened in the cycle of a snapshot.
pub(super) fn events(snapshot: &Snapshot, call: &Call) -> Vec<StepEvent> {
    let cycle = snapshot.cycle().to_string();
    let mut events = Vec::new();
    if call.compaction {
        events.push(StepEvent::Compaction);
    }
    if call.failed > 0 {
        events.push(StepEvent::Failed {
            count: call.failed,
            error: call.error.clone(),
        });
    }
    let (mut errors, mut replied) = (0, false);
    let mut tools: Vec<(String, usize)> = Vec::new();
    for node in newest(snapshot) {
        let is_reply = node.field("data_reply") == Some(JsonValue::Number(&cycle));
        match node.kind() {
            Some("call") if is_reply => {
                let name = node.field("data_call_name").and_then(JsonValue::text);
                let name = name.or(node.key()).unwrap_or("unknown");
                match tools.iter_mut().find(|(known, _)| known == name) {
                    Some((_, count)) => *count += 1,
                    None => tools.push((name.to_owned(), 1)),
                }
            }
            Some("thinking") => {}
            Some("result" | "error") if !is_reply => {
                errors += usize::from(node.field("data_is_error") == Some(JsonValue::Bool(true)));
            }
            _ => replied |= is_reply,
        }
    }
    if errors > 0 {
        events.push(StepEvent::ToolErrors { count: errors });
    }
    if replied {
        events.push(StepEvent::Reply);
    }
    if !tools.is_empty() {
        events.push(StepEvent::Calls { tools });
    }
    events
}
