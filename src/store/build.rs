//! Opening a store.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::engine::Engine;
use crate::store::Store;
use crate::store::database::home::{Home, Options as HomeOptions, StorePlace};
use crate::store::read::open::OpenSessions;
use crate::store::write::core::{Core, WriteOptions};
use crate::support::diag::Error;

/// When a commit is written to the disk (STORE §3). It is durable when it returns in both cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Each in its own transaction.
    #[default]
    Each,
    /// Commits of several threads that wait at the same time share a transaction, and one write to the
    /// disk. For many sessions that commit often: each waits a little longer, and all together are faster,
    /// the more so the slower the disk is.
    Batched,
}

/// Settings of a [`Store`].
///
/// ```
/// use pactql::{Store, store::Durability};
/// let builder = Store::builder()
///     .memory(64 << 20)
///     .durability(Durability::Batched)
///     .must_exist();
/// let error = builder.open("missing.db").unwrap_err();
/// assert_eq!(error.code(), pactql::Code::Missing);
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct StoreBuilder {
    engine: Option<Arc<Engine>>,
    memory: Option<usize>,
    home: HomeOptions,
    write: WriteOptions,
}

/// The bytes of indexes that stay in memory, unless the caller says.
const MEMORY: usize = 256 << 20;

impl StoreBuilder {
    /// The engine that runs selectors; by default one of the canonical edition.
    pub fn engine(mut self, engine: Arc<Engine>) -> Self {
        self.engine = Some(engine);
        self
    }

    /// How many bytes of indexes of sessions may stay in memory, 256 MiB by default. The sessions that were
    /// used longest ago go first; a caller that holds one keeps it. Contexts are not counted.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// When commits are written to the disk.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.write.batched = durability == Durability::Batched;
        self
    }

    /// How long a lease lasts when its holder does not use it, by the database's clock; 30 seconds by
    /// default.
    pub fn lease(mut self, lasts: Duration) -> Self {
        self.write.lease_ns = Some(i64::try_from(lasts.as_nanos()).unwrap_or(i64::MAX));
        self
    }

    /// Who writes, as another writer that has to wait reads it; by default the host and the process.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.write.owner = Some(owner.into());
        self
    }

    /// How long a transaction waits for that of another process; 30 seconds by default.
    pub fn busy(mut self, longest: Duration) -> Self {
        self.home.busy = longest;
        self
    }

    /// Refuses to make a store that is missing.
    pub fn must_exist(mut self) -> Self {
        self.home.must_exist = true;
        self
    }

    /// Opens the store for reading alone; nothing of it is written.
    pub fn read_only(mut self) -> Self {
        self.home.read_only = true;
        self
    }

    /// Opens the store in the SQLite file at a path.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Store, Error> {
        let home = Home::open_at(StorePlace::at(path.as_ref())?, &self.home)?;
        Ok(self.store(home))
    }

    /// Opens the store at `postgres://…`, `sqlite:PATH` or a path.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn connect(self, url: &str) -> Result<Store, Error> {
        let home = Home::open(url, &self.home)?;
        Ok(self.store(home))
    }

    fn store(self, home: Home) -> Store {
        Store {
            core: Core::new(home, self.write),
            engine: self.engine.unwrap_or_default(),
            open: Arc::new(Mutex::new(OpenSessions::new(self.memory.unwrap_or(MEMORY)))),
        }
    }
}
