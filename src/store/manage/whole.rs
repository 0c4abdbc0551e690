//! Sessions as wholes: forking, renaming, deleting, pruning, and taking texts out of all history (STORE §3).
//!
//! Everything here happens inside a transaction that the caller has begun.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use sha2::{Digest, Sha256};

use crate::index::UnitRef;
use crate::json::{Appended, members, quoted, write_string};
use crate::store::database::sql::{
    Database, SqlValue, collect, digest, first, int, ints, one_int, text, texts,
};
use crate::store::error::{Result, StoreError};
use crate::store::layout::encode::{Hash, encode};
use crate::store::layout::rows::{KnownRows, put_unit};
use crate::store::layout::schema::{list, table};
use crate::store::layout::sums::{update_attempt_sums, update_session_sum};
use crate::store::manage::erased::ErasedTexts;
use crate::store::read::catalog::{self, SessionEntry, touch};
use crate::store::read::load::{Placement, places, restore_unit};
use crate::store::texts::tables;
use crate::store::write::change::{IN_FORCE, chained};
use crate::store::write::garbage;
use crate::store::write::lease::{check_free, end, is_idle};
use crate::store::write::mark;
use crate::store::write::records::{self, note_unwritten};
use crate::support::diag::Code;
use crate::tree::hash::hex;

/// The snapshots up to an index share all units: linear in placements and snapshots; copies no node.
pub(crate) fn fork(
    database: &mut dyn Database,
    from: &SessionEntry,
    index: usize,
    to: &str,
) -> Result<()> {
    let (first_seq, _) = from.seqs.unwrap_or((1, 0));
    let seq = first_seq.saturating_add(i64::try_from(index).unwrap_or(i64::MAX));
    let there = "select seq from snapshot where session_id = ?1 and seq = ?2 and not working";
    if one_int(database, there, &[from.session.into(), seq.into()])?.is_none() {
        let what = format!("the snapshot of `{}` was removed a moment ago", from.name);
        return Err(StoreError::Coded(Code::SnapshotNotFound, what));
    }
    let session = catalog::create(database, to, None, Some((from.session, seq)))?;
    let values: [SqlValue<'_>; 3] = [session.into(), from.session.into(), seq.into()];
    let end = format!("case when last_seq >= ?3 then {IN_FORCE} else last_seq end");
    for (name, rows) in [
        ("snapshot", "seq <= ?3"),
        ("placement", "first_seq <= ?3"),
        // A request is a difference to the one before, so attempts are copied from the first on.
        (
            "attempt",
            "cycle_id <= (select cycle from snapshot where session_id = ?2 and seq = ?3)",
        ),
    ] {
        let spelled = [("session_id", "cast(?1 as bigint)"), ("last_seq", &*end)];
        let columns = list(table(name).columns(), "", &spelled);
        let copy = format!(
            "insert into {name} select {columns} from {name} where session_id = ?2 and {rows}"
        );
        database.execute(&copy, &values)?;
    }
    update_attempt_sums(database, session)?;
    mark::copy_erased(database, from.session, session)?;
    touch(database, session)
}

/// Returns the number of the session.
pub(crate) fn rename(database: &mut dyn Database, from: &str, to: &str) -> Result<i64> {
    let entry = catalog::get(database, from)?;
    catalog::check_name(to)?;
    check_free(database, entry.session, from)?;
    if catalog::find(database, to)?.is_some() {
        return Err(StoreError::Exists(to.to_owned()));
    }
    let update = "update session set name = ?2, changed = changed + 1 where session_id = ?1";
    database.execute(update, &[entry.session.into(), to.into()])?;
    update_session_sum(database, entry.session)?;
    Ok(entry.session)
}

pub(crate) fn delete(database: &mut dyn Database, name: &str) -> Result<()> {
    let entry = catalog::get(database, name)?;
    check_free(database, entry.session, name)?;
    let session = [SqlValue::Int(entry.session)];
    let units = "select distinct unit_id from placement where session_id = ?1";
    let units = ints(database, units, &session)?;
    let forks = "select session_id from session where parent_id = ?1";
    let forks = ints(database, forks, &session)?;
    let orphan = "update session set parent_id = null, parent_seq = null where parent_id = ?1";
    database.execute(orphan, &session)?;
    let tables = "placement snapshot attempt pin lease retired session";
    for table in tables.split(' ') {
        let delete = format!("delete from {table} where session_id = ?1");
        database.execute(&delete, &session)?;
    }
    for fork in forks {
        update_session_sum(database, fork)?;
    }
    garbage::units(database, &units).map(|_| ())
}

/// One snapshot always stays. Linear in what goes and in the units in force at the first snapshot that stays. Returns
/// the number of snapshots, units and bodies that went.
pub(crate) fn prune(
    database: &mut dyn Database,
    entry: &SessionEntry,
    newest: Option<u64>,
    since_ns: Option<i64>,
) -> Result<(u64, u64, u64)> {
    let Some((oldest, last)) = entry.seqs else {
        return Ok((0, 0, 0));
    };
    let session = SqlValue::Int(entry.session);
    let mut kept = last;
    if let Some(count) = newest {
        let count = i64::try_from(count.max(1)).unwrap_or(i64::MAX);
        kept = kept.min(last.saturating_sub(count - 1));
    }
    if let Some(since) = since_ns {
        let young = "select min(seq) from snapshot where session_id = ?1 and not working \
             and committed_at_ns >= ?2";
        let young = one_int(database, young, &[session, since.into()])?;
        kept = kept.min(young.unwrap_or(last));
    }
    if newest.is_none() && since_ns.is_none() || kept <= oldest {
        return Ok((0, 0, 0));
    }
    if entry.runtime.is_none() {
        note_unwritten(database, entry.session)?;
    }
    let hash = "select hash from snapshot where session_id = ?1 and seq = ?2";
    let parent = first(database, hash, &[session, (kept - 1).into()], |row| {
        digest(row, 0)
    })?;
    let lacks = || StoreError::Damaged(format!("`{}` lacks a snapshot", entry.name));
    let parent = parent.ok_or_else(lacks)?;
    let ends = [session, kept.into()];
    let closed = "from placement where session_id = ?1 and last_seq < ?2";
    let units = ints(database, &format!("select unit_id {closed}"), &ends)?;
    database.execute(&format!("delete {closed}"), &ends)?;
    let cut = "update placement set first_seq = ?2 where session_id = ?1 and first_seq < ?2";
    database.execute(cut, &ends)?;
    mark::keep_erased(database, entry.session, kept)?;
    let delete = "delete from snapshot where session_id = ?1 and seq < ?2";
    let snapshots = database.execute(delete, &ends)?;
    let update = "update snapshot set parent_hash = ?3 where session_id = ?1 and seq = ?2";
    database.execute(update, &[ends[0], ends[1], (&parent).into()])?;
    put_base(database, entry.session, kept)?;
    mark::remove(database, entry.session)?;
    let (units, bodies) = garbage::units(database, &units)?;
    // What was sent in cycles that are gone goes too, unless a writer may go on after it.
    if is_idle(database, entry.session)? {
        let cycle = "select cycle from snapshot where session_id = ?1 and seq = ?2";
        if let Some(cycle) = one_int(database, cycle, &ends)? {
            records::prune_attempts(database, entry.session, cycle)?;
        }
    }
    touch(database, entry.session)?;
    Ok((snapshots, units, bodies))
}

/// What the first snapshot after a prune is verified by: a hash over all that its own hash is over, as far
/// as that is there, over its own hash, and over the units in force. `None` if there is no such snapshot.
pub(crate) fn base_hash(
    database: &mut dyn Database,
    session: i64,
    seq: i64,
) -> Result<Option<Hash>> {
    let values = [session.into(), seq.into()];
    let begun = "select parent_hash, cycle, meta, note, hash from snapshot where session_id = ?1 and seq = ?2";
    let begun = first(database, begun, &values, |row| {
        let parent = match row.bytes(0)? {
            Some(_) => Some(digest(row, 0)?),
            None => None,
        };
        let mut hash = chained(parent, row.int(1)?, text(row, 2)?, row.text(3)?);
        hash.update(digest(row, 4)?);
        Ok(hash)
    })?;
    let Some(mut hash) = begun else {
        return Ok(None);
    };
    // In document order.
    let units = "select u.hash from placement p join unit u on u.unit_id = p.unit_id \
         where p.session_id = ?1 and p.first_seq <= ?2 and p.last_seq >= ?2 \
         order by p.rank, p.sibling_offset, p.created_at_ns, p.creation_index, p.id";
    database.query(units, &values, &mut |row| {
        hash.update(digest(row, 0)?);
        Ok(())
    })?;
    Ok(Some(hash.finalize().into()))
}

pub(crate) fn put_base(database: &mut dyn Database, session: i64, seq: i64) -> Result<()> {
    if let Some(base) = base_hash(database, session, seq)? {
        let update = "update snapshot set base = ?3 where session_id = ?1 and seq = ?2";
        database.execute(update, &[session.into(), seq.into(), (&base).into()])?;
    }
    Ok(())
}

/// The hashes of the units that went and of those that came with each snapshot, in document order.
pub(crate) type ChangesBySeq = HashMap<i64, [Vec<Hash>; 2]>;

pub(crate) fn unit_changes(places: &[Placement]) -> ChangesBySeq {
    let mut changes = ChangesBySeq::new();
    for place in places {
        // One of another length is of no unit, so the snapshots of that unit are not what they say.
        let hash = place.hash.unwrap_or_default();
        changes.entry(place.first_seq).or_default()[1].push(hash);
        if place.last_seq != IN_FORCE {
            changes.entry(place.last_seq + 1).or_default()[0].push(hash);
        }
    }
    changes
}

pub(crate) fn add_units(hash: &mut Sha256, changes: Option<&[Vec<Hash>; 2]>) {
    for (sign, units) in [b"-", b"+"].into_iter().zip(changes.into_iter().flatten()) {
        for unit in units {
            hash.update(sign);
            hash.update(unit);
        }
    }
}

/// The chain of hashes is computed again from the first snapshot that changes; the first with one of the nodes gets a note. Returns the names of other
/// sessions that have the same units, sorted. Linear in the units concerned and in the later snapshots.
pub(crate) fn erase(database: &mut dyn Database, name: &str, ids: &[&str]) -> Result<Vec<String>> {
    let entry = catalog::get(database, name)?;
    check_free(database, entry.session, name)?;
    // A writer whose lease has run out could go on with what it has in memory.
    end(database, entry.session)?;
    let now = database.now_ns()?;
    let all = places(database, entry.session, (0, IN_FORCE))?;
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut units: Vec<&Placement> = Vec::new();
    let here = "select 1 from node where unit_id = ?1 and id = ?2";
    for place in &all {
        for id in ids {
            if one_int(database, here, &[place.unit.into(), (*id).into()])?.is_some() {
                known.insert(id);
                if units.last().is_none_or(|last| last.unit != place.unit) {
                    units.push(place);
                }
            }
        }
    }
    if let Some(unknown) = ids.iter().find(|id| !known.contains(**id)) {
        let what = format!("no snapshot of `{name}` has a node `{unknown}`");
        return Err(StoreError::Coded(Code::Placement, what));
    }
    let Some(changed) = units.iter().map(|place| place.first_seq).min() else {
        return Ok(Vec::new());
    };
    let mut said = ErasedTexts::default();
    let mut others: BTreeSet<String> = BTreeSet::new();
    let mut old = Vec::new();
    for place in &units {
        let before = restore_unit(database, place.unit, place.kind, &[])?;
        let nodes = UnitRef::containing(before.root()).live_rows();
        let nodes = nodes.filter_map(|(_, node)| node);
        let erased = nodes.filter(|node| ids.contains(&node.id()));
        erased.for_each(|node| said.add(node));
        let made = restore_unit(database, place.unit, place.kind, ids)?;
        let unit = put_unit(
            database,
            &encode(UnitRef::containing(made.root())),
            &mut KnownRows::default(),
        )?;
        if unit == place.unit {
            continue;
        }
        let update = "update placement set unit_id = ?3 where session_id = ?1 and unit_id = ?2";
        let values = [entry.session.into(), place.unit.into(), unit.into()];
        database.execute(update, &values)?;
        old.push(place.unit);
        let names = "select distinct s.name from placement p join session s \
             on s.session_id = p.session_id where p.unit_id = ?1";
        others.extend(texts(database, names, &[place.unit.into()])?);
    }
    garbage::units(database, &old)?;
    tables::scrub(database)?;
    let repeated = erase_members(database, entry.session, &mut said)?;
    let from = repeated.map_or(changed, |repeated| repeated.min(changed));
    // What was sent has the texts, too.
    let delete = "delete from attempt where session_id = ?1";
    database.execute(delete, &[entry.session.into()])?;
    rehash(
        database,
        entry.session,
        from,
        Some((changed, &note(ids, now))),
    )?;
    // A hash of the log would help to guess the texts.
    mark::remove(database, entry.session)?;
    if let Some(source) = &entry.source {
        mark::remove_of(database, source)?;
    }
    touch(database, entry.session)?;
    Ok(others.into_iter().collect())
}

/// Takes the titles out of all snapshots of a session, as they repeat or sum up its texts, and the strings of the other
/// members of its documents that repeat an erased one. Returns the first snapshot that changed.
fn erase_members(
    database: &mut dyn Database,
    session: i64,
    said: &mut ErasedTexts,
) -> Result<Option<i64>> {
    const TITLES: [&[&str]; 2] = [
        &["members", "meta", "title"],
        &["members", "meta", "session", "title"],
    ];
    let mut changed = None;
    for link in links(database, session, 0)? {
        // Of a damaged snapshot nothing is known.
        let Ok((text, _)) = link.texts else { continue };
        let untitled = TITLES.iter().fold(None, |done: Option<String>, path| {
            without(done.as_deref().unwrap_or(&text), path).or(done)
        });
        let erased = said.without(untitled.as_deref().unwrap_or(&text), "members");
        if let Some(erased) = erased.or(untitled) {
            let update = "update snapshot set meta = ?3 where session_id = ?1 and seq = ?2";
            let values = [session.into(), link.seq.into(), erased.as_str().into()];
            database.execute(update, &values)?;
            changed.get_or_insert(link.seq);
        }
    }
    Ok(changed)
}

/// An object without the member at a path of names; `None` if there is none.
fn without(json: &str, path: &[&str]) -> Option<String> {
    let (name, below) = path.split_first()?;
    let mut changed = false;
    let mut kept = Vec::new();
    for (known, value) in members(json) {
        let is_it = known == *name;
        let changed_value = if is_it { without(value, below) } else { None };
        changed |= is_it && (below.is_empty() || changed_value.is_some());
        if !(is_it && below.is_empty()) {
            let value = changed_value.as_deref().unwrap_or(value);
            kept.push(format!("{}:{value}", quoted(&known)));
        }
    }
    changed.then(|| format!("{{{}}}", kept.join(",")))
}

/// Takes the titles, and what repeats an erased text, out of a session of which a text was erased before, and that its log
/// has brought up to date.
pub(crate) fn erase_new_members(
    database: &mut dyn Database,
    session: i64,
    said: &mut ErasedTexts,
) -> Result<()> {
    if let Some(from) = erase_members(database, session, said)? {
        rehash(database, session, from, None)?;
        touch(database, session)?;
    }
    Ok(())
}

/// What the chain says of an erasure.
fn note(ids: &[&str], now: i64) -> impl Fn(Option<&str>, Hash) -> String {
    let mut list = String::new();
    for id in ids {
        list.push(if list.is_empty() { '[' } else { ',' });
        // Appending to a string does not fail.
        let _ = write_string(&mut Appended(&mut list), id);
    }
    let ids = list + "]";
    move |before, hash| {
        let before = before.and_then(|note| note.strip_suffix(']'));
        let before = before.map_or("[".to_owned(), |notes| format!("{notes},"));
        let hash = hex(&hash);
        format!("{before}{{\"erased\":{ids},\"at_ns\":{now},\"hash_before\":\"{hash}\"}}]")
    }
}

/// A row of `snapshot`, however damaged.
pub(crate) struct SnapshotLink {
    pub(crate) seq: i64,
    pub(crate) cycle: Option<i64>,
    pub(crate) working: bool,
    /// With the note.
    pub(crate) texts: Result<(String, Option<String>)>,
    pub(crate) hash: Option<Vec<u8>>,
    pub(crate) base: Option<Vec<u8>>,
}

impl SnapshotLink {
    pub(crate) fn hash(&self) -> Option<Hash> {
        self.hash.as_deref()?.try_into().ok()
    }
}

pub(crate) fn links(
    database: &mut dyn Database,
    session: i64,
    from: i64,
) -> Result<Vec<SnapshotLink>> {
    let links = "select seq, cycle, working, meta, note, hash, base from snapshot \
         where session_id = ?1 and seq >= ?2 order by seq";
    collect(database, links, &[session.into(), from.into()], |row| {
        let texts = || {
            let note = row.text(4)?.map(ToOwned::to_owned);
            Ok((text(row, 3)?.to_owned(), note))
        };
        Ok(SnapshotLink {
            seq: int(row, 0)?,
            cycle: row.int(1)?,
            working: row.bool(2)?.unwrap_or(false),
            texts: texts(),
            hash: row.bytes(5)?.map(<[u8]>::to_vec),
            base: row.bytes(6)?.map(<[u8]>::to_vec),
        })
    })
}

/// The note of a snapshot, from the one that it has and its hash.
type SnapshotNote<'a> = dyn Fn(Option<&str>, Hash) -> String + 'a;

/// Computes the chain of hashes again from a snapshot on; one of them may get a note.
fn rehash(
    database: &mut dyn Database,
    session: i64,
    from: i64,
    note: Option<(i64, &SnapshotNote<'_>)>,
) -> Result<()> {
    let places = places(database, session, (0, IN_FORCE))?;
    let changes = unit_changes(&places);
    let mut parent: Option<Hash> = None;
    for link in links(database, session, from - 1)? {
        let lacks = || StoreError::Damaged("a snapshot has no hash".to_owned());
        let (seq, old) = (link.seq, link.hash().ok_or_else(lacks)?);
        if seq < from {
            parent = Some(old);
            continue;
        }
        let (meta, mut said) = link.texts?;
        if let Some((_, note)) = note.filter(|(at, _)| *at == seq) {
            said = Some(note(said.as_deref(), old));
        }
        let mut hash = chained(parent, link.cycle, &meta, said.as_deref());
        add_units(&mut hash, changes.get(&seq));
        let hash: Hash = hash.finalize().into();
        let update = "update snapshot set hash = ?3, note = ?4 where session_id = ?1 and seq = ?2";
        let said = said.as_deref();
        let values = [session.into(), seq.into(), (&hash).into(), said.into()];
        database.execute(update, &values)?;
        if link.base.is_some() {
            put_base(database, session, seq)?;
        }
        parent = Some(hash);
    }
    Ok(())
}
