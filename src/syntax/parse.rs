//! Runs the generated parser, and looks for further mistakes where it fails.
//!
//! The only file that knows lalrpop. A selector that parses is parsed once. One that does not is
//! cut, outside of all brackets, into the steps and filters it was meant to have; each piece is
//! parsed alone, so that every piece can report its own mistake, and the pieces that are whole
//! are handed on for lowering to look at their meaning. Every token is parsed at most twice.

use lalrpop_util::{ParseError, lalrpop_mod};

use super::ast::Selector;
use super::error::{Hint, Mistake, SyntaxError};
use super::lex::{self, Lexer};
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

/// Why a text is no selector, and the parts of it that are.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure<'s> {
    /// The mistakes, the leftmost first; at least one.
    pub errors: Vec<SyntaxError>,
    /// Steps and filters that are whole, each as a selector of its own, in order. Their meaning
    /// can still be wrong.
    pub fragments: Vec<Selector<'s>>,
}

type GrammarError<'s> = ParseError<u32, Token<'s>, std::convert::Infallible>;

/// The syntax tree of `text`. Linear in its length.
///
/// # Errors
/// All mistakes of form that could be told apart, with [`super::MAX_BYTES`] checked first.
pub fn parse(text: &str) -> Result<Selector<'_>, Failure<'_>> {
    if text.len() > super::MAX_BYTES {
        let limit = u32::try_from(super::MAX_BYTES).unwrap_or(u32::MAX);
        return Err(Failure {
            errors: vec![SyntaxError {
                span: Span::new(limit, limit),
                mistake: Mistake::TooLong(text.len()),
            }],
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

/// Collects the mistakes of a text that does not parse; `first` is the parser's own.
fn recover<'s>(text: &'s str, first: Option<GrammarError<'s>>) -> Failure<'s> {
    let mut lexer = Lexer::new(text);
    let tokens: Vec<lex::Spanned<'s>> = lexer.by_ref().collect();
    let mut errors = lexer.take_errors();
    let lexical = errors.len();
    let mut fragments = Vec::new();
    let mut broken: Vec<(u32, u32)> = Vec::new();
    let first = first.map(|error| translate(text, &tokens, error));

    let pieces = pieces(&tokens);
    for (index, piece) in pieces.iter().enumerate() {
        if errors.len() >= super::MAX_MISTAKES {
            break;
        }
        let (Some(start), Some(end)) = (piece.first(), piece.last()) else {
            continue;
        };
        let (start, end) = (start.0, end.2);
        // What the lexer put in place of a mistake is no reason for another one.
        let spoiled = errors
            .iter()
            .take(lexical)
            .any(|error| start <= error.span.end && error.span.start <= end);
        if spoiled {
            broken.push((start, end));
            continue;
        }
        // The mistake the whole parse stopped at knows more of its surroundings than the piece.
        if first
            .as_ref()
            .is_some_and(|first| start <= first.span.start && first.span.start < end)
        {
            continue;
        }
        match selector::SelectorParser::new().parse(piece.iter().copied()) {
            Ok(fragment) => fragments.push(fragment),
            // It only lacks what the next piece has something else for, and that was told.
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
        let told = broken
            .iter()
            .any(|&(start, end)| start <= place && place <= end)
            || errors
                .iter()
                .take(lexical)
                .any(|error| error.span.start <= place);
        if !told || errors.is_empty() {
            errors.push(first);
        }
    }
    errors.sort_by_key(|error| (error.span.start, error.span.end));
    Failure { errors, fragments }
}

/// The tokens of each step, filter, control and time, without what joins them.
fn pieces<'a, 's>(tokens: &'a [lex::Spanned<'s>]) -> Vec<&'a [lex::Spanned<'s>]> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut level = 0_usize;
    let mut search = false;
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
                _ if index > 0 && ends_time(tokens.get(index - 1)) && !joins_time(token) => {
                    cut(index);
                }
                _ => {}
            }
        }
        search = level == 0 && matches!(token, Token::Question | Token::Questions);
        match nesting(token) {
            1 => level += 1,
            -1 => level = level.saturating_sub(1),
            _ => {}
        }
    }
    if let Some(last) = tokens.get(start..).filter(|last| !last.is_empty()) {
        pieces.push(last);
    }
    pieces
}

fn ends_time(token: Option<&lex::Spanned<'_>>) -> bool {
    matches!(
        token,
        Some((_, Token::Time(_) | Token::RangeEnd(_) | Token::History, _))
    )
}

fn joins_time(token: &Token<'_>) -> bool {
    matches!(token, Token::RangeMark | Token::RangeEnd(_))
}

/// 1 for an opening bracket, -1 for a closing one.
fn nesting(token: &Token<'_>) -> i8 {
    match token {
        Token::Open
        | Token::ParenOpen
        | Token::BraceOpen
        | Token::DepthOpen
        | Token::NthOpen
        | Token::AnchorOpen
        | Token::WithinOpen => 1,
        Token::Close | Token::ParenClose | Token::BraceClose => -1,
        _ => 0,
    }
}

/// The parser's error in our words.
fn translate<'s>(text: &str, tokens: &[lex::Spanned<'s>], error: GrammarError<'s>) -> SyntaxError {
    match error {
        ParseError::UnrecognizedToken { token, expected } => {
            unexpected(text, tokens, token, expected)
        }
        ParseError::ExtraToken { token } => unexpected(text, tokens, token, Vec::new()),
        ParseError::UnrecognizedEof { location, expected } => {
            let dangling = tokens
                .iter()
                .rfind(|(_, _, end)| *end <= location)
                .is_some_and(|(_, token, _)| matches!(token, Token::Child | Token::Comma));
            SyntaxError {
                span: Span::new(location, location),
                mistake: Mistake::UnexpectedEnd {
                    expected,
                    hint: if dangling {
                        Hint::DanglingCombinator
                    } else {
                        Hint::None
                    },
                },
            }
        }
        // The lexer reports its mistakes by itself and no action of the grammar fails.
        ParseError::InvalidToken { location } => SyntaxError {
            span: Span::new(location, location),
            mistake: Mistake::UnexpectedEnd {
                expected: Vec::new(),
                hint: Hint::None,
            },
        },
        ParseError::User { error } => match error {},
    }
}

fn unexpected<'s>(
    text: &str,
    tokens: &[lex::Spanned<'s>],
    token: lex::Spanned<'s>,
    expected: Vec<String>,
) -> SyntaxError {
    let at = tokens.partition_point(|(start, _, _)| *start < token.0);
    let at = tokens
        .iter()
        .skip(at)
        .position(|other| other.1 == token.1)
        .map_or(at, |more| at + more);
    let (at, token) = match tokens.get(at + 1) {
        // White space is never what is wrong; what follows it is.
        Some(&next) if matches!(token.1, Token::Space) => (at + 1, next),
        _ => (at, token),
    };
    let (hint, place) = hint(tokens, at, &token);
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

/// Which well-known mistake the unexpected token at index `at` is, and its place where that is
/// not the token itself.
fn hint(tokens: &[lex::Spanned<'_>], at: usize, found: &lex::Spanned<'_>) -> (Hint, Option<Span>) {
    let before = |back: usize| {
        at.checked_sub(back)
            .and_then(|index| tokens.get(index))
            .copied()
    };
    let kind = |back: usize| before(back).map(|(_, token, _)| token);

    // `.cb +a > .mt`, `.cb +a .mt`, `.cb > +a`
    for back in 1..=2 {
        if let (Some((start, Token::Tag(_) | Token::QuotedTag(_), end)), Some(Token::TagSpace)) =
            (before(back), kind(back + 1))
        {
            return (Hint::DetachedTag, Some(Span::new(start, end)));
        }
    }
    let mut level = 0_usize;
    let mut behind_filters = false;
    let mut behind_search = false;
    let mut position = false;
    let mut within = false;
    let mut sign = false;
    let mut control_in_front = false;
    let mut first = true;
    for (_, token, _) in tokens.iter().take(at) {
        if level == 0 {
            match token {
                Token::BraceOpen if first || sign => behind_search = true,
                Token::BraceOpen | Token::Control(_) | Token::TagSpace | Token::Nothing => {
                    behind_filters = true;
                }
                Token::ParenOpen | Token::WithinOpen if first => {
                    position = true;
                    within = matches!(token, Token::WithinOpen);
                }
                _ => {}
            }
            if !matches!(token, Token::Space) {
                sign = matches!(token, Token::Question | Token::Questions);
            }
            match token {
                Token::Control(_) if first => control_in_front = true,
                _ => {}
            }
            if !matches!(
                token,
                Token::Time(_) | Token::RangeEnd(_) | Token::RangeMark | Token::History
            ) {
                first = false;
            }
        }
        match nesting(token) {
            1 => level += 1,
            -1 => level = level.saturating_sub(1),
            _ => {}
        }
    }

    let hint = match (kind(1), &found.1) {
        (Some(Token::Nothing), _) => Hint::NothingAlone,
        (Some(Token::Space), _) if kind(2) == Some(Token::Nothing) => Hint::NothingAlone,
        (Some(Token::Question | Token::Questions), Token::Question | Token::Questions) => {
            Hint::DoubleSearch
        }
        (_, Token::Question | Token::Questions) if level == 0 => Hint::SearchBehindChain,
        (_, Token::TagSpace) => {
            let tag = tokens
                .get(at + 1)
                .map(|&(start, _, end)| Span::new(start, end));
            return (Hint::DetachedTag, tag);
        }
        (Some(Token::Comma), Token::ParenOpen) if level == 0 => Hint::PositionInUnion,
        (_, Token::Comma) if level == 0 && position => Hint::PositionInUnion,
        (_, Token::ParenOpen) if level == 0 && position && !within && !behind_filters => {
            Hint::StepBehindPosition
        }
        (Some(Token::Dots), Token::Int(_) | Token::ParenClose) if level == 1 && position => {
            Hint::HalfDepthRange
        }
        (Some(Token::Space), Token::ParenOpen) => Hint::SpacedGroup,
        (Some(Token::Pseudo(_)), Token::ParenOpen) => Hint::PseudoWithArguments,
        (_, Token::ParenOpen) if level == 0 => Hint::DetachedGroup,
        (_, Token::Time(_) | Token::History) => Hint::LateTime,
        (None | Some(Token::Child | Token::Comma), Token::Child | Token::Comma) if level == 0 => {
            Hint::DanglingCombinator
        }
        (
            _,
            Token::Root(_)
            | Token::Star
            | Token::Type(_)
            | Token::Key(_)
            | Token::QuotedKey(_)
            | Token::KeyParam(_)
            | Token::Pseudo(_)
            | Token::DepthOpen
            | Token::NthOpen
            | Token::AnchorOpen
            | Token::WithinOpen
            | Token::Nothing
            | Token::Child
            | Token::Comma,
        ) if level == 0 && (behind_filters || behind_search || position) => {
            if sign || within && !behind_search {
                Hint::None
            } else if control_in_front {
                Hint::ControlInFront
            } else if behind_search {
                Hint::StepBehindSearch
            } else if position && !behind_filters {
                Hint::StepBehindPosition
            } else {
                Hint::StepBehindFilters
            }
        }
        (_, Token::Nothing) => Hint::NothingAlone,
        (
            Some(Token::Word(_) | Token::Quoted(_) | Token::Int(_) | Token::Decimal(_)),
            Token::Word(_) | Token::Quoted(_) | Token::Int(_) | Token::Decimal(_),
        ) => Hint::WordsInValue,
        (_, Token::Param(_)) => Hint::ParamAsName,
        _ => Hint::None,
    };
    (hint, None)
}
