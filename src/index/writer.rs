//! Makes snapshots: unchanged units are found and shared, the others are indexed.
//!
//! A [`Writer`] takes trees in the order of their cycles: whole ones here, deltas in [`super::commit`]. Each unit of a
//! tree is compared, row by row, with the unit of the same id in the previous snapshot. An equal one is shared, one
//! that only lost blocks is shared with those rows dead, and others are indexed again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::dead::moment;
use super::fresh::{Earlier, Ttl};
use super::merge::{Merge, merge, next_run, short_tail};
use super::snapshot::UnitRun;
use super::{Meta, Segment, SegmentBuilder, Snapshot, UnitKind};
use crate::support::cancel::ensure;
use crate::tree::{NodeClass, Present, Tree, header};

/// Versions are unique in the process, so they also differ between sessions.
static NEXT_VERSION: AtomicU64 = AtomicU64::new(1);

/// Makes the snapshots of one session.
#[derive(Clone, Debug)]
pub struct Writer {
    /// How the ttls of the session change from one snapshot to the next.
    pub(super) ttls: Ttls,
    /// Whether segments are merged.
    pub(super) merging: bool,
    /// Whether a tree may be left unfinished where the work is cancelled, because it is not used then.
    stops: bool,
}

/// How ttls change from one snapshot to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ttls {
    /// As the documents say; none was seen that stayed.
    Read,
    /// As the documents say; some stayed, so none is taken to count down.
    Stored,
    /// They count down, also those of nodes that a delta does not name.
    Counting,
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Clone, Debug)]
pub(super) struct UnitRows {
    pub(super) kind: UnitKind,
    pub(super) rows: Range<u32>,
}

/// How a unit of a tree compares to one of the previous snapshot.
enum Match {
    /// Equal, except for these rows of the segment, which were removed.
    Shared(Vec<u32>),
    /// Equal except for ttls, which did not count down.
    StoredTtls,
    /// Different.
    Different,
}

impl Writer {
    pub fn new() -> Self {
        Self {
            ttls: Ttls::Read,
            merging: true,
            stops: false,
        }
    }

    /// A writer of snapshots whose ttls all count down (RUNTIME §3).
    pub fn counting() -> Self {
        Self {
            ttls: Ttls::Counting,
            ..Self::new()
        }
    }

    /// This writer without merging: for snapshots that do not last.
    #[must_use]
    pub fn without_merging(self) -> Self {
        Self {
            merging: false,
            ..self
        }
    }

    /// Checks also inside a tree whether the work is cancelled.
    pub(crate) fn stop_early(&mut self) {
        self.stops = true;
    }

    /// The snapshot of `tree`, which shares units with `previous`, and the merges made, for
    /// [`Snapshot::moved`]. Comparing is linear in the tree, indexing in what changed.
    pub fn append(
        &mut self,
        previous: Option<&Snapshot>,
        tree: &Tree,
        meta: Meta,
    ) -> (Snapshot, Vec<Merge>) {
        let mut hint = Some((0, 0));
        let mut parts = Vec::new();
        for unit in units(tree) {
            if self.stops {
                ensure();
            }
            let found = previous.and_then(|previous| {
                let (piece, at) = locate(previous, tree, &unit, hint)?;
                hint = Some((piece, at + 1));
                Some((previous, piece, at))
            });
            parts.push(self.compare(tree, unit, found, &meta));
        }
        let layout = match previous {
            None => Layout::Whole,
            Some(_) => Layout::ByLifetime,
        };
        self.assemble(tree, parts, layout, meta)
    }

    /// Shares the unit of the previous snapshot that was found for a unit of a tree, if they are equal.
    pub(super) fn compare(
        &mut self,
        tree: &Tree,
        unit: UnitRows,
        found: Option<(&Snapshot, usize, u32)>,
        meta: &Meta,
    ) -> UnitSource<'static> {
        let cycle = meta.cycle;
        // Whether the ttls of a session count down shows in its trees: after the first unit that is equal
        // with unchanged ttls, all ttls are stored as numbers.
        let mut ttls = match self.ttls {
            Ttls::Stored => Ttl::Stay,
            Ttls::Read | Ttls::Counting => Ttl::CountFrom(cycle),
        };
        if let Some((previous, piece, at)) = found {
            match compare_unit(tree, &unit, previous, piece, at, cycle) {
                Match::Shared(dead) => {
                    return UnitSource::Shared(previous.pieces()[piece].lacking(
                        at,
                        dead,
                        moment(meta),
                    ));
                }
                Match::StoredTtls if self.ttls != Ttls::Counting => {
                    self.ttls = Ttls::Stored;
                    ttls = Ttl::Stay;
                }
                Match::StoredTtls | Match::Different => {}
            }
        }
        let earlier = found.map(|(previous, piece, at)| {
            let segment = &previous.pieces()[piece].segment;
            (Arc::clone(segment), segment.unit_rows(at))
        });
        UnitSource::fresh(unit, ttls, earlier)
    }

    /// The snapshot of these units, in document order.
    pub(super) fn assemble(
        &self,
        tree: &Tree,
        parts: Vec<UnitSource<'_>>,
        layout: Layout,
        meta: Meta,
    ) -> (Snapshot, Vec<Merge>) {
        let moment = moment(&meta);
        let mut runs: Vec<UnitRun> = Vec::with_capacity(parts.len());
        let (mut open, mut merges) = (None, Vec::new());
        let mut gaps: Vec<(usize, u32)> = Vec::new();
        for part in parts {
            if self.stops {
                ensure();
            }
            match part {
                UnitSource::Shared(run) => {
                    flush(&mut open, &mut runs, &mut merges);
                    match gaps.last() {
                        Some((at, _)) if *at == runs.len() => runs.push(run),
                        _ => {
                            let next = next_run(runs.last_mut(), run, moment);
                            runs.extend(next);
                        }
                    }
                }
                UnitSource::Gap(turns) => {
                    flush(&mut open, &mut runs, &mut merges);
                    gaps.push((runs.len(), turns));
                }
                UnitSource::Fresh {
                    unit,
                    ttls,
                    version,
                    earlier,
                } => {
                    let group = group(unit.kind);
                    let other = |open: &OpenSegment| open.group != group;
                    if layout == Layout::ByLifetime && open.as_ref().is_some_and(other) {
                        flush(&mut open, &mut runs, &mut merges);
                    }
                    let builder = match &mut open {
                        Some(open) => &mut open.builder,
                        None => {
                            let tail = (self.merging && group == UnitKind::Turn && gaps.is_empty())
                                .then(|| short_tail(&mut runs, moment));
                            let begun = OpenSegment::begin(tree, layout, group, tail.flatten());
                            &mut open.insert(begun).builder
                        }
                    };
                    let earlier = earlier.as_ref().filter(|_| layout != Layout::Whole);
                    let earlier = earlier.and_then(|(segment, rows)| {
                        Earlier::find(segment, rows.clone(), tree, unit.rows.clone())
                    });
                    builder.reserve_for(tree, unit.rows.clone(), earlier.is_none());
                    builder.add_tree_unit(tree, unit.rows, unit.kind, version, ttls, earlier);
                }
            }
        }
        flush(&mut open, &mut runs, &mut merges);
        // A snapshot with gaps does not last.
        if self.merging && gaps.is_empty() {
            merges.extend(merge(&mut runs, moment));
        }
        (Snapshot::new(meta, runs).with_gaps(&gaps), merges)
    }
}

/// How the fresh units of a snapshot get segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Units of different lifetimes get different ones, as most of them are shared with later snapshots.
    ByLifetime,
    /// All get one, as the first snapshot of a session is read fastest.
    Together,
    /// As [`Layout::Together`]; they are all units of the tree, whose records are shared, not copied.
    Whole,
}

/// Where the units of a new snapshot come from.
pub(super) enum UnitSource<'a> {
    /// Units that are indexed already.
    Shared(UnitRun),
    /// A unit of the tree, to be indexed, with ttls of this form.
    Fresh {
        unit: UnitRows,
        ttls: Ttl<'a>,
        version: u64,
        /// Where the unit is in the snapshot before.
        earlier: Option<(Arc<Segment>, Range<u32>)>,
    },
    /// A number of turns that are left out here.
    Gap(u32),
}

impl<'a> UnitSource<'a> {
    /// A unit of the tree, which gets a version of its own.
    pub(super) fn fresh(
        unit: UnitRows,
        ttls: Ttl<'a>,
        earlier: Option<(Arc<Segment>, Range<u32>)>,
    ) -> Self {
        Self::Fresh {
            unit,
            ttls,
            version: NEXT_VERSION.fetch_add(1, Ordering::Relaxed),
            earlier,
        }
    }
}

/// The group of a kind; units of one group share a segment.
fn group(kind: UnitKind) -> UnitKind {
    if kind == UnitKind::Loose {
        UnitKind::Turn
    } else {
        kind
    }
}

/// A segment that units are added to.
struct OpenSegment {
    builder: Box<SegmentBuilder>,
    group: UnitKind,
    /// The run that it begins with.
    tail: Option<UnitRun>,
}

impl OpenSegment {
    fn begin(tree: &Tree, layout: Layout, group: UnitKind, tail: Option<UnitRun>) -> Self {
        let mut builder = SegmentBuilder::begin();
        if let Some(tail) = &tail {
            builder.add_run(&tail.segment, tail.units.clone());
        }
        match layout {
            Layout::Whole if tail.is_none() => builder.begin_whole(tree),
            _ => builder.begin_tree(tree),
        }
        Self {
            builder,
            group,
            tail,
        }
    }
}

fn flush(open: &mut Option<OpenSegment>, runs: &mut Vec<UnitRun>, merges: &mut Vec<Merge>) {
    if let Some(OpenSegment { builder, tail, .. }) = open.take() {
        let segment = Arc::new(builder.finish());
        merges.extend(tail.map(|tail| Merge::of_tail(tail, &segment)));
        let units = 0..segment.units().len() as u32;
        runs.push(UnitRun::new(segment, units));
    }
}

/// The units of a tree, in document order.
pub(super) fn units(tree: &Tree) -> Vec<UnitRows> {
    let unit = |kind, start: u32| UnitRows {
        kind,
        rows: start..tree.rows[start as usize].end,
    };
    let class = |row: u32| tree.rows[row as usize].class;
    let mut units = vec![UnitRows {
        kind: UnitKind::Preamble,
        rows: 0..1,
    }];
    for child in tree.children(0) {
        match class(child) {
            NodeClass::Sys => units[0].rows.end = tree.rows[child as usize].end,
            NodeClass::Seq => {
                units[0].rows.end = child + 1;
                units.extend(tree.children(child).map(|row| match class(row) {
                    NodeClass::Turn => unit(UnitKind::Turn, row),
                    _ => unit(UnitKind::Loose, row),
                }));
            }
            NodeClass::Head => units.push(unit(UnitKind::Head, child)),
            _ => units.push(unit(UnitKind::Rest, child)),
        }
    }
    units
}

/// The unit of the previous snapshot with the same kind and id, as its piece and its index in the
/// segment. Tries `hint`, where the last unit was found, and the next piece before a lookup.
pub(super) fn locate(
    previous: &Snapshot,
    tree: &Tree,
    unit: &UnitRows,
    hint: Option<(usize, u32)>,
) -> Option<(usize, u32)> {
    let id = tree.id(unit.rows.start);
    let matches = |piece: usize, at: u32| {
        let piece = previous.pieces().get(piece)?;
        let is_in = piece.units.contains(&at);
        let found = is_in.then(|| &piece.segment.units()[at as usize])?;
        (found.kind == unit.kind && piece.segment.id(found.start) == id).then_some(())
    };
    // Trees come in document order and mostly keep it, so the unit after the last hit is nearly always the
    // right one; an id lookup is needed only where something was put in, moved or removed.
    if let Some((piece, at)) = hint {
        if matches(piece, at).is_some() {
            return Some((piece, at));
        }
        if let Some(next) = previous.pieces().get(piece + 1)
            && matches(piece + 1, next.units.start).is_some()
        {
            return Some((piece + 1, next.units.start));
        }
    }
    let node = previous.find(id)?;
    let piece = node.piece() as usize;
    let at = previous.pieces()[piece].segment.unit_of(node.local);
    matches(piece, at).map(|()| (piece, at))
}

/// Compares a unit of a tree with unit `at` of a piece, row by row.
fn compare_unit(
    tree: &Tree,
    unit: &UnitRows,
    previous: &Snapshot,
    piece: usize,
    at: u32,
    cycle: i64,
) -> Match {
    let segment = &*previous.pieces()[piece].segment;
    let rows = segment.unit_rows(at);
    // Both sides are walked in document order. A row of the segment that the tree does not have must be the
    // root of a removed subtree of blocks, which is skipped as dead; anything else that differs ends the
    // comparison. So the walk is linear in the unit, and equal units are found without building anything.
    let mut dead = Vec::new();
    let mut ttl_moved = false;
    let mut ttl_stayed = true;
    let mut local = rows.start;
    for row in unit.rows.clone() {
        let wanted = &tree.rows[row as usize];
        let id = tree.id(row);
        // Skip removed rows: subtrees of blocks only, as removing a container may change the
        // implicit core of its turn.
        loop {
            if local >= rows.end {
                return Match::Different;
            }
            if segment.is_core(local) {
                local += 1;
                continue;
            }
            if segment.id(local) == id {
                break;
            }
            let below = local..segment.end[local as usize];
            local = below.end;
            if !below
                .clone()
                .all(|row| segment.class(row) == Some(NodeClass::Block))
            {
                return Match::Different;
            }
            dead.extend(below);
        }
        if !same_row(tree, row, segment, local, unit.kind) {
            return Match::Different;
        }
        if wanted.present.has(Present::TTL) {
            let here = Some(wanted.numbers[header::TTL]);
            ttl_moved |= segment.ttl(local, cycle) != here;
            ttl_stayed &= segment.ttl(local, previous.cycle()) == here;
        }
        local += 1;
    }
    while local < rows.end {
        if !segment.is_core(local) {
            if segment.class(local) != Some(NodeClass::Block) {
                return Match::Different;
            }
            dead.push(local);
        }
        local += 1;
    }
    if !ttl_moved {
        // Sharing a unit that lost most of its rows would keep them in memory.
        if dead.len() * 2 > rows.len() {
            Match::Different
        } else {
            Match::Shared(dead)
        }
    } else if ttl_stayed {
        Match::StoredTtls
    } else {
        Match::Different
    }
}

/// Whether two rows are equal except for the ttl.
fn same_row(tree: &Tree, row: u32, segment: &Segment, local: u32, kind: UnitKind) -> bool {
    let wanted = &tree.rows[row as usize];
    let same_text = |column: usize| {
        let own = match column {
            header::NODE_TYPE => segment.node_type(local),
            column => segment.texts[column].get(local),
        };
        tree.text(wanted, column) == own
    };
    let same_number = |(at, number): (usize, &i64)| {
        at == header::TTL || segment.numbers[at].get(local) == *number
    };
    // Equal levels in one order make equal shapes, so ends need no comparison, except that a
    // block or region with children differs from one without. The root and `^seq` end after the
    // preamble.
    let childless = kind == UnitKind::Preamble
        || (wanted.end == row + 1) == (segment.end[local as usize] == local + 1)
        || wanted.class == NodeClass::Turn
        || wanted.class == NodeClass::Head
        || wanted.class == NodeClass::Container;
    // Cheapest and most likely to differ first; the record, which has the content, comes last and is one
    // comparison of bytes.
    segment.class(local) == Some(wanted.class)
        && segment.present[local as usize] == wanted.present.0
        && segment.level.get(local) == i64::from(wanted.level)
        && childless
        && (0..header::TEXTS.len()).all(same_text)
        && wanted.numbers.iter().enumerate().all(same_number)
        && segment.record(local) == wanted.payload.get(&tree.payload)
}
