//! `pactql new`: a session with nothing in it, in a file or a store.

use super::command::Run;
use super::options::Color;
use super::write::{HowArgs, check_plain_file, write_to};
use crate::app::present::stores::Address;
use crate::app::present::{Exit, Failure};
use crate::logs::file::SessionFile;
use clap::Args;

/// Make a new session, which has the regions only: a file, or `STORE#name`.
///
/// What exists is left as it is; a store that is missing is made. Prints nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql new session.jsonl
  pactql new agents.db#support-42
  pactql new session.jsonl && pactql add session.jsonl ^sys 'block:text \"You are brief.\"'")]
pub(super) struct New {
    /// The file, or the session of a store, to make.
    file: String,
    #[command(flatten)]
    how: HowArgs,
}

impl Run for New {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let context = self.how.builder().build();
        if Address::of(&self.file).is_some() {
            return write_to(&self.file, context).map(|()| Exit::Ok);
        }
        check_plain_file(&self.file)?;
        SessionFile::create(&self.file, context)?;
        Ok(Exit::Ok)
    }
}
