//! The difference between two versions of one node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::content::{ContentDiff, Materialized};
use super::json::{same_value, shown};
use crate::index::{NodeRef, Snapshot};
use crate::json::{JsonValue, quoted};
use crate::query::ir::normal_type;
use crate::tree::alias::{CADENCE, TAGS};
use crate::tree::hash::is_hashed;
use crate::tree::{NodeHeaders, header, is_header};

/// A node that two snapshots both have and that differs. Example: [`RangeDiff`](crate::RangeDiff).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Change {
    /// The id.
    pub id: String,
    /// The headers and fields that differ, sorted by name.
    pub fields: Vec<String>,
    /// Newer and older values of the scalar ones, sorted by name.
    #[serde(default, skip_serializing_if = "Delta::is_empty")]
    pub delta: Delta,
    /// The content diff, if requested and if the content hash differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_diff: Option<Box<ContentDiff>>,
    /// Requested fields of both versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub materialized: Option<Materialized>,
}

impl Change {
    pub(super) fn is_rewritten(&self) -> bool {
        self.fields.iter().any(|field| field == "content_hash")
    }
}

/// Values of changed fields, sorted by name. Example: [`SnapshotDiff`](crate::history::SnapshotDiff).
#[derive(Clone, Debug, Default)]
pub struct Delta(Vec<FieldChange>);

/// Name, newer value, older value.
type FieldChange = (String, Box<RawValue>, Box<RawValue>);

impl Delta {
    /// Whether no scalar field differs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Name, newer value and older value; sorted by name. Numbers beyond 64 bits are rounded.
    pub fn iter(&self) -> impl Iterator<Item = (&str, serde_json::Value, serde_json::Value)> {
        let value = |json: &str| serde_json::from_str(json).unwrap_or_default();
        self.texts()
            .map(move |(name, newer, older)| (name, value(newer), value(older)))
    }

    /// As [`Delta::iter`], as JSON text: with every digit.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0
            .iter()
            .map(|(name, newer, older)| (name.as_str(), newer.get(), older.get()))
    }
}

/// `from` is the newer value (LANGUAGE §8).
#[derive(Serialize, Deserialize)]
struct ValuePair<T> {
    from: T,
    to: T,
}

impl Serialize for Delta {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pairs = self.0.iter();
        serializer.collect_map(pairs.map(|(name, from, to)| (name, ValuePair { from, to })))
    }
}

impl<'de> Deserialize<'de> for Delta {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs = BTreeMap::<String, ValuePair<Box<RawValue>>>::deserialize(deserializer)?;
        let pairs = pairs.into_iter();
        Ok(Self(
            pairs
                .map(|(name, pair)| (name, pair.from, pair.to))
                .collect(),
        ))
    }
}

/// The node with the same id in another snapshot: the same row of a shared segment, else a look-up by id.
pub(super) fn counterpart<'a>(node: NodeRef<'_>, other: &'a Snapshot) -> Option<NodeRef<'a>> {
    other.shared(node).or_else(|| other.find(node.id()))
}

/// How a node differs from its older version. Equal unit versions are equal rows, except for what
/// depends on the snapshot (ttl, parent); then no field is read.
pub(super) fn change_of(newer: NodeRef<'_>, older: NodeRef<'_>) -> Option<Change> {
    let same = newer.version() == older.version()
        && newer.ttl() == older.ttl()
        && newer.parent().map(NodeRef::id) == older.parent().map(NodeRef::id);
    if same {
        return None;
    }
    changed_fields(newer, older)
}

/// How `newer` differs from `older`; `None` where they are equal (LANGUAGE §8).
///
/// O(fields of both). Content hashes are computed only where the content differs.
pub fn changed_fields(newer: NodeRef<'_>, older: NodeRef<'_>) -> Option<Change> {
    let mut found = FieldChanges::default();
    columns(newer, older, &mut found);
    let rehash = payload(newer, older, &mut found);
    json_headers(newer, older, &mut found);
    content_hash(newer, older, rehash, &mut found);
    found.into_change(newer.id())
}

fn columns(newer: NodeRef<'_>, older: NodeRef<'_>, found: &mut FieldChanges) {
    let headers = [newer.headers(), older.headers()];
    for (at, name) in header::NUMBERS.into_iter().enumerate() {
        // The others read as 0 where a node has none.
        let is_null = matches!(at, header::TTL | header::CYCLE);
        let number = |own: &NodeHeaders<'_>| {
            (!is_null || own.present.has(1 << at)).then_some(own.numbers[at])
        };
        let [from, to] = headers.each_ref().map(number);
        if from != to {
            let text = |value: Option<i64>| value.map(|value| value.to_string());
            found.add(name, text(from), text(to));
        }
    }
    for (at, name) in header::TEXTS.into_iter().enumerate() {
        let [from, to] = headers.each_ref().map(|own| own.texts[at]);
        if at != header::NODE_TYPE && from != to {
            found.add(name, from.map(quoted), to.map(quoted));
        }
    }
    let (from, to) = (newer.parent(), older.parent());
    let (from, to) = (from.map(NodeRef::id), to.map(NodeRef::id));
    if from != to {
        found.add("parent", from.map(quoted), to.map(quoted));
    }
    let (from, to) = (newer.type_or_class(), older.type_or_class());
    if from != to && normal_type(from) != normal_type(to) {
        found.add("nodeType", Some(quoted(from)), Some(quoted(to)));
    }
}

/// Compares the custom attributes, which only the payload has. Returns whether anything differs
/// that the content hash covers.
fn payload(newer: NodeRef<'_>, older: NodeRef<'_>, found: &mut FieldChanges) -> bool {
    let mut rehash = newer.role() != older.role() || newer.kind() != older.kind();
    let mut left = newer.fields().peekable();
    let mut right = older.fields().peekable();
    loop {
        // Both records are sorted by name.
        let (name, from, to) = match (left.peek(), right.peek()) {
            (None, None) => return rehash,
            (Some(&(name, from)), Some(&(other, to))) if name == other => {
                left.next();
                right.next();
                (name, Some(from), Some(to))
            }
            (Some(&(name, from)), other) if other.is_none_or(|&(other, _)| name < other) => {
                left.next();
                (name, Some(from), None)
            }
            (_, Some(&(name, to))) => {
                right.next();
                (name, None, Some(to))
            }
            (Some(_), None) => return rehash,
        };
        if from == to {
            continue;
        }
        let hashed = is_hashed(name);
        // An absent role and an explicit null have different hashes.
        rehash |= hashed && name != "content_hash" || name == "role" || name == "kind";
        if !is_header(name) && !same_value(from, to) {
            found.add(name, from.map(shown), to.map(shown));
        }
    }
}

fn json_headers(newer: NodeRef<'_>, older: NodeRef<'_>, found: &mut FieldChanges) {
    let cadence = |node: NodeRef<'_>| node.cadence().map(|cadence| cadence.to_string());
    let (from, to) = (cadence(newer), cadence(older));
    if from != to {
        found.add(CADENCE.name, from, to);
    }
    let [from, to] = [newer, older].map(|node| node.field("created_at_iso"));
    if !same_value(from, to) {
        found.add("created_at_iso", from.map(shown), to.map(shown));
    }
    // A plain string is a list of one.
    let list = |tags: JsonValue<'_>| match tags {
        JsonValue::Text(_) => format!("[{}]", shown(tags)),
        tags => shown(tags),
    };
    let [from, to] = [newer, older].map(|node| node.tags().map(list));
    if from != to
        && !same_value(
            from.as_deref().map(JsonValue::List),
            to.as_deref().map(JsonValue::List),
        )
    {
        found.add(TAGS.name, from, to);
    }
}

/// Compares the computed content hashes if `rehash` is set, and the stored ones where those are equal.
fn content_hash(newer: NodeRef<'_>, older: NodeRef<'_>, rehash: bool, found: &mut FieldChanges) {
    if rehash {
        let (from, to) = (newer.content_hash(), older.content_hash());
        if from != to {
            found.add("content_hash", Some(quoted(&from)), Some(quoted(&to)));
            return;
        }
    }
    let [from, to] = [newer, older].map(|node| node.field("content_hash"));
    if !same_value(from, to) {
        let canonical = |hash: Option<JsonValue<'_>>| hash.map(JsonValue::canonical);
        found.add("content_hash", canonical(from), canonical(to));
    }
}

/// The differences found so far: name, newer and older value as JSON text.
#[derive(Default)]
struct FieldChanges(Vec<(String, Option<String>, Option<String>)>);

impl FieldChanges {
    fn add(&mut self, name: &str, from: Option<String>, to: Option<String>) {
        self.0.push((name.to_owned(), from, to));
    }

    fn into_change(mut self, id: &str) -> Option<Change> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let scalar = |json: &Option<String>| {
            !json
                .as_deref()
                .is_some_and(|json| json.starts_with(['[', '{']))
        };
        let raw = |json: &Option<String>| {
            RawValue::from_string(json.clone().unwrap_or_else(|| "null".to_owned())).ok()
        };
        let delta = self
            .0
            .iter()
            .filter(|(_, from, to)| scalar(from) && scalar(to))
            .filter_map(|(name, from, to)| Some((name.clone(), raw(from)?, raw(to)?)))
            .collect();
        let fields = self.0.into_iter().map(|(name, _, _)| name).collect();
        Some(Change {
            id: id.to_owned(),
            fields,
            delta: Delta(delta),
            content_diff: None,
            materialized: None,
        })
    }
}

/// What a diff compares of a node as text, without the ttl and the parent, which depend on the snapshot:
/// nodes with equal texts do not differ otherwise. Linear in the node.
#[cfg(feature = "store")]
pub(crate) fn tracked(node: NodeRef<'_>) -> String {
    use std::fmt::Write;

    let mut text = String::new();
    let cycle = node.cycle();
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "{} {} {cycle:?} {} {}",
        node.created_at_ns(),
        node.creation_index(),
        node.offset(),
        node.priority()
    );
    for value in [node.key(), node.kind(), node.role()] {
        let _ = write!(text, " {value:?}");
    }
    text.push_str(&normal_type(node.type_or_class()));
    let stored = node.field("content_hash").map(JsonValue::canonical);
    let tags = node.tags().map(|tags| match tags {
        JsonValue::Text(_) => format!("[{}]", tags.canonical()),
        tags => tags.canonical(),
    });
    let cadence = node.cadence().map(|cadence| cadence.to_string());
    let created = node.field("created_at_iso").map(JsonValue::canonical);
    let _ = write!(text, " {stored:?} {tags:?} {cadence:?} {created:?}");
    let null = |name| node.field(name) == Some(JsonValue::Null);
    let _ = write!(text, " {} {}", null("role"), null("kind"));
    for (name, value) in node.fields() {
        // To the hash of the content a null is a value, and no content is an empty text.
        let kept = match name {
            "content" => value != JsonValue::Text(""),
            _ if is_header(name) => false,
            _ => is_hashed(name) || !value.is_null(),
        };
        if kept {
            let _ = write!(text, "\n{name}:{}", value.canonical());
        }
    }
    text
}
