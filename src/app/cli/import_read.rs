//! The inputs of `pactql import`: logs, and for a store also directories, sessions, and other stores.
//!
//! Logs that are too large to be read as a whole go into a store line by line.

use super::command::say;
use super::folders::LogSource;
use super::import_marks::{LogMarks, is_there, marked_options};
use super::input;
use super::options::named;
use super::progress::Progress;
use super::sessions::{open_store, runs};
use super::words::quoted;
use crate::app::present::stores::{Access, StoreAddress, none_of, without_passwords};
use crate::app::present::{Exit, Failure, sessions as opened};
use crate::history::Session;
use crate::logs::{
    self, Format, ImportOptions, ImportReport, Imported, ImportedSession, KnownNames, LogBytes,
    LogError, LogHasher, LogMark, Pointer, Redaction, import, import_file_seen, import_opencode,
    is_lines_of_a_log, is_opencode, where_messages,
};
use crate::store::Store;
use crate::tree::source::{check_listed, files_below, sessions_in};
use crate::tree::{InputError, Limits};
use clap::Args;
use rayon::prelude::*;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Make sessions of the logs of agents; into a store also of files of sessions, and of other stores.
///
/// The format is found by content. A provider call is a cycle, and a reply ends a turn; messages
/// after the last reply are the working state. A report on standard error counts what was
/// understood, kept unchanged and skipped. In a store a session is named by its file, without the endings; one of another
/// store keeps its name, as do those of a copy that `store parquet` made. A log that is imported again adds what is new. Of a directory, every file is imported that is a log
/// or a session; the others are named.
#[derive(Args, Debug)]
pub(super) struct ImportArgs {
    /// Logs to read, plain, gzip or Zstandard; `-` is standard input. Into a store also directories, sessions and
    /// stores.
    #[arg(value_name = "LOG", required = true)]
    pub(super) logs: Vec<String>,
    /// Where to write: a file, a directory (an existing one, or a name that ends in `/`) for one file
    /// per session, a store, or `STORE#name` [default: standard output].
    #[arg(short, long, value_name = "PATH")]
    pub(super) output: Option<String>,
    /// The name of the one session in a store.
    #[arg(long, value_name = "NAME", requires = "output")]
    pub(super) name: Option<String>,
    /// Replace files that exist.
    #[arg(long)]
    pub(super) force: bool,
    /// Leave out sessions whose name the store has already.
    #[arg(long)]
    pub(super) skip_existing: bool,
    /// Keep reading as the logs grow, until interrupted. Into a store.
    #[arg(long, requires = "output", conflicts_with = "skip_existing")]
    pub(super) follow: bool,
    /// Refuse logs with a malformed line, and everything if one file cannot be read. Without it such lines and
    /// files are left out and counted.
    #[arg(long)]
    pub(super) strict: bool,
    /// The format of the logs [default: found by content].
    #[arg(long, value_name = "FORMAT", value_parser = named(&Format::ALL, Format::name))]
    pub(super) from: Option<Format>,
    /// Where the messages are: a JSON pointer, in which `*` is every element. Each match is one
    /// session.
    #[arg(long, value_name = "POINTER", value_parser = Pointer::parse, conflicts_with = "steps")]
    pub(super) messages: Option<Pointer>,
    /// Where the inputs of single steps are: each match is one snapshot of the same session.
    #[arg(long, value_name = "POINTER", value_parser = Pointer::parse)]
    pub(super) steps: Option<Pointer>,
    /// Import a log of which less than half is understood.
    #[arg(long)]
    pub(super) lenient: bool,
    /// What is taken out of the logs before anything is written: a regular expression. Several are
    /// possible; the report counts the matches of each.
    #[arg(long, value_name = "PATTERN", value_parser = Redaction::parse, allow_hyphen_values = true)]
    pub(super) redact: Vec<Redaction>,
    /// Write every snapshot as a whole document, even if its difference is shorter.
    #[arg(long)]
    pub(super) full: bool,
}

#[derive(Clone, Copy)]
pub(super) enum ImportTarget<'a> {
    Stdout,
    File(&'a str),
    Directory(&'a str),
    Store(StoreAddress<'a>),
}

pub(super) struct Importing<'a> {
    pub(super) args: &'a ImportArgs,
    pub(super) options: ImportOptions,
    pub(super) target: ImportTarget<'a>,
    pub(super) limits: Limits,
    /// The store that it goes into, once it is open.
    pub(super) opened: OnceLock<Store>,
}

impl Importing<'_> {
    /// Whether sessions go into a store, so that sessions are read too.
    pub(super) fn is_into_store(&self) -> bool {
        matches!(self.target, ImportTarget::Store(_))
    }

    /// The store that sessions go into; one that is missing is made.
    pub(super) fn store(&self) -> Result<&Store, Failure> {
        match (self.opened.get(), self.target) {
            (Some(store), _) => Ok(store),
            (None, ImportTarget::Store(address)) => {
                let store = open_store(address.store, Access::Create)?;
                Ok(self.opened.get_or_init(|| store))
            }
            _ => Err(Failure::internal("sessions go into a store")),
        }
    }
}

pub(super) fn several(target: ImportTarget<'_>, count: usize) -> Failure {
    let place = match target {
        ImportTarget::File(path) => format!("the file `{path}`"),
        ImportTarget::Store(address) => {
            return Failure::usage(format!("{count} sessions cannot have one name"))
                .with_help(format!("-o {} gives each its own name", address.store));
        }
        _ => "standard output".to_owned(),
    };
    Failure::usage(format!(
        "the logs hold {count} sessions, and {place} takes one"
    ))
    .with_help("`-o DIR` writes one file a session; a new directory's name ends in `/`")
}

/// Files of more bytes than this are read line by line, if they are JSON Lines.
const LARGE: u64 = 8 << 20;

const GZIP: [u8; 2] = [0x1F, 0x8B];

#[derive(Default)]
pub(super) struct Read {
    pub(super) sessions: Vec<Named>,
    pub(super) reports: Vec<ImportReport>,
    /// The inputs that were left out, and why.
    pub(super) skipped: Vec<(String, String)>,
    /// Why the first of them was.
    failed: Option<Failure>,
    taken: HashSet<String>,
    /// What was said of sessions, each once.
    remarks: HashSet<String>,
}

pub(super) struct Named {
    pub(super) name: String,
    pub(super) source: Option<String>,
    /// Its log, by number.
    pub(super) log: Option<usize>,
    pub(super) made: ReadSession,
    /// The mark of its log, to be kept with it.
    pub(super) mark: Option<String>,
}

pub(super) enum ReadSession {
    Log(Box<ImportedSession>),
    /// One of a log that is as it was when it was imported, with its name in the store.
    Unchanged(String),
    Session(Arc<Session>),
    /// One of another store, with its name there and the number of its snapshots.
    Stored(Arc<Store>, String, usize),
}

impl ReadSession {
    /// The number of its snapshots if it was a session already.
    pub(super) fn copied(&self) -> Option<usize> {
        match self {
            Self::Log(_) | Self::Unchanged(_) => None,
            Self::Session(session) => Some(session.history().committed().len()),
            Self::Stored(.., snapshots) => Some(*snapshots),
        }
    }

    /// What its log calls it, if that was read.
    fn known(&self) -> KnownNames<'_> {
        match self {
            Self::Log(log) => KnownNames::from_session(log),
            Self::Unchanged(_) | Self::Session(_) | Self::Stored(..) => KnownNames::default(),
        }
    }

    /// The session, for a store.
    pub(super) fn session(&self) -> Result<Arc<Session>, Failure> {
        match self {
            Self::Session(session) => Ok(Arc::clone(session)),
            Self::Stored(store, name, _) => Ok(store.session(name)?),
            Self::Log(log) => Ok(Arc::new(opened::session_of(log)?)),
            Self::Unchanged(name) => Err(Failure::internal(format!("`{name}` was not read"))),
        }
    }
}

/// What is read of a file.
#[derive(Default)]
pub(super) struct ReadFile {
    pub(super) made: Vec<ReadSession>,
    report: Option<ImportReport>,
    /// Of a log that goes into a store.
    pub(super) mark: Option<Arc<LogMark>>,
}

impl Read {
    /// Reads all inputs, files in parallel. Of several failures the first in order is returned.
    pub(super) fn new(importing: &Importing<'_>) -> Result<Self, Failure> {
        let mut read = Self::default();
        for run in runs(&importing.args.logs) {
            if let Some(address) = StoreAddress::parse(&run[0]) {
                let store = address.store;
                importing.check_redacted(store)?;
                if !importing.is_into_store() {
                    let store = quoted(store);
                    let message =
                        format!("`{store}` is a store, whose sessions go into another store");
                    return Err(Failure::usage(message).with_help(format!(
                        "pactql import {store} -o other.db, or to files: pactql export {store} -o sessions/"
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
                // Each is read when it is written.
                read.sessions.extend(found.into_iter().map(|info| {
                    let source = format!("{store}#{}", info.name);
                    Named {
                        name: logs::unique(&info.name, &mut read.taken),
                        source: Some(without_passwords(&source).into_owned()),
                        log: None,
                        made: ReadSession::Stored(Arc::clone(&opened), info.name, info.snapshots),
                        mark: None,
                    }
                }));
                continue;
            }
            let files = importing.logs(run, |word| importing.of_directory(word))?;
            read.add_files(importing, &files)?;
        }
        match read.failed.take() {
            Some(failure) if read.sessions.is_empty() => Err(match read.skipped.len() {
                1 => failure,
                count => failure.with_help(format!("none of {count} files can be read")),
            }),
            _ => Ok(read),
        }
    }

    fn add_files(&mut self, importing: &Importing<'_>, files: &[LogSource]) -> Result<(), Failure> {
        let progress = Progress::bar(files.len());
        let marks = importing.marks(files);
        let found: Vec<Result<ReadFile, Failure>> = files
            .par_iter()
            .map(|file| {
                let found = importing.read_source(file, &marks);
                progress.step();
                found
            })
            .collect();
        drop(progress);
        for (file, found) in files.iter().zip(found) {
            let read = match found {
                Ok(found) => found,
                Err(failure) if !importing.args.strict && file.is_left_out(&failure) => {
                    self.skipped.push((file.path.clone(), failure.message()));
                    // What is not a log says more than what cannot be read.
                    if self.failed.as_ref().is_none_or(|first| {
                        first.exit() == Exit::Io && failure.exit() == Exit::Input
                    }) {
                        self.failed = Some(failure);
                    }
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            let log = read.report.as_ref().map(|report| {
                self.reports.push(report.clone());
                self.reports.len() - 1
            });
            for made in &read.made {
                if let ReadSession::Session(session) = made {
                    let remark = opened::remarks(session);
                    if !self.remarks.contains(&remark) {
                        say(&remark);
                        self.remarks.insert(remark);
                    }
                }
            }
            let named = importing.named(file, log, read, &mut self.taken);
            self.sessions.extend(named);
        }
        Ok(())
    }
}

impl Importing<'_> {
    /// The files of inputs that are files and directories, to follow them.
    pub(super) fn files(&self) -> Result<Vec<LogSource>, Failure> {
        let is_other =
            |word: &&String| *word == input::STDIN || StoreAddress::parse(word).is_some();
        if let Some(word) = self.args.logs.iter().find(is_other) {
            return Err(Failure::usage(format!("`{word}` cannot be followed"))
                .with_help("`--follow` reads files and directories"));
        }
        self.logs(&self.args.logs, |word| LogSource::below(Path::new(word)))
    }

    /// The files that words name, of a directory those that `of_directory` returns; named without what is taken out
    /// of logs.
    fn logs(
        &self,
        words: &[String],
        of_directory: impl Fn(&str) -> Result<Vec<LogSource>, Failure>,
    ) -> Result<Vec<LogSource>, Failure> {
        let mut files = Vec::new();
        for word in words {
            if Path::new(word).is_dir() {
                files.extend(of_directory(word)?);
            } else {
                files.push(LogSource::new(word));
            }
        }
        for file in &mut files {
            file.stem = Redaction::apply_text(&self.options.redact, &file.stem);
        }
        Ok(files)
    }

    /// The files of a directory and of those below it, whose sessions are named after their paths in it;
    /// the directory itself if it is one session of documents, or has no log.
    fn of_directory(&self, name: &str) -> Result<Vec<LogSource>, Failure> {
        let directory = Path::new(name);
        let files = files_below(directory)?;
        let is_nested = files.iter().any(|file| file.parent() != Some(directory));
        let is_log = |file: &PathBuf| {
            let path = file.display().to_string();
            if is_opencode(file) {
                return true;
            }
            if check_listed(file).is_err() {
                return false;
            }
            if self.is_into_store() && matches!(self.open_large(&path), Ok(Some(_))) {
                return true;
            }
            let bytes = input::read(&path, self.limits);
            bytes.is_ok_and(|bytes| import(&bytes, &self.options).is_ok())
        };
        if !is_nested && sessions_in(directory)?.is_none() && !files.iter().any(is_log) {
            return Ok(vec![LogSource::new(name)]);
        }
        LogSource::below(directory)
    }

    /// Reads a file; one that a mark says is as it was is not read.
    pub(super) fn read_source(
        &self,
        file: &LogSource,
        marks: &LogMarks,
    ) -> Result<ReadFile, Failure> {
        file.check()?;
        match marks.unchanged(&file.path) {
            Some((mark, names)) => Ok(ReadFile {
                made: names.into_iter().map(ReadSession::Unchanged).collect(),
                report: Some(mark.report.clone()),
                mark: Some(mark),
            }),
            None => self.read_file(&file.path),
        }
    }

    /// The marks of the logs that the store has. What is wrong with the store is said when it is written.
    pub(super) fn marks(&self, files: &[LogSource]) -> LogMarks {
        let ImportTarget::Store(address) = self.target else {
            return LogMarks::default();
        };
        let options = marked_options(&self.options, self.limits);
        match options.filter(|_| !self.args.skip_existing && is_there(address.store)) {
            None => LogMarks::default(),
            Some(options) => {
                let paths = files.iter().map(|file| &*file.path).collect();
                let read = |store| LogMarks::read(store, &paths, options);
                self.store().and_then(read).unwrap_or_default()
            }
        }
    }

    /// The sessions of a log, with its mark if it is known which bytes were read.
    fn logs_of(&self, imported: Imported, bytes: Option<LogBytes>) -> ReadFile {
        let options = marked_options(&self.options, self.limits).filter(|_| self.is_into_store());
        let mark = bytes
            .zip(options)
            .map(|(bytes, options)| Arc::new(LogMark::new(bytes, options, &imported)));
        let made = imported.sessions.into_iter();
        ReadFile {
            made: made.map(|log| ReadSession::Log(Box::new(log))).collect(),
            report: Some(imported.report),
            mark,
        }
    }

    pub(super) fn read_file(&self, file: &str) -> Result<ReadFile, Failure> {
        let limits = self.limits;
        let as_it_is = |session: Session| {
            self.check_redacted(file)?;
            Ok(ReadFile {
                made: vec![ReadSession::Session(Arc::new(session))],
                ..ReadFile::default()
            })
        };
        // SQLite and the folders are not read byte by byte: what is there before and after was read.
        let opencode = is_opencode(Path::new(file));
        let bytes = || {
            opencode
                .then(|| LogBytes::at(Path::new(file)).ok())
                .flatten()
        };
        let before = bytes();
        match import_opencode(Path::new(file), &self.options) {
            Ok(None) => {}
            Ok(Some(imported)) => {
                let unchanged = before.filter(|before| bytes().as_ref() == Some(before));
                return Ok(self.logs_of(imported, unchanged));
            }
            Err(error) => return Err(failed(file, error)),
        }
        if self.is_into_store() && Path::new(file).is_dir() {
            return as_it_is(opened::open(Path::new(file), limits)?);
        }
        if let Some(large) = self.read_large(file)? {
            return Ok(large);
        }
        if Path::new(file).is_dir() {
            return Err(Failure::usage(format!("`{file}` is a directory without a log"))
                .with_help("give a log, a directory of logs, or `--from FORMAT` for a log that is not recognized"));
        }
        let mut hasher = LogHasher::default();
        let bytes = input::read_hashed(file, self.limits, &mut hasher)?;
        let name = input::name(file);
        if bytes.trim_ascii().is_empty() {
            return Err(no_messages(format!("{} is empty", name.display())));
        }
        let error = match import(&bytes, &self.options) {
            Ok(_) if bytes.trim_ascii() == b"[]" => {
                return Err(no_messages(format!("{} has no messages", name.display())));
            }
            Ok(imported) => return Ok(self.logs_of(imported, Some(hasher.finish()))),
            Err(error) if file == input::STDIN && !self.is_into_store() => {
                return Err(Failure::Input(vec![(name, error)], None));
            }
            Err(error) => error,
        };
        let session = if file == input::STDIN {
            Session::from_slice(&bytes).map_err(|error| Failure::Input(vec![(name, error)], None))
        } else {
            opened::open(Path::new(file), limits)
        };
        match session {
            Ok(session) if self.is_into_store() => as_it_is(session),
            Ok(_) => {
                let message = format!("{file} is a session already, not a log");
                Err(Failure::plain(Exit::Input, message)
                    .with_help(format!("pactql select {} \"*\"", quoted(file))))
            }
            Err(failure) if self.is_into_store() && opened::begins_as_session(&bytes) => {
                Err(failure)
            }
            Err(_) => Err(refused(file, &bytes, error)),
        }
    }

    /// A log in a large file, opened; `None` if it is not large, or no JSON Lines of a log.
    fn open_large(&self, path: &str) -> io::Result<Option<File>> {
        let data = match Path::new(path).metadata() {
            Ok(data) if data.is_file() && data.len() > LARGE => data,
            // The caller that reads it as a whole says what is wrong with it.
            _ => return Ok(None),
        };
        let mut file = File::open(path)?;
        let mut head = [0; 2];
        if data.len() >= 2 {
            file.read_exact(&mut head)?;
        }
        file.rewind()?;
        let is_log = head != GZIP && is_lines_of_a_log(&file, &self.options)?;
        Ok(is_log.then_some(file))
    }

    /// The sessions of a log that is large; `None` if it is not, or no JSON Lines.
    fn read_large(&self, path: &str) -> Result<Option<ReadFile>, Failure> {
        // What is not of the named format may be a session, which is read as a whole.
        let directory = match self.target {
            ImportTarget::Store(address) if self.options.format.is_none() => address.directory(),
            _ => return Ok(None),
        };
        let Some(log) = self
            .open_large(path)
            .map_err(|error| failed(path, error.into()))?
        else {
            return Ok(None);
        };
        let unwritten = |error| Failure::output(&directory.display().to_string(), &error);
        let spool = tempfile::tempfile_in(&directory).map_err(unwritten)?;
        let mut hasher = LogHasher::default();
        match import_file_seen(&log, spool, &self.options, &mut |bytes| hasher.add(bytes)) {
            Ok(imported) => {
                Ok(imported.map(|imported| self.logs_of(imported, Some(hasher.finish()))))
            }
            Err(LogError::Spool(error)) => Err(unwritten(error)),
            Err(error) => Err(failed(path, error)),
        }
    }

    /// Gives each session of a log a unique file name, without an extension.
    pub(super) fn named(
        &self,
        file: &LogSource,
        log: Option<usize>,
        read: ReadFile,
        taken: &mut HashSet<String>,
    ) -> Vec<Named> {
        let known: Vec<KnownNames<'_>> = match (&read.made[..], &read.mark) {
            ([ReadSession::Unchanged(_), ..], Some(mark)) => mark.names().collect(),
            (made, _) => made.iter().map(ReadSession::known).collect(),
        };
        let names = logs::names(&file.stem, &known, taken);
        let source = Redaction::apply_text(&self.options.redact, &file.path);
        let source = (file.path != input::STDIN).then_some(source);
        let mark = read.mark.filter(|_| source.is_some());
        let named = names.into_iter().zip(read.made).enumerate();
        let named = named.map(|(at, (name, made))| Named {
            name,
            source: source.clone(),
            log,
            mark: match made {
                ReadSession::Log(_) => mark.as_ref().map(|mark| mark.with_session(at)),
                _ => None,
            },
            made,
        });
        named.collect()
    }

    /// Refuses what would be copied as it is although something is to be taken out.
    fn check_redacted(&self, input: &str) -> Result<(), Failure> {
        if self.options.redact.is_empty() {
            return Ok(());
        }
        let message = format!("{input} is not a log, and `--redact` reads logs");
        Err(Failure::usage(message).with_help("pactql store erase takes a text out of a store"))
    }
}

/// Why the log at a path was not read.
fn failed(path: &str, error: LogError) -> Failure {
    match error {
        LogError::Input(error) => Failure::Input(vec![(input::name(path), error)], None),
        LogError::Io(error) | LogError::Spool(error) => Failure::file(path, &error),
    }
}

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

fn no_messages(message: String) -> Failure {
    Failure::plain(Exit::Input, message).with_help(
        "expected chat messages: a list, an object with `messages`, or one message a line",
    )
}
