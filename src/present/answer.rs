//! Answers as JSON: one value on one line, in the bytes that every asker gets.

use super::{Exit, Failure};
use crate::engine::{Explain, Selection};
use serde::Serialize;

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
pub(crate) fn selection(selection: &Selection) -> Result<String, Failure> {
    match selection.range_diff() {
        Some(diff) => json(diff),
        None => json(&selection.to_ids()),
    }
}

/// How a selector is answered.
pub(crate) fn explanation(explain: &Explain) -> String {
    explain.to_json().to_string()
}
