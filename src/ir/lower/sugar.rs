//! Sugar next to its normal form, for readers: what each construct of a selector stands for.
//!
//! Lowering notes it as it goes, so that nothing here can say anything else than what happened.

use std::ops::Range;

use crate::diag::Error;
use crate::syntax::ast::Form;
use crate::syntax::{self, Span};

use super::super::{Edition, NodeStep, Tail, Test};
use super::{Lowerer, compile};

/// A construct and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sugar {
    /// Where it was written, in bytes; empty where nothing was, as for an omitted time.
    pub span: Range<usize>,
    /// As written.
    pub written: String,
    /// The same in the normal form, as a part of canonical text.
    pub normal: String,
}

/// What stands in `text`, a selector of `edition`, for something else in the normal form
/// (LANGUAGE §9), in the order written. Quotes and white space are no sugar; how the passes
/// behind lowering arrange the whole is not told here. Linear in the length of the text.
///
/// # Errors
/// Every mistake of the selector.
pub fn desugar(text: &str, edition: Edition) -> Result<Vec<Sugar>, Error> {
    compile(text, edition)?;
    let Ok(selector) = syntax::parse(text) else {
        return Ok(Vec::new());
    };
    let mut lowerer = Lowerer::new(edition, selector.time.is_some());
    lowerer.notes = Some(Vec::new());
    let _ = lowerer.selector(&selector);
    let mut notes = lowerer.notes.unwrap_or_default();
    notes.sort_by_key(|(span, _)| (span.start, span.end));
    let sugar = notes.into_iter().filter_map(|(span, normal)| {
        let written = span.slice(text).to_owned();
        (bare(&written) != bare(&normal)).then(|| Sugar {
            span: span.into(),
            written,
            normal,
        })
    });
    Ok(sugar.collect())
}

/// `text` without what may be written in several ways and means nothing.
fn bare(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '\'' | '"'))
        .collect()
}

impl Lowerer {
    /// Notes what the construct at `span` stands for, if anyone asked.
    pub(super) fn note(&mut self, span: Span, normal: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push((span, normal()));
        }
    }

    /// How many notes there are.
    pub(super) fn noted(&self) -> usize {
        self.notes.as_ref().map_or(0, Vec::len)
    }

    /// Notes what a whole is, instead of its parts, which are the notes from `from` on.
    pub(super) fn note_whole(&mut self, from: usize, span: Span, normal: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.truncate(from);
            notes.push((span, normal()));
        }
    }
}

/// Tests and picks as they stand in a step.
pub(super) fn in_step(tests: &[Test], tail: &[Tail]) -> String {
    let step = NodeStep {
        tests: tests.into(),
        tail: tail.into(),
    };
    let text = step.to_string();
    match text.strip_prefix('*') {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => text,
    }
}

/// Tests over the final set, in the brackets they were written in.
pub(super) fn in_list(form: Form, tests: &[Test]) -> String {
    let texts: Vec<String> = tests
        .iter()
        .filter_map(|test| match test {
            Test::Attr(test) => Some(test.to_string()),
            Test::Type(_) | Test::Depth(_) => None,
        })
        .collect();
    let texts = texts.join(", ");
    match form {
        Form::Bracket => format!("[{texts}]"),
        Form::Brace | Form::Group => format!("{{{texts}}}"),
    }
}
