//! Logs that go on after others: chains of responses, forks, lines that are there twice.

use super::{holds_together, imported};
use pactql::Provider;
use pactql::logs::{Fate, MessageLocation};
use pactql::render::Thread;
use serde_json::{Value, json};

fn lines(records: &[Value]) -> Vec<u8> {
    let lines: Vec<String> = records.iter().map(|record| format!("{record}\n")).collect();
    lines.concat().into_bytes()
}

fn item(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" {
        "output_text"
    } else {
        "input_text"
    };
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

fn response(id: &str, text: &str) -> Value {
    json!({"object": "response", "id": id, "model": "m", "status": "completed",
        "output": [item("assistant", text)]})
}

#[test]
fn a_request_that_names_a_response_has_what_came_before_it() {
    let sent = [
        json!({"model": "m", "instructions": "Be brief.", "input": [item("developer", "Be kind."), item("user", "a")]}),
        json!({"model": "m", "instructions": "Be long.", "input": "b", "previous_response_id": "r1"}),
        json!({"model": "m", "input": [item("user", "c")], "previous_response_id": "r2"}),
        // Another way on from the first response.
        json!({"model": "m", "input": "d", "previous_response_id": "r1"}),
        json!({"model": "m", "input": "e", "previous_response_id": "unknown"}),
    ];
    let mut records = Vec::new();
    for (at, sent) in sent.iter().enumerate() {
        records.push(sent.clone());
        records.push(response(
            &format!("r{}", at + 1),
            &format!("reply {}", at + 1),
        ));
    }
    let imported = imported(&lines(&records), MessageLocation::Usual);
    let sessions = holds_together(&imported);
    assert_eq!(sessions.len(), 2);
    let render = |snapshot: &std::sync::Arc<pactql::Snapshot>| {
        let text = pactql::render::request(&Thread::request(snapshot), Provider::OpenAiResponses);
        serde_json::from_str::<Value>(&text.expect("a request")).expect("JSON")
    };
    let found: Vec<Value> = sessions
        .iter()
        .flat_map(|session| session.committed.iter().map(render).collect::<Vec<_>>())
        .collect();
    assert_eq!(found, sent);
    // What the model saw.
    let texts = |at: usize| -> Vec<String> {
        let blocks = sessions[0].committed[at].nodes();
        let texts = blocks.filter_map(|node| node.field("content"));
        texts
            .map(|text| text.canonical().replace('"', ""))
            .collect()
    };
    assert_eq!(texts(0), ["Be brief.", "Be kind.", "a", "reply 1"]);
    assert_eq!(
        texts(1),
        ["Be long.", "Be kind.", "a", "reply 1", "b", "reply 2"]
    );
    assert_eq!(
        texts(2),
        ["Be kind.", "a", "reply 1", "b", "reply 2", "c", "reply 3"]
    );
    assert_eq!(texts(3), ["Be kind.", "a", "reply 1", "d", "reply 4"]);
    let report = imported.report.to_string();
    assert!(
        report.contains("a response that is not in the log"),
        "{report}"
    );
}

#[test]
fn a_fork_of_codex_says_the_system_prompt_once_and_where_it_is_from() {
    let text = std::fs::read_to_string("tests/cases/logs/codex/synthetic-rollout.jsonl")
        .expect("a fixture");
    let meta = |more: &Value| {
        let mut payload = json!({"id": "fork", "cwd": "/srv/app", "base_instructions": {"text": "You are Codex."}});
        for (name, value) in more.as_object().into_iter().flatten() {
            payload[name] = value.clone();
        }
        json!({"timestamp": "2026-03-02T10:00:00Z", "type": "session_meta", "payload": payload})
    };
    let whole = imported(text.as_bytes(), MessageLocation::Usual);
    let system = |snapshot: &pactql::Snapshot| {
        let blocks = snapshot.nodes();
        blocks.filter(|node| node.role() == Some("system")).count()
    };
    for (more, parent) in [
        (
            json!({"forked_from_id": "0199-1"}),
            json!({"forked": true, "session_id": "0199-1"}),
        ),
        (
            json!({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "0199-1", "depth": 1}}}}),
            json!({"session_id": "0199-1"}),
        ),
    ] {
        let fork = format!("{}\n{text}", meta(&more));
        let imported = imported(fork.as_bytes(), MessageLocation::Usual);
        assert_eq!(
            imported.sessions[0].recording.snapshots(),
            whole.sessions[0].recording.snapshots()
        );
        let session = holds_together(&imported).remove(0);
        assert_eq!(system(&session.committed[0]), 1);
        let first: Value =
            serde_json::from_str(session.export(true).lines().next().expect("a line"))
                .expect("JSON");
        assert_eq!(first["meta"]["parent"], parent);
    }
}

#[test]
fn a_line_that_is_there_twice_cuts_no_branch() {
    let line = |id: &str, parent: Option<&str>, role: &str, text: &str| {
        let content = match role {
            "assistant" => json!([{"type": "text", "text": text}]),
            _ => json!(text),
        };
        json!({"type": role, "uuid": id, "parentUuid": parent, "sessionId": "s", "isSidechain": false,
            "timestamp": "2026-03-02T09:00:00Z", "message": {"role": role, "id": id, "content": content}})
    };
    let first = [
        line("1", None, "user", "a"),
        line("2", Some("1"), "assistant", "b"),
        line("3", Some("2"), "user", "c"),
        line("4", Some("3"), "assistant", "d"),
    ];
    let plain = imported(&lines(&first), MessageLocation::Usual);
    // A session that is resumed repeats its lines, and goes on.
    for repeated in [0..2, 1..3, 0..4] {
        let mut log = first.to_vec();
        log.extend_from_slice(&first[repeated.clone()]);
        let imported = imported(&lines(&log), MessageLocation::Usual);
        assert_eq!(imported.sessions.len(), 1, "{repeated:?}");
        let (found, wanted) = (
            super::written(&imported, 0, true),
            super::written(&plain, 0, true),
        );
        assert_eq!(found, wanted, "{repeated:?}");
        assert_eq!(imported.report.lines(Fate::Skipped), repeated.len() as u64);
    }
    // An id that is given again to another line: children of the first stay with it.
    let mut log = first.to_vec();
    log.push(line("2", Some("1"), "assistant", "other"));
    log.push(line("5", Some("4"), "user", "e"));
    log.push(line("6", Some("5"), "assistant", "f"));
    let imported = imported(&lines(&log), MessageLocation::Usual);
    let names: Vec<_> = imported
        .sessions
        .iter()
        .map(|session| session.name.as_deref())
        .collect();
    assert_eq!(names, [None, Some("~2")]);
    let sessions = holds_together(&imported);
    assert_eq!(
        (sessions[0].committed.len(), sessions[1].committed.len()),
        (3, 1)
    );
}
