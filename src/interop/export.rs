//! Snapshots as documents: canonical bytes out (RUNTIME §1, §2).
//!
//! One snapshot is written as a document in one pass, with memory for the nodes that are open.
//! A whole session is written as JSON Lines, each snapshot as the difference to the one before it
//! where that is shorter and says the same.

use super::{canonical, json_text};
use crate::index::{NodeRef, Snapshot};
use crate::tree::Present;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

/// How much is gathered before it is written.
const CHUNK: usize = 1 << 16;

/// Writes a snapshot as one document with a line feed. Linear in its nodes.
///
/// # Errors
/// Those of the writer.
pub fn write_document(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    write_whole(snapshot, snapshot.meta().cycle_given, out)
}

/// Writes a document, with its cycle if `stated`.
fn write_whole(snapshot: &Snapshot, stated: bool, out: &mut dyn Write) -> io::Result<()> {
    let (head, tail) = envelope(snapshot, stated);
    let mut text = head;
    write_tree(snapshot, &mut text, out)?;
    text.push_str(&tail);
    text.push('\n');
    out.write_all(text.as_bytes())
}

/// Writes a session as JSON Lines: the committed snapshots from the oldest, then the working
/// state. `full` writes whole documents throughout. A cycle that was counted when it was read is
/// left out, unless it does not follow the one before.
///
/// A difference costs time and space in what changed: units that two snapshots share are not
/// looked at.
///
/// # Errors
/// Those of the writer.
pub fn write_session(
    committed: &[Arc<Snapshot>],
    working: Option<&Snapshot>,
    full: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut counted = Some(1);
    for (at, snapshot) in committed.iter().enumerate() {
        let stated = snapshot.meta().cycle_given || counted != Some(snapshot.cycle());
        counted = snapshot.cycle().checked_add(1);
        let older = at.checked_sub(1).filter(|_| !full).map(|at| &committed[at]);
        match older.and_then(|older| delta_line(older, snapshot, stated)) {
            Some(line) => out.write_all(line.as_bytes())?,
            None => write_whole(snapshot, stated, out)?,
        }
    }
    working.map_or(Ok(()), |working| write_document(working, out))
}

/// Appends one node's members in canonical order, without braces and children. Members of `more`
/// (sorted by name, values canonical JSON) are mixed in and win over the node's own.
pub fn write_members(node: NodeRef<'_>, more: &[(&str, &str)], out: &mut String) {
    let (before, after) = members(node, more);
    out.push_str(&before);
    if !before.is_empty() && !after.is_empty() {
        out.push(',');
    }
    out.push_str(&after);
}

/// A node's members: those that sort before `children`, and those after.
pub(super) fn members(node: NodeRef<'_>, more: &[(&str, &str)]) -> (String, String) {
    let present = node.present();
    let number = |bit: u8, value: i64| present.has(bit).then(|| value.to_string());
    let text = |value: Option<&str>| value.map(super::quoted);
    let id = (!present.has(Present::ID_IMPLIED)).then(|| super::quoted(node.id()));
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
    let (mut before, mut after) = (String::new(), String::new());
    let mut headers = headers
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .peekable();
    let mut fields = node.fields().peekable();
    let mut more = more.iter().peekable();
    loop {
        let names = [
            more.peek().map(|(name, _)| *name),
            headers.peek().map(|(name, _)| *name),
            fields.peek().map(|(name, _)| *name),
        ];
        let Some(name) = names.into_iter().flatten().min() else {
            return (before, after);
        };
        let mut value = None;
        if names[2] == Some(name) {
            value = fields.next().map(|(_, raw)| canonical(raw));
        }
        if names[1] == Some(name) {
            value = headers.next().map(|(_, value)| value);
        }
        if names[0] == Some(name) {
            value = more.next().map(|(_, value)| (*value).to_owned());
        }
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
        out.push_str(&value.unwrap_or_default());
    }
}

/// What stands before and after the tree in a document, with its cycle if `stated`.
pub(super) fn envelope(snapshot: &Snapshot, stated: bool) -> (String, String) {
    let meta = snapshot.meta();
    let mut members: Vec<(&str, String)> = meta
        .extra
        .iter()
        .map(|(name, raw)| (&**name, canonical(raw)))
        .collect();
    if !meta.working && stated {
        members.push(("cycle", meta.cycle.to_string()));
    }
    if let Some(version) = &meta.spec_version {
        members.push(("spec_version", canonical(version)));
    }
    if meta.working {
        members.push(("working", "true".to_owned()));
    }
    members.sort_unstable();
    let (mut head, mut tail) = (String::from("{"), String::new());
    for (name, value) in members {
        let first = name < "root";
        let out = if first { &mut head } else { &mut tail };
        if !first {
            out.push(',');
        }
        json_text(name, out);
        out.push(':');
        out.push_str(&value);
        if first {
            out.push(',');
        }
    }
    head.push_str("\"root\":");
    tail.push('}');
    (head, tail)
}

/// A node whose children are being written.
struct Open {
    level: u32,
    /// Whether anything stands in its object yet.
    filled: bool,
    children: bool,
    empty_children: bool,
    after: String,
}

/// Writes the tree. What stands in `text` goes first; what is left in it afterwards goes last.
fn write_tree(snapshot: &Snapshot, text: &mut String, out: &mut dyn Write) -> io::Result<()> {
    let mut open: Vec<Open> = Vec::new();
    for node in snapshot.nodes() {
        let level = node.level();
        while open.last().is_some_and(|last| last.level >= level) {
            close(&mut open, text);
        }
        if let Some(parent) = open.last_mut() {
            if parent.children {
                text.push(',');
            } else {
                text.push_str(if parent.filled {
                    ",\"children\":["
                } else {
                    "\"children\":["
                });
                parent.children = true;
            }
        }
        let (before, after) = members(node, &[]);
        text.push('{');
        text.push_str(&before);
        open.push(Open {
            level,
            filled: !before.is_empty(),
            children: false,
            empty_children: node.present().has(Present::EMPTY_CHILDREN),
            after,
        });
        if text.len() >= CHUNK {
            out.write_all(text.as_bytes())?;
            text.clear();
        }
    }
    while !open.is_empty() {
        close(&mut open, text);
    }
    Ok(())
}

fn close(open: &mut Vec<Open>, text: &mut String) {
    let Some(node) = open.pop() else {
        return;
    };
    let mut filled = node.filled;
    if node.children {
        text.push(']');
        filled = true;
    } else if node.empty_children {
        text.push_str(if filled {
            ",\"children\":[]"
        } else {
            "\"children\":[]"
        });
        filled = true;
    }
    if filled && !node.after.is_empty() {
        text.push(',');
    }
    text.push_str(&node.after);
    text.push('}');
}

/// The line that says how `newer` differs from `older`, where it is shorter than the document and
/// says the same. The cycle is written if `stated`.
fn delta_line(older: &Snapshot, newer: &Snapshot, stated: bool) -> Option<String> {
    if older.meta().spec_version != newer.meta().spec_version
        || !newer.meta().extra.is_empty()
        || !older.meta().extra.is_empty()
        || older.root().id() != newer.root().id()
    {
        return None;
    }
    let rest = Rest::new(older, newer);
    let (then, now) = (
        Twins::new(older, &rest.older),
        Twins::new(newer, &rest.newer),
    );
    let mut line = format!("{{\"base\":{},", older.cycle());
    if stated {
        let _ = write!(line, "\"cycle\":{},", newer.cycle());
    }
    line.push_str("\"remove\":[");
    let mut removed = 0;
    for node in rest.older.iter().flat_map(|units| units.nodes(older)) {
        // What stands below a removed node needs no mention, unless it was moved out first.
        if !now.has(node) && node.parent().is_none_or(|parent| now.has(parent)) {
            if removed > 0 {
                line.push(',');
            }
            json_text(node.id(), &mut line);
            removed += 1;
        }
    }
    line.push_str("],\"replace\":[");
    let mut changed: Vec<NodeRef<'_>> = rest.fallen.iter().map(|row| newer.node(*row)).collect();
    let mut kept = rest.shared_units;
    for node in rest.newer.iter().flat_map(|units| units.nodes(newer)) {
        if then.same(node)? {
            kept += 1;
        } else {
            changed.push(node);
        }
    }
    changed.sort_unstable_by_key(|node| node.row());
    for (at, node) in changed.into_iter().enumerate() {
        // What a line of changes cannot say: a list of children that is empty, a root without an
        // id, a parent_id that is a field of the node.
        let odd = Present::EMPTY_CHILDREN | Present::ID_IMPLIED;
        if node.present().0 & odd != 0 || node.field("parent_id").is_some() {
            return None;
        }
        if at > 0 {
            line.push(',');
        }
        line.push('{');
        let parent = node.parent().map(|parent| super::quoted(parent.id()));
        match &parent {
            Some(parent) => write_members(node, &[("parent_id", parent)], &mut line),
            None => write_members(node, &[], &mut line),
        }
        line.push('}');
    }
    line.push_str("]}\n");
    // The nodes kept take ten bytes each in a document at the least. Where that does not decide,
    // the change is of the size of the tree, and writing the tree costs no more than it did.
    let mut document = Counter(0);
    if kept * 10 <= line.len() {
        write_whole(newer, stated, &mut document).ok()?;
        if document.0 <= line.len() {
            return None;
        }
    }
    Some(line)
}

/// What has to be compared node by node in two neighbouring snapshots: all but the units that
/// both hold in the same rows of the same segment.
#[derive(Default)]
struct Rest {
    older: Vec<Units>,
    newer: Vec<Units>,
    /// Rows of the newer snapshot, in shared units, whose ttl reads differently.
    fallen: Vec<u32>,
    /// How many units are shared.
    shared_units: usize,
}

/// A run of units of a piece.
struct Units {
    piece: usize,
    units: Range<u32>,
}

impl Rest {
    fn new(older: &Snapshot, newer: &Snapshot) -> Self {
        let mut rest = Self::default();
        let seq = |snapshot: &Snapshot| {
            snapshot
                .seq_row()
                .map(|row| snapshot.node(row).id().to_owned())
        };
        // Shared units hang from the root and `^seq`: those must be the same nodes.
        let comparable = seq(older) == seq(newer);
        let mut shared_older: Vec<Vec<Range<u32>>> = vec![Vec::new(); older.pieces().len()];
        for (at, piece) in newer.pieces().iter().enumerate() {
            let mut shared = Vec::new();
            for (then, twin) in older.pieces().iter().enumerate() {
                let units =
                    piece.units.start.max(twin.units.start)..piece.units.end.min(twin.units.end);
                let alive = piece.dead.is_none() && twin.dead.is_none();
                if !comparable
                    || !alive
                    || units.is_empty()
                    || !Arc::ptr_eq(&piece.segment, &twin.segment)
                {
                    continue;
                }
                let segment = &piece.segment;
                let rows =
                    segment.unit_rows(units.start).start..segment.unit_rows(units.end - 1).end;
                segment.has_ttl.for_each_in(rows, |row| {
                    if segment.ttl(row, newer.cycle()) != segment.ttl(row, older.cycle()) {
                        rest.fallen.push(row + piece.shift());
                    }
                });
                rest.shared_units += units.len();
                shared.push(units.clone());
                shared_older[then].push(units);
            }
            subtract(at, &piece.units, shared, &mut rest.newer);
        }
        for (at, (piece, shared)) in older.pieces().iter().zip(shared_older).enumerate() {
            subtract(at, &piece.units, shared, &mut rest.older);
        }
        rest
    }
}

/// Appends what is left of `units` without the ranges in `shared`, which do not overlap.
fn subtract(piece: usize, units: &Range<u32>, mut shared: Vec<Range<u32>>, out: &mut Vec<Units>) {
    shared.sort_unstable_by_key(|range| range.start);
    let mut start = units.start;
    for range in shared
        .into_iter()
        .chain(std::iter::once(units.end..units.end))
    {
        if start < range.start {
            let units = start..range.start;
            out.push(Units { piece, units });
        }
        start = range.end;
    }
}

impl Units {
    /// The nodes of these units, in document order.
    fn nodes<'a>(&self, snapshot: &'a Snapshot) -> impl Iterator<Item = NodeRef<'a>> + use<'a> {
        let piece = &snapshot.pieces()[self.piece];
        let segment = &piece.segment;
        let rows =
            segment.unit_rows(self.units.start).start..segment.unit_rows(self.units.end - 1).end;
        rows.filter(|row| {
            let dead = piece.dead.as_ref().is_some_and(|dead| dead.contains(*row));
            !dead && !segment.is_core(*row)
        })
        .map(|row| snapshot.node(row + piece.shift()))
    }
}

/// Finds the nodes of one snapshot in its neighbour.
struct Twins<'a> {
    snapshot: &'a Snapshot,
    /// Where those of its units start that are to be compared, by version.
    units: HashMap<u64, u32>,
}

impl<'a> Twins<'a> {
    fn new(snapshot: &'a Snapshot, rest: &[Units]) -> Self {
        let mut units = HashMap::new();
        for run in rest {
            let piece = &snapshot.pieces()[run.piece];
            for unit in run.units.clone() {
                let version = piece.segment.units()[unit as usize].version;
                let start = piece.segment.unit_rows(unit).start + piece.shift();
                units.insert(version, start);
            }
        }
        Self { snapshot, units }
    }

    /// The row of the same version of `node`, if it is there and live.
    fn row(&self, node: NodeRef<'_>) -> Option<u32> {
        let (version, offset) = node.version();
        let row = self.units.get(&version)? + offset;
        (!self.snapshot.is_dead(row)).then_some(row)
    }

    /// Whether there is a node of this id.
    fn has(&self, node: NodeRef<'_>) -> bool {
        self.row(node).is_some() || self.snapshot.find(node.id()).is_some()
    }

    /// Whether this snapshot has the same node in the same place; `None` where a line of
    /// changes could not tell it.
    fn same(&self, node: NodeRef<'_>) -> Option<bool> {
        let twin = match self.row(node) {
            // Rows of one version are equal but for ttls that fell, and units hang from different
            // places.
            Some(row) if node.version().1 > 0 => {
                return Some(self.snapshot.node(row).ttl() == node.ttl());
            }
            Some(row) => Some(self.snapshot.node(row)),
            None => self.snapshot.find(node.id()),
        };
        let Some(twin) = twin else {
            return Some(false);
        };
        let place = |node: NodeRef<'_>| node.parent().map(|parent| parent.id().to_owned());
        if place(twin) != place(node) || members(twin, &[]) != members(node, &[]) {
            return Some(false);
        }
        // The class of a node without nodeType follows from where it first stood.
        let empty = |node: NodeRef<'_>| node.present().0 & Present::EMPTY_CHILDREN;
        (twin.class() == node.class() && empty(twin) == empty(node)).then_some(true)
    }
}

/// Counts bytes.
struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
