//! What differs between two versions of a node.

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::value::RawValue;

use super::content::{ContentDiff, Materialized};
use crate::index::NodeRef;
use crate::ir::normal_type;
use crate::plan::Number;
use crate::tree::alias::{CADENCE, TAGS};
use crate::tree::canonical::canonical;
use crate::tree::is_header;
use crate::tree::json::unescape;

/// A node that is in both of two snapshots and differs.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The id.
    pub id: String,
    /// The headers and fields that differ, sorted by name.
    pub fields: Vec<String>,
    /// Old and new values of the scalar ones, sorted by name.
    #[serde(skip_serializing_if = "Delta::is_empty")]
    pub delta: Delta,
    /// How the content changed, where that was asked for and the content hash differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_diff: Option<Box<ContentDiff>>,
    /// Fields of both versions that were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub materialized: Option<Materialized>,
}

/// Values of changed fields: name, newer and older value as JSON text.
#[derive(Clone, Debug, Default)]
pub struct Delta(Vec<(String, Box<RawValue>, Box<RawValue>)>);

impl Delta {
    /// Whether no scalar field differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Name, newer and older value as JSON text; sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0
            .iter()
            .map(|(name, from, to)| (name.as_str(), from.get(), to.get()))
    }
}

impl Serialize for Delta {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// `from` is the newer value (LANGUAGE §8).
        #[derive(Serialize)]
        struct Pair<'a> {
            from: &'a RawValue,
            to: &'a RawValue,
        }
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, from, to) in &self.0 {
            map.serialize_entry(name, &Pair { from, to })?;
        }
        map.end()
    }
}

/// How `newer` differs from `older`; none where they are equal (LANGUAGE §8).
///
/// Linear in the nodes' fields. Content hashes are computed only where the content differs.
#[must_use]
pub fn changed_fields(newer: NodeRef<'_>, older: NodeRef<'_>) -> Option<Change> {
    let mut found = Found::default();
    let number = |value: Option<i64>| value.map(|value| Cow::Owned(value.to_string()));
    let text = |value: Option<&str>| {
        value.map(|value| Cow::Owned(serde_json::to_string(value).unwrap_or_default()))
    };
    for (name, from, to) in [
        (
            "created_at_ns",
            Some(newer.created_at_ns()),
            Some(older.created_at_ns()),
        ),
        (
            "creation_index",
            Some(newer.creation_index()),
            Some(older.creation_index()),
        ),
        ("cycle", newer.cycle(), older.cycle()),
        ("offset", Some(newer.offset()), Some(older.offset())),
        ("priority", Some(newer.priority()), Some(older.priority())),
        ("ttl", newer.ttl(), older.ttl()),
    ] {
        if from != to {
            found.add(name, number(from), number(to));
        }
    }
    for (name, from, to) in [
        ("key", newer.key(), older.key()),
        ("kind", newer.kind(), older.kind()),
        ("role", newer.role(), older.role()),
        (
            "parent",
            newer.parent().map(NodeRef::id),
            older.parent().map(NodeRef::id),
        ),
    ] {
        if from != to {
            found.add(name, text(from), text(to));
        }
    }
    let (from, to) = (newer.type_or_class(), older.type_or_class());
    if from != to && normal_type(from) != normal_type(to) {
        found.add("nodeType", text(Some(from)), text(Some(to)));
    }

    let mut hashed = newer.role() != older.role() || newer.kind() != older.kind();
    let mut left = newer.fields().peekable();
    let mut right = older.fields().peekable();
    loop {
        // Both records are sorted by name.
        let (name, from, to) = match (left.peek(), right.peek()) {
            (None, None) => break,
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
            (Some(_), None) => break,
        };
        if from == to {
            continue;
        }
        let header = is_header(name);
        if name == "content" || name.starts_with("data_") || name.starts_with("content_") {
            hashed |= name != "content_hash";
        }
        // An explicit null in place of nothing still makes another hash.
        hashed |= name == "role" || name == "kind";
        if !header && !same_json(from, to) {
            found.add(name, from.map(shown), to.map(shown));
        }
    }
    let (iso, iso_before) = (newer.field("created_at_iso"), older.field("created_at_iso"));
    for (name, from, to) in [
        (CADENCE.name, newer.cadence(), older.cadence()),
        ("created_at_iso", iso, iso_before),
        (TAGS.name, newer.tags(), older.tags()),
    ] {
        let value = |json: &'_ str| {
            let listed = name == TAGS.name && json.starts_with('"');
            Cow::<str>::Owned(if listed {
                format!("[{json}]")
            } else {
                shown(json).into_owned()
            })
        };
        let (from, to) = (from.map(value), to.map(value));
        if !same_json(from.as_deref(), to.as_deref()) {
            found.add(name, from, to);
        }
    }
    let stored = |node: NodeRef<'_>| {
        node.field("content_hash")
            .map(|json| Cow::Owned(canonical(json)))
    };
    let computed = if hashed {
        (newer.content_hash(), older.content_hash())
    } else {
        Default::default()
    };
    if computed.0 != computed.1 {
        found.add(
            "content_hash",
            text(Some(&computed.0)),
            text(Some(&computed.1)),
        );
    } else {
        let (from, to) = (stored(newer), stored(older));
        if !same_json(from.as_deref(), to.as_deref()) {
            found.add("content_hash", from, to);
        }
    }
    found.into_change(newer.id())
}

/// A value as it is shown: texts as `serde_json` writes them, like every other text of a result.
pub(super) fn shown(json: &str) -> Cow<'_, str> {
    match json
        .strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'))
    {
        Some(raw) => Cow::Owned(serde_json::to_string(&unescape(raw)).unwrap_or_default()),
        None => Cow::Owned(canonical(json)),
    }
}

/// Differences while they are found.
#[derive(Default)]
struct Found(Vec<(String, Option<String>, Option<String>)>);

impl Found {
    fn add(&mut self, name: &str, from: Option<Cow<'_, str>>, to: Option<Cow<'_, str>>) {
        self.0.push((
            name.to_owned(),
            from.map(Cow::into_owned),
            to.map(Cow::into_owned),
        ));
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

/// Whether two JSON texts mean the same: absent equals null, 1 equals 1.0.
fn same_json(a: Option<&str>, b: Option<&str>) -> bool {
    let (a, b) = (a.unwrap_or("null"), b.unwrap_or("null"));
    if a == b {
        return true;
    }
    let (a, b) = (canonical(a), canonical(b));
    let (mut a, mut b) = (Tokens(&a), Tokens(&b));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b || same_number(a, b) => {}
            _ => return false,
        }
    }
}

fn same_number(a: &str, b: &str) -> bool {
    Number::new(a)
        .zip(Number::new(b))
        .is_some_and(|(a, b)| a.compare(&b).is_eq())
}

/// The tokens of a canonical JSON text.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = *self.0.as_bytes().first()?;
        let length = match first {
            b'"' => {
                let mut escaped = false;
                let close = self.0.bytes().skip(1).position(|byte| {
                    let close = byte == b'"' && !escaped;
                    escaped = byte == b'\\' && !escaped;
                    close
                });
                close.map_or(self.0.len(), |close| close + 2)
            }
            b'-' | b'0'..=b'9' => self
                .0
                .bytes()
                .position(|byte| !matches!(byte, b'-' | b'+' | b'.' | b'0'..=b'9' | b'e' | b'E'))
                .unwrap_or(self.0.len()),
            _ => 1,
        };
        let (token, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::same_json;

    #[test]
    fn json_texts_compare_by_meaning() {
        for (a, b) in [
            ("1", "1.0"),
            ("[1,{\"a\":2.50}]", "[1.0, {\"a\": 2.5}]"),
            ("1e40", "1.0e40"),
            ("{\"b\":1,\"a\":\"\\u00e9\"}", "{\"a\":\"é\",\"b\":1}"),
        ] {
            assert!(same_json(Some(a), Some(b)), "{a} {b}");
        }
        assert!(same_json(None, Some("null")));
        for (a, b) in [
            ("1", "\"1\""),
            ("[1,2]", "[1]"),
            ("9007199254740993", "9007199254740992.0"),
            (
                "[10000000000000000000000000000000000000000]",
                "[10000000000000000000000000000000000000001]",
            ),
            ("\"a\\\"b\"", "\"a\""),
            ("[]", "null"),
        ] {
            assert!(!same_json(Some(a), Some(b)), "{a} {b}");
        }
    }
}
