//! Sums of rows that no hash covers, so that `verify` finds whatever was altered.

use sha2::{Digest, Sha256};

use crate::store::database::sql::{Database, Row, Value, collect, first, int, text};
use crate::store::error::StoreError;
use crate::tree::hash::hex;

/// A column of a row, and how it is read.
type Read = fn(&dyn Row, usize) -> Result<String, StoreError>;

const INT: Read = |row, at| Ok(format!("{:?}", Value::from(row.int(at)?)));
const BOOL: Read = |row, at| {
    Ok(format!(
        "{:?}",
        row.bool(at)?.map_or(Value::Null, Value::Bool)
    ))
};
const TEXT: Read = |row, at| Ok(format!("{:?}", Value::from(row.text(at)?)));

/// The sum of a row: eight bytes of a hash over these values.
pub(crate) fn sum(values: &[Value<'_>]) -> i64 {
    sum_of(values.iter().map(|value| format!("{value:?}")))
}

fn sum_of(values: impl Iterator<Item = String>) -> i64 {
    let mut hash = Sha256::new();
    for value in values {
        hash.update(value.as_bytes());
        hash.update(b"\n");
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

/// A row of `session` as its sum has it.
///
/// The sum has three parts, from its highest bits: 16 bits of the counter of the session's changes, 24 bits of the hash of
/// the counter and the row, and 24 of the hash of these and of what closes the session. A program that knows no ends
/// counts its changes and leaves the sum as it was. Then the counter is another one, and the sum says nothing of the end.
struct Summary {
    /// Its columns.
    row: Vec<String>,
    /// The counter of its changes.
    changed: i64,
    /// The number and the hash of its last snapshot.
    end: [String; 2],
}

impl Summary {
    /// Of the columns of a row from `from` on, its counter, and [`END`].
    fn read(row: &dyn Row, from: usize) -> Result<Self, StoreError> {
        let mut values = Vec::with_capacity(SESSION.len());
        for (at, (_, read)) in (from..).zip(SESSION) {
            values.push(read(row, at)?);
        }
        let after = from + SESSION.len();
        let hash = row.bytes(after + 2)?.map(hex).unwrap_or_default();
        Ok(Self {
            row: values,
            changed: int(row, after)?,
            end: [INT(row, after + 1)?, hash],
        })
    }

    /// The columns that the sum of a row is over, and [`END`], in a statement over `session t`.
    fn columns() -> String {
        let names: Vec<String> = SESSION
            .iter()
            .map(|(name, _)| format!("t.{name}"))
            .collect();
        format!("{}, t.changed, {END}", names.join(", "))
    }

    /// The sum.
    fn sum(&self) -> i64 {
        let part = |values: &[&[String]]| {
            let count = std::iter::once(format!("{}", self.changed & COUNTER));
            let values = values.iter().flat_map(|values| values.iter().cloned());
            sum_of(count.chain(values)) & PART
        };
        let (row, end) = (part(&[&self.row]), part(&[&self.row, &self.end]));
        (self.changed & COUNTER) << 48 | row << 24 | end
    }

    /// Whether a sum is that of this row and this end, or that of an earlier program.
    fn fits(&self, sum: i64) -> bool {
        let counter = sum >> 48 & COUNTER;
        if counter != self.changed & COUNTER {
            // It was written before another program changed the session.
            let then = Self {
                row: self.row.clone(),
                changed: counter,
                end: self.end.clone(),
            };
            if then.sum() >> 24 == sum >> 24 {
                return true;
            }
        }
        let row = || self.row.iter().cloned();
        sum == self.sum() || sum == sum_of(row()) || sum == sum_of(row().chain(self.end.clone()))
    }
}

/// The bits of the counter, and of a hash, in the sum of a session.
const COUNTER: i64 = 0xffff;
const PART: i64 = 0xff_ffff;

/// Computes the sum of a row of `session` again, after it or the session's snapshots were changed.
pub(crate) fn seal_session(database: &mut dyn Database, session: i64) -> Result<(), StoreError> {
    let columns = Summary::columns();
    let sum = first(
        database,
        &format!("select {columns} from session t where session_id = ?1"),
        &[session.into()],
        |row| Ok(Summary::read(row, 0)?.sum()),
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
        Summary::columns()
    );
    let rows = collect(database, &statement, &[], |row| {
        let sound = || Ok(Summary::read(row, 2)?.fits(int(row, 1)?));
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
    use super::{Summary, sum_of};

    fn summary(name: &str, changed: i64, end: &str) -> Summary {
        Summary {
            row: vec![name.to_owned(), "Null".to_owned()],
            changed,
            end: ["Int(3)".to_owned(), end.to_owned()],
        }
    }

    #[test]
    fn a_sum_fits_its_row_and_its_end() {
        for changed in [0, 7, 0xffff, 0x1_0003] {
            let sum = summary("a", changed, "e").sum();
            assert!(summary("a", changed, "e").fits(sum));
            assert!(!summary("b", changed, "e").fits(sum));
            assert!(!summary("a", changed, "other").fits(sum));
            // Another program has changed the session since, and left the sum.
            assert!(summary("a", changed + 1, "other").fits(sum));
            assert!(!summary("b", changed + 1, "other").fits(sum));
            for bit in 0..64 {
                let altered = sum ^ 1 << bit;
                assert!(!summary("a", changed, "e").fits(altered), "bit {bit}");
            }
        }
    }

    #[test]
    fn sums_of_earlier_programs_fit() {
        let now = summary("a", 5, "e");
        let row = || now.row.iter().cloned();
        for sum in [sum_of(row()), sum_of(row().chain(now.end.clone()))] {
            assert!(now.fits(sum));
            assert!(!summary("b", 5, "e").fits(sum));
        }
    }
}
