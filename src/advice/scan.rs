//! Cuts any text into lexemes, whatever language it was meant to be.
//!
//! The lexer of selectors replaces what it does not know. This scanner keeps everything: signs of
//! other languages are lexemes, quoted texts are one lexeme each, and every lexeme knows which
//! bracket it is in. Linear in the text.

use std::ops::Range;

use crate::query::syntax::quote;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Space,
    /// Letters, digits, `_`, and `-` or `.` between them as in `t0-3` and `1.5`.
    Word,
    /// A text in quotes; without its closing one it goes up to the end.
    Quoted,
    /// `/…/flags` where a value belongs.
    Pattern,
    Open,
    Close,
    /// Any other character, or several that are one sign in some language.
    Sign,
}

/// A piece of the text.
#[derive(Clone, Debug)]
pub(super) struct Lexeme {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
    /// The innermost bracket around it, as its index; a bracket is not inside itself.
    pub(super) parent: Option<usize>,
    /// For a bracket, the index of its partner.
    pub(super) partner: Option<usize>,
}

/// A text and its lexemes.
pub(super) struct Scan<'t> {
    pub(super) text: &'t str,
    pub(super) lexemes: Vec<Lexeme>,
    /// Whether the last text in quotes has no end.
    pub(super) unquoted: bool,
}

pub(super) const QUOTES: &str = "‘’‚‛′“”„‟″«»「」";

/// Signs of several characters, the longest first.
const SIGNS: [&str; 37] = [
    "===", "!==", ">>>", "...", "???", "==", "!=", "<>", "<=", ">=", "=<", "=>", "=~", "!~", "~=",
    "~~", "^=", "$=", "*=", "|=", ":=", "&&", "||", "..", "::", ">>", "//", "->", "??", "##", "@@",
    "++", "^^", ",,", "**", ";;", "!!",
];

impl<'t> Scan<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut scan = Self {
            text,
            lexemes: Vec::new(),
            unquoted: false,
        };
        let mut open: Vec<usize> = Vec::new();
        let mut at = 0;
        while let Some(first) = text.get(at..).and_then(|rest| rest.chars().next()) {
            let (kind, length) = scan.piece(at, first);
            let index = scan.lexemes.len();
            let mut partner = None;
            if kind == Kind::Close {
                // A closing bracket of the wrong kind still closes.
                partner = open.pop();
                if let Some(lexeme) = partner.and_then(|opening| scan.lexemes.get_mut(opening)) {
                    lexeme.partner = Some(index);
                }
            }
            scan.lexemes.push(Lexeme {
                kind,
                span: at..at + length,
                parent: open.last().copied(),
                partner,
            });
            if kind == Kind::Open {
                open.push(index);
            }
            at += length;
        }
        scan
    }

    /// The kind and length of the lexeme at `at`, which starts with `first`.
    fn piece(&mut self, at: usize, first: char) -> (Kind, usize) {
        let rest = self.text.get(at..).unwrap_or_default();
        match first {
            c if c.is_whitespace() => {
                let end = rest.find(|c: char| !c.is_whitespace());
                (Kind::Space, end.unwrap_or(rest.len()))
            }
            '\'' | '"' | '`' => {
                let end = closing(rest, first);
                self.unquoted |= end.is_none();
                (Kind::Quoted, end.unwrap_or(rest.len()))
            }
            '[' | '(' | '{' => (Kind::Open, 1),
            ']' | ')' | '}' => (Kind::Close, 1),
            c if is_word(c) => (Kind::Word, word(rest)),
            '/' if self.expects_value() => match closing(rest, '/') {
                Some(end) => {
                    let flags = rest.get(end..).unwrap_or_default();
                    let flags = flags.bytes().take_while(u8::is_ascii_lowercase).count();
                    (Kind::Pattern, end + flags)
                }
                None => (Kind::Sign, 1),
            },
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                (Kind::Sign, sign.map_or(first.len_utf8(), |sign| sign.len()))
            }
        }
    }

    /// Whether a comparison precedes, so that `/` starts a pattern.
    fn expects_value(&self) -> bool {
        let last = self.lexemes.iter().rfind(|one| one.kind != Kind::Space);
        let last = last.and_then(|one| self.text.get(one.span.clone()));
        last.is_some_and(|last| {
            matches!(
                last,
                "=" | "==" | "~" | "=~" | "~=" | "!~" | "!=" | "(" | ","
            ) && self.lexemes.iter().any(|one| one.kind == Kind::Open)
                || matches!(last, "matches" | "like" | "regexp" | "match" | "regex")
        })
    }

    /// The text of a lexeme; empty for an index out of range.
    pub(super) fn word(&self, index: usize) -> &'t str {
        let span = self.lexemes.get(index).map(|lexeme| lexeme.span.clone());
        span.and_then(|span| self.text.get(span))
            .unwrap_or_default()
    }

    pub(super) fn kind(&self, index: usize) -> Option<Kind> {
        self.lexemes.get(index).map(|lexeme| lexeme.kind)
    }

    /// The place of a lexeme; the end of the text for an index out of range.
    pub(super) fn span(&self, index: usize) -> Range<usize> {
        let end = self.text.len();
        self.lexemes
            .get(index)
            .map_or(end..end, |lexeme| lexeme.span.clone())
    }

    pub(super) fn span_between(&self, first: usize, last: usize) -> Range<usize> {
        self.span(first).start..self.span(last).end
    }

    pub(super) fn slice(&self, first: usize, last: usize) -> &'t str {
        self.text
            .get(self.span_between(first, last))
            .unwrap_or_default()
    }

    pub(super) fn next(&self, index: usize) -> Option<usize> {
        (index + 1..self.lexemes.len()).find(|at| self.kind(*at) != Some(Kind::Space))
    }

    pub(super) fn prev(&self, index: usize) -> Option<usize> {
        (0..index)
            .rev()
            .find(|at| self.kind(*at) != Some(Kind::Space))
    }

    pub(super) fn prev_word(&self, index: usize) -> &'t str {
        self.prev(index).map_or("", |prev| self.word(prev))
    }

    /// The bracket around a lexeme: `[`, `(`, `{`, or nothing.
    pub(super) fn bracket(&self, index: usize) -> &'t str {
        self.parent(index).map_or("", |parent| self.word(parent))
    }

    pub(super) fn parent(&self, index: usize) -> Option<usize> {
        self.lexemes.get(index).and_then(|lexeme| lexeme.parent)
    }

    pub(super) fn partner(&self, index: usize) -> Option<usize> {
        self.lexemes.get(index).and_then(|lexeme| lexeme.partner)
    }

    /// The place of what is between two brackets, without white space at the ends.
    pub(super) fn inside(&self, open: usize, close: usize) -> Range<usize> {
        let (start, end) = (self.span(open).end, self.span(close).start);
        let inner = self.text.get(start..end).unwrap_or_default();
        let start = end - inner.trim_start().len();
        start..start + inner.trim().len()
    }

    /// Whether a lexeme is in no bracket.
    pub(super) fn outside(&self, index: usize) -> bool {
        self.parent(index).is_none()
    }

    /// Whether nothing separates a lexeme from the one before it.
    pub(super) fn attached(&self, index: usize) -> bool {
        index
            .checked_sub(1)
            .is_some_and(|before| self.kind(before) != Some(Kind::Space))
    }

    /// Whether a lexeme is the first of a property: after `[`, `{`, `(` or a comma.
    pub(super) fn starts_prop(&self, index: usize) -> bool {
        !self.outside(index) && matches!(self.prev_word(index), "[" | "{" | "(" | ",")
    }

    /// The last lexeme of the value that starts at `index`: a sign and digits, a word with dots
    /// or colons, or a list count as one.
    pub(super) fn value_end(&self, index: usize) -> Option<usize> {
        match self.kind(index)? {
            Kind::Quoted | Kind::Pattern => Some(index),
            Kind::Open if self.word(index) == "[" => self.partner(index),
            Kind::Word => {
                let mut end = index;
                while matches!(self.word(end + 1), ":" | "." | "/" | "@" | "%")
                    && self.kind(end + 2) == Some(Kind::Word)
                {
                    end += 2;
                }
                Some(end)
            }
            Kind::Sign if matches!(self.word(index), "-" | "+" | "$") => {
                (self.kind(index + 1) == Some(Kind::Word)).then_some(index + 1)
            }
            _ => None,
        }
    }

    /// The content of the text in quotes at `index`, or the word.
    pub(super) fn content(&self, index: usize) -> String {
        unquoted(self.word(index))
    }

    /// The lexemes of the group of a union around `index`: without the time, commas outside of
    /// brackets, and what follows the chain.
    pub(super) fn member(&self, index: usize) -> (usize, usize) {
        let top = |at: &usize| self.outside(*at);
        let mut first = self.body();
        for at in (self.body()..index).filter(top) {
            if self.word(at) == "," {
                first = at + 1;
            }
        }
        let mut last = self.lexemes.len().saturating_sub(1);
        for at in (index..self.lexemes.len()).filter(top) {
            let ends = match self.word(at) {
                "," => true,
                "{" | "+" | "@" => !self.attached(at) && at > first,
                _ => false,
            };
            if ends {
                last = at.saturating_sub(1);
                break;
            }
        }
        while first < last && self.kind(first) == Some(Kind::Space) {
            first += 1;
        }
        while last > first && self.kind(last) == Some(Kind::Space) {
            last -= 1;
        }
        (first, last)
    }

    /// The first lexeme after the time.
    pub(super) fn body(&self) -> usize {
        let mut at = usize::from(self.kind(0) == Some(Kind::Space));
        if self.word(at) != "@" {
            return at;
        }
        while at < self.lexemes.len() && self.kind(at) != Some(Kind::Space) {
            if self.kind(at) == Some(Kind::Open) {
                return at;
            }
            at += 1;
        }
        at + 1
    }
}

/// A text without its quotes and the backslashes before them; any other text as it is.
pub(super) fn unquoted(typed: &str) -> String {
    let Some(mark) = typed.chars().next().filter(|mark| "'\"`".contains(*mark)) else {
        return typed.to_owned();
    };
    let inner = typed.get(1..).unwrap_or_default();
    let inner = inner.strip_suffix(mark).unwrap_or(inner);
    inner.replace(&format!("\\{mark}"), &mark.to_string())
}

/// `text` as a value in single quotes, with as few backslashes as possible.
pub(super) fn text_of(text: &str) -> String {
    if !text.contains('\\') {
        return quote(text);
    }
    let mut out = String::from("'");
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let escape = match character {
            '\'' => true,
            '\\' => matches!(characters.peek(), None | Some('\\' | '\'' | '"')),
            _ => false,
        };
        if escape {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('\'');
    out
}

/// `text` as a pattern that finds just it.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the word at the start of `rest`.
fn word(rest: &str) -> usize {
    let mut end = 0;
    let mut characters = rest.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let digits = rest
            .get(..at)
            .is_some_and(|read| read.bytes().all(|byte| byte.is_ascii_digit()));
        let goes_on = is_word(c)
            || c == '-' && next.is_some_and(is_word)
            || c == '.' && digits && next.is_some_and(|next| next.is_ascii_digit());
        if !goes_on {
            break;
        }
        end = at + c.len_utf8();
    }
    end
}

/// The end of the quoted text at the start of `rest`, after its closing mark.
fn closing(rest: &str, mark: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == mark => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Kind, Scan, escaped, text_of};

    #[test]
    fn any_text_is_cut_into_lexemes() {
        let scan = Scan::new("@t0-3 //cb[@role==\"us er\" && x~/a]b/i]");
        let words: Vec<&str> = (0..scan.lexemes.len())
            .filter(|at| scan.kind(*at) != Some(Kind::Space))
            .map(|at| scan.word(at))
            .collect();
        assert_eq!(
            words,
            [
                "@",
                "t0-3",
                "//",
                "cb",
                "[",
                "@",
                "role",
                "==",
                "\"us er\"",
                "&&",
                "x",
                "~",
                "/a]b/i",
                "]"
            ]
        );
    }

    #[test]
    fn brackets_know_their_partners() {
        let scan = Scan::new("a[b(c)]d");
        assert_eq!(scan.partner(1), Some(6));
        assert_eq!(scan.bracket(4), "(");
        assert!(scan.outside(7));
    }

    #[test]
    fn patterns_have_few_backslashes() {
        assert_eq!(text_of(&escaped("a.b")), r"'a\.b'");
        assert_eq!(text_of(&escaped(r"it's\")), r"'it\'s\\\\'");
    }
}
