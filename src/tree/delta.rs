//! A delta: how a snapshot differs from an earlier one (RUNTIME §1). [`super::patch`] applies it.

use std::sync::Arc;

use super::check;
use super::draft::TreeDraft;
use super::fault::{Faults, TextPosition};
use super::model::{NodeHeaders, Tree};
use super::payload::write_record;
use crate::json::JsonValue;

/// The difference to the snapshot of cycle `base`: first `replace`, then `remove`.
#[derive(Debug)]
pub struct TreeDelta {
    pub base: i64,
    /// Nodes that are added, moved or replaced.
    pub replace: Patch,
    /// Ids whose subtrees are removed.
    pub remove: Vec<Box<str>>,
    /// The positions of all of these in the text.
    pub(crate) positions: DeltaPositions,
}

/// Positions of a delta in the text of its document, for messages.
#[derive(Debug, Default)]
pub(crate) struct DeltaPositions {
    pub(crate) base: TextPosition,
    pub(crate) replace: Vec<TextPosition>,
    pub(crate) remove: Vec<TextPosition>,
}

/// Nodes with the ids of their parents, in the order of the text.
#[derive(Debug, Default)]
pub struct Patch {
    /// The nodes: `parent` is `NONE`, `end` the next row, `level` 0, and the class not set (a
    /// node without nodeType takes it from its place in the tree).
    pub nodes: Tree,
    /// The id of each node's parent; `None` for the root.
    pub parents: Vec<Option<Box<str>>>,
}

impl TreeDelta {
    pub fn new(base: i64, replace: Patch, remove: Vec<Box<str>>) -> Self {
        Self {
            base,
            replace,
            remove,
            positions: DeltaPositions::default(),
        }
    }
}

impl Patch {
    /// Adds a node below `parent`. `fields` are those of its payload record, sorted by name. Linear in the node.
    pub fn push<'f>(
        &mut self,
        parent: Option<&str>,
        node: NodeHeaders<'_>,
        fields: impl Iterator<Item = (&'f str, JsonValue<'f>)> + Clone,
    ) {
        push_row(&mut self.nodes, node, fields);
        self.parents.push(parent.map(Into::into));
    }

    /// Takes the parents from the `parent_id` members and reports duplicate ids. Also returns
    /// the offset of every node in the text.
    pub(crate) fn finish(draft: TreeDraft<'_>, faults: &mut Faults) -> (Self, Vec<usize>) {
        let TreeDraft {
            tree: mut nodes,
            payload,
            starts,
            claims,
        } = draft;
        nodes.payload = Arc::new(payload);
        check::check_ids(&nodes, &starts, faults);
        let mut parents = vec![None; nodes.rows.len()];
        for claim in claims {
            parents[claim.row as usize] = Some(claim.id.decode().into());
        }
        (Self { nodes, parents }, starts)
    }
}

/// As [`Tree::push`], with the fields of the node's payload record, sorted by name. Linear in the node.
pub fn push_row<'f>(
    tree: &mut Tree,
    node: NodeHeaders<'_>,
    fields: impl Iterator<Item = (&'f str, JsonValue<'f>)> + Clone,
) {
    let record = write_record(Arc::make_mut(&mut tree.payload), fields);
    tree.push(node, record);
}
