//! Axes: the rows below a set of rows.
//!
//! A subtree is an interval of rows, so descendants are filled intervals. Children are the rows
//! of an interval one level down; where a set holds every row of a level that has children,
//! which is how most chains go, neither needs a look at single rows.

use std::ops::Range;

use super::access::Scope;
use crate::index::{Bits, Piece, Posting, each_word, zip_words};
use crate::ir::Axis;
use crate::tree::NodeClass;

/// Up to this many rows are walked one by one.
const FEW: usize = 48;

/// The nodes a step kept: rows of the window, and the root and `^seq` where they stand outside.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    /// Rows of the window, implicit cores included.
    pub(super) bits: Bits,
    /// The root, which stands before the window.
    pub(super) root: bool,
    /// The `^seq` node, which stands before the window.
    pub(super) seq: bool,
}

impl Nodes {
    pub(super) fn is_empty(&self) -> bool {
        !self.root && !self.seq && self.bits.is_empty()
    }

    /// How many nodes. Linear in the window.
    pub(super) fn count(&self) -> u64 {
        self.bits.count() as u64 + u64::from(self.root) + u64::from(self.seq)
    }
}

/// The rows of `window` that hang from `left` by `axis`; `None` for all of them.
pub(super) fn reach(
    left: &Nodes,
    axis: Axis,
    level: Option<u32>,
    window: Range<u32>,
    scope: Scope<'_>,
) -> Option<Bits> {
    match axis {
        Axis::Descendant if left.root => None,
        Axis::Descendant => {
            let mut out = Bits::new(window.clone());
            if left.seq {
                let seq = scope.snapshot.seq_rows();
                if seq.start <= window.start && window.end <= seq.end {
                    return None;
                }
                out.insert_range(seq);
            }
            descendants(&left.bits, &mut out, level, &window, scope);
            Some(out)
        }
        Axis::Child => {
            let mut out = Bits::new(window.clone());
            if left.root {
                fill_level(1, &mut out, &window, scope);
            }
            if left.seq {
                let mut turns = out.cleared();
                fill_level(2, &mut turns, &window, scope);
                turns.retain_range(scope.snapshot.seq_rows());
                out.or(&turns);
            }
            children(&left.bits, &mut out, level, &window, scope);
            Some(out)
        }
    }
}

/// Keeps the rows of `bits` that hang from `left` by `axis`, where whole levels tell which those
/// are. Where they do not, nothing is done and the answer is `false`.
pub(super) fn narrow_by_level(
    left: &Nodes,
    axis: Axis,
    level: Option<u32>,
    bits: &mut Bits,
    window: &Range<u32>,
    scope: Scope<'_>,
) -> bool {
    if axis != Axis::Child || left.root {
        return false;
    }
    let below = if left.seq {
        let seq = scope.snapshot.seq_rows();
        if !left.bits.is_empty() || window.start < seq.start || seq.end < window.end {
            return false;
        }
        2
    } else {
        match level {
            Some(level)
                if left.bits.words().len() > 8
                    && !has_cores(window, scope)
                    && holds_level(&left.bits, level, window, scope) =>
            {
                level + 1
            }
            _ => return false,
        }
    };
    let pieces = scope.snapshot.pieces_in(window.clone());
    // A level without a posting has no rows, or lies deeper than postings go.
    let known = |piece: &Piece| piece.segment.levels.len() > below as usize;
    if !pieces.iter().all(known) {
        return false;
    }
    for piece in pieces {
        let posting = &piece.segment.levels[below as usize];
        if let Posting::Dense { words, .. } = posting
            && words.len() as u32 * 64 >= piece.rows.end
        {
            zip_words(
                bits,
                words,
                piece.rows.clone(),
                piece.shift(),
                |word, posting, mask| *word &= posting | !mask,
            );
            continue;
        }
        each_word(
            bits,
            piece.rows.clone(),
            piece.shift(),
            |index, mask, word| {
                *word &= posting.word(index) | !mask;
            },
        );
    }
    true
}

/// Puts the rows below `left` into `out`.
pub(super) fn descendants(
    left: &Bits,
    out: &mut Bits,
    level: Option<u32>,
    window: &Range<u32>,
    scope: Scope<'_>,
) {
    let snapshot = scope.snapshot;
    let has_cores = has_cores(window, scope);
    if !has_cores
        && let Some(level) = level
        && left.words().len() > 8
        && holds_level(left, level, window, scope)
    {
        let mut above = left.cleared();
        for level in 0..=level {
            fill_level(level, &mut above, window, scope);
        }
        let mut all = left.cleared();
        all.insert_range(window.clone());
        all.and_not(&above);
        out.or(&all);
        return;
    }
    if !has_cores && left.count() * 8 >= left.words().len() {
        return fill_subtrees(left, out, window, scope);
    }
    let mut next = window.start;
    for piece in snapshot.pieces_in(window.clone()) {
        let mut row = left.next(next.max(piece.base));
        while let Some(at) = row
            && at < piece.end()
        {
            let local = at - piece.shift();
            if has_cores && piece.segment.is_virtual(local) {
                each_core_member(piece, local, |member, end| {
                    out.insert_range(member + piece.shift()..end + piece.shift());
                });
                row = left.next(at + 1);
                continue;
            }
            let end = end_of(piece, at, scope);
            out.insert_range(at + 1..end);
            // What lies inside is covered.
            next = end;
            row = left.next(end.max(at + 1));
        }
    }
}

/// Puts the rows below many rows into `out`. Where subtrees begin and end is marked first; one
/// pass over the words then fills what lies between.
fn fill_subtrees(left: &Bits, out: &mut Bits, window: &Range<u32>, scope: Scope<'_>) {
    let mut turns = left.cleared();
    let mut next = 0;
    for piece in scope.snapshot.pieces_in(window.clone()) {
        left.for_each_in(piece.base..piece.end(), |at| {
            // What lies inside an earlier subtree is covered.
            if at >= next {
                next = end_of(piece, at, scope);
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
fn end_of(piece: &Piece, row: u32, scope: Scope<'_>) -> u32 {
    let local = row - piece.shift();
    if local < 2 || Some(row) == scope.snapshot.seq_row() {
        scope.snapshot.end(row)
    } else {
        piece.segment.end[local as usize] + piece.shift()
    }
}

/// Puts the rows directly below `left` into `out`. The children of an implicit core count as
/// children of its turn too (LANGUAGE §1).
pub(super) fn children(
    left: &Bits,
    out: &mut Bits,
    level: Option<u32>,
    window: &Range<u32>,
    scope: Scope<'_>,
) {
    let snapshot = scope.snapshot;
    let words = left.words().len();
    if words <= 8 || left.count() <= FEW || has_cores(window, scope) {
        return walk_children(left, out, window, scope);
    }
    let deepest = snapshot
        .pieces_in(window.clone())
        .iter()
        .map(|piece| piece.segment.levels.len() as u32)
        .max()
        .unwrap_or(0);
    if let Some(level) = level
        && level + 1 < deepest
    {
        if holds_level(left, level, window, scope) {
            return fill_level(level + 1, out, window, scope);
        }
        let mut below = left.cleared();
        fill_level(level + 1, &mut below, window, scope);
        let mut inside = left.cleared();
        descendants(left, &mut inside, None, window, scope);
        below.and(&inside);
        return out.or(&below);
    }
    let mut rest: Option<Bits> = None;
    for level in 0..deepest.saturating_sub(1) {
        let mut own = left.cleared();
        fill_level(level, &mut own, window, scope);
        own.and(left);
        if own.is_empty() {
            continue;
        }
        rest.get_or_insert_with(|| left.clone()).and_not(&own);
        let mut below = left.cleared();
        fill_level(level + 1, &mut below, window, scope);
        if !holds_level(&own, level, window, scope) {
            let mut inside = left.cleared();
            descendants(&own, &mut inside, None, window, scope);
            below.and(&inside);
        }
        out.or(&below);
    }
    // Rows below the levels that have postings.
    match rest {
        Some(rest) if !rest.is_empty() => walk_children(&rest, out, window, scope),
        None => walk_children(left, out, window, scope),
        Some(_) => {}
    }
}

/// Puts the children in one by one.
fn walk_children(left: &Bits, out: &mut Bits, window: &Range<u32>, scope: Scope<'_>) {
    let snapshot = scope.snapshot;
    for piece in snapshot.pieces_in(window.clone()) {
        let shift = piece.shift();
        let ends = &piece.segment.end;
        let mut row = left.next(piece.base);
        while let Some(at) = row
            && at < piece.end()
        {
            let local = at - shift;
            if piece.segment.is_virtual(local) {
                each_core_member(piece, local, |member, _| out.insert(member + shift));
            } else if at == 0 {
                fill_level(1, out, window, scope);
            } else if Some(at) == snapshot.seq_row() {
                let mut turns = out.cleared();
                fill_level(2, &mut turns, window, scope);
                turns.retain_range(snapshot.seq_rows());
                out.or(&turns);
            } else {
                let end = ends[local as usize];
                let mut child = local + 1;
                while child < end {
                    out.insert(child + shift);
                    child = if piece.segment.is_virtual(child) {
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

/// The blocks an implicit core holds: rows of the segment and the ends of their subtrees.
fn each_core_member(piece: &Piece, core: u32, mut visit: impl FnMut(u32, u32)) {
    let segment = &*piece.segment;
    let end = segment.end[core as usize];
    let mut child = core + 1;
    while child < end {
        let next = segment.end[child as usize];
        if segment.class(child) == Some(NodeClass::Block) {
            visit(child, next);
        }
        child = next;
    }
}

/// Whether an implicit core stands in the window.
fn has_cores(window: &Range<u32>, scope: Scope<'_>) -> bool {
    scope
        .snapshot
        .pieces_in(window.clone())
        .iter()
        .any(|piece| !piece.segment.cores().is_empty())
}

/// Whether `left` holds every row of a level that has children.
fn holds_level(left: &Bits, level: u32, window: &Range<u32>, scope: Scope<'_>) -> bool {
    scope
        .snapshot
        .pieces_in(window.clone())
        .iter()
        .all(|piece| {
            let segment = &*piece.segment;
            let (Some(Posting::Dense { words: level, .. }), Posting::Dense { words: inner, .. }) =
                (segment.levels.get(level as usize), &segment.inner)
            else {
                // Few rows: not worth a second way.
                return segment.levels.get(level as usize).is_none_or(|posting| {
                    let mut all = true;
                    posting.for_each_in(piece.rows.clone(), |row| {
                        all &= left.contains(row + piece.shift())
                            || segment.end[row as usize] == row + 1
                                && row + piece.shift() != 0
                                && Some(row + piece.shift()) != scope.snapshot.seq_row();
                    });
                    all
                });
            };
            let start = piece.base.max(window.start) - piece.shift();
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
            // All words without a look between, which the machine does several at a time.
            ends == 0 && missing.fold(0, |any, word| any | word) == 0
        })
}

/// Puts the rows of one level into `out`.
pub(super) fn fill_level(level: u32, out: &mut Bits, window: &Range<u32>, scope: Scope<'_>) {
    for piece in scope.snapshot.pieces_in(window.clone()) {
        if let Some(posting) = piece.segment.levels.get(level as usize) {
            posting.or_into(out, piece.rows.clone(), piece.shift());
        }
    }
}
