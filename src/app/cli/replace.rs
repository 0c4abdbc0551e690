//! `pactql replace`: a node in the place of another.

use super::command::Run;
use super::options::Color;
use super::write::{NodeArgs, WriteArgs};
use crate::app::present::{Exit, Failure};
use clap::Args;

/// Put a node in the place of another, with its offset, its time and, unless NODE has one, its key.
///
/// The old node goes with all below it; the new one has an id of its own, which is printed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql replace session.jsonl \"#rules\" 'block:text { role=system } \"Be brief.\"'
  pactql replace session.jsonl \"^ah .cb:last\" --content-file corrected.md")]
pub(super) struct Replace {
    #[command(flatten)]
    write: WriteArgs,
    /// A selector of the one node to replace.
    #[arg(allow_hyphen_values = true)]
    selector: String,
    #[command(flatten)]
    node: NodeArgs,
}

impl Run for Replace {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let node = self.node.read(&self.write)?;
        let mut writing = self.write.open()?;
        let id = writing.context().replace(&self.selector, node)?;
        writing.finish(self.write.how(), &self.selector, &[id], Exit::Ok)
    }
}
