//! Moving nodes (RUNTIME §3): new ones keep their id; a committed one that changes its region gets a
//! successor.

use std::sync::Arc;

use hashbrown::HashSet;

use super::header::{COLUMNS, Headers};
use super::mutate::{check_removable, check_unpinned, is_region, region_name};
use super::refusal::{Refusal, placement, region, sealed};
use super::slot::{Insertion, Mover, Target, find_slot};
use super::state::{Node, Region, Seal};
use super::workspace::{Draft, Workspace};
use crate::tree::NodeClass;

impl Workspace {
    /// Moves nodes with all below them, one after the other. Returns their ids, new ones for those
    /// that changed their region after they were committed.
    pub(crate) fn relocate(
        &mut self,
        ids: &[&str],
        target: &Target,
    ) -> Result<Vec<Arc<str>>, Refusal> {
        let topmost = self.state().topmost(ids);
        let topmost: Vec<Arc<str>> = topmost.iter().map(|node| Arc::from(node.id())).collect();
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
    fn after(&self, last: &str, target: &Target) -> Target {
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
        Target {
            parent: parent.id().into(),
            in_core: target.in_core,
            insertion: Insertion::After(at.map_or(siblings.len(), |at| at + 1)),
        }
    }

    fn relocate_one(
        &mut self,
        id: &str,
        target: &Target,
        moving: &HashSet<Arc<str>>,
    ) -> Result<Arc<str>, Refusal> {
        let state = self.state();
        let missing = || placement(format!("no node has the id `{id}`"));
        let node = state.find(id).ok_or_else(missing)?;
        if is_region(node) {
            return Err(region(format!(
                "`{id}` is a region or the root and cannot be moved"
            )));
        }
        if node.class() == NodeClass::Turn {
            let message =
                format!("`{id}` is a turn; turns move from `^ah` to `^seq` by sealing only");
            return Err(region(message));
        }
        let level = self.check_parent(target)?;
        let parent = state.find(&target.parent).ok_or_else(missing)?;
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
            Node::New(slot, _) => self.relocate_new(slot, target, moving),
            Node::Old(_) => self.relocate_committed(node.id().into(), target, moving),
        }
    }

    fn relocate_new(
        &mut self,
        slot: u32,
        target: &Target,
        moving: &HashSet<Arc<str>>,
    ) -> Result<Arc<str>, Refusal> {
        let Some(fresh) = self.overlay.get(slot) else {
            return Err(placement("the node is gone"));
        };
        let id = Arc::clone(&fresh.id);
        let old_parent = Arc::clone(&fresh.parent);
        let keeps = target.insertion == Insertion::Into;
        let mut mover = Mover {
            id: &id,
            moving: Some(moving),
            times: (fresh.created_at_ns, fresh.creation_index),
            offset: keeps.then_some(fresh.offset),
            is_container: fresh.class == NodeClass::Container,
        };
        let found = find_slot(self.state(), target, mover).or_else(|refusal| {
            // Where its own offset is not allowed, it takes the place of a new node.
            if !keeps {
                return Err(refusal);
            }
            mover.offset = None;
            find_slot(self.state(), target, mover)
        })?;
        self.check_core_of(&found, fresh.ttl, fresh.removable, mover)?;
        let parent: Arc<str> = found.parent.as_ref().into();
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
        target: &Target,
        moving: &HashSet<Arc<str>>,
    ) -> Result<Arc<str>, Refusal> {
        let kept = self.kept();
        let state = self.state();
        let (Some(node), Some(parent)) = (state.find(&id), state.find(&target.parent)) else {
            return Err(placement(format!("no node has the id `{id}`")));
        };
        let (from, to) = (state.location(node), state.location(parent));
        if from.seal == Seal::Core {
            return Err(sealed(format!("`{id}` is sealed and cannot be moved"))
                .help("attach a copy to a turn: `(d1, end)`"));
        }
        if from.region == to.region {
            let name = region_name(from.region);
            let message = format!(
                "`{id}` is committed: it can be moved to another region than `{name}`, not inside it"
            );
            return Err(sealed(message).help("replace or remove it, and add another"));
        }
        check_unpinned(&id, &kept)?;
        check_removable(state, node, &kept)?;
        debug_assert_ne!(to.region, Region::Root);
        let draft = self.copy(node)?;
        let Some((headers, copy, _)) = draft.0.first() else {
            return Err(placement(format!("no node has the id `{id}`")));
        };
        let keeps = target.insertion == Insertion::Into;
        let mut mover = Mover {
            id: copy,
            moving: Some(moving),
            times: (i64::MAX, i64::MAX),
            offset: keeps.then_some(headers.offset).flatten(),
            is_container: headers.class == NodeClass::Container,
        };
        let found = find_slot(state, target, mover).or_else(|refusal| {
            if !keeps {
                return Err(refusal);
            }
            mover.offset = None;
            find_slot(state, target, mover)
        })?;
        self.check_core_of(&found, headers.ttl, headers.removable, mover)?;
        let copy = self.put(&draft, &found)?;
        self.take(&id);
        Ok(copy)
    }

    /// A draft of successors of a node and all below it.
    fn copy(&self, node: Node<'_>) -> Result<Draft, Refusal> {
        let state = self.state();
        let subtree = state.subtree(node);
        let mut draft = Draft::default();
        for (index, node) in subtree.iter().enumerate() {
            let above = state.parent(*node).map(Node::id);
            let above = above.filter(|_| index > 0);
            let above = above.and_then(|id| subtree.iter().position(|other| other.id() == id));
            let id = self.made_id(node.class(), index, &HashSet::new())?;
            draft.0.push((
                headers_of(*node, self.overlay.changed.get(node.id())),
                id,
                above,
            ));
        }
        Ok(draft)
    }
}

/// The headers that a successor has in common with a node.
fn headers_of(node: Node<'_>, change: Option<&super::overlay::Change>) -> Headers {
    // The time is filled again; of the others, a record has explicit nulls only.
    let is_filled = |name: &str| name == "created_at_iso" || COLUMNS.contains(&name);
    match node {
        Node::Old(old) => {
            let change = change.copied().unwrap_or_default();
            let fields = old.fields().filter(|(name, _)| !is_filled(name));
            Headers {
                id: None,
                node_type: old.type_or_class().into(),
                class: old.class(),
                offset: Some(old.offset()),
                ttl: change.ttl.unwrap_or_else(|| old.ttl()),
                priority: change.priority.unwrap_or_else(|| old.priority()),
                role: old.role().map(Into::into),
                kind: old.kind().map(Into::into),
                key: old.key().map(Into::into),
                created: None,
                removable: node.is_removable(),
                fields: fields
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect(),
            }
        }
        Node::New(_, fresh) => {
            let mut fields = fresh.fields.clone();
            fields.retain(|(name, _)| !is_filled(name));
            if let Some(growing) = &fresh.growing {
                fields.retain(|(name, _)| &**name != "content");
                fields.push(("content".into(), growing.text().as_str().into()));
                fields.sort_unstable();
            }
            Headers {
                id: None,
                node_type: fresh.node_type.clone(),
                class: fresh.class,
                offset: Some(fresh.offset),
                ttl: fresh.ttl,
                priority: fresh.priority,
                role: fresh.role.clone(),
                kind: fresh.kind.clone(),
                key: fresh.key.clone(),
                created: None,
                removable: fresh.removable,
                fields,
            }
        }
    }
}
