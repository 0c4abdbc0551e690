//! Pairwise range diffs (LANGUAGE §8) by comparing whole snapshots, without any option.

use std::collections::BTreeSet;

use super::eval::{Eval, unique_and_window};
use super::json::Json;
use super::selector::{Edition, Mode, Sel, Time};
use super::tree::{Node, Session, Tree};

/// The snapshots a range names, newest first, and the warning if the range was cut.
pub(crate) fn snapshots(
    session: &Session,
    time: Time,
) -> Result<(Vec<usize>, Option<String>), &'static str> {
    const MISSING: &str = "E_SNAPSHOT_NOT_FOUND";
    let count = session.committed.len();
    let cut =
        |end: String| format!("the range reaches past the oldest snapshot and is cut to {end}");
    match time {
        Time::BackRange(a, b) => {
            let oldest = (count as u64).checked_sub(1).ok_or(MISSING)?;
            let (a, b) = (a.unwrap_or(oldest), b.unwrap_or(oldest));
            let (newer, older) = (a.min(b), a.max(b));
            if newer > oldest {
                return Err(MISSING);
            }
            let label = back_label(oldest);
            let warning = (older > oldest).then(|| cut(label));
            let backs = newer..=older.min(oldest);
            Ok((
                backs.map(|back| count - 1 - back as usize).collect(),
                warning,
            ))
        }
        Time::CycleRange(a, b) => {
            let (low, high) = (a.min(b), a.max(b));
            let wanted = |index: &usize| (low..=high).contains(&session.committed[*index].cycle);
            let found: Vec<usize> = (0..count).rev().filter(wanted).collect();
            if found.is_empty() {
                return Err(MISSING);
            }
            let oldest = session.committed[0].cycle;
            let warning = (low < oldest).then(|| cut(format!("@c{oldest}")));
            Ok((found, warning))
        }
        _ => panic!("not a range: {time:?}"),
    }
}

fn back_label(back: u64) -> String {
    if back == 0 {
        "@t0".to_owned()
    } else {
        format!("@t-{back}")
    }
}

/// The ids of a range as one list: for `union` the ids that match in any of its snapshots, for
/// `latest` those whose newest version in the range matches.
pub(crate) fn list(
    session: &Session,
    edition: Edition,
    sel: &Sel,
) -> Result<Vec<String>, &'static str> {
    let (found, _) = snapshots(session, sel.time)?;
    let mut settled: BTreeSet<&str> = BTreeSet::new();
    let mut rows: Vec<(&Tree, usize)> = Vec::new();
    for index in found {
        let tree = &session.committed[index];
        let eval = Eval {
            session,
            tree,
            edition,
        };
        let matched = eval.ordered(sel);
        rows.extend(
            matched
                .iter()
                .filter(|node| !settled.contains(tree.id(**node)))
                .map(|node| (tree, *node)),
        );
        if sel.controls.mode == Some(Mode::Latest) {
            settled.extend(tree.nodes.iter().map(|node| node.id.as_str()));
        } else {
            settled.extend(matched.iter().map(|node| tree.id(*node)));
        }
    }
    let rows = unique_and_window(rows, &sel.controls);
    Ok(rows
        .iter()
        .map(|(tree, node)| tree.id(*node).to_owned())
        .collect())
}

/// The whole `RangeDiffLatestResult`, as JSON without white space.
pub(crate) fn diff(
    session: &Session,
    edition: Edition,
    sel: &Sel,
    query: &str,
) -> Result<String, &'static str> {
    let (found, warning) = snapshots(session, sel.time)?;
    let reference = |index: usize| {
        let cycle = session.committed[index].cycle;
        let back = (session.committed.len() - 1 - index) as i64;
        let (kind, value, label) = match sel.time {
            Time::CycleRange(..) => ("c", cycle, format!("@c{cycle}")),
            _ => ("t", -back, back_label(back as u64)),
        };
        object([
            ("kind", Json::text(kind)),
            ("value", Json::int(value)),
            ("label", Json::text(&label)),
            ("cycle", Json::int(cycle)),
        ])
    };
    let matched = |index: usize| {
        let tree = &session.committed[index];
        let rows = Eval {
            session,
            tree,
            edition,
        }
        .ordered(sel);
        let rows = rows.into_iter().map(|node| (tree, node)).collect();
        unique_and_window(rows, &sel.controls)
    };
    let mut diffs = Vec::new();
    let ends = [found[0], found[found.len() - 1]];
    let reduced = sel.controls.mode == Some(Mode::Reduce);
    let pairs: Vec<&[usize]> = match reduced {
        true if found.len() > 1 => vec![&ends],
        true => Vec::new(),
        false => found.windows(2).collect(),
    };
    for pair in pairs {
        let (newer, older) = (matched(pair[0]), matched(pair[1]));
        let Json::Obj(mut members) = compare(&newer, &older) else {
            unreachable!("an object")
        };
        members.insert(0, ("from".to_owned(), reference(pair[0])));
        members.insert(1, ("to".to_owned(), reference(pair[1])));
        diffs.push(Json::Obj(members));
    }
    let snapshots = found.iter().map(|index| reference(*index)).collect();
    let mut members = vec![
        ("query".to_owned(), Json::text(query)),
        ("snapshots".to_owned(), Json::List(snapshots)),
        ("diffs".to_owned(), Json::List(diffs)),
        (
            "mode".to_owned(),
            Json::text(if reduced { "reduce" } else { "pairwise" }),
        ),
    ];
    if let Some(warning) = warning {
        members.push((
            "warnings".to_owned(),
            Json::List(vec![Json::text(&warning)]),
        ));
    }
    Ok(Json::Obj(members).write())
}

fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    Json::Obj(
        members
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

fn compare(newer: &[(&Tree, usize)], older: &[(&Tree, usize)]) -> Json {
    let id = |row: &(&Tree, usize)| row.0.id(row.1).to_owned();
    let find =
        |rows: &[(&Tree, usize)], wanted: &str| rows.iter().position(|row| id(row) == wanted);
    let mut added = Vec::new();
    let mut changed = Vec::new();
    for row in newer {
        match find(older, &id(row)) {
            None => added.push(Json::Str(id(row))),
            Some(other) => changed.extend(change(*row, older[other])),
        }
    }
    let removed = older.iter().filter(|row| find(newer, &id(row)).is_none());
    object([
        ("added_ids", Json::List(added)),
        (
            "removed_ids",
            Json::List(removed.map(|row| Json::Str(id(row))).collect()),
        ),
        ("changed", Json::List(changed)),
    ])
}

/// The headers a diff compares, in addition to the custom fields.
const HEADERS: [&str; 15] = [
    "cadence",
    "content_hash",
    "created_at_iso",
    "created_at_ns",
    "creation_index",
    "cycle",
    "key",
    "kind",
    "nodeType",
    "offset",
    "parent",
    "priority",
    "role",
    "tags",
    "ttl",
];

/// Fields that no diff shows under their own name.
const UNTRACKED: [&str; 4] = ["content", "tag", "cad", "parent_id"];

fn change(newer: (&Tree, usize), older: (&Tree, usize)) -> Option<Json> {
    let (new, old) = (&newer.0.nodes[newer.1], &older.0.nodes[older.1]);
    let mut names: BTreeSet<&str> = HEADERS.into();
    for (name, _) in new.fields.iter().chain(&old.fields) {
        names.insert(name);
    }
    let mut fields = Vec::new();
    let mut delta = Vec::new();
    for name in names {
        if UNTRACKED.contains(&name) {
            continue;
        }
        let (from, to) = if name == "content_hash" {
            hashes(new, old)
        } else {
            (tracked(newer, name), tracked(older, name))
        };
        let same = match name {
            "nodeType" => {
                let one = |json: &Json| super::compare::one_vocabulary(json.as_str().unwrap());
                one(&from) == one(&to)
            }
            _ => from.same(&to),
        };
        if !same {
            fields.push(Json::text(name));
            if from.is_scalar() && to.is_scalar() {
                delta.push((name.to_owned(), object([("from", from), ("to", to)])));
            }
        }
    }
    if fields.is_empty() {
        return None;
    }
    let mut members = vec![
        ("id".to_owned(), Json::text(&new.id)),
        ("fields".to_owned(), Json::List(fields)),
    ];
    if !delta.is_empty() {
        members.push(("delta".to_owned(), Json::Obj(delta)));
    }
    Some(Json::Obj(members))
}

/// The computed hashes if they differ, otherwise the stored ones.
fn hashes(new: &Node, old: &Node) -> (Json, Json) {
    let (a, b) = (new.computed_hash(), old.computed_hash());
    if a != b {
        return (Json::Str(a), Json::Str(b));
    }
    let stored = |node: &Node| node.field("content_hash").cloned().unwrap_or(Json::Null);
    (stored(new), stored(old))
}

fn tracked((tree, node): (&Tree, usize), name: &str) -> Json {
    let n = &tree.nodes[node];
    match name {
        "parent" => n
            .parent
            .map_or(Json::Null, |parent| Json::text(tree.id(parent))),
        "nodeType" => Json::Str(n.read_type()),
        "tags" => match n.tags() {
            Some(tags) => Json::List(tags.into_iter().map(Json::Str).collect()),
            None => Json::Null,
        },
        "cadence" => n
            .field("cadence")
            .or_else(|| n.field("cad"))
            .cloned()
            .unwrap_or(Json::Null),
        "offset" | "priority" | "created_at_ns" | "creation_index" => {
            n.field(name).cloned().unwrap_or(Json::int(0))
        }
        other => n.field(other).cloned().unwrap_or(Json::Null),
    }
}
