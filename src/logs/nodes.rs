//! The nodes of imported sessions.

use super::log::{LogField, LogPart};
use super::packed::{Packed, Unpacked};
use crate::json::JsonValue;
use crate::tree::timestamp::rfc3339_of_nanos;
use crate::tree::{NodeHeaders, Present};
use std::borrow::Cow;
use std::io;

// The ids of the root and the regions in imported trees.
pub(super) const ROOT: &str = "^root";
pub(super) const SYS: &str = "^sys";
pub(super) const SEQ: &str = "^seq";
pub(super) const HEAD: &str = "^ah";

/// When a node was made: its cycle, and its number among the nodes of the cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CreationOrder {
    pub(super) cycle: i64,
    pub(super) index: i64,
}

/// All nodes have offset 0, so siblings are ordered by time, then creation index, then id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogNode {
    pub(super) id: String,
    /// The id of the parent; empty for the root.
    pub(super) parent: String,
    node_type: Cow<'static, str>,
    made: CreationOrder,
    pub(super) created_at_ns: i64,
    role: Option<String>,
    key: Option<String>,
    kind: Option<Cow<'static, str>>,
    /// Everything else, sorted by name, values as canonical JSON.
    fields: Vec<LogField>,
}

impl LogNode {
    /// Its place among its siblings, and among the nodes that were made with it.
    pub(super) fn order(&self) -> (i64, i64) {
        (self.created_at_ns, self.made.index)
    }

    pub(super) fn pack(&self, packed: &mut Packed) {
        packed.text(&self.id);
        packed.text(&self.parent);
        packed.text(&self.node_type);
        for text in [
            self.role.as_deref(),
            self.kind.as_deref(),
            self.key.as_deref(),
        ] {
            packed.some_text(text);
        }
        for number in [self.made.cycle, self.created_at_ns, self.made.index] {
            packed.number(number);
        }
        packed.number(self.fields.len() as i64);
        for (name, json) in &self.fields {
            packed.text(name);
            packed.value(json);
        }
    }

    /// The id of the parent, if it has one, and the headers; `fields` become its others. Errors: the text is broken off.
    pub(super) fn unpack<'a>(
        packed: &mut Unpacked<'a>,
        fields: &mut Vec<(&'a str, JsonValue<'a>)>,
    ) -> io::Result<(Option<&'a str>, NodeHeaders<'a>)> {
        let (id, parent, node_type) = (packed.text()?, packed.text()?, packed.text()?);
        let [role, kind, key] = [
            packed.some_text()?,
            packed.some_text()?,
            packed.some_text()?,
        ];
        let [cycle, created_at_ns, index] = [packed.number()?, packed.number()?, packed.number()?];
        fields.clear();
        for _ in 0..packed.number()? {
            fields.push((packed.text()?, packed.value()?));
        }
        let headers = NodeHeaders {
            id,
            texts: [Some(node_type), role, kind, key],
            present: Present(
                Present::OFFSET
                    | Present::PRIORITY
                    | Present::CYCLE
                    | Present::CREATED_AT_NS
                    | Present::CREATION_INDEX,
            ),
            numbers: [0, 0, 0, cycle, created_at_ns, index],
        };
        Ok((Some(parent).filter(|parent| !parent.is_empty()), headers))
    }
}

#[derive(Default)]
pub(super) struct LogNodeDraft<'a> {
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) node_type: &'static str,
    pub(super) made: CreationOrder,
    /// Its place among its siblings, which is its time unless something was put between others.
    pub(super) order_ns: i64,
    /// What the log says; else the time is `order_ns`.
    pub(super) time: Option<i64>,
    pub(super) role: Option<&'a str>,
    pub(super) key: Option<&'a str>,
    pub(super) part: Option<&'a LogPart>,
    pub(super) fields: Vec<LogField>,
}

impl LogNodeDraft<'_> {
    pub(super) fn container(
        (id, parent): (String, &str),
        node_type: &'static str,
        made: CreationOrder,
        (order_ns, time): (i64, Option<i64>),
    ) -> Self {
        Self {
            id,
            parent: parent.to_owned(),
            node_type,
            made,
            order_ns,
            time,
            ..Self::default()
        }
    }

    /// The first field of a name counts.
    pub(super) fn node(self) -> LogNode {
        let (part, time) = (self.part, self.time.unwrap_or(self.order_ns));
        let mut fields = self.fields;
        if let Some(part) = part {
            fields.extend(part.data.iter().cloned());
            let content = part.content.clone();
            fields.extend(content.map(|content| ("content".into(), content)));
        }
        let iso = format!("\"{}\"", rfc3339_of_nanos(time));
        fields.push(("created_at_iso".into(), iso));
        fields.push(("ttl".into(), "null".to_owned()));
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        fields.dedup_by(|(later, _), (first, _)| later == first);
        let role = part.and_then(|part| part.role).or(self.role);
        LogNode {
            id: self.id,
            parent: self.parent,
            node_type: self.node_type.into(),
            made: self.made,
            created_at_ns: self.order_ns,
            role: role.map(str::to_owned),
            key: self.key.map(str::to_owned),
            kind: part.and_then(|part| part.kind).map(Cow::Borrowed),
            fields,
        }
    }
}
