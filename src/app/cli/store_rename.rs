//! `pactql rename`: another name for a session of a store.

use super::command::Run;
use super::options::{Color, Messages};
use super::sessions::open_store;
use super::store_words::one;
use super::wait::Wait;
use super::words::quoted;
use super::write::new_name;
use crate::app::present::stores::{Access, Address};
use crate::app::present::{Exit, Failure};
use clap::Args;

/// Give a session of a store another name.
///
/// Forks of it keep their parent. Prints nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql rename agents.db#support-42 solved/42")]
pub(super) struct Rename {
    /// The session, such as `agents.db#support-42`.
    session: String,
    /// The new name, such as `solved/42`, or the same with its store, `agents.db#solved/42`.
    name: String,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    messages: Messages,
}

impl Run for Rename {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let (store, from) = one("rename", &self.session)?;
        let to = match Address::of(&self.name) {
            Some(address) if address.store == store => new_name(address)?,
            Some(_) => {
                return Err(
                    Failure::usage("a session stays in its store").with_help(format!(
                        "pactql import {} -o {} copies it",
                        quoted(&self.session),
                        quoted(&self.name)
                    )),
                );
            }
            None => {
                let whole = format!("{store}#{}", self.name);
                let address = Address::of(&whole).map(new_name);
                address.transpose()?;
                &self.name
            }
        };
        let store = open_store(store, Access::Write)?;
        self.wait.until_free(|| Ok(store.rename(from, to)?))?;
        Ok(Exit::Ok)
    }
}
