//! Import, export, render, verify, stats.

use super::{AGENT, CHAT, Scratch, answer, fails, pactql, with_input};
use serde_json::{Value, json};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// As the Python package opens a folder: every session by a name of its own, and one that is damaged stops no other.
#[test]
fn sessions_of_a_folder_have_different_names() {
    let scratch = Scratch::new("open-folder");
    let folder = scratch.path("in");
    std::fs::create_dir(&folder).expect("a folder");
    let text = std::fs::read_to_string(AGENT).expect("the fixture");
    let first = text.lines().next().expect("a line");
    for (name, text) in [
        ("one.json", first),
        ("one.jsonl", &*text),
        ("other.jsonl", &*text),
    ] {
        std::fs::write(format!("{folder}/{name}"), text).expect("a file");
    }
    let store = format!("{folder}/s.db");
    for (name, from) in [("a", CHAT), ("b", AGENT)] {
        answer(&["import", from, "-o", &store, "--name", name]);
    }
    let database = rusqlite::Connection::open(&store).expect("a store");
    let damage =
        "delete from snapshot where session_id = (select session_id from session where name = 'b')";
    assert!(database.execute(damage, []).expect("a statement") > 0);
    drop(database);
    let (opened, notes) = pactql::opened::open_path(folder.as_ref()).expect("sessions");
    let named = opened.iter().map(|one| {
        let found = one
            .session
            .as_ref()
            .map(|session| session.history().committed().len());
        (
            one.name.as_deref().expect("a name"),
            found.map_err(|why| why.code),
        )
    });
    assert_eq!(
        named.collect::<Vec<_>>(),
        [
            ("one", Ok(1)),
            ("one-2", Ok(6)),
            ("other", Ok(6)),
            ("s.db#a", Ok(5)),
            ("s.db#b", Err("E_STORE")),
        ]
    );
    let [note] = &notes[..] else {
        panic!("{notes:?}")
    };
    assert!(
        note.starts_with("left out s.db#b: the store is damaged: "),
        "{note}"
    );
}

#[test]
fn a_log_comes_back_from_a_session() {
    let scratch = Scratch::new("round-trip");
    let session = scratch.path("session.jsonl");
    let ran = pactql(&["import", CHAT, "-o", &session]);
    assert_eq!((ran.code, &*ran.out), (0, ""));
    assert_eq!(
        ran.err,
        "imported 1 session, 5 snapshots\n  \
         messages  understood 14 (assistant 5, system 2, tool 4, user 3), kept verbatim 0, skipped 0\n  \
         parts     understood 18 (call 4, image 1, result 4, text 9), kept verbatim 0, skipped 0\n  \
         members kept as data_*: refusal 1\n"
    );
    let log = std::fs::read_to_string(CHAT).expect("the fixture");
    assert_eq!(
        parsed(&answer(&["render", &session, "--as", "openai"])),
        parsed(&log)
    );
    // The same through pipes.
    let imported = with_input(&["import", "-"], log.as_bytes());
    assert_eq!(
        imported.out,
        std::fs::read_to_string(&session).expect("the session")
    );
    let rendered = with_input(&["render", "-", "--as", "openai"], imported.out.as_bytes());
    assert_eq!(parsed(&rendered.out), parsed(&log));
    // An imported session is canonical: exporting it changes nothing.
    assert_eq!(answer(&["export", "--jsonl", &session]), imported.out);
}

#[test]
fn several_sessions_go_to_a_directory() {
    let scratch = Scratch::new("several");
    let log: Value = parsed(&std::fs::read_to_string(CHAT).expect("the fixture"));
    let runs = scratch.write(
        "runs.json",
        json!([{"traj": log}, {"traj": []}]).to_string(),
    );
    let file = scratch.path("one.jsonl");
    let arguments = ["import", &runs, "--messages", "/*/traj", "-o", &file];
    fails(&arguments, 1, "`-o DIR`");
    assert!(!std::path::Path::new(&file).exists());
    fails(&["import", &runs, "--messages", "/*/traj"], 1, "-o DIR");
    let folder = scratch.path("sessions/");
    assert_eq!(
        pactql(&["import", &runs, "--messages", "/*/traj", "-o", &folder]).code,
        0
    );
    for (name, expected) in [("runs-1.jsonl", &log), ("runs-2.jsonl", &json!([]))] {
        let session = format!("{folder}{name}");
        assert_eq!(
            &parsed(&answer(&["render", &session, "--as", "openai"])),
            expected
        );
    }
    // A log of the same name does not overwrite the other.
    assert_eq!(pactql(&["import", CHAT, CHAT, "-o", &folder]).code, 0);
    assert!(std::path::Path::new(&format!("{folder}chat.openai-2.jsonl")).exists());
}

#[test]
fn gzip_is_unpacked_up_to_a_limit() {
    use std::io::Write;
    let scratch = Scratch::new("gzip");
    let log = std::fs::read(CHAT).expect("the fixture");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(&log).expect("memory");
    let packed = packer.finish().expect("memory");
    let path = scratch.write("log.json.gz", &packed);
    assert_eq!(answer(&["import", &path]), answer(&["import", CHAT]));
    assert_eq!(
        with_input(&["import", "-"], &packed).out,
        answer(&["import", CHAT])
    );
    fails(
        &["import", &path, "--max-input", "1K"],
        5,
        "larger than 1024",
    );
    fails(
        &["import", CHAT, "--max-input", "100"],
        5,
        "larger than 100",
    );
    let cut = scratch.write("cut.gz", &packed[..packed.len() / 2]);
    fails(&["import", &cut], 5, "gzip");
}

#[test]
fn steps_become_snapshots() {
    let scratch = Scratch::new("steps");
    let user = json!({"role": "user", "content": "go"});
    let reply = json!({"role": "assistant", "content": "ok"});
    let steps = json!({"steps": [{"in": [user]}, {"in": [user, reply, user]}]});
    let path = scratch.write("steps.json", steps.to_string());
    let session = scratch.path("session.jsonl");
    assert_eq!(
        pactql(&["import", &path, "--steps", "/steps/*/in", "-o", &session]).code,
        0
    );
    for (address, step) in [("@c1", 0), ("@t0", 1)] {
        let messages = answer(&["render", &session, "--as", "openai", "--at", address]);
        assert_eq!(parsed(&messages), steps["steps"][step]["in"]);
    }
}

#[test]
fn render_prints_requests_for_each_provider() {
    let scratch = Scratch::new("render");
    let session = json!({"cycle": 2, "meta": {"request": {"model": "m"}}, "root": {"children": [
        {"id": "s", "nodeType": "^sys", "children": [
            {"id": "f", "kind": "tool", "content": r#"{"name":"f","input_schema":{}}"#}]},
        {"id": "q", "nodeType": "^seq", "children": [{"id": "t", "nodeType": "mt", "children": [
            {"id": "u", "nodeType": "cb", "content": "hi", "created_at_ns": 1},
            {"id": "a", "nodeType": "cb", "role": "assistant", "content": "yo", "data_reply": 2,
             "created_at_ns": 2}]}]}]}});
    let path = scratch.write("session.json", session.to_string());
    for (shape, list, tool) in [
        ("openai", "messages", "function"),
        ("openai-responses", "input", "parameters"),
        ("anthropic", "messages", "input_schema"),
    ] {
        let whole = parsed(&answer(&["render", &path, "--as", shape]));
        assert_eq!(whole["model"], "m");
        assert_eq!(whole[list].as_array().map(Vec::len), Some(2), "{whole}");
        assert!(whole["tools"][0].get(tool).is_some(), "{whole}");
        // The blocks of the reply were not sent.
        let sent = answer(&["render", &path, "--as", shape, "--request", "--at", "@c2"]);
        assert_eq!(parsed(&sent)[list].as_array().map(Vec::len), Some(1));
    }
    let broken = session.to_string().replace("input_schema", "");
    let path = scratch.write("broken.json", broken.replace(r#"\"name\""#, r#"\"\""#));
    answer(&["render", &path]);
    for shape in ["openai", "openai-responses", "anthropic"] {
        fails(
            &["render", &path, "--as", shape],
            5,
            "block `f`: expected a tool definition",
        );
    }
}

#[test]
fn render_prints_the_thread_at_an_address() {
    let newest = parsed(&answer(&["render", AGENT]));
    let ids = |thread: &Value| -> Vec<String> {
        let blocks = thread.as_array().expect("a list").iter();
        blocks
            .map(|block| block["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    // Without an address the working state is rendered.
    assert_eq!(ids(&newest).last().map(String::as_str), Some("cb:plan"));
    let second = parsed(&answer(&["render", AGENT, "--at", "@c2"]));
    assert_eq!(
        ids(&second)[3..].join(" "),
        "cb:doc1 cb:u1 cb:a1 cb:c1 cb:r1 cb:a2"
    );
    fails(
        &["render", AGENT, "--at", "@t-9"],
        2,
        "E_SNAPSHOT_NOT_FOUND",
    );
    fails(&["render", AGENT, "--at", "@c40"], 2, "@c6 to @c1");
}

#[test]
fn export_is_canonical_and_stable() {
    let scratch = Scratch::new("export");
    let snapshot = answer(&["export", AGENT, "--at", "@c3"]);
    let path = scratch.write("snapshot.json", &snapshot);
    assert_eq!(answer(&["export", &path]), snapshot);
    let whole = answer(&["export", "--jsonl", "--full", AGENT]);
    let short = answer(&["export", "--jsonl", AGENT]);
    assert!(short.len() * 2 < whole.len());
    for text in [&whole, &short] {
        let path = scratch.write("session.jsonl", text);
        assert_eq!(&answer(&["export", "--jsonl", "--full", &path]), &whole);
        assert_eq!(&answer(&["export", "--jsonl", &path]), &short);
    }
    let file = scratch.path("out.jsonl");
    assert_eq!(answer(&["export", "--jsonl", AGENT, "-o", &file]), "");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), short);
    // A directory of documents is a session too.
    let folder = scratch.path("folder");
    std::fs::create_dir(&folder).expect("a directory");
    for (at, line) in whole.lines().enumerate() {
        std::fs::write(format!("{folder}/{at}.json"), line).expect("a file");
    }
    assert_eq!(answer(&["export", "--jsonl", &folder]), short);
    fails(&["export", AGENT, "--full"], 1, "--jsonl");
}

#[test]
fn verify_checks_content_hashes_and_the_export() {
    let scratch = Scratch::new("verify");
    let report = parsed(&answer(&["verify", "--json", AGENT]));
    assert_eq!(report["valid"], json!(true));
    // An export was read again, and every snapshot came back as it was.
    assert_eq!(report["export"], json!({"differs": []}));
    // Also if a counted cycle no longer follows the one before.
    let path = scratch.write(
        "cycles.jsonl",
        "{\"root\":{}}\n{\"cycle\":-5,\"root\":{}}\n{\"base\":-5,\"replace\":[],\"remove\":[]}\n",
    );
    let report = parsed(&answer(&["verify", "--json", &path]));
    assert_eq!(report["export"], json!({"differs": []}));
    let document = |hash: &str| {
        let nodes = json!([{"id": "a", "content": "x", "role": "user", "kind": "text", "content_hash": hash}]);
        json!({"root": {"children": nodes}}).to_string()
    };
    let path = scratch.write("wrong.json", document("00"));
    let ran = pactql(&["verify", &path, "--format", "json"]);
    assert_eq!(ran.code, 5);
    let report = parsed(&ran.out);
    let wrong = &report["content_hashes"]["wrong"][0];
    assert_eq!(
        (&report["valid"], &wrong["id"]),
        (&json!(false), &json!("a"))
    );
    let computed = wrong["computed"].as_str().expect("a hash");
    assert_eq!(computed.len(), 64);
    let path = scratch.write("right.json", document(computed));
    let report = parsed(&answer(&["verify", "--json", &path]));
    assert_eq!(report["content_hashes"], json!({"stored": 1, "wrong": []}));
    let text = answer(&["verify", &path, "--format", "text"]);
    assert!(text.starts_with("valid: "), "{text}");
    assert!(
        text.ends_with("0 snapshots differ when exported and read again\n"),
        "{text}"
    );
}

#[test]
fn stats_count_nodes_and_sharing() {
    let stats = parsed(&answer(&["sessions", "-v", AGENT, "--at", "@t0", "--json"]));
    assert_eq!(stats["snapshot"], "@c6");
    assert_eq!(stats["session"]["snapshots"], 6);
    assert_eq!(stats["session"]["working"], true);
    assert_eq!(stats["nodes"]["by_class"]["turn"], 4);
    let total = stats["nodes"]["total"].as_u64().expect("a number");
    let depths = stats["nodes"]["by_depth"].as_array().expect("a list");
    let sum: u64 = depths
        .iter()
        .map(|entry| entry["nodes"].as_u64().expect("a number"))
        .sum();
    assert_eq!(sum, total);
    let text = answer(&["sessions", "-v", AGENT, "--format", "text"]);
    assert!(
        text.contains("by role") && text.contains("working has"),
        "{text}"
    );
}

#[test]
fn faults_between_documents_are_reported_with_their_place() {
    let lines = b"{\"cycle\":1,\"root\":{}}\n{\"root\":{},\"cycle\":1}\n\
        {\"cycle\":2,\"base\":1,\"remove\":[\"a\"]}\n";
    let ran = with_input(&["select", "-", "@t0 *", "--format", "json"], lines);
    assert_eq!((ran.code, &*ran.out), (5, ""));
    let expected = json!({"error": {
        "code": "E_INPUT",
        "message": "invalid: standard input",
        "spans": [],
        "faults": [
            {
                "file": "standard input",
                "path": "$.cycle",
                "message": "a second document of cycle 1, the first is in line 1",
                "offset": 41,
                "line": 2,
                "column": 20,
            },
            {
                "file": "standard input",
                "path": "$.remove[0]",
                "message": "no node has the id `a`",
                "offset": 74,
                "line": 3,
                "column": 31,
            },
        ],
        "more": 0,
    }});
    assert_eq!(parsed(&ran.err), expected);
    let ran = with_input(&["sessions", "-v", "-", "--format", "text"], lines);
    assert_eq!(
        ran.err,
        "error[E_INPUT]: standard input is invalid\n  \
         2:20: $.cycle: a second document of cycle 1, the first is in line 1\n  \
         3:31: $.remove[0]: no node has the id `a`\n"
    );

    // Faults between the files of a directory name the file, like faults in one.
    let scratch = Scratch::new("between");
    let first = scratch.write("1.json", "{\"cycle\":1,\"root\":{}}");
    let second = scratch.write("2.json", "{\"root\":{},\n \"cycle\":1}");
    let third = scratch.write("3.json", "{\"cycle\":2,\"base\":7}");
    let directory = scratch.0.to_str().expect("UTF-8");
    let error = fails(
        &["sessions", "-v", directory, "--format", "json"],
        5,
        "E_INPUT",
    );
    let error = &parsed(&error)["error"];
    let message = format!("a second document of cycle 1, the first is {first}");
    assert_eq!(
        error["faults"],
        json!([
            {
                "file": second,
                "path": "$.cycle",
                "message": message,
                "offset": 21,
                "line": 2,
                "column": 10,
            },
            {
                "file": third,
                "path": "$.base",
                "message": "no earlier document has cycle 7",
                "offset": 18,
                "line": 1,
                "column": 19,
            },
        ])
    );
}

#[test]
fn bad_inputs_are_reported_with_their_place() {
    let scratch = Scratch::new("bad");
    for command in [
        &["render"][..],
        &["export"],
        &["verify"],
        &["sessions", "-v"],
    ] {
        let of = |path| [command, &[path]].concat();
        fails(&of("no/such/session.jsonl"), 4, "no/such/session.jsonl");
        let path = scratch.write("cut.json", "{\"root\": {\"children\": [");
        fails(&of(&path), 5, "E_INPUT");
    }
    fails(&["import", "no-such.json"], 4, "no-such.json");
    let path = scratch.write(
        "two.json",
        r#"{"root":{"children":[{"id":"a","ttl":-1},{"id":"a"}]}}"#,
    );
    let message = fails(&["sessions", "-v", &path, "--format", "text"], 5, "ttl");
    assert!(message.contains("children[1]"), "{message}");
    let error = fails(&["sessions", "-v", &path, "--format", "json"], 5, "E_INPUT");
    let error = parsed(&error);
    assert_eq!(error["error"]["faults"].as_array().map(Vec::len), Some(2));
    assert_eq!(error["error"]["faults"][0]["line"], 1);
    let chats = scratch.write(
        "chats.jsonl",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n\
         {\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}\n",
    );
    let message = fails(&["render", &chats], 5, "E_INPUT");
    assert!(
        message
            .contains("is a chat log of 2 sessions, and one is expected\nhelp: name one of them:"),
        "{message}"
    );
    let second = format!("{chats}#chats-2");
    assert!(answer(&["render", &second]).contains("\"b\""));
    assert!(answer(&["grep", "-l", "b", &second]).contains("chats-2"));
    fails(
        &["render", &format!("{chats}#none")],
        4,
        "no session `none`",
    );
    let listed = answer(&["sessions", &chats, "--json"]);
    let listed = listed.lines().map(|line| parsed(line)["name"].clone());
    assert_eq!(listed.collect::<Vec<Value>>(), ["chats-1", "chats-2"]);
    for arguments in [
        &["render", "missing", "--format", "json"][..],
        &["export", "missing", "--format", "json"],
        &["import", "missing", "--format", "json"],
        &["verify", "missing", "--format", "json"],
    ] {
        let error = parsed(&fails(arguments, 4, "missing"));
        assert_eq!(error["error"]["code"], "E_MISSING");
    }
    // A session without snapshots has nothing to show.
    let empty = scratch.path("empty");
    std::fs::create_dir(&empty).expect("a directory");
    fails(&["render", &empty], 5, "has no logs and no sessions");
    fails(
        &["import", CHAT, "-o", "no/such/folder/x.jsonl"],
        6,
        "no/such/folder",
    );
}

#[test]
fn an_import_reports_in_json_too() {
    let ran = pactql(&["import", CHAT, "--format", "json"]);
    let report = parsed(&ran.err);
    assert_eq!(report["messages"]["understood"]["assistant"], 5);
    assert_eq!(report["parts"]["kept_verbatim"], json!({}));
    assert_eq!(report["members_kept"], json!({"refusal": 1}));
}

#[test]
fn real_conversations_are_imported_and_queried() {
    if crate::cases::left_to_ci() {
        return;
    }
    let root = std::env::var("PACTQL_DATA")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data").to_owned());
    let log = format!("{root}/tau-bench-airline/gpt-4o-airline.json.gz");
    if !std::path::Path::new(&log).exists() {
        println!("skipped: no real sessions at {log}");
        return;
    }
    let scratch = Scratch::new("real");
    let folder = scratch.path("sessions/");
    let ran = pactql(&["import", &log, "--messages", "/*/traj", "-o", &folder]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err
            .starts_with("imported 200 sessions, 2454 snapshots\n"),
        "{}",
        ran.err
    );
    let mut sessions: Vec<String> = std::fs::read_dir(&folder)
        .expect("a directory")
        .map(|entry| {
            entry
                .expect("an entry")
                .path()
                .to_str()
                .expect("UTF-8")
                .to_owned()
        })
        .collect();
    sessions.sort();
    let mut arguments = vec![
        "select",
        "-e",
        "@t0 ^seq .mt .mc .cb[kind='call']",
        "--count",
        "--all",
        "--json",
    ];
    arguments.extend(sessions.iter().map(String::as_str));
    let counts = answer(&arguments);
    let calls: u64 = counts
        .lines()
        .map(|line| parsed(line)["count"].as_u64().expect("a count"))
        .sum();
    assert_eq!((counts.lines().count(), calls), (200, 1164));
}

/// Each word names its session by itself, whatever others there are; what is shown of two of one name differs.
#[test]
fn sessions_of_one_log_are_named_beside_each_other() {
    let scratch = Scratch::new("named-beside");
    let run = |text: &str| json!({"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]});
    let runs = json!([run("a"), run("b"), run("c")]).to_string();
    let paths = ["one", "two"].map(|folder| {
        let folder = scratch.path(folder);
        std::fs::create_dir(&folder).expect("a folder");
        let path = format!("{folder}/runs.json");
        std::fs::write(&path, &runs).expect("a file");
        path
    });
    let [one, two] = paths.map(|path| [1, 3].map(|at| format!("{path}#runs-{at}")));
    let counts = |all: &[&str]| answer(&[&["select", "-c", "-e", ".cb"], all].concat());
    assert_eq!(counts(&[&one[0], &one[1]]), "runs-1\t2\nruns-3\t2\n");
    assert_eq!(counts(&[&one[1], &two[1]]), "runs-3\t2\nruns-3-2\t2\n");
    let diff = answer(&["diff", &one[0], &two[1]]);
    assert!(diff.contains("runs-1") && diff.contains("runs-3"), "{diff}");
}

/// A session that only has what waits for a reply stops no other.
#[test]
fn sessions_without_a_commit_are_left_out() {
    let scratch = Scratch::new("without-commit");
    let folder = scratch.path("");
    let user = json!({"role": "user", "content": "question"});
    let reply = json!({"role": "assistant", "content": "answer"});
    std::fs::write(format!("{folder}/waits.jsonl"), format!("{user}\n")).expect("a file");
    std::fs::write(
        format!("{folder}/whole.jsonl"),
        format!("{user}\n{reply}\n"),
    )
    .expect("a file");
    for (words, expected) in [
        (&["select", &folder, "@t0 .cb", "-c"][..], "2"),
        (
            &["top", &folder, "--at", "@t0", "--by", "role"],
            "assistant",
        ),
        (&["grep", "question", &folder, "--at", "@t0", "-c"], "1"),
        (&["tokens", &folder, "--at", "@t0"], "answer"),
    ] {
        let ran = pactql(words);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        let said = "note: left out 1 session without such a snapshot: ";
        assert!(
            ran.err.contains(said) && ran.err.contains("waits"),
            "{words:?}: {}",
            ran.err
        );
        assert!(
            ran.out.contains(expected) || words[0] == "tokens",
            "{words:?}: {}",
            ran.out
        );
    }
    // Where no session has it, that is an error.
    let alone = format!("{folder}/waits.jsonl");
    fails(&["select", &alone, "@t0 .cb"], 2, "E_SNAPSHOT_NOT_FOUND");
}

/// Two names that are one path would be one file.
#[test]
fn no_session_is_exported_over_another() {
    let scratch = Scratch::new("export-one-path");
    let (store, out) = (scratch.path("s.db"), scratch.path("out"));
    for name in ["a/b", "a//b"] {
        answer(&["import", AGENT, "-o", &store, "--name", name]);
    }
    fails(
        &["export", &store, "-o", &out],
        1,
        "a name that no file can have",
    );
    assert!(!std::path::Path::new(&out).exists());
}
