//! A snapshot as a person reads it: what the model was sent, block by block, and what is new in it
//! (INSPECT §4).
//!
//! This module knows snapshots. `shown` is one of them, with its text.

mod shown;

pub use shown::{News, Shown, ShownBlock};

use crate::engine::Engine;
use crate::history::{History, LoadFailure, Position, Session};
use crate::index::{NodeRef, Snapshot};
use crate::inspect::call::{Call, cycle_of, is_reply};
use crate::inspect::counts::Counts;
use crate::inspect::groups::ToolNames;
use crate::inspect::part::{Chosen, Region, saying};
use crate::inspect::report::{Report, ReportOptions};
use crate::inspect::steps::time_of;
use crate::json::string;
use crate::render::{ThreadBlock, parameters_of};
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::support::table::Paint;
use crate::tree::NodeClass;
use serde::Serialize;
use std::borrow::Cow;

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
        let (chosen, mut counts) = options.read(engine, session)?;
        let history = session.history();
        let snapshots = chosen.iter().inspect(|_| ensure());
        let snapshots =
            snapshots.map(|chosen| one(&history, chosen, options.before_reply, &mut counts));
        let snapshots = snapshots.collect::<Result<_, _>>()?;
        Ok(Self { snapshots })
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

/// A snapshot to read.
fn one(
    history: &History,
    chosen: &Chosen,
    before_reply: bool,
    counts: &mut Counts,
) -> Result<Shown, LoadFailure> {
    let snapshot = &*chosen.snapshot;
    let previous = before(history, snapshot)?;
    let cycle = cycle_of(snapshot);
    let own_reply = cycle.to_string();
    let mut tools = ToolNames::default();
    snapshot.nodes().for_each(|node| tools.note(node));
    let mut blocks = Vec::new();
    for (node, region) in chosen.blocks() {
        let reply = is_reply(node, &own_reply);
        if reply && before_reply {
            continue;
        }
        let turn = turn_of(node, region);
        let block = ThreadBlock::of(node, region == Region::Sys);
        let text = text_of(&block);
        blocks.push(ShownBlock {
            id: node.id().to_owned(),
            region,
            turn: turn.map(|turn| turn.id().to_owned()),
            depth: turn.and_then(NodeRef::depth),
            role: block.role().to_owned(),
            kind: block.kind().map(str::to_owned),
            tool: tools.of(node),
            call_id: call_id_of(&block),
            reply,
            error: is_error(&block),
            news: news(previous.as_deref(), node),
            bytes: text.len() as u64,
            tokens: counts.block(&block),
            text,
        });
    }
    let gone = |previous: &Snapshot| {
        let nodes = previous.nodes().inspect(|_| ensure());
        let blocks = nodes.filter(|node| node.class() == NodeClass::Block);
        blocks
            .filter(|node| snapshot.find(node.id()).is_none())
            .count()
    };
    Ok(Shown {
        label: chosen.at.to_string(),
        cycle,
        time: time_of(snapshot),
        call: Call::of(snapshot),
        parameters: parameters_of(snapshot).map(Into::into),
        tokenizer: counts.tokenizer(),
        tokens: blocks.iter().map(|block| block.tokens).sum(),
        removed: previous.map_or(0, gone),
        blocks,
    })
}

/// Whether a block is a result that says it is an error.
pub(super) fn is_error(block: &ThreadBlock) -> bool {
    block.data("data_is_error") == Some("true") || block.kind() == Some("error")
}

/// The id of the call that a block is, or is a result of.
pub(super) fn call_id_of(block: &ThreadBlock) -> Option<String> {
    let id = block.data("data_call_id").and_then(string);
    id.map(Cow::into_owned)
}

/// The text of a block: the content if it is a string, else its JSON.
pub(super) fn text_of(block: &ThreadBlock) -> String {
    match block.content() {
        None | Some("null") => String::new(),
        Some(content) => string(content).map_or_else(|| content.to_owned(), Cow::into_owned),
    }
}

/// The committed snapshot before one of `history`.
fn before<'h>(history: &'h History, of: &Snapshot) -> Result<Option<&'h Snapshot>, LoadFailure> {
    history.fetch_cycles()?;
    let index = if of.is_working() {
        Some(history.committed().len())
    } else {
        history.committed().index_of(of.cycle())
    };
    let Some(before) = index.and_then(|index| index.checked_sub(1)) else {
        return Ok(None);
    };
    let found = history.load(Position::Committed(before))?;
    Ok(found.map(|found| &**found))
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
        Some(older) if saying(older) == saying(node) => News::Same,
        Some(_) => News::Changed,
    }
}
