//! Runs statements in SQLite, as a user of the library would with functions of its own for patterns and sizes.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Mutex;

use pactql::sql::{Shape, Statement};
use regex::Regex;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OpenFlags};

use crate::support::json::{Json, parse};

/// The rows of a statement by session, each as text: `id`, or `newer older change id`.
pub(crate) type Answers = BTreeMap<String, Vec<String>>;

/// A connection that only reads, with the functions that a statement for SQLite may call.
pub(crate) fn open(path: &str) -> Connection {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let patterns: Mutex<HashMap<String, Regex>> = Mutex::default();
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection
        .create_scalar_function("pactql_search", 2, flags, move |row| {
            let Some(text) = row.get::<Option<String>>(0)? else {
                return Ok(None);
            };
            let pattern: String = row.get(1)?;
            let mut patterns = patterns.lock().unwrap();
            let regex = patterns
                .entry(pattern.clone())
                .or_insert_with(|| Regex::new(&pattern).unwrap());
            Ok(Some(regex.is_match(&text)))
        })
        .unwrap();
    connection
        .create_scalar_function("pactql_bytes", 2, flags, |row| {
            let Some(text) = row.get::<Option<String>>(0)? else {
                return Ok(None);
            };
            let content = if row.get(1)? {
                parse(&text)
            } else {
                Json::Str(text)
            };
            Ok(Some(content.bytes()))
        })
        .unwrap();
    connection
}

/// Runs a statement. Its rows must be in the order of sessions and `ord`, from 1 without a gap.
pub(crate) fn run(connection: &Connection, statement: &Statement) -> Result<Answers, String> {
    let failed = |error: rusqlite::Error| format!("{error}\n{}", statement.text());
    let mut prepared = connection.prepare(statement.text()).map_err(failed)?;
    if !prepared
        .column_names()
        .eq(statement.shape().columns().iter().copied())
    {
        return Err(format!(
            "the columns have other names\n{}",
            statement.text()
        ));
    }
    let last = statement.shape().columns().len() - 1;
    let mut rows = prepared.query([]).map_err(failed)?;
    let mut answers = Answers::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let session: String = row.get(0).map_err(failed)?;
        if answers
            .last_key_value()
            .is_some_and(|(known, _)| *known > session)
        {
            return Err("the sessions are not in order".to_owned());
        }
        let id: String = row.get(last - 1).map_err(failed)?;
        let ord: i64 = row.get(last).map_err(failed)?;
        let rows = answers.entry(session).or_default();
        if usize::try_from(ord) != Ok(rows.len() + 1) {
            return Err(format!("row {} has ord {ord}", rows.len() + 1));
        }
        rows.push(match statement.shape() {
            Shape::Nodes => id,
            Shape::Changes => {
                let (newer, older): (i64, i64) =
                    (row.get(1).map_err(failed)?, row.get(2).map_err(failed)?);
                let change: String = row.get(3).map_err(failed)?;
                format!("{newer} {older} {change} {id}")
            }
        });
    }
    Ok(answers)
}
