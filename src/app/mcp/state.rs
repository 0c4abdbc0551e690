//! What a server is to be, what its calls share, and what each returns.

use super::loaded::LoadedSessions;
use super::root::Root;
use crate::app::present::Failure;
use crate::engine::Engine;
use crate::query::ir::Edition;
use crate::tree::Limits;
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
    /// One engine for each edition, which keeps its plans between calls.
    engines: [Engine; Edition::ALL.len()],
}

impl ServerState {
    pub(super) fn new(root: Root, limits: Limits) -> Self {
        Self {
            root,
            loaded: LoadedSessions::new(limits),
            engines: Edition::ALL.map(|edition| Engine::builder().edition(edition).build()),
        }
    }

    pub(super) fn engine(&self, edition: Edition) -> Result<&Engine, Failure> {
        let of = |engine: &&Engine| engine.edition() == edition;
        let none = || Failure::internal("no such edition");
        self.engines.iter().find(of).ok_or_else(none)
    }
}

#[derive(Debug, Default)]
pub(super) struct ToolAnswer {
    /// What the command prints on standard output, without its last line feed.
    pub(super) result: String,
    /// What the command prints on standard error: warnings and notes, a line each, or nothing.
    pub(super) said: String,
}

impl From<String> for ToolAnswer {
    fn from(result: String) -> Self {
        Self {
            result,
            said: String::new(),
        }
    }
}
