//! The distinct blocks of a session, and each step as the changes of a list of them.
//!
//! A block that many snapshots share is in the table once. A step says which places of the list before it are
//! replaced by what, so its size is that of the change.

use crate::history::History;
use crate::index::{NodeRef, Snapshot, UnitKind};
use crate::inspect::groups::{ToolNames, role};
use crate::inspect::happened::events;
use crate::inspect::lists::{Numbered, ascending};
use crate::inspect::show::{field_text, is_error, text_of};
use crate::inspect::{Call, Counts, Region, StepEvent};
use crate::tree::hash::{ContentHash, text_hash};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct ShareTable {
    /// Ids of blocks. A block keeps its number when its content changes.
    pub(super) ids: Numbered<String>,
    pub(super) turns: Numbered<String>,
    pub(super) texts: Numbered<ContentHash, TableText>,
    pub(super) blocks: Numbered<TableBlock>,
    /// One for each committed snapshot, oldest first.
    pub(super) steps: Vec<TableStep>,
}

pub(super) struct TableText {
    pub(super) text: String,
    pub(super) hash: ContentHash,
    /// The text that the block had before, if it had one.
    pub(super) before: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct TableBlock {
    pub(super) id: u32,
    pub(super) region: Region,
    pub(super) turn: Option<u32>,
    pub(super) role: String,
    pub(super) kind: Option<String>,
    /// The tool that it defines, calls, or is a result of.
    pub(super) tool: Option<String>,
    pub(super) call_id: Option<String>,
    /// The cycle whose reply it is, as JSON.
    pub(super) reply: Option<String>,
    pub(super) error: bool,
    pub(super) tokens: u64,
    pub(super) text: u32,
}

pub(super) struct TableStep {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) call: Call,
    pub(super) events: Vec<StepEvent>,
    /// How the list of blocks differs from that of the step before; of the first, from an empty one.
    pub(super) splices: Vec<Splice>,
    pub(super) blocks: usize,
    pub(super) tokens: u64,
    pub(super) bytes: u64,
}

/// A replacement in a list of blocks: where it begins in the new list, how many places go, and the indexes of
/// the blocks that come. They ascend, so they can be done one after the other.
pub(super) type Splice = (usize, usize, Vec<u32>);

impl ShareTable {
    /// The table of the committed snapshots of `history`, which are all in memory. Costs what changes
    /// between neighbours.
    pub(super) fn new(history: &History, counts: &mut Counts) -> Self {
        let mut builder = TableBuilder {
            table: Self::default(),
            counts,
            newest: Vec::new(),
            tools: ToolNames::default(),
            units: Vec::new(),
            list: Vec::new(),
            sums: (0, 0),
        };
        for snapshot in history.committed().iter() {
            builder.step(history, snapshot);
        }
        builder.table
    }

    pub(super) fn text(&self, block: &TableBlock) -> &TableText {
        &self.texts.list[block.text as usize]
    }
}

struct TableBuilder<'a> {
    table: ShareTable,
    counts: &'a mut Counts,
    /// For each id, its newest block, and the snapshot and row it was read from.
    newest: Vec<Option<(u32, Arc<Snapshot>, u32)>>,
    tools: ToolNames,
    /// Where the blocks of each unit of the snapshot before end in the list.
    units: Vec<usize>,
    list: Vec<u32>,
    /// The tokens and the bytes of the list.
    sums: (u64, u64),
}

impl TableBuilder<'_> {
    fn step(&mut self, history: &History, snapshot: &Arc<Snapshot>) {
        let count = snapshot.unit_count();
        let before = self.table.steps.last().map(|step| &*step.snapshot);
        let first = before.map_or(0, |before| snapshot.units_shared(before));
        let most = count.min(self.units.len()) - first;
        let last = before.map_or(0, |before| snapshot.units_shared_at_end(before, most));
        let older = self.units.split_off(first);
        let start = self.units.last().copied().unwrap_or(0);
        let (gone, kept) = older.split_at(older.len() - last);
        let gone_end = gone.last().copied().unwrap_or(start);

        let mut fresh = Vec::new();
        for unit in snapshot.units_from(first).take(count - last - first) {
            let turn = (unit.kind() == UnitKind::Turn).then(|| unit.top().id());
            for node in unit.nodes() {
                if let Some(region) = Region::containing(node) {
                    fresh.push(self.block(snapshot, node, region, turn));
                }
            }
            self.units.push(start + fresh.len());
        }
        let fresh_end = start + fresh.len();
        let moved = kept.iter().map(|end| end - gone_end + fresh_end);
        self.units.extend(moved);
        let splices = splices(&self.list[start..gone_end], &fresh, start);
        let sizes = |sums: (u64, u64), at: &u32| {
            let block = &self.table.blocks.list[*at as usize];
            let text = &self.table.text(block).text;
            (sums.0 + block.tokens, sums.1 + text.len() as u64)
        };
        let came = fresh.iter().fold(self.sums, sizes);
        let went = self.list[start..gone_end].iter().fold((0, 0), sizes);
        let (tokens, bytes) = (came.0 - went.0, came.1 - went.1);
        self.sums = (tokens, bytes);
        self.list.splice(start..gone_end, fresh);
        let call = Call::in_history(history, snapshot);
        self.table.steps.push(TableStep {
            snapshot: Arc::clone(snapshot),
            events: events(history, snapshot, &call),
            call,
            splices,
            blocks: self.list.len(),
            tokens,
            bytes,
        });
    }

    fn block(
        &mut self,
        snapshot: &Arc<Snapshot>,
        node: NodeRef<'_>,
        region: Region,
        turn: Option<&str>,
    ) -> u32 {
        let id = self.table.ids.name(node.id());
        let turn = turn.map(|turn| self.table.turns.name(turn));
        if self.newest.len() <= id as usize {
            self.newest.resize(id as usize + 1, None);
        }
        // A unit that grew has its older blocks once more.
        let newest = self.newest[id as usize].clone();
        if let Some((block, older, row)) = &newest {
            let known = &self.table.blocks.list[*block as usize];
            let is_there = known.region == region && known.turn == turn;
            if is_there && is_equal(older.node(*row), node) {
                return *block;
            }
        }
        self.tools.note(node);
        let before = newest.map(|(block, _, _)| self.table.blocks.list[block as usize].text);
        let text = text_of(node, region);
        let hash = text_hash(&text);
        let block = TableBlock {
            id,
            region,
            turn,
            role: role(node, region).to_owned(),
            kind: node.kind().map(str::to_owned),
            tool: self.tools.name(node),
            call_id: field_text(node, "data_call_id"),
            reply: node.field("data_reply").map(|reply| reply.json().into()),
            error: is_error(node),
            tokens: self.counts.node(node, region == Region::Sys).tokens,
            text: self
                .table
                .texts
                .number(&hash, || TableText { text, hash, before }),
        };
        let index = self.table.blocks.number(&block, || block.clone());
        self.newest[id as usize] = Some((index, Arc::clone(snapshot), node.row()));
        index
    }
}

fn is_equal(a: NodeRef<'_>, b: NodeRef<'_>) -> bool {
    a.version() == b.version()
        || (a.role() == b.role()
            && a.kind() == b.kind()
            && a.key() == b.key()
            && a.fields().eq(b.fields()))
}

/// The fewest replacements that turn `old` into `new`, lists in which no block is twice. `start` is
/// where they begin in the whole list. `n log n`: what stays is the longest ascending run of old places.
pub(super) fn splices(old: &[u32], new: &[u32], start: usize) -> Vec<Splice> {
    let pairs = old.iter().zip(new);
    let head = pairs.take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..], &new[head..]);
    let pairs = old.iter().rev().zip(new.iter().rev());
    let tail = pairs.take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let start = start + head;

    let places: HashMap<u32, usize> = old.iter().copied().zip(0..).collect();
    let pairs = new.iter().enumerate();
    let pairs = pairs.filter_map(|(at, block)| Some((at, *places.get(block)?)));
    let stay = ascending(&pairs.collect::<Vec<_>>());
    let mut splices = Vec::new();
    let (mut from, mut to) = (0, 0);
    for (b, a) in stay.into_iter().chain([(new.len(), old.len())]) {
        if a > from || b > to {
            splices.push((start + to, a - from, new[to..b].to_vec()));
        }
        (from, to) = (a + 1, b + 1);
    }
    splices
}

#[cfg(test)]
mod tests {
    use super::splices;
    use proptest::prelude::*;

    fn applied(old: &[u32], new: &[u32]) -> Vec<u32> {
        let mut list = old.to_vec();
        for (at, removed, added) in splices(old, new, 0) {
            list.splice(at..at + removed, added);
        }
        list
    }

    proptest! {
        #[test]
        fn splices_turn_one_list_into_the_other(
            old in proptest::collection::hash_set(0_u32..40, 0..30),
            new in proptest::collection::hash_set(0_u32..40, 0..30),
        ) {
            let (old, new): (Vec<u32>, Vec<u32>) = (old.into_iter().collect(), new.into_iter().collect());
            prop_assert_eq!(applied(&old, &new), new);
        }
    }

    #[test]
    fn what_stays_is_not_named() {
        let old: Vec<u32> = (0..100).collect();
        let mut new = old.clone();
        new[3] = 200;
        new.insert(50, 201);
        new.push(202);
        let found = splices(&old, &new, 7);
        let named: usize = found.iter().map(|(_, _, added)| added.len()).sum();
        assert_eq!((found.len(), named), (3, 3));
        assert_eq!(found[0].0, 10);
        assert!(splices(&old, &old, 0).is_empty());
    }
}
