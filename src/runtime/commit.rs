//! The commit of a cycle: expire, cascade, compact, prune, cascade, seal (RUNTIME §3, source 002
//! chapter 03 §7).

use std::sync::Arc;

use hashbrown::HashSet;

use super::delta::{delta, only_turn, spare};
use super::header::DraftNode;
use super::mutate::{NodePlace, check_unpinned};
use super::node::NewNode;
use super::overlay::{Compaction, Fresh};
use super::refusal::{Refusal, header, placement, sealed};
use super::state::{Seal, StateNode};
use super::workspace::{Checkpoint, Workspace};
use crate::index::{Merge, Snapshot};
use crate::json::MAX_NESTING;
use crate::tree::{CommitRecord, CompactionRecord, NodeClass};

/// What a commit did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Commit {
    /// The cycle.
    pub cycle: i64,
    /// The id of the turn that was sealed.
    pub turn: String,
    /// The ids of the topmost nodes whose ttl ran out, in document order.
    pub expired: Vec<String>,
    /// The ids of the topmost nodes that compactions took: compactions in the order they were asked for,
    /// nodes of one in document order.
    pub compacted: Vec<String>,
    /// The ids of the topmost nodes that compactions were to take and that a reference kept, in document order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// The ids of the summaries that did not come, as nothing of what they were for could go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub voided: Vec<String>,
    /// The ids of the turns and blocks that the policy pruned, in the order they went.
    pub pruned: Vec<String>,
    /// The ids of the removable containers that lost their last child, in the order they went.
    pub emptied: Vec<String>,
    /// By how much the limits of the policy are still passed, as nothing more could go.
    pub over: u64,
}

/// A commit that readers do not see yet: [`Workspace::finish`] ends it, [`Workspace::restore`] takes it back.
pub(crate) struct PreparedCommit {
    commit: Commit,
    #[cfg_attr(not(feature = "store"), expect(dead_code, reason = "a store asks"))]
    pub(crate) older: Option<Arc<Snapshot>>,
    pub(crate) snapshot: Arc<Snapshot>,
    merges: Vec<Merge>,
    /// Nodes past their time that a reference keeps.
    overdue: Vec<Arc<str>>,
    retired: Vec<Box<str>>,
    pub(crate) before: Checkpoint,
}

#[cfg(feature = "store")]
impl PreparedCommit {
    pub(crate) fn commit(&self) -> &Commit {
        &self.commit
    }

    /// Ids that it puts out of use, sorted.
    pub(crate) fn retired(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.retired.iter().map(ToString::to_string).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

impl Workspace {
    /// Notes a compaction for the next commit. Returns the id of the summary.
    pub(crate) fn compact(&mut self, ids: &[&str], node: &NewNode) -> Result<Arc<str>, Refusal> {
        let kept = self.kept();
        let state = self.state();
        let topmost = state.topmost(ids);
        if topmost.is_empty() {
            return Err(placement("the selector matches nothing to compact"));
        }
        for node in &topmost {
            let id = node.id();
            node.check_no_region("cannot be compacted")?;
            let is_core = node.is_core_container() && state.is_in_turn(*node);
            if is_core && state.location(*node).seal == Seal::Core {
                let message = format!("`{id}` is the core of a sealed turn, which always has one");
                return Err(sealed(message).help("compact its blocks, or the whole turn"));
            }
        }
        // What a reference keeps stays and is reported; a summary of nothing is refused.
        let matched = state.in_order(ids);
        if matched.iter().all(|node| kept.contains(node.id())) {
            check_unpinned(topmost[0].id(), &kept)?;
        }
        let at_core = |node: &&StateNode<'_>| node.offset() == 0 && state.is_in_turn(**node);
        let at_core = topmost.iter().find(at_core).map(|node| node.id());
        let deepest = topmost.iter().map(|node| state.location(*node).level).max();
        let first = topmost[0];
        let level = deepest.unwrap_or(0).saturating_sub(1);
        let draft = self.draft(node, level)?;
        if draft[0].body.class() == NodeClass::Container
            && let Some(other) = at_core
        {
            let id = &draft[0].body.id;
            let message =
                format!("`{id}` is a container and cannot take the place of `{other}` in a core");
            return Err(placement(message).help("make the summary a block"));
        }
        NodePlace::new(state, first).check(&draft)?;
        let ids = matched.iter().map(|node| Arc::from(node.id())).collect();
        if draft.iter().any(|node| node.body.ttl == Some(0)) {
            return Err(
                header("a summary with ttl 0 would be in no snapshot").help("leave out the ttl")
            );
        }
        let summary = self.build(draft, "".into(), 0)?;
        let id = Arc::clone(&summary[0].id);
        let promised = summary.iter().map(|fresh| Arc::clone(&fresh.id));
        self.overlay.promised.extend(promised);
        self.overlay.compactions.push(Compaction { ids, summary });
        Ok(id)
    }

    /// Makes the commit of the cycle in progress, for [`Workspace::finish`] or, as if there had been none,
    /// [`Workspace::restore`]; nothing else may come between. `usage` is what the provider counted, as JSON.
    ///
    /// Linear in what was changed or expires, the units concerned and, with a policy, the nodes of its scopes;
    /// logarithmic in the session, merges aside.
    pub(crate) fn prepare(&mut self, usage: Option<String>) -> Result<PreparedCommit, Refusal> {
        let cycle = self.base.cycle().checked_add(1);
        let cycle = cycle.ok_or_else(|| placement("no later cycle is left"))?;
        let (prepared, before) =
            self.revocable(|workspace| workspace.commit_cycle(cycle, usage))?;
        Ok(PreparedCommit { before, ..prepared })
    }

    /// The commit without what takes it back.
    fn commit_cycle(
        &mut self,
        cycle: i64,
        usage: Option<String>,
    ) -> Result<PreparedCommit, Refusal> {
        let kept = self.kept();
        let mut commit = Commit {
            cycle,
            ..Commit::default()
        };
        self.overlay.bereft.append(&mut self.waiting);
        let mut record = std::mem::take(&mut self.overlay.record);
        record.remove = self.removed_by_hand();
        let overdue = self.expire(cycle, &kept, &mut commit, &mut record);
        self.cascade(&kept, &mut commit.emptied);
        for compaction in std::mem::take(&mut self.overlay.compactions) {
            let summary = Arc::clone(&compaction.summary[0].id);
            let (made, stay) = self.make_compaction(compaction, &kept);
            commit.kept.extend(strings(stay));
            match made {
                Some(made) => {
                    commit.compacted.extend(strings(made.ids.clone()));
                    record.compact.push(made);
                }
                None => commit.voided.push(summary.to_string()),
            }
        }
        let (pruned, over) = self.prune(&kept);
        commit.pruned = strings(pruned.clone());
        commit.over = over;
        self.cascade(&kept, &mut commit.emptied);
        record.prune = pruned;
        record.empty = commit.emptied.iter().map(|id| id.as_str().into()).collect();
        self.settle_record(&mut record);
        let (turn, moved) = self.seal(cycle)?;
        commit.turn = turn.to_string();
        let meta = self.meta(cycle, &record, usage);
        // Most cycles only add a turn.
        let only_turn = only_turn(self.state(), &turn).filter(|_| moved.is_empty());
        let made = only_turn.and_then(|tree| {
            let made = self.writer.append_turn(&self.base, &tree, &meta);
            spare(tree);
            made
        });
        let made = made.or_else(|| {
            let passed = cycle.saturating_sub(self.base.cycle());
            let delta = delta(self.state(), &moved, passed);
            let base = &*self.base;
            self.writer.apply(Some(base), base, &delta, meta).ok()
        });
        let unsound = || placement("the tree of the cycle breaks a rule of documents");
        let (snapshot, merges) = made.ok_or_else(unsound)?;
        Ok(PreparedCommit {
            retired: self.retires(&snapshot),
            older: self.committed.then(|| Arc::clone(&self.base)),
            snapshot: Arc::new(snapshot),
            commit,
            merges,
            overdue,
            before: Checkpoint::default(),
        })
    }

    /// The topmost committed nodes that mutations took, sorted.
    fn removed_by_hand(&self) -> Vec<Arc<str>> {
        let gone = &self.overlay.gone;
        let is_topmost = |id: &&Arc<str>| {
            let node = self.base.find(id);
            let above = std::iter::successors(node, |node| node.parent()).skip(1);
            !above.into_iter().any(|above| gone.contains(above.id()))
        };
        let mut removed: Vec<Arc<str>> = gone.iter().filter(is_topmost).cloned().collect();
        removed.sort_unstable();
        removed
    }

    /// Leaves out what is in no snapshot: nodes of the cycle that did not stay, and what came between a committed node and
    /// its successor.
    fn settle_record(&self, record: &mut CommitRecord) {
        let state = self.state();
        let lives = |id: &Arc<str>| state.find(id).is_some();
        let made = [&mut record.add, &mut record.append];
        let set = [&mut record.set_system, &mut record.set_tools];
        for ids in made.into_iter().chain(set) {
            ids.retain(lives);
        }
        let before = record.clone();
        let mut succeeded: HashSet<Arc<str>> = HashSet::new();
        for pairs in [&mut record.replace, &mut record.moved] {
            pairs.retain(|id, _| lives(id));
            for old in pairs.values_mut() {
                // Each was made after the one it comes from, so this ends.
                while let Some(older) = before.origin(old) {
                    *old = Arc::clone(older);
                }
                succeeded.insert(Arc::clone(old));
            }
        }
        record.remove.retain(|id| !succeeded.contains(id));
        let was_committed = |id: &Arc<str>| self.base.find(id).is_some();
        record.prune.retain(was_committed);
        record.empty.retain(was_committed);
        for compaction in &mut record.compact {
            compaction.ids.retain(was_committed);
        }
    }

    fn retires(&self, snapshot: &Snapshot) -> Vec<Box<str>> {
        let mut retired = Vec::new();
        for id in &self.overlay.gone {
            let Some(node) = self.base.find(id) else {
                continue;
            };
            let rows = node.row()..self.base.end(node.row());
            for below in self.base.nodes_in(rows) {
                if snapshot.find(below.id()).is_none() {
                    retired.push(below.id().into());
                }
            }
        }
        for id in self.overlay.spent.iter().chain(&self.overlay.promised) {
            if snapshot.find(id).is_none() {
                retired.push((**id).into());
            }
        }
        retired
    }

    /// Takes what expires. Returns the nodes past their time that a reference keeps.
    fn expire(
        &mut self,
        cycle: i64,
        kept: &HashSet<Arc<str>>,
        commit: &mut Commit,
        record: &mut CommitRecord,
    ) -> Vec<Arc<str>> {
        let due = self.due.range(..=cycle).flat_map(|(_, ids)| ids);
        let mut due: Vec<Arc<str>> = due.cloned().collect();
        let fresh = self.overlay.fresh().filter(|fresh| fresh.ttl == Some(0));
        due.extend(fresh.map(|fresh| Arc::clone(&fresh.id)));
        let changed = self.overlay.changed.iter();
        let now = changed.filter(|(_, change)| change.ttl == Some(Some(0)));
        due.extend(now.map(|(id, _)| Arc::clone(id)));
        due.sort_unstable();
        due.dedup();
        let mut overdue = Vec::new();
        let mut expiring: Vec<Arc<str>> = Vec::new();
        for id in due {
            match self.state().find(&id) {
                Some(node) if self.is_due(node, cycle) => {
                    if kept.contains(&id) {
                        overdue.push(id);
                    } else if !self.never_expires(node) {
                        expiring.push(id);
                    }
                }
                _ => {}
            }
        }
        let ids: Vec<&str> = expiring.iter().map(|id| &**id).collect();
        let topmost = self.state().topmost_ids(&ids);
        let changed = &self.overlay.changed;
        let has_new_ttl = |id: &&Arc<str>| changed.get(*id).is_some_and(|now| now.ttl.is_some());
        record.expire = topmost.iter().filter(has_new_ttl).cloned().collect();
        self.take_all(&topmost);
        commit.expired = strings(topmost);
        overdue
    }

    fn is_due(&self, node: StateNode<'_>, cycle: i64) -> bool {
        let due = match node {
            StateNode::New(_, fresh) => fresh.ttl.map(|ttl| cycle.saturating_add(ttl)),
            StateNode::Old(old) => match self
                .overlay
                .changed
                .get(old.id())
                .and_then(|change| change.ttl)
            {
                Some(given) => given.map(|ttl| cycle.saturating_add(ttl)),
                None => old.ttl().map(|ttl| self.base.cycle().saturating_add(ttl)),
            },
        };
        due.is_some_and(|due| due <= cycle)
    }

    /// Regions, sealed turns and cores stay, whatever their ttl.
    fn never_expires(&self, node: StateNode<'_>) -> bool {
        let state = self.state();
        node.is_region()
            || state.location(node).seal == Seal::Turn
            || (node.is_core_container() && state.is_in_turn(node))
    }

    /// Takes removable containers that lost their last child, until none is left.
    fn cascade(&mut self, kept: &HashSet<Arc<str>>, emptied: &mut Vec<String>) {
        let mut at = 0;
        while let Some(id) = self.overlay.bereft.get(at).cloned() {
            at += 1;
            let id = self.emptied_at(&id);
            match id {
                // Looked at again by the next commit.
                Some(id) if kept.contains(&id) => self.waiting.push(id),
                Some(id) => {
                    self.take(&id);
                    emptied.push(id.to_string());
                }
                None => {}
            }
        }
        // All were looked at; a later step notes its own.
        self.overlay.bereft.clear();
        self.waiting.sort_unstable();
        self.waiting.dedup();
    }

    /// The container that goes because `id` lost a child: itself, or the turn of which it is the core.
    fn emptied_at(&self, id: &str) -> Option<Arc<str>> {
        let state = self.state();
        let node = state.find(id)?;
        let turn = match node.class() {
            NodeClass::Container if !state.has_children(node) => {
                let parent = state.parent(node)?;
                if !(parent.is_turn() && node.offset() == 0) {
                    return node.is_removable().then(|| id.into());
                }
                parent
            }
            NodeClass::Turn => node,
            _ => return None,
        };
        if turn.class() != NodeClass::Turn || !turn.is_removable() {
            return None;
        }
        let empty = match state.children(turn)[..] {
            [] => true,
            [core] => core.is_core_container() && !state.has_children(core),
            _ => false,
        };
        empty.then(|| turn.id().into())
    }

    /// Takes what may go and puts the summary there. Also the topmost nodes that a reference keeps.
    fn make_compaction(
        &mut self,
        compaction: Compaction,
        kept: &HashSet<Arc<str>>,
    ) -> (Option<CompactionRecord>, Vec<Arc<str>>) {
        let state = self.state();
        let live = compaction.ids.iter().filter_map(|id| state.find(id));
        let live: Vec<&str> = live.map(StateNode::id).collect();
        let (stay, go): (Vec<&str>, Vec<&str>) = live.iter().partition(|id| kept.contains(**id));
        let stay = state.topmost_ids(&stay);
        // A turn that stays keeps its core.
        let may_go = |node: &StateNode<'_>| {
            let is_core = node.is_core_container() && state.is_in_turn(*node);
            !is_core || state.location(*node).seal != Seal::Core
        };
        let topmost = state.topmost(&go).into_iter().filter(may_go);
        let topmost: Vec<Arc<str>> = topmost.map(|node| node.id().into()).collect();
        (self.put_summary(compaction.summary, &topmost), stay)
    }

    /// Puts a summary where the first of the nodes is, and takes them.
    fn put_summary(
        &mut self,
        mut summary: Vec<Fresh>,
        topmost: &[Arc<str>],
    ) -> Option<CompactionRecord> {
        let state = self.state();
        let first = state.find(topmost.first()?)?;
        let place = NodePlace::new(state, first);
        // What was asked for may not be possible any more, as the nodes may have been moved.
        let level = state.location(first).level;
        let height = heights(&summary);
        let is_container = summary[0].class() == NodeClass::Container;
        let at_core = is_container && place.offset == 0 && state.is_in_turn(first);
        if at_core || level + height > MAX_NESTING {
            return None;
        }
        self.take_all(topmost);
        summary[0].parent = Arc::clone(&place.parent);
        let into = self.put_at(summary, &place);
        let ids = topmost.to_vec();
        Some(CompactionRecord { ids, into })
    }

    /// Makes the turn of the cycle and gives it what is in the head. Returns its id, and the committed
    /// nodes that get another parent.
    #[allow(clippy::type_complexity, reason = "a list of pairs of ids")]
    fn seal(&mut self, cycle: i64) -> Result<(Arc<str>, Vec<(Arc<str>, Arc<str>)>), Refusal> {
        let state = self.state();
        let missing = || placement("the session has no region `^seq` or `^ah`");
        let seq = state.region(NodeClass::Seq).ok_or_else(missing)?;
        let head = state.region(NodeClass::Head).ok_or_else(missing)?;
        let last = state.last_child(seq).map_or(0, |last| last.offset().max(0));
        let (seq, head): (Arc<str>, Arc<str>) = (seq.id().into(), head.id().into());
        let turn_id = self.free_id(format_args!("mt:{cycle}"))?;
        let turn = DraftNode::new(Arc::clone(&turn_id), NodeClass::Turn);
        let turn = self.make(turn, seq, last)?;
        self.overlay.insert(turn);
        let state = self.state();
        let head_node = state.find(&head).ok_or_else(missing)?;
        let children = state.children(head_node);
        // A head from elsewhere may have several containers without an offset: a core around them is one.
        let has_core = children
            .iter()
            .filter(|child| child.is_core_container())
            .count()
            == 1;
        let (mut loose, mut others, mut moved) = (Vec::new(), Vec::new(), Vec::new());
        for child in children {
            let in_core = !has_core && child.offset() == 0;
            match child {
                StateNode::New(slot, _) if in_core => loose.push(slot),
                StateNode::New(slot, _) => others.push(slot),
                StateNode::Old(old) => moved.push((Arc::from(old.id()), in_core)),
            }
        }
        let mut core_id = Arc::clone(&turn_id);
        if !has_core {
            let id = self.free_id(format_args!("mc:{cycle}"))?;
            let core = DraftNode::new(Arc::clone(&id), NodeClass::Container);
            let core = self.make(core, Arc::clone(&turn_id), 0)?;
            self.overlay.insert(core);
            core_id = id;
        }
        self.overlay.detach_all(&head);
        self.overlay.put_below(&core_id, loose);
        self.overlay.put_below(&turn_id, others);
        let parent = |in_core| Arc::clone(if in_core { &core_id } else { &turn_id });
        let moved = moved.into_iter().map(|(id, in_core)| (id, parent(in_core)));
        let moved = moved.collect();
        Ok((turn_id, moved))
    }

    /// Ends a commit. Returns the merges to which older snapshots are to move.
    pub(crate) fn finish(
        &mut self,
        prepared: PreparedCommit,
    ) -> (Commit, Arc<Snapshot>, Vec<Merge>) {
        let cycle = prepared.commit.cycle;
        let mut overlay = std::mem::take(&mut self.overlay);
        self.retired.extend(prepared.retired);
        self.due = self.due.split_off(&cycle.saturating_add(1));
        let fresh = overlay.fresh().map(|fresh| (&fresh.id, fresh.ttl));
        let changed = overlay.changed.iter();
        let changed = changed.map(|(id, change)| (id, change.ttl.flatten()));
        for (id, ttl) in fresh.chain(changed) {
            if let Some(ttl) = ttl {
                self.expire_at(Arc::clone(id), cycle.checked_add(ttl));
            }
        }
        overlay.clear();
        self.overlay = overlay;
        // Looked at again by every commit, until the reference is dropped.
        for id in prepared.overdue {
            self.expire_at(id, Some(cycle));
        }
        self.base = Arc::clone(&prepared.snapshot);
        self.committed = true;
        self.next_index = 0;
        self.request_before.clone_from(&self.request);
        self.merges.extend(prepared.merges);
        let merges = if Merge::may_wait(&self.merges) {
            Vec::new()
        } else {
            std::mem::take(&mut self.merges)
        };
        (prepared.commit, prepared.snapshot, merges)
    }
}

fn heights(nodes: &[Fresh]) -> usize {
    let mut levels: Vec<usize> = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let parent = nodes[..index]
            .iter()
            .position(|other| other.id == node.parent);
        levels.push(parent.map_or(1, |parent| levels[parent] + 1));
    }
    levels.into_iter().max().unwrap_or(0)
}

pub(crate) fn strings(ids: Vec<Arc<str>>) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}
