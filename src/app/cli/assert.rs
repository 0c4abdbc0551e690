//! `pactql assert`: conditions that sessions have to meet.

use super::command::{Run, print};
use super::input;
use super::inspected::Choice;
use super::options::{Color, Limits, Paint, TextFirst, Tint};
use super::output::{counted, printable};
use super::tokens::{append_json, tokenizer};
use crate::app::present::{Exit, Failure};
use crate::engine::Engine;
use crate::inspect::{Checked, Condition, Tokenizer, check};
use clap::Args;
use serde::Serialize;
use std::fmt::Write as _;

/// Check that sessions meet conditions, for continuous integration.
///
/// A file has a condition a line: `none SELECTOR`, `some SELECTOR`, `prefix >= 90%` (of each request, that
/// a prompt cache can reuse), `tokens <= 100000` (of each request), `growth <= 2000/step`, `unused = 0`
/// (tools that are defined and never called). Empty lines, and lines that begin with `#`, are left out.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql assert limits.txt session.jsonl
  pactql assert limits.txt agents.db --since 2026-01-01
  echo 'none @t0 .cb[data_is_error=true]' | pactql assert - session.jsonl --format json

Exit codes: 0 all hold, 9 one does not, or there is no session.")]
pub(super) struct Assert {
    /// The file of conditions, or `-` for standard input.
    file: String,
    /// Sessions: files, directories, `STORE#name`, `STORE#glob`, `STORE`.
    #[arg(value_name = "SESSION", required = true)]
    sessions: Vec<String>,
    #[command(flatten)]
    choice: Choice,
    /// How tokens are counted: o200k, cl100k or bytes/4 [default: the one that fits the model of the
    /// request].
    #[arg(long, value_name = "NAME", value_parser = tokenizer)]
    tokenizer: Option<Tokenizer>,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
    #[command(flatten)]
    limits: Limits,
}

/// The answer for one session.
#[derive(Serialize)]
struct Answer {
    holds: bool,
    conditions: Vec<Checked>,
}

impl Run for Assert {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let bytes = input::read(&self.file, &self.limits)?;
        let text = String::from_utf8_lossy(&bytes);
        let conditions = Condition::parse_file(&text)?;
        let engine = Engine::new();
        let paint = color.for_results();
        let (mut out, mut failed) = (String::new(), false);
        let sessions = self.choice.each(&self.sessions, &self.limits, |opened| {
            let checked = check(&engine, &opened.session, &conditions, self.tokenizer)
                .map_err(|error| opened.failure(error))?;
            let holds = checked.iter().all(|checked| checked.holds);
            failed |= !holds;
            if self.format == TextFirst::Json {
                let answer = Answer {
                    holds,
                    conditions: checked,
                };
                return append_json(opened, &answer, &mut out);
            }
            opened.title(paint, &mut out);
            lines(&checked, paint, &mut out);
            Ok(())
        })?;
        print(&out)?;
        Ok(if failed || sessions == 0 {
            Exit::Unmet
        } else {
            Exit::Ok
        })
    }
}

/// A line for each condition, and one for each of the first failures.
fn lines(checked: &[Checked], paint: Paint, out: &mut String) {
    for checked in checked {
        let word = if checked.holds {
            paint.tint(Tint::Added, "ok    ")
        } else {
            paint.tint(Tint::Removed, "FAILED")
        };
        let condition = printable(&checked.condition.to_string());
        let _ = writeln!(out, "{word} line {}: {condition}", checked.line);
        for failed in &checked.first {
            let mut place: Vec<String> = Vec::new();
            place.extend(failed.cycle.map(|cycle| format!("@c{cycle}")));
            place.extend(
                failed
                    .block
                    .as_deref()
                    .map(|block| format!("block {}", printable(block))),
            );
            let place = if place.is_empty() {
                String::new()
            } else {
                format!("{}: ", place.join(", "))
            };
            let _ = writeln!(out, "         {place}{}", printable(&failed.what));
        }
        if let more @ 1.. = checked.failures - checked.first.len() {
            let _ = writeln!(out, "         {}", counted(more as u64, "more failure"));
        }
    }
}
