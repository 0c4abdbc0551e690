//! The loop a user would write by hand: plain structs, read by serde_json, and one function for
//! each query.
//!
//! A query of the newest turns goes straight to the end of `^seq`; one of all nodes walks all. The
//! code assumes that children are in document order, and that turns contain containers which
//! contain blocks, as in the generated sessions.

use super::queries::{Query, Task};
use serde::Deserialize;
use std::hint::black_box;

/// A snapshot document.
#[derive(Deserialize)]
pub(crate) struct Tree {
    pub(crate) cycle: i64,
    pub(crate) root: Node,
}

/// The class of a node. Roles and kinds are an open vocabulary and stay strings.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) enum NodeType {
    #[serde(rename = "^root")]
    Root,
    #[serde(rename = "^sys")]
    Sys,
    #[serde(rename = "^seq")]
    Seq,
    #[serde(rename = "^ah")]
    Head,
    #[serde(rename = "mt")]
    Turn,
    #[serde(rename = "mc")]
    Container,
    #[serde(rename = "cb")]
    Block,
}

impl NodeType {
    /// The name in a document.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Root => "^root",
            Self::Sys => "^sys",
            Self::Seq => "^seq",
            Self::Head => "^ah",
            Self::Turn => "mt",
            Self::Container => "mc",
            Self::Block => "cb",
        }
    }
}

/// A node with its fields as in the document.
#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    #[serde(rename = "nodeType")]
    pub(crate) node_type: NodeType,
    pub(crate) role: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) offset: i64,
    pub(crate) ttl: Option<i64>,
    pub(crate) priority: i64,
    pub(crate) cycle: i64,
    pub(crate) created_at_ns: i64,
    pub(crate) created_at_iso: String,
    pub(crate) creation_index: i64,
    pub(crate) data_tool: Option<String>,
    pub(crate) content: Option<String>,
    #[serde(default)]
    pub(crate) children: Vec<Node>,
}

impl Node {
    fn is(&self, node_type: NodeType) -> bool {
        self.node_type == node_type
    }

    fn is_block_of(&self, role: &str) -> bool {
        self.is(NodeType::Block) && self.role.as_deref() == Some(role)
    }
}

/// Reads a document.
pub(crate) fn load(bytes: &[u8]) -> Tree {
    serde_json::from_slice(bytes).expect("the generated document is valid")
}

/// The function that answers `query`; the id is for [`Query::ById`].
pub(crate) fn answer<'t>(tree: &'t Tree, query: Query, id: &str) -> Vec<&'t str> {
    match query {
        Query::ById => by_id(tree, id),
        Query::Assistant => assistant(tree),
        Query::LastTurn => last_turn(tree),
        Query::LastThree => last_three(tree),
        Query::Summary => summary(tree),
        Query::Ttl => ttl(tree),
        Query::HeadPre => head_pre(tree),
        Query::Calls => calls(tree),
        Query::Blocks => blocks(tree),
        Query::FirstBlocks => first_blocks(tree),
    }
}

/// `query` as something to time.
pub(crate) fn task<'a>(tree: &'a Tree, query: Query, id: &'a str) -> Task<'a> {
    fn timed<'a>(tree: &'a Tree, answer: fn(&Tree) -> Vec<&str>) -> Task<'a> {
        Box::new(move || black_box(answer(black_box(tree))).len())
    }
    match query {
        Query::ById => Box::new(move || black_box(by_id(black_box(tree), black_box(id))).len()),
        Query::Assistant => timed(tree, assistant),
        Query::LastTurn => timed(tree, last_turn),
        Query::LastThree => timed(tree, last_three),
        Query::Summary => timed(tree, summary),
        Query::Ttl => timed(tree, ttl),
        Query::HeadPre => timed(tree, head_pre),
        Query::Calls => timed(tree, calls),
        Query::Blocks => timed(tree, blocks),
        Query::FirstBlocks => timed(tree, first_blocks),
    }
}

fn region(tree: &Tree, name: NodeType) -> &[Node] {
    tree.root
        .children
        .iter()
        .find(|child| child.is(name))
        .map_or(&[], |region| &region.children)
}

fn by_id<'t>(tree: &'t Tree, id: &str) -> Vec<&'t str> {
    fn find<'t>(node: &'t Node, id: &str) -> Option<&'t Node> {
        if node.id == id {
            return Some(node);
        }
        node.children.iter().find_map(|child| find(child, id))
    }
    find(&tree.root, id)
        .map(|node| &*node.id)
        .into_iter()
        .collect()
}

fn assistant(tree: &Tree) -> Vec<&str> {
    fn walk<'t>(node: &'t Node, found: &mut Vec<&'t str>) {
        if node.is_block_of("assistant") {
            found.push(&node.id);
        }
        for child in &node.children {
            walk(child, found);
        }
    }
    let mut found = Vec::new();
    walk(&tree.root, &mut found);
    found
}

fn last_turn(tree: &Tree) -> Vec<&str> {
    let mut found = Vec::new();
    let turns = region(tree, NodeType::Seq);
    if let Some(turn) = turns.iter().rfind(|turn| turn.is(NodeType::Turn)) {
        for core in turn
            .children
            .iter()
            .filter(|child| child.is(NodeType::Container))
        {
            for block in &core.children {
                if block.is_block_of("assistant") {
                    found.push(&*block.id);
                }
            }
        }
    }
    found
}

fn last_three(tree: &Tree) -> Vec<&str> {
    fn walk<'t>(node: &'t Node, found: &mut Vec<&'t str>) {
        for child in &node.children {
            if child.is_block_of("user") {
                found.push(&child.id);
            }
            walk(child, found);
        }
    }
    let mut found = Vec::new();
    let turns = region(tree, NodeType::Seq);
    for turn in &turns[turns.len().saturating_sub(3)..] {
        walk(turn, &mut found);
    }
    found
}

fn summary(tree: &Tree) -> Vec<&str> {
    fn walk<'t>(node: &'t Node, found: &mut Vec<&'t str>) {
        if node.is(NodeType::Block) && node.kind.as_deref() == Some("summary") && node.priority >= 8
        {
            found.push(&node.id);
        }
        for child in &node.children {
            walk(child, found);
        }
    }
    let mut found = Vec::new();
    walk(&tree.root, &mut found);
    found
}

fn ttl(tree: &Tree) -> Vec<&str> {
    fn walk<'t>(node: &'t Node, found: &mut Vec<&'t str>) {
        if node.ttl.is_some_and(|ttl| ttl <= 1) {
            found.push(&node.id);
        }
        for child in &node.children {
            walk(child, found);
        }
    }
    let mut found = Vec::new();
    walk(&tree.root, &mut found);
    found
}

fn head_pre(tree: &Tree) -> Vec<&str> {
    region(tree, NodeType::Head)
        .iter()
        .filter(|child| child.is(NodeType::Block) && child.offset < 0)
        .map(|block| &*block.id)
        .collect()
}

/// Descendants, not children: a container may be anywhere below a turn, a block anywhere below a
/// container.
fn calls(tree: &Tree) -> Vec<&str> {
    fn walk<'t>(node: &'t Node, in_turn: bool, in_core: bool, found: &mut Vec<&'t str>) {
        if in_core && node.is(NodeType::Block) && node.kind.as_deref() == Some("call") {
            found.push(&node.id);
        }
        let in_core = in_core || in_turn && node.is(NodeType::Container);
        let in_turn = in_turn || node.is(NodeType::Turn);
        for child in &node.children {
            walk(child, in_turn, in_core, found);
        }
    }
    let mut found = Vec::new();
    for turn in region(tree, NodeType::Seq) {
        walk(turn, false, false, &mut found);
    }
    found
}

/// Every block.
pub(crate) fn blocks(tree: &Tree) -> Vec<&str> {
    fn walk<'t>(node: &'t Node, found: &mut Vec<&'t str>) {
        if node.is(NodeType::Block) {
            found.push(&node.id);
        }
        for child in &node.children {
            walk(child, found);
        }
    }
    let mut found = Vec::new();
    walk(&tree.root, &mut found);
    found
}

/// How many blocks there are, without listing them.
pub(crate) fn count_blocks(tree: &Tree) -> usize {
    fn walk(node: &Node) -> usize {
        usize::from(node.is(NodeType::Block)) + node.children.iter().map(walk).sum::<usize>()
    }
    walk(&tree.root)
}

fn first_blocks(tree: &Tree) -> Vec<&str> {
    let mut found = Vec::new();
    for turn in region(tree, NodeType::Seq)
        .iter()
        .filter(|turn| turn.is(NodeType::Turn))
    {
        for core in turn
            .children
            .iter()
            .filter(|child| child.is(NodeType::Container))
        {
            found.extend(
                core.children
                    .iter()
                    .find(|child| child.is(NodeType::Block))
                    .map(|block| &*block.id),
            );
        }
    }
    found
}
