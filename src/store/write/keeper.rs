//! Where the commits of a context are kept before readers see them: a session of a store.
//!
//! This file turns what a context has into rows to be written. It knows neither selectors nor the layout.

use std::sync::Arc;

use crate::engine::{CommitKeeper, Step};
use crate::history::AttemptEntry;
use crate::store::error::StoreError;
use crate::store::write::change::Change;
use crate::store::write::core::Core;
use crate::store::write::records::AttemptRow;
use crate::store::write::writer::{Job, SessionWriter, Work};
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

    /// The store.
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The rows of a step. The writer is away until [`StoreKeeper::ended`] gets it back.
    pub(crate) fn job(&mut self, step: &Step<'_>) -> Result<Job, Error> {
        let lost =
            || StoreError::Refused("an earlier step of this session has panicked".to_owned());
        let writer = self.writer.take().ok_or_else(lost)?;
        let mut retired = std::mem::take(&mut self.unnoted);
        retired.extend(step.retired.iter().map(|id| (*id).to_owned()));
        let unsettled = step.attempts.len().saturating_sub(writer.settled());
        let entries: Vec<&AttemptEntry> = step.attempts.entries().take(unsettled).collect();
        let entries = (writer.settled()..).zip(entries.into_iter().rev());
        let work = Work {
            change: step.newer.map(|newer| Change::between(step.older, newer)),
            runtime: step.runtime.clone(),
            retired,
            attempts: entries
                .map(|(number, entry)| AttemptRow {
                    number: number as i64,
                    entry: entry.clone(),
                })
                .collect(),
            pins: (writer.pins() != step.pins).then(|| step.pins.clone()),
        };
        Ok(Job { writer, work })
    }

    /// Takes the writer back.
    pub(crate) fn ended(&mut self, job: Job, result: Result<(), StoreError>) -> Result<(), Error> {
        if result.is_err() {
            self.unnoted = job.work.retired;
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
