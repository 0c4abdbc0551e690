//! `pactql explain`: how a selector is read and run.

use super::command::{Invocation, Run, print, say};
use super::options::{EditionArgs, Limits};
use super::{operands, sessions};
use crate::app::present::stores::{Access, Address, none_of};
use crate::app::present::{Exit, Failure};
use crate::engine::{Engine, ExplainOptions};
use clap::Args;
use serde_json::json;
use std::fmt::Write as _;

/// How is a selector read, planned and run?
///
/// Prints the selector, its normalized text and fingerprint, and its plan. With a session, the
/// snapshots it names are looked up there, and --analyze runs the plan and prints counters and the
/// rows of each step, next to the estimate of the index where there is one. With a store, it says how many
/// sessions there are, and how many of them can match at all; --analyze asks those.
#[derive(Args, Debug)]
#[command(override_usage = "pactql explain [OPTIONS] [SESSION] <SELECTOR>")]
pub(super) struct Explain {
    /// A session (a file, a directory, `STORE#name`, or `-`) or a store, if any, and the selector.
    #[arg(value_name = "SESSION", required = true, num_args = 1..=2)]
    inputs: Vec<String>,
    /// Run the plan, and show what each step did.
    #[arg(long)]
    analyze: bool,
    /// Show the normalized form after each pass.
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    edition: EditionArgs,
    #[command(flatten)]
    limits: Limits,
}

impl Run for Explain {
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        let engine = self.edition.engine();
        let (session, selector) = match &self.inputs[..] {
            [selector] => {
                operands::check_selectors("explain", &self.inputs)?;
                (None, selector)
            }
            inputs => {
                let (names, selectors) = operands::split("explain", inputs, &[])?;
                (names.first(), &selectors[0])
            }
        };
        if self.analyze && session.is_none() {
            return Err(Failure::usage("`--analyze` needs a session")
                .with_help("pactql explain SESSION SELECTOR --analyze"));
        }
        let store = session.and_then(|name| Address::of(name));
        let store = store.filter(|address| address.is_several());
        let session = match session {
            Some(name) if store.is_none() => Some(sessions::open(name, &self.limits)?),
            _ => None,
        };
        let options = ExplainOptions {
            analyze: self.analyze && store.is_none(),
            verbose: self.verbose,
        };
        let explain = engine.explain(session.as_deref(), selector, options)?;
        let counts = match store {
            Some(address) => self.of_store(&engine, address, selector)?,
            None => Vec::new(),
        };
        if with.is_json() {
            let mut json = explain.to_json();
            for (name, count) in counts {
                json["store"][name] = json!(count);
            }
            return print(&format!("{json}\n"));
        }
        let mut text = explain.to_string();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        for (name, count) in counts {
            let _ = writeln!(text, "{name:<12} {count}");
        }
        print(&text)
    }
}

impl Explain {
    /// How many sessions of a store there are, how many can match, and what they answer.
    fn of_store(
        &self,
        engine: &Engine,
        address: Address<'_>,
        selector: &str,
    ) -> Result<Vec<(&'static str, usize)>, Failure> {
        let prepared = engine.prepare(selector)?;
        let store = sessions::open_store(address.store, Access::Read)?;
        let asked = store.select_prepared(&prepared).sessions(address.glob());
        let mut answers = asked.answers()?;
        let all = answers.sessions()?;
        if all == 0 {
            say(&format!("note: {}\n", none_of(address)));
        }
        let mut counts = vec![("sessions", all), ("candidates", answers.candidates())];
        if self.analyze {
            let found = answers.try_fold((0, 0), |(sessions, rows), found| {
                let count = found?.answer.count();
                Ok::<_, Failure>((sessions + 1, rows + count))
            })?;
            counts.extend([("matched", found.0), ("rows", found.1)]);
        }
        Ok(counts)
    }
}
