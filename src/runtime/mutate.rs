//! The mutations: add, update, remove, replace (RUNTIME §3). [`super::relocate`] moves nodes.

use std::sync::Arc;

use hashbrown::HashSet;

use super::header::{Update, check_hash, read_update};
use super::node::NewNode;
use super::overlay::{Fresh, NodeBody};
use super::refusal::{Refusal, header, pinned, placement, region, sealed};
use super::slot::{Destination, Slot, find_slot};
use super::state::{Seal, State, StateNode};
use super::word::word;
use super::workspace::{DraftSubtree, Workspace};
use crate::json::StoredValue;
use crate::tree::NodeClass;
use crate::tree::hash::is_hashed;
use crate::tree::timestamp::stored_time;

impl Workspace {
    pub(crate) fn add(
        &mut self,
        target: &Destination,
        node: &NewNode,
    ) -> Result<Arc<str>, Refusal> {
        let level = self.check_parent(target)?;
        let draft = self.draft(node, level)?;
        let slot = find_slot(self.state(), target, draft[0].mover(None))?;
        self.check_core_of(&slot, &draft[0].body)?;
        self.put(draft, &slot)
    }

    /// Notes for the record of the commit that `add` made a node.
    pub(crate) fn note_added(&mut self, id: &Arc<str>) {
        self.overlay.record.add.push(Arc::clone(id));
    }

    /// The same of nodes with given ids that `append` made.
    pub(crate) fn note_appended(&mut self, ids: &[Arc<str>]) {
        self.overlay.record.append.extend_from_slice(ids);
    }

    /// Refuses a parent that nothing can be added to. Returns its level.
    pub(super) fn check_parent(&self, target: &Destination) -> Result<usize, Refusal> {
        let state = self.state();
        let id = &target.parent;
        let parent = state.get(id)?;
        let location = state.location(parent);
        match parent.class() {
            NodeClass::Root => Err(region(
                "nothing can be added to the root, which has the regions",
            )
            .help("add to `^sys` or `^ah`")),
            NodeClass::Seq => Err(
                region("turns enter `^seq` by sealing, and nothing else does")
                    .help("add to `^ah` and commit, or attach to a turn: `(d1, end)`"),
            ),
            _ if location.seal == Seal::Core => {
                let message =
                    format!("`{id}` is in the core of a sealed turn, which never changes");
                Err(sealed(message).help("attach the node before or after the core: `(d1, end)`"))
            }
            _ if location.seal == Seal::Turn && target.in_core => Err(sealed(format!(
                "the core of `{id}` is sealed and never changes"
            ))
            .help("attach the node before or after the core: `(d1, end)`")),
            _ => Ok(location.level),
        }
    }

    /// Refuses a core that could go away without its turn.
    pub(super) fn check_core_of(&self, slot: &Slot, body: &NodeBody) -> Result<(), Refusal> {
        let is_core = body.class() == NodeClass::Container && slot.offset == 0;
        let parent = self.state().find(&slot.parent);
        let what = match body.ttl {
            _ if !is_core || !parent.is_some_and(StateNode::is_turn) => return Ok(()),
            _ if body.removable => "be removable",
            Some(_) => "have a ttl",
            None => return Ok(()),
        };
        let id = &body.id;
        let message = format!("`{id}` is the core of its turn and cannot {what}");
        Err(header(message).help("give it to the blocks in the core"))
    }

    pub(super) fn put(&mut self, draft: DraftSubtree, slot: &Slot) -> Result<Arc<str>, Refusal> {
        let made = self.build(draft, Arc::clone(&slot.parent), slot.offset)?;
        let id = Arc::clone(&made[0].id);
        self.overlay.renumber(&slot.parent, &slot.renumbered);
        for fresh in made {
            self.overlay.insert(fresh);
        }
        Ok(id)
    }

    pub(crate) fn update(
        &mut self,
        ids: &[&str],
        node: &NewNode,
    ) -> Result<Vec<Arc<str>>, Refusal> {
        let update = read_update(node)?;
        for id in ids {
            self.check_update(id, &update)?;
        }
        for id in ids {
            let slot = self.overlay.find(id);
            match slot.and_then(|slot| self.overlay.get_mut(slot)) {
                Some(fresh) => apply_update(fresh, &update),
                None if update.ttl.is_none() && update.priority.is_none() => {}
                None => {
                    let change = self.overlay.changed.entry((*id).into()).or_default();
                    change.ttl = update.ttl.or(change.ttl);
                    change.priority = update.priority.or(change.priority);
                }
            }
        }
        Ok(ids.iter().map(|id| Arc::from(*id)).collect())
    }

    fn check_update(&self, id: &str, update: &Update) -> Result<(), Refusal> {
        let state = self.state();
        let node = state.get(id)?;
        node.check_no_region("never changes")?;
        let StateNode::New(_, fresh) = node else {
            return match state.location(node).seal {
                Seal::Turn | Seal::Core => {
                    let message = format!("`{id}` is sealed and never changes");
                    Err(sealed(message).help("attach a correction to its turn: `(d1, end)`"))
                }
                _ if !update.is_lifecycle() => Err(sealed(format!(
                    "`{id}` is committed: only its ttl and priority may change"
                ))
                .help("replace the node instead")),
                _ => Ok(()),
            };
        };
        let is_core = node.is_core_container() && state.is_in_turn(node);
        if is_core && matches!(update.ttl, Some(Some(_))) {
            let message = format!("`{id}` is the core of its turn and cannot have a ttl");
            return Err(header(message).help("give it to the blocks in the core"));
        }
        for aliases in [crate::tree::alias::TAGS, crate::tree::alias::CADENCE] {
            let given = |name: &str| {
                let update = update.fields.iter().find(|(known, _)| **known == *name);
                update.map_or_else(|| fresh.field(name).is_some(), |(_, value)| value.is_some())
            };
            if given(aliases.name) && given(aliases.alias) {
                let (name, alias) = (aliases.name, aliases.alias);
                let message = format!("`{id}`: {name} and {alias} are one header");
                // The one that the node has; both are given if it has none.
                let had = [name, alias];
                let had = had.into_iter().find(|name| fresh.field(name).is_some());
                return Err(header(message).help(match had {
                    Some(had) => format!("set `{had}` instead"),
                    None => "give one of them".to_owned(),
                }));
            }
        }
        let mut given = update.fields.iter();
        if given.any(|(name, _)| &**name == "content_hash") {
            let mut after = fresh.clone();
            apply_update(&mut after, update);
            check_hash(&format_args!("`{id}`"), &after)?;
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, ids: &[&str]) -> Result<Vec<Arc<str>>, Refusal> {
        let kept = self.kept();
        let state = self.state();
        let topmost = state.topmost(ids);
        for node in &topmost {
            check_removable(state, *node, &kept)?;
        }
        let removed: Vec<Arc<str>> = topmost.iter().map(|node| Arc::from(node.id())).collect();
        self.take_all(&removed);
        Ok(removed)
    }

    /// The ids of pinned nodes and all above them.
    pub(super) fn kept(&self) -> HashSet<Arc<str>> {
        let pins = self.pins.ids();
        if pins.is_empty() {
            return HashSet::new();
        }
        self.state().with_ancestors(&pins)
    }

    /// Takes a node and all below it out of the working state. Linear in the new nodes below it and, for
    /// a committed node, in the committed parents of new ones.
    pub(super) fn take(&mut self, id: &str) {
        self.take_all(&[id.into()]);
    }

    /// Takes nodes and all below them out of the working state, none of them below another.
    pub(super) fn take_all(&mut self, ids: &[Arc<str>]) {
        if ids.is_empty() {
            return;
        }
        let parents: Vec<Box<str>> = self.overlay.parents().map(|id| (**id).into()).collect();
        // Only these have new nodes below them.
        let above = self.state().with_ancestors(&parents);
        for id in ids {
            let state = self.state();
            let Some(node) = state.find(id) else { continue };
            let parent = state.parent(node).map(|parent| Arc::from(parent.id()));
            let fresh = match node {
                StateNode::Old(_) if !above.contains(id) => Vec::new(),
                _ => self.fresh_below(node),
            };
            if let Some(slot) = node.slot() {
                self.overlay.detach(slot);
            } else {
                self.overlay.gone.insert(Arc::clone(id));
                self.overlay.changed.remove(id);
            }
            for slot in fresh {
                self.overlay.remove(slot);
            }
            self.overlay.bereft.extend(parent);
        }
    }

    fn fresh_below(&self, node: StateNode<'_>) -> Vec<u32> {
        let state = self.state();
        let mut open: Vec<u32> = match node {
            StateNode::New(slot, _) => vec![slot],
            StateNode::Old(_) => {
                let below = |parent: &Arc<str>| {
                    let parent = state.find(parent)?;
                    let mut path = state.upwards(parent);
                    path.any(|above| above.id() == node.id()).then_some(parent)
                };
                let parents = self.overlay.parents().filter_map(below);
                let slots = parents.flat_map(|parent| self.overlay.added_to(parent.id()));
                slots.copied().collect()
            }
        };
        let mut found = Vec::new();
        while let Some(slot) = open.pop() {
            found.push(slot);
            if let Some(fresh) = self.overlay.get(slot) {
                open.extend(fresh.children());
            }
        }
        found
    }

    pub(crate) fn replace(&mut self, id: &str, node: &NewNode) -> Result<Arc<str>, Refusal> {
        let kept = self.kept();
        let state = self.state();
        let old = state.get(id)?;
        check_removable(state, old, &kept)?;
        let location = state.location(old);
        let mut draft = self.draft(node, location.level.saturating_sub(1))?;
        let place = NodePlace::new(state, old);
        place.check(&draft)?;
        let successor = &mut draft[0].body;
        if successor.key.is_none() {
            successor.key = old.key().map(word);
        }
        self.check_successor(&place, successor, id)?;
        // Everything was checked; what is left to fail is that times run out.
        let made = self.build(draft, Arc::clone(&place.parent), place.offset)?;
        self.take(id);
        let successor = self.put_at(made, &place);
        let replaced = &mut self.overlay.record.replace;
        replaced.insert(Arc::clone(&successor), id.into());
        Ok(successor)
    }

    /// Refuses a successor that changes what the core of a turn is.
    fn check_successor(
        &self,
        place: &NodePlace,
        body: &NodeBody,
        old: &str,
    ) -> Result<(), Refusal> {
        let state = self.state();
        let Some(parent) = state.find(&place.parent) else {
            return Ok(());
        };
        if !parent.is_turn() || place.offset != 0 || body.class() != NodeClass::Container {
            return Ok(());
        }
        if body.ttl.is_some() || body.removable {
            let message =
                format!("the successor of `{old}` is the core of its turn: no ttl, not removable");
            return Err(header(message).help("give it to the blocks in the core"));
        }
        let loose = state.children(parent).into_iter();
        if let Some(other) = loose
            .filter(|child| child.offset() == 0)
            .find(|child| child.id() != old)
        {
            let message = format!(
                "the successor of `{old}` cannot be the core of `{}`: `{}` has offset 0 too",
                parent.id(),
                other.id()
            );
            return Err(placement(message));
        }
        Ok(())
    }

    /// Inserts nodes that were built, the first at a place that another node had. Linear in the children there.
    pub(super) fn put_at(&mut self, mut made: Vec<Fresh>, place: &NodePlace) -> Arc<str> {
        let first = &mut made[0];
        let (offset, nanos, index) = place.settle(self.state(), first);
        first.offset = offset;
        first.creation_index = index;
        if first.created_at_ns != nanos {
            first.created_at_ns = nanos;
            first.set_field("created_at_iso", place.created_at_iso.clone());
        }
        let id = Arc::clone(&first.id);
        for fresh in made {
            self.overlay.insert(fresh);
        }
        id
    }
}

/// The place of a node among its siblings, for its successor.
#[derive(Clone, Debug)]
pub(super) struct NodePlace {
    pub(super) parent: Arc<str>,
    pub(super) offset: i64,
    id: Arc<str>,
    created_at_ns: i64,
    creation_index: i64,
    created_at_iso: Option<StoredValue>,
    is_new: bool,
}

impl NodePlace {
    pub(super) fn new(state: State<'_>, node: StateNode<'_>) -> Self {
        let (offset, created_at_ns, creation_index, _) = node.sort_key();
        let parent = state.parent(node);
        let iso = node.field("created_at_iso");
        let iso = iso.map_or_else(|| stored_time(created_at_ns), StoredValue::from);
        Self {
            parent: parent.map_or_else(|| "".into(), |parent| parent.id().into()),
            offset,
            id: node.id().into(),
            created_at_ns,
            creation_index,
            created_at_iso: Some(iso),
            is_new: node.slot().is_some(),
        }
    }

    /// The offset, time and index with which `successor` is between the siblings that the node was between, once
    /// that is gone. The time and the index are its own wherever an offset puts it there; siblings that are
    /// committed and have the same offset leave only the time of the node.
    fn settle(&self, state: State<'_>, successor: &Fresh) -> (i64, i64, i64) {
        let (nanos, index) = (successor.created_at_ns, successor.creation_index);
        let parent = state.find(&self.parent);
        let siblings = parent.map_or_else(Vec::new, |parent| state.children(parent));
        let own = (
            self.offset,
            self.created_at_ns,
            self.creation_index,
            &*self.id,
        );
        let at = siblings.partition_point(|sibling| sibling.sort_key() < own);
        let left = siblings[..at].last().map(|sibling| sibling.sort_key());
        let right = siblings.get(at).map(|sibling| sibling.sort_key());
        let keeps = |&(offset, nanos, index): &(i64, i64, i64)| {
            let key = (offset, nanos, index, &*successor.id);
            let zoned = parent.is_some_and(StateNode::is_turn);
            (!zoned || offset.signum() == self.offset.signum())
                && left.is_none_or(|left| left < key)
                && right.is_none_or(|right| key < right)
        };
        let before = right.map_or(self.offset, |right| right.0.saturating_sub(1));
        // An earlier node of this cycle has times that are in order already.
        let inherited = if self.is_new {
            self.creation_index
        } else {
            index
        };
        let places = [
            (self.offset, nanos, index),
            (before, nanos, index),
            (self.offset, self.created_at_ns, inherited),
        ];
        let found = places.into_iter().find(keeps);
        found.unwrap_or((self.offset, self.created_at_ns, self.creation_index))
    }

    pub(super) fn check(&self, draft: &DraftSubtree) -> Result<(), Refusal> {
        let first = &draft[0];
        let (what, help) = match &first.created {
            _ if first.offset.is_some() => ("offset", "leave out the offset"),
            Some(_) => ("time", "leave out created_at_iso"),
            None => return Ok(()),
        };
        let id = &first.body.id;
        let message = format!("`{id}` takes the place of another node, which decides its {what}");
        Err(header(message).help(help))
    }
}

pub(super) fn check_removable(
    state: State<'_>,
    node: StateNode<'_>,
    kept: &HashSet<Arc<str>>,
) -> Result<(), Refusal> {
    let id = node.id();
    node.check_no_region("cannot be removed")?;
    if matches!(state.location(node).seal, Seal::Turn | Seal::Core) {
        let message = format!("`{id}` is sealed and cannot be removed by hand");
        return Err(sealed(message).help("compact it, with a summary in its place"));
    }
    check_unpinned(id, kept)
}

pub(super) fn check_unpinned(id: &str, kept: &HashSet<Arc<str>>) -> Result<(), Refusal> {
    if !kept.contains(id) {
        return Ok(());
    }
    let message = format!("`{id}` is pinned, or a node below it is");
    Err(pinned(message).help("drop the reference first"))
}

fn apply_update(fresh: &mut Fresh, update: &Update) {
    let names = update.fields.iter().map(|(name, _)| &**name);
    let hash_given = names.clone().any(|name| name == "content_hash");
    let touched = update.role.is_some() || update.kind.is_some() || names.clone().any(is_hashed);
    if touched && !hash_given {
        fresh.set_field("content_hash", None);
    }
    if names.clone().any(|name| name == "content") {
        fresh.growing = None;
    }
    if let Some(ttl) = update.ttl {
        fresh.ttl = ttl;
    }
    if let Some(priority) = update.priority {
        fresh.priority = priority;
    }
    let body = &mut **fresh;
    for (own, given) in [
        (&mut body.role, &update.role),
        (&mut body.kind, &update.kind),
        (&mut body.key, &update.key),
    ] {
        if let Some(given) = given {
            own.clone_from(given);
        }
    }
    for (name, value) in &update.fields {
        fresh.set_field(name, value.clone());
    }
}
