//! `pactql fork`: another session that begins at a snapshot.

use super::command::Run;
use super::options::{Color, Limits};
use super::sessions::{self, open_store};
use super::words::{is_file, quoted};
use super::write::{HowArgs, check_target, new_name, write_to};
use crate::app::present::stores::{Access, Address};
use crate::app::present::{Exit, Failure};
use clap::Args;

/// Begin another session at a snapshot of this one.
///
/// The new session has the snapshots up to there, and those attempts; for `working` also the working
/// state. References stay with this session. Within one store nothing is copied. Prints nothing.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql fork [OPTIONS] <SESSION> <ADDRESS> -o <FILE>
       pactql fork [OPTIONS] <SESSION> <ADDRESS> <STORE#NAME>")]
#[command(after_help = "\
Examples:
  pactql fork session.jsonl @t-2 -o other.jsonl
  pactql fork session.jsonl working -o copy.jsonl
  pactql fork agents.db#support-42 @t-2 agents.db#retry")]
pub(super) struct Fork {
    /// The session: a file, a directory, `STORE#name`, or `-` for standard input.
    session: String,
    /// Where the new session begins: `@t0`, `@t-2`, `@c7`, or `working`.
    #[arg(allow_hyphen_values = true)]
    address: String,
    /// The new session of a store, such as `agents.db#retry`.
    #[arg(value_name = "STORE#NAME", required_unless_present = "output")]
    to: Option<String>,
    /// The file to write, or the session of a store.
    #[arg(short, long, value_name = "FILE", conflicts_with = "to")]
    output: Option<String>,
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
        let to = self.output.as_ref().or(self.to.as_ref());
        let to = to.map_or("", |to| to);
        let target = Address::of(to);
        if self.output.is_none() && target.is_none() {
            let session = quoted(&self.session);
            if let Some(from) = Address::of(&self.session)
                && !is_file(to)
            {
                let whole = quoted(&format!("{}#{to}", from.store));
                let message = format!("expected a file or `STORE#NAME`, found `{to}`");
                return Err(Failure::usage(message)
                    .with_help(format!("pactql fork {session} {} {whole}", self.address)));
            }
            let to = quoted(to);
            return Err(Failure::usage("the new file is the value of `-o`")
                .with_help(format!("pactql fork {session} {} -o {to}", self.address)));
        }
        check_target(to, &[&self.session], self.force)?;
        let from = Address::of(&self.session);
        if let (Some(from), Some(target)) = (from, target)
            && from.store == target.store
            && self.address != "working"
        {
            let (name, target) = (from.one()?, new_name(target)?);
            let store = open_store(from.store, Access::Write)?;
            store.fork(name, &self.address, target)?;
            return Ok(Exit::Ok);
        }
        let context = sessions::resume(&self.session, &self.limits, self.how.builder())?;
        let address = match &*self.address {
            "working" => "",
            address => address,
        };
        write_to(to, context.fork(address)?)?;
        Ok(Exit::Ok)
    }
}
