//! The inputs of `pactql import`: logs, and for a store also directories, sessions, and other stores.

use super::command::say;
use super::input;
use super::options::Limits;
use super::progress::Progress;
use super::sessions::open_store;
use super::words::quoted;
use crate::app::present::stores::{Access, Address, intact, none_of, without_passwords};
use crate::app::present::{Exit, Failure, sessions as opened};
use crate::history::Session;
use crate::logs::{
    self, ImportOptions, ImportedSession, Known, Redaction, Report, import, where_messages,
};
use crate::store::Store;
use crate::tree::InputError;
use crate::tree::source::{files_below, sessions_in};
use rayon::prelude::*;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How inputs are read.
pub(super) struct Inputs<'a> {
    pub(super) options: ImportOptions,
    pub(super) limits: &'a Limits,
    /// Whether they go into a store, so that sessions are read too.
    pub(super) into_store: bool,
    /// Whether inputs that are neither logs nor sessions are left out.
    pub(super) skip_invalid: bool,
    /// Whether the output was named.
    pub(super) has_output: bool,
    /// The directory for what does not fit into memory, if logs are not read as a whole.
    pub(super) spools: Option<PathBuf>,
}

/// What was read.
#[derive(Default)]
pub(super) struct Read {
    pub(super) sessions: Vec<Named>,
    /// What was understood of each log.
    pub(super) reports: Vec<Report>,
    /// The inputs that were left out, and why.
    pub(super) skipped: Vec<(String, String)>,
}

/// A session with its name.
pub(super) struct Named {
    pub(super) name: String,
    /// What it comes from.
    pub(super) source: Option<String>,
    /// Its log, by number.
    pub(super) log: Option<usize>,
    pub(super) made: Made,
}

/// A session that is imported.
pub(super) enum Made {
    Log(Box<ImportedSession>),
    /// It was one already.
    Session(Arc<Session>),
    /// One of another store, with its name there and the number of its snapshots.
    Stored(Arc<Store>, String, usize),
}

impl Made {
    /// The number of its snapshots if it was a session already.
    pub(super) fn copied(&self) -> Option<usize> {
        match self {
            Self::Log(_) => None,
            Self::Session(session) => Some(session.history().committed().len()),
            Self::Stored(.., snapshots) => Some(*snapshots),
        }
    }

    /// The session, for a store.
    ///
    /// # Errors
    /// The other store's.
    pub(super) fn session(&self) -> Result<Arc<Session>, Failure> {
        match self {
            Self::Session(session) => Ok(Arc::clone(session)),
            Self::Stored(store, name, _) => {
                let session = store.session(name)?;
                intact(&session)?;
                Ok(session)
            }
            Self::Log(log) => Ok(Arc::new(session_of(log)?)),
        }
    }
}

/// The session that a log makes.
///
/// # Errors
/// None, unless the importer is at fault.
pub(super) fn session_of(log: &ImportedSession) -> Result<Session, Failure> {
    log.session()
        .map_err(|error| Failure::internal(format!("the session cannot be read: {error}")))
}

/// A file that is read.
pub(super) struct File {
    pub(super) path: String,
    /// What its sessions are named after.
    pub(super) stem: String,
}

impl File {
    /// A file whose sessions are named after it, without what is taken out of the log.
    fn new(path: String, redact: &[Redaction]) -> Self {
        let stem = Redaction::apply_text(redact, &stem(&path));
        Self { path, stem }
    }
}

/// The sessions of one file, and what is said of it.
pub(super) type OfFile = (Vec<Made>, Option<Report>);

impl Inputs<'_> {
    /// Reads all inputs, files in parallel. Of several failures the first in order is returned.
    ///
    /// # Errors
    /// An input that is missing, unreadable or invalid, unless those are left out.
    pub(super) fn read(&self, words: &[String]) -> Result<Read, Failure> {
        let mut read = Read::default();
        let mut taken = HashSet::new();
        let mut remarks = HashSet::new();
        let mut files = Vec::new();
        for word in words {
            match Address::of(word) {
                Some(address) => {
                    self.read_files(&mut files, words, &mut read, &mut taken, &mut remarks)?;
                    self.read_store(address, &mut read, &mut taken)?;
                }
                None if Path::new(word).is_dir() => files.extend(self.of_directory(word)?),
                None => files.push(File::new(word.clone(), &self.options.redact)),
            }
        }
        self.read_files(&mut files, words, &mut read, &mut taken, &mut remarks)?;
        Ok(read)
    }

    /// The files of inputs that are files and directories.
    ///
    /// # Errors
    /// An input that is neither.
    pub(super) fn files(&self, words: &[String]) -> Result<Vec<File>, Failure> {
        let mut files = Vec::new();
        for word in words {
            if word == input::STDIN || Address::of(word).is_some() {
                return Err(Failure::usage(format!("`{word}` cannot be followed"))
                    .with_help("`--follow` reads files and directories"));
            }
            if Path::new(word).is_dir() {
                files.extend(below(word, &self.options.redact)?)
            } else {
                files.push(File::new(word.clone(), &self.options.redact))
            }
        }
        Ok(files)
    }

    /// Reads files, and takes them off the list.
    fn read_files(
        &self,
        files: &mut Vec<File>,
        words: &[String],
        read: &mut Read,
        taken: &mut HashSet<String>,
        remarks: &mut HashSet<String>,
    ) -> Result<(), Failure> {
        let files = std::mem::take(files);
        let progress = Progress::bar(files.len());
        let found: Vec<Result<OfFile, Failure>> = files
            .par_iter()
            .map(|file| {
                let found = self.read_file(&file.path, words);
                progress.step();
                found
            })
            .collect();
        drop(progress);
        let several = files.len() > 1;
        for (file, found) in files.iter().zip(found) {
            let (made, report) = match found {
                Ok(found) => found,
                Err(failure) if self.skip_invalid && is_invalid(&failure) => {
                    read.skipped.push((file.path.clone(), failure.message()));
                    continue;
                }
                Err(failure @ Failure::Input(_, None)) if several => {
                    return Err(failure.with_help("`--skip-invalid` imports the others"));
                }
                Err(failure) => return Err(failure),
            };
            let log = report.map(|report| {
                read.reports.push(report);
                read.reports.len() - 1
            });
            for session in made.iter().filter_map(|made| match made {
                Made::Session(session) => Some(session),
                _ => None,
            }) {
                let remark = opened::remarks(session);
                if !remarks.contains(&remark) {
                    say(&remark);
                    remarks.insert(remark);
                }
            }
            self.name(file, log, made, &mut read.sessions, taken);
        }
        Ok(())
    }

    /// The files of a directory and of those below it, whose sessions are named after their paths in it;
    /// the directory itself if it is one session of documents, or has no log.
    fn of_directory(&self, name: &str) -> Result<Vec<File>, Failure> {
        let directory = Path::new(name);
        let files = files_below(directory)?;
        let is_nested = files.iter().any(|file| file.parent() != Some(directory));
        let is_log = |file: &PathBuf| {
            if let Some(is_log) = self.is_large_log(file) {
                return is_log;
            }
            let bytes = input::read(&file.display().to_string(), self.limits);
            bytes.is_ok_and(|bytes| import(&bytes, &self.options).is_ok())
        };
        if !is_nested && sessions_in(directory)?.is_none() && !files.iter().any(is_log) {
            return Ok(vec![File::new(name.to_owned(), &self.options.redact)]);
        }
        below(name, &self.options.redact)
    }

    /// Reads a log, or a session for a store.
    pub(super) fn read_file(&self, file: &str, words: &[String]) -> Result<OfFile, Failure> {
        if self.into_store && Path::new(file).is_dir() {
            self.check_redacted(file)?;
            let session = opened::open(Path::new(file), self.limits.source())?;
            return Ok((vec![Made::Session(Arc::new(session))], None));
        }
        if let Some(large) = self.read_large(file)? {
            return Ok(large);
        }
        let bytes =
            input::read(file, self.limits).map_err(|failure| self.unread(file, words, failure))?;
        let name = input::name(file);
        if bytes.trim_ascii().is_empty() {
            return Err(no_messages(format!("{} is empty", name.display())));
        }
        let imported = match import(&bytes, &self.options) {
            Ok(imported) => imported,
            Err(error) if file == input::STDIN && !self.into_store => {
                return Err(Failure::Input(vec![(name, error)], None));
            }
            Err(error) => {
                let session = match file {
                    input::STDIN => Session::from_slice(&bytes)
                        .map_err(|error| Failure::Input(vec![(name.clone(), error)], None)),
                    _ => opened::open(Path::new(file), self.limits.source()),
                };
                if session.is_ok() && self.into_store {
                    self.check_redacted(file)?;
                }
                return match session {
                    Ok(session) if self.into_store => {
                        Ok((vec![Made::Session(Arc::new(session))], None))
                    }
                    Ok(_) => Err(is_session(file)),
                    Err(failure) if self.into_store && is_document(&bytes) => Err(failure),
                    Err(_) => Err(refused(file, &bytes, error)),
                };
            }
        };
        if bytes.trim_ascii() == b"[]" {
            return Err(no_messages(format!("{} has no messages", name.display())));
        }
        let made = imported
            .sessions
            .into_iter()
            .map(|log| Made::Log(Box::new(log)));
        Ok((made.collect(), Some(imported.report)))
    }

    /// Gives each session of a log a unique file name, without an extension.
    pub(super) fn name(
        &self,
        file: &File,
        log: Option<usize>,
        imported: Vec<Made>,
        sessions: &mut Vec<Named>,
        taken: &mut HashSet<String>,
    ) {
        let File { path, stem } = file;
        let known = imported.iter().map(|made| match made {
            Made::Log(log) => Known::of(log),
            Made::Session(_) | Made::Stored(..) => Known::default(),
        });
        let names = logs::names(stem, &known.collect::<Vec<_>>(), taken);
        let source = Redaction::apply_text(&self.options.redact, path);
        let named = names.into_iter().zip(imported);
        sessions.extend(named.map(|(name, made)| Named {
            name,
            source: (path != input::STDIN).then(|| source.clone()),
            log,
            made,
        }));
    }

    /// Refuses what would be copied as it is although something is to be taken out.
    fn check_redacted(&self, input: &str) -> Result<(), Failure> {
        if self.options.redact.is_empty() {
            return Ok(());
        }
        let message = format!("{input} is no log, and `--redact` reads logs");
        Err(Failure::usage(message).with_help("pactql store erase takes a text out of a store"))
    }

    /// Lists sessions of another store; each is read when it is written.
    fn read_store(
        &self,
        address: Address<'_>,
        read: &mut Read,
        taken: &mut HashSet<String>,
    ) -> Result<(), Failure> {
        let store = address.store;
        self.check_redacted(store)?;
        if !self.into_store {
            let message = format!("`{store}` is a store, whose sessions go into another store");
            return Err(Failure::usage(message).with_help(format!(
                "pactql import {0} -o other.db, or to files: pactql export {0} -o sessions/",
                quoted(store)
            )));
        }
        let opened = Arc::new(open_store(store, Access::Read)?);
        if !address.is_several() {
            // Says which names are near.
            opened.session(address.one()?)?;
        }
        let found = opened.sessions(address.glob())?;
        if found.is_empty() {
            return Err(Failure::plain(Exit::Missing, none_of(address)));
        }
        for info in found {
            let source = format!("{store}#{}", info.name);
            let source = without_passwords(&source).into_owned();
            let made = Made::Stored(Arc::clone(&opened), info.name.clone(), info.snapshots);
            read.sessions.push(Named {
                name: logs::unique(&info.name, taken),
                source: Some(source),
                log: None,
                made,
            });
        }
        Ok(())
    }

    /// The failure for a log that cannot be read.
    fn unread(&self, log: &str, words: &[String], failure: Failure) -> Failure {
        if Path::new(log).is_dir() {
            return Failure::usage(format!("`{log}` is a directory without a log"))
                .with_help("give a log, a directory of logs, or `--from FORMAT` for a log that is not recognized");
        }
        match words {
            [first, second] if second == log && !self.has_output => {
                let (first, second) = (quoted(first), quoted(second));
                failure.with_help(format!(
                    "the output is the value of `-o`: pactql import {first} -o {second}"
                ))
            }
            _ => failure,
        }
    }
}

/// The files below a directory, whose sessions are named after their paths in it.
fn below(name: &str, redact: &[Redaction]) -> Result<Vec<File>, Failure> {
    let directory = Path::new(name);
    let files = files_below(directory)?.into_iter();
    let files = files.filter(|file| !is_beside_log(file)).map(|file| {
        let inside = file.strip_prefix(directory).unwrap_or(&file);
        let parts = inside.iter().map(|part| part.to_string_lossy());
        let inside = parts.collect::<Vec<_>>().join("/");
        File {
            stem: Redaction::apply_text(redact, logs::stem(&inside)),
            path: file.display().to_string(),
        }
    });
    Ok(files.collect())
}

/// Whether a file is not a log but belongs to one of Claude Code: what is known of a subagent, or the output of
/// a tool that was too long for the log.
fn is_beside_log(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let about = name.strip_suffix(".meta.json");
    if let Some(agent) = about {
        return file.with_file_name(format!("{agent}.jsonl")).exists();
    }
    let above = file
        .parent()
        .filter(|above| above.ends_with("tool-results"));
    let session = above.and_then(Path::parent);
    session.is_some_and(|session| session.with_extension("jsonl").exists())
}

/// The failure for a session where a log is expected.
fn is_session(file: &str) -> Failure {
    let message = format!("{file} is a session already, not a log");
    Failure::plain(Exit::Input, message).with_help(format!("pactql select {} \"*\"", quoted(file)))
}

/// Whether a text begins as a session: its first line has a tree.
fn is_document(bytes: &[u8]) -> bool {
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    line.windows(6).any(|part| part == b"\"root\"")
}

/// The failure for an input that is not a log.
fn refused(log: &str, bytes: &[u8], error: InputError) -> Failure {
    let failure = Failure::Input(vec![(input::name(log), error)], None);
    match where_messages(bytes).filter(|_| log != input::STDIN) {
        Some(pointer) => failure.with_help(format!(
            "pactql import {} --messages '{pointer}' -o sessions/",
            quoted(log)
        )),
        None => failure,
    }
}

/// The failure for a log without messages.
fn no_messages(message: String) -> Failure {
    Failure::plain(Exit::Input, message).with_help(
        "expected chat messages: a list, an object with `messages`, or one message a line",
    )
}

/// Whether a file was read, or could be, and is not what was expected; not that it is missing.
fn is_invalid(failure: &Failure) -> bool {
    matches!(failure.exit(), Exit::Input | Exit::Io)
}

/// The file name of a log without its endings.
fn stem(log: &str) -> String {
    let name = Path::new(log)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.filter(|name| name != "-");
    name.map_or_else(|| "session".to_owned(), |name| logs::stem(&name).to_owned())
}
