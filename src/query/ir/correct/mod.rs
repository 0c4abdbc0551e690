//! Corrects selectors that were refused (LANGUAGE §11).
//!
//! A refused text is changed round by round: one recognised slip is undone, or the replacements
//! that the errors themselves propose, until the text is a selector. What led there becomes one
//! error with the corrected text in full. No correction is shown that was not parsed and lowered
//! in the same edition.
//!
//! - [`scan`] cuts any text into lexemes.
//! - [`habits`] is the table of what people bring from other languages, and of slips of typing.
//! - [`balance`] finds quotes and brackets without their other half.
//! - [`slip`] is what these find, and how edits are applied and traced back.
//!
//! The module must not know any data, and it runs only after a selector was refused.

mod balance;
mod habits;
mod scan;
mod slip;

use std::cell::Cell;
use std::ops::Range;

use super::advice::elsewhere;
use super::attempt::{attempt, warnings};
use super::edition::Edition;
use crate::query::ir::purpose::Purpose;
use crate::query::ir::query::Attr;
use crate::query::syntax::words::CLASSES;
use crate::support::diag::{Code, Diagnostic};
use scan::{Kind, Scan};
use slip::{Slip, Trail, apply};

/// Longer selectors are not corrected, in bytes: they were not typed.
const LONGEST: usize = 500;

/// The most texts that are tried for one selector, to bound the time.
const MAX_ATTEMPTS: usize = 200;

/// The most slips of one selector.
const MAX_ROUNDS: usize = 12;

/// The most places that one error marks.
const MAX_PLACES: usize = 5;

/// What a correction found, in the order it was found.
#[derive(Default)]
struct Findings {
    slips: Vec<Slip>,
    /// Errors that proposed their own replacements, with their places in the text as typed.
    errors: Vec<Diagnostic>,
}

/// The errors to show for `text`, whose first reading gave `found`: where its mistakes are
/// recognised, one for each, the leftmost with the corrected selector.
pub(super) fn correct(
    text: &str,
    edition: Edition,
    purpose: Purpose,
    found: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    let has = |code: Code| found.iter().any(|one| one.code == Some(code));
    let edition_alone = found.iter().all(|one| one.code == Some(Code::Edition));
    if text.len() > LONGEST || edition_alone || has(Code::Limit) {
        return found;
    }
    // Errors with a code of their own keep it: only their own replacements are made.
    let habitual = has(Code::SelectorInvalid);
    let left = Cell::new(MAX_ATTEMPTS);
    let accept = |text: &str| {
        left.set(left.get().checked_sub(1)?);
        warnings(text, edition, purpose)
    };
    let mut trail = Trail::default();
    let mut findings = Findings::default();
    let mut current = text.to_owned();
    let mut errors = found.clone();
    let mut seen = vec![current.clone()];
    for _ in 0..MAX_ROUNDS {
        if errors.iter().all(|one| one.code == Some(Code::Edition)) {
            break;
        }
        let slip = habitual.then(|| {
            let early = habits::early(&current);
            let repaired = early.or_else(|| balance::repair(&current, &accept));
            repaired.or_else(|| habits::find(&current, edition, &accept))
        });
        let slip = slip.flatten();
        let mut edits = match &slip {
            Some(slip) => slip.edits.clone(),
            None => errors.iter().flat_map(Diagnostic::edits).cloned().collect(),
        };
        let next = apply(&current, &mut edits);
        if seen.contains(&next) {
            break;
        }
        match slip {
            Some(slip) => findings.slips.push(traced(slip, &trail)),
            None => {
                let proposing = errors.iter().filter(|one| !one.edits().is_empty());
                let proposing = proposing.map(|one| moved(one.clone(), &trail));
                findings.errors.extend(proposing);
            }
        }
        trail.push(edits);
        seen.push(next.clone());
        current = next;
        match attempt(&current, edition, purpose, None) {
            Ok(_) => return findings.corrected(text, &current),
            Err(more) => errors = more,
        }
    }
    // Another edition is looked for only for what reads: it would lose an insertion point.
    let reads = (purpose == Purpose::Select).then_some(edition);
    findings.stuck(text, reads, (&current, errors), &trail, found)
}

impl Findings {
    /// Every mistake was undone: the text is now the selector `corrected`.
    fn corrected(self, text: &str, corrected: &str) -> Vec<Diagnostic> {
        let no_equal = self.slips.iter().find_map(|slip| slip.no_equal.clone());
        let mut shown = self.errors;
        shown.extend(joined(self.slips));
        shown.sort_by_key(Diagnostic::start);
        if let Some(first) = shown.first_mut() {
            match no_equal {
                None if invents(text, corrected) => {}
                // White space is left where something was cut out.
                None => first.correct(corrected.trim_ascii()),
                Some(help) => first.set_help(help),
            }
        }
        shown
    }

    /// Something is left: `errors` about the present text.
    fn stuck(
        self,
        text: &str,
        edition: Option<Edition>,
        left: (&str, Vec<Diagnostic>),
        trail: &Trail,
        mut found: Vec<Diagnostic>,
    ) -> Vec<Diagnostic> {
        let (current, mut errors) = left;
        if self.slips.is_empty() {
            name_opener(text, &mut found);
            return found;
        }
        let no_equal = self.slips.iter().find_map(|slip| slip.no_equal.clone());
        let mut shown: Vec<Diagnostic> = joined(self.slips).into_iter().collect();
        // What is left may be a mistake of its own; more than one would be a cascade.
        errors.sort_by_key(Diagnostic::start);
        let edition_alone = errors.iter().all(|one| one.code == Some(Code::Edition));
        let first = shown.first_mut();
        match (first, no_equal, errors.into_iter().next()) {
            (Some(first), Some(help), _) => first.set_help(help),
            (Some(first), None, Some(error)) if edition_alone => match edition {
                Some(edition) => in_edition(first, &error, current, edition),
                None => first.help = error.help,
            },
            (_, _, Some(error)) => shown.push(moved(error, trail)),
            _ => {}
        }
        shown
    }
}

/// Whether `corrected` tests a type or an attribute whose name nobody typed: it would find nothing.
fn invents(text: &str, corrected: &str) -> bool {
    let (typed, scan) = (Scan::new(text), Scan::new(corrected));
    let words = |scan: &Scan<'_>| -> Vec<String> {
        (0..scan.lexemes.len()).map(|at| scan.content(at)).collect()
    };
    let typed = words(&typed);
    (0..scan.lexemes.len()).any(|at| {
        let word = scan.content(at);
        let new = scan.kind(at) == Some(Kind::Word) && !typed.contains(&word);
        let kind = new && scan.outside(at) && at > 0 && scan.word(at - 1) == ".";
        let name = new && scan.starts_prop(at) && scan.bracket(at) != "(";
        let custom = matches!(Attr::from_name(&word), Attr::Custom(_));
        let made = word.starts_with("data_") || matches!(&*word, "ephemeral" | "sticky");
        kind && !CLASSES.contains(&&*word)
            || name
                && custom
                && !made
                && scan
                    .parent(at)
                    .is_some_and(|open| !scan.prev_word(open).ends_with('='))
    })
}

/// The corrected selector as `edition` spells it, or the edition that has its words.
fn in_edition(first: &mut Diagnostic, error: &Diagnostic, current: &str, edition: Edition) {
    if let Some(correction) = error.correction() {
        first.correct(correction);
        return;
    }
    match elsewhere(current, edition) {
        Some((since, Some(text))) => {
            first.set_help(format!("edition `{since}` has it: `{text}`"));
        }
        Some((since, None)) => first.set_help(format!("only edition `{since}` has it")),
        None => {}
    }
}

/// One error for all slips: the leftmost speaks, the others are marked.
fn joined(mut slips: Vec<Slip>) -> Option<Diagnostic> {
    // A slip inside of what an earlier round replaced has the whole of it as its place.
    let inner: Vec<Range<usize>> = slips.iter().map(|slip| slip.span.clone()).collect();
    let holds = |span: &Range<usize>, other: &Range<usize>| {
        span != other && span.start <= other.start && other.end <= span.end
    };
    slips.retain(|slip| !inner.iter().any(|other| holds(&slip.span, other)));
    slips.sort_by_key(|slip| (slip.span.start, slip.span.end));
    let mut slips = slips.into_iter();
    let first = slips.next()?;
    let mut error =
        Diagnostic::error(Code::SelectorInvalid, first.message).at(first.span, first.label);
    let others = slips.map(|slip| (slip.span, slip.label));
    for (span, label) in first.also.into_iter().chain(others) {
        let marked = error.labels.iter().any(|label| label.span == span);
        if !marked && error.labels.len() < MAX_PLACES {
            error = error.at(span, label);
        }
    }
    Some(error)
}

/// The slip with its places in the text as typed.
fn traced(mut slip: Slip, trail: &Trail) -> Slip {
    slip.span = trail.back(&slip.span);
    for (span, _) in &mut slip.also {
        *span = trail.back(span);
    }
    slip
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
    if let Some(last) = last
        && last.labels.len() == 1
    {
        let label = format!("`{sign}` is missing for this");
        let marked = std::mem::replace(last, Diagnostic::error(Code::SelectorInvalid, ""));
        *last = marked.at(span, label);
    }
}
