//! What the commits of a session say of their calls: what is beside their trees, and the nodes that replies and times are
//! read from. No content is read, and no tree is built.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use crate::history::{CallNode, CommitCall, is_of_model};
use crate::index::UnitKind;
use crate::json::{get, members, string};
use crate::store::database::sql::{Database, ResultRow, int, parameters, text};
use crate::store::error::Result;
use crate::store::layout::encode::Order;
use crate::store::layout::present;
use crate::store::read::load::Placement;
use crate::tree::Meta;
use crate::tree::timestamp::rfc3339_of_nanos;

/// How many units a statement reads the nodes of.
const TOGETHER: usize = 256;

/// The units of a commit whose nodes are read: the newest turn with those of `^ah`, and the last child of `^seq`.
struct NewestUnits {
    newest: Vec<i64>,
    last: Option<i64>,
}

/// The calls of commits, of which `metas` are in order from the seq `start` on, and `places` are in force at one of them.
/// `n log n` in those.
pub(crate) fn of_commits(
    database: &mut dyn Database,
    start: i64,
    metas: Vec<Meta>,
    places: &[Placement],
) -> Result<Vec<CommitCall>> {
    let units = newest_units(start, metas.len(), places);
    let all = units
        .iter()
        .flat_map(|units| units.newest.iter().chain(&units.last));
    let all: BTreeSet<i64> = all.copied().collect();
    let nodes = nodes(database, &all.into_iter().collect::<Vec<_>>())?;
    let of_unit = |unit: &i64| nodes.get(unit).cloned().unwrap_or_default();
    let calls = metas
        .into_iter()
        .zip(units)
        .map(|(meta, units)| CommitCall {
            meta,
            newest: units.newest.iter().map(of_unit).collect(),
            last: units.last.as_ref().map(of_unit).unwrap_or_default(),
        });
    Ok(calls.collect())
}

fn newest_units(start: i64, count: usize, places: &[Placement]) -> Vec<NewestUnits> {
    let below = |rank: i64| places.iter().filter(move |place| place.order.rank == rank);
    let mut starting: Vec<&Placement> = below(1).chain(below(2)).collect();
    let mut ending = starting.clone();
    starting.sort_by_key(|place| place.first_seq);
    ending.sort_by_key(|place| place.last_seq);
    let (mut starting, mut ending) = (
        starting.into_iter().peekable(),
        ending.into_iter().peekable(),
    );
    // Those in force, below `^seq` and below `^ah`.
    let mut in_force: [BTreeMap<&Order, &Placement>; 2] = Default::default();
    let mut found = Vec::with_capacity(count);
    for seq in (start..).take(count) {
        while let Some(place) = ending.next_if(|place| place.last_seq < seq) {
            in_force[usize::from(place.order.rank == 2)].remove(&place.order);
        }
        while let Some(place) = starting.next_if(|place| place.first_seq <= seq) {
            if place.last_seq >= seq {
                in_force[usize::from(place.order.rank == 2)].insert(&place.order, place);
            }
        }
        let [turns, heads] = &in_force;
        let turn = turns.values().rfind(|place| place.kind == UnitKind::Turn);
        found.push(NewestUnits {
            newest: turn
                .into_iter()
                .chain(heads.values())
                .map(|place| place.unit)
                .collect(),
            last: turns.values().next_back().map(|place| place.unit),
        });
    }
    found
}

/// The blocks of units and the nodes of their replies, in document order.
fn nodes(database: &mut dyn Database, units: &[i64]) -> Result<HashMap<i64, Arc<[CallNode]>>> {
    let mut found: HashMap<i64, Vec<CallNode>> = HashMap::new();
    for units in units.chunks(TOGETHER) {
        let (list, values) = parameters(units);
        let sql = format!(
            "select n.unit_id, n.class, n.created_at_ns, n.created_at_iso, n.present, n.extra, a.text, n.role \
             from node n left join attr a on a.unit_id = n.unit_id and a.pre = n.pre and a.name = 'data_reply' \
             and a.ordinal = -1 and a.type in ('int', 'real') where n.unit_id in ({list}) \
             and (n.class = 'cb' or a.text is not null) order by n.unit_id, n.pre"
        );
        database.query(&sql, &values, &mut |row| {
            found.entry(int(row, 0)?).or_default().push(node(row)?);
            Ok(())
        })?;
    }
    Ok(found
        .into_iter()
        .map(|(unit, nodes)| (unit, nodes.into()))
        .collect())
}

fn node(row: &dyn ResultRow) -> Result<CallNode> {
    let time = if int(row, 4)? & present::CREATED_AT_ISO != 0 {
        match row.text(3)? {
            Some(time) => Some(time.into()),
            None => Some(rfc3339_of_nanos(int(row, 2)?).into()),
        }
    } else {
        // A value in another spelling than the column's.
        let extra = row.text(5)?.map(members).unwrap_or_default();
        let time = get(&extra, "created_at_iso").and_then(string);
        time.map(|time| time.into_owned().into_boxed_str())
    };
    Ok(CallNode {
        is_block: text(row, 1)? == "cb",
        is_of_model: row.text(7)?.is_some_and(is_of_model),
        reply: row.text(6)?.map(Into::into),
        time,
    })
}
