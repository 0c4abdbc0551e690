//! What a commit says of its cycle, as far as the trees before and after it do not show it: which mutation made a node,
//! and which took one. It is `meta.commit` of the snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::sequence::Meta;
use crate::json::{get, members};

/// Ids of nodes by the mutation that made or took them, of subtrees the topmost. Lists are in the order of the calls, those of
/// nodes that went sorted or in the order they went. As JSON members without ids are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CommitRecord {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) add: Vec<Arc<str>>,
    /// Only of ids that were given: those that the runtime makes have the cycle and the creation_index in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) append: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) compact: Vec<CompactionRecord>,
    /// Removable containers that lost their last child.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) empty: Vec<Arc<str>>,
    /// Only those that got their ttl in the cycle: it is not in the snapshot before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) expire: Vec<Arc<str>>,
    /// The new id of each, and the old one.
    #[serde(rename = "move", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) moved: BTreeMap<Arc<str>, Arc<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) prune: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) remove: Vec<Arc<str>>,
    /// The id of each successor, and that of the node in whose place it is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) replace: BTreeMap<Arc<str>, Arc<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) set_system: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) set_tools: Vec<Arc<str>>,
}

/// What one compaction took, and its summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CompactionRecord {
    pub(crate) ids: Vec<Arc<str>>,
    pub(crate) into: Arc<str>,
}

impl CommitRecord {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What a snapshot says; empty if it says nothing that is read. Linear in its `meta`.
    pub(crate) fn of(meta: &Meta) -> Self {
        let meta = members(meta.value("meta").unwrap_or_default());
        let text = get(&meta, "commit").unwrap_or_default();
        serde_json::from_str(text).unwrap_or_default()
    }

    /// The node that a new one replaced or was moved from.
    pub(crate) fn origin(&self, id: &str) -> Option<&Arc<str>> {
        self.replace.get(id).or_else(|| self.moved.get(id))
    }
}
