//! The files of folders of logs, and what their sessions are called. It must not know what is done with them.

use super::failure::{Exit, Failure, Result};
use super::sessions;
use super::stores::StoreAddress;
use crate::logs::{self, ImportOptions, agent_logs, import, is_opencode, is_storage, log_of};
use crate::support::text::{counted, printable};
use crate::tree::Limits;
use crate::tree::source::{check_listed, files_below, files_in, read_file, sessions_in};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file, and what its sessions are named after.
#[derive(Clone, Debug)]
pub(crate) struct LogSource {
    pub(crate) path: String,
    pub(crate) stem: String,
    /// Whether a directory lists it, and no argument names it.
    pub(crate) is_listed: bool,
    /// The word, where one session is meant that it may have: [`part_of`] says which.
    pub(crate) part: Option<String>,
    /// Whether its name is not UTF-8: `path` shows it, and opens nothing.
    pub(crate) is_unnamed: bool,
}

impl LogSource {
    /// A file whose sessions are named after it.
    pub(crate) fn new(path: &str) -> Self {
        let name = Path::new(path).file_name().filter(|name| *name != "-");
        let name = name.map(|name| name.to_string_lossy().into_owned());
        let stem = name.as_deref().map_or("session", logs::stem);
        Self {
            path: path.to_owned(),
            stem: stem.to_owned(),
            is_listed: false,
            part: None,
            is_unnamed: false,
        }
    }

    /// Whether the others are read without it. What was named and is not there, or cannot be what was asked for, is a
    /// mistake in the command.
    pub(crate) fn is_left_out(&self, failure: &Failure) -> bool {
        match failure.exit() {
            Exit::Input | Exit::Io => true,
            Exit::Missing | Exit::Usage => self.is_listed,
            _ => false,
        }
    }

    /// Refuses what a directory lists and cannot be read, without opening it.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.is_listed {
            return Ok(());
        }
        if self.is_unnamed {
            let message = format!("the name of {} is not UTF-8", printable(&self.path));
            return Err(Failure::plain(Exit::Io, message).with_help("give the file another name"));
        }
        check_listed(Path::new(&self.path)).map_err(|error| Failure::file(&self.path, &error))
    }

    /// The files below a folder, whose sessions are named after their paths in it. A folder in which opencode keeps its
    /// sessions is one, unless the database that has them since is beside it.
    pub(crate) fn below(folder: &Path) -> Result<Vec<Self>> {
        if is_storage(folder) {
            return Ok(vec![Self::new(&folder.to_string_lossy())]);
        }
        let mut storages: HashMap<PathBuf, Option<PathBuf>> = HashMap::new();
        let mut files = Vec::new();
        for file in files_below(folder)? {
            let above = file.parent().unwrap_or(folder);
            let storage = storages.entry(above.to_owned()).or_insert_with(|| {
                let above = above.ancestors().take_while(|above| *above != folder);
                let found = above.filter(|above| is_storage(above)).last();
                found.map(Path::to_owned)
            });
            files.push(storage.clone().unwrap_or(file));
        }
        files.dedup();
        let files = files.into_iter();
        let files = files.filter(|file| !is_beside_log(file) && !is_moved(file));
        let files = files.map(|file| {
            let inside = file.strip_prefix(folder).unwrap_or(&file);
            let parts = inside.iter().map(|part| part.to_string_lossy());
            let inside = parts.collect::<Vec<_>>().join("/");
            Self {
                stem: logs::stem(&inside).to_owned(),
                path: file.display().to_string(),
                is_listed: !is_storage(&file),
                part: None,
                is_unnamed: file.to_str().is_none(),
            }
        });
        Ok(files.collect())
    }
}

/// What is said of files of folders that were left out, a text for each reason; nothing if there are none.
pub(crate) fn said_of_left_out(files: &[&LogSource]) -> Vec<String> {
    let (unnamed, others): (Vec<&LogSource>, Vec<&LogSource>) =
        files.iter().partition(|file| file.is_unnamed);
    let both = [
        (others, "without a session or a log that is read"),
        (unnamed, "whose name is not UTF-8"),
    ];
    let said = both.into_iter().filter_map(|(files, why)| {
        let first = printable(&files.first()?.path);
        let more = if files.len() > 1 { ", …" } else { "" };
        let count = counted(files.len() as u64, "file");
        Some(format!("left out {count} {why}: {first}{more}"))
    });
    said.collect()
}

/// Whether a folder of opencode has a database beside it that has its sessions since.
pub(crate) fn is_moved(folder: &Path) -> bool {
    is_storage(folder) && is_opencode(&folder.with_file_name("opencode.db"))
}

/// Whether a file is not a log but belongs to one: of Claude Code, what is known of a subagent, or the output of
/// a tool that was too long for the log; the log and the index of a database.
fn is_beside_log(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let database = ["-wal", "-shm"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending));
    if let Some(database) = database.filter(|name| name.ends_with(".db")) {
        return file.with_file_name(database).exists();
    }
    let about = name.strip_suffix(".meta.json");
    if let Some(agent) = about {
        return file.with_file_name(format!("{agent}.jsonl")).exists();
    }
    let above = file
        .parent()
        .filter(|above| above.ends_with("tool-results"));
    let session = above.and_then(Path::parent);
    session.is_some_and(|session| session.with_extension("jsonl").exists())
}

/// The log or folder, and the name of a session of it, that `FILE#NAME` means; `None` of a file, and of a store.
pub(crate) fn part_of(word: &str) -> Option<(&str, &str)> {
    let part = part_where(word, |path| Path::new(path).exists())?;
    StoreAddress::parse(word).is_none().then_some(part)
}

/// As [`part_of`], where `exists` looks for paths.
pub(crate) fn part_where(word: &str, exists: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    if !word.contains('#') || exists(word) {
        return None;
    }
    let mut parts = word.rmatch_indices('#');
    let (at, _) = parts.find(|(at, _)| *at > 0 && exists(&word[..*at]))?;
    Some((&word[..at], &word[at + 1..]))
}

/// The files of a folder of sessions or logs; `None` of anything else, such as a directory of the documents of one
/// session (RUNTIME §7).
pub(crate) fn files_of(word: &str, limits: Limits) -> Result<Option<Vec<LogSource>>> {
    let path = Path::new(word);
    if is_opencode(path) {
        return Ok(Some(vec![LogSource::new(word)]));
    }
    if StoreAddress::parse(word).is_some() || !path.is_dir() {
        return Ok(None);
    }
    let is_document = |file: &PathBuf| sessions::is_document(file, limits);
    if sessions_in(path)?.is_none() && files_in(path)?.iter().any(is_document) {
        return Ok(None);
    }
    let files = LogSource::below(path)?;
    Ok((!files.is_empty()).then_some(files))
}

/// The files of what is imported: of a folder as [`files_of`], but one of documents with a log or with folders in it is
/// imported file by file.
pub(crate) fn files_to_import(
    word: &str,
    limits: Limits,
    options: &ImportOptions,
) -> Result<Vec<LogSource>> {
    if let Some(files) = files_of(word, limits)? {
        return Ok(files);
    }
    let path = Path::new(word);
    let is_log = |file: &PathBuf| {
        let bytes = check_listed(file).is_ok().then(|| read_file(file, limits));
        bytes.is_some_and(|bytes| bytes.is_ok_and(|bytes| import(&bytes, options).is_ok()))
    };
    let is_other = |file: &PathBuf| file.parent() != Some(path) || is_log(file);
    if path.is_dir() && files_below(path)?.iter().any(is_other) {
        return LogSource::below(path);
    }
    Ok(vec![LogSource::new(word)])
}

/// The logs of all agents of this machine.
///
/// # Errors
/// There are none.
pub(crate) fn logs_of_machine() -> Result<Vec<LogSource>> {
    let places = agent_logs(|name| std::env::var_os(name));
    let mut files = Vec::new();
    for place in &places {
        if !place.path.exists() || is_moved(&place.path) {
            continue;
        }
        files.extend(if place.path.is_dir() {
            LogSource::below(&place.path)?
        } else {
            vec![LogSource::new(&place.path.to_string_lossy())]
        });
    }
    if files.is_empty() {
        let places = places.iter();
        let places = places.map(|place| place.path.display().to_string());
        let places = places.collect::<Vec<_>>().join(", ");
        let message = format!("no session is named, and there are no logs of agents in {places}");
        return Err(Failure::plain(Exit::Missing, message)
            .with_help("name a session, a store or a folder of logs"));
    }
    Ok(files)
}

/// The logs of this machine, the one written last first.
pub(crate) fn newest_logs() -> Result<Vec<LogSource>> {
    let mut files = logs_of_machine()?;
    sort_newest_first(&mut files);
    Ok(files)
}

pub(crate) fn sort_newest_first(files: &mut [LogSource]) {
    files.sort_by_cached_key(|file| {
        let written = std::fs::metadata(&file.path).and_then(|data| data.modified());
        (Reverse(written.ok()), file.path.clone())
    });
}

/// The size of a log and when it changed last; of one in several files, of all of them.
pub(crate) fn state_of(path: &Path) -> io::Result<(u64, SystemTime)> {
    let files = if path.is_dir() {
        files_below(path).map_err(io::Error::other)?
    } else {
        vec![path.to_owned(), log_of(path)]
    };
    let mut state: Option<(u64, SystemTime)> = None;
    for file in files {
        let (length, time) = match std::fs::metadata(&file) {
            Ok(about) => (about.len(), about.modified()?),
            // The log of a database, or a file that went in the meantime.
            Err(_) if state.is_some() => continue,
            Err(error) => return Err(error),
        };
        let (before, last) = state.unwrap_or((0, time));
        state = Some((before + length, last.max(time)));
    }
    state.ok_or_else(|| io::ErrorKind::NotFound.into())
}
