//! What the store asks of a database: statements with values, rows, transactions.
//!
//! Statements are written once, in the SQL that SQLite and PostgreSQL share, with parameters `?1`, `?2`, …
//! A backend may rewrite their spelling, and nothing else. This file knows no table.

use crate::store::error::{Result, StoreError};
use crate::store::layout::wide::Wide;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SqlValue<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

macro_rules! value_from {
    ($($given:ty => $variant:ident),+) => {
        $(impl<'a> From<$given> for SqlValue<'a> {
            fn from(value: $given) -> Self {
                Self::$variant(value)
            }
        })+
    };
}

value_from!(i64 => Int, bool => Bool, f64 => Real, &'a str => Text, &'a [u8] => Bytes, &'a [u8; 32] => Bytes);

impl<'a, T: Into<SqlValue<'a>>> From<Option<T>> for SqlValue<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

macro_rules! row_values {
    ($($name:ident $kind:ident $given:ty),+) => {
        $(fn $name(&self, at: usize) -> Result<Option<$given>> {
            Ok(match self.value(at, Type::$kind)? {
                SqlValue::$kind(value) => Some(value),
                _ => None,
            })
        })+
    };
}

/// A row of a result. Columns are numbered from 0; `None` is null.
pub(crate) trait ResultRow {
    /// The value of a column, of this type or null; one of another type is an error.
    fn value(&self, at: usize, kind: Type) -> Result<SqlValue<'_>>;

    row_values!(int Int i64, bool Bool bool, text Text &str, bytes Bytes &[u8]);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Id,
    Int,
    Real,
    Bool,
    Text,
    Bytes,
}

impl Type {
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Id | Self::Int => "an integer",
            Self::Real => "a number",
            Self::Bool => "a truth value",
            Self::Text => "a text",
            Self::Bytes => "bytes",
        }
    }
}

pub(crate) type Each<'e> = &'e mut dyn FnMut(&dyn ResultRow) -> Result<()>;

/// Gets rows, each with the number of the run that it is a result of.
pub(crate) type EachOfRuns<'e> = &'e mut dyn FnMut(usize, &dyn ResultRow) -> Result<()>;

/// Whose SQL a database speaks, for the few statements that differ: the layout and the catalog of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// It sees one state of the store, that of its first statement, until it ends.
    Read,
    /// It writes: the only one that does (SQLite) or that may (PostgreSQL).
    Write,
    /// It writes while no other connection has one that writes. The caller that removes rows that all sessions share
    /// needs it: another session could be about to place them.
    Alone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Savepoint {
    Set,
    /// Its changes stay in the transaction.
    Release,
    /// Drops the changes since.
    Undo,
}

impl Savepoint {
    pub(crate) fn sql(self) -> &'static str {
        match self {
            Self::Set => "savepoint point",
            Self::Release => "release point",
            Self::Undo => "rollback to point; release point",
        }
    }
}

/// One connection. Statements outside a transaction are one each.
pub(crate) trait Database: Send {
    fn dialect(&self) -> Backend;

    /// Runs a statement. Returns the number of rows inserted, changed or deleted.
    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64>;

    /// Inserts a row. That it could not be may be the error of the next statement, or of the end of the transaction.
    fn insert(&mut self, insert: &str, values: &[SqlValue<'_>]) -> Result<()> {
        self.execute(insert, values).map(|_| ())
    }

    /// Runs a statement (also an `insert … returning`) and calls `each` with its rows.
    fn query(&mut self, sql: &str, values: &[SqlValue<'_>], each: Each<'_>) -> Result<()>;

    /// Runs a statement once for each of some rows of values, in their order. A server gets all of them in one message, or in one
    /// for each large part.
    fn query_all(
        &mut self,
        sql: &str,
        runs: &[Vec<SqlValue<'_>>],
        each: EachOfRuns<'_>,
    ) -> Result<()> {
        let mut runs = runs.iter().enumerate();
        runs.try_for_each(|(at, values)| self.query(sql, values, &mut |row| each(at, row)))
    }

    /// Inserts a row `on conflict … do nothing` into a table that gives out ids, in the column `id`. Returns the new id; `None`
    /// if the row is there already.
    fn insert_once(
        &mut self,
        insert: &str,
        id: &str,
        values: &[SqlValue<'_>],
    ) -> Result<Option<i64>> {
        let mut made = None;
        self.query(&format!("{insert} returning {id}"), values, &mut |row| {
            made = Some(int(row, 0)?);
            Ok(())
        })?;
        Ok(made)
    }

    /// Runs `select COLUMNS REST`, whose columns have these types, and puts the rows into `into`, which is emptied first.
    fn query_wide(
        &mut self,
        columns: &str,
        kinds: &[Type],
        rest: &str,
        values: &[SqlValue<'_>],
        into: &mut Wide,
    ) -> Result<()> {
        into.clear();
        let sql = format!("select {columns} {rest}");
        self.query(&sql, values, &mut |row| {
            let start = into.end();
            for (at, kind) in kinds.iter().enumerate() {
                match kind {
                    Type::Bool => into.add_int(row.bool(at)?.map(i64::from)),
                    Type::Text => into.add_text(row.text(at)?.map(str::as_bytes)),
                    _ => into.add_int(row.int(at)?),
                }
            }
            into.add_row(start);
            Ok(())
        })
    }

    fn begin(&mut self, begin: Begin) -> Result<()>;

    /// Ends the transaction. With an error, nothing of it was kept, or it is not known whether all was.
    fn commit(&mut self) -> Result<()>;

    /// Ends the transaction and drops its changes. Errors are not of interest.
    fn rollback(&mut self);

    fn savepoint(&mut self, what: Savepoint) -> Result<()>;

    /// The time of the database's clock, in nanoseconds since 1970.
    fn now_ns(&mut self) -> Result<i64>;

    /// Whether it keeps others from the store as long as it is open.
    fn is_alone(&self) -> bool {
        false
    }

    /// A number that differs from the one before if another connection has committed in between.
    fn data_version(&mut self) -> Result<i64>;

    /// Copies the store, as it is at one moment, to a new SQLite file, while others write.
    fn backup(&mut self, to: &std::path::Path) -> Result<()>;

    /// Makes what was deleted by committed transactions unreadable in the database's files too, as far as
    /// no older reader is at work, for which it waits this long. Gives free space at the end back. Returns whether it is
    /// done; a reader holds what was deleted otherwise. Not inside a transaction.
    fn scrub(&mut self, patience: Duration) -> Result<bool>;

    /// Writes all pages again, as those that are in use may have copies of what was deleted, and gives all free space
    /// back. Then as [`Database::scrub`]. Linear in the store.
    fn vacuum(&mut self, patience: Duration) -> Result<bool>;
}

pub(crate) fn transaction<T, E: From<StoreError>>(
    database: &mut dyn Database,
    begin: Begin,
    work: impl FnOnce(&mut dyn Database) -> Result<T, E>,
) -> Result<T, E> {
    database.begin(begin)?;
    // The connection is used again, so a transaction ends also where the work unwinds.
    let done = match catch_unwind(AssertUnwindSafe(|| work(database))) {
        Ok(done) => done,
        Err(panic) => {
            database.rollback();
            resume_unwind(panic)
        }
    };
    // What was read was read; SQLite refuses to commit after it has met a damaged page.
    let done = match done {
        Ok(value) if begin != Begin::Read => database.commit().map(|()| value).map_err(E::from),
        done => done,
    };
    if done.is_err() || begin == Begin::Read {
        database.rollback();
    }
    done
}

/// Ends a part of a transaction that began at a savepoint: nothing of it stays if it failed. The outer error is of the
/// whole transaction, which is gone then: SQLite takes all of it back when the disk is full.
pub(crate) fn end_part<T, E: From<StoreError>>(
    database: &mut dyn Database,
    done: Result<T, E>,
) -> Result<Result<T, E>, E> {
    match done {
        Ok(value) => {
            database.savepoint(Savepoint::Release)?;
            Ok(Ok(value))
        }
        Err(error) => match database.savepoint(Savepoint::Undo) {
            Ok(()) => Ok(Err(error)),
            Err(_) => Err(error),
        },
    }
}

pub(crate) fn collect<T>(
    database: &mut dyn Database,
    sql: &str,
    values: &[SqlValue<'_>],
    mut read: impl FnMut(&dyn ResultRow) -> Result<T>,
) -> Result<Vec<T>> {
    let mut all = Vec::new();
    database.query(sql, values, &mut |row| {
        all.push(read(row)?);
        Ok(())
    })?;
    Ok(all)
}

/// As [`collect`], for at most one row.
pub(crate) fn first<T>(
    database: &mut dyn Database,
    sql: &str,
    values: &[SqlValue<'_>],
    read: impl FnMut(&dyn ResultRow) -> Result<T>,
) -> Result<Option<T>> {
    Ok(collect(database, sql, values, read)?.pop())
}

/// The parameters of a list that is not empty. The last number fills it up, so that there are few different statements.
pub(crate) fn parameters(numbers: &[i64]) -> (String, Vec<SqlValue<'static>>) {
    let filled = numbers.len().next_power_of_two();
    let last = numbers.last().into_iter().cycle();
    let values = numbers.iter().chain(last).take(filled);
    let names: Vec<String> = (1..=filled).map(|at| format!("?{at}")).collect();
    (
        names.join(", "),
        values.map(|number| SqlValue::Int(*number)).collect(),
    )
}

/// An integer that is never null.
pub(crate) fn int(row: &dyn ResultRow, at: usize) -> Result<i64> {
    row.int(at)?.ok_or_else(|| null(at))
}

/// A text that is never null.
pub(crate) fn text(row: &dyn ResultRow, at: usize) -> Result<&str> {
    row.text(at)?.ok_or_else(|| null(at))
}

pub(crate) fn digest(row: &dyn ResultRow, at: usize) -> Result<[u8; 32]> {
    let bytes = row.bytes(at)?.ok_or_else(|| null(at))?;
    let wrong = || StoreError::Damaged(format!("a hash of {} bytes", bytes.len()));
    bytes.try_into().map_err(|_| wrong())
}

#[cold]
fn null(at: usize) -> StoreError {
    StoreError::Damaged(format!("column {at} of a result is null"))
}

pub(crate) fn ints(
    database: &mut dyn Database,
    sql: &str,
    values: &[SqlValue<'_>],
) -> Result<Vec<i64>> {
    collect(database, sql, values, |row| int(row, 0))
}

/// The integer of a result of one row; `None` if there is no row, or it is null.
pub(crate) fn one_int(
    database: &mut dyn Database,
    sql: &str,
    values: &[SqlValue<'_>],
) -> Result<Option<i64>> {
    Ok(first(database, sql, values, |row| row.int(0))?.flatten())
}

pub(crate) fn texts(
    database: &mut dyn Database,
    sql: &str,
    values: &[SqlValue<'_>],
) -> Result<Vec<String>> {
    collect(database, sql, values, |row| Ok(text(row, 0)?.to_owned()))
}
