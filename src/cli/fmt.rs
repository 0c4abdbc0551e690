//! `pactql fmt`: the normalized text of selectors, and their translation between editions.

use super::options::{Color, EditionName, EditionWord, Messages};
use crate::present::{Exit, Failure};
use clap::Args;
use std::fmt::Write as _;
use std::io::Write as _;

/// Print selectors in their normalized form, one a line.
///
/// The normalized text is canonical: selectors that are known to mean the same have the same, and
/// it reads back in the canonical edition as itself.
///
/// With --to the selectors are written in another edition instead, where that has words for them;
/// where it has none, E_EDITION says what is in the way. Nothing is printed of another meaning.
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

impl Fmt {
    /// Whether errors are asked for as JSON.
    pub(super) fn json_errors(&self) -> bool {
        self.messages.json()
    }

    /// Runs the command.
    pub(super) fn run(self, color: Color) -> Result<Exit, Failure> {
        let engine = self.edition.engine();
        let mut text = String::new();
        for selector in &self.selectors {
            let prepared = engine.prepare(selector)?;
            for warning in prepared.warnings() {
                super::say(&warning.render(selector, color.for_errors()));
            }
            let line = match self.to {
                Some(edition) => engine.translate(selector, edition.into())?,
                None => prepared.canonical(),
            };
            let _ = writeln!(text, "{line}");
        }
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(Exit::Ok)
    }
}
