//! JSON texts of fields: how results show them, and whether two mean the same.

use std::borrow::Cow;

use crate::json::{canonical, unescape};
use crate::query::ir::Number;

/// A field's value as results show it: strings escaped as `serde_json` does, everything else
/// canonical.
pub(super) fn shown(json: &str) -> Cow<'_, str> {
    match string_body(json) {
        Some(body) => Cow::Owned(serde_json::to_string(&unescape(body)).unwrap_or_default()),
        None => Cow::Owned(canonical(json)),
    }
}

/// A content as text: the string itself, or the canonical JSON of any other value; empty where
/// there is none.
pub(crate) fn text_of(json: Option<&str>) -> Cow<'_, str> {
    let Some(json) = json else {
        return Cow::Borrowed("");
    };
    match string_body(json) {
        Some(body) if memchr::memchr(b'\\', body.as_bytes()).is_none() => Cow::Borrowed(body),
        Some(body) => Cow::Owned(unescape(body)),
        None => Cow::Owned(canonical(json)),
    }
}

/// What is between the quotes of a JSON string, still escaped.
fn string_body(json: &str) -> Option<&str> {
    json.strip_prefix('"')?.strip_suffix('"')
}

/// Whether two JSON texts mean the same: absent equals null, 1 equals 1.0.
pub(super) fn same_json(a: Option<&str>, b: Option<&str>) -> bool {
    let (a, b) = (a.unwrap_or("null"), b.unwrap_or("null"));
    if a == b {
        return true;
    }
    let (a, b) = (canonical(a), canonical(b));
    let (mut a, mut b) = (Tokens(&a), Tokens(&b));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b || same_number(a, b) => {}
            _ => return false,
        }
    }
}

fn same_number(a: &str, b: &str) -> bool {
    Number::new(a)
        .zip(Number::new(b))
        .is_some_and(|(a, b)| a.compare(&b).is_eq())
}

/// The tokens of a canonical JSON text.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = *self.0.as_bytes().first()?;
        let length = match first {
            b'"' => {
                let mut escaped = false;
                let close = self.0.bytes().skip(1).position(|byte| {
                    let close = byte == b'"' && !escaped;
                    escaped = byte == b'\\' && !escaped;
                    close
                });
                close.map_or(self.0.len(), |close| close + 2)
            }
            b'-' | b'0'..=b'9' => self
                .0
                .bytes()
                .position(|byte| !matches!(byte, b'-' | b'+' | b'.' | b'0'..=b'9' | b'e' | b'E'))
                .unwrap_or(self.0.len()),
            _ => 1,
        };
        let (token, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::same_json;

    #[test]
    fn json_texts_compare_by_meaning() {
        for (a, b) in [
            ("1", "1.0"),
            ("[1,{\"a\":2.50}]", "[1.0, {\"a\": 2.5}]"),
            ("1e40", "1.0e40"),
            ("{\"b\":1,\"a\":\"\\u00e9\"}", "{\"a\":\"é\",\"b\":1}"),
        ] {
            assert!(same_json(Some(a), Some(b)), "{a} {b}");
        }
        assert!(same_json(None, Some("null")));
        for (a, b) in [
            ("1", "\"1\""),
            ("[1,2]", "[1]"),
            ("9007199254740993", "9007199254740992.0"),
            (
                "[10000000000000000000000000000000000000000]",
                "[10000000000000000000000000000000000000001]",
            ),
            ("\"a\\\"b\"", "\"a\""),
            ("[]", "null"),
        ] {
            assert!(!same_json(Some(a), Some(b)), "{a} {b}");
        }
    }
}
