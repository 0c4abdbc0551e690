//! Sizes of blocks, alone and in groups: by region, role, kind, turn, tool, key or block.
//!
//! Token counts are kept by content, so a text is counted once however often it is sent: a block is looked up by its
//! node's version, which snapshots share, then by the hash of its text. The groups of a unit are added up once and kept by
//! the unit's version, so a snapshot costs its units and not its nodes.

use super::lists::Numbered;
use super::part::{ChosenSnapshot, Region};
use super::tokenizer::Tokenizer;
use crate::index::{NodeRef, UnitRef};
use crate::json::{JsonValue, get, members, string};
use crate::render::{BlockFields, SentTexts, ThreadBlock, Wording};
use crate::support::cancel::ensure;
use crate::support::macros::names;
use crate::tree::NodeClass;
use hashbrown::{HashMap, HashSet};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
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

/// The most texts of earlier sessions whose tokens are kept: a few megabytes.
const MOST_TEXTS: usize = 65_536;

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
    /// Blocks by their id and what is sent of them: one that did not change has another version where its turn did.
    blocks: HashSet<[u8; 32]>,
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
        self.digest(text).1
    }

    /// The hash of a text, and its tokens.
    fn digest(&mut self, text: &str) -> ([u8; 32], u64) {
        let key = Sha256::digest(text).into();
        if let Some(tokens) = self.texts.get(&key) {
            return (key, *tokens);
        }
        let tokens = self.tokenizer.count(text);
        self.texts.insert(key, tokens);
        self.distinct.bytes += text.len() as u64;
        self.distinct.tokens += tokens;
        (key, tokens)
    }

    /// Forgets what no other session has again, and more where that is much: texts that sessions share are kept as long
    /// as they are few. [`Self::distinct`] then counts again what comes again.
    pub(super) fn next_session(&mut self) {
        self.nodes.clear();
        self.blocks.clear();
        if self.texts.len() > MOST_TEXTS {
            self.texts.clear();
        }
    }

    /// All distinct texts so far; `blocks` and `media` are those of distinct blocks: of another id, or with another text.
    #[must_use]
    pub fn distinct(&self) -> Totals {
        self.distinct
    }

    /// The tokens of what rendering sends of a block. Linear in its content.
    pub fn block(&mut self, block: &ThreadBlock) -> u64 {
        let wording = Wording::from_block(block);
        wording.texts().map(|text| self.text(text)).sum()
    }

    /// The sizes of what rendering sends of a block; `system` says that it is under `^sys`.
    pub(super) fn node(&mut self, node: NodeRef<'_>, system: bool) -> Totals {
        let version = node.version();
        if let Some(totals) = self.nodes.get(&version) {
            return *totals;
        }
        let mut block = Sha256::new_with_prefix(node.id());
        let totals = sizes(&SentTexts::new(node, system), |text| {
            let (key, tokens) = self.digest(text);
            block.update(key);
            tokens
        });
        if self.blocks.insert(block.finalize().into()) {
            self.distinct.blocks += 1;
            self.distinct.media += totals.media;
        }
        self.nodes.insert(version, totals);
        totals
    }

    /// The same, of a block without a version. To estimate a text again takes less than to find it.
    pub(super) fn apart<'a>(&mut self, block: impl BlockFields<'a>, system: bool) -> Totals {
        let tokenizer = self.tokenizer;
        sizes(&SentTexts::new(block, system), |text| {
            if tokenizer.is_estimate() {
                tokenizer.count(text)
            } else {
                self.text(text)
            }
        })
    }
}

fn sizes(sent: &SentTexts<'_>, mut tokens: impl FnMut(&str) -> u64) -> Totals {
    let mut totals = Totals {
        blocks: 1,
        media: u64::from(sent.media),
        ..Totals::default()
    };
    for text in sent.iter() {
        totals.bytes += text.len() as u64;
        totals.tokens += tokens(text);
    }
    totals
}

names! {
    /// What blocks are grouped by.
    ///
    /// ```
    /// use pactql::inspect::By;
    /// assert_eq!(By::parse("role"), Some(By::Role));
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    #[non_exhaustive]
    pub enum By: as_str {
        /// `^sys`, `^seq`, `^ah`.
        #[default]
        Region = "region",
        /// The role, or that of the region where a block has none.
        Role = "role",
        /// The kind; those without one have none.
        Kind = "kind",
        /// The turn by its id, or the region outside turns.
        Turn = "turn",
        /// The tool of calls, results and definitions; other blocks have none.
        Tool = "tool",
        /// The key; those without one have none.
        Key = "key",
        /// The block by its id.
        Block = "block",
    }
}

/// A group of blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Group {
    /// What its blocks have in common; `None` if they have no such thing.
    pub name: Option<String>,
    /// Their sizes.
    #[serde(flatten)]
    pub totals: Totals,
}

/// Sorts groups by tokens, then bytes, then blocks, the largest first, then by name.
pub(super) fn sort(groups: &mut [Group]) {
    let size = |group: &Group| {
        let totals = group.totals;
        (totals.tokens, totals.bytes, totals.blocks)
    };
    groups.sort_by(|a, b| size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name)));
}

/// Groups by one thing, for snapshots of one session in any order.
#[derive(Default)]
pub(super) struct Groups {
    by: By,
    names: Numbered<Option<String>>,
    /// The sizes of whole units, by version.
    units: HashMap<u64, Vec<(u32, Totals)>>,
    tools: ToolNames,
}

impl Groups {
    pub(super) fn new(by: By) -> Self {
        Self {
            by,
            ..Self::default()
        }
    }

    pub(super) fn add_up(&mut self, chosen: &ChosenSnapshot, counts: &mut Counts) -> Vec<Group> {
        let mut sums: Vec<Option<Totals>> = vec![None; self.names.list.len()];
        if chosen.rows.is_none() {
            for unit in chosen.snapshot.units().inspect(|_| ensure()) {
                self.add_unit(unit, counts, &mut sums);
            }
        } else {
            if self.by == By::Tool {
                let nodes = chosen.snapshot.nodes();
                let blocks = nodes.filter(|node| node.class() == NodeClass::Block);
                blocks.for_each(|node| self.tools.note(node));
            }
            for (node, region) in chosen.blocks() {
                let (group, totals) = self.block(node, region, counts);
                add(&mut sums, group, totals);
            }
        }
        let groups = sums.into_iter().zip(&self.names.list);
        let mut groups: Vec<Group> = groups
            .filter_map(|(totals, name)| {
                let name = name.clone();
                totals.map(|totals| Group { name, totals })
            })
            .collect();
        sort(&mut groups);
        groups
    }

    fn add_unit(&mut self, unit: UnitRef<'_>, counts: &mut Counts, sums: &mut Vec<Option<Totals>>) {
        let whole = unit.dead_rows().next().is_none();
        if whole && let Some(known) = self.units.get(&unit.version()) {
            for (group, totals) in known {
                add(sums, *group, *totals);
            }
            return;
        }
        let mut found: Vec<(u32, Totals)> = Vec::new();
        for node in unit.nodes().inspect(|_| ensure()) {
            if self.by == By::Tool && node.class() == NodeClass::Block {
                self.tools.note(node);
            }
            let Some(region) = Region::containing(node) else {
                continue;
            };
            let (group, totals) = self.block(node, region, counts);
            match found.iter_mut().find(|(known, _)| *known == group) {
                Some((_, sum)) => *sum += totals,
                None => found.push((group, totals)),
            }
            add(sums, group, totals);
        }
        if whole {
            self.units.insert(unit.version(), found);
        }
    }

    fn block(&mut self, node: NodeRef<'_>, region: Region, counts: &mut Counts) -> (u32, Totals) {
        let name = self.by.group(node, region, &self.tools);
        let name = name.map(Cow::into_owned);
        let group = self.names.number(&name, || name.clone());
        (group, counts.node(node, region == Region::Sys))
    }
}

impl By {
    /// What a block has in common with those of its group.
    pub(super) fn group<'a>(
        self,
        block: impl BlockFields<'a>,
        region: Region,
        tools: &ToolNames,
    ) -> Option<Cow<'a, str>> {
        Some(match self {
            Self::Region => region.name().into(),
            Self::Role => role(block, region).into(),
            Self::Kind => block.kind()?.into(),
            Self::Key => block.key()?.into(),
            Self::Block => block.id().into(),
            Self::Turn => turn(block, region).into(),
            Self::Tool => match block.kind()? {
                "tool" if region != Region::Sys => return None,
                "tool" | "call" | "result" | "error" => tools.name(block)?.into(),
                _ => return None,
            },
        })
    }
}

fn add(sums: &mut Vec<Option<Totals>>, group: u32, totals: Totals) {
    let group = group as usize;
    if sums.len() <= group {
        sums.resize(group + 1, None);
    }
    if let Some(sum) = sums.get_mut(group) {
        *sum.get_or_insert_default() += totals;
    }
}

pub(super) fn role<'a>(node: impl BlockFields<'a>, region: Region) -> &'a str {
    node.role().unwrap_or(match region {
        Region::Sys => "system",
        Region::Seq | Region::Ah => "user",
    })
}

fn turn<'a>(node: impl BlockFields<'a>, region: Region) -> &'a str {
    match region {
        Region::Seq => node.top(),
        Region::Sys | Region::Ah => region.name(),
    }
}

/// The tools of calls by the ids of the calls, for their results.
#[derive(Default)]
pub(super) struct ToolNames(HashMap<String, String>);

impl ToolNames {
    pub(super) fn note<'a>(&mut self, node: impl BlockFields<'a>) {
        if let Some((id, name)) = Self::of_call(node) {
            self.add(id, name);
        }
    }

    /// The id of a call, and its tool.
    pub(super) fn of_call<'a>(node: impl BlockFields<'a>) -> Option<(String, String)> {
        let name = call_name(node).filter(|_| node.kind() == Some("call"))?;
        let id = node.field("data_call_id").map(JsonValue::plain);
        Some((id.unwrap_or(node.id().into()).into(), name))
    }

    pub(super) fn add(&mut self, id: String, tool: String) {
        self.0.insert(id, tool);
    }

    /// The tool that a block defines, calls, or is a result of.
    pub(super) fn name<'a>(&self, node: impl BlockFields<'a>) -> Option<String> {
        match node.kind() {
            Some("call") => call_name(node),
            Some("tool") => tool_name(node),
            _ => {
                let named = node.field("data_call_name").and_then(JsonValue::text);
                let of_call = || self.0.get(&*node.field("data_call_id")?.plain());
                named.map(str::to_owned).or_else(|| of_call().cloned())
            }
        }
    }
}

pub(super) fn call_name<'a>(node: impl BlockFields<'a>) -> Option<String> {
    let name = node.field("data_call_name").and_then(JsonValue::text);
    name.or_else(|| node.key()).map(str::to_owned)
}

/// The name of the tool that a block defines: its key, or else what the definition says.
pub(super) fn tool_name<'a>(node: impl BlockFields<'a>) -> Option<String> {
    let defined = || named_in(&node.field("content")?.plain());
    node.key().map(str::to_owned).or_else(defined)
}

/// The name in the definition of a tool, which is JSON.
pub(super) fn named_in(definition: &str) -> Option<String> {
    let found = members(definition);
    let inner = get(&found, "function").map(members).unwrap_or_default();
    let name = get(&found, "name").or_else(|| get(&inner, "name"))?;
    string(name).map(Cow::into_owned)
}
