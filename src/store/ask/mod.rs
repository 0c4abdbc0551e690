//! One selector over many sessions: [`Store::select`] (STORE §4 to §6).
//!
//! | wanted | answered by |
//! |---|---|
//! | ids, counts | one statement over all sessions, or loaded sessions where it does not compile or a text has U+0000: see [`StoreRoute`] |
//! | the blocks that are sized | one statement, or the caller loads sessions |
//! | nodes, differences | loaded sessions, in parallel and within the budget of memory |
//! | rows of SQL | one statement over all sessions |
//!
//! Answers come in byte order of the names of sessions, however they were found. What a selector means is the
//! engine's; how its SQL is written is that of `query::sql`. This module must not know either.

pub(crate) mod answers;
mod batches;
pub(crate) mod blocks;
pub(crate) mod candidate;
pub(crate) mod question;
pub(crate) mod rows;
mod stream;

use std::sync::Arc;

use self::answers::{
    Found, OfSession, StoreAnswers, StoreCounts, StoreIds, StoreReason, StoreRoute,
};
use self::batches::Batches;
use self::candidate::{SessionCandidate, among, candidate, candidates, misread, written};
use self::question::{Question, SessionIds};
use self::stream::RowStream;
use crate::engine::{NothingFound, Prepared};
use crate::history::RangeOptions;
use crate::query::ir::Required;
use crate::query::sql::{Among, Options, Wanted, compile_columns};
use crate::store::Store;
use crate::store::database::sql::{ResultRow, int, text};
use crate::store::error::StoreError;
use crate::store::read::catalog::{self, Glob, ListedSession};
use crate::support::diag::Error;

/// A selector over the sessions of a store, and which of them: [`Store::select`].
///
/// It is an iterator over the answers of the sessions in which something is found; [`StoreSelection::ids`],
/// [`StoreSelection::counts`] and [`StoreSelection::rows`] give less, and sooner.
///
/// ```
/// use pactql::{Context, Message, Store};
/// # let path = std::env::temp_dir().join(format!("pactql-asked-{}.db", std::process::id()));
/// let store = Store::open(path.to_str().unwrap_or("agents.db"))?;
/// let mut context = store.write("support-42")?;
/// context.append(Message::user("Where is my refund?"))?;
/// context.commit()?;
/// let asked = store.select("@t0 .cb[role='user']")?.sessions("support-*");
/// for found in asked.ids()? {
///     let found = found?;
///     println!("{}: {:?}", found.session(), found.ids().collect::<Vec<_>>());
/// }
/// for found in asked {
///     assert_eq!(found?.answer.count(), 1);
/// }
/// # drop((context, store));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct StoreSelection<'s> {
    pub(crate) store: &'s Store,
    pub(crate) prepared: Prepared,
    pub(crate) glob: String,
    options: RangeOptions,
}

impl Store {
    /// A selector over every session. [`StoreSelection::sessions`] asks some of them.
    ///
    /// # Errors
    /// Those of the selector.
    pub fn select(&self, selector: &str) -> Result<StoreSelection<'_>, Error> {
        Ok(self.select_prepared(&self.engine.prepare(selector)?))
    }

    /// As [`Store::select`], with a prepared selector.
    pub fn select_prepared(&self, prepared: &Prepared) -> StoreSelection<'_> {
        StoreSelection {
            store: self,
            prepared: prepared.clone(),
            glob: String::new(),
            options: RangeOptions::default(),
        }
    }

    /// The names of sessions that may have a text with what is required; `None` if that is not known.
    pub(crate) fn with_text(
        &self,
        glob: &str,
        required: &Required,
    ) -> Result<Option<Vec<String>>, Error> {
        let (glob, wanted) = (Glob::new(glob), [SessionCandidate::Text(required.clone())]);
        let read = self.core.read(|database| {
            let found = candidates(database, &wanted, &glob)?;
            match written(required, self.dialect()) {
                Some(units) if found.is_none() => {
                    catalog::placing(database, &[units], &glob).map(Some)
                }
                _ => Ok(found),
            }
        });
        Ok(read?.map(|found| found.into_iter().map(|listed| listed.name).collect()))
    }
}

impl<'s> StoreSelection<'s> {
    /// Only the sessions whose name matches `glob`, in which `*` is any text, also with `/`; an empty one matches
    /// all.
    pub fn sessions(mut self, glob: impl Into<String>) -> Self {
        self.glob = glob.into();
        self
    }

    /// Options for a range, as [`Prepared::select_with`] takes them.
    pub fn options(mut self, options: RangeOptions) -> Self {
        self.options = options;
        self
    }

    /// The answers of the sessions in which something is found, in byte order of names, while later ones are
    /// still being queried in parallel.
    ///
    /// The store says first which sessions can match at all: a selector that requires an id, a key or a
    /// value of a custom attribute costs what the sessions cost that have one. Sessions are opened within
    /// the budget of memory.
    ///
    /// # Errors
    /// A parameter without a value; those of the database. A session that cannot be read is an error of its own
    /// in the answers.
    pub fn answers(&self) -> Result<StoreAnswers<'s>, Error> {
        let glob = Glob::new(&self.glob);
        let possible = self.possible(&glob)?;
        let question = self.question();
        Ok(StoreAnswers::new(self.store, glob, question, possible))
    }

    /// Why the selector finds nothing in any session, or a range no difference, in words (LANGUAGE §10): a name or a value that none of them has, or
    /// else why the first one has nothing. Reads all sessions if they are at most 64, else the first. Empty if one that is
    /// read has a match.
    ///
    /// # Errors
    /// Those of the selector and of the database.
    pub fn why_empty(&self) -> Result<Vec<String>, Error> {
        const TOGETHER: usize = 64;
        let mut listed = self.store.page(&self.glob, "", TOGETHER + 1)?;
        if listed.len() > TOGETHER {
            listed.truncate(1);
        }
        let (mut all, mut of_first) = (Vec::new(), None);
        for session in &listed {
            let name = &session.info.name;
            let why = match self.prepared.nothing(&*self.store.session(name)?) {
                Ok(None) => return Ok(Vec::new()),
                Ok(Some((reasons, nothing))) => {
                    all.extend(nothing);
                    reasons.iter().map(ToString::to_string).collect()
                }
                // It has no such snapshot.
                Err(error) => vec![error.message().to_owned()],
            };
            of_first.get_or_insert((name, why));
        }
        let unknown = match &all[..] {
            [_, _, ..] if all.len() == listed.len() => NothingFound::unknown_in_all(&all),
            _ => Vec::new(),
        };
        Ok(match of_first {
            None if self.glob.is_empty() => vec!["the store has no sessions".to_owned()],
            None => vec![format!(
                "no session has a name that `{}` matches",
                self.glob
            )],
            Some((name, why)) if unknown.is_empty() => {
                why.iter().map(|why| format!("in {name}, {why}")).collect()
            }
            Some(_) => unknown.iter().map(ToString::to_string).collect(),
        })
    }

    /// The ids of what a selector of rows finds in each session, as [`StoreSelection::answers`] finds them. Where
    /// the selector compiles to SQL, the database answers by one statement, and no session is loaded but those with
    /// U+0000 in a text that the selector compares; memory does not grow with the sessions. What a statement does not read of
    /// a session may be damaged without an error: [`Store::verify`] finds that.
    ///
    /// # Errors
    /// As [`StoreSelection::answers`]; a selector that compares the snapshots of a range.
    pub fn ids(&self) -> Result<StoreIds, Error> {
        let read = |row: &dyn ResultRow, found: &mut Vec<SessionIds>| {
            let (name, id) = (text(row, 0)?, text(row, 1)?);
            if found.last().is_none_or(|last| last.session() != name) {
                found.push(SessionIds::new(name));
            }
            if let Some(last) = found.last_mut() {
                last.push(id);
            }
            Ok(())
        };
        Ok(StoreIds(self.found(Wanted::Ids, read)?))
    }

    /// How many nodes a selector of rows finds in each session, as [`StoreSelection::ids`] finds them: the name of
    /// the session and the number. Sessions with none are left out.
    ///
    /// # Errors
    /// As [`StoreSelection::ids`].
    pub fn counts(&self) -> Result<StoreCounts, Error> {
        let read = |row: &dyn ResultRow, found: &mut Vec<(String, usize)>| {
            let count = usize::try_from(int(row, 1)?).unwrap_or(usize::MAX);
            found.push((text(row, 0)?.to_owned(), count));
            Ok(())
        };
        Ok(StoreCounts(self.found(Wanted::Counts, read)?))
    }

    /// Who answers when the ids are wanted, and why. Nothing is answered yet.
    ///
    /// # Errors
    /// A parameter without a value; those of the database.
    pub fn route(&self) -> Result<StoreRoute, Error> {
        if self.prepared.check_rows().is_err() {
            return Ok(StoreRoute::Sessions(StoreReason::Nodes));
        }
        Ok(match self.planned(Wanted::Ids)? {
            Ok(planned) => planned.route(),
            Err(reason) => StoreRoute::Sessions(reason),
        })
    }

    fn found<T: OfSession + Send + 'static>(
        &self,
        wanted: Wanted,
        read: impl Fn(&dyn ResultRow, &mut Vec<T>) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<Found<T>, Error> {
        self.prepared.check_rows()?;
        let (route, rows, list) = match self.planned(wanted)? {
            Ok(planned) => {
                let route = planned.route();
                let rows = RowStream::new(&self.store.core, planned.sql, read);
                (route, Some(rows), planned.loaded)
            }
            Err(reason) => {
                let possible = self.possible(&Glob::new(&self.glob))?;
                (StoreRoute::Sessions(reason), None, possible)
            }
        };
        let batches = Batches::new(self.question(), list);
        Ok(Found::new(route, rows, batches))
    }

    /// The statement that answers a selector of rows, or why all sessions are loaded.
    fn planned(&self, wanted: Wanted) -> Result<Result<PlannedStatement, StoreReason>, Error> {
        let bound = self.prepared.ready()?;
        if self.options != RangeOptions::default() {
            return Ok(Err(StoreReason::Options));
        }
        let (query, dialect) = (self.prepared.query(), self.store.dialect());
        let (options, glob) = (self.sql_options(), Glob::new(&self.glob));
        let statement = |among| compile_columns(query, dialect, &options, among, wanted);
        let Ok(Some(whole)) = statement(None) else {
            return Ok(Err(StoreReason::Unsupported));
        };
        let (among, misread, possible) = self.store.core.read(|database| {
            let misread = misread(database, query, dialect, &glob)?;
            let possible = match candidate(bound, dialect).filter(|_| misread.is_some()) {
                Some(wanted) => candidates(database, &wanted, &glob)?,
                None => None,
            };
            let among = among(database, bound, query, dialect)?;
            Ok((among, misread, possible))
        })?;
        let among = match &misread {
            Some(misread) => Some(misread.leave_out(among)),
            None => among.map(Among::Only),
        };
        let mut loaded = misread.map(|misread| misread.sessions).unwrap_or_default();
        if let Some(possible) = possible {
            loaded.retain(|session| {
                let by_name = |other: &ListedSession| other.name.cmp(&session.name);
                possible.binary_search_by(by_name).is_ok()
            });
        }
        let sql = match among {
            Some(among) => statement(Some(among))?.unwrap_or(whole),
            None => whole,
        };
        let loaded = loaded.into();
        Ok(Ok(PlannedStatement { sql, loaded }))
    }

    fn sql_options(&self) -> Options {
        Options {
            sessions: self.glob.clone(),
            schema: String::new(),
        }
    }

    fn question(&self) -> Question {
        Question {
            core: Arc::clone(&self.store.core),
            open: Arc::clone(&self.store.open),
            prepared: self.prepared.clone(),
            options: self.options.clone(),
        }
    }

    fn possible(&self, glob: &Glob) -> Result<Arc<[ListedSession]>, Error> {
        let core = &self.store.core;
        let found = match candidate(self.prepared.ready()?, self.store.dialect()) {
            Some(wanted) => core.read(|database| candidates(database, &wanted, glob))?,
            None => None,
        };
        Ok(match found {
            Some(found) => found.into(),
            None => core
                .read_once(|database| catalog::list(database, glob))?
                .into(),
        })
    }
}

/// The statement that answers a selector, and the sessions that it leaves out, to be loaded.
struct PlannedStatement {
    sql: String,
    loaded: Arc<[ListedSession]>,
}

impl PlannedStatement {
    fn route(&self) -> StoreRoute {
        match self.loaded.len() {
            0 => StoreRoute::Statement,
            loaded => StoreRoute::Both(loaded),
        }
    }
}

impl<'s> IntoIterator for StoreSelection<'s> {
    type Item = <StoreAnswers<'s> as Iterator>::Item;
    type IntoIter = StoreAnswers<'s>;

    /// [`StoreSelection::answers`], whose error is the first item.
    fn into_iter(self) -> StoreAnswers<'s> {
        self.answers().unwrap_or_else(|error| {
            let (glob, question) = (Glob::new(&self.glob), self.question());
            let mut answers = StoreAnswers::new(self.store, glob, question, Arc::default());
            answers.batches.ready.push_back(Err(error));
            answers
        })
    }
}
