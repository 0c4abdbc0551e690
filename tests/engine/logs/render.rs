//! Rendering threads and messages, exporting documents, and round trips from a log to a session
//! and back.

use super::{Session, holds_together, imported, openai, pointer, rendered, thread};
use pactql::Provider;
use pactql::logs::{MessageLocation, write_document};
use pactql::render::{Contents, Thread};
use serde_json::{Value, json};
use std::path::PathBuf;

#[test]
fn the_thread_of_a_conversation() {
    // Source 002 §12.8.
    let document = r#"{"root":{"id":"root-1","children":[
        {"id":"sys-1","nodeType":"^sys","children":[
          {"id":"cb:sysA","role":"system","kind":"text","offset":0,"content":"You are a helpful assistant."}]},
        {"id":"seq-1","nodeType":"^seq","children":[
          {"id":"mt:1","nodeType":"mt","children":[
            {"id":"cb:u1","role":"user","kind":"text","offset":0,"content":"Hello"}]},
          {"id":"mt:2","nodeType":"mt","children":[
            {"id":"cb:a1","role":"assistant","kind":"text","offset":0,"content":"Hi! How can I help?"}]}]},
        {"id":"ah-1","nodeType":"^ah","children":[
          {"id":"cb:u2","role":"user","kind":"text","offset":0,"content":"Summarize the above."}]}]}}"#;
    let session = Session::read(document.as_bytes());
    assert_eq!(
        thread(session.current()),
        concat!(
            r#"[{"id":"cb:sysA","role":"system","kind":"text","content":"You are a helpful assistant."},"#,
            r#"{"id":"cb:u1","role":"user","kind":"text","content":"Hello"},"#,
            r#"{"id":"cb:a1","role":"assistant","kind":"text","content":"Hi! How can I help?"},"#,
            r#"{"id":"cb:u2","role":"user","kind":"text","content":"Summarize the above."}]"#,
            "\n"
        )
    );
}

#[test]
fn the_thread_of_a_conversation_with_context_before_and_after() {
    // Source 002 §12.9.
    let document = r#"{"root":{"id":"root-2","children":[
        {"id":"sys-2","nodeType":"^sys","children":[
          {"id":"cb:sysB","role":"system","kind":"text","offset":0,"content":"System header B"}]},
        {"id":"seq-2","nodeType":"^seq","children":[
          {"id":"mt:10","nodeType":"mt","children":[
            {"id":"cb:pre1","role":"system","kind":"text","offset":-1,"content":"Pre-context hint"},
            {"id":"cb:core1","role":"user","kind":"text","offset":0,"content":"Hello with context"},
            {"id":"cb:post1","role":"tool","kind":"result","offset":1,"content":"status: ok"}]}]},
        {"id":"ah-2","nodeType":"^ah","children":[
          {"id":"cb:pre2","role":"system","kind":"text","offset":-1,"content":"AH pre"},
          {"id":"cb:core2","role":"user","kind":"text","offset":0,"content":"Working..."},
          {"id":"cb:post2","role":"assistant","kind":"text","offset":1,"content":"Interim note"}]}]}}"#;
    let session = Session::read(document.as_bytes());
    assert_eq!(
        thread(session.current()),
        concat!(
            r#"[{"id":"cb:sysB","role":"system","kind":"text","content":"System header B"},"#,
            r#"{"id":"cb:pre1","role":"system","kind":"text","content":"Pre-context hint"},"#,
            r#"{"id":"cb:core1","role":"user","kind":"text","content":"Hello with context"},"#,
            r#"{"id":"cb:post1","role":"tool","kind":"result","content":"status: ok"},"#,
            r#"{"id":"cb:pre2","role":"system","kind":"text","content":"AH pre"},"#,
            r#"{"id":"cb:core2","role":"user","kind":"text","content":"Working..."},"#,
            r#"{"id":"cb:post2","role":"assistant","kind":"text","content":"Interim note"}]"#,
            "\n"
        )
    );
}

#[test]
fn the_thread_has_roles_by_region_blocks_at_any_level_and_no_empty_members() {
    let document = r#"{"root":{"children":[
        {"id":"s","nodeType":"^sys","children":[{"id":"a","content":{"b":1.0,"a":"é"}}]},
        {"id":"q","nodeType":"^seq","children":[
          {"id":"t","nodeType":"mt","children":[
            {"id":"c","nodeType":"mc","children":[
              {"id":"d","nodeType":"cb","role":null,"kind":null,"content":null,"children":[
                {"id":"e","nodeType":"cb:x","kind":"k","content":""}]}]}]},
          {"id":"loose","nodeType":"cb","offset":1,"content":"between"}]},
        {"id":"h","nodeType":"^ah","children":[{"id":"f","content":3}]},
        {"id":"outside","nodeType":"cb","content":"nowhere"}]}}"#;
    let session = Session::read(document.as_bytes());
    assert_eq!(
        thread(session.current()),
        concat!(
            r#"[{"id":"a","role":"system","content":{"a":"\u00e9","b":1.0}},"#,
            r#"{"id":"d","role":"user"},{"id":"e","role":"user","kind":"k","content":""},"#,
            r#"{"id":"loose","role":"user","content":"between"},"#,
            r#"{"id":"f","role":"user","content":3}]"#,
            "\n"
        )
    );
}

/// Messages of every known shape, and of malformed ones.
fn odd_messages() -> Value {
    let text = r#"[
        {"role": "system", "content": ""},
        {"role": "developer", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]},
        {"role": "system"},
        {"role": "user", "content": "plain", "name": "ada"},
        {"role": "user", "content": [{"type": "text", "text": "one"}]},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "user", "content": []},
        {"role": "user", "content": null},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "detail": "low"}}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": "u", "extra": 1}, "bare", 3, null, {"type": "text"}, {"text": "t"}, {"type": "text", "text": 4}]},
        {"role": "user", "content": 12345678901234567890},
        {"role": "user", "content": {"a": [1.5, true]}},
        {"role": "assistant"},
        {"role": "assistant", "content": null},
        {"role": "assistant", "content": null, "tool_calls": []},
        {"role": "assistant", "content": "", "tool_calls": null, "refusal": null},
        {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{broken"}}]},
        {"role": "assistant", "content": [], "tool_calls": [
            {"id": "c2", "type": "function", "index": 0, "function": {"name": "f", "arguments": "{}", "strict": true}},
            {"id": 7, "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "c3", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}},
            {"id": "c4", "type": "custom", "custom": {"name": "g", "input": "x"}},
            {"type": "function", "function": {"name": "f", "arguments": "{}"}},
            "call", null]},
        {"role": "assistant", "content": "text", "tool_calls": [{"id": "c5", "type": "function", "function": {"name": "", "arguments": ""}}]},
        {"role": "assistant", "content": "x", "tool_calls": {"not": "a list"}, "agent": "main", "thought": "hm", "message": "m", "other": [], "members": 3, "shape": null, "call_id": "q", "Ünïcode key": "v", "": 0, "é\"": 1},
        {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "12°C 😀 \u007f \u2028"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "r"}], "tool_call_ids": ["c2"], "cache_control": {"type": "ephemeral"}},
        {"role": "tool", "tool_call_id": null, "name": 4, "content": [{"type": "text", "text": "r"}, {"type": "image_url", "image_url": {"url": "u"}}]},
        {"role": "tool", "tool_calls": [{"id": "c1"}]},
        {"role": "tool", "tool_call_id": "c9"},
        {"role": "function", "name": "f", "content": "old"},
        {"role": "user", "content": "u", "tool_call_id": "x", "tool_calls": [{"id": "c1"}]},
        {"role": "critic", "content": "hm"},
        {"role": "system", "content": "late"},
        {"role": 5, "content": "x"},
        {"content": "no role"},
        {},
        "a string", 7, null, [], [1],
        {"role": "assistant", "content": "same"},
        {"role": "assistant", "content": "same"},
        {"role": "assistant", "content": "same", "data_verbatim": "message", "verbatim": "message"},
        {"role": "user", "content": "last"}
    ]"#;
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn odd_messages_come_back_equal() {
    let all = odd_messages();
    let messages = all.as_array().expect("a list");
    let place = || MessageLocation::Messages(pointer(""));
    // Every message alone and between others, and all of them.
    let mut logs: Vec<Value> = messages.iter().map(|message| json!([message])).collect();
    logs.extend(messages.windows(3).map(|window| json!(window)));
    logs.push(all.clone());
    for log in logs {
        let imported = imported(log.to_string().as_bytes(), place());
        let session = holds_together(&imported).remove(0);
        assert_eq!(openai(session.current()), log);
    }
}

#[test]
fn numbers_and_escapes_come_back_digit_for_digit() {
    let log = r#"[{"role":"user","content":"\ud83d\ude00\u007f\/","a":123456789012345678901234567890,"b":1e-7,"c":1.0,"d":-0.0}]"#;
    let imported = imported(log.as_bytes(), MessageLocation::Usual);
    let session = holds_together(&imported).remove(0);
    assert_eq!(
        rendered(session.current(), Provider::OpenAi),
        "[{\"role\":\"user\",\"content\":\"\\ud83d\\ude00\\u007f/\",\
         \"a\":123456789012345678901234567890,\"b\":1e-07,\"c\":1.0,\"d\":-0.0}]\n"
    );
}

#[test]
fn steps_come_back_equal_at_each_step() {
    let steps = json!([
        [{"role": "system", "content": "s"}, {"role": "user", "content": "go"}],
        [{"role": "system", "content": "s"}, {"role": "user", "content": "go"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}],
        [{"role": "system", "content": "other"}, {"role": "user", "content": "go"}, {"role": "assistant", "content": "elided"}, {"role": "user", "content": "b"}],
        [{"role": "user", "content": "go"}, {"role": "assistant", "content": "a"}],
        [],
        [{"role": "assistant", "content": "a"}],
    ]);
    let imported = imported(
        steps.to_string().as_bytes(),
        MessageLocation::Steps(pointer("/*")),
    );
    let session = holds_together(&imported).remove(0);
    assert!(session.working.is_none());
    for (snapshot, step) in session
        .committed
        .iter()
        .zip(steps.as_array().expect("a list"))
    {
        assert_eq!(&openai(snapshot), step);
    }
}

#[test]
fn trees_that_were_not_imported_render_as_messages_too() {
    let document = r#"{"root":{"children":[
        {"id":"s","nodeType":"^sys","children":[{"id":"a","kind":"text","content":"be brief"}]},
        {"id":"q","nodeType":"^seq","children":[
          {"id":"t","nodeType":"mt","children":[
            {"id":"sum","nodeType":"cb:summary","offset":-1,"role":"system","kind":"summary","content":"earlier"},
            {"id":"m","nodeType":"mc","children":[
              {"id":"u","role":"user","kind":"text","content":"hi","created_at_ns":1},
              {"id":"b1","role":"assistant","kind":"text","content":"looking","created_at_ns":2},
              {"id":"b2","role":"assistant","kind":"call","key":"lookup","content":{"q":1},"created_at_ns":3},
              {"id":"r","role":"tool","kind":"result","content":{"ok":true},"data_call_id":"b2","created_at_ns":4},
              {"id":"i","role":"user","kind":"image","content":{"url":"u"},"created_at_ns":5}]}]}]}]}}"#;
    let session = Session::read(document.as_bytes());
    assert_eq!(
        openai(session.current()),
        json!([
            {"role": "system", "content": "be brief"},
            {"role": "system", "content": "earlier"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "looking", "tool_calls": [
                {"type": "function", "id": "b2", "function": {"name": "lookup", "arguments": "{\"q\":1}"}}]},
            {"role": "tool", "content": "{\"ok\":true}", "tool_call_id": "b2"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]},
        ])
    );
}

#[test]
fn a_document_comes_back_as_canonical_bytes() {
    let document = r#" { "spec_version" : "PACT/0.1", "note":1, "zz":[2], "cycle": 7, "root": {"children":[
        {"id":"q","nodeType":"^seq","children":[]},
        {"id":"x","nodeType":"cb","cadence":2,"children":[{"id":"y","children":null}],"content":1.50,"offset":0},
        {"id":"w","tag":"one","parent_id":"^root","ttl":null,"offset":-1}]}}"#;
    let expected = concat!(
        r#"{"cycle":7,"note":1,"root":{"children":[{"children":[],"id":"q","nodeType":"^seq"},"#,
        r#"{"id":"w","offset":-1,"parent_id":"^root","tag":"one","ttl":null},"#,
        r#"{"cadence":2,"children":[{"id":"y"}],"content":1.5,"id":"x","nodeType":"cb","offset":0}]},"#,
        r#""spec_version":"PACT/0.1","zz":[2]}"#,
        "\n"
    );
    let export = |text: &str| {
        let mut out = Vec::new();
        write_document(Session::read(text.as_bytes()).current(), &mut out).expect("memory");
        String::from_utf8(out).expect("ASCII")
    };
    assert_eq!(export(document), expected);
    assert_eq!(export(expected), expected);
}

#[test]
fn differences_say_the_same_as_whole_documents() {
    // Moves out of a removed node, a removal far below one, ttls that fall and ttls that do not,
    // fields that a delta line cannot carry, and a root that changes.
    let pad = "p".repeat(400);
    let keep = format!(r#"{{"id":"keep","nodeType":"cb","content":"{pad}"}}"#);
    let lines = [
        format!(
            r#"{{"root":{{"children":[{keep},{{"id":"x","nodeType":"cb","children":[{{"id":"y","nodeType":"cb","children":[{{"id":"z","ttl":3}}]}}]}}]}}}}"#
        ),
        format!(r#"{{"root":{{"children":[{keep},{{"id":"y","nodeType":"cb"}}]}}}}"#),
        format!(r#"{{"root":{{"children":[{keep},{{"id":"y","nodeType":"cb","ttl":5}}]}}}}"#),
        format!(r#"{{"root":{{"children":[{keep},{{"id":"y","nodeType":"cb","ttl":4}}]}}}}"#),
        format!(r#"{{"root":{{"children":[{keep},{{"id":"y","nodeType":"cb","ttl":4}}]}}}}"#),
        format!(
            r#"{{"root":{{"children":[{keep},{{"id":"y","nodeType":"cb","parent_id":"^root"}}]}}}}"#
        ),
        format!(r#"{{"root":{{"children":[{keep},{{"id":"y","nodeType":"cb","children":[]}}]}}}}"#),
        format!(r#"{{"root":{{"id":"r","children":[{keep}]}}}}"#),
        format!(r#"{{"root":{{"id":"r","key":"k","children":[{keep}]}}}}"#),
        format!(r#"{{"root":{{"id":"r","key":"k","children":[{keep}]}},"spec_version":"2"}}"#),
    ];
    let lines: Vec<String> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| format!("{{\"cycle\":{},{}", at + 1, &line[1..]))
        .collect();
    let session = Session::read(lines.join("\n").as_bytes());
    let whole = session.export(true);
    let short = session.export(false);
    let deltas = short
        .lines()
        .filter(|line| line.contains("\"base\":"))
        .count();
    assert_eq!(deltas, 5, "{short}");
    let again = Session::read(short.as_bytes());
    assert_eq!(again.export(true), whole);
    assert_eq!(again.export(false), short);
}

/// The directory of recorded sessions; prints a line and returns nothing if it is missing.
fn data(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PACTQL_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
        PathBuf::from,
    );
    let folder = root.join(folder);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no real sessions at {}", folder.display());
    None
}

fn unpacked(path: &std::path::Path) -> Vec<u8> {
    use std::io::Read;
    let file = std::fs::File::open(path).expect("a readable file");
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(file)
        .read_to_end(&mut bytes)
        .expect("gzip data");
    bytes
}

#[test]
fn real_tool_conversations_come_back_equal() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let Some(folder) = data("tau-bench-airline") else {
        return;
    };
    let text = unpacked(&folder.join("gpt-4o-airline.json.gz"));
    let records: Value = serde_json::from_slice(&text).expect("JSON");
    let imported = imported(&text, MessageLocation::Messages(pointer("/*/traj")));
    assert_eq!(imported.sessions.len(), 200);
    for (at, session) in holds_together(&imported).iter().enumerate() {
        assert_eq!(
            openai(session.current()),
            records[at]["traj"],
            "session {at}"
        );
    }
}

#[test]
fn real_agent_histories_come_back_equal() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let Some(folder) = data("swe-agent-trajectories") else {
        return;
    };
    let mut stepped = 0;
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "gz"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 7);
    for path in files {
        let text = unpacked(&path);
        let record: Value = serde_json::from_slice(&text).expect("JSON");
        let history = imported(&text, MessageLocation::Messages(pointer("/history")));
        let session = holds_together(&history).remove(0);
        assert_eq!(
            openai(session.current()),
            record["history"],
            "{}",
            path.display()
        );
        if record["trajectory"][0]["messages"].is_null() {
            continue;
        }
        stepped += 1;
        let steps = imported(
            &text,
            MessageLocation::Steps(pointer("/trajectory/*/messages")),
        );
        let session = holds_together(&steps).remove(0);
        let expected = record["trajectory"].as_array().expect("steps");
        assert_eq!(session.committed.len(), expected.len());
        for (snapshot, step) in session.committed.iter().zip(expected) {
            assert_eq!(openai(snapshot), step["messages"], "{}", path.display());
        }
    }
    assert_eq!(stepped, 2);
}

#[test]
fn a_thread_comes_back_from_its_records() {
    let document = r#"{"cycle":3,"meta":{"request":{ "b" : 1.0, "a":"é" }},"root":{"children":[
        {"id":"s","nodeType":"^sys","children":[
          {"id":"t","kind":"tool","key":"f","content":{ "name":"f", "input_schema":{"type":"object"}}}]},
        {"id":"q","nodeType":"^seq","children":[
          {"id":"mt","nodeType":"mt","children":[
            {"id":"pre","nodeType":"cb","offset":-1,"role":"assistant","content":"pre"},
            {"id":"a","nodeType":"cb","role":"assistant","kind":"text","data_z":[1],"data_a":null,"content":{"y":1,"x":"é"}},
            {"id":"r","nodeType":"cb","role":"assistant","content":null,"data_reply":3}]}]}]}}"#;
    let session = Session::read(document.as_bytes());
    let thread = Thread::from_snapshot(session.current(), Contents::All);
    let records: Vec<String> = thread.records().map(|record| record.to_string()).collect();
    let expected = [
        r#"{"id":"t","role":"system","kind":"tool","key":"f","parent":"s","system":true,"content":{"name":"f","input_schema":{"type":"object"}}}"#,
        r#"{"id":"pre","role":"assistant","parent":"mt","content":"pre"}"#,
        r#"{"id":"a","role":"assistant","kind":"text","parent":"mt","content":{"x":"\u00e9","y":1},"data_a":null,"data_z":[1]}"#,
        r#"{"id":"r","role":"assistant","parent":"mt","content":null,"data_reply":3}"#,
        r#"{"parameters":{"b":1.0,"a":"é"}}"#,
    ];
    assert_eq!(records, expected);
    assert_eq!(Thread::from_records(&records).expect("records"), thread);
    let sent = Thread::request(session.current());
    assert_eq!(
        sent.blocks().last().map(|block| block.id()),
        Some("a"),
        "the reply of cycle 3 is left out"
    );
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let block = format!(r#"{{"id":"a","role":"r","parent":"p","content":{deep},"data_x":{deep}}}"#);
    let thread = Thread::from_records([&block]).expect("a deep record");
    assert_eq!(*thread.records().next().expect("a record"), *block);
    for wrong in [
        "",
        "[]",
        "{}",
        r#"{"id":"a"}"#,
        r#"{"id":"a","role":"r","parent":"p","more":1}"#,
        r#"{"id":"a","role":"r","parent":"p","system":false}"#,
        r#"{"id":"a","role":"r","parent":"p","data":{"x":1}}"#,
        r#"{"id":"a","role":"r","parent":"p","data_x":{"y":1,"y":2}}"#,
        r#"{"id":"a","role":"r","parent":"p"} x"#,
        r#"{"id":"a","id":"a","role":"r","parent":"p"}"#,
        r#"{"id":1,"role":"r","parent":"p"}"#,
    ] {
        let error = Thread::from_records([wrong]).expect_err(wrong);
        assert!(error.to_string().contains("$[0]: expected"), "{error}");
    }
}
