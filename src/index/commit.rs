//! Snapshots from differences: a commit costs what it changes, not what there is.
//!
//! A difference names nodes. The units they stand in, the ones they are put in and the ones
//! they go from, make an excerpt of the snapshot before: a small tree with the root and the
//! regions, in which the difference is applied and checked like in the whole one. Its units go
//! the way of every unit, compared and shared or indexed; all others are shared as the runs they
//! stand in.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::copy::Copy;
use super::snapshot::Run;
use super::writer::{Merge, Part, UnitRows, locate, units};
use super::{Meta, NodeRef, Piece, Segment, Snapshot, Unit, UnitKind, Writer};
use crate::tree::{Delta, NodeClass, Present, Tree, check, patch};

impl Writer {
    /// The snapshot that `delta` makes of `previous`, the newest one committed: the same as
    /// [`Writer::append`] makes of the whole tree. Also gives the merges made.
    ///
    /// None where that tree is needed: `previous` is not the base, the difference cannot be
    /// applied (the whole tree has the reasons and their places), or it takes `^seq` from the
    /// turns that stand below it.
    ///
    /// Linear in the units that hold a node of the difference, logarithmic in others, but for
    /// merges; units whose ttls would read otherwise in the new cycle are among the former.
    pub fn commit(
        &mut self,
        previous: &Snapshot,
        delta: &Delta,
        meta: &Meta,
    ) -> Option<(Snapshot, Vec<Merge>)> {
        if previous.is_working() || previous.cycle() != delta.base {
            return None;
        }
        let touched = Touched::new(previous, delta, meta.cycle);
        let tree = patch::apply(&touched.excerpt(previous), delta).ok()?;
        let units = units(&tree);
        if takes_seq(previous, &tree, &units) {
            return None;
        }
        let mut fresh = Vec::new();
        for unit in units {
            if touched.holds(unit.kind) {
                let place = place(previous, &key(&tree, &unit));
                let found =
                    locate(previous, &tree, &unit, None).map(|(piece, at)| (previous, piece, at));
                fresh.push((place, self.part(&tree, unit, found, meta.cycle)));
            }
        }
        let parts = touched.splice(previous, fresh);
        Some(self.assemble(&tree, parts, false, meta.clone()))
    }
}

/// A unit of a snapshot: its piece, and its number in the segment.
type Place = (usize, u32);

/// The units of a snapshot that a difference may change.
struct Touched {
    /// Where they stand.
    units: BTreeSet<Place>,
    preamble: Place,
    head: Option<Place>,
}

impl Touched {
    /// Looks up every id of `delta`; ids that are not found are new, or for [`patch::apply`] to
    /// find fault with.
    fn new(previous: &Snapshot, delta: &Delta, cycle: i64) -> Self {
        let place = |node: NodeRef<'_>| (node.piece() as usize, node.unit());
        let head = previous.head_rows();
        let mut touched = Self {
            units: BTreeSet::new(),
            preamble: place(previous.root()),
            head: (!head.is_empty()).then(|| place(previous.node(head.start))),
        };
        let nodes = &delta.replace.nodes;
        let classes = check::classes(&nodes.types);
        for (row, parent) in nodes.rows.iter().zip(&delta.replace.parents) {
            if let Some(NodeClass::Root | NodeClass::Sys | NodeClass::Seq) =
                classes.get(row.node_type as usize)
            {
                touched.units.insert(touched.preamble);
            }
            let Some(parent) = parent.as_ref().and_then(|id| previous.find(id)) else {
                continue;
            };
            // What is put below the root or `^seq` is a unit of its own, and changes the node
            // itself only where that said it has no children.
            let outer = matches!(parent.class(), NodeClass::Root | NodeClass::Seq);
            if !outer || parent.present().has(Present::EMPTY_CHILDREN) {
                touched.units.insert(place(parent));
            }
        }
        let replaced = (0..nodes.rows.len() as u32).map(|row| nodes.id(row));
        let removed = delta.remove.iter().map(|id| &**id);
        for node in replaced.chain(removed).filter_map(|id| previous.find(id)) {
            touched.units.insert(place(node));
        }
        if cycle != previous.cycle() {
            touched.add_falling(previous, cycle);
        }
        touched
    }

    /// Adds the units with ttls that count down and would read otherwise in `cycle`: a difference
    /// that does not name a node leaves the number it has.
    fn add_falling(&mut self, previous: &Snapshot, cycle: i64) {
        for (at, piece) in previous.pieces().iter().enumerate() {
            let segment = &piece.segment;
            if segment.counts_until <= previous.cycle() {
                continue;
            }
            segment.has_ttl.for_each_in(piece.rows.clone(), |row| {
                let live = piece.dead.as_ref().is_none_or(|dead| !dead.contains(row));
                if live && segment.ttl(row, cycle) != segment.ttl(row, previous.cycle()) {
                    self.units.insert((at, segment.unit_of(row)));
                }
            });
        }
    }

    /// Whether a unit of the excerpt's kind holds all its nodes there.
    fn holds(&self, kind: UnitKind) -> bool {
        match kind {
            UnitKind::Preamble => self.units.contains(&self.preamble),
            UnitKind::Head => self.head.is_none_or(|head| self.units.contains(&head)),
            UnitKind::Turn | UnitKind::Loose | UnitKind::Rest => true,
        }
    }

    /// The tree of these units, below the root and the regions.
    fn excerpt(&self, previous: &Snapshot) -> Tree {
        let mut copy = Copy::default();
        let mut places = self.units.clone();
        places.insert(self.preamble);
        places.extend(self.head);
        for place in places {
            let (at, unit) = place;
            if self.units.contains(&place) {
                let rows = previous.pieces()[at].segment.unit_rows(unit);
                previous.live(at, rows).for_each(|node| copy.push(node));
                continue;
            }
            let regions = if place == self.preamble {
                let sys = previous.sys_rows();
                let sys = (!sys.is_empty()).then_some(sys.start);
                [Some(0), sys, previous.seq_row()]
            } else {
                [Some(previous.head_rows().start), None, None]
            };
            for row in regions.into_iter().flatten() {
                copy.push(previous.node(row));
            }
        }
        copy.finish()
    }

    /// All parts of the new snapshot: the untouched units of `previous`, run by run, with `fresh`
    /// ones before the places they come with, which ascend.
    fn splice(&self, previous: &Snapshot, fresh: Vec<(Place, Part)>) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut fresh = fresh.into_iter().peekable();
        let mut gone = self.units.iter().peekable();
        for (at, piece) in previous.pieces().iter().enumerate() {
            let mut start = piece.units.start;
            loop {
                let put = fresh.peek().map(|(place, _)| *place);
                let put = put.filter(|place| place.0 == at);
                let out = gone.peek().filter(|place| place.0 == at);
                let stop = [put.map(|place| place.1), out.map(|place| place.1)];
                let stop = stop.into_iter().flatten().min();
                let end = stop.unwrap_or(piece.units.end);
                if start < end {
                    parts.push(Part::Shared(run(piece, start..end)));
                    start = end;
                }
                if put.is_some_and(|place| Some(place.1) == stop) {
                    parts.extend(fresh.next().map(|(_, part)| part));
                } else if stop.is_some() {
                    gone.next();
                    start += 1;
                } else {
                    break;
                }
            }
        }
        parts.extend(fresh.map(|(_, part)| part));
        parts
    }
}

/// Whether the turns would not stand below the node they stand below.
fn takes_seq(previous: &Snapshot, tree: &Tree, units: &[UnitRows]) -> bool {
    let seq = units
        .first()
        .map(|preamble| preamble.rows.end - 1)
        .filter(|&row| tree.rows[row as usize].class == NodeClass::Seq)
        .map(|row| tree.id(row));
    previous
        .seq_row()
        .is_some_and(|row| seq != Some(previous.node(row).id()))
}

/// A run of a piece's units.
fn run(piece: &Piece, units: Range<u32>) -> Run {
    let segment = &piece.segment;
    let mut dead = piece.dead.clone();
    if units != piece.units
        && let Some(all) = &mut dead
    {
        // A mask says nothing of rows outside its run.
        let rows = segment.unit_rows(units.start).start..segment.unit_rows(units.end - 1).end;
        let all = Arc::make_mut(all);
        all.remove_range(..rows.start);
        all.remove_range(rows.end..);
        if all.is_empty() {
            dead = None;
        }
    }
    (Arc::clone(segment), units, dead)
}

/// What decides where a unit stands (LANGUAGE §6).
type Key<'a> = (u8, i64, i64, i64, &'a [u8]);

/// The key of a unit of a tree.
fn key<'a>(tree: &'a Tree, unit: &UnitRows) -> Key<'a> {
    let first = unit.rows.start;
    let row = &tree.rows[first as usize];
    (
        unit.kind.rank(),
        row.offset,
        row.created_at_ns,
        row.creation_index,
        tree.id(first).as_bytes(),
    )
}

/// The first place of `previous` with a key not below `key`. Logarithmic in units.
fn place(previous: &Snapshot, key: &Key<'_>) -> Place {
    let below = |segment: &Segment, unit: &Unit| {
        let row = unit.start;
        let own: Key<'_> = (
            unit.kind.rank(),
            segment.offset.get(row),
            segment.created_at_ns.get(row),
            segment.creation_index.get(row),
            segment.id(row).as_bytes(),
        );
        own < *key
    };
    let units = |piece: &Piece| piece.units.start as usize..piece.units.end as usize;
    let after = previous.pieces().partition_point(|piece| {
        let first = piece.segment.units()[units(piece)].first();
        first.is_some_and(|first| below(&piece.segment, first))
    });
    let at = after.saturating_sub(1);
    let piece = &previous.pieces()[at];
    let within = &piece.segment.units()[units(piece)];
    let count = within.partition_point(|unit| below(&piece.segment, unit));
    (at, piece.units.start + count as u32)
}
