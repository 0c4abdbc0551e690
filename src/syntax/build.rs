//! Small constructors for the actions of the grammar, which stays readable without them.

use std::borrow::Cow;

use super::ast::{
    Attrs, Combinator, Filter, Group, Hop, HopHead, HopPart, Part, Position, Search, SearchKind,
    Step,
};
use super::span::{Span, Spanned};

/// A group of one step.
pub(super) fn group(step: Step<'_>) -> Group<'_> {
    // Most groups have a few steps; growing by one at a time costs more than the room.
    let mut steps = Vec::with_capacity(4);
    steps.push((Combinator::Descendant, step));
    Group { steps }
}

/// A step of one part.
pub(super) fn step<'s>(part: Spanned<Part<'s>>) -> Step<'s> {
    let span = part.span;
    let mut parts = Vec::with_capacity(4);
    parts.push(part);
    Step { parts, span }
}

/// `step` with one more part.
pub(super) fn attach<'s>(mut step: Step<'s>, part: Spanned<Part<'s>>) -> Step<'s> {
    step.span = step.span.to(part.span);
    step.parts.push(part);
    step
}

/// A step that starts with a type and its group of properties.
pub(super) fn grouped<'s>(
    start: u32,
    name: &'s str,
    middle: u32,
    group: Attrs<'s>,
    end: u32,
) -> Step<'s> {
    let name = Spanned::new(Part::Type(name), Span::new(start, middle));
    attach(
        step(name),
        Spanned::new(Part::Attrs(group), Span::new(middle, end)),
    )
}

/// `step` with a type and its group of properties.
pub(super) fn attach_grouped<'s>(
    step: Step<'s>,
    start: u32,
    name: &'s str,
    middle: u32,
    group: Attrs<'s>,
    end: u32,
) -> Step<'s> {
    let name = Spanned::new(Part::Type(name), Span::new(start, middle));
    let group = Spanned::new(Part::Attrs(group), Span::new(middle, end));
    attach(attach(step, name), group)
}

/// `first` in front of `rest`.
pub(super) fn in_front<'s>(first: Filter<'s>, mut rest: Vec<Filter<'s>>) -> Vec<Filter<'s>> {
    rest.insert(0, first);
    rest
}

/// A position from its hops.
pub(super) fn position<'s>(
    (hops, trailing_comma): (Vec<Hop<'s>>, Option<Span>),
    span: Span,
) -> Position<'s> {
    Position {
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

/// A search below `scope`, or everywhere.
pub(super) fn search<'s>(
    scope: Option<Position<'s>>,
    kind: SearchKind,
    sign: Span,
    attrs: Spanned<Attrs<'s>>,
) -> Box<Search<'s>> {
    Box::new(Search {
        scope,
        kind,
        sign,
        attrs,
    })
}

/// The text between quotes. A backslash escapes a quote or a backslash; any other backslash
/// stays as written (LANGUAGE §2). Borrows where nothing is escaped.
pub(super) fn unquote(quoted: &str) -> Cow<'_, str> {
    let Some(quote) = quoted.chars().next() else {
        return Cow::Borrowed(quoted);
    };
    let inner = quoted.get(1..).unwrap_or_default();
    // A text without its closing quote was reported by the lexer.
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
