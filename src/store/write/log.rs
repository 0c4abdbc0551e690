//! Sessions of a log that may be in the store already, from when the log was shorter.

use crate::store::Store;
use crate::store::database::sql::Database;
use crate::store::error::StoreError;
use crate::store::manage::whole::{self, Import};
use crate::store::read::catalog::{self, Entry};
use crate::store::read::open;
use crate::store::write::change::Change;
use std::borrow::Cow;
use std::sync::Arc;

use crate::history::{History, Session};
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

/// How a session of the store relates to one of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogRelation {
    /// They are of different logs, or of different branches.
    Different,
    /// The log goes on after its newest commit: this many snapshots of the log are there.
    Prefix(usize),
    /// As `Prefix`, but the newest of them was not whole.
    CutPrefix(usize),
    /// The log is shorter.
    Longer,
}

/// A session of the store that may be of the log.
struct LogCandidate {
    entry: Entry,
    session: Arc<Session>,
}

/// What is done with a session of the log.
enum LogStep<'a> {
    New,
    Keep(&'a LogCandidate),
    Grow(&'a LogCandidate, LogRelation),
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
        let changes = steps.iter().any(|step| !matches!(step, LogStep::Keep(_)));
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
            let there = session.history().committed().len();
            match step {
                LogStep::New => {
                    done.new += 1;
                    done.snapshots += there;
                }
                LogStep::Keep(_) => done.same += 1,
                LogStep::Grow(_, relation) => {
                    done.grown += 1;
                    done.snapshots += there - relation.there().min(there);
                }
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

/// What is done with each session of the log.
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
            let mut best: Option<(usize, usize, LogRelation)> = None;
            for (at, candidate) in candidates.iter().enumerate() {
                if claimed[at] || (candidate.entry.name == *name) != same_name {
                    continue;
                }
                let relation = candidate.relation(session, source)?;
                let there = relation.there();
                let counts = match relation {
                    LogRelation::Different => false,
                    LogRelation::Longer => longer,
                    _ => same_name || there > 0,
                };
                if counts && best.is_none_or(|(best, ..)| best < there) {
                    best = Some((there, at, relation));
                }
            }
            if let Some((_, at, relation)) = best {
                claimed[at] = true;
                *step = Some(candidates[at].step(session, relation)?);
            }
        }
    }
    Ok(steps
        .into_iter()
        .map(|step| step.unwrap_or(LogStep::New))
        .collect())
}

impl LogRelation {
    /// How many snapshots of the log are there.
    fn there(self) -> usize {
        match self {
            Self::Prefix(there) | Self::CutPrefix(there) => there,
            Self::Different | Self::Longer => 0,
        }
    }
}

/// The snapshot at an index, loaded.
fn at(history: &History, index: usize) -> Result<Option<&Arc<Snapshot>>, Error> {
    let found = history.committed().get(index);
    match (found, history.failure()) {
        (None, Some(failure)) => Err(failure.clone().into()),
        (found, _) => Ok(found),
    }
}

impl LogCandidate {
    fn relation(&self, session: &Session, source: Option<&str>) -> Result<LogRelation, Error> {
        // A context has gone on with it.
        if self.entry.runtime.is_some() {
            return Ok(LogRelation::Different);
        }
        let (old, new) = (self.session.history(), session.history());
        let (there, length) = (old.committed().len(), new.committed().len());
        if there == 0 {
            let same = source.is_some() && self.entry.source.as_deref() == source;
            return Ok(if same {
                LogRelation::Prefix(0)
            } else {
                LogRelation::Different
            });
        }
        let Some(newest) = at(&old, there - 1)? else {
            return Ok(LogRelation::Different);
        };
        let Some(index) = new.committed().index_of(newest.cycle()) else {
            let last = length.checked_sub(1).map(|last| at(&new, last));
            let Some(last) = last.transpose()?.flatten() else {
                return Ok(LogRelation::Different);
            };
            let index = old.committed().index_of(last.cycle());
            let before = index.map(|index| at(&old, index)).transpose()?.flatten();
            let is_longer = before.is_some_and(|before| is_same(before, last));
            return Ok(if is_longer {
                LogRelation::Longer
            } else {
                LogRelation::Different
            });
        };
        let Some(now) = at(&new, index)? else {
            return Ok(LogRelation::Different);
        };
        if is_same(newest, now) {
            return Ok(LogRelation::Prefix(index + 1));
        }
        // Only what was last may have been torn, and nothing that a prune has left alone.
        let first = self.entry.seqs.is_some_and(|(first, _)| first == 1);
        let is_torn = match there.checked_sub(2) {
            Some(before) => match (at(&old, before)?, index.checked_sub(1)) {
                (Some(before), Some(index)) => {
                    at(&new, index)?.is_some_and(|now| is_same(before, now))
                }
                _ => false,
            },
            None => first,
        };
        Ok(if is_torn && is_within(newest, now) {
            LogRelation::CutPrefix(index)
        } else {
            LogRelation::Different
        })
    }

    /// What is done with the session of the log that goes on after it.
    fn step(&self, session: &Session, relation: LogRelation) -> Result<LogStep<'_>, Error> {
        let (old, new) = (self.session.history(), session.history());
        if let LogRelation::Prefix(there) = relation
            && there == new.committed().len()
        {
            let working = old.working();
            if let Some(failure) = old.failure() {
                return Err(failure.clone().into());
            }
            let is_same = match (working, new.working()) {
                (None, None) => true,
                (Some(old), Some(new)) => is_same(old, new),
                _ => false,
            };
            if is_same {
                return Ok(LogStep::Keep(self));
            }
        }
        Ok(match relation {
            LogRelation::Longer => LogStep::Keep(self),
            relation => LogStep::Grow(self, relation),
        })
    }
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
    let moved = pairs.filter_map(|((name, _), step)| match step {
        LogStep::Keep(candidate) | LogStep::Grow(candidate, _) => {
            let from = &candidate.entry.name;
            (from != name).then(|| (from.clone(), name.clone()))
        }
        LogStep::New => None,
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
        let has_it = match step {
            LogStep::New => false,
            LogStep::Keep(candidate) | LogStep::Grow(candidate, _) => candidate.entry.name == *name,
        };
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
    let history = session.history();
    let (mut import, there) = match step {
        LogStep::Keep(_) => return Ok(()),
        LogStep::New => (Import::begin(database, name, source)?, 0),
        LogStep::Grow(candidate, relation) => {
            let entry = catalog::get(database, name)?;
            let mut import = Import::resume(database, &entry)?;
            // It has changed since it was compared.
            if (entry.session, entry.changed) != (candidate.entry.session, candidate.changed(name))
            {
                let what = format!("`{name}` has changed meanwhile; import the log again");
                return Err(StoreError::Refused(what));
            }
            match relation {
                LogRelation::CutPrefix(_) => import.undo_newest(database)?,
                _ => import.undo_working(database)?,
            }
            (import, relation.there())
        }
    };
    history.walk(there, |older, snapshot| {
        import.add(database, older, snapshot)
    })?;
    import.finish(database, &whole::Beside::default())
}

impl LogCandidate {
    /// What the row counts of changes if no other process has written it: a new name is one, through two steps.
    fn changed(&self, name: &str) -> i64 {
        if self.entry.name == name {
            self.entry.changed
        } else {
            self.entry.changed + 2
        }
    }
}
