//! Sessions that are asked together answer as each does alone (STORE §4).

use std::collections::BTreeMap;

use pactql::{Answer, Code, Message, Store};
use rusqlite::Connection;

use super::place::Folder;
use crate::support::documents::Sample;
use crate::support::engine::open;

/// Selectors that read the newest commit, parts of it, a working state where there is one, and history.
const SELECTORS: [&str; 14] = [
    "@t0 .cb",
    "@t0 .cb[role='user']",
    "@t0 ^seq .mt:depth(1) .cb",
    "@t0 ^seq .mt:depth(2,3)",
    "@t0 ^sys .cb",
    "@t0 ^ah .cb",
    "@t0 ^sys .cb, ^seq .mt:depth(1)",
    "^seq .cb:last",
    "^ah > *",
    "@t0 [key='k1']",
    "@t-1 .cb",
    "@t-2..@t0 .cb",
    "@* .mt",
    "@t0 ^root > *",
];

/// The answers of a store by name, as text.
fn together(store: &Store, selector: &str) -> Vec<(String, String)> {
    let answers = store.select(selector).unwrap();
    let possible = answers.candidates();
    let found: Vec<_> = answers
        .map(|found| found.map(|found| (found.session, answered(&found.answer))))
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(found.len() <= possible, "{selector}");
    found
}

/// The same of each session alone, in a store of its own.
fn alone(path: &str, selector: &str) -> Vec<(String, String)> {
    let names = Store::open(path).unwrap().sessions("").unwrap();
    let found = names.into_iter().filter_map(|info| {
        let store = Store::open(path).unwrap();
        let session = store.session(&info.name).unwrap();
        let answer = match store.engine().select(&session, selector) {
            Err(error) if error.code() == Code::SnapshotNotFound => return None,
            answer => answer.unwrap(),
        };
        let is_empty = match &answer {
            Answer::Rows(rows) => rows.count() == 0,
            Answer::Range(diff) => diff.diffs.iter().all(|pair| pair.is_empty()),
        };
        (!is_empty).then(|| (info.name, answered(&answer)))
    });
    found.collect()
}

fn answered(answer: &Answer) -> String {
    match answer {
        Answer::Rows(rows) => format!("{:?}", rows.nodes().collect::<Vec<_>>()),
        Answer::Range(diff) => serde_json::to_string(diff).unwrap(),
    }
}

#[test]
fn sessions_that_are_read_together_answer_as_alone() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    for seed in 0..50 {
        let session = open(&Sample::new(seed).text());
        store.import(&format!("s{seed}"), &session, None).unwrap();
    }
    store.fork("s7", "@t0", "fork/of s7").unwrap();
    // One without a commit, one with nothing but a working state, one with both.
    drop(store.write("empty").unwrap());
    for (name, commits) in [("unfinished", 0), ("written", 2)] {
        let mut context = store.write(name).unwrap();
        for text in ["one", "two"].iter().take(commits) {
            context.append(Message::user(text)).unwrap();
            context.reply(Message::assistant("yes")).unwrap();
            context.commit().unwrap();
        }
        context.append(Message::user("a draft")).unwrap();
        context.save().unwrap();
    }
    drop(store);

    let wanted: BTreeMap<&str, _> = SELECTORS
        .iter()
        .map(|selector| (*selector, alone(&path, selector)))
        .collect();
    assert!(wanted.values().filter(|found| !found.is_empty()).count() > 10);
    let large = Store::open(&path).unwrap();
    for (selector, wanted) in &wanted {
        // From cold, with other parts in memory, and from memory.
        let cold = Store::builder().memory(0).open(&path).unwrap();
        for store in [&cold, &large, &large] {
            assert_eq!(&together(store, selector), wanted, "{selector}");
        }
    }

    // What another program writes is seen by the next selector.
    let other = Store::open(&path).unwrap();
    let mut context = other.write("written").unwrap();
    context.append(Message::user("news")).unwrap();
    context.commit().unwrap();
    drop(context);
    other.rename("s4", "renamed").unwrap();
    other.delete("s5").unwrap();
    for selector in SELECTORS {
        let found = together(&large, selector);
        assert_eq!(found, alone(&path, selector), "{selector}");
    }
    assert_ne!(together(&large, "@t0 .cb"), wanted["@t0 .cb"]);
}

#[test]
fn a_damaged_session_is_an_error_of_its_own() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    for name in ["a", "b", "c", "d"] {
        let mut context = store.write(name).unwrap();
        let text = format!("the text of {name}");
        context.append(Message::user(&text)).unwrap();
        context.commit().unwrap();
    }
    drop(store);
    let database = Connection::open(&path).unwrap();
    let damage = "delete from node where unit_id in (select unit_id from placement p \
         join session s on s.session_id = p.session_id where s.name = 'c' and p.rank = 1)";
    assert!(database.execute(damage, []).unwrap() > 0);
    drop(database);

    let store = Store::open(&path).unwrap();
    let found: Vec<_> = store.select("@t0 .cb").unwrap().collect();
    let names = found.iter().map(|found| match found {
        Ok(found) => found.session.clone(),
        Err(error) => error.code().to_string(),
    });
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "E_STORE", "d"]);
}
