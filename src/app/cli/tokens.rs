//! `pactql tokens`: how many tokens the requests of sessions have, and in which groups.

use super::bars::{Bars, amount};
use super::command::{Run, print};
use super::inspected::{Inspected, Opened, PriceArgs, no_price};
use super::options::{Color, Paint, TextFirst, Tint};
use super::output::printable;
use crate::app::present::{Exit, Failure, answer, counted};
use crate::engine::Engine;
use crate::inspect::{
    By, Call, Group, Money, SnapshotTokens, TokenOptions, TokenReport, Tokenizer, Totals, tokens,
};
use clap::Args;
use serde::Serialize;
use std::fmt::Write as _;

/// What is said of a session that was imported from a transcript.
pub(super) const RECONSTRUCTED: &str =
    "reconstructed from a transcript, which does not say exactly what was sent\n";

/// How many groups a line of a range shows.
const COLUMNS: usize = 5;

/// Count the tokens of sessions, in groups.
///
/// What is counted of a block is the text that rendering sends for it: of a call the name and the
/// arguments, of a tool its definition. What a provider's form adds around it is not guessed. Images are
/// not counted, and their number is given. What the provider counted stands beside it, if the session says so.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql tokens session.jsonl
  pactql tokens session.jsonl --at @t-3 --by kind
  pactql tokens session.jsonl --over @history --by role
  pactql tokens session.jsonl --by tool --where \".cb[kind='result']\"
  pactql tokens \"agents.db#support-*\" --since 2026-01-01 --meta model=gpt-4o --format json")]
pub(super) struct Tokens {
    #[command(flatten)]
    inspected: Inspected,
    /// What the blocks are grouped by: region, role, kind, turn, tool or key.
    #[arg(long, value_name = "GROUP", default_value = "region", value_parser = by)]
    by: By,
    /// How tokens are counted: o200k, cl100k or bytes/4 [default: the one that fits the model of the
    /// request].
    #[arg(long, value_name = "NAME", value_parser = tokenizer)]
    tokenizer: Option<Tokenizer>,
    #[command(flatten)]
    prices: PriceArgs,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
}

/// Reads the name of a group.
fn by(name: &str) -> Result<By, String> {
    name.parse().map_err(|_| {
        let names = By::ALL.map(By::name).join(", ");
        format!("expected one of {names}")
    })
}

/// Reads the name of a tokenizer.
pub(super) fn tokenizer(name: &str) -> Result<Tokenizer, String> {
    name.parse().map_err(|_| {
        let names: Vec<&str> = Tokenizer::ALL.iter().map(|known| known.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// A report with the session it is about.
#[derive(Serialize)]
struct Labelled<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(flatten)]
    report: &'a T,
}

/// Appends a report as a line of JSON, with its session if there may be several.
///
/// # Errors
/// None that input can cause.
pub(super) fn append_json(
    opened: &Opened,
    report: &impl Serialize,
    out: &mut String,
) -> Result<(), Failure> {
    let session = opened.label();
    out.push_str(&answer::json(&Labelled { session, report })?);
    out.push('\n');
    Ok(())
}

impl Run for Tokens {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let engine = Engine::new();
        let part = self.inspected.part();
        let options = TokenOptions::by(self.by)
            .tokenizer(self.tokenizer)
            .prices(self.prices.table()?);
        let paint = color.for_results();
        let mut out = String::new();
        self.inspected.each(|opened| {
            let report = tokens(&engine, &opened.session, &part, &options)
                .map_err(|error| opened.failure(error))?;
            if self.format == TextFirst::Json {
                return append_json(opened, &report, &mut out);
            }
            opened.title(paint, &mut out);
            match &report.snapshots[..] {
                [only] if !self.inspected.is_range() => one(&report, only, paint, &mut out),
                _ => range(&report, paint, &mut out),
            }
            Ok(())
        })?;
        print(&out)
    }
}

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
    let mut bars = Bars::new([report.by.name(), report.tokenizer.name(), "bytes", "blocks"]);
    for group in &snapshot.groups {
        let totals = group.totals;
        let cells = [totals.tokens, totals.bytes, totals.blocks].map(amount);
        bars.add(name_of(group), cells, totals.tokens);
    }
    out.push_str(&bars.text(paint));
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
pub(super) fn name_of(group: &Group) -> String {
    group.name.as_deref().map_or("(none)".to_owned(), printable)
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
    let name = |name: &Option<String>| name.as_deref().map_or("(none)".to_owned(), printable);
    let mut header = vec!["snapshot".to_owned(), report.tokenizer.name().to_owned()];
    header.extend(largest.iter().map(|(_, group)| name(group)));
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
    let mut bars = Bars::new(header);
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
        bars.add(snapshot.label.clone(), cells, snapshot.totals.tokens);
    }
    out.push_str(&bars.text(paint));
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
