//! Applies a delta to the tree of its base (RUNTIME §1).
//!
//! The nodes of both are linked to their parents, copied in pre-order without the removed
//! subtrees, and checked like a whole document.

use super::builder::TreeBuilder;
use super::check;
use super::delta::TreeDelta;
use super::fault::{Faults, InputError, TextPosition};
use super::model::{NONE, NodeClass, Tree, hash_text};
use crate::json::{MAX_NESTING, shorten};
use hashbrown::HashTable;

/// Applies `delta` to `base`: nodes are added, moved or replaced, then the subtrees of removed ids
/// go. Linear in the size of the result.
///
/// # Errors
/// Unknown ids, and every fault a whole document would be rejected for, in one report, with paths
/// and positions in the delta where it is at fault. A node without a valid place in the tree is
/// reported once; it and its descendants are not checked further.
pub fn apply(base: &Tree, delta: &TreeDelta) -> Result<Tree, InputError> {
    let mut faults = Faults::default();
    let mut union = NodeUnion::new(base, delta, &mut faults);
    union.link(&mut faults);
    let (mut tree, origins) = union.build(&mut faults);
    let sorted = check::settle(&mut tree, &origins, &mut faults);
    if faults.is_empty() {
        if !sorted {
            check::sort(&mut tree);
        }
        return Ok(tree);
    }
    // The offsets of these faults are node numbers: of the patch, the base, then removed ids.
    let base_count = base.rows.len();
    let patch_count = delta.replace.nodes.rows.len();
    let position =
        |list: &[TextPosition], index: usize| list.get(index).copied().unwrap_or_default();
    Err(faults.resolve_with(|place| {
        if place < patch_count {
            let at = position(&delta.positions.replace, place);
            (format!("$.replace[{place}]"), at)
        } else if place < patch_count + base_count {
            let id = base.id((place - patch_count) as u32);
            (format!("$.base: the node `{id}`"), delta.positions.base)
        } else {
            let index = place - patch_count - base_count;
            let at = position(&delta.positions.remove, index);
            (format!("$.remove[{index}]"), at)
        }
    }))
}

/// The union of a base and a patch under construction. Nodes are numbered, those of the patch
/// first, then those of the base.
struct NodeUnion<'a> {
    base: &'a Tree,
    delta: &'a TreeDelta,
    table: HashTable<u32>,
    /// For each node: its first child, and its next sibling.
    child: Vec<u32>,
    sibling: Vec<u32>,
    removed: Vec<bool>,
    root: u32,
    /// Nodes of the patch without a valid parent.
    lost: Vec<u32>,
}

impl<'a> NodeUnion<'a> {
    fn new(base: &'a Tree, delta: &'a TreeDelta, faults: &mut Faults) -> Self {
        let patch = delta.replace.nodes.rows.len();
        let count = patch + base.rows.len();
        let mut union = Self {
            base,
            delta,
            table: HashTable::with_capacity(count),
            child: vec![NONE; count],
            sibling: vec![NONE; count],
            removed: vec![false; count],
            root: NONE,
            lost: Vec::new(),
        };
        // Nodes of the patch hide nodes of the base with the same id.
        for node in 0..count as u32 {
            let id = union.id(node);
            if union.find(id).is_none() {
                let nodes = &delta.replace.nodes;
                union.table.insert_unique(hash_text(id), node, |&other| {
                    hash_text(node_id(base, nodes, other))
                });
            }
        }
        union.root = if base.rows.is_empty() {
            // The first node without a parent, of a difference to nothing.
            let parents = &delta.replace.parents;
            let root = parents.iter().position(Option::is_none);
            root.map_or(NONE, |root| root as u32)
        } else {
            union.find(base.id(0)).unwrap_or(NONE)
        };
        for (index, id) in delta.remove.iter().enumerate() {
            let place = count + index;
            match union.find(id) {
                None => faults.add(place, format!("no node has the id `{}`", shorten(id))),
                Some(node) if node == union.root => {
                    faults.add(place, "the root cannot be removed");
                }
                Some(node) => union.removed[node as usize] = true,
            }
        }
        union
    }

    fn patch_count(&self) -> usize {
        self.delta.replace.nodes.rows.len()
    }

    fn id(&self, node: u32) -> &'a str {
        node_id(self.base, &self.delta.replace.nodes, node)
    }

    fn find(&self, id: &str) -> Option<u32> {
        self.table
            .find(hash_text(id), |&other| self.id(other) == id)
            .copied()
    }

    /// Links every node to its parent. Children are in the order of the base, new ones last.
    fn link(&mut self, faults: &mut Faults) {
        let patch = self.patch_count();
        // Backwards, as each one is linked as the first child.
        for node in (0..patch as u32).rev() {
            match &self.delta.replace.parents[node as usize] {
                None if node == self.root => {}
                Some(id) if node != self.root => match self.find(id) {
                    Some(parent) => self.link_child(node, parent),
                    None => self.lost.push(node),
                },
                _ => self.lost.push(node),
            }
        }
        self.lost.reverse();
        for &node in &self.lost {
            match &self.delta.replace.parents[node as usize] {
                None => faults.add(node as usize, "a node of `replace` needs a parent_id"),
                Some(_) if node == self.root => {
                    faults.push(node as usize, ".parent_id", None, "the root has no parent");
                }
                Some(id) => {
                    let message = format_args!("no node has the id `{}`", shorten(id));
                    faults.push(node as usize, ".parent_id", None, message);
                }
            }
        }
        for (index, row) in self.base.rows.iter().enumerate().rev() {
            let node = (patch + index) as u32;
            // The patch gives the parent of a replaced node.
            if row.parent == NONE || self.find(self.id(node)) != Some(node) {
                continue;
            }
            if let Some(parent) = self.find(self.base.id(row.parent)) {
                self.link_child(node, parent);
            }
        }
    }

    fn link_child(&mut self, node: u32, parent: u32) {
        self.sibling[node as usize] = self.child[parent as usize];
        self.child[parent as usize] = node;
    }

    /// The rows in pre-order, and the node of each.
    fn build(&self, faults: &mut Faults) -> (Tree, Vec<usize>) {
        let patch = self.patch_count();
        let replace = &self.delta.replace.nodes;
        let mut out = TreeBuilder::default();
        out.reserve([self.base, replace]);
        let mut origins = Vec::with_capacity(self.child.len());
        // Of each open node: whether it is removed, and its next child.
        let mut open: Vec<(bool, u32)> = Vec::new();
        let mut next = self.root;
        let mut reached = vec![false; self.child.len()];
        // Nodes whose descendants are reached, but not copied.
        let lost = self.lost.iter().copied();
        let mut left: Vec<u32> = lost.filter(|&node| node != self.root).collect();
        loop {
            if next != NONE {
                let node = next as usize;
                reached[node] = true;
                if open.len() >= MAX_NESTING {
                    faults.add(node, "values must nest at most 1,000 levels deep");
                    left.push(next);
                } else {
                    // Removed nodes are walked too, as the check for loops needs it.
                    let gone = self.removed[node] || matches!(open.last(), Some((true, _)));
                    if !gone {
                        origins.push(node);
                        let (source, row) = match node.checked_sub(patch) {
                            Some(row) => (self.base, row as u32),
                            None => (replace, next),
                        };
                        let (headers, record) = (source.headers(row), source.record(row));
                        out.push(open.len() as u32, NodeClass::Block, headers, record);
                    }
                    open.push((gone, self.child[node]));
                }
            }
            let Some(top) = open.last_mut() else {
                break;
            };
            next = top.1;
            if next != NONE {
                top.1 = self.sibling[next as usize];
            } else {
                open.pop();
            }
        }
        // Each node has one parent, so this visits it once.
        while let Some(node) = left.pop() {
            reached[node as usize] = true;
            let mut child = self.child[node as usize];
            while child != NONE {
                left.push(child);
                child = self.sibling[child as usize];
            }
        }
        if reached[..patch].contains(&false) {
            self.report_loops(&reached, faults);
        }
        (out.finish(), origins)
    }

    /// Reports the nodes of the patch on cycles. Unreached nodes are on a cycle or descend from one, and every cycle
    /// has a node of the patch. Linear: going up from a node stops at nodes passed before.
    fn report_loops(&self, reached: &[bool], faults: &mut Faults) {
        let patch = self.patch_count();
        let mut passed = vec![NONE; reached.len()];
        let mut looped = vec![false; patch];
        for start in (0..patch).filter(|&node| !reached[node]) {
            let mut at = start as u32;
            while at != NONE && passed[at as usize] == NONE {
                passed[at as usize] = start as u32;
                at = self.parent(at);
            }
            if at == NONE || passed[at as usize] != start as u32 {
                continue;
            }
            // The way up from `start` has met itself at `at`.
            let first = at;
            loop {
                if let Some(looped) = looped.get_mut(at as usize) {
                    *looped = true;
                }
                at = self.parent(at);
                if at == first || at == NONE {
                    break;
                }
            }
        }
        for node in (0..patch).filter(|&node| looped[node]) {
            faults.push(node, ".parent_id", None, "the node would be below itself");
        }
    }

    /// The parent of a node; `NONE` if it has none.
    fn parent(&self, node: u32) -> u32 {
        let id = match (node as usize).checked_sub(self.patch_count()) {
            None => self.delta.replace.parents[node as usize].as_deref(),
            Some(row) => match self.base.rows[row].parent {
                NONE => None,
                parent => Some(self.base.id(parent)),
            },
        };
        id.and_then(|id| self.find(id)).unwrap_or(NONE)
    }
}

fn node_id<'a>(base: &'a Tree, patch: &'a Tree, node: u32) -> &'a str {
    match (node as usize).checked_sub(patch.rows.len()) {
        Some(row) => base.id(row as u32),
        None => patch.id(node),
    }
}
