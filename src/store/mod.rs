//! Sessions in one database: the public [`Store`], and the relational layout of STORE §2 in SQLite and PostgreSQL.
//!
//! It gives the same [`Session`] and [`Context`] as files do. A commit writes the units it touched; everything
//! else is shared rows. One selector over many sessions is answered in `ask`. The store lies above the engine
//! and must not know arguments, terminals or providers.
//!
//! | part | folder |
//! |---|---|
//! | databases, and how they spell SQL | `database` |
//! | tables, and units as their rows | `layout` |
//! | commits, imports, leases | `write` |
//! | sessions by name, snapshots out of rows | `read` |
//! | selectors over many sessions | `ask` |
//! | the text index | `texts` |
//! | sessions as wholes: prune, erase, verify | `manage` |
//! | copies as Parquet files, and statements that name their tables | `copy`, `views` |

mod ask;
pub(crate) mod build;
#[cfg(feature = "parquet")]
mod copy;
mod database;
mod error;
mod layout;
mod manage;
mod read;
mod texts;
mod views;
mod write;

#[cfg(test)]
#[cfg(all(unix, feature = "postgres"))]
#[path = "../../tests/support/postgres.rs"]
#[allow(dead_code, unreachable_pub, reason = "each test uses a part")]
mod server;

use crate::support::lock;
use std::path::Path;
use std::sync::Arc;

pub use ask::StoreSelection;
pub use ask::answers::{StoreAnswers, StoreCounts, StoreIds, StoreReason, StoreRoute};
pub(crate) use ask::blocks::StoreBlock;
pub use ask::question::{SessionAnswer, SessionIds};
pub use ask::rows::SqlRow;
pub use build::Durability;
pub(crate) use build::{Store, StoreBuilder};
#[cfg(feature = "parquet")]
pub use copy::{ParquetExport, ParquetExported, ParquetImported};
pub(crate) use database::sqlite::{FileId, id_of};
pub(crate) use manage::ListedInfo;
pub use manage::{Damage, Pruned, Retention, Salvaged, SessionInfo};
pub(crate) use read::catalog::Glob;
pub(crate) use read::catalog::SessionEntry;
pub(crate) use read::words::Word;
pub use texts::TextIndex;
pub use views::parquet_views;
pub use write::import::ImportStopped;
pub(crate) use write::import::NewSession;
pub(crate) use write::ledger::Ledger;
pub use write::log::LogImport;

use crate::engine::{Beside, Context, ContextBuilder, ContextState, Engine};
use crate::history::Session;
use crate::runtime::Commit;
use crate::store::error::StoreError;
use crate::store::read::catalog;
use crate::store::read::open;
use crate::store::write::keeper::{StoreKeeper, commit_all};
use crate::store::write::records;
use crate::support::cancel;
use crate::support::diag::Error;
use rayon::prelude::*;

impl Store {
    /// Opens the store in the SQLite file at a path; one that is missing is made.
    ///
    /// # Errors
    /// The file cannot be opened, is not a store, or has the layout of another version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().open(path)
    }

    /// Opens the store at `postgres://…`, `sqlite:PATH` or a path, as the command line takes it; one that
    /// is missing is made.
    ///
    /// # Errors
    /// As [`Store::open`]; the server cannot be reached.
    pub fn connect(url: &str) -> Result<Self, Error> {
        Self::builder().connect(url)
    }

    /// Opens a store with other settings.
    pub fn builder() -> StoreBuilder {
        StoreBuilder::default()
    }

    /// The engine that runs the selectors of this store.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Changes how many bytes of indexes of sessions may stay in memory.
    pub(crate) fn set_memory(&self, memory: usize) {
        lock(&self.open).set_memory(memory);
    }

    /// The bytes that stay in memory now.
    pub(crate) fn memory_used(&self) -> usize {
        lock(&self.open).bytes()
    }

    /// How many sessions are open for reading, within the budget of memory.
    pub fn open_sessions(&self) -> usize {
        lock(&self.open).len()
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

    /// Opens sessions and calls `read` with each, some at once, as many as memory allows, in parallel. `visit` gets what it
    /// returns, in the order of the names, until it fails.
    pub(crate) fn each<T: Send, E: From<Error>>(
        &self,
        names: &[String],
        read: &(dyn Fn(&str, Arc<Session>) -> T + Sync),
        visit: &mut dyn FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let tokens = cancel::here();
        let read = |name: &String| {
            let session = self.session(name)?;
            let id = open::stored(&session).map(|stored| stored.entry().session);
            Ok::<_, Error>((id, tokens.within(|| read(name, session))))
        };
        let mut left = names;
        while !left.is_empty() {
            let size = lock(&self.open).fitting().min(left.len());
            let (now, later) = left.split_at(size);
            let found: Vec<_> = now.par_iter().map(read).collect();
            // They were counted as they were opened.
            open::grown(&self.open, found.iter().flatten().filter_map(|(id, _)| *id));
            for found in found {
                visit(found?.1)?;
            }
            left = later;
        }
        Ok(())
    }

    /// A number that changes with every commit to the store.
    pub(crate) fn version(&self) -> Result<i64, Error> {
        Ok(self.core.home.version()?)
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
                context.keep_in(Box::new(StoreKeeper::new(
                    Arc::clone(&self.core),
                    writer,
                    unnoted,
                )));
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
        let (entry, beside, last_ns) = self.core.read(|database| {
            let entry = catalog::get(database, name)?;
            let beside = Beside::read(database, &entry)?;
            let last_ns = if entry.runtime.is_some() {
                0
            } else {
                records::last_time(database, entry.session)?
            };
            Ok((entry, beside, last_ns))
        })?;
        let is_empty = entry.seqs.is_none() && !entry.working;
        let session = open::session(&self.open, &self.core, entry);
        let builder = builder.newest_only();
        if beside.runtime.is_some() {
            let kept = ContextState::stored(beside)?;
            return Ok((builder.resume_kept(&session, &kept)?, Vec::new()));
        }
        let used = beside.retired;
        let context = if is_empty {
            builder.build()
        } else {
            builder.resume_unwritten(&session, &used, last_ns)?
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
        commit_all(&self.core, contexts)
    }

    fn not_found(&self, name: &str, error: StoreError) -> Error {
        let missing = matches!(error, StoreError::NoSession(_));
        let error = Error::from(error);
        let near = || self.core.read(|database| catalog::near(database, name));
        let names = missing.then(|| near().unwrap_or_default());
        let names = names.unwrap_or_default();
        match crate::support::diag::nearest(name, names.iter().map(String::as_str)) {
            Some(near) => error.with_help(format!("there is `{near}`")),
            None => error,
        }
    }
}
