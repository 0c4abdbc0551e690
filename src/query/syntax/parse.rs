//! Runs the generated parser, and finds further mistakes in a text that it refuses.
//!
//! The only file that knows lalrpop. A selector without mistakes is parsed once. Any other is
//! cut, outside brackets, into its steps and filters. Each piece is parsed alone, so that every
//! piece can report a mistake of its own, and lowering checks the meaning of the pieces that do
//! parse. Every token is parsed at most twice.

use lalrpop_util::{ParseError, lalrpop_mod};

use super::ast::{Selector, ShortNode};
use super::error::{Hint, MAX_BYTES, MAX_MISTAKES, Mistake, SyntaxError};
use super::hint::hint;
use super::lex::{Lexed, Lexer};
use super::span::Span;
use super::token::Token;

lalrpop_mod!(
    #[allow(
        clippy::all,
        clippy::unwrap_used,
        clippy::panic,
        missing_docs,
        unreachable_pub,
        unused_qualifications,
        reason = "generated code"
    )]
    selector
);

/// The mistakes of a text that does not parse, and its pieces that do.
#[derive(Clone, Debug, PartialEq)]
pub struct ParseFailure<'s> {
    /// The mistakes, leftmost first; at least one.
    pub errors: Vec<SyntaxError>,
    /// The steps and filters without mistakes of form, each as a selector, in order.
    pub fragments: Vec<Selector<'s>>,
}

type GrammarError<'s> = ParseError<u32, Token<'s>, std::convert::Infallible>;

/// Parses `text` into a syntax tree. Linear in its length.
///
/// # Errors
/// All mistakes of form that could be found; only the length for a text over [`MAX_BYTES`].
pub fn parse(text: &str) -> Result<Selector<'_>, ParseFailure<'_>> {
    if text.len() > MAX_BYTES {
        let limit = u32::try_from(MAX_BYTES).unwrap_or(u32::MAX);
        let span = Span::new(limit, limit);
        let mistake = Mistake::TooLong(text.len());
        return Err(ParseFailure {
            errors: vec![SyntaxError { span, mistake }],
            fragments: Vec::new(),
        });
    }
    let mut lexer = Lexer::new(text);
    match selector::SelectorParser::new().parse(&mut lexer) {
        Ok(selector) if !lexer.has_errors() => Ok(selector),
        Ok(_) => Err(recover(text, None)),
        Err(error) => Err(recover(text, Some(error))),
    }
}

/// `text` as a syntax tree, or `None`: faster than [`parse`] for a text with mistakes, because it
/// does not look for them.
pub(crate) fn parse_if_valid(text: &str) -> Option<Selector<'_>> {
    let mut lexer = Lexer::new(text);
    let selector = selector::SelectorParser::new().parse(&mut lexer).ok()?;
    (text.len() <= MAX_BYTES && !lexer.has_errors()).then_some(selector)
}

/// Parses the short form of a node. Linear in the length of `text`.
///
/// # Errors
/// The mistakes in its words, or the first place where something else was expected.
pub fn parse_node(text: &str) -> Result<ShortNode<'_>, Vec<SyntaxError>> {
    let mut lexer = Lexer::of_node(text);
    let tokens: Vec<Lexed<'_>> = lexer.by_ref().collect();
    let mut errors = lexer.take_errors();
    match selector::ShortNodeParser::new().parse(tokens.iter().copied()) {
        Ok(node) if errors.is_empty() => return Ok(node),
        Err(error) if errors.is_empty() => {
            let mut error = translate(text, &tokens, error);
            // The well-known mistakes are those of selectors, and a node has no parameters.
            if let Mistake::Unexpected { expected, hint, .. }
            | Mistake::UnexpectedEnd { expected, hint } = &mut error.mistake
            {
                *hint = Hint::None;
                expected.retain(|terminal| !terminal.contains('$'));
            }
            errors.push(error);
        }
        Ok(_) | Err(_) => {}
    }
    Err(errors)
}

/// Collects the mistakes of a text that does not parse. `first` is where the parser stopped.
fn recover<'s>(text: &'s str, first: Option<GrammarError<'s>>) -> ParseFailure<'s> {
    let mut lexer = Lexer::new(text);
    let tokens: Vec<Lexed<'s>> = lexer.by_ref().collect();
    let mut errors = lexer.take_errors();
    let lexical = errors.len();
    let mut fragments = Vec::new();
    let mut broken: Vec<(u32, u32)> = Vec::new();
    let first = first.map(|error| translate(text, &tokens, error));

    let pieces = pieces(&tokens);
    for (index, piece) in pieces.iter().enumerate() {
        if errors.len() >= MAX_MISTAKES {
            break;
        }
        let (Some(start), Some(end)) = (piece.first(), piece.last()) else {
            continue;
        };
        let (start, end) = (start.0, end.2);
        // Tokens that the lexer put in place of a mistake must not cause another one.
        let spoiled = errors
            .iter()
            .take(lexical)
            .any(|error| start <= error.span.end && error.span.start <= end);
        if spoiled {
            broken.push((start, end));
            continue;
        }
        // The parse of the whole text already found the mistake of this piece, and with more
        // context.
        if first
            .as_ref()
            .is_some_and(|first| start <= first.span.start && first.span.start < end)
        {
            continue;
        }
        match selector::SelectorParser::new().parse(piece.iter().copied()) {
            Ok(fragment) => fragments.push(fragment),
            // The piece is incomplete because of the mistake that starts the next piece.
            Err(ParseError::UnrecognizedEof { .. })
                if first.as_ref().is_some_and(|first| {
                    let next = pieces.get(index + 1).and_then(|next| next.first());
                    next.is_some_and(|next| next.0 == first.span.start)
                }) => {}
            Err(error) => {
                broken.push((start, end));
                errors.push(translate(text, &tokens, error));
            }
        }
    }

    if let Some(first) = first {
        let place = first.span.start;
        let reported = broken
            .iter()
            .any(|&(start, end)| start <= place && place <= end)
            || errors
                .iter()
                .take(lexical)
                .any(|error| error.span.start <= place);
        if !reported || errors.is_empty() {
            errors.push(first);
        }
    }
    errors.sort_by_key(|error| (error.span.start, error.span.end));
    ParseFailure { errors, fragments }
}

/// The tokens of each step, filter, control and time, without the combinators between them.
fn pieces<'a, 's>(tokens: &'a [Lexed<'s>]) -> Vec<&'a [Lexed<'s>]> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut level = 0_usize;
    let (mut search, mut time) = (false, false);
    for (index, (_, token, _)) in tokens.iter().enumerate() {
        let mut cut = |next: usize| {
            if start < index {
                pieces.push(tokens.get(start..index).unwrap_or_default());
            }
            start = next;
        };
        if level == 0 {
            match token {
                Token::Space | Token::TagSpace | Token::Child | Token::Comma => cut(index + 1),
                Token::Time(_) | Token::History | Token::Control(_) => cut(index),
                Token::BraceOpen if !search => cut(index),
                Token::RangeMark | Token::RangeEnd(_) => {}
                _ if time => cut(index),
                _ => {}
            }
        }
        time = matches!(token, Token::Time(_) | Token::RangeEnd(_) | Token::History);
        search = level == 0 && matches!(token, Token::Question | Token::Questions);
        level = level.saturating_add_signed(token.nesting());
    }
    if let Some(last) = tokens.get(start..).filter(|last| !last.is_empty()) {
        pieces.push(last);
    }
    pieces
}

fn translate<'s>(text: &str, tokens: &[Lexed<'s>], error: GrammarError<'s>) -> SyntaxError {
    match error {
        ParseError::UnrecognizedToken { token, expected } => {
            unexpected(text, tokens, token, expected)
        }
        ParseError::ExtraToken { token } => unexpected(text, tokens, token, Vec::new()),
        ParseError::UnrecognizedEof { location, expected } => {
            let last = tokens.iter().rfind(|(_, _, end)| *end <= location);
            let hint = match last {
                Some((_, Token::Child | Token::Comma, _)) => Hint::DanglingCombinator,
                Some((_, Token::Op(_), _)) => Hint::MissingValue,
                _ => Hint::None,
            };
            unexpected_end(location, expected, hint)
        }
        // Unreachable: the lexer reports its mistakes itself, and no grammar action fails.
        ParseError::InvalidToken { location } => unexpected_end(location, Vec::new(), Hint::None),
        ParseError::User { error } => match error {},
    }
}

fn unexpected_end(location: u32, expected: Vec<String>, hint: Hint) -> SyntaxError {
    SyntaxError {
        span: Span::new(location, location),
        mistake: Mistake::UnexpectedEnd { expected, hint },
    }
}

fn unexpected<'s>(
    text: &str,
    tokens: &[Lexed<'s>],
    token: Lexed<'s>,
    expected: Vec<String>,
) -> SyntaxError {
    let at = tokens.partition_point(|(start, _, _)| *start < token.0);
    let at = tokens
        .iter()
        .skip(at)
        .position(|other| other.1 == token.1)
        .map_or(at, |more| at + more);
    let (at, token) = match tokens.get(at + 1) {
        // White space is never the mistake; the token after it is.
        Some(&next) if matches!(token.1, Token::Space) => (at + 1, next),
        _ => (at, token),
    };
    let (hint, place) = hint(tokens, at, token.1);
    let span = place.unwrap_or(Span::new(token.0, token.2));
    SyntaxError {
        span,
        mistake: Mistake::Unexpected {
            found: span.slice(text).into(),
            expected,
            hint,
        },
    }
}
