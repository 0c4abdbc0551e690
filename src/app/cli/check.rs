//! `pactql check`: whether a selector is valid.

use super::command::{Run, print, say};
use super::operands;
use super::options::{Color, EditionName, TextFirst};
use crate::app::present::{Exit, Failure};
use clap::Args;
use serde_json::json;

/// Is a selector valid? Prints its normalized text and fingerprint.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql check \"@t0 ^ah > .mc[offset=0] > .cb\"
  pactql check \"@t0 .cb:frist\" --format json
  pactql check --edition v0.1 \"@t0 #cb:u1\"")]
pub(super) struct Check {
    /// The selector.
    #[arg(value_name = "SELECTOR", allow_hyphen_values = true)]
    selector: String,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
    #[command(flatten)]
    edition: EditionName,
}

impl Run for Check {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        operands::check_selector("check", &self.selector)?;
        let report = self.edition.engine().check(&self.selector)?;
        let text = if self.format == TextFirst::Json {
            let warnings: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
            let report = json!({
                "canonical": report.canonical,
                "fingerprint": report.fingerprint,
                "warnings": warnings,
            });
            format!("{report}\n")
        } else {
            for warning in &report.warnings {
                say(&warning.to_text(&self.selector, color.for_errors()));
            }
            format!("{}\nsha256 {}\n", report.canonical, report.fingerprint)
        };
        print(&text)
    }
}
