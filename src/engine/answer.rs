//! The answer to a selector: rows or the diffs of a range.

use super::selection::Selection;
use crate::history::RangeDiff;
use crate::query::exec::Counters;
use crate::support::diag::Warning;

/// The answer to a selector, from [`Engine::select`](crate::Engine::select).
///
/// ```
/// use pactql::{Answer, Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// match Engine::new().select(&session, "@t-1..@t0 .cb")? {
///     Answer::Rows(rows) => println!("{} nodes", rows.count()),
///     Answer::Range(diff) => println!("{} changes", diff.rows()),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub enum Answer {
    /// Nodes, in result order.
    Rows(Selection),
    /// The diffs between the snapshots of a range.
    Range(RangeDiff),
}

impl Answer {
    /// The rows, unless it is a range.
    pub fn rows(&self) -> Option<&Selection> {
        match self {
            Self::Rows(rows) => Some(rows),
            Self::Range(_) => None,
        }
    }

    /// The diffs, if it is a range.
    pub fn range(&self) -> Option<&RangeDiff> {
        match self {
            Self::Rows(_) => None,
            Self::Range(diff) => Some(diff),
        }
    }

    /// How many rows there are, or how many changes the diffs have.
    pub fn count(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.count(),
            Self::Range(diff) => diff.rows(),
        }
    }

    /// Warnings about the selector. Those about the extent of a range are in
    /// [`RangeDiff::warnings`].
    pub fn warnings(&self) -> &[Warning] {
        match self {
            Self::Rows(rows) => rows.warnings(),
            Self::Range(diff) => diff.selector_warnings.as_deref().unwrap_or(&[]),
        }
    }

    /// Counters of finding the rows, which happens now if it has not yet; of a range, of its diffs.
    pub fn measure(&self) -> Counters {
        match self {
            Self::Rows(rows) => rows.measure(),
            Self::Range(diff) => diff.counters,
        }
    }
}
