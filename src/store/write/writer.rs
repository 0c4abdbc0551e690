//! A session that is written: its lease, what is in force, and steps that are kept one by one or together.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::json::{get, members};
use crate::store::database::sql::{Database, Dialect, collect, first, int, text};
use crate::store::error::StoreError;
use crate::store::layout::sums::{put_retired, seal_session};
use crate::store::read::catalog::{self, touch};
use crate::store::write::change::{Change, SessionRows, Written};
use crate::store::write::lease::Lease;
use crate::store::write::records::{self, AttemptRow};

/// The right to write a session, and what its writer knows of it.
#[derive(Debug)]
pub(crate) struct SessionWriter {
    name: String,
    lease: Lease,
    rows: SessionRows,
    /// How many attempts were written and have ended.
    settled: usize,
    pins: Vec<(String, String)>,
    /// Whether a working state was saved, which the next step replaces.
    saved: bool,
    /// Whether a transaction failed such that it is not known whether it was kept.
    doubtful: bool,
}

/// A commit or a working state on its way to the database.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) writer: SessionWriter,
    pub(crate) work: Work,
}

/// What a job keeps.
#[derive(Debug)]
pub(crate) struct Work {
    /// The snapshot; `None` if a working state that was saved is to go and none replaces it.
    pub(crate) change: Option<Change>,
    /// What a context keeps, as JSON text.
    pub(crate) runtime: String,
    /// Ids that are in use no more, sorted.
    pub(crate) retired: Vec<String>,
    /// The attempts from the first that had not ended when the last ones were written.
    pub(crate) attempts: Vec<AttemptRow>,
    /// Names and ids of references, sorted; `None` if they are as they were.
    pub(crate) pins: Option<Vec<(String, String)>>,
}

impl SessionWriter {
    /// Takes the lease of a session and reads what is in force. A session that does not exist is made.
    /// One transaction; linear in the units of the newest commit.
    pub(crate) fn open(
        database: &mut dyn Database,
        name: &str,
        owner: &str,
        lasts: i64,
    ) -> Result<Self, StoreError> {
        transaction(database, Begin::Write, |database| {
            Self::take(database, name, owner, lasts)
        })
    }

    fn take(
        database: &mut dyn Database,
        name: &str,
        owner: &str,
        lasts: i64,
    ) -> Result<Self, StoreError> {
        let session = match catalog::find(database, name)? {
            Some(entry) => entry.session,
            None => match catalog::create(database, name, None, None) {
                Ok(session) => session,
                // Another writer has made it in between.
                Err(StoreError::Exists(_)) => catalog::get(database, name)?.session,
                Err(error) => return Err(error),
            },
        };
        let lease = Lease::take(database, session, name, owner, lasts)?;
        // Only now no other process writes it: what the row said before may be of an earlier holder.
        let entry = catalog::by_id(database, session)?;
        let entry = entry.ok_or_else(|| StoreError::NoSession(name.to_owned()))?;
        let saved = entry.working;
        Ok(Self {
            name: name.to_owned(),
            lease,
            rows: SessionRows::read(database, session)?,
            settled: records::settled(database, session)?,
            pins: records::pins(database, session)?,
            saved,
            doubtful: false,
        })
    }

    /// How many attempts need not be written again.
    pub(crate) fn settled(&self) -> usize {
        self.settled
    }

    /// The references as they were written last.
    pub(crate) fn pins(&self) -> &[(String, String)] {
        &self.pins
    }

    /// Notes that it is not known whether the last step was kept.
    pub(crate) fn doubt(&mut self) {
        self.doubtful = true;
    }

    /// Gives the lease back.
    pub(crate) fn close(&self, database: &mut dyn Database) -> Result<(), StoreError> {
        self.lease.give_back(database)
    }

    /// Writes a step inside a transaction.
    fn write(
        &self,
        database: &mut dyn Database,
        work: &Work,
    ) -> Result<Option<Written>, StoreError> {
        let now = self.lease.renew(database, &self.name)?;
        let session = self.lease.session;
        let mut pins = work.pins.as_ref();
        if self.doubtful {
            self.check_doubt(database)?;
            // A working state that was kept after all may have brought others.
            pins = pins.or(Some(&self.pins));
        }
        let written = match &work.change {
            Some(change) => Some(self.rows.write(database, change, now)?),
            None => {
                let loose = self.rows.undo_working(database)?;
                crate::store::write::garbage::units(database, &loose)?;
                None
            }
        };
        put_retired(database, session, work.retired.iter().map(|id| &**id))?;
        records::put_attempts(database, session, self.settled, &work.attempts)?;
        if let Some(pins) = pins {
            records::put_pins(database, session, pins)?;
        }
        touch(database, session, Some(&work.runtime))?;
        Ok(written)
    }

    /// Refuses to go on if the commit that was reported as failed is there.
    fn check_doubt(&self, database: &mut dyn Database) -> Result<(), StoreError> {
        let now = SessionRows::read(database, self.lease.session)?;
        if now.newest != self.rows.newest {
            return Err(StoreError::Refused(format!(
                "the last commit of `{}`, which failed, was kept after all; open the session again",
                self.name
            )));
        }
        Ok(())
    }

    /// Notes a step whose transaction was committed.
    fn note(&mut self, work: &Work, written: Option<Written>) {
        self.saved = work.change.as_ref().is_some_and(Change::is_working);
        self.doubtful = false;
        if let Some(written) = written {
            self.rows.note(written);
        }
        let ended = work.attempts.iter().take_while(|row| row.has_ended());
        self.settled += ended.count();
        if let Some(pins) = &work.pins {
            self.pins.clone_from(pins);
        }
    }
}

/// How often a transaction is tried that the database refused because of another one.
const TRIES: usize = 5;

/// As [`run_once`]; steps that the database refused because of another transaction are tried again.
pub(crate) fn run(database: &mut dyn Database, jobs: &mut [Job]) -> Vec<Result<(), StoreError>> {
    let conflict =
        |result: &Result<(), StoreError>| matches!(result, Err(StoreError::Conflict(..)));
    let mut results = run_once(database, jobs);
    // SQLite has waited as long as it was allowed to.
    if database.dialect() == Dialect::Sqlite {
        return results;
    }
    for (job, result) in jobs.iter_mut().zip(&mut results) {
        for _ in 1..TRIES {
            if !conflict(result) {
                break;
            }
            if let Some(again) = run_once(database, std::slice::from_mut(job)).pop() {
                *result = again;
            }
        }
    }
    results
}

/// Keeps steps of several sessions in one transaction. Each gets its own result: a step that is refused
/// leaves nothing, and the others stay. If the transaction itself fails, as of a full disk, each step is
/// kept by itself.
fn run_once(database: &mut dyn Database, jobs: &mut [Job]) -> Vec<Result<(), StoreError>> {
    match together(database, jobs) {
        Ok(results) => results,
        Err(_) if jobs.len() > 1 => {
            let alone = jobs.iter_mut().map(|job| {
                let mut results = run_once(database, std::slice::from_mut(job));
                results.pop().unwrap_or(Ok(()))
            });
            alone.collect()
        }
        Err(error) => all_fail(jobs.len(), error),
    }
}

/// The transaction of [`run_once`]; with an error nothing was kept, or it is not known of a step that is
/// alone.
fn together(
    database: &mut dyn Database,
    jobs: &mut [Job],
) -> Result<Vec<Result<(), StoreError>>, StoreError> {
    // A working state that is replaced leaves units that another session may be about to place. There may
    // be one that was kept although its transaction was reported as failed.
    let replaces = |job: &Job| job.writer.saved || job.writer.doubtful;
    if jobs.iter().any(replaces) {
        database.begin_alone()?
    } else {
        database.begin(true)?
    }
    let several = jobs.len() > 1;
    let mut written = Vec::new();
    for job in &mut *jobs {
        let step = if several {
            one(database, job)
        } else {
            Ok(job.writer.write(database, &job.work))
        };
        match step {
            Ok(step) => written.push(step),
            Err(error) => {
                database.rollback();
                return Err(error);
            }
        }
    }
    if written.iter().all(Result::is_err) {
        database.rollback();
    } else if let Err(error) = database.commit() {
        database.rollback();
        for job in &mut *jobs {
            job.writer.doubt();
        }
        return Err(error);
    }
    let noted = written.into_iter().zip(jobs);
    Ok(noted
        .map(|(written, job)| written.map(|written| job.writer.note(&job.work, written)))
        .collect())
}

/// A step among others. The outer error is of the whole transaction, which is gone then: SQLite takes all
/// of it back when the disk is full.
fn one(
    database: &mut dyn Database,
    job: &mut Job,
) -> Result<Result<Option<Written>, StoreError>, StoreError> {
    database.savepoint()?;
    match job.writer.write(database, &job.work) {
        Ok(written) => {
            database.release()?;
            Ok(Ok(written))
        }
        Err(error) => match database.rollback_to() {
            Ok(()) => Ok(Err(error)),
            Err(_) => Err(error),
        },
    }
}

/// The same error for every job.
pub(crate) fn all_fail(jobs: usize, error: StoreError) -> Vec<Result<(), StoreError>> {
    let again = match &error {
        StoreError::Conflict(text) => (StoreError::Conflict as fn(String) -> _, text.clone()),
        StoreError::Database(text) => (StoreError::Database as fn(String) -> _, text.clone()),
        other => (StoreError::Refused as fn(String) -> _, other.to_string()),
    };
    let mut all = vec![Err(error)];
    all.resize_with(jobs, || Err(again.0(again.1.clone())));
    all
}

/// Commits a transaction, or takes it back if what was done in it failed.
fn finish<T>(database: &mut dyn Database, done: Result<T, StoreError>) -> Result<T, StoreError> {
    match done {
        Ok(value) => match database.commit() {
            Ok(()) => Ok(value),
            Err(error) => {
                database.rollback();
                Err(error)
            }
        },
        Err(error) => {
            database.rollback();
            Err(error)
        }
    }
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    Read,
    Write,
    /// Writes, and removes rows that sessions share: no other transaction may write.
    Alone,
}

/// Runs `work` in a transaction.
pub(crate) fn transaction<T>(
    database: &mut dyn Database,
    begin: Begin,
    work: impl FnOnce(&mut dyn Database) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    match begin {
        Begin::Read => database.begin(false)?,
        Begin::Write => database.begin(true)?,
        Begin::Alone => database.begin_alone()?,
    }
    // The connection is used again, so a transaction ends also where the work unwinds.
    let done = match catch_unwind(AssertUnwindSafe(|| work(database))) {
        Ok(done) => done,
        Err(panic) => {
            database.rollback();
            resume_unwind(panic)
        }
    };
    if begin == Begin::Read {
        // What was read was read; SQLite refuses to commit after it has met a damaged page.
        database.rollback();
        return done;
    }
    finish(database, done)
}

/// What a session remembers of the ids that were used: those that are in no unit of the newest commit.
/// Of a session that no context has written yet only those are noted that a prune has met; its closed
/// placements are read, once.
pub(crate) fn retired(
    database: &mut dyn Database,
    session: i64,
    written: bool,
) -> Result<Vec<String>, StoreError> {
    let noted = "select id from retired where session_id = ?1 order by id";
    let closed = "select distinct n.id from placement p join node n on n.unit_id = p.unit_id \
         where p.session_id = ?1 and p.last_seq < ?2 and n.id is not null \
         union select id from retired where session_id = ?1 order by 1";
    if written {
        collect(database, noted, &[session.into()], |row| {
            Ok(text(row, 0)?.to_owned())
        })
    } else {
        collect(
            database,
            closed,
            &[session.into(), crate::store::write::change::IN_FORCE.into()],
            |row| Ok(text(row, 0)?.to_owned()),
        )
    }
}

/// The largest creation time of a session's nodes, those that were pruned included. Linear in the others.
pub(crate) fn last_time(database: &mut dyn Database, session: i64) -> Result<i64, StoreError> {
    let last = first(
        database,
        "select coalesce(max(n.created_at_ns), 0) from placement p join node n \
         on n.unit_id = p.unit_id where p.session_id = ?1",
        &[session.into()],
        |row| int(row, 0),
    )?;
    let noted = first(
        database,
        "select meta from session where session_id = ?1",
        &[session.into()],
        |row| Ok(row.text(0)?.and_then(last_ns)),
    )?;
    Ok(last.unwrap_or(0).max(noted.flatten().unwrap_or(0)))
}

/// The time that [`note_unwritten`] has noted.
fn last_ns(meta: &str) -> Option<i64> {
    get(&members(meta), "last_ns")?.parse().ok()
}

/// Notes what a writer to come needs to know of snapshots that go, of a session that no context has
/// written yet: ids that were used, and the last time.
pub(crate) fn note_unwritten(database: &mut dyn Database, session: i64) -> Result<(), StoreError> {
    let ids = retired(database, session, false)?;
    put_retired(database, session, ids.iter().map(|id| &**id))?;
    let meta = format!("{{\"last_ns\":{}}}", last_time(database, session)?);
    database.execute(
        "update session set meta = ?2 where session_id = ?1",
        &[session.into(), meta.as_str().into()],
    )?;
    seal_session(database, session)
}
