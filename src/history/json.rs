//! Values of fields: how results show them, and whether two mean the same.

use std::borrow::Cow;

use crate::json::{JsonValue, after_string};
use crate::query::ir::ExactNumber;

/// A field's value as results show it: strings with the escapes they need, everything else canonical.
pub(super) fn shown(value: JsonValue<'_>) -> String {
    if value.is_text() {
        value.json().into_owned()
    } else {
        value.canonical()
    }
}

/// A content as text: the string itself, or the canonical JSON of any other value; empty where there is none.
pub(crate) fn text_of(content: Option<JsonValue<'_>>) -> Cow<'_, str> {
    content.map_or(Cow::Borrowed(""), JsonValue::plain)
}

/// Whether two values mean the same: absent equals null, 1 equals 1.0.
pub(super) fn same_value(a: Option<JsonValue<'_>>, b: Option<JsonValue<'_>>) -> bool {
    let (a, b) = (a.unwrap_or(JsonValue::Null), b.unwrap_or(JsonValue::Null));
    if a == b {
        return true;
    }
    match (a, b) {
        (JsonValue::Number(a), JsonValue::Number(b)) => return same_number(a, b),
        (JsonValue::List(_), JsonValue::List(_)) | (JsonValue::Object(_), JsonValue::Object(_)) => {
        }
        _ => return false,
    }
    let (a, b) = (a.canonical(), b.canonical());
    let (mut a, mut b) = (JsonTokens(&a), JsonTokens(&b));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b || same_number(a, b) => {}
            _ => return false,
        }
    }
}

fn same_number(a: &str, b: &str) -> bool {
    ExactNumber::new(a)
        .zip(ExactNumber::new(b))
        .is_some_and(|(a, b)| a.compare(&b).is_eq())
}

struct JsonTokens<'a>(&'a str);

impl<'a> Iterator for JsonTokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = *self.0.as_bytes().first()?;
        let length = match first {
            b'"' => after_string(self.0.as_bytes(), 0).unwrap_or(self.0.len()),
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
    use super::same_value;
    use crate::json::StoredValue;

    fn same(a: &str, b: &str) -> bool {
        let (a, b) = (StoredValue::of_json(a), StoredValue::of_json(b));
        same_value(Some(a.get()), Some(b.get()))
    }

    #[test]
    fn json_texts_compare_by_meaning() {
        for (a, b) in [
            ("1", "1.0"),
            ("[1,{\"a\":2.50}]", "[1.0, {\"a\": 2.5}]"),
            ("1e40", "1.0e40"),
            ("{\"b\":1,\"a\":\"\\u00e9\"}", "{\"a\":\"é\",\"b\":1}"),
        ] {
            assert!(same(a, b), "{a} {b}");
        }
        assert!(same_value(None, Some(StoredValue::of_json("null").get())));
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
            assert!(!same(a, b), "{a} {b}");
        }
    }
}
