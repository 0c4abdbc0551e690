//! `pactql migrate`: the layout of this version for an older store.

use super::command::{Run, print};
use super::options::{Color, Messages};
use super::sessions::explain_missing_store;
use super::store_words::whole;
use crate::app::present::{Exit, Failure};
use crate::store::Store;
use clap::Args;

/// Bring a store of an older version to the layout of this one.
///
/// One transaction: the store is as before if it fails. Back it up first. Prints both layouts.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql backup agents.db -o backup.db && pactql migrate agents.db")]
pub(super) struct Migrate {
    /// The store, such as `agents.db`.
    store: String,
    #[command(flatten)]
    messages: Messages,
}

impl Run for Migrate {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let store = whole("migrate", &self.store)?;
        explain_missing_store(store)?;
        let (before, after) = Store::builder().must_exist().migrate(store)?;
        print(&if before == after {
            format!("the store has layout {after} already\n")
        } else {
            format!("the store had layout {before} and has layout {after}\n")
        })
    }
}
