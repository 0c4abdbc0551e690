//! [`Database`] in a SQLite file.
//!
//! The file is in WAL mode: readers see whole commits and never wait; a commit is on the disk when it
//! returns. This file knows no table.

use crate::support::lock;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::ffi::{self, ErrorCode};
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, params_from_iter};

use crate::json::JsonValue;
use crate::query::ir::Patterns;
use crate::store::database::new_file::{cancelled, into_new_file};
use crate::store::database::sql::{
    Backend, Begin, Database, Each, ResultRow, Savepoint, SqlValue, Type, one_int,
};
use crate::store::error::{Result, StoreError};
use crate::store::layout::wide::Wide;
use crate::support::cancel::{self, free, stopped};
use crate::support::diag::Code;
use crate::support::scratch::{PartialFile, private};

/// What is spelled out in the path of a URI.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Statements that stay prepared; the store has fewer.
const STATEMENTS: usize = 256;

/// Steps of SQLite's machine between two looks at the token of the work.
const STEPS: i32 = 100;

/// Pages that a backup copies between two looks at the token of the work: 1 MiB.
const PAGES: i32 = 256;

/// The most memory for pages that a connection changes, in KiB. A large import has indexes of some megabytes, of which it
/// changes pages all over.
const CACHE_KIB: i64 = 32 << 10;

/// How large the log of recent commits may stay after it was copied into the file.
const LOG_BYTES: i64 = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileAccess {
    /// To write it; it is made if it is missing.
    Create,
    Write,
    /// To read it beside a connection that writes.
    Read,
    /// To read it, and to leave no trace: the file or its directory may be read-only.
    ReadOnly,
    /// As `ReadOnly`, also a file that was cut off.
    Damaged,
    /// To write it while no other program has it open: on a full disk there is no room for the file that programs share.
    Alone,
}

pub(crate) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    file: Option<FileId>,
    busy: Duration,
    alone: bool,
    /// Where [`ROW`] puts the rows of a statement.
    rows: Arc<Mutex<Wide>>,
}

/// The function that puts its arguments into [`Sqlite::rows`] as a row, and returns where that begins.
/// SQLite hands over the arguments of a function several times faster than the columns of a result.
const ROW: &str = "pactql_row";

/// The function of statements of selectors: whether a pattern is found in a text (STORE §5).
const SEARCH: &str = "pactql_search";
/// That for the bytes of the text of a content.
const BYTES: &str = "pactql_bytes";
const PURE: FunctionFlags = FunctionFlags::SQLITE_DETERMINISTIC;

/// The longest that SQLite waits: it counts milliseconds in 31 bits.
const LONGEST_BUSY: Duration = Duration::from_millis(i32::MAX as u64);

pub(crate) type FileId = (u64, u64);

/// `None` where the system does not number files.
#[cfg(unix)]
pub(crate) fn id_of(file: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
pub(crate) fn id_of(_: &Metadata) -> Option<FileId> {
    None
}

pub(crate) fn file_id(path: &Path) -> std::io::Result<Option<FileId>> {
    Ok(id_of(&path.metadata()?))
}

impl Sqlite {
    /// Whether it is a store is not looked at. A transaction that writes waits `busy`, at most [`LONGEST_BUSY`].
    pub(crate) fn open(path: &Path, access: FileAccess, busy: Duration) -> Result<Self> {
        let io = |error| StoreError::Io(path.to_owned(), error);
        // A path such as `:memory:` is a file like any other.
        let path = std::path::absolute(path).map_err(io)?;
        match path.metadata() {
            Ok(file) if file.is_dir() => {
                return Err(io(std::io::ErrorKind::IsADirectory.into()));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if access != FileAccess::Create {
                    return Err(StoreError::Missing(path));
                }
                // What SQLite keeps beside it has the mode of the file. It says why it cannot be made.
                let _ = private().open(&path);
            }
            Err(error) => return Err(io(error)),
        }
        let mut flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags |= match access {
            FileAccess::Create => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
            FileAccess::Write | FileAccess::Read | FileAccess::Alone => {
                OpenFlags::SQLITE_OPEN_READ_WRITE
            }
            // The last connection that could write removes the files beside the store when it is closed;
            // one that cannot leaves them. With a log there are such files already, and it stays as it is.
            _ if !beside(&path, "-wal").exists() => OpenFlags::SQLITE_OPEN_READ_WRITE,
            FileAccess::ReadOnly | FileAccess::Damaged => OpenFlags::SQLITE_OPEN_READ_ONLY,
        };
        let connection = Connection::open_with_flags(&path, flags).map_err(|e| said(&path, &e))?;
        let busy = busy.min(LONGEST_BUSY);
        let mut made = Self {
            connection,
            path,
            file: None,
            busy,
            alone: access == FileAccess::Alone,
            rows: Arc::default(),
        };
        made.connection
            .busy_timeout(busy)
            .map_err(|e| made.error(&e))?;
        if access == FileAccess::Damaged {
            // SQLite reads no file that is shorter than it says, unless this is set. Nothing is written.
            let reads = made.connection.pragma_update(None, "writable_schema", true);
            reads.map_err(|e| made.error(&e))?;
        }
        match access {
            FileAccess::ReadOnly | FileAccess::Damaged => made.without_log()?,
            // Whether there is room for the files beside it.
            FileAccess::Read => made.probe().map_err(|e| made.error(&e))?,
            FileAccess::Alone => made.row("pragma locking_mode = exclusive")?,
            FileAccess::Create | FileAccess::Write => {}
        }
        // A statement of work that is cancelled ends with an error, and its transaction with it.
        let stops = made.connection.progress_handler(STEPS, Some(stopped));
        stops.map_err(|e| made.error(&e))?;
        made.prepare_connection(access)
            .map_err(|e| made.error(&e))?;
        made.file =
            file_id(&made.path).map_err(|error| StoreError::Io(made.path.clone(), error))?;
        Ok(made)
    }

    /// In a directory that nothing can be written to, SQLite cannot make the files that readers and
    /// writers share. Without a log of recent commits either, the file holds all of the store.
    fn without_log(&mut self) -> Result<()> {
        let Err(error) = self.probe() else {
            return Ok(());
        };
        let log = std::fs::metadata(beside(&self.path, "-wal"));
        let logged = log.is_ok_and(|log| log.len() > 0);
        let code = error.sqlite_error_code();
        let refused = matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly));
        if logged || !refused {
            return Err(self.error(&error));
        }
        let path = percent_encode(self.path.as_os_str().as_encoded_bytes(), IN_PATH);
        let uri = format!("file:{path}?immutable=1");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        self.connection =
            Connection::open_with_flags(uri, flags).map_err(|e| said(&self.path, &e))?;
        Ok(())
    }

    fn probe(&self) -> rusqlite::Result<()> {
        // Reads the first page alone: the schema goes on at the end of a file that was written again.
        let first = "pragma schema_version";
        self.connection.query_row(first, [], |_| Ok(()))
    }

    /// Runs a statement whose one row says nothing.
    fn row(&self, sql: &str) -> Result<()> {
        let done = self.connection.query_row(sql, [], |_| Ok(()));
        done.map_err(|error| self.error(&error))
    }

    /// Changes a store whose disk has no room for a log, while no other program has it open: a copy of it among the
    /// temporary files, which may grow, and then the pages of the store itself, for which the copy stays there until they
    /// are written. Fails if the store needs more room afterwards.
    pub(crate) fn in_place<T>(
        path: &Path,
        busy: Duration,
        work: impl FnOnce(&mut dyn Database) -> Result<T>,
    ) -> Result<T> {
        let mut alone = Self::open(path, FileAccess::Alone, busy)?;
        let in_memory = "pragma journal_mode = memory";
        alone.row(in_memory)?;
        let aside = std::env::temp_dir();
        let copy = aside.join(path.file_name().unwrap_or_default());
        let made = || {
            let copy = PartialFile::file(&copy, None)
                .map_err(|error| StoreError::Io(aside.clone(), error))?;
            alone.copy_to(copy.path())?;
            let changed = Self::open(copy.path(), FileAccess::Alone, busy)?;
            changed.row(in_memory)?;
            Ok((copy, changed))
        };
        let made = made().map_err(|error: StoreError| {
            StoreError::Full(format!(
                "{}: no space is left on the disk, and a copy of the store cannot be kept in {} meanwhile \
                 ({error}); make room, or set TMPDIR to a directory of another disk",
                path.display(),
                aside.display(),
            ))
        });
        let done = made.and_then(|(copy, mut changed)| {
            let done = work(&mut changed)?;
            changed.run("vacuum")?;
            copy_pages(&changed, &mut alone.connection, path)?;
            drop((changed, copy));
            Ok(done)
        });
        // It stays in the file; the next one that writes sets it, too.
        let _ = alone.row("pragma journal_mode = wal");
        done
    }

    fn prepare_connection(&self, access: FileAccess) -> rusqlite::Result<()> {
        let connection = &self.connection;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // A plan that looks at a value, such as a limit, would be made again for each.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.pragma_update(None, "foreign_keys", false)?;
        let rows = Arc::clone(&self.rows);
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
        connection.create_scalar_function(ROW, -1, flags, move |row| Ok(put_row(row, &rows)))?;
        connection.create_scalar_function(SEARCH, 2, flags | PURE, search)?;
        connection.create_scalar_function(BYTES, 2, flags | PURE, bytes)?;
        match access {
            FileAccess::Create | FileAccess::Write | FileAccess::Alone => {
                if access != FileAccess::Alone {
                    // Of a file without tables; free pages go from the end of the file then.
                    connection.pragma_update(None, "auto_vacuum", "incremental")?;
                    self.log_commits()?;
                }
                connection.pragma_update(None, "synchronous", "full")?;
                // Where a text must be erased, what was deleted may not stay in free pages.
                connection.query_row("pragma secure_delete = on", [], |_| Ok(()))?;
                let limit = format!("pragma journal_size_limit = {LOG_BYTES}");
                connection.query_row(&limit, [], |_| Ok(()))?;
                connection.pragma_update(None, "cache_size", -CACHE_KIB)
            }
            FileAccess::Read | FileAccess::ReadOnly | FileAccess::Damaged => {
                connection.pragma_update(None, "query_only", true)
            }
        }
    }

    /// The file keeps WAL mode. Another program may set it at the same time: a lock that SQLite does not wait for.
    fn log_commits(&self) -> rusqlite::Result<()> {
        let started = Instant::now();
        if self.connection.is_readonly("main")? {
            return Ok(());
        }
        loop {
            let set = "pragma journal_mode = wal";
            match self.connection.query_row(set, [], |_| Ok(())) {
                Err(error) if is_busy(&error) && started.elapsed() < self.busy => {
                    sleep(Duration::from_millis(5));
                }
                done => return done,
            }
        }
    }

    fn error(&self, error: &rusqlite::Error) -> StoreError {
        if is_busy(error) {
            StoreError::Conflict(format!(
                "{}: another program has been writing to it for more than {} s; try again later",
                self.path.display(),
                self.busy.as_secs()
            ))
        } else {
            said(&self.path, error)
        }
    }

    /// Checks that the path still leads to the file that is open.
    fn check_file(&self) -> Result<()> {
        let wrong = |what: &str| {
            Err(StoreError::Database(format!(
                "{} was {what} while it was open; open the store again",
                self.path.display()
            )))
        };
        match file_id(&self.path) {
            Ok(file) if file == self.file => Ok(()),
            Ok(_) => wrong("replaced by another file"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => wrong("removed"),
            Err(error) => Err(StoreError::Io(self.path.clone(), error)),
        }
    }

    /// For statements without values or rows, such as one that ends a transaction, also of work that is cancelled.
    fn run(&self, sql: &str) -> Result<()> {
        let run = || self.connection.prepare_cached(sql)?.raw_execute();
        let done = free(run).map(|_| ());
        done.map_err(|error| self.error(&error))
    }

    /// Copies all pages to a new file, as they are at one moment; writers need not wait for that.
    fn copy_to(&self, to: &Path) -> Result<()> {
        let failed = |error| said(to, &error);
        let mut target = Connection::open(to).map_err(failed)?;
        copy_pages(self, &mut target, to)?;
        target.close().map_err(|(_, error)| said(to, &error))
    }
}

/// Copies all pages of one store to another, as they are at one moment.
fn copy_pages(from: &Sqlite, target: &mut Connection, to: &Path) -> Result<()> {
    let failed = |error| said(to, &error);
    let mine = |error| from.error(&error);
    // The moment is that of the first read of a transaction, so steps between which others commit need
    // not start again.
    let begun = || from.connection.unchecked_transaction();
    let moment = from.connection.is_autocommit().then(begun);
    let moment = moment.transpose().map_err(mine)?;
    from.probe().map_err(mine)?;
    {
        let backup = Backup::new(&from.connection, target).map_err(failed)?;
        let mut waiting = Instant::now();
        loop {
            cancel::check().map_err(|_| cancelled())?;
            match backup.step(PAGES).map_err(mine)? {
                StepResult::Done => break,
                StepResult::More => waiting = Instant::now(),
                _ if waiting.elapsed() > from.busy => {
                    return Err(StoreError::Conflict(format!(
                        "{}: it stayed locked; try again later",
                        from.path.display()
                    )));
                }
                _ => sleep(Duration::from_millis(5)),
            }
        }
    }
    drop(moment);
    Ok(())
}

impl Database for Sqlite {
    fn dialect(&self) -> Backend {
        Backend::Sqlite
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64> {
        let run = || {
            self.connection
                .prepare_cached(sql)?
                .execute(params_from_iter(values))
        };
        let changed = run().map_err(|error| self.error(&error))?;
        Ok(changed as u64)
    }

    fn query(&mut self, sql: &str, values: &[SqlValue<'_>], each: Each<'_>) -> Result<()> {
        let mine = |error| self.error(&error);
        let mut statement = self.connection.prepare_cached(sql).map_err(mine)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(mine)?;
        while let Some(row) = rows.next().map_err(mine)? {
            each(&SqliteRow(row))?;
        }
        Ok(())
    }

    // A statement with `returning` collects its rows in a table, and keeps copies of the pages that it changes.
    fn insert_once(
        &mut self,
        insert: &str,
        _id: &str,
        values: &[SqlValue<'_>],
    ) -> Result<Option<i64>> {
        let is_new = self.execute(insert, values)? > 0;
        Ok(is_new.then(|| self.connection.last_insert_rowid()))
    }

    fn query_wide(
        &mut self,
        columns: &str,
        _kinds: &[Type],
        rest: &str,
        values: &[SqlValue<'_>],
        into: &mut Wide,
    ) -> Result<()> {
        into.clear();
        std::mem::swap(&mut *lock(&self.rows), into);
        let mut order = Vec::with_capacity(32);
        let sql = format!("select {ROW}({columns}) {rest}");
        let done = self.query(&sql, values, &mut |row| {
            let start = row.int(0)?.and_then(|start| usize::try_from(start).ok());
            order.extend(start);
            Ok(())
        });
        std::mem::swap(&mut *lock(&self.rows), into);
        order.into_iter().for_each(|start| into.add_row(start));
        done
    }

    fn begin(&mut self, begin: Begin) -> Result<()> {
        if begin == Begin::Read {
            // The state that it reads is that of its first statement.
            return self.run("begin");
        }
        self.check_file()?;
        self.run("begin immediate")
    }

    fn commit(&mut self) -> Result<()> {
        let done = self.run("commit");
        done.inspect_err(|_| self.rollback())
    }

    fn rollback(&mut self) {
        // After some errors SQLite has done it already.
        if !self.connection.is_autocommit() {
            let _ = self.run("rollback");
        }
    }

    fn savepoint(&mut self, what: Savepoint) -> Result<()> {
        what.sql().split("; ").try_for_each(|sql| self.run(sql))
    }

    fn now_ns(&mut self) -> Result<i64> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(since.map_or(0, |since| {
            i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
        }))
    }

    fn is_alone(&self) -> bool {
        self.alone
    }

    fn data_version(&mut self) -> Result<i64> {
        self.check_file()?;
        Ok(one_int(self, "pragma data_version", &[])?.unwrap_or(0))
    }

    fn backup(&mut self, to: &Path) -> Result<()> {
        into_new_file(to, |part| self.copy_to(part))
    }

    fn scrub(&mut self, patience: Duration) -> Result<bool> {
        // The old pages are in the log of recent commits until that is copied into the file.
        let empty = || {
            self.connection.busy_timeout(patience)?;
            // Another writer is not waited for: free pages are used again.
            let freed = self.connection.prepare("pragma incremental_vacuum");
            let _ = freed.and_then(|mut freed| {
                let mut steps = freed.query([])?;
                while steps.next()?.is_some() {}
                Ok(())
            });
            let emptied = "pragma wal_checkpoint(truncate)";
            let busy = self
                .connection
                .query_row(emptied, [], |row| row.get::<_, bool>(0));
            self.connection.busy_timeout(self.busy)?;
            busy
        };
        let held = empty().map_err(|error| self.error(&error))?;
        Ok(!held)
    }

    fn vacuum(&mut self, patience: Duration) -> Result<bool> {
        self.check_file()?;
        // SQLite leaves what it moves from one page to another where it was, in the space that the page does not use.
        self.run("vacuum")?;
        self.scrub(patience)
    }
}

fn put_row(row: &Context<'_>, rows: &Mutex<Wide>) -> i64 {
    let mut rows = lock(rows);
    let start = rows.end();
    for at in 0..row.len() {
        match row.get_raw(at) {
            ValueRef::Null => rows.add_int(None),
            ValueRef::Integer(value) => rows.add_int(Some(value)),
            ValueRef::Text(text) => rows.add_text(Some(text)),
            ValueRef::Real(_) | ValueRef::Blob(_) => rows.add_other(),
        }
    }
    start as i64
}

/// [`SEARCH`]: null for a null. A pattern that is a literal is compiled once for a statement.
fn search(row: &Context<'_>) -> rusqlite::Result<Option<bool>> {
    let pattern = row.get_or_create_aux(1, |pattern| match pattern.as_str() {
        Ok(pattern) => Patterns::new()
            .compile(pattern)
            .map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    })?;
    let failed = |error: &str| rusqlite::Error::UserFunctionError(error.into());
    match row.get_raw(0) {
        ValueRef::Null => Ok(None),
        text => {
            let text = text.as_str().map_err(|error| failed(&error.to_string()))?;
            Ok(Some(pattern.is_match(text)))
        }
    }
}

/// [`BYTES`] of a text, and whether it is JSON: null for a null.
fn bytes(row: &Context<'_>) -> rusqlite::Result<Option<i64>> {
    let text = match row.get_raw(0) {
        ValueRef::Null => return Ok(None),
        text => text.as_str()?,
    };
    let mut decoded = String::new();
    let content = if row.get(1)? {
        JsonValue::read(text, &mut decoded)
    } else {
        JsonValue::Text(text)
    };
    Ok(i64::try_from(content.text_len()).ok())
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut beside = path.to_owned().into_os_string();
    beside.push(end);
    PathBuf::from(beside)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Also where the file that programs share cannot be made.
fn is_full(error: &rusqlite::Error) -> bool {
    let shared = |error: &rusqlite::ffi::Error| error.extended_code == ffi::SQLITE_IOERR_SHMSIZE;
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || error.sqlite_error().is_some_and(shared)
}

fn said(path: &Path, error: &rusqlite::Error) -> StoreError {
    let above = path.parent().filter(|above| *above != Path::new(""));
    let no_directory = above.filter(|above| !above.is_dir());
    let path = path.display();
    let what = match error.sqlite_error_code() {
        _ if is_full(error) => {
            let what = "no space is left on the disk; nothing was written: make room and try again";
            return StoreError::Full(format!("{path}: {what}"));
        }
        Some(ErrorCode::ReadOnly) => "the file or its directory is read-only; nothing was written",
        Some(ErrorCode::CannotOpen) if let Some(above) = no_directory => {
            let what = format!("there is no directory {}", above.display());
            return StoreError::Coded(Code::Missing, what);
        }
        Some(ErrorCode::CannotOpen) => {
            "the file, or one beside it, cannot be opened; check who may write the directory"
        }
        Some(ErrorCode::PermissionDenied) => "the file may not be opened by this user",
        Some(ErrorCode::NotADatabase) => return StoreError::NotAStore(path.to_string()),
        Some(ErrorCode::DatabaseCorrupt) => {
            let what = "copy what can be read, or take a backup";
            return StoreError::Damaged(format!("{path}: {error}; {what}"));
        }
        Some(ErrorCode::SystemIoFailure) => {
            &format!("it could not be read or written ({error}); check the disk")
        }
        _ => &error.to_string(),
    };
    StoreError::Database(format!("{path}: {what}"))
}

impl ToSql for SqlValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            SqlValue::Null => ValueRef::Null,
            SqlValue::Bool(value) => ValueRef::Integer(value.into()),
            SqlValue::Int(value) => ValueRef::Integer(value),
            SqlValue::Real(value) => ValueRef::Real(value),
            SqlValue::Text(value) => ValueRef::Text(value.as_bytes()),
            SqlValue::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

struct SqliteRow<'r, 's>(&'r rusqlite::Row<'s>);

impl ResultRow for SqliteRow<'_, '_> {
    fn value(&self, at: usize, kind: Type) -> Result<SqlValue<'_>> {
        let damaged = |what: String| StoreError::Damaged(format!("column {at} of a result{what}"));
        let value = self.0.get_ref(at);
        let value = value.map_err(|error| damaged(format!(": {error}")))?;
        Ok(match (kind, value) {
            (_, ValueRef::Null) => SqlValue::Null,
            (Type::Id | Type::Int, ValueRef::Integer(value)) => SqlValue::Int(value),
            (Type::Bool, ValueRef::Integer(value)) => SqlValue::Bool(value != 0),
            (Type::Real, ValueRef::Integer(value)) => SqlValue::Real(value as f64),
            (Type::Real, ValueRef::Real(value)) => SqlValue::Real(value),
            (Type::Text, ValueRef::Text(text)) => {
                let text = std::str::from_utf8(text);
                SqlValue::Text(text.map_err(|_| damaged(" is not UTF-8".to_owned()))?)
            }
            (Type::Bytes, ValueRef::Blob(value)) => SqlValue::Bytes(value),
            _ => {
                let (found, expected) = (value.data_type(), kind.noun());
                return Err(damaged(format!(" is {found}, not {expected}")));
            }
        })
    }
}
