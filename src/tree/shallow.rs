//! One level of a JSON value at a time: an object as names and raw texts, an array as raw texts.
//!
//! For callers that need a few members of a value and keep the rest as text. Every function
//! expects text that [`Reader::skip_value`] has accepted, and returns nothing for other text;
//! [`accepted`] does not look for that again. This file must not know log formats.

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

/// [`members`](self::members()) and [`elements`](self::elements()) of text that was accepted whole before.
///
/// A log is checked once, line by line, and then looked into level by level: what is passed over is not
/// checked again, only its end is found. For other text they return some pieces of it.
pub(crate) mod accepted {
    use super::Member;
    use crate::tree::json::Text;

    /// The members of an object in the order of the text; empty for any other value. Linear in `raw`.
    pub(crate) fn members(raw: &str) -> Vec<Member<'_>> {
        let mut scan = Scan { text: raw, at: 0 };
        let mut found = Vec::new();
        if !scan.take(b'{') || scan.take(b'}') {
            return found;
        }
        // Space for most records: growing from nothing takes longer than finding the members.
        found.reserve(16);
        while let Some(key) = scan.value() {
            let name = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
            let (Some(raw), true) = (name, scan.take(b':')) else {
                break;
            };
            let Some(value) = scan.value() else { break };
            let escaped = memchr::memchr(b'\\', raw.as_bytes()).is_some();
            found.push((Text { raw, escaped }.decode(), value));
            if !scan.take(b',') {
                break;
            }
        }
        found
    }

    /// The raw elements of an array; empty for any other value. Linear in `raw`.
    pub(crate) fn elements(raw: &str) -> Vec<&str> {
        let mut found = Vec::new();
        let mut scan = Scan { text: raw, at: 0 };
        if !scan.take(b'[') || scan.take(b']') {
            return found;
        }
        while let Some(value) = scan.value() {
            found.push(value);
            if !scan.take(b',') {
                break;
            }
        }
        found
    }

    /// A place in a text.
    struct Scan<'a> {
        text: &'a str,
        at: usize,
    }

    impl<'a> Scan<'a> {
        /// Skips white space and returns the next byte.
        fn peek(&mut self) -> Option<u8> {
            let bytes = self.text.as_bytes();
            while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(self.at) {
                self.at += 1;
            }
            bytes.get(self.at).copied()
        }

        /// Takes `byte` if it is next.
        fn take(&mut self, byte: u8) -> bool {
            let found = self.peek() == Some(byte);
            self.at += usize::from(found);
            found
        }

        /// Takes the next value.
        fn value(&mut self) -> Option<&'a str> {
            let first = self.peek()?;
            let bytes = self.text.as_bytes();
            let start = self.at;
            let end = match first {
                b'"' => after_string(bytes, start)?,
                b'{' | b'[' => after_nested(bytes, start)?,
                b',' | b':' | b'}' | b']' => return None,
                _ => {
                    let ends = |byte: &u8| {
                        matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
                    };
                    let rest = bytes.get(start..)?;
                    start + rest.iter().position(ends).unwrap_or(rest.len())
                }
            };
            self.at = end;
            self.text.get(start..end)
        }
    }

    /// The offset after the string at `start`.
    fn after_string(bytes: &[u8], start: usize) -> Option<usize> {
        let mut at = start + 1;
        loop {
            let end = at + memchr::memchr(b'"', bytes.get(at..)?)?;
            // It is escaped if an odd number of backslashes is before it.
            let before = bytes.get(start + 1..end)?;
            let slashes = before.iter().rev().take_while(|byte| **byte == b'\\');
            at = end + 1;
            if slashes.count() % 2 == 0 {
                return Some(at);
            }
        }
    }

    /// The offset after the object or array at `start`.
    fn after_nested(bytes: &[u8], start: usize) -> Option<usize> {
        let (mut at, mut depth) = (start, 0usize);
        loop {
            match bytes.get(at)? {
                b'"' => {
                    at = after_string(bytes, at)?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
}
