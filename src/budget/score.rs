//! Scores and token counts: pure functions of one content and one query.

use std::sync::Arc;

/// A query, split into terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    text: String,
    pub(super) terms: Arc<[String]>,
    /// The terms without repetition, sorted.
    distinct: Vec<String>,
}

impl Query {
    /// Splits a query at Unicode white space into terms in lower case (Unicode, no locale).
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let lower = text.to_lowercase();
        let terms: Arc<[String]> = lower.split_whitespace().map(str::to_owned).collect();
        let mut distinct = terms.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        Self {
            text,
            terms,
            distinct,
        }
    }

    /// The query as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The terms in the order of the query, with repetitions.
    pub fn terms(&self) -> &[String] {
        &self.terms
    }

    fn has_term(&self, word: &str) -> bool {
        // Most queries are short, and comparing lengths decides nearly every word.
        if self.distinct.len() <= 8 {
            return self.distinct.iter().any(|term| term == word);
        }
        let found = self.distinct.binary_search_by(|term| (**term).cmp(word));
        found.is_ok()
    }
}

/// The counts that score and tokens of one content are computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScoreCounts {
    /// The number of words that are a term of the query. A word counts once, even if the query
    /// repeats its term.
    pub term_matches: u64,
    /// The number of words.
    pub total_words: u64,
    /// The length in bytes of UTF-8.
    pub bytes: u64,
}

impl ScoreCounts {
    /// Measures a content against a query. Linear; memory for one word.
    pub fn count(content: &str, query: &Query) -> Self {
        let mut measure = Self {
            bytes: content.len() as u64,
            ..Self::default()
        };
        let mut lower = String::new();
        for word in content.split_whitespace() {
            // Lowering word by word equals lowering the whole: the only context-sensitive mapping, that of the
            // final sigma, does not read across white space.
            let is_lower = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
            let is_term = if word.bytes().all(is_lower) {
                query.has_term(word)
            } else if word.is_ascii() {
                lower.clear();
                lower.push_str(word);
                lower.make_ascii_lowercase();
                query.has_term(&lower)
            } else {
                query.has_term(&word.to_lowercase())
            };
            measure.total_words += 1;
            measure.term_matches += u64::from(is_term);
        }
        measure
    }

    /// The share of words that are terms, from 0.0 to 1.0; 0.0 if there are no words. One division
    /// of two `f32`, so that all tools of the layout agree.
    pub fn score(self) -> f32 {
        if self.total_words == 0 {
            return 0.0;
        }
        self.term_matches as f32 / self.total_words as f32
    }

    /// The tokens of the content: a quarter of its bytes, rounded up.
    pub fn tokens(self) -> u64 {
        self.bytes.div_ceil(4)
    }
}
