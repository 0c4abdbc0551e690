//! Sessions as importers make them, and their JSONL form.
//!
//! A recording is a list of changes, one a snapshot: nodes put in or replaced, nodes removed. It
//! writes itself as snapshot documents (RUNTIME §1): a delta line where that is shorter than the
//! whole document, so that a log of n messages takes time and space linear in n. This file knows
//! nodes and documents and no log format.

use std::collections::HashMap;
use std::io::{self, Write};

/// The id of the root and of the regions in imported trees.
pub(crate) const ROOT: &str = "^root";
/// The system region.
pub(crate) const SYS: &str = "^sys";
/// The region of sealed turns.
pub(crate) const SEQ: &str = "^seq";
/// The active head.
pub(crate) const HEAD: &str = "^ah";

/// The version of the tree model that imported documents name.
const SPEC_VERSION: &str = "PACT/0.1";

/// One node in one of its versions, its fields already canonical JSON.
///
/// Importers make nodes without an offset other than 0, so siblings are ordered by time, then
/// index, then id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The id, plain.
    pub(crate) id: String,
    /// The id of the parent; empty for the root.
    pub(crate) parent: String,
    /// The cycle that introduced it.
    pub(crate) cycle: i64,
    /// When it was made, in nanoseconds.
    pub(crate) created_at_ns: i64,
    /// Its number among the nodes made in its cycle.
    pub(crate) creation_index: i64,
    /// The members of the JSON object in canonical order, without braces, children and parent.
    pub(crate) members: String,
    /// Where in `members` a `"parent_id"` member belongs.
    pub(crate) parent_at: usize,
}

/// What one snapshot changes in the one before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    /// Nodes put in, moved or replaced; parents before children.
    pub(crate) put: Vec<Node>,
    /// Ids removed with all below them, topmost only.
    pub(crate) remove: Vec<String>,
}

/// A session: its snapshots from cycle 1 on, and the working state where there is one.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub(crate) snapshots: Vec<Change>,
    pub(crate) working: Option<Change>,
}

impl Recording {
    /// The number of snapshots, the working state aside.
    #[must_use]
    pub fn snapshots(&self) -> usize {
        self.snapshots.len()
    }

    /// Whether there is a working state.
    #[must_use]
    pub fn has_working(&self) -> bool {
        self.working.is_some()
    }

    /// Writes the session as JSONL, one document a line, the working state last.
    ///
    /// A snapshot is written as the difference to the one before it where that is shorter;
    /// `full` writes whole documents throughout, which is quadratic in a log that grows. The
    /// working state is always whole.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_jsonl(&self, out: &mut dyn Write, full: bool) -> io::Result<()> {
        let mut state = State::default();
        let mut line = String::new();
        for (index, change) in self.snapshots.iter().enumerate() {
            let cycle = index + 1;
            line.clear();
            state.apply(change);
            if index > 0 && !full {
                delta_line(&mut line, cycle, change);
            }
            let head = format!("{{\"cycle\":{cycle},\"root\":");
            let tail = format!(",\"spec_version\":\"{SPEC_VERSION}\"}}");
            if line.is_empty() || state.len() + head.len() + tail.len() <= line.len() {
                line.clear();
                line.push_str(&head);
                state.write(&mut line);
                line.push_str(&tail);
            }
            line.push('\n');
            out.write_all(line.as_bytes())?;
        }
        if let Some(change) = &self.working {
            line.clear();
            state.apply(change);
            line.push_str("{\"root\":");
            state.write(&mut line);
            line.push_str(",\"spec_version\":\"");
            line.push_str(SPEC_VERSION);
            line.push_str("\",\"working\":true}\n");
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}

/// Writes `{"base","cycle","remove","replace"}` without a line feed.
fn delta_line(line: &mut String, cycle: usize, change: &Change) {
    line.push_str(&format!(
        "{{\"base\":{},\"cycle\":{cycle},\"remove\":[",
        cycle - 1
    ));
    for (at, id) in change.remove.iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        super::json_text(id, line);
    }
    line.push_str("],\"replace\":[");
    for (at, node) in change.put.iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        line.push('{');
        line.push_str(&node.members[..node.parent_at]);
        line.push_str("\"parent_id\":");
        super::json_text(&node.parent, line);
        line.push(',');
        line.push_str(&node.members[node.parent_at..]);
        line.push('}');
    }
    line.push_str("]}");
}

/// The tree as it stands between two changes.
///
/// Slots are never reused within a recording, so a slot number names one node for good. The length
/// of the whole document is kept up to date, so that asking for it costs nothing.
#[derive(Default)]
struct State<'a> {
    slots: Vec<Slot<'a>>,
    by_id: HashMap<&'a str, u32>,
    /// Bytes of all nodes as written in a whole document.
    bytes: usize,
}

struct Slot<'a> {
    node: &'a Node,
    parent: Option<u32>,
    children: Vec<u32>,
}

const CHILDREN: &str = "\"children\":[";

/// Braces aside, what a node with children is longer by: the member's name, bracket and comma.
const CHILDREN_BYTES: usize = CHILDREN.len() + 2;

impl<'a> State<'a> {
    /// Bytes of the tree as [`State::write`] writes it.
    fn len(&self) -> usize {
        self.bytes
    }

    fn apply(&mut self, change: &'a Change) {
        for node in &change.put {
            self.put(node);
        }
        for id in &change.remove {
            self.remove(id);
        }
    }

    fn put(&mut self, node: &'a Node) {
        let parent = self.by_id.get(node.parent.as_str()).copied();
        let slot = if let Some(&slot) = self.by_id.get(node.id.as_str()) {
            self.unlink(slot);
            self.bytes -= self.slots[slot as usize].node.members.len();
            self.bytes += node.members.len();
            self.slots[slot as usize].node = node;
            self.slots[slot as usize].parent = parent;
            slot
        } else {
            let slot = self.slots.len() as u32;
            self.slots.push(Slot {
                node,
                parent,
                children: Vec::new(),
            });
            self.by_id.insert(&node.id, slot);
            self.bytes += node.members.len() + 2;
            slot
        };
        let Some(parent) = parent else {
            return;
        };
        let order = |slot: u32| {
            let node = self.slots[slot as usize].node;
            (
                rank(&node.id),
                node.created_at_ns,
                node.creation_index,
                node.id.as_str(),
            )
        };
        let siblings = &self.slots[parent as usize].children;
        let at = siblings.partition_point(|&other| order(other) < order(slot));
        self.bytes += if siblings.is_empty() {
            CHILDREN_BYTES
        } else {
            1
        };
        self.slots[parent as usize].children.insert(at, slot);
    }

    /// Takes a node out of its parent's list.
    fn unlink(&mut self, slot: u32) {
        let Some(parent) = self.slots[slot as usize].parent.take() else {
            return;
        };
        let siblings = &mut self.slots[parent as usize].children;
        if let Some(at) = siblings.iter().position(|&other| other == slot) {
            siblings.remove(at);
            self.bytes -= if siblings.is_empty() {
                CHILDREN_BYTES
            } else {
                1
            };
        }
    }

    fn remove(&mut self, id: &str) {
        let Some(&slot) = self.by_id.get(id) else {
            return;
        };
        self.unlink(slot);
        let mut gone = vec![slot];
        while let Some(slot) = gone.pop() {
            let slot = &mut self.slots[slot as usize];
            self.bytes -= slot.node.members.len() + 2;
            let children = std::mem::take(&mut slot.children);
            if !children.is_empty() {
                self.bytes -= CHILDREN_BYTES + children.len() - 1;
            }
            self.by_id.remove(slot.node.id.as_str());
            gone.extend(children);
        }
    }

    /// Writes the whole tree.
    fn write(&self, out: &mut String) {
        let Some(&root) = self.by_id.get(ROOT) else {
            return;
        };
        // Each entry is a node whose children are being written, and the next of them.
        let mut open: Vec<(u32, usize)> = Vec::new();
        let mut enter = Some(root);
        loop {
            if let Some(slot) = enter.take() {
                out.push('{');
                if !self.slots[slot as usize].children.is_empty() {
                    out.push_str(CHILDREN);
                }
                open.push((slot, 0));
            }
            let Some((slot, next)) = open.last_mut() else {
                return;
            };
            let node = &self.slots[*slot as usize];
            if let Some(&child) = node.children.get(*next) {
                if *next > 0 {
                    out.push(',');
                }
                *next += 1;
                enter = Some(child);
                continue;
            }
            if !node.children.is_empty() {
                out.push_str("],");
            }
            out.push_str(&node.node.members);
            out.push('}');
            open.pop();
        }
    }
}

/// Regions stand first among the root's children, in this order.
fn rank(id: &str) -> u8 {
    match id {
        SYS => 0,
        SEQ => 1,
        HEAD => 2,
        _ => 3,
    }
}
