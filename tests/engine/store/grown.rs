//! A log that is imported while it grows: the store has what one import of the whole log gives, and
//! what was there keeps its ids.

use crate::support::random;
use pactql::internals::json::JsonValue;
use std::collections::BTreeMap;
use std::sync::Arc;

use pactql::logs::{ImportOptions, import, session_names};
use pactql::{Code, Context, Message, Session, Store};
use serde_json::{Value, json};

use super::place::{Folder, documents, sound};

/// The sessions of a log, named as the command line does it.
fn sessions(log: &[u8], name: &str, replayed: bool) -> Option<Vec<(String, Session)>> {
    let imported = import(log, &ImportOptions::default()).ok()?;
    let names = session_names(name, &imported.sessions);
    let read = |session: pactql::logs::ImportedSession| {
        let mut bytes = Vec::new();
        let recording = &session.recording;
        recording.write_jsonl(&mut bytes, false).expect("memory");
        if replayed {
            Session::replayed(Arc::new(session.recording))
        } else {
            Session::from_slice(&bytes).expect("a session")
        }
    };
    let sessions = imported.sessions.into_iter().map(read);
    Some(names.into_iter().zip(sessions).collect())
}

/// What a session says, without where it was forked: that is as of its import.
fn said(session: &Session) -> (Vec<Value>, Option<Value>) {
    let (committed, working) = documents(session).expect("documents");
    let parse = |document: &String| {
        let mut value: Value = serde_json::from_str(document).expect("JSON");
        if let Some(meta) = value["meta"].as_object_mut() {
            meta.remove("forked_at");
        }
        value
    };
    (
        committed.iter().map(parse).collect(),
        working.as_ref().map(parse),
    )
}

fn all(store: &Store) -> BTreeMap<String, (Vec<Value>, Option<Value>)> {
    let infos = store.sessions("").expect("a list");
    let read = |name: String| {
        let session = store.session(&name).expect("a session");
        (name, said(&session))
    };
    infos.into_iter().map(|info| read(info.name)).collect()
}

fn fresh(sessions: &[(String, Session)]) -> BTreeMap<String, (Vec<Value>, Option<Value>)> {
    sessions
        .iter()
        .map(|(name, session)| (name.clone(), said(session)))
        .collect()
}

#[test]
fn a_log_read_line_by_line_gives_what_the_whole_log_gives() {
    let fixtures = [
        "claude-code/synthetic-session.jsonl",
        "codex/synthetic-rollout.jsonl",
        "anthropic/synthetic-requests.jsonl",
        "openai-responses/synthetic-requests.jsonl",
        "sharegpt/synthetic-conversations.jsonl",
    ];
    for (fixture, replayed) in fixtures
        .iter()
        .flat_map(|fixture| [(fixture, false), (fixture, true)])
    {
        let log = std::fs::read(format!("tests/cases/logs/{fixture}")).expect("a fixture");
        let most = if random::few() { 12 } else { usize::MAX };
        let told = grows(fixture, &log, &cuts(&log, most), replayed);
        assert!(told > 0, "{fixture}");
    }
}

/// Where a log is cut: at the end of every line and inside of it, and of those at most this many.
fn cuts(log: &[u8], most: usize) -> Vec<usize> {
    let mut ends: Vec<usize> = Vec::new();
    for (at, byte) in log.iter().enumerate() {
        if *byte == b'\n' {
            // Also in the middle of a line, which waits for its rest.
            ends.push(at.saturating_sub(20));
            ends.push(at + 1);
        }
    }
    let step = ends.len().div_ceil(most).max(1);
    // An odd step takes both kinds in turn.
    let mut some: Vec<usize> = ends.iter().copied().step_by(step | 1).collect();
    some.push(log.len());
    some
}

/// Imports a log again at each cut, and compares the store with one import of what is there. Returns the
/// number of snapshots that were added.
fn grows(fixture: &str, log: &[u8], cuts: &[usize], replayed: bool) -> usize {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).expect("a store");
    let mut told = 0;
    for &end in cuts {
        let Some(sessions) = sessions(&log[..end], "log", replayed) else {
            continue;
        };
        let wanted = fresh(&sessions);
        if wanted.values().all(|(committed, _)| committed.is_empty()) {
            continue;
        }
        let done = store.import_log(&sessions, Some("log.jsonl"));
        let done = done.unwrap_or_else(|error| panic!("{fixture} to {end}: {error}"));
        told += done.snapshots;
        let found = all(&store);
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            wanted.keys().collect::<Vec<_>>(),
            "{fixture} to {end}: {done:?}"
        );
        for (name, wanted) in &wanted {
            assert!(found[name] == *wanted, "{fixture} to {end}: {name}");
        }
        let again = store
            .import_log(&sessions, Some("log.jsonl"))
            .expect("again");
        assert_eq!(again.same, sessions.len(), "{fixture} to {end}");
        assert_eq!((again.snapshots, again.grown, again.new), (0, 0, 0));
    }
    sound(&store).expect("a sound store");
    told
}

/// A reply of which more comes, in letters that a store spells otherwise than a log.
#[test]
fn a_reply_beyond_ascii_grows() {
    let log = [
        line("1", None, "user", "Grüße — los", 1),
        line("2", Some("1"), "assistant", "Ja — \u{1f600}", 2),
        line("3", Some("2"), "assistant", "«mehr»", 3).replace("msg_3", "msg_2"),
        line("4", Some("3"), "user", "да", 4),
    ];
    let log = log.concat();
    let told = grows(
        "a growing reply",
        log.as_bytes(),
        &cuts(log.as_bytes(), 99),
        true,
    );
    assert!(told > 0);
}

/// Every recorded log, as it grew. The logs are not part of the repository.
#[test]
fn recorded_logs_grow() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let mut logs = 0;
    for path in crate::real_data::logs() {
        let log = crate::real_data::contents(&path);
        let name = path.display().to_string();
        let most = match (random::few(), log.len() < 100_000) {
            (true, true) => 16,
            (true, false) => 2,
            (false, true) => 400,
            (false, false) => 12,
        };
        logs += usize::from(grows(&name, &log, &cuts(&log, most), true) > 0);
    }
    println!("{logs} recorded logs grew");
}

/// One line of Claude Code.
fn line(id: &str, parent: Option<&str>, role: &str, text: &str, at: usize) -> String {
    let content = match role {
        "assistant" => json!([{"type": "text", "text": text}]),
        _ => json!(text),
    };
    let mut message = json!({"role": role, "content": content});
    if role == "assistant" {
        message["id"] = json!(format!("msg_{id}"));
        message["model"] = json!("m");
    }
    let line = json!({"type": role, "uuid": id, "parentUuid": parent, "sessionId": "s",
        "isSidechain": false, "timestamp": format!("2026-03-02T09:00:{at:02}Z"), "message": message});
    format!("{line}\n")
}

#[test]
fn the_name_follows_the_newest_branch_and_the_old_path_becomes_a_fork() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).expect("a store");
    let mut log = String::new();
    let bring = |log: &str| {
        let sessions = sessions(log.as_bytes(), "log", true).expect("a log");
        store
            .import_log(&sessions, Some("log.jsonl"))
            .expect("imported")
    };
    let texts = |name: &str| {
        let session = store.session(name).expect("a session");
        let history = session.history();
        let newest = history.latest().expect("a snapshot");
        let replies = newest
            .nodes()
            .filter(|node| node.role() == Some("assistant"));
        let texts: Vec<String> = replies
            .map(|node| {
                node.field("content")
                    .map(JsonValue::canonical)
                    .unwrap_or_default()
                    .replace('"', "")
            })
            .collect();
        texts.join(" ")
    };
    log += &line("1", None, "user", "go", 1);
    log += &line("2", Some("1"), "assistant", "A", 2);
    log += &line("3", Some("2"), "user", "on", 3);
    log += &line("4", Some("3"), "assistant", "B", 4);
    assert_eq!(bring(&log).new, 1);
    assert_eq!(texts("log"), "A B");
    // Another branch from A.
    log += &line("5", Some("2"), "user", "another way", 5);
    log += &line("6", Some("5"), "assistant", "C", 6);
    let done = bring(&log);
    assert_eq!(done.renamed, [("log".to_owned(), "log~2".to_owned())]);
    assert_eq!((texts("log"), texts("log~2")), ("A C".into(), "A B".into()));
    // The first one goes on.
    log += &line("7", Some("4"), "user", "on", 7);
    log += &line("8", Some("7"), "assistant", "D", 8);
    let done = bring(&log);
    assert_eq!((done.new, done.grown, done.snapshots), (0, 1, 1));
    assert_eq!(
        (texts("log"), texts("log~2")),
        ("A B D".into(), "A C".into())
    );
    sound(&store).expect("a sound store");
}

#[test]
fn other_sessions_of_a_name_and_those_that_were_written_are_left_alone() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).expect("a store");
    let one = |text: &str| {
        let log = line("1", None, "user", "go", 1) + &line("2", Some("1"), "assistant", text, 2);
        sessions(log.as_bytes(), "log", false).expect("a log")
    };
    store
        .import_log(&one("A"), Some("log.jsonl"))
        .expect("imported");
    let error = store
        .import_log(&one("B"), Some("log.jsonl"))
        .expect_err("another");
    assert_eq!(error.code(), Code::SessionExists);
    // A shorter log takes nothing away.
    let longer = line("1", None, "user", "go", 1)
        + &line("2", Some("1"), "assistant", "A", 2)
        + &line("3", Some("2"), "user", "on", 3)
        + &line("4", Some("3"), "assistant", "B", 4);
    let longer = sessions(longer.as_bytes(), "log", true).expect("a log");
    assert_eq!(
        store
            .import_log(&longer, Some("log.jsonl"))
            .expect("more")
            .snapshots,
        1
    );
    let done = store
        .import_log(&one("A"), Some("log.jsonl"))
        .expect("less");
    assert_eq!(done.same, 1);
    assert_eq!(store.sessions("log").expect("a list")[0].snapshots, 2);
    // A context has gone on with it.
    let mut context: Context = store.write("log").expect("a context");
    context.append(Message::user("more")).expect("a message");
    context.commit().expect("a commit");
    drop(context);
    let error = store
        .import_log(&longer, Some("log.jsonl"))
        .expect_err("written");
    assert_eq!(error.code(), Code::SessionExists);
    sound(&store).expect("a sound store");
}
