//! An open store: its connections, its queue of commits, and who writes.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use crate::store::database::home::Home;
use crate::store::database::sql::{Begin, Database, transaction};
use crate::store::error::{Result, StoreError};
use crate::store::write::queue::Queue;
use crate::store::write::writer::{CommitStep, SessionWriter, all_fail, run};

/// Numbers the writers of this process, as each needs a name of its own.
static WRITERS: AtomicU64 = AtomicU64::new(1);

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) home: Home,
    pub(crate) queue: Queue,
    /// Whether commits of several sessions share a transaction.
    pub(crate) batched: bool,
    /// Who writes, as others read it.
    pub(crate) owner: String,
    /// How long a lease lasts without use.
    pub(crate) lease: Duration,
    /// What still has something that was removed: [`NOTHING`], [`IN_LOG`] or [`IN_PAGES`].
    pub(crate) unscrubbed: AtomicU8,
}

pub(crate) const NOTHING: u8 = 0;
/// The log of recent commits.
pub(crate) const IN_LOG: u8 = 1;
/// The pages of the file.
pub(crate) const IN_PAGES: u8 = 2;

/// How long a removal waits for readers, so that what it removed is in no file.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

impl Core {
    /// Takes the right to write a session, which is made if it does not exist.
    pub(crate) fn open_writer(&self, name: &str) -> Result<SessionWriter> {
        let number = WRITERS.fetch_add(1, Ordering::Relaxed);
        let owner = format!("{}/{}/{number}", self.owner, std::process::id());
        let lasts = i64::try_from(self.lease.as_nanos()).unwrap_or(i64::MAX);
        let mut database = self.home.writer()?;
        SessionWriter::open(&mut *database, name, &owner, lasts)
    }

    pub(crate) fn keep(&self, step: CommitStep) -> (CommitStep, Result<()>) {
        if self.batched {
            return self.queue.keep(step, |steps| self.keep_all(steps));
        }
        let mut steps = [step];
        let result = self.keep_all(&mut steps).pop();
        let [step] = steps;
        (step, result.unwrap_or(Ok(())))
    }

    pub(crate) fn keep_all(&self, steps: &mut [CommitStep]) -> Vec<Result<()>> {
        match self.home.writer() {
            Ok(mut writer) => {
                let done = run(&mut *writer, steps);
                self.scrub_again(&mut *writer);
                done
            }
            Err(error) => all_fail(steps.len(), error),
        }
    }

    /// Gives a lease back. If that fails, it runs out.
    pub(crate) fn close(&self, writer: &SessionWriter) {
        if let Ok(mut database) = self.home.writer() {
            let _ = writer.lease.give_back(&mut *database);
        }
    }

    /// Reads in one transaction: everything is of one moment.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&mut dyn Database) -> Result<T>) -> Result<T> {
        let mut reader = self.home.reader()?;
        transaction(&mut *reader, Begin::Read, work)
    }

    /// Reads with one statement, which needs no transaction to be of one moment.
    pub(crate) fn read_once<T>(
        &self,
        statement: impl FnOnce(&mut dyn Database) -> Result<T>,
    ) -> Result<T> {
        statement(&mut *self.home.reader()?)
    }

    pub(crate) fn write<T>(&self, work: impl FnOnce(&mut dyn Database) -> Result<T>) -> Result<T> {
        let mut database = self.home.writer()?;
        let done = transaction(&mut *database, Begin::Write, work)?;
        self.scrub_again(&mut *database);
        Ok(done)
    }

    /// Removes something, also where the disk has no room for a log of that.
    pub(crate) fn remove<T>(&self, work: impl Fn(&mut dyn Database) -> Result<T>) -> Result<T> {
        let alone = |database: &mut dyn Database| transaction(database, Begin::Alone, &work);
        self.with_or_without_log(alone)
    }

    pub(crate) fn with_or_without_log<T>(
        &self,
        work: impl Fn(&mut dyn Database) -> Result<T>,
    ) -> Result<T> {
        let done = self
            .home
            .writer()
            .and_then(|mut database| work(&mut *database));
        match done {
            Err(StoreError::Full(_)) => self.home.in_place(work),
            done => done,
        }
    }

    /// Makes what was removed unreadable in the files too. Where a process reads, the log of recent commits has it until a
    /// later write, or until the last connection is closed; where another one writes all the time, or no room is left, the
    /// file has it until the next call. Linear in the store.
    pub(crate) fn tidy(&self) {
        // The copy that a full disk takes is written as a whole, and so is the store then.
        let left = match self.with_or_without_log(|database| database.vacuum(PATIENCE)) {
            Ok(true) => NOTHING,
            Ok(false) => IN_LOG,
            Err(_) => IN_PAGES,
        };
        self.unscrubbed.store(left, Ordering::Relaxed);
    }

    fn scrub_again(&self, database: &mut dyn Database) {
        if self.unscrubbed.load(Ordering::Relaxed) == IN_LOG
            && matches!(database.scrub(Duration::ZERO), Ok(true))
        {
            self.unscrubbed.store(NOTHING, Ordering::Relaxed);
        }
    }

    /// Does what a write would do, and takes it back.
    pub(crate) fn rehearse<T>(
        &self,
        work: impl FnOnce(&mut dyn Database) -> Result<T>,
    ) -> Result<T> {
        let mut database = self.home.writer()?;
        database.begin(Begin::Alone)?;
        let done = work(&mut *database);
        database.rollback();
        done
    }
}

pub(crate) fn process_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    if host.is_empty() { "process" } else { host }.to_owned()
}
