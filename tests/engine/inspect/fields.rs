//! The words of sessions: by hand, and a database counts what loaded sessions have.

use super::{greenhouse, travel};
use crate::store::place::Folder;
use crate::support::documents::Sample;
use crate::support::engine::open;
use pactql::inspect::{Fields, FieldsReport};
use pactql::{Session, Store};

fn report<'s>(sessions: impl IntoIterator<Item = &'s Session>) -> FieldsReport {
    let mut fields = Fields::default();
    for session in sessions {
        fields.add(session).unwrap();
    }
    fields.report()
}

#[test]
fn the_words_of_a_session() {
    let found = report([&travel()]);
    assert_eq!((found.sessions, found.nodes), (1, 29));
    let shown = found.text(pactql::inspect::Paint::default());
    let lines: Vec<&str> = shown.lines().collect();
    for expected in [
        "1 session, 29 nodes",
        "kind               15  text 5×, tool 4×, call 3×, result 3×",
        "role               15  assistant 5×, system 5×, tool 3×, user 2×",
        "(tools)             3  search_trains 2×, book_seat 1×, cancel_booking 0×, station_weather 0×",
    ] {
        let is_there = lines.iter().any(|line| line.trim_end() == expected);
        assert!(is_there, "{expected}\n{shown}");
    }
}

/// A node of several snapshots counts once, with each value that it had.
#[test]
fn a_node_counts_once_a_session_with_all_its_values() {
    let line = |state: &str| {
        format!(
            r#"{{"root":{{"id":"r","children":[{{"id":"a","nodeType":"cb","kind":"call","data_state":{state},"data_call_name":"pay"}}]}}}}"#
        )
    };
    let session = open(&[line("\"open\""), line("\"done\""), line("[5,\"5\",null]")].join("\n"));
    let found = report([&session, &session]);
    let state = found
        .fields
        .iter()
        .find(|field| field.name == "data_state")
        .unwrap();
    let values = state
        .values
        .iter()
        .map(|value| (&*value.value, value.nodes));
    assert_eq!(state.nodes, 2);
    assert_eq!(
        values.collect::<Vec<_>>(),
        [("'5'", 2), ("5", 2), ("done", 2), ("open", 2)]
    );
    assert_eq!((&*found.tools[0].value, found.tools[0].nodes), ("pay", 2));
}

fn agrees(store: &Store) {
    let mut sessions = vec![
        ("known/travel".to_owned(), travel()),
        ("known/green".to_owned(), greenhouse()),
    ];
    for seed in 0..40 {
        let lines = Sample::new(seed).lines.join("\n");
        sessions.push((format!("random/{seed}"), open(&lines)));
    }
    for (name, session) in &sessions {
        store.import(name, session, None).unwrap();
    }
    for glob in ["", "known/*", "random/1*"] {
        let mut counted = Fields::default();
        let count = counted.add_store(store, glob).unwrap();
        let infos = store.sessions(glob).unwrap().into_iter();
        let loaded: Vec<_> = infos
            .map(|info| store.session(&info.name).unwrap())
            .collect();
        assert!(count > 1 && loaded.len() == count, "{glob}");
        let expected = report(loaded.iter().map(|session| &**session));
        assert_eq!(counted.report(), expected, "{glob}");
    }
}

#[test]
fn a_database_counts_what_loaded_sessions_have() {
    let folder = Folder::quick();
    agrees(&Store::open(folder.file("words.db")).unwrap());
}

#[cfg(all(unix, feature = "postgres"))]
#[test]
fn a_server_counts_what_loaded_sessions_have() {
    match crate::store::server::Server::start() {
        Ok(server) => agrees(&Store::connect(&server.url("words")).unwrap()),
        Err(why) => println!("SKIPPED: {why}"),
    }
}
