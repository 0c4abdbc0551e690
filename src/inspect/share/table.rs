//! The distinct blocks of a session, and each step as the changes of a list of them.
//!
//! A block that many snapshots share is in the table once. A step says which places of the list before
//! it are replaced by what, so its size is that of the change. This file must not know what is made
//! of the table.

use crate::history::History;
use crate::index::{NodeRef, Snapshot, UnitKind, UnitRef};
use crate::inspect::show::{text_of, tool_of};
use crate::inspect::{Call, Counts, Region};
use crate::json::string;
use crate::render::ThreadBlock;
use crate::tree::hash::{ContentHash, text_hash};
use std::collections::HashMap;
use std::sync::Arc;

/// What a session has, each thing once.
#[derive(Default)]
pub(super) struct Table {
    /// Ids of blocks. A block keeps its number when its content changes.
    pub(super) ids: Vec<String>,
    /// Ids of turns.
    pub(super) turns: Vec<String>,
    /// Distinct texts, in the order in which they first appear.
    pub(super) texts: Vec<Text>,
    /// Distinct blocks, in the order in which they first appear.
    pub(super) blocks: Vec<Block>,
    /// One for each committed snapshot, oldest first.
    pub(super) steps: Vec<TableStep>,
}

/// A text of some block.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) hash: ContentHash,
    /// The text that the block had before, if it had one.
    pub(super) before: Option<u32>,
}

/// A block as it is in one or many snapshots.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Block {
    /// The index of its id.
    pub(super) id: u32,
    pub(super) region: Region,
    /// The index of the id of its turn.
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
    /// The index of its text.
    pub(super) text: u32,
}

/// A cycle.
pub(super) struct TableStep {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) call: Call,
    /// How the list of blocks differs from that of the step before; of the first, from an empty one.
    pub(super) splices: Vec<Splice>,
    pub(super) blocks: usize,
    pub(super) tokens: u64,
    pub(super) bytes: u64,
}

/// A replacement in a list of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Splice {
    /// Where it begins, in the new list. Splices are in ascending order, so they can be done one after
    /// the other.
    pub(super) at: usize,
    /// How many places go.
    pub(super) removed: usize,
    /// The indexes of blocks that come.
    pub(super) added: Vec<u32>,
}

impl Table {
    /// The table of the committed snapshots of `history`, which are all in memory. Costs what changes
    /// between neighbours, and a comparison of their units.
    pub(super) fn of(history: &History, counts: &mut Counts) -> Self {
        let mut builder = TableBuilder {
            table: Self::default(),
            counts,
            ids: HashMap::new(),
            turns: HashMap::new(),
            texts: HashMap::new(),
            blocks: HashMap::new(),
            newest: Vec::new(),
            tools: HashMap::new(),
            units: Vec::new(),
            list: Vec::new(),
        };
        for snapshot in history.committed().iter() {
            builder.step(snapshot);
        }
        builder.table
    }
}

/// A unit of the snapshot before, and where its blocks end in the list.
struct KnownUnit {
    version: u64,
    dead: Vec<u32>,
    end: usize,
}

impl KnownUnit {
    fn is(&self, unit: UnitRef<'_>) -> bool {
        let start = unit.rows().start;
        let dead = unit.dead_rows().map(|row| row - start);
        self.version == unit.version() && dead.eq(self.dead.iter().copied())
    }
}

struct TableBuilder<'a> {
    table: Table,
    counts: &'a mut Counts,
    ids: HashMap<String, u32>,
    turns: HashMap<String, u32>,
    texts: HashMap<ContentHash, u32>,
    blocks: HashMap<Block, u32>,
    /// For each id, its newest block, and the snapshot and row it was read from.
    newest: Vec<Option<(u32, Arc<Snapshot>, u32)>>,
    /// The names of tools by the ids of their calls, as JSON.
    tools: HashMap<String, String>,
    units: Vec<KnownUnit>,
    list: Vec<u32>,
}

impl TableBuilder<'_> {
    fn step(&mut self, snapshot: &Arc<Snapshot>) {
        let units: Vec<UnitRef<'_>> = snapshot.units().collect();
        let pairs = self.units.iter().zip(&units);
        let first = pairs.take_while(|(known, unit)| known.is(**unit)).count();
        let rest = self.units[first..]
            .iter()
            .rev()
            .zip(units[first..].iter().rev());
        let last = rest.take_while(|(known, unit)| known.is(**unit)).count();
        let older = self.units.split_off(first);
        let before = self.units.last();
        let start = before.map_or(0, |known| known.end);
        let (gone, kept) = older.split_at(older.len() - last);
        let gone_end = gone.last().map_or(start, |known| known.end);

        let mut fresh = Vec::new();
        for unit in &units[first..units.len() - last] {
            let turn = (unit.kind() == UnitKind::Turn).then(|| unit.top().id());
            for node in unit.nodes() {
                if let Some(region) = Region::of(node) {
                    fresh.push(self.block(snapshot, node, region, turn));
                }
            }
            self.units.push(KnownUnit {
                version: unit.version(),
                dead: unit
                    .dead_rows()
                    .map(|row| row - unit.rows().start)
                    .collect(),
                end: start + fresh.len(),
            });
        }
        let fresh_end = start + fresh.len();
        self.units.extend(kept.iter().map(|known| KnownUnit {
            version: known.version,
            dead: known.dead.clone(),
            end: known.end - gone_end + fresh_end,
        }));
        let splices = splices(&self.list[start..gone_end], &fresh, start);
        self.list.splice(start..gone_end, fresh);
        let sizes = |sums: (u64, u64), at: &u32| {
            let block = &self.table.blocks[*at as usize];
            let text = &self.table.texts[block.text as usize];
            (sums.0 + block.tokens, sums.1 + text.text.len() as u64)
        };
        let (tokens, bytes) = self.list.iter().fold((0, 0), sizes);
        self.table.steps.push(TableStep {
            snapshot: Arc::clone(snapshot),
            call: Call::of(snapshot),
            splices,
            blocks: self.list.len(),
            tokens,
            bytes,
        });
    }

    /// The index of a block.
    fn block(
        &mut self,
        snapshot: &Arc<Snapshot>,
        node: NodeRef<'_>,
        region: Region,
        turn: Option<&str>,
    ) -> u32 {
        let id = number(&mut self.ids, &mut self.table.ids, node.id());
        let turn = turn.map(|turn| number(&mut self.turns, &mut self.table.turns, turn));
        if self.newest.len() <= id as usize {
            self.newest.resize(id as usize + 1, None);
        }
        // A unit that grew has its older blocks once more.
        let newest = self.newest[id as usize].clone();
        if let Some((block, older, row)) = &newest {
            let known = &self.table.blocks[*block as usize];
            let is_there = known.region == region && known.turn == turn;
            if is_there && is_equal(older.node(*row), node) {
                return *block;
            }
        }
        let read = ThreadBlock::of(node, region == Region::Sys);
        if read.kind() == Some("call")
            && let Some(call) = read.data("data_call_id")
            && let Some(tool) = tool_of(&read, &self.tools)
        {
            self.tools.insert(call.to_owned(), tool);
        }
        let before = newest.map(|(block, _, _)| self.table.blocks[block as usize].text);
        let block = Block {
            id,
            region,
            turn,
            role: read.role().to_owned(),
            kind: read.kind().map(str::to_owned),
            tool: tool_of(&read, &self.tools),
            call_id: read
                .data("data_call_id")
                .and_then(string)
                .map(|id| id.into_owned()),
            reply: node
                .field("data_reply")
                .map(|reply| reply.json().into_owned()),
            error: read.data("data_is_error") == Some("true") || read.kind() == Some("error"),
            tokens: self.counts.block(&read),
            text: self.text(text_of(&read), before),
        };
        let next = self.table.blocks.len() as u32;
        let index = *self.blocks.entry(block.clone()).or_insert(next);
        if index == next {
            self.table.blocks.push(block);
        }
        self.newest[id as usize] = Some((index, Arc::clone(snapshot), node.row()));
        index
    }

    fn text(&mut self, text: String, before: Option<u32>) -> u32 {
        let hash = text_hash(&text);
        let next = self.table.texts.len() as u32;
        let index = *self.texts.entry(hash).or_insert(next);
        if index == next {
            self.table.texts.push(Text { text, hash, before });
        }
        index
    }
}

/// The number of a name.
fn number(known: &mut HashMap<String, u32>, names: &mut Vec<String>, name: &str) -> u32 {
    if let Some(number) = known.get(name) {
        return *number;
    }
    let next = names.len() as u32;
    names.push(name.to_owned());
    known.insert(name.to_owned(), next);
    next
}

/// Whether two nodes say the same.
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
    let places: Vec<Option<usize>> = new.iter().map(|at| places.get(at).copied()).collect();
    let mut splices = Vec::new();
    let (mut from, mut to) = (0, 0);
    let ends = std::iter::once((old.len(), new.len()));
    for (a, b) in ascending(&places).into_iter().chain(ends) {
        if a > from || b > to {
            splices.push(Splice {
                at: start + to,
                removed: a - from,
                added: new[to..b].to_vec(),
            });
        }
        (from, to) = (a + 1, b + 1);
    }
    splices
}

/// The longest ascending run of places, as pairs of a place and its index.
fn ascending(places: &[Option<usize>]) -> Vec<(usize, usize)> {
    // For each length, the run with the smallest end: the index of its last element.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; places.len()];
    for (index, place) in places.iter().enumerate() {
        let Some(place) = *place else {
            continue;
        };
        let length = ends.partition_point(|(end, _)| *end < place);
        before[index] = length.checked_sub(1).map(|shorter| ends[shorter].1);
        match ends.get_mut(length) {
            Some(end) => *end = (place, index),
            None => ends.push((place, index)),
        }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut next = ends.last().map(|(_, index)| *index);
    while let Some(index) = next {
        run.extend(places[index].map(|place| (place, index)));
        next = before[index];
    }
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use super::splices;
    use proptest::prelude::*;

    fn applied(old: &[u32], new: &[u32]) -> Vec<u32> {
        let mut list = old.to_vec();
        for splice in splices(old, new, 0) {
            list.splice(splice.at..splice.at + splice.removed, splice.added);
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
        let named: usize = found.iter().map(|splice| splice.added.len()).sum();
        assert_eq!((found.len(), named), (3, 3));
        assert_eq!(found[0].at, 10);
        assert!(splices(&old, &old, 0).is_empty());
    }
}
