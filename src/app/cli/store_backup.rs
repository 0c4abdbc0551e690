//! `pactql backup`: a copy of a store.

use super::command::Run;
use super::options::{Color, Messages};
use super::sessions::open_store;
use super::store_words::whole;
use crate::app::present::stores::{Access, path};
use crate::app::present::{Exit, Failure};
use clap::Args;
use std::path::Path;

/// Copy a store to a new SQLite file, as it is at one moment, while others write.
///
/// A file that exists is never replaced. Prints nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql backup agents.db -o backup.db
  pactql backup postgres://localhost/agents -o backup.db")]
pub(super) struct Backup {
    /// The store, such as `agents.db`.
    store: String,
    /// The file to write, such as `backup.db`; a name that ends in `.db` is read as a store, any other as `sqlite:FILE`.
    #[arg(short, long, value_name = "FILE", required = true)]
    output: String,
    #[command(flatten)]
    messages: Messages,
}

impl Run for Backup {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let store = whole("backup", &self.store)?;
        let Some(file) = path(&self.output) else {
            return Err(Failure::usage("a backup is a file").with_help("-o backup.db"));
        };
        if Path::new(file).exists() {
            return Err(Failure::usage(format!("the output {file} exists"))
                .with_help("a backup replaces nothing: choose another name"));
        }
        open_store(store, Access::Read)?.backup(file)?;
        Ok(Exit::Ok)
    }
}
