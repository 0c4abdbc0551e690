//! Checks of a whole tree: classes, the rules of regions and cores, duplicate ids, and canonical order.
//!
//! A draft has its rows in the order of the text; here they become a [`Tree`] in canonical document order, or faults.
//! Every step is a loop over rows in which parents come before their children, so nothing recurses.

use std::fmt::Arguments;
use std::sync::Arc;

use hashbrown::HashTable;

use super::draft::{ParentClaim, TreeDraft};
use super::fault::Faults;
use super::model::{Dictionary, NONE, NodeClass, Present, Tree, TreeRow, hash_text, header};
use crate::json::shorten;

/// The class of a stored nodeType (LANGUAGE §1).
pub fn class_of(node_type: &str) -> NodeClass {
    if node_type.starts_with('^') {
        return NodeClass::parse(node_type).unwrap_or(NodeClass::Block);
    }
    match node_type.split(':').next() {
        Some("mt" | "seg") => NodeClass::Turn,
        Some("mc" | "cont") => NodeClass::Container,
        _ => NodeClass::Block,
    }
}

/// The class of each nodeType of a dictionary, by code.
pub(crate) fn classes(types: &Dictionary) -> Vec<NodeClass> {
    types.values().map(class_of).collect()
}

/// The class of a row, given that of its parent.
pub(crate) fn classify(
    row: &TreeRow,
    index: u32,
    parent: NodeClass,
    classes: &[NodeClass],
) -> NodeClass {
    if row.parent == NONE {
        return NodeClass::Root;
    }
    match classes.get(row.texts[header::NODE_TYPE] as usize) {
        Some(&class) => class,
        None if parent == NodeClass::Seq => NodeClass::Turn,
        None if row.end > index + 1 => NodeClass::Container,
        None => NodeClass::Block,
    }
}

/// The offset of a row's node, in the unit of the faults.
fn start_of(starts: &[usize], row: u32) -> usize {
    starts.get(row as usize).copied().unwrap_or(0)
}

/// Checks a draft of nested nodes and sorts it. The tree is valid only if `faults` is empty.
pub(crate) fn finish(draft: TreeDraft<'_>, faults: &mut Faults) -> Tree {
    let TreeDraft {
        mut tree,
        payload,
        starts,
        claims,
    } = draft;
    tree.payload = Arc::new(payload);
    check_claims(&tree, &claims, faults);
    check_ids(&tree, &starts, faults);
    let sorted = settle(&mut tree, &starts, faults);
    if faults.is_empty() && !sorted {
        sort(&mut tree);
    }
    tree
}

/// Reports every `parent_id` that differs from the nesting.
fn check_claims(tree: &Tree, claims: &[ParentClaim<'_>], faults: &mut Faults) {
    for claim in claims {
        let parent = tree.rows[claim.row as usize].parent;
        let claimed = claim.id.decode();
        if parent == NONE {
            faults.add(claim.offset, "the root has no parent");
        } else if tree.id(parent) != claimed {
            let (claimed, id) = (shorten(&claimed), shorten(tree.id(parent)));
            let message = format!("parent_id is `{claimed}`, but the node is a child of `{id}`");
            faults.add(claim.offset, message);
        }
    }
}

pub(crate) fn check_ids(tree: &Tree, starts: &[usize], faults: &mut Faults) {
    let mut table: HashTable<u32> = HashTable::with_capacity(tree.rows.len());
    for row in 0..tree.rows.len() as u32 {
        let id = tree.id(row);
        if id.is_empty() {
            continue; // Already reported.
        }
        let entry = table.entry(
            hash_text(id),
            |&other| tree.id(other) == id,
            |&other| hash_text(tree.id(other)),
        );
        match entry {
            hashbrown::hash_table::Entry::Vacant(entry) => {
                entry.insert(row);
            }
            hashbrown::hash_table::Entry::Occupied(entry) => {
                let other = Some(start_of(starts, *entry.get()));
                let id = shorten(id);
                let message = format_args!("the id `{id}` is given twice, first at {{}}");
                faults.push(start_of(starts, row), ".id", other, message);
            }
        }
    }
}

/// Sets the class of every row and checks regions and cores. Returns whether the rows are in canonical order already.
pub(crate) fn settle(tree: &mut Tree, starts: &[usize], faults: &mut Faults) -> bool {
    let classes = classes(&tree.texts[header::NODE_TYPE]);
    let count = tree.rows.len();
    let mut regions = [NONE; 3];
    // For each row: its last child so far, and its first container with a given offset of 0.
    let mut last = vec![NONE; count];
    let mut cores: Vec<u32> = Vec::new();
    let mut sorted = true;
    for index in 0..count as u32 {
        let mut wrong = |member, other, message: Arguments<'_>| {
            faults.push(start_of(starts, index), member, other, message);
        };
        let row = &tree.rows[index as usize];
        let (parent, above) = match row.parent {
            NONE => (NONE, NodeClass::Root),
            parent => (parent, tree.rows[parent as usize].class),
        };
        let class = classify(row, index, above, &classes);
        if parent == NONE {
            if let Some(NodeClass::Sys | NodeClass::Seq | NodeClass::Head) =
                classes.get(row.texts[header::NODE_TYPE] as usize)
            {
                let message =
                    format_args!("the root must be `^root` or have no nodeType, not be a region");
                wrong(".nodeType", None, message);
            }
            tree.rows[index as usize].class = class;
            continue;
        }
        match class {
            NodeClass::Root => {
                let message = format_args!("only the root of the tree can be `^root`");
                wrong(".nodeType", None, message);
            }
            NodeClass::Sys | NodeClass::Seq | NodeClass::Head => {
                let slot = &mut regions[class as usize - NodeClass::Sys as usize];
                if parent != 0 {
                    let message =
                        format_args!("{} must be a direct child of the root", class.as_str());
                    wrong(".nodeType", None, message);
                }
                if *slot == NONE {
                    *slot = index;
                } else {
                    let other = Some(start_of(starts, *slot));
                    let message = format_args!("a second {}, the first is at {{}}", class.as_str());
                    wrong(".nodeType", other, message);
                }
            }
            NodeClass::Container
                if row.numbers[header::OFFSET] == 0
                    && row.present.has(Present::OFFSET)
                    && matches!(above, NodeClass::Turn | NodeClass::Head) =>
            {
                if cores.is_empty() {
                    cores.resize(count, NONE);
                }
                let core = &mut cores[parent as usize];
                if *core == NONE {
                    *core = index;
                } else {
                    let other = Some(start_of(starts, *core));
                    let message =
                        format_args!("a second container at offset 0, the first is at {{}}");
                    wrong(".offset", other, message);
                }
            }
            _ => {}
        }
        tree.rows[index as usize].class = class;
        let previous = std::mem::replace(&mut last[parent as usize], index);
        if sorted && previous != NONE && !precedes(tree, previous, index) {
            sorted = false;
        }
    }
    sorted
}

/// Whether `a` comes before its sibling `b` (LANGUAGE §6).
#[inline]
fn precedes(tree: &Tree, a: u32, b: u32) -> bool {
    order(tree, a, b).is_lt()
}

#[inline]
fn order(tree: &Tree, a: u32, b: u32) -> std::cmp::Ordering {
    let (x, y) = (&tree.rows[a as usize], &tree.rows[b as usize]);
    let regions = if x.parent == 0 {
        x.class.rank().cmp(&y.class.rank())
    } else {
        std::cmp::Ordering::Equal
    };
    let number = |column: usize| x.numbers[column].cmp(&y.numbers[column]);
    regions
        .then_with(|| number(header::OFFSET))
        .then_with(|| number(header::CREATED_AT_NS))
        .then_with(|| number(header::CREATION_INDEX))
        .then_with(|| tree.id(a).as_bytes().cmp(tree.id(b).as_bytes()))
}

/// Sorts the rows into canonical document order. Every subtree must be an interval already.
pub(crate) fn sort(tree: &mut Tree) {
    let count = tree.rows.len();
    if count == 0 {
        return;
    }
    let mut placed: Vec<u32> = Vec::with_capacity(count);
    let mut renamed = vec![NONE; count];
    let mut stack = vec![0u32];
    while let Some(row) = stack.pop() {
        renamed[row as usize] = placed.len() as u32;
        placed.push(row);
        let base = stack.len();
        stack.extend(tree.children(row));
        // In reverse, so that the first child is popped next.
        if stack[base..].is_sorted_by(|&a, &b| precedes(tree, a, b)) {
            stack[base..].reverse();
        } else {
            stack[base..].sort_unstable_by(|&a, &b| order(tree, b, a));
        }
    }
    let rows = placed
        .iter()
        .zip(0u32..)
        .map(|(&old, new)| {
            let mut row = tree.rows[old as usize].clone();
            row.end = row.end - old + new;
            if row.parent != NONE {
                row.parent = renamed[row.parent as usize];
            }
            row
        })
        .collect();
    tree.rows = rows;
}
