//! What a run reads: a snapshot, and facts that only the session knows.

use super::inner_rows::InnerRows;
use crate::index::Snapshot;

pub trait SessionStats {
    /// The cycle of the session's oldest snapshot that has the id.
    fn first_seen(&self, id: &str) -> Option<i64>;
}

#[derive(Clone, Copy)]
pub struct RunInput<'a> {
    pub snapshot: &'a Snapshot,
    pub stats: &'a dyn SessionStats,
    /// Where the conditions with selectors inside are true, by their numbers; found at the start of a run.
    pub(super) inner: &'a [InnerRows],
}

impl<'a> RunInput<'a> {
    #[inline]
    pub fn new(snapshot: &'a Snapshot, stats: &'a dyn SessionStats) -> Self {
        Self {
            snapshot,
            stats,
            inner: &[],
        }
    }
}
