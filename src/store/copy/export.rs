//! A store into a copy: what is new since the copy was written last.
//!
//! A bucket whose sessions have not changed is left as it is. Where sessions only grew, the new units are another file
//! of the bucket, and the small tables are replaced. Where history was altered (pruned, erased, deleted), or too
//! many files have gathered, the bucket is written rewrites, with other numbers of units: placements, which are
//! one file, decide which units are seen, so none is seen twice while the old and the new files are both there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hashbrown::HashSet;

use super::changes::{by_bucket, is_as, number, of, placed};
use super::columns::table;
use super::file::{FileWriter, Written};
use super::layout::{Place, TABLES, Table};
use super::manifest::{Bucket, Copy, DIRECTORY, Exported, Lock, MOST_BUCKETS, sync};
use super::sweep::{clean, sweep};
use crate::store::database::sql::{Database, Value, first, int};
use crate::store::error::StoreError;
use crate::store::write::change::IN_FORCE;

/// The number of buckets, unless the caller says.
const BUCKETS: i64 = 256;

/// The most files that are added to a bucket before it is rewritten.
const MOST_PARTS: i64 = 16;

/// What is copied.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExportOptions {
    /// The pattern of names.
    pub(crate) sessions: String,
    /// Only sessions with a commit at or after this time.
    pub(crate) since_ns: Option<i64>,
    /// The number of buckets, for a new copy.
    pub(crate) buckets: Option<u32>,
}

/// What an export wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exports {
    /// The sessions and snapshots that the copy has now.
    pub(crate) sessions: u64,
    pub(crate) snapshots: u64,
    /// The versions of units that were added, once for each session.
    pub(crate) units: u64,
    /// The buckets that were written.
    pub(crate) written: u64,
    /// The bytes that were written.
    pub(crate) bytes: u64,
}

/// Writes what a copy lacks. Runs inside a transaction that reads. Linear in the sessions and snapshots, and in
/// what is new; the memory of a row group of each table, and of the numbers of sessions.
///
/// # Errors
/// The directory has something else, or a copy with other settings, or another program writes it; those of the
/// database and of the file system. What was finished stays, and the next export goes on from there.
pub(crate) fn export(
    database: &mut dyn Database,
    root: &Path,
    options: &ExportOptions,
) -> Result<Exports, StoreError> {
    check_empty(root)?;
    let _lock = Lock::take(root)?;
    let mut copy = begin(root, options)?;
    let known = sweep(root)?;
    let newest = first(database, "select max(unit_id) from unit", &[], |row| {
        row.int(0)
    })?;
    number(0, 0, newest.flatten().unwrap_or(0))?;
    let sessions = by_bucket(database, &copy)?;
    let mut run = Run {
        root,
        exports: Exports::default(),
    };
    copy.state.clear();
    for bucket in sessions
        .keys()
        .copied()
        .chain(known)
        .collect::<BTreeSet<_>>()
    {
        let listed = sessions.get(&bucket).map_or(&[][..], |all| all);
        if listed.is_empty() && bucket != 0 {
            run.drop_bucket(bucket)?;
            continue;
        }
        run.bucket(database, bucket, listed)?;
        copy.state.push((bucket, Bucket::hash(root, bucket)?));
    }
    let all: Vec<&Exported> = sessions.values().flatten().collect();
    copy.files = run.whole(database, &copy, all)?;
    copy.write(root)?;
    Ok(run.exports)
}

/// Refuses a directory of other files.
fn check_empty(root: &Path) -> Result<(), StoreError> {
    let io = |error| StoreError::Io(root.to_owned(), error);
    if root.join(DIRECTORY).is_dir() {
        return Ok(());
    }
    match std::fs::read_dir(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        read => match read.map_err(io)?.next() {
            None => Ok(()),
            Some(_) => Err(StoreError::Refused(format!(
                "{} has files, and is not a copy of a store; give a new directory",
                root.display()
            ))),
        },
    }
}

/// The manifest that was written last, or a new one.
fn begin(root: &Path, options: &ExportOptions) -> Result<Copy, StoreError> {
    let ExportOptions {
        sessions, since_ns, ..
    } = options;
    let Some(copy) = Copy::read(root)? else {
        let buckets = options.buckets.map_or(BUCKETS, i64::from);
        if !(1..=MOST_BUCKETS).contains(&buckets) {
            return Err(StoreError::Refused(format!(
                "`{buckets}` buckets are not from 1 to {MOST_BUCKETS}"
            )));
        }
        let copy = Copy::new(buckets, sessions, *since_ns);
        // Whatever comes later, this is a copy with these settings.
        copy.write(root)?;
        return Ok(copy);
    };
    let other = |what: &str, was: &str| {
        Err(StoreError::Refused(format!(
            "{} is a copy {what} {was}; say the same, or give a new directory",
            root.display()
        )))
    };
    if options
        .buckets
        .is_some_and(|buckets| i64::from(buckets) != copy.buckets)
    {
        return other("in", &format!("{} buckets", copy.buckets));
    }
    if copy.sessions != *sessions {
        return match &*copy.sessions {
            "" => other("of", "all sessions"),
            glob => other("of the sessions", &format!("`{glob}`")),
        };
    }
    if copy.since_ns != *since_ns {
        return match copy.since_ns {
            None => other("of sessions", "of any age"),
            Some(ns) => {
                let time = crate::tree::timestamp::rfc3339_of_nanos(ns);
                other("of the sessions with a commit since", &time)
            }
        };
    }
    Ok(copy)
}

/// An export that is running.
struct Run<'r> {
    root: &'r Path,
    exports: Exports,
}

/// The columns of a table in a statement, with some spelled otherwise.
fn columns(table: &Table, alias: &str, spelled: &[(&str, &str)]) -> String {
    let all = table.columns();
    let each = all.iter().map(|(name, _)| {
        let other = spelled.iter().find(|(column, _)| column == name);
        other.map_or_else(|| format!("{alias}.{name}"), |(_, sql)| (*sql).to_owned())
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The units of the session ?1 that it places first after the seq ?3 and up to ?4.
const UNITS: &str = "(select distinct p.unit_id from placement p where p.session_id = ?1 and p.first_seq > ?3 \
     and p.first_seq <= ?4 and not exists (select 1 from placement q where q.session_id = p.session_id \
     and q.unit_id = p.unit_id and q.first_seq <= ?3)) w";

/// The statement for the new rows of a table that has units: ?2 is added to the numbers of units.
fn added(table: &Table) -> String {
    let (alias, more, order) = match table.name {
        "node" => ("t", " left join body b on b.body_id = t.body_id", ", t.pre"),
        "attr" => ("t", "", ", t.pre, t.name, t.ordinal"),
        _ => ("t", "", ""),
    };
    let columns = columns(
        table,
        alias,
        &[
            ("session_id", "cast(?1 as bigint)"),
            ("unit_id", "t.unit_id + cast(?2 as bigint)"),
            ("content", "b.text"),
            ("content_json", "b.json"),
        ],
    );
    format!(
        "select {columns} from {UNITS} join {} t on t.unit_id = w.unit_id{more} order by t.unit_id{order}",
        table.name
    )
}

/// The statement for all rows of a session in a small table: ?1 is the session, ?2 its newest seq, ?3 is added to the
/// numbers of units.
fn replaced(table: &Table) -> (String, usize) {
    let name = table.name;
    match name {
        "placement" => {
            let end = format!("case when t.last_seq >= ?2 then {IN_FORCE} else t.last_seq end");
            let spelled = [
                ("unit_id", "t.unit_id + cast(?3 as bigint)"),
                ("last_seq", &*end),
            ];
            let columns = columns(table, "t", &spelled);
            let rows = "t.session_id = ?1 and t.first_seq <= ?2 order by t.unit_id, t.first_seq";
            (format!("select {columns} from placement t where {rows}"), 3)
        }
        // Those of a cycle that was not committed are of the working state.
        "attempt" => {
            let columns = columns(table, "t", &[]);
            let rows = "t.session_id = ?1 and t.cycle_id <= (select n.cycle from snapshot n \
                        where n.session_id = ?1 and n.seq = ?2) order by t.number";
            (format!("select {columns} from attempt t where {rows}"), 2)
        }
        _ => {
            let columns = columns(table, "t", &[]);
            let order = if name == "pin" { "t.pin_id" } else { "t.id" };
            let rows = format!("t.session_id = ?1 order by {order}");
            (format!("select {columns} from {name} t where {rows}"), 1)
        }
    }
}

impl Run<'_> {
    /// Writes what is new in a bucket, if anything is.
    fn bucket(
        &mut self,
        database: &mut dyn Database,
        bucket: i64,
        sessions: &[Exported],
    ) -> Result<(), StoreError> {
        let found = Bucket::read(self.root, bucket)?;
        if let Some(known) = &found
            && !known.open
            && is_as(&known.sessions, sessions)
        {
            return Ok(());
        }
        self.exports.written += 1;
        if let Some(known) = &found {
            let open = true;
            let known = known.clone();
            Bucket { open, ..known }.write(self.root, bucket)?;
        }
        let known = found.unwrap_or_default();
        let (sessions, altered) = placed(database, &known.sessions, sessions)?;
        let rewrites = altered || known.parts >= MOST_PARTS;
        let mut next = if rewrites {
            Bucket {
                generation: known.generation + 1,
                ..Bucket::default()
            }
        } else {
            known
        };
        next.open = false;
        let old = std::mem::replace(&mut next.sessions, sessions);
        self.add(database, bucket, &mut next, &old)?;
        for table in TABLES.iter().filter(|table| table.place == Place::Replaced) {
            self.replace(database, bucket, &mut next, table)?;
        }
        let directories: BTreeSet<PathBuf> = next
            .files
            .iter()
            .map(|file| self.root.join(&file.path))
            .collect();
        for path in &directories {
            sync(path)?;
        }
        next.write(self.root, bucket)?;
        clean(self.root, bucket, &next)
    }

    /// Adds a file of the new units of some sessions to each table that has units.
    fn add(
        &mut self,
        database: &mut dyn Database,
        bucket: i64,
        next: &mut Bucket,
        old: &[Exported],
    ) -> Result<(), StoreError> {
        let mut writers = Vec::new();
        for table in TABLES.iter().filter(|table| table.place == Place::Added) {
            let (name, part) = (table.name, next.parts);
            let path = format!(
                "{name}/bucket={bucket}/{:04}-{part:04}.parquet",
                next.generation
            );
            writers.push((FileWriter::new(self.root, path, table)?, added(table), name));
        }
        for session in &next.sessions {
            let before = of(old, session.id).map_or(i64::MIN, |old| old.last);
            if before >= session.last {
                continue;
            }
            let values: [Value<'_>; 4] = [
                session.id.into(),
                number(next.generation, session.id, 0)?.into(),
                before.into(),
                session.last.into(),
            ];
            for (writer, statement, _) in &mut writers {
                database.query(statement, &values, &mut |row| writer.push(row))?;
            }
        }
        let mut some = false;
        for (writer, _, name) in writers {
            // The first bucket has a file of every table.
            if writer.rows() == 0 && !(bucket == 0 && next.parts == 0) {
                continue;
            }
            some = true;
            if name == "unit" {
                self.exports.units += writer.rows();
            }
            next.files.push(self.written(writer)?);
        }
        next.parts += i64::from(some);
        Ok(())
    }

    /// Replaces the file of a small table.
    fn replace(
        &mut self,
        database: &mut dyn Database,
        bucket: i64,
        next: &mut Bucket,
        table: &Table,
    ) -> Result<(), StoreError> {
        let path = format!("{0}/bucket={bucket}/{0}.parquet", table.name);
        let mut writer = FileWriter::new(self.root, path.clone(), table)?;
        let (statement, used) = replaced(table);
        for session in &next.sessions {
            let values: [Value<'_>; 3] = [
                session.id.into(),
                session.last.into(),
                number(next.generation, session.id, 0)?.into(),
            ];
            let values = values.get(..used).unwrap_or(&values);
            database.query(&statement, values, &mut |row| writer.push(row))?;
        }
        next.files.retain(|file| file.path != path);
        if writer.rows() > 0 || bucket == 0 {
            next.files.push(self.written(writer)?);
        }
        Ok(())
    }

    fn written(&mut self, writer: FileWriter) -> Result<Written, StoreError> {
        let written = writer.finish()?;
        self.exports.bytes += written.bytes;
        Ok(written)
    }

    /// Removes a bucket that has no sessions any more.
    fn drop_bucket(&mut self, bucket: i64) -> Result<(), StoreError> {
        self.exports.written += 1;
        // In this order: files without a manifest are removed by the next export, and a manifest without its files would
        // be believed.
        Bucket::remove(self.root, bucket)?;
        clean(self.root, bucket, &Bucket::default())
    }

    /// Writes the tables that are whole. Snapshots come last: all that they refer to is there then.
    fn whole(
        &mut self,
        database: &mut dyn Database,
        copy: &Copy,
        mut sessions: Vec<&Exported>,
    ) -> Result<Vec<Written>, StoreError> {
        sessions.sort_unstable_by_key(|session| session.id);
        let buckets = [Value::Int(copy.buckets)];
        let bucket = [("bucket", "t.session_id % cast(?1 as bigint)")];
        let mut files = Vec::new();

        let format = table("format");
        let mut writer = FileWriter::new(self.root, whole_path("format"), format)?;
        let sql = format!("select {} from format t", columns(format, "t", &[]));
        database.query(&sql, &[], &mut |row| writer.push(row))?;
        files.push(self.written(writer)?);

        let session = table("session");
        let copied: HashSet<i64> = sessions.iter().map(|session| session.id).collect();
        let mut writer = FileWriter::new(self.root, whole_path("session"), session)?;
        let columns_of = columns(session, "t", &bucket);
        let sql = format!("select {columns_of} from session t order by t.session_id");
        database.query(&sql, &buckets, &mut |row| {
            if copied.contains(&int(row, 0)?) {
                writer.push(row)
            } else {
                Ok(())
            }
        })?;
        self.exports.sessions = writer.rows();
        files.push(self.written(writer)?);

        let snapshot = table("snapshot");
        let mut writer = FileWriter::new(self.root, whole_path("snapshot"), snapshot)?;
        let sql = format!(
            "select {} from snapshot t where t.session_id between ?2 and ?3 and not t.working \
             order by t.session_id, t.seq",
            columns(snapshot, "t", &bucket)
        );
        let ends = sessions.first().zip(sessions.last());
        if let Some((first, last)) = ends {
            let values = [buckets[0], first.id.into(), last.id.into()];
            database.query(&sql, &values, &mut |row| {
                if copied.contains(&int(row, 0)?) {
                    writer.push(row)
                } else {
                    Ok(())
                }
            })?;
        }
        self.exports.snapshots = writer.rows();
        files.push(self.written(writer)?);
        for file in &files {
            sync(&self.root.join(&file.path))?;
        }
        Ok(files)
    }
}

/// The path of the file of a table that is whole.
fn whole_path(name: &str) -> String {
    format!("{name}/{name}.parquet")
}
