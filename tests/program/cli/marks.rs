//! Marks of logs: a log that is as it was is not read again, and every change of it, of the store and of the options is
//! seen.
//!
//! Whether a log was read shows in the report: each test writes a note into the reports that the marks have, and only an
//! import that does not read the log says it.

use super::imports::{large, line, reply, said, user};
use super::store::names;
use super::{Scratch, answer, fails, pactql};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fs::{self, File};

const NOTE: &str = "said by the mark";

/// A log of two sessions of Claude Code's: the newest branch, and another one.
fn log(last: &str) -> String {
    line("1", None, &user("go"), &json!({}))
        + &line("2", Some("1"), &reply("m1", &said("A")), &json!({}))
        + &line("3", Some("2"), &user("on"), &json!({}))
        + &line("4", Some("3"), &reply("m2", &said("B")), &json!({}))
        + &line("5", Some("2"), &user("back"), &json!({}))
        + &line("6", Some("5"), &reply("m3", &said(last)), &json!({}))
}

/// Changes rows of sessions, and computes their sums again: what a mark says is tried, and no damage.
fn sql(store: &str, sql: &str) -> usize {
    let database = Connection::open(store).expect("a store");
    let changed = database.execute(sql, []).expect("a statement");
    let columns = "select session_id, name, created_at_ns, source, parent_id, parent_seq, meta, \
        (select max(seq) from snapshot n where n.session_id = s.session_id), \
        (select hex(hash) from snapshot n where n.session_id = s.session_id order by seq desc limit 1) from session s";
    let mut sessions = database.prepare(columns).expect("a statement");
    let mut rows = sessions.query([]).expect("rows");
    while let Some(row) = rows.next().expect("a row") {
        let mut hash = Sha256::new();
        for at in 1..=8 {
            let text = match row.get_ref(at).expect("a column") {
                ValueRef::Null => {
                    hash.update([0]);
                    continue;
                }
                ValueRef::Integer(number) => number.to_string(),
                value => value.as_str().expect("a text").to_owned(),
            };
            let text = if at == 8 { text.to_lowercase() } else { text };
            hash.update([1]);
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        }
        let sum = hash.finalize();
        let sum = i64::from_be_bytes(sum[..8].try_into().expect("eight bytes"));
        let session: i64 = row.get(0).expect("a number");
        let put = "update session set check_sum = ?2 where session_id = ?1";
        database.execute(put, [session, sum]).expect("a statement");
    }
    changed
}

fn marks(store: &str) -> Vec<Option<String>> {
    let database = Connection::open(store).expect("a store");
    let sql = "select json_extract(meta, '$.log') from session order by name";
    let mut marks = database.prepare(sql).expect("a statement");
    let marks = marks.query_map([], |row| row.get(0)).expect("rows");
    marks.map(|mark| mark.expect("a text")).collect()
}

/// Has every mark say the note.
fn note(store: &str) {
    let with_note = format!(
        "update session set meta = json_set(meta, '$.log.mark.report.notes', json_array('{NOTE}')) \
         where json_extract(meta, '$.log.mark.report') is not null"
    );
    assert!(sql(store, &with_note) > 0, "no mark in {store}");
}

/// Imports, and returns how often the note is said, with all that is said.
fn import(arguments: &[&str]) -> (usize, String) {
    let ran = pactql(&[&["import"], arguments].concat());
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
    (ran.err.matches(NOTE).count(), ran.err)
}

/// What happens to a log or its store between two imports, and whether the second one reads the log.
struct Case<'a> {
    what: &'a str,
    between: &'a dyn Fn(&str, &str),
    /// What the second import is given besides.
    arguments: &'a [&'a str],
    is_read: bool,
    /// What the second one says of the store.
    said: &'a str,
}

const AS_BEFORE: &str = "added 0 snapshots: 0 sessions new, 0 grown, 2 as before\n";

const SAME: Case<'_> = Case {
    what: "nothing happens",
    between: &|_, _| {},
    arguments: &[],
    is_read: false,
    said: AS_BEFORE,
};

const READ: Case<'_> = Case {
    is_read: true,
    ..SAME
};

fn in_store(command: &[&str], store: &str, session: &str, rest: &[&str]) {
    let session = format!("{store}#{session}");
    answer(&[command, &[&session], rest].concat());
}

fn log_cases() -> Vec<Case<'static>> {
    vec![
        SAME,
        Case {
            what: "the file is touched",
            between: &|log, _| {
                let file = File::options().append(true).open(log).expect("the log");
                file.set_modified(std::time::SystemTime::UNIX_EPOCH)
                    .expect("a time");
            },
            ..SAME
        },
        // No newest snapshot shows it.
        Case {
            what: "a byte of an old line changes, and the time of the file does not",
            between: &|path, _| {
                let open = || File::options().append(true).open(path).expect("the log");
                let time = open().metadata().and_then(|about| about.modified());
                let text = log("C").replacen("2026-03-02T09:00:00Z", "2026-03-02T08:00:00Z", 1);
                fs::write(path, text).expect("a file");
                open().set_modified(time.expect("a time")).expect("a time");
            },
            said: "",
            ..READ
        },
        Case {
            what: "a line is added",
            between: &|path, _| {
                let text = log("C") + &line("7", Some("6"), &user("and"), &json!({}));
                fs::write(path, text).expect("a file");
            },
            said: "added 0 snapshots: 0 sessions new, 1 grown, 1 as before\n",
            ..READ
        },
        Case {
            what: "part of a line is added",
            between: &|path, _| fs::write(path, log("C") + "{\"type\":\"us").expect("a file"),
            ..READ
        },
        Case {
            what: "the last line is taken away",
            between: &|path, _| {
                let text = log("C");
                let end = text.trim_end().rfind('\n').expect("lines");
                fs::write(path, &text[..=end]).expect("a file");
            },
            said: "",
            ..READ
        },
    ]
}

fn store_cases() -> Vec<Case<'static>> {
    vec![
        Case {
            what: "one of the sessions is deleted",
            between: &|_, store| in_store(&["store", "delete"], store, "log~2", &["--yes"]),
            said: "added 2 snapshots: 1 session new, 0 grown, 1 as before\n",
            ..READ
        },
        Case {
            what: "the session that has the report is deleted",
            between: &|_, store| in_store(&["store", "delete"], store, "log", &["--yes"]),
            said: "",
            ..READ
        },
        Case {
            what: "the sessions are pruned",
            between: &|_, store| {
                answer(&["store", "prune", store, "--keep", "1"]);
                assert_eq!(marks(store), [None, None]);
            },
            ..READ
        },
        Case {
            // It is read, and the report is that of the mark.
            what: "a session is renamed",
            between: &|_, store| in_store(&["store", "rename"], store, "log~2", &["other"]),
            said: "`log~2` keeps its name in the store, `other`\n",
            ..SAME
        },
        Case {
            what: "the mark is of an earlier state of the session",
            between: &|path, store| {
                let before = marks(store);
                let text = log("C") + &line("7", Some("6"), &user("and"), &json!({}));
                fs::write(path, text).expect("a file");
                import(&[path, "-o", store]);
                for (name, mark) in ["log", "log~2"].iter().zip(before) {
                    let mark = mark.expect("a mark");
                    let put = format!(
                        "update session set meta = json_set(meta, '$.log', json('{mark}')) where name = '{name}'"
                    );
                    assert_eq!(sql(store, &put), 1);
                }
                fs::write(path, log("C")).expect("a file");
            },
            said: "added 0 snapshots: 0 sessions new, 1 grown, 1 as before\n",
            ..READ
        },
        Case {
            what: "another program made the mark",
            between: &|_, store| {
                let put =
                    "update session set meta = json_set(meta, '$.log.mark.importer', '0.0.9 0')";
                assert_eq!(sql(store, put), 2);
            },
            ..READ
        },
        Case {
            what: "the mark is damaged",
            between: &|_, store| {
                let put = "update session set meta = json_set(meta, '$.log.mark.hash', 7)";
                assert_eq!(sql(store, put), 2);
            },
            ..READ
        },
        Case {
            what: "the store is copied",
            between: &|_, store| {
                let copy = format!("{store}.copy.db");
                answer(&["store", "backup", store, "-o", &copy]);
                fs::rename(copy, store).expect("a store");
            },
            ..SAME
        },
    ]
}

fn option_cases() -> Vec<Case<'static>> {
    vec![
        Case {
            what: "another option",
            arguments: &["--lenient"],
            ..READ
        },
        Case {
            what: "a named format",
            arguments: &["--from", "claude-code"],
            ..READ
        },
        Case {
            what: "another limit",
            arguments: &["--max-input", "1M"],
            ..READ
        },
        Case {
            what: "something is to be taken out",
            arguments: &["--redact", "nothing like it"],
            ..READ
        },
        Case {
            what: "what has a name there is left",
            arguments: &["--skip-existing"],
            said: "left 2 sessions as they are in the store\n",
            ..READ
        },
    ]
}

#[test]
fn a_log_is_read_again_where_anything_has_changed() {
    let cases = [log_cases(), store_cases(), option_cases()];
    for (number, case) in cases.into_iter().flatten().enumerate() {
        let what = case.what;
        let scratch = Scratch::new(&format!("marks-{number}"));
        let (path, store) = (scratch.path("log.jsonl"), scratch.path("a.db"));
        fs::write(&path, log("C")).expect("a file");
        let plain = [&*path, "-o", &store];
        import(&plain);
        answer(&["verify", "--json", &store]);
        note(&store);
        (case.between)(&path, &store);
        let again = [&plain[..], case.arguments].concat();
        let (notes, text) = import(&again);
        assert_eq!(notes, usize::from(!case.is_read), "{what}: {text}");
        assert!(text.contains(case.said), "{what}: {text}");
        let is_renamed = case.said.contains("keeps its name");
        let branch = if is_renamed { "other" } else { "log~2" };
        assert_eq!(names(&store), ["log", branch], "{what}");
        let marked = marks(&store).iter().all(Option::is_some);
        assert!(marked, "{what}");
        if case.arguments.iter().any(|word| word.len() > 10) {
            continue;
        }
        // Without a mark the next import says the same as with one.
        note(&store);
        let (notes, marked) = import(&again);
        assert_eq!(notes, 1, "{what}: {marked}");
        sql(
            &store,
            "update session set meta = json_remove(meta, '$.log')",
        );
        let (notes, read) = import(&again);
        assert_eq!(notes, 0, "{what}");
        let (notes, marked) = import(&again);
        assert_eq!((notes, marked), (0, read), "{what}");
    }
}

/// What an import must refuse, it refuses with a mark, too.
#[test]
fn a_session_that_a_context_has_written_is_not_the_log_s() {
    let scratch = Scratch::new("marks-written");
    let (path, store) = (scratch.path("log.jsonl"), scratch.path("a.db"));
    fs::write(&path, log("C")).expect("a file");
    import(&[&path, "-o", &store]);
    note(&store);
    in_store(
        &["edit", "add"],
        &store,
        "log",
        &["^ah", "block:text \"x\""],
    );
    fails(
        &["import", &path, "-o", &store],
        1,
        "has a session `log` already",
    );
}

/// The marks go with the text: a hash of the log would help to guess it. The import does what it does without them.
#[test]
fn an_erased_text_leaves_no_mark() {
    let scratch = Scratch::new("marks-erased");
    let (path, store) = (scratch.path("log.jsonl"), scratch.path("a.db"));
    fs::write(&path, log("C")).expect("a file");
    import(&[&path, "-o", &store]);
    note(&store);
    in_store(&["store", "erase"], &store, "log~2", &["cb:4-1"]);
    assert_eq!(marks(&store), [None, None]);
    let error = fails(
        &["import", &path, "-o", &store],
        1,
        "a text was erased from `log~2`, and the log still has it",
    );
    assert!(error.contains("`--redact PATTERN`"), "{error}");
}

/// The first two lines of a log, whose reply has this text.
fn short(text: &str) -> String {
    line("1", None, &user("go"), &json!({}))
        + &line("2", Some("1"), &reply("m1", &said(text)), &json!({}))
}

/// The log goes on; what was erased is in its first snapshot and in all others.
#[test]
fn a_log_whose_text_was_erased_stops_no_other() {
    let scratch = Scratch::new("marks-left-out");
    let (folder, store) = (scratch.path("logs"), scratch.path("a.db"));
    fs::create_dir(&folder).expect("a folder");
    let put = |name: &str, text: &str| fs::write(format!("{folder}/{name}"), text).expect("a file");
    put("a.jsonl", &short("hunter2"));
    import(&[&folder, "-o", &store]);
    in_store(&["store", "erase"], &store, "a", &["cb:2-1"]);
    put("b.jsonl", &short("B"));
    let more = line("3", Some("2"), &user("on"), &json!({}))
        + &line("4", Some("3"), &reply("m2", &said("more")), &json!({}));
    // Unchanged, grown, and with a branch that begins as the session did.
    let branch = line("5", Some("2"), &user("back"), &json!({}))
        + &line("6", Some("5"), &reply("m3", &said("C")), &json!({}));
    for log in ["", &more, &(more.clone() + &branch)] {
        put("a.jsonl", &(short("hunter2") + log));
        let ran = pactql(&["import", &folder, "-o", &store]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let said = format!(
            "left out {folder}/a.jsonl: a text was erased from `a`, and the log still has it; to go on"
        );
        assert!(ran.err.contains(&said), "{}", ran.err);
        assert!(!ran.err.contains("imported 2 sessions"), "{}", ran.err);
        assert_eq!(names(&store), ["a", "b"]);
        let all = answer(&["export", &format!("{store}#a")]);
        assert!(all.contains("[erased]") && !all.contains("hunter2"));
    }
    assert!(
        !fs::read(&store)
            .expect("a store")
            .windows(7)
            .any(|part| part == b"hunter2")
    );
    let ran = pactql(&["import", &folder, "-o", &store, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(report["refused"][0]["file"], format!("{folder}/a.jsonl"));
    assert_eq!(report["store"]["same"], 1);
    // As it is alone, and where everything is to be imported or nothing.
    let log = format!("{folder}/a.jsonl");
    fails(&["import", &log, "-o", &store], 1, "E_SESSION_EXISTS");
    fails(
        &["import", &folder, "-o", &store, "--strict"],
        1,
        "E_SESSION_EXISTS",
    );
}

/// The note of the erasure goes with the first snapshots; the log still has the text.
#[test]
fn a_pruned_session_keeps_what_was_erased() {
    let scratch = Scratch::new("marks-pruned");
    let (path, store) = (scratch.path("a.jsonl"), scratch.path("a.db"));
    let grown = short("hunter2")
        + &line("3", Some("2"), &user("on"), &json!({}))
        + &line("4", Some("3"), &reply("m2", &said("more")), &json!({}));
    fs::write(&path, grown).expect("a file");
    import(&[&path, "-o", &store]);
    in_store(&["store", "erase"], &store, "a", &["cb:2-1"]);
    let fork = format!("{store}#fork");
    in_store(&["store", "prune"], &store, "a", &["--keep", "1"]);
    let told = "a text was erased from `a`, and the log still has it";
    fails(&["import", &path, "-o", &store], 1, told);
    // Nor under another name, where its own is free.
    in_store(&["store", "rename"], &store, "a", &["b"]);
    let told = "a text was erased from `b`, and the log still has it";
    fails(&["import", &path, "-o", &store], 1, told);
    let skipped = ["import", &path, "-o", &store, "--skip-existing"];
    fails(&skipped, 1, told);
    assert_eq!(marks(&store), [None]);
    answer(&["verify", &store]);
    // The list goes with a fork and stays with a later prune.
    in_store(&["edit", "fork"], &store, "b", &["@c2", &fork]);
    in_store(&["store", "prune"], &store, "b", &["--keep", "1"]);
    let database = Connection::open(&store).expect("a store");
    let mut sessions = database
        .prepare("select meta from session order by name")
        .expect("a statement");
    let sessions = sessions.query_map([], |row| row.get(0)).expect("rows");
    let sessions: Vec<String> = sessions.map(|meta| meta.expect("a text")).collect();
    let list = r#""erased":["cb:2-1"]"#;
    assert!(sessions.len() == 2 && sessions.iter().all(|meta| meta.contains(list)));
}

/// What was erased is only in a snapshot that was pruned: the session goes on with its log, without a hash of it.
#[test]
fn a_pruned_session_gets_no_mark_after_an_erasure() {
    let scratch = Scratch::new("marks-pruned-steps");
    let (path, store) = (scratch.path("a.json"), scratch.path("a.db"));
    let user = |text: &str| json!({"role": "user", "content": text});
    let ok = json!({"role": "assistant", "content": "ok"});
    let first = [user("hunter2"), ok.clone(), user("go on")];
    let second = [user("B"), ok];
    let log = json!([{"input": first}, {"input": second}]);
    fs::write(&path, log.to_string()).expect("a file");
    let again = [&path, "--steps", "/*/input", "-o", &store];
    import(&again);
    in_store(&["store", "erase"], &store, "a", &["cb:3-1"]);
    in_store(&["store", "prune"], &store, "a", &["--keep", "1"]);
    let (_, report) = import(&again);
    assert!(report.contains("1 as before"), "{report}");
    assert_eq!(marks(&store), [None]);
}

#[test]
fn skip_existing_brings_no_erased_text_back() {
    let scratch = Scratch::new("marks-skip");
    let (path, store) = (scratch.path("a.jsonl"), scratch.path("a.db"));
    let more = line("3", Some("2"), &user("on"), &json!({}))
        + &line("4", Some("3"), &reply("m2", &said("more")), &json!({}));
    fs::write(&path, short("hunter2") + &more).expect("a file");
    import(&[&path, "-o", &store]);
    in_store(&["store", "erase"], &store, "a", &["cb:2-1"]);
    // Another branch that begins as the session did.
    let branch = line("5", Some("2"), &user("back"), &json!({}))
        + &line("6", Some("5"), &reply("m3", &said("C")), &json!({}));
    fs::write(&path, short("hunter2") + &more + &branch).expect("a file");
    let skipped = ["import", &path, "-o", &store, "--skip-existing"];
    let told = "a text was erased from `a`, and the log still has it";
    fails(&skipped, 1, told);
    // The session has another name; what comes of its log has its own.
    fs::write(&path, short("hunter2") + &more).expect("a file");
    in_store(&["store", "rename"], &store, "a", &["b"]);
    let told = "a text was erased from `b`, and the log still has it";
    fails(&skipped, 1, told);
    // Beside another log it is left out.
    let other = scratch.path("other.jsonl");
    fs::write(&other, short("B")).expect("a file");
    let ran = pactql(&["import", &path, &other, "-o", &store, "--skip-existing"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains(&format!("left out {path}: {told}")),
        "{}",
        ran.err
    );
    assert_eq!(names(&store), ["b", "other"]);
}

/// Without an erasure a branch that is new comes beside the session that stays.
#[test]
fn skip_existing_takes_a_new_branch() {
    let scratch = Scratch::new("marks-branch");
    let (path, store) = (scratch.path("log.jsonl"), scratch.path("a.db"));
    fs::write(&path, short("A")).expect("a file");
    import(&[&path, "-o", &store]);
    fs::write(&path, log("C")).expect("a file");
    import(&[&path, "-o", &store, "--skip-existing"]);
    assert_eq!(names(&store), ["log", "log~2"]);
}

#[test]
fn a_log_is_known_by_any_spelling_of_its_path() {
    let scratch = Scratch::new("marks-spelled");
    let (folder, store) = (scratch.path("logs"), scratch.path("a.db"));
    fs::create_dir(&folder).expect("a folder");
    fs::write(format!("{folder}/a.jsonl"), short("hunter2")).expect("a file");
    let path = format!("{folder}/a.jsonl");
    import(&[&path, "-o", &store]);
    in_store(&["store", "erase"], &store, "a", &["cb:2-1"]);
    in_store(&["store", "rename"], &store, "a", &["b"]);
    let told = "a text was erased from `b`, and the log still has it";
    for spelled in [
        format!("{folder}/./a.jsonl"),
        format!("{folder}/../logs//a.jsonl"),
    ] {
        fails(&["import", &spelled, "-o", &store], 1, told);
        fails(
            &["import", &spelled, "-o", &store, "--skip-existing"],
            1,
            told,
        );
    }
    // What is shown is as it was written.
    let listed = answer(&["sessions", &store, "--json"]);
    assert!(listed.contains(&format!("{folder}/a.jsonl")), "{listed}");
}

#[test]
fn each_log_is_named_if_none_is_taken() {
    let scratch = Scratch::new("marks-none");
    let (folder, store) = (scratch.path("logs"), scratch.path("a.db"));
    fs::create_dir(&folder).expect("a folder");
    for name in ["a", "b"] {
        let path = format!("{folder}/{name}.jsonl");
        fs::write(&path, short("hunter2")).expect("a file");
        import(&[&path, "-o", &store]);
        in_store(&["store", "erase"], &store, name, &["cb:2-1"]);
    }
    let error = fails(&["import", &folder, "-o", &store], 1, "E_SESSION_EXISTS");
    let ran = pactql(&["import", &folder, "-o", &store, "--json"]);
    assert_eq!(ran.code, 1);
    let said = if ran.out.is_empty() {
        &ran.err
    } else {
        &ran.out
    };
    let json: serde_json::Value = serde_json::from_str(said).expect("JSON");
    assert_eq!(json["error"]["code"], "E_SESSION_EXISTS");
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let file = format!("{folder}/{name}.jsonl");
        let why = format!("a text was erased from `{name}`, and the log still has it; ");
        assert!(error.contains(&format!("  {file}: {why}")), "{error}");
        let fault = &json["error"]["faults"][at];
        assert_eq!(fault["file"], file);
        assert!(fault["message"].as_str().expect("a text").starts_with(&why));
    }
}

/// A chosen name may be that of another log.
#[test]
fn a_log_whose_name_is_taken_stops_no_other() {
    let scratch = Scratch::new("marks-taken");
    let (folder, store) = (scratch.path("logs"), scratch.path("a.db"));
    fs::create_dir(&folder).expect("a folder");
    let put = |name: &str| {
        let path = format!("{folder}/{name}.jsonl");
        fs::write(&path, short(name)).expect("a file");
        path
    };
    let first = put("a");
    import(&[&first, "-o", &store, "--name", "b"]);
    put("b");
    put("c");
    let ran = pactql(&["import", &folder, "-o", &store]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let rename =
        format!("`pactql store rename {store}#b NAME` frees the name; then import it again");
    let said = format!(
        "left out {folder}/b.jsonl: the store {store} has a session `b` already; {rename}\n"
    );
    assert!(ran.err.contains(&said), "{}", ran.err);
    assert_eq!(names(&store), ["b", "c"]);
    in_store(&["store", "rename"], &store, "b", &["other"]);
    import(&[&folder, "-o", &store]);
    assert_eq!(names(&store), ["b", "c", "other"]);
}

#[test]
fn a_log_gets_the_name_that_is_given() {
    let scratch = Scratch::new("marks-name");
    let (path, store) = (scratch.path("log.jsonl"), scratch.path("a.db"));
    fs::write(
        &path,
        log("C").lines().take(2).collect::<Vec<_>>().join("\n"),
    )
    .expect("a file");
    import(&[&path, "-o", &store]);
    for (name, notes) in [("other", 1), ("other", 1), ("log", 1)] {
        note(&store);
        let (found, text) = import(&[&path, "-o", &store, "--name", name]);
        // A name that it does not have has it read, and the report is that of the mark.
        assert_eq!(found, notes, "{name}: {text}");
        assert_eq!(names(&store), [name], "{text}");
    }
    // No import changes a name that was given.
    for store in [&store, &scratch.path("b.db")] {
        import(&[&path, "-o", store, "--name", "other"]);
        import(&[&path, "-o", store]);
        assert_eq!(names(store), ["other"]);
    }
}

/// What is taken out is in no mark: a short one could be guessed from a hash of the log.
#[test]
fn a_log_of_which_something_is_taken_out_gets_no_mark() {
    let scratch = Scratch::new("marks-redacted");
    let (path, store) = (scratch.path("log.jsonl"), scratch.path("a.db"));
    fs::write(&path, log("C")).expect("a file");
    for _ in 0..2 {
        import(&[&path, "-o", &store, "--redact", "on"]);
        assert_eq!(marks(&store), [None, None]);
    }
}

/// Each file of a folder has its own mark.
#[test]
fn of_a_folder_only_what_has_changed_is_read() {
    let scratch = Scratch::new("marks-folder");
    let (folder, store) = (scratch.path("logs"), scratch.path("a.db"));
    fs::create_dir_all(format!("{folder}/s/subagents")).expect("a folder");
    let put = |name: &str, text: &str| fs::write(format!("{folder}/{name}"), text).expect("a file");
    let side = json!({"isSidechain": true, "agentId": "a1"});
    let agent = line("a1", None, &user("Check."), &side)
        + &line("a2", Some("a1"), &reply("m9", &said("Good.")), &side);
    let more = agent.clone() + &line("a3", Some("a2"), &user("And?"), &side);
    let other = agent.replace("a1", "b1").replace("a2", "b2");
    put("s.jsonl", &log("C"));
    put("t.jsonl", &log("C"));
    put("s/subagents/agent-a1.jsonl", &agent);
    import(&[&folder, "-o", &store]);
    let count = names(&store).len();
    let steps: [(&str, &dyn Fn(), usize, usize); 5] = [
        ("nothing", &|| {}, 3, 0),
        (
            "a subagent goes on",
            &|| put("s/subagents/agent-a1.jsonl", &more),
            2,
            0,
        ),
        (
            "a new subagent",
            &|| put("s/subagents/agent-b1.jsonl", &other),
            3,
            1,
        ),
        ("a new log", &|| put("u.jsonl", &log("E")), 4, 3),
        (
            "one is gone",
            &|| fs::remove_file(format!("{folder}/t.jsonl")).expect("a file"),
            4,
            3,
        ),
    ];
    for (what, change, notes, more) in steps {
        note(&store);
        change();
        let (found, text) = import(&[&folder, "-o", &store]);
        // Equal notes are said once.
        assert_eq!(found, usize::from(notes > 0), "{what}: {text}");
        assert_eq!(names(&store).len(), count + more, "{what}: {text}");
    }
}

#[test]
fn packed_and_large_logs_have_marks() {
    let scratch = Scratch::new("marks-packed");
    let store = scratch.path("a.db");
    let packed = |text: &str| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, text.as_bytes()).expect("memory");
        packer.finish().expect("memory")
    };
    let large = large(20).into_bytes();
    assert!(large.len() > 8 << 20);
    let mut changed = large.clone();
    let at = changed.len() / 2;
    changed[at] = if changed[at] == b' ' { b'_' } else { b' ' };
    let logs = [
        ("packed.jsonl.gz", packed(&log("C")), packed(&log("D"))),
        ("large.jsonl", large, changed),
    ];
    for (name, before, after) in logs {
        let path = scratch.write(name, before);
        import(&[&path, "-o", &store]);
        note(&store);
        assert_eq!(import(&[&path, "-o", &store]).0, 1, "{name}");
        note(&store);
        scratch.write(name, after);
        let ran = pactql(&["import", &path, "-o", &store]);
        assert!(!ran.err.contains(NOTE), "{name}: {}", ran.err);
    }
}

/// Of logs that are too large to stay in memory together, one is read once more when it is written.
#[test]
fn logs_are_the_same_together_and_alone() {
    let scratch = Scratch::new("marks-together");
    let (folder, out) = (scratch.path("logs"), scratch.path("out/"));
    let (together, alone) = (scratch.path("a.db"), scratch.path("b.db"));
    fs::create_dir_all(&folder).expect("a folder");
    let logs = [("a", large(9)), ("b", large(10)), ("c", log("C"))];
    for (name, text) in logs {
        assert!(text.len() < 8 << 20, "{name} is read line by line");
        let path = format!("{folder}/{name}.jsonl");
        fs::write(&path, text).expect("a file");
        import(&[&path, "-o", &alone]);
    }
    let (_, said) = import(&[&folder, "-o", &together]);
    assert!(said.starts_with("imported 4 sessions, "), "{said}");
    assert_eq!(names(&together), names(&alone));
    assert_eq!(marks(&together), marks(&alone));
    note(&together);
    let (notes, said) = import(&[&folder, "-o", &together]);
    assert_eq!(notes, 1, "{said}");
    assert!(said.contains(" 0 grown, 4 as before\n"), "{said}");
    import(&[&folder, "-o", &out]);
    // The first stays in memory, the second is read again.
    let written = fs::read_to_string(format!("{out}b.jsonl")).expect("a file");
    assert_eq!(written, answer(&["import", &format!("{folder}/b.jsonl")]));
}

/// A branch that has not what was erased comes into the store, without the title that quotes it.
#[test]
fn a_new_branch_of_a_log_with_an_erasure_has_no_title() {
    let scratch = Scratch::new("marks-branch-title");
    let (path, store) = (scratch.path("a.jsonl"), scratch.path("a.db"));
    let title = json!({"type": "custom-title", "customTitle": "about hunter2", "sessionId": "s"});
    let summary = json!({"isCompactSummary": true, "logicalParentUuid": "4"});
    let long = short("A")
        + &line("3", Some("2"), &user("on"), &json!({}))
        + &line("4", Some("3"), &reply("m2", &said("hunter2")), &json!({}))
        + &line("5", None, &user("what was said"), &summary)
        + &line("6", Some("5"), &reply("m3", &said("on it")), &json!({}));
    let first = format!("{title}\n{long}");
    fs::write(&path, &first).expect("a file");
    import(&[&path, "-o", &store]);
    in_store(&["store", "erase"], &store, "a", &["cb:4-1"]);
    let branch = line("7", Some("1"), &reply("m4", &said("B")), &json!({}));
    let all = first + &branch;
    fs::write(&path, &all).expect("a file");
    import(&[&path, "-o", &store]);
    assert_eq!(names(&store).len(), 2);
    let kept = fs::read(&store).expect("a store");
    assert!(!kept.windows(7).any(|part| part == b"hunter2"));
    answer(&["verify", &store]);
    // Nor with what the branch gets later.
    fs::write(&path, all + &line("8", Some("7"), &user("C"), &json!({}))).expect("a file");
    import(&[&path, "-o", &store]);
    let kept = fs::read(&store).expect("a store");
    assert!(!kept.windows(7).any(|part| part == b"hunter2"));
    answer(&["verify", &store]);
}

/// A copy of a store knows what was erased, however it is made.
#[test]
fn a_copy_knows_what_was_erased() {
    let scratch = Scratch::new("marks-copies");
    let (path, store) = (scratch.path("a.jsonl"), scratch.path("a.db"));
    fs::write(&path, short("hunter2")).expect("a file");
    import(&[&path, "-o", &store]);
    in_store(&["store", "erase"], &store, "a", &["cb:2-1"]);
    let [copy, again, salvaged, backup] =
        ["copy.db", "again.db", "salvaged.db", "backup.db"].map(|name| scratch.path(name));
    answer(&["import", &store, "-o", &copy]);
    answer(&["import", &format!("{copy}#a"), "-o", &again]);
    answer(&["store", "salvage", &store, "-o", &salvaged]);
    answer(&["store", "backup", &store, "-o", &backup]);
    for copy in [copy, again, salvaged, backup] {
        answer(&["verify", &copy]);
        let told = "a text was erased from `a`, and the log still has it";
        fails(&["import", &path, "-o", &copy], 1, told);
        let renamed = ["import", &path, "-o", &copy, "--name", "other"];
        fails(&renamed, 1, told);
        assert_eq!(marks(&copy), [None]);
    }
}
