//! `pactql render`: a snapshot as the request that a model is sent.

use super::command::{Run, stream};
use super::options::{Color, Messages};
use super::sessions::SessionArgs;
use crate::app::present::stores::intact;
use crate::app::present::{Exit, Failure};
use crate::engine::sent;
use crate::render::{Provider, RenderError, Source, Thread, request, write_request};
use clap::{Args, ValueEnum};

/// What is the request that a model is sent? Prints a snapshot as one.
///
/// The default shape is one JSON array of {"id","role","kind","content"}: the blocks of `^sys`,
/// then of the turns, oldest first, then of `^ah`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql render session.jsonl
  pactql render session.jsonl --at @t-1
  pactql render session.jsonl --as openai > messages.json
  pactql render session.jsonl --as anthropic --request --at @c3")]
pub(super) struct Render {
    #[command(flatten)]
    session: SessionArgs,
    /// The shape of the request.
    #[arg(long = "as", value_enum, default_value_t, value_name = "SHAPE")]
    shape: Shape,
    /// What was sent in the snapshot's cycle: without the reply.
    #[arg(long)]
    request: bool,
    /// Which snapshot, such as @t0, @t-2 or @c12 [default: the working state, or else the newest].
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    at: Option<String>,
    #[command(flatten)]
    messages: Messages,
}

/// Shapes by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Shape {
    /// One object for each block.
    #[default]
    Thread,
    /// OpenAI Chat Completions: the messages, or the request if there are tools or parameters.
    Openai,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
}

impl Shape {
    /// The library's name for it.
    pub(super) fn provider(self) -> Provider {
        match self {
            Self::Thread => Provider::Thread,
            Self::Openai => Provider::OpenAi,
            Self::OpenaiResponses => Provider::OpenAiResponses,
            Self::Anthropic => Provider::Anthropic,
        }
    }
}

impl Run for Render {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let (session, snapshot) = self.session.open_at(self.at.as_deref())?;
        let thread: Thread;
        let source = if self.request {
            thread = sent(&session.history(), &snapshot);
            intact(&session)?;
            Source::from(&thread)
        } else {
            Source::from(&snapshot)
        };
        let provider = self.shape.provider();
        if provider == Provider::Thread {
            // Every tree has a thread, so it can be written while it is made.
            return stream(|out| match write_request(source, provider, out) {
                Ok(()) => Ok(()),
                Err(RenderError::Write(error)) => Err(error),
                Err(error) => Err(std::io::Error::other(error)),
            });
        }
        let text = request(source, provider).map_err(|error| {
            let help = error.help().unwrap_or_default().to_owned();
            Failure::plain(Exit::Input, error.to_string()).with_help(help)
        })?;
        stream(|out| out.write_all(text.as_bytes()))
    }
}
