//! A copy into a store.
//!
//! Everything is read back as rows and inserted once; then every unit, every chain and every sum is checked as
//! `verify` does, so an altered copy is refused and the store stays as it was.

use std::path::Path;

use hashbrown::HashMap;

use super::columns::{Column, table};
use super::file::Written;
use super::manifest::{Bucket, Copy};
use super::read::FileRows;
use crate::index::UnitKind;
use crate::store::catalog;
use crate::store::database::sql::{Database, Row, Value, first, int, text};
use crate::store::error::StoreError;
use crate::store::layout::encode::{Body, body_hash};
use crate::store::layout::rows::{insert, put_body, put_key};
use crate::store::layout::sums::{put_retired, seal_attempts, seal_session, sum};
use crate::store::manage::verify::{session as check_session, unit_fault};

/// What an import brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Imports {
    pub(crate) sessions: u64,
    pub(crate) snapshots: u64,
}

/// Inserts the sessions of a copy. Runs inside a transaction that writes. Linear in the copy; the memory of a
/// row group, of the numbers of sessions, and of those of a bucket's units.
///
/// # Errors
/// [`StoreError::Exists`] if the store has a session of a name; [`StoreError::Copy`] if the copy is not whole or
/// was altered; those of the database and of the file system.
pub(crate) fn import(database: &mut dyn Database, root: &Path) -> Result<Imports, StoreError> {
    let done = import_all(database, root);
    done.map_err(|error| match error {
        StoreError::Damaged(what) => StoreError::Copy(what),
        other => other,
    })
}

fn import_all(database: &mut dyn Database, root: &Path) -> Result<Imports, StoreError> {
    let Some(copy) = Copy::read(root)? else {
        return Err(StoreError::Refused(format!(
            "{} is not a copy of a store",
            root.display()
        )));
    };
    let unfinished = || {
        let why = "an export to it was ended early; export again";
        Err(StoreError::Copy(format!("{}: {why}", root.display())))
    };
    if copy.files.is_empty() {
        return unfinished();
    }
    let mut buckets = Vec::with_capacity(copy.state.len());
    for (number, hash) in &copy.state {
        match Bucket::read(root, *number)? {
            Some(bucket) if Bucket::hash(root, *number)? == *hash => buckets.push(bucket),
            _ => return unfinished(),
        }
    }
    let mut run = Run {
        root,
        sessions: HashMap::new(),
        imports: Imports::default(),
    };
    run.sessions(database, whole(&copy, "session")?)?;
    run.snapshots(database, whole(&copy, "snapshot")?)?;
    for bucket in &buckets {
        run.bucket(database, bucket)?;
    }
    run.finish(database)?;
    Ok(run.imports)
}

/// The file of a table that is whole.
fn whole<'c>(copy: &'c Copy, name: &str) -> Result<&'c Written, StoreError> {
    let path = format!("{name}/{name}.parquet");
    let found = copy.files.iter().find(|file| file.path == path);
    found.ok_or_else(|| StoreError::Damaged(format!("there is no file {path}")))
}

/// An import that is running.
struct Run<'r> {
    root: &'r Path,
    /// Of each session of the copy its number in the store.
    sessions: HashMap<i64, i64>,
    imports: Imports,
}

/// Units by their numbers in the copy: the number in the store, and whether it is new there.
type Units = HashMap<i64, (i64, bool)>;

/// Where a column is in a file.
fn place(columns: &[Column], name: &str) -> usize {
    let found = columns.iter().position(|(column, _)| *column == name);
    found.unwrap_or(usize::MAX)
}

impl Run<'_> {
    /// The number in the store of the session that a row is of.
    fn session(&self, row: &dyn Row, at: usize) -> Result<i64, StoreError> {
        let session = int(row, at)?;
        let known = self.sessions.get(&session).copied();
        known.ok_or_else(|| StoreError::Damaged(format!("there is no session {session}")))
    }

    fn sessions(&mut self, database: &mut dyn Database, file: &Written) -> Result<(), StoreError> {
        let table = table("session");
        let columns = table.columns();
        let at = |name: &str| place(&columns, name);
        let mut parents = Vec::new();
        FileRows::open(self.root, file, table)?.read(&mut |row| {
            let name = text(row, at("name"))?;
            catalog::check_name(name)?;
            let runtime = row.text(at("runtime"))?;
            let made = first(
                database,
                "insert into session (name, created_at_ns, source, meta, runtime, runtime_sum, changed) \
                 values (?1, ?2, ?3, ?4, ?5, ?6, 1) on conflict (name) do nothing returning session_id",
                &[
                    name.into(),
                    int(row, at("created_at_ns"))?.into(),
                    row.text(at("source"))?.into(),
                    row.text(at("meta"))?.into(),
                    runtime.into(),
                    runtime.map(|runtime| sum(&[runtime.into()])).into(),
                ],
                |row| int(row, 0),
            )?;
            let made = made.ok_or_else(|| StoreError::Exists(name.to_owned()))?;
            if self.sessions.insert(int(row, at("session_id"))?, made).is_some() {
                return Err(StoreError::Damaged("two sessions have one number".to_owned()));
            }
            let parent = row.int(at("parent_id"))?.zip(row.int(at("parent_seq"))?);
            parents.extend(parent.map(|parent| (made, parent)));
            self.imports.sessions += 1;
            Ok(())
        })?;
        for (session, (parent, seq)) in parents {
            // As if a parent that is not in the copy had been deleted.
            if let Some(parent) = self.sessions.get(&parent) {
                database.execute(
                    "update session set parent_id = ?2, parent_seq = ?3 where session_id = ?1",
                    &[session.into(), (*parent).into(), seq.into()],
                )?;
            }
        }
        Ok(())
    }

    fn snapshots(&mut self, database: &mut dyn Database, file: &Written) -> Result<(), StoreError> {
        let table = table("snapshot");
        let columns = table.columns();
        let at = |name: &str| place(&columns, name);
        let kept: Vec<Column> = columns
            .iter()
            .copied()
            .filter(|(name, _)| *name != "bucket")
            .collect();
        let mut names: Vec<&str> = kept.iter().map(|(name, _)| *name).collect();
        names.push("check_sum");
        let insert = insert("snapshot", names.iter().copied());
        FileRows::open(self.root, file, table)?.read(&mut |row| {
            let mut values = Vec::with_capacity(names.len());
            for (name, kind) in &kept {
                values.push(match *name {
                    "session_id" => self.session(row, at(name))?.into(),
                    "working" => false.into(),
                    _ => kind.value(row, at(name))?,
                });
            }
            let time = int(row, at("committed_at_ns"))?;
            let usage = row.text(at("usage"))?;
            values.push(sum(&[false.into(), time.into(), usage.into()]).into());
            database.execute(&insert, &values)?;
            self.imports.snapshots += 1;
            Ok(())
        })
    }

    fn bucket(&mut self, database: &mut dyn Database, bucket: &Bucket) -> Result<(), StoreError> {
        let mut units = Units::new();
        for file in bucket.files("unit") {
            self.units(database, file, &mut units)?;
        }
        for file in bucket.files("node") {
            self.nodes(database, file, &units)?;
        }
        for file in bucket.files("attr") {
            self.attrs(database, file, &units)?;
        }
        for (unit, is_new) in units.values() {
            if *is_new {
                check_unit(database, *unit)?;
            }
        }
        for file in bucket.files("placement") {
            self.rows(database, file, "placement", &units)?;
        }
        for file in bucket.files("attempt") {
            self.rows(database, file, "attempt", &units)?;
        }
        for file in bucket.files("pin") {
            self.rows(database, file, "pin", &units)?;
        }
        for file in bucket.files("retired") {
            FileRows::open(self.root, file, table("retired"))?.read(&mut |row| {
                let (session, id) = (self.session(row, 0)?, text(row, 1)?);
                put_retired(database, session, std::iter::once(id))
            })?;
        }
        Ok(())
    }

    fn units(
        &self,
        database: &mut dyn Database,
        file: &Written,
        units: &mut Units,
    ) -> Result<(), StoreError> {
        let table = table("unit");
        let columns = table.columns();
        let at = |name: &str| place(&columns, name);
        FileRows::open(self.root, file, table)?.read(&mut |row| {
            self.session(row, at("session_id"))?;
            let key = [
                text(row, at("kind"))?.into(),
                row.bytes(at("hash"))?.into(),
                int(row, at("spelling"))?.into(),
            ];
            let known = put_key(database, &key)?;
            units.insert(int(row, at("unit_id"))?, known);
            Ok(())
        })
    }

    fn nodes(
        &self,
        database: &mut dyn Database,
        file: &Written,
        units: &Units,
    ) -> Result<(), StoreError> {
        let table = table("node");
        let columns = table.columns();
        let at = |name: &str| place(&columns, name);
        let own = |column: &&Column| !["session_id", "content", "content_json"].contains(&column.0);
        let kept: Vec<Column> = columns.iter().filter(own).copied().collect();
        let names: Vec<&str> = kept.iter().map(|(name, _)| *name).collect();
        let insert = insert("node", names.iter().copied());
        FileRows::open(self.root, file, table)?.read(&mut |row| {
            let (unit, is_new) = unit_of(row, at("unit_id"), units)?;
            if !is_new {
                return Ok(());
            }
            let body = match row.text(at("content"))? {
                None => None,
                Some(text) => {
                    let json = row.bool(at("content_json"))?.unwrap_or(false);
                    let text = text.to_owned();
                    let hash = body_hash(json, &text);
                    Some(put_body(database, &Body { hash, json, text })?)
                }
            };
            let mut values = Vec::with_capacity(names.len());
            for (name, kind) in &kept {
                values.push(match *name {
                    "unit_id" => unit.into(),
                    "body_id" => body.into(),
                    _ => kind.value(row, at(name))?,
                });
            }
            database.execute(&insert, &values)?;
            Ok(())
        })
    }

    fn attrs(
        &self,
        database: &mut dyn Database,
        file: &Written,
        units: &Units,
    ) -> Result<(), StoreError> {
        let table = table("attr");
        let columns = table.columns();
        let at = |name: &str| place(&columns, name);
        let own = |column: &&Column| column.0 != "session_id";
        let kept: Vec<Column> = columns.iter().filter(own).copied().collect();
        let names: Vec<&str> = kept.iter().map(|(name, _)| *name).collect();
        let insert = insert("attr", names.iter().copied());
        FileRows::open(self.root, file, table)?.read(&mut |row| {
            let (unit, is_new) = unit_of(row, at("unit_id"), units)?;
            if !is_new {
                return Ok(());
            }
            let mut values = Vec::with_capacity(names.len());
            for (name, kind) in &kept {
                values.push(match *name {
                    "unit_id" => unit.into(),
                    _ => kind.value(row, at(name))?,
                });
            }
            database.execute(&insert, &values)?;
            Ok(())
        })
    }

    /// The rows of a small table.
    fn rows(
        &self,
        database: &mut dyn Database,
        file: &Written,
        name: &'static str,
        units: &Units,
    ) -> Result<(), StoreError> {
        let table = table(name);
        let columns = table.columns();
        let mut names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let summed = name != "placement";
        if summed {
            names.push("check_sum");
        }
        let insert = insert(name, names.iter().copied());
        FileRows::open(self.root, file, table)?.read(&mut |row| {
            let mut values: Vec<Value<'_>> = Vec::with_capacity(names.len());
            for (at, (column, kind)) in columns.iter().enumerate() {
                values.push(match *column {
                    "session_id" => self.session(row, at)?.into(),
                    "unit_id" => unit_of(row, at, units)?.0.into(),
                    _ => kind.value(row, at)?,
                });
            }
            if summed {
                values.push(sum(&values).into());
            }
            database.execute(&insert, &values)?;
            Ok(())
        })
    }

    /// Seals and checks the sessions.
    fn finish(&self, database: &mut dyn Database) -> Result<(), StoreError> {
        let mut sessions: Vec<i64> = self.sessions.values().copied().collect();
        sessions.sort_unstable();
        let mut found = Vec::new();
        for session in sessions {
            seal_attempts(database, session)?;
            seal_session(database, session)?;
            let Some(entry) = catalog::by_id(database, session)? else {
                continue;
            };
            check_session(database, &entry, &mut found)?;
            if let Some((_, _, what)) = found.pop() {
                let name = &entry.name;
                return Err(StoreError::Damaged(format!("session `{name}`: {what}")));
            }
        }
        Ok(())
    }
}

/// The unit that a row is of.
fn unit_of(row: &dyn Row, at: usize, units: &Units) -> Result<(i64, bool), StoreError> {
    let unit = int(row, at)?;
    let known = units.get(&unit).copied();
    known.ok_or_else(|| StoreError::Damaged(format!("there is no unit {unit}")))
}

/// Compares a unit that was inserted with its hash.
fn check_unit(database: &mut dyn Database, unit: i64) -> Result<(), StoreError> {
    let row = first(
        database,
        "select kind, hash, spelling from unit where unit_id = ?1",
        &[unit.into()],
        |row| {
            let hash = row.bytes(1)?.map(<[u8]>::to_vec);
            Ok((text(row, 0)?.to_owned(), hash, row.int(2)?))
        },
    )?;
    let Some((kind, hash, spelling)) = row else {
        return Ok(());
    };
    let fault = match UnitKind::parse(&kind) {
        None => Some(format!("a unit has the unknown kind {kind:?}")),
        Some(kind) => unit_fault(database, unit, kind, (hash.as_deref(), spelling))?,
    };
    fault.map_or(Ok(()), |fault| Err(StoreError::Damaged(fault)))
}
