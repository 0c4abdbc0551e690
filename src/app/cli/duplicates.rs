//! `pactql duplicates`: texts that one request sends more than once.

use super::bars::{Bars, amount};
use super::command::{Run, print};
use super::inspected::Inspected;
use super::options::{Color, Paint, TextFirst, Tint};
use super::output::clean;
use super::tokens::{append_json, tokenizer};
use crate::app::present::{Exit, Failure, counted};
use crate::engine::Engine;
use crate::inspect::{Duplicate, Duplicates, SnapshotDuplicates, Tokenizer, duplicates};
use clap::Args;
use std::fmt::Write as _;

/// How many texts, and of each how many blocks, are listed.
const TEXTS: usize = 20;
const BLOCKS: usize = 5;

/// The length of the beginning of a text.
const BEGINNING: usize = 60;

/// List the texts that one request has more than once, with their blocks.
///
/// Equal texts of blocks count, equal arguments of calls, and equal definitions of tools. With --over there
/// is one line a snapshot.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql duplicates session.jsonl
  pactql duplicates session.jsonl --at @t-3 --where \".cb[kind='result']\"
  pactql duplicates session.jsonl --over @history
  pactql duplicates \"agents.db#support-*\" --format json")]
pub(super) struct DuplicatesCommand {
    #[command(flatten)]
    inspected: Inspected,
    /// How tokens are counted: o200k, cl100k or bytes/4 [default: the one that fits the model of the
    /// request].
    #[arg(long, value_name = "NAME", value_parser = tokenizer)]
    tokenizer: Option<Tokenizer>,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
}

impl Run for DuplicatesCommand {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let engine = Engine::new();
        let part = self.inspected.part();
        let paint = color.for_results();
        let mut out = String::new();
        self.inspected.each(|opened| {
            let report = duplicates(&engine, &opened.session, &part, self.tokenizer)
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

fn one(report: &Duplicates, snapshot: &SnapshotDuplicates, paint: Paint, out: &mut String) {
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

fn range(report: &Duplicates, paint: Paint, out: &mut String) {
    let mut bars = Bars::new(["snapshot", report.tokenizer.name(), "texts", "blocks"]);
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
        bars.add(snapshot.label.clone(), cells, snapshot.repeated_tokens);
    }
    out.push_str(&bars.text(paint));
}
