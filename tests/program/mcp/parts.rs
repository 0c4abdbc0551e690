//! Answers are bounded, and go on where they were cut; a client that asks hears how a call gets on.

use super::{Scratch, texts};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;

/// The most bytes of an answer, unless the client says otherwise.
const ANSWER: usize = 64 << 10;

/// A session of so many blocks.
fn session(scratch: &Scratch, name: &str, blocks: usize) {
    let mut lines = String::new();
    let blocks: Vec<Value> = (0..blocks)
        .map(|number| json!({"nodeType": "cb", "id": format!("cb:{number}"), "content": "größe ".repeat(20)}))
        .collect();
    let sys = json!({"nodeType": "^sys", "id": "^sys", "children": blocks});
    let _ = writeln!(
        lines,
        "{}",
        json!({"cycle": 1, "root": {"children": [sys]}})
    );
    fs::write(scratch.path("root").join(name), lines).expect("a file");
}

#[test]
fn a_long_answer_comes_in_parts() {
    let scratch = Scratch::new("parts");
    session(&scratch, "long.jsonl", 1500);
    let mut client = scratch.client();
    for (tool, arguments) in [
        // Lines, and one value.
        (
            "pact_select",
            json!({"session": "long.jsonl", "selector": "@t0 .cb", "format": "nodes"}),
        ),
        ("pact_tokens", json!({"session": "long.jsonl", "by": "key"})),
        ("pact_show", json!({"session": "long.jsonl"})),
    ] {
        let with = |name: &str, value: Value| {
            let mut arguments = arguments.clone();
            arguments[name] = value;
            arguments
        };
        let (failed, whole) = client.call(tool, with("limit", json!(100_000_000)));
        assert!(!failed, "{whole:?}");
        let mut parts = String::new();
        let mut asked = arguments.clone();
        let mut count = 0;
        loop {
            let (failed, answer) = client.call(tool, asked.clone());
            assert!(
                !failed && answer[0].len() <= ANSWER,
                "{tool}: {}",
                answer[0].len()
            );
            parts.push_str(&answer[0]);
            count += 1;
            let said = answer
                .get(1)
                .map_or("", |said| said.lines().last().expect("a line"));
            let next: Value = serde_json::from_str(said).unwrap_or_default();
            let Some(cursor) = next["next"]["cursor"].as_str() else {
                break;
            };
            assert_eq!(next["next"]["of"], whole[0].len(), "{next}");
            asked = with("cursor", json!(cursor));
        }
        assert!(
            parts == whole[0],
            "{tool}: {count} parts of {} bytes",
            whole[0].len()
        );
        assert_eq!(count > 1, whole[0].len() > ANSWER, "{tool}");
    }
    assert_eq!(client.end().0, 0);
}

#[test]
fn a_cursor_of_another_answer_is_refused() {
    let scratch = Scratch::new("cursors");
    session(&scratch, "long.jsonl", 1500);
    let mut client = scratch.client();
    let call = |selector: &str, cursor: Option<&str>| json!({"session": "long.jsonl", "selector": selector, "format": "nodes", "cursor": cursor});
    let (_, answer) = client.call("pact_select", call("@t0 .cb", None));
    let next: Value =
        serde_json::from_str(answer[1].lines().last().expect("a line")).expect("JSON");
    let cursor = next["next"]["cursor"]
        .as_str()
        .expect("a cursor")
        .to_owned();
    let at = cursor.split_once('-').expect("two parts").0;
    for (selector, cursor) in [
        ("@t0 .cb:last", &*cursor),
        ("@t0 .cb", "nonsense"),
        ("@t0 .cb", ""),
        ("@t0 .cb", "-"),
        ("@t0 .cb", &format!("{at}-0123456789abcdef")),
        ("@t0 .cb", &cursor.replacen(at, "99999999999999999999", 1)),
        ("@t0 .cb", &cursor.replacen(at, "999999999", 1)),
    ] {
        let error = client.error("pact_select", call(selector, Some(cursor)));
        assert_eq!(error["code"], "E_VALUE", "{cursor}: {error}");
        assert_eq!(error["message"], "the cursor is not of this answer");
    }
    // The same session with another block has another answer.
    session(&scratch, "long.jsonl", 1501);
    let error = client.error("pact_select", call("@t0 .cb", Some(&cursor)));
    assert_eq!(error["message"], "the cursor is not of this answer");
    assert_eq!(client.end().0, 0);
}

#[test]
fn errors_are_bounded_too() {
    let scratch = Scratch::new("long-errors");
    let mut client = scratch.client();
    let long = "x".repeat(1_000_000);
    for (tool, arguments) in [
        (
            "pact_explain",
            json!({"selector": format!("@t0 .cb[role='{long}")}),
        ),
        (
            "pact_select",
            json!({"session": long, "selector": "@t0 .cb"}),
        ),
        (
            "pact_grep",
            json!({"session": "agent.jsonl", "pattern": format!("({long}")}),
        ),
        (
            "pact_tokens",
            json!({"session": "agent.jsonl", "tokenizer": long}),
        ),
        ("pact_help", json!({ &*long: 1 })),
    ] {
        let (failed, texts) = client.call(tool, arguments);
        let error: Value = serde_json::from_str(&texts[0]).expect("JSON");
        assert!(
            failed && error["error"]["code"].is_string(),
            "{tool}: {error}"
        );
        assert!(texts[0].len() <= ANSWER, "{tool}: {} bytes", texts[0].len());
    }
    assert_eq!(client.end().0, 0);
}

#[test]
fn data_is_structured_content() {
    let scratch = Scratch::new("structured");
    let mut client = scratch.client();
    for (tool, arguments) in [
        ("pact_list_sessions", json!({})),
        ("pact_steps", json!({"session": "agent.jsonl"})),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": "@t0 .cb"}),
        ),
        (
            "pact_show",
            json!({"session": "agent.jsonl", "over": "@t-1..@t0"}),
        ),
    ] {
        let answer = client.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let (_, texts) = texts(&answer);
        let data = &answer["result"]["structuredContent"];
        assert!(data.is_object(), "{tool}: {answer}");
        let lines: Vec<Value> = serde_json::Deserializer::from_str(&texts[0])
            .into_iter()
            .collect::<Result<_, _>>()
            .expect("JSON");
        match &lines[..] {
            [whole] if whole.is_object() => assert_eq!(data, whole, "{tool}"),
            [whole] => assert_eq!(&data["result"], whole, "{tool}"),
            lines => assert_eq!(data["result"], json!(lines), "{tool}"),
        }
    }
    // A page of text is no data.
    let answer = client.ask("tools/call", json!({"name": "pact_help", "arguments": {}}));
    assert!(answer["result"]["structuredContent"].is_null(), "{answer}");
    assert_eq!(client.end().0, 0);
}

#[test]
fn a_client_that_asks_hears_of_progress() {
    let scratch = Scratch::new("progress");
    session(&scratch, "long.jsonl", 1500);
    let mut client = scratch.client();
    let arguments = json!({"session": "long.jsonl", "pattern": "g.*e"});
    let params =
        json!({"name": "pact_grep", "arguments": arguments, "_meta": {"progressToken": "p"}});
    let id = client.request("tools/call", params);
    let mut seen = Vec::new();
    loop {
        let message = client.receive();
        if message["id"] == id {
            break;
        }
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(message["params"]["progressToken"], "p");
        seen.push(message["params"]["progress"].as_f64().expect("a number"));
    }
    assert!(!seen.is_empty() && seen.is_sorted(), "{seen:?}");
    assert_eq!(client.end().0, 0);
}
