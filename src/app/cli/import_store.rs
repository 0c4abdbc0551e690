//! Writing the sessions of `pactql import` into a store: new ones, and those whose log has grown.
//!
//! With `--follow` the files are looked at in turns. One whose size and time of change are what they were is not
//! read; one that has changed is read as a whole, because only the whole says which branch of it is the
//! newest, and the store gets what is new.

use super::command::say;
use super::folders::LogSource;
use super::import_marks::LogMarks;
use super::import_read::{ImportTarget, Importing, Named, ReadSession, several};
use super::interrupt::leave;
use super::progress::Progress;
use super::words::quoted;
use super::write::new_name;
use crate::app::present::sessions::session_of;
use crate::app::present::stores::{StoreAddress, Which};
use crate::app::present::{Exit, Failure, counted, printable};
use crate::logs::{log_of, unique};
use crate::store::{LogImport, NewSession, Store};
use crate::support::diag::{Code, Diagnostic, Error};
use crate::tree::source::files_below;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

#[derive(Default)]
pub(super) struct ImportedCounts {
    /// The sessions that were such already, in numbers.
    pub(super) sessions: usize,
    pub(super) snapshots: usize,
    pub(super) logs: BTreeSet<usize>,
    pub(super) existing: usize,
    /// What became of the sessions of logs that were there, if one was.
    pub(super) again: Option<LogImport>,
}

impl ImportedCounts {
    pub(super) fn count(sessions: &[Named]) -> Self {
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

/// What became of the sessions of logs that were in the store, as JSON and as lines; the lines are empty if there
/// was none.
pub(super) fn log_report(again: Option<&LogImport>) -> (Value, String) {
    let none = LogImport::default();
    let logs = again.unwrap_or(&none);
    let renamed = logs.renamed.iter();
    let renamed: Vec<Value> = renamed
        .map(|(from, to)| json!({"from": from, "to": to}))
        .collect();
    let json = json!({
        "grown": logs.grown,
        "new": logs.new,
        "renamed": renamed,
        "same": logs.same,
        "snapshots": logs.snapshots,
    });
    let mut text = String::new();
    if again.is_some() {
        let snapshots = counted(logs.snapshots as u64, "snapshot");
        let new = counted(logs.new as u64, "session");
        let (grown, same) = (logs.grown, logs.same);
        let _ = writeln!(
            text,
            "added {snapshots}: {new} new, {grown} grown, {same} as before"
        );
    }
    for (from, to) in &logs.renamed {
        let _ = writeln!(text, "`{}` is now `{}`", printable(from), printable(to));
    }
    (json, text)
}

fn add(all: &mut Option<LogImport>, more: LogImport) {
    let all = all.get_or_insert_default();
    all.new += more.new;
    all.grown += more.grown;
    all.same += more.same;
    all.snapshots += more.snapshots;
    all.renamed.extend(more.renamed);
}

/// Writes sessions; none if one of them is there already and is not of a log, or all but those.
pub(super) fn write_store(
    importing: &Importing<'_>,
    address: StoreAddress<'_>,
    mut sessions: Vec<Named>,
) -> Result<ImportedCounts, Failure> {
    importing.rename(address, &mut sessions)?;
    let store = importing.store()?;
    let listed = match &sessions[..] {
        // Looked up by its name.
        [one] if one.log.is_none() => store.sessions(&one.name)?,
        _ => store.sessions("")?,
    };
    let names: HashSet<&str> = listed.iter().map(|info| &*info.name).collect();
    let sources = listed.iter().filter_map(|info| info.source.as_deref());
    let sources: HashSet<&str> = sources.collect();
    let is_taken = |named: &Named| names.contains(&*named.name);
    let is_log = |named: &Named| {
        let is_read = matches!(named.made, ReadSession::Log(_) | ReadSession::Unchanged(_));
        named.log.is_some() && is_read
    };
    let before = sessions.len();
    let skips = importing.args.skip_existing;
    if skips {
        sessions.retain(|named| !is_taken(named));
    } else {
        let others = sessions.iter().filter(|named| !is_log(named));
        let mut taken = others.filter(|named| is_taken(named));
        if let Some(first) = taken.next() {
            return Err(exists(address, &first.name, before, taken.count()));
        }
    }
    let existing = before - sessions.len();
    let unchanged = importing.take_unchanged(&mut sessions)?;
    let mut written = ImportedCounts::count(&sessions);
    written.existing = existing;
    written
        .logs
        .extend(unchanged.iter().filter_map(|named| named.log));
    if !unchanged.is_empty() {
        written.again.get_or_insert_default().same += unchanged.len();
    }
    // The logs that have something in the store: a session, or another of the same log.
    let is_known = |named: &Named| {
        let source = named.source.as_deref();
        is_taken(named) || source.is_some_and(|path| sources.contains(path))
    };
    let logs = sessions
        .iter()
        .filter(|named| is_log(named) && is_known(named));
    let logs: HashSet<usize> = logs.filter_map(|named| named.log).collect();
    let mut again: BTreeMap<usize, Vec<Named>> = BTreeMap::new();
    let mut new = Vec::new();
    for named in sessions {
        match named.log.filter(|log| !skips && logs.contains(log)) {
            Some(log) => again.entry(log).or_default().push(named),
            None => new.push(named),
        }
    }
    import_all(address.store, store, new)?;
    for sessions in again.into_values() {
        add(&mut written.again, import_log(address, store, sessions)?);
    }
    Ok(written)
}

/// Brings the sessions of one log up to what it says now.
fn import_log(
    address: StoreAddress<'_>,
    store: &Store,
    sessions: Vec<Named>,
) -> Result<LogImport, Failure> {
    let source = sessions.first().and_then(|named| named.source.clone());
    let mut read = Vec::with_capacity(sessions.len());
    let mut marks = Vec::new();
    for named in sessions {
        let session = match named.made {
            ReadSession::Log(log) => session_of(&log)?,
            ReadSession::Unchanged(_) | ReadSession::Session(_) | ReadSession::Stored(..) => {
                return Err(Failure::plain(
                    Exit::Input,
                    "it is a session already, not a log",
                ));
            }
        };
        read.push((named.name, session));
        marks.extend(named.mark);
    }
    match store.import_marked_log(&read, source.as_deref(), &marks) {
        Ok(done) => Ok(done),
        Err(error) if error.code() == Code::SessionExists => {
            let names = read.iter().map(|(name, _)| name);
            let name = names
                .into_iter()
                .find(|name| error.to_string().contains(&***name));
            Err(exists(address, name.map_or("", |name| name), 1, 0))
        }
        Err(error) => Err(error.into()),
    }
}

impl Importing<'_> {
    /// Takes out the sessions of logs that are in the store as they would be now, and returns them. A log whose sessions
    /// have other names there is read.
    fn take_unchanged(&self, sessions: &mut Vec<Named>) -> Result<Vec<Named>, Failure> {
        let is_renamed = |named: &&Named| match &named.made {
            ReadSession::Unchanged(name) => *name != named.name,
            _ => false,
        };
        let logs = sessions.iter().filter(is_renamed);
        let logs: BTreeSet<usize> = logs.filter_map(|named| named.log).collect();
        for log in logs {
            let mut of_log: Vec<&mut Named> = sessions
                .iter_mut()
                .filter(|named| named.log == Some(log))
                .collect();
            let source = of_log.first().and_then(|named| named.source.clone());
            let read = self.read_file(&source.unwrap_or_default())?;
            if read.made.len() != of_log.len() {
                let changed = "the log has changed while it was read; import it again";
                return Err(Failure::plain(Exit::Io, changed));
            }
            for (at, (named, made)) in of_log.iter_mut().zip(read.made).enumerate() {
                named.mark = read.mark.as_ref().map(|mark| mark.with_session(at));
                named.made = made;
            }
        }
        let is_unchanged = |named: &mut Named| matches!(named.made, ReadSession::Unchanged(_));
        Ok(sessions.extract_if(.., is_unchanged).collect())
    }

    /// Gives the one session its name, and refuses names that no session can have.
    fn rename(&self, address: StoreAddress<'_>, sessions: &mut [Named]) -> Result<(), Failure> {
        let named = match address.which {
            Which::All => self.args.name.as_deref(),
            _ => Some(new_name(address)?),
        };
        if let Some(name) = named {
            match sessions {
                [one] => name.clone_into(&mut one.name),
                [] => {}
                _ => return Err(several(ImportTarget::Store(address), sessions.len())),
            }
        }
        let is_wrong = |named: &&Named| named.name.contains('*') || named.name.is_empty();
        match sessions.iter().find(is_wrong) {
            None => Ok(()),
            Some(Named { name, .. }) => Err(Failure::usage(format!(
                "a session cannot be called `{name}`: a `*` is for patterns, and a name is not empty"
            ))
            .with_help("`--name` gives another name")),
        }
    }
}

fn exists(address: StoreAddress<'_>, name: &str, sessions: usize, more: usize) -> Failure {
    let store = address.store;
    let whole = quoted(&format!("{store}#{name}"));
    let delete = format!("to replace it, first: pactql store delete {whole} --yes");
    let help = match (sessions, more) {
        (1, _) => format!("choose another name; {delete}"),
        (_, 0) => format!("`--skip-existing` imports the others; {delete}"),
        _ => format!("and {more} more of these names; `--skip-existing` imports the others"),
    };
    let message = format!("the store {store} has a session `{name}` already");
    Error::new(
        "",
        Diagnostic::error(Code::SessionExists, message).with_help(help),
    )
    .into()
}

/// Writes sessions, many in a transaction. If one fails, those before it stay, and the failure says which.
fn import_all(store: &str, opened: &Store, sessions: Vec<Named>) -> Result<(), Failure> {
    let progress = Progress::bar(sessions.len());
    let names: Vec<String> = sessions.iter().map(|named| named.name.clone()).collect();
    let mut unread = None;
    let ready = sessions.into_iter().map_while(|named| {
        progress.step();
        match named.made.session() {
            Ok(session) => Some(NewSession {
                name: named.name,
                session,
                source: named.source,
                mark: named.mark,
            }),
            Err(failure) => {
                unread = Some(failure);
                None
            }
        }
    });
    let (imported, failure) = match opened.import_marked(ready) {
        Ok(imported) => (imported, unread),
        Err(stopped) => (stopped.imported, Some(stopped.error.into())),
    };
    drop(progress);
    let Some(failure) = failure else {
        return Ok(());
    };
    if let (Some(at), true) = (imported.checked_sub(1), names.len() > 1) {
        say(&format!(
            "note: {imported} of {} are in {store}, up to `{}`; `--skip-existing` goes on after them\n",
            counted(names.len() as u64, "session"),
            printable(&names[at])
        ));
    }
    Err(failure)
}

/// The time between two looks at the files. It is longer if looking took longer.
const PAUSE: Duration = Duration::from_millis(500);

const TICK: Duration = Duration::from_millis(50);

/// A log that cannot be read is given up if it does not change for this long.
const PATIENCE: Duration = Duration::from_secs(2);

/// The same for a log whose lines are valid JSON, but of which nothing is understood yet.
const LONG_PATIENCE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Seen {
    state: Option<(u64, SystemTime)>,
    stem: String,
    /// What was said of it last, so that it is said once.
    failure: String,
    /// If it could not be read: the exit code, and when it is given up unless it changes.
    given_up: Option<(Exit, Instant)>,
    /// Whether it is read again although it has not changed, since what failed was not the log.
    again: bool,
}

/// Follows logs until the program is interrupted.
///
/// # Errors
/// All logs have been given up; the exit code is that of the first. Until then the faults of a log are printed, and
/// the others are followed.
pub(super) fn follow(importing: &Importing<'_>) -> Result<Exit, Failure> {
    leave();
    let stop = Arc::new(AtomicBool::new(false));
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let ImportTarget::Store(address) = importing.target else {
        return Err(Failure::internal("logs are followed into a store"));
    };
    let store = importing.store()?;
    let mut followed = Followed::default();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        for file in importing.files()? {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            followed.look(file, importing, address, store)?;
        }
        followed.begun = true;
        if let Some(exit) = followed.given_up() {
            say(&log_report(followed.again.as_ref()).1);
            return Err(Failure::plain(exit, "none of the logs can be followed"));
        }
        let pause = PAUSE.max(began.elapsed());
        let until = Instant::now() + pause;
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(TICK);
        }
    }
    say(&log_report(followed.again.as_ref()).1);
    Ok(Exit::Ok)
}

#[derive(Default)]
struct Followed {
    seen: BTreeMap<String, Seen>,
    stems: HashSet<String>,
    again: Option<LogImport>,
    /// Whether every file was looked at once.
    begun: bool,
}

impl Followed {
    /// The exit code, if there are logs and all of them have been given up.
    fn given_up(&self) -> Option<Exit> {
        let now = Instant::now();
        let all = self.seen.values().map(|seen| seen.given_up);
        let all: Option<Vec<Exit>> = all
            .map(|given_up| Some(given_up.filter(|(_, at)| *at <= now)?.0))
            .collect();
        all?.first().copied()
    }

    fn look(
        &mut self,
        mut file: LogSource,
        importing: &Importing<'_>,
        address: StoreAddress<'_>,
        store: &Store,
    ) -> Result<(), Failure> {
        let state = match state_of(Path::new(&file.path)) {
            Ok(state) => state,
            // Files come and go below a directory.
            Err(_) if self.begun || file.is_listed => return Ok(()),
            // It says what is wrong with a file that is missing from the first.
            Err(_) => return importing.read_file(&file.path).map(|_| ()),
        };
        let stems = &mut self.stems;
        let seen = self.seen.entry(file.path.clone()).or_insert_with(|| Seen {
            stem: unique(&file.stem, stems),
            ..Seen::default()
        });
        let has_changed = seen.state.replace(state) != Some(state);
        if state.0 == 0 {
            // A log that was emptied is one that has not begun.
            seen.given_up = None;
            return Ok(());
        }
        if !has_changed && !seen.again {
            return Ok(());
        }
        file.stem.clone_from(&seen.stem);
        // Only what was imported before this program began is as it was.
        let marks = if self.begun {
            LogMarks::default()
        } else {
            importing.marks(std::slice::from_ref(&file))
        };
        let done = importing.read_source(&file, &marks).and_then(|read| {
            let mut sessions = importing.named(&file, Some(0), read, &mut HashSet::new());
            importing.rename(address, &mut sessions)?;
            let unchanged = importing.take_unchanged(&mut sessions)?;
            let mut done = import_log(address, store, sessions)?;
            done.same += unchanged.len();
            Ok(done)
        });
        match done {
            Ok(done) => {
                (seen.given_up, seen.again) = (None, false);
                seen.failure.clear();
                if done.snapshots > 0 || !done.renamed.is_empty() {
                    let snapshots = counted(done.snapshots as u64, "snapshot");
                    say(&format!("{}: {snapshots} more\n", printable(&file.stem)));
                }
                add(&mut self.again, done);
            }
            Err(failure) => {
                // A file that is written as a whole may be read in between.
                let text = format!("{}: {failure}\n", printable(&file.path));
                if seen.failure != text {
                    say(&text);
                }
                seen.failure = text;
                seen.again = failure.exit() == Exit::Io;
                let patience = patience(&file.path, &failure);
                if has_changed || seen.given_up.is_none() || patience.is_none() {
                    seen.given_up = patience.map(|time| (failure.exit(), Instant::now() + time));
                }
            }
        }
        Ok(())
    }
}

/// The size of a log and when it changed last; of one in several files, of all of them.
fn state_of(path: &Path) -> io::Result<(u64, SystemTime)> {
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

/// How long a log that cannot be read may stand still. `None` is without a limit: another process writes the session,
/// or the first line is not whole yet.
fn patience(path: &str, failure: &Failure) -> Option<Duration> {
    let mut line = Vec::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| BufReader::new(file).read_until(b'\n', &mut line));
    let first = serde_json::from_slice::<IgnoredAny>(&line);
    let is_begun = read.is_ok() && !line.ends_with(b"\n");
    match (failure, first) {
        _ if failure.is_busy() => None,
        (_, Err(error)) if is_begun && error.is_eof() => None,
        // The first line is valid JSON, so its faults are those of the whole log.
        (Failure::Input(files, _), Ok(_))
            if files
                .iter()
                .flat_map(|(_, error)| &error.faults)
                .all(|fault| fault.line == 1) =>
        {
            Some(LONG_PATIENCE)
        }
        _ => Some(PATIENCE),
    }
}
