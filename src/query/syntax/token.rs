//! The tokens of a selector, as logos finds them and as the grammar takes them.
//!
//! Selectors are lexed in three modes, each with its own logos enum: [`ChainToken`] outside brackets,
//! where white space is a combinator and words have pseudo-classes; [`InsideToken`] brackets, braces
//! and positions; and [`DepthToken`] in `:depth(…)` and `:nth(…)`, where `1-3` is a range and not a
//! word. The lexer turns all three into [`Token`]s.

use logos::Logos;

use super::ast::{CompareOp, TimePoint};

/// Outside brackets. The words after `.`, `#`, `+` and `@` are read by the lexer.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChainToken {
    #[regex(r"[ \t\r\n\x0C]+")]
    Space,
    #[token(">")]
    Child,
    #[token(",")]
    Comma,
    #[token("*")]
    Star,
    #[regex(r"\^[A-Za-z_]*")]
    Root,
    #[regex(r"\.[A-Za-z]")]
    Type,
    #[token("#")]
    Hash,
    #[token("+")]
    Plus,
    #[regex(r":[A-Za-z_][A-Za-z0-9_-]*")]
    Pseudo,
    #[token("@")]
    At,
    #[token("=")]
    Equals,
    #[regex(r"[A-Za-z_][A-Za-z0-9_-]*")]
    Word,
    #[token("?")]
    Question,
    #[token("??")]
    Questions,
    #[token("[")]
    Open,
    #[token("]")]
    Close,
    #[token("(")]
    ParenOpen,
    #[token(")")]
    ParenClose,
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,
}

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n\x0C]+")]
pub(super) enum InsideToken {
    #[regex(r"[A-Za-z0-9_:-]+", priority = 1)]
    Word,
    #[regex(r"[+-]?[0-9]+", priority = 5)]
    Int,
    #[regex(r"[+-]?[0-9]+\.[0-9]+", priority = 6)]
    Decimal,
    #[regex("['\"]")]
    Quote,
    #[regex(r"\$[A-Za-z_][A-Za-z0-9_-]*")]
    Param,
    #[token("=", |_| CompareOp::Eq)]
    #[token("!=", |_| CompareOp::Ne)]
    #[token("<", |_| CompareOp::Lt)]
    #[token("<=", |_| CompareOp::Le)]
    #[token(">", |_| CompareOp::Gt)]
    #[token(">=", |_| CompareOp::Ge)]
    #[token("~", |_| CompareOp::Matches)]
    Op(CompareOp),
    /// Comparison signs of other languages, with the one that replaces them.
    #[token("==", |_| CompareOp::Eq)]
    #[token("===", |_| CompareOp::Eq)]
    #[token("<>", |_| CompareOp::Ne)]
    #[token("!==", |_| CompareOp::Ne)]
    #[token("=<", |_| CompareOp::Le)]
    #[token("=>", |_| CompareOp::Ge)]
    #[token("=~", |_| CompareOp::Matches)]
    #[token("~=", |_| CompareOp::Matches)]
    #[token("^=", |_| CompareOp::Matches)]
    #[token("$=", |_| CompareOp::Matches)]
    #[token("*=", |_| CompareOp::Matches)]
    ForeignOp(CompareOp),
    #[token(",")]
    Comma,
    #[token("[")]
    Open,
    #[token("]")]
    Close,
    #[token("(")]
    ParenOpen,
    #[token(")")]
    ParenClose,
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,
    #[token("..")]
    Dots,
    #[token("*")]
    Star,
    #[regex(r"\.[A-Za-z][A-Za-z0-9_:-]*")]
    Sub,
    #[token("?")]
    Question,
}

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n\x0C]+")]
pub(super) enum DepthToken {
    #[regex(r"[0-9]+")]
    Digits,
    #[token("-")]
    Minus,
    #[token("..")]
    Dots,
    #[token(",")]
    Comma,
    #[token("<", |_| CompareOp::Lt)]
    #[token("<=", |_| CompareOp::Le)]
    #[token(">", |_| CompareOp::Gt)]
    #[token(">=", |_| CompareOp::Ge)]
    #[token("=", |_| CompareOp::Eq)]
    Op(CompareOp),
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,
    #[token(")")]
    ParenClose,
    #[regex(r"\$[A-Za-z_][A-Za-z0-9_-]*")]
    Param,
}

/// A token of the grammar. Words are slices of the text, without their signs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'s> {
    /// White space between two steps.
    Space,
    /// White space before a `+tag` that is not part of a step.
    TagSpace,
    /// `>` and the white space around it.
    Child,
    Comma,
    Star,
    Root(&'s str),
    Type(&'s str),
    Key(&'s str),
    QuotedKey(&'s str),
    KeyParam(&'s str),
    Tag(&'s str),
    QuotedTag(&'s str),
    Pseudo(&'s str),
    /// `:depth(`
    DepthOpen,
    /// `:nth(`
    NthOpen,
    /// `:has(` and the other conditions that take selectors; the name.
    ConditionOpen(&'s str),
    /// `within=N` in a condition; the text of `N`.
    Within(&'s str),
    /// `depth(`
    AnchorOpen,
    /// `within(`
    WithinOpen,
    /// `none`
    Nothing,
    Question,
    Questions,
    Time(TimePoint),
    /// `..` or `:` between the ends of a range.
    RangeMark,
    RangeEnd(TimePoint),
    History,
    Control(&'s str),
    /// The text after the `=` of a control.
    ControlValue(&'s str),
    Open,
    Close,
    ParenOpen,
    ParenClose,
    BraceOpen,
    BraceClose,
    Word(&'s str),
    Int(&'s str),
    Decimal(&'s str),
    Quoted(&'s str),
    Param(&'s str),
    Op(CompareOp),
    Dots,
    Minus,
    Digits(i64),
    /// `.call` after a hop.
    Sub(&'s str),
}

impl Token<'_> {
    /// 1 for an opening bracket, -1 for a closing one, else 0.
    pub(super) fn nesting(self) -> isize {
        match self {
            Self::Open
            | Self::ParenOpen
            | Self::BraceOpen
            | Self::DepthOpen
            | Self::NthOpen
            | Self::ConditionOpen(_)
            | Self::AnchorOpen
            | Self::WithinOpen => 1,
            Self::Close | Self::ParenClose | Self::BraceClose => -1,
            _ => 0,
        }
    }
}
