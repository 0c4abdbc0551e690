//! The sessions that commands read, with a spinner while one loads that takes long.

use super::command::say;
use super::input;
use super::progress::Progress;
use super::words::quoted;
use crate::app::present::stores::{self, Access, Address, none_of};
use crate::app::present::{Exit, Failure, sessions as opened};
use crate::engine::{Context, ContextBuilder};
use crate::history::Session;
use crate::index::Snapshot;
use crate::store::Store;
use crate::tree::Limits;
use crate::tree::seal::Ending;
use crate::tree::source::{
    ending_of, is_lines_by_name, read_all, read_file, read_files, sessions_in,
};
use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// How the file of a session ends; `None` of anything but a file of lines. Reads it again.
///
/// # Errors
/// The file cannot be read.
pub(super) fn ending_of_session(name: &str) -> Result<Option<Ending>, Failure> {
    let path = Path::new(name);
    if Address::of(name).is_some() || !path.is_file() || !is_lines_by_name(path) {
        return Ok(None);
    }
    Ok(Some(ending_of(path)?))
}

/// A word for how a file of lines ends, in JSON.
pub(super) fn ending_name(ending: Ending) -> &'static str {
    match ending {
        Ending::Sealed => "sealed",
        Ending::LineFeed => "line feed",
        Ending::NoLineFeed => "no line feed",
    }
}

/// A line that says what it means.
pub(super) fn ending_text(ending: Ending) -> &'static str {
    match ending {
        Ending::Sealed => "with a closing line, which fits: nothing is missing\n",
        Ending::LineFeed => {
            "with a line feed; lines could be missing, which `export --seal` would show\n"
        }
        Ending::NoLineFeed => "without a line feed, as if it were still being written\n",
    }
}

/// Opens a session: a file, a directory, a session of a store, or standard input for `-`. A log of one
/// session is imported in memory. Says what is odd about it.
///
/// # Errors
/// A missing, unreadable or invalid input.
pub(super) fn open(name: &str, limits: Limits) -> Result<Arc<Session>, Failure> {
    let progress = Progress::spinner(format!("reading {name}"));
    let (session, remarks) = read(name, limits, &Stores::default())?;
    drop(progress);
    say(&remarks);
    Ok(session)
}

/// Opens a session as [`open`] does, and finds the snapshot at `address`; without one, the working state, or else
/// the newest snapshot.
///
/// # Errors
/// As [`open`]; an address that cannot be read, or that the session has no snapshot at.
pub(super) fn open_at(
    name: &str,
    address: Option<&str>,
    limits: Limits,
) -> Result<(Arc<Session>, Arc<Snapshot>), Failure> {
    let session = open(name, limits)?;
    let snapshot = opened::at(&session, address)?;
    Ok((session, snapshot))
}

/// Stores that are open for reading, so that each is opened once.
#[derive(Default)]
struct Stores(Mutex<HashMap<String, Arc<Store>>>);

impl Stores {
    fn session(&self, address: Address<'_>) -> Result<Arc<Session>, Failure> {
        let name = address.one()?;
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let store = match open.get(address.store) {
            Some(store) => Arc::clone(store),
            None => {
                let store = Arc::new(open_store(address.store, Access::Read)?);
                open.insert(address.store.to_owned(), Arc::clone(&store));
                store
            }
        };
        drop(open);
        Ok(store.session(name)?)
    }
}

/// Opens a store.
///
/// # Errors
/// As [`stores::open`], with what may have been meant if it is missing.
pub(super) fn open_store(name: &str, access: Access) -> Result<Store, Failure> {
    stores::open(name, access)
        .map_err(|failure| input::explain_missing(failure, stores::path(name).unwrap_or(name)))
}

/// A context that goes on with a copy of a session, from a file or a store, and that writes neither.
///
/// # Errors
/// As [`open`]; a working state that no mutation could have made.
pub(super) fn resume(
    name: &str,
    limits: Limits,
    builder: ContextBuilder,
) -> Result<Context, Failure> {
    match Address::of(name) {
        Some(address) => {
            let session = address.one()?;
            stores::resume(&open_store(address.store, Access::Read)?, session, builder)
        }
        None => Ok(builder.resume(&*open(name, limits)?)?),
    }
}

/// Reads a session, and what is to be said of it: a log is imported in memory.
fn read(name: &str, limits: Limits, stores: &Stores) -> Result<(Arc<Session>, String), Failure> {
    if let Some(address) = Address::of(name) {
        let session = stores.session(address)?;
        let remarks = opened::remarks(&session);
        return Ok((session, remarks));
    }
    let (session, bytes) = if name == input::STDIN {
        let path = input::name(name);
        match read_all(std::io::stdin().lock(), &path, limits) {
            Ok(bytes) if bytes.trim_ascii().is_empty() => {
                (opened::build(Ok(Vec::new()), path), Vec::new())
            }
            Ok(bytes) => {
                let documents = read_files([(Ok(bytes.clone()), path.clone())]);
                (opened::build(documents, path), bytes)
            }
            Err(error) => (Err(error.into()), Vec::new()),
        }
    } else {
        let path = Path::new(name);
        let session = opened::open(path, limits);
        let may_be_log = matches!(
            session,
            Err(Failure::Input(..)
                | Failure::Plain {
                    exit: Exit::Input,
                    ..
                })
        );
        let bytes = if may_be_log && path.is_file() {
            read_file(path, limits).unwrap_or_default()
        } else {
            Vec::new()
        };
        (session, bytes)
    };
    let session = match session {
        Ok(session) => session,
        Err(failure) => {
            let log = opened::of_log(name, &bytes);
            return match log {
                Some((session, note)) => {
                    let remarks = opened::remarks(&session);
                    Ok((Arc::new(session), note + &remarks))
                }
                None => Err(input::explain_missing(failure, name)),
            };
        }
    };
    let remarks = opened::remarks(&session);
    Ok((Arc::new(session), remarks))
}

/// Words in runs: one store each, or files that follow each other.
pub(super) fn runs(words: &[String]) -> impl Iterator<Item = &[String]> {
    let is_file = |word: &String| Address::of(word).is_none();
    words.chunk_by(move |a, b| is_file(a) && is_file(b))
}

/// Opens the sessions that words mean, with their names; also whether one of the words means several.
///
/// # Errors
/// As [`expand`] and [`open_all`].
pub(super) fn open_words(
    words: &[String],
    limits: Limits,
) -> Result<(Vec<(String, Arc<Session>)>, bool), Failure> {
    let (names, several) = expand(words)?;
    let opened = open_all(&names, limits).map_err(|failure| explain_directory(failure, words))?;
    Ok((names.into_iter().zip(opened).collect(), several))
}

/// The sessions that names mean: a directory of sessions is replaced by its files, a store by its
/// sessions. Also whether there was such a name.
///
/// # Errors
/// A directory or a store that cannot be read; a store in which no session matches.
pub(super) fn expand(names: &[String]) -> Result<(Vec<String>, bool), Failure> {
    let mut all = Vec::new();
    let mut several = false;
    for name in names {
        if let Some(address) = Address::of(name) {
            if address.is_several() {
                several = true;
                let store = open_store(address.store, Access::Read)?;
                let found = store.sessions(address.glob())?;
                if found.is_empty() {
                    return Err(Failure::plain(Exit::Missing, none_of(address)));
                }
                let found = found.iter();
                all.extend(found.map(|info| format!("{}#{}", address.store, info.name)));
            } else {
                all.push(name.clone());
            }
            continue;
        }
        match sessions_in(Path::new(name))? {
            Some(files) => {
                several = true;
                all.extend(files.iter().map(|file| file.display().to_string()));
            }
            None => all.push(name.clone()),
        }
    }
    Ok((all, several))
}

/// Says which files of a directory are sessions, if the failure is that of another one in it.
pub(super) fn explain_directory(failure: Failure, names: &[String]) -> Failure {
    const ENDINGS: [&str; 4] = [".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"];
    let text = failure.to_string();
    for name in names {
        let files = sessions_in(Path::new(name)).ok().flatten();
        let files: Vec<String> = files
            .unwrap_or_default()
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        let ending = |file: &String| ENDINGS.into_iter().find(|end| file.ends_with(end));
        let mut others = files.iter().filter(|file| ending(file).is_none());
        if others.any(|other| text.contains(other.as_str())) {
            let endings: BTreeSet<&str> = files.iter().filter_map(ending).collect();
            let folder = quoted(name.trim_end_matches('/'));
            let globs = endings.iter().map(|end| format!("{folder}/*{end}"));
            let globs = globs.collect::<Vec<_>>().join(" ");
            return failure.with_help(format!("name the sessions: {globs}"));
        }
    }
    failure
}

/// Opens several sessions in parallel. Of several failures the first in order is returned.
///
/// # Errors
/// As [`open`]; standard input named twice.
pub(super) fn open_all(names: &[String], limits: Limits) -> Result<Vec<Arc<Session>>, Failure> {
    if let [name] = names {
        return Ok(vec![open(name, limits)?]);
    }
    if names.iter().filter(|name| *name == input::STDIN).count() > 1 {
        return Err(Failure::usage("standard input can be read once only")
            .with_help("give `-` once, and the other sessions as files"));
    }
    let progress = Progress::bar(names.len());
    let stores = Stores::default();
    let opened: Vec<Result<(Arc<Session>, String), Failure>> = names
        .par_iter()
        .map(|name| {
            let session = read(name, limits, &stores);
            progress.step();
            session
        })
        .collect();
    drop(progress);
    let opened = opened.into_iter().collect::<Result<Vec<_>, _>>()?;
    // Each remark once, however many sessions it is true of.
    let mut said = Vec::new();
    let mut sessions = Vec::with_capacity(opened.len());
    for (session, remarks) in opened {
        if !said.contains(&remarks) {
            say(&remarks);
            said.push(remarks);
        }
        sessions.push(session);
    }
    Ok(sessions)
}
