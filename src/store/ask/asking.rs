//! A selector over many sessions, and what it needs for that.

use crate::store::ask::grouped::Grouped;
use crate::store::error::StoreError;
use crate::store::read::catalog::{self, Listed};
use crate::store::read::newest::Among;
use crate::store::read::open::{self, OpenSessions};
use crate::store::write::core::Core;
use std::sync::{Arc, Mutex};

use hashbrown::HashMap;

use crate::engine::Answer;
use crate::engine::Foreseen;
use crate::engine::Prepared;
use crate::history::{Part, RangeOptions, Session};
use crate::support::diag::{Code, Error};

/// The answer of one session. See [`Store::select`](crate::Store::select).
#[derive(Debug)]
#[non_exhaustive]
pub struct SessionAnswer {
    /// The name of the session.
    pub session: String,
    /// What the selector found there: at least a row, or a difference.
    pub answer: Answer,
}

/// A selector and the store whose sessions it reads.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(crate) core: Arc<Core>,
    pub(crate) open: Arc<Mutex<OpenSessions>>,
    pub(crate) prepared: Prepared,
    pub(crate) options: RangeOptions,
    /// What it reads of each session, if that is known.
    pub(crate) foreseen: Option<Foreseen>,
    /// The statement that answers sessions which are not in memory, if only ids are wanted of many.
    pub(crate) grouped: Option<Arc<Grouped>>,
    /// By the number of a session as it was listed: the part that its answer is in.
    pub(crate) among: Arc<HashMap<i64, Among>>,
}

impl Asking {
    /// The sessions of a list, read together, with what is foreseen in memory.
    pub(crate) fn sessions(
        &self,
        list: &[Listed],
    ) -> Result<Vec<Option<Arc<Session>>>, StoreError> {
        open::sessions(
            &self.open,
            &self.core,
            list,
            self.foreseen.as_ref(),
            &self.among,
        )
    }

    /// The answers of some sessions, which are read together.
    pub(crate) fn group(&self, list: &[Listed]) -> Vec<Result<SessionAnswer, Error>> {
        let sessions = self.sessions(list);
        let answers = (0..).zip(list).filter_map(|(at, listed)| {
            let found = self.one(listed, at_of(&sessions, at));
            found.transpose()
        });
        answers.collect()
    }

    /// The answer of one session of a list, as it was found; `None` if nothing matches. An error if the
    /// list could not be read: each is then read alone, which shows which of them it is.
    pub(crate) fn one(
        &self,
        listed: &Listed,
        session: Result<Option<&Arc<Session>>, &StoreError>,
    ) -> Result<Option<SessionAnswer>, Error> {
        let answer = match session {
            Ok(Some(session)) => self.answer(listed, session),
            Ok(None) => Ok(None),
            Err(_) => self.alone(listed),
        };
        match answer {
            Err(error) => self.again(listed, error),
            found => found,
        }
    }

    /// The answer of a session that is read alone; `None` if it was deleted.
    fn alone(&self, listed: &Listed) -> Result<Option<SessionAnswer>, Error> {
        let core = &self.core;
        match core.read_once(|database| catalog::by_id(database, listed.session))? {
            Some(entry) => self.answer(listed, &open::session(&self.open, core, entry)),
            None => Ok(None),
        }
    }

    /// The answer of a session after an error, unless the session is as it was listed: it may have been
    /// pruned, changed or deleted since.
    fn again(&self, listed: &Listed, error: Error) -> Result<Option<SessionAnswer>, Error> {
        let now = self
            .core
            .read_once(|database| catalog::by_id(database, listed.session))?;
        match now {
            Some(entry) if entry.changed == listed.changed => Err(error),
            Some(_) => self.alone(listed),
            None => Ok(None),
        }
    }

    /// The answer of a session; `None` if nothing matches, or if it does not have the snapshot that was asked
    /// for.
    fn answer(
        &self,
        listed: &Listed,
        session: &Arc<Session>,
    ) -> Result<Option<SessionAnswer>, Error> {
        let answer = match self.part(listed, session) {
            Some(part) => self.prepared.select_in(session, part),
            None => self.prepared.select_with(session, &self.options),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = match &answer {
            Answer::Rows(rows) => rows.ids().next().is_some(),
            Answer::Range(diff) => diff.diffs.iter().any(|pair| !pair.is_empty()),
        };
        if let Some(failure) = session.history().failure() {
            // What was found may be a part.
            return Err(failure.clone().into());
        }
        Ok(found.then(|| SessionAnswer {
            session: listed.name.clone(),
            answer,
        }))
    }
}

impl Asking {
    /// The part that the answer of a session is in, if that is known of the session as it is now.
    fn part(&self, listed: &Listed, session: &Session) -> Option<&Part> {
        let among = self.among.get(&listed.session)?;
        let now = open::stored(session)?.entry().changed;
        (now == listed.changed).then_some(&among.part)
    }
}

/// The session at a place of a list, or why the list could not be read.
pub(crate) fn at_of(
    sessions: &Result<Vec<Option<Arc<Session>>>, StoreError>,
    at: usize,
) -> Result<Option<&Arc<Session>>, &StoreError> {
    let sessions = sessions.as_ref()?;
    Ok(sessions.get(at).and_then(Option::as_ref))
}

/// Whether a session does not have the snapshot that was asked for: the selector's time has no place in it.
fn is_absent(error: &Error) -> bool {
    error.code() == Code::SnapshotNotFound && !error.first().labels.is_empty()
}
