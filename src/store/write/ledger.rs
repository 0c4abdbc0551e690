//! What a recorder of provider calls does with a store: sessions by where they come from, and their next
//! snapshots, all in one transaction.
//!
//! While the transaction lasts no other process writes (SQLite), so what was read still holds when it is written; a lease
//! is not needed. Sessions that a context writes, or has written, are none of a recorder's.

use crate::store::Store;
use crate::store::database::sql::{Begin, Database, Savepoint, end_part, transaction};
use crate::store::read::catalog::{self, SessionEntry};
use crate::store::read::open;
use crate::store::write::change::SessionRows;
use crate::store::write::records;
use std::sync::Arc;

use crate::engine::Beside;
use crate::history::{Attempts, Position};
use crate::index::Snapshot;
use crate::support::diag::Error;

pub(crate) struct Ledger<'a> {
    store: &'a Store,
    database: &'a mut dyn Database,
}

impl Store {
    /// Nothing stays if `work` fails.
    pub(crate) fn ledger<T>(
        &self,
        work: impl FnOnce(&mut Ledger<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut writer = self.core.home.writer()?;
        transaction(&mut *writer, Begin::Write, |database| {
            work(&mut Ledger {
                store: self,
                database,
            })
        })
    }
}

impl Ledger<'_> {
    /// Runs a part of the work of which nothing stays if it fails. The outer error is of the whole transaction.
    pub(crate) fn apart<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<Result<T, Error>, Error> {
        self.database.savepoint(Savepoint::Set)?;
        let done = work(self);
        end_part(self.database, done)
    }

    /// The sessions that come from `source` and that no context writes or has written, in byte order of names.
    pub(crate) fn of_source(&mut self, source: &str) -> Result<Vec<SessionEntry>, Error> {
        Ok(catalog::of_source(self.database, source)?)
    }

    /// A session by its number, if no context writes or has written it.
    pub(crate) fn by_id(&mut self, id: i64) -> Result<Option<SessionEntry>, Error> {
        Ok(catalog::free(self.database, id)?)
    }

    /// Sessions named `name`, or `name/` and a number, whose newest snapshot has a reply of this response.
    pub(crate) fn of_response(
        &mut self,
        name: &str,
        response: &str,
    ) -> Result<Vec<SessionEntry>, Error> {
        let mut rows = Vec::new();
        for id in catalog::of_response(self.database, name, response)? {
            rows.extend(self.by_id(id)?);
        }
        Ok(rows)
    }

    pub(crate) fn by_name(&mut self, name: &str) -> Result<Option<SessionEntry>, Error> {
        Ok(catalog::find(self.database, name)?)
    }

    pub(crate) fn has(&mut self, name: &str) -> Result<bool, Error> {
        Ok(catalog::find(self.database, name)?.is_some())
    }

    pub(crate) fn last_number(&mut self, name: &str) -> Result<u64, Error> {
        Ok(catalog::last_number(self.database, name)?)
    }

    pub(crate) fn newest(&mut self, row: &SessionEntry) -> Result<Option<Arc<Snapshot>>, Error> {
        let session = open::session(&self.store.open, &self.store.core, row.clone());
        let history = session.history();
        let Some(newest) = history.committed().len().checked_sub(1) else {
            return Ok(None);
        };
        Ok(history.load(Position::Committed(newest))?.cloned())
    }

    /// Ids that the session has used and its newest snapshot has no more.
    pub(crate) fn used(&mut self, row: &SessionEntry) -> Result<Vec<String>, Error> {
        Ok(records::retired(self.database, row.session, false)?)
    }

    pub(crate) fn attempts(&mut self, row: &SessionEntry) -> Result<Attempts, Error> {
        Ok(records::all_attempts(self.database, row.session)?)
    }

    pub(crate) fn begin(&mut self, name: &str, source: &str) -> Result<SessionEntry, Error> {
        catalog::create(self.database, name, Some(source), None)?;
        Ok(catalog::get(self.database, name)?)
    }

    /// Adds a snapshot after the newest one, `older`, and the attempts after the first `settled`. Returns
    /// the session as it is then.
    pub(crate) fn add(
        &mut self,
        row: &SessionEntry,
        snapshot: Option<(Option<&Snapshot>, &Snapshot)>,
        (settled, attempts): (usize, Attempts),
    ) -> Result<SessionEntry, Error> {
        let mut rows = SessionRows::resume(self.database, row)?;
        if let Some((older, newer)) = snapshot {
            rows.add(self.database, older, newer)?;
        }
        let beside = Beside {
            settled,
            attempts,
            ..Beside::default()
        };
        beside.put(self.database, rows.session)?;
        Ok(catalog::get(self.database, &row.name)?)
    }
}
