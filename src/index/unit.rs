//! The units of a snapshot, for a writer that keeps each of them once.

use std::ops::Range;
use std::sync::Arc;

use super::{NodeRef, Segment, Snapshot, SnapshotPiece, UnitKind};

#[doc(hidden)]
impl Snapshot {
    /// Its units, in document order, the preamble first.
    pub fn units(&self) -> impl Iterator<Item = UnitRef<'_>> {
        self.units_from(0)
    }

    /// Its units from a number on, in document order. Linear in the pieces before them.
    pub fn units_from(&self, first: usize) -> impl Iterator<Item = UnitRef<'_>> {
        let mut left = u32::try_from(first).unwrap_or(u32::MAX);
        self.pieces()
            .iter()
            .enumerate()
            .flat_map(move |(at, piece)| {
                let skipped = left.min(piece.units.len() as u32);
                left -= skipped;
                let units = piece.units.start + skipped..piece.units.end;
                units.map(move |unit| UnitRef::new(self, at, unit))
            })
    }

    /// How many units it has. Linear in pieces.
    pub fn unit_count(&self) -> usize {
        self.pieces().iter().map(|piece| piece.units.len()).sum()
    }
}

/// A unit of a snapshot. Cheap to copy.
///
/// Two of them have the same nodes if their versions and their dead rows, counted from the start of
/// the unit, are equal.
#[derive(Clone, Copy, Debug)]
pub struct UnitRef<'a> {
    snapshot: &'a Snapshot,
    piece: usize,
    unit: u32,
}

impl<'a> UnitRef<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, piece: usize, unit: u32) -> Self {
        Self {
            snapshot,
            piece,
            unit,
        }
    }

    pub fn containing(node: NodeRef<'a>) -> Self {
        Self::new(node.snapshot(), node.piece() as usize, node.unit())
    }

    fn at(self) -> &'a SnapshotPiece {
        &self.snapshot.pieces()[self.piece]
    }

    pub fn kind(self) -> UnitKind {
        self.segment().units()[self.unit as usize].kind
    }

    /// The version of its rows: equal ones mean equal rows, dead ones and ttls as they read aside.
    pub fn version(self) -> u64 {
        self.segment().units()[self.unit as usize].version
    }

    pub fn segment(self) -> &'a Arc<Segment> {
        self.at().segment()
    }

    pub fn index(self) -> u32 {
        self.unit
    }

    pub fn rows(self) -> Range<u32> {
        self.segment().unit_rows(self.unit)
    }

    /// Its dead rows, as row numbers of the segment, ascending.
    pub fn dead_rows(self) -> impl Iterator<Item = u32> + 'a {
        self.at().dead_rows(self.rows())
    }

    /// Its top node: the root, or a child of the root or `^seq`.
    pub fn top(self) -> NodeRef<'a> {
        let row = self.rows().start + self.at().shift();
        self.snapshot.node(row)
    }

    /// Its rows in document order, without dead ones: each with its number in the segment and its node, which an
    /// implicit core does not have.
    #[cfg(feature = "store")]
    pub(crate) fn live_rows(self) -> impl Iterator<Item = (u32, Option<NodeRef<'a>>)> {
        let piece = self.at();
        let live = self.rows().filter(|row| !piece.is_dead(*row));
        live.map(move |row| {
            let is_node = !piece.segment().is_core(row);
            (row, is_node.then(|| self.snapshot.node_at(self.piece, row)))
        })
    }

    /// Its nodes, in document order, without dead ones.
    pub fn nodes(self) -> impl Iterator<Item = NodeRef<'a>> {
        self.snapshot.live(self.piece, self.rows())
    }
}
