//! What a session remembers between two runs of a program and no document says: ids that were used,
//! compactions to come, times given.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::overlay::{Body, Compaction, Fresh};
use super::workspace::Workspace;
use crate::json::StoredValue;
use crate::tree::check::class_of;

/// The memory of a [`Workspace`], to be kept beside its documents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    /// The last created_at_ns given.
    pub(crate) last_ns: i64,
    /// The next creation_index.
    pub(crate) next_index: i64,
    /// Ids that were used and are in no snapshot, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) used: Vec<String>,
    /// Ids that were used and removed in the cycle in progress, sorted: a discard gives them back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spent: Vec<String>,
    /// Compactions that the next commit makes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compactions: Vec<Noted>,
    /// Containers that lost a child in the cycle in progress.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bereft: Vec<String>,
    /// Empty containers that a reference keeps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<String>,
    /// Ttls that committed nodes got in the cycle in progress: they count from it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ttls: Vec<(String, Option<i64>)>,
}

/// A compaction to come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Noted {
    ids: Vec<String>,
    summary: Vec<NotedNode>,
}

/// A node of a summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NotedNode {
    id: String,
    parent: String,
    node_type: String,
    role: Option<String>,
    kind: Option<String>,
    key: Option<String>,
    offset: i64,
    ttl: Option<i64>,
    priority: i64,
    created_at_ns: i64,
    creation_index: i64,
    removable: bool,
    /// Names and JSON texts.
    fields: Vec<(String, String)>,
}

impl Workspace {
    /// What has to be kept to go on later. Linear in the ids that are gone.
    pub(crate) fn memory(&self) -> Memory {
        let mut used: Vec<String> = self.retired.iter().map(|id| id.to_string()).collect();
        used.sort_unstable();
        Memory {
            used,
            ..self.memory_of_cycle()
        }
    }

    /// As [`Workspace::memory`], without the ids of earlier cycles. Linear in the changes of this one.
    pub(crate) fn memory_of_cycle(&self) -> Memory {
        let overlay = &self.overlay;
        let mut spent: Vec<String> = overlay.spent.iter().map(|id| id.to_string()).collect();
        spent.sort_unstable();
        let noted = |compaction: &Compaction| Noted {
            ids: compaction.ids.iter().map(|id| id.to_string()).collect(),
            summary: compaction.summary.iter().map(NotedNode::of).collect(),
        };
        let mut bereft: Vec<String> = overlay.bereft.iter().map(|id| id.to_string()).collect();
        bereft.dedup();
        let ttls = overlay.changed.iter();
        let ttls = ttls.filter_map(|(id, change)| Some((id.to_string(), change.ttl?)));
        let mut ttls: Vec<(String, Option<i64>)> = ttls.collect();
        ttls.sort_unstable();
        Memory {
            last_ns: self.last_ns,
            next_index: self.next_index,
            used: Vec::new(),
            spent,
            compactions: overlay.compactions.iter().map(noted).collect(),
            bereft,
            waiting: self.waiting.iter().map(|id| id.to_string()).collect(),
            ttls,
        }
    }

    /// Notes ids that were used, and the last time given, of a session that goes on after its documents
    /// alone.
    #[cfg(feature = "store")]
    pub(crate) fn note_used(&mut self, used: &[String], last_ns: i64) {
        self.last_ns = self.last_ns.max(last_ns);
        for id in used {
            if self.state().find(id).is_none() {
                self.retired.insert(id.as_str().into());
            }
        }
    }

    /// What [`Workspace::memory_of_cycle`] will be once the commit that was prepared is finished.
    #[cfg(feature = "store")]
    pub(crate) fn memory_after_commit(&self) -> Memory {
        Memory {
            last_ns: self.last_ns,
            waiting: self.waiting.iter().map(|id| id.to_string()).collect(),
            ..Memory::default()
        }
    }

    /// Takes back what [`Workspace::memory`] gave, after the working state was adopted.
    pub(crate) fn remember(&mut self, memory: &Memory) {
        self.last_ns = self.last_ns.max(memory.last_ns);
        self.next_index = memory.next_index;
        for id in &memory.used {
            if self.state().find(id).is_none() {
                self.retired.insert(id.as_str().into());
            }
        }
        let spent = memory.spent.iter().map(|id| id.as_str().into());
        self.overlay.spent.extend(spent);
        let cycle = self.cycle();
        for noted in &memory.compactions {
            let summary: Vec<Fresh> = noted.summary.iter().map(|node| node.fresh(cycle)).collect();
            let promised = summary.iter().map(|fresh| Arc::clone(&fresh.id));
            self.overlay.promised.extend(promised);
            self.overlay.compactions.push(Compaction {
                ids: noted.ids.iter().map(|id| id.as_str().into()).collect(),
                summary,
            });
        }
        for (id, ttl) in &memory.ttls {
            if self
                .base
                .find(id)
                .is_some_and(|node| self.state().is_live(node))
            {
                let change = self.overlay.changed.entry(id.as_str().into()).or_default();
                change.ttl = Some(*ttl);
            }
        }
        self.waiting = memory.waiting.iter().map(|id| id.as_str().into()).collect();
        let bereft = memory.bereft.iter().map(|id| id.as_str().into());
        self.overlay.bereft.extend(bereft);
    }
}

impl NotedNode {
    fn of(fresh: &Fresh) -> Self {
        let text = |text: &Option<Box<str>>| text.as_deref().map(Into::into);
        let fields = fresh.fields.iter();
        Self {
            id: fresh.id.to_string(),
            parent: fresh.parent.to_string(),
            node_type: fresh.node_type.to_string(),
            role: text(&fresh.role),
            kind: text(&fresh.kind),
            key: text(&fresh.key),
            offset: fresh.offset,
            ttl: fresh.ttl,
            priority: fresh.priority,
            created_at_ns: fresh.created_at_ns,
            creation_index: fresh.creation_index,
            removable: fresh.removable,
            fields: fields
                .map(|(name, value)| (name.to_string(), value.get().json().into_owned()))
                .collect(),
        }
    }

    fn fresh(&self, cycle: i64) -> Fresh {
        let text = |text: &Option<String>| text.as_deref().map(Into::into);
        let fields = self.fields.iter();
        let body = Body {
            id: self.id.as_str().into(),
            class: class_of(&self.node_type),
            node_type: self.node_type.as_str().into(),
            role: text(&self.role),
            kind: text(&self.kind),
            key: text(&self.key),
            ttl: self.ttl,
            priority: self.priority,
            cycle,
            created_at_ns: self.created_at_ns,
            creation_index: self.creation_index,
            removable: self.removable,
            fields: fields
                .map(|(name, json)| (name.as_str().into(), StoredValue::of_json(json)))
                .collect(),
            growing: None,
        };
        Fresh::new(self.parent.as_str().into(), self.offset, body)
    }
}
