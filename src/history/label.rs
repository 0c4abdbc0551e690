//! How snapshots are named in results: `@t0`, `@t-1`, `@c41`, `working`.

use serde::Serialize;

use crate::query::ir::RangeEnd;

/// How a snapshot is named in a result. See the example of [`RangeDiff`](crate::RangeDiff).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SnapshotRef {
    /// `t` or `c`, as in the selector.
    pub kind: &'static str,
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
            kind,
            value,
            label: end.to_string(),
            cycle,
        }
    }
}
