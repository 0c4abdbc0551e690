//! `pactql select`: what a selector finds.

use super::fit::{self, FitArgs, Wanted};
use super::options::{Color, EditionName, Format, Limits, RangeArgs};
use super::{input, output, sessions};
use crate::engine::{Answer, Engine, Fit};
use crate::history::{RangeDiff, RangeOptions, Session};
use crate::present::answer;
use crate::present::{Exit, Failure};
use clap::Args;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Find nodes with a selector.
///
/// Without a range the answer is an ordered list of ids; a range gives the differences of
/// neighbouring snapshots. Of several sessions each answer is labelled with its path.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql select [OPTIONS] <SESSION> <SELECTOR>
       pactql select [OPTIONS] <SESSION>... -e <SELECTOR>
       pactql select [OPTIONS] <SESSION> --file <FILE>")]
#[command(after_help = "\
Examples:
  pactql select session.jsonl \"@t0 ^seq .mt:depth(1) .cb[role='assistant']\"
  pactql select session.jsonl \"@t0 .cb[kind='call']\" --format nodes
  pactql select runs/*.jsonl -e \"@t0 .cb[kind='result']\" --count
  pactql select session.jsonl \"@t-3..@t0 .cb[ttl<=1]\" --format json
  pactql select session.jsonl \"@history .cb\" --include-content --stats --max-changes 20
  pactql select session.jsonl \"@history .cb[kind='call'] @mode=latest\"
  pactql select session.jsonl \"@t0 .cb\" --budget 2000 --query \"refund policy\"
  pactql select session.jsonl --file selectors.txt --format json")]
pub(super) struct Select {
    /// Sessions: files, directories, or `-`; then the selector, unless -e or --file gives it.
    #[arg(value_name = "SESSION", required = true)]
    inputs: Vec<String>,
    /// The selector.
    #[arg(
        short = 'e',
        long = "selector",
        value_name = "SELECTOR",
        allow_hyphen_values = true
    )]
    selector: Option<String>,
    /// Answer a file of selectors: one JSON value a line for each line, errors in their place.
    #[arg(long, value_name = "FILE", conflicts_with = "selector")]
    file: Option<String>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print only how many nodes there are.
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    fit: FitArgs,
    #[command(flatten)]
    edition: EditionName,
    #[command(flatten)]
    limits: Limits,
}

impl Select {
    /// Whether errors are asked for as JSON.
    pub(super) fn json_errors(&self) -> bool {
        self.format == Format::Json
    }

    /// Runs the command.
    pub(super) fn run(mut self, color: Color) -> Result<Exit, Failure> {
        let engine = self.edition.engine();
        let options = self.range.options();
        let wanted = self.fit.wanted()?;
        if let Some(file) = &self.file {
            if !matches!(self.format, Format::Auto | Format::Json) {
                return Err(Failure::value("--file answers in JSON only"));
            }
            let [name] = &self.inputs[..] else {
                return Err(Failure::usage(
                    "--file takes one session and no other selector",
                ));
            };
            if name == input::STDIN && file == input::STDIN {
                return Err(Failure::usage("standard input can be read once only"));
            }
            let selectors = input::read(file, &self.limits)?;
            let session = sessions::open(name, &self.limits)?;
            let how = How {
                options,
                wanted,
                count: self.count,
                color,
            };
            return answer_file(&engine, &session, &selectors, &how);
        }
        let selector = match self.selector.take() {
            Some(selector) => selector,
            None => match self.inputs.pop() {
                Some(selector) if !self.inputs.is_empty() => selector,
                _ => {
                    return Err(Failure::usage("a session and a selector are needed")
                        .with_help("pactql select SESSION SELECTOR"));
                }
            },
        };
        // A selector that is wrong is told before anything is read.
        engine.prepare(&selector)?;
        let sessions = sessions::open_all(&self.inputs, &self.limits)?;
        let several = sessions.len() > 1;
        let format = self.format.resolve();
        let mut out = String::new();
        for (name, session) in self.inputs.iter().zip(&sessions) {
            let label = several.then_some(&**name);
            let selection = engine
                .select_with(session, &selector, &options)
                .map_err(|error| Failure::Selector(Box::new(error), label.map(str::to_owned)))?;
            let fit = wanted.as_ref().map(|wanted| wanted.of(&selection));
            let fit = fit.transpose()?;
            print(
                &selection,
                fit.as_ref(),
                label,
                format,
                self.count,
                &mut out,
            )?;
            super::say(&answer::remarks(
                &engine,
                session,
                &selector,
                &selection,
                fit.as_ref(),
                color.for_errors(),
            ));
        }
        io::stdout().lock().write_all(out.as_bytes())?;
        Ok(Exit::Ok)
    }
}

/// How the lines of a file of selectors are answered.
struct How {
    options: RangeOptions,
    wanted: Option<Wanted>,
    count: bool,
    color: Color,
}

/// Answers each line of a file of selectors.
fn answer_file(
    engine: &Engine,
    session: &Session,
    selectors: &[u8],
    how: &How,
) -> Result<Exit, Failure> {
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut exit = Exit::Ok;
    for line in input::lines(selectors) {
        let text = match answer_line(engine, session, line, how) {
            Ok(text) => text,
            Err(failure @ Failure::Plain(Exit::Internal, ..)) => return Err(failure),
            Err(failure) => {
                exit = Exit::Selector;
                failure.json().to_string()
            }
        };
        writeln!(out, "{text}")?;
    }
    out.flush()?;
    Ok(exit)
}

/// The answer to one line, or why it has none.
fn answer_line(
    engine: &Engine,
    session: &Session,
    line: Result<&str, String>,
    how: &How,
) -> Result<String, Failure> {
    let line = line.map_err(|line| input::not_utf8(&line))?;
    let selection = engine.select_with(session, line, &how.options)?;
    for warning in selection.warnings() {
        super::say(&warning.render(line, how.color.for_errors()));
    }
    let fit = how.wanted.as_ref().map(|wanted| wanted.of(&selection));
    value(&selection, fit.transpose()?.as_ref(), how.count)
}

/// The answer as one JSON value.
fn value(selection: &Answer, fit: Option<&Fit<'_>>, count: bool) -> Result<String, Failure> {
    if let Some(fit) = fit {
        return fit::value(fit, count);
    }
    if count {
        return Ok(selection.count().to_string());
    }
    answer::selection(selection)
}

/// Appends the answer of one session.
fn print(
    selection: &Answer,
    fit: Option<&Fit<'_>>,
    label: Option<&str>,
    format: Format,
    count: bool,
    out: &mut String,
) -> Result<(), Failure> {
    let title = label.map(|label| format!("{label}:\n"));
    let prefix = label.map(|label| format!("{label}\t")).unwrap_or_default();
    match format {
        Format::Json | Format::Auto => {
            let value = value(selection, fit, count)?;
            let name = if count { "count" } else { "result" };
            let _ = match label {
                Some(label) => writeln!(
                    out,
                    "{{\"session\":{},\"{name}\":{value}}}",
                    Value::from(label)
                ),
                None => writeln!(out, "{value}"),
            };
        }
        _ if count => {
            let _ = writeln!(out, "{prefix}{}", value(selection, fit, count)?);
        }
        _ if let Some(fit) = fit => fit::print(fit, label, format, out)?,
        Format::Ids => match selection {
            Answer::Range(diff) => changes(diff, &prefix, out),
            Answer::Rows(rows) => {
                for id in rows.ids() {
                    let _ = writeln!(out, "{prefix}{id}");
                }
            }
        },
        Format::Table => {
            out.push_str(&title.unwrap_or_default());
            match selection {
                Answer::Range(diff) => summary(diff, out),
                Answer::Rows(rows) => out.push_str(&output::table(rows.nodes())),
            }
        }
        Format::Nodes | Format::Tree => {
            let Answer::Rows(rows) = selection else {
                return Err(Failure::value("a range has differences, not nodes")
                    .with_help("--format json, table or ids"));
            };
            if format == Format::Tree {
                out.push_str(&title.unwrap_or_default());
                out.push_str(&output::tree(rows.nodes()));
                return Ok(());
            }
            for node in rows.nodes() {
                output::node_json(node, label, out);
            }
        }
    }
    Ok(())
}

/// One line a change: the pair, a sign, the id.
fn changes(diff: &RangeDiff, prefix: &str, out: &mut String) {
    for block in &diff.diffs {
        let pair = format!("{prefix}{}..{}", block.from.label, block.to.label);
        let added = block.added_ids.iter().map(|id| ('+', id));
        let removed = block.removed_ids.iter().map(|id| ('-', id));
        let changed = block.changed.iter().map(|change| ('~', &change.id));
        for (sign, id) in added.chain(removed).chain(changed) {
            let _ = writeln!(out, "{pair}\t{sign}\t{id}");
        }
    }
}

/// The changes for a person: under each pair what came, went and changed.
fn summary(diff: &RangeDiff, out: &mut String) {
    for block in &diff.diffs {
        let (added, removed, changed) = (
            block.added_ids.len(),
            block.removed_ids.len(),
            block.changed.len(),
        );
        let _ = writeln!(
            out,
            "{} after {}: {added} added, {removed} removed, {changed} changed",
            block.from.label, block.to.label
        );
        for id in &block.added_ids {
            let _ = writeln!(out, "  + {}", output::clean(id, usize::MAX));
        }
        for id in &block.removed_ids {
            let _ = writeln!(out, "  - {}", output::clean(id, usize::MAX));
        }
        for change in &block.changed {
            let _ = writeln!(
                out,
                "  ~ {} ({})",
                output::clean(&change.id, usize::MAX),
                change.fields.join(", ")
            );
            let content = change.content_diff.as_deref();
            let lines = content.and_then(|content| content.diff.as_deref());
            for line in lines.unwrap_or_default().lines() {
                let _ = writeln!(out, "      {}", output::clean(line, usize::MAX));
            }
        }
    }
    if diff.diffs.is_empty() {
        out.push_str("one snapshot, nothing to compare\n");
    }
}
