//! `pactql import`: sessions made of chat logs.

use super::command::{Run, say, stream};
use super::input;
use super::options::{Color, Limits, Messages};
use super::progress::Progress;
use super::words::quoted;
use crate::interop::{
    ImportOptions, Imported, ImportedSession, MessageLocation, Pointer, Report, import,
    where_messages,
};
use crate::present::{Exit, Failure, sessions as opened};
use crate::tree::InputError;
use clap::{Args, ValueEnum};
use std::collections::HashSet;
use std::path::Path;

/// Import chat logs as sessions.
///
/// A log is a JSON array of messages, JSON Lines (one message a line, or one {"messages": […]} a
/// line), or an object with `messages`. Each reply ends a turn and a cycle; messages after the last
/// reply are the working state. A report on standard error counts what was understood, kept
/// unchanged and skipped.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql import chat.json -o session.jsonl
  pactql import runs.json.gz --messages '/*/traj' -o sessions/
  pactql import agent.traj --steps '/trajectory/*/messages' -o steps.jsonl
  cat chat.jsonl | pactql import - | pactql select - \"@t0 .cb[role='assistant']\"")]
pub(super) struct Import {
    /// Logs to read, plain or gzip; `-` is standard input.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<String>,
    /// Where to write: a file, or a directory (an existing one, or a name that ends in `/`) for one
    /// file per session [default: standard output].
    #[arg(short, long, value_name = "PATH")]
    output: Option<String>,
    /// Replace files that exist.
    #[arg(long)]
    force: bool,
    /// The format of the logs.
    #[arg(long, value_enum, default_value_t)]
    from: From,
    /// Where the messages are: a JSON pointer, in which `*` is every element. Each match is one
    /// session.
    #[arg(long, value_name = "POINTER", value_parser = Pointer::parse, conflicts_with = "steps")]
    messages: Option<Pointer>,
    /// Where the inputs of single steps are: each match is one snapshot of the same session.
    #[arg(long, value_name = "POINTER", value_parser = Pointer::parse)]
    steps: Option<Pointer>,
    /// Write every snapshot as a whole document, even if its difference is shorter.
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    messages_as: Messages,
    #[command(flatten)]
    limits: Limits,
}

/// Log formats by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum From {
    /// OpenAI chat messages.
    #[default]
    Openai,
}

/// Where sessions are written.
enum Target<'a> {
    Stdout,
    File(&'a str),
    Directory(&'a str),
}

impl Run for Import {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let location = match (&self.messages, &self.steps) {
            (Some(pointer), _) => MessageLocation::Messages(pointer.clone()),
            (None, Some(pointer)) => MessageLocation::Steps(pointer.clone()),
            (None, None) => MessageLocation::Usual,
        };
        let From::Openai = self.from;
        let options = ImportOptions {
            location,
            ..ImportOptions::default()
        };
        let target = match self.output.as_deref() {
            None | Some("-") => Target::Stdout,
            Some(path) if path.ends_with('/') || Path::new(path).is_dir() => {
                Target::Directory(path)
            }
            Some(path) => Target::File(path),
        };
        let progress = Progress::bar(self.logs.len());
        let mut report = Report::default();
        let mut sessions: Vec<(String, ImportedSession)> = Vec::new();
        for log in &self.logs {
            let bytes =
                input::read(log, &self.limits).map_err(|failure| self.unread(log, failure))?;
            if bytes.trim_ascii().is_empty() {
                return Err(no_messages(format!(
                    "{} is empty",
                    input::name(log).display()
                )));
            }
            let imported =
                import(&bytes, &options).map_err(|error| self.refused(log, &bytes, error))?;
            if bytes.trim_ascii() == b"[]" {
                let name = input::name(log);
                return Err(no_messages(format!("{} has no messages", name.display())));
            }
            report.add(&imported.report);
            name_sessions(log, imported, &mut sessions);
            progress.step();
        }
        drop(progress);
        // Nothing is written until everything has been read without a fault.
        match (target, &sessions[..]) {
            (Target::Directory(path), _) => self.write_directory(path, &sessions)?,
            (Target::File(path), [(_, session)]) => {
                input::check_output(path, &self.inputs(), self.force)?;
                input::write(path, |out| session.recording.write_jsonl(out, self.full))?;
            }
            (Target::Stdout, [(_, session)]) => {
                stream(|out| session.recording.write_jsonl(out, self.full))?;
            }
            // A name without an extension is a directory's if there are several sessions.
            (Target::File(path), sessions)
                if sessions.len() > 1
                    && Path::new(path).extension().is_none()
                    && !Path::new(path).exists() =>
            {
                self.write_directory(path, sessions)?;
            }
            (target, sessions) => return Err(several(&target, sessions.len())),
        }
        say(&if self.messages_as.json() {
            format!("{}\n", report.to_json())
        } else {
            format!("{report}\n")
        });
        Ok(Exit::Ok)
    }
}

impl Import {
    /// The logs, as inputs that are not written to.
    fn inputs(&self) -> Vec<&str> {
        self.logs.iter().map(String::as_str).collect()
    }

    /// The failure for a log that cannot be read.
    fn unread(&self, log: &str, failure: Failure) -> Failure {
        if Path::new(log).is_dir() {
            let folder = quoted(log.trim_end_matches('/'));
            return Failure::usage(format!("expected a log, and `{log}` is a directory"))
                .with_help(format!("pactql import {folder}/* -o sessions/"));
        }
        match &self.logs[..] {
            [first, second] if second == log && self.output.is_none() => {
                let (first, second) = (quoted(first), quoted(second));
                failure.with_help(format!(
                    "the output is the value of `-o`: pactql import {first} -o {second}"
                ))
            }
            _ => failure,
        }
    }

    /// The failure for an input that is no log.
    fn refused(&self, log: &str, bytes: &[u8], error: InputError) -> Failure {
        let failure = Failure::Input(vec![(input::name(log), error)], None);
        match log {
            input::STDIN => failure,
            _ if opened::open(Path::new(log), self.limits.source()).is_ok() => {
                let message = format!("{log} is a session already, not a log");
                Failure::plain(Exit::Input, message)
                    .with_help(format!("pactql select {} \"*\"", quoted(log)))
            }
            _ => match where_messages(bytes) {
                Some(pointer) => failure.with_help(format!(
                    "pactql import {} --messages '{pointer}' -o sessions/",
                    quoted(log)
                )),
                None => failure,
            },
        }
    }

    /// Writes one file per session into the directory `path`, which is created if it is missing.
    fn write_directory(
        &self,
        path: &str,
        sessions: &[(String, ImportedSession)],
    ) -> Result<(), Failure> {
        let files: Vec<String> = sessions
            .iter()
            .map(|(name, _)| Path::new(path).join(format!("{name}.jsonl")))
            .map(|file| file.to_string_lossy().into_owned())
            .collect();
        for file in &files {
            input::check_output(file, &self.inputs(), self.force)?;
        }
        std::fs::create_dir_all(path).map_err(|error| Failure::output(path, &error))?;
        let progress = Progress::bar(sessions.len());
        for ((_, session), file) in sessions.iter().zip(&files) {
            input::write(file, |out| session.recording.write_jsonl(out, self.full))?;
            progress.step();
        }
        Ok(())
    }
}

/// The failure for a log without messages.
fn no_messages(message: String) -> Failure {
    Failure::plain(Exit::Input, message).with_help(
        "expected chat messages: a list, an object with `messages`, or one message a line",
    )
}

fn several(target: &Target<'_>, count: usize) -> Failure {
    let place = match target {
        Target::File(path) => format!("the file `{path}`"),
        _ => "standard output".to_owned(),
    };
    Failure::usage(format!(
        "the logs hold {count} sessions, and {place} takes one"
    ))
    .with_help("`-o DIR` writes one file a session; a new directory's name ends in `/`")
}

/// Gives each session of a log a unique file name, without an extension.
fn name_sessions(log: &str, imported: Imported, sessions: &mut Vec<(String, ImportedSession)>) {
    let stem = stem(log);
    let count = imported.sessions.len();
    let digits = count.to_string().len();
    let mut taken: HashSet<String> = sessions.iter().map(|(name, _)| name.clone()).collect();
    for (at, session) in imported.sessions.into_iter().enumerate() {
        let plain = if count == 1 {
            stem.clone()
        } else {
            format!("{stem}-{:0digits$}", at + 1)
        };
        // Logs in different directories may have the same name.
        let mut name = plain.clone();
        let mut again = 2;
        while !taken.insert(name.clone()) {
            name = format!("{plain}-{again}");
            again += 1;
        }
        sessions.push((name, session));
    }
}

/// The file name of a log without its endings.
fn stem(log: &str) -> String {
    let name = Path::new(log)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.filter(|name| name != "-");
    name.map_or_else(
        || "session".to_owned(),
        |name| input::stem(&name).to_owned(),
    )
}
