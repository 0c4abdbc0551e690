//! A copy into a store.
//!
//! Everything is read back as rows and inserted once; then every unit, every chain and every sum is checked as
//! `verify` does, so an altered copy is refused and the store stays as it was.

use std::path::Path;

use hashbrown::HashMap;

use super::file::{WrittenFile, hash_of};
use super::manifest::{BucketManifest, CopyManifest};
use super::read::FileRows;
use crate::store::database::sql::{Database, ResultRow, SqlValue, first, int, text};
use crate::store::error::StoreError;
use crate::store::layout::encode::{StoredBody, body_hash};
use crate::store::layout::rows::{put_body, put_key};
use crate::store::layout::schema::{StoreColumn, insert, sum, table};
use crate::store::layout::sums::{update_attempt_sums, update_session_sum};
use crate::store::manage::verify::{session as check_session, unit_faults};
use crate::store::{Store, catalog};
use crate::support::diag::Error;

/// What [`Store::import_parquet`] brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParquetImported {
    /// Sessions.
    pub sessions: u64,
    /// Their snapshots.
    pub snapshots: u64,
}

impl Store {
    /// Inserts the sessions of a copy, with their names, in one transaction. Their snapshots have the canonical
    /// bytes that were exported, and every unit and every chain of hashes is checked. Linear in the copy.
    ///
    /// # Errors
    /// `E_SESSION_EXISTS`; the directory is not a copy, or it was altered, or an export to it was ended early;
    /// those of the database. The store is as it was then.
    pub fn import_parquet(&self, directory: impl AsRef<Path>) -> Result<ParquetImported, Error> {
        let root = directory.as_ref();
        let done = self.core.write(|database| {
            import(database, root).map_err(|error| match error {
                StoreError::Damaged(what) => StoreError::Copy(what),
                other => other,
            })
        });
        Ok(done?)
    }
}

/// Inserts the sessions of a copy, inside a transaction that writes. Linear in the copy; the memory of a row group, of
/// the numbers of sessions, and of those of a bucket's units. What is damaged is [`StoreError::Copy`].
fn import(database: &mut dyn Database, root: &Path) -> Result<ParquetImported, StoreError> {
    let Some(copy) = CopyManifest::read(root)? else {
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
    // It is not read otherwise.
    whole(&copy, "format")?.check(root)?;
    let mut buckets = Vec::with_capacity(copy.state.len());
    for (number, hash) in &copy.state {
        match BucketManifest::read(root, *number)? {
            Some(bucket) if hash_of(&BucketManifest::path(root, *number))? == *hash => {
                buckets.push(bucket)
            }
            _ => return unfinished(),
        }
    }
    let mut run = ImportRun {
        root,
        sessions: HashMap::new(),
        imports: ParquetImported::default(),
    };
    run.sessions(database, whole(&copy, "session")?)?;
    let snapshots = whole(&copy, "snapshot")?;
    run.imports.snapshots = run.rows(database, snapshots, "snapshot", &UnitNumbers::new())?;
    for bucket in &buckets {
        run.bucket(database, bucket)?;
    }
    run.finish(database)?;
    Ok(run.imports)
}

fn whole<'c>(copy: &'c CopyManifest, name: &str) -> Result<&'c WrittenFile, StoreError> {
    let path = format!("{name}/{name}.parquet");
    let found = copy.files.iter().find(|file| file.path == path);
    found.ok_or_else(|| StoreError::Damaged(format!("there is no file {path}")))
}

struct ImportRun<'r> {
    root: &'r Path,
    /// Of each session of the copy its number in the store.
    sessions: HashMap<i64, i64>,
    imports: ParquetImported,
}

/// Units by their numbers in the copy: the number in the store, and whether it is new there.
type UnitNumbers = HashMap<i64, (i64, bool)>;

impl ImportRun<'_> {
    fn sessions(
        &mut self,
        database: &mut dyn Database,
        file: &WrittenFile,
    ) -> Result<(), StoreError> {
        let rows = FileRows::open(self.root, file, table("session"))?;
        let at = |name| rows.at(name);
        let mut parents = Vec::new();
        rows.read(&mut |row| {
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

    fn bucket(
        &self,
        database: &mut dyn Database,
        bucket: &BucketManifest,
    ) -> Result<(), StoreError> {
        let mut units = UnitNumbers::new();
        for file in bucket.files("unit") {
            self.units(database, file, &mut units)?;
        }
        for name in ["node", "attr"] {
            for file in bucket.files(name) {
                self.rows(database, file, name, &units)?;
            }
        }
        for (unit, is_new) in units.values() {
            if *is_new {
                let faults = unit_faults(database, "where unit_id = ?1", &[(*unit).into()])?;
                if let Some((_, fault)) = faults.into_iter().next() {
                    return Err(StoreError::Damaged(fault));
                }
            }
        }
        for name in ["placement", "attempt", "pin", "retired"] {
            for file in bucket.files(name) {
                self.rows(database, file, name, &units)?;
            }
        }
        Ok(())
    }

    fn units(
        &self,
        database: &mut dyn Database,
        file: &WrittenFile,
        units: &mut UnitNumbers,
    ) -> Result<(), StoreError> {
        let rows = FileRows::open(self.root, file, table("unit"))?;
        let at = |name| rows.at(name);
        rows.read(&mut |row| {
            known(&self.sessions, row, at("session_id"), "session")?;
            let key = [
                text(row, at("kind"))?.into(),
                row.bytes(at("hash"))?.into(),
                int(row, at("spelling"))?.into(),
            ];
            let unit = put_key(database, &key)?;
            units.insert(int(row, at("unit_id"))?, unit);
            Ok(())
        })
    }

    /// Inserts the rows of a table under the numbers of the store, without those of units that were there before. Returns
    /// how many were inserted.
    fn rows(
        &self,
        database: &mut dyn Database,
        file: &WrittenFile,
        name: &str,
        units: &UnitNumbers,
    ) -> Result<u64, StoreError> {
        let table = table(name);
        let rows = FileRows::open(self.root, file, table)?;
        let at = |name| rows.at(name);
        // The sum is not in the file: it is computed.
        let mut columns: Vec<StoreColumn> = table.columns().collect();
        columns.retain(|column| column.name != "check_sum");
        let places: Vec<usize> = columns.iter().map(|column| at(column.name)).collect();
        let mut count = 0;
        rows.read(&mut |row| {
            let mut values: Vec<SqlValue<'_>> = Vec::with_capacity(columns.len());
            for (StoreColumn { name, kind, .. }, at) in columns.iter().zip(&places) {
                values.push(match (table.name, *name) {
                    (_, "session_id") => known(&self.sessions, row, *at, "session")?.into(),
                    ("node" | "attr", "unit_id") => match known(units, row, *at, "unit")? {
                        (unit, true) => unit.into(),
                        (_, false) => return Ok(()),
                    },
                    (_, "unit_id") => known(units, row, *at, "unit")?.0.into(),
                    (_, "body_id") => SqlValue::Null,
                    ("snapshot", "working") => false.into(),
                    _ => row.value(*at, *kind)?,
                });
            }
            if name == "node"
                && let Some(text) = row.text(at("content"))?
            {
                let json = row.bool(at("content_json"))?.unwrap_or(false);
                let (hash, text) = (body_hash(json, text), text.to_owned());
                let body = put_body(database, &StoredBody { hash, json, text })?;
                let place = columns.iter().position(|column| column.name == "body_id");
                if let Some(place) = place {
                    values[place] = body.into();
                }
            }
            count += 1;
            insert(database, table.name, &values)
        })?;
        Ok(count)
    }

    fn finish(&self, database: &mut dyn Database) -> Result<(), StoreError> {
        let mut sessions: Vec<i64> = self.sessions.values().copied().collect();
        sessions.sort_unstable();
        let mut found = Vec::new();
        for session in sessions {
            update_attempt_sums(database, session)?;
            update_session_sum(database, session)?;
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

fn known<T: Copy>(
    all: &HashMap<i64, T>,
    row: &dyn ResultRow,
    at: usize,
    what: &str,
) -> Result<T, StoreError> {
    let number = int(row, at)?;
    let known = all.get(&number).copied();
    known.ok_or_else(|| StoreError::Damaged(format!("there is no {what} {number}")))
}
