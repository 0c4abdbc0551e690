//! Ordering candidates and filling a budget (source 004).

use super::score::ScoreCounts;
use std::cmp::Ordering;

/// One document that may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its id, the tie-breaker of equal scores.
    pub id: &'a str,
    /// The source of its score and tokens.
    pub measure: ScoreCounts,
}

/// The candidates that fit a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// The chosen candidates as indexes into the list, in the order chosen.
    pub chosen: Vec<usize>,
    /// The sum of their tokens, at most the budget.
    pub tokens_used: u64,
    /// The number of candidates that did not fit.
    pub excluded: usize,
}

/// Orders candidates by score (highest first), id and index, and takes each that still fits. One
/// that does not fit is skipped; later ones may fit.
///
/// Sorting stops when nothing more can fit: `O(n)` if a few candidates fill the budget,
/// `O(n log n)` at most. Candidates that come sorted by id are not compared by id. A budget of 0
/// takes nothing, not even candidates without tokens (source 004: "Budget of 0 returns empty
/// selection").
pub fn fill(candidates: &[Candidate<'_>], budget: u64) -> Filling {
    let mut filling = Filling::default();
    let tokens = candidates
        .iter()
        .map(|candidate| candidate.measure.tokens());
    if let Some(least) = tokens.min()
        && budget > 0
    {
        each_best(candidates, |at| {
            let tokens = candidates[at].measure.tokens();
            if tokens <= budget - filling.tokens_used {
                filling.tokens_used += tokens;
                filling.chosen.push(at);
            }
            least <= budget - filling.tokens_used
        });
    }
    filling.excluded = candidates.len() - filling.chosen.len();
    filling
}

/// The number of candidates sorted first; each further batch is four times as large.
const FIRST_BATCH: usize = 64;

/// Calls `visit` with the index of each candidate, best first, until it returns false.
fn each_best(candidates: &[Candidate<'_>], mut visit: impl FnMut(usize) -> bool) {
    let mut ranked: Vec<(f32, usize)> = candidates
        .iter()
        .enumerate()
        .map(|(at, candidate)| (candidate.measure.score(), at))
        .collect();
    let sorted_by_id = candidates.is_sorted_by(|a, b| a.id <= b.id);
    // Indexes are distinct, so the order is total and the unstable sort deterministic.
    let order = |a: &(f32, usize), b: &(f32, usize)| {
        // Scores are never NaN.
        let by_score = b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal);
        let by_id = || {
            if sorted_by_id {
                Ordering::Equal
            } else {
                candidates[a.1].id.cmp(candidates[b.1].id)
            }
        };
        by_score.then_with(by_id).then(a.1.cmp(&b.1))
    };
    let mut rest = &mut ranked[..];
    let mut batch = FIRST_BATCH;
    while !rest.is_empty() {
        if batch < rest.len() {
            rest.select_nth_unstable_by(batch, order);
        }
        let (best, worse) = rest.split_at_mut(batch.min(rest.len()));
        best.sort_unstable_by(order);
        if !best.iter().all(|&(_, at)| visit(at)) {
            return;
        }
        (rest, batch) = (worse, batch * 4);
    }
}
