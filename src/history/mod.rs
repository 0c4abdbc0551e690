//! Sessions over time: snapshots, addresses, ranges and diffs.
//!
//! A [`Session`] publishes an immutable [`History`] of snapshots; readers take one without a lock.
//! Addresses resolve to positions in it; ranges compare the rows of neighbouring snapshots in
//! parallel; `@*`, union and latest merge the rows of several into one list.
//!
//! This module may use execution and what is below it. It knows no selector text, no engine and no command line.

pub(crate) mod address;
mod archive;
mod attempt;
mod blame;
mod change;
mod compare;
mod content;
mod first_seen;
mod json;
mod list;
pub(crate) mod range;
mod replay;
pub(crate) mod session;
pub(crate) mod snapshot_diff;
mod snapshots;
mod union;
mod unit_changes;
mod watch;

pub use attempt::{Attempt, AttemptStatus, Attempts};
pub use blame::{Blame, BlameEvent, BlameKind, CameBy, WentBy, blame};
pub use change::{Change, Delta};
pub use content::{
    ContentDiff, ContentMode, ContentOptions, ContentSummary, Material, MaterialFields,
    Materialized, TokenHunk, TokenRun,
};
pub use range::{DiffStats, PairDiff, RangeError, RangeLimits, RangeMode, SnapshotRef};
pub use snapshot_diff::{At, ChangedNode, Children, Move, SnapshotDiff};
pub use snapshots::{Snapshots, SnapshotsIter};

// Exported at the root of the crate, or for benches and white-box tests.
#[doc(hidden)]
pub use {
    address::{History, Lookup, SnapshotRange, Unresolved},
    archive::{
        Archive, CallNode, CommitCall, LoadFailure, Position, SnapshotPart, SnapshotSource,
        is_of_model,
    },
    change::changed_fields,
    content::{Labels, content_diff, materialize},
    range::{RangeDiff, RangeOptions},
    session::{LoadError, Moment, Session},
    snapshot_diff::{DiffOptions, diff},
};

pub(crate) use attempt::AttemptEntry;
#[cfg(feature = "store")]
pub(crate) use change::tracked;
pub(crate) use json::text_of;
pub(crate) use range::{capped, run_range};
pub(crate) use union::{Union, run_union};
pub(crate) use watch::{SeenSnapshot, compare_with_seen};
