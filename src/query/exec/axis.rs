//! Axes: descendants and children of a set of rows.
//!
//! A subtree is a row range, so descendants are unions of ranges, and children are the rows of
//! such a range one level down. If a set contains every row of a level that has children, as in
//! most chains, posting lists of levels decide without reading single rows.

use std::ops::Range;

use super::cost::{is_long, marks_subtrees, walks_children};
use super::stats::RunInput;
use crate::index::{Bits, Posting, SnapshotPiece};
use crate::query::ir::Axis;
use crate::tree::NodeClass;

/// The nodes a step kept: rows of the window, and the root and `^seq` if they are before it.
#[derive(Clone, Debug)]
pub(super) struct NodeSet {
    /// Rows of the window, implicit cores included.
    pub(super) bits: Bits,
    /// The root, if it is before the window.
    pub(super) root: bool,
    /// The `^seq` node, if it is before the window.
    pub(super) seq: bool,
}

impl NodeSet {
    pub(super) fn is_empty(&self) -> bool {
        !self.root && !self.seq && self.bits.is_empty()
    }

    /// Number of nodes. Linear in the window.
    pub(super) fn count(&self) -> u64 {
        self.bits.count() as u64 + u64::from(self.root) + u64::from(self.seq)
    }
}

/// The rows of `window` on `axis` of `left`; `None` for all of them.
pub(super) fn reach(
    left: &NodeSet,
    axis: Axis,
    level: Option<u32>,
    window: Range<u32>,
    input: RunInput<'_>,
) -> Option<Bits> {
    match axis {
        // Every row is below the root.
        Axis::Descendant if left.root => None,
        Axis::Descendant => {
            let mut out = Bits::new(window.clone());
            if left.seq {
                let seq = input.snapshot.seq_rows();
                // A window inside `^seq` is below it as a whole.
                if seq.start <= window.start && window.end <= seq.end {
                    return None;
                }
                out.insert_range(seq);
            }
            descendants(&left.bits, &mut out, level, &window, input);
            Some(out)
        }
        Axis::Child => {
            let mut out = Bits::new(window.clone());
            if left.root {
                // The children of the root are level 1.
                fill_level(1, &mut out, &window, input);
            }
            if left.seq {
                out.or(&below_seq(&out, &window, input));
            }
            children(&left.bits, &mut out, level, &window, input);
            Some(out)
        }
    }
}

pub(super) fn descendants(
    left: &Bits,
    out: &mut Bits,
    level: Option<u32>,
    window: &Range<u32>,
    input: RunInput<'_>,
) {
    let snapshot = input.snapshot;
    let has_cores = has_cores(window, input);
    // The descendants of a whole level are all rows that are neither on it nor above it. What is left of deeper levels is
    // among them.
    if !has_cores
        && is_long(left.words().len())
        && let Some(level) = level.or_else(|| top_level(left, window, input))
        && holds_level(left, level, window, input)
    {
        let mut below = left.cleared();
        below.insert_range(window.clone());
        for piece in snapshot.pieces_in(window.clone()) {
            for above in (0..=level).filter_map(|level| piece.segment().at_level(level)) {
                above.remove_from(&mut below, piece.rows(), piece.shift());
            }
        }
        return out.or(&below);
    }
    // Many subtrees are marked in one pass over the words, few are walked.
    if !has_cores && marks_subtrees(left.count(), left.words().len()) {
        return fill_subtrees(left, out, window, input);
    }
    let mut next = window.start;
    for piece in snapshot.pieces_in(window.clone()) {
        let mut row = left.next(next.max(piece.start()));
        while let Some(at) = row
            && at < piece.end()
        {
            let local = at - piece.shift();
            if has_cores && piece.segment().is_core(local) {
                each_core_member(piece, local, |member, end| {
                    out.insert_range(member + piece.shift()..end + piece.shift());
                });
                row = left.next(at + 1);
                continue;
            }
            let end = end_of(piece, at, input);
            out.insert_range(at + 1..end);
            // Rows inside are covered.
            next = end;
            row = left.next(end.max(at + 1));
        }
    }
}

/// The level of the rows that are nearest to the root; `None` if it has no posting list.
fn top_level(left: &Bits, window: &Range<u32>, input: RunInput<'_>) -> Option<u32> {
    let pieces = input.snapshot.pieces_in(window.clone()).iter();
    let deepest = pieces.map(|piece| piece.segment().levels_indexed()).max()?;
    (0..deepest).find(|&level| {
        let mut own = left.cleared();
        fill_level(level, &mut own, window, input);
        own.and(left);
        !own.is_empty()
    })
}

/// Adds the descendants of many rows to `out`: marks where subtrees begin and end, then fills the
/// rows between in one pass over the words.
fn fill_subtrees(left: &Bits, out: &mut Bits, window: &Range<u32>, input: RunInput<'_>) {
    // A bit is flipped where a subtree begins and where it ends, so a row is inside if the number
    // of flips up to it is odd. Shifting by powers of two makes that a prefix sum modulo 2 of 64
    // bits at once; `inside` carries it to the next word. Nested subtrees are skipped, so marks of
    // two subtrees never interleave.
    let mut turns = left.cleared();
    let mut next = 0;
    for piece in input.snapshot.pieces_in(window.clone()) {
        left.for_each_in(piece.start()..piece.end(), |at| {
            // Rows inside an earlier subtree are covered.
            if at >= next {
                next = end_of(piece, at, input);
                turns.flip(at + 1);
                turns.flip(next);
            }
        });
    }
    let mut inside = 0;
    for (word, turns) in out.words_mut().iter_mut().zip(turns.words()) {
        let mut fill = *turns;
        for shift in [1, 2, 4, 8, 16, 32] {
            fill ^= fill << shift;
        }
        fill ^= inside;
        *word |= fill;
        inside = if fill >> 63 == 1 { u64::MAX } else { 0 };
    }
}

/// One past the last row of the subtree of a row of `piece`.
pub(super) fn end_of(piece: &SnapshotPiece, row: u32, input: RunInput<'_>) -> u32 {
    let local = row - piece.shift();
    // The subtrees of the root and of `^seq` go on in other segments.
    if local < 2 || Some(row) == input.snapshot.seq_row() {
        input.snapshot.end(row)
    } else {
        piece.segment().end_of(local) + piece.shift()
    }
}

/// Adds the children of `left` to `out`. The children of an implicit core are also children of
/// its turn (LANGUAGE §1).
pub(super) fn children(
    left: &Bits,
    out: &mut Bits,
    level: Option<u32>,
    window: &Range<u32>,
    input: RunInput<'_>,
) {
    let snapshot = input.snapshot;
    if left.is_empty() {
        return;
    }
    if walks_children(left) || has_cores(window, input) {
        return walk_children(left, out, window, input);
    }
    let deepest = snapshot
        .pieces_in(window.clone())
        .iter()
        .map(|piece| piece.segment().levels_indexed())
        .max()
        .unwrap_or(0);
    // All of the left context is on one level: its children are the rows of the next level inside
    // its subtrees.
    if let Some(level) = level
        && level + 1 < deepest
    {
        if holds_level(left, level, window, input) {
            return fill_level(level + 1, out, window, input);
        }
        let mut below = left.cleared();
        fill_level(level + 1, &mut below, window, input);
        let mut inside = left.cleared();
        descendants(left, &mut inside, Some(level), window, input);
        below.and(&inside);
        return out.or(&below);
    }
    // Otherwise level by level. `rest` is what no indexed level has; as long as no level took
    // anything, it is `left` itself.
    let mut rest: Option<Bits> = None;
    for level in 0..deepest.saturating_sub(1) {
        let mut own = left.cleared();
        fill_level(level, &mut own, window, input);
        own.and(left);
        if own.is_empty() {
            continue;
        }
        rest.get_or_insert_with(|| left.clone()).and_not(&own);
        let mut below = left.cleared();
        fill_level(level + 1, &mut below, window, input);
        if !holds_level(&own, level, window, input) {
            let mut inside = left.cleared();
            descendants(&own, &mut inside, Some(level), window, input);
            below.and(&inside);
        }
        out.or(&below);
    }
    // Rows on levels without posting lists.
    match rest {
        Some(rest) if !rest.is_empty() => walk_children(&rest, out, window, input),
        None => walk_children(left, out, window, input),
        Some(_) => {}
    }
}

fn walk_children(left: &Bits, out: &mut Bits, window: &Range<u32>, input: RunInput<'_>) {
    let snapshot = input.snapshot;
    for piece in snapshot.pieces_in(window.clone()) {
        let shift = piece.shift();
        let ends = piece.segment().ends();
        let mut row = left.next(piece.start());
        while let Some(at) = row
            && at < piece.end()
        {
            let local = at - shift;
            if piece.segment().is_core(local) {
                each_core_member(piece, local, |member, _| out.insert(member + shift));
            } else if at == 0 {
                fill_level(1, out, window, input);
            } else if Some(at) == snapshot.seq_row() {
                out.or(&below_seq(out, window, input));
            } else {
                // The next sibling begins where the subtree of this one ends. The row of a core
                // ends after its blocks, which are children of the turn as well, so they are not
                // passed over.
                let end = ends[local as usize];
                let mut child = local + 1;
                while child < end {
                    out.insert(child + shift);
                    child = if piece.segment().is_core(child) {
                        child + 1
                    } else {
                        ends[child as usize]
                    };
                }
            }
            row = left.next(at + 1);
        }
    }
}

/// Visits the blocks of an implicit core: rows of the segment and the ends of their subtrees.
pub(super) fn each_core_member(piece: &SnapshotPiece, core: u32, mut visit: impl FnMut(u32, u32)) {
    let segment = piece.segment();
    let end = segment.end_of(core);
    let mut child = core + 1;
    while child < end {
        let next = segment.end_of(child);
        if segment.class(child) == Some(NodeClass::Block) {
            visit(child, next);
        }
        child = next;
    }
}

/// Whether there may be implicit cores with nodes below them.
#[inline]
fn has_cores(window: &Range<u32>, input: RunInput<'_>) -> bool {
    let pieces = input.snapshot.pieces_in(window.clone());
    pieces
        .iter()
        .any(|piece| piece.segment().has_core_members())
}

/// Whether `left` contains every row of a level that has children.
fn holds_level(left: &Bits, level: u32, window: &Range<u32>, input: RunInput<'_>) -> bool {
    let pieces = input.snapshot.pieces_in(window.clone());
    pieces.iter().all(|piece| {
        let Some(posting) = piece.segment().at_level(level) else {
            return true;
        };
        // Nodes without children have nothing below them, so they may be missing.
        let inner = piece.segment().with_children();
        match (posting.dense_words(), inner.dense_words()) {
            (Some(level), Some(inner)) => holds_words(left, level, inner, window, piece),
            _ => holds_rows(left, posting, piece, input),
        }
    })
}

fn holds_rows(left: &Bits, level: &Posting, piece: &SnapshotPiece, input: RunInput<'_>) -> bool {
    let mut all = true;
    level.for_each_in(piece.rows(), |local| {
        let row = local + piece.shift();
        let is_leaf = piece.segment().end_of(local) == local + 1
            && row != 0
            && Some(row) != input.snapshot.seq_row();
        all &= is_leaf || left.contains(row);
    });
    all
}

/// [`holds_level`] in one piece, given one bit a row for the level and for rows with children.
fn holds_words(
    left: &Bits,
    level: &[u64],
    inner: &[u64],
    window: &Range<u32>,
    piece: &SnapshotPiece,
) -> bool {
    let start = piece.start().max(window.start) - piece.shift();
    let end = piece.end().min(window.end).saturating_sub(piece.shift());
    if start >= end {
        return true;
    }
    let (first, last) = (start / 64, (end - 1) / 64);
    let rows = first as usize..last as usize + 1;
    let at = (first + piece.shift() / 64 - left.first_word()) as usize;
    let (level, inner) = (&level[rows.clone()], &inner[rows.clone()]);
    let have = &left.words()[at..at + rows.len()];
    let words = level.iter().zip(inner).zip(have);
    let mut missing = words.map(|((level, inner), have)| level & inner & !have);
    let mask = |index| crate::index::mask(index, start, end);
    let ends = missing.next().map_or(0, |word| word & mask(first))
        | missing.next_back().map_or(0, |word| word & mask(last));
    // Branch-free, so that the compiler vectorises it.
    ends == 0 && missing.fold(0, |any, word| any | word) == 0
}

/// The children of `^seq`, as a bit set over the rows of `like`.
pub(super) fn below_seq(like: &Bits, window: &Range<u32>, input: RunInput<'_>) -> Bits {
    // Level 2 has the children of all regions; only those of `^seq` are wanted.
    let mut children = like.cleared();
    fill_level(2, &mut children, window, input);
    children.retain_range(input.snapshot.seq_rows());
    children
}

pub(super) fn fill_level(level: u32, out: &mut Bits, window: &Range<u32>, input: RunInput<'_>) {
    for piece in input.snapshot.pieces_in(window.clone()) {
        if let Some(posting) = piece.segment().at_level(level) {
            posting.or_into(out, piece.rows(), piece.shift());
        }
    }
}
