//! Corrects a refused selector round by round (LANGUAGE §11).
//!
//! Each round undoes one recognised slip, or makes the replacements that the errors themselves propose,
//! until the text is a selector. What led there becomes one error with the corrected text in full. No
//! correction is shown that did not compile in the same edition.

use std::cell::Cell;
use std::ops::Range;

use super::slip::{Slip, Trail, apply};
use super::{balance, table};
use crate::query::ir::{Edition, Purpose, accepts, compile_for, elsewhere};
use crate::support::diag::{Code, Diagnostic, Error, Warning};

/// Longer selectors are not corrected, in bytes: they were not typed.
const LONGEST: usize = 500;

/// The length limit of a selector in a help text, in bytes.
const LONGEST_SAID: usize = 160;

/// The most texts that are tried for one selector, to bound the time.
const MAX_ATTEMPTS: usize = 200;

/// The most slips of one selector.
const MAX_ROUNDS: usize = 12;

/// The most places that one error marks.
const MAX_PLACES: usize = 5;

/// The error to show for a refused selector: where its mistakes are recognised, one for all, with the
/// corrected selector.
#[must_use]
pub fn correct(refused: Error, edition: Edition, purpose: Purpose) -> Error {
    let mut found: Vec<Diagnostic> = refused.diagnostics().cloned().collect();
    let text = refused.text();
    if text.len() > LONGEST || has(&found, Code::Limit) {
        return refused;
    }
    if only_edition(&found) {
        // The help about the construct names an edition, which is enough if that reads the text so.
        let help = in_later(text, edition, purpose).filter(|(same, _)| !same);
        if let (Some(first), Some((_, help))) = (found.first_mut(), help) {
            first.set_help(help);
        }
    } else {
        found = CorrectionAttempt::new(text).run(edition, purpose, found);
    }
    Error::from_diagnostics(text, found).unwrap_or(refused)
}

/// Which later edition has the constructs of `text`, with the text there if it is short; and whether that adds
/// nothing to the name of the edition. Other
/// editions are looked for only for what reads: a place would lose its insertion point.
fn in_later(text: &str, edition: Edition, purpose: Purpose) -> Option<(bool, String)> {
    if purpose != Purpose::Select {
        return None;
    }
    let (since, there) = elsewhere(text, edition)?;
    if there.len() > LONGEST_SAID {
        return Some((true, format!("only edition `{since}` has it")));
    }
    Some((
        there == text,
        format!("edition `{since}` has it: `{there}`"),
    ))
}

fn has(found: &[Diagnostic], code: Code) -> bool {
    found.iter().any(|one| one.code == Some(code))
}

fn only_edition(found: &[Diagnostic]) -> bool {
    found.iter().all(|one| one.code == Some(Code::Edition))
}

/// A correction in progress.
struct CorrectionAttempt<'t> {
    text: &'t str,
    trail: Trail,
    slips: Vec<Slip>,
    /// Errors that proposed their own replacements, with their places in the text as typed.
    errors: Vec<Diagnostic>,
}

impl<'t> CorrectionAttempt<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            trail: Trail::default(),
            slips: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// The errors to show; `found` are those of the text as it was given.
    fn run(
        mut self,
        edition: Edition,
        purpose: Purpose,
        found: Vec<Diagnostic>,
    ) -> Vec<Diagnostic> {
        // Errors with a code of their own keep it: only their own replacements are made.
        let habitual = has(&found, Code::SelectorInvalid);
        let left = Cell::new(MAX_ATTEMPTS);
        let accept = |text: &str| {
            left.set(left.get().checked_sub(1)?);
            accepts(text, edition, purpose)
        };
        let mut seen = vec![self.text.to_owned()];
        let mut current = self.text.to_owned();
        let mut errors = found.clone();
        for _ in 0..MAX_ROUNDS {
            if only_edition(&errors) {
                break;
            }
            let slip = habitual.then(|| {
                let repaired = balance::repair(&current, &accept);
                repaired.or_else(|| table::find(&current, edition, &accept))
            });
            let slip = slip.flatten();
            if let Some(slip) = slip.clone().filter(|slip| slip.no_equal.is_some()) {
                let help = slip.no_equal.clone();
                self.note(Some(slip), &[]);
                return self.refused(help.as_deref());
            }
            let mut edits = match &slip {
                Some(slip) => slip.edits.clone(),
                None => errors.iter().flat_map(Diagnostic::edits).cloned().collect(),
            };
            let next = apply(&current, &mut edits);
            if seen.contains(&next) {
                break;
            }
            self.note(slip, &errors);
            self.trail.push(edits);
            seen.push(next.clone());
            current = next;
            match compile_for(&current, edition, purpose) {
                Ok(lowered) => {
                    let mut warnings = lowered.warnings.iter();
                    let never =
                        warnings.find(|warning| warning.message.contains(" matches nothing"));
                    return self.corrected(&current, never);
                }
                Err(more) => errors = more.diagnostics().cloned().collect(),
            }
        }
        let later = in_later(&current, edition, purpose).map(|(_, help)| help);
        self.stuck(errors, found, later)
    }

    /// Keeps what a round undid: a slip, else the errors that proposed replacements.
    fn note(&mut self, slip: Option<Slip>, errors: &[Diagnostic]) {
        let Some(mut slip) = slip else {
            let proposing = errors.iter().filter(|one| !one.edits().is_empty());
            let proposing = proposing.map(|one| moved(one.clone(), &self.trail));
            self.errors.extend(proposing);
            return;
        };
        for (span, _) in &mut slip.places {
            *span = self.trail.back(span);
        }
        self.slips.push(slip);
    }

    /// Every mistake was undone: the text is now the selector `corrected`. `never` is the warning that no node matches it.
    fn corrected(self, corrected: &str, never: Option<&Warning>) -> Vec<Diagnostic> {
        let mut shown = self.errors;
        shown.extend(joined(self.slips));
        shown.sort_by_key(Diagnostic::start);
        // White space is left where something was cut out.
        let corrected = corrected.trim_ascii();
        match (shown.first_mut(), never) {
            (Some(first), Some(never)) => {
                let why = [Some(&never.message), never.help.as_ref()];
                let why: Vec<&str> = why.into_iter().flatten().map(String::as_str).collect();
                first.set_help(format!("it would be `{corrected}`, but {}", why.join("; ")));
            }
            (Some(first), None) => first.correct(corrected),
            (None, _) => {}
        }
        shown
    }

    /// Nothing in the language means the same as the last slip.
    fn refused(self, help: Option<&str>) -> Vec<Diagnostic> {
        let mut error = joined(self.slips);
        if let (Some(error), Some(help)) = (&mut error, help) {
            error.set_help(help);
        }
        error.into_iter().collect()
    }

    /// `errors` about the present text are left; `found` were those of the text as typed. If only the
    /// edition lacks something, `later` says where the present text is a selector.
    fn stuck(
        self,
        mut errors: Vec<Diagnostic>,
        mut found: Vec<Diagnostic>,
        later: Option<String>,
    ) -> Vec<Diagnostic> {
        let Some(mut slip) = joined(self.slips) else {
            name_opener(self.text, &mut found);
            return found;
        };
        errors.sort_by_key(Diagnostic::start);
        let edition = only_edition(&errors);
        // What is left may be a mistake of its own; more than one would be a cascade.
        let left = errors.into_iter().next();
        if edition {
            slip.help = later.or_else(|| left.and_then(|left| left.help));
            return vec![slip];
        }
        let left = left.map(|left| moved(left, &self.trail));
        std::iter::once(slip).chain(left).collect()
    }
}

/// One error for all slips: the leftmost speaks, the others are marked.
fn joined(mut slips: Vec<Slip>) -> Option<Diagnostic> {
    // A slip inside of what an earlier round replaced has the whole of it as its place.
    let inner: Vec<Range<usize>> = slips.iter().map(Slip::span).collect();
    let holds = |span: &Range<usize>, other: &Range<usize>| {
        span != other && span.start <= other.start && other.end <= span.end
    };
    slips.retain(|slip| !inner.iter().any(|other| holds(&slip.span(), other)));
    slips.sort_by_key(|slip| (slip.span().start, slip.span().end));
    let message = slips.first()?.message.clone();
    let mut error = Diagnostic::error(Code::SelectorInvalid, message);
    for (span, label) in slips.into_iter().flat_map(|slip| slip.places) {
        let marked = error.labels.iter().any(|label| label.span == span);
        if !marked && error.labels.len() < MAX_PLACES {
            error = error.at(span, label);
        }
    }
    Some(error)
}

/// The error with its places in the text as typed.
fn moved(mut error: Diagnostic, trail: &Trail) -> Diagnostic {
    for label in &mut error.labels {
        label.span = trail.back(&label.span);
    }
    error
}

/// Marks the bracket or quote that was never closed, where the text ends too early.
fn name_opener(text: &str, found: &mut [Diagnostic]) {
    let Some((span, sign)) = balance::unclosed(text) else {
        return;
    };
    let at_end = |span: &Range<usize>| span.end >= text.trim_end().len();
    let last = found
        .iter_mut()
        .rfind(|one| one.labels.first().is_some_and(|label| at_end(&label.span)));
    if let Some(last) = last.filter(|last| last.labels.len() == 1) {
        let label = format!("`{sign}` is missing for this");
        *last = last.clone().at(span, label);
    }
}
