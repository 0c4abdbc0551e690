//! Choosing blocks that fit a number of tokens (RUNTIME §6).
//!
//! [`crate::budget`], which knows no nodes, scores and chooses; this file supplies the blocks and
//! their texts.

use rayon::prelude::*;

use super::node::Node;
use super::selection::Selection;
use crate::budget::{Candidate, Chosen, Query, Resolution, ScoreCounts, fill, version_of};
use crate::support::cancel::{self, ensure};
use crate::tree::NodeClass;

/// The blocks of a [`Selection`] that fit a number of tokens, from [`Selection::fit`].
///
/// ```
/// use pactql::{Engine, Session, budget::Query};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let blocks = Engine::new().rows(&session, "@t0 .cb")?;
/// let fit = blocks.fit(&Query::new("refund order"), 200);
/// assert!(fit.resolution.selection.tokens_used <= 200);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fit<'a> {
    /// The blocks chosen, in the order chosen.
    pub nodes: Vec<Node<'a>>,
    /// The same with texts, scores and tokens, and the request. Each document is a block: its
    /// `content` is the block's [`Node::text`], its `version` the hash of that.
    pub resolution: Resolution,
    /// How many nodes of the selection are not blocks, and so not candidates.
    pub others: usize,
}

impl Selection {
    /// The blocks that fit `budget` tokens, best first: scored by their [`Node::text`] against the
    /// query, taken in order of score, then id (RUNTIME §6, source 004). Reads every block once, on
    /// several threads, whose number the result does not show.
    pub fn fit(&self, query: &Query, budget: u64) -> Fit<'_> {
        Fit::choose(self.nodes(), query, budget)
    }
}

impl<'a> Fit<'a> {
    /// As [`Selection::fit`], of these nodes, in any order.
    pub fn choose(nodes: impl IntoIterator<Item = Node<'a>>, query: &Query, budget: u64) -> Self {
        let mut others = 0;
        let mut blocks = Vec::new();
        for node in nodes.into_iter().inspect(|_| ensure()) {
            if node.row().class() == NodeClass::Block {
                blocks.push(node);
            } else {
                others += 1;
            }
        }
        let tokens = cancel::here();
        let candidate = |node: &Node<'_>| {
            ensure();
            ScoreCounts::count(&node.text(), query)
        };
        let candidates: Vec<Candidate<'_>> = blocks
            .par_iter()
            .map(|node| Candidate {
                id: node.id(),
                measure: tokens.within(|| candidate(node)),
            })
            .collect();
        let filling = fill(&candidates, budget);
        let chosen = filling.chosen.iter().map(|&at| {
            let text = blocks[at].text().into_owned();
            let version = version_of(text.as_bytes());
            Chosen::new(query, candidates[at], version, text)
        });
        let chosen = chosen.collect();
        Self {
            nodes: filling.chosen.iter().map(|&at| blocks[at]).collect(),
            resolution: Resolution::new(query, budget, &filling, chosen),
            others,
        }
    }
}
