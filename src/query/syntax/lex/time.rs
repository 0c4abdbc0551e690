//! The time at the start of a selector (LANGUAGE §3). Read by hand, because the second end of a
//! range is abbreviated in ways that depend on the first: `@t-5..-1`, `@c10..20`.

use super::lexer::{Lexed, Lexer, offset};
use crate::query::syntax::ast::TimePoint;
use crate::query::syntax::error::Mistake;
use crate::query::syntax::token::Token;
use crate::query::syntax::words::is_word_char;

impl<'s> Lexer<'s> {
    /// The point that starts with the `@` at `start`, and its end.
    pub(super) fn point(&mut self, start: usize) -> Option<(TimePoint, usize)> {
        let text = self.slice(start + 1, self.text.len());
        if text.starts_with('*') {
            return Some((TimePoint::All, start + 2));
        }
        let kind = text
            .chars()
            .next()
            .filter(|&kind| kind == 't' || kind == 'c')?;
        let (point, length) = self.number(kind, text.get(1..)?, start + 2)?;
        let end = start + 2 + length;
        // `@t0none` and `@c1x` are not points.
        let joined = self.slice(end, self.text.len()).starts_with(is_word_char);
        (!joined).then_some((point, end))
    }

    /// The number of a point: `-3`, `*`, `-*`, `17`, and its length.
    fn number(&mut self, kind: char, text: &str, start: usize) -> Option<(TimePoint, usize)> {
        let sign = text
            .bytes()
            .next()
            .filter(|byte| matches!(byte, b'-' | b'+'));
        let signed = usize::from(sign.is_some());
        let digits = text.get(signed..)?;
        if digits.starts_with('*') {
            let point = match (kind, sign) {
                ('t', Some(b'-')) => TimePoint::Oldest,
                _ => TimePoint::Wild(kind),
            };
            return Some((point, signed + 1));
        }
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return None;
        }
        let end = signed + length;
        let digits = digits.get(..length)?;
        let Ok(number) = digits.parse::<i64>() else {
            self.mistake(start, start + end, Mistake::TooLarge);
            return Some((TimePoint::Back(0), end));
        };
        let point = match (kind, sign) {
            ('t', Some(b'+')) if number == 0 => {
                let word = format!("t{}", self.slice(start, start + end));
                self.mistake(start, start + end, Mistake::UnknownTime(word.into()));
                TimePoint::Back(0)
            }
            ('c', None) => TimePoint::Cycle(number),
            ('c', _) => {
                self.mistake(start, start + end, Mistake::SignedCycle);
                TimePoint::Cycle(number)
            }
            (_, Some(b'-')) => TimePoint::Back(number.unsigned_abs()),
            _ if number == 0 => TimePoint::Back(0),
            _ => TimePoint::Ahead(number.unsigned_abs()),
        };
        Some((point, end))
    }

    /// The range mark after the first end of a time, if there is one.
    pub(super) fn range_mark(&mut self) -> Option<Lexed<'s>> {
        let rest = self.rest();
        let trimmed = rest.trim_ascii_start();
        let start = self.read_to();
        if let Some(behind) = trimmed.strip_prefix("..") {
            let mark = start + (rest.len() - trimmed.len());
            let end = self.text.len() - behind.trim_ascii_start().len();
            self.bump(end - start);
            return Some((offset(mark), Token::RangeMark, offset(mark + 2)));
        }
        let is_end = |text: &str| {
            text.starts_with(|next: char| next.is_ascii_digit() || "@-*".contains(next))
        };
        let behind = trimmed.strip_prefix(':')?;
        let end = behind.trim_ascii_start();
        if !is_end(end) {
            return None;
        }
        let mark = start + (rest.len() - trimmed.len());
        if trimmed.len() < rest.len() || end.len() < behind.len() {
            self.mistake(mark, mark + 1, Mistake::SpacedColon);
        }
        self.bump(self.text.len() - end.len() - start);
        Some((offset(mark), Token::RangeMark, offset(mark + 1)))
    }

    pub(super) fn second_end(&mut self, kind: char) -> Option<Lexed<'s>> {
        let start = self.read_to();
        let rest = self.rest();
        let (point, end) = if rest.starts_with('@') {
            self.point(start)?
        } else if rest.starts_with('*') {
            (TimePoint::All, start + 1)
        } else {
            let signed = rest.starts_with('-');
            let kind = if kind == 'c' && !signed { 'c' } else { 't' };
            let (point, length) = self.number(kind, rest, start)?;
            (point, start + length)
        };
        self.bump(end - start);
        self.check_space(start, end);
        Some((offset(start), Token::RangeEnd(point), offset(end)))
    }

    /// Reports a time that a word follows without white space.
    pub(super) fn check_space(&mut self, start: usize, end: usize) {
        if self.rest().starts_with(is_word_char) {
            let mistake = Mistake::SpaceAfterTime(self.slice(start, end).into());
            self.mistake(end, end, mistake);
        }
    }
}

/// The kind of a range's first end, which the second end may omit.
pub(super) fn kind_of(point: TimePoint) -> char {
    match point {
        TimePoint::Cycle(_) | TimePoint::Wild('c') => 'c',
        _ => 't',
    }
}
