//! Sessions that stay loaded between calls, and stores that stay open.
//!
//! SQLite opens a file by its path, not through the handle on the root. So the file at the path is compared
//! with the one that the handle opens, before and after; and a store whose file was replaced is reopened.

use super::root::Root;
use crate::app::calls::kept::Kept;
use crate::app::present::folders::part_where;
use crate::app::present::known::{LogSession, named, one_of};
use crate::app::present::sessions::LogNote;
use crate::app::present::stores::{StoreAddress, Which};
use crate::app::present::{Exit, Failure, Result, sessions};
use crate::history::Session;
use crate::store::{FileId, Store, id_of};
use crate::support::diag::{Diagnostic, Error};
use crate::support::lock;
use crate::tree::source::{is_several, read_all, read_files};
use crate::tree::{Limits, SourceError};
use cap_std::fs::Metadata;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// The total bytes of the files whose sessions are kept; a larger session is loaded for each call.
const KEPT_BYTES: u64 = 1 << 30;

#[derive(Debug)]
pub(super) struct LoadedSessions {
    kept: Kept<Stamp, LoadedSession>,
    logs: Kept<Stamp, Arc<[LogSession]>>,
    limits: Limits,
    pub(super) stores: OpenStores,
}

/// The tool that lists the names of sessions.
const LISTS: &str = "pact_list_sessions";

#[derive(Clone, Debug)]
struct LoadedSession {
    session: Arc<Session>,
    /// Remarks for the client: that it is a log, fields with doubtful names.
    said: Arc<str>,
    /// Whether its log has branches or subagents besides.
    has_others: bool,
}

/// The state of a session's files, by name: a later change makes it another one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp(Arc<[FileState]>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileState {
    /// Its name in the session's directory; empty if the session is one file.
    name: OsString,
    /// Its path below the root, without links.
    place: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl LoadedSessions {
    /// An empty store; `limits` hold for every session.
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            kept: Kept::new(KEPT_BYTES),
            logs: Kept::new(KEPT_BYTES),
            limits,
            stores: OpenStores::default(),
        }
    }

    /// The session that a client calls `name`: of a store as it is now, or else from memory if its files have the lengths and
    /// times they had. Concurrent calls for one session load it once.
    pub(super) fn open(&self, root: &Root, name: &str) -> Result<Arc<Session>> {
        // A file or a directory may have a name that reads as the address of a session in a store.
        if let Some(address) = StoreAddress::spelled(name)
            && !root.handle.is_dir(name)
            && (address.which == Which::All || !root.handle.is_file(name))
        {
            let session = self.stores.session(root, address);
            return session.map_err(|failure| failure.listed_by("pact_sessions"));
        }
        if let Some((log, part)) = part_of(root, name)? {
            let sessions = self.in_log(root, log)?;
            let found = one_of(&sessions, log, Some(part), LISTS)?;
            return Ok(Arc::clone(&found.session));
        }
        let missing = || SourceError::Missing(PathBuf::from(name));
        let place = root.resolve(name)?.ok_or_else(missing)?;
        let state = || {
            let stamp = Stamp::read(root, &place, name)?;
            let bytes = stamp.bytes();
            Ok((stamp, bytes))
        };
        let loaded = self.kept.get(&place, state, |stamp, _| {
            let (session, note) = self.load(root, stamp, Path::new(name))?;
            let said = note.line(LISTS) + &sessions::remarks(&session);
            Ok(LoadedSession {
                session,
                said: said.into(),
                has_others: note.left_out.is_some_and(|count| count > 0),
            })
        })?;
        Ok(loaded.session)
    }

    /// Whether a session that was opened is of a log with branches or subagents.
    pub(super) fn has_others(&self, root: &Root, name: &str) -> bool {
        let place = root.resolve(name).ok().flatten();
        let kept = place.and_then(|place| self.kept.peek(&place));
        kept.is_some_and(|kept| kept.has_others)
    }

    /// The sessions of a log that a client calls `name`, with the names that the command line and the page give them.
    pub(super) fn in_log(&self, root: &Root, name: &str) -> Result<Arc<[LogSession]>> {
        let path = Path::new(name);
        let place = root.resolve(name)?;
        let place = place.ok_or_else(|| SourceError::Missing(path.to_owned()))?;
        let state = || {
            let stamp = Stamp::read(root, &place, name)?;
            let bytes = stamp.bytes();
            Ok((stamp, bytes))
        };
        self.logs.get(&place, state, |_, _| {
            let failed = |error| SourceError::Io(path.to_owned(), error);
            let file = root.handle.open(&place).map_err(failed)?;
            let bytes = read_all(file, path, self.limits)?;
            Ok(named(path, sessions::of_bytes(path, bytes)?)?.into())
        })
    }

    /// The remarks on a session that was opened by this name: lines, or nothing.
    pub(super) fn said(&self, root: &Root, name: &str) -> Arc<str> {
        if let Ok(Some((log, _))) = part_of(root, name) {
            let place = root.resolve(log).ok().flatten();
            let kept = place.and_then(|place| self.logs.peek(&place));
            let first = kept.as_ref().and_then(|log| log.first());
            return first.map_or_else(|| "".into(), |one| Arc::clone(&one.said));
        }
        let place = root.resolve(name).ok().flatten();
        let kept = place.and_then(|place| self.kept.peek(&place));
        kept.map_or_else(|| "".into(), |kept| kept.said)
    }

    /// Reads a session, or a log of one; messages call it `path`. A log has a note that says so.
    fn load(&self, root: &Root, stamp: &Stamp, path: &Path) -> Result<(Arc<Session>, LogNote)> {
        let read = |part: &FileState, called: &Path| {
            let failed = |error| SourceError::Io(called.to_owned(), error);
            let file = root.handle.open(&part.place).map_err(failed)?;
            read_all(file, called, self.limits)
        };
        let called: Vec<PathBuf> = stamp.0.iter().map(|part| part.called(path)).collect();
        if is_several(&called) {
            let failure = Failure::several(path, &called);
            return Err(failure.with_help("`pact_list_sessions` lists what is in it"));
        }
        let parts = stamp.0.iter().zip(called);
        let documents = read_files(parts.map(|(part, called)| (read(part, &called), called)));
        let file = stamp.0.first().filter(|part| part.name.is_empty());
        let missing = || SourceError::Missing(path.to_owned());
        let built = sessions::build_or_logs(documents, path, file.map(|file| file.bytes), || {
            read(file.ok_or_else(missing)?, path)
        });
        built?.one(path, LISTS)
    }
}

/// The log, and the name of a session of it, that a client's `FILE#NAME` means.
fn part_of<'n>(root: &Root, name: &'n str) -> Result<Option<(&'n str, &'n str)>> {
    let is_there = root.resolve(name)?.is_some();
    let is_file = |path: &str| root.handle.is_file(path);
    Ok(part_where(name, is_file).filter(|_| !is_there))
}

impl FileState {
    fn called(&self, session: &Path) -> PathBuf {
        if self.name.is_empty() {
            session.to_owned()
        } else {
            session.join(&self.name)
        }
    }
}

impl Stamp {
    /// The state of the session at `place`, which clients call `name`.
    ///
    /// # Errors
    /// It is neither a file nor a directory, or a link in the directory leads out of the root;
    /// failures of the file system.
    fn read(root: &Root, place: &Path, name: &str) -> Result<Self> {
        let failed = |error: io::Error| Failure::file(name, &error);
        let part = |name: OsString, place: PathBuf, data: &Metadata| FileState {
            name,
            place,
            bytes: data.len(),
            modified: data.modified().ok().map(|time| time.into_std()),
        };
        let data = root.handle.metadata(place).map_err(failed)?;
        if data.is_file() {
            let part = part(OsString::new(), place.to_owned(), &data);
            return Ok(Self([part].into()));
        }
        if !data.is_dir() {
            let message = format!("{name} is neither a file nor a directory");
            return Err(Failure::value(message));
        }
        let mut parts = Vec::new();
        for file in root.handle.read_dir(place).map_err(failed)? {
            let file_name = file.map_err(failed)?.file_name();
            // Hidden files and directories are not part of a session.
            if file_name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let called = format!("{name}/{}", file_name.to_string_lossy());
            // If there is none, it was removed meanwhile, or is a link to nothing.
            if let Some(place) = root.without_links(&place.join(&file_name), &called)? {
                let data = root.handle.metadata(&place).map_err(failed)?;
                if data.is_file() {
                    parts.push(part(file_name, place, &data));
                }
            }
        }
        parts.sort_unstable();
        Ok(Self(parts.into()))
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|part| part.bytes).sum()
    }
}

const OPEN: usize = 16;

/// The files that SQLite has beside that of a store.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Open stores by their paths below the root.
#[derive(Debug, Default)]
pub(super) struct OpenStores(Mutex<HashMap<PathBuf, OpenStore>>);

/// A store, and which file it was.
type OpenStore = (Option<FileId>, Arc<Store>);

impl OpenStores {
    /// The session that an address names, as it is now.
    pub(super) fn session(&self, root: &Root, address: StoreAddress<'_>) -> Result<Arc<Session>> {
        let store = self.open(root, address.store)?;
        let name = address.one_in(|| Ok(Arc::clone(&store)))?;
        Ok(store.session(name)?)
    }

    /// The store that a client calls `name`, for reading.
    ///
    /// # Errors
    /// A URL; a name that leads out of the root, or a file beside the store that does; no such file; it is not a
    /// store.
    pub(super) fn open(&self, root: &Root, name: &str) -> Result<Arc<Store>> {
        if name.contains("://") {
            let message = "this server reads stores below its root alone, and no database server";
            return Err(Failure::value(message));
        }
        let name = name.strip_prefix("sqlite:").unwrap_or(name);
        let missing =
            || Failure::plain(Exit::Missing, format!("there is no store {}", shown(name)));
        let place = root.resolve(name)?.ok_or_else(missing)?;
        for ending in BESIDE {
            root.resolve(&format!("{}{ending}", place.display()))?;
        }
        let before = identity(root, &place, name)?;
        let mut open = lock(&self.0);
        if let Some((known, store)) = open.get(&place)
            && *known == before
        {
            return Ok(Arc::clone(store));
        }
        let path = root.path.join(&place).display().to_string();
        let store = Store::builder()
            .read_only()
            .open(&path)
            .map_err(|error| called(error, &path, name))?;
        if identity(root, &place, name)? != before {
            let message = format!("the store {} was replaced while it was opened", shown(name));
            return Err(Failure::plain(Exit::Io, message));
        }
        let store = Arc::new(store);
        if open.len() >= OPEN {
            open.clear();
        }
        open.insert(place, (before, Arc::clone(&store)));
        Ok(store)
    }
}

fn identity(root: &Root, place: &Path, name: &str) -> Result<Option<FileId>> {
    let failed = |error| Failure::file(name, &error);
    let file = root.handle.open(place).map_err(failed)?;
    let file = file.into_std().metadata().map_err(failed)?;
    Ok(id_of(&file))
}

fn shown(name: &str) -> String {
    crate::app::present::clean(name, 200)
}

/// An error in which the path of a store is as the client wrote it.
fn called(error: Error, path: &str, name: &str) -> Failure {
    let message = error.message().replace(path, name);
    let diagnostic = Diagnostic::error(error.code(), message);
    let diagnostic = match &error.first().help {
        Some(help) => diagnostic.with_help(help.as_str()),
        None => diagnostic,
    };
    Error::new("", diagnostic).into()
}

#[cfg(test)]
mod tests {
    use super::{LoadedSessions, Stamp};
    use crate::app::mcp::root::Root;
    use crate::tree::Limits;
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_session_is_read_once_by_all_calls() {
        // Tests run in the package's directory.
        let root = Root::open(Path::new(".")).expect("a directory");
        let kept = LoadedSessions::new(Limits::default());
        let open = |name: &str| kept.open(&root, name).expect("a session");
        let first = open("fixtures/support-agent.jsonl");
        std::thread::scope(|scope| {
            for name in [
                "fixtures/support-agent.jsonl",
                "./fixtures//support-agent.jsonl",
            ] {
                let (first, open) = (&first, &open);
                scope.spawn(move || assert!(Arc::ptr_eq(first, &open(name)), "{name}"));
            }
        });
        assert!(!Arc::ptr_eq(&first, &open("fixtures/greenhouse.jsonl")));
        // Failures are not kept: each call has its own.
        for _ in 0..2 {
            assert!(kept.open(&root, "Cargo.toml").is_err());
        }
        // A log is imported, and said to be one.
        assert_eq!(&*kept.said(&root, "fixtures/support-agent.jsonl"), "");
        assert_eq!(&*kept.said(&root, "fixtures/chat.openai.json"), "");
        open("fixtures/chat.openai.json");
        let said = kept.said(&root, "fixtures/chat.openai.json");
        assert!(said.starts_with("note: read as a log (openai)"), "{said}");
    }

    #[test]
    fn a_state_is_that_of_names_lengths_and_times() {
        let dir = std::env::temp_dir().join(format!("pactql-kept-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("session/below")).expect("a directory");
        let root = Root::open(&dir).expect("a directory");
        let place = dir.join("session");
        let state = || Stamp::read(&root, Path::new("session"), "session");
        let stamp = || state().expect("a state");
        let write = |name: &str, text: &str| fs::write(place.join(name), text).expect("a file");
        write("a.json", "{}");
        let one = stamp();
        assert_eq!(one, stamp());
        // Hidden files and directories are not part of a session.
        write(".hidden", "x");
        write("below/c.json", "x");
        assert_eq!(one, stamp());
        write("b.json", "{}");
        let two = stamp();
        assert_ne!(one, two);
        write("b.json", "{} ");
        let longer = stamp();
        assert_ne!(two, longer);
        let file = fs::File::options().append(true).open(place.join("b.json"));
        let before = SystemTime::now() - Duration::from_secs(60);
        file.and_then(|file| file.set_modified(before))
            .expect("a file");
        assert_ne!(longer, stamp());
        #[cfg(unix)]
        {
            // A file of the session that is really elsewhere.
            std::os::unix::fs::symlink(std::env::current_exe().expect("us"), place.join("z.json"))
                .expect("a link");
            let refusal = state().expect_err("a file outside");
            assert!(
                refusal
                    .to_string()
                    .contains("`session/z.json` is not inside"),
                "{refusal}"
            );
        }
        let _ = fs::remove_dir_all(&dir);
    }
}
