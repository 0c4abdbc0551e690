//! The difference of two snapshots of different sessions: their blocks have no ids in common, so they
//! are paired by what they say and where they are (INSPECT §4).

use super::lists::ascending;
use super::part::{Saying, saying};
use crate::history::{ContentDiff, ContentOptions, Labels, content_diff};
use crate::index::{NodeRef, Snapshot};
use crate::json::{JsonValue, get, members};
use crate::render::compact;
use crate::tree::NodeClass;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The difference of two snapshots of different sessions.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Across {
    /// Blocks that say the same in both and are in the same order.
    pub same: usize,
    /// Blocks that say the same at another place, in the order of the second.
    pub moved: Vec<Pair>,
    /// Blocks that were paired and say something else, in the order of the second.
    pub changed: Vec<ChangedPair>,
    /// Blocks of the first without one in the second, in its order.
    pub only_a: Vec<Lone>,
    /// Blocks of the second without one in the first, in its order.
    pub only_b: Vec<Lone>,
    /// Request parameters that differ, sorted by name.
    pub parameters: Vec<ParameterChange>,
}

/// How two blocks were paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PairedBy {
    /// They have the same key.
    Key,
    /// They say the same.
    Content,
    /// They are between the same neighbours, and have the same role and kind.
    Position,
}

/// Two blocks that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Pair {
    /// The id in the first.
    pub a: String,
    /// The id in the second.
    pub b: String,
    /// Why they belong together.
    pub by: PairedBy,
}

/// Two blocks that belong together and differ.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ChangedPair {
    /// The blocks.
    #[serde(flatten)]
    pub pair: Pair,
    /// What differs: `role`, `kind`, `content`, `data_call_name`, `data_is_error`.
    pub fields: Vec<&'static str>,
    /// How the contents differ, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_diff: Option<Box<ContentDiff>>,
}

/// A block that only one of the snapshots has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lone {
    /// Its id.
    pub id: String,
    /// Its role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// A request parameter that differs. The values are JSON; `None` where there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ParameterChange {
    /// Its name.
    pub name: String,
    /// The value in the first, or the older.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<String>,
    /// The value in the second, or the newer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
}

/// Compares the blocks of two snapshots, which may be of different sessions. `content` says how the
/// contents of changed blocks are compared.
///
/// Blocks are paired by key, then by what they say, then by their place between neighbours that were
/// paired and are in the same order. `n log n` in the blocks, and the comparison of the changed
/// contents.
#[must_use]
pub fn across(a: &Snapshot, b: &Snapshot, content: &ContentOptions) -> Across {
    Across::new(&blocks(a), &blocks(b), parameters(a, b), content)
}

impl Across {
    /// Compares blocks, given in document order.
    pub(super) fn new(
        first: &[ComparedBlock<'_>],
        second: &[ComparedBlock<'_>],
        parameters: Vec<ParameterChange>,
        content: &ContentOptions,
    ) -> Self {
        let mut pairs = Pairs {
            a: vec![None; first.len()],
            b: vec![None; second.len()],
        };
        by_key(first, second, &mut pairs);
        by_content(first, second, &mut pairs);
        let in_order = pairs.in_order();
        by_position(first, second, &in_order, &mut pairs);
        let mut found = Self {
            same: 0,
            moved: Vec::new(),
            changed: Vec::new(),
            only_a: lone(first, |at| pairs.a[at].is_some()),
            only_b: lone(second, |at| pairs.b[at].is_some()),
            parameters,
        };
        for (at, newer) in second.iter().enumerate() {
            let Some((index, by)) = pairs.b[at] else {
                continue;
            };
            let older = &first[index];
            let pair = Pair {
                a: older.node.id().to_owned(),
                b: newer.node.id().to_owned(),
                by,
            };
            let fields = older.differs(newer);
            if !fields.is_empty() {
                let labels = Labels {
                    newer: "b",
                    older: "a",
                };
                let content_diff = fields
                    .contains(&"content")
                    .then(|| Box::new(content_diff(newer.node, older.node, content, labels)));
                found.changed.push(ChangedPair {
                    pair,
                    fields,
                    content_diff,
                });
            } else if in_order.binary_search(&(index, at)).is_ok() {
                found.same += 1;
            } else {
                found.moved.push(pair);
            }
        }
        found
    }
}

/// The request parameters that differ, sorted by name.
#[must_use]
pub fn parameters(a: &Snapshot, b: &Snapshot) -> Vec<ParameterChange> {
    let [a, b] = [a, b].map(|snapshot| members(snapshot.meta().request().unwrap_or("{}")));
    let names: BTreeSet<&str> = a.iter().chain(&b).map(|(name, _)| &**name).collect();
    let change = |name: &str| {
        let [a, b] = [get(&a, name), get(&b, name)];
        (a != b).then(|| ParameterChange {
            name: name.to_owned(),
            a: a.map(str::to_owned),
            b: b.map(str::to_owned),
        })
    };
    names.into_iter().filter_map(change).collect()
}

pub(super) struct ComparedBlock<'a> {
    pub(super) node: NodeRef<'a>,
    pub(super) says: BlockSays<'a>,
}

/// What is compared of a block: what it says, the tool that it calls or that answers, and whether it is an error.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct BlockSays<'a> {
    /// A list, an object or the definition of a tool without its text, which is in `json`.
    says: Saying<'a>,
    /// Without white space outside of strings, which programs write as they like.
    json: Cow<'a, str>,
    name: Option<JsonValue<'a>>,
    is_error: bool,
}

impl<'a> ComparedBlock<'a> {
    pub(super) fn new(node: NodeRef<'a>) -> Self {
        let mut says = saying(node);
        let json = match &mut says {
            (_, _, Some(JsonValue::List(json) | JsonValue::Object(json)))
            | (_, Some("tool"), Some(JsonValue::Text(json))) => compact(std::mem::take(json)),
            _ => Cow::default(),
        };
        let says = BlockSays {
            says,
            json,
            name: node.field("data_call_name"),
            is_error: node.field("data_is_error") == Some(JsonValue::Bool(true)),
        };
        Self { node, says }
    }

    fn differs(&self, other: &Self) -> Vec<&'static str> {
        let (a, b) = (&self.says, &other.says);
        let fields = [
            ("role", a.says.0 != b.says.0),
            ("kind", a.says.1 != b.says.1),
            ("content", (a.says.2, &a.json) != (b.says.2, &b.json)),
            ("data_call_name", a.name != b.name),
            ("data_is_error", a.is_error != b.is_error),
        ];
        let differ = fields.into_iter().filter(|(_, differs)| *differs);
        differ.map(|(name, _)| name).collect()
    }
}

fn blocks(snapshot: &Snapshot) -> Vec<ComparedBlock<'_>> {
    let nodes = snapshot.nodes();
    let blocks = nodes.filter(|node| node.class() == NodeClass::Block);
    blocks.map(ComparedBlock::new).collect()
}

/// Which blocks belong together: for each the index of the other.
struct Pairs {
    a: Vec<Option<usize>>,
    b: Vec<Option<(usize, PairedBy)>>,
}

impl Pairs {
    fn add(&mut self, a: usize, b: usize, by: PairedBy) {
        self.a[a] = Some(b);
        self.b[b] = Some((a, by));
    }

    /// The pairs that are in the same order on both sides, as many as there are at most, ascending.
    fn in_order(&self) -> Vec<(usize, usize)> {
        let pairs = self.a.iter().enumerate();
        let pairs = pairs.filter_map(|(a, b)| Some((a, (*b)?)));
        ascending(&pairs.collect::<Vec<_>>())
    }
}

/// Pairs blocks that have a key which no other block of their snapshot has.
fn by_key(a: &[ComparedBlock<'_>], b: &[ComparedBlock<'_>], pairs: &mut Pairs) {
    let known = keys(b);
    for (key, at) in keys(a) {
        if let (Some(a), Some(Some(b))) = (at, known.get(key)) {
            pairs.add(a, *b, PairedBy::Key);
        }
    }
}

/// The blocks by their keys; `None` where several have a key.
fn keys<'a>(blocks: &[ComparedBlock<'a>]) -> HashMap<&'a str, Option<usize>> {
    let mut keys = HashMap::new();
    for (at, block) in blocks.iter().enumerate() {
        if let Some(key) = block.node.key() {
            let known = keys.entry(key).and_modify(|known| *known = None);
            known.or_insert(Some(at));
        }
    }
    keys
}

/// Pairs blocks that say the same: the first of one side with the first of the other, and so on.
fn by_content(a: &[ComparedBlock<'_>], b: &[ComparedBlock<'_>], pairs: &mut Pairs) {
    let mut open: HashMap<_, VecDeque<usize>> = HashMap::new();
    for (at, block) in a.iter().enumerate() {
        if pairs.a[at].is_none() {
            open.entry(&block.says).or_default().push_back(at);
        }
    }
    for (at, block) in b.iter().enumerate() {
        if pairs.b[at].is_none()
            && let Some(found) = open.get_mut(&block.says).and_then(VecDeque::pop_front)
        {
            pairs.add(found, at, PairedBy::Content);
        }
    }
}

/// How many blocks are looked at for one with the same role and kind.
const NEAR: usize = 64;

/// Pairs blocks between the same neighbours, in order, if their roles and kinds agree.
fn by_position(
    a: &[ComparedBlock<'_>],
    b: &[ComparedBlock<'_>],
    in_order: &[(usize, usize)],
    pairs: &mut Pairs,
) {
    let mut start = (0, 0);
    for end in in_order.iter().copied().chain([(a.len(), b.len())]) {
        let open = (start.0..end.0).filter(|at| pairs.a[*at].is_none());
        let mut open: VecDeque<usize> = open.collect();
        for (at, newer) in b.iter().enumerate().take(end.1).skip(start.1) {
            if pairs.b[at].is_some() {
                continue;
            }
            let agrees = |other: &usize| {
                let (older, newer) = (&a[*other].says.says, &newer.says.says);
                (older.0, older.1) == (newer.0, newer.1)
            };
            // Those before the one that agrees stay alone, so that the order is kept.
            if let Some(found) = open.iter().take(NEAR).position(agrees) {
                let index = open[found];
                open.drain(..=found);
                pairs.add(index, at, PairedBy::Position);
            }
        }
        start = (end.0 + 1, end.1 + 1);
    }
}

fn lone(blocks: &[ComparedBlock<'_>], paired: impl Fn(usize) -> bool) -> Vec<Lone> {
    let alone = blocks.iter().enumerate().filter(|(at, _)| !paired(*at));
    let lone = alone.map(|(_, block)| Lone {
        id: block.node.id().to_owned(),
        role: block.node.role().map(str::to_owned),
        kind: block.node.kind().map(str::to_owned),
    });
    lone.collect()
}
