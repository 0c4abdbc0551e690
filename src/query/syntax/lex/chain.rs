//! Tokens outside brackets: steps, combinators, filters and controls.

use super::lexer::{Lexed, Lexer, LexerMode, LexerState, ModeLexer, offset};
use super::time::kind_of;
use crate::query::syntax::error::Mistake;
use crate::query::syntax::token::{ChainToken, Token};
use crate::query::syntax::words::{
    CONDITIONS, CONTROLS, MAX_LEVELS, foreign_length, is_delimiter, is_word_char, length_while,
    name_length, word_length,
};

impl<'s> Lexer<'s> {
    pub(super) fn chain(&mut self) -> Option<Lexed<'s>> {
        let mut space = None;
        loop {
            let ModeLexer::Chain(lexer) = &mut self.inner else {
                return None;
            };
            let found = lexer.next()?;
            let (start, end) = (lexer.span().start, lexer.span().end);
            if found == Ok(ChainToken::Space) {
                space = Some((start, end));
                continue;
            }
            let control = std::mem::take(&mut self.control);
            match found {
                Ok(kind) => {
                    let token = self.chain_token(kind, start, end, space, control);
                    // `None` after a mistake: the next token is tried.
                    if token.is_some() {
                        return token;
                    }
                }
                Err(()) => self.stray(start, end),
            }
        }
    }

    /// Finishes a token; `None` after a mistake. `control`: whether a control precedes it.
    fn chain_token(
        &mut self,
        kind: ChainToken,
        start: usize,
        end: usize,
        space: Option<(usize, usize)>,
        control: bool,
    ) -> Option<Lexed<'s>> {
        let token = match kind {
            ChainToken::Comma => self.enter(LexerState::Group, Token::Comma),
            ChainToken::Child => self.enter(LexerState::Child, Token::Child),
            ChainToken::Plus => {
                let token = self.tag(start)?;
                return Some(self.join_tag(start, token, space));
            }
            ChainToken::At => self.at(start)?,
            ChainToken::Equals => return self.control_value(start, control),
            ChainToken::Question => self.enter(LexerState::Filters, Token::Question),
            ChainToken::Questions => self.enter(LexerState::Filters, Token::Questions),
            ChainToken::BraceOpen => {
                self.state = LexerState::Filters;
                self.open(LexerMode::Props, Token::BraceOpen)
            }
            // Closing brackets without an opening one; the grammar refuses them.
            ChainToken::ParenClose if self.mode() == LexerMode::Condition => {
                self.close_condition();
                Token::ParenClose
            }
            ChainToken::Close => Token::Close,
            ChainToken::ParenClose => Token::ParenClose,
            ChainToken::BraceClose => Token::BraceClose,
            ChainToken::ParenOpen
                if matches!(
                    self.state,
                    LexerState::Start | LexerState::Body | LexerState::Group
                ) =>
            {
                self.state = LexerState::Filters;
                self.open(LexerMode::Position, Token::ParenOpen)
            }
            part => {
                let token = self.part(part, start, end)?;
                return Some(self.join_part(start, token, space));
            }
        };
        Some(self.lexed(start, token))
    }

    fn enter(&mut self, state: LexerState, token: Token<'s>) -> Token<'s> {
        self.state = state;
        token
    }

    /// Returns a token of a step. White space between two steps becomes a combinator token before it.
    fn join_part(
        &mut self,
        start: usize,
        token: Token<'s>,
        space: Option<(usize, usize)>,
    ) -> Lexed<'s> {
        let found = self.lexed(start, token);
        let before = self.state;
        let filters = matches!(token, Token::Nothing | Token::WithinOpen | Token::Within(_));
        self.state = match before {
            LexerState::Filters => LexerState::Filters,
            _ if filters => LexerState::Filters,
            _ => LexerState::Step,
        };
        if let Token::ConditionOpen(_) = token {
            self.open_condition();
        }
        match space {
            Some((start, end))
                if matches!(
                    before,
                    LexerState::Run | LexerState::Step | LexerState::Filters
                ) =>
            {
                self.pending = Some(found);
                (offset(start), Token::Space, offset(end))
            }
            _ => found,
        }
    }

    /// Returns the tag. If it is not part of a step, a token before it marks it as a filter.
    fn join_tag(
        &mut self,
        start: usize,
        token: Token<'s>,
        space: Option<(usize, usize)>,
    ) -> Lexed<'s> {
        let found = self.lexed(start, token);
        match self.state {
            LexerState::Start | LexerState::Body | LexerState::Group | LexerState::Run => {
                self.state = LexerState::Run;
                found
            }
            LexerState::Step | LexerState::Filters if space.is_none() => found,
            LexerState::Child | LexerState::Step | LexerState::Filters => {
                self.state = LexerState::Filters;
                self.pending = Some(found);
                let (start, end) = space.unwrap_or((start, start));
                (offset(start), Token::TagSpace, offset(end))
            }
        }
    }

    /// Finishes a token that is part of a step; `None` after a mistake.
    fn part(&mut self, kind: ChainToken, start: usize, end: usize) -> Option<Token<'s>> {
        let token = match kind {
            ChainToken::Root => Token::Root(self.slice(start + 1, end)),
            ChainToken::Type => {
                let length = word_length(self.slice(start + 1, self.text.len()));
                self.bump((start + 1 + length).saturating_sub(end));
                Token::Type(self.slice(start + 1, start + 1 + length))
            }
            ChainToken::Hash => return self.key(start),
            ChainToken::Pseudo => return self.pseudo(start, end),
            ChainToken::Word => return self.word(start, end),
            ChainToken::Open => self.open(LexerMode::Props, Token::Open),
            ChainToken::ParenOpen => self.open(LexerMode::Props, Token::ParenOpen),
            _ => Token::Star,
        };
        Some(token)
    }

    /// The word after `#`.
    fn key(&mut self, start: usize) -> Option<Token<'s>> {
        let rest = self.rest();
        match rest.as_bytes().first() {
            Some(b'\'' | b'"') => Some(Token::QuotedKey(self.quoted(self.read_to()))),
            Some(b'$') => {
                let length = 1 + name_length(rest.get(1..).unwrap_or_default());
                if length == 1 {
                    self.mistake(start, start + 2, Mistake::MissingWord("#$"));
                    self.bump(1);
                    return None;
                }
                self.bump(length);
                Some(Token::KeyParam(rest.get(1..length).unwrap_or_default()))
            }
            _ => {
                let length = word_length(rest);
                let foreign = foreign_length(rest.get(length..).unwrap_or_default(), false);
                if length + foreign == 0 {
                    self.mistake(start, start + 1, Mistake::MissingWord("#"));
                    return None;
                }
                self.bump(length + foreign);
                let word = rest.get(..length + foreign).unwrap_or_default();
                if foreign > 0 {
                    let mistake = Mistake::QuoteKey(word.into());
                    self.mistake(start, self.read_to(), mistake);
                }
                Some(Token::Key(word))
            }
        }
    }

    /// The word after `+`.
    fn tag(&mut self, start: usize) -> Option<Token<'s>> {
        let rest = self.rest();
        if let Some(b'\'' | b'"') = rest.as_bytes().first() {
            return Some(Token::QuotedTag(self.quoted(self.read_to())));
        }
        let length = length_while(rest, is_word_char);
        if length == 0 {
            self.mistake(start, start + 1, Mistake::MissingWord("+"));
            return None;
        }
        self.bump(length);
        Some(Token::Tag(rest.get(..length).unwrap_or_default()))
    }

    /// `:first`, `:depth(`, `:nth(`, `:has(`; `None` after a mistake.
    fn pseudo(&mut self, start: usize, end: usize) -> Option<Token<'s>> {
        let name = self.slice(start + 1, end);
        let token = match name {
            _ if !self.rest().starts_with('(') => return Some(Token::Pseudo(name)),
            "depth" => Token::DepthOpen,
            "nth" => Token::NthOpen,
            _ if CONDITIONS.contains(&name) => {
                // One level more would let the syntax tree grow as deep as the text is long.
                if self.levels() == MAX_LEVELS {
                    self.mistake(start, end, Mistake::TooDeep);
                    self.skip_parentheses();
                    return Some(Token::Pseudo(name));
                }
                self.bump(1);
                return Some(Token::ConditionOpen(name));
            }
            // The grammar refuses the parenthesis that follows, and lowering refuses the name.
            _ => return Some(Token::Pseudo(name)),
        };
        self.bump(1);
        Some(self.open(LexerMode::Depth, token))
    }

    /// Skips the parentheses that follow, and all inside.
    fn skip_parentheses(&mut self) {
        let bytes = self.rest().as_bytes();
        let (mut level, mut at) = (0_usize, 0);
        let mut quote = None;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match (quote, byte) {
                (Some(_), b'\\') => at += 1,
                (Some(open), byte) if open == byte => quote = None,
                (Some(_), _) => {}
                (None, b'\'' | b'"') => quote = Some(byte),
                (None, b'(') => level += 1,
                (None, b')') if level <= 1 => break,
                (None, b')') => level -= 1,
                (None, _) => {}
            }
        }
        let end = self.text.ceil_char_boundary(self.read_to() + at);
        self.bump(end.min(self.text.len()) - self.read_to());
    }

    /// `depth(`, `within(` or `none`; any other word is a mistake.
    fn word(&mut self, start: usize, end: usize) -> Option<Token<'s>> {
        let word = self.slice(start, end);
        match word {
            "none" => return Some(Token::Nothing),
            "depth" if self.rest().starts_with('(') => {
                self.bump(1);
                return Some(self.open(LexerMode::Depth, Token::AnchorOpen));
            }
            "within" => {
                let rest = self.rest();
                let spaces = rest.len() - rest.trim_ascii_start().len();
                if rest.trim_ascii_start().starts_with('(') {
                    self.bump(spaces + 1);
                    return Some(self.open(LexerMode::Position, Token::WithinOpen));
                }
                if self.mode() == LexerMode::Condition
                    && let Some(value) = rest.trim_ascii_start().strip_prefix('=')
                {
                    let value = value.trim_ascii_start();
                    let length = length_while(value, |c| !is_delimiter(c));
                    self.bump(rest.len() - value.len() + length);
                    return Some(Token::Within(value.get(..length).unwrap_or_default()));
                }
            }
            _ => {}
        }
        // `role=user` without its brackets.
        let rest = self.rest();
        let sign = rest.trim_ascii_start();
        if sign.starts_with(['=', '!', '<', '~']) {
            let value = sign.trim_start_matches(['=', '!', '<', '>', '~']);
            let value = value.trim_ascii_start();
            let length = length_while(value, |c| {
                !c.is_ascii_whitespace() && !",[](){}>".contains(c)
            });
            self.bump(rest.len() - value.len() + length);
            let end = self.read_to();
            let text = self.slice(start, end).into();
            self.mistake(start, end, Mistake::BareComparison(text));
            return Some(Token::Star);
        }
        self.mistake(start, end, Mistake::BareWord(word.into()));
        Some(Token::Star)
    }

    /// The word after `@`: a time at the start of the selector, a control elsewhere.
    fn at(&mut self, start: usize) -> Option<Token<'s>> {
        if let Some((point, end)) = self.point(start) {
            self.bump(end - start - 1);
            if self.state == LexerState::Start {
                self.state = LexerState::Body;
                self.range = Some(kind_of(point));
            }
            self.check_space(start, end);
            return Some(Token::Time(point));
        }
        let length = name_length(self.rest());
        if length == 0 {
            self.mistake(start, start + 1, Mistake::MissingWord("@"));
            return None;
        }
        self.bump(length);
        let name = self.slice(start + 1, start + 1 + length);
        if name == "history" && self.state == LexerState::Start {
            self.state = LexerState::Body;
            return Some(Token::History);
        }
        self.control = true;
        if self.state == LexerState::Start && !CONTROLS.contains(&name) {
            let end = start + 1 + length;
            self.mistake(start, end, Mistake::UnknownTime(name.into()));
            self.state = LexerState::Body;
            return Some(Token::History);
        }
        self.state = LexerState::Filters;
        Some(Token::Control(name))
    }

    fn control_value(&mut self, equals: usize, control: bool) -> Option<Lexed<'s>> {
        if !control {
            self.mistake(equals, equals + 1, Mistake::Stray('='));
            return None;
        }
        let rest = self.rest();
        let start = self.text.len() - rest.trim_ascii_start().len();
        let mut end = start;
        loop {
            let run = length_while(self.slice(end, self.text.len()), |c| {
                !c.is_ascii_whitespace() && !",@[]{}()".contains(c)
            });
            end += run;
            let after = self.slice(end, self.text.len());
            // `@order=turn:desc,pre` goes on after the comma; `.cb @first, .mt` does not.
            let Some(next) = after.trim_ascii_start().strip_prefix(',') else {
                break;
            };
            let next = next.trim_ascii_start();
            if run == 0 || !next.starts_with(is_word_char) {
                break;
            }
            end = self.text.len() - next.len();
        }
        if end == start {
            self.mistake(equals, equals + 1, Mistake::MissingControlValue);
            return None;
        }
        self.bump(end - self.read_to());
        let value = Token::ControlValue(self.slice(start, end));
        Some((offset(start), value, offset(end)))
    }
}
