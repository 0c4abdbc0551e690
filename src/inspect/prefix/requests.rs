//! The requests of a session one after the other, in the pieces that a provider caches.
//!
//! A request is parameters, tool definitions, the system prompt and messages, each as JSON in the
//! form of the provider's API. [`SentRequests`] holds one request. [`SentRequests::advance`] turns it into
//! that of another snapshot and returns what it had instead, so a session costs what changes from
//! one snapshot to the next.

use super::locate;
use super::pieces::{self, Place};
use crate::history::History;
use crate::index::Snapshot;
use crate::inspect::call::cycle_of;
use crate::inspect::part::Region;
use crate::render::{
    self, Grouping, Head, Provider, RenderError, Source, Thread, ThreadBlock, head_of, is_in_head,
};
use crate::support::cancel::ensure;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// What a block is known by: the version of its unit and its row in it, or the address of its
/// record and [`RECORD`]. Equal keys are equal blocks.
type BlockKey = (u64, u32);

/// No unit has this many rows.
const RECORD: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct RequestMessage {
    /// As the cache of the provider reads it.
    pub(super) json: Box<str>,
    /// The blocks it is made of, among those of the request. Messages that end together have the same.
    pub(super) blocks: Range<usize>,
    /// The bytes of the messages up to its end.
    end: u64,
}

/// The part of a request besides messages, in the order in which providers cache it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Front {
    pub(super) head: Head,
    blocks: Vec<BlockKey>,
    parameters: Option<Box<str>>,
}

#[derive(Default)]
pub(super) struct SentRequests {
    provider: Provider,
    /// The snapshot that `units` are of.
    snapshot: Option<Arc<Snapshot>>,
    units: Vec<UnitBlocks>,
    /// The first unit that has each value of `data_reply`, as JSON.
    replies: HashMap<Box<str>, usize>,
    /// The first unit of which blocks were left out, as the reply of the cycle.
    left_out: Option<usize>,
    keys: Vec<BlockKey>,
    pub(super) blocks: Vec<Arc<ThreadBlock>>,
    pub(super) messages: Vec<RequestMessage>,
    /// Where nothing was left open: the block that came next, and how many messages were ended.
    fresh: Vec<(usize, usize)>,
    pub(super) front: Option<Arc<Front>>,
    known: HashMap<BlockKey, Arc<ThreadBlock>>,
    parameters: HashMap<BlockKey, Box<str>>,
    /// The records that are known, so that their addresses are not used again.
    held: Vec<Arc<str>>,
}

/// What a request had before [`SentRequests::advance`], from the first difference on.
pub(super) struct Before {
    /// How many blocks both have at their beginning.
    pub(super) blocks_kept: usize,
    pub(super) blocks: Vec<Arc<ThreadBlock>>,
    /// How many messages both have at their beginning, at least.
    pub(super) messages_kept: usize,
    pub(super) messages: Vec<RequestMessage>,
}

impl Before {
    /// How many blocks at the beginning need not be counted again. If blocks may have moved between the
    /// head and the messages, all have to be.
    pub(super) fn sums_kept(&self) -> usize {
        match self.messages_kept {
            0 => 0,
            _ => self.blocks_kept,
        }
    }
}

struct UnitBlocks {
    /// The values of `data_reply` in it that no unit before it has.
    replies: Vec<Box<str>>,
    /// The number of blocks of the request up to its end.
    end: usize,
}

impl SentRequests {
    pub(super) fn new(provider: Provider) -> Self {
        Self {
            provider,
            ..Self::default()
        }
    }

    pub(super) fn bytes_of(&self, messages: usize) -> u64 {
        let last = self.messages[..messages].last();
        last.map_or(0, |message| message.end)
    }

    /// Whether a block is in the head, and so in no message.
    pub(super) fn is_in_head(&self, block: &ThreadBlock) -> bool {
        let head = self.front.as_ref().map(|front| &front.head);
        head.is_some_and(|head| is_in_head(block, head).unwrap_or(false))
    }

    /// The id of the block that a part of the front is: of a tool, or of the system prompt, whose text
    /// is around byte `at` of its JSON.
    pub(super) fn block_of(&self, place: &Place, json: &str, at: usize) -> Option<String> {
        let head = self.blocks.iter().filter(|block| self.is_in_head(block));
        let (tools, system): (Vec<_>, Vec<_>) = head.cloned().partition(|block| block.is_tool());
        let block = match place {
            Place::Tool { index, .. } => tools.get(*index)?,
            Place::System => &system[locate::block(json, at, &system)?.0],
            _ => return None,
        };
        Some(block.id().to_owned())
    }

    /// Becomes the request of a snapshot of `history`.
    pub(super) fn advance(
        &mut self,
        history: &History,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Before, RenderError> {
        let cycle = cycle_of(snapshot);
        let kept = history.attempts().sent_in(cycle);
        let (blocks_kept, keys, parameters) = match kept.and_then(|records| self.records(records)) {
            Some(found) => found,
            None => self.tree(snapshot, cycle),
        };
        let blocks = self.blocks.split_off(blocks_kept);
        self.keys.truncate(blocks_kept);
        for key in keys {
            if let Some(block) = self.known.get(&key) {
                self.blocks.push(Arc::clone(block));
                self.keys.push(key);
            }
        }
        let front = self.front(parameters)?;
        // A head that changes can move blocks between itself and the messages.
        let groups_as = |before: &Arc<Front>| before.head.instructions == front.head.instructions;
        let same = self.front.as_ref().is_some_and(groups_as);
        let usable = if same { blocks_kept } else { 0 };
        self.front = Some(front);
        let (messages_kept, messages) = self.group(usable)?;
        Ok(Before {
            blocks_kept,
            blocks,
            messages_kept,
            messages,
        })
    }

    /// Makes the messages again, except those that depend on the first `usable` blocks alone. Returns
    /// how many are kept, and those that were there after them.
    ///
    /// They have all that the model reads: also the blocks that the API has from an earlier request,
    /// and a text that is sent instead of a list of one message.
    fn group(&mut self, usable: usize) -> Result<(usize, Vec<RequestMessage>), RenderError> {
        let front = self.front.clone();
        let Some(head) = front.as_ref().map(|front| &front.head) else {
            return Ok((0, Vec::new()));
        };
        // The block at which everything before it is ended has to be there, too: it ends them.
        let at = self.fresh.partition_point(|(block, _)| *block < usable);
        let (start, kept) = match at.checked_sub(1) {
            Some(last) => self.fresh[last],
            None => (0, 0),
        };
        self.fresh.truncate(at.saturating_sub(1));
        let before = self.messages.split_off(kept);
        let mut grouping = Grouping::new(self.provider);
        let mut out = Vec::new();
        let mut last = start;
        for (at, block) in self.blocks.iter().enumerate().skip(start) {
            ensure();
            if is_in_head(block, head)? {
                continue;
            }
            let fresh = grouping.add(Cow::Borrowed(&**block), &mut out)?;
            if !out.is_empty() {
                push(&mut self.messages, self.provider, &mut out, last..at);
                last = at;
            }
            if fresh {
                self.fresh.push((at, self.messages.len()));
            }
        }
        grouping.end(&mut out)?;
        let blocks = last..self.blocks.len();
        push(&mut self.messages, self.provider, &mut out, blocks);
        Ok((kept, before))
    }

    /// The head of the blocks there are, or the one there was if it has the same blocks.
    fn front(&mut self, parameters: Option<Box<str>>) -> Result<Arc<Front>, RenderError> {
        let system = self.blocks.iter().take_while(|block| block.is_system());
        let system = system.count();
        // A head of Responses looks at whether there is one block more.
        let looked_at = match self.provider {
            Provider::OpenAiResponses => self.blocks.len().min(system + 2),
            _ => system,
        };
        let keys = &self.keys[..looked_at];
        if let Some(front) = &self.front
            && front.blocks == keys
            && front.parameters == parameters
        {
            return Ok(Arc::clone(front));
        }
        let source = Source::Blocks(&self.blocks, parameters.as_deref());
        Ok(Arc::new(Front {
            head: head_of(source, self.provider)?,
            blocks: keys.to_vec(),
            parameters,
        }))
    }

    /// The blocks of a request that was kept when it was sent: how many are those of the request
    /// before, the keys of the others, and the parameters. `None` if a record cannot be read.
    fn records(
        &mut self,
        records: Vec<Arc<str>>,
    ) -> Option<(usize, Vec<BlockKey>, Option<Box<str>>)> {
        self.keep_units(0);
        self.snapshot = None;
        let mut keys = Vec::with_capacity(records.len());
        let mut parameters = None;
        for record in records {
            let key = (Arc::as_ptr(&record).cast::<u8>() as u64, RECORD);
            if !self.known.contains_key(&key) {
                if let Some(text) = self.parameters.get(&key) {
                    parameters = Some(text.clone());
                    continue;
                }
                let thread = Thread::from_records([&record]).ok()?;
                self.held.push(record);
                if let Some(text) = thread.parameters() {
                    parameters = Some(text.into());
                    self.parameters.insert(key, text.into());
                    continue;
                }
                let block = thread.blocks.into_iter().next()?;
                self.known.insert(key, Arc::new(block));
            }
            keys.push(key);
        }
        let same = self.keys.iter().zip(&keys).take_while(|(a, b)| a == b);
        let same = same.count();
        Some((same, keys.split_off(same), parameters))
    }

    /// Forgets the units but for the first ones.
    fn keep_units(&mut self, kept: usize) {
        for unit in self.units.drain(kept..) {
            for reply in unit.replies {
                self.replies.remove(&reply);
            }
        }
        self.left_out.take_if(|at| *at >= kept);
    }

    /// The blocks that the tree says were sent in the cycle: as [`SentRequests::records`].
    fn tree(
        &mut self,
        snapshot: &Arc<Snapshot>,
        cycle: i64,
    ) -> (usize, Vec<BlockKey>, Option<Box<str>>) {
        let cycle = cycle.to_string();
        let older = self.snapshot.replace(Arc::clone(snapshot));
        let shared = older.map_or(0, |older| snapshot.units_shared(&older));
        // A unit gives other blocks where the reply of the cycle is left out, or was.
        let replied = self.replies.get(&*cycle).copied();
        let others = [replied, self.left_out].into_iter().flatten();
        let shared = others.fold(shared, usize::min);
        self.keep_units(shared);
        let start = self.units.last().map_or(0, |unit| unit.end);
        let mut keys: Vec<BlockKey> = Vec::new();
        for (at, unit) in (shared..).zip(snapshot.units_from(shared)) {
            ensure();
            let mut replies: Vec<Box<str>> = Vec::new();
            for node in unit.nodes().inspect(|_| ensure()) {
                let Some(region) = Region::containing(node) else {
                    continue;
                };
                if let Some(reply) = node.field("data_reply") {
                    let reply = reply.json();
                    if !self.replies.contains_key(&*reply) {
                        self.replies.insert(reply.as_ref().into(), at);
                        replies.push(reply.as_ref().into());
                    }
                    if reply == cycle {
                        self.left_out.get_or_insert(at);
                        continue;
                    }
                }
                let key = node.version();
                let block = || Arc::new(ThreadBlock::from_node(node, region == Region::Sys));
                self.known.entry(key).or_insert_with(block);
                keys.push(key);
            }
            self.units.push(UnitBlocks {
                replies,
                end: start + keys.len(),
            });
        }
        let same = self.keys[start..].iter().zip(&keys);
        let same = same.take_while(|(a, b)| a == b).count();
        let parameters = render::parameters_of(snapshot);
        (start + same, keys.split_off(same), parameters)
    }
}

fn push(
    messages: &mut Vec<RequestMessage>,
    provider: Provider,
    out: &mut Vec<String>,
    blocks: Range<usize>,
) {
    for json in out.drain(..) {
        let json = pieces::message(&json, provider);
        let end = messages.last().map_or(0, |message| message.end);
        messages.push(RequestMessage {
            end: end + json.len() as u64,
            json: json.into(),
            blocks: blocks.clone(),
        });
    }
}
