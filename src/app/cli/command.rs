//! What all commands share: how they run and where they write.

use super::options::Color;
use crate::app::present::stores::without_passwords;
use crate::app::present::{Exit, Failure};
use crate::support::cancel::check;
use std::io::{self, Write};
use std::time::Duration;

/// A command with its arguments.
pub(super) trait Run {
    /// Runs the command.
    ///
    /// # Errors
    /// The failure to report.
    fn run(&self, color: Color) -> Result<Exit, Failure>;

    /// Whether `--timeout` is for each call that the command answers, not for the command.
    fn answers_calls(&self) -> bool {
        false
    }

    /// As [`Run::run`]; each call that the command answers may take this long.
    ///
    /// # Errors
    /// As [`Run::run`].
    fn run_within(&self, color: Color, _: Option<Duration>) -> Result<Exit, Failure> {
        self.run(color)
    }
}

/// Prints a result on standard output, all at once; the command is done.
///
/// # Errors
/// Failures of standard output.
pub(super) fn print(text: &str) -> Result<Exit, Failure> {
    check()?;
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Ok)
}

/// Writes a result to standard output while it is made; the command is done.
///
/// # Errors
/// Failures of `write` and of standard output.
pub(super) fn stream(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Exit, Failure> {
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    write(&mut out)?;
    out.flush()?;
    Ok(Exit::Ok)
}

/// Writes on standard error, without the passwords of stores. There is nowhere to report a failure to do so.
pub(super) fn say(text: &str) {
    let text = without_passwords(text);
    let _ = io::stderr().write_all(text.as_bytes());
}
