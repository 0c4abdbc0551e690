//! What the cycle in progress has changed: new nodes, and marks on committed ones.
//!
//! An overlay knows no rules and no snapshot; [`super::state`] reads it together with one.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::growing::Growing;
use super::word::{Word, word};
use crate::index::NodeRef;
use crate::json::{JsonValue, StoredValue};
use crate::tree::check::class_of;
use crate::tree::hash::{content_hash, hex};
use crate::tree::{CommitRecord, NodeClass};

/// Slots of an overlay; most lists are short.
type Slots = SmallVec<[u32; 4]>;

/// No memory is kept for more new nodes than this.
const LEFT_SLOTS: usize = 32;

/// A node made in this cycle: its place, and what it is. Copies share the latter until it is changed, so
/// that copying and moving a node cost no more than its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fresh {
    pub(super) parent: Arc<str>,
    pub(super) offset: i64,
    #[serde(skip)]
    children: Slots,
    #[serde(flatten)]
    body: Arc<NodeBody>,
}

/// What a node is, without its place. Id, cycle and times are filled when the node is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeBody {
    pub(super) id: Arc<str>,
    pub(super) node_type: Word,
    pub(super) role: Option<Word>,
    pub(super) kind: Option<Word>,
    pub(super) key: Option<Word>,
    pub(super) ttl: Option<i64>,
    pub(super) priority: i64,
    #[serde(skip)]
    pub(super) cycle: i64,
    pub(super) created_at_ns: i64,
    pub(super) creation_index: i64,
    pub(super) removable: bool,
    /// The fields of the payload record by name, `created_at_iso` among them and without a null ttl.
    pub(super) fields: Vec<(Word, StoredValue)>,
    /// The content, while it grows; it replaces the one in `fields`.
    #[serde(skip)]
    pub(super) growing: Option<Growing>,
}

impl Fresh {
    /// A node without children, which is among those of no other yet.
    pub(super) fn new(parent: Arc<str>, offset: i64, body: NodeBody) -> Self {
        Self {
            parent,
            offset,
            children: Slots::new(),
            body: Arc::new(body),
        }
    }

    pub(super) fn children(&self) -> &[u32] {
        &self.children
    }
}

impl Deref for Fresh {
    type Target = NodeBody;

    fn deref(&self) -> &NodeBody {
        &self.body
    }
}

impl DerefMut for Fresh {
    fn deref_mut(&mut self) -> &mut NodeBody {
        Arc::make_mut(&mut self.body)
    }
}

impl NodeBody {
    /// What a node of a snapshot is, with those of its fields that `keeps` takes.
    pub(super) fn from_node(node: NodeRef<'_>, keeps: impl Fn(&str) -> bool) -> Self {
        let fields = node.fields().filter(|(name, _)| keeps(name));
        Self {
            id: node.id().into(),
            node_type: word(node.type_or_class()),
            role: node.role().map(word),
            kind: node.kind().map(word),
            key: node.key().map(word),
            ttl: node.ttl(),
            priority: node.priority(),
            cycle: node.cycle().unwrap_or(0),
            created_at_ns: node.created_at_ns(),
            creation_index: node.creation_index(),
            removable: is_removable(node),
            fields: fields
                .map(|(name, value)| (word(name), value.into()))
                .collect(),
            growing: None,
        }
    }

    pub(super) fn class(&self) -> NodeClass {
        class_of(&self.node_type)
    }

    pub(super) fn field(&self, name: &str) -> Option<JsonValue<'_>> {
        self.place_of(name).ok().map(|at| self.fields[at].1.get())
    }

    fn place_of(&self, name: &str) -> Result<usize, usize> {
        self.fields
            .binary_search_by(|(known, _)| (**known).cmp(name))
    }

    pub(super) fn with_content<R>(&self, read: impl FnOnce(Option<JsonValue<'_>>) -> R) -> R {
        match &self.growing {
            Some(growing) => read(Some(JsonValue::Text(&growing.text()))),
            None => read(self.field("content")),
        }
    }

    pub(super) fn content_hash(&self) -> String {
        let hash = self.with_content(|content| {
            let others = self.fields.iter();
            let others = others.map(|(name, value)| (&**name, value.get()));
            let others = others.filter(|(name, _)| *name != "content");
            let mut fields: Vec<(&str, JsonValue<'_>)> = others.collect();
            fields.extend(content.map(|content| ("content", content)));
            fields.sort_unstable();
            content_hash(self.role.as_deref(), self.kind.as_deref(), fields)
        });
        hex(&hash)
    }

    pub(super) fn set_field(&mut self, name: &str, value: Option<StoredValue>) {
        match (self.place_of(name), value) {
            (Ok(at), Some(value)) => self.fields[at].1 = value,
            (Ok(at), None) => drop(self.fields.remove(at)),
            (Err(at), Some(value)) => self.fields.insert(at, (word(name), value)),
            (Err(_), None) => {}
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LifecycleChange {
    pub(super) ttl: Option<Option<i64>>,
    pub(super) priority: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Compaction {
    /// The matched nodes, in document order.
    pub(super) ids: Vec<Arc<str>>,
    /// The summary, with its id; its place and times are set at the commit.
    pub(super) summary: Vec<Fresh>,
}

/// The changes of a cycle. Cloning costs a few reference counts for each new node.
#[derive(Clone, Debug, Default)]
pub(super) struct Overlay {
    slots: Vec<Option<Fresh>>,
    by_id: HashMap<Arc<str>, u32>,
    /// By committed parent: its new children, in canonical order.
    added: HashMap<Arc<str>, Slots>,
    /// Committed nodes with another ttl or priority.
    pub(super) changed: HashMap<Arc<str>, LifecycleChange>,
    /// Committed nodes that were removed, without what is below them.
    pub(super) gone: HashSet<Arc<str>>,
    /// Ids of this cycle that no node has any more.
    pub(super) spent: HashSet<Arc<str>>,
    /// Nodes that lost a child.
    pub(super) bereft: Vec<Arc<str>>,
    pub(super) compactions: Vec<Compaction>,
    /// Ids taken by the summaries of `compactions`.
    pub(super) promised: HashSet<Arc<str>>,
    /// Which mutations made nodes.
    pub(super) record: CommitRecord,
}

impl Overlay {
    /// Forgets all changes. The memory of a few stays for the next cycle.
    pub(super) fn clear(&mut self) {
        let Self {
            mut slots,
            mut by_id,
            mut added,
            ..
        } = std::mem::take(self);
        if slots.capacity() <= LEFT_SLOTS {
            slots.clear();
            by_id.clear();
            added.clear();
            *self = Self {
                slots,
                by_id,
                added,
                ..Self::default()
            };
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
            && self.changed.is_empty()
            && self.gone.is_empty()
            && self.compactions.is_empty()
    }

    pub(super) fn find(&self, id: &str) -> Option<u32> {
        self.by_id.get(id).copied()
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Fresh> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Fresh> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    pub(super) fn fresh(&self) -> impl Iterator<Item = &Fresh> {
        self.slots.iter().flatten()
    }

    pub(super) fn added_to(&self, parent: &str) -> &[u32] {
        self.added.get(parent).map_or(&[], |slots| slots)
    }

    pub(super) fn parents(&self) -> impl Iterator<Item = &Arc<str>> {
        self.added
            .iter()
            .filter(|(_, slots)| !slots.is_empty())
            .map(|(id, _)| id)
    }

    fn siblings(&mut self, parent: &Arc<str>) -> &mut Slots {
        if let Some(&slot) = self.by_id.get(parent)
            && let Some(fresh) = self.slots[slot as usize].as_mut()
        {
            return &mut fresh.children;
        }
        self.added.entry(Arc::clone(parent)).or_default()
    }

    /// Adds a node to its parent. Logarithmic in its new siblings, plus a shift.
    pub(super) fn insert(&mut self, fresh: Fresh) -> u32 {
        let slot = self.slots.len() as u32;
        if self.by_id.is_empty() {
            // Enough for most turns, so that the table does not grow.
            self.by_id.reserve(7);
        }
        self.by_id.insert(Arc::clone(&fresh.id), slot);
        let parent = Arc::clone(&fresh.parent);
        self.slots.push(Some(fresh));
        self.put_below(&parent, [slot]);
        slot
    }

    /// Puts nodes that are among the children of no other among those of `parent`.
    pub(super) fn put_below(&mut self, parent: &Arc<str>, slots: impl IntoIterator<Item = u32>) {
        let mut siblings = std::mem::take(self.siblings(parent));
        for slot in slots {
            if let Some(fresh) = self.get_mut(slot) {
                fresh.parent = Arc::clone(parent);
            }
            let key = self.get(slot).map(sort_key);
            let before = |&other: &u32| self.get(other).map(sort_key) < key;
            let at = siblings.partition_point(before);
            siblings.insert(at, slot);
        }
        *self.siblings(parent) = siblings;
    }

    pub(super) fn detach(&mut self, slot: u32) {
        let parent = self.get(slot).map(|fresh| Arc::clone(&fresh.parent));
        if let Some(parent) = parent {
            self.siblings(&parent).retain(|other| *other != slot);
        }
    }

    pub(super) fn detach_all(&mut self, parent: &Arc<str>) {
        self.siblings(parent).clear();
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Forgets the nodes of the slots from `slot` on, as if they had never been made.
    pub(super) fn forget_from(&mut self, slot: u32) {
        for slot in (slot..self.slots()).rev() {
            self.detach(slot);
            if let Some(fresh) = self.slots.pop().flatten() {
                self.by_id.remove(&fresh.id);
            }
        }
    }

    /// Removes a detached node, without what is below it.
    pub(super) fn remove(&mut self, slot: u32) {
        if let Some(fresh) = self.slots[slot as usize].take() {
            self.by_id.remove(&fresh.id);
            self.spent.insert(Arc::clone(&fresh.id));
        }
    }

    /// Gives the children of a node another offset; they are sorted again.
    pub(super) fn renumber(&mut self, parent: &Arc<str>, offsets: &[(u32, i64)]) {
        if offsets.is_empty() {
            return;
        }
        for &(slot, offset) in offsets {
            if let Some(fresh) = self.get_mut(slot) {
                fresh.offset = offset;
            }
        }
        let mut siblings = std::mem::take(self.siblings(parent));
        siblings.sort_by(|&a, &b| match (self.get(a), self.get(b)) {
            (Some(a), Some(b)) => sort_key(a).cmp(&sort_key(b)),
            _ => std::cmp::Ordering::Equal,
        });
        *self.siblings(parent) = siblings;
    }
}

pub(super) fn is_removable(node: NodeRef<'_>) -> bool {
    node.field("removable") == Some(JsonValue::Bool(true))
}

/// What siblings are sorted by (LANGUAGE §6).
pub(super) type SortKey<'a> = (i64, i64, i64, &'a str);

pub(super) fn sort_key(fresh: &Fresh) -> SortKey<'_> {
    (
        fresh.offset,
        fresh.created_at_ns,
        fresh.creation_index,
        &fresh.id,
    )
}
