//! Many sessions in one database: the public [`Store`].
//!
//! It hands out the same [`Session`] and [`Context`] as files do. What is read and written, the layout in
//! `crate::store` decides; this module finds sessions by name, keeps open ones within a budget of memory,
//! and resolves what needs selectors.
//!
//! | part | files |
//! |---|---|
//! | opening a store | `build` |
//! | open sessions, and their memory | `open` |
//! | sessions from elsewhere | `import`, `log` |
//! | sessions as wholes | `manage` |
//! | copies as Parquet files | `parquet` |
//! | the text index | `texts` |
//! | selectors over many sessions | `many`, `ids`, `asking`, `sweep` |
//! | selectors that the database answers | `by_sql` |
//! | commits of many contexts | `together` |
//! | provider calls as they are made | `ledger` |

mod asking;
mod build;
mod by_sql;
mod grouped;
mod ids;
mod import;
mod ledger;
mod log;
mod manage;
mod many;
mod open;
#[cfg(feature = "parquet")]
mod parquet;
mod sweep;
mod texts;
mod together;

use std::sync::{Arc, Mutex};

pub use asking::SessionAnswer;
pub use build::{Durability, StoreBuilder};
pub use by_sql::SqlRow;
#[cfg(feature = "cli")]
pub(crate) use by_sql::views;
pub use ids::{SessionIds, StoreIds};
pub use import::ImportStopped;
pub(crate) use ledger::{Ledger, Row};
pub use log::LogImport;
pub use manage::{Damage, Pruned, Retention, SessionInfo};
pub use many::StoreAnswers;
#[cfg(feature = "parquet")]
pub use parquet::{ParquetExport, ParquetExported, ParquetImported};
pub use texts::TextIndex;

use self::open::OpenSessions;
use super::context::{Context, ContextBuilder, Kept};
use super::facade::Engine;
use super::keeper::Keeper;
use crate::history::Session;
use crate::runtime::Commit;
use crate::store::{self, Core, StoreError};
use crate::support::diag::Error;

/// Sessions in a SQLite file or, with the feature `postgres`, in PostgreSQL (STORE §1 to §4).
///
/// A store is shared by threads, and by any number of processes: one writes a session at a time, any number
/// read it. A commit is on the disk when [`Context::commit`] returns.
///
/// ```
/// use pactql::{Context, Message, Provider, Store};
/// # let dir = std::env::temp_dir().join(format!("pactql-store-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("agents.db");
/// let store = Store::open(path.to_str().unwrap_or("agents.db"))?;
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
    core: Arc<Core>,
    engine: Arc<Engine>,
    open: Arc<Mutex<OpenSessions>>,
}

impl Store {
    /// Opens the store at a path, `sqlite:PATH` or `postgres://…`; one that is missing is made.
    ///
    /// # Errors
    /// The address cannot be reached, is not a store, or has the layout of another version.
    pub fn open(url: &str) -> Result<Self, Error> {
        Self::builder().open(url)
    }

    /// Opens a store with other settings.
    pub fn builder() -> StoreBuilder {
        StoreBuilder::default()
    }

    /// The engine that runs the selectors of this store.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// How many sessions are open for reading, within the budget of memory.
    pub fn open_sessions(&self) -> usize {
        open::lock(&self.open).len()
    }

    /// A session for reading: the newest commit at the time of the call, and what came before. Nothing of
    /// its history is read until it is asked for. Asking again for a session that has not changed gives
    /// the same one while the budget of memory lasts.
    ///
    /// # Errors
    /// `E_SESSION_NOT_FOUND`; those of the database.
    pub fn session(&self, name: &str) -> Result<Arc<Session>, Error> {
        let session = open::by_name(&self.open, &self.core, name);
        session.map_err(|error| self.not_found(name, error))
    }

    /// Shows later commits of other writers in a session of this store. Returns whether there were any.
    ///
    /// # Errors
    /// The session is of another store, or was deleted; those of the database.
    pub fn refresh(&self, session: &Session) -> Result<bool, Error> {
        open::refresh(&self.open, &self.core, session)
    }

    /// Opens a session for writing, and makes it if it does not exist. Its lease is given back when the
    /// context is dropped; whatever was neither committed nor saved is lost then. Linear in the newest
    /// commit.
    ///
    /// # Errors
    /// `E_SESSION_BUSY`: another writer holds the lease. Those of the database, and of
    /// [`Context::resume`].
    pub fn write(&self, name: &str) -> Result<Context, Error> {
        self.write_with(name, Context::builder())
    }

    /// As [`Store::write`], with settings for the context.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn write_with(&self, name: &str, builder: ContextBuilder) -> Result<Context, Error> {
        let writer = self.core.open_writer(name)?;
        match self.resume(name, builder.engine_or(&self.engine)) {
            Ok((mut context, unnoted)) => {
                context.keep_in(Keeper::new(Arc::clone(&self.core), writer, unnoted));
                Ok(context)
            }
            Err(error) => {
                self.core.close(&writer);
                Err(error)
            }
        }
    }

    /// The context of a session as it was kept, and ids in use no more that the store has not noted yet.
    fn resume(&self, name: &str, builder: ContextBuilder) -> Result<(Context, Vec<String>), Error> {
        let (entry, used, last_ns, pins) = self.core.read(|database| {
            let entry = store::get(database, name)?;
            let written = entry.runtime.is_some();
            let used = store::retired(database, entry.session, written)?;
            let last_ns = if written {
                0
            } else {
                store::last_time(database, entry.session)?
            };
            let pins = store::pins(database, entry.session)?;
            Ok((entry, used, last_ns, pins))
        })?;
        let is_empty = entry.seqs.is_none() && !entry.working;
        let runtime = entry.runtime.clone();
        let session = open::session(&self.open, &self.core, entry);
        let builder = builder.newest_only();
        let context = match runtime {
            Some(runtime) => {
                let kept = Kept::stored(&runtime, used, pins)?;
                return Ok((builder.resume_kept(&session, &kept)?, Vec::new()));
            }
            None if is_empty => builder.build(),
            None => builder.resume_unwritten(&session, &used, last_ns)?,
        };
        Ok((context, used))
    }

    /// Commits several contexts of this store in one transaction: the cost of one commit on the disk. The
    /// results are in the order of the contexts; one that is refused changes nothing in the others.
    ///
    /// # Errors
    /// Each as [`Context::commit`]; a context that is not of this store is refused.
    pub fn commit_all<'c>(
        &self,
        contexts: impl IntoIterator<Item = &'c mut Context>,
    ) -> Vec<Result<Commit, Error>> {
        together::commit_all(&self.core, contexts)
    }

    /// Says which sessions have nearly the name that was not found.
    fn not_found(&self, name: &str, error: StoreError) -> Error {
        let missing = matches!(error, StoreError::NoSession(_));
        let error = Error::from(error);
        let names = if missing {
            self.core.read(|database| store::near(database, name))
        } else {
            Ok(Vec::new())
        };
        let names = names.unwrap_or_default();
        match crate::support::diag::nearest(name, names.iter().map(String::as_str)) {
            Some(near) => error.with_help(format!("there is `{near}`")),
            None => error,
        }
    }
}
