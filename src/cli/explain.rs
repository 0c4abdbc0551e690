//! `pactql explain`: how a selector is read and run.

use super::command::{Run, print};
use super::options::{Color, EditionName, Limits, TextFirst};
use super::{operands, sessions};
use crate::engine::ExplainOptions;
use crate::present::{Exit, Failure, answer};
use clap::Args;

/// Show how a selector is read and run.
///
/// Prints the selector, its normalized text and fingerprint, and its plan. With a session, the
/// snapshots it names are looked up there, and --analyze runs the plan and prints counters and the
/// rows of each step, next to the estimate of the index where there is one.
#[derive(Args, Debug)]
#[command(override_usage = "pactql explain [OPTIONS] [SESSION] <SELECTOR>")]
#[command(after_help = "\
Examples:
  pactql explain \"@t0 ^seq > .mt:first\"
  pactql explain session.jsonl \"@t0 .cb[kind='call']\" --analyze
  pactql explain session.jsonl \"@t0 .cb[kind='call']\" --verbose --format json")]
pub(super) struct Explain {
    /// A session (a file, a directory, or `-`), if any, and the selector.
    #[arg(value_name = "SESSION", required = true, num_args = 1..=2)]
    inputs: Vec<String>,
    /// Run the plan, and show what each step did.
    #[arg(long)]
    analyze: bool,
    /// Show the normalized form after each pass.
    #[arg(long)]
    verbose: bool,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
    #[command(flatten)]
    edition: EditionName,
    #[command(flatten)]
    limits: Limits,
}

impl Run for Explain {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let engine = self.edition.engine();
        let (session, selector) = match &self.inputs[..] {
            [session, selector] => (Some(session), selector),
            [selector] => (None, selector),
            _ => return Err(Failure::usage("`explain` needs a selector")),
        };
        match session {
            Some(session) => operands::check_pair("explain", session, selector)?,
            None => operands::check_selector("explain", selector)?,
        }
        if self.analyze && session.is_none() {
            return Err(Failure::usage("`--analyze` needs a session")
                .with_help("pactql explain SESSION SELECTOR --analyze"));
        }
        let session = session
            .map(|name| sessions::open(name, &self.limits))
            .transpose()?;
        let options = ExplainOptions {
            analyze: self.analyze,
            verbose: self.verbose,
        };
        let explain = engine.explain(session.as_ref(), selector, options)?;
        let mut text = if self.format == TextFirst::Json {
            answer::explanation(&explain)
        } else {
            explain.to_string()
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        print(&text)
    }
}
