//! The commands that print reports: `show`, `steps`, `tokens`, `prefix`, `top`, `grep`, `assert`.
//!
//! Each command has its options and its help here. What a report says is made and written by
//! `crate::inspect`.

use super::command::{Invocation, RunCommand, print, say};
use super::input;
use super::opened::{EmptyAnswers, MOST_ASKED, Opened, WithoutSnapshot, first_stored, stored_name};
use super::options::{FormArgs, PrintAs, TokenizerArgs, named, rows};
use super::read_sessions::{note_reconstructed, open_store, or_newest};
use super::session_args::{EVERY_LOG, InspectedArgs, PriceArgs, SessionsArgs, TimeArgs};
use super::words::retyped;
use super::words::{exists, is_file, split_operands};
use crate::app::present::sessions::time;
use crate::app::present::stores::Access;
use crate::app::present::{Exit, Failure, Result, answer, counted, printable};
use crate::engine::{EmptyAnswer, Engine, Log, LogEntry};
use crate::history::Session;
use crate::inspect::{
    AssertReport, By, Condition, DuplicateReport, GrepReport, Part, PrefixReport, Report,
    ReportOptions, Search, ShowReport, Step, StepReport, TokenReport, Top, UnusedReport, Usage,
    UsageBy, WithoutReport, in_conditions,
};
use crate::store::{Store, StoreRoute};
use crate::support::diag::Error;
use crate::support::lock;
use crate::support::table::{Paint, TableCell, TextTable};
use crate::support::text::amount;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, OnceLock};

/// A line of a report with the session it is about.
#[derive(Serialize)]
struct Labelled<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(flatten)]
    line: &'a T,
}

/// Appends what is said of a session: lines of JSON with its name if there may be several, or a text under its
/// name.
fn append<T: Serialize>(
    opened: &Opened,
    with: &Invocation,
    lines: &[T],
    text: impl FnOnce() -> String,
    is_first: bool,
    out: &mut String,
) -> Result<()> {
    if !with.is_json() {
        opened.title(with.paint(), is_first, out);
        out.push_str(&text());
        return Ok(());
    }
    let session = opened.label();
    for line in lines {
        let line = answer::json(&Labelled { session, line })?;
        out.extend([&*line, "\n"]);
    }
    Ok(())
}

/// What a command prints of one session after the other. On a terminal it is printed at the end, as the pager takes all
/// of it; elsewhere whenever there is [`MUCH`], so that more sessions take no more memory.
pub(super) struct Printed<'w> {
    with: &'w Invocation,
    waiting: String,
    is_first: bool,
}

/// In bytes.
const MUCH: usize = 1 << 20;

impl<'w> Printed<'w> {
    pub(super) fn new(with: &'w Invocation) -> Self {
        Self {
            with,
            waiting: String::new(),
            is_first: true,
        }
    }

    /// Adds what is said of a session: lines of JSON, or a text.
    pub(super) fn add<T: Serialize>(
        &mut self,
        opened: &Opened,
        lines: &[T],
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        let is_first = std::mem::take(&mut self.is_first);
        let out = &mut self.waiting;
        append(opened, self.with, lines, text, is_first, out)?;
        if out.len() >= MUCH && !io::stdout().is_terminal() {
            print(out)?;
            out.clear();
        }
        Ok(())
    }

    /// Prints what is waiting, and then `more`.
    pub(super) fn end(mut self, more: &str, pager: bool) -> Result<Exit> {
        self.waiting.push_str(more);
        self.with.show(&self.waiting, pager)
    }
}

/// Adds the reports of sessions. Calls `visit` with each; returns how many there are.
fn reports<R: Report + Send>(
    sessions: &SessionsArgs,
    options: &ReportOptions,
    printed: &mut Printed<'_>,
    mut visit: impl FnMut(&Opened, &R),
) -> Result<usize> {
    let with = printed.with;
    sessions.each_report_that_has(None, options, with, &mut |opened, report: R| {
        visit(opened, &report);
        let text = || report.text(options, with.paint());
        printed.add(opened, &[&report], text)
    })
}

fn report<R: Report + Send>(
    sessions: &SessionsArgs,
    options: &ReportOptions,
    with: &Invocation,
    pager: bool,
) -> Result<Exit> {
    let mut printed = Printed::new(with);
    reports::<R>(sessions, options, &mut printed, |_, _| ())?;
    printed.end("", pager)
}

/// How many tokens does each part of a request take, and what did it cost?
///
/// What is counted of a block is the text that is sent for it: of a call the name and the arguments, of a tool
/// its definition. Images are not counted, and their number is given. The provider's own count is beside it, if
/// the session has it. `--unused` and `--duplicates` list what was sent in vain.
#[derive(Args, Debug)]
#[command(args(rows(["region", "role", "kind", "turn", "tool", "key", "block", "name", "bytes", "blocks", "provider-in", "requests", "sent", "cached", "cost"])))]
pub(super) struct TokensArgs {
    #[command(flatten)]
    inspected: InspectedArgs,
    /// What the blocks are grouped by.
    #[arg(long, value_name = "GROUP", default_value = "region", value_parser = named(&By::ALL, By::as_str))]
    by: By,
    /// Which tools the model is given and never calls, and what it costs to send them: in all snapshots, unless
    /// --at or --over says which.
    #[arg(long, conflicts_with_all = ["by", "duplicates"])]
    unused: bool,
    /// Which texts one request sends more than once, and in which blocks.
    #[arg(long, conflicts_with = "by")]
    duplicates: bool,
    /// What all calls would have used and cost without the blocks that a selector matches in each snapshot.
    #[arg(long, value_name = "SELECTOR", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["by", "unused", "duplicates", "selector"])]
    without: Option<String>,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    #[command(flatten)]
    prices: PriceArgs,
}

impl RunCommand for TokensArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let default = self.unused.then(Part::all).unwrap_or_default();
        let (sessions, mut part) = self.inspected.split(None, default, with)?;
        if let Some(selector) = &self.without {
            part = part.only(selector);
        }
        let options = ReportOptions::new(part)
            .by(self.by)
            .tokenizer(self.tokenizer.tokenizer)
            .prices(self.prices.table()?);
        let sessions = &sessions;
        if self.unused {
            report::<UnusedReport>(sessions, &options, with, true)
        } else if self.duplicates {
            report::<DuplicateReport>(sessions, &options, with, true)
        } else if self.without.is_some() {
            report::<WithoutReport>(sessions, &options, with, true)
        } else {
            let mut all = Usage::new(UsageBy::Session, options.prices.clone());
            let mut printed = Printed::new(with);
            // Only the sum is printed, so all are one group.
            let count = reports(sessions, &options, &mut printed, |_, report| {
                TokenReport::add_to(report, &mut all, "");
            })?;
            let sum = if count < 2 {
                String::new()
            } else if with.is_json() {
                let (sessions, repeated) = (all.sessions, all.repeated);
                let mut sum =
                    json!({"sessions": sessions, "total": all.total, "repeated": repeated});
                if all.counted_here.requests > 0 {
                    sum["counted_here"] = json!(all.counted_here);
                }
                format!("{sum}\n")
            } else {
                format!("\n{}", all.sum())
            };
            printed.end(&sum, true)
        }
    }
}

/// What happened in each cycle: what was sent, what came back, what changed?
///
/// Lists the cycles of a session, oldest first. A line has the cycle, the time, how long the call took, the pause
/// before it, the tokens of the request, those that the provider counted (of them cached ones) and of the reply, the
/// blocks added, removed and changed, how much of the request before a prompt cache can reuse, and what happened.
/// Columns for which a terminal has no room are left out, except the one that --sort names. `--changes` only counts
/// what changed, the newest snapshot first.
#[derive(Args, Debug)]
#[command(args(rows(["cycle", "time", "duration", "gap", "tokens", "counted", "cached", "reply", "prefix"])))]
pub(super) struct StepsArgs {
    #[command(flatten)]
    inspected: InspectedArgs,
    /// Only how many nodes, or matches of --where, each snapshot added, removed and changed. In the oldest snapshot all
    /// of them count as added.
    #[arg(long, conflicts_with_all = ["at", "over", "provider", "tokenizer"])]
    changes: bool,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// Print the cycles, and then each that comes as the session grows, until interrupted. A cycle that grows after it was
    /// printed is printed again.
    #[arg(long, conflicts_with_all = ["changes", "at", "over", "since", "until", "meta", "number", "sort", "reverse"])]
    follow: bool,
    /// Print long text at once, without a pager.
    #[arg(long)]
    no_pager: bool,
}

impl RunCommand for StepsArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let (sessions, part) = self.inspected.split(None, Part::default(), with)?;
        if (self.changes || self.follow) && self.inspected.has_time()? {
            let option = if self.changes {
                "--changes"
            } else {
                "--follow"
            };
            return Err(Failure::usage(format!("`{option}` takes no snapshot"))
                .with_help("without it `steps` lists a range: @c3..@c7"));
        }
        let options = ReportOptions::new(part).tokenizer(self.tokenizer.tokenizer);
        let options = options.provider(self.form.provider);
        let sessions = &sessions;
        if self.follow {
            return follow_steps(&sessions.sessions, &options, with);
        }
        if self.changes {
            report::<LogReport>(sessions, &options, with, !self.no_pager)
        } else {
            report::<StepReport>(sessions, &options, with, !self.no_pager)
        }
    }
}

/// What was printed of the steps of a session that is followed.
#[derive(Default)]
struct PrintedSteps {
    /// The newest step: its cycle, and all of it but its label, which moves.
    last: Option<(i64, Step)>,
    titles: String,
}

fn follow_steps(words: &[String], options: &ReportOptions, with: &Invocation) -> Result<Exit> {
    let engine = Engine::new();
    let mut all: HashMap<String, PrintedSteps> = HashMap::new();
    let mut named = String::new();
    super::follow_sessions::follow(words, with, &mut |opened| {
        let report: StepReport = match opened.report(&engine, options) {
            Ok(report) => report,
            // Nothing is committed yet.
            Err(failure) if failure.is_no_snapshot() => return Ok(()),
            Err(failure) => return Err(failure),
        };
        note_reconstructed(report.is_reconstructed());
        let printed = all.entry(opened.name.clone()).or_default();
        let steps = &report.steps;
        let newest = steps.last().map(|step| step.cycle);
        // On another branch a log has other cycles, and all of them are new. The cycle in progress may end without a commit.
        let last = printed.last.take();
        let last = last.filter(|(cycle, step)| {
            let committed = cycle.saturating_sub(i64::from(step.label == WORKING));
            newest >= Some(committed)
        });
        let is_new = |step: &Step| match &last {
            None => true,
            Some((cycle, before)) => {
                step.cycle > *cycle || step.cycle == *cycle && unlabelled(step) != *before
            }
        };
        let from = steps.iter().position(is_new).unwrap_or(steps.len());
        printed.last = steps.last().map(|step| (step.cycle, unlabelled(step)));
        if from == steps.len() {
            return Ok(());
        }
        let mut out = String::new();
        if with.is_json() {
            append(opened, with, &steps[from..], String::new, true, &mut out)?;
        } else {
            if named != opened.name {
                opened.title(with.paint(), true, &mut out);
                named.clone_from(&opened.name);
            }
            // The widths are those of all steps, so that the lines of one look belong to those before.
            let text = report.text(options, with.paint());
            let lines: Vec<&str> = text.lines().collect();
            let rows = lines.len().saturating_sub(steps.len());
            let titles = lines.get(rows.saturating_sub(1)).copied();
            let titles = titles.unwrap_or_default();
            let above = if last.is_none() {
                0
            } else if titles == printed.titles {
                rows
            } else {
                rows.saturating_sub(1)
            };
            titles.clone_into(&mut printed.titles);
            for line in lines[above..rows].iter().chain(&lines[rows + from..]) {
                out.extend([line, "\n"]);
            }
        }
        print(&out).map(|_| ())
    })
}

const WORKING: &str = "working";

/// A step without its label, unless that says that nothing is committed.
fn unlabelled(step: &Step) -> Step {
    let mut step = step.clone();
    if step.label != WORKING {
        step.label.clear();
    }
    step
}

#[derive(Serialize)]
#[serde(transparent)]
struct LogReport(Log);

impl Report for LogReport {
    fn new(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let selector = options.part.selector.as_deref().unwrap_or("*");
        Ok(Self(engine.log(session, selector)?))
    }

    fn part(options: &ReportOptions) -> Part {
        options.part.clone().logged()
    }

    fn text(&self, _: &ReportOptions, paint: Paint) -> String {
        let entries = &self.0.snapshots;
        let size = |entry: &LogEntry| entry.added + entry.removed + entry.changed;
        let largest = entries.iter().map(size).max().unwrap_or(0);
        let titles = "snapshot cycle matches added removed changed ".split(' ');
        let mut table = TextTable::new(titles).words([1, 6]);
        for entry in entries {
            let counts = [
                (entry.added, "+"),
                (entry.removed, "-"),
                (entry.changed, "~"),
            ];
            let cells = [
                entry.label.clone(),
                format!("@c{}", entry.cycle),
                entry.matches.to_string(),
            ];
            let signed = counts.map(|(count, sign)| format!("{sign}{count}"));
            // At least one sign for each kind of change that occurs.
            let bar = counts.map(|(count, sign)| {
                sign.repeat((count * BAR.min(largest)).div_ceil(largest.max(1)))
            });
            let cells = cells.into_iter().chain(signed).map(TableCell::from);
            table.add(cells.chain([bar.concat().into()]));
        }
        table.text(paint)
    }
}

const BAR: usize = 24;

/// How much of each request can a prompt cache reuse, and what broke it?
///
/// Neighbouring requests are compared as the bytes that the provider is sent, in the order in which it
/// caches them: the model, tools, parameters that the model reads, the system prompt, messages. Where a
/// request is not the one before with more at its end, the first byte that differs is shown with its
/// block, the cause and what would keep the prefix.
#[derive(Args, Debug)]
pub(super) struct PrefixArgs {
    #[command(flatten)]
    inspected: InspectedArgs,
    #[command(flatten)]
    form: FormArgs,
    /// List every request, also those that break nothing.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    #[command(flatten)]
    prices: PriceArgs,
}

impl RunCommand for PrefixArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let (sessions, part) = self.inspected.split(None, Part::default(), with)?;
        let options = ReportOptions::new(part)
            .tokenizer(self.tokenizer.tokenizer)
            .provider(self.form.provider)
            .prices(self.prices.table()?)
            .full(self.all);
        report::<PrefixReport>(&sessions, &options, with, true)
    }
}

/// What did the model see? The request of a snapshot, block by block.
///
/// `+` marks blocks that are new since the snapshot before, `~` those that changed. Long texts are cut,
/// with their size; of tools only the names are listed. With a range each snapshot is shown. JSON has whole
/// texts.
#[derive(Args, Debug)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    inspected: InspectedArgs,
    /// Without the reply of the cycle: what was sent.
    #[arg(long)]
    before_reply: bool,
    /// Whole texts, and the definitions of tools.
    #[arg(long)]
    full: bool,
    /// The same as `--format markdown`.
    #[arg(long, conflicts_with = "format")]
    markdown: bool,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// Print long text at once, without a pager.
    #[arg(long)]
    no_pager: bool,
}

impl RunCommand for ShowArgs {
    fn formats(&self) -> &'static [PrintAs] {
        &[PrintAs::Text, PrintAs::Markdown, PrintAs::Json]
    }

    fn run(&self, with: &Invocation) -> Result<Exit> {
        let (sessions, part) = self.inspected.split(None, Part::default(), with)?;
        let options = ReportOptions::new(part).before_reply(self.before_reply);
        let options = options.full(self.full).tokenizer(self.tokenizer.tokenizer);
        let is_markdown = self.markdown || with.format == Some(PrintAs::Markdown);
        let mut printed = Printed::new(with);
        sessions.each_report_that_has(
            None,
            &options,
            with,
            &mut |opened, report: ShowReport| {
                let text = || {
                    if is_markdown {
                        report.to_markdown(&options)
                    } else {
                        report.text(&options, with.paint())
                    }
                };
                printed.add(opened, &report.snapshots, text)
            },
        )?;
        printed.end("", !self.no_pager)
    }
}

/// What did the calls use and cost, by the provider's own counts?
///
/// The tokens that the provider counted and their price, summed over all sessions: by day (in UTC) or month of the
/// reply, by model, project, session or agent. A response that several sessions have, as that of a resumed one, is
/// counted once.
#[derive(Args, Debug)]
#[command(mut_arg("sessions", |sessions| sessions.help(EVERY_LOG)))]
#[command(args(rows(["day", "month", "model", "project", "session", "agent", "requests", "tokens-in", "cached", "cache-writes", "tokens-out", "cost"])))]
pub(super) struct UsageCommand {
    #[command(flatten)]
    sessions: SessionsArgs,
    /// What is summed by.
    #[arg(long, value_name = "GROUP", default_value = "day")]
    #[arg(value_parser = named(&UsageBy::ALL, UsageBy::as_str))]
    by: UsageBy,
    #[command(flatten)]
    prices: PriceArgs,
}

impl RunCommand for UsageCommand {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let mut usage = Usage::new(self.by, self.prices.table()?);
        let mut add = |opened: &Opened| {
            let added = usage.add(&opened.name, &opened.session);
            added.map_err(|error| opened.failure(error))
        };
        // What was paid for is summed, whichever file it is in.
        let mut sessions = self.sessions.clone();
        sessions.whole = true;
        sessions.each_or_all(None, with, &mut add)?;
        with.print(&usage, || usage.text(with.paint()))
    }
}

/// How many blocks and tokens does a selector match, in groups, over any number of sessions?
///
/// The last argument is the selector, which takes no time: without one, `.cb`. Of a node that is not a block, the
/// blocks in it count. With --over, a block counts in each snapshot that has it, so the sums are what was sent in all
/// requests.
#[derive(Args, Debug)]
#[command(args(rows(["session", "region", "role", "kind", "turn", "tool", "key", "block", "bytes", "blocks"])))]
pub(super) struct TopArgs {
    #[command(flatten)]
    sessions: SessionsArgs,
    /// What the blocks are grouped by.
    #[arg(long, value_name = "GROUP", default_value = "role")]
    #[arg(value_parser = ["session", "region", "role", "kind", "turn", "tool", "key", "block"])]
    by: String,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
}

impl RunCommand for TopArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let (given, part) = self.time.split(&self.sessions.sessions, Part::default())?;
        let all = [".cb".to_owned()];
        let (names, selectors) = match &given[..] {
            names if names.iter().all(|word| is_file(word)) => (names, &all[..]),
            given => split_operands("top", given, &[])?,
        };
        let selector = &*selectors.concat();
        let engine = Engine::new();
        // An invalid selector is reported before anything is read.
        if let Err(error) = engine.prepare_timeless(selector) {
            let is_timed = self.time.is_given() || given.len() < self.sessions.sessions.len();
            return Err(match selector.split_once(' ').filter(|_| !is_timed) {
                Some((at, rest)) if time(at).is_some() && engine.prepare_timeless(rest).is_ok() => {
                    let words = [at, rest.trim()].map(str::to_owned);
                    error.with_help(retyped(&[selector.to_owned()], words.into()))
                }
                _ => error,
            }
            .into());
        }
        let part = part.only(selector);
        let names = or_newest(names, with.limits)?;
        let stored = self.of_statement(&engine, &names, &part)?;
        let (top, empty) = match stored {
            Some(found) => found,
            None => self.of_sessions(&engine, &names, &part, with)?,
        };
        empty.say(with);
        with.print(&top, || top.text(with.paint()))
    }
}

impl TopArgs {
    /// Of all sessions of a store, the sums of what one statement of its database gives; `None` where sessions have to be
    /// loaded.
    fn of_statement(
        &self,
        engine: &Engine,
        names: &[String],
        part: &Part,
    ) -> Result<Option<(Top, EmptyAnswers)>> {
        let Some(address) = self.sessions.whole_store(names) else {
            return Ok(None);
        };
        let store = open_store(address.store, Access::Read)?;
        let tokenizer = match self.tokenizer.tokenizer {
            Some(given) => given,
            None => match first_stored(&store, address, 1)?.pop() {
                Some(first) => Top::fitting(engine, &first.session, part),
                None => return Ok(None),
            },
        };
        let mut top = Top::new(By::parse(&self.by), tokenizer);
        let name = |name: &str| stored_name(address, name);
        let route = top.add_stored(&store, address.glob(), name, part)?;
        if route != StoreRoute::Statement || top.sessions == 0 {
            return Ok(None);
        }
        let mut empty = EmptyAnswers::default();
        if top.groups().is_empty() {
            let sessions = usize::try_from(top.sessions).unwrap_or(usize::MAX);
            let most = if sessions <= MOST_ASKED { sessions } else { 1 };
            for opened in first_stored(&store, address, most)? {
                empty.add(&opened, opened.nothing(engine, part));
            }
            empty.sessions = sessions;
        }
        Ok(Some((top, empty)))
    }

    fn of_sessions(
        &self,
        engine: &Engine,
        names: &[String],
        part: &Part,
        with: &Invocation,
    ) -> Result<(Top, EmptyAnswers)> {
        // By session, if it is not a group of blocks.
        let by = By::parse(&self.by);
        let tokenizer = OnceLock::new();
        if let Some(given) = self.tokenizer.tokenizer {
            let _ = tokenizer.set(given);
        }
        // Each thread takes one that is free. `None` before the tokenizer is known, which the first session decides.
        let tops: Mutex<Vec<Top>> = Mutex::default();
        let free = || lock(&tops);
        let add = |opened: &Opened| {
            let tokenizer = *tokenizer.get()?;
            let top = free().pop();
            let mut top = top.unwrap_or_else(|| Top::new(by, tokenizer));
            let name = match by {
                None => &*opened.name,
                Some(_) => opened.label().unwrap_or_default(),
            };
            let added = top.add(engine, name, &opened.session, part);
            free().push(top);
            let added = added.map_err(|error| opened.failure(error));
            Some(added.map(|()| opened.nothing(engine, part)))
        };
        let mut empty = EmptyAnswers::default();
        let mut without = WithoutSnapshot::default();
        let visit = &mut |opened: &Opened, added: Option<Result<Option<EmptyAnswer>>>| {
            let fitting = || Top::fitting(engine, &opened.session, part);
            tokenizer.get_or_init(fitting);
            let added = added.or_else(|| add(opened)).transpose();
            let added = without.pass(opened, added)?;
            empty.add(opened, added.flatten().flatten());
            Ok(())
        };
        let count = self.sessions.each_read(names, None, with, &add, visit)?;
        without.left_of(count)?;
        let mut top = Top::new(by, tokenizer.get().copied().unwrap_or_default());
        free().iter().for_each(|other| top.include(other));
        Ok((top, empty))
    }
}

/// Do sessions meet conditions? For continuous integration.
///
/// A file has a condition a line: `none SELECTOR`, `some SELECTOR`, `count SELECTOR <= 3`, `order SELECTOR then
/// SELECTOR`, `prefix >= 90%` (of each request, that a prompt cache can reuse), `tokens <= 100000` (of each request),
/// `growth <= 2000/step`, `cost <= 0.50` (dollars, of all calls), `unused = 0` (tools that are defined and never
/// called). A selector without a time reads the last state; `@*` reads all snapshots, and not what came after the newest.
/// Each sign may be any of <= >= < > = !=.
/// Empty lines, and lines that begin with `#`, are left out. The exit code is 9 if one does not hold, or there is no
/// session.
#[derive(Args, Debug)]
pub(super) struct AssertArgs {
    /// The file of conditions, or `-` for standard input.
    file: String,
    #[command(flatten)]
    sessions: SessionsArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    #[command(flatten)]
    prices: PriceArgs,
}

impl RunCommand for AssertArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let bytes = input::read(&self.file, with.limits)?;
        let text = String::from_utf8_lossy(&bytes);
        // Some editors begin a file with the mark of UTF-8.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let file = input::name(&self.file);
        let in_file = |error: Error| error.in_file(&file.to_string_lossy());
        let conditions = Condition::parse_file(text).map_err(in_file)?;
        let options = ReportOptions::default()
            .conditions(conditions)
            .tokenizer(self.tokenizer.tokenizer)
            .prices(self.prices.table()?);
        let mut holds = true;
        let mut printed = Printed::new(with);
        // A condition is one of every session: none is left out.
        let count = self
            .sessions
            .each_report(None, &options, with, &mut |opened, report| {
                let report: AssertReport = report.map_err(|failure| match failure {
                    Failure::Selector(error, session) => {
                        let error = in_file(in_conditions(text, &options.conditions, *error));
                        Failure::Selector(Box::new(error), session)
                    }
                    other => other,
                })?;
                holds &= report.holds;
                let text = || report.text(&options, with.paint());
                printed.add(opened, &[&report], text)
            })?;
        printed.end("", false)?;
        Ok(if holds && count > 0 {
            Exit::Ok
        } else {
            Exit::Unmet
        })
    }
}

const WITHOUT_LETTERS: &str = "note: the text index was not used: it needs three characters in a row that \
     every match has\n";
const WITH_TIME: &str =
    "note: the text index was not used: it is for searches without --at and --over\n";

/// Which blocks have a line that matches a regular expression, and when?
///
/// What is searched is what the model is sent: texts, names and arguments of calls, results, definitions of
/// tools. All snapshots are searched, unless --at or --over says which. Each block is printed once, with
/// the first and the last snapshot that has it with this text. Every text of every chosen session is read;
/// of a store only those of sessions that may have a match, which its text index finds (`pactql store index`), or else the
/// database by their words. The exit code is 0 also if nothing is found, or 8 with --fail-if-empty.
#[derive(Args, Debug)]
pub(super) struct GrepArgs {
    /// The regular expression, in the dialect of `~` in selectors.
    #[arg(required_unless_present = "patterns")]
    pattern: Option<String>,
    #[command(flatten)]
    inspected: InspectedArgs,
    /// Take capital and small letters as the same.
    #[arg(short, long)]
    ignore_case: bool,
    /// A pattern; may be given several times. All arguments are sessions then.
    #[arg(short = 'e', long = "regexp", value_name = "PATTERN")]
    #[arg(allow_hyphen_values = true)]
    patterns: Vec<String>,
    /// A pattern is a text, not a regular expression.
    #[arg(short = 'F', long)]
    fixed_strings: bool,
    /// A match is a whole word.
    #[arg(short, long)]
    word_regexp: bool,
    /// Show the lines without a match.
    #[arg(short = 'v', long)]
    invert_match: bool,
    /// Lines to show before and after each line that matches.
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0)]
    context: usize,
    /// Lines to show before each line that matches.
    #[arg(short = 'B', long, value_name = "N")]
    before_context: Option<usize>,
    /// Lines to show after each line that matches.
    #[arg(short = 'A', long, value_name = "N")]
    after_context: Option<usize>,
    /// As without it: lines always have their numbers.
    #[arg(short = 'n', long, hide = true)]
    line_number: bool,
    /// Print only the names of the sessions in which something is found.
    #[arg(short, long, conflicts_with = "count")]
    list: bool,
    /// Print only how many lines match in each session; sessions without a match are left out.
    #[arg(short, long)]
    count: bool,
    /// Exit with code 8 if nothing is found.
    #[arg(long)]
    fail_if_empty: bool,
}

impl GrepArgs {
    /// The first argument, where it is a session.
    fn first(&self) -> Option<&String> {
        self.pattern.as_ref().filter(|_| !self.patterns.is_empty())
    }

    /// One regular expression for what is searched for.
    fn pattern(&self) -> Result<String> {
        let first = self.pattern.iter().filter(|_| self.patterns.is_empty());
        let all: Vec<&String> = first.chain(&self.patterns).collect();
        let others = &self.inspected.sessions.sessions;
        if let [file] = all[..]
            && exists(file)
            && !others.is_empty()
            && !others.iter().any(|word| is_file(word))
        {
            let file = std::slice::from_ref(file);
            let (typed, words) = ([file, others].concat(), [others, file].concat());
            return Err(Failure::usage("the pattern comes first, then the session")
                .with_help(retyped(&typed, words)));
        }
        let one = |pattern: &&String| {
            if self.fixed_strings {
                regex_syntax::escape(pattern)
            } else {
                (*pattern).clone()
            }
        };
        let all: Vec<String> = all.iter().map(one).collect();
        let any = match &all[..] {
            [one] => one.clone(),
            all => format!("(?:{})", all.join(")|(?:")),
        };
        Ok(if self.word_regexp {
            format!(r"\b(?:{any})\b")
        } else {
            any
        })
    }
}

impl RunCommand for GrepArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        // An invalid pattern is reported before anything is read.
        let before = self.before_context.unwrap_or(self.context);
        let after = self.after_context.unwrap_or(self.context);
        let search = Search::new(&self.pattern()?, self.ignore_case)?;
        let search = search.around(before, after).inverted(self.invert_match);
        let engine = Engine::new();
        let (sessions, part) = self.inspected.split(self.first(), Part::all(), with)?;
        let is_all = part.is_all(&engine)?;
        let options = ReportOptions::new(part).search(search.clone());
        let mut found_any = false;
        let to_open = |store: &Store, glob: &str| {
            let found = is_all.then(|| search.sessions(store, glob)).transpose()?;
            let found = found.flatten();
            if found.is_none() && store.text_index()?.is_some() {
                say(if is_all { WITHOUT_LETTERS } else { WITH_TIME });
            }
            Ok(found)
        };
        let sessions = sessions.each_report_that_has(
            Some(&to_open),
            &options,
            with,
            &mut |opened, found| {
                let found: GrepReport = found;
                if found.blocks.is_empty() {
                    return Ok(());
                }
                let is_text = !with.is_json() && !self.list && !self.count;
                if found_any && is_text && opened.several {
                    print("\n")?;
                }
                found_any = true;
                let name = &opened.name;
                print(&match (with.is_json(), self.list, self.count) {
                    (true, true, _) => answer::json(name)? + "\n",
                    (true, _, true) => {
                        format!("{}\n", json!({"session": name, "lines": found.lines}))
                    }
                    (false, true, _) => printable(name) + "\n",
                    (false, _, true) => {
                        let name = opened.label().map(|name| format!("{}: ", printable(name)));
                        format!("{}{}\n", name.unwrap_or_default(), amount(found.lines))
                    }
                    _ => {
                        let mut out = String::new();
                        let text = || found.text(&options, with.paint());
                        append(opened, with, &[&found], text, true, &mut out)?;
                        out
                    }
                })
                .map(|_| ())
            },
        )?;
        if !found_any {
            let sessions = counted(sessions as u64, "session");
            say(&format!("note: nothing was found in {sessions}\n"));
        }
        Ok(Exit::of_empty(self.fail_if_empty && !found_any))
    }
}
