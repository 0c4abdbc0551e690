//! The newest commits of many sessions, read together: a few statements for all of them, in one transaction.
//!
//! What is read of each is what its own loading reads (`archive`); only how it is asked for differs.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use super::archive::Stored;
use super::catalog::{self, Entry};
use super::core::Core;
use super::decode::Units;
use super::encode::Order;
use super::error::StoreError;
use super::load::{self, Fresh, Now, Place, Spaced};
use super::sql::{Database, Row, int, parameters, text};
use super::write::IN_FORCE;
use crate::history::Part;
use crate::index::{Snapshot, UnitKind};

/// How much of a newest commit is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent<'p> {
    /// Nothing but the row of the session.
    Nothing,
    /// This part, which names no ids.
    Part(&'p Part),
    /// All of it.
    Whole,
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
        });
        let mut reading: Vec<Reading> = reading.collect();
        let read = match extent {
            Extent::Nothing => Units::default(),
            Extent::Whole => whole(database, &mut reading)?,
            Extent::Part(part) => parts(database, &mut reading, part)?,
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
        let Self { stored, places } = self;
        let meta = stored.newest_meta();
        let snapshot = match (extent, meta) {
            (Extent::Nothing, _) | (_, None) => None,
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
    place_all(database, reading, "and p.rank <> 1")?;
    for reading in reading.iter_mut() {
        let (session, saved) = (reading.session(), reading.stored.entry().working);
        if let Some(seq) = reading.seq().filter(|_| part.turns > 0 && !saved) {
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
    let mut read = Units::default();
    read.read_all(database, &units.into_iter().collect::<Vec<_>>(), !part.sys)?;
    Ok(read)
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
