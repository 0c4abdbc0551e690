//! Lowering: from the syntax tree of one edition to the normalized form of all.
//!
//! Here a selector gets its meaning: words are resolved, sugar is expanded, and whatever has no
//! meaning is refused, all mistakes of a selector at once. What an edition does not have is
//! refused by name ([`Code::Edition`]). The draft that comes out is then normalized by the
//! passes of [`super::normal`].

mod advice;
mod attrs;
mod body;
mod controls;
mod depths;
mod position;
mod step;
mod sugar;
mod time;

use std::ops::Range;

use crate::diag::{Code, Diagnostic, Error, ToDiagnostic, Warning};
use crate::syntax::ast::Selector;
use crate::syntax::{self, Span};

use super::normal::{self, Draft};
use super::pattern::Patterns;
use super::{Edition, Query};

pub(super) use step::near_pseudo;
pub use sugar::{Sugar, desugar};

/// The most groups a union may have (LANGUAGE §10).
pub const MAX_GROUPS: usize = 256;
/// The most steps a group, or hops a position, may have.
pub const MAX_STEPS: usize = 64;
/// The most values a list or depth set may have, as written.
pub const MAX_VALUES: usize = 1_024;

/// A normalized selector, and what its reader should know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    /// The selector.
    pub query: Query,
    /// Remarks, in the order of their places.
    pub warnings: Vec<Warning>,
    /// Where in the text its time stands, if it names one.
    pub time: Option<Range<usize>>,
}

/// Sees the query after lowering (`"lower"`) and after each normalization pass, by name.
pub type Observer<'a> = &'a mut dyn FnMut(&'static str, &Query);

/// Parses and lowers `text` as a selector of `edition`. Linear in the length of the text, but
/// for the sorting of tests and lists.
///
/// # Errors
/// Every mistake that could be told apart, those of form and those of meaning, leftmost first
/// (LANGUAGE §10).
pub fn compile(text: &str, edition: Edition) -> Result<Lowered, Error> {
    compile_with(text, edition, None)
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
    compile_with(text, edition, Some(observer))
}

fn compile_with(
    text: &str,
    edition: Edition,
    observer: Option<Observer<'_>>,
) -> Result<Lowered, Error> {
    let diagnostics = match syntax::parse(text) {
        Ok(selector) => match lower_with(&selector, edition, observer) {
            Ok(lowered) => return Ok(lowered),
            Err(mut diagnostics) => {
                advice::advise(&selector, edition, &mut diagnostics);
                diagnostics
            }
        },
        Err(failure) => {
            let mut found: Vec<Diagnostic> = failure
                .errors
                .iter()
                .map(ToDiagnostic::to_diagnostic)
                .collect();
            // What the pieces mean may be wrong too; say so in one go. Whether there is a time
            // is not known to a piece, so that is taken for granted.
            let mut patterns = Patterns::new();
            for fragment in &failure.fragments {
                if found.len() >= syntax::MAX_MISTAKES {
                    break;
                }
                let mut lowerer = Lowerer::new(edition, true);
                lowerer.fragment = true;
                lowerer.patterns = patterns;
                let _ = lowerer.selector(fragment);
                found.append(&mut lowerer.errors);
                patterns = lowerer.patterns;
            }
            found.truncate(syntax::MAX_MISTAKES);
            found
        }
    };
    match Error::from_diagnostics(text, diagnostics) {
        Some(error) => Err(error),
        // Both arms above hold at least one diagnostic.
        None => Err(Error::new(
            text,
            Diagnostic::error(Code::SelectorInvalid, "the selector is invalid"),
        )),
    }
}

/// The query that `text` is in `edition`, if it is one. Says nothing of mistakes.
pub(super) fn read(text: &str, edition: Edition) -> Option<Query> {
    let selector = syntax::parse(text).ok()?;
    let lowered = lower(&selector, edition).ok()?;
    Some(lowered.query)
}

/// Lowers a syntax tree as a selector of `edition`.
///
/// # Errors
/// Every mistake of meaning, at least one; not sorted.
pub fn lower(selector: &Selector<'_>, edition: Edition) -> Result<Lowered, Vec<Diagnostic>> {
    lower_with(selector, edition, None)
}

fn lower_with(
    selector: &Selector<'_>,
    edition: Edition,
    observer: Option<Observer<'_>>,
) -> Result<Lowered, Vec<Diagnostic>> {
    let mut lowerer = Lowerer::new(edition, selector.time.is_some());
    let draft = lowerer.selector(selector);
    let Some(draft) = draft.filter(|_| lowerer.errors.is_empty()) else {
        return Err(lowerer.errors);
    };
    let mut warnings = lowerer.warnings;
    let query = normal::normalize(draft, &mut warnings, observer);
    if warnings.len() > 1 {
        warnings.sort_by_key(|warning| {
            warning
                .labels
                .first()
                .map_or(usize::MAX, |label| label.span.start)
        });
        warnings.dedup();
    }
    let time = selector.time.as_ref().map(|time| time.span.into());
    Ok(Lowered {
        query,
        warnings,
        time,
    })
}

/// The state of one lowering. Each room adds methods to it; those that find a mistake record it
/// and return `None`, and their callers go on to find more.
struct Lowerer {
    edition: Edition,
    /// Whether the selector names its time, which facets need.
    timed: bool,
    /// Whether this is a piece of a selector that did not parse.
    fragment: bool,
    /// Whether later editions' constructs are let in, to see what was meant.
    lenient: bool,
    /// What constructs stand for, where anyone asked.
    notes: Option<Vec<(Span, String)>>,
    /// The patterns of the whole selector, for what they take together.
    patterns: Patterns,
    /// At most [`syntax::MAX_MISTAKES`]; those beyond are not told.
    errors: Vec<Diagnostic>,
    warnings: Vec<Warning>,
}

impl Lowerer {
    fn new(edition: Edition, timed: bool) -> Self {
        Self {
            edition,
            timed,
            fragment: false,
            lenient: false,
            notes: None,
            patterns: Patterns::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Records an error of meaning and returns it for a help line.
    fn invalid(&mut self, span: Span, message: impl Into<String>, label: &str) -> Advice<'_> {
        self.error(Code::SelectorInvalid, span, message, label)
    }

    fn error(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        label: &str,
    ) -> Advice<'_> {
        if self.errors.len() >= syntax::MAX_MISTAKES {
            return Advice(None);
        }
        let range: Range<usize> = span.into();
        self.errors
            .push(Diagnostic::error(code, message).at(range, label));
        Advice(self.errors.last_mut())
    }

    /// Refuses `what` unless the edition is at least `since`. `instead` is the same thing in
    /// words the edition has, where there are any.
    fn needs(&mut self, since: Edition, span: Span, what: &str, instead: Option<String>) -> bool {
        if self.edition >= since || self.lenient {
            return true;
        }
        let advice = self.lacks(since, span, what);
        match instead {
            Some(instead) => advice.help(format!("write `{instead}`, or choose edition `{since}`")),
            None => advice.help(format!("edition `{since}` has it")),
        }
        false
    }

    /// Refuses `what`, which the edition does not have and `since` has.
    fn lacks(&mut self, since: Edition, span: Span, what: &str) -> Advice<'_> {
        let edition = self.edition;
        self.error(
            Code::Edition,
            span,
            format!("{what} is not part of edition `{edition}`"),
            &format!("needs edition `{since}`"),
        )
    }

    fn warn(&mut self, span: Span, message: impl Into<String>, label: &str) -> &mut Self {
        let range: Range<usize> = span.into();
        self.warnings.push(Warning::new(message).at(range, label));
        self
    }

    /// Sets the help of the warning recorded last.
    fn hint(&mut self, help: impl Into<String>) {
        if let Some(last) = self.warnings.last_mut() {
            last.set_help(help);
        }
    }

    fn selector(&mut self, selector: &Selector<'_>) -> Option<Draft> {
        let time = self.time(selector.time.as_ref());
        let body = self.body(selector);
        let filters = self.filters(&selector.filters, time);
        let (time, body, filters) = (time?, body?, filters?);
        let mut tests = body.filters;
        tests.extend(filters.tests);
        Some(Draft {
            time,
            chains: body.chains,
            filters: tests,
            controls: filters.controls,
        })
    }
}

/// The error recorded last, for its help line.
struct Advice<'a>(Option<&'a mut Diagnostic>);

impl Advice<'_> {
    fn help(self, help: impl Into<String>) {
        if let Some(diagnostic) = self.0 {
            diagnostic.set_help(help);
        }
    }
}
