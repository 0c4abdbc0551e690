//! Columnar indexes over trees: segments shared between snapshots.
//!
//! A [`Segment`] is an immutable index over a run of neighbouring units: the preamble (root, `^sys` and `^seq`), turns,
//! or the active head. A [`Snapshot`] is a short list of pieces of segments, so a commit costs what it changes. Rows
//! are numbered in document order, so ascending row order is result order, and a subtree is an interval.
//!
//! This module knows trees. It knows no selectors, no history and no addresses.
//!
//! | part | files |
//! |---|---|
//! | columns and posting lists | `bits`, `posting`, `column`, `dictionary`, `expiring`, `ids` |
//! | segments | `segment`, `build`, `records`, `attributes`, `fields`, `directory`, `calls`, `interned` |
//! | snapshots | `snapshot`, `dead`, `view`, `unit`, `changes` |
//! | writing | `writer`, `commit`, `restore`, `follow`, `merge`, `fresh` |

mod attributes;
mod bits;
mod build;
mod calls;
mod changes;
mod column;
mod commit;
mod dead;
mod dictionary;
mod directory;
mod expiring;
mod fields;
mod follow;
mod fresh;
mod ids;
mod interned;
mod merge;
mod posting;
mod records;
mod restore;
mod segment;
mod snapshot;
mod unit;
mod view;
mod writer;

pub(crate) use crate::tree::hash_text;
pub use bits::Bits;
pub(crate) use bits::{Ones, mask};
use build::SegmentBuilder;
pub use changes::{Changes, UnitChanges};
pub use column::IntColumn;
pub use commit::Key as UnitKey;
pub use dictionary::DictColumn;
pub use fields::Attribute;
pub use follow::{SnapshotBuilder, after};
pub use merge::Merge;
pub use posting::Posting;
pub(crate) use posting::{FewRows, each_word, zip_words};
pub use restore::{Restored, UnitPart};
pub(crate) use segment::LEVEL_POSTINGS;
pub use segment::{Segment, Unit, UnitKind};
pub use snapshot::{Cursor, Snapshot, SnapshotPiece};
pub use unit::UnitRef;
pub use view::NodeRef;
pub use writer::{Layout, Writer};

pub use crate::tree::Meta;
