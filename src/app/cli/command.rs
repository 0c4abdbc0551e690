//! What all commands share: how they run, how results are printed and where they go.

use super::options::{PrintAs, error_colors, is_colored, is_dumb, width};
use super::words::{asks_for_json, help_color};
use crate::app::present::stores::without_passwords;
use crate::app::present::{Exit, Result, answer};
use crate::support::cancel::check;
use crate::support::diag::{self, Warning};
use crate::support::table::{Paint, RowOrder, Tint};
use crate::support::text::{escaped, wrapped};
use crate::tree::Limits;
use clap::ColorChoice;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What every command is run with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Invocation {
    /// How the result is printed, if the command line says so.
    pub(super) format: Option<PrintAs>,
    pub(super) color: ColorChoice,
    /// The rows of tables: which, and in which order.
    pub(super) order: RowOrder,
    /// The largest input that is read.
    pub(super) limits: Limits,
    /// How long each call may take that a server answers.
    pub(super) timeout: Option<Duration>,
}

pub(super) trait RunCommand {
    fn run(&self, with: &Invocation) -> Result<Exit>;

    fn formats(&self) -> &'static [PrintAs] {
        &[PrintAs::Text, PrintAs::Json]
    }

    /// Whether `--timeout` is for each call that the command answers, not for the command.
    fn answers_calls(&self) -> bool {
        false
    }
}

impl Invocation {
    pub(super) fn is_json(&self) -> bool {
        self.format == Some(PrintAs::Json)
    }

    /// How text is printed: its colours, the width of tables, and the order of their rows.
    pub(super) fn paint(&self) -> Paint {
        let paint = Paint::new(is_colored(self.color, &io::stdout()));
        paint.columns(width()).order(self.order)
    }

    /// Prints a result as one line of JSON with `--json`, else as text, through the pager on a terminal.
    pub(super) fn print(
        &self,
        result: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<Exit> {
        if self.is_json() {
            print(&(answer::json(result)? + "\n"))
        } else {
            page(&text(), true)
        }
    }

    /// Says the warnings about a selector.
    pub(super) fn warn(&self, warnings: &[Warning], selector: &str) {
        if self.is_json() {
            let notes: Vec<Value> = warnings.iter().map(answer::warning_json).collect();
            return say(&answer::notes_json(&notes));
        }
        for warning in warnings {
            tell(&warning.to_text(selector, error_colors(self.color)), true);
        }
    }

    /// Says what a command did that has no other result: as JSON with `--json`, else nothing.
    pub(super) fn done(&self, what: &impl Serialize) -> Result<Exit> {
        self.print(what, String::new)
    }

    /// Prints a text in lines as wide as the terminal, through a pager if that is wanted; lines of JSON and Markdown as
    /// they are.
    pub(super) fn show(&self, text: &str, pager: bool) -> Result<Exit> {
        match self.format {
            Some(PrintAs::Json | PrintAs::Markdown) => print(text),
            _ => page(text, pager),
        }
    }
}

/// Prints a result on standard output, all at once; the command is done.
pub(super) fn print(text: &str) -> Result<Exit> {
    check()?;
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(Exit::Ok)
}

/// Standard output. A terminal gets nothing that would control it but colours, wherever the text is from.
pub(super) fn stdout() -> Box<dyn Write> {
    let out = io::stdout().lock();
    if out.is_terminal() {
        Box::new(io::LineWriter::with_capacity(1 << 16, TerminalOutput(out)))
    } else {
        Box::new(io::BufWriter::with_capacity(1 << 16, out))
    }
}

/// Writes a result to standard output while it is made; the command is done.
pub(super) fn stream(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<Exit> {
    let mut out = stdout();
    write(&mut out)?;
    out.flush()?;
    Ok(Exit::Ok)
}

/// Writes on standard error, without the passwords of stores; a note is dim, and JSON with `--json`. There is nowhere to
/// report a failure to do so.
pub(super) fn say(text: &str) {
    tell(text, false);
}

/// As [`say`], of a message that may have colours.
pub(super) fn tell(text: &str, colored: bool) {
    let text = without_passwords(text);
    let text = if asks_for_json() {
        answer::with_notes_as_json(&text).into()
    } else {
        text
    };
    let text = escaped(&text, colored);
    let is_note =
        text.starts_with("note: ") && error_colors(help_color()) == diag::ColorChoice::Always;
    let dim = |line: &str| Paint::new(is_note).tint(Tint::Dim, line) + "\n";
    let text: String = text.lines().map(dim).collect();
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints text, on a terminal in lines as wide as it, through the pager that `PACTQL_PAGER` or `PAGER` names, or `less`.
/// An empty name means none. A pager that cannot be started is left out.
fn page(text: &str, wanted: bool) -> Result<Exit> {
    let fitted = width().map(|width| wrapped(text, width));
    let text = fitted.as_deref().unwrap_or(text);
    // What was made under a set token may be a part.
    check()?;
    if !wanted || is_dumb() || !io::stdout().is_terminal() {
        return print(text);
    }
    let named = ["PACTQL_PAGER", "PAGER"].iter().find_map(std::env::var_os);
    let name = named.unwrap_or_else(|| "less".into());
    if name.is_empty() {
        return print(text);
    }
    let mut pager = Command::new("sh");
    pager.arg("-c").arg(name).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Ends if the text fits, passes colours, and leaves the text on the screen.
        pager.env("LESS", "FRX");
    }
    let Ok(mut child) = pager.spawn() else {
        return print(text);
    };
    // Ctrl-C is a key of the pager now, and the time of the command is over. Other signals end the program, and with
    // it what the pager reads.
    SHOWN.store(true, Ordering::SeqCst);
    if let Some(mut input) = child.stdin.take() {
        // A reader that leaves the pager early has read enough.
        let _ = input.write_all(escaped(text, true).as_bytes());
    }
    match child.wait() {
        Ok(_) => Ok(Exit::Ok),
        Err(_) => print(text),
    }
}

/// A terminal, to which whole lines are written.
struct TerminalOutput<W>(W);

impl<W: Write> Write for TerminalOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A very long line may be cut inside a character, whose rest comes with the next part.
        let bytes = match std::str::from_utf8(bytes) {
            Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
                bytes.get(..error.valid_up_to()).unwrap_or(bytes)
            }
            _ => bytes,
        };
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(escaped(&text, true).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

static SHOWN: AtomicBool = AtomicBool::new(false);

/// Whether a pager has shown the result. After that a deadline no longer makes the command fail.
pub(super) fn is_shown() -> bool {
    SHOWN.load(Ordering::SeqCst)
}
