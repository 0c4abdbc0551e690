//! Picks: one node of each group of nodes that hang from one left-context node.

use std::cmp::Ordering;

use super::access::Scope;
use super::axis::Nodes;
use super::order::key_order;
use crate::index::Bits;

/// Which node of a group is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Which {
    First,
    Last,
    /// From 1.
    Nth(u64),
}

/// Keeps one of `matched` for each node of `left` they hang from; one of all without `left`.
/// `level` is the level of all of `left`, where the chain tells.
pub(super) fn pick(
    matched: &mut Bits,
    left: Option<&Nodes>,
    level: Option<u32>,
    which: Which,
    by_key: bool,
    scope: Scope<'_>,
) {
    let Some(left) = left else {
        let mut group: Vec<u32> = matched.iter().collect();
        matched.words_mut().fill(0);
        return keep(&mut group, which, by_key, scope, matched);
    };
    if !by_key && which == Which::First && level.is_some() && !left.root && !left.seq {
        return keep_first_behind(matched, &left.bits);
    }
    let flat = (!by_key).then(|| pick_flat(matched, &left.bits, which, scope));
    *matched = flat.flatten().unwrap_or_else(|| {
        let groups = groups(matched, &left.bits, scope);
        pick_groups(groups, matched, which, by_key, scope)
    });
}

/// Keeps one of each group; `groups` are pairs of a group and a member, members in document
/// order inside a group.
pub(super) fn pick_groups(
    mut groups: Vec<(u32, u32)>,
    matched: &Bits,
    which: Which,
    by_key: bool,
    scope: Scope<'_>,
) -> Bits {
    groups.sort_unstable();
    let mut out = matched.cleared();
    let mut members = Vec::new();
    for group in groups.chunk_by(|a, b| a.0 == b.0) {
        members.clear();
        members.extend(group.iter().map(|&(_, row)| row));
        keep(&mut members, which, by_key, scope, &mut out);
    }
    out
}

/// Keeps the first of `matched` behind each row of `left`.
///
/// Rows of one level do not lie inside each other, and all of `matched` lies below some row of
/// `left`: so what comes first behind a row of `left`, before the next one, is its first. A carry
/// started behind each row of `left` runs through the rows in neither set and stops at the first
/// that is in one.
fn keep_first_behind(matched: &mut Bits, left: &Bits) {
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

/// Where no left-context node lies inside another, groups are disjoint intervals.
fn pick_flat(matched: &Bits, left: &Bits, which: Which, scope: Scope<'_>) -> Option<Bits> {
    let snapshot = scope.snapshot;
    let mut out = matched.cleared();
    for piece in snapshot.pieces_in(left.start()..left.end()) {
        if piece.segment.irregular_cores {
            return None;
        }
        let shift = piece.shift();
        let mut row = left.next(piece.base);
        while let Some(at) = row
            && at < piece.end()
        {
            let end = if at == 0 || Some(at) == snapshot.seq_row() {
                snapshot.end(at)
            } else {
                piece.segment.end[(at - shift) as usize] + shift
            };
            row = left.next(at + 1);
            if row.is_some_and(|next| next < end) {
                return None;
            }
            let kept = match which {
                Which::First => matched.next(at + 1).filter(|&kept| kept < end),
                Which::Last => matched.previous(end).filter(|&kept| kept > at),
                Which::Nth(n) => {
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

/// The nearest node of `left` above each row of `matched`.
fn groups(matched: &Bits, left: &Bits, scope: Scope<'_>) -> Vec<(u32, u32)> {
    let snapshot = scope.snapshot;
    let mut groups = Vec::new();
    let mut open: Vec<(u32, u32)> = Vec::new();
    let mut next = left.next(left.start());
    for row in matched.iter() {
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
        // An implicit core's interval may span a nested turn that it does not hold.
        let nearest = open.iter().rev().find(|&&(at, _)| {
            let piece = &snapshot.pieces()[snapshot.piece_of(at)];
            !piece.segment.irregular_cores
                || !piece.segment.is_virtual(at - piece.shift())
                || core_holds(at, row, scope)
        });
        if let Some(&(at, _)) = nearest {
            groups.push((at, row));
        }
    }
    groups
}

/// Whether an implicit core holds a row: below one of its turn's blocks of offset 0.
fn core_holds(core: u32, row: u32, scope: Scope<'_>) -> bool {
    use crate::tree::NodeClass;
    let snapshot = scope.snapshot;
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

/// Puts the chosen member of a group, given in document order, into `out`.
fn keep(group: &mut [u32], which: Which, by_key: bool, scope: Scope<'_>, out: &mut Bits) {
    if by_key {
        group.sort_by(|&a, &b| key_or_document(a, b, scope));
    }
    let kept = match which {
        Which::First => group.first(),
        Which::Last => group.last(),
        Which::Nth(n) => usize::try_from(n)
            .ok()
            .and_then(|n| group.get(n.checked_sub(1)?)),
    };
    if let Some(&kept) = kept {
        out.insert(kept);
    }
}

fn key_or_document(a: u32, b: u32, scope: Scope<'_>) -> Ordering {
    key_order(scope.snapshot.node(a), scope.snapshot.node(b))
}
