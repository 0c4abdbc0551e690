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
/// `O(n log n)`. Candidates that come sorted by id are not compared by id. A budget of 0 takes nothing, not even
/// candidates without tokens (source 004: "Budget of 0 returns empty selection").
pub fn fill(candidates: &[Candidate<'_>], budget: u64) -> Filling {
    let mut filling = Filling::default();
    if budget > 0 {
        for at in best_first(candidates) {
            let tokens = candidates[at].measure.tokens();
            if tokens <= budget - filling.tokens_used {
                filling.tokens_used += tokens;
                filling.chosen.push(at);
            }
        }
    }
    filling.excluded = candidates.len() - filling.chosen.len();
    filling
}

/// The indexes of the candidates, best first.
fn best_first(candidates: &[Candidate<'_>]) -> impl Iterator<Item = usize> {
    let scores = candidates.iter().map(|candidate| candidate.measure.score());
    let mut ranked: Vec<(f32, usize)> = scores.zip(0..).collect();
    let sorted_by_id = candidates.is_sorted_by(|a, b| a.id <= b.id);
    // Indexes are distinct, so the order is total and the unstable sort deterministic.
    ranked.sort_unstable_by(|a, b| {
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
    });
    ranked.into_iter().map(|(_, at)| at)
}
