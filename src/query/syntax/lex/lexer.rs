//! The state of the lexer and the operations every mode shares.

use logos::{Lexer as Logos, Logos as _};
use smallvec::SmallVec;

use crate::query::syntax::error::{MAX_MISTAKES, Mistake, SyntaxError};
use crate::query::syntax::span::Span;
use crate::query::syntax::token::{ChainToken, DepthToken, InsideToken, Token};
use crate::query::syntax::words::name_length;

/// A token with its start and end, in the form the generated parser takes.
pub(in crate::query::syntax) type Lexed<'s> = (u32, Token<'s>, u32);

/// What the innermost open bracket contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LexerMode {
    Chain,
    /// The selectors of a condition.
    Condition,
    Props,
    Position,
    /// Depths, or the number of `:nth(…)`.
    Depth,
    /// The short form of a node: no bracket is open.
    Node,
}

/// What was read before the next token outside brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LexerState {
    /// Nothing.
    Start,
    /// The time.
    Body,
    /// A comma.
    Group,
    /// A run of tags that starts a group.
    Run,
    /// `>`.
    Child,
    /// A step, or a part of one.
    Step,
    Filters,
}

pub(super) enum ModeLexer<'s> {
    Chain(Logos<'s, ChainToken>),
    Inside(Logos<'s, InsideToken>),
    Depth(Logos<'s, DepthToken>),
}

/// Iterates over the tokens of a selector; see the module.
pub(in crate::query::syntax) struct Lexer<'s> {
    pub(super) text: &'s str,
    pub(super) inner: ModeLexer<'s>,
    modes: SmallVec<[LexerMode; 8]>,
    /// The states to go back to behind each open condition.
    outer: SmallVec<[LexerState; 2]>,
    pub(super) state: LexerState,
    /// The kind of the time's first end (`t` or `c`) while a range may follow.
    pub(super) range: Option<char>,
    /// Whether the last token was a range mark.
    pub(super) range_end: bool,
    /// Whether the last token was the name of a control.
    pub(super) control: bool,
    /// A token that was read but not yet returned.
    pub(super) pending: Option<Lexed<'s>>,
    errors: Vec<SyntaxError>,
}

impl<'s> Lexer<'s> {
    pub(in crate::query::syntax) fn new(text: &'s str) -> Self {
        Self {
            text,
            inner: ModeLexer::Chain(ChainToken::lexer(text)),
            modes: SmallVec::new(),
            outer: SmallVec::new(),
            state: LexerState::Start,
            range: None,
            range_end: false,
            control: false,
            pending: None,
            errors: Vec::new(),
        }
    }

    /// The tokens of the short form of a node.
    pub(in crate::query::syntax) fn of_node(text: &'s str) -> Self {
        let mut lexer = Self::new(text);
        lexer.modes.push(LexerMode::Node);
        lexer.switch();
        lexer
    }

    /// Takes the mistakes found so far, in text order.
    pub(in crate::query::syntax) fn take_errors(&mut self) -> Vec<SyntaxError> {
        std::mem::take(&mut self.errors)
    }

    pub(in crate::query::syntax) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    pub(super) fn mode(&self) -> LexerMode {
        self.modes.last().copied().unwrap_or(LexerMode::Chain)
    }

    /// The offset up to which the text was read.
    pub(super) fn read_to(&self) -> usize {
        match &self.inner {
            ModeLexer::Chain(lexer) => lexer.span().end,
            ModeLexer::Inside(lexer) => lexer.span().end,
            ModeLexer::Depth(lexer) => lexer.span().end,
        }
    }

    pub(super) fn bump(&mut self, bytes: usize) {
        match &mut self.inner {
            ModeLexer::Chain(lexer) => lexer.bump(bytes),
            ModeLexer::Inside(lexer) => lexer.bump(bytes),
            ModeLexer::Depth(lexer) => lexer.bump(bytes),
        }
    }

    /// The text that was not read yet.
    pub(super) fn rest(&self) -> &'s str {
        self.text.get(self.read_to()..).unwrap_or_default()
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> &'s str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// `token`, from `start` to the offset that was read to.
    pub(super) fn lexed(&self, start: usize, token: Token<'s>) -> Lexed<'s> {
        (offset(start), token, offset(self.read_to()))
    }

    /// Continues at the current offset with the logos lexer of the current mode.
    fn switch(&mut self) {
        let position = self.read_to();
        self.inner = match self.mode() {
            LexerMode::Chain | LexerMode::Condition => {
                ModeLexer::Chain(ChainToken::lexer(self.text))
            }
            LexerMode::Props | LexerMode::Position | LexerMode::Node => {
                ModeLexer::Inside(InsideToken::lexer(self.text))
            }
            LexerMode::Depth => ModeLexer::Depth(DepthToken::lexer(self.text)),
        };
        self.bump(position);
    }

    pub(super) fn open(&mut self, mode: LexerMode, token: Token<'s>) -> Token<'s> {
        self.modes.push(mode);
        self.switch();
        token
    }

    pub(super) fn close(&mut self, token: Token<'s>) -> Token<'s> {
        self.modes.pop();
        self.switch();
        token
    }

    /// Begins the list of a condition: its tokens are those of a chain.
    pub(super) fn open_condition(&mut self) {
        self.modes.push(LexerMode::Condition);
        self.outer.push(self.state);
        self.state = LexerState::Group;
        self.switch();
    }

    /// Ends the list of a condition.
    pub(super) fn close_condition(&mut self) {
        self.modes.pop();
        self.state = self.outer.pop().unwrap_or(LexerState::Step);
        self.switch();
    }

    /// How many conditions are open.
    pub(super) fn levels(&self) -> usize {
        self.outer.len()
    }

    pub(super) fn mistake(&mut self, start: usize, end: usize, mistake: Mistake) {
        if self.errors.len() < MAX_MISTAKES {
            let span = Span::new(offset(start), offset(end));
            self.errors.push(SyntaxError { span, mistake });
        }
    }

    /// Records characters that start no token in the current mode.
    pub(super) fn stray(&mut self, start: usize, end: usize) {
        // logos reports the longest prefix that could have become a token. Only its first
        // character is reported, and a run of such characters is reported once.
        let slice = self.slice(start, end);
        let character = slice.chars().next().unwrap_or('\u{fffd}');
        if let Some(last) = self.errors.last_mut()
            && matches!(last.mistake, Mistake::Stray(_))
            && last.span.end == offset(start)
        {
            last.span.end = offset(start + character.len_utf8());
            return;
        }
        let mut end = start + character.len_utf8();
        if character == '$' {
            let name = name_length(self.rest());
            self.bump(name);
            end += name;
        }
        self.mistake(start, end, Mistake::Stray(character));
    }

    /// The quoted text that starts at `start`, quotes included. The opening quote may have been
    /// read already.
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
        let mut end = self.text.ceil_char_boundary(at);
        if !closed {
            end = self.text.len();
            self.mistake(start, end, Mistake::Unterminated(char::from(quote)));
        }
        self.bump(end - self.read_to());
        self.slice(start, end)
    }
}

/// A byte offset as tokens store it. Selectors are at most 64 KiB long, so it always fits.
pub(super) fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
