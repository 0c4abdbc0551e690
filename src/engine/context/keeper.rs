//! Commits and working states of a context that something keeps, such as a store.

use std::any::Any;
use std::fmt::Debug;

use super::Context;
use super::write::PreparedCommit;
use crate::history::Attempts;
use crate::index::Snapshot;
use crate::runtime::Memory;
use crate::support::diag::Error;

/// Where the commits of a context are kept before readers see them.
pub(crate) trait CommitKeeper: Any + Debug + Send + Sync {
    /// Keeps a step. When it returns, the step is durable, or it has failed and nothing was kept.
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
    pub(crate) attempts: Attempts,
    /// Named references: name and id of the node, sorted.
    pub(crate) pins: Vec<(String, String)>,
}

impl Context {
    /// Keeps the working state in the store, so that another process can go on with it. A context that is
    /// in no store has nothing to do. Linear in what the cycle has changed. Errors: those of the store.
    pub fn save(&mut self) -> Result<(), Error> {
        if self.keeper.is_none() {
            return Ok(());
        }
        let history = self.history();
        let memory = self.workspace.memory_of_cycle();
        let newer = history.working().map(|working| &**working);
        let older = history.committed().last().map(|newest| &**newest);
        let step = self.step(older, newer, &memory, Vec::new());
        self.keep(&step)
    }

    pub(crate) fn keep_in(&mut self, keeper: Box<dyn CommitKeeper>) {
        self.keeper = Some(keeper);
    }

    pub(crate) fn keeper(&mut self) -> Option<&mut dyn CommitKeeper> {
        self.keeper.as_deref_mut()
    }

    pub(super) fn keep(&mut self, step: &Step<'_>) -> Result<(), Error> {
        match &mut self.keeper {
            Some(keeper) => keeper.keep(step),
            None => Ok(()),
        }
    }

    pub(crate) fn step_of<'p>(&self, prepared: &'p PreparedCommit) -> Step<'p> {
        let (pending, _) = prepared;
        let memory = self.workspace.memory_after_commit();
        let (older, newer) = (pending.older.as_deref(), Some(&*pending.snapshot));
        self.step(older, newer, &memory, pending.retired())
    }

    fn step<'s>(
        &self,
        older: Option<&'s Snapshot>,
        newer: Option<&'s Snapshot>,
        memory: &Memory,
        retired: Vec<&'s str>,
    ) -> Step<'s> {
        Step {
            older,
            newer,
            runtime: serde_json::to_string(memory).unwrap_or_default(),
            retired,
            attempts: self.attempts(),
            pins: self.pins(),
        }
    }
}
