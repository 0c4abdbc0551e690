//! The commands that print reports: `show`, `steps`, `tokens`, `prefix`, `unused`, `duplicates`, `top`, `grep`,
//! `assert`.
//!
//! Each command has its options and its help here. What a report says is made and written by
//! `crate::inspect`.

use super::command::{Run, print, say};
use super::input;
use super::inspected::{Inspected, Opened, PriceArgs, SessionsArgs, TimeArgs};
use super::operands;
use super::options::{Color, TextFirst, Tint};
use super::output;
use super::pager::page;
use super::render::Shape;
use crate::app::present::{Exit, Failure, answer, counted, printable};
use crate::engine::Engine;
use crate::inspect::{
    AssertReport, By, Condition, DuplicateReport, GrepReport, Part, PrefixReport, Report,
    ReportOptions, Search, ShowReport, StepReport, TokenReport, Tokenizer, Top, UnusedReport,
};
use crate::store::Store;
use crate::support::text::amount;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;
use std::fmt::Write as _;

/// How the tokens of a report are counted, and how it is printed.
#[derive(Args, Debug)]
struct ReportArgs {
    /// How tokens are counted: o200k, cl100k or bytes/4 [default: the one that fits the model].
    #[arg(long, value_name = "NAME", value_parser = tokenizer)]
    tokenizer: Option<Tokenizer>,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
}

/// The form of requests.
#[derive(Args, Debug)]
struct FormArgs {
    /// The form of the requests [default: that in which they were imported or sent].
    #[arg(long = "as", value_enum, value_name = "SHAPE")]
    shape: Option<Shape>,
}

/// Reads the name of a tokenizer.
pub(super) fn tokenizer(name: &str) -> Result<Tokenizer, String> {
    name.parse().map_err(|_| {
        let names: Vec<&str> = Tokenizer::ALL.iter().map(|known| known.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Reads the name of a group.
fn by(name: &str) -> Result<By, String> {
    name.parse().map_err(|_| {
        let names = By::ALL.map(By::name).join(", ");
        format!("expected one of {names}")
    })
}

/// A line of a report with the session it is about.
#[derive(Serialize)]
struct Labelled<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(flatten)]
    line: &'a T,
}

/// Appends a report: lines of JSON with the session if there may be several, or what `text` makes of it under
/// the name of the session.
fn append<R: Report>(
    opened: &Opened,
    report: &R,
    text: Option<&dyn Fn(&R) -> String>,
    color: Color,
    out: &mut String,
) -> Result<(), Failure> {
    let session = opened.label();
    match text {
        Some(text) => {
            opened.title(color.for_results(), out);
            out.push_str(&text(report));
        }
        None => {
            for line in report.lines() {
                let line = answer::json(&Labelled { session, line })?;
                out.extend([&*line, "\n"]);
            }
        }
    }
    Ok(())
}

impl ReportArgs {
    fn is_json(&self) -> bool {
        self.format == TextFirst::Json
    }

    /// The report of each session. Calls `visit` with each, and returns the text and how many sessions there were.
    fn of_each<R: Report>(
        &self,
        sessions: &SessionsArgs,
        options: ReportOptions,
        color: Color,
        mut visit: impl FnMut(&R),
    ) -> Result<(String, usize), Failure> {
        let options = options.tokenizer(self.tokenizer);
        let engine = Engine::new();
        let text = |report: &R| report.text(&options, color.for_results());
        let text: &dyn Fn(&R) -> String = &text;
        let mut out = String::new();
        let count = sessions.each(|opened| {
            let report = opened.report(&engine, &options)?;
            visit(&report);
            append(
                opened,
                &report,
                (!self.is_json()).then_some(text),
                color,
                &mut out,
            )
        })?;
        Ok((out, count))
    }

    /// Prints the report of each session.
    fn print<R: Report>(
        &self,
        sessions: &SessionsArgs,
        options: ReportOptions,
        color: Color,
    ) -> Result<Exit, Failure> {
        print(&self.of_each::<R>(sessions, options, color, |_| ())?.0)
    }
}

/// How many tokens does each part of a request take, and what did it cost?
///
/// What is counted of a block is the text that rendering sends for it: of a call the name and the
/// arguments, of a tool its definition. What a provider's form adds around it is not guessed. Images are
/// not counted, and their number is given. The provider's own count is beside it, if the session has it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql tokens session.jsonl
  pactql tokens session.jsonl --at @t-3 --by kind
  pactql tokens session.jsonl --over @history --by role
  pactql tokens session.jsonl --by tool --where \".cb[kind='result']\"
  pactql tokens \"agents.db#support-*\" --since 2026-01-01 --meta model=gpt-4o --format json")]
pub(super) struct TokensCommand {
    #[command(flatten)]
    inspected: Inspected,
    /// What the blocks are grouped by: region, role, kind, turn, tool or key.
    #[arg(long, value_name = "GROUP", default_value = "region", value_parser = by)]
    by: By,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    prices: PriceArgs,
}

impl Run for TokensCommand {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let options = ReportOptions::new(self.inspected.part());
        let options = options.by(self.by).prices(self.prices.table()?);
        let sessions = &self.inspected.sessions;
        self.report.print::<TokenReport>(sessions, options, color)
    }
}

/// Which tools is the model given and never calls, and what does it cost to send them?
///
/// All snapshots are read, unless --at or --over says which. A tool counts as called if a
/// block of these snapshots calls it. The cost is that of its tokens in all requests: without a cache, and
/// where all but the first request read them from one.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql unused session.jsonl
  pactql unused session.jsonl --over @t-9..@t0 --tokenizer bytes/4
  pactql unused agents.db --meta model=gpt-4o --format json")]
pub(super) struct UnusedCommand {
    #[command(flatten)]
    inspected: Inspected,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    prices: PriceArgs,
}

impl Run for UnusedCommand {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let options = ReportOptions::new(self.inspected.part_or_all());
        let options = options.prices(self.prices.table()?);
        let sessions = &self.inspected.sessions;
        self.report.print::<UnusedReport>(sessions, options, color)
    }
}

/// Which texts does one request send more than once, and in which blocks?
///
/// Equal texts of blocks count, equal arguments of calls, and equal definitions of tools. With --over there
/// is one line a snapshot.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql duplicates session.jsonl
  pactql duplicates session.jsonl --at @t-3 --where \".cb[kind='result']\"
  pactql duplicates session.jsonl --over @history
  pactql duplicates \"agents.db#support-*\" --format json")]
pub(super) struct DuplicatesCommand {
    #[command(flatten)]
    inspected: Inspected,
    #[command(flatten)]
    report: ReportArgs,
}

impl Run for DuplicatesCommand {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let options = ReportOptions::new(self.inspected.part());
        let sessions = &self.inspected.sessions;
        self.report
            .print::<DuplicateReport>(sessions, options, color)
    }
}

/// What happened in each cycle: what was sent, what came back, what changed?
///
/// Lists the cycles of a session, oldest first. A line has the cycle, the time, the tokens of the request, those
/// that the provider counted (of them cached ones) and of the reply, the blocks added, removed and changed, how
/// much of the request before a prompt cache can reuse, and what happened. `log` counts changes only.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql steps session.jsonl
  pactql steps session.jsonl --over @t-9..@t0
  pactql steps session.jsonl --where \".cb[kind='result']\"
  pactql steps agents.db#support-42 --format json")]
pub(super) struct StepsCommand {
    #[command(flatten)]
    inspected: Inspected,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    report: ReportArgs,
    /// Print long text on a terminal at once.
    #[arg(long)]
    no_pager: bool,
}

impl Run for StepsCommand {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let options = ReportOptions::new(self.inspected.part());
        let options = options.provider(self.form.shape.map(Shape::provider));
        let sessions = &self.inspected.sessions;
        let (out, _) = self
            .report
            .of_each(sessions, options, color, |_: &StepReport| ())?;
        page(&out, !self.report.is_json() && !self.no_pager)
    }
}

/// How much of each request can a prompt cache reuse, and what broke it?
///
/// Neighbouring requests are compared as the bytes that the provider is sent, in the order in which it
/// caches them: the model, tools, parameters that the model reads, the system prompt, messages. Where a
/// request is not the one before with more at its end, the first byte that differs is shown with its
/// block, the cause and what would keep the prefix.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql prefix session.jsonl
  pactql prefix session.jsonl --all
  pactql prefix session.jsonl --over @t-9..@t0 --as anthropic
  pactql prefix \"agents.db#support-*\" --since 2026-01-01
  pactql prefix session.jsonl --where \"^sys .cb\" --format json")]
pub(super) struct PrefixCommand {
    #[command(flatten)]
    inspected: Inspected,
    #[command(flatten)]
    form: FormArgs,
    /// List every request, also those that break nothing.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    prices: PriceArgs,
}

impl Run for PrefixCommand {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let options = ReportOptions::new(self.inspected.part())
            .provider(self.form.shape.map(Shape::provider))
            .prices(self.prices.table()?)
            .full(self.all);
        let sessions = &self.inspected.sessions;
        self.report.print::<PrefixReport>(sessions, options, color)
    }
}

/// What did the model see? The request of a snapshot, block by block.
///
/// `+` marks blocks that are new since the snapshot before, `~` those that changed. Long texts are cut,
/// with their size; of tools only the names are listed. With a range each snapshot is shown.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql show session.jsonl
  pactql show session.jsonl --at @c3 --before-reply
  pactql show session.jsonl --where \".cb[kind='result']\" --full
  pactql show agents.db#support-42 --at @t-1 --format markdown > step.md
  pactql show session.jsonl --over @t-2..@t0 --format json")]
pub(super) struct ShowCommand {
    #[command(flatten)]
    inspected: Inspected,
    /// Without the reply of the cycle: what was sent.
    #[arg(long)]
    before_reply: bool,
    /// Whole texts, and the definitions of tools.
    #[arg(long)]
    full: bool,
    /// The same as `--format markdown`.
    #[arg(long, conflicts_with = "format")]
    markdown: bool,
    /// How tokens are counted: o200k, cl100k or bytes/4 [default: the one that fits the model].
    #[arg(long, value_name = "NAME", value_parser = tokenizer)]
    tokenizer: Option<Tokenizer>,
    /// Text, Markdown or JSON. JSON has whole texts.
    #[arg(long, value_enum, default_value_t)]
    format: ShowFormat,
    /// Print long text on a terminal at once.
    #[arg(long)]
    no_pager: bool,
}

/// How a snapshot is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ShowFormat {
    /// Text.
    #[default]
    Text,
    /// Markdown.
    Markdown,
    /// JSON, for errors on standard error too.
    Json,
}

impl Run for ShowCommand {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let engine = Engine::new();
        let options = ReportOptions::new(self.inspected.part())
            .before_reply(self.before_reply)
            .full(self.full)
            .tokenizer(self.tokenizer);
        let format = if self.markdown {
            ShowFormat::Markdown
        } else {
            self.format
        };
        let text = |report: &ShowReport| report.text(&options, color.for_results());
        let markdown = |report: &ShowReport| report.to_markdown(&options);
        let text: Option<&dyn Fn(&ShowReport) -> String> = match format {
            ShowFormat::Text => Some(&text),
            ShowFormat::Markdown => Some(&markdown),
            ShowFormat::Json => None,
        };
        let mut out = String::new();
        self.inspected.sessions.each(|opened| {
            let report: ShowReport = opened.report(&engine, &options)?;
            if report.snapshots.iter().all(|shown| shown.blocks.is_empty()) {
                let place = match &report.snapshots[..] {
                    [only] => only.label.clone(),
                    several => counted(several.len() as u64, "snapshot"),
                };
                say(&format!(
                    "note: no block of {place} matches; `--over @history` looks in all snapshots\n"
                ));
            }
            append(opened, &report, text, color, &mut out)
        })?;
        page(&out, format == ShowFormat::Text && !self.no_pager)
    }
}

/// How many blocks and tokens does a selector match, in groups, over any number of sessions?
///
/// The last argument is the selector, which takes no time. A node that is not a block means the blocks in it. With --over, a block counts in each snapshot that
/// has it, so the sums are what was sent in all requests.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql top session.jsonl \".cb[kind='result']\" --by tool
  pactql top session.jsonl \"^seq .mt:depth(1-5)\" --by turn
  pactql top session.jsonl \".cb\" --over @history --by role
  pactql top agents.db \".cb[kind='call']\" --by session --since 2026-01-01")]
pub(super) struct TopCommand {
    #[command(flatten)]
    sessions: SessionsArgs,
    /// What the blocks are grouped by: session, or region, role, kind, turn, tool or key.
    #[arg(long, value_name = "GROUP", default_value = "role", value_parser = by_or_session)]
    by: GroupedBy,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// What blocks are grouped by; by session, if `None`.
#[derive(Clone, Copy, Debug)]
struct GroupedBy(Option<By>);

fn by_or_session(name: &str) -> Result<GroupedBy, String> {
    if name == "session" {
        return Ok(GroupedBy(None));
    }
    let found = by(name).map(|by| GroupedBy(Some(by)));
    found.map_err(|expected| expected.replace("one of ", "one of session, "))
}

impl Run for TopCommand {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let (names, selector) = operands::split_last("top", self.sessions.words())?;
        let engine = Engine::new();
        // An invalid selector is reported before anything is read.
        engine.prepare_timeless(selector)?;
        let part = self.time.part(Part::default()).only(selector);
        let by = self.by.0;
        let mut top: Option<Top> = None;
        self.sessions.each_of(names, None, |opened| {
            let top = top.get_or_insert_with(|| {
                let fitting = || Top::fitting(&engine, &opened.session, &part);
                Top::new(by, self.report.tokenizer.unwrap_or_else(fitting))
            });
            let added = top.add(&engine, &opened.name, &opened.session, &part);
            added.map_err(|error| opened.failure(error))
        })?;
        let top = top.unwrap_or_else(|| Top::new(by, self.report.tokenizer.unwrap_or_default()));
        output::print_as(self.report.is_json(), &top, || {
            top.text(color.for_results())
        })
    }
}

/// Do sessions meet conditions? For continuous integration.
///
/// A file has a condition a line: `none SELECTOR`, `some SELECTOR`, `prefix >= 90%` (of each request, that
/// a prompt cache can reuse), `tokens <= 100000` (of each request), `growth <= 2000/step`, `unused = 0`
/// (tools that are defined and never called). Empty lines, and lines that begin with `#`, are left out.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql assert limits.txt session.jsonl
  pactql assert limits.txt agents.db --since 2026-01-01
  echo 'none @t0 .cb[data_is_error=true]' | pactql assert - session.jsonl --format json

Exit codes: 0 all hold, 9 one does not, or there is no session.")]
pub(super) struct AssertCommand {
    /// The file of conditions, or `-` for standard input.
    file: String,
    #[command(flatten)]
    sessions: SessionsArgs,
    #[command(flatten)]
    report: ReportArgs,
}

impl Run for AssertCommand {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let bytes = input::read(&self.file, self.sessions.limits())?;
        let conditions = Condition::parse_file(&String::from_utf8_lossy(&bytes))?;
        let options = ReportOptions::default().conditions(conditions);
        let mut holds = true;
        let visit = |report: &AssertReport| holds &= report.holds;
        let (out, count) = self.report.of_each(&self.sessions, options, color, visit)?;
        print(&out)?;
        Ok(if holds && count > 0 {
            Exit::Ok
        } else {
            Exit::Unmet
        })
    }
}

/// Why a text index was not used.
const WITHOUT_LETTERS: &str = "note: the text index was not used: it needs three characters in a row that \
     every match has\n";
const WITH_TIME: &str =
    "note: the text index was not used: it is for searches without --at and --over\n";

/// Which blocks have a line that matches a regular expression, and when?
///
/// What is searched is what the model is sent: texts, names and arguments of calls, results, definitions of
/// tools. All snapshots are searched, unless --at or --over says which. Each block is printed once, with
/// the first and the last snapshot that has it with this text. Every text of every chosen session is read,
/// unless they are in a store with a text index (`pactql index-text`): then only sessions that may have
/// a match.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql grep refund session.jsonl
  pactql grep -i \"error|fail\" session.jsonl --where \".cb[kind='result']\" -C 2
  pactql grep -l \"rm -rf\" agents.db --since 2026-01-01
  pactql grep -c TODO runs/*.jsonl

Exit codes: 0 ok, also if nothing is found, 2 invalid pattern, 8 nothing found with --fail-if-empty.")]
pub(super) struct GrepCommand {
    /// The regular expression, in the dialect of `~` in selectors.
    #[arg(allow_hyphen_values = true)]
    pattern: String,
    #[command(flatten)]
    inspected: Inspected,
    /// Take capital and small letters as the same.
    #[arg(short, long)]
    ignore_case: bool,
    /// Lines to show before and after each line that matches.
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0)]
    context: usize,
    /// Print only the names of the sessions in which something is found.
    #[arg(short, long, conflicts_with = "count")]
    list: bool,
    /// Print only how many lines match in each session, those with none left out.
    #[arg(short, long)]
    count: bool,
    /// Exit with code 8 if nothing is found.
    #[arg(long)]
    fail_if_empty: bool,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
}

impl Run for GrepCommand {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        // An invalid pattern is reported before anything is read.
        let search = Search::new(&self.pattern, self.ignore_case)?.context(self.context);
        let engine = Engine::new();
        let part = self.inspected.part_or_all();
        let is_all = part.is_all(&engine)?;
        let options = ReportOptions::new(part).search(search.clone());
        let mut found_any = false;
        let among = |store: &Store, glob: &str| {
            let found = if is_all {
                search.sessions(store, glob)?
            } else {
                None
            };
            if found.is_none() && store.text_index()?.is_some() {
                say(if is_all { WITHOUT_LETTERS } else { WITH_TIME });
            }
            Ok(found)
        };
        let sessions = &self.inspected.sessions;
        let sessions = sessions.each_of(sessions.words(), Some(&among), |opened| {
            let found: GrepReport = opened.report(&engine, &options)?;
            if found.blocks.is_empty() {
                return Ok(());
            }
            let mut out = String::new();
            if found_any
                && !self.list
                && !self.count
                && opened.several
                && self.format != TextFirst::Json
            {
                out.push('\n');
            }
            found_any = true;
            self.append(opened, &found, &options, color, &mut out)?;
            print(&out).map(|_| ())
        })?;
        if !found_any {
            let sessions = counted(sessions as u64, "session");
            say(&format!("note: nothing was found in {sessions}\n"));
        }
        Ok(Exit::of_empty(self.fail_if_empty && !found_any))
    }
}

impl GrepCommand {
    fn append(
        &self,
        opened: &Opened,
        found: &GrepReport,
        options: &ReportOptions,
        color: Color,
        out: &mut String,
    ) -> Result<(), Failure> {
        let name = &opened.name;
        let _ = match (self.format == TextFirst::Json, self.list, self.count) {
            (true, true, _) => writeln!(out, "{}", answer::json(name)?),
            (true, _, true) => {
                let count = json!({"session": name, "lines": found.lines});
                writeln!(out, "{}", answer::json(&count)?)
            }
            (true, ..) => return append(opened, found, None, color, out),
            (false, true, _) => writeln!(out, "{}", printable(name)),
            (false, _, true) => {
                let name = opened.label().map(|name| format!("{}: ", printable(name)));
                let (name, lines) = (name.unwrap_or_default(), amount(found.lines));
                writeln!(out, "{name}{lines}")
            }
            (false, ..) => {
                let paint = color.for_results();
                if let Some(name) = opened.label() {
                    out.extend([&*paint.tint(Tint::Name, &printable(name)), "\n"]);
                }
                write!(out, "{}", found.text(options, paint))
            }
        };
        Ok(())
    }
}
