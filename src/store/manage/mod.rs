//! Sessions as wholes: listing, forking, renaming, deleting, pruning, erasing, verifying.

use crate::store::Store;
use crate::store::ask::candidate::misread_headers;
use crate::store::database::sql;
use crate::store::error::StoreError;
use crate::store::read::catalog::{self, Glob, ListedSession, SessionEntry};
use crate::store::read::open;
use crate::store::read::words::{self, Word};
use crate::store::texts::build;
use crate::store::write::core::{IN_LOG, NOTHING, PATIENCE};
use crate::store::write::{mark, records};
pub(crate) mod erased;
pub(crate) mod verify;
pub(crate) mod whole;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::engine::{Beside, ContextState, index_at};
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::support::macros::setters;
use crate::tree::hash::hex;

/// A session of a store, as it is listed.
///
/// ```
/// use pactql::{Context, Store};
/// # let path = std::env::temp_dir().join(format!("pactql-info-{}.db", std::process::id()));
/// let store = Store::open(&path)?;
/// let mut context = store.write("support-42")?;
/// context.add("^ah", "block:text \"Hello\"")?;
/// context.commit()?;
/// drop(context);
/// let sessions = store.sessions("support-*")?;
/// assert_eq!((sessions[0].name.as_str(), sessions[0].snapshots), ("support-42", 1));
/// # drop(store);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its name.
    pub name: String,
    /// Number of commits.
    pub snapshots: usize,
    /// The cycle of the newest commit.
    pub cycle: Option<i64>,
    /// Whether a working state was saved.
    pub working: bool,
    /// When it was made, in nanoseconds since 1970.
    pub created_at_ns: i64,
    /// When the newest commit was made.
    pub committed_at_ns: Option<i64>,
    /// What it was imported from.
    pub source: Option<String>,
    /// The session it was forked from.
    pub parent: Option<String>,
}

/// A session of a store, and the member `meta` of the document of its newest commit.
pub(crate) struct ListedInfo {
    pub(crate) info: SessionInfo,
    pub(crate) meta: Option<String>,
}

impl From<SessionEntry> for ListedInfo {
    fn from(entry: SessionEntry) -> Self {
        use crate::json::{get, members};
        let meta = |column: &str| {
            let column = members(column);
            let document = get(&column, "members").map(members)?;
            get(&document, "meta").map(str::to_owned)
        };
        Self {
            meta: entry.meta.as_deref().and_then(meta),
            info: SessionInfo {
                snapshots: entry.snapshots(),
                name: entry.name,
                cycle: entry.cycle,
                working: entry.working,
                created_at_ns: entry.created_at_ns,
                committed_at_ns: entry.committed_at_ns,
                source: entry.source,
                parent: entry.parent.map(|(name, _)| name),
            },
        }
    }
}

/// Which snapshots [`Store::prune`] removes.
///
/// ```
/// use std::time::Duration;
/// use pactql::store::Retention;
/// let month = Retention::default().older_than(Duration::from_secs(30 * 86_400)).keep(10);
/// assert_eq!(month, Retention::default().keep(10).older_than(Duration::from_secs(2_592_000)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    older_than: Option<Duration>,
    keep: Option<u64>,
    sessions: String,
    dry_run: bool,
}

impl Retention {
    setters! {
        /// Removes only snapshots that were committed longer ago than this.
        older_than: Duration;
        /// Keeps at least this many of the newest snapshots of each session; one always stays.
        keep: u64;
        /// Only in sessions whose name matches this pattern, in which `*` is any text, also with `/`.
        sessions: impl Into<String>;
    }

    /// Counts what would go, and removes nothing.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }
}

/// What [`Store::prune`] removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// The sessions that lost snapshots, with how many, in order of names.
    pub sessions: Vec<(String, u64)>,
    /// Snapshots in all.
    pub snapshots: u64,
    /// Versions of units that no session has any more.
    pub units: u64,
    /// Contents that no node has any more.
    pub bodies: u64,
}

/// Something in a store that contradicts itself. See [`Store::verify`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[non_exhaustive]
pub struct Damage {
    /// The session, if one is concerned.
    pub session: Option<String>,
    /// The cycle of the first snapshot concerned.
    pub cycle: Option<i64>,
    /// What is wrong.
    pub what: String,
}

/// What [`Store::salvage`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvaged {
    /// The sessions that were copied, in byte order of names.
    pub copied: Vec<String>,
    /// Those that were not, and why.
    pub left: Vec<(String, String)>,
}

impl Store {
    /// The sessions whose name matches `glob`, in byte order of names. `*` is any text, also with `/`; an empty
    /// pattern matches all.
    ///
    /// # Errors
    /// Those of the database.
    pub fn sessions(&self, glob: &str) -> Result<Vec<SessionInfo>, Error> {
        let listed = self.page(glob, "", usize::MAX)?.into_iter();
        Ok(listed.map(|listed| listed.info).collect())
    }

    /// The first sessions whose name matches and is after `after`, in byte order of names; opens none. Linear in those
    /// of a pattern that ends with its only `*`.
    pub(crate) fn page(
        &self,
        glob: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<ListedInfo>, Error> {
        let glob = Glob::new(glob);
        let page = |database: &mut dyn sql::Database| catalog::page(database, &glob, after, limit);
        let entries = self.core.read(page)?;
        Ok(entries.into_iter().map(ListedInfo::from).collect())
    }

    /// A number that changes with every commit to the store, and how many sessions have a name that matches.
    pub(crate) fn mark(&self, glob: &str) -> Result<(i64, usize), Error> {
        // Before they are counted: a commit in between is noticed the next time.
        Ok((self.core.home.version()?, self.count(glob)?))
    }

    pub(crate) fn count(&self, glob: &str) -> Result<usize, Error> {
        let glob = Glob::new(glob);
        Ok(self.core.read(|database| catalog::count(database, &glob))?)
    }

    /// The names of the sessions whose name matches, in byte order; reads nothing else of them.
    pub(crate) fn names(&self, glob: &str) -> Result<Vec<String>, Error> {
        let glob = Glob::new(glob);
        let listed = self.core.read(|database| catalog::list(database, &glob))?;
        Ok(listed.into_iter().map(|session| session.name).collect())
    }

    /// Gives the words of the sessions whose name matches, counted session by session, to `each`. Opens none. Returns
    /// how many they are, and the names of the others: those with a word with U+0000, which no column has.
    pub(crate) fn words(
        &self,
        glob: &str,
        mut each: impl FnMut(Word<'_>),
    ) -> Result<(usize, Vec<String>), Error> {
        let (glob, dialect) = (Glob::new(glob), self.dialect());
        let (mut sessions, others) = self.core.read(|database| {
            let sessions = catalog::list(database, &glob)?;
            Ok((sessions, misread_headers(database, dialect, &glob)?))
        })?;
        sessions.retain(|session| {
            let by_name = |other: &ListedSession| other.name.cmp(&session.name);
            others.binary_search_by(by_name).is_err()
        });
        for session in &sessions {
            ensure();
            self.core
                .read(|database| words::of_session(database, session.session, &mut each))?;
        }
        let others = others.into_iter().map(|other| other.name);
        Ok((sessions.len(), others.collect()))
    }

    /// What a context keeps of a session besides its snapshots; `None` if no context has written it.
    ///
    /// # Errors
    /// `E_SESSION_NOT_FOUND`; those of the database.
    pub fn kept(&self, name: &str) -> Result<Option<ContextState>, Error> {
        let read = self.core.read(|database| {
            let entry = catalog::get(database, name)?;
            if entry.runtime.is_none() {
                return Ok(None);
            }
            let attempts = records::attempts(database, entry.session)?;
            Ok(Some((Beside::read(database, &entry)?, attempts)))
        })?;
        let kept = |(beside, attempts)| Ok(ContextState::stored(beside)?.with_attempts(attempts));
        read.map(kept).transpose()
    }

    /// Begins another session at a snapshot of one: `@t0`, `@t-2`, `@c7`. The snapshots up to there are
    /// shared; no node is copied. The working state and the references stay with the first one.
    ///
    /// # Errors
    /// `E_SESSION_NOT_FOUND`, `E_SESSION_EXISTS`, `E_SNAPSHOT_NOT_FOUND`; those of the database.
    pub fn fork(&self, from: &str, address: &str, to: &str) -> Result<(), Error> {
        let session = self.session(from)?;
        let index = index_at(&session.history(), address)?;
        let stored = open::stored(&session);
        let stored = stored.ok_or_else(|| StoreError::NoSession(from.to_owned()))?;
        Ok(self
            .core
            .write(|database| whole::fork(database, stored.entry(), index, to))?)
    }

    /// Gives a session another name.
    ///
    /// # Errors
    /// `E_SESSION_NOT_FOUND`, `E_SESSION_EXISTS`, `E_SESSION_BUSY`; those of the database.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        // Alone, so that of two that want the same name the second finds it taken.
        self.core
            .remove(|database| {
                let session = whole::rename(database, from, to)?;
                mark::set_chosen_name(database, session)
            })
            .map_err(|error| self.not_found(from, error))
    }

    /// Removes a session, and what only it had. Forks of it stay whole. The file is written again, so that no page has a
    /// copy: linear in the store.
    ///
    /// # Errors
    /// `E_SESSION_NOT_FOUND`, `E_SESSION_BUSY`; those of the database.
    pub fn delete(&self, name: &str) -> Result<(), Error> {
        self.core
            .remove(|database| whole::delete(database, name))
            .map_err(|error| self.not_found(name, error))?;
        open::forget(&self.open, name);
        self.core.tidy();
        Ok(())
    }

    /// Removes the oldest snapshots of sessions. What stays answers as before and still verifies; forks
    /// stay whole. Each session is pruned in a transaction of its own. Without an age and a number, nothing
    /// goes. Where something went, the file is written again at the end: linear in the store.
    ///
    /// # Errors
    /// Those of the database; sessions pruned before stay pruned.
    pub fn prune(&self, retention: &Retention) -> Result<Pruned, Error> {
        let glob = Glob::new(&retention.sessions);
        let (entries, now) = self
            .core
            .read(|database| Ok((catalog::matching(database, &glob)?, database.now_ns()?)))?;
        let age = |age: Duration| i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
        let since = retention
            .older_than
            .map(|than| now.saturating_sub(age(than)));
        let prune = |database: &mut dyn sql::Database, entry: &SessionEntry| {
            // The row as it is now; a session that was deleted meanwhile loses nothing more.
            match catalog::by_id(database, entry.session)? {
                Some(entry) => whole::prune(database, &entry, retention.keep, since),
                None => Ok((0, 0, 0)),
            }
        };
        let each = entries.iter();
        let removed: Result<Vec<(u64, u64, u64)>, StoreError> = if retention.dry_run {
            self.core
                .rehearse(|database| each.map(|entry| prune(database, entry)).collect())
        } else {
            each.map(|entry| self.core.remove(|database| prune(database, entry)))
                .collect()
        };
        let mut pruned = Pruned::default();
        for (entry, (snapshots, units, bodies)) in entries.iter().zip(removed?) {
            if snapshots > 0 {
                pruned.sessions.push((entry.name.clone(), snapshots));
                pruned.snapshots += snapshots;
                pruned.units += units;
                pruned.bodies += bodies;
            }
        }
        if pruned.snapshots > 0 && !retention.dry_run {
            self.core.tidy();
        }
        Ok(pruned)
    }

    /// Takes the content and the custom attributes of nodes out of every snapshot of a session, where they
    /// read `[erased]` and nothing from then on; tags, keys and roles stay. What providers were sent has
    /// the texts too, and a title may repeat them, so all attempts and titles of the session go. Strings in the other
    /// members of its documents read `[erased]`, too, if they repeat a text: they have it in them, or are a part of it,
    /// of 8 bytes or more, or have 63 bytes in a row in common with it. The first
    /// snapshot with one of the nodes says so in the chain of hashes, which is computed again from the first
    /// one that changes. A writer whose lease has run out is refused from then on. Forks are sessions of their
    /// own; the names of those that still have the texts are returned. The file is written again: linear in the store.
    ///
    /// # Errors
    /// `E_SESSION_NOT_FOUND`, `E_SESSION_BUSY`; an id that no snapshot has; those of the database.
    pub fn erase<'i>(
        &self,
        name: &str,
        ids: impl IntoIterator<Item = &'i str>,
    ) -> Result<Vec<String>, Error> {
        let ids: Vec<&str> = ids.into_iter().collect();
        let others = self
            .core
            .remove(|database| whole::erase(database, name, &ids))
            .map_err(|error| self.not_found(name, error))?;
        self.core.tidy();
        Ok(others)
    }

    /// Whether a file of the store still has what was deleted, pruned or erased by this process: a reader holds it, another
    /// program did not stop writing, or there is no room to write the file again. [`Store::vacuum`] finishes that; where a
    /// reader held it, a later write of this process or closing the store does, too.
    #[must_use]
    pub fn has_removed_text(&self) -> bool {
        self.core.unscrubbed.load(Ordering::Relaxed) != NOTHING
    }

    /// Gives all free space back, and makes what was removed unreadable in the files. Linear in the store.
    ///
    /// # Errors
    /// Those of the database; a reader still holds what was removed.
    pub fn vacuum(&self) -> Result<(), Error> {
        let vacuum = |database: &mut dyn sql::Database| database.vacuum(PATIENCE);
        if self.core.with_or_without_log(vacuum)? {
            self.core.unscrubbed.store(NOTHING, Ordering::Relaxed);
            return Ok(());
        }
        self.core.unscrubbed.store(IN_LOG, Ordering::Relaxed);
        let what = "the log of recent commits still has what was removed, because another program reads; \
             it goes when that has ended and the store is written, vacuumed or closed";
        Err(StoreError::Conflict(what.to_owned()).into())
    }

    /// The hash of the newest commit of a session, in lower-case hex digits: it depends on all its history. `None` without
    /// a commit. Who keeps it can have [`Store::has_tip`] say whether the commit is still there, as it was.
    ///
    /// # Errors
    /// `E_SESSION_NOT_FOUND`; those of the database.
    pub fn tip(&self, name: &str) -> Result<Option<String>, Error> {
        Ok(self.tips(name)?.pop())
    }

    /// Whether a session has the commit of this hash, which [`Store::tip`] returned at some time. Errors as there.
    pub fn has_tip(&self, name: &str, tip: &str) -> Result<bool, Error> {
        let tips = self.tips(name)?;
        Ok(tips.iter().any(|known| known.eq_ignore_ascii_case(tip)))
    }

    fn tips(&self, name: &str) -> Result<Vec<String>, Error> {
        let read = self.core.read(|database| {
            let entry = catalog::get(database, name)?;
            let links = whole::links(database, entry.session, i64::MIN)?;
            let commits = links.into_iter().filter(|link| !link.working);
            Ok(commits
                .filter_map(|link| Some(hex(&link.hash()?)))
                .collect())
        });
        read.map_err(|error| self.not_found(name, error))
    }

    /// Copies what verifies of a damaged store to a new one: each session whose hashes hold, with all its snapshots. What
    /// only writers keep, such as references, is not copied.
    ///
    /// # Errors
    /// `to` exists, or cannot be written; no name of a session can be read.
    pub fn salvage(&self, to: impl AsRef<Path>) -> Result<Salvaged, Error> {
        let to = to.as_ref();
        if to.symlink_metadata().is_ok() {
            let exists = std::io::ErrorKind::AlreadyExists.into();
            return Err(StoreError::Io(to.to_owned(), exists).into());
        }
        let target = Self::builder().open(to)?;
        let names = self.core.read(catalog::readable_names)?;
        let mut salvaged = Salvaged::default();
        for name in names {
            ensure();
            let copied = (|| {
                let session = self.session(&name)?;
                session.history().fetch_all()?;
                let entry = self.core.read(|database| catalog::get(database, &name))?;
                target.import(&name, &session, entry.source.as_deref())
            })();
            open::forget(&self.open, &name);
            match copied {
                Ok(_) => salvaged.copied.push(name),
                Err(error) => salvaged.left.push((name, error.to_string())),
            }
        }
        Ok(salvaged)
    }

    /// Verifies the store and copies it, as it is at one moment, to a new SQLite file, while others write.
    ///
    /// # Errors
    /// The store is damaged: [`Store::salvage`] copies what is not; the file exists, or cannot be written; those of the database.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<(), Error> {
        if let Some(damage) = self.verify()?.into_iter().next() {
            return Err(StoreError::Damaged(damage.what).into());
        }
        let mut reader = self.core.home.reader()?;
        reader.backup(to.as_ref())?;
        Ok(())
    }

    /// Reads everything and compares it with its hashes. Returns what contradicts itself, in order of
    /// sessions; nothing if the store is sound. Linear in the store.
    ///
    /// # Errors
    /// Those of the database.
    pub fn verify(&self) -> Result<Vec<Damage>, Error> {
        let found = self.core.read(|database| {
            let mut found = verify::verify(database)?;
            // A text of a damaged unit may be another one.
            if found.is_empty() {
                found.extend(build::verify_texts(database)?);
            }
            Ok(found)
        })?;
        let damage = |(session, cycle, what)| Damage {
            session,
            cycle,
            what,
        };
        let mut found: Vec<Damage> = found.into_iter().map(damage).collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}
