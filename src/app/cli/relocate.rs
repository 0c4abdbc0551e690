//! `pactql move`: nodes to another place.

use super::command::Run;
use super::options::Color;
use super::write::WriteArgs;
use crate::app::present::{Exit, Failure};
use clap::Args;

/// Move nodes with all below them.
///
/// Nodes of the turn in progress keep their ids. A committed node may only change its region, and gets a
/// successor with another id there. Prints the ids after the move.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql move session.jsonl \"^ah .cb[kind='doc']\" \"(d0, -1)\"
  pactql move session.jsonl \"#summary\" ^sys")]
pub(super) struct Move {
    #[command(flatten)]
    write: WriteArgs,
    /// A selector of the nodes.
    #[arg(allow_hyphen_values = true)]
    selector: String,
    /// Where: a selector of the parent, or a position such as `(d0, end)`.
    #[arg(allow_hyphen_values = true)]
    position: String,
    /// Exit with code 8 if nothing is found.
    #[arg(long)]
    fail_if_empty: bool,
}

impl Run for Move {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let mut writing = self.write.open()?;
        let ids = writing.context().move_to(&self.selector, &self.position)?;
        let empty = Exit::of_empty(self.fail_if_empty);
        writing.finish(self.write.how(), &self.selector, &ids, empty)
    }
}
