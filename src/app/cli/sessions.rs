//! The sessions that commands read, with a spinner while one loads that takes long; and of those that are
//! inspected which snapshots, and which nodes of them.

use super::command::{Invocation, say};
use super::input;
use super::progress::Progress;
use crate::app::present::stores::{self, Access, StoreAddress, none_of, without_passwords};
use crate::app::present::{Exit, Failure, counted, printable, sessions as opened};
use crate::engine::{Context, ContextBuilder, Engine};
use crate::history::Session;
use crate::index::Snapshot;
use crate::inspect::{Part, Prices, Report, ReportOptions};
use crate::json::{get, members, string};
use crate::store::{SessionInfo, Store};
use crate::support::table::{Paint, Tint};
use crate::tree::Limits;
use crate::tree::seal::Ending;
use crate::tree::source::{ending_of, is_lines_by_name, read_all, read_files, sessions_in};
use crate::tree::timestamp::nanos_of_rfc3339;
use clap::Args;
use rayon::prelude::*;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// How the file of a session ends; `None` of anything but a file of lines. Reads it again.
pub(super) fn ending_of_session(name: &str) -> Result<Option<Ending>, Failure> {
    let path = Path::new(name);
    if StoreAddress::parse(name).is_some() || !path.is_file() || !is_lines_by_name(path) {
        return Ok(None);
    }
    Ok(Some(ending_of(path)?))
}

pub(super) fn ending_name(ending: Ending) -> &'static str {
    match ending {
        Ending::Sealed => "sealed",
        Ending::LineFeed => "line feed",
        Ending::NoLineFeed => "no line feed",
    }
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

/// Opens a session: a file, a directory, a session of a store, or standard input for `-`. A log of one
/// session is imported in memory. Says what is odd about it.
pub(super) fn open(name: &str, limits: Limits) -> Result<Arc<Session>, Failure> {
    let progress = Progress::spinner(format!("reading {name}"));
    let stores = stores_of(&[name.to_owned()])?;
    let (session, remarks) = read(name, limits, &stores)?;
    drop(progress);
    say(&remarks);
    Ok(session)
}

/// Opens a session as [`open`] does, and finds the snapshot at `address`; without one, the working state, or else
/// the newest snapshot.
pub(super) fn open_at(
    name: &str,
    address: Option<&str>,
    limits: Limits,
) -> Result<(Arc<Session>, Arc<Snapshot>), Failure> {
    let session = open(name, limits)?;
    let snapshot = opened::at(&session, address)?;
    Ok((session, snapshot))
}

type StoresByName = HashMap<String, Store>;

fn stores_of(names: &[String]) -> Result<StoresByName, Failure> {
    let mut open = StoresByName::new();
    for address in names.iter().filter_map(|name| StoreAddress::parse(name)) {
        if !open.contains_key(address.store) {
            let store = open_store(address.store, Access::Read)?;
            open.insert(address.store.to_owned(), store);
        }
    }
    Ok(open)
}

/// Opens a store.
pub(super) fn open_store(name: &str, access: Access) -> Result<Store, Failure> {
    stores::open(name, access)
        .map_err(|failure| input::explain_missing(failure, stores::path(name).unwrap_or(name)))
}

/// A context that goes on with a copy of a session, from a file or a store, and that writes neither.
pub(super) fn resume(
    name: &str,
    limits: Limits,
    builder: ContextBuilder,
) -> Result<Context, Failure> {
    match StoreAddress::parse(name) {
        Some(address) => {
            let session = address.one()?;
            stores::resume(&open_store(address.store, Access::Read)?, session, builder)
        }
        None => Ok(builder.resume(&*open(name, limits)?)?),
    }
}

/// Reads a session, and what is to be said of it: a log is imported in memory.
fn read(
    name: &str,
    limits: Limits,
    stores: &StoresByName,
) -> Result<(Arc<Session>, String), Failure> {
    if let Some(address) = StoreAddress::parse(name) {
        let store = stores.get(address.store);
        let store = store.ok_or_else(|| Failure::internal("the store is not open"))?;
        let session = store.session(address.one()?)?;
        let remarks = opened::remarks(&session);
        return Ok((session, remarks));
    }
    let (session, note) = if name == input::STDIN {
        let path = input::name(name);
        let bytes = read_all(std::io::stdin().lock(), &path, limits)?;
        let documents = if bytes.trim_ascii().is_empty() {
            Ok(Vec::new())
        } else {
            read_files([(Ok(bytes.clone()), path.clone())])
        };
        match opened::build(documents, path) {
            Ok(session) => (session, String::new()),
            Err(failure) => opened::of_log(name, &bytes).ok_or(failure)?,
        }
    } else {
        let opened = opened::open_or_log(Path::new(name), limits);
        opened.map_err(|failure| input::explain_missing(failure, name))?
    };
    let remarks = note + &opened::remarks(&session);
    Ok((Arc::new(session), remarks))
}

/// Words in runs: one store each, or files that follow each other.
pub(super) fn runs(words: &[String]) -> impl Iterator<Item = &[String]> {
    let is_file = |word: &String| StoreAddress::parse(word).is_none();
    words.chunk_by(move |a, b| is_file(a) && is_file(b))
}

type NamedSession = (String, Arc<Session>);

/// Opens the sessions that words mean, with their names; also whether one of the words means several.
pub(super) fn open_words(
    words: &[String],
    limits: Limits,
) -> Result<(Vec<NamedSession>, bool), Failure> {
    let (names, several) = expand(words)?;
    let opened = open_all(&names, limits)?;
    Ok((names.into_iter().zip(opened).collect(), several))
}

/// The sessions that names mean: a directory of sessions is replaced by its files. Also whether there was one.
fn expand(names: &[String]) -> Result<(Vec<String>, bool), Failure> {
    let mut all = Vec::new();
    let mut several = false;
    for name in names {
        match StoreAddress::parse(name) {
            None if let Some(files) = sessions_in(Path::new(name))? => {
                several = true;
                all.extend(files.iter().map(|file| file.display().to_string()));
            }
            _ => all.push(name.clone()),
        }
    }
    Ok((all, several))
}

/// Opens several sessions in parallel. Of several failures the first in order is returned.
fn open_all(names: &[String], limits: Limits) -> Result<Vec<Arc<Session>>, Failure> {
    if let [name] = names {
        return Ok(vec![open(name, limits)?]);
    }
    if names.iter().filter(|name| *name == input::STDIN).count() > 1 {
        return Err(Failure::usage("standard input can be read once only")
            .with_help("give `-` once, and the other sessions as files"));
    }
    let progress = Progress::bar(names.len());
    let stores = stores_of(names)?;
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

const TOGETHER: usize = 32;

/// The sessions of a command.
#[derive(Args, Debug, Default)]
pub(super) struct SessionsArgs {
    /// Sessions: files, directories, `STORE#name`, `STORE#glob`, `STORE`, or `-` for standard input.
    #[arg(value_name = "SESSION", required = true)]
    pub(super) sessions: Vec<String>,
    /// Only sessions of a store whose newest snapshot was committed at this time or later: a date, or a
    /// date and a time with its zone, such as 2026-01-31T09:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = first_of_day, help_heading = "Sessions of a store")]
    since: Option<i64>,
    /// Only sessions of a store whose newest snapshot was committed at this time or earlier.
    #[arg(long, value_name = "TIME", value_parser = last_of_day, help_heading = "Sessions of a store")]
    until: Option<i64>,
    /// Only sessions of a store whose newest snapshot has this value in `meta` or `meta.request`, such as
    /// model=gpt-4o; may be given several times, and all must hold.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, help_heading = "Sessions of a store")]
    meta: Vec<(String, String)>,
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
    /// Which snapshots, and which nodes of them; `default` are the snapshots without a time.
    pub(super) fn part(&self, default: Part) -> Part {
        let part = self.time.part(default);
        match &self.selector {
            Some(selector) => part.only(selector),
            None => part,
        }
    }
}

/// Says which sessions of a store, whose name matches a pattern, need to be opened, in byte order of
/// their names; `None` for all.
pub(super) type SessionsToOpen<'a> =
    &'a dyn Fn(&Store, &str) -> Result<Option<Vec<String>>, Failure>;

/// Which snapshots of a session.
#[derive(Args, Debug)]
pub(super) struct TimeArgs {
    /// One snapshot, such as @t0, @t-2 or @c12 [default: the working state, or else the newest].
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    at: Option<String>,
    /// A range of snapshots, such as @history or @t-9..@t0.
    #[arg(long, value_name = "RANGE", conflicts_with = "at")]
    #[arg(allow_hyphen_values = true)]
    over: Option<String>,
}

impl TimeArgs {
    /// The same for the library, where `default` are the snapshots without both.
    pub(super) fn part(&self, default: Part) -> Part {
        // As of other commands, the `@` may be left out.
        let time = |time: &String| match &**time {
            "working" => String::new(),
            time if time.starts_with(['t', 'c']) => format!("@{time}"),
            time => time.to_owned(),
        };
        match (&self.over, &self.at) {
            (Some(range), _) => default.over(time(range)),
            (None, Some(address)) => default.at(time(address)),
            (None, None) => default,
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
}

impl PriceArgs {
    pub(super) fn table(&self) -> Result<Prices, Failure> {
        let Some(file) = &self.prices else {
            return Ok(Prices::default());
        };
        let text = std::fs::read_to_string(file).map_err(|error| Failure::file(file, &error))?;
        Prices::parse(&text)
            .map_err(|error| Failure::plain(Exit::Input, format!("{file}: {error}")))
    }
}

pub(super) struct Opened {
    /// What names it, without passwords.
    pub(super) name: String,
    pub(super) session: Arc<Session>,
    /// Whether it may be one of several, so that what is said of it names it.
    pub(super) several: bool,
}

impl Opened {
    pub(super) fn label(&self) -> Option<&str> {
        self.several.then_some(&*self.name)
    }

    /// Appends its name as a line, if there may be several, with an empty line after what is there.
    pub(super) fn title(&self, paint: Paint, out: &mut String) {
        if let Some(name) = self.label() {
            let before = if out.is_empty() { "" } else { "\n" };
            out.extend([before, &paint.tint(Tint::Name, &printable(name)), "\n"]);
        }
    }

    pub(super) fn report<R: Report>(
        &self,
        engine: &Engine,
        options: &ReportOptions,
    ) -> Result<R, Failure> {
        R::new(engine, &self.session, options).map_err(|error| self.failure(error))
    }

    pub(super) fn failure(&self, error: crate::support::diag::Error) -> Failure {
        Failure::in_session(error, self.label())
    }
}

impl SessionsArgs {
    /// Opens the sessions in the order of the words and in a store of the names, and gives each to `visit`.
    /// Those of a store are open one at a time, and only those that were chosen. Returns how many there were;
    /// says so if there was none.
    pub(super) fn each(
        &self,
        with: &Invocation,
        visit: impl FnMut(&Opened) -> Result<(), Failure>,
    ) -> Result<usize, Failure> {
        self.each_of(&self.sessions, None, with, visit)
    }

    /// As [`SessionsArgs::each`], for some of the words. Of a store, only the sessions that `to_open` names are
    /// opened; the others are counted.
    pub(super) fn each_of(
        &self,
        words: &[String],
        to_open: Option<SessionsToOpen<'_>>,
        with: &Invocation,
        mut visit: impl FnMut(&Opened) -> Result<(), Failure>,
    ) -> Result<usize, Failure> {
        let mut count = 0;
        let mut several = words.len() > 1;
        for run in runs(words) {
            if let Some(address) = StoreAddress::parse(&run[0]) {
                several |= address.is_several();
                count += self.of_store(address, several, to_open, &mut visit)?;
                continue;
            }
            if !self.is_all() {
                let message = format!(
                    "`--since`, `--until` and `--meta` choose sessions of a store, and `{}` is none",
                    run[0]
                );
                return Err(Failure::usage(message)
                    .with_help("pactql import FILE... -o STORE.db puts sessions into a store"));
            }
            let (names, directory) = expand(run)?;
            several |= directory;
            for names in names.chunks(TOGETHER) {
                let opened = open_all(names, with.limits)?;
                for (name, session) in names.iter().zip(opened) {
                    let name = without_passwords(name).into_owned();
                    visit(&Opened {
                        name,
                        session,
                        several,
                    })?;
                    count += 1;
                }
            }
        }
        Ok(count)
    }

    fn is_all(&self) -> bool {
        self.since.is_none() && self.until.is_none() && self.meta.is_empty()
    }

    fn of_store(
        &self,
        address: StoreAddress<'_>,
        several: bool,
        to_open: Option<SessionsToOpen<'_>>,
        visit: &mut impl FnMut(&Opened) -> Result<(), Failure>,
    ) -> Result<usize, Failure> {
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
                let infos = self.infos(&store, address)?.into_iter();
                let mut names: Vec<String> = infos.map(|info| info.name).collect();
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
        for name in &names {
            let session = store.session(name)?;
            let opened = Opened {
                name: format!("{}#{name}", without_passwords(address.store)),
                session,
                several,
            };
            visit(&opened)?;
        }
        Ok(count)
    }

    /// The chosen sessions of a store; says so if others were left out, and none is left. Opens none.
    pub(super) fn infos(
        &self,
        store: &Store,
        address: StoreAddress<'_>,
    ) -> Result<Vec<SessionInfo>, Failure> {
        let mut found = store.sessions(address.glob())?;
        let all = found.len();
        found.retain(|info| {
            let after = self
                .since
                .is_none_or(|since| info.committed_at_ns >= Some(since));
            let before = |until| info.committed_at_ns.is_some_and(|time| time <= until);
            after && self.until.is_none_or(before)
        });
        if !self.meta.is_empty() {
            let metas = store.metas(address.glob())?;
            let fit = |info: &SessionInfo| {
                // Both lists are in byte order.
                let at = metas
                    .binary_search_by(|(known, _)| known.cmp(&info.name))
                    .ok();
                let meta = at.and_then(|at| metas.get(at)?.1.as_deref());
                meta.is_some_and(|meta| self.meta.iter().all(|pair| has(meta, pair)))
            };
            found.retain(fit);
        }
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
    use super::{first_of_day, has, last_of_day};

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
