//! Constructors for the actions of the grammar.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::ast::{
    Attrs, Axis, Filter, GroupSyntax, Hop, HopHead, HopPart, PositionSyntax, StepPart, StepSyntax,
};
use super::span::{Span, Spanned};

/// A part; for a type, also the group of properties after it.
pub(super) type PartAndBrackets<'s> = (Spanned<StepPart<'s>>, Option<Spanned<StepPart<'s>>>);

pub(super) fn group(step: StepSyntax<'_>) -> GroupSyntax<'_> {
    // Most groups have a few steps, and growing one at a time costs more than spare capacity.
    let mut steps = Vec::with_capacity(4);
    steps.push((Axis::Descendant, step));
    GroupSyntax { steps }
}

pub(super) fn step(piece: PartAndBrackets<'_>) -> StepSyntax<'_> {
    let mut step = StepSyntax {
        parts: SmallVec::new(),
        span: piece.0.span,
    };
    add(&mut step, piece);
    step
}

pub(super) fn add<'s>(step: &mut StepSyntax<'s>, (part, group): PartAndBrackets<'s>) {
    step.span = step.span.to(part.span);
    step.parts.push(part);
    if let Some(group) = group {
        step.span = step.span.to(group.span);
        step.parts.push(group);
    }
}

pub(super) fn in_front<'s>(first: Filter<'s>, mut rest: Vec<Filter<'s>>) -> Vec<Filter<'s>> {
    rest.insert(0, first);
    rest
}

pub(super) fn position<'s>(
    (hops, trailing_comma): (Vec<Hop<'s>>, Option<Span>),
    span: Span,
) -> PositionSyntax<'s> {
    PositionSyntax {
        hops,
        trailing_comma,
        span,
    }
}

/// `? {…}` as a hop.
pub(super) fn search_hop<'s>(brace: Spanned<Attrs<'s>>, span: Span) -> Hop<'s> {
    Hop {
        head: HopHead::Search,
        parts: vec![Spanned::new(HopPart::Attrs(brace.node), brace.span)],
        span,
    }
}

/// The text between quotes. A backslash escapes a quote or a backslash; any other backslash is
/// kept (LANGUAGE §2). Borrows if nothing is escaped.
pub(super) fn unquote(quoted: &str) -> Cow<'_, str> {
    let Some(quote) = quoted.chars().next() else {
        return Cow::Borrowed(quoted);
    };
    let inner = quoted.get(1..).unwrap_or_default();
    // The lexer reports a missing closing quote.
    let inner = inner.strip_suffix(quote).unwrap_or(inner);
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\\'
            && let Some(&next) = characters.peek()
            && matches!(next, '\\' | '\'' | '"')
        {
            characters.next();
            text.push(next);
        } else {
            text.push(character);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::unquote;

    #[test]
    fn only_quotes_and_backslashes_are_escaped() {
        for (quoted, text) in [
            (r"'a'", "a"),
            (r"''", ""),
            (r"'it\'s'", "it's"),
            (r#"'say \"x\"'"#, r#"say "x""#),
            (r"'a\\b'", r"a\b"),
            (r"'\d\n'", r"\d\n"),
            (r"'\\\\'", r"\\"),
        ] {
            assert_eq!(unquote(quoted), text, "{quoted}");
        }
    }
}
