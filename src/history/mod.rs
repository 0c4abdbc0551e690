//! Sessions over time: snapshots, addresses, ranges and diffs.
//!
//! A [`Session`] publishes an immutable [`History`] of snapshots; readers take one without a lock.
//! Addresses resolve to positions in it; ranges compare the rows of neighbouring snapshots in
//! parallel; `@*`, union and latest merge the rows of several into one list.
//!
//! This module may use execution and what is below it. It knows no selector text, no engine and
//! no command line.

mod address;
mod archive;
mod attempt;
mod blame;
mod change;
mod content;
mod edits;
mod first_seen;
mod json;
mod label;
mod range;
mod replay;
mod session;
mod snapshot_diff;
mod snapshots;
mod union;

pub use address::{History, Lookup, SnapshotRange, Unresolved};
pub use archive::{Archive, LoadFailure, LoadStats, Part, Position, Source};
pub use attempt::{Attempt, AttemptStatus, Attempts};
pub use blame::{Blame, BlameEvent, BlameKind, blame};
#[cfg(feature = "store")]
pub(crate) use change::tracked;
pub use change::{Change, Delta, changed_fields};
pub use content::{
    ContentDiff, ContentMode, ContentOptions, ContentSummary, Labels, Material, MaterialFields,
    Materialized, TokenHunk, TokenRun, content_diff, materialize,
};
pub use label::SnapshotRef;
pub use range::{DiffStats, PairDiff, RangeDiff, RangeError, RangeLimits, RangeMode, RangeOptions};
pub use session::{LoadError, Moment, Session};
pub use snapshot_diff::{At, ChangedNode, Children, DiffOptions, Move, SnapshotDiff, diff};
pub use snapshots::{Snapshots, SnapshotsIter};

pub(crate) use attempt::Entry as AttemptEntry;
pub(crate) use json::text_of;
pub(crate) use range::{capped, run_range};
pub(crate) use union::{Union, run_union};
