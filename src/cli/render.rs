//! `pactql render`: a snapshot as the messages that a model is sent.

use super::command::{Run, stream};
use super::options::{Color, Messages};
use super::sessions::SessionArgs;
use crate::present::{Exit, Failure};
use crate::render::{Provider, RenderError, Scope, Source, render_to};
use clap::{Args, ValueEnum};

/// Print a snapshot as the messages that a model is sent.
///
/// The default shape is one JSON array of {"id","role","kind","content"}: the blocks of `^sys`,
/// then of the turns, oldest first, then of `^ah`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql render session.jsonl
  pactql render session.jsonl --at @t-1
  pactql render session.jsonl --as openai > messages.json")]
pub(super) struct Render {
    #[command(flatten)]
    session: SessionArgs,
    /// The shape of the messages.
    #[arg(long = "as", value_enum, default_value_t, value_name = "SHAPE")]
    shape: Shape,
    /// Which snapshot, such as @t0, @t-2 or @c12 [default: the working state, or else the newest].
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    at: Option<String>,
    #[command(flatten)]
    messages: Messages,
}

/// Shapes by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// One object for each block.
    #[default]
    Thread,
    /// OpenAI chat messages.
    Openai,
    /// Anthropic messages.
    Anthropic,
}

impl Run for Render {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        if self.shape == Shape::Anthropic {
            return Err(Failure::usage("`--as anthropic` is not available yet")
                .with_help("`--as openai` and `--as thread` are"));
        }
        let (_, snapshot) = self.session.open_at(self.at.as_deref())?;
        let provider = match self.shape {
            Shape::Openai => Provider::OpenAi,
            Shape::Thread | Shape::Anthropic => Provider::Thread,
        };
        let source = Source::Snapshot(&snapshot, Scope::All);
        let mut out = Vec::new();
        render_to(source, provider, &mut out).map_err(failure)?;
        stream(|to| to.write_all(&out))
    }
}

fn failure(error: RenderError) -> Failure {
    match error {
        RenderError::Write(error) => error.into(),
        error => {
            let help = error.help().unwrap_or_default().to_owned();
            Failure::plain(Exit::Input, error.to_string()).with_help(help)
        }
    }
}
