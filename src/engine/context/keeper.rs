//! Commits and working states of a context that something keeps, such as a store.

use std::any::Any;
use std::fmt::Debug;

use super::Context;
use crate::history::Attempts;
use crate::index::Snapshot;
#[cfg(feature = "view")]
use crate::runtime::DoneRequest;
use crate::runtime::{DoneAnswer, Memory, PreparedCommit};
use crate::support::diag::{Code, Error};

/// Where the commits of a context are kept before readers see them.
pub(crate) trait CommitKeeper: Any + Debug + Send + Sync {
    /// Keeps `newer`, a commit or the working state, after `older`, the newest commit before; without `newer` there is
    /// no working state. When it returns, that is durable, or it has failed and nothing was kept.
    fn keep(
        &mut self,
        older: Option<&Snapshot>,
        newer: Option<&Snapshot>,
        beside: Beside,
    ) -> Result<(), Error>;
}

/// What is beside the snapshots of a session, as it was read or as it is to be written.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// What the runtime needs to go on, as JSON text, without the ids of earlier cycles; `None` if no context has
    /// written the session.
    pub(crate) runtime: Option<String>,
    /// Ids that are in use no more, sorted; to be written, those that were not noted yet.
    pub(crate) retired: Vec<String>,
    /// How many of the attempts are not to be written: those that had ended when the last ones were.
    pub(crate) settled: usize,
    pub(crate) attempts: Attempts,
    /// Names and ids of references, sorted by name; `None` if they are as they were.
    pub(crate) pins: Option<Vec<(String, String)>>,
}

impl Context {
    /// Keeps the working state in the store, so that another process can go on with it. Linear in what the cycle has
    /// changed.
    ///
    /// # Errors
    /// Those of the store; `E_STORE` where the context is in none.
    pub fn save(&mut self) -> Result<(), Error> {
        if self.keeper.is_none() {
            let message = "the session of this context is in no store, so nothing keeps it";
            let help =
                "`SessionFile::save` writes one to its file; `Store::write` opens one in a store";
            return Err(Error::whole(Code::Store, "", message).with_help(help));
        }
        let history = self.history();
        let newer = history.working().map(|working| &**working);
        let older = history.committed().last().map(|newest| &**newest);
        let beside = self.beside(&self.workspace.memory_of_cycle(), Vec::new());
        self.keep(older, newer, beside)
    }

    /// The request of this key, if the session remembers that it was done.
    #[cfg(feature = "view")]
    pub(crate) fn done(&self, key: &str) -> Option<&DoneRequest> {
        self.workspace.done.iter().find(|done| done.key == key)
    }

    /// Notes a request with what it has changed, to be kept by the next save or commit.
    #[cfg(feature = "view")]
    pub(crate) fn note_done(&mut self, request: DoneRequest) {
        self.workspace.note_done(request);
    }

    pub(crate) fn keep_in(&mut self, keeper: Box<dyn CommitKeeper>) {
        self.keeper = Some(keeper);
    }

    pub(crate) fn keeper(&mut self) -> Option<&mut dyn CommitKeeper> {
        self.keeper.as_deref_mut()
    }

    pub(super) fn keep(
        &mut self,
        older: Option<&Snapshot>,
        newer: Option<&Snapshot>,
        beside: Beside,
    ) -> Result<(), Error> {
        match &mut self.keeper {
            Some(keeper) => keeper.keep(older, newer, beside),
            None => Ok(()),
        }
    }

    pub(crate) fn beside_commit(&self, prepared: &PreparedCommit) -> Beside {
        let mut memory = self.workspace.memory_after_commit();
        if let Some(done) = memory.done.last_mut()
            && done.answer == DoneAnswer::OfCommit
        {
            let said = serde_json::json!(prepared.commit()).to_string();
            done.answer = DoneAnswer::Said(said);
        }
        self.beside(&memory, prepared.retired())
    }

    fn beside(&self, memory: &Memory, retired: Vec<String>) -> Beside {
        Beside {
            runtime: Some(serde_json::to_string(memory).unwrap_or_default()),
            retired,
            settled: 0,
            attempts: self.attempts(),
            pins: Some(self.pins()),
        }
    }
}
