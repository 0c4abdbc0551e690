//! Writes the commits of a context to a session of a store before readers see them; those of many contexts in one
//! transaction.
//!
//! This file turns what a context has into rows to be written. It knows neither selectors nor the layout.

use std::any::Any;
use std::sync::Arc;

use crate::engine::{CommitKeeper, Context, Step};
use crate::history::AttemptEntry;
use crate::runtime::Commit;
use crate::store::error::{Result, StoreError};
use crate::store::write::change::SnapshotChange;
use crate::store::write::core::Core;
use crate::store::write::records::Beside;
use crate::store::write::writer::{Job, SessionWriter};
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

    /// The rows of a step. The writer is away until [`StoreKeeper::ended`] gets it back.
    fn job(&mut self, step: &Step<'_>) -> Result<Job, Error> {
        let lost =
            || StoreError::Refused("an earlier step of this session has panicked".to_owned());
        let writer = self.writer.take().ok_or_else(lost)?;
        let mut retired = std::mem::take(&mut self.unnoted);
        retired.extend(step.retired.iter().map(|id| (*id).to_owned()));
        let settled = writer.settled;
        let unsettled = step.attempts.len().saturating_sub(settled);
        let newest_first = step.attempts.entries().take(unsettled).cloned();
        let mut attempts: Vec<AttemptEntry> = newest_first.collect();
        attempts.reverse();
        let beside = Beside {
            runtime: Some(step.runtime.clone()),
            retired,
            settled,
            attempts,
            pins: (writer.pins != step.pins).then(|| step.pins.clone()),
        };
        Ok(Job {
            writer,
            change: step
                .newer
                .map(|newer| SnapshotChange::between(step.older, newer)),
            beside,
        })
    }

    fn ended(&mut self, job: Job, result: Result<()>) -> Result<(), Error> {
        if result.is_err() {
            self.unnoted = job.beside.retired;
        }
        self.writer = Some(job.writer);
        Ok(result?)
    }
}

impl CommitKeeper for StoreKeeper {
    fn keep(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let job = self.job(step)?;
        let (job, result) = self.core.keep(job);
        self.ended(job, result)
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
    let (mut results, mut jobs, mut places) = (Vec::new(), Vec::new(), Vec::new());
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
        let step = context.step_of(&prepared);
        let keeper = store_keeper(context).ok_or_else(foreign);
        match keeper.and_then(|keeper| keeper.job(&step)) {
            Ok(job) => {
                places.push((results.len(), context, prepared));
                jobs.push(job);
                // Replaced below.
                results.push(Ok(Commit::default()));
            }
            Err(error) => results.push(context.end_commit(prepared, Err(error))),
        }
    }
    let kept = core.keep_all(&mut jobs);
    for (((at, context, prepared), job), kept) in places.into_iter().zip(jobs).zip(kept) {
        let kept = store_keeper(context).map_or(Ok(()), |keeper| keeper.ended(job, kept));
        results[at] = context.end_commit(prepared, kept);
    }
    results
}

fn store_keeper(context: &mut Context) -> Option<&mut StoreKeeper> {
    let keeper: &mut dyn Any = context.keeper()?;
    keeper.downcast_mut()
}
