//! Opening sessions, and finding the snapshot that is meant.

use super::exit::{Exit, Failure};
use super::input;
use super::options::Limits;
use crate::diag::{Code, Diagnostic, Error};
use crate::index::Snapshot;
use crate::interop::{ImportOptions, import};
use crate::ir::Address;
use crate::time::{At, Session, Unresolved};
use crate::tree::source::{read_source, read_stream};
use crate::tree::{Document, SourceError};
use indicatif::ProgressBar;
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Files larger than this are read under a spinner.
const LARGE: u64 = 16 << 20;

/// Opens a session: a file, a directory, or standard input for `-`.
///
/// # Errors
/// A missing, unreadable or invalid input.
pub(super) fn open(name: &str, limits: &Limits) -> Result<Session, Failure> {
    let path = input::name(name);
    if name == input::STDIN {
        return build(
            read_stream(std::io::stdin().lock(), &path, limits.source()),
            path,
        );
    }
    let metadata = path.metadata();
    let spinner = ProgressBar::new_spinner().with_message(format!("reading {name}"));
    if metadata
        .as_ref()
        .is_ok_and(|metadata| metadata.len() > LARGE)
    {
        spinner.enable_steady_tick(Duration::from_millis(100));
    }
    let session = build(read_source(Path::new(name), limits.source()), path);
    spinner.finish_and_clear();
    session.map_err(|failure| match (&failure, metadata) {
        (Failure::Input(..), Ok(metadata)) if metadata.is_dir() => {
            failure.with_help("a directory is one session; several are given as files")
        }
        (Failure::Input(..), Ok(metadata)) if metadata.len() < LARGE && is_log(name, limits) => {
            failure.with_help(format!(
                "this is a chat log; `pactql import {name} -o session.jsonl` makes a session of it"
            ))
        }
        _ => failure,
    })
}

fn build(documents: Result<Vec<Document>, SourceError>, path: PathBuf) -> Result<Session, Failure> {
    Session::from_documents(documents?).map_err(|error| Failure::Input(vec![(path, error)], None))
}

/// Whether a file that is no session could be imported.
fn is_log(name: &str, limits: &Limits) -> bool {
    let bytes = input::read(name, limits).unwrap_or_default();
    import(&bytes, &ImportOptions::default()).is_ok()
}

/// Opens several sessions, on several threads. The first failure in their order is told.
///
/// # Errors
/// As [`open`]; standard input named twice.
pub(super) fn open_all(names: &[String], limits: &Limits) -> Result<Vec<Session>, Failure> {
    if names.iter().filter(|name| *name == input::STDIN).count() > 1 {
        return Err(Failure::usage("standard input can be read once only"));
    }
    let bar = ProgressBar::new(names.len() as u64);
    let opened: Vec<Result<Session, Failure>> = names
        .par_iter()
        .map(|name| {
            let session = open(name, limits);
            bar.inc(1);
            session
        })
        .collect();
    bar.finish_and_clear();
    opened.into_iter().collect()
}

/// The snapshot at an address such as `@t0` or `@c12`; without one the working state, else the
/// newest.
///
/// # Errors
/// An address that is none, or that this session has no snapshot at.
pub(super) fn at(session: &Session, address: Option<&str>) -> Result<Arc<Snapshot>, Failure> {
    let history = session.history();
    let Some(text) = address else {
        return history.latest().cloned().ok_or_else(|| {
            Failure::Plain(Exit::Input, "the session has no snapshots".to_owned(), None)
        });
    };
    let address = parse_address(text).ok_or_else(|| {
        no_address(text)
            .with_help("@t0 is the newest, @t-2 two commits back, @c12 that of cycle 12")
    })?;
    history.at(address).cloned().map_err(|error| {
        let diagnostic = Diagnostic::error(Code::SnapshotNotFound, "no such snapshot");
        let diagnostic = match error {
            Unresolved::NotFound { why, which } => {
                diagnostic.at(0..text.len(), why).with_help(which)
            }
            Unresolved::NoWorkingState => {
                diagnostic.at(0..text.len(), "the session has no working state")
            }
        };
        Error::new(text, diagnostic).into()
    })
}

/// Reads an address of a snapshot, or `working`.
///
/// # Errors
/// It is neither.
pub(super) fn place(text: &str) -> Result<At, Failure> {
    if text == "working" {
        return Ok(At::Working);
    }
    let address = parse_address(text).ok_or_else(|| {
        no_address(text).with_help(
            "@t0 is the newest, @t-2 two commits back, @c12 that of cycle 12, \
             `working` the working state",
        )
    })?;
    Ok(At::Committed(address))
}

fn no_address(text: &str) -> Failure {
    Failure::value(format!("`{text}` is no address of a snapshot"))
}

/// Reads `@t0`, `@t-2`, `@c12`; the `@` may be left out.
fn parse_address(text: &str) -> Option<Address> {
    let text = text.strip_prefix('@').unwrap_or(text);
    if text == "t0" {
        return Some(Address::Back(0));
    }
    if let Some(back) = text.strip_prefix("t-") {
        let digits = !back.is_empty() && back.bytes().all(|byte| byte.is_ascii_digit());
        return digits.then(|| back.parse().ok().map(Address::Back))?;
    }
    text.strip_prefix('c')?.parse().ok().map(Address::Cycle)
}

#[cfg(test)]
mod tests {
    use super::parse_address;
    use crate::ir::Address;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("@t0", Some(Address::Back(0))),
            ("t-3", Some(Address::Back(3))),
            ("@c12", Some(Address::Cycle(12))),
            ("@t3", None),
            ("@t-+3", None),
            ("@t-", None),
            ("@c", None),
            ("", None),
            ("@*", None),
        ] {
            assert_eq!(parse_address(text), expected, "{text}");
        }
    }
}
