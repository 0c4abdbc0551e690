//! Writing JSON into strings: canonical, or compact in the spelling and order it came in.

use crate::json::{Appended, Reader, write_string, write_value};
use std::borrow::Cow;

pub(crate) use crate::json::canonical;

/// Appends `text` as a canonical JSON string.
pub(crate) fn json_text(text: &str, out: &mut String) {
    // Appending to a string cannot fail.
    let _ = write_string(&mut Appended(out), text);
}

/// Appends the canonical form of a JSON value.
pub(crate) fn push_canonical(raw: &str, out: &mut String) {
    let before = out.len();
    // Appending fails only for text that is not JSON, which stays as it is.
    if write_value(&mut Appended(out), raw).is_err() {
        out.truncate(before);
        out.push_str(raw);
    }
}

/// Appends a number in decimal digits.
pub(crate) fn push_integer(number: i64, out: &mut String) {
    let mut digits = [0; 20];
    let (mut rest, mut at) = (number.unsigned_abs(), digits.len());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push('-');
    }
    out.extend(digits[at..].iter().map(|digit| char::from(*digit)));
}

/// `text` as a canonical JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    json_text(text, &mut out);
    out
}

/// Appends `,"name":value`; `value` is JSON.
pub(crate) fn push_member(name: &str, value: &str, out: &mut String) {
    out.push(',');
    json_text(name, out);
    out.push(':');
    out.push_str(value);
}

/// An object of members that [`push_member`] wrote.
pub(super) fn object(members: &str) -> String {
    format!("{{{}}}", members.strip_prefix(',').unwrap_or(members))
}

/// A list of values.
pub(super) fn list(values: &[String]) -> String {
    format!("[{}]", values.join(","))
}

/// The JSON value without white space outside strings; numbers, escapes and the order of members
/// stay as they are. Linear.
pub(crate) fn compact(raw: &str) -> Cow<'_, str> {
    let is_space = |c: char| matches!(c, ' ' | '\n' | '\r' | '\t');
    if !raw.starts_with(['{', '[']) || !raw.contains(is_space) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let (mut inside, mut escaped) = (false, false);
    for c in raw.chars() {
        if !inside && is_space(c) {
            continue;
        }
        if c == '"' && !escaped {
            inside = !inside;
        }
        escaped = inside && c == '\\' && !escaped;
        out.push(c);
    }
    Cow::Owned(out)
}

/// The one JSON value of a text, without white space around it; `None` if the text is anything
/// else, or repeats a key.
pub(super) fn value(text: &str) -> Option<&str> {
    let mut reader = Reader::new(text);
    let value = reader.skip_value().ok()?;
    reader.end().ok()?;
    reader.problems().is_empty().then_some(value)
}

/// [`value`], if it is an object.
pub(super) fn object_in(text: &str) -> Option<&str> {
    value(text).filter(|value| value.starts_with('{'))
}
