//! `select --budget`: the blocks found that fit a number of tokens.

use super::options::Tint;
use super::output::{self, Column};
use super::preview::{PREVIEW, Previews};
use crate::app::present::answer::Budget;
use crate::app::present::{Exit, Failure};
use crate::budget::Query;
use crate::engine::Fit;
use clap::Args;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

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
    ///
    /// # Errors
    /// A query that is not UTF-8.
    pub(super) fn budget(&self) -> Result<Option<Budget>, Failure> {
        let Some(tokens) = self.budget else {
            return Ok(None);
        };
        let query = Query::new(text_of(self.query.as_deref().unwrap_or_default())?);
        Ok(Some(Budget { query, tokens }))
    }
}

/// The text of a query.
///
/// # Errors
/// It is not UTF-8.
pub(super) fn text_of(query: &OsStr) -> Result<&str, Failure> {
    query
        .to_str()
        .ok_or_else(|| Failure::plain(Exit::Selector, "the query is not UTF-8"))
}

/// A table of the blocks chosen, with their scores, and a line of totals.
pub(super) fn table(fit: &Fit<'_>, previews: &Previews) -> String {
    let summary = &fit.resolution.selection;
    let rows = fit.nodes.iter().zip(&fit.resolution.documents);
    let rows = rows.map(|(node, document)| {
        let why = &document.why;
        let cells = [
            output::printable(node.id()),
            output::label(*node),
            format!("{:.4}", document.score),
            format!("{}/{}", why.term_matches, why.total_words),
            document.tokens.to_string(),
            output::clean(node.role().unwrap_or_default(), PREVIEW),
            output::clean(node.kind().unwrap_or_default(), PREVIEW),
        ];
        (cells, *node)
    });
    let header = [
        Column::new("id", 0).tint(Tint::Name),
        Column::new("snapshot", 4).tint(Tint::Place),
        Column::new("score", 0),
        Column::new("matches", 1),
        Column::new("tokens", 5),
        Column::new("role", 2).tint(Tint::Kind),
        Column::new("kind", 3).tint(Tint::Kind),
    ];
    let mut text = output::columns(header, rows, previews).unwrap_or_default();
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
