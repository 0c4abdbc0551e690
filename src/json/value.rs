//! Values whose text is decoded: what a node keeps of the JSON it was read from.
//!
//! A string is kept as its text, which every reader compares, searches and counts; JSON is written from it. Numbers,
//! lists and objects are kept as they were written, because some cannot be made again: digits beyond those of a
//! double, and the order of keys, which a request gives back.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::canonical::{Appended, Sink, write_string, write_value};
use super::text::unescape_into;

/// A JSON value. Equal values are spelled the same, except for escapes in texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JsonValue<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as written.
    Number(&'a str),
    /// The decoded text of a string.
    Text(&'a str),
    /// A list, as written.
    List(&'a str),
    /// An object, as written.
    Object(&'a str),
}

/// The first byte of a stored text; other values are stored as they were written.
const QUOTE: char = '"';

impl<'a> JsonValue<'a> {
    /// Reads a value in the form that [`JsonValue::store`] writes. Constant time.
    #[inline]
    pub(crate) fn stored(stored: &'a str) -> Self {
        match stored.as_bytes().first() {
            Some(b'"') => Self::Text(stored.get(1..).unwrap_or_default()),
            Some(b'n') | None => Self::Null,
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'[') => Self::List(stored),
            Some(b'{') => Self::Object(stored),
            Some(_) => Self::Number(stored),
        }
    }

    /// Reads accepted JSON text without white space around it; a string with escapes is decoded into `decoded`.
    #[inline]
    pub(crate) fn read(json: &'a str, decoded: &'a mut String) -> Self {
        let Some(raw) = string_body(json) else {
            return Self::stored(json);
        };
        if memchr::memchr(b'\\', raw.as_bytes()).is_none() {
            return Self::Text(raw);
        }
        decoded.clear();
        unescape_into(raw, decoded);
        Self::Text(decoded)
    }

    /// Appends the value as [`JsonValue::stored`] reads it: a text after a quote, others as JSON.
    #[inline]
    pub(crate) fn store(self, out: &mut String) {
        match self {
            Self::Text(text) => {
                out.push(QUOTE);
                out.push_str(text);
            }
            other => out.push_str(other.written()),
        }
    }

    /// Bytes that [`JsonValue::store`] appends.
    #[inline]
    pub(crate) fn stored_len(self) -> usize {
        match self {
            Self::Text(text) => text.len() + 1,
            other => other.written().len(),
        }
    }

    /// A value that is not a text as it was written.
    #[inline]
    fn written(self) -> &'a str {
        match self {
            Self::Null => "null",
            Self::Bool(true) => "true",
            Self::Bool(false) => "false",
            Self::Number(json) | Self::List(json) | Self::Object(json) => json,
            Self::Text(text) => text,
        }
    }

    #[inline]
    pub fn is_null(self) -> bool {
        self == Self::Null
    }

    #[inline]
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text(_))
    }

    #[inline]
    pub fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is an integer of 64 bits.
    pub fn integer(self) -> Option<i64> {
        match self {
            Self::Number(number) => number.parse().ok(),
            _ => None,
        }
    }

    /// The value as JSON text: a string with the escapes it needs, other values as they were written.
    pub fn json(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => Cow::Owned(quoted(text)),
            other => Cow::Borrowed(other.written()),
        }
    }

    /// What a reader of plain text sees: the text of a string, the canonical JSON of other values.
    pub(crate) fn plain(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            other => Cow::Owned(other.canonical()),
        }
    }

    /// Bytes of the text in UTF-8, of any other value those of its canonical JSON, as a model is sent it; null has
    /// none (LANGUAGE §5). Linear.
    pub(crate) fn text_len(self) -> usize {
        match self {
            Self::Null => 0,
            Self::Text(text) => text.len(),
            other => other.canonical().len(),
        }
    }

    /// Writes the canonical form (RUNTIME §2). Errors: those of `out`.
    pub fn write_canonical<S: Sink + ?Sized>(self, out: &mut S) -> std::io::Result<()> {
        match self {
            Self::Text(text) => write_string(out, text),
            other => write_value(out, other.written()),
        }
    }

    /// The canonical form (RUNTIME §2).
    pub fn canonical(self) -> String {
        let mut out = String::with_capacity(self.stored_len() + self.stored_len() / 8 + 1);
        match self.write_canonical(&mut Appended(&mut out)) {
            Ok(()) => out,
            // Only text that is not JSON cannot be appended.
            Err(_) => self.written().to_owned(),
        }
    }
}

/// A [`JsonValue`] that owns its text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredValue(Box<str>);

impl StoredValue {
    /// Decodes accepted JSON text without white space around it.
    pub(crate) fn of_json(json: &str) -> Self {
        JsonValue::read(json, &mut String::new()).into()
    }

    /// A text of at most `len` bytes, which `write` appends.
    pub(crate) fn written(len: usize, write: impl FnOnce(&mut String)) -> Self {
        let mut stored = String::with_capacity(QUOTE.len_utf8() + len);
        stored.push(QUOTE);
        write(&mut stored);
        Self(stored.into())
    }

    pub fn get(&self) -> JsonValue<'_> {
        JsonValue::stored(&self.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl From<&str> for StoredValue {
    fn from(text: &str) -> Self {
        JsonValue::Text(text).into()
    }
}

impl From<JsonValue<'_>> for StoredValue {
    fn from(value: JsonValue<'_>) -> Self {
        let mut stored = String::with_capacity(value.stored_len());
        value.store(&mut stored);
        Self(stored.into())
    }
}

/// As a string that has the JSON text.
impl Serialize for StoredValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.get().json())
    }
}

impl<'de> Deserialize<'de> for StoredValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of_json(&String::deserialize(deserializer)?))
    }
}

/// What is between the quotes of a JSON string.
fn string_body(json: &str) -> Option<&str> {
    json.strip_prefix(QUOTE)?.strip_suffix(QUOTE)
}

/// A text as JSON, with the escapes it needs.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        // Most texts are short and need none, and the string has the length that it needs.
        return ["\"", text, "\""].concat();
    }
    serde_json::to_string(text).unwrap_or_default()
}

/// Whether one of the texts inside a list or an object satisfies a test, at any depth; names of members do not
/// count. `json` is accepted text. Linear in it; texts with escapes are decoded into one buffer.
pub(crate) fn any_text(json: &str, mut test: impl FnMut(&str) -> bool) -> bool {
    let mut decoded = String::new();
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(start) = memchr::memchr(b'"', bytes.get(at..).unwrap_or_default()) {
        let start = at + start;
        let Some(end) = super::members::after_string(bytes, start) else {
            return false;
        };
        at = end;
        let mut after = bytes.get(end..).unwrap_or_default().iter();
        if after.find(|byte| !byte.is_ascii_whitespace()) == Some(&b':') {
            continue;
        }
        let text = json.get(start..end).unwrap_or_default();
        if JsonValue::read(text, &mut decoded)
            .text()
            .is_some_and(&mut test)
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_at_any_depth_without_names() {
        let json = r#"{"a":"x","b" : [1,"y\"z","\"",{"c":null,"d":["",true,"\\"]}],"e":{"f":"g: \u00e9"}}"#;
        let mut texts = Vec::new();
        let all = any_text(json, |text| {
            texts.push(text.to_owned());
            false
        });
        assert!(!all);
        assert_eq!(texts, ["x", "y\"z", "\"", "", "\\", "g: é"]);
        assert!(!any_text("[[],{}]", |_| true));
        assert!(any_text(json, |text| text == "\\"));
    }

    #[test]
    fn values_are_stored_and_written() {
        for json in [
            "null",
            "true",
            "false",
            "0",
            "-0",
            "1e400",
            "\"\"",
            "\"a\"",
            "\"n\"",
            "\"\\\"\\n\\u0000\"",
            "\"é😀\"",
            "[]",
            "{\"b\": 1, \"a\": \"\\u00e9\"}",
            "123456789012345678901234567890",
        ] {
            let stored = StoredValue::of_json(json);
            assert_eq!(stored.get().json(), json);
            assert_eq!(stored.get().canonical(), super::super::canonical(json));
            assert_eq!(StoredValue::from(stored.get()), stored);
            assert_eq!(stored.len(), stored.get().stored_len());
        }
        let escaped = StoredValue::of_json(r#""caf\u00e9 \ud83d\ude00\/""#);
        assert_eq!(escaped.get(), JsonValue::Text("café 😀/"));
        assert_eq!(escaped.get().json(), "\"café 😀/\"");
    }
}
