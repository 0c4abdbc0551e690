//! What is known of the logs of this machine's agents, kept in the user's cache folder so that a log is read once.
//!
//! An entry is true of a log only while its size, its times, its place on the disk and the hash of its ends are what they
//! were, and only for the program that wrote it. The file may be deleted, and one that cannot be read or written is left
//! out. This file must not know how sessions are listed.

use super::clean;
use super::failure::Result;
use super::failure::{Exit, Failure};
use super::folders::LogSource;
use super::followed::FollowedLogs;
use super::sessions::one_of_several;
use super::sessions::{FileContents, in_folder, open_or_logs, session_of};
use super::stores::{OfLog, about_session, session_json};
use crate::history::Session;
use crate::inspect::{Prices, Usage, UsageBy, time_of};
use crate::logs::file::output;
use crate::logs::position_of;
use crate::logs::{ImportedSession, is_opencode, is_storage, session_names, stem};
use crate::store::SessionInfo;
use crate::tree::Limits;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{DirBuilder, File, Metadata};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A session of a log.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KnownSession {
    /// What names it in the log; `None` of the one that the log is.
    pub(crate) part: Option<String>,
    /// Whether it belongs to another: a branch or a subagent.
    pub(crate) belongs: bool,
    pub(crate) title: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) when: Option<String>,
    pub(crate) steps: usize,
    cycle: Option<i64>,
    working: bool,
    /// Whether it is of a log, and not of a file of snapshots.
    is_of_log: bool,
    /// Tokens in and out, if the log has the provider's counts.
    pub(crate) tokens: Option<u64>,
    /// What its calls cost, if a price is known.
    pub(crate) cost: Option<String>,
    used: Value,
}

#[derive(Debug, Serialize, Deserialize)]
struct KnownLog {
    state: String,
    sessions: Arc<[KnownSession]>,
}

#[derive(Default, Serialize, Deserialize)]
struct Cache {
    program: String,
    logs: HashMap<String, KnownLog>,
}

#[derive(Debug)]
pub(crate) struct KnownLogs {
    /// What was in the file.
    old: HashMap<String, KnownLog>,
    /// What was asked for, of logs that can be known.
    new: HashMap<String, KnownLog>,
    limits: Limits,
}

impl KnownSession {
    /// A line of `pactql sessions --json` (INSPECT §4); `path` is that of its file.
    pub(crate) fn json(&self, path: &str) -> Value {
        let info = SessionInfo {
            name: match &self.part {
                None => path.to_owned(),
                Some(part) => format!("{path}#{part}"),
            },
            snapshots: self.steps,
            cycle: self.cycle,
            working: self.working,
            created_at_ns: 0,
            committed_at_ns: None,
            source: self.is_of_log.then(|| path.to_owned()),
            parent: None,
        };
        let of_log = OfLog {
            when: self.when.clone(),
            used: self.used.clone(),
        };
        let about = [&self.title, &self.project, &self.agent, &self.model];
        session_json(&info, about.map(Clone::clone), of_log)
    }
}

impl KnownLogs {
    pub(crate) fn new(limits: Limits) -> Self {
        let text = place().and_then(|place| std::fs::read(place).ok());
        let cache = text.and_then(|text| serde_json::from_slice::<Cache>(&text).ok());
        let cache = cache.filter(|cache| cache.program == program(limits));
        Self {
            old: cache.unwrap_or_default().logs,
            new: HashMap::new(),
            limits,
        }
    }

    /// The sessions of each of some logs; of a file that cannot be read there are none.
    pub(crate) fn of(&mut self, files: &[LogSource]) -> Vec<Arc<[KnownSession]>> {
        let limits = self.limits;
        self.of_read(files, |file, _| {
            sessions_of(file, limits, None).map(Arc::from)
        })
    }

    /// As [`KnownLogs::of`], where `read` returns the sessions of a log that is not known. The argument says whether the log is one
    /// that was written just now.
    pub(crate) fn of_read(
        &mut self,
        files: &[LogSource],
        read: impl Fn(&LogSource, bool) -> Result<Arc<[LogSession]>> + Sync,
    ) -> Vec<Arc<[KnownSession]>> {
        let found = files.par_iter().map(|file| {
            let state = state_of(Path::new(&file.path));
            let known = self
                .new
                .get(&file.path)
                .or_else(|| self.old.get(&file.path));
            let known = known.filter(|known| Some(&known.state) == state.as_ref());
            match known {
                Some(known) => (state, Arc::clone(&known.sessions)),
                None => {
                    let sessions = read(file, state.is_none());
                    let sessions = sessions.iter().flat_map(|sessions| sessions.iter());
                    (
                        state,
                        sessions.filter_map(|log| described(file, log)).collect(),
                    )
                }
            }
        });
        let found: Vec<(Option<String>, Arc<[KnownSession]>)> = found.collect();
        let found = files.iter().zip(found).map(|(file, (state, sessions))| {
            if let Some(state) = state {
                let sessions = Arc::clone(&sessions);
                let known = KnownLog { state, sessions };
                self.new.insert(file.path.clone(), known);
            }
            sessions
        });
        found.collect()
    }

    /// Writes what is known for the next time; `all` are the logs that there are.
    pub(crate) fn keep(&mut self, all: &[LogSource]) {
        let Self { old, new, limits } = self;
        let is_known = |(path, log): (&String, &KnownLog)| {
            old.get(path).is_some_and(|known| known.state == log.state)
        };
        let Some(place) = place().filter(|_| !new.iter().all(is_known)) else {
            return;
        };
        old.extend(new.drain());
        let mut cache = Cache {
            program: program(*limits),
            logs: HashMap::new(),
        };
        for file in all {
            cache.logs.extend(old.remove_entry(&file.path));
        }
        // Without a cache everything works, only later.
        let _ = write(&place, &cache);
        *old = cache.logs;
    }
}

/// Titles are words of conversations, so only the user may read them.
fn write(place: &Path, cache: &Cache) -> io::Result<()> {
    let folder = place.parent().unwrap_or(place);
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)?;
    let text = json!(cache).to_string();
    output(place, |out| out.write_all(text.as_bytes()))
}

/// A session of a log, and what it is there.
#[derive(Debug)]
pub(crate) struct LogSession {
    /// As of [`KnownSession`].
    pub(crate) part: Option<String>,
    pub(crate) belongs: bool,
    pub(crate) session: Arc<Session>,
    /// Its name as an import gives it; `None` of a file of snapshots.
    given: Option<String>,
    /// Its name in the log, if that has one.
    own: Option<String>,
    /// What is said of the log: a note on lines of it that could not be read, or nothing.
    pub(crate) said: Arc<str>,
}

/// The sessions of a log, branches and subagents last; or the session that a file or a directory of documents is.
///
/// # Errors
/// It is neither, or cannot be read.
pub(crate) fn sessions_of(
    file: &LogSource,
    limits: Limits,
    followed: Option<&FollowedLogs>,
) -> Result<Vec<LogSession>> {
    file.check()?;
    let path = Path::new(&file.path);
    let contents = if path.is_dir() && !is_opencode(path) && !is_storage(path) {
        open_or_logs(path, limits, followed)
    } else {
        in_folder(path, limits, followed)
    };
    named(path, contents?)
}

/// The sessions in the contents of a file, as [`sessions_of`].
pub(crate) fn named(path: &Path, contents: FileContents) -> Result<Vec<LogSession>> {
    let (logs, said) = match contents {
        FileContents::Session(session) => {
            return Ok(vec![LogSession {
                part: None,
                belongs: false,
                session: Arc::new(session),
                given: None,
                own: None,
                said: Arc::from(""),
            }]);
        }
        FileContents::Neither(failure) => return Err(failure),
        FileContents::Log(logs, note) => (logs, Arc::from(note.line_with_import())),
    };
    let belongs = |log: &ImportedSession| {
        let name = log.name.as_deref().unwrap_or_default();
        log.parent.is_some() || name.starts_with(['~', '/'])
    };
    // As an import names them. A branch or a subagent has its name in the log, which belongs to a session.
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let given = session_names(stem(&file_name), &logs);
    let mut logs: Vec<(ImportedSession, String)> = logs.into_iter().zip(given).collect();
    logs.sort_by_key(|(log, _)| belongs(log));
    let is_one = logs.get(1).is_none_or(|(log, _)| belongs(log));
    let sessions = logs.iter().enumerate().map(|(at, (log, given))| {
        let belongs = belongs(log);
        let part = log.name.as_ref().filter(|_| belongs).unwrap_or(given);
        Ok(LogSession {
            part: (at > 0 || !is_one).then(|| part.clone()),
            belongs,
            session: session_of(log)?,
            given: Some(given.clone()),
            own: log.name.clone(),
            said: Arc::clone(&said),
        })
    });
    sessions.collect()
}

/// The session of the log at `path` that a word names, by the name of an import or by that in the log; without a word the one
/// that the log is. `lists` is what a client lists the names with.
///
/// # Errors
/// The log has none of this name; it has several, and none is named.
pub(crate) fn one_of<'s>(
    sessions: &'s [LogSession],
    path: &str,
    word: Option<&str>,
    lists: &str,
) -> Result<&'s LogSession> {
    let Some(word) = word else {
        let own = || sessions.iter().filter(|one| !one.belongs).count();
        let several = || one_of_several(Path::new(path), own(), lists);
        let found = sessions.iter().find(|one| one.part.is_none());
        return found.ok_or_else(several);
    };
    let names = sessions.iter();
    let names = names.map(|one| (one.given.as_deref(), one.own.as_deref()));
    let found = position_of(word, names).and_then(|at| sessions.get(at));
    found.ok_or_else(|| {
        let message = format!("{path} has no session `{}`", clean(word, 200));
        Failure::plain(Exit::Missing, message).with_help(format!("`{lists}` lists them"))
    })
}

fn described(file: &LogSource, log: &LogSession) -> Option<KnownSession> {
    let session = &log.session;
    let mut usage = Usage::new(UsageBy::Session, Prices::default());
    usage.add(&file.path, session).ok()?;
    let used = usage.total;
    let history = session.history();
    let newest = history.latest();
    let [title, project, agent, model] = about_session(&history);
    let has_price = used.requests > used.unpriced + used.uncounted;
    Some(KnownSession {
        part: log.part.clone(),
        belongs: log.belongs,
        title,
        project,
        agent,
        model,
        when: newest.and_then(|newest| time_of(newest)),
        steps: history.committed().len(),
        cycle: history.cycles().max(),
        working: history.has_working(),
        is_of_log: log.given.is_some(),
        tokens: (used.requests > used.uncounted)
            .then(|| used.input_tokens.saturating_add(used.output_tokens)),
        cost: has_price.then(|| used.nano_dollars.to_string()),
        used: json!(used),
    })
}

/// The file of the cache; `None` on a machine where there is no place for it.
fn place() -> Option<PathBuf> {
    let folder = |name: &str, below: &str| {
        let folder = PathBuf::from(std::env::var_os(name).filter(|value| !value.is_empty())?);
        folder.exists().then(|| folder.join(below))
    };
    let home = if cfg!(target_os = "macos") {
        "Library/Caches"
    } else {
        ".cache"
    };
    let local = || folder("LOCALAPPDATA", "");
    let place = folder("XDG_CACHE_HOME", "").or_else(local);
    let place = place.or_else(|| folder("HOME", home))?;
    Some(place.join("pactql").join("logs.json"))
}

/// What tells one build of the program from another, and what it reads at most: a log that was too large is not known.
fn program(limits: Limits) -> String {
    let about = std::env::current_exe().and_then(std::fs::metadata);
    let times = about.map(|about| times(&about)).unwrap_or_default();
    let (version, most) = (env!("CARGO_PKG_VERSION"), limits.max_input);
    format!("{version} {most} {times}")
}

/// The size of a file, and all that changes when it is written.
fn times(about: &Metadata) -> String {
    let modified = about.modified().ok();
    let since = modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let nanos = since.unwrap_or_default().as_nanos();
    #[cfg(unix)]
    let place = {
        use std::os::unix::fs::MetadataExt as _;
        let (changed, part) = (about.ctime(), about.ctime_nsec());
        format!("{} {} {changed}.{part}", about.dev(), about.ino())
    };
    #[cfg(not(unix))]
    let place = "";
    format!("{} {nanos} {place}", about.len())
}

/// How much of each end of a log is hashed.
const END: u64 = 4096;

/// A log that was written so lately may be written again without another time.
const SETTLED: Duration = Duration::from_secs(2);

/// What a log is known by; `None` of one in several files, and of one that is being written.
fn state_of(path: &Path) -> Option<String> {
    // A pipe is not opened: what is read of it is gone.
    let about = path.metadata().ok().filter(Metadata::is_file)?;
    let age = SystemTime::now().duration_since(about.modified().ok()?);
    if is_opencode(path) || age.ok()? < SETTLED {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let mut ends = Vec::new();
    (&file).take(END).read_to_end(&mut ends).ok()?;
    let tail = about.len().saturating_sub(END);
    file.seek(SeekFrom::Start(tail)).ok()?;
    file.take(END).read_to_end(&mut ends).ok()?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&ends);
    Some(format!("{} {:x}", times(&about), hasher.finish()))
}
