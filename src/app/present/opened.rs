//! All sessions of a path, each with its name: what the Python package opens, as the command line reads and names them.

use super::failure::{Failure, Result};
use super::folders::{LogSource, files_of, newest_logs, said_of_left_out};
use super::followed::begins_as_session;
use super::sessions::{self, FileContents};
use super::stores::{self, Access, StoreAddress};
use crate::history::{History, Session};
use crate::logs::{KnownNames, is_opencode, names, unique};
use crate::support::diag::{Code, Error};
use crate::tree::source::read_all;
use crate::tree::{InputError, Limits, SourceError};
use rayon::prelude::*;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A session of a path.
#[derive(Debug)]
pub struct OpenedSession {
    /// Its name: after its file, and after others of its log. A file of snapshots that is opened itself gives none.
    /// All of a folder differ.
    pub name: Option<String>,
    /// The session, or why it cannot be read: its store is damaged there.
    pub session: Result<Arc<Session>, NotOpened>,
    /// Whether it is a branch or a subagent of another one of its log.
    pub belongs: bool,
}

/// Why a path was not opened.
#[derive(Debug)]
pub struct NotOpened {
    /// The code, `E_…`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Advice.
    pub help: Option<String>,
    /// What is wrong with each file.
    pub files: Vec<(PathBuf, InputError)>,
}

impl From<Failure> for NotOpened {
    fn from(failure: Failure) -> Self {
        let (code, help, files) = match failure {
            Failure::Input(files, help) => {
                let message = SourceError::Invalid(files.clone()).to_string();
                return Self {
                    code: InputError::CODE,
                    message,
                    help,
                    files,
                };
            }
            Failure::Plain { code, ref help, .. } => (code, help.clone(), Vec::new()),
            Failure::Selector(ref error, _) => (error.code().as_str(), None, Vec::new()),
            Failure::ClosedPipe => ("E_IO", None, Vec::new()),
        };
        Self {
            code,
            message: failure.message(),
            help,
            files,
        }
    }
}

/// The sessions of a file or a folder, stores aside, and notes on what was left out.
///
/// # Errors
/// Nothing is there, or nothing that is read.
pub fn open_path(path: &Path) -> Result<(Vec<OpenedSession>, Vec<String>), NotOpened> {
    Ok(open(path)?)
}

fn open(path: &Path) -> Result<(Vec<OpenedSession>, Vec<String>)> {
    let limits = Limits::default();
    let word = path.to_string_lossy();
    let listed = path.exists().then(|| files_of(&word, limits));
    let listed = listed.transpose()?.flatten();
    let is_folder = listed.is_some() && path.is_dir();
    // The path itself, as a word is only like a name that is not UTF-8.
    let only = listed.is_none().then_some(path);
    let files = listed.unwrap_or_else(|| vec![LogSource::new(&word)]);
    let read: Vec<Result<Read>> = files
        .par_iter()
        .map(|file| read(file, only, limits))
        .collect();
    let (mut opened, mut notes) = (Vec::new(), Vec::new());
    let (mut taken, mut left_out, mut damaged) = (HashSet::new(), Vec::new(), Vec::new());
    for (file, read) in files.iter().zip(read) {
        match read? {
            Read::Store(found) => {
                for (name, session) in found {
                    let name = unique(&format!("{}.db#{name}", file.stem), &mut taken);
                    match session {
                        Ok(session) => opened.push(OpenedSession {
                            name: Some(name),
                            session: Ok(session),
                            belongs: false,
                        }),
                        Err(failure) => damaged.push((name, failure)),
                    }
                }
            }
            Read::Contents(FileContents::Session(session)) => opened.push(OpenedSession {
                name: names(&file.stem, &[KnownNames::default()], &mut taken)
                    .pop()
                    .filter(|_| is_folder),
                session: Ok(Arc::new(session)),
                belongs: false,
            }),
            Read::Contents(FileContents::Log(logs, note)) => {
                let known: Vec<_> = logs.iter().map(KnownNames::from_session).collect();
                for (name, log) in names(&file.stem, &known, &mut taken).into_iter().zip(&logs) {
                    opened.push(OpenedSession {
                        name: Some(name),
                        session: Ok(sessions::session_of(log)?),
                        belongs: sessions::belongs(log),
                    });
                }
                let note = note.line_with_import();
                let note = note.trim_start_matches("note: ").trim_end();
                notes.extend((!note.is_empty()).then(|| note.to_owned()));
            }
            Read::Contents(FileContents::Neither(failure)) => left_out.push((file, failure)),
        }
    }
    if opened.is_empty() && !damaged.is_empty() {
        return Err(damaged.swap_remove(0).1);
    }
    for (name, failure) in damaged {
        notes.push(format!("left out {name}: {}", failure.message()));
        opened.push(OpenedSession {
            name: Some(name),
            session: Err(failure.into()),
            belongs: false,
        });
    }
    if !left_out.is_empty() {
        let count = left_out.len();
        if opened.is_empty() {
            let (_, failure) = left_out.swap_remove(0);
            return Err(match count {
                1 => failure,
                _ => failure.with_help(format!("none of {count} files can be read")),
            });
        }
        let files: Vec<&LogSource> = left_out.iter().map(|(file, _)| *file).collect();
        notes.extend(said_of_left_out(&files));
    }
    Ok((opened, notes))
}

/// What a file has.
enum Read {
    Contents(FileContents),
    /// The sessions of a store in a folder, with their names. One that is damaged stops no other.
    Store(Vec<(String, Result<Arc<Session>>)>),
}

/// The file is at `path`, or where it says.
fn read(file: &LogSource, path: Option<&Path>, limits: Limits) -> Result<Read> {
    let path = path.unwrap_or(Path::new(&file.path));
    if file.is_listed
        && StoreAddress::parse(&file.path).is_some()
        && let Ok(store) = stores::open(&file.path, Access::Read)
    {
        let found = match store.names("") {
            Ok(found) => found.into_iter(),
            Err(error) => return Ok(Read::Contents(FileContents::Neither(error.into()))),
        };
        let sessions = found.map(|name| {
            let session = store.session(&name).map_err(Failure::from);
            (name, session)
        });
        return Ok(Read::Store(sessions.collect()));
    }
    if let Err(failure) = file.check() {
        return Ok(Read::Contents(FileContents::Neither(failure)));
    }
    let is_one = !file.is_listed && !is_opencode(path);
    let contents = if is_one && !path.is_file() {
        sessions::open_or_logs(path, limits, None)?
    } else {
        sessions::in_folder(path, limits, None)?
    };
    Ok(Read::Contents(match contents {
        // Says more about what is wrong with the one file.
        FileContents::Neither(_) if is_one => sessions::open_or_logs(path, limits, None)?,
        contents => contents,
    }))
}

/// The logs that agents keep on this machine, the one written last first.
///
/// # Errors
/// There are none.
pub fn logs_by_time() -> Result<Vec<String>, NotOpened> {
    Ok(newest_logs()?.into_iter().map(|file| file.path).collect())
}

/// Whether bytes have snapshots, and no log.
#[must_use]
pub fn is_session(bytes: &[u8]) -> bool {
    begins_as_session(bytes)
}

/// The name without an ending that says that the file is compressed; `None` if it has none.
#[must_use]
pub fn uncompressed(name: &str) -> Option<&str> {
    let plain = [".gz", ".zst"].iter();
    plain.filter_map(|ending| name.strip_suffix(ending)).next()
}

/// Refuses a session whose file would be empty, which is not read again.
///
/// # Errors
/// It has neither a snapshot nor a working state.
pub fn check_written(history: &History) -> Result<(), Error> {
    let message = "the session has no snapshots, so there is nothing to write";
    let missing = |_| Error::whole(Code::SnapshotNotFound, "", message);
    history.latest_position().map(drop).map_err(missing)
}

/// Bytes without gzip or Zstandard around them.
///
/// # Errors
/// They are cut off, or unpack to more than an input may have.
pub fn unpacked(bytes: &[u8], name: &Path) -> Result<Vec<u8>, SourceError> {
    read_all(bytes, name, Limits::default())
}
