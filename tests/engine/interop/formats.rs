//! The fixtures of `tests/cases/logs`, one directory a format, all written by hand.
//!
//! Every request comes back equal as JSON values, the format is found by content, what an import
//! writes reads back as itself, and no text is lost.

use super::{Session, holds_together};
use pactql::Provider;
use pactql::interop::{Fate, Format, ImportOptions, Imported, import};
use pactql::render::request_of;
use serde_json::Value;
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
    let request = |snapshot| pactql::render(&request_of(snapshot), provider).expect("a request");
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
    for (format, provider) in [(Format::Anthropic, Provider::Anthropic)] {
        for (name, bytes) in fixtures(format) {
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
            ] {
                for snapshot in &sessions[0].committed {
                    let mut thread = request_of(snapshot);
                    if other != provider {
                        thread = without_hosted_tools(&thread);
                    }
                    pactql::render(&thread, other).expect("a request");
                }
            }
        }
    }
}

/// The thread without the tools that one provider runs itself.
fn without_hosted_tools(thread: &pactql::Thread) -> pactql::Thread {
    let records = thread
        .records()
        .filter(|record| !record.contains("web_search_2"));
    pactql::Thread::from_records(records).expect("a thread")
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
        .map(|node| node.field("data_call_id").expect("a call"))
        .collect();
    assert_eq!(
        results,
        ["\"toolu_1\"", "\"toolu_2\"", "\"toolu_2\"", "\"toolu_2\""]
    );
    let time = session.committed[1]
        .nodes()
        .find(|node| node.id() == "cb:5-1");
    assert!(time.is_some());
}
