//! `pactql select`: the nodes that a selector finds.

use super::answers::{AnswerLabels, FitArgs, How, append};
use super::command::{Invocation, RunCommand, print, say, stdout};
use super::opened::{MOST_ASKED, Opened, WithoutSnapshot};
use super::options::{EditionArgs, PrintAs, RangeArgs, error_colors};
use super::words::split_operands;
use super::{input, output, sessions};
use crate::app::present::answer::{FittedAnswer, Unfitting, note_empty};
use crate::app::present::stores::{Access, StoreAddress, none_of, without_passwords};
use crate::app::present::{Exit, Failure, Result};
use crate::engine::{Answer, NothingFound, Prepared, Watch};
use crate::history::{History, Session};
use crate::store::{SessionAnswer, SessionIds, SqlRow, Store, StoreSelection};
use crate::support::diag::Error;
use clap::Args;
use serde_json::json;
use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

/// Which nodes does a selector find?
///
/// The result is an ordered list of ids, or for a range of snapshots the differences between
/// neighbours. With several sessions, each result is labelled with the path of its session; with
/// several selectors, with the selector. A directory of single documents is one session; with a
/// JSON Lines file among several files in it, each file is a session. `STORE#name` is a session of a
/// store, `STORE#glob` those whose names match, `STORE` all: in byte order of names, only those in which
/// something is found, printed while others are queried. The exit code is 0 also if nothing is found, or 8 with
/// --fail-if-empty.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql select [OPTIONS] <SESSION> <SELECTOR>
       pactql select [OPTIONS] <SESSION>... -e <SELECTOR>
       pactql select [OPTIONS] <SESSION> --file <FILE>")]
pub(super) struct SelectArgs {
    /// Sessions: files, directories, stores and their sessions, or `-` for standard input [default: the newest, as of
    /// `show`]. The last argument is the selector, unless -e or --file gives it.
    #[arg(value_name = "SESSION")]
    inputs: Vec<String>,
    /// A selector; may be given several times.
    #[arg(short = 'e', long = "selector", value_name = "SELECTOR")]
    #[arg(allow_hyphen_values = true)]
    selectors: Vec<String>,
    /// Run every line of a file as a selector; prints one line of JSON for each, which is the
    /// error if there is one.
    #[arg(long, value_name = "FILE", conflicts_with = "selectors")]
    file: Option<String>,
    /// Print only the number of nodes; of several sessions, only those in which something is found.
    #[arg(short, long)]
    count: bool,
    /// At most N nodes of each session, as with `@limit=N` at the end of the selector.
    #[arg(short = 'n', value_name = "N", conflicts_with = "file")]
    number: Option<u64>,
    /// With --count: print also the sessions in which nothing is found.
    #[arg(long, requires = "count")]
    all: bool,
    /// Print only the paths of the sessions in which something is found.
    #[arg(short, long, conflicts_with_all = ["count", "file", "budget"])]
    list: bool,
    /// Exit with code 8 if nothing is found.
    #[arg(long)]
    fail_if_empty: bool,
    /// Print the matches, and then each that comes as the session grows, until interrupted: an id a line, with --json an
    /// object a line.
    #[arg(long)]
    #[arg(conflicts_with_all = ["file", "count", "all", "list", "fail_if_empty", "via", "budget", "query"])]
    follow: bool,
    /// Who answers: with `sql` the database of a store, by one statement (`pactql sql` prints it).
    #[arg(long, value_name = "WHO", default_value = "engine", value_parser = ["engine", "sql"])]
    #[arg(hide_default_value = true, conflicts_with_all = ["file", "list", "all"])]
    via: String,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    fit: FitArgs,
    #[command(flatten)]
    edition: EditionArgs,
}

impl RunCommand for SelectArgs {
    fn formats(&self) -> &'static [PrintAs] {
        &[
            PrintAs::Json,
            PrintAs::Ids,
            PrintAs::Nodes,
            PrintAs::Table,
            PrintAs::Tree,
        ]
    }

    fn run(&self, with: &Invocation) -> Result<Exit> {
        let how = How {
            engine: self.edition.engine(),
            options: self.range.options(),
            budget: self.fit.budget()?,
            format: match with.format {
                Some(format) => format,
                None if io::stdout().is_terminal() => PrintAs::Table,
                None => PrintAs::Ids,
            },
            count: self.count,
            with: *with,
        };
        match &self.file {
            Some(_) if with.format.is_some_and(|format| format != PrintAs::Json) => {
                Err(Failure::value("--file answers in JSON only").with_help("leave `--format` out"))
            }
            Some(file) => self.run_file(file, &how),
            None if self.follow => self.run_follow(&how),
            None if self.via == "sql" => self.run_sql(&how),
            None => self.run_sessions(&how),
        }
    }
}

impl SelectArgs {
    /// The sessions and the selectors.
    fn split(&self) -> Result<(&[String], Vec<String>)> {
        let (names, selectors) = split_operands("select", &self.inputs, &self.selectors)?;
        let limited = |selector: &String| match self.number {
            Some(most) => format!("{selector} @limit={most}"),
            None => selector.clone(),
        };
        Ok((names, selectors.iter().map(limited).collect()))
    }

    /// The sessions, and the selectors, which are refused before anything is read.
    fn prepared(&self, how: &How) -> Result<(&[String], Vec<Prepared>)> {
        let (names, selectors) = self.split()?;
        let prepared = selectors.iter().map(|one| how.engine.prepare(one));
        Ok((names, prepared.collect::<Result<_, _>>()?))
    }

    /// Has the database of a store answer the selector. JSON has one object a row.
    fn run_sql(&self, how: &How) -> Result<Exit> {
        let (names, selectors) = self.split()?;
        let ([name], [selector]) = (names, &selectors[..]) else {
            return Err(
                Failure::usage("`--via sql` takes one store and one selector")
                    .with_help("pactql select STORE SELECTOR --via sql"),
            );
        };
        if self.range.are_given() || how.budget.is_some() {
            let message =
                "`--via sql` has the rows of a selector, without budgets and options of ranges";
            return Err(Failure::usage(message).with_help("leave `--via sql` out"));
        }
        let Some(address) = StoreAddress::parse(name) else {
            let message = format!("`--via sql` asks a store, and `{name}` is none");
            return Err(Failure::usage(message).with_help("pactql import SESSION -o agents.db"));
        };
        if !matches!(how.format, PrintAs::Json | PrintAs::Ids) {
            return Err(Failure::value("`--via sql` has ids, and no contents")
                .with_help("--format json or ids"));
        }
        let store = super::read_sessions::open_store(address.store, Access::Read)?;
        let prepared = how.engine.prepare(selector)?;
        how.with.warn(prepared.warnings(), selector);
        let asked = if address.is_several() {
            store.count(address.glob())?
        } else {
            store.session(address.glob()).map(|_| 1)?
        };
        let selection = store.select_prepared(&prepared).sessions(address.glob());
        let name = without_passwords(address.store);
        let mut out = String::new();
        let mut found = 0_u64;
        let mut failed = None;
        selection.rows(|row| {
            found += 1;
            if failed.is_some() || how.count {
                return;
            }
            let label = |session: &str| output::printable(&format!("{name}#{session}"));
            out.push_str(&match &row {
                _ if how.format == PrintAs::Json => json!(row).to_string(),
                SqlRow::Node { session, id, .. } => format!("{}\t{id}", label(session)),
                SqlRow::Change {
                    session,
                    change,
                    id,
                    ..
                } => format!("{}\t{change}\t{id}", label(session)),
            });
            out.push('\n');
            if out.len() > 1 << 16 {
                failed = print(&std::mem::take(&mut out)).err();
            }
        })?;
        if let Some(failure) = failed {
            return Err(failure);
        }
        if how.count {
            out = format!("{found}\n");
        }
        print(&out)?;
        if found == 0 {
            let sessions = output::counted(asked as u64, "session");
            say(&match asked {
                0 => format!("note: {}\n", none_of(address)),
                _ => format!("note: nothing was found in {sessions}\n"),
            });
        }
        Ok(Exit::of_empty(found == 0 && self.fail_if_empty))
    }

    fn run_sessions(&self, how: &How) -> Result<Exit> {
        let (names, prepared) = self.prepared(how)?;
        for each in &prepared {
            each.ready()?;
        }
        let names = &super::read_sessions::or_newest(names, how.with.limits)?;
        // All sessions but those of whole stores are open before one is queried.
        let mut several = names.len() > 1;
        let mut sources = Vec::new();
        for run in names.chunk_by(|a, b| whole(a).is_none() && whole(b).is_none()) {
            let store = run.first().and_then(|name| whole(name));
            let opened = match store {
                Some(_) => Vec::new(),
                None => super::each_session::open_words(run, &how.with)?,
            };
            several |= store.is_some() || opened.iter().any(|one| one.several);
            sources.push((store, opened));
        }
        let mut run = Answers {
            select: self,
            how,
            several,
            out: String::new(),
            said: Vec::new(),
            empty: None,
            nothing: Vec::new(),
            unfitting: Unfitting::default(),
            found: 0,
            listed: Vec::new(),
            seen: HashSet::new(),
            sessions: 0,
        };
        let mut without = WithoutSnapshot::default();
        for (store, opened) in &sources {
            if let Some(address) = store {
                run.add_store(*address, &prepared)?;
            }
            for opened in opened {
                let Opened { name, session, .. } = opened;
                run.sessions += 1;
                let name = &*without_passwords(name);
                for each in &prepared {
                    let labels = run.labels(name, each, prepared.len());
                    let answer = each
                        .select_with(session, &how.options)
                        .map_err(|error| Failure::in_session(error, labels.session));
                    if let Some(answer) = without.pass(opened, answer)? {
                        run.add(name, &answer, Some(session), each, labels)?;
                    }
                }
            }
        }
        without.left_of(run.sessions)?;
        run.finish()
    }

    /// Prints the matches, and then the new matches of each snapshot that comes.
    fn run_follow(&self, how: &How) -> Result<Exit> {
        let (names, prepared) = self.prepared(how)?;
        let none = Arc::new(Session::new(History::default()));
        for each in &prepared {
            each.watch(&none)?;
            how.with.warn(each.warnings(), each.text());
        }
        match how.with.format {
            None | Some(PrintAs::Json | PrintAs::Ids | PrintAs::Nodes)
                if !self.range.are_given() => {}
            _ => {
                return Err(Failure::value("`--follow` prints a line for each match")
                    .with_help("--format ids, json or nodes, without options of ranges"));
            }
        }
        let mut shown: HashMap<String, FollowedAnswers> = HashMap::new();
        let names = super::read_sessions::or_newest(names, how.with.limits)?;
        super::follow_sessions::follow(&names, &how.with, &mut |opened| {
            let answers = match shown.entry(opened.name.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(FollowedAnswers::new(&prepared)?),
            };
            answers.grow(opened, how)
        })
    }

    fn run_file(&self, file: &str, how: &How) -> Result<Exit> {
        if self.inputs.len() > 1 {
            let message = "--file takes one session and no other selector";
            return Err(Failure::usage(message).with_help("pactql select SESSION --file FILE"));
        }
        let name = &super::read_sessions::one_or_newest(self.inputs.first(), how.with.limits)?;
        if name == input::STDIN && file == input::STDIN {
            return Err(Failure::usage("standard input can be read once only")
                .with_help("give the session or the selectors as a file"));
        }
        let selectors = input::read(file, how.with.limits)?;
        let session = sessions::open(name, how.with.limits)?;
        let mut out = stdout();
        let mut exit = Exit::Ok;
        let mut found = 0;
        // The answer as one JSON value, and the number of its rows.
        let run = |line: Result<&str, String>| {
            let line = line.map_err(|line| input::not_utf8(&line))?;
            let answer = how.engine.select_with(&session, line, &how.options)?;
            how.with.warn(answer.warnings(), line);
            let found = FittedAnswer::new(&answer, how.budget.as_ref())?;
            Ok::<_, Failure>((found.json(how.count)?, found.count()))
        };
        for line in input::lines(&selectors) {
            let text = match run(line) {
                Ok((text, count)) => {
                    found += count;
                    text
                }
                Err(failure) if failure.exit() == Exit::Internal => return Err(failure),
                Err(failure) => {
                    exit = Exit::Selector;
                    failure.json().to_string()
                }
            };
            writeln!(out, "{text}")?;
        }
        out.flush()?;
        Ok(match exit {
            Exit::Ok if self.fail_if_empty && found == 0 => Exit::Empty,
            exit => exit,
        })
    }
}

/// The answers to selectors in one session that is followed.
struct FollowedAnswers {
    /// What was printed is true of this session, which follows the other one snapshot by snapshot.
    session: Arc<Session>,
    watches: Vec<Watch>,
    prepared: Vec<Prepared>,
    /// The newest cycle that it has.
    cycle: Option<i64>,
}

impl FollowedAnswers {
    fn new(prepared: &[Prepared]) -> Result<Self> {
        let session = Arc::new(Session::new(History::default()));
        let watches = prepared.iter().map(|each| each.watch(&session));
        Ok(Self {
            watches: watches.collect::<Result<_, _>>()?,
            prepared: prepared.to_vec(),
            session,
            cycle: None,
        })
    }

    /// Prints what has come in each snapshot since the last call; at the first what is in the newest.
    fn grow(&mut self, opened: &Opened, how: &How) -> Result<()> {
        let whole = opened.session.history();
        whole.fetch_cycles()?;
        let newest = whole.cycles().next_back();
        if let Some(before) = self.cycle {
            let later = whole.cycles().take_while(|cycle| *cycle <= before).count();
            for count in later + 1..whole.committed().len() {
                self.session.publish(whole.first_n(count));
                self.print(opened, how)?;
            }
            if whole.has_working() && newest.is_some_and(|newest| newest > before) {
                self.session.publish(whole.without_working());
                self.print(opened, how)?;
            }
        }
        self.cycle = newest;
        self.session.publish(whole);
        self.print(opened, how)
    }

    fn print(&mut self, opened: &Opened, how: &How) -> Result<()> {
        let several = self.prepared.len() > 1;
        let mut out = String::new();
        for (watch, prepared) in self.watches.iter_mut().zip(&self.prepared) {
            let labels = AnswerLabels {
                session: opened.label(),
                selector: several.then(|| prepared.text()),
            };
            let diff = watch.changes().map_err(|error| opened.failure(error))?;
            if let Some(diff) = diff.filter(|diff| !diff.added.is_empty()) {
                let rows = prepared.rows(&self.session);
                let rows = rows.map_err(|error| opened.failure(error))?;
                labels.append_came(&diff.added, &rows, how.with.format, &mut out);
            }
        }
        print(&out).map(|_| ())
    }
}

/// The address of sessions of a store, if a name is one of several.
fn whole(name: &str) -> Option<StoreAddress<'_>> {
    StoreAddress::parse(name).filter(|address| address.is_several())
}

/// What is read of one session.
enum StoredAnswer {
    Whole(SessionAnswer),
    Ids(SessionIds),
    Count(usize),
}

/// What is read of the sessions of a store, with their names.
type StoredAnswers<'s> = Box<dyn Iterator<Item = Result<(String, StoredAnswer), Error>> + 's>;

struct Answers<'a> {
    select: &'a SelectArgs,
    how: &'a How,
    several: bool,
    out: String,
    said: Vec<String>,
    /// The remarks on the first answer without rows of several; they are made if all are.
    empty: Option<String>,
    /// Such answers of the only selector, or in a store of the first one.
    nothing: Vec<NothingFound>,
    /// Blocks of such answers that do not fit into the budget.
    unfitting: Unfitting,
    found: usize,
    /// The sessions in which something was found, for JSON.
    listed: Vec<String>,
    /// The same, to find them.
    seen: HashSet<String>,
    sessions: usize,
}

/// The bytes of answers that are kept before they are printed, of stores.
const BUFFER: usize = 1 << 16;

impl Answers<'_> {
    fn labels<'l>(
        &self,
        name: &'l str,
        prepared: &'l Prepared,
        selectors: usize,
    ) -> AnswerLabels<'l> {
        AnswerLabels {
            session: self.several.then_some(name),
            selector: (selectors > 1).then(|| prepared.text()),
        }
    }

    /// Runs the selectors on the sessions of a store, and prints while others are queried.
    fn add_store(&mut self, address: StoreAddress<'_>, prepared: &[Prepared]) -> Result<()> {
        let store = super::read_sessions::open_store(address.store, Access::Read)?;
        let glob = address.glob();
        let mut streams = Vec::new();
        for each in prepared {
            let asked = store.select_prepared(each).sessions(glob);
            streams.push(self.stream(asked.options(self.how.options.clone()), each)?);
        }
        let all = self.select.all.then(|| store.sessions(glob));
        let mut all = all.transpose()?.unwrap_or_default();
        all.reverse();
        let before = self.found;
        let mut next = Vec::new();
        for stream in &mut streams {
            next.push(stream.next().transpose()?);
        }
        loop {
            let named = next.iter().flatten().map(|(name, _)| name);
            let first = all.pop().map(|info| info.name);
            let Some(first) = first.or_else(|| named.min().cloned()) else {
                break;
            };
            let name = format!("{}#{first}", without_passwords(address.store));
            for ((next, stream), each) in next.iter_mut().zip(&mut streams).zip(prepared) {
                let labels = self.labels(&name, each, prepared.len());
                match next.take_if(|(name, _)| *name == first) {
                    Some((_, answer)) => {
                        self.add_stored(&name, answer, each, labels)?;
                        *next = stream.next().transpose()?;
                    }
                    None if self.select.all => {
                        labels.append_count("0", self.how.format, &mut self.out)
                    }
                    None => {}
                }
            }
            if self.out.len() > BUFFER {
                print(&std::mem::take(&mut self.out))?;
            }
        }
        if self.found > before {
            return Ok(());
        }
        self.add_nothing(&store, address, prepared)
    }

    /// The answers of a store's sessions to a selector, with no more of each than is printed.
    fn stream<'s>(
        &self,
        asked: StoreSelection<'s>,
        prepared: &Prepared,
    ) -> Result<StoredAnswers<'s>> {
        let (select, how) = (self.select, self.how);
        let only_ids = matches!(how.format, PrintAs::Ids | PrintAs::Json);
        // A range of differences has another form, and a warning comes with an answer.
        let fits = how.budget.is_none() && prepared.warnings().is_empty();
        let fits = fits && prepared.check_rows().is_ok() && !select.range.are_given();
        Ok(if fits && (how.count || select.list) {
            Box::new(asked.counts()?.map(|found| {
                let (name, count) = found?;
                Ok((name, StoredAnswer::Count(count)))
            }))
        } else if fits && only_ids {
            Box::new(asked.ids()?.map(|found| {
                let found = found?;
                Ok((found.session().to_owned(), StoredAnswer::Ids(found)))
            }))
        } else {
            Box::new(asked.answers()?.map(|found| {
                let found = found?;
                Ok((found.session.clone(), StoredAnswer::Whole(found)))
            }))
        })
    }

    fn add_stored(
        &mut self,
        name: &str,
        answer: StoredAnswer,
        prepared: &Prepared,
        labels: AnswerLabels<'_>,
    ) -> Result<()> {
        match answer {
            StoredAnswer::Whole(found) => {
                return self.add(name, &found.answer, None, prepared, labels);
            }
            StoredAnswer::Ids(found) => {
                self.found += found.ids().len();
                labels.append_ids(found.ids(), self.how.format, &mut self.out)?;
            }
            StoredAnswer::Count(count) => {
                self.found += count;
                if self.select.list {
                    self.add_name(name);
                } else {
                    labels.append_count(&count.to_string(), self.how.format, &mut self.out);
                }
            }
        }
        Ok(())
    }

    /// Adds the name of a session in which something was found, once.
    fn add_name(&mut self, name: &str) {
        if self.seen.insert(name.to_owned()) {
            if self.how.with.is_json() {
                self.listed.push(name.to_owned());
            } else {
                self.out.extend([name, "\n"]);
            }
        }
    }

    fn add_nothing(
        &mut self,
        store: &Store,
        address: StoreAddress<'_>,
        prepared: &[Prepared],
    ) -> Result<()> {
        let asked = store.count(address.glob())?;
        self.sessions += asked;
        if asked == 0 {
            say(&format!("note: {}\n", none_of(address)));
        } else if self.empty.is_none() {
            // Of more than are queried together, the first one has to do.
            let most = if asked <= MOST_ASKED { asked } else { 1 };
            self.empty = self.why_empty(store, address, prepared, most);
        }
        Ok(())
    }

    /// Why the first session of a store, in which nothing was found, has nothing; `None` if that cannot be
    /// said. Keeps the answers of those that are queried together.
    fn why_empty(
        &mut self,
        store: &Store,
        address: StoreAddress<'_>,
        prepared: &[Prepared],
        most: usize,
    ) -> Option<String> {
        let prepared = prepared.first()?;
        let (mut first, mut failed) = (None, None);
        for listed in store.page(address.glob(), "", most).ok()? {
            let session = store.session(&listed.info.name).ok()?;
            let name = format!("{}#{}", without_passwords(address.store), listed.info.name);
            match prepared.select_with(&session, &self.how.options) {
                Ok(answer) => {
                    self.keep(&answer);
                    if first.is_none() {
                        let found = FittedAnswer::new(&answer, self.how.budget.as_ref()).ok()?;
                        first = Some(self.remarks(&found, &name, Some(&session), prepared));
                    }
                }
                // It has no such snapshot.
                Err(error) => {
                    failed.get_or_insert_with(|| format!("note: in {name}, {}\n", error.message()));
                }
            }
        }
        first.or(failed)
    }

    fn keep(&mut self, answer: &Answer) {
        if let Answer::Rows(rows) = answer
            && self.nothing.len() < MOST_ASKED
        {
            self.nothing.extend(rows.nothing());
        }
    }

    fn remarks(
        &self,
        found: &FittedAnswer<'_>,
        name: &str,
        session: Option<&Session>,
        prepared: &Prepared,
    ) -> String {
        let of = self.several.then_some(name);
        let color = error_colors(self.how.with.color);
        found.remarks(prepared, session, of, self.how.with.is_json(), color)
    }

    fn add(
        &mut self,
        name: &str,
        answer: &Answer,
        session: Option<&Session>,
        prepared: &Prepared,
        labels: AnswerLabels<'_>,
    ) -> Result<()> {
        let (select, how) = (self.select, self.how);
        let found = FittedAnswer::new(answer, how.budget.as_ref())?.with_options(&how.options);
        let count = found.count();
        self.found += count;
        if count > 0 {
            // Why others are empty is not said, and each keeps its snapshots in memory.
            self.nothing = Vec::new();
        }
        if let Some(unfitting) = found.unfitting() {
            self.unfitting.tokens = unfitting.tokens;
            self.unfitting.blocks += unfitting.blocks;
        }
        if count > 0 && select.list {
            self.add_name(name);
        }
        let left_out = how.count && self.several && count == 0 && !select.all;
        if !select.list && !left_out {
            append(&found, prepared, labels, how, &mut self.out)?;
        }
        if self.found == 0 && self.several && labels.selector.is_none() {
            self.keep(answer);
        }
        if count == 0 && self.empty.is_some() {
            // Why an answer is empty costs more than the answer.
            return Ok(());
        }
        let remarks = self.remarks(&found, name, session, prepared);
        if count == 0 && self.several {
            self.empty.get_or_insert(remarks);
        } else if !self.said.contains(&remarks) {
            say(&remarks);
            self.said.push(remarks);
        }
        Ok(())
    }

    fn finish(self) -> Result<Exit> {
        if self.found == 0 {
            let unknown = super::opened::unknown_in_all(self.nothing.iter(), self.sessions);
            match &unknown[..] {
                [] => say(self.empty.as_deref().unwrap_or_default()),
                why => say(&note_empty(why, &[], None, self.how.with.is_json())),
            }
            // Of none it was said that there are none.
            if self.several && self.sessions > 0 {
                let nothing = || {
                    let sessions = output::counted(self.sessions as u64, "session");
                    format!("nothing was found in {sessions}")
                };
                let unfitting = self.unfitting.message(Some(self.sessions));
                say(&format!("note: {}\n", unfitting.unwrap_or_else(nothing)));
            }
        }
        if self.select.list && self.how.with.is_json() {
            print(&(json!(self.listed).to_string() + "\n"))?
        } else {
            print(&self.out)?
        };
        Ok(match self.found {
            0 if self.select.fail_if_empty => Exit::Empty,
            _ => Exit::Ok,
        })
    }
}
