//! `pactql blame`: the history of one node.

use super::command::Run;
use super::options::{Color, Paint, TextOrJson, Tint};
use super::output;
use super::sessions::SessionArgs;
use crate::history::{Blame as Life, BlameKind, blame};
use crate::present::{Exit, Failure};
use clap::Args;
use std::fmt::Write as _;

/// Show in which cycles a node was added, changed and removed.
///
/// Prints one event a line, oldest first: the headers and fields that changed and, if they are
/// short, their values before and after. The working state comes last.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql blame session.jsonl cb:u1
  pactql blame session.jsonl sys:banner --format json")]
pub(super) struct Blame {
    #[command(flatten)]
    session: SessionArgs,
    /// The id of the node.
    #[arg(allow_hyphen_values = true)]
    id: String,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextOrJson,
}

impl Run for Blame {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let session = self.session.open()?;
        let life = blame(&session.moment(), &self.id).ok_or_else(|| {
            let id = output::printable(&self.id);
            Failure::value(format!("no snapshot has a node with the id `{id}`"))
                .with_help("`pactql select SESSION \"@* *\" --format ids` lists all ids")
        })?;
        output::print_as(self.format.is_json(), &life, || {
            text(&life, color.for_results())
        })
    }
}

/// One line for each event, with the values that changed below it.
fn text(life: &Life, paint: Paint) -> String {
    let mut out = String::new();
    let widths = life.events.iter().map(|event| event.snapshot.len());
    let width = widths.max().unwrap_or(0);
    for event in &life.events {
        let place = paint.tint(Tint::Place, &format!("{:width$}", event.snapshot));
        let _ = write!(out, "{place}  ");
        match &event.kind {
            BlameKind::Appeared { parent } => {
                let mut words = "appeared".to_owned();
                if let Some(parent) = parent {
                    let _ = write!(words, " under {}", output::printable(parent));
                }
                let _ = writeln!(out, "{}", paint.tint(Tint::Added, &words));
            }
            BlameKind::Went => {
                let _ = writeln!(out, "{}", paint.tint(Tint::Removed, "went"));
            }
            BlameKind::Changed { fields, delta } => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|field| output::printable(field))
                    .collect();
                let words = format!("changed {}", fields.join(", "));
                let _ = writeln!(out, "{}", paint.tint(Tint::Changed, &words));
                output::values(delta, &mut out);
            }
        }
    }
    out
}
