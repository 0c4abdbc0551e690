//! The nodes of a snapshot, as readers see them and as a tree again.

use std::ops::Range;

use super::{Segment, Snapshot, UnitKind};
use crate::json::JsonValue;
use crate::tree::alias::{CADENCE, TAGS};
use crate::tree::hash_text;
use crate::tree::{Fields, NodeClass, NodeHeaders, NodeRecord, Present, Tree, TreeBuilder, header};

#[doc(hidden)]
impl Snapshot {
    /// The tree of this snapshot, equal to the one it was made from; ttls are those of its cycle. Linear in the nodes.
    pub fn to_tree(&self) -> Tree {
        let mut copy = TreeBuilder::default();
        self.nodes()
            .for_each(|node| push_node(&mut copy, node, self.cycle()));
        copy.finish()
    }

    pub fn root(&self) -> NodeRef<'_> {
        self.node(0)
    }

    /// The node of a row that belongs to a piece and is not an implicit core.
    #[inline]
    pub fn node(&self, row: u32) -> NodeRef<'_> {
        let at = self.piece_of(row);
        self.node_at(at, row - self.pieces()[at].shift())
    }

    /// The node at a row of the segment of piece `at`.
    #[inline]
    pub(super) fn node_at(&self, at: usize, local: u32) -> NodeRef<'_> {
        let piece = &self.pieces()[at];
        NodeRef {
            snapshot: self,
            segment: &piece.segment,
            row: local + piece.shift(),
            local,
            piece: at as u32,
        }
    }

    /// The node of an id. One lookup a piece: logarithmic in turns.
    pub fn find(&self, id: &str) -> Option<NodeRef<'_>> {
        // One hash serves the tables of all segments. A miss costs one probe a piece, and pieces are
        // O(log turns), so no table of the whole snapshot is needed, which each commit would have to change.
        let hash = hash_text(id);
        self.pieces().iter().enumerate().find_map(|(at, piece)| {
            let live = |local: u32| piece.rows.contains(&local) && !piece.is_dead(local);
            let local = piece.segment.find(hash, id, live)?;
            Some(self.node_at(at, local))
        })
    }

    /// The node at the same row of the same segment as `node` of another snapshot.
    pub fn shared(&self, node: NodeRef<'_>) -> Option<NodeRef<'_>> {
        let local = node.local;
        // Equal rows of one segment are the same node, so a walk through snapshots that share nearly everything
        // compares pointers instead of looking up an id in each.
        let at = self.pieces().iter().position(|piece| {
            std::ptr::eq(&*piece.segment, node.segment)
                && piece.rows.contains(&local)
                && !piece.is_dead(local)
        })?;
        Some(self.node_at(at, local))
    }

    /// The last child of `^seq`. Logarithmic in pieces and units.
    pub(crate) fn last_of_seq(&self) -> Option<NodeRef<'_>> {
        let last = self.seq_rows().end.checked_sub(1)?;
        if self.seq_rows().is_empty() {
            return None;
        }
        let at = self.piece_of(last);
        let piece = &self.pieces()[at];
        let segment = piece.segment();
        let unit = segment.unit_of(last - piece.shift());
        Some(self.node_at(at, segment.unit_rows(unit).start))
    }

    /// All nodes, in document order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeRef<'_>> {
        self.nodes_in(0..self.end_row())
    }

    /// The nodes of some rows, in document order. Linear in the pieces and those rows.
    pub fn nodes_in(&self, wanted: Range<u32>) -> impl Iterator<Item = NodeRef<'_>> {
        self.pieces()
            .iter()
            .enumerate()
            .flat_map(move |(at, piece)| {
                // Clamping makes the range empty for pieces that do not overlap it.
                let local = |row: u32| row.clamp(piece.base, piece.end()) - piece.shift();
                self.live(at, local(wanted.start)..local(wanted.end))
            })
    }

    /// The nodes at these rows of the segment of piece `at`.
    pub(super) fn live(&self, at: usize, rows: Range<u32>) -> impl Iterator<Item = NodeRef<'_>> {
        let piece = &self.pieces()[at];
        rows.filter(|&local| !piece.segment.is_core(local) && !piece.is_dead(local))
            .map(move |local| self.node_at(at, local))
    }
}

/// One node of a snapshot: a row and the segment it is in. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct NodeRef<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) segment: &'a Segment,
    pub(super) row: u32,
    pub(super) local: u32,
    pub(super) piece: u32,
}

impl<'a> NodeRef<'a> {
    /// The row in the snapshot: ascending rows are in document order.
    pub fn row(self) -> u32 {
        self.row
    }

    /// The id. Constant time.
    pub fn id(self) -> &'a str {
        self.segment.id(self.local)
    }

    /// The class (LANGUAGE §1).
    pub fn class(self) -> NodeClass {
        // An implicit core is never a node.
        self.segment
            .class(self.local)
            .unwrap_or(NodeClass::Container)
    }

    /// The depth: -1 in `^sys`, 0 in `^ah`, 1, 2, … in turns from the newest, else `None`.
    /// Logarithmic in the turns of a segment.
    pub fn depth(self) -> Option<i64> {
        self.snapshot.depth(self.row)
    }

    /// Levels below the root.
    pub fn level(self) -> u32 {
        self.segment.level.get(self.local) as u32
    }

    pub fn parent(self) -> Option<Self> {
        self.snapshot
            .parent(self.row)
            .map(|row| self.snapshot.node(row))
    }

    /// The children, in canonical order.
    pub fn children(self) -> impl Iterator<Item = Self> + 'a {
        let end = self.snapshot.end(self.row);
        let snapshot = self.snapshot;
        let mut next = self.row + 1;
        std::iter::from_fn(move || {
            while let Some(row) = snapshot.next_row(next)
                && row < end
            {
                let node = snapshot.node(row);
                if node.segment.is_core(node.local) {
                    next = row + 1;
                    continue;
                }
                next = snapshot.end(row);
                if !snapshot.is_dead(row) {
                    return Some(node);
                }
            }
            None
        })
    }

    /// The last child of a container, a block or `^sys`, unless rows below it were removed: then maybe
    /// `None`. Linear in the levels below.
    pub(crate) fn last_child(self) -> Option<Self> {
        let mut row = self.snapshot.end(self.row).checked_sub(1)?;
        while row > self.row && !self.snapshot.is_dead(row) {
            let parent = self.snapshot.parent(row)?;
            if parent == self.row {
                return Some(self.snapshot.node(row));
            }
            row = parent;
        }
        None
    }

    /// The stored nodeType as written; `None` if the node was given none.
    pub fn node_type(self) -> Option<&'a str> {
        self.segment.node_type(self.local)
    }

    /// The nodeType, or the one implied by the class (`mt`, `mc`, `cb`, `^root`).
    pub fn type_or_class(self) -> &'a str {
        self.segment.types().get(self.local).unwrap_or("cb")
    }

    /// The role; `None` if absent or null.
    pub fn role(self) -> Option<&'a str> {
        self.segment.roles().get(self.local)
    }

    /// The stored kind; `None` if absent or null.
    pub fn kind(self) -> Option<&'a str> {
        self.segment.kinds().get(self.local)
    }

    /// The key; `None` if absent or null.
    pub fn key(self) -> Option<&'a str> {
        self.segment.keys().get(self.local)
    }

    /// The identity for `@unique` (LANGUAGE §7): the key, else the id. The flag is true for keys.
    pub fn identity(self) -> (bool, &'a str) {
        self.key().map_or((false, self.id()), |key| (true, key))
    }

    /// The offset, 0 if absent.
    pub fn offset(self) -> i64 {
        self.segment.offsets().get(self.local)
    }

    /// The ttl in this snapshot; `None` if absent or null.
    pub fn ttl(self) -> Option<i64> {
        self.segment.ttl(self.local, self.snapshot.cycle())
    }

    /// The cycle in which the ttl expires, for one that counts down; `None` for others and for those
    /// that stay as they are.
    pub fn expires(self) -> Option<i64> {
        let counts =
            self.present().has(Present::TTL) && !self.segment.ttl_stored.contains(self.local);
        counts.then(|| self.segment.ttls().get(self.local))
    }

    /// The priority, 0 if absent.
    pub fn priority(self) -> i64 {
        self.segment.priorities().get(self.local)
    }

    /// The introducing cycle; `None` if absent or null.
    pub fn cycle(self) -> Option<i64> {
        self.present()
            .has(Present::CYCLE)
            .then(|| self.segment.cycles().get(self.local))
    }

    /// Creation time in nanoseconds, 0 if absent.
    pub fn created_at_ns(self) -> i64 {
        self.segment.creation_times().get(self.local)
    }

    /// The tie-breaker inside a cycle, 0 if absent.
    pub fn creation_index(self) -> i64 {
        self.segment.creation_indexes().get(self.local)
    }

    /// The id and the headers that have columns; the ttl as in this snapshot.
    pub fn headers(self) -> NodeHeaders<'a> {
        NodeHeaders {
            id: self.id(),
            present: self.present(),
            texts: [self.node_type(), self.role(), self.kind(), self.key()],
            numbers: [
                self.offset(),
                self.ttl().unwrap_or(0),
                self.priority(),
                self.cycle().unwrap_or(0),
                self.created_at_ns(),
                self.creation_index(),
            ],
        }
    }

    pub fn present(self) -> Present {
        self.segment.present(self.local)
    }

    /// The fields of the payload record (see [`crate::tree::payload`]): names and values, sorted by name.
    pub fn fields(self) -> Fields<'a> {
        Fields::new(self.record())
    }

    pub(super) fn record(self) -> NodeRecord<'a> {
        self.segment.record(self.local)
    }

    pub(super) fn unit(self) -> u32 {
        self.segment.unit_of(self.local)
    }

    /// The value of one of [`NodeRef::fields`].
    pub fn field(self, name: &str) -> Option<JsonValue<'a>> {
        if name == "content" {
            return self.segment.content(self.local);
        }
        self.fields()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// The tags, a list of strings or one string; `None` if absent or null.
    pub fn tags(self) -> Option<JsonValue<'a>> {
        TAGS.find(self.fields())
    }

    /// The cadence; `None` if absent or null.
    pub fn cadence(self) -> Option<i64> {
        CADENCE.find(self.fields())?.integer()
    }

    /// The content hash (RUNTIME §2), computed, as lower-case hex digits.
    pub fn content_hash(self) -> String {
        crate::tree::hash::hex(&crate::tree::hash::content_hash(
            self.role(),
            self.kind(),
            self.fields(),
        ))
    }

    /// The version of the node's unit, and the index of its row in the unit. Equal versions in two
    /// snapshots mean equal rows, except removed ones and ttls that count down.
    pub fn version(self) -> (u64, u32) {
        let unit = &self.segment.units[self.unit() as usize];
        (unit.version, self.local - unit.start)
    }

    /// The kind of the node's unit.
    pub fn unit_kind(self) -> UnitKind {
        self.segment.units[self.unit() as usize].kind
    }

    pub fn snapshot(self) -> &'a Snapshot {
        self.snapshot
    }

    pub fn snapshot_cycle(self) -> i64 {
        self.snapshot.cycle()
    }

    /// Index of its piece in the snapshot.
    pub fn piece(self) -> u32 {
        self.piece
    }
}

impl PartialEq for NodeRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.snapshot, other.snapshot) && self.row == other.row
    }
}

/// Appends a node with the ttl it has in `cycle`, its snapshot's or a later one in which ttls have counted down.
pub(super) fn push_node(copy: &mut TreeBuilder, node: NodeRef<'_>, cycle: i64) {
    // A stored ttl that is above 0 counts from here on, too: the writer that asks for a later cycle is one
    // whose ttls all count down.
    let passed = cycle.saturating_sub(node.snapshot_cycle());
    let mut headers = node.headers();
    let ttl = &mut headers.numbers[header::TTL];
    *ttl = ttl.saturating_sub(passed).max(0);
    copy.push(node.level(), node.class(), headers, node.record());
}
