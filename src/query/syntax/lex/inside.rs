//! Tokens inside brackets, and inside `:depth(…)` and `:nth(…)`.

use super::lexer::{Inner, Lexed, Lexer, Mode};
use crate::query::syntax::error::Mistake;
use crate::query::syntax::token::{Depth, Inside, Token};
use crate::query::syntax::words::{foreign_length, is_delimiter, is_word_char, length_while};

impl<'s> Lexer<'s> {
    /// The next token inside brackets, braces, groups and positions.
    pub(super) fn inside(&mut self, mode: Mode) -> Option<Lexed<'s>> {
        loop {
            let Inner::Inside(lexer) = &mut self.inner else {
                return None;
            };
            let found = lexer.next()?;
            let (start, end) = (lexer.span().start, lexer.span().end);
            let foreign = mode == Mode::Props
                && match found {
                    Err(()) | Ok(Inside::Sub) => true,
                    Ok(Inside::Word | Inside::Int | Inside::Decimal) => {
                        foreign_length(self.rest(), true) > 0
                    }
                    Ok(_) => false,
                };
            if foreign {
                let token = self.foreign_word(start);
                return Some(self.lexed(start, token));
            }
            let is_tag = mode == Mode::Node && self.slice(start, end).starts_with('+');
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
                Inside::Int => Token::Int(slice),
                Inside::Decimal => Token::Decimal(slice),
                Inside::Word
                    if slice == "depth"
                        && mode == Mode::Position
                        && self.rest().starts_with('(') =>
                {
                    self.bump(1);
                    self.open(Mode::Depth, Token::AnchorOpen)
                }
                Inside::Word => Token::Word(slice),
                Inside::Quote => Token::Quoted(self.quoted(start)),
                Inside::Param => Token::Param(slice.get(1..).unwrap_or_default()),
                Inside::Op(op) => Token::Op(op),
                Inside::ForeignOp(op) => {
                    self.mistake(start, end, Mistake::ForeignOp(slice.into(), op));
                    Token::Op(op)
                }
                Inside::Comma => Token::Comma,
                Inside::Dots => Token::Dots,
                Inside::Star => Token::Star,
                Inside::Question => Token::Question,
                Inside::Sub => Token::Sub(slice.get(1..).unwrap_or_default()),
                Inside::Open => self.open(Mode::Props, Token::Open),
                Inside::ParenOpen => self.open(Mode::Props, Token::ParenOpen),
                Inside::BraceOpen => self.open(Mode::Props, Token::BraceOpen),
                Inside::Close => self.close(Token::Close),
                Inside::ParenClose => self.close(Token::ParenClose),
                Inside::BraceClose => self.close(Token::BraceClose),
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

    /// The next token inside `:depth(…)` and `:nth(…)`.
    pub(super) fn depth(&mut self) -> Option<Lexed<'s>> {
        let Inner::Depth(lexer) = &mut self.inner else {
            return None;
        };
        let found = lexer.next()?;
        let (start, end) = (lexer.span().start, lexer.span().end);
        let token = match found {
            Err(()) => self.no_depth(start),
            // `1..3` continues with a range; `1.5` and `1st` are not depths.
            Ok(Depth::Digits)
                if self.rest().starts_with(is_depth_foreign) && !self.rest().starts_with("..") =>
            {
                self.no_depth(start)
            }
            Ok(Depth::Digits) => self.digits(start, end),
            Ok(Depth::Minus) => Token::Minus,
            Ok(Depth::Dots) => Token::Dots,
            Ok(Depth::Comma) => Token::Comma,
            Ok(Depth::Op(op)) => Token::Op(op),
            Ok(Depth::BraceOpen) => Token::BraceOpen,
            Ok(Depth::BraceClose) => Token::BraceClose,
            Ok(Depth::Param) => Token::Param(self.slice(start + 1, end)),
            Ok(Depth::ParenClose) => self.close(Token::ParenClose),
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
