//! Whether two snapshots would be written as the same canonical bytes, without writing them.

use super::export::{envelope, members};
use crate::index::{Changes, NodeRef, Snapshot};
use crate::tree::Present;
use std::collections::HashMap;

/// Compares snapshots of one session with those of another; rows that they share are compared once.
#[derive(Debug, Default)]
pub(super) struct SessionComparison {
    /// Row versions of the first session, each with the equal one of the second; the ttl aside.
    equal: HashMap<(u64, u32), (u64, u32)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    /// In the document around its tree: cycle, `spec_version`, other members.
    Document,
    /// At this node of the first snapshot, or at this surplus node of the second.
    Node(String),
}

impl SessionComparison {
    /// The first difference between the canonical documents of `one` and `other`, of which only the second may state its
    /// cycle. All calls are about the same two sessions. Linear in the units that they do not share; where they differ,
    /// in all nodes.
    pub(super) fn difference(&mut self, one: &Snapshot, other: &Snapshot) -> Option<Mismatch> {
        let stated = other.meta().cycle_given;
        let written = envelope(one, stated || one.meta().cycle_given);
        if one.cycle() != other.cycle() || written != envelope(other, stated) {
            return Some(Mismatch::Document);
        }
        // Both are in document order, so what they share is at the same places if the rest is.
        let changes = Changes::between(one, other);
        let changed = changes
            .newer
            .into_iter()
            .flat_map(|rows| one.nodes_in(rows));
        let others = changes.older.into_iter();
        let others = others.flat_map(|rows| other.nodes_in(rows));
        self.first(changed, others)
            .and_then(|_| self.first(one.nodes(), other.nodes()))
            .map(|node| Mismatch::Node(node.id().to_owned()))
    }

    /// The first of some nodes that is not as the other one at its place, or the first surplus one.
    pub(super) fn first<'a>(
        &mut self,
        nodes: impl Iterator<Item = NodeRef<'a>>,
        mut others: impl Iterator<Item = NodeRef<'a>>,
    ) -> Option<NodeRef<'a>> {
        for node in nodes {
            if !others.next().is_some_and(|twin| self.same(node, twin)) {
                return Some(node);
            }
        }
        others.next()
    }

    /// Whether two nodes are written alike. Levels in document order give the shape of the tree.
    fn same(&mut self, node: NodeRef<'_>, twin: NodeRef<'_>) -> bool {
        if node.level() != twin.level() || node.ttl() != twin.ttl() {
            return false;
        }
        let (version, other) = (node.version(), twin.version());
        // A row that both share, or that was compared before.
        if version == other || self.equal.get(&version) == Some(&other) {
            return true;
        }
        let empty = |node: NodeRef<'_>| node.present().has(Present::EMPTY_CHILDREN);
        let same = empty(node) == empty(twin) && members(node, &[]) == members(twin, &[]);
        if same {
            self.equal.insert(version, other);
        }
        same
    }
}

#[cfg(test)]
mod tests {
    use super::{Mismatch, SessionComparison};
    use crate::index::Writer;
    use crate::tree::{read_document, whole_trees};

    #[test]
    fn the_first_difference_is_found() {
        let base = r#"{"root":{"children":[{"id":"a","ttl":2,"content":[1]},{"id":"b","children":[{"id":"c"}]}]}}"#;
        let compare = |text: &str| {
            let read = |text: &str| {
                let document = read_document(text.as_bytes()).expect("a document");
                let (meta, tree) = whole_trees(vec![document])
                    .next()
                    .expect("one tree")
                    .expect("a valid tree");
                Writer::new().append(None, &tree, meta).0
            };
            SessionComparison::default().difference(&read(base), &read(text))
        };
        let node = |id: &str| Some(Mismatch::Node(id.to_owned()));
        assert_eq!(compare(base), None);
        assert_eq!(compare(&base.replace("[1]", "[ 1 ]")), None);
        assert_eq!(compare(&base.replace("[1]", "[1.0]")), node("a"));
        assert_eq!(compare(&base.replace("\"ttl\":2", "\"ttl\":3")), node("a"));
        assert_eq!(
            compare(&base.replace("\"id\":\"c\"", "\"id\":\"d\"")),
            node("c")
        );
        let moved = base.replace(r#","children":[{"id":"c"}]}"#, r#"},{"id":"c"}"#);
        assert_eq!(compare(&moved), node("c"));
        let empty = base.replace(r#"{"id":"c"}"#, r#"{"id":"c","children":[]}"#);
        assert_eq!(compare(&empty), node("c"));
        let more = base.replace(r#"[{"id":"c"}]"#, r#"[{"id":"c"},{"id":"e"}]"#);
        assert_eq!(compare(&more), node("e"));
        let cycle = base.replace("{\"root\"", "{\"cycle\":1,\"root\"");
        assert_eq!(compare(&cycle), None);
        let cycle = base.replace("{\"root\"", "{\"cycle\":2,\"root\"");
        assert_eq!(compare(&cycle), Some(Mismatch::Document));
    }
}
