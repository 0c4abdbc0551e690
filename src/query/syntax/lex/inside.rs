//! Tokens inside brackets, and inside `:depth(…)` and `:nth(…)`.

use super::lexer::{Lexed, Lexer, LexerMode, ModeLexer};
use crate::query::syntax::error::Mistake;
use crate::query::syntax::token::{DepthToken, InsideToken, Token};
use crate::query::syntax::words::{foreign_length, is_delimiter, is_word_char, length_while};

impl<'s> Lexer<'s> {
    pub(super) fn inside(&mut self, mode: LexerMode) -> Option<Lexed<'s>> {
        loop {
            let ModeLexer::Inside(lexer) = &mut self.inner else {
                return None;
            };
            let found = lexer.next()?;
            let (start, end) = (lexer.span().start, lexer.span().end);
            let foreign = mode == LexerMode::Props
                && match found {
                    Err(()) | Ok(InsideToken::Sub) => true,
                    Ok(InsideToken::Word | InsideToken::Int | InsideToken::Decimal) => {
                        foreign_length(self.rest(), true) > 0
                    }
                    Ok(_) => false,
                };
            if foreign {
                let token = self.foreign_word(start);
                return Some(self.lexed(start, token));
            }
            let is_tag = mode == LexerMode::Node && self.slice(start, end).starts_with('+');
            if is_tag {
                let Some(token) = self.node_tag(start, end) else {
                    self.mistake(start, end, Mistake::MissingWord("+"));
                    continue;
                };
                return Some(self.lexed(start, token));
            }
            let Ok(kind) = found else {
                self.stray(start, end);
                continue;
            };
            let slice = self.slice(start, end);
            let token = match kind {
                InsideToken::Int => Token::Int(slice),
                InsideToken::Decimal => Token::Decimal(slice),
                InsideToken::Word
                    if slice == "depth"
                        && mode == LexerMode::Position
                        && self.rest().starts_with('(') =>
                {
                    self.bump(1);
                    self.open(LexerMode::Depth, Token::AnchorOpen)
                }
                InsideToken::Word => Token::Word(slice),
                InsideToken::Quote => Token::Quoted(self.quoted(start)),
                InsideToken::Param => Token::Param(slice.get(1..).unwrap_or_default()),
                InsideToken::Op(op) => Token::Op(op),
                InsideToken::ForeignOp(op) => {
                    self.mistake(start, end, Mistake::ForeignOp(slice.into(), op));
                    Token::Op(op)
                }
                InsideToken::Comma => Token::Comma,
                InsideToken::Dots => Token::Dots,
                InsideToken::Star => Token::Star,
                InsideToken::Question => Token::Question,
                InsideToken::Sub => Token::Sub(slice.get(1..).unwrap_or_default()),
                InsideToken::Open => self.open(LexerMode::Props, Token::Open),
                InsideToken::ParenOpen => self.open(LexerMode::Props, Token::ParenOpen),
                InsideToken::BraceOpen => self.open(LexerMode::Props, Token::BraceOpen),
                InsideToken::Close => self.close(Token::Close),
                InsideToken::ParenClose => self.close(Token::ParenClose),
                InsideToken::BraceClose => self.close(Token::BraceClose),
            };
            return Some(self.lexed(start, token));
        }
    }

    /// The tag of a node, of whose text at least the sign was read; `None` without a word.
    fn node_tag(&mut self, start: usize, end: usize) -> Option<Token<'s>> {
        let word = self.slice(start + 1, self.text.len());
        if end == start + 1 && word.starts_with(['\'', '"']) {
            return Some(Token::QuotedTag(self.quoted(end)));
        }
        let length = length_while(word, is_word_char);
        self.bump((start + 1 + length).saturating_sub(end));
        (length > 0).then(|| Token::Tag(self.slice(start + 1, start + 1 + length)))
    }

    /// Takes the rest of a bare word whose characters need quotes, and reports it.
    fn foreign_word(&mut self, start: usize) -> Token<'s> {
        self.bump(length_while(self.rest(), |c| !is_delimiter(c)));
        let end = self.read_to();
        let word = self.slice(start, end);
        self.mistake(start, end, Mistake::QuoteValue(word.into()));
        Token::Word(word)
    }

    pub(super) fn depth(&mut self) -> Option<Lexed<'s>> {
        let ModeLexer::Depth(lexer) = &mut self.inner else {
            return None;
        };
        let found = lexer.next()?;
        let (start, end) = (lexer.span().start, lexer.span().end);
        let token = match found {
            Err(()) => self.no_depth(start),
            // `1..3` continues with a range; `1.5` and `1st` are not depths.
            Ok(DepthToken::Digits)
                if self.rest().starts_with(is_depth_foreign) && !self.rest().starts_with("..") =>
            {
                self.no_depth(start)
            }
            Ok(DepthToken::Digits) => self.digits(start, end),
            Ok(DepthToken::Minus) => Token::Minus,
            Ok(DepthToken::Dots) => Token::Dots,
            Ok(DepthToken::Comma) => Token::Comma,
            Ok(DepthToken::Op(op)) => Token::Op(op),
            Ok(DepthToken::BraceOpen) => Token::BraceOpen,
            Ok(DepthToken::BraceClose) => Token::BraceClose,
            Ok(DepthToken::Param) => Token::Param(self.slice(start + 1, end)),
            Ok(DepthToken::ParenClose) => self.close(Token::ParenClose),
        };
        Some(self.lexed(start, token))
    }

    fn digits(&mut self, start: usize, end: usize) -> Token<'s> {
        let number = self.slice(start, end).parse();
        Token::Digits(number.unwrap_or_else(|_| {
            self.mistake(start, end, Mistake::TooLarge);
            1
        }))
    }

    /// Takes a word that is not a depth, reports it, and returns a depth in its place.
    fn no_depth(&mut self, start: usize) -> Token<'s> {
        let length = length_while(self.slice(start, self.text.len()), |c| !is_delimiter(c));
        let end = self.read_to().max(start + length);
        self.bump(end - self.read_to());
        let word = self.slice(start, end).into();
        self.mistake(start, end, Mistake::NotADepth(word));
        Token::Digits(1)
    }
}

/// Whether `c`, directly after digits, makes the token not a depth.
fn is_depth_foreign(c: char) -> bool {
    c == '.' || is_word_char(c) && c != '-'
}
