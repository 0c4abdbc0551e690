//! A text that grows while it is received.

use std::sync::Arc;

use super::node::quoted;

/// The text of a block that grows: chunks as they came. Adding one costs its own length.
#[derive(Clone, Debug, Default)]
pub(super) struct Growing {
    chunks: Vec<Arc<str>>,
}

impl Growing {
    pub(super) fn push(&mut self, text: &str) {
        self.chunks.push(text.into());
    }

    pub(super) fn chunks(&self) -> &[Arc<str>] {
        &self.chunks
    }

    /// The whole text as JSON. Linear in it.
    pub(super) fn json(&self) -> Box<str> {
        quoted(&self.chunks.concat())
    }
}
