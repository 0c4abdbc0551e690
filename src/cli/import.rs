//! `pactql import`: sessions made of chat logs, and files of sessions, in a store.

use super::command::{Run, say, stream};
use super::input;
use super::options::{Color, Limits, Messages};
use super::progress::Progress;
use super::sessions::{self, open_store};
use super::words::quoted;
use super::write::new_name;
use crate::history::Session;
use crate::interop::{
    ImportOptions, ImportedSession, MessageLocation, Pointer, Report, import, where_messages,
};
use crate::present::stores::{Access, Address, Which};
use crate::present::{Exit, Failure, counted, sessions as opened};
use crate::tree::InputError;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Import chat logs as sessions; into a store also files of sessions.
///
/// A log is a JSON array of messages, JSON Lines (one message a line, or one {"messages": […]} a
/// line), or an object with `messages`. Each reply ends a turn and a cycle; messages after the last
/// reply are the working state. A report on standard error counts what was understood, kept
/// unchanged and skipped. In a store a session is named by its file, without the endings.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql import chat.json -o session.jsonl
  pactql import runs.json.gz --messages '/*/traj' -o sessions/
  pactql import agent.traj --steps '/trajectory/*/messages' -o steps.jsonl
  pactql import chats/*.json session.jsonl -o agents.db
  pactql import chat.json -o agents.db#support-42
  cat chat.jsonl | pactql import - | pactql select - \"@t0 .cb[role='assistant']\"")]
pub(super) struct Import {
    /// Logs to read, plain or gzip; `-` is standard input. Into a store also sessions.
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

/// A session, its name, and the file that it comes from.
type Named = (String, Option<String>, Made);

/// A session that was opened, and its path.
type Opened = (String, Arc<Session>);

/// Where sessions are written.
enum Target<'a> {
    Stdout,
    File(&'a str),
    Directory(&'a str),
    Store(Address<'a>),
}

/// A session that is imported.
enum Made {
    Log(ImportedSession),
    /// It was one already.
    Session(Arc<Session>),
}

/// The sessions that were such already, in numbers.
struct Copied {
    sessions: usize,
    snapshots: usize,
}

impl Copied {
    fn of(sessions: &[Named]) -> Self {
        let found = sessions.iter().filter_map(|(.., made)| match made {
            Made::Session(session) => Some(session.history().committed().len()),
            Made::Log(_) => None,
        });
        found.fold(
            Self {
                sessions: 0,
                snapshots: 0,
            },
            |all, snapshots| Self {
                sessions: all.sessions + 1,
                snapshots: all.snapshots + snapshots,
            },
        )
    }
}

impl Made {
    /// The session, for a store.
    fn session(&self) -> Result<Arc<Session>, Failure> {
        match self {
            Self::Session(session) => Ok(Arc::clone(session)),
            Self::Log(log) => {
                let mut bytes = Vec::new();
                log.recording.write_jsonl(&mut bytes, false)?;
                let session = Session::from_slice(&bytes).map_err(|error| {
                    Failure::internal(format!("the session cannot be read: {error}"))
                })?;
                Ok(Arc::new(session))
            }
        }
    }
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
        let target = self.target()?;
        let into_store = matches!(target, Target::Store(_));
        let progress = Progress::bar(self.logs.len());
        let mut report = Report::default();
        let mut sessions: Vec<Named> = Vec::new();
        for log in &self.logs {
            if into_store && let Some(found) = self.read_sessions(log)? {
                for (log, session) in found {
                    name_sessions(&log, vec![Made::Session(session)], &mut sessions);
                }
                progress.step();
                continue;
            }
            if let ([_, .., last], None) = (&self.logs[..], &self.output)
                && last == log
                && Address::of(log).is_some()
            {
                let others: Vec<String> = self.inputs().iter().map(|log| quoted(log)).collect();
                let (store, others) = (quoted(log), others[..others.len() - 1].join(" "));
                return Err(Failure::usage("the output is the value of `-o`")
                    .with_help(format!("pactql import {others} -o {store}")));
            }
            let bytes =
                input::read(log, &self.limits).map_err(|failure| self.unread(log, failure))?;
            if bytes.trim_ascii().is_empty() {
                return Err(no_messages(format!(
                    "{} is empty",
                    input::name(log).display()
                )));
            }
            let imported = match import(&bytes, &options) {
                Ok(imported) => imported,
                Err(error) => match into_store.then(|| sessions::open(log, &self.limits)) {
                    Some(Ok(session)) => {
                        name_sessions(log, vec![Made::Session(session)], &mut sessions);
                        progress.step();
                        continue;
                    }
                    _ => return Err(self.refused(log, &bytes, error)),
                },
            };
            if bytes.trim_ascii() == b"[]" {
                let name = input::name(log);
                return Err(no_messages(format!("{} has no messages", name.display())));
            }
            report.add(&imported.report);
            let made = imported.sessions.into_iter().map(Made::Log);
            name_sessions(log, made.collect(), &mut sessions);
            progress.step();
        }
        drop(progress);
        // Nothing is written until everything has been read without a fault.
        let copied = Copied::of(&sessions);
        let any_log = sessions.len() > copied.sessions;
        self.write(target, sessions)?;
        self.say_report(
            &report,
            &copied,
            any_log || copied.sessions == 0,
            into_store,
        );
        Ok(Exit::Ok)
    }
}

impl Import {
    /// Says what was imported, and what was copied.
    fn say_report(&self, report: &Report, copied: &Copied, logs: bool, into_store: bool) {
        say(&if self.messages_as.json() {
            let mut json = report.to_json();
            if into_store {
                json["copied"] =
                    json!({"sessions": copied.sessions, "snapshots": copied.snapshots});
            }
            format!("{json}\n")
        } else {
            let mut text = String::new();
            if logs {
                text = format!("{report}\n");
            }
            if copied.sessions > 0 {
                let sessions = counted(copied.sessions as u64, "session");
                let snapshots = counted(copied.snapshots as u64, "snapshot");
                text += &format!("copied {sessions}, {snapshots}\n");
            }
            text
        });
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

    /// The sessions of a directory of them, or of one; `None` if the name is of a file.
    fn read_sessions(&self, log: &str) -> Result<Option<Vec<Opened>>, Failure> {
        if Address::of(log).is_some() {
            let message =
                format!("expected a log or a file of a session, and `{log}` is in a store");
            return Err(Failure::usage(message).with_help(format!(
                "pactql export {} -o session.jsonl writes a file",
                quoted(log)
            )));
        }
        if !Path::new(log).is_dir() {
            return Ok(None);
        }
        let (names, _) = sessions::expand(&[log.to_owned()])?;
        let opened = sessions::open_all(&names, &self.limits)?;
        Ok(Some(names.into_iter().zip(opened).collect()))
    }

    /// Writes the sessions.
    fn write(&self, target: Target<'_>, sessions: Vec<Named>) -> Result<(), Failure> {
        let one = |made: &Made, out: &mut dyn Write| match made {
            Made::Log(log) => log.recording.write_jsonl(out, self.full),
            // Read for stores only.
            Made::Session(_) => Ok(()),
        };
        match (target, &sessions[..]) {
            (Target::Store(address), _) => self.write_store(address, &sessions),
            (Target::Directory(path), _) => self.write_directory(path, &sessions, one),
            (Target::File(path), [(_, _, made)]) => {
                input::check_output(path, &self.inputs(), self.force)?;
                input::write(path, |out| one(made, out))
            }
            (Target::Stdout, [(_, _, made)]) => stream(|out| one(made, out)).map(|_| ()),
            // A name without an extension is a directory's if there are several sessions.
            (Target::File(path), sessions)
                if sessions.len() > 1
                    && Path::new(path).extension().is_none()
                    && !Path::new(path).exists() =>
            {
                self.write_directory(path, sessions, one)
            }
            (target, sessions) => Err(several(&target, sessions.len())),
        }
    }

    /// Writes sessions into a store, which is made if it is missing; none if one of them is there already.
    fn write_store(&self, address: Address<'_>, sessions: &[Named]) -> Result<(), Failure> {
        let named = match address.which {
            Which::All => self.name.as_deref(),
            _ => Some(new_name(address)?),
        };
        if named.is_some() && sessions.len() != 1 {
            return Err(several(&Target::Store(address), sessions.len()));
        }
        let store = address.store;
        let names: Vec<&str> = sessions
            .iter()
            .map(|(name, ..)| named.unwrap_or(name))
            .collect();
        if let Some(name) = names
            .iter()
            .find(|name| name.contains('*') || name.is_empty())
        {
            return Err(Failure::usage(format!(
                "a session cannot be called `{name}`: a `*` is for patterns, and a name is not empty"
            ))
            .with_help("`--name` gives another name"));
        }
        let opened = open_store(store, Access::Create)?;
        for name in &names {
            if opened
                .sessions(name)?
                .iter()
                .any(|info| info.name == **name)
            {
                let whole = quoted(&format!("{store}#{name}"));
                return Err(Failure::exists(
                    format!("the store {store} has a session `{name}` already"),
                    format!("choose another name, or first: pactql delete {whole} --yes"),
                ));
            }
        }
        let progress = Progress::bar(sessions.len());
        for ((_, source, made), name) in sessions.iter().zip(&names) {
            opened.import(name, &*made.session()?, source.as_deref())?;
            progress.step();
        }
        Ok(())
    }

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
        sessions: &[Named],
        one: impl Fn(&Made, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let files: Vec<String> = sessions
            .iter()
            .map(|(name, ..)| Path::new(path).join(format!("{name}.jsonl")))
            .map(|file| file.to_string_lossy().into_owned())
            .collect();
        for file in &files {
            input::check_output(file, &self.inputs(), self.force)?;
        }
        std::fs::create_dir_all(path).map_err(|error| Failure::output(path, &error))?;
        let progress = Progress::bar(sessions.len());
        for ((.., made), file) in sessions.iter().zip(&files) {
            input::write(file, |out| one(made, out))?;
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
        Target::Store(address) => {
            return Failure::usage(format!("{count} sessions cannot have one name"))
                .with_help(format!("-o {} names each by its file", address.store));
        }
        _ => "standard output".to_owned(),
    };
    Failure::usage(format!(
        "the logs hold {count} sessions, and {place} takes one"
    ))
    .with_help("`-o DIR` writes one file a session; a new directory's name ends in `/`")
}

/// Gives each session of a log a unique file name, without an extension.
fn name_sessions(log: &str, imported: Vec<Made>, sessions: &mut Vec<Named>) {
    let stem = stem(log);
    let count = imported.len();
    let digits = count.to_string().len();
    let mut taken: HashSet<String> = sessions.iter().map(|(name, ..)| name.clone()).collect();
    for (at, session) in imported.into_iter().enumerate() {
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
        let source = (log != input::STDIN).then(|| log.to_owned());
        sessions.push((name, source, session));
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
