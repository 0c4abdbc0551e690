//! The entry points that take the text of a selector.

use std::ops::Range;

use super::edition::Edition;
use super::lower::{Lowered, check_pieces, lower, lower_leniently, notes};
use super::normal::Observer;
use super::purpose::Purpose;
use crate::query::syntax;
use crate::support::diag::{Code, Diagnostic, Error};

/// Parses and lowers `text` as a selector of `edition`. Linear in the length of the text, except
/// for sorting tests and lists.
///
/// # Errors
/// All mistakes of form and meaning that could be found, leftmost first (LANGUAGE §10).
pub fn compile(text: &str, edition: Edition) -> Result<Lowered, Error> {
    compile_for(text, edition, Purpose::Select)
}

/// As [`compile`], for a selector that may be part of a mutation. Without a time it then means the
/// working state in every edition.
///
/// # Errors
/// As [`compile`]; for a mutation also a time, and what needs one.
pub fn compile_for(text: &str, edition: Edition, purpose: Purpose) -> Result<Lowered, Error> {
    compile_with(text, edition, purpose, None)
}

/// As [`compile`], showing the query to `observer` after each pass.
///
/// # Errors
/// As [`compile`].
pub fn compile_observed(
    text: &str,
    edition: Edition,
    observer: Observer<'_>,
) -> Result<Lowered, Error> {
    compile_with(text, edition, Purpose::Select, Some(observer))
}

fn compile_with(
    text: &str,
    edition: Edition,
    purpose: Purpose,
    observer: Option<Observer<'_>>,
) -> Result<Lowered, Error> {
    let lowered = match syntax::parse(text) {
        Ok(selector) => lower(&selector, edition, purpose, observer),
        Err(failure) => {
            let errors = failure.errors.iter();
            let mut found: Vec<_> = errors.map(syntax::SyntaxError::to_diagnostic).collect();
            check_pieces(&failure.fragments, edition, purpose, &mut found);
            Err(found)
        }
    };
    lowered.map_err(|diagnostics| {
        Error::from_diagnostics(text, diagnostics).unwrap_or_else(|| {
            // Unreachable: a refused text has at least one diagnostic.
            let unknown = Diagnostic::error(Code::SelectorInvalid, "the selector is invalid");
            Error::new(text, unknown)
        })
    })
}

/// The number of warnings about `text`; `None` if it is refused. Cheaper than [`compile_for`] for a
/// refused text, because it stops at the first mistake.
pub fn accepts(text: &str, edition: Edition, purpose: Purpose) -> Option<usize> {
    let selector = syntax::parse_if_valid(text)?;
    let lowered = lower(&selector, edition, purpose, None).ok()?;
    Some(lowered.warnings.len())
}

/// An edition after `edition` that has all constructs of `text`, and how it spells what `text` means: the
/// text itself, or canonical text where the same text has another meaning there.
pub fn elsewhere(text: &str, edition: Edition) -> Option<(Edition, String)> {
    let selector = syntax::parse(text).ok()?;
    let meant = lower_leniently(&selector, edition)?;
    let later = Edition::ALL.into_iter().filter(|later| *later > edition);
    let (since, read) = later
        .filter_map(|later| Some((later, lower(&selector, later, Purpose::Select, None).ok()?)))
        .next()?;
    Some(if read.query == meant {
        (since, text.to_owned())
    } else {
        (Edition::Canonical, meant.canonical_text())
    })
}

/// A construct next to its normal form (LANGUAGE §9). See the example of [`Explain`](crate::explain::Explain).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Desugared {
    /// As written; empty where nothing was, for an omitted time.
    pub written: String,
    /// Its normal form, as a part of canonical text.
    pub normal: String,
    /// The first byte of it in the selector.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
}

/// The constructs of `text`, a selector of `edition`, whose normal form differs from what is
/// written (LANGUAGE §9), in text order. Quotes and white space do not count as a difference, and
/// what later passes rearrange is not shown. Linear in the length of the text.
///
/// # Errors
/// Every mistake of the selector.
pub fn desugar(text: &str, edition: Edition) -> Result<Vec<Desugared>, Error> {
    compile(text, edition)?;
    let Ok(selector) = syntax::parse(text) else {
        return Ok(Vec::new());
    };
    let sugar = notes(&selector, edition).into_iter();
    let sugar = sugar.filter_map(|(span, normal)| {
        let written = span.slice(text).to_owned();
        let Range { start, end } = span.into();
        (bare(&written) != bare(&normal)).then_some(Desugared {
            written,
            normal,
            start,
            end,
        })
    });
    Ok(sugar.collect())
}

fn bare(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '\'' | '"'))
        .collect()
}
