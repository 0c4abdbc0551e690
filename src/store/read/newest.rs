//! The newest commits of many sessions, read together: a few statements for all of them, in one transaction.
//!
//! What is read of each is what its own loading reads (`archive`); only how it is asked for differs.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::history::Part;
use crate::index::{Snapshot, UnitKind};
use crate::store::database::sql::{Database, Row, int, parameters, text};
use crate::store::error::StoreError;
use crate::store::layout::decode::Units;
use crate::store::layout::encode::Order;
use crate::store::read::catalog::{self, Entry};
use crate::store::read::load::{self, Fresh, Now, Place, Spaced};
use crate::store::read::stored::Stored;
use crate::store::write::change::IN_FORCE;
use crate::store::write::core::Core;

/// How much of a newest commit is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent<'p> {
    /// Nothing but the row of the session.
    Nothing,
    /// This part, which names no ids.
    Part(&'p Part),
    /// By the number of a session, the units that the nodes of a part are in.
    Among(&'p HashMap<i64, Among>),
    /// All of it.
    Whole,
}

/// Where some nodes of a session are.
#[derive(Clone, Debug)]
pub(crate) struct Among {
    /// The part that has them, which names their ids.
    pub(crate) part: Part,
    /// The units that they are in.
    pub(crate) units: Vec<i64>,
}

/// A session as it is now.
#[derive(Debug)]
pub(crate) struct Newest {
    /// The same as the one that was known, if it has not changed.
    pub(crate) stored: Arc<Stored>,
    /// Its newest commit, as far as that was asked for; `None` if there is none.
    pub(crate) snapshot: Option<Arc<Snapshot>>,
}

/// A session to be read, on its way.
struct Reading {
    stored: Arc<Stored>,
    /// What is read, in document order.
    places: Vec<Place>,
    /// Of [`Extent::Among`], how many turns come after each of the places. If it does not have all of them,
    /// the session is read by itself.
    turns_after: Vec<u32>,
}

/// The sessions of these numbers, with their newest commits, in no order; without those that there are no
/// more. Units that the ones in `known` have in memory are shared.
///
/// Linear in what is read, and for a whole commit in its units.
pub(crate) fn newest(
    core: &Arc<Core>,
    sessions: &[i64],
    known: &HashMap<i64, Arc<Stored>>,
    extent: Extent<'_>,
) -> Result<Vec<Newest>, StoreError> {
    let (reading, read) = core.read(|database| {
        let entries = catalog::some(database, sessions)?;
        let stored = |entry: Entry| match known.get(&entry.session) {
            Some(same) if *same.entry() == entry => Arc::clone(same),
            before => Arc::new(Stored::after(core, entry, before)),
        };
        let reading = entries.into_iter().map(|entry| Reading {
            stored: stored(entry),
            places: Vec::new(),
            turns_after: Vec::new(),
        });
        let mut reading: Vec<Reading> = reading.collect();
        let read = match extent {
            Extent::Nothing => Units::default(),
            Extent::Whole => whole(database, &mut reading)?,
            Extent::Part(part) => parts(database, &mut reading, part)?,
            Extent::Among(among) => units(database, &mut reading, among)?,
        };
        Ok((reading, Fresh::from(read)))
    })?;
    let made = reading
        .into_iter()
        .map(|reading| reading.finish(&read, extent));
    made.collect()
}

impl Reading {
    fn finish(self, read: &Fresh, extent: Extent<'_>) -> Result<Newest, StoreError> {
        let spaced = self.spaced();
        let Self { stored, places, .. } = self;
        let meta = stored.newest_meta();
        let snapshot = match (extent, meta) {
            (Extent::Nothing, _) | (_, None) => None,
            (Extent::Among(_), Some(meta)) => match spaced {
                Some(spaced) => {
                    let made = load::alone(read, &spaced, meta)?;
                    stored.count(&made);
                    Some(Arc::new(made))
                }
                None => None,
            },
            (Extent::Whole, Some(meta)) => Some(stored.restore(read, &places, meta)?),
            (Extent::Part(_), Some(meta)) => {
                let spaced: Vec<Spaced> = places.into_iter().map(|place| (place, 0)).collect();
                let made = load::alone(read, &spaced, meta)?;
                stored.count(&made);
                Some(Arc::new(made))
            }
        };
        Ok(Newest { stored, snapshot })
    }

    /// The places of [`Extent::Among`], with the number of turns that are left out after each.
    fn spaced(&self) -> Option<Vec<Spaced>> {
        if self.turns_after.is_empty() || self.turns_after.len() != self.places.len() {
            return None;
        }
        let mut after = 0;
        let mut spaced: Vec<Spaced> = Vec::with_capacity(self.places.len());
        for (place, turns) in self.places.iter().zip(&self.turns_after).rev() {
            let mut gap = 0;
            if place.order.rank == 1 {
                gap = turns.checked_sub(after)?;
                after = turns + u32::from(place.kind == UnitKind::Turn);
            }
            spaced.push((place.clone(), gap));
        }
        spaced.reverse();
        Some(spaced)
    }

    fn session(&self) -> i64 {
        self.stored.entry().session
    }

    /// The seq of the newest commit.
    fn seq(&self) -> Option<i64> {
        self.stored.entry().seqs.map(|(_, last)| last)
    }
}

/// Reads all units of the newest commits that are not in memory.
fn whole(database: &mut dyn Database, reading: &mut [Reading]) -> Result<Units, StoreError> {
    place_all(database, reading, "")?;
    let mut missing = BTreeSet::new();
    for reading in reading {
        let units = reading.places.iter().map(|place| place.unit);
        missing.extend(reading.stored.missing(units));
    }
    let mut read = Units::default();
    read.read_all(database, &missing.into_iter().collect::<Vec<_>>(), false)?;
    Ok(read)
}

/// Reads a part of each of the newest commits.
fn parts(
    database: &mut dyn Database,
    reading: &mut [Reading],
    part: &Part,
) -> Result<Units, StoreError> {
    let all_turns = part.turns == u64::MAX;
    place_all(
        database,
        reading,
        if all_turns { "" } else { "and p.rank <> 1" },
    )?;
    let few_turns = part.turns > 0 && !all_turns;
    for reading in reading.iter_mut() {
        let (session, saved) = (reading.session(), reading.stored.entry().working);
        if let Some(seq) = reading.seq().filter(|_| few_turns && !saved) {
            let now = Now {
                session,
                seq,
                saved,
            };
            let turns = load::newest_turns(database, now, part.turns)?;
            let after = reading.places.iter().position(|place| place.order.rank > 1);
            let after = after.unwrap_or(reading.places.len());
            reading.places.splice(after..after, turns);
        }
        Place::only(&mut reading.places, part);
    }
    let places = reading.iter().flat_map(|reading| &reading.places);
    let units: BTreeSet<i64> = places.map(|place| place.unit).collect();
    let mut read = if part.headers_only {
        Units::of_headers()
    } else {
        Units::default()
    };
    read.read_all(database, &units.into_iter().collect::<Vec<_>>(), !part.sys)?;
    Ok(read)
}

/// Reads the units of some nodes, and of each session the preamble.
fn units(
    database: &mut dyn Database,
    reading: &mut [Reading],
    among: &HashMap<i64, Among>,
) -> Result<Units, StoreError> {
    let mut at = HashMap::new();
    for (index, reading) in reading.iter().enumerate() {
        // A working state may have closed some of the units.
        if reading.seq().is_some() && !reading.stored.entry().working {
            at.insert(reading.session(), index);
        }
    }
    let wanted = at.keys().filter_map(|session| among.get(session));
    let wanted: BTreeSet<i64> = wanted
        .flat_map(|among| among.units.iter().copied())
        .collect();
    if wanted.is_empty() {
        return Ok(Units::default());
    }
    let sessions: Vec<i64> = at.keys().copied().collect();
    let wanted: Vec<i64> = wanted.into_iter().collect();
    for (condition, numbers) in [
        ("p.rank = 0 and p.session_id", &sessions),
        ("p.rank > 0 and p.unit_id", &wanted),
    ] {
        placed_among(
            database,
            condition,
            numbers,
            &mut |session, place, turns| {
                let reading = at.get(&session).and_then(|at| reading.get_mut(*at));
                let among = among.get(&session);
                if let (Some(reading), Some(among)) = (reading, among)
                    && (place.order.rank == 0 || among.units.contains(&place.unit))
                {
                    reading.places.push(place);
                    reading.turns_after.push(turns);
                }
            },
        )?;
    }
    let mut whole_preamble = false;
    let mut units = BTreeSet::new();
    for reading in reading.iter_mut() {
        let Some(among) = among.get(&reading.session()) else {
            continue;
        };
        let has = |unit: &i64| reading.places.iter().any(|place| place.unit == *unit);
        if !among.units.iter().all(has) {
            // The session has changed.
            reading.turns_after.clear();
            continue;
        }
        units.extend(reading.places.iter().map(|place| place.unit));
        let preamble = reading.places.first().map(|place| place.unit);
        whole_preamble |= among.units.iter().any(|unit| Some(*unit) == preamble);
    }
    let mut read = Units::default();
    let units: Vec<i64> = units.into_iter().collect();
    read.read_all(database, &units, !whole_preamble)?;
    Ok(read)
}

/// Calls `each` with placements in force: the session, the placement, and the number of turns after it. Those of
/// a session come in document order.
fn placed_among(
    database: &mut dyn Database,
    condition: &str,
    numbers: &[i64],
    each: &mut dyn FnMut(i64, Place, u32),
) -> Result<(), StoreError> {
    let (list, values) = parameters(numbers);
    let sql = format!(
        "select p.session_id, p.unit_id, p.rank, p.turn, p.sibling_offset, p.created_at_ns, \
         p.creation_index, p.id, p.first_seq, case when p.rank = 1 then (select count(*) \
         from placement q where q.session_id = p.session_id and q.rank = 1 and q.turn \
         and q.last_seq = {IN_FORCE} and (q.sibling_offset, q.created_at_ns, q.creation_index, q.id) \
         > (p.sibling_offset, p.created_at_ns, p.creation_index, p.id)) else 0 end from placement p \
         where {condition} in ({list}) and p.last_seq = {IN_FORCE} order by p.session_id, p.rank, \
         p.sibling_offset, p.created_at_ns, p.creation_index, p.id"
    );
    database.query(&sql, &values, &mut |row| {
        let turns = u32::try_from(int(row, 9)?).unwrap_or(0);
        each(int(row, 0)?, place(row)?, turns);
        Ok(())
    })
}

/// Finds the placements of the newest commits, in document order; those that `only`, more conditions in SQL,
/// leaves out may be missing.
fn place_all(
    database: &mut dyn Database,
    reading: &mut [Reading],
    only: &str,
) -> Result<(), StoreError> {
    let mut at = HashMap::new();
    for (index, reading) in reading.iter_mut().enumerate() {
        match reading.seq() {
            // A working state may have closed placements of the newest commit, and begun others.
            Some(seq) if reading.stored.entry().working => {
                reading.places = load::places(database, reading.session(), (seq, seq))?;
            }
            Some(_) => {
                at.insert(reading.session(), index);
            }
            None => {}
        }
    }
    let sessions: Vec<i64> = at.keys().copied().collect();
    if sessions.is_empty() {
        return Ok(());
    }
    let (list, values) = parameters(&sessions);
    // The index `placement_in_force` has all of this.
    let sql = format!(
        "select p.session_id, p.unit_id, p.rank, p.turn, p.sibling_offset, p.created_at_ns, \
         p.creation_index, p.id, p.first_seq from placement p where p.session_id in ({list}) \
         and p.last_seq = {IN_FORCE} {only} order by p.session_id, p.rank, p.sibling_offset, \
         p.created_at_ns, p.creation_index, p.id"
    );
    database.query(&sql, &values, &mut |row| {
        let reading = at.get(&int(row, 0)?).and_then(|at| reading.get_mut(*at));
        if let Some(reading) = reading {
            reading.places.push(place(row)?);
        }
        Ok(())
    })
}

fn place(row: &dyn Row) -> Result<Place, StoreError> {
    let rank = int(row, 2)?;
    Ok(Place {
        unit: int(row, 1)?,
        kind: match (rank, row.bool(3)?.unwrap_or(false)) {
            (0, _) => UnitKind::Preamble,
            (1, true) => UnitKind::Turn,
            (1, false) => UnitKind::Loose,
            (2, _) => UnitKind::Head,
            _ => UnitKind::Rest,
        },
        order: Order {
            rank,
            offset: int(row, 4)?,
            created_at_ns: int(row, 5)?,
            creation_index: int(row, 6)?,
            id: text(row, 7)?.to_owned(),
        },
        first_seq: int(row, 8)?,
        last_seq: IN_FORCE,
    })
}
