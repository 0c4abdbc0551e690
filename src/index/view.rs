//! Nodes of a snapshot, as readers see them.

use super::segment::Segment;
use super::{Snapshot, UnitKind};
use crate::tree::alias::{CADENCE, TAGS};
use crate::tree::{NONE, NodeClass, Present};

/// One node of a snapshot: a row number and where to look it up. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct NodeRef<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) segment: &'a Segment,
    /// The row in the snapshot.
    pub(super) row: u32,
    /// The row in the segment.
    pub(super) local: u32,
    /// The piece of the snapshot.
    pub(super) piece: u32,
}

impl<'a> NodeRef<'a> {
    /// The row in the snapshot: ascending rows are in document order.
    #[must_use]
    pub fn row(self) -> u32 {
        self.row
    }

    /// The id. Constant time.
    #[must_use]
    pub fn id(self) -> &'a str {
        self.segment.id(self.local)
    }

    /// The class (LANGUAGE §1).
    #[must_use]
    pub fn class(self) -> NodeClass {
        // Implicit cores are never handed out as nodes.
        self.segment
            .class(self.local)
            .unwrap_or(NodeClass::Container)
    }

    /// The depth: -1 in `^sys`, 0 in `^ah`, 1, 2, … in turns from the newest; none elsewhere.
    /// Logarithmic in the number of turns of a segment.
    #[must_use]
    pub fn depth(self) -> Option<i64> {
        self.snapshot.depth(self.row)
    }

    /// Levels below the root.
    #[must_use]
    pub fn level(self) -> u32 {
        self.segment.level.get(self.local) as u32
    }

    /// The parent; none for the root.
    #[must_use]
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

    /// The stored nodeType as it was spelled; none where the node came without one.
    #[must_use]
    pub fn node_type(self) -> Option<&'a str> {
        let code = self.segment.types.code(self.local)?;
        if self.segment.type_implied[code as usize] {
            return None;
        }
        Some(&self.segment.types.values()[code as usize])
    }

    /// The nodeType, or what a node without one reads as (`mt`, `mc`, `cb`, `^root`).
    #[must_use]
    pub fn type_or_class(self) -> &'a str {
        self.segment.types.get(self.local).unwrap_or("cb")
    }

    /// The role; none where absent or null.
    #[must_use]
    pub fn role(self) -> Option<&'a str> {
        self.segment.roles.get(self.local)
    }

    /// The stored kind; none where absent or null.
    #[must_use]
    pub fn kind(self) -> Option<&'a str> {
        self.segment.kinds.get(self.local)
    }

    /// The key; none where absent or null.
    #[must_use]
    pub fn key(self) -> Option<&'a str> {
        self.segment.keys.get(self.local)
    }

    /// What tells nodes apart where one of each key is wanted: the key, else the id
    /// (LANGUAGE §7, `@unique`).
    #[must_use]
    pub fn identity(self) -> (bool, &'a str) {
        self.key().map_or((false, self.id()), |key| (true, key))
    }

    /// The offset, 0 where absent.
    #[must_use]
    pub fn offset(self) -> i64 {
        self.segment.offset.get(self.local)
    }

    /// The ttl as it reads in this snapshot; none where absent or null.
    #[must_use]
    pub fn ttl(self) -> Option<i64> {
        self.segment.ttl(self.local, self.snapshot.cycle())
    }

    /// The priority, 0 where absent.
    #[must_use]
    pub fn priority(self) -> i64 {
        self.segment.priority.get(self.local)
    }

    /// The introducing cycle; none where absent or null.
    #[must_use]
    pub fn cycle(self) -> Option<i64> {
        self.present()
            .has(Present::CYCLE)
            .then(|| self.segment.cycle.get(self.local))
    }

    /// Creation time in nanoseconds, 0 where absent.
    #[must_use]
    pub fn created_at_ns(self) -> i64 {
        self.segment.created_at_ns.get(self.local)
    }

    /// The tie-breaker inside a cycle, 0 where absent.
    #[must_use]
    pub fn creation_index(self) -> i64 {
        self.segment.creation_index.get(self.local)
    }

    /// Which fields the node came with.
    #[must_use]
    pub fn present(self) -> Present {
        self.segment.present(self.local)
    }

    /// The fields no column holds (see [`crate::tree::Tree`]): names, and values as JSON text;
    /// sorted by name.
    #[must_use]
    pub fn fields(self) -> Fields<'a> {
        Fields::new(self.payload())
    }

    /// The record of [`NodeRef::fields`].
    pub(super) fn payload(self) -> &'a [u8] {
        self.segment.payload(self.local)
    }

    /// The unit the node belongs to, by its number in the segment.
    pub(super) fn unit(self) -> u32 {
        self.segment.unit_of(self.local)
    }

    /// The value of one of [`NodeRef::fields`] as JSON text.
    #[must_use]
    pub fn field(self, name: &str) -> Option<&'a str> {
        self.fields()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// The tags as JSON text, a list of strings or a plain string as a list of one; none where
    /// absent or null.
    #[must_use]
    pub fn tags(self) -> Option<&'a str> {
        TAGS.of(self.fields())
    }

    /// The cadence as JSON text, an integer; none where absent or null.
    #[must_use]
    pub fn cadence(self) -> Option<&'a str> {
        CADENCE.of(self.fields())
    }

    /// The content hash, computed from the content (RUNTIME §2), as lower-case hex digits.
    #[must_use]
    pub fn content_hash(self) -> String {
        crate::tree::hash::hex(&crate::tree::hash::content_hash(
            self.role(),
            self.kind(),
            self.fields(),
        ))
    }

    /// The version of the unit the node belongs to, and its position in it. Equal versions in
    /// two snapshots mean equal rows but for those removed and for ttls that count down.
    #[must_use]
    pub fn version(self) -> (u64, u32) {
        let unit = &self.segment.units[self.unit() as usize];
        (unit.version, self.local - unit.start)
    }

    /// The kind of unit the node belongs to.
    #[must_use]
    pub fn unit_kind(self) -> UnitKind {
        self.segment.units[self.unit() as usize].kind
    }

    /// The snapshot it is seen in.
    #[must_use]
    pub fn snapshot(self) -> &'a Snapshot {
        self.snapshot
    }

    /// The cycle of the snapshot it is seen in.
    #[must_use]
    pub fn snapshot_cycle(self) -> i64 {
        self.snapshot.cycle()
    }

    /// Which piece of the snapshot it stands in.
    #[must_use]
    pub fn piece(self) -> u32 {
        self.piece
    }
}

impl PartialEq for NodeRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.snapshot, other.snapshot) && self.row == other.row
    }
}

/// The fields of a payload record, sorted by name; values are JSON text.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    record: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Reads `record` (see [`crate::tree::Tree`] for its layout).
    #[must_use]
    pub fn new(record: &'a [u8]) -> Self {
        Self { record }
    }

    fn text(&mut self) -> Option<&'a str> {
        let mut length = 0_usize;
        let mut shift = 0;
        loop {
            let (&byte, rest) = self.record.split_first()?;
            self.record = rest;
            length |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
            shift += 7;
        }
        let (text, rest) = self.record.split_at_checked(length)?;
        self.record = rest;
        std::str::from_utf8(text).ok()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.text()?, self.text()?))
    }
}

/// The parent of a unit's first row: `^seq` for what stands under it, else the root.
pub(super) fn outer_parent(kind: UnitKind, seq: Option<u32>) -> Option<u32> {
    match kind {
        UnitKind::Preamble => None,
        UnitKind::Turn | UnitKind::Loose => Some(seq.unwrap_or(NONE)),
        UnitKind::Head | UnitKind::Rest => Some(0),
    }
}
