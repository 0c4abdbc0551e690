//! Why a report, or a difference of two snapshots, is about nothing (LANGUAGE §10).

use std::sync::Arc;

use super::facade::Engine;
use super::nothing::NothingFound;
use super::prepared::Prepared;
use crate::advice::EmptyReason;
use crate::history::{History, Position, Session, SnapshotDiff};
use crate::index::Snapshot;
use crate::support::cancel::ensure;
use crate::support::diag::{Error, Warning};

/// The answer to a selector that found nothing, or no block.
#[derive(Debug)]
pub(crate) enum EmptyAnswer {
    Nothing {
        found: NothingFound,
        /// Whether the working state is read where no time is given.
        reads_working: bool,
    },
    /// It found this number of nodes, and none of them has a block.
    NoBlock(u64),
}

impl EmptyAnswer {
    /// Where the selector of a difference finds nothing in either snapshot.
    pub(crate) fn of_diff(
        engine: &Engine,
        session: &Session,
        selector: Option<&str>,
        diff: &SnapshotDiff,
    ) -> Option<Self> {
        let prepared = engine.prepare_timeless(selector?).ok()?;
        let read = [&diff.older.0, &diff.newer.0].map(Arc::clone);
        let found = prepared.nothing_in(&session.history(), &read).ok()??;
        Some(Self::Nothing {
            found,
            reads_working: false,
        })
    }

    /// Why nothing was found, in all snapshots that were read.
    pub(crate) fn reasons(&self) -> Vec<EmptyReason> {
        let (found, reads_working) = match self {
            Self::Nothing {
                found,
                reads_working,
            } => (found, *reads_working),
            Self::NoBlock(rows) => return vec![EmptyReason::NoBlock { rows: *rows }],
        };
        let mut reasons = found.reasons();
        for reason in &mut reasons {
            if let EmptyReason::Elsewhere { omit, .. } = reason {
                *omit &= reads_working;
            }
        }
        reasons
    }

    /// Warnings about the selector: one that can match nothing by its form has no reason.
    pub(crate) fn warnings(&self) -> &[Warning] {
        self.nothing().map_or(&[], NothingFound::warnings)
    }

    /// The selector, if it found no node.
    pub(crate) fn nothing(&self) -> Option<&NothingFound> {
        match self {
            Self::Nothing { found, .. } => Some(found),
            Self::NoBlock(_) => None,
        }
    }
}

impl Prepared {
    /// The same selector as one that found nothing in some snapshots, oldest first; `None` if it finds something.
    /// Errors as [`Prepared::rows_of_snapshot`].
    pub(crate) fn nothing_in(
        &self,
        history: &Arc<History>,
        snapshots: &[Arc<Snapshot>],
    ) -> Result<Option<NothingFound>, Error> {
        let newest_first = || snapshots.iter().rev();
        for snapshot in newest_first() {
            ensure();
            if !self.rows_of_snapshot(history, snapshot)?.is_empty() {
                return Ok(None);
            }
        }
        let only = match snapshots {
            [one] if one.is_working() => Some(Position::Working),
            [one] => {
                history
                    .fetch_cycles()
                    .map_err(|failure| self.failed(failure))?;
                let index = history.committed().index_of(one.cycle());
                index.map(Position::Committed)
            }
            _ => None,
        };
        let (bound, read) = (self.ready()?, newest_first().cloned().collect());
        let history = Arc::clone(history);
        Ok(Some(NothingFound::new(bound, history, read, only)))
    }
}
