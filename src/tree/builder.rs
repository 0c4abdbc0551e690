//! Builds a tree of nodes that come in document order.

use std::sync::Arc;

use super::model::{NONE, NodeClass, NodeHeaders, Present, Tree};
use super::payload::{NodeRecord, copy_record};

#[derive(Default)]
pub(crate) struct TreeBuilder {
    tree: Tree,
    /// The bytes of [`Tree::payload`] to be.
    payload: String,
    open: Vec<u32>,
}

impl TreeBuilder {
    /// Room for the nodes of two trees.
    pub(crate) fn reserve(&mut self, [one, other]: [&Tree; 2]) {
        self.tree.rows.reserve(one.rows.len() + other.rows.len());
        self.tree.ids.reserve(one.ids.len() + other.ids.len());
        self.payload
            .reserve(one.payload.len() + other.payload.len());
    }

    /// Adds a node, which comes after its parent.
    pub(crate) fn push(
        &mut self,
        level: u32,
        class: NodeClass,
        headers: NodeHeaders<'_>,
        record: NodeRecord<'_>,
    ) {
        // Document order closes every subtree that is at this level or deeper, so the parent is what is left
        // open last.
        self.close(level);
        let parent = self.open.last().copied().unwrap_or(NONE);
        self.open.push(self.tree.rows.len() as u32);
        let payload = copy_record(&mut self.payload, record);
        let row = self.tree.push(headers, payload);
        (row.parent, row.level, row.class) = (parent, level, class);
    }

    pub(crate) fn finish(mut self) -> Tree {
        self.close(0);
        self.tree.payload = Arc::new(self.payload);
        self.tree
    }

    fn close(&mut self, level: u32) {
        let end = self.tree.rows.len() as u32;
        for at in self.open.drain(self.open.len().min(level as usize)..) {
            let row = &mut self.tree.rows[at as usize];
            row.end = end;
            // A patch may put children into a node that was given an empty list of them.
            if end > at + 1 {
                row.present.0 &= !Present::EMPTY_CHILDREN;
            }
        }
    }
}
