//! A snapshot as a person reads it: what the model was sent, block by block, and what is new in it
//! (INSPECT §4).
//!
//! This file knows snapshots. It must not know how they are printed.

use super::call::Call;
use super::counts::Counts;
use super::part::{Part, Region};
use super::steps::time_of;
use super::tokenizer::Tokenizer;
use super::tokens::fitting;
use crate::engine::Engine;
use crate::history::{At, History, Session};
use crate::index::{NodeRef, Snapshot};
use crate::json::{JsonValue, ValueType, string, value_type};
use crate::render::{ThreadBlock, parameters_of};
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::tree::NodeClass;
use serde::Serialize;
use std::collections::HashMap;
use std::ops::Range;

/// A snapshot to read.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Shown {
    /// `@t0`, `@t-1`, …, or `working`.
    pub label: String,
    /// The cycle; that of a working state is the one in progress.
    pub cycle: i64,
    /// When its reply came, or else when its newest block was made, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What the snapshot says of the call.
    pub call: Call,
    /// The request parameters as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<String>,
    /// How tokens are counted.
    pub tokenizer: Tokenizer,
    /// The tokens of all blocks.
    pub tokens: u64,
    /// Blocks of the snapshot before that this one does not have.
    pub removed: usize,
    /// The blocks in the order in which they are sent.
    pub blocks: Vec<ShownBlock>,
}

/// How a block compares with the snapshot before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum News {
    /// It was there, and is the same.
    Same,
    /// It was not there.
    Added,
    /// It was there, and says something else.
    Changed,
}

/// A block to read.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ShownBlock {
    /// Its id.
    pub id: String,
    /// Where it is.
    pub region: Region,
    /// The id of the turn it is in, under `^seq`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The depth of the turn: 1 is the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<i64>,
    /// Its role, or the default of the region.
    pub role: String,
    /// Its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The tool that it defines, calls, or is a result of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Whether it is the model's reply of this cycle.
    pub reply: bool,
    /// Whether it is a result that says it is an error.
    pub error: bool,
    /// How it compares with the snapshot before.
    pub news: News,
    /// Bytes of the text.
    pub bytes: u64,
    /// Tokens of the block.
    pub tokens: u64,
    /// The text: the content if it is a string, else its JSON.
    pub text: String,
}

/// What is shown of a snapshot.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ShowOptions {
    /// Leaves out the reply of the cycle, so that what was sent remains.
    pub before_reply: bool,
}

impl ShowOptions {
    /// Leaves out the reply of the cycle.
    #[must_use]
    pub fn before_reply(mut self, before_reply: bool) -> Self {
        self.before_reply = before_reply;
        self
    }
}

/// The snapshots of `part` to read, oldest first, with the blocks that its selector matches; without a
/// tokenizer, tokens are counted by the one that fits the model. Linear in the snapshots; what is new is
/// looked up in the one before.
///
/// # Errors
/// The time is none, or no snapshot has it; every error of the selector; a snapshot of a store cannot
/// be loaded.
///
/// ```
/// use pactql::inspect::{News, Part, ShowOptions, show};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let part = Part::default().at("@t0");
/// let shown = show(&Engine::new(), &session, &part, ShowOptions::default(), None)?;
/// let new = shown[0].blocks.iter().filter(|block| block.news == News::Added);
/// assert!(new.count() > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn show(
    engine: &Engine,
    session: &Session,
    part: &Part,
    options: ShowOptions,
    tokenizer: Option<Tokenizer>,
) -> Result<Vec<Shown>, Error> {
    let history = session.history();
    let snapshots = part.snapshots(engine, &history)?;
    let tokenizer = tokenizer.unwrap_or_else(|| fitting(&snapshots));
    let mut counts = Counts::new(tokenizer);
    let mut all = Vec::with_capacity(snapshots.len());
    for (at, snapshot) in &snapshots {
        ensure();
        let rows = part.rows(engine, &history, *at, snapshot)?;
        all.push(one(
            &history,
            (*at, snapshot),
            options,
            rows.as_deref(),
            &mut counts,
        ));
    }
    Ok(all)
}

/// A snapshot to read; `rows` are those to show, and all without it.
fn one(
    history: &History,
    (at, snapshot): (At, &Snapshot),
    options: ShowOptions,
    rows: Option<&[Range<u32>]>,
    counts: &mut Counts,
) -> Shown {
    let previous = before(history, snapshot);
    let cycle = snapshot.cycle();
    let cycle = cycle.saturating_add(i64::from(snapshot.is_working()));
    let own_reply = cycle.to_string();
    let names = call_names(snapshot);
    let mut blocks = Vec::new();
    for node in snapshot.nodes().inspect(|_| ensure()) {
        let Some(region) = Region::of(node) else {
            continue;
        };
        let reply = node.field("data_reply") == Some(JsonValue::Number(&own_reply));
        let asked = rows.is_none_or(|rows| rows.iter().any(|rows| rows.contains(&node.row())));
        if !asked || (reply && options.before_reply) {
            continue;
        }
        let place = Position {
            region,
            turn: turn_of(node, region),
            reply,
        };
        let news = news(previous.as_deref(), node);
        blocks.push(shown(node, place, news, &names, counts));
    }
    let gone = |previous: &Snapshot| {
        let is_block = |node: &NodeRef<'_>| node.class() == NodeClass::Block;
        let blocks = previous.nodes().filter(is_block);
        let blocks = blocks.inspect(|_| ensure());
        blocks
            .filter(|node| snapshot.find(node.id()).is_none())
            .count()
    };
    Shown {
        label: at.to_string(),
        cycle,
        time: time_of(snapshot),
        call: Call::of(snapshot),
        parameters: parameters_of(snapshot).map(Into::into),
        tokenizer: counts.tokenizer(),
        tokens: blocks.iter().map(|block| block.tokens).sum(),
        removed: previous.as_deref().map_or(0, gone),
        blocks,
    }
}

/// Where a block is.
struct Position<'a> {
    region: Region,
    turn: Option<NodeRef<'a>>,
    reply: bool,
}

/// A block to read; `names` are those of tools by the ids of their calls.
fn shown(
    node: NodeRef<'_>,
    place: Position<'_>,
    news: News,
    names: &HashMap<String, String>,
    counts: &mut Counts,
) -> ShownBlock {
    let block = ThreadBlock::of(node, place.region == Region::Sys);
    let call_id = block.data("data_call_id").and_then(string);
    let text = text_of(&block);
    ShownBlock {
        id: node.id().to_owned(),
        region: place.region,
        turn: place.turn.map(|turn| turn.id().to_owned()),
        depth: place.turn.and_then(NodeRef::depth),
        role: block.role().to_owned(),
        kind: block.kind().map(str::to_owned),
        tool: tool_of(&block, names),
        call_id: call_id.map(Into::into),
        reply: place.reply,
        error: block.data("data_is_error") == Some("true") || block.kind() == Some("error"),
        news,
        bytes: text.len() as u64,
        tokens: counts.block(&block),
        text,
    }
}

/// The tool that a block defines, calls, or is a result of; `names` are those of tools by the ids of
/// their calls, as JSON.
pub(super) fn tool_of(block: &ThreadBlock, names: &HashMap<String, String>) -> Option<String> {
    let named = block.data("data_call_name").and_then(string);
    let of_call = || names.get(block.data("data_call_id")?).cloned();
    match block.kind() {
        Some("tool" | "call") => named
            .map(Into::into)
            .or_else(|| block.key().map(Into::into)),
        _ => named.map(Into::into).or_else(of_call),
    }
}

/// The text of a block: the content if it is a string, else its JSON.
pub(super) fn text_of(block: &ThreadBlock) -> String {
    match block.content() {
        None | Some("null") => String::new(),
        Some(content) if value_type(content) == ValueType::String => {
            string(content).unwrap_or_default().into_owned()
        }
        Some(content) => content.to_owned(),
    }
}

/// The names of the tools by the ids of their calls, as JSON.
fn call_names(snapshot: &Snapshot) -> HashMap<String, String> {
    let calls = snapshot.nodes().filter(|node| node.kind() == Some("call"));
    let named = calls.filter_map(|node| {
        let id = node.field("data_call_id")?;
        let name = node.field("data_call_name").and_then(JsonValue::text);
        Some((id.canonical(), name.or(node.key())?.to_owned()))
    });
    named.collect()
}

/// The committed snapshot before one of `history`.
fn before(history: &History, snapshot: &Snapshot) -> Option<std::sync::Arc<Snapshot>> {
    let committed = history.committed();
    let index = if snapshot.is_working() {
        committed.len()
    } else {
        committed.index_of(snapshot.cycle())?
    };
    committed.get(index.checked_sub(1)?).cloned()
}

/// The turn that a block is in.
fn turn_of(node: NodeRef<'_>, region: Region) -> Option<NodeRef<'_>> {
    let mut above = std::iter::successors(node.parent(), |node| node.parent());
    match region {
        Region::Seq => above.find(|node| node.level() == 2 && node.class() == NodeClass::Turn),
        _ => None,
    }
}

fn news(previous: Option<&Snapshot>, node: NodeRef<'_>) -> News {
    let Some(previous) = previous else {
        return News::Same;
    };
    match previous.find(node.id()) {
        None => News::Added,
        Some(older) if older.version() == node.version() => News::Same,
        Some(older) => {
            let same = older.role() == node.role()
                && older.kind() == node.kind()
                && older.field("content") == node.field("content");
            if same { News::Same } else { News::Changed }
        }
    }
}
