//! What a server is to be, what its calls share, and what each returns.

use super::kept::Kept;
use super::root::Root;
use crate::app::present::Failure;
use crate::engine::Engine;
use crate::query::ir::Edition;
use crate::tree::Limits;
use std::time::Duration;

/// What a server is to be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// What holds for every session that is read.
    pub(crate) limits: Limits,
    /// Whether the listed names of tools have a dot. Both forms are answered.
    pub(crate) dotted_names: bool,
    /// How long a call may run.
    pub(crate) timeout: Option<Duration>,
}

/// What all calls share.
#[derive(Debug)]
pub(super) struct ServerState {
    /// The directory that may be read.
    pub(super) root: Root,
    /// The sessions read so far.
    pub(super) kept: Kept,
    /// One engine for each edition, which keeps its plans between calls.
    engines: [Engine; Edition::ALL.len()],
}

impl ServerState {
    /// The state of a server of `root`; `limits` hold for every session.
    pub(super) fn new(root: Root, limits: Limits) -> Self {
        Self {
            root,
            kept: Kept::new(limits),
            engines: Edition::ALL.map(|edition| Engine::builder().edition(edition).build()),
        }
    }

    /// The engine of an edition.
    pub(super) fn engine(&self, edition: Edition) -> Result<&Engine, Failure> {
        let of = |engine: &&Engine| engine.edition() == edition;
        let none = || Failure::internal("no such edition");
        self.engines.iter().find(of).ok_or_else(none)
    }
}

/// What a tool returns.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// What the command prints on standard output, without its last line feed.
    pub(super) result: String,
    /// What the command prints on standard error: warnings and notes, a line each, or nothing.
    pub(super) said: String,
}

impl From<String> for Answer {
    fn from(result: String) -> Self {
        Self {
            result,
            said: String::new(),
        }
    }
}
