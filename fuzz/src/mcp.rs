//! Lines of an MCP client, over a directory with a session, a log and a store: each request has an answer that is one line of
//! JSON and not longer than answers may be.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use pactql::internals::mcp::answers;
use pactql::{Session, Store};
use serde_json::Value;

static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = super::patch::place().join("root");
    fs::create_dir_all(&root).expect("a directory");
    let session = include_bytes!("../../fixtures/greenhouse.jsonl");
    fs::write(root.join("s.jsonl"), session).expect("a file");
    fs::write(
        root.join("l.jsonl"),
        include_bytes!("../../fixtures/release.claude-code.jsonl"),
    )
    .expect("a file");
    let store = Store::open(root.join("d.db")).expect("a store");
    let session = Session::from_slice(session).expect("a session");
    store.import("talk", &session, None).expect("an import");
    root
});

/// The most bytes of a line: those of an answer as text, with what quotes and escapes add, and the same as a value.
const LONGEST: usize = 1 << 20;

pub fn run(bytes: &[u8]) {
    let (head, rest) = super::head(bytes);
    // Either whole lines, or calls: the name of a tool and a line of arguments.
    let lines = if head.starts_with("pact_") || head.starts_with("context_") {
        let arguments = String::from_utf8_lossy(rest).replace('\n', " ");
        let name = Value::from(head);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{name},"arguments":{arguments}}}}}"#).into_bytes()
    } else {
        bytes.to_vec()
    };
    let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').take(16).collect();
    for answer in answers(&ROOT, &lines).expect("a directory") {
        assert!(answer.len() < LONGEST, "{} bytes", answer.len());
        let value: Value = serde_json::from_slice(&answer).expect("a line of JSON");
        assert_eq!(value["jsonrpc"], "2.0");
    }
}
