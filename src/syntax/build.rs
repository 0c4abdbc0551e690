//! Constructors for the actions of the grammar.

use std::borrow::Cow;

use smallvec::smallvec;

use super::ast::{
    Attrs, Combinator, Filter, Group, Hop, HopHead, HopPart, Name, Part, Position, Search,
    SearchKind, Step, Union,
};
use super::span::{Span, Spanned};

/// A part; for a type, also the group of properties after it.
pub(super) type Piece<'s> = (Spanned<Part<'s>>, Option<Spanned<Part<'s>>>);

/// A union of one group with one step.
pub(super) fn union(piece: Piece<'_>) -> Union<'_> {
    smallvec![group(piece)]
}

/// Adds a group after a comma.
pub(super) fn next_group<'s>(mut union: Union<'s>, piece: Piece<'s>) -> Union<'s> {
    union.push(group(piece));
    union
}

/// Adds a step after a combinator.
pub(super) fn next_step<'s>(mut union: Union<'s>, how: Combinator, piece: Piece<'s>) -> Union<'s> {
    if let Some(group) = union.last_mut() {
        group.steps.push((how, step(piece)));
    }
    union
}

/// Adds a part to the last step.
pub(super) fn next_part<'s>(mut union: Union<'s>, piece: Piece<'s>) -> Union<'s> {
    let group = union.last_mut();
    if let Some((_, step)) = group.and_then(|group| group.steps.last_mut()) {
        attach(step, [piece.0]);
        attach(step, piece.1);
    }
    union
}

fn group(piece: Piece<'_>) -> Group<'_> {
    // Most groups have a few steps, and growing one at a time costs more than spare capacity.
    let mut steps = Vec::with_capacity(4);
    steps.push((Combinator::Descendant, step(piece)));
    Group { steps }
}

fn step((part, group): Piece<'_>) -> Step<'_> {
    let span = part.span;
    let mut step = Step {
        parts: smallvec![part],
        span,
    };
    attach(&mut step, group);
    step
}

fn attach<'s>(step: &mut Step<'s>, parts: impl IntoIterator<Item = Spanned<Part<'s>>>) {
    for part in parts {
        step.span = step.span.to(part.span);
        step.parts.push(part);
    }
}

/// The name of a property.
pub(super) fn name(text: Cow<'_, str>, quoted: bool, span: Span) -> Spanned<Name<'_>> {
    Spanned::new(Name { text, quoted }, span)
}

/// `first`, then `rest`.
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

/// A search below `scope`, or of the whole tree.
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
