//! A mistake that was recognised, the edits that undo it, and how places are traced back through edits.

use std::borrow::Cow;
use std::ops::Range;

use crate::support::diag::SelectorEdit;

/// Reads a text as a selector: the number of warnings, or `None` if it is refused.
pub(super) type Accept<'a> = &'a dyn Fn(&str) -> Option<usize>;

/// A recognised mistake.
#[derive(Clone, Debug)]
pub(super) struct Slip {
    /// Its places with remarks, the main one first.
    pub(super) places: Vec<(Range<usize>, String)>,
    /// What was expected.
    pub(super) message: String,
    /// What to write instead.
    pub(super) edits: Vec<SelectorEdit>,
    /// Why the language has nothing that means the same. The edits then only take the construct out, so
    /// that the rest can be checked, and no corrected selector is shown.
    pub(super) no_equal: Option<Cow<'static, str>>,
}

impl Slip {
    pub(super) fn new(
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        Self {
            places: vec![(span, label.into())],
            message: message.into(),
            edits: Vec::new(),
            no_equal: None,
        }
    }

    pub(super) fn write(mut self, span: Range<usize>, text: impl Into<String>) -> Self {
        self.edits.push(SelectorEdit::new(span, text));
        self
    }

    pub(super) fn and_at(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.places.push((span, label.into()));
        self
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.places.first().map_or(0..0, |(span, _)| span.clone())
    }
}

/// `text` with the edits applied. Of two that overlap, the later one is dropped.
pub(super) fn apply(text: &str, edits: &mut Vec<SelectorEdit>) -> String {
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let mut end = 0;
    edits.retain(|edit| {
        let fits = edit.span.start >= end && text.get(edit.span.clone()).is_some();
        if fits {
            end = edit.span.end;
        }
        fits
    });
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for edit in edits.iter() {
        out.push_str(text.get(at..edit.span.start).unwrap_or_default());
        out.push_str(&edit.text);
        at = edit.span.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// The edits that led from the text as typed to the present one, round by round.
#[derive(Default)]
pub(super) struct Trail(Vec<Vec<SelectorEdit>>);

impl Trail {
    /// Adds a round of edits, sorted and without overlaps.
    pub(super) fn push(&mut self, edits: Vec<SelectorEdit>) {
        self.0.push(edits);
    }

    /// Where a place of the present text was in the text as typed.
    pub(super) fn back(&self, span: &Range<usize>) -> Range<usize> {
        let (mut start, mut end) = (span.start, span.end);
        for edits in self.0.iter().rev() {
            start = before(edits, start, true);
            end = before(edits, end, false).max(start);
        }
        start..end
    }
}

/// The offset `at` before `edits`; inside of a replacement, its start or its end.
fn before(edits: &[SelectorEdit], at: usize, to_start: bool) -> usize {
    let (mut removed, mut added) = (0, 0);
    for edit in edits {
        let start = edit.span.start + added - removed;
        let end = start + edit.text.len();
        if at < start || (at == start && !to_start) {
            break;
        }
        if at < end || (at == end && !to_start) {
            return if to_start {
                edit.span.start
            } else {
                edit.span.end
            };
        }
        removed += edit.span.len();
        added += edit.text.len();
    }
    at + removed - added
}

#[cfg(test)]
mod tests {
    use super::{Trail, apply};
    use crate::support::diag::SelectorEdit;

    #[test]
    fn places_are_found_again_after_edits() {
        let text = "a==b && c";
        let mut edits = vec![SelectorEdit::new(5..7, "and"), SelectorEdit::new(1..3, "=")];
        let changed = apply(text, &mut edits);
        assert_eq!(changed, "a=b and c");
        let mut trail = Trail::default();
        trail.push(edits);
        for (now, then) in [(0..1, 0..1), (1..2, 1..3), (4..7, 5..7), (8..9, 8..9)] {
            assert_eq!(trail.back(&now), then, "{now:?}");
        }
    }
}
