//! The cost model: every threshold of execution, with its unit and reason.
//!
//! Units are rows, 64-row words and intervals. Each number is a rounded break-even point of two ways
//! of doing the same; `benches/instructions` and `benches/growth` show what a change does.

use crate::index::{Bits, Snapshot};
use crate::query::plan::Bound;

/// Rows of the widest window that one machine word covers.
pub(super) const WORD_ROWS: u32 = 64;

/// Rows of a snapshot up to which windows of one word each are faster than bit sets over all rows.
pub(super) const WORDS_ROWS: u32 = 1_024;

/// Rows from the first to the last window of one word each.
pub(super) const WORDS_SPAN: usize = 2_048;

/// Depths, beyond the first of an interval, that a local plan may read.
const LOCAL_DEPTHS: u64 = 8;

/// Rows of the first chunk: about what setting up a run costs.
pub(super) const FIRST_CHUNK: u32 = 256;

/// Each chunk is this many times as large as the one before. The whole session then takes
/// logarithmically many chunks, and all but the last together cost a third of the last.
const CHUNK_GROWTH: u32 = 4;

/// Filling a word of a column costs about as much as reading the column of this many rows.
const ROWS_PER_WORD: usize = 8;

/// A pass over this many words costs less than choosing a better way.
const SHORT_PASS: usize = 8;

/// Children of up to this many rows are walked faster than levels are intersected.
const FEW_PARENTS: usize = 48;

/// Comparing a word with this many intervals costs as much as a binary search for each row.
const FEW_INTERVALS: usize = 12;

/// Rows of a snapshot that a plan reads faster than it is kept for later.
const FEW_ROWS: u32 = 1_024;

/// Whether a plan reads so little that running it at once costs no more than deferring it.
#[inline]
pub fn is_local(bound: &Bound, snapshot: &Snapshot) -> bool {
    bound.breadth < LOCAL_DEPTHS || bound.nearest.is_some() || snapshot.end_row() <= FEW_ROWS
}

pub(super) fn next_chunk(rows: u32) -> u32 {
    rows.saturating_mul(CHUNK_GROWTH)
}

pub(super) fn fills_words(rows: usize, words: usize) -> bool {
    rows > words * ROWS_PER_WORD
}

/// Whether the subtrees of `rows` rows in `words` words are filled by one pass over the words
/// rather than one by one.
pub(super) fn marks_subtrees(rows: usize, words: usize) -> bool {
    rows * ROWS_PER_WORD >= words
}

/// Whether a better way than going through all rows pays in a window of `words` words.
pub(super) fn is_long(words: usize) -> bool {
    words > SHORT_PASS
}

pub(super) fn walks_children(parents: &Bits) -> bool {
    !is_long(parents.words().len()) || parents.count() <= FEW_PARENTS
}

pub(super) fn compares_words(intervals: usize) -> bool {
    intervals <= FEW_INTERVALS
}
