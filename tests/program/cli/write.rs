//! The commands that write: what they print, what they refuse, and that a refusal changes no byte.

use super::{Ran, Scratch, answer, fails, pactql, with_input};
use pactql::{Context, NewNode, Policy, Provider, context::StepClock};
use serde_json::{Value, json};

/// What the clock always reads.
const NOW: &str = "1700000000000000000";

/// Runs a command that writes, at a fixed time.
fn run(arguments: &[&str]) -> Ran {
    pactql(&[arguments, &["--clock", NOW]].concat())
}

/// The output of a command that must succeed.
#[track_caller]
fn done(arguments: &[&str]) -> String {
    let ran = run(arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
    ran.out
}

/// A session with a sealed turn, a turn in progress, and a pinned block.
fn session(scratch: &Scratch) -> String {
    let path = scratch.path("s.jsonl");
    done(&["edit", "new", &path]);
    done(&[
        "edit",
        "add",
        &path,
        "^sys",
        r#"block:text { id=rules, key=rules } "Be brief.""#,
    ]);
    done(&[
        "edit",
        "add",
        &path,
        "^ah",
        r#"block:text { id=q1, role=user } "Where is my refund?""#,
    ]);
    done(&[
        "edit",
        "add",
        &path,
        "^ah",
        r#"block:doc { id=doc1, ttl=2, offset=-1 } "A page.""#,
    ]);
    done(&["edit", "commit", &path]);
    done(&[
        "edit",
        "add",
        &path,
        "^ah",
        r#"block:text { id=q2, role=user } "And now?""#,
    ]);
    done(&["edit", "refs", &path, "add", "rules", "#rules"]);
    path
}

#[test]
fn commands_print_what_they_did() {
    let scratch = Scratch::new("write-commands");
    let path = &*session(&scratch);
    let note = scratch.write("note.md", "Two\nlines.\n");
    let node = scratch.write("node.json", r#"{"id":"n9","kind":"note"}"#);
    for (arguments, printed) in [
        (&["edit", "add", path, "^ah", "{\"id\":\"j\"}"][..], "j\n"),
        (
            &[
                "edit",
                "add",
                path,
                "(d0, end)",
                "block:text { id=late, offset=1 } \"x\"",
            ],
            "late\n",
        ),
        (
            &[
                "edit",
                "add",
                path,
                "(d1, end)",
                "block:note { id=post } \"x\"",
                "--format",
                "json",
            ],
            "[\"post\"]\n",
        ),
        (
            &[
                "edit",
                "add",
                path,
                "^ah",
                &format!("@{node}"),
                "--content-file",
                &note,
            ],
            "n9\n",
        ),
        (
            &[
                "edit",
                "update",
                path,
                "{id='j'}",
                "role=user",
                "content=12",
                "data_n=12",
            ],
            "j\n",
        ),
        (
            &["edit", "update", path, "{id='j'}", "{\"data_n\":null}"],
            "j\n",
        ),
        (
            &["edit", "update", path, ".cb[kind='doc']", "ttl=5"],
            "doc1\n",
        ),
        (&["edit", "move", path, "{id='j'}", "^sys"], "j\n"),
        (
            &["edit", "replace", path, "{id='late'}", "{\"id\":\"later\"}"],
            "later\n",
        ),
        (&["edit", "remove", path, "{id='later'}"], "later\n"),
        (&["edit", "refs", path], "name   id\nrules  rules\n"),
        (
            &["edit", "refs", path, "add", "question", "{id='q2'}"],
            "q2\n",
        ),
        (
            &["edit", "refs", path, "--format", "json"],
            "[{\"id\":\"q2\",\"name\":\"question\"},{\"id\":\"rules\",\"name\":\"rules\"}]\n",
        ),
        (&["edit", "refs", path, "drop", "question"], "q2\n"),
        (&["edit", "attempts", path], ""),
        (&["edit", "attempts", path, "--format", "json"], "[]\n"),
        (
            &[
                "edit",
                "compact",
                path,
                "^seq .mt",
                "block:summary { id=sum } \"They ask.\"",
            ],
            "sum\n",
        ),
        (
            &["edit", "commit", path],
            "cycle 2 is committed as mt:2\ncompacted  mt:1\n",
        ),
    ] {
        assert_eq!(done(arguments), printed, "{arguments:?}");
    }
    assert_eq!(
        answer(&["select", "--json", path, "@t0 {id='n9'}", "--count"]),
        "1\n"
    );
    let node = answer(&["select", path, "@t0 {id='j'}", "--format", "nodes"]);
    let node: Value = serde_json::from_str(&node).expect("JSON");
    assert_eq!(
        (&node["content"], &node["parent_id"]),
        (&json!("12"), &json!("^sys"))
    );
    let note = answer(&["select", path, "@t0 {id='n9'}", "--format", "nodes"]);
    let note: Value = serde_json::from_str(&note).expect("JSON");
    assert_eq!(note["content"], "Two\nlines.\n");
    let report = done(&[
        "edit",
        "commit",
        path,
        "--prune",
        "sys:nodes=1",
        "--format",
        "json",
    ]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["pruned"], json!(["j"]));
    assert_eq!(report["turn"], "mt:3");
    assert_eq!(
        answer(&["verify", path, "--format", "json"])
            .matches("\"valid\":true")
            .count(),
        1
    );
    done(&["edit", "add", path, "^ah", "block"]);
    assert_eq!(done(&["edit", "discard", path]), "");
    assert_eq!(
        answer(&["select", "--json", path, "^ah .cb", "--count"]),
        "0\n"
    );
}

#[test]
fn refusals_leave_the_file_as_it_was() {
    let scratch = Scratch::new("write-refusals");
    let path = &*session(&scratch);
    let before = std::fs::read(path).expect("the session");
    let modified = || {
        std::fs::metadata(path)
            .and_then(|data| data.modified())
            .expect("a time")
    };
    let then = modified();
    let binary = scratch.write("binary", b"\xff");
    let other = scratch.write("other.jsonl", "");
    for (arguments, code, message) in [
        (
            &["edit", "add", path, "^ah .cb, ^sys", "block"][..],
            2,
            "E_PLACEMENT",
        ),
        (
            &["edit", "add", path, ".cb[role=nobody]", "block"],
            2,
            "E_PLACEMENT",
        ),
        (
            &["edit", "add", path, "(d0, 99)", "block"],
            2,
            "E_PLACEMENT",
        ),
        (&["edit", "add", path, "^root", "block"], 2, "E_REGION"),
        (
            &["edit", "add", path, "(d1, cont, end)", "block"],
            2,
            "E_SEALED",
        ),
        (&["edit", "add", path, "^ah", "{\"ttl\":-1}"], 2, "E_HEADER"),
        (
            &["edit", "add", path, "^ah", "{\"id\":\"q1\"}"],
            2,
            "E_DUPLICATE_ID",
        ),
        (
            &["edit", "add", path, "^ah", "{\"a\":1,\"a\":2}"],
            5,
            "E_INPUT",
        ),
        (&["edit", "add", path, "^ah", "{"], 5, "E_INPUT"),
        (&["edit", "add", path, "^ah", "block:"], 5, "E_INPUT"),
        (
            &["edit", "add", path, "^ah ..", "block"],
            2,
            "E_SELECTOR_INVALID",
        ),
        (&["edit", "add", path, "@t0 ^ah", "block"], 2, "E_"),
        (&["edit", "add", path, "^ah"], 1, "E_USAGE"),
        (
            &["edit", "add", path, "^ah", "@missing.json"],
            4,
            "E_MISSING",
        ),
        (
            &[
                "edit",
                "add",
                path,
                "^ah",
                "block",
                "--content-file",
                &binary,
            ],
            5,
            "not UTF-8",
        ),
        (
            &["edit", "update", path, "{id='q1'}", "content=x"],
            2,
            "E_SEALED",
        ),
        (
            &["edit", "update", path, "{id='q2'}", "id=x"],
            2,
            "E_HEADER",
        ),
        (
            &["edit", "update", path, "{id='q2'}", "content"],
            1,
            "expected `name=value`",
        ),
        (
            &["edit", "update", path, "^sys, {id='q2'}", "ttl=1"],
            2,
            "E_",
        ),
        (&["edit", "remove", path, "{id='q1'}"], 2, "E_SEALED"),
        (&["edit", "remove", path, "#rules"], 2, "E_PINNED"),
        (&["edit", "remove", path, ".cb"], 2, "E_"),
        (
            &["edit", "move", path, "{id='q2'}", "{id='q2'}"],
            2,
            "E_PLACEMENT",
        ),
        (
            &["edit", "replace", path, ".cb[role=nobody]", "block"],
            2,
            "E_PLACEMENT",
        ),
        (
            &["edit", "compact", path, ".cb[role=nobody]", "block"],
            2,
            "E_PLACEMENT",
        ),
        (&["edit", "compact", path, "#rules", "block"], 2, "E_PINNED"),
        (
            &["edit", "commit", path, "--prune", "tokens"],
            3,
            "expected a limit",
        ),
        (
            &["edit", "commit", path, "--prune", "moon:tokens=1"],
            3,
            "expected a limit",
        ),
        (&["edit", "refs", path, "add", "x", ".cb"], 2, "E_PLACEMENT"),
        (
            &["edit", "refs", path, "add", "x"],
            1,
            "a name and a selector",
        ),
        (
            &["edit", "refs", path, "drop", "ruls"],
            3,
            "did you mean `rules`?",
        ),
        (&["edit", "refs", path, "keep", "x"], 3, "keep"),
        (&["edit", "attempts", path, "end"], 2, "begin --as openai"),
        (
            &[
                "edit",
                "add",
                path,
                "^ah",
                "block \"x\"",
                "--content-file",
                &binary,
            ],
            1,
            "the content is given twice",
        ),
        (&["edit", "new", "-"], 1, "standard output"),
        (&["edit", "new", "x.jsonl.gz"], 1, "write it to x.jsonl"),
        (
            &["edit", "fork", path, "@c1", "-o", "x.jsonl.gz"],
            1,
            "not written compressed",
        ),
        (
            &["edit", "add", path, "^ah", "block", "-o", "x.jsonl.gz"],
            1,
            "not written compressed",
        ),
        (&["edit", "attempts", path, "begin"], 1, "`--as`"),
        (
            &["edit", "attempts", path, "begin", "--as", "cohere"],
            3,
            "cohere",
        ),
        (
            &["edit", "attempts", path, "--canceled"],
            1,
            "when an attempt ends",
        ),
        (&["edit", "new", path], 1, "the file exists"),
        (
            &["edit", "fork", path, "@c9", "-o", "x.jsonl"],
            2,
            "E_SNAPSHOT_NOT_FOUND",
        ),
        (
            &["edit", "fork", path, "@c1", "-o", path],
            1,
            "is the input",
        ),
        (&["edit", "fork", path, "@c1", "-o", &other], 1, "`--force`"),
        (
            &["edit", "add", path, "^ah", "block", "-o", path],
            1,
            "is the input",
        ),
        (
            &["edit", "add", path, "^ah", "block", "-o", path, "--force"],
            1,
            "is the input",
        ),
        (
            &["edit", "add", path, "^ah", "block", "-o", &other],
            1,
            "`--force`",
        ),
        (
            &["edit", "add", path, "^ah", "block", "-o", "-"],
            1,
            "standard output",
        ),
        (
            &["edit", "add", "missing.jsonl", "^ah", "block"],
            4,
            "E_MISSING",
        ),
        (&["edit", "add", &other, "^ah", "block"], 5, "is empty"),
        (
            &["edit", "add", super::CHAT, "^ah", "block"],
            5,
            "is a chat log",
        ),
        (
            &["edit", "add", "-", "^ah", "block"],
            1,
            "standard input cannot be written in place",
        ),
        (
            &["edit", "add", "fixtures", "^ah", "block"],
            6,
            "a directory cannot be written in place",
        ),
        (
            &["edit", "add", "/dev/null", "^ah", "block"],
            6,
            "only a file",
        ),
    ] {
        let err = fails(&[arguments, &["--clock", NOW]].concat(), code, message);
        assert!(err.starts_with("error["), "{err}");
        let ran = run(&[arguments, &["--format", "json"]].concat());
        let error: Value = serde_json::from_str(&ran.err).expect("JSON");
        assert!(error["error"]["code"].is_string(), "{arguments:?}");
        assert_eq!(
            std::fs::read(path).expect("the session"),
            before,
            "{arguments:?}"
        );
    }
    assert_eq!(modified(), then, "nothing was written");
    assert_eq!(std::fs::read(&other).expect("the other"), b"");
    let names = std::fs::read_dir(&scratch.0).expect("a directory").count();
    assert_eq!(names, 3, "no file is left over");
}

#[test]
fn nothing_found_is_no_error() {
    let scratch = Scratch::new("write-empty");
    let path = &*session(&scratch);
    let before = std::fs::read(path).expect("the session");
    for arguments in [
        &["edit", "update", path, ".cb[rol=user]", "ttl=1"][..],
        &["edit", "remove", path, ".cb[rol=user]"],
        &["edit", "move", path, ".cb[rol=user]", "^sys"],
    ] {
        let ran = run(arguments);
        assert_eq!((ran.code, &*ran.out), (0, ""), "{arguments:?}");
        assert!(ran.err.contains("did you mean `role`?"), "{}", ran.err);
        let ran = run(&[arguments, &["--fail-if-empty", "--format", "json"]].concat());
        assert_eq!((ran.code, &*ran.out), (8, "[]\n"), "{arguments:?}");
        assert!(ran.err.starts_with("{\"notes\":["), "{}", ran.err);
    }
    assert_eq!(std::fs::read(path).expect("the session"), before);
}

/// What a context writes to its file.
fn written(context: &mut Context) -> String {
    let mut bytes = Vec::new();
    pactql::context::write_context(context, &mut bytes).expect("memory");
    String::from_utf8(bytes).expect("UTF-8")
}

/// The session as JSON Lines.
fn export(path: &str) -> String {
    answer(&["export", path, "--jsonl"])
}

#[test]
fn processes_and_one_context_write_the_same_bytes() {
    let scratch = Scratch::new("write-same");
    let path = &*scratch.path("s.jsonl");
    done(&["edit", "new", path]);
    done(&[
        "edit",
        "add",
        path,
        "^sys",
        r#"block:text { key=rules, ttl=0 } "Be brief.""#,
    ]);
    done(&["edit", "refs", path, "add", "rules", "#rules"]);
    done(&[
        "edit",
        "add",
        path,
        "^ah",
        r#"block:text { role=user } "Where is my refund?""#,
    ]);
    done(&[
        "edit",
        "add",
        path,
        "^ah",
        r#"block:doc { ttl=1, offset=-1 } "A page.""#,
    ]);
    let requests = [
        done(&["edit", "attempts", path, "begin", "--as", "openai"]),
        done(&["edit", "attempts", path, "end", "--error", "timeout"]),
        done(&["edit", "attempts", path, "begin", "--as", "openai"]),
    ];
    done(&[
        "edit",
        "add",
        path,
        "^ah",
        r#"{"role":"assistant","content":"On its way.","data_reply":1}"#,
    ]);
    done(&[
        "edit",
        "attempts",
        path,
        "end",
        "--tokens-in",
        "9",
        "--tokens-out",
        "4",
    ]);
    done(&["edit", "commit", path]);
    done(&[
        "edit",
        "add",
        path,
        "^ah",
        r#"block:text { role=user } "Thanks.""#,
    ]);
    done(&[
        "edit",
        "compact",
        path,
        "^seq .mt",
        r#"block:summary "They ask.""#,
    ]);
    done(&["edit", "update", path, "^ah .cb", "priority=3"]);
    let halfway = export(path);
    done(&["edit", "commit", path, "--prune-tokens", "6"]);
    done(&["edit", "add", path, "^ah", "block"]);

    let clock = StepClock::new(NOW.parse().expect("a number"), 0);
    let policy = Policy::new().tokens(6);
    let builder = Context::builder().clock(clock).policy(policy);
    let mut context = builder.build();
    let mut go = || -> Result<[String; 2], pactql::Error> {
        context.add("^sys", NewNode::text("Be brief.").key("rules").ttl(0))?;
        context.pin_as("rules", "#rules")?;
        let asked = NewNode::text("Where is my refund?").role("user");
        context.add("^ah", asked)?;
        context.add(
            "^ah",
            NewNode::new()
                .kind("doc")
                .content("A page.")
                .ttl(1)
                .offset(-1),
        )?;
        assert_eq!(context.render(Provider::OpenAi)?.body, requests[0]);
        context.fail_attempt("timeout")?;
        assert_eq!(context.render(Provider::OpenAi)?.body, requests[2]);
        let reply = json!({"role": "assistant", "content": "On its way.", "data_reply": 1});
        context.add("^ah", reply)?;
        context.complete_attempt(9, 4)?;
        context.commit()?;
        context.add("^ah", r#"block:text { role=user } "Thanks.""#)?;
        let summary = NewNode::new().kind("summary").content("They ask.");
        context.compact("^seq .mt", summary)?;
        context.update("^ah .cb", json!({"priority": 3}))?;
        let halfway = written(&mut context);
        context.commit()?;
        context.add("^ah", "block")?;
        Ok([halfway, written(&mut context)])
    };
    assert_eq!(
        go().expect("every step is allowed"),
        [halfway, export(path)]
    );
    assert_eq!(requests[1], "a1-1\n");
    let shown = answer(&["edit", "attempts", path]);
    assert_eq!(
        shown,
        "attempt  status     provider  in  out  error\na1-2     completed  openai     9    4\na1-1     error      openai             timeout\n"
    );
    let listed = answer(&[
        "edit", "attempts", path, "--cycle", "1", "--status", "error", "--format", "json",
    ]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed[0]["attempt_id"], "a1-1");
    // What was sent, though the summary has taken the turn since.
    let request = answer(&["render", path, "--request", "--at", "@c1", "--as", "openai"]);
    assert_eq!(request, requests[2]);
    assert_eq!(
        answer(&["edit", "refs", path]),
        "name   id\nrules  cb:c1-0\n"
    );
    assert_eq!(
        answer(&["select", "--json", path, "@t0 #rules", "--count"]),
        "1\n"
    );

    // An export has what the file has, and is a session to go on with.
    let copy = scratch.write("copy.jsonl", export(path));
    assert_eq!(
        std::fs::read(&copy).expect("it"),
        std::fs::read(path).expect("it")
    );
    for file in [path, &copy] {
        done(&["edit", "commit", file]);
    }
    assert_eq!(export(&copy), export(path));
    assert!(!answer(&["export", path]).contains("runtime"));
}

#[test]
fn an_id_is_given_once() {
    let scratch = Scratch::new("write-ids");
    let path = &*scratch.path("s.jsonl");
    done(&["edit", "new", path]);
    let add = ["edit", "add", path, "^sys", "{\"id\":\"x\"}"];
    let used = || fails(&add, 2, "E_DUPLICATE_ID");
    done(&add);
    done(&["edit", "remove", path, "{id='x'}"]);
    used();
    done(&["edit", "discard", path]);
    used();
    done(&["edit", "commit", path]);
    used();
    // An empty container that a reference kept goes at the first commit without it.
    let parent = r#"{"id":"box","nodeType":"mc","removable":true,"children":[{"id":"in"}]}"#;
    done(&["edit", "add", path, "^sys", parent]);
    done(&["edit", "refs", path, "add", "box", "{id='box'}"]);
    done(&["edit", "commit", path]);
    done(&["edit", "remove", path, "{id='in'}"]);
    assert_eq!(
        done(&["edit", "commit", path]),
        "cycle 3 is committed as mt:3\n"
    );
    done(&["edit", "discard", path]);
    done(&["edit", "refs", path, "drop", "box"]);
    assert_eq!(
        done(&["edit", "commit", path]),
        "cycle 4 is committed as mt:4\nemptied    box\n"
    );
}

#[test]
fn other_forms_are_written_elsewhere_or_in_place() {
    let scratch = Scratch::new("write-forms");
    // One document becomes JSON Lines.
    let document = scratch.write(
        "one.json",
        r#"{"root":{"children":[{"id":"s","nodeType":"^sys"}]}}"#,
    );
    done(&["edit", "add", &document, "^sys", "block { id=a }"]);
    assert_eq!(
        std::fs::read_to_string(&document)
            .expect("it")
            .lines()
            .count(),
        3
    );
    assert_eq!(answer(&["select", "--json", &document, ".cb"]), "[\"a\"]\n");
    // Fixtures, a directory, standard input, gzip.
    let out = scratch.path("out.jsonl");
    assert_eq!(
        done(&[
            "edit",
            "add",
            super::AGENT,
            "^ah",
            "block { id=new }",
            "-o",
            &out
        ]),
        "new\n"
    );
    assert_eq!(
        answer(&["select", "--json", &out, "{id='new'}"]),
        "[\"new\"]\n"
    );
    done(&[
        "edit",
        "add",
        super::AGENT,
        "^ah",
        "block { id=newer }",
        "-o",
        &out,
        "--force",
    ]);
    assert_eq!(
        answer(&["select", "--json", &out, "{id='newer'}"]),
        "[\"newer\"]\n"
    );
    let piped = scratch.path("piped.jsonl");
    let ran = with_input(
        &["edit", "commit", "-", "-o", &piped],
        &std::fs::read(&out).expect("it"),
    );
    assert_eq!(
        (ran.code, &*ran.out),
        (0, "cycle 7 is committed as mt:7\n"),
        "{}",
        ran.err
    );
    let directory = scratch.path("dir");
    std::fs::create_dir(&directory).expect("a directory");
    std::fs::write(format!("{directory}/1.json"), r#"{"root":{}}"#).expect("a file");
    fails(&["edit", "commit", &directory], 6, "-o FILE");
    done(&[
        "edit",
        "commit",
        &directory,
        "-o",
        &scratch.path("from-dir.jsonl"),
    ]);
    let fork = scratch.path("fork.jsonl");
    done(&["edit", "fork", &out, "@c3", "-o", &fork]);
    assert_eq!(
        answer(&["select", "--json", &fork, "@t0 ^seq .mt:depth(1)"]),
        "[\"mt:3\"]\n"
    );
    done(&["edit", "fork", &out, "working", "-o", &fork, "--force"]);
    assert_eq!(
        answer(&["select", "--json", &fork, "{id='newer'}"]),
        "[\"newer\"]\n"
    );
}

#[test]
fn runtime_lines_are_read_and_checked() {
    let scratch = Scratch::new("write-runtime");
    let root = r#"{"root":{}}"#;
    for (name, text, message) in [
        (
            "two",
            format!("{root}\n{{\"runtime\":{{}}}}\n{{\"runtime\":{{}}}}\n"),
            "a second `runtime`, the first is in line 2",
        ),
        (
            "list",
            format!("{root}\n{{\"runtime\":[]}}\n"),
            "must have a `root`",
        ),
        (
            "bad",
            format!("{root}\n{{\"runtime\":{{\"attempts\":[1]}}}}\n"),
            "$.runtime",
        ),
    ] {
        let path = scratch.write(&format!("{name}.jsonl"), text);
        fails(&["verify", &path], 5, message);
        fails(&["edit", "commit", &path], 5, message);
    }
    let path = scratch.write(
        "memory.jsonl",
        format!("{root}\n{{\"runtime\":{{\"memory\":1}}}}\n"),
    );
    answer(&["select", "--json", &path, "@t0 *"]);
    fails(&["edit", "commit", &path], 5, "`runtime` line");
    let path = scratch.write("ok.jsonl", format!("{{\"runtime\":{{}}}}\n{root}\n"));
    assert_eq!(
        answer(&["select", "--json", &path, "@t0 *", "--count"]),
        "1\n"
    );
}

/// The parameters of requests are members of the document: its lines are still differences.
#[test]
fn lines_with_members_of_their_own_are_differences() {
    let scratch = Scratch::new("write-members");
    let node = "x".repeat(200);
    let document = |more: &str, nodes: &str| {
        format!(
            r#"{{"root":{{"children":[{{"id":"s","nodeType":"^sys","children":[{{"id":"{node}"}}{nodes}]}}]}}{more}}}"#
        )
    };
    let more = r#","meta":{"request":{"model":"m"}},"apple":1,"removed":2,"zebra":3,"bx":4"#;
    let whole = [
        document(more, ""),
        document(more, r#",{"id":"b"}"#),
        document("", r#",{"id":"b"}"#),
    ];
    let path = scratch.write("whole.jsonl", whole.join("\n"));
    let short = export(&path);
    let lines: Vec<&str> = short.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            r#"{"apple":1,"base":1,"bx":4,"meta":{"request":{"model":"m"}},"remove":[],"removed":2,"replace":[{"id":"b","parent_id":"s"}],"zebra":3}"#,
            r#"{"base":2,"remove":[],"replace":[]}"#,
        ]
    );
    let again = scratch.write("short.jsonl", &short);
    assert_eq!(export(&again), short);
    let full = |path: &str| answer(&["export", path, "--jsonl", "--full"]);
    assert_eq!(full(&again), full(&path));
}

#[cfg(unix)]
mod unix {
    use super::{NOW, Scratch, answer, done, fails, session};
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn modes_and_links_are_kept() {
        let scratch = Scratch::new("write-modes");
        let path = &*session(&scratch);
        let mode = |path: &str| std::fs::metadata(path).expect("it").permissions().mode() & 0o777;
        let set =
            |mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("it");
        set(0o640);
        let link = &*scratch.path("link.jsonl");
        symlink("s.jsonl", link).expect("a link");
        assert_eq!(done(&["edit", "add", link, "^ah", "block { id=x }"]), "x\n");
        assert!(std::fs::symlink_metadata(link).expect("it").is_symlink());
        assert_eq!(
            answer(&["select", "--json", path, "{id='x'}", "--count"]),
            "1\n"
        );
        assert_eq!(mode(path), 0o640);
        set(0o440);
        fails(&["edit", "commit", path], 6, "the file is read-only");
        assert_eq!(mode(path), 0o440);
    }

    #[test]
    fn a_session_has_one_writer() {
        let scratch = Scratch::new("write-lock");
        let path = &*session(&scratch);
        let file = pactql::SessionFile::open(path, pactql::Context::builder()).expect("it opens");
        let error = fails(&["edit", "commit", path], 6, "E_SESSION_BUSY");
        assert!(error.contains("help: `--wait` waits"), "{error}");
        let other = [
            "edit",
            "add",
            super::super::AGENT,
            "^ah",
            "block",
            "-o",
            path,
            "--force",
        ];
        fails(&other, 6, "E_SESSION_BUSY");
        // Readers do not wait.
        answer(&["select", "--json", path, "@t0 *"]);
        drop(file);
        let mut file =
            pactql::SessionFile::open(path, pactql::Context::builder()).expect("it opens");
        file.context().commit().expect("a commit");
        file.save().expect("saved");
        // The lock is on the new file, too.
        fails(&["edit", "commit", path, "--wait=0"], 6, "E_SESSION_BUSY");
        let waiting = std::thread::spawn({
            let path = path.to_owned();
            move || done(&["edit", "commit", &path, "--wait"])
        });
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(file);
        let committed = waiting.join().expect("it ends");
        assert!(committed.starts_with("cycle 3 is committed"), "{committed}");
    }

    /// Writers that are killed at any moment leave the file before or the file after, and everything
    /// that was acknowledged is in it.
    #[test]
    fn a_killed_writer_loses_nothing() {
        if crate::cases::left_to_ci() {
            return;
        }
        let scratch = Scratch::new("write-kill");
        let path = &*scratch.path("s.jsonl");
        done(&["edit", "new", path]);
        let mut acknowledged = 0;
        for round in 0..20_u64 {
            let script = "while \"$0\" edit commit \"$1\" --clock \"$2\"; do :; done";
            let mut child = Command::new("sh")
                .args(["-c", script, env!("CARGO_BIN_EXE_pactql"), path, NOW])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                // A group of its own, to be killed with all in it.
                .process_group(0)
                .spawn()
                .expect("the shell starts");
            std::thread::sleep(std::time::Duration::from_millis(60 + round * 7));
            let group = format!("-{}", child.id());
            let killed = Command::new("kill").args(["-9", "--", &group]).status();
            assert!(killed.expect("kill runs").success());
            let mut printed = String::new();
            let mut out = child.stdout.take().expect("a pipe");
            out.read_to_string(&mut printed).expect("UTF-8");
            child.wait().expect("it ends");
            let lines = printed.lines().filter_map(|line| {
                let rest = line.strip_prefix("cycle ")?;
                rest.split_once(" is committed as ")?.0.parse::<u64>().ok()
            });
            acknowledged = lines.max().unwrap_or(acknowledged).max(acknowledged);
            let stats = answer(&["sessions", "-v", path, "--format", "json"]);
            let stats: serde_json::Value = serde_json::from_str(&stats).expect("JSON");
            let cycle = stats["session"]["newest_cycle"].as_u64().unwrap_or(0);
            assert!(
                cycle >= acknowledged,
                "cycle {cycle}, acknowledged {acknowledged}"
            );
            assert!(answer(&["verify", path, "--format", "json"]).contains("\"valid\":true"));
        }
        assert!(
            acknowledged > 5,
            "the writers did something: {acknowledged}"
        );
        // What a killed writer left is hidden, and the next one replaces it.
        done(&["edit", "commit", path]);
        let left = std::fs::read_dir(&scratch.0).expect("a directory").count();
        assert_eq!(left, 1);
    }
}

/// Random steps on a context that goes on, and on one that is written and read again after each.
#[test]
fn a_context_goes_on_from_its_file_as_if_it_had_not_stopped() {
    if crate::cases::left_to_ci() {
        return;
    }
    let mut changes = 0;
    for seed in 1..=12_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut random = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let builder = || {
            let clock = StepClock::new(NOW.parse().expect("a number"), 0);
            let policy = Policy::new().limit(
                pactql::context::Scope::Seq,
                pactql::context::Measure::Nodes,
                24,
            );
            Context::builder().clock(clock).policy(policy)
        };
        let mut straight = builder().build();
        let mut reread = builder().build();
        for step in 0..60 {
            let (what, target, ttl) = (random(14), random(6), random(4));
            let parent = [
                "^sys",
                "^ah",
                "(d0, end)",
                "(d1, end)",
                ".mc:last",
                "(d0, -1)",
            ];
            let parent = parent[target as usize];
            let some = [
                ".cb:first",
                ".cb:last",
                "^sys .cb",
                ".mc:last",
                "^ah .cb",
                ".cb[ttl<=1]",
            ];
            let some = some[target as usize];
            let go = |context: &mut Context| match what {
                0..=3 => {
                    let node = NewNode::text("text").offset(ttl as i64 - 1);
                    let node = if ttl > 1 {
                        node.ttl(ttl as i64 - 2)
                    } else {
                        node
                    };
                    context.add(parent, node).map(|id| vec![id])
                }
                4 => {
                    let child = NewNode::text("in").ttl(1);
                    let node = NewNode::container().removable().offset(1).child(child);
                    context.add(parent, node).map(|id| vec![id])
                }
                5 => context.update(some, json!({"ttl": ttl})),
                6 => context.remove(some),
                7 => context.move_to(some, parent),
                8 => context
                    .replace(some, NewNode::text("other"))
                    .map(|id| vec![id]),
                9 => context
                    .compact(some, NewNode::text("sum"))
                    .map(|id| vec![id]),
                10 if ttl == 0 => {
                    context.discard();
                    Ok(Vec::new())
                }
                10 => context
                    .pin_as(["a", "b"][(ttl % 2) as usize], some)
                    .map(|id| vec![id]),
                11 => Ok(context
                    .unpin(["a", "b"][(ttl % 2) as usize])
                    .into_iter()
                    .collect()),
                12 => context
                    .render(Provider::Thread)
                    .map(|request| vec![request.body]),
                _ => context.commit().map(|commit| vec![format!("{commit:?}")]),
            };
            let [a, b] = [go(&mut straight), go(&mut reread)];
            changes += usize::from(a.as_ref().is_ok_and(|ids| !ids.is_empty()));
            let told = |done: Result<Vec<String>, pactql::Error>| done.map_err(|e| e.to_string());
            let place = format!("seed {seed}, step {step}: {what} {some} {parent} {ttl}");
            assert_eq!(told(a), told(b), "{place}");
            let file = written(&mut reread);
            assert_eq!(written(&mut straight), file, "{place}");
            let session = pactql::Session::from_slice(file.as_bytes()).expect("a session");
            reread = builder().resume(&session).expect("it goes on");
            assert_eq!(written(&mut reread), file, "{place}, read again");
        }
    }
    assert!(changes > 280, "{changes} of 720 steps changed something");
}
