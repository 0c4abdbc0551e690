//! Ranges and their options.

use super::{Scratch, answer, fails, pactql};
use serde_json::{Value, json};

/// Three snapshots: `a` changes twice, `b` appears and disappears, `c` appears last.
const SESSION: &str = r#"{"cycle":1,"root":{"id":"r","children":[{"id":"h","nodeType":"^ah","children":[{"id":"a","nodeType":"cb","role":"user","content":"one\ntwo\n","mime":"text/plain"}]}]}}
{"cycle":2,"root":{"id":"r","children":[{"id":"h","nodeType":"^ah","children":[{"id":"a","nodeType":"cb","role":"user","content":"one\n2\n","mime":"text/plain"},{"id":"b","nodeType":"cb"}]}]}}
{"cycle":3,"root":{"id":"r","children":[{"id":"h","nodeType":"^ah","children":[{"id":"a","nodeType":"cb","role":"user","content":"1\n2\n","mime":"text/plain"},{"id":"c","nodeType":"cb"}]}]}}
"#;

fn ask(session: &str, arguments: &[&str]) -> Value {
    let all = [&["select", session][..], arguments, &["--format", "json"]].concat();
    serde_json::from_str(&answer(&all)).expect("JSON")
}

#[test]
fn modes_answer_with_lists_or_one_diff() {
    let scratch = Scratch::new("range-modes");
    let session = scratch.write("s.jsonl", SESSION);
    for (selector, expected) in [
        ("@history .cb @mode=union", json!(["a", "c", "b"])),
        ("@history .cb @mode=latest", json!(["a", "c", "b"])),
        ("@history .cb[content~one] @mode=union", json!(["a"])),
        ("@history .cb[content~one] @mode=latest", json!([])),
        ("@history .cb @mode=union @limit=1 @p=2", json!(["c"])),
    ] {
        assert_eq!(ask(&session, &[selector]), expected, "{selector}");
    }
    let reduced = ask(&session, &["@history .cb @mode=reduce"]);
    assert_eq!(reduced["mode"], "reduce");
    assert_eq!(reduced["snapshots"].as_array().map(Vec::len), Some(3));
    let diffs = reduced["diffs"].as_array().expect("diffs");
    assert_eq!(diffs.len(), 1);
    assert_eq!(diffs[0]["from"]["label"], "@t0");
    assert_eq!(diffs[0]["to"]["label"], "@t-2");
    assert_eq!(diffs[0]["added_ids"], json!(["c"]));
    assert_eq!(diffs[0]["changed"][0]["fields"], json!(["content_hash"]));
    let table = answer(&["select", &session, "@t0..@t-1 .cb", "--format", "table"]);
    assert!(table.contains("  ~ a (content)\n"), "{table}");
}

#[test]
fn contents_are_shown_where_they_changed() {
    let scratch = Scratch::new("range-content");
    let session = scratch.write("s.jsonl", SESSION);
    let plain = ask(&session, &["@t0..@t-1 .cb"]);
    let change = &plain["diffs"][0]["changed"][0];
    assert!(change.get("content_diff").is_none() && change.get("materialized").is_none());
    let shown = ask(
        &session,
        &[
            "@t0..@t-1 .cb",
            "--include-content",
            "--context-lines=0",
            "--materialize=content,mime",
        ],
    );
    let change = &shown["diffs"][0]["changed"][0];
    let diff = &change["content_diff"];
    assert_eq!(diff["mode"], "unified");
    assert_eq!(
        diff["summary"],
        json!({"bytesNewer": 4, "bytesOlder": 6, "identical": false, "truncated": false})
    );
    let text = diff["diff"].as_str().expect("a text");
    assert!(
        text.contains("\n-one\n+1\n") && !text.contains(" 2"),
        "{text}"
    );
    assert_eq!(
        change["materialized"],
        json!({
            "from": {"content": "1\n2\n", "mime": "text/plain"},
            "to": {"content": "one\n2\n", "mime": "text/plain"},
        })
    );
    let words = [
        "@t0..@t-1 .cb",
        "--include-content",
        "--content-mode=tokens",
    ];
    let words = ask(&session, &words);
    let hunks = &words["diffs"][0]["changed"][0]["content_diff"]["hunks"];
    assert_eq!(hunks.as_array().map(Vec::len), Some(1));
}

#[test]
fn caps_say_what_they_left_out() {
    let scratch = Scratch::new("range-caps");
    let session = scratch.write("s.jsonl", SESSION);
    let free = ask(&session, &["@history .cb", "--stats"]);
    assert!(free.get("limits").is_none() && free.get("errors").is_none());
    let stats = json!({"added": 1, "removed": 1, "changed": 1});
    assert_eq!(free["diffs"][0]["stats"], stats);

    let capped = [
        "@history .cb",
        "--max-snapshots=2",
        "--max-changes=2",
        "--stats",
    ];
    let capped = ask(&session, &capped);
    assert_eq!(capped["snapshots"].as_array().map(Vec::len), Some(2));
    let block = &capped["diffs"][0];
    assert_eq!(block["added_ids"], json!(["c"]));
    assert_eq!(block["removed_ids"], json!(["b"]));
    assert_eq!(block["changed"], json!([]));
    assert_eq!(block["stats"], stats);
    assert_eq!(
        capped["limits"],
        json!({"maxSnapshots": 2, "maxChangesPerSnapshot": 2, "truncated": true})
    );
    assert_eq!(
        capped["errors"],
        json!([
            {"code": "E_SNAPSHOT_RANGE_LIMIT", "message": "only the newest 2 snapshots were taken", "fatal": false},
            {"code": "E_LIMIT", "message": "changes were cut", "fatal": false},
        ])
    );
    let wide = ask(&session, &["@history .cb", "--max-snapshots=9"]);
    assert_eq!(
        wide["limits"],
        json!({"maxSnapshots": 9, "truncated": false})
    );

    let list = [
        "select",
        &session,
        "@history .cb @mode=union",
        "--max-snapshots=1",
    ];
    let ran = pactql(&list);
    assert_eq!(ran.out, "a\nc\n");
    assert!(
        ran.err.contains("only the newest 1 snapshots"),
        "{}",
        ran.err
    );
}

#[test]
fn options_that_are_wrong() {
    for (option, message) in [
        ("--max-snapshots=0", "0 is not at least 1"),
        ("--max-changes=-1", "invalid digit"),
        ("--content-mode=lines", "unified, jsonpatch, tokens"),
        ("--materialize=role", "content_hash"),
    ] {
        fails(
            &["select", super::AGENT, "@history .cb", option],
            3,
            message,
        );
    }
    // Without a range they are ignored.
    let plain = [
        "select",
        super::AGENT,
        "@t0 .cb:summary",
        "--stats",
        "--max-changes=0",
    ];
    assert_eq!(answer(&plain), "cb:sum1\n");
}
