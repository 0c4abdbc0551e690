//! What a session has: how long it is, and which kinds, roles and attributes its nodes have.

use crate::app::present::Failure;
use crate::history::{Position, Session};
use crate::index::{NodeRef, Snapshot};
use crate::json::{JsonValue, string};
use serde::Serialize;
use std::collections::BTreeMap;

/// An attribute whose values are listed has at most this many, none longer than this many bytes.
const VALUES: usize = 12;
const VALUE_BYTES: usize = 40;

/// Fields that every selector knows by a name of its own, or that are the text itself.
const HEADERS: &str = "cadence content content_hash created_at_iso parent_id tag tags";

/// A session. Members are in the order in which they are printed; those that count nodes are of the newest snapshot.
#[derive(Debug, Default, Serialize)]
pub(super) struct Described {
    /// The word that names it in other calls.
    pub(super) session: String,
    /// The bytes of its files; a session of a store has none of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    pub(super) snapshots: usize,
    pub(super) first_cycle: Option<i64>,
    pub(super) last_cycle: Option<i64>,
    pub(super) working: bool,
    pub(super) turns: i64,
    pub(super) nodes: u64,
    pub(super) roles: BTreeMap<String, u64>,
    pub(super) kinds: BTreeMap<String, u64>,
    /// The names of the tools that were called, with the number of calls.
    pub(super) tools: BTreeMap<String, u64>,
}

pub(super) type Attributes = BTreeMap<String, Attribute>;

/// An attribute: how many nodes have it, and with which values if these are few and short.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Attribute {
    nodes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<BTreeMap<String, u64>>,
}

impl Attribute {
    fn add(&mut self, json: &str) {
        if self.nodes == 0 {
            self.values = Some(BTreeMap::new());
        }
        self.nodes += 1;
        let is_short = !json.starts_with(['{', '[']) && json.len() <= VALUE_BYTES;
        if let Some(values) = &mut self.values {
            *values.entry(written(json)).or_default() += 1;
            if !is_short || values.len() > VALUES {
                self.values = None;
            }
        }
    }
}

/// Describes a session and counts its attributes in `attributes`. Linear in the newest snapshot; of a stored
/// session nothing else is loaded.
pub(super) fn describe(
    name: String,
    bytes: Option<u64>,
    session: &Session,
    attributes: &mut Attributes,
) -> Result<Described, Failure> {
    let history = session.history();
    history.fetch_cycles()?;
    let mut described = Described {
        session: name,
        bytes,
        snapshots: history.committed().len(),
        first_cycle: history.cycles().min(),
        last_cycle: history.cycles().max(),
        working: history.has_working(),
        ..Described::default()
    };
    let newest = match history.committed().len().checked_sub(1) {
        Some(newest) => history.load(Position::Committed(newest))?,
        None => history.load(Position::Working)?,
    };
    if let Some(newest) = newest {
        described.count(newest, attributes);
    }
    Ok(described)
}

impl Described {
    fn count(&mut self, newest: &Snapshot, attributes: &mut Attributes) {
        for node in newest.nodes() {
            self.nodes += 1;
            self.turns = self.turns.max(node.depth().unwrap_or(0));
            if let Some(role) = node.role() {
                *self.roles.entry(role.to_owned()).or_default() += 1;
            }
            if let Some(kind) = kind(node) {
                *self.kinds.entry(kind.to_owned()).or_default() += 1;
                if kind == "call"
                    && let Some(tool) = node.field("data_call_name").and_then(JsonValue::text)
                {
                    *self.tools.entry(tool.to_owned()).or_default() += 1;
                }
            }
            for (name, value) in node.fields() {
                if !HEADERS.split(' ').any(|header| header == name) && !value.is_null() {
                    let attribute = attributes.entry(name.to_owned()).or_default();
                    attribute.add(&value.json());
                }
            }
        }
    }
}

/// The kind as the later editions read it (LANGUAGE §1).
fn kind(node: NodeRef<'_>) -> Option<&str> {
    let sub = || node.node_type()?.split_once(':').map(|(_, sub)| sub);
    node.kind().or_else(sub)
}

/// A value as a selector writes it: a text without its quotes, unless it would be read as something else.
fn written(json: &str) -> String {
    match string(json) {
        Some(text) if text.parse::<f64>().is_ok() || text == "null" => format!("'{text}'"),
        Some(text) => text.into_owned(),
        None => json.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Attribute, Attributes, describe};
    use crate::history::Session;

    #[test]
    fn values_are_listed_while_they_are_few_and_short() {
        let counted = |values: &[&str]| {
            let mut attribute = Attribute::default();
            values.iter().for_each(|value| attribute.add(value));
            (attribute.nodes, attribute.values.map(|values| values.len()))
        };
        assert_eq!(counted(&["true", "false", "true"]), (3, Some(2)));
        assert_eq!(counted(&["1", "[1]", "1"]), (3, None));
        assert_eq!(
            counted(&["1", &format!("\"{}\"", "x".repeat(60)), "1"]),
            (3, None)
        );
        let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(counted(&many), (20, None));
    }

    #[test]
    fn a_value_is_written_as_in_a_selector() {
        for (json, text) in [
            ("\"ok\"", "ok"),
            ("\"998\"", "'998'"),
            ("998", "998"),
            ("true", "true"),
            ("\"null\"", "'null'"),
        ] {
            assert_eq!(super::written(json), text);
        }
    }

    #[test]
    fn a_session_is_described_by_its_newest_snapshot() {
        let text = std::fs::read("fixtures/support-agent.jsonl").expect("a fixture");
        let session = Session::from_slice(&text).expect("a session");
        let mut attributes = Attributes::new();
        let found = describe("x".to_owned(), Some(7), &session, &mut attributes);
        let found = found.expect("a description");
        let cycles = (found.first_cycle, found.last_cycle);
        assert_eq!(
            (found.snapshots, found.turns, cycles),
            (6, 4, (Some(1), Some(6)))
        );
        assert_eq!(found.tools.get("book_pickup"), Some(&2));
        let status = serde_json::to_string(&attributes["status"]).expect("JSON");
        assert_eq!(status, r#"{"nodes":3,"values":{"failed":1,"ok":2}}"#);
        assert!(!attributes.contains_key("content"));
    }
}
