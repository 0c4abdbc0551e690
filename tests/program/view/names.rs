//! Names of sessions in logs, and rows of the list.

use super::{Server, pactql, quoted, scratch};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A log with a branch, and one with a subagent.
fn with_branches(place: &Path) {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/logs");
    for (from, to) in [
        ("pi/synthetic-session.jsonl", "logs/pi.jsonl"),
        ("claude-code/synthetic-session.jsonl", "logs/cc.jsonl"),
    ] {
        fs::copy(cases.join(from), place.join(to)).expect("a copy");
    }
}

/// The names that the command line lists of a log.
fn listed(place: &Path, log: &str) -> Vec<String> {
    let (exit, printed) = pactql(place, &["sessions", log, "--json"]);
    assert_eq!(exit, Some(0));
    let rows = printed.lines().map(serde_json::from_str);
    let rows = rows.collect::<Result<Vec<Value>, _>>().expect("JSON");
    let names = rows.iter().map(|row| row["name"].as_str());
    names.map(|name| name.expect("a name").to_owned()).collect()
}

/// The name of an import and the name in the log mean one session, on the command line and over HTTP.
#[test]
fn both_names_of_a_session_of_a_log_are_taken() {
    let directory = scratch();
    let place = directory.path();
    with_branches(place);
    let server = Server::start(place, &["logs"]);
    for log in ["logs/pi.jsonl", "logs/cc.jsonl"] {
        let names = listed(place, log);
        let (stem, branches) = names.split_first().expect("a session");
        assert!(!branches.is_empty(), "{names:?}");
        for branch in branches {
            let own = branch.strip_prefix(stem.as_str());
            let own = own.expect("a name in the log");
            let mut answers = BTreeSet::new();
            for name in [format!("{log}#{branch}"), format!("{log}#{own}")] {
                let (exit, printed) = pactql(place, &["show", &name, "--json"]);
                assert_eq!(exit, Some(0), "{name}");
                let reply = server.get(&format!("/api/show?session={}", quoted(&name)));
                assert_eq!(reply.status, 200, "{}", reply.body);
                let lines = printed.trim_end().replace('\n', ",");
                assert_eq!(reply.body.trim_end(), format!("[{lines}]"), "{name}");
                answers.insert(printed);
            }
            assert_eq!(answers.len(), 1, "{branch}");
        }
        // The log itself has the name that the command line prints for it.
        let itself = format!("/api/show?session={}", quoted(&format!("{log}#{stem}")));
        let whole = format!("/api/show?session={}", quoted(log));
        assert_eq!(server.get(&itself).body, server.get(&whole).body);
        let wrong = format!("/api/show?session={}", quoted(&format!("{log}#nope")));
        let wrong = server.get(&wrong);
        let help = &wrong.json()["error"]["help"];
        assert_eq!(
            (wrong.status, help),
            (404, &json!("`/api/sessions` lists them"))
        );
    }
}

/// What is wrong with the name of a log of several sessions, or of a session of a store, is said with what lists the names here.
#[test]
fn advice_can_be_followed_over_http() {
    let directory = scratch();
    let place = directory.path();
    let chats = json!([[{"role": "user", "content": "a"}], [{"role": "user", "content": "b"}]]);
    fs::write(place.join("logs/two.json"), chats.to_string()).expect("a log");
    let server = Server::start(place, &["logs", "a.db"]);
    server.get("/api/sessions");
    for (name, code, help) in [
        (
            "logs/two.json",
            "E_INPUT",
            "`/api/sessions` lists the names",
        ),
        ("a.db#nope", "E_SESSION_NOT_FOUND", "`/api/sessions` lists"),
    ] {
        let reply = server.get(&format!("/api/steps?session={}", quoted(name)));
        assert_eq!(reply.code(), code, "{}", reply.body);
        assert!(reply.body.contains(help), "{}", reply.body);
    }
}

/// Each row of a list has the same members, of a store and of a log; those of the command line are the same.
#[test]
fn rows_of_lists_have_one_shape() {
    let directory = scratch();
    let place = directory.path();
    with_branches(place);
    let server = Server::start(place, &["logs", "a.db"]);
    let list = server.get("/api/sessions").json();
    let mut rows = list["sessions"].as_array().expect("a list").clone();
    for word in ["logs", "a.db", "logs/pi.jsonl"] {
        let (_, printed) = pactql(place, &["sessions", word, "--json"]);
        let lines = printed.lines().map(serde_json::from_str::<Value>);
        rows.extend(lines.map(|row| row.expect("JSON")));
    }
    let shapes = rows.iter().map(|row| {
        let row = row.as_object().expect("an object");
        row.keys().cloned().collect::<Vec<_>>()
    });
    assert_eq!(shapes.collect::<BTreeSet<_>>().len(), 1);
    let row = |name: &str| {
        let mut found = rows.iter().filter(|row| row["name"] == name);
        found.next().expect("a row").clone()
    };
    let (stored, log) = (row("a.db#runs/chat"), row("logs/chat.json"));
    assert_eq!(stored["steps"], log["steps"]);
    assert_eq!(
        (&stored["used"], &log["cycle"]),
        (&Value::Null, &stored["cycle"])
    );
    assert_eq!(stored["when"], stored["committed"]);
    assert_eq!(log["source"], "logs/chat.json");
}

/// A log counts as a whole, as on the command line.
#[test]
fn usage_of_a_log_has_its_subagents() {
    let directory = scratch();
    let place = directory.path();
    with_branches(place);
    let server = Server::start(place, &["logs"]);
    for log in ["logs/cc.jsonl", "logs/pi.jsonl", "logs/chat.json"] {
        let (_, printed) = pactql(place, &["usage", log, "--json"]);
        let reply = server.get(&format!("/api/usage?session={}", quoted(log)));
        assert_eq!(reply.body, printed, "{log}");
    }
    // One of them by its name.
    let one = server.get("/api/usage?session=logs/cc.jsonl%23cc").json();
    let all = server.get("/api/usage?session=logs/cc.jsonl").json();
    assert_eq!((&one["sessions"], &all["sessions"]), (&json!(1), &json!(3)));
}

#[test]
fn a_diff_has_the_parameters_that_changed() {
    let directory = scratch();
    let place = directory.path();
    let requests = [0.1, 0.9].map(|temperature| {
        let request = json!({
            "model": "gpt-4o", "temperature": temperature,
            "messages": [{"role": "user", "content": "a"}],
        });
        let reply = json!({"choices": [{"message": {"role": "assistant", "content": "b"}}]});
        json!({"request": request, "response": reply}).to_string()
    });
    fs::write(place.join("logs/requests.jsonl"), requests.join("\n")).expect("a log");
    let server = Server::start(place, &["logs"]);
    let (exit, printed) = pactql(
        place,
        &["diff", "logs/requests.jsonl", "@t0", "@t-1", "--json"],
    );
    assert!(
        exit == Some(0) && printed.contains("temperature"),
        "{printed}"
    );
    let reply = server.get("/api/diff?session=logs/requests.jsonl&a=@t0&b=@t-1");
    assert_eq!(reply.body, printed);
}

/// Options that contradict each other are refused, and those without an effect are named.
#[test]
fn options_of_a_selection_are_not_dropped() {
    let directory = scratch();
    let server = Server::start(directory.path(), &["logs"]);
    let of = |query: &str| server.get(&format!("/api/{query}&session=logs/agent.jsonl"));
    let two = of("select?at=3&selector=@t0%20.cb");
    assert_eq!(two.status, 400, "{}", two.body);
    assert!(
        two.body.contains("the selector names a time"),
        "{}",
        two.body
    );
    assert_eq!(two.code(), of("show?at=3&where=@t0%20.cb").code());
    let both = of("select?selector=.cb&nodes=true&count=true");
    assert_eq!((both.status, both.code()), (400, "E_USAGE".to_owned()));
    let note = of("select?selector=@t0%20.cb&max_changes=1");
    let said = note.header("pactql-notes").unwrap_or_default();
    assert!(note.status == 200 && said.contains("options"), "{said}");
    let range = of("select?selector=@t-1..@t0%20.cb&max_changes=1000");
    assert_eq!(range.header("pactql-notes"), None);
}

/// Texts are cut, but neither times nor what another request names.
#[test]
fn times_and_names_are_not_cut() {
    let directory = scratch();
    let server = Server::start(directory.path(), &["logs"]);
    let tree = |more: &str| {
        let path = format!("/api/tree?session=logs/agent.jsonl{more}");
        let nodes = server.get(&path).json();
        nodes.as_array().expect("a list").clone()
    };
    let (short, whole) = (tree("&max_bytes=3"), tree(""));
    assert_ne!(short, whole);
    for (short, whole) in short.iter().zip(&whole) {
        for name in ["created_at_iso", "key", "kind", "role", "data_call_id"] {
            assert_eq!(short[name], whole[name]);
        }
    }
    assert!(whole.iter().any(|node| node["created_at_iso"].is_string()));
}

/// A log without times has positions in their place, which are shown as no date.
#[test]
fn nodes_of_a_log_without_times_have_no_date() {
    let directory = scratch();
    let nodes = |file: &str| {
        let arguments = ["select", file, "@t0 .cb", "--format", "nodes"];
        let (exit, printed) = pactql(directory.path(), &arguments);
        assert_eq!(exit, Some(0));
        printed
    };
    assert!(!nodes("logs/chat.json").contains("created_at_iso"));
    assert!(nodes("logs/agent.jsonl").contains("created_at_iso"));
}

/// A file whose name is not UTF-8 is counted, and said to be one.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_named_is_counted() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::Command;
    let directory = scratch();
    let place = directory.path();
    let name = place.join("logs").join(OsStr::from_bytes(b"b\xff.json"));
    fs::copy(place.join("logs/chat.json"), name).expect("a copy");
    let ran = Command::new(env!("CARGO_BIN_EXE_pactql"))
        .args(["sessions", "logs"])
        .current_dir(place)
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        said.contains("left out 1 file whose name is not UTF-8"),
        "{said}"
    );
    let server = Server::start(place, &["logs"]);
    let list = server.get("/api/sessions").json();
    assert_eq!((&list["total"], &list["unnamed"]), (&json!(2), &json!(1)));
}
