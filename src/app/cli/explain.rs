//! `pactql explain`: how a selector is read and run.

use super::command::{Invocation, Run, print, say};
use super::options::{EditionArgs, Limits};
use super::{operands, sessions};
use crate::app::present::stores::{Access, Address, intact, none_of};
use crate::app::present::{Exit, Failure, answer};
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
#[command(after_help = "\
Examples:
  pactql explain session.jsonl \"@t0 .cb[kind='call']\" --analyze
  pactql explain agents.db \"@t0 #summary\" --analyze")]
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
            [session, selector] => (Some(session), selector),
            [selector] => (None, selector),
            _ => return Err(Failure::usage("`explain` needs a selector")),
        };
        match session {
            Some(_) => {
                operands::split("explain", &self.inputs, &[])?;
            }
            None => operands::check_selectors("explain", &self.inputs)?,
        }
        if self.analyze && session.is_none() {
            return Err(Failure::usage("`--analyze` needs a session")
                .with_help("pactql explain SESSION SELECTOR --analyze"));
        }
        let whole = session.and_then(|name| Address::of(name));
        if let Some(address) = whole.filter(|address| address.is_several()) {
            return self.of_store(&engine, address, selector, with);
        }
        let session = session
            .map(|name| sessions::open(name, &self.limits))
            .transpose()?;
        let options = ExplainOptions {
            analyze: self.analyze,
            verbose: self.verbose,
        };
        let explain = engine.explain(session.as_deref(), selector, options)?;
        if let Some(session) = &session {
            intact(session)?;
        }
        let mut text = if with.is_json() {
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

impl Explain {
    /// Explains a selector over the sessions of a store.
    fn of_store(
        &self,
        engine: &Engine,
        address: Address<'_>,
        selector: &str,
        with: &Invocation,
    ) -> Result<Exit, Failure> {
        let prepared = engine.prepare(selector)?;
        let store = sessions::open_store(address.store, Access::Read)?;
        let asked = store.select_prepared(&prepared).sessions(address.glob());
        let mut answers = asked.answers()?;
        let (all, candidates) = (answers.sessions()?, answers.candidates());
        if all == 0 {
            say(&format!("note: {}\n", none_of(address)));
        }
        let options = ExplainOptions {
            analyze: false,
            verbose: self.verbose,
        };
        let explain = self.edition.engine().explain(None, selector, options)?;
        let found = if self.analyze {
            Some(answers.try_fold((0, 0), |(sessions, rows), found| {
                let count = found?.answer.count();
                Ok::<_, Failure>((sessions + 1, rows + count))
            })?)
        } else {
            None
        };
        if with.is_json() {
            let mut json = explain.to_json();
            json["store"] = json!({"sessions": all, "candidates": candidates});
            if let Some((sessions, rows)) = found {
                json["store"]["matched"] = json!(sessions);
                json["store"]["rows"] = json!(rows);
            }
            return print(&format!("{json}\n"));
        }
        let mut text = explain.to_string();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let _ = writeln!(text, "sessions     {all}\ncandidates   {candidates}");
        if let Some((sessions, rows)) = found {
            let _ = writeln!(text, "matched      {sessions}\nrows         {rows}");
        }
        print(&text)
    }
}
