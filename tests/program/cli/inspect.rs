//! The commands that inspect sessions: which sessions and snapshots they read, text and JSON, refusals.

use super::{AGENT, Scratch, answer, fails, pactql};

/// A session of five requests.
fn travel(scratch: &Scratch) -> String {
    let path = scratch.path("travel.jsonl");
    answer(&["import", "fixtures/travel.openai.json", "-o", &path]);
    path
}

/// What was paid for is the same whether a log or its folder is named; a directory of documents is one session.
#[test]
fn usage_is_of_all_that_a_word_has() {
    let scratch = Scratch::new("inspect-usage");
    let log = scratch.path("logs/release.jsonl");
    std::fs::create_dir(scratch.path("logs")).expect("a directory");
    std::fs::copy("fixtures/release.claude-code.jsonl", &log).expect("a copy");
    let of = |word: &str| answer(&["usage", "--by", "model", word]);
    let whole = of(&log);
    assert!(whole.contains("2 sessions"), "{whole}");
    assert_eq!(of(&scratch.path("logs")), whole);
    let documents = scratch.path("documents");
    std::fs::create_dir(&documents).expect("a directory");
    let lines = std::fs::read_to_string(AGENT).expect("a fixture");
    for (number, line) in lines.lines().take(2).enumerate() {
        let path = std::path::Path::new(&documents).join(format!("{number}.json"));
        std::fs::write(path, line).expect("a document");
    }
    assert!(of(&documents).contains("1 session,"));
}

#[test]
fn every_command_takes_the_same_words() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("inspect-words");
    let travel = travel(&scratch);
    for command in [
        &["tokens"][..],
        &["tokens", "--unused"],
        &["tokens", "--duplicates"],
    ] {
        let travel = &*travel;
        let run = |more: &[&str]| answer(&[command, more].concat());
        let json = run(&[travel, "--format", "json"]);
        assert!(json.starts_with("{\"tokenizer\":\"o200k\""), "{json}");
        assert_eq!(run(&[travel]), run(&[travel, "--format", "text"]));
        let two = run(&[travel, AGENT, "--format", "json"]);
        let labels = two
            .lines()
            .map(|line| line.split(',').next().unwrap_or_default());
        let mut expected = vec![
            format!("{{\"session\":\"{travel}\""),
            format!("{{\"session\":\"{AGENT}\""),
        ];
        if command == ["tokens"] {
            // The sum of all.
            expected.push("{\"counted_here\":{\"input_tokens\":1946".to_owned());
        }
        assert_eq!(labels.collect::<Vec<_>>(), expected);
        let text = run(&[travel, AGENT, "--format", "text"]);
        assert!(text.starts_with(&format!("{travel}\n")), "{text}");
        assert!(text.contains(&format!("\n\n{AGENT}\n")), "{text}");
        // The same snapshot by any of its addresses.
        let at = |address: &str| run(&[travel, "--at", address, "--tokenizer", "bytes/4"]);
        assert_eq!(at("@t0"), at("t0"));
        assert_ne!(at("@c1"), at("@c5"));
        for (more, code, message) in [
            (&["--at", "@t0", "--over", "@history"][..], 1, "--over"),
            (&["--at", "@t-9"], 2, "no such snapshot"),
            (&["--over", "@t0 .cb"], 2, "expected a time alone"),
            (&["--where", "@t0 .cb"], 2, "the selector names a time"),
            (&["--where", ".cb["], 2, "E_SELECTOR_INVALID"),
            (
                &["--tokenizer", "gpt2"],
                3,
                "expected one of o200k, cl100k, bytes/4",
            ),
            (&["--since", "yesterday"], 3, "expected a date"),
            (&["--meta", "model"], 3, "expected KEY=VALUE"),
        ] {
            fails(&[command, &[travel][..], more].concat(), code, message);
        }
        fails(&[command, &["missing.jsonl"]].concat(), 4, "missing.jsonl");
    }
}

#[test]
fn an_address_is_an_argument() {
    let scratch = Scratch::new("inspect-address");
    let travel = &*travel(&scratch);
    for (typed, meant) in [
        (
            &["show", travel, "2"][..],
            &["show", travel, "--at", "@c2"][..],
        ),
        (&["show", travel, "c2"], &["show", travel, "--at", "2"]),
        (&["show", "@c2", travel], &["show", travel, "--at", "c2"]),
        (
            &["show", travel, "latest"],
            &["show", travel, "--at", "@t0"],
        ),
        (
            &["show", travel, "@c2..@c4"],
            &["show", travel, "--over", "@c2..@c4"],
        ),
        (
            &["steps", travel, "2..4"],
            &["steps", travel, "--over", "@c2..@c4"],
        ),
        (
            &["steps", travel, "--at", "latest"],
            &["steps", travel, "@t0"],
        ),
        (
            &["tokens", travel, "@history"],
            &["tokens", travel, "--over", "@history"],
        ),
        (&["tokens", travel, "working"], &["tokens", travel]),
        (
            &["prefix", travel, "2..3"],
            &["prefix", travel, "--over", "@c2..@c3"],
        ),
        (&["top", travel, "3"], &["top", travel, "--at", "@c3"]),
        (
            &["top", travel, "3", ".cb"],
            &["top", travel, ".cb", "--at", "3"],
        ),
        (
            &["grep", "museum", travel, "3"],
            &["grep", "museum", travel, "--at", "3"],
        ),
        (&["render", travel, "3"], &["render", travel, "--at", "@c3"]),
        (
            &["render", travel, "latest"],
            &["render", travel, "--at", "@t0"],
        ),
        (
            &["diff", "--json", travel, "2", "latest"],
            &["diff", "--json", travel, "@c2", "@t0"],
        ),
        (
            &["diff", "--json", travel, "2..3"],
            &["diff", "--json", travel, "@c2", "@c3"],
        ),
        (
            &["diff", "--json", travel, "@c2..@c3", ".cb"],
            &["diff", "--json", travel, "2", "3", ".cb"],
        ),
    ] {
        assert_eq!(answer(typed), answer(meant), "{typed:?}");
    }
    assert_ne!(
        answer(&["show", travel, "2"]),
        answer(&["show", travel, "3"])
    );
    // A file of that name is one.
    std::fs::copy(travel, scratch.path("7")).expect("a copy");
    assert_eq!(
        answer(&["steps", &scratch.path("7"), "2"]),
        answer(&["steps", travel, "2"])
    );
}

#[test]
fn prices_of_a_file() {
    let scratch = Scratch::new("inspect-prices");
    let travel = travel(&scratch);
    let table = r#"{"date": "2001-01-01", "models": {"gpt-4o": {"input": 1000, "output": 1000}}}"#;
    let table = scratch.write("prices.json", table);
    let text = answer(&["tokens", &travel, "--format", "text", "--prices", &table]);
    assert!(
        text.contains("\nthis request: $0.705000 at the prices of 2001-01-01\n")
            && text.starts_with("session: 5 requests, 2,616 tokens in, ")
            && text.contains(", $2.750000 at the prices"),
        "{text}"
    );
    let none = scratch.write("none.json", r#"{"date": "2001-01-01", "models": {}}"#);
    let text = answer(&["tokens", &travel, "--format", "text", "--prices", &none]);
    let expected = "no cost: the prices of 2001-01-01 have no model `gpt-4o-2024-08-06`";
    assert!(text.contains(expected) && !text.contains('$'), "{text}");
    let text = answer(&["tokens", AGENT, "--at", "@t0", "--format", "text"]);
    assert!(
        text.contains("no cost: the session names no model\n"),
        "{text}"
    );
    let bad = scratch.write("bad.json", "{\"date\": 1}");
    fails(
        &["tokens", &travel, "--prices", &bad],
        5,
        "bad.json: expected a string as `date`",
    );
    fails(
        &["tokens", &travel, "--prices", "missing.json"],
        4,
        "missing.json",
    );
}

/// A time that is named is not taken for none.
#[test]
fn the_working_state_is_not_a_step_but_the_next_request() {
    let session = "fixtures/greenhouse.jsonl";
    for words in [&["--at", "working"][..], &["working"], &["@working"]] {
        let failed = fails(&[&["steps", session], words].concat(), 2, "is not a step");
        assert!(failed.contains("`@t0` is the newest step"), "{failed}");
        let prefix = answer(&[&["prefix", session, "--format", "text"], words].concat());
        assert!(
            prefix.starts_with("1 request in the form of openai, 0 breaks"),
            "{prefix}"
        );
    }
    // A log has none, and the newest snapshot is in its place.
    let newest = answer(&["steps", "fixtures/library.openai.json", "working", "--json"]);
    assert_eq!(newest.lines().count(), 1, "{newest}");
}

#[test]
fn sums_over_sessions() {
    let scratch = Scratch::new("inspect-top");
    let travel = travel(&scratch);
    let run = |more: &[&str]| answer(&[&["top", &*travel, AGENT], more].concat());
    let text = run(&[".cb[kind='result']", "--by", "session", "--format", "text"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        !lines[1].starts_with(AGENT) && lines[2].starts_with(AGENT),
        "{text}"
    );
    let none = run(&["#missing", "--format", "text"]);
    assert_eq!(none, "no blocks in 2 sessions\n");
    // Ids are whole, also behind long names, which only several sessions need.
    let long = scratch.path(&format!("{}.jsonl", "long".repeat(20)));
    std::fs::copy(AGENT, &long).expect("a copy");
    let blocks = |sessions: &[&str]| {
        let by = ["#persona", "--by", "block", "--format", "text"];
        let text = answer(&[&["top"], sessions, &by].concat());
        text.lines().nth(1).expect("a row").to_owned()
    };
    assert!(blocks(&[&long]).starts_with("cb:persona "), "{long}");
    let of_two = blocks(&[&long, &travel]);
    assert!(
        of_two.starts_with(&format!("{long} cb:persona ")),
        "{of_two}"
    );
    // Without a selector, all blocks, the largest first.
    let all = run(&["--by", "block", "--json"]);
    assert_eq!(all, run(&[".cb", "--by", "block", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&all).expect("JSON");
    let groups = json["groups"].as_array().expect("a list").iter();
    let tokens: Vec<u64> = groups
        .filter_map(|group| group["tokens"].as_u64())
        .collect();
    assert!(
        tokens.len() > 20 && tokens.is_sorted_by(|a, b| a >= b),
        "{tokens:?}"
    );
    for (arguments, code, message) in [
        (&["top", ".cb"][..], 4, "no session is named"),
        (&["top", ".cb", &travel], 1, "the session comes first"),
        (
            &["top", &travel, ".cb", "kind"],
            1,
            "a selector is one argument",
        ),
        (&["top", &travel, "@t0 .cb"], 2, "the selector names a time"),
        (
            &["top", &travel, "@* .cb[role='user']"],
            2,
            &format!("help: pactql top {travel} \"@*\" \".cb[role='user']\""),
        ),
        (
            &["top", &travel, "@* .cb", "--at", "@t0"],
            2,
            "leave the time out",
        ),
        (
            &["top", &travel, ".cb", "--by", "size"],
            3,
            "it takes session, region",
        ),
    ] {
        fails(arguments, code, message);
    }
}

/// `--since`, `--until` and `--meta` choose among files as among the sessions of a store.
#[test]
fn sessions_of_files_are_chosen() {
    let scratch = Scratch::new("inspect-chosen");
    let travel = travel(&scratch);
    for (more, count) in [
        (&[][..], 2),
        (&["--since", "2026-03-10"], 1),
        (&["--until", "2026-03-10"], 1),
        (&["--since", "2026-03-01", "--until", "2026-03-20"], 2),
        (&["--meta", "model=gpt-4o-2024-08-06"], 1),
        (&["--since", "2100-01-01"], 0),
    ] {
        let command = ["tokens", "--unused", &travel, AGENT, "--json"];
        let ran = pactql(&[&command[..], more].concat());
        assert_eq!(
            (ran.code, ran.out.lines().count()),
            (0, count),
            "{more:?}: {}",
            ran.err
        );
        let is_said = ran.err.contains("none of 2 sessions was chosen");
        assert_eq!(is_said, count == 0, "{more:?}: {}", ran.err);
    }
}

/// What `--meta` and `--since` leave out is not loaded: a damaged session among the others does no harm.
#[test]
fn sessions_of_a_store_are_chosen_before_they_are_loaded() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("inspect-store");
    let travel = travel(&scratch);
    let store = scratch.path("agents.db");
    answer(&["import", &travel, AGENT, "-o", &store]);
    let all = answer(&["tokens", &store, "--format", "json"]);
    // The last line is their sum.
    assert_eq!(all.lines().count(), 3, "{all}");
    {
        let database = rusqlite::Connection::open(&store).expect("a store");
        let damage = "update node set class = 'none' where unit_id in (select unit_id from placement \
             join session using (session_id) where name = 'support-agent')";
        let changed = database.execute(damage, []).expect("nodes");
        assert!(changed > 0);
    }
    let ran = pactql(&["tokens", &store]);
    assert_ne!(ran.code, 0, "{}", ran.out);
    let model = ["--format", "json", "--meta", "model=gpt-4o-2024-08-06"];
    let chosen = answer(&[&["tokens", &*store], &model[..]].concat());
    assert!(
        all.contains(&chosen) && chosen.contains("#travel\""),
        "{chosen}"
    );
    for (more, count) in [
        (
            &["--meta", "model=gpt-4o-2024-08-06", "--since", "2026-01-01"][..],
            1,
        ),
        (&["--meta", "source=request"], 1),
        (&["--meta", "temperature=0"], 1),
        (&["--meta", "model=gpt-4"], 0),
        (&["--meta", "source=request", "--meta", "model=gpt-4"], 0),
        (&["--since", "2100-01-01"], 0),
        (&["--until", "2001-01-01"], 0),
    ] {
        let ran = pactql(
            &[
                &["tokens", "--unused", &*store, "--format", "json"][..],
                more,
            ]
            .concat(),
        );
        assert_eq!(
            (ran.code, ran.out.lines().count()),
            (0, count),
            "{more:?}: {}",
            ran.err
        );
        let said =
            serde_json::json!({"message": format!("none of 2 sessions of {store} was chosen")});
        let said = format!("{}\n", serde_json::json!({"notes": [said]}));
        assert_eq!(
            ran.err,
            if count == 0 { said } else { String::new() },
            "{more:?}"
        );
    }
    let named = format!("{store}#travel");
    let one = answer(&["tokens", &named, "--format", "json"]);
    assert!(one.starts_with("{\"tokenizer\""), "{one}");
    fails(
        &["tokens", &format!("{store}#none")],
        4,
        "no session `none`",
    );
    fails(&["tokens", &format!("{store}#none-*")], 4, "no session of");
}

#[test]
fn lines_of_sessions() {
    let scratch = Scratch::new("inspect-grep");
    let travel = travel(&scratch);
    let run = |more: &[&str]| answer(&[&["grep"], more].concat());
    let one = run(&["Booked", &travel]);
    assert_eq!(
        one,
        "cb:10-1  tool result  @c5\n  1: Booked: seat 61, coach 8, IC 204. Booking AQ-5521. 48.20 EUR.\n"
    );
    let two = run(&["-i", "REFUND", &travel, AGENT]);
    assert!(two.starts_with(&format!("{AGENT}\n")), "{two}");
    assert_eq!(
        run(&["-i", "-l", "refund|lindau", &travel, AGENT]),
        format!("{travel}\n{AGENT}\n")
    );
    assert_eq!(
        run(&["-l", "Lindau", &travel, AGENT]),
        format!("{travel}\n")
    );
    assert_eq!(run(&["-c", "Lindau", &travel]), "3\n");
    assert_eq!(
        run(&["-c", "Lindau", &travel, AGENT]),
        format!("{travel}: 3\n")
    );
    let json = run(&["-c", "Lindau", &travel, "--format", "json"]);
    assert_eq!(json, format!("{{\"lines\":3,\"session\":\"{travel}\"}}\n"));
    let json = run(&["Booked", &travel, AGENT, "--format", "json"]);
    assert!(
        json.starts_with(&format!("{{\"session\":\"{travel}\",\"lines\":1,")),
        "{json}"
    );
    let coloured = run(&["Booked", &travel, "--color", "always"]);
    assert!(
        coloured.contains("\u{1b}[1;31mBooked\u{1b}[0m"),
        "{coloured}"
    );
    let ran = pactql(&["grep", "nowhere", &travel, AGENT, "--fail-if-empty"]);
    assert_eq!((ran.code, &*ran.out), (8, ""));
    assert_eq!(ran.err, "note: nothing was found in 2 sessions\n");
    for (arguments, code, message) in [
        (&["grep", "(", &travel][..], 2, "invalid pattern"),
        (&["grep", "x"], 4, "no session is named"),
        (&["grep", "-l", "-c", "x", &travel], 1, "--list"),
        (&["grep", "x", "missing.jsonl"], 4, "missing.jsonl"),
    ] {
        fails(arguments, code, message);
    }
    let store = scratch.path("agents.db");
    answer(&["import", &travel, AGENT, "-o", &store]);
    assert_eq!(run(&["-l", "Lindau", &store]), format!("{store}#travel\n"));
    // The name of a session of a folder is no file; what opens it is said.
    for name in ["airline-001", "july/travel"] {
        fails(&["show", name], 4, &format!("`PLACE#{name}`"));
    }
    fails(&["show", "july/travel.json"], 4, "no directory july");
}

#[test]
fn conditions_end_with_their_own_exit_code() {
    let scratch = Scratch::new("inspect-assert");
    let travel = travel(&scratch);
    let held = scratch.write("held", "cost <= 1\ncount .cb:tool <= 9\n");
    let unmet = scratch.write("unmet", "# CI\ncount ^sys .cb <= 1\ncost <= 0.0001\n");
    let assert = |file: &str, more: &[&str]| pactql(&[&["assert", file, &travel], more].concat());
    assert_eq!(assert(&held, &[]).code, 0);
    let ran = assert(&unmet, &[]);
    assert_eq!(ran.code, 9);
    assert!(
        ran.out
            .starts_with("FAILED line 2: count ^sys .cb <= 1\n         @c5, block cb:"),
        "{}",
        ran.out
    );
    let ran = assert(&unmet, &["--json"]);
    assert_eq!(ran.code, 9);
    let json: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(json["holds"], false);
    let found = &json["conditions"][0];
    assert_eq!(found["condition"], "count ^sys .cb <= 1");
    assert_eq!(
        (&found["line"], &found["first"][0]["cycle"]),
        (&2.into(), &5.into())
    );
    assert!(found["first"][0]["block"].is_string(), "{found}");
    // Without a price, a limit of cost does not hold.
    let none = scratch.write("none.json", r#"{"date":"d","models":{}}"#);
    let ran = assert(&held, &["--prices", &none]);
    assert_eq!(ran.code, 9);
    assert!(ran.out.contains("@c1: the price of model"), "{}", ran.out);
    let wrong = scratch.write(
        "wrong",
        "cost <= 1\n  tokens << 5\nnone .cb[role == 'user']\n",
    );
    let said = fails(&["assert", &wrong, &travel], 5, "found `<<`");
    assert!(said.contains(":2:10"), "{said}");
    assert!(said.contains(":3:15"), "{said}");
    assert!(
        said.contains("help: write `none .cb[role = 'user']`"),
        "{said}"
    );
    let ran = pactql(&["assert", &wrong, &travel, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.err).expect("JSON");
    assert_eq!(json["error"]["spans"][0]["start"], 19);
}

/// A mistake in a file of conditions is shown in the file, also one that only a session shows.
#[test]
fn the_place_of_a_wrong_condition_is_in_its_file() {
    let scratch = Scratch::new("inspect-assert-place");
    let travel = travel(&scratch);
    let rest = "#\n".repeat(2_000);
    let wrong = scratch.write("wrong.txt", format!("{rest}none .cb[role=user\n"));
    let said = fails(&["assert", &wrong, &travel], 2, "`]` is missing");
    assert!(said.contains(&format!("{wrong}:2001:19")), "{said}");
    assert!(said.contains("2001 │ none .cb[role=user"), "{said}");
    let ran = pactql(&["assert", &wrong, &travel, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.err).expect("JSON");
    assert_eq!(json["error"]["file"], *wrong);
    let far = scratch.write("far.txt", "cost <= 1\nnone @c99 .cb\n");
    let said = fails(&["assert", &far, &travel], 2, "no such snapshot");
    assert!(said.contains(&format!("{far}:2:6")), "{said}");
    let quoted = scratch.write(
        "quoted.txt",
        "none .cb[content~'@c99 .cb']\nnone @c99 .cb\n",
    );
    let said = fails(&["assert", &quoted, &travel], 2, "no such snapshot");
    assert!(said.contains(&format!("{quoted}:2:6")), "{said}");
    let ran = super::with_input(&["assert", "-", &travel], b"none .cb[\n");
    assert!(ran.err.contains("standard input:1:10"), "{}", ran.err);
}

/// A selector that finds nothing is said to, with the likely mistake, by each command that takes one.
#[test]
fn what_finds_nothing_says_so() {
    let scratch = Scratch::new("inspect-nothing");
    let (travel, store) = (travel(&scratch), scratch.path("runs.db"));
    answer(&["import", &travel, AGENT, "-o", &store]);
    let typo = "[rool=user]";
    let role = "no node has `rool`; did you mean `role`?";
    for command in [
        &["show"][..],
        &["steps"],
        &["steps", "--changes"],
        &["tokens"],
        &["tokens", "--over", "@history"],
        &["tokens", "--duplicates"],
        &["prefix"],
        &["grep", "e"],
    ] {
        for session in [&*travel, &*store] {
            let run = |selector: &str| {
                let ran = pactql(&[command, &[session, "--where", selector]].concat());
                assert_eq!(ran.code, 0, "{command:?}: {}", ran.err);
                ran.err
            };
            let said = run(typo);
            assert!(said.contains(&format!("note: {role}\n")), "{said}");
            assert!(!run(".cb[role=user]").contains("no node"), "{command:?}");
        }
    }
    for (arguments, expected) in [
        (&["tokens", &travel, "--without", typo][..], role),
        (&["top", &travel, typo], role),
        (&["top", &store, typo], role),
        (&["diff", &travel, "@c1", "@c2", typo], role),
        (&["diff", &travel, "@c1", "working", typo], role),
        (
            &["tokens", &travel, "--where", "[role=a][role=b]"],
            "matches nothing: ",
        ),
        (
            &["select", &travel, ".cb", "--budget", "0"],
            "blocks found fits into 0 tokens",
        ),
    ] {
        let ran = pactql(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}");
        assert!(ran.err.contains(expected), "{arguments:?}: {}", ran.err);
    }
    // What is in another snapshot is no typing mistake.
    let early = answer(&["select", &travel, "@c1 .cb:last"]);
    let id = format!("[id='{}']", early.trim());
    let said = pactql(&["steps", &travel, "--where", &id]).err;
    assert!(!said.contains("no node"), "{said}");
    let json = pactql(&["top", &travel, typo, "--json"]).err;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["notes"][0]["reason"], "unknown_attribute");
}

/// A session whose snapshots, oldest first, and then its working state, if any, have one block each with these members.
fn blocks(scratch: &Scratch, name: &str, committed: &[&str], working: Option<&str>) -> String {
    let document = |cycle: usize, id: &str, members: &str, mark: &str| {
        format!(
            r#"{{"cycle":{cycle},{mark}"root":{{"id":"r","children":[{{"id":"q","nodeType":"^seq","children":[
            {{"id":"t{id}","nodeType":"mt","children":[{{"id":"b{id}","nodeType":"cb",{members}}}]}}]}}]}}}}"#
        )
        .replace('\n', "")
            + "\n"
    };
    let lines = (1..).zip(committed);
    let lines = lines.map(|(cycle, members)| document(cycle, &cycle.to_string(), members, ""));
    let working =
        working.map(|members| document(committed.len(), "w", members, r#""working":true,"#));
    scratch.write(name, lines.chain(working).collect::<String>())
}

/// Why nothing is found is true of all that was read: each snapshot, and not more.
#[test]
fn why_nothing_is_found_is_said_of_all_that_was_read() {
    let scratch = Scratch::new("inspect-nothing-in-several");
    let members = [
        r#""role":"user","content":"first""#,
        r#""role":"tool","content":"second""#,
    ];
    let path = blocks(&scratch, "s.jsonl", &members, None);
    let selector = "[role=user][kind=result]";
    for arguments in [
        &["steps", &path, "--where", selector][..],
        &["steps", &path, "--changes", "--where", selector],
        &["prefix", &path, "--where", selector],
        &["show", &path, "--over", "@history", "--where", selector],
        &["tokens", &path, "--over", "@history", "--where", selector],
        &["diff", &path, "@c1", "@c2", selector],
    ] {
        let said = pactql(arguments).err;
        assert!(
            said.contains("no node has the kind `result`"),
            "{arguments:?}: {said}"
        );
        assert!(!said.contains("the role"), "{arguments:?}: {said}");
    }
    let said = pactql(&["show", &path, "--where", selector]).err;
    assert!(said.contains("no node has the role `user`"), "{said}");
    // What matches nothing by its form.
    for arguments in [
        &["diff", &path, "@c1", "@c2", "[role=a][role=b]"][..],
        &["steps", &path, "--where", "[role=a][role=b]"],
    ] {
        let said = pactql(arguments).err;
        assert_eq!(
            said.matches("warning: ").count(),
            1,
            "{arguments:?}: {said}"
        );
        let json = pactql(&[arguments, &["--json"]].concat()).err;
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let message = json["notes"][0]["message"].as_str().unwrap_or_default();
        assert!(message.contains("matches nothing"), "{json}");
    }
}

/// Where no time was given, none can be left out.
#[test]
fn the_working_state_is_advised_only_where_it_is_read() {
    let scratch = Scratch::new("inspect-nothing-working");
    let (user, tool) = (r#""role":"user""#, r#""role":"tool""#);
    let path = blocks(&scratch, "s.jsonl", &[tool], Some(user));
    let matches = "1 node matches in the working state";
    for arguments in [
        &["steps", &path, "--where", "[role=user]"][..],
        &["steps", &path, "--changes", "--where", "[role=user]"],
        &["prefix", &path, "--where", "[role=user]"],
        &["tokens", &path, "--without", "[role=user]"],
        &["diff", &path, "@c1", "@c1", "[role=user]"],
    ] {
        let said = pactql(arguments).err;
        assert!(
            said.contains(&format!("{matches}\n")),
            "{arguments:?}: {said}"
        );
    }
    let said = pactql(&["show", &path, "--at", "@c1", "--where", "[role=user]"]).err;
    assert!(
        said.contains(&format!("{matches}: leave out the time")),
        "{said}"
    );
    let difference = ["diff", &path, "@c1", "working", ".cb[role='user']"];
    for edition in [&[][..], &["--edition", "v0.1"]] {
        let ran = pactql(&[&difference[..], edition].concat());
        assert!(ran.out.contains("1 added"), "{}", ran.out);
        assert_eq!(ran.err, "", "{edition:?}");
    }
}

/// What is found may have no block, which is what reports are about.
#[test]
fn nodes_without_a_block_are_named() {
    let scratch = Scratch::new("inspect-no-block");
    let travel = travel(&scratch);
    let said = pactql(&["show", &travel, "--where", "^sys"]);
    assert_eq!(said.err, "");
    let path = scratch.write(
        "head.jsonl",
        r#"{"cycle":1,"root":{"id":"r","children":[{"id":"s","nodeType":"^sys","children":[]},{"id":"h","nodeType":"^ah","children":[]}]}}"#,
    );
    for (selector, expected) in [
        ("^ah", "1 node matches, and it has no block that is sent"),
        (
            "^sys, ^ah",
            "2 nodes match, and none of them has a block that is sent",
        ),
    ] {
        let said = pactql(&["show", &path, "--where", selector]).err;
        assert_eq!(said, format!("note: {expected}\n"));
    }
}

/// An index leaves out sessions, of which nothing is known then.
#[test]
fn what_an_index_leaves_out_is_not_spoken_of() {
    let scratch = Scratch::new("inspect-nothing-indexed");
    let tool = [r#""role":"tool","content":"needle""#];
    let user = [r#""role":"user","content":"hay""#];
    let first = blocks(&scratch, "a.jsonl", &tool, None);
    let second = blocks(&scratch, "b.jsonl", &tool, None);
    let third = blocks(&scratch, "c.jsonl", &user, None);
    let store = scratch.path("runs.db");
    answer(&["import", &first, &second, &third, "-o", &store]);
    let run = || pactql(&["grep", "needle", &store, "--where", "[role=user]"]).err;
    let before = run();
    assert_eq!(before, "note: nothing was found in 3 sessions\n");
    answer(&["store", "index", &store]);
    assert_eq!(run(), before);
    // Of all sessions it is said.
    let said = pactql(&["grep", "needle", &store, "--where", "[role=nobody]"]).err;
    assert!(said.contains("nothing was found in 3 sessions"), "{said}");
}

/// Blocks that were found and do not fit are not nothing.
#[test]
fn what_does_not_fit_into_a_budget_is_counted_over_sessions() {
    let scratch = Scratch::new("inspect-budget");
    let travel = travel(&scratch);
    let said = pactql(&["select", &travel, ".cb", "--budget", "1"]).err;
    assert!(said.contains("fits into 1 token\n"), "{said}");
    let said = pactql(&["select", &travel, AGENT, "-e", ".cb", "--budget", "0"]).err;
    assert!(
        said.contains("found in 2 sessions fits into 0 tokens\n"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// The lines of a log that cannot be read are counted wherever the log is.
#[test]
fn lines_that_cannot_be_read_are_counted_in_a_folder() {
    let scratch = Scratch::new("inspect-malformed");
    let whole = std::fs::read_to_string("fixtures/release.claude-code.jsonl").expect("a log");
    let log = scratch.write("bad.jsonl", format!("{whole}{{\"cut\nnonsense\n"));
    for arguments in [&["steps", &log][..], &["steps", &scratch.path("")]] {
        let said = pactql(arguments).err;
        assert!(said.contains("without 2 malformed lines"), "{said}");
    }
    let said = pactql(&["usage", &log]).err;
    assert_eq!(
        said,
        format!("note: read {log} without 2 malformed lines\n")
    );
}

/// Tokens that are in `meta` alone are said not to be in the sums.
#[test]
fn calls_without_a_reply_are_named_in_the_sums() {
    let scratch = Scratch::new("inspect-unanswered");
    let path = scratch.path("totals.jsonl");
    let log = "tests/cases/logs/codex/synthetic-totals.jsonl";
    answer(&["import", log, "-o", &path]);
    let left_out = "1 call without a reply not in the sums";
    let usage = answer(&["usage", &path]);
    assert!(usage.contains(left_out), "{usage}");
    let tokens = answer(&["tokens", &path]);
    let sum = tokens.lines().next().unwrap_or_default();
    assert!(sum.contains(left_out), "{tokens}");
    let json: serde_json::Value =
        serde_json::from_str(&answer(&["usage", &path, "--json"])).expect("JSON");
    assert_eq!(json["total"]["unanswered"], 1);
    // A copy is not counted again.
    let copy = scratch.path("copy.jsonl");
    std::fs::copy(&path, &copy).expect("a copy");
    for command in ["usage", "tokens"] {
        let both = answer(&[command, &path, &copy]);
        let mut last = both.lines().filter(|line| line.contains("without a reply"));
        assert!(
            last.next_back().is_some_and(|line| line.contains(left_out)),
            "{both}"
        );
    }
    let by_model = answer(&["usage", "--by", "model", &path]);
    assert!(!by_model.contains("(unknown)  0"), "{by_model}");
    let none = answer(&["usage", AGENT]);
    assert!(!none.contains("without a reply"), "{none}");
}

/// Of a store the database counts, of chosen sessions the program; both agree with the sessions alone.
#[test]
fn the_words_of_sessions() {
    let scratch = Scratch::new("inspect-fields");
    let (path, store) = (travel(&scratch), scratch.path("runs.db"));
    let text = answer(&["fields", &path]);
    assert!(text.starts_with("1 session, 29 nodes\n"), "{text}");
    answer(&[
        "import",
        "fixtures/travel.openai.json",
        "fixtures/leap-day.claude-code.jsonl",
        "-o",
        &store,
    ]);
    let json = |words: &[&str]| answer(&[&["fields", "--json"], words].concat());
    let name = format!("{store}#travel.openai");
    assert_eq!(json(&[&path]), json(&[&name]));
    let all = json(&[&store]);
    assert_eq!(all, json(&[&store, "--since", "1970-01-01"]));
    assert_eq!(all, json(&[&path, "fixtures/leap-day.claude-code.jsonl"]));
    let all: serde_json::Value = serde_json::from_str(&all).expect("JSON");
    assert_eq!(
        (&all["sessions"], &all["fields"][0]["name"]),
        (&2.into(), &"nodeType".into())
    );
    fails(&["fields", "missing.jsonl"], 4, "missing.jsonl");
}

/// What the script of a shell asks for, and what it is answered.
#[test]
fn a_shell_completes_selectors() {
    let scratch = Scratch::new("inspect-complete");
    let path = travel(&scratch);
    let complete = |words: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_pactql"))
            .args([&["--", "pactql"], words].concat())
            .envs([
                ("PACTQL_COMPLETE", "bash"),
                ("_CLAP_COMPLETE_INDEX", &words.len().to_string()),
            ])
            .output()
            .expect("the program starts");
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        let out = String::from_utf8(output.stdout).expect("UTF-8");
        out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let path = &*path;
    for (words, expected) in [
        (
            &["select", "--json", path, "@t0 .cb[ki"][..],
            &["@t0 .cb[kind=", "@t0 .cb[kind]"][..],
        ),
        (
            &["select", "--json", path, "-e", "@t0 .cb[kind="],
            &[
                "@t0 .cb[kind='text']",
                "@t0 .cb[kind='tool']",
                "@t0 .cb[kind='call']",
                "@t0 .cb[kind='result']",
            ],
        ),
        (&["tokens", path, "--where", "#book"], &["#book_seat"]),
        (&["show", path, "--where", "^se"], &["^seq"]),
        (
            &["sql", "@t0 .cb[content_h"],
            &["@t0 .cb[content_hash=", "@t0 .cb[content_hash]"],
        ),
        (
            &["select", "--json", "missing.db", "[rol"],
            &["[role=", "[role]"],
        ),
        (&["select", "--json", "Cargo.to"], &["Cargo.toml"]),
        (&["fie"], &["fields"]),
        (&["tokens", path, "--by", "reg"], &["region"]),
    ] {
        assert_eq!(complete(words), expected, "{words:?}");
    }
}
