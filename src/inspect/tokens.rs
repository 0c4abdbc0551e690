//! How many tokens a session's requests have, and in which groups (INSPECT §4).

use super::call::Call;
use super::counts::{Counts, Totals};
use super::groups::{By, Group, Groups};
use super::part::{Part, Region};
use super::prices::{Money, Prices};
use super::tokenizer::Tokenizer;
use crate::engine::Engine;
use crate::history::{At, Session};
use crate::index::{NodeRef, Snapshot};
use crate::json::JsonValue;
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use serde::Serialize;
use std::ops::Range;

/// The sizes of a session's snapshots. See [`tokens`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TokenReport {
    /// How tokens were counted.
    pub tokenizer: Tokenizer,
    /// What blocks are grouped by.
    pub by: By,
    /// The snapshots, oldest first.
    pub snapshots: Vec<SnapshotTokens>,
    /// All texts of these snapshots, each distinct one once.
    pub distinct: Totals,
    /// The day of the prices.
    pub prices: String,
}

/// What a token report is made with, by default by region, with the tokenizer that fits, and with the prices
/// in the binary. See [`tokens`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TokenOptions {
    /// What blocks are grouped by.
    pub by: By,
    /// How tokens are counted; the one that fits the model of the newest of the snapshots, if `None`.
    pub tokenizer: Option<Tokenizer>,
    /// What tokens cost.
    pub prices: Prices,
}

impl TokenOptions {
    /// Grouped by this.
    #[must_use]
    pub fn by(by: By) -> Self {
        Self {
            by,
            ..Self::default()
        }
    }

    /// Counted with this.
    #[must_use]
    pub fn tokenizer(mut self, tokenizer: impl Into<Option<Tokenizer>>) -> Self {
        self.tokenizer = tokenizer.into();
        self
    }

    /// At these prices.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }
}

/// What a call cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cost {
    /// In nano-dollars.
    pub nano_dollars: Money,
    /// Whether the tokens were counted here, without a cache, because the provider's count is not known.
    pub estimate: bool,
}

impl Cost {
    /// What a call cost by the provider's counts, if it is asked for as a whole and they are known, or
    /// else by ours of request and reply.
    pub(super) fn of(
        prices: &Prices,
        call: &Call,
        (request, reply): (u64, u64),
        whole: bool,
    ) -> Option<Self> {
        let price = prices.find(call.model.as_deref()?)?;
        let known = price.of_call(call).filter(|_| whole);
        let ours = [price.of_input(request), price.of_output(reply)];
        Some(Self {
            nano_dollars: known.unwrap_or_else(|| ours.into_iter().sum()),
            estimate: known.is_none(),
        })
    }
}

/// The sizes of one snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SnapshotTokens {
    /// `working`, `@t-1`, or `@c12` where the range names cycles.
    pub label: String,
    /// The cycle; for a working state that of the newest snapshot.
    pub cycle: i64,
    /// All blocks: what the model was sent and what it replied.
    #[serde(flatten)]
    pub totals: Totals,
    /// Of them, those of the reply.
    pub reply: Totals,
    /// The groups, the largest first.
    pub groups: Vec<Group>,
    /// What the snapshot says of the call: the model, and what the provider counted.
    pub call: Call,
    /// What the call cost; `None` if the model has no known price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// Counts the blocks of a session's snapshots.
///
/// What is counted of a block is what rendering sends for it: see
/// [`Wording`](crate::render::Wording). The overhead of a provider's form is not guessed. Each distinct
/// text is counted once; a snapshot costs its units.
///
/// # Errors
/// The time is none, or no snapshot has it; every error of the selector; a snapshot of a store cannot
/// be loaded.
///
/// ```
/// use pactql::inspect::{By, Part, TokenOptions, tokens};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let part = Part::default().at("@t0");
/// let report = tokens(&Engine::new(), &session, &part, &TokenOptions::by(By::Role))?;
/// let newest = &report.snapshots[0];
/// let sum: u64 = newest.groups.iter().map(|group| group.totals.tokens).sum();
/// assert_eq!(sum, newest.totals.tokens);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tokens(
    engine: &Engine,
    session: &Session,
    part: &Part,
    options: &TokenOptions,
) -> Result<TokenReport, Error> {
    let history = session.history();
    let snapshots = part.snapshots(engine, &history)?;
    let tokenizer = options.tokenizer.unwrap_or_else(|| fitting(&snapshots));
    let mut counts = Counts::new(tokenizer);
    let mut groups = Groups::new(options.by);
    let mut found = Vec::with_capacity(snapshots.len());
    for (at, snapshot) in &snapshots {
        ensure();
        let rows = part.rows(engine, &history, *at, snapshot)?;
        let groups = groups.add_up(snapshot, rows.as_deref(), &mut counts);
        let mut totals = Totals::default();
        groups.iter().for_each(|group| totals += group.totals);
        let reply = reply(snapshot, rows.as_deref(), &mut counts);
        let call = Call::of(snapshot);
        let counted = (totals.tokens.saturating_sub(reply.tokens), reply.tokens);
        found.push(SnapshotTokens {
            cost: Cost::of(&options.prices, &call, counted, rows.is_none()),
            label: at.to_string(),
            cycle: snapshot.cycle(),
            totals,
            reply,
            groups,
            call,
        });
    }
    Ok(TokenReport {
        tokenizer,
        by: options.by,
        snapshots: found,
        distinct: counts.distinct(),
        prices: options.prices.date().to_owned(),
    })
}

/// The tokenizer that fits the model of the newest snapshot that names one.
pub(super) fn fitting(snapshots: &[(At, std::sync::Arc<Snapshot>)]) -> Tokenizer {
    let mut newest = snapshots.iter().rev();
    let model = newest.find_map(|(_, snapshot)| Call::of(snapshot).model);
    model.map_or(Tokenizer::default(), |model| Tokenizer::for_model(&model))
}

/// The sizes of the reply: of the blocks whose `data_reply` is the snapshot's cycle. They are in the last
/// unit of `^seq`.
fn reply(snapshot: &Snapshot, rows: Option<&[Range<u32>]>, counts: &mut Counts) -> Totals {
    let mut totals = Totals::default();
    for node in reply_blocks(snapshot) {
        let asked = rows.is_none_or(|rows| rows.iter().any(|rows| rows.contains(&node.row())));
        if let Some(region) = Region::of(node).filter(|_| asked) {
            totals += counts.node(node, region == Region::Sys);
        }
    }
    totals
}

/// The blocks of the reply.
fn reply_blocks(snapshot: &Snapshot) -> impl Iterator<Item = NodeRef<'_>> {
    let cycle = snapshot.cycle();
    let cycle = cycle.saturating_add(i64::from(snapshot.is_working()));
    let cycle = cycle.to_string();
    let last = snapshot.last_of_seq();
    let nodes = last.into_iter().flat_map(move |top| {
        let rows = top.row()..snapshot.end(top.row());
        snapshot.nodes_in(rows)
    });
    nodes.filter(move |node| node.field("data_reply") == Some(JsonValue::Number(&cycle)))
}
