//! The command line: a file for each command or group of commands.
//!
//! Results go to standard output and everything else to standard error; a command that fails
//! leaves standard output empty. [`Exit`] lists the exit codes. Arguments have two phases: as clap
//! parsed them, then resolved (engine, options, opened sessions) when the command runs. No
//! other module may use this one.

mod answers;
mod bench;
mod command;
mod context;
mod diff;
mod each_session;
mod edit;
mod export;
mod fields;
mod follow;
mod follow_sessions;
mod import;
mod import_read;
mod input;
mod interrupt;
mod list;
mod opened;
mod options;
mod output;
mod progress;
mod read_sessions;
mod reports;
mod select;
mod selector;
mod session_args;
mod sessions;
mod share;
mod store;
mod typed;
mod verify;
mod view;
mod words;
mod write;

#[cfg(feature = "count-allocations")]
pub use crate::app::measure::allocations::CountingAllocator;
pub use crate::app::present::Exit;

use crate::app::present::{Failure, Result};
use crate::tree::Limits;
use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use command::{Invocation, RunCommand, say, stream, tell};
use options::{PrintAs, bytes, error_colors};
use std::ffi::OsString;
use words::{help_color, words};

const EXAMPLES: &str = include_str!("examples.txt");

/// Adds to each command below one its examples, to a group the first of them. An example is a line, and the part of it
/// from the name of the program.
fn with_examples(command: clap::Command, path: &str, all: &[(&str, &str)]) -> clap::Command {
    let is_group = command.has_subcommands();
    let is_own = |line: &str| line.starts_with(path) || line == path.trim_end();
    let own = all.iter().filter(|(_, line)| is_own(line));
    let own = own.take(if is_group { 3 } else { usize::MAX });
    let own: String = own.map(|(line, _)| format!("\n  {line}")).collect();
    command
        .mut_subcommands(|command| {
            let path = format!("{path}{} ", command.get_name());
            with_examples(command, &path, all)
        })
        .after_help(format!("Examples:{own}"))
}

fn program() -> clap::Command {
    let lines = EXAMPLES.lines();
    let lines = lines.filter_map(|line| Some((line, &line[line.find("pactql ")?..])));
    let lines: Vec<(&str, &str)> = lines.collect();
    with_examples(Cli::command(), "pactql ", &lines).color(help_color())
}

/// The first screen of `pactql --help`, and what is below it. A test compares it with the commands.
const HELP: &str = include_str!("help.txt");

/// The place of options that every command has: below its own.
const LAST: usize = 900;

/// Query and change what language models saw.
#[derive(Parser, Debug)]
#[command(name = "pactql", version, propagate_version = true)]
#[command(max_term_width = 100, help_template = HELP)]
struct Cli {
    /// Print JSON, and errors as JSON.
    #[arg(long, global = true, display_order = LAST, conflicts_with = "format")]
    json: bool,
    /// How the result is printed: text or json; of `select` also ids, nodes, table or tree, of `show` markdown.
    #[arg(long, value_enum, global = true, display_order = LAST, value_name = "FORMAT")]
    #[arg(hide_possible_values = true)]
    format: Option<PrintAs>,
    /// When to colour the output: `auto` is on a terminal, unless NO_COLOR is set or TERM is `dumb`.
    #[arg(long, value_enum, default_value_t, global = true, display_order = LAST, value_name = "WHEN")]
    color: ColorChoice,
    /// Refuse inputs of more than this many bytes after unpacking. K, M and G are factors of 1024, 1024² and
    /// 1024³.
    #[arg(long, global = true, display_order = LAST, value_name = "BYTES", default_value = "1G", value_parser = bytes)]
    max_input: u64,
    /// End after this time, with exit code 124: `500ms`, `30s`, `5m`. `view`, `serve` and `context serve` go on: of them
    /// each answer ends after it.
    #[arg(long, global = true, display_order = LAST, value_name = "TIME", value_parser = interrupt::time)]
    timeout: Option<std::time::Duration>,
    #[command(subcommand)]
    command: Command,
}

macro_rules! commands {
    ($($name:ident($arguments:ty),)*) => {
        #[derive(Subcommand, Debug)]
        enum Command {
            $($name($arguments),)*
        }

        impl Command {
            fn get(&self) -> &dyn RunCommand {
                match self {
                    $(Self::$name(command) => command,)*
                }
            }
        }
    };
}

commands! {
    Show(reports::ShowArgs),
    Steps(reports::StepsArgs),
    Diff(diff::DiffArgs),
    Blame(diff::BlameArgs),
    View(view::ViewArgs),
    Select(select::SelectArgs),
    Grep(reports::GrepArgs),
    Top(reports::TopArgs),
    Explain(selector::ExplainArgs),
    Sql(selector::SqlArgs),
    Fields(fields::FieldsArgs),
    Usage(reports::UsageCommand),
    Tokens(reports::TokensArgs),
    Prefix(reports::PrefixArgs),
    Bench(bench::BenchArgs),
    Assert(reports::AssertArgs),
    Verify(verify::VerifyArgs),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Render(export::RenderArgs),
    Share(share::ShareArgs),
    Sessions(list::ListArgs),
    Store(store::StoreArgs),
    Edit(edit::EditArgs),
    Context(context::ContextArgs),
    Fmt(selector::FmtArgs),
    Completions(fields::CompletionsArgs),
    Man(ManArgs),
    Serve(view::ServeArgs),
}

/// How is a command used? Prints its manual page, or that of the program.
#[derive(clap::Args, Debug)]
struct ManArgs {
    /// The command, such as `select` or `context resolve` [default: the program].
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

impl RunCommand for ManArgs {
    fn run(&self, _: &Invocation) -> Result<Exit> {
        let mut program = program();
        // Adds the options that all commands have, and the full names.
        program.build();
        let mut page = &program;
        for name in &self.command {
            page = page.find_subcommand(name).ok_or_else(|| {
                Failure::usage(format!("there is no command `{name}`"))
                    .with_help("`pactql --help` lists the commands")
            })?;
        }
        stream(|out| clap_mangen::Man::new(page.clone()).render(out))
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
    let arguments = words::ARGUMENTS.get_or_init(|| arguments.into_iter().collect());
    // Making all commands takes longer than the rest of the start.
    if let [_, word] = &arguments[..]
        && (word == "--version" || word == "-V")
    {
        let version = format!("{} {}\n", env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        return command::print(&version).unwrap_or(Exit::Ok);
    }
    match fields::complete(program, arguments) {
        Ok(false) => {}
        Ok(true) => return Exit::Ok,
        Err(error) => return refuse(&error),
    }
    let arguments = typed::with_command(arguments, program);
    let matches = program().try_get_matches_from(arguments);
    let parsed = matches
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, options::order(&matches)?)));
    let (cli, order) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error),
    };
    let command = cli.command.get();
    let with = Invocation {
        format: if cli.json {
            Some(PrintAs::Json)
        } else {
            cli.format
        },
        color: cli.color,
        order,
        limits: Limits {
            max_input: cli.max_input,
        },
        timeout: cli.timeout,
    };
    let (json, color) = (with.is_json(), cli.color);
    let timeout = cli.timeout.filter(|_| !command.answers_calls());
    let cancel = interrupt::watch(timeout, move |failure| report(failure, json, color));
    let mut outcome = None;
    if !command.answers_calls() {
        interrupt::quiet();
    }
    let run = || cancel.run(|| outcome = Some(run_as(command, &with)));
    let ran = interrupt::caught(run).unwrap_or_else(|failure| {
        outcome = Some(Err(failure));
        Ok(())
    });
    let outcome = outcome.filter(|_| ran.is_ok() || command::is_shown());
    match outcome.unwrap_or_else(|| Err(interrupt::failure(timeout))) {
        Ok(exit) => exit,
        Err(Failure::ClosedPipe) => Exit::Ok,
        Err(failure) => {
            // Nothing was typed, and there is nothing to list.
            if words().is_empty() && matches!(failure.exit(), Exit::Usage) {
                say(&format!("{}\n", program().render_help()));
            }
            report(&failure, json, color);
            failure.exit()
        }
    }
}

fn run_as(command: &dyn RunCommand, with: &Invocation) -> Result<Exit> {
    let known = command.formats();
    if let Some(format) = with.format.filter(|format| !known.contains(format)) {
        let known: Vec<String> = known.iter().map(|format| format.name()).collect();
        let (known, format) = (known.join(", "), format.name());
        let message = format!("`--format` takes {known} here, not `{format}`");
        return Err(Failure::value(message));
    }
    command.run(with)
}

fn report(failure: &Failure, json: bool, color: ColorChoice) {
    if json {
        say(&format!("{}\n", failure.json()));
    } else {
        tell(&failure.text(error_colors(color)), true);
    }
}

/// Reports a command line that did not parse, or prints the help that it asked for.
fn refuse(error: &clap::Error) -> Exit {
    let exit = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Ok,
        // Of a command without its arguments: the help says what it needs.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Exit::Usage
        }
        _ => {
            let mut program = program();
            program.build();
            let failure = typed::failure(error, &program, &words());
            report(&failure, words::asks_for_json(), help_color());
            return failure.exit();
        }
    };
    // Help whose reader has gone is not a failure.
    let _ = error.print();
    exit
}
