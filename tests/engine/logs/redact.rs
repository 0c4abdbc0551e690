//! Secrets do not enter, and half a letter does not end an import.

use pactql::inspect::share::Redactor;
use pactql::logs::{Fate, ImportOptions, Imported, Redaction, import};
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
    const SAID: &str = "Explain authorization: cookie, api_key";
    let request = json!({"model": "m", "messages": [{"role": "user", "content": SAID}]});
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
        in_request(json!({"apiKey": secret})),
        in_request(json!({"API_KEY": secret})),
        in_request(json!({"Api-Key": secret, "X-API-KEY": secret})),
        in_request(json!({"Cookie": secret})),
        json!({"request": {"headers": {"X-Api-Key": secret}, "body": request}, "api_key": secret}),
        json!([{"request": in_request(json!({"headers": [["cookie", secret], ["accept", "x"]]}))}]),
        in_request(json!({"default_headers": [{"name": "Authorization", "value": secret}]})),
        span(
            json!({"key": "http.request.header.authorization", "value": {"arrayValue": {"values": [{"stringValue": secret}]}}}),
        ),
        span(json!({"key": "http.request.header.cookie", "value": {"stringValue": secret}})),
    ] {
        let found = all(&with(&[], &log.to_string()));
        assert!(!found.contains(secret), "{log}: {found}");
        let spans = log.get("resourceSpans").is_some();
        assert!(spans || found.contains(SAID), "{found}");
        // Where nothing else in the log looks like a secret, and where the names are spelled with escapes.
        let quiet = log.to_string().replace(SAID, "Hello");
        let mut escaped = quiet.clone();
        for (letter, escape) in [
            ("uthori", "\\u0075thori"),
            ("i_k", "i\\u005fk"),
            ("i-k", "i\\u002dk"),
            ("ook", "\\u006Fok"),
        ] {
            escaped = escaped.replace(letter, escape);
        }
        for log in [quiet, escaped] {
            let found = all(&with(&[], &log));
            assert!(!found.contains(secret), "{log}: {found}");
        }
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
        let error = Redaction::parse(pattern).expect_err(pattern).to_string();
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
    let options = ImportOptions {
        strict: true,
        ..ImportOptions::default()
    };
    let bad = "{\"role\":\"user\",\"content\":\"\\ud800\"}\n{\"role\":\n{\"role\":\"user\"}\n";
    assert!(import(bad.as_bytes(), &options).is_err());
    let tolerant = import(bad.as_bytes(), &ImportOptions::default()).expect("a log");
    assert_eq!(tolerant.report.lines(Fate::Skipped), 1);
}

proptest! {
    #![proptest_config(crate::support::random::property(1_024))]

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

/// A private key as a file has it.
const KEY: &str =
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n";

/// Parts of it by which it is found in whatever spelling.
const PARTS: [&str; 4] = ["BEGIN PRIVATE", "MIIEvQ", "hkiG9w", "END PRIVATE"];

/// The key as a value, in JSON, and in JSON in JSON; with a text that a pattern names, in two spellings.
fn secrets() -> Vec<String> {
    let inner = json!({"pem": KEY, "where": "café"}).to_string();
    let twice = json!({"result": inner.as_str(), "ok": true}).to_string();
    let spelled = twice.replace('é', "\\u00e9");
    let log_line = format!("wrote {inner} to \"disk");
    vec![format!("{KEY} café"), inner, twice, spelled, log_line]
}

/// Logs that have a secret in every place where one can be.
fn logs_with(secret: &str) -> Vec<Value> {
    let tool = json!({"type": "function", "function": {"name": "save", "description": secret,
        "parameters": {"type": "object", "properties": {}}}});
    let system = json!({"role": "system", "content": "Be brief."});
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
        "function": {"name": "save", "arguments": secret}}]});
    let object = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
        "function": {"name": "save", "arguments": json!({"key": secret}).to_string()}}]});
    let result = json!({"role": "tool", "tool_call_id": "c", "content": secret});
    vec![
        json!({"model": "m", "messages": [system, {"role": "user", "content": secret, "name": secret},
            call, result], "tools": [tool], "metadata": {"note": secret, "by": {secret: [secret]}},
            "extra_headers": {"x-note": secret}, "user": secret}),
        json!([system, {"role": "user", "content": "go"}, object, result]),
        json!({"model": "m", "max_tokens": 5, "system": secret, "messages": [
            {"role": "user", "content": [{"type": "text", "text": secret}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "save",
                "input": {"key": secret, "deep": [{"value": secret}]}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": secret}]}],
            "tools": [{"name": "save", "description": secret, "input_schema": {"type": "object"}}]}),
    ]
}

#[test]
fn a_key_is_gone_whole_wherever_it_is() {
    let key = Redaction::keys().pop().expect("a pattern");
    for pattern in ["café", "caf\\u00e9", "caf\\x{e9}"] {
        let redact = vec![key.clone(), Redaction::parse(pattern).expect("a pattern")];
        for secret in secrets() {
            for log in logs_with(&secret) {
                let options = ImportOptions {
                    redact: redact.clone(),
                    ..ImportOptions::default()
                };
                let text = log.to_string();
                for text in [text.replace('é', "\\u00e9"), text] {
                    let imported = import(text.as_bytes(), &options).expect("a good log");
                    let found = all(&imported);
                    assert!(found.contains("[redacted]"), "{found}");
                    for part in PARTS.iter().chain(&["caf"]) {
                        assert!(!found.contains(part), "{part} of {text}: {found}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_key_is_gone_whole_from_what_is_shared() {
    use pactql::inspect::share::{page, receipt};
    use pactql::inspect::{Counts, Prices, Tokenizer};
    let pem = "-----BEGIN PRIVATE KEY-----[^-]*-----END PRIVATE KEY-----";
    for secret in secrets() {
        for log in logs_with(&secret) {
            let imported = with(&[], &log.to_string());
            for session in &imported.sessions {
                let mut bytes = Vec::new();
                session
                    .recording
                    .write_jsonl(&mut bytes, false)
                    .expect("memory");
                let session = pactql::Session::from_slice(&bytes).expect("a session");
                let history = session.history();
                let mut counts = Counts::new(Tokenizer::Bytes4);
                for pattern in ["café", "caf\\u00e9"] {
                    let mut redactor = Redactor::new([pem, pattern]).expect("patterns");
                    let title = format!("about {secret}");
                    let page = page(
                        &history,
                        &title,
                        &mut redactor,
                        &mut counts,
                        &Prices::default(),
                    );
                    for part in PARTS.iter().chain(&["caf"]) {
                        assert!(
                            !page.data().contains(part),
                            "{part} of {log}: {}",
                            page.data()
                        );
                    }
                }
                let receipt = serde_json::to_string(&receipt(&history, &mut counts)).expect("JSON");
                for part in PARTS.iter().chain(&["caf"]) {
                    assert!(!receipt.contains(part), "{part}: {receipt}");
                }
            }
        }
    }
}

#[test]
fn a_key_is_gone_whole_from_what_is_recorded() {
    use pactql::logs::record::ProviderCall;
    let redact = [
        Redaction::keys(),
        vec![Redaction::parse("café").expect("a pattern")],
    ]
    .concat();
    for secret in secrets() {
        for log in logs_with(&secret) {
            let mut call =
                ProviderCall::new(pactql::Provider::OpenAi, secret.as_str(), log.to_string());
            call.response =
                Some(json!({"choices": [{"message": {"content": secret}}]}).to_string());
            call.error = Some(format!(
                "refused: {}",
                json!({"error": {"message": secret}})
            ));
            call.request_id = Some(secret.clone());
            let call = format!("{:?}", call.redacted(&redact));
            for part in PARTS.iter().chain(&["caf"]) {
                assert!(!call.contains(part), "{part} of {log}: {call}");
            }
        }
    }
}

#[test]
fn matches_are_replaced_also_where_they_are_spelled_with_escapes() {
    for (pattern, text, expected, count) in [
        (
            "Bergen",
            "Rain in Bergen? Bergen!",
            "Rain in [redacted]? [redacted]!",
            2,
        ),
        ("^a", "aa", "[redacted]a", 1),
        ("\\bcat\\b", "concat cat", "concat [redacted]", 1),
        ("é+", "caféé", "caf[redacted]", 1),
        // In JSON, and in JSON in a string of JSON.
        (
            "é",
            r#"{"city":"caf\u00e9"}"#,
            r#"{"city":"caf[redacted]"}"#,
            1,
        ),
        (
            "a\nb",
            r#"{"x":"a\nb","y":"q"}"#,
            r#"{"x":"[redacted]","y":"q"}"#,
            1,
        ),
        (
            "é",
            r#"{"x":"{\"y\":\"\\u00e9\"}"}"#,
            r#"{"x":"{\"y\":\"[redacted]\"}"}"#,
            1,
        ),
        (
            "^\\d{3}$",
            r#"{"x":"{\"y\":123,\"z\":\"456\"}"}"#,
            r#"{"x":"{\"y\":\"[redacted]\",\"z\":\"[redacted]\"}"}"#,
            2,
        ),
        // A quote before the JSON.
        (
            "é",
            r#"say " then {"x":"\u00e9"}"#,
            r#"say " then {"x":"[redacted]"}"#,
            1,
        ),
        ("zzz", r#"{"x":"\u00e9"}"#, r#"{"x":"\u00e9"}"#, 0),
        // What one match left is not matched again.
        ("[a-z]+", r#"{"1":"\"a\""}"#, r#"{"1":"\"[redacted]\""}"#, 1),
        // Names of members that say more than what a value is.
        (
            "[a-z]+@b",
            r#"{"to":{"a@b":1,"c@b":2}}"#,
            r#"{"to":{"[redacted]":1,"[redacted] 2":2}}"#,
            2,
        ),
    ] {
        let mut redactor = Redactor::new([pattern]).unwrap();
        assert_eq!(redactor.redact(text), expected, "{pattern}");
        assert_eq!(redactor.count(), count, "{pattern}");
    }
}

#[test]
fn a_private_key_goes_whole() {
    let key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEow==\nAbC/+9\n-----END RSA PRIVATE KEY-----";
    let mut text = key.to_owned();
    for _ in 0..5 {
        for (before, after) in [("", ""), ("KEY=", " # key"), ("{\"k\": ", "}")] {
            let text = format!("{before}{text}{after}");
            let clean = Redaction::apply_text(&Redaction::keys(), &text);
            assert!(clean.contains("[redacted]"), "{text}");
            for part in ["MII", "AbC", "BEGIN", "END"] {
                assert!(!clean.contains(part), "{part}: {clean}");
            }
        }
        text = Value::from(text).to_string();
    }
    let cut = "-----BEGIN PRIVATE KEY-----\\nMIIEow==\\nAb";
    assert_eq!(Redaction::apply_text(&Redaction::keys(), cut), "[redacted]");
}

#[test]
fn patterns_are_refused() {
    for (pattern, reason) in [
        ("(", "unclosed"),
        ("x*", "empty text"),
        ("(?:[\\w]{1,200}){1,200}", "larger than"),
    ] {
        let error = Redactor::new([pattern]).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert!(!error.help.is_empty());
    }
    assert!(Redactor::new(Vec::<&str>::new()).unwrap().is_empty());
}

/// Many quotes that end nowhere take no longer than others.
#[test]
fn escaped_quotes_are_read_once() {
    let text = "\\\"".repeat(200_000);
    assert_eq!(Redaction::apply_text(&Redaction::keys(), &text), text);
}
