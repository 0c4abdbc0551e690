//! Logs that have trees or tables of their own: Egregore, ctxdiff.

use super::ctrace::ctrace;
use super::{holds_together, written};
use pactql::internals::json::JsonValue;
use pactql::logs::{Fate, Format, ImportOptions, import};
use serde_json::{Value, json};

/// The nodes of a document in order: parent, id, the node.
fn outline(document: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    let mut open = vec![(document["root"].clone(), String::new())];
    while let Some((node, parent)) = open.pop() {
        let id = node["id"].as_str().expect("an id").to_owned();
        for child in node["children"].as_array().into_iter().flatten().rev() {
            open.push((child.clone(), id.clone()));
        }
        found.push((parent, id, node));
    }
    found
}

#[test]
fn snapshots_of_egregore_keep_their_ids_and_are_numbered_by_order() {
    let bytes =
        std::fs::read("tests/cases/logs/egregore/synthetic-history.json").expect("a fixture");
    let imported = import(&bytes, &ImportOptions::default()).expect("a good log");
    assert_eq!(imported.format, Some(Format::Egregore));
    let session = holds_together(&imported).remove(0);
    let cycles: Vec<i64> = session.committed.iter().map(|one| one.cycle()).collect();
    assert_eq!(cycles, [1, 2, 3]);
    let documents: Vec<Value> = written(&imported, 0, true)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let shape = |at: usize| -> String {
        let nodes = outline(&documents[at]).into_iter();
        let nodes = nodes.map(|(parent, id, _)| format!("{parent}/{id}"));
        nodes.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        shape(0),
        "/^root ^root/^sys ^sys/67f97bd2d994 ^root/^seq ^root/^ah ^ah/28b97b065964-c \
         28b97b065964-c/1af2162a9bf7 28b97b065964-c/note1"
    );
    // The turn of the head goes to the sequence, which has one id for good. The oldest is first.
    assert_eq!(
        shape(2),
        "/^root ^root/^sys ^sys/67f97bd2d994 ^root/^seq ^seq/28b97b065964 28b97b065964/28b97b065964-c \
         28b97b065964-c/1af2162a9bf7 28b97b065964-c/note1 ^seq/beaad7ef92b5 \
         beaad7ef92b5/beaad7ef92b5-c beaad7ef92b5-c/call-1 beaad7ef92b5-c/83e725649b4d ^root/^ah \
         ^ah/58465f0c0cde-c 58465f0c0cde-c/res-1 58465f0c0cde-c/note1~2 58465f0c0cde-c/odd-1"
    );
    let node = |at: usize, id: &str| {
        let nodes = outline(&documents[at]);
        let found = nodes.into_iter().find(|(_, found, _)| found == id);
        found.map(|(_, _, node)| node).expect("the node")
    };
    let rules = node(0, "67f97bd2d994");
    assert_eq!(
        (&rules["data_name"], &rules["data_weight"]),
        (&json!("rules"), &json!(2))
    );
    assert_eq!(
        (&rules["role"], &rules["kind"]),
        (&json!("system"), &json!("text"))
    );
    assert_eq!(rules["data_org"], json!({"active": true, "source": "core"}));
    assert_eq!(node(0, "1af2162a9bf7")["data_tags"], json!(["greeting"]));
    assert_eq!(node(0, "note1")["data_ttl"], 3);
    let call = node(2, "call-1");
    assert_eq!(
        (&call["kind"], &call["role"], &call["data_call_id"]),
        (&json!("call"), &json!("assistant"), &json!("c1"))
    );
    assert_eq!(call["cycle"], 2);
    let odd = node(2, "odd-1");
    assert_eq!(
        (&odd["data_type"], &odd["content"]),
        (&json!("weather_card"), &json!({"city": "Graz"}))
    );
    assert_eq!(
        documents[1]["meta"]["snapshot"]["trigger"],
        "before_provider_call"
    );
    assert_eq!(imported.report.lines(Fate::Understood), 3);
    let report = imported.report.to_string();
    assert!(report.contains("copy that shares an id 1"), "{report}");
}

#[test]
fn calls_of_ctxdiff_are_requests() {
    let path = std::env::temp_dir().join(format!("pactql-{}.ctrace", std::process::id()));
    let imported = import(&ctrace(&path, true), &ImportOptions::default()).expect("a good log");
    assert_eq!(imported.format, Some(Format::Ctrace));
    let names: Vec<_> = imported
        .sessions
        .iter()
        .map(|one| one.name.as_deref())
        .collect();
    assert_eq!(names, [Some("r1"), Some("r1/writer")]);
    let sessions = holds_together(&imported);
    let sent = |at: usize, provider| -> Vec<Value> {
        let snapshots = sessions[at].committed.iter();
        let sent = snapshots
            .map(|one| pactql::render::request(&pactql::render::Thread::request(one), provider));
        sent.map(|sent| serde_json::from_str(&sent.expect("a request")).expect("JSON"))
            .collect()
    };
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "search", "arguments": arguments}});
    let tools = json!([{"type": "function", "function": {"name": "search", "description": "Search", "parameters": {"type": "object"}}}]);
    let system = json!({"role": "system", "content": "Be brief."});
    let user = json!({"role": "user", "content": "Find it."});
    assert_eq!(
        sent(0, pactql::Provider::OpenAi),
        [
            json!({"model": "m", "messages": [system, user], "tools": tools}),
            // The second call failed and was made again.
            json!({"model": "m", "messages": [system, user,
                {"role": "assistant", "content": null, "tool_calls": [call("c1", "{\"q\": 1}"), call("c2", "{}")]},
                {"role": "tool", "content": "found"},
                {"role": "user", "content": [{"type": "text", "text": "See:"},
                    {"type": "image_in_words", "text": "[image 1024×768]"}]}], "tools": tools}),
        ]
    );
    assert_eq!(
        sent(1, pactql::Provider::Anthropic),
        [json!({"model": "m", "system": "Be brief.", "messages": [
            {"role": "user", "content": "Write."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "save", "input": {"b": 1}}]}]})]
    );
    let document = |at: usize| -> Value {
        let text = sessions[0].export(true);
        serde_json::from_str(text.lines().nth(at).expect("a line")).expect("JSON")
    };
    assert_eq!(document(0)["usage"]["input_tokens"], 5);
    assert_eq!(
        document(1)["meta"]["attempts"],
        json!([{"error": "rate limit", "status": "error"}])
    );
    let label = sessions[1].committed[0]
        .nodes()
        .find_map(|node| node.field("data_label").map(JsonValue::canonical));
    assert_eq!(label.as_deref(), Some("\"rag\""));
    // An older file does not say whose calls they are.
    let imported = import(&ctrace(&path, false), &ImportOptions::default()).expect("a good log");
    assert_eq!(imported.sessions.len(), 1);
    // Other databases, and damaged ones.
    let other = rusqlite::Connection::open(&path).expect("a database");
    other.execute_batch("create table t (x)").expect("a table");
    drop(other);
    let bytes = std::fs::read(&path).expect("a file");
    let _ = std::fs::remove_file(&path);
    for bytes in [&bytes[..], &bytes[..100], b"SQLite format 3\0"] {
        let error = import(bytes, &ImportOptions::default()).expect_err("no log");
        assert!(
            error.to_string().contains("expected a file of ctxdiff"),
            "{error}"
        );
    }
}

#[test]
fn a_name_of_a_column_that_is_no_text_is_no_panic() {
    let path = std::env::temp_dir().join(format!("pactql-name-{}.ctrace", std::process::id()));
    let mut bytes = ctrace(&path, true);
    let at = bytes.windows(10).position(|part| part == b"agent TEXT");
    bytes[at.expect("a column")] = 0xFF;
    let imported = import(&bytes, &ImportOptions::default());
    // The file reads as one that does not say whose calls they are.
    assert_eq!(imported.expect("a log").sessions.len(), 1);
}
