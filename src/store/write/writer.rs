//! A session that is written: its lease, what is in force, and steps that are kept one by one or together.

use crate::store::database::sql::{Backend, Begin, Database, Savepoint, end_part, transaction};
use crate::store::error::{Result, StoreError};
use crate::store::read::catalog;
use crate::store::write::change::{SessionRows, SnapshotChange, WrittenChange};
use crate::store::write::lease::Lease;
use crate::store::write::records::{self, Beside};

#[derive(Debug)]
pub(crate) struct SessionWriter {
    name: String,
    pub(crate) lease: Lease,
    rows: SessionRows,
    /// How many attempts were written and have ended.
    pub(crate) settled: usize,
    /// The references as they were written last.
    pub(crate) pins: Vec<(String, String)>,
    /// Whether a working state was saved, which the next step replaces.
    saved: bool,
    /// Whether a transaction failed such that it is not known whether it was kept.
    doubtful: bool,
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) writer: SessionWriter,
    /// The snapshot; `None` if a working state that was saved is to go and none replaces it.
    pub(crate) change: Option<SnapshotChange>,
    pub(crate) beside: Beside,
}

impl SessionWriter {
    /// A session that does not exist is made. One transaction; linear in the units of the newest commit.
    pub(crate) fn open(
        database: &mut dyn Database,
        name: &str,
        owner: &str,
        lasts: i64,
    ) -> Result<Self> {
        transaction(database, Begin::Write, |database| {
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
        })
    }

    pub(crate) fn doubt(&mut self) {
        self.doubtful = true;
    }

    /// Refuses to go on if the commit that was reported as failed is there.
    fn check_doubt(&self, database: &mut dyn Database) -> Result<()> {
        let now = SessionRows::read(database, self.lease.session)?;
        if now.newest != self.rows.newest {
            return Err(StoreError::Refused(format!(
                "the last commit of `{}`, which failed, was kept after all; open the session again",
                self.name
            )));
        }
        Ok(())
    }
}

impl Job {
    fn write(&mut self, database: &mut dyn Database) -> Result<Option<WrittenChange>> {
        let writer = &self.writer;
        let now = writer.lease.renew(database, &writer.name)?;
        if writer.doubtful {
            writer.check_doubt(database)?;
            // A working state that was kept after all may have brought others.
            self.beside.pins.get_or_insert_with(|| writer.pins.clone());
        }
        let written = match &self.change {
            Some(change) => Some(writer.rows.write(database, change, now)?),
            None => {
                writer.rows.drop_working(database)?;
                None
            }
        };
        self.beside.put(database, writer.lease.session)?;
        Ok(written)
    }

    fn note(&mut self, written: Option<WrittenChange>) {
        let writer = &mut self.writer;
        writer.saved = self.change.as_ref().is_some_and(SnapshotChange::is_working);
        writer.doubtful = false;
        if let Some(written) = written {
            writer.rows.note(written);
        }
        writer.settled = self.beside.ended();
        if let Some(pins) = &self.beside.pins {
            writer.pins.clone_from(pins);
        }
    }
}

const TRIES: usize = 5;

/// As [`run_once`]; steps that the database refused because of another transaction are tried again.
pub(crate) fn run(database: &mut dyn Database, jobs: &mut [Job]) -> Vec<Result<()>> {
    let conflict = |result: &Result<()>| matches!(result, Err(StoreError::Conflict(..)));
    let mut results = run_once(database, jobs);
    // SQLite has waited as long as it was allowed to.
    if database.dialect() == Backend::Sqlite {
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

/// Each gets its own result: one that is refused leaves nothing, and the others stay. If the transaction itself fails, as
/// of a full disk, each step is kept by itself.
fn run_once(database: &mut dyn Database, jobs: &mut [Job]) -> Vec<Result<()>> {
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

/// With an error nothing was kept, or it is not known of a step that is alone.
fn together(database: &mut dyn Database, jobs: &mut [Job]) -> Result<Vec<Result<()>>> {
    // A working state that is replaced leaves units that another session may be about to place. There may
    // be one that was kept although its transaction was reported as failed.
    let replaces = |job: &Job| job.writer.saved || job.writer.doubtful;
    let alone = jobs.iter().any(replaces);
    database.begin(if alone { Begin::Alone } else { Begin::Write })?;
    let several = jobs.len() > 1;
    let steps = jobs.iter_mut().map(|job| {
        if !several {
            return Ok(job.write(database));
        }
        database.savepoint(Savepoint::Set)?;
        let done = job.write(database);
        end_part(database, done)
    });
    let written: Result<Vec<_>> = steps.collect();
    let written = written.inspect_err(|_| database.rollback())?;
    if written.iter().all(Result::is_err) {
        database.rollback();
    } else if let Err(error) = database.commit() {
        database.rollback();
        jobs.iter_mut().for_each(|job| job.writer.doubt());
        return Err(error);
    }
    let noted = written.into_iter().zip(jobs);
    Ok(noted
        .map(|(written, job)| written.map(|written| job.note(written)))
        .collect())
}

pub(crate) fn all_fail(jobs: usize, error: StoreError) -> Vec<Result<()>> {
    let again = match &error {
        StoreError::Conflict(text) => (StoreError::Conflict as fn(String) -> _, text.clone()),
        StoreError::Database(text) => (StoreError::Database as fn(String) -> _, text.clone()),
        other => (StoreError::Refused as fn(String) -> _, other.to_string()),
    };
    let mut all = vec![Err(error)];
    all.resize_with(jobs, || Err(again.0(again.1.clone())));
    all
}
