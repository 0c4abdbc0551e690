//! `pactql prefix`: what a prompt cache can reuse, and what broke it.

use super::command::{Run, print};
use super::inspected::{Inspected, PriceArgs};
use super::options::{Color, Paint, TextFirst, Tint};
use super::output::{counted, verbatim};
use super::render::Shape;
use super::tokens::{append_json, tokenizer};
use crate::app::present::{Exit, Failure};
use crate::engine::Engine;
use crate::inspect::{Money, PrefixOptions, PrefixStep, Prefixes, Tokenizer, prefixes};
use clap::Args;
use std::fmt::Write as _;

/// Show how much of each request a prompt cache can reuse, and what broke it.
///
/// Neighbouring requests are compared as the bytes that the provider is sent, in the order in which it
/// caches them: the model, tools, parameters that the model reads, the system prompt, messages. Where a
/// request is not the one before with more at its end, the first byte that differs is shown with its
/// block, the cause and what would keep the prefix.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql prefix session.jsonl
  pactql prefix session.jsonl --all
  pactql prefix session.jsonl --over @t-9..@t0 --as anthropic
  pactql prefix \"agents.db#support-*\" --since 2026-01-01
  pactql prefix session.jsonl --where \"^sys .cb\" --format json")]
pub(super) struct Prefix {
    #[command(flatten)]
    inspected: Inspected,
    /// The form of the requests [default: that in which they were imported or sent].
    #[arg(long = "as", value_enum, value_name = "SHAPE")]
    shape: Option<Shape>,
    /// List every request, also those that break nothing.
    #[arg(long)]
    all: bool,
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

impl Run for Prefix {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let engine = Engine::new();
        let part = self.inspected.part();
        let options = PrefixOptions::default()
            .provider(self.shape.map(Shape::provider))
            .tokenizer(self.tokenizer)
            .prices(self.prices.table()?);
        let paint = color.for_results();
        let mut out = String::new();
        self.inspected.each(|opened| {
            let found = prefixes(&engine, &opened.session, &part, &options)
                .map_err(|error| opened.failure(error))?;
            if self.format == TextFirst::Json {
                return append_json(opened, &found, &mut out);
            }
            opened.title(paint, &mut out);
            text(&found, self.all, paint, &mut out);
            Ok(())
        })?;
        print(&out)
    }
}

/// The sums, then the requests that break the prefix, or all.
fn text(found: &Prefixes, all: bool, paint: Paint, out: &mut String) {
    let later = || found.steps.iter().filter(|step| step.before.is_some());
    let breaks = later().filter(|step| step.difference.is_some()).count();
    let sum = |of: fn(&PrefixStep) -> u64| later().map(of).sum::<u64>();
    let (bytes, shared) = (sum(|step| step.bytes), sum(|step| step.shared_bytes));
    let (tokens, shared_tokens) = (sum(|step| step.tokens), sum(|step| step.shared_tokens));
    let _ = writeln!(
        out,
        "{} to {}, {}",
        counted(found.steps.len() as u64, "request"),
        found.provider,
        counted(breaks as u64, "break")
    );
    if found.reconstructed {
        let _ = writeln!(
            out,
            "reconstructed: the log is a transcript and does not say exactly what was sent"
        );
    }
    let _ = writeln!(
        out,
        "a cache can read {} of {bytes} bytes after the first request, {shared_tokens} of {tokens} tokens ({}), {}",
        shared,
        found.tokenizer,
        percent(shared, bytes)
    );
    let cached =
        later().filter_map(|step| Some((step.call.cached_tokens?, step.call.input_tokens?)));
    let (read, input) = cached.fold((0_u64, 0_u64), |(a, b), (read, input)| {
        (a.saturating_add(read), b.saturating_add(input))
    });
    if input > 0 {
        let _ = writeln!(
            out,
            "the provider read {read} of {input} tokens from its cache, {}",
            percent(read, input)
        );
    }
    let missed: Vec<Money> = later()
        .filter_map(|step| step.missed_nano_dollars)
        .collect();
    if !missed.is_empty() {
        let sum: Money = missed.into_iter().sum();
        let _ = writeln!(
            out,
            "the breaks cost {sum} more at the prices of {}",
            found.prices
        );
    }
    for step in later() {
        if all || step.difference.is_some() {
            line(step, paint, out);
        }
    }
}

/// A share in percent with one digit after the point, rounded down.
fn percent(part: u64, whole: u64) -> String {
    let tenths = match whole {
        0 => 1000,
        whole => u128::from(part) * 1000 / u128::from(whole),
    };
    format!("{}.{} %", tenths / 10, tenths % 10)
}

fn line(step: &PrefixStep, paint: Paint, out: &mut String) {
    let pair = format!(
        "@c{} after @c{}",
        step.cycle,
        step.before.unwrap_or_default()
    );
    let cached = step.call.cached_tokens;
    let cached = cached.map_or(String::new(), |cached| format!(", provider read {cached}"));
    let _ = writeln!(
        out,
        "{}{}: {} % kept, {} of {} bytes, {} of {} tokens{cached}",
        if step.difference.is_some() { "\n" } else { "" },
        paint.tint(Tint::Place, &pair),
        step.reused_percent(),
        step.shared_bytes,
        step.bytes_before,
        step.shared_tokens,
        step.tokens_before,
    );
    let Some(difference) = &step.difference else {
        return;
    };
    let block = difference
        .block
        .as_deref()
        .map_or(String::new(), |id| format!(", block {}", verbatim(id)));
    let _ = writeln!(
        out,
        "  {}",
        paint.tint(Tint::Name, &verbatim(&difference.cause.text()))
    );
    let _ = writeln!(
        out,
        "  at byte {}, in {}{block}",
        difference.at,
        verbatim(&difference.place.to_string())
    );
    for (sign, tint, text) in [
        ("-", Tint::Removed, &difference.older),
        ("+", Tint::Added, &difference.newer),
    ] {
        if !text.is_empty() {
            let _ = writeln!(
                out,
                "    {}",
                paint.tint(tint, &format!("{sign} {}", verbatim(text)))
            );
        }
    }
    if let Some(cost) = step.missed_nano_dollars {
        let _ = writeln!(
            out,
            "  {} tokens were read again, for {cost} more",
            step.missed_tokens()
        );
    }
    let _ = writeln!(out, "  to keep it: {}", difference.mend);
}
