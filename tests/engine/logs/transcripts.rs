//! Logs with forms of their own: ShareGPT, OpenHands, ATIF, inspect_ai, Letta, Gemini CLI, Copilot CLI, Cursor. Every text is in the
//! session under its role, and what has no field is kept or counted.

use super::{Session, holds_together};
use pactql::Engine;
use pactql::inspect::{Part, Report as _, ReportOptions, ShowReport, StepReport};
use pactql::logs::{Fate, Format, ImportOptions, Imported, import};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn fixture(path: &str) -> (Imported, Vec<Session>) {
    let bytes = std::fs::read(format!("tests/cases/logs/{path}")).expect("a fixture");
    let imported = import(&bytes, &ImportOptions::default()).expect("a good log");
    let sessions = holds_together(&imported);
    (imported, sessions)
}

fn documents(session: &Session) -> Vec<Value> {
    let lines = session.export(true);
    let parse = |line| serde_json::from_str(line).expect("JSON");
    lines.lines().map(parse).collect()
}

/// The blocks of a document, in its order.
fn blocks<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| blocks(value, found)),
        Value::Object(members) => {
            if members
                .get("id")
                .and_then(Value::as_str)
                .is_some_and(|id| id.starts_with("cb:"))
            {
                found.push(value);
            }
            members.values().for_each(|value| blocks(value, found));
        }
        _ => {}
    }
}

/// The bytes of text by role, over all blocks that any snapshot has; tools aside.
fn bytes_by_role(session: &Session) -> BTreeMap<String, usize> {
    let (mut seen, mut bytes) = (BTreeSet::new(), BTreeMap::new());
    let documents = documents(session);
    let mut found = Vec::new();
    documents
        .iter()
        .for_each(|document| blocks(document, &mut found));
    for block in found {
        if block["kind"] == "tool" || !seen.insert(block["id"].to_string()) {
            continue;
        }
        if let Some(text) = block["content"].as_str() {
            let role = block["role"].as_str().unwrap_or("none").to_owned();
            *bytes.entry(role).or_default() += text.len();
        }
    }
    bytes
}

fn sum(texts: &[(&str, &[&str])]) -> BTreeMap<String, usize> {
    let sum = |texts: &[&str]| texts.iter().map(|text| text.len()).sum();
    texts
        .iter()
        .map(|(role, texts)| ((*role).to_owned(), sum(texts)))
        .collect()
}

/// The block of an id in the last document that has it.
fn block(session: &Session, has: &str) -> Value {
    let documents = documents(session);
    let mut found = Vec::new();
    documents
        .iter()
        .for_each(|document| blocks(document, &mut found));
    let is = |block: &&&Value| block["content"].to_string().contains(has);
    (*found
        .iter()
        .rev()
        .find(is)
        .unwrap_or_else(|| panic!("no block with {has}")))
    .clone()
}

#[test]
fn sharegpt_conversations_are_sessions_with_all_their_text() {
    let (imported, sessions) = fixture("sharegpt/synthetic-conversations.jsonl");
    assert_eq!(imported.format, Some(Format::ShareGpt));
    assert_eq!(sessions.len(), 2);
    assert_eq!(
        bytes_by_role(&sessions[0]),
        sum(&[
            ("system", &["Answer in one line."]),
            ("user", &["How much is 2 and 3?"]),
            ("assistant", &[r#"{"b":3,"a":2}"#, "Five – or \"5\"."]),
            ("tool", &["5"]),
        ])
    );
    assert_eq!(
        bytes_by_role(&sessions[1]),
        sum(&[
            ("system", &["Be kind."]),
            ("user", &["Bonjour", ""]),
            ("assistant", &["Bonjour à vous 🙂", "add(2, 3)"]),
            ("narrator", &["They smile."]),
        ])
    );
    assert_eq!(
        block(&sessions[0], "Five")["data_record"],
        json!({"weight": 1})
    );
    assert_eq!(block(&sessions[0], "\\\"b\\\":3")["data_call_name"], "add");
    let odd = block(&sessions[1], "without a speaker");
    assert_eq!(odd["data_verbatim"], "message");
    assert_eq!(
        documents(&sessions[1])[0]["meta"]["record"],
        json!({"id": "c2", "lang": "fr"})
    );
    assert_eq!(imported.report.messages(Fate::Verbatim), 1);
    assert_eq!(imported.report.lines(Fate::Skipped), 0);
}

#[test]
fn openhands_events_are_replies_results_and_a_compaction() {
    let (imported, sessions) = fixture("openhands/synthetic-run.json");
    assert_eq!(imported.format, Some(Format::OpenHands));
    let session = &sessions[0];
    assert_eq!(
        bytes_by_role(session),
        sum(&[
            ("system", &["You fix code."]),
            (
                "user",
                &[
                    "Fix the test.",
                    "Listed the files; t.py is unreadable.",
                    "Thanks."
                ]
            ),
            (
                "assistant",
                &[
                    "I look around first.",
                    "{\"command\":  \"ls\"}",
                    "{\"command\": \"cat t.py\"}",
                    "I write it anew.",
                    r#"{"path":"t.py","content":"pass\n"}"#,
                    r#"{"where":"home"}"#,
                ]
            ),
            ("tool", &["t.py\n", "cat: t.py: denied", "No such file."]),
        ])
    );
    // Two calls of one response are one reply, and its tokens are counted once.
    let documents = documents(session);
    let used = |document: &&Value| document["usage"]["input_tokens"] == 100;
    assert_eq!(documents.iter().filter(used).count(), 1);
    assert_eq!(
        documents[0]["meta"]["request"],
        json!({"model": "claude-x"})
    );
    let call = block(session, "cat t.py");
    assert_eq!(call["data_call_id"], "toolu_b");
    assert_eq!(call["id"], "cb:3-3");
    // An observation answers the action that is its cause.
    let result = block(session, "denied");
    assert_eq!(
        (&result["data_call_id"], &result["data_is_error"]),
        (&json!("toolu_b"), &json!(true))
    );
    assert_eq!(block(session, "No such file.")["data_call_id"], "8");
    // The results that no reply followed have a snapshot of their own. The compaction drops them with
    // the reply, and has the summary after the task.
    assert_eq!(documents[2]["meta"]["compaction"], json!({"dropped": 3}));
    let mut after = Vec::new();
    blocks(&documents[2], &mut after);
    let kept: Vec<&Value> = after.iter().map(|block| &block["kind"]).collect();
    assert_eq!(kept, ["text", "tool", "text", "image", "summary"]);
    assert_eq!(imported.report.lines(Fate::Skipped), 1);
    assert_eq!(imported.report.lines(Fate::Verbatim), 1);
}

#[test]
fn atif_trajectories_have_calls_results_usage_and_subagents() {
    let (imported, sessions) = fixture("atif/synthetic-trajectory.json");
    assert_eq!(imported.format, Some(Format::Atif));
    let names: Vec<_> = imported
        .sessions
        .iter()
        .map(|session| session.name.as_deref())
        .collect();
    assert_eq!(names, [Some("s-1"), Some("s-1/sub-1")]);
    let session = &sessions[0];
    assert_eq!(
        bytes_by_role(session),
        sum(&[
            ("system", &["You research."]),
            ("user", &["What is this?"]),
            (
                "assistant",
                &[
                    "It may be a bird.",
                    "I search.",
                    r#"{"q":"bird","n":1.50}"#,
                    "{}",
                    "A heron.",
                    "Saved.",
                ]
            ),
            ("tool", &["A heron.", "Done."]),
        ])
    );
    let all = documents(session);
    assert_eq!(all[0]["usage"]["input_tokens"], 520);
    assert_eq!(all[0]["usage"]["cached_tokens"], 200);
    assert_eq!(all[0]["meta"]["request"]["model"], "m-large");
    assert_eq!(all[0]["meta"]["record"]["notes"], "synthetic");
    // A step without a call of a model is no cycle; two steps are, and the working state.
    assert_eq!(session.committed.len(), 2);
    assert_eq!(block(session, "It may be")["kind"], "thinking");
    assert_eq!(block(session, "images/1.png")["data_verbatim"], "part");
    assert_eq!(block(session, "\"{}\"")["data_child_session"], "/sub-1");
    assert_eq!(block(session, "It rains.")["data_verbatim"], "message");
    assert_eq!(
        block(session, "It may be")["data_record"],
        json!({"reasoning_effort": "low"})
    );
    assert_eq!(imported.report.messages(Fate::Verbatim), 1);
    let child = &sessions[1];
    assert_eq!(
        bytes_by_role(child),
        sum(&[("assistant", &["Done."]), ("user", &["Look it up."])])
    );
    assert_eq!(
        documents(child)[0]["meta"]["parent"],
        json!({"session": ".."})
    );
}

#[test]
fn a_call_of_atif_has_a_child_only_if_its_trajectory_is_in_the_file() {
    let trajectory = |reference: Value, children: Value| {
        json!({"schema_version": "ATIF-v1.8", "session_id": "run", "agent": {"name": "n", "version": "1"}, "steps": [
            {"step_id": 1, "source": "user", "message": "Go."},
            {"step_id": 2, "source": "agent", "message": "", "tool_calls": [
                {"tool_call_id": "k", "function_name": "delegate", "arguments": {"task": "sow"}}],
                "observation": {"results": [{"source_call_id": "k", "subagent_trajectory_ref": [reference]}]}}],
            "subagent_trajectories": children})
    };
    let child = |own: Value| {
        let mut child = json!({"schema_version": "ATIF-v1.8", "agent": {"name": "h", "version": "1"}, "steps": []});
        let own = own.as_object().expect("members").clone();
        child.as_object_mut().expect("an object").extend(own);
        child
    };
    let with_ids = child(json!({"trajectory_id": "t", "session_id": "run"}));
    let with_session = child(json!({"session_id": "s"}));
    for (reference, children, link) in [
        // The child is another file, and the session that of the whole run.
        (
            json!({"trajectory_path": "sub/a.json", "session_id": "run"}),
            json!([]),
            Value::Null,
        ),
        (json!({"session_id": "run"}), json!([]), Value::Null),
        (
            json!({"trajectory_id": "u", "session_id": "run"}),
            json!([with_ids]),
            Value::Null,
        ),
        (
            json!({"trajectory_id": "t", "session_id": "run"}),
            json!([with_ids, with_session]),
            json!("/t"),
        ),
        (
            json!({"session_id": "s"}),
            json!([with_ids, with_session]),
            json!("/s"),
        ),
        // Which of two it is, is not said.
        (
            json!({"session_id": "s"}),
            json!([with_session, with_session]),
            Value::Null,
        ),
    ] {
        let log = trajectory(reference.clone(), children).to_string();
        let imported = import(log.as_bytes(), &ImportOptions::default()).expect("a good log");
        let sessions = holds_together(&imported);
        let call = block(&sessions[0], "sow");
        assert_eq!(call["data_child_session"], link, "{reference}");
        let text = Value::from(documents(&sessions[0])).to_string();
        let kept = json!({"subagent_trajectory_ref": [reference]}).to_string();
        assert!(text.contains(&kept), "{text}");
    }
}

#[test]
fn a_result_of_atif_has_no_time_and_none_is_made_of_it() {
    let step = |id: u64, time: &str, source: &str, message: &str, more: Value| {
        let mut step = json!({"step_id": id, "timestamp": format!("2026-03-02T{time}Z"), "source": source, "message": message});
        let more = more.as_object().expect("members").clone();
        step.as_object_mut().expect("an object").extend(more);
        step
    };
    let call = json!({
        "tool_calls": [{"tool_call_id": "k", "function_name": "sow", "arguments": {}}],
        "observation": {"results": [{"source_call_id": "k", "content": "Sown."}]},
    });
    let log = json!({"schema_version": "ATIF-v1.8", "session_id": "a", "agent": {"name": "n", "version": "1"}, "steps": [
        step(1, "09:00:00", "user", "Go.", json!({})),
        step(2, "09:00:05", "agent", "", call),
        step(3, "09:05:00", "agent", "Done.", json!({})),
        step(4, "09:06:00", "user", "And?", json!({})),
        step(5, "09:06:02", "agent", "Nothing.", json!({})),
    ]});
    let imported = import(log.to_string().as_bytes(), &ImportOptions::default());
    let imported = imported.expect("a good log");
    holds_together(&imported);
    let session = imported.sessions[0].session().expect("a session");
    let report = StepReport::new(&Engine::new(), &session, &ReportOptions::default());
    let steps = report.expect("a report").steps;
    let spans: Vec<_> = steps
        .iter()
        .map(|step| (step.duration_ms, step.gap_ms))
        .collect();
    let spans_of_log = [
        (Some(5_000), None),
        (None, None),
        (Some(2_000), Some(60_000)),
    ];
    assert_eq!(spans, spans_of_log);
    assert_eq!(steps[1].time.as_deref(), Some("2026-03-02T09:05:00Z"));
}

#[test]
fn damaged_logs_are_counted_and_never_a_failure_of_the_program() {
    let lenient = ImportOptions {
        lenient: true,
        ..ImportOptions::default()
    };
    for path in [
        "sharegpt/synthetic-conversations.jsonl",
        "openhands/synthetic-run.json",
        "atif/synthetic-trajectory.json",
        "inspect-ai/synthetic-log.json",
        "letta/synthetic-agent.af",
        "gemini-cli/synthetic-session.json",
    ] {
        let text = std::fs::read_to_string(format!("tests/cases/logs/{path}")).expect("a fixture");
        // A value of another type in the place of each string and number that the form knows.
        for (from, to) in [
            ("\"value\": \"", "\"value\": 7, \"x\": \""),
            ("\"from\": \"", "\"from\": [], \"x\": \""),
            ("\"args\": {", "\"args\": null, \"x\": {"),
            ("\"content\": \"", "\"content\": {\"a\": 1}, \"x\": \""),
            ("\"arguments\": {", "\"arguments\": false, \"x\": {"),
            ("\"id\": ", "\"id\": null, \"x\": "),
            ("\"result\": [", "\"result\": 7, \"x\": ["),
            ("\"tokens\": {", "\"tokens\": [], \"x\": {"),
            ("\"response\": {", "\"response\": 1, \"x\": {"),
            ("\"steps\": [", "\"steps\": {}, \"x\": ["),
            ("\"messages\": [", "\"messages\": 3, \"x\": ["),
            ("\"input\": [", "\"input\": {}, \"x\": ["),
            ("\"output\": {", "\"output\": [], \"x\": {"),
            ("\"attachments\": {", "\"attachments\": [], \"x\": {"),
            ("\"message\": \"", "\"message\": 1, \"x\": \""),
        ] {
            let damaged = text.replace(from, to);
            if damaged == text {
                continue;
            }
            let format = match path.split('/').next() {
                Some("sharegpt") => Format::ShareGpt,
                Some("openhands") => Format::OpenHands,
                Some("inspect-ai") => Format::InspectAi,
                Some("letta") => Format::Letta,
                Some("gemini-cli") => Format::GeminiCli,
                _ => Format::Atif,
            };
            let options = ImportOptions {
                format: Some(format),
                ..lenient.clone()
            };
            let imported = import(damaged.as_bytes(), &options).expect("a lenient import");
            let report = &imported.report;
            let counted: u64 = [Fate::Understood, Fate::Verbatim, Fate::Skipped]
                .into_iter()
                .map(|fate| report.lines(fate) + report.messages(fate))
                .sum();
            assert!(counted > 0, "{path} {from}");
            holds_together(&imported);
        }
    }
}

#[test]
fn inspect_model_events_are_requests_that_come_back_equal() {
    let (imported, sessions) = fixture("inspect-ai/synthetic-log.json");
    assert_eq!(imported.format, Some(Format::InspectAi));
    assert_eq!(imported.report.lines(Fate::Skipped), 2);
    let names: Vec<_> = imported
        .sessions
        .iter()
        .map(|session| session.name.as_deref().expect("a name"))
        .collect();
    assert_eq!(names, ["s1_epoch_1", "s1_epoch_1/2", "2_epoch_1"]);
    let given = pactql::logs::session_names("sums", &imported.sessions);
    assert_eq!(
        given,
        ["sums/s1_epoch_1", "sums/s1_epoch_1/2", "sums/2_epoch_1"]
    );
    // A log of one sample is that session.
    let given = pactql::logs::session_names("sums", &imported.sessions[..2]);
    assert_eq!(given, ["sums", "sums/2"]);
    let bytes = std::fs::read("tests/cases/logs/inspect-ai/synthetic-log.json").expect("a file");
    let log: Value = serde_json::from_slice(&bytes).expect("JSON");
    let sample = &log["samples"][0];
    let events = sample["events"].as_array().expect("events");
    let models: Vec<&Value> = events
        .iter()
        .filter(|event| event["event"] == "model")
        .collect();
    for (session, events) in [
        (&sessions[0], vec![models[0], models[2]]),
        (&sessions[1], vec![models[1]]),
    ] {
        assert_eq!(session.committed.len(), events.len());
        for (snapshot, event) in session.committed.iter().zip(events) {
            let text = pactql::render::request(
                &pactql::render::Thread::request(snapshot),
                pactql::Provider::OpenAi,
            );
            let found: Value = serde_json::from_str(&text.expect("a request")).expect("JSON");
            assert_eq!(found, as_chat(event, &sample["attachments"]));
        }
    }
    let first = &documents(&sessions[0])[0];
    assert_eq!(first["usage"]["cached_tokens"], 32);
    assert_eq!(first["usage"]["stop_reason"], "tool_calls");
    assert_eq!(first["meta"]["source"], "request");
    let failed = &documents(&sessions[1])[0];
    assert_eq!(failed["meta"]["attempts"][0]["error"], "overloaded");
    assert_eq!(
        block(&sessions[0], "I add.")["data_record"],
        json!({"id": "m3", "source": "generate"})
    );
    let bad = documents(&sessions[0]);
    let mut found = Vec::new();
    blocks(&bad[1], &mut found);
    assert_eq!(
        found
            .iter()
            .filter(|block| block["data_is_error"] == true)
            .count(),
        1
    );
    assert_eq!(block(&sessions[2], "Hm.")["kind"], "thinking");
    assert_eq!(documents(&sessions[2])[0]["meta"]["source"], "transcript");
}

/// A `.eval` file is the same log, as an archive.
#[test]
fn inspect_archives_make_the_same_as_their_json() {
    let bytes = std::fs::read("tests/cases/logs/inspect-ai/synthetic-log.json").expect("a file");
    let mut log: Value = serde_json::from_slice(&bytes).expect("JSON");
    let samples = log["samples"].take();
    log.as_object_mut().expect("a log").remove("samples");
    let mut files = vec![
        ("_journal/start.json".to_owned(), json!({"eval": {}})),
        ("summaries.json".to_owned(), json!([])),
    ];
    for sample in samples.as_array().expect("samples") {
        let id = sample["id"].to_string().replace('"', "");
        files.push((format!("samples/{id}_epoch_1.json"), sample.clone()));
    }
    files.push(("header.json".to_owned(), log));
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, value) in files {
        archive.start_file(&name, options).expect("space");
        serde_json::to_writer(&mut archive, &value).expect("space");
    }
    let archive = archive.finish().expect("an archive").into_inner();
    let (whole, _) = fixture("inspect-ai/synthetic-log.json");
    let read = import(&archive, &ImportOptions::default()).expect("a good log");
    assert_eq!(read.format, Some(Format::InspectAi));
    assert_eq!(read.report.to_json(), whole.report.to_json());
    assert_eq!(read.sessions.len(), 3);
    for (one, other) in read.sessions.iter().zip(&whole.sessions) {
        assert_eq!(one.name, other.name);
        // But for the order of members in objects of tools, which this test does not keep.
        assert_eq!(one.recording.snapshots(), other.recording.snapshots());
    }
    let last = documents(&holds_together(&read)[0])
        .pop()
        .expect("a snapshot");
    assert_eq!(last["meta"]["log"]["eval"]["task"], "sums");
    for cut in [10, archive.len() / 2, archive.len() - 10] {
        let error = import(&archive[..cut], &ImportOptions::default()).expect_err("cut off");
        assert!(error.to_string().contains("ZIP archive"), "{error}");
    }
}

#[test]
fn inspect_events_have_ranges_of_a_pool_and_are_retried() {
    let sample = json!({"id": "s", "epoch": 2, "messages": [], "scores": {"match": {"value": "C"}},
        "message_pool": [{"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Guess."}, {"role": "assistant", "content": "7?"},
            {"role": "user", "content": "Again."}],
        "events": [
            {"event": "model", "model": "m", "input": [], "input_refs": [[0, 2]], "error": "overloaded",
                "tools": [], "config": {}, "output": {"choices": []}},
            {"event": "model", "model": "m", "input": [], "input_refs": [[0, 2]],
                "tools": [], "config": {}, "output": {"choices": [{"message": {"role": "assistant", "content": "7?"}}]}},
            {"event": "model", "model": "m", "input": [], "input_refs": [[0, 3], [3, 4], [3, 9], [2], "x"],
                "tools": [], "config": {}, "output": {"choices": [{"message": {"role": "assistant", "content": "8?"}}]}}]});
    let imported = import(sample.to_string().as_bytes(), &ImportOptions::default());
    let imported = imported.expect("a good log");
    let sessions = holds_together(&imported);
    assert_eq!(sessions.len(), 1);
    let documents = documents(&sessions[0]);
    // The call that failed is an attempt of the one after it, and no cycle.
    assert_eq!(documents.len(), 2);
    assert_eq!(documents[0]["meta"]["attempts"][0]["error"], "overloaded");
    assert_eq!(
        documents[0]["meta"]["record"]["scores"]["match"]["value"],
        "C"
    );
    let sent = pactql::render::request(
        &pactql::render::Thread::request(&sessions[0].committed[1]),
        pactql::Provider::OpenAi,
    );
    let sent: Value = serde_json::from_str(&sent.expect("a request")).expect("JSON");
    assert_eq!(sent["messages"], sample["message_pool"]);
}

/// The request to Chat Completions that a model event stands for.
fn as_chat(event: &Value, attachments: &Value) -> Value {
    let messages: Vec<Value> = event["input"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|message| {
            let mut content = message["content"].clone();
            if let Some(name) = content
                .as_str()
                .and_then(|text| text.strip_prefix("attachment://"))
            {
                content = attachments[name].clone();
            }
            let mut made = json!({"role": message["role"], "content": content});
            if message["role"] == "tool" {
                made["tool_call_id"] = message["tool_call_id"].clone();
                made["name"] = message["function"].clone();
            }
            if let Some(calls) = message["tool_calls"].as_array() {
                let call = |call: &Value| {
                    // The order of the arguments is that of the log.
                    let arguments = match call["arguments"].as_object().map(serde_json::Map::len) {
                        Some(0) => "{}",
                        _ => r#"{"y":3,"x":2}"#,
                    };
                    json!({"id": call["id"], "type": "function",
                        "function": {"name": call["function"], "arguments": arguments}})
                };
                made["tool_calls"] = calls.iter().map(call).collect();
            }
            made
        })
        .collect();
    let mut made = json!({"model": event["model"], "messages": messages});
    if !event["tool_choice"].is_null() {
        made["tool_choice"] = event["tool_choice"].clone();
    }
    if !event["config"]["temperature"].is_null() {
        made["temperature"] = event["config"]["temperature"].clone();
    }
    let tools = event["tools"].as_array().expect("tools");
    if !tools.is_empty() {
        let tool = |tool: &Value| json!({"type": "function", "function": tool});
        made["tools"] = tools.iter().map(tool).collect();
    }
    made
}

#[test]
fn a_letta_agent_has_all_its_messages_and_then_its_context() {
    let (imported, sessions) = fixture("letta/synthetic-agent.af");
    assert_eq!(imported.format, Some(Format::Letta));
    assert_eq!(imported.sessions[0].name.as_deref(), Some("agent-0"));
    let session = &sessions[0];
    assert_eq!(
        bytes_by_role(session),
        sum(&[
            ("system", &["You remember. <memory/>"]),
            ("user", &["I am Ada."]),
            (
                "assistant",
                &["A name to keep.", "{\"name\": \"Ada\"}", "Hello Ada."]
            ),
            ("tool", &["{\"status\": \"OK\"}"]),
        ])
    );
    let all = documents(session);
    assert_eq!(all.len(), 3);
    assert_eq!(all[0]["meta"]["request"]["model"], "m-mini");
    assert_eq!(all[2]["meta"]["compaction"], json!({"dropped": 2}));
    let mut context = Vec::new();
    blocks(&all[2], &mut context);
    let tools = |block: &&&Value| block["kind"] == "tool";
    let names: Vec<&Value> = context
        .iter()
        .filter(tools)
        .map(|block| &block["key"])
        .collect();
    assert_eq!(names, ["memory"]);
    assert!(!context.iter().any(|block| block["content"] == "I am Ada."));
    assert_eq!(
        block(session, "I am Ada.")["data_record"],
        json!({"id": "message-1"})
    );
}

#[test]
fn what_comes_just_before_a_compaction_is_in_a_snapshot() {
    let line = |kind: &str, payload: Value| {
        json!({"timestamp": "2026-03-02T09:00:00Z", "type": kind, "payload": payload}).to_string()
    };
    let call = json!({"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "a.rs, b.rs"});
    for history in [None, Some(json!([]))] {
        let mut compacted = json!({"message": "It listed files."});
        if let Some(history) = history {
            compacted["replacement_history"] = history;
        }
        let log = [
            line("response_item", call.clone()),
            line("response_item", output.clone()),
            line("compacted", compacted),
        ];
        let log = log.join("\n") + "\n";
        let imported = import(log.as_bytes(), &ImportOptions::default()).expect("a good log");
        let sessions = holds_together(&imported);
        assert_eq!(bytes_by_role(&sessions[0])["tool"], "a.rs, b.rs".len());
        let documents = documents(&sessions[0]);
        assert_eq!(documents.len(), 3);
        assert!(!documents[2].to_string().contains("a.rs, b.rs"));
    }
}

/// The contents of the blocks of a snapshot, results and tools too, each after its role.
fn outline(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    blocks(document, &mut found);
    let line = |block: &&Value| {
        let content = block["content"].as_str().unwrap_or("?");
        format!("{}: {content}", block["role"].as_str().unwrap_or("-"))
    };
    found.iter().map(line).collect()
}

#[test]
fn claude_code_keeps_a_tail_clears_results_and_says_what_only_the_log_has() {
    let (imported, sessions) = fixture("claude-code/synthetic-tail.jsonl");
    assert_eq!(sessions.len(), 1);
    let all = documents(&sessions[0]);
    // The summary, the kept tail, what follows; the next prompt's parent is in the tail.
    assert_eq!(
        outline(&all[5]),
        [
            "user: This session continues an earlier one: dates are parsed.",
            "user: Go on with the time of day.",
            "assistant: {\"command\":\"cargo test\"}",
            "tool: 2 passed; 0 failed",
            "user: fn time_of_day() {}",
            "assistant: The time of day is parsed.",
        ]
    );
    let ids = |at: usize, content: &str| {
        let mut found = Vec::new();
        blocks(&all[at], &mut found);
        let block = found.iter().find(|block| block["content"] == content);
        block.map(|block| (block["id"].clone(), block["kind"].clone()))
    };
    let tail = ids(3, "Go on with the time of day.");
    assert!(tail.is_some());
    assert_eq!(ids(4, "Go on with the time of day."), tail);
    // Microcompaction changes the node of the result.
    let result = ids(5, "2 passed; 0 failed");
    assert!(result.is_some());
    assert_eq!(ids(6, "[Old tool result content cleared]"), result);
    assert_eq!(all[6]["meta"]["compaction"]["tokensSaved"], 4000);
    let session = imported.sessions[0].session().expect("a session");
    for (time, how) in [
        ("@c5", "compaction: a summary replaces what was before"),
        ("@c7", "compaction: results of tools were cleared in place"),
    ] {
        let options = ReportOptions::new(Part::default().at(time));
        let report = ShowReport::new(&Engine::new(), &session, &options).expect("a snapshot");
        assert!(report.to_text(&options).contains(how), "{time}");
    }
    assert!(all[4]["usage"].is_null() && all[6]["usage"].is_null());
    let titles: Vec<&Value> = all
        .iter()
        .map(|document| &document["meta"]["title"])
        .collect();
    let first = "Mend the parser of dates.";
    assert_eq!(titles[..2], [first, first]);
    assert_eq!(titles[2..6], ["Dates are parsed"; 4]);
    // One that the user gave is before one that a model wrote later.
    assert_eq!(titles[6..], ["Dates and times"; 2]);
    for (name, value) in [
        ("agent", "claude-code"),
        ("project", "/srv/app"),
        ("model", "claude-example-1"),
    ] {
        assert_eq!(all[7]["meta"][name], value);
    }
    // Only what neither the result nor the call has.
    let edited = block(&sessions[0], "has been updated");
    assert_eq!(
        edited["data_tool_result"],
        json!({"originalFile": "fn parse() {\n    todo!(\"dates\")\n}\n// the end of the file\n"})
    );
    let tested = block(&sessions[0], "2 passed; 0 failed");
    assert_eq!(tested["data_tool_result"], Value::Null);
    let file = block(&sessions[0], "fn time_of_day() {}");
    assert_eq!(file["data_attachment"]["filename"], "/srv/app/times.rs");
    let report = imported.report.to_json();
    let skipped = &report["lines"]["skipped"];
    assert_eq!(skipped["queue-operation (repeats a message)"], 1);
    assert_eq!(skipped["queue-operation (a prompt that was withdrawn)"], 1);
}

#[test]
fn claude_code_says_which_response_it_was_and_a_title_at_the_end_is_in_the_working_state() {
    let path = "tests/cases/logs/claude-code/synthetic-tail.jsonl";
    let text = std::fs::read_to_string(path).expect("a fixture");
    let lines: Vec<&str> = text.lines().collect();
    let title = lines.iter().position(|line| line.contains("custom-title"));
    let log = lines[..=title.expect("a title")].join("\n") + "\n";
    let imported = import(log.as_bytes(), &ImportOptions::default()).expect("a good log");
    let sessions = holds_together(&imported);
    let all = documents(&sessions[0]);
    assert_eq!(all[0]["usage"]["response_id"], "msg_t1");
    assert_eq!(all.last().expect("one")["meta"]["title"], "Dates and times");
    // A log of which only the first lines are there is one of its format.
    for end in 1..4 {
        let log = lines[..end].join("\n") + "\n";
        let claims = pactql::logs::claims(log.as_bytes()).expect("a young log");
        assert_eq!(claims, [Format::ClaudeCode]);
    }
}

/// What is known of a session is known while a tool runs, too; and the summary of another conversation is not its title.
#[test]
fn a_log_that_waits_for_a_reply_says_whose_it_is() {
    let line = |id: u32, message: Value| {
        json!({
            "type": message["role"], "uuid": format!("u{id}"), "cwd": "/srv/app",
            "parentUuid": (id > 1).then(|| format!("u{}", id - 1)),
            "timestamp": format!("2026-01-01T10:00:0{id}.000Z"), "sessionId": "s", "message": message,
        })
        .to_string()
    };
    let summary = |leaf: &str, text: &str| {
        json!({"type": "summary", "leafUuid": leaf, "summary": text}).to_string()
    };
    let call = json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "t1", "content": "done"});
    let lines = [
        summary("elsewhere", "Another conversation"),
        line(1, json!({"role": "user", "content": "List the files"})),
        line(
            2,
            json!({"id": "r1", "role": "assistant", "model": "m", "content": [call]}),
        ),
        line(3, json!({"role": "user", "content": [result]})),
        summary("u3", "Files of the app"),
    ];
    for (count, title) in [(4, "List the files"), (5, "Files of the app")] {
        let log = lines[..count].join("\n") + "\n";
        let imported = import(log.as_bytes(), &ImportOptions::default()).expect("a good log");
        let waiting = documents(&holds_together(&imported)[0]);
        let waiting = waiting.last().expect("one");
        assert_eq!(waiting["working"], true);
        let meta = &waiting["meta"];
        assert_eq!(
            (&meta["agent"], &meta["project"]),
            (&"claude-code".into(), &"/srv/app".into())
        );
        assert_eq!(
            (&meta["source"], &meta["title"]),
            (&"transcript".into(), &title.into())
        );
        let report = imported.report.to_json();
        let skipped = &report["lines"]["skipped"];
        assert_eq!(skipped["summary (of a message that is not before it)"], 1);
    }
}

#[test]
fn a_response_of_several_lines_was_written_when_the_last_was() {
    let line = |second: u32, kind: &str, id: u32, message: Value| {
        json!({
            "type": kind, "uuid": format!("u{id}"), "parentUuid": id.checked_sub(1).filter(|id| *id > 0).map(|id| format!("u{id}")),
            "timestamp": format!("2026-01-01T10:{:02}:{:02}.000Z", second / 60, second % 60),
            "sessionId": "s", "message": message,
        })
        .to_string()
    };
    let said = |id: &str, part: Value| json!({"id": id, "role": "assistant", "model": "m", "content": [part]});
    let asked = |text: &str| json!({"role": "user", "content": text});
    let log = [
        line(0, "user", 1, asked("Hi")),
        line(
            5,
            "assistant",
            2,
            said("r1", json!({"type": "thinking", "thinking": "So"})),
        ),
        line(
            60,
            "assistant",
            3,
            said("r1", json!({"type": "text", "text": "Hello"})),
        ),
        line(65, "user", 4, asked("More")),
        line(
            69,
            "assistant",
            5,
            said("r2", json!({"type": "text", "text": "Here"})),
        ),
    ];
    let imported = import(
        (log.join("\n") + "\n").as_bytes(),
        &ImportOptions::default(),
    );
    let imported = imported.expect("a good log");
    let session = imported.sessions[0].session().expect("a session");
    let options = ReportOptions::new(Part::all());
    let report = StepReport::new(&Engine::new(), &session, &options).expect("a report");
    let times = report
        .steps
        .iter()
        .map(|step| (step.duration_ms, step.gap_ms));
    assert_eq!(
        times.collect::<Vec<_>>(),
        [(Some(60_000), None), (Some(4_000), Some(5_000))]
    );
}

#[test]
fn codex_events_that_are_the_only_copy_are_messages() {
    let (imported, sessions) = fixture("codex/synthetic-said-by-events.jsonl");
    let all = documents(&sessions[0]);
    assert_eq!(
        outline(&all[2]),
        [
            "system: You are Codex.",
            "system: {\"namespace\":\"app\",\"name\":\"open_page\",\"description\":\"Opens a page of the \
             application.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"url\":{\"type\":\"string\"}}}}",
            "user: <environment_context>\n  <cwd>/srv/web</cwd>\n</environment_context>",
            "user: Draw the chart of the week.",
            "user: ?",
            "assistant: **Looking at the data of the week first**",
            "assistant: {\"command\":[\"cat\",\"week.csv\"]}",
            "tool: Monday,12\nTuesday,15",
            "assistant: **Drawing the two bars of the chart**",
            "assistant: ",
            "assistant: The chart has two bars.",
            "user: Make it blue.",
            "assistant: ?",
            "assistant: It is blue now.",
        ]
    );
    // The usage of the first reply comes after the result of its call.
    assert_eq!(all[0]["usage"]["input_tokens"], 70);
    assert_eq!(all[1]["usage"]["input_tokens"], 90);
    assert_eq!(all[2]["meta"]["title"], "Draw the chart of the week.");
    assert_eq!(all[2]["meta"]["project"], "/srv/web");
    let said = block(&sessions[0], "Is the blue chart tested?");
    assert_eq!(said["data_item"]["author"], "/root");
    let report = imported.report.to_json();
    let lines = &report["lines"];
    assert_eq!(
        lines["skipped"]["ghost_snapshot (undo data, never sent)"],
        1
    );
    assert_eq!(lines["skipped"]["user_message (repeats an item)"], 1);
    assert_eq!(lines["understood"]["agent_reasoning"], 1);
    // An item that ends as raw JSON is not understood.
    assert_eq!(lines["kept_verbatim"]["response_item"], 1);
}

#[test]
fn codex_counts_each_call_once_and_that_for_a_summary_is_of_the_compaction() {
    let (_, sessions) = fixture("codex/synthetic-totals.jsonl");
    let all = documents(&sessions[0]);
    let used: Vec<&Value> = all
        .iter()
        .map(|document| &document["usage"]["input_tokens"])
        .collect();
    assert_eq!(
        used,
        [&json!(50), &json!(60), &json!(70), &Value::Null, &json!(20)]
    );
    assert_eq!(
        all[3]["meta"]["compaction"]["usage"],
        json!({"input_tokens": 80, "output_tokens": 8})
    );
}

#[test]
fn pi_settings_are_parameters_and_messages_of_extensions_are_sent() {
    let (imported, sessions) = fixture("pi/synthetic-settings.jsonl");
    let all = documents(&sessions[0]);
    let request = |at: usize| &all[at]["meta"]["request"];
    assert_eq!(request(0)["thinkingLevel"], "high");
    assert_eq!(request(1)["thinkingLevel"], "low");
    assert_eq!(request(1)["model"], "model-2");
    assert_eq!(all[0]["meta"]["title"], "Count the lines of all files.");
    assert_eq!(all[1]["meta"]["title"], "Counting lines");
    let todos = block(&sessions[0], "Two todos are left");
    assert_eq!(todos["role"], "user");
    assert_eq!(todos["data_other"]["customType"], "todos");
    let report = imported.report.to_json();
    assert_eq!(report["members_kept"]["details"], 1);
    assert_eq!(report["lines"]["understood"]["thinking_level_change"], 2);
    // The fork has a line of its own, and no line counts twice.
    assert_eq!(report["lines"]["understood"]["title"], 1);
}

#[test]
fn lines_that_are_skipped_cut_no_session_and_fork_none() {
    // Progress, lines of another type, those for people, a line that is not whole, and an agent's.
    let (imported, sessions) = fixture("claude-code/synthetic-skipped.jsonl");
    let names = |imported: &Imported| -> Vec<Option<String>> {
        let sessions = imported.sessions.iter();
        sessions.map(|session| session.name.clone()).collect()
    };
    let some = |name: &str| Some(name.to_owned());
    // The fork is where the line that is not whole was a prompt.
    assert_eq!(names(&imported), [None, some("~2"), some("/b7")]);
    let last = |session: &Session| outline(documents(session).last().expect("one"));
    assert_eq!(
        last(&sessions[0]),
        [
            "user: Run the tests of the parser.",
            "assistant: {\"command\":\"cargo test parser\"}",
            "tool: 7 passed; 1 failed",
            "assistant: One test fails.",
            "user: Mend it with an agent.",
            "assistant: {\"prompt\":\"Mend the test of empty lines.\"}",
            "tool: The test of empty lines passes.",
            "assistant: All tests pass now.",
            "assistant: No response was asked for.",
            "user: Say it in one word.",
            "assistant: Passing.",
        ]
    );
    // What the program said in the model's place is not a request, and not another model.
    let all = documents(&sessions[0]);
    assert_eq!(all.len(), 5);
    assert_eq!(
        all[4]["meta"]["request"],
        json!({"model": "claude-example-1"})
    );
    assert_eq!(all[4]["usage"]["input_tokens"], 12);
    // Only what has words is kept.
    assert_eq!(
        block(&sessions[0], "Run the tests")["data_record"],
        json!({"todos": [{"content": "See whether the tests pass", "status": "pending"}]})
    );
    assert_eq!(
        last(&sessions[1])[3..],
        [
            "assistant: One test fails.",
            "assistant: It is the test of empty lines.",
        ]
    );
    assert_eq!(
        last(&sessions[2]),
        [
            "user: Mend the test of empty lines.",
            "assistant: The test of empty lines passes.",
        ]
    );
    let (imported, sessions) = fixture("pi/synthetic-skipped.jsonl");
    assert_eq!(names(&imported), [None, some("~2")]);
    assert_eq!(
        last(&sessions[0])[2..],
        [
            "user: Stop; list those of April.",
            "assistant: Two notes of April."
        ]
    );
    // A reply without an id is on the path of the line before it.
    assert_eq!(
        last(&sessions[1])[2..],
        [
            "tool: may-01.md",
            "assistant: There is one note of May.",
            "user: And of June?",
            "assistant: None of June.",
        ]
    );
}

#[test]
fn swe_agent_steps_that_list_what_came_back_are_not_sent_it() {
    let (imported, sessions) = fixture("swe-agent/synthetic-states.traj");
    assert_eq!(imported.report.lines(Fate::Understood), 3);
    let all = documents(&sessions[0]);
    assert_eq!(
        outline(&all[0]),
        [
            "system: You mend code.",
            "user: Mend the sum.",
            "assistant: I look at the file."
        ]
    );
    assert_eq!(
        outline(&all[2])[3..],
        [
            "user: Old output omitted (2 lines)",
            "assistant: The sum starts at one.",
            "user: sum.py was changed.",
            "assistant: I submit it.",
        ]
    );
    // What came after the last reply was never sent.
    let last = outline(&all[3]);
    assert_eq!(last.last().map(String::as_str), Some("user: Submitted."));
    // What is kept is not all in `meta.record`.
    let report = imported.report.to_string();
    let kept = "members of records kept in meta: environment 1, info 1, replay_config 1";
    assert!(report.contains(kept), "{report}");
    assert_eq!(all[0]["meta"]["environment"], "main");
    let (_, sessions) = fixture("swe-agent/synthetic-run.traj");
    let all = documents(&sessions[0]);
    assert_eq!(outline(&all[0])[2], "assistant: I look.");
    assert_eq!(
        outline(&all[1]).last().map(String::as_str),
        Some("assistant: Done.")
    );
    assert_eq!(block(&sessions[0], "Done.")["data_reply"], 2);
}

#[test]
fn a_run_of_swe_agent_has_its_model_and_a_note_of_what_it_used() {
    let settings = json!({"agent": {"model": {"name": "model-1", "temperature": 0.0}}});
    let stats = json!({"instance_cost": 0.25, "tokens_sent": 12_345, "tokens_received": 67, "api_calls": 1});
    let none = json!({"instance_cost": 0, "tokens_sent": 0, "tokens_received": 0, "api_calls": 1});
    let ask = json!({"role": "user", "content": "Mend it."});
    let reply = json!({"role": "assistant", "content": "Mended."});
    for query in [json!([ask]), Value::Null] {
        let log = |settings: Value, stats: &Value| {
            let log = json!({"trajectory": [{"response": "Mended.", "query": query}], "history": [ask, reply],
                "info": {"model_stats": stats}, "replay_config": settings});
            import(log.to_string().as_bytes(), &ImportOptions::default()).expect("a good log")
        };
        for settings in [settings.clone(), json!(settings.to_string())] {
            let imported = log(settings, &stats);
            let all = documents(&holds_together(&imported)[0]);
            assert_eq!(all[0]["meta"]["model"], "model-1");
            assert_eq!(all[0]["meta"]["request"], json!({"model": "model-1"}));
            assert_eq!(all[0]["usage"], Value::Null);
            let said = "the run used, by its own account: 12,345 tokens sent, 67 received, $0.250000; \
                of each request the log does not say it";
            assert!(imported.report.notes().iter().any(|note| note == said));
        }
        for settings in [json!("{"), json!("7"), Value::Null, json!({"agent": []})] {
            let imported = log(settings, &none);
            let all = documents(&holds_together(&imported)[0]);
            assert_eq!(all[0]["meta"]["model"], Value::Null);
            let notes = imported.report.notes().iter();
            assert!({ notes }.all(|note| !note.contains("used")));
        }
    }
}

#[test]
fn a_title_is_the_first_text_of_a_person() {
    let title = |texts: &[&str]| {
        let messages: Vec<Value> = texts
            .iter()
            .map(|text| json!({"role": "user", "content": text}))
            .chain([json!({"role": "assistant", "content": "Yes."})])
            .collect();
        let log = json!(messages).to_string();
        let imported = import(log.as_bytes(), &ImportOptions::default()).expect("a good log");
        let session = holds_together(&imported).remove(0);
        documents(&session)[0]["meta"]["title"].clone()
    };
    let long = "word ".repeat(40);
    let cut = format!("{}…", "word ".repeat(16).trim_end());
    for (texts, expected) in [
        (vec!["Mend  the\nbuild."], json!("Mend the build.")),
        (vec!["/compact now", "Why?"], json!("Why?")),
        (vec!["/etc/hosts is empty"], json!("/etc/hosts is empty")),
        (
            vec!["<system-reminder>x</system-reminder>", "<div> is odd"],
            json!("<div> is odd"),
        ),
        (vec!["# AGENTS.md instructions for /a", "Go."], json!("Go.")),
        (vec![&*long], json!(cut)),
        (vec!["<command-name>/clear</command-name>"], Value::Null),
    ] {
        assert_eq!(title(&texts), expected);
    }
}

/// The role and kind of each block of a snapshot.
fn kinds(session: &Session, at: usize) -> Vec<String> {
    let blocks = session.committed[at].nodes();
    let blocks = blocks.filter(|node| node.id().starts_with("cb:"));
    let said = |node: pactql::internals::index::NodeRef<'_>| {
        format!(
            "{} {}",
            node.role().unwrap_or("-"),
            node.kind().unwrap_or("-")
        )
    };
    blocks.map(said).collect()
}

#[test]
fn a_gemini_cli_session_has_its_calls_usage_and_attempt() {
    let (imported, sessions) = fixture("gemini-cli/synthetic-session.json");
    assert_eq!(imported.format, Some(Format::GeminiCli));
    let session = &sessions[0];
    let lines = documents(session);
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["meta"]["source"], "transcript");
    assert_eq!(lines[0]["meta"]["title"], "Look for the release notes");
    assert_eq!(lines[0]["meta"]["agent"], "gemini-cli");
    assert_eq!(lines[0]["meta"]["model"], "gemini-example");
    // The API counts thoughts beside the reply, and cached tokens in the input.
    for (name, count) in [
        ("input_tokens", 120),
        ("cached_tokens", 100),
        ("output_tokens", 13),
        ("reasoning_tokens", 4),
    ] {
        assert_eq!(lines[0]["usage"][name], count, "{name}");
    }
    let attempts = &lines[1]["meta"]["attempts"];
    assert_eq!(
        attempts[0]["error"],
        "[API Error: The model is overloaded.]"
    );
    assert_eq!(attempts.as_array().map(Vec::len), Some(1));
    let last = [
        "user text",
        "assistant thinking",
        "assistant text",
        "assistant call",
        "assistant call",
        "tool result",
        "tool result",
        "assistant text",
    ];
    assert_eq!(kinds(session, 1), last);
    assert_eq!(block(session, "no such file")["data_is_error"], true);
    assert!(
        block(session, "CHANGES.md\\")
            .get("data_is_error")
            .is_none()
    );
}

#[test]
fn lines_of_gemini_cli_change_what_earlier_ones_said() {
    let (imported, sessions) = fixture("gemini-cli/synthetic-records.jsonl");
    let session = &sessions[0];
    let lines = documents(session);
    let meta = |at: usize| &lines[at]["meta"];
    assert_eq!(lines.len(), 7);
    // What was typed, before the log has a title.
    assert_eq!(meta(0)["title"], "Read @plan.md");
    assert_eq!(meta(6)["title"], "Plan the release");
    let rewound = [
        "user text",
        "user text",
        "user text",
        "assistant thinking",
        "assistant text",
        "assistant call",
        "tool result",
        "assistant text",
    ];
    assert_eq!(kinds(session, 1), rewound);
    assert_eq!(kinds(session, 2).len(), rewound.len() + 2);
    assert_eq!(meta(3)["rewritten"], "$rewindTo");
    assert_eq!(kinds(session, 3), rewound);
    assert!(meta(5)["compaction"].is_object());
    assert_eq!(
        kinds(session, 5),
        ["user summary", "assistant text", "assistant text"]
    );
    assert_eq!(kinds(session, 6)[3..], ["user text", "assistant text"]);
    // The reply that stayed is the node that it was.
    let id = |at: usize| {
        let says = |node: &pactql::internals::index::NodeRef<'_>| {
            node.field("content")
                .is_some_and(|text| text.canonical().contains("says Thursday"))
        };
        session.committed[at]
            .nodes()
            .find(says)
            .map(|node| node.id().to_owned())
    };
    assert!(id(4).is_some());
    assert_eq!(id(4), id(5));
    let report = imported.report.to_string();
    for said in [
        "functionResponse (repeats a result) 1",
        "warning (for people) 1",
        "$set.lastUpdated 4",
    ] {
        assert!(report.contains(said), "{said}: {report}");
    }
}

/// As the program itself reads its lines: the newest record of each id, in the order of the first.
#[test]
fn what_gemini_cli_sends_last_is_what_its_lines_say() {
    let user = |id: &str, text: &str| json!({"id": id, "timestamp": "2026-03-02T09:00:00Z", "type": "user", "content": text});
    let reply = |id: &str, text: &str| json!({"id": id, "timestamp": "2026-03-02T09:00:00Z", "type": "gemini", "content": text, "model": "m"});
    let header = json!({"sessionId": "s", "projectHash": "h"});
    let begin = [
        header,
        user("1", "a"),
        reply("2", "b"),
        user("3", "c"),
        reply("4", "d"),
    ];
    for (more, expected) in [
        (vec![], "a b c d"),
        (vec![json!({"$rewindTo": "3"})], "a b"),
        (vec![json!({"$rewindTo": "3"}), user("5", "e")], "a b e"),
        (vec![json!({"$rewindTo": "1"})], ""),
        // The program forgets everything where it does not find the record.
        (
            vec![json!({"$rewindTo": "9"}), user("5", "e"), reply("6", "f")],
            "e f",
        ),
        (vec![reply("4", "d and more")], "a b c d and more"),
        (vec![reply("2", "B")], "a B c d"),
        (
            vec![reply("2", "B"), reply("4", "D"), user("5", "e")],
            "a B c D e",
        ),
        (
            vec![json!({"$set": {"messages": [user("1", "a"), reply("2", "b")]}})],
            "a b",
        ),
        (
            vec![
                json!({"$set": {"messages": [user("7", "x"), reply("4", "d")]}}),
                reply("4", "D"),
            ],
            "x D",
        ),
        (
            vec![
                json!({"$set": {"messages": [user("7", "x"), reply("4", "d")]}}),
                json!({"$rewindTo": "4"}),
                user("8", "y"),
            ],
            "x y",
        ),
        (vec![json!({"$set": {"messages": []}}), user("8", "y")], "y"),
    ] {
        let log: String = begin
            .iter()
            .chain(&more)
            .map(|line| format!("{line}\n"))
            .collect();
        let imported = import(log.as_bytes(), &ImportOptions::default()).expect("a log");
        let session = &holds_together(&imported)[0];
        let texts: Vec<String> = session
            .current()
            .nodes()
            .filter(|node| node.id().starts_with("cb:"))
            .filter_map(|node| Some(node.field("content")?.text()?.to_owned()))
            .collect();
        assert_eq!(texts.join(" "), expected, "{log}");
    }
}

#[test]
fn a_copilot_cli_session_has_its_subagent_attempt_and_compaction() {
    let (imported, sessions) = fixture("copilot-cli/synthetic-events.jsonl");
    assert_eq!(imported.format, Some(Format::CopilotCli));
    let names: Vec<Option<&str>> = imported
        .sessions
        .iter()
        .map(|session| session.name.as_deref())
        .collect();
    assert_eq!(names, [None, Some("/agent-7")]);
    let session = &sessions[0];
    let lines = documents(session);
    let meta = |at: usize| &lines[at]["meta"];
    // With the last result before the compaction, and the prompt that only a hook has.
    assert_eq!((session.committed.len(), lines.len()), (5, 6));
    assert_eq!(meta(0)["title"], "Refresh the landing page.");
    assert_eq!(meta(0)["project"], "/srv/site");
    assert_eq!(
        meta(0)["request"],
        json!({"model": "model-example", "reasoning_effort": "high"})
    );
    assert_eq!(lines[0]["usage"]["output_tokens"], 20);
    let first = [
        "system text",
        "user text",
        "assistant thinking",
        "assistant text",
        "assistant call",
        "assistant call",
    ];
    assert_eq!(kinds(session, 0), first);
    assert!(block(session, "current_datetime")["data_record"]["content"].is_string());
    assert_eq!(meta(1)["attempts"][0]["error"]["statusCode"], 429);
    let task = block(session, "style sheet");
    assert_eq!(task["data_child_session"], "/agent-7");
    assert_eq!(
        documents(&sessions[1])[0]["meta"]["parent"],
        json!({"call_id": "t2", "session": ".."})
    );
    assert_eq!(block(session, "could not be read")["data_is_error"], true);
    assert_eq!(meta(3)["compaction"]["preCompactionTokens"], 1000);
    assert_eq!(kinds(session, 3), ["system text", "user summary"]);
    assert_eq!(block(session, "the footer")["role"], "user");
    let report = imported.report.to_string();
    for said in [
        "hook.start (repeats a message) 1",
        "hook.start 1",
        "assistant.reasoning (repeats a message) 1",
        "tool.execution_start (repeats a message) 1",
    ] {
        assert!(report.contains(said), "{said}: {report}");
    }
}

#[test]
fn a_cursor_transcript_has_its_calls_results_and_attempt() {
    let (imported, sessions) = fixture("cursor/synthetic-transcript.jsonl");
    assert_eq!(imported.format, Some(Format::Cursor));
    let session = &sessions[0];
    let lines = documents(session);
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["meta"]["title"], "Build the backend — Grüße.");
    assert_eq!(lines[0]["meta"]["model"], "model-example");
    let second = [
        "user text",
        "assistant thinking",
        "assistant text",
        "assistant call",
        "tool result",
        "assistant text",
        "assistant call",
    ];
    assert_eq!(kinds(session, 1), second);
    assert_eq!(block(session, "disk is full")["data_is_error"], true);
    assert_eq!(block(session, "du -sh")["data_call_name"], "Shell");
    assert_eq!(
        lines[2]["meta"]["attempts"][0]["error"],
        "The connection was lost."
    );
    assert_eq!(block(session, "another version")["data_verbatim"], "part");
}

#[test]
fn opencode_sessions_have_calls_results_usage_and_what_was_taken_back() {
    let (imported, sessions) = fixture("opencode/synthetic-export.json");
    assert_eq!(imported.format, Some(Format::Opencode));
    let all = documents(&sessions[0]);
    let meta = |at: usize| &all[at]["meta"];
    let usage = |at: usize| &all[at]["usage"];
    assert_eq!(meta(0)["agent"], "opencode");
    assert_eq!(meta(0)["project"], "/srv/site");
    assert_eq!(meta(0)["title"], "Notes and a picture");
    assert_eq!(meta(0)["request"]["model"], "model-1");
    assert_eq!(meta(0)["session"]["id"], "ses_synthetic1");
    // Cached tokens are beside the input, and reasoning beside the output, where that adds up to the total.
    for (name, count) in [
        ("input_tokens", json!(150)),
        ("cached_tokens", json!(40)),
        ("cache_write_tokens", json!(10)),
        ("output_tokens", json!(25)),
        ("reasoning_tokens", json!(5)),
        ("cost_usd", json!(0.012)),
        ("stop_reason", json!("tool-calls")),
        ("response_id", json!("msg_02")),
    ] {
        assert_eq!(usage(0)[name], count, "{name}");
    }
    assert_eq!(outline(&all[0])[0], "system: Answer in one sentence.");
    // What is said, and how each call ended.
    let of = |text: &str| block(&sessions[0], text);
    assert_eq!(of("Buy milk")["data_call_id"], "call_1");
    assert_eq!(of("The file is not there")["data_is_error"], true);
    assert_eq!(of("removing a.png")["data_is_error"], Value::Null);
    assert_eq!(
        of("removing a.png")["data_state"]["error"],
        "Tool execution aborted"
    );
    assert_eq!(of("The notes come first")["kind"], "thinking");
    assert_eq!(
        of("Look at the picture.")["data_child_session"],
        "/ses_synthetic2"
    );
    assert_eq!(of("example.org/weather")["data_state"]["status"], "running");
    let beside = &of("Read the notes and the picture.")["data_parts"];
    let kinds: Vec<&Value> = beside
        .as_array()
        .expect("a list")
        .iter()
        .map(|part| &part["type"])
        .collect();
    assert_eq!(kinds, ["text", "file", "agent"]);
    // Failed calls: one that was made again, one without an answer; one that broke off is dropped after it.
    assert_eq!(meta(1)["attempts"][0]["error"]["statusCode"], 529);
    assert_eq!(meta(2)["attempts"][0]["error"]["name"], "ProviderAuthError");
    let has = |at: usize, text: &str| outline(&all[at]).iter().any(|line| line.contains(text));
    assert!(has(2, "I would delete the") && !has(3, "I would delete the"));
    // Commands of the user are no calls of the model.
    assert_eq!(usage(2)["response_id"], "msg_08");
    assert!(has(2, "a.png notes.txt and nothing else"));
    // Results that were cleared, and a compaction that keeps a tail.
    assert!(
        has(4, "Buy milk") && !has(5, "Buy milk") && has(5, "[Old tool result content cleared]")
    );
    assert_eq!(
        meta(8)["compaction"],
        json!({"auto": true, "tail_start_id": "msg_10"})
    );
    assert_eq!(
        outline(&all[8])[1..],
        [
            "assistant: Goal: notes and picture. Done: both read.",
            "user: Go on, from the notes.",
            "assistant: The notes say milk.",
        ]
    );
    assert_eq!(usage(7)["output_tokens"], 30);
    // Two steps of one message are two calls.
    assert_eq!(
        (&usage(9)["output_tokens"], &usage(10)["output_tokens"]),
        (&json!(5), &json!(3))
    );
    assert!(has(9, "One more look") && has(10, "Bread, too"));
    // The last message was taken back.
    assert_eq!(meta(all.len() - 1)["revert"]["messageID"], "msg_16");
    assert!(!has(all.len() - 1, "And the weather?"));
    let report = imported.report.to_json();
    assert_eq!(report["parts"]["kept_verbatim"]["brand-new-part"], 1);
    assert_eq!(report["parts"]["skipped"]["patch (of the program)"], 1);
    // A subagent, and messages without a session around them, whose replies have the system prompt.
    let (child, sessions) = fixture("opencode/synthetic-child.json");
    let names = pactql::logs::session_names("s/ses_synthetic2", &child.sessions);
    assert_eq!(names, ["s/ses_synthetic1/ses_synthetic2"]);
    let meta = &documents(&sessions[0])[0]["meta"];
    assert_eq!(meta["parent"]["session"], "..");
    assert_eq!(meta["title"], "Look at the picture.");
    let (_, sessions) = fixture("opencode/synthetic-messages.json");
    assert_eq!(
        outline(&documents(&sessions[0])[0]),
        [
            "system: You are an agent.",
            "system: Be brief.",
            "user: Say hello.",
            "assistant: Hello."
        ]
    );
}

/// What is written in place is in the working state, until it is over.
#[test]
fn a_reply_of_opencode_is_one_when_it_is_over() {
    let zero = json!({"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}});
    let call = json!({"type": "tool", "callID": "c", "tool": "bash", "state": {"status": "pending", "input": {}, "raw": ""}});
    let finish = json!({"type": "step-finish", "reason": "stop", "cost": 0, "tokens": {"input": 3, "output": 1}});
    for (parts, completed, snapshots) in [
        (vec![json!({"type": "step-start"}), call.clone()], false, 0),
        (
            vec![json!({"type": "step-start"}), call.clone(), finish],
            false,
            1,
        ),
        (vec![json!({"type": "step-start"}), call.clone()], true, 1),
        // A command of the user.
        (vec![call], true, 0),
        (Vec::new(), false, 0),
    ] {
        let mut info = json!({"role": "assistant", "tokens": zero, "time": {"created": 1_772_442_001_000_i64}});
        if completed {
            info["time"]["completed"] = json!(1_772_442_002_000_i64);
        }
        let user = json!({"info": {"role": "user"}, "parts": [{"type": "text", "text": "Go."}]});
        let log = json!([user, {"info": info, "parts": parts}]).to_string();
        let imported = import(log.as_bytes(), &ImportOptions::default()).expect("a good log");
        holds_together(&imported);
        assert_eq!(
            imported.sessions[0].recording.snapshots(),
            snapshots,
            "{log}"
        );
    }
}

#[test]
fn the_kin_of_pi_have_names_of_their_own() {
    let header =
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-03-02T09:00:00Z","cwd":"/a"}"#;
    let message = r#"{"type":"message","id":"b","parentId":null,"timestamp":"2026-03-02T09:00:02Z","message":{"role":"user","content":"Go."}}"#;
    let reply = message
        .replace("\"b\"", "\"c\"")
        .replace("null", "\"b\"")
        .replace("user", "assistant");
    for (entry, agent) in [
        ("", "pi"),
        (
            r#"{"type":"session_init","id":"a","parentId":"c","timestamp":"2026-03-02T09:00:04Z"}"#,
            "omp",
        ),
        (
            r#"{"type":"message","timestamp":"2026-03-02T09:00:03Z","message":{"role":"assistant","content":[{"type":"text","text":"Due."}],"provider":"openclaw","model":"delivery-mirror"}}"#,
            "openclaw",
        ),
    ] {
        let log = format!("{header}\n{message}\n{reply}\n{entry}\n");
        let imported = import(log.as_bytes(), &ImportOptions::default()).expect("a good log");
        assert_eq!(imported.format, Some(Format::Pi), "{agent}");
        // An entry without a parent follows the one before.
        assert_eq!(imported.sessions.len(), 1, "{agent}");
        let all = documents(&holds_together(&imported)[0]);
        assert_eq!(all[0]["meta"]["agent"], agent);
    }
}

#[test]
fn a_hosted_tool_has_the_name_of_its_item() {
    let log = [
        r#"{"timestamp":"2026-03-02T09:00:00Z","type":"session_meta","payload":{"id":"s","timestamp":"2026-03-02T09:00:00Z","cwd":"/w","originator":"codex","cli_version":"0.1"}}"#,
        r#"{"timestamp":"2026-03-02T09:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Go."}]}}"#,
        r#"{"timestamp":"2026-03-02T09:00:02Z","type":"response_item","payload":{"type":"web_search_call","status":"completed"}}"#,
        r#"{"timestamp":"2026-03-02T09:00:03Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}"#,
    ];
    let imported = import(log.join("\n").as_bytes(), &ImportOptions::default());
    let all = documents(&holds_together(&imported.expect("a good log"))[0]);
    let text = Value::from(all).to_string();
    assert!(text.contains(r#""data_call_name":"web_search""#), "{text}");
}

#[test]
fn a_message_of_pi_has_its_own_time_where_its_entry_has_none() {
    let log = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-03-02T09:00:00Z","cwd":"/w"}"#,
        r#"{"type":"message","id":"b","parentId":null,"timestamp":"2026-03-02T09:00:02Z","message":{"role":"user","content":"Go."}}"#,
        r#"{"type":"message","id":"c","parentId":"b","message":{"role":"assistant","content":[{"type":"text","text":"Done."}],"timestamp":1772442007000}}"#,
    ];
    let imported = import(log.join("\n").as_bytes(), &ImportOptions::default());
    let all = documents(&holds_together(&imported.expect("a good log"))[0]);
    let text = Value::from(all).to_string();
    assert!(text.contains("2026-03-02T09:00:07.000000000Z"), "{text}");
}

/// The contents of the results that failed, in the order in which they came.
fn failed(log: &str) -> Vec<String> {
    let imported = import(log.as_bytes(), &ImportOptions::default()).expect("a good log");
    let all = documents(&holds_together(&imported)[0]);
    let mut found = Vec::new();
    all.iter().for_each(|document| blocks(document, &mut found));
    let mut failed: Vec<String> = Vec::new();
    for block in found {
        let text = block["content"].as_str().unwrap_or_default().to_owned();
        if block["data_is_error"] == true && !failed.contains(&text) {
            failed.push(text);
        }
    }
    failed
}

#[test]
fn a_result_of_codex_failed_where_codex_says_so() {
    let line = |kind: &str, payload: Value| {
        json!({"timestamp": "2026-03-02T09:00:00Z", "type": kind, "payload": payload}).to_string()
    };
    let end = |kind: &str, id: &str, member: &str, said: Value| {
        line(
            "event_msg",
            json!({"type": kind, "call_id": id, member: said}),
        )
    };
    let outputs = [
        (
            "a",
            json!(
                "Chunk ID: 1d\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nno ps\n"
            ),
            true,
        ),
        (
            "b",
            json!("Exit code: 127\nWall time: 0 seconds\nOutput:\nnot found"),
            true,
        ),
        (
            "c",
            json!(
                "{\"output\":\"denied\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":0.1}}"
            ),
            true,
        ),
        ("d", json!("Wall time: 1.5 seconds\naborted by user"), true),
        ("e", json!("the server said no"), true),
        ("f", json!("the patch did not fit"), true),
        ("g", json!("killed by a signal"), true),
        (
            "h",
            json!([{"type": "input_text", "text": "Exit code: 3\nWall time: 0 seconds\nOutput:\nin a list"}]),
            true,
        ),
        // What a command printed says nothing, and a code of Codex's own counts more than the end of a process.
        (
            "i",
            json!(
                "Exit code: 0\nWall time: 0 seconds\nOutput:\nExit code: 1\nProcess exited with code 1"
            ),
            false,
        ),
        ("j", json!("Exit code: 1\nOutput:\nno time"), false),
        ("k", json!("Process exited with code 1"), false),
        (
            "l",
            json!("Wall time: 1 seconds\nProcess running with session ID 7\nOutput:\n"),
            false,
        ),
        (
            "m",
            json!("{\"output\":\"fine\",\"metadata\":{\"exit_code\":0}}"),
            false,
        ),
        ("n", json!("the server said yes"), false),
    ];
    let mut log = vec![line("session_meta", json!({"id": "s", "cwd": "/w"}))];
    for (id, ..) in &outputs {
        let call =
            json!({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": id});
        log.push(line("response_item", call));
    }
    log.push(end(
        "mcp_tool_call_end",
        "e",
        "result",
        json!({"Ok": {"content": [], "isError": true}}),
    ));
    log.push(end(
        "mcp_tool_call_end",
        "n",
        "result",
        json!({"Ok": {"content": [], "isError": false}}),
    ));
    log.push(end("patch_apply_end", "f", "success", json!(false)));
    log.push(end("exec_command_end", "g", "exit_code", json!(-1)));
    log.push(end("exec_command_end", "l", "exit_code", json!(1)));
    let mut expected = Vec::new();
    let mut results = Vec::new();
    for (id, output, has_failed) in &outputs {
        let text = output[0]["text"].as_str().or(output.as_str());
        expected.extend(text.filter(|_| *has_failed).map(str::to_owned));
        results.push(json!({"type": "function_call_output", "call_id": id, "output": output}));
    }
    log.extend(
        results
            .iter()
            .map(|result| line("response_item", result.clone())),
    );
    let done = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]});
    log.push(line("response_item", done));
    assert_eq!(failed(&log.join("\n")), expected);
    // A history in the place of what was sent has the same results, so that they keep their ids.
    log.push(line(
        "compacted",
        json!({"message": "", "replacement_history": results}),
    ));
    let imported = import(log.join("\n").as_bytes(), &ImportOptions::default());
    let all = documents(&holds_together(&imported.expect("a good log"))[0]);
    let of = |document: &Value| {
        let mut found = Vec::new();
        blocks(document, &mut found);
        let results = found.into_iter().filter(|block| block["kind"] == "result");
        results.cloned().collect::<Vec<Value>>()
    };
    assert_eq!(of(&all[2])[0]["id"], of(&all[1])[0]["id"]);
    assert_eq!(
        of(&all[2])
            .iter()
            .filter(|block| block["data_is_error"] == true)
            .count(),
        8
    );
}

#[test]
fn a_command_failed_where_opencode_or_pi_has_its_exit_code() {
    let part = |id: &str, output: &str, exit: Value| {
        json!({"id": id, "messageID": "m", "type": "tool", "callID": id, "tool": "bash", "state": {
            "status": "completed", "input": {}, "output": output, "metadata": {"exit": exit}}})
    };
    let parts = [
        part("a", "no such file", json!(1)),
        part("b", "a.rs", json!(0)),
        part("c", "stopped", Value::Null),
    ];
    let log = json!({"info": {"id": "s", "directory": "/w", "version": "1"}, "messages": [
        {"info": {"id": "u", "role": "user"}, "parts": [{"id": "t", "type": "text", "text": "Go."}]},
        {"info": {"id": "m", "role": "assistant"}, "parts": parts}]});
    assert_eq!(failed(&log.to_string()), ["no such file"]);
    let run = |output: &str, code: Value, cancelled: bool| {
        json!({"type": "message", "timestamp": "2026-03-02T09:00:01Z", "message": {"role": "bashExecution",
            "command": "x", "output": output, "exitCode": code, "cancelled": cancelled}})
        .to_string()
    };
    let log = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-03-02T09:00:00Z","cwd":"/w"}"#.to_owned(),
        run("not found", json!(127), false),
        run("fine", json!(0), false),
        run("halted", Value::Null, true),
        r#"{"type":"message","timestamp":"2026-03-02T09:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":"Done."}]}}"#.to_owned(),
    ];
    assert_eq!(failed(&log.join("\n")), ["not found", "halted"]);
}

#[test]
fn a_command_that_a_user_of_pi_ran_is_shown_and_sent_with_its_output() {
    let log = [
        json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-03-02T09:00:00Z", "cwd": "/w"}),
        json!({"type": "message", "timestamp": "2026-03-02T09:00:01Z", "message": {"role": "bashExecution",
            "command": "touch seeds.txt", "output": "", "exitCode": 3, "cancelled": false}}),
        json!({"type": "message", "timestamp": "2026-03-02T09:00:02Z", "message": {"role": "user", "content": "Sow them."}}),
        json!({"type": "message", "timestamp": "2026-03-02T09:00:03Z", "message": {"role": "assistant",
            "content": [{"type": "text", "text": "Sown."}]}}),
    ];
    let log = log.map(|line| line.to_string()).join("\n");
    let imported = import(log.as_bytes(), &ImportOptions::default()).expect("a good log");
    let sessions = holds_together(&imported);
    assert_eq!(
        kinds(&sessions[0], 0),
        ["user text", "user result", "user text", "assistant text"]
    );
    let command = block(&sessions[0], "touch seeds.txt");
    assert_eq!(command["data_call_name"], "bash");
    let all = documents(&sessions[0]);
    assert_eq!(all[0]["meta"]["title"], "Sow them.");
    let mut found = Vec::new();
    blocks(&all[0], &mut found);
    assert_eq!(found[1]["data_is_error"], true);
    assert_eq!(
        found[1]["data_other"],
        json!({"cancelled": false, "exitCode": 3})
    );
    let session = imported.sessions[0].session().expect("a session");
    let options = ReportOptions::default();
    let shown = ShowReport::new(&Engine::new(), &session, &options).expect("a snapshot");
    assert!(shown.to_text(&options).contains("touch seeds.txt"));
    let sent = pactql::render::request(&sessions[0].committed[0], pactql::Provider::OpenAi);
    assert!(sent.expect("a request").contains("touch seeds.txt"));
    let report = imported.report.to_json();
    assert_eq!(report["members_kept"].get("command"), None);
}

#[test]
fn a_link_that_came_later_is_no_changed_block() {
    let line = |at: usize, kind: &str, message: Value, more: Value| {
        let mut line = json!({"type": kind, "uuid": at.to_string(), "sessionId": "s", "cwd": "/w", "message": message,
            "parentUuid": at.checked_sub(1).map(|at| at.to_string()), "timestamp": format!("2026-03-06T14:15:0{at}Z")});
        let more = more.as_object().expect("members").clone();
        line.as_object_mut().expect("an object").extend(more);
        line.to_string()
    };
    let said = |id: &str, part: Value| json!({"id": id, "role": "assistant", "model": "m", "content": [part]});
    let log = [
        line(
            0,
            "user",
            json!({"role": "user", "content": "Go."}),
            json!({}),
        ),
        line(
            1,
            "assistant",
            said(
                "r1",
                json!({"type": "tool_use", "id": "t", "name": "Task", "input": {}}),
            ),
            json!({}),
        ),
        line(
            2,
            "user",
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "Found."}]}),
            json!({"toolUseResult": {"agentId": "a1", "status": "completed"}}),
        ),
        line(
            3,
            "assistant",
            said("r2", json!({"type": "text", "text": "Done."})),
            json!({}),
        ),
    ];
    let imported = import(log.join("\n").as_bytes(), &ImportOptions::default());
    let session = imported.expect("a good log").sessions[0]
        .session()
        .expect("a session");
    let steps = |session: &pactql::Session, options: &ReportOptions| {
        let report = StepReport::new(&Engine::new(), session, options).expect("a report");
        let changed = report.steps.iter().map(|step| step.changed);
        changed.collect::<Vec<_>>()
    };
    let log = Engine::new().log(&session, ".cb").expect("a log");
    assert_eq!(log.snapshots[0].changed, 1, "the link is in the history");
    assert_eq!(steps(&session, &ReportOptions::new(Part::all())), [0, 0]);
    // A text that changed counts.
    let ask = |text: &str| json!({"id": "a", "nodeType": "cb", "role": "user", "content": text});
    let lines = [(1, ask("How many?")), (2, ask("How many now?"))].map(|(cycle, node)| {
        let head = json!({"id": "ah", "nodeType": "^ah", "children": [node]});
        json!({"cycle": cycle, "root": {"id": "root", "children": [head]}}).to_string()
    });
    let session = pactql::Session::from_slice(lines.join("\n").as_bytes()).expect("a session");
    assert_eq!(steps(&session, &ReportOptions::new(Part::all())), [0, 1]);
}
