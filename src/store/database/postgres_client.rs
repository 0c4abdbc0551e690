//! How PostgreSQL's client spells statements, parameters and rows, and where it may run.
//!
//! The client waits inside a runtime of its own, which a thread that runs tasks of another one refuses.
//! This file knows no transaction and no table.

use postgres::types::{FromSql, ToSql, Type as Stored};
use postgres::{Client, SimpleQueryMessage, SimpleQueryRow};
use std::cell::OnceCell;

use crate::store::database::sql::{ResultRow, SqlValue, Type};
use crate::store::error::{Result, StoreError};
use crate::tree::hash::hex;

/// Whether this thread belongs to a runtime, where the client may not wait.
pub(crate) fn in_runtime() -> bool {
    tokio::runtime::Handle::try_current().is_ok()
}

/// Does work of the client, on a thread of its own if this one belongs to a runtime.
pub(crate) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if !in_runtime() {
        return work();
    }
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[cfg(test)]
thread_local! {
    /// How often this thread has waited for an answer of a server.
    pub(crate) static ROUND_TRIPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

pub(crate) fn note_trip() {
    #[cfg(test)]
    ROUND_TRIPS.set(ROUND_TRIPS.get() + 1);
}

/// A client, used and closed where it may wait.
pub(crate) struct ClientLink(pub(crate) Option<Client>);

impl ClientLink {
    pub(crate) fn batch_execute(&mut self, sql: &str) -> Result<(), postgres::Error> {
        note_trip();
        self.with(|client| client.batch_execute(sql))
    }

    /// Runs the statements of a text, and returns what each says.
    pub(crate) fn simple_query(
        &mut self,
        sql: &str,
    ) -> Result<Vec<SimpleQueryMessage>, postgres::Error> {
        note_trip();
        self.with(|client| client.simple_query(sql))
    }

    #[allow(
        clippy::expect_used,
        reason = "only `drop` takes the client, and nothing comes after it"
    )]
    pub(crate) fn with<T: Send>(&mut self, work: impl FnOnce(&mut Client) -> T + Send) -> T {
        let client = self.0.as_mut().expect("not dropped");
        apart(|| work(client))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.as_ref().is_none_or(Client::is_closed)
    }
}

impl Drop for ClientLink {
    fn drop(&mut self) {
        let client = self.0.take();
        apart(|| drop(client));
    }
}

/// A statement with `$1` for `?1`. Texts, quoted names and comments stay.
pub(crate) fn respelled(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut quote = None;
    let mut chars = sql.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(end), _) => {
                out.push(c);
                if c == end {
                    quote = None;
                }
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (None, '-') if chars.peek() == Some(&'-') => quote = Some('\n'),
            (None, '?') => {
                out.push('$');
                continue;
            }
            (None, _) => {}
        }
        out.push(c);
    }
    out
}

/// Appends a statement without quoted texts, with literals for its parameters.
pub(crate) fn spell_out(out: &mut String, sql: &str, values: &[SqlValue<'_>]) {
    let mut parts = sql.split('?');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let end = part
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(part.len());
        let (number, rest) = part.split_at(end);
        let value = number
            .parse()
            .ok()
            .and_then(|at: usize| values.get(at.checked_sub(1)?));
        match value {
            None | Some(SqlValue::Null) => out.push_str("null"),
            Some(SqlValue::Bool(value)) => out.push_str(if *value { "true" } else { "false" }),
            Some(SqlValue::Int(value)) => out.push_str(&format!("'{value}'")),
            Some(SqlValue::Real(value)) => out.push_str(&format!("'{value}'")),
            // A backslash means itself: `standard_conforming_strings` is on.
            Some(SqlValue::Text(value)) => {
                out.push_str(&format!("'{}'", value.replace('\'', "''")))
            }
            Some(SqlValue::Bytes(value)) => out.push_str(&format!("'\\x{}'", hex(value))),
        }
        out.push_str(rest);
    }
    out.push_str("; ");
}

/// A value in the type that the server found its parameter to have.
pub(crate) fn parameter<'v>(
    at: usize,
    value: SqlValue<'v>,
    kind: &Stored,
) -> Result<Box<dyn ToSql + Send + Sync + 'v>> {
    let wrong = || {
        let what = format!("parameter {at} of a statement does not fit {kind}; write a cast");
        StoreError::Database(what)
    };
    let large = |_| wrong();
    Ok(match (kind, value) {
        (&Stored::BOOL, SqlValue::Null) => Box::new(None::<bool>),
        (&Stored::BOOL, SqlValue::Bool(value)) => Box::new(value),
        (&Stored::INT2, SqlValue::Null) => Box::new(None::<i16>),
        (&Stored::INT2, SqlValue::Int(value)) => Box::new(i16::try_from(value).map_err(large)?),
        (&Stored::INT4, SqlValue::Null) => Box::new(None::<i32>),
        (&Stored::INT4, SqlValue::Int(value)) => Box::new(i32::try_from(value).map_err(large)?),
        (&Stored::INT8, SqlValue::Null) => Box::new(None::<i64>),
        (&Stored::INT8, SqlValue::Int(value)) => Box::new(value),
        (&Stored::FLOAT8, SqlValue::Null) => Box::new(None::<f64>),
        (&Stored::FLOAT8, SqlValue::Real(value)) => Box::new(value),
        (&Stored::TEXT | &Stored::VARCHAR | &Stored::NAME, SqlValue::Null) => {
            Box::new(None::<&str>)
        }
        (&Stored::TEXT | &Stored::VARCHAR | &Stored::NAME, SqlValue::Text(value)) => {
            Box::new(value)
        }
        (&Stored::BYTEA, SqlValue::Null) => Box::new(None::<&[u8]>),
        (&Stored::BYTEA, SqlValue::Bytes(value)) => Box::new(value),
        _ => return Err(wrong()),
    })
}

pub(crate) struct PostgresRow(pub(crate) postgres::Row);

impl PostgresRow {
    fn get<'r, T: FromSql<'r>>(&'r self, at: usize) -> Result<Option<T>> {
        let value = self.0.try_get(at);
        value.map_err(|error| StoreError::Damaged(format!("column {at} of a result: {error}")))
    }

    fn int(&self, at: usize, stored: Option<&Stored>) -> Result<Option<i64>> {
        match stored {
            Some(&Stored::INT2) => Ok(self.get::<i16>(at)?.map(i64::from)),
            Some(&Stored::INT4) => Ok(self.get::<i32>(at)?.map(i64::from)),
            _ => self.get(at),
        }
    }
}

impl ResultRow for PostgresRow {
    fn value(&self, at: usize, kind: Type) -> Result<SqlValue<'_>> {
        let stored = self.0.columns().get(at).map(postgres::Column::type_);
        Ok(match (kind, stored) {
            (Type::Id | Type::Int, _) => self.int(at, stored)?.into(),
            (Type::Real, Some(&Stored::INT8)) => {
                let value = self.int(at, stored)?;
                value.map(|value| value as f64).into()
            }
            (Type::Real, _) => self.get::<f64>(at)?.into(),
            (Type::Bool, Some(&Stored::BOOL)) => self.get::<bool>(at)?.into(),
            (Type::Bool, _) => self.int(at, stored)?.map(|value| value != 0).into(),
            (Type::Text, _) => self.get::<&str>(at)?.into(),
            (Type::Bytes, _) => self.get::<&[u8]>(at)?.into(),
        })
    }
}

/// A row of a statement that was sent as text: the values are texts, too.
pub(crate) struct TextRow {
    row: SimpleQueryRow,
    bytes: Vec<OnceCell<Vec<u8>>>,
}

impl TextRow {
    pub(crate) fn new(row: SimpleQueryRow) -> Self {
        let bytes = (0..row.len()).map(|_| OnceCell::new()).collect();
        Self { row, bytes }
    }
}

impl ResultRow for TextRow {
    fn value(&self, at: usize, kind: Type) -> Result<SqlValue<'_>> {
        let wrong = || {
            let noun = kind.noun();
            StoreError::Damaged(format!("column {at} of a result is not {noun}"))
        };
        let text = self.row.try_get(at).map_err(|_| wrong())?;
        let Some(text) = text else {
            return Ok(SqlValue::Null);
        };
        Ok(match kind {
            Type::Id | Type::Int => SqlValue::Int(text.parse().map_err(|_| wrong())?),
            Type::Real => SqlValue::Real(text.parse().map_err(|_| wrong())?),
            Type::Bool => SqlValue::Bool(text == "t"),
            Type::Text => SqlValue::Text(text),
            Type::Bytes => {
                let read = text
                    .strip_prefix("\\x")
                    .and_then(of_hex)
                    .ok_or_else(wrong)?;
                let kept = self.bytes.get(at).ok_or_else(wrong)?;
                SqlValue::Bytes(kept.get_or_init(|| read))
            }
        })
    }
}

fn of_hex(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = digits.chars().map(|digit| digit.to_digit(16)).collect();
    let pairs = digits?;
    let pairs = pairs.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(high * 16 + low).ok(),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_hexadecimal_digits() {
        for (digits, bytes) in [
            ("", Some(vec![])),
            ("00ffA0", Some(vec![0, 255, 160])),
            ("0", None),
            ("0g", None),
        ] {
            assert_eq!(of_hex(digits), bytes, "{digits}");
        }
    }

    #[test]
    fn parameters_are_respelled() {
        let sql = "select '?1 ''?2' as \"?3\", ?1 -- ?4\n where a = ?12";
        let out = "select '?1 ''?2' as \"?3\", $1 -- ?4\n where a = $12";
        assert_eq!(respelled(sql), out);
    }
}
