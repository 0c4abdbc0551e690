//! A command line that is wrong: what was meant, and what to type.
//!
//! clap finds the mistake and what is near it. Two tables have the names of other tools and of other versions.
//! No guess proposes a command that writes: such a command is only named for a word that means it.

use super::input::explain_missing;
use super::words::{
    address, exists, is_file, is_selector, joined, not_one_argument, retyped, whole,
};
pub(super) use crate::app::present::sessions::{ends, time};
use crate::app::present::stores::{self, Access, StoreAddress};
use crate::app::present::{Exit, Failure, Result, quote};
use crate::support::diag::{nearest, nearest_at};
use crate::tree::SourceError;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::ffi::OsString;
use std::path::Path;

/// Names of commands that were, or that other tools have, and the command line here; `{}` is the words that
/// were typed after the name, `{word}` the name.
const COMMANDS: &str = include_str!("typed_commands.txt");

/// How like a value must be to be advised: values of an option are short words, of which half the letters say little.
const LIKE: f64 = 0.6;

/// Commands that only read: these are guessed for a word that is like them.
const READERS: &str = "show steps diff blame view select grep top explain sql fields usage tokens prefix bench assert verify \
    render sessions fmt completions man";

/// Options that were, or that other tools have: the names, the option that a command must have for the advice
/// to be true of it, and the advice.
const OPTIONS: &str = include_str!("typed_options.txt");

/// The rows of a table: names, and what is said of them.
fn rows(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.lines().filter_map(|row| row.split_once(": "))
}

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

/// The arguments with the command that is meant where none is typed: of a path what is there, alone the sessions.
pub(super) fn with_command(arguments: &[OsString], program: fn() -> Command) -> Vec<OsString> {
    let mut words = arguments.to_vec();
    let typed = arguments.iter().skip(1).map(|word| word.to_string_lossy());
    let typed: Vec<_> = typed.collect();
    let command = match &typed[..] {
        [] => "sessions",
        [json] if json == "--json" => "sessions",
        [path, rest @ ..]
            if !path.starts_with('-')
                && exists(path)
                && program().find_subcommand(&**path).is_none()
                && !rest.iter().any(|word| is_selector(word)) =>
        {
            match StoreAddress::parse(path) {
                Some(address) if address.is_several() => "sessions",
                None if Path::new(&**path).is_dir() => "sessions",
                _ => "steps",
            }
        }
        _ => return words,
    };
    words.insert(1.min(words.len()), command.into());
    words
}

struct Typed<'a> {
    /// The command whose arguments did not parse; the program if none was recognized.
    command: &'a Command,
    /// The names of the commands: none, `select`, or `context build`.
    names: Vec<&'a str>,
    rest: &'a [String],
}

impl<'a> Typed<'a> {
    fn new(program: &'a Command, words: &'a [String]) -> Self {
        let (mut command, mut names, mut rest) = (program, Vec::new(), words);
        // Options may come before the command.
        while let [option, more @ ..] = rest
            && option.starts_with("--")
        {
            let takes = !option.contains('=') && option != "--json";
            rest = &more[usize::from(takes).min(more.len())..];
        }
        while let [first, more @ ..] = rest
            && let Some(found) = command.find_subcommand(first)
        {
            names.push(found.get_name());
            (command, rest) = (found, more);
        }
        Self {
            command,
            names,
            rest,
        }
    }

    fn name(&self) -> String {
        match &self.names[..] {
            [] => "pactql".to_owned(),
            names => names.join(" "),
        }
    }

    fn has(&self, long: &str) -> bool {
        let mut known = self.command.get_arguments();
        long.is_empty() || known.any(|argument| argument.get_long() == Some(long))
    }

    /// How the command is used: `pactql blame SESSION ID`.
    fn usage(&self) -> String {
        let usage = self.command.clone().render_usage().to_string();
        let line = usage.lines().next().unwrap_or_default();
        let line = first_of_group(line.trim_start_matches("Usage:").trim());
        line.replace(" [OPTIONS]", "").replace(['<', '>'], "")
    }
}

/// A line with the first option of a group, such as `<--html|--receipt>`, in the place of the group: for a shell it is a pipe.
fn first_of_group(line: &str) -> String {
    let Some((before, group)) = line.split_once("<--") else {
        return line.to_owned();
    };
    let mut depth = 1;
    let end = group.find(|letter| {
        depth += match letter {
            '<' => 1,
            '>' => -1,
            _ => 0,
        };
        depth == 0
    });
    let (options, after) = group.split_at(end.unwrap_or(group.len()));
    let first = options.split('|').next().unwrap_or_default();
    format!("{before}--{first}{after}")
}

/// The failure to report for an error of clap. `words` are the arguments without the program.
pub(super) fn failure(error: &Error, program: &Command, words: &[String]) -> Failure {
    let typed = Typed::new(program, words);
    let list = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    let text = |kind| list(kind).into_iter().next().unwrap_or_default();
    let invalid = text(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::InvalidSubcommand => command(&text(ContextKind::InvalidSubcommand), &typed),
        ErrorKind::UnknownArgument if invalid.starts_with('-') && invalid.len() > 1 => {
            option(&invalid, &text(ContextKind::SuggestedArg), &typed)
        }
        ErrorKind::UnknownArgument | ErrorKind::TooManyValues => extra_word(&invalid, &typed),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let mut message = first_line(error);
            let valid = list(ContextKind::ValidValue);
            if !valid.is_empty() {
                message.extend(["; it takes ", &valid.join(", ")]);
            }
            let typed = text(ContextKind::InvalidValue);
            let valid = valid.iter().map(String::as_str);
            Failure::value(message).near(nearest_at(LIKE, &typed, valid))
        }
        ErrorKind::MissingRequiredArgument => {
            let called = |argument: &String| match argument.split_once(' ') {
                Some((option, _)) if option.starts_with('-') => format!("`{option}`"),
                _ => argument
                    .replace(['<', '>', '[', ']', '.'], "")
                    .replace('|', " or "),
            };
            let missing = list(ContextKind::InvalidArg);
            // An option that takes no value can be added to what was typed.
            let help = match &missing[..] {
                [one] if one.starts_with("<--") && !one.contains(' ') => {
                    retyped(&[], vec![first_of_group(one).replace('>', "")])
                }
                _ => typed.usage(),
            };
            let missing: Vec<String> = missing.iter().map(called).collect();
            let message = format!("`{}` needs {}", typed.name(), missing.join(" and "));
            Failure::usage(message).with_help(help)
        }
        _ => Failure::usage(first_line(error)),
    }
}

/// What clap says is wrong, without what it advises.
fn first_line(error: &Error) -> String {
    let message = error.to_string();
    let lines = message.lines().take_while(|line| !line.is_empty());
    let lines = lines.filter(|line| !line.trim_start().starts_with("[possible values"));
    let message = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let message = message.replace('\'', "`");
    message.replace("not in 1..18446744073709551615", "not at least 1")
}

fn command(word: &str, typed: &Typed<'_>) -> Failure {
    if !typed.names.is_empty() && typed.names != ["help"] {
        let known = typed.command.get_subcommands().map(Command::get_name);
        let known: Vec<&str> = known.filter(|name| *name != "help").collect();
        return Failure::usage(format!("`{}` has no command `{word}`", typed.name())).with_help(
            if has(READERS, word) {
                format!("`pactql {word}` is a command of its own")
            } else {
                format!("it has {}", known.join(", "))
            },
        );
    }
    if is_path(word) || is_selector(word) {
        return no_command(typed);
    }
    let lower = word.to_lowercase();
    if let Some((_, here)) = rows(COMMANDS).find(|(names, _)| has(names, &lower)) {
        let rest = typed.rest.get(1..).unwrap_or_default();
        let line = here.replace("{word}", &lower);
        let line = line.replace("{}", &after(&line, rest));
        let line = line.trim_end();
        let message = format!("there is no command `{word}`; type: pactql {line}");
        return Failure::coded("E_USAGE", Exit::Selector, message);
    }
    let failure = Failure::usage(format!("there is no command `{word}`"));
    let near = nearest(&lower, READERS.split(' ')).map(|near| format!("pactql {near}"));
    let failure = failure.with_help("`pactql --help` lists the commands");
    failure.near(near.as_deref())
}

/// The words after a command of the table: a selector in several words is one, and where sessions are many, the
/// value of `--where`.
fn after(line: &str, words: &[String]) -> String {
    let name = line.split(' ').next().unwrap_or_default();
    let takes_where = has("show steps tokens prefix", name);
    // `tail -f FILE` has said it.
    let is_said = |word: &String| line.contains("--follow") && has("-f -F", word);
    let mut out = Vec::new();
    for word in whole(words).into_iter().filter(|word| !is_said(word)) {
        if takes_where && is_selector(&word) {
            out.push("--where".to_owned());
        }
        // An id such as `cb:u3` is neither a file nor a selector.
        let is_id = name == "select" && word.contains(':') && !is_file(&word);
        out.push(if is_id && !is_selector(&word) {
            format!("[id={}]", quote(&word))
        } else {
            word
        });
    }
    joined(&out)
}

fn is_path(word: &str) -> bool {
    is_file(word) || word.contains('/') && !is_selector(word)
}

fn no_command(typed: &Typed<'_>) -> Failure {
    if let Some(path) = typed.rest.iter().find(|word| is_path(word))
        && !exists(path)
    {
        return missing(path);
    }
    let (files, others): (Vec<String>, Vec<String>) = whole(typed.rest)
        .into_iter()
        .partition(|word| is_file(word));
    let words = [files, others].concat();
    Failure::usage("the first word is a command, such as `select`")
        .with_help(format!("pactql select {}", joined(&words)))
}

/// Says of a path, or of a store, that nothing is there.
pub(super) fn missing(path: &str) -> Failure {
    let store = StoreAddress::parse(path).map(|address| stores::open(address.store, Access::Read));
    if let Some(Err(failure)) = store {
        return failure;
    }
    explain_missing(SourceError::Missing(path.into()).into(), path)
}

fn option(option: &str, near: &str, typed: &Typed<'_>) -> Failure {
    if typed.names.is_empty() && typed.rest.iter().any(|word| is_file(word)) {
        return no_command(typed);
    }
    let name = option.trim_start_matches('-');
    let failure = Failure::usage(format!("`{}` has no option `{option}`", typed.name()));
    let known = rows(OPTIONS).find(|(names, _)| {
        let (names, needs) = names.split_once(", ").unwrap_or_default();
        has(names, name) && typed.has(needs)
    });
    failure.with_help(match known {
        Some((_, advice)) => advice.to_owned(),
        None if !near.is_empty() => format!("did you mean `{near}`?"),
        None => {
            let names: String = typed.names.iter().map(|name| format!(" {name}")).collect();
            format!("`pactql{names} --help` lists the options")
        }
    })
}

fn extra_word(word: &str, typed: &Typed<'_>) -> Failure {
    if typed.has("content-file") {
        return Failure::usage("the node is one argument, in quotes").with_help(typed.usage());
    }
    let option = match address(word) {
        Some(address) if typed.has("at") => Some(["--at".to_owned(), address]),
        _ if typed.has("output") && is_file(word) => Some(["-o".to_owned(), word.to_owned()]),
        _ => None,
    };
    if let Some(option) = option {
        return Failure::usage(format!("`{word}` is the value of `{}`", option[0]))
            .with_help(retyped(&[word.to_owned()], option.to_vec()));
    }
    let words = whole(typed.rest);
    if words.len() < typed.rest.len() {
        return not_one_argument().with_help(retyped(typed.rest, words));
    }
    let message = format!("`{}` takes no argument `{word}` here", typed.name());
    Failure::usage(message).with_help(typed.usage())
}

/// The range that is meant by two snapshots with a `-` between them, such as `3-5`.
fn with_dots(word: &str) -> Option<String> {
    let (from, to) = word.split_once('-')?;
    let range = format!("{from}..{to}");
    ends(&range).map(|_| range)
}

/// Takes the time from the words of a command, which may stand among its sessions; `given` is that of an option.
pub(super) fn take_time(
    words: &[String],
    given: Option<&String>,
) -> Result<(Vec<String>, Option<String>)> {
    let dashed = words.iter().filter(|word| !is_file(word)).chain(given);
    if let Some((word, range)) = dashed
        .filter_map(|word| Some((word, with_dots(word)?)))
        .next()
    {
        let message = format!("expected a snapshot or a range such as `{range}`, found `{word}`");
        let help = retyped(std::slice::from_ref(word), vec![range]);
        return Err(Failure::usage(message).with_help(help));
    }
    let is_time = |word: &&String| !is_file(word) && time(word).is_some();
    let (times, names): (Vec<&String>, Vec<&String>) = words.iter().partition(is_time);
    let typed: Vec<String> = times.iter().copied().cloned().collect();
    match (&typed[..], given) {
        ([], None) => Ok((words.to_vec(), None)),
        ([one], None) | ([], Some(one)) => {
            Ok((names.into_iter().cloned().collect(), Some(one.clone())))
        }
        ([a, b], None) if address(a).is_some() && address(b).is_some() => {
            let range = [a, b].map(|one| address(one).unwrap_or_default());
            let range = range.join("..");
            let message = "one snapshot is an address, and several are a range";
            let help = retyped(&typed, vec![range]);
            Err(Failure::usage(message).with_help(help))
        }
        _ => Err(Failure::usage("the snapshots are given twice")
            .with_help("name one address or one range: @c7, or @c3..@c7")),
    }
}
