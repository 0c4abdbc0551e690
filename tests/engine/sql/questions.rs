//! The questions of docs/fleet-questions.md have the rows that the document shows: in SQLite, and in DuckDB and
//! Spark where `.ci/fleet` has installed them. `PACTQL_BLESS=1` writes the rows of SQLite into the document.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use pactql::sql::{Dialect, Options};
use pactql::{Engine, Store, store::SqlRow};

use crate::store::place::Folder;

#[path = "../../../examples/fleet.rs"]
#[expect(dead_code, reason = "the function of the program")]
mod made;

/// The sessions that the document asks.
pub(super) const SESSIONS: u64 = 200;

/// The rows that the document shows of a question.
const SHOWN: usize = 3;

/// The store of the example, with so many sessions.
pub(super) fn store(path: &str, sessions: u64) -> Store {
    let store = Store::open(path).unwrap();
    let sessions = (0..sessions).map(|number| {
        let session = made::session(number).unwrap();
        (format!("support-{number:06}"), session, None)
    });
    store.import_all(sessions).unwrap();
    store
}

/// A question: its selector, and the cells of the table that show its rows.
struct Question {
    selector: String,
    rows: String,
}

/// The questions of the document, and its text with the rows that `rows` gives instead of those it has.
fn questions(document: &str, mut rows: impl FnMut(&str) -> String) -> (Vec<Question>, String) {
    let (mut questions, mut written) = (Vec::<Question>::new(), String::new());
    let mut in_table = false;
    for line in document.lines() {
        in_table = line.starts_with("| question |") || in_table && line.starts_with('|');
        let cells: Vec<&str> = line.trim_matches('|').splitn(3, " | ").collect();
        if let (true, [question, selector, shown]) = (in_table, &cells[..])
            && let Some(selector) = selector.strip_prefix('`')
        {
            let selector = selector.strip_suffix('`').unwrap().to_owned();
            writeln!(
                written,
                "|{question} | `{selector}` | {} |",
                rows(&selector)
            )
            .unwrap();
            let rows = shown.trim_end().to_owned();
            questions.push(Question { selector, rows });
        } else {
            written += line;
            written.push('\n');
        }
    }
    (questions, written)
}

/// How many rows there are, and the first ones, as the document has them.
fn shown(rows: &[String]) -> String {
    let first: Vec<String> = rows
        .iter()
        .take(SHOWN)
        .map(|row| format!("`{row}`"))
        .collect();
    format!("{} | {}", rows.len(), first.join("; "))
}

fn in_sqlite(store: &Store, selector: &str) -> Vec<String> {
    let mut rows = Vec::new();
    let each = |row| {
        rows.push(match row {
            SqlRow::Node {
                session,
                seq,
                snapshot,
                id,
                ord,
            } => format!("{session} {seq} {} {id} {ord}", snapshot.unwrap()),
            SqlRow::Change {
                session,
                newer,
                older,
                change,
                id,
                ord,
            } => format!("{session} {newer} {older} {change} {id} {ord}"),
            _ => panic!("another row"),
        });
    };
    store.select(selector).unwrap().rows(each).unwrap();
    rows
}

#[test]
fn questions_have_the_rows_that_the_document_shows() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let folder = Folder::quick();
    let store = store(&folder.file("fleet.db"), SESSIONS);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fleet-questions.md");
    let document = fs::read_to_string(&path).unwrap();
    let (questions, found) = questions(&document, |selector| shown(&in_sqlite(&store, selector)));
    assert_eq!(questions.len(), 10);
    if std::env::var_os("PACTQL_BLESS").is_some() && std::env::var_os("CI").is_none() {
        fs::write(&path, &found).unwrap();
    }
    assert_eq!(found, document);
    #[cfg(feature = "parquet")]
    over_parquet(&store, &folder, &questions);
}

#[cfg(feature = "parquet")]
fn over_parquet(store: &Store, folder: &Folder, questions: &[Question]) {
    use pactql::store::{ParquetExport, parquet_views};
    use serde_json::Value;

    let directory = folder.file("fleet");
    let settings = ParquetExport::default().buckets(16);
    store.export_parquet(&directory, &settings).unwrap();
    let engine = Engine::new();
    for dialect in [Dialect::DuckDb, Dialect::Spark] {
        let mut process = match super::fleet::start(dialect.name()) {
            Ok(process) => process,
            Err(reason) => {
                println!("SKIPPED: {reason}");
                continue;
            }
        };
        let setup = parquet_views(dialect, &directory, None).unwrap();
        for Question { selector, rows } in questions {
            let statement = engine.sql(selector, dialect, &Options::default()).unwrap();
            let got = process.ask(dialect.name(), &setup, statement.text());
            let word = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
            let line = |row: &Vec<Value>| row.iter().map(word).collect::<Vec<_>>().join(" ");
            let got: Vec<String> = got.unwrap().iter().map(line).collect();
            assert_eq!(shown(&got), *rows, "{dialect}: {selector}");
        }
    }
}
