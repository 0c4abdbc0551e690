//! Where the sessions are that a server shows: stores, files, folders, or the logs of this machine's agents.
//!
//! A client names a session as the list does, and nothing else: of a file its path, and behind a `#` the name of a further
//! session in it; of a store its name, with the store before it if there may be several. A path outside the list names
//! nothing, so a client reads no other file.

use crate::app::calls::arguments::Arguments;
use crate::app::calls::kept::Kept;
use crate::app::calls::{CallAnswer, Engines, NamedSession, SessionSource};
use crate::app::present::folders::{
    LogSource, files_of, logs_of_machine, sort_newest_first, state_of,
};
use crate::app::present::followed::FollowedLogs;
use crate::app::present::known::{KnownLogs, LogSession, one_of, sessions_of};
use crate::app::present::sessions::open_or_logs;
use crate::app::present::stores::{
    self, Access, OfLog, StoreAddress, about_of, session_json, without_passwords,
};
use crate::app::present::{Exit, Failure, Result};
use crate::engine::Engine;
use crate::history::{History, Session};
use crate::logs::is_opencode;
use crate::query::ir::Edition;
use crate::store::{Glob, ListedInfo, Store};
use crate::support::cancel;
use crate::support::lock;
use crate::tree::{Limits, SourceError};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// The most bytes of sessions that are kept to answer the next request: indexes of sessions of stores, and sessions of logs.
const CACHE_BYTES: u64 = 128 << 20;

/// The route that lists the names of sessions.
const LISTS: &str = "/api/sessions";

/// What a byte of a log counts for: what is read of it and what is made of that.
const OF_LOG: u64 = 2;

/// Rows of a list, unless the client says otherwise, and the most.
const ROWS: usize = 100;
const MOST_ROWS: usize = 1000;

/// How many logs are read at a time for a list.
const TOGETHER: usize = 32;

#[derive(Debug)]
pub(crate) struct Places {
    words: Vec<Place>,
    engines: Engines,
    limits: Limits,
    /// Whether the stores may be written.
    pub(super) write: bool,
    /// The stores in folders that are open, by path.
    stores: Mutex<HashMap<String, Arc<Store>>>,
    /// The logs that were listed, by path.
    files: Mutex<HashMap<String, LogSource>>,
    /// The paths of those that were read and have no session.
    others: Mutex<HashSet<String>>,
    kept: Kept<FileState, KeptLog>,
    known: Mutex<KnownLogs>,
    /// The bytes that were read of logs.
    log_bytes: AtomicU64,
    /// The most bytes of the indexes of all stores.
    of_stores: u64,
}

type FileState = (u64, SystemTime);

/// The sessions of a log, and what its next change is read on from.
#[derive(Clone, Debug)]
struct KeptLog {
    sessions: Arc<[LogSession]>,
    followed: Arc<FollowedLogs>,
}

#[derive(Debug)]
enum Place {
    Store(StorePlace),
    File(LogSource),
    Folder(PathBuf),
    Machine,
}

#[derive(Clone, Debug)]
struct StorePlace {
    store: Arc<Store>,
    /// Which of its sessions.
    glob: String,
    /// What is before a session's name: nothing if there is only this store.
    prefix: String,
}

/// What there is now.
struct FoundPlaces {
    stores: Vec<StorePlace>,
    /// The log written last first.
    logs: Vec<LogSource>,
    /// How many files of folders have a name that is not UTF-8, so that no client can name them.
    unnamed: usize,
}

/// A place in the list, in which stores come before logs.
#[derive(Clone, Debug)]
enum ListCursor {
    /// In a store, by its number, after a name.
    Store(usize, String),
    /// At a log, by its number, and at a session in it.
    Log(usize, usize),
}

impl ListCursor {
    fn parse(text: Option<&str>) -> Result<Self> {
        let Some(text) = text else {
            return Ok(Self::Store(0, String::new()));
        };
        let parsed = match text.split_once('#') {
            Some((number, after)) => number
                .parse()
                .map(|number| Self::Store(number, after.to_owned())),
            None => {
                let (log, session) = text.split_once('.').unwrap_or((text, "0"));
                log.parse()
                    .and_then(|log| Ok(Self::Log(log, session.parse()?)))
            }
        };
        parsed.map_err(|_| Failure::value("the cursor is not of this list"))
    }

    fn text(&self) -> String {
        match self {
            Self::Store(number, after) => format!("{number}#{after}"),
            Self::Log(number, session) => format!("{number}.{session}"),
        }
    }
}

/// The rows of an answer that lists sessions.
struct ListPart<'w> {
    rows: Vec<Value>,
    limit: usize,
    /// What a row must have.
    words: &'w [&'w str],
    /// The place after what was looked at.
    after: ListCursor,
    /// Whether there is more than fits.
    is_cut: bool,
}

impl<'w> ListPart<'w> {
    fn new(limit: usize, words: &'w [&'w str]) -> Self {
        Self {
            rows: Vec::new(),
            limit,
            words,
            after: ListCursor::Log(0, 0),
            is_cut: false,
        }
    }

    /// How many sessions of a store are read at a time: one more than fits shows whether there is more.
    fn most_to_read(&self) -> usize {
        if self.words.is_empty() {
            self.limit.saturating_sub(self.rows.len()) + 1
        } else {
            MOST_ROWS
        }
    }

    /// Notes that the answer is cut, if there is no room for what comes next.
    fn has_room(&mut self) -> bool {
        self.is_cut = self.rows.len() >= self.limit;
        !self.is_cut
    }

    /// Adds the row of a session, if it has all words, and if there is room. `after` is the place behind it.
    fn add(&mut self, row: Value, after: ListCursor) -> bool {
        let has_room = self.has_room();
        if has_room {
            if has_all(&row, self.words) {
                self.rows.push(row);
            }
            self.after = after;
        }
        has_room
    }
}

/// A session that a client named.
enum Named {
    Stored(Arc<Store>, String),
    /// A log, and which session of it.
    InLog(LogSource, Option<String>),
}

/// A session as it was looked at last.
#[derive(Default)]
pub(super) struct SeenSession {
    state: Option<FileState>,
    history: Option<Arc<History>>,
}

impl Places {
    /// What the words of a command line name; without one, the logs of this machine's agents.
    ///
    /// # Errors
    /// A word names nothing; it is a store that cannot be opened, or, without `write`, is not there; `write`, and no word
    /// is a store.
    pub(crate) fn new(words: &[String], limits: Limits, write: bool) -> Result<Self> {
        let mut places = Vec::new();
        for word in words {
            places.push(if let Some(address) = StoreAddress::parse(word) {
                let access = if write { Access::Create } else { Access::Serve };
                let shown = without_passwords(address.store);
                Place::Store(StorePlace {
                    store: Arc::new(stores::open(address.store, access)?),
                    glob: address.glob().to_owned(),
                    prefix: if words.len() > 1 {
                        format!("{shown}#")
                    } else {
                        String::new()
                    },
                })
            } else if !Path::new(word).exists() {
                return Err(SourceError::Missing(PathBuf::from(word)).into());
            } else if is_folder(word, limits)? {
                Place::Folder(PathBuf::from(word))
            } else {
                Place::File(LogSource::new(word))
            });
        }
        if words.is_empty() {
            logs_of_machine()?;
            places.push(Place::Machine);
        }
        if write && !places.iter().any(|place| matches!(place, Place::Store(_))) {
            return Err(
                Failure::usage("`--write` changes sessions of a store, and none is named")
                    .with_help("pactql serve STORE.db --write"),
            );
        }
        // Where there may be both, each has a half.
        let is_store = |place: &Place| matches!(place, Place::Store(_));
        let is_log = |place: &Place| matches!(place, Place::File(_));
        let of_logs = match (places.iter().all(is_store), places.iter().all(is_log)) {
            (true, _) => 0,
            (_, true) => CACHE_BYTES,
            _ => CACHE_BYTES / 2,
        };
        let places = Self {
            words: places,
            engines: Engines::new(),
            limits,
            write,
            stores: Mutex::default(),
            files: Mutex::default(),
            others: Mutex::default(),
            kept: Kept::new(of_logs),
            known: Mutex::new(KnownLogs::new(limits)),
            log_bytes: AtomicU64::new(0),
            of_stores: CACHE_BYTES - of_logs,
        };
        places.share_memory(&lock(&places.stores));
        Ok(places)
    }

    /// The folders without a session now, for a note.
    ///
    /// # Errors
    /// A file that is named has no session: what `pactql sessions` says of it.
    pub(crate) fn without_sessions(&self) -> Result<Vec<&Path>> {
        let has_session = |file: &LogSource| match StoreAddress::parse(&file.path) {
            Some(_) => self.store_in_folder(&file.path).is_some(),
            None => !self.rows(std::slice::from_ref(file)).concat().is_empty(),
        };
        let mut folders = Vec::new();
        for place in &self.words {
            match place {
                Place::File(file) => {
                    if let Err(failure) = self.in_log(file) {
                        let said = open_or_logs(Path::new(&file.path), self.limits, None);
                        return Err(said.err().unwrap_or(failure));
                    }
                }
                Place::Folder(folder) => {
                    let mut files = LogSource::below(folder)?;
                    // The first one is read again for the list, and is on its first page.
                    sort_newest_first(&mut files);
                    if !files.iter().any(has_session) {
                        folders.push(folder.as_path());
                    }
                }
                Place::Store(_) | Place::Machine => {}
            }
        }
        Ok(folders)
    }

    fn named_stores(&self) -> impl Iterator<Item = &Arc<Store>> {
        self.words.iter().filter_map(|place| match place {
            Place::Store(place) => Some(&place.store),
            _ => None,
        })
    }

    /// Gives each store its part of the memory.
    fn share_memory(&self, in_folders: &HashMap<String, Arc<Store>>) {
        let count = self.named_stores().count() + in_folders.len();
        let part = self.of_stores / count.max(1) as u64;
        for store in self.named_stores().chain(in_folders.values()) {
            store.set_memory(usize::try_from(part).unwrap_or(usize::MAX));
        }
    }

    /// What `/metrics` says of the places.
    pub(super) fn figures(&self) -> [(&'static str, &'static str, &'static str, u64); 3] {
        let (bytes, most) = self.cache_bytes();
        let read = self.log_bytes.load(Ordering::Relaxed);
        [
            (
                "log_bytes_read_total",
                "Bytes that were read of logs.",
                "counter",
                read,
            ),
            (
                "cache_bytes",
                "Bytes of the sessions that are kept.",
                "gauge",
                bytes,
            ),
            ("cache_budget_bytes", "The most of them.", "gauge", most),
        ]
    }

    /// The bytes of sessions that are kept, and the most that there can be.
    fn cache_bytes(&self) -> (u64, u64) {
        let in_folders = lock(&self.stores);
        let stores = self.named_stores().chain(in_folders.values());
        let stores: usize = stores.map(|store| store.memory_used()).sum();
        (self.kept.bytes() + stores as u64, CACHE_BYTES)
    }

    /// The stores and the logs that there are now.
    fn look(&self) -> Result<FoundPlaces> {
        let (mut stores, mut logs) = (Vec::new(), Vec::new());
        for place in &self.words {
            match place {
                Place::Store(place) => stores.push(place.clone()),
                Place::File(file) => logs.push(file.clone()),
                Place::Folder(folder) => logs.extend(LogSource::below(folder)?),
                Place::Machine => logs.extend(logs_of_machine()?),
            }
        }
        logs.retain(|file| {
            if StoreAddress::parse(&file.path).is_none() {
                return true;
            }
            stores.extend(self.store_in_folder(&file.path));
            false
        });
        let all = logs.len();
        logs.retain(|file| !file.is_unnamed);
        let unnamed = all - logs.len();
        sort_newest_first(&mut logs);
        let named = logs.iter().map(|file| (file.path.clone(), file.clone()));
        *lock(&self.files) = named.collect();
        Ok(FoundPlaces {
            stores,
            logs,
            unnamed,
        })
    }

    /// A store that a folder has; `None` of a file that is not one.
    fn store_in_folder(&self, path: &str) -> Option<StorePlace> {
        let mut open = lock(&self.stores);
        let store = match open.get(path) {
            Some(store) => Arc::clone(store),
            None => {
                let store = Arc::new(stores::open(path, Access::Serve).ok()?);
                open.insert(path.to_owned(), Arc::clone(&store));
                self.share_memory(&open);
                store
            }
        };
        Some(StorePlace {
            store,
            glob: String::new(),
            prefix: format!("{path}#"),
        })
    }

    /// `GET /api/sessions`: the rows from a place in the list on, with the place of the rest.
    pub(super) fn list(&self, arguments: &Arguments) -> Result<CallAnswer> {
        let search = arguments.text("search").unwrap_or_default().to_lowercase();
        let words: Vec<&str> = search.split_whitespace().collect();
        let limit = arguments.size("limit").unwrap_or(ROWS).clamp(1, MOST_ROWS);
        let from = ListCursor::parse(arguments.text("cursor"))?;
        let FoundPlaces {
            stores,
            logs,
            unnamed,
        } = self.look()?;
        let (first_store, mut next_log, mut next_session) = match &from {
            ListCursor::Store(number, _) => (*number, 0, 0),
            ListCursor::Log(number, session) => (stores.len(), *number, *session),
        };
        let mut part = ListPart::new(limit, &words);
        'stores: for (number, place) in stores.iter().enumerate().skip(first_store) {
            let mut after = match &from {
                ListCursor::Store(first, after) if *first == number => after.clone(),
                _ => String::new(),
            };
            loop {
                cancel::check()?;
                let most = part.most_to_read();
                let page = place.store.page(&place.glob, &after, most)?;
                let is_last = page.len() < most;
                for ListedInfo { mut info, meta } in page {
                    after.clone_from(&info.name);
                    info.name.insert_str(0, &place.prefix);
                    let about = about_of(meta.as_deref());
                    let row = session_json(&info, about, OfLog::default());
                    if !part.add(row, ListCursor::Store(number, after.clone())) {
                        break 'stores;
                    }
                }
                if is_last {
                    break;
                }
            }
        }
        'logs: while next_log < logs.len() && part.has_room() {
            cancel::check()?;
            let some = &logs[next_log..logs.len().min(next_log + TOGETHER)];
            for found in self.rows(some) {
                for row in found.into_iter().skip(next_session) {
                    if !part.add(row, ListCursor::Log(next_log, next_session + 1)) {
                        break 'logs;
                    }
                    next_session += 1;
                }
                (next_log, next_session) = (next_log + 1, 0);
            }
        }
        if self
            .words
            .iter()
            .any(|place| matches!(place, Place::Machine))
        {
            lock(&self.known).keep(&logs);
        }
        let mut total = self.count(&logs);
        for place in &stores {
            total += place.store.count(&place.glob)?;
        }
        let next = part.is_cut.then(|| part.after.text());
        let answer = json!({
            "sessions": part.rows, "next": next, "total": total, "unnamed": unnamed, "write": self.write,
        });
        Ok(answer.to_string().into())
    }

    /// How many are logs: a file counts until it was read.
    fn count(&self, logs: &[LogSource]) -> usize {
        let others = lock(&self.others);
        let logs = logs.iter().filter(|file| !others.contains(&file.path));
        logs.count()
    }

    /// The rows of each log.
    fn rows(&self, logs: &[LogSource]) -> Vec<Vec<Value>> {
        // An opened log is followed; listing a log that is not open and does not grow keeps nothing in memory.
        let read = |file: &LogSource, is_written: bool| {
            if is_written || self.kept.peek(&PathBuf::from(&file.path)).is_some() {
                self.in_log(file)
            } else {
                sessions_of(file, self.limits, None).map(Arc::from)
            }
        };
        let known = lock(&self.known).of_read(logs, read);
        let mut others = lock(&self.others);
        for (file, known) in logs.iter().zip(&known) {
            if known.is_empty() {
                others.insert(file.path.clone());
            } else {
                others.remove(&file.path);
            }
        }
        let rows = logs
            .iter()
            .zip(known)
            .map(|(file, known)| known.iter().map(|one| one.json(&file.path)).collect());
        rows.collect()
    }

    /// What a client's name means.
    fn find(&self, name: &str) -> Result<Named> {
        if let Some(found) = self.find_listed(name)? {
            return Ok(found);
        }
        // It may have come since.
        self.look()?;
        let missing = || {
            let failure = Failure::plain(Exit::Missing, "no session has this name");
            failure.with_help(format!("`{LISTS}` lists the names"))
        };
        self.find_listed(name)?.ok_or_else(missing)
    }

    fn find_listed(&self, name: &str) -> Result<Option<Named>> {
        let words = self.words.iter().filter_map(|place| match place {
            Place::Store(place) => Some(place.clone()),
            _ => None,
        });
        let in_folders = lock(&self.stores);
        let in_folders = in_folders.iter().map(|(path, store)| StorePlace {
            store: Arc::clone(store),
            glob: String::new(),
            prefix: format!("{path}#"),
        });
        for place in words.chain(in_folders.collect::<Vec<_>>()) {
            let Some(name) = name.strip_prefix(&place.prefix) else {
                continue;
            };
            if Glob::new(&place.glob).matches(name) {
                return Ok(Some(Named::Stored(place.store, name.to_owned())));
            }
        }
        let files = lock(&self.files);
        let whole = files.get(name).map(|file| (file, None));
        let parts = name.rmatch_indices('#');
        let mut parts =
            parts.filter_map(|(at, _)| Some((files.get(&name[..at])?, Some(&name[at + 1..]))));
        let found = whole.or_else(|| parts.next());
        Ok(found.map(|(file, part)| Named::InLog(file.clone(), part.map(str::to_owned))))
    }

    /// The store of a session that may be written, and its name there.
    ///
    /// # Errors
    /// There is no such session; it is not of a store; nothing may be written here.
    pub(super) fn stored(&self, name: &str) -> Result<(Arc<Store>, String)> {
        match self.find(name)? {
            Named::Stored(store, name) if self.write => Ok((store, name)),
            _ => Err(
                Failure::coded("E_READ_ONLY", Exit::Missing, "nothing is written here").with_help(
                    "`pactql serve STORE.db --write` lets sessions of the store be written",
                ),
            ),
        }
    }

    /// The sessions of a log. Of one that was read before, what was appended is read.
    fn in_log(&self, file: &LogSource) -> Result<Arc<[LogSession]>> {
        let path = PathBuf::from(&file.path);
        let state = || {
            let state = state_of(&path).map_err(|error| Failure::file(&file.path, &error))?;
            Ok((state, OF_LOG * state.0))
        };
        let kept = self.kept.get(&path, state, |(bytes, _), before| {
            let followed = before
                .map(|before: KeptLog| before.followed)
                .unwrap_or_default();
            let read_before = followed.bytes_read();
            let sessions = sessions_of(file, self.limits, Some(&followed))?;
            let read = match followed.bytes_read() - read_before {
                0 => *bytes,
                read => read,
            };
            self.log_bytes.fetch_add(read, Ordering::Relaxed);
            Ok(KeptLog {
                sessions: sessions.into(),
                followed,
            })
        })?;
        Ok(kept.sessions)
    }

    /// The session of a log, by its name in it.
    fn part_of(&self, file: &LogSource, part: Option<&str>) -> Result<Arc<Session>> {
        let sessions = self.in_log(file)?;
        let found = one_of(&sessions, &file.path, part, LISTS)?;
        Ok(Arc::clone(&found.session))
    }

    /// What is said of the log of a session that was just read: a line, or nothing. A log that is too large to keep is not
    /// read again for it.
    pub(super) fn said(&self, name: &str) -> Arc<str> {
        let kept = match self.find_listed(name) {
            Ok(Some(Named::InLog(file, _))) => self.kept.peek(&PathBuf::from(&file.path)),
            _ => None,
        };
        let first = kept.as_ref().and_then(|log| log.sessions.first());
        first.map_or_else(|| Arc::from(""), |one| Arc::clone(&one.said))
    }

    /// The session, if it is another than it was.
    pub(super) fn grown(&self, name: &str, seen: &mut SeenSession) -> Result<Option<Arc<Session>>> {
        let session = match self.find(name)? {
            Named::Stored(store, name) => store.session(&name)?,
            Named::InLog(file, part) => {
                let state = state_of(Path::new(&file.path)).ok();
                if state.is_some() && state == seen.state {
                    return Ok(None);
                }
                let session = self.part_of(&file, part.as_deref())?;
                seen.state = state;
                session
            }
        };
        let history = session.history();
        let is_same = |before: &Arc<History>| Arc::ptr_eq(before, &history);
        let grown = !seen.history.as_ref().is_some_and(is_same);
        seen.history = Some(history);
        Ok(grown.then_some(session))
    }

    /// A number that is another when the list is, and how many lines the list has.
    pub(super) fn mark(&self) -> Result<(u64, usize)> {
        let mut hasher = DefaultHasher::new();
        let FoundPlaces { stores, logs, .. } = self.look()?;
        let mut total = self.count(&logs);
        for place in stores {
            let (version, sessions) = place.store.mark(&place.glob)?;
            total += sessions;
            (place.prefix, version, sessions).hash(&mut hasher);
        }
        for file in logs {
            let state: io::Result<FileState> = state_of(Path::new(&file.path));
            (file.path, state.ok()).hash(&mut hasher);
        }
        Ok((hasher.finish(), total))
    }
}

impl SessionSource for Places {
    fn engine(&self, edition: Edition) -> Result<&Engine> {
        self.engines.get(edition)
    }

    fn session(&self, name: &str) -> Result<Arc<Session>> {
        match self.find(name)? {
            Named::Stored(store, name) => {
                let session = store.session(&name);
                session.map_err(|error| Failure::from(error).listed_by(LISTS))
            }
            Named::InLog(file, part) => self.part_of(&file, part.as_deref()),
        }
    }

    fn sessions(&self, name: &str) -> Result<Vec<NamedSession>> {
        let Named::InLog(file, None) = self.find(name)? else {
            return Ok(vec![(name.to_owned(), self.session(name)?)]);
        };
        let sessions = self.in_log(&file)?;
        let named = sessions.iter().map(|one| {
            let name = match &one.part {
                None => file.path.clone(),
                Some(part) => format!("{}#{part}", file.path),
            };
            (name, Arc::clone(&one.session))
        });
        Ok(named.collect())
    }
}

/// Whether a word is a folder of logs or will be one: it has no files yet.
fn is_folder(word: &str, limits: Limits) -> Result<bool> {
    let path = Path::new(word);
    let is_folder = path.is_dir() && !is_opencode(path);
    Ok(is_folder && (files_of(word, limits)?.is_some() || LogSource::below(path)?.is_empty()))
}

/// Whether what a row says of its session has each of some words, which are in lower case.
fn has_all(row: &Value, words: &[&str]) -> bool {
    let said = ["name", "title", "project", "agent", "model"];
    let said = said.map(|name| row[name].as_str().unwrap_or_default().to_lowercase());
    words
        .iter()
        .all(|word| said.iter().any(|said| said.contains(word)))
}
