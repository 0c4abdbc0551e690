//! The working state: the newest snapshot under the changes of the cycle in progress, as one tree.

use std::sync::Arc;

use hashbrown::HashSet;

use super::overlay::{Fresh, Overlay, SortKey, is_removable, sort_key};
use super::refusal::{Refusal, placement, region};
use crate::index::{NodeRef, Snapshot};
use crate::json::JsonValue;
use crate::tree::NodeClass;

#[derive(Clone, Copy, Debug)]
pub(super) enum StateNode<'a> {
    Old(NodeRef<'a>),
    /// A node made in this cycle, and its slot in the overlay.
    New(u32, &'a Fresh),
}

/// How a node relates to a sealed turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// It is in none.
    Open,
    /// It is the turn.
    Turn,
    /// It is in its core.
    Core,
    /// It is before or after its core.
    Around,
}

/// What a turn or head has at offset 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum Zero<'a> {
    Free,
    /// Its core container.
    Core(StateNode<'a>),
    /// Nodes without a container around them.
    Loose,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    /// The class of the region around it; [`NodeClass::Root`] outside of all.
    pub(super) region: NodeClass,
    pub(super) seal: Seal,
    pub(super) level: usize,
}

/// The working state. Cheap to make: two references.
#[derive(Clone, Copy, Debug)]
pub(super) struct State<'a> {
    pub(super) base: &'a Snapshot,
    pub(super) overlay: &'a Overlay,
}

impl<'a> StateNode<'a> {
    fn read<R>(self, old: impl FnOnce(NodeRef<'a>) -> R, new: impl FnOnce(&'a Fresh) -> R) -> R {
        match self {
            Self::Old(node) => old(node),
            Self::New(_, fresh) => new(fresh),
        }
    }

    pub(super) fn id(self) -> &'a str {
        self.read(NodeRef::id, |fresh| &*fresh.id)
    }

    pub(super) fn class(self) -> NodeClass {
        self.read(NodeRef::class, |fresh| fresh.class())
    }

    pub(super) fn is_region(self) -> bool {
        use NodeClass::{Head, Root, Seq, Sys};
        matches!(self.class(), Root | Sys | Seq | Head)
    }

    /// Whether it is a turn or the head, in which an offset of 0 is the core.
    pub(super) fn is_turn(self) -> bool {
        matches!(self.class(), NodeClass::Turn | NodeClass::Head)
    }

    /// Refuses the root and regions: `what` they never do.
    pub(super) fn check_no_region(self, what: &str) -> Result<(), Refusal> {
        if !self.is_region() {
            return Ok(());
        }
        let id = self.id();
        Err(region(format!("`{id}` is a region or the root and {what}")))
    }

    pub(super) fn offset(self) -> i64 {
        self.read(NodeRef::offset, |fresh| fresh.offset)
    }

    pub(super) fn slot(self) -> Option<u32> {
        match self {
            Self::Old(_) => None,
            Self::New(slot, _) => Some(slot),
        }
    }

    pub(super) fn is_removable(self) -> bool {
        self.read(is_removable, |fresh| fresh.removable)
    }

    /// Whether it is a core, if its parent is a turn or the head.
    pub(super) fn is_core_container(self) -> bool {
        self.class() == NodeClass::Container && self.offset() == 0
    }

    pub(super) fn sort_key(self) -> SortKey<'a> {
        self.read(
            |node| {
                let times = (node.created_at_ns(), node.creation_index());
                (node.offset(), times.0, times.1, node.id())
            },
            sort_key,
        )
    }

    pub(super) fn key(self) -> Option<&'a str> {
        self.read(NodeRef::key, |fresh| fresh.key.as_deref())
    }

    /// What `read` makes of the content.
    pub(super) fn with_content<R>(self, read: impl FnOnce(Option<JsonValue<'_>>) -> R) -> R {
        match self {
            Self::Old(node) => read(node.field("content")),
            Self::New(_, fresh) => fresh.with_content(read),
        }
    }

    pub(super) fn field(self, name: &str) -> Option<JsonValue<'a>> {
        self.read(|node| node.field(name), |fresh| fresh.field(name))
    }
}

impl<'a> State<'a> {
    pub(super) fn new(base: &'a Snapshot, overlay: &'a Overlay) -> Self {
        Self { base, overlay }
    }

    pub(super) fn slot(self, slot: u32) -> Option<StateNode<'a>> {
        Some(StateNode::New(slot, self.overlay.get(slot)?))
    }

    /// The node of an id. One lookup a piece of the base.
    pub(super) fn find(self, id: &str) -> Option<StateNode<'a>> {
        if let Some(slot) = self.overlay.find(id) {
            return self.slot(slot);
        }
        let node = self.base.find(id)?;
        self.is_live(node).then_some(StateNode::Old(node))
    }

    /// As [`State::find`], or the refusal that there is none.
    pub(super) fn get(self, id: &str) -> Result<StateNode<'a>, Refusal> {
        let missing = || placement(format!("no node has the id `{id}`"));
        self.find(id).ok_or_else(missing)
    }

    pub(super) fn is_live(self, node: NodeRef<'a>) -> bool {
        self.overlay.gone.is_empty()
            || std::iter::successors(Some(node), |node| node.parent())
                .all(|node| !self.overlay.gone.contains(node.id()))
    }

    pub(super) fn parent(self, node: StateNode<'a>) -> Option<StateNode<'a>> {
        match node {
            StateNode::Old(node) => node.parent().map(StateNode::Old),
            StateNode::New(_, fresh) => self.find(&fresh.parent),
        }
    }

    pub(super) fn is_in_turn(self, node: StateNode<'a>) -> bool {
        self.parent(node).is_some_and(StateNode::is_turn)
    }

    /// The node and those above it, the root last.
    pub(super) fn upwards(self, node: StateNode<'a>) -> impl Iterator<Item = StateNode<'a>> {
        std::iter::successors(Some(node), move |&node| self.parent(node))
    }

    fn new_children(self, node: StateNode<'a>) -> &'a [u32] {
        match node {
            StateNode::Old(node) => self.overlay.added_to(node.id()),
            StateNode::New(_, fresh) => fresh.children(),
        }
    }

    /// The children, in canonical order. Linear in them.
    pub(super) fn children(self, node: StateNode<'a>) -> Vec<StateNode<'a>> {
        let added = self.new_children(node).iter();
        let added = added.filter_map(|&slot| self.slot(slot));
        let StateNode::Old(old) = node else {
            return added.collect();
        };
        let old = old.children().filter(|child| {
            self.overlay.gone.is_empty() || !self.overlay.gone.contains(child.id())
        });
        let mut children: Vec<StateNode<'a>> = old.map(StateNode::Old).collect();
        let committed = children.len();
        children.extend(added);
        if committed > 0 && children.len() > committed {
            // Children of the root have an order of their own, but none is ever added to it.
            children.sort_by_key(|child| child.sort_key());
        }
        children
    }

    pub(super) fn last_child(self, node: StateNode<'a>) -> Option<StateNode<'a>> {
        let added = self.new_children(node).last();
        let added = added.and_then(|&slot| self.slot(slot));
        let StateNode::Old(old) = node else {
            return added;
        };
        let gone = &self.overlay.gone;
        let here = |child: &NodeRef<'_>| !gone.contains(child.id());
        // `^seq` has many children; mostly its last one is there.
        let quick = match old.class() {
            NodeClass::Seq => self.base.last_of_seq(),
            NodeClass::Container | NodeClass::Block | NodeClass::Sys => old.last_child(),
            _ => None,
        };
        let old = quick
            .filter(here)
            .or_else(|| old.children().filter(here).last());
        let old = old.map(StateNode::Old);
        old.into_iter()
            .chain(added)
            .max_by_key(|child| child.sort_key())
    }

    pub(super) fn has_children(self, node: StateNode<'a>) -> bool {
        !self.new_children(node).is_empty()
            || match node {
                StateNode::Old(old) => {
                    let mut children = old.children();
                    children.any(|child| !self.overlay.gone.contains(child.id()))
                }
                StateNode::New(..) => false,
            }
    }

    pub(super) fn subtree(self, node: StateNode<'a>) -> Vec<StateNode<'a>> {
        let mut found = Vec::new();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            found.push(node);
            open.extend(self.children(node).into_iter().rev());
        }
        found
    }

    /// Where a node is. Linear in its level.
    pub(super) fn location(self, node: StateNode<'a>) -> Location {
        let mut level = 0;
        let mut below: Option<StateNode<'a>> = None;
        let mut seal = Seal::Open;
        let mut region = NodeClass::Root;
        for at in self.upwards(node) {
            match at.class() {
                NodeClass::Turn if self.is_top_turn(at) => {
                    seal = match below {
                        None => Seal::Turn,
                        Some(child) if child.offset() == 0 => Seal::Core,
                        Some(_) => Seal::Around,
                    };
                }
                class @ (NodeClass::Sys | NodeClass::Seq | NodeClass::Head) => region = class,
                _ => {}
            }
            level += usize::from(below.is_some());
            below = Some(at);
        }
        Location {
            region,
            seal,
            level,
        }
    }

    fn is_top_turn(self, node: StateNode<'a>) -> bool {
        let parent = self.parent(node);
        parent.is_some_and(|parent| parent.class() == NodeClass::Seq)
    }

    pub(super) fn region(self, class: NodeClass) -> Option<StateNode<'a>> {
        let snapshot = self.base;
        let rows = match class {
            NodeClass::Sys => snapshot.sys_rows(),
            NodeClass::Head => snapshot.head_rows(),
            _ => snapshot.seq_row().map_or(0..0, |row| row..row + 1),
        };
        if !rows.is_empty() {
            return Some(StateNode::Old(snapshot.node(rows.start)));
        }
        let added = self.overlay.added_to(snapshot.root().id()).iter();
        let mut added = added.filter_map(|&slot| self.slot(slot));
        added.find(|node| node.class() == class)
    }

    /// What a turn or head has at offset 0, besides the node `without`. Logarithmic in new children,
    /// linear in committed ones.
    pub(super) fn zero_of(self, node: StateNode<'a>, without: &str) -> Zero<'a> {
        let added = self.new_children(node);
        let offset = |slot: u32| self.overlay.get(slot).map_or(0, |fresh| fresh.offset);
        let start = added.partition_point(|&slot| offset(slot) < 0);
        let added = added[start..].iter().take_while(|&&slot| offset(slot) == 0);
        // New nodes are never put beside a core, so a core is the only one at offset 0.
        let mut added = added.filter_map(|&slot| self.slot(slot)).take(3);
        let old = match node {
            StateNode::Old(old) => {
                let gone = &self.overlay.gone;
                let old = old.children().filter(|child| child.offset() == 0);
                old.filter(|child| !gone.contains(child.id()))
                    .map(StateNode::Old)
                    .collect()
            }
            StateNode::New(..) => Vec::new(),
        };
        let mut old = old.into_iter().filter(|child| child.id() != without);
        let core = old.clone().find(|child| child.is_core_container());
        if let Some(core) = core {
            return Zero::Core(core);
        }
        match old
            .next()
            .or_else(|| added.find(|child| child.id() != without))
        {
            None => Zero::Free,
            Some(first) if first.is_core_container() => Zero::Core(first),
            Some(_) => Zero::Loose,
        }
    }

    pub(super) fn with_ancestors(self, ids: &[Box<str>]) -> HashSet<Arc<str>> {
        let mut kept = HashSet::new();
        for node in ids.iter().filter_map(|id| self.find(id)) {
            for node in self.upwards(node) {
                if !kept.insert(Arc::from(node.id())) {
                    break;
                }
            }
        }
        kept
    }

    /// The topmost of some nodes, each once, in document order.
    pub(super) fn topmost(self, ids: &[&str]) -> Vec<StateNode<'a>> {
        let wanted: HashSet<&str> = ids.iter().copied().collect();
        let mut found: Vec<StateNode<'a>> = Vec::new();
        let mut seen = HashSet::new();
        for node in ids.iter().filter_map(|id| self.find(id)) {
            let above = self.upwards(node).skip(1);
            let covered = above.map(StateNode::id).any(|id| wanted.contains(id));
            if !covered && seen.insert(node.id()) {
                found.push(node);
            }
        }
        self.sort(&mut found);
        found
    }

    /// The nodes of these ids, in document order.
    pub(super) fn in_order(self, ids: &[&str]) -> Vec<StateNode<'a>> {
        let wanted: HashSet<&str> = ids.iter().copied().collect();
        let found = wanted.into_iter().filter_map(|id| self.find(id));
        let mut found: Vec<StateNode<'a>> = found.collect();
        self.sort(&mut found);
        found
    }

    pub(super) fn topmost_ids(self, ids: &[&str]) -> Vec<Arc<str>> {
        let topmost = self.topmost(ids).into_iter();
        topmost.map(|node| node.id().into()).collect()
    }

    /// Sorts nodes into document order. Linear in their levels.
    fn sort(self, nodes: &mut [StateNode<'a>]) {
        if nodes.len() > 1 {
            nodes.sort_by_cached_key(|node| {
                let path = self
                    .upwards(*node)
                    .map(|node| (node.class().rank(), node.sort_key()));
                let mut path: Vec<(u8, SortKey<'a>)> = path.collect();
                path.reverse();
                path
            });
        }
    }
}
