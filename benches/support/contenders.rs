//! All contenders over one generated document.

use super::engine::Pact;
use super::queries::{self, Query, Task};
use super::{bitset, generate, sqlite, walk};

/// The same session in every form.
pub(crate) struct Contenders {
    /// The document.
    pub(crate) bytes: Vec<u8>,
    pub(crate) tree: walk::Tree,
    pub(crate) database: sqlite::Database,
    pub(crate) floor: bitset::Floor,
    pub(crate) pact: Pact,
    /// The id for the query by id.
    pub(crate) id: String,
}

impl Contenders {
    /// Generates a document of `nodes` nodes and loads it in every form.
    pub(crate) fn new(nodes: usize) -> Self {
        let bytes = generate::document(nodes);
        let tree = walk::load(&bytes);
        let id = queries::asked_id(&tree);
        Self {
            database: sqlite::load(&bytes),
            floor: bitset::load(&tree),
            pact: Pact::new(&bytes),
            tree,
            id,
            bytes,
        }
    }

    /// Asserts that every contender gives the same ids in the same order, and returns their
    /// number.
    pub(crate) fn check(&self, query: Query) -> usize {
        let expected = walk::answer(&self.tree, query, &self.id);
        let name = query.name();
        assert_eq!(
            self.database.answer(query, &self.id),
            expected,
            "SQLite, {name}"
        );
        assert_eq!(
            self.floor.answer(query, &self.id),
            expected,
            "bitsets, {name}"
        );
        let pact = self.pact.answer(query, &self.id);
        assert_eq!(pact, expected, "pactql, {name}");
        expected.len()
    }

    /// The contenders' ways to answer `query`, to be timed.
    pub(crate) fn tasks(&self, query: Query) -> Vec<(&'static str, Task<'_>)> {
        vec![
            ("sqlite", self.database.task(query, &self.id)),
            ("walk", walk::task(&self.tree, query, &self.id)),
            ("floor", self.floor.task(query, &self.id)),
            ("pactql", self.pact.task(query, &self.id)),
        ]
    }
}

/// Bytes of the ids, contents and custom fields of all nodes, as written in the document.
pub(crate) fn payload(tree: &walk::Tree) -> usize {
    fn below(node: &walk::Node) -> usize {
        let text = |text: &String| serde_json::to_string(text).map_or(0, |json| json.len());
        let tool = |tool: &String| "data_tool".len() + text(tool);
        node.id.len()
            + node.content.as_ref().map_or(0, text)
            + node.data_tool.as_ref().map_or(0, tool)
            + node.children.iter().map(below).sum::<usize>()
    }
    below(&tree.root)
}
