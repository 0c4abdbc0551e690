//! A snapshot as a person reads it: what the model was sent, block by block, and what is new in it
//! (INSPECT §4).
//!
//! This module knows snapshots. `shown` is one of them, with its text.

mod shown;

pub use shown::{News, Shown, ShownBlock};

use crate::engine::Engine;
use crate::history::{At, History, Session};
use crate::index::{NodeRef, Snapshot};
use crate::inspect::call::Call;
use crate::inspect::counts::Counts;
use crate::inspect::part::Region;
use crate::inspect::report::{Report, ReportOptions};
use crate::inspect::steps::time_of;
use crate::inspect::tokens::fitting;
use crate::json::{JsonValue, ValueType, string, value_type};
use crate::render::{ThreadBlock, parameters_of};
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::support::table::Paint;
use crate::tree::NodeClass;
use serde::Serialize;
use std::collections::HashMap;
use std::ops::Range;

/// What the model saw: the snapshots of a part, oldest first, with the blocks that its selector matches. Linear
/// in the snapshots; what is new is looked up in the one before.
///
/// ```
/// use pactql::inspect::{News, Part, Report, ReportOptions, ShowReport};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let options = ReportOptions::new(Part::default().at("@t0"));
/// let report = ShowReport::of(&Engine::new(), &session, &options)?;
/// let new = report.snapshots[0].blocks.iter().filter(|block| block.news == News::Added);
/// assert!(new.count() > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ShowReport {
    /// The snapshots, oldest first.
    pub snapshots: Vec<Shown>,
}

impl Report for ShowReport {
    type Line = Shown;

    fn of(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let history = session.history();
        let snapshots = options.part.snapshots(engine, &history)?;
        let tokenizer = options.tokenizer.unwrap_or_else(|| fitting(&snapshots));
        let mut counts = Counts::new(tokenizer);
        let mut all = Vec::with_capacity(snapshots.len());
        for (at, snapshot) in &snapshots {
            ensure();
            let rows = options.part.rows(engine, &history, *at, snapshot)?;
            all.push(one(
                &history,
                (*at, snapshot),
                options.before_reply,
                rows.as_deref(),
                &mut counts,
            ));
        }
        Ok(Self { snapshots: all })
    }

    fn lines(&self) -> &[Shown] {
        &self.snapshots
    }

    fn text(&self, options: &ReportOptions, paint: Paint) -> String {
        let texts = self.snapshots.iter();
        texts.map(|shown| shown.text(options.full, paint)).collect()
    }
}

impl ShowReport {
    /// The report as Markdown.
    #[must_use]
    pub fn to_markdown(&self, options: &ReportOptions) -> String {
        let texts = self.snapshots.iter();
        texts.map(|shown| shown.markdown(options.full)).collect()
    }
}

/// A snapshot to read; `rows` are those to show, and all without it.
fn one(
    history: &History,
    (at, snapshot): (At, &Snapshot),
    before_reply: bool,
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
        if !asked || (reply && before_reply) {
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
