//! A lower bound for the engine: bitsets over nodes in preorder, written by hand for these ten
//! queries, and ids in one string. There is no planning and no session.

use super::queries::{Query, Task};
use super::walk::{Node, NodeType, Tree};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::hint::black_box;

/// One bit for each node.
#[derive(Clone, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, row: usize) {
        let word = row / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (row % 64);
    }

    fn word(&self, word: usize) -> u64 {
        self.0.get(word).copied().unwrap_or(0)
    }
}

/// The session as bitsets.
pub(crate) struct Floor {
    ids: String,
    /// The end of each id, which is the start of the next.
    ends: Vec<u32>,
    directory: HashTable<u32>,
    hasher: DefaultHashBuilder,
    blocks: Bits,
    cores: Bits,
    /// Rows below a container.
    in_core: Bits,
    by_role: BTreeMap<String, Bits>,
    by_kind: BTreeMap<String, Bits>,
    by_priority: [Bits; 10],
    /// Rows with a ttl of 0 and 1.
    by_ttl: [Bits; 2],
    pre: Bits,
    sealed: (usize, usize),
    last_turn: (usize, usize),
    last_three: (usize, usize),
    head: (usize, usize),
}

/// Builds the bitsets.
pub(crate) fn load(tree: &Tree) -> Floor {
    let mut floor = Floor {
        ids: String::new(),
        ends: Vec::new(),
        directory: HashTable::new(),
        hasher: DefaultHashBuilder::default(),
        blocks: Bits::default(),
        cores: Bits::default(),
        in_core: Bits::default(),
        by_role: BTreeMap::new(),
        by_kind: BTreeMap::new(),
        by_priority: Default::default(),
        by_ttl: Default::default(),
        pre: Bits::default(),
        sealed: (0, 0),
        last_turn: (0, 0),
        last_three: (0, 0),
        head: (0, 0),
    };
    floor.add(&tree.root, false);
    for row in 0..floor.ends.len() as u32 {
        let hash = floor.hasher.hash_one(floor.id(row as usize));
        let (ids, ends, hasher) = (&floor.ids, &floor.ends, &floor.hasher);
        floor.directory.insert_unique(hash, row, |&row| {
            hasher.hash_one(id_in(ids, ends, row as usize))
        });
    }
    floor
}

fn id_in<'a>(ids: &'a str, ends: &[u32], row: usize) -> &'a str {
    let start = if row == 0 { 0 } else { ends[row - 1] };
    &ids[start as usize..ends[row] as usize]
}

impl Floor {
    fn add(&mut self, node: &Node, in_core: bool) {
        let row = self.ends.len();
        self.ids.push_str(&node.id);
        self.ends.push(self.ids.len() as u32);
        match node.node_type {
            NodeType::Block => self.blocks.set(row),
            NodeType::Container => self.cores.set(row),
            _ => {}
        }
        if let Some(role) = &node.role {
            self.by_role.entry(role.clone()).or_default().set(row);
        }
        if let Some(kind) = &node.kind {
            self.by_kind.entry(kind.clone()).or_default().set(row);
        }
        if in_core {
            self.in_core.set(row);
        }
        self.by_priority[node.priority as usize].set(row);
        if let Some(ttl @ 0..=1) = node.ttl {
            self.by_ttl[ttl as usize].set(row);
        }
        if node.offset < 0 {
            self.pre.set(row);
        }
        let count = node.children.len();
        for (index, child) in node.children.iter().enumerate() {
            let start = self.ends.len();
            self.add(child, in_core || node.node_type == NodeType::Container);
            if node.node_type == NodeType::Seq {
                if count - index == 3 {
                    self.last_three.0 = start;
                }
                self.last_turn = (start, self.ends.len());
                self.last_three.1 = self.ends.len();
            }
        }
        match node.node_type {
            NodeType::Seq => self.sealed = (row, self.ends.len()),
            NodeType::Head => self.head = (row, self.ends.len()),
            _ => {}
        }
    }

    fn id(&self, row: usize) -> &str {
        id_in(&self.ids, &self.ends, row)
    }

    /// The ids of the rows of `range` whose bit is set in the words that `word` returns.
    fn list(&self, range: (usize, usize), word: impl Fn(usize) -> u64) -> Vec<&str> {
        let words = range.0 / 64..range.1.div_ceil(64);
        let clip = |at: usize| {
            let mut bits = word(at);
            if at == range.0 / 64 {
                bits &= !0 << (range.0 % 64);
            }
            if at == range.1 / 64 {
                bits &= !(!0 << (range.1 % 64));
            }
            bits
        };
        let count = words.clone().map(|at| clip(at).count_ones() as usize).sum();
        let mut found = Vec::with_capacity(count);
        for at in words {
            let mut bits = clip(at);
            while bits != 0 {
                found.push(self.id(at * 64 + bits.trailing_zeros() as usize));
                bits &= bits - 1;
            }
        }
        found
    }

    fn all(&self) -> (usize, usize) {
        (0, self.ends.len())
    }

    /// The ids that answer `query`.
    pub(crate) fn answer(&self, query: Query, id: &str) -> Vec<&str> {
        let (blocks, pre) = (&self.blocks, &self.pre);
        match query {
            Query::ById => {
                let hash = self.hasher.hash_one(id);
                self.directory
                    .find(hash, |&row| self.id(row as usize) == id)
                    .map(|&row| self.id(row as usize))
                    .into_iter()
                    .collect()
            }
            Query::Assistant => {
                let role = &self.by_role["assistant"];
                self.list(self.all(), |at| blocks.word(at) & role.word(at))
            }
            Query::LastTurn => {
                let role = &self.by_role["assistant"];
                self.list(self.last_turn, |at| {
                    blocks.word(at) & role.word(at) & self.in_core.word(at)
                })
            }
            Query::LastThree => {
                let role = &self.by_role["user"];
                self.list(self.last_three, |at| blocks.word(at) & role.word(at))
            }
            Query::Summary => {
                let kind = &self.by_kind["summary"];
                let [.., eight, nine] = &self.by_priority;
                self.list(self.all(), |at| {
                    blocks.word(at) & kind.word(at) & (eight.word(at) | nine.word(at))
                })
            }
            Query::Ttl => {
                let [zero, one] = &self.by_ttl;
                self.list(self.all(), |at| zero.word(at) | one.word(at))
            }
            Query::HeadPre => self.list(self.head, |at| blocks.word(at) & pre.word(at)),
            Query::Calls => {
                let kind = &self.by_kind["call"];
                self.list(self.sealed, |at| {
                    blocks.word(at) & kind.word(at) & self.in_core.word(at)
                })
            }
            Query::Blocks => self.list(self.all(), |at| blocks.word(at)),
            Query::FirstBlocks => {
                // The first child of a container is the next row.
                let cores = &self.cores;
                self.list(self.sealed, |at| {
                    let before = if at == 0 { 0 } else { cores.word(at - 1) >> 63 };
                    blocks.word(at) & (cores.word(at) << 1 | before)
                })
            }
        }
    }

    /// `query` as something to time.
    pub(crate) fn task<'a>(&'a self, query: Query, id: &'a str) -> Task<'a> {
        Box::new(move || black_box(self.answer(black_box(query), black_box(id))).len())
    }
}
