//! Picks: one node of each group. A group is the matches on the axis of one left-context node.

use super::axis::NodeSet;
use super::order::key_order;
use super::stats::RunInput;
use crate::index::Bits;
use crate::tree::NodeClass;

/// The node of a group that is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PickedMember {
    First,
    Last,
    /// From 1.
    Nth(u64),
}

/// Keeps one of `matched` for each node of `left`; one of all without `left`. `level` is the level
/// of every row of `left`, if the chain decides it.
pub(super) fn pick(
    matched: &mut Bits,
    left: Option<&NodeSet>,
    level: Option<u32>,
    which: PickedMember,
    by_key: bool,
    input: RunInput<'_>,
) {
    let Some(left) = left else {
        // Without a left context all matches are one group.
        let mut group: Vec<u32> = matched.iter().collect();
        matched.words_mut().fill(0);
        return keep(&mut group, which, by_key, input, matched);
    };
    if !by_key && which == PickedMember::First && level.is_some() && !left.root && !left.seq {
        return keep_first_after(matched, &left.bits);
    }
    // Key order has to compare the members of a group; document order does not.
    let flat = (!by_key).then(|| pick_flat(matched, &left.bits, which, input));
    *matched = flat.flatten().unwrap_or_else(|| {
        let groups = groups(matched, &left.bits, input);
        pick_groups(groups, matched, which, by_key, input)
    });
}

pub(super) fn pick_groups(
    mut groups: Vec<(u32, u32)>,
    matched: &Bits,
    which: PickedMember,
    by_key: bool,
    input: RunInput<'_>,
) -> Bits {
    // Sorted pairs put the members of a group next to each other, in document order.
    groups.sort_unstable();
    let mut out = matched.cleared();
    let mut members = Vec::new();
    for group in groups.chunk_by(|a, b| a.0 == b.0) {
        members.clear();
        members.extend(group.iter().map(|&(_, row)| row));
        keep(&mut members, which, by_key, input, &mut out);
    }
    out
}

/// Keeps the first of `matched` after each row of `left`, whose rows are on one level.
fn keep_first_after(matched: &mut Bits, left: &Bits) {
    // Rows of one level are not inside each other, and all of `matched` are descendants of rows of
    // `left`. So the first match after a row of `left`, before the next one, is its first. Adding a
    // bit after each row of `left` to the rows in neither set makes a carry that passes those rows
    // and stops at the first row in one of the sets; if that row matched, it is the first.
    let (mut starts, mut carry) = (0, false);
    for (matched, left) in matched.words_mut().iter_mut().zip(left.words()) {
        let neither = !(*matched | left);
        let (sum, first) = neither.overflowing_add(left << 1 | starts);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        *matched &= sum;
        starts = left >> 63;
        carry = first || second;
    }
}

/// Picks where no left-context node is inside another: groups are then disjoint row ranges. `None`
/// elsewhere.
fn pick_flat(
    matched: &Bits,
    left: &Bits,
    which: PickedMember,
    input: RunInput<'_>,
) -> Option<Bits> {
    let snapshot = input.snapshot;
    let mut out = matched.cleared();
    for piece in snapshot.pieces_in(left.start()..left.end()) {
        if piece.segment().has_irregular_cores() {
            return None;
        }
        let shift = piece.shift();
        let mut row = left.next(piece.start());
        while let Some(at) = row
            && at < piece.end()
        {
            let end = if at == 0 || Some(at) == snapshot.seq_row() {
                snapshot.end(at)
            } else {
                piece.segment().end_of(at - shift) + shift
            };
            row = left.next(at + 1);
            // A left row inside another would be the nearer one for its matches.
            if row.is_some_and(|next| next < end) {
                return None;
            }
            let kept = match which {
                PickedMember::First => matched.next(at + 1).filter(|&kept| kept < end),
                PickedMember::Last => matched.previous(end).filter(|&kept| kept > at),
                PickedMember::Nth(n) => {
                    let mut kept = matched.next(at + 1).filter(|&kept| kept < end);
                    for _ in 1..n {
                        kept = kept.and_then(|kept| matched.next(kept + 1));
                        kept = kept.filter(|&kept| kept < end);
                        if kept.is_none() {
                            break;
                        }
                    }
                    kept
                }
            };
            if let Some(kept) = kept {
                out.insert(kept);
            }
        }
    }
    Some(out)
}

/// For each row of `matched` the nearest node of `left` above it.
fn groups(matched: &Bits, left: &Bits, input: RunInput<'_>) -> Vec<(u32, u32)> {
    let snapshot = input.snapshot;
    let mut groups = Vec::new();
    let mut open: Vec<(u32, u32)> = Vec::new();
    let mut next = left.next(left.start());
    for row in matched.iter() {
        // `open` is the stack of left rows whose subtrees contain the place reached, the nearest
        // last.
        while let Some(at) = next
            && at < row
        {
            while open.last().is_some_and(|&(_, end)| end <= at) {
                open.pop();
            }
            open.push((at, snapshot.end(at)));
            next = left.next(at + 1);
        }
        while open.last().is_some_and(|&(_, end)| end <= row) {
            open.pop();
        }
        // The row range of an implicit core can span a nested turn outside the core.
        let nearest = open.iter().rev().find(|&&(at, _)| {
            let piece = &snapshot.pieces()[snapshot.piece_of(at)];
            !piece.segment().has_irregular_cores()
                || !piece.segment().is_core(at - piece.shift())
                || core_holds(at, row, input)
        });
        if let Some(&(at, _)) = nearest {
            groups.push((at, row));
        }
    }
    groups
}

/// Whether a row is inside an implicit core: in the subtree of one of its turn's blocks of
/// offset 0.
fn core_holds(core: u32, row: u32, input: RunInput<'_>) -> bool {
    let snapshot = input.snapshot;
    let owner = snapshot.parent(core);
    let mut at = row;
    while let Some(parent) = snapshot.parent(at) {
        if Some(parent) == owner {
            return snapshot.node(at).class() == NodeClass::Block;
        }
        at = parent;
    }
    false
}

/// Adds the chosen member of a group, given in document order, to `out`.
fn keep(group: &mut [u32], which: PickedMember, by_key: bool, input: RunInput<'_>, out: &mut Bits) {
    if by_key {
        let node = |row: u32| input.snapshot.node(row);
        group.sort_by(|&a, &b| key_order(node(a), node(b)));
    }
    let kept = match which {
        PickedMember::First => group.first(),
        PickedMember::Last => group.last(),
        PickedMember::Nth(n) => usize::try_from(n)
            .ok()
            .and_then(|n| group.get(n.checked_sub(1)?)),
    };
    if let Some(&kept) = kept {
        out.insert(kept);
    }
}
