//! Canonical JSON (RUNTIME §2): the bytes Python's `json.dumps` writes with sorted keys, no white
//! space and ASCII only.
//!
//! The input is JSON text that the reader has accepted; the output goes to a writer in pieces, so
//! a large value is never built twice. Nothing recurses: a value first becomes a flat list of
//! entries.

use std::borrow::Cow;
use std::io::{self, Write};

use super::json::{Halt, Reader, Text};
use super::model::NONE;

/// Writes a JSON value in canonical form. `raw` must be well-formed, as [`Reader::skip_value`]
/// returns it; numbers beyond the range of a double are written unchanged. Linear, plus sorting
/// of keys.
///
/// # Errors
/// Those of `out`; text that is not JSON is [`io::ErrorKind::InvalidData`].
pub fn write_value<W: Write + ?Sized>(out: &mut W, raw: &str) -> io::Result<()> {
    if let Some(body) = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
        let escaped = memchr::memchr(b'\\', body.as_bytes()).is_some();
        return write_text(out, Text { raw: body, escaped });
    }
    match raw.as_bytes().first() {
        Some(b'{' | b'[') => write_nested(out, raw),
        Some(b'-' | b'0'..=b'9') => write_number(out, raw),
        _ => out.write_all(raw.as_bytes()),
    }
}

/// The canonical form of a JSON value as a string; see [`write_value`].
pub fn canonical(raw: &str) -> String {
    let mut out = Vec::with_capacity(raw.len());
    // Writing to memory fails only for text that is not JSON, which is returned unchanged.
    if write_value(&mut out, raw).is_err() {
        return raw.to_owned();
    }
    String::from_utf8(out).unwrap_or_default()
}

/// Writes a string with its quotes.
///
/// # Errors
/// Those of `out`.
pub fn write_string<W: Write + ?Sized>(out: &mut W, text: &str) -> io::Result<()> {
    out.write_all(b"\"")?;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let plain = plain_length(&bytes[at..]);
        out.write_all(&bytes[at..at + plain])?;
        at += plain;
        // The next character, if any, needs an escape.
        let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) else {
            break;
        };
        at += character.len_utf8();
        match character {
            '"' => out.write_all(b"\\\"")?,
            '\\' => out.write_all(b"\\\\")?,
            '\n' => out.write_all(b"\\n")?,
            '\r' => out.write_all(b"\\r")?,
            '\t' => out.write_all(b"\\t")?,
            '\u{8}' => out.write_all(b"\\b")?,
            '\u{c}' => out.write_all(b"\\f")?,
            other => {
                let mut units = [0; 2];
                for unit in other.encode_utf16(&mut units) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
    }
    out.write_all(b"\"")
}

/// Number of leading bytes that need no escape: space to `~`, except quote and backslash.
fn plain_length(bytes: &[u8]) -> usize {
    const PLAIN: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0x20;
        while byte < 0x7F {
            table[byte] = byte != b'"' as usize && byte != b'\\' as usize;
            byte += 1;
        }
        table
    };
    let escaped = bytes.iter().position(|&byte| !PLAIN[usize::from(byte)]);
    escaped.unwrap_or(bytes.len())
}

/// Writes a string of the input.
fn write_text<W: Write + ?Sized>(out: &mut W, text: Text<'_>) -> io::Result<()> {
    write_string(out, &text.decode())
}

/// Writes a number: integers digit for digit (`-0` is `0`), others as Python's `repr` does.
///
/// # Errors
/// Those of `out`.
pub fn write_number<W: Write + ?Sized>(out: &mut W, raw: &str) -> io::Result<()> {
    if raw
        .bytes()
        .all(|byte| byte == b'-' || byte.is_ascii_digit())
    {
        let raw = if raw == "-0" { "0" } else { raw };
        return out.write_all(raw.as_bytes());
    }
    match raw.parse::<f64>() {
        Ok(value) if value.is_finite() => write_float(out, value),
        _ => out.write_all(raw.as_bytes()),
    }
}

/// Writes a finite double as Python's `repr` does: the shortest digits that read back as the
/// same number, of two equally near ones the even, plain from 1e-4 up to 1e16, with an exponent of
/// at least two digits elsewhere.
///
/// # Errors
/// Those of `out`.
pub fn write_float<W: Write + ?Sized>(out: &mut W, value: f64) -> io::Result<()> {
    if value.is_sign_negative() {
        out.write_all(b"-")?;
    }
    if value == 0.0 {
        return out.write_all(b"0.0");
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
        return write!(out, "{first}{dot}{rest}e{sign}{:02}", exponent.abs());
    }
    if point <= 0 {
        let zeros = point.unsigned_abs() as usize;
        return write!(out, "0.{:0<zeros$}{digits}", "");
    }
    let whole = point as usize;
    match digits.split_at_checked(whole) {
        Some((before, after)) if !after.is_empty() => write!(out, "{before}.{after}"),
        _ => write!(out, "{digits:0<whole$}.0"),
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
    close: u8,
    /// Indexes into the pending entries: of its first child, and of the next one to write.
    start: usize,
    next: usize,
}

fn write_nested<W: Write + ?Sized>(out: &mut W, raw: &str) -> io::Result<()> {
    let entries = entries(raw).map_err(|Halt| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut pending: Vec<u32> = Vec::new();
    let mut open: Vec<Writing> = Vec::new();
    let mut at = 0u32;
    loop {
        let entry = &entries[at as usize];
        match &entry.item {
            Item::Text(text) => write_text(out, *text)?,
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
                out.write_all(if object { b"{" } else { b"[" })?;
                open.push(Writing {
                    close: if object { b'}' } else { b']' },
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
                out.write_all(&[top.close])?;
                pending.truncate(top.start);
                open.pop();
                continue;
            };
            if top.next > top.start {
                out.write_all(b",")?;
            }
            top.next += 1;
            if top.close == b'}' {
                write_string(out, &entries[next as usize].key)?;
                out.write_all(b":")?;
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
        let index = u32::try_from(entries.len()).unwrap_or(NONE);
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
