//! Iterators over the answers of many sessions, and how they are found.

use std::fmt;
use std::sync::Arc;

use super::batches::Batches;
use super::question::{Question, SessionAnswer, SessionIds};
use crate::store::Store;
use crate::store::read::catalog::{self, Glob, ListedSession};
use crate::support::diag::Error;

/// How sessions are read, and why. See [`StoreIds::route`](crate::store::StoreIds::route).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreRoute {
    /// By a statement for each group of sessions that are queried for the first time. One query is cheaper than
    /// loading, so a session is loaded on its second use.
    Statement,
    /// Sessions are loaded.
    Sessions(StoreReason),
}

/// Why sessions are loaded to be queried.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreReason {
    /// Nodes or differences are wanted.
    Nodes,
    /// There are few sessions.
    Few,
    /// Options for a range were given, which no statement has.
    Options,
    /// The database cannot say the selector.
    Unsupported,
}

impl fmt::Display for StoreRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Statement => "a statement for each group of sessions",
            Self::Sessions(StoreReason::Nodes) => "loaded sessions: nodes are wanted",
            Self::Sessions(StoreReason::Few) => "loaded sessions: there are few",
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
    pub(super) batches: Batches<SessionAnswer>,
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
            batches: Batches::new(question, Question::answers, sessions),
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

/// The ids of what a selector finds in many sessions, in byte order of their names. See
/// [`StoreSelection::ids`](crate::store::StoreSelection::ids).
#[derive(Debug)]
pub struct StoreIds {
    batches: Batches<SessionIds>,
    route: StoreRoute,
}

impl StoreIds {
    pub(super) fn new(
        question: Question,
        route: StoreRoute,
        sessions: Arc<[ListedSession]>,
    ) -> Self {
        Self {
            batches: Batches::new(question, Question::ids, sessions),
            route,
        }
    }

    /// How the sessions are read, and why.
    pub fn route(&self) -> &StoreRoute {
        &self.route
    }
}

impl Iterator for StoreIds {
    type Item = Result<SessionIds, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next()
    }
}
