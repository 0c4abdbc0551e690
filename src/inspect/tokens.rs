//! How many tokens a session's requests have, and in which groups (INSPECT §4).

use super::call::Call;
use super::counts::{Counts, Totals};
use super::groups::{By, Group, Groups};
use super::part::{Part, Region};
use super::tokenizer::Tokenizer;
use crate::diag::Error;
use crate::engine::Engine;
use crate::history::{At, Session};
use crate::index::{NodeRef, Snapshot};
use serde::{Serialize, Serializer};
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
}

/// The sizes of one snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SnapshotTokens {
    /// `working`, `@t-1`, or `@c12` where the range names cycles.
    pub snapshot: String,
    /// The cycle; for a working state that of the newest snapshot.
    pub cycle: i64,
    /// All blocks: what the model was sent and what it replied.
    #[serde(flatten)]
    pub totals: Totals,
    /// Of them, those of the reply.
    #[serde(serialize_with = "size")]
    pub reply: Totals,
    /// The groups, the largest first.
    pub groups: Vec<Group>,
    /// What the snapshot says of the call: the model, and what the provider counted.
    pub call: Call,
}

fn size<S: Serializer>(totals: &Totals, serializer: S) -> Result<S::Ok, S::Error> {
    totals.serialize(serializer)
}

/// Counts the blocks of a session's snapshots.
///
/// What is counted of a block is what rendering sends for it: see
/// [`Wording`](crate::render::Wording). The overhead of a provider's form is not guessed. Without a
/// tokenizer, it is the one that fits the model of the newest of the snapshots. Each distinct text is
/// counted once; a snapshot costs its units.
///
/// # Errors
/// The time is none, or no snapshot has it; every error of the selector; a snapshot of a store cannot
/// be loaded.
///
/// ```
/// use pactql::inspect::{By, Part, Tokenizer, tokens};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let part = Part::default().at("@t0");
/// let report = tokens(&Engine::new(), &session, &part, By::Role, Some(Tokenizer::Bytes4))?;
/// let newest = &report.snapshots[0];
/// let sum: u64 = newest.groups.iter().map(|group| group.totals.tokens).sum();
/// assert_eq!(sum, newest.totals.tokens);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tokens(
    engine: &Engine,
    session: &Session,
    part: &Part,
    by: By,
    tokenizer: Option<Tokenizer>,
) -> Result<TokenReport, Error> {
    let history = session.history();
    let snapshots = part.snapshots(engine, &history)?;
    let tokenizer = tokenizer.unwrap_or_else(|| fitting(&snapshots));
    let mut counts = Counts::new(tokenizer);
    let mut groups = Groups::new(by);
    let mut found = Vec::with_capacity(snapshots.len());
    for (at, snapshot) in &snapshots {
        let rows = part.rows(engine, &history, *at, snapshot)?;
        let groups = groups.add_up(snapshot, rows.as_deref(), &mut counts);
        let mut totals = Totals::default();
        groups.iter().for_each(|group| totals += group.totals);
        found.push(SnapshotTokens {
            snapshot: at.to_string(),
            cycle: snapshot.cycle(),
            totals,
            reply: reply(snapshot, rows.as_deref(), &mut counts),
            groups,
            call: Call::of(snapshot),
        });
    }
    Ok(TokenReport {
        tokenizer,
        by,
        snapshots: found,
        distinct: counts.distinct(),
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
    nodes.filter(move |node| node.field("data_reply") == Some(&*cycle))
}
