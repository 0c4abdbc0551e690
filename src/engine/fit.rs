//! What of an answer fits a number of tokens (RUNTIME §6).
//!
//! The rules are those of [`crate::budget`], which knows no nodes; here is only which nodes are
//! candidates and what their text is.

use std::borrow::Cow;

use rayon::prelude::*;

use super::selection::Selection;
use crate::budget::score::Measure;
use crate::budget::select::{Candidate, Chosen, fill};
use crate::budget::{Query, Resolution, version_of};
use crate::index::NodeRef;
use crate::tree::NodeClass;
use crate::tree::canonical::canonical;
use crate::tree::json::unescape;

/// The blocks of a [`Selection`] that fit a number of tokens.
#[derive(Clone, Debug)]
pub struct Fit<'a> {
    /// The blocks chosen, in the order chosen.
    pub nodes: Vec<NodeRef<'a>>,
    /// The same with texts, scores and tokens, and what was asked. A document is a block: its
    /// `id` is the block's, its `content` the block's [`text`], its `version` the hash of that.
    pub resolution: Resolution,
    /// How many nodes of the selection are no blocks and so were never candidates.
    pub others: usize,
}

impl Selection {
    /// The blocks that fit `budget` tokens, best first: each is scored by its [`text`] against the
    /// query, all are ordered by score and id, and the budget is filled from the front
    /// (RUNTIME §6, source 004). The sum of their tokens is never above `budget`.
    ///
    /// Every block's text is read once, on several threads; texts are held one at a time by each
    /// thread, and then those chosen. The number of threads never shows.
    #[must_use]
    pub fn fit(&self, query: &Query, budget: u64) -> Fit<'_> {
        let mut others = 0;
        let mut blocks = Vec::new();
        for node in self.nodes() {
            if node.class() == NodeClass::Block {
                blocks.push(node);
            } else {
                others += 1;
            }
        }
        let candidates: Vec<Candidate<'_>> = blocks
            .par_iter()
            .map(|node| Candidate {
                id: node.id(),
                measure: Measure::of(&text(*node), query),
            })
            .collect();
        let filling = fill(&candidates, budget);
        let chosen = filling.chosen.iter().map(|&at| {
            let text = text(blocks[at]).into_owned();
            let version = version_of(text.as_bytes());
            let Candidate { id, measure } = candidates[at];
            Chosen::new(query, measure, id.to_owned(), version, text)
        });
        let chosen = chosen.collect();
        Fit {
            nodes: filling.chosen.iter().map(|&at| blocks[at]).collect(),
            resolution: Resolution::new(query, budget, &filling, chosen),
            others,
        }
    }
}

/// What a node is to a budget: its content where that is a string, nothing where it is null or
/// absent, else its canonical JSON, as the provider thread has it (RUNTIME §2, §5).
#[must_use]
pub fn text(node: NodeRef<'_>) -> Cow<'_, str> {
    match node.field("content") {
        None | Some("null") => Cow::Borrowed(""),
        Some(raw) => match raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
            Some(string) if string.contains('\\') => Cow::Owned(unescape(string)),
            Some(string) => Cow::Borrowed(string),
            None => Cow::Owned(canonical(raw)),
        },
    }
}
