//! What a snapshot of an imported session changes, and the document that says so. This file must not know
//! log formats, or where changes are kept.

use super::nodes::LogNode;
use crate::json::StoredValue;
use crate::tree::{Document, DocumentBody, DocumentOrigin, Patch, Tree, TreeDelta, patch};
use serde::{Deserialize, Serialize};
use std::io;

/// The version of the tree model in imported documents, as JSON.
const SPEC_VERSION: &str = "\"PACT/0.1\"";

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LogChange {
    /// Nodes added, moved or replaced; parents before children.
    pub(super) put: Vec<LogNode>,
    /// Ids of the roots of removed subtrees.
    pub(super) remove: Vec<String>,
    /// The snapshot's `meta`, a canonical object.
    pub(super) meta: Option<String>,
    /// Its `usage`, a canonical object.
    pub(super) usage: Option<String>,
}

impl LogChange {
    /// The document of the snapshot after the first `committed` ones: the difference to the last of these, and a
    /// whole tree if there is none.
    pub(super) fn document(&self, committed: usize, working: bool) -> io::Result<Document> {
        let mut nodes = Patch::default();
        for node in &self.put {
            let parent = Some(&*node.parent).filter(|parent| !parent.is_empty());
            let fields = node.fields();
            let fields: Vec<(&str, StoredValue)> = fields
                .map(|(name, json)| (name, StoredValue::of_json(json)))
                .collect();
            let fields = fields.iter().map(|(name, value)| (*name, value.get()));
            nodes.push(parent, node.row(), fields);
        }
        let remove = self.remove.iter().map(|id| id.as_str().into()).collect();
        let delta = TreeDelta::new(committed as i64, nodes, remove);
        let body = if committed == 0 {
            let tree = patch::apply(&Tree::default(), &delta);
            DocumentBody::Full(tree.map_err(io::Error::other)?)
        } else {
            DocumentBody::Delta(delta)
        };
        let extra = [("meta", &self.meta), ("usage", &self.usage)];
        let extra = extra.into_iter().filter_map(|(name, value)| {
            let value = value.as_deref()?;
            Some((name.into(), value.into()))
        });
        Ok(Document {
            cycle: (!working).then_some(committed as i64 + 1),
            spec_version: (committed == 0).then(|| SPEC_VERSION.into()),
            working,
            body,
            extra: extra.collect(),
            origin: DocumentOrigin::default(),
        })
    }
}
