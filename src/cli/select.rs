//! `pactql select`: the nodes that a selector finds.

use super::command::{Run, print, say};
use super::fit::{self, FitArgs};
use super::options::{Color, EditionName, Format, Limits, RangeArgs};
use super::{input, output, sessions};
use crate::engine::{Answer, Engine};
use crate::history::{RangeDiff, RangeOptions, Session};
use crate::present::answer::{Budget, Found};
use crate::present::{Exit, Failure};
use clap::Args;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Find nodes with a selector.
///
/// The result is an ordered list of ids, or for a range of snapshots the differences between
/// neighbours. With several sessions, each result is labelled with the path of its session.
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
    /// Sessions: files, directories, or `-` for standard input. The last argument is the selector,
    /// unless -e or --file gives it.
    #[arg(value_name = "SESSION", required = true)]
    inputs: Vec<String>,
    /// The selector.
    #[arg(short = 'e', long = "selector", value_name = "SELECTOR")]
    #[arg(allow_hyphen_values = true)]
    selector: Option<String>,
    /// Run every line of a file as a selector; prints one line of JSON for each, which is the
    /// error if there is one.
    #[arg(long, value_name = "FILE", conflicts_with = "selector")]
    file: Option<String>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print only the number of nodes.
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

/// The resolved arguments of a run.
struct How {
    engine: Engine,
    options: RangeOptions,
    budget: Option<Budget>,
    format: Format,
    count: bool,
    color: Color,
}

impl Run for Select {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let how = How {
            engine: self.edition.engine(),
            options: self.range.options(),
            budget: self.fit.budget()?,
            format: self.format.resolve(),
            count: self.count,
            color,
        };
        match &self.file {
            Some(file) => self.run_file(file, &how),
            None => self.run_sessions(&how),
        }
    }
}

impl Select {
    /// Runs one selector on each session.
    fn run_sessions(&self, how: &How) -> Result<Exit, Failure> {
        let (selector, names) = match (&self.selector, &self.inputs[..]) {
            (Some(selector), names) => (selector, names),
            (None, [names @ .., selector]) if !names.is_empty() => (selector, names),
            _ => {
                return Err(Failure::usage("a session and a selector are needed")
                    .with_help("pactql select SESSION SELECTOR"));
            }
        };
        // An invalid selector is reported before anything is read.
        how.engine.prepare(selector)?;
        let sessions = sessions::open_all(names, &self.limits)?;
        let mut out = String::new();
        for (name, session) in names.iter().zip(&sessions) {
            let label = (names.len() > 1).then_some(&**name);
            let answer = how
                .engine
                .select_with(session, selector, &how.options)
                .map_err(|error| Failure::in_session(error, label))?;
            let found = Found::new(&answer, how.budget.as_ref())?;
            append(&found, label, how, &mut out)?;
            let color = how.color.for_errors();
            say(&found.remarks(&how.engine, session, selector, color));
        }
        print(&out)
    }

    /// Runs each line of a file of selectors on one session.
    fn run_file(&self, file: &str, how: &How) -> Result<Exit, Failure> {
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
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let mut exit = Exit::Ok;
        for line in input::lines(&selectors) {
            let text = match run_line(&session, line, how) {
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
}

/// Runs one line of a file; returns the answer as one JSON value.
fn run_line(session: &Session, line: Result<&str, String>, how: &How) -> Result<String, Failure> {
    let line = line.map_err(|line| input::not_utf8(&line))?;
    let answer = how.engine.select_with(session, line, &how.options)?;
    for warning in answer.warnings() {
        say(&warning.render(line, how.color.for_errors()));
    }
    Found::new(&answer, how.budget.as_ref())?.json(how.count)
}

/// Appends what was found in one session; `label` is its path if there are several.
fn append(
    found: &Found<'_>,
    label: Option<&str>,
    how: &How,
    out: &mut String,
) -> Result<(), Failure> {
    let title = label.map(|label| format!("{label}:\n"));
    let title = title.as_deref().unwrap_or_default();
    let prefix = label.map(|label| format!("{label}\t")).unwrap_or_default();
    let no_nodes = || {
        Failure::value("a range has differences, not nodes")
            .with_help("--format json, table or ids")
    };
    match (how.format, found.answer, &found.fit) {
        (Format::Json | Format::Auto, ..) => {
            let value = found.json(how.count)?;
            let name = if how.count { "count" } else { "result" };
            match label {
                Some(label) => {
                    let session = output::quoted(label);
                    let _ = writeln!(out, "{{\"session\":{session},\"{name}\":{value}}}");
                }
                None => out.extend([&*value, "\n"]),
            }
        }
        _ if how.count => out.extend([&*prefix, &*found.json(true)?, "\n"]),
        (Format::Tree, _, Some(_)) => {
            return Err(
                Failure::value("what fits a budget has an order that a tree cannot show")
                    .with_help("--format json, table, ids or nodes"),
            );
        }
        (Format::Table, _, Some(fit)) => out.extend([title, &*fit::table(fit)]),
        (Format::Table, Answer::Rows(rows), None) => {
            out.extend([title, &*output::table(rows.nodes())]);
        }
        (Format::Table, Answer::Range(diff), None) => {
            out.push_str(title);
            summary(diff, out);
        }
        (Format::Ids, Answer::Range(diff), None) => changes(diff, &prefix, out),
        (Format::Ids, ..) => {
            for node in found.nodes().into_iter().flatten() {
                out.extend([&*prefix, node.id(), "\n"]);
            }
        }
        (Format::Nodes, ..) => {
            for node in found.nodes().ok_or_else(no_nodes)? {
                output::node_json(node, label, out);
            }
        }
        (Format::Tree, _, None) => {
            let nodes = found.nodes().ok_or_else(no_nodes)?;
            out.extend([title, &*output::tree(nodes)]);
        }
    }
    Ok(())
}

/// One line for each change: the pair of snapshots, a sign, the id.
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

/// The changes as text: under each pair of snapshots what was added, removed and changed.
fn summary(diff: &RangeDiff, out: &mut String) {
    for block in &diff.diffs {
        let (newer, older) = (&block.from.label, &block.to.label);
        let (added, removed) = (block.added_ids.len(), block.removed_ids.len());
        let changed = block.changed.len();
        let _ = writeln!(
            out,
            "{newer} after {older}: {added} added, {removed} removed, {changed} changed"
        );
        let added = block.added_ids.iter().map(|id| ('+', id));
        for (sign, id) in added.chain(block.removed_ids.iter().map(|id| ('-', id))) {
            let _ = writeln!(out, "  {sign} {}", output::printable(id));
        }
        for change in &block.changed {
            let (id, fields) = (output::printable(&change.id), change.fields.join(", "));
            let _ = writeln!(out, "  ~ {id} ({fields})");
            let content = change.content_diff.as_deref();
            let lines = content.and_then(|content| content.diff.as_deref());
            for line in lines.unwrap_or_default().lines() {
                let _ = writeln!(out, "      {}", output::printable(line));
            }
        }
    }
    if diff.diffs.is_empty() {
        out.push_str("one snapshot, nothing to compare\n");
    }
}
