//! `pactql steps`: one line for each cycle.

use super::command::Run;
use super::inspected::Inspected;
use super::options::{Color, Paint, TextFirst, Tint};
use super::output::{clean, printable, width_of};
use super::pager::page;
use super::render::Shape;
use super::show_text::time;
use super::tokens::{append_json, tokenizer};
use crate::app::present::{Exit, Failure};
use crate::engine::Engine;
use crate::inspect::{Step, StepEvent, Steps as Found, Tokenizer, steps};
use clap::Args;
use std::fmt::Write as _;

/// List the cycles of a session, oldest first: what was sent, what came back, what changed.
///
/// A line has the cycle, the time, the tokens of the request, those that the provider counted (of them
/// cached ones) and of the reply, the blocks added, removed and changed, how much of the request before a
/// prompt cache can reuse, and what happened. `log` counts changes only.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql steps session.jsonl
  pactql steps session.jsonl --over @t-9..@t0
  pactql steps session.jsonl --where \".cb[kind='result']\"
  pactql steps agents.db#support-42 --format json")]
pub(super) struct Steps {
    #[command(flatten)]
    inspected: Inspected,
    /// The form of the requests [default: that in which they were imported or sent].
    #[arg(long = "as", value_enum, value_name = "SHAPE")]
    shape: Option<Shape>,
    /// How tokens are counted: o200k, cl100k or bytes/4 [default: the one that fits the model of the
    /// request].
    #[arg(long, value_name = "NAME", value_parser = tokenizer)]
    tokenizer: Option<Tokenizer>,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
    /// Print long text on a terminal at once.
    #[arg(long)]
    no_pager: bool,
}

impl Run for Steps {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let engine = Engine::new();
        let part = self.inspected.part();
        let shape = self.shape.map(Shape::provider);
        let paint = color.for_results();
        let mut out = String::new();
        self.inspected.each(|opened| {
            let found = steps(&engine, &opened.session, &part, shape, self.tokenizer)
                .map_err(|error| opened.failure(error))?;
            if self.format == TextFirst::Json {
                return append_json(opened, &found, &mut out);
            }
            opened.title(paint, &mut out);
            text(&found, paint, &mut out);
            Ok(())
        })?;
        page(&out, self.format != TextFirst::Json && !self.no_pager)
    }
}

/// The columns of a line.
const COLUMNS: [&str; 9] = [
    "cycle",
    "time",
    "tokens",
    "counted",
    "cached",
    "reply",
    "blocks",
    "prefix",
    "what happened",
];

/// A table, without the columns that have nothing in them.
fn text(found: &Found, paint: Paint, out: &mut String) {
    let models: Vec<&str> = found
        .steps
        .iter()
        .filter_map(|step| step.call.model.as_deref())
        .collect();
    let one_model = models.iter().all(|model| Some(model) == models.first());
    if let Some(model) = models.first().filter(|_| one_model) {
        let _ = writeln!(
            out,
            "model {}, tokens by {}",
            printable(model),
            found.tokenizer
        );
    } else {
        let _ = writeln!(out, "tokens by {}", found.tokenizer);
    }
    if found.reconstructed {
        out.push_str(
            "reconstructed: the log is a transcript and does not say exactly what was sent\n",
        );
    }
    if let Some(why) = &found.no_prefixes {
        let _ = writeln!(out, "no tokens and prefixes: {}", printable(why));
    }
    let rows: Vec<[String; 9]> = found
        .steps
        .iter()
        .map(|step| row(step, !one_model))
        .collect();
    let filled = |at: usize| rows.iter().any(|row| !row[at].is_empty());
    let shown: Vec<usize> = (0..COLUMNS.len()).filter(|at| filled(*at)).collect();
    let width = |at: usize| {
        let cells = rows.iter().map(|row| width_of(&row[at]));
        cells.max().unwrap_or(0).max(width_of(COLUMNS[at]))
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let header = COLUMNS.map(str::to_owned);
    for (index, row) in std::iter::once(&header).chain(&rows).enumerate() {
        let mut line = String::new();
        for &at in &shown {
            let cell = &row[at];
            let blanks = " ".repeat(widths[at] - width_of(cell));
            let tint = match at {
                _ if index == 0 => Some(Tint::Name),
                0 => Some(Tint::Place),
                7 if found.steps[index - 1].broken.is_some() => Some(Tint::Removed),
                _ => None,
            };
            let cell = tint.map_or_else(|| cell.clone(), |tint| paint.tint(tint, cell));
            if !line.is_empty() {
                line.push_str("  ");
            }
            // Numbers to the right, words to the left.
            match at {
                2..=5 | 7 => line.extend([blanks, cell]),
                _ => line.extend([cell, blanks]),
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// The cells of a line.
fn row(step: &Step, with_model: bool) -> [String; 9] {
    let number = |count: Option<u64>| count.map(|count| count.to_string()).unwrap_or_default();
    let mut happened: Vec<String> = step.events.iter().map(event).collect();
    if let Some(broken) = &step.broken {
        let place = broken.block.as_deref().map(printable);
        let place = place.unwrap_or_else(|| broken.place.to_string());
        happened.push(format!(
            "prefix broken at {place}: {}",
            printable(&broken.cause.text())
        ));
    }
    if let Some(model) = step.call.model.as_deref().filter(|_| with_model) {
        happened.push(printable(model));
    }
    let mut changes = format!("+{} -{} ~{}", step.added, step.removed, step.changed);
    if step.added + step.removed + step.changed == 0 {
        changes = "none".to_owned();
    }
    [
        format!("@c{}", step.cycle),
        step.time.as_deref().map(time).unwrap_or_default(),
        number(step.tokens),
        number(step.call.input_tokens),
        number(step.call.cached_tokens),
        number(step.call.output_tokens),
        changes,
        step.prefix_percent
            .map(|percent| format!("{percent} %"))
            .unwrap_or_default(),
        happened.join("; "),
    ]
}

/// What happened, in words.
fn event(event: &StepEvent) -> String {
    match event {
        StepEvent::Compaction => "compaction".to_owned(),
        StepEvent::Failed { count, error } => {
            let error = error
                .as_deref()
                .map(|error| format!(" ({})", clean(error, 60)));
            format!("failed {count}×{}", error.unwrap_or_default())
        }
        StepEvent::ToolErrors { count } => format!("tool errors {count}×"),
        StepEvent::Reply => "reply".to_owned(),
        StepEvent::Calls { tools } => {
            let tools = tools.iter().map(|(name, count)| match count {
                1 => clean(name, 40),
                count => format!("{} {count}×", clean(name, 40)),
            });
            let tools: Vec<String> = tools.collect();
            format!("calls {}", tools.join(", "))
        }
    }
}
