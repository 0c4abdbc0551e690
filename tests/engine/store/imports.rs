//! Many sessions at once (STORE §3): what is written together, and what stays when one is refused.

use pactql::{Code, Context, Message, Session, Store};

use super::place::{Folder, documents, sound};

fn session() -> Session {
    let mut context = Context::new();
    context
        .append(Message::user("Where is it?"))
        .expect("a message");
    context.commit().expect("a commit");
    let mut bytes = Vec::new();
    pactql::context::write_context(&mut context, &mut bytes).expect("written");
    Session::from_slice(&bytes).expect("a session")
}

/// Names of three transactions; one of the second is there twice.
#[test]
fn what_comes_before_a_refused_session_stays() {
    let folder = Folder::quick();
    let path = folder.file("many.db");
    let store = Store::open(&path).expect("a store");
    let session = session();
    let named = |number: usize| format!("s{number:04}");
    for twice in [0, 1, 255, 256, 300, 511] {
        for info in store.sessions("").expect("a list") {
            store.delete(&info.name).expect("deleted");
        }
        let mut taken = 0;
        let names = (0..600).map(|number| {
            if number == twice + 1 {
                named(twice)
            } else {
                named(number)
            }
        });
        let names = names.inspect(|_| taken += 1);
        let stopped = store
            .import_all(names.map(|name| (name, &session, Some("here".to_owned()))))
            .expect_err("a name is taken");
        assert_eq!(stopped.error.code(), Code::SessionExists, "{twice}");
        assert_eq!(stopped.imported, twice + 1, "{twice}");
        // Not more are asked for than a transaction has.
        assert!(taken <= twice + 1 + 256, "{twice}: {taken}");
        let found = store.sessions("").expect("a list");
        let found: Vec<String> = found.into_iter().map(|info| info.name).collect();
        assert_eq!(found, (0..=twice).map(named).collect::<Vec<_>>());
    }
    sound(&store).expect("a sound store");
    let none: [(String, Session, Option<String>); 0] = [];
    assert_eq!(store.import_all(none).expect("nothing"), 0);
}

/// A session of this many snapshots with one turn each, of which one has a node with this id.
fn long(snapshots: usize, odd: Option<(usize, &str)>) -> Session {
    let (mut lines, mut turns) = (String::new(), Vec::new());
    for number in 1..=snapshots {
        let id = match odd {
            Some((at, id)) if at == number => id.to_owned(),
            _ => format!("t{number}"),
        };
        turns.push(serde_json::json!({"id": id, "nodeType": "mt", "created_at_ns": number, "content": number}));
        let seq = serde_json::json!({"id": "s", "nodeType": "^seq", "children": turns});
        let root = serde_json::json!({"id": "r", "children": [seq]});
        let document = serde_json::json!({"cycle": number, "root": root});
        lines.push_str(&document.to_string());
        lines.push('\n');
    }
    Session::from_slice(lines.as_bytes()).expect("a session")
}

/// One thread encodes many snapshots while another writes them.
#[test]
fn a_long_session_is_written_whole_or_not_at_all() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("long.db")).expect("a store");
    for snapshots in [31, 32, 33, 200] {
        let (name, session) = (format!("s{snapshots}"), long(snapshots, None));
        store.import(&name, &session, None).expect("imported");
        let there = store.session(&name).expect("the session");
        assert_eq!(documents(&there), documents(&session), "{snapshots}");
        // The database has no place for this id, wherever it is.
        for at in [1, 2, snapshots / 2, snapshots] {
            let refused = long(snapshots, Some((at, "a\0")));
            let error = store.import("refused", &refused, None).expect_err("U+0000");
            assert!(error.to_string().contains("U+0000"), "{error}");
            assert!(store.session("refused").is_err());
        }
    }
    sound(&store).expect("a sound store");
}

/// A copy of a session of another store has what its writer kept: the next one goes on as after the first.
#[test]
fn a_session_of_another_store_is_copied_with_what_was_kept() {
    let folder = Folder::quick();
    let (from, to) = (folder.file("from.db"), folder.file("to.db"));
    let from = Store::open(&from).expect("a store");
    let mut context = from.write("a").expect("a session");
    context
        .add("^sys", "block:text { id=rules, key=rules } \"Be brief.\"")
        .expect("a node");
    context.pin_as("rules", "#rules").expect("a reference");
    context
        .add("^ah", "block { id=gone, ttl=0 }")
        .expect("a node");
    context.commit().expect("a commit");
    context.commit().expect("a commit");
    drop(context);
    let to = Store::open(&to).expect("a store");
    let session = from.session("a").expect("the session");
    assert_eq!(
        to.import_all([("b".to_owned(), session, None)])
            .expect("it"),
        1
    );
    let json = |store: &Store, name: &str| {
        let kept = store.kept(name).expect("readable").expect("kept");
        serde_json::to_string(&kept).expect("JSON")
    };
    assert_eq!(json(&to, "b"), json(&from, "a"));
    let mut copied = to.write("b").expect("the copy");
    assert_eq!(
        copied.references().collect::<Vec<_>>(),
        [("rules", "rules")]
    );
    // The id of a node that is gone is not used again.
    let again = copied.add("^ah", "block { id=gone }").expect_err("in use");
    assert_eq!(again.code(), Code::DuplicateId);
    sound(&to).expect("a sound store");
}
