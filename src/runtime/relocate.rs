//! Moving nodes (RUNTIME §3): new ones keep their id; a committed one that changes its region gets a
//! successor.

use std::sync::Arc;

use hashbrown::HashSet;

use super::header::{DraftNode, is_column};
use super::mutate::{check_removable, check_unpinned};
use super::overlay::{LifecycleChange, NodeBody};
use super::refusal::{Refusal, placement, region, sealed};
use super::slot::{Destination, Insertion, Mover, Slot, find_slot};
use super::state::{Seal, StateNode};
use super::workspace::{DraftSubtree, Workspace};
use crate::tree::NodeClass;

impl Workspace {
    /// Moves nodes with all below them, one after the other. Returns their ids, new ones for those
    /// that changed their region after they were committed.
    pub(crate) fn relocate(
        &mut self,
        ids: &[&str],
        target: &Destination,
    ) -> Result<Vec<Arc<str>>, Refusal> {
        let topmost = self.state().topmost_ids(ids);
        self.all_or_nothing(|workspace| {
            let mut moved: Vec<Arc<str>> = Vec::with_capacity(topmost.len());
            let mut moving: HashSet<Arc<str>> = topmost.iter().cloned().collect();
            for id in &topmost {
                let target = match moved.last() {
                    Some(last) => workspace.after(last, target),
                    None => target.clone(),
                };
                moved.push(workspace.relocate_one(id, &target, &moving)?);
                moving.remove(id);
            }
            Ok(moved)
        })
    }

    /// The place after a node that was put at `target`.
    fn after(&self, last: &str, target: &Destination) -> Destination {
        let state = self.state();
        let parent = state.find(last).and_then(|node| state.parent(node));
        let Some(parent) = parent.filter(|_| target.insertion != Insertion::Into) else {
            return target.clone();
        };
        let mut siblings = state.children(parent);
        if target.in_core {
            siblings.retain(|sibling| sibling.offset() == 0);
        }
        let at = siblings.iter().position(|node| node.id() == last);
        let after = Insertion::After(at.map_or(siblings.len(), |at| at + 1));
        Destination {
            in_core: target.in_core,
            ..Destination::new(parent.id(), after)
        }
    }

    fn relocate_one(
        &mut self,
        id: &str,
        target: &Destination,
        moving: &HashSet<Arc<str>>,
    ) -> Result<Arc<str>, Refusal> {
        let state = self.state();
        let node = state.get(id)?;
        node.check_no_region("cannot be moved")?;
        if node.class() == NodeClass::Turn {
            let message =
                format!("`{id}` is a turn; turns move from `^ah` to `^seq` by sealing only");
            return Err(region(message));
        }
        let level = self.check_parent(target)?;
        let parent = state.get(&target.parent)?;
        if state.upwards(parent).any(|above| above.id() == id) {
            return Err(placement(format!("`{id}` cannot be moved below itself")));
        }
        let height = state
            .subtree(node)
            .iter()
            .map(|below| state.location(*below).level)
            .max();
        let height = height.unwrap_or(0) - state.location(node).level;
        if level + 1 + height >= crate::json::MAX_NESTING {
            return Err(placement(format!(
                "`{id}` would be too deep at its new place"
            )));
        }
        match node {
            StateNode::New(slot, _) => self.relocate_new(slot, target, moving),
            StateNode::Old(_) => self.relocate_committed(node.id().into(), target, moving),
        }
    }

    fn relocate_new(
        &mut self,
        slot: u32,
        target: &Destination,
        moving: &HashSet<Arc<str>>,
    ) -> Result<Arc<str>, Refusal> {
        let Some(fresh) = self.overlay.get(slot) else {
            return Err(placement("the node is gone"));
        };
        let id = Arc::clone(&fresh.id);
        let old_parent = Arc::clone(&fresh.parent);
        let mover = Mover {
            id: &id,
            moving: Some(moving),
            times: (fresh.created_at_ns, fresh.creation_index),
            offset: Some(fresh.offset),
            is_container: fresh.class() == NodeClass::Container,
        };
        let found = self.moved_slot(target, mover)?;
        self.check_core_of(&found, fresh)?;
        let parent = found.parent;
        self.overlay.detach(slot);
        if let Some(fresh) = self.overlay.get_mut(slot) {
            fresh.offset = found.offset;
        }
        self.overlay.renumber(&parent, &found.renumbered);
        self.overlay.put_below(&parent, [slot]);
        if parent != old_parent {
            self.overlay.bereft.push(old_parent);
        }
        Ok(id)
    }

    fn relocate_committed(
        &mut self,
        id: Arc<str>,
        target: &Destination,
        moving: &HashSet<Arc<str>>,
    ) -> Result<Arc<str>, Refusal> {
        let kept = self.kept();
        let state = self.state();
        let (node, parent) = (state.get(&id)?, state.get(&target.parent)?);
        let (from, to) = (state.location(node), state.location(parent));
        if from.seal == Seal::Core {
            return Err(sealed(format!("`{id}` is sealed and cannot be moved"))
                .help("attach a copy to a turn: `(d1, end)`"));
        }
        if from.region == to.region {
            let name = from.region.as_str();
            let message = format!(
                "`{id}` is committed: it can be moved to another region than `{name}`, not inside it"
            );
            return Err(sealed(message).help("replace or remove it, and add another"));
        }
        check_unpinned(&id, &kept)?;
        check_removable(state, node, &kept)?;
        let draft = self.copy(node)?;
        let found = self.moved_slot(target, draft[0].mover(Some(moving)))?;
        self.check_core_of(&found, &draft[0].body)?;
        let copy = self.put(draft, &found)?;
        self.take(&id);
        self.overlay.record.moved.insert(Arc::clone(&copy), id);
        Ok(copy)
    }

    /// The slot of a node that is moved: with its own offset where the target says nothing of it and it
    /// is allowed, else that of a new node.
    fn moved_slot(&self, target: &Destination, mover: Mover<'_>) -> Result<Slot, Refusal> {
        let as_new = Mover {
            offset: None,
            ..mover
        };
        if target.insertion != Insertion::Into {
            return find_slot(self.state(), target, as_new);
        }
        let found = find_slot(self.state(), target, mover);
        found.or_else(|_| find_slot(self.state(), target, as_new))
    }

    fn copy(&self, node: StateNode<'_>) -> Result<DraftSubtree, Refusal> {
        let state = self.state();
        let subtree = state.subtree(node);
        let mut draft = DraftSubtree::new();
        for (index, node) in subtree.iter().enumerate() {
            let above = state.parent(*node).map(StateNode::id);
            let above = above.filter(|_| index > 0);
            let above = above.and_then(|id| subtree.iter().position(|other| other.id() == id));
            let mut body = successor(*node, self.overlay.changed.get(node.id()));
            body.id = self.made_id(node.class(), index, &HashSet::new())?;
            draft.push(DraftNode {
                body,
                offset: Some(node.offset()),
                created: None,
                above,
            });
        }
        Ok(draft)
    }
}

/// What a successor has in common with a node. Its time is filled again.
fn successor(node: StateNode<'_>, change: Option<&LifecycleChange>) -> NodeBody {
    // Of other headers, a record has explicit nulls only.
    let keeps = |name: &str| name != "created_at_iso" && !is_column(name);
    match node {
        StateNode::Old(old) => {
            let mut body = NodeBody::from_node(old, keeps);
            let change = change.copied().unwrap_or_default();
            body.ttl = change.ttl.unwrap_or(body.ttl);
            body.priority = change.priority.unwrap_or(body.priority);
            body
        }
        StateNode::New(_, fresh) => {
            let mut body = NodeBody::clone(fresh);
            body.fields.retain(|(name, _)| keeps(name));
            if let Some(growing) = body.growing.take() {
                body.set_field("content", Some(growing.text().as_str().into()));
            }
            body
        }
    }
}
