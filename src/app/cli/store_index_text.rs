//! `pactql index-text`: the text index of a store.

use super::command::{Run, print};
use super::options::{Color, TextFirst};
use super::output::counted;
use super::progress::Progress;
use super::sessions::open_store;
use super::store_words::whole;
use crate::app::present::stores::Access;
use crate::app::present::{Exit, Failure};
use clap::Args;
use serde_json::json;

/// Make a text index of a store, or bring it up to date.
///
/// With it, `pactql grep` of the store opens only the sessions that may have a match, and answers the same.
/// Commits do not write it: what was written later is searched without it, until this command is run again.
/// What is deleted, pruned or erased goes from the index, too. Others can write meanwhile.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql index-text agents.db
  pactql index-text agents.db --drop")]
pub(super) struct IndexText {
    /// The store, such as `agents.db`.
    store: String,
    /// Remove the index.
    #[arg(long)]
    drop: bool,
    /// How the numbers are printed.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
}

impl Run for IndexText {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let store = open_store(whole("index-text", &self.store)?, Access::Write)?;
        let is_json = self.format == TextFirst::Json;
        if self.drop {
            let dropped = store.drop_text_index()?;
            return print(&match (is_json, dropped) {
                (true, _) => format!("{}\n", json!({"dropped": dropped})),
                (false, true) => "the text index was removed\n".to_owned(),
                (false, false) => "there is no text index\n".to_owned(),
            });
        }
        let progress = Progress::spinner(format!("indexing {}", self.store));
        let added = store.index_text()?;
        let index = store.text_index()?;
        drop(progress);
        let texts = index.map_or(0, |index| index.texts);
        print(&if is_json {
            format!("{}\n", json!({"units": added, "texts": texts}))
        } else {
            format!(
                "the text index has {}; {} came in\n",
                counted(texts, "text"),
                counted(added, "unit"),
            )
        })
    }
}
