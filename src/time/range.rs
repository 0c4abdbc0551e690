//! Ranges: the answers of neighbouring snapshots compared pairwise (LANGUAGE §8).
//!
//! Snapshots are evaluated in parallel and pairs are compared in parallel; both are collected in
//! snapshot order, so the number of threads never shows.

use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;

use super::diff::{Change, changed_fields};
use super::history::History;
use crate::exec::{Rows, Trace, run};
use crate::index::{NodeRef, Snapshot};
use crate::ir::RangeEnd;
use crate::plan::Bound;

/// What a range answers: the diffs of each snapshot with the next older one.
#[derive(Clone, Debug, Serialize)]
pub struct RangeDiff {
    /// The selector as it was typed.
    pub query: String,
    /// The snapshots, newest first.
    pub snapshots: Vec<SnapshotRef>,
    /// One block for each pair of neighbours, newest first.
    pub diffs: Vec<DiffBlock>,
    /// `pairwise`
    pub mode: &'static str,
    /// What a reader should know; left out when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// How a snapshot is named in a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotRef {
    /// `t` or `c`, as in the selector.
    pub kind: &'static str,
    /// 0, -1, -2, … or the cycle.
    pub value: i64,
    /// `@t-1` or `@c41`.
    pub label: String,
    /// The cycle.
    pub cycle: i64,
}

/// The difference of one pair.
#[derive(Clone, Debug, Serialize)]
pub struct DiffBlock {
    /// The newer snapshot.
    pub from: SnapshotRef,
    /// The older snapshot.
    pub to: SnapshotRef,
    /// Matched in the newer only, in its order.
    pub added_ids: Vec<String>,
    /// Matched in the older only, in its order.
    pub removed_ids: Vec<String>,
    /// Matched in both and different, in the newer's order.
    pub changed: Vec<Change>,
}

impl RangeDiff {
    /// How many rows its diffs have: added, removed and changed ones.
    #[must_use]
    pub fn rows(&self) -> usize {
        let rows = |block: &DiffBlock| {
            block.added_ids.len() + block.removed_ids.len() + block.changed.len()
        };
        self.diffs.iter().map(rows).sum()
    }
}

/// The label of a range's end or member.
pub(super) fn label(end: RangeEnd) -> String {
    match end {
        RangeEnd::Back(0) => "@t0".to_owned(),
        RangeEnd::Back(back) => format!("@t-{back}"),
        RangeEnd::Oldest => "@t-*".to_owned(),
        RangeEnd::Cycle(cycle) => format!("@c{cycle}"),
    }
}

impl SnapshotRef {
    fn new(snapshot: &Snapshot, end: RangeEnd) -> Self {
        let (kind, value) = match end {
            RangeEnd::Back(back) => ("t", -i64::try_from(back).unwrap_or(i64::MAX)),
            RangeEnd::Oldest => ("t", i64::MIN),
            RangeEnd::Cycle(cycle) => ("c", cycle),
        };
        Self {
            kind,
            value,
            label: label(end),
            cycle: snapshot.cycle(),
        }
    }
}

/// Runs `bound` over the snapshots, newest first, and compares neighbours.
pub(crate) fn run_range(
    query: &str,
    bound: &Bound,
    history: &History,
    snapshots: &[(Arc<Snapshot>, RangeEnd)],
    cut: Option<RangeEnd>,
) -> RangeDiff {
    let answers: Vec<Rows> = snapshots
        .par_iter()
        .map(|(snapshot, _)| run(bound, snapshot, history, &mut Trace::off()))
        .collect();
    let refs: Vec<SnapshotRef> = snapshots
        .iter()
        .map(|(snapshot, end)| SnapshotRef::new(snapshot, *end))
        .collect();
    let diffs = (1..snapshots.len())
        .into_par_iter()
        .map(|older| {
            let newer = older - 1;
            let (added_ids, removed_ids, changed) = compare(
                (&snapshots[newer].0, &answers[newer]),
                (&snapshots[older].0, &answers[older]),
            );
            DiffBlock {
                from: refs[newer].clone(),
                to: refs[older].clone(),
                added_ids,
                removed_ids,
                changed,
            }
        })
        .collect();
    let warnings = cut.map(|end| {
        format!(
            "the range reaches past the oldest snapshot and is cut to {}",
            label(end)
        )
    });
    RangeDiff {
        query: query.to_owned(),
        snapshots: refs,
        diffs,
        mode: "pairwise",
        warnings: warnings.into_iter().collect(),
    }
}

/// The difference of two answers.
fn compare(
    (newer, newer_rows): (&Snapshot, &Rows),
    (older, older_rows): (&Snapshot, &Rows),
) -> (Vec<String>, Vec<String>, Vec<Change>) {
    let in_older = Membership::new(older_rows, older);
    let in_newer = Membership::new(newer_rows, newer);
    let mut added = Vec::new();
    let mut changed = Vec::new();
    for row in newer_rows.iter() {
        let node = newer.node(row);
        match counterpart(node, older).filter(|other| in_older.contains(other.row())) {
            None => added.push(node.id().to_owned()),
            Some(other) => {
                // Equal versions are equal rows: only what depends on the snapshot can differ.
                let same = node.version() == other.version()
                    && node.ttl() == other.ttl()
                    && node.parent().map(NodeRef::id) == other.parent().map(NodeRef::id);
                if !same {
                    changed.extend(changed_fields(node, other));
                }
            }
        }
    }
    let removed = older_rows
        .iter()
        .map(|row| older.node(row))
        .filter(|node| {
            !counterpart(*node, newer).is_some_and(|other| in_newer.contains(other.row()))
        })
        .map(|node| node.id().to_owned())
        .collect();
    (added, removed, changed)
}

/// The node of the same id in another snapshot: at the same row of a shared segment, else by
/// look-up.
fn counterpart<'a>(node: NodeRef<'_>, other: &'a Snapshot) -> Option<NodeRef<'a>> {
    other.shared(node).or_else(|| other.find(node.id()))
}

/// Whether rows are among an answer's, in constant time.
struct Membership {
    bits: crate::index::Bits,
}

impl Membership {
    fn new(rows: &Rows, snapshot: &Snapshot) -> Self {
        let mut bits = crate::index::Bits::new(0..snapshot.end_row());
        for row in rows.iter() {
            bits.insert(row);
        }
        Self { bits }
    }

    fn contains(&self, row: u32) -> bool {
        self.bits.contains(row)
    }
}
