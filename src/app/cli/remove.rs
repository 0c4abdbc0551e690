//! `pactql remove`: nodes that go.

use super::command::Run;
use super::options::Color;
use super::write::WriteArgs;
use crate::app::present::{Exit, Failure};
use clap::Args;

/// Remove nodes with all below them.
///
/// Sealed turns and what is in their cores stay: `compact` takes those. Prints the ids of the topmost
/// nodes that went.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql remove session.jsonl \"^ah .cb[kind='doc']\"
  pactql remove session.jsonl \"#banner\" --fail-if-empty")]
pub(super) struct Remove {
    #[command(flatten)]
    write: WriteArgs,
    /// A selector of the nodes.
    #[arg(allow_hyphen_values = true)]
    selector: String,
    /// Exit with code 8 if nothing is found.
    #[arg(long)]
    fail_if_empty: bool,
}

impl Run for Remove {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let mut writing = self.write.open()?;
        let ids = writing.context().remove(&self.selector)?;
        let empty = Exit::of_empty(self.fail_if_empty);
        writing.finish(self.write.how(), &self.selector, &ids, empty)
    }
}
