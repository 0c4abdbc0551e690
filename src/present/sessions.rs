//! Sessions by path, and snapshots by address.

use super::failure::{Exit, Failure};
use crate::diag::{Code, Diagnostic, Error};
use crate::history::{At, Session};
use crate::index::Snapshot;
use crate::interop::{ImportOptions, import};
use crate::ir::Address;
use crate::tree::source::{read_file, read_source};
use crate::tree::{Document, InputError, Limits, SourceError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files larger than this many bytes take a while to read.
pub(crate) const LARGE: u64 = 16 << 20;

/// Opens a session: a file or a directory.
///
/// # Errors
/// A missing, unreadable or invalid input; with advice if it is a chat log or a directory of
/// several sessions.
pub(crate) fn open(path: &Path, limits: Limits) -> Result<Session, Failure> {
    let session = build(read_source(path, limits), path.to_owned());
    session.map_err(|failure| match path.metadata() {
        Ok(data) if data.is_dir() => advise_on_directory(failure),
        Ok(data) => advise_on_file(failure, path, data.len(), || read_file(path, limits)),
        Err(_) => failure,
    })
}

/// Adds to an invalid directory's faults what a directory is read as.
pub(crate) fn advise_on_directory(failure: Failure) -> Failure {
    match failure {
        Failure::Input(..) => {
            failure.with_help("a directory is one session; several are given as files")
        }
        other => other,
    }
}

/// Adds to an invalid file's faults, if it is a chat log, how to make a session of it. `read`
/// returns the file's bytes.
pub(crate) fn advise_on_file(
    failure: Failure,
    path: &Path,
    bytes: u64,
    read: impl FnOnce() -> Result<Vec<u8>, SourceError>,
) -> Failure {
    let is_log = || import(&read().unwrap_or_default(), &ImportOptions::default()).is_ok();
    match failure {
        Failure::Input(..) if bytes < LARGE && is_log() => failure.with_help(format!(
            "this is a chat log; `pactql import {} -o session.jsonl` makes a session of it",
            path.display()
        )),
        other => other,
    }
}

/// Builds a session of documents that were read from `path`.
///
/// # Errors
/// They could not be read, or are not a session.
pub(crate) fn build(
    documents: Result<Vec<Document>, SourceError>,
    path: PathBuf,
) -> Result<Session, Failure> {
    Session::from_documents(documents?).map_err(|error| Failure::Input(by_file(error, &path), None))
}

/// Groups the faults of a session by file; faults without a file belong to `path`.
fn by_file(error: InputError, path: &Path) -> Vec<(PathBuf, InputError)> {
    let mut files: Vec<(PathBuf, InputError)> = Vec::new();
    for mut fault in error.faults {
        let file = fault.file.take();
        let file = file.as_deref().unwrap_or(path);
        match files.last_mut() {
            Some((last, error)) if last == file => error.faults.push(fault),
            _ => {
                let faults = vec![fault];
                files.push((file.to_owned(), InputError { faults, more: 0 }));
            }
        }
    }
    if let Some((_, last)) = files.last_mut() {
        last.more = error.more;
    }
    files
}

/// The snapshot at an address such as `@t0` or `@c12`; without one, the working state, or else the
/// newest snapshot.
///
/// # Errors
/// An invalid address, or one that the session has no snapshot at.
pub(crate) fn at(session: &Session, address: Option<&str>) -> Result<Arc<Snapshot>, Failure> {
    let history = session.history();
    let Some(text) = address else {
        return history
            .latest()
            .cloned()
            .ok_or_else(|| Failure::plain(Exit::Input, "the session has no snapshots"));
    };
    let address = parse_address(text).ok_or_else(|| {
        no_address(text)
            .with_help("@t0 is the newest, @t-2 two commits back, @c12 that of cycle 12")
    })?;
    history.at(address).cloned().map_err(|error| {
        let diagnostic = Diagnostic::error(Code::SnapshotNotFound, "no such snapshot");
        let diagnostic = diagnostic.at(0..text.len(), error.why);
        Error::new(text, diagnostic.with_help(error.which)).into()
    })
}

/// Parses the address of a snapshot, or `working`.
///
/// # Errors
/// It is neither.
pub(crate) fn place(text: &str) -> Result<At, Failure> {
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

/// Parses `@t0`, `@t-2`, `@c12`; the `@` is optional.
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
