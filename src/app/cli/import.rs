//! `pactql import`: sessions made of chat logs, and files of sessions, in a store.

use super::command::{Invocation, Run, say, stream};
use super::import_read::{Made, Named, Read};
use super::import_store::{follow, log_report, write_store};
use super::input;
use super::options::named;
use super::sessions::open_store;
use super::store::{import_copy, is_copy};
use crate::app::present::stores::{Access, Address};
use crate::app::present::{Exit, Failure, counted, printable};
use crate::logs::{Format, ImportOptions, MessageLocation, Pointer, Redaction, Report};
use crate::store::{LogImport, Store};
use crate::tree::Limits;
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Make sessions of the logs of agents; into a store also of files of sessions, and of other stores.
///
/// The format is found by content. A provider call is a cycle, and a reply ends a turn; messages
/// after the last reply are the working state. A report on standard error counts what was
/// understood, kept unchanged and skipped. In a store a session is named by its file, without the endings; one of another
/// store keeps its name, as do those of a copy that `store parquet` made. A log that is imported again adds what is new. Of a directory, every file is imported.
#[derive(Args, Debug)]
pub(super) struct Import {
    /// Logs to read, plain or gzip; `-` is standard input. Into a store also directories, sessions and
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
    force: bool,
    /// Leave out sessions whose name the store has already.
    #[arg(long)]
    pub(super) skip_existing: bool,
    /// Keep reading as the logs grow, until interrupted. Into a store.
    #[arg(long, requires = "output", conflicts_with = "skip_existing")]
    follow: bool,
    /// Leave out inputs that are neither logs nor sessions, and say so.
    #[arg(long)]
    pub(super) skip_invalid: bool,
    /// The format of the logs [default: found by content].
    #[arg(long, value_name = "FORMAT", value_parser = named(&Format::ALL, Format::name))]
    from: Option<Format>,
    /// Where the messages are: a JSON pointer, in which `*` is every element. Each match is one
    /// session.
    #[arg(long, value_name = "POINTER", value_parser = Pointer::parse, conflicts_with = "steps")]
    messages: Option<Pointer>,
    /// Where the inputs of single steps are: each match is one snapshot of the same session.
    #[arg(long, value_name = "POINTER", value_parser = Pointer::parse)]
    steps: Option<Pointer>,
    /// Import a log of which less than half is understood, and pass over lines that are no JSON.
    #[arg(long)]
    lenient: bool,
    /// What is taken out of the logs before anything is written: a regular expression. Several are
    /// possible; the report counts the matches of each.
    #[arg(long, value_name = "PATTERN", value_parser = Redaction::parse)]
    redact: Vec<Redaction>,
    /// Write every snapshot as a whole document, even if its difference is shorter.
    #[arg(long)]
    full: bool,
}

/// Where sessions are written.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    Stdout,
    File(&'a str),
    Directory(&'a str),
    Store(Address<'a>),
}

/// An import with its options resolved.
pub(super) struct Importing<'a> {
    pub(super) args: &'a Import,
    pub(super) options: ImportOptions,
    pub(super) target: Target<'a>,
    pub(super) limits: Limits,
}

/// What was written.
#[derive(Default)]
pub(super) struct Written {
    /// The sessions that were such already, in numbers.
    sessions: usize,
    snapshots: usize,
    /// The numbers of the logs.
    logs: BTreeSet<usize>,
    /// How many sessions were left out because their name is taken.
    pub(super) existing: usize,
    /// What became of the sessions of logs that were there, if one was.
    pub(super) again: Option<LogImport>,
}

impl Written {
    pub(super) fn of(sessions: &[Named]) -> Self {
        let mut written = Self::default();
        for named in sessions {
            match named.made.copied() {
                Some(snapshots) => {
                    written.sessions += 1;
                    written.snapshots += snapshots;
                }
                None => written.logs.extend(named.log),
            }
        }
        written
    }
}

impl Run for Import {
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        let importing = Importing {
            args: self,
            options: ImportOptions {
                format: self.from,
                lenient: self.lenient,
                redact: self.redact.clone(),
                location: match (&self.messages, &self.steps) {
                    (Some(pointer), _) => MessageLocation::Messages(pointer.clone()),
                    (None, Some(pointer)) => MessageLocation::Steps(pointer.clone()),
                    (None, None) => MessageLocation::Usual,
                },
            },
            target: self.target()?,
            limits: with.limits,
        };
        if self.logs.iter().any(|log| is_copy(log)) {
            let written = importing.copies()?;
            importing.say_report(&Read::default(), &written, with.is_json());
            return Ok(Exit::Ok);
        }
        if self.follow {
            return follow(&importing);
        }
        let mut read = Read::of(&importing)?;
        // Nothing is written until everything has been read without a fault.
        let sessions = std::mem::take(&mut read.sessions);
        let written = match importing.target {
            Target::Store(address) => write_store(&importing, address, sessions)?,
            target => self.write_files(target, &sessions)?,
        };
        importing.say_report(&read, &written, with.is_json());
        Ok(Exit::Ok)
    }
}

impl Importing<'_> {
    /// Whether sessions go into a store, so that sessions are read too.
    pub(super) fn is_into_store(&self) -> bool {
        matches!(self.target, Target::Store(_))
    }

    /// The directory for what does not fit into memory, if logs are not read as a whole.
    pub(super) fn spools(&self) -> Option<PathBuf> {
        match self.target {
            Target::Store(address) => Some(address.directory()),
            _ => None,
        }
    }

    /// Opens the store, which is made if it is missing.
    pub(super) fn open(&self, address: Address<'_>) -> Result<Store, Failure> {
        open_store(address.store, Access::Create)
    }

    /// Says what was imported, what was copied, and what was left out.
    fn say_report(&self, read: &Read, written: &Written, json: bool) {
        let mut report = Report::default();
        let logs = written.logs.iter();
        for of_log in logs.filter_map(|log| read.reports.get(*log)) {
            report.add(of_log);
        }
        let (json_of_logs, text_of_logs) = log_report(written.again.as_ref());
        if json {
            let mut json = report.to_json();
            if self.is_into_store() {
                json["copied"] =
                    json!({"sessions": written.sessions, "snapshots": written.snapshots});
                json["store"] = json_of_logs;
            }
            if self.args.skip_existing {
                json["existing"] = json!(written.existing);
            }
            if self.args.skip_invalid {
                let skipped = read.skipped.iter();
                json["invalid"] = skipped
                    .map(|(file, message)| json!({"file": file, "message": message}))
                    .collect();
            }
            return say(&format!("{json}\n"));
        }
        let mut text = String::new();
        if !written.logs.is_empty() || !self.is_into_store() {
            text = format!("{report}\n");
        }
        if written.sessions > 0 {
            let sessions = counted(written.sessions as u64, "session");
            let snapshots = counted(written.snapshots as u64, "snapshot");
            text += &format!("copied {sessions}, {snapshots}\n");
        }
        text += &text_of_logs;
        if written.existing > 0 {
            let existing = counted(written.existing as u64, "session");
            text += &format!("left {existing} as they are in the store\n");
        }
        for (file, message) in &read.skipped {
            text += &format!("skipped {}: {}\n", printable(file), printable(message));
        }
        if text.is_empty() {
            text += "note: there is nothing to import\n";
        }
        say(&text);
    }

    /// Inserts the sessions of copies that `store parquet` made.
    fn copies(&self) -> Result<Written, Failure> {
        let args = self.args;
        let is_plain = args.name.is_none() && !args.follow && !args.skip_existing;
        let address = match self.target {
            Target::Store(address) if is_plain && address.glob().is_empty() => address,
            _ => {
                let message =
                    "a copy of a store is imported into a store, as a whole, with its names";
                return Err(Failure::usage(message).with_help("pactql import DIR -o agents.db"));
            }
        };
        if let Some(other) = args.logs.iter().find(|log| !is_copy(log)) {
            let message = format!("`{other}` is not a copy of a store, as the others are");
            return Err(Failure::usage(message).with_help("import it by itself"));
        }
        let store = self.open(address)?;
        let mut written = Written::default();
        for copy in &args.logs {
            let (sessions, snapshots) = import_copy(copy, &store)?;
            written.sessions += sessions;
            written.snapshots += snapshots;
        }
        Ok(written)
    }
}

/// The failure for several sessions where there is a place for one.
pub(super) fn several(target: Target<'_>, count: usize) -> Failure {
    let place = match target {
        Target::File(path) => format!("the file `{path}`"),
        Target::Store(address) => {
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

impl Import {
    /// Where sessions are written.
    fn target(&self) -> Result<Target<'_>, Failure> {
        let target = match self.output.as_deref() {
            None | Some("-") => Target::Stdout,
            Some(word) => match Address::of(word) {
                Some(address) => Target::Store(address),
                None if word.ends_with('/') || Path::new(word).is_dir() => Target::Directory(word),
                None => Target::File(word),
            },
        };
        match target {
            Target::Store(address) if self.name.is_some() && !address.glob().is_empty() => {
                Err(Failure::usage("the session is named twice")
                    .with_help("give `--name`, or `-o STORE#name`"))
            }
            Target::Store(_) => Ok(target),
            _ if self.name.is_some() => Err(Failure::usage("`--name` names a session of a store")
                .with_help("`-o` names a file")),
            _ if self.follow => Err(Failure::usage("`--follow` writes into a store")
                .with_help("give a store: -o agents.db")),
            _ => Ok(target),
        }
    }

    /// Writes the sessions to files, or to standard output.
    fn write_files(&self, target: Target<'_>, sessions: &[Named]) -> Result<Written, Failure> {
        match (target, sessions) {
            (_, []) if self.skip_invalid => {}
            (Target::Directory(path), _) => self.write_directory(path, sessions)?,
            (Target::File(path), [named]) => {
                input::check_output(path, &self.inputs(), self.force)?;
                input::write(path, |out| self.write_log(named, out))?;
            }
            (Target::Stdout, [named]) => {
                stream(|out| self.write_log(named, out))?;
            }
            // A name without an extension is a directory's if there are several sessions.
            (Target::File(path), _)
                if Path::new(path).extension().is_none() && !Path::new(path).exists() =>
            {
                self.write_directory(path, sessions)?;
            }
            _ => return Err(several(target, sessions.len())),
        }
        Ok(Written::of(sessions))
    }

    fn write_log(&self, named: &Named, out: &mut dyn Write) -> io::Result<()> {
        match &named.made {
            Made::Log(log) => log.recording.write_jsonl(out, self.full),
            // Read for stores only.
            Made::Session(_) | Made::Stored(..) => Ok(()),
        }
    }

    /// The logs, as inputs that are not written to.
    fn inputs(&self) -> Vec<&str> {
        self.logs.iter().map(String::as_str).collect()
    }

    /// Writes one file per session into the directory `path`, which is created if it is missing.
    fn write_directory(&self, path: &str, sessions: &[Named]) -> Result<(), Failure> {
        let files: Vec<String> = sessions
            .iter()
            .map(|named| Path::new(path).join(format!("{}.jsonl", named.name)))
            .map(|file| file.to_string_lossy().into_owned())
            .collect();
        input::write_each(sessions, &files, &self.inputs(), self.force, |named| {
            Ok(|out: &mut dyn Write| self.write_log(named, out))
        })
    }
}
