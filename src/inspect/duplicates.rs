//! Texts that one request sends more than once (INSPECT §4).

use super::counts::Counts;
use super::part::Region;
use super::report::{Report, ReportOptions};
use super::tokenizer::Tokenizer;
use super::tokens::fitting;
use crate::engine::Engine;
use crate::history::Session;
use crate::index::Snapshot;
use crate::render::Wording;
use crate::support::diag::Error;
use crate::support::table::{Paint, Table, Tint};
use crate::support::text::{amount, clean, counted};
use crate::tree::hash::{hex, text_hash};
use hashbrown::HashMap;
use serde::Serialize;
use std::fmt::Write as _;
use std::ops::Range;

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
    type Line = Self;

    fn of(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let history = session.history();
        let snapshots = options.part.snapshots(engine, &history)?;
        let tokenizer = options.tokenizer.unwrap_or_else(|| fitting(&snapshots));
        let mut finder = Finder {
            counts: Counts::new(tokenizer),
            hashes: HashMap::new(),
        };
        let mut found = Vec::with_capacity(snapshots.len());
        for (at, snapshot) in &snapshots {
            let rows = options.part.rows(engine, &history, *at, snapshot)?;
            let texts = finder.find(snapshot, rows);
            found.push(SnapshotDuplicates {
                label: at.to_string(),
                cycle: snapshot.cycle(),
                repeated_tokens: texts.iter().map(|text| text.repeated_tokens).sum(),
                texts,
            });
        }
        Ok(Self {
            tokenizer,
            snapshots: found,
        })
    }

    fn lines(&self) -> &[Self] {
        std::slice::from_ref(self)
    }

    fn text(&self, options: &ReportOptions, paint: Paint) -> String {
        let mut out = String::new();
        match &self.snapshots[..] {
            [only] if !options.part.is_range() => one(self, only, paint, &mut out),
            _ => range(self, paint, &mut out),
        }
        out
    }
}

type Hash = crate::tree::hash::ContentHash;

/// Finds equal texts. The text of a node is read once, however many snapshots have the node.
struct Finder {
    counts: Counts,
    /// Of each node by its version; `None` if it has no text.
    hashes: HashMap<(u64, u32), Option<Hash>>,
}

impl Finder {
    fn find(&mut self, snapshot: &Snapshot, rows: Option<Vec<Range<u32>>>) -> Vec<Duplicate> {
        let rows = rows.unwrap_or_else(|| std::iter::once(0..snapshot.end_row()).collect());
        let mut order: Vec<Hash> = Vec::new();
        let mut places: HashMap<Hash, Vec<u32>> = HashMap::new();
        for node in rows.iter().flat_map(|rows| snapshot.nodes_in(rows.clone())) {
            let Some(region) = Region::of(node) else {
                continue;
            };
            let read = || {
                let text = Wording::of_node(node, region == Region::Sys).text;
                text.filter(|text| !text.is_empty())
                    .map(|text| text_hash(&text))
            };
            let Some(hash) = *self.hashes.entry(node.version()).or_insert_with(read) else {
                continue;
            };
            let copies = places.entry(hash).or_default();
            copies.push(node.row());
            if copies.len() == 2 {
                order.push(hash);
            }
        }
        let mut texts: Vec<(u32, Duplicate)> = Vec::new();
        for hash in order {
            let copies = places.get(&hash).map(Vec::as_slice).unwrap_or_default();
            let Some(first) = copies.first() else {
                continue;
            };
            let node = snapshot.node(*first);
            let system = Region::of(node) == Some(Region::Sys);
            let text = Wording::of_node(node, system).text.unwrap_or_default();
            let tokens = self.counts.text(&text);
            let more = copies.len() as u64 - 1;
            let ids = copies.iter().map(|row| snapshot.node(*row).id().to_owned());
            let duplicate = Duplicate {
                sha256: hex(&hash),
                bytes: text.len() as u64,
                tokens,
                repeated_tokens: tokens * more,
                blocks: ids.collect(),
                text,
            };
            texts.push((*first, duplicate));
        }
        texts.sort_by(|a, b| {
            let size = |text: &Duplicate| text.repeated_tokens;
            size(&b.1).cmp(&size(&a.1)).then_with(|| a.0.cmp(&b.0))
        });
        texts.into_iter().map(|(_, text)| text).collect()
    }
}

/// How many texts, and of each how many blocks, are listed.
const TEXTS: usize = 20;
const BLOCKS: usize = 5;

/// The length of the beginning of a text.
const BEGINNING: usize = 60;

fn one(report: &DuplicateReport, snapshot: &SnapshotDuplicates, paint: Paint, out: &mut String) {
    let (place, tokens) = (&snapshot.label, amount(snapshot.repeated_tokens));
    let texts = counted(snapshot.texts.len() as u64, "text");
    let tokenizer = report.tokenizer;
    let title =
        format!("{place}: {texts} sent more than once, {tokens} tokens repeated ({tokenizer})");
    let _ = writeln!(out, "{}", paint.tint(Tint::Place, &title));
    for text in snapshot.texts.iter().take(TEXTS) {
        entry(text, paint, out);
    }
    if let Some(more @ 1..) = snapshot.texts.len().checked_sub(TEXTS) {
        let _ = writeln!(out, "and {more} more");
    }
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
    let more = match copies.checked_sub(BLOCKS) {
        Some(more @ 1..) => format!(" and {more} more"),
        _ => String::new(),
    };
    let _ = writeln!(out, "  {}{more}", ids.join(" "));
}

fn range(report: &DuplicateReport, paint: Paint, out: &mut String) {
    let mut table = Table::new(["snapshot", report.tokenizer.name(), "texts", "blocks"]);
    for snapshot in &report.snapshots {
        let blocks = snapshot
            .texts
            .iter()
            .map(|text| text.blocks.len())
            .sum::<usize>();
        let cells = [
            snapshot.repeated_tokens,
            snapshot.texts.len() as u64,
            blocks as u64,
        ];
        let cells = cells.map(amount);
        table.add_bar(snapshot.label.clone(), cells, snapshot.repeated_tokens);
    }
    out.push_str(&table.text(paint));
}
