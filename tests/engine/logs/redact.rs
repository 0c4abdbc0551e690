//! Secrets do not enter, and half a letter does not end an import.

use pactql::logs::{ImportOptions, Imported, Redaction, import};
use proptest::prelude::*;
use serde_json::{Value, json};

fn with(patterns: &[&str], log: &str) -> Imported {
    let redact = patterns.iter().map(|text| Redaction::parse(text));
    let options = ImportOptions {
        redact: redact.collect::<Result<_, _>>().expect("patterns"),
        ..ImportOptions::default()
    };
    import(log.as_bytes(), &options).expect("a good log")
}

fn all(imported: &Imported) -> String {
    let mut out = Vec::new();
    for session in &imported.sessions {
        session
            .recording
            .write_jsonl(&mut out, true)
            .expect("memory");
    }
    String::from_utf8(out).expect("ASCII")
}

#[test]
fn what_a_pattern_matches_is_nowhere_and_is_counted() {
    let log = json!([
        {"role": "user", "name": "anna@example.org", "content": "key \"sk-12\" and sk-34,\nanna@example.org"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
            "function": {"name": "send", "arguments": "{\"to\":\"anna@example.org\",\"n\":4111111111111111}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "sk-5"}], "card": 4111111111111111_u64},
    ]);
    let patterns = ["sk-[0-9]+", "[a-z]+@example.org", "4[0-9]{15}", "never"];
    for text in [
        log.to_string(),
        serde_json::to_string_pretty(&log).expect("JSON"),
        log.to_string().replace("sk-", "\\u0073k-"),
    ] {
        let imported = with(&patterns, &text);
        let found = all(&imported);
        for secret in ["sk-1", "sk-3", "sk-5", "anna", "4111"] {
            assert!(!found.contains(secret), "{secret}: {found}");
        }
        let report = imported.report.to_json();
        assert_eq!(
            report["redacted"],
            json!({"pattern 1": 3, "pattern 2": 3, "pattern 3": 2, "pattern 4": 0})
        );
    }
}

#[test]
fn headers_that_authorize_never_enter() {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Explain authorization: cookie, api_key"}]});
    let secret = "s3cret";
    let in_request = |members: Value| {
        let mut request = request.clone();
        for (name, value) in members.as_object().expect("an object") {
            request[name] = value.clone();
        }
        request
    };
    let span = |attribute: Value| {
        json!({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": "s", "attributes": [
            {"key": "gen_ai.input.messages", "value": {"stringValue": "[{\"role\":\"user\",\"parts\":[]}]"}},
            attribute]}]}]}]})
    };
    for log in [
        in_request(
            json!({"extra_headers": {"Authorization": format!("Bearer {secret}"), "x-trace": "1"}}),
        ),
        in_request(json!({"api_key": secret})),
        json!({"request": {"headers": {"X-Api-Key": secret}, "body": request}, "api_key": secret}),
        json!([{"request": in_request(json!({"headers": [["cookie", secret], ["accept", "x"]]}))}]),
        in_request(json!({"default_headers": [{"name": "Authorization", "value": secret}]})),
        span(
            json!({"key": "http.request.header.authorization", "value": {"arrayValue": {"values": [{"stringValue": secret}]}}}),
        ),
        span(json!({"key": "http.request.header.cookie", "value": {"stringValue": secret}})),
    ] {
        let imported = with(&[], &log.to_string());
        let found = all(&imported);
        assert!(!found.contains(secret), "{log}: {found}");
        let spans = log.get("resourceSpans").is_some();
        assert!(
            spans || found.contains("Explain authorization: cookie, api_key"),
            "{found}"
        );
    }
    // What is said of headers is no header.
    let told = json!([{"role": "user", "content": "x", "args": {"authorization": "shown"}},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "get",
            "input": {"api_key": "shown too"}}]}]);
    let found = all(&with(&[], &told.to_string()));
    assert!(
        found.contains("shown") && found.contains("shown too"),
        "{found}"
    );
}

#[test]
fn a_pattern_that_is_wrong_or_matches_nothing_in_particular_is_refused() {
    for (pattern, message) in [
        ("(", "unclosed group"),
        ("x*", "matches the empty text"),
        ("", "matches the empty text"),
        ("(?<=a)b", "look-around"),
    ] {
        let error = Redaction::parse(pattern).expect_err(pattern);
        assert!(error.contains(message), "{pattern}: {error}");
    }
}

#[test]
fn half_a_letter_is_replaced_and_its_line_named() {
    let log = "{\"role\":\"user\",\"content\":\"a \\ud83d b\"}\n\
        {\"role\":\"assistant\",\"content\":\"\\ud83d\\ude42 \\\\ud800\"}\n\
        {\"role\":\"user\",\"content\":\"\\udc00\\ud800\"}\n";
    let imported = with(&[], log);
    let report = imported.report.to_string();
    assert!(
        report.contains("half of a surrogate pair in lines 1, 3: U+FFFD"),
        "{report}"
    );
    let found = all(&imported);
    assert!(found.contains("a \\ufffd b"), "{found}");
    assert!(found.contains("\\ud83d\\ude42 \\\\ud800"), "{found}");
    assert!(found.contains("\\ufffd\\ufffd"), "{found}");
    // A line that is no JSON is an error all the same.
    let options = ImportOptions::default();
    let bad = "{\"role\":\"user\",\"content\":\"\\ud800\"}\n{\"role\":\n{\"role\":\"user\"}\n";
    assert!(import(bad.as_bytes(), &options).is_err());
}

proptest! {
    /// Whatever the text: it stays JSON, and no match of the pattern is left in a string.
    #[test]
    fn any_content_is_redacted(before in ".{0,20}", after in ".{0,20}", digits in "[0-9]{1,4}") {
        let log = json!([{"role": "user", "content": format!("{before}secret-{digits}{after}")}]);
        let found = all(&with(&["secret-[0-9]+"], &log.to_string()));
        for line in found.lines() {
            let value: Value = serde_json::from_str(line).expect("JSON");
            let left = format!("secret-{digits}");
            prop_assert!(!value.to_string().contains(&left), "{value}");
        }
    }
}
