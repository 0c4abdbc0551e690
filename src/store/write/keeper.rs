//! Writes the commits of a context to a session of a store before readers see them; those of many contexts in one
//! transaction.
//!
//! This file turns what a context has into rows to be written. It knows neither selectors nor the layout.

use std::any::Any;
use std::sync::Arc;

use crate::engine::{Beside, CommitKeeper, Context};
use crate::index::Snapshot;
use crate::runtime::Commit;
use crate::store::error::{Result, StoreError};
use crate::store::write::change::SnapshotChange;
use crate::store::write::core::Core;
use crate::store::write::writer::{CommitStep, SessionWriter};
use crate::support::diag::Error;

/// The session of a store that a context writes. Dropping it gives the lease back.
#[derive(Debug)]
pub(crate) struct StoreKeeper {
    core: Arc<Core>,
    /// `None` only while a step is kept, or after a panic in between.
    writer: Option<SessionWriter>,
    /// Ids that were found in closed placements when the session was opened, not noted yet.
    unnoted: Vec<String>,
}

impl StoreKeeper {
    pub(crate) fn new(core: Arc<Core>, writer: SessionWriter, unnoted: Vec<String>) -> Self {
        Self {
            core,
            writer: Some(writer),
            unnoted,
        }
    }

    /// Encodes a step. The writer is away until [`StoreKeeper::ended`] gets it back.
    fn step(
        &mut self,
        older: Option<&Snapshot>,
        newer: Option<&Snapshot>,
        mut beside: Beside,
    ) -> Result<CommitStep, Error> {
        let lost =
            || StoreError::Refused("an earlier step of this session has panicked".to_owned());
        let writer = self.writer.take().ok_or_else(lost)?;
        beside.retired.splice(..0, self.unnoted.drain(..));
        beside.settled = writer.settled;
        beside.pins = beside.pins.filter(|pins| *pins != writer.pins);
        Ok(CommitStep {
            change: newer.map(|newer| SnapshotChange::between(older, newer)),
            writer,
            beside,
        })
    }

    fn ended(&mut self, step: CommitStep, result: Result<()>) -> Result<(), Error> {
        if result.is_err() {
            self.unnoted = step.beside.retired;
        }
        self.writer = Some(step.writer);
        Ok(result?)
    }
}

impl CommitKeeper for StoreKeeper {
    fn keep(
        &mut self,
        older: Option<&Snapshot>,
        newer: Option<&Snapshot>,
        beside: Beside,
    ) -> Result<(), Error> {
        let step = self.step(older, newer, beside)?;
        let (step, result) = self.core.keep(step);
        self.ended(step, result)
    }
}

impl Drop for StoreKeeper {
    fn drop(&mut self) {
        if let Some(writer) = &self.writer {
            self.core.close(writer);
        }
    }
}

pub(crate) fn commit_all<'c>(
    core: &Arc<Core>,
    contexts: impl IntoIterator<Item = &'c mut Context>,
) -> Vec<Result<Commit, Error>> {
    let foreign = || {
        let message = "the context is not of this store";
        Error::from(StoreError::Refused(message.to_owned()))
    };
    let (mut results, mut steps, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for context in contexts {
        if store_keeper(context).is_none_or(|keeper| !Arc::ptr_eq(&keeper.core, core)) {
            results.push(Err(foreign()));
            continue;
        }
        let prepared = match context.prepare_commit() {
            Ok(prepared) => prepared,
            Err(error) => {
                results.push(Err(error));
                continue;
            }
        };
        let beside = context.beside_commit(&prepared);
        let (older, newer) = (prepared.older.as_deref(), Some(&*prepared.snapshot));
        let keeper = store_keeper(context).ok_or_else(foreign);
        match keeper.and_then(|keeper| keeper.step(older, newer, beside)) {
            Ok(step) => {
                places.push((results.len(), context, prepared));
                steps.push(step);
                // Replaced below.
                results.push(Ok(Commit::default()));
            }
            Err(error) => results.push(context.end_commit(prepared, Err(error))),
        }
    }
    let kept = core.keep_all(&mut steps);
    for (((at, context, prepared), step), kept) in places.into_iter().zip(steps).zip(kept) {
        let kept = store_keeper(context).map_or(Ok(()), |keeper| keeper.ended(step, kept));
        results[at] = context.end_commit(prepared, kept);
    }
    results
}

fn store_keeper(context: &mut Context) -> Option<&mut StoreKeeper> {
    let keeper: &mut dyn Any = context.keeper()?;
    keeper.downcast_mut()
}
