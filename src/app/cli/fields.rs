//! `fields`, and the completion of command lines in a shell, which proposes the words of the session that is named.

use super::command::{Invocation, RunCommand, stream};
use super::each_session::SessionsToOpen;
use super::opened::Opened;
use super::options::rows;
use super::session_args::{EVERY_LOG, SessionsArgs};
use super::words::{exists, reads_as_selector};
use crate::app::present::folders::LogSource;
use crate::app::present::known::sessions_of;
use crate::app::present::stores::{self, Access, StoreAddress};
use crate::app::present::{Exit, Failure, Result};
use crate::inspect::{Fields, FieldsReport};
use crate::store::Store;
use crate::support::cancel::Cancel;
use crate::tree::Limits;
use clap::{Arg, Args, Command};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// What can a selector ask for in these sessions?
///
/// The attributes that their nodes have, with the number of nodes and the values that most of them have: types, kinds,
/// roles, keys and tags first. Then the tools, with the number of their calls. A node of several snapshots counts
/// once. Of all sessions of a store the database counts, and none is loaded.
#[derive(Args, Debug)]
#[command(mut_arg("sessions", |sessions| sessions.help(EVERY_LOG)))]
#[command(args(rows(["name", "nodes", "values"])))]
pub(super) struct FieldsArgs {
    #[command(flatten)]
    sessions: SessionsArgs,
}

impl RunCommand for FieldsArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let fields = RefCell::new(Fields::default());
        let mut add = |opened: &Opened| {
            let added = fields.borrow_mut().add(&opened.session);
            added.map_err(|error| opened.failure(error))
        };
        let count = |store: &Store, glob: &str| {
            fields.borrow_mut().add_store(store, glob)?;
            Ok(Some(Vec::new()))
        };
        let count: SessionsToOpen<'_> = &count;
        let count = self.sessions.is_all().then_some(count);
        self.sessions.each_or_all(count, with, &mut add)?;
        let report = fields.into_inner().report();
        with.print(&report, || report.text(with.paint()))
    }
}

/// How does a shell complete commands? Prints a script for it.
#[derive(Args, Debug)]
pub(super) struct CompletionsArgs {
    /// The shell.
    #[arg(value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    shell: String,
}

impl RunCommand for CompletionsArgs {
    fn run(&self, _: &Invocation) -> Result<Exit> {
        let shells = Shells::builtins();
        let shell = shells.completer(&self.shell);
        let shell = shell.ok_or_else(|| Failure::internal("the shell is not known"))?;
        stream(|out| shell.write_registration(COMPLETE, "pactql", "pactql", "pactql", out))
    }
}

/// The variable by which the script of a shell asks for completions.
const COMPLETE: &str = "PACTQL_COMPLETE";

/// Answers a shell that asks for completions; false if none does.
pub(super) fn complete(
    program: impl Fn() -> Command,
    arguments: &[OsString],
) -> Result<bool, clap::Error> {
    if std::env::var_os(COMPLETE).is_none() {
        return Ok(false);
    }
    let program = || completed(program());
    let directory = std::env::current_dir().ok();
    let env = CompleteEnv::with_factory(program).var(COMPLETE);
    env.try_complete(arguments.iter().cloned(), directory.as_deref())
}

/// The command with a completion of every argument that takes any text.
fn completed(command: Command) -> Command {
    let any = |arg: Arg| {
        let is_any = arg.get_action().takes_values() && arg.get_possible_values().is_empty();
        if is_any {
            arg.add(ArgValueCompleter::new(word))
        } else {
            arg
        }
    };
    command.mut_args(any).mut_subcommands(completed)
}

/// What the beginning of a word can be: a selector in the words of the sessions before it, else a path.
fn word(typed: &OsStr) -> Vec<CompletionCandidate> {
    match typed.to_str() {
        Some(text) if reads_as_selector(text) => {
            let found = vocabulary().complete(text);
            found.into_iter().map(CompletionCandidate::new).collect()
        }
        _ => PathCompleter::any().stdio().complete(typed),
    }
}

/// How long a shell waits for the words of a session, and how much of it is read.
const PATIENCE: Duration = Duration::from_secs(2);
const READ: u64 = 64 << 20;

/// The words of the sessions of the command line; of none if they cannot be read, or not soon.
fn vocabulary() -> FieldsReport {
    let words = std::env::args().skip_while(|word| word != "--").skip(1);
    let words: Vec<String> = words.filter(|word| exists(word) && word != "-").collect();
    let mut fields = Fields::default();
    for word in &words {
        let mut read = Fields::default();
        // What cannot be read has no words; the command says why when it is run.
        if let Ok(Ok(())) = Cancel::after(PATIENCE).run(|| add(word, &mut read)) {
            fields = read;
        }
    }
    fields.report()
}

fn add(word: &str, fields: &mut Fields) -> Result<()> {
    if let Some(address) = StoreAddress::parse(word) {
        let store = stores::open(address.store, Access::Read)?;
        fields.add_store(&store, address.glob())?;
        return Ok(());
    }
    for log in sessions_of(&LogSource::new(word), Limits { max_input: READ }, None)? {
        fields.add(&log.session)?;
    }
    Ok(())
}
