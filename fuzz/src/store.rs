//! A store, damaged: an answer or an error to everything, and a good store after a commit.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use pactql::{Context, Message, Session, Store};

use super::document::exported;
use super::patch::place;

/// Where the store is, and a good one.
static GOOD: LazyLock<(PathBuf, Vec<u8>)> = LazyLock::new(|| {
    let path = place().join("store.db");
    let store = Store::open(&path).expect("a store");
    let session =
        Session::from_slice(include_bytes!("../../fixtures/greenhouse.jsonl")).expect("a session");
    store.import("talk", &session, None).expect("an import");
    let mut context = store.write("own").expect("a session");
    for turn in 0..4 {
        context
            .append(Message::user(&format!("question {turn}")))
            .expect("a message");
        context
            .reply(Message::assistant("answer").call("c", "tool", "{\"n\":1.50}"))
            .expect("a reply");
        context.commit().expect("a commit");
    }
    context
        .add("^sys", "block:text { key=rules } \"Be brief.\"")
        .expect("a node");
    context.pin_as("rules", "#rules").expect("a reference");
    context
        .append(Message::user("unfinished"))
        .expect("a message");
    context.save().expect("a working state");
    drop((context, store));
    let connection = rusqlite::Connection::open(&path).expect("the store");
    connection
        .query_row("pragma journal_mode = delete", [], |_| Ok(()))
        .expect("one file");
    drop(connection);
    let bytes = fs::read(&path).expect("the store");
    (path, bytes)
});

/// Everything that a reader asks of a store.
pub fn ask(store: &Store) {
    for info in store.sessions("").unwrap_or_default() {
        let Ok(session) = store.session(&info.name) else {
            continue;
        };
        for selector in [
            "@t0 .cb",
            "@* .cb[content~'a.c']",
            "@t-2..@t0 .cb",
            "@t0 ^seq .mt:depth(1)",
            "#rules",
        ] {
            let _ = store.engine().select(&session, selector);
        }
        let history = session.history();
        if history.fetch_all().is_ok() {
            let _ = exported(&session);
        }
    }
    if let Ok(found) = store.select("@t0 .cb[role='user']") {
        found.into_iter().for_each(drop);
    }
    let _ = store.verify();
}

pub fn run(bytes: &[u8]) {
    let (path, good) = &*GOOD;
    let Some(file) = super::patch::database(good, bytes) else {
        return;
    };
    for ending in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", path.display()));
    }
    fs::write(path, file).expect("the file");
    let Ok(store) = Store::open(path) else {
        return;
    };
    ask(&store);
    for name in ["talk", "own"] {
        let builder = Context::builder();
        let Ok(mut context) = store.write_with(name, builder) else {
            continue;
        };
        let _ = context.append(Message::user("more"));
        let _ = context.remove("@t0 ^seq .cb:first");
        if context.commit().is_ok() {
            drop(context);
            // What is read now is what was committed.
            let _ = store
                .session(name)
                .map(|session| exported_if_whole(&session));
        }
    }
}

fn exported_if_whole(session: &Session) {
    if session.history().fetch_all().is_ok() {
        let _ = exported(session);
    }
}
