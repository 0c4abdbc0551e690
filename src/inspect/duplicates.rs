//! Texts that one request sends more than once (INSPECT §4).

use super::counts::Counts;
use super::part::{Chosen, Region};
use super::report::{Report, ReportOptions};
use super::tokenizer::Tokenizer;
use crate::engine::Engine;
use crate::history::Session;
use crate::render::Wording;
use crate::support::diag::Error;
use crate::support::table::{Paint, Table, Tint};
use crate::support::text::{amount, clean, counted};
use crate::tree::hash::{ContentHash, hex, text_hash};
use hashbrown::HashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// The texts that a part of a session sends more than once in one request: equal texts of blocks, equal
/// arguments of calls, equal definitions of tools. Empty texts do not count. Linear in the blocks of each
/// snapshot.
///
/// ```
/// use pactql::inspect::{DuplicateReport, Report, ReportOptions};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let report = DuplicateReport::of(&Engine::new(), &session, &ReportOptions::default())?;
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
    fn of(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let history = session.history();
        let (chosen, counts) = options.read(engine, &history)?;
        let mut finder = CopyFinder {
            counts,
            hashes: HashMap::new(),
        };
        let snapshots = chosen.map(|chosen| {
            let chosen = chosen?;
            let texts = finder.find(&chosen);
            Ok(SnapshotDuplicates {
                label: chosen.at.to_string(),
                cycle: chosen.snapshot.cycle(),
                repeated_tokens: texts.iter().map(|text| text.repeated_tokens).sum(),
                texts,
            })
        });
        Ok(Self {
            snapshots: snapshots.collect::<Result<_, Error>>()?,
            tokenizer: finder.counts.tokenizer(),
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
struct CopyFinder {
    counts: Counts,
    /// Of each node by its version; `None` if it has no text.
    hashes: HashMap<(u64, u32), Option<ContentHash>>,
}

impl CopyFinder {
    fn find(&mut self, chosen: &Chosen) -> Vec<Duplicate> {
        let text_of = |node, region| {
            let text = Wording::of_node(node, region == Region::Sys).text;
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
            let first = blocks.peek().map(|node| (*node, Region::of(*node)));
            let text = first.and_then(|(node, region)| text_of(node, region?));
            let text = text.unwrap_or_default();
            let tokens = self.counts.text(&text);
            Duplicate {
                sha256: hex(&hash),
                bytes: text.len() as u64,
                tokens,
                repeated_tokens: tokens * (rows.len() as u64 - 1),
                blocks: blocks.map(|node| node.id().to_owned()).collect(),
                text,
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
    let mut table = Table::new(["snapshot", report.tokenizer.name(), "texts", "blocks"]);
    for snapshot in &report.snapshots {
        let (tokens, texts) = (snapshot.repeated_tokens, &snapshot.texts);
        let blocks: usize = texts.iter().map(|text| text.blocks.len()).sum();
        let cells = [tokens, texts.len() as u64, blocks as u64].map(amount);
        table.add_bar(snapshot.label.clone(), cells, tokens);
    }
    table.text(paint)
}
