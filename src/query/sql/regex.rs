//! A pattern of `~` in the words of another engine's regular expressions (STORE §5).
//!
//! The pattern is parsed as the engine here parses it, and written again from what it means: Unicode
//! classes and letters of either case are spelled out as ranges, and anchors mean the ends of the text. So
//! it finds the same texts wherever it is run; what cannot be written so is refused.

use std::fmt::Write;

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use super::dialect::Dialect;

/// How far a repetition may count, and repetitions inside each other, multiplied.
fn most(dialect: Dialect) -> (u32, u32) {
    match dialect {
        Dialect::Postgres => (255, 1_000),
        Dialect::DuckDb => (1_000, 1_000),
        Dialect::Sqlite | Dialect::Spark => (u32::MAX, u32::MAX),
    }
}

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
    let mut out = String::new();
    write(dialect, &hir, 1, &mut out)?;
    Ok(out)
}

/// Writes a part, which the repetitions that it is in repeat this many times.
fn write(dialect: Dialect, hir: &Hir, times: u32, out: &mut String) -> Result<(), String> {
    match hir.kind() {
        HirKind::Empty => out.push_str("(?:)"),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).map_err(|_| bytes())?;
            text.chars().try_for_each(|letter| {
                if letter == '\0' {
                    return Err("U+0000 cannot be in a statement".to_owned());
                }
                write_letter(dialect, letter, out);
                Ok(())
            })?;
        }
        HirKind::Class(class) => write_class(dialect, class, out)?,
        HirKind::Look(look) => out.push_str(look_of(dialect, *look)?),
        HirKind::Repetition(repetition) => write_repetition(dialect, repetition, times, out)?,
        HirKind::Capture(capture) => group(dialect, &capture.sub, times, out)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| match part.kind() {
            HirKind::Alternation(_) => group(dialect, part, times, out),
            _ => write(dialect, part, times, out),
        })?,
        HirKind::Alternation(parts) => {
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    out.push('|');
                }
                write(dialect, part, times, out)?;
            }
        }
    }
    Ok(())
}

fn group(dialect: Dialect, hir: &Hir, times: u32, out: &mut String) -> Result<(), String> {
    out.push_str("(?:");
    write(dialect, hir, times, out)?;
    out.push(')');
    Ok(())
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

fn write_letter(dialect: Dialect, letter: char, out: &mut String) {
    if letter.is_ascii_alphanumeric() || matches!(letter, ' ' | '_') {
        out.push(letter);
    } else {
        write_number(dialect, u32::from(letter), out);
    }
}

fn write_number(dialect: Dialect, letter: u32, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match dialect {
        Dialect::Postgres => write!(out, "\\U{letter:08X}"),
        _ => write!(out, "\\x{{{letter:X}}}"),
    };
}

fn write_class(dialect: Dialect, class: &Class, out: &mut String) -> Result<(), String> {
    let class = match class {
        Class::Unicode(class) => class,
        Class::Bytes(class) => &class.to_unicode_class().ok_or_else(bytes)?,
    };
    let ranges = class.ranges().iter();
    let ranges = ranges.map(|range| (u32::from(range.start()), u32::from(range.end())));
    // No text of a table has U+0000.
    let ranges = ranges.filter(|(_, end)| *end > 0);
    let ranges: Vec<(u32, u32)> = ranges.map(|(start, end)| (start.max(1), end)).collect();
    out.push('[');
    if ranges.is_empty() {
        // Nothing.
        out.push('^');
        write_number(dialect, 1, out);
        out.push('-');
        write_number(dialect, 0x10_FFFF, out);
    }
    for (start, end) in ranges {
        write_number(dialect, start, out);
        if end > start {
            out.push('-');
            write_number(dialect, end, out);
        }
    }
    out.push(']');
    Ok(())
}

fn write_repetition(
    dialect: Dialect,
    repetition: &Repetition,
    times: u32,
    out: &mut String,
) -> Result<(), String> {
    let Repetition { min, max, sub, .. } = repetition;
    let (most, together) = most(dialect);
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
    group(dialect, sub, times, out)?;
    let _ = match (min, max) {
        (0, None) => write!(out, "*"),
        (1, None) => write!(out, "+"),
        (0, Some(1)) => write!(out, "?"),
        (min, None) => write!(out, "{{{min},}}"),
        (min, Some(max)) => write!(out, "{{{min},{max}}}"),
    };
    Ok(())
}
