//! Iterators over the answers of many sessions, and how they are found.

use std::fmt;
use std::sync::Arc;

use super::batches::Batches;
use super::question::{Question, SessionAnswer, SessionIds};
use super::stream::RowStream;
use crate::store::Store;
use crate::store::read::catalog::{self, Glob, ListedSession};
use crate::support::diag::Error;

/// Who answers a selector over many sessions, and why. See [`StoreIds::route`](crate::store::StoreIds::route).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreRoute {
    /// The database, by one statement over all of them. No session is loaded.
    Statement,
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

/// What a selector finds in many sessions, by the one of two ways that the route says.
#[derive(Debug)]
pub(super) enum Found<T> {
    Statement(RowStream<T>),
    Sessions(Batches, StoreReason),
}

impl<T: Send + 'static> Found<T> {
    pub(super) fn route(&self) -> StoreRoute {
        match self {
            Self::Statement(_) => StoreRoute::Statement,
            Self::Sessions(_, reason) => StoreRoute::Sessions(*reason),
        }
    }

    /// The next session; `of_answer` makes of the answer of a loaded one what is wanted of it.
    fn next(&mut self, of_answer: impl Fn(SessionAnswer) -> T) -> Option<Result<T, Error>> {
        match self {
            Self::Statement(rows) => rows.next(),
            Self::Sessions(batches, _) => batches.next().map(|found| found.map(of_answer)),
        }
    }
}

/// The ids of what a selector finds in many sessions, in byte order of their names. See
/// [`StoreSelection::ids`](crate::store::StoreSelection::ids).
#[derive(Debug)]
pub struct StoreIds(pub(super) Found<SessionIds>);

impl StoreIds {
    /// Who answers, and why.
    pub fn route(&self) -> StoreRoute {
        self.0.route()
    }
}

impl Iterator for StoreIds {
    type Item = Result<SessionIds, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next(SessionAnswer::into_ids)
    }
}

/// How many nodes a selector finds in each of many sessions with any, in byte order of their names: the name and the
/// number. See [`StoreSelection::counts`](crate::store::StoreSelection::counts).
#[derive(Debug)]
pub struct StoreCounts(pub(super) Found<(String, usize)>);

impl StoreCounts {
    /// Who answers, and why.
    pub fn route(&self) -> StoreRoute {
        self.0.route()
    }
}

impl Iterator for StoreCounts {
    type Item = Result<(String, usize), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next(|found| (found.session, found.answer.count()))
    }
}
