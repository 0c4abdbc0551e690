//! Several sessions and several selectors, and what is shown of contents.

use super::{AGENT, CHAT, Scratch, answer, fails, pactql};

/// A directory with two sessions: the fixtures.
fn runs(scratch: &Scratch) -> String {
    let folder = scratch.path("runs");
    std::fs::create_dir(&folder).expect("a directory");
    for (from, to) in [(AGENT, "a.jsonl"), ("fixtures/greenhouse.jsonl", "b.jsonl")] {
        let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(from);
        std::fs::copy(from, format!("{folder}/{to}")).expect("a copy");
    }
    folder
}

/// LANGUAGE §10: what is said of several sessions is true of all of them, or names the one it is true of.
#[test]
fn why_several_sessions_have_nothing() {
    let scratch = Scratch::new("many-nothing");
    let runs = runs(&scratch);
    let store = scratch.path("runs.db");
    answer(&["import", &runs, "-o", &store]);
    let why = |sessions: &str, selector: &str| {
        let ran = pactql(&["select", sessions, selector]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.err
    };
    for sessions in [&runs, &store] {
        // The first has no such kind.
        let found = why(sessions, "@t0 .cb[kind=warnin]");
        assert!(
            found.contains("did you mean `[kind='warning']`?"),
            "{found}"
        );
        assert!(
            found.contains("doc 1") && found.contains("warning 1"),
            "{found}"
        );
        let found = why(sessions, ".cb[kind=call][role=user]");
        let first = ["a.jsonl, ", "#a, "].map(|name| format!("{name}`.cb` matches"));
        assert!(first.iter().any(|first| found.contains(first)), "{found}");
    }
    let found = why(&store, "@c99 .cb");
    assert!(found.contains("#a, no such snapshot"), "{found}");
}

/// RUNTIME §7: with JSON Lines in a directory, each file is a session.
#[test]
fn a_directory_of_sessions_is_several() {
    let scratch = Scratch::new("many-directory");
    let runs = runs(&scratch);
    let select = |more: &[&str]| answer(&[&["select", &runs], more].concat());
    assert_eq!(
        select(&[".cb[kind='image']", "--format", "ids"]),
        format!("{runs}/a.jsonl\tcb:i1\n{runs}/b.jsonl\timg5\n")
    );
    assert_eq!(
        select(&[".cb[kind='image']", "-l"]),
        format!("{runs}/a.jsonl\n{runs}/b.jsonl\n")
    );
    assert_eq!(select(&["#persona", "-l"]), format!("{runs}/a.jsonl\n"));
    assert_eq!(
        select(&["#persona", "--list", "--format", "json"]),
        format!("[\"{runs}/a.jsonl\"]\n")
    );
    let count = ["#persona", "--count", "--format", "ids"];
    assert_eq!(select(&count), format!("{runs}/a.jsonl\t1\n"));
    assert_eq!(
        select(&[&count[..], &["--all"]].concat()),
        format!("{runs}/a.jsonl\t1\n{runs}/b.jsonl\t0\n")
    );
    fails(&["render", &runs], 1, "is a directory of");
    // Of one session the number is always printed.
    let none = ["select", AGENT, "#none", "--count"];
    assert_eq!(answer(&none), "0\n");
}

/// One of several sessions that lacks the snapshots is left out, with a note; alone it is an error.
#[test]
fn a_session_without_commits_does_not_stop_the_others() {
    let scratch = Scratch::new("many-young");
    let runs = runs(&scratch);
    let young = format!("{runs}/young.json");
    let log = r#"[{"role": "user", "content": "Where is my parcel?"}]"#;
    std::fs::write(&young, log).expect("a log");
    for command in [
        &["steps", "--over", "@history"][..],
        &["prefix"],
        &["show", "--at", "@t0"],
    ] {
        let ran = pactql(&[command, &[&runs]].concat());
        assert_eq!(ran.code, 0, "{command:?}: {}", ran.err);
        assert_eq!(
            ran.err
                .matches("note: left out 1 session without such a snapshot: young")
                .count(),
            1,
            "{command:?}: {}",
            ran.err
        );
        fails(&[command, &[&young]].concat(), 2, "no such snapshot");
    }
    // Without a range there is the cycle in progress.
    let steps = answer(&["steps", &young]);
    assert!(steps.ends_with("  no reply to 1 text\n"), "{steps}");
    // A condition is one of every session.
    let conditions = scratch.path("conditions.txt");
    std::fs::write(&conditions, "some @t0 .cb\n").expect("a file");
    assert_ne!(pactql(&["assert", &conditions, &runs]).code, 0);
}

#[test]
fn several_selectors_are_labelled() {
    let two = ["-e", "@t0 .cb[kind='image']", "-e", "@t0 #summary"];
    let run = |more: &[&str]| answer(&[&["select", AGENT][..], &two, more].concat());
    assert_eq!(
        run(&["--json"]),
        "{\"selector\":\"@t0 .cb[kind='image']\",\"result\":[\"cb:i1\"]}\n\
         {\"selector\":\"@t0 #summary\",\"result\":[\"cb:sum1\"]}\n"
    );
    assert_eq!(
        run(&["--format", "ids"]),
        "@t0 .cb[kind='image']\tcb:i1\n@t0 #summary\tcb:sum1\n"
    );
    let nodes = run(&["--format", "nodes"]);
    assert!(
        nodes.contains(",\"selector\":\"@t0 #summary\",\"snapshot\":\"@c6\""),
        "{nodes}"
    );
    let table = run(&["--format", "table"]);
    assert!(table.starts_with("@t0 .cb[kind='image']:\nid "), "{table}");
    // One mistake is reported before anything is read.
    let wrong = ["select", "missing.jsonl", "-e", "@t0 *", "-e", "@t0 .cb["];
    fails(&wrong, 2, "E_SELECTOR_INVALID");
}

#[test]
fn nothing_found_has_an_exit_code_if_asked() {
    let scratch = Scratch::new("many-empty");
    let code = |arguments: &[&str]| pactql(arguments).code;
    let empty = ["select", AGENT, "@t0 #none"];
    assert_eq!(code(&empty), 0);
    assert_eq!(code(&[&empty[..], &["--fail-if-empty"]].concat()), 8);
    assert_eq!(code(&["select", AGENT, "@t0 *", "--fail-if-empty"]), 0);
    let one = ["-e", "@t0 #none", "-e", "@t0 *", "--fail-if-empty"];
    assert_eq!(code(&[&["select", AGENT][..], &one].concat()), 0);
    let file = |text: &str| scratch.write("selectors.txt", text);
    for (text, expected) in [
        ("@t0 #none\n", 8),
        ("@t0 #none\n@t0 *\n", 0),
        ("@t0 #none\n[\n", 2),
    ] {
        let path = file(text);
        let run = ["select", AGENT, "--file", &path, "--fail-if-empty"];
        assert_eq!(code(&run), expected, "{text}");
    }
    let range = ["select", AGENT, "@t0..@t-1 #none", "--fail-if-empty"];
    assert_eq!(code(&range), 8);
}

/// RUNTIME §7: an output that exists needs `--force`, one that is the input is refused.
#[test]
fn outputs_replace_nothing_unasked() {
    let scratch = Scratch::new("many-force");
    let (out, folder) = (scratch.path("out.jsonl"), scratch.path("folder/"));
    let import = ["import", CHAT, "-o", &out];
    assert_eq!(pactql(&import).code, 0);
    fails(&import, 1, "exists\nhelp: `--force` replaces it");
    assert_eq!(pactql(&[&import[..], &["--force"]].concat()).code, 0);
    let several = ["import", CHAT, CHAT, "-o", &folder];
    assert_eq!(pactql(&several).code, 0);
    fails(&several, 1, "chat.openai.jsonl exists");
    assert_eq!(pactql(&[&several[..], &["--force"]].concat()).code, 0);
    // A new file in a directory that is read would be one of its documents.
    let documents = scratch.path("documents");
    std::fs::create_dir(&documents).expect("a directory");
    std::fs::write(format!("{documents}/1.json"), r#"{"root":{"id":"r"}}"#).expect("a file");
    let inside = format!("{documents}/2.json");
    let export = ["export", &documents, "-o", &inside];
    fails(&export, 1, "is in the input");
    assert!(!std::path::Path::new(&inside).exists());
    let export = ["export", "--jsonl", &out, "-o", &out, "--force"];
    fails(&export, 1, "is the input");
    #[cfg(unix)]
    {
        let link = scratch.path("link.jsonl");
        std::os::unix::fs::symlink(&out, &link).expect("a link");
        let export = ["export", "--jsonl", &out, "-o", &link, "--force"];
        fails(&export, 1, "is the input");
    }
    answer(&["export", "--jsonl", &out, "-o", "/dev/null"]);
}

#[test]
fn previews_show_the_tool_and_the_match() {
    let table = |selector: &str, more: &[&str]| {
        answer(&[&["select", AGENT, selector, "--format", "table"][..], more].concat())
    };
    let calls = table("@t0 .cb[data_call_name='book_pickup']", &[]);
    let named = calls
        .lines()
        .skip(1)
        .all(|line| line.contains("book_pickup {"));
    assert!(named, "{calls}");
    // A result that names only its call is shown with the name of the call's tool.
    let scratch = Scratch::new("many-tools");
    let session = scratch.write(
        "s.json",
        r#"{"root":{"children":[
        {"id":"c","nodeType":"cb","kind":"call","data_call_id":"1","data_call_name":"look"},
        {"id":"r","nodeType":"cb","kind":"result","data_call_id":"1","content":"seen"}]}}"#,
    );
    let result = answer(&["select", &session, "@t0 [id=r]", "--format", "table"]);
    assert!(result.ends_with("look seen\n"), "{result}");
    let shown = table("@t0 .cb[content~'workshop']", &["--color", "always"]);
    assert!(shown.contains("\u{1b}[1;31mworkshop\u{1b}[0m"), "{shown}");
    let plain = table("@t0 .cb[content~'workshop']", &[]);
    assert!(
        plain.contains("workshop") && !plain.contains('\u{1b}'),
        "{plain}"
    );
    let tree = answer(&[
        "select",
        AGENT,
        "@t0 .cb[kind='call']",
        "--format",
        "tree",
        "--color",
        "always",
    ]);
    assert!(tree.contains("\u{1b}[35mbook_pickup\u{1b}[0m"), "{tree}");
    let widest = table("@t0 *", &[]);
    let widest = widest.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(120), "{widest:?}");
}

/// INSPECT §1: a directory imports whole, a session a log, also one with directories of projects in it.
#[test]
fn a_directory_of_logs_imports_whole() {
    let scratch = Scratch::new("many-logs");
    let logs = scratch.path("logs");
    let copy = |from: &str, to: &str| {
        let to = std::path::Path::new(&logs).join(to);
        std::fs::create_dir_all(to.parent().expect("a parent")).expect("a directory");
        let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(from);
        std::fs::copy(from, to).expect("a copy");
    };
    copy(CHAT, "top.json");
    let session = "tests/cases/logs/claude-code/synthetic-session.jsonl";
    copy(session, "project/one.jsonl");
    copy(
        "tests/cases/logs/codex/synthetic-rollout.jsonl",
        "2026/11/two.jsonl",
    );
    copy(CHAT, ".hidden/three.json");
    let store = scratch.path("all.db");
    answer(&["import", &logs, "-o", &store]);
    let listed = answer(&["sessions", &store, "--format", "json"]);
    let listed = listed.lines().map(|line| {
        let session: serde_json::Value = serde_json::from_str(line).expect("JSON");
        session["name"].as_str().expect("a name").to_owned()
    });
    let names: Vec<String> = listed.collect();
    for name in ["2026/11/two", "project/one", "top"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    assert!(
        !names.iter().any(|name| name.contains("three")),
        "{names:?}"
    );

    let files = scratch.path("files/");
    answer(&["import", &logs, "-o", &files]);
    for name in &names {
        let file = format!("{files}{name}.jsonl");
        assert_eq!(
            answer(&["select", &file, "@t0 .cb", "--format", "ids"])
                .lines()
                .count(),
            answer(&[
                "select",
                &format!("{store}#{name}"),
                "@t0 .cb",
                "--format",
                "ids"
            ])
            .lines()
            .count(),
            "{name}"
        );
    }
}

/// What a log calls its subagents is no path out of the directory.
#[test]
fn names_in_logs_stay_in_the_directory() {
    let scratch = Scratch::new("many-escape");
    let line = |uuid: &str, parent: &str, kind: &str, side: bool| {
        format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"{uuid}\",\"parentUuid\":{parent},\"sessionId\":\"s\",\
             \"isSidechain\":{side},\"agentId\":\"../../../out\",\"timestamp\":\"2026-01-01T00:00:00Z\",\
             \"message\":{{\"role\":\"{kind}\",\"content\":\"x\"}}}}\n"
        )
    };
    let log = [
        line("a", "null", "user", false),
        line("b", "\"a\"", "assistant", false),
        line("c", "null", "user", true),
        line("d", "\"c\"", "assistant", true),
    ];
    let path = scratch.path("in/deep/log.jsonl");
    std::fs::create_dir_all(scratch.path("in/deep")).expect("a directory");
    std::fs::write(&path, log.concat()).expect("a log");
    let output = scratch.path("in/deep/made/");
    answer(&["import", &path, "-o", &output]);
    assert!(std::path::Path::new(&format!("{output}log.jsonl")).is_file());
    let agent = format!("{output}log/_/_/_/out.jsonl");
    assert!(std::path::Path::new(&agent).is_file());
    assert!(!std::path::Path::new(&scratch.path("out.jsonl")).exists());
}
