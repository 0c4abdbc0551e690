//! `pactql import`: logs become sessions.

use super::input;
use super::options::{Limits, Messages};
use crate::interop::{
    ImportOptions, Imported, ImportedSession, MessageLocation, Pointer, Report, import,
};
use crate::present::{Exit, Failure};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

/// Import chat logs as sessions.
///
/// A log is a JSON array of messages, JSON Lines (one message a line, or one {"messages": […]} a
/// line), or an object with `messages`. Each reply ends a turn and a cycle; what follows the last
/// reply is the working state. What was understood, kept as it came and skipped is counted on
/// standard error.
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
    /// Where to write: a file, or a directory for one file a session (one that exists, or a name
    /// that ends in `/`). Standard output without it.
    #[arg(short, long, value_name = "PATH")]
    output: Option<String>,
    /// The format of the logs.
    #[arg(long, value_enum, default_value_t)]
    from: From,
    /// Where the messages are: a JSON pointer, `*` for every element. One session a match.
    #[arg(long, value_name = "POINTER", value_parser = Pointer::parse, conflicts_with = "steps")]
    messages: Option<Pointer>,
    /// Where the inputs of single steps are: each match is one snapshot of one session.
    #[arg(long, value_name = "POINTER", value_parser = Pointer::parse)]
    steps: Option<Pointer>,
    /// Write whole documents instead of differences where those are shorter.
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

/// Where sessions go.
enum Target<'a> {
    Stdout,
    File(&'a str),
    Directory(&'a str),
}

impl Import {
    /// Whether errors are asked for as JSON.
    pub(super) fn json_errors(&self) -> bool {
        self.messages_as.json()
    }

    /// Runs the command.
    pub(super) fn run(self) -> Result<Exit, Failure> {
        let location = match (self.messages, self.steps) {
            (Some(pointer), _) => MessageLocation::Messages(pointer),
            (None, Some(pointer)) => MessageLocation::Steps(pointer),
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
        let bar = ProgressBar::new(self.logs.len() as u64);
        let mut report = Report::default();
        let mut sessions: Vec<(String, ImportedSession)> = Vec::new();
        for log in &self.logs {
            let bytes = input::read(log, &self.limits)?;
            let imported = import(&bytes, &options)
                .map_err(|error| Failure::Input(vec![(input::name(log), error)], None))?;
            report.add(&imported.report);
            name_sessions(log, imported, &mut sessions);
            bar.inc(1);
        }
        bar.finish_and_clear();
        // Nothing is written before everything has been read without a fault.
        match (target, &sessions[..]) {
            (Target::Directory(path), _) => write_directory(path, &sessions, self.full)?,
            (Target::File(path), [(_, session)]) => {
                input::write(path, |out| session.recording.write_jsonl(out, self.full))?;
            }
            (Target::Stdout, [(_, session)]) => {
                let mut out = io::BufWriter::new(io::stdout().lock());
                session.recording.write_jsonl(&mut out, self.full)?;
                out.flush()?;
            }
            // A name that is no file's: several sessions make it a directory's.
            (Target::File(path), sessions)
                if sessions.len() > 1
                    && Path::new(path).extension().is_none()
                    && !Path::new(path).exists() =>
            {
                write_directory(path, sessions, self.full)?;
            }
            (target, sessions) => return Err(several(&target, sessions.len())),
        }
        super::say(&if self.messages_as.json() {
            format!("{}\n", report.to_json())
        } else {
            format!("{report}\n")
        });
        Ok(Exit::Ok)
    }
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

/// Gives each session of a log a file name without ending, unlike all others.
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
        // Two logs of one name in different directories.
        let mut name = plain.clone();
        let mut again = 2;
        while !taken.insert(name.clone()) {
            name = format!("{plain}-{again}");
            again += 1;
        }
        sessions.push((name, session));
    }
}

/// Writes one file a session into `path`, which is made where it is missing.
fn write_directory(
    path: &str,
    sessions: &[(String, ImportedSession)],
    full: bool,
) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|error| Failure::output(path, &error))?;
    let bar = ProgressBar::new(sessions.len() as u64);
    for (name, session) in sessions {
        let file = Path::new(path).join(format!("{name}.jsonl"));
        input::write(&file.to_string_lossy(), |out| {
            session.recording.write_jsonl(out, full)
        })?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

/// The name of a log without directories and the endings that say how it is stored.
fn stem(log: &str) -> String {
    let name = Path::new(log)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let mut name = name
        .filter(|name| name != "-")
        .unwrap_or_else(|| "session".to_owned());
    for ending in [".gz", ".jsonl", ".json"] {
        if let Some(rest) = name.strip_suffix(ending).filter(|rest| !rest.is_empty()) {
            name = rest.to_owned();
        }
    }
    name
}
