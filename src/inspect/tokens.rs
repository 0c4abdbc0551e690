//! How many tokens a session's requests have, and in which groups (INSPECT §4).

use super::call::{Call, cycle_of, is_reply};
use super::groups::{By, Counts, Group, Groups, Totals};
use super::part::{ChosenSnapshot, Region};
use super::prices::{Money, Prices};
use super::report::{Report, ReportOptions, no_price, place};
use super::sent::{Sent, scaled};
use super::tokenizer::Tokenizer;
use super::usage::{CountedHere, Response, Usage, Used, uncounted};
use crate::engine::Engine;
use crate::history::Session;
use crate::index::NodeRef;
use crate::support::diag::Error;
use crate::support::table::{Paint, TextTable, Tint};
use crate::support::text::{amount, counted, printable};
use serde::Serialize;
use std::collections::BTreeSet;
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
/// let report = TokenReport::new(&Engine::new(), &session, &options)?;
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
    /// All calls of the session, by the provider's counts: what [`Usage`] sums.
    pub session: Used,
    /// What was counted here of the calls of which the provider's counts are not known.
    #[serde(skip_serializing_if = "CountedHere::is_empty")]
    pub counted_here: CountedHere,
    /// The snapshots, oldest first.
    pub snapshots: Vec<SnapshotTokens>,
    /// All texts of these snapshots, each distinct one once.
    pub distinct: Totals,
    /// The day of the prices.
    pub prices: String,
    /// Whether it is of some blocks only.
    #[serde(skip)]
    is_part: bool,
    /// The calls of the session, each with what its response is known by.
    #[serde(skip)]
    calls: Vec<(Option<Response>, Used, CountedHere)>,
}

/// What a call cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cost {
    /// In nano-dollars.
    pub nano_dollars: Money,
    /// Whether it is worked out from tokens that were counted here: the provider's count is not known, or the
    /// report is of a part of the request.
    pub estimate: bool,
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
    /// What the call cost, or its share for the blocks that the report is about; `None` if no call was made, or the
    /// model has no known price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl TokenReport {
    /// Adds all calls of the session to what others used, in a group by its name, and what was counted here beside that.
    pub fn add_to(&self, usage: &mut Usage, name: &str) {
        usage.add_calls(name, &self.calls);
    }
}

impl Report for TokenReport {
    fn new(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let history = session.history();
        history.fetch_all()?;
        let mut groups = Groups::new(options.by);
        let (snapshots, mut counts) = options.each(engine, &history, |chosen, counts| {
            let groups = groups.add_up(chosen, counts);
            let totals: Totals = groups.iter().map(|group| group.totals).sum();
            let call = options.prices.call(&history, &chosen.snapshot);
            Ok(SnapshotTokens {
                reply: reply(chosen, counts),
                cost: cost(chosen, &call, &options.prices, counts),
                label: chosen.at.to_string(),
                cycle: chosen.snapshot.cycle(),
                totals,
                groups,
                call,
            })
        })?;
        let distinct = counts.distinct();
        let (mut all, mut all_here) = (Used::default(), CountedHere::default());
        let mut calls = Vec::new();
        for snapshot in history.committed() {
            let (mut used, mut here) = (Used::default(), CountedHere::default());
            let call = options.prices.call(&history, snapshot);
            used.add(&call, &options.prices, uncounted);
            here.add(&call, &options.prices, || {
                let sent = Sent::from_snapshot(snapshot, &mut counts);
                (sent.request, sent.reply)
            });
            if used.requests + used.unanswered > 0 {
                all.include(&used);
                all_here.include(&here);
                calls.push((Response::new(&**snapshot), used, here));
            }
        }
        Ok(Self {
            snapshots,
            session: all,
            counted_here: all_here,
            calls,
            is_part: options.part.selector.is_some(),
            tokenizer: counts.tokenizer(),
            by: options.by,
            distinct,
            prices: options.prices.date().to_owned(),
        })
    }

    fn is_reconstructed(&self) -> bool {
        self.snapshots.iter().any(|each| each.call.reconstructed)
    }

    /// The session as a whole, then the snapshots.
    fn text(&self, options: &ReportOptions, paint: Paint) -> String {
        let whole = match self.session.requests {
            0 => String::new(),
            _ => {
                let line = self.session.line(&self.counted_here, &self.prices);
                format!("session: {line}\n")
            }
        };
        let rest = match options.only(&self.snapshots) {
            Some(only) => one(self, only, paint),
            None => range(self, paint),
        };
        whole + &rest
    }
}

/// What a call cost, or the share of some of its blocks: the provider reads the beginning of a request from its
/// cache, and writes what comes next to it.
fn cost(
    chosen: &ChosenSnapshot,
    call: &Call,
    prices: &Prices,
    counts: &mut Counts,
) -> Option<Cost> {
    let price = prices.find(call.model.as_deref()?).filter(|_| call.made)?;
    if chosen.rows.is_none()
        && call.output_tokens.is_some()
        && let Some(money) = price.of_call(call)
    {
        return Some(Cost {
            nano_dollars: money,
            estimate: false,
        });
    }
    let sent = Sent::from_snapshot(&chosen.snapshot, counts);
    let chosen_of = |blocks: &[(NodeRef<'_>, u64)]| {
        let blocks = blocks.iter().filter(|(node, _)| chosen.has(*node));
        blocks.map(|(_, tokens)| tokens).sum::<u64>()
    };
    let replied = chosen_of(&sent.replied);
    let Some(input) = call.input_tokens else {
        return Some(Cost {
            nano_dollars: price.of_input(chosen_of(&sent.blocks)) + price.of_output(replied),
            estimate: true,
        });
    };
    // Where each block would end, if the tokens were those that the provider counted.
    let cached = call.cached_tokens.unwrap_or(0);
    let written = cached.saturating_add(call.cache_write_tokens.unwrap_or(0));
    let mut part = Call {
        input_tokens: Some(0),
        cached_tokens: Some(0),
        cache_write_tokens: Some(0),
        ..call.clone()
    };
    let mut before = 0;
    for (node, tokens) in &sent.blocks {
        let [start, end] = [before, before + tokens].map(|at| scaled(at, sent.request, input));
        before += tokens;
        if chosen.has(*node) {
            let up_to = |end_of: u64| end.min(end_of) - start.min(end_of);
            for (sum, more) in [
                (&mut part.input_tokens, end - start),
                (&mut part.cached_tokens, up_to(cached)),
                (&mut part.cache_write_tokens, up_to(written) - up_to(cached)),
            ] {
                *sum = sum.map(|sum| sum + more);
            }
        }
    }
    let output = call.output_tokens.unwrap_or(sent.reply);
    part.output_tokens = Some(scaled(replied, sent.reply, output));
    Some(Cost {
        nano_dollars: price.of_call(&part)?,
        estimate: true,
    })
}

/// The sizes of the reply, whose blocks are in the last unit of `^seq`.
fn reply(chosen: &ChosenSnapshot, counts: &mut Counts) -> Totals {
    let snapshot = &chosen.snapshot;
    let cycle = cycle_of(snapshot).to_string();
    let last = snapshot.last_of_seq().into_iter();
    let nodes = last.flat_map(|top| snapshot.nodes_in(top.row()..snapshot.end(top.row())));
    let nodes = nodes.filter(|node| is_reply(*node, &cycle) && chosen.has(*node));
    let blocks = nodes.filter_map(|node| Some((node, Region::containing(node)?)));
    blocks
        .map(|(node, region)| counts.node(node, region == Region::Sys))
        .sum()
}

const COLUMNS: usize = 5;

fn one(report: &TokenReport, snapshot: &SnapshotTokens, paint: Paint) -> String {
    let mut out = String::new();
    let (all, reply, call) = (snapshot.totals, snapshot.reply, &snapshot.call);
    let place = paint.tint(Tint::Place, &snapshot.label);
    let _ = writeln!(out, "{place}: {}", totals(all, report.tokenizer));
    if reply.blocks > 0 {
        let request = amount(all.tokens.saturating_sub(reply.tokens));
        let reply = amount(reply.tokens);
        let _ = writeln!(out, "of them the request {request}, the reply {reply}");
    }
    let provided = provided(call);
    if !provided.is_empty() {
        let _ = writeln!(out, "the provider counted {provided}");
    }
    match &snapshot.cost {
        Some(cost) => {
            let what = if report.is_part {
                "part of this"
            } else {
                "this"
            };
            let (money, date) = (cost.nano_dollars, &report.prices);
            let _ = write!(out, "{what} request: {money} at the prices of {date}");
            if cost.estimate {
                out.push_str(", from the tokens counted here");
            }
            out.push('\n');
        }
        None if !call.made => out.push_str("no cost: no call was made\n"),
        None => out.push_str(&no_price([call.model.as_deref()], &report.prices)),
    }
    let by = report.by.as_str();
    out + &size_table(by, report.tokenizer, &snapshot.groups, paint)
}

pub(super) fn size_table(by: &str, tokenizer: Tokenizer, groups: &[Group], paint: Paint) -> String {
    let mut table = TextTable::new([by, tokenizer.name(), "bytes", "blocks"]);
    for group in groups {
        let totals = group.totals;
        let cells = [totals.tokens, totals.bytes, totals.blocks].map(amount);
        table.add_bar(name_of(group.name.as_deref()), cells, totals.tokens);
    }
    table.text(paint)
}

fn totals(totals: Totals, tokenizer: Tokenizer) -> String {
    let estimate = if tokenizer.is_estimate() {
        ", an estimate"
    } else {
        ""
    };
    let blocks = match totals.blocks {
        1 => "1 block".to_owned(),
        more => format!("{} blocks", amount(more)),
    };
    let (tokens, bytes) = (amount(totals.tokens), amount(totals.bytes));
    let media = match totals.media {
        0 => String::new(),
        1 => "; 1 image or document is not counted".to_owned(),
        more => format!("; {more} images or documents are not counted"),
    };
    format!("{tokens} tokens ({tokenizer}{estimate}) in {blocks}, {bytes} bytes{media}")
}

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

fn name_of(name: Option<&str>) -> String {
    name.map_or("(none)".to_owned(), printable)
}

fn range(report: &TokenReport, paint: Paint) -> String {
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
    header.extend(["others", "provider in", "cost"].map(str::to_owned));
    let mut table = TextTable::new(header);
    for snapshot in &report.snapshots {
        let mut cells = vec![amount(snapshot.totals.tokens)];
        let mut rest = snapshot.totals.tokens;
        for (_, name) in &largest {
            let group = snapshot.groups.iter().find(|group| &group.name == *name);
            let tokens = group.map_or(0, |group| group.totals.tokens);
            rest -= tokens;
            cells.push(group.map(|_| amount(tokens)).unwrap_or_default());
        }
        let cost = snapshot.cost.map(|cost| cost.nano_dollars.to_string());
        let last = [
            others.then(|| amount(rest)),
            snapshot.call.input_tokens.map(amount),
            cost,
        ];
        cells.extend(last.map(Option::unwrap_or_default));
        table.add_bar(
            place(&snapshot.label, snapshot.cycle),
            cells,
            snapshot.totals.tokens,
        );
    }
    let mut out = table.hide_empty().text(paint);
    let distinct = totals(report.distinct, report.tokenizer);
    let _ = writeln!(out, "each text once: {distinct}");
    cost_of_all(report, &mut out);
    out
}

/// What the calls of all snapshots cost, or why that is not known.
fn cost_of_all(report: &TokenReport, out: &mut String) {
    let costs = || report.snapshots.iter().filter_map(|each| each.cost);
    let money: Money = costs().map(|cost| cost.nano_dollars).sum();
    let estimates = costs().filter(|cost| cost.estimate).count();
    let unpriced = report.snapshots.iter();
    let unpriced = unpriced.filter(|each| each.call.made && each.cost.is_none());
    if costs().next().is_some() {
        let requests = counted(costs().count() as u64, "request");
        let what = if report.is_part { "part of " } else { "" };
        let date = &report.prices;
        let _ = write!(out, "{what}{requests}: {money} at the prices of {date}");
        if estimates > 0 {
            let calls = counted(estimates as u64, "call");
            let _ = write!(out, ", {calls} from the tokens counted here");
        }
        out.push('\n');
    }
    let models: BTreeSet<Option<&str>> = unpriced.map(|each| each.call.model.as_deref()).collect();
    out.push_str(&no_price(models, &report.prices));
}
