//! Rows of `unit`, `node`, `attr` and `body`: their columns, and inserting them once.

use std::sync::LazyLock;

use crate::store::database::sql::{Database, Value, first, int};
use crate::store::error::StoreError;
use crate::store::layout::attrs::Attr;
use crate::store::layout::encode::{Body, Node, Unit};
use crate::store::layout::schema::Type;

/// Inserts the units and bodies that are not there yet in one order for all writers: two that insert the same
/// ones at once wait for each other, and never both.
pub(crate) fn put_in_order(database: &mut dyn Database, units: &[&Unit]) -> Result<(), StoreError> {
    let nodes = units.iter().flat_map(|unit| &unit.nodes);
    let mut bodies: Vec<&Body> = nodes.filter_map(|node| node.body.as_ref()).collect();
    bodies.sort_unstable_by_key(|body| body.hash);
    bodies.dedup_by_key(|body| body.hash);
    for body in bodies {
        put_body(database, body)?;
    }
    let mut units = units.to_vec();
    units.sort_unstable_by_key(|unit| (unit.kind, unit.hash, unit.spelling));
    for unit in units {
        put_unit(database, unit)?;
    }
    Ok(())
}

/// The id of a unit version, which is inserted if it is not there yet.
pub(crate) fn put_unit(database: &mut dyn Database, unit: &Unit) -> Result<i64, StoreError> {
    let key = [unit.kind.into(), (&unit.hash).into(), unit.spelling.into()];
    let (unit_id, is_new) = put_key(database, &key)?;
    if is_new {
        for (pre, node) in (0..).zip(&unit.nodes) {
            put_node(database, unit_id, pre, node)?;
        }
    }
    Ok(unit_id)
}

/// The id of the unit version with a kind, a hash and a spelling, and whether it was inserted now: its nodes were not.
pub(crate) fn put_key(
    database: &mut dyn Database,
    key: &[Value<'_>; 3],
) -> Result<(i64, bool), StoreError> {
    let inserted = first(
        database,
        "insert into unit (kind, hash, spelling) values (?1, ?2, ?3) \
         on conflict (kind, hash, spelling) do nothing returning unit_id",
        key,
        |row| int(row, 0),
    )?;
    if let Some(unit_id) = inserted {
        return Ok((unit_id, true));
    }
    let known = first(
        database,
        "select unit_id from unit where kind = ?1 and hash = ?2 and spelling = ?3",
        key,
        |row| int(row, 0),
    )?;
    let gone = || StoreError::Damaged("a unit vanished".to_owned());
    Ok((known.ok_or_else(gone)?, false))
}

/// The id of a body, which is inserted if it is not there yet.
pub(crate) fn put_body(database: &mut dyn Database, body: &Body) -> Result<i64, StoreError> {
    let inserted = first(
        database,
        "insert into body (hash, json, text) values (?1, ?2, ?3) on conflict (hash) do nothing \
         returning body_id",
        &[
            (&body.hash).into(),
            body.json.into(),
            body.text.as_str().into(),
        ],
        |row| int(row, 0),
    )?;
    if let Some(body_id) = inserted {
        return Ok(body_id);
    }
    let known = first(
        database,
        "select body_id from body where hash = ?1",
        &[(&body.hash).into()],
        |row| int(row, 0),
    )?;
    known.ok_or_else(|| StoreError::Damaged("a body vanished".to_owned()))
}

/// The columns of `node` besides `unit_id`, `pre` and `body_id`.
pub(crate) const NODE_COLUMNS: &[(&str, Type)] = &[
    ("pre_end", Type::Int),
    ("parent_pre", Type::Int),
    ("core_pre", Type::Int),
    ("level", Type::Int),
    ("base_depth", Type::Int),
    ("class", Type::Text),
    ("id", Type::Text),
    ("node_type", Type::Text),
    ("type_head", Type::Text),
    ("type_sub", Type::Text),
    ("role", Type::Text),
    ("kind", Type::Text),
    ("key", Type::Text),
    ("sibling_offset", Type::Int),
    ("ttl", Type::Int),
    ("expires", Type::Int),
    ("priority", Type::Int),
    ("cycle", Type::Int),
    ("created_at_ns", Type::Int),
    ("created_at_iso", Type::Text),
    ("creation_index", Type::Int),
    ("cadence", Type::Int),
    ("content_hash", Type::Text),
    ("present", Type::Int),
    ("version", Type::Int),
    ("extra", Type::Text),
];

/// The columns of `attr` besides `unit_id` and `pre`.
pub(crate) const ATTR_COLUMNS: &[(&str, Type)] = &[
    ("name", Type::Text),
    ("ordinal", Type::Int),
    ("type", Type::Text),
    ("text", Type::Text),
    ("int", Type::Int),
    ("real", Type::Real),
    ("big", Type::Text),
];

/// The values of [`NODE_COLUMNS`].
pub(crate) fn node_values(node: &Node) -> [Value<'_>; 26] {
    [
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
        node.present.into(),
        node.version.into(),
        node.extra.as_deref().into(),
    ]
}

/// The values of [`ATTR_COLUMNS`].
pub(crate) fn attr_values(attr: &Attr) -> [Value<'_>; 7] {
    [
        attr.name.as_str().into(),
        attr.ordinal.into(),
        attr.kind.into(),
        attr.text.as_deref().into(),
        attr.int.into(),
        attr.real.map_or(Value::Null, Value::Real),
        attr.big.as_deref().into(),
    ]
}

/// The statement that inserts a row of these columns.
pub(crate) fn insert<'n>(table: &str, names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    let values: Vec<String> = (1..=names.len()).map(|at| format!("?{at}")).collect();
    let (names, values) = (names.join(", "), values.join(", "));
    format!("insert into {table} ({names}) values ({values})")
}

fn put_node(
    database: &mut dyn Database,
    unit: i64,
    pre: i64,
    node: &Node,
) -> Result<(), StoreError> {
    static NODE: LazyLock<String> = LazyLock::new(|| {
        let others = NODE_COLUMNS.iter().map(|(name, _)| *name);
        insert(
            "node",
            ["unit_id", "pre", "body_id"].into_iter().chain(others),
        )
    });
    static ATTR: LazyLock<String> = LazyLock::new(|| {
        let others = ATTR_COLUMNS.iter().map(|(name, _)| *name);
        insert("attr", ["unit_id", "pre"].into_iter().chain(others))
    });
    if let Some(id) = node.id.as_deref().filter(|id| id.contains('\0')) {
        return Err(StoreError::Refused(format!(
            "the id {id:?} has U+0000, which no store can keep; give the node another id"
        )));
    }
    let body = match &node.body {
        Some(body) => Some(put_body(database, body)?),
        None => None,
    };
    let mut values = [Value::Null; 29];
    values[..3].copy_from_slice(&[unit.into(), pre.into(), body.into()]);
    values[3..].copy_from_slice(&node_values(node));
    database.execute(&NODE, &values)?;
    for attr in &node.attrs {
        let mut values = [Value::Null; 9];
        values[..2].copy_from_slice(&[unit.into(), pre.into()]);
        values[2..].copy_from_slice(&attr_values(attr));
        database.execute(&ATTR, &values)?;
    }
    Ok(())
}
