//! What a run reads: a snapshot, and facts that only the session knows.

use crate::index::Snapshot;

/// Facts of a session that one snapshot does not have.
pub trait SessionStats {
    /// The cycle of the session's oldest snapshot that has the id.
    fn first_seen(&self, id: &str) -> Option<i64>;
}

/// What a run reads.
#[derive(Clone, Copy)]
pub struct RunInput<'a> {
    /// The snapshot.
    pub snapshot: &'a Snapshot,
    /// Facts of its session.
    pub stats: &'a dyn SessionStats,
}

impl<'a> RunInput<'a> {
    /// A snapshot of a session.
    #[inline]
    pub fn new(snapshot: &'a Snapshot, stats: &'a dyn SessionStats) -> Self {
        Self { snapshot, stats }
    }
}
