//! What words mean, read: a file, a log, a session of a store, or standard input; and where none is named, the newest.

use super::command::say;
use super::input;
use super::progress::Progress;
use super::words::quoted;
use crate::app::present::answer::RECONSTRUCTED;
use crate::app::present::folders::{LogSource, newest_logs, part_of};
use crate::app::present::followed::FollowedLogs;
use crate::app::present::known::KnownLogs;
use crate::app::present::sessions::FileContents;
use crate::app::present::stores::{self, Access, StoreAddress};
use crate::app::present::{Exit, Failure, Result, printable, sessions as opened};
use crate::history::Session;
use crate::logs::{self, KnownNames};
use crate::store::Store;
use crate::tree::Limits;
use crate::tree::source::read_files;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

/// How many files are read at a time.
pub(super) const TOGETHER: usize = 32;

/// Says once that what is shown was worked out from a transcript (INSPECT §1).
pub(super) fn note_reconstructed(is_reconstructed: bool) {
    static SAID: Once = Once::new();
    if is_reconstructed {
        SAID.call_once(|| {
            say(&format!("note: {RECONSTRUCTED}\n"));
        });
    }
}

/// Opens a store.
pub(super) fn open_store(name: &str, access: Access) -> Result<Store> {
    stores::open(name, access)
        .map_err(|failure| input::explain_missing(failure, stores::path(name).unwrap_or(name)))
}

/// Says that a log or a folder has no session of this name.
pub(super) fn no_part(word: &str) -> Failure {
    let (place, part) = part_of(word).unwrap_or((word, ""));
    let message = format!("{place} has no session `{part}`");
    let failure = Failure::plain(Exit::Missing, message);
    failure.with_help(format!("`pactql sessions {}` lists them", quoted(place)))
}

/// What was read of a word or a file.
#[derive(Default)]
pub(super) struct ReadSessions {
    pub(super) sessions: Vec<Arc<Session>>,
    /// Of the sessions of a log: the name of each in it, and the session that it is a part of.
    pub(super) known: Vec<(Option<String>, Option<String>)>,
    /// Of the sessions of a store: their names in it.
    pub(super) stored: Vec<String>,
    pub(super) said: String,
}

impl ReadSessions {
    pub(super) fn new(contents: FileContents) -> Result<Self> {
        let mut read = Self::default();
        match contents {
            FileContents::Session(session) => return Ok(Self::one(Arc::new(session))),
            FileContents::Log(logs, note) => {
                read.said = note.line_with_import();
                for log in logs {
                    read.sessions.push(opened::session_of(&log)?);
                    read.known.push((log.name, log.parent));
                }
            }
            FileContents::Neither(failure) => return Err(failure),
        }
        Ok(read)
    }

    /// The session, where there is one.
    pub(super) fn only(mut self, name: &str) -> Result<Arc<Session>> {
        if let [_, _, ..] = self.sessions[..] {
            let names = self.names(&LogSource::new(name).stem, &mut HashSet::new());
            let one = quoted(&format!("{name}#{}", names[0]));
            return Err(opened::expected_one(Path::new(name), names.len())
                .with_help(format!("name one of them: {one}")));
        }
        let none = || opened::expected_one(Path::new(name), 0);
        self.sessions.pop().ok_or_else(none)
    }

    /// The names of the sessions of a log, which is named after `stem`.
    pub(super) fn names(&self, stem: &str, taken: &mut HashSet<String>) -> Vec<String> {
        let known = self.known.iter();
        let known = known.map(|(name, parent)| KnownNames::new(name.as_deref(), parent.as_deref()));
        logs::names(stem, &known.collect::<Vec<_>>(), taken)
    }

    fn one(session: Arc<Session>) -> Self {
        Self {
            said: opened::remarks(&session),
            sessions: vec![session],
            ..Self::default()
        }
    }

    /// The sessions of a store in a folder; `None` if the file is not one.
    pub(super) fn of_store(path: &str) -> Result<Option<Self>> {
        let store = StoreAddress::parse(path).map(|_| stores::open(path, Access::Read));
        let Some(Ok(store)) = store else {
            return Ok(None);
        };
        let stored = store.sessions("")?.into_iter().map(|info| info.name);
        let stored: Vec<String> = stored.collect();
        let sessions = stored.iter().map(|name| store.session(name));
        Ok(Some(Self {
            sessions: sessions.collect::<Result<_, _>>()?,
            stored,
            ..Self::default()
        }))
    }
}

/// Reads what a word means: a log is imported in memory.
pub(super) fn read(
    name: &str,
    limits: Limits,
    followed: Option<&FollowedLogs>,
) -> Result<ReadSessions> {
    if let Some(address) = StoreAddress::parse(name) {
        let store = open_store(address.store, Access::Read)?;
        return Ok(ReadSessions::one(store.session(address.one()?)?));
    }
    // A pipe is read once, as standard input is.
    let data = Path::new(name).metadata();
    let is_pipe = name != input::STDIN && data.is_ok_and(|data| !data.is_file() && !data.is_dir());
    if name != input::STDIN && !is_pipe {
        let contents = opened::open_or_logs(Path::new(name), limits, followed);
        let contents = contents.map_err(|failure| input::explain_missing(failure, name))?;
        return ReadSessions::new(contents);
    }
    let path = input::name(name);
    let bytes = input::read(name, limits)?;
    let documents = if bytes.trim_ascii().is_empty() {
        Ok(Vec::new())
    } else {
        read_files([(Ok(bytes.clone()), path.clone())])
    };
    ReadSessions::new(match opened::build(documents, path.clone()) {
        Ok(session) => FileContents::Session(session),
        Err(failure) => match opened::of_log(&bytes) {
            Some((sessions, note)) => FileContents::Log(sessions, note),
            None => return Err(opened::refused_log(&path, &bytes).unwrap_or(failure)),
        },
    })
}

/// The sessions that are named; where none is, the newest log of one session whose project is the current directory,
/// else the newest of all. A note says which.
pub(super) fn or_newest(names: &[String], limits: Limits) -> Result<Vec<String>> {
    if !names.is_empty() {
        return Ok(names.to_vec());
    }
    let here = std::env::current_dir().unwrap_or_default();
    let files = newest_logs()?;
    let mut known = KnownLogs::new(limits);
    let progress = Progress::bar(files.len());
    let (mut newest, mut of_here) = (None, None);
    for some in files.chunks(TOGETHER) {
        let all = some.iter().zip(known.of(some));
        for (file, sessions) in all {
            progress.step();
            let own: Vec<_> = sessions.iter().filter(|one| !one.belongs).collect();
            if let [one] = own[..] {
                newest = newest.or(Some(file));
                let project = one.project.as_ref().map(PathBuf::from);
                of_here = of_here.or((project.as_ref() == Some(&here)).then_some(file));
            }
        }
        if of_here.is_some() {
            break;
        }
    }
    let which = if of_here.is_some() {
        "of this directory"
    } else {
        "of this machine"
    };
    drop(progress);
    let found = of_here.or(newest).map(|file| file.path.clone());
    known.keep(&files);
    let path = found.ok_or_else(|| {
        let message = "no session is named, and no log of this machine is read";
        Failure::plain(Exit::Missing, message)
    })?;
    let shown = printable(&path);
    say(&format!("note: the newest session {which}: {shown}\n"));
    Ok(vec![path])
}

/// The session of a command that takes one.
pub(super) fn one_or_newest(name: Option<&String>, limits: Limits) -> Result<String> {
    let names = or_newest(name.map_or(&[], std::slice::from_ref), limits)?;
    Ok(names.concat())
}
