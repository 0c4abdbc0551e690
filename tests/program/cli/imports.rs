//! `pactql import`, again and again: logs that grow, subagents in files of their own, `--follow`.

use super::store::names;
use super::{AGENT, CHAT, Scratch, answer, fails, pactql};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[path = "../../support/rows.rs"]
mod rows;

/// A line of Claude Code.
pub(super) fn line(id: &str, parent: Option<&str>, message: &Value, more: &Value) -> String {
    let mut line = json!({"type": message["role"], "uuid": id, "parentUuid": parent, "sessionId": "s1",
        "isSidechain": false, "timestamp": "2026-03-02T09:00:00Z", "message": message});
    for (name, value) in more.as_object().into_iter().flatten() {
        line[name] = value.clone();
    }
    format!("{line}\n")
}

pub(super) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub(super) fn reply(id: &str, content: &Value) -> Value {
    json!({"role": "assistant", "id": id, "model": "m", "content": content})
}

pub(super) fn said(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn count(session: &str, selector: &str) -> usize {
    let found = answer(&["select", session, selector, "--format", "json"]);
    let found: Value = serde_json::from_str(&found).expect("JSON");
    found.as_array().expect("a list").len()
}

#[test]
fn a_folder_of_documents_is_a_session_and_with_a_log_it_is_two() {
    let scratch = Scratch::new("import-documents");
    let (folder, store) = (scratch.path("in"), scratch.path("a.db"));
    std::fs::create_dir_all(&folder).expect("a directory");
    let put = |name: &str, text: &str| {
        std::fs::write(format!("{folder}/{name}"), text).expect("a file");
    };
    put("step.json", &answer(&["export", AGENT, "--at", "@t0"]));
    answer(&["import", &folder, "-o", &store]);
    assert_eq!(names(&store), ["in"]);
    put("talk.json", &std::fs::read_to_string(CHAT).expect("a log"));
    answer(&["import", &folder, "-o", &store]);
    assert_eq!(names(&store), ["in", "step", "talk"]);
}

/// Both plan to make the same sessions, and wait for each other: the second one finds them there.
#[test]
fn two_imports_at_once_bring_everything() {
    let scratch = Scratch::new("import-at-once");
    let store = scratch.path("a.db");
    let put = |folder: &str, name: &str, said_last: &str| {
        let folder = scratch.path(folder);
        std::fs::create_dir_all(&folder).expect("a directory");
        let text = line("1", None, &user(name), &json!({}))
            + &line("2", Some("1"), &reply("m1", &said(said_last)), &json!({}));
        std::fs::write(format!("{folder}/{name}.jsonl"), text).expect("a file");
    };
    for name in ["b", "d", "f"] {
        put("both", name, "yes");
    }
    for name in ["a", "c", "e", "g"] {
        put("one", name, "yes");
    }
    put("two", "z", "yes");
    // Of the same name, and another log.
    put("two", "e", "no");
    put("first", "first", "yes");
    answer(&["import", &scratch.path("first"), "-o", &store]);

    let lock = rusqlite::Connection::open(&store).expect("a store");
    lock.execute_batch("begin immediate").expect("a lock");
    let import = |more: &str| {
        Command::new(env!("CARGO_BIN_EXE_pactql"))
            .args(["import", &scratch.path("both"), &scratch.path(more)])
            .args(["-o", &store])
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process")
    };
    let imports = [import("one"), import("two")];
    std::thread::sleep(Duration::from_secs(2));
    lock.execute_batch("commit")
        .expect("the lock is given back");
    let said = imports.map(|import| {
        let done = import.wait_with_output().expect("an end");
        let said = String::from_utf8(done.stderr).expect("UTF-8");
        assert!(done.status.success(), "{said}");
        said
    });
    assert_eq!(
        names(&store),
        ["a", "b", "c", "d", "e", "f", "first", "g", "z"]
    );
    for name in ["b", "d", "f"] {
        assert_eq!(count(&format!("{store}#{name}"), "@t0 .cb"), 2);
    }
    let said = said.concat();
    assert_eq!(said.matches("left out ").count(), 1, "{said}");
    assert!(said.contains("has a session `e` already"), "{said}");
    // The log that is left out does not count.
    let logs =
        said.matches("imported 7 sessions").count() + said.matches("imported 5 sessions").count();
    let fewer =
        said.matches("imported 6 sessions").count() + said.matches("imported 4 sessions").count();
    assert_eq!((logs, fewer), (1, 1), "{said}");
    answer(&["verify", &store]);
}

#[test]
fn a_secret_in_the_name_of_a_file_does_not_enter() {
    let scratch = Scratch::new("import-secret-name");
    let (log, store) = (
        scratch.path("of anna@example.org.jsonl"),
        scratch.path("a.db"),
    );
    let text = line("1", None, &user("go"), &json!({}))
        + &line("2", Some("1"), &reply("m1", &said("A")), &json!({}));
    std::fs::write(&log, text).expect("a file");
    let done = pactql(&["import", &log, "-o", &store, "--redact", "[a-z]+@[a-z.]+"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(names(&store), ["of [redacted]"]);
    let bytes = std::fs::read(&store).expect("a store");
    assert!(!bytes.windows(5).any(|part| part == b"anna@"));
    // A pattern may begin with hyphens, as that of a private key does.
    let done = pactql(&["import", &log, "--redact", "-----BEGIN|anna"]);
    assert_eq!(done.code, 0, "{}", done.err);
}

#[test]
fn a_log_that_has_grown_adds_what_is_new() {
    let scratch = Scratch::new("import-grown");
    let (log, store) = (scratch.path("log.jsonl"), scratch.path("a.db"));
    let mut text = line("1", None, &user("go"), &json!({}))
        + &line("2", Some("1"), &reply("m1", &said("A")), &json!({}));
    let put = |text: &str| std::fs::write(&log, text).expect("a file");
    put(&text);
    let import = ["import", &log, "-o", &store];
    let first = pactql(&import);
    assert_eq!(first.code, 0, "{}", first.err);
    assert!(!first.err.contains("added"), "{}", first.err);
    let again = pactql(&import);
    assert!(
        again
            .err
            .contains("added 0 snapshots: 0 sessions new, 0 grown, 1 as before\n"),
        "{}",
        again.err
    );
    text += &line("3", Some("2"), &user("on"), &json!({}));
    text += &line("4", Some("3"), &reply("m2", &said("B")), &json!({}));
    // A line that is not whole waits for its rest.
    put(&format!("{text}{{\"type\":\"us"));
    let more = pactql(&import);
    assert!(
        more.err
            .contains("added 1 snapshot: 0 sessions new, 1 grown, 0 as before\n"),
        "{}",
        more.err
    );
    // Another branch is the newest.
    text += &line("5", Some("2"), &user("back"), &json!({}));
    text += &line("6", Some("5"), &reply("m3", &said("C")), &json!({}));
    put(&text);
    let json = pactql(&[&import[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(
        report["store"],
        json!({"grown": 0, "kept_names": [], "new": 1, "renamed": [{"from": "log", "to": "log~2"}], "same": 1, "snapshots": 2})
    );
    assert_eq!(names(&store), ["log", "log~2"]);
    // A session of that name that is not the log's.
    put(&(line("1", None, &user("other"), &json!({}))
        + &line("2", Some("1"), &reply("m1", &said("X")), &json!({}))));
    let error = fails(&import, 1, "has a session `log` already");
    assert!(error.contains("pactql store delete"), "{error}");
    let damage: Value = serde_json::from_str(&answer(&["verify", "--json", &store])).expect("JSON");
    assert_eq!(damage["valid"], true);
}

/// A log of Claude Code of more than 8 MiB, which is read line by line.
pub(super) fn large(turns: usize) -> String {
    let mut text = String::new();
    for turn in 0..turns {
        let parent = turn.checked_sub(1).map(|turn| format!("r{turn}"));
        let words = format!("{turn} é ").repeat(100_000);
        let id = format!("u{turn}");
        text += &line(&id, parent.as_deref(), &user(&words), &json!({}));
        let spoken = said(&format!("reply {turn}"));
        let reply = reply(&format!("m{turn}"), &spoken);
        text += &line(&format!("r{turn}"), Some(&id), &reply, &json!({}));
    }
    text
}

#[test]
fn a_large_log_is_read_line_by_line_and_gives_the_same() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("import-large");
    let (log, store) = (scratch.path("log.jsonl"), scratch.path("a.db"));
    let import = ["import", &log, "-o", &store];
    std::fs::write(&log, large(20)).expect("a file");
    assert!(std::fs::metadata(&log).expect("a file").len() > 8 << 20);
    let first = pactql(&import);
    assert_eq!(first.code, 0, "{}", first.err);
    assert!(
        first.err.starts_with("imported 1 session, 20 snapshots\n"),
        "{}",
        first.err
    );
    let text = large(21);
    std::fs::write(&log, &text).expect("a file");
    // A malformed line is left out and counted, or refused.
    let last = line("last", Some("r20"), &user("x"), &json!({}));
    std::fs::write(&log, format!("{text}no JSON\n{last}")).expect("a file");
    fails(&[&import[..], &["--strict"]].concat(), 5, "43:1: ");
    let tolerated = pactql(&import);
    assert_eq!(tolerated.code, 0, "{}", tolerated.err);
    assert!(tolerated.err.contains("malformed 1"), "{}", tolerated.err);
    assert!(
        tolerated
            .err
            .contains("added 1 snapshot: 0 sessions new, 1 grown, 0 as before\n"),
        "{}",
        tolerated.err
    );
    std::fs::write(&log, text + &last).expect("a file");
    let without = pactql(&import);
    assert!(!without.err.contains("malformed"), "{}", without.err);
    assert!(
        without.err.contains(" 0 grown, 1 as before\n"),
        "{}",
        without.err
    );
    // A file of a session is written from the whole log.
    let file = scratch.path("session.jsonl");
    answer(&["import", &log, "-o", &file]);
    let stored = format!("{store}#log");
    let export = |session: &str| answer(&["export", session, "--jsonl"]);
    assert_eq!(export(&stored), export(&file));
    // Nothing is left beside the store.
    let mut names: Vec<String> = std::fs::read_dir(scratch.path(""))
        .expect("a directory")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| !name.contains("a.db-"))
        .collect();
    names.sort();
    assert_eq!(names, ["a.db", "log.jsonl", "session.jsonl"]);
}

#[test]
fn subagents_in_files_of_their_own_are_sessions_of_their_session() {
    for layout in ["s1/subagents/", "s1/subagents/of/it/", ""] {
        let scratch = Scratch::new(&format!("import-agents-{}", layout.len()));
        let (folder, store) = (scratch.path("projects"), scratch.path("a.db"));
        let project = format!("{folder}/-srv-app");
        std::fs::create_dir_all(format!("{project}/{layout}")).expect("a directory");
        let task = json!([{"type": "tool_use", "id": "toolu_1", "name": "Task",
            "input": {"prompt": "Check.", "subagent_type": "checker"}}]);
        let result = json!({"role": "user", "content": [{"type": "tool_result",
            "tool_use_id": "toolu_1", "content": "Good."}]});
        let main = line("1", None, &user("go"), &json!({}))
            + &line("2", Some("1"), &reply("m1", &task), &json!({}))
            + &line(
                "3",
                Some("2"),
                &result,
                &json!({"toolUseResult": {"agentId": "a1b2", "status": "completed"}}),
            )
            + &line("4", Some("3"), &reply("m2", &said("Done.")), &json!({}));
        let side = json!({"isSidechain": true, "agentId": "a1b2"});
        let agent = line("a1", None, &user("Check."), &side)
            + &line("a2", Some("a1"), &reply("m9", &said("Good.")), &side);
        std::fs::write(format!("{project}/s1.jsonl"), main).expect("a file");
        std::fs::write(format!("{project}/{layout}agent-a1b2.jsonl"), agent).expect("a file");
        std::fs::write(
            format!("{project}/{layout}agent-a1b2.meta.json"),
            "{\"agentType\":\"checker\"}",
        )
        .expect("a file");
        let ran = pactql(&["import", &folder, "-o", &store]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_eq!(
            names(&store),
            ["-srv-app/s1", "-srv-app/s1/a1b2"],
            "{layout}"
        );
        let parent = format!("{store}#-srv-app/s1");
        assert_eq!(count(&parent, "@t0 .cb[data_child_session='/a1b2']"), 1);
        let child: Vec<Value> = answer(&["export", &format!("{parent}/a1b2")])
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(child[0]["meta"]["parent"], json!({"session": ".."}));
        let again = pactql(&["import", &folder, "-o", &store]);
        assert!(again.err.contains("0 grown, 2 as before"), "{}", again.err);
    }
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let scratch = Scratch::new("import-follow-wrong");
    let store = scratch.path("a.db");
    fails(&["import", CHAT, "--follow"], 1, "--output");
    fails(
        &["import", CHAT, "--follow", "-o", "x.jsonl"],
        1,
        "`--follow` writes into a store",
    );
    fails(
        &["import", "-", "--follow", "-o", &store],
        1,
        "cannot be followed",
    );
    fails(
        &["import", "missing.jsonl", "--follow", "-o", &store],
        4,
        "missing.jsonl",
    );
}

/// Appends to a log while it is followed, and interrupts.
#[cfg(unix)]
#[test]
fn a_followed_log_is_in_the_store_as_it_grows() {
    let scratch = Scratch::new("import-follow");
    let (folder, store) = (scratch.path("logs"), scratch.path("a.db"));
    std::fs::create_dir_all(&folder).expect("a directory");
    let path = format!("{folder}/log.jsonl");
    let mut log = std::fs::File::create(&path).expect("a file");
    let mut put = |text: &str| {
        log.write_all(text.as_bytes()).expect("written");
        log.flush().expect("written");
    };
    put(&line("1", None, &user("go"), &json!({})));
    put(&line("2", Some("1"), &reply("m1", &said("A")), &json!({})));
    let mut child = Command::new(env!("CARGO_BIN_EXE_pactql"))
        .args(["import", &folder, "-o", &store, "--follow"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut next = || lines.next().expect("a line").expect("UTF-8");
    assert_eq!(next(), "log: 1 snapshot more");
    // A line in two halves.
    let third = line("3", Some("2"), &user("on"), &json!({}));
    let fourth = line("4", Some("3"), &reply("m2", &said("B")), &json!({}));
    let (head, tail) = fourth.split_at(fourth.len() / 2);
    put(&third);
    put(head);
    put(tail);
    assert_eq!(next(), "log: 1 snapshot more");
    // A file that comes later, and a branch.
    let other = line("1", None, &user("other"), &json!({}))
        + &line("2", Some("1"), &reply("m1", &said("X")), &json!({}));
    std::fs::write(format!("{folder}/new.jsonl"), other).expect("a file");
    assert_eq!(next(), "new: 1 snapshot more");
    put(&line("5", Some("2"), &user("back"), &json!({})));
    put(&line("6", Some("5"), &reply("m3", &said("C")), &json!({})));
    assert!(next().starts_with("log: "));
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.expect("kill runs").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let rest: Vec<String> = lines.map(|line| line.expect("UTF-8")).collect();
    assert!(
        rest.iter().any(|line| line.starts_with("added ")),
        "{rest:?}"
    );
    assert!(
        rest.contains(&"`log` is now `log~2`".to_owned()),
        "{rest:?}"
    );
    assert_eq!(names(&store), ["log", "log~2", "new"]);
    let damage: Value = serde_json::from_str(&answer(&["verify", "--json", &store])).expect("JSON");
    assert_eq!(damage["valid"], true);
    // One import of the logs as they are gives the same sessions.
    let again = pactql(&["import", &folder, "-o", &store]);
    assert!(again.err.contains("0 grown, 3 as before"), "{}", again.err);
}

/// A log that is followed keeps the name that its session is given meanwhile.
#[cfg(unix)]
#[test]
fn a_followed_log_keeps_its_new_name() {
    let scratch = Scratch::new("import-follow-renamed");
    let (path, store) = (scratch.path("log.jsonl"), scratch.path("a.db"));
    let mut log = std::fs::File::create(&path).expect("a file");
    let mut put = |text: String| log.write_all(text.as_bytes()).expect("written");
    put(line("1", None, &user("go"), &json!({}))
        + &line("2", Some("1"), &reply("m1", &said("A")), &json!({})));
    let mut child = Command::new(env!("CARGO_BIN_EXE_pactql"))
        .args(["import", &path, "-o", &store, "--follow", "--name", "first"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut next = || lines.next().expect("a line").expect("UTF-8");
    assert_eq!(next(), "log: 1 snapshot more");
    answer(&["store", "rename", &format!("{store}#first"), "second"]);
    for (before, question, answer) in [("2", "3", "4"), ("4", "5", "6")] {
        put(line(question, Some(before), &user("on"), &json!({}))
            + &line(
                answer,
                Some(question),
                &reply(answer, &said("B")),
                &json!({}),
            ));
        assert_eq!(next(), "log: 1 snapshot more");
        assert_eq!(names(&store), ["second"]);
    }
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.expect("kill runs").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let rest: Vec<String> = lines.map(|line| line.expect("UTF-8")).collect();
    let kept = "`first` keeps its name in the store, `second`";
    assert_eq!(
        rest.iter().filter(|line| *line == kept).count(),
        1,
        "{rest:?}"
    );
}

/// A program that follows some logs into a store, and says on standard error what it does.
pub(super) fn follower(logs: &[&str], store: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_pactql"))
        .arg("import")
        .args(logs)
        .args(["-o", store, "--follow"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Numbers below a limit, the same on every run.
fn numbers() -> impl FnMut(usize) -> usize {
    let mut state: u64 = 7;
    move |limit| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % limit
    }
}

/// The logs that grow, each with its place: all of the repository, those of Codex packed too, a frame a line; where all
/// tests run, also all recorded ones.
fn growing() -> Vec<(String, Vec<u8>)> {
    let mut logs = Vec::new();
    let mut folders = vec![std::path::PathBuf::from("tests/cases/logs")];
    if !crate::cases::few() {
        let recorded = std::env::var_os("PACTQL_DATA");
        folders.push(recorded.map_or_else(|| "../shared/data".into(), Into::into));
    }
    let roots = folders.clone();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten();
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mut bytes = std::fs::read(&path).expect("a file");
            // Below the folder of the scratch, wherever the log lies: the log itself is only read.
            let inside = roots.iter().find_map(|root| path.strip_prefix(root).ok());
            let name = inside.expect("a path below a root").display().to_string();
            if bytes.starts_with(b"\x1F\x8B") {
                let mut unpacked = Vec::new();
                let mut reader = flate2::read::GzDecoder::new(&bytes[..]);
                reader.read_to_end(&mut unpacked).expect("a packed log");
                bytes = unpacked;
            }
            if name.contains("/codex/") {
                let lines = bytes.split_inclusive(|byte| *byte == b'\n');
                logs.push((format!("packed/{name}.zst"), lines.flat_map(pack).collect()));
            }
            logs.push((name.replace(".gz", ""), bytes));
        }
    }
    logs.sort();
    logs
}

/// A frame of Zstandard.
fn pack(bytes: &[u8]) -> Vec<u8> {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    ruzstd::encoding::compress_to_vec(bytes, level)
}

/// Logs of all formats grow at once by pieces that end anywhere, also inside of a letter, while a follower is killed at
/// any moment and another one goes on. In the end the store is one that a single import makes.
#[test]
fn a_follower_that_is_killed_goes_on() {
    let scratch = Scratch::new("import-killed");
    let (folder, store, once) = (
        scratch.path("logs"),
        scratch.path("a.db"),
        scratch.path("once.db"),
    );
    let mut logs: Vec<(std::fs::File, Vec<u8>, usize)> = Vec::new();
    for (name, mut bytes) in growing() {
        let path = std::path::Path::new(&folder).join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a directory");
        let file = std::fs::File::create(path).expect("a file");
        bytes.reverse();
        let most = 2_000.max(bytes.len() / 8);
        logs.push((file, bytes, most));
    }
    assert!(logs.len() > 30);
    // What is left of each is written from the end of it.
    let writer = std::thread::spawn(move || {
        let mut below = numbers();
        while !logs.is_empty() {
            let at = below(logs.len());
            let (file, rest, most) = &mut logs[at];
            let left = rest.len().saturating_sub(1 + below(*most));
            let mut piece = rest.split_off(left);
            piece.reverse();
            file.write_all(&piece).expect("written");
            if rest.is_empty() {
                logs.swap_remove(at);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let mut below = numbers();
    let mut kills = 0;
    while kills < 2 || !writer.is_finished() {
        let mut child = follower(&[&folder], &store);
        std::thread::sleep(Duration::from_millis(20 + below(800) as u64));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        kills += 1;
    }
    writer.join().expect("the logs are whole");
    let ran = pactql(&["import", &folder, "-o", &once]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let wanted = rows::rows(&once);
    let mut child = follower(&[&folder], &store);
    // It reads all of them again first.
    let until = Instant::now() + Duration::from_secs(300);
    while rows::rows(&store) != wanted && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let found = rows::rows(&store);
    let other = || found.iter().find(|row| !wanted.contains(row));
    assert!(found == wanted, "after {kills} kills: {:?}", other());
    let damage: Value = serde_json::from_str(&answer(&["verify", "--json", &store])).expect("JSON");
    assert_eq!(damage["valid"], true);
    println!("{kills} kills");
}

#[test]
fn a_follower_ends_when_all_logs_have_failed() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("import-failed");
    let bad = scratch.write("bad.jsonl", "no JSON\nnor this\n");
    let begun = scratch.write("begun.jsonl", "{\"type\":\"us");
    let reply = |text: &str| {
        line("1", None, &user("go"), &json!({}))
            + &line("2", Some("1"), &reply("m1", &said(text)), &json!({}))
    };
    let other = scratch.write("other.jsonl", reply("A"));
    let stores = ["a.db", "b.db", "c.db"].map(|name| scratch.path(name));
    answer(&["import", &other, "-o", &stores[1]]);
    scratch.write("other.jsonl", reply("B"));
    let until = Instant::now() + Duration::from_secs(60);
    let ends = |logs: &[&str], store: &str| {
        let mut child = follower(logs, store);
        while child.try_wait().expect("it can be waited for").is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        // One that goes on fails the test, and does not hold it up.
        let _ = child.kill();
        let done = child.wait_with_output().expect("it ends");
        (
            done.status.code(),
            String::from_utf8(done.stderr).expect("UTF-8"),
        )
    };
    // One of two may go on.
    let mut goes_on = follower(&[&bad, &begun], &stores[2]);
    let (code, said) = ends(&[&bad], &stores[0]);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("  1:1: "), "{said}");
    assert!(said.contains("none of the logs can be followed"), "{said}");
    // What `import` says of it.
    let (code, said) = ends(&[&other], &stores[1]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("has a session `other` already"), "{said}");
    assert!(goes_on.try_wait().expect("it can be waited for").is_none());
    goes_on.kill().expect("it runs");
    goes_on.wait().expect("it ends");
}

/// Puts into a directory what a file cannot be made of: a loop, links, a pipe that nobody writes.
#[cfg(target_os = "linux")]
fn odd_entries(folder: &str) {
    use std::os::unix::fs::symlink;
    symlink(folder, format!("{folder}/loop")).expect("a link");
    symlink("gone", format!("{folder}/nothing.jsonl")).expect("a link");
    // Nobody can read it from its start, not even root.
    symlink("/proc/self/mem", format!("{folder}/unreadable.jsonl")).expect("a link");
    let made = Command::new("mkfifo")
        .arg(format!("{folder}/fifo.jsonl"))
        .status();
    assert!(made.expect("mkfifo runs").success());
}

/// Of a tree of files, what is a log is imported, whatever is beside it; Zstandard is unpacked, also in several
/// frames, as programs write that add to a file.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_is_imported_with_what_is_no_log_left_out() {
    let scratch = Scratch::new("import-folder");
    let (folder, store) = (scratch.path("in"), scratch.path("a.db"));
    std::fs::create_dir_all(format!("{folder}/deep")).expect("a directory");
    let put = |name: &str, bytes: &[u8]| {
        std::fs::write(format!("{folder}/{name}"), bytes).expect("a file");
    };
    let first = line("1", None, &user("go"), &json!({}));
    let second = line("2", Some("1"), &reply("m1", &said("A")), &json!({}));
    put("deep/plain.jsonl", (first.clone() + &second).as_bytes());
    let frames = [pack(first.as_bytes()), pack(second.as_bytes())].concat();
    put("packed.jsonl.zst", &frames);
    put("torn.jsonl.zst", &frames[..frames.len() - 20]);
    put("bad.jsonl", format!("not JSON\n{first}{second}").as_bytes());
    // A session that has begun and said nothing.
    let young = r#"{"type":"summary","summary":"Trains","leafUuid":"a"}"#;
    put("young.jsonl", format!("{young}\n{young}\n").as_bytes());
    put("README.md", b"# Logs\n\nof an agent\n");
    put("table.csv", b"a,b\n1,2\n");
    put("bytes.bin", b"\x00\x01\xff\n\xfe");
    put(
        "wire.jsonl",
        b"{\"type\":\"metadata\",\"protocol_version\":\"1\"}\n",
    );
    put("empty.jsonl", b"");
    put("cut.eval", b"PK\x03\x04 and no more of it");
    odd_entries(&folder);
    let done = pactql(&["import", &folder, "-o", &store]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(names(&store), ["bad", "deep/plain", "packed"]);
    let left_out = [
        ("empty.jsonl", "is empty"),
        ("cut.eval", "this ZIP archive is cut off or damaged"),
        ("loop", "a link to a directory, which is not followed"),
        ("nothing.jsonl", "a link to nothing"),
        ("fifo.jsonl", "neither a file nor a directory"),
        ("unreadable.jsonl", "unreadable.jsonl: "),
        (
            "young.jsonl",
            "no line of it is of a message yet (2 skipped)",
        ),
        ("README.md", "malformed JSON"),
        ("table.csv", "malformed JSON"),
        ("bytes.bin", "UTF-8"),
        ("torn.jsonl.zst", "broken zstd data"),
        ("wire.jsonl", "a log of Kimi"),
    ];
    for (file, why) in left_out {
        let is_named = |line: &str| line.contains(file) && line.contains(why);
        assert!(done.err.lines().any(is_named), "{file}: {}", done.err);
    }
    let skipped = |line: &&str| line.starts_with("skipped ");
    assert_eq!(done.err.lines().filter(skipped).count(), left_out.len());
    // Again, in JSON, beside a tree in which nothing is left out.
    let good = scratch.path("good");
    std::fs::create_dir_all(&good).expect("a directory");
    std::fs::write(format!("{good}/other.jsonl"), first.clone() + &second).expect("a file");
    let json = pactql(&["import", &folder, &good, "-o", &store, "--json"]);
    assert_eq!(json.code, 0, "{}", json.err);
    let report: Value = serde_json::from_str(&json.out).expect("JSON");
    // The report alone as JSON: what else is said, and a session, is text.
    let again = pactql(&["import", &folder, &good, "-o", &store, "--report", "json"]);
    let same: Value = serde_json::from_str(&again.out).expect("JSON");
    assert_eq!(same["invalid"], report["invalid"]);
    let text = pactql(&["import", &good, "-o", &store, "--report", "text"]);
    assert_eq!((text.code, &*text.out), (0, ""), "{}", text.err);
    fails(&["import", &good, "--report", "xml"], 3, "--report");
    let invalid = report["invalid"].as_array().expect("a list");
    assert_eq!(invalid.len(), left_out.len());
    assert_eq!(report["sessions"], json!(4));
    assert_eq!(names(&store), ["bad", "deep/plain", "other", "packed"]);
    assert!(done.err.contains("malformed 1"), "{}", done.err);
    let texts = |name: &str| answer(&["select", "--json", &format!("{store}#{name}"), "@* .cb"]);
    assert_eq!(texts("packed"), texts("deep/plain"));
    // Where nothing can be read, and where all of it has to be.
    let other = scratch.path("b.db");
    let none = ["young.jsonl", "README.md"].map(|name| format!("{folder}/{name}"));
    fails(
        &["import", &none[0], &none[1], "-o", &other],
        5,
        "none of 2 files",
    );
    let tree = scratch.path("none");
    std::fs::create_dir_all(format!("{tree}/deep")).expect("a directory");
    odd_entries(&format!("{tree}/deep"));
    std::fs::write(format!("{tree}/z.md"), b"# Logs\n\nof an agent\n").expect("a file");
    fails(&["import", &tree, "-o", &other], 5, "none of 5 files");
    fails(
        &["import", &folder, "-o", &other, "--strict"],
        5,
        "README.md",
    );
}

/// A session that came in as requests is rendered as one; another is a list of blocks.
#[test]
fn render_gives_a_request_in_the_form_it_came_in() {
    let scratch = Scratch::new("imports-form");
    for (name, body) in [
        (
            "gemini",
            r#"{"contents":[{"role":"user","parts":[{"text":"Hello"}]}],"model":"g","generationConfig":{"topK":4}}"#,
        ),
        (
            "bedrock",
            r#"{"modelId":"b","messages":[{"role":"user","content":[{"text":"Hello"}]}],"inferenceConfig":{"maxTokens":4}}"#,
        ),
        (
            "openai",
            r#"{"model":"o","messages":[{"role":"user","content":"Hello"}]}"#,
        ),
        (
            "anthropic",
            r#"{"model":"claude","max_tokens":5,"messages":[{"role":"user","content":"Hello"}]}"#,
        ),
    ] {
        let path = scratch.write(&format!("{name}.json"), body);
        let kept = scratch.path(&format!("{name}.jsonl"));
        answer(&["import", &path, "--from", name, "-o", &kept]);
        let render = |more: &[&str]| -> serde_json::Value {
            serde_json::from_str(&answer(&[&["render", &*kept], more].concat())).expect("JSON")
        };
        let wanted: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(render(&["--request"]), wanted, "{name}");
        assert_eq!(render(&["--request", "--as", name]), wanted, "{name}");
        assert!(render(&["--as", "thread"]).is_array(), "{name}");
    }
    let list = answer(&["render", AGENT]);
    assert!(list.starts_with("[{\"id\""), "{list}");
}

#[test]
fn what_is_imported_is_accepted_by_verify() {
    let scratch = Scratch::new("import-verify");
    let store = scratch.path("all.db");
    // One log that cannot be read would end the import of its whole folder.
    answer(&["import", "tests/cases/logs", "-o", &store]);
    let damage: Value = serde_json::from_str(&answer(&["verify", "--json", &store])).expect("JSON");
    assert_eq!(damage["valid"], true);
    assert!(names(&store).len() > 40);
    for log in ["tests/cases/logs/egregore/synthetic-history.json", CHAT] {
        let file = scratch.path("one.jsonl");
        answer(&["import", log, "-o", &file, "--force"]);
        let damage: Value =
            serde_json::from_str(&answer(&["verify", "--json", &file])).expect("JSON");
        assert_eq!(damage["valid"], true, "{log}");
    }
}

#[cfg(unix)]
#[test]
fn closed_streams_do_not_spoil_a_file() {
    let scratch = Scratch::new("closed-streams");
    let (good, other) = (scratch.path("good.jsonl"), scratch.path("other.jsonl"));
    answer(&["import", CHAT, "-o", &good]);
    // What is opened first would be in the place of a stream that is closed.
    for closed in [">&-", "2>&-", "<&-", "<&- >&- 2>&-"] {
        let line = format!("exec \"$0\" import {CHAT} -o {other} --force {closed}");
        let status = Command::new("sh")
            .args(["-c", &line, env!("CARGO_BIN_EXE_pactql")])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(status.expect("sh runs").success(), "{closed}");
        let read = |path: &str| std::fs::read(path).expect("a file");
        assert!(read(&good) == read(&other), "{closed}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_with_a_name_is_a_session() {
    let scratch = Scratch::new("fifo");
    let pipe = scratch.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    for fixture in [AGENT, CHAT] {
        let path = pipe.clone();
        let bytes = std::fs::read(fixture).expect("a fixture");
        let writer = std::thread::spawn(move || std::fs::write(path, bytes));
        let found = answer(&["select", &pipe, "@t0 .cb", "--count"]);
        writer.join().expect("the writer ends").expect("it is read");
        assert_eq!(found, answer(&["select", fixture, "@t0 .cb", "--count"]));
    }
}

#[test]
fn what_is_packed_twice_is_refused() {
    let scratch = Scratch::new("packed-twice");
    let packed = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    };
    let session = std::fs::read(AGENT).expect("a fixture");
    let path = scratch.path("twice.jsonl.gz");
    std::fs::write(&path, packed(&packed(&session))).expect("a file");
    for arguments in [
        &["select", &*path, ".cb"][..],
        &["import", &*path, "-o", "never.jsonl"],
    ] {
        fails(arguments, 5, "packed twice");
    }
}
