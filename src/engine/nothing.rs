//! Selectors that found nothing, and what they read.

use std::sync::Arc;

use super::statement::BoundSelector;
use crate::advice::{EmptyReason, Nothing};
use crate::history::{History, Position};
use crate::index::Snapshot;
use crate::support::diag::Warning;

/// A selector that found nothing, and the snapshots that it read, for saying why (LANGUAGE §10).
#[derive(Clone, Debug)]
pub(crate) struct NothingFound {
    bound: Arc<BoundSelector>,
    history: Arc<History>,
    /// Newest first.
    read: Vec<Arc<Snapshot>>,
    /// The place of the snapshot, if the selector is about one.
    only: Option<Position>,
}

impl NothingFound {
    /// `read` is newest first.
    pub(super) fn new(
        bound: &Arc<BoundSelector>,
        history: Arc<History>,
        read: Vec<Arc<Snapshot>>,
        only: Option<Position>,
    ) -> Self {
        Self {
            bound: Arc::clone(bound),
            history,
            read,
            only,
        }
    }

    fn nothing(&self) -> Nothing<'_> {
        Nothing {
            query: &self.bound.statement.query,
            bound: &self.bound,
            edition: self.bound.statement.edition,
            history: &self.history,
            read: self.read.iter().map(|snapshot| &**snapshot).collect(),
            only: self.only,
        }
    }

    /// Why. None for a selector that matches nothing by its form, which has a warning.
    pub(crate) fn reasons(&self) -> Vec<EmptyReason> {
        self.nothing().reasons()
    }

    /// Warnings about the selector.
    pub(crate) fn warnings(&self) -> &[Warning] {
        self.bound.statement.warnings.as_deref().unwrap_or(&[])
    }

    /// What no node has of several sessions, where one selector found nothing in any of them; empty if each has what
    /// it names. Linear in the nodes read.
    pub(crate) fn unknown_in_all<'a>(all: impl IntoIterator<Item = &'a Self>) -> Vec<EmptyReason> {
        let all: Vec<Nothing<'_>> = all.into_iter().map(Self::nothing).collect();
        Nothing::unknown_in_all(&all)
    }
}
