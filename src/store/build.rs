//! A store, and opening it.

use std::path::Path;
use std::sync::atomic::AtomicU8;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::engine::Engine;
use crate::store::database::home::{Home, HomeOptions, StorePlace};
use crate::store::error::StoreError;
use crate::store::read::open::OpenSessions;
use crate::store::write::core::{Core, NOTHING, process_name};
use crate::store::write::queue::Queue;
use crate::support::diag::Error;
use crate::support::macros::setters;

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

/// Sessions in a SQLite file or, with the feature `postgres`, in PostgreSQL (STORE §1 to §4).
///
/// A store is shared by threads, and by any number of processes: one writes a session at a time, any number
/// read it. A commit is on the disk when [`Context::commit`](crate::Context::commit) returns.
///
/// ```
/// use pactql::{Context, Message, Provider, Store};
/// # let dir = std::env::temp_dir().join(format!("pactql-store-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("agents.db");
/// let store = Store::open(&path)?;
/// let mut context = store.write("support-42")?; // one writer a session
/// context.append(Message::user("Where is my refund?"))?;
/// let request = context.render(Provider::OpenAi)?; // what to send
/// context.reply(Message::assistant("On its way."))?;
/// context.commit()?; // durable when it returns
/// drop(context);
///
/// let session = store.session("support-42")?;
/// assert_eq!(store.engine().rows(&session, "@t0 ^seq .cb")?.count(), 2);
/// for found in store.select("@t0 .cb[role='user']")? {
///     println!("{}", found?.session);
/// }
/// # std::fs::remove_dir_all(dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Store {
    pub(super) core: Arc<Core>,
    pub(super) engine: Arc<Engine>,
    pub(super) open: Arc<Mutex<OpenSessions>>,
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
pub struct StoreBuilder {
    engine: Option<Arc<Engine>>,
    memory: Option<usize>,
    durability: Durability,
    lease: Option<Duration>,
    owner: Option<String>,
    busy: Option<Duration>,
    must_exist: bool,
    read_only: bool,
    damaged: bool,
}

const MEMORY: usize = 256 << 20;
const LEASE: Duration = Duration::from_secs(30);

impl StoreBuilder {
    setters! {
        /// The engine that runs selectors; by default one of the canonical edition.
        engine: Arc<Engine>;
        /// How many bytes of indexes of sessions may stay in memory, 256 MiB by default. The sessions that were
        /// used longest ago go first; a caller that holds one keeps it. Contexts are not counted.
        memory: usize;
        /// When commits are written to the disk.
        durability: Durability;
        /// How long a lease lasts when its holder does not use it, by the database's clock; 30 seconds by
        /// default.
        lease: Duration;
        /// How long a transaction waits for that of another process; 30 seconds by default.
        busy: Duration;
    }

    /// Who writes, as another writer that has to wait reads it; by default the host and the process.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Refuses to make a store that is missing.
    #[must_use]
    pub fn must_exist(mut self) -> Self {
        self.must_exist = true;
        self
    }

    /// Opens the store for reading alone; nothing of it is written.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Opens the store for reading alone, also if its file was cut off: to verify it, or to [salvage](Store::salvage) what
    /// is there.
    #[must_use]
    pub fn damaged(mut self) -> Self {
        self.damaged = true;
        self
    }

    /// Opens the store in the SQLite file at a path.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Store, Error> {
        self.store(|options| Home::open_at(StorePlace::at(path.as_ref())?, options))
    }

    /// Opens the store at `postgres://…`, `sqlite:PATH` or a path.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn connect(self, url: &str) -> Result<Store, Error> {
        self.store(|options| Home::open(url, options))
    }

    fn store(
        self,
        open: impl FnOnce(&HomeOptions) -> Result<Home, StoreError>,
    ) -> Result<Store, Error> {
        let mut options = HomeOptions {
            must_exist: self.must_exist,
            read_only: self.read_only || self.damaged,
            damaged: self.damaged,
            ..HomeOptions::default()
        };
        options.busy = self.busy.unwrap_or(options.busy);
        let core = Core {
            home: open(&options)?,
            queue: Queue::default(),
            batched: self.durability == Durability::Batched,
            owner: self.owner.unwrap_or_else(process_name),
            lease: self.lease.unwrap_or(LEASE),
            unscrubbed: AtomicU8::new(NOTHING),
        };
        let open = OpenSessions::new(self.memory.unwrap_or(MEMORY));
        Ok(Store {
            core: Arc::new(core),
            engine: self.engine.unwrap_or_default(),
            open: Arc::new(Mutex::new(open)),
        })
    }
}
