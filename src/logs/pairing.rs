//! Which messages of a request are those of the request before it.
//!
//! Equal messages are the same: a longest common subsequence. Unequal ones between the same two
//! such messages are paired in order where their roles agree: one that was rewritten. This file
//! knows messages only.

use super::log::LogMessage;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::sync::Arc;

/// For each message of `new` the index in `old` of the message that it is, if any; ascending.
/// Without `rewritten` only equal ones are the same. Linear where most messages are equal.
pub(super) fn pair(
    old: &[&Arc<LogMessage>],
    new: &[Arc<LogMessage>],
    rewritten: bool,
) -> Vec<Option<usize>> {
    let same = |a: &Arc<LogMessage>, b: &Arc<LogMessage>| Arc::ptr_eq(a, b) || a.equals(b);
    let shorter = old.len().min(new.len());
    let head = (0..shorter)
        .take_while(|&at| same(old[at], &new[at]))
        .count();
    let tail = (1..=shorter - head)
        .take_while(|back| same(old[old.len() - back], &new[new.len() - back]))
        .count();
    let mut pairs: Vec<Option<usize>> = vec![None; new.len()];
    for (at, pair) in pairs[..head].iter_mut().enumerate() {
        *pair = Some(at);
    }
    for back in 1..=tail {
        pairs[new.len() - back] = Some(old.len() - back);
    }
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let before: Vec<u64> = (head..old_end).map(|at| old[at].fingerprint()).collect();
    let after: Vec<u64> = (head..new_end).map(|at| new[at].fingerprint()).collect();
    let (mut old_at, mut new_at) = (head, head);
    let equal = capture_diff_slices(Algorithm::Myers, &before, &after);
    let equal = equal.into_iter().filter_map(|op| match op {
        DiffOp::Equal {
            old_index,
            new_index,
            len,
        } => Some((old_index + head, new_index + head, len)),
        _ => None,
    });
    // The end is a pair, too.
    for (old_index, new_index, length) in equal.chain([(old_end, new_end, 0)]) {
        if rewritten {
            by_role(old, new, old_at..old_index, new_at..new_index, &mut pairs);
        }
        for step in 0..length {
            pairs[new_index + step] = Some(old_index + step);
        }
        (old_at, new_at) = (old_index + length, new_index + length);
    }
    pairs
}

fn by_role(
    old: &[&Arc<LogMessage>],
    new: &[Arc<LogMessage>],
    old_range: std::ops::Range<usize>,
    new_range: std::ops::Range<usize>,
    pairs: &mut [Option<usize>],
) {
    let mut next = old_range.start;
    for at in new_range {
        let found = (next..old_range.end).find(|&other| old[other].role == new[at].role);
        if let Some(other) = found {
            pairs[at] = Some(other);
            next = other + 1;
        }
    }
}
