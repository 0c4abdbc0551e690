//! `pactql fork`: another session that begins at a snapshot.

use super::command::Run;
use super::options::{Color, Limits};
use super::write::{HowArgs, check_target};
use super::{input, sessions};
use crate::files::write_file;
use crate::present::{Exit, Failure};
use clap::Args;
use std::path::Path;

/// Begin another session at a snapshot of this one.
///
/// The new file has the snapshots up to there, and those attempts; for `working` also the working state.
/// References stay with this session. Prints nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql fork session.jsonl @t-2 -o other.jsonl
  pactql fork session.jsonl working -o copy.jsonl")]
pub(super) struct Fork {
    /// The session: a file, a directory, or `-` for standard input.
    session: String,
    /// Where the new session begins: `@t0`, `@t-2`, `@c7`, or `working`.
    #[arg(allow_hyphen_values = true)]
    address: String,
    /// The file to write.
    #[arg(short, long, value_name = "FILE", required = true)]
    output: String,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    how: HowArgs,
    #[command(flatten)]
    limits: Limits,
}

impl Run for Fork {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        check_target(&self.output)?;
        input::check_output(&self.output, &[&self.session], self.force)?;
        let session = sessions::open(&self.session, &self.limits)?;
        let mut context = self.how.builder().resume(&session)?;
        let address = match &*self.address {
            "working" => "",
            address => address,
        };
        write_file(Path::new(&self.output), context.fork(address)?)?;
        Ok(Exit::Ok)
    }
}
