//! A text that is erased, and one that goes with its session or its snapshots, is nowhere in the files
//! (STORE §3).

use pactql::logs::{ImportOptions, import};
use pactql::{Code, Engine, Message, NewNode, Provider, Session, Store, store::Retention};

use super::place::{Folder, documents, sound};

const SECRET: &str = "Xq7-secret-of-the-customer";

/// Which files of a store have the text.
fn files_with(path: &str, text: &str) -> Vec<String> {
    let has = |end: &&str| {
        let bytes = std::fs::read(format!("{path}{end}")).unwrap_or_default();
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    let ends = ["", "-wal", "-shm", "-journal"];
    ends.iter()
        .filter(|end| has(end))
        .map(|end| (*end).to_owned())
        .collect()
}

/// A store with a session in whose second and third snapshots the text is, and in a request if it was
/// sent; the id of the block.
fn with_secret(path: &str, sent: bool) -> (Store, String) {
    let store = Store::open(path).unwrap();
    let mut context = store.write("a").unwrap();
    context.append(Message::user("Hello")).unwrap();
    context.commit().unwrap();
    let node = format!(
        r#"{{"role":"user","content":{{"card":"{SECRET}"}},"data_card":["{SECRET}"],"data_x":"{SECRET}"}}"#
    );
    let id = context.add("^ah", NewNode::json(&node).unwrap()).unwrap();
    if sent {
        context.render(Provider::OpenAi).unwrap();
    }
    context.reply(Message::assistant("Thank you.")).unwrap();
    context.commit().unwrap();
    context.append(Message::user("And now?")).unwrap();
    context.commit().unwrap();
    context.append(Message::user("unfinished")).unwrap();
    context.save().unwrap();
    drop(context);
    assert!(!files_with(path, SECRET).is_empty());
    (store, id)
}

#[test]
fn an_erased_text_is_nowhere() {
    let folder = Folder::new();
    let path = folder.file("x.db");
    let (store, id) = with_secret(&path, true);
    let before = documents(&store.session("a").unwrap()).unwrap();
    store.fork("a", "@t0", "fork").unwrap();
    assert_eq!(store.erase("a", [&*id]).unwrap(), ["fork"]);
    assert_eq!(sound(&store), Ok(()));
    assert_eq!(store.erase("fork", [&*id]).unwrap(), [""; 0]);
    assert_eq!(sound(&store), Ok(()));
    assert_eq!(files_with(&path, SECRET), [""; 0]);
    for name in ["a", "fork"] {
        let (committed, _) = documents(&store.session(name).unwrap()).unwrap();
        assert_eq!(
            committed[0], before.0[0],
            "before the text nothing has changed"
        );
        for document in &committed[1..] {
            assert!(document.contains("[erased]") && !document.contains(SECRET));
        }
    }
    let connection = rusqlite::Connection::open(&path).unwrap();
    let notes =
        "select seq || ' ' || note from snapshot where note is not null order by session_id, seq";
    let mut statement = connection.prepare(notes).unwrap();
    let rows = statement
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap();
    let notes: Vec<String> = rows.map(Result::unwrap).collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    for note in notes {
        assert!(
            note.starts_with("2 [{\"erased\":[") && note.contains(&id),
            "{note}"
        );
        assert!(note.contains("\"hash_before\":\""), "{note}");
    }
    // Its writer goes on.
    let mut context = store.write("a").unwrap();
    assert_eq!(context.select("^ah .cb").unwrap().count(), 1);
    context.commit().unwrap();
    assert_eq!(sound(&store), Ok(()));
    let unknown = store.erase("a", ["nobody"]).unwrap_err();
    assert_ne!(unknown.code(), Code::SessionNotFound);
}

/// The title of an imported session is the first text of its user.
#[test]
fn an_erased_text_is_not_the_title() {
    let folder = Folder::new();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let log = format!(
        r#"[{{"role":"user","content":"{SECRET}"}},{{"role":"assistant","content":"Yes."}}]"#
    );
    let log = import(log.as_bytes(), &ImportOptions::default()).unwrap();
    let session = log.sessions[0].session().unwrap();
    store.import("a", &session, None).unwrap();
    assert!(!files_with(&path, SECRET).is_empty());
    let user = Engine::new().rows(&session, "@* .cb[role='user']").unwrap();
    store.erase("a", user.ids()).unwrap();
    assert_eq!(sound(&store), Ok(()));
    assert_eq!(files_with(&path, SECRET), [""; 0]);
}

/// However a session spells its title, and in every snapshot that its log adds later.
#[test]
fn titles_do_not_come_back() {
    let folder = Folder::new();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let spaced = format!(
        r#"{{"cycle": 1, "meta": {{"\u0074itle": "{SECRET}", "n": 1, "session": {{"title" : "{SECRET}"}}}}, "root": {{"id": "r", "nodeType": "root", "children": [{{"id": "s", "nodeType": "seq", "children": [{{"id": "t", "nodeType": "mt", "children": [{{"id": "c", "nodeType": "cb", "content": "x"}}]}}]}}]}}}}"#
    );
    let session = Session::from_slice(spaced.as_bytes()).unwrap();
    store.import("spaced", &session, None).unwrap();
    store.erase("spaced", ["c"]).unwrap();
    assert_eq!(sound(&store), Ok(()));
    assert_eq!(files_with(&path, SECRET), [""; 0]);
    let kept = documents(&store.session("spaced").unwrap()).unwrap();
    assert!(kept.0[0].contains("\"n\":1"), "{:?}", kept.0);

    // A log whose title has the text that only its first snapshot has.
    let document = |cycle: i64, text: &str| {
        format!(
            r#"{{"cycle":{cycle},"meta":{{"title":"{SECRET}"}},"root":{{"id":"r","nodeType":"root","children":[{{"id":"s","nodeType":"seq","children":[{{"id":"t{cycle}","nodeType":"mt","children":[{{"id":"c{cycle}","nodeType":"cb","content":"{text}"}}]}}]}}]}}}}
"#
        )
    };
    let mut log = document(1, SECRET) + &document(2, "two");
    let bring = |log: &str| {
        let session = Session::from_slice(log.as_bytes()).unwrap();
        let done = store.import_log(&[("log".to_owned(), session)], Some("log.jsonl"));
        done.unwrap()
    };
    bring(&log);
    store.erase("log", ["c1"]).unwrap();
    assert_eq!(bring(&log).same, 1);
    log += &document(3, "three");
    let done = bring(&log);
    assert_eq!((done.grown, done.snapshots), (1, 1));
    assert_eq!(sound(&store), Ok(()));
    assert_eq!(files_with(&path, SECRET), [""; 0]);
}

#[test]
fn a_text_goes_with_its_session() {
    let folder = Folder::new();
    let path = folder.file("x.db");
    let (store, _) = with_secret(&path, true);
    store.delete("a").unwrap();
    assert_eq!(sound(&store), Ok(()));
    // Until then it may be in the log of recent commits.
    drop(store);
    assert_eq!(files_with(&path, SECRET), [""; 0]);
}

#[test]
fn a_text_goes_with_its_snapshots() {
    let folder = Folder::new();
    let path = folder.file("x.db");
    let (store, id) = with_secret(&path, true);
    let mut context = store.write("a").unwrap();
    context
        .compact(&format!("[id='{id}']"), NewNode::text("a summary"))
        .unwrap();
    context.commit().unwrap();
    context.commit().unwrap();
    drop(context);
    store.prune(&Retention::default().keep(1)).unwrap();
    let (committed, _) = documents(&store.session("a").unwrap()).unwrap();
    assert!(!committed.concat().contains(SECRET));
    assert_eq!(sound(&store), Ok(()));
    drop(store);
    assert_eq!(files_with(&path, SECRET), [""; 0]);
}

/// What sessions share goes with the last of them: a rehearsal counts it once, as the prune does.
#[test]
fn a_rehearsal_counts_what_forks_share() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("x.db")).unwrap();
    let mut context = store.write("a").unwrap();
    context
        .add("^ah", "block:text {ttl=1} 'for one cycle'")
        .unwrap();
    for text in ["one", "two", "three"] {
        context.append(Message::user(text)).unwrap();
        context.commit().unwrap();
    }
    drop(context);
    store.fork("a", "@t0", "b").unwrap();
    let retention = Retention::default().keep(1);
    let counted = store.prune(&retention.clone().dry_run()).unwrap();
    let pruned = store.prune(&retention).unwrap();
    assert_eq!(counted, pruned);
    assert_eq!((pruned.sessions.len(), pruned.bodies), (2, 1), "{pruned:?}");
    assert!(sound(&store).is_ok());
}

/// SQLite moves rows from one page to another, and leaves copies in the space that the first one does not use.
#[test]
fn a_deleted_text_is_in_no_page() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let mut random: u64 = 1;
    let mut node = |session: usize, number: usize| {
        random = (random * 1_103_515_245 + 12_345) & 0x7FFF_FFFF;
        let letter = "abcdefgh".as_bytes()[(session + number) % 8];
        let length = 20 + usize::try_from(random >> 16).unwrap() % 880;
        let text = char::from(letter).to_string().repeat(length);
        let text = format!("secret-{session:03}-{number} {text}");
        let start = &text[..text.len().min(150)];
        format!(
            r#"{{"id":"t{number}","nodeType":"mt","children":[{{"id":"c{number}","nodeType":"cb","content":"{text}","data_x":"{start}"}}]}}"#
        )
    };
    let sessions: Vec<(String, Session, Option<String>)> = (0..60)
        .map(|session| {
            let turns = (0..6).map(|number| node(session, number));
            let turns = turns.collect::<Vec<_>>().join(",");
            let line = format!(
                r#"{{"cycle":1,"root":{{"id":"r","nodeType":"root","children":[{{"id":"s","nodeType":"seq","children":[{turns}]}}]}}}}"#
            );
            let read = Session::from_slice(line.as_bytes()).unwrap();
            (format!("s{session:03}"), read, None)
        })
        .collect();
    store.import_all(sessions).unwrap();
    for session in 0..20 {
        store.delete(&format!("s{session:03}")).unwrap();
        assert!(!store.has_removed_text());
        let bytes = std::fs::read(&path).unwrap();
        let found = memchr::memmem::find_iter(&bytes, "secret-");
        let left: Vec<usize> = found
            .map(|at| String::from_utf8_lossy(&bytes[at + 7..at + 10]).into_owned())
            .filter_map(|number| number.parse().ok())
            .filter(|number| *number <= session)
            .collect();
        assert_eq!(left, [0; 0], "after session {session}");
    }
    assert_eq!(sound(&store), Ok(()));
}

/// A document may have the texts of its nodes in other members, too: as a whole, in part, in other words around them.
#[test]
fn an_erased_text_is_in_no_other_member() {
    let folder = Folder::new();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let long = format!(
        "My card is {SECRET}. Please book the flight of tomorrow for the two of us, by the window."
    );
    let template = "Please book the flight of tomorrow for the two of us, by the window. {more}";
    let document = |cycle: i64, text: &str| {
        let meta = format!(
            r#"{{"record":{{"input":"{long}","card":"{SECRET}","list":[{{"said" : "> {long}","template":"{template}"}}],"n":1.0,"kept":"of another text","short":"card"}},"card":"{SECRET}"}}"#
        );
        format!(
            r#"{{"cycle":{cycle},"meta":{meta},"root":{{"id":"r","nodeType":"root","children":[{{"id":"s","nodeType":"seq","children":[{{"id":"t{cycle}","nodeType":"mt","children":[{{"id":"c{cycle}","nodeType":"cb","content":[{{"text":"{text}"}}],"data_own":"of nothing else"}}]}}]}}]}}}}
"#
        )
    };
    let mut log = document(1, &long) + &document(2, "two");
    let bring = |log: &str| {
        let session = Session::from_slice(log.as_bytes()).unwrap();
        let done = store.import_log(&[("log".to_owned(), session)], Some("log.jsonl"));
        done.unwrap()
    };
    bring(&log);
    store.erase("log", ["c1"]).unwrap();
    let nowhere = || {
        assert_eq!(sound(&store), Ok(()));
        for text in [SECRET, "book the flight", "by the window"] {
            assert_eq!(files_with(&path, text), [""; 0], "{text}");
        }
        let (committed, _) = documents(&store.session("log").unwrap()).unwrap();
        let erased = r#""meta":{"card":"[erased]","record":{"card":"[erased]","input":"[erased]","kept":"of another text","list":[{"said":"[erased]","template":"[erased]"}],"n":1.0,"short":"card"}}"#;
        for document in &committed {
            assert!(document.contains(erased), "{document}");
        }
    };
    nowhere();
    // The log still says so, in what is there and in what it adds.
    assert_eq!(bring(&log).same, 1);
    log += &document(3, "three");
    let done = bring(&log);
    assert_eq!((done.grown, done.snapshots), (1, 1));
    nowhere();
    // Once more: what reads `[erased]` is no text.
    store.erase("log", ["c1", "c3"]).unwrap();
    nowhere();
}
