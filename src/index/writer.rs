//! Making snapshots: what is unchanged is found again and shared, the rest is indexed.
//!
//! A [`Writer`] takes trees in the order of their cycles: whole ones here, differences in
//! [`super::commit`]. Each unit of a tree is compared, row by row, with the unit of the same id in
//! the snapshot before; equal ones are shared, ones that only lost blocks are shared with those
//! rows masked, and the others are indexed anew.
//! Small neighbouring segments are merged geometrically, as a log-structured merge tree does, so
//! that T commits leave O(log T) pieces and every row is copied O(log T) times.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use roaring::RoaringBitmap;

use super::snapshot::Run;
use super::{Meta, Segment, SegmentBuilder, Snapshot, UnitKind};
use crate::tree::{NodeClass, Present, Tree};

/// Versions are unique in the process, so segments of any session can be told apart.
static NEXT_VERSION: AtomicU64 = AtomicU64::new(1);

/// Makes the snapshots of one session.
#[derive(Debug)]
pub struct Writer {
    /// Whether ttls were seen to stay as stored rather than to count down.
    stored_ttls: bool,
    /// Whether segments are merged.
    merging: bool,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            stored_ttls: false,
            merging: true,
        }
    }
}

/// A unit of a tree.
#[derive(Clone, Debug)]
pub(super) struct UnitRows {
    pub(super) kind: UnitKind,
    pub(super) rows: Range<u32>,
}

/// How a unit of a tree stands to one of the snapshot before.
enum Match {
    /// Equal, but for these rows of the segment, which are gone.
    Shared(Vec<u32>),
    /// Equal but for ttls, all of which stayed as they were.
    StoredTtls,
    /// Different.
    Different,
}

impl Writer {
    /// A writer that merges segments.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A writer that leaves segments as they come, for tests that compare the two.
    #[must_use]
    pub fn without_merging() -> Self {
        Self {
            merging: false,
            ..Self::default()
        }
    }

    /// The snapshot of `tree`, sharing what it can with `previous`. Also gives the merges made,
    /// for [`Snapshot::moved`].
    ///
    /// Comparing is linear in the tree; indexing in what changed.
    pub fn append(
        &mut self,
        previous: Option<&Snapshot>,
        tree: &Tree,
        meta: Meta,
    ) -> (Snapshot, Vec<Merge>) {
        let mut hint = Some((0, 0));
        let mut parts = Vec::new();
        for unit in units(tree) {
            let found = previous.and_then(|previous| {
                let (piece, at) = locate(previous, tree, &unit, hint)?;
                hint = Some((piece, at + 1));
                Some((previous, piece, at))
            });
            parts.push(self.part(tree, unit, found, meta.cycle));
        }
        self.assemble(tree, parts, previous.is_none(), meta)
    }

    /// Compares a unit of a tree with the one found for it in the snapshot before, and decides
    /// whether it is shared.
    pub(super) fn part(
        &mut self,
        tree: &Tree,
        unit: UnitRows,
        found: Option<(&Snapshot, usize, u32)>,
        cycle: i64,
    ) -> Part {
        let mut ttl_cycle = (!self.stored_ttls).then_some(cycle);
        if let Some((previous, piece, at)) = found {
            match compare(tree, &unit, previous, piece, at, cycle) {
                Match::Shared(dead) => {
                    let dead = (!dead.is_empty()).then(|| Arc::new(dead.into_iter().collect()));
                    let segment = &previous.pieces()[piece].segment;
                    return Part::Shared((Arc::clone(segment), at..at + 1, dead));
                }
                Match::StoredTtls => {
                    self.stored_ttls = true;
                    ttl_cycle = None;
                }
                Match::Different => {}
            }
        }
        Part::Fresh { unit, ttl_cycle }
    }

    /// The snapshot of these parts, in document order; fresh ones are units of `tree`. `first`
    /// says that the session has none before.
    pub(super) fn assemble(
        &self,
        tree: &Tree,
        parts: Vec<Part>,
        first: bool,
        meta: Meta,
    ) -> (Snapshot, Vec<Merge>) {
        let mut runs: Vec<Run> = Vec::new();
        let mut builder: Option<(SegmentBuilder, UnitKind)> = None;
        for part in parts {
            match part {
                Part::Shared(run) => {
                    flush(&mut builder, &mut runs);
                    push_run(&mut runs, run);
                }
                Part::Fresh { unit, ttl_cycle } => {
                    // Units that live differently long do not share a segment, but for the
                    // first snapshot, which is best read in one piece.
                    let group = group(unit.kind);
                    if builder
                        .as_ref()
                        .is_some_and(|(_, current)| !first && *current != group)
                    {
                        flush(&mut builder, &mut runs);
                    }
                    let (builder, _) = builder.get_or_insert_with(|| {
                        let mut builder = SegmentBuilder::new();
                        if first {
                            builder.begin_whole(tree);
                        } else {
                            builder.begin_tree(tree);
                        }
                        (builder, group)
                    });
                    let version = NEXT_VERSION.fetch_add(1, Ordering::Relaxed);
                    builder.add_tree_unit(tree, unit.rows, unit.kind, version, ttl_cycle);
                }
            }
        }
        flush(&mut builder, &mut runs);
        let merges = if self.merging {
            merge(&mut runs)
        } else {
            Vec::new()
        };
        (Snapshot::new(meta, runs), merges)
    }
}

/// Part of a snapshot to be.
pub(super) enum Part {
    /// Units of the snapshot before.
    Shared(Run),
    /// A unit to be indexed, its ttls counting from this cycle, or kept as stored.
    Fresh {
        unit: UnitRows,
        ttl_cycle: Option<i64>,
    },
}

/// Units of one group go into one segment.
fn group(kind: UnitKind) -> UnitKind {
    if kind == UnitKind::Loose {
        UnitKind::Turn
    } else {
        kind
    }
}

fn flush(builder: &mut Option<(SegmentBuilder, UnitKind)>, runs: &mut Vec<Run>) {
    if let Some((builder, _)) = builder.take() {
        let segment = Arc::new(builder.finish());
        let units = 0..segment.units().len() as u32;
        runs.push((segment, units, None));
    }
}

/// Adds a run, to the last one where it continues that.
fn push_run(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some((segment, units, masked))
            if Arc::ptr_eq(segment, &run.0) && units.end == run.1.start =>
        {
            units.end = run.1.end;
            if let Some(dead) = run.2 {
                *Arc::make_mut(masked.get_or_insert_default()) |= &*dead;
            }
        }
        _ => runs.push(run),
    }
}

/// The units of a tree, in document order.
pub(super) fn units(tree: &Tree) -> Vec<UnitRows> {
    let mut units = Vec::new();
    let end = tree.rows.len() as u32;
    let mut at = 1;
    let mut preamble_end = 1;
    let mut after = Vec::new();
    while at < end {
        let row = &tree.rows[at as usize];
        match row.class {
            NodeClass::Sys => preamble_end = row.end,
            NodeClass::Seq => {
                preamble_end = at + 1;
                let mut child = at + 1;
                while child < row.end {
                    let node = &tree.rows[child as usize];
                    let kind = if node.class == NodeClass::Turn {
                        UnitKind::Turn
                    } else {
                        UnitKind::Loose
                    };
                    after.push(UnitRows {
                        kind,
                        rows: child..node.end,
                    });
                    child = node.end;
                }
            }
            NodeClass::Head => after.push(UnitRows {
                kind: UnitKind::Head,
                rows: at..row.end,
            }),
            _ => after.push(UnitRows {
                kind: UnitKind::Rest,
                rows: at..row.end,
            }),
        }
        at = row.end;
    }
    units.push(UnitRows {
        kind: UnitKind::Preamble,
        rows: 0..preamble_end,
    });
    units.append(&mut after);
    units
}

/// The unit of the snapshot before with the same kind and id: where the last one found leads,
/// else by look-up.
pub(super) fn locate(
    previous: &Snapshot,
    tree: &Tree,
    unit: &UnitRows,
    hint: Option<(usize, u32)>,
) -> Option<(usize, u32)> {
    let id = tree.id(unit.rows.start);
    let matches = |piece: usize, at: u32| {
        let piece = previous.pieces().get(piece)?;
        if !piece.units.contains(&at) {
            return None;
        }
        let found = &piece.segment.units()[at as usize];
        (found.kind == unit.kind && piece.segment.id(found.start) == id).then_some(())
    };
    if let Some((piece, at)) = hint {
        if matches(piece, at).is_some() {
            return Some((piece, at));
        }
        let next = previous
            .pieces()
            .get(piece + 1)
            .map(|piece| piece.units.start);
        if let Some(first) = next
            && matches(piece + 1, first).is_some()
        {
            return Some((piece + 1, first));
        }
    }
    let node = previous.find(id)?;
    let piece = node.piece() as usize;
    let at = previous.pieces()[piece].segment.unit_of(node.local);
    matches(piece, at).map(|()| (piece, at))
}

/// Compares a unit of a tree with a unit of a snapshot, row by row.
fn compare(
    tree: &Tree,
    unit: &UnitRows,
    previous: &Snapshot,
    piece: usize,
    at: u32,
    cycle: i64,
) -> Match {
    let segment = &*previous.pieces()[piece].segment;
    let rows = segment.unit_rows(at);
    let mut dead = Vec::new();
    let mut ttl_moved = false;
    let mut ttl_stayed = true;
    let mut local = rows.start;
    for row in unit.rows.clone() {
        let wanted = &tree.rows[row as usize];
        let id = tree.id(row);
        // Rows that are gone: whole subtrees of blocks. A container that goes may leave a turn
        // without a core, which the segment's rows would not show.
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
            let here = Some(wanted.ttl);
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
        // Sharing a unit that lost most of its rows would keep them all.
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

/// Whether everything but the ttl is equal.
fn same_row(tree: &Tree, row: u32, segment: &Segment, local: u32, kind: UnitKind) -> bool {
    let wanted = &tree.rows[row as usize];
    let text = |dictionary: &'_ crate::tree::Dictionary, code: u32, own: Option<&str>| {
        dictionary.get(code) == own
    };
    let node_type = segment
        .types
        .code(local)
        .filter(|&code| !segment.type_implied[code as usize])
        .map(|code| &*segment.types.values()[code as usize]);
    // The root's and `^seq`'s subtrees reach beyond the preamble, so only others' ends compare;
    // equal levels in one order make equal shapes.
    let childless = kind == UnitKind::Preamble
        || (wanted.end == row + 1) == (segment.end[local as usize] == local + 1)
        || wanted.class == NodeClass::Turn
        || wanted.class == NodeClass::Head
        || wanted.class == NodeClass::Container;
    segment.class(local) == Some(wanted.class)
        && segment.present[local as usize] == wanted.present.0
        && segment.level.get(local) == i64::from(wanted.level)
        && childless
        && text(&tree.types, wanted.node_type, node_type)
        && text(&tree.roles, wanted.role, segment.roles.get(local))
        && text(&tree.kinds, wanted.kind, segment.kinds.get(local))
        && text(&tree.keys, wanted.key, segment.keys.get(local))
        && segment.offset.get(local) == wanted.offset
        && segment.priority.get(local) == wanted.priority
        && segment.cycle.get(local) == wanted.cycle
        && segment.created_at_ns.get(local) == wanted.created_at_ns
        && segment.creation_index.get(local) == wanted.creation_index
        && segment.payload(local)
            == &tree.payload[wanted.payload.0 as usize..wanted.payload.1 as usize]
}

/// What a merge did: runs of units that now stand in one segment.
#[derive(Clone, Debug)]
pub struct Merge {
    /// Where the units stood.
    pub inputs: Vec<(Arc<Segment>, Range<u32>)>,
    /// Where they stand now, from its first unit on.
    pub output: Arc<Segment>,
}

/// How many pieces a snapshot of so many turns may have.
fn most_pieces(turns: usize) -> usize {
    2 * (usize::BITS - turns.leading_zeros()) as usize + 8
}

/// Merges runs of turns: the newest ones while the one before is not at least twice as large,
/// then, while there are too many, the two smallest neighbours.
fn merge(runs: &mut Vec<Run>) -> Vec<Merge> {
    let rows = |run: &Run| {
        run.0.unit_rows(run.1.end - 1).end as usize - run.0.unit_rows(run.1.start).start as usize
    };
    // Units of a segment stand by rank: the first and the last tell of all.
    let turns = |run: &Run| {
        let rank = |unit: u32| run.0.units()[unit as usize].kind.rank();
        rank(run.1.start) == UnitKind::Turn.rank() && rank(run.1.end - 1) == UnitKind::Turn.rank()
    };
    let mut merges = Vec::new();
    loop {
        let last = runs.iter().rposition(turns);
        let Some(last) = last.filter(|&last| last > 0 && turns(&runs[last - 1])) else {
            break;
        };
        if rows(&runs[last - 1]) >= 2 * rows(&runs[last]) {
            break;
        }
        merges.push(join(runs, last - 1));
    }
    let count: usize = runs.iter().map(|run| run.1.len()).sum();
    while runs.len() > most_pieces(count) {
        let smallest = (1..runs.len())
            .filter(|&at| turns(&runs[at - 1]) && turns(&runs[at]))
            .min_by_key(|&at| rows(&runs[at - 1]) + rows(&runs[at]));
        let Some(at) = smallest else { break };
        merges.push(join(runs, at - 1));
    }
    merges
}

/// Replaces runs `at` and `at + 1` by one of a new segment.
fn join(runs: &mut Vec<Run>, at: usize) -> Merge {
    let mut builder = SegmentBuilder::new();
    let mut dead = RoaringBitmap::new();
    let mut inputs = Vec::with_capacity(2);
    for (segment, units, masked) in runs.drain(at..at + 2) {
        builder.begin_segment(&segment);
        let start = segment.unit_rows(units.start).start;
        if let Some(masked) = masked {
            let end = segment.unit_rows(units.end - 1).end;
            dead.extend(
                masked
                    .range(start..end)
                    .map(|row| row - start + builder.len()),
            );
        }
        for unit in units.clone() {
            builder.add_segment_unit(&segment, unit);
        }
        inputs.push((segment, units));
    }
    let output = Arc::new(builder.finish());
    let units = 0..output.units().len() as u32;
    let dead = (!dead.is_empty()).then(|| Arc::new(dead));
    runs.insert(at, (Arc::clone(&output), units, dead));
    Merge { inputs, output }
}

impl Snapshot {
    /// The same snapshot over merged segments, so that the merged ones need not be kept; `None`
    /// where it has none of them.
    #[must_use]
    pub fn moved(&self, merges: &[Merge]) -> Option<Self> {
        let mut runs: Vec<Run> = self
            .pieces()
            .iter()
            .map(|piece| {
                (
                    Arc::clone(&piece.segment),
                    piece.units.clone(),
                    piece.dead.clone(),
                )
            })
            .collect();
        let mut changed = false;
        for merge in merges {
            let mut first = 0;
            for (segment, units) in &merge.inputs {
                for run in &mut runs {
                    let inside = units.start <= run.1.start && run.1.end <= units.end;
                    if !Arc::ptr_eq(&run.0, segment) || !inside {
                        continue;
                    }
                    changed = true;
                    let moved = run.1.start - units.start + first..run.1.end - units.start + first;
                    let (from, to) = (
                        segment.unit_rows(run.1.start).start,
                        merge.output.unit_rows(moved.start).start,
                    );
                    let end = segment.unit_rows(run.1.end - 1).end;
                    if let Some(dead) = run.2.take() {
                        let dead: RoaringBitmap =
                            dead.range(from..end).map(|row| row - from + to).collect();
                        run.2 = Some(Arc::new(dead));
                    }
                    run.0 = Arc::clone(&merge.output);
                    run.1 = moved;
                }
                first += units.len() as u32;
            }
            // What is now neighbouring in one segment is one piece.
            let mut joined: Vec<Run> = Vec::with_capacity(runs.len());
            for run in runs {
                push_run(&mut joined, run);
            }
            runs = joined;
        }
        changed.then(|| Self::new(self.meta().clone(), runs))
    }
}
