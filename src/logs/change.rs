//! What a snapshot of an imported session changes, and the document that says so. This file must not know
//! log formats, or where changes are kept.

use super::nodes::LogNode;
use super::packed::{Packed, Unpacked};
use crate::tree::{Document, DocumentBody, DocumentOrigin, Patch, Tree, TreeDelta, patch};
use std::io;

/// The version of the tree model in imported documents, as JSON.
const SPEC_VERSION: &str = "\"PACT/0.1\"";

#[derive(Clone, Debug, Default)]
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
    /// As recordings keep it, for [`document`]: values are decoded once, here. Linear.
    pub(super) fn pack(&self) -> String {
        let mut packed = Packed::default();
        packed.number(self.put.len() as i64);
        for node in &self.put {
            node.pack(&mut packed);
        }
        packed.number(self.remove.len() as i64);
        self.remove.iter().for_each(|id| packed.text(id));
        packed.some_text(self.meta.as_deref());
        packed.some_text(self.usage.as_deref());
        packed.finish()
    }
}

/// The document of the snapshot after the first `committed` ones, of a packed change: the difference to the last of
/// these, and a whole tree if there is none. Linear in the change.
pub(super) fn document(packed: &str, committed: usize, working: bool) -> io::Result<Document> {
    let mut packed = Unpacked(packed);
    let mut nodes = Patch::default();
    let mut fields = Vec::new();
    for _ in 0..packed.number()? {
        let (parent, headers) = LogNode::unpack(&mut packed, &mut fields)?;
        nodes.push(parent, headers, fields.iter().copied());
    }
    let mut remove: Vec<Box<str>> = Vec::new();
    for _ in 0..packed.number()? {
        remove.push(packed.text()?.into());
    }
    let delta = TreeDelta::new(committed as i64, nodes, remove);
    let body = if committed == 0 {
        let tree = patch::apply(&Tree::default(), &delta);
        DocumentBody::Full(tree.map_err(io::Error::other)?)
    } else {
        DocumentBody::Delta(delta)
    };
    let mut extra: Vec<(Box<str>, Box<str>)> = Vec::new();
    for name in ["meta", "usage"] {
        extra.extend(packed.some_text()?.map(|value| (name.into(), value.into())));
    }
    Ok(Document {
        cycle: (!working).then_some(committed as i64 + 1),
        spec_version: (committed == 0).then(|| SPEC_VERSION.into()),
        working,
        body,
        extra,
        origin: DocumentOrigin::default(),
    })
}
