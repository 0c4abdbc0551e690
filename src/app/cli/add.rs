//! `pactql add`: a new node.

use super::command::Run;
use super::options::Color;
use super::write::{NodeArgs, WriteArgs};
use crate::app::present::{Exit, Failure};
use clap::Args;

/// Add a node, and all below it, to the turn in progress or anywhere outside sealed cores.
///
/// POSITION is a selector of the parent, such as `^ah` or `#notes`, or a position with a place in it:
/// `(d0, end)`, `(d1, -1)`. Prints the id.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql add session.jsonl ^ah 'block:text { role=user } \"Where is my refund?\"'
  pactql add session.jsonl ^sys '{\"kind\":\"doc\",\"ttl\":2}' --content-file handbook.md
  pactql add session.jsonl \"(d1, end)\" 'block:note \"The customer called.\"'
  echo '{\"content\":\"hi\"}' | pactql add session.jsonl ^ah -")]
pub(super) struct Add {
    #[command(flatten)]
    write: WriteArgs,
    /// Where: a selector of the parent, or a position such as `(d0, end)`.
    #[arg(allow_hyphen_values = true)]
    position: String,
    #[command(flatten)]
    node: NodeArgs,
}

impl Run for Add {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let node = self.node.read(&self.write)?;
        let mut writing = self.write.open()?;
        let id = writing.context().add(&self.position, node)?;
        writing.finish(self.write.how(), &self.position, &[id], Exit::Ok)
    }
}
