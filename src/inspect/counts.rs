//! Token counts by content: each distinct text is counted once (INSPECT §3).
//!
//! What is counted of a block is what rendering sends for it: its text, the name and the arguments of
//! a call, the definition of a tool. What an API adds around messages is not guessed, and images are
//! not counted. This file must not know snapshots.

use super::Tokenizer;
use crate::render::ThreadBlock;
use crate::tree::hash::{ContentHash, text_hash};
use crate::tree::shallow::string;
use std::borrow::Cow;
use std::collections::HashMap;

/// Counts tokens, and remembers the count of every text by its hash. Keep one for all snapshots of a
/// session, or of several.
///
/// ```
/// use pactql::inspect::{Counts, Tokenizer};
/// let mut counts = Counts::new(Tokenizer::Bytes4);
/// assert_eq!(counts.text("a text of 20 bytes.."), 5);
/// ```
#[derive(Debug)]
pub struct Counts {
    tokenizer: Tokenizer,
    known: HashMap<ContentHash, u64>,
}

impl Counts {
    /// Counts with this tokenizer.
    #[must_use]
    pub fn new(tokenizer: Tokenizer) -> Self {
        Self {
            tokenizer,
            known: HashMap::new(),
        }
    }

    /// The tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> Tokenizer {
        self.tokenizer
    }

    /// The tokens of a text. Linear in it.
    pub fn text(&mut self, text: &str) -> u64 {
        if self.tokenizer == Tokenizer::Bytes4 {
            return self.tokenizer.count(text);
        }
        let tokenizer = self.tokenizer;
        *self
            .known
            .entry(text_hash(text))
            .or_insert_with(|| tokenizer.count(text))
    }

    /// The tokens of a block. Linear in its content.
    pub fn block(&mut self, block: &ThreadBlock) -> u64 {
        if matches!(block.kind(), Some("image")) {
            return 0;
        }
        let content = block.content().filter(|content| *content != "null");
        let text = |json| string(json).unwrap_or(Cow::Borrowed(json));
        let mut tokens = content.map_or(0, |content| self.text(&text(content)));
        if block.kind() == Some("call") {
            let name = block.data("data_call_name").map(text);
            tokens += self.text(name.as_deref().or(block.key()).unwrap_or_default());
        }
        tokens
    }
}
