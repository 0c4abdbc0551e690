//! `pactql delete`: a session of a store goes.

use super::command::Run;
use super::options::{Color, Messages};
use super::output::counted;
use super::sessions::open_store;
use super::store_words::{address, one};
use super::wait::Wait;
use super::words::quoted;
use crate::app::present::stores::Access;
use crate::app::present::{Exit, Failure};
use clap::Args;

/// Delete a session of a store, with all its snapshots.
///
/// Without `--yes` nothing is deleted, and the message says what would go. Forks of the session stay
/// whole. Prints nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql delete agents.db#support-42
  pactql delete agents.db#support-42 --yes")]
pub(super) struct Delete {
    /// The session, such as `agents.db#support-42`.
    session: String,
    /// Delete it.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    messages: Messages,
}

impl Run for Delete {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        address("delete", &self.session).map_err(|failure| {
            failure.with_help(
                "it deletes sessions, such as agents.db#support-42; `pactql remove` removes nodes",
            )
        })?;
        let (store, name) = one("delete", &self.session)?;
        if self.yes {
            let store = open_store(store, Access::Write)?;
            self.wait.until_free(|| Ok(store.delete(name)?))?;
            return Ok(Exit::Ok);
        }
        let opened = open_store(store, Access::Read)?;
        // Says which names are near.
        opened.session(name)?;
        let found = opened.sessions(name)?;
        let info = found.iter().find(|info| info.name == name);
        let snapshots = info.map_or(0, |info| info.snapshots as u64);
        let working = if info.is_some_and(|info| info.working) {
            " and the working state"
        } else {
            ""
        };
        let what = counted(snapshots, "snapshot");
        Err(Failure::usage(format!(
            "{what}{working} of `{name}` would be deleted, and nothing brings them back"
        ))
        .with_help(format!("pactql delete {} --yes", quoted(&self.session))))
    }
}
