//! What a server is to be, what its calls share, and what each returns.

use super::loaded::LoadedSessions;
use super::pages::KeptAnswers;
use super::root::Root;
use crate::app::calls::{CallAnswer, Engines, SessionSource};
use crate::app::present::Result;
use crate::engine::Engine;
use crate::history::Session;
use crate::query::ir::Edition;
use crate::tree::Limits;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerOptions {
    pub(crate) limits: Limits,
    /// Whether the listed names of tools have a dot. Both forms are answered.
    pub(crate) dotted_names: bool,
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) root: Root,
    pub(super) loaded: LoadedSessions,
    pub(super) answers: KeptAnswers,
    engines: Engines,
}

impl ServerState {
    pub(super) fn new(root: Root, limits: Limits) -> Self {
        Self {
            root,
            loaded: LoadedSessions::new(limits),
            answers: KeptAnswers::default(),
            engines: Engines::new(),
        }
    }
}

impl SessionSource for ServerState {
    fn engine(&self, edition: Edition) -> Result<&Engine> {
        self.engines.get(edition)
    }

    fn session(&self, name: &str) -> Result<Arc<Session>> {
        self.loaded.open(&self.root, name)
    }
}

impl CallAnswer {
    /// The result as an object of JSON; `None` if it is text, or a part of a value. Lines of JSON, and what is not an object,
    /// are the member `result`.
    pub(super) fn value(&self) -> Option<Value> {
        let value: Option<Value> = serde_json::from_str(&self.result).ok();
        let value = value.or_else(|| {
            let lines = self.result.lines().map(serde_json::from_str);
            lines
                .collect::<Result<Vec<Value>, _>>()
                .ok()
                .map(Value::Array)
        })?;
        Some(if value.is_object() {
            value
        } else {
            json!({ "result": value })
        })
    }
}
