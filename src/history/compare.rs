//! Which nodes of two snapshots are in one of them only, and which differ.

use super::change::{Change, change_of, counterpart};
use crate::index::{Bits, NodeRef, Snapshot};
use crate::query::exec::MatchedRows;
use crate::support::cancel::ensure;

/// Nodes that are compared between two checks of the cancel token.
const ROWS: usize = 1024;

pub(super) struct MatchedNodes<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// Their rows, also as a set; `None` if all nodes are compared.
    rows: Option<(&'a MatchedRows, Bits)>,
}

impl<'a> MatchedNodes<'a> {
    /// All nodes, or those of some rows. Linear in the rows, with one bit for each row number between the first and the last.
    pub(super) fn new(snapshot: &'a Snapshot, rows: Option<&'a MatchedRows>) -> Self {
        let rows = rows.map(|rows| {
            let (mut first, mut last) = (u32::MAX, 0);
            rows.for_each(|row| {
                first = first.min(row);
                last = last.max(row);
            });
            let mut bits = Bits::new(first.min(last)..last.saturating_add(1));
            rows.for_each(|row| bits.insert(row));
            (rows, bits)
        });
        Self { snapshot, rows }
    }

    fn iter(&self) -> impl Iterator<Item = NodeRef<'a>> + use<'a> {
        let snapshot = self.snapshot;
        let some = self.rows.as_ref().map(|(rows, _)| rows.iter());
        // One of the two.
        let all = some.is_none().then(|| snapshot.nodes());
        let some = some.into_iter().flatten();
        let some = some.map(|row| snapshot.node(row));
        all.into_iter().flatten().chain(some)
    }

    fn counterpart(&self, node: NodeRef<'_>) -> Option<NodeRef<'a>> {
        let rows = self.rows.as_ref();
        let is_in = |other: &NodeRef<'_>| rows.is_none_or(|(_, bits)| bits.contains(other.row()));
        counterpart(node, self.snapshot).filter(is_in)
    }
}

pub(super) struct SnapshotComparison<'a> {
    /// In the newer only, in its order.
    pub(super) added: Vec<NodeRef<'a>>,
    /// In the older only, in its order.
    pub(super) removed: Vec<NodeRef<'a>>,
    /// In both and different: the newer, the older, and how, in the order of the newer.
    pub(super) changed: Vec<(NodeRef<'a>, NodeRef<'a>, Change)>,
}

impl<'a> SnapshotComparison<'a> {
    pub(super) fn new(newer: &MatchedNodes<'a>, older: &MatchedNodes<'a>) -> Self {
        let (mut added, mut changed) = (Vec::new(), Vec::new());
        for (at, node) in newer.iter().enumerate() {
            if at % ROWS == 0 {
                ensure();
            }
            match older.counterpart(node) {
                None => added.push(node),
                Some(other) => {
                    let change = change_of(node, other);
                    changed.extend(change.map(|change| (node, other, change)));
                }
            }
        }
        let removed = older.iter();
        let removed = removed.filter(|node| newer.counterpart(*node).is_none());
        Self {
            removed: removed.collect(),
            added,
            changed,
        }
    }
}

pub(super) fn ids(nodes: &[NodeRef<'_>]) -> Vec<String> {
    nodes.iter().map(|node| node.id().to_owned()).collect()
}
