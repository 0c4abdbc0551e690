//! History: sessions, addresses, ranges, diffs.
//!
//! A [`Session`] is a history of snapshots and perhaps a working state. Readers take the
//! [`History`] of a moment without a lock; it never changes under them. Addresses find snapshots
//! in it, ranges compare the answers of neighbouring ones in parallel.
//!
//! This room knows execution and what is below it. It knows no selector text and no command
//! line.

mod address;
mod blame;
mod compare;
mod content;
mod diff;
mod edits;
mod range;
mod session;
mod union;

pub use address::{History, Lookup, Place, Span, Unresolved};
pub use blame::{Blame, Event, What, blame};
pub use compare::{At, ChangedNode, Children, DiffOptions, Move, SnapshotDiff, diff};
pub use content::{
    ContentDiff, ContentMode, ContentOptions, ContentSummary, Labels, Material, MaterialFields,
    Materialized, TokenHunk, TokenRun, content_diff, materialize,
};
pub use diff::{Change, Delta, changed_fields};
pub use range::{
    DiffBlock, DiffStats, RangeDiff, RangeError, RangeLimits, RangeOptions, SnapshotRef,
};
pub use session::{LoadError, Moment, Session};

pub(crate) use range::{capped, run_range};
pub(crate) use union::{Union, run_union};
