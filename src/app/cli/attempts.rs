//! `pactql attempts`: the provider calls of a session.

use super::command::{Run, print};
use super::options::Color;
use super::render::Shape;
use super::words::quoted;
use super::write::WriteArgs;
use crate::app::present::{Exit, Failure, answer, printable};
use crate::history::{Attempt, AttemptStatus};
use crate::support::diag::{Code, Diagnostic, Error};
use clap::{Args, ValueEnum};

/// Which provider calls did a session make? Lists them, newest first; begins one, or ends it.
///
/// `begin --as PROVIDER` prints the request to send, and keeps what it had. `end` says how it went:
/// completed, or --canceled, or --error TEXT. A cycle may have several. Attempts are part of no
/// snapshot; `render --request` shows what the one of a cycle was sent.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql attempts [OPTIONS] <SESSION>
       pactql attempts [OPTIONS] <SESSION> begin --as <PROVIDER>
       pactql attempts [OPTIONS] <SESSION> end [--tokens-in <N> --tokens-out <N> | --canceled | --error <TEXT>]")]
#[command(after_help = "\
Examples:
  pactql attempts session.jsonl
  pactql attempts session.jsonl --cycle 3 --status canceled --format json
  pactql attempts session.jsonl begin --as openai > request.json
  pactql attempts session.jsonl end --tokens-in 812 --tokens-out 60")]
pub(super) struct Attempts {
    #[command(flatten)]
    write: WriteArgs,
    /// What to do; without it, the calls are listed.
    action: Option<Action>,
    /// List: only those of this cycle.
    #[arg(long, value_name = "N", conflicts_with = "action")]
    cycle: Option<i64>,
    /// List: only those that ended so.
    #[arg(long, value_enum, conflicts_with = "action")]
    status: Option<Status>,
    /// Begin: the shape of the request.
    #[arg(long = "as", value_enum, value_name = "PROVIDER")]
    shape: Option<Shape>,
    /// End: it failed, with this message.
    #[arg(long, value_name = "TEXT", conflicts_with = "canceled")]
    error: Option<String>,
    /// End: it was stopped.
    #[arg(long)]
    canceled: bool,
    /// End: the tokens sent.
    #[arg(long, value_name = "N", conflicts_with_all = ["canceled", "error"])]
    tokens_in: Option<u64>,
    /// End: the tokens received.
    #[arg(long, value_name = "N", conflicts_with_all = ["canceled", "error"])]
    tokens_out: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Print the request of the turn in progress, and note that it is sent.
    Begin,
    /// Note how the running call ended.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Status {
    /// It has not ended.
    Running,
    /// The reply came.
    Completed,
    /// It was stopped.
    Canceled,
    /// It failed.
    Error,
}

impl Status {
    fn is(self, status: AttemptStatus) -> bool {
        let own = match self {
            Self::Running => AttemptStatus::Running,
            Self::Completed => AttemptStatus::Completed,
            Self::Canceled => AttemptStatus::Canceled,
            Self::Error => AttemptStatus::Error,
        };
        own == status
    }
}

impl Run for Attempts {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let ends = self.error.is_some()
            || self.canceled
            || self.tokens_in.is_some()
            || self.tokens_out.is_some();
        let wrong = |message: &str, help: &str| Err(Failure::usage(message).with_help(help));
        match (self.action, self.shape) {
            (Some(Action::Begin), _) if ends => wrong(
                "`attempts SESSION begin` takes no result",
                "pactql attempts SESSION end --canceled",
            ),
            (Some(Action::Begin), None) => wrong(
                "`attempts SESSION begin` needs `--as`, the shape of the request",
                "pactql attempts SESSION begin --as openai",
            ),
            (Some(Action::Begin), Some(shape)) => self.begin(shape),
            (_, Some(_)) => wrong(
                "`--as` is the shape of a request that begins",
                "pactql attempts SESSION begin --as openai",
            ),
            (Some(Action::End), None) => self.end(),
            (None, None) if ends => wrong(
                "a result is noted when an attempt ends",
                "pactql attempts SESSION end --canceled",
            ),
            (None, None) => self.list(),
        }
    }
}

impl Attempts {
    fn begin(&self, shape: Shape) -> Result<Exit, Failure> {
        let mut writing = self.write.open()?;
        let request = writing.context().render(shape.provider())?;
        writing.save()?;
        print(&request.body)
    }

    fn end(&self) -> Result<Exit, Failure> {
        let mut writing = self.write.open()?;
        let context = writing.context();
        let newest = context.attempts();
        let is_running = newest.iter().next().is_some_and(|attempt| {
            attempt.cycle_id == context.cycle() && attempt.status == AttemptStatus::Running
        });
        if !is_running {
            let message = "no attempt of this cycle is running";
            let help = format!(
                "pactql attempts {} begin --as openai",
                quoted(self.write.name())
            );
            let error = Diagnostic::error(Code::Placement, message).with_help(help);
            return Err(Error::new("", error).into());
        }
        match &self.error {
            Some(error) => context.fail_attempt(error)?,
            None if self.canceled => context.cancel_attempt()?,
            None => context.complete_attempt(self.tokens_in, self.tokens_out)?,
        }
        let id = context
            .attempts()
            .iter()
            .next()
            .map(|attempt| attempt.attempt_id.clone());
        let ids: Vec<String> = id.into_iter().collect();
        writing.finish(self.write.how(), "", &ids, Exit::Ok)
    }

    fn list(&self) -> Result<Exit, Failure> {
        let context = self.write.read()?;
        let attempts = context.attempts();
        let is_wanted = |attempt: &&Attempt| {
            self.cycle.is_none_or(|cycle| attempt.cycle_id == cycle)
                && self.status.is_none_or(|status| status.is(attempt.status))
        };
        let attempts: Vec<&Attempt> = attempts.iter().filter(is_wanted).collect();
        if self.write.how().is_json() {
            return print(&(answer::json(&attempts)? + "\n"));
        }
        print(
            &attempts
                .iter()
                .map(|attempt| line(attempt))
                .collect::<String>(),
        )
    }
}

/// `a3-1  completed  openai  model-1  812 in, 60 out`.
fn line(attempt: &Attempt) -> String {
    let mut parts = vec![
        format!("{:<6}", printable(&attempt.attempt_id)),
        format!("{:<9}", attempt.status.as_str()),
        printable(&attempt.provider),
    ];
    parts.extend(attempt.model.as_deref().map(printable));
    let tokens = [(attempt.token_in, "in"), (attempt.token_out, "out")];
    let tokens = tokens
        .iter()
        .filter_map(|(count, way)| count.map(|count| format!("{count} {way}")));
    let tokens: Vec<String> = tokens.collect();
    if !tokens.is_empty() {
        parts.push(tokens.join(", "));
    }
    parts.extend(attempt.error.as_deref().map(printable));
    parts.join("  ") + "\n"
}
