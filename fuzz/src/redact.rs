//! A pattern in the first line, any text in the rest: what is left has no match, and JSON stays JSON.

use pactql::inspect::share::Redactor;
use pactql::logs::Redaction;
use serde_json::Value;

/// Decoded strings of a value.
fn strings<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        Value::Object(members) => {
            for (name, value) in members {
                found.push(name);
                strings(value, found);
            }
        }
        _ => {}
    }
}

pub fn run(bytes: &[u8]) {
    let (pattern, rest) = super::head(bytes);
    let text = String::from_utf8_lossy(rest);
    let pattern = if pattern.is_empty() {
        "secret[0-9]".to_owned()
    } else {
        pattern
    };
    let Ok(parsed) = Redaction::parse(&pattern) else {
        return;
    };
    let patterns = [parsed];
    let value = serde_json::from_str::<Value>(&text);
    let redacted = Redaction::apply(&patterns, &text);
    if value.is_ok() {
        let after: Value = serde_json::from_str(&redacted).expect("JSON stays JSON");
        // A pattern may match the mark, or the mark together with what is around it.
        if pattern == "secret[0-9]" {
            let mut found = Vec::new();
            strings(&after, &mut found);
            let secret = |text: &&str| {
                let numbers = text
                    .match_indices("secret")
                    .filter_map(|(at, _)| text.as_bytes().get(at + 6));
                numbers.clone().any(|byte| byte.is_ascii_digit())
            };
            assert_eq!(found.into_iter().find(secret), None);
        }
    }
    let mut redactor = Redactor::new([&pattern]).expect("a pattern");
    let once = redactor.redact(&text).into_owned();
    if pattern == "secret[0-9]" {
        let count = redactor.count();
        assert_eq!(redactor.redact(&once), once);
        assert_eq!(redactor.count(), count);
    }
    let _ = Redaction::apply_text(&patterns, &text);
    let _ = Redaction::apply(&Redaction::keys(), &text);
}
