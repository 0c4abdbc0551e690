//! Advice where a selector is refused for its edition alone: the whole selector in words the
//! edition has, or in the words of the edition that has it all (LANGUAGE §10).

use crate::diag::{Code, Diagnostic};
use crate::syntax::ast::Selector;

use super::super::{Edition, Query, normal};
use super::{Lowerer, lower};

/// The longest selector that goes into a line of advice, in bytes.
const LONGEST: usize = 160;

/// Puts the rewritten selector into the help of the leftmost error, where every error is about
/// the edition.
///
/// What was meant is read as `edition` reads it (an omitted time, `#x`, `.cb:sub`), with the
/// constructs of later editions let in.
pub(super) fn advise(selector: &Selector<'_>, edition: Edition, errors: &mut [Diagnostic]) {
    if errors.iter().any(|error| error.code != Some(Code::Edition)) {
        return;
    }
    let Some(meant) = leniently(selector, edition) else {
        return;
    };
    let Some(first) = errors.iter_mut().min_by_key(|error| error.start()) else {
        return;
    };
    let later = later(selector, edition, &meant);
    let said = meant.text_in(edition).ok();
    let said = said.filter(|text| text.len() <= LONGEST);
    let elsewhere = match &later {
        Some(Later { since, text: None }) => Some(format!("choose edition `{since}`")),
        // The same words would do there too.
        Some(Later { text, .. }) if *text == said => None,
        Some(Later {
            since,
            text: Some(text),
        }) => Some(format!("in edition `{since}` `{text}`")),
        None => None,
    };
    match (said, elsewhere, later) {
        (Some(text), Some(elsewhere), _) => {
            first.set_help(format!("write `{text}`, or {elsewhere}"));
        }
        (Some(text), None, _) => first.set_help(format!("write `{text}`")),
        (
            None,
            _,
            Some(Later {
                since,
                text: Some(text),
            }),
        ) => first.set_help(format!("edition `{since}` has it: `{text}`")),
        // What was said of the construct stands.
        (None, ..) => {}
    }
}

/// The selector in a later edition.
struct Later {
    since: Edition,
    /// Its words there; none where they can stay.
    text: Option<String>,
}

/// The oldest later edition that has everything.
fn later(selector: &Selector<'_>, edition: Edition, meant: &Query) -> Option<Later> {
    let (since, read) = Edition::ALL
        .into_iter()
        .filter(|later| *later > edition)
        .find_map(|later| Some((later, lower(selector, later).ok()?.query)))?;
    if read == *meant {
        return Some(Later { since, text: None });
    }
    // The same words mean something else there.
    let (since, text) = match meant.text_in(since) {
        Ok(text) => (since, text),
        Err(_) => (Edition::Canonical, meant.canonical_text()),
    };
    (text.len() <= LONGEST).then_some(Later {
        since,
        text: Some(text),
    })
}

/// The query that was meant, with the constructs of every edition and the meanings of one.
fn leniently(selector: &Selector<'_>, edition: Edition) -> Option<Query> {
    let mut lowerer = Lowerer::new(edition, selector.time.is_some());
    lowerer.lenient = true;
    let draft = lowerer.selector(selector)?;
    lowerer
        .errors
        .is_empty()
        .then(|| normal::normalize(draft, &mut Vec::new(), None))
}
