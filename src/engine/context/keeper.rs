//! Commits and working states of a context that something keeps, such as a store.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use super::Context;
use crate::history::Attempts;
use crate::index::Snapshot;
use crate::runtime::{Commit, Memory, Pending};
use crate::support::diag::Error;

/// Where the commits of a context are kept before readers see them.
pub(crate) trait CommitKeeper: Any + Debug + Send + Sync {
    /// Keeps a step. When it returns, the step is durable, or it has failed and nothing was kept.
    ///
    /// # Errors
    /// Those of what keeps it.
    fn keep(&mut self, step: &Step<'_>) -> Result<(), Error>;
}

/// What a context has to keep: a commit, or its working state.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    /// The newest commit before.
    pub(crate) older: Option<&'a Snapshot>,
    /// The commit or the working state; `None` without a working state.
    pub(crate) newer: Option<&'a Snapshot>,
    /// What the runtime needs to go on, as JSON text, without the ids of earlier cycles.
    pub(crate) runtime: String,
    /// Ids that the commit has put out of use, sorted.
    pub(crate) retired: Vec<&'a str>,
    /// The attempts, those that were kept before among them.
    pub(crate) attempts: Attempts,
    /// Named references: name and id of the node, sorted.
    pub(crate) pins: Vec<(String, String)>,
}

impl Context {
    /// Keeps the working state in the store, so that another process can go on with it. A context that is
    /// in no store has nothing to do. Linear in what the cycle has changed.
    ///
    /// # Errors
    /// Those of the store.
    pub fn save(&mut self) -> Result<(), Error> {
        if self.keeper.is_none() {
            return Ok(());
        }
        let history = self.history();
        let memory = self.workspace.memory_of_cycle();
        let newer = history.working().map(|working| &**working);
        let older = history.committed().last().map(|newest| &**newest);
        let step = self.step(older, newer, &memory, Vec::new())?;
        match &mut self.keeper {
            Some(keeper) => keeper.keep(&step),
            None => Ok(()),
        }
    }

    /// Writes the commits and saves of this context through `keeper` from now on.
    pub(crate) fn keep_in(&mut self, keeper: Box<dyn CommitKeeper>) {
        self.keeper = Some(keeper);
    }

    /// What keeps its commits.
    pub(crate) fn keeper(&mut self) -> Option<&mut dyn CommitKeeper> {
        self.keeper.as_deref_mut()
    }

    /// Commits through the keeper.
    pub(super) fn commit_kept(&mut self) -> Result<Commit, Error> {
        let prepared = self.prepare_commit()?;
        let step = self.step_of(&prepared);
        let kept = match (step, &mut self.keeper) {
            (Ok(step), Some(keeper)) => keeper.keep(&step),
            (Ok(_), None) => Ok(()),
            (Err(error), _) => Err(error),
        };
        self.end_commit(prepared, kept)
    }

    /// The first half of a commit: readers see nothing of it, and it can be taken back.
    pub(crate) fn prepare_commit(&mut self) -> Result<Prepared, Error> {
        let older = self.session.history().committed().last().cloned();
        let pending = self.workspace.prepare();
        let pending = pending.map_err(|refusal| refusal.about(""))?;
        Ok(Prepared { pending, older })
    }

    /// What is to be kept of a prepared commit.
    pub(crate) fn step_of<'p>(&self, prepared: &'p Prepared) -> Result<Step<'p>, Error> {
        self.step(
            prepared.older.as_deref(),
            Some(prepared.pending.snapshot()),
            &self.workspace.memory_after_commit(),
            prepared.pending.retired(),
        )
    }

    /// The second half of a commit: publishes it, or takes it back if it was not kept.
    pub(crate) fn end_commit(
        &mut self,
        prepared: Prepared,
        kept: Result<(), Error>,
    ) -> Result<Commit, Error> {
        match kept {
            Ok(()) => {
                let made = self.workspace.finish(prepared.pending);
                Ok(self.publish_commit(made))
            }
            Err(error) => {
                self.workspace.undo(prepared.pending);
                Err(error)
            }
        }
    }

    fn step<'s>(
        &self,
        older: Option<&'s Snapshot>,
        newer: Option<&'s Snapshot>,
        memory: &Memory,
        retired: Vec<&'s str>,
    ) -> Result<Step<'s>, Error> {
        let pins = self.named.iter();
        Ok(Step {
            older,
            newer,
            runtime: serde_json::to_string(memory).unwrap_or_default(),
            retired,
            attempts: self.attempts(),
            pins: pins
                .map(|(name, pin)| (name.clone(), pin.id().to_owned()))
                .collect(),
        })
    }
}

/// A commit that is made and not published.
pub(crate) struct Prepared {
    pending: Pending,
    older: Option<Arc<Snapshot>>,
}
