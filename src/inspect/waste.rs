//! What was sent in vain: texts that one request sends more than once, and tools that the model was given and never
//! called (INSPECT §4).

use super::call::Call;
use super::groups::{Counts, call_name, tool_name};
use super::part::{ChosenSnapshot, Region};
use super::prices::{Money, Price};
use super::report::{Report, ReportOptions, no_price, place};
use super::tokenizer::Tokenizer;
use crate::engine::Engine;
use crate::history::Session;
use crate::index::Snapshot;
use crate::render::SentTexts;
use crate::support::diag::Error;
use crate::support::table::{Paint, TextTable, Tint};
use crate::support::text::{amount, clean, counted, printable};
use crate::tree::hash::{ContentHash, hex, text_hash};
use hashbrown::{HashMap, HashSet};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The texts that a part of a session sends more than once in one request: equal texts of blocks, equal
/// arguments of calls, equal definitions of tools. Empty texts do not count. Linear in the blocks of each
/// snapshot.
///
/// ```
/// use pactql::inspect::{DuplicateReport, Report, ReportOptions};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let report = DuplicateReport::new(&Engine::new(), &session, &ReportOptions::default())?;
/// assert_eq!(report.snapshots.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DuplicateReport {
    /// How tokens were counted.
    pub tokenizer: Tokenizer,
    /// The snapshots, oldest first.
    pub snapshots: Vec<SnapshotDuplicates>,
}

/// The texts that one snapshot has more than once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SnapshotDuplicates {
    /// `working`, `@t-1`, or `@c12` where the range names cycles.
    pub label: String,
    /// The cycle; for a working state that of the newest snapshot.
    pub cycle: i64,
    /// The tokens of all copies but the first of each.
    pub repeated_tokens: u64,
    /// The texts: those of which most tokens are repeated first, then in document order.
    pub texts: Vec<Duplicate>,
}

/// A text that several blocks have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Duplicate {
    /// SHA-256 of the text, in lower-case hex digits.
    pub sha256: String,
    /// The text.
    pub text: String,
    /// Bytes of one copy.
    pub bytes: u64,
    /// Tokens of one copy.
    pub tokens: u64,
    /// Tokens of all copies but the first.
    pub repeated_tokens: u64,
    /// The ids of the blocks, in document order.
    pub blocks: Vec<String>,
}

impl Report for DuplicateReport {
    fn new(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let history = session.history();
        let mut finder = CopyFinder::default();
        let (snapshots, counts) = options.each(engine, &history, |chosen, counts| {
            let texts = finder.find(chosen, counts);
            Ok(SnapshotDuplicates {
                label: chosen.at.to_string(),
                cycle: chosen.snapshot.cycle(),
                repeated_tokens: texts.iter().map(|text| text.repeated_tokens).sum(),
                texts,
            })
        })?;
        Ok(Self {
            snapshots,
            tokenizer: counts.tokenizer(),
        })
    }

    fn text(&self, options: &ReportOptions, paint: Paint) -> String {
        match options.only(&self.snapshots) {
            Some(only) => one(self, only, paint),
            None => range(self, paint),
        }
    }
}

/// Finds equal texts. The text of a node is read once, however many snapshots have the node.
#[derive(Default)]
struct CopyFinder {
    /// Of each node by its version; `None` if it has no text.
    hashes: HashMap<(u64, u32), Option<ContentHash>>,
}

impl CopyFinder {
    fn find(&mut self, chosen: &ChosenSnapshot, counts: &mut Counts) -> Vec<Duplicate> {
        let text_of = |node, region| {
            let text = SentTexts::new(node, region == Region::Sys).text;
            text.filter(|text| !text.is_empty())
        };
        let mut copies: HashMap<ContentHash, Vec<u32>> = HashMap::new();
        for (node, region) in chosen.blocks() {
            let read = || text_of(node, region).map(|text| text_hash(&text));
            let known = self.hashes.entry(node.version());
            if let Some(hash) = *known.or_insert_with(read) {
                copies.entry(hash).or_default().push(node.row());
            }
        }
        let mut copies: Vec<(ContentHash, Vec<u32>)> = copies.into_iter().collect();
        copies.retain(|(_, rows)| rows.len() > 1);
        // In document order, which the sort by size keeps.
        copies.sort_unstable_by_key(|(_, rows)| rows[0]);
        let texts = copies.into_iter().map(|(hash, rows)| {
            let mut blocks = rows.iter().map(|row| chosen.snapshot.node(*row)).peekable();
            let first = blocks.peek().map(|node| (*node, Region::containing(*node)));
            let text = first.and_then(|(node, region)| text_of(node, region?));
            let text = text.unwrap_or_default();
            let tokens = counts.text(&text);
            Duplicate {
                sha256: hex(&hash),
                bytes: text.len() as u64,
                tokens,
                repeated_tokens: tokens * (rows.len() as u64 - 1),
                blocks: blocks.map(|node| node.id().to_owned()).collect(),
                text: text.into_owned(),
            }
        });
        let mut texts: Vec<Duplicate> = texts.collect();
        texts.sort_by_key(|text| Reverse(text.repeated_tokens));
        texts
    }
}

/// How many texts, and of each how many blocks, are listed.
const TEXTS: usize = 20;
const BLOCKS: usize = 5;

/// The length of the beginning of a text.
const BEGINNING: usize = 60;

fn one(report: &DuplicateReport, snapshot: &SnapshotDuplicates, paint: Paint) -> String {
    let (place, tokens) = (&snapshot.label, amount(snapshot.repeated_tokens));
    let texts = counted(snapshot.texts.len() as u64, "text");
    let tokenizer = report.tokenizer;
    let title =
        format!("{place}: {texts} sent more than once, {tokens} tokens repeated ({tokenizer})");
    let mut out = paint.tint(Tint::Place, &title) + "\n";
    for text in snapshot.texts.iter().take(TEXTS) {
        entry(text, paint, &mut out);
    }
    if let Some(more @ 1..) = snapshot.texts.len().checked_sub(TEXTS) {
        let _ = writeln!(out, "and {more} more");
    }
    out
}

fn entry(text: &Duplicate, paint: Paint, out: &mut String) {
    let (copies, tokens, bytes) = (text.blocks.len(), amount(text.tokens), amount(text.bytes));
    let _ = writeln!(
        out,
        "{copies} times {tokens} tokens, {bytes} bytes: {}",
        clean(&text.text, BEGINNING)
    );
    let ids = text.blocks.iter().take(BLOCKS);
    let ids: Vec<String> = ids
        .map(|id| paint.tint(Tint::Name, &clean(id, BEGINNING)))
        .collect();
    let _ = write!(out, "  {}", ids.join(" "));
    if let Some(more @ 1..) = copies.checked_sub(BLOCKS) {
        let _ = write!(out, " and {more} more");
    }
    out.push('\n');
}

fn range(report: &DuplicateReport, paint: Paint) -> String {
    let mut table = TextTable::new(["snapshot", report.tokenizer.name(), "texts", "blocks"]);
    for snapshot in &report.snapshots {
        let (tokens, texts) = (snapshot.repeated_tokens, &snapshot.texts);
        let blocks: usize = texts.iter().map(|text| text.blocks.len()).sum();
        let cells = [tokens, texts.len() as u64, blocks as u64].map(amount);
        table.add_bar(place(&snapshot.label, snapshot.cycle), cells, tokens);
    }
    table.text(paint)
}

/// The tools that are defined in a part of a session and that no block of its snapshots calls. Linear in the
/// definitions of each snapshot, and in the units of all.
///
/// ```
/// use pactql::inspect::{Part, Report, ReportOptions, UnusedReport};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/greenhouse.jsonl")?;
/// let options = ReportOptions::new(Part::default().at("@history"));
/// let report = UnusedReport::new(&Engine::new(), &session, &options)?;
/// assert_eq!(report.snapshots, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnusedReport {
    /// How tokens were counted.
    pub tokenizer: Tokenizer,
    /// How many snapshots were read.
    pub snapshots: u64,
    /// How many tools were defined in any of them.
    pub defined: u64,
    /// The tools that were never called: those that cost most first, then by name.
    pub tools: Vec<UnusedTool>,
    /// The day of the prices.
    pub prices: String,
    /// The model of the newest snapshot that names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A tool that was never called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnusedTool {
    /// Its name; the block's id, if the definition has none.
    pub name: String,
    /// The tokens of the definition, in the newest snapshot that has it.
    pub tokens: u64,
    /// How many requests had it.
    pub requests: u64,
    /// Its tokens in all of them.
    pub sent_tokens: u64,
    /// What those cost where nothing was read from a cache; `None` if a request has no known price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nano_dollars: Option<Money>,
    /// What they cost where all but the first request read them from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_nano_dollars: Option<Money>,
}

impl UnusedTool {
    fn new(name: String) -> Self {
        Self {
            name,
            tokens: 0,
            requests: 0,
            sent_tokens: 0,
            nano_dollars: Some(Money(0)),
            cached_nano_dollars: Some(Money(0)),
        }
    }

    /// Adds a definition that was sent; `first` says that it is the first of the name in its request.
    fn add(&mut self, tokens: u64, first: bool, price: Option<&Price>) {
        let add = |sum: &mut Option<Money>, cost: fn(&Price, u64) -> Money| {
            *sum = sum.zip(price).map(|(sum, price)| sum + cost(price, tokens));
        };
        add(&mut self.nano_dollars, Price::of_input);
        let cost = if self.requests == 0 {
            Price::of_input
        } else {
            Price::of_cached
        };
        add(&mut self.cached_nano_dollars, cost);
        self.tokens = tokens;
        self.sent_tokens += tokens;
        self.requests += u64::from(first);
    }
}

impl Report for UnusedReport {
    fn new(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let history = session.history();
        let mut calls = CalledTools::default();
        let mut tools: BTreeMap<String, UnusedTool> = BTreeMap::new();
        let mut model = None;
        let (snapshots, counts) = options.each(engine, &history, |chosen, counts| {
            let snapshot = &chosen.snapshot;
            calls.read(snapshot);
            let call = options.prices.with_model(Call::from_snapshot(snapshot));
            let price = call.model.as_deref();
            let price = price.and_then(|model| options.prices.find(model));
            model = call.model.clone().or(model.take());
            let mut seen: HashSet<String> = HashSet::new();
            let nodes = snapshot.nodes_in(snapshot.sys_rows());
            let defined = nodes.filter(|node| {
                node.kind() == Some("tool")
                    && Region::containing(*node).is_some()
                    && chosen.has(*node)
            });
            for node in defined {
                let name = tool_name(node).unwrap_or_else(|| node.id().to_owned());
                let tokens = counts.node(node, true).tokens;
                let tool = tools.entry(name.clone());
                let tool = tool.or_insert_with(|| UnusedTool::new(name.clone()));
                tool.add(tokens, seen.insert(name), price);
            }
            Ok(())
        })?;
        let defined = tools.len() as u64;
        let mut tools: Vec<UnusedTool> = tools.into_values().collect();
        tools.retain(|tool| !calls.names.contains(&tool.name));
        // They are in the order of their names.
        tools.sort_by_key(|tool| Reverse(tool.sent_tokens));
        Ok(Self {
            tokenizer: counts.tokenizer(),
            snapshots: snapshots.len() as u64,
            defined,
            tools,
            prices: options.prices.date().to_owned(),
            model,
        })
    }

    fn text(&self, _: &ReportOptions, paint: Paint) -> String {
        let snapshots = counted(self.snapshots, "snapshot");
        let (count, defined) = (self.tools.len(), counted(self.defined, "tool"));
        let title = match self.defined {
            0 => format!("no tool is defined in {snapshots}"),
            _ => format!("{count} of {defined} never called in {snapshots}"),
        };
        let mut out = paint.tint(Tint::Place, &title) + "\n";
        if self.tools.is_empty() {
            return out;
        }
        let priced = self.tools.iter().all(|tool| tool.nano_dollars.is_some());
        let mut header = vec!["tool", self.tokenizer.name(), "requests", "sent"];
        if priced {
            header.extend(["cost", "cached"]);
        }
        let mut table = TextTable::new(header);
        for tool in &self.tools {
            let mut cells = [tool.tokens, tool.requests, tool.sent_tokens]
                .map(amount)
                .to_vec();
            if priced {
                let costs = [tool.nano_dollars, tool.cached_nano_dollars];
                cells.extend(costs.map(|cost| cost.unwrap_or_default().to_string()));
            }
            table.add_bar(printable(&tool.name), cells, tool.sent_tokens);
        }
        out.push_str(&table.text(paint));
        if priced {
            let _ = writeln!(out, "at the prices of {}", self.prices);
        } else {
            out.push_str(&no_price([self.model.as_deref()], &self.prices));
        }
        out
    }
}

/// The names of the tools that were called. Each unit is read once.
#[derive(Default)]
struct CalledTools {
    names: HashSet<String>,
    units: HashSet<u64>,
}

impl CalledTools {
    fn read(&mut self, snapshot: &Snapshot) {
        for unit in snapshot.units() {
            // Of a unit that lost rows, what it has left is read again if those were not.
            if unit.dead_rows().next().is_none() && !self.units.insert(unit.version()) {
                continue;
            }
            let calls = unit.nodes().filter(|node| node.kind() == Some("call"));
            self.names.extend(calls.filter_map(call_name));
        }
    }
}
