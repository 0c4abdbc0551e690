//! Importing OpenAI chat logs: places, cycles, ids, delta lines, reports, and bad logs.

use super::written;
use pactql::logs::{Fate, ImportOptions, Imported, MessageLocation, Pointer, import};
use serde_json::{Value, json};

fn options(place: MessageLocation) -> ImportOptions {
    ImportOptions {
        location: place,
        ..ImportOptions::default()
    }
}

fn usual(text: &str) -> Imported {
    import(text.as_bytes(), &ImportOptions::default()).expect("a good log")
}

fn refused(text: &str, place: MessageLocation) -> String {
    let error = import(text.as_bytes(), &options(place)).expect_err("a bad log");
    error.to_string()
}

fn pointer(text: &str) -> Pointer {
    Pointer::parse(text).expect("a pointer")
}

/// The lines a session writes.
fn lines(imported: &Imported, session: usize, full: bool) -> Vec<Value> {
    let mut out = Vec::new();
    imported.sessions[session]
        .recording
        .write_jsonl(&mut out, full)
        .expect("memory takes everything");
    let text = String::from_utf8(out).expect("ASCII");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Every node of a whole document: its id, its parent's id, the object.
fn nodes(document: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    let mut open = vec![(document["root"].clone(), String::new())];
    while let Some((node, parent)) = open.pop() {
        let id = node["id"].as_str().expect("an id").to_owned();
        for child in node["children"].as_array().into_iter().flatten().rev() {
            open.push((child.clone(), id.clone()));
        }
        found.push((id, parent, node));
    }
    found
}

fn outline(document: &Value) -> Vec<String> {
    let found = nodes(document);
    found
        .iter()
        .map(|(id, parent, _)| format!("{parent}/{id}"))
        .collect()
}

const LOG: &str = r#"[
  {"role": "system", "content": "Be brief."},
  {"role": "developer", "content": [{"type": "text", "text": "And kind."}]},
  {"role": "user", "content": "Weather in Graz?"},
  {"role": "assistant", "content": null, "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Graz\"}"}},
    {"id": "c2", "type": "function", "function": {"name": "time", "arguments": "{not json"}}]},
  {"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "12°C"},
  {"role": "tool", "tool_call_id": "c2", "content": "noon"},
  {"role": "system", "content": "Answer now."},
  {"role": "assistant", "content": "12 degrees."},
  {"role": "user", "content": "Thanks"}
]"#;

#[test]
fn each_reply_ends_a_turn_and_what_follows_is_the_working_state() {
    let imported = usual(LOG);
    let documents = lines(&imported, 0, true);
    assert_eq!(documents.len(), 3);
    assert_eq!(
        outline(&documents[0]).join(" "),
        "/^root ^root/^sys ^sys/cb:1-1 ^sys/cb:2-1 ^root/^seq ^seq/mt:1 mt:1/mc:1 mc:1/cb:3-1 \
         mc:1/cb:4-1 mc:1/cb:4-2 ^root/^ah"
    );
    assert_eq!(
        outline(&documents[1])[10..].join(" "),
        "^seq/mt:2 mt:2/mc:2 mc:2/cb:5-1 mc:2/cb:6-1 mc:2/cb:7-1 mc:2/cb:8-1 ^root/^ah"
    );
    assert_eq!(documents[2]["working"], json!(true));
    assert_eq!(documents[2].get("cycle"), None);
    assert_eq!(
        outline(&documents[2])[16..].join(" "),
        "^root/^ah ^ah/mc:3 mc:3/cb:9-1"
    );
}

#[test]
fn parts_become_blocks_with_kinds_and_call_ids() {
    let imported = usual(LOG);
    let documents = lines(&imported, 0, true);
    let found = nodes(&documents[1]);
    let node = |wanted: &str| {
        let entry = found.iter().find(|(id, _, _)| id == wanted);
        entry.map(|(_, _, node)| node.clone()).expect("the node")
    };
    let call = node("cb:4-2");
    assert_eq!(call["kind"], "call");
    assert_eq!(call["role"], "assistant");
    assert_eq!(call["content"], "{not json");
    assert_eq!(call["data_call_id"], "c2");
    assert_eq!(call["data_call_name"], "time");
    let result = node("cb:5-1");
    assert_eq!(result["kind"], "result");
    assert_eq!(result["content"], "12°C");
    assert_eq!(result["data_call_id"], "c1");
    assert_eq!(result["data_call_name"], "weather");
    assert_eq!(node("cb:7-1")["role"], "system");
    assert_eq!(node("cb:2-1")["role"], "developer");
}

#[test]
fn every_node_has_the_required_headers_and_times_rise_within_a_cycle() {
    let imported = usual(LOG);
    let documents = lines(&imported, 0, true);
    let mut by_cycle = std::collections::BTreeMap::<i64, Vec<(i64, i64)>>::new();
    for (id, _, node) in nodes(&documents[2]) {
        for header in [
            "nodeType",
            "offset",
            "ttl",
            "priority",
            "cycle",
            "created_at_ns",
            "created_at_iso",
            "creation_index",
        ] {
            assert!(node.get(header).is_some(), "{id} lacks {header}");
        }
        let number = |name: &str| node[name].as_i64().expect("an integer");
        let stamp = (number("created_at_ns"), number("creation_index"));
        by_cycle.entry(number("cycle")).or_default().push(stamp);
    }
    assert_eq!(by_cycle.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
    for stamps in by_cycle.values_mut() {
        stamps.sort_unstable();
        for (at, (ns, index)) in stamps.iter().enumerate() {
            assert_eq!(*index, at as i64);
            assert!(at == 0 || stamps[at - 1].0 < *ns);
        }
    }
}

#[test]
fn all_shapes_of_a_log_give_the_same_session() {
    let messages: Vec<Value> = serde_json::from_str(LOG).expect("JSON");
    let one_a_line: String = messages
        .iter()
        .map(|message| format!("{message}\n"))
        .collect();
    let expected = lines(&usual(LOG), 0, false);
    for text in [
        one_a_line.clone(),
        format!("\u{feff}{}", one_a_line.replace('\n', "\r\n")),
        json!({"messages": messages}).to_string(),
        format!("{}\n", json!({"messages": messages})),
        json!([{"messages": messages}]).to_string(),
    ] {
        let imported = usual(&text);
        assert_eq!(imported.sessions.len(), 1, "{text}");
        assert_eq!(lines(&imported, 0, false), expected, "{text}");
    }
    let twice = format!("{0}\n\n{0}\n", json!({"messages": messages}));
    let imported = usual(&twice);
    assert_eq!(imported.sessions.len(), 2);
    assert_eq!(imported.sessions[1].location, "line 3");
    let nested = json!([{"a/b": {"traj": messages}}, {"a/b": {"traj": []}}]).to_string();
    let place = MessageLocation::Messages(pointer("/*/a~1b/traj"));
    let imported = import(nested.as_bytes(), &options(place)).expect("a good log");
    assert_eq!(imported.sessions.len(), 2);
    assert_eq!(imported.sessions[0].location, "/0/a~1b/traj");
    assert_eq!(lines(&imported, 0, false), expected);
}

#[test]
fn later_snapshots_are_delta_lines_and_a_log_that_grows_costs_what_it_adds() {
    let documents = lines(&usual(LOG), 0, false);
    let delta = &documents[1];
    assert_eq!(delta["base"], 1);
    assert_eq!(delta["cycle"], 2);
    assert_eq!(delta["remove"], json!([]));
    assert!(delta.get("root").is_none());
    let replaced = delta["replace"].as_array().expect("nodes");
    assert_eq!(replaced[0]["id"], "mt:2");
    assert_eq!(replaced[0]["parent_id"], "^seq");
    assert_eq!(replaced[1]["parent_id"], "mt:2");

    let size = |messages: usize| {
        let turn = [
            json!({"role": "user", "content": "more"}),
            json!({"role": "assistant", "content": "ok"}),
        ];
        let log: Vec<Value> = (0..messages).map(|at| turn[at % 2].clone()).collect();
        let imported = usual(&Value::Array(log).to_string());
        let mut out = Vec::new();
        let recording = &imported.sessions[0].recording;
        recording.write_jsonl(&mut out, false).expect("memory");
        out.len()
    };
    let (small, large) = (size(200), size(2_000));
    assert!(large < small * 11, "{small} bytes became {large}");
}

#[test]
fn a_log_that_has_grown_keeps_the_nodes_it_had() {
    let messages: Vec<Value> = serde_json::from_str(LOG).expect("JSON");
    let all = lines(&usual(LOG), 0, false);
    let part = lines(&usual(&json!(messages[..8]).to_string()), 0, false);
    assert_eq!(all[..2], part[..]);
}

#[test]
fn logs_without_a_reply_are_a_working_state() {
    for (text, expected) in [
        ("[]", "/^root ^root/^sys ^root/^seq ^root/^ah"),
        (
            r#"{"role":"system","content":"x"}"#,
            "/^root ^root/^sys ^sys/cb:1-1 ^root/^seq ^root/^ah",
        ),
        (
            r#"[{"role":"user","content":"x"}]"#,
            "/^root ^root/^sys ^root/^seq ^root/^ah ^ah/mc:1 mc:1/cb:1-1",
        ),
    ] {
        let documents = lines(&usual(text), 0, false);
        assert_eq!(documents.len(), 1, "{text}");
        assert_eq!(documents[0]["working"], json!(true));
        assert_eq!(outline(&documents[0]).join(" "), expected, "{text}");
    }
}

#[test]
fn steps_are_snapshots_whose_rewritten_messages_keep_their_ids() {
    let old = json!({"role": "tool", "tool_call_id": "c1", "content": "a long listing"});
    let new = json!({"role": "tool", "tool_call_id": "c1", "content": "elided"});
    let user = json!({"role": "user", "content": "go"});
    let reply = json!({"role": "assistant", "content": "hm"});
    let steps = json!({"trajectory": [
        {"messages": [user, reply, old]},
        {"messages": [user, reply, old, reply, user]},
        {"messages": [user, reply, new, reply, user, reply]},
        {"messages": [user, reply]},
    ]});
    let place = MessageLocation::Steps(pointer("/trajectory/*/messages"));
    let imported = import(steps.to_string().as_bytes(), &options(place)).expect("a good log");
    assert_eq!(imported.sessions.len(), 1);
    let whole = lines(&imported, 0, true);
    assert_eq!(whole.len(), 4);
    assert_eq!(
        outline(&whole[0])[7..].join(" "),
        "^root/^ah ^ah/mc:2 mc:2/cb:3-1"
    );
    assert_eq!(
        outline(&whole[1])[3..].join(" "),
        "^seq/mt:1 mt:1/mc:1 mc:1/cb:1-1 mc:1/cb:2-1 ^seq/mt:2 mt:2/mc:2 mc:2/cb:3-1 mc:2/cb:4-1 \
         ^root/^ah ^ah/mc:3 mc:3/cb:5-1"
    );
    let changes = lines(&imported, 0, false);
    let ids = |line: usize| -> String {
        let nodes = changes[line]["replace"].as_array().expect("a delta");
        let ids = nodes.iter().map(|node| node["id"].as_str().expect("an id"));
        ids.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids(1), "mt:2 mc:2 cb:4-1 mc:3 cb:5-1");
    assert_eq!(ids(2), "cb:3-1 mt:3 mc:3 cb:6-1");
    // The rewritten message keeps the cycle in which it was created.
    assert_eq!(changes[2]["replace"][0]["cycle"], 1);
    assert_eq!(changes[2]["replace"][0]["content"], "elided");
    assert_eq!(changes[3]["remove"], json!(["mt:2", "mt:3"]));
}

#[test]
fn nothing_is_dropped_and_everything_is_counted() {
    let imported = usual(
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"input_audio","x":1},{"type":"image_url","image_url":{"url":"u"}}],"agent":"main"},
           {"content":"no role"}, 7, {"role":"assistant","content":5},{"role":"user","content":"b"}],"tools":[],"topic":"t"}"#,
    );
    let report = &imported.report;
    assert_eq!(report.messages(Fate::Understood), 2);
    assert_eq!(report.messages(Fate::Verbatim), 3);
    assert_eq!(report.messages(Fate::Skipped), 0);
    assert_eq!(report.parts(Fate::Understood), 3);
    assert_eq!(report.parts(Fate::Verbatim), 2);
    assert_eq!(
        report.to_string(),
        "imported 1 session, 1 snapshot\n  \
         lines     understood 1 (conversation 1), kept verbatim 0, skipped 0\n  \
         messages  understood 2 (user 2), kept verbatim 3 (assistant 1, without a role 2), skipped 0\n  \
         parts     understood 3 (image 1, text 2), kept verbatim 2 (content 1, input_audio 1), skipped 0\n  \
         members kept as data_*: agent 1\n  \
         members of records kept in meta: tools 1, topic 1"
    );
}

#[test]
fn bad_logs_are_refused_with_their_place() {
    for (text, expected) in [
        ("", "expected a value"),
        ("[{\"role\":\"user\"", "malformed JSON"),
        ("[{\"role\":\"user\",\"role\":\"tool\"}]", "is given twice"),
        ("[{\"role\":\"user\",\"content\":1e400}]", "double"),
        ("3", "expected chat messages"),
        ("{\"role\":1}", "expected a message with a `role`"),
        ("[{\"a\":1}]", "with `messages`, at /0"),
        ("no JSON\nnor this\n", "malformed JSON"),
        ("{\"role\":\"user\"}", "expected a message with a `role`"),
    ] {
        let message = refused(text, MessageLocation::Usual);
        assert!(message.contains(expected), "{text}: {message}");
    }
    let at = |text| MessageLocation::Messages(pointer(text));
    assert!(refused("{\"a\":[]}", at("/b")).contains("at `/b`, which matches nothing"));
    assert!(refused("{\"a\":{}}", at("/a")).contains("expected a list of messages at"));
    let deep = format!("[{}{}]", "[".repeat(100_000), "]".repeat(100_000));
    assert!(refused(&deep, MessageLocation::Usual).contains("nest at most"));
    let error = import(b"[\xff]", &ImportOptions::default()).expect_err("not text");
    assert!(error.to_string().contains("UTF-8"), "{error}");
}

/// Also the first; and where most are, the log is no log.
#[test]
fn malformed_lines_are_left_out_and_counted_or_refused() {
    let good = "{\"role\":\"user\",\"content\":\"a\"}\n";
    for bad in [
        &b"no JSON\n"[..],
        b"{\"role\":\"user\",\"content\":1e999}\n",
        b"{\"role\":\"user\",\"role\":\"user\"}\n",
        b"{\"role\":\"user\",\"content\":\"\xff\"}\n",
    ] {
        for (log, line) in [
            ([good.as_bytes(), bad, good.as_bytes()].concat(), 2),
            ([bad, good.as_bytes(), good.as_bytes()].concat(), 1),
        ] {
            let text = String::from_utf8_lossy(&log).into_owned();
            let imported = import(&log, &ImportOptions::default()).expect("a log");
            assert_eq!(imported.report.messages(Fate::Understood), 2, "{text}");
            assert_eq!(imported.report.lines(Fate::Skipped), 1, "{text}");
            let strict = ImportOptions {
                strict: true,
                ..ImportOptions::default()
            };
            let error = import(&log, &strict).expect_err("a malformed line");
            assert_eq!(error.faults[0].line, line, "{text}");
        }
        let log = [good.as_bytes(), bad, bad, bad].concat();
        let refused = import(&log, &ImportOptions::default()).is_err();
        assert!(refused, "{}", String::from_utf8_lossy(&log));
    }
}

/// By their names, with `--lenient` too; a list that only looks like messages is none.
#[test]
fn logs_of_kinds_that_are_not_read_are_refused() {
    let kimi = r#"{"type":"metadata","protocol_version":"1.4"}
        {"type":"turn.prompt","input":[{"type":"text","text":"Read it."}]}"#;
    let droid = r#"{"type":"session_start","id":"a","cwd":"/a"}
        {"type":"message","message":{"role":"user","content":[{"type":"text","text":"List."}]}}"#;
    for (log, expected) in [
        (kimi.to_owned(), "Kimi"),
        (format!("no JSON\n{kimi}"), "Kimi"),
        (droid.to_owned(), "Droid"),
        (r#"[{"kind":"user","text":"Run it.","captured_at":"2026-01-01T00:00:00Z"}]"#.into(), "Letta Code"),
        (r#"[{"role":"user","content":"a","observed":0,"active":1}]"#.into(), "Hermes"),
        (
            r#"{"v":4,"channel_values":{"messages":[{"role":"user","content":"a"}]},"channel_versions":{}}"#.into(),
            "LangGraph",
        ),
        (
            r#"{"items":[null,{"kind":"MessageEvent","llm_message":{"role":"user","content":[]}}]}"#.into(),
            "OpenHands",
        ),
        (r#"{"stats":[{"role":"user","count":3}]}"#.into(), "expected a message"),
        (r#"[{"role":"user","pieces":[{"text":"a"}]}]"#.into(), "expected a message"),
    ] {
        for lenient in [false, true] {
            let options = ImportOptions {
                lenient,
                ..ImportOptions::default()
            };
            let error = import(log.as_bytes(), &options).expect_err(&log);
            assert!(error.to_string().contains(expected), "{log}: {error}");
        }
    }
}

/// What is beside a list of messages is in the `meta` of its session.
#[test]
fn members_beside_lists_are_kept() {
    let imported = usual(
        r#"[{"task":7,"traj":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"info":{"reward":"why"}}]"#,
    );
    let report = imported.report.to_string();
    assert!(report.contains("kept in meta: info 1, task 1"), "{report}");
    let line = written(&imported, 0, true);
    let line: Value = serde_json::from_str(line.lines().next().expect("a snapshot")).expect("JSON");
    assert_eq!(
        line["meta"]["record"],
        json!({"info": {"reward": "why"}, "task": 7})
    );
}
