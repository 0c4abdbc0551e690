//! The hasher shared by every id directory and dictionary, so that a text is hashed once for all
//! segments of a snapshot.

use std::hash::BuildHasher;
use std::sync::LazyLock;

use hashbrown::DefaultHashBuilder;

/// Seeded once a process; no output depends on the order it gives.
static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// The hash of a text, for [`super::Segment::find`] and the dictionaries of columns.
#[inline]
pub(crate) fn hash_text(text: &str) -> u64 {
    HASHER.hash_one(text)
}
