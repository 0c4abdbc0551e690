//! Answers as JSON: one value on one line, in the bytes that every asker gets.

use super::{Exit, Failure, counted, notes};
use crate::diag::ColorChoice;
use crate::engine::{Answer, Engine, Explain, Fit};
use crate::history::Session;
use serde::Serialize;
use std::fmt::Write as _;

/// A result as one line of JSON, without its line feed.
///
/// # Errors
/// None that input can cause.
pub(crate) fn json(result: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(result)
        .map_err(|error| Failure::Plain(Exit::Internal, error.to_string(), None))
}

/// What a selector found: a list of ids, or the differences of a range.
///
/// # Errors
/// None that input can cause.
pub(crate) fn selection(answer: &Answer) -> Result<String, Failure> {
    match answer {
        Answer::Range(diff) => json(diff),
        Answer::Rows(rows) => json(&rows.to_ids()),
    }
}

/// What there is to say beside an answer, in lines: what a budget did not consider, the warnings
/// of the selector and of its range, what a range left out, and notes on keys and ids that were
/// taken for each other where nothing was found.
pub(crate) fn remarks(
    engine: &Engine,
    session: &Session,
    selector: &str,
    answer: &Answer,
    fit: Option<&Fit<'_>>,
    color: ColorChoice,
) -> String {
    let mut said = String::new();
    if let Some(fit) = fit.filter(|fit| fit.others > 0) {
        let others = counted(fit.others as u64, "node");
        let _ = writeln!(
            said,
            "note: a budget takes blocks only; {others} found are none"
        );
    }
    for warning in answer.warnings() {
        said.push_str(&warning.render(selector, color));
    }
    if let Some(diff) = answer.range() {
        let left_out = diff.errors.iter().map(|error| &error.message);
        for message in diff.warnings.iter().chain(left_out) {
            let _ = writeln!(said, "warning: {message}");
        }
    }
    if answer.rows().is_some_and(|rows| rows.count() == 0) {
        notes::of_empty(engine, session, selector, &mut said);
    }
    said
}

/// How a selector is answered.
pub(crate) fn explanation(explain: &Explain) -> String {
    explain.to_json().to_string()
}
