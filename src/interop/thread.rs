//! The provider thread: a snapshot as the list of blocks that a model is sent (RUNTIME §5,
//! source 002 §12).

use super::json::{canonical, json_text, push_member};
use crate::index::{NodeRef, Snapshot};
use crate::tree::NodeClass;
use std::io::{self, Write};

/// A block of the thread with its effective role.
#[derive(Clone, Copy, Debug)]
pub struct ThreadBlock<'a> {
    /// The block.
    pub node: NodeRef<'a>,
    /// Its role, or the default of its region: `system` under `^sys`, `user` elsewhere.
    pub role: &'a str,
}

/// The blocks of the thread: every block at any level under `^sys`, the turns from the oldest,
/// and `^ah`, in document order.
pub fn thread(snapshot: &Snapshot) -> impl Iterator<Item = ThreadBlock<'_>> {
    // Regions are children of the root, so the last node of level 1 is the region of a node.
    let mut region = None;
    snapshot.nodes().filter_map(move |node| {
        let class = node.class();
        if node.level() <= 1 {
            region = match class {
                NodeClass::Sys => Some("system"),
                NodeClass::Seq | NodeClass::Head => Some("user"),
                _ => None,
            };
        }
        let default = region.filter(|_| class == NodeClass::Block)?;
        Some(ThreadBlock {
            node,
            role: node.role().unwrap_or(default),
        })
    })
}

/// Writes the thread as a JSON array of `{"id","role","kind","content"}` and a line feed. The
/// members are in this order; a member without a value is left out. Strings and numbers are
/// canonical.
///
/// # Errors
/// Those of the writer.
pub fn write_thread(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let mut text = String::from("[");
    for (at, ThreadBlock { node, role }) in thread(snapshot).enumerate() {
        text.push_str(if at == 0 { "{\"id\":" } else { ",{\"id\":" });
        json_text(node.id(), &mut text);
        text.push_str(",\"role\":");
        json_text(role, &mut text);
        if let Some(kind) = node.kind() {
            text.push_str(",\"kind\":");
            json_text(kind, &mut text);
        }
        if let Some(content) = node.field("content").filter(|content| *content != "null") {
            push_member("content", &canonical(content), &mut text);
        }
        text.push('}');
        out.write_all(text.as_bytes())?;
        text.clear();
    }
    text.push_str("]\n");
    out.write_all(text.as_bytes())
}
