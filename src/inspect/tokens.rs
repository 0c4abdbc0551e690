//! How many tokens a session's requests have, and in which groups (INSPECT §4).

use super::call::{Call, cycle_of, is_reply};
use super::counts::{Counts, Totals};
use super::groups::{By, Group, Groups};
use super::part::{Chosen, Region};
use super::prices::{Money, Prices};
use super::report::{RECONSTRUCTED, Report, ReportOptions, no_price};
use super::tokenizer::Tokenizer;
use crate::engine::Engine;
use crate::history::Session;
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::support::table::{Paint, Table, Tint};
use crate::support::text::{amount, counted, printable};
use serde::Serialize;
use std::fmt::Write as _;

/// The sizes of a session's snapshots, in groups.
///
/// What is counted of a block is what rendering sends for it: see
/// [`Wording`](crate::render::Wording). The overhead of a provider's form is not guessed. Each distinct
/// text is counted once; a snapshot costs its units.
///
/// ```
/// use pactql::inspect::{By, Part, Report, ReportOptions, TokenReport};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let options = ReportOptions::new(Part::default().at("@t0")).by(By::Role);
/// let report = TokenReport::of(&Engine::new(), &session, &options)?;
/// let newest = &report.snapshots[0];
/// let sum: u64 = newest.groups.iter().map(|group| group.totals.tokens).sum();
/// assert_eq!(sum, newest.totals.tokens);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// What a call cost by the provider's counts, if the report is of the whole request and they are known, or
    /// else by ours of request and reply.
    pub(super) fn of(
        prices: &Prices,
        call: &Call,
        (request, reply): (u64, u64),
        whole: bool,
    ) -> Option<Self> {
        let price = prices.find(call.model.as_deref()?)?;
        let known = price.of_call(call).filter(|_| whole);
        let ours = || price.of_input(request) + price.of_output(reply);
        Some(Self {
            nano_dollars: known.unwrap_or_else(ours),
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

impl Report for TokenReport {
    type Line = Self;

    fn of(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let (chosen, mut counts) = options.read(engine, session)?;
        let mut groups = Groups::new(options.by);
        let snapshots = chosen.iter().inspect(|_| ensure());
        let snapshots = snapshots.map(|chosen| {
            let groups = groups.add_up(chosen, &mut counts);
            let totals: Totals = groups.iter().map(|group| group.totals).sum();
            let reply = reply(chosen, &mut counts);
            let call = Call::of(&chosen.snapshot);
            let counted = (totals.tokens.saturating_sub(reply.tokens), reply.tokens);
            SnapshotTokens {
                cost: Cost::of(&options.prices, &call, counted, chosen.rows.is_none()),
                label: chosen.at.to_string(),
                cycle: chosen.snapshot.cycle(),
                totals,
                reply,
                groups,
                call,
            }
        });
        Ok(Self {
            snapshots: snapshots.collect(),
            tokenizer: counts.tokenizer(),
            by: options.by,
            distinct: counts.distinct(),
            prices: options.prices.date().to_owned(),
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

/// The sizes of the reply, whose blocks are in the last unit of `^seq`.
fn reply(chosen: &Chosen, counts: &mut Counts) -> Totals {
    let snapshot = &chosen.snapshot;
    let cycle = cycle_of(snapshot).to_string();
    let last = snapshot.last_of_seq().into_iter();
    let nodes = last.flat_map(|top| snapshot.nodes_in(top.row()..snapshot.end(top.row())));
    let nodes = nodes.filter(|node| is_reply(*node, &cycle) && chosen.has(*node));
    let blocks = nodes.filter_map(|node| Some((node, Region::of(node)?)));
    blocks
        .map(|(node, region)| counts.node(node, region == Region::Sys))
        .sum()
}

/// How many groups a line of a range shows.
const COLUMNS: usize = 5;

/// The figures of one snapshot and its groups.
fn one(report: &TokenReport, snapshot: &SnapshotTokens, paint: Paint, out: &mut String) {
    let place = paint.tint(Tint::Place, &snapshot.label);
    let _ = writeln!(
        out,
        "{place}: {}",
        totals(snapshot.totals, report.tokenizer)
    );
    if snapshot.reply.blocks > 0 {
        let reply = amount(snapshot.reply.tokens);
        let request = amount(snapshot.totals.tokens.saturating_sub(snapshot.reply.tokens));
        let _ = writeln!(out, "of them the request {request}, the reply {reply}");
    }
    let provided = provided(&snapshot.call);
    if !provided.is_empty() {
        let _ = writeln!(out, "the provider counted {provided}");
    }
    match &snapshot.cost {
        Some(cost) => {
            let how = if cost.estimate {
                ", from the tokens counted here"
            } else {
                ""
            };
            let (money, date) = (cost.nano_dollars, &report.prices);
            let _ = writeln!(out, "cost {money} at the prices of {date}{how}");
        }
        None => out.push_str(&no_price(snapshot.call.model.as_deref(), &report.prices)),
    }
    if snapshot.call.reconstructed {
        out.push_str(RECONSTRUCTED);
    }
    let table = size_table(report.by.name(), report.tokenizer, &snapshot.groups);
    out.push_str(&table.text(paint));
}

/// The sizes of groups as a table.
pub(super) fn size_table(by: &str, tokenizer: Tokenizer, groups: &[Group]) -> Table {
    let mut table = Table::new([by, tokenizer.name(), "bytes", "blocks"]);
    for group in groups {
        let totals = group.totals;
        let cells = [totals.tokens, totals.bytes, totals.blocks].map(amount);
        table.add_bar(name_of(group.name.as_deref()), cells, totals.tokens);
    }
    table
}

/// A number of tokens in words.
fn totals(totals: Totals, tokenizer: Tokenizer) -> String {
    let estimate = if tokenizer.is_estimate() {
        ", an estimate"
    } else {
        ""
    };
    let mut text = format!(
        "{} tokens ({tokenizer}{estimate}) in {}, {} bytes",
        amount(totals.tokens),
        match totals.blocks {
            1 => "1 block".to_owned(),
            more => format!("{} blocks", amount(more)),
        },
        amount(totals.bytes),
    );
    if totals.media > 0 {
        let media = match totals.media {
            1 => "1 image or document is".to_owned(),
            more => format!("{more} images or documents are"),
        };
        let _ = write!(text, "; {media} not counted");
    }
    text
}

/// What the provider counted, in words.
fn provided(call: &Call) -> String {
    let parts = [
        (call.input_tokens, "in"),
        (call.cached_tokens, "of them cached"),
        (call.cache_write_tokens, "written to the cache"),
        (call.output_tokens, "out"),
    ];
    let parts = parts.into_iter();
    let parts = parts.filter_map(|(count, what)| Some(format!("{} {what}", amount(count?))));
    parts.collect::<Vec<_>>().join(", ")
}

/// The name of a group as it is printed.
fn name_of(name: Option<&str>) -> String {
    name.map_or("(none)".to_owned(), printable)
}

/// One line a snapshot, with its largest groups.
fn range(report: &TokenReport, paint: Paint, out: &mut String) {
    // The largest groups of the snapshot that has most of each.
    let mut largest: Vec<(u64, &Option<String>)> = Vec::new();
    for group in report.snapshots.iter().flat_map(|each| &each.groups) {
        let tokens = group.totals.tokens;
        match largest.iter_mut().find(|(_, name)| *name == &group.name) {
            Some((most, _)) => *most = tokens.max(*most),
            None => largest.push((tokens, &group.name)),
        }
    }
    largest.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let others = largest.len() > COLUMNS;
    largest.truncate(COLUMNS);
    let mut header = vec!["snapshot".to_owned(), report.tokenizer.name().to_owned()];
    header.extend(largest.iter().map(|(_, group)| name_of(group.as_deref())));
    if others {
        header.push("others".to_owned());
    }
    let usage = report
        .snapshots
        .iter()
        .any(|each| each.call.input_tokens.is_some());
    if usage {
        header.push("provider in".to_owned());
    }
    let priced = report.snapshots.iter().any(|each| each.cost.is_some());
    if priced {
        header.push("cost".to_owned());
    }
    let mut table = Table::new(header);
    for snapshot in &report.snapshots {
        let mut cells = vec![amount(snapshot.totals.tokens)];
        let mut rest = snapshot.totals.tokens;
        for (_, name) in &largest {
            let group = snapshot.groups.iter().find(|group| &group.name == *name);
            let tokens = group.map_or(0, |group| group.totals.tokens);
            rest -= tokens;
            cells.push(group.map(|_| amount(tokens)).unwrap_or_default());
        }
        if others {
            cells.push(amount(rest));
        }
        if usage {
            let input = snapshot.call.input_tokens;
            cells.push(input.map(amount).unwrap_or_default());
        }
        if priced {
            let cost = snapshot.cost.map(|cost| cost.nano_dollars.to_string());
            cells.push(cost.unwrap_or_default());
        }
        table.add_bar(snapshot.label.clone(), cells, snapshot.totals.tokens);
    }
    out.push_str(&table.text(paint));
    let distinct = totals(report.distinct, report.tokenizer);
    let _ = writeln!(out, "each text once: {distinct}");
    cost_of_all(report, out);
    if report.snapshots.iter().any(|each| each.call.reconstructed) {
        out.push_str(RECONSTRUCTED);
    }
}

/// What the calls of all snapshots cost, or why that is not known.
fn cost_of_all(report: &TokenReport, out: &mut String) {
    let costs = || report.snapshots.iter().filter_map(|each| each.cost);
    let money: Money = costs().map(|cost| cost.nano_dollars).sum();
    let estimates = costs().filter(|cost| cost.estimate).count();
    let unpriced = report.snapshots.iter().filter(|each| each.cost.is_none());
    if costs().next().is_some() {
        let _ = write!(out, "cost {money} at the prices of {}", report.prices);
        if estimates > 0 {
            let _ = write!(
                out,
                ", {} from the tokens counted here",
                counted(estimates as u64, "call")
            );
        }
        out.push('\n');
    }
    let mut models: Vec<Option<&str>> = unpriced.map(|each| each.call.model.as_deref()).collect();
    models.sort_unstable();
    models.dedup();
    for model in models {
        out.push_str(&no_price(model, &report.prices));
    }
}
