//! Long text on a terminal goes through a pager.

use super::command::print;
use super::interrupt::show;
use super::options::is_dumb;
use crate::app::present::{Exit, Failure};
use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

/// Prints text, on a terminal through the pager that `PACTQL_PAGER` or `PAGER` names, or `less`. An
/// empty name means none. A pager that cannot be started is left out.
///
/// # Errors
/// Failures of standard output.
pub(super) fn page(text: &str, wanted: bool) -> Result<Exit, Failure> {
    // What was made under a set token may be a part.
    crate::support::cancel::check()?;
    if !wanted || is_dumb() || !std::io::stdout().is_terminal() {
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
    show();
    if let Some(mut input) = child.stdin.take() {
        // A reader that leaves the pager early has read enough.
        let _ = input.write_all(text.as_bytes());
    }
    match child.wait() {
        Ok(_) => Ok(Exit::Ok),
        Err(_) => print(text),
    }
}
