//! Writing the fields of imported nodes.

use super::json::{json_text, push_integer, push_member};
use super::log::{Field, Part};
use super::recording::Node;
use crate::tree::timestamp::rfc3339_of_nanos;

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
        let data = self.part.map_or(&[][..], |part| &part.data);
        let mut data: Vec<&Field> = data.iter().chain(&self.fields).collect();
        data.sort_unstable();
        let content = self.part.and_then(|part| part.content.as_deref());
        let length = data
            .iter()
            .map(|(name, value)| name.len() + value.len() + 4);
        // What the members below take, with long ids and numbers.
        let length: usize = length.sum::<usize>() + content.map_or(0, str::len) + 280;
        let mut members = String::with_capacity(length);
        if let Some(content) = content {
            members.push_str("\"content\":");
            members.push_str(content);
            members.push(',');
        }
        let iso = rfc3339_of_nanos(self.time.unwrap_or(self.order_ns));
        let (order_ns, Made { cycle, index }) = (self.order_ns, self.made);
        members.push_str("\"created_at_iso\":\"");
        members.push_str(&iso);
        members.push_str("\",\"created_at_ns\":");
        push_integer(order_ns, &mut members);
        members.push_str(",\"creation_index\":");
        push_integer(index, &mut members);
        members.push_str(",\"cycle\":");
        push_integer(cycle, &mut members);
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
            members.push_str(",\"kind\":\"");
            members.push_str(kind);
            members.push('"');
        }
        members.push_str(",\"nodeType\":\"");
        members.push_str(self.node_type);
        members.push_str("\",\"offset\":0,");
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
