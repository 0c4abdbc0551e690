//! `pactql refs`: references, which keep nodes.

use super::command::{Run, print};
use super::options::Color;
use super::write::WriteArgs;
use crate::app::present::{Exit, Failure, answer, printable};
use clap::{Args, ValueEnum};
use serde_json::json;

/// Which nodes are kept by a reference? Lists, adds or drops references.
///
/// A reference has a name, and pins one node: it does not expire, is not pruned, and cannot be removed,
/// nor can a node above it. `add` replaces a reference of the same name, and prints
/// the id of the node; `drop` prints the id of the node that is free again.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql refs [OPTIONS] <SESSION>
       pactql refs [OPTIONS] <SESSION> add <NAME> <SELECTOR>
       pactql refs [OPTIONS] <SESSION> drop <NAME>")]
#[command(after_help = "\
Examples:
  pactql refs session.jsonl
  pactql refs session.jsonl add policy \"^sys #policy\"
  pactql refs session.jsonl drop policy")]
pub(super) struct Refs {
    #[command(flatten)]
    write: WriteArgs,
    /// What to do; without it, the references are listed.
    action: Option<Action>,
    /// The name of the reference.
    #[arg(requires = "action")]
    name: Option<String>,
    /// A selector of the one node to pin.
    #[arg(requires = "name", allow_hyphen_values = true)]
    selector: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Pin a node under a name.
    Add,
    /// Drop a reference.
    Drop,
}

impl Run for Refs {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let how = self.write.how();
        match (self.action, &self.name, &self.selector) {
            (None, ..) => self.list(),
            (Some(Action::Add), Some(name), Some(selector)) => {
                let mut writing = self.write.open()?;
                let id = writing.context().pin_as(name, selector)?;
                writing.finish(how, selector, &[id], Exit::Ok)
            }
            (Some(Action::Drop), Some(name), None) => {
                let mut writing = self.write.open()?;
                let Some(id) = writing.context().unpin(name) else {
                    let mut known = writing.context().references().map(|(name, _)| name);
                    let near = crate::support::diag::nearest(name, known.by_ref());
                    let failure = Failure::value(format!("no reference has the name `{name}`"));
                    return Err(match near {
                        Some(near) => failure.with_help(format!("did you mean `{near}`?")),
                        None => failure,
                    });
                };
                writing.finish(how, "", &[id], Exit::Ok)
            }
            (Some(Action::Add), ..) => Err(Failure::usage(
                "`refs SESSION add` takes a name and a selector",
            )
            .with_help("pactql refs SESSION add policy \"#policy\"")),
            (Some(Action::Drop), ..) => Err(Failure::usage("`refs SESSION drop` takes one name")
                .with_help("pactql refs SESSION drop policy")),
        }
    }
}

impl Refs {
    fn list(&self) -> Result<Exit, Failure> {
        let context = self.write.read()?;
        let pins: Vec<(&str, &str)> = context.references().collect();
        if self.write.how().is_json() {
            let pins = pins
                .iter()
                .map(|(name, id)| json!({"name": name, "id": id}));
            return print(&(answer::json(&pins.collect::<Vec<_>>())? + "\n"));
        }
        let width = pins.iter().map(|(name, _)| name.chars().count()).max();
        let width = width.unwrap_or(0);
        let line =
            |(name, id): &(&str, &str)| format!("{:<width$}  {}\n", printable(name), printable(id));
        print(&pins.iter().map(line).collect::<String>())
    }
}
