//! A delta: how a snapshot differs from an earlier one (RUNTIME §1). [`super::patch`] applies it.

use std::sync::Arc;

use super::check;
use super::draft::Draft;
use super::fault::{Faults, Position};
use super::model::{Dictionary, NONE, NodeClass, Present, Row, Tree};
use super::payload::write_record;
use crate::json::JsonValue;

/// The difference to the snapshot of cycle `base`: first `replace`, then `remove`.
#[derive(Debug)]
pub struct Delta {
    /// The cycle of the base.
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
    /// The value of `base`.
    pub(crate) base: Position,
    /// The nodes of `replace`.
    pub(crate) replace: Vec<Position>,
    /// The ids of `remove`.
    pub(crate) remove: Vec<Position>,
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

/// A node for [`Patch::push`]: what a row of a tree holds, as borrowed text.
#[derive(Clone, Copy, Debug)]
pub struct PatchNode<'a> {
    /// The id.
    pub id: &'a str,
    /// The nodeType.
    pub node_type: Option<&'a str>,
    /// The role.
    pub role: Option<&'a str>,
    /// The kind.
    pub kind: Option<&'a str>,
    /// The key.
    pub key: Option<&'a str>,
    /// Which of the following are given.
    pub present: Present,
    /// The offset.
    pub offset: i64,
    /// The ttl as it reads in the new snapshot.
    pub ttl: i64,
    /// The priority.
    pub priority: i64,
    /// The introducing cycle.
    pub cycle: i64,
    /// Creation time in nanoseconds.
    pub created_at_ns: i64,
    /// Tie-breaker inside a cycle.
    pub creation_index: i64,
}

impl Delta {
    /// A delta that was not read from a text.
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
        node: PatchNode<'_>,
        fields: impl Iterator<Item = (&'f str, JsonValue<'f>)> + Clone,
    ) {
        push_row(&mut self.nodes, node, fields);
        self.parents.push(parent.map(Into::into));
    }

    /// Takes the parents from the `parent_id` members and reports duplicate ids. Also returns
    /// the offset of every node in the text.
    pub(crate) fn finish(draft: Draft<'_>, faults: &mut Faults) -> (Self, Vec<usize>) {
        let Draft {
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

/// Adds a row without a place: its parent, end, level and class are for the caller to set. `fields` are
/// those of its payload record, sorted by name. Linear in the node.
pub fn push_row<'f>(
    tree: &mut Tree,
    node: PatchNode<'_>,
    fields: impl Iterator<Item = (&'f str, JsonValue<'f>)> + Clone,
) {
    let payload = Arc::make_mut(&mut tree.payload);
    let id = tree.ids.len() as u32;
    tree.ids.push_str(node.id);
    let record = write_record(payload, fields);
    let row = tree.rows.len() as u32;
    let code = |dictionary: &mut Dictionary, value: Option<&str>| {
        value.map_or(NONE, |value| dictionary.intern(value))
    };
    tree.rows.push(Row {
        parent: NONE,
        end: row + 1,
        level: 0,
        class: NodeClass::Block,
        present: node.present,
        id: (id, tree.ids.len() as u32),
        payload: record,
        node_type: code(&mut tree.types, node.node_type),
        role: code(&mut tree.roles, node.role),
        kind: code(&mut tree.kinds, node.kind),
        key: code(&mut tree.keys, node.key),
        offset: node.offset,
        ttl: node.ttl,
        priority: node.priority,
        cycle: node.cycle,
        created_at_ns: node.created_at_ns,
        creation_index: node.creation_index,
    });
}
