//! The thread: a request as a list of blocks, without any provider's form (RUNTIME §5,
//! source 002 §12).

use super::block::ThreadBlock;
use super::json::compact;
use super::record;
use crate::index::{NodeRef, Snapshot};
use crate::json::JsonValue;
use crate::tree::{InputError, NodeClass};
use std::borrow::Cow;
use std::sync::Arc;

/// Which blocks of a snapshot a request has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// All of them: what the model was sent and what it replied.
    #[default]
    All,
    /// All but the reply of the snapshot's cycle: the blocks whose `data_reply` is that cycle.
    /// A working state is the cycle after the newest snapshot's. Its next request also has a reply that another block
    /// follows, such as the result of a call.
    Request,
}

/// A request as an owned list: blocks in the order they are sent, tool definitions among those of
/// `^sys`, and the parameters. Memory for all texts.
///
/// ```
/// use pactql::{Provider, Session, render::{Contents, Thread, request}};
///
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let newest = session.history().latest().expect("a snapshot").clone();
/// let thread = Thread::from_snapshot(&newest, Contents::All);
/// assert_eq!(thread.blocks()[0].id(), "cb:persona");
///
/// // It comes back from its records, and renders as the snapshot does.
/// assert_eq!(Thread::from_records(thread.records())?, thread);
/// assert_eq!(request(&thread, Provider::OpenAi)?, request(&newest, Provider::OpenAi)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    pub(crate) blocks: Vec<ThreadBlock>,
    parameters: Option<Box<str>>,
}

impl Thread {
    /// The thread of a snapshot. Linear in its nodes.
    #[must_use]
    pub fn from_snapshot(snapshot: &Snapshot, contents: Contents) -> Self {
        Self {
            blocks: blocks(snapshot, contents).collect(),
            parameters: parameters(snapshot),
        }
    }

    /// What was sent in the snapshot's cycle, as far as its tree shows it: [`Contents::Request`]. What
    /// expired, was pruned or was removed since the call is not in it.
    #[must_use]
    pub fn request(snapshot: &Snapshot) -> Self {
        Self::from_snapshot(snapshot, Contents::Request)
    }

    /// The blocks in order, tool definitions included.
    #[must_use]
    pub fn blocks(&self) -> &[ThreadBlock] {
        &self.blocks
    }

    /// The tool definitions in order: the JSON text they came in.
    pub fn tools(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let tools = self.blocks.iter().filter(|block| block.is_tool());
        tools.filter_map(ThreadBlock::definition)
    }

    /// The request parameters: the JSON of `meta.request`, in the order and spelling it came in.
    #[must_use]
    pub fn parameters(&self) -> Option<&str> {
        self.parameters.as_deref()
    }

    /// The thread as JSON records: one for each block, then one for the parameters if there are
    /// any. Equal blocks give equal records, so two requests can be compared record by record. No
    /// record has a line feed.
    pub fn records(&self) -> impl Iterator<Item = Arc<str>> + '_ {
        let blocks = self.blocks.iter().map(record::of_block);
        blocks.chain(self.parameters().map(record::of_parameters))
    }

    /// The thread that gave these records.
    ///
    /// # Errors
    /// A record that [`Thread::records`] does not write; the path names its position.
    pub fn from_records(
        records: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, InputError> {
        let mut thread = Self::default();
        for (at, text) in records.into_iter().enumerate() {
            match record::read(text.as_ref(), at)? {
                record::ThreadRecord::Block(block) => thread.blocks.push(block),
                record::ThreadRecord::Parameters(text) => thread.parameters = Some(text),
            }
        }
        Ok(thread)
    }
}

/// The blocks of a snapshot: every block at any level under `^sys`, the turns from the oldest,
/// and `^ah`, in document order.
pub(super) fn blocks(
    snapshot: &Snapshot,
    contents: Contents,
) -> impl Iterator<Item = ThreadBlock> + use<'_> {
    // Regions are children of the root, so the last node of level 1 is the region of a node.
    let mut region = None;
    let cycle = snapshot.cycle();
    let cycle = cycle.saturating_add(i64::from(snapshot.is_working()));
    let reply = (contents == Contents::Request).then(|| cycle.to_string());
    let followed = match &reply {
        Some(reply) if snapshot.is_working() => followed(snapshot, reply),
        _ => Vec::new(),
    };
    snapshot.nodes().filter_map(move |node| {
        let class = node.class();
        if node.level() <= 1 {
            region = match class {
                NodeClass::Sys => Some(true),
                NodeClass::Seq | NodeClass::Head => Some(false),
                _ => None,
            };
        }
        let system = region.filter(|_| class == NodeClass::Block)?;
        let is_reply = reply.as_ref().is_some_and(|reply| is_reply(node, reply));
        if is_reply && !followed.contains(&node.row()) {
            return None;
        }
        Some(ThreadBlock::from_node(node, system))
    })
}

fn is_reply(node: NodeRef<'_>, cycle: &str) -> bool {
    node.field("data_reply") == Some(JsonValue::Number(cycle))
}

/// The rows of replies of a cycle that another block follows, one of the same parent which was not replied. Under a turn or `^ah`
/// both are before the core, in it, or after it.
fn followed(snapshot: &Snapshot, cycle: &str) -> Vec<u32> {
    let (mut last, mut followed) = (Vec::new(), Vec::new());
    let blocks = snapshot.nodes_in(snapshot.head_rows());
    for node in blocks.filter(|node| node.class() == NodeClass::Block) {
        // Inside a container an offset orders siblings, and nothing else.
        let parent = node.parent();
        let in_container = parent.is_some_and(|parent| parent.class() == NodeClass::Container);
        let sign = if in_container {
            0
        } else {
            node.offset().signum()
        };
        let place = (parent.map(NodeRef::row), sign);
        if is_reply(node, cycle) {
            last.push((place, node.row()));
            continue;
        }
        let before = last.extract_if(.., |(other, _)| *other == place);
        followed.extend(before.map(|(_, row)| row));
    }
    followed
}

/// The `meta.request` of a snapshot: a JSON value, or JSON text in a string.
pub(crate) fn parameters(snapshot: &Snapshot) -> Option<Box<str>> {
    let request = snapshot.meta().request()?;
    Some(compact(request).into())
}

/// What is rendered: a snapshot or a thread in memory. A snapshot is read block by block, without a copy of the whole.
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
