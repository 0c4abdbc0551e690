//! Stores on the command line: addresses, reading, writing, and sessions as wholes.

use super::{AGENT, CHAT, Ran, Scratch, answer, fails, pactql};
use pactql::Store;
use serde_json::{Value, json};

/// What the clock always reads.
const NOW: &str = "1700000000000000000";

/// The fixtures that are sessions, and their names in a store.
const SESSIONS: [(&str, &str); 2] = [
    (AGENT, "support-agent"),
    ("fixtures/greenhouse.jsonl", "greenhouse"),
];

/// A store of the fixtures: `chat.openai`, `greenhouse` and `support-agent`.
fn store(scratch: &Scratch) -> String {
    let path = scratch.path("agents.db");
    answer(&[
        "import",
        AGENT,
        "fixtures/greenhouse.jsonl",
        CHAT,
        "-o",
        &path,
    ]);
    path
}

#[test]
fn a_store_is_not_made_in_a_directory_that_is_not_there() {
    let scratch = Scratch::new("no-directory");
    let path = scratch.path("nodir/x.db");
    let said = fails(&["import", AGENT, "-o", &path], 4, "there is no directory");
    assert!(
        said.contains("nodir\n") && !said.contains("who may"),
        "{said}"
    );
}

/// The output of a command that writes, at a fixed time.
#[track_caller]
fn done(arguments: &[&str]) -> String {
    answer(&[arguments, &["--clock", NOW]].concat())
}

pub(super) fn names(store: &str) -> Vec<String> {
    let lines = answer(&["sessions", store, "--json"]);
    let name = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["name"].as_str().expect("a name").to_owned()
    };
    lines.lines().map(name).collect()
}

#[test]
fn what_is_imported_is_exported_byte_for_byte() {
    let scratch = Scratch::new("store-round-trip");
    let store = store(&scratch);
    for (file, name) in SESSIONS {
        let session = format!("{store}#{name}");
        let whole = answer(&["export", file, "--jsonl"]);
        assert_eq!(answer(&["export", &session]), whole, "{name}");
        assert_eq!(answer(&["export", &session, "--jsonl"]), whole, "{name}");
        let full = answer(&["export", file, "--jsonl", "--full"]);
        assert_eq!(answer(&["export", &session, "--full"]), full, "{name}");
        for at in ["@t0", "@t-2"] {
            let one = answer(&["export", file, "--at", at]);
            assert_eq!(answer(&["export", &session, "--at", at]), one, "{name}");
        }
    }
    // A log is the session that a file has of it.
    let file = scratch.path("chat.jsonl");
    answer(&["import", CHAT, "-o", &file]);
    let whole = answer(&["export", &file, "--jsonl"]);
    let session = format!("{store}#chat.openai");
    assert_eq!(answer(&["export", &session]), whole);
    // All of them, as files.
    let folder = scratch.path("out");
    answer(&["export", &store, "-o", &folder]);
    for (file, name) in SESSIONS {
        let written = std::fs::read_to_string(format!("{folder}/{name}.jsonl")).expect("a file");
        assert_eq!(written, answer(&["export", file, "--jsonl"]));
    }
    fails(&["export", &store, "-o", &folder], 1, "exists");
    answer(&["export", &store, "-o", &folder, "--force"]);
    // And back, from the directory.
    let again = scratch.path("again.db");
    answer(&["import", &folder, "-o", &again]);
    assert_eq!(names(&again), names(&store));
    assert_eq!(
        answer(&["export", &format!("{again}#greenhouse")]),
        answer(&["export", &format!("{store}#greenhouse")])
    );
}

/// A file without a snapshot is read by no command, so none is written.
#[test]
fn a_session_without_snapshots_is_not_exported() {
    let scratch = Scratch::new("export-empty");
    let store = store(&scratch);
    drop(Store::open(&store).unwrap().write("new").unwrap());
    let (file, folder) = (scratch.path("new.jsonl"), scratch.path("out"));
    let new = format!("{store}#new");
    for arguments in [&["--jsonl"][..], &["-o", &file], &["--seal"], &[]] {
        let arguments = [&["export", &new], arguments].concat();
        let said = fails(&arguments, 2, "E_SNAPSHOT_NOT_FOUND");
        assert!(said.contains("there is nothing to write"), "{said}");
    }
    assert!(!std::fs::exists(&file).unwrap());
    let ran = pactql(&["export", &store, "-o", &folder]);
    assert_eq!(ran.code, 0);
    assert_eq!(ran.err, "note: left out 1 session without snapshots: new\n");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
}

#[test]
fn no_file_is_written_compressed() {
    let scratch = Scratch::new("export-compressed");
    for ending in ["gz", "zst"] {
        let file = scratch.path(&format!("x.jsonl.{ending}"));
        let said = fails(
            &["export", AGENT, "--jsonl", "-o", &file],
            1,
            "not written compressed",
        );
        assert!(
            said.contains(&format!("write it to {}", scratch.path("x.jsonl"))),
            "{said}"
        );
        assert!(!std::fs::exists(&file).unwrap());
    }
}

#[test]
fn a_store_is_not_in_memory() {
    fails(
        &["import", AGENT, "-o", "sqlite::memory:"],
        6,
        "a store is a file",
    );
    assert!(Store::open(":memory:").is_err() && !std::fs::exists(":memory:").unwrap());
}

/// Every command that reads answers of `STORE#name` what it answers of the file.
#[test]
fn reading_commands_answer_as_for_files() {
    let scratch = Scratch::new("store-read");
    let store = store(&scratch);
    for (file, name) in SESSIONS {
        let session = format!("{store}#{name}");
        let id = match name {
            "greenhouse" => "call1",
            _ => "cb:u1",
        };
        for command in [
            &["select", "--json", "S", "@t0 .cb[kind='call']"][..],
            &[
                "select",
                "--json",
                "S",
                "@history .cb[kind='call']",
                "--include-content",
            ],
            &["select", "S", ".cb", "--format", "table"],
            &["select", "S", "@* .cb", "--format", "nodes"],
            &[
                "select", "--json", "S", "@t0 .cb", "--budget", "100", "--query", "refund",
            ],
            &[
                "select", "--json", "S", "-e", "@t0 .cb", "-e", "@t-1 .cb", "--count",
            ],
            &["explain", "S", "@t0 .cb[kind='call']"],
            &["diff", "--json", "S", "@t-1", "@t0", "--content", "--moves"],
            &["diff", "--json", "S", "@t0", "working"],
            &["steps", "--changes", "S"],
            &[
                "steps",
                "--changes",
                "S",
                "--where",
                ".cb",
                "--format",
                "text",
            ],
            &["blame", "--json", "S", id],
            &["render", "S"],
            &["render", "S", "--as", "openai", "--at", "@t-1", "--request"],
            &["edit", "refs", "S"],
            &["edit", "attempts", "S"],
        ] {
            let of = |session: &str| {
                let words = command.iter().map(|word| match *word {
                    "S" => session.to_owned(),
                    word => word.to_owned(),
                });
                let words: Vec<String> = words.collect();
                let ran = pactql(&words.iter().map(String::as_str).collect::<Vec<_>>());
                // The strategy depends on the segments, which the snapshots of a file share otherwise.
                let plan = ran.out.split("\nstrategy ").next().unwrap_or_default();
                (ran.code, plan.to_owned(), ran.err.replace(session, "S"))
            };
            assert_eq!(of(&session), of(file), "{name} {command:?}");
        }
        let stats = |session: &str| -> Value {
            serde_json::from_str(&answer(&["sessions", "-v", session, "--json"])).expect("JSON")
        };
        let (of_store, of_file) = (stats(&session), stats(file));
        assert_eq!(of_store["nodes"], of_file["nodes"]);
        let ran = pactql(&["verify", &session, "--format", "text"]);
        assert!(
            ran.code == 0 && ran.out.starts_with("valid: "),
            "{}",
            ran.out
        );
        assert_eq!(
            of_store["session"]["snapshots"],
            of_file["session"]["snapshots"]
        );
    }
}

/// STORE §4: many sessions in byte order of names, only those with an answer.
#[test]
fn many_sessions_answer_in_order() {
    let scratch = Scratch::new("store-many");
    let store = store(&scratch);
    for name in ["b", "B", "a/1", "a/2"] {
        done(&["edit", "new", &format!("{store}#{name}")]);
    }
    let select = |which: &str, more: &[&str]| {
        let address = format!("{store}{which}");
        answer(&[&["select", &address], more].concat()).replace(&store, "S")
    };
    let calls = "@t0 .cb[kind='call']";
    assert_eq!(
        select("", &[calls, "--count", "--json"]),
        "{\"session\":\"S#chat.openai\",\"count\":4}\n\
         {\"session\":\"S#greenhouse\",\"count\":3}\n\
         {\"session\":\"S#support-agent\",\"count\":4}\n"
    );
    assert_eq!(select("#g*", &[calls, "-l"]), "S#greenhouse\n");
    assert_eq!(select("#*", &["#persona", "-l"]), "S#support-agent\n");
    assert_eq!(
        select("", &["#persona", "-l", "--format", "json"]),
        "[\"S#support-agent\"]\n"
    );
    let all = select("", &["#persona", "--count", "--all", "--format", "ids"]);
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(
        lines,
        [
            "S#B\t0",
            "S#a/1\t0",
            "S#a/2\t0",
            "S#b\t0",
            "S#chat.openai\t0",
            "S#greenhouse\t0",
            "S#support-agent\t1"
        ]
    );
    // Several selectors of one session come together.
    let two = [
        "-e",
        "#persona",
        "-e",
        "@t0 .cb[kind='image']",
        "--format",
        "ids",
    ];
    let two = select("", &two);
    let labels = two
        .lines()
        .map(|line| line.rsplit_once('\t').expect("an id").0);
    assert_eq!(
        labels.collect::<Vec<_>>(),
        [
            "S#chat.openai\t@t0 .cb[kind='image']",
            "S#support-agent\t#persona",
            "S#support-agent\t@t0 .cb[kind='image']",
        ]
    );
    // `*` does not stop at `/`.
    for glob in ["#a/*", "#a*"] {
        let ids = select(glob, &["^ah", "--format", "ids"]);
        assert_eq!(ids.lines().count(), 2, "{glob}");
    }
    let ran = pactql(&["select", "--json", &format!("{store}#z*"), "^ah"]);
    assert_eq!((ran.code, &*ran.out), (0, ""));
    assert!(ran.err.contains("no session of"), "{}", ran.err);
    // Files and stores together, in the order given.
    let mixed = answer(&["select", "--json", AGENT, &store, "#persona", "--count"]);
    assert_eq!(mixed.lines().count(), 2, "{mixed}");
    assert!(
        mixed.starts_with(&format!("{{\"session\":\"{AGENT}\"")),
        "{mixed}"
    );
    // Nothing found says why, as for files.
    let none = pactql(&["select", "--json", &store, "#none", "--fail-if-empty"]);
    assert_eq!((none.code, &*none.out), (8, ""));
    assert!(
        none.err.contains("nothing was found in 7 sessions"),
        "{}",
        none.err
    );
    // Pruned by the store before any session is opened.
    let explained = answer(&["explain", &store, "@t0 #persona", "--analyze"]);
    assert!(
        explained.ends_with(
            "answered by  one statement: the database can say the selector\n\
             sessions     7\ncandidates   1\nmatched      1\nrows         1\n"
        ),
        "{explained}"
    );
    let json = answer(&["explain", &store, "@t0 #persona", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let by = "one statement: the database can say the selector";
    assert_eq!(
        json["store"],
        json!({"sessions": 7, "candidates": 1, "answered_by": by})
    );
    let range = answer(&["explain", &store, "@history .cb"]);
    let by = "\nanswered by  loaded sessions: nodes or differences are wanted\n";
    assert!(range.contains(by), "{range}");
    answer(&["bench", &store, "-e", ".cb", "--duration", "0.01"]);
    // Options of a range.
    let range = select(
        "#support-agent*",
        &["@history .cb", "--max-changes", "1", "--stats", "--json"],
    );
    assert!(range.contains("\"stats\""), "{range}");
}

/// Mutations of a session in a store leave the bytes that they leave in a file.
#[test]
fn writing_is_the_same_as_in_a_file() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("store-write");
    let (file, store) = (scratch.path("s.jsonl"), scratch.path("agents.db"));
    let session = format!("{store}#team/s");
    let steps: &[&[&str]] = &[
        &["edit", "new", "S"],
        &[
            "edit",
            "add",
            "S",
            "^sys",
            "block:text { id=rules, key=rules } \"Be brief.\"",
        ],
        &[
            "edit",
            "add",
            "S",
            "^ah",
            "block:text { id=q1, role=user } \"Where?\"",
        ],
        &["edit", "refs", "S", "add", "rules", "#rules"],
        &["edit", "attempts", "S", "begin", "--as", "openai"],
        &[
            "edit",
            "attempts",
            "S",
            "end",
            "--tokens-in",
            "3",
            "--tokens-out",
            "4",
        ],
        &["edit", "commit", "S"],
        &[
            "edit",
            "add",
            "S",
            "^ah",
            "block:doc { id=d1, ttl=1 } \"A page.\"",
        ],
        &["edit", "update", "S", "{id='d1'}", "priority=5"],
        &["render", "S"],
        &["edit", "commit", "S", "--format", "json"],
        &["edit", "add", "S", "^ah", "block:text { id=q2 } \"And?\""],
        &[
            "edit",
            "replace",
            "S",
            "{id='q2'}",
            "block:text { id=q3 } \"And now?\"",
        ],
        &["edit", "move", "S", "{id='q3'}", "^sys"],
        &["edit", "attempts", "S", "begin", "--as", "anthropic"],
        &["edit", "attempts", "S", "end", "--error", "too late"],
        &["edit", "attempts", "S"],
        &["edit", "discard", "S"],
        &[
            "edit",
            "compact",
            "S",
            "^seq .mt:depth(2-9)",
            "block:summary { id=sum } \"They ask.\"",
        ],
        &["edit", "add", "S", "^ah", "block:text { id=q4 } \"Last.\""],
        &["edit", "commit", "S", "--prune", "seq:tokens=1"],
        &["render", "S", "--as", "openai", "--request", "--at", "@t0"],
        &["render", "S", "--as", "openai", "--request", "--at", "@c1"],
        &["edit", "add", "S", "^ah", "block:text { id=q5 } \"More.\""],
        &["edit", "remove", "S", "{id='q5'}"],
        &["edit", "refs", "S"],
        &["edit", "refs", "S", "drop", "rules"],
        &["edit", "add", "S", "^ah", "block:text { id=q6 } \"Kept.\""],
    ];
    for step in steps {
        let on = |session: &str| {
            let mut words: Vec<&str> = step.to_vec();
            let at = words.iter().position(|word| *word == "S");
            words[at.expect("a session")] = session;
            if step[0] != "render" {
                words.extend(["--clock", NOW]);
            }
            let ran = pactql(&words);
            assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
            (ran.out, ran.err)
        };
        assert_eq!(on(&file), on(&session), "{step:?}");
        assert_eq!(
            answer(&["export", &file, "--jsonl"]),
            answer(&["export", &session]),
            "after {step:?}"
        );
    }
    // From a store to a file and to another session, which leaves this one.
    let before = answer(&["export", &session]);
    let (copy, other) = (scratch.path("copy.jsonl"), format!("{store}#copy"));
    for to in [&copy, &other] {
        done(&[
            "edit",
            "add",
            &session,
            "^ah",
            "block:text { id=z } \"z\"",
            "-o",
            to,
        ]);
    }
    assert_eq!(answer(&["export", &session]), before);
    assert_eq!(
        answer(&["export", &copy, "--jsonl"]),
        answer(&["export", &other])
    );
    for (from, to) in [(&session, &copy), (&copy, &other)] {
        let again = ["edit", "add", from, "^ah", "{\"id\":\"y\"}", "-o", to];
        fails(&again, 1, "error[E_");
    }
    assert_eq!(
        answer(&["verify", &store, "--format", "text"])
            .lines()
            .count(),
        1
    );
}

#[test]
fn forks_share_a_store_or_leave_it() {
    let scratch = Scratch::new("store-fork");
    let store = store(&scratch);
    let at = |name: &str| format!("{store}#{name}");
    let file = scratch.path("fork.jsonl");
    done(&["edit", "fork", AGENT, "@t-2", "-o", &file]);
    let documents = |session: &str| {
        let text = answer(&["export", session, "--jsonl"]);
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("{\"runtime\""));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    done(&["edit", "fork", &at("support-agent"), "@t-2", &at("here")]);
    done(&[
        "edit",
        "fork",
        &at("support-agent"),
        "@t-2",
        "-o",
        &at("also"),
    ]);
    done(&["edit", "fork", AGENT, "@t-2", "-o", &at("in")]);
    let out = scratch.path("out.jsonl");
    done(&["edit", "fork", &at("support-agent"), "@t-2", "-o", &out]);
    for fork in [&at("here"), &at("also"), &at("in"), &out] {
        assert_eq!(documents(fork), documents(&file), "{fork}");
    }
    done(&[
        "edit",
        "fork",
        &at("support-agent"),
        "working",
        &at("working"),
    ]);
    assert_eq!(documents(&at("working")), documents(AGENT));
    let list = answer(&["sessions", &at("here*"), "--json"]);
    let list: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list["parent"], "support-agent");
    let from = at("support-agent");
    for (arguments, code, message) in [
        (
            &["edit", "fork", &from, "@t0", &at("in")][..],
            1,
            "E_SESSION_EXISTS",
        ),
        (
            &["edit", "fork", &from, "@t0", "-o", &at("in")],
            1,
            "E_SESSION_EXISTS",
        ),
        (
            &["edit", "fork", AGENT, "@t0", "-o", &at("in")],
            1,
            "E_SESSION_EXISTS",
        ),
        (
            &["edit", "fork", &from, "@t-99", &at("x")],
            2,
            "E_SNAPSHOT_NOT_FOUND",
        ),
        (
            &["edit", "fork", &from, "t", &at("x")],
            2,
            "E_SELECTOR_INVALID",
        ),
        (
            &["edit", "fork", &from, "@t0", "x.jsonl"],
            1,
            "the value of `-o`",
        ),
        (&["edit", "fork", &from, "@t0"], 1, "needs"),
        (
            &["edit", "fork", &from, "@t0", &store],
            1,
            "expected the name of a session",
        ),
        (&["edit", "fork", &from, "@t0", &at("x*")], 1, "has no `*`"),
        (
            &["edit", "fork", &at("nope"), "@t0", &at("x")],
            4,
            "E_SESSION_NOT_FOUND",
        ),
        (
            &["edit", "fork", &from, "@t0", &at("in"), "--force"],
            1,
            "pactql store delete",
        ),
    ] {
        fails(arguments, code, message);
    }
}

#[test]
fn mistakes_are_answered_with_what_was_expected() {
    let scratch = Scratch::new("store-wrong");
    let store = store(&scratch);
    let at = |name: &str| format!("{store}#{name}");
    let (near, pattern, unnamed) = (at("greenhose"), at("g*"), at(""));
    let (missing, typo) = (scratch.path("missing/a.db#x"), scratch.path("agent.db"));
    let text = scratch.write("text.db", "{\"root\":{\"children\":[]}}\n");
    let node = "{\"id\":\"x\"}";
    for (arguments, code, message) in [
        (
            &["select", "--json", &near, "*"][..],
            4,
            "there is `greenhouse`",
        ),
        (&["render", &near], 4, "E_SESSION_NOT_FOUND"),
        (
            &["edit", "add", &near, "^ah", node],
            4,
            "there is `greenhouse`",
        ),
        (
            &["edit", "update", &near, ".cb", "ttl=1"],
            4,
            "E_SESSION_NOT_FOUND",
        ),
        (&["store", "rename", &near, "x"], 4, "there is `greenhouse`"),
        (&["store", "delete", &near], 4, "there is `greenhouse`"),
        (
            &["store", "delete", &near, "--yes"],
            4,
            "E_SESSION_NOT_FOUND",
        ),
        (&["store", "erase", &near, "x"], 4, "E_SESSION_NOT_FOUND"),
        (
            &["store", "prune", &near, "--keep", "1"],
            4,
            "E_SESSION_NOT_FOUND",
        ),
        (&["render", &store], 1, "is a store of 3 sessions"),
        (&["edit", "add", &store, "^ah", node], 1, "#chat.openai, "),
        (&["export", &store], 1, "name one of them"),
        (&["render", &pattern], 1, "is a pattern, of 1 session"),
        (&["store", "delete", &pattern, "--yes"], 1, "is a pattern"),
        (&["verify", "--json", &pattern], 1, "takes a whole store"),
        (
            &["store", "backup", &pattern, "-o", "x.db"],
            1,
            "takes a whole store",
        ),
        (
            &["render", &unnamed],
            1,
            "expected the name of a session after",
        ),
        (
            &["sessions", &unnamed],
            1,
            "expected the name of a session after",
        ),
        (
            &["edit", "new", &store],
            1,
            "expected the name of a session",
        ),
        (&["edit", "new", &pattern], 1, "has no `*`"),
        (&["edit", "new", &at("greenhouse")], 1, "E_SESSION_EXISTS"),
        (
            &["store", "rename", &at("greenhouse"), "support-agent"],
            1,
            "E_SESSION_EXISTS",
        ),
        (
            &["store", "rename", &at("greenhouse"), "g*"],
            1,
            "has no `*`",
        ),
        (
            &["store", "rename", &at("greenhouse"), "x.db#g"],
            1,
            "stays in its store",
        ),
        (
            &["select", "--json", &missing, "*"],
            4,
            "there is no directory",
        ),
        (&["sessions", &typo], 4, "did you mean"),
        (&["serve", &typo], 4, "did you mean"),
        (&["view", "--no-open", &typo], 4, "did you mean"),
        (
            &["serve", &scratch.path("none.db")],
            4,
            "help: with `--write`, a store that is missing is made",
        ),
        (
            &["serve", &scratch.path("none/x.db")],
            4,
            "there is no directory",
        ),
        (&["edit", "add", &typo, "^ah", node], 4, "E_MISSING"),
        (&["verify", "--json", &typo], 4, "E_MISSING"),
        (&["store", "backup", &typo, "-o", "x.db"], 4, "E_MISSING"),
        (&["select", "--json", &text, "*"], 6, "E_STORE"),
        (&["sessions", &text], 6, "is not a store"),
        (&["import", CHAT, "-o", &text], 6, "is not a store"),
        (&["store", "delete", AGENT], 1, "takes a store"),
        (
            &["store", "delete", &at("greenhouse"), "--force"],
            1,
            "`--yes` confirms",
        ),
        (
            &["store", "prune", &store],
            1,
            "needs --keep N or --older-than AGE",
        ),
        (&["store", "prune", &store, "--keep", "0"], 3, "at least 1"),
        (
            &["store", "prune", &store, "--older-than", "30"],
            3,
            "such as 30d",
        ),
        (
            &["store", "erase", &at("greenhouse"), "nope"],
            2,
            "no snapshot of `greenhouse`",
        ),
        (
            &["store", "erase", &at("greenhouse"), "x", "@* .cb"],
            2,
            "no snapshot of `greenhouse`",
        ),
        (
            &["store", "erase", &at("greenhouse"), "@history .cb"],
            3,
            "a range has differences",
        ),
        (&["import", AGENT, "-o", &store], 1, "pactql store delete"),
        (
            &["import", AGENT, "-o", &store, "--force"],
            1,
            "pactql store delete",
        ),
        (
            &["import", CHAT, AGENT, "-o", &at("x")],
            1,
            "cannot have one name",
        ),
        (
            &["import", CHAT, "-o", &at("x"), "--name", "y"],
            1,
            "named twice",
        ),
        (
            &["import", CHAT, "-o", "x.jsonl", "--name", "y"],
            1,
            "names a session of a store",
        ),
        (
            &["import", &at("greenhouse"), "-o", &store],
            1,
            "pactql store delete",
        ),
        (
            &["import", &near, "-o", &at("x")],
            4,
            "there is `greenhouse`",
        ),
        (&["import", &store], 1, "-o other.db"),
        // A store is no file.
        (
            &["export", &at("greenhouse"), "-o", "x.db#y"],
            1,
            "-o x.db#y",
        ),
        (&["export", &store, "-o", "x.jsonl"], 1, "a directory for 3"),
        (
            &["store", "erase", &at("greenhouse"), "4111 1111"],
            2,
            "\"@* .cb[content~'…']\" finds nodes by their text",
        ),
        (
            &["edit", "fork", &at("greenhouse"), "@t0", "retry"],
            1,
            "agents.db#retry",
        ),
        (&["import", "Cargo.toml", "-o", &store], 5, "E_INPUT"),
        (&["import", CHAT, &store], 1, "-o other.db"),
        (&["ls", &store], 2, "pactql sessions"),
        (&["sessions"], 4, "no session is named"),
        (&["store", "rename", &near], 1, "needs NAME"),
        (
            &["store", "prune", &store, "--older-than"],
            3,
            "--older-than <AGE>",
        ),
        (&["edit", "fork", &near, "@t0"], 1, "STORE#NAME"),
        (&["export", AGENT, "--full"], 1, "needs `--jsonl`"),
        (
            &["store", "delete", &at("greenhouse")],
            1,
            "4 snapshots and the working state",
        ),
    ] {
        fails(arguments, code, message);
    }
    assert_eq!(
        names(&store),
        ["chat.openai", "greenhouse", "support-agent"]
    );
    assert!(!std::path::Path::new(&typo).exists());
    let json = ["select", &near, "*", "--format", "json"];
    let error: Value = serde_json::from_str(&fails(&json, 4, "error")).expect("JSON");
    assert_eq!(error["error"]["code"], "E_SESSION_NOT_FOUND");
}

#[test]
fn a_directory_is_imported_file_by_file() {
    let scratch = Scratch::new("store-directory");
    let (folder, store) = (scratch.path("in"), scratch.path("a.db"));
    std::fs::create_dir_all(&folder).expect("a directory");
    let put = |name: &str, text: &[u8]| {
        std::fs::write(format!("{folder}/{name}"), text).expect("a file");
    };
    // Logs alone, which are no snapshots of one session.
    let chat = std::fs::read(CHAT).expect("a file");
    put("b.json", &chat);
    put("c.json", &chat);
    answer(&["import", &folder, "-o", &store]);
    assert_eq!(names(&store), ["b", "c"]);
    // Logs, sessions, and what is neither.
    put("a.jsonl", &std::fs::read(AGENT).expect("a file"));
    put("x.jsonl", b"nothing");
    put("y.jsonl", b"{\"root\":{\"children\":[]}}\n{\"root\":1}\n");
    let other = scratch.path("other.db");
    let strict = ["import", &folder, "-o", &other, "--strict"];
    fails(&strict, 5, "x.jsonl is invalid");
    assert!(!std::path::Path::new(&other).exists());
    let skipping = ["import", &folder, "-o", &other];
    let error = pactql(&skipping).err;
    // Each with its own fault, that of a session for a session.
    assert!(error.contains("imported 2 sessions"), "{error}");
    assert!(error.contains("copied 1 session, 6 snapshots\n"), "{error}");
    assert!(error.contains("x.jsonl: 1:1: $: malformed JSON"), "{error}");
    assert!(error.contains("y.jsonl: 2:"), "{error}");
    assert_eq!(names(&other), ["a", "b", "c"]);
    // The second time goes on where the first one ended.
    fails(&skipping, 1, "`--skip-existing` imports the others");
    answer(&["store", "delete", &format!("{other}#b"), "--yes"]);
    let again = pactql(&[&skipping[..], &["--skip-existing"]].concat());
    assert!(again.err.contains("imported 1 session,"), "{}", again.err);
    assert!(
        again.err.contains("left 2 sessions as they are"),
        "{}",
        again.err
    );
    let json = [&skipping[..], &["--skip-existing", "--format", "json"]].concat();
    let report: Value = serde_json::from_str(&answer(&json)).expect("JSON");
    assert_eq!(report["existing"], 3);
    assert_eq!(report["sessions"], 0);
    assert_eq!(report["invalid"].as_array().map(Vec::len), Some(2));
    assert_eq!(names(&other), ["a", "b", "c"]);
    let damage: Value = serde_json::from_str(&answer(&["verify", "--json", &other])).expect("JSON");
    assert_eq!(damage["valid"], true);
}

#[test]
fn sessions_are_copied_from_store_to_store() {
    let scratch = Scratch::new("store-copy");
    let store = store(&scratch);
    let from = |name: &str| format!("{store}#{name}");
    done(&["edit", "refs", &from("greenhouse"), "add", "rules", "#plan"]);
    let copy = scratch.path("copy.db");
    let ran = pactql(&["import", &store, "-o", &copy]);
    assert_eq!(ran.err, "copied 3 sessions, 15 snapshots\n");
    assert_eq!(names(&copy), names(&store));
    for name in names(&store) {
        let copied = format!("{copy}#{name}");
        assert_eq!(
            answer(&["export", &copied]),
            answer(&["export", &from(&name)])
        );
    }
    let refs = answer(&["edit", "refs", &format!("{copy}#greenhouse")]);
    assert!(refs.contains("rules"), "{refs}");
    answer(&["import", &from("g*"), "-o", &copy, "--name", "b"]);
    answer(&["import", &from("greenhouse"), "-o", &from("a")]);
    assert!(names(&copy).contains(&"b".to_owned()));
    let list = answer(&["sessions", &from("a"), "--json"]);
    assert!(list.contains("agents.db#greenhouse"), "{list}");
    answer(&["verify", "--json", &copy]);
    answer(&["store", "rename", &from("a"), "my session"]);
    answer(&["select", "--json", &from("my session"), "*"]);
}

#[test]
fn one_writer_at_a_time_and_readers_do_not_wait() {
    let scratch = Scratch::new("store-busy");
    let path = store(&scratch);
    let session = format!("{path}#greenhouse");
    let held = Store::builder()
        .owner("the other")
        .open(&path)
        .expect("a store");
    let context = held.write("greenhouse").expect("the session");
    let add = ["edit", "add", &session, "^ah", "{\"id\":\"x\"}"];
    let error = fails(&add, 6, "E_SESSION_BUSY");
    assert!(
        error.contains("by the other") && error.contains("until 2"),
        "{error}"
    );
    for command in [
        &["store", "delete", &session, "--yes"][..],
        &["store", "rename", &session, "x"],
        &["store", "erase", &session, "call1"],
        &["edit", "commit", &session],
    ] {
        fails(command, 6, "E_SESSION_BUSY");
    }
    answer(&["select", "--json", &session, "*"]);
    answer(&["verify", "--json", &path]);
    done(&[
        "edit",
        "add",
        &format!("{path}#support-agent"),
        "^ah",
        "{\"id\":\"x\"}",
    ]);
    // Who waits in vain is told how long it was, and how to wait longer.
    let error = fails(&[&add[..], &["--wait=0"]].concat(), 6, "E_SESSION_BUSY");
    assert!(
        error.contains("help: `--wait` waits until it is free"),
        "{error}"
    );
    let error = fails(&[&add[..], &["--wait=1"]].concat(), 6, "by the other");
    assert!(error.contains("`--wait=10` waits longer"), "{error}");
    fails(&[&add[..], &["--wait=soon"]].concat(), 3, "--wait");
    drop(context);
    assert_eq!(answer(&add), "x\n");
}

/// The session becomes free while each of them waits, which may begin to wait before or after.
#[test]
fn a_writer_waits_for_the_one_before() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("store-wait");
    let path = store(&scratch);
    let session = format!("{path}#greenhouse");
    let held = Store::open(&path).expect("a store");
    for command in [
        &["edit", "add", &session, "^ah", "{\"id\":\"x\"}"][..],
        &["store", "erase", &session, "@t0 .cb[role='user']"],
        &["store", "rename", &session, "x"],
        &["store", "delete", &format!("{path}#x"), "--yes"],
    ] {
        let name = names(&path).into_iter().find(|name| name != "chat.openai");
        let mut context = held.write(&name.expect("a session")).expect("it opens");
        let waiting = std::thread::scope(|threads| {
            let waiting = threads.spawn(|| pactql(&[command, &["--wait"]].concat()));
            std::thread::sleep(std::time::Duration::from_millis(300));
            if command[0] == "erase" {
                context
                    .add("^ah", "block { id=late, role=user }")
                    .expect("a node");
                context.commit().expect("a commit");
            }
            drop(context);
            waiting.join().expect("it ends")
        });
        assert_eq!(waiting.code, 0, "{command:?}: {}", waiting.err);
        if command[0] == "erase" {
            // What came while it waited is found too.
            assert!(waiting.out.contains("late"), "{}", waiting.out);
        }
    }
    assert_eq!(names(&path), ["chat.openai", "support-agent"]);
}

#[test]
fn sessions_are_listed_renamed_deleted_pruned_erased_and_backed_up() {
    let scratch = Scratch::new("store-manage");
    let store = store(&scratch);
    let at = |name: &str| format!("{store}#{name}");
    let table = answer(&["sessions", &store]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[0].starts_with("name           steps  cycle  working  when "),
        "{table}"
    );
    assert!(
        lines[0].contains("  title  ") && lines[0].ends_with("source"),
        "{table}"
    );
    assert!(
        lines[2].starts_with("greenhouse         4  @c14   yes      2"),
        "{table}"
    );
    assert!(
        lines[2].contains("Z  ") && lines[2].ends_with("  fixtures/greenhouse.jsonl"),
        "{table}"
    );
    let lines = answer(&["sessions", &at("s*"), "--format", "json"]);
    let info: Value = serde_json::from_str(&lines).expect("one line");
    assert_eq!(
        (&info["snapshots"], &info["cycle"], &info["working"]),
        (&json!(6), &json!(6), &json!(true))
    );
    // What the log says of itself.
    let lines = answer(&["sessions", &at("chat*"), "--json"]);
    let info: Value = serde_json::from_str(&lines).expect("one line");
    let title = info["title"].as_str().unwrap_or_default();
    assert!(title.starts_with("Hello, my order LC-20417"), "{lines}");
    assert_eq!(info["project"], Value::Null);
    // Renamed: the same bytes under another name.
    let bytes = answer(&["export", &at("greenhouse")]);
    answer(&["store", "rename", &at("greenhouse"), "plants/1"]);
    assert_eq!(answer(&["export", &at("plants/1")]), bytes);
    answer(&["store", "rename", &at("plants/1"), &at("plants/2")]);
    assert_eq!(names(&store), ["chat.openai", "plants/2", "support-agent"]);
    let folder = scratch.path("out");
    answer(&["export", &at("plants/*"), "-o", &folder]);
    assert!(std::path::Path::new(&format!("{folder}/plants/2.jsonl")).exists());
    // A backup is a store, and replaces nothing.
    let copy = scratch.path("copy.db");
    answer(&["store", "backup", &store, "-o", &copy]);
    assert_eq!(names(&copy), names(&store));
    fails(&["store", "backup", &store, "-o", &copy], 1, "exists");
    // Pruning: counted first, and the counts are true.
    let keep = [
        "store",
        "prune",
        &at("support*"),
        "--keep",
        "2",
        "--format",
        "json",
    ];
    let dry: Value =
        serde_json::from_str(&answer(&[&keep[..], &["--dry-run"]].concat())).expect("JSON");
    assert_eq!(dry["snapshots"], 4);
    assert_eq!(
        answer(&[
            "select",
            "--json",
            &at("support-agent"),
            "@t-5 ^ah",
            "--count"
        ]),
        "1\n"
    );
    let went: Value = serde_json::from_str(&answer(&keep)).expect("JSON");
    assert_eq!(
        (&went["dry_run"], &went["sessions"]),
        (&json!(false), &dry["sessions"])
    );
    assert_eq!(went["units"], dry["units"]);
    fails(
        &["select", &at("support-agent"), "@t-5 ^ah"],
        2,
        "E_SNAPSHOT_NOT_FOUND",
    );
    // The time of an imported snapshot is that of its log.
    let young = answer(&["store", "prune", &store, "--older-than", "9999w"]);
    assert!(young.starts_with("nothing to remove"), "{young}");
    // Erasing, by ids and by a selector, also names the sessions that share the texts.
    done(&["edit", "fork", &at("support-agent"), "@t0", &at("fork")]);
    let ran = pactql(&[
        "store",
        "erase",
        &at("support-agent"),
        "@* #summary",
        "--format",
        "json",
    ]);
    assert_eq!((ran.code, &*ran.out), (0, "[\"cb:sum1\"]\n"), "{}", ran.err);
    assert!(ran.err.contains("#fork still has the texts"), "{}", ran.err);
    let text = answer(&[
        "select",
        &at("support-agent"),
        "@t0 #summary",
        "--format",
        "nodes",
    ]);
    assert!(text.contains("[erased]"), "{text}");
    let none = pactql(&[
        "store",
        "erase",
        &at("support-agent"),
        "@* #none",
        "--fail-if-empty",
    ]);
    assert_eq!(none.code, 8, "{}", none.err);
    // Deleted.
    answer(&["store", "delete", &at("fork"), "--yes"]);
    assert_eq!(names(&store), ["chat.openai", "plants/2", "support-agent"]);
    assert_eq!(
        answer(&["verify", &store, "--format", "text"]),
        "valid: 3 sessions, 11 snapshots, 0 damages\n"
    );
    // An empty store.
    for name in names(&store) {
        answer(&["store", "delete", &at(&name), "--yes"]);
    }
    let Ran { code, out, err } = pactql(&["sessions", &store]);
    assert_eq!((code, &*out), (0, ""));
    assert!(err.contains("has no sessions"), "{err}");
    fails(&["bench", &store, "-e", "*"], 4, "has no sessions");
    fails(
        &["sessions", &store, "--fail-if-empty"],
        8,
        "has no sessions",
    );
    assert_eq!(pactql(&["select", "--json", &store, "*"]).code, 0);
}

#[test]
fn a_changed_byte_is_found() {
    let scratch = Scratch::new("store-damage");
    let store = store(&scratch);
    let mut bytes = std::fs::read(&store).expect("the store");
    let text = b"The pickup was requested";
    let at = bytes.windows(text.len()).position(|window| window == text);
    bytes[at.expect("a text of the fixture") + 4] ^= 1;
    std::fs::write(&store, bytes).expect("the store");
    let ran = pactql(&["verify", &store, "--format", "text"]);
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(ran.out.contains("support-agent @c"), "{}", ran.out);
    assert!(
        ran.out
            .lines()
            .last()
            .expect("a line")
            .starts_with("invalid: 3 sessions")
    );
    let json = pactql(&["verify", "--json", &store]);
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(
        (&json["valid"], &json["damages"][0]["session"]),
        (&json!(false), &json!("support-agent"))
    );
}

/// Also where sessions cannot be counted any more, what is damaged is said.
#[test]
fn a_file_that_was_cut_off_is_damaged() {
    let scratch = Scratch::new("store-cut");
    let store = store(&scratch);
    let bytes = std::fs::read(&store).expect("the store");
    for percent in [95, 80] {
        let left = bytes.len() * percent / 100;
        std::fs::write(&store, &bytes[..left]).expect("the store");
        let ran = pactql(&["verify", &store, "--format", "text"]);
        assert_eq!(ran.code, 5, "{percent} %: {}{}", ran.out, ran.err);
        let last = ran.out.lines().last().expect("a line");
        assert!(
            last.starts_with("invalid: ") && last.contains("damage"),
            "{last}"
        );
        assert!(ran.out.lines().count() > 1, "{}", ran.out);
    }
}

/// The table of sessions has a page that cannot be read: the sessions of the others are saved.
#[test]
fn a_store_that_lacks_names_is_salvaged() {
    use rusqlite::Connection;
    let scratch = Scratch::new("store-lacks-names");
    let path = scratch.path("agents.db");
    answer(&["import", AGENT, "-o", &path]);
    let opened = Store::open(&path).expect("a store");
    for number in 0..80 {
        let name = format!("fork/{number:03}/{}", "long".repeat(20));
        opened.fork("support-agent", "@t0", &name).expect("a fork");
    }
    drop(opened);
    let leaf = "select pageno from dbstat where name = 'session' and pagetype = 'leaf' order by path limit 1 offset 1";
    let leaf: u32 = Connection::open(&path)
        .and_then(|store| store.query_row(leaf, [], |row| row.get(0)))
        .expect("a second page");
    let mut bytes = std::fs::read(&path).expect("the store");
    let start = (leaf as usize - 1) * 4096;
    bytes[start..start + 4096].fill(0xFF);
    std::fs::write(&path, bytes).expect("the store");
    let saved = scratch.path("saved.db");
    let ran = pactql(&["store", "salvage", &path, "-o", &saved]);
    assert_eq!(ran.code, 5, "{}{}", ran.out, ran.err);
    let saved_names = names(&saved);
    assert!(saved_names.len() > 40, "{saved_names:?}");
    assert!(saved_names.contains(&"support-agent".to_owned()));
    answer(&["verify", &saved]);
}

/// A vacuum writes the views last, so that the end of the file has a part of the schema.
#[test]
fn a_store_that_lacks_its_end_is_salvaged() {
    let scratch = Scratch::new("store-lacks-end");
    let path = store(&scratch);
    answer(&["store", "vacuum", &path]);
    let mut bytes = std::fs::read(&path).expect("the store");
    bytes.truncate(bytes.len() - 4096);
    std::fs::write(&path, bytes).expect("the store");
    let saved = scratch.path("saved.db");
    let ran = pactql(&["store", "salvage", &path, "-o", &saved]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(
        names(&saved),
        ["chat.openai", "greenhouse", "support-agent"]
    );
    answer(&["verify", &saved]);
}

/// Reading takes no right to write; writing without it is an error, and changes nothing.
#[cfg(unix)]
#[test]
fn a_store_that_cannot_be_written_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("store-read-only");
    let store = store(&scratch);
    let set = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    };
    set(store.as_ref(), 0o444);
    set(&scratch.0, 0o555);
    let names = names(&store);
    let read = pactql(&[
        "select",
        "--json",
        &format!("{store}#greenhouse"),
        "@t0 .cb",
        "--count",
    ]);
    let may_write = std::fs::OpenOptions::new().write(true).open(&store).is_ok();
    let wrote = if may_write {
        None
    } else {
        Some(pactql(&["edit", "new", &format!("{store}#x")]))
    };
    set(&scratch.0, 0o755);
    set(store.as_ref(), 0o644);
    assert_eq!(names.len(), 3);
    assert_eq!((read.code, &*read.out), (0, "19\n"), "{}", read.err);
    match wrote {
        // The superuser may write everything.
        None => println!("SKIPPED: this user may write a file whose mode forbids it"),
        Some(ran) => assert_eq!(ran.code, 6, "{}", ran.err),
    }
}

/// A text index changes what is read, and nothing that is printed.
#[test]
fn a_text_index_changes_no_answer() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("store-texts");
    let store = store(&scratch);
    let one = format!("{store}#support-agent");
    let searches = [
        &["refund"][..],
        &["-i", "REFUND|order", "-C", "1"],
        &["-c", "[a-z]+"],
        &["-l", "pickup"],
        &["nowhere at all"],
        &["order", "--at", "@t0"],
        &["order", "--where", ".cb[kind='call']", "--format", "json"],
        &["order", "--since", "2020-01-01"],
        &["order", "--since", "2200-01-01"],
    ];
    let all = || -> Vec<(i32, String, String)> {
        let places = [&*store, &*one];
        let runs = searches.iter().flat_map(|search| {
            places.map(|place| {
                let ran = pactql(&[&["grep"], *search, &[place]].concat());
                let notes = |line: &&str| !line.contains("the text index was not used");
                let said: Vec<&str> = ran.err.lines().filter(notes).collect();
                (ran.code, ran.out, said.join("\n"))
            })
        });
        runs.collect()
    };
    let before = all();
    assert!(before.iter().any(|(_, out, _)| out.contains("refund")));
    fails(
        &["store", "index", &one],
        1,
        "`store index` takes a whole store",
    );
    let json = answer(&["store", "index", &store, "--format", "json"]);
    assert!(json.starts_with("{\"texts\":"), "{json}");
    assert_eq!(all(), before);
    let again = answer(&["store", "index", &store]);
    assert!(again.ends_with("; 0 units came in\n"), "{again}");
    let listed = pactql(&["sessions", &store]);
    assert!(listed.err.contains("up to date"), "{}", listed.err);
    let note = pactql(&["grep", "[a-z]+", &store]).err;
    assert!(note.contains("three characters in a row"), "{note}");
    let note = pactql(&["grep", "order", &store, "--at", "@t0"]).err;
    assert!(note.contains("--at and --over"), "{note}");
    // One session is read as it is: the index of the whole store is not asked.
    assert_eq!(pactql(&["grep", "[a-z]+", &one]).err, "");
    fails(&["grep", "order", &store, "--where", ".cb["], 2, "E_");
    fails(
        &["grep", "order", &format!("{store}#none")],
        4,
        "E_SESSION_NOT_FOUND",
    );
    fails(&["grep", "order", &format!("{store}#none-*")], 4, "none-");
    let dropped = answer(&["store", "index", &store, "--drop"]);
    assert_eq!(dropped, "the text index was removed\n");
    let none = answer(&["store", "index", &store, "--drop", "--format", "json"]);
    assert_eq!(none, "{\"dropped\":false}\n");
    assert_eq!(all(), before);
    answer(&["store", "index", &store]);
    answer(&["edit", "add", &one, "^ah", "block:text 'a later refund'"]);
    let listed = pactql(&["sessions", &store]);
    assert!(listed.err.contains("came later"), "{}", listed.err);
    assert!(answer(&["grep", "a later", &store]).contains("a later refund"));
}

/// Ids that are asked for alone are read otherwise, and are those of the nodes.
#[test]
fn ids_of_many_sessions_are_those_of_their_nodes() {
    let scratch = Scratch::new("store-ids");
    let store = store(&scratch);
    for selector in [
        "@t0 .cb",
        ".cb[role='user']",
        "@t0 ^seq .mt:depth(1) .cb",
        "@t0 [id='cb:policy']",
        "@t0 .cb[content~'refund']",
        "@t-2..@t0 @mode=union .cb",
        "@t0 .cb[role='nobody']",
    ] {
        let ids = pactql(&["select", &store, selector, "--format", "ids"]);
        let nodes = pactql(&["select", &store, selector, "--format", "nodes"]);
        let member = |line: &str, name: &str| {
            let value: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
            value[name].as_str().unwrap_or_default().to_owned()
        };
        let wanted: Vec<String> = nodes
            .out
            .lines()
            .map(|line| format!("{}\t{}", member(line, "session"), member(line, "id")))
            .collect();
        assert_eq!(ids.out.lines().collect::<Vec<_>>(), wanted, "{selector}");
        assert_eq!((ids.code, ids.err), (nodes.code, nodes.err), "{selector}");
    }
    let none = &["select", &store, "@t0 .none[role='x']", "--format", "ids"];
    assert!(pactql(none).err.contains("note: "));
    let range = answer(&["select", &store, "@t-1..@t0 .cb", "--format", "ids"]);
    assert!(range.contains(".."), "{range}");
}
