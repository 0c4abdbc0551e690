//! Nodes as JSON, and labels of snapshots.

use crate::engine::Node;
use crate::index::Snapshot;
pub(crate) use crate::json::quoted;
use crate::logs::write_members;

/// The label of a node's snapshot: `@c12`, or `working`.
pub(crate) fn label(node: Node<'_>) -> String {
    snapshot_label(node.row().snapshot())
}

pub(crate) fn snapshot_label(snapshot: &Snapshot) -> String {
    if snapshot.is_working() {
        "working".to_owned()
    } else {
        format!("@c{}", snapshot.cycle())
    }
}

/// Appends a line with the node as one JSON object: its own members without `children`, and
/// `id` (a root may have come without one), `depth`, `parent_id`, `snapshot` and the `labels`, which
/// are names and texts.
pub(crate) fn node_json(node: Node<'_>, labels: &[(&str, &str)], out: &mut String) {
    let depth = node
        .depth()
        .map_or("null".to_owned(), |depth| depth.to_string());
    let parent = node
        .parent()
        .map_or("null".to_owned(), |parent| quoted(parent.id()));
    let id = quoted(node.id());
    let snapshot = quoted(&label(node));
    let labels = labels.iter().map(|(name, text)| (*name, quoted(text)));
    let labels: Vec<(&str, String)> = labels.collect();
    let mut more: Vec<(&str, &str)> = vec![
        ("depth", &depth),
        ("id", &id),
        ("parent_id", &parent),
        ("snapshot", &snapshot),
    ];
    more.extend(labels.iter().map(|(name, text)| (*name, &**text)));
    // As the members of the node are.
    more.sort_unstable();
    out.push('{');
    write_members(node.row(), &more, out);
    out.push_str("}\n");
}
