//! `pactql discard`: back to the newest snapshot.

use super::command::Run;
use super::options::Color;
use super::write::WriteArgs;
use crate::app::present::{Exit, Failure};
use clap::Args;

/// Drop every change since the last commit.
///
/// Attempts stay, and so do the references to nodes that are left. Prints nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql discard session.jsonl")]
pub(super) struct Discard {
    #[command(flatten)]
    write: WriteArgs,
}

impl Run for Discard {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let mut writing = self.write.open()?;
        writing.context().discard();
        writing.save()?;
        Ok(Exit::Ok)
    }
}
