//! Blocks in groups: by region, role, kind, turn, tool or key, with their sizes.
//!
//! The groups of a unit are added up once and kept by the unit's version, so a snapshot costs its
//! units and not its nodes. This file must not know sessions or reports.

use super::counts::{Counts, Totals};
use super::part::Region;
use crate::index::{NodeRef, Snapshot, UnitRef};
use crate::json::{JsonValue, string};
use crate::support::cancel::ensure;
use hashbrown::HashMap;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// What blocks are grouped by.
///
/// ```
/// use pactql::inspect::By;
/// assert_eq!("role".parse(), Ok(By::Role));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum By {
    /// `^sys`, `^seq`, `^ah`.
    #[default]
    Region,
    /// The role, or that of the region where a block has none.
    Role,
    /// The kind; those without one have none.
    Kind,
    /// The turn by its id, or the region outside turns.
    Turn,
    /// The tool of calls, results and definitions; other blocks have none.
    Tool,
    /// The key; those without one have none.
    Key,
}

impl By {
    /// All, in the order of the documents.
    pub const ALL: [Self; 6] = [
        Self::Region,
        Self::Role,
        Self::Kind,
        Self::Turn,
        Self::Tool,
        Self::Key,
    ];

    /// The word for it, such as `region`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Role => "role",
            Self::Kind => "kind",
            Self::Turn => "turn",
            Self::Tool => "tool",
            Self::Key => "key",
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is no [`By`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("blocks cannot be grouped by `{0}`")]
pub struct UnknownGroup(pub String);

impl FromStr for By {
    type Err = UnknownGroup;

    fn from_str(name: &str) -> Result<Self, UnknownGroup> {
        let found = Self::ALL.into_iter().find(|by| by.name() == name);
        found.ok_or_else(|| UnknownGroup(name.to_owned()))
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
pub(super) struct Groups {
    by: By,
    names: Vec<Option<String>>,
    numbers: HashMap<Option<String>, u32>,
    /// The sizes of whole units, by version.
    units: HashMap<u64, Vec<(u32, Totals)>>,
    /// The tools of calls by the ids of the calls.
    calls: HashMap<String, String>,
}

impl Groups {
    pub(super) fn new(by: By) -> Self {
        Self {
            by,
            names: Vec::new(),
            numbers: HashMap::new(),
            units: HashMap::new(),
            calls: HashMap::new(),
        }
    }

    /// Adds the blocks of a snapshot up. With `rows`, only those in them.
    pub(super) fn add_up(
        &mut self,
        snapshot: &Snapshot,
        rows: Option<&[Range<u32>]>,
        counts: &mut Counts,
    ) -> Vec<Group> {
        let mut sums: Vec<Option<Totals>> = vec![None; self.names.len()];
        match rows {
            None => {
                for unit in snapshot.units().inspect(|_| ensure()) {
                    self.add_unit(unit, counts, &mut sums);
                }
            }
            Some(rows) => {
                if self.by == By::Tool {
                    snapshot.nodes().for_each(|node| self.note_call(node));
                }
                let nodes = rows.iter().flat_map(|rows| snapshot.nodes_in(rows.clone()));
                for node in nodes.inspect(|_| ensure()) {
                    if let Some((group, totals)) = self.block(node, counts) {
                        add(&mut sums, group, totals);
                    }
                }
            }
        }
        let groups = sums.into_iter().zip(&self.names);
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
            self.note_call(node);
            let Some((group, totals)) = self.block(node, counts) else {
                continue;
            };
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

    /// The group of a block and its sizes; `None` if it is not sent.
    fn block(&mut self, node: NodeRef<'_>, counts: &mut Counts) -> Option<(u32, Totals)> {
        let region = Region::of(node)?;
        let name = self.name_of(node, region);
        let group = match self.numbers.get(&name) {
            Some(group) => *group,
            None => {
                let group = self.names.len() as u32;
                self.names.push(name.clone());
                self.numbers.insert(name, group);
                group
            }
        };
        Some((group, counts.node(node, region == Region::Sys)))
    }

    fn name_of(&self, node: NodeRef<'_>, region: Region) -> Option<String> {
        match self.by {
            By::Region => Some(region.name().to_owned()),
            By::Role => Some(role(node, region).to_owned()),
            By::Kind => node.kind().map(str::to_owned),
            By::Key => node.key().map(str::to_owned),
            By::Turn => Some(turn(node, region).to_owned()),
            By::Tool => self.tool(node, region),
        }
    }

    fn tool(&self, node: NodeRef<'_>, region: Region) -> Option<String> {
        let named = |name: &str| {
            node.field(name)
                .and_then(JsonValue::text)
                .map(str::to_owned)
        };
        match node.kind()? {
            "call" => call_name(node),
            "tool" if region == Region::Sys => tool_name(node),
            "result" | "error" => named("data_call_name").or_else(|| {
                let id = named("data_call_id")?;
                self.calls.get(&id).cloned()
            }),
            _ => None,
        }
    }

    /// Keeps the tool of a call for its result.
    fn note_call(&mut self, node: NodeRef<'_>) {
        if self.by == By::Tool
            && node.kind() == Some("call")
            && let Some(name) = call_name(node)
        {
            let id = node.field("data_call_id").and_then(JsonValue::text);
            self.calls.insert(id.unwrap_or(node.id()).to_owned(), name);
        }
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

/// The role of a block, or that of its region.
pub(super) fn role<'a>(node: NodeRef<'a>, region: Region) -> &'a str {
    node.role().unwrap_or(match region {
        Region::Sys => "system",
        Region::Seq | Region::Ah => "user",
    })
}

/// The id of the turn that a block is in, or the name of its region.
pub(super) fn turn<'a>(node: NodeRef<'a>, region: Region) -> &'a str {
    match region {
        Region::Seq => UnitRef::of(node).top().id(),
        Region::Sys | Region::Ah => region.name(),
    }
}

/// The name of the function that a block calls.
pub(super) fn call_name(node: NodeRef<'_>) -> Option<String> {
    let name = node.field("data_call_name").and_then(JsonValue::text);
    name.or_else(|| node.key()).map(str::to_owned)
}

/// The name of the tool that a block defines: its key, or else what the definition says.
pub(super) fn tool_name(node: NodeRef<'_>) -> Option<String> {
    use crate::json::{get, members};
    if let Some(key) = node.key() {
        return Some(key.to_owned());
    }
    let content = node.field("content")?;
    let content = content.text().map_or_else(|| content.json(), Cow::Borrowed);
    let found = members(&content);
    let inner = get(&found, "function").map(members).unwrap_or_default();
    let name = get(&found, "name").or_else(|| get(&inner, "name"))?;
    string(name).map(|name| name.into_owned())
}
