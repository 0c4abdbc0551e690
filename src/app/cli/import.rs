//! `pactql import`: sessions made of chat logs, and files of sessions, in a store.

use super::command::{Invocation, Run, say, stream};
use super::import_follow::follow;
use super::import_read::{Inputs, Made, Named, Read};
use super::import_store::{Brought, Into};
use super::import_target::{Target, several};
use super::input;
use super::options::{Limits, named};
use super::progress::Progress;
use super::store::{import_copy, is_copy};
use super::words::{joined, quoted};
use crate::app::present::stores::Address;
use crate::app::present::{Exit, Failure, counted, printable};
use crate::logs::{Format, ImportOptions, MessageLocation, Pointer, Redaction, Report};
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

/// Make sessions of the logs of agents; into a store also of files of sessions, and of other stores.
///
/// The format is found by content. A provider call is a cycle, and a reply ends a turn; messages
/// after the last reply are the working state. A report on standard error counts what was
/// understood, kept unchanged and skipped. In a store a session is named by its file, without the endings; one of another
/// store keeps its name, as do those of a copy that `store parquet` made. A log that is imported again adds what is new. Of a directory, every file is imported.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql import chat.json -o session.jsonl
  pactql import ~/.claude/projects -o agents.db --follow")]
pub(super) struct Import {
    /// Logs to read, plain or gzip; `-` is standard input. Into a store also directories, sessions and
    /// stores.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<String>,
    /// Where to write: a file, a directory (an existing one, or a name that ends in `/`) for one file
    /// per session, a store, or `STORE#name` [default: standard output].
    #[arg(short, long, value_name = "PATH")]
    output: Option<String>,
    /// The name of the one session in a store.
    #[arg(long, value_name = "NAME", requires = "output")]
    name: Option<String>,
    /// Replace files that exist.
    #[arg(long)]
    force: bool,
    /// Leave out sessions whose name the store has already.
    #[arg(long)]
    skip_existing: bool,
    /// Keep reading as the logs grow, until interrupted. Into a store.
    #[arg(long, requires = "output", conflicts_with = "skip_existing")]
    follow: bool,
    /// Leave out inputs that are neither logs nor sessions, and say so.
    #[arg(long)]
    skip_invalid: bool,
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
    #[command(flatten)]
    limits: Limits,
}

impl Run for Import {
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        let location = match (&self.messages, &self.steps) {
            (Some(pointer), _) => MessageLocation::Messages(pointer.clone()),
            (None, Some(pointer)) => MessageLocation::Steps(pointer.clone()),
            (None, None) => MessageLocation::Usual,
        };
        let options = ImportOptions {
            format: self.from,
            lenient: self.lenient,
            redact: self.redact.clone(),
            location,
        };
        let target = self.target()?;
        let into_store = matches!(target, Target::Store(_));
        self.check_words()?;
        if self.logs.iter().any(|log| is_copy(log)) {
            return self.copies(&target, with);
        }
        let inputs = Inputs {
            options,
            limits: &self.limits,
            into_store,
            skip_invalid: self.skip_invalid,
            has_output: self.output.is_some(),
            spools: match &target {
                Target::Store(address) => Some(address.directory()),
                _ => None,
            },
        };
        if self.follow {
            let Target::Store(address) = target else {
                return Err(Failure::usage("`--follow` writes into a store")
                    .with_help("give a store: -o agents.db"));
            };
            return follow(&inputs, &self.logs, &self.place_in(address));
        }
        let mut found = inputs.read(&self.logs)?;
        // Nothing is written until everything has been read without a fault.
        let sessions = std::mem::take(&mut found.sessions);
        let (copied, brought) = self.write(target, sessions)?;
        self.say_report(&found, &copied, &brought, with.is_json());
        Ok(Exit::Ok)
    }
}

/// What was written.
#[derive(Default)]
struct Written {
    /// The sessions that were such already, in numbers.
    sessions: usize,
    snapshots: usize,
    /// The numbers of the logs.
    logs: BTreeSet<usize>,
}

impl Written {
    fn of(sessions: &[Named]) -> Self {
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

impl Import {
    /// Refuses a store that is meant as the output.
    fn check_words(&self) -> Result<(), Failure> {
        match (&self.logs[..], &self.output) {
            ([others @ .., last], None) if !others.is_empty() && Address::of(last).is_some() => {
                let (store, others) = (quoted(last), joined(others));
                Err(Failure::usage("the output is the value of `-o`")
                    .with_help(format!("pactql import {others} -o {store}")))
            }
            _ => Ok(()),
        }
    }

    /// Says what was imported, what was copied, and what was left out.
    fn say_report(&self, found: &Read, written: &Written, brought: &Brought, json: bool) {
        let into_store = matches!(self.target(), Ok(Target::Store(_)));
        let existing = brought.existing;
        let mut report = Report::default();
        let logs = written.logs.iter();
        for of_log in logs.filter_map(|log| found.reports.get(*log)) {
            report.add(of_log);
        }
        say(&if json {
            let mut json = report.to_json();
            if into_store {
                json["copied"] =
                    json!({"sessions": written.sessions, "snapshots": written.snapshots});
            }
            if self.skip_existing {
                json["existing"] = json!(existing);
            }
            if into_store {
                json["store"] = brought.to_json();
            }
            if self.skip_invalid {
                let skipped = found.skipped.iter();
                let skipped =
                    skipped.map(|(file, message)| json!({"file": file, "message": message}));
                json["invalid"] = skipped.collect();
            }
            format!("{json}\n")
        } else {
            let mut text = String::new();
            if !written.logs.is_empty() || !into_store {
                text = format!("{report}\n");
            }
            if written.sessions > 0 {
                let sessions = counted(written.sessions as u64, "session");
                let snapshots = counted(written.snapshots as u64, "snapshot");
                text += &format!("copied {sessions}, {snapshots}\n");
            }
            text += &brought.to_string();
            if existing > 0 {
                let existing = counted(existing as u64, "session");
                text += &format!("left {existing} as they are in the store\n");
            }
            for (file, message) in &found.skipped {
                text += &format!("skipped {}: {}\n", printable(file), printable(message));
            }
            if text.is_empty() {
                "note: there is nothing to import\n".to_owned()
            } else {
                text
            }
        });
    }

    /// Inserts the sessions of copies that `export --parquet` made.
    fn copies(&self, target: &Target<'_>, with: &Invocation) -> Result<Exit, Failure> {
        let help = "pactql import DIR -o agents.db";
        let Target::Store(address) = target else {
            return Err(
                Failure::usage("a copy of a store is imported into a store").with_help(help)
            );
        };
        if let Some(other) = self.logs.iter().find(|log| !is_copy(log)) {
            let message = format!("`{other}` is not a copy of a store, as the others are");
            return Err(Failure::usage(message).with_help("import it by itself"));
        }
        if self.name.is_some() || !address.glob().is_empty() || self.follow || self.skip_existing {
            let message = "a copy of a store is imported as a whole, with its names";
            return Err(Failure::usage(message).with_help(help));
        }
        let store = self.place_in(*address).open()?;
        let mut written = Written::default();
        for copy in &self.logs {
            let (sessions, snapshots) = import_copy(copy, &store)?;
            written.sessions += sessions;
            written.snapshots += snapshots;
        }
        self.say_report(
            &Read::default(),
            &written,
            &Brought::default(),
            with.is_json(),
        );
        Ok(Exit::Ok)
    }

    /// Where sessions are written.
    fn target(&self) -> Result<Target<'_>, Failure> {
        let output = self.output.as_deref();
        let target = match output {
            None | Some("-") => Target::Stdout,
            Some(word) => match Address::of(word) {
                Some(address) => Target::Store(address),
                None if word.ends_with('/') || Path::new(word).is_dir() => Target::Directory(word),
                None => Target::File(word),
            },
        };
        match (&target, &self.name) {
            (Target::Store(address), Some(_)) if *address.glob() != *"" => {
                Err(Failure::usage("the session is named twice")
                    .with_help("give `--name`, or `-o STORE#name`"))
            }
            (Target::Store(_), _) | (_, None) => Ok(target),
            (_, Some(_)) => Err(Failure::usage("`--name` names a session of a store")
                .with_help("`-o` names a file")),
        }
    }

    /// How sessions are written into a store.
    fn place_in<'a>(&'a self, address: Address<'a>) -> Into<'a> {
        Into {
            address,
            name: self.name.as_deref(),
            skip_existing: self.skip_existing,
        }
    }

    /// Writes the sessions. Returns what was written, and what was in the store already.
    fn write(
        &self,
        target: Target<'_>,
        sessions: Vec<Named>,
    ) -> Result<(Written, Brought), Failure> {
        if let Target::Store(address) = target {
            let mut written = Written::default();
            let brought = self.place_in(address).write(sessions, |kept| {
                written = Written::of(kept);
            })?;
            return Ok((written, brought));
        }
        let written = Written::of(&sessions);
        let one = |made: &Made, out: &mut dyn Write| match made {
            Made::Log(log) => log.recording.write_jsonl(out, self.full),
            // Read for stores only.
            Made::Session(_) | Made::Stored(..) => Ok(()),
        };
        match (target, &sessions[..]) {
            (_, []) if self.skip_invalid => Ok(()),
            (Target::Directory(path), _) => self.write_directory(path, &sessions, one),
            (Target::File(path), [named]) => {
                input::check_output(path, &self.inputs(), self.force)?;
                input::write(path, |out| one(&named.made, out))
            }
            (Target::Stdout, [named]) => stream(|out| one(&named.made, out)).map(|_| ()),
            // A name without an extension is a directory's if there are several sessions.
            (Target::File(path), sessions)
                if Path::new(path).extension().is_none() && !Path::new(path).exists() =>
            {
                self.write_directory(path, sessions, one)
            }
            (target, sessions) => Err(several(&target, sessions.len())),
        }?;
        Ok((written, Brought::default()))
    }

    /// The logs, as inputs that are not written to.
    fn inputs(&self) -> Vec<&str> {
        self.logs.iter().map(String::as_str).collect()
    }

    /// Writes one file per session into the directory `path`, which is created if it is missing.
    fn write_directory(
        &self,
        path: &str,
        sessions: &[Named],
        one: impl Fn(&Made, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let files: Vec<String> = sessions
            .iter()
            .map(|named| Path::new(path).join(format!("{}.jsonl", named.name)))
            .map(|file| file.to_string_lossy().into_owned())
            .collect();
        for file in &files {
            input::check_output(file, &self.inputs(), self.force)?;
        }
        std::fs::create_dir_all(path).map_err(|error| Failure::output(path, &error))?;
        let progress = Progress::bar(sessions.len());
        for (named, file) in sessions.iter().zip(&files) {
            if let Some(inside) = Path::new(file).parent() {
                std::fs::create_dir_all(inside).map_err(|error| Failure::output(file, &error))?;
            }
            input::write(file, |out| one(&named.made, out))?;
            progress.step();
        }
        Ok(())
    }
}
