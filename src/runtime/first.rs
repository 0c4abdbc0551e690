//! The snapshot that a session begins with.

use std::sync::{Arc, LazyLock};

use crate::index::{Meta, Snapshot, Writer};
use crate::tree::timestamp::rfc3339_of_nanos;
use crate::tree::{DocumentBody, NodeClass, Patch, Tree, TreeDelta, read_document};

/// The version of the tree model that new sessions say.
const SPEC_VERSION: &str = "\"PACT/0.1.0\"";

/// The snapshot every session begins with: the root and the three regions. All sessions share it.
pub(super) fn first_snapshot() -> Arc<Snapshot> {
    static FIRST: LazyLock<Arc<Snapshot>> = LazyLock::new(|| {
        let region = |id: &str, index: u8| {
            format!(
                r#"{{"id":"{id}","nodeType":"{id}","offset":0,"ttl":null,"priority":0,"cycle":0,"created_at_ns":0,"created_at_iso":"{}","creation_index":{index}"#,
                rfc3339_of_nanos(0)
            )
        };
        let [root, sys, seq, head] = [("^root", 0), ("^sys", 0), ("^seq", 1), ("^ah", 2)]
            .map(|(id, index)| region(id, index));
        let text = format!(r#"{{"root":{root},"children":[{sys}}},{seq}}},{head}}}]}}}}"#);
        let tree = match read_document(text.as_bytes()).map(|document| document.body) {
            Ok(DocumentBody::Full(tree)) => tree,
            _ => Tree::default(),
        };
        let meta = Meta {
            spec_version: Some(SPEC_VERSION.into()),
            ..Meta::default()
        };
        Arc::new(Writer::counting().append(None, &tree, meta).0)
    });
    Arc::clone(&FIRST)
}

/// The root and the regions of a working state, as the snapshot that a session begins with.
pub(super) fn first_of(working: &Snapshot) -> Option<Snapshot> {
    let regions = working.root().children();
    let below = regions.flat_map(|region| match region.class() {
        NodeClass::Sys | NodeClass::Seq | NodeClass::Head => region.children().collect(),
        _ => vec![region],
    });
    let below = below.map(|node| node.id().into()).collect();
    let delta = TreeDelta::new(working.cycle(), Patch::default(), below);
    let tree = crate::tree::patch::apply(&working.to_tree(), &delta).ok()?;
    let meta = Meta {
        spec_version: working.meta().spec_version.clone(),
        ..Meta::default()
    };
    Some(Writer::counting().append(None, &tree, meta).0)
}
