//! A pattern of `~` in the words of another engine's regular expressions (STORE §5).
//!
//! The pattern is parsed as the engine here parses it, and written again from what it means: Unicode
//! classes and letters of either case are spelled out as ranges, and anchors mean the ends of the text. So
//! it finds the same texts wherever it is run; what cannot be written so is refused.

use std::fmt::Write;

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use super::dialect::Dialect;

/// The text that a pattern is, if it is one without anything special.
pub(super) fn literal(pattern: &str) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    match hir.kind() {
        HirKind::Literal(literal) => {
            let text = String::from_utf8(literal.0.to_vec()).ok()?;
            (!text.contains('\0')).then_some(text)
        }
        _ => None,
    }
}

/// The pattern for a dialect.
///
/// # Errors
/// What the dialect cannot say, for people.
pub(super) fn translate(dialect: Dialect, pattern: &str) -> Result<String, String> {
    let hir =
        regex_syntax::parse(pattern).map_err(|_| "it is not a regular expression".to_owned())?;
    let out = String::new();
    let mut writer = PatternWriter { dialect, out };
    writer.write(&hir, 1)?;
    Ok(writer.out)
}

struct PatternWriter {
    dialect: Dialect,
    out: String,
}

impl PatternWriter {
    /// Writes a part, which the repetitions that it is in repeat this many times.
    fn write(&mut self, hir: &Hir, times: u32) -> Result<(), String> {
        match hir.kind() {
            HirKind::Empty => self.out.push_str("(?:)"),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).map_err(|_| bytes())?;
                if text.contains('\0') {
                    return Err("U+0000 cannot be in a statement".to_owned());
                }
                text.chars().for_each(|letter| self.letter(letter));
            }
            HirKind::Class(class) => self.class(class)?,
            HirKind::Look(look) => self.out.push_str(look_of(self.dialect, *look)?),
            HirKind::Repetition(repetition) => self.repetition(repetition, times)?,
            HirKind::Capture(capture) => self.group(&capture.sub, times)?,
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| match part.kind() {
                HirKind::Alternation(_) => self.group(part, times),
                _ => self.write(part, times),
            })?,
            HirKind::Alternation(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        self.out.push('|');
                    }
                    self.write(part, times)?;
                }
            }
        }
        Ok(())
    }

    fn group(&mut self, hir: &Hir, times: u32) -> Result<(), String> {
        self.out.push_str("(?:");
        self.write(hir, times)?;
        self.out.push(')');
        Ok(())
    }

    fn letter(&mut self, letter: char) {
        if letter.is_ascii_alphanumeric() || matches!(letter, ' ' | '_') {
            self.out.push(letter);
        } else {
            self.number(u32::from(letter));
        }
    }

    fn number(&mut self, letter: u32) {
        // Writing to a string cannot fail.
        let _ = match self.dialect {
            Dialect::Postgres => write!(self.out, "\\U{letter:08X}"),
            _ => write!(self.out, "\\x{{{letter:X}}}"),
        };
    }

    fn range(&mut self, start: u32, end: u32) {
        self.number(start);
        if end > start {
            self.out.push('-');
            self.number(end);
        }
    }

    fn class(&mut self, class: &Class) -> Result<(), String> {
        let class = match class {
            Class::Unicode(class) => class,
            Class::Bytes(class) => &class.to_unicode_class().ok_or_else(bytes)?,
        };
        let ranges = class.ranges().iter();
        let ranges = ranges.map(|range| (u32::from(range.start()), u32::from(range.end())));
        // No text of a table has U+0000.
        let mut ranges = ranges.filter(|(_, end)| *end > 0).peekable();
        self.out.push('[');
        if ranges.peek().is_none() {
            // Nothing.
            self.out.push('^');
            self.range(1, 0x10_FFFF);
        }
        ranges.for_each(|(start, end)| self.range(start.max(1), end));
        self.out.push(']');
        Ok(())
    }

    fn repetition(&mut self, repetition: &Repetition, times: u32) -> Result<(), String> {
        let Repetition { min, max, sub, .. } = repetition;
        // How far a repetition may count, and repetitions inside each other, multiplied.
        let (most, together) = match self.dialect {
            Dialect::Postgres => (255, 1_000),
            Dialect::DuckDb => (1_000, 1_000),
            Dialect::Sqlite | Dialect::Spark => (u32::MAX, u32::MAX),
        };
        let count = (*min).max(max.unwrap_or(0));
        if count > most {
            return Err(format!("it repeats a part more than {most} times"));
        }
        let times = times.saturating_mul(count.max(1));
        if times > together {
            return Err(format!(
                "repetitions inside each other repeat a part more than {together} times"
            ));
        }
        self.group(sub, times)?;
        let _ = match (min, max) {
            (0, None) => write!(self.out, "*"),
            (1, None) => write!(self.out, "+"),
            (0, Some(1)) => write!(self.out, "?"),
            (min, None) => write!(self.out, "{{{min},}}"),
            (min, Some(max)) => write!(self.out, "{{{min},{max}}}"),
        };
        Ok(())
    }
}

fn bytes() -> String {
    "it is about bytes, not letters".to_owned()
}

fn look_of(dialect: Dialect, look: Look) -> Result<&'static str, String> {
    Ok(match (look, dialect) {
        (Look::Start, _) => "\\A",
        (Look::End, Dialect::Postgres) => "\\Z",
        (Look::End, _) => "\\z",
        (Look::StartLF, Dialect::DuckDb) => "(?m:^)",
        (Look::EndLF, Dialect::DuckDb) => "(?m:$)",
        (Look::StartLF, _) => "(?:\\A|(?<=\\n))",
        (Look::EndLF, Dialect::Postgres) => "(?:\\Z|(?=\\n))",
        (Look::EndLF, _) => "(?:\\z|(?=\\n))",
        (Look::StartCRLF | Look::EndCRLF, _) => {
            return Err("it is about the ends of lines that end in `\\r\\n`".to_owned());
        }
        _ => return Err("it is about the edges of words (`\\b`, `\\B`, `\\<`, `\\>`)".to_owned()),
    })
}
