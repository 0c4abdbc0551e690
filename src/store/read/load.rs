//! Builds snapshots from rows: the placements at a seq, and their units.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::{HashMap, HashSet};

use crate::history::SnapshotPart;
use crate::index::{Layout, Meta, Segment, Snapshot, UnitKind, UnitPart, UnitRef, Writer};
use crate::json::{get, members};
use crate::store::database::sql::{
    Database, ResultRow, SqlValue, collect, int, ints, one_int, text,
};
use crate::store::error::{Result, StoreError};
use crate::store::layout::decode::Units;
use crate::store::layout::encode::{Hash, Order, hashes, rank};
use crate::store::layout::schema::{equals, is_short};
use crate::store::write::change::IN_FORCE;
use crate::tree::{NodeClass, header};

#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub(crate) unit: i64,
    pub(crate) kind: UnitKind,
    pub(crate) hash: Option<Hash>,
    pub(crate) order: Order,
    pub(crate) first_seq: i64,
    pub(crate) last_seq: i64,
}

/// A unit that cannot be found is an error, and not a placement less.
const PLACE: &str = "p.unit_id, u.kind, p.rank, p.sibling_offset, p.created_at_ns, p.creation_index, \
     p.id, p.first_seq, p.last_seq, u.hash from placement p left join unit u on u.unit_id = p.unit_id";

impl Placement {
    /// What a part of a tree has of its placements, which are in document order.
    pub(crate) fn only(places: &mut Vec<Self>, part: &SnapshotPart) {
        let turns = places.iter().filter(|place| place.kind == UnitKind::Turn);
        let mut older = (turns.count() as u64).saturating_sub(part.turns);
        places.retain(|place| match place.kind {
            UnitKind::Preamble => true,
            UnitKind::Turn if older > 0 => {
                older -= 1;
                false
            }
            UnitKind::Turn => true,
            UnitKind::Loose => older == 0 && part.turns > 0,
            UnitKind::Head => part.head,
            UnitKind::Rest => part.rest,
        });
    }

    /// Refuses a unit that was read and is not what its hash says.
    fn check_unit(&self, unit: UnitRef<'_>) -> Result<()> {
        let id = &self.order.id;
        let wrong = || StoreError::Damaged(format!("unit {id:?} is not what its hash says"));
        let is_sound = self.hash == Some(hashes(unit).0);
        is_sound.then_some(()).ok_or_else(wrong)
    }

    fn check_id(&self, top: &str) -> Result<()> {
        let id = &self.order.id;
        let wrong = || StoreError::Damaged(format!("unit {id:?} begins with node {top:?}"));
        (id == top).then_some(()).ok_or_else(wrong)
    }
}

fn place(row: &dyn ResultRow) -> Result<Placement> {
    let name = text(row, 1)?;
    let unknown = || StoreError::Damaged(format!("a unit of the unknown kind {name:?}"));
    let kind = UnitKind::parse(name).ok_or_else(unknown)?;
    let order = Order::read(row, 2)?;
    if order.rank != rank(kind) {
        let what = format!("a unit of kind {name:?} has the rank of another kind");
        return Err(StoreError::Damaged(what));
    }
    Ok(Placement {
        unit: int(row, 0)?,
        kind,
        hash: row.bytes(9)?.and_then(|hash| hash.try_into().ok()),
        order,
        first_seq: int(row, 7)?,
        last_seq: int(row, 8)?,
    })
}

/// Checks what the index relies on: one preamble, which is first, and no unit twice.
fn check_order<'p>(mut places: impl Iterator<Item = &'p Placement>) -> Result<()> {
    let wrong = |what: &str| Err(StoreError::Damaged(format!("a snapshot has {what}")));
    let Some(mut last) = places
        .next()
        .filter(|place| place.kind == UnitKind::Preamble)
    else {
        return wrong("no preamble");
    };
    for place in places {
        if place.kind == UnitKind::Preamble {
            return wrong("two preambles");
        }
        if place.order <= last.order {
            return wrong("a unit twice, or units out of order");
        }
        last = place;
    }
    Ok(())
}

/// In document order. Linear in all placements that end at or after the first seq.
pub(crate) fn places(
    database: &mut dyn Database,
    session: i64,
    seqs: (i64, i64),
) -> Result<Vec<Placement>> {
    sorted_places(
        database,
        "and p.last_seq >= ?2 and p.first_seq <= ?3",
        &[session.into(), seqs.0.into(), seqs.1.into()],
    )
}

/// Those that begin at a seq or later, or that end at the one before it or later. Linear in them, and for the first seq in
/// all.
pub(crate) fn changed_places(
    database: &mut dyn Database,
    session: i64,
    from: i64,
) -> Result<Vec<Placement>> {
    let here = format!(
        "and (p.last_seq = {IN_FORCE} and p.first_seq >= ?2 \
         or p.last_seq >= ?3 and p.last_seq < {IN_FORCE})"
    );
    let values = [session.into(), from.into(), from.saturating_sub(1).into()];
    sorted_places(database, &here, &values)
}

fn sorted_places(
    database: &mut dyn Database,
    here: &str,
    values: &[SqlValue<'_>],
) -> Result<Vec<Placement>> {
    let sql = format!("select {PLACE} where p.session_id = ?1 {here}");
    let mut places = collect(database, &sql, values, place)?;
    places.sort_unstable_by(|a, b| a.order.cmp(&b.order));
    Ok(places)
}

/// The newest commit of a session, or the working state after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) session: i64,
    pub(crate) seq: i64,
    /// Whether a working state was saved, which may have closed units of the newest commit.
    pub(crate) saved: bool,
}

/// The units of a rank, in document order. Linear in them.
pub(crate) fn in_force(database: &mut dyn Database, now: Now, rank: i64) -> Result<Vec<Placement>> {
    let mut places = closed(database, now, rank)?;
    places.extend(from_end(database, now, rank, i64::MAX)?);
    places.retain(|place| place.first_seq <= now.seq);
    places.sort_unstable_by(|a, b| a.order.cmp(&b.order));
    Ok(places)
}

/// The last units of a rank that are not closed, newest first: `placement_in_force` is read from its end.
fn from_end(
    database: &mut dyn Database,
    now: Now,
    rank: i64,
    limit: i64,
) -> Result<Vec<Placement>> {
    let sql = format!(
        "select {PLACE} where p.session_id = ?1 and p.rank = ?2 and p.last_seq = {IN_FORCE} \
         order by p.sibling_offset desc, p.created_at_ns desc, p.creation_index desc, p.id desc limit ?3"
    );
    let values = [now.session.into(), rank.into(), limit.into()];
    collect(database, &sql, &values, place)
}

/// The units of a rank that end with the newest commit: those that the working state has closed.
fn closed(database: &mut dyn Database, now: Now, rank: i64) -> Result<Vec<Placement>> {
    if !now.saved {
        return Ok(Vec::new());
    }
    // `first_seq <= ?2` always holds; with it SQLite uses the index `placement_by_end`.
    let sql = format!(
        "select {PLACE} where p.session_id = ?1 and p.last_seq = ?2 and p.first_seq <= ?2 \
         and +p.rank = ?3"
    );
    let values = [now.session.into(), now.seq.into(), rank.into()];
    collect(database, &sql, &values, place)
}

/// This many turns with the loose nodes among them, in document order. Linear in them.
pub(crate) fn newest_turns(
    database: &mut dyn Database,
    now: Now,
    turns: u64,
) -> Result<Vec<Placement>> {
    let closed = closed(database, now, 1)?;
    let is_turn = |place: &Placement| place.kind == UnitKind::Turn;
    let mut limit = i64::try_from(turns).unwrap_or(i64::MAX);
    loop {
        let read = from_end(database, now, 1, limit)?;
        let all = (read.len() as i64) < limit;
        // Nothing older than what was read is known to be complete.
        let complete_to = read.last().map(|place| place.order.clone());
        let complete = |place: &&Placement| all || complete_to.as_ref() <= Some(&place.order);
        let mut newest: Vec<Placement> = closed.iter().filter(complete).cloned().collect();
        newest.extend(read.into_iter().filter(|place| place.first_seq <= now.seq));
        newest.sort_unstable_by(|a, b| b.order.cmp(&a.order));
        let found = newest.iter().filter(|place| is_turn(place)).count() as u64;
        if found < turns && !all {
            limit = limit.saturating_mul(2);
            continue;
        }
        if found >= turns {
            let mut left = turns;
            let end = newest.iter().position(|place| {
                left -= u64::from(is_turn(place) && left > 0);
                left == 0
            });
            newest.truncate(end.map_or(0, |end| end + usize::from(turns > 0)));
        }
        newest.reverse();
        return Ok(newest);
    }
}

/// If an id is in more units than this, its lookup starts from the session and not from the id.
const STRANGERS: i64 = 64;

/// The units of a session at a seq that have a node of this id; at most one.
pub(crate) fn with_id(
    database: &mut dyn Database,
    session: i64,
    seq: i64,
    id: &str,
) -> Result<Vec<Placement>> {
    let here = "p.session_id = ?1 and p.first_seq <= ?2 and p.last_seq >= ?2";
    let mut units = Vec::new();
    if is_short(id) {
        let sql = format!(
            "select unit_id from node where {} limit ?2",
            equals("id", id)
        );
        units = ints(database, &sql, &[id.into(), (STRANGERS + 1).into()])?;
    }
    if units.len() as i64 > STRANGERS || !is_short(id) {
        // An id made from a position is in every session, and a long one may be in no index: search the
        // units of this session.
        let sql = format!(
            "select {PLACE} cross join node n where {here} and n.unit_id = p.unit_id and n.id = ?3"
        );
        let values = [session.into(), seq.into(), id.into()];
        return collect(database, &sql, &values, place);
    }
    let sql = format!("select {PLACE} where {here} and p.unit_id = ?3");
    let mut found = Vec::new();
    for unit in units {
        let values = [session.into(), seq.into(), unit.into()];
        found.extend(collect(database, &sql, &values, place)?);
    }
    Ok(found)
}

// The `+` before `first_seq` keeps SQLite from using the index by ends, which has every unit in force.

/// How many turns come after a unit. Linear in them, in an index.
pub(crate) fn turns_after(database: &mut dyn Database, now: Now, order: &Order) -> Result<u32> {
    let Now { session, seq, .. } = now;
    let sql = format!(
        "select count(*) from placement where session_id = ?1 and rank = 1 and turn \
         and last_seq = {IN_FORCE} and +first_seq <= ?2 \
         and (sibling_offset, created_at_ns, creation_index, id) > (?3, ?4, ?5, ?6)"
    );
    let values: [SqlValue<'_>; 6] = [
        session.into(),
        seq.into(),
        order.offset.into(),
        order.created_at_ns.into(),
        order.creation_index.into(),
        order.id.as_str().into(),
    ];
    let count = one_int(database, &sql, &values)?;
    let closed = closed(database, now, 1)?;
    let closed = closed
        .iter()
        .filter(|place| place.kind == UnitKind::Turn && place.order > *order);
    Ok(u32::try_from(count.unwrap_or(0)).unwrap_or(0) + closed.count() as u32)
}

/// What is beside the trees of the snapshots at some seqs, oldest first, each with its seq and hash.
pub(crate) fn metas(
    database: &mut dyn Database,
    session: i64,
    (start, end): (i64, i64),
) -> Result<Vec<(i64, Meta, Option<Hash>)>> {
    let sql = "select seq, cycle, working, meta, hash from snapshot where session_id = ?1 \
         and seq between ?2 and ?3 order by seq";
    let before = start.saturating_sub(1);
    let (mut found, mut newest) = (Vec::new(), None);
    database.query(
        sql,
        &[session.into(), before.into(), end.into()],
        &mut |row| {
            let seq = int(row, 0)?;
            let working = row.bool(2)?.unwrap_or(false);
            // A working state reads its ttls as the newest snapshot does.
            let cycle = if working { newest } else { row.int(1)? };
            newest = cycle;
            if seq >= start {
                let hash = row.bytes(4)?.and_then(|hash| hash.try_into().ok());
                found.push((
                    seq,
                    meta_of(cycle.unwrap_or(0), working, text(row, 3)?),
                    hash,
                ));
            }
            Ok(())
        },
    )?;
    Ok(found)
}

pub(crate) fn meta_of(cycle: i64, working: bool, json: &str) -> Meta {
    let all = members(json);
    let extra = get(&all, "members").map(members).unwrap_or_default();
    Meta {
        cycle,
        working,
        cycle_given: get(&all, "cycle_given") == Some("true"),
        spec_version: get(&all, "spec_version").map(Into::into),
        extra: extra
            .into_iter()
            .map(|(name, json)| (name.into(), json.into()))
            .collect(),
    }
}

#[derive(Debug, Default)]
pub(crate) struct UnitCache {
    writer: Writer,
    /// By id of the unit version: its segment, and its index there.
    units: HashMap<i64, (Arc<Segment>, u32)>,
    /// The ids of unit versions in the store, by their versions in the index.
    ids: HashMap<u64, i64>,
    counted: HashSet<usize>,
    /// Bytes of the snapshots that were made.
    pub(crate) bytes: Arc<AtomicUsize>,
}

impl UnitCache {
    pub(crate) fn new() -> Self {
        Self {
            writer: Writer::counting(),
            ..Self::default()
        }
    }

    /// The units that are not in memory.
    pub(crate) fn missing<'p>(
        &self,
        database: &mut dyn Database,
        places: impl Iterator<Item = &'p Placement>,
    ) -> Result<Units> {
        let missing = places.map(|place| place.unit);
        let missing: BTreeSet<i64> = missing
            .filter(|unit| !self.units.contains_key(unit))
            .collect();
        let mut read = Units::default();
        read.read_all(database, &missing.into_iter().collect::<Vec<_>>(), false)?;
        Ok(read)
    }

    /// The snapshot of these placements, which are in document order. Linear in them.
    pub(crate) fn snapshot(
        &mut self,
        fresh: &Units,
        places: &[&Placement],
        meta: Meta,
    ) -> Result<Arc<Snapshot>> {
        check_order(places.iter().copied())?;
        let parts = places.iter().map(|place| self.part(fresh, place));
        let parts: Vec<UnitPart> = parts.collect::<Result<_, _>>()?;
        let layout = if self.units.is_empty() {
            fresh.layout(places.len())
        } else {
            Layout::ByLifetime
        };
        let made = self
            .writer
            .restore(&fresh.tree, &fresh.expires, parts, layout, meta);
        for (unit, place) in made.snapshot.units().zip(places) {
            if fresh.starts.contains_key(&place.unit) {
                place.check_unit(unit)?;
            }
            self.know(place.unit, unit);
        }
        self.count(&made.snapshot);
        Ok(Arc::new(made.snapshot))
    }

    /// The snapshot after `previous`, in which some placements have ended and others begun. Linear in those.
    pub(crate) fn next(
        &mut self,
        fresh: &Units,
        previous: &Snapshot,
        gone: &[&Placement],
        came: &[&Placement],
        meta: Meta,
    ) -> Result<Arc<Snapshot>> {
        let mut parts = Vec::with_capacity(came.len());
        for place in came {
            parts.push((place.order.key(), self.part(fresh, place)?));
        }
        check_change(previous, gone, came)?;
        let gone: Vec<&str> = gone.iter().map(|place| &*place.order.id).collect();
        let made =
            self.writer
                .restore_next(previous, &gone, &fresh.tree, &fresh.expires, parts, meta);
        for place in came {
            if let Some(node) = made.snapshot.find(&place.order.id) {
                let unit = UnitRef::containing(node);
                if !self.units.contains_key(&place.unit) {
                    place.check_unit(unit)?;
                }
                self.know(place.unit, unit);
            }
        }
        for output in made.merges.iter().map(|merge| &merge.output) {
            for (index, unit) in (0..).zip(output.units()) {
                if let Some(id) = self.ids.get(&unit.version) {
                    self.units.insert(*id, (Arc::clone(output), index));
                }
            }
        }
        self.count(&made.snapshot);
        Ok(Arc::new(made.snapshot))
    }

    fn know(&mut self, id: i64, unit: UnitRef<'_>) {
        self.ids.insert(unit.version(), id);
        self.units
            .insert(id, (Arc::clone(unit.segment()), unit.index()));
    }

    fn part(&self, fresh: &Units, place: &Placement) -> Result<UnitPart> {
        if let Some((segment, unit)) = self.units.get(&place.unit) {
            let top = segment.unit_rows(*unit).start;
            place.check_id(segment.id(top))?;
            return Ok(UnitPart::Kept(Arc::clone(segment), *unit, Vec::new()));
        }
        fresh.placed(place)
    }

    /// Counts what a snapshot holds: its pieces, and the segments that no snapshot before it has. Linear in
    /// its pieces. What merges have replaced stays counted, as older snapshots hold it.
    fn count(&mut self, snapshot: &Snapshot) {
        let mut bytes = size_of::<Snapshot>();
        for piece in snapshot.pieces() {
            let segment = piece.segment();
            bytes += size_of_val(piece);
            if self.counted.insert(Arc::as_ptr(segment) as usize) {
                // With the entries of the two tables of units.
                bytes += segment.bytes() + segment.units().len() * 96;
            }
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// As [`check_order`], for a snapshot with these changes to the previous one.
fn check_change(previous: &Snapshot, gone: &[&Placement], came: &[&Placement]) -> Result<()> {
    let ids = |places: &[&Placement]| -> HashSet<String> {
        places.iter().map(|place| place.order.id.clone()).collect()
    };
    let is_preamble = |place: &&&Placement| place.kind == UnitKind::Preamble;
    let preambles = |places: &[&Placement]| places.iter().filter(is_preamble).count();
    let (leaving, arriving) = (ids(gone), ids(came));
    // The unit that had an id; it must go if another unit brings the id.
    let top = |id: &str| {
        let node = previous.find(id)?;
        Some(UnitRef::containing(node).top().id())
    };
    let stays = |id: &String| top(id).is_some_and(|top| !leaving.contains(top));
    let is_sound = preambles(gone) == preambles(came)
        && arriving.len() == came.len()
        && leaving.iter().all(|id| top(id) == Some(id))
        && !arriving.iter().any(stays);
    let twice = || {
        let cycle = previous.cycle();
        StoreError::Damaged(format!("the snapshot after cycle {cycle} has a unit twice"))
    };
    is_sound.then_some(()).ok_or_else(twice)
}

impl Units {
    /// A segment that shares its records keeps everything read in memory, so it must use all of it.
    fn layout(&self, units: usize) -> Layout {
        if self.starts.len() == units {
            Layout::Whole
        } else {
            Layout::Together
        }
    }

    /// The rows of a unit, if they fit its kind.
    fn part(&self, kind: UnitKind, unit: i64, id: &str) -> Result<UnitPart> {
        let wrong = |what| StoreError::Damaged(format!("unit {id:?} {what}"));
        let rows = self.rows_of(unit).ok_or_else(|| wrong("has no nodes"))?;
        let top = self.tree.rows.get(rows.start as usize);
        let fits = top.is_some_and(|top| match kind {
            UnitKind::Preamble => top.class == NodeClass::Root,
            UnitKind::Turn => top.class == NodeClass::Turn && top.level == 2,
            UnitKind::Loose => top.class != NodeClass::Turn && top.level == 2,
            UnitKind::Head => top.class == NodeClass::Head,
            UnitKind::Rest => top.class != NodeClass::Head && top.level == 1,
        });
        let part = fits.then(|| UnitPart::Fresh(kind, rows));
        part.ok_or_else(|| wrong("is not of the kind that it says"))
    }

    /// As [`Units::part`], if its top node fits the placement.
    fn placed(&self, place: &Placement) -> Result<UnitPart> {
        let part = self.part(place.kind, place.unit, &place.order.id)?;
        if let UnitPart::Fresh(_, rows) = &part {
            let top = &self.tree.rows[rows.start as usize];
            place.check_id(self.tree.id(rows.start))?;
            let at = [
                header::OFFSET,
                header::CREATED_AT_NS,
                header::CREATION_INDEX,
            ];
            let order = &place.order;
            if at.map(|at| top.numbers[at])
                != [order.offset, order.created_at_ns, order.creation_index]
            {
                let what = format!("unit {:?} is not placed where its top node says", order.id);
                return Err(StoreError::Damaged(what));
            }
        }
        Ok(part)
    }
}

/// A unit, and how many turns after it are left out before the next one.
pub(crate) type Spaced = (Placement, u32);

fn unshared(fresh: &Units, parts: Vec<UnitPart>, units: usize, meta: Meta) -> Snapshot {
    let (writer, layout) = (Writer::new().without_merging(), fresh.layout(units));
    let made = writer.restore(&fresh.tree, &fresh.expires, parts, layout, meta);
    made.snapshot
}

/// The snapshot of a part of a tree, which shares nothing; with `outline`, without the nodes of `^sys`.
pub(crate) fn part(
    database: &mut dyn Database,
    places: &[Spaced],
    outline: bool,
    meta: Meta,
) -> Result<Snapshot> {
    let mut fresh = Units::default();
    let units: Vec<i64> = places.iter().map(|(place, _)| place.unit).collect();
    fresh.read_all(database, &units, outline)?;
    check_order(places.iter().map(|(place, _)| place))?;
    let mut parts = Vec::with_capacity(places.len());
    for (place, gap) in places {
        parts.push(fresh.placed(place)?);
        if *gap > 0 {
            parts.push(UnitPart::Gap(*gap));
        }
    }
    let made = unshared(&fresh, parts, places.len(), meta);
    for (place, _) in places {
        // An outline has not all of a preamble.
        if outline && place.kind == UnitKind::Preamble {
            continue;
        }
        if let Some(node) = made.find(&place.order.id) {
            place.check_unit(UnitRef::containing(node))?;
        }
    }
    Ok(made)
}

/// Units, each alone, to read their nodes: in the order given, one after the other. Linear in their rows.
pub(crate) fn restore_units(
    database: &mut dyn Database,
    units: &[(i64, UnitKind)],
    mut each: impl FnMut(i64, &Snapshot) -> Result<()>,
) -> Result<()> {
    let mut fresh = Units::default();
    let ids: Vec<i64> = units.iter().map(|(unit, _)| *unit).collect();
    fresh.read_all(database, &ids, false)?;
    for (unit, kind) in units {
        let parts = vec![fresh.part(*kind, *unit, "")?];
        each(*unit, &unshared(&fresh, parts, 1, Meta::default()))?;
    }
    Ok(())
}

/// A unit alone, to read its nodes. The contents and the custom attributes of the nodes of some ids are erased.
pub(crate) fn restore_unit(
    database: &mut dyn Database,
    unit: i64,
    kind: UnitKind,
    erased: &[&str],
) -> Result<Snapshot> {
    let mut fresh = Units::erasing(erased);
    fresh.read_all(database, &[unit], false)?;
    if fresh.starts.is_empty() {
        return Err(StoreError::Damaged("a unit has no nodes".to_owned()));
    }
    let parts = vec![fresh.part(kind, unit, "")?];
    Ok(unshared(&fresh, parts, 1, Meta::default()))
}
