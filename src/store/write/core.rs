//! An open store: its connections, its queue of commits, and who writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::database::home::Home;
use crate::store::database::sql::{Begin, Database, Dialect, transaction};
use crate::store::error::Result;
use crate::store::write::queue::Queue;
use crate::store::write::writer::{Job, SessionWriter, all_fail, run};

#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOptions {
    /// Whether commits of several sessions share a transaction.
    pub(crate) batched: bool,
    /// Who writes, as others read it.
    pub(crate) owner: Option<String>,
    /// How long a lease lasts without use, in nanoseconds; 30 seconds unless the caller says.
    pub(crate) lease_ns: Option<i64>,
}

/// Numbers the writers of this process, as each needs a name of its own.
static WRITERS: AtomicU64 = AtomicU64::new(1);

#[derive(Debug)]
pub(crate) struct Core {
    home: Home,
    queue: Queue,
    options: WriteOptions,
    owner: String,
}

impl Core {
    pub(crate) fn new(home: Home, options: WriteOptions) -> Arc<Self> {
        let owner = options.owner.clone().unwrap_or_else(process_name);
        Arc::new(Self {
            home,
            queue: Queue::default(),
            options,
            owner,
        })
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// Takes the right to write a session, which is made if it does not exist.
    pub(crate) fn open_writer(&self, name: &str) -> Result<SessionWriter> {
        let number = WRITERS.fetch_add(1, Ordering::Relaxed);
        let owner = format!("{}/{}/{number}", self.owner, std::process::id());
        let lasts = self.options.lease_ns.unwrap_or(30_000_000_000);
        let mut database = self.home.writer()?;
        SessionWriter::open(&mut *database, name, &owner, lasts)
    }

    /// Keeps a step, alone or with others that wait.
    pub(crate) fn keep(&self, job: Job) -> (Job, Result<()>) {
        if self.options.batched {
            return self.queue.keep(job, |jobs| self.keep_all(jobs));
        }
        let mut jobs = [job];
        let result = self.keep_all(&mut jobs).pop();
        let [job] = jobs;
        (job, result.unwrap_or(Ok(())))
    }

    pub(crate) fn keep_all(&self, jobs: &mut [Job]) -> Vec<Result<()>> {
        match self.home.writer() {
            Ok(mut writer) => run(&mut *writer, jobs),
            Err(error) => all_fail(jobs.len(), error),
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
        transaction(&mut *self.home.writer()?, Begin::Write, work)
    }

    /// Removes in one transaction, and makes what was removed unreadable in the files too, if `scrub` is
    /// set.
    pub(crate) fn remove<T>(
        &self,
        scrub: bool,
        work: impl FnOnce(&mut dyn Database) -> Result<T>,
    ) -> Result<T> {
        let mut database = self.home.writer()?;
        let done = transaction(&mut *database, Begin::Alone, work)?;
        if scrub {
            database.scrub()?;
        }
        Ok(done)
    }

    /// Empties the log of recent commits of a SQLite file after something was removed, if no process reads. Else
    /// that happens when the last connection is closed.
    pub(crate) fn tidy(&self) {
        if let Ok(mut database) = self.home.writer()
            && database.dialect() == Dialect::Sqlite
        {
            let _ = database.scrub();
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

/// Who writes, unless the caller says: the host.
fn process_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    if host.is_empty() { "process" } else { host }.to_owned()
}
