//! What the nodes of some snapshots have: names and values with their numbers of nodes, for the
//! notes on empty answers. It knows no selector.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashSet;

use crate::index::{NodeRef, Snapshot};
use crate::json::{JsonValue, elements, string};
use crate::query::ir::{Attr, headers, normal_type};
use crate::support::cancel::ensure;
use crate::tree::NodeClass;

/// The values of an attribute, each with its number of nodes.
pub(super) type Values = BTreeMap<String, u64>;

/// The distinct nodes of some snapshots of one session, or of several.
pub(super) struct Inventory<'a> {
    /// Of a node that changed, each state.
    nodes: Vec<NodeRef<'a>>,
    /// The index in `nodes` with which each session begins.
    starts: Vec<usize>,
}

/// What is counted of a node.
#[derive(PartialEq, Eq, Hash)]
struct CountedNode<'a> {
    id: &'a str,
    texts: [Option<&'a str>; 3],
    node_type: &'a str,
    fields: Vec<(&'a str, JsonValue<'a>)>,
}

impl<'a> CountedNode<'a> {
    fn from_node(node: NodeRef<'a>) -> Self {
        Self {
            id: node.id(),
            texts: [node.role(), node.kind(), node.key()],
            node_type: node.type_or_class(),
            fields: node.fields().collect(),
        }
    }
}

impl<'a> Inventory<'a> {
    /// The nodes of `snapshots`; of equal ones of one id, one, however they are shared. Linear in them.
    pub(super) fn new(snapshots: &[&'a Snapshot]) -> Self {
        Self::of_sessions(std::iter::once(snapshots))
    }

    /// As [`Self::new`], of the snapshots of each session. Nodes of two sessions are two, however equal.
    pub(super) fn of_sessions<'s>(sessions: impl Iterator<Item = &'s [&'a Snapshot]>) -> Self
    where
        'a: 's,
    {
        let (mut nodes, mut starts) = (Vec::new(), Vec::new());
        for session in sessions {
            starts.push(nodes.len());
            nodes.extend(Self::distinct(session));
        }
        Self { nodes, starts }
    }

    fn distinct(snapshots: &[&'a Snapshot]) -> Vec<NodeRef<'a>> {
        let (mut units, mut seen) = (HashSet::new(), HashSet::new());
        let mut nodes = Vec::new();
        let all = snapshots.iter().flat_map(|snapshot| snapshot.units());
        for unit in all.inspect(|_| ensure()) {
            let dead: Vec<u32> = unit.dead_rows().collect();
            if units.insert((Arc::as_ptr(unit.segment()), unit.index(), dead)) {
                let live = unit.nodes().inspect(|_| ensure());
                nodes.extend(live.filter(|node| seen.insert(CountedNode::from_node(*node))));
            }
        }
        nodes
    }

    pub(super) fn has_class(&self, class: NodeClass) -> bool {
        self.nodes.iter().any(|node| node.class() == class)
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        self.nodes.iter().any(|node| node.id() == id)
    }

    /// Whether a node's content, if it is a text, contains `text` and more.
    pub(super) fn has_in_content(&self, text: &str) -> bool {
        self.nodes.iter().any(|node| {
            let content = texts(node.field("content"));
            content
                .iter()
                .any(|content| content.contains(text) && content != text)
        })
    }

    pub(super) fn names(&self) -> BTreeSet<&str> {
        let fields = self.nodes.iter().flat_map(|node| node.fields());
        let mut names: BTreeSet<&str> = headers().collect();
        names.extend(fields.map(|(name, _)| name));
        names
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        let mut nodes = self.nodes.iter();
        nodes.any(|node| node.field(name).is_some())
    }

    /// Whether a custom attribute of a node is the number that `text` spells.
    pub(super) fn has_number(&self, name: &str, text: &str) -> bool {
        let number = |value: JsonValue<'_>| value == JsonValue::Number(text);
        self.nodes
            .iter()
            .any(|node| node.field(name).is_some_and(number))
    }

    /// The values of an attribute of texts; `None` for an attribute whose values are not listed. A node counts once for each
    /// value that it ever had.
    pub(super) fn values(&self, attr: &Attr) -> Option<Values> {
        let mut values = Values::new();
        let mut seen = HashSet::new();
        let mut starts = self.starts.iter().skip(1).peekable();
        for (at, &node) in self.nodes.iter().enumerate().inspect(|_| ensure()) {
            while starts.next_if(|start| **start <= at).is_some() {
                seen.clear();
            }
            let mut put = |value: &str| {
                if !seen.insert((node.id(), value.to_owned())) {
                    return;
                }
                if let Some(count) = values.get_mut(value) {
                    *count += 1;
                } else {
                    values.insert(value.to_owned(), 1);
                }
            };
            match attr {
                Attr::Id => put(node.id()),
                Attr::Role => node.role().into_iter().for_each(&mut put),
                Attr::Key => node.key().into_iter().for_each(&mut put),
                Attr::StoredKind => node.kind().into_iter().for_each(&mut put),
                Attr::Kind => kind_of(node).into_iter().for_each(&mut put),
                Attr::NodeType | Attr::StoredType => put(&normal_type(node.type_or_class())),
                Attr::Tags => texts(node.tags()).iter().for_each(|tag| put(tag)),
                Attr::Custom(name) => texts(node.field(name)).iter().for_each(|text| put(text)),
                _ => return None,
            }
        }
        Some(values)
    }
}

/// The kind as the later editions read it (LANGUAGE §1).
fn kind_of(node: NodeRef<'_>) -> Option<&str> {
    let sub = || node.node_type()?.split_once(':').map(|(_, sub)| sub);
    node.kind().or_else(sub)
}

/// The texts of a value: a string, a boolean, or the strings of a list.
fn texts(value: Option<JsonValue<'_>>) -> Vec<Cow<'_, str>> {
    match value {
        Some(JsonValue::Text(text)) => vec![text.into()],
        Some(JsonValue::Bool(flag)) => vec![flag.to_string().into()],
        Some(JsonValue::List(json)) => elements(json).into_iter().filter_map(string).collect(),
        _ => Vec::new(),
    }
}
