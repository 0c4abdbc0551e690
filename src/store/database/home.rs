//! Where a store lies: its address, one connection that writes and a pool of those that read.
//!
//! This file decides which database an address means and that it has the layout; it must not know what
//! the tables are for.

use crate::support::lock;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

#[cfg(feature = "postgres")]
use crate::store::database::postgres::{Postgres, ServerAddress};
use crate::store::database::sql::Database;
use crate::store::database::sqlite::{FileAccess, FileId, Sqlite, file_id};
use crate::store::error::{Result, StoreError};
use crate::store::layout::schema;

#[derive(Clone, Debug)]
pub(crate) struct HomeOptions {
    pub(crate) must_exist: bool,
    /// Nothing is written, and a store that is missing is an error.
    pub(crate) read_only: bool,
    /// Only read, also if it was cut off.
    pub(crate) damaged: bool,
    pub(crate) busy: Duration,
}

impl Default for HomeOptions {
    fn default() -> Self {
        Self {
            must_exist: false,
            read_only: false,
            damaged: false,
            busy: Duration::from_secs(30),
        }
    }
}

impl HomeOptions {
    fn may_create(&self) -> bool {
        !self.must_exist && !self.read_only
    }
}

pub(crate) struct Home {
    place: StorePlace,
    options: HomeOptions,
    idle: Mutex<Vec<Box<dyn Database>>>,
    /// Opened when something is written: a process that only reads needs one connection.
    writer: Mutex<Option<Box<dyn Database>>>,
    /// The connection that notices commits of others: its number changes with each.
    watcher: Mutex<Option<Box<dyn Database>>>,
    /// Which file it was when it was opened.
    file: Option<FileId>,
}

pub(crate) enum StorePlace {
    File(PathBuf),
    #[cfg(feature = "postgres")]
    Server(Box<ServerAddress>),
}

/// How many readers that are not in use stay open.
const IDLE: usize = 8;

impl StorePlace {
    /// Understands `PATH`, `sqlite:PATH`, `postgres://…` and `postgresql://…`.
    fn parse(url: &str) -> Result<Self> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            #[cfg(feature = "postgres")]
            return Ok(Self::Server(Box::new(ServerAddress::parse(url)?)));
            #[cfg(not(feature = "postgres"))]
            return Err(StoreError::Refused(
                "this program was built without PostgreSQL; build it with `--features postgres`"
                    .to_owned(),
            ));
        }
        let path = url.strip_prefix("sqlite:").unwrap_or(url);
        if let Some((scheme, _)) = path.split_once("://")
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            // What follows may have a password in it.
            return Err(StoreError::Refused(format!(
                "a store cannot be at `{scheme}://…`; give a path, `sqlite:PATH` or `postgres://…`"
            )));
        }
        Self::at(Path::new(path))
    }

    pub(crate) fn at(path: &Path) -> Result<Self> {
        if path.as_os_str().is_empty() {
            return Err(StoreError::Refused(
                "the address of a store is empty; give a path, such as `agents.db`".to_owned(),
            ));
        }
        if path.as_os_str() == ":memory:" {
            let message =
                "a store is a file, and `:memory:` is none; give a path, such as `agents.db`";
            return Err(StoreError::Refused(message.to_owned()));
        }
        let absolute = std::path::absolute(path);
        absolute
            .map(Self::File)
            .map_err(|error| StoreError::Io(path.into(), error))
    }

    fn connect(&self, access: FileAccess, busy: Duration) -> Result<Box<dyn Database>> {
        match self {
            Self::File(path) => Ok(Box::new(Sqlite::open(path, access, busy)?)),
            #[cfg(feature = "postgres")]
            Self::Server(address) => Ok(Box::new(Postgres::open(address, access, busy)?)),
        }
    }

    fn file(&self) -> Option<FileId> {
        match self {
            Self::File(path) => file_id(path).ok().flatten(),
            #[cfg(feature = "postgres")]
            Self::Server(_) => None,
        }
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            #[cfg(feature = "postgres")]
            Self::Server(address) => write!(f, "{address}"),
        }
    }
}

impl Home {
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.place, StorePlace::File(_))
    }

    /// Makes the store if it is missing and the options allow that.
    pub(crate) fn open(url: &str, options: &HomeOptions) -> Result<Self> {
        Self::open_at(StorePlace::parse(url)?, options)
    }

    pub(crate) fn open_at(place: StorePlace, options: &HomeOptions) -> Result<Self> {
        let mut home = Self {
            place,
            options: options.clone(),
            idle: Mutex::default(),
            writer: Mutex::default(),
            watcher: Mutex::default(),
            file: None,
        };
        let name = home.place.to_string();
        let mut first = match home.connect_reader() {
            Err(StoreError::Missing(_)) if options.may_create() => home.create()?,
            first => first?,
        };
        match schema::check(&mut *first, &name) {
            // An empty file, or an empty schema of a server, becomes a store.
            Err(StoreError::NotAStore(_))
                if options.may_create()
                    && schema::find(&mut *first)? == schema::FoundLayout::Nothing =>
            {
                first = home.create()?;
                schema::check(&mut *first, &name)?;
            }
            checked => checked?,
        }
        home.give_back(first);
        home.file = home.place.file();
        Ok(home)
    }

    /// Waits for other threads of this process. [`StoreError::Refused`] in a store that is only read.
    pub(crate) fn writer(&self) -> Result<Connection<'_>> {
        if self.options.read_only {
            return Err(StoreError::Refused(format!(
                "the store {} was opened to be read only; open it to be written",
                self.place
            )));
        }
        // The caller that panicked with it has rolled back: its guard was dropped.
        let mut writer = lock(&self.writer);
        let database = match writer.take() {
            Some(database) => database,
            None => {
                let made = self.place.connect(FileAccess::Write, self.options.busy)?;
                if self.place.file() != self.file {
                    return Err(StoreError::Database(format!(
                        "{} was replaced by another file while it was open; open the store again",
                        self.place
                    )));
                }
                made
            }
        };
        Ok(Connection {
            database: Some(database),
            owner: Owner::Writer(writer),
        })
    }

    /// Changes a store whose disk is full, as [`Sqlite::in_place`] does. No connection of this process stays open.
    pub(crate) fn in_place<T>(
        &self,
        work: impl FnOnce(&mut dyn Database) -> Result<T>,
    ) -> Result<T> {
        let mut writer = lock(&self.writer);
        match &self.place {
            StorePlace::File(path) => {
                *writer = None;
                *lock(&self.watcher) = None;
                lock(&self.idle).clear();
                Sqlite::in_place(path, self.options.busy, work)
            }
            // A server with a full disk says something else.
            #[cfg(feature = "postgres")]
            StorePlace::Server(_) => {
                work(&mut *self.place.connect(FileAccess::Write, self.options.busy)?)
            }
        }
    }

    /// For this caller alone. It goes back to the pool when it is dropped.
    pub(crate) fn reader(&self) -> Result<Connection<'_>> {
        let idle = lock(&self.idle).pop();
        let database = idle.map_or_else(|| self.connect_reader(), Ok)?;
        Ok(Connection {
            database: Some(database),
            owner: Owner::Readers(self),
        })
    }

    /// A number that changes with every commit, of this process and others.
    pub(crate) fn version(&self) -> Result<i64> {
        let mut watcher = lock(&self.watcher);
        let reader = match &mut *watcher {
            Some(reader) => reader,
            none => none.insert(self.connect_reader()?),
        };
        // Commits of others are not noticed by a connection that is closed in between.
        let alone = reader.is_alone();
        let version = if alone {
            reader.now_ns()
        } else {
            reader.data_version()
        };
        if version.is_err() || alone {
            // The next call connects again.
            *watcher = None;
        }
        version
    }

    /// Makes the store with a connection that then writes it, and connects to it.
    fn create(&self) -> Result<Box<dyn Database>> {
        let mut made = self.place.connect(FileAccess::Create, self.options.busy)?;
        schema::create(&mut *made, &self.place.to_string())?;
        *lock(&self.writer) = Some(made);
        self.connect_reader()
    }

    fn connect_reader(&self) -> Result<Box<dyn Database>> {
        let access = if self.options.damaged {
            FileAccess::Damaged
        } else if self.options.read_only {
            FileAccess::ReadOnly
        } else {
            FileAccess::Read
        };
        match self.place.connect(access, self.options.busy) {
            Err(StoreError::Full(_)) => self.place.connect(FileAccess::Alone, self.options.busy),
            connected => connected,
        }
    }

    fn give_back(&self, database: Box<dyn Database>) {
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE && !database.is_alone() {
            idle.push(database);
        }
    }
}

/// The address, without a password.
impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Home({})", self.place)
    }
}

/// A connection in use. A transaction that was not ended is rolled back.
pub(crate) struct Connection<'h> {
    database: Option<Box<dyn Database>>,
    owner: Owner<'h>,
}

/// Where a connection goes when it is dropped.
enum Owner<'h> {
    /// Where the one that writes is; it is locked, so that others wait.
    Writer(MutexGuard<'h, Option<Box<dyn Database>>>),
    /// To those that read.
    Readers(&'h Home),
}

#[allow(
    clippy::expect_used,
    reason = "only `drop` takes the connection, and nothing comes after it"
)]
impl Deref for Connection<'_> {
    type Target = dyn Database;

    fn deref(&self) -> &Self::Target {
        &**self.database.as_ref().expect("not dropped")
    }
}

#[allow(
    clippy::expect_used,
    reason = "only `drop` takes the connection, and nothing comes after it"
)]
impl DerefMut for Connection<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut **self.database.as_mut().expect("not dropped")
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        let Some(mut database) = self.database.take() else {
            return;
        };
        database.rollback();
        match &mut self.owner {
            Owner::Writer(slot) => **slot = Some(database),
            Owner::Readers(home) => home.give_back(database),
        }
    }
}
