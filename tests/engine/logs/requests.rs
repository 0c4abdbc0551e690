//! Recorded requests to Chat Completions: sessions, replies, attempts, tools and parameters.

use super::{Session, holds_together, imported, rendered};
use pactql::Provider;
use pactql::logs::MessageLocation;
use pactql::render::Thread;
use serde_json::{Value, json};

fn lines(records: &[Value]) -> Vec<u8> {
    let lines: Vec<String> = records.iter().map(|record| format!("{record}\n")).collect();
    lines.concat().into_bytes()
}

/// What was sent in the cycle of each snapshot, in an API's form.
fn requests(session: &Session, provider: Provider) -> Vec<Value> {
    let snapshots = session.committed.iter();
    let sent =
        snapshots.map(|snapshot| pactql::render::request(&Thread::request(snapshot), provider));
    sent.map(|sent| serde_json::from_str(&sent.expect("a request")).expect("JSON"))
        .collect()
}

fn tool(name: &str, description: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": description,
        "parameters": {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "number"}}}}})
}

/// A run whose oldest message is dropped, another rewritten, and a tool added between two others.
fn run() -> (Vec<Value>, Vec<Value>) {
    let system = json!({"role": "system", "content": "Be brief."});
    let user = json!({"role": "user", "content": "List the files."});
    let reply = json!({"role": "assistant", "content": null, "refusal": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]});
    let echo = json!({"role": "assistant", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]});
    let listing = json!({"role": "tool", "tool_call_id": "c1", "content": "a.rs b.rs"});
    let elided = json!({"role": "tool", "tool_call_id": "c1", "content": "(elided)"});
    let last = json!({"role": "assistant", "content": "Two files."});
    let more = json!({"role": "user", "content": "Thanks."});
    let requests = vec![
        json!({"model": "m", "temperature": 0.5, "messages": [system, user],
            "tools": [tool("ls", "List"), tool("rm", "Remove")]}),
        json!({"model": "m", "messages": [system, user, echo, listing],
            "tools": [tool("ls", "List"), tool("cat", "Show"), tool("rm", "Remove")]}),
        json!({"model": "m", "messages": [system, echo, elided, last, more], "stream": true,
            "tools": [tool("cat", "Show"), tool("ls", "List them")]}),
    ];
    let answer = |message: &Value| {
        json!({"id": "r", "object": "chat.completion", "created": 1_700_000_000, "model": "m-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 16}}})
    };
    let responses = vec![answer(&reply), answer(&last), answer(&more)];
    (requests, responses)
}

#[test]
fn each_request_comes_back_equal_and_dropped_messages_rename_none() {
    let (sent, responses) = run();
    let pairs = sent.iter().zip(&responses);
    let together: Vec<Value> = pairs
        .clone()
        .map(|(request, response)| {
            json!({"request": request, "response": {"status": 200, "body": response},
                "headers": {"authorization": "Bearer s3cret"}})
        })
        .collect();
    let in_turn: Vec<Value> = pairs
        .flat_map(|(request, response)| [request.clone(), response.clone()])
        .collect();
    for log in [lines(&together), lines(&in_turn)] {
        let imported = imported(&log, MessageLocation::Usual);
        assert_eq!(imported.sessions.len(), 1);
        let session = holds_together(&imported).remove(0);
        assert_eq!(requests(&session, Provider::OpenAi), sent);
        assert!(!session.export(true).contains("s3cret"));
        let ids = |at: usize| -> Vec<String> {
            let nodes = session.committed[at]
                .nodes()
                .map(|node| node.id().to_owned());
            nodes.filter(|id| id.starts_with("cb:")).collect()
        };
        assert_eq!(ids(0).join(" "), "cb:1-1 cb:tool-1 cb:tool-2 cb:2-1 cb:3-1");
        // The reply of the request before, in the client's spelling, is the node it was.
        assert_eq!(
            ids(1).join(" "),
            "cb:1-1 cb:tool-1 cb:tool-3 cb:tool-2 cb:2-1 cb:3-1 cb:4-1 cb:5-1"
        );
        assert_eq!(
            ids(2).join(" "),
            "cb:1-1 cb:tool-3 cb:tool-1 cb:3-1 cb:4-1 cb:5-1 cb:6-1 cb:7-1"
        );
        let whole: Value =
            serde_json::from_str(session.export(true).lines().next().expect("a line"))
                .expect("JSON");
        assert_eq!(whole["meta"]["source"], "request");
        assert_eq!(
            whole["meta"]["request"],
            json!({"model": "m", "temperature": 0.5})
        );
        assert_eq!(whole["usage"]["cached_tokens"], 16);
        assert_eq!(whole["usage"]["input_tokens"], 20);
        assert_eq!(whole["usage"]["stop_reason"], "stop");
    }
}

#[test]
fn a_call_that_failed_is_an_attempt_of_the_cycle_that_made_it_again() {
    let (sent, responses) = run();
    let failed = json!({"error": {"message": "overloaded"}});
    let log = lines(&[
        sent[0].clone(),
        failed.clone(),
        sent[0].clone(),
        responses[0].clone(),
        sent[1].clone(),
        failed,
    ]);
    let imported = imported(&log, MessageLocation::Usual);
    let session = holds_together(&imported).remove(0);
    assert_eq!(session.committed.len(), 2);
    assert_eq!(requests(&session, Provider::OpenAi), sent[..2]);
    for line in session.export(true).lines() {
        let whole: Value = serde_json::from_str(line).expect("JSON");
        let attempts = &whole["meta"]["attempts"];
        assert_eq!(
            attempts,
            &json!([{"error": {"message": "overloaded"}, "status": "error"}])
        );
    }
}

#[test]
fn requests_that_begin_otherwise_are_another_session() {
    let (sent, _) = run();
    let mut other = sent[0].clone();
    other["messages"][1]["content"] = json!("Something else.");
    let log = lines(&[
        sent[0].clone(),
        other.clone(),
        sent[1].clone(),
        sent[0].clone(),
    ]);
    let imported = imported(&log, MessageLocation::Usual);
    let cycles: Vec<usize> = holds_together(&imported)
        .iter()
        .map(|session| session.committed.len())
        .collect();
    // The last one starts again from the beginning.
    assert_eq!(cycles, [2, 1, 1]);
    let named: Vec<Value> = [&sent[0], &other]
        .iter()
        .map(|request| json!({"session_id": "s", "request": request}))
        .collect();
    let imported = super::imported(&lines(&named), MessageLocation::Usual);
    assert_eq!(imported.sessions.len(), 1);
    assert_eq!(imported.sessions[0].name.as_deref(), Some("s"));
}

#[test]
fn a_torn_last_line_waits_and_lists_deeper_down_are_found() {
    let torn = b"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n{\"role\":";
    let imported = imported(torn, MessageLocation::Usual);
    assert!(imported.report.to_string().contains("line 3 is not whole"));
    assert_eq!(holds_together(&imported)[0].committed.len(), 1);
    let nested = json!([{"traj": [{"role": "user", "content": "a"}]}, {"traj": []}]).to_string();
    let imported = super::imported(nested.as_bytes(), MessageLocation::Usual);
    assert_eq!(imported.sessions.len(), 2);
    let report = imported.report.to_string();
    assert!(
        report.contains("found lists of messages at /*/traj (2)"),
        "{report}"
    );
}

#[test]
fn a_log_of_which_less_than_half_is_understood_is_refused() {
    let log = b"{\"role\":\"user\",\"content\":\"a\"}\n{}\n{}\n";
    let mut options = pactql::logs::ImportOptions::default();
    let error = pactql::logs::import(log, &options).expect_err("mostly unknown");
    assert!(error.to_string().contains("1 of 3"), "{error}");
    options.lenient = true;
    let imported = pactql::logs::import(log, &options).expect("lenient");
    let session = holds_together(&imported).remove(0);
    assert!(rendered(session.current(), Provider::OpenAi).contains("{}"));
}
