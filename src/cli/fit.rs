//! `select --budget`: which of the blocks found fit a number of tokens.

use super::options::Format;
use super::output;
use crate::budget::Query;
use crate::engine::{Answer, Fit};
use crate::present::{Exit, Failure};
use clap::Args;
use std::ffi::OsString;
use std::fmt::Write as _;

/// What to choose of the blocks found.
#[derive(Args, Debug)]
#[command(next_help_heading = "Budget")]
pub(super) struct FitArgs {
    /// Choose blocks that fit this many tokens (a quarter of the bytes of each content, rounded
    /// up), whole or not at all; of several sessions and selectors each has this budget.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    budget: Option<u64>,
    /// Prefer blocks with these words; without it the order is that of ids.
    #[arg(
        long,
        value_name = "QUERY",
        requires = "budget",
        allow_hyphen_values = true
    )]
    query: Option<OsString>,
}

/// A query and a number of tokens.
#[derive(Debug)]
pub(super) struct Wanted {
    query: Query,
    budget: u64,
}

impl FitArgs {
    /// What was asked for, if it was.
    ///
    /// # Errors
    /// A query that is no text.
    pub(super) fn wanted(&self) -> Result<Option<Wanted>, Failure> {
        let Some(budget) = self.budget else {
            return Ok(None);
        };
        let query = self.query.clone().unwrap_or_default();
        let query = Query::new(text_of(query)?);
        Ok(Some(Wanted { query, budget }))
    }
}

/// The text of a query.
///
/// # Errors
/// It is not UTF-8.
pub(super) fn text_of(query: OsString) -> Result<String, Failure> {
    query
        .into_string()
        .map_err(|_| Failure::Plain(Exit::Selector, "the query is not UTF-8".to_owned(), None))
}

impl Wanted {
    /// The blocks of an answer that fit.
    ///
    /// # Errors
    /// The answer is a range.
    pub(super) fn of<'a>(&self, answer: &'a Answer) -> Result<Fit<'a>, Failure> {
        let rows = answer.rows().ok_or_else(Failure::budget_of_range)?;
        Ok(rows.fit(&self.query, self.budget))
    }
}

/// The answer as one JSON value: the shape of `context resolve`, or how many were chosen.
pub(super) fn value(fit: &Fit<'_>, count: bool) -> Result<String, Failure> {
    if count {
        return Ok(fit.nodes.len().to_string());
    }
    crate::present::answer::json(&fit.resolution)
}

/// Appends the answer of one session in a format that is not JSON.
///
/// # Errors
/// A format that cannot show it.
pub(super) fn print(
    fit: &Fit<'_>,
    label: Option<&str>,
    format: Format,
    out: &mut String,
) -> Result<(), Failure> {
    match format {
        Format::Tree => {
            return Err(
                Failure::value("what fits a budget has an order that a tree cannot show")
                    .with_help("--format json, table, ids or nodes"),
            );
        }
        Format::Nodes => {
            for node in &fit.nodes {
                output::node_json(*node, label, out);
            }
        }
        Format::Table => {
            if let Some(label) = label {
                let _ = writeln!(out, "{label}:");
            }
            out.push_str(&table(fit));
        }
        // JSON is printed by whoever knows what stands around it.
        Format::Ids | Format::Json | Format::Auto => {
            let prefix = label.map(|label| format!("{label}\t")).unwrap_or_default();
            for node in &fit.nodes {
                let _ = writeln!(out, "{prefix}{}", node.id());
            }
        }
    }
    Ok(())
}

/// The blocks chosen with what decided, and a line on the whole.
fn table(fit: &Fit<'_>) -> String {
    let summary = &fit.resolution.selection;
    let rows = fit.nodes.iter().zip(&fit.resolution.documents);
    let rows = rows.map(|(node, document)| {
        let why = &document.why;
        [
            output::clean(node.id(), usize::MAX),
            output::label(*node),
            format!("{:.4}", document.score),
            format!("{}/{}", why.term_matches, why.total_words),
            document.tokens.to_string(),
            output::clean(node.role().unwrap_or_default(), output::PREVIEW),
            output::clean(node.kind().unwrap_or_default(), output::PREVIEW),
            output::preview(*node),
        ]
    });
    let header = [
        "id", "snapshot", "score", "matches", "tokens", "role", "kind", "content",
    ];
    let mut text = output::columns(header, rows).unwrap_or_default();
    let _ = writeln!(
        text,
        "{} of {}, {} of {} tokens",
        summary.documents_selected,
        output::counted(summary.documents_considered as u64, "block"),
        summary.tokens_used,
        summary.budget,
    );
    text
}
