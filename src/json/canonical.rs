//! Canonical JSON (RUNTIME §2): the bytes Python's `json.dumps` writes with sorted keys, no white
//! space and ASCII only.
//!
//! The input is JSON text that the reader has accepted; the output goes to a writer in pieces, so
//! a large value is never built twice. Nothing recurses: a value first becomes a flat list of
//! entries.

use std::borrow::Cow;
use std::io::{self, Write};

use super::reader::{Halt, Reader};
use super::text::{Text, find_not_plain, hex4};

/// Where canonical JSON goes: every [`Write`], and [`Appended`].
pub trait Sink {
    /// Takes the next piece, which is ASCII.
    ///
    /// # Errors
    /// Those of the writer.
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

/// Writes a string with its quotes.
///
/// # Errors
/// Those of `out`.
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

/// The character that the escape `\u` at `at` stands for, and the length of the escape: two for a pair.
/// Half a pair is U+FFFD.
fn unicode(bytes: &[u8], at: usize) -> (char, usize) {
    let unit = |at: usize| hex4(bytes, at).map(u32::from);
    let high = unit(at + 2).unwrap_or(0xFFFD);
    if (0xD800..0xDC00).contains(&high)
        && bytes.get(at + 6..at + 8) == Some(b"\\u")
        && let Some(low @ 0xDC00..0xE000) = unit(at + 8)
    {
        let scalar = 0x10000 + ((high - 0xD800) << 10) + low - 0xDC00;
        return (
            char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER),
            12,
        );
    }
    (
        char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER),
        6,
    )
}

/// Writes a number: integers digit for digit (`-0` is `0`), others as Python's `repr` does.
///
/// # Errors
/// Those of `out`.
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
/// at least two digits elsewhere.
///
/// # Errors
/// Those of `out`.
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

/// The kind of an entry.
enum Item<'a> {
    Text(Text<'a>),
    /// A number or a literal.
    Bare(&'a str),
    Object,
    Array,
}

/// One value in the flat list, which is in the order of the text.
struct Entry<'a> {
    /// Its key, in an object.
    key: Cow<'a, str>,
    item: Item<'a>,
    /// One past the last entry inside it.
    end: u32,
}

/// An open object or array while writing.
struct Writing {
    close: &'static str,
    /// Indexes into the pending entries: of its first child, and of the next one to write.
    start: usize,
    next: usize,
}

fn write_nested<S: Sink + ?Sized>(out: &mut S, raw: &str) -> io::Result<()> {
    let entries = entries(raw).map_err(|Halt| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut pending: Vec<u32> = Vec::new();
    let mut open: Vec<Writing> = Vec::new();
    let mut at = 0u32;
    loop {
        let entry = &entries[at as usize];
        match &entry.item {
            Item::Text(text) => write_escaped(out, text.raw)?,
            Item::Bare(raw) => write_value(out, raw)?,
            Item::Object | Item::Array => {
                let object = matches!(entry.item, Item::Object);
                let start = pending.len();
                let mut child = at + 1;
                while child < entry.end {
                    pending.push(child);
                    child = entries[child as usize].end;
                }
                if object {
                    pending[start..]
                        .sort_by(|&a, &b| entries[a as usize].key.cmp(&entries[b as usize].key));
                }
                out.put(if object { "{" } else { "[" })?;
                open.push(Writing {
                    close: if object { "}" } else { "]" },
                    start,
                    next: start,
                });
            }
        }
        // The next entry of the innermost container that has one left.
        loop {
            let Some(top) = open.last_mut() else {
                return Ok(());
            };
            let Some(&next) = pending.get(top.next) else {
                out.put(top.close)?;
                pending.truncate(top.start);
                open.pop();
                continue;
            };
            if top.next > top.start {
                out.put(",")?;
            }
            top.next += 1;
            if top.close == "}" {
                write_string(out, &entries[next as usize].key)?;
                out.put(":")?;
            }
            at = next;
            break;
        }
    }
}

/// The flat list of a value and everything inside it.
fn entries(raw: &str) -> Result<Vec<Entry<'_>>, Halt> {
    let mut reader = Reader::new(raw);
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut open: Vec<u32> = Vec::new();
    let mut key = Cow::Borrowed("");
    loop {
        let index = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let (item, opened) = match reader.peek() {
            Some(b'"') => (Item::Text(reader.string()?), false),
            Some(b'-' | b'0'..=b'9') => (Item::Bare(reader.number()?.raw), false),
            Some(open @ (b'{' | b'[')) => {
                reader.take(open);
                let object = open == b'{';
                (if object { Item::Object } else { Item::Array }, true)
            }
            _ => (Item::Bare(reader.literal()?), false),
        };
        entries.push(Entry {
            key: std::mem::take(&mut key),
            item,
            end: index + 1,
        });
        let mut first = opened;
        if opened {
            open.push(index);
        }
        loop {
            let Some(&top) = open.last() else {
                return Ok(entries);
            };
            let more = if matches!(entries[top as usize].item, Item::Object) {
                match reader.next_key(first)? {
                    Some((name, _)) => {
                        key = name.decode();
                        true
                    }
                    None => false,
                }
            } else {
                reader.next_element(first)?
            };
            if more {
                break;
            }
            first = false;
            entries[top as usize].end = entries.len() as u32;
            open.pop();
        }
    }
}
