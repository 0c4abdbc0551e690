//! `pactql context serve`: the same answers for agents.

use super::options::{Limits, Messages};
use crate::present::{Exit, Failure};
use clap::Args;
use std::path::PathBuf;

/// Answer agents over the Model Context Protocol, on standard input and output.
///
/// The tools are context.resolve, context.list_caches and context.inspect_cache over caches, and
/// pact.select, pact.explain and pact.diff over sessions. Whatever they name is below one
/// directory; other paths are refused. Ends when standard input does.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql context serve --root .
  pactql context serve --root ~/conversations --max-input 500M")]
pub(super) struct Serve {
    /// The directory of the caches and sessions.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    #[command(flatten)]
    messages: Messages,
    #[command(flatten)]
    limits: Limits,
}

impl Serve {
    /// Whether errors are asked for as JSON.
    pub(super) fn json_errors(&self) -> bool {
        self.messages.json()
    }

    /// Runs the command.
    pub(super) fn run(self) -> Result<Exit, Failure> {
        crate::mcp::serve(&self.root, self.limits.source())?;
        Ok(Exit::Ok)
    }
}
