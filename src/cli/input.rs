//! Inputs and output files.

use super::options::Limits;
use crate::diag::{Code, Diagnostic, Error};
use crate::present::Failure;
use crate::tree::source::{read_all, read_file};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The argument that means standard input.
pub(super) const STDIN: &str = "-";

/// What standard input is called in messages.
pub(super) const STDIN_NAME: &str = "standard input";

/// What an input is called in messages.
pub(super) fn name(input: &str) -> PathBuf {
    PathBuf::from(if input == STDIN { STDIN_NAME } else { input })
}

/// Reads a whole file or, for `-`, standard input; gzip is unpacked.
///
/// # Errors
/// A missing or unreadable file; an input larger than the limit.
pub(super) fn read(name: &str, limits: &Limits) -> Result<Vec<u8>, Failure> {
    let limits = limits.source();
    let bytes = if name == STDIN {
        read_all(io::stdin().lock(), Path::new(STDIN_NAME), limits)
    } else {
        read_file(Path::new(name), limits)
    };
    Ok(bytes?)
}

/// Writes a file through a temporary one next to it, so that a failure leaves no partial file.
///
/// # Errors
/// Those of the writer and of the file system.
pub(super) fn write(
    name: &str,
    produce: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::output(name, error);
    let path = Path::new(name);
    // A device or a pipe is written in place: a rename would replace it by a file.
    if path.metadata().is_ok_and(|data| !data.is_file()) {
        let mut file = io::BufWriter::new(File::create(path).map_err(failed)?);
        return produce(&mut file)
            .and_then(|()| file.flush())
            .map_err(failed);
    }
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let outcome = File::create(&part).and_then(|file| {
        let mut file = io::BufWriter::new(file);
        produce(&mut file)?;
        file.flush()?;
        std::fs::rename(&part, path)
    });
    outcome.map_err(|error| {
        // The first failure is the one to report.
        let _ = std::fs::remove_file(&part);
        failed(error)
    })
}

/// The lines of a file of selectors, without line endings (LF or CRLF) and a leading byte order
/// mark. The error of a line that is not UTF-8 is its readable part.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Result<&str, String>> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    bytes.split_inclusive(|byte| *byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        std::str::from_utf8(line).map_err(|_| String::from_utf8_lossy(line).into_owned())
    })
}

/// The error of a selector that is not UTF-8.
pub(super) fn not_utf8(line: &str) -> Error {
    let at = line.find('\u{fffd}').unwrap_or(0);
    let mistake = Diagnostic::error(Code::SelectorInvalid, "the selector is not UTF-8");
    Error::new(line, mistake.at(at..at, "here"))
}
