//! The units in which two snapshots differ, if comparing these is enough, and the same for several selectors.

use std::sync::{Arc, OnceLock, Weak};

use super::change::change_of;
use crate::index::{Changes, Snapshot};
use crate::query::exec::Trace;

/// The units in which two snapshots differ, for all that compare the same two.
#[derive(Debug, Default)]
pub(super) struct SharedChanges(OnceLock<Box<ChangesOf>>);

#[derive(Debug)]
struct ChangesOf {
    newer: Weak<Snapshot>,
    older: Weak<Snapshot>,
    changes: Option<Changes>,
}

/// The units in which two snapshots differ; `None` if the root or `^seq` differs too, which are around all units.
pub(super) fn unit_changes(
    newer: &Snapshot,
    older: &Snapshot,
    trace: &mut Trace,
) -> Option<Changes> {
    let changes = Changes::between(newer, older);
    if changes.has_preamble() && !same_spine(newer, older) {
        return None;
    }
    let pieces = newer.pieces().len() + older.pieces().len();
    trace.counters.pieces_read += pieces as u64;
    trace.compared_ttls(|| changes.ttl_rows);
    Some(changes)
}

/// Whether the nodes above all units, the root and `^seq`, are equal in two snapshots. If so, a
/// row can differ only by what is in its own unit.
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

impl SharedChanges {
    /// Calls `with` with the units that differ. The first two snapshots that are compared are shared.
    pub(super) fn with<T>(
        &self,
        (newer, older): (&Arc<Snapshot>, &Arc<Snapshot>),
        trace: &mut Trace,
        with: impl FnOnce(Option<&Changes>, &mut Trace) -> T,
    ) -> T {
        let shared = self.0.get_or_init(|| {
            Box::new(ChangesOf {
                newer: Arc::downgrade(newer),
                older: Arc::downgrade(older),
                changes: unit_changes(newer, older, trace),
            })
        });
        // A weak reference keeps the address from being used for another snapshot.
        let is = |one: &Weak<Snapshot>, other| std::ptr::eq(one.as_ptr(), Arc::as_ptr(other));
        if is(&shared.newer, newer) && is(&shared.older, older) {
            with(shared.changes.as_ref(), trace)
        } else {
            let own = unit_changes(newer, older, trace);
            with(own.as_ref(), trace)
        }
    }
}
