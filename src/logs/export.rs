//! A snapshot as one document: canonical bytes out (RUNTIME §1, §2), in one pass over its nodes.

use super::json::{canonical, json_text, push_member, quoted};
use crate::index::{NodeRef, Snapshot};
use crate::tree::Present;
use std::io::{self, Write};

const BUFFER: usize = 1 << 16;

/// Writes a snapshot as one document and a line feed. Linear in its nodes; memory for the nodes
/// that are open.
///
/// # Errors
/// Those of the writer.
pub fn write_document(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    write_whole(snapshot, snapshot.meta().cycle_given, out)
}

/// [`write_document`], with the cycle if `stated`.
pub(super) fn write_whole(
    snapshot: &Snapshot,
    stated: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (head, tail) = envelope(snapshot, stated);
    let mut text = head;
    write_nodes(snapshot.nodes(), &mut text, out)?;
    text.push_str(&tail);
    text.push('\n');
    out.write_all(text.as_bytes())
}

/// Appends the members of a node in canonical order, without braces and children. `more` (sorted
/// by name, values canonical JSON) adds members, which replace those of the node; an empty value leaves the member out.
pub fn write_members(node: NodeRef<'_>, more: &[(&str, &str)], out: &mut String) {
    let (before, after) = members(node, more);
    out.push_str(&before);
    if !before.is_empty() && !after.is_empty() {
        out.push(',');
    }
    out.push_str(&after);
}

/// The members of a node: those that sort before `children`, and those after.
pub(super) fn members(node: NodeRef<'_>, more: &[(&str, &str)]) -> (String, String) {
    let present = node.present();
    let number = |bit: u8, value: i64| present.has(bit).then(|| value.to_string());
    let text = |value: Option<&str>| value.map(quoted);
    let id = (!present.has(Present::ID_IMPLIED)).then(|| quoted(node.id()));
    let headers = [
        (
            "created_at_ns",
            number(Present::CREATED_AT_NS, node.created_at_ns()),
        ),
        (
            "creation_index",
            number(Present::CREATION_INDEX, node.creation_index()),
        ),
        ("cycle", number(Present::CYCLE, node.cycle().unwrap_or(0))),
        ("id", id),
        ("key", text(node.key())),
        ("kind", text(node.kind())),
        ("nodeType", text(node.node_type())),
        ("offset", number(Present::OFFSET, node.offset())),
        ("priority", number(Present::PRIORITY, node.priority())),
        ("role", text(node.role())),
        ("ttl", number(Present::TTL, node.ttl().unwrap_or(0))),
    ];
    let mut all: Vec<(&str, String)> = Vec::with_capacity(16);
    all.extend(
        more.iter()
            .map(|(name, value)| (*name, (*value).to_owned())),
    );
    let headers = headers.into_iter();
    all.extend(headers.filter_map(|(name, value)| Some((name, value?))));
    all.extend(node.fields().map(|(name, value)| (name, value.canonical())));
    // The sort is stable: of one name the first stays.
    all.sort_by_key(|(name, _)| *name);
    all.dedup_by(|(later, _), (first, _)| later == first);
    let (mut before, mut after) = (String::new(), String::new());
    for (name, value) in all.into_iter().filter(|(_, value)| !value.is_empty()) {
        let out = if name < "children" {
            &mut before
        } else {
            &mut after
        };
        if !out.is_empty() {
            out.push(',');
        }
        json_text(name, out);
        out.push(':');
        out.push_str(&value);
    }
    (before, after)
}

/// The members of a document that are its own, with the cycle if `stated`.
pub(super) fn own_members(snapshot: &Snapshot, stated: bool) -> Vec<(&str, String)> {
    let meta = snapshot.meta();
    let extra = meta.extra.iter();
    let cycle = (!meta.working && stated).then(|| ("cycle", meta.cycle.to_string()));
    extra
        .map(|(name, raw)| (&**name, canonical(raw)))
        .chain(cycle)
        .collect()
}

/// The text of a document before and after its tree, with the cycle if `stated`.
pub(super) fn envelope(snapshot: &Snapshot, stated: bool) -> (String, String) {
    let meta = snapshot.meta();
    let mut members = own_members(snapshot, stated);
    if let Some(version) = &meta.spec_version {
        members.push(("spec_version", canonical(version)));
    }
    if meta.working {
        members.push(("working", "true".to_owned()));
    }
    members.sort_unstable();
    let (mut head, mut tail) = (String::from("{"), String::new());
    for (name, value) in members {
        if name < "root" {
            json_text(name, &mut head);
            head.push_str(&format!(":{value},"));
        } else {
            push_member(name, &value, &mut tail);
        }
    }
    head.push_str("\"root\":");
    tail.push('}');
    (head, tail)
}

struct OpenObject {
    level: u32,
    /// Whether its object has a member yet.
    filled: bool,
    children: bool,
    empty_children: bool,
    after: String,
}

/// Writes a tree after the contents of `text`, which keeps its end; `nodes` are in document order.
pub(super) fn write_nodes<'a>(
    nodes: impl Iterator<Item = NodeRef<'a>>,
    text: &mut String,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut open: Vec<OpenObject> = Vec::new();
    for node in nodes {
        let level = node.level();
        while open.last().is_some_and(|last| last.level >= level) {
            close(&mut open, text);
        }
        if let Some(parent) = open.last_mut() {
            if parent.children {
                text.push(',');
            } else {
                begin_children(parent.filled, text);
                parent.children = true;
            }
        }
        let (before, after) = members(node, &[]);
        text.push('{');
        text.push_str(&before);
        open.push(OpenObject {
            level,
            filled: !before.is_empty(),
            children: false,
            empty_children: node.present().has(Present::EMPTY_CHILDREN),
            after,
        });
        if text.len() >= BUFFER {
            out.write_all(text.as_bytes())?;
            text.clear();
        }
    }
    while !open.is_empty() {
        close(&mut open, text);
    }
    Ok(())
}

fn close(open: &mut Vec<OpenObject>, text: &mut String) {
    let Some(node) = open.pop() else {
        return;
    };
    if node.empty_children && !node.children {
        begin_children(node.filled, text);
    }
    let has_children = node.children || node.empty_children;
    if has_children {
        text.push(']');
    }
    if (has_children || node.filled) && !node.after.is_empty() {
        text.push(',');
    }
    text.push_str(&node.after);
    text.push('}');
}

fn begin_children(filled: bool, text: &mut String) {
    text.push_str(if filled { "," } else { "" });
    text.push_str("\"children\":[");
}
