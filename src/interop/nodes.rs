//! Writing the fields of imported nodes.

use super::json::{json_text, push_member};
use super::log::{Field, Part};
use super::recording::Node;
use crate::tree::timestamp::rfc3339_of_nanos;
use std::fmt::Write;

/// When a node was made: its cycle, and its number among the nodes of the cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) cycle: i64,
    pub(super) index: i64,
}

/// A node to write.
#[derive(Default)]
pub(super) struct Draft<'a> {
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) node_type: &'static str,
    pub(super) made: Made,
    /// Its place among its siblings, which is its time unless something was put between others.
    pub(super) order_ns: i64,
    /// What the log says; else the time is `order_ns`.
    pub(super) time: Option<i64>,
    pub(super) role: Option<&'a str>,
    pub(super) key: Option<&'a str>,
    pub(super) part: Option<&'a Part>,
    /// Custom fields that the part does not have.
    pub(super) fields: Vec<Field>,
}

impl Draft<'_> {
    /// A node without fields of its own.
    pub(super) fn container(id: String, parent: &str, node_type: &'static str, made: Made) -> Self {
        Self {
            id,
            parent: parent.to_owned(),
            node_type,
            made,
            ..Self::default()
        }
    }

    /// The node with its fields in canonical order.
    pub(super) fn write(self) -> Node {
        let mut members = String::new();
        if let Some(content) = self.part.and_then(|part| part.content.as_deref()) {
            members.reserve(content.len() + 256);
            members.push_str("\"content\":");
            members.push_str(content);
            members.push(',');
        }
        let iso = rfc3339_of_nanos(self.time.unwrap_or(self.order_ns));
        let (order_ns, Made { cycle, index }) = (self.order_ns, self.made);
        // Writing to a string cannot fail.
        let _ = write!(
            members,
            "\"created_at_iso\":\"{iso}\",\"created_at_ns\":{order_ns},\"creation_index\":{index},\"cycle\":{cycle}"
        );
        let data = self.part.map_or(&[][..], |part| &part.data);
        let mut data: Vec<&Field> = data.iter().chain(&self.fields).collect();
        data.sort_unstable();
        for (name, value) in data {
            push_member(name, value, &mut members);
        }
        members.push_str(",\"id\":");
        json_text(&self.id, &mut members);
        if let Some(key) = self.key {
            members.push_str(",\"key\":");
            json_text(key, &mut members);
        }
        if let Some(kind) = self.part.and_then(|part| part.kind) {
            let _ = write!(members, ",\"kind\":\"{kind}\"");
        }
        let _ = write!(
            members,
            ",\"nodeType\":\"{}\",\"offset\":0,",
            self.node_type
        );
        let parent_at = members.len();
        members.push_str("\"priority\":0");
        let role = self.part.and_then(|part| part.role).or(self.role);
        if let Some(role) = role {
            members.push_str(",\"role\":");
            json_text(role, &mut members);
        }
        members.push_str(",\"ttl\":null");
        Node {
            id: self.id,
            parent: self.parent,
            created_at_ns: order_ns,
            creation_index: index,
            members,
            parent_at,
        }
    }
}
