//! Canonical JSON (RUNTIME §2): the bytes Python's `json.dumps` writes with sorted keys, no white
//! space and ASCII only.
//!
//! The input is JSON text that the reader has accepted; the output goes to a writer in pieces, so
//! a large value is never built twice. Nothing recurses: open values are on a stack.

use std::io::{self, Write};

use super::members::{Jumps, Member};
use super::reader::{Halt, Reader};
use super::text::{find_not_plain, unicode};

/// Where canonical JSON goes: every [`Write`], and [`Appended`].
pub trait Sink {
    /// Takes the next piece, which is ASCII. Errors: those of the writer.
    fn put(&mut self, piece: &str) -> io::Result<()>;
}

impl<W: Write + ?Sized> Sink for W {
    fn put(&mut self, piece: &str) -> io::Result<()> {
        self.write_all(piece.as_bytes())
    }
}

/// The end of a string as a [`Sink`], which never fails and does not check that it gets text.
pub struct Appended<'a>(pub &'a mut String);

impl Sink for Appended<'_> {
    fn put(&mut self, piece: &str) -> io::Result<()> {
        self.0.push_str(piece);
        Ok(())
    }
}

/// Writes a JSON value in canonical form. `raw` must be well-formed, as [`Reader::skip_value`]
/// returns it; numbers beyond the range of a double are written unchanged. Linear, plus sorting
/// of keys.
///
/// # Errors
/// Those of `out`; text that is not JSON is [`io::ErrorKind::InvalidData`].
pub fn write_value<S: Sink + ?Sized>(out: &mut S, raw: &str) -> io::Result<()> {
    if let Some(body) = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
        return write_escaped(out, body);
    }
    match raw.as_bytes().first() {
        Some(b'{' | b'[') => write_nested(out, raw),
        Some(b'-' | b'0'..=b'9') => write_number(out, raw),
        _ => out.put(raw),
    }
}

/// The canonical form of a JSON value as a string; see [`write_value`].
pub fn canonical(raw: &str) -> String {
    // Some letters more, so that a text with a few that need an escape does not move.
    let mut out = String::with_capacity(raw.len() + raw.len() / 8);
    // Appending fails only for text that is not JSON, which is returned unchanged.
    if write_value(&mut Appended(&mut out), raw).is_err() {
        return raw.to_owned();
    }
    out
}

/// Writes a string with its quotes. Errors: those of `out`.
pub fn write_string<S: Sink + ?Sized>(out: &mut S, text: &str) -> io::Result<()> {
    out.put("\"")?;
    let mut at = 0;
    while at < text.len() {
        let end = find_not_plain(text.as_bytes(), at);
        out.put(&text[at..end])?;
        at = end;
        // The next character, if any, needs an escape.
        if let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) {
            at += character.len_utf8();
            write_char(out, character)?;
        }
    }
    out.put("\"")
}

/// Writes a character that needs an escape.
fn write_char<S: Sink + ?Sized>(out: &mut S, character: char) -> io::Result<()> {
    match character {
        '"' => out.put("\\\""),
        '\\' => out.put("\\\\"),
        '\n' => out.put("\\n"),
        '\r' => out.put("\\r"),
        '\t' => out.put("\\t"),
        '\u{8}' => out.put("\\b"),
        '\u{c}' => out.put("\\f"),
        other => {
            let mut units = [0; 2];
            for unit in other.encode_utf16(&mut units) {
                let mut escape = *b"\\u0000";
                for (place, digit) in escape[2..].iter_mut().enumerate() {
                    *digit = b"0123456789abcdef"[usize::from(*unit >> (12 - 4 * place) & 0xF)];
                }
                out.put(std::str::from_utf8(&escape).unwrap_or_default())?;
            }
            Ok(())
        }
    }
}

/// Writes a string whose text between the quotes has JSON escapes. Most escapes of a log are canonical
/// as they are, so whole runs are copied and nothing is decoded first.
fn write_escaped<S: Sink + ?Sized>(out: &mut S, raw: &str) -> io::Result<()> {
    out.put("\"")?;
    let bytes = raw.as_bytes();
    let (mut copied, mut at) = (0, 0);
    loop {
        at = find_not_plain(bytes, at);
        let (character, length) = match bytes.get(at) {
            None => break,
            Some(b'\\') => match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f') => {
                    at += 2;
                    continue;
                }
                Some(b'u') => unicode(bytes, at),
                // `/`, which needs no escape.
                Some(other) => (char::from(*other), 2),
                None => ('\\', 1),
            },
            Some(_) => match raw.get(at..).and_then(|rest| rest.chars().next()) {
                Some(character) => (character, character.len_utf8()),
                None => break,
            },
        };
        out.put(raw.get(copied..at).unwrap_or_default())?;
        at += length;
        copied = at;
        match character {
            ' '..='~' if !matches!(character, '"' | '\\') => {
                out.put(character.encode_utf8(&mut [0; 4]))?;
            }
            other => write_char(out, other)?,
        }
    }
    out.put(raw.get(copied..).unwrap_or_default())?;
    out.put("\"")
}

/// Writes a number: integers digit for digit (`-0` is `0`), others as Python's `repr` does.
/// Errors: those of `out`.
pub fn write_number<S: Sink + ?Sized>(out: &mut S, raw: &str) -> io::Result<()> {
    if raw
        .bytes()
        .all(|byte| byte == b'-' || byte.is_ascii_digit())
    {
        let raw = if raw == "-0" { "0" } else { raw };
        return out.put(raw);
    }
    match raw.parse::<f64>() {
        Ok(value) if value.is_finite() => write_float(out, value),
        _ => out.put(raw),
    }
}

/// Writes a finite double as Python's `repr` does: the shortest digits that read back as the
/// same number, of two equally near ones the even, plain from 1e-4 up to 1e16, with an exponent of
/// at least two digits elsewhere. Errors: those of `out`.
pub fn write_float<S: Sink + ?Sized>(out: &mut S, value: f64) -> io::Result<()> {
    if value.is_sign_negative() {
        out.put("-")?;
    }
    if value == 0.0 {
        return out.put("0.0");
    }
    // The standard library has the same number of digits, but rounds a tie up.
    let mut buffer = zmij::Buffer::new();
    let shortest = buffer.format_finite(value.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    // The value is 0.digits times ten to the power of `point`.
    let point = whole.len() as i32 - (all.len() - digits.len()) as i32
        + exponent.parse::<i32>().unwrap_or(0);
    let digits = digits.trim_end_matches('0');
    if !(-3..=16).contains(&point) {
        let (first, rest) = digits.split_at(digits.len().min(1));
        let dot = if rest.is_empty() { "" } else { "." };
        let exponent = point - 1;
        let sign = if exponent < 0 { '-' } else { '+' };
        return out.put(&format!("{first}{dot}{rest}e{sign}{:02}", exponent.abs()));
    }
    if point <= 0 {
        let zeros = point.unsigned_abs() as usize;
        return out.put(&format!("0.{:0<zeros$}{digits}", ""));
    }
    let whole = point as usize;
    match digits.split_at_checked(whole) {
        Some((before, after)) if !after.is_empty() => out.put(&format!("{before}.{after}")),
        _ => out.put(&format!("{digits:0<whole$}.0")),
    }
}

/// An open object or list while writing.
struct OpenValue<'a> {
    close: &'static str,
    /// What is left of it; the members of an object sorted by name.
    left: Left<'a>,
    is_first: bool,
}

enum Left<'a> {
    Members(std::vec::IntoIter<Member<'a>>),
    Elements(std::vec::IntoIter<&'a str>),
}

fn write_nested<S: Sink + ?Sized>(out: &mut S, raw: &str) -> io::Result<()> {
    // Where long values end is noted once, so that no level passes over what is inside it again.
    let mut jumps = Jumps::default();
    let checked = jumps.check(&mut Reader::new(raw));
    let (_, own) = checked.map_err(|Halt| io::Error::from(io::ErrorKind::InvalidData))?;
    let json = jumps.accepted(raw, own);
    let mut open: Vec<OpenValue<'_>> = Vec::new();
    let mut next = Some(raw);
    loop {
        match next.take() {
            Some(object) if object.starts_with('{') => {
                let mut members = json.members(object);
                members.sort_by(|a, b| a.0.cmp(&b.0));
                out.put("{")?;
                open.push(OpenValue {
                    close: "}",
                    left: Left::Members(members.into_iter()),
                    is_first: true,
                });
            }
            Some(list) if list.starts_with('[') => {
                out.put("[")?;
                open.push(OpenValue {
                    close: "]",
                    left: Left::Elements(json.elements(list).into_iter()),
                    is_first: true,
                });
            }
            Some(plain) => write_value(out, plain)?,
            None => {}
        }
        let Some(top) = open.last_mut() else {
            return Ok(());
        };
        let (name, value) = match &mut top.left {
            Left::Members(left) => left.next().map(|(name, value)| (Some(name), value)),
            Left::Elements(left) => left.next().map(|value| (None, value)),
        }
        .unzip();
        let Some(value) = value else {
            out.put(top.close)?;
            open.pop();
            continue;
        };
        if !std::mem::take(&mut top.is_first) {
            out.put(",")?;
        }
        if let Some(name) = name.flatten() {
            write_string(out, &name)?;
            out.put(":")?;
        }
        next = Some(value);
    }
}
