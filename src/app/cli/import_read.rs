//! The inputs of `pactql import`: logs, and for a store also directories, sessions, and other stores.
//!
//! Logs that are too large to be read as a whole go into a store line by line. Everything is read once before anything
//! is written. What does not fit into memory then is read once more when it is written.
//!
//! An import keeps a mark with each session of a log ([`LogMark`]). A log whose marks hold is only hashed. With `--redact`
//! a log gets none: a hash of it as it was would help to guess what was taken out.

use super::command::say;
use super::each_session::runs;
use super::input;
use super::options::named;
use super::progress::Progress;
use super::read_sessions::open_store;
use super::words::quoted;
use crate::app::present::folders::{LogSource, files_to_import};
use crate::app::present::followed::{FollowedLogs, begins_as_session};
use crate::app::present::stores::{Access, StoreAddress, sessions_of, without_passwords};
use crate::app::present::{Exit, Failure, Result, sessions as opened};
use crate::budget::CacheFault;
use crate::history::Session;
use crate::logs::{
    self, Format, ImportOptions, ImportReport, Imported, ImportedSession, KnownNames, LogBytes,
    LogError, LogMark, MessageLocation, Pointer, Redaction, import, import_file, import_opencode,
    is_lines_of_a_log, is_opencode, where_messages,
};
use crate::store::{LogImport, Store};
use crate::support::diag::Code;
use crate::tree::source::files_below;
use crate::tree::{InputError, Limits};
use clap::Args;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _, Seek};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// How does a log become a session? Reads the logs of agents; into a store also of files of sessions, and of other stores.
///
/// The format is found by content. A provider call is a cycle, and a reply ends a turn; messages after the last reply
/// are the working state. A report on standard error counts what was understood, kept unchanged and skipped; with
/// `--json` it is on standard output, unless the session is there. In a store a session is named by its file, without
/// the endings, and with a number if the file has several. Sessions of another store, or of a copy that `store parquet`
/// made, keep their names. A log that is imported again adds what is new. Of a directory, every file is imported that
/// is a log or a session; the others are named.
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
    /// How the report is printed: text or json, as with --json.
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    pub(super) report: Option<String>,
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
    /// Where logs are followed: what was read of them.
    pub(super) followed: Option<FollowedLogs>,
}

impl Importing<'_> {
    /// Whether sessions go into a store, so that sessions are read too.
    pub(super) fn is_into_store(&self) -> bool {
        matches!(self.target, ImportTarget::Store(_))
    }

    /// The store that sessions go into; one that is missing is made.
    pub(super) fn store(&self) -> Result<&Store> {
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
    let message = format!("the logs hold {count} sessions, and {place} takes one");
    let help = "`-o DIR` writes one file a session; a new directory's name ends in `/`";
    Failure::usage(message).with_help(help)
}

/// Help for a directory without a log.
const NO_LOG: &str =
    "give a log, a directory of logs, or `--from FORMAT` for a log that is not recognized";

/// Files of more bytes than this are read line by line, if they are JSON Lines.
const LARGE: u64 = 8 << 20;

const GZIP: [u8; 2] = [0x1F, 0x8B];

/// The most files, and bytes of them, that are read at once.
const TOGETHER: (usize, usize) = (64, 16 << 20);

/// The most bytes of files whose sessions stay in memory until they are written.
const KEPT: usize = 8 << 20;

/// What a log in a temporary file counts for among those.
const SPOOLED: usize = 256 << 10;

#[derive(Default)]
pub(super) struct Read {
    pub(super) sessions: Vec<Named>,
    pub(super) files: Vec<SourceFile>,
    /// Bytes of the files whose sessions are in memory.
    kept: usize,
    /// The inputs that were left out, and why.
    pub(super) skipped: Vec<(String, String)>,
    /// Why the first of them was.
    failed: Option<Failure>,
    taken: HashSet<String>,
    /// What was said of sessions, each once.
    remarks: HashSet<String>,
}

/// A file that was read, or a store.
pub(super) struct SourceFile {
    path: String,
    /// What its log has, if it is one, until that is counted as written; as JSON, which takes the least memory. `None` if
    /// reading it again says so.
    report: Option<String>,
    /// Of a log that goes into a store, while its sessions are in memory.
    mark: Option<Arc<LogMark>>,
}

pub(super) struct Named {
    pub(super) name: String,
    /// Its file or store, by number.
    pub(super) file: usize,
    /// Which of the sessions there it is.
    at: usize,
    /// The number of its snapshots if it was a session already, and not one of a log.
    pub(super) copied: Option<usize>,
    /// `None` if it is read again when it is written.
    pub(super) made: Option<ReadSession>,
}

impl Named {
    pub(super) fn is_log(&self) -> bool {
        self.copied.is_none()
    }
}

pub(super) enum ReadSession {
    Log(Box<ImportedSession>),
    /// One of a log that is as it was when it was imported, with its name in the store.
    Unchanged(String),
    Session(Arc<Session>),
    /// One of another store, with its name there.
    Stored(Arc<Store>, String),
}

impl ReadSession {
    /// What its log calls it, if that was read.
    fn known(&self) -> KnownNames<'_> {
        match self {
            Self::Log(log) => KnownNames::from_session(log),
            Self::Unchanged(_) | Self::Session(_) | Self::Stored(..) => KnownNames::default(),
        }
    }

    /// The session, for a store.
    pub(super) fn session(&self) -> Result<Arc<Session>> {
        match self {
            Self::Session(session) => Ok(Arc::clone(session)),
            Self::Stored(store, name) => Ok(store.session(name)?),
            Self::Log(log) => Ok(opened::session_of(log)?),
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
    /// How much it counts for in [`KEPT`].
    bytes: usize,
}

impl ReadFile {
    /// Whether a mark says that it is as it was, so that it was not read.
    pub(super) fn is_unchanged(&self) -> bool {
        matches!(self.made.first(), Some(ReadSession::Unchanged(_)))
    }
}

/// The bytes of a file, or of the files of a directory; 0 if that is not known.
fn size_of(path: &str) -> usize {
    let of = |path: &Path| path.metadata().map_or(0, |about| about.len());
    let path = Path::new(path);
    let bytes = if path.is_dir() {
        let files = files_below(path).unwrap_or_default();
        files.iter().map(|file| of(file)).sum()
    } else {
        of(path)
    };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl Read {
    /// Reads all inputs, files in parallel. Of several failures the first in order is returned.
    pub(super) fn new(importing: &Importing<'_>) -> Result<Self> {
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
                let found = sessions_of(&opened, address)?;
                // Each is read when it is written.
                let file = read.add_source(without_passwords(store).into_owned(), None, None);
                read.sessions
                    .extend(found.into_iter().enumerate().map(|(at, info)| Named {
                        name: logs::unique(&info.name, &mut read.taken),
                        file,
                        at,
                        copied: Some(info.snapshots),
                        made: Some(ReadSession::Stored(Arc::clone(&opened), info.name)),
                    }));
                continue;
            }
            let (limits, options) = (importing.limits, &importing.options);
            let files = importing.logs(run, |word| files_to_import(word, limits, options))?;
            read.add_files(importing, files)?;
        }
        match read.failed.take() {
            Some(failure) if read.sessions.is_empty() => Err(match read.skipped.len() {
                1 if importing
                    .args
                    .logs
                    .iter()
                    .any(|log| Path::new(log).is_dir()) =>
                {
                    failure.with_help(NO_LOG)
                }
                1 => failure,
                count => failure.with_help(format!("none of {count} files can be read")),
            }),
            _ => Ok(read),
        }
    }

    /// Reads one file alone.
    pub(super) fn of_file(
        importing: &Importing<'_>,
        file: &LogSource,
        marks: &LogMarks,
    ) -> Result<Self> {
        let mut read = Self::default();
        let found = importing.read_source(file, marks)?;
        read.add_file(importing, file.clone(), found, true);
        Ok(read)
    }

    /// The sessions by name, and what has them to be written.
    pub(super) fn take<'i>(&mut self, importing: &'i Importing<'i>) -> (Vec<Named>, Written<'i>) {
        // Names are given.
        self.taken = HashSet::new();
        let files = std::mem::take(&mut self.files);
        let written = Written {
            importing,
            files,
            again: None,
            counts: ImportedCounts::default(),
        };
        (std::mem::take(&mut self.sessions), written)
    }

    fn add_source(
        &mut self,
        path: String,
        report: Option<&ImportReport>,
        mark: Option<Arc<LogMark>>,
    ) -> usize {
        let report = report.map(|report| report.to_json().to_string());
        self.files.push(SourceFile { path, report, mark });
        self.files.len() - 1
    }

    fn add_files(&mut self, importing: &Importing<'_>, files: Vec<LogSource>) -> Result<()> {
        let progress = Progress::bar(files.len());
        let marks = importing.marks(&files);
        // It would be read twice for nothing.
        let alone = files.len() == 1 && self.files.is_empty();
        let mut files = files.into_iter().peekable();
        while files.peek().is_some() {
            let (mut some, mut bytes) = (Vec::new(), 0);
            while some.len() < TOGETHER.0 && bytes < TOGETHER.1 {
                let Some(file) = files.next() else { break };
                bytes = size_of(&file.path).saturating_add(bytes);
                some.push(file);
            }
            let found: Vec<Result<ReadFile>> = some
                .par_iter()
                .map(|file| {
                    let found = importing.read_source(file, &marks);
                    progress.step();
                    found
                })
                .collect();
            for (file, found) in some.into_iter().zip(found) {
                match found {
                    Ok(found) => self.add_file(importing, file, found, alone),
                    Err(failure) if !importing.args.strict && file.is_left_out(&failure) => {
                        self.skipped.push((file.path, failure.message()));
                        // What is not a log says more than what cannot be read.
                        if self.failed.as_ref().is_none_or(|first| {
                            first.exit() == Exit::Io && failure.exit() == Exit::Input
                        }) {
                            self.failed = Some(failure);
                        }
                    }
                    Err(failure) => return Err(failure),
                }
            }
        }
        Ok(())
    }

    /// Names the sessions of a file, which stay in memory if there is room, and else are read again later.
    fn add_file(
        &mut self,
        importing: &Importing<'_>,
        source: LogSource,
        found: ReadFile,
        alone: bool,
    ) {
        for made in &found.made {
            if let ReadSession::Session(session) = made {
                let remark = opened::remarks(session);
                if !self.remarks.contains(&remark) {
                    say(&remark);
                    self.remarks.insert(remark);
                }
            }
        }
        let names = importing.names(&source, &found, &mut self.taken);
        let path = Path::new(&source.path);
        // Standard input and pipes are read once.
        let can_be_left = source.path != input::STDIN && (path.is_file() || path.is_dir());
        let kept = self.kept.saturating_add(found.bytes);
        let is_unchanged = found.is_unchanged();
        let stays = alone || is_unchanged || !can_be_left || kept <= KEPT;
        if stays {
            self.kept = kept;
        }
        let report = found.report.as_ref().filter(|_| stays);
        let mark = found.mark.filter(|_| stays && !is_unchanged);
        let file = self.add_source(source.path, report, mark);
        let named = names.into_iter().zip(found.made).enumerate();
        let named = named.map(|(at, (name, made))| Named {
            name,
            file,
            at,
            copied: match &made {
                ReadSession::Session(session) => Some(session.history().committed().len()),
                ReadSession::Log(_) | ReadSession::Unchanged(_) | ReadSession::Stored(..) => None,
            },
            made: stays.then_some(made),
        });
        self.sessions.extend(named);
    }
}

/// The sessions of inputs as they are written, one after the other. Those of a file that was left are read again, and stay
/// until one of another file is taken.
pub(super) struct Written<'i> {
    pub(super) importing: &'i Importing<'i>,
    files: Vec<SourceFile>,
    /// A file that was read again, by its number, and its sessions.
    again: Option<(usize, Vec<Option<ReadSession>>)>,
    pub(super) counts: ImportedCounts,
}

/// What was written.
#[derive(Default)]
pub(super) struct ImportedCounts {
    /// The sessions that were such already, in numbers.
    pub(super) sessions: usize,
    pub(super) snapshots: usize,
    /// The logs of which a session was taken, and what they have.
    pub(super) logs: usize,
    pub(super) report: ImportReport,
    pub(super) existing: usize,
    /// What became of the sessions of logs that were there.
    pub(super) again: LogImport,
    /// The logs that the store does not take.
    pub(super) refused: Vec<RefusedLog>,
}

/// A log that is left out for what the store has: a session of its name, or one from which a text was erased.
#[derive(Serialize)]
pub(super) struct RefusedLog {
    pub(super) file: String,
    pub(super) message: String,
    /// What to do to import it.
    pub(super) help: String,
}

impl Written<'_> {
    /// What a session comes from: a path, and in a store its name there; `None` of standard input.
    pub(super) fn source(&self, named: &Named) -> Option<String> {
        let path = &self.files.get(named.file)?.path;
        match &named.made {
            Some(ReadSession::Stored(_, name)) => Some(format!("{path}#{name}")),
            _ => self.importing.source(path),
        }
    }

    /// Whether more than one file was read.
    pub(super) fn has_several(&self) -> bool {
        self.files.len() > 1
    }

    /// Leaves out the log of these sessions.
    ///
    /// # Errors
    /// It fails for what another log may have too, there is no other log, or `--strict` is given.
    pub(super) fn refuse(&mut self, sessions: &[Named], failure: Failure) -> Result<()> {
        let is_alone = self.files.len() == 1;
        let file = sessions.first().map(|named| named.file);
        match file.and_then(|file| self.files.get(file)) {
            Some(file) if failure.is_taken() && !is_alone && !self.importing.args.strict => {
                self.counts.refused.push(RefusedLog {
                    file: file.path.clone(),
                    message: failure.message(),
                    help: failure.help().unwrap_or_default().to_owned(),
                });
                Ok(())
            }
            _ => Err(failure),
        }
    }

    /// Fails if no log was taken, and names each.
    pub(super) fn check_refused(&self) -> Result<()> {
        let refused = &self.counts.refused;
        if refused.is_empty() || refused.len() < self.files.len() {
            return Ok(());
        }
        let faults = refused.iter().map(|log| CacheFault {
            file: log.file.clone(),
            message: format!("{}; {}", log.message, log.help),
        });
        Err(Failure::Plain {
            exit: Exit::Usage,
            code: Code::SessionExists.as_str(),
            message: format!("the store takes none of the {} logs", refused.len()),
            help: None,
            faults: faults.collect(),
        })
    }

    /// Counts the log of a file that stayed, once.
    fn count(&mut self, file: usize) {
        if let Some(report) = self.files[file].report.take() {
            self.counts.logs += 1;
            let report = serde_json::from_str(&report).ok();
            if let Some(report) = report.and_then(|json| ImportReport::from_json(&json)) {
                self.counts.report.add(&report);
            }
        }
    }

    /// Takes out the sessions of logs that are in the store as they would be now, and returns how many there are. A log whose
    /// sessions have other names there is read when it is written.
    pub(super) fn take_unchanged(&mut self, sessions: &mut Vec<Named>) -> usize {
        let renamed = sessions.iter().filter(|named| match &named.made {
            Some(ReadSession::Unchanged(name)) => *name != named.name,
            _ => false,
        });
        let renamed: HashSet<usize> = renamed.map(|named| named.file).collect();
        let before = sessions.len();
        sessions.retain_mut(|named| {
            if !matches!(named.made, Some(ReadSession::Unchanged(_))) {
                return true;
            }
            named.made = None;
            let is_renamed = renamed.contains(&named.file);
            if !is_renamed {
                self.count(named.file);
            }
            is_renamed
        });
        before - sessions.len()
    }

    /// As [`Written::take_uncounted`], of a session that counts as written.
    pub(super) fn take(&mut self, named: &mut Named) -> Result<(ReadSession, Option<String>)> {
        let taken = self.take_uncounted(named)?;
        self.count_taken(named);
        Ok(taken)
    }

    pub(super) fn count_taken(&mut self, named: &Named) {
        if let Some(snapshots) = named.copied {
            self.counts.sessions += 1;
            self.counts.snapshots += snapshots;
        }
        self.count(named.file);
    }

    /// The session to be written, and the mark of its log for it. Fails where a file that is read again has become another.
    pub(super) fn take_uncounted(
        &mut self,
        named: &mut Named,
    ) -> Result<(ReadSession, Option<String>)> {
        let is_again = |again: &(usize, _)| again.0 == named.file;
        if named.made.is_none() && !self.again.as_ref().is_some_and(is_again) {
            // What was read before goes first.
            if let Some((before, _)) = self.again.take() {
                self.files[before].mark = None;
            }
            let file = &mut self.files[named.file];
            let read = self.importing.read_file(&file.path)?;
            let report = read.report.map(|report| report.to_json().to_string());
            file.report = file.report.take().or(report);
            file.mark = read.mark;
            self.again = Some((named.file, read.made.into_iter().map(Some).collect()));
        }
        let file = &self.files[named.file];
        let again = self.again.as_mut();
        let again = || again.and_then(|(_, made)| made.get_mut(named.at)?.take());
        let made = named.made.take().or_else(again).ok_or_else(|| {
            let message = "it has changed since it was read first; import it again";
            Failure::file(&file.path, &io::Error::other(message))
        })?;
        let mark = file.mark.as_ref();
        Ok((made, mark.map(|mark| mark.with_session(named.at))))
    }
}

impl Importing<'_> {
    /// The files of inputs that are files and directories, to follow them.
    pub(super) fn files(&self) -> Result<Vec<LogSource>> {
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
        of_directory: impl Fn(&str) -> Result<Vec<LogSource>>,
    ) -> Result<Vec<LogSource>> {
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

    /// Reads a file; one that a mark says is as it was is not read.
    fn read_source(&self, file: &LogSource, marks: &LogMarks) -> Result<ReadFile> {
        file.check()?;
        match marks.unchanged(&file.path) {
            Some((mark, names)) => Ok(ReadFile {
                made: names.into_iter().map(ReadSession::Unchanged).collect(),
                report: Some(mark.report.clone()),
                mark: Some(mark),
                bytes: 0,
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
        match options.filter(|_| !self.args.skip_existing && address.exists()) {
            None => LogMarks::default(),
            Some(options) => {
                let paths = files.iter().map(|file| &*file.path).collect();
                let read = |store| LogMarks::read(store, &paths, options);
                self.store().and_then(read).unwrap_or_default()
            }
        }
    }

    /// The sessions of a log, with its mark if it is known which bytes were `read`.
    fn logs_of(&self, imported: Imported, read: Option<LogBytes>, bytes: usize) -> ReadFile {
        let options = marked_options(&self.options, self.limits).filter(|_| self.is_into_store());
        let mark = read.zip(options);
        let mark = mark.map(|(read, options)| Arc::new(LogMark::new(read, options, &imported)));
        let made = imported.sessions.into_iter();
        ReadFile {
            made: made.map(|log| ReadSession::Log(Box::new(log))).collect(),
            report: Some(imported.report),
            mark,
            bytes,
        }
    }

    fn read_file(&self, file: &str) -> Result<ReadFile> {
        let (path, limits) = (Path::new(file), self.limits);
        let as_it_is = |session: Session| {
            self.check_redacted(file)?;
            Ok(ReadFile {
                made: vec![ReadSession::Session(Arc::new(session))],
                bytes: size_of(file),
                ..ReadFile::default()
            })
        };
        let followed = self.followed.as_ref();
        let read = followed.and_then(|logs| logs.look_with(path, &self.options, limits));
        if let Some((imported, bytes)) = read {
            return Ok(self.logs_of(imported, Some(bytes), size_of(file)));
        }
        // What is there before and after was read. A pipe can be read once only.
        let is_marked = self.is_into_store() && (path.is_file() || is_opencode(path));
        let bytes = || is_marked.then(|| LogBytes::at(path).ok()).flatten();
        let before = bytes();
        let of_log = |imported: Imported, size: usize| {
            let read = before.filter(|before| bytes().as_ref() == Some(before));
            Ok(self.logs_of(imported, read, size))
        };
        match import_opencode(path, &self.options) {
            Ok(None) => {}
            Ok(Some(imported)) => return of_log(imported, size_of(file)),
            Err(error) => return Err(failed(file, error)),
        }
        if self.is_into_store() && path.is_dir() {
            return as_it_is(opened::open(path, limits)?);
        }
        if let Some(imported) = self.import_large(file)? {
            return of_log(imported, SPOOLED);
        }
        if path.is_dir() {
            return Err(
                Failure::usage(format!("`{file}` is a directory without a log")).with_help(NO_LOG),
            );
        }
        let bytes = input::read(file, limits)?;
        let name = input::name(file);
        if bytes.trim_ascii().is_empty() {
            return Err(no_messages(format!("{} is empty", name.display())));
        }
        let error = match import(&bytes, &self.options) {
            Ok(_) if bytes.trim_ascii() == b"[]" => {
                return Err(no_messages(format!("{} has no messages", name.display())));
            }
            Ok(imported) => return of_log(imported, bytes.len()),
            Err(error) if file == input::STDIN && !self.is_into_store() => {
                return Err(Failure::Input(vec![(name, error)], None));
            }
            Err(error) => error,
        };
        let session = if file == input::STDIN {
            Session::from_slice(&bytes).map_err(|error| Failure::Input(vec![(name, error)], None))
        } else {
            opened::open(path, limits)
        };
        match session {
            Ok(session) if self.is_into_store() => as_it_is(session),
            Ok(_) => {
                let message = format!("{file} is a session already, not a log");
                Err(Failure::plain(Exit::Input, message)
                    .with_help(format!("pactql select {} \"*\"", quoted(file))))
            }
            Err(failure) if self.is_into_store() && begins_as_session(&bytes) => Err(failure),
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

    /// What a log that is large makes; `None` if it is not, or no JSON Lines.
    fn import_large(&self, path: &str) -> Result<Option<Imported>> {
        // What is not of the named format may be a session, which is read as a whole.
        let directory = match self.target {
            ImportTarget::Store(address) if self.options.format.is_none() => address.directory(),
            _ => return Ok(None),
        };
        let opened = self.open_large(path);
        let Some(log) = opened.map_err(|error| failed(path, error.into()))? else {
            return Ok(None);
        };
        let unwritten = |error| Failure::output(&directory.display().to_string(), &error);
        let spool = tempfile::tempfile_in(&directory).map_err(unwritten)?;
        import_file(&log, spool, &self.options).map_err(|error| match error {
            LogError::Spool(error) => unwritten(error),
            error => failed(path, error),
        })
    }

    /// Gives each session of a file a unique file name, without an extension.
    fn names(&self, file: &LogSource, read: &ReadFile, taken: &mut HashSet<String>) -> Vec<String> {
        let known: Vec<KnownNames<'_>> = match &read.mark {
            Some(mark) if read.is_unchanged() => mark.names().collect(),
            _ => read.made.iter().map(ReadSession::known).collect(),
        };
        logs::names(&file.stem, &known, taken)
    }

    /// What the sessions of a path come from, as a store notes it; `None` of standard input.
    fn source(&self, path: &str) -> Option<String> {
        let source = Redaction::apply_text(&self.options.redact, path);
        (path != input::STDIN).then_some(source)
    }

    /// Refuses what would be copied as it is although something is to be taken out.
    fn check_redacted(&self, input: &str) -> Result<()> {
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
    let help = "expected chat messages: a list, an object with `messages`, or one message a line";
    Failure::plain(Exit::Input, message).with_help(help)
}

/// The mark of a log, and the names of its sessions in the store.
type Marked = (Arc<LogMark>, Vec<String>);

/// Of logs by their paths: the names of the sessions, and what was kept with each.
#[derive(Default)]
pub(super) struct LogMarks {
    options: Vec<String>,
    logs: HashMap<String, Vec<(String, String)>>,
}

impl LogMarks {
    /// The marks in a store of the logs at these paths.
    pub(super) fn read(store: &Store, paths: &HashSet<&str>, options: Vec<String>) -> Result<Self> {
        let mut logs: HashMap<String, Vec<(String, String)>> = HashMap::new();
        for session in store.marks(paths)? {
            let of_log = logs.entry(session.source).or_default();
            of_log.push((session.name, session.mark));
        }
        Ok(Self { options, logs })
    }

    /// The mark of a log if it is as it was. Linear in a log of the same length.
    pub(super) fn unchanged(&self, path: &str) -> Option<Marked> {
        let kept = self.logs.get(path)?.clone();
        let mut marked = LogMark::whole(kept).into_iter();
        let (mark, names) = marked.find(|(mark, _)| mark.holds(Path::new(path), &self.options))?;
        Some((Arc::new(mark), names))
    }
}

/// The options that decide what is made of a log; `None` if it gets no mark.
pub(super) fn marked_options(options: &ImportOptions, limits: Limits) -> Option<Vec<String>> {
    if !options.redact.is_empty() {
        return None;
    }
    let given = [
        options.format.map(|it| format!("--from {}", it.name())),
        match &options.location {
            MessageLocation::Usual => None,
            MessageLocation::Messages(at) => Some(format!("--messages {}", at.as_str())),
            MessageLocation::Steps(at) => Some(format!("--steps {}", at.as_str())),
        },
        options.lenient.then(|| "--lenient".to_owned()),
        options.strict.then(|| "--strict".to_owned()),
        (limits != Limits::default()).then(|| format!("--max-input {}", limits.max_input)),
    ];
    Some(given.into_iter().flatten().collect())
}
