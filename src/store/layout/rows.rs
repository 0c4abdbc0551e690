//! Rows of `unit`, `node`, `attr` and `body`: their values, and inserting them once.

use hashbrown::HashMap;

use crate::store::database::sql::{Database, SqlValue, first, int};
use crate::store::error::{Result, StoreError};
use crate::store::layout::encode::{AttrColumns, EncodedUnit, Hash, NodeColumns, StoredBody};
use crate::store::layout::schema::insert;

/// How many contents, and how many units, are remembered at once.
const REMEMBERED: usize = 4_096;

/// The ids of contents and units that a transaction has written or found. A turn that grows has a version for each commit,
/// and all have the contents of the one before. Not to be kept longer than the transaction: another one may take rows out.
#[derive(Debug, Default)]
pub(crate) struct KnownRows {
    bodies: HashMap<Hash, i64>,
    units: HashMap<UnitKey, i64>,
}

type UnitKey = (&'static str, Hash, i64);

impl KnownRows {
    fn put(&mut self, database: &mut dyn Database, body: &StoredBody) -> Result<i64> {
        if let Some(id) = self.bodies.get(&body.hash) {
            return Ok(*id);
        }
        let id = put_body(database, body)?;
        self.forget();
        self.bodies.insert(body.hash, id);
        Ok(id)
    }

    /// Forgets what is too much to remember.
    fn forget(&mut self) {
        if self.bodies.len() >= REMEMBERED {
            self.bodies.clear();
        }
        if self.units.len() >= REMEMBERED {
            self.units.clear();
        }
    }
}

/// Puts units with their contents, with a few messages to a server however many they are. In one order for all writers: two
/// that insert the same ones at once wait for each other, and never both.
pub(crate) fn put_in_order(
    database: &mut dyn Database,
    units: &[&EncodedUnit],
    known: &mut KnownRows,
) -> Result<()> {
    known.forget();
    let nodes = units.iter().flat_map(|unit| &unit.nodes);
    let mut bodies: Vec<&StoredBody> = nodes.filter_map(|node| node.body.as_ref()).collect();
    bodies.retain(|body| !known.bodies.contains_key(&body.hash));
    bodies.sort_unstable_by_key(|body| body.hash);
    bodies.dedup_by_key(|body| body.hash);
    let rows: Vec<_> = bodies.iter().map(|body| body_row(body).to_vec()).collect();
    for (body, (id, _)) in bodies.iter().zip(put_all(database, &BODY, &rows)?) {
        known.bodies.insert(body.hash, id);
    }
    let mut units = units.to_vec();
    units.retain(|unit| !known.units.contains_key(&unit_key(unit)));
    units.sort_unstable_by_key(|unit| unit_key(unit));
    units.dedup_by_key(|unit| unit_key(unit));
    let rows: Vec<_> = units.iter().map(|unit| unit_row(unit).to_vec()).collect();
    for (unit, (id, is_new)) in units.iter().zip(put_all(database, &UNIT, &rows)?) {
        known.units.insert(unit_key(unit), id);
        if is_new {
            put_nodes(database, id, unit, known)?;
        }
    }
    Ok(())
}

pub(crate) fn put_unit(
    database: &mut dyn Database,
    unit: &EncodedUnit,
    known: &mut KnownRows,
) -> Result<i64> {
    if let Some(id) = known.units.get(&unit_key(unit)) {
        return Ok(*id);
    }
    let (unit_id, is_new) = put_key(database, &unit_row(unit))?;
    if is_new {
        put_nodes(database, unit_id, unit, known)?;
    }
    Ok(unit_id)
}

fn put_nodes(
    database: &mut dyn Database,
    unit_id: i64,
    unit: &EncodedUnit,
    known: &mut KnownRows,
) -> Result<()> {
    let mut nodes = (0..).zip(&unit.nodes);
    nodes.try_for_each(|(pre, node)| put_node(database, (unit_id, pre), node, known))
}

fn unit_key(unit: &EncodedUnit) -> UnitKey {
    (unit.kind, unit.hash, unit.spelling)
}

fn unit_row(unit: &EncodedUnit) -> [SqlValue<'_>; 3] {
    [unit.kind.into(), (&unit.hash).into(), unit.spelling.into()]
}

fn body_row(body: &StoredBody) -> [SqlValue<'_>; 3] {
    [(&body.hash).into(), body.json.into(), (&*body.text).into()]
}

/// A table of rows that are there once.
struct RowsOnce {
    insert: &'static str,
    id: &'static str,
    find: &'static str,
    /// How many columns, from the first, tell one row from another.
    key: usize,
}

const UNIT: RowsOnce = RowsOnce {
    insert: "insert into unit (kind, hash, spelling) values (?1, ?2, ?3) \
         on conflict (kind, hash, spelling) do nothing",
    id: "unit_id",
    find: "select unit_id from unit where kind = ?1 and hash = ?2 and spelling = ?3",
    key: 3,
};

const BODY: RowsOnce = RowsOnce {
    insert: "insert into body (hash, json, text) values (?1, ?2, ?3) on conflict (hash) do nothing",
    id: "body_id",
    find: "select body_id from body where hash = ?1",
    key: 1,
};

/// The id of the unit version with a kind, a hash and a spelling, and whether it was inserted now: its nodes were not.
pub(crate) fn put_key(database: &mut dyn Database, key: &[SqlValue<'_>; 3]) -> Result<(i64, bool)> {
    put_once(database, &UNIT, key)
}

pub(crate) fn put_body(database: &mut dyn Database, body: &StoredBody) -> Result<i64> {
    Ok(put_once(database, &BODY, &body_row(body))?.0)
}

/// The id of a row that is there once, and whether it was inserted now.
fn put_once(
    database: &mut dyn Database,
    table: &RowsOnce,
    row: &[SqlValue<'_>; 3],
) -> Result<(i64, bool)> {
    if let Some(made) = database.insert_once(table.insert, table.id, row)? {
        return Ok((made, true));
    }
    let known = first(database, table.find, &row[..table.key], |row| int(row, 0))?;
    Ok((known.ok_or_else(vanished)?, false))
}

/// As [`put_once`], of rows that are sorted by their keys.
fn put_all(
    database: &mut dyn Database,
    table: &RowsOnce,
    rows: &[Vec<SqlValue<'_>>],
) -> Result<Vec<(i64, bool)>> {
    let mut found: Vec<Option<(i64, bool)>> = vec![None; rows.len()];
    let insert = format!("{} returning {}", table.insert, table.id);
    database.query_all(&insert, rows, &mut |at, row| {
        found[at] = Some((int(row, 0)?, true));
        Ok(())
    })?;
    let is_known = |at: &usize| found[*at].is_none();
    let known: Vec<usize> = (0..rows.len()).filter(is_known).collect();
    let keys = known.iter().map(|at| rows[*at][..table.key].to_vec());
    let keys: Vec<Vec<SqlValue<'_>>> = keys.collect();
    database.query_all(table.find, &keys, &mut |at, row| {
        found[known[at]] = Some((int(row, 0)?, false));
        Ok(())
    })?;
    let found = found.into_iter().map(|found| found.ok_or_else(vanished));
    found.collect()
}

fn vanished() -> StoreError {
    StoreError::Damaged("a unit or a content vanished".to_owned())
}

/// A row of `node`, in the order of its columns.
pub(crate) fn node_row(
    node: &NodeColumns,
    unit: i64,
    pre: i64,
    body: Option<i64>,
) -> [SqlValue<'_>; 29] {
    [
        unit.into(),
        pre.into(),
        node.pre_end.into(),
        node.parent_pre.into(),
        node.core_pre.into(),
        node.level.into(),
        node.base_depth.into(),
        node.class.into(),
        node.id.as_deref().into(),
        node.node_type.as_deref().into(),
        node.type_head.as_str().into(),
        node.type_sub.as_deref().into(),
        node.role.as_deref().into(),
        node.kind.as_deref().into(),
        node.key.as_deref().into(),
        node.offset.into(),
        node.ttl.into(),
        node.expires.into(),
        node.priority.into(),
        node.cycle.into(),
        node.created_at_ns.into(),
        node.created_at_iso.as_deref().into(),
        node.creation_index.into(),
        node.cadence.into(),
        node.content_hash.as_deref().into(),
        body.into(),
        node.present.into(),
        node.version.into(),
        node.extra.as_deref().into(),
    ]
}

pub(crate) fn attr_row(attr: &AttrColumns, unit: i64, pre: i64) -> [SqlValue<'_>; 9] {
    [
        unit.into(),
        pre.into(),
        attr.name.as_str().into(),
        attr.ordinal.into(),
        attr.kind.into(),
        attr.text.as_deref().into(),
        attr.int.into(),
        attr.real.into(),
        attr.big.as_deref().into(),
    ]
}

fn put_node(
    database: &mut dyn Database,
    (unit, pre): (i64, i64),
    node: &NodeColumns,
    known: &mut KnownRows,
) -> Result<()> {
    if let Some(id) = node.id.as_deref().filter(|id| id.contains('\0')) {
        return Err(StoreError::Refused(format!(
            "the id {id:?} has U+0000, which no store can keep; give the node another id"
        )));
    }
    let body = node.body.as_ref();
    let body = body.map(|body| known.put(database, body)).transpose()?;
    insert(database, "node", &node_row(node, unit, pre, body))?;
    let mut attrs = node.attrs.iter();
    attrs.try_for_each(|attr| insert(database, "attr", &attr_row(attr, unit, pre)))
}
