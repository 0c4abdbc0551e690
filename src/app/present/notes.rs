//! Notes on answers: on empty ones (LANGUAGE §10).

use crate::advice::EmptyReason;
use crate::support::text::printable;
use serde_json::json;
use std::fmt::Write;

/// Why an answer is empty: a line each, or one line of JSON with the fields of each reason and its text.
pub(crate) fn of_empty(why: Vec<EmptyReason>, as_json: bool, out: &mut String) {
    if !as_json {
        for reason in why {
            let _ = writeln!(out, "note: {}", printable(&reason.to_string()));
        }
        return;
    }
    let note = |reason: EmptyReason| {
        let mut note = json!(reason);
        note["message"] = reason.to_string().into();
        note
    };
    let notes: Vec<_> = why.into_iter().map(note).collect();
    if !notes.is_empty() {
        let _ = writeln!(out, "{}", json!({ "notes": notes }));
    }
}
