//! The fixtures of `tests/cases/logs`, one directory a format, all written by hand.
//!
//! Every request comes back equal as JSON values, the format is found by content, what an import
//! writes reads back as itself, and no text is lost.

use super::{Session, holds_together, written};
use pactql::Provider;
use pactql::internals::json::JsonValue;
use pactql::logs::{Fate, Format, ImportOptions, Imported, import};
use pactql::render::Thread;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::PathBuf;

/// The fixtures of a format: name and bytes.
fn fixtures(format: Format) -> Vec<(String, Vec<u8>)> {
    let directory = PathBuf::from("tests/cases/logs").join(format.name());
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let read = |path: PathBuf| (path.display().to_string(), fs::read(&path).expect("a file"));
    files.into_iter().map(read).collect()
}

fn detected(name: &str, bytes: &[u8]) -> Imported {
    import(bytes, &ImportOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What was sent in the cycle of each snapshot.
fn sent(session: &Session, provider: Provider) -> Vec<Value> {
    let request = |snapshot| {
        pactql::render::request(&Thread::request(snapshot), provider).expect("a request")
    };
    let snapshots = session.committed.iter();
    let parse = |text: String| serde_json::from_str(&text).expect("JSON");
    snapshots.map(|snapshot| parse(request(snapshot))).collect()
}

/// The requests of a log that were answered or are the last.
fn requests(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).expect("text");
    let records: Vec<Value> = match serde_json::from_str(text) {
        Ok(record) => vec![record],
        Err(_) => text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect(),
    };
    let mut found: Vec<Value> = Vec::new();
    for record in records {
        let request = record.get("request").unwrap_or(&record);
        // A request that failed is made again.
        if record["response"].get("error").is_none() {
            found.push(request.clone());
        }
    }
    found
}

#[test]
fn every_recorded_request_comes_back_equal() {
    for (format, provider) in [
        (Format::Anthropic, Provider::Anthropic),
        (Format::OpenAiResponses, Provider::OpenAiResponses),
        (Format::Gemini, Provider::Gemini),
        (Format::Bedrock, Provider::Bedrock),
    ] {
        for (name, bytes) in fixtures(format) {
            if bytes.starts_with(b"[") {
                list_comes_back_equal(&name, &bytes, format, provider);
                continue;
            }
            let imported = detected(&name, &bytes);
            assert_eq!(imported.format, Some(format), "{name}");
            let sessions = holds_together(&imported);
            assert_eq!(sessions.len(), 1, "{name}");
            let (found, wanted) = (sent(&sessions[0], provider), requests(&bytes));
            assert_eq!(found.len(), wanted.len(), "{name}");
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_eq!(found, wanted, "{name}");
            }
            // The other forms have a place for every part of it.
            for other in [
                Provider::OpenAi,
                Provider::OpenAiResponses,
                Provider::Anthropic,
                Provider::Gemini,
            ] {
                for snapshot in &sessions[0].committed {
                    let mut thread = Thread::request(snapshot);
                    if other != provider {
                        thread = without_hosted_tools(&thread);
                    }
                    pactql::render::request(&thread, other).expect("a request");
                }
            }
        }
    }
}

fn list_comes_back_equal(name: &str, bytes: &[u8], format: Format, provider: Provider) {
    let imported = detected(name, bytes);
    assert_eq!(imported.format, Some(format), "{name}");
    let session = holds_together(&imported).remove(0);
    let found: Value =
        serde_json::from_str(&super::rendered(session.current(), provider)).expect("JSON");
    let wanted: Value = serde_json::from_slice(bytes).expect("JSON");
    let list = found.get("contents").or(found.get("messages"));
    assert_eq!(list, Some(&wanted), "{name}");
}

/// The thread without the tools that one provider runs itself.
fn without_hosted_tools(thread: &pactql::render::Thread) -> pactql::render::Thread {
    let records = thread.records().filter(|record| {
        let hosted = ["web_search_", "googleSearch", "systemTool"];
        !hosted.iter().any(|name| record.contains(name))
    });
    pactql::render::Thread::from_records(records).expect("a thread")
}

#[test]
fn an_anthropic_run_has_its_tools_results_usage_and_attempts() {
    let (name, bytes) = fixtures(Format::Anthropic).remove(1);
    let imported = detected(&name, &bytes);
    assert_eq!(imported.report.messages(Fate::Verbatim), 0);
    let session = holds_together(&imported).remove(0);
    let third: Value =
        serde_json::from_str(session.export(true).lines().nth(2).expect("a line")).expect("JSON");
    assert_eq!(
        third["meta"]["attempts"][0]["error"]["type"],
        "overloaded_error"
    );
    let first: Value =
        serde_json::from_str(session.export(true).lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["usage"]["input_tokens"], 105);
    assert_eq!(first["usage"]["cache_write_tokens"], 100);
    assert_eq!(first["usage"]["latency_ms"], 812);
    let results: Vec<&str> = session.committed[1]
        .nodes()
        .filter(|node| node.role() == Some("tool"))
        .map(|node| node.field("data_call_id").and_then(JsonValue::text))
        .map(|id| id.expect("a call"))
        .collect();
    assert_eq!(results, ["toolu_1", "toolu_2", "toolu_2", "toolu_2"]);
    let time = session.committed[1]
        .nodes()
        .find(|node| node.id() == "cb:5-1");
    assert!(time.is_some());
}

/// The bytes of text of every block that a session ever had, by role and kind.
fn texts(session: &Session) -> BTreeMap<(String, String), usize> {
    let mut seen = HashSet::new();
    let mut sums = BTreeMap::new();
    for snapshot in session.committed.iter().chain(&session.working) {
        for node in snapshot.nodes() {
            let (Some(role), Some(kind)) = (node.role(), node.kind()) else {
                continue;
            };
            let content = node.field("content").unwrap_or(JsonValue::Text(""));
            if seen.insert(node.id().to_owned())
                && let Some(text) = content.text()
            {
                *sums.entry((role.to_owned(), kind.to_owned())).or_default() += text.len();
            }
        }
    }
    sums
}

fn real(name: &str) -> Vec<u8> {
    let directory = std::env::var("PACTQL_DATA").unwrap_or_else(|_| "../shared/data".to_owned());
    let path = PathBuf::from(directory).join(name);
    let Ok(bytes) = fs::read(&path) else {
        return Vec::new();
    };
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text)
        .expect("gzip");
    text
}

#[test]
fn long_pi_sessions_lose_no_text_and_show_their_compactions() {
    if crate::support::random::left_to_ci() {
        return;
    }
    for (name, compactions) in [
        ("before-compaction", vec![(293, 359), (551, 628)]),
        ("large-session", vec![]),
    ] {
        let bytes = real(&format!("pi-mono-long-sessions/{name}.jsonl.gz"));
        if bytes.is_empty() {
            eprintln!("SKIPPED: {name} is not here");
            continue;
        }
        let imported = detected(name, &bytes);
        assert_eq!(imported.format, Some(Format::Pi));
        assert_eq!(imported.report.messages(Fate::Verbatim), 0);
        assert_eq!(imported.report.parts(Fate::Verbatim), 0);
        // Comparing both forms of a session this long takes minutes.
        let session = Session::read(written(&imported, 0, false).as_bytes());
        let lines: Vec<Value> = std::str::from_utf8(&bytes)
            .expect("text")
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let mut wanted = BTreeMap::new();
        for line in &lines {
            let mut add = |role: &str, kind: &str, text: &str| {
                *wanted
                    .entry((role.to_owned(), kind.to_owned()))
                    .or_default() += text.len();
            };
            if line["type"] == "compaction" {
                add("user", "summary", line["summary"].as_str().expect("text"));
            }
            let message = &line["message"];
            if message["role"] == "bashExecution" {
                add("user", "text", message["command"].as_str().expect("text"));
                add("user", "result", message["output"].as_str().expect("text"));
            }
            for part in message["content"].as_array().into_iter().flatten() {
                let (role, kind) = match (message["role"].as_str(), part["type"].as_str()) {
                    (Some("toolResult"), _) => ("tool", "result"),
                    (Some(role), Some("toolCall")) => (role, "call"),
                    (Some(role), Some(kind)) => (role, kind),
                    _ => panic!("{part}"),
                };
                let text = match kind {
                    "call" => part["arguments"].to_string(),
                    "thinking" => part["thinking"].as_str().expect("text").to_owned(),
                    _ => part["text"].as_str().expect("text").to_owned(),
                };
                add(role, kind, &text);
            }
        }
        let mut found = texts(&session);
        // The arguments of calls keep their spelling; numbers such as 1.0 may be longer here.
        let call = ("assistant".to_owned(), "call".to_owned());
        assert!(found.remove(&call) >= wanted.remove(&call), "{name}");
        assert_eq!(found, wanted, "{name}");
        check_compactions(&session, &lines, &compactions);
    }
}

/// Checks what each compaction dropped: the messages before the entry it kept from that the one
/// before it had not dropped already.
fn check_compactions(session: &Session, lines: &[Value], compactions: &[(usize, usize)]) {
    let is_cut = |line: &Value| {
        let empty = line["message"]["content"]
            .as_array()
            .is_some_and(Vec::is_empty);
        empty && line["message"]["role"] == "assistant"
    };
    let count = |range: std::ops::Range<usize>| {
        let lines = lines[range].iter();
        lines
            .filter(|line| line["type"] == "message" && !is_cut(line))
            .count()
    };
    let summaries = |snapshot: &pactql::Snapshot| {
        snapshot
            .nodes()
            .filter(|node| node.kind() == Some("summary"))
            .count()
    };
    let pairs = session.committed.windows(2);
    let mut found = Vec::new();
    for pair in pairs {
        let (before, after) = (&pair[0], &pair[1]);
        let messages = |snapshot: &pactql::Snapshot| -> HashSet<String> {
            let blocks = snapshot.nodes().filter(|node| node.id().starts_with("cb:"));
            blocks
                .filter(|node| node.kind() != Some("summary"))
                .map(|node| node.field("data_message").expect("a number").canonical())
                .collect()
        };
        let gone = messages(before).difference(&messages(after)).count();
        if gone > 0 {
            assert_eq!(summaries(after), 1);
            let meta = &after.meta().extra[0].1;
            assert!(meta.contains("\"tokensBefore\":1"), "{meta}");
            found.push(gone);
        }
    }
    let mut start = 0;
    let wanted: Vec<usize> = compactions
        .iter()
        .map(|(kept, _)| {
            let dropped = count(start..*kept);
            start = *kept;
            dropped
        })
        .collect();
    assert_eq!(found, wanted);
}

/// The messages of a request; without a model it is the list alone.
fn messages(request: &Value) -> &Value {
    request.get("messages").unwrap_or(request)
}

#[test]
fn every_step_of_swe_agent_comes_back_equal() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let with_messages = [
        "marshmallow-1867__function_calling_replace_from_source",
        "swe-smith__pandas-53652",
    ];
    let without = [
        "ctf_web_i_got_id_demo",
        "function_calling_simple",
        "pydicom-1458__gpt4_default",
    ];
    for name in with_messages.iter().chain(&without) {
        let bytes = real(&format!("swe-agent-trajectories/{name}.traj.gz"));
        if bytes.is_empty() {
            eprintln!("SKIPPED: {name} is not here");
            continue;
        }
        let imported = detected(name, &bytes);
        let log: Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_eq!(imported.sessions.len(), 1, "{name}");
        let session = holds_together(&imported).remove(0);
        if without.contains(name) {
            let current =
                pactql::render::request(session.current(), Provider::OpenAi).expect("messages");
            let current: Value = serde_json::from_str(&current).expect("JSON");
            assert_eq!(*messages(&current), log["history"], "{name}");
            continue;
        }
        assert_eq!(imported.format, Some(Format::SweAgent));
        let steps = log["trajectory"].as_array().expect("steps");
        let found = sent(&session, Provider::OpenAi);
        let found: Vec<&Value> = found.iter().map(messages).collect();
        assert_eq!(found.len(), steps.len(), "{name}");
        // The list of a step has its reply and what the tool said: it is what the next one is sent.
        let lists: Vec<&Value> = steps.iter().map(|step| &step["messages"]).collect();
        let first = lists[0].as_array().expect("messages");
        assert_eq!(
            found[0].as_array().expect("messages"),
            &first[..first.len() - 2],
            "{name}"
        );
        for (found, list) in found[1..].iter().zip(&lists) {
            assert_eq!(found, list, "{name}");
        }
        for (snapshot, list) in session.committed.iter().zip(&lists) {
            let whole = pactql::render::request(snapshot, Provider::OpenAi).expect("messages");
            let whole: Value = serde_json::from_str(&whole).expect("JSON");
            let list = list.as_array().expect("messages");
            assert_eq!(
                messages(&whole).as_array().expect("messages").last(),
                list.iter().rev().nth(1)
            );
        }
    }
}

#[test]
fn a_claude_code_session_has_its_fork_its_subagent_and_its_compaction() {
    let (name, bytes) = fixtures(Format::ClaudeCode).remove(0);
    let imported = detected(&name, &bytes);
    assert_eq!(imported.format, Some(Format::ClaudeCode));
    let names: Vec<Option<&str>> = imported
        .sessions
        .iter()
        .map(|session| session.name.as_deref())
        .collect();
    assert_eq!(names, [None, Some("~2"), Some("/agent-1")]);
    let sessions = holds_together(&imported);
    let cycles: Vec<usize> = sessions
        .iter()
        .map(|session| session.committed.len())
        .collect();
    // Three replies, the one after the fork, the compaction, the last; the fork has four replies.
    assert_eq!(cycles, [6, 4, 1]);
    let report = imported.report.to_string();
    assert!(report.contains("(another type) 1"), "{report}");
    assert!(report.contains("line 27 is not whole"), "{report}");

    let main = &sessions[0];
    let line = |at: usize| -> Value {
        let text = main.export(true);
        serde_json::from_str(text.lines().nth(at).expect("a line")).expect("JSON")
    };
    // One response of four lines: one cycle, its usage once.
    assert_eq!(line(0)["usage"]["input_tokens"], 110);
    assert_eq!(line(0)["usage"]["request_id"], "req_msg_1");
    assert_eq!(
        line(2)["meta"]["attempts"][0]["error"]["error"]["status"],
        529
    );
    assert_eq!(line(4)["meta"]["compaction"]["preTokens"], 155_000);
    let outline = |at: usize| -> Vec<String> {
        let blocks = main.committed[at]
            .nodes()
            .filter(|node| node.id().starts_with("cb:"));
        blocks
            .map(|node| {
                format!(
                    "{} {}",
                    node.role().unwrap_or(""),
                    node.kind().unwrap_or("-")
                )
            })
            .collect()
    };
    let first = [
        "user text",
        "assistant thinking",
        "assistant text",
        "assistant call",
        "assistant call",
    ];
    assert_eq!(outline(0), first);
    assert_eq!(
        outline(1)[5..],
        ["tool result", "tool result", "assistant call"]
    );
    assert_eq!(outline(4), ["user summary"]);
    assert_eq!(
        outline(5),
        ["user summary", "user text", "user text", "assistant text"]
    );
    let times = main.committed[0]
        .nodes()
        .find(|node| node.id() == "cb:1-1")
        .expect("a block");
    assert_eq!(
        times.field("created_at_iso"),
        Some(JsonValue::Text("2026-03-02T09:00:01.000000000Z"))
    );
    // Known with the result.
    let task = main.committed[2]
        .nodes()
        .find(|node| node.field("data_child_session").is_some())
        .expect("the call");
    assert_eq!(
        task.field("data_child_session"),
        Some(JsonValue::Text("/agent-1"))
    );
    let fork: Value =
        serde_json::from_str(sessions[1].export(true).lines().last().expect("a line"))
            .expect("JSON");
    assert_eq!(fork["meta"]["forked_at"], 3);
    assert_eq!(fork["usage"]["stop_reason"], Value::Null);
}

#[test]
fn a_codex_rollout_has_its_replies_usage_attempt_and_compaction() {
    let (name, bytes) = fixtures(Format::Codex).remove(0);
    let imported = detected(&name, &bytes);
    assert_eq!(imported.format, Some(Format::Codex));
    let session = holds_together(&imported).remove(0);
    assert_eq!(session.committed.len(), 5);
    let line = |at: usize| -> Value {
        let text = session.export(true);
        serde_json::from_str(text.lines().nth(at).expect("a line")).expect("JSON")
    };
    let outline = |at: usize| -> Vec<String> {
        let blocks = session.committed[at]
            .nodes()
            .filter(|node| node.id().starts_with("cb:"));
        blocks
            .map(|node| {
                format!(
                    "{} {}",
                    node.role().unwrap_or(""),
                    node.kind().unwrap_or("-")
                )
            })
            .collect()
    };
    assert_eq!(
        outline(0),
        [
            "system text",
            "developer text",
            "user text",
            "assistant thinking",
            "assistant call"
        ]
    );
    // OpenAI counts cached tokens in the input.
    assert_eq!(line(0)["usage"]["input_tokens"], 70);
    assert_eq!(line(0)["usage"]["cached_tokens"], 40);
    assert_eq!(line(0)["usage"]["reasoning_tokens"], 3);
    assert_eq!(line(0)["meta"]["request"]["model"], "gpt-example");
    assert_eq!(
        line(1)["meta"]["attempts"][0]["error"]["message"],
        "disconnected"
    );
    assert!(line(2)["meta"]["compaction"].is_object());
    assert_eq!(
        outline(2),
        ["system text", "developer text", "user text", "user summary"]
    );
    // What was kept is the node it was.
    let ids = |at: usize| -> Vec<String> {
        let ids = session.committed[at]
            .nodes()
            .map(|node| node.id().to_owned());
        ids.filter(|id| id.starts_with("cb:")).take(3).collect()
    };
    assert_eq!(ids(2), ids(1));
    assert_eq!(
        outline(4)[4..],
        [
            "user text",
            "assistant call",
            "tool result",
            "assistant call"
        ]
    );
}
