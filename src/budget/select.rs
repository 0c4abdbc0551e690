//! Ordering and filling, and the answer with its explanation (source 004).

use super::score::{Measure, Query};
use serde::{Serialize, Serializer};
use std::cmp::Ordering;
use std::sync::Arc;

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
/// Candidates are put in order only as far as something may still fit: `O(n)` for a budget that a
/// few of them fill, `O(n log n)` at most, and no comparison of ids where they come ordered by id.
/// A budget of 0 takes nothing: not even candidates of no tokens, which would fit (source 004:
/// "Budget of 0 returns empty selection").
#[must_use]
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

/// How many candidates are put in order at first; each further part is four times as large.
const PART: usize = 64;

/// Calls `visit` with the place of each candidate, best first, until it answers false.
fn each_best(candidates: &[Candidate<'_>], mut visit: impl FnMut(usize) -> bool) {
    let mut ranked: Vec<(f32, usize)> = candidates
        .iter()
        .enumerate()
        .map(|(at, candidate)| (candidate.measure.score(), at))
        .collect();
    let by_place = candidates.is_sorted_by(|a, b| a.id <= b.id);
    // Places are distinct, so the order is total and does not depend on the sorting.
    let order = |a: &(f32, usize), b: &(f32, usize)| {
        // Scores are never NaN.
        let by_score = b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal);
        let by_id = || match by_place {
            true => Ordering::Equal,
            false => candidates[a.1].id.cmp(candidates[b.1].id),
        };
        by_score.then_with(by_id).then(a.1.cmp(&b.1))
    };
    let mut rest = &mut ranked[..];
    let mut part = PART;
    while !rest.is_empty() {
        if part < rest.len() {
            rest.select_nth_unstable_by(part, order);
        }
        let (best, worse) = rest.split_at_mut(part.min(rest.len()));
        best.sort_unstable_by(order);
        if !best.iter().all(|&(_, at)| visit(at)) {
            return;
        }
        (rest, part) = (worse, part * 4);
    }
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
    /// The terms of the query, as [`Query::terms`] has them; one list for all documents.
    #[serde(serialize_with = "as_list")]
    pub query_terms: Arc<[String]>,
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

fn as_list<S: Serializer>(terms: &Arc<[String]>, serializer: S) -> Result<S::Ok, S::Error> {
    terms[..].serialize(serializer)
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
                query_terms: query.terms_shared(),
                term_matches: measure.term_matches,
                total_words: measure.total_words,
            },
        }
    }

    /// Whether its content has the measure it was chosen by.
    pub(super) fn is_measured(&self, query: &Query) -> bool {
        let measure = Measure::of(&self.content, query);
        let Why {
            term_matches,
            total_words,
            ..
        } = self.why;
        measure.tokens() == self.tokens
            && (measure.term_matches, measure.total_words) == (term_matches, total_words)
    }
}
