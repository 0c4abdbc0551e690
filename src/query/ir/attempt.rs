//! One reading of a text: parsed and lowered, or all mistakes that could be found.

use super::advice::advise;
use super::edition::Edition;
use super::lower::{Lowered, check_pieces, lower};
use super::observer::Observer;
use super::purpose::Purpose;
use crate::query::syntax;
use crate::support::diag::{Diagnostic, ToDiagnostic};

/// The number of warnings about `text`, or `None` if it is no selector.
pub(super) fn warnings(text: &str, edition: Edition, purpose: Purpose) -> Option<usize> {
    let selector = syntax::parse_if_valid(text)?;
    let lowered = lower(&selector, edition, purpose, None).ok()?;
    Some(lowered.warnings.len())
}

/// Parses and lowers `text`.
///
/// # Errors
/// All mistakes, not sorted; at least one.
pub(super) fn attempt(
    text: &str,
    edition: Edition,
    purpose: Purpose,
    observer: Option<Observer<'_>>,
) -> Result<Lowered, Vec<Diagnostic>> {
    match syntax::parse(text) {
        Ok(selector) => lower(&selector, edition, purpose, observer).map_err(|mut diagnostics| {
            // Rewriting a place would lose its insertion point.
            if purpose == Purpose::Select {
                advise(&selector, edition, &mut diagnostics);
            }
            diagnostics
        }),
        Err(failure) => {
            let errors = failure.errors.iter();
            let mut found: Vec<Diagnostic> = errors.map(ToDiagnostic::to_diagnostic).collect();
            check_pieces(&failure.fragments, edition, purpose, &mut found);
            Err(found)
        }
    }
}
