//! Selectors over many sessions.

use std::collections::VecDeque;
use std::sync::Arc;

use rayon::prelude::*;

use super::{Store, open};
use crate::diag::{Code, Error};
use crate::engine::answer::Answer;
use crate::engine::candidate::candidate;
use crate::engine::lazy::Foreseen;
use crate::engine::prepared::Prepared;
use crate::history::{RangeOptions, Session};
use crate::store::{self, Glob, Listed, StoreError};

/// At most so many sessions are asked at once, and at least so many.
const CHUNK: (usize, usize) = (8, 256);
/// At most so many of them are read together.
const GROUP: usize = 32;

/// The answer of one session. See [`Store::select`].
#[derive(Debug)]
#[non_exhaustive]
pub struct SessionAnswer {
    /// The name of the session.
    pub session: String,
    /// What the selector found there: at least a row, or a difference.
    pub answer: Answer,
}

/// The answers of many sessions, in byte order of their names. See [`Store::select`].
#[derive(Debug)]
pub struct StoreAnswers<'s> {
    store: &'s Store,
    prepared: Prepared,
    glob: Glob,
    options: RangeOptions,
    left: VecDeque<Listed>,
    ready: VecDeque<Result<SessionAnswer, Error>>,
    candidates: usize,
}

impl StoreAnswers<'_> {
    /// With options for a range, as [`Prepared::select_with`] takes them; those of answers that were given
    /// already stay as they are.
    #[must_use]
    pub fn with_options(mut self, options: RangeOptions) -> Self {
        self.options = options;
        self
    }

    /// How many sessions the selector is asked of. They are counted now, in linear time.
    ///
    /// # Errors
    /// Those of the database.
    pub fn sessions(&self) -> Result<usize, Error> {
        let core = &self.store.core;
        Ok(core.read(|database| store::count(database, &self.glob))?)
    }

    /// How many of them can match at all, as the store said before any was opened. The others were not
    /// read.
    pub fn candidates(&self) -> usize {
        self.candidates
    }

    /// Opens the next sessions and asks them, in parallel.
    fn fill(&mut self) {
        let fitting = open::lock(&self.store.open).fitting();
        let count = fitting.clamp(CHUNK.0, CHUNK.1).min(self.left.len());
        let chunk: Vec<Listed> = self.left.drain(..count).collect();
        let asking = Asking {
            store: self.store,
            prepared: &self.prepared,
            options: &self.options,
            foreseen: self.prepared.foreseen(),
        };
        if count <= GROUP {
            // What is in memory is answered sooner than another thread begins.
            let open = open::complete(&self.store.open, &chunk, asking.foreseen.as_ref());
            if open.iter().all(Option::is_some) {
                let answers = asking.each(&chunk, &Ok(open));
                return self.ready.extend(answers);
            }
        }
        let group = count.div_ceil(rayon::current_num_threads()).min(GROUP);
        let answers: Vec<Vec<_>> = chunk
            .par_chunks(group)
            .map(|group| asking.group(group))
            .collect();
        self.ready.extend(answers.into_iter().flatten());
    }
}

impl Iterator for StoreAnswers<'_> {
    type Item = Result<SessionAnswer, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.left.is_empty() {
            self.fill();
        }
        self.ready.pop_front()
    }
}

/// A selector that is asked of many sessions.
struct Asking<'a> {
    store: &'a Store,
    prepared: &'a Prepared,
    options: &'a RangeOptions,
    foreseen: Option<Foreseen>,
}

impl Asking<'_> {
    /// The answers of some sessions, which are read together.
    fn group(&self, list: &[Listed]) -> Vec<Result<SessionAnswer, Error>> {
        let store = self.store;
        let sessions = open::sessions(&store.open, &store.core, list, self.foreseen.as_ref());
        self.each(list, &sessions)
    }

    fn each(
        &self,
        list: &[Listed],
        sessions: &Result<Vec<Option<Arc<Session>>>, StoreError>,
    ) -> Vec<Result<SessionAnswer, Error>> {
        let answers = list.iter().enumerate().map(|(at, listed)| {
            let answer = match sessions {
                Ok(sessions) => match sessions.get(at).and_then(Option::as_ref) {
                    Some(session) => self.answer(listed, session),
                    None => Ok(None),
                },
                // Each alone shows which of them it is.
                Err(_) => self.alone(listed),
            };
            match answer {
                Err(error) => self.again(listed, error).transpose(),
                found => found.transpose(),
            }
        });
        answers.flatten().collect()
    }

    /// The answer of a session that is read alone; `None` if it was deleted.
    fn alone(&self, listed: &Listed) -> Result<Option<SessionAnswer>, Error> {
        let core = &self.store.core;
        match core.read_once(|database| store::by_id(database, listed.session))? {
            Some(entry) => self.answer(listed, &open::session(&self.store.open, core, entry)),
            None => Ok(None),
        }
    }

    /// The answer of a session after an error, unless the session is as it was listed: it may have been
    /// pruned, changed or deleted since.
    fn again(&self, listed: &Listed, error: Error) -> Result<Option<SessionAnswer>, Error> {
        let core = &self.store.core;
        let now = core.read_once(|database| store::by_id(database, listed.session))?;
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
        let answer = match self.prepared.select_with(session, self.options) {
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

/// Whether a session does not have the snapshot that was asked for: the selector's time has no place in it.
fn is_absent(error: &Error) -> bool {
    error.code() == Code::SnapshotNotFound && !error.first().labels.is_empty()
}

impl Store {
    /// Asks every session, in parallel, and gives the answers of those where something matches, in byte
    /// order of names, while later ones are still being asked.
    ///
    /// The store says first which sessions can match at all: a selector that requires an id, a key or a
    /// value of a custom attribute costs what the sessions cost that have one. Sessions are opened within
    /// the budget of memory.
    ///
    /// # Errors
    /// Those of the selector, and of the database. A session that cannot be read is an error of its own in
    /// the answers.
    pub fn select(&self, selector: &str) -> Result<StoreAnswers<'_>, Error> {
        self.select_in("", selector)
    }

    /// As [`Store::select`], of the sessions whose name matches `glob`, in which `*` is any text without
    /// `/`; an empty one matches all.
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn select_in(&self, glob: &str, selector: &str) -> Result<StoreAnswers<'_>, Error> {
        self.select_prepared(glob, &self.engine.prepare(selector)?)
    }

    /// As [`Store::select_in`], with a prepared selector.
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn select_prepared(
        &self,
        glob: &str,
        prepared: &Prepared,
    ) -> Result<StoreAnswers<'_>, Error> {
        let glob = Glob::new(glob);
        let wanted = candidate(&**prepared.ready()?);
        let possible = self.core.read(|database| match &wanted {
            Some(wanted) => store::candidates(database, wanted, &glob),
            None => store::listed(database, &glob),
        })?;
        Ok(StoreAnswers {
            store: self,
            prepared: prepared.clone(),
            options: RangeOptions::default(),
            glob,
            candidates: possible.len(),
            left: possible.into(),
            ready: VecDeque::new(),
        })
    }
}
