//! What stands inside of brackets, and inside of `:depth(…)` and `:nth(…)`.

use super::word::{foreign_length, is_delimiter, is_word_char};
use super::{Inner, Lexer, Mode, Spanned, offset};
use crate::syntax::error::Mistake;
use crate::syntax::token::{Depth, Inside, Token};

impl<'s> Lexer<'s> {
    // ---- inside of brackets -------------------------------------------------------------

    pub(super) fn inside(&mut self, mode: Mode) -> Option<Spanned<'s>> {
        loop {
            let Inner::Inside(lexer) = &mut self.inner else {
                return None;
            };
            let found = lexer.next()?;
            let (start, end) = (lexer.span().start, lexer.span().end);
            let Ok(kind) = found else {
                if mode == Mode::Props {
                    let end = self.foreign_word(start);
                    return Some((
                        offset(start),
                        Token::Word(self.slice(start, end)),
                        offset(end),
                    ));
                }
                self.stray(start, end);
                continue;
            };
            let slice = self.slice(start, end);
            let token = match kind {
                Inside::Word | Inside::Int | Inside::Decimal => {
                    if mode == Mode::Props && foreign_length(self.rest(), true) > 0 {
                        let end = self.foreign_word(start);
                        return Some((
                            offset(start),
                            Token::Word(self.slice(start, end)),
                            offset(end),
                        ));
                    }
                    match kind {
                        Inside::Int => Token::Int(slice),
                        Inside::Decimal => Token::Decimal(slice),
                        _ if slice == "depth"
                            && mode == Mode::Position
                            && self.rest().starts_with('(') =>
                        {
                            self.bump(1);
                            self.open(Mode::Depth);
                            Token::AnchorOpen
                        }
                        _ => Token::Word(slice),
                    }
                }
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
                Inside::Sub if mode == Mode::Props => {
                    let end = self.foreign_word(start);
                    return Some((
                        offset(start),
                        Token::Word(self.slice(start, end)),
                        offset(end),
                    ));
                }
                Inside::Sub => Token::Sub(slice.get(1..).unwrap_or_default()),
                Inside::Open => {
                    self.open(Mode::Props);
                    Token::Open
                }
                Inside::ParenOpen => {
                    self.open(Mode::Props);
                    Token::ParenOpen
                }
                Inside::BraceOpen => {
                    self.open(Mode::Props);
                    Token::BraceOpen
                }
                Inside::Close => {
                    self.close();
                    Token::Close
                }
                Inside::ParenClose => {
                    self.close();
                    Token::ParenClose
                }
                Inside::BraceClose => {
                    self.close();
                    Token::BraceClose
                }
            };
            return Some((offset(start), token, offset(self.read_to())));
        }
    }

    /// A bare word with letters that only a quoted one may have: taken whole, and reported.
    /// Returns its end.
    pub(super) fn foreign_word(&mut self, start: usize) -> usize {
        let rest = self.rest();
        let length: usize = rest
            .chars()
            .take_while(|&c| !is_delimiter(c))
            .map(char::len_utf8)
            .sum();
        self.bump(length);
        let end = self.read_to();
        self.mistake(
            start,
            end,
            Mistake::QuoteValue(self.slice(start, end).into()),
        );
        end
    }

    /// The quoted text that starts at `start`, with its quotes; the first quote may be read
    /// already.
    pub(super) fn quoted(&mut self, start: usize) -> &'s str {
        let bytes = self.text.as_bytes();
        let quote = bytes.get(start).copied().unwrap_or(b'\'');
        let mut at = start + 1;
        let closed = loop {
            match bytes.get(at) {
                None => break false,
                Some(b'\\') => at += 2,
                Some(&byte) => {
                    at += 1;
                    if byte == quote {
                        break true;
                    }
                }
            }
        };
        let mut end = at.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        if !closed {
            self.mistake(
                start,
                self.text.len(),
                Mistake::Unterminated(char::from(quote)),
            );
            end = self.text.len();
        }
        self.bump(end - self.read_to());
        self.slice(start, end)
    }

    // ---- inside of `:depth(…)` and `:nth(…)` --------------------------------------------

    pub(super) fn depth(&mut self) -> Option<Spanned<'s>> {
        let Inner::Depth(lexer) = &mut self.inner else {
            return None;
        };
        let found = lexer.next()?;
        let (start, end) = (lexer.span().start, lexer.span().end);
        let token = match found {
            Err(()) => self.no_depth(start),
            Ok(Depth::Digits) if self.rest().starts_with(is_depth_foreign) => {
                // `1..3` goes on, `1.5` and `1st` are no numbers of ours.
                if self.rest().starts_with("..") {
                    self.digits(start, end)
                } else {
                    self.no_depth(start)
                }
            }
            Ok(Depth::Digits) => self.digits(start, end),
            Ok(Depth::Minus) => Token::Minus,
            Ok(Depth::Dots) => Token::Dots,
            Ok(Depth::Comma) => Token::Comma,
            Ok(Depth::Op(op)) => Token::Op(op),
            Ok(Depth::BraceOpen) => Token::BraceOpen,
            Ok(Depth::BraceClose) => Token::BraceClose,
            Ok(Depth::Param) => Token::Param(self.slice(start + 1, end)),
            Ok(Depth::ParenClose) => {
                self.close();
                Token::ParenClose
            }
        };
        Some((offset(start), token, offset(self.read_to())))
    }

    pub(super) fn digits(&mut self, start: usize, end: usize) -> Token<'s> {
        let number = self.slice(start, end).parse();
        Token::Digits(number.unwrap_or_else(|_| {
            self.mistake(start, end, Mistake::TooLarge);
            1
        }))
    }

    /// Something that is no depth: taken whole, and a depth put in its place.
    pub(super) fn no_depth(&mut self, start: usize) -> Token<'s> {
        let length: usize = self
            .slice(start, self.text.len())
            .chars()
            .take_while(|&c| !is_delimiter(c))
            .map(char::len_utf8)
            .sum();
        let end = self.read_to().max(start + length);
        self.bump(end - self.read_to());
        let word = self.slice(start, end).into();
        self.mistake(start, end, Mistake::NotADepth(word));
        Token::Digits(1)
    }
}

/// What shows, right behind digits, that they are no depth.
fn is_depth_foreign(c: char) -> bool {
    c == '.' || is_word_char(c) && c != '-'
}
