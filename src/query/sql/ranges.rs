//! What changed between the lists of two snapshots (LANGUAGE §8, STORE §5).

use crate::query::ir::{Query, RangeAnswer};

use super::error::Refused;
use super::order::Arrangement;
use super::predicate::{NeededRows, Predicates, ttl};
use super::tables::Tables;
use super::words::{CommonTables, SelectQuery, any, names};

/// Adds the pairs of snapshots and what changed in each, and returns the end of the statement.
pub(super) fn changes(
    query: &Query,
    tables: &Tables,
    listed: &str,
    with: &mut CommonTables,
) -> SelectQuery {
    with.add("pairs", pairs(query.controls.mode));
    with.add_union("changes", vec![newer(listed), removed(listed)]);
    let session = tables.table("session");
    let mut columns = names(&[
        "z.name as session",
        "d.newer",
        "d.older",
        "d.change",
        "d.id",
    ]);
    columns.push(
        "row_number() over (partition by d.session_id order by d.newer desc, \
         case d.change when 'added' then 0 when 'removed' then 1 else 2 end, d.ord) as ord"
            .to_owned(),
    );
    SelectQuery {
        columns,
        from: vec![
            "changes d".to_owned(),
            format!("join {session} z on z.session_id = d.session_id"),
        ],
        end: names(&["order by session, ord"]),
        ..SelectQuery::default()
    }
}

/// The pairs: neighbours, or the two ends.
fn pairs(mode: RangeAnswer) -> SelectQuery {
    match mode {
        RangeAnswer::Reduce => SelectQuery {
            columns: names(&["session_id", "max(seq) as newer", "min(seq) as older"]),
            from: names(&["asked"]),
            end: names(&["group by session_id", "having max(seq) > min(seq)"]),
            ..SelectQuery::default()
        },
        RangeAnswer::Pairwise | RangeAnswer::Union | RangeAnswer::Latest => SelectQuery {
            columns: names(&["a.session_id", "a.seq as newer", "b.seq as older"]),
            from: names(&[
                "asked a",
                "join asked b on b.session_id = a.session_id and b.seq = a.seq - 1",
            ]),
            ..SelectQuery::default()
        },
    }
}

/// The rows of the newer lists that the older ones do not have, or have otherwise.
fn newer(listed: &str) -> SelectQuery {
    let differs = |column: &str| unlike(&format!("m.{column}"), &format!("o.{column}"));
    let kind = "case when o.id is null then 'added' else 'changed' end as change";
    let differences = [
        "o.id is null".to_owned(),
        differs("version"),
        differs("parent"),
        differs("ttl"),
    ];
    SelectQuery {
        columns: names(&["p.session_id", "p.newer", "p.older", kind, "m.id", "m.ord"]),
        from: vec![
            "pairs p".to_owned(),
            format!("join {}", at(listed, "m", "newer")),
            format!("left join {} and o.id = m.id", at(listed, "o", "older")),
        ],
        filters: vec![any(differences)],
        ..SelectQuery::default()
    }
}

/// The rows of the older lists that the newer ones do not have.
fn removed(listed: &str) -> SelectQuery {
    let kind = "'removed' as change";
    SelectQuery {
        columns: names(&["p.session_id", "p.newer", "p.older", kind, "o.id", "o.ord"]),
        from: vec![
            "pairs p".to_owned(),
            format!("join {}", at(listed, "o", "older")),
            format!("left join {} and m.id = o.id", at(listed, "m", "newer")),
        ],
        filters: names(&["m.id is null"]),
        ..SelectQuery::default()
    }
}

/// The list of an end of a pair.
fn at(listed: &str, alias: &str, end: &str) -> String {
    format!("{listed} {alias} on {alias}.session_id = p.session_id and {alias}.seq = p.{end}")
}

/// As [`changes`] between neighbours, of units that are queried once each: only where the version of a unit
/// begins or ends can rows come or go, so a pair reads nothing else. A ttl that counts down changes with each
/// snapshot, and the parent of a unit's top node with the root or `^seq`.
pub(super) fn changes_of_units(
    query: &Query,
    tables: &Tables,
    found: &str,
    needs: &mut NeededRows,
    with: &mut CommonTables,
) -> Result<SelectQuery, Refused> {
    let (matched, order) = matched_units(query, tables, found, needs)?;
    with.add("tops", tops(tables));
    with.add("matched", matched);
    with.add("moved", moved());
    let keys: Vec<&str> = order.iter().map(|(key, _)| &**key).collect();
    let parts = vec![came(&keys), went(&keys), counted(&keys), carried(&keys)];
    with.add_union("changes", parts);

    let session = tables.table("session");
    let order: Vec<String> = order
        .iter()
        .map(|(key, back)| format!("d.{key}{back}"))
        .collect();
    let mut columns = names(&[
        "z.name as session",
        "d.newer",
        "d.older",
        "d.change",
        "d.id",
    ]);
    columns.push(format!(
        "row_number() over (partition by d.session_id order by d.newer desc, \
         case d.change when 'added' then 0 when 'removed' then 1 else 2 end, {}) as ord",
        order.join(", ")
    ));
    Ok(SelectQuery {
        columns,
        from: vec![
            "changes d".to_owned(),
            format!("join {session} z on z.session_id = d.session_id"),
        ],
        end: names(&["order by session, ord"]),
        ..SelectQuery::default()
    })
}

/// The names of the keys of an order, each with what comes after it.
type Keys = Vec<(String, &'static str)>;

/// The matches, each with the first and the last snapshot of its version, and the keys of their order.
fn matched_units(
    query: &Query,
    tables: &Tables,
    found: &str,
    needs: &mut NeededRows,
) -> Result<(SelectQuery, Keys), Refused> {
    let mut predicates = Predicates::new(tables.dialect, tables.table("attr"), false);
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
    let mut matched = SelectQuery {
        columns: names(&[
            "f.session_id",
            "f.first_seq as begins",
            "f.seq as ends",
            "f.id",
            "f.rank",
            "n.class",
            "n.version",
            "n.parent_pre",
            "coalesce(np.id, t.id) as parent",
            "coalesce(np.id, u.id) as last_parent",
            "n.ttl",
            "n.expires",
        ]),
        from: vec![
            format!("{found} f"),
            tables.ordered(&node),
            format!("left {parent}"),
            above("t", "first_seq"),
            above("u", "seq"),
        ],
        filters: names(&["f.id is not null"]),
        ..SelectQuery::default()
    };
    for test in &query.filters {
        let condition = predicates.test(test)?;
        matched.add_filter(condition);
    }
    let mut order = Vec::new();
    for (number, key) in (1..).zip(Arrangement::of(query).keys()) {
        let (key, back) = match key.strip_suffix(" desc") {
            Some(key) => (key, " desc"),
            None => (&*key, ""),
        };
        matched.columns.push(format!("{key} as k{number}"));
        order.push((format!("k{number}"), back));
    }
    matched.from.extend(tables.joins(predicates.needs, "f"));
    needs.add(predicates.needs);
    Ok((matched, order))
}

/// The root and the `^seq` node of each version of a preamble.
fn tops(tables: &Tables) -> SelectQuery {
    SelectQuery {
        columns: names(&[
            "r.session_id",
            "r.first_seq as begins",
            "r.seq as ends",
            "x.class",
            "x.id",
        ]),
        from: vec![
            "placed r".to_owned(),
            tables.join_node("x", "r", "r.unit_id", "x.class in ('^root', '^seq')"),
        ],
        filters: names(&["r.rank = 0"]),
        ..SelectQuery::default()
    }
}

/// The snapshots in which the root or `^seq` has another id than in the one before.
fn moved() -> SelectQuery {
    SelectQuery {
        columns: names(&["a.session_id", "a.begins as newer", "a.class"]),
        from: names(&[
            "tops a",
            "join tops b on b.session_id = a.session_id and b.class = a.class \
             and b.ends = a.begins - 1",
        ]),
        filters: names(&["b.id <> a.id"]),
        ..SelectQuery::default()
    }
}

/// Whether two values differ, of which null is one.
fn unlike(a: &str, b: &str) -> String {
    format!("{a} <> {b} or ({a} is null) <> ({b} is null)")
}

/// The columns of a change of `m`.
fn change(newer: &str, kind: &str, keys: &[&str]) -> Vec<String> {
    let mut columns = vec![
        "m.session_id".to_owned(),
        format!("{newer} as newer"),
        format!("{newer} - 1 as older"),
        format!("{kind} as change"),
        "m.id".to_owned(),
    ];
    columns.extend(keys.iter().map(|key| format!("m.{key}")));
    columns
}

/// The rows of versions that begin, which are new or differ from the version before.
fn came(keys: &[&str]) -> SelectQuery {
    let kind = "case when o.id is null then 'added' else 'changed' end";
    let differences = [
        "o.id is null".to_owned(),
        unlike("m.version", "o.version"),
        unlike("m.parent", "o.last_parent"),
        unlike(&ttl("m", "a"), &ttl("o", "e")),
    ];
    SelectQuery {
        columns: change("m.begins", kind, keys),
        from: names(&[
            "matched m",
            "join asked a on a.session_id = m.session_id and a.seq = m.begins",
            "join asked e on e.session_id = m.session_id and e.seq = m.begins - 1",
            "left join matched o on o.session_id = m.session_id and o.id = m.id \
             and o.ends = m.begins - 1",
        ]),
        filters: vec![any(differences)],
        ..SelectQuery::default()
    }
}

/// The rows of versions that end, and do not go on in another one.
fn went(keys: &[&str]) -> SelectQuery {
    SelectQuery {
        columns: change("(m.ends + 1)", "'removed'", keys),
        from: names(&[
            "matched m",
            "join asked a on a.session_id = m.session_id and a.seq = m.ends + 1",
            "left join matched o on o.session_id = m.session_id and o.id = m.id \
             and o.begins = m.ends + 1",
        ]),
        filters: names(&["o.id is null"]),
        ..SelectQuery::default()
    }
}

/// The rows of versions that go on, whose ttl counts down.
fn counted(keys: &[&str]) -> SelectQuery {
    SelectQuery {
        columns: change("a.seq", "'changed'", keys),
        from: names(&[
            "matched m",
            "join asked a on a.session_id = m.session_id and a.seq > m.begins and a.seq <= m.ends",
            "join asked e on e.session_id = m.session_id and e.seq = a.seq - 1",
        ]),
        filters: vec![
            "m.expires is not null".to_owned(),
            format!("{} <> {}", ttl("m", "a"), ttl("m", "e")),
        ],
        ..SelectQuery::default()
    }
}

/// The top nodes of versions that go on, whose parent, the root or `^seq`, has another id.
fn carried(keys: &[&str]) -> SelectQuery {
    SelectQuery {
        columns: change("v.newer", "'changed'", keys),
        from: names(&[
            "matched m",
            "join moved v on v.session_id = m.session_id and v.newer > m.begins and v.newer <= m.ends",
        ]),
        filters: names(&[
            "m.parent_pre is null",
            "v.class = case m.rank when 0 then '' when 1 then '^seq' else '^root' end",
        ]),
        ..SelectQuery::default()
    }
}
