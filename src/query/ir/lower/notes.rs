//! Notes the normal form of each construct during lowering, so that a listing of sugar cannot
//! differ from what lowering does.

use super::lowerer::Lowerer;
use crate::query::ir::query::{NodeStep, PickOrTest, Test};
use crate::query::syntax::Span;
use crate::query::syntax::ast::Brackets;

impl Lowerer {
    /// Notes the normal form of the construct at `span`, if notes were requested.
    pub(super) fn note(&mut self, span: Span, normal: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push((span, normal()));
        }
    }

    pub(super) fn noted(&self) -> usize {
        self.notes.as_ref().map_or(0, Vec::len)
    }

    /// Drops the notes from index `from` on: those of parts of what is noted as a whole.
    pub(super) fn forget_notes(&mut self, from: usize) {
        if let Some(notes) = &mut self.notes {
            notes.truncate(from);
        }
    }

    /// Replaces the notes from index `from` on, which are about parts, by one about the whole.
    pub(super) fn note_whole(&mut self, from: usize, span: Span, normal: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.truncate(from);
            notes.push((span, normal()));
        }
    }
}

pub(super) fn in_step(tests: &[Test], tail: &[PickOrTest]) -> String {
    // A part of a step, which as a step would mean `depth(…)`.
    if let ([Test::Depth(set)], []) = (tests, tail) {
        return format!(":depth({set})");
    }
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

/// Tests over the final set, in brackets of the given form.
pub(super) fn in_list(form: Brackets, tests: &[Test]) -> String {
    let texts = tests.iter().filter_map(Test::attr).map(ToString::to_string);
    let texts = texts.collect::<Vec<_>>().join(", ");
    match form {
        Brackets::Bracket => format!("[{texts}]"),
        Brackets::Brace | Brackets::Group => format!("{{{texts}}}"),
    }
}
