//! Commits and working states of a context whose session is in a store.

use std::sync::Arc;

use super::Context;
use crate::engine::keeper::{Keeper, Step};
use crate::index::Snapshot;
use crate::runtime::{Commit, Memory, Pending};
use crate::support::diag::Error;

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
    pub(in crate::engine) fn keep_in(&mut self, keeper: Keeper) {
        self.keeper = Some(keeper);
    }

    /// What keeps its commits.
    pub(in crate::engine) fn keeper(&mut self) -> Option<&mut Keeper> {
        self.keeper.as_mut()
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
    pub(in crate::engine) fn prepare_commit(&mut self) -> Result<Prepared, Error> {
        let older = self.session.history().committed().last().cloned();
        let pending = self.workspace.prepare();
        let pending = pending.map_err(|refusal| refusal.about(""))?;
        Ok(Prepared { pending, older })
    }

    /// What is to be kept of a prepared commit.
    pub(in crate::engine) fn step_of<'p>(&self, prepared: &'p Prepared) -> Result<Step<'p>, Error> {
        self.step(
            prepared.older.as_deref(),
            Some(prepared.pending.snapshot()),
            &self.workspace.memory_after_commit(),
            prepared.pending.retired(),
        )
    }

    /// The second half of a commit: publishes it, or takes it back if it was not kept.
    pub(in crate::engine) fn end_commit(
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
pub(in crate::engine) struct Prepared {
    pending: Pending,
    older: Option<Arc<Snapshot>>,
}
