//! Rows of `unit`, `node`, `attr` and `body`: their values, and inserting them once.

use hashbrown::HashMap;

use crate::store::database::sql::{Database, SqlValue, first, int};
use crate::store::error::{Result, StoreError};
use crate::store::layout::encode::{AttrColumns, EncodedUnit, Hash, NodeColumns, StoredBody};
use crate::store::layout::schema::insert;

/// How many contents are remembered at once.
const REMEMBERED: usize = 4_096;

/// The ids of contents that a transaction has written or found. A turn that grows has a version for each commit, and all
/// have the contents of the one before. Not to be kept longer than the transaction: another one may take contents out.
#[derive(Debug, Default)]
pub(crate) struct KnownBodies(HashMap<Hash, i64>);

impl KnownBodies {
    fn put(&mut self, database: &mut dyn Database, body: &StoredBody) -> Result<i64> {
        if let Some(id) = self.0.get(&body.hash) {
            return Ok(*id);
        }
        let id = put_body(database, body)?;
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0.insert(body.hash, id);
        Ok(id)
    }
}

/// In one order for all writers: two that insert the same ones at once wait for each other, and never both.
pub(crate) fn put_in_order(
    database: &mut dyn Database,
    units: &[&EncodedUnit],
    known: &mut KnownBodies,
) -> Result<()> {
    let nodes = units.iter().flat_map(|unit| &unit.nodes);
    let mut bodies: Vec<&StoredBody> = nodes.filter_map(|node| node.body.as_ref()).collect();
    bodies.sort_unstable_by_key(|body| body.hash);
    bodies.dedup_by_key(|body| body.hash);
    for body in bodies {
        known.put(database, body)?;
    }
    let mut units = units.to_vec();
    units.sort_unstable_by_key(|unit| (unit.kind, unit.hash, unit.spelling));
    for unit in units {
        put_unit(database, unit, known)?;
    }
    Ok(())
}

pub(crate) fn put_unit(
    database: &mut dyn Database,
    unit: &EncodedUnit,
    known: &mut KnownBodies,
) -> Result<i64> {
    let key = [unit.kind.into(), (&unit.hash).into(), unit.spelling.into()];
    let (unit_id, is_new) = put_key(database, &key)?;
    if is_new {
        for (pre, node) in (0..).zip(&unit.nodes) {
            put_node(database, (unit_id, pre), node, known)?;
        }
    }
    Ok(unit_id)
}

/// The id of the unit version with a kind, a hash and a spelling, and whether it was inserted now: its nodes were not.
pub(crate) fn put_key(database: &mut dyn Database, key: &[SqlValue<'_>; 3]) -> Result<(i64, bool)> {
    let insert = "insert into unit (kind, hash, spelling) values (?1, ?2, ?3) \
         on conflict (kind, hash, spelling) do nothing";
    let find = "select unit_id from unit where kind = ?1 and hash = ?2 and spelling = ?3";
    put_once(database, (insert, "unit_id", key), (find, key))
}

pub(crate) fn put_body(database: &mut dyn Database, body: &StoredBody) -> Result<i64> {
    let insert = "insert into body (hash, json, text) values (?1, ?2, ?3) \
         on conflict (hash) do nothing";
    let find = "select body_id from body where hash = ?1";
    let values = [(&body.hash).into(), body.json.into(), (&*body.text).into()];
    let (id, _) = put_once(database, (insert, "body_id", &values), (find, &values[..1]))?;
    Ok(id)
}

/// The id of a row that is there once, and whether it was inserted now.
fn put_once(
    database: &mut dyn Database,
    (insert, id, row): (&str, &str, &[SqlValue<'_>]),
    (find, key): (&str, &[SqlValue<'_>]),
) -> Result<(i64, bool)> {
    if let Some(made) = database.insert_once(insert, id, row)? {
        return Ok((made, true));
    }
    let known = first(database, find, key, |row| int(row, 0))?;
    let gone = || StoreError::Damaged("a unit or a content vanished".to_owned());
    Ok((known.ok_or_else(gone)?, false))
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
    known: &mut KnownBodies,
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
