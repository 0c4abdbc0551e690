//! `pactql select --budget`: formats, several sessions, files of selectors, what is refused.

use super::{AGENT, Scratch, answer, fails, pactql};
use serde_json::{Value, json};

/// Three blocks: two calls with a word each, and a text.
fn session(scratch: &Scratch, name: &str) -> String {
    let block = |id: &str, content: &str| json!({"id": id, "nodeType": "cb", "content": content});
    let document = json!({"root": {"children": [{"id": "seq", "nodeType": "^seq", "children": [
    {"id": "mt:1", "nodeType": "mt", "children": [{"id": "mc:1", "nodeType": "mc", "children": [
        block("cb:x", "refund"),
        block("cb:y", "no refund today"),
        block("cb:z", "order"),
    ]}]}]}]}});
    scratch.write(name, document.to_string())
}

#[test]
fn each_format_shows_the_blocks_in_the_order_chosen() {
    let scratch = Scratch::new("fit");
    let path = session(&scratch, "session.json");
    let run = |more: &[&str]| {
        let select = ["select", &path, "@t0 .cb", "--budget", "6"];
        answer(&[&select[..], more].concat())
    };
    let refund = ["--query", "Refund"];
    let with = |more: &[&str]| run(&[&refund[..], more].concat());
    assert_eq!(with(&["--format", "ids"]), "cb:x\ncb:y\n");
    assert_eq!(run(&["--format", "ids"]), "cb:x\ncb:y\n");
    assert_eq!(
        run(&["--query", "order", "--format", "ids"]),
        "cb:z\ncb:x\n"
    );
    let json: Value = serde_json::from_str(&with(&["--json"])).expect("JSON");
    assert_eq!(json["documents"][0]["id"], "cb:x");
    assert_eq!(json["documents"][0]["score"], 1.0);
    assert_eq!(json["documents"][1]["why"]["total_words"], 3);
    assert_eq!(json["selection"]["tokens_used"], 6);
    assert_eq!(with(&["--format", "json"]), with(&["--json"]));
    assert_eq!(with(&[]), with(&["--format", "ids"]));
    assert_eq!(with(&["--count"]), "2\n");
    assert_eq!(with(&["--count", "--format", "table"]), "2\n");
    let nodes = run(&["--query", "order", "--format", "nodes"]);
    let nodes: Vec<Value> = nodes
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!((nodes.len(), &nodes[0]["id"]), (2, &json!("cb:z")));
    let table = with(&["--format", "table"]);
    assert!(table.contains("0.3333"), "{table}");
    assert!(table.ends_with("2 of 3 blocks, 6 of 6 tokens\n"), "{table}");
    let nothing = answer(&["select", &path, "@t0 .cb", "--budget=0", "--format=table"]);
    assert_eq!(nothing, "0 of 3 blocks, 0 of 0 tokens\n");
}

#[test]
fn each_session_and_each_selector_of_a_file_has_the_whole_budget() {
    let scratch = Scratch::new("fit-several");
    let (one, two) = (session(&scratch, "1.json"), session(&scratch, "2.json"));
    let select = ["select", &one, &two, "-e", "@t0 .cb", "--budget", "2"];
    let ids = answer(&[&select[..], &["--format", "ids"]].concat());
    assert_eq!(ids, format!("{one}\tcb:x\n{two}\tcb:x\n"));
    let lines = answer(&[&select[..], &["--json"]].concat());
    for (line, path) in lines.lines().zip([&one, &two]) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["session"], **path);
        assert_eq!(line["result"]["selection"]["tokens_used"], 2);
    }
    let counts = answer(&[&select[..], &["--count", "--format", "json"]].concat());
    assert!(counts.contains("\"count\":1}"), "{counts}");
    let selectors = scratch.write("selectors.txt", "@t0 .cb\n@t0..@t0 .cb\n@t0 .mt\n.cb[");
    let file = ["select", &one, "--file", &selectors, "--budget", "2"];
    let ran = pactql(&file);
    assert_eq!(ran.code, 2);
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines[0]["documents"][0]["id"], "cb:x");
    assert_eq!(lines[1]["error"]["code"], "E_VALUE");
    assert_eq!(lines[2]["selection"]["documents_considered"], 0);
    assert_eq!(lines[3]["error"]["code"], "E_SELECTOR_INVALID");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let select = |selector: &'static str, more: &[&'static str]| {
        [&["select", AGENT, selector][..], more].concat()
    };
    for budget in ["-1", "1.5", "many", "", "99999999999999999999"] {
        let mut arguments = select("@t0 .cb", &["--budget"]);
        arguments.push(budget);
        fails(&arguments, 3, "--budget");
    }
    fails(&select("@t0 .cb", &["--query", "x"]), 1, "--budget");
    fails(
        &select("@t-2..@t0 .cb", &["--budget", "9"]),
        3,
        "a range has differences",
    );
    fails(
        &select("@t0 .cb", &["--budget", "9", "--format", "tree"]),
        3,
        "cannot show the order",
    );
    fails(&select("@t0 .cb[", &["--budget", "9"]), 2, "E_SELECTOR");
    let turns = pactql(&select("@t0 .mt", &["--budget", "9", "--format", "ids"]));
    assert_eq!((turns.code, &*turns.out), (0, ""));
    assert!(turns.err.contains("blocks only"), "{}", turns.err);
}

#[test]
#[cfg(unix)]
fn a_query_that_is_not_text_is_invalid() {
    use std::os::unix::ffi::OsStrExt;
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_pactql"))
        .args(["select", AGENT, "@t0 .cb", "--budget", "9", "--query"])
        .arg(std::ffi::OsStr::from_bytes(b"\xff"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}
