//! Recognises well-known mistakes from the tokens around an unexpected one.

use super::error::Hint;
use super::lex::Lexed;
use super::span::Span;
use super::token::Token;

/// The well-known mistake that the unexpected token at index `at` is part of, and its place if
/// that is not the token itself. Linear in the number of tokens before it.
pub(super) fn hint(tokens: &[Lexed<'_>], at: usize, found: Token<'_>) -> (Hint, Option<Span>) {
    let window = Window::new(tokens, at, found);
    // `.cb +a > .mt`, `.cb +a .mt`, `.cb > +a`
    for back in 1..=2 {
        if let (Some(Token::Tag(_) | Token::QuotedTag(_)), Some(Token::TagSpace)) =
            (window.before(back), window.before(back + 1))
        {
            return (Hint::DetachedTag, span(tokens.get(at - back)));
        }
    }
    let rule = RULES.iter().find(|(_, applies)| applies(&window));
    let hint = rule.map_or(Hint::None, |(hint, _)| *hint);
    match hint {
        Hint::DetachedTag => (hint, span(tokens.get(at + 1))),
        _ => (hint, None),
    }
}

fn span(token: Option<&Lexed<'_>>) -> Option<Span> {
    token.map(|&(start, _, end)| Span::new(start, end))
}

type Rule = (Hint, fn(&Window<'_, '_>) -> bool);

/// The rules; the first that applies decides.
const RULES: [Rule; 29] = {
    use Token as T;
    [
        (Hint::TimeInside, |w| {
            w.condition
                && (matches!(w.found, T::Time(_) | T::History)
                    || matches!(w.before(1), Some(T::Time(_) | T::History)))
        }),
        (Hint::ControlInside, |w| {
            w.condition && matches!(w.found, T::Control(_))
        }),
        (Hint::NothingInside, |w| {
            w.condition && w.found == T::Nothing
        }),
        (Hint::SearchInside, |w| {
            let starts = w
                .before(1)
                .is_none_or(|token| matches!(token, T::ConditionOpen(_) | T::Comma | T::Child));
            w.condition
                && (is_search(w.found)
                    || w.found == T::WithinOpen
                    || starts && matches!(w.found, T::BraceOpen | T::ParenOpen))
        }),
        (Hint::FilterInside, |w| {
            w.condition && matches!(w.found, T::BraceOpen | T::TagSpace)
        }),
        (Hint::InnerMissing, |w| {
            w.condition
                && matches!(w.before(1), Some(T::ConditionOpen(_) | T::Comma | T::Child))
                && matches!(w.found, T::Comma | T::ParenClose)
        }),
        (Hint::NothingAlone, |w| match w.before(1) {
            Some(T::Space) => w.before(2) == Some(T::Nothing),
            before => before == Some(T::Nothing),
        }),
        (Hint::DoubleSearch, |w| {
            w.before(1).is_some_and(is_search) && is_search(w.found)
        }),
        (Hint::SearchBehindChain, |w| w.top() && is_search(w.found)),
        (Hint::DetachedTag, |w| w.found == T::TagSpace),
        (Hint::PositionInUnion, |w| {
            w.top() && w.before(1) == Some(T::Comma) && w.found == T::ParenOpen
        }),
        (Hint::PositionInUnion, |w| {
            w.top() && w.position && w.found == T::Comma
        }),
        (Hint::StepBehindPosition, |w| {
            w.top() && w.found == T::ParenOpen && w.position && !w.within && !w.filters
        }),
        (Hint::HalfDepthRange, |w| {
            w.level == 1
                && w.position
                && w.before(1) == Some(T::Dots)
                && matches!(w.found, T::Int(_) | T::ParenClose)
        }),
        (Hint::SpacedGroup, |w| {
            w.before(1) == Some(T::Space) && w.found == T::ParenOpen
        }),
        (Hint::PseudoWithArguments, |w| {
            matches!(w.before(1), Some(T::Pseudo(_))) && w.found == T::ParenOpen
        }),
        (Hint::DetachedGroup, |w| w.top() && w.found == T::ParenOpen),
        (Hint::LateTime, |w| {
            matches!(w.found, T::Time(_) | T::History)
        }),
        (Hint::DanglingCombinator, |w| {
            w.top()
                && matches!(w.before(1), None | Some(T::Child | T::Comma))
                && matches!(w.found, T::Child | T::Comma)
        }),
        // A search that is not complete yet: what it lacks says more than what follows.
        (Hint::None, |w| {
            w.step_after_end() && (w.sign || w.within && !w.search)
        }),
        (Hint::ControlInFront, |w| {
            w.step_after_end() && w.control_first
        }),
        (Hint::StepBehindSearch, |w| w.step_after_end() && w.search),
        (Hint::StepBehindPosition, |w| {
            w.step_after_end() && w.position && !w.filters
        }),
        (Hint::StepBehindFilters, |w| w.step_after_end()),
        (Hint::NothingAlone, |w| w.found == T::Nothing),
        (Hint::MissingValue, |w| {
            matches!(w.before(1), Some(T::Op(_))) && !is_literal(w.found) && w.found != T::Open
        }),
        (Hint::MissingName, |w| {
            matches!(w.found, T::Op(_))
                && matches!(w.before(1), Some(T::Open | T::BraceOpen | T::Comma))
        }),
        (Hint::WordsInValue, |w| {
            w.before(1).is_some_and(is_literal) && is_literal(w.found)
        }),
        (Hint::ParamAsName, |w| matches!(w.found, T::Param(_))),
    ]
};

/// An unexpected token and what precedes it.
struct Window<'a, 's> {
    tokens: &'a [Lexed<'s>],
    at: usize,
    found: Token<'s>,
    level: usize,
    /// A filter, a control or `none` precedes it, outside brackets.
    filters: bool,
    search: bool,
    position: bool,
    within: bool,
    sign: bool,
    control_first: bool,
    /// The innermost open bracket is that of a condition.
    condition: bool,
}

impl<'a, 's> Window<'a, 's> {
    fn new(tokens: &'a [Lexed<'s>], at: usize, found: Token<'s>) -> Self {
        let mut window = Self {
            tokens,
            at,
            found,
            level: 0,
            filters: false,
            search: false,
            position: false,
            within: false,
            sign: false,
            control_first: false,
            condition: false,
        };
        let mut first = true;
        let mut open: Vec<bool> = Vec::new();
        for &(_, token, _) in tokens.iter().take(at) {
            if window.level == 0 {
                match token {
                    Token::BraceOpen if first || window.sign => window.search = true,
                    Token::BraceOpen | Token::Control(_) | Token::TagSpace | Token::Nothing => {
                        window.filters = true;
                    }
                    Token::ParenOpen | Token::WithinOpen if first => {
                        window.position = true;
                        window.within = token == Token::WithinOpen;
                    }
                    _ => {}
                }
                if token != Token::Space {
                    window.sign = is_search(token);
                }
                window.control_first |= first && matches!(token, Token::Control(_));
                first &= matches!(
                    token,
                    Token::Time(_) | Token::RangeEnd(_) | Token::RangeMark | Token::History
                );
            }
            window.level = window.level.saturating_add_signed(token.nesting());
            match token.nesting() {
                1 => open.push(matches!(token, Token::ConditionOpen(_))),
                -1 => drop(open.pop()),
                _ => {}
            }
        }
        window.condition = open.last() == Some(&true);
        window
    }

    /// The token `back` places before the unexpected one.
    fn before(&self, back: usize) -> Option<Token<'s>> {
        let token = self.tokens.get(self.at.checked_sub(back)?)?;
        Some(token.1)
    }

    /// Whether no bracket is open.
    fn top(&self) -> bool {
        self.level == 0
    }

    fn step_after_end(&self) -> bool {
        self.top()
            && (self.filters || self.search || self.position)
            && matches!(
                self.found,
                Token::Root(_)
                    | Token::Star
                    | Token::Type(_)
                    | Token::Key(_)
                    | Token::QuotedKey(_)
                    | Token::KeyParam(_)
                    | Token::Pseudo(_)
                    | Token::DepthOpen
                    | Token::NthOpen
                    | Token::ConditionOpen(_)
                    | Token::AnchorOpen
                    | Token::WithinOpen
                    | Token::Nothing
                    | Token::Child
                    | Token::Comma
            )
    }
}

fn is_search(token: Token<'_>) -> bool {
    matches!(token, Token::Question | Token::Questions)
}

fn is_literal(token: Token<'_>) -> bool {
    matches!(
        token,
        Token::Word(_) | Token::Quoted(_) | Token::Int(_) | Token::Decimal(_)
    )
}
