//! Selectors over sessions whose snapshots are loaded on demand: what a selector reads is loaded before
//! it runs, and a failure to load is its error.
//!
//! Only a part of a single snapshot is loaded if the bound plan shows that the answer lies in it. The
//! history of the answer then has that part; later calls that read more ([`Selection::filter`],
//! [`Selection::why_empty`]) load the whole snapshot. This module knows no source
//! of snapshots.

use std::sync::Arc;

use super::prepared::Prepared;
use super::selection::{RowSource, Selection};
use super::statement::BoundSelector;
use crate::history::{
    History, LoadFailure, Lookup, Moment, Position, RangeOptions, SnapshotPart, SnapshotRange,
    Union, capped,
};
use crate::index::Snapshot;
use crate::query::exec::{RunInput, Trace, run};
use crate::query::ir::{Address, QueryTime, RangeAnswer, RangeEnd};
use crate::query::plan::Bound;
use crate::support::diag::Error;
use crate::tree::Present;

impl Prepared {
    /// What the selector's time means; the cycles of snapshots are loaded if it names one.
    pub(crate) fn resolve(&self, history: &History) -> Result<Lookup, Error> {
        let time = self.query().time;
        if history.is_lazy() && names_cycle(time) {
            history
                .fetch_cycles()
                .map_err(|failure| self.failed(failure))?;
        }
        history
            .resolve(time)
            .map_err(|error| self.unresolved(error))
    }

    /// As [`Prepared::rows_at`], over a history whose snapshots may have to be loaded.
    #[cold]
    #[inline(never)]
    pub(crate) fn rows_of_archive(
        &self,
        bound: &Arc<BoundSelector>,
        history: Moment,
        options: &RangeOptions,
        trace: &mut Trace,
    ) -> Result<Selection, Error> {
        let failed = |failure| self.failed(failure);
        let lookup = self.resolve(&history)?;
        let history = history.into_history();
        let moment = || Moment::from(Arc::clone(&history));
        let selection = match lookup {
            Lookup::One(position) => {
                let part = part_of(bound).filter(|_| !history.has(position));
                let seen = part.map(|part| seeing(&history, position, &part));
                let seen = seen.transpose().map_err(failed)?.flatten();
                if seen.is_none() {
                    history.fetch(position).map_err(failed)?;
                }
                let read = seen.as_ref().unwrap_or(&history).get(position);
                self.fetch_ages(bound, &history, read)?;
                match seen {
                    Some(seen) => {
                        let seen = Moment::from(Arc::new(seen));
                        Selection::lazy(bound, seen, RowSource::One(position))
                    }
                    None => Selection::one(bound, moment(), position, trace),
                }
            }
            Lookup::All => {
                history
                    .fetch_range(0..history.committed().len())
                    .map_err(failed)?;
                let all = RowSource::Union(Union::all(&history));
                Selection::lazy(bound, moment(), all)
            }
            Lookup::Range(span) => {
                let (read, _) = capped(span, options);
                self.fetch(&history, &Lookup::Range(read))?;
                let read = history.committed().range(read.oldest..read.newest + 1);
                self.fetch_ages(bound, &history, read)?;
                self.union(bound, moment(), span, options)
            }
        };
        Ok(selection)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn fetch_diffs(
        &self,
        history: &History,
        span: SnapshotRange,
        options: &RangeOptions,
    ) -> Result<(), Error> {
        let (read, _) = capped(span, options);
        if self.ready()?.reads_ages() {
            self.fetch(history, &Lookup::All)?;
        }
        if self.query().controls.mode != RangeAnswer::Reduce {
            return self.fetch(history, &Lookup::Range(read));
        }
        let ends = [read.newest, read.oldest].map(|at| history.fetch(Position::Committed(at)));
        let cycles = history.fetch_cycles();
        let done = ends.into_iter().chain([cycles]).collect::<Result<(), _>>();
        done.map_err(|failure| self.failed(failure))
    }

    pub(crate) fn fetch(&self, history: &History, lookup: &Lookup) -> Result<(), Error> {
        let done = match *lookup {
            Lookup::One(position) => history.fetch(position),
            Lookup::All => history.fetch_range(0..history.committed().len()),
            Lookup::Range(span) => history.fetch_range(span.oldest..span.newest + 1),
        };
        done.map_err(|failure| self.failed(failure))
    }

    /// Has in memory what the ages of nodes are found in, if they are read of these snapshots: the whole history, unless
    /// all nodes say in which cycle they came.
    pub(super) fn fetch_ages<'s>(
        &self,
        bound: &Bound,
        history: &History,
        read: impl IntoIterator<Item = &'s Arc<Snapshot>>,
    ) -> Result<(), Error> {
        let is_told = |snapshot: &Arc<Snapshot>| {
            let mut nodes = snapshot.nodes();
            nodes.all(|node| node.present().has(Present::CYCLE))
        };
        if bound.reads_ages() && !read.into_iter().all(is_told) {
            return self.fetch(history, &Lookup::All);
        }
        Ok(())
    }

    /// The rows of the selector, whatever its time is, in a loaded snapshot of a history. Ascending.
    ///
    /// # Errors
    /// Parameters without values; what the ages of nodes are found in cannot be loaded.
    pub(crate) fn rows_of_snapshot(
        &self,
        history: &History,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Vec<u32>, Error> {
        let bound = self.ready()?;
        if history.is_lazy() {
            self.fetch_ages(bound, history, [snapshot])?;
        }
        let found = run(bound, RunInput::new(snapshot, history), &mut Trace::off());
        let mut rows: Vec<u32> = found.iter().collect();
        rows.sort_unstable();
        Ok(rows)
    }

    #[cold]
    pub(crate) fn failed(&self, failure: LoadFailure) -> Error {
        failure.about(self.text())
    }
}

/// The history with the part in the place of the snapshot at a position; `None` if the whole is needed.
fn seeing(
    history: &Arc<History>,
    position: Position,
    part: &SnapshotPart,
) -> Result<Option<History>, LoadFailure> {
    let seen = history.seeing(position, part)?;
    Ok(seen.filter(|seen| match (&part.ids, seen.get(position)) {
        (Some(ids), Some(snapshot)) => !has_spine(snapshot, ids),
        (None, found) => found.is_some(),
        (Some(_), None) => false,
    }))
}

/// Whether one of the ids is that of the root or `^seq`, whose subtrees are not in one unit.
fn has_spine(snapshot: &Snapshot, ids: &[Box<str>]) -> bool {
    let seq = snapshot.seq_row().map(|row| snapshot.node(row));
    let mut spine = std::iter::once(snapshot.root()).chain(seq);
    spine.any(|node| ids.iter().any(|id| **id == *node.id()))
}

/// The part of a snapshot in which all matches of a plan lie, with all that decides them; `None` for
/// the whole.
fn part_of(bound: &Bound) -> Option<SnapshotPart> {
    if bound.requires_ids && bound.is_unit_local() {
        let filters = bound.chains.iter().flat_map(|chain| chain.filters());
        let ids = filters.filter_map(|filter| filter.id.clone());
        return Some(SnapshotPart::of_ids(ids.collect()));
    }
    let mut part = SnapshotPart::default();
    for chain in &bound.chains {
        let depths = chain.scope.as_ref().filter(|_| chain.separable)?;
        part.sys |= depths.contains(-1);
        part.head |= depths.contains(0);
        let deepest = depths.ranges().iter().map(|(_, high)| *high).max();
        match deepest {
            Some(i64::MAX) => return None,
            Some(deepest) => part.turns = part.turns.max(u64::try_from(deepest).unwrap_or(0)),
            None => {}
        }
    }
    Some(part)
}

fn names_cycle(time: QueryTime) -> bool {
    match time {
        QueryTime::At(Address::Cycle(_)) => true,
        QueryTime::Range(a, b) => [a, b].iter().any(|end| matches!(end, RangeEnd::Cycle(_))),
        QueryTime::At(Address::Back(_)) | QueryTime::Working | QueryTime::All => false,
    }
}
