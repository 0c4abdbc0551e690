//! Ranges: the rows of snapshots compared, pair by pair or end to end (LANGUAGE §8).
//!
//! If a plan's rows in a unit depend on that unit alone, only units that differ between the two snapshots are run, so a
//! range costs what changed in it. Any other plan runs once over each whole snapshot. Pairs are compared in parallel
//! and collected in snapshot order, so results do not depend on the number of threads.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::address::{History, SnapshotRange};
use super::change::Change;
use super::compare::{MatchedNodes, SnapshotComparison, ids};
use super::content::{ContentOptions, Labels, Material, content_diff, materialize};
use super::unit_changes::unit_changes;
use crate::index::Snapshot;
use crate::query::exec::{Counters, MatchedRows, RunInput, Trace, run, run_in};
use crate::query::ir::{RangeAnswer, RangeEnd};
use crate::query::plan::Bound;
use crate::support::cancel::{self, ensure};
use crate::support::diag::{Code, Warning};
use crate::support::macros::setters;

/// What a range returns besides its diffs, and caps (source 000 §4, LANGUAGE §8).
///
/// ```
/// use pactql::{Engine, RangeOptions, Session, history::{ContentOptions, Material}};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let options = RangeOptions::default().max_snapshots(3).stats(true);
/// let options = options.content(ContentOptions::default()).materialize([Material::Mime]);
/// let diff = Engine::new().range_with(&session, "@t0..@t-* .cb", &options)?;
/// assert_eq!(diff.snapshots.len(), 3);
/// assert!(diff.limits.is_some_and(|limits| limits.truncated));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RangeOptions {
    /// Diff the contents of changed nodes whose content hash differs.
    pub content: Option<ContentOptions>,
    /// Fields that every change shows of both versions.
    pub materialize: Vec<Material>,
    /// At most this many snapshots, the newest; of 0 one is taken, as a range has at least one.
    pub max_snapshots: Option<usize>,
    /// At most this many changes of each pair: added ones first, then removed, then changed.
    pub max_changes: Option<usize>,
    /// Count the changes of each pair, including those cut off.
    pub stats: bool,
}

impl RangeOptions {
    setters! {
        content: ContentOptions;
        max_snapshots: usize;
        max_changes: usize;
        stats: bool;
    }

    /// Whether an option is given that says what is shown of changes.
    pub(crate) fn are_of_changes(&self) -> bool {
        self.content.is_some()
            || self.stats
            || !self.materialize.is_empty()
            || self.max_changes.is_some()
    }

    fn most_snapshots(&self) -> Option<usize> {
        self.max_snapshots.map(|most| most.max(1))
    }

    /// Sets [`RangeOptions::materialize`].
    #[must_use]
    pub fn materialize(mut self, fields: impl IntoIterator<Item = Material>) -> Self {
        self.materialize = fields.into_iter().collect();
        self
    }
}

/// Which snapshots of a range are compared: as JSON `pairwise` or `reduce`. See [`RangeDiff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RangeMode {
    /// Each snapshot with the next older one.
    Pairwise,
    /// The newest with the oldest.
    Reduce,
}

/// The diffs of a range of snapshots, from [`Engine::range`](crate::Engine::range). Its JSON can be read again.
///
/// ```
/// let session = pactql::Session::open("fixtures/support-agent.jsonl")?;
/// let diff = pactql::Engine::new().range(&session, "@t-2..@t0 .cb[kind='call']")?;
/// for pair in &diff.diffs {
///     println!("{} since {}: {} changed", pair.from.label, pair.to.label, pair.changed.len());
/// }
/// assert_eq!(diff.diffs.len(), 2);
/// let json = serde_json::to_string(&diff)?;
/// let again: pactql::RangeDiff = serde_json::from_str(&json)?;
/// assert_eq!(serde_json::to_string(&again)?, json);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RangeDiff {
    /// The selector as written.
    pub query: String,
    /// The snapshots, newest first.
    pub snapshots: Vec<SnapshotRef>,
    /// The pairs, newest first.
    pub diffs: Vec<PairDiff>,
    /// Which pairs they are.
    pub mode: RangeMode,
    /// The caps, if any was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<RangeLimits>,
    /// Warnings about the extent of the range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What the caps left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<RangeError>,
    /// The work done.
    #[serde(skip)]
    pub counters: Counters,
    /// Warnings about the selector itself, which the JSON does not have.
    #[serde(skip)]
    pub(crate) selector_warnings: Option<Arc<[Warning]>>,
}

/// How a snapshot is named in a result. See the example of [`RangeDiff`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SnapshotRef {
    /// `t` or `c`, as in the selector.
    pub kind: String,
    /// 0, -1, -2, … for `t`; the cycle for `c`.
    pub value: i64,
    /// `@t-1` or `@c41`.
    pub label: String,
    /// The cycle of the snapshot.
    pub cycle: i64,
}

impl SnapshotRef {
    pub(super) fn new(cycle: i64, end: RangeEnd) -> Self {
        let (kind, value) = match end {
            RangeEnd::Back(back) => ("t", -i64::try_from(back).unwrap_or(i64::MAX)),
            RangeEnd::Oldest => ("t", i64::MIN),
            RangeEnd::Cycle(cycle) => ("c", cycle),
        };
        Self {
            kind: kind.to_owned(),
            value,
            label: end.to_string(),
            cycle,
        }
    }
}

/// The caps of a range. See the example of [`RangeOptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RangeLimits {
    /// At most this many snapshots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_snapshots: Option<usize>,
    /// At most this many changes a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_changes_per_snapshot: Option<usize>,
    /// Whether anything was left out.
    pub truncated: bool,
}

/// What a cap left out of a range. Serializes with the member `"fatal":false`. See [`RangeDiff`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct RangeError {
    /// The code.
    pub code: Code,
    /// What was left out.
    pub message: String,
    fatal: bool,
}

impl RangeError {
    fn new(code: Code, message: String) -> Self {
        let fatal = false;
        Self {
            code,
            message,
            fatal,
        }
    }
}

/// The difference between the rows of two snapshots. See the example of [`RangeDiff`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PairDiff {
    /// The newer snapshot.
    pub from: SnapshotRef,
    /// The older snapshot.
    pub to: SnapshotRef,
    /// Ids matched in the newer only, in its order.
    pub added_ids: Vec<String>,
    /// Ids matched in the older only, in its order.
    pub removed_ids: Vec<String>,
    /// Nodes matched in both that differ, in the newer's order.
    pub changed: Vec<Change>,
    /// Counts before any cap, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<DiffStats>,
}

impl PairDiff {
    /// Whether the two do not differ.
    pub fn is_empty(&self) -> bool {
        self.added_ids.is_empty() && self.removed_ids.is_empty() && self.changed.is_empty()
    }
}

/// Counts of a [`PairDiff`] before any cap. See the example of [`RangeOptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DiffStats {
    /// Rows matched in the newer snapshot only.
    pub added: usize,
    /// Rows matched in the older snapshot only.
    pub removed: usize,
    /// Rows matched in both that differ.
    pub changed: usize,
}

impl RangeDiff {
    /// The number of changes in all pairs: added, removed and changed nodes.
    pub fn rows(&self) -> usize {
        let rows = |block: &PairDiff| {
            block.added_ids.len() + block.removed_ids.len() + block.changed.len()
        };
        self.diffs.iter().map(rows).sum()
    }
}

/// Runs `bound` over the snapshots of a range and compares their rows. `query` is the selector's text.
pub(crate) fn run_range(
    query: &str,
    bound: &Bound,
    history: &History,
    span: SnapshotRange,
    options: &RangeOptions,
    trace: &mut Trace,
) -> RangeDiff {
    let (span, mut errors) = capped(span, options);
    let range = Range {
        bound,
        history,
        local: bound.compares_by_unit(),
        traced: trace.is_on(),
        full: (0..span.count()).map(|_| OnceLock::new()).collect(),
        span,
    };
    let (mode, pairs): (_, Vec<(usize, usize)>) = match bound.mode {
        RangeAnswer::Reduce if span.count() > 1 => {
            (RangeMode::Reduce, vec![(span.newest, span.oldest)])
        }
        RangeAnswer::Reduce => (RangeMode::Reduce, Vec::new()),
        RangeAnswer::Pairwise | RangeAnswer::Union | RangeAnswer::Latest => {
            let newer = (span.oldest + 1..=span.newest).rev();
            (RangeMode::Pairwise, newer.map(|at| (at, at - 1)).collect())
        }
    };
    let compare = |pair| range.pair(pair, options);
    let compared: Vec<(PairDiff, bool, Trace)> = if range.is_short(pairs.len()) {
        pairs.into_iter().map(compare).collect()
    } else {
        let tokens = cancel::here();
        let compare = |pair| tokens.within(|| compare(pair));
        pairs.into_par_iter().map(compare).collect()
    };
    let mut diffs = Vec::with_capacity(compared.len());
    let mut cut = false;
    for (block, was_cut, counted) in compared {
        diffs.push(block);
        cut |= was_cut;
        trace.add(&counted);
    }
    for (_, counted) in range.full.iter().filter_map(OnceLock::get) {
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
            max_snapshots: options.most_snapshots(),
            max_changes_per_snapshot: options.max_changes,
            truncated: !errors.is_empty(),
        }),
        warnings: span.warning().into_iter().collect(),
        errors,
        counters: trace.counters,
        selector_warnings: None,
    }
}

/// The newest snapshots of a range, as many as its cap allows, and an error if there were more.
pub(crate) fn capped(
    span: SnapshotRange,
    options: &RangeOptions,
) -> (SnapshotRange, Vec<RangeError>) {
    let most = options.most_snapshots().unwrap_or(usize::MAX);
    if span.count() <= most {
        return (span, Vec::new());
    }
    let oldest = span.newest + 1 - most;
    let message = format!("only the newest {most} snapshots were taken");
    (
        SnapshotRange { oldest, ..span },
        vec![RangeError::new(Code::SnapshotRangeLimit, message)],
    )
}

struct Range<'a> {
    bound: &'a Bound,
    history: &'a History,
    span: SnapshotRange,
    /// Whether running the units that differ is enough.
    local: bool,
    traced: bool,
    /// The rows of each snapshot that was run in full, oldest first.
    full: Vec<OnceLock<(MatchedRows, Trace)>>,
}

/// Up to this many rows a range runs on the calling thread: waking others takes as long as they would save.
const SHORT: usize = 8_192;
/// Estimated cost of one comparison of the units that differ, in rows.
const PAIR: usize = 256;

impl Range<'_> {
    /// Whether `pairs` comparisons are too few to share out among threads.
    fn is_short(&self, pairs: usize) -> bool {
        let rows = if self.local {
            PAIR
        } else {
            self.snapshot(self.span.newest).end_row() as usize
        };
        pairs.saturating_mul(rows) <= SHORT
    }

    fn snapshot(&self, at: usize) -> &Snapshot {
        &self.history.committed()[at]
    }

    fn trace(&self) -> Trace {
        if self.traced {
            Trace::on()
        } else {
            Trace::off()
        }
    }

    fn reference(&self, at: usize) -> SnapshotRef {
        let cycle = self.history.committed().cycle_at(at).unwrap_or(0);
        let back = (self.history.committed().len() - 1 - at) as u64;
        let end = if self.span.by_cycle {
            RangeEnd::Cycle(cycle)
        } else {
            RangeEnd::Back(back)
        };
        SnapshotRef::new(cycle, end)
    }

    fn rows(&self, at: usize) -> &MatchedRows {
        let (rows, _) = self.full[at - self.span.oldest].get_or_init(|| {
            let mut trace = self.trace();
            let rows = run(
                self.bound,
                RunInput::new(self.snapshot(at), self.history),
                &mut trace,
            );
            (rows, trace)
        });
        rows
    }

    /// Compares two snapshots. Also returns whether changes were cut, and the work done.
    fn pair(&self, (from, to): (usize, usize), options: &RangeOptions) -> (PairDiff, bool, Trace) {
        ensure();
        let (newer, older) = (self.snapshot(from), self.snapshot(to));
        let mut trace = self.trace();
        let changes = self.local.then(|| unit_changes(newer, older, &mut trace));
        let rows = changes.flatten().map(|changes| {
            [(newer, &changes.newer), (older, &changes.older)].map(|(snapshot, blocks)| {
                let input = RunInput::new(snapshot, self.history);
                run_in(self.bound, input, blocks, &mut trace)
            })
        });
        let [newer_rows, older_rows] = match &rows {
            Some([newer, older]) => [newer, older],
            None => [from, to].map(|at| self.rows(at)),
        };
        let newer = MatchedNodes::new(newer, Some(newer_rows));
        let older = MatchedNodes::new(older, Some(older_rows));
        let SnapshotComparison {
            mut added,
            mut removed,
            mut changed,
        } = SnapshotComparison::new(&newer, &older);
        let stats = DiffStats {
            added: added.len(),
            removed: removed.len(),
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
        added.truncate(keep(stats.added));
        removed.truncate(keep(stats.removed));
        changed.truncate(keep(stats.changed));
        let (from_label, to_label) = (self.reference(from), self.reference(to));
        let labels = Labels {
            newer: &from_label.label,
            older: &to_label.label,
        };
        let changed = changed.into_iter().map(|(new, old, mut change)| {
            ensure();
            if let Some(how) = options.content.as_ref().filter(|_| change.is_rewritten()) {
                change.content_diff = Some(Box::new(content_diff(new, old, how, labels)));
            }
            if !options.materialize.is_empty() {
                change.materialized = Some(materialize(new, old, &options.materialize));
            }
            change
        });
        let changed = changed.collect();
        let block = PairDiff {
            from: from_label,
            to: to_label,
            added_ids: ids(&added),
            removed_ids: ids(&removed),
            changed,
            stats: options.stats.then_some(stats),
        };
        (block, cut, trace)
    }
}
