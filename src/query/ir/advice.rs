//! Help for selectors that are refused only because of their edition: the whole selector as the
//! edition spells it, or as the edition that has all its constructs does (LANGUAGE §10).

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
/// edition. Omitted times, `#x` and `.cb:sub` keep their meaning in `edition`.
pub(super) fn advise(selector: &Selector<'_>, edition: Edition, errors: &mut [Diagnostic]) {
    if errors.iter().any(|error| error.code != Some(Code::Edition)) {
        return;
    }
    let Some(meant) = lower_leniently(selector, edition) else {
        return;
    };
    let Some(first) = errors.iter_mut().min_by_key(|error| error.start()) else {
        return;
    };
    let later = later(selector, edition, &meant);
    let here = meant.text_in(edition).ok();
    let here = here.filter(|text| text.len() <= LONGEST);
    let correction = here.clone();
    let help = match (here, later) {
        // The text of this edition is also valid in the later one.
        (Some(text), Some((_, there))) if there.as_ref() == Some(&text) => {
            format!("write `{text}`")
        }
        (Some(text), Some((since, None))) => {
            format!("write `{text}`, or choose edition `{since}`")
        }
        (Some(text), Some((since, Some(there)))) => {
            format!("write `{text}`, or in edition `{since}` `{there}`")
        }
        (Some(text), None) => format!("write `{text}`"),
        (None, Some((since, Some(there)))) => format!("edition `{since}` has it: `{there}`"),
        // The help about the construct remains.
        (None, _) => return,
    };
    if let Some(correction) = &correction {
        first.correct(correction);
    }
    first.set_help(help);
}

/// The oldest later edition that has all constructs, and the text there; `None` for the text if
/// it can stay as it is.
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
    // The same text has another meaning there.
    let (since, text) = match meant.text_in(since) {
        Ok(text) => (since, text),
        Err(_) => (Edition::Canonical, meant.canonical_text()),
    };
    (text.len() <= LONGEST).then_some((since, Some(text)))
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
