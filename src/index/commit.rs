//! Makes snapshots from deltas, at the cost of what changes.
//!
//! A delta names nodes. The units that have these nodes, before or after, are copied into a small
//! tree with the root and the regions, in which the delta is applied and checked like in a whole
//! tree. The units of the result are compared and indexed as usual; all others are shared.

use std::collections::BTreeSet;

use super::dead::{Moment, moment};
use super::fresh::Ttl;
use super::merge::Merge;
use super::view::push_node;
use super::writer::{Layout, Ttls, UnitRows, UnitSource, locate, units};
use super::{Meta, NodeRef, Segment, Snapshot, SnapshotPiece, Unit, UnitKind, Writer};
use crate::tree::{NodeClass, Present, Tree, TreeBuilder, TreeDelta, check, header, patch};

impl Writer {
    /// Applies `delta` to `previous`, the newest committed snapshot. Returns the same snapshot
    /// as [`Writer::append`] for the whole tree, and the merges made.
    ///
    /// `None` if the whole tree is needed: `previous` is not the base, the delta cannot be
    /// applied (the whole tree gives the faults their places), or `^seq` would be another node.
    ///
    /// Linear in the units with a node of the delta, or with a ttl that changes in the new cycle;
    /// logarithmic in others, except for merges.
    pub fn commit(
        &mut self,
        previous: &Snapshot,
        delta: &TreeDelta,
        meta: &Meta,
    ) -> Option<(Snapshot, Vec<Merge>)> {
        if previous.is_working() || previous.cycle() != delta.base {
            return None;
        }
        // The small tree has every unit that the delta can change, whole, and of the others only the root and
        // the regions, so that parents are found. Checks of a tree look at parents, siblings and levels; all of
        // these are inside a unit or on the way to the root, so a fault of the whole tree is one of the excerpt.
        let counting = self.ttls == Ttls::Counting;
        let touched = Touched::new(previous, delta, meta.cycle, counting);
        let read_at = if counting {
            meta.cycle
        } else {
            previous.cycle()
        };
        let tree = patch::apply(&touched.excerpt(previous, read_at), delta).ok()?;
        let units = units(&tree);
        if takes_seq(previous, &tree, &units) {
            return None;
        }
        let mut fresh = Vec::new();
        for unit in units {
            if touched.has_all(unit.kind) {
                let place = insertion_point(previous, &key(&tree, &unit));
                let found =
                    locate(previous, &tree, &unit, None).map(|(piece, at)| (previous, piece, at));
                fresh.push((place, self.compare(&tree, unit, found, meta)));
            }
        }
        let parts = splice(previous, &touched.units, fresh, moment(meta));
        Some(self.assemble(&tree, parts, Layout::ByLifetime, meta.clone()))
    }

    /// Adds a turn to `previous`, the newest committed snapshot, and changes nothing else: the
    /// snapshot that [`Writer::commit`] makes of these nodes, but reads no other unit. `turn`
    /// has the rows of the turn, the turn itself first, at their levels.
    ///
    /// `None` if more changes: ttls that have to begin to count down, or a `^seq` that was given an
    /// empty list of children.
    ///
    /// Linear in the turn, logarithmic in others, except for merges.
    pub fn append_turn(
        &mut self,
        previous: &Snapshot,
        turn: &Tree,
        meta: &Meta,
    ) -> Option<(Snapshot, Vec<Merge>)> {
        let seq = previous.node(previous.seq_row()?);
        let mut touched = Touched::default();
        touched.add_stored(previous);
        if self.ttls != Ttls::Counting
            || seq.present().has(Present::EMPTY_CHILDREN)
            || !touched.units.is_empty()
        {
            return None;
        }
        let unit = UnitRows {
            kind: UnitKind::Turn,
            rows: 0..turn.rows.len() as u32,
        };
        let place = insertion_point(previous, &key(turn, &unit));
        let fresh = UnitSource::fresh(unit, Ttl::CountFrom(meta.cycle), None);
        let fresh = [(place, fresh)];
        let parts = splice(previous, &touched.units, fresh, moment(meta));
        Some(self.assemble(turn, parts, Layout::Whole, meta.clone()))
    }
}

/// A unit of a snapshot: its piece, and its index in the segment.
pub(super) type UnitAt = (usize, u32);

/// The units of a snapshot that a delta may change.
#[derive(Default)]
struct Touched {
    units: BTreeSet<UnitAt>,
    preamble: UnitAt,
    head: Option<UnitAt>,
}

impl Touched {
    /// Looks up every id of `delta`. Ids that are not found are new, or [`patch::apply`] rejects them.
    fn new(previous: &Snapshot, delta: &TreeDelta, cycle: i64, counting: bool) -> Self {
        let place = |node: NodeRef<'_>| (node.piece() as usize, node.unit());
        let head = previous.head_rows();
        let mut touched = Self {
            units: BTreeSet::new(),
            preamble: place(previous.root()),
            head: (!head.is_empty()).then(|| place(previous.node(head.start))),
        };
        let nodes = &delta.replace.nodes;
        let classes = check::classes(&nodes.texts[header::NODE_TYPE]);
        for (row, parent) in nodes.rows.iter().zip(&delta.replace.parents) {
            if let Some(NodeClass::Root | NodeClass::Sys | NodeClass::Seq) =
                classes.get(row.texts[header::NODE_TYPE] as usize)
            {
                touched.units.insert(touched.preamble);
            }
            let Some(parent) = parent.as_ref().and_then(|id| previous.find(id)) else {
                continue;
            };
            // A child of the root or `^seq` is a unit itself, and changes its parent only if that
            // was given an empty list of children.
            // Only then does a new child change the unit of its parent.
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
            if counting {
                touched.add_stored(previous);
            } else {
                touched.add_falling(previous, cycle);
            }
        }
        touched
    }

    /// Adds the units with ttls above 0 that do not count down yet; from now on they do.
    fn add_stored(&mut self, previous: &Snapshot) {
        for (at, piece) in previous.pieces().iter().enumerate() {
            let segment = &piece.segment;
            segment.ttl_stored.for_each_in(piece.rows.clone(), |row| {
                if segment.ttls().get(row) > 0 && !piece.is_dead(row) {
                    self.units.insert((at, segment.unit_of(row)));
                }
            });
        }
    }

    /// Adds the units with ttls that would be lower in `cycle`: a delta keeps the ttl of a node it does not name.
    fn add_falling(&mut self, previous: &Snapshot, cycle: i64) {
        for (at, piece) in previous.pieces().iter().enumerate() {
            let segment = &piece.segment;
            let falling = |row| {
                if !piece.is_dead(row)
                    && segment.ttl(row, cycle) != segment.ttl(row, previous.cycle())
                {
                    self.units.insert((at, segment.unit_of(row)));
                }
            };
            if let Some(expiring) = &segment.expiring {
                expiring.after(previous.cycle(), &piece.rows, falling);
            }
        }
    }

    fn has_all(&self, kind: UnitKind) -> bool {
        match kind {
            UnitKind::Preamble => self.units.contains(&self.preamble),
            UnitKind::Head => self.head.is_none_or(|head| self.units.contains(&head)),
            UnitKind::Turn | UnitKind::Loose | UnitKind::Rest => true,
        }
    }

    /// The tree of these units, with the root and the regions, ttls as of `cycle`.
    fn excerpt(&self, previous: &Snapshot, cycle: i64) -> Tree {
        let mut copy = TreeBuilder::default();
        let mut places = self.units.clone();
        places.insert(self.preamble);
        places.extend(self.head);
        for place in places {
            let (at, unit) = place;
            if self.units.contains(&place) {
                let rows = previous.pieces()[at].segment.unit_rows(unit);
                let nodes = previous.live(at, rows);
                nodes.for_each(|node| push_node(&mut copy, node, cycle));
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
                push_node(&mut copy, previous.node(row), cycle);
            }
        }
        copy.finish()
    }
}

/// Whether `^seq` would be another node.
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

/// The sort key of a unit (LANGUAGE §6).
pub type Key<'a> = (u8, i64, i64, i64, &'a [u8]);

fn key<'a>(tree: &'a Tree, unit: &UnitRows) -> Key<'a> {
    let first = unit.rows.start;
    let row = &tree.rows[first as usize];
    (
        unit.kind.rank(),
        row.numbers[header::OFFSET],
        row.numbers[header::CREATED_AT_NS],
        row.numbers[header::CREATION_INDEX],
        tree.id(first).as_bytes(),
    )
}

/// The first unit of `previous` whose key is not below `key`. Logarithmic in units.
pub(super) fn insertion_point(previous: &Snapshot, key: &Key<'_>) -> UnitAt {
    let below = |segment: &Segment, unit: &Unit| {
        let row = unit.start;
        let own: Key<'_> = (
            unit.kind.rank(),
            segment.offsets().get(row),
            segment.creation_times().get(row),
            segment.creation_indexes().get(row),
            segment.id(row).as_bytes(),
        );
        own < *key
    };
    let units = |piece: &SnapshotPiece| piece.units.start as usize..piece.units.end as usize;
    // Units ascend by key over all pieces, so two binary searches do: the piece by its first unit, then
    // the unit in it.
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

/// All units of the new snapshot: those of `previous` that are not `gone`, and each of `fresh` before
/// the unit given with it; these ascend. `moment` is that of the new snapshot.
pub(super) fn splice<'a>(
    previous: &Snapshot,
    gone: &BTreeSet<UnitAt>,
    fresh: impl IntoIterator<Item = (UnitAt, UnitSource<'a>), IntoIter: ExactSizeIterator>,
    moment: Moment,
) -> Vec<UnitSource<'a>> {
    let fresh = fresh.into_iter();
    // Each unit that goes or comes cuts a run in two at most.
    let runs = previous.pieces().len() + gone.len() + 2 * fresh.len();
    let mut parts = Vec::with_capacity(runs);
    let mut fresh = fresh.peekable();
    let mut gone = gone.iter().peekable();
    for (at, piece) in previous.pieces().iter().enumerate() {
        // A merge of three ascending lists: the units of this piece, those to leave out, those to put in. Each
        // round takes the longest run before the next stop, so the cost is that of the stops, not of units.
        let mut start = piece.units.start;
        loop {
            let put = fresh.peek().map(|(place, _)| *place);
            let put = put.filter(|place| place.0 == at);
            let out = gone.peek().filter(|place| place.0 == at);
            let stop = [put.map(|place| place.1), out.map(|place| place.1)];
            let stop = stop.into_iter().flatten().min();
            let end = stop.unwrap_or(piece.units.end);
            if start < end {
                parts.push(UnitSource::Shared(piece.run(start..end, moment)));
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
