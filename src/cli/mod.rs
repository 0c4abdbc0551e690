//! The command line: one file a command.
//!
//! Results go to standard output and everything else to standard error; a command that fails
//! leaves standard output empty. Exit codes are those of [`Exit`]. This room knows every other
//! one; nothing knows it.

mod bench;
mod blame;
mod check;
mod context;
mod diff;
mod explain;
mod export;
mod fit;
mod fmt;
mod import;
mod input;
mod log;
mod options;
mod output;
mod render;
mod select;
#[cfg(feature = "mcp")]
mod serve;
mod sessions;
mod stats;
mod verify;

pub use crate::present::Exit;

use crate::present::Failure;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use options::Color;
use std::io::Write;

/// Query LLM context trees with selectors.
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
  pactql bench session.jsonl -e \"@t0 .cb\"

Exit codes: 0 ok, 1 usage, 2 invalid selector, 3 invalid option value, 4 input missing,
5 input invalid, 6 input or output failed, 7 internal error.")]
struct Cli {
    /// When to colour what is printed.
    #[arg(long, value_enum, default_value_t, global = true, value_name = "WHEN")]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Select(select::Select),
    Explain(explain::Explain),
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
    Bench(bench::Bench),
    Context(context::Context),
    /// Print a completion script for a shell.
    #[command(after_help = "\
Examples:
  pactql completions bash > ~/.local/share/bash-completion/completions/pactql
  pactql completions fish > ~/.config/fish/completions/pactql.fish")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether errors are asked for as JSON.
    fn json_errors(&self) -> bool {
        match self {
            Self::Select(command) => command.json_errors(),
            Self::Explain(command) => command.json_errors(),
            Self::Check(command) => command.json_errors(),
            Self::Diff(command) => command.json_errors(),
            Self::Log(command) => command.json_errors(),
            Self::Blame(command) => command.json_errors(),
            Self::Verify(command) => command.json_errors(),
            Self::Stats(command) => command.json_errors(),
            Self::Bench(command) => command.json_errors(),
            Self::Fmt(command) => command.json_errors(),
            Self::Render(command) => command.json_errors(),
            Self::Import(command) => command.json_errors(),
            Self::Export(command) => command.json_errors(),
            Self::Context(command) => command.json_errors(),
            Self::Completions { .. } => false,
        }
    }

    fn run(self, color: Color) -> Result<Exit, Failure> {
        match self {
            Self::Select(command) => command.run(color),
            Self::Explain(command) => command.run(),
            Self::Check(command) => command.run(color),
            Self::Fmt(command) => command.run(color),
            Self::Diff(command) => command.run(color),
            Self::Log(command) => command.run(color),
            Self::Blame(command) => command.run(color),
            Self::Render(command) => command.run(),
            Self::Import(command) => command.run(),
            Self::Export(command) => command.run(),
            Self::Verify(command) => command.run(),
            Self::Stats(command) => command.run(),
            Self::Bench(command) => command.run(),
            Self::Context(command) => command.run(),
            Self::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Cli::command(), "pactql", &mut script);
                std::io::stdout().write_all(&script)?;
                Ok(Exit::Ok)
            }
        }
    }
}

/// Runs the program with the process's arguments.
#[must_use]
pub fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let (color, json) = (cli.color, cli.command.json_errors());
    match cli.command.run(color) {
        Ok(exit) => exit,
        Err(Failure::ClosedPipe) => Exit::Ok,
        Err(failure) => {
            tell(&failure, json, color);
            failure.exit()
        }
    }
}

/// Prints a failure on standard error.
fn tell(failure: &Failure, json: bool, color: Color) {
    let text = if json {
        format!("{}\n", failure.json())
    } else {
        failure.text(color.for_errors())
    };
    say(&text);
}

/// Writes on standard error. A failure to do so is not told, for nobody is left to tell.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Answers a command line that did not parse, or that asked for help.
fn refuse(error: &clap::Error) -> Exit {
    let exit = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Ok,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => Exit::Value,
        _ => Exit::Usage,
    };
    let arguments: Vec<_> = std::env::args_os().collect();
    let json = arguments.iter().any(|argument| argument == "--format=json")
        || arguments
            .windows(2)
            .any(|pair| pair[0] == "--format" && pair[1] == "json");
    if exit != Exit::Ok && json {
        let message = error.to_string();
        let message = message.lines().next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        tell(
            &Failure::Plain(exit, message.to_owned(), None),
            true,
            Color::Never,
        );
    } else {
        // A closed pipe is no reason to complain about help.
        let _ = error.print();
    }
    exit
}
