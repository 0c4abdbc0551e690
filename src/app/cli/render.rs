//! `pactql render`: a snapshot as the request that a model is sent.

use super::command::{Invocation, Run, stream};
use super::options::FormArgs;
use super::sessions;
use crate::app::present::{Exit, Failure};
use crate::engine::sent;
use crate::render::{Provider, RenderError, Source, Thread, request, write_request};
use clap::Args;

/// What is the request that a model is sent? Prints a snapshot as one.
///
/// The default shape is one JSON array of {"id","role","kind","content"}: the blocks of `^sys`,
/// then of the turns, oldest first, then of `^ah`.
#[derive(Args, Debug)]
pub(super) struct Render {
    /// The session: a file, a directory, `STORE#name`, or `-` for standard input.
    session: String,
    #[command(flatten)]
    form: FormArgs,
    /// What was sent in the snapshot's cycle: without the reply.
    #[arg(long)]
    request: bool,
    /// Which snapshot, such as @t0, @t-2 or @c12 [default: the working state, or else the newest].
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    at: Option<String>,
}

impl Run for Render {
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        let (session, snapshot) =
            sessions::open_at(&self.session, self.at.as_deref(), with.limits)?;
        let thread: Thread;
        let source = if self.request {
            session.history().fetch_attempts()?;
            thread = sent(&session.history(), &snapshot);
            Source::from(&thread)
        } else {
            Source::from(&snapshot)
        };
        let provider = self.form.provider.unwrap_or_default();
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
