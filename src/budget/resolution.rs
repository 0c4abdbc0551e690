//! The answer to a query and a budget, with its explanation (source 004).

use super::fill::{Candidate, Filling};
use super::score::Query;
use serde::Serialize;
use std::sync::Arc;

/// The chosen documents, with everything needed to reproduce the choice. Fields are in the order of
/// source 004, which is the order in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Resolution {
    /// The chosen documents, in the order chosen.
    pub documents: Vec<Chosen>,
    /// The query, the budget, and counts of all candidates.
    pub selection: Summary,
}

/// A chosen document.
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
    /// How the score came about.
    pub why: Why,
}

/// How a score came about.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// [`Query::terms`]; one list, shared by all documents.
    pub query_terms: Arc<[String]>,
    /// The number of words that are a term.
    pub term_matches: u64,
    /// The number of words.
    pub total_words: u64,
}

/// The query, the budget, and counts of all candidates.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The query as given.
    pub query: String,
    /// The budget as given, in tokens.
    pub budget: u64,
    /// The sum of the tokens of the chosen documents.
    pub tokens_used: u64,
    /// The number of candidates.
    pub documents_considered: usize,
    /// The number of chosen candidates.
    pub documents_selected: usize,
    /// The number of candidates that did not fit.
    pub documents_excluded_by_budget: usize,
}

impl Resolution {
    /// `documents` are those of `filling`, in its order.
    pub(crate) fn new(
        query: &Query,
        budget: u64,
        filling: &Filling,
        documents: Vec<Chosen>,
    ) -> Self {
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

    /// As JSON without a line feed at the end: compact, or with an indent of two spaces.
    ///
    /// # Errors
    /// None in practice: every key is a string and every number is finite.
    pub fn to_json(&self, pretty: bool) -> serde_json::Result<String> {
        if pretty {
            serde_json::to_string_pretty(self)
        } else {
            serde_json::to_string(self)
        }
    }
}

impl Chosen {
    pub(crate) fn new(
        query: &Query,
        Candidate { id, measure }: Candidate<'_>,
        version: String,
        content: String,
    ) -> Self {
        Self {
            id: id.to_owned(),
            version,
            content,
            score: measure.score(),
            tokens: measure.tokens(),
            why: Why {
                query_terms: Arc::clone(&query.terms),
                term_matches: measure.term_matches,
                total_words: measure.total_words,
            },
        }
    }
}
