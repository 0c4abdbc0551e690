//! Sessions from elsewhere, one or many.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashSet;
use sha2::{Digest, Sha256};

use crate::engine::{Beside, ContextState};
use crate::history::{History, Session};
use crate::store::Store;
use crate::store::database::sql::{Database, Savepoint, end_part};
use crate::store::error::StoreError;
use crate::store::read::catalog::{self, Glob};
use crate::store::read::open;
use crate::store::read::source::SourceForm;
use crate::store::write::change::SessionRows;
use crate::store::write::mark;
use crate::support::diag::Error;

const SESSIONS: usize = 256;

/// The most snapshots of a transaction, unless one session has more.
const SNAPSHOTS: usize = 10_000;

/// What a snapshot before the newest takes in memory, in bytes, roughly.
const SNAPSHOT: usize = 2_400;

/// The most bytes of sessions that wait for their transaction, unless one has more.
const BYTES: usize = 16 << 20;

/// The names and the sources of the sessions of a store. Only hashes are kept: 32 bytes of each session.
pub(crate) struct Origins {
    names: HashSet<[u8; 16]>,
    sources: HashSet<[u8; 16]>,
    forms: SourceForm,
}

impl Origins {
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.names.contains(&origin(name.as_bytes()))
    }

    /// Two spellings of a path are one source.
    pub(crate) fn has_source(&self, source: &str) -> bool {
        self.sources.contains(&self.of_source(source))
    }

    fn of_source(&self, source: &str) -> [u8; 16] {
        origin(self.forms.of(source).as_os_str().as_encoded_bytes())
    }
}

fn origin(text: &[u8]) -> [u8; 16] {
    let mut hash = [0; 16];
    hash.copy_from_slice(&Sha256::digest(text)[..16]);
    hash
}

/// An import of many sessions that ended early. See [`Store::import_all`].
///
/// ```
/// use pactql::{Session, Store};
/// # let path = std::env::temp_dir().join(format!("pactql-stopped-{}.db", std::process::id()));
/// let store = Store::open(&path)?;
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let names = ["a", "b", "a", "c"].map(|name| (name.to_owned(), &session, None));
/// let stopped = store.import_all(names).unwrap_err();
/// assert_eq!((stopped.imported, stopped.error.code()), (2, pactql::Code::SessionExists));
/// # drop(store);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct ImportStopped {
    /// How many sessions are in the store: the first of those that were given.
    pub imported: usize,
    /// Why the next one is not.
    #[source]
    pub error: Error,
}

struct Ready {
    name: String,
    source: Option<String>,
    mark: Option<String>,
    history: Arc<History>,
    beside: Beside,
    /// The nodes whose texts were erased from the session of the store that it is a copy of.
    erased: BTreeSet<String>,
}

/// A session to be copied into the store: its name, where it comes from, and the mark of its log.
pub(crate) struct NewSession<S> {
    pub(crate) name: String,
    pub(crate) session: S,
    pub(crate) source: Option<String>,
    pub(crate) mark: Option<String>,
}

impl<S> NewSession<S> {
    fn unmarked((name, session, source): (String, S, Option<String>)) -> Self {
        Self {
            name,
            session,
            source,
            mark: None,
        }
    }
}

impl Ready {
    fn new<S: Borrow<Session>>(new: NewSession<S>) -> Result<Self, Error> {
        let session: &Session = new.session.borrow();
        let history = session.history();
        // One that is replayed is read as it is written.
        if !history.is_replayed() {
            history.fetch_all()?;
        }
        history.fetch_attempts()?;
        let stored = open::stored(session);
        let (mut beside, erased) = match &stored {
            Some(stored) => (stored.beside()?, stored.erased()?),
            None => (Beside::default(), Vec::new()),
        };
        // The log would bring back what was erased, so the copy stays one of that log.
        let log = stored
            .as_ref()
            .and_then(|stored| stored.entry().source.clone());
        let source = log.filter(|_| !erased.is_empty()).or(new.source);
        if let Some(json) = session.kept() {
            beside = ContextState::read(json)?.into_beside();
        }
        beside.attempts = history.attempts().clone();
        Ok(Self {
            name: new.name,
            source,
            mark: new.mark,
            history,
            beside,
            erased: erased.into_iter().collect(),
        })
    }

    /// What it takes in memory while it waits, roughly: the newest states, and something for each snapshot before them.
    fn bytes(&self) -> usize {
        let history = &self.history;
        if history.is_replayed() {
            return 0;
        }
        let newest = history.latest().into_iter().chain(history.working());
        let pieces = newest.flat_map(|snapshot| snapshot.pieces());
        let bytes = pieces.map(|piece| piece.segment().bytes());
        bytes.sum::<usize>() + history.committed().len() * SNAPSHOT
    }

    fn write(&self, database: &mut dyn Database) -> Result<(), StoreError> {
        let mut rows = SessionRows::create(database, &self.name, self.source.as_deref())?;
        rows.add_all(database, &self.history, 0)?;
        self.beside.put(database, rows.session)?;
        mark::set_erased(database, rows.session, &self.erased)?;
        match &self.mark {
            Some(mark) => mark::put_all(database, &[(rows.session, mark)]),
            None => Ok(()),
        }
    }
}

impl Store {
    /// Copies a session into the store under a new name: its snapshots, its working state, and what a
    /// context kept beside them; it may be one of another store. `source` says where it comes from. One
    /// transaction.
    ///
    /// # Errors
    /// `E_SESSION_EXISTS`; those of the database. The store is as it was then.
    pub fn import(&self, name: &str, session: &Session, source: Option<&str>) -> Result<(), Error> {
        let source = source.map(str::to_owned);
        let ready = Ready::new(NewSession::unmarked((name.to_owned(), session, source)))?;
        Ok(self.core.write(|database| ready.write(database))?)
    }

    /// The names and the sources of the sessions whose name matches. Linear in those with the same beginning.
    pub(crate) fn origins(&self, glob: &str) -> Result<Origins, Error> {
        let glob = Glob::new(glob);
        let mut found = Origins {
            names: HashSet::new(),
            sources: HashSet::new(),
            forms: SourceForm::new(),
        };
        self.core.read(|database| {
            catalog::origins(database, &glob, |name, source| {
                found.names.insert(origin(name.as_bytes()));
                if let Some(source) = source {
                    found.sources.insert(found.of_source(source));
                }
            })
        })?;
        Ok(found)
    }

    /// Copies many sessions into the store, as [`Store::import`] does one: each a name, the session, and
    /// where it comes from. Up to 256 of them, or 16 MB, share a transaction, so that thousands of small ones take a
    /// fraction of the time. They are taken from the iterator as they are written, so no more than those are in memory.
    /// Returns how many there were.
    ///
    /// # Errors
    /// As [`Store::import`], with the number of sessions before it, which stay in the store.
    pub fn import_all<S: Borrow<Session>>(
        &self,
        sessions: impl IntoIterator<Item = (String, S, Option<String>)>,
    ) -> Result<usize, ImportStopped> {
        let sessions = sessions.into_iter().map(NewSession::unmarked);
        self.import_marked(sessions, |_| false)
    }

    /// As [`Store::import_all`], with the marks of logs. Of a session whose name is there, `passes` says by its number
    /// whether the others go on without it.
    pub(crate) fn import_marked<S: Borrow<Session>>(
        &self,
        sessions: impl IntoIterator<Item = NewSession<S>>,
        mut passes: impl FnMut(usize) -> bool,
    ) -> Result<usize, ImportStopped> {
        let mut imported = 0;
        let mut chunk: Vec<Ready> = Vec::new();
        let (mut snapshots, mut bytes) = (0, 0);
        for new in sessions {
            match Ready::new(new) {
                Ok(ready) => {
                    snapshots += ready.history.committed().len();
                    bytes += ready.bytes();
                    chunk.push(ready);
                }
                Err(error) => {
                    imported = self.import_chunk(&chunk, imported, &mut passes)?;
                    return Err(ImportStopped { imported, error });
                }
            }
            if chunk.len() >= SESSIONS || snapshots >= SNAPSHOTS || bytes >= BYTES {
                imported = self.import_chunk(&chunk, imported, &mut passes)?;
                chunk.clear();
                (snapshots, bytes) = (0, 0);
            }
        }
        self.import_chunk(&chunk, imported, &mut passes)
    }

    /// If one is refused, those before it are written. Returns how many there are with the `before` ones.
    fn import_chunk(
        &self,
        chunk: &[Ready],
        before: usize,
        passes: &mut dyn FnMut(usize) -> bool,
    ) -> Result<usize, ImportStopped> {
        if chunk.is_empty() {
            return Ok(before);
        }
        let mut imported = before;
        let written = self.core.write(|database| {
            for ready in chunk {
                database.savepoint(Savepoint::Set)?;
                let done = ready.write(database);
                match end_part(database, done)? {
                    Err(StoreError::Exists(_)) if passes(imported) => {}
                    Err(refused) => return Ok(Err(refused)),
                    Ok(()) => {}
                }
                imported += 1;
            }
            Ok(Ok(()))
        });
        match written {
            Ok(Ok(())) => Ok(imported),
            Ok(Err(refused)) => Err(ImportStopped {
                imported,
                error: refused.into(),
            }),
            // What failed is the database, which has none of them.
            Err(failed) => Err(ImportStopped {
                imported: before,
                error: failed.into(),
            }),
        }
    }
}
