//! `pactql compact`: a summary in place of nodes.

use super::command::Run;
use super::options::Color;
use super::write::{NodeArgs, WriteArgs};
use crate::app::present::{Exit, Failure};
use clap::Args;

/// Have the next commit take the matched nodes, and put a summary where the first of them was.
///
/// Takes whole turns and blocks of sealed cores, too. Prints the id of the summary. Until the commit
/// nothing changes; `discard` takes the note back.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql compact session.jsonl \"^seq .mt:depth(3-9)\" 'block:summary { key=summary, role=system } \"They want a refund.\"'
  pactql compact session.jsonl \".cb[kind='doc']:depth(2-9)\" 'block:summary { role=system }' --content-file summary.md")]
pub(super) struct Compact {
    #[command(flatten)]
    write: WriteArgs,
    /// A selector of the nodes to take.
    #[arg(allow_hyphen_values = true)]
    selector: String,
    #[command(flatten)]
    node: NodeArgs,
}

impl Run for Compact {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let node = self.node.read(&self.write)?;
        let mut writing = self.write.open()?;
        let id = writing.context().compact(&self.selector, node)?;
        writing.finish(self.write.how(), &self.selector, &[id], Exit::Ok)
    }
}
