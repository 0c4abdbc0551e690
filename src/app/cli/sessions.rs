//! The sessions that commands read, with a spinner while one loads that takes long; and of those that are
//! inspected which snapshots, and which nodes of them.

use super::command::{Invocation, say};
use super::follow::{FollowedFiles, in_turns};
use super::input;
use super::progress::Progress;
use super::typed::{self, take_time};
use super::words::{address, exists, quoted, retyped};
use crate::advice::EmptyReason;
use crate::app::present::answer::{RECONSTRUCTED, note_empty};
use crate::app::present::folders::{LogSource, files_of, logs_of_machine, newest_logs, part_of};
use crate::app::present::followed::FollowedLogs;
use crate::app::present::known::KnownLogs;
use crate::app::present::sessions::FileContents;
use crate::app::present::stores::{self, Access, StoreAddress, none_of, without_passwords};
use crate::app::present::{Exit, Failure, Result, counted, printable, sessions as opened};
use crate::engine::{Context, ContextBuilder, EmptyAnswer, Engine, NothingFound};
use crate::history::Session;
use crate::index::Snapshot;
use crate::inspect::{Part, Prices, Report, ReportOptions, time_of};
use crate::json::{get, members, string};
use crate::logs::{self, KnownNames, is_opencode};
use crate::store::{ListedInfo, Store};
use crate::support::cancel;
use crate::support::table::{Paint, Tint};
use crate::tree::Limits;
use crate::tree::seal::Ending;
use crate::tree::source::{ending_of, is_lines_by_name, read_files};
use crate::tree::timestamp::nanos_of_rfc3339;
use clap::Args;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};

/// How the file of a session ends; `None` of anything but a file of lines. Reads it again.
pub(super) fn ending_of_session(name: &str) -> Result<Option<Ending>> {
    let path = Path::new(name);
    if StoreAddress::parse(name).is_some() || !path.is_file() || !is_lines_by_name(path) {
        return Ok(None);
    }
    Ok(Some(ending_of(path)?))
}

pub(super) fn ending_text(ending: Ending) -> &'static str {
    match ending {
        Ending::Sealed => "with a closing line, which fits: nothing is missing\n",
        Ending::LineFeed => {
            "with a line feed; lines could be missing, which `export --seal` would show\n"
        }
        Ending::NoLineFeed => "without a line feed, as if it were still being written\n",
    }
}

/// Opens a session: a file, a directory, a session of a store or of a log, or standard input for `-`. A log of one
/// session is imported in memory. Says what is odd about it.
pub(super) fn open(name: &str, limits: Limits) -> Result<Arc<Session>> {
    if part_of(name).is_some() {
        return open_part(name, limits);
    }
    if let Some(files) = files_of(name, limits)? {
        let files: Vec<PathBuf> = files.into_iter().map(|file| file.path.into()).collect();
        return Err(Failure::several(Path::new(name), &files));
    }
    let progress = Progress::spinner(format!("reading {name}"));
    let read = read(name, limits, None)?;
    drop(progress);
    say(&read.said);
    read.only(name)
}

fn open_part(name: &str, limits: Limits) -> Result<Arc<Session>> {
    let mut opening = Opening::new(limits, false);
    let sources = opening.sources(&[name.to_owned()])?;
    let mut found = None;
    let all = SessionsArgs::default();
    opening.each(&sources, &all, &|_| (), &mut |opened, ()| {
        found.get_or_insert(Arc::clone(&opened.session));
        Ok(())
    })?;
    found.ok_or_else(|| no_part(name))
}

/// Says that a log or a folder has no session of this name.
fn no_part(word: &str) -> Failure {
    let (place, part) = part_of(word).unwrap_or((word, ""));
    let message = format!("{place} has no session `{part}`");
    let failure = Failure::plain(Exit::Missing, message);
    failure.with_help(format!("`pactql sessions {}` lists them", quoted(place)))
}

/// Opens a session that was opened before, by its name, and says nothing.
pub(super) fn open_again(name: &str, limits: Limits) -> Result<Arc<Session>> {
    read(name, limits, None)?.only(name)
}

/// Opens a session as [`open`] does, and finds the snapshot at `address`; without one, the working state, or else
/// the newest snapshot.
pub(super) fn open_at(
    name: &str,
    address: Option<&str>,
    limits: Limits,
) -> Result<(Arc<Session>, Arc<Snapshot>)> {
    let session = open(name, limits)?;
    let snapshot = opened::at(&session, address)?;
    Ok((session, snapshot))
}

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

/// A context that goes on with a copy of a session, from a file or a store, and that writes neither.
pub(super) fn resume(name: &str, limits: Limits, builder: ContextBuilder) -> Result<Context> {
    match StoreAddress::parse(name) {
        Some(address) => {
            let session = address.one()?;
            stores::resume(&open_store(address.store, Access::Read)?, session, builder)
        }
        None => Ok(builder.resume(&*open(name, limits)?)?),
    }
}

/// What was read of a word or a file.
#[derive(Default)]
struct ReadSessions {
    sessions: Vec<Arc<Session>>,
    /// Of the sessions of a log: the name of each in it, and the session that it is a part of.
    known: Vec<(Option<String>, Option<String>)>,
    /// Of the sessions of a store: their names in it.
    stored: Vec<String>,
    said: String,
}

impl ReadSessions {
    fn new(contents: FileContents) -> Result<Self> {
        let mut read = Self::default();
        match contents {
            FileContents::Session(session) => return Ok(Self::one(Arc::new(session))),
            FileContents::Log(logs, note) => {
                read.said = note;
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
    fn only(mut self, name: &str) -> Result<Arc<Session>> {
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
    fn names(&self, stem: &str, taken: &mut HashSet<String>) -> Vec<String> {
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
    fn of_store(path: &str) -> Result<Option<Self>> {
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
fn read(name: &str, limits: Limits, followed: Option<&FollowedLogs>) -> Result<ReadSessions> {
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

/// Words in runs: one store each, or files that follow each other.
pub(super) fn runs(words: &[String]) -> impl Iterator<Item = &[String]> {
    let is_file = |word: &String| StoreAddress::parse(word).is_none();
    words.chunk_by(move |a, b| is_file(a) && is_file(b))
}

/// Refuses words of which one means nothing. Of a single one that is found when it is read.
fn check_there(words: &[String]) -> Result<()> {
    if words.len() < 2 {
        return Ok(());
    }
    for (at, word) in words.iter().enumerate() {
        match StoreAddress::parse(word) {
            Some(address) if !address.is_several() => {
                let store = open_store(address.store, Access::Read)?;
                if store.count(address.glob())? == 0 {
                    // Says which names are near.
                    store.session(address.one()?)?;
                }
            }
            _ if exists(word) => {}
            Some(address) => {
                open_store(address.store, Access::Read)?;
            }
            None => {
                let before = at.checked_sub(1).map(|before| &words[before]);
                let meant = before.and_then(|before| named_in(before, word));
                let failure = typed::missing(word);
                return Err(match (meant, before) {
                    (Some(meant), Some(before)) => {
                        failure.with_help(retyped(&[before.clone(), word.clone()], vec![meant]))
                    }
                    _ => failure,
                });
            }
        }
    }
    Ok(())
}

/// What names a session of the store, folder or log that stands before its name, instead of a `#`.
fn named_in(before: &str, name: &str) -> Option<String> {
    if name.contains('*') {
        return None;
    }
    if let Some(address) = StoreAddress::parse(before) {
        let store = stores::open(address.store, Access::Read).ok()?;
        let has = store.count(name).ok()? > 0;
        return has.then(|| format!("{}#{name}", address.store));
    }
    // The files are not read.
    let path = Path::new(before);
    let mut files = LogSource::below(path)
        .ok()
        .filter(|_| path.is_dir())?
        .into_iter();
    let file = files.find(|file| file.stem == name)?;
    Some(file.path)
}

/// Opens the sessions that words mean, and keeps them all.
pub(super) fn open_words(words: &[String], with: &Invocation) -> Result<Vec<Opened>> {
    let mut all = Vec::new();
    SessionsArgs::default().each_of(words, None, with, &mut |opened| {
        all.push(opened.clone());
        Ok(())
    })?;
    Ok(all)
}

/// Whether a folder has what is opened, so that it need not be a session; what opencode keeps is like a folder.
fn is_of_folder(source: &LogSource) -> bool {
    source.is_listed || is_opencode(Path::new(&source.path))
}

/// Opens what words mean, some at a time.
#[derive(Default)]
struct Opening {
    limits: Limits,
    /// Whether there may be several sessions.
    several: bool,
    /// As [`SessionsArgs::whole`].
    whole: bool,
    /// The names of the sessions of logs so far, for each word that names a part of a place; of those shown under `None`.
    taken: HashMap<Option<String>, HashSet<String>>,
    /// Each remark once, however many sessions it is true of.
    said: HashSet<String>,
    opened: usize,
    /// The files of folders that are neither sessions nor logs, and why the first one is not.
    left_out: Vec<String>,
    failure: Option<Failure>,
    /// The words for sessions of logs, as [`LogSource::part`], of which none was found so far.
    missing: Vec<String>,
    /// Where logs are followed: what was read of them.
    followed: Option<FollowedLogs>,
}

impl Opening {
    fn new(limits: Limits, several: bool) -> Self {
        Self {
            limits,
            several,
            ..Self::default()
        }
    }

    /// What the words mean, none of which is a store: of a folder its files, unless it is one session.
    fn sources(&mut self, words: &[String]) -> Result<Vec<LogSource>> {
        if words.iter().filter(|word| *word == input::STDIN).count() > 1 {
            return Err(Failure::usage("standard input can be read once only")
                .with_help("give `-` once, and the other sessions as files"));
        }
        let mut all = Vec::new();
        for word in words {
            let part = part_of(word);
            let place = part.map_or(&**word, |(place, _)| place);
            let mut files = match files_of(place, self.limits)? {
                None => vec![LogSource::new(place)],
                Some(files) => {
                    self.several |= part.is_none();
                    files
                }
            };
            if part.is_some() {
                self.missing.push(word.clone());
                for file in &mut files {
                    file.part = Some(word.clone());
                }
            }
            all.extend(files);
        }
        Ok(all)
    }

    /// Opens some in parallel, and says what is odd about them. Of several failures the first in order is returned.
    fn open(&mut self, sources: &[LogSource]) -> Result<Vec<Opened>> {
        let limits = self.limits;
        let progress = match sources {
            [one] if !one.is_listed => Progress::spinner(format!("reading {}", one.path)),
            _ => Progress::bar(sources.len()),
        };
        let followed = self.followed.as_ref();
        let of = |source: &LogSource| {
            let path = &source.path;
            if !is_of_folder(source) {
                // Standard input, a pipe and a directory of documents are one session.
                let is_whole = self.whole || source.part.is_some();
                return if is_whole && Path::new(path).is_file() {
                    let contents = opened::in_folder(Path::new(path), limits, followed)?;
                    ReadSessions::new(contents).map(Ok)
                } else {
                    read(path, limits, followed).map(Ok)
                };
            }
            if let Err(failure) = source.check() {
                return Ok(Err(failure));
            }
            if let Some(read) = ReadSessions::of_store(path)? {
                return Ok(Ok(read));
            }
            match opened::in_folder(Path::new(path), limits, followed)? {
                FileContents::Neither(failure) => Ok(Err(failure)),
                contents => ReadSessions::new(contents).map(Ok),
            }
        };
        let read = sources.par_iter().map(|source| {
            let read = of(source);
            progress.step();
            read
        });
        let read: Vec<Result<Result<ReadSessions>>> = read.collect();
        drop(progress);
        let mut both = sources.iter().zip(&read);
        self.several |= both.any(|(source, read)| {
            let read = read.as_ref().ok().and_then(|read| read.as_ref().ok());
            source.part.is_none() && read.is_some_and(|read| read.sessions.len() > 1)
        });
        let mut all = Vec::new();
        for (source, read) in sources.iter().zip(read) {
            let read = match read? {
                Ok(read) => read,
                Err(failure) => {
                    self.left_out.push(source.path.clone());
                    self.failure.get_or_insert(failure);
                    continue;
                }
            };
            if self.said.insert(read.said.clone()) {
                say(&read.said);
            }
            self.opened += read.sessions.len();
            all.extend(self.named(source, read));
        }
        Ok(all)
    }

    /// Names what was read of a source: by its word or path, in a store by that and their names, in a log as `import`
    /// does.
    fn named(&mut self, source: &LogSource, read: ReadSessions) -> Vec<Opened> {
        let path = without_passwords(&source.path);
        let least = usize::from(!is_of_folder(source) && source.part.is_none());
        let (names, log) = if !read.stored.is_empty() {
            let names = read.stored.iter();
            (names.map(|name| format!("{path}#{name}")).collect(), None)
        } else if read.known.len() > least {
            let taken = self.taken.entry(source.part.clone()).or_default();
            (read.names(&source.stem, taken), Some(source.path.clone()))
        } else {
            (vec![path.into_owned()], None)
        };
        let sessions = names.into_iter().zip(read.sessions);
        let named = sessions.map(|(name, session)| Opened {
            name,
            session,
            log: log.clone(),
            several: self.several,
        });
        let Some(word) = &source.part else {
            return named.collect();
        };
        let part = part_of(word).map(|(_, part)| part);
        let mut found: Vec<Opened> = named.filter(|one| part == Some(&one.name)).collect();
        let shown = self.taken.entry(None).or_default();
        for one in &mut found {
            one.name = logs::unique(&one.name, shown);
        }
        if !found.is_empty() {
            self.missing.retain(|missing| missing != word);
        }
        found
    }

    /// Opens a file that may have been opened before. Its remarks are made once.
    fn open_again(&mut self, source: &LogSource) -> Result<Vec<Opened>> {
        self.taken.clear();
        let found = self.open(std::slice::from_ref(source))?;
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(found),
        }
    }

    /// Opens all, and gives each session that is chosen to `visit`. Returns how many there were.
    fn each<T: Send>(
        &mut self,
        sources: &[LogSource],
        choice: &SessionsArgs,
        read: ReadEach<'_, T>,
        visit: &mut VisitRead<'_, T>,
    ) -> Result<usize> {
        let tokens = cancel::here();
        let mut count = 0;
        let last = sources.len().saturating_sub(1) / TOGETHER;
        for (at, sources) in sources.chunks(TOGETHER).enumerate() {
            let mut chosen = Vec::new();
            for opened in self.open(sources)? {
                if choice.has_opened(&opened)? {
                    chosen.push(opened);
                }
            }
            if let Some(word) = self.missing.first().filter(|_| at == last) {
                return Err(no_part(word));
            }
            count += chosen.len();
            let chosen = chosen.into_par_iter().map(|opened| {
                let read = tokens.within(|| read(&opened));
                (opened, read)
            });
            for (opened, read) in chosen.collect::<Vec<_>>() {
                visit(&opened, read)?;
            }
        }
        self.finish()?;
        if count == 0 && self.opened > 0 {
            let sessions = counted(self.opened as u64, "session");
            say(&format!("note: none of {sessions} was chosen\n"));
        }
        Ok(count)
    }

    /// Says which files were left out; if none could be read, that is a failure.
    fn finish(&mut self) -> Result<()> {
        match (self.failure.take(), self.left_out.len()) {
            (Some(failure), 1) if self.opened == 0 => return Err(failure),
            (Some(failure), count) if self.opened == 0 => {
                return Err(failure.with_help(format!("none of {count} files can be read")));
            }
            _ => {}
        }
        let more = match &self.left_out[..] {
            [] => return Ok(()),
            [_] => "",
            _ => ", …",
        };
        let files = counted(self.left_out.len() as u64, "file");
        let first = printable(&self.left_out[0]);
        say(&format!(
            "note: left out {files} without a session or a log that is read: {first}{more}\n"
        ));
        Ok(())
    }
}

/// What is followed: a word is one of these from the first.
enum Followed<'w> {
    Store(StoreAddress<'w>, Store, FollowedStore),
    /// A file, or a folder of logs or sessions.
    Path {
        path: &'w Path,
        is_folder: bool,
    },
}

/// What was read of a store that is followed.
#[derive(Default)]
struct FollowedStore {
    /// [`Store::version`] before its sessions were read.
    version: Option<i64>,
    open: HashMap<String, Arc<Session>>,
}

/// Gives each session that words mean to `visit`, and each again that has grown, until the program is interrupted. What is
/// followed is looked at in turns, as `import --follow` does.
///
/// # Errors
/// A word that is missing from the first; no store is followed, and all files have been given up; those of `visit`.
pub(super) fn follow(words: &[String], with: &Invocation, visit: &mut Visit<'_>) -> Result<Exit> {
    let mut opening = Opening::new(with.limits, words.len() > 1);
    opening.followed = Some(FollowedLogs::default());
    let mut all = Vec::with_capacity(words.len());
    for word in words {
        if *word == input::STDIN {
            return Err(Failure::usage("`-` cannot be followed")
                .with_help("`--follow` reads files, directories and stores"));
        }
        all.push(if let Some(address) = StoreAddress::parse(word) {
            opening.several |= address.is_several();
            let store = open_store(address.store, Access::Read)?;
            Followed::Store(address, store, FollowedStore::default())
        } else {
            let path = Path::new(word);
            let is_folder = path.is_dir() && !is_opencode(path);
            let is_folder = is_folder && files_of(word, with.limits)?.is_some();
            opening.several |= is_folder;
            Followed::Path { path, is_folder }
        });
    }
    let has_store = all.iter().any(|one| matches!(one, Followed::Store(..)));
    let mut files = FollowedFiles::default();
    in_turns(|stopped| {
        for followed in &mut all {
            let sources = match followed {
                Followed::Store(address, store, known) => {
                    follow_store(*address, store, known, opening.several, visit)?;
                    continue;
                }
                Followed::Path { path, is_folder } if *is_folder => LogSource::below(path)?,
                Followed::Path { path, .. } => vec![LogSource::new(&path.to_string_lossy())],
            };
            for source in sources {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let found = files.look(source, |source, _| opening.open_again(source))?;
                for found in found.into_iter().flatten() {
                    visit(&found)?;
                }
            }
        }
        Ok(files.end_turn().filter(|_| !has_store))
    })
}

/// Visits the sessions of a store that are new or have grown since the turn before. Reads one number if nothing was committed.
fn follow_store(
    address: StoreAddress<'_>,
    store: &Store,
    known: &mut FollowedStore,
    several: bool,
    visit: &mut Visit<'_>,
) -> Result<()> {
    // Before the sessions are read: a commit in between is noticed the next time.
    let version = Some(store.version()?);
    if known.version == version {
        return Ok(());
    }
    known.version = version;
    let open = &mut known.open;
    let names = if address.is_several() {
        store.names(address.glob())?
    } else {
        vec![address.one()?.to_owned()]
    };
    for name in names {
        let session = match open.get(&name) {
            Some(session) if !store.refresh(session)? => continue,
            Some(session) => Arc::clone(session),
            None => {
                let session = store.session(&name)?;
                open.insert(name.clone(), Arc::clone(&session));
                session
            }
        };
        visit(&Opened::stored(address, &name, session, several))?;
    }
    Ok(())
}

const TOGETHER: usize = 32;

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

/// The help on the sessions of a command that is about all logs where none is named.
pub(super) const EVERY_LOG: &str = "Sessions: files, directories, `FILE#name` of a log, `STORE#name`, `STORE#glob`, `STORE`, or \
     `-` for standard input [default: all logs that agents keep on this machine]";

/// The sessions of a command.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct SessionsArgs {
    /// Sessions: files, directories, `FILE#name` of a log, `STORE#name`, `STORE#glob`, `STORE`, or `-` for standard input
    /// [default: the newest log of an agent that ran in this directory, else the newest on this machine].
    #[arg(value_name = "SESSION")]
    pub(super) sessions: Vec<String>,
    /// Only sessions whose newest snapshot was committed at this time or later: a date, or a date and a time with its
    /// zone, such as 2026-01-31T09:00:00Z. Snapshots of a log without times were committed when it was imported into a
    /// store; in a file they have no time.
    #[arg(long, value_name = "TIME", value_parser = first_of_day, help_heading = "Which sessions")]
    since: Option<i64>,
    /// Only sessions whose newest snapshot was committed at this time or earlier.
    #[arg(long, value_name = "TIME", value_parser = last_of_day, help_heading = "Which sessions")]
    until: Option<i64>,
    /// Only sessions whose newest snapshot has this value in `meta` or `meta.request`, such as model=gpt-4o; may be given
    /// several times, and all must hold.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, help_heading = "Which sessions")]
    meta: Vec<(String, String)>,
    /// Whether the branches and subagents of a log that is named are opened, too, as those of a log in a folder are.
    #[arg(skip)]
    pub(super) whole: bool,
}

/// The sessions of a command, and the part of each that it is about.
#[derive(Args, Debug)]
pub(super) struct InspectedArgs {
    #[command(flatten)]
    pub(super) sessions: SessionsArgs,
    #[command(flatten)]
    time: TimeArgs,
    /// Only the nodes that a selector without a time matches, and what is below them.
    #[arg(long = "where", value_name = "SELECTOR", allow_hyphen_values = true)]
    selector: Option<String>,
}

impl InspectedArgs {
    /// Whether an address or a range is given.
    pub(super) fn has_time(&self) -> Result<bool> {
        let given = self.time.at.as_ref().or(self.time.over.as_ref());
        Ok(take_time(&self.sessions.sessions, given)?.1.is_some())
    }

    /// The sessions, which snapshots of them, and which nodes; `default` are the snapshots without a time. A `first`
    /// session may be before the others.
    pub(super) fn split(
        &self,
        first: Option<&String>,
        default: Part,
        with: &Invocation,
    ) -> Result<(SessionsArgs, Part)> {
        let words = first.into_iter().chain(&self.sessions.sessions);
        let words: Vec<String> = words.cloned().collect();
        let (names, part) = self.time.split(&words, default)?;
        let sessions = SessionsArgs {
            sessions: or_newest(&names, with.limits)?,
            ..self.sessions.clone()
        };
        let part = match &self.selector {
            Some(selector) => part.only(selector),
            None => part,
        };
        Ok((sessions, part))
    }
}

/// What is done with each session.
pub(super) type Visit<'a> = dyn FnMut(&Opened) -> Result<()> + 'a;

/// What is read of each session, in parallel.
pub(super) type ReadEach<'a, T> = &'a (dyn Fn(&Opened) -> T + Sync);

/// What is done with each session and what was read of it.
pub(super) type VisitRead<'a, T> = dyn FnMut(&Opened, T) -> Result<()> + 'a;

/// Says which sessions of a store, whose name matches a pattern, need to be opened, in byte order of
/// their names; `None` for all.
pub(super) type SessionsToOpen<'a> = &'a dyn Fn(&Store, &str) -> Result<Option<Vec<String>>>;

/// Which snapshots of a session.
#[derive(Args, Debug)]
pub(super) struct TimeArgs {
    /// One snapshot, such as @t0, @t-2, 12 or latest; also as an argument [default: `steps`, `prefix` and `grep` look
    /// at all snapshots, other commands at the working state, or without one at the newest].
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    at: Option<String>,
    /// A range of snapshots, such as @history or @t-9..@t0.
    #[arg(long, value_name = "RANGE", conflicts_with = "at")]
    #[arg(allow_hyphen_values = true)]
    over: Option<String>,
}

impl TimeArgs {
    /// Whether an option names snapshots.
    pub(super) fn is_given(&self) -> bool {
        self.at.is_some() || self.over.is_some()
    }

    /// The sessions among words, and the snapshots that a word or an option names; `default` without both.
    pub(super) fn split(&self, words: &[String], default: Part) -> Result<(Vec<String>, Part)> {
        let (names, typed) = take_time(words, self.at.as_ref().or(self.over.as_ref()))?;
        let part = typed.map_or(default.clone(), |typed| {
            let time = typed::time(&typed).unwrap_or_else(|| typed.clone());
            let is_one = self.over.is_none() && (time.is_empty() || address(&time).is_some());
            if is_one || self.at.is_some() {
                default.at(time)
            } else {
                default.over(time)
            }
        });
        Ok((names, part))
    }
}

/// One session, and one snapshot of it.
#[derive(Args, Debug)]
pub(super) struct SnapshotArgs {
    /// The session: a file, a directory, `STORE#name`, or `-` for standard input [default: the newest, as of `show`]; and
    /// maybe a snapshot, such as @c12 or 12.
    #[arg(value_name = "SESSION", num_args = 0..=2)]
    words: Vec<String>,
    /// Which snapshot, such as @t0, @t-2, 12 or latest [default: the working state, or else the newest].
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    at: Option<String>,
}

impl SnapshotArgs {
    pub(super) fn open(&self, limits: Limits) -> Result<(Arc<Session>, Arc<Snapshot>)> {
        let (session, at) = self.session(limits)?;
        let snapshot = opened::at(&session, at.as_deref())?;
        Ok((session, snapshot))
    }

    /// The session, which may be without snapshots, and the address.
    pub(super) fn session(&self, limits: Limits) -> Result<(Arc<Session>, Option<String>)> {
        let (names, at) = take_time(&self.words, self.at.as_ref())?;
        match &or_newest(&names, limits)?[..] {
            [name] => Ok((open(name, limits)?, at)),
            names => Err(
                Failure::usage("expected one session, and maybe a snapshot of it")
                    .with_help(retyped(&self.words, names[..1.min(names.len())].to_vec())),
            ),
        }
    }
}

/// What tokens cost.
#[derive(Args, Debug)]
pub(super) struct PriceArgs {
    /// A table of prices in place of the one in the program: {"date": …, "models": {NAME: {"input": …,
    /// "cached_input": …, "cache_write": …, "cache_write_1h": …, "output": …}}}, in dollars a million tokens.
    #[arg(long, value_name = "FILE")]
    prices: Option<String>,
    /// The model of calls of which the log names none: what they cost, and how their tokens are counted.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

impl PriceArgs {
    pub(super) fn table(&self) -> Result<Prices> {
        let prices = match &self.prices {
            None => Prices::default(),
            Some(file) => {
                let text = std::fs::read_to_string(file);
                let text = text.map_err(|error| Failure::file(file, &error))?;
                Prices::parse(&text)
                    .map_err(|error| Failure::plain(Exit::Input, format!("{file}: {error}")))?
            }
        };
        Ok(prices.model(self.model.clone()))
    }
}

#[derive(Clone)]
pub(super) struct Opened {
    /// What names it, without passwords.
    pub(super) name: String,
    pub(super) session: Arc<Session>,
    /// The log that it was imported from in memory, of several sessions or in a folder.
    pub(super) log: Option<String>,
    /// Whether it may be one of several, so that what is said of it names it.
    pub(super) several: bool,
}

impl Opened {
    fn stored(address: StoreAddress<'_>, name: &str, session: Arc<Session>, several: bool) -> Self {
        Self {
            name: stored_name(address, name),
            session,
            log: None,
            several,
        }
    }

    pub(super) fn label(&self) -> Option<&str> {
        self.several.then_some(&*self.name)
    }

    /// Appends its name as a line, if there may be several, after an empty line unless it is the first.
    pub(super) fn title(&self, paint: Paint, is_first: bool, out: &mut String) {
        if let Some(name) = self.label() {
            let before = if is_first { "" } else { "\n" };
            out.extend([before, &paint.tint(Tint::Name, &printable(name)), "\n"]);
        }
    }

    pub(super) fn report<R: Report>(&self, engine: &Engine, options: &ReportOptions) -> Result<R> {
        R::new(engine, &self.session, options).map_err(|error| self.failure(error))
    }

    /// Why a part has nothing, if its selector finds nothing.
    pub(super) fn nothing(&self, engine: &Engine, part: &Part) -> Option<EmptyAnswer> {
        part.nothing(engine, &self.session).ok().flatten()
    }

    pub(super) fn failure(&self, error: crate::support::diag::Error) -> Failure {
        Failure::in_session(error, self.label())
    }
}

/// What names a session of a store, without passwords.
pub(super) fn stored_name(address: StoreAddress<'_>, name: &str) -> String {
    format!("{}#{name}", without_passwords(address.store))
}

/// The first sessions of those that an address of several names.
pub(super) fn first_stored(
    store: &Store,
    address: StoreAddress<'_>,
    most: usize,
) -> Result<Vec<Opened>> {
    let listed = store.page(address.glob(), "", most)?.into_iter();
    let opened = listed.map(|one| {
        let session = store.session(&one.info.name)?;
        Ok(Opened::stored(address, &one.info.name, session, true))
    });
    opened.collect()
}

/// The most sessions of which it is said together why nothing was found.
pub(super) const MOST_ASKED: usize = 64;

/// What no node has of several sessions, where one selector found nothing in any of them; nothing if these are not all
/// the sessions that were read.
pub(super) fn unknown_in_all<'a>(
    empty: impl ExactSizeIterator<Item = &'a NothingFound>,
    sessions: usize,
) -> Vec<EmptyReason> {
    if sessions > 1 && empty.len() == sessions {
        NothingFound::unknown_in_all(empty)
    } else {
        Vec::new()
    }
}

/// The sessions in which the selector of a part finds nothing: if that is all of them, a note says why.
#[derive(Default)]
pub(super) struct EmptyAnswers {
    pub(super) sessions: usize,
    /// Whether a session has something. Then the others are not kept, as each keeps its snapshots in memory.
    has_any: bool,
    /// Of the first one.
    label: Option<String>,
    /// Of those that are read together.
    asked: Vec<EmptyAnswer>,
}

impl EmptyAnswers {
    pub(super) fn add(&mut self, opened: &Opened, nothing: Option<EmptyAnswer>) {
        self.sessions += 1;
        match nothing {
            None => {
                self.has_any = true;
                self.asked = Vec::new();
            }
            Some(nothing) if !self.has_any && self.asked.len() < MOST_ASKED => {
                if self.asked.is_empty() {
                    self.label = opened.label().map(str::to_owned);
                }
                self.asked.push(nothing);
            }
            Some(_) => {}
        }
    }

    pub(super) fn say(self, with: &Invocation) {
        let Some(first) = self.asked.first() else {
            return;
        };
        let nothing: Vec<&NothingFound> =
            self.asked.iter().filter_map(EmptyAnswer::nothing).collect();
        let (mut why, mut of) = (unknown_in_all(nothing.into_iter(), self.sessions), None);
        if why.is_empty() {
            (why, of) = (first.reasons(), self.label.as_deref());
        }
        say(&note_empty(&why, first.warnings(), of, with.is_json()));
    }
}

/// Of several sessions, those that lack a snapshot that is wanted, such as a fork without a commit. They are left out.
#[derive(Default)]
pub(super) struct WithoutSnapshot {
    count: usize,
    first: Option<(String, Failure)>,
    last: String,
}

impl WithoutSnapshot {
    /// Takes out the failure of one of several sessions that lacks the snapshot.
    pub(super) fn pass<T>(&mut self, opened: &Opened, result: Result<T>) -> Result<Option<T>> {
        match result {
            Err(failure) if opened.several && failure.is_no_snapshot() => {
                if self.count == 0 || self.last != opened.name {
                    self.count += 1;
                    self.last.clone_from(&opened.name);
                }
                let first = || (opened.name.clone(), failure);
                self.first.get_or_insert_with(first);
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Says which were left out of `count` sessions. Returns how many are left.
    ///
    /// # Errors
    /// None is left.
    pub(super) fn left_of(self, count: usize) -> Result<usize> {
        match self.first {
            Some((_, failure)) if self.count == count => return Err(failure),
            Some((name, _)) => say(&format!(
                "note: left out {} without such a snapshot: {}{}\n",
                counted(self.count as u64, "session"),
                printable(&name),
                if self.count > 1 { ", …" } else { "" }
            )),
            None => {}
        }
        Ok(count - self.count)
    }
}

impl SessionsArgs {
    /// Opens the sessions (the newest if none is named) in the order of the words and in a store of the names, and gives
    /// each to `visit`.
    /// Those of a store are open some at a time, and only those that were chosen. Returns how many there were;
    /// says so if there was none.
    pub(super) fn each(&self, with: &Invocation, visit: &mut Visit<'_>) -> Result<usize> {
        let names = or_newest(&self.sessions, with.limits)?;
        self.each_of(&names, None, with, visit)
    }

    /// As [`SessionsArgs::each`], with a report of each, which are made in parallel.
    pub(super) fn each_report<R: Report + Send>(
        &self,
        to_open: Option<SessionsToOpen<'_>>,
        options: &ReportOptions,
        with: &Invocation,
        visit: &mut VisitRead<'_, Result<R>>,
    ) -> Result<usize> {
        let (engine, names) = (Engine::new(), or_newest(&self.sessions, with.limits)?);
        let read = |opened: &Opened| {
            let report = opened.report::<R>(&engine, options)?;
            Ok((report, opened.nothing(&engine, &R::part(options))))
        };
        let (mut empty, mut asked) = (EmptyAnswers::default(), 0);
        let count = self.each_read(&names, to_open, with, &read, &mut |opened, read| {
            asked += 1;
            let report = read.map(|(report, nothing)| {
                note_reconstructed(report.is_reconstructed());
                empty.add(opened, nothing);
                report
            });
            visit(opened, report)
        })?;
        // Of sessions that an index left out it is not known what they have.
        if asked == count {
            empty.say(with);
        }
        Ok(count)
    }

    /// As [`SessionsArgs::each_report`], where one of several sessions that lacks a snapshot that is wanted is left out with a
    /// note. Returns how many are left.
    pub(super) fn each_report_that_has<R: Report + Send>(
        &self,
        to_open: Option<SessionsToOpen<'_>>,
        options: &ReportOptions,
        with: &Invocation,
        visit: &mut VisitRead<'_, R>,
    ) -> Result<usize> {
        let mut without = WithoutSnapshot::default();
        let count = self.each_report(to_open, options, with, &mut |opened, report| {
            let visited = report.and_then(|report| visit(opened, report));
            without.pass(opened, visited).map(|_| ())
        })?;
        without.left_of(count)
    }

    /// As [`SessionsArgs::each`], for some of the words. Of a store, only the sessions that `to_open` names are
    /// opened; the others are counted.
    pub(super) fn each_of(
        &self,
        words: &[String],
        to_open: Option<SessionsToOpen<'_>>,
        with: &Invocation,
        visit: &mut Visit<'_>,
    ) -> Result<usize> {
        self.each_read(words, to_open, with, &|_| (), &mut |opened, ()| {
            visit(opened)
        })
    }

    /// As [`SessionsArgs::each_of`], with what `read` returns for each session: it is called in parallel. Nothing is
    /// visited if one of the words means nothing.
    pub(super) fn each_read<T: Send>(
        &self,
        words: &[String],
        to_open: Option<SessionsToOpen<'_>>,
        with: &Invocation,
        read: ReadEach<'_, T>,
        visit: &mut VisitRead<'_, T>,
    ) -> Result<usize> {
        check_there(words)?;
        let mut count = 0;
        let mut several = words.len() > 1;
        for run in runs(words) {
            if let Some(address) = StoreAddress::parse(&run[0]) {
                several |= address.is_several();
                count += self.of_store(address, several, to_open, read, visit)?;
                continue;
            }
            let mut opening = Opening::new(with.limits, several);
            opening.whole = self.whole;
            let sources = opening.sources(run)?;
            count += opening.each(&sources, self, read, visit)?;
            several |= opening.several;
        }
        Ok(count)
    }

    /// As [`SessionsArgs::each_of`], of the logs of all agents of this machine if no session is named.
    pub(super) fn each_or_all(
        &self,
        to_open: Option<SessionsToOpen<'_>>,
        with: &Invocation,
        visit: &mut Visit<'_>,
    ) -> Result<usize> {
        if !self.sessions.is_empty() {
            return self.each_of(&self.sessions, to_open, with, visit);
        }
        let mut opening = Opening::new(with.limits, true);
        opening.each(&logs_of_machine()?, self, &|_| (), &mut |opened, ()| {
            visit(opened)
        })
    }

    /// The address of all that is read, if that is one of several sessions of a store and no option chooses among them.
    pub(super) fn whole_store<'w>(&self, words: &'w [String]) -> Option<StoreAddress<'w>> {
        let [word] = words else { return None };
        let address = StoreAddress::parse(word)?;
        (address.is_several() && self.is_all()).then_some(address)
    }

    /// Whether no option chooses among the sessions.
    pub(super) fn is_all(&self) -> bool {
        self.since.is_none() && self.until.is_none() && self.meta.is_empty()
    }

    /// Whether a session is chosen whose newest commit has this time and this `meta`.
    fn has(&self, committed_at_ns: Option<i64>, meta: Option<&str>) -> bool {
        let after = |since| committed_at_ns >= Some(since);
        let before = |until| committed_at_ns.is_some_and(|time| time <= until);
        let has = |pair| meta.is_some_and(|meta| has(meta, pair));
        self.since.is_none_or(after) && self.until.is_none_or(before) && self.meta.iter().all(has)
    }

    /// As [`SessionsArgs::has`], of a session outside stores: its newest commit has the time that its log says.
    fn has_opened(&self, opened: &Opened) -> Result<bool> {
        if self.is_all() {
            return Ok(true);
        }
        let newest = match opened::at(&opened.session, Some("@t0")) {
            Ok(newest) => newest,
            Err(failure) if failure.is_no_snapshot() => return Ok(false),
            Err(failure) => return Err(failure),
        };
        let time = time_of(&newest).and_then(|time| nanos_of_rfc3339(&time));
        Ok(self.has(time, newest.meta().value("meta")))
    }

    fn of_store<T: Send>(
        &self,
        address: StoreAddress<'_>,
        several: bool,
        to_open: Option<SessionsToOpen<'_>>,
        read: ReadEach<'_, T>,
        visit: &mut VisitRead<'_, T>,
    ) -> Result<usize> {
        let store = open_store(address.store, Access::Read)?;
        let to_open = match to_open {
            // An index is of the whole store: asking it can cost more than reading one session.
            Some(to_open) if address.is_several() => to_open(&store, address.glob())?,
            _ => None,
        };
        let (names, count) = match to_open {
            _ if !address.is_several() && self.is_all() => (vec![address.one()?.to_owned()], 1),
            Some(to_open) if self.is_all() => (to_open, store.count(address.glob())?),
            to_open => {
                let mut names = if self.is_all() {
                    store.names(address.glob())?
                } else {
                    let chosen = self.chosen(&store, address, usize::MAX)?.into_iter();
                    chosen.map(|one| one.info.name).collect()
                };
                let count = names.len();
                if let Some(to_open) = to_open {
                    // Both are in byte order.
                    names.retain(|name| to_open.binary_search(name).is_ok());
                }
                (names, count)
            }
        };
        if count == 0 && store.count(address.glob())? == 0 {
            return Err(Failure::plain(Exit::Missing, none_of(address)));
        }
        let read = |name: &str, session: Arc<Session>| {
            let opened = Opened::stored(address, name, session, several);
            let read = read(&opened);
            (opened, read)
        };
        store.each(&names, &read, &mut |(opened, read)| visit(&opened, read))?;
        Ok(count)
    }

    /// The chosen sessions of a store, `most` at least if there are as many; says so if others were left out, and none
    /// is left. Opens none.
    pub(super) fn chosen(
        &self,
        store: &Store,
        address: StoreAddress<'_>,
        most: usize,
    ) -> Result<Vec<ListedInfo>> {
        let most = if self.is_all() { most } else { usize::MAX };
        let mut found = store.page(address.glob(), "", most)?;
        let all = found.len();
        found.retain(|one| self.has(one.info.committed_at_ns, one.meta.as_deref()));
        if found.is_empty() && all > 0 {
            let sessions = counted(all as u64, "session");
            let store = without_passwords(address.store);
            say(&format!("note: none of {sessions} of {store} was chosen\n"));
        }
        Ok(found)
    }
}

/// Whether `meta`, or the request in it, has a value: a text, or what is written like it.
fn has(meta: &str, (key, value): &(String, String)) -> bool {
    let is = |json: &str| string(json).map_or(json == value, |text| text == **value);
    let meta = members(meta);
    let request = get(&meta, "request").map(|request| string(request).unwrap_or(request.into()));
    let request = request.as_deref().map(members).unwrap_or_default();
    let mut all = meta.iter().chain(&request);
    all.any(|(name, found)| name == key && is(found))
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, such as model=gpt-4o".to_owned()),
    }
}

pub(super) fn first_of_day(text: &str) -> Result<i64, String> {
    time(text, "T00:00:00Z")
}

fn last_of_day(text: &str) -> Result<i64, String> {
    time(text, "T23:59:59.999999999Z")
}

/// A time in nanoseconds since 1970; of a date alone, with the rest.
fn time(text: &str, rest: &str) -> Result<i64, String> {
    let whole = match text.len() {
        10 => nanos_of_rfc3339(&format!("{text}{rest}")),
        _ => nanos_of_rfc3339(text),
    };
    whole.ok_or_else(|| {
        "expected a date such as 2026-01-31, or a time such as 2026-01-31T09:00:00Z".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::{FollowedStore, StoreAddress, first_of_day, follow_store, has, last_of_day};
    use crate::engine::Message;
    use crate::store::Store;

    #[test]
    fn a_followed_store_is_read_again_after_a_commit_alone() {
        let folder = std::env::temp_dir().join(format!("pactql-followed-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.db").to_string_lossy().into_owned();
        let store = Store::open(&path).unwrap();
        let mut context = store.write("one").unwrap();
        let address = StoreAddress::parse(&path).unwrap();
        let mut known = FollowedStore::default();
        for visits in [1, 0, 1] {
            if visits > 0 {
                context.append(Message::user("more")).unwrap();
                context.commit().unwrap();
            }
            // All that is read is new.
            known.open.clear();
            let mut found = 0;
            let visit = &mut |_: &_| {
                found += 1;
                Ok(())
            };
            follow_store(address, &store, &mut known, true, visit).unwrap();
            assert_eq!(found, visits);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn days() {
        let day = 86_400_000_000_000;
        assert_eq!(first_of_day("1970-01-02"), Ok(day));
        assert_eq!(last_of_day("1970-01-02"), Ok(2 * day - 1));
        assert_eq!(last_of_day("1970-01-02T00:00:00Z"), Ok(day));
        assert!(first_of_day("2026-02-30").is_err() && first_of_day("now").is_err());
    }

    #[test]
    fn values_of_meta() {
        let meta = r#"{"source":"transcript","request":{"model":"gpt-4o","n":1},"tries":2}"#;
        for (key, value, expected) in [
            ("model", "gpt-4o", true),
            ("model", "gpt-4", false),
            ("n", "1", true),
            ("source", "transcript", true),
            ("tries", "2", true),
            ("none", "", false),
        ] {
            assert_eq!(
                has(meta, &(key.into(), value.into())),
                expected,
                "{key}={value}"
            );
        }
        let text = r#"{"request":"{\"model\":\"o3\"}"}"#;
        assert!(has(text, &("model".into(), "o3".into())));
    }
}
