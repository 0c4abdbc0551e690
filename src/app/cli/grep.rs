//! `pactql grep`: lines of texts that match a pattern.

use super::bars::amount;
use super::command::{Run, print, say};
use super::inspected::{Inspected, Opened};
use super::options::{Color, Paint, TextFirst, Tint};
use super::output::{printable, verbatim, width_of};
use super::preview;
use super::tokens::append_json;
use crate::app::present::{Exit, Failure, answer, counted};
use crate::engine::Engine;
use crate::inspect::{Found, FoundBlock, FoundLine, Search, grep};
use crate::store::Store;
use clap::Args;
use serde_json::json;
use std::fmt::Write as _;

/// The columns to which a line is cut.
const WIDTH: usize = 160;

/// Why a text index was not used.
const WITHOUT_LETTERS: &str = "note: the text index was not used: it needs three characters in a row that \
     every match has\n";
const WITH_TIME: &str =
    "note: the text index was not used: it is for searches without --at and --over\n";

/// Search the texts of sessions for a regular expression, line by line.
///
/// What is searched is what the model is sent: texts, names and arguments of calls, results, definitions of
/// tools. All snapshots are searched, unless --at or --over says which. Each block is printed once, with
/// the first and the last snapshot that has it with this text. Every text of every chosen session is read,
/// unless they are in a store with a text index (`pactql index-text`): then only sessions that may have
/// a match.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql grep refund session.jsonl
  pactql grep -i \"error|fail\" session.jsonl --where \".cb[kind='result']\" -C 2
  pactql grep -l \"rm -rf\" agents.db --since 2026-01-01
  pactql grep -c TODO runs/*.jsonl

Exit codes: 0 ok, also if nothing is found, 2 invalid pattern, 8 nothing found with --fail-if-empty.")]
pub(super) struct Grep {
    /// The regular expression, in the dialect of `~` in selectors.
    #[arg(allow_hyphen_values = true)]
    pattern: String,
    #[command(flatten)]
    inspected: Inspected,
    /// Take capital and small letters as the same.
    #[arg(short, long)]
    ignore_case: bool,
    /// Lines to show before and after each line that matches.
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0)]
    context: usize,
    /// Print only the names of the sessions in which something is found.
    #[arg(short, long, conflicts_with = "count")]
    list: bool,
    /// Print only how many lines match in each session, those with none left out.
    #[arg(short, long)]
    count: bool,
    /// Exit with code 8 if nothing is found.
    #[arg(long)]
    fail_if_empty: bool,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
}

impl Run for Grep {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        // An invalid pattern is reported before anything is read.
        let search = Search::new(&self.pattern, self.ignore_case)?.context(self.context);
        let engine = Engine::new();
        let part = self.inspected.part_or_all();
        let paint = color.for_results();
        let mut found_any = false;
        let is_all = part.is_all(&engine)?;
        let among = |store: &Store, glob: &str| {
            let found = if is_all {
                search.sessions(store, glob)?
            } else {
                None
            };
            if found.is_none() && store.text_index()?.is_some() {
                say(if is_all { WITHOUT_LETTERS } else { WITH_TIME });
            }
            Ok(found)
        };
        let sessions = self.inspected.each_among(&among, |opened| {
            let found = grep(&engine, &opened.session, &part, &search)
                .map_err(|error| opened.failure(error))?;
            if found.blocks.is_empty() {
                return Ok(());
            }
            let mut out = String::new();
            if found_any && !self.list && !self.count && opened.several {
                out.push('\n');
            }
            found_any = true;
            self.append(opened, &found, paint, &mut out)?;
            print(&out).map(|_| ())
        })?;
        if !found_any {
            let sessions = counted(sessions as u64, "session");
            say(&format!("note: nothing was found in {sessions}\n"));
        }
        Ok(Exit::of_empty(self.fail_if_empty && !found_any))
    }
}

impl Grep {
    fn append(
        &self,
        opened: &Opened,
        found: &Found,
        paint: Paint,
        out: &mut String,
    ) -> Result<(), Failure> {
        let name = &opened.name;
        match (self.format == TextFirst::Json, self.list, self.count) {
            (true, true, _) => {
                let _ = writeln!(out, "{}", answer::json(name)?);
            }
            (true, _, true) => {
                let count = json!({"session": name, "lines": found.lines});
                let _ = writeln!(out, "{}", answer::json(&count)?);
            }
            (true, ..) => {
                out.clear();
                append_json(opened, found, out)?;
            }
            (false, true, _) => out.extend([&*printable(name), "\n"]),
            (false, _, true) => {
                let name = opened.label().map(|name| format!("{}: ", printable(name)));
                let (name, lines) = (name.unwrap_or_default(), amount(found.lines));
                let _ = writeln!(out, "{name}{lines}");
            }
            (false, ..) => {
                if let Some(name) = opened.label() {
                    out.extend([&*paint.tint(Tint::Name, &printable(name)), "\n"]);
                }
                found
                    .blocks
                    .iter()
                    .for_each(|block| text(block, paint, out));
            }
        }
        Ok(())
    }
}

/// A block: where it is, and its lines.
fn text(block: &FoundBlock, paint: Paint, out: &mut String) {
    let kind = block.kind.as_deref().map(|kind| format!(" {kind}"));
    let what = printable(&format!("{}{}", block.role, kind.unwrap_or_default()));
    let (id, what) = (
        paint.tint(Tint::Name, &printable(&block.id)),
        paint.tint(Tint::Kind, &what),
    );
    let when = if block.first == block.last {
        block.first.clone()
    } else {
        format!("{} to {}", block.first, block.last)
    };
    let _ = writeln!(out, "{id}  {what}  {}", paint.tint(Tint::Place, &when));
    let widest = block
        .lines
        .last()
        .map_or(0, |line| line.number.to_string().len());
    let mut last = None;
    for line in &block.lines {
        if last.is_some_and(|last| last + 1 < line.number) {
            out.push_str("  --\n");
        }
        last = Some(line.number);
        let sign = if line.ranges.is_empty() { '-' } else { ':' };
        let _ = writeln!(
            out,
            "  {:>widest$}{sign} {}",
            line.number,
            shown(line, paint)
        );
    }
}

/// A line with what matches in it; a long one around the first match.
fn shown(line: &FoundLine, paint: Paint) -> String {
    if width_of(&line.text) > WIDTH {
        let (cut, mark) = preview::part(&line.text, line.ranges.first().cloned(), WIDTH);
        let parts = [
            cut.get(..mark.start),
            cut.get(mark.clone()),
            cut.get(mark.end..),
        ];
        let [before, found, after] = parts.map(Option::unwrap_or_default);
        return format!("{before}{}{after}", paint.tint(Tint::Match, found));
    }
    let mut text = String::new();
    let mut from = 0;
    for range in &line.ranges {
        text.push_str(&verbatim(
            line.text.get(from..range.start).unwrap_or_default(),
        ));
        let found = verbatim(line.text.get(range.clone()).unwrap_or_default());
        text.push_str(&paint.tint(Tint::Match, &found));
        from = range.end;
    }
    text.push_str(&verbatim(line.text.get(from..).unwrap_or_default()));
    text.truncate(text.trim_end().len());
    text
}
