//! Zones: `:pre`, `:core`, `:post` as steps of their own (LANGUAGE §4).
//!
//! A zone is a virtual container, one for each node of the left context; its members are the
//! nodes of one offset sign below that node. What follows it finds members, and with white
//! space also what lies inside them.

use std::ops::Range;

use super::access::Scope;
use super::axis::{Nodes, descendants, reach};
use crate::index::Bits;
use crate::ir::{Axis, Zone};

/// A left context of zones.
#[derive(Clone, Debug)]
pub(super) struct Zones {
    /// The nodes the first zone hangs from; none for the whole tree.
    base: Option<Nodes>,
    /// The zones, from left to right.
    path: Vec<(Axis, Zone)>,
    /// The members of the last zones, all together.
    members: Nodes,
}

impl Zones {
    /// The zones of `left`, or of the whole tree.
    pub(super) fn of_nodes(
        left: Option<Nodes>,
        axis: Axis,
        zone: Zone,
        window: &Range<u32>,
        scope: Scope<'_>,
    ) -> Self {
        let members = members(left.as_ref(), axis, zone, window, scope);
        Self {
            base: left,
            path: vec![(axis, zone)],
            members,
        }
    }

    /// The zones of zones.
    pub(super) fn nested(
        mut self,
        axis: Axis,
        zone: Zone,
        window: &Range<u32>,
        scope: Scope<'_>,
    ) -> Self {
        let signs = signs(zone, window, scope);
        let mut bits = self.reach(axis, window, scope);
        bits.and(&signs);
        let ambient = |row: Option<u32>, member: bool| {
            member && row.is_some_and(|row| has_sign(row, zone, scope))
        };
        // What is inside a member root includes `^seq`.
        let seq_inside = self.members.seq || axis == Axis::Descendant && self.members.root;
        self.members = Nodes {
            bits,
            root: ambient(Some(0), self.members.root),
            seq: ambient(scope.snapshot.seq_row(), seq_inside),
        };
        self.path.push((axis, zone));
        self
    }

    /// The rows a step can keep behind these zones.
    pub(super) fn reach(&self, axis: Axis, window: &Range<u32>, scope: Scope<'_>) -> Bits {
        zone_reach(&self.members, axis, window, scope)
    }

    /// Whether nothing can follow.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The members of the last zone, when it ends the chain.
    pub(super) fn into_members(self) -> Nodes {
        self.members
    }

    /// Whether the root or `^seq`, standing outside the window, are members or inside one.
    pub(super) fn reaches_ambient(&self, axis: Axis) -> (bool, bool) {
        let inside = axis == Axis::Descendant && self.members.root;
        (self.members.root, self.members.seq || inside)
    }

    /// The groups of a pick: for each row of `matched`, the node whose zone is nearest. Linear in
    /// the subtrees of the left context, which nest as deep as the left context does.
    pub(super) fn groups(&self, matched: &Bits, axis: Axis, scope: Scope<'_>) -> Vec<(u32, u32)> {
        let Some(base) = &self.base else {
            return matched.iter().map(|row| (0, row)).collect();
        };
        let mut group: hashbrown::HashMap<u32, u32> = hashbrown::HashMap::new();
        // Ascending, so that a deeper node takes over what it shares with one above it.
        for node in base.bits.iter() {
            // All that a zone of this node holds lies in its subtree.
            let window = node..scope.snapshot.end(node);
            if window.len() == 1 {
                continue;
            }
            let mut one = Bits::new(window.clone());
            one.insert(node);
            let one = Nodes {
                bits: one,
                root: false,
                seq: false,
            };
            let mut zones: Option<Self> = None;
            for &(axis, zone) in &self.path {
                zones = Some(match zones {
                    None => Self::of_nodes(Some(one.clone()), axis, zone, &window, scope),
                    Some(zones) => zones.nested(axis, zone, &window, scope),
                });
            }
            let Some(zones) = zones else { continue };
            let mut rows = zones.reach(axis, &window, scope);
            rows.and_inside(matched);
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

/// Members, and with white space what lies inside them.
fn zone_reach(members: &Nodes, axis: Axis, window: &Range<u32>, scope: Scope<'_>) -> Bits {
    let mut out = members.bits.clone();
    if axis == Axis::Descendant {
        if members.root {
            out.insert_range(window.clone());
        }
        if members.seq {
            let seq = scope.snapshot.seq_rows();
            out.insert_range(seq.start.max(window.start)..seq.end.min(window.end));
        }
        let inside = members.bits.clone();
        descendants(&inside, &mut out, None, window, scope);
    }
    out
}

fn members(
    left: Option<&Nodes>,
    axis: Axis,
    zone: Zone,
    window: &Range<u32>,
    scope: Scope<'_>,
) -> Nodes {
    let mut bits = signs(zone, window, scope);
    let seq = scope.snapshot.seq_row();
    // The window holds either both of the root and `^seq` or neither.
    let outside = window.start > 0;
    let sign = |row: Option<u32>| outside && row.is_some_and(|row| has_sign(row, zone, scope));
    match left {
        None => Nodes {
            bits,
            root: sign(Some(0)),
            seq: sign(seq),
        },
        Some(left) => {
            if let Some(reach) = reach(left, axis, None, window.clone(), scope) {
                bits.and(&reach);
            }
            Nodes {
                bits,
                root: false,
                seq: left.root && sign(seq),
            }
        }
    }
}

/// The real rows of the window with offsets of a sign.
fn signs(zone: Zone, window: &Range<u32>, scope: Scope<'_>) -> Bits {
    let mut out = Bits::new(window.clone());
    for piece in scope.snapshot.pieces_in(window.clone()) {
        let (start, end) = (window.start.max(piece.base), window.end.min(piece.end()));
        let rows = start - piece.shift()..end - piece.shift();
        piece.segment.signs[zone as usize].or_into(&mut out, rows.clone(), piece.shift());
        if let Some(dead) = &piece.dead {
            for row in dead.range(rows) {
                out.remove(row + piece.shift());
            }
        }
    }
    out.retain_range(window.clone());
    out
}

fn has_sign(row: u32, zone: Zone, scope: Scope<'_>) -> bool {
    let offset = scope.snapshot.node(row).offset();
    match zone {
        Zone::Pre => offset < 0,
        Zone::Core => offset == 0,
        Zone::Post => offset > 0,
    }
}
