//! `pactql import`: sessions made of chat logs, and files of sessions, in a store.

use super::command::{Invocation, RunCommand, print, say, stream};
pub(super) use super::import_read::ImportArgs;
use super::import_read::{
    ImportTarget, ImportedCounts, Importing, Named, Read, ReadSession, Written, several,
};
use super::import_store::{follow, log_report, write_store};
use super::input;
use super::sessions::open_store;
use super::store::{import_copy, is_copy};
use crate::app::present::followed::FollowedLogs;
use crate::app::present::stores::{Access, StoreAddress};
use crate::app::present::{Exit, Failure, counted, printable};
use crate::logs::{ImportOptions, MessageLocation};
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

/// How many of the files that were left out are named.
const SHOWN: usize = 20;

impl RunCommand for ImportArgs {
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        let importing = Importing {
            args: self,
            options: ImportOptions {
                format: self.from,
                lenient: self.lenient,
                strict: self.strict,
                redact: self.redact.clone(),
                location: match (&self.messages, &self.steps) {
                    (Some(pointer), _) => MessageLocation::Messages(pointer.clone()),
                    (None, Some(pointer)) => MessageLocation::Steps(pointer.clone()),
                    (None, None) => MessageLocation::Usual,
                },
            },
            target: self.target()?,
            limits: with.limits,
            opened: OnceLock::new(),
            followed: self.follow.then(FollowedLogs::default),
        };
        if self.logs.iter().any(|log| is_copy(log)) {
            let written = importing.copies()?;
            return importing.report(&Read::default(), &written, with.is_json());
        }
        if self.follow {
            return follow(&importing);
        }
        let mut read = Read::new(&importing)?;
        // Nothing is written until everything has been read without a fault.
        let (sessions, written) = read.take(&importing);
        let written = match importing.target {
            ImportTarget::Store(address) => write_store(written, address, sessions)?,
            target => self.write_files(target, written, sessions)?,
        };
        importing.report(&read, &written, with.is_json())
    }
}

impl Importing<'_> {
    /// Says what was read and written; as JSON it is the result, unless that is the session itself.
    fn report(&self, read: &Read, written: &ImportedCounts, json: bool) -> Result<Exit, Failure> {
        let report = &written.report;
        let (json_of_logs, text_of_logs) = log_report(&written.again);
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
            if !read.skipped.is_empty() {
                let skipped = read.skipped.iter();
                json["invalid"] = skipped
                    .map(|(file, message)| json!({"file": file, "message": message}))
                    .collect();
            }
            let line = format!("{json}\n");
            if !matches!(self.target, ImportTarget::Stdout) {
                return print(&line);
            }
            say(&line);
            return Ok(Exit::Ok);
        }
        let mut text = String::new();
        if written.logs > 0 || !self.is_into_store() {
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
        for (file, message) in read.skipped.iter().take(SHOWN) {
            text += &format!("skipped {}: {}\n", printable(file), printable(message));
        }
        if let Some(more) = read
            .skipped
            .len()
            .checked_sub(SHOWN)
            .filter(|more| *more > 0)
        {
            text += &format!("skipped {more} more\n");
        }
        if text.is_empty() {
            text += "note: there is nothing to import\n";
        }
        say(&text);
        Ok(Exit::Ok)
    }

    fn copies(&self) -> Result<ImportedCounts, Failure> {
        let args = self.args;
        let is_plain = args.name.is_none() && !args.follow && !args.skip_existing;
        let address = match self.target {
            ImportTarget::Store(address) if is_plain && address.glob().is_empty() => address,
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
        let store = open_store(address.store, Access::Create)?;
        let mut written = ImportedCounts::default();
        for copy in &args.logs {
            let (sessions, snapshots) = import_copy(copy, &store)?;
            written.sessions += sessions;
            written.snapshots += snapshots;
        }
        Ok(written)
    }
}

impl ImportArgs {
    fn target(&self) -> Result<ImportTarget<'_>, Failure> {
        let target = match self.output.as_deref() {
            None | Some("-") => ImportTarget::Stdout,
            Some(word) => match StoreAddress::parse(word) {
                Some(address) => ImportTarget::Store(address),
                None if word.ends_with('/') || Path::new(word).is_dir() => {
                    ImportTarget::Directory(word)
                }
                None => ImportTarget::File(word),
            },
        };
        match target {
            ImportTarget::Store(address) if self.name.is_some() && !address.glob().is_empty() => {
                Err(Failure::usage("the session is named twice")
                    .with_help("give `--name`, or `-o STORE#name`"))
            }
            ImportTarget::Store(_) => Ok(target),
            _ if self.name.is_some() => Err(Failure::usage("`--name` names a session of a store")
                .with_help("`-o` names a file")),
            _ if self.follow => Err(Failure::usage("`--follow` writes into a store")
                .with_help("give a store: -o agents.db")),
            _ => Ok(target),
        }
    }

    fn write_files(
        &self,
        target: ImportTarget<'_>,
        mut written: Written<'_>,
        mut sessions: Vec<Named>,
    ) -> Result<ImportedCounts, Failure> {
        match (target, &mut sessions[..]) {
            (ImportTarget::Directory(path), _) => {
                self.write_directory(path, &mut written, sessions)?;
            }
            (ImportTarget::File(path), [named]) => {
                input::check_output(path, &self.logs, self.force)?;
                let (made, _) = written.take(named)?;
                input::write(path, |out| self.write_log(&made, out))?;
            }
            (ImportTarget::Stdout, [named]) => {
                let (made, _) = written.take(named)?;
                stream(|out| self.write_log(&made, out))?;
            }
            // A name without an extension is a directory's if there are several sessions.
            (ImportTarget::File(path), _)
                if Path::new(path).extension().is_none() && !Path::new(path).exists() =>
            {
                self.write_directory(path, &mut written, sessions)?;
            }
            _ => return Err(several(target, sessions.len())),
        }
        Ok(written.counts)
    }

    fn write_log(&self, made: &ReadSession, out: &mut dyn Write) -> io::Result<()> {
        match made {
            ReadSession::Log(log) => log.recording.write_jsonl(out, self.full),
            // Read for stores only.
            ReadSession::Unchanged(_) | ReadSession::Session(_) | ReadSession::Stored(..) => Ok(()),
        }
    }

    /// Writes one file per session into the directory `path`, which is created if it is missing.
    fn write_directory(
        &self,
        path: &str,
        written: &mut Written<'_>,
        sessions: Vec<Named>,
    ) -> Result<(), Failure> {
        let files: Vec<String> = sessions
            .iter()
            .map(|named| Path::new(path).join(format!("{}.jsonl", named.name)))
            .map(|file| file.to_string_lossy().into_owned())
            .collect();
        let sessions = sessions.into_iter();
        input::write_each(sessions, &files, &self.logs, self.force, |mut named| {
            let (made, _) = written.take(&mut named)?;
            Ok(move |out: &mut dyn Write| self.write_log(&made, out))
        })
    }
}
