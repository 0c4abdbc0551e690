//! Ranges: the answers of snapshots compared, pair by pair or end with end (LANGUAGE §8).
//!
//! Where a plan's answer in a unit depends on that unit alone, only units in which the two
//! snapshots differ are run and compared, so that a range costs what changed in it. Other plans
//! are run over each snapshot in full, once. Pairs are compared in parallel and collected in
//! snapshot order, so the number of threads never shows.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use serde::Serialize;

use super::address::{History, Span};
use super::compare::{change_of, counterpart};
use super::content::{ContentOptions, Labels, Material, content_diff, materialize};
use super::diff::Change;
use crate::diag::{Code, Warning};
use crate::exec::{Counters, Rows, Trace, is_unit_local, run, run_in};
use crate::index::{Bits, Changes, Snapshot};
use crate::ir::{Mode, RangeEnd};
use crate::plan::Bound;

/// What a range answers beside its diffs, and how much of them (source 000 §4, LANGUAGE §8).
/// Selectors without a range ignore it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeOptions {
    /// Say how the contents of changed nodes changed, where their content hash did.
    pub content: Option<ContentOptions>,
    /// Fields that every change shows of both versions.
    pub materialize: Vec<Material>,
    /// Take only so many snapshots, the newest.
    pub max_snapshots: Option<usize>,
    /// Keep only so many changes of each pair: added ones first, then removed, then changed.
    pub max_changes: Option<usize>,
    /// Count the changes of each pair, those cut off included.
    pub stats: bool,
}

/// What a range answers: the diffs of each snapshot with the next older one.
#[derive(Clone, Debug, Serialize)]
pub struct RangeDiff {
    /// The selector as it was typed.
    pub query: String,
    /// The snapshots, newest first.
    pub snapshots: Vec<SnapshotRef>,
    /// One block for each pair of neighbours, newest first.
    pub diffs: Vec<DiffBlock>,
    /// `pairwise` or `reduce`.
    pub mode: &'static str,
    /// The caps, where any was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<RangeLimits>,
    /// What a reader should know; left out when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What was left out; left out when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<RangeError>,
    /// What it took.
    #[serde(skip)]
    pub counters: Counters,
    /// What a reader should know of the selector itself; never in the JSON.
    #[serde(skip)]
    pub selector_warnings: Option<Arc<[Warning]>>,
}

/// The caps of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RangeLimits {
    /// How many snapshots at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_snapshots: Option<usize>,
    /// How many changes a pair at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_changes_per_snapshot: Option<usize>,
    /// Whether anything was left out.
    pub truncated: bool,
}

/// Something that did not stop the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RangeError {
    /// The code.
    pub code: &'static str,
    /// What happened.
    pub message: String,
    /// Always `false`.
    pub fatal: bool,
}

impl RangeError {
    fn new(code: Code, message: String) -> Self {
        Self {
            code: code.as_str(),
            message,
            fatal: false,
        }
    }
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
    /// How many there are, when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<DiffStats>,
}

/// How many rows a diff has, whether or not all of them are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DiffStats {
    /// Rows matched in the newer snapshot only.
    pub added: usize,
    /// Rows matched in the older snapshot only.
    pub removed: usize,
    /// Rows matched in both that differ.
    pub changed: usize,
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

/// Runs `bound` over the snapshots of a range and compares them as its mode says.
pub(crate) fn run_range(
    query: &str,
    bound: &Bound,
    history: &History,
    span: Span,
    options: &RangeOptions,
    trace: &mut Trace,
) -> RangeDiff {
    let (span, mut errors) = capped(span, options);
    let range = Range {
        bound,
        history,
        local: is_unit_local(bound),
        traced: trace.is_on(),
        answers: (0..span.len()).map(|_| OnceLock::new()).collect(),
        span,
    };
    let (mode, pairs): (_, Vec<(usize, usize)>) = match bound.plan.mode {
        Mode::Reduce if span.len() > 1 => ("reduce", vec![(span.newest, span.oldest)]),
        Mode::Reduce => ("reduce", Vec::new()),
        Mode::Pairwise | Mode::Union | Mode::Latest => {
            let newer = (span.oldest + 1..=span.newest).rev();
            ("pairwise", newer.map(|at| (at, at - 1)).collect())
        }
    };
    let compare = |pair| range.pair(pair, options);
    let compared: Vec<(DiffBlock, bool, Trace)> = if range.is_short(pairs.len()) {
        pairs.into_iter().map(compare).collect()
    } else {
        pairs.into_par_iter().map(compare).collect()
    };
    let mut diffs = Vec::with_capacity(compared.len());
    let mut cut = false;
    for (block, was_cut, counted) in compared {
        diffs.push(block);
        cut |= was_cut;
        trace.add(&counted);
    }
    for (_, counted) in range.answers.iter().filter_map(OnceLock::get) {
        trace.add(counted);
    }
    if cut {
        errors.push(RangeError::new(Code::Limit, "changes were cut".to_owned()));
    }
    let capped = options.max_snapshots.is_some() || options.max_changes.is_some();
    RangeDiff {
        query: query.to_owned(),
        snapshots: (span.oldest..=span.newest)
            .rev()
            .map(|at| range.reference(at))
            .collect(),
        diffs,
        mode,
        limits: capped.then_some(RangeLimits {
            max_snapshots: options.max_snapshots,
            max_changes_per_snapshot: options.max_changes,
            truncated: !errors.is_empty(),
        }),
        warnings: span.warning().into_iter().collect(),
        errors,
        counters: trace.counters,
        selector_warnings: None,
    }
}

/// The newest snapshots of a range that its cap leaves, and what to say of the others.
pub(crate) fn capped(span: Span, options: &RangeOptions) -> (Span, Vec<RangeError>) {
    let most = options.max_snapshots.unwrap_or(usize::MAX);
    if span.len() <= most {
        return (span, Vec::new());
    }
    // A range has one snapshot at least.
    let oldest = span.newest + 1 - most.max(1);
    let message = format!("only the newest {most} snapshots were taken");
    (
        Span { oldest, ..span },
        vec![RangeError::new(Code::SnapshotRangeLimit, message)],
    )
}

/// Whether nothing outside their own unit tells rows of two snapshots apart: the root and the
/// `^seq` node, which are above all, are equal.
pub(super) fn same_spine(newer: &Snapshot, older: &Snapshot) -> bool {
    let same = |a: u32, b: u32| {
        let (a, b) = (newer.node(a), older.node(b));
        a.id() == b.id() && change_of(a, b).is_none()
    };
    same(0, 0)
        && match (newer.seq_row(), older.seq_row()) {
            (None, None) => true,
            (Some(a), Some(b)) => same(a, b),
            _ => false,
        }
}

/// A range that is being answered.
struct Range<'a> {
    bound: &'a Bound,
    history: &'a History,
    span: Span,
    /// Whether only what differs must be run.
    local: bool,
    traced: bool,
    /// The whole answer of each snapshot that was run in full, oldest first.
    answers: Vec<OnceLock<(Rows, Trace)>>,
}

/// Up to about so many rows a range is answered by the thread that asks: waking others takes as
/// long as they would.
const SHORT: usize = 8_192;
/// How many rows comparing two snapshots by what differs in them counts for.
const PAIR: usize = 256;

impl Range<'_> {
    /// Whether comparing so many pairs is not worth sharing out.
    fn is_short(&self, pairs: usize) -> bool {
        let rows = match self.local {
            true => PAIR,
            false => self.snapshot(self.span.newest).end_row() as usize,
        };
        pairs.saturating_mul(rows) <= SHORT
    }

    fn snapshot(&self, at: usize) -> &Snapshot {
        &self.history.committed()[at]
    }

    fn trace(&self) -> Trace {
        match self.traced {
            true => Trace::on(),
            false => Trace::off(),
        }
    }

    /// How a snapshot is named, by its position in the history.
    fn reference(&self, at: usize) -> SnapshotRef {
        let snapshot = self.snapshot(at);
        let back = (self.history.committed().len() - 1 - at) as u64;
        let end = match self.span.by_cycle {
            true => RangeEnd::Cycle(snapshot.cycle()),
            false => RangeEnd::Back(back),
        };
        SnapshotRef::new(snapshot, end)
    }

    /// The whole answer of a snapshot, made once.
    fn answer(&self, at: usize) -> &Rows {
        let (rows, _) = self.answers[at - self.span.oldest].get_or_init(|| {
            let mut trace = self.trace();
            let rows = run(self.bound, self.snapshot(at), self.history, &mut trace);
            (rows, trace)
        });
        rows
    }

    /// Compares two snapshots; also whether changes were cut, and what was done.
    fn pair(&self, (from, to): (usize, usize), options: &RangeOptions) -> (DiffBlock, bool, Trace) {
        let (newer, older) = (self.snapshot(from), self.snapshot(to));
        let mut trace = self.trace();
        let changes = self.local.then(|| Changes::between(newer, older));
        let changes = changes.filter(|changes| !changes.has_preamble() || same_spine(newer, older));
        let (mut added_ids, mut removed_ids, mut changed) = match changes {
            Some(changes) => {
                let pieces = newer.pieces().len() + older.pieces().len();
                trace.counters.pieces_read += pieces as u64;
                let mut rows = |snapshot, blocks: &[std::ops::Range<u32>]| {
                    run_in(self.bound, snapshot, self.history, blocks, &mut trace)
                };
                let newer_rows = rows(newer, &changes.newer);
                let older_rows = rows(older, &changes.older);
                compare((newer, &newer_rows), (older, &older_rows))
            }
            None => compare((newer, self.answer(from)), (older, self.answer(to))),
        };
        let stats = DiffStats {
            added: added_ids.len(),
            removed: removed_ids.len(),
            changed: changed.len(),
        };
        let mut left = options.max_changes.unwrap_or(usize::MAX);
        let mut cut = false;
        let mut keep = |count: usize| {
            let kept = count.min(left);
            cut |= kept < count;
            left -= kept;
            kept
        };
        added_ids.truncate(keep(stats.added));
        removed_ids.truncate(keep(stats.removed));
        changed.truncate(keep(stats.changed));
        let (from_label, to_label) = (self.reference(from), self.reference(to));
        for change in &mut changed {
            let (Some(new), Some(old)) = (newer.find(&change.id), older.find(&change.id)) else {
                continue;
            };
            let hashed = change.fields.iter().any(|field| field == "content_hash");
            if let Some(content) = options.content.as_ref().filter(|_| hashed) {
                let labels = Labels {
                    newer: &from_label.label,
                    older: &to_label.label,
                };
                change.content_diff = Some(Box::new(content_diff(new, old, content, labels)));
            }
            if !options.materialize.is_empty() {
                change.materialized = Some(materialize(new, old, &options.materialize));
            }
        }
        let block = DiffBlock {
            from: from_label,
            to: to_label,
            added_ids,
            removed_ids,
            changed,
            stats: options.stats.then_some(stats),
        };
        (block, cut, trace)
    }
}

/// The difference of two answers.
fn compare(
    (newer, newer_rows): (&Snapshot, &Rows),
    (older, older_rows): (&Snapshot, &Rows),
) -> (Vec<String>, Vec<String>, Vec<Change>) {
    let in_older = Membership::new(older_rows);
    let in_newer = Membership::new(newer_rows);
    let mut added = Vec::new();
    let mut changed = Vec::new();
    for row in newer_rows.iter() {
        let node = newer.node(row);
        match counterpart(node, older).filter(|other| in_older.contains(other.row())) {
            None => added.push(node.id().to_owned()),
            Some(other) => {
                changed.extend(change_of(node, other));
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

/// Whether rows are among an answer's, in constant time.
struct Membership {
    bits: Bits,
}

impl Membership {
    /// Costs the rows, and a bit for each row number between the first and the last of them.
    fn new(rows: &Rows) -> Self {
        let (mut first, mut last) = (u32::MAX, 0);
        rows.for_each(|row| {
            first = first.min(row);
            last = last.max(row);
        });
        let mut bits = Bits::new(first.min(last)..last.saturating_add(1));
        rows.for_each(|row| bits.insert(row));
        Self { bits }
    }

    fn contains(&self, row: u32) -> bool {
        self.bits.contains(row)
    }
}
