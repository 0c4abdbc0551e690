//! The state of a session that is written: the newest snapshot, the changes of the cycle in progress,
//! and what later commits need to know.

use std::collections::BTreeMap;
use std::fmt::{Arguments, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use roaring::RoaringBitmap;
use smallvec::{SmallVec, smallvec};

use super::clock::{Clock, Readings};
use super::delta::delta;
use super::done::DoneRequest;
use super::first::{first_of, first_snapshot};
use super::header::{DraftNode, read};
use super::node::NewNode;
use super::overlay::{Fresh, Overlay};
use super::pin::Pins;
use super::policy::Policy;
use super::refusal::{Refusal, duplicate, header, placement};
use super::slot::{Destination, Insertion};
use super::state::{State, Zero};
use crate::index::{Merge, Meta, Segment, Snapshot, Writer};
use crate::json::{MAX_NESTING, StoredValue};
use crate::tree::timestamp::stored_time;
use crate::tree::{CommitRecord, NodeClass};

/// The write side of one session. Readers have the snapshots it makes; this is for one writer.
///
/// Every method that returns a [`Refusal`] has changed nothing then.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    /// The newest snapshot; before the first commit, the tree the session begins with.
    pub(crate) base: Arc<Snapshot>,
    /// Whether the base was committed, and is not the tree a session begins with.
    pub(super) committed: bool,
    pub(super) overlay: Overlay,
    pub(super) writer: Writer,
    pub(super) clock: Readings,
    /// Removable containers that are empty and that a reference keeps.
    pub(super) waiting: Vec<Arc<str>>,
    pub(super) last_ns: i64,
    pub(super) next_index: i64,
    /// Merges of the newest commits to which older snapshots have not moved yet.
    pub(super) merges: Vec<Merge>,
    /// Ids that were in use and are in the base no more.
    pub(super) retired: HashSet<Box<str>>,
    /// Committed nodes by the cycle whose commit they expire in. Entries may be out of date.
    pub(super) due: BTreeMap<i64, Vec<Arc<str>>>,
    pub(crate) pins: Pins,
    pub(crate) policy: Policy,
    /// `meta.request` of the snapshots to come, as JSON.
    pub(crate) request: Option<Box<str>>,
    pub(super) request_before: Option<Box<str>>,
    pub(crate) done: Vec<DoneRequest>,
}

impl Workspace {
    pub(crate) fn new(clock: Arc<dyn Clock>, policy: Policy) -> Self {
        Self::over(first_snapshot(), false, clock, policy)
    }

    /// A session that goes on after `history`, the last of which is the newest snapshot. Where nothing
    /// is committed, the root and the regions are those of `working`. Linear in the rows kept.
    pub(crate) fn resume(
        history: &[Arc<Snapshot>],
        working: Option<&Snapshot>,
        clock: Arc<dyn Clock>,
        policy: Policy,
    ) -> Self {
        let Some(newest) = history.last() else {
            return match working.and_then(first_of) {
                Some(first) => Self::over(Arc::new(first), false, clock, policy),
                None => Self::new(clock, policy),
            };
        };
        let mut workspace = Self::over(Arc::clone(newest), true, clock, policy);
        // Segments are merged, so they may have rows of later snapshots than these.
        let mut ranges: HashMap<*const Segment, (&Segment, RoaringBitmap)> = HashMap::new();
        for piece in history.iter().flat_map(|snapshot| snapshot.pieces()) {
            let segment = &**piece.segment();
            let entry = ranges.entry(std::ptr::from_ref(segment));
            let (_, rows) = entry.or_insert_with(|| (segment, RoaringBitmap::new()));
            rows.insert_range(piece.rows());
        }
        for (segment, rows) in ranges.values() {
            for row in rows {
                let id = segment.id(row);
                workspace.last_ns = workspace.last_ns.max(segment.creation_times().get(row));
                if !segment.is_core(row) && newest.find(id).is_none() {
                    workspace.retired.insert(id.into());
                }
            }
        }
        for node in newest.nodes() {
            if let Some(ttl) = node.ttl() {
                workspace.expire_at(node.id().into(), newest.cycle().checked_add(ttl));
            }
        }
        workspace.request = newest.meta().request().map(Into::into);
        workspace.request_before = workspace.request.clone();
        workspace.add_regions();
        workspace
    }

    fn over(base: Arc<Snapshot>, committed: bool, clock: Arc<dyn Clock>, policy: Policy) -> Self {
        Self {
            base,
            committed,
            overlay: Overlay::default(),
            writer: Writer::counting(),
            clock: Readings::new(clock),
            waiting: Vec::new(),
            last_ns: 0,
            next_index: 0,
            merges: Vec::new(),
            retired: HashSet::new(),
            due: BTreeMap::new(),
            pins: Pins::default(),
            policy,
            request: None,
            request_before: None,
            done: Vec::new(),
        }
    }

    pub(super) fn state(&self) -> State<'_> {
        State::new(&self.base, &self.overlay)
    }

    pub(crate) fn cycle(&self) -> i64 {
        self.base.cycle().saturating_add(1)
    }

    pub(crate) fn is_changed(&self) -> bool {
        !self.overlay.is_empty() || self.request != self.request_before
    }

    pub(crate) fn region_id(&self, class: NodeClass) -> Result<Arc<str>, Refusal> {
        let region = self.state().region(class);
        let missing = || placement("the session lacks a region");
        region.map(|region| region.id().into()).ok_or_else(missing)
    }

    /// The end of the core of `^ah`. Its container is made if there is neither that nor a block at offset 0.
    pub(crate) fn open_core(&mut self) -> Result<Destination, Refusal> {
        let head = self.region_id(NodeClass::Head)?;
        let state = self.state();
        let zero = state
            .find(&head)
            .map_or(Zero::Free, |head| state.zero_of(head, ""));
        let (parent, in_core) = match zero {
            Zero::Core(core) => (core.id().into(), false),
            Zero::Loose => (head, true),
            Zero::Free => {
                let id = self.free_id(format_args!("mc:{}", self.cycle()))?;
                let core = DraftNode::new(Arc::clone(&id), NodeClass::Container);
                let core = self.make(core, head, 0)?;
                self.overlay.insert(core);
                (id, false)
            }
        };
        Ok(Destination {
            in_core,
            ..Destination::new(parent, Insertion::End)
        })
    }

    /// The id that `node` gets if it is the next to be added.
    pub(crate) fn next_id(&self, node: &NewNode) -> Result<String, Refusal> {
        let body = read(node)?.body;
        if !body.id.is_empty() {
            return Ok(body.id.to_string());
        }
        let id = self.made_id(body.class(), 0, &HashSet::new())?;
        Ok(id.to_string())
    }

    /// Refuses a session that cannot be written because a node has the last time or index there is.
    pub(crate) fn check_times(&self) -> Result<(), Refusal> {
        if self.last_ns == i64::MAX || self.next_index == i64::MAX {
            let message = "a node has the largest created_at_ns or creation_index, so none is left";
            return Err(header(message));
        }
        Ok(())
    }

    pub(crate) fn discard(&mut self) {
        let overlay = std::mem::take(&mut self.overlay);
        // No id is given again. The regions that a session lacks are added again under their own.
        let is_region = |class| matches!(class, NodeClass::Sys | NodeClass::Seq | NodeClass::Head);
        let fresh = overlay.fresh().filter(|fresh| !is_region(fresh.class()));
        self.overlay.spent = fresh.map(|fresh| Arc::clone(&fresh.id)).collect();
        self.overlay
            .spent
            .extend(overlay.spent.into_iter().chain(overlay.promised));
        self.request = self.request_before.clone();
        self.add_regions();
        let state = State::new(&self.base, &self.overlay);
        self.pins.retain(|id| state.find(id).is_some());
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.state().find(id).is_some()
    }

    /// Runs several additions as one: all or nothing. They must put nodes at the end of their parents
    /// only. Costs nothing beyond them.
    pub(crate) fn add_all<T>(
        &mut self,
        add: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let (slots, times) = (self.overlay.slots(), (self.last_ns, self.next_index));
        let outer = self.clock.begin();
        let result = add(self);
        self.clock.end(outer, result.is_ok());
        if result.is_err() {
            self.overlay.forget_from(slots);
            (self.last_ns, self.next_index) = times;
        }
        result
    }

    pub(crate) fn all_or_nothing<T, E>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.revocable(change).map(|(done, _)| done)
    }

    /// As [`Workspace::all_or_nothing`], with what takes the changes back later.
    pub(super) fn revocable<T, E>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<(T, Checkpoint), E> {
        let before = Checkpoint {
            overlay: self.overlay.clone(),
            waiting: self.waiting.clone(),
            last_ns: self.last_ns,
            next_index: self.next_index,
            request: self.request.clone(),
        };
        let outer = self.clock.begin();
        // A counter or a clock of the caller may panic; what they are called for is undone then, too.
        let result = catch_unwind(AssertUnwindSafe(|| change(self)));
        self.clock.end(outer, matches!(result, Ok(Ok(_))));
        match result {
            Ok(Ok(done)) => Ok((done, before)),
            Ok(Err(error)) => {
                self.restore(before);
                Err(error)
            }
            Err(panic) => {
                self.restore(before);
                resume_unwind(panic)
            }
        }
    }

    pub(crate) fn restore(&mut self, before: Checkpoint) {
        self.overlay = before.overlay;
        self.waiting = before.waiting;
        self.last_ns = before.last_ns;
        self.next_index = before.next_index;
        self.request = before.request;
    }

    pub(super) fn expire_at(&mut self, id: Arc<str>, cycle: Option<i64>) {
        if let Some(cycle) = cycle {
            self.due.entry(cycle).or_default().push(id);
        }
    }

    /// Adds the regions that a session from elsewhere lacks.
    pub(super) fn add_regions(&mut self) {
        for class in [NodeClass::Sys, NodeClass::Seq, NodeClass::Head] {
            if self.state().region(class).is_none() {
                let parent: Arc<str> = self.base.root().id().into();
                let id = self.free_id(format_args!("{}", class.as_str()));
                let made = id.and_then(|id| self.make(DraftNode::new(id, class), parent, 0));
                if let Ok(fresh) = made {
                    self.overlay.insert(fresh);
                }
            }
        }
    }

    pub(super) fn is_used(&self, id: &str) -> bool {
        self.overlay.find(id).is_some()
            || self.overlay.spent.contains(id)
            || self.overlay.promised.contains(id)
            || self.retired.contains(id)
            || self.base.find(id).is_some()
    }

    /// `wanted`, or with the first of `~2`, `~3`, … that is free.
    pub(super) fn free_id(&self, wanted: Arguments<'_>) -> Result<Arc<str>, Refusal> {
        self.free_id_beside(wanted, &HashSet::new())
    }

    /// As [`Workspace::free_id`], and none of `taken`.
    fn free_id_beside(
        &self,
        wanted: Arguments<'_>,
        taken: &HashSet<Arc<str>>,
    ) -> Result<Arc<str>, Refusal> {
        // Ids that are made are short, and writing to memory does not fail.
        let mut text = ShortText::default();
        let _ = text.write_fmt(wanted);
        let wanted = std::str::from_utf8(&text.0).unwrap_or_default();
        let is_free = |id: &str| !self.is_used(id) && !taken.contains(id);
        if is_free(wanted) {
            return Ok(wanted.into());
        }
        let mut others = (2_u64..).map(|number| format!("{wanted}~{number}"));
        let free = others.find(|id| is_free(id));
        free.map(Into::into)
            .ok_or_else(|| placement("all ids of this form are in use"))
    }

    /// A new node with its times. Reads the clock.
    pub(super) fn make(
        &mut self,
        draft: DraftNode,
        parent: Arc<str>,
        offset: i64,
    ) -> Result<Fresh, Refusal> {
        let DraftNode {
            mut body, created, ..
        } = draft;
        let id = &body.id;
        let later = self.last_ns.checked_add(1);
        let later = later.ok_or_else(|| header(format!("`{id}`: no later time is left")))?;
        let next = self.next_index.checked_add(1);
        let next = next.ok_or_else(|| header(format!("`{id}`: no creation_index is left")))?;
        let now = created.as_ref().map(|(_, nanos)| *nanos);
        body.created_at_ns = now.unwrap_or_else(|| self.clock.read()).max(later);
        body.cycle = self.cycle();
        body.creation_index = self.next_index;
        let iso: StoredValue = match &created {
            Some((text, _)) => (&**text).into(),
            None => stored_time(body.created_at_ns),
        };
        body.set_field("created_at_iso", Some(iso));
        self.last_ns = body.created_at_ns;
        self.next_index = next;
        Ok(Fresh::new(parent, offset, body))
    }

    /// Checks `node` and all below it: headers and ids in document order. `level` is that of the parent.
    pub(super) fn draft(&self, node: &NewNode, level: usize) -> Result<DraftSubtree, Refusal> {
        let mut draft = DraftSubtree::new();
        let mut open: SmallVec<[_; 4]> = smallvec![(node, None, level + 1)];
        let mut taken: HashSet<Arc<str>> = HashSet::new();
        while let Some((node, above, level)) = open.pop() {
            let mut checked = read(node)?;
            checked.above = above;
            let (index, id) = (draft.len(), &checked.body.id);
            let is_given = !id.is_empty();
            if is_given && self.is_used(id) {
                let message = format!("the id `{id}` is or was in use");
                return Err(duplicate(message).help("leave it out to have one made"));
            }
            if is_given && !taken.insert(Arc::clone(id)) {
                return Err(duplicate(format!("the id `{id}` is given twice")));
            }
            if level >= MAX_NESTING {
                let name = if is_given { id } else { "a node" };
                let message = format!("`{name}` would be more than {MAX_NESTING} levels deep");
                return Err(placement(message));
            }
            draft.push(checked);
            let children = node.children.iter().rev();
            open.extend(children.map(|child| (child, Some(index), level + 1)));
        }
        // Given ids are taken before others are made.
        let several = draft.len() > 1;
        for (index, node) in draft.iter_mut().enumerate() {
            if node.body.id.is_empty() {
                node.body.id = self.made_id(node.body.class(), index, &taken)?;
                if several {
                    taken.insert(Arc::clone(&node.body.id));
                }
            }
        }
        Ok(draft)
    }

    /// The id of the node that is made after `more` others, none of `taken`. A blame knows nodes by this form.
    pub(super) fn made_id(
        &self,
        class: NodeClass,
        more: usize,
        taken: &HashSet<Arc<str>>,
    ) -> Result<Arc<str>, Refusal> {
        let prefix = if class == NodeClass::Container {
            "mc"
        } else {
            "cb"
        };
        let index = self.next_index.saturating_add(more as i64);
        self.free_id_beside(format_args!("{prefix}:c{}-{index}", self.cycle()), taken)
    }

    /// Makes the nodes of a draft below `parent`; its first node gets `offset`.
    pub(super) fn build(
        &mut self,
        draft: DraftSubtree,
        parent: Arc<str>,
        offset: i64,
    ) -> Result<Vec<Fresh>, Refusal> {
        self.add_all(|workspace| {
            let mut made: Vec<Fresh> = Vec::with_capacity(draft.len());
            for node in draft {
                let (parent, offset) = match node.above {
                    None => (Arc::clone(&parent), offset),
                    Some(above) => (Arc::clone(&made[above].id), node.offset.unwrap_or(0)),
                };
                made.push(workspace.make(node, parent, offset)?);
            }
            Ok(made)
        })
    }

    /// Makes the working state as it is now. Calling costs a reference count for each new node, making
    /// it is linear in the units that were changed.
    pub(crate) fn working(&self) -> impl FnOnce() -> Arc<Snapshot> + Send + 'static {
        let (base, overlay) = (Arc::clone(&self.base), self.overlay.clone());
        let mut meta = self.meta(self.base.cycle(), &CommitRecord::default(), None);
        meta.working = true;
        meta.cycle_given = false;
        move || {
            let delta = delta(State::new(&base, &overlay), &[], 0);
            let mut writer = Writer::counting().without_merging();
            match writer.apply(Some(&*base), &base, &delta, meta) {
                Ok((snapshot, _)) => Arc::new(snapshot),
                // Unreachable: every mutation keeps the rules of documents.
                Err(_) => base,
            }
        }
    }

    pub(super) fn meta(&self, cycle: i64, record: &CommitRecord, usage: Option<String>) -> Meta {
        let record = (!record.is_empty()).then(|| serde_json::to_string(record).ok());
        let meta = match (record.flatten(), &self.request) {
            (None, None) => None,
            (None, Some(request)) => Some(format!("{{\"request\":{request}}}")),
            (Some(record), None) => Some(format!("{{\"commit\":{record}}}")),
            (Some(record), Some(request)) => {
                Some(format!("{{\"commit\":{record},\"request\":{request}}}"))
            }
        };
        let extra = [("meta", meta), ("usage", usage)];
        let extra = extra.map(|(name, json)| Some((name.into(), json?.into())));
        Meta {
            cycle,
            working: false,
            cycle_given: true,
            spec_version: self.base.meta().spec_version.clone(),
            extra: extra.into_iter().flatten().collect(),
        }
    }
}

/// A text that is formatted without an allocation if it is short.
#[derive(Default)]
struct ShortText(SmallVec<[u8; 48]>);

impl Write for ShortText {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        self.0.extend_from_slice(part.as_bytes());
        Ok(())
    }
}

/// The checked nodes of a subtree, in document order; at least one.
pub(super) type DraftSubtree = Vec<DraftNode>;

/// What a change that is taken back leaves as it was.
#[derive(Default)]
pub(crate) struct Checkpoint {
    overlay: Overlay,
    waiting: Vec<Arc<str>>,
    last_ns: i64,
    next_index: i64,
    request: Option<Box<str>>,
}
