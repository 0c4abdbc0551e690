//! `pactql fmt`: selectors in normalized form, and whether they are valid.

use super::command::{Invocation, Run, print, say};
use super::operands;
use super::options::EditionArgs;
use crate::app::present::{Exit, Failure};
use clap::Args;
use serde_json::json;
use std::fmt::Write as _;

/// Is a selector valid, and what is its normalized form? Prints one a line.
///
/// Normalized text is canonical: selectors known to have the same meaning get the same text, and
/// the text itself is a selector of the canonical edition. `--check` prints its fingerprint, too.
#[derive(Args, Debug)]
pub(super) struct Fmt {
    /// The selectors.
    #[arg(value_name = "SELECTOR", required = true)]
    selectors: Vec<String>,
    /// Also print the fingerprint of each.
    #[arg(long)]
    check: bool,
    /// The edition to write them in. Only the canonical one has words for every selector.
    #[arg(long, value_name = "EDITION", default_value = "canonical", value_parser = ["canonical"])]
    to: String,
    #[command(flatten)]
    edition: EditionArgs,
}

impl Run for Fmt {
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        operands::check_selectors("fmt", &self.selectors)?;
        let engine = self.edition.engine();
        let mut text = String::new();
        for selector in &self.selectors {
            let report = engine.check(selector)?;
            let (canonical, fingerprint) = (&report.canonical, &report.fingerprint);
            if with.is_json() {
                let warnings = report.warnings.iter().map(ToString::to_string);
                let json = json!({
                    "canonical": canonical,
                    "fingerprint": fingerprint,
                    "warnings": warnings.collect::<Vec<_>>(),
                });
                let _ = writeln!(text, "{json}");
                continue;
            }
            for warning in &report.warnings {
                say(&warning.to_text(selector, with.color.for_errors()));
            }
            let _ = writeln!(text, "{canonical}");
            if self.check {
                let _ = writeln!(text, "sha256 {fingerprint}");
            }
        }
        print(&text)
    }
}
