//! One level of JSON at a time: what an importer needs of a value that was already checked.
//!
//! Importers look at a few members of each record and keep the rest as text, so nothing is parsed
//! into a general value: an object becomes names and raw texts, an array becomes raw texts. Every
//! function expects text that `tree::json::Reader::skip_value` has accepted, and answers an empty
//! result for anything else. This file knows JSON and no log format.

use crate::tree::json::Reader;
use std::borrow::Cow;

/// The members of an object in the order they stand: name and value as written. Linear in `raw`.
pub(crate) fn members(raw: &str) -> Vec<(Cow<'_, str>, &str)> {
    let mut found = Vec::new();
    let mut reader = Reader::new(raw);
    if reader.begin_object().is_err() {
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

/// The elements of an array as written. Linear in `raw`.
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

/// The string a value is, if it is one.
pub(crate) fn string(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.starts_with('"') {
        return None;
    }
    Reader::new(raw).string().ok().map(|text| text.decode())
}

/// What sort of value a checked text is, told by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// `null`.
    Null,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
    /// A number or a boolean.
    Other,
}

/// The sort of `raw`, which has no white space around it.
pub(crate) fn sort(raw: &str) -> Sort {
    match raw.as_bytes().first() {
        Some(b'n') => Sort::Null,
        Some(b'"') => Sort::String,
        Some(b'[') => Sort::Array,
        Some(b'{') => Sort::Object,
        _ => Sort::Other,
    }
}

/// The value of the member `name`, if `raw` is an object that has it.
pub(crate) fn member<'a>(raw: &'a str, name: &str) -> Option<&'a str> {
    if sort(raw) != Sort::Object {
        return None;
    }
    members(raw)
        .into_iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value)
}
