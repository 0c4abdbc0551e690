//! What a session remembers between two runs of a program and no document says: ids that were used,
//! compactions to come, times given.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::done::DoneRequest;
use super::overlay::Compaction;
use super::workspace::Workspace;
use crate::tree::CommitRecord;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    pub(crate) last_ns: i64,
    pub(crate) next_index: i64,
    /// Ids that were used and are in no snapshot, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) used: Vec<String>,
    /// Ids of the cycle in progress that no node has any more, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spent: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compactions: Vec<Compaction>,
    /// Containers that lost a child in the cycle in progress.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bereft: Vec<Arc<str>>,
    /// Empty containers that a reference keeps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<Arc<str>>,
    /// Ttls that committed nodes got in the cycle in progress: they count from it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ttls: Vec<(Arc<str>, Option<i64>)>,
    /// Which mutations of the cycle in progress made nodes.
    #[serde(skip_serializing_if = "CommitRecord::is_empty")]
    record: CommitRecord,
    /// Requests that were done, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) done: Vec<DoneRequest>,
}

/// How many requests a session remembers.
#[cfg(feature = "view")]
const MOST_DONE: usize = 256;

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
        let mut bereft = overlay.bereft.clone();
        bereft.dedup();
        let ttls = overlay.changed.iter();
        let ttls = ttls.filter_map(|(id, change)| Some((Arc::clone(id), change.ttl?)));
        let mut memory = Memory {
            last_ns: self.last_ns,
            next_index: self.next_index,
            used: Vec::new(),
            spent: overlay.spent.iter().cloned().collect(),
            compactions: overlay.compactions.clone(),
            bereft,
            waiting: self.waiting.clone(),
            ttls: ttls.collect(),
            record: overlay.record.clone(),
            done: self.done.clone(),
        };
        memory.spent.sort_unstable();
        memory.ttls.sort_unstable();
        memory
    }

    /// Notes ids that were used, and the last time given, of a session that goes on after its documents
    /// alone.
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
            waiting: self.waiting.clone(),
            done: self.done.clone(),
            ..Memory::default()
        }
    }

    #[cfg(feature = "view")]
    pub(crate) fn note_done(&mut self, request: DoneRequest) {
        self.done.push(request);
        let most = self.done.len().saturating_sub(MOST_DONE);
        self.done.drain(..most);
    }

    /// Takes back what [`Workspace::memory`] gave, after the working state was adopted.
    pub(crate) fn remember(&mut self, memory: &Memory) {
        self.note_used(&memory.used, memory.last_ns);
        self.next_index = memory.next_index;
        let state = self.state();
        let is_live = |id: &str| self.base.find(id).is_some_and(|node| state.is_live(node));
        let ttls = memory.ttls.iter().filter(|(id, _)| is_live(id));
        let ttls: Vec<&(Arc<str>, Option<i64>)> = ttls.collect();
        let cycle = self.cycle();
        let overlay = &mut self.overlay;
        overlay.spent.extend(memory.spent.iter().cloned());
        overlay.record.clone_from(&memory.record);
        for compaction in &memory.compactions {
            let mut compaction = compaction.clone();
            for fresh in &mut compaction.summary {
                fresh.cycle = cycle;
                overlay.promised.insert(Arc::clone(&fresh.id));
            }
            overlay.compactions.push(compaction);
        }
        for (id, ttl) in ttls {
            overlay.changed.entry(Arc::clone(id)).or_default().ttl = Some(*ttl);
        }
        self.waiting.clone_from(&memory.waiting);
        self.done.clone_from(&memory.done);
        overlay.bereft.extend(memory.bereft.iter().cloned());
    }
}
