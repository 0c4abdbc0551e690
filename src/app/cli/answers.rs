//! The answers of `select`, in every format.

use super::command::Invocation;
use super::options::{Paint, PrintAs, Tint};
use super::output::{self, Previews, with_calls};
use crate::app::present::answer::{self, FittedAnswer, TokenBudget};
use crate::app::present::{Exit, Failure, Result};
use crate::budget::Query;
use crate::engine::{Answer, Engine, Fit, Prepared, Selection};
use crate::history::{PairDiff, RangeDiff, RangeOptions};
use crate::support::table::{TableCell, TextTable};
use clap::Args;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

pub(super) struct How {
    pub(super) engine: Engine,
    pub(super) options: RangeOptions,
    pub(super) budget: Option<TokenBudget>,
    pub(super) format: PrintAs,
    pub(super) count: bool,
    pub(super) with: Invocation,
}

/// What tells an answer from others of the same run: its session if there are several, its
/// selector if there are several.
#[derive(Clone, Copy)]
pub(super) struct AnswerLabels<'a> {
    pub(super) session: Option<&'a str>,
    pub(super) selector: Option<&'a str>,
}

impl<'a> AnswerLabels<'a> {
    /// Those there are, with the names of the members that they are in JSON.
    fn named(self) -> Vec<(&'static str, &'a str)> {
        let labels = [("session", self.session), ("selector", self.selector)];
        let given = |(name, label): (_, Option<&'a str>)| Some((name, label?));
        labels.into_iter().filter_map(given).collect()
    }

    /// A line above an answer; empty without labels.
    fn title(self, paint: Paint) -> String {
        let labels: Vec<&str> = self.named().iter().map(|(_, label)| *label).collect();
        if labels.is_empty() {
            String::new()
        } else {
            paint.tint(Tint::Name, &format!("{}:", labels.join("  "))) + "\n"
        }
    }

    /// What a line of an answer begins with: each label and a tab.
    pub(super) fn prefix(self) -> String {
        let label = |(_, label)| format!("{}\t", output::printable(label));
        self.named().into_iter().map(label).collect()
    }

    /// A JSON value with this name beside the labels, or alone without labels.
    fn json(self, name: &str, value: &str) -> String {
        let labels = self.named();
        if labels.is_empty() {
            return value.to_owned();
        }
        let labels = labels.into_iter();
        let labels = labels.map(|(name, label)| format!("\"{name}\":{},", output::quoted(label)));
        format!("{{{}\"{name}\":{value}}}", labels.collect::<String>())
    }

    /// Appends the ids of an answer, of which nothing else is known.
    pub(super) fn append_ids<'i>(
        self,
        ids: impl Iterator<Item = &'i str>,
        format: PrintAs,
        out: &mut String,
    ) -> Result<()> {
        if format == PrintAs::Json {
            let ids: Vec<&str> = ids.collect();
            out.extend([&*self.json("result", &answer::json(&ids)?), "\n"]);
            return Ok(());
        }
        let prefix = self.prefix();
        ids.for_each(|id| out.extend([&*prefix, id, "\n"]));
        Ok(())
    }

    /// Appends a line for each node that came, of the rows of an answer.
    pub(super) fn append_came(
        self,
        came: &[String],
        rows: &Selection,
        format: Option<PrintAs>,
        out: &mut String,
    ) {
        let came: HashSet<&str> = came.iter().map(String::as_str).collect();
        let prefix = self.prefix();
        for node in rows.nodes().filter(|node| came.contains(node.id())) {
            match format {
                Some(PrintAs::Nodes) => output::node_json(node, &self.named(), out),
                Some(PrintAs::Json) => {
                    let snapshot = output::label(node);
                    let mut members = self.named();
                    members.extend([("snapshot", &*snapshot), ("id", node.id())]);
                    let member = |(name, value)| format!("\"{name}\":{}", output::quoted(value));
                    let members: Vec<String> = members.into_iter().map(member).collect();
                    out.extend(["{", &*members.join(","), "}\n"]);
                }
                _ => out.extend([&*prefix, node.id(), "\n"]),
            }
        }
    }

    pub(super) fn append_count(self, count: &str, format: PrintAs, out: &mut String) {
        out.push_str(&match format {
            PrintAs::Json => self.json("count", count),
            _ => self.prefix() + count,
        });
        out.push('\n');
    }
}

pub(super) fn append(
    found: &FittedAnswer<'_>,
    prepared: &Prepared,
    labels: AnswerLabels<'_>,
    how: &How,
    out: &mut String,
) -> Result<()> {
    let paint = how.with.paint();
    let (title, prefix) = (labels.title(paint), labels.prefix());
    let previews = || Previews::new(prepared.query(), paint);
    let no_nodes = || {
        Failure::value("a range has differences, not nodes")
            .with_help("--format json, table or ids")
    };
    if how.count {
        labels.append_count(&found.json(true)?, how.format, out);
        return Ok(());
    }
    match (how.format, found.answer, &found.fit) {
        (PrintAs::Tree, _, Some(_)) => {
            let message = "`--format tree` cannot show the order that a budget chooses";
            return Err(Failure::value(message).with_help("--format json, table, ids or nodes"));
        }
        (PrintAs::Table, _, Some(fit)) => out.extend([&*title, &*fitting(fit, &previews())]),
        (PrintAs::Table | PrintAs::Tree, Answer::Rows(rows), None) => {
            let whole = with_calls(rows)?;
            let nodes = whole.as_ref().unwrap_or(rows).nodes();
            out.extend([
                &*title,
                &*match how.format {
                    PrintAs::Table => output::table(nodes, &previews()),
                    _ => output::tree(nodes, &previews()),
                },
            ]);
        }
        (PrintAs::Table, Answer::Range(diff), None) => {
            out.push_str(&title);
            summary(diff, paint, out);
        }
        (PrintAs::Ids, Answer::Range(diff), None) => changes(diff, &prefix, out),
        (PrintAs::Ids, ..) => {
            for node in found.nodes().into_iter().flatten() {
                out.extend([&*prefix, node.id(), "\n"]);
            }
        }
        (PrintAs::Nodes, ..) => {
            for node in found.nodes().ok_or_else(no_nodes)? {
                output::node_json(node, &labels.named(), out);
            }
        }
        (PrintAs::Tree, Answer::Range(_), None) => return Err(no_nodes()),
        _ => out.extend([&*labels.json("result", &found.json(false)?), "\n"]),
    }
    Ok(())
}

/// The ids of the nodes that one snapshot of a pair has alone.
fn lone(block: &PairDiff) -> impl Iterator<Item = (char, Tint, &String)> {
    let added = block.added_ids.iter().map(|id| ('+', Tint::Added, id));
    let removed = block.removed_ids.iter().map(|id| ('-', Tint::Removed, id));
    added.chain(removed)
}

fn changes(diff: &RangeDiff, prefix: &str, out: &mut String) {
    for block in &diff.diffs {
        let (from, to) = (&block.from.label, &block.to.label);
        let changed = block.changed.iter().map(|change| ('~', &change.id));
        let lone = lone(block).map(|(sign, _, id)| (sign, id));
        for (sign, id) in lone.chain(changed) {
            let _ = writeln!(out, "{prefix}{from}..{to}\t{sign}\t{id}");
        }
    }
}

/// The changes as text: under each pair of snapshots what was added, removed and changed.
fn summary(diff: &RangeDiff, paint: Paint, out: &mut String) {
    for block in &diff.diffs {
        let (newer, older) = (&block.from.label, &block.to.label);
        let (added, removed) = (block.added_ids.len(), block.removed_ids.len());
        let changed = block.changed.len();
        let place = paint.tint(Tint::Place, &format!("{newer} after {older}"));
        let counts = format!("{added} added, {removed} removed, {changed} changed");
        let _ = writeln!(out, "{place}: {counts}");
        for (sign, tint, id) in lone(block) {
            let line = format!("{sign} {}", output::printable(id));
            let _ = writeln!(out, "  {}", paint.tint(tint, &line));
        }
        for change in &block.changed {
            let (id, fields) = (
                output::printable(&change.id),
                output::fields(&change.fields, change.content_diff.as_deref()),
            );
            let line = paint.tint(Tint::Changed, &format!("~ {id} ({fields})"));
            let _ = writeln!(out, "  {line}");
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

/// Which of the blocks found to choose.
#[derive(Args, Debug)]
#[command(next_help_heading = "Budget")]
pub(super) struct FitArgs {
    /// Choose blocks that fit this many tokens (a quarter of the bytes of each content, rounded
    /// up), each whole or not at all. Every session and every selector has the whole budget.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    budget: Option<u64>,
    /// Prefer blocks with these words; without a query, blocks are taken in the order of ids.
    #[arg(long, value_name = "QUERY", requires = "budget")]
    #[arg(allow_hyphen_values = true)]
    query: Option<OsString>,
}

impl FitArgs {
    /// The budget, if there is one.
    pub(super) fn budget(&self) -> Result<Option<TokenBudget>> {
        let Some(tokens) = self.budget else {
            return Ok(None);
        };
        let query = Query::new(text_of(self.query.as_deref().unwrap_or_default())?);
        Ok(Some(TokenBudget { query, tokens }))
    }
}

pub(super) fn text_of(query: &OsStr) -> Result<&str> {
    query
        .to_str()
        .ok_or_else(|| Failure::plain(Exit::Selector, "the query is not UTF-8"))
}

/// A table of the blocks chosen, with their scores, and a line of totals.
fn fitting(fit: &Fit<'_>, previews: &Previews) -> String {
    let summary = &fit.resolution.selection;
    let titles = "id snapshot score matches tokens role kind".split(' ');
    let table = TextTable::new(titles).words([1, 5, 6]);
    let mut table = table.optional(&[3, 5, 6, 1, 4]).hide_empty();
    for (node, document) in fit.nodes.iter().zip(&fit.resolution.documents) {
        let why = &document.why;
        table.add([
            TableCell::new(output::printable(node.id()), Some(Tint::Name)),
            TableCell::new(output::label(*node), Some(Tint::Place)),
            format!("{:.4}", document.score).into(),
            format!("{}/{}", why.term_matches, why.total_words).into(),
            document.tokens.to_string().into(),
            output::word(node.role()),
            output::word(node.kind()),
        ]);
    }
    let mut text = match &fit.nodes[..] {
        [] => String::new(),
        nodes => output::previewed(&table, nodes, previews),
    };
    let blocks = output::counted(summary.documents_considered as u64, "block");
    let (chosen, used) = (summary.documents_selected, summary.tokens_used);
    let all = summary.budget;
    let _ = writeln!(text, "{chosen} of {blocks}, {used} of {all} tokens");
    text
}
