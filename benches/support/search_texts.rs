//! Searching the texts of many sessions in one file, with its text index and without.

use pactql::inspect::{GrepReport, Part, Report, ReportOptions, Search};
use pactql::{Engine, Store};

use super::many_sessions::{file, with_memory};
use super::support::by_hand::ByHand;
use super::support::timing::nice;
use super::{Effort, Scratch, timed};
use std::path::Path;

/// Makes an index, and searches for a text that one session has.
pub(super) fn search(scratch: &Scratch, effort: Effort) {
    let path = scratch.file("texts.db");
    std::fs::copy(file(scratch, effort.sessions), &path).expect("a copy");
    let url = path.to_str().expect("a path");
    let store = Store::builder().must_exist().connect(url).expect("a store");
    let hand = ByHand::open(&path);
    let number = |sql: &str| hand.all(sql, [], |row| row.get::<_, i64>(0))[0];
    let pages = "select page_count * page_size from pragma_page_count, pragma_page_size";
    let (before, bodies) = (number(pages), number("select sum(length(text)) from body"));
    let made = timed(|| store.index_text().expect("an index"));
    let megabytes = |bytes: i64| bytes as f64 / 1e6;
    println!(
        "{:<52}{:>12} for {:.0} MB of texts: {:.0} MB in a file of {:.0} MB",
        "an index of texts",
        nice(made),
        megabytes(bodies),
        megabytes(number(pages) - before),
        megabytes(before),
    );
    let mut by_hand = [insert_by_hand(&path, &scratch.file("hand.db"))];
    super::line(
        "an index of texts, and FTS5 alone",
        &mut [made],
        &mut by_hand,
        2.0,
    );
    let pattern = format!("order {},", effort.sessions - 7);
    let search = Search::new(&pattern, false).expect("a pattern");
    let engine = Engine::new();
    let options = ReportOptions::new(Part::all()).search(search.clone());
    let lines = |store: &Store, names: &[String]| -> u64 {
        let found = names.iter().map(|name| {
            let session = store.session(name).expect("a session");
            let found = GrepReport::new(&engine, &session, &options).expect("an answer");
            found.lines
        });
        found.sum()
    };
    let mut with = Vec::new();
    let mut found = 0;
    for _ in 0..effort.rounds.min(31) {
        with.push(timed(|| {
            let store = with_memory(&path, 64 << 20);
            let names = search.sessions(&store, "").expect("an answer");
            found = lines(&store, &names.expect("an index"));
        }));
    }
    let mut all_lines = 0;
    let without = timed(|| {
        let store = with_memory(&path, 64 << 20);
        let sessions = store.sessions("").expect("a list").into_iter();
        let names: Vec<String> = sessions.map(|info| info.name).collect();
        all_lines = lines(&store, &names);
    });
    assert_eq!(found, all_lines);
    let (mut selected, mut grepped) = (Vec::new(), with.clone());
    let selector = format!("@t0 [content~'{pattern}']");
    for _ in 0..effort.rounds.min(31) {
        selected.push(timed(|| {
            let store = with_memory(&path, 64 << 20);
            let asked = store.select(&selector).expect("a selector");
            assert_eq!(asked.answers().expect("an answer").count(), 1);
        }));
    }
    super::line(
        "select with a pattern, and grep",
        &mut selected,
        &mut grepped,
        3.0,
    );
    let with = super::median(&mut with);
    println!(
        "{:<52}{:>12} with the index, {} without: {:.0}x",
        format!("grep of {} sessions, {found} lines in one", effort.sessions),
        nice(with),
        nice(without),
        without / with
    );
}

/// The time to insert the texts of a file into a table of FTS5 like that of the index, by one statement.
fn insert_by_hand(path: &Path, into: &Path) -> f64 {
    let connection = rusqlite::Connection::open(into).expect("a file");
    let attach = format!("attach '{}' as store", path.display());
    connection.execute_batch(&attach).expect("the store");
    connection
        .execute_batch(
            "pragma journal_mode = wal; pragma synchronous = full; create virtual table texts using \
             fts5(text, content = '', contentless_delete = 1, detail = 'none', \
             tokenize = 'trigram case_sensitive 1')",
        )
        .expect("a table");
    timed(|| {
        connection
            .execute_batch(
                "insert into texts (rowid, text) select body_id, lower(text) from store.body",
            )
            .expect("the texts")
    })
}
