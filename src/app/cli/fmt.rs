//! `pactql fmt`: selectors in normalized form or in another edition.

use super::command::{Run, print, say};
use super::operands;
use super::options::{Color, EditionName, EditionWord, Messages};
use crate::app::present::{Exit, Failure};
use clap::Args;
use std::fmt::Write as _;

/// Print selectors in their normalized form, one a line.
///
/// Normalized text is canonical: selectors known to have the same meaning get the same text, and
/// the text itself is a selector of the canonical edition.
///
/// With --to the selectors are translated to another edition instead. If that edition cannot say
/// the same, nothing is printed and the error E_EDITION names the obstacle.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql fmt \"@t0   ^ah>.mc[ offset = 0 ]\"
  pactql fmt --edition v0.1 \"@t0 .cb:summary\"
  pactql fmt --edition v0.1 --to canonical \"#cb:u1\"
  pactql fmt --to v0.1 \"@t0 (d1, cont, block) {role='user'}\"")]
pub(super) struct Fmt {
    /// The selectors.
    #[arg(value_name = "SELECTOR", required = true)]
    selectors: Vec<String>,
    /// The edition to write them in.
    #[arg(long, value_enum, value_name = "EDITION")]
    to: Option<EditionWord>,
    #[command(flatten)]
    messages: Messages,
    #[command(flatten)]
    edition: EditionName,
}

impl Run for Fmt {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let engine = self.edition.engine();
        operands::check_selectors("fmt", &self.selectors)?;
        let mut text = String::new();
        for selector in &self.selectors {
            let prepared = engine.prepare(selector)?;
            for warning in prepared.warnings() {
                say(&warning.render(selector, color.for_errors()));
            }
            let line = match self.to {
                Some(edition) => engine.translate(selector, edition.into())?,
                None => prepared.canonical(),
            };
            let _ = writeln!(text, "{line}");
        }
        print(&text)
    }
}
