//! Every example of `docs/language.md` as a statement gives the engine's rows in SQLite.

use std::sync::Arc;

use pactql::sql::{Dialect, Options};
use pactql::{Code, Session, Store};

use super::differential::{builder, rows};
use super::sqlite::{self, Answers};
use crate::reference::answered;
use crate::store::place::Folder;
use crate::support::selector::Edition;

/// What an implicit core has and has not, which no example asks.
const OF_CORES: [&str; 5] = [
    "@t0 .mc[parent=null] .cb",
    "@t0 .mc[parent!=null] .cb",
    "@t0 .mc[priority=0] > .cb",
    "@t0 .mc[sdepth=null] .cb",
    "@t0 .mc[created_at_iso=null][tags=null][offset=0] > .cb",
];

const FIXTURE: &str = include_str!("../../../fixtures/greenhouse.jsonl");

#[test]
fn every_example_of_the_language_is_a_statement_with_its_rows() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let whole = Arc::new(Session::from_slice(FIXTURE.as_bytes()).unwrap());
    let committed: Vec<&str> = FIXTURE
        .lines()
        .filter(|line| !line.contains("\"working\":true"))
        .collect();
    let committed = Session::from_slice(committed.join("\n").as_bytes()).unwrap();
    let sessions = [("committed", Arc::new(committed)), ("whole", whole)];
    for (name, session) in &sessions {
        store.import(name, session, None).unwrap();
    }
    let connection = sqlite::open(&path);
    let (mut cases, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    let of_cores = OF_CORES.map(|text| (Edition::Canonical, text));
    for (edition, text) in answered().into_iter().chain(of_cores) {
        let engine = builder(edition);
        let statement = match engine.sql(text, Dialect::Sqlite, &Options::default()) {
            Err(error) if error.code() == Code::Sql => {
                refused.push(text);
                continue;
            }
            statement => statement.unwrap(),
        };
        cases += 1;
        let mut expected = Answers::new();
        for (name, session) in &sessions {
            let rows = rows(&engine, session, text).unwrap();
            if !rows.is_empty() {
                expected.insert((*name).to_owned(), rows);
            }
        }
        let got = sqlite::run(&connection, &statement);
        if got.as_ref() != Ok(&expected) {
            wrong.push(format!("{edition:?} `{text}`: {got:?} is not {expected:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(cases >= 600, "only {cases} examples");
    let hashes = refused.iter().all(|text| text.contains("content_hash"));
    assert!(hashes, "refused: {refused:?}");
}
