//! `pactql render`: what a model is sent.

use super::options::{Limits, Messages};
use super::sessions;
use crate::interop::{write_openai, write_thread};
use crate::present::{Exit, Failure};
use clap::{Args, ValueEnum};
use std::io::{self, Write};

/// Print a snapshot as the thread a model is sent.
///
/// The provider thread is one JSON array of {"id","role","kind","content"}, from `^sys` over the
/// turns, oldest first, to `^ah`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql render session.jsonl
  pactql render session.jsonl --at @t-1
  pactql render session.jsonl --as openai > messages.json")]
pub(super) struct Render {
    /// The session: a file, a directory, or `-`.
    session: String,
    /// The shape.
    #[arg(long = "as", value_enum, default_value_t, value_name = "SHAPE")]
    shape: Shape,
    /// Which snapshot, such as @t0, @t-2 or @c12; without it the working state, else the newest.
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    at: Option<String>,
    #[command(flatten)]
    messages: Messages,
    #[command(flatten)]
    limits: Limits,
}

/// Shapes by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// The provider thread.
    #[default]
    Thread,
    /// OpenAI chat messages.
    Openai,
    /// Anthropic messages.
    Anthropic,
}

impl Render {
    /// Whether errors are asked for as JSON.
    pub(super) fn json_errors(&self) -> bool {
        self.messages.json()
    }

    /// Runs the command.
    pub(super) fn run(self) -> Result<Exit, Failure> {
        if self.shape == Shape::Anthropic {
            return Err(Failure::usage("`--as anthropic` is not available yet")
                .with_help("`--as openai` and `--as thread` are"));
        }
        let session = sessions::open(&self.session, &self.limits)?;
        let snapshot = sessions::at(&session, self.at.as_deref())?;
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        match self.shape {
            Shape::Openai => write_openai(&snapshot, &mut out)?,
            Shape::Thread | Shape::Anthropic => write_thread(&snapshot, &mut out)?,
        }
        out.flush()?;
        Ok(Exit::Ok)
    }
}
