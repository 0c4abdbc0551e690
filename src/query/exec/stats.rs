//! What a run reads: a snapshot, and facts that only the session knows.

use crate::index::Snapshot;

pub trait SessionStats {
    /// The cycle of the session's oldest snapshot that has the id.
    fn first_seen(&self, id: &str) -> Option<i64>;
}

#[derive(Clone, Copy)]
pub struct RunInput<'a> {
    pub snapshot: &'a Snapshot,
    pub stats: &'a dyn SessionStats,
}

impl<'a> RunInput<'a> {
    #[inline]
    pub fn new(snapshot: &'a Snapshot, stats: &'a dyn SessionStats) -> Self {
        Self { snapshot, stats }
    }
}
