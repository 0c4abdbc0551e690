//! Commits and working states as rows: what they touched is inserted, what they closed gets its last seq.
//!
//! Everything here happens inside a transaction that the caller has begun. This file does not know who may
//! write; [`super::lease`] does.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;
use std::thread;

use hashbrown::HashMap;
use sha2::{Digest, Sha256};

use crate::history::History;
use crate::index::{Meta, Snapshot};
use crate::json::{Appended, write_string, write_value};
use crate::store::database::sql::{Backend, Database, SqlValue, digest, first, int, ints};
use crate::store::error::{Result, StoreError};
use crate::store::layout::encode::{EncodedUnit, Hash, Order, encode};
use crate::store::layout::rows::{KnownRows, put_in_order, put_unit};
use crate::store::layout::schema::insert;
use crate::store::read::catalog::{self, SessionEntry};
use crate::store::write::garbage;
use crate::store::write::lease::check_free;
use crate::support::cancel::here;

/// The `last_seq` of a placement in force.
pub(crate) const IN_FORCE: i64 = i64::MAX;

/// From this many snapshots on, one thread encodes them while another one writes.
const SHARED_WORK: usize = 32;

/// How many encoded snapshots wait to be written.
const WAITING: usize = 16;

/// What a commit or a working state changes, to be written. Made without a database.
#[derive(Debug)]
pub(crate) struct SnapshotChange {
    came: Vec<EncodedUnit>,
    /// Ids of the top nodes of the units that went, in document order.
    gone: Vec<String>,
    /// `None` of a working state.
    cycle: Option<i64>,
    meta: String,
    /// The document's member `usage`.
    usage: Option<String>,
}

/// The first moment that can be one of a log: times before are made from positions.
const FIRST_NS: i64 = 31_536_000_000_000_000;

impl SnapshotChange {
    /// The time of a snapshot that is imported: that of its newest node, if its log has times.
    fn logged_ns(&self) -> Option<i64> {
        let nodes = self.came.iter().flat_map(|unit| &unit.nodes);
        let newest = nodes.map(|node| node.created_at_ns).max();
        newest.filter(|newest| *newest >= FIRST_NS)
    }

    pub(crate) fn is_working(&self) -> bool {
        self.cycle.is_none()
    }

    /// The units that came: the id of the top node, the hash, the spelling.
    pub(crate) fn came(self) -> BTreeSet<(String, Hash, i64)> {
        let units = self.came.into_iter();
        units
            .map(|unit| (unit.order.id, unit.hash, unit.spelling))
            .collect()
    }

    /// The difference between two snapshots, or a whole one. Linear in the units that differ.
    pub(crate) fn between(older: Option<&Snapshot>, newer: &Snapshot) -> Self {
        let (mut came, mut gone) = (Vec::new(), Vec::new());
        match older {
            None => came.extend(newer.units().map(encode)),
            Some(older) => {
                let changes = newer.unit_changes(older);
                came.extend(changes.came.into_iter().map(encode));
                gone.extend(changes.gone.iter().map(|unit| unit.top().id().to_owned()));
            }
        }
        let meta = newer.meta();
        Self {
            came,
            gone,
            cycle: (!meta.working).then_some(meta.cycle),
            meta: meta_text(meta),
            usage: meta.value("usage").map(str::to_owned),
        }
    }
}

/// The members of a document besides its tree, as in `snapshot.meta`.
pub(crate) fn meta_text(meta: &Meta) -> String {
    let mut text = format!("{{\"cycle_given\":{}", meta.cycle_given);
    // Appending to a string does not fail.
    if !meta.extra.is_empty() {
        let mut before = ",\"members\":{";
        for (name, json) in &meta.extra {
            text.push_str(before);
            before = ",";
            let _ = write_string(&mut Appended(&mut text), name);
            text.push(':');
            text.push_str(json);
        }
        text.push('}');
    }
    if let Some(version) = &meta.spec_version {
        text.push_str(",\"spec_version\":");
        let _ = write_value(&mut Appended(&mut text), version);
    }
    text + "}"
}

#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) unit: i64,
    pub(crate) hash: Hash,
    pub(crate) spelling: i64,
    pub(crate) order: Order,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SessionRows {
    pub(crate) session: i64,
    /// The newest commit: its seq and its hash.
    pub(crate) newest: Option<(i64, Hash)>,
    /// The units of the newest commit, by the id of the top node.
    pub(crate) placed: HashMap<String, Placed>,
}

impl Placed {
    fn new(unit: i64, rows: &EncodedUnit) -> Self {
        Self {
            unit,
            hash: rows.hash,
            spelling: rows.spelling,
            order: rows.order.clone(),
        }
    }
}

/// What a commit does to the units in force, to be noted once its transaction is committed.
#[derive(Debug)]
pub(crate) struct Written {
    newest: (i64, Hash),
    gone: Vec<Placed>,
    came: Vec<Placed>,
}

impl SessionRows {
    /// Reads what is in force. Linear in the units of the newest commit.
    pub(crate) fn read(database: &mut dyn Database, session: i64) -> Result<Self> {
        let newest = "select seq, hash from snapshot where session_id = ?1 and not working \
             order by seq desc limit 1";
        let newest = first(database, newest, &[session.into()], |row| {
            Ok((int(row, 0)?, digest(row, 1)?))
        })?;
        let mut placed = HashMap::new();
        if let Some((seq, _)) = newest {
            let all = "select p.unit_id, u.hash, u.spelling, p.rank, p.sibling_offset, p.created_at_ns, \
                 p.creation_index, p.id from placement p join unit u on u.unit_id = p.unit_id \
                 where p.session_id = ?1 and p.first_seq <= ?2 and p.last_seq >= ?2";
            database.query(all, &[session.into(), seq.into()], &mut |row| {
                let unit = Placed {
                    unit: int(row, 0)?,
                    hash: digest(row, 1)?,
                    spelling: int(row, 2)?,
                    order: Order::read(row, 3)?,
                };
                placed.insert(unit.order.id.clone(), unit);
                Ok(())
            })?;
        }
        Ok(Self {
            session,
            newest,
            placed,
        })
    }

    pub(crate) fn create(
        database: &mut dyn Database,
        name: &str,
        source: Option<&str>,
    ) -> Result<Self> {
        let session = catalog::create(database, name, source, None)?;
        Self::read(database, session)
    }

    /// Goes on with a session after its newest commit. One that someone writes is refused.
    pub(crate) fn resume(database: &mut dyn Database, entry: &SessionEntry) -> Result<Self> {
        check_free(database, entry.session, &entry.name)?;
        Self::read(database, entry.session)
    }

    /// Adds a snapshot after the one before, or the working state as the last of all.
    pub(crate) fn add(
        &mut self,
        database: &mut dyn Database,
        older: Option<&Snapshot>,
        newer: &Snapshot,
    ) -> Result<()> {
        let now = database.now_ns()?;
        let change = SnapshotChange::between(older, newer);
        let at = change.logged_ns().unwrap_or(now);
        let written = self.write(database, &change, at)?;
        if let Some(written) = written {
            self.note(written);
        }
        Ok(())
    }

    /// Adds the snapshots of a history from an index on, then its working state. Linear in what changes from one to the
    /// next.
    pub(crate) fn add_all(
        &mut self,
        database: &mut dyn Database,
        history: &History,
        from: usize,
    ) -> Result<()> {
        let loose = self.undo_working(database)?;
        let now = database.now_ns()?;
        let mut known = KnownRows::default();
        let mut put = |change: SnapshotChange| -> Result<()> {
            let at = change.logged_ns().unwrap_or(now);
            if let Some(written) = self.put(database, &change, at, &mut known)? {
                self.note(written);
            }
            Ok(())
        };
        if history.committed().len() < from + SHARED_WORK {
            history.walk(from, |older, newer| {
                put(SnapshotChange::between(older, newer))
            })?;
        } else {
            let (sender, changes) = sync_channel(WAITING);
            let tokens = here();
            let encode = move || {
                history.walk(from, |older, newer| {
                    let sent = sender.send(SnapshotChange::between(older, newer));
                    // Nothing is received after an error of the other thread, which is the one that counts.
                    sent.map_err(|_| StoreError::Refused("nothing more is written".to_owned()))
                })
            };
            thread::scope(|scope| {
                let encoding = scope.spawn(move || tokens.within(encode));
                let written: Result<()> = changes.into_iter().try_for_each(put);
                match encoding.join() {
                    Ok(encoded) => written.and(encoded),
                    Err(panic) => resume_unwind(panic),
                }
            })?;
        }
        garbage::units(database, &loose)?;
        Ok(())
    }

    /// A working state that was saved goes; one that is written is in force for no later commit, so there is nothing to
    /// note. Linear in the change and in that working state.
    pub(crate) fn write(
        &self,
        database: &mut dyn Database,
        change: &SnapshotChange,
        now: i64,
    ) -> Result<Option<Written>> {
        let loose = self.undo_working(database)?;
        let written = self.put(database, change, now, &mut KnownRows::default())?;
        garbage::units(database, &loose)?;
        Ok(written)
    }

    /// As [`Self::write`], where no working state is saved.
    fn put(
        &self,
        database: &mut dyn Database,
        change: &SnapshotChange,
        now: i64,
        known: &mut KnownRows,
    ) -> Result<Option<Written>> {
        Ok(Self::put_all(database, &[(self, change, now)], known)?
            .pop()
            .flatten())
    }

    /// Adds a snapshot to each of some sessions, of which no working state is saved. A server gets a few messages, however
    /// many they are.
    pub(crate) fn put_all(
        database: &mut dyn Database,
        changes: &[(&Self, &SnapshotChange, i64)],
        known: &mut KnownRows,
    ) -> Result<Vec<Option<Written>>> {
        let planned = changes.iter().map(|(rows, change, _)| rows.plan(change));
        let planned: Vec<(Written, Vec<&EncodedUnit>)> = planned.collect::<Result<_>>()?;
        let sessions = changes.iter().map(|(rows, ..)| rows.session);
        close_all(
            database,
            sessions.zip(planned.iter().map(|(written, _)| written)),
        )?;
        if database.dialect() == Backend::Postgres {
            let units = planned.iter().flat_map(|(_, new)| new.iter().copied());
            put_in_order(database, &units.collect::<Vec<_>>(), known)?;
        }
        let mut all = Vec::with_capacity(changes.len());
        for ((rows, change, now), (mut written, new)) in changes.iter().zip(planned) {
            let (seq, hash) = written.newest;
            for unit in new {
                written.came.push(rows.place(database, unit, seq, known)?);
            }
            let row: [SqlValue<'_>; 11] = [
                rows.session.into(),
                seq.into(),
                change.cycle.into(),
                change.is_working().into(),
                (*now).into(),
                change.meta.as_str().into(),
                (&hash).into(),
                change.usage.as_deref().into(),
                SqlValue::Null,
                SqlValue::Null,
                SqlValue::Null,
            ];
            insert(database, "snapshot", &row)?;
            all.push((!change.is_working()).then_some(written));
        }
        Ok(all)
    }

    /// What a change does, and the units that come, which are not placed yet.
    fn plan<'c>(&self, change: &'c SnapshotChange) -> Result<(Written, Vec<&'c EncodedUnit>)> {
        // A unit that was indexed twice came and went, and is the same.
        let is_same = |unit: &EncodedUnit| {
            let placed = self.placed.get(&unit.order.id);
            placed
                .is_some_and(|placed| (placed.hash, placed.spelling) == (unit.hash, unit.spelling))
                && change.gone.contains(&unit.order.id)
        };
        let (same, new): (Vec<&EncodedUnit>, Vec<&EncodedUnit>) =
            change.came.iter().partition(|u| is_same(u));
        let mut gone: Vec<Placed> = Vec::new();
        for id in &change.gone {
            if same.iter().all(|unit| unit.order.id != *id) {
                let missing = || StoreError::Damaged(format!("no unit of {id:?} is in force"));
                gone.push(self.placed.get(id).ok_or_else(missing)?.clone());
            }
        }
        gone.sort_unstable_by(|a, b| a.order.cmp(&b.order));
        let parent = self.newest.map(|(_, hash)| hash);
        let mut hash = chained(parent, change.cycle, &change.meta, None);
        for placed in &gone {
            hash.update(b"-");
            hash.update(placed.hash);
        }
        for unit in &new {
            hash.update(b"+");
            hash.update(unit.hash);
        }
        let seq = self.newest.map_or(1, |(seq, _)| seq + 1);
        let written = Written {
            newest: (seq, hash.finalize().into()),
            gone,
            came: Vec::new(),
        };
        Ok((written, new))
    }

    fn place(
        &self,
        database: &mut dyn Database,
        unit: &EncodedUnit,
        seq: i64,
        known: &mut KnownRows,
    ) -> Result<Placed> {
        let unit_id = put_unit(database, unit, known)?;
        let order = &unit.order;
        let row: [SqlValue<'_>; 10] = [
            self.session.into(),
            unit_id.into(),
            seq.into(),
            IN_FORCE.into(),
            order.offset.into(),
            order.created_at_ns.into(),
            order.creation_index.into(),
            order.id.as_str().into(),
            order.rank.into(),
            (unit.kind == "turn").into(),
        ];
        insert(database, "placement", &row)?;
        Ok(Placed::new(unit_id, unit))
    }

    /// Takes a saved working state back. Returns the units that it placed.
    pub(crate) fn undo_working(&self, database: &mut dyn Database) -> Result<Vec<i64>> {
        let newest = self.newest.map_or(0, |(seq, _)| seq);
        let values = [self.session.into(), newest.into(), IN_FORCE.into()];
        let delete = "delete from snapshot where session_id = ?1 and seq > ?2 and working";
        if database.execute(delete, &values[..2])? == 0 {
            return Ok(Vec::new());
        }
        let placed = "from placement where session_id = ?1 and first_seq > ?2 and last_seq = ?3";
        let units = ints(database, &format!("select unit_id {placed}"), &values)?;
        database.execute(&format!("delete {placed}"), &values)?;
        let update = "update placement set last_seq = ?3 where session_id = ?1 and last_seq = ?2";
        database.execute(update, &values)?;
        Ok(units)
    }

    fn drop_working(&self, database: &mut dyn Database) -> Result<()> {
        let loose = self.undo_working(database)?;
        garbage::units(database, &loose).map(|_| ())
    }

    /// Takes the newest commits back, this many, and a working state after them. There must be a commit before them, or
    /// they are all that the session ever had. Linear in them and in the units of the newest commit that stays.
    pub(crate) fn take_back(&mut self, database: &mut dyn Database, commits: usize) -> Result<()> {
        self.drop_working(database)?;
        let Some((newest, _)) = self.newest.filter(|_| commits > 0) else {
            return Ok(());
        };
        let kept = newest.saturating_sub(i64::try_from(commits).unwrap_or(i64::MAX));
        let values = [self.session.into(), kept.into()];
        let placed = "from placement where session_id = ?1 and first_seq > ?2";
        let loose = ints(database, &format!("select unit_id {placed}"), &values)?;
        database.execute(&format!("delete {placed}"), &values)?;
        let update = "update placement set last_seq = ?3 where session_id = ?1 and last_seq >= ?2";
        database.execute(update, &[values[0], values[1], IN_FORCE.into()])?;
        let delete = "delete from snapshot where session_id = ?1 and seq > ?2";
        database.execute(delete, &values)?;
        garbage::units(database, &loose)?;
        *self = Self::read(database, self.session)?;
        Ok(())
    }

    /// How many of the first snapshots of a history have these hashes when they are the commits of a session. Linear in
    /// the changes from one to the next.
    pub(crate) fn shared(history: &History, hashes: &[Hash]) -> Result<usize> {
        let (mut rows, mut shared, mut differs) = (Self::default(), 0, false);
        history.walk(0, |older, snapshot| {
            differs |= snapshot.is_working();
            if differs {
                return Ok(());
            }
            let change = SnapshotChange::between(older, snapshot);
            let (mut written, new) = rows.plan(&change)?;
            differs = hashes.get(shared) != Some(&written.newest.1);
            shared += usize::from(!differs);
            written.came = new.iter().map(|unit| Placed::new(0, unit)).collect();
            rows.note(written);
            Ok::<_, StoreError>(())
        })?;
        Ok(shared)
    }

    pub(crate) fn note(&mut self, written: Written) {
        self.newest = Some(written.newest);
        for placed in &written.gone {
            self.placed.remove(&placed.order.id);
        }
        let came = written.came.into_iter();
        self.placed
            .extend(came.map(|placed| (placed.order.id.clone(), placed)));
    }
}

/// Ends the placements that commits of some sessions take away.
fn close_all<'w>(
    database: &mut dyn Database,
    all: impl Iterator<Item = (i64, &'w Written)>,
) -> Result<()> {
    let update = "update placement set last_seq = ?3 where session_id = ?1 and unit_id = ?2 \
         and last_seq = ?4 returning unit_id";
    let (mut values, mut ids): (Vec<Vec<SqlValue<'_>>>, Vec<&str>) = (Vec::new(), Vec::new());
    for (session, written) in all {
        let last = written.newest.0 - 1;
        for placed in &written.gone {
            values.push(vec![
                session.into(),
                placed.unit.into(),
                last.into(),
                IN_FORCE.into(),
            ]);
            ids.push(&placed.order.id);
        }
    }
    let mut closed = vec![0; ids.len()];
    database.query_all(update, &values, &mut |at, _| {
        closed[at] += 1;
        Ok(())
    })?;
    match ids.iter().zip(closed).find(|(_, closed)| *closed != 1) {
        None => Ok(()),
        Some((id, _)) => {
            let what = format!("the placement of {id:?} is not in force");
            Err(StoreError::Damaged(what))
        }
    }
}

/// The beginning of the text that a snapshot's hash is over: all but the units.
pub(crate) fn chained(
    parent: Option<Hash>,
    cycle: Option<i64>,
    meta: &str,
    note: Option<&str>,
) -> Sha256 {
    let mut hash = Sha256::new();
    if let Some(parent) = parent {
        hash.update(parent);
    }
    let cycle = cycle.map(|cycle| cycle.to_string()).unwrap_or_default();
    for line in [&cycle, meta, note.unwrap_or("")] {
        hash.update(line.as_bytes());
        hash.update(b"\n");
    }
    hash
}
