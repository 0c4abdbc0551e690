//! Sessions of a log that may be in the store already, from when the log was shorter.

use crate::store::Store;
use crate::store::database::sql::Database;
use crate::store::error::StoreError;
use crate::store::manage::whole;
use crate::store::read::catalog::{self, Entry};
use crate::store::read::open;
use crate::store::write::change::{Change, SessionRows};
use crate::store::write::records::Beside;
use std::borrow::Cow;
use std::sync::Arc;

use crate::history::{History, Position, Session};
use crate::index::{Meta, NodeRef, Snapshot};
use crate::json::{canonical, members};
use crate::support::diag::Error;

/// What [`Store::import_log`] did.
///
/// ```
/// use pactql::{Session, Store};
/// # let path = std::env::temp_dir().join(format!("pactql-log-{}.db", std::process::id()));
/// let store = Store::open(&path)?;
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let sessions = [("a".to_owned(), session)];
/// let first = store.import_log(&sessions, Some("a.log"))?;
/// assert_eq!((first.new, first.snapshots), (1, 6));
/// let again = store.import_log(&sessions, Some("a.log"))?;
/// assert_eq!((again.same, again.snapshots), (1, 0));
/// # drop(store);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogImport {
    /// Sessions that were not there.
    pub new: usize,
    /// Sessions that got snapshots, or another working state.
    pub grown: usize,
    /// Sessions that were as they are in the log.
    pub same: usize,
    /// Snapshots that were added.
    pub snapshots: usize,
    /// Sessions that have another name now, from and to, in the order of the log.
    pub renamed: Vec<(String, String)>,
}

/// A session of the store that may be of the log.
struct LogCandidate {
    entry: Entry,
    session: Arc<Session>,
}

/// What is done with a session of the log.
#[derive(Clone, Copy, Default)]
struct LogStep<'a> {
    /// The session of the store that it is; a new one is made if there is none.
    candidate: Option<&'a LogCandidate>,
    /// How many snapshots of the log are there.
    there: usize,
    /// The newest snapshot of the store was not whole, and is taken back.
    is_cut: bool,
    /// Nothing is written: the log is shorter, or there is nothing new.
    is_kept: bool,
}

impl Store {
    /// Brings the sessions of one log into the store, each with its name. A session that is there from
    /// when the log was shorter gets what is new; its ids and snapshots stay. If the log names its
    /// sessions otherwise than then, as it does when another branch has become the newest, they are renamed.
    /// `source` says which log it is. One transaction; linear in the log, and in the newest commits
    /// of what is there.
    ///
    /// # Errors
    /// `E_SESSION_EXISTS`: a name belongs to a session that is not the beginning of the one in the log.
    /// `E_SESSION_BUSY`; those of the database. The store is as it was then.
    pub fn import_log(
        &self,
        sessions: &[(String, Session)],
        source: Option<&str>,
    ) -> Result<LogImport, Error> {
        let candidates = self.candidates_of(sessions, source)?;
        let steps = steps(sessions, &candidates, source)?;
        let mut done = LogImport::default();
        let changes = steps.iter().any(|step| !step.is_kept);
        let moved = renames(sessions, &steps);
        if changes || !moved.is_empty() {
            // What is taken back may leave units that another session is about to place.
            self.core.remove(false, |database| {
                check_names(database, sessions, &steps, &moved)?;
                rename(database, &moved)?;
                for ((name, session), step) in sessions.iter().zip(&steps) {
                    write(database, name, session, source, step)?;
                }
                Ok(())
            })?;
        }
        for ((_, session), step) in sessions.iter().zip(&steps) {
            let count = match (step.is_kept, step.candidate) {
                (true, _) => &mut done.same,
                (false, None) => &mut done.new,
                (false, Some(_)) => &mut done.grown,
            };
            *count += 1;
            if !step.is_kept {
                let length = session.history().committed().len();
                done.snapshots += length.saturating_sub(step.there);
            }
        }
        for (from, _) in &moved {
            open::forget(&self.open, from);
        }
        done.renamed = moved;
        Ok(done)
    }

    /// The sessions of the store that have one of the names, or come from the same log.
    fn candidates_of(
        &self,
        sessions: &[(String, Session)],
        source: Option<&str>,
    ) -> Result<Vec<LogCandidate>, Error> {
        let names = || sessions.iter().map(|(name, _)| &**name);
        let first = names().next().unwrap_or_default();
        let shared = names().fold(first, |shared, name| common(shared, name));
        // A log of several sessions numbers them, and one that had a single one then did not.
        let shared = match sessions {
            [_] => shared,
            _ => shared
                .trim_end_matches(|c: char| c.is_ascii_digit())
                .trim_end_matches('-'),
        };
        let entries = self.core.read(|database| match shared {
            "" => {
                let found = names().map(|name| catalog::find(database, name));
                let found: Result<Vec<_>, _> = found.collect();
                Ok(found?.into_iter().flatten().collect())
            }
            shared => catalog::all(database, shared),
        })?;
        let is_of_log = |entry: &Entry| {
            let has_source = source.is_some() && entry.source.as_deref() == source;
            has_source || names().any(|name| name == entry.name)
        };
        let mut candidates = Vec::new();
        for entry in entries.into_iter().filter(is_of_log) {
            let session = self.session(&entry.name)?;
            candidates.push(LogCandidate { entry, session });
        }
        Ok(candidates)
    }
}

/// What two names begin with.
fn common<'a>(a: &'a str, b: &str) -> &'a str {
    let same = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b);
    let end = same.map_or(a.len().min(b.len()), |((at, _), _)| at);
    a.get(..end).unwrap_or_default()
}

fn steps<'a>(
    sessions: &[(String, Session)],
    candidates: &'a [LogCandidate],
    source: Option<&str>,
) -> Result<Vec<LogStep<'a>>, Error> {
    let mut steps: Vec<Option<LogStep<'a>>> = sessions.iter().map(|_| None).collect();
    let mut claimed = vec![false; candidates.len()];
    // First those that kept their names and have grown; last those of which the log has less.
    for (same_name, longer) in [(true, false), (false, false), (true, true)] {
        for ((name, session), step) in sessions.iter().zip(&mut steps) {
            if step.is_some() {
                continue;
            }
            let mut best: Option<(usize, LogStep<'a>)> = None;
            for (at, candidate) in candidates.iter().enumerate() {
                if claimed[at] || (candidate.entry.name == *name) != same_name {
                    continue;
                }
                let Some(found) = candidate.step(session, source)? else {
                    continue;
                };
                let counts = if found.is_kept {
                    longer
                } else {
                    same_name || found.there > 0
                };
                if counts && best.is_none_or(|(_, best)| best.there < found.there) {
                    best = Some((at, found));
                }
            }
            if let Some((at, mut best)) = best {
                claimed[at] = true;
                best.is_kept |= has_nothing_new(&candidates[at].session, session, best.there)?;
                *step = Some(best);
            }
        }
    }
    Ok(steps.into_iter().map(Option::unwrap_or_default).collect())
}

/// The snapshot at an index, loaded.
fn at(history: &History, index: Option<usize>) -> Result<Option<&Arc<Snapshot>>, Error> {
    match index {
        Some(index) => Ok(history.load(Position::Committed(index))?),
        None => Ok(None),
    }
}

impl LogCandidate {
    /// What is done with a session of the log if this is the one; `None` if they are of different logs, or of different
    /// branches.
    fn step(&self, session: &Session, source: Option<&str>) -> Result<Option<LogStep<'_>>, Error> {
        // A context has gone on with it.
        if self.entry.runtime.is_some() {
            return Ok(None);
        }
        let step = LogStep {
            candidate: Some(self),
            ..LogStep::default()
        };
        let (old, new) = (self.session.history(), session.history());
        for history in [&old, &new] {
            history.fetch_cycles()?;
        }
        let Some(last) = old.committed().len().checked_sub(1) else {
            let same = source.is_some() && self.entry.source.as_deref() == source;
            return Ok(same.then_some(step));
        };
        let Some(newest) = at(&old, Some(last))? else {
            return Ok(None);
        };
        let Some(index) = new.committed().index_of(newest.cycle()) else {
            // The log is shorter if its end is in the store.
            let Some(end) = at(&new, new.committed().len().checked_sub(1))? else {
                return Ok(None);
            };
            let before = at(&old, old.committed().index_of(end.cycle()))?;
            let is_kept = before.is_some_and(|before| is_same(before, end));
            return Ok(is_kept.then_some(LogStep { is_kept, ..step }));
        };
        let Some(now) = at(&new, Some(index))? else {
            return Ok(None);
        };
        if is_same(newest, now) {
            let there = index + 1;
            return Ok(Some(LogStep { there, ..step }));
        }
        // Only what was last may have been torn, and nothing that a prune has left alone.
        let is_torn = if last == 0 {
            self.entry.seqs.is_some_and(|(first, _)| first == 1)
        } else {
            let before = at(&old, Some(last - 1))?.zip(at(&new, index.checked_sub(1))?);
            before.is_some_and(|(old, new)| is_same(old, new))
        };
        let is_cut = is_torn && is_within(newest, now);
        Ok(is_cut.then_some(LogStep {
            there: index,
            is_cut,
            ..step
        }))
    }
}

/// Whether a session of the store, of which the log has the first `there` snapshots, is as the log is.
fn has_nothing_new(old: &Session, new: &Session, there: usize) -> Result<bool, Error> {
    let (old, new) = (old.history(), new.history());
    if there != new.committed().len() {
        return Ok(false);
    }
    let (old, new) = (old.load(Position::Working)?, new.load(Position::Working)?);
    Ok(match (old, new) {
        (None, None) => true,
        (Some(old), Some(new)) => is_same(old, new),
        _ => false,
    })
}

/// Whether two snapshots have the same units and say the same, but for where a branch left another.
fn is_same(a: &Snapshot, b: &Snapshot) -> bool {
    if document_members(a.meta()) != document_members(b.meta()) {
        return false;
    }
    let (a, b) = (Change::between(None, a), Change::between(None, b));
    let sorted = |change: &Change| {
        let units = change.came();
        let mut units: Vec<_> = units
            .map(|(id, hash, spelling)| (id.to_owned(), hash, spelling))
            .collect();
        units.sort_unstable();
        units
    };
    sorted(&a) == sorted(&b)
}

/// Members of a snapshot's document, each with its own members and their canonical JSON.
type DocumentMembers<'a> = Vec<(&'a str, Vec<(Cow<'a, str>, String)>)>;

/// What a snapshot says besides its tree, by value. Which branch is the newest, and so whether a session is a
/// fork, changes as a log grows.
fn document_members(meta: &Meta) -> DocumentMembers<'_> {
    let extra = meta.extra.iter();
    extra
        .map(|(name, json)| {
            let mut found = members(json);
            found.retain(|(member, _)| member != "forked_at");
            if found.is_empty() {
                found.push(("".into(), json));
            }
            let found = found.into_iter();
            let found = found.map(|(member, json)| (member, canonical(json)));
            (&**name, found.collect())
        })
        .collect()
}

/// Whether every node of a snapshot is in another with the same content: a reply of which more has come. Contents
/// are compared by value: a store spells a text otherwise than an import does.
fn is_within(old: &Snapshot, new: &Snapshot) -> bool {
    fn said<'a>(node: NodeRef<'a>) -> impl Eq + std::hash::Hash + use<'a> {
        let content = node.field("content");
        let content = content.map(|content| (content.is_text(), content.plain()));
        (node.id(), node.role(), content)
    }
    let new: std::collections::HashSet<_> = new.nodes().map(said).collect();
    old.nodes().map(said).all(|node| new.contains(&node))
}

/// The sessions that get other names, from and to.
fn renames(sessions: &[(String, Session)], steps: &[LogStep<'_>]) -> Vec<(String, String)> {
    let pairs = sessions.iter().zip(steps);
    let moved = pairs.filter_map(|((name, _), step)| {
        let from = &step.candidate?.entry.name;
        (from != name).then(|| (from.clone(), name.clone()))
    });
    moved.collect()
}

/// Refuses names that other sessions have and keep.
fn check_names(
    database: &mut dyn Database,
    sessions: &[(String, Session)],
    steps: &[LogStep<'_>],
    moved: &[(String, String)],
) -> Result<(), StoreError> {
    for ((name, _), step) in sessions.iter().zip(steps) {
        let has_it = step
            .candidate
            .is_some_and(|candidate| candidate.entry.name == *name);
        let leaves = moved.iter().any(|(from, _)| from == name);
        if !has_it && !leaves && catalog::find(database, name)?.is_some() {
            return Err(StoreError::Exists(name.clone()));
        }
    }
    Ok(())
}

/// Renames sessions, of which some get names that others had.
fn rename(database: &mut dyn Database, moved: &[(String, String)]) -> Result<(), StoreError> {
    let between = |at: usize| format!("~moved/{at}");
    for (at, (from, _)) in moved.iter().enumerate() {
        whole::rename(database, from, &between(at))?;
    }
    for (at, (_, to)) in moved.iter().enumerate() {
        whole::rename(database, &between(at), to)?;
    }
    Ok(())
}

/// Writes what is new of a session.
fn write(
    database: &mut dyn Database,
    name: &str,
    session: &Session,
    source: Option<&str>,
    step: &LogStep<'_>,
) -> Result<(), StoreError> {
    if step.is_kept {
        return Ok(());
    }
    let mut rows = match step.candidate {
        None => SessionRows::create(database, name, source)?,
        Some(candidate) => {
            let entry = catalog::get(database, name)?;
            let mut rows = SessionRows::resume(database, &entry)?;
            // It has changed since it was compared. A new name is a change, through two steps.
            let renamed = if candidate.entry.name == name { 0 } else { 2 };
            let compared = (candidate.entry.session, candidate.entry.changed + renamed);
            if (entry.session, entry.changed) != compared {
                let what = format!("`{name}` has changed meanwhile; import the log again");
                return Err(StoreError::Refused(what));
            }
            if step.is_cut {
                rows.drop_newest(database)?;
            } else {
                rows.drop_working(database)?;
            }
            rows
        }
    };
    session.history().walk(step.there, |older, snapshot| {
        rows.add(database, older, snapshot)
    })?;
    Beside::default().put(database, rows.session)
}
