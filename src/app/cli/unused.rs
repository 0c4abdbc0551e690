//! `pactql unused`: tools that the model was given and never called.

use super::bars::{Bars, amount};
use super::command::{Run, print};
use super::inspected::{Inspected, PriceArgs, no_price};
use super::options::{Color, Paint, TextFirst, Tint};
use super::output::printable;
use super::tokens::{append_json, tokenizer};
use crate::app::present::{Exit, Failure, counted};
use crate::engine::Engine;
use crate::inspect::{Tokenizer, Unused, unused};
use clap::Args;
use std::fmt::Write as _;

/// List the tools that sessions define and never call, with what it costs to send them.
///
/// All snapshots are read, unless --at or --over says which. A tool counts as called if a
/// block of these snapshots calls it. The cost is that of its tokens in all requests: without a cache, and
/// where all but the first request read them from one.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql unused session.jsonl
  pactql unused session.jsonl --over @t-9..@t0 --tokenizer bytes/4
  pactql unused agents.db --meta model=gpt-4o --format json")]
pub(super) struct UnusedCommand {
    #[command(flatten)]
    inspected: Inspected,
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

impl Run for UnusedCommand {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let engine = Engine::new();
        let prices = self.prices.table()?;
        let part = self.inspected.part_or_all();
        let paint = color.for_results();
        let mut out = String::new();
        self.inspected.each(|opened| {
            let report = unused(&engine, &opened.session, &part, self.tokenizer, &prices)
                .map_err(|error| opened.failure(error))?;
            if self.format == TextFirst::Json {
                return append_json(opened, &report, &mut out);
            }
            opened.title(paint, &mut out);
            text(&report, paint, &mut out);
            Ok(())
        })?;
        print(&out)
    }
}

fn text(report: &Unused, paint: Paint, out: &mut String) {
    let snapshots = counted(report.snapshots, "snapshot");
    let (count, defined) = (report.tools.len(), counted(report.defined, "tool"));
    let title = format!("{count} of {defined} never called in {snapshots}");
    let _ = writeln!(out, "{}", paint.tint(Tint::Place, &title));
    if report.tools.is_empty() {
        return;
    }
    let priced = report.tools.iter().all(|tool| tool.nano_dollars.is_some());
    let mut header = vec!["tool", report.tokenizer.name(), "requests", "sent"];
    if priced {
        header.extend(["cost", "cached"]);
    }
    let mut bars = Bars::new(header);
    for tool in &report.tools {
        let mut cells = [tool.tokens, tool.requests, tool.sent_tokens]
            .map(amount)
            .to_vec();
        if priced {
            let costs = [tool.nano_dollars, tool.cached_nano_dollars];
            cells.extend(costs.map(|cost| cost.unwrap_or_default().to_string()));
        }
        bars.add(printable(&tool.name), cells, tool.sent_tokens);
    }
    out.push_str(&bars.text(paint));
    if priced {
        let _ = writeln!(out, "at the prices of {}", report.prices);
    } else {
        out.push_str(&no_price(report.model.as_deref(), &report.prices));
    }
}
