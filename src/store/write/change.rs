//! Commits and working states as rows: what they touched is inserted, what they closed gets its last seq.
//!
//! Everything here happens inside a transaction that the caller has begun. This file does not know who may
//! write; [`super::lease`] does.

use hashbrown::HashMap;
use sha2::{Digest, Sha256};

use crate::index::{Meta, Snapshot};
use crate::json::{write_string, write_value};
use crate::store::database::sql::{Database, Dialect, Value, collect, digest, first, int, text};
use crate::store::error::StoreError;
use crate::store::layout::encode::{Hash, Order, Ttl, Unit, encode};
use crate::store::layout::rows::{put_in_order, put_unit};
use crate::store::layout::sums::sum;
use crate::store::write::garbage;

/// The `last_seq` of a placement in force.
pub(crate) const IN_FORCE: i64 = i64::MAX;

/// What a commit or a working state changes, to be written. Made without a database.
#[derive(Debug)]
pub(crate) struct Change {
    came: Vec<Unit>,
    /// Ids of the top nodes of the units that went, in document order.
    gone: Vec<String>,
    cycle: Option<i64>,
    meta: String,
    working: bool,
    note: Option<String>,
}

impl Change {
    /// Whether it is a working state.
    pub(crate) fn is_working(&self) -> bool {
        self.working
    }

    /// The units that came: the id of the top node, the hash, the spelling of the ttls.
    pub(crate) fn came(&self) -> impl Iterator<Item = (&str, Hash, i64)> {
        let units = self.came.iter();
        units.map(|unit| (&*unit.order.id, unit.hash, unit.spelling))
    }

    /// The difference between two snapshots, or a whole one. Linear in the units that differ.
    pub(crate) fn between(older: Option<&Snapshot>, newer: &Snapshot) -> Self {
        let (mut came, mut gone) = (Vec::new(), Vec::new());
        let encoded = |unit: crate::index::UnitRef<'_>| {
            encode(unit.kind(), unit.nodes().map(|node| (node, Ttl::of(node))))
        };
        match older {
            None => came.extend(newer.units().map(encoded)),
            Some(older) => {
                let changes = newer.unit_changes(older);
                came.extend(changes.came.into_iter().map(encoded));
                gone.extend(changes.gone.iter().map(|unit| unit.top().id().to_owned()));
            }
        }
        let meta = newer.meta();
        Self {
            came,
            gone,
            cycle: (!meta.working).then_some(meta.cycle),
            meta: meta_text(meta),
            working: meta.working,
            note: None,
        }
    }
}

/// The members of a document besides its tree, as in `snapshot.meta`.
pub(crate) fn meta_text(meta: &Meta) -> String {
    let mut out = format!("{{\"cycle_given\":{}", meta.cycle_given).into_bytes();
    if !meta.extra.is_empty() {
        out.extend_from_slice(b",\"members\":");
        let mut before = b'{';
        for (name, json) in &meta.extra {
            out.push(before);
            before = b',';
            // Writing to memory does not fail.
            let _ = write_string(&mut out, name);
            out.push(b':');
            out.extend_from_slice(json.as_bytes());
        }
        out.push(b'}');
    }
    if let Some(version) = &meta.spec_version {
        out.extend_from_slice(b",\"spec_version\":");
        let _ = write_value(&mut out, version);
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// A unit version in force.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) unit: i64,
    pub(crate) hash: Hash,
    pub(crate) spelling: i64,
    pub(crate) order: Order,
}

/// What a writer knows of the session it writes.
#[derive(Clone, Debug)]
pub(crate) struct SessionRows {
    pub(crate) session: i64,
    /// The newest commit: its seq and its hash.
    pub(crate) newest: Option<(i64, Hash)>,
    /// The units of the newest commit, by the id of the top node.
    pub(crate) placed: HashMap<String, Placed>,
}

/// A change that was written, to be noted once its transaction is committed.
#[derive(Debug)]
pub(crate) struct Written {
    seq: i64,
    hash: Hash,
    working: bool,
    gone: Vec<String>,
    came: Vec<(String, Placed)>,
}

impl SessionRows {
    /// Reads what is in force. Linear in the units of the newest commit.
    pub(crate) fn read(database: &mut dyn Database, session: i64) -> Result<Self, StoreError> {
        let newest = first(
            database,
            "select seq, hash from snapshot where session_id = ?1 and not working \
             order by seq desc limit 1",
            &[session.into()],
            |row| Ok((int(row, 0)?, digest(row, 1)?)),
        )?;
        let mut placed = HashMap::new();
        if let Some((seq, _)) = newest {
            let all = collect(
                database,
                "select p.unit_id, u.hash, u.spelling, p.rank, p.sibling_offset, p.created_at_ns, \
                 p.creation_index, p.id from placement p join unit u on u.unit_id = p.unit_id \
                 where p.session_id = ?1 and p.first_seq <= ?2 and p.last_seq >= ?2",
                &[session.into(), seq.into()],
                |row| {
                    Ok(Placed {
                        unit: int(row, 0)?,
                        hash: digest(row, 1)?,
                        spelling: int(row, 2)?,
                        order: Order {
                            rank: int(row, 3)?,
                            offset: int(row, 4)?,
                            created_at_ns: int(row, 5)?,
                            creation_index: int(row, 6)?,
                            id: text(row, 7)?.to_owned(),
                        },
                    })
                },
            )?;
            placed.extend(all.into_iter().map(|unit| (unit.order.id.clone(), unit)));
        }
        Ok(Self {
            session,
            newest,
            placed,
        })
    }

    /// Writes a change after the newest commit; a working state that was saved goes. Linear in the change
    /// and in that working state.
    pub(crate) fn write(
        &self,
        database: &mut dyn Database,
        change: &Change,
        now: i64,
    ) -> Result<Written, StoreError> {
        let seq = self.newest.map_or(1, |(seq, _)| seq + 1);
        let loose = self.undo_working(database)?;
        // A unit that was indexed twice came and went, and is the same.
        let is_same = |unit: &Unit| {
            let placed = self.placed.get(&unit.order.id);
            placed
                .is_some_and(|placed| (placed.hash, placed.spelling) == (unit.hash, unit.spelling))
                && change.gone.contains(&unit.order.id)
        };
        let (same, new): (Vec<&Unit>, Vec<&Unit>) = change.came.iter().partition(|u| is_same(u));
        let mut gone: Vec<&Placed> = Vec::new();
        for id in &change.gone {
            if same.iter().all(|unit| unit.order.id != *id) {
                let missing = || StoreError::Damaged(format!("no unit of {id:?} is in force"));
                gone.push(self.placed.get(id).ok_or_else(missing)?);
            }
        }
        gone.sort_unstable_by(|a, b| a.order.cmp(&b.order));
        let mut hash = chain(self.newest.map(|(_, hash)| hash), change);
        for placed in &gone {
            self.close(database, placed, seq - 1)?;
            hash.update(b"-");
            hash.update(placed.hash);
        }
        if database.dialect() == Dialect::Postgres {
            put_in_order(database, &new)?;
        }
        let mut came = Vec::new();
        for unit in new {
            came.push((unit.order.id.clone(), self.place(database, unit, seq)?));
            hash.update(b"+");
            hash.update(unit.hash);
        }
        let hash: Hash = hash.finalize().into();
        database.execute(
            "insert into snapshot (session_id, seq, cycle, working, committed_at_ns, meta, hash, note, \
             check_sum) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            &[
                self.session.into(),
                seq.into(),
                change.cycle.into(),
                change.working.into(),
                now.into(),
                change.meta.as_str().into(),
                (&hash).into(),
                change.note.as_deref().into(),
                sum(&[change.working.into(), now.into(), Value::Null]).into(),
            ],
        )?;
        garbage::units(database, &loose)?;
        Ok(Written {
            seq,
            hash,
            working: change.working,
            gone: gone.iter().map(|placed| placed.order.id.clone()).collect(),
            came,
        })
    }

    /// Ends a placement that is in force.
    fn close(
        &self,
        database: &mut dyn Database,
        placed: &Placed,
        last_seq: i64,
    ) -> Result<(), StoreError> {
        let closed = database.execute(
            "update placement set last_seq = ?3 where session_id = ?1 and unit_id = ?2 \
             and last_seq = ?4",
            &[
                self.session.into(),
                placed.unit.into(),
                last_seq.into(),
                IN_FORCE.into(),
            ],
        )?;
        match closed {
            1 => Ok(()),
            _ => {
                let id = &placed.order.id;
                let what = format!("the placement of {id:?} is not in force");
                Err(StoreError::Damaged(what))
            }
        }
    }

    /// Places a unit version from a seq on.
    fn place(
        &self,
        database: &mut dyn Database,
        unit: &Unit,
        seq: i64,
    ) -> Result<Placed, StoreError> {
        let unit_id = put_unit(database, unit)?;
        let order = &unit.order;
        database.execute(
            "insert into placement (session_id, unit_id, first_seq, last_seq, sibling_offset, \
             created_at_ns, creation_index, id, rank, turn) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            &[
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
            ],
        )?;
        Ok(Placed {
            unit: unit_id,
            hash: unit.hash,
            spelling: unit.spelling,
            order: order.clone(),
        })
    }

    /// Takes a saved working state back. Returns the units that it placed.
    pub(crate) fn undo_working(&self, database: &mut dyn Database) -> Result<Vec<i64>, StoreError> {
        let session = Value::Int(self.session);
        let newest = self.newest.map_or(0, |(seq, _)| seq);
        let removed = database.execute(
            "delete from snapshot where session_id = ?1 and seq > ?2 and working",
            &[session, newest.into()],
        )?;
        if removed == 0 {
            return Ok(Vec::new());
        }
        let after = [session, newest.into(), IN_FORCE.into()];
        let units = collect(
            database,
            "select unit_id from placement where session_id = ?1 and first_seq > ?2 and last_seq = ?3",
            &after,
            |row| int(row, 0),
        )?;
        database.execute(
            "delete from placement where session_id = ?1 and first_seq > ?2 and last_seq = ?3",
            &after,
        )?;
        database.execute(
            "update placement set last_seq = ?3 where session_id = ?1 and last_seq = ?2",
            &[session, newest.into(), IN_FORCE.into()],
        )?;
        Ok(units)
    }

    /// Notes a change whose transaction was committed.
    pub(crate) fn note(&mut self, written: Written) {
        if written.working {
            return;
        }
        self.newest = Some((written.seq, written.hash));
        for id in &written.gone {
            self.placed.remove(id);
        }
        self.placed.extend(written.came);
    }
}

/// The beginning of the text that a snapshot's hash is over: all but the units.
fn chain(parent: Option<Hash>, change: &Change) -> Sha256 {
    chained(parent, change.cycle, &change.meta, change.note.as_deref())
}

/// As [`chain`], of a row of `snapshot`.
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
