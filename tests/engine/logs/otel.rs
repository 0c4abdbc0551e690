//! OpenTelemetry: each chat span is a request, which comes back in the form of Chat Completions.

use super::{Session, holds_together};
use pactql::Provider;
use pactql::internals::json::JsonValue;
use pactql::logs::{Fate, Format, ImportOptions, Imported, import};
use pactql::render::Thread;
use serde_json::{Value, json};

fn fixture(name: &str) -> (Imported, Vec<Session>) {
    let bytes = std::fs::read(format!("tests/cases/logs/otel/{name}")).expect("a fixture");
    let imported = import(&bytes, &ImportOptions::default()).expect("a good log");
    assert_eq!(imported.format, Some(Format::OpenTelemetry));
    let sessions = holds_together(&imported);
    (imported, sessions)
}

fn names(imported: &Imported) -> Vec<&str> {
    let sessions = imported.sessions.iter();
    sessions
        .map(|session| session.name.as_deref().unwrap_or(""))
        .collect()
}

fn sent(session: &Session) -> Vec<Value> {
    let snapshots = session.committed.iter();
    let sent = snapshots
        .map(|snapshot| pactql::render::request(&Thread::request(snapshot), Provider::OpenAi));
    sent.map(|sent| serde_json::from_str(&sent.expect("a request")).expect("JSON"))
        .collect()
}

fn documents(session: &Session) -> Vec<Value> {
    let lines = session.export(true);
    let parse = |line| serde_json::from_str(line).expect("JSON");
    lines.lines().map(parse).collect()
}

/// The text of the blocks of a reply, by cycle.
fn replies(session: &Session) -> Vec<String> {
    let of = |(at, snapshot): (usize, &std::sync::Arc<pactql::Snapshot>)| {
        let cycle = (at + 1).to_string();
        let blocks = snapshot.nodes();
        let blocks =
            blocks.filter(|node| node.field("data_reply") == Some(JsonValue::Number(&cycle)));
        let texts = blocks.map(|node| {
            node.field("content")
                .map(JsonValue::canonical)
                .unwrap_or_default()
        });
        texts.collect::<Vec<_>>().join(" ")
    };
    session.committed.iter().enumerate().map(of).collect()
}

fn function(name: &str, description: &str, properties: &Value) -> Value {
    json!({"type": "function", "function": {"name": name, "description": description,
        "parameters": {"type": "object", "properties": properties}}})
}

#[test]
fn spans_with_attributes_are_requests_in_the_order_they_began() {
    let (imported, sessions) = fixture("synthetic-attributes.json");
    assert_eq!(names(&imported), ["conv-1", "conv-1/checker"]);
    let text = |text: &str| json!({"type": "text", "text": text});
    let system = json!({"role": "system", "content": "You plan trips."});
    let user = json!({"role": "user", "content": "Trains to Graz?"});
    let reply = json!({"role": "assistant", "content": [text("I need the table."), text("I look.")],
        "tool_calls": [
            {"type": "function", "id": "call_1",
                "function": {"name": "trains", "arguments": "{\"to\":\"Graz\",\"from\":\"Wien\"}"}},
            {"type": "function", "id": "call_2",
                "function": {"name": "weather", "arguments": "{\"city\": \"Graz\"}"}}]});
    let results = [
        json!({"role": "tool", "tool_call_id": "call_1", "content": "{\"trains\":[\"07:58\",1]}"}),
        json!({"role": "tool", "tool_call_id": "call_2", "content": "rain"}),
    ];
    let last = json!({"role": "assistant", "content": "07:58, and it rains."});
    let tools = [
        function(
            "trains",
            "Trains of a day",
            &json!({"to": {"type": "string"}, "from": {"type": "string"}}),
        ),
        function(
            "weather",
            "Weather of a city",
            &json!({"city": {"type": "string"}}),
        ),
    ];
    let picture = json!({"role": "user", "content": [text("And this one?"),
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "file", "modality": "video", "file_id": "f1"}]});
    let [result_1, result_2] = &results;
    let request = |messages: Value| {
        json!({"model": "gpt-example", "temperature": 0.5, "n": 1, "stop": ["END"],
            "messages": messages, "tools": tools})
    };
    assert_eq!(
        sent(&sessions[0]),
        [
            request(json!([system, user])),
            request(json!([system, user, reply, result_1, result_2])),
            request(json!([
                system, user, reply, result_1, result_2, last, picture
            ])),
        ]
    );
    assert_eq!(
        replies(&sessions[0])[1..],
        ["\"07:58, and it rains.\"", "\"A tram.\""]
    );
    let documents = documents(&sessions[0]);
    let first = &documents[0];
    assert_eq!(first["meta"]["source"], "request");
    assert_eq!(first["meta"]["record"]["server.address"], "api.example.org");
    assert_eq!(first["meta"]["trace"]["span_id"], "aa01");
    assert_eq!(
        first["usage"],
        json!({"input_tokens": 50, "cached_tokens": 16, "output_tokens": 20, "latency_ms": 2000,
            "model": "gpt-example-1", "response_id": "resp_1", "stop_reason": "tool_calls"})
    );
    // The span that failed is an attempt of the one that made the request again.
    assert_eq!(
        documents[1]["meta"]["attempts"],
        json!([{"error": {"message": "too many requests", "type": "429"}, "status": "error"}])
    );
    // The reply of a span and its echo in the next are one message.
    let ids = |at: usize| -> Vec<String> {
        let nodes = sessions[0].committed[at].nodes();
        let ids = nodes.map(|node| node.id().to_owned());
        ids.filter(|id| id.starts_with("cb:") && !id.contains("tool"))
            .collect()
    };
    assert!(ids(1).starts_with(&ids(0)), "{:?}", ids(1));
    assert_eq!(replies(&sessions[1]), ["\"Yes.\""]);
    assert_eq!(documents.len(), 3);
    let report = &imported.report;
    assert_eq!(report.lines(Fate::Understood), 5);
    assert_eq!(report.lines(Fate::Skipped), 4);
    let shown = report.to_string();
    assert!(shown.contains("another choice 1"), "{shown}");
    assert!(
        shown.contains("span invoke_agent (not a call of a model) 2"),
        "{shown}"
    );
}

#[test]
fn events_of_spans_and_log_records_are_requests() {
    let (imported, sessions) = fixture("synthetic-events.jsonl");
    let traces = [
        "7b8efff798038103d269b633813fc60e",
        "8b8efff798038103d269b633813fc60f",
    ];
    assert_eq!(names(&imported), traces);
    let system = json!({"role": "system", "content": "Add."});
    let user = json!({"role": "user", "content": "1 and 2?"});
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_9",
        "type": "function", "function": {"name": "add", "arguments": "{\"a\":1,\"b\":2}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "call_9", "content": "3"});
    let request =
        |messages: Value| json!({"model": "gpt-example", "max_tokens": 64, "messages": messages});
    assert_eq!(
        sent(&sessions[0]),
        [
            request(json!([system, user])),
            request(json!([system, user, call, result])),
        ]
    );
    assert_eq!(replies(&sessions[0])[1], "\"3.\"");
    assert_eq!(documents(&sessions[0])[1]["usage"]["stop_reason"], "stop");
    let kind = json!({"role": "system", "content": "Be kind."});
    let hello = json!({"role": "user", "content": "Hello"});
    let found = sent(&sessions[1]);
    assert_eq!(found[0], request(json!([kind, hello])));
    assert_eq!(
        found[1],
        json!({"model": "gpt-example", "messages": [kind, hello,
            {"role": "assistant", "content": "Hi!"}, {"role": "user", "content": "Bye"}]})
    );
    assert_eq!(replies(&sessions[1]), ["\"Hi!\"", "\"Bye!\""]);
}

#[test]
fn attributes_of_openinference_are_requests() {
    let (imported, sessions) = fixture("synthetic-openinference.jsonl");
    assert_eq!(names(&imported), ["oi-1", "oi-2"]);
    let messages = json!([
        {"role": "system", "content": "Add."},
        {"role": "user", "content": [{"type": "text", "text": "What is this sum?"},
            {"type": "image_url", "image_url": {"url": "https://example.org/sum.png"}}]},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "call_5", "type": "function",
            "function": {"name": "add", "arguments": "{\"a\": 1, \"b\": 4}"}}]},
        {"role": "tool", "tool_call_id": "call_5", "content": "5"},
    ]);
    let tool = function(
        "add",
        "Adds",
        &json!({"b": {"type": "number"}, "a": {"type": "number"}}),
    );
    let request = |messages: &[Value]| {
        json!({"model": "gpt-example", "temperature": 0.1, "seed": 7, "messages": messages,
            "tools": [tool]})
    };
    let messages = messages.as_array().expect("a list");
    assert_eq!(
        sent(&sessions[0]),
        [request(&messages[..2]), request(messages)]
    );
    let usage = &documents(&sessions[0])[0]["usage"];
    assert_eq!(usage["input_tokens"], 30);
    assert_eq!(usage["cached_tokens"], 8);
    // The whole of an input says more than the messages, here; that of an output does not.
    let report = imported.report.to_json();
    assert_eq!(report["record_members_kept"]["input.value"], 1);
    let repeated = &report["record_members_skipped"];
    assert_eq!(repeated["output.value (repeats messages)"], 1);
    let record = &documents(&sessions[0])[1]["meta"]["record"]["input.value"];
    assert!(record.to_string().contains("from the page of sums"));
    // Messages come in the order of their numbers.
    assert_eq!(
        sent(&sessions[1])[0]["messages"],
        json!([{"role": "user", "content": "Hello 🙂"}, {"role": "user", "content": "second"},
            {"role": "user", "content": "third"}])
    );
}

#[test]
fn spans_of_openllmetry_are_requests() {
    let (imported, sessions) = fixture("synthetic-openllmetry.json");
    let report = imported.report.to_string();
    assert!(report.contains("understood 2 (chat 2)"), "{report}");
    assert!(
        report.contains("span workflow (not a call of a model) 1"),
        "{report}"
    );
    let sent = sent(&sessions[0]);
    let image = json!({"type": "image_url", "image_url": {"url": "https://example.org/map.png"}});
    let first = json!([
        {"role": "system", "content": "You plan trips."},
        {"role": "user", "content": [{"type": "text", "text": "Trains to Graz?"}, image]},
    ]);
    assert_eq!(sent[0]["messages"], first);
    assert_eq!(sent[0]["model"], "m-1");
    assert_eq!(sent[0]["temperature"], 0.2);
    let properties = json!({"to": {"type": "string"}});
    assert_eq!(
        sent[0]["tools"][0],
        function("trains", "Finds trains", &properties)
    );
    let call = json!({"type": "function", "id": "call_1",
        "function": {"name": "trains", "arguments": "{\"to\": \"Graz\"}"}});
    let messages = sent[1]["messages"].as_array().expect("messages");
    assert_eq!(
        messages[2],
        json!({"role": "assistant", "content": null, "tool_calls": [call]})
    );
    assert_eq!(messages[3]["tool_call_id"], "call_1");
    assert_eq!(replies(&sessions[0])[1], "\"Take the train at 07:58.\"");
    let documents = documents(&sessions[0]);
    let used = |at: usize, name: &str| documents[at]["usage"][name].clone();
    assert_eq!(
        (used(0, "input_tokens"), used(0, "cache_write_tokens")),
        (json!(90), json!(64))
    );
    assert_eq!(used(0, "stop_reason"), "tool_calls");
    assert_eq!(
        (used(1, "cached_tokens"), used(1, "cache_write_tokens")),
        (json!(64), json!(32))
    );
}

/// A log without a chat is no empty session.
#[test]
fn spans_of_other_kinds_alone_are_refused() {
    let log = r#"{"spans":[{"trace_id":"a","span_id":"b","attributes":{"gen_ai.operation.name":"embeddings"}}]}"#;
    let error = import(log.as_bytes(), &ImportOptions::default()).expect_err("nothing");
    assert!(
        error.to_string().contains("no line of it is of a message"),
        "{error}"
    );
}
