//! Exports a store into a copy: what is new since the last export. A session that only grew keeps its units and
//! their numbers.
//!
//! A bucket whose sessions have not changed is left as it is. Where sessions only grew, the new units are another file
//! of the bucket, and the small tables are replaced. Where history was altered (pruned, erased, deleted), or too
//! many files have gathered, the bucket is rewritten, with other numbers of units: placements, which are
//! one file, decide which units are seen, so none is seen twice while the old and the new files are both there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hashbrown::HashSet;
use sha2::{Digest, Sha256};

use crate::store::copy::file::{FileWriter, WrittenFile, hash_of};
use crate::store::copy::manifest::{
    BucketManifest, CopyLock, CopyManifest, DIRECTORY, Exported, MOST_BUCKETS, clean, found,
    remove, sweep,
};
use crate::store::database::new_file::sync_name;
use crate::store::database::sql::{Database, SqlValue, int, one_int, text};
use crate::store::error::{Result, StoreError};
use crate::store::layout::schema::{CopyFiles, StoreTable, TABLES, list, table};
use crate::store::read::catalog::Glob;
use crate::store::write::change::IN_FORCE;
use crate::store::{Store, catalog};
use crate::support::diag::Error;
use crate::support::macros::setters;
use crate::tree::hash::hex;
use crate::tree::timestamp::rfc3339_of_nanos;

const BUCKETS: i64 = 256;

/// The most files that are added to a bucket before it is rewritten.
const MOST_PARTS: i64 = 16;

/// What [`Store::export_parquet`] copies.
///
/// ```
/// use pactql::store::ParquetExport;
/// let support = ParquetExport::default().sessions("support-*").buckets(16);
/// assert_ne!(support, ParquetExport::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParquetExport {
    sessions: String,
    since_ns: Option<i64>,
    buckets: Option<u32>,
}

impl ParquetExport {
    setters! {
        /// Only sessions whose name matches this pattern, in which `*` is any text, also with `/`.
        sessions: impl Into<String>;
        /// Only sessions whose newest commit was made at or after this time, in nanoseconds since 1970; of those all
        /// history.
        since_ns: i64;
        /// The number of buckets of a new copy, from 1 to 65,536; 256 by default. A copy keeps its number.
        buckets: u32;
    }
}

/// What [`Store::export_parquet`] wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParquetExported {
    /// Sessions that the copy has now.
    pub sessions: u64,
    /// Snapshots that the copy has now.
    pub snapshots: u64,
    /// Versions of units that were added, once for each session that places them.
    pub units: u64,
    /// Buckets that were written.
    pub buckets: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

impl Store {
    /// Copies closed history to the Parquet files of a directory, as it is at one moment: commits, attempts,
    /// references; working states are left out. In a directory that has a copy already, what is new is added. A file
    /// gets its name when it is whole, and an export that was ended early is mended by the next. The same
    /// store gives the same files in a new directory.
    ///
    /// Linear in the sessions and snapshots, and in the units that are new; the memory of a few row groups.
    ///
    /// # Errors
    /// The directory has other files, or a copy with other settings, or another program writes it; those of the
    /// database and of the file system.
    pub fn export_parquet(
        &self,
        directory: impl AsRef<Path>,
        what: &ParquetExport,
    ) -> Result<ParquetExported, Error> {
        let root = directory.as_ref();
        Ok(self.core.read(|database| export(database, root, what))?)
    }
}

/// Writes what a copy lacks, inside a transaction that reads. Linear in the sessions and snapshots, and in what is new;
/// the memory of a row group of each table. What was finished before an error stays, and the next export goes on there.
pub(crate) fn export(
    database: &mut dyn Database,
    root: &Path,
    options: &ParquetExport,
) -> Result<ParquetExported, StoreError> {
    check_empty(root)?;
    let _lock = CopyLock::take(root)?;
    let mut copy = begin(root, options)?;
    let known = sweep(root)?;
    let newest = one_int(database, "select max(unit_id) from unit", &[])?;
    number(0, 0, newest.unwrap_or(0))?;
    let sessions = by_bucket(database, &copy)?;
    let mut run = ExportRun {
        root,
        exports: ParquetExported::default(),
    };
    copy.state.clear();
    let buckets: BTreeSet<i64> = sessions.keys().copied().chain(known).collect();
    for bucket in buckets {
        let listed = sessions.get(&bucket).map_or(&[][..], |all| all);
        if listed.is_empty() && bucket != 0 {
            run.exports.buckets += 1;
            // In this order: files without a manifest are removed by the next export, and a manifest without its files
            // would be believed.
            remove(&BucketManifest::path(root, bucket))?;
            clean(root, bucket, &BucketManifest::default())?;
            continue;
        }
        run.bucket(database, bucket, listed)?;
        copy.state
            .push((bucket, hash_of(&BucketManifest::path(root, bucket))?));
    }
    let all: Vec<&Exported> = sessions.values().flatten().collect();
    copy.files = run.whole(database, &copy, all)?;
    copy.write(root)?;
    Ok(run.exports)
}

fn check_empty(root: &Path) -> Result<(), StoreError> {
    let files = found(root, std::fs::read_dir(root))?;
    if files.is_none_or(|mut files| files.next().is_none()) || root.join(DIRECTORY).is_dir() {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "{} has files, and is not a copy of a store; give a new directory",
        root.display()
    )))
}

fn begin(root: &Path, options: &ParquetExport) -> Result<CopyManifest, StoreError> {
    let ParquetExport {
        sessions, since_ns, ..
    } = options;
    let Some(copy) = CopyManifest::read(root)? else {
        let buckets = options.buckets.map_or(BUCKETS, i64::from);
        if !(1..=MOST_BUCKETS).contains(&buckets) {
            return Err(StoreError::Refused(format!(
                "`{buckets}` buckets are not from 1 to {MOST_BUCKETS}"
            )));
        }
        let copy = CopyManifest::new(buckets, sessions, *since_ns);
        // Whatever comes later, this is a copy with these settings.
        copy.write(root)?;
        return Ok(copy);
    };
    let buckets = options.buckets.map_or(copy.buckets, i64::from);
    let is = if buckets != copy.buckets {
        format!("in {} buckets", copy.buckets)
    } else if copy.sessions != *sessions && copy.sessions.is_empty() {
        "of all sessions".to_owned()
    } else if copy.sessions != *sessions {
        format!("of the sessions `{}`", copy.sessions)
    } else if copy.since_ns != *since_ns {
        let since = copy.since_ns.map(rfc3339_of_nanos);
        since.map_or("of sessions of any age".to_owned(), |since| {
            format!("of the sessions with a commit since {since}")
        })
    } else {
        return Ok(copy);
    };
    Err(StoreError::Refused(format!(
        "{} is a copy {is}; say the same, or give a new directory",
        root.display()
    )))
}

struct ExportRun<'r> {
    root: &'r Path,
    exports: ParquetExported,
}

/// The units of the session ?1 that it places first after the seq ?4 and up to ?2.
const UNITS: &str = "(select distinct p.unit_id from placement p where p.session_id = ?1 and p.first_seq > ?4 \
     and p.first_seq <= ?2 and not exists (select 1 from placement q where q.session_id = p.session_id \
     and q.unit_id = p.unit_id and q.first_seq <= ?4)) w";

/// The statement for the rows of a session in a table of buckets: ?1 is the session, ?2
/// its newest seq, ?3 is added to the numbers of units, and rows of units are those that are new after the seq ?4.
fn rows_of(table: &StoreTable) -> String {
    let end = format!("case when t.last_seq >= ?2 then {IN_FORCE} else t.last_seq end");
    let spelled = [
        ("unit_id", "t.unit_id + cast(?3 as bigint)"),
        ("last_seq", &*end),
        ("content", "b.text"),
        ("content_json", "b.json"),
    ];
    // A row of a unit has no session in the store; the copy adds it.
    let session = [("session_id", "cast(?1 as bigint)")];
    let spelled = match table.files {
        CopyFiles::Added => [&session[..], &spelled].concat(),
        _ => spelled.to_vec(),
    };
    let (name, columns) = (table.name, list(table.file_columns(), "t.", &spelled));
    let of_units = format!("from {UNITS} join {name} t on t.unit_id = w.unit_id");
    let of_session = format!("from {name} t where t.session_id = ?1");
    let rows = match name {
        "unit" => of_units + " order by t.unit_id",
        "node" => of_units + " left join body b on b.body_id = t.body_id order by t.unit_id, t.pre",
        "attr" => of_units + " order by t.unit_id, t.pre, t.name, t.ordinal",
        "placement" => of_session + " and t.first_seq <= ?2 order by t.unit_id, t.first_seq",
        // Those of a cycle that was not committed are of the working state.
        "attempt" => {
            of_session
                + " and t.cycle_id <= (select n.cycle from snapshot n where n.session_id = ?1 \
                   and n.seq = ?2) order by t.number"
        }
        "pin" => of_session + " order by t.pin_id",
        _ => of_session + " order by t.id",
    };
    format!("select {columns} {rows}")
}

/// The values of the parameters that a statement has: the first ones.
fn used<'v, 'a>(statement: &str, values: &'v [SqlValue<'a>]) -> &'v [SqlValue<'a>] {
    let has = |at: &usize| statement.contains(&format!("?{at}"));
    &values[..(1..=values.len()).take_while(has).count()]
}

impl ExportRun<'_> {
    fn bucket(
        &mut self,
        database: &mut dyn Database,
        bucket: i64,
        sessions: &[Exported],
    ) -> Result<(), StoreError> {
        let mut known = BucketManifest::read(self.root, bucket)?;
        if let Some(known) = &known
            && !known.open
            && known.sessions.len() == sessions.len()
            && known
                .sessions
                .iter()
                .zip(sessions)
                .all(|(old, new)| old.is_as(new))
        {
            return Ok(());
        }
        self.exports.buckets += 1;
        if let Some(known) = &mut known {
            known.open = true;
            known.write(self.root, bucket)?;
        }
        let known = known.unwrap_or_default();
        let (sessions, altered) = placed(database, &known.sessions, sessions)?;
        let rewrites = altered || known.parts >= MOST_PARTS;
        let mut next = if rewrites {
            BucketManifest {
                generation: known.generation + 1,
                ..BucketManifest::default()
            }
        } else {
            known
        };
        next.open = false;
        let old = std::mem::replace(&mut next.sessions, sessions);
        // Placements come after the units that they show.
        let mut added = false;
        for files in [CopyFiles::Added, CopyFiles::Replaced] {
            for table in TABLES.iter().filter(|table| table.files == files) {
                added |= self.table(database, bucket, &mut next, &old, table)?;
            }
        }
        next.parts += i64::from(added);
        for file in &next.files {
            sync_name(&self.root.join(&file.path))?;
        }
        next.write(self.root, bucket)?;
        clean(self.root, bucket, &next)
    }

    /// Adds a file of the new units of a bucket, or replaces its file. Returns whether one was added.
    fn table(
        &mut self,
        database: &mut dyn Database,
        bucket: i64,
        next: &mut BucketManifest,
        old: &[Exported],
        table: &StoreTable,
    ) -> Result<bool, StoreError> {
        let (name, is_added) = (table.name, table.files == CopyFiles::Added);
        let file = if is_added {
            format!("{:04}-{:04}", next.generation, next.parts)
        } else {
            name.to_owned()
        };
        let path = format!("{name}/bucket={bucket}/{file}.parquet");
        let mut writer = FileWriter::new(self.root, path.clone(), table)?;
        let statement = rows_of(table);
        for session in &next.sessions {
            let before = find(old, session.id).map_or(i64::MIN, |old| old.last);
            if is_added && before >= session.last {
                continue;
            }
            let values: [SqlValue<'_>; 4] = [
                session.id.into(),
                session.last.into(),
                number(next.generation, session.id, 0)?.into(),
                before.into(),
            ];
            let values = used(&statement, &values);
            database.query(&statement, values, &mut |row| writer.push(row))?;
        }
        next.files.retain(|file| file.path != path);
        // The first bucket has a file of every table.
        let is_first = bucket == 0 && (next.parts == 0 || !is_added);
        if writer.rows() == 0 && !is_first {
            return Ok(false);
        }
        if name == "unit" {
            self.exports.units += writer.rows();
        }
        next.files.push(self.written(writer)?);
        Ok(is_added)
    }

    fn written(&mut self, writer: FileWriter) -> Result<WrittenFile, StoreError> {
        let written = writer.finish()?;
        self.exports.bytes += written.bytes;
        Ok(written)
    }

    /// Writes the tables that are whole. Snapshots come last: all that they refer to is there then.
    fn whole(
        &mut self,
        database: &mut dyn Database,
        copy: &CopyManifest,
        mut sessions: Vec<&Exported>,
    ) -> Result<Vec<WrittenFile>, StoreError> {
        sessions.sort_unstable_by_key(|session| session.id);
        let copied: HashSet<i64> = sessions.iter().map(|session| session.id).collect();
        let ends = sessions.first().zip(sessions.last());
        let ends = ends.map_or((1, 0), |(first, last)| (first.id, last.id));
        let values: [SqlValue<'_>; 3] = [copy.buckets.into(), ends.0.into(), ends.1.into()];
        let mut files = Vec::new();
        let commits =
            "where t.session_id between ?2 and ?3 and not t.working order by t.session_id, t.seq";
        for (name, rows) in [
            ("format", ""),
            ("session", "order by t.session_id"),
            ("snapshot", commits),
        ] {
            let table = table(name);
            let bucket = ("bucket", "t.session_id % cast(?1 as bigint)");
            let columns = list(table.file_columns(), "t.", &[bucket]);
            let sql = format!("select {columns} from {name} t {rows}");
            let path = format!("{name}/{name}.parquet");
            let mut writer = FileWriter::new(self.root, path, table)?;
            database.query(&sql, used(&sql, &values), &mut |row| {
                if name == "format" || copied.contains(&int(row, 0)?) {
                    writer.push(row)?;
                }
                Ok(())
            })?;
            match name {
                "session" => self.exports.sessions = writer.rows(),
                "snapshot" => self.exports.snapshots = writer.rows(),
                _ => {}
            }
            files.push(self.written(writer)?);
        }
        for file in &files {
            sync_name(&self.root.join(&file.path))?;
        }
        Ok(files)
    }
}

/// The sessions that are copied, by bucket, in order of their numbers. One statement.
pub(crate) fn by_bucket(
    database: &mut dyn Database,
    copy: &CopyManifest,
) -> Result<BTreeMap<i64, Vec<Exported>>> {
    // The first bucket has a file of every table, so that an engine finds one.
    let mut all: BTreeMap<i64, Vec<Exported>> = BTreeMap::from([(0, Vec::new())]);
    let select = "select s.session_id, s.name, s.changed, \
         (select seq from snapshot where session_id = s.session_id and not working order by seq limit 1), \
         n.seq, n.hash, n.committed_at_ns from session s \
         left join snapshot n on n.session_id = s.session_id and n.seq = \
         (select seq from snapshot where session_id = s.session_id and not working order by seq desc limit 1)";
    let glob = Glob::new(&copy.sessions);
    let sessions = catalog::matching_rows(database, select, &glob, |row| {
        let (first, last) = row.int(3)?.zip(row.int(4)?).unwrap_or((1, 0));
        let session = Exported {
            id: int(row, 0)?,
            changed: int(row, 2)?,
            first,
            last,
            hash: row.bytes(5)?.map(hex).unwrap_or_default(),
            placed: String::new(),
        };
        Ok((session, row.int(6)?))
    })?;
    for (session, time) in sessions {
        // The newest snapshot is the last that was committed, whatever the clock said of others.
        let is_old = |since| time.is_none_or(|time| time < since);
        if !copy.since_ns.is_some_and(is_old) {
            number(0, session.id, 0)?;
            let bucket = session.id % copy.buckets;
            all.entry(bucket).or_default().push(session);
        }
    }
    for sessions in all.values_mut() {
        sessions.sort_unstable_by_key(|session| session.id);
    }
    Ok(all)
}

/// Bits of the number of a unit in a copy, from the lowest; the rest is the session.
const UNIT_BITS: u32 = 32;
const GENERATION_BITS: u32 = 7;

/// What is added to the store's number: each session and generation has units of its own in a copy.
pub(crate) fn number(generation: i64, session: i64, unit: i64) -> Result<i64> {
    let sessions = 1_i64 << (63 - UNIT_BITS - GENERATION_BITS);
    let generation = generation % (1 << GENERATION_BITS);
    if !(0..sessions).contains(&session) || !(0..1_i64 << UNIT_BITS).contains(&unit) {
        return Err(StoreError::Refused(format!(
            "session {session} or unit {unit} has a number that a copy cannot have; copy the store with `pactql import` first"
        )));
    }
    Ok((session << (UNIT_BITS + GENERATION_BITS)) | (generation << UNIT_BITS))
}

pub(crate) fn find(sessions: &[Exported], id: i64) -> Option<&Exported> {
    let at = sessions.binary_search_by_key(&id, |session| session.id);
    at.ok().and_then(|at| sessions.get(at))
}

/// The sessions with the digests of their placements, and whether one that the bucket has is gone, or has other units or
/// numbers. Linear in the placements.
pub(crate) fn placed(
    database: &mut dyn Database,
    known: &[Exported],
    sessions: &[Exported],
) -> Result<(Vec<Exported>, bool)> {
    let mut altered = known.iter().any(|old| find(sessions, old.id).is_none());
    let mut all = Vec::with_capacity(sessions.len());
    for session in sessions {
        let old = find(known, session.id);
        let seqs = (old.map_or(0, |old| old.last), session.last);
        let (then, now) = digests(database, session.id, seqs)?;
        altered |= old.is_some_and(|old| old.placed != then);
        all.push(Exported {
            placed: now,
            ..session.clone()
        });
    }
    Ok((all, altered))
}

/// The digests of the placements that begin up to each of two seqs. The first seq is the greater one only if history was
/// cut.
fn digests(
    database: &mut dyn Database,
    session: i64,
    (then, now): (i64, i64),
) -> Result<(String, String)> {
    let (mut hash, mut before) = (Sha256::new(), None);
    database.query(
        "select p.unit_id, p.first_seq, u.kind, u.hash, u.spelling from placement p \
         join unit u on u.unit_id = p.unit_id where p.session_id = ?1 and p.first_seq <= ?2 \
         order by p.first_seq, p.unit_id",
        &[session.into(), now.into()],
        &mut |row| {
            let (unit, seq) = (int(row, 0)?, int(row, 1)?);
            if seq > then && before.is_none() {
                before = Some(hash.clone());
            }
            for number in [unit, seq, int(row, 4)?] {
                hash.update(number.to_be_bytes());
            }
            for part in [text(row, 2)?.as_bytes(), row.bytes(3)?.unwrap_or_default()] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
            Ok(())
        },
    )?;
    let digest = |hash: Sha256| hex(&hash.finalize());
    let now = digest(hash);
    Ok((before.map_or_else(|| now.clone(), digest), now))
}
