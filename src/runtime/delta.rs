//! The changes of a cycle as a delta of the newest snapshot.

use std::cell::Cell;
use std::sync::Arc;

use super::overlay::{Fresh, LifecycleChange};
use super::state::{State, StateNode};
use crate::index::NodeRef;
use crate::json::JsonValue;
use crate::tree::{
    NONE, NodeClass, NodeHeaders, Patch, Present, Tree, TreeDelta, header, push_row,
};
use smallvec::{SmallVec, smallvec};

/// How the working state differs from its base, `passed` cycles after it. `moved` are committed nodes
/// with another parent.
pub(super) fn delta(state: State<'_>, moved: &[(Arc<str>, Arc<str>)], passed: i64) -> TreeDelta {
    let State { base, overlay } = state;
    let mut patch = Patch::default();
    for fresh in overlay.fresh() {
        with_row(fresh, |node, fields| {
            patch.push(Some(&fresh.parent), node, fields.iter().copied())
        });
    }
    let mut changed: Vec<&Arc<str>> = overlay.changed.keys().collect();
    changed.extend(moved.iter().map(|(id, _)| id));
    let retyped: Vec<Arc<str>> = retyped(state);
    changed.extend(&retyped);
    changed.sort_unstable();
    changed.dedup();
    for id in changed {
        let Some(node) = base.find(id).filter(|node| state.is_live(*node)) else {
            continue;
        };
        let change = overlay.changed.get(id).copied().unwrap_or_default();
        let parent = moved.iter().find(|(moved, _)| moved == id);
        let parent = parent.map(|(_, parent)| &**parent);
        let kept = node.ttl().map(|ttl| ttl.saturating_sub(passed).max(0));
        let node_type = if retyped.contains(id) {
            Some(node.type_or_class())
        } else {
            node.node_type()
        };
        push_old(&mut patch, node, node_type, change, kept, parent);
    }
    let mut remove: Vec<Box<str>> = overlay.gone.iter().map(|id| (**id).into()).collect();
    remove.sort_unstable();
    TreeDelta::new(base.cycle(), patch, remove)
}

/// Committed nodes without a nodeType that would be read as another class, as they have got their first
/// child or lost their last one (LANGUAGE §1).
fn retyped(state: State<'_>) -> Vec<Arc<str>> {
    let State { base, overlay } = state;
    let gone = overlay.gone.iter().filter_map(|id| base.find(id)?.parent());
    let lost = gone.filter(|parent| parent.class() == NodeClass::Container);
    let lost = lost.filter(|parent| !state.has_children(StateNode::Old(*parent)));
    let got = overlay.parents().filter_map(|id| base.find(id));
    let got = got.filter(|parent| parent.class() == NodeClass::Block);
    let untyped = lost.chain(got).filter(|node| node.node_type().is_none());
    untyped.map(|node| node.id().into()).collect()
}

const FILLED: u8 = Present::OFFSET
    | Present::PRIORITY
    | Present::CYCLE
    | Present::CREATED_AT_NS
    | Present::CREATION_INDEX;

/// Gives a new node to `push`: its row, and its fields sorted by name.
fn with_row(
    fresh: &Fresh,
    push: impl for<'f> FnOnce(NodeHeaders<'f>, &[(&'f str, JsonValue<'f>)]),
) {
    let ttl = if fresh.ttl.is_some() { Present::TTL } else { 0 };
    let node = NodeHeaders {
        id: &fresh.id,
        present: Present(FILLED | ttl),
        texts: [
            Some(&fresh.node_type),
            fresh.role.as_deref(),
            fresh.kind.as_deref(),
            fresh.key.as_deref(),
        ],
        numbers: [
            fresh.offset,
            fresh.ttl.unwrap_or(0),
            fresh.priority,
            fresh.cycle,
            fresh.created_at_ns,
            fresh.creation_index,
        ],
    };
    let grown = fresh.growing.as_ref().map(super::growing::Growing::text);
    let own = fresh.fields.iter();
    let own = own.map(|(name, value)| (&**name, value.get()));
    let own = own.filter(|(name, _)| grown.is_none() || *name != "content");
    let mut fields: SmallVec<[(&str, JsonValue<'_>); 16]> = own.collect();
    if let Some(grown) = &grown {
        fields.push(("content", JsonValue::Text(grown)));
    }
    if fresh.ttl.is_none() {
        fields.push(("ttl", JsonValue::Null));
    }
    fields.sort_unstable_by_key(|(name, _)| *name);
    push(node, &fields);
}

thread_local! {
    /// The memory of a tree that is not needed any more.
    static SPARE: Cell<Option<Tree>> = const { Cell::new(None) };
}

/// Keeps the memory of a tree for the next turn.
pub(super) fn spare(mut tree: Tree) {
    if tree.clear() {
        // Nothing is kept where a thread ends.
        let _ = SPARE.try_with(|spare| spare.set(Some(tree)));
    }
}

/// The rows of a new turn, if it is all that the cycle has changed: what `Writer::append_turn` takes.
pub(super) fn only_turn(state: State<'_>, turn: &str) -> Option<Tree> {
    let overlay = state.overlay;
    let mut parents = overlay.parents();
    let seq = parents.next().filter(|_| parents.next().is_none())?;
    let slot = overlay.find(turn)?;
    let alone = overlay.added_to(seq) == [slot];
    if !alone || !overlay.gone.is_empty() || !overlay.changed.is_empty() {
        return None;
    }
    let spare = SPARE.try_with(Cell::take).ok().flatten();
    let mut tree = spare.unwrap_or_default();
    let count = overlay.fresh().count();
    tree.rows.reserve(count);
    tree.ids.reserve(16 * count);
    let bytes = |fresh: &Fresh| -> usize {
        let lengths = fresh
            .fields
            .iter()
            .map(|(name, value)| name.len() + value.len() + 4);
        lengths.sum::<usize>() + 16
    };
    let bytes = overlay.fresh().map(bytes).sum();
    Arc::make_mut(&mut tree.payload).reserve(bytes);
    // The nodes to come, the next one last, with the row of the parent.
    let mut open: SmallVec<[(u32, u32); 8]> = smallvec![(slot, NONE)];
    while let Some((slot, parent)) = open.pop() {
        let fresh = overlay.get(slot)?;
        let row = tree.rows.len() as u32;
        with_row(fresh, |node, fields| {
            push_row(&mut tree, node, fields.iter().copied())
        });
        // A turn is two levels below the root.
        let level = tree
            .rows
            .get(parent as usize)
            .map_or(2, |parent| parent.level + 1);
        let own = &mut tree.rows[row as usize];
        (own.parent, own.level, own.class) = (parent, level, fresh.class());
        open.extend(fresh.children().iter().rev().map(|&child| (child, row)));
    }
    // The index shares it.
    Arc::make_mut(&mut tree.payload).shrink_to_fit();
    // Backwards, so that the end of a child is known before its parent's.
    for row in (1..tree.rows.len()).rev() {
        let (end, parent) = (tree.rows[row].end, tree.rows[row].parent as usize);
        let parent = &mut tree.rows[parent];
        parent.end = parent.end.max(end);
    }
    (tree.rows.len() == count).then_some(tree)
}

fn push_old(
    patch: &mut Patch,
    node: NodeRef<'_>,
    node_type: Option<&str>,
    change: LifecycleChange,
    kept_ttl: Option<i64>,
    parent: Option<&str>,
) {
    let ttl = change.ttl.unwrap_or(kept_ttl);
    let mut row = node.headers();
    // Whether it has children is seen when it is put into the tree.
    row.present.0 &= !(Present::TTL | Present::EMPTY_CHILDREN);
    if ttl.is_some() {
        row.present.0 |= Present::TTL;
    }
    row.texts[header::NODE_TYPE] = node_type;
    row.numbers[header::TTL] = ttl.unwrap_or(0);
    if let Some(priority) = change.priority {
        row.present.0 |= Present::PRIORITY;
        row.numbers[header::PRIORITY] = priority;
    }
    let given_null = |name: &str| {
        (name == "ttl" && change.ttl.is_some()) || (name == "priority" && change.priority.is_some())
    };
    let mut fields: Vec<(&str, JsonValue<'_>)> = node
        .fields()
        .filter(|(name, _)| !given_null(name))
        .collect();
    if change.ttl == Some(None) {
        fields.push(("ttl", JsonValue::Null));
        fields.sort_unstable_by_key(|(name, _)| *name);
    }
    let own_parent = node.parent().map(|parent| parent.id());
    patch.push(parent.or(own_parent), row, fields.into_iter());
}
