//! Goes on with a working state that another program, or an earlier run, left.

use std::sync::Arc;

use hashbrown::HashSet;

use super::header::is_column;
use super::overlay::{Fresh, LifecycleChange, NodeBody};
use super::refusal::{Refusal, region, sealed};
use super::state::{Seal, StateNode};
use super::workspace::Workspace;
use crate::index::{Changes, NodeRef, Snapshot};
use crate::tree::{NodeClass, header};

impl Workspace {
    /// Takes over the changes of a working state. Linear in the units that differ from the base.
    pub(crate) fn adopt(&mut self, working: &Snapshot) -> Result<(), Refusal> {
        self.request = working.meta().request().map(Into::into);
        self.all_or_nothing(|workspace| workspace.take_over(working))
    }

    fn take_over(&mut self, working: &Snapshot) -> Result<(), Refusal> {
        let base = Arc::clone(&self.base);
        // Regions that were added because the newest snapshot lacks them.
        self.overlay = super::overlay::Overlay::default();
        let changes = Changes::between(working, &base);
        let newer = changes.newer.iter().cloned();
        let base_ns = if self.committed { self.last_ns } else { -1 };
        let mut fresh = Vec::new();
        for node in newer.flat_map(|rows| working.nodes_in(rows)) {
            match base.find(node.id()) {
                None => fresh.push(node),
                Some(old) => self.take_over_old(node, old)?,
            }
        }
        for node in fresh {
            self.take_over_new(node, base_ns)?;
        }
        let mut gone: HashSet<&str> = HashSet::new();
        let older = changes.older.iter().cloned();
        for old in older.flat_map(|rows| base.nodes_in(rows)) {
            // A region that the working state lacks stays, without what was in it.
            if working.find(old.id()).is_some() || StateNode::Old(old).is_region() {
                continue;
            }
            let above = old
                .parent()
                .is_some_and(|parent| gone.contains(parent.id()));
            gone.insert(old.id());
            if !above {
                self.check_open(StateNode::Old(old))?;
                self.overlay.gone.insert(old.id().into());
            }
        }
        let added: Vec<Arc<str>> = self
            .overlay
            .fresh()
            .map(|fresh| Arc::clone(&fresh.id))
            .collect();
        for node in added.iter().filter_map(|id| self.state().find(id)) {
            self.check_open(node)?;
        }
        self.add_regions();
        self.one_core()
    }

    fn check_open(&self, node: StateNode<'_>) -> Result<(), Refusal> {
        if matches!(self.state().location(node).seal, Seal::Turn | Seal::Core) {
            let message = format!(
                "`{}` is in a sealed turn, which the working state changes",
                node.id()
            );
            return Err(
                sealed(message).help("take over the turns of the newest snapshot as they are")
            );
        }
        Ok(())
    }

    /// Gives the containers of `^ah` that have no offset one each, so that one of them is the core.
    fn one_core(&mut self) -> Result<(), Refusal> {
        let state = self.state();
        let Some(head) = state.region(NodeClass::Head) else {
            return Ok(());
        };
        let children = state.children(head);
        let last = children.last().map_or(0, |last| last.offset().max(0));
        let cores = children.iter().filter(|child| child.is_core_container());
        let others = cores.skip(1).filter_map(|child| child.slot());
        let offsets: Vec<(u32, i64)> = others.zip(last.saturating_add(1)..).collect();
        let head: Arc<str> = head.id().into();
        self.overlay.renumber(&head, &offsets);
        Ok(())
    }

    fn take_over_old(&mut self, node: NodeRef<'_>, old: NodeRef<'_>) -> Result<(), Refusal> {
        let id = node.id();
        let headers = |node: NodeRef<'_>| {
            let mut own = node.headers();
            own.texts[header::NODE_TYPE] = Some(node.type_or_class());
            own.numbers[header::TTL] = 0;
            own.numbers[header::PRIORITY] = 0;
            let parent = node.parent().map(|parent| parent.id().to_owned());
            let texts = own.texts.map(|text| text.map(str::to_owned));
            (parent, texts, own.numbers, node.cycle())
        };
        let fields = |node: NodeRef<'_>| -> Vec<(String, String)> {
            let own = node.fields().filter(|(name, value)| {
                !(is_column(name) && value.is_null()) && *name != "parent_id"
            });
            own.map(|(name, value)| (name.into(), value.canonical()))
                .collect()
        };
        if headers(node) != headers(old) || fields(node) != fields(old) {
            let message =
                format!("`{id}` differs from the newest snapshot in more than ttl and priority");
            return Err(sealed(message).help("give the changed node another id"));
        }
        let ttl = (node.ttl() != old.ttl()).then(|| node.ttl());
        let priority = (node.priority() != old.priority()).then(|| node.priority());
        if ttl.is_some() || priority.is_some() {
            if !StateNode::Old(old).is_region() {
                self.check_open(StateNode::Old(old))?;
            }
            self.overlay
                .changed
                .insert(id.into(), LifecycleChange { ttl, priority });
        }
        Ok(())
    }

    fn take_over_new(&mut self, node: NodeRef<'_>, base_ns: i64) -> Result<(), Refusal> {
        let id = node.id();
        if node.class() == NodeClass::Turn && node.level() == 2 {
            let message = format!("`{id}` is a turn that no commit has sealed");
            return Err(region(message).help("put its blocks into `^ah`"));
        }
        let parent = node.parent().map_or("", |parent| parent.id());
        let mut body = NodeBody::from_node(node, |name| !is_column(name));
        body.cycle = self.cycle();
        let mut fresh = Fresh::new(parent.into(), node.offset(), body);
        if fresh.field("created_at_iso").is_none() {
            let iso = crate::tree::timestamp::stored_time(fresh.created_at_ns);
            fresh.set_field("created_at_iso", Some(iso));
        }
        // A successor has the time and the index of its predecessor, which an earlier cycle made.
        if fresh.created_at_ns > base_ns {
            self.next_index = self.next_index.max(fresh.creation_index.saturating_add(1));
        }
        self.last_ns = self.last_ns.max(fresh.created_at_ns);
        self.overlay.insert(fresh);
        Ok(())
    }

    /// Another session with the same base and the same changes, and no references.
    pub(crate) fn fork(&self) -> Self {
        Self {
            pins: super::pin::Pins::default(),
            ..self.clone()
        }
    }
}
