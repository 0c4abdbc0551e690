//! A snapshot: a short list of pieces of shared segments. This file has its row numbers and ranges;
//! [`super::view`] has its nodes.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::dead::{DeadRows, Moment, SeenDead, moment};
use super::{Bits, Segment, Unit, UnitKind, mask};
use crate::tree::{Meta, NONE, NodeClass};

/// A run of units that becomes a [`SnapshotPiece`].
#[derive(Clone, Debug)]
pub(super) struct UnitRun {
    pub(super) segment: Arc<Segment>,
    pub(super) units: Range<u32>,
    /// Dead rows of the segment, also outside of the units; those of the moment count.
    pub(super) dead: Option<Arc<DeadRows>>,
    /// Rows of the units that are dead as well; [`UnitRun::settle`] takes them up.
    pub(super) died: Vec<u32>,
}

impl UnitRun {
    pub(super) fn new(segment: Arc<Segment>, units: Range<u32>) -> Self {
        Self {
            segment,
            units,
            dead: None,
            died: Vec::new(),
        }
    }

    pub(super) fn rows(&self) -> Range<u32> {
        self.segment.rows_of(&self.units)
    }

    /// The rows that are in `dead` at a moment.
    pub(super) fn shared_dead(
        &self,
        at: Moment,
    ) -> impl Iterator<Item = (u32, Moment)> + Clone + '_ {
        let dead = self.dead.iter();
        dead.flat_map(move |dead| dead.within(self.rows(), at))
    }

    /// Adds a run that continues this one in a snapshot of this moment.
    pub(super) fn extend(&mut self, next: Self, at: Moment) {
        let none_in = |dead: &DeadRows, run: &Self| dead.within(run.rows(), at).next().is_none();
        match (&self.dead, &next.dead) {
            (None, None) => {}
            (Some(one), Some(other)) if Arc::ptr_eq(one, other) => {}
            (Some(dead), None) if none_in(dead, &next) => {}
            (None, Some(dead)) if none_in(dead, self) => self.dead = next.dead.clone(),
            _ => {
                let all = self.shared_dead(at).chain(next.shared_dead(at));
                let all: Vec<u32> = all.map(|(row, _)| row).collect();
                self.died.extend(all);
                self.dead = None;
            }
        }
        self.died.extend(next.died);
        self.units.end = next.units.end;
    }

    /// Brings all dead rows into `dead`, which is `None` if there are none; those that died now are of this moment.
    pub(super) fn settle(&mut self, at: Moment) {
        if !self.died.is_empty() {
            let mut rows: Vec<(u32, Moment)> = self.shared_dead(at).collect();
            rows.extend(self.died.drain(..).map(|row| (row, at)));
            rows.sort_unstable();
            self.dead = DeadRows::new(rows, self.segment.len());
        } else if self.shared_dead(at).next().is_none() {
            self.dead = None;
        }
    }
}

/// A run of units of one segment inside a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotPiece {
    pub(super) segment: Arc<Segment>,
    pub(super) units: Range<u32>,
    pub(super) rows: Range<u32>,
    /// The snapshot's row of `rows.start`.
    ///
    /// At least the segment's row and equal to it modulo 64, so that words of posting lists need no
    /// shifting. The row numbers between pieces are unused.
    pub(super) base: u32,
    /// Number of turns in the pieces before it.
    pub(super) turns_before: u32,
    /// Rows of the segment that were removed, with all their descendants; `None` if none of `rows` was. In a box
    /// because most pieces have none, and a session has many pieces.
    pub(super) dead: Option<Box<SeenDead>>,
}

impl SnapshotPiece {
    #[inline]
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    #[inline]
    pub fn units(&self) -> Range<u32> {
        self.units.clone()
    }

    #[inline]
    pub fn rows(&self) -> Range<u32> {
        self.rows.clone()
    }

    /// The snapshot's number of the first row.
    #[inline]
    pub fn start(&self) -> u32 {
        self.base
    }

    /// One past the snapshot's number of the last row.
    #[inline]
    pub fn end(&self) -> u32 {
        self.base + (self.rows.end - self.rows.start)
    }

    /// Snapshot row minus segment row; a multiple of 64.
    #[inline]
    pub fn shift(&self) -> u32 {
        self.base - self.rows.start
    }

    /// The snapshot's rows of a unit of the segment.
    pub(super) fn rows_of_unit(&self, unit: u32) -> Range<u32> {
        let rows = self.segment.unit_rows(unit);
        rows.start + self.shift()..rows.end + self.shift()
    }

    /// Whether all rows of the segment belong to the piece and none is dead.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.dead.is_none() && self.rows == (0..self.segment.len())
    }

    /// Whether a row of the segment was removed since the segment was built.
    #[inline]
    pub fn is_dead(&self, local: u32) -> bool {
        let dead = self.dead.as_ref();
        dead.is_some_and(|dead| dead.rows.contains(local, dead.at))
    }

    /// The dead rows among some rows of the segment, ascending.
    #[inline]
    pub fn dead_rows(&self, rows: Range<u32>) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let dead = self.dead.iter();
        let dead = dead.flat_map(move |dead| dead.rows.within(rows.clone(), dead.at));
        dead.map(|(row, _)| row)
    }

    /// The dead ones of the 64 rows of the segment from `start`, a bit each.
    #[inline]
    pub(crate) fn dead_word(&self, start: u32) -> u64 {
        let dead = self.dead.as_ref();
        dead.map_or(0, |dead| dead.rows.word_from(start, dead.at))
    }

    /// Removes the dead ones among some rows of the segment from a set of rows of the snapshot.
    #[inline]
    pub(crate) fn remove_dead(&self, rows: Range<u32>, out: &mut Bits) {
        if let Some(dead) = &self.dead {
            dead.rows.remove_from(out, rows, self.shift(), dead.at);
        }
    }

    /// A run of some of the units, in a snapshot of another moment: it lacks the same rows.
    pub(super) fn run(&self, units: Range<u32>, at: Moment) -> UnitRun {
        let mut run = UnitRun::new(Arc::clone(&self.segment), units);
        if let Some(dead) = &self.dead {
            if at == dead.at || dead.rows.between(at, dead.at).next().is_none() {
                run.dead = Some(Arc::clone(&dead.rows));
            } else {
                run.died = self.dead_rows(run.rows()).collect();
            }
        }
        run
    }

    /// A run of one unit without these rows, in a snapshot of another moment.
    pub(super) fn lacking(&self, unit: u32, rows: Vec<u32>, at: Moment) -> UnitRun {
        let mut run = self.run(unit..unit + 1, at);
        if rows.is_empty() && self.dead.is_none() {
            return run;
        }
        // Mostly the rows that were dead before are among them.
        let known = self.dead_rows(run.rows());
        let new: Vec<u32> = rows
            .iter()
            .copied()
            .filter(|row| !self.is_dead(*row))
            .collect();
        if run.dead.is_some() && known.count() + new.len() == rows.len() {
            run.died = new;
        } else {
            run.dead = None;
            run.died = rows;
        }
        run
    }
}

/// The rows of a snapshot that are in one word of one segment, a bit each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotWord {
    /// The nodes, without the root and `^seq`.
    pub(crate) nodes: u64,
    /// The rows below `^seq`.
    pub(crate) turns: u64,
    /// `^sys` and `^ah`.
    pub(crate) regions: u64,
    /// `^seq`.
    pub(crate) seq: u64,
}

/// An immutable tree: a committed or a working state. See [`History`](crate::History).
pub struct Snapshot {
    meta: Meta,
    pieces: Box<[SnapshotPiece]>,
    extent: Extent,
    all_have_depths: bool,
    /// Boxed, as most of the snapshots of a long session have none.
    word: Option<Box<SnapshotWord>>,
}

/// What the pieces of a snapshot have; while it is made, those so far.
#[derive(Debug, Default)]
struct Extent {
    /// One past the last row number.
    rows: u32,
    turns: u32,
    sys: Range<u32>,
    seq: Option<u32>,
    seq_end: u32,
    head: Range<u32>,
}

impl Extent {
    fn add(&mut self, piece: &SnapshotPiece) {
        self.rows = piece.end();
        // Units of a segment are sorted by rank: binary search. Most pieces have one rank only.
        let kinds = &piece.segment.units()[piece.units.start as usize..piece.units.end as usize];
        let ends = [0, 1, 2].map(|rank| {
            let is_below = |unit: &Unit| unit.kind.rank() <= rank;
            let below = match kinds {
                [.., last] if is_below(last) => kinds.len(),
                [first, ..] if !is_below(first) => 0,
                _ => kinds.partition_point(is_below),
            };
            piece.units.start + below as u32
        });
        let rows = |unit: u32| piece.rows_of_unit(unit);
        // The three ranks are one after the other in document order, in a piece as in a snapshot, so where
        // each begins gives the rows of the regions.
        let [preamble, turning, heads] = ends;
        if preamble > piece.units.start {
            let rows = rows(piece.units.start);
            self.sys = rows.start + 1..rows.end;
            let last = rows.end - 1 - piece.shift();
            if piece.segment.class(last) == Some(NodeClass::Seq) {
                self.seq = Some(rows.end - 1);
                self.seq_end = rows.end;
                self.sys.end -= 1;
            }
        }
        if turning > preamble {
            self.seq_end = rows(turning - 1).end;
        }
        if heads > turning {
            self.head = rows(turning);
        }
        if let (Some(first), Some(last)) = (kinds.first(), kinds.last()) {
            self.turns += last.turns_before - first.turns_before;
            self.turns += u32::from(last.kind == UnitKind::Turn);
        }
    }
}

/// Which one it is and its size.
impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Snapshot");
        out.field("cycle", &self.cycle())
            .field("working", &self.is_working())
            .field("nodes", &self.len());
        out.finish_non_exhaustive()
    }
}

impl Snapshot {
    /// The cycle; for a working state the newest committed one.
    pub fn cycle(&self) -> i64 {
        self.meta.cycle
    }

    /// Whether it is the working state.
    pub fn is_working(&self) -> bool {
        self.meta.working
    }
}

#[doc(hidden)]
impl Snapshot {
    /// Makes a snapshot of runs of units in document order, the preamble first. Linear in runs,
    /// logarithmic in their units.
    pub(super) fn new(meta: Meta, runs: Vec<UnitRun>) -> Self {
        Self::after(&[], meta, runs)
    }

    /// As [`Snapshot::new`], after the first pieces of a snapshot of the same moment.
    pub(super) fn after(
        first: &[SnapshotPiece],
        meta: Meta,
        runs: impl IntoIterator<Item = UnitRun, IntoIter: ExactSizeIterator>,
    ) -> Self {
        let runs = runs.into_iter();
        let mut pieces: Vec<SnapshotPiece> = Vec::with_capacity(first.len() + runs.len());
        let mut extent = Extent::default();
        for piece in first {
            extent.add(piece);
            pieces.push(piece.clone());
        }
        let moment = moment(&meta);
        for mut run in runs {
            if run.units.is_empty() {
                continue;
            }
            run.settle(moment);
            let rows = run.rows();
            // Row numbers of a piece are those of its segment plus a multiple of 64. So a word of a posting list
            // is used as it is, under another index. The gap of at most 63 numbers before a piece costs nothing:
            // no posting list has a row there.
            let base = extent.rows.max(rows.start);
            let base = base + (rows.start.wrapping_sub(base) % 64);
            let seen = |rows| Box::new(SeenDead { rows, at: moment });
            let piece = SnapshotPiece {
                units: run.units,
                rows,
                base,
                turns_before: extent.turns,
                dead: run.dead.map(seen),
                segment: run.segment,
            };
            extent.add(&piece);
            pieces.push(piece);
        }
        let is_end = [extent.sys.end, extent.seq_end, extent.head.end].contains(&extent.rows);
        let all_have_depths = is_end && !pieces.iter().any(|one| one.segment.has_loose_units());
        Self {
            all_have_depths,
            meta,
            pieces: pieces.into(),
            extent,
            word: None,
        }
        .with_word()
    }

    fn with_word(mut self) -> Self {
        self.word = self.one_word().map(Box::new);
        self
    }

    fn one_word(&self) -> Option<SnapshotWord> {
        let segment = self.pieces.first()?.segment();
        let mut pieces = self.pieces.iter();
        // An older snapshot lacks the turns before its head.
        if self.extent.rows > 64 || !pieces.all(|piece| Arc::ptr_eq(piece.segment(), segment)) {
            return None;
        }
        let bits = |rows: Range<u32>| mask(0, rows.start, rows.end);
        let first = |rows: &Range<u32>| bits(rows.start..rows.end.min(rows.start + 1));
        let seq = self.extent.seq.map_or(0, |row| 1 << row);
        let mut nodes = 0;
        for piece in &self.pieces {
            nodes |= bits(piece.rows());
            for row in piece.dead_rows(piece.rows()) {
                nodes &= !(1 << row);
            }
        }
        Some(SnapshotWord {
            nodes: nodes & !(1 | seq | segment.cores().word(0)),
            turns: bits(self.seq_rows()),
            regions: first(&self.extent.sys) | first(&self.extent.head),
            seq,
        })
    }

    /// The snapshot with this many turns left out before the pieces at these indexes, which ascend.
    /// Depths count them; they have no rows, and they must not be asked for.
    #[must_use]
    pub(super) fn with_gaps(mut self, gaps: &[(usize, u32)]) -> Self {
        for (at, turns) in gaps {
            for piece in self.pieces.iter_mut().skip(*at) {
                piece.turns_before += turns;
            }
            self.extent.turns += turns;
        }
        self
    }

    /// `spec_version` as JSON text.
    pub fn spec_version(&self) -> Option<&str> {
        self.meta.spec_version.as_deref()
    }

    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    #[inline]
    pub fn pieces(&self) -> &[SnapshotPiece] {
        &self.pieces
    }

    /// All rows as one word, and the first piece, if the snapshot is in one word of one segment.
    #[inline]
    pub(crate) fn as_word(&self) -> Option<(&SnapshotPiece, &SnapshotWord)> {
        Some((self.pieces.first()?, self.word.as_deref()?))
    }

    /// One past the last row number.
    pub fn end_row(&self) -> u32 {
        self.extent.rows
    }

    /// Whether all nodes but the root and `^seq` have a depth: none is loose, or in another child of the root.
    #[inline]
    pub(crate) fn all_have_depths(&self) -> bool {
        self.all_have_depths
    }

    /// Number of turns directly under `^seq`.
    pub fn turns(&self) -> u32 {
        self.extent.turns
    }

    pub fn sys_rows(&self) -> Range<u32> {
        self.extent.sys.clone()
    }

    pub fn head_rows(&self) -> Range<u32> {
        self.extent.head.clone()
    }

    pub fn seq_row(&self) -> Option<u32> {
        self.extent.seq
    }

    pub fn seq_rows(&self) -> Range<u32> {
        self.extent
            .seq
            .map_or(0..0, |seq| seq + 1..self.extent.seq_end.max(seq + 1))
    }

    /// The rows of the turns of depths `low..=high`, with loose nodes between them; empty if there
    /// are none. Logarithmic in pieces and, with loose nodes, in units.
    pub fn turn_rows(&self, low: i64, high: i64) -> Range<u32> {
        let turns = i64::from(self.extent.turns);
        let (low, high) = (low.max(1), high.min(turns));
        if low > high {
            return 0..0;
        }
        let (oldest, newest) = ((turns - high) as u32, (turns - low) as u32);
        // Depth 1 is the last turn, so depth d is the turn at index T - d; a range of depths is the rows from
        // its oldest turn to its newest.
        let rows = self.turn(newest);
        if oldest == newest {
            return rows;
        }
        self.turn(oldest).start..rows.end
    }

    /// The rows of the turn after `index` others.
    fn turn(&self, index: u32) -> Range<u32> {
        let piece = self
            .pieces
            .partition_point(|piece| piece.turns_before <= index)
            - 1;
        // A piece without turns has the same count as the next one, which is taken.
        let piece = &self.pieces[piece];
        let units = piece.segment.units();
        let first = units[piece.units.start as usize].turns_before;
        let wanted = first + (index - piece.turns_before);
        let direct = piece.units.start + (index - piece.turns_before);
        // Mostly there are no loose units, so the index gives the unit, after the preamble if
        // there is one.
        let is_it = |unit: u32| {
            units
                .get(unit as usize)
                .is_some_and(|unit| unit.turns_before == wanted && unit.kind == UnitKind::Turn)
        };
        let unit = if is_it(direct) {
            direct
        } else if is_it(direct + 1) {
            direct + 1
        } else {
            let after = units.partition_point(|unit| {
                unit.turns_before + u32::from(unit.kind == UnitKind::Turn) <= wanted
            });
            // A turn that was left out is in no segment.
            after.min(units.len() - 1) as u32
        };
        piece.rows_of_unit(unit)
    }

    /// Index of the piece of a row. Logarithmic in pieces.
    #[inline]
    pub fn piece_of(&self, row: u32) -> usize {
        self.pieces
            .partition_point(|piece| piece.base <= row)
            .saturating_sub(1)
    }

    /// The pieces that overlap `rows`.
    #[inline]
    pub fn pieces_in(&self, rows: Range<u32>) -> &[SnapshotPiece] {
        // All pieces are the frequent case, and the test is cheaper than two searches.
        if let [first, rest @ ..] = &*self.pieces
            && rest.first().is_none_or(|second| rows.start < second.base)
            && rest.last().unwrap_or(first).base < rows.end
        {
            return &self.pieces;
        }
        let start = self.piece_of(rows.start);
        let mut end = start;
        while end < self.pieces.len() && self.pieces[end].base < rows.end {
            end += 1;
        }
        &self.pieces[start..end]
    }

    /// The first row number at or after `row` that belongs to a piece.
    pub(crate) fn next_row(&self, row: u32) -> Option<u32> {
        let at = self.piece_of(row);
        let piece = self.pieces.get(at)?;
        if row < piece.end() {
            return Some(row.max(piece.base));
        }
        self.pieces.get(at + 1).map(|piece| piece.base)
    }

    /// A reader of ids, fast for rows in ascending order.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            snapshot: self,
            segment: None,
            rows: 0..0,
            shift: 0,
        }
    }

    /// The row of the parent; `None` for the root.
    pub fn parent(&self, row: u32) -> Option<u32> {
        let piece = &self.pieces[self.piece_of(row)];
        let local = row - piece.shift();
        match piece.segment.parent[local as usize] {
            NONE => self.outer_parent(row),
            parent => Some(parent + piece.shift()),
        }
    }

    /// The parent of the first row of a unit: `^seq` for its children, else the root.
    pub(crate) fn outer_parent(&self, row: u32) -> Option<u32> {
        let seq = self.extent.seq.filter(|_| self.seq_rows().contains(&row));
        (row > 0).then(|| seq.unwrap_or(0))
    }

    /// One past the last row of a subtree.
    pub fn end(&self, row: u32) -> u32 {
        if row == 0 {
            return self.extent.rows;
        }
        if self.extent.seq == Some(row) {
            return self.extent.seq_end.max(row + 1);
        }
        let piece = &self.pieces[self.piece_of(row)];
        piece.segment.end[(row - piece.shift()) as usize] + piece.shift()
    }

    /// The depth of a row: -1 in `^sys`, 0 in `^ah`, 1, 2, … in turns from the newest.
    pub fn depth(&self, row: u32) -> Option<i64> {
        if self.extent.sys.contains(&row) {
            return Some(-1);
        }
        if self.extent.head.contains(&row) {
            return Some(0);
        }
        let piece = &self.pieces[self.piece_of(row)];
        let units = piece.segment.units();
        let unit = units[piece.segment.unit_of(row - piece.shift()) as usize];
        if unit.kind != UnitKind::Turn {
            return None;
        }
        let first = units[piece.units.start as usize].turns_before;
        let index = piece.turns_before + (unit.turns_before - first);
        Some(i64::from(self.extent.turns - index))
    }

    pub fn is_dead(&self, row: u32) -> bool {
        let piece = &self.pieces[self.piece_of(row)];
        piece.is_dead(row - piece.shift())
    }

    /// Number of nodes. Linear in the words of pieces that are part of a segment.
    pub fn len(&self) -> usize {
        let nodes = self.pieces.iter().map(|piece| {
            let mut hidden = piece.dead_rows(piece.rows()).count();
            let cores = piece.segment.cores();
            if piece.is_whole() {
                hidden += cores.len() as usize;
            } else {
                cores.for_each_in(piece.rows.clone(), |row| {
                    // Dead cores are counted already.
                    hidden += usize::from(!piece.is_dead(row));
                });
            }
            piece.rows.len() - hidden
        });
        nodes.sum()
    }

    /// Whether there are no nodes: never, as every tree has a root.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// A reader of ids that caches the piece of the last row.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    snapshot: &'a Snapshot,
    segment: Option<&'a Segment>,
    rows: Range<u32>,
    shift: u32,
}

impl<'a> Cursor<'a> {
    /// The id of a row that belongs to a piece.
    #[inline]
    pub fn id(&mut self, row: u32) -> &'a str {
        if let Some(segment) = self.segment
            && self.rows.contains(&row)
        {
            return segment.id(row - self.shift);
        }
        // Rows come ascending, so one search a piece serves all rows of it.
        let piece = &self.snapshot.pieces[self.snapshot.piece_of(row)];
        self.segment = Some(&piece.segment);
        self.rows = piece.base..piece.end();
        self.shift = piece.shift();
        piece.segment.id(row - self.shift)
    }
}
