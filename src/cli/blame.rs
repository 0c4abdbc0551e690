//! `pactql blame`: what happened to a node, and when.

use super::options::{Color, Limits, Paint, TextOrJson, Tint};
use super::{output, sessions};
use crate::history::{Blame as Life, What, blame};
use crate::present::{Exit, Failure};
use clap::Args;
use std::fmt::Write as _;
use std::io::Write as _;

/// Tell in which cycles a node appeared, changed and went.
///
/// One event a line, oldest first, with the headers and fields that changed and, where they are
/// short, their values before and after. The working state comes last.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql blame session.jsonl cb:u1
  pactql blame session.jsonl sys:banner --format json")]
pub(super) struct Blame {
    /// The session: a file, a directory, or `-`.
    session: String,
    /// The id of the node.
    #[arg(allow_hyphen_values = true)]
    id: String,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextOrJson,
    #[command(flatten)]
    limits: Limits,
}

impl Blame {
    /// Whether errors are asked for as JSON.
    pub(super) fn json_errors(&self) -> bool {
        self.format == TextOrJson::Json
    }

    /// Runs the command.
    pub(super) fn run(self, color: Color) -> Result<Exit, Failure> {
        let session = sessions::open(&self.session, &self.limits)?;
        let life = blame(&session.moment(), &self.id).ok_or_else(|| {
            let id = output::clean(&self.id, usize::MAX);
            Failure::value(format!("no snapshot has a node with the id `{id}`"))
                .with_help("`pactql select SESSION \"@* *\" --format ids` lists all ids")
        })?;
        let text = if self.format.is_json() {
            output::json_line(&life)?
        } else {
            text(&life, color.for_results())
        };
        std::io::stdout().lock().write_all(text.as_bytes())?;
        Ok(Exit::Ok)
    }
}

/// The events in words, one a line, values below.
fn text(life: &Life, paint: Paint) -> String {
    let mut out = String::new();
    let widths = life.events.iter().map(|event| event.snapshot.len());
    let width = widths.max().unwrap_or(0);
    for event in &life.events {
        let place = paint.tint(Tint::Place, &format!("{:width$}", event.snapshot));
        let _ = write!(out, "{place}  ");
        match &event.what {
            What::Appeared { parent } => {
                let mut words = "appeared".to_owned();
                if let Some(parent) = parent {
                    let _ = write!(words, " under {}", output::clean(parent, usize::MAX));
                }
                let _ = writeln!(out, "{}", paint.tint(Tint::Added, &words));
            }
            What::Went => {
                let _ = writeln!(out, "{}", paint.tint(Tint::Removed, "went"));
            }
            What::Changed { fields, delta } => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|field| output::clean(field, usize::MAX))
                    .collect();
                let words = format!("changed {}", fields.join(", "));
                let _ = writeln!(out, "{}", paint.tint(Tint::Changed, &words));
                output::values(delta, &mut out);
            }
        }
    }
    out
}
