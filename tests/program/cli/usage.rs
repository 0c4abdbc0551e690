//! Folders of logs as sessions, and what `usage` sums, against a sum over the raw lines of the logs.

use super::{CHAT, Scratch, answer, fails, pactql};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Requests that the provider counted, tokens in, of them cached, written to the cache, out.
type Sums = [u64; 5];

/// What a log says of a response: how it is known, the day, the model, and the sums of one request.
type Responses = Vec<(String, String, String, Sums)>;

fn lines(text: &str) -> impl Iterator<Item = Value> + '_ {
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn day(line: &Value) -> String {
    text(&line["timestamp"]).chars().take(10).collect()
}

fn number(object: &Value, name: &str) -> u64 {
    object[name].as_u64().unwrap_or(0)
}

/// Of Claude Code each line of a response repeats its id, and the last one has the whole usage. Where no line says why
/// it stopped, though it has a place for it, and the count of the reply never grew, the end is not in the log.
fn of_claude_code(log: &str) -> Responses {
    let mut responses = Responses::new();
    let mut firsts = BTreeMap::new();
    let mut ended = BTreeSet::new();
    for line in lines(log).filter(|line| line["type"] == "assistant") {
        let (message, usage) = (&line["message"], &line["message"]["usage"]);
        if !usage.is_object() {
            continue;
        }
        let (read, written) = (
            number(usage, "cache_read_input_tokens"),
            number(usage, "cache_creation_input_tokens"),
        );
        let input = number(usage, "input_tokens") + read + written;
        let mut output = number(usage, "output_tokens");
        let id = text(&message["id"]);
        if !message["stop_reason"].is_null() {
            ended.insert(id.clone());
        } else if message.get("stop_reason").is_some() {
            firsts.entry(id.clone()).or_insert(output);
        }
        if !ended.contains(&id) && firsts.get(&id) == Some(&output) {
            output = 0;
        }
        let sums = [1, input, read, written, output];
        responses.retain(|(known, ..)| *known != id);
        responses.push((id, day(&line), text(&message["model"]), sums));
    }
    responses
}

/// Codex says after each response what it used; the same event comes again where a turn begins.
fn of_codex(log: &str) -> Responses {
    let (mut responses, mut model, mut total) = (Responses::new(), String::new(), Value::Null);
    for line in lines(log) {
        let payload = &line["payload"];
        if line["type"] == "turn_context" {
            model = text(&payload["model"]);
        }
        let info = &payload["info"];
        if payload["type"] != "token_count"
            || !info.is_object()
            || info["total_token_usage"] == total
        {
            continue;
        }
        total = info["total_token_usage"].clone();
        let used = &info["last_token_usage"];
        let [input, cached, output] =
            ["input_tokens", "cached_input_tokens", "output_tokens"].map(|name| number(used, name));
        let id = format!("{} {}", text(&line["timestamp"]), responses.len());
        responses.push((id, day(&line), model.clone(), [1, input, cached, 0, output]));
    }
    responses
}

/// The sums by day and by model of logs by name: of a response that several have, the first.
fn summed(logs: &BTreeMap<String, String>) -> [BTreeMap<String, Sums>; 2] {
    let mut responses = BTreeMap::new();
    for log in logs.values() {
        for (id, day, model, sums) in of_claude_code(log).into_iter().chain(of_codex(log)) {
            responses.entry(id).or_insert((day, model, sums));
        }
    }
    let mut all = [BTreeMap::new(), BTreeMap::new()];
    for (day, model, sums) in responses.into_values() {
        for (groups, name) in all.iter_mut().zip([day, model]) {
            let group: &mut Sums = groups.entry(name).or_default();
            group
                .iter_mut()
                .zip(sums)
                .for_each(|(sum, more)| *sum += more);
        }
    }
    all
}

/// The groups of `usage` in which the provider counted something.
fn groups(json: &str) -> BTreeMap<String, Sums> {
    let usage: Value = serde_json::from_str(json).expect("JSON");
    let groups = usage["groups"].as_array().expect("groups").iter();
    let sums = |group: &Value| {
        let names = [
            "input_tokens",
            "cached_tokens",
            "cache_write_tokens",
            "output_tokens",
        ];
        let [input, cached, written, output] = names.map(|name| number(group, name));
        let counted = number(group, "requests") - number(group, "uncounted");
        [counted, input, cached, written, output]
    };
    let groups = groups.map(|group| (text(&group["name"]), sums(group)));
    groups.filter(|(_, sums)| sums[0] > 0).collect()
}

fn put(folder: &str, logs: &BTreeMap<String, String>) {
    for (name, log) in logs {
        let path = Path::new(folder).join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, log).expect("a file");
    }
}

/// `usage` of a folder says what its raw lines say.
fn check(folder: &str, logs: &BTreeMap<String, String>) -> [BTreeMap<String, Sums>; 2] {
    put(folder, logs);
    let expected = summed(logs);
    for (by, expected) in ["day", "model"].iter().zip(&expected) {
        let found = groups(&answer(&["usage", folder, "--by", by, "--json"]));
        assert_eq!(&found, expected, "by {by}");
    }
    expected
}

/// A line of Claude Code.
fn said(uuid: &str, parent: Option<&str>, time: &str, message: &Value) -> String {
    let line = json!({
        "type": message["role"], "uuid": uuid, "parentUuid": parent, "timestamp": time,
        "sessionId": "s", "cwd": "/srv/app", "isSidechain": false, "message": message,
    });
    format!("{line}\n")
}

fn asked(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn replied(id: &str, model: &str, text: &str, [input, read, written, output]: [u64; 4]) -> Value {
    json!({
        "role": "assistant", "id": id, "model": model, "content": [{"type": "text", "text": text}],
        "usage": {
            "input_tokens": input, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written, "output_tokens": output,
        },
    })
}

/// Logs of two agents: a response on two lines, a session that was resumed in another file, a subagent with a file
/// of its own, days and models that change, an event that comes twice.
pub(crate) fn logs() -> BTreeMap<String, String> {
    let (opus, haiku) = ("claude-opus-4-5", "claude-haiku-4-5");
    let first = [
        said(
            "1",
            None,
            "2026-03-01T23:50:00.000Z",
            &asked("Plan the trip"),
        ),
        said(
            "2",
            Some("1"),
            "2026-03-01T23:59:00.000Z",
            &replied("m1", opus, "One", [3, 0, 900, 2]),
        ),
        said(
            "3",
            Some("2"),
            "2026-03-01T23:59:30.000Z",
            &replied("m1", opus, "two", [3, 0, 900, 40]),
        ),
        said(
            "4",
            Some("3"),
            "2026-03-02T00:00:10.000Z",
            &asked("And back"),
        ),
        said(
            "5",
            Some("4"),
            "2026-03-02T00:00:40.000Z",
            &replied("m2", haiku, "Three", [5, 900, 70, 60]),
        ),
    ];
    let resumed = [
        said(
            "6",
            Some("5"),
            "2026-03-03T09:00:00.000Z",
            &asked("Once more"),
        ),
        said(
            "7",
            Some("6"),
            "2026-03-03T09:00:09.000Z",
            &replied("m3", opus, "Four", [7, 970, 30, 80]),
        ),
    ];
    let agent = [
        said("a", None, "2026-03-02T00:00:20.000Z", &asked("Look it up")),
        said(
            "b",
            Some("a"),
            "2026-03-02T00:00:25.000Z",
            &replied("m4", haiku, "Five", [11, 0, 0, 12]),
        ),
    ];
    let agent = agent.map(|line| {
        line.replace(
            "\"isSidechain\":false",
            "\"agentId\":\"x\",\"isSidechain\":true",
        )
    });
    let item = |time: &str, kind: &str, payload: Value| {
        format!(
            "{}\n",
            json!({"timestamp": time, "type": kind, "payload": payload})
        )
    };
    let user = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let reply = |text: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
    let used = |[input, cached, output]: [u64; 3]| json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output});
    let count = |total, last| json!({"type": "token_count", "info": {"total_token_usage": used(total), "last_token_usage": used(last)}});
    let rollout = [
        item(
            "2026-03-02T10:00:00Z",
            "session_meta",
            json!({"id": "c", "cwd": "/srv/site", "timestamp": "2026-03-02T10:00:00Z"}),
        ),
        item(
            "2026-03-02T10:00:00Z",
            "turn_context",
            json!({"cwd": "/srv/site", "model": "gpt-5"}),
        ),
        item(
            "2026-03-02T10:00:01Z",
            "response_item",
            user("Mend the page"),
        ),
        item(
            "2026-03-02T10:00:02Z",
            "event_msg",
            json!({"type": "token_count", "info": null}),
        ),
        item("2026-03-02T10:00:05Z", "response_item", reply("Done")),
        item(
            "2026-03-02T10:00:06Z",
            "event_msg",
            count([500, 100, 20], [500, 100, 20]),
        ),
        item(
            "2026-03-05T10:00:00Z",
            "turn_context",
            json!({"cwd": "/srv/site", "model": "gpt-5-mini"}),
        ),
        item(
            "2026-03-05T10:00:01Z",
            "response_item",
            user("And the style"),
        ),
        item(
            "2026-03-05T10:00:02Z",
            "event_msg",
            count([500, 100, 20], [500, 100, 20]),
        ),
        item("2026-03-05T10:00:08Z", "response_item", reply("Done, too")),
        item(
            "2026-03-05T10:00:09Z",
            "event_msg",
            count([1100, 600, 45], [600, 500, 25]),
        ),
    ];
    let named = [
        ("claude/-srv-app/first.jsonl", first.concat()),
        (
            "claude/-srv-app/first/subagents/agent-x.jsonl",
            agent.concat(),
        ),
        (
            "claude/-srv-app/resumed.jsonl",
            [&first[..], &resumed].concat().concat(),
        ),
        ("codex/2026/03/02/rollout-1.jsonl", rollout.concat()),
    ];
    named.map(|(name, log)| (name.to_owned(), log)).into()
}

#[test]
fn usage_is_the_sum_of_the_raw_lines() {
    let scratch = Scratch::new("usage-raw");
    let [by_day, by_model] = check(&scratch.path("logs"), &logs());
    // Counted by hand, so that both cannot be wrong in the same way.
    let days = [
        ("2026-03-01", [1, 903, 0, 900, 40]),
        (
            "2026-03-02",
            [3, 975 + 11 + 500, 900 + 100, 70, 60 + 12 + 20],
        ),
        ("2026-03-03", [1, 1007, 970, 30, 80]),
        ("2026-03-05", [1, 600, 500, 0, 25]),
    ];
    assert_eq!(
        by_day,
        days.map(|(day, sums)| (day.to_owned(), sums)).into()
    );
    let models: Vec<&str> = by_model.keys().map(String::as_str).collect();
    assert_eq!(
        models,
        ["claude-haiku-4-5", "claude-opus-4-5", "gpt-5", "gpt-5-mini"]
    );
}

#[test]
fn usage_is_the_sum_of_the_raw_lines_of_real_logs() {
    let data =
        std::env::var_os("PACTQL_DATA").map_or_else(|| "../shared/data".into(), PathBuf::from);
    let data = data.join("agent-logs");
    if !data.is_dir() {
        eprintln!("SKIPPED: {} is missing", data.display());
        return;
    }
    let mut logs = BTreeMap::new();
    for folder in ["codemie", "trajectory"] {
        for file in std::fs::read_dir(data.join(folder)).expect("a directory") {
            let path = file.expect("a file").path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .expect("UTF-8");
            let is_of = |agent: &str| name.starts_with(agent) && name.ends_with(".jsonl.gz");
            if is_of("claude") || is_of("codex") {
                let mut log = String::new();
                let file = std::fs::File::open(&path).expect("a file");
                let read = flate2::read::MultiGzDecoder::new(file).read_to_string(&mut log);
                read.expect("UTF-8");
                logs.insert(format!("{folder}/{}", name.trim_end_matches(".gz")), log);
            }
        }
    }
    assert!(logs.len() > 5, "{:?}", logs.keys());
    let scratch = Scratch::new("usage-real");
    let [by_day, _] = check(&scratch.path("logs"), &logs);
    assert!(!by_day.is_empty());
}

/// A folder of logs is their sessions for every command, called as `import` calls them.
#[test]
fn a_folder_of_logs_is_its_sessions() {
    let scratch = Scratch::new("usage-folder");
    let (folder, store) = (scratch.path("logs"), scratch.path("all.db"));
    let mut files = logs();
    files.insert(
        "claude/-srv-app/notes.md".to_owned(),
        "# Notes\n".to_owned(),
    );
    files.insert(
        "claude/-srv-app/table.csv".to_owned(),
        "a,b\n1,2\n".to_owned(),
    );
    files.insert("claude/-srv-app/empty.jsonl".to_owned(), String::new());
    put(&folder, &files);
    std::fs::copy(CHAT, format!("{folder}/chat.json")).expect("a copy");
    answer(&["import", &folder, "-o", &store]);
    let names = |word: &str| {
        let listed = answer(&["sessions", word, "--json"]);
        let names = lines(&listed).map(|line| text(&line["name"]));
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(&folder), names(&store));
    assert!(names(&folder).contains(&"codex/2026/03/02/rollout-1".to_owned()));
    let listed = pactql(&["sessions", &folder, "--json"]);
    let note =
        r#"{"notes":[{"message":"left out 3 files without a session or a log that is read: "#;
    assert_eq!(listed.err.lines().count(), 1, "{}", listed.err);
    assert!(listed.err.contains(note), "{}", listed.err);
    let first = lines(&listed.out).find(|line| line["name"] == "claude/-srv-app/first");
    let first = first.expect("the session");
    for (member, expected) in [
        ("title", "Plan the trip"),
        ("project", "/srv/app"),
        ("agent", "claude-code"),
        ("model", "claude-haiku-4-5"),
        ("source", &format!("{folder}/claude/-srv-app/first.jsonl")),
    ] {
        assert_eq!(first[member], expected, "{first}");
    }
    // As many lines and names as of the store.
    for (command, more) in [
        ("steps", &[][..]),
        ("show", &[]),
        ("tokens", &[]),
        ("prefix", &[]),
        ("top", &[".cb"]),
        ("usage", &["--by", "agent"]),
        ("select", &["@t0 .cb[kind='text']", "-l"]),
    ] {
        let of = |word: &str| {
            let ran = answer(&[&[command, word][..], more, &["--json"]].concat());
            let mut lines: Vec<String> = ran
                .replace(&format!("{store}#"), "")
                .lines()
                .map(str::to_owned)
                .collect();
            lines.sort_unstable();
            lines
        };
        match command {
            "select" => assert!(
                of(&folder)[0].contains("codex/2026/03/02/rollout-1"),
                "{command}"
            ),
            _ => assert_eq!(of(&folder), of(&store), "{command}"),
        }
    }
    let found = answer(&["grep", "-l", "Mend the page", &folder]);
    assert_eq!(found, "codex/2026/03/02/rollout-1\n");
    // A store in a folder is its sessions, too.
    let stores = scratch.path("stores");
    put(
        &stores,
        &[("old/notes.md".to_owned(), "# Notes\n".to_owned())].into(),
    );
    let inner = format!("{stores}/old/all.db");
    std::fs::copy(&store, &inner).expect("a copy");
    let found = answer(&["grep", "-l", "Mend the page", &stores]);
    assert_eq!(found, format!("{inner}#codex/2026/03/02/rollout-1\n"));
    // One session is asked for.
    fails(&["render", &folder], 1, "is a directory of");
    // Nothing in it can be read.
    let none = scratch.path("none");
    put(
        &none,
        &[("a/notes.md".to_owned(), "# Notes\n".to_owned())].into(),
    );
    fails(&["usage", &none], 5, "notes.md");
}

/// A session that begins as one and is broken is an error, also beside others.
#[test]
fn a_broken_session_in_a_folder_is_an_error() {
    let scratch = Scratch::new("usage-broken");
    let folder = scratch.path("runs");
    let whole = r#"{"cycle":1,"root":{"id":"r","nodeType":"root","children":[]}}"#;
    let files = [
        ("a.jsonl", whole.to_owned()),
        ("b.jsonl", whole[..30].to_owned()),
    ];
    put(
        &folder,
        &files.map(|(name, text)| (name.to_owned(), text)).into(),
    );
    fails(&["steps", &folder], 5, "b.jsonl");
}

fn on_machine(home: &str, variables: &[(&str, &str)], arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pactql"));
    let variables = variables.iter().copied();
    let ran = super::alone(&mut command)
        .args(arguments)
        .env("HOME", home)
        .envs(variables)
        .output();
    let ran = ran.expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        ran.status.code().expect("a code"),
        text(&ran.stdout),
        text(&ran.stderr),
    )
}

/// Without a session, `usage` is of the logs of all agents.
#[cfg(unix)]
#[test]
fn usage_of_a_machine() {
    let scratch = Scratch::new("usage-machine");
    let (home, other) = (scratch.path("home"), scratch.path("other"));
    let (code, out, err) = on_machine(&home, &[], &["usage"]);
    assert_eq!((code, &*out), (4, ""), "{err}");
    for place in [
        ".claude/projects",
        ".codex/sessions",
        ".gemini/tmp",
        ".pi/agent/sessions",
    ] {
        assert!(err.contains(&format!("{home}/{place}")), "{err}");
    }
    assert!(err.contains("a folder of logs"), "{err}");
    let logs = logs();
    let of = |agent: &str, folder: &str| {
        let logs = logs.iter().filter_map(|(name, log)| {
            let name = name.strip_prefix(agent)?;
            Some((format!("{folder}{name}"), log.clone()))
        });
        logs.collect::<BTreeMap<String, String>>()
    };
    put(&home, &of("claude", ".claude/projects"));
    put(&home, &of("codex", ".codex/sessions"));
    let by_day = ["usage", "--by", "day", "--json"];
    let found = on_machine(&home, &[], &by_day);
    assert_eq!(groups(&found.1), summed(&logs)[0], "{}", found.2);
    for (option, sum) in [("--since", 0), ("--until", groups(&found.1).len())] {
        let chosen = [&by_day[..], &[option, "2100-01-01"]].concat();
        let (_, out, err) = on_machine(&home, &[], &chosen);
        assert_eq!(groups(&out).len(), sum, "{option}: {err}");
        assert_eq!(err.contains("was chosen"), sum == 0, "{option}: {err}");
    }
    // Where variables say so; a response that is in two places counts once, and a place that is named twice is one.
    put(&other, &of("claude", "projects"));
    put(&other, &of("codex", "sessions"));
    let codex = format!("{home}/.codex");
    let variables = [("CLAUDE_CONFIG_DIR", &*other), ("CODEX_HOME", &*codex)];
    let found = on_machine(&home, &variables, &by_day);
    assert_eq!(groups(&found.1), summed(&logs)[0], "{}", found.2);
    let usage: Value = serde_json::from_str(&found.1).expect("JSON");
    assert_eq!(
        (&usage["sessions"], &usage["repeated"]),
        (&json!(7), &json!(2 + 6))
    );
}

/// Where no session is named, the newest of the current directory, else of the machine; alone, a list.
#[cfg(unix)]
#[test]
fn what_is_not_named_is_found() {
    let scratch = Scratch::new("usage-newest");
    let home = scratch.path("home");
    let run = |arguments: &[&str]| on_machine(&home, &[], arguments);
    let (code, out, err) = run(&[]);
    assert_eq!((code, &*out), (1, ""), "{err}");
    assert!(
        err.contains("Usage: pactql") && err.contains("no agent keeps logs"),
        "{err}"
    );
    let (code, out, err) = run(&["show"]);
    assert_eq!((code, &*out), (4, ""), "{err}");
    let here = std::env::current_dir().expect("a directory");
    let log = std::fs::read_to_string("fixtures/leap-day.claude-code.jsonl").expect("a log");
    let seconds = |seconds| std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    let folder = format!("{home}/.claude/projects/heron");
    std::fs::create_dir_all(&folder).expect("a folder");
    let here = log.replace("/home/heron", here.to_str().expect("UTF-8"));
    let [ours, newer] = [("ours", &here, 1), ("newer", &log, 2)].map(|(name, log, written)| {
        let path = format!("{folder}/{name}.jsonl");
        std::fs::write(&path, log).expect("a log");
        let file = std::fs::File::options()
            .write(true)
            .open(&path)
            .expect("the log");
        file.set_modified(seconds(written)).expect("a time");
        path
    });
    let same = |path: &str, which: &str| {
        for (typed, named) in [
            (&["show"][..], &["show", path][..]),
            (&["show", "2"], &["show", path, "2"]),
            (&["steps", "2..4"], &["steps", path, "2..4"]),
            (&["tokens", "latest"], &["tokens", path, "latest"]),
            (&["prefix"], &["prefix", path]),
            (&["top"], &["top", path]),
            (&["top", ".cb", "3"], &["top", path, ".cb", "--at", "3"]),
            (&["grep", "heron"], &["grep", "heron", path]),
            (&["render", "3"], &["render", path, "--at", "3"]),
            (&["blame", "cb:1-1"], &["blame", path, "cb:1-1"]),
            (&["select", "@t0 .cb"], &["select", path, "@t0 .cb"]),
            (
                &["diff", "--json", "2", "3"],
                &["diff", "--json", path, "2", "3"],
            ),
            (
                &["diff", "--json", "2..3", ".cb"],
                &["diff", "--json", path, "2", "3", ".cb"],
            ),
        ] {
            let (code, out, err) = run(typed);
            assert_eq!(code, 0, "{typed:?}: {err}");
            assert_eq!(out, run(named).1, "{typed:?}");
            let note = format!("the newest session {which}: {path}");
            let note = if typed.contains(&"--json") {
                json!({"notes": [{"message": note}]}).to_string()
            } else {
                format!("note: {note}")
            };
            assert!(err.starts_with(&format!("{note}\n")), "{err}");
        }
    };
    same(&ours, "of this directory");
    let (code, list, err) = run(&[]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(list, run(&["sessions"]).1);
    assert!(list.contains(&ours) && list.contains(&newer), "{list}");
    let tried = list.lines().filter_map(|line| line.strip_prefix("pactql "));
    let tried: Vec<Vec<&str>> = tried.map(|line| line.split(' ').collect()).collect();
    assert_eq!(tried.len(), 3, "{list}");
    for line in tried {
        assert_eq!(run(&line).0, 0, "{line:?}");
    }
    let json = run(&["--json"]).1;
    assert_eq!(lines(&json).count(), 2, "{json}");
    assert_eq!(run(&[&ours]).1, run(&["steps", &ours]).1);
    assert_eq!(run(&[&folder]).1, run(&["sessions", &folder]).1);
    std::fs::remove_file(&ours).expect("removed");
    same(&newer, "of this machine");
}

/// What is known of a log is kept in the cache folder, and believed only while the log is what it was.
#[cfg(unix)]
#[test]
fn what_is_known_of_a_log_is_kept_until_it_changes() {
    let scratch = Scratch::new("usage-cache");
    let home = scratch.path("home");
    let folder = format!("{home}/.claude/projects/heron");
    std::fs::create_dir_all(&folder).expect("a folder");
    let log = std::fs::read_to_string("fixtures/leap-day.claude-code.jsonl").expect("a log");
    let path = format!("{folder}/one.jsonl");
    let write = |log: &str| {
        std::fs::write(&path, log).expect("a log");
        let file = std::fs::File::options().write(true).open(&path);
        let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
        file.and_then(|file| file.set_modified(long_ago))
            .expect("a time");
    };
    let cache = format!("{home}/.cache/pactql/logs.json");
    let read = || std::fs::read_to_string(&cache).expect("a cache");
    let title = || {
        let (code, out, err) = on_machine(&home, &[], &["--json"]);
        assert_eq!(code, 0, "{err}");
        let line = lines(&out).next().expect("a session");
        text(&line["title"])
    };
    write(&log);
    let whole = title();
    assert!(whole.starts_with("Users of heron"), "{whole}");
    let poisoned = read().replace("Users of heron", "Found in the cache");
    std::fs::write(&cache, &poisoned).expect("a cache");
    assert!(title().starts_with("Found in the cache"), "it is not used");
    // As long as before, at the same time, and with another middle.
    write(&log.replace("Users of heron", "Those of heron"));
    assert!(title().starts_with("Those of heron"));
    write(&log);
    assert_eq!(title(), whole);
    for damaged in [
        "",
        "{",
        &poisoned.replace("\"program\":\"", "\"program\":\"9"),
    ] {
        std::fs::write(&cache, damaged).expect("a cache");
        assert_eq!(title(), whole);
        assert!(read().contains("Users of heron"));
    }
    std::fs::remove_file(&cache).expect("a cache");
    assert_eq!(title(), whole);
    // What is too large for one call is not known to the next.
    let (code, _, err) = on_machine(&home, &[], &["sessions", "--max-input", "100"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(title(), whole);
    // What is gone is not kept.
    std::fs::write(format!("{folder}/two.jsonl"), &log).expect("a log");
    std::fs::remove_file(&path).expect("a log");
    assert_eq!(title(), whole);
    // A cache that cannot be written is left out.
    std::fs::remove_dir_all(format!("{home}/.cache")).expect("a folder");
    std::fs::write(format!("{home}/.cache"), "").expect("a file");
    assert_eq!(title(), whole);
}

/// `tokens` of several sessions ends with their sum, each response once, and `--model` is for logs that name none.
#[test]
fn tokens_end_with_a_sum() {
    let scratch = Scratch::new("usage-sum");
    let folder = scratch.path("logs");
    put(&folder, &logs());
    let json = answer(&["tokens", &folder, "--json"]);
    let sum = lines(&json).last().expect("a line");
    assert_eq!(
        (&sum["sessions"], &sum["repeated"]),
        (&json!(4), &json!(2)),
        "{sum}"
    );
    let usage: Value = serde_json::from_str(&answer(&["usage", &folder, "--json"])).expect("JSON");
    assert_eq!(sum["total"], usage["total"]);
    let text = answer(&["tokens", &folder]);
    let last = text.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("all 4 sessions: 6 requests, 3,996 tokens in"),
        "{last}"
    );
    assert!(
        last.ends_with("; 2 repeated responses counted once"),
        "{last}"
    );
    // One session has no sum.
    let one = format!("{folder}/codex/2026/03/02/rollout-1.jsonl");
    assert!(!answer(&["tokens", &one]).contains("all "));

    let chat = scratch.write(
        "chat.json",
        br#"[{"role":"user","content":"Hello there"},{"role":"assistant","content":"Hi"}]"#,
    );
    assert!(answer(&["tokens", &chat]).contains("names no model"));
    let priced = answer(&["tokens", &chat, "--model", "gpt-4o"]);
    assert!(
        priced.contains("(o200k)") && priced.contains("this request: $"),
        "{priced}"
    );
    let unknown = answer(&["tokens", &chat, "--model", "mine"]);
    assert!(unknown.contains("have no model `mine`"), "{unknown}");
    let tokenizer = |more: &[&str]| {
        let prefix = answer(&[&["prefix", &chat, "--json"], more].concat());
        lines(&prefix).next().expect("a line")["tokenizer"].clone()
    };
    assert_eq!(tokenizer(&[]), "bytes/4");
    assert_eq!(tokenizer(&["--model", "gpt-4o"]), "o200k");
    // A log that names its model keeps it.
    assert_eq!(
        answer(&["tokens", &one, "--model", "gpt-4o"]),
        answer(&["tokens", &one])
    );
    // No figure is no price.
    let usage: Value = serde_json::from_str(&answer(&[
        "usage", &chat, "--model", "gpt-4o", "--by", "model", "--json",
    ]))
    .expect("JSON");
    assert_eq!(
        (&usage["groups"][0]["name"], &usage["total"]["uncounted"]),
        (&json!("gpt-4o"), &json!(1))
    );
    let usage = answer(&["usage", &chat, "--model", "gpt-4o"]);
    let left_out = "1 request without the provider's counts, whose tokens are not in the sums\n";
    assert!(!usage.contains('$') && usage.contains(left_out), "{usage}");
}
