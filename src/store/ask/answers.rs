//! Iterators over the answers of many sessions, and how they are found.

use std::fmt;
use std::sync::Arc;

use super::batches::Batches;
use super::question::{Question, SessionAnswer, SessionIds};
use super::stream::RowStream;
use crate::store::Store;
use crate::store::read::catalog::{self, Glob, ListedSession};
use crate::support::diag::Error;
use crate::support::text::counted;

/// Who answers a selector over many sessions, and why. See [`StoreIds::route`](crate::store::StoreIds::route).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreRoute {
    /// The database, by one statement over all of them. No session is loaded.
    Statement,
    /// The database, by one statement over all but this many, which are loaded: they have U+0000 in a text that the selector
    /// compares, and no statement reads such a text.
    Both(usize),
    /// Sessions are loaded.
    Sessions(StoreReason),
}

/// Why sessions are loaded to be queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreReason {
    /// Nodes or differences are wanted.
    Nodes,
    /// Options for a range were given, which no statement has.
    Options,
    /// The database cannot say the selector.
    Unsupported,
}

impl fmt::Display for StoreRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Both(loaded) => {
                let sessions = counted(*loaded as u64, "session");
                return write!(
                    f,
                    "one statement, and {sessions} loaded: no statement reads a text with U+0000"
                );
            }
            Self::Statement => "one statement: the database can say the selector",
            Self::Sessions(StoreReason::Nodes) => {
                "loaded sessions: nodes or differences are wanted"
            }
            Self::Sessions(StoreReason::Options) => "loaded sessions: a range has options",
            Self::Sessions(StoreReason::Unsupported) => {
                "loaded sessions: the database cannot say the selector"
            }
        })
    }
}

/// The answers of many sessions, in byte order of their names. See
/// [`StoreSelection::answers`](crate::store::StoreSelection::answers).
#[derive(Debug)]
pub struct StoreAnswers<'s> {
    store: &'s Store,
    glob: Glob,
    pub(super) batches: Batches,
}

impl<'s> StoreAnswers<'s> {
    pub(super) fn new(
        store: &'s Store,
        glob: Glob,
        question: Question,
        sessions: Arc<[ListedSession]>,
    ) -> Self {
        Self {
            store,
            glob,
            batches: Batches::new(question, sessions),
        }
    }

    /// Number of sessions whose name matches. They are counted now, in linear time.
    ///
    /// # Errors
    /// Those of the database.
    pub fn sessions(&self) -> Result<usize, Error> {
        let core = &self.store.core;
        Ok(core.read(|database| catalog::count(database, &self.glob))?)
    }

    /// How many of them can match at all, as the store said before any was opened. The others were not
    /// read.
    pub fn candidates(&self) -> usize {
        self.batches.len()
    }

    /// How the sessions are read.
    pub fn route(&self) -> StoreRoute {
        StoreRoute::Sessions(StoreReason::Nodes)
    }
}

impl Iterator for StoreAnswers<'_> {
    type Item = Result<SessionAnswer, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next()
    }
}

/// What a selector finds in one of many sessions.
pub(super) trait OfSession: From<SessionAnswer> {
    /// The name of the session.
    fn session(&self) -> &str;
}

impl OfSession for SessionIds {
    fn session(&self) -> &str {
        self.session()
    }
}

impl From<SessionAnswer> for SessionIds {
    fn from(found: SessionAnswer) -> Self {
        found.into_ids()
    }
}

impl OfSession for (String, usize) {
    fn session(&self) -> &str {
        &self.0
    }
}

impl From<SessionAnswer> for (String, usize) {
    fn from(found: SessionAnswer) -> Self {
        (found.session, found.answer.count())
    }
}

/// What a selector finds in many sessions: that of one statement, and that of loaded sessions, as the route says.
#[derive(Debug)]
pub(super) struct Found<T> {
    route: StoreRoute,
    rows: Option<RowStream<T>>,
    batches: Batches,
    /// The next of the statement, and the next of the loaded sessions.
    next: [Option<T>; 2],
}

impl<T: OfSession + Send + 'static> Found<T> {
    pub(super) fn new(route: StoreRoute, rows: Option<RowStream<T>>, batches: Batches) -> Self {
        Self {
            route,
            rows,
            batches,
            next: [None, None],
        }
    }

    /// The next session, in byte order of names.
    fn next(&mut self) -> Option<Result<T, Error>> {
        let [row, loaded] = &mut self.next;
        if row.is_none() {
            match self.rows.as_mut().and_then(RowStream::next).transpose() {
                Ok(next) => *row = next,
                Err(error) => return Some(Err(error)),
            }
        }
        if loaded.is_none() {
            match self.batches.next().transpose() {
                Ok(next) => *loaded = next.map(T::from),
                Err(error) => return Some(Err(error)),
            }
        }
        let is_row = match (&*row, &*loaded) {
            (Some(row), Some(loaded)) => row.session() < loaded.session(),
            (row, _) => row.is_some(),
        };
        let next = if is_row { row.take() } else { loaded.take() };
        next.map(Ok)
    }
}

/// The ids of what a selector finds in many sessions, in byte order of their names. See
/// [`StoreSelection::ids`](crate::store::StoreSelection::ids).
#[derive(Debug)]
pub struct StoreIds(pub(super) Found<SessionIds>);

impl StoreIds {
    /// Who answers, and why.
    pub fn route(&self) -> StoreRoute {
        self.0.route
    }
}

impl Iterator for StoreIds {
    type Item = Result<SessionIds, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// How many nodes a selector finds in each of many sessions with any, in byte order of their names: the name and the
/// number. See [`StoreSelection::counts`](crate::store::StoreSelection::counts).
#[derive(Debug)]
pub struct StoreCounts(pub(super) Found<(String, usize)>);

impl StoreCounts {
    /// Who answers, and why.
    pub fn route(&self) -> StoreRoute {
        self.0.route
    }
}

impl Iterator for StoreCounts {
    type Item = Result<(String, usize), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}
