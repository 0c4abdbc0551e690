//! Where the commits of a context are kept before readers see them: a session of a store.
//!
//! This file turns what a context has into rows to be written. It knows neither selectors nor the layout.

use std::sync::Arc;

use crate::history::{AttemptEntry, Attempts};
use crate::index::Snapshot;
use crate::store::{AttemptRow, Change, Core, Job, SessionWriter, StoreError, Work};
use crate::support::diag::Error;

/// What a context has to keep: a commit, or its working state.
#[derive(Debug)]
pub(super) struct Step<'a> {
    /// The newest commit before.
    pub(super) older: Option<&'a Snapshot>,
    /// The commit or the working state; `None` if there is no working state.
    pub(super) newer: Option<&'a Snapshot>,
    /// What the runtime needs to go on, as JSON text, without the ids of earlier cycles.
    pub(super) runtime: String,
    /// Ids that the commit has put out of use, sorted.
    pub(super) retired: Vec<&'a str>,
    pub(super) attempts: Attempts,
    /// Named references: name and id of the node, sorted.
    pub(super) pins: Vec<(String, String)>,
}

/// The session of a store that a context writes. Dropping it gives the lease back.
#[derive(Debug)]
pub(super) struct Keeper {
    core: Arc<Core>,
    /// `None` only while a step is kept, or after a panic in between.
    writer: Option<SessionWriter>,
    /// Ids that were found in closed placements when the session was opened, not noted yet.
    unnoted: Vec<String>,
}

impl Keeper {
    pub(super) fn new(core: Arc<Core>, writer: SessionWriter, unnoted: Vec<String>) -> Self {
        Self {
            core,
            writer: Some(writer),
            unnoted,
        }
    }

    /// The store.
    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Keeps a step. When it returns, the step is durable, or it has failed and nothing was kept.
    pub(super) fn keep(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let job = self.job(step)?;
        let (job, result) = self.core.keep(job);
        self.ended(job, result)
    }

    /// The rows of a step. The writer is away until [`Keeper::ended`] gets it back.
    pub(super) fn job(&mut self, step: &Step<'_>) -> Result<Job, Error> {
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
    pub(super) fn ended(&mut self, job: Job, result: Result<(), StoreError>) -> Result<(), Error> {
        if result.is_err() {
            self.unnoted = job.work.retired;
        }
        self.writer = Some(job.writer);
        Ok(result?)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(writer) = &self.writer {
            self.core.close(writer);
        }
    }
}
