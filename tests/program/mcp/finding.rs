//! An agent that knows nothing finds its way: which sessions there are, and how to ask.

use super::{Client, Scratch, reading};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;

/// A session of so many turns; in each a tool is called, which fails in every other one.
fn with_failures(turns: usize) -> String {
    let mut lines = String::new();
    let mut sealed = Vec::new();
    for turn in 1..=turns {
        let tool = ["search", "deploy"][turn % 2];
        let block = |number: usize, role: &str, kind: &str, content: &str, more: Value| {
            let mut block = json!({
                "nodeType": "cb", "id": format!("cb:{turn}-{number}"), "role": role, "kind": kind,
                "content": content, "creation_index": number,
            });
            for (name, value) in more.as_object().cloned().unwrap_or_default() {
                block[name] = value;
            }
            block
        };
        let call = json!({"data_call_id": format!("call-{turn}"), "data_call_name": tool});
        let mut result = call.clone();
        result["data_is_error"] = json!(turn % 2 == 0);
        sealed.push(json!({
            "nodeType": "mt", "id": format!("mt:{turn}"), "cycle": turn, "creation_index": turn, "children": [{
                "nodeType": "mc", "id": format!("mc:{turn}"), "offset": 0, "children": [
                    block(1, "user", "text", "Does the time out come again?", json!({})),
                    block(2, "assistant", "call", "{}", call),
                    block(3, "tool", "result", "time out", result),
                    block(4, "assistant", "text", "Yes.", json!({})),
                ],
            }],
        }));
        let document = json!({"cycle": turn, "root": {"children": [
            {"nodeType": "^sys", "id": "^sys", "children": [
                {"nodeType": "cb", "id": "cb:s", "role": "system", "kind": "text", "content": "Be brief."},
            ]},
            {"nodeType": "^seq", "id": "^seq", "children": sealed},
        ]}});
        let _ = writeln!(lines, "{document}");
    }
    lines
}

/// Names and answers are those of the command line.
#[test]
fn sessions_of_a_log_of_several_are_listed_and_opened() {
    let scratch = Scratch::new("several");
    let case = "tests/cases/logs/inspect-ai/synthetic-log.json";
    let case = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(case);
    fs::create_dir(scratch.path("root/runs")).expect("a directory");
    fs::copy(case, scratch.path("root/runs/log.json")).expect("a copy");
    let mut client = scratch.client();
    let listed = parsed(&client.answer("pact_list_sessions", json!({"root": "runs"})));
    assert_eq!(listed["no_session"]["files"], 0);
    let names = listed["sessions"].as_array().expect("a list").iter();
    let mut names: Vec<&str> = names.filter_map(|one| one["session"].as_str()).collect();
    names.sort_unstable();
    let (_, printed, _) = scratch.command(&["sessions", "runs/log.json", "--json"]);
    let known = printed.lines().map(parsed);
    let known = known.filter_map(|one| Some(format!("runs/log.json#{}", one["name"].as_str()?)));
    let mut known: Vec<String> = known.collect();
    known.sort_unstable();
    assert_eq!(names, known);
    assert!(names.len() > 1, "{names:?}");
    for name in names {
        let (exit, printed, _) = scratch.command(&["steps", name, "--json"]);
        assert_eq!(exit, 0, "{name}");
        let (failed, texts) = client.call("pact_steps", json!({"session": name}));
        assert!(!failed, "{texts:?}");
        assert_eq!(texts[0], printed.trim_end(), "{name}");
    }
    for (name, code) in [
        ("runs/log.json", "E_INPUT"),
        ("runs/log.json#none", "E_MISSING"),
        (".", "E_USAGE"),
    ] {
        let error = client.error("pact_steps", json!({"session": name}));
        assert_eq!(error["code"], code, "{error}");
        let help = error["help"].as_str().unwrap_or_default();
        assert!(help.contains("`pact_list_sessions` lists"), "{error}");
    }
    let outside = client.error("pact_steps", json!({"session": "../outside.jsonl#x"}));
    assert_eq!(outside["code"], "E_VALUE");
    assert_eq!(client.end().0, 0);
}

/// A branch and a subagent are listed, and both of their names are taken.
#[test]
fn branches_and_subagents_are_listed_and_opened() {
    let scratch = Scratch::new("branches");
    let cases = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/logs");
    fs::create_dir(scratch.path("root/runs")).expect("a directory");
    for (from, to) in [
        ("pi/synthetic-session.jsonl", "root/runs/pi.jsonl"),
        ("claude-code/synthetic-session.jsonl", "root/runs/cc.jsonl"),
    ] {
        fs::copy(cases.join(from), scratch.path(to)).expect("a copy");
    }
    let mut client = scratch.client();
    let listed = parsed(&client.answer("pact_list_sessions", json!({"root": "runs"})));
    let names = listed["sessions"].as_array().expect("a list").iter();
    let names: Vec<&str> = names.filter_map(|one| one["session"].as_str()).collect();
    for log in ["runs/pi.jsonl", "runs/cc.jsonl"] {
        let found = names.iter().filter(|name| name.starts_with(log));
        let found: Vec<&str> = found.copied().filter(|name| name.contains('#')).collect();
        assert_eq!(found.len(), if log == "runs/cc.jsonl" { 2 } else { 1 });
        for name in found {
            let (_, own) = name.split_once('#').expect("a name");
            let stem = log.trim_start_matches("runs/").trim_end_matches(".jsonl");
            let given = format!("{log}#{stem}{own}");
            let (exit, printed, _) = scratch.command(&["steps", &given, "--json"]);
            assert_eq!(exit, 0, "{given}");
            for name in [name, &given] {
                let (failed, texts) = client.call("pact_steps", json!({"session": name}));
                let is_same = !failed && texts[0] == printed.trim_end();
                assert!(is_same, "{name}: {texts:?}");
            }
        }
        // What is left out of the log is named by a tool of this server.
        let (_, texts) = client.call("pact_steps", json!({"session": log}));
        let notes = texts.get(1).map_or("", String::as_str);
        assert!(notes.contains("`pact_list_sessions` names "), "{notes}");
        assert!(!notes.contains("pactql import"), "{notes}");
    }
    assert_eq!(client.end().0, 0);
}

/// A session without breaks has sums all the same, those that the command line prints.
#[test]
fn a_prefix_without_breaks_has_its_totals() {
    let scratch = Scratch::new("totals");
    fs::write(scratch.path("root/plain.jsonl"), with_failures(4)).expect("a file");
    let mut client = scratch.client();
    let found = parsed(&client.answer("pact_prefix", json!({"session": "plain.jsonl"})));
    let totals = &found["totals"];
    assert_eq!(found["steps"], json!([]));
    assert_eq!(totals["requests"], 4, "{totals}");
    assert_eq!(totals["breaks"], 0, "{totals}");
    let (_, text, _) = scratch.command(&["prefix", "plain.jsonl"]);
    let (shared, bytes) = (&totals["shared_bytes"], &totals["bytes"]);
    let line = format!("a cache can read {shared} of {bytes} bytes");
    assert!(text.replace(',', "").contains(&line), "{text}");
    assert_eq!(client.end().0, 0);
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// "Which tool calls failed in the last three turns of the longest session?" takes three calls. Only what the
/// server says is used: descriptions, the help, answers.
#[test]
fn an_agent_that_knows_nothing_finds_the_failed_calls() {
    let scratch = Scratch::new("finding");
    let deep = scratch.path("root/runs/2026");
    fs::create_dir_all(&deep).expect("a directory");
    fs::write(deep.join("longest.jsonl"), with_failures(9)).expect("a file");
    fs::write(scratch.path("root/shorter.jsonl"), with_failures(4)).expect("a file");
    let mut client = scratch.client();
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let tool = |start: &str| {
        let tools = tools.as_array().expect("a list").iter();
        let mut found = tools.filter(|tool| {
            tool["description"]
                .as_str()
                .is_some_and(|about| about.starts_with(start))
        });
        found.next().expect("a tool")["name"]
            .as_str()
            .expect("a name")
            .to_owned()
    };
    // The first call: the longest session is the first.
    let listing = parsed(&client.answer(&tool("Begin here"), json!({})));
    let longest = listing["sessions"][0]["session"].clone();
    assert_eq!(longest, "runs/2026/longest.jsonl");
    // The second: how to ask for it.
    let help = client.answer(&tool("The selector language on one page"), json!({}));
    let line = help
        .lines()
        .find(|line| line.contains("failed in the last three turns"));
    let selector = line
        .and_then(|line| line.split('`').nth(1))
        .expect("an example");
    // The third: the answer.
    let arguments = json!({"session": longest, "selector": selector, "format": "nodes"});
    let answer = client.answer(&tool("Find nodes of a session"), arguments);
    let failed: Vec<Value> = answer.lines().map(parsed).collect();
    let names = |name: &str| {
        failed
            .iter()
            .map(|node| node[name].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("data_call_id"), ["call-8"]);
    assert_eq!(names("data_call_name"), ["search"]);
    assert_eq!(client.end().0, 0);
}

/// The examples of the help are selectors, and find something where there is something to find.
#[test]
fn the_examples_of_the_help_are_run() {
    let scratch = Scratch::new("help");
    let mut client = scratch.client();
    let help = client.answer("pact_help", json!({}));
    let examples: Vec<&str> = help
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .map(|line| line.split('`').nth(1).expect("a selector"))
        .collect();
    assert_eq!(examples.len(), 10);
    let lines = with_failures(5);
    let (all, last) = lines.trim_end().rsplit_once('\n').expect("lines");
    let last = last.replace(
        "\"data_call_name\":\"deploy\"",
        "\"data_call_name\":\"read_file\"",
    );
    let last = last.replacen("\"kind\":\"text\"", "\"kind\":\"summary\"", 1);
    fs::write(scratch.path("root/all.jsonl"), format!("{all}\n{last}\n")).expect("a file");
    for selector in examples {
        let arguments = json!({"session": "all.jsonl", "selector": selector, "count": true});
        let count = client.answer("pact_select", arguments);
        assert_ne!(count, "0", "{selector}");
    }
    // It fits on a page, and every tool that it names is there.
    assert!(help.len() < 5000, "{} bytes", help.len());
    for name in help.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_') {
        if name.starts_with("pact_") {
            let answer = client.ask(
                "tools/call",
                json!({"name": name, "arguments": {"none": 1}}),
            );
            assert!(answer["result"]["isError"] == true, "{name}: {answer}");
        }
    }
    assert_eq!(client.end().0, 0);
}

/// The list has files, directories of documents, sessions of stores and logs; what is none is counted.
#[test]
fn the_list_has_every_kind_of_session() {
    let scratch = Scratch::new("listing");
    fs::write(scratch.path("root/failures.jsonl"), with_failures(9)).expect("a file");
    let documents = scratch.path("root/documents");
    fs::create_dir(&documents).expect("a directory");
    for (number, line) in with_failures(2).lines().enumerate() {
        fs::write(documents.join(format!("{number}.json")), line).expect("a file");
    }
    fs::write(scratch.path("root/docs/package.json"), "{\"name\":\"x\"}").expect("a file");
    assert_eq!(
        scratch
            .command(&["import", "agent.jsonl", "-o", "agents.db"])
            .0,
        0
    );
    let mut client = scratch.client();
    let text = client.answer("pact_list_sessions", json!({}));
    let listing = parsed(&text);
    let sessions = listing["sessions"].as_array().expect("a list");
    let shown: Vec<String> = sessions
        .iter()
        .map(|one| {
            let cycles = format!("{}-{}", one["first_cycle"], one["last_cycle"]);
            format!(
                "{} {} {cycles} {}",
                one["session"], one["turns"], one["snapshots"]
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "\"failures.jsonl\" 9 1-9 9",
            "\"agent.jsonl\" 4 1-6 6",
            "\"agents.db#agent\" 4 1-6 6",
            "\"many/1.jsonl\" 4 1-6 6",
            "\"chat.json\" 5 1-5 5",
            "\"documents\" 2 1-2 2",
        ]
    );
    let longest = &sessions[0];
    let bytes = with_failures(9).len();
    assert_eq!(longest["bytes"], bytes);
    assert_eq!(
        longest["kinds"],
        json!({"call": 9, "result": 9, "text": 19})
    );
    assert_eq!(longest["tools"], json!({"deploy": 5, "search": 4}));
    let failed = &listing["attributes"]["data_is_error"]["values"]["true"];
    assert_eq!(*failed, json!(4 + 1));
    assert_eq!(
        listing["no_session"],
        json!({"files": 2, "some": ["broken.jsonl", "docs/package.json"]})
    );
    // Each name is one that the other tools take; a log is said to be one.
    for one in sessions {
        let name = one["session"].as_str().expect("a name");
        let call = json!({"name": "pact_select", "arguments": reading(name)("pact_select")});
        let answer = client.ask("tools/call", call);
        let (failed, texts) = super::texts(&answer);
        assert!(!failed, "{name}: {texts:?}");
        let note = texts.get(1).map(String::as_str).unwrap_or_default();
        assert_eq!(
            note.contains("read as a log"),
            name == "chat.json",
            "{name}: {note}"
        );
    }
    // A part of it.
    let few = parsed(&client.answer("pact_list_sessions", json!({"root": "many"})));
    assert_eq!(few["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(few["sessions"][0]["session"], "many/1.jsonl");
    let few = parsed(&client.answer("pact_list_sessions", json!({"describe": 2})));
    assert_eq!(few["sessions"].as_array().map(Vec::len), Some(2));
    // What is not opened may be no session.
    assert_eq!(few["not_opened"].as_array().map(Vec::len), Some(6));
    // Of many, only some are named.
    let many = scratch.path("root/more");
    fs::create_dir(&many).expect("a directory");
    let agent = fs::read(scratch.path("root/agent.jsonl")).expect("the session");
    for number in 0..130 {
        // Directories, as documents in one directory are one session.
        let place = many.join(number.to_string());
        fs::create_dir(&place).expect("a directory");
        fs::write(place.join("a.jsonl"), &agent).expect("a file");
    }
    let listed = client.answer("pact_list_sessions", json!({"root": "more", "describe": 1}));
    let listed = parsed(&listed);
    assert_eq!(listed["not_opened"].as_array().map(Vec::len), Some(100));
    assert_eq!(listed["not_opened_more"], 29);
    refuses(&mut client);
    assert_eq!(client.end().0, 0);
}

fn refuses(client: &mut Client) {
    for (root, code) in [
        ("none", "E_MISSING"),
        ("agent.jsonl", "E_MISSING"),
        ("..", "E_VALUE"),
    ] {
        let error = client.error("pact_list_sessions", json!({"root": root}));
        assert_eq!(error["code"], code, "{root}");
    }
}
