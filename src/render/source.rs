//! What is rendered: a snapshot, read block by block, or a thread in memory.

use super::block::ThreadBlock;
use super::thread::{Contents, Thread, blocks, parameters};
use crate::index::Snapshot;
use std::borrow::Cow;
use std::sync::Arc;

/// What is rendered. A snapshot is read block by block, without a copy of the whole.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The blocks of a snapshot.
    Snapshot(&'a Snapshot, Contents),
    /// A thread.
    Thread(&'a Thread),
    /// Blocks in the order they are sent, and the parameters as JSON.
    #[doc(hidden)]
    Blocks(&'a [Arc<ThreadBlock>], Option<&'a str>),
}

impl<'a> From<&'a Snapshot> for Source<'a> {
    fn from(snapshot: &'a Snapshot) -> Self {
        Self::Snapshot(snapshot, Contents::All)
    }
}

impl<'a> From<&'a Arc<Snapshot>> for Source<'a> {
    fn from(snapshot: &'a Arc<Snapshot>) -> Self {
        Self::Snapshot(snapshot, Contents::All)
    }
}

impl<'a> From<&'a Thread> for Source<'a> {
    fn from(thread: &'a Thread) -> Self {
        Self::Thread(thread)
    }
}

impl<'a> Source<'a> {
    pub(super) fn blocks(self) -> Box<dyn Iterator<Item = Cow<'a, ThreadBlock>> + 'a> {
        match self {
            Self::Snapshot(snapshot, contents) => {
                Box::new(blocks(snapshot, contents).map(Cow::Owned))
            }
            Self::Thread(thread) => Box::new(thread.blocks().iter().map(Cow::Borrowed)),
            Self::Blocks(blocks, _) => Box::new(blocks.iter().map(|block| Cow::Borrowed(&**block))),
        }
    }

    /// The blocks under `^sys`, which come first.
    pub(super) fn system(self) -> impl Iterator<Item = Cow<'a, ThreadBlock>> {
        self.blocks().take_while(|block| block.is_system())
    }

    pub(super) fn parameters(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Snapshot(snapshot, _) => parameters(snapshot).map(|text| Cow::Owned(text.into())),
            Self::Thread(thread) => thread.parameters().map(Cow::Borrowed),
            Self::Blocks(_, parameters) => parameters.map(Cow::Borrowed),
        }
    }
}
