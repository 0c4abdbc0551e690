//! A snapshot as a person reads it: what the model was sent, block by block, and what is new in it
//! (INSPECT §4).

use super::call::{Call, before, cycle_of, is_reply, time_of};
use super::groups::{Counts, ToolNames, role};
use super::part::{ChosenSnapshot, Region, saying};
use super::report::{Report, ReportOptions};
use super::steps::{is_utc, seconds};
use super::tokenizer::Tokenizer;
use crate::engine::Engine;
use crate::history::{History, LoadFailure, Session};
use crate::index::{NodeRef, Snapshot, UnitKind, UnitRef};
use crate::json::JsonValue;
use crate::render::{compact, parameters_of};
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::support::table::{Paint, Tint};
use crate::support::text::{amount, counted, escaped, printable};
use crate::tree::NodeClass;
use serde::Serialize;
use std::fmt::Write as _;

/// What the model saw: the snapshots of a part, oldest first, with the blocks that its selector matches. Linear
/// in the snapshots; what is new is looked up in the one before.
///
/// ```
/// use pactql::inspect::{News, Part, Report, ReportOptions, ShowReport};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let options = ReportOptions::new(Part::default().at("@t0"));
/// let report = ShowReport::new(&Engine::new(), &session, &options)?;
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
    fn new(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let history = session.history();
        history.fetch_attempts()?;
        let (snapshots, _) = options.each(engine, &history, |chosen, counts| {
            Ok(one(&history, chosen, options.before_reply, counts)?)
        })?;
        Ok(Self { snapshots })
    }

    fn is_reconstructed(&self) -> bool {
        self.snapshots.iter().any(|shown| shown.call.reconstructed)
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

fn one(
    history: &History,
    chosen: &ChosenSnapshot,
    before_reply: bool,
    counts: &mut Counts,
) -> Result<Shown, LoadFailure> {
    let snapshot = &*chosen.snapshot;
    let previous = before(history, snapshot)?.map(|found| &**found);
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
        let text = text_of(node, region);
        blocks.push(ShownBlock {
            id: node.id().to_owned(),
            region,
            turn: turn.map(|turn| turn.id().to_owned()),
            depth: turn.and_then(NodeRef::depth),
            role: role(node, region).to_owned(),
            kind: node.kind().map(str::to_owned),
            tool: tools.name(node),
            call_id: field_text(node, "data_call_id"),
            reply,
            error: is_error(node),
            news: news(previous, node),
            bytes: text.len() as u64,
            tokens: counts.node(node, region == Region::Sys).tokens,
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
        call: Call::in_history(history, snapshot),
        parameters: parameters_of(snapshot).map(Into::into),
        tokenizer: counts.tokenizer(),
        tokens: blocks.iter().map(|block| block.tokens).sum(),
        removed: previous.map_or(0, gone),
        blocks,
    })
}

/// Whether a block is a result that says it is an error.
pub(super) fn is_error(node: NodeRef<'_>) -> bool {
    node.field("data_is_error") == Some(JsonValue::Bool(true)) || node.kind() == Some("error")
}

/// A field that is a string.
pub(super) fn field_text(node: NodeRef<'_>, name: &str) -> Option<String> {
    node.field(name)
        .and_then(JsonValue::text)
        .map(str::to_owned)
}

/// The text of a block: the content if it is a string, else its JSON; that of a definition is as it came.
pub(super) fn text_of(node: NodeRef<'_>, region: Region) -> String {
    match node.field("content") {
        None | Some(JsonValue::Null) => String::new(),
        Some(JsonValue::Text(text)) => text.to_owned(),
        Some(content) if region == Region::Sys && node.kind() == Some("tool") => {
            compact(&content.json()).into_owned()
        }
        Some(content) => content.canonical(),
    }
}

fn turn_of(node: NodeRef<'_>, region: Region) -> Option<NodeRef<'_>> {
    let unit = (region == Region::Seq).then(|| UnitRef::containing(node))?;
    (unit.kind() == UnitKind::Turn).then(|| unit.top())
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

/// The first lines of a text that are shown, and the characters of them.
const LINES: usize = 10;
const LETTERS: usize = 800;

fn title(shown: &Shown) -> String {
    let mut words = vec![format!("cycle {}", shown.cycle)];
    words.extend(shown.time.as_deref().map(|time| {
        let zone = if is_utc(time) { " UTC" } else { "" };
        seconds(time) + zone
    }));
    words.extend(shown.call.model.as_deref().map(printable));
    let tokens = counted(shown.tokens, "token");
    let has_reply = shown.blocks.iter().any(|block| block.reply);
    let reply = if has_reply { " with the reply" } else { "" };
    words.push(format!("{tokens}{reply} ({})", shown.tokenizer));
    for (name, count) in [
        ("provider counted", shown.call.input_tokens),
        ("cached", shown.call.cached_tokens),
        ("replied", shown.call.output_tokens),
    ] {
        words.extend(count.map(|count| format!("{name} {}", amount(count))));
    }
    words.join(", ")
}

fn remarks(shown: &Shown) -> Vec<String> {
    let mut lines = Vec::new();
    if shown.call.compaction {
        let is_cleared = shown.removed == 0
            && shown.blocks.iter().any(|block| {
                block.news == News::Changed && block.kind.as_deref() == Some("result")
            });
        let how = if is_cleared {
            "results of tools were cleared in place"
        } else {
            "a summary replaces what was before"
        };
        lines.push(format!("compaction: {how}"));
    }
    if shown.call.failed > 0 {
        let calls = counted(shown.call.failed as u64, "call");
        let error = shown.call.error.as_deref();
        let error = error.map_or_else(String::new, |error| format!(": {}", printable(error)));
        lines.push(format!("{calls} failed{error}"));
    }
    if shown.call.canceled > 0 {
        let calls = counted(shown.call.canceled as u64, "call");
        lines.push(format!("{calls} canceled"));
    }
    if let Some(error) = &shown.call.reply_error {
        lines.push(format!("the reply was broken off: {}", printable(error)));
    }
    if shown.removed > 0 {
        let blocks = counted(shown.removed as u64, "block");
        lines.push(format!("{blocks} of the snapshot before gone"));
    }
    lines
}

fn place(block: &ShownBlock) -> String {
    match (block.region, &block.turn, block.depth) {
        (Region::Sys, ..) => "^sys".to_owned(),
        (Region::Ah, ..) => "^ah".to_owned(),
        (_, Some(turn), Some(depth)) => format!("{} (depth {depth})", printable(turn)),
        (_, Some(turn), None) => printable(turn),
        _ => "^seq".to_owned(),
    }
}

/// Who says what: `assistant  call find`.
fn speaker(block: &ShownBlock, paint: Paint) -> String {
    let mut words = paint.tint(Tint::Kind, &printable(&block.role));
    let kind = block.kind.as_deref().unwrap_or("block");
    if kind != "text" {
        let _ = write!(words, " {}", printable(kind));
    }
    if let Some(tool) = &block.tool {
        let _ = write!(words, " {}", paint.tint(Tint::Tool, &printable(tool)));
    }
    if block.error {
        let _ = write!(words, " {}", paint.tint(Tint::Removed, "error"));
    }
    words
}

/// The sign of a block that is new: `+`, or `~` if it changed.
fn sign(news: News, paint: Paint) -> String {
    match news {
        News::Added => paint.tint(Tint::Added, "+"),
        News::Changed => paint.tint(Tint::Changed, "~"),
        _ => " ".to_owned(),
    }
}

/// The lines of a text that are shown, and what says how much is left out.
fn cut(text: &str, full: bool) -> (Vec<&str>, Option<String>) {
    let most = if full { usize::MAX } else { LINES };
    let mut left = if full { usize::MAX } else { LETTERS };
    let mut shown = Vec::new();
    for line in text.lines().take(most) {
        let end = line.char_indices().nth(left);
        shown.push(end.map_or(line, |(end, _)| &line[..end]));
        if end.is_some() {
            break;
        }
        left -= line.chars().count();
    }
    let kept: usize = shown.iter().map(|line| line.len() + 1).sum();
    let rest = text.len().saturating_sub(kept);
    let more = (rest > 0).then(|| format!("… {} more", counted(rest as u64, "byte")));
    (shown, more)
}

impl Shown {
    /// A snapshot as text: the blocks in the order in which they are sent, with `+` before those that are
    /// new since the snapshot before, and `~` before those that changed.
    pub(super) fn text(&self, full: bool, paint: Paint) -> String {
        let label = paint.tint(Tint::Place, &self.label);
        let mut out = format!("{label}: {}\n", title(self));
        for line in remarks(self) {
            out.extend([&*paint.tint(Tint::Changed, &line), "\n"]);
        }
        if let Some(parameters) = &self.parameters {
            let _ = writeln!(out, "parameters {}", escaped(parameters, false));
        }
        let mut last = None;
        let mut blocks = self.blocks.iter().peekable();
        while let Some(block) = blocks.next() {
            let here = place(block);
            if last.as_ref() != Some(&here) {
                let _ = writeln!(out, "\n{}", paint.tint(Tint::Name, &here));
                last = Some(here);
            }
            if is_tool(block) && !full {
                // Their definitions are long, and mostly their names are enough.
                let mut names = vec![printable(block.tool.as_deref().unwrap_or(&block.id))];
                let (mut tokens, mut news) = (block.tokens, block.news);
                while let Some(tool) = blocks.next_if(|next| is_tool(next) && next.news == news) {
                    names.push(printable(tool.tool.as_deref().unwrap_or(&tool.id)));
                    tokens += tool.tokens;
                    news = tool.news;
                }
                let tools = paint.tint(Tint::Kind, &counted(names.len() as u64, "tool"));
                let (sign, names) = (sign(news, paint), names.join(", "));
                let tokens = counted(tokens, "token");
                let _ = writeln!(out, "{sign} {tools} {tokens}: {names}");
                continue;
            }
            let (sign, speaker) = (sign(block.news, paint), speaker(block, paint));
            let (id, tokens) = (printable(&block.id), counted(block.tokens, "token"));
            let _ = writeln!(out, "{sign} {speaker}  {id}  {tokens}");
            let (lines, more) = cut(&block.text, full);
            for line in lines {
                let _ = writeln!(
                    out,
                    "{}",
                    format!("    {}", escaped(line, false)).trim_end()
                );
            }
            if let Some(more) = more {
                let _ = writeln!(out, "    {more}");
            }
        }
        out
    }

    pub(super) fn markdown(&self, full: bool) -> String {
        let mut out = format!("# {}\n\n{}\n", self.label, title(self));
        for line in remarks(self) {
            let _ = write!(out, "\n> {line}\n");
        }
        if let Some(parameters) = &self.parameters {
            fence(&escaped(parameters, false), "json", &mut out);
        }
        let mut last = None;
        for block in &self.blocks {
            let here = place(block);
            if last.as_ref() != Some(&here) {
                let _ = write!(out, "\n## {here}\n");
                last = Some(here);
            }
            let news = match block.news {
                News::Added => ", new",
                News::Changed => ", changed",
                _ => "",
            };
            let (speaker, id) = (
                speaker(block, Paint::default()),
                printable(&block.id).replace('`', "'"),
            );
            let tokens = counted(block.tokens, "token");
            let _ = write!(out, "\n### {speaker}\n\n`{id}`, {tokens}{news}\n");
            let (lines, more) = cut(&block.text, full);
            let lines: Vec<String> = lines
                .into_iter()
                .map(|line| escaped(line, false).into_owned())
                .collect();
            match block.kind.as_deref() {
                None | Some("text" | "summary") => {
                    let _ = write!(out, "\n{}\n", lines.join("\n"));
                }
                Some("call" | "tool") => fence(&lines.join("\n"), "json", &mut out),
                Some(_) => fence(&lines.join("\n"), "", &mut out),
            }
            if let Some(more) = more {
                let _ = write!(out, "\n{more}\n");
            }
        }
        out
    }
}

fn is_tool(block: &ShownBlock) -> bool {
    block.region == Region::Sys && block.kind.as_deref() == Some("tool")
}

/// Appends a block of code, whose fence is longer than any run of backticks in it.
fn fence(text: &str, language: &str, out: &mut String) {
    let runs = text.split(|letter| letter != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let _ = write!(out, "\n{fence}{language}\n{text}\n{fence}\n");
}
