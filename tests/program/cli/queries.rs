//! Select, explain, check, fmt.

use super::{AGENT, CHAT, Scratch, answer, fails, pactql, with_input};
use serde_json::{Value, json};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// The ids a selector finds in the fixture.
fn ids(selector: &str) -> Value {
    parsed(&answer(&["select", "--json", AGENT, selector]))
}

#[test]
fn select_prints_a_list_of_ids() {
    for (selector, expected) in [
        (
            "@t0 ^seq .mt:depth(1) .cb[role='assistant']",
            json!(["cb:a5", "cb:c5"]),
        ),
        (
            "@t0 .cb[kind='call']",
            json!(["cb:c2", "cb:c3", "cb:c4", "cb:c5"]),
        ),
        ("@c1 .cb[kind='call']", json!(["cb:c1"])),
        (
            "@c1 ^seq > .mt > .cb[offset<0]",
            json!(["cb:doc1", "cb:doc2"]),
        ),
        ("@t0 .cb:summary", json!(["cb:sum1"])),
        (".cb[kind='doc']", json!(["cb:doc3", "cb:doc4"])),
        ("@t0 .cb[kind='nothing']", json!([])),
    ] {
        assert_eq!(ids(selector), expected, "{selector}");
    }
    let oldest = ["select", "--json", AGENT, "#cb:a5", "--edition", "v0.1"];
    assert_eq!(parsed(&answer(&oldest)), json!(["cb:a5"]));
    let dashed = ["select", "--json", AGENT, "-e", "@t0 .cb:summary"];
    assert_eq!(parsed(&answer(&dashed)), json!(["cb:sum1"]));
}

/// A root may come without an id; its row has one, as `ids` prints it.
#[test]
fn nodes_name_a_root_without_an_id() {
    let text = r#"{"root":{"children":[{"id":"a","children":null}]}}"#;
    let nodes = with_input(&["select", "-", "*", "--format", "nodes"], text.as_bytes());
    let nodes: Vec<Value> = nodes.out.lines().map(parsed).collect();
    let expected = |id: &str, parent: Value| json!({"id": id, "parent_id": parent, "depth": null, "snapshot": "@c1"});
    assert_eq!(
        nodes,
        [
            expected("^root", Value::Null),
            expected("a", json!("^root"))
        ]
    );
}

#[test]
fn select_prints_in_every_format() {
    let run = |format: &str| {
        answer(&[
            "select",
            AGENT,
            "@t0 .cb[kind='call'][cycle>=4]",
            "--format",
            format,
        ])
    };
    assert_eq!(run("json"), "[\"cb:c4\",\"cb:c5\"]\n");
    assert_eq!(run("ids"), "cb:c4\ncb:c5\n");
    let nodes: Vec<Value> = run("nodes").lines().map(parsed).collect();
    assert_eq!(nodes.len(), 2);
    assert_eq!(nodes[0]["id"], "cb:c4");
    assert_eq!(nodes[0]["parent_id"], "mc:4");
    assert_eq!(nodes[0]["depth"], 3);
    assert_eq!(nodes[0]["snapshot"], "@c6");
    assert_eq!(nodes[0]["data_call_name"], "book_pickup");
    assert!(nodes[0].get("children").is_none());
    let table = run("table");
    assert!(
        table.contains("cb:c4") && table.contains("RT-3391"),
        "{table}"
    );
    assert_eq!(table.lines().count(), 3, "{table}");
    assert_eq!(
        run("tree")
            .lines()
            .map(|line| line.split(": ").next().unwrap_or(line))
            .collect::<Vec<_>>()
            .join("\n"),
        "@c6\n  ○ ^root\n    ○ ^seq\n      ○ mt:4\n        ○ mc:4\n          ● cb:c4 assistant call\n      \
         ○ mt:6\n        ○ mc:6\n          ● cb:c5 assistant call"
    );
}

#[test]
fn select_counts_without_listing() {
    for format in ["json", "ids", "table"] {
        let counted = [
            "select",
            AGENT,
            "@t0 .cb[kind='call']",
            "--count",
            "--format",
            format,
        ];
        assert_eq!(answer(&counted), "4\n");
    }
}

#[test]
fn several_sessions_are_labelled() {
    let scratch = Scratch::new("labels");
    let other = scratch.path("chat.jsonl");
    assert_eq!(pactql(&["import", CHAT, "-o", &other]).code, 0);
    let run = |more: &[&str]| {
        let mut arguments = vec!["select", AGENT, &other, "-e", "@t0 .cb[kind='image']"];
        arguments.extend(more);
        answer(&arguments)
    };
    let lines: Vec<Value> = run(&["--json"]).lines().map(parsed).collect();
    assert_eq!(
        lines,
        [
            json!({"session": AGENT, "result": ["cb:i1"]}),
            json!({"session": other, "result": ["cb:6-2"]}),
        ]
    );
    assert_eq!(
        run(&["--count", "--json"])
            .lines()
            .map(parsed)
            .collect::<Vec<_>>(),
        [
            json!({"session": AGENT, "count": 1}),
            json!({"session": other, "count": 1})
        ]
    );
    assert_eq!(
        run(&["--format", "ids"]),
        format!("{AGENT}\tcb:i1\n{other}\tcb:6-2\n")
    );
    let nodes: Vec<Value> = run(&["--format", "nodes"]).lines().map(parsed).collect();
    assert_eq!(nodes[1]["session"], json!(other));
    // One without the snapshot is left out, and named.
    let ran = pactql(&["select", AGENT, &other, "-e", "@c6 .cb#x"]);
    let said = format!("left out 1 session without such a snapshot: {other}\n");
    assert!(ran.code == 0 && ran.err.contains(&said), "{}", ran.err);
    let error = fails(
        &["select", AGENT, &other, "-e", "@c9999 .cb"],
        2,
        "E_SNAPSHOT_NOT_FOUND",
    );
    assert!(error.contains(AGENT), "{error}");
    fails(
        &["select", AGENT, "missing.jsonl", "-e", "@t0 .cb"],
        4,
        "missing.jsonl",
    );
}

#[test]
fn a_range_gives_differences() {
    let range = "@t-1..@t0 .cb[kind='doc']";
    let diff = parsed(&answer(&["select", AGENT, range, "--format", "json"]));
    assert_eq!(diff["query"], range);
    assert_eq!(diff["mode"], "pairwise");
    assert_eq!(diff["snapshots"].as_array().map(Vec::len), Some(2));
    assert_eq!(diff["diffs"][0]["added_ids"], json!(["cb:doc3"]));
    assert_eq!(
        answer(&["select", AGENT, range, "--format", "ids"]),
        "@t0..@t-1\t+\tcb:doc3\n"
    );
    let table = answer(&["select", AGENT, range, "--format", "table"]);
    assert!(
        table.starts_with("@t0 after @t-1: 1 added, 0 removed, 0 changed\n"),
        "{table}"
    );
    fails(&["select", AGENT, range, "--format", "nodes"], 3, "a range");
    let falling = parsed(&answer(&[
        "select",
        "--json",
        AGENT,
        "@c1..@c3 .cb[kind='doc']",
    ]));
    assert_eq!(falling["diffs"][0]["changed"][0]["fields"], json!(["ttl"]));
    assert_eq!(falling["diffs"][1]["removed_ids"], json!(["cb:doc2"]));
}

#[test]
fn mistakes_in_a_selector_are_reported_as_text_or_json() {
    let error = fails(&["select", AGENT, "@t0 .cb["], 2, "E_SELECTOR_INVALID");
    assert!(error.contains("@t0 .cb["), "{error}");
    for command in ["select", "explain", "bench"] {
        let mut arguments = vec![command, AGENT, "-e", "@t0 .cb[", "--format", "json"];
        if command == "explain" {
            arguments.remove(2);
        }
        let error = parsed(&fails(&arguments, 2, "E_SELECTOR_INVALID"));
        assert_eq!(error["error"]["code"], "E_SELECTOR_INVALID");
        assert!(error["error"]["spans"][0]["start"].is_u64(), "{error}");
    }
    // A wrong selector is reported before a missing file.
    fails(
        &["select", "missing.jsonl", "@t0 .cb["],
        2,
        "E_SELECTOR_INVALID",
    );
    fails(&["select", AGENT, "@c99 .cb"], 2, "E_SNAPSHOT_NOT_FOUND");
    fails(
        &["select", AGENT, "@t0..@c3 .cb"],
        2,
        "E_SNAPSHOT_RANGE_KIND_MISMATCH",
    );
    fails(
        &[
            "select",
            AGENT,
            "@t0 .cb",
            "--format",
            "json",
            "--edition",
            "nope",
        ],
        3,
        "E_VALUE",
    );
    let colored = pactql(&["select", AGENT, "@t0 .cb[", "--color", "always"]);
    assert!(colored.err.contains('\u{1b}'));
    let plain = pactql(&["select", AGENT, "@t0 .cb["]);
    assert!(!plain.err.contains('\u{1b}'));
}

#[test]
fn an_empty_answer_for_a_key_that_is_an_id_comes_with_a_note() {
    let ran = pactql(&["select", AGENT, "@t0 #cb:a5"]);
    assert_eq!((ran.code, &*ran.out), (0, ""));
    assert!(
        ran.err.starts_with("note: no node has the key"),
        "{}",
        ran.err
    );
    let ran = pactql(&["select", AGENT, "@t0 #cb:a5", "--format", "json"]);
    let notes = parsed(&ran.err);
    assert_eq!(notes["notes"][0]["reason"], "key_is_an_id");
    assert_eq!(notes["notes"][0]["key"], "cb:a5");
    let ran = pactql(&["select", AGENT, "@t0 [id='summary']"]);
    assert!(
        ran.err.contains("`[key='summary']` finds it"),
        "{}",
        ran.err
    );
    let ran = pactql(&["select", AGENT, "@t0 #nothing-at-all"]);
    assert_eq!(ran.err, "note: no node has the key `nothing-at-all`\n");
}

#[test]
fn a_file_of_selectors_is_answered_line_by_line() {
    let scratch = Scratch::new("file");
    let text = "\u{feff}@t0 .cb:summary\r\n\r\n@t0 .cb[\n# no comments\n@t-1..@t0 .cb:summary\n@t0 .cb[kind='image']";
    let file = scratch.write("selectors.txt", text);
    let ran = pactql(&["select", AGENT, "--file", &file, "--format", "json"]);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.err, "");
    let lines: Vec<Value> = ran.out.lines().map(parsed).collect();
    assert_eq!(lines.len(), 6, "{}", ran.out);
    assert_eq!(lines[0], json!(["cb:sum1"]));
    for line in [1, 2, 3] {
        assert_eq!(
            lines[line]["error"]["code"], "E_SELECTOR_INVALID",
            "{}",
            lines[line]
        );
    }
    assert_eq!(lines[4]["query"], "@t-1..@t0 .cb:summary");
    assert_eq!(lines[5], json!(["cb:i1"]));
    let good = scratch.write("good.txt", "@t0 .cb:summary\n@t0 .cb[kind='image']\n");
    assert_eq!(
        answer(&["select", AGENT, "--file", &good]),
        "[\"cb:sum1\"]\n[\"cb:i1\"]\n"
    );
    assert_eq!(
        answer(&["select", AGENT, "--file", &good, "--count"]),
        "1\n1\n"
    );
    let piped = with_input(
        &["select", AGENT, "--file", "-"],
        b"@t0 .cb:summary\n\xff\n",
    );
    assert_eq!(piped.code, 2);
    assert_eq!(piped.out.lines().count(), 2);
    let blank = scratch.write("blank.txt", "");
    assert_eq!(answer(&["select", AGENT, "--file", &blank]), "");
    fails(
        &["select", AGENT, "--file", &good, "--format", "table"],
        3,
        "JSON only",
    );
    fails(&["select", AGENT, AGENT, "--file", &good], 1, "one session");
    fails(
        &["select", AGENT, "--file", "no-such-file"],
        4,
        "no-such-file",
    );
}

#[test]
fn a_log_is_imported_and_queried_in_one_pipe() {
    let imported = answer(&["import", CHAT]);
    let asked = with_input(
        &["select", "--json", "-", "@t0 .cb[kind='result']"],
        imported.as_bytes(),
    );
    assert_eq!(
        parsed(&asked.out),
        json!(["cb:4-1", "cb:8-1", "cb:9-1", "cb:12-1"])
    );
    let call = with_input(
        &[
            "select",
            "-",
            "@t0 .cb[data_call_name='book_pickup'][kind='call']",
            "--format",
            "ids",
        ],
        imported.as_bytes(),
    );
    assert_eq!(call.out, "cb:7-2\ncb:11-2\n");
}

#[test]
fn explain_works_with_and_without_a_session() {
    let selector = "@t0 .cb[kind='call']";
    let text = answer(&["explain", selector]);
    assert!(text.contains(selector), "{text}");
    let text = answer(&["explain", AGENT, selector, "--analyze", "--verbose"]);
    assert!(text.contains("rows"), "{text}");
    let json = parsed(&answer(&[
        "explain",
        AGENT,
        selector,
        "--analyze",
        "--format",
        "json",
    ]));
    // Each step tells what it took; what acts on the union is the answer.
    let lines = json["plan"].as_array().expect("a plan");
    assert_eq!(lines[0]["actual_rows"], json["analysis"]["rows"]);
    for line in lines.iter().filter(|line| line["step"].is_u64()) {
        for count in ["time_ns", "pieces", "text_bytes", "ttl_rows"] {
            assert!(line["work"][count].is_u64(), "{line}");
        }
    }
    assert!(
        json["analysis"]["work"]["time_ns"].as_u64() > Some(0),
        "{json}"
    );
    fails(&["explain", "missing.jsonl", selector], 4, "missing.jsonl");
    fails(
        &["explain", AGENT, "@c99 .cb", "--analyze"],
        2,
        "E_SNAPSHOT_NOT_FOUND",
    );
}

#[test]
fn check_and_fmt_print_the_normalized_form() {
    let same = [
        "@t0 ^ah > .mc[offset=0]",
        "@t0 depth(0)>.cont(offset=0)",
        "@t0 depth(0) > .cont:core",
    ];
    let canonical = answer(&["fmt", same[0]]);
    assert_eq!(answer(&["fmt", same[1], same[2]]), canonical.repeat(2));
    assert_eq!(answer(&["fmt", canonical.trim_end()]), canonical);
    let report = parsed(&answer(&["fmt", "--check", same[1], "--format", "json"]));
    assert_eq!(report["canonical"], canonical.trim_end());
    assert_eq!(report["fingerprint"].as_str().map(str::len), Some(64));
    assert!(answer(&["fmt", "--check", same[1]]).starts_with(&canonical));
    let warned = pactql(&["fmt", "--check", "@t0 .cb:frist"]);
    assert_eq!(warned.code, 0);
    assert!(warned.err.contains("warning"), "{}", warned.err);
    fails(&["fmt", "--check", "@t0 .cb["], 2, "E_SELECTOR_INVALID");
    fails(&["fmt", "@t0 .cb", "@t0 ["], 2, "E_SELECTOR_INVALID");
}

#[test]
fn fmt_writes_the_canonical_edition_only() {
    let v01 = |more: &[&str]| answer(&[&["fmt", "--edition", "v0.1", "#cb:u1"], more].concat());
    assert_eq!(v01(&["--to", "canonical"]), "@t0 {id='cb:u1'}\n");
    assert_eq!(v01(&[]), "@t0 {id='cb:u1'}\n");
    for edition in ["v0.1", "depth", "v9"] {
        fails(&["fmt", "--to", edition, "@t0 .cb"], 3, edition);
    }
    // A construct that an edition does not have names the edition that has it.
    let said = fails(
        &["fmt", "--edition", "depth", "@t0 .cb @first"],
        2,
        "E_EDITION",
    );
    assert!(said.contains("edition `canonical` has it"), "{said}");
}

/// LANGUAGE §1: implicit cores are never counted.
#[test]
fn stats_count_nodes_and_no_implicit_cores() {
    let turns: Vec<String> = (0..5)
        .map(|n| format!(r#"{{"id":"t{n}","nodeType":"mt","children":[{{"id":"b{n}"}}]}}"#))
        .collect();
    let document = format!(
        r#"{{"root":{{"id":"r","children":[{{"id":"q","nodeType":"^seq","children":[{}]}}]}}}}"#,
        turns.join(",")
    );
    let ran = with_input(
        &["sessions", "-v", "-", "--format", "json"],
        document.as_bytes(),
    );
    let stats: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    for pointer in [
        "/nodes/total",
        "/session/nodes_in_snapshots",
        "/session/index/nodes",
    ] {
        assert_eq!(stats.pointer(pointer), Some(&12.into()), "{pointer}");
    }
    let text = with_input(
        &["sessions", "-v", "-", "--format", "text"],
        document.as_bytes(),
    )
    .out;
    assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
    assert!(text.contains(" 1 segment\n"), "{text}");
}

/// A failed write is not reported as missing input (RUNTIME §7).
#[test]
fn an_output_that_cannot_be_written_is_exit_6() {
    const SESSION: &str = "fixtures/support-agent.jsonl";
    for output in ["/nonexistent/x.jsonl", ""] {
        fails(&["export", SESSION, "-o", output], 6, "error[E_IO]: ");
    }
    fails(
        &["sessions", "-v", "/nonexistent/x.jsonl"],
        4,
        "error[E_MISSING]: ",
    );
}

/// LANGUAGE §8: warnings go to standard error; reports contain their own.
#[test]
fn warnings_are_reported_once() {
    const SESSION: &str = "fixtures/support-agent.jsonl";
    let ran = with_input(
        &["select", SESSION, "--file", "-"],
        b"@t0 .cb:frist\n@t0 .cb\n",
    );
    assert_eq!(ran.err.matches("warning: ").count(), 1, "{}", ran.err);
    let ran = pactql(&["explain", "@t0 .mt:frist"]);
    let told = format!("{}{}", ran.out, ran.err);
    assert_eq!(
        told.matches("did you mean")
            .count()
            .max(told.matches("frist` ").count()),
        1,
        "{told}"
    );
}

/// Characters that change the direction of text do not reach the terminal.
#[test]
fn directions_are_not_printed() {
    let document =
        r#"{"root":{"id":"r","children":[{"id":"a","nodeType":"cb","role":"x\u202ey\u2066"}]}}"#;
    for format in ["table", "tree"] {
        let ran = with_input(
            &["select", "-", "@t0 .cb", "--format", format],
            document.as_bytes(),
        );
        assert!(!ran.out.contains(['\u{202e}', '\u{2066}']), "{}", ran.out);
    }
}
