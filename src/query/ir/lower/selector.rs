//! Lowers whole selectors, and the pieces of selectors that do not parse.

use std::ops::Range;

use smallvec::SmallVec;

use super::lowerer::Lowerer;
use crate::query::ir::edition::Edition;
use crate::query::ir::normal::{Observer, normalize};
use crate::query::ir::pattern::Patterns;
use crate::query::ir::purpose::{InsertionPoint, Purpose};
use crate::query::ir::query::SelectorQuery;
use crate::query::syntax::ast::Selector;
use crate::query::syntax::{MAX_MISTAKES, Span};
use crate::support::diag::{Diagnostic, Warning};

#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    pub query: SelectorQuery,
    pub warnings: Vec<Warning>,
    /// Of what is meant as it stands, and may surprise: canonical text has them, too.
    pub remarks: Vec<Warning>,
    /// The byte range of the time, if the selector names one.
    pub time: Option<Range<usize>>,
    /// Where among the children of its nodes; [`InsertionPoint::Into`] unless it is a place.
    pub insertion: InsertionPoint,
}

/// Lowers a syntax tree as a selector of `edition` for `purpose`, showing the passes to `observer`.
///
/// # Errors
/// Every mistake of meaning, at least one; not sorted.
pub(in crate::query::ir) fn lower(
    selector: &Selector<'_>,
    edition: Edition,
    purpose: Purpose,
    observer: Option<Observer<'_>>,
) -> Result<Lowered, Vec<Diagnostic>> {
    let mut lowerer = Lowerer::new(edition, selector.time.is_some());
    lowerer.purpose = purpose;
    let draft = lowerer.selector(selector);
    let Some((query, spans)) = draft.filter(|_| lowerer.errors.is_empty()) else {
        return Err(lowerer.errors);
    };
    let (mut warnings, insertion) = (lowerer.warnings, lowerer.insertion);
    let remarks = lowerer.remarks;
    let query = normalize(query, &spans, &mut warnings, observer);
    if warnings.len() > 1 {
        let start = |warning: &Warning| warning.labels.first().map(|label| label.span.start);
        warnings.sort_by_key(|warning| start(warning).unwrap_or(usize::MAX));
        warnings.dedup();
    }
    let time = selector.time.as_ref().map(|time| time.span.into());
    Ok(Lowered {
        query,
        warnings,
        remarks,
        time,
        insertion,
    })
}

/// Adds the mistakes of meaning in the pieces of a selector that does not parse to `found`.
pub(in crate::query::ir) fn check_pieces(
    pieces: &[Selector<'_>],
    edition: Edition,
    purpose: Purpose,
    found: &mut Vec<Diagnostic>,
) {
    let mut patterns = Patterns::new();
    for piece in pieces {
        if found.len() >= MAX_MISTAKES {
            break;
        }
        // A piece cannot know whether the selector has a time, so this assumes that it does.
        let mut lowerer = Lowerer {
            fragment: true,
            purpose,
            patterns,
            ..Lowerer::new(edition, true)
        };
        let _ = lowerer.selector(piece);
        found.append(&mut lowerer.errors);
        patterns = lowerer.patterns;
    }
    found.truncate(MAX_MISTAKES);
}

/// The query that was meant by a selector with constructs of later editions: those are accepted,
/// and everything means what it does in `edition`.
pub(in crate::query::ir) fn lower_leniently(
    selector: &Selector<'_>,
    edition: Edition,
) -> Option<SelectorQuery> {
    let mut lowerer = Lowerer::new(edition, selector.time.is_some());
    lowerer.lenient = true;
    let (query, spans) = lowerer.selector(selector)?;
    let sound = lowerer.errors.is_empty();
    sound.then(|| normalize(query, &spans, &mut Vec::new(), None))
}

/// Each construct of a selector with its normal form, in text order.
pub(in crate::query::ir) fn notes(
    selector: &Selector<'_>,
    edition: Edition,
) -> Vec<(Span, String)> {
    let mut lowerer = Lowerer::new(edition, selector.time.is_some());
    lowerer.notes = Some(Vec::new());
    let _ = lowerer.selector(selector);
    let mut notes = lowerer.notes.unwrap_or_default();
    notes.sort_by_key(|(span, _)| (span.start, span.end));
    notes
}

impl Lowerer {
    /// The query before normalization, and the spans of its groups.
    fn selector(
        &mut self,
        selector: &Selector<'_>,
    ) -> Option<(SelectorQuery, SmallVec<[Span; 1]>)> {
        let time = self.time(selector.time.as_ref());
        let body = self.body(selector);
        let filters = self.filters(&selector.filters, time);
        let (time, body, filters) = (time?, body?, filters?);
        self.remark_unanswered(time, filters.controls.mode);
        let mut tests = body.filters;
        tests.extend(filters.tests);
        let query = SelectorQuery {
            time,
            chains: body.chains,
            filters: tests,
            controls: filters.controls,
        };
        Some((query, body.spans))
    }
}
