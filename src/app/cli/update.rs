//! `pactql update`: other members for nodes.

use super::command::Run;
use super::options::Color;
use super::write::{WriteArgs, fields};
use crate::app::present::{Exit, Failure};
use clap::Args;

/// Give nodes other members.
///
/// FIELDS is one JSON object, or `name=value` words: a value that is JSON is that, another one is a text.
/// `null` takes a member away. Nodes of the turn in progress may get nearly everything; committed ones
/// outside sealed cores another ttl, which counts from this cycle, or priority. Prints the ids.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql update session.jsonl \"^ah .cb:last\" content=\"Where is my money?\"
  pactql update session.jsonl \".cb[kind='doc']\" ttl=1 priority=5
  pactql update session.jsonl \"#banner\" '{\"ttl\":null,\"data_seen\":true}'")]
pub(super) struct Update {
    #[command(flatten)]
    write: WriteArgs,
    /// A selector of the nodes.
    #[arg(allow_hyphen_values = true)]
    selector: String,
    /// The members: a JSON object, `name=value` words, `@FILE`, or `-` for standard input.
    #[arg(required = true)]
    fields: Vec<String>,
    /// Exit with code 8 if nothing is found.
    #[arg(long)]
    fail_if_empty: bool,
}

impl Run for Update {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let fields = fields(&self.fields, &self.write)?;
        let mut writing = self.write.open()?;
        let ids = writing.context().update(&self.selector, fields)?;
        let empty = Exit::of_empty(self.fail_if_empty);
        writing.finish(self.write.how(), &self.selector, &ids, empty)
    }
}
