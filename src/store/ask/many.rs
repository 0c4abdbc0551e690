//! Selectors over many sessions.

use crate::store::Store;
use crate::store::ask::asking::{Asking, SessionAnswer};
use crate::store::ask::candidate::{candidate, exact};
use crate::store::ask::candidates::{self, Glob};
use crate::store::ask::grouped::Grouped;
use crate::store::ask::ids::{SessionIds, StoreIds};
use crate::store::ask::sweep::Sweep;
use crate::store::database::sql;
use crate::store::error::StoreError;
use crate::store::read::catalog::Listed;
use crate::store::read::newest::Among;
use crate::store::read::open::{self, OpenSessions};
use crate::store::write::core::Core;
use std::sync::{Arc, Mutex};

use hashbrown::HashMap;

use crate::engine::Prepared;
use crate::history::{Part, RangeOptions};
use crate::support::diag::Error;

/// The answers of many sessions, in byte order of their names. See [`Store::select`].
#[derive(Debug)]
pub struct StoreAnswers<'s> {
    store: &'s Store,
    sweep: Sweep<SessionAnswer>,
    glob: Glob,
}

impl StoreAnswers<'_> {
    /// With options for a range, as [`Prepared::select_with`] takes them; those of answers that were given
    /// already stay as they are.
    #[must_use]
    pub fn with_options(mut self, options: RangeOptions) -> Self {
        let asking = self.sweep.asking().clone();
        self.sweep.ask(Asking { options, ..asking });
        self
    }

    /// How many sessions the selector reads. They are counted now, in linear time.
    ///
    /// # Errors
    /// Those of the database.
    pub fn sessions(&self) -> Result<usize, Error> {
        let core = &self.store.core;
        Ok(core.read(|database| candidates::count(database, &self.glob))?)
    }

    /// How many of them can match at all, as the store said before any was opened. The others were not
    /// read.
    pub fn candidates(&self) -> usize {
        self.sweep.len()
    }
}

impl Iterator for StoreAnswers<'_> {
    type Item = Result<SessionAnswer, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.sweep.next()
    }
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
        let (glob, mut asking) = (Glob::new(glob), self.asking(prepared));
        let possible = match self.units(prepared, &glob)? {
            Some((possible, among)) => {
                asking.among = Arc::new(among);
                asking.foreseen = None;
                possible.into()
            }
            None => self.possible(prepared, &glob)?,
        };
        Ok(StoreAnswers {
            store: self,
            sweep: Sweep::new(asking, Asking::group, possible),
            glob,
        })
    }

    /// The ids of what a selector of rows finds in every session whose name matches `glob`, as
    /// [`Store::select_in`] finds it. Faster where nothing else is wanted: of a selector that asks for an
    /// id, a key or the value of a custom attribute in one step, nothing but the answer is read. Of other selectors the
    /// database answers the sessions that are asked for the first time, if there are 64 and more, by a statement for each 32;
    /// those that are queried again are opened. What a statement does not read of a session may be damaged without a word:
    /// [`Store::verify`] finds that.
    ///
    /// # Errors
    /// As [`Store::select`]; a selector that compares the snapshots of a range.
    pub fn select_ids(&self, glob: &str, selector: &str) -> Result<StoreIds, Error> {
        self.select_ids_prepared(glob, &self.engine.prepare(selector)?)
    }

    /// As [`Store::select_ids`], with a prepared selector.
    ///
    /// # Errors
    /// As [`Store::select_ids`].
    pub fn select_ids_prepared(&self, glob: &str, prepared: &Prepared) -> Result<StoreIds, Error> {
        prepared.check_rows()?;
        let glob = Glob::new(glob);
        if let Some(wanted) = exact(prepared.query().time, &**prepared.ready()?) {
            let found = self
                .core
                .read_once(|database| SessionIds::exact(database, &wanted, &glob))?;
            if let Some(found) = found {
                return Ok(StoreIds::ready(self.asking(prepared), found));
            }
        }
        let possible = self.possible(prepared, &glob)?;
        let grouped = (possible.len() >= GROUPED)
            .then(|| Grouped::of(prepared, self.dialect()))
            .flatten();
        let asking = Asking {
            foreseen: prepared.foreseen_of_ids(),
            grouped: grouped.map(Arc::new),
            ..self.asking(prepared)
        };
        Ok(StoreIds::of(asking, possible))
    }

    fn asking(&self, prepared: &Prepared) -> Asking {
        Asking {
            core: Arc::clone(&self.core),
            open: Arc::clone(&self.open),
            foreseen: prepared.foreseen(),
            among: Arc::default(),
            grouped: None,
            prepared: prepared.clone(),
            options: RangeOptions::default(),
        }
    }

    /// The sessions in which a selector finds something and by their numbers the parts that it is in, if the
    /// store's indexes show that.
    fn units(&self, prepared: &Prepared, glob: &Glob) -> Result<Option<Units>, Error> {
        let bound = &**prepared.ready()?;
        let wanted = exact(prepared.query().time, bound).filter(|_| bound.is_unit_local());
        let Some(wanted) = wanted else {
            return Ok(None);
        };
        let mut list: Vec<Listed> = Vec::new();
        let mut found: Vec<(Vec<Box<str>>, Vec<i64>)> = Vec::new();
        let mut is_known = true;
        self.core.read_once(|database| {
            candidates::hits(
                database,
                &wanted.candidate,
                wanted.working,
                &mut |hit| match wanted.holds(&hit) {
                    Some(true) if glob.matches(hit.name) => {
                        if list.last().is_none_or(|last| last.session != hit.session) {
                            found.push((Vec::new(), Vec::new()));
                            list.push(Listed {
                                session: hit.session,
                                name: hit.name.to_owned(),
                                changed: hit.changed,
                            });
                        }
                        if let Some((ids, units)) = found.last_mut() {
                            ids.push(hit.id.into());
                            units.push(hit.unit);
                        }
                    }
                    Some(_) => {}
                    None => is_known = false,
                },
            )
        })?;
        let numbers = list.iter().map(|listed| listed.session);
        let parts = found.into_iter().map(|(ids, mut units)| {
            units.dedup();
            let part = Part::of_ids(ids);
            Among { part, units }
        });
        let among = numbers.zip(parts).collect();
        Ok(is_known.then_some((list, among)))
    }

    /// The sessions that can match at all.
    fn possible(&self, prepared: &Prepared, glob: &Glob) -> Result<Arc<[Listed]>, Error> {
        let wanted = candidate(&**prepared.ready()?);
        let possible = match &wanted {
            Some(wanted) => {
                let read = |database: &mut dyn sql::Database| {
                    candidates::candidates(database, wanted, glob)
                };
                self.core.read(read)?.into()
            }
            None => listed(&self.open, &self.core, glob)?,
        };
        Ok(possible)
    }
}

/// Sessions, and parts of them by their numbers.
type Units = (Vec<Listed>, HashMap<i64, Among>);

/// So many sessions are worth a statement of their own.
const GROUPED: usize = 64;

/// So many sessions are worth a connection of its own that tells whether a list of them is up to date.
const MANY: i64 = 1_000;

/// The sessions with a matching name. A long list of all sessions stays in memory until something is
/// committed to the store.
fn listed(
    open: &Mutex<OpenSessions>,
    core: &Arc<Core>,
    glob: &Glob,
) -> Result<Arc<[Listed]>, StoreError> {
    let list = || core.read_once(|database| candidates::listed(database, glob));
    if !glob.is_all() || core.read_once(candidates::last)? < MANY {
        return Ok(list()?.into());
    }
    // Before the list is read: a commit in between is noticed the next time.
    let version = core.version()?;
    let known = open::lock(open).list(version);
    if let Some(known) = known {
        return Ok(known);
    }
    let list: Arc<[Listed]> = list()?.into();
    open::lock(open).keep_list(version, &list);
    Ok(list)
}
