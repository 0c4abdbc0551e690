//! Ordering and filling, and the answer with its explanation (source 004).

use super::score::{Measure, Query};
use serde::Serialize;
use std::cmp::Ordering;

/// One document that may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its id, which decides between equal scores.
    pub id: &'a str,
    /// What its score and its tokens are computed from.
    pub measure: Measure,
}

/// What fits a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// The candidates chosen, by their place in the list given, in the order chosen.
    pub chosen: Vec<usize>,
    /// The sum of their tokens, never above the budget.
    pub tokens_used: u64,
    /// How many candidates did not fit.
    pub excluded: usize,
}

/// Orders candidates by score, highest first, then by id, then by place, and takes each that
/// still fits; one that does not is passed over, and later ones may fit.
///
/// `O(n log n)` in the number of candidates with a score above zero; the others need sorting only
/// where they do not come ordered by id already. A budget of 0 takes nothing: not even candidates
/// of no tokens, which would fit (source 004: "Budget of 0 returns empty selection").
#[must_use]
pub fn fill(candidates: &[Candidate<'_>], budget: u64) -> Filling {
    let (mut scored, mut rest): (Vec<usize>, Vec<usize>) =
        (0..candidates.len()).partition(|&at| candidates[at].measure.term_matches > 0);
    let by_id = |a: &usize, b: &usize| candidates[*a].id.cmp(candidates[*b].id);
    scored.sort_by(|a, b| {
        let (left, right) = (candidates[*a].measure, candidates[*b].measure);
        // Scores are never NaN.
        right
            .score()
            .partial_cmp(&left.score())
            .unwrap_or(Ordering::Equal)
            .then_with(|| by_id(a, b))
    });
    rest.sort_by(by_id);
    let mut filling = Filling::default();
    for at in scored.into_iter().chain(rest) {
        let tokens = candidates[at].measure.tokens();
        if budget > 0 && tokens <= budget - filling.tokens_used {
            filling.tokens_used += tokens;
            filling.chosen.push(at);
        } else {
            filling.excluded += 1;
        }
    }
    filling
}

/// A selection with everything needed to make it again. Fields stand in the order of source 004,
/// and are printed in it.
#[derive(Clone, Debug, Serialize)]
pub struct Resolution {
    /// What was chosen, in the order chosen.
    pub documents: Vec<Chosen>,
    /// What was asked, and what became of all candidates.
    pub selection: Summary,
}

/// A document that was chosen, whole.
#[derive(Clone, Debug, Serialize)]
pub struct Chosen {
    /// Its id.
    pub id: String,
    /// `sha256:` and the hex digits of its hash.
    pub version: String,
    /// Its content.
    pub content: String,
    /// Its score, from 0.0 to 1.0.
    pub score: f32,
    /// Its tokens.
    pub tokens: u64,
    /// What the score was made of.
    pub why: Why,
}

/// What a score was made of.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// The terms of the query, as [`Query::terms`] has them.
    pub query_terms: Vec<String>,
    /// How many words are one of them.
    pub term_matches: u64,
    /// How many words there are.
    pub total_words: u64,
}

/// What was asked, and what became of all candidates.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The query as given.
    pub query: String,
    /// The budget as given, in tokens.
    pub budget: u64,
    /// The tokens of all documents chosen.
    pub tokens_used: u64,
    /// How many candidates there were.
    pub documents_considered: usize,
    /// How many were chosen.
    pub documents_selected: usize,
    /// How many did not fit.
    pub documents_excluded_by_budget: usize,
}

impl Resolution {
    /// Puts an answer together. `documents` are those of `filling`, in its order.
    #[must_use]
    pub fn new(query: &Query, budget: u64, filling: &Filling, documents: Vec<Chosen>) -> Self {
        let selection = Summary {
            query: query.text().to_owned(),
            budget,
            tokens_used: filling.tokens_used,
            documents_considered: filling.chosen.len() + filling.excluded,
            documents_selected: filling.chosen.len(),
            documents_excluded_by_budget: filling.excluded,
        };
        Self {
            documents,
            selection,
        }
    }

    /// The answer as JSON without a line feed at the end: compact, or with an indent of two.
    ///
    /// # Errors
    /// None that can be reached: every key is a string and every number finite.
    pub fn to_json(&self, pretty: bool) -> serde_json::Result<String> {
        if pretty {
            serde_json::to_string_pretty(self)
        } else {
            serde_json::to_string(self)
        }
    }
}

impl Chosen {
    /// A document that was chosen, with its explanation.
    #[must_use]
    pub fn new(
        query: &Query,
        measure: Measure,
        id: String,
        version: String,
        content: String,
    ) -> Self {
        Self {
            id,
            version,
            content,
            score: measure.score(),
            tokens: measure.tokens(),
            why: Why {
                query_terms: query.terms().to_vec(),
                term_matches: measure.term_matches,
                total_words: measure.total_words,
            },
        }
    }
}
