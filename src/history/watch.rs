//! How the matches of one selector differ between a snapshot and the one that was looked at before.
//!
//! It is a range of two snapshots whose older end is kept: [`Changes`] finds the units that differ, and only they are run.

use std::sync::Arc;

use super::address::History;
use super::compare::{MatchedNodes, SnapshotComparison, ids};
use super::snapshot_diff::{At, ChangedNode, SnapshotDiff};
use crate::index::{Changes, Snapshot};
use crate::query::exec::{MatchedRows, RunInput, Trace, run, run_in};
use crate::query::ir::Address;
use crate::query::plan::Bound;

/// A snapshot that was looked at, and what a later look needs of it.
#[derive(Debug)]
pub(crate) struct SeenSnapshot {
    snapshot: Arc<Snapshot>,
    /// The matches; `None` where the units that differ are enough.
    rows: Option<MatchedRows>,
}

impl SeenSnapshot {
    pub(crate) fn is(&self, snapshot: &Arc<Snapshot>) -> bool {
        Arc::ptr_eq(&self.snapshot, snapshot)
    }
}

/// Compares the matches in `now` with those in the snapshot that was `seen`; where one is missing, it has no matches.
/// Returns what the next look needs, and the difference unless there is none.
///
/// Costs the units that differ, where the plan can be run unit by unit, and else one run.
pub(crate) fn compare_with_seen(
    bound: &Bound,
    history: &History,
    seen: Option<&SeenSnapshot>,
    now: Option<&Arc<Snapshot>>,
    trace: &mut Trace,
) -> (Option<SeenSnapshot>, Option<SnapshotDiff>) {
    let by_unit = bound.compares_by_unit();
    let next = |rows| {
        now.map(|now| SeenSnapshot {
            snapshot: Arc::clone(now),
            rows,
        })
    };
    if let (true, Some(now), Some(seen)) = (by_unit, now, seen) {
        let pair = (now, &seen.snapshot);
        let rows = history.shared_changes.with(pair, trace, |changes, trace| {
            let Changes { newer, older, .. } = changes?;
            let run = |(snapshot, rows): (&Snapshot, &[_])| {
                run_in(bound, RunInput::new(snapshot, history), rows, trace)
            };
            Some([(&**now, &newer[..]), (&*seen.snapshot, &older[..])].map(run))
        });
        if let Some([newer, older]) = rows {
            return (
                next(None),
                difference((now, &newer), (&seen.snapshot, &older)),
            );
        }
    }
    let mut all = |snapshot: &Snapshot| run(bound, RunInput::new(snapshot, history), trace);
    let newer = now.map_or_else(MatchedRows::none, |now| all(now));
    let run_again = seen.filter(|seen| seen.rows.is_none());
    let run_again = run_again.map_or_else(MatchedRows::none, |seen| all(&seen.snapshot));
    let older = seen
        .and_then(|seen| seen.rows.as_ref())
        .unwrap_or(&run_again);
    // A missing snapshot has no rows, so it does not matter which one is named.
    let old = seen.map(|seen| &seen.snapshot).or(now);
    let diff = old.and_then(|old| difference((now.unwrap_or(old), &newer), (old, older)));
    (next((!by_unit).then_some(newer)), diff)
}

type Matches<'a> = (&'a Arc<Snapshot>, &'a MatchedRows);

/// How rows of two snapshots differ; `None` if they do not.
fn difference(newer: Matches<'_>, older: Matches<'_>) -> Option<SnapshotDiff> {
    if newer.1.is_empty() && older.1.is_empty() {
        return None;
    }
    let in_newer = MatchedNodes::new(newer.0, Some(newer.1));
    let in_older = MatchedNodes::new(older.0, Some(older.1));
    let compared = SnapshotComparison::new(&in_newer, &in_older);
    let changed = compared.changed.into_iter();
    let changed = changed.map(|(_, _, change)| ChangedNode::from(change));
    let named = |snapshot: &Arc<Snapshot>| {
        let at = if snapshot.is_working() {
            At::Working
        } else {
            At::Committed(Address::Cycle(snapshot.cycle()))
        };
        (Arc::clone(snapshot), at)
    };
    let diff = SnapshotDiff {
        added: ids(&compared.added),
        removed: ids(&compared.removed),
        changed: changed.collect(),
        moves: None,
        children_added: None,
        children_removed: None,
        newer: named(newer.0),
        older: named(older.0),
    };
    (!diff.is_empty()).then_some(diff)
}
