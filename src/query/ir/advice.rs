//! Help for selectors that are refused only because of their edition: the edition that has all of their
//! constructs, and the selector as that edition spells it where the same text has another meaning there
//! (LANGUAGE §10).

use super::edition::Edition;
use super::lower::{lower, lower_leniently};
use super::purpose::Purpose;
use super::query::Query;
use crate::query::syntax;
use crate::query::syntax::ast::Selector;
use crate::support::diag::{Code, Diagnostic};

/// The length limit of a selector in a help text, in bytes.
const LONGEST: usize = 160;

/// Puts the rewritten selector into the help of the leftmost error, if every error is about the
/// edition, and the text as it is means something else in the edition that has it.
pub(super) fn advise(selector: &Selector<'_>, edition: Edition, errors: &mut [Diagnostic]) {
    if errors.iter().any(|error| error.code != Some(Code::Edition)) {
        return;
    }
    let Some(meant) = lower_leniently(selector, edition) else {
        return;
    };
    let first = errors.iter_mut().min_by_key(|error| error.start());
    // Otherwise the help about the construct, which names an edition, is enough.
    if let (Some(first), Some((since, Some(text)))) = (first, later(selector, edition, &meant)) {
        first.set_help(format!("edition `{since}` has it: `{text}`"));
    }
}

/// The oldest later edition that has all constructs; if the text has another meaning there, the canonical
/// edition with the canonical text.
fn later(
    selector: &Selector<'_>,
    edition: Edition,
    meant: &Query,
) -> Option<(Edition, Option<String>)> {
    let (since, read) = Edition::ALL
        .into_iter()
        .filter(|later| *later > edition)
        .find_map(|later| {
            let lowered = lower(selector, later, Purpose::Select, None).ok()?;
            Some((later, lowered.query))
        })?;
    if read == *meant {
        return Some((since, None));
    }
    let text = meant.canonical_text();
    (text.len() <= LONGEST).then_some((Edition::Canonical, Some(text)))
}

/// The oldest later edition that has all constructs of `text`, and how it spells what `text` means
/// in `edition`; no text if that is too long.
pub(super) fn elsewhere(text: &str, edition: Edition) -> Option<(Edition, Option<String>)> {
    let selector = syntax::parse(text).ok()?;
    let meant = lower_leniently(&selector, edition)?;
    if let Some((since, there)) = later(&selector, edition, &meant) {
        return Some((since, Some(there.unwrap_or_else(|| text.to_owned()))));
    }
    let mut editions = Edition::ALL.into_iter().filter(|later| *later > edition);
    let since = editions.find(|later| lower(&selector, *later, Purpose::Select, None).is_ok())?;
    Some((since, None))
}
