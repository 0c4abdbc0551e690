//! Sums of rows that no hash covers, so that `verify` finds whatever was altered.

use sha2::{Digest, Sha256};

use crate::store::database::sql::{Database, Row, Value, collect, first, int, text};
use crate::store::error::StoreError;
use crate::tree::hash::hex;

/// Reads a column of a row as a sum has it: a text, or null.
type Read = fn(&dyn Row, usize) -> Result<Option<String>, StoreError>;

const INT: Read = |row, at| Ok(row.int(at)?.map(|value| value.to_string()));
const BOOL: Read = |row, at| Ok(row.bool(at)?.map(|value| value.to_string()));
const TEXT: Read = |row, at| Ok(row.text(at)?.map(ToOwned::to_owned));

/// The sum of a row: the first eight bytes of a SHA-256 over its values, as a big-endian number.
///
/// A value is a byte 0 if it is null; else a byte 1, the number of bytes of its text in eight bytes (big-endian),
/// and the text in UTF-8: of an integer its decimal digits, of a boolean `true` or `false`.
pub(crate) fn sum(values: &[Value<'_>]) -> i64 {
    sum_of(values.iter().map(|value| match value {
        Value::Null => None,
        Value::Bool(value) => Some(value.to_string()),
        Value::Int(value) => Some(value.to_string()),
        Value::Real(value) => Some(value.to_string()),
        Value::Text(value) => Some((*value).to_owned()),
        Value::Bytes(value) => Some(hex(value)),
    }))
}

fn sum_of(values: impl Iterator<Item = Option<String>>) -> i64 {
    let mut hash = Sha256::new();
    for value in values {
        match value {
            None => hash.update([0]),
            Some(text) => {
                hash.update([1]);
                hash.update((text.len() as u64).to_be_bytes());
                hash.update(text.as_bytes());
            }
        }
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.finalize()[..8]);
    i64::from_be_bytes(bytes)
}

/// The rows of a table that have a sum.
struct Summed {
    table: &'static str,
    /// What a row is, for messages.
    row: &'static str,
    columns: &'static [(&'static str, Read)],
    sum: &'static str,
}

/// The values of each sum, in order.
const TABLES: &[Summed] = &[
    Summed {
        table: "session",
        row: "what a context kept of the session",
        columns: &[("runtime", TEXT)],
        sum: "runtime_sum",
    },
    Summed {
        table: "snapshot",
        row: "the time or the usage of a snapshot",
        columns: &[("working", BOOL), ("committed_at_ns", INT), ("usage", TEXT)],
        sum: "check_sum",
    },
    Summed {
        table: "attempt",
        row: "an attempt",
        columns: ATTEMPT,
        sum: "check_sum",
    },
    Summed {
        table: "pin",
        row: "a reference",
        columns: &[
            ("session_id", INT),
            ("pin_id", TEXT),
            ("id", TEXT),
            ("owner", TEXT),
            ("expires_at_ns", INT),
        ],
        sum: "check_sum",
    },
    Summed {
        table: "retired",
        row: "an id that is in use no more",
        columns: &[("session_id", INT), ("id", TEXT)],
        sum: "check_sum",
    },
];

/// A record says whose it is, so that one that was given to another session is found.
const ATTEMPT: &[(&str, Read)] = &[
    ("session_id", INT),
    ("attempt_id", TEXT),
    ("number", INT),
    ("cycle_id", INT),
    ("status", TEXT),
    ("started_at", TEXT),
    ("ended_at", TEXT),
    ("provider", TEXT),
    ("model", TEXT),
    ("params", TEXT),
    ("token_in", INT),
    ("token_out", INT),
    ("error", TEXT),
    ("request", TEXT),
];

const SESSION: &[(&str, Read)] = &[
    ("name", TEXT),
    ("created_at_ns", INT),
    ("source", TEXT),
    ("parent_id", INT),
    ("parent_seq", INT),
    ("meta", TEXT),
];

/// Notes ids that are in use no more.
pub(crate) fn put_retired<'a>(
    database: &mut dyn Database,
    session: i64,
    ids: impl Iterator<Item = &'a str>,
) -> Result<(), StoreError> {
    for id in ids {
        database.execute(
            "insert into retired (session_id, id, check_sum) values (?1, ?2, ?3) on conflict do nothing",
            &[session.into(), id.into(), sum(&[session.into(), id.into()]).into()],
        )?;
    }
    Ok(())
}

/// The number of a session's snapshots and the hash of the last one, in a statement over `session t`: what closes the
/// session, so that snapshots that are missing at its end are noticed.
const END: &str = "(select max(seq) from snapshot where session_id = t.session_id), \
     (select hash from snapshot where session_id = t.session_id order by seq desc limit 1)";

/// The columns that the sum of a row is over, in a statement over `session t`: its own, and [`END`].
fn session_columns() -> String {
    let names: Vec<String> = SESSION
        .iter()
        .map(|(name, _)| format!("t.{name}"))
        .collect();
    format!("{}, {END}", names.join(", "))
}

/// The sum of a row of `session`, whose [`session_columns`] are those from `from` on.
fn session_sum(row: &dyn Row, from: usize) -> Result<i64, StoreError> {
    let mut values = Vec::with_capacity(SESSION.len() + 2);
    for (at, (_, read)) in (from..).zip(SESSION) {
        values.push(read(row, at)?);
    }
    let end = from + SESSION.len();
    values.push(INT(row, end)?);
    values.push(row.bytes(end + 1)?.map(hex));
    Ok(sum_of(values.into_iter()))
}

/// Computes the sum of a row of `session` again, after it or the session's snapshots were changed.
pub(crate) fn seal_session(database: &mut dyn Database, session: i64) -> Result<(), StoreError> {
    let columns = session_columns();
    let sum = first(
        database,
        &format!("select {columns} from session t where session_id = ?1"),
        &[session.into()],
        |row| session_sum(row, 0),
    )?;
    database.execute(
        "update session set check_sum = ?2 where session_id = ?1",
        &[session.into(), sum.into()],
    )?;
    Ok(())
}

/// Computes the sums of a session's attempts again, after they were copied from another session.
pub(crate) fn seal_attempts(database: &mut dyn Database, session: i64) -> Result<(), StoreError> {
    let columns: Vec<&str> = ATTEMPT.iter().map(|(name, _)| *name).collect();
    let sums = collect(
        database,
        &format!(
            "select number, {} from attempt where session_id = ?1",
            columns.join(", ")
        ),
        &[session.into()],
        |row| Ok((int(row, 0)?, sum_of_row(row, 1, ATTEMPT)?)),
    )?;
    for (number, sum) in sums {
        database.execute(
            "update attempt set check_sum = ?3 where session_id = ?1 and number = ?2",
            &[session.into(), number.into(), sum.into()],
        )?;
    }
    Ok(())
}

fn sum_of_row(row: &dyn Row, from: usize, columns: &[(&str, Read)]) -> Result<i64, StoreError> {
    let mut values = Vec::with_capacity(columns.len());
    for (at, (_, read)) in (from..).zip(columns) {
        values.push(read(row, at)?);
    }
    Ok(sum_of(values.into_iter()))
}

/// Whether something holds; what cannot be read does not.
pub(crate) fn holds(found: Result<bool, StoreError>) -> Result<bool, StoreError> {
    match found {
        Err(StoreError::Damaged(_)) => Ok(false),
        other => other,
    }
}

/// The sessions whose row or end is not what the sum of the row says.
fn wrong_sessions(
    database: &mut dyn Database,
) -> Result<Vec<(Option<String>, String)>, StoreError> {
    let statement = format!(
        "select t.name, t.check_sum, {} from session t order by t.name",
        session_columns()
    );
    let rows = collect(database, &statement, &[], |row| {
        let sound = || Ok(session_sum(row, 2)? == int(row, 1)?);
        let name = row.text(0).ok().flatten().map(ToOwned::to_owned);
        Ok((name, holds(sound())?))
    })?;
    let wrong = rows.into_iter().filter(|(_, is_sound)| !is_sound);
    let what =
        "the row of the session is not what its sum says, or the newest snapshots are missing";
    Ok(wrong.map(|(name, _)| (name, what.to_owned())).collect())
}

/// The rows whose sum differs: the name of the session, and what the row is.
pub(crate) fn wrong(
    database: &mut dyn Database,
) -> Result<Vec<(Option<String>, String)>, StoreError> {
    let mut found = Vec::new();
    let formats = collect(
        database,
        "select check_sum, version, written_by from format",
        &[],
        |row| {
            let sound =
                || Ok(row.int(0)? == Some(sum(&[int(row, 1)?.into(), text(row, 2)?.into()])));
            holds(sound())
        },
    )?;
    if formats != [true] {
        found.push((
            None,
            "the row of the layout is not what its sum says".to_owned(),
        ));
    }
    found.extend(wrong_sessions(database)?);
    for table in TABLES {
        let columns: Vec<String> = table
            .columns
            .iter()
            .map(|(name, _)| format!("t.{name}"))
            .collect();
        let rows = collect(
            database,
            &format!(
                "select s.name, t.{}, {} from {} t join session s on s.session_id = t.session_id \
                 order by s.name",
                table.sum,
                columns.join(", "),
                table.table
            ),
            &[],
            |row| {
                let sound = || {
                    // Without a runtime there is nothing to sum.
                    let none = table.sum == "runtime_sum" && row.text(2)?.is_none();
                    let wanted = if none {
                        None
                    } else {
                        Some(sum_of_row(row, 2, table.columns)?)
                    };
                    Ok(row.int(1)? == wanted)
                };
                let name = row.text(0).ok().flatten().map(ToOwned::to_owned);
                Ok((name, holds(sound())?))
            },
        )?;
        let rows = rows.into_iter().filter(|(_, is_sound)| !is_sound);
        found.extend(
            rows.map(|(name, _)| (name, format!("{} is not what its sum says", table.row))),
        );
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{Value, sum};

    #[test]
    fn sums_are_over_defined_bytes() {
        // SHA-256 of 01 00…01 61 00 01 00…02 31 32 01 00…04 74 72 75 65, computed elsewhere.
        let values = [
            Value::Text("a"),
            Value::Null,
            Value::Int(12),
            Value::Bool(true),
        ];
        assert_eq!(sum(&values), -91_580_177_785_060_149);
        assert_ne!(
            sum(&["ab".into(), "c".into()]),
            sum(&["a".into(), "bc".into()])
        );
        assert_ne!(sum(&["".into()]), sum(&[Value::Null]));
    }
}
