//! Each session of some words: opened some at a time, those of a store by its database, and only those that are chosen.

use super::command::{Invocation, say};
use super::input;
use super::opened::{EmptyAnswers, Opened, WithoutSnapshot};
use super::progress::Progress;
use super::read_sessions::{
    ReadSessions, TOGETHER, no_part, note_reconstructed, open_store, or_newest, read,
};
use super::session_args::SessionsArgs;
use super::typed;
use super::words::{exists, retyped};
use crate::app::present::folders::{
    LogSource, files_of, logs_of_machine, part_of, said_of_left_out,
};
use crate::app::present::followed::FollowedLogs;
use crate::app::present::sessions::FileContents;
use crate::app::present::stores::{self, Access, StoreAddress, none_of, without_passwords};
use crate::app::present::{Exit, Failure, Result, counted, sessions as opened};
use crate::engine::Engine;
use crate::history::Session;
use crate::inspect::{Report, ReportOptions, time_of};
use crate::logs::{self, is_opencode, position_of};
use crate::store::{ListedInfo, Store};
use crate::support::cancel;
use crate::tree::Limits;
use crate::tree::timestamp::nanos_of_rfc3339;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// What is done with each session.
pub(super) type Visit<'a> = dyn FnMut(&Opened) -> Result<()> + 'a;

/// What is read of each session, in parallel.
pub(super) type ReadEach<'a, T> = &'a (dyn Fn(&Opened) -> T + Sync);

/// What is done with each session and what was read of it.
pub(super) type VisitRead<'a, T> = dyn FnMut(&Opened, T) -> Result<()> + 'a;

/// Says which sessions of a store, whose name matches a pattern, need to be opened, in byte order of
/// their names; `None` for all.
pub(super) type SessionsToOpen<'a> = &'a dyn Fn(&Store, &str) -> Result<Option<Vec<String>>>;

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

#[derive(Default)]
pub(super) struct Opening {
    limits: Limits,
    /// Whether there may be several sessions.
    pub(super) several: bool,
    /// As [`SessionsArgs::whole`].
    whole: bool,
    /// The names of the sessions of logs so far, for each word that names a part of a place; of those shown under `None`.
    taken: HashMap<Option<String>, HashSet<String>>,
    /// Each remark once, however many sessions it is true of.
    said: HashSet<String>,
    opened: usize,
    /// The files of folders that are neither sessions nor logs, and why the first one is not.
    left_out: Vec<LogSource>,
    failure: Option<Failure>,
    /// The words for sessions of logs, as [`LogSource::part`], of which none was found so far.
    missing: Vec<String>,
    /// Where logs are followed: what was read of them.
    pub(super) followed: Option<FollowedLogs>,
}

impl Opening {
    pub(super) fn new(limits: Limits, several: bool) -> Self {
        Self {
            limits,
            several,
            ..Self::default()
        }
    }

    /// What the words mean, none of which is a store: of a folder its files, unless it is one session.
    pub(super) fn sources(&mut self, words: &[String]) -> Result<Vec<LogSource>> {
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
                    match opened::in_folder(Path::new(path), limits, followed) {
                        // Says more about what is wrong with the one file.
                        Ok(FileContents::Neither(_)) | Err(_) => read(path, limits, followed),
                        Ok(contents) => ReadSessions::new(contents),
                    }
                    .map(Ok)
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
                    self.left_out.push(source.clone());
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
        let (sessions, known) = (read.sessions, read.known);
        let sessions = names.into_iter().zip(sessions);
        let named = sessions.map(|(name, session)| Opened {
            name,
            session,
            log: log.clone(),
            several: self.several,
        });
        let mut named: Vec<Opened> = named.collect();
        let Some(word) = &source.part else {
            return named;
        };
        let (place, part) = part_of(word).unwrap_or((word, ""));
        // The names in a log are of that log alone, and not of a folder.
        let own = |at: usize| {
            let (name, _) = known.get(at).filter(|_| place == source.path)?;
            name.as_deref()
        };
        let names = named.iter().enumerate();
        let names = names.map(|(at, one)| (Some(&*one.name), own(at)));
        let Some(found) = position_of(part, names) else {
            return Vec::new();
        };
        self.missing.retain(|missing| missing != word);
        let mut found = named.swap_remove(found);
        let shown = self.taken.entry(None).or_default();
        found.name = logs::unique(&found.name, shown);
        vec![found]
    }

    /// Opens a file that may have been opened before. Its remarks are made once.
    pub(super) fn open_again(&mut self, source: &LogSource) -> Result<Vec<Opened>> {
        self.taken.clear();
        let found = self.open(std::slice::from_ref(source))?;
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(found),
        }
    }

    /// Opens all, and gives each session that is chosen to `visit`. Returns how many there were.
    pub(super) fn each<T: Send>(
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
        let files: Vec<&LogSource> = self.left_out.iter().collect();
        for said in said_of_left_out(&files) {
            say(&format!("note: {said}\n"));
        }
        Ok(())
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
