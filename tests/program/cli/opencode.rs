//! Sessions where opencode keeps them: a folder of files, and a database whose rows change in place.

use super::imports::follower;
use super::store::names;
use super::{Scratch, answer, pactql};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

/// The exports that both are made of: a session, and that of a subagent.
fn exports() -> [Value; 2] {
    ["export", "child"].map(|name| {
        let path = format!("tests/cases/logs/opencode/synthetic-{name}.json");
        serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
    })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn without(value: &Value, names: &[&str]) -> String {
    let mut value = value.clone();
    let members = value.as_object_mut().expect("an object");
    members.retain(|name, _| !names.contains(&&**name));
    value.to_string()
}

/// Writes the folder `storage`.
fn folder(root: &str, exports: &[Value]) {
    let put = |name: String, value: &Value| {
        let path = format!("{root}/storage/{name}.json");
        std::fs::create_dir_all(Path::new(&path).parent().expect("a folder")).expect("a folder");
        std::fs::write(path, value.to_string()).expect("a file");
    };
    for export in exports {
        let session = text(&export["info"]["id"]);
        put(format!("session/prj1/{session}"), &export["info"]);
        put(format!("session_diff/{session}"), &json!([]));
        for message in list(&export["messages"]) {
            let id = text(&message["info"]["id"]);
            put(format!("message/{session}/{id}"), &message["info"]);
            for part in list(&message["parts"]) {
                put(format!("part/{id}/{}", text(&part["id"])), part);
            }
        }
    }
    put(
        "project/prj1".to_owned(),
        &json!({"id": "prj1", "worktree": "/srv/site"}),
    );
}

/// Opens the database, which is made if it is missing, as opencode does.
fn database(path: &str) -> Connection {
    let database = Connection::open(path).expect("a database");
    let mode = database.pragma_update(None, "journal_mode", "wal");
    mode.expect("a log");
    database
        .execute_batch(
            "create table if not exists session (id text primary key, project_id text, parent_id text, slug text,
               directory text, title text, version text, share_url text, revert text, time_created integer,
               time_updated integer);
             create table if not exists message (id text primary key, session_id text, time_created integer,
               time_updated integer, data text);
             create table if not exists part (id text primary key, message_id text, session_id text,
               time_created integer, time_updated integer, data text);",
        )
        .expect("tables");
    database
}

/// Writes rows, in the place of those that are there.
fn write(database: &Connection, export: &Value) {
    let info = &export["info"];
    let session = text(&info["id"]);
    let revert = Some(&info["revert"]).filter(|revert| !revert.is_null());
    database
        .execute(
            "replace into session values (?1, 'prj1', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                session,
                info["parentID"].as_str(),
                info["slug"].as_str(),
                text(&info["directory"]),
                text(&info["title"]),
                text(&info["version"]),
                info["share"]["url"].as_str(),
                revert.map(Value::to_string),
                info["time"]["created"].as_i64(),
                info["time"]["updated"].as_i64(),
            ],
        )
        .expect("a session");
    for message in list(&export["messages"]) {
        let id = text(&message["info"]["id"]);
        let created = message["info"]["time"]["created"].as_i64();
        let data = without(&message["info"], &["id", "sessionID"]);
        let sql = "replace into message values (?1, ?2, ?3, ?3, ?4)";
        database
            .execute(sql, params![id, session, created, data])
            .expect("a message");
        for part in list(&message["parts"]) {
            let data = without(part, &["id", "sessionID", "messageID"]);
            let sql = "replace into part values (?1, ?2, ?3, ?4, ?4, ?5)";
            let row = params![text(&part["id"]), id, session, created, data];
            database.execute(sql, row).expect("a part");
        }
    }
}

fn texts(store: &str, name: &str) -> String {
    answer(&["export", &format!("{store}#{name}")])
}

#[test]
fn a_folder_and_a_database_make_the_sessions_of_the_exports() {
    let scratch = Scratch::new("opencode-places");
    let exports = exports();
    let (old, new) = (scratch.path("old"), scratch.path("new"));
    folder(&old, &exports);
    std::fs::create_dir_all(&new).expect("a folder");
    let file = format!("{new}/opencode.db");
    let open = database(&file);
    for export in &exports {
        write(&open, export);
    }
    let export = scratch.write("one.json", exports[0].to_string());
    let stores = ["a.db", "b.db", "c.db", "d.db"].map(|name| scratch.path(name));
    for (log, store) in [&export, &old, &new, &file].into_iter().zip(&stores) {
        let done = pactql(&["import", log, "-o", store]);
        assert_eq!(done.code, 0, "{log}: {}", done.err);
        assert!(!done.err.contains("skipped /"), "{}", done.err);
    }
    let of = |stem: &str| {
        let own = format!("{stem}/ses_synthetic1");
        [own.clone(), format!("{own}/ses_synthetic2")]
    };
    assert_eq!(names(&stores[0]), ["one"]);
    let wanted = texts(&stores[0], "one");
    for (store, stem) in stores[1..].iter().zip(["storage", "opencode", "opencode"]) {
        assert_eq!(names(store), of(stem));
        assert_eq!(texts(store, &of(stem)[0]), wanted, "{stem}");
    }
    // Half of it is in the write-ahead log, which was read, and nothing has changed.
    let log = std::fs::metadata(format!("{file}-wal"))
        .expect("a log")
        .len();
    assert!(log > 0);
    drop(open);
    let before = std::fs::read(&file).expect("a file");
    let done = pactql(&["import", &file, "-o", &stores[2]]);
    assert!(
        done.err.contains("0 sessions new, 0 grown, 2 as before"),
        "{}",
        done.err
    );
    assert_eq!(std::fs::read(&file).expect("a file"), before);
    let beside: Vec<_> = std::fs::read_dir(&new).expect("a folder").collect();
    assert_eq!(beside.len(), 1, "{beside:?}");
    // The database has what the folder had.
    std::fs::rename(&file, format!("{old}/opencode.db")).expect("it moves");
    let both = scratch.path("both.db");
    assert_eq!(pactql(&["import", &old, "-o", &both]).code, 0);
    assert_eq!(names(&both), of("opencode"));
    // It is not a store, but a log of two sessions.
    let file = format!("{old}/opencode.db");
    let shown = pactql(&["show", &file]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    for name in [
        "opencode/ses_synthetic1\n@t0",
        "opencode/ses_synthetic1/ses_synthetic2\n@t0",
    ] {
        assert!(shown.out.contains(name), "{name} in {}", shown.out);
    }
    // A file that is broken off costs what is in it.
    let texts_of = |message: &str| {
        let folder = format!("{old}/storage/part/{message}");
        let parts = std::fs::read_dir(folder).expect("a folder");
        let mut paths = parts.map(|part| part.expect("a part").path());
        let is_text = |path: &std::path::PathBuf| {
            std::fs::read_to_string(path).is_ok_and(|part| part.contains(r#""type":"text""#))
        };
        paths.find(is_text).expect("a text")
    };
    std::fs::write(texts_of("msg_11"), "{\"type\":\"te").expect("a file");
    // Half of a letter does not.
    let half = r#"{"id":"prt_1","type":"text","text":"One half \ud83d of it."}"#;
    std::fs::write(texts_of("msg_10"), half).expect("a file");
    let store = scratch.path("torn.db");
    let done = pactql(&["import", &format!("{old}/storage"), "-o", &store]);
    assert_eq!(
        (done.code, done.err.contains("malformed 1")),
        (0, true),
        "{}",
        done.err
    );
    assert_eq!(names(&store), of("storage"));
    let found = texts(&store, &of("storage")[0]);
    assert!(found.contains("One half") && !found.contains("The notes say milk"));
}

/// After each message, and while one is written, an import adds what is new; at the end it is what one import gives.
#[test]
fn a_database_that_grows_is_imported_again() {
    let scratch = Scratch::new("opencode-grown");
    let (file, store) = (scratch.path("opencode.db"), scratch.path("a.db"));
    let [export, child] = exports();
    let open = database(&file);
    let mut said = export.clone();
    said["messages"] = json!([]);
    said["info"]["title"] = json!("New session - 2026-03-02T09:00:00.000Z");
    said["info"]["revert"] = Value::Null;
    let import = |store: &str| {
        let done = pactql(&["import", &file, "-o", store]);
        assert_eq!(done.code, 0, "{}", done.err);
    };
    for message in list(&export["messages"]) {
        let mut young = message.clone();
        if text(&message["info"]["role"]) == "assistant" {
            // As it is while the model writes.
            let zero =
                json!({"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}});
            young["info"]["tokens"] = zero;
            young["info"]["finish"] = Value::Null;
            young["info"]["error"] = Value::Null;
            young["info"]["time"]["completed"] = Value::Null;
            let parts = young["parts"].as_array_mut().expect("parts");
            parts.retain(|part| part["type"] != "step-finish");
            for part in parts {
                if part["type"] == "tool" {
                    part["state"] = json!({"status": "pending", "input": {}, "raw": ""});
                } else if part["text"].is_string() {
                    part["text"] = json!("…");
                }
            }
            said["messages"].as_array_mut().expect("a list").push(young);
            write(&open, &said);
            import(&store);
            said["messages"].as_array_mut().expect("a list").pop();
        }
        said["messages"]
            .as_array_mut()
            .expect("a list")
            .push(message.clone());
        write(&open, &said);
        import(&store);
    }
    // It gets a title, a subagent, and its last messages are taken back.
    write(&open, &export);
    write(&open, &child);
    import(&store);
    let own = "opencode/ses_synthetic1";
    assert_eq!(
        names(&store),
        [own, "opencode/ses_synthetic1/ses_synthetic2"]
    );
    let whole = |name: &str| {
        let store = scratch.path(name);
        import(&store);
        texts(&store, own)
    };
    assert_eq!(texts(&store, own), whole("b.db"));
    // opencode deletes them with the next message.
    open.execute_batch(
        "update session set revert = null where parent_id is null;
         delete from message where id in ('msg_16', 'msg_17'); delete from part where message_id in ('msg_16', 'msg_17');",
    )
    .expect("it is deleted");
    import(&store);
    let text = |id: &str, text: &str| json!({"id": id, "type": "text", "text": text});
    let mut next = export;
    next["info"]["revert"] = Value::Null;
    let time = json!({"created": 1_772_442_050_000_i64, "completed": 1_772_442_051_000_i64});
    next["messages"] = json!([
        {"info": {"id": "msg_18", "role": "user", "time": time}, "parts": [text("prt_90", "Once more.")]},
        {"info": {"id": "msg_19", "role": "assistant", "time": time}, "parts": [text("prt_91", "Done.")]},
    ]);
    write(&open, &next);
    import(&store);
    assert_eq!(texts(&store, own), whole("c.db"));
    assert!(texts(&store, own).contains("Once more"));
    let damage: Value = serde_json::from_str(&answer(&["verify", "--json", &store])).expect("JSON");
    assert_eq!(damage["valid"], true);
}

#[test]
fn a_folder_and_a_database_are_followed() {
    let scratch = Scratch::new("opencode-followed");
    let exports = exports();
    let (old, file, store) = (
        scratch.path("old"),
        scratch.path("opencode.db"),
        scratch.path("a.db"),
    );
    let open = database(&file);
    let mut first = exports[1].clone();
    let last = first["messages"].as_array_mut().expect("a list").pop();
    write(&open, &first);
    folder(&old, &[first]);
    let mut follower = follower(&[&file, &old], &store);
    // The first look has no reply yet.
    let began = Instant::now();
    while pactql(&["sessions", &store]).out.lines().count() < 3 {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "nothing is followed"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut next = exports[1].clone();
    next["messages"] = json!([last]);
    write(&open, &next);
    folder(&old, &[next]);
    let lines = BufReader::new(follower.stderr.take().expect("a pipe")).lines();
    let mut said: Vec<String> = lines.take(2).map(|line| line.expect("UTF-8")).collect();
    said.sort();
    assert_eq!(
        said,
        ["opencode: 1 snapshot more", "storage: 1 snapshot more"]
    );
    follower.kill().expect("it runs");
    follower.wait().expect("it ends");
}
