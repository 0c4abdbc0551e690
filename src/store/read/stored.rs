//! The snapshots of a stored session, for a history that loads them when they are asked for.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hashbrown::HashMap;

use crate::engine::Beside;
use crate::history::{Attempts, CommitCall, LoadFailure, Position, SnapshotPart, SnapshotSource};
use crate::index::{Meta, Snapshot, UnitKind};
use crate::store::database::sql::{Database, ints, one_int};
use crate::store::error::{Result, StoreError};
use crate::store::layout::encode::Hash;
use crate::store::manage::verify;
use crate::store::manage::whole::SnapshotLink;
use crate::store::read::calls;
use crate::store::read::catalog::{self, SessionEntry};
use crate::store::read::load::{self, Placement, Spaced, UnitCache};
use crate::store::write::core::Core;
use crate::store::write::{mark, records};
use crate::support::diag::Code;
use crate::support::lock;

/// A session as it was at one moment.
#[derive(Debug)]
pub(crate) struct Stored {
    core: Arc<Core>,
    entry: SessionEntry,
    cache: Arc<Mutex<UnitCache>>,
    /// Of the cache, which is locked while it reads.
    cached: Arc<AtomicUsize>,
    parts: AtomicUsize,
    /// The chain of hashes, which is compared before the first whole snapshot is read.
    chain: Mutex<Checked>,
    /// The same of its end, before a part of the newest snapshot is.
    end: Mutex<Checked>,
}

/// The hashes of the snapshots of a session as they were compared with all that they are over. A row that is looked for is
/// that of its seq if it has this hash: what leads to it may be damaged.
#[derive(Clone, Debug, Default)]
struct Checked {
    changed: Option<i64>,
    first: i64,
    hashes: Arc<[Option<Hash>]>,
}

impl Checked {
    fn new(entry: &SessionEntry, links: &[SnapshotLink]) -> Self {
        Self {
            changed: Some(entry.changed),
            first: links.first().map_or(0, |link| link.seq),
            hashes: links.iter().map(SnapshotLink::hash).collect(),
        }
    }

    fn is_of(&self, entry: &SessionEntry) -> bool {
        self.changed == Some(entry.changed)
    }

    fn hash(&self, seq: i64) -> Option<&Hash> {
        let at = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        self.hashes.get(at)?.as_ref()
    }
}

impl Stored {
    /// Units that `before`, the session at an earlier moment, has in memory are shared.
    pub(crate) fn after(core: &Arc<Core>, entry: SessionEntry, before: Option<&Arc<Self>>) -> Self {
        let before = before.filter(|before| before.entry.session == entry.session);
        let known = before.map(|before| (Arc::clone(&before.cache), Arc::clone(&before.cached)));
        let (cache, cached) = known.unwrap_or_else(|| {
            let cache = UnitCache::new();
            let cached = Arc::clone(&cache.bytes);
            (Arc::new(Mutex::new(cache)), cached)
        });
        Self {
            core: Arc::clone(core),
            entry,
            cache,
            cached,
            parts: AtomicUsize::new(0),
            chain: Mutex::default(),
            end: Mutex::default(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.cached.load(Ordering::Relaxed) + self.parts.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self, part: &Snapshot) {
        let pieces = part.pieces().iter();
        let bytes = pieces.map(|piece| size_of_val(piece) + piece.segment().bytes());
        let bytes = size_of::<Snapshot>() + bytes.sum::<usize>();
        self.parts.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn is_of(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.core, core)
    }

    pub(crate) fn entry(&self) -> &SessionEntry {
        &self.entry
    }

    /// What a writer kept beside the snapshots, without its attempts.
    pub(crate) fn beside(&self) -> Result<Beside, LoadFailure> {
        if self.entry.runtime.is_none() {
            return Ok(Beside::default());
        }
        self.read(|database, same| {
            self.check_same(same, "")?;
            Beside::read(database, &self.entry)
        })
    }

    /// The ids of the nodes whose texts were erased from it.
    pub(crate) fn erased(&self) -> Result<Vec<String>, LoadFailure> {
        self.read(|database, _| {
            let erased = mark::erased(database, self.entry.session)?;
            Ok(erased.unwrap_or_default())
        })
    }

    fn seq(&self, position: Position) -> i64 {
        let (first, last) = self.entry.seqs.unwrap_or((1, 0));
        match position {
            Position::Committed(index) => {
                first.saturating_add(i64::try_from(index).unwrap_or(i64::MAX))
            }
            Position::Working => last.saturating_add(1),
        }
    }

    fn now(&self, seq: i64) -> load::Now {
        load::Now {
            session: self.entry.session,
            seq,
            saved: self.entry.working,
        }
    }

    /// Reads in one transaction, in which the session is as it was when it was opened.
    fn read<T>(
        &self,
        work: impl FnOnce(&mut dyn Database, bool) -> Result<T>,
    ) -> Result<T, LoadFailure> {
        let done = self.core.read(|database| {
            let changed = "select changed from session where session_id = ?1";
            let changed = one_int(database, changed, &[self.entry.session.into()])?;
            let changed = changed.ok_or_else(|| StoreError::NoSession(self.entry.name.clone()))?;
            work(database, changed == self.entry.changed)
        });
        done.map_err(LoadFailure::from)
    }

    /// Refuses a session whose rows contradict their hashes. What lies in its units is compared as it is read. Linear in its
    /// placements, once.
    fn check_chain(&self, database: &mut dyn Database) -> Result<Checked> {
        // It may have grown since it was opened.
        let entry = catalog::by_id(database, self.entry.session)?.ok_or_else(|| self.gone())?;
        let mut known = lock(&self.chain);
        if !known.is_of(&entry) {
            let mut found = Vec::new();
            let links = verify::session(database, &entry, &mut found)?;
            let first = found.into_iter().next();
            self.refuse(first.map(|(_, cycle, what)| (cycle, what)))?;
            *known = Checked::new(&entry, &links);
        }
        Ok(known.clone())
    }

    /// As [`Self::check_chain`], of what the newest snapshot is read by alone.
    fn check_end(&self, database: &mut dyn Database) -> Result<Checked> {
        let mut known = lock(&self.end);
        if !known.is_of(&self.entry) {
            let (faults, links) = verify::ends(database, &self.entry)?;
            self.refuse(faults.into_iter().next())?;
            *known = Checked::new(&self.entry, &links);
        }
        Ok(known.clone())
    }

    fn refuse(&self, fault: Option<(Option<i64>, String)>) -> Result<()> {
        let Some((cycle, what)) = fault else {
            return Ok(());
        };
        let (name, at) = (&self.entry.name, cycle.map(|cycle| format!(" @c{cycle}")));
        let what = format!("`{name}`{}: {what}", at.unwrap_or_default());
        Err(StoreError::Damaged(what))
    }

    /// What is beside the trees of the snapshots at some seqs, at least one.
    fn metas(
        &self,
        database: &mut dyn Database,
        (start, end): (i64, i64),
        known: &Checked,
    ) -> Result<Vec<Meta>> {
        let found = load::metas(database, self.entry.session, (start, end))?;
        let mut metas = Vec::with_capacity(found.len());
        for (seq, (at, meta, hash)) in (start..=end).zip(found) {
            if at != seq {
                return Err(self.gone());
            }
            if hash.is_none() || hash.as_ref() != known.hash(seq) {
                let name = &self.entry.name;
                let what = format!("`{name}`: the table of snapshots is not in order");
                return Err(StoreError::Damaged(what));
            }
            metas.push(meta);
        }
        let wanted = end.saturating_sub(start).saturating_add(1);
        if usize::try_from(wanted) != Ok(metas.len()) {
            return Err(self.gone());
        }
        Ok(metas)
    }

    fn gone(&self) -> StoreError {
        let name = &self.entry.name;
        let what = format!("a snapshot of `{name}` was removed since the session was opened");
        StoreError::Coded(Code::SnapshotNotFound, what)
    }

    /// Refuses what is not that of the moment the session was opened.
    fn check_same(&self, same: bool, what: &str) -> Result<()> {
        let changed = || {
            let name = &self.entry.name;
            let what = format!("{what}`{name}` has changed since the session was opened");
            StoreError::Coded(Code::SnapshotNotFound, what)
        };
        same.then_some(()).ok_or_else(changed)
    }

    /// The preamble and the units of these ids, with the turns between; and whether no id is in the preamble.
    fn places_of(
        &self,
        database: &mut dyn Database,
        seq: i64,
        ids: &[Box<str>],
    ) -> Result<(Vec<Spaced>, bool)> {
        let now = self.now(seq);
        let mut places = Vec::new();
        for id in ids {
            places.extend(load::with_id(database, now.session, seq, id)?);
        }
        let outline = places.iter().all(|place| place.kind != UnitKind::Preamble);
        if outline {
            places.extend(load::in_force(database, now, 0)?);
        }
        let found: BTreeMap<_, _> = places
            .into_iter()
            .map(|place| (place.order.clone(), place))
            .collect();
        let mut after = 0;
        let mut places: Vec<Spaced> = Vec::with_capacity(found.len());
        for place in found.into_values().rev() {
            let mut gap = 0;
            if place.order.rank == 1 {
                let turns = load::turns_after(database, now, &place.order)?;
                let wrong = || StoreError::Damaged("turns overlap".to_owned());
                gap = turns.checked_sub(after).ok_or_else(wrong)?;
                after = turns + u32::from(place.kind == UnitKind::Turn);
            }
            places.push((place, gap));
        }
        places.reverse();
        Ok((places, outline))
    }

    /// The snapshots at some seqs, at least one: of the newest alone, what is in force is read, and of others the placements
    /// of the whole session. `same` says that the session is as it was when it was opened.
    fn snapshots(
        &self,
        database: &mut dyn Database,
        cache: &mut UnitCache,
        (start, end): (i64, i64),
        same: bool,
    ) -> Result<Vec<Arc<Snapshot>>> {
        let is_newest = self.entry.seqs.is_none_or(|(_, last)| last <= start);
        let (known, places) = if same && start == end && is_newest {
            // What is in force is found without what was.
            let known = self.check_end(database)?;
            (
                known,
                self.part_places(database, start, &SnapshotPart::whole(), true)?,
            )
        } else {
            let known = self.check_chain(database)?;
            (
                known,
                load::places(database, self.entry.session, (start, end))?,
            )
        };
        let read = cache.missing(database, places.iter())?;
        let (mut came, mut gone) = (HashMap::new(), HashMap::new());
        for place in &places {
            let began: &mut Vec<&Placement> = came.entry(place.first_seq).or_default();
            began.push(place);
            let ended: &mut Vec<&Placement> = gone.entry(place.last_seq).or_default();
            ended.push(place);
        }
        let mut snapshots: Vec<Arc<Snapshot>> = Vec::new();
        let metas = self.metas(database, (start, end), &known)?;
        for (seq, meta) in (start..=end).zip(metas) {
            let made = match snapshots.last() {
                None => {
                    let here = places.iter().filter(|place| place.first_seq <= seq);
                    cache.snapshot(&read, &here.collect::<Vec<_>>(), meta)?
                }
                Some(previous) => {
                    let gone = gone.get(&(seq - 1)).map_or(&[][..], |gone| gone);
                    let came = came.get(&seq).map_or(&[][..], |came| came);
                    cache.next(&read, previous, gone, came, meta)?
                }
            };
            snapshots.push(made);
        }
        Ok(snapshots)
    }

    fn part_places(
        &self,
        database: &mut dyn Database,
        seq: i64,
        part: &SnapshotPart,
        in_force: bool,
    ) -> Result<Vec<Placement>> {
        if !in_force {
            let mut places = load::places(database, self.entry.session, (seq, seq))?;
            Placement::only(&mut places, part);
            return Ok(places);
        }
        let now = self.now(seq);
        let mut places = load::in_force(database, now, 0)?;
        if part.turns > 0 {
            places.extend(load::newest_turns(database, now, part.turns)?);
        }
        if part.head {
            places.extend(load::in_force(database, now, 2)?);
        }
        if part.rest {
            places.extend(load::in_force(database, now, 3)?);
        }
        Ok(places)
    }
}

impl SnapshotSource for Stored {
    fn cycles(&self) -> Result<Arc<[i64]>, LoadFailure> {
        let (first, last) = self.entry.seqs.unwrap_or((1, 0));
        let cycles = self.read(|database, _| {
            let cycles = "select cycle from snapshot where session_id = ?1 and seq between ?2 and ?3 \
                 order by seq";
            let values = [self.entry.session.into(), first.into(), last.into()];
            let cycles = ints(database, cycles, &values)?;
            if cycles.len() == self.entry.snapshots() {
                Ok(cycles)
            } else {
                Err(self.gone())
            }
        })?;
        Ok(cycles.into())
    }

    fn load(&self, wanted: Range<usize>) -> Result<Vec<Arc<Snapshot>>, LoadFailure> {
        let mut cache = lock(&self.cache);
        let start = self.seq(Position::Committed(wanted.start));
        let end = self.seq(Position::Committed(wanted.end)).saturating_sub(1);
        self.read(|database, same| self.snapshots(database, &mut cache, (start, end), same))
    }

    fn load_working(&self) -> Result<Arc<Snapshot>, LoadFailure> {
        let mut cache = lock(&self.cache);
        let seq = self.seq(Position::Working);
        self.read(|database, same| {
            self.check_same(same, "the working state of ")?;
            let made = self
                .snapshots(database, &mut cache, (seq, seq), same)?
                .pop();
            made.ok_or_else(|| self.gone())
        })
    }

    fn part(
        &self,
        position: Position,
        part: &SnapshotPart,
    ) -> Result<Option<Arc<Snapshot>>, LoadFailure> {
        let seq = self.seq(position);
        self.read(|database, same| {
            if position == Position::Working {
                self.check_same(same, "the working state of ")?;
            }
            // The newest commit, or the working state after it.
            let newest = self.entry.seqs.is_none_or(|(_, last)| last <= seq);
            let checked = if same && newest {
                self.check_end(database)?
            } else {
                self.check_chain(database)?
            };
            let (places, outline) = match &part.ids {
                Some(_) if !same || !newest => return Ok(None),
                Some(ids) => self.places_of(database, seq, ids)?,
                None => {
                    let places = self.part_places(database, seq, part, same && newest)?;
                    let places = places.into_iter().map(|place| (place, 0));
                    (places.collect(), !part.sys)
                }
            };
            let known = position != Position::Working && same && newest;
            let meta = match self.entry.meta.as_deref().filter(|_| known) {
                Some(json) => load::meta_of(self.entry.cycle.unwrap_or(0), false, json),
                None => {
                    let mut metas = self.metas(database, (seq, seq), &checked)?;
                    metas.pop().ok_or_else(|| self.gone())?
                }
            };
            let made = load::part(database, &places, outline, meta)?;
            self.count(&made);
            Ok(Some(Arc::new(made)))
        })
    }

    fn calls(&self) -> Result<Option<Vec<CommitCall>>, LoadFailure> {
        let Some(seqs) = self.entry.seqs else {
            return Ok(Some(Vec::new()));
        };
        self.read(|database, _| {
            let known = self.check_chain(database)?;
            let metas = self.metas(database, seqs, &known)?;
            let places = load::places(database, self.entry.session, seqs)?;
            calls::of_commits(database, seqs.0, metas, &places).map(Some)
        })
    }

    fn attempts(&self) -> Result<Attempts, LoadFailure> {
        self.read(|database, _| records::all_attempts(database, self.entry.session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use crate::store::Store;
    use crate::store::read::open;

    #[test]
    fn counting_the_memory_of_a_session_does_not_wait_for_its_reader() {
        let name = format!("pactql-counting-{}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let store = Store::open(&path).unwrap();
        let mut context = store.write("a").unwrap();
        context.append(Message::user("Hello")).unwrap();
        context.commit().unwrap();
        let session = store.session("a").unwrap();
        let stored = open::stored(&session).unwrap();
        let reads = lock(&stored.cache);
        let (sender, counted) = std::sync::mpsc::channel();
        let other = Arc::clone(&stored);
        let counting = std::thread::spawn(move || sender.send(other.bytes()));
        assert_eq!(
            counted.recv_timeout(std::time::Duration::from_secs(30)),
            Ok(0)
        );
        drop(reads);
        counting.join().unwrap().unwrap();
        session.history().fetch_all().unwrap();
        assert!(stored.bytes() > 1_000);
        drop((context, session, stored, store));
        std::fs::remove_file(path).unwrap();
    }
}
