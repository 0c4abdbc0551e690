//! What a context keeps beside its documents, so that a later run can go on with it: references with a
//! name, attempts, and what [`crate::runtime::Memory`] has.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[cfg(feature = "store")]
use super::Beside;
use super::{Context, ContextBuilder};
use crate::history::{AttemptEntry, Attempts, Session};
use crate::runtime::Memory;
use crate::support::diag::{Code, Diagnostic, Error};

/// The state of a context that no snapshot document has. As JSON it is one object.
///
/// ```
/// use pactql::{Context, ContextBuilder, NewNode, context::ContextState};
/// let mut context = Context::new();
/// context.add("^sys", NewNode::text("Be brief.").key("rules").ttl(0))?;
/// context.pin_as("rules", "#rules")?;
/// context.commit()?;
/// let kept = serde_json::to_string(&context.kept())?; // store it beside the session
/// let kept: ContextState = serde_json::from_str(&kept)?;
/// let mut later = ContextBuilder::default().resume_kept(&*context.session(), &kept)?;
/// later.commit()?;
/// assert_eq!(later.select("@t0 #rules")?.count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextState {
    memory: Memory,
    /// Named references: name and id of the node, sorted by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pins: Vec<(String, String)>,
    /// Oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<AttemptEntry>,
}

impl ContextState {
    pub(crate) fn read(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| {
            let message = format!("the `runtime` line of the session: {error}");
            let help = "`pactql export --jsonl` without that line is a session that can be written";
            Error::new("", Diagnostic::error(Code::Input, message).with_help(help))
        })
    }
}

#[cfg(feature = "store")]
impl ContextState {
    /// What a store has kept beside the snapshots, without attempts.
    pub(crate) fn stored(beside: Beside) -> Result<Self, Error> {
        let runtime = beside.runtime.unwrap_or_default();
        let mut memory: Memory = serde_json::from_str(&runtime).map_err(|error| {
            let message = format!("what a context kept of the session: {error}");
            Error::new("", Diagnostic::error(Code::Store, message))
        })?;
        memory.used = beside.retired;
        Ok(Self {
            memory,
            pins: beside.pins.unwrap_or_default(),
            attempts: Vec::new(),
        })
    }

    pub(crate) fn with_attempts(self, attempts: Vec<AttemptEntry>) -> Self {
        Self { attempts, ..self }
    }

    /// As a store keeps it, without attempts.
    pub(crate) fn into_beside(self) -> Beside {
        let mut memory = self.memory;
        Beside {
            retired: std::mem::take(&mut memory.used),
            runtime: serde_json::to_string(&memory).ok(),
            pins: Some(self.pins),
            ..Beside::default()
        }
    }
}

impl Context {
    /// What has to be kept to go on with [`ContextBuilder::resume_kept`]. Linear in the attempts and in
    /// the ids that are gone.
    pub fn kept(&self) -> ContextState {
        let attempts = self.attempts();
        let mut attempts: Vec<AttemptEntry> = attempts.entries().cloned().collect();
        attempts.reverse();
        ContextState {
            memory: self.workspace.memory(),
            pins: self.pins(),
            attempts,
        }
    }

    pub(super) fn pins(&self) -> Vec<(String, String)> {
        let pins = self.references();
        pins.map(|(name, id)| (name.to_owned(), id.to_owned()))
            .collect()
    }

    /// Pins the one matched node under a name, until [`Context::unpin`]. A reference of that name is
    /// replaced. Returns the node's id. Errors as [`Context::pin`].
    pub fn pin_as(&mut self, name: &str, selector: &str) -> Result<String, Error> {
        let reference = self.pin(selector)?;
        let id = reference.id().to_owned();
        self.named.insert(name.into(), reference);
        Ok(id)
    }

    /// Drops the reference of a name. Returns the id of its node, or `None` if there is none.
    pub fn unpin(&mut self, name: &str) -> Option<String> {
        let reference = self.named.remove(name)?;
        Some(reference.id().to_owned())
    }

    /// The references with a name, sorted: name and id of the node.
    pub fn references(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named
            .iter()
            .map(|(name, pin)| (name.as_str(), pin.id()))
    }
}

impl ContextBuilder {
    /// Goes on with a session of a store that no context has written yet: ids that were used, and the
    /// last time.
    #[cfg(feature = "store")]
    pub(crate) fn resume_unwritten(
        self,
        session: &Session,
        used: &[String],
        last_ns: i64,
    ) -> Result<Context, Error> {
        let mut context = self.resume_documents(session)?;
        context.workspace.note_used(used, last_ns);
        Ok(context)
    }

    /// As [`Context::resume`], with these settings.
    pub fn resume(self, session: &Session) -> Result<Context, Error> {
        match session.kept() {
            Some(text) => self.resume_kept(session, &ContextState::read(text)?),
            None => self.resume_documents(session),
        }
    }

    /// As [`ContextBuilder::resume`], with what an earlier context kept.
    pub fn resume_kept(self, session: &Session, kept: &ContextState) -> Result<Context, Error> {
        let mut context = self.resume_documents(session)?;
        context.workspace.remember(&kept.memory);
        for (name, id) in &kept.pins {
            let reference = context.workspace.pins.pin(id);
            context.named.insert(name.clone(), reference);
        }
        if !kept.attempts.is_empty() {
            let attempts = Attempts::from_entries(kept.attempts.iter().cloned());
            let history = context.session.history();
            context.session = Arc::new(Session::new(history.with_attempts(attempts)));
        }
        Ok(context)
    }
}
