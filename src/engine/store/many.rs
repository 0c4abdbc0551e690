//! Selectors over many sessions.

use std::collections::VecDeque;

use rayon::prelude::*;

use super::{Store, open};
use crate::diag::{Code, Error};
use crate::engine::answer::Answer;
use crate::engine::candidate::candidate;
use crate::engine::prepared::Prepared;
use crate::history::RangeOptions;
use crate::store::{self, Entry, Glob};

/// Sessions that are opened and asked at once.
const CHUNK: usize = 64;

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
    options: RangeOptions,
    left: VecDeque<Entry>,
    ready: VecDeque<Result<SessionAnswer, Error>>,
    sessions: usize,
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

    /// How many sessions the selector was asked of.
    pub fn sessions(&self) -> usize {
        self.sessions
    }

    /// How many of them can match at all, as the store said before any was opened. The others were not
    /// read.
    pub fn candidates(&self) -> usize {
        self.candidates
    }

    /// Opens the next sessions and asks them, in parallel.
    fn fill(&mut self) {
        let chunk: Vec<Entry> = self.left.drain(..CHUNK.min(self.left.len())).collect();
        let (store, prepared, options) = (self.store, &self.prepared, &self.options);
        let answers: Vec<Option<Result<SessionAnswer, Error>>> = chunk
            .into_par_iter()
            .map(|entry| ask(store, prepared, options, entry).transpose())
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

/// The answer of a session; `None` if nothing matches, if it does not have the snapshot that was asked
/// for, or if it was deleted meanwhile.
fn ask(
    store: &Store,
    prepared: &Prepared,
    options: &RangeOptions,
    entry: Entry,
) -> Result<Option<SessionAnswer>, Error> {
    let (id, changed) = (entry.session, entry.changed);
    match answer(store, prepared, options, entry) {
        Err(error) => {
            // It may have been pruned, changed or deleted since it was listed.
            let now = store
                .core
                .read_once(|database| store::by_id(database, id))?;
            match now {
                None => Ok(None),
                Some(entry) if entry.changed != changed => answer(store, prepared, options, entry),
                Some(_) => Err(error),
            }
        }
        found => found,
    }
}

fn answer(
    store: &Store,
    prepared: &Prepared,
    options: &RangeOptions,
    entry: Entry,
) -> Result<Option<SessionAnswer>, Error> {
    let name = entry.name.clone();
    let (session, _) = open::session(&store.open, &store.core, entry);
    let answer = match prepared.select_with(&session, options) {
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
    Ok(found.then_some(SessionAnswer {
        session: name,
        answer,
    }))
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
        let (all, possible) = self.core.read(|database| {
            let all = store::count(database, &glob)?;
            let possible = match &wanted {
                Some(wanted) => store::candidates(database, wanted, &glob)?,
                None => store::matching(database, &glob)?,
            };
            Ok((all, possible))
        })?;
        Ok(StoreAnswers {
            store: self,
            prepared: prepared.clone(),
            options: RangeOptions::default(),
            sessions: all,
            candidates: possible.len(),
            left: possible.into(),
            ready: VecDeque::new(),
        })
    }
}
