//! `pactql new`: a session with nothing in it.

use super::command::Run;
use super::options::Color;
use super::write::{HowArgs, check_target};
use crate::files::SessionFile;
use crate::present::{Exit, Failure};
use clap::Args;

/// Make the file of a new session, which has the regions only.
///
/// A file that exists is left as it is. Prints nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql new session.jsonl
  pactql new session.jsonl && pactql add session.jsonl ^sys 'block:text \"You are brief.\"'")]
pub(super) struct New {
    /// The file to make.
    file: String,
    #[command(flatten)]
    how: HowArgs,
}

impl Run for New {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        check_target(&self.file)?;
        SessionFile::create(&self.file, self.how.builder().build())?;
        Ok(Exit::Ok)
    }
}
