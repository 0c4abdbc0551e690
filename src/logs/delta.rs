//! A session as JSON Lines, with delta lines where those are shorter than documents (RUNTIME §1).

use super::export::{members, write_document, write_members, write_whole};
use super::json::{canonical, json_text, push_member, quoted};
use crate::index::{NodeRef, Segment, Snapshot};
use crate::tree::Present;
use std::collections::HashMap;
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
    match Form::of(older, snapshot, full) {
        Form::Difference(line) => out.write_all(line.as_bytes()),
        Form::Whole { stated } => write_whole(snapshot, stated, out),
    }
}

/// How a snapshot is written.
pub(super) enum Form {
    /// As this line.
    Difference(String),
    /// As a document, with its cycle if `stated`.
    Whole {
        /// Whether it says its cycle.
        stated: bool,
    },
}

impl Form {
    /// The form of the snapshot after `older`; with `full`, a whole document.
    pub(super) fn of(older: Option<&Snapshot>, snapshot: &Snapshot, full: bool) -> Self {
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

/// The delta line from `older` to `newer`, with the cycle if `stated`. `None` if it is not shorter
/// than the document, or cannot express the difference.
fn delta_line(older: &Snapshot, newer: &Snapshot, stated: bool) -> Option<String> {
    let extra = &newer.meta().extra;
    if older.meta().spec_version != newer.meta().spec_version
        || older.root().id() != newer.root().id()
        // An explicit `"working": false` or `"cycle": null`.
        || extra.iter().any(|(name, _)| ["cycle", "working"].contains(&&**name))
    {
        return None;
    }
    let changed = Unshared::new(older, newer);
    let (then, now) = (
        NodeLookup::new(older, &changed.older),
        NodeLookup::new(newer, &changed.newer),
    );
    // Members other than the difference are the line's own, never those of its base.
    let extra = extra.iter();
    let mut members: Vec<(&str, String)> =
        extra.map(|(name, raw)| (&**name, canonical(raw))).collect();
    members.push(("base", older.cycle().to_string()));
    if stated {
        members.push(("cycle", newer.cycle().to_string()));
    }
    members.sort_unstable();
    let mut members = members.into_iter().peekable();
    let mut line = String::from("{");
    while let Some((name, value)) = members.next_if(|(name, _)| *name < REMOVE) {
        json_text(name, &mut line);
        let _ = write!(line, ":{value},");
    }
    push_removed(older, &changed, &now, &mut line);
    while let Some((name, value)) = members.next_if(|(name, _)| *name < REPLACE) {
        push_member(name, &value, &mut line);
    }
    let kept = push_replaced(newer, &changed, &then, &mut line)?;
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

/// Appends `"remove":[…]`: the roots of the subtrees that `now` lacks.
fn push_removed(older: &Snapshot, changed: &Unshared, now: &NodeLookup<'_>, line: &mut String) {
    line.push_str("\"remove\":[");
    let mut first = true;
    for node in changed.older.iter().flat_map(|run| run.nodes(older)) {
        // Removing a node removes its descendants. A node whose parent stays is listed.
        if !now.has(node) && node.parent().is_none_or(|parent| now.has(parent)) {
            if !std::mem::take(&mut first) {
                line.push(',');
            }
            json_text(node.id(), line);
        }
    }
    line.push(']');
}

/// Appends `,"replace":[…]`: the nodes that `then` lacks or has otherwise.
/// Returns a lower bound of the number of nodes that are not listed; `None` if a line cannot
/// express the difference.
fn push_replaced(
    newer: &Snapshot,
    changed: &Unshared,
    then: &NodeLookup<'_>,
    line: &mut String,
) -> Option<usize> {
    line.push_str(",\"replace\":[");
    let mut replaced: Vec<NodeRef<'_>> = changed
        .ttl_rows
        .iter()
        .map(|row| newer.node(*row))
        .collect();
    let mut kept = changed.shared_units;
    for node in changed.newer.iter().flat_map(|run| run.nodes(newer)) {
        if then.same(node)? {
            kept += 1;
        } else {
            replaced.push(node);
        }
    }
    replaced.sort_unstable_by_key(|node| node.row());
    for (at, node) in replaced.into_iter().enumerate() {
        // A line has no form for an empty list of children, a root without an id, or a field
        // named `parent_id`.
        let odd = Present::EMPTY_CHILDREN | Present::ID_IMPLIED;
        if node.present().0 & odd != 0 || node.field("parent_id").is_some() {
            return None;
        }
        line.push_str(if at == 0 { "{" } else { ",{" });
        let parent = node.parent().map(|parent| quoted(parent.id()));
        match &parent {
            Some(parent) => write_members(node, &[("parent_id", parent)], line),
            None => write_members(node, &[], line),
        }
        line.push('}');
    }
    line.push(']');
    Some(kept)
}

/// The parts of two neighbouring snapshots to compare node by node: all units except those that
/// both snapshots have as the same rows of the same segment.
#[derive(Default)]
struct Unshared {
    older: Vec<UnitRun>,
    newer: Vec<UnitRun>,
    /// Rows of the newer snapshot, in shared units, whose ttl differs.
    ttl_rows: Vec<u32>,
    /// The number of shared units.
    shared_units: usize,
}

/// Neighbouring units of one piece.
struct UnitRun {
    piece: usize,
    units: Range<u32>,
}

impl Unshared {
    fn new(older: &Snapshot, newer: &Snapshot) -> Self {
        let mut found = Self::default();
        let seq = |snapshot: &Snapshot| {
            snapshot
                .seq_row()
                .map(|row| snapshot.node(row).id().to_owned())
        };
        // The parents of units are the root and `^seq`, which must be the same nodes.
        let comparable = seq(older) == seq(newer);
        let mut shared_older: Vec<Vec<Range<u32>>> = vec![Vec::new(); older.pieces().len()];
        for (at, piece) in newer.pieces().iter().enumerate() {
            let mut shared = Vec::new();
            for (then, twin) in older.pieces().iter().enumerate() {
                let (mine, theirs) = (piece.units(), twin.units());
                let units = mine.start.max(theirs.start)..mine.end.min(theirs.end);
                if !comparable
                    || piece.has_dead()
                    || twin.has_dead()
                    || units.is_empty()
                    || !Arc::ptr_eq(piece.segment(), twin.segment())
                {
                    continue;
                }
                let segment = piece.segment();
                segment
                    .with_ttl()
                    .for_each_in(segment_rows(segment, &units), |row| {
                        if segment.ttl(row, newer.cycle()) != segment.ttl(row, older.cycle()) {
                            found.ttl_rows.push(row + piece.shift());
                        }
                    });
                found.shared_units += units.len();
                shared.push(units.clone());
                shared_older[then].push(units);
            }
            subtract(at, piece.units(), shared, &mut found.newer);
        }
        for (at, (piece, shared)) in older.pieces().iter().zip(shared_older).enumerate() {
            subtract(at, piece.units(), shared, &mut found.older);
        }
        found
    }
}

/// The rows of neighbouring units, which are not empty.
fn segment_rows(segment: &Segment, units: &Range<u32>) -> Range<u32> {
    segment.unit_rows(units.start).start..segment.unit_rows(units.end - 1).end
}

/// Appends the runs of `units` outside the ranges in `shared`, which do not overlap.
fn subtract(piece: usize, units: Range<u32>, mut shared: Vec<Range<u32>>, out: &mut Vec<UnitRun>) {
    shared.sort_unstable_by_key(|range| range.start);
    shared.push(units.end..units.end);
    let mut start = units.start;
    for range in shared {
        if start < range.start {
            let units = start..range.start;
            out.push(UnitRun { piece, units });
        }
        start = range.end;
    }
}

impl UnitRun {
    /// The nodes of these units, in document order.
    fn nodes<'a>(&self, snapshot: &'a Snapshot) -> impl Iterator<Item = NodeRef<'a>> + use<'a> {
        let piece = &snapshot.pieces()[self.piece];
        let segment = piece.segment();
        segment_rows(segment, &self.units)
            .filter(|row| !piece.is_dead(*row) && !segment.is_core(*row))
            .map(|row| snapshot.node(row + piece.shift()))
    }
}

/// Finds the nodes of one snapshot in its neighbour.
struct NodeLookup<'a> {
    snapshot: &'a Snapshot,
    /// The first row of each unit that is not shared, by the version of the unit.
    units: HashMap<u64, u32>,
}

impl<'a> NodeLookup<'a> {
    fn new(snapshot: &'a Snapshot, unshared: &[UnitRun]) -> Self {
        let mut units = HashMap::new();
        for run in unshared {
            let piece = &snapshot.pieces()[run.piece];
            for unit in run.units.clone() {
                let version = piece.segment().units()[unit as usize].version;
                let start = piece.segment().unit_rows(unit).start + piece.shift();
                units.insert(version, start);
            }
        }
        Self { snapshot, units }
    }

    /// The row of the same version of `node`, if it is live here.
    fn row(&self, node: NodeRef<'_>) -> Option<u32> {
        let (version, offset) = node.version();
        let row = self.units.get(&version)? + offset;
        (!self.snapshot.is_dead(row)).then_some(row)
    }

    /// Whether a node has this id.
    fn has(&self, node: NodeRef<'_>) -> bool {
        self.row(node).is_some() || self.snapshot.find(node.id()).is_some()
    }

    /// Whether this snapshot has the same node under the same parent; `None` if a delta line
    /// cannot express the difference.
    fn same(&self, node: NodeRef<'_>) -> Option<bool> {
        let twin = match self.row(node) {
            // Rows of one version differ at most in their ttl. The first row of a unit may also
            // have another parent.
            Some(row) if node.version().1 > 0 => {
                return Some(self.snapshot.node(row).ttl() == node.ttl());
            }
            Some(row) => Some(self.snapshot.node(row)),
            None => self.snapshot.find(node.id()),
        };
        let Some(twin) = twin else {
            return Some(false);
        };
        let parent = |node: NodeRef<'_>| node.parent().map(|parent| parent.id().to_owned());
        if parent(twin) != parent(node) || members(twin, &[]) != members(node, &[]) {
            return Some(false);
        }
        // The class of a node without a nodeType follows from its position when it was new.
        let empty = |node: NodeRef<'_>| node.present().0 & Present::EMPTY_CHILDREN;
        (twin.class() == node.class() && empty(twin) == empty(node)).then_some(true)
    }
}

/// Takes this many bytes and no more.
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
