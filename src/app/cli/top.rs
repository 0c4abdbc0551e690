//! `pactql top`: what a selector matches, in groups.

use super::bars::{Bars, amount};
use super::command::{Run, print};
use super::inspected::{Choice, Opened};
use super::operands;
use super::options::{Color, Limits, TextFirst};
use super::output;
use super::tokens::{name_of, tokenizer};
use crate::app::present::{Exit, Failure, counted};
use crate::engine::Engine;
use crate::inspect::{By, Call, Part, Tokenizer, Top};
use crate::support::diag::Error;
use clap::Args;
use std::fmt::Write as _;

/// Add up the blocks that a selector matches, in groups, over any number of sessions.
///
/// A node that is not a block means the blocks in it. With --over, a block counts in each snapshot that
/// has it, so the sums are what was sent in all requests.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql top session.jsonl \".cb[kind='result']\" --by tool
  pactql top session.jsonl \"^seq .mt:depth(1-5)\" --by turn
  pactql top session.jsonl \".cb\" --over @history --by role
  pactql top agents.db \".cb[kind='call']\" --by session --since 2026-01-01")]
pub(super) struct TopCommand {
    /// Sessions: files, directories, stores and their sessions, or `-` for standard input. The last
    /// argument is the selector, which takes no time.
    #[arg(value_name = "SESSION", required = true)]
    inputs: Vec<String>,
    /// What the blocks are grouped by: session, or region, role, kind, turn, tool or key.
    #[arg(long, value_name = "GROUP", default_value = "role", value_parser = by)]
    by: Grouped,
    /// One snapshot, such as @t0, @t-2 or @c12 [default: the working state, or else the newest].
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    at: Option<String>,
    /// A range of snapshots, such as @history or @t-9..@t0.
    #[arg(
        long,
        value_name = "RANGE",
        allow_hyphen_values = true,
        conflicts_with = "at"
    )]
    over: Option<String>,
    /// How tokens are counted: o200k, cl100k or bytes/4 [default: the one that fits the model of the first
    /// session].
    #[arg(long, value_name = "NAME", value_parser = tokenizer)]
    tokenizer: Option<Tokenizer>,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    limits: Limits,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
}

/// What blocks are grouped by; by session, if `None`.
#[derive(Clone, Copy, Debug)]
struct Grouped(Option<By>);

fn by(name: &str) -> Result<Grouped, String> {
    if name == "session" {
        return Ok(Grouped(None));
    }
    let named = name.parse().map(|by| Grouped(Some(by)));
    named.map_err(|_| {
        let names = By::ALL.map(By::name).join(", ");
        format!("expected one of session, {names}")
    })
}

impl Run for TopCommand {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let (names, selector) = operands::split_last("top", &self.inputs)?;
        let engine = Engine::new();
        // An invalid selector is reported before anything is read.
        engine.prepare_timeless(selector)?;
        let part = super::inspected::part(
            Part::default(),
            self.at.as_deref(),
            self.over.as_deref(),
            Some(selector),
        );
        let mut top: Option<Top> = None;
        self.choice.each(names, &self.limits, |opened| {
            let top = top.get_or_insert_with(|| {
                let fitting = || fitting(&engine, opened, &part);
                Top::new(self.by.0, self.tokenizer.unwrap_or_else(fitting))
            });
            let added = top.add(&engine, &opened.name, &opened.session, &part);
            added.map_err(|error: Error| opened.failure(error))
        })?;
        let top = top.unwrap_or_else(|| Top::new(self.by.0, self.tokenizer.unwrap_or_default()));
        if self.format == TextFirst::Json {
            return output::print_as(true, &top, String::new);
        }
        let mut out = String::new();
        let mut bars = Bars::new([
            self.by.0.map_or("session", By::name),
            top.tokenizer.name(),
            "bytes",
            "blocks",
        ]);
        for group in &top.groups {
            let totals = group.totals;
            let cells = [totals.tokens, totals.bytes, totals.blocks].map(amount);
            bars.add(name_of(group), cells, totals.tokens);
        }
        if top.groups.is_empty() {
            let sessions = counted(top.sessions, "session");
            let _ = writeln!(out, "no blocks in {sessions}");
        } else {
            out.push_str(&bars.text(color.for_results()))
        }
        print(&out)
    }
}

/// The tokenizer that fits the model of a session.
fn fitting(engine: &Engine, opened: &Opened, part: &Part) -> Tokenizer {
    let found = engine.snapshots(&opened.session.history(), part.time());
    let found = found.unwrap_or_default();
    let model = found
        .iter()
        .rev()
        .find_map(|(_, snapshot)| Call::of(snapshot).model);
    model.map_or(Tokenizer::default(), |model| Tokenizer::for_model(&model))
}
