//! One level of a JSON value at a time: an object as names and raw texts, an array as raw texts.
//!
//! For callers that need a few members of a value and keep the rest as text. Every function
//! expects text that [`Reader::skip_value`] has accepted, and returns nothing for other text;
//! [`Accepted`](super::accepted::Accepted) does not look for that again. This file must not know log formats.

use super::json::Reader;
use std::borrow::Cow;

/// A member of an object: decoded name, raw value.
pub(crate) type Member<'a> = (Cow<'a, str>, &'a str);

/// The members of an object in the order of the text; empty for any other value. Linear in `raw`.
pub(crate) fn members(raw: &str) -> Vec<Member<'_>> {
    let mut found = Vec::new();
    let mut reader = Reader::new(raw);
    if !raw.starts_with('{') || reader.begin_object().is_err() {
        return found;
    }
    while let Ok(Some((key, _))) = reader.next_key(found.is_empty()) {
        let Ok(value) = reader.skip_value() else {
            break;
        };
        found.push((key.decode(), value));
    }
    found
}

/// The raw elements of an array; empty for any other value. Linear in `raw`.
pub(crate) fn elements(raw: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut reader = Reader::new(raw);
    if !reader.take(b'[') {
        return found;
    }
    while let Ok(true) = reader.next_element(found.is_empty()) {
        let Ok(value) = reader.skip_value() else {
            break;
        };
        found.push(value);
    }
    found
}

/// The decoded string, if the value is one.
pub(crate) fn string(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.starts_with('"') {
        return None;
    }
    Reader::new(raw).string().ok().map(|text| text.decode())
}

/// The value of the first member `name`.
pub(crate) fn get<'a>(members: &[Member<'a>], name: &str) -> Option<&'a str> {
    let found = members.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| *value)
}

/// The type of a JSON value, as far as its first byte shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    Null,
    String,
    Array,
    Object,
    /// A number or a boolean.
    Other,
}

/// The type of `raw`, which has no white space around it.
pub(crate) fn value_type(raw: &str) -> ValueType {
    match raw.as_bytes().first() {
        Some(b'n') => ValueType::Null,
        Some(b'"') => ValueType::String,
        Some(b'[') => ValueType::Array,
        Some(b'{') => ValueType::Object,
        _ => ValueType::Other,
    }
}
