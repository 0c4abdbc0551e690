//! Turns text into grammar tokens, one at a time.
//!
//! Three things that a context-free grammar cannot say well are settled here, so that the
//! grammar stays small and LR(1):
//!
//! - White space is a token only where it joins two steps; around `>` and `,`, before braces
//!   and controls, and inside of brackets it is nothing.
//! - A word behind `.` or `#` ends before its trailing pseudo-classes (LANGUAGE §2):
//!   `.cb:summary:first` is the type `cb:summary` and `:first`.
//! - A run of tags at the start of a group is one step, white space or not; elsewhere a tag
//!   behind white space is told apart from one that is attached (LANGUAGE §4).
//!
//! A mistake in the lexis is recorded and something harmless is put in its place, so the lexer
//! always reaches the end. Every step moves forward: time is linear in the text.

mod inside;
mod time;
mod word;

use logos::{Lexer as Logos, Logos as _};
use smallvec::SmallVec;

use self::time::kind_of;
use self::word::{foreign_length, name_length, word_length};
pub(super) use self::word::{is_plain_word, is_word_char};
use super::error::{Mistake, SyntaxError};
use super::span::Span;
use super::token::{Chain, Depth, Inside, Token};

/// A token with its place, as the generated parser takes it.
pub(super) type Spanned<'s> = (u32, Token<'s>, u32);

/// The controls; any other word behind `@` at the start was meant to be a time.
pub(super) const CONTROLS: [&str; 6] = ["limit", "p", "order", "mode", "first", "unique"];

/// What the brackets that are open now hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Chain,
    Props,
    Position,
    Depth,
}

/// Where in the selector the next token of the chain mode stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nothing was read yet.
    Start,
    /// Behind the time.
    Body,
    /// Behind a comma.
    Group,
    /// In a run of tags that starts a group.
    Run,
    /// Behind `>`.
    Child,
    /// In or behind a step.
    Step,
    /// Behind something that filters the final set.
    Filters,
}

/// The logos lexer of the current mode.
enum Inner<'s> {
    Chain(Logos<'s, Chain>),
    Inside(Logos<'s, Inside>),
    Depth(Logos<'s, Depth>),
}

/// See the module.
pub(super) struct Lexer<'s> {
    text: &'s str,
    inner: Inner<'s>,
    modes: SmallVec<[Mode; 8]>,
    place: Place,
    /// The kind of the time's first end (`t`, `c` or `*`), while a range may follow it.
    range: Option<char>,
    /// Whether a range mark was just read.
    range_end: bool,
    /// Whether the last token was a control's name.
    control: bool,
    pending: Option<Spanned<'s>>,
    errors: Vec<SyntaxError>,
}

impl<'s> Lexer<'s> {
    pub(super) fn new(text: &'s str) -> Self {
        Self {
            text,
            inner: Inner::Chain(Chain::lexer(text)),
            modes: SmallVec::new(),
            place: Place::Start,
            range: None,
            range_end: false,
            control: false,
            pending: None,
            errors: Vec::new(),
        }
    }

    /// The mistakes found so far, in order.
    pub(super) fn take_errors(&mut self) -> Vec<SyntaxError> {
        std::mem::take(&mut self.errors)
    }

    pub(super) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    fn mode(&self) -> Mode {
        self.modes.last().copied().unwrap_or(Mode::Chain)
    }

    /// How far the text is read.
    fn read_to(&self) -> usize {
        match &self.inner {
            Inner::Chain(lexer) => lexer.span().end,
            Inner::Inside(lexer) => lexer.span().end,
            Inner::Depth(lexer) => lexer.span().end,
        }
    }

    fn bump(&mut self, bytes: usize) {
        match &mut self.inner {
            Inner::Chain(lexer) => lexer.bump(bytes),
            Inner::Inside(lexer) => lexer.bump(bytes),
            Inner::Depth(lexer) => lexer.bump(bytes),
        }
    }

    fn rest(&self) -> &'s str {
        self.text.get(self.read_to()..).unwrap_or_default()
    }

    /// Reads on from here in the mode that is now on top.
    fn switch(&mut self) {
        let position = self.read_to();
        self.inner = match self.mode() {
            Mode::Chain => Inner::Chain(Chain::lexer(self.text)),
            Mode::Props | Mode::Position => Inner::Inside(Inside::lexer(self.text)),
            Mode::Depth => Inner::Depth(Depth::lexer(self.text)),
        };
        self.bump(position);
    }

    fn open(&mut self, mode: Mode) {
        self.modes.push(mode);
        self.switch();
    }

    fn close(&mut self) {
        self.modes.pop();
        self.switch();
    }

    fn mistake(&mut self, start: usize, end: usize, mistake: Mistake) {
        if self.errors.len() >= super::MAX_MISTAKES {
            return;
        }
        self.errors.push(SyntaxError {
            span: Span::new(offset(start), offset(end)),
            mistake,
        });
    }

    fn slice(&self, start: usize, end: usize) -> &'s str {
        self.text.get(start..end).unwrap_or_default()
    }

    // ---- outside of brackets ------------------------------------------------------------

    fn chain(&mut self) -> Option<Spanned<'s>> {
        let mut space = None;
        loop {
            let Inner::Chain(lexer) = &mut self.inner else {
                return None;
            };
            let found = lexer.next()?;
            let (start, end) = (lexer.span().start, lexer.span().end);
            let control = std::mem::take(&mut self.control);
            let Ok(kind) = found else {
                self.stray(start, end);
                continue;
            };
            let token = match kind {
                Chain::Space => {
                    self.control = control;
                    space = Some((start, end));
                    continue;
                }
                Chain::Comma => {
                    self.place = Place::Group;
                    Token::Comma
                }
                Chain::Child => {
                    self.place = Place::Child;
                    Token::Child
                }
                Chain::Plus => {
                    let Some(token) = self.tag(start) else {
                        continue;
                    };
                    return Some(self.place_tag(start, token, space));
                }
                Chain::At => {
                    let Some(token) = self.at(start) else {
                        continue;
                    };
                    token
                }
                Chain::Equals => {
                    let Some(token) = self.control_value(start, control) else {
                        continue;
                    };
                    return Some(token);
                }
                Chain::Question | Chain::Questions => {
                    self.place = Place::Filters;
                    if kind == Chain::Question {
                        Token::Question
                    } else {
                        Token::Questions
                    }
                }
                Chain::BraceOpen => {
                    self.place = Place::Filters;
                    self.open(Mode::Props);
                    Token::BraceOpen
                }
                // A closing bracket without an opening one: the grammar refuses it.
                Chain::Close => Token::Close,
                Chain::ParenClose => Token::ParenClose,
                Chain::BraceClose => Token::BraceClose,
                Chain::ParenOpen
                    if matches!(self.place, Place::Start | Place::Body | Place::Group) =>
                {
                    self.place = Place::Filters;
                    self.open(Mode::Position);
                    Token::ParenOpen
                }
                Chain::Root
                | Chain::Star
                | Chain::Type
                | Chain::Hash
                | Chain::Pseudo
                | Chain::Word
                | Chain::Open
                | Chain::ParenOpen => {
                    let Some(token) = self.part(kind, start, end) else {
                        continue;
                    };
                    return Some(self.place_part(start, token, space));
                }
            };
            return Some((offset(start), token, offset(self.read_to())));
        }
    }

    /// Puts the combinator white space before a part of a step, where there is any.
    fn place_part(
        &mut self,
        start: usize,
        token: Token<'s>,
        space: Option<(usize, usize)>,
    ) -> Spanned<'s> {
        let found = (offset(start), token, offset(self.read_to()));
        let before = self.place;
        if matches!(token, Token::Nothing | Token::WithinOpen) || before == Place::Filters {
            self.place = Place::Filters;
        } else {
            self.place = Place::Step;
        }
        match space {
            Some((start, end)) if matches!(before, Place::Run | Place::Step | Place::Filters) => {
                self.pending = Some(found);
                (offset(start), Token::Space, offset(end))
            }
            _ => found,
        }
    }

    /// Marks a tag that is no part of a step.
    fn place_tag(
        &mut self,
        start: usize,
        token: Token<'s>,
        space: Option<(usize, usize)>,
    ) -> Spanned<'s> {
        let found = (offset(start), token, offset(self.read_to()));
        match self.place {
            Place::Start | Place::Body | Place::Group | Place::Run => {
                self.place = Place::Run;
                found
            }
            Place::Step | Place::Filters if space.is_none() => found,
            Place::Child | Place::Step | Place::Filters => {
                self.place = Place::Filters;
                self.pending = Some(found);
                let (start, end) = space.unwrap_or((start, start));
                (offset(start), Token::TagSpace, offset(end))
            }
        }
    }

    /// Finishes a token that is part of a step.
    fn part(&mut self, kind: Chain, start: usize, end: usize) -> Option<Token<'s>> {
        let token = match kind {
            Chain::Root => Token::Root(self.slice(start + 1, end)),
            Chain::Type => {
                let length = word_length(self.slice(start + 1, self.text.len()));
                self.bump((start + 1 + length).saturating_sub(end));
                Token::Type(self.slice(start + 1, start + 1 + length))
            }
            Chain::Hash => return self.key(start),
            Chain::Pseudo => self.pseudo(start, end),
            Chain::Word => return self.word(start, end),
            Chain::Open => {
                self.open(Mode::Props);
                Token::Open
            }
            Chain::ParenOpen => {
                self.open(Mode::Props);
                Token::ParenOpen
            }
            _ => Token::Star,
        };
        Some(token)
    }

    /// What stands behind `#`.
    fn key(&mut self, start: usize) -> Option<Token<'s>> {
        let rest = self.rest();
        match rest.as_bytes().first() {
            Some(b'\'' | b'"') => {
                let at = self.read_to();
                let quoted = self.quoted(at);
                Some(Token::QuotedKey(quoted))
            }
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

    /// What stands behind `+`.
    fn tag(&mut self, start: usize) -> Option<Token<'s>> {
        let rest = self.rest();
        if let Some(b'\'' | b'"') = rest.as_bytes().first() {
            let at = self.read_to();
            return Some(Token::QuotedTag(self.quoted(at)));
        }
        let length = rest
            .bytes()
            .take_while(|&byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
            .count();
        if length == 0 {
            self.mistake(start, start + 1, Mistake::MissingWord("+"));
            return None;
        }
        self.bump(length);
        Some(Token::Tag(rest.get(..length).unwrap_or_default()))
    }

    /// `:first`, `:depth(`, `:nth(`.
    fn pseudo(&mut self, start: usize, end: usize) -> Token<'s> {
        let name = self.slice(start + 1, end);
        if !self.rest().starts_with('(') {
            return Token::Pseudo(name);
        }
        match name {
            "depth" => {
                self.bump(1);
                self.open(Mode::Depth);
                Token::DepthOpen
            }
            "nth" => {
                self.bump(1);
                self.open(Mode::Depth);
                Token::NthOpen
            }
            // The parenthesis that follows is refused by the grammar, the name by lowering.
            _ => Token::Pseudo(name),
        }
    }

    /// `depth(`, `within(`, `none`, or a mistake.
    fn word(&mut self, start: usize, end: usize) -> Option<Token<'s>> {
        let word = self.slice(start, end);
        match word {
            "none" => return Some(Token::Nothing),
            "depth" if self.rest().starts_with('(') => {
                self.bump(1);
                self.open(Mode::Depth);
                return Some(Token::AnchorOpen);
            }
            "within" => {
                let rest = self.rest();
                let spaces = rest.len() - rest.trim_ascii_start().len();
                if rest.trim_ascii_start().starts_with('(') {
                    self.bump(spaces + 1);
                    self.open(Mode::Position);
                    return Some(Token::WithinOpen);
                }
            }
            _ => {}
        }
        // `role=user`, without its brackets
        let rest = self.rest();
        if rest
            .trim_ascii_start()
            .starts_with(|next: char| "=!<~".contains(next))
        {
            let spaces = rest.len() - rest.trim_ascii_start().len();
            let sign = rest.trim_ascii_start();
            let signs = sign.len() - sign.trim_start_matches(['=', '!', '<', '>', '~']).len();
            let value = sign.get(signs..).unwrap_or_default();
            let gap = value.len() - value.trim_ascii_start().len();
            let length: usize = value
                .trim_ascii_start()
                .chars()
                .take_while(|&c| !c.is_ascii_whitespace() && !",[](){}>".contains(c))
                .map(char::len_utf8)
                .sum();
            self.bump(spaces + signs + gap + length);
            let end = self.read_to();
            let text = self.slice(start, end).into();
            self.mistake(start, end, Mistake::BareComparison(text));
            return Some(Token::Star);
        }
        self.mistake(start, end, Mistake::BareWord(word.into()));
        Some(Token::Star)
    }

    /// What stands behind `@`: a time at the start, a control elsewhere.
    fn at(&mut self, start: usize) -> Option<Token<'s>> {
        if let Some((point, end)) = self.point(start) {
            self.bump(end - start - 1);
            let token = match self.place {
                Place::Start => {
                    self.place = Place::Body;
                    self.range = Some(kind_of(point));
                    Token::Time(point)
                }
                _ => Token::Time(point),
            };
            if self.rest().starts_with(is_word_char) {
                let mistake = Mistake::SpaceBehindTime(self.slice(start, end).into());
                self.mistake(end, end, mistake);
            }
            return Some(token);
        }
        let length = name_length(self.rest());
        if length == 0 {
            self.mistake(start, start + 1, Mistake::MissingWord("@"));
            return None;
        }
        self.bump(length);
        let name = self.slice(start + 1, start + 1 + length);
        if name == "history" && self.place == Place::Start {
            self.place = Place::Body;
            return Some(Token::History);
        }
        self.control = true;
        if self.place == Place::Start && !CONTROLS.contains(&name) {
            let end = start + 1 + length;
            self.mistake(start, end, Mistake::UnknownTime(name.into()));
            self.place = Place::Body;
            return Some(Token::History);
        }
        self.place = Place::Filters;
        Some(Token::Control(name))
    }

    /// The value of a control, behind its `=`.
    fn control_value(&mut self, equals: usize, control: bool) -> Option<Spanned<'s>> {
        if !control {
            self.mistake(equals, equals + 1, Mistake::Stray('='));
            return None;
        }
        let rest = self.rest();
        let start = self.text.len() - rest.trim_ascii_start().len();
        let mut end = start;
        loop {
            let run: usize = self
                .slice(end, self.text.len())
                .chars()
                .take_while(|&c| !c.is_ascii_whitespace() && !",@[]{}()".contains(c))
                .map(char::len_utf8)
                .sum();
            end += run;
            let behind = self.slice(end, self.text.len());
            let Some(next) = behind.trim_ascii_start().strip_prefix(',') else {
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
        Some((
            offset(start),
            Token::ControlValue(self.slice(start, end)),
            offset(end),
        ))
    }

    /// Something no selector holds outside of brackets.
    fn stray(&mut self, start: usize, end: usize) {
        // logos reports the longest prefix that could have become a token; one character at a
        // time is enough to say what is wrong, and whatever belongs to the same place follows.
        let slice = self.slice(start, end);
        let character = slice.chars().next().unwrap_or('\u{fffd}');
        let last = self.errors.last();
        if last.is_some_and(|last| {
            matches!(last.mistake, Mistake::Stray(_)) && last.span.end == offset(start)
        }) {
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
}

impl<'s> Iterator for Lexer<'s> {
    type Item = Spanned<'s>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.pending.is_some() {
            return self.pending.take();
        }
        if let Some(kind) = self.range.take() {
            if self.range_end {
                self.range_end = false;
                if let Some(end) = self.second_end(kind) {
                    return Some(end);
                }
            } else if let Some(mark) = self.range_mark() {
                self.range = Some(kind);
                self.range_end = true;
                return Some(mark);
            }
        }
        match self.mode() {
            Mode::Chain => self.chain(),
            mode @ (Mode::Props | Mode::Position) => self.inside(mode),
            Mode::Depth => self.depth(),
        }
    }
}

/// A byte offset as the tokens carry it. Texts are at most 64 KiB long.
fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Lexer, Token};

    fn tokens(text: &str) -> Vec<Token<'_>> {
        Lexer::new(text).map(|(_, token, _)| token).collect()
    }

    #[test]
    fn white_space_is_a_token_only_between_steps() {
        use Token::{Child, Comma, Space, Star};
        assert_eq!(tokens(" * "), [Star]);
        assert_eq!(tokens("* *"), [Star, Space, Star]);
        assert_eq!(tokens("* > *\n,\t*"), [Star, Child, Star, Comma, Star]);
    }

    #[test]
    fn a_run_of_tags_starts_a_group_and_later_tags_filter() {
        use Token::{Comma, Star, Tag, TagSpace};
        assert_eq!(tokens("+a +b"), [Tag("a"), Tag("b")]);
        assert_eq!(
            tokens("*+a +b +c"),
            [Star, Tag("a"), TagSpace, Tag("b"), TagSpace, Tag("c")]
        );
        assert_eq!(tokens("*, +a +b"), [Star, Comma, Tag("a"), Tag("b")]);
    }
}
