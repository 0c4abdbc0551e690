//! Copies snapshots back to trees, whole or in part.

use std::sync::Arc;

use super::{NodeRef, Snapshot};
use crate::tree::payload::copy_record;
use crate::tree::{NONE, Row, Tree};

#[doc(hidden)]
impl Snapshot {
    /// The tree of this snapshot, equal to the one it was made from; ttls are those of its cycle.
    /// Linear in the nodes.
    pub fn to_tree(&self) -> Tree {
        let mut copy = TreeBuilder::default();
        self.nodes()
            .for_each(|node| copy.push_at(node, self.cycle()));
        copy.finish()
    }
}

/// A tree under construction.
#[derive(Default)]
pub(super) struct TreeBuilder {
    tree: Tree,
    /// The bytes of [`Tree::payload`] to be.
    payload: String,
    /// The open rows, by level.
    open: Vec<u32>,
}

impl TreeBuilder {
    /// Appends a node with the ttl it has in `cycle`, its snapshot's or a later one in which ttls have
    /// counted down. Nodes come in document order, after their parents.
    pub(super) fn push_at(&mut self, node: NodeRef<'_>, cycle: i64) {
        // The ttl as the later cycle reads it. A stored ttl that is above 0 counts from here on, too: the
        // writer that asks for a later cycle is one whose ttls all count down.
        let passed = cycle.saturating_sub(node.snapshot_cycle());
        let ttl = node
            .ttl()
            .map_or(0, |ttl| ttl.saturating_sub(passed).max(0));
        // Document order closes every subtree that is at this level or deeper, so the parent is what is left
        // open last.
        self.close(node.level() as usize);
        let tree = &mut self.tree;
        let row = tree.rows.len() as u32;
        let id = tree.ids.len() as u32;
        tree.ids.push_str(node.id());
        let payload = copy_record(&mut self.payload, node.record());
        let code = |dictionary: &mut crate::tree::Dictionary, value: Option<&str>| {
            value.map_or(NONE, |value| dictionary.intern(value))
        };
        tree.rows.push(Row {
            parent: self.open.last().copied().unwrap_or(NONE),
            end: row + 1,
            level: node.level(),
            class: node.class(),
            present: node.present(),
            id: (id, tree.ids.len() as u32),
            payload,
            node_type: code(&mut tree.types, node.node_type()),
            role: code(&mut tree.roles, node.role()),
            kind: code(&mut tree.kinds, node.kind()),
            key: code(&mut tree.keys, node.key()),
            offset: node.offset(),
            ttl,
            priority: node.priority(),
            cycle: node.cycle().unwrap_or(0),
            created_at_ns: node.created_at_ns(),
            creation_index: node.creation_index(),
        });
        self.open.push(row);
    }

    /// The tree of all nodes appended.
    pub(super) fn finish(mut self) -> Tree {
        self.close(0);
        self.tree.payload = Arc::new(self.payload);
        self.tree
    }

    /// Closes the subtrees of rows at `level` and below.
    fn close(&mut self, level: usize) {
        let end = self.tree.rows.len() as u32;
        for row in self.open.drain(level.min(self.open.len())..) {
            self.tree.rows[row as usize].end = end;
        }
    }
}
