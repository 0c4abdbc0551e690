//! Copies snapshots back to trees, whole or in part.

use super::{NodeRef, Snapshot};
use crate::tree::{Tree, TreeBuilder, header};

#[doc(hidden)]
impl Snapshot {
    /// The tree of this snapshot, equal to the one it was made from; ttls are those of its cycle. Linear in the nodes.
    pub fn to_tree(&self) -> Tree {
        let mut copy = TreeBuilder::default();
        self.nodes()
            .for_each(|node| push_node(&mut copy, node, self.cycle()));
        copy.finish()
    }
}

/// Appends a node with the ttl it has in `cycle`, its snapshot's or a later one in which ttls have counted down.
pub(super) fn push_node(copy: &mut TreeBuilder, node: NodeRef<'_>, cycle: i64) {
    // A stored ttl that is above 0 counts from here on, too: the writer that asks for a later cycle is one
    // whose ttls all count down.
    let passed = cycle.saturating_sub(node.snapshot_cycle());
    let mut headers = node.headers();
    let ttl = &mut headers.numbers[header::TTL];
    *ttl = ttl.saturating_sub(passed).max(0);
    copy.push(node.level(), node.class(), headers, node.record());
}
