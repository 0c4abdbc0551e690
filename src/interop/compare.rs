//! Whether two snapshots would be written as the same canonical bytes, without writing them.

use super::export::{envelope, members};
use crate::index::{NodeRef, Snapshot};
use crate::tree::Present;
use std::collections::HashMap;

/// Compares snapshots of one session with those of another, remembering which rows were found
/// equal: what snapshots share is compared once.
#[derive(Debug, Default)]
pub struct Comparison {
    /// For each row of the one session by version, the row of the other it is equal to, ttls
    /// aside.
    equal: HashMap<(u64, u32), (u64, u32)>,
}

/// Where two snapshots differ first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// In what the document says beside its tree: cycle, `spec_version`, other members.
    Document,
    /// At this node of the one snapshot, or before the node of the other that stands in its
    /// place.
    Node(String),
}

impl Comparison {
    /// Nothing compared yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the canonical documents of `one` and `other` differ first; none where they are equal
    /// byte for byte, but for a cycle that only `other` states. `one` is always of the same
    /// session, and so is `other`.
    ///
    /// Linear in the nodes; a node's fields are looked at once for all snapshots that share it.
    pub fn difference(&mut self, one: &Snapshot, other: &Snapshot) -> Option<Difference> {
        let stated = other.meta().cycle_given;
        let written = envelope(one, stated || one.meta().cycle_given);
        if one.cycle() != other.cycle() || written != envelope(other, stated) {
            return Some(Difference::Document);
        }
        let mut others = other.nodes();
        for node in one.nodes() {
            if !others.next().is_some_and(|twin| self.same(node, twin)) {
                return Some(Difference::Node(node.id().to_owned()));
            }
        }
        others
            .next()
            .map(|more| Difference::Node(more.id().to_owned()))
    }

    /// Whether two nodes are written alike. Levels in document order are the shape of the tree.
    fn same(&mut self, node: NodeRef<'_>, twin: NodeRef<'_>) -> bool {
        if node.level() != twin.level() || node.ttl() != twin.ttl() {
            return false;
        }
        let (version, other) = (node.version(), twin.version());
        if self.equal.get(&version) == Some(&other) {
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
    use super::{Comparison, Difference};
    use crate::history::Session;

    #[test]
    fn the_first_difference_is_found() {
        let base = r#"{"root":{"children":[{"id":"a","ttl":2,"content":[1]},{"id":"b","children":[{"id":"c"}]}]}}"#;
        let compare = |text: &str| {
            let read = |text: &str| Session::from_slice(text.as_bytes()).expect("a document");
            let (one, other) = (read(base).history(), read(text).history());
            Comparison::new().difference(&one.committed()[0], &other.committed()[0])
        };
        let node = |id: &str| Some(Difference::Node(id.to_owned()));
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
        assert_eq!(compare(&cycle), Some(Difference::Document));
    }
}
