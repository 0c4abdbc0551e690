//! A session as JSON Lines, with delta lines where those are shorter than documents (RUNTIME §1).

use super::export::{members, own_members, write_document, write_members, write_whole};
use super::json::{json_text, push_member, quoted};
use crate::index::{Changes, NodeRef, Snapshot};
use crate::tree::Present;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

/// Writes a session as JSON Lines: the committed snapshots from the oldest, then the working
/// state. With `full`, every line is a whole document. A cycle that the input did not state is
/// left out if it is one more than the cycle before.
///
/// A delta line costs time and space in what changed: shared units are not read.
///
/// # Errors
/// Those of the writer.
pub fn write_session<'a>(
    committed: impl IntoIterator<Item = &'a Arc<Snapshot>>,
    working: Option<&Snapshot>,
    full: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut older: Option<&Arc<Snapshot>> = None;
    for snapshot in committed {
        write_next(older.map(|older| &**older), snapshot, full, out)?;
        older = Some(snapshot);
    }
    working.map_or(Ok(()), |working| write_document(working, out))
}

/// Writes a committed snapshot, the one after `older`, as a line; with `full`, as a whole document.
pub(super) fn write_next(
    older: Option<&Snapshot>,
    snapshot: &Snapshot,
    full: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    match DocumentForm::choose(older, snapshot, full) {
        DocumentForm::Difference(line) => out.write_all(line.as_bytes()),
        DocumentForm::Whole { stated } => write_whole(snapshot, stated, out),
    }
}

pub(super) enum DocumentForm {
    Difference(String),
    Whole { stated: bool },
}

impl DocumentForm {
    /// The form of the snapshot after `older`; with `full`, a whole document.
    pub(super) fn choose(older: Option<&Snapshot>, snapshot: &Snapshot, full: bool) -> Self {
        let counted = older.map_or(Some(1), |older| older.cycle().checked_add(1));
        let stated = snapshot.meta().cycle_given || counted != Some(snapshot.cycle());
        let base = older.filter(|_| !full);
        match base.and_then(|base| delta_line(base, snapshot, stated)) {
            Some(line) => Self::Difference(line),
            None => Self::Whole { stated },
        }
    }
}

/// The members that hold a difference; the others are written around them, in order.
const REMOVE: &str = "remove";
const REPLACE: &str = "replace";

/// The delta line, with the cycle if `stated`. `None` if it is not shorter than the document, or cannot say it.
fn delta_line(older: &Snapshot, newer: &Snapshot, stated: bool) -> Option<String> {
    let extra = &newer.meta().extra;
    if older.meta().spec_version != newer.meta().spec_version
        || older.root().id() != newer.root().id()
        // An explicit `"working": false` or `"cycle": null`.
        || extra.iter().any(|(name, _)| ["cycle", "working"].contains(&&**name))
    {
        return None;
    }
    let changed = changes(newer, older);
    // Members other than the difference are the line's own, never those of its base.
    let mut members = own_members(newer, stated);
    members.push(("base", older.cycle().to_string()));
    members.sort_unstable();
    let mut members = members.into_iter().peekable();
    let mut line = String::from("{");
    while let Some((name, value)) = members.next_if(|(name, _)| *name < REMOVE) {
        json_text(name, &mut line);
        let _ = write!(line, ":{value},");
    }
    push_removed((older, newer), &changed.older, &mut line);
    while let Some((name, value)) = members.next_if(|(name, _)| *name < REPLACE) {
        push_member(name, &value, &mut line);
    }
    let kept = push_replaced((older, newer), &changed.newer, &mut line)?;
    for (name, value) in members {
        push_member(name, &value, &mut line);
    }
    line.push_str("}\n");
    // A node takes at least ten bytes in a document. If that does not decide, the document is written as far as
    // it is not longer than the line, which at most doubles the cost.
    if kept * 10 <= line.len() && write_whole(newer, stated, &mut AtMost(line.len())).is_ok() {
        return None;
    }
    Some(line)
}

/// What differs, as rows. The parents of units are the root and `^seq`: where these are other nodes, everything.
fn changes(newer: &Snapshot, older: &Snapshot) -> Changes {
    let seq = |snapshot: &Snapshot| {
        let row = snapshot.seq_row();
        row.map(|row| snapshot.node(row).id().to_owned())
    };
    if seq(older) == seq(newer) {
        return Changes::between(newer, older);
    }
    let all = || std::iter::once(0..u32::MAX).collect();
    Changes {
        newer: all(),
        older: all(),
        ttl_rows: 0,
    }
}

/// Appends `"remove":[…]`: the roots of the subtrees that the newer snapshot lacks, of changed rows of the older.
fn push_removed((older, newer): (&Snapshot, &Snapshot), changed: &[Range<u32>], line: &mut String) {
    line.push_str("\"remove\":[");
    let mut first = true;
    let has = |node: NodeRef<'_>| newer.find(node.id()).is_some();
    for node in changed.iter().flat_map(|rows| older.nodes_in(rows.clone())) {
        // Removing a node removes its descendants. A node whose parent stays is listed.
        if !has(node) && node.parent().is_none_or(has) {
            if !std::mem::take(&mut first) {
                line.push(',');
            }
            json_text(node.id(), line);
        }
    }
    line.push(']');
}

/// Appends `,"replace":[…]`. Returns the number of nodes not listed; `None` if a line cannot express the difference.
fn push_replaced(
    (older, newer): (&Snapshot, &Snapshot),
    changed: &[Range<u32>],
    line: &mut String,
) -> Option<usize> {
    line.push_str(",\"replace\":[");
    let mut replaced = 0;
    for node in changed.iter().flat_map(|rows| newer.nodes_in(rows.clone())) {
        if is_in(older, node)? {
            continue;
        }
        // A line has no form for an empty list of children, a root without an id, or a field
        // named `parent_id`.
        let odd = Present::EMPTY_CHILDREN | Present::ID_IMPLIED;
        if node.present().0 & odd != 0 || node.field("parent_id").is_some() {
            return None;
        }
        line.push_str(if replaced == 0 { "{" } else { ",{" });
        let parent = node.parent().map(|parent| quoted(parent.id()));
        let parent = parent.as_deref().map(|parent| ("parent_id", parent));
        write_members(node, parent.as_slice(), line);
        line.push('}');
        replaced += 1;
    }
    line.push(']');
    Some(newer.len() - replaced)
}

/// Whether a snapshot has the same node under the same parent; `None` if a line cannot express the difference.
fn is_in(older: &Snapshot, node: NodeRef<'_>) -> Option<bool> {
    let Some(twin) = older.find(node.id()) else {
        return Some(false);
    };
    // Rows of one version differ at most in their ttl. The first row of a unit may also have another parent.
    if twin.version() == node.version() && node.version().1 > 0 {
        return Some(twin.ttl() == node.ttl());
    }
    let parent = |node: NodeRef<'_>| node.parent().map(|parent| parent.id().to_owned());
    if parent(twin) != parent(node) || members(twin, &[]) != members(node, &[]) {
        return Some(false);
    }
    // The class of a node without a nodeType follows from its position when it was new.
    let empty = |node: NodeRef<'_>| node.present().0 & Present::EMPTY_CHILDREN;
    (twin.class() == node.class() && empty(twin) == empty(node)).then_some(true)
}

struct AtMost(usize);

impl Write for AtMost {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.0.checked_sub(bytes.len());
        self.0 = left.ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
