//! Runs a selector over groups of loaded sessions through the engine; and what it finds in a session.

use std::sync::{Arc, Mutex};

use hashbrown::HashMap;

use crate::engine::{Answer, Prepared};
use crate::history::{RangeOptions, Session};
use crate::store::database::sql::Database;
use crate::store::read::catalog::{self, ListedSession, SessionEntry};
use crate::store::read::open::{self, OpenSessions};
use crate::store::write::core::Core;
use crate::support::diag::{Code, Error};

/// The answer of one session. See [`crate::Store::select`].
#[derive(Debug)]
#[non_exhaustive]
pub struct SessionAnswer {
    /// The name of the session.
    pub session: String,
    /// What the selector found there: at least a row, or a difference.
    pub answer: Answer,
}

impl SessionAnswer {
    /// The ids of the rows.
    pub(super) fn into_ids(self) -> SessionIds {
        let mut ids = SessionIds::new(&self.session);
        if let Answer::Rows(rows) = &self.answer {
            rows.ids().for_each(|id| ids.push(id));
        }
        ids
    }
}

#[derive(Debug)]
pub(crate) struct Question {
    pub(super) core: Arc<Core>,
    pub(super) open: Arc<Mutex<OpenSessions>>,
    pub(super) prepared: Prepared,
    pub(super) options: RangeOptions,
}

impl Question {
    pub(super) fn answers(&self, group: &[ListedSession]) -> Vec<Result<SessionAnswer, Error>> {
        let mut sessions = self.sessions(group);
        let answers = group.iter().filter_map(|listed| {
            let session = sessions.remove(&listed.session);
            self.answer(listed, session).transpose()
        });
        let answers = answers.collect();
        // They were opened together, and counted before any of them was read.
        open::grown(&self.open, group.iter().map(|listed| listed.session));
        answers
    }

    /// Those that are missing have to be looked up alone, which shows what is wrong with them.
    fn sessions(&self, group: &[ListedSession]) -> HashMap<i64, Arc<Session>> {
        let mut found = open::current(&self.open, group);
        let missing = group.iter().map(|listed| listed.session);
        let missing: Vec<i64> = missing.filter(|id| !found.contains_key(id)).collect();
        if !missing.is_empty() {
            let some = |database: &mut dyn Database| catalog::some(database, &missing);
            let entries = self.core.read_once(some);
            for entry in entries.unwrap_or_default() {
                found.insert(entry.session, self.opened(entry));
            }
        }
        found
    }

    fn opened(&self, entry: SessionEntry) -> Arc<Session> {
        open::session(&self.open, &self.core, entry)
    }

    /// The answer of a session of a list; `None` if nothing matches, or it was deleted since.
    fn answer(
        &self,
        listed: &ListedSession,
        session: Option<Arc<Session>>,
    ) -> Result<Option<SessionAnswer>, Error> {
        let failed = match session {
            None => None,
            Some(session) => match self.answer_of(listed, &session) {
                Ok(answer) => return Ok(answer),
                Err(error) => Some(error),
            },
        };
        // It may have been pruned, changed or deleted since it was listed.
        let now = |database: &mut dyn Database| catalog::by_id(database, listed.session);
        match (self.core.read_once(now)?, failed) {
            (None, _) => Ok(None),
            (Some(entry), Some(error)) if entry.changed == listed.changed => Err(error),
            (Some(entry), _) => self.answer_of(listed, &self.opened(entry)),
        }
    }

    /// `None` if nothing matches, or if the session does not have the snapshot that was asked for.
    fn answer_of(
        &self,
        listed: &ListedSession,
        session: &Session,
    ) -> Result<Option<SessionAnswer>, Error> {
        let answer = match self.prepared.select_with(session, &self.options) {
            Ok(answer) => answer,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = match &answer {
            Answer::Rows(rows) => rows.ids().next().is_some(),
            Answer::Range(diff) => diff.diffs.iter().any(|pair| !pair.is_empty()),
        };
        Ok(found.then(|| SessionAnswer {
            session: listed.name.clone(),
            answer,
        }))
    }
}

/// Whether a session does not have the snapshot that was queried for: the selector's time has no place in it.
fn is_absent(error: &Error) -> bool {
    error.code() == Code::SnapshotNotFound && !error.first().labels.is_empty()
}

/// The ids of what a selector finds in one session: at least one. See [`StoreSelection::ids`](crate::store::StoreSelection::ids).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionIds {
    session: String,
    text: String,
    /// Where each ends in the text.
    ends: Vec<usize>,
}

impl SessionIds {
    pub(super) fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, id: &str) {
        self.text.push_str(id);
        self.ends.push(self.text.len());
    }

    /// The name of the session.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The ids, in result order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let id = self.text.get(start..*end);
            start = *end;
            id.unwrap_or_default()
        })
    }
}
