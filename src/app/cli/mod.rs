//! The command line: one file for each command.
//!
//! Results go to standard output and everything else to standard error; a command that fails
//! leaves standard output empty. [`Exit`] lists the exit codes. Arguments have two phases: as clap
//! parsed them, then resolved (engine, options, opened sessions) when the command runs. No
//! other module may use this one.

mod answers;
mod attempts;
mod bench;
mod blame;
mod check;
mod command;
mod context;
mod crash;
mod diff;
mod ending;
mod explain;
mod export;
mod fit;
mod fmt;
mod habits;
mod import;
mod import_follow;
mod import_large;
mod import_read;
mod import_store;
mod import_target;
mod input;
mod inspected;
mod interrupt;
mod log;
mod man;
mod mutations;
mod operands;
mod options;
mod output;
mod pager;
mod parquet;
mod preview;
mod progress;
mod refs;
mod render;
mod reports;
mod select;
mod select_sql;
mod serve;
mod sessions;
mod share;
mod sql;
mod stats;
mod store_words;
mod stores;
mod typed;
mod usage;
mod verify;
mod wait;
mod word_diff;
mod words;
mod write;

pub use crate::app::present::Exit;

use crate::app::present::Failure;
use clap::error::ErrorKind;
use clap::{ArgMatches, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use command::{Run, print, say};
use options::Color;
use std::ffi::OsString;
use typed::words;

/// Query and write LLM context trees with selectors.
#[derive(Parser, Debug)]
#[command(
    name = "pactql",
    version,
    propagate_version = true,
    max_term_width = 100
)]
#[command(after_help = "\
Examples:
  pactql import chat.json -o session.jsonl
  pactql select session.jsonl \"@t0 ^seq .mt:depth(1) .cb[role='assistant']\"
  pactql explain session.jsonl \"@t0 .cb[kind='call']\" --analyze
  pactql diff session.jsonl @t-1 @t0
  pactql log session.jsonl \".cb[kind='result']\"
  pactql tokens session.jsonl --by kind
  pactql bench session.jsonl -e \"@t0 .cb\"
  pactql add session.jsonl ^ah 'block:text { role=user } \"Where is my refund?\"'
  pactql commit session.jsonl
  pactql import chats/*.json -o agents.db
  pactql select agents.db \"@t0 .cb[kind='call']\"

Exit codes: 0 ok, 1 usage, 2 invalid selector or refused change, 3 invalid option value, 4 input missing,
5 input invalid, 6 input or output failed, 7 internal error, 8 nothing found (--fail-if-empty), 9 a condition\ndoes not hold (assert), 124 --timeout is over, 130 interrupted.")]
struct Cli {
    /// When to colour the output.
    #[arg(long, value_enum, default_value_t, global = true, value_name = "WHEN")]
    color: Color,
    /// End after this time, with exit code 124: `500ms`, `30s`, `5m`.
    #[arg(long, global = true, value_name = "TIME", value_parser = interrupt::time)]
    timeout: Option<std::time::Duration>,
    #[command(subcommand)]
    command: Command,
}

/// The commands, each with its arguments.
macro_rules! commands {
    ($($name:ident($arguments:ty),)*) => {
        #[derive(Subcommand, Debug)]
        enum Command {
            $($name($arguments),)*
        }

        impl Command {
            fn get(&self) -> &dyn Run {
                match self {
                    $(Self::$name(command) => command,)*
                }
            }
        }
    };
}

commands! {
    Select(select::Select),
    Explain(explain::Explain),
    Sql(sql::Sql),
    Check(check::Check),
    Fmt(fmt::Fmt),
    Diff(diff::Diff),
    Log(log::Log),
    Blame(blame::Blame),
    Render(render::Render),
    Import(import::Import),
    Export(export::Export),
    Verify(verify::Verify),
    Stats(stats::Stats),
    Show(reports::ShowCommand),
    Steps(reports::StepsCommand),
    Prefix(reports::PrefixCommand),
    Tokens(reports::TokensCommand),
    Assert(reports::AssertCommand),
    Top(reports::TopCommand),
    Unused(reports::UnusedCommand),
    Duplicates(reports::DuplicatesCommand),
    Share(share::Share),
    Grep(reports::GrepCommand),
    Bench(bench::Bench),
    New(mutations::New),
    Add(mutations::Add),
    Update(mutations::Update),
    Remove(mutations::Remove),
    Move(mutations::Move),
    Replace(mutations::Replace),
    Compact(mutations::Compact),
    Commit(mutations::Commit),
    Discard(mutations::Discard),
    Fork(mutations::Fork),
    Refs(refs::Refs),
    Attempts(attempts::Attempts),
    Sessions(stores::Sessions),
    Rename(stores::Rename),
    Delete(stores::Delete),
    Erase(stores::Erase),
    Prune(stores::Prune),
    Backup(stores::Backup),
    IndexText(stores::IndexText),
    Context(context::Context),
    Completions(Completions),
    Man(Man),
}

/// Print a completion script for a shell.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pactql completions bash > ~/.local/share/bash-completion/completions/pactql
  pactql completions fish > ~/.config/fish/completions/pactql.fish")]
struct Completions {
    /// The shell.
    shell: clap_complete::Shell,
}

impl Run for Completions {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "pactql", &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}

/// Print the manual page of the program or of a command.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pactql man > ~/.local/share/man/man1/pactql.1
  pactql man select | man -l -")]
struct Man {
    /// The command, such as `select` or `context resolve` [default: the program].
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

impl Run for Man {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let page = man::page(Cli::command(), &self.command)?;
        print(&String::from_utf8_lossy(&page))
    }
}

/// Runs the program with the process's arguments.
#[must_use]
pub fn main() -> Exit {
    main_with(std::env::args_os())
}

/// Runs the program with these arguments, the first of which is its name. For programs that have this one
/// inside; once a process, as signals are the program's from then on.
#[must_use]
pub fn main_with(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments = typed::set_arguments(arguments.into_iter().collect());
    let program = Cli::command().color(help_color());
    let parsed = program.clone().try_get_matches_from(arguments);
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error, program),
    };
    typed::set_program(program);
    let (json, color) = (wants_json(&matches), cli.color);
    let command = cli.command.get();
    let timeout = cli.timeout.filter(|_| !command.answers_calls());
    let cancel = interrupt::watch(timeout, move |failure| report(failure, json, color));
    let mut outcome = None;
    if !command.answers_calls() {
        crash::quiet();
    }
    let run = || cancel.run(|| outcome = Some(command.run_within(color, cli.timeout)));
    let ran = crash::caught(run).unwrap_or_else(|failure| {
        outcome = Some(Err(failure));
        Ok(())
    });
    let outcome = outcome.filter(|_| ran.is_ok() || interrupt::is_shown());
    match outcome.unwrap_or_else(|| Err(interrupt::failure(timeout))) {
        Ok(exit) => exit,
        Err(Failure::ClosedPipe) => Exit::Ok,
        Err(failure) => {
            let failure = store_words::advise(failure, &words());
            report(&failure, json, color);
            failure.exit()
        }
    }
}

/// Whether the arguments, which may not parse, give an option this value.
fn asks_for(option: &str, value: &str) -> bool {
    let words = words();
    words
        .iter()
        .any(|word| word.split_once('=') == Some((option, value)))
        || words
            .windows(2)
            .any(|pair| pair[0] == option && pair[1] == value)
}

/// When the help is coloured: it is printed before the arguments are known.
fn help_color() -> ColorChoice {
    match () {
        () if asks_for("--color", "never") => ColorChoice::Never,
        () if asks_for("--color", "always") => ColorChoice::Always,
        () => ColorChoice::Auto,
    }
}

/// Whether the command was given `--format json`.
fn wants_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, command)) => wants_json(command),
        None => {
            let format = matches.try_get_raw("format").ok().flatten();
            format.is_some_and(|mut words| words.any(|word| word == "json"))
        }
    }
}

/// Prints a failure on standard error.
fn report(failure: &Failure, json: bool, color: Color) {
    if json {
        say(&format!("{}\n", failure.json()));
    } else {
        say(&failure.text(color.for_errors()));
    }
}

/// Reports a command line that did not parse, or prints the help that it asked for.
fn refuse(error: &clap::Error, program: clap::Command) -> Exit {
    let exit = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Ok,
        // Of a command without its arguments: the help says what it needs.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Exit::Usage
        }
        _ => {
            let mut program = program;
            program.build();
            let failure = usage::failure(error, &program, &words());
            let failure = store_words::advise(failure, &words());
            let color = match help_color() {
                ColorChoice::Never => Color::Never,
                ColorChoice::Always => Color::Always,
                ColorChoice::Auto => Color::Auto,
            };
            report(&failure, asks_for("--format", "json"), color);
            return failure.exit();
        }
    };
    // Help whose reader has gone is not a failure.
    let _ = error.print();
    exit
}
