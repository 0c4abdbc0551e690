//! Writing JSON into strings: canonical, or compact in the spelling and order it came in.

use crate::json::{Appended, Reader, members, write_string};
use std::borrow::Cow;

pub(crate) use crate::json::canonical;

pub(crate) fn json_text(text: &str, out: &mut String) {
    // Appending to a string cannot fail.
    let _ = write_string(&mut Appended(out), text);
}

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
pub(crate) fn braced(members: &str) -> String {
    format!("{{{}}}", members.strip_prefix(',').unwrap_or(members))
}

pub(crate) fn object<N: AsRef<str>, V: AsRef<str>>(
    members: impl IntoIterator<Item = (N, V)>,
) -> String {
    let mut out = String::new();
    for (name, value) in members {
        push_member(name.as_ref(), value.as_ref(), &mut out);
    }
    braced(&out)
}

pub(crate) fn list<V: AsRef<str>>(values: impl IntoIterator<Item = V>) -> String {
    let mut out = String::from("[");
    for value in values {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(value.as_ref());
    }
    out.push(']');
    out
}

pub(crate) fn push_members(object: Option<&str>, out: &mut String) {
    for (name, value) in object.map(members).unwrap_or_default() {
        push_member(&name, value, out);
    }
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
pub(crate) fn value(text: &str) -> Option<&str> {
    let mut reader = Reader::new(text);
    let value = reader.skip_value().ok()?;
    reader.end().ok()?;
    reader.problems().is_empty().then_some(value)
}

/// [`value`], if it is an object.
pub(super) fn object_in(text: &str) -> Option<&str> {
    value(text).filter(|value| value.starts_with('{'))
}
