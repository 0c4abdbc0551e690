//! Several snapshots as one list of rows: `@*`, `@mode=union` and `@mode=latest`.

use std::ops::Range;

use hashbrown::HashSet;

use super::address::{History, SnapshotRange};
use super::snapshots::SnapshotsIter;
use super::unit_changes::same_spine;
use crate::index::{Changes, NodeRef, Snapshot};
use crate::query::exec::{ResultTail, RunInput, Trace, run_in, run_untailed_while};
use crate::query::plan::Bound;
use crate::support::cancel::ensure;

/// Neighbouring committed snapshots, read as one list in which each id occurs once.
#[derive(Clone, Debug)]
pub(crate) struct Union {
    snapshots: Range<usize>,
    /// `@mode=latest`: only the newest version of a node among these snapshots may match.
    latest: bool,
}

impl Union {
    pub(crate) fn all(history: &History) -> Self {
        Self {
            snapshots: 0..history.committed().len(),
            latest: false,
        }
    }

    /// The newest snapshots, at most `most`.
    pub(crate) fn newest(history: &History, most: usize) -> Self {
        let count = history.committed().len();
        Self {
            snapshots: count.saturating_sub(most)..count,
            latest: false,
        }
    }

    pub(crate) fn new(span: SnapshotRange, latest: bool) -> Self {
        Self {
            snapshots: span.oldest..span.newest + 1,
            latest,
        }
    }

    pub(crate) fn snapshots<'a>(&self, history: &'a History) -> SnapshotsIter<'a> {
        history.committed().range(self.snapshots.clone())
    }
}

/// Calls `visit` with the position and node of each row of the list, newest snapshot first, until it returns false.
/// Each id occurs once, in the newest snapshot that matches it (LANGUAGE §6, §7).
///
/// What a snapshot shares with the next newer one is not run again where the plan's answer in a
/// unit depends on that unit alone.
pub(crate) fn run_union<'a>(
    bound: &Bound,
    history: &'a History,
    union: &Union,
    trace: &mut Trace,
    visit: &mut dyn FnMut(usize, NodeRef<'a>) -> bool,
) {
    // The tail acts on the whole list, not on each snapshot.
    let mut tail = ResultTail::new(bound);
    let local = bound.is_unit_local();
    let mut seen: HashSet<&str> = HashSet::new();
    // Ids of newer snapshots that the next older one does not share: `latest` must not return an
    // older version of them.
    let mut newer_ids: HashSet<&str> = HashSet::new();
    let mut newer: Option<&Snapshot> = None;
    for at in union.snapshots.clone().rev() {
        ensure();
        if tail.is_done() {
            return;
        }
        let snapshot = &*history.committed()[at];
        let input = RunInput::new(snapshot, history);
        let changes = newer
            .filter(|_| local || union.latest)
            .map(|newer| (newer, Changes::between(newer, snapshot)));
        if union.latest
            && let Some((newer, changes)) = &changes
        {
            let ids = changes
                .newer
                .iter()
                .flat_map(|rows| newer.nodes_in(rows.clone()));
            newer_ids.extend(ids.map(NodeRef::id));
        }
        let mut wanted = true;
        let mut take = |row: u32| {
            let node = snapshot.node(row);
            let id = node.id();
            let superseded = union.latest
                && newer.is_some_and(|newer| newer_ids.contains(id) || newer.find(id).is_some());
            if !superseded && seen.insert(id) && tail.admits(|| node) {
                wanted = visit(at, node) && !tail.is_done();
            }
            wanted
        };
        match &changes {
            Some((newer, changes))
                if local && (!changes.has_preamble() || same_spine(newer, snapshot)) =>
            {
                trace.counters.pieces_read += snapshot.pieces().len() as u64;
                trace.compared_ttls(|| changes.ttl_rows);
                let _ = run_in(bound, input, &changes.older, trace).iter().all(take);
            }
            _ => run_untailed_while(bound, input, trace, &mut take),
        }
        if !wanted {
            return;
        }
        newer = Some(snapshot);
    }
}
