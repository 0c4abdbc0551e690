//! Result order (LANGUAGE §6).

use std::cmp::Ordering;

use hashbrown::HashSet;

use super::rows::{MatchedRows, RowList};
use crate::index::{NodeRef, Snapshot};
use crate::query::ir::RowOrder;

/// Puts rows, given in document order, into the [order](crate::query::plan::Bound::order) of a bound plan.
pub(super) fn arrange(order: RowOrder, snapshot: &Snapshot, rows: MatchedRows) -> MatchedRows {
    if order == RowOrder::Pre || rows.len() < 2 {
        return rows;
    }
    let mut list: RowList = rows.iter().collect();
    let node = |row: u32| snapshot.node(row);
    match order {
        RowOrder::Pre => {}
        RowOrder::Default => list.sort_by(|&a, &b| key_order(node(a), node(b))),
        // Of two subtrees with the same last row, the deeper comes first.
        RowOrder::Post => {
            list.sort_by_key(|&row| (last_row(snapshot, row), std::cmp::Reverse(row)))
        }
        // Rows break ties: they are in document order.
        RowOrder::Bfs => list.sort_by_key(|&row| (node(row).level(), row)),
        RowOrder::Path => by_path(snapshot, &mut list),
        RowOrder::TurnDesc => list.sort_by_key(|&row| (depth_rank(snapshot.depth(row)), row)),
        RowOrder::TurnAsc => {
            list.sort_by_key(|&row| (std::cmp::Reverse(depth_rank(snapshot.depth(row))), row))
        }
    }
    MatchedRows::List(list)
}

fn last_row(snapshot: &Snapshot, row: u32) -> u32 {
    let mut end = snapshot.end(row);
    // Row numbers between pieces belong to no node.
    while end > row + 1 {
        let last = end - 1;
        if snapshot.next_row(last) == Some(last) {
            return last;
        }
        end = last;
    }
    row
}

/// Key order: newest first by depth, creation time and creation index, then by id.
pub(crate) fn key_order(a: NodeRef<'_>, b: NodeRef<'_>) -> Ordering {
    depth_rank(a.depth())
        .cmp(&depth_rank(b.depth()))
        .then_with(|| b.created_at_ns().cmp(&a.created_at_ns()))
        .then_with(|| b.creation_index().cmp(&a.creation_index()))
        .then_with(|| a.id().cmp(b.id()))
}

/// Sort rank of a depth: 0, 1, 2, …, then negative depths, then none.
fn depth_rank(depth: Option<i64>) -> (u8, i64) {
    match depth {
        Some(depth) if depth >= 0 => (0, depth),
        Some(depth) => (1, depth),
        None => (2, 0),
    }
}

/// Sorts rows by their list of ids from the root; a list comes before its continuations. Walks the
/// rows and their ancestors, siblings by id: `O(n log n)` comparisons of ids in their number.
fn by_path(snapshot: &Snapshot, rows: &mut RowList) {
    // Collects the edges from the rows up to the root, each once, and sorts them by parent and id
    // of the child. A depth-first walk down these edges meets the rows in the order of their paths:
    // a node comes before its descendants, and siblings by id.
    let wanted: HashSet<u32> = rows.iter().copied().collect();
    let mut seen: HashSet<u32> = HashSet::with_capacity(wanted.len());
    let mut links: Vec<(u32, u32)> = Vec::with_capacity(wanted.len());
    let mut open = Vec::new();
    for &row in rows.iter() {
        let mut at = row;
        while seen.insert(at) {
            let Some(parent) = snapshot.parent(at) else {
                open.push(at);
                break;
            };
            links.push((parent, at));
            at = parent;
        }
    }
    let id = |row: u32| snapshot.node(row).id();
    links.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| id(a.1).cmp(id(b.1))));
    rows.clear();
    while let Some(row) = open.pop() {
        if wanted.contains(&row) {
            rows.push(row);
        }
        let start = links.partition_point(|&(parent, _)| parent < row);
        let below = links[start..].partition_point(|&(parent, _)| parent == row);
        let children = &links[start..start + below];
        open.extend(children.iter().rev().map(|&(_, child)| child));
    }
}
