//! Sessions as importers make them, and their JSONL form.
//!
//! A recording is a list of changes, one per snapshot: nodes added or replaced, nodes removed. It
//! writes itself as snapshot documents (RUNTIME §1), with delta lines where those are shorter, so
//! a log of n messages takes time and space linear in n. Of a log that is larger than memory the
//! documents are written into a [`Spool`] as they are made. This file must not know log formats.

use super::json::json_text;
use super::spool::{Spool, Spooled};
use crate::support::cancel::check;
use crate::tree::documents::Documents;
use std::collections::HashMap;
use std::io::{self, Write};

// The ids of the root and the regions in imported trees.
pub(super) const ROOT: &str = "^root";
pub(super) const SYS: &str = "^sys";
pub(super) const SEQ: &str = "^seq";
pub(super) const HEAD: &str = "^ah";

/// The version of the tree model in imported documents.
const SPEC_VERSION: &str = "PACT/0.1";

/// One version of a node, its fields as canonical JSON.
///
/// All nodes have offset 0, so siblings are ordered by time, then creation index, then id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) id: String,
    /// The id of the parent; empty for the root.
    pub(super) parent: String,
    pub(super) created_at_ns: i64,
    /// Its number among the nodes of its cycle.
    pub(super) creation_index: i64,
    /// The members of the JSON object in canonical order, without braces, children and parent.
    pub(super) members: String,
    /// Where in `members` a `"parent_id"` member belongs.
    pub(super) parent_at: usize,
}

/// The difference of a snapshot to the one before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Change {
    /// Nodes added, moved or replaced; parents before children.
    pub(super) put: Vec<Node>,
    /// Ids of the roots of removed subtrees.
    pub(super) remove: Vec<String>,
    /// The snapshot's `meta`, a canonical object.
    pub(super) meta: Option<String>,
    /// Its `usage`, a canonical object.
    pub(super) usage: Option<String>,
}

impl Change {
    /// The member `name` with a value and a comma on the side of the other members.
    fn member(value: Option<&String>, name: &str, before: &str, after: &str) -> String {
        let write = |value| format!("{before}\"{name}\":{value}{after}");
        value.map(write).unwrap_or_default()
    }

    fn meta(&self) -> String {
        Self::member(self.meta.as_ref(), "meta", "", ",")
    }

    fn usage(&self) -> String {
        Self::member(self.usage.as_ref(), "usage", ",", "")
    }
}

/// An imported session: its snapshots from cycle 1 on, and the working state if there is one.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    snapshots: Snapshots,
    pub(super) working: Option<Change>,
}

/// The committed snapshots.
#[derive(Clone, Debug)]
enum Snapshots {
    InMemory(Vec<Change>),
    /// Their documents: the first whole, the others as differences.
    Spooled(Spooled),
    /// How many there are, and the document of the last one that was made here; the others are elsewhere.
    #[cfg(feature = "store")]
    Passed(usize, Option<String>),
}

impl Default for Snapshots {
    fn default() -> Self {
        Self::InMemory(Vec::new())
    }
}

impl Recording {
    /// One whose documents go into a spool.
    pub(super) fn spooled(spool: Spool) -> Self {
        Self {
            snapshots: Snapshots::Spooled(Spooled::new(spool)),
            working: None,
        }
    }

    /// One whose snapshots so far are elsewhere.
    #[cfg(feature = "store")]
    pub(super) fn passed(snapshots: usize) -> Self {
        Self {
            snapshots: Snapshots::Passed(snapshots, None),
            working: None,
        }
    }

    /// The document of the last snapshot that was committed since [`Recording::passed`].
    #[cfg(feature = "store")]
    pub(super) fn into_last(self) -> Option<String> {
        match self.snapshots {
            Snapshots::Passed(_, last) => last,
            _ => None,
        }
    }

    /// Whether its documents are in a spool.
    #[cfg(feature = "cli")]
    pub(crate) fn is_spooled(&self) -> bool {
        matches!(self.snapshots, Snapshots::Spooled(_))
    }

    /// Commits a snapshot.
    pub(super) fn push(&mut self, change: Change) {
        match &mut self.snapshots {
            Snapshots::InMemory(changes) => changes.push(change),
            Snapshots::Spooled(spooled) => {
                let document = document(spooled.len(), &change);
                spooled.push(&document);
            }
            #[cfg(feature = "store")]
            Snapshots::Passed(count, last) => {
                *last = Some(document(*count, &change));
                *count += 1;
            }
        }
    }

    /// The number of committed snapshots.
    pub fn snapshots(&self) -> usize {
        match &self.snapshots {
            Snapshots::InMemory(changes) => changes.len(),
            Snapshots::Spooled(spooled) => spooled.len(),
            #[cfg(feature = "store")]
            Snapshots::Passed(count, _) => *count,
        }
    }

    /// Whether there is a working state.
    pub fn has_working(&self) -> bool {
        self.working.is_some()
    }

    /// Writes the session as JSONL, one document a line, the working state last.
    ///
    /// A snapshot is a delta line if that is shorter than its document. With `full`, every line is
    /// a whole document, which is quadratic in the length of the log. The working state is always
    /// a whole document.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_jsonl(&self, out: &mut dyn Write, full: bool) -> io::Result<()> {
        let changes = match &self.snapshots {
            Snapshots::InMemory(changes) => changes,
            Snapshots::Spooled(_) if full => {
                let message = "the documents of a large log are differences";
                return Err(io::Error::new(io::ErrorKind::Unsupported, message));
            }
            _ => return self.write_spooled(out),
        };
        let mut state = TreeState::default();
        let mut line = String::new();
        for (index, change) in changes.iter().enumerate() {
            check().map_err(io::Error::other)?;
            let cycle = index + 1;
            line.clear();
            state.apply(change);
            if index > 0 && !full {
                delta_line(&mut line, &format!("\"cycle\":{cycle}"), index, change);
            }
            let head = format!("{{\"cycle\":{cycle},{}\"root\":", change.meta());
            let tail = format!(",\"spec_version\":\"{SPEC_VERSION}\"{}}}", change.usage());
            if line.is_empty() || state.bytes + head.len() + tail.len() <= line.len() {
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
            line.push('{');
            line.push_str(&change.meta());
            line.push_str("\"root\":");
            state.write(&mut line);
            line.push_str(",\"spec_version\":\"");
            line.push_str(SPEC_VERSION);
            line.push_str("\",\"working\":true}\n");
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}

impl Recording {
    /// Writes the documents of the spool, and the working state as a difference, too.
    fn write_spooled(&self, out: &mut dyn Write) -> io::Result<()> {
        let documents = self.snapshots() + usize::from(self.has_working());
        for index in 0..documents {
            writeln!(out, "{}", self.read(index)?)?;
        }
        Ok(())
    }
}

impl Documents for Recording {
    fn committed(&self) -> usize {
        self.snapshots()
    }

    fn has_working(&self) -> bool {
        self.working.is_some()
    }

    fn read(&self, index: usize) -> io::Result<String> {
        let length = self.snapshots();
        match (&self.snapshots, &self.working) {
            (_, Some(change)) if index == length => Ok(working_document(length, change)),
            (Snapshots::Spooled(spooled), _) => spooled.read(index),
            #[cfg(feature = "store")]
            (Snapshots::Passed(..), _) => Err(io::ErrorKind::NotFound.into()),
            (Snapshots::InMemory(changes), _) => {
                let change = changes.get(index).ok_or(io::ErrorKind::NotFound)?;
                Ok(document(index, change))
            }
        }
    }
}

/// The document of a snapshot: the first is whole, the others are differences.
fn document(index: usize, change: &Change) -> String {
    let mut line = String::new();
    if index > 0 {
        delta_line(
            &mut line,
            &format!("\"cycle\":{}", index + 1),
            index,
            change,
        );
        return line;
    }
    let mut state = TreeState::default();
    state.apply(change);
    line.push_str(&format!("{{\"cycle\":1,{}\"root\":", change.meta()));
    state.write(&mut line);
    line.push_str(&format!(
        ",\"spec_version\":\"{SPEC_VERSION}\"{}}}",
        change.usage()
    ));
    line
}

/// The document of a working state after this many snapshots: a difference, unless there is none to differ from.
fn working_document(committed: usize, change: &Change) -> String {
    let mut line = String::new();
    if committed > 0 {
        delta_line(&mut line, "\"working\":true", committed, change);
        return line;
    }
    let mut state = TreeState::default();
    state.apply(change);
    line.push_str(&format!("{{{}\"root\":", change.meta()));
    state.write(&mut line);
    line.push_str(&format!(
        ",\"spec_version\":\"{SPEC_VERSION}\",\"working\":true}}"
    ));
    line
}

/// Appends `{"base",…,"remove","replace"}` without a line feed; `what` says what the document is.
fn delta_line(line: &mut String, what: &str, base: usize, change: &Change) {
    line.push_str(&format!(
        "{{\"base\":{base},{what},{}\"remove\":[",
        change.meta()
    ));
    for (at, id) in change.remove.iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        json_text(id, line);
    }
    line.push_str("],\"replace\":[");
    for (at, node) in change.put.iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        line.push('{');
        line.push_str(&node.members[..node.parent_at]);
        // The root has none.
        if !node.parent.is_empty() {
            line.push_str("\"parent_id\":");
            json_text(&node.parent, line);
            line.push(',');
        }
        line.push_str(&node.members[node.parent_at..]);
        line.push('}');
    }
    line.push(']');
    line.push_str(&change.usage());
    line.push('}');
}

/// The tree after some of the changes.
///
/// A slot is never reused, so a slot number names one node id. The length of the written tree is
/// kept up to date, so reading it is O(1).
#[derive(Default)]
struct TreeState<'a> {
    slots: Vec<Slot<'a>>,
    by_id: HashMap<&'a str, u32>,
    /// The length of the tree as [`TreeState::write`] writes it.
    bytes: usize,
}

struct Slot<'a> {
    node: &'a Node,
    parent: Option<u32>,
    children: Vec<u32>,
}

const CHILDREN: &str = "\"children\":[";

/// The bytes that a first child adds to its parent: the member's name, bracket and comma.
const CHILDREN_BYTES: usize = CHILDREN.len() + 2;

impl<'a> TreeState<'a> {
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

    /// Removes a node from its parent's list.
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
        // The nodes whose children are being written, each with the index of the next child.
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

/// Regions come first among the root's children, in this order.
fn rank(id: &str) -> u8 {
    match id {
        SYS => 0,
        SEQ => 1,
        HEAD => 2,
        _ => 3,
    }
}
