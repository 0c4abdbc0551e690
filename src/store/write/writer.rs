//! A session that is written: its lease, what is in force, and steps that are kept one by one or together.

use crate::engine::Beside;
use crate::store::database::sql::{Backend, Begin, Database, transaction};
use crate::store::error::{Result, StoreError};
use crate::store::layout::rows::KnownRows;
use crate::store::read::catalog;
use crate::store::write::change::{SessionRows, SnapshotChange, Written};
use crate::store::write::garbage;
use crate::store::write::lease::Lease;
use crate::store::write::records;

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

/// What is to be written in one transaction, alone or with others: a commit, or a working state.
#[derive(Debug)]
pub(crate) struct CommitStep {
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

impl CommitStep {
    fn note(&mut self, written: Option<Written>) {
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

/// Writes all steps, each phase of all of them before the next one: a server gets as many messages for many as for one. A step
/// whose lease is lost is refused, and nothing of it is written; any other error is one of all steps.
fn write_all(
    database: &mut dyn Database,
    steps: &mut [CommitStep],
) -> Result<Vec<Result<Option<Written>>>> {
    let leases = steps.iter().map(|step| &step.writer);
    let leases: Vec<_> = leases
        .map(|writer| (&writer.lease, &*writer.name))
        .collect();
    let (now, renewed) = Lease::renew_all(database, &leases)?;
    let held = || renewed.iter().map(Result::is_ok);
    let mut loose = Vec::new();
    for (step, _) in steps.iter_mut().zip(held()).filter(|(_, held)| *held) {
        let writer = &step.writer;
        if writer.doubtful {
            writer.check_doubt(database)?;
            // A working state that was kept after all may have brought others.
            step.beside.pins.get_or_insert_with(|| writer.pins.clone());
        }
        if writer.saved || writer.doubtful {
            loose.extend(writer.rows.undo_working(database)?);
        }
    }
    let kept = || steps.iter().zip(held()).filter(|(_, held)| *held);
    let changes = kept().filter_map(|(step, _)| {
        let change = step.change.as_ref()?;
        Some((&step.writer.rows, change, now))
    });
    let changes: Vec<_> = changes.collect();
    let made = SessionRows::put_all(database, &changes, &mut KnownRows::default())?;
    garbage::units(database, &loose)?;
    let besides = kept().map(|(step, _)| (&step.beside, step.writer.lease.session));
    Beside::put_all(database, &besides.collect::<Vec<_>>())?;
    let (mut made, mut written) = (made.into_iter(), Vec::with_capacity(steps.len()));
    for (step, renewed) in steps.iter().zip(renewed) {
        written.push(renewed.map(|()| step.change.as_ref().and_then(|_| made.next().flatten())));
    }
    Ok(written)
}

const TRIES: usize = 5;

/// As [`run_once`]; steps that the database refused because of another transaction are tried again.
pub(crate) fn run(database: &mut dyn Database, steps: &mut [CommitStep]) -> Vec<Result<()>> {
    let conflict = |result: &Result<()>| matches!(result, Err(StoreError::Conflict(..)));
    let mut results = run_once(database, steps);
    // SQLite has waited as long as it was allowed to.
    if database.dialect() == Backend::Sqlite {
        return results;
    }
    for (step, result) in steps.iter_mut().zip(&mut results) {
        for _ in 1..TRIES {
            if !conflict(result) {
                break;
            }
            if let Some(again) = run_once(database, std::slice::from_mut(step)).pop() {
                *result = again;
            }
        }
    }
    results
}

/// Each gets its own result: one that is refused leaves nothing, and the others stay. If the transaction itself fails, as
/// of a full disk, each step is kept by itself.
fn run_once(database: &mut dyn Database, steps: &mut [CommitStep]) -> Vec<Result<()>> {
    match together(database, steps) {
        Ok(results) => results,
        Err(_) if steps.len() > 1 => {
            let alone = steps.iter_mut().map(|step| {
                let mut results = run_once(database, std::slice::from_mut(step));
                results.pop().unwrap_or(Ok(()))
            });
            alone.collect()
        }
        Err(error) => all_fail(steps.len(), error),
    }
}

/// With an error nothing was kept, or it is not known of a step that is alone.
fn together(database: &mut dyn Database, steps: &mut [CommitStep]) -> Result<Vec<Result<()>>> {
    // A working state that is replaced leaves units that another session may be about to place. There may
    // be one that was kept although its transaction was reported as failed.
    let replaces = |step: &CommitStep| step.writer.saved || step.writer.doubtful;
    let alone = steps.iter().any(replaces);
    database.begin(if alone { Begin::Alone } else { Begin::Write })?;
    let written = write_all(database, steps).inspect_err(|_| database.rollback())?;
    if written.iter().all(Result::is_err) {
        database.rollback();
    } else if let Err(error) = database.commit() {
        database.rollback();
        steps.iter_mut().for_each(|step| step.writer.doubt());
        return Err(error);
    }
    let noted = written.into_iter().zip(steps);
    Ok(noted
        .map(|(written, step)| written.map(|written| step.note(written)))
        .collect())
}

pub(crate) fn all_fail(steps: usize, error: StoreError) -> Vec<Result<()>> {
    let again = match &error {
        StoreError::Conflict(text) => (StoreError::Conflict as fn(String) -> _, text.clone()),
        StoreError::Database(text) => (StoreError::Database as fn(String) -> _, text.clone()),
        StoreError::Full(text) => (StoreError::Full as fn(String) -> _, text.clone()),
        other => (StoreError::Refused as fn(String) -> _, other.to_string()),
    };
    let mut all = vec![Err(error)];
    all.resize_with(steps, || Err(again.0(again.1.clone())));
    all
}

#[cfg(test)]
#[cfg(all(unix, feature = "postgres"))]
mod tests {
    use crate::Message;
    use crate::engine::Context;
    use crate::store::Store;
    use crate::store::database::postgres_client::ROUND_TRIPS;
    use crate::store::server::Server;

    /// Round trips of a commit of this many sessions in one transaction.
    fn round_trips(store: &Store, sessions: usize) -> u64 {
        let open = |at| store.write(&format!("{sessions} sessions/{at}")).unwrap();
        let mut contexts: Vec<Context> = (0..sessions).map(open).collect();
        let mut counted = 0;
        // The statements of the first ones are not known to the server yet, and their sessions have no unit that ends.
        for round in 0..3 {
            for (at, context) in contexts.iter_mut().enumerate() {
                let said = format!("the question {round} of {at}");
                context.append(Message::user(&said)).unwrap();
                context.reply(Message::assistant("the answer")).unwrap();
            }
            let before = ROUND_TRIPS.get();
            for done in store.commit_all(&mut contexts) {
                done.unwrap();
            }
            counted = ROUND_TRIPS.get() - before;
        }
        counted
    }

    #[test]
    fn as_many_round_trips_for_many_sessions_as_for_one() {
        let server = match Server::start() {
            Ok(server) => server,
            Err(why) => return println!("SKIPPED: {why}"),
        };
        let store = Store::connect(&server.url("trips")).unwrap();
        let counted = [1, 2, 8, 32].map(|sessions| round_trips(&store, sessions));
        println!("round trips of 1, 2, 8 and 32 sessions: {counted:?}");
        // To begin, the time, leases, units that end, contents, units, the rest, sums twice, to commit.
        assert!(counted.iter().all(|trips| *trips <= 10), "{counted:?}");
        assert!(store.verify().unwrap().is_empty());
    }
}
