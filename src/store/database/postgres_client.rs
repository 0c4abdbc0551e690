//! How PostgreSQL's client spells statements, parameters and rows, and where it may run.
//!
//! The client waits inside a runtime of its own, which a thread that runs tasks of another one refuses.
//! This file knows no transaction and no table.

use postgres::Client;
use postgres::types::{FromSql, ToSql, Type};

use crate::store::database::sql::{Row, Value};
use crate::store::error::{Result, StoreError};

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

/// A client, used and closed where it may wait.
pub(crate) struct ClientLink(pub(crate) Option<Client>);

impl ClientLink {
    pub(crate) fn batch_execute(&mut self, sql: &str) -> Result<(), postgres::Error> {
        self.with(|client| client.batch_execute(sql))
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

/// A value in the type that the server found its parameter to have.
pub(crate) enum Parameter<'v> {
    Bool(Option<bool>),
    Int2(Option<i16>),
    Int4(Option<i32>),
    Int8(Option<i64>),
    Float8(Option<f64>),
    Text(Option<&'v str>),
    Bytes(Option<&'v [u8]>),
}

impl<'v> Parameter<'v> {
    pub(crate) fn of(at: usize, value: &Value<'v>, kind: &Type) -> Result<Self> {
        let wrong = || {
            let given = match value {
                Value::Null => "null",
                Value::Bool(_) => "a truth value",
                Value::Int(_) => "an integer, maybe too large",
                Value::Real(_) => "a number",
                Value::Text(_) => "a text",
                Value::Bytes(_) => "bytes",
            };
            StoreError::Database(format!(
                "parameter {at} of a statement is {given} where {kind} was expected; write a cast"
            ))
        };
        let small = |_| wrong();
        Ok(match (kind, *value) {
            (&Type::BOOL, Value::Null) => Self::Bool(None),
            (&Type::BOOL, Value::Bool(value)) => Self::Bool(Some(value)),
            (&Type::INT2, Value::Null) => Self::Int2(None),
            (&Type::INT2, Value::Int(value)) => Self::Int2(Some(value.try_into().map_err(small)?)),
            (&Type::INT4, Value::Null) => Self::Int4(None),
            (&Type::INT4, Value::Int(value)) => Self::Int4(Some(value.try_into().map_err(small)?)),
            (&Type::INT8, Value::Null) => Self::Int8(None),
            (&Type::INT8, Value::Int(value)) => Self::Int8(Some(value)),
            (&Type::FLOAT8, Value::Null) => Self::Float8(None),
            (&Type::FLOAT8, Value::Real(value)) => Self::Float8(Some(value)),
            (&Type::TEXT | &Type::VARCHAR | &Type::NAME, Value::Null) => Self::Text(None),
            (&Type::TEXT | &Type::VARCHAR | &Type::NAME, Value::Text(value)) => {
                Self::Text(Some(value))
            }
            (&Type::BYTEA, Value::Null) => Self::Bytes(None),
            (&Type::BYTEA, Value::Bytes(value)) => Self::Bytes(Some(value)),
            _ => return Err(wrong()),
        })
    }

    pub(crate) fn sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Bool(value) => value,
            Self::Int2(value) => value,
            Self::Int4(value) => value,
            Self::Int8(value) => value,
            Self::Float8(value) => value,
            Self::Text(value) => value,
            Self::Bytes(value) => value,
        }
    }
}

pub(crate) struct PostgresRow(pub(crate) postgres::Row);

impl PostgresRow {
    fn get<'r, T: FromSql<'r>>(&'r self, at: usize) -> Result<Option<T>> {
        let value = self.0.try_get(at);
        value.map_err(|error| StoreError::Damaged(format!("column {at} of a result: {error}")))
    }

    fn kind(&self, at: usize) -> Option<&Type> {
        self.0.columns().get(at).map(postgres::Column::type_)
    }
}

impl Row for PostgresRow {
    fn int(&self, at: usize) -> Result<Option<i64>> {
        match self.kind(at) {
            Some(&Type::INT4) => Ok(self.get::<i32>(at)?.map(i64::from)),
            Some(&Type::INT2) => Ok(self.get::<i16>(at)?.map(i64::from)),
            _ => self.get(at),
        }
    }

    fn real(&self, at: usize) -> Result<Option<f64>> {
        match self.kind(at) {
            Some(&Type::INT8) => Ok(self.get::<i64>(at)?.map(|value| value as f64)),
            _ => self.get(at),
        }
    }

    fn bool(&self, at: usize) -> Result<Option<bool>> {
        match self.kind(at) {
            Some(&Type::BOOL) => self.get(at),
            _ => Ok(self.int(at)?.map(|value| value != 0)),
        }
    }

    fn text(&self, at: usize) -> Result<Option<&str>> {
        self.get(at)
    }

    fn bytes(&self, at: usize) -> Result<Option<&[u8]>> {
        self.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_respelled() {
        let sql = "select '?1 ''?2' as \"?3\", ?1 -- ?4\n where a = ?12";
        let out = "select '?1 ''?2' as \"?3\", $1 -- ?4\n where a = $12";
        assert_eq!(respelled(sql), out);
    }
}
