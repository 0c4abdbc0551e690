//! Token counts that are kept by content, so that a text is counted once however often it is sent.
//!
//! A block is looked up by its node's version first, which snapshots share, then by the hash of its text.

use super::tokenizer::Tokenizer;
use crate::index::NodeRef;
use crate::render::{ThreadBlock, Wording};
use hashbrown::HashMap;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::iter::Sum;
use std::ops::AddAssign;

/// Sizes that add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes of their texts in UTF-8.
    pub bytes: u64,
    /// Tokens of their texts.
    pub tokens: u64,
    /// Blocks that are images, or documents that are not text. Their bytes and tokens are not counted.
    pub media: u64,
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.tokens += other.tokens;
        self.media += other.media;
    }
}

impl Sum for Totals {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

/// What was counted so far, with one tokenizer. Memory for a hash and a number a text, and a few
/// numbers a node.
///
/// ```
/// use pactql::inspect::{Counts, Tokenizer};
/// let mut counts = Counts::new(Tokenizer::Bytes4);
/// assert_eq!([counts.text("twelve bytes"), counts.text("twelve bytes")], [3, 3]);
/// assert_eq!(counts.distinct().tokens, 3);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Counts {
    tokenizer: Tokenizer,
    texts: HashMap<[u8; 32], u64>,
    nodes: HashMap<(u64, u32), Totals>,
    distinct: Totals,
}

impl Counts {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(tokenizer: Tokenizer) -> Self {
        Self {
            tokenizer,
            ..Self::default()
        }
    }

    /// How it counts.
    #[must_use]
    pub fn tokenizer(&self) -> Tokenizer {
        self.tokenizer
    }

    /// The tokens of a text, which is counted if it was not before.
    pub fn text(&mut self, text: &str) -> u64 {
        let key = Sha256::digest(text).into();
        if let Some(tokens) = self.texts.get(&key) {
            return *tokens;
        }
        let tokens = self.tokenizer.count(text);
        self.texts.insert(key, tokens);
        self.distinct.bytes += text.len() as u64;
        self.distinct.tokens += tokens;
        tokens
    }

    /// All distinct texts so far; `blocks` and `media` are those of distinct nodes.
    #[must_use]
    pub fn distinct(&self) -> Totals {
        self.distinct
    }

    /// The tokens of what rendering sends of a block. Linear in its content.
    pub fn block(&mut self, block: &ThreadBlock) -> u64 {
        let wording = Wording::of(block);
        wording.texts().map(|text| self.text(text)).sum()
    }

    /// The sizes of what rendering sends of a block; `system` says that it is under `^sys`.
    pub(super) fn node(&mut self, node: NodeRef<'_>, system: bool) -> Totals {
        let version = node.version();
        if let Some(totals) = self.nodes.get(&version) {
            return *totals;
        }
        let wording = Wording::of_node(node, system);
        let mut totals = Totals {
            blocks: 1,
            media: u64::from(wording.media),
            ..Totals::default()
        };
        for text in wording.texts() {
            totals.bytes += text.len() as u64;
            totals.tokens += self.text(text);
        }
        self.distinct.blocks += 1;
        self.distinct.media += totals.media;
        self.nodes.insert(version, totals);
        totals
    }
}
