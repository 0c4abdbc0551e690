//! Goes on with a working state that another program, or an earlier run, left.

use std::sync::Arc;

use hashbrown::HashSet;

use super::overlay::{Change, Fresh};
use super::refusal::{Refusal, region, sealed};
use super::workspace::Workspace;
use crate::index::{Changes, NodeRef, Snapshot};
use crate::tree::NodeClass;

/// Headers that have a column: an explicit null of one is as if it were absent.
const COLUMNS: [&str; 12] = [
    "id",
    "nodeType",
    "role",
    "kind",
    "key",
    "offset",
    "ttl",
    "priority",
    "cycle",
    "created_at_ns",
    "creation_index",
    "parent_id",
];

impl Workspace {
    /// Takes over the changes of a working state. Linear in the units that differ from the base.
    pub(crate) fn adopt(&mut self, working: &Snapshot) -> Result<(), Refusal> {
        self.request = super::first::request_of(working).map(Into::into);
        self.all_or_nothing(|workspace| workspace.take_over(working))
    }

    fn take_over(&mut self, working: &Snapshot) -> Result<(), Refusal> {
        let base = Arc::clone(&self.base);
        // Regions that were added because the newest snapshot lacks them.
        self.overlay = super::overlay::Overlay::default();
        let changes = Changes::between(working, &base);
        let mut fresh = Vec::new();
        for node in changes
            .newer
            .iter()
            .flat_map(|rows| working.nodes_in(rows.clone()))
        {
            match base.find(node.id()) {
                None => fresh.push(node),
                Some(old) => self.take_over_old(node, old)?,
            }
        }
        for node in fresh {
            self.take_over_new(node)?;
        }
        let mut gone: HashSet<&str> = HashSet::new();
        for old in changes
            .older
            .iter()
            .flat_map(|rows| base.nodes_in(rows.clone()))
        {
            if working.find(old.id()).is_some() {
                continue;
            }
            let above = old
                .parent()
                .is_some_and(|parent| gone.contains(parent.id()));
            gone.insert(old.id());
            if !above {
                self.overlay.gone.insert(old.id().into());
            }
        }
        self.add_regions();
        Ok(())
    }

    fn take_over_old(&mut self, node: NodeRef<'_>, old: NodeRef<'_>) -> Result<(), Refusal> {
        let id = node.id();
        let parents = [node, old].map(|node| node.parent().map(|parent| parent.id()));
        let same = parents[0] == parents[1]
            && node.type_or_class() == old.type_or_class()
            && node.offset() == old.offset()
            && node.created_at_ns() == old.created_at_ns()
            && node.creation_index() == old.creation_index()
            && node.key() == old.key()
            && node.content_hash() == old.content_hash();
        if !same {
            let message =
                format!("`{id}` differs from the newest snapshot in more than ttl and priority");
            return Err(sealed(message).help("give the changed node an id of its own"));
        }
        let ttl = (node.ttl() != old.ttl()).then(|| node.ttl());
        let priority = (node.priority() != old.priority()).then(|| node.priority());
        if ttl.is_some() || priority.is_some() {
            self.overlay
                .changed
                .insert(id.into(), Change { ttl, priority });
        }
        Ok(())
    }

    fn take_over_new(&mut self, node: NodeRef<'_>) -> Result<(), Refusal> {
        let id = node.id();
        if node.class() == NodeClass::Turn && node.level() == 2 {
            let message = format!("`{id}` is a turn that no commit has sealed");
            return Err(region(message).help("put its blocks into `^ah`"));
        }
        let fields = node.fields().filter(|(name, _)| !COLUMNS.contains(name));
        let parent = node.parent().map_or("", |parent| parent.id());
        let mut fresh = Fresh {
            id: id.into(),
            parent: parent.into(),
            class: node.class(),
            node_type: node.type_or_class().into(),
            role: node.role().map(Into::into),
            kind: node.kind().map(Into::into),
            key: node.key().map(Into::into),
            offset: node.offset(),
            ttl: node.ttl(),
            priority: node.priority(),
            cycle: self.cycle(),
            created_at_ns: node.created_at_ns(),
            creation_index: node.creation_index(),
            removable: node.field("removable") == Some("true"),
            fields: fields
                .map(|(name, json)| (name.into(), json.into()))
                .collect(),
            growing: None,
            children: Vec::new(),
        };
        if fresh.field("created_at_iso").is_none() {
            let iso = crate::tree::timestamp::rfc3339_of_nanos(fresh.created_at_ns);
            fresh.set_field("created_at_iso", Some(super::node::quoted(&iso)));
        }
        self.last_ns = self.last_ns.max(fresh.created_at_ns);
        self.next_index = self.next_index.max(fresh.creation_index.saturating_add(1));
        self.overlay.insert(fresh);
        Ok(())
    }

    /// Another session with the same base and the same changes, and no references.
    pub(crate) fn fork(&self) -> Self {
        Self {
            base: Arc::clone(&self.base),
            committed: self.committed,
            overlay: self.overlay.clone(),
            writer: crate::index::Writer::counting(),
            clock: Arc::clone(&self.clock),
            last_ns: self.last_ns,
            next_index: self.next_index,
            retired: self.retired.clone(),
            due: self.due.clone(),
            pins: super::pin::Pins::default(),
            policy: self.policy.clone(),
            request: self.request.clone(),
            request_before: self.request_before.clone(),
        }
    }
}
