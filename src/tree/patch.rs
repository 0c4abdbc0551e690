//! Differences between trees, as JSON Lines write them (RUNTIME §1).

use super::check;
use super::draft::Draft;
use super::fault::Faults;
use super::model::{Present, Tree};

/// Nodes with the ids of their parents, in the order of the text.
#[derive(Debug, Default)]
pub struct Patch {
    /// The nodes: `parent` is `NONE`, `end` the next row, `level` 0, and the class not settled
    /// (a node without nodeType takes it from the tree it is put in).
    pub nodes: Tree,
    /// The id of each node's parent; `None` for the root.
    pub parents: Vec<Option<Box<str>>>,
    /// Where each node stands in the text of its document.
    pub(crate) starts: Vec<usize>,
}

impl Patch {
    /// Takes the parents from the `parent_id` members and finds ids that stand twice.
    pub(crate) fn finish(draft: Draft<'_>, faults: &mut Faults) -> Self {
        let Draft {
            tree: mut nodes,
            starts,
            claims,
        } = draft;
        check::check_ids(&nodes, &starts, faults);
        let mut parents = vec![None; nodes.rows.len()];
        for claim in claims {
            parents[claim.row as usize] = Some(claim.id.decode().into());
        }
        for row in &mut nodes.rows {
            row.present.0 &= !Present::ID_IMPLIED;
        }
        Self {
            nodes,
            parents,
            starts,
        }
    }
}
