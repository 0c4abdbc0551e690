//! What changed between the lists of two snapshots (LANGUAGE §8, STORE §5).

use crate::query::ir::{RangeAnswer, SelectorQuery};

use super::error::Refused;
use super::order::{Arrangement, OrderKeys};
use super::predicate::{NeededRows, Predicates, ttl};
use super::tables::Tables;
use super::words::{CommonTables, SelectQuery, any};

/// Adds the pairs of snapshots and what changed in each, and returns the end of the statement.
pub(super) fn changes(
    query: &SelectorQuery,
    tables: &Tables,
    listed: &str,
    with: &mut CommonTables,
) -> SelectQuery {
    with.add("pairs", pairs(query.controls.mode));
    with.add_union("sides", sides());
    with.add("changes", unlike_rows(listed));
    end(tables, "d.ord")
}

/// The end of a statement whose rows are changes: those of a pair by kind, then in an order.
fn end(tables: &Tables, order: &str) -> SelectQuery {
    let session = tables.table("session");
    let place = format!(
        "row_number() over (partition by d.session_id order by d.newer desc, \
         case d.change when 'added' then 0 when 'removed' then 1 else 2 end, {order}) as ord"
    );
    SelectQuery::new("z.name as session, d.newer, d.older, d.change, d.id")
        .and(place)
        .from("changes d")
        .from(format!("join {session} z on z.session_id = d.session_id"))
        .end("order by session, ord")
}

fn pairs(mode: RangeAnswer) -> SelectQuery {
    match mode {
        RangeAnswer::Reduce => SelectQuery::new("session_id, max(seq) as newer, min(seq) as older")
            .from("asked")
            .end("group by session_id")
            .end("having max(seq) > min(seq)"),
        RangeAnswer::Pairwise | RangeAnswer::Union | RangeAnswer::Latest => {
            SelectQuery::new("a.session_id, a.seq as newer, b.seq as older")
                .from("asked a")
                .from("join asked b on b.session_id = a.session_id and b.seq = a.seq - 1")
        }
    }
}

/// Each pair twice, once for either of its snapshots.
fn sides() -> Vec<SelectQuery> {
    let side = |end: &str| {
        SelectQuery::new(format!("session_id, newer, older, {end} as seq")).from("pairs")
    };
    vec![side("newer"), side("older")]
}

/// The rows of the two lists of a pair by their nodes: in one of the lists, or in both and otherwise. The lists
/// are read in one place, since SQLite writes them out wherever they are named.
fn unlike_rows(listed: &str) -> SelectQuery {
    let differs =
        |column: &str| format!("count(m.{column}) = 1 or min(m.{column}) <> max(m.{column})");
    let differences = ["version", "parent", "ttl"].map(differs);
    SelectQuery::new("p.session_id, p.newer, p.older")
        .and("case when count(*) = 2 then 'changed' when max(p.seq) = p.newer then 'added' else 'removed' end as change")
        .and("m.id")
        .and("coalesce(max(case when p.seq = p.newer then m.ord end), max(m.ord)) as ord")
        .from("sides p")
        .from(format!("join {listed} m on m.session_id = p.session_id and m.seq = p.seq"))
        .end("group by p.session_id, p.newer, p.older, m.id")
        .end(format!("having {}", any(["count(*) = 1".to_owned()].into_iter().chain(differences))))
}

/// As [`changes`] between neighbours, of units that are queried once each: only where the version of a unit
/// begins or ends can rows come or go, so a pair reads nothing else. A ttl that counts down changes with each
/// snapshot, and the parent of a unit's top node with the root or `^seq`.
pub(super) fn changes_of_units(
    query: &SelectorQuery,
    tables: &Tables,
    found: &str,
    needs: &mut NeededRows,
    with: &mut CommonTables,
) -> Result<SelectQuery, Refused> {
    let (matched, order) = matched_units(query, tables, found, needs)?;
    with.add("tops", tops(tables));
    with.add("matched", matched);
    with.add("moved", moved());
    let keys = order.columns("m");
    let parts = vec![came(&keys), went(&keys), counted(&keys), carried(&keys)];
    with.add_union("changes", parts);
    Ok(end(tables, &order.by("d")))
}

/// The matches, each with the first and the last snapshot of its version, and the keys of their order.
fn matched_units(
    query: &SelectorQuery,
    tables: &Tables,
    found: &str,
    needs: &mut NeededRows,
) -> Result<(SelectQuery, OrderKeys), Refused> {
    let mut predicates = Predicates::new(tables.dialect, tables.table("attr"), false, "f");
    let node = tables.join_node("n", "f", "f.unit_id", "n.pre = f.pre");
    let parent = tables.join_node("np", "f", "f.unit_id", "np.pre = n.parent_pre");
    // The parent of a top node is in another unit: which it is in the first and in the last snapshot.
    let above = |alias: &str, at: &str| {
        format!(
            "left join tops {alias} on {alias}.session_id = f.session_id and n.parent_pre is null \
             and {alias}.class = case f.rank when 0 then '' when 1 then '^seq' else '^root' end \
             and {alias}.begins <= f.{at} and {alias}.ends >= f.{at}"
        )
    };
    let mut matched = SelectQuery::new(
        "f.session_id, f.first_seq as begins, f.seq as ends, f.id, f.rank, n.class, n.version, \
         n.parent_pre, coalesce(np.id, t.id) as parent, coalesce(np.id, u.id) as last_parent, \
         n.ttl, n.expires",
    )
    .from(format!("{found} f"))
    .from(tables.ordered(&node))
    .from(format!("left {parent}"))
    .from(above("t", "first_seq"))
    .from(above("u", "seq"))
    .only("f.id is not null");
    for test in &query.filters {
        matched.add_filter(predicates.test(test)?);
    }
    let order = OrderKeys::add(Arrangement::from_query(query), &mut matched);
    matched.from.extend(tables.joins(predicates.needs, "f"));
    needs.add(predicates.needs);
    Ok((matched, order))
}

/// The root and the `^seq` node of each version of a preamble.
fn tops(tables: &Tables) -> SelectQuery {
    let node = tables.join_node("x", "r", "r.unit_id", "x.class in ('^root', '^seq')");
    SelectQuery::new("r.session_id, r.first_seq as begins, r.seq as ends, x.class, x.id")
        .from("placed r")
        .from(node)
        .only("r.rank = 0")
}

/// The snapshots in which the root or `^seq` has another id than in the one before.
fn moved() -> SelectQuery {
    SelectQuery::new("a.session_id, a.begins as newer, a.class")
        .from("tops a")
        .from(
            "join tops b on b.session_id = a.session_id and b.class = a.class \
             and b.ends = a.begins - 1",
        )
        .only("b.id <> a.id")
}

/// Whether two values differ, where null is a value.
fn unlike(a: &str, b: &str) -> String {
    format!("{a} <> {b} or ({a} is null) <> ({b} is null)")
}

/// A change of `m`, with the keys of its order.
fn change(newer: &str, kind: &str, keys: &str) -> SelectQuery {
    let pair = format!("m.session_id, {newer} as newer, {newer} - 1 as older");
    SelectQuery::new(format!("{pair}, {kind} as change, m.id, {keys}")).from("matched m")
}

/// The rows of versions that begin, which are new or differ from the version before.
fn came(keys: &str) -> SelectQuery {
    let kind = "case when o.id is null then 'added' else 'changed' end";
    let differences = [
        "o.id is null".to_owned(),
        unlike("m.version", "o.version"),
        unlike("m.parent", "o.last_parent"),
        unlike(&ttl("m", "a"), &ttl("o", "e")),
    ];
    change("m.begins", kind, keys)
        .from("join asked a on a.session_id = m.session_id and a.seq = m.begins")
        .from("join asked e on e.session_id = m.session_id and e.seq = m.begins - 1")
        .from(
            "left join matched o on o.session_id = m.session_id and o.id = m.id \
             and o.ends = m.begins - 1",
        )
        .only(any(differences))
}

/// The rows of versions that end, and do not go on in another one.
fn went(keys: &str) -> SelectQuery {
    change("(m.ends + 1)", "'removed'", keys)
        .from("join asked a on a.session_id = m.session_id and a.seq = m.ends + 1")
        .from(
            "left join matched o on o.session_id = m.session_id and o.id = m.id \
             and o.begins = m.ends + 1",
        )
        .only("o.id is null")
}

/// The rows of versions that go on, whose ttl counts down.
fn counted(keys: &str) -> SelectQuery {
    change("a.seq", "'changed'", keys)
        .from(
            "join asked a on a.session_id = m.session_id and a.seq > m.begins and a.seq <= m.ends",
        )
        .from("join asked e on e.session_id = m.session_id and e.seq = a.seq - 1")
        .only("m.expires is not null")
        .only(format!("{} <> {}", ttl("m", "a"), ttl("m", "e")))
}

/// The top nodes of versions that go on, whose parent, the root or `^seq`, has another id.
fn carried(keys: &str) -> SelectQuery {
    change("v.newer", "'changed'", keys)
        .from(
            "join moved v on v.session_id = m.session_id and v.newer > m.begins \
             and v.newer <= m.ends",
        )
        .only("m.parent_pre is null")
        .only("v.class = case m.rank when 0 then '' when 1 then '^seq' else '^root' end")
}
