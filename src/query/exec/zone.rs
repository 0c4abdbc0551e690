//! Zones: `:pre`, `:core`, `:post` as steps (LANGUAGE §4).
//!
//! A zone is a virtual container, one for each node of the left context. Its members are the
//! nodes with one sign of offset on the axis of that node. The step after it finds the members
//! and, with white space, their descendants.

use std::ops::Range;

use super::axis::{NodeSet, descendants, reach};
use super::stats::RunInput;
use crate::index::Bits;
use crate::query::ir::{Axis, Zone};

#[derive(Clone, Debug)]
pub(super) struct Zones {
    /// The left context of the first zone; `None` for the whole tree.
    base: Option<NodeSet>,
    /// The zones, from left to right.
    path: Vec<(Axis, Zone)>,
    pub(super) members: NodeSet,
}

impl Zones {
    pub(super) fn of_nodes(
        left: Option<NodeSet>,
        axis: Axis,
        zone: Zone,
        window: &Range<u32>,
        input: RunInput<'_>,
    ) -> Self {
        let members = members(left.as_ref(), axis, zone, window, input);
        Self {
            base: left,
            path: vec![(axis, zone)],
            members,
        }
    }

    pub(super) fn nested(
        mut self,
        axis: Axis,
        zone: Zone,
        window: &Range<u32>,
        input: RunInput<'_>,
    ) -> Self {
        // The members of a zone of a zone are the nodes of its sign that a step after the first
        // zone could keep.
        let signs = signs(zone, window, input);
        let mut bits = self.reach(axis, window, input);
        bits.and(&signs);
        let ambient = |row: Option<u32>, member: bool| {
            member && row.is_some_and(|row| has_sign(row, zone, input))
        };
        // `^seq` is inside the root.
        // The root and `^seq` are before the window, in no bit set.
        let seq_inside = self.members.seq || axis == Axis::Descendant && self.members.root;
        self.members = NodeSet {
            bits,
            root: ambient(Some(0), self.members.root),
            seq: ambient(input.snapshot.seq_row(), seq_inside),
        };
        self.path.push((axis, zone));
        self
    }

    /// The rows that a step after these zones can keep.
    pub(super) fn reach(&self, axis: Axis, window: &Range<u32>, input: RunInput<'_>) -> Bits {
        zone_reach(&self.members, axis, window, input)
    }

    /// Whether the root and `^seq`, before the window, are members or inside one.
    pub(super) fn reaches_ambient(&self, axis: Axis) -> (bool, bool) {
        let inside = axis == Axis::Descendant && self.members.root;
        (self.members.root, self.members.seq || inside)
    }

    /// The groups of a pick: for each row of `matched`, the node whose zone is nearest. Linear in
    /// the subtrees of the left context.
    pub(super) fn groups(
        &self,
        matched: &Bits,
        axis: Axis,
        input: RunInput<'_>,
    ) -> Vec<(u32, u32)> {
        // A zone of the whole tree is one group.
        let Some(base) = &self.base else {
            return matched.iter().map(|row| (0, row)).collect();
        };
        let mut group: hashbrown::HashMap<u32, u32> = hashbrown::HashMap::new();
        // Ascending, so that a deeper node overwrites the rows it shares with one above it.
        for node in base.bits.iter() {
            // A zone of this node is inside its subtree.
            let window = node..input.snapshot.end(node);
            if window.len() == 1 {
                continue;
            }
            // Runs the zones of this node alone over its subtree; what they reach is its group.
            let mut one = Bits::new(window.clone());
            one.insert(node);
            let one = NodeSet {
                bits: one,
                root: false,
                seq: false,
            };
            let mut zones: Option<Self> = None;
            for &(axis, zone) in &self.path {
                zones = Some(match zones {
                    None => Self::of_nodes(Some(one.clone()), axis, zone, &window, input),
                    Some(zones) => zones.nested(axis, zone, &window, input),
                });
            }
            let Some(zones) = zones else { continue };
            let mut rows = zones.reach(axis, &window, input);
            rows.and(matched);
            rows.for_each_in(window, |row| {
                group.insert(row, node);
            });
        }
        matched
            .iter()
            .filter_map(|row| group.get(&row).map(|&node| (node, row)))
            .collect()
    }
}

/// The members and, with white space, their descendants.
fn zone_reach(members: &NodeSet, axis: Axis, window: &Range<u32>, input: RunInput<'_>) -> Bits {
    let mut out = members.bits.clone();
    if axis == Axis::Descendant {
        if members.root {
            out.insert_range(window.clone());
        }
        if members.seq {
            let seq = input.snapshot.seq_rows();
            out.insert_range(seq.start.max(window.start)..seq.end.min(window.end));
        }
        let inside = members.bits.clone();
        descendants(&inside, &mut out, None, window, input);
    }
    out
}

fn members(
    left: Option<&NodeSet>,
    axis: Axis,
    zone: Zone,
    window: &Range<u32>,
    input: RunInput<'_>,
) -> NodeSet {
    let mut bits = signs(zone, window, input);
    let seq = input.snapshot.seq_row();
    // A window contains both the root and `^seq`, or neither.
    let outside = window.start > 0;
    let sign = |row: Option<u32>| outside && row.is_some_and(|row| has_sign(row, zone, input));
    match left {
        None => NodeSet {
            bits,
            root: sign(Some(0)),
            seq: sign(seq),
        },
        Some(left) => {
            if let Some(reach) = reach(left, axis, None, window.clone(), input) {
                bits.and(&reach);
            }
            NodeSet {
                bits,
                root: false,
                seq: left.root && sign(seq),
            }
        }
    }
}

pub(super) fn signs(zone: Zone, window: &Range<u32>, input: RunInput<'_>) -> Bits {
    let mut out = Bits::new(window.clone());
    for piece in input.snapshot.pieces_in(window.clone()) {
        let (start, end) = (window.start.max(piece.start()), window.end.min(piece.end()));
        let rows = start - piece.shift()..end - piece.shift();
        let posting = piece.segment().of_sign(zone as usize);
        posting.or_into(&mut out, rows.clone(), piece.shift());
        piece.remove_dead(rows, &mut out);
    }
    out.retain_range(window.clone());
    out
}

fn has_sign(row: u32, zone: Zone, input: RunInput<'_>) -> bool {
    let offset = input.snapshot.node(row).offset();
    match zone {
        Zone::Pre => offset < 0,
        Zone::Core => offset == 0,
        Zone::Post => offset > 0,
    }
}
