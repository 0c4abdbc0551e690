//! Sessions of a log that may be in the store already, from when the log was shorter.

use crate::engine::Beside;
use crate::store::Store;
use crate::store::database::sql::{Database, collect, digest, first};
use crate::store::error::StoreError;
use crate::store::layout::encode::Hash;
use crate::store::manage::erased::{ErasedTexts, is_equal_but_erased};
use crate::store::manage::whole;
use crate::store::read::catalog::{self, SessionEntry};
use crate::store::read::open;
use crate::store::read::source::KnownSource;
use crate::store::write::change::{SessionRows, SnapshotChange};
use crate::store::write::core::Core;
use crate::store::write::mark;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::history::{History, Position, Session};
use crate::index::{Meta, NodeRef, Snapshot};
use crate::json::{canonical, get, members};
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
    /// Sessions that were given another name in the store, and keep it: the log's name and theirs, in the order of
    /// the log.
    pub kept_names: Vec<(String, String)>,
}

struct LogCandidate {
    entry: SessionEntry,
    /// Whether it came from the log that is imported.
    is_of_log: bool,
    /// Whether a person chose its name.
    is_named: bool,
    /// The nodes whose texts were taken out of it, and its titles with them. `None` if no text was.
    erased: Option<Vec<String>>,
    session: Arc<Session>,
}

#[derive(Clone, Copy, Default)]
struct LogStep<'a> {
    /// The session of the store that it is; a new one is made if there is none.
    candidate: Option<&'a LogCandidate>,
    /// How many snapshots of the log are there.
    there: usize,
    /// How many of them stay as they are. The log says something else of the later ones now: they are written again.
    kept: usize,
    /// How many of the newest snapshots of the store are taken back for that.
    taken_back: usize,
    /// Nothing is written: the log is shorter, or there is nothing new.
    is_kept: bool,
    /// Whether the session gets snapshots, or another working state.
    adds: bool,
}

/// How a log is to a session that came from it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LogFit {
    Longer,
    Shorter,
    /// Something in it was deleted, or is another now.
    Rewritten,
}

/// How often a log is compared with the store if another writer changes one of its sessions meanwhile.
const TRIES: usize = 8;

impl Store {
    /// Brings the sessions of one log into the store, each with its name. A session that is there from
    /// when the log was shorter gets what is new; its ids stay, and so do its snapshots, unless the log says
    /// something else of them now. If the log names its sessions otherwise than then, as it does when another
    /// branch has become the newest, they are renamed; one that was renamed in the store keeps its name. `source`
    /// says which log it is. One transaction; linear in the log, in the newest commits of what is there, and in the
    /// sessions of the store if a name is not there.
    ///
    /// # Errors
    /// `E_SESSION_EXISTS`: a name belongs to a session that is not the beginning of the one in the log, or the log would
    /// bring back what was erased from one. `E_SESSION_BUSY`; those of the database. The store is as it was then.
    pub fn import_log(
        &self,
        sessions: &[(String, Session)],
        source: Option<&str>,
    ) -> Result<LogImport, Error> {
        let sessions = sessions
            .iter()
            .map(|(name, session)| (name.clone(), session));
        self.import_marked_log(&sessions.collect::<Vec<_>>(), source, &[], false)
    }

    /// As [`Store::import_log`], of a log of one session, with a name that a person chose: later imports of the log leave
    /// it as it is. Errors as [`Store::import_log`].
    pub fn import_log_as(
        &self,
        name: &str,
        session: &Session,
        source: Option<&str>,
    ) -> Result<LogImport, Error> {
        let sessions = [(name.to_owned(), session)];
        let done = self.import_marked_log(&sessions, source, &[], true)?;
        self.keep_name(name)?;
        Ok(done)
    }

    /// As [`Store::import_log`], with the marks of the log, one for each session, or none; `chosen` says that a person
    /// chose the names. If another writer makes or changes one of the sessions meanwhile, the log is compared again, a few
    /// times.
    pub(crate) fn import_marked_log(
        &self,
        sessions: &[(String, &Session)],
        source: Option<&str>,
        marks: &[String],
        chosen: bool,
    ) -> Result<LogImport, Error> {
        let mut tries = 1;
        loop {
            match self.try_import_log(sessions, source, marks, chosen)? {
                Ok(done) => return Ok(done),
                Err(_) if tries < TRIES => tries += 1,
                Err(meanwhile) => return Err(meanwhile.into()),
            }
        }
    }

    /// The error inside is that a session is not what it was when it was compared.
    fn try_import_log(
        &self,
        sessions: &[(String, &Session)],
        source: Option<&str>,
        marks: &[String],
        chosen: bool,
    ) -> Result<Result<LogImport, StoreError>, Error> {
        let candidates = self.candidates_of(sessions, source)?;
        let steps = self.steps(sessions, &candidates)?;
        check_erased(sessions, &candidates, &steps)?;
        let erased = erased_of_log(&candidates);
        let said = texts_of_log(sessions, &candidates)?;
        let mut done = LogImport::default();
        let mut sessions = sessions.to_vec();
        for ((name, _), step) in sessions.iter_mut().zip(&steps) {
            let there = step.candidate.filter(|there| there.is_named && !chosen);
            if let Some(there) = there.filter(|there| there.entry.name != *name) {
                let kept = there.entry.name.clone();
                done.kept_names
                    .push((std::mem::replace(name, kept.clone()), kept));
            }
        }
        let sessions = &sessions[..];
        let changes = steps.iter().any(|step| !step.is_kept);
        let moved = renames(sessions, &steps);
        if changes || !moved.is_empty() {
            // What is taken back may leave units that another session is about to place.
            let written = self.core.remove(|database| {
                check_compared(database, &candidates)?;
                check_names(database, sessions, &candidates, &steps, &moved)?;
                rename(database, &moved)?;
                let mut said = said.clone();
                for ((name, session), step) in sessions.iter().zip(&steps) {
                    let written = write(database, name, session, source, step, &mut said);
                    written.map_err(|error| match error {
                        // It was not there a moment ago.
                        StoreError::Exists(name) => StoreError::Meanwhile(name),
                        error => error,
                    })?;
                    if step.candidate.is_none() {
                        untitle(database, name, &erased, &mut said)?;
                    }
                }
                put_marks(database, sessions, &steps, marks)
            });
            match written {
                Err(meanwhile @ StoreError::Meanwhile(_)) => return Ok(Err(meanwhile)),
                written => written?,
            }
        } else if !marks.is_empty() {
            // The log is as it was, and only the next import would miss the marks.
            let _ = self
                .core
                .write(|database| put_marks(database, sessions, &steps, marks));
        }
        for ((_, session), step) in sessions.iter().zip(&steps) {
            let count = match (step.candidate, step.adds) {
                (None, _) => &mut done.new,
                (Some(_), true) => &mut done.grown,
                (Some(_), false) => &mut done.same,
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
        Ok(Ok(done))
    }

    /// Refuses sessions of a log that are all new to the store if they have what was erased from another of the same log.
    /// Linear in the sessions of the store, and in the snapshots of these if a text was erased.
    pub(crate) fn check_new_of_log(
        &self,
        sessions: &[(String, &Session)],
        source: Option<&str>,
    ) -> Result<(), Error> {
        let candidates = self.candidates_of(sessions, source)?;
        let steps: Vec<LogStep<'_>> = sessions.iter().map(|_| LogStep::default()).collect();
        Ok(check_erased(sessions, &candidates, &steps)?)
    }

    /// The sessions of the store that have one of the names, or come from the same log.
    fn candidates_of(
        &self,
        sessions: &[(String, &Session)],
        source: Option<&str>,
    ) -> Result<Vec<LogCandidate>, Error> {
        let known = source.map(KnownSource::new);
        let is_of_log = |entry: &SessionEntry| {
            let pair = known.as_ref().zip(entry.source.as_deref());
            pair.is_some_and(|(known, source)| known.is(source))
        };
        let entries = self.core.read(|database| {
            let mut entries: Vec<SessionEntry> = Vec::new();
            for (name, _) in sessions {
                entries.extend(catalog::find(database, name)?);
            }
            // A session of the log may have another name there.
            let known = entries.iter().filter(|entry| is_of_log(entry)).count();
            if let Some(source) = source.filter(|_| known < sessions.len()) {
                let others = catalog::of_log(database, source)?.into_iter();
                let is_other =
                    |entry: &SessionEntry| sessions.iter().all(|(name, _)| *name != entry.name);
                entries.extend(others.filter(is_other));
            }
            let known = entries.into_iter().map(|entry| {
                let is_named = mark::has_chosen_name(database, entry.session)?;
                let erased = mark::erased(database, entry.session)?;
                Ok((entry, is_named, erased))
            });
            known.collect::<Result<Vec<_>, StoreError>>()
        })?;
        let mut candidates = Vec::new();
        for (entry, is_named, erased) in entries {
            candidates.push(LogCandidate {
                session: self.session(&entry.name)?,
                is_of_log: is_of_log(&entry),
                entry,
                is_named,
                erased,
            });
        }
        Ok(candidates)
    }

    /// What is done with each session of the log.
    ///
    /// A session of the store may be the beginning of several sessions of the log. The longest session of the store chooses
    /// first: each session of the log that fits it fits a shorter one with the same beginning, too.
    fn steps<'a>(
        &self,
        sessions: &[(String, &Session)],
        candidates: &'a [LogCandidate],
    ) -> Result<Vec<LogStep<'a>>, Error> {
        let mut steps: Vec<Option<LogStep<'a>>> = sessions.iter().map(|_| None).collect();
        let mut order: Vec<&LogCandidate> = candidates.iter().collect();
        order.sort_by_key(|candidate| Reverse(candidate.entry.snapshots()));
        for fit in [LogFit::Longer, LogFit::Shorter, LogFit::Rewritten] {
            order = order
                .into_iter()
                .filter_map(|candidate| {
                    self.claim(candidate, sessions, fit, &mut steps)
                        .map(|claimed| (!claimed).then_some(candidate))
                        .transpose()
                })
                .collect::<Result<_, Error>>()?;
        }
        Ok(steps.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Finds the session of the log that a session of the store has become; that of its name, if it fits. Returns whether
    /// one was found.
    fn claim<'a>(
        &self,
        candidate: &'a LogCandidate,
        sessions: &[(String, &Session)],
        fit: LogFit,
        steps: &mut [Option<LogStep<'a>>],
    ) -> Result<bool, Error> {
        for same_name in [true, false] {
            for ((name, session), claimed) in sessions.iter().zip(&mut *steps) {
                if claimed.is_some() || (candidate.entry.name == *name) != same_name {
                    continue;
                }
                let step = match fit {
                    LogFit::Rewritten if !same_name => None,
                    LogFit::Rewritten => candidate.rewritten(&self.core, session)?,
                    _ => candidate.step(&self.core, session)?,
                };
                let Some(mut step) = step else {
                    continue;
                };
                let is_shorter = fit == LogFit::Shorter;
                let is_begun = same_name || step.there > 0 || candidate.entry.seqs.is_none();
                if step.is_kept != is_shorter || !is_begun {
                    continue;
                }
                let length = session.history().committed().len();
                step.adds =
                    !is_shorter && (step.there < length || !candidate.is_working_same(session)?);
                step.is_kept |= !step.adds && step.taken_back == 0;
                *claimed = Some(step);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The id that a log gives its session, as JSON.
fn id_in_log(history: &History) -> Result<Option<String>, Error> {
    let newest = at(history, history.committed().len().checked_sub(1))?;
    let meta = newest.and_then(|newest| {
        let mut extra = newest.meta().extra.iter();
        extra.find_map(|(name, json)| (&**name == "meta").then_some(json))
    });
    Ok(meta.and_then(|meta| {
        let meta = members(meta);
        let session = members(get(&meta, "session")?);
        get(&session, "id").map(canonical)
    }))
}

fn at(history: &History, index: Option<usize>) -> Result<Option<&Arc<Snapshot>>, Error> {
    match index {
        Some(index) => Ok(history.load(Position::Committed(index))?),
        None => Ok(None),
    }
}

impl LogCandidate {
    /// Whether a session is as it was when it was compared. A new name is a change, through two steps.
    fn is_compared(&self, entry: &SessionEntry) -> bool {
        let renamed = if self.entry.name == entry.name { 0 } else { 2 };
        let compared = (self.entry.session, self.entry.changed + renamed);
        (entry.session, entry.changed) == compared
    }

    /// `None` if the two are of different logs, or of different branches.
    fn step(&self, core: &Core, session: &Session) -> Result<Option<LogStep<'_>>, Error> {
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
            return Ok(self.is_of_log.then_some(step));
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
            let is_kept = before.is_some_and(|before| self.is_same(before, end, false));
            return Ok(is_kept.then_some(LogStep { is_kept, ..step }));
        };
        let Some(now) = at(&new, Some(index))? else {
            return Ok(None);
        };
        if self.is_same(newest, now, true) {
            let there = index + 1;
            return Ok(Some(LogStep {
                there,
                kept: there,
                ..step
            }));
        }
        if !is_within(newest, now) {
            return Ok(None);
        }
        let is_there = self.is_same(newest, now, false);
        let there = index + usize::from(is_there);
        let before = at(&old, last.checked_sub(1))?.zip(at(&new, index.checked_sub(1))?);
        let (kept, taken_back) = match before {
            Some((old, new)) if self.is_same(old, new, true) && !self.is_newest_erased(core)? => {
                (index, 1)
            }
            _ => match self.hashes(core)? {
                Some(hashes) => {
                    let kept = SessionRows::shared(&new, &hashes)?;
                    let taken_back = hashes.len() - kept;
                    // Another log may end as this one does. More than the newest snapshot is only taken back for
                    // the log that the session came from.
                    if taken_back > 1 && !self.is_of_log {
                        return Ok(None);
                    }
                    (kept, taken_back)
                }
                // It stays as it is, and goes on.
                None if is_there => (there, 0),
                None => return Ok(None),
            },
        };
        Ok(Some(LogStep {
            there,
            kept,
            taken_back,
            ..step
        }))
    }

    /// As [`Self::step`], of a log that says by its id that it is this session, and in which something was deleted: what
    /// both begin with stays.
    fn rewritten(&self, core: &Core, session: &Session) -> Result<Option<LogStep<'_>>, Error> {
        let (old, new) = (self.session.history(), session.history());
        let own = id_in_log(&old)?;
        if self.entry.runtime.is_some()
            || !self.is_of_log
            || own.is_none()
            || own != id_in_log(&new)?
        {
            return Ok(None);
        }
        let Some(hashes) = self.hashes(core)? else {
            return Ok(None);
        };
        let kept = SessionRows::shared(&new, &hashes)?;
        Ok(Some(LogStep {
            candidate: Some(self),
            there: kept,
            kept,
            taken_back: hashes.len() - kept,
            ..LogStep::default()
        }))
    }

    /// Whether the working state is as the log has it.
    fn is_working_same(&self, new: &Session) -> Result<bool, Error> {
        let (old, new) = (self.session.history(), new.history());
        let (old, new) = (old.load(Position::Working)?, new.load(Position::Working)?);
        Ok(match (old, new) {
            (None, None) => true,
            (Some(old), Some(new)) => self.is_same(old, new, true),
            _ => false,
        })
    }

    /// Whether a snapshot and one of the log have equal units and members. Unless `exact`, the place where a branch left
    /// another one makes no difference; the titles and the strings that an erasure took make none.
    fn is_same(&self, own: &Snapshot, new: &Snapshot, exact: bool) -> bool {
        let untitled = self.erased.is_some();
        let members = |snapshot| document_members(Snapshot::meta(snapshot), exact, untitled);
        let (before, now) = (members(own), members(new));
        let is_said = if untitled {
            is_said_but_erased(&before, &now)
        } else {
            before == now
        };
        is_said
            && SnapshotChange::between(None, own).came()
                == SnapshotChange::between(None, new).came()
    }

    /// Whether a text was taken out of its newest commit.
    fn is_newest_erased(&self, core: &Core) -> Result<bool, StoreError> {
        let note = "select note is not null from snapshot where session_id = ?1 and not working order by seq desc limit 1";
        core.read_once(|database| {
            let erased = first(database, note, &[self.entry.session.into()], |row| {
                row.bool(0)
            })?;
            Ok(erased.flatten().unwrap_or(false))
        })
    }

    /// The hashes of its commits; `None` if it was pruned or a text was taken out of it: what went does not come back.
    fn hashes(&self, core: &Core) -> Result<Option<Vec<Hash>>, StoreError> {
        if self.entry.seqs.is_none_or(|(first, _)| first != 1) {
            return Ok(None);
        }
        let hashes = "select hash, note is null from snapshot where session_id = ?1 and not working order by seq";
        core.read_once(|database| {
            collect(database, hashes, &[self.entry.session.into()], |row| {
                Ok(row.bool(1)?.unwrap_or(false).then_some(digest(row, 0)?))
            })
        })
        .map(|hashes| hashes.into_iter().collect())
    }
}

type DocumentMembers<'a> = Vec<(&'a str, Vec<(Cow<'a, str>, String)>)>;

/// What a snapshot says besides its tree, by value. Which branch is the newest, and so whether a session is a
/// fork, changes as a log grows.
fn document_members(meta: &Meta, exact: bool, untitled: bool) -> DocumentMembers<'_> {
    let extra = meta.extra.iter();
    extra
        .map(|(name, json)| {
            let mut found = members(json);
            found.retain(|(member, _)| match &**member {
                "forked_at" => exact,
                "title" | "session" => !untitled,
                _ => true,
            });
            if !json.starts_with('{') {
                found.push(("".into(), json));
            }
            let found = found.into_iter();
            let found = found.map(|(member, json)| (member, canonical(json)));
            (&**name, found.collect())
        })
        .collect()
}

/// Whether two documents say the same, except for strings that were erased in the first.
fn is_said_but_erased(own: &DocumentMembers<'_>, new: &DocumentMembers<'_>) -> bool {
    own.len() == new.len()
        && own.iter().zip(new).all(|((own, inside), (new, there))| {
            own == new
                && inside.len() == there.len()
                && inside
                    .iter()
                    .zip(there)
                    .all(|((own, value), (new, now))| own == new && is_equal_but_erased(value, now))
        })
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

fn renames(sessions: &[(String, &Session)], steps: &[LogStep<'_>]) -> Vec<(String, String)> {
    let pairs = sessions.iter().zip(steps);
    let moved = pairs.filter_map(|((name, _), step)| {
        let from = &step.candidate?.entry.name;
        (from != name).then(|| (from.clone(), name.clone()))
    });
    moved.collect()
}

/// Refuses to write a node that was erased: in the session that goes on, and in a new one, which may begin as one does from
/// which it was erased. Linear in the snapshots that would be written; nothing where no text was erased.
fn check_erased(
    sessions: &[(String, &Session)],
    candidates: &[LogCandidate],
    steps: &[LogStep<'_>],
) -> Result<(), StoreError> {
    for ((_, session), step) in sessions.iter().zip(steps) {
        let from: Vec<&LogCandidate> = match step.candidate {
            _ if step.is_kept => continue,
            Some(own) => vec![own],
            None => candidates.iter().filter(|one| one.is_of_log).collect(),
        };
        for from in from {
            let erased = from.erased.as_deref().unwrap_or_default();
            if erased.is_empty() {
                continue;
            }
            session.history().walk(step.kept, |_, snapshot| {
                if erased.iter().any(|id| snapshot.find(id).is_some()) {
                    return Err(StoreError::Erased(from.entry.name.clone()));
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// The nodes whose texts were taken out of sessions of the log.
fn erased_of_log(candidates: &[LogCandidate]) -> BTreeSet<String> {
    let of_log = candidates.iter().filter(|one| one.is_of_log);
    let erased = of_log.filter_map(|one| one.erased.as_ref());
    erased.flatten().cloned().collect()
}

/// The texts that were taken out of sessions, as far as the log still has them. Linear in its snapshots; nothing where no
/// text was erased.
fn texts_of_log(
    sessions: &[(String, &Session)],
    candidates: &[LogCandidate],
) -> Result<ErasedTexts, StoreError> {
    let erased = candidates.iter().filter_map(|one| one.erased.as_ref());
    let ids: BTreeSet<&String> = erased.flatten().collect();
    let mut said = ErasedTexts::default();
    for (_, session) in sessions.iter().filter(|_| !ids.is_empty()) {
        session.history().walk(0, |_, snapshot| {
            let nodes = ids.iter().filter_map(|id| snapshot.find(id));
            nodes.for_each(|node| said.add(node));
            Ok::<(), StoreError>(())
        })?;
    }
    Ok(said)
}

/// Takes the titles, and what repeats an erased text, out of a new session of a log from which texts were erased: a title
/// may quote one. What was erased is noted with it, so that no later state of the log brings it back.
fn untitle(
    database: &mut dyn Database,
    name: &str,
    erased: &BTreeSet<String>,
    said: &mut ErasedTexts,
) -> Result<(), StoreError> {
    if erased.is_empty() {
        return Ok(());
    }
    let session = catalog::get(database, name)?.session;
    mark::set_erased(database, session, erased)?;
    whole::erase_new_members(database, session, said)
}

/// Refuses to write by what was compared if one of the sessions has changed since.
fn check_compared(
    database: &mut dyn Database,
    candidates: &[LogCandidate],
) -> Result<(), StoreError> {
    for LogCandidate { entry, .. } in candidates {
        let now = catalog::by_id(database, entry.session)?;
        if now.is_none_or(|now| (&now.name, now.changed) != (&entry.name, entry.changed)) {
            return Err(StoreError::Meanwhile(entry.name.clone()));
        }
    }
    Ok(())
}

/// Refuses names of sessions that the log does not go on with.
fn check_names(
    database: &mut dyn Database,
    sessions: &[(String, &Session)],
    candidates: &[LogCandidate],
    steps: &[LogStep<'_>],
    moved: &[(String, String)],
) -> Result<(), StoreError> {
    for ((name, _), step) in sessions.iter().zip(steps) {
        let has_it = step
            .candidate
            .is_some_and(|candidate| candidate.entry.name == *name);
        let leaves = moved.iter().any(|(from, _)| from == name);
        if !has_it && !leaves && catalog::find(database, name)?.is_some() {
            let is_compared = candidates.iter().any(|there| there.entry.name == *name);
            let refused = if is_compared {
                StoreError::Exists
            } else {
                StoreError::Meanwhile
            };
            return Err(refused(name.clone()));
        }
    }
    Ok(())
}

/// Renames sessions; a new name may be the old one of another.
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

/// Keeps the marks of the log, unless a session that stays as it was has changed since it was compared.
fn put_marks(
    database: &mut dyn Database,
    sessions: &[(String, &Session)],
    steps: &[LogStep<'_>],
    marks: &[String],
) -> Result<(), StoreError> {
    let mut marked = Vec::new();
    for (((name, _), step), mark) in sessions.iter().zip(steps).zip(marks) {
        let Some(entry) = catalog::find(database, name)? else {
            return Ok(());
        };
        let candidate = step.candidate.filter(|_| step.is_kept);
        if candidate.is_some_and(|candidate| !candidate.is_compared(&entry)) {
            return Ok(());
        }
        marked.push((entry.session, &**mark));
    }
    mark::put_all(database, &marked)
}

fn write(
    database: &mut dyn Database,
    name: &str,
    session: &Session,
    source: Option<&str>,
    step: &LogStep<'_>,
    said: &mut ErasedTexts,
) -> Result<(), StoreError> {
    if step.is_kept {
        return Ok(());
    }
    let mut rows = match step.candidate {
        None => SessionRows::create(database, name, source)?,
        Some(_) => {
            let entry = catalog::get(database, name)?;
            let mut rows = SessionRows::resume(database, &entry)?;
            rows.take_back(database, step.taken_back)?;
            rows
        }
    };
    rows.add_all(database, &session.history(), step.kept)?;
    Beside::default().put(database, rows.session)?;
    if step.candidate.is_some_and(|there| there.erased.is_some()) {
        whole::erase_new_members(database, rows.session, said)?;
    }
    Ok(())
}
