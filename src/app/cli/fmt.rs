//! `pactql fmt`: selectors in normalized form.

use super::command::{Run, print, say};
use super::operands;
use super::options::{Color, EditionName, Messages};
use crate::app::present::{Exit, Failure};
use clap::{Args, ValueEnum};
use std::fmt::Write as _;

/// Print selectors in their normalized form, one a line.
///
/// Normalized text is canonical: selectors known to have the same meaning get the same text, and
/// the text itself is a selector of the canonical edition.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql fmt \"@t0   ^ah>.mc[ offset = 0 ]\"
  pactql fmt --edition v0.1 \"@t0 .cb:summary\"
  pactql fmt --edition v0.1 --to canonical \"#cb:u1\"")]
pub(super) struct Fmt {
    /// The selectors.
    #[arg(value_name = "SELECTOR", required = true)]
    selectors: Vec<String>,
    /// The edition to write them in. Only the canonical one has words for every selector.
    #[arg(long, value_enum, value_name = "EDITION", default_value = "canonical")]
    to: Normalized,
    #[command(flatten)]
    messages: Messages,
    #[command(flatten)]
    edition: EditionName,
}

/// What `--to` takes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Normalized {
    /// The canonical edition
    Canonical,
}

impl Run for Fmt {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let engine = self.edition.engine();
        operands::check_selectors("fmt", &self.selectors)?;
        let mut text = String::new();
        for selector in &self.selectors {
            let prepared = engine.prepare(selector)?;
            for warning in prepared.warnings() {
                say(&warning.to_text(selector, color.for_errors()));
            }
            let Normalized::Canonical = self.to;
            let _ = writeln!(text, "{}", prepared.canonical());
        }
        print(&text)
    }
}
