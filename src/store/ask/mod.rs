//! One selector over many sessions: [`Store::select`] (STORE §4 to §6).
//!
//! | wanted | answered by |
//! |---|---|
//! | ids, counts | a statement for each group of sessions, or loaded sessions: see [`StoreRoute`] |
//! | nodes, differences | loaded sessions, in parallel and within the budget of memory |
//! | rows of SQL | one statement over all sessions |
//!
//! Answers come in byte order of the names of sessions, however they were found. What a selector means is the
//! engine's; how its SQL is written is that of `query::sql`. This module must not know either.

pub(crate) mod answers;
mod batches;
pub(crate) mod candidate;
pub(crate) mod question;
pub(crate) mod rows;

use std::sync::Arc;

use self::answers::{StoreAnswers, StoreIds, StoreReason, StoreRoute};
use self::candidate::{candidate, candidates};
use self::question::{Question, SESSIONS_OF_A_STATEMENT};
use crate::engine::Prepared;
use crate::history::RangeOptions;
use crate::query::sql::compile_group;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::read::catalog::{self, Glob, ListedSession};
use crate::store::read::open;
use crate::support::diag::Error;

/// Minimum number of sessions for statements of groups; fewer are loaded at once.
const MANY_FOR_STATEMENTS: usize = 64;

/// Minimum number of sessions for a connection of its own that tells whether the list of them is up to date.
const MANY_FOR_LIST: i64 = 1_000;

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
}

impl<'s> StoreSelection<'s> {
    /// Only the sessions whose name matches `glob`, in which `*` is any text without `/`; an empty one matches
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
        let question = self.question(None);
        Ok(StoreAnswers::new(self.store, glob, question, possible))
    }

    /// The ids of what a selector of rows finds in each session, as [`StoreSelection::answers`] finds them. Where
    /// the selector compiles to SQL, the database answers the sessions that are queried for the first time, if
    /// there are 64 and more, by a statement for each 32; those that are queried again are opened. What a statement
    /// does not read of a session may be damaged without an error: [`Store::verify`] finds that.
    ///
    /// # Errors
    /// As [`StoreSelection::answers`]; a selector that compares the snapshots of a range.
    pub fn ids(&self) -> Result<StoreIds, Error> {
        self.prepared.check_rows()?;
        let possible = self.possible(&Glob::new(&self.glob))?;
        let dialect = self.store.dialect();
        let statement = if self.options != RangeOptions::default() {
            Err(StoreReason::Options)
        } else if possible.len() < MANY_FOR_STATEMENTS {
            Err(StoreReason::Few)
        } else {
            let text = compile_group(self.prepared.query(), dialect, SESSIONS_OF_A_STATEMENT);
            text.ok().flatten().ok_or(StoreReason::Unsupported)
        };
        let (statement, route) = match statement {
            Ok(statement) => (Some(statement), StoreRoute::Statement),
            Err(reason) => (None, StoreRoute::Sessions(reason)),
        };
        Ok(StoreIds::new(self.question(statement), route, possible))
    }

    /// How many nodes a selector of rows finds in each session, as [`StoreSelection::ids`] finds them: the name of
    /// the session and the number.
    ///
    /// # Errors
    /// As [`StoreSelection::ids`].
    pub fn counts(
        &self,
    ) -> Result<impl Iterator<Item = Result<(String, usize), Error>> + use<>, Error> {
        let counted = self.ids()?.map(|found| {
            let found = found?;
            Ok((found.session().to_owned(), found.ids().len()))
        });
        Ok(counted)
    }

    fn question(&self, statement: Option<String>) -> Question {
        Question {
            core: Arc::clone(&self.store.core),
            open: Arc::clone(&self.store.open),
            prepared: self.prepared.clone(),
            options: self.options.clone(),
            statement,
        }
    }

    fn possible(&self, glob: &Glob) -> Result<Arc<[ListedSession]>, Error> {
        let core = &self.store.core;
        Ok(match candidate(&**self.prepared.ready()?) {
            Some(wanted) => core
                .read(|database| candidates(database, &wanted, glob))?
                .into(),
            None => listed(self.store, glob)?,
        })
    }
}

impl<'s> IntoIterator for StoreSelection<'s> {
    type Item = <StoreAnswers<'s> as Iterator>::Item;
    type IntoIter = StoreAnswers<'s>;

    /// [`StoreSelection::answers`], whose error is the first item.
    fn into_iter(self) -> StoreAnswers<'s> {
        self.answers().unwrap_or_else(|error| {
            let (glob, question) = (Glob::new(&self.glob), self.question(None));
            let mut answers = StoreAnswers::new(self.store, glob, question, Arc::default());
            answers.batches.ready.push_back(Err(error));
            answers
        })
    }
}

/// A long list of all sessions stays in memory until something is committed to the store.
fn listed(store: &Store, glob: &Glob) -> Result<Arc<[ListedSession]>, StoreError> {
    let core = &store.core;
    let list = || core.read_once(|database| catalog::list(database, glob));
    if !glob.is_all() || core.read_once(catalog::last)? < MANY_FOR_LIST {
        return Ok(list()?.into());
    }
    // Before the list is read: a commit in between is noticed the next time.
    let version = core.home.version()?;
    let known = open::lock(&store.open).list(version);
    if let Some(known) = known {
        return Ok(known);
    }
    let list: Arc<[ListedSession]> = list()?.into();
    open::lock(&store.open).keep_list(version, &list);
    Ok(list)
}
