//! What to say about a command line that does not parse: what was expected, and what to type.

use super::habits;
use super::typed::Typed;
use super::words::{in_quotes, is_file, is_selector, joined, quoted};
use crate::app::present::{Exit, Failure};
use crate::support::diag::nearest;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// The failure to report for an error of clap. `words` are the arguments without the program.
pub(super) fn failure(error: &Error, program: &Command, words: &[String]) -> Failure {
    let typed = Typed::new(program, words);
    let invalid = text(error, ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(error, ContextKind::InvalidSubcommand);
            habits::command(&word, &typed, program)
        }
        ErrorKind::UnknownArgument | ErrorKind::TooManyValues => {
            let plain = || invalid.starts_with('-') && invalid.len() > 1;
            if plain() {
                unknown_option(&invalid, &typed)
            } else {
                let extra = match error.get(ContextKind::InvalidValue) {
                    Some(ContextValue::String(value)) => value,
                    _ => &invalid,
                };
                extra_word(extra, &typed)
            }
        }
        ErrorKind::InvalidValue => invalid_value(error, &invalid, &typed),
        ErrorKind::ValueValidation => {
            let value = text(error, ContextKind::InvalidValue);
            let reason = std::error::Error::source(error).map(ToString::to_string);
            let message = match reason.as_deref().map(expected) {
                Some(reason) => format!("{}: {reason}; found `{value}`", of(&invalid)),
                None => format!("{} cannot be `{value}`", of(&invalid)),
            };
            Failure::value(message)
        }
        ErrorKind::MissingRequiredArgument => missing(error, &typed),
        ErrorKind::ArgumentConflict => {
            let prior = list(error, ContextKind::PriorArg);
            let prior: Vec<String> = prior.iter().map(|name| of(name)).collect();
            if prior.is_empty() || prior == [of(&invalid)] {
                Failure::usage(format!("{} is given twice", of(&invalid)))
            } else {
                let prior = prior.join(" and ");
                Failure::usage(format!("{} cannot be used with {prior}", of(&invalid)))
                    .with_help("give one of them")
            }
        }
        ErrorKind::InvalidUtf8 => Failure::usage("an argument is not UTF-8"),
        _ => {
            let message = error.to_string();
            let first = message.lines().next().unwrap_or_default();
            Failure::usage(first.strip_prefix("error: ").unwrap_or(first))
        }
    }
}

/// The text of a part of an error; empty if it has none.
fn text(error: &Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    }
}

/// The texts of a part of an error.
fn list(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// What a value must be, by the reason for which it was refused.
fn expected(reason: &str) -> String {
    if let Some((_, range)) = reason.split_once(" is not in ") {
        return match range.split_once("..") {
            Some((least, "" | "18446744073709551615")) => {
                format!("expected a number of at least {least}")
            }
            Some((least, most)) => format!("expected a number from {least} to {most}"),
            None => format!("expected a number in {range}"),
        };
    }
    let number = ["invalid digit", "number too", "cannot parse integer"];
    if number.iter().any(|start| reason.starts_with(start)) {
        "expected a number such as 10".to_owned()
    } else {
        reason.to_owned()
    }
}

/// An argument as messages call it: `--format <FORMAT>` is `--format`, `<SHELL>` is SHELL.
fn of(argument: &str) -> String {
    let name = argument.split([' ', '=']).next().unwrap_or_default();
    let name = name.trim_end_matches("...");
    if name.starts_with('-') {
        format!("`{name}`")
    } else {
        name.trim_matches(['<', '>', '[', ']']).to_owned()
    }
}

/// An option that the command does not have.
fn unknown_option(option: &str, typed: &Typed<'_>) -> Failure {
    let is_word = |word: &String| is_file(word) || is_selector(word);
    if typed.names.is_empty() && typed.rest.iter().any(is_word) {
        return Failure::usage("the first word is a command, such as `select`")
            .with_help(format!("pactql select {}", files_first(typed.rest)));
    }
    habits::option(option, typed)
}

/// Words with the files among them in front.
fn files_first(words: &[String]) -> String {
    let (files, others): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| is_file(word));
    let others = others.iter().map(|word| {
        if is_selector(word) {
            in_quotes(word)
        } else {
            quoted(word)
        }
    });
    let files = files.iter().map(|word| quoted(word));
    files.chain(others).collect::<Vec<_>>().join(" ")
}

/// A value that an option does not take.
fn invalid_value(error: &Error, argument: &str, typed: &Typed<'_>) -> Failure {
    let value = text(error, ContextKind::InvalidValue);
    let valid = list(error, ContextKind::ValidValue);
    let takes = match &valid[..] {
        [] => placeholder(argument).to_owned(),
        [only] => only.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    };
    if value.is_empty() {
        return Failure::value(format!("{} needs a value: {takes}", of(argument)));
    }
    let failure = Failure::value(format!("{} takes {takes}, not `{value}`", of(argument)));
    if let Some(help) = habits::value(&of(argument), &value, typed) {
        return failure.with_help(help);
    }
    match nearest(&value, valid.iter().map(String::as_str)) {
        Some(near) => failure.with_help(format!("did you mean `{near}`?")),
        None => failure,
    }
}

/// What the value of an option is, by the name that its help gives it.
fn placeholder(argument: &str) -> &'static str {
    let name = argument.split_once('<').map_or("", |(_, name)| name);
    match name.trim_end_matches(['.', '>', ']']) {
        "N" | "TOKENS" => "a number such as 10",
        "BYTES" => "a number of bytes such as 500M",
        "FILE" | "PATH" | "OUTPUT" => "the path of a file",
        "DIR" => "the path of a directory",
        "SELECTOR" => "a selector in quotes",
        "AGE" => "an age such as 30d or 12h",
        "NAME" => "a name",
        "POINTER" => "a JSON pointer such as /messages",
        "ADDRESS" => "the address of a snapshot, such as @t0 or @c12",
        "TEXT" | "QUERY" => "a text in quotes",
        _ => "a word",
    }
}

/// What messages call an argument that is missing.
const ARGUMENTS: &[(&str, &str)] = &[
    ("SESSION", "a session"),
    ("SELECTOR", "a selector"),
    ("STORE", "a store"),
    ("STORE#NAME", "where the new session goes"),
    ("NAME", "a new name"),
    ("LOG", "a log"),
    ("A", "a snapshot"),
    ("B", "a snapshot to compare it with"),
    ("ID", "the id of a node"),
    ("SHELL", "the name of a shell"),
    ("POSITION", "a position"),
    ("NODE", "a node"),
    ("FIELDS", "fields"),
    ("ADDRESS", "the address of a snapshot"),
];

/// Arguments that are missing.
fn missing(error: &Error, typed: &Typed<'_>) -> Failure {
    if typed.names == ["diff"]
        && let Some(at) = typed.rest.iter().position(|word| range(word).is_some())
        && let Some(ends) = range(&typed.rest[at])
    {
        let mut words = typed.rest.to_vec();
        words.splice(at..=at, ends.map(str::to_owned));
        return two_arguments().with_help(typed.with(&words));
    }
    let names = list(error, ContextKind::InvalidArg);
    if let [option] = &names[..]
        && option.starts_with('-')
        && !typed.rest.is_empty()
    {
        let option_words = option.split(' ').map(|word| word.replace(['<', '>'], ""));
        let words: Vec<String> = typed.rest.iter().cloned().chain(option_words).collect();
        return Failure::usage(format!("`{}` needs {} with this", typed.name(), of(option)))
            .with_help(typed.with(&words));
    }
    let names: Vec<String> = match (&typed.names[..], names.len()) {
        (["explain"], 1) => vec!["a selector".to_owned()],
        (["select"], 1) => vec!["a session and a selector".to_owned()],
        (["diff"], 2) => vec!["two snapshots to compare".to_owned()],
        _ => names.iter().map(|name| called(&of(name))).collect(),
    };
    let names = match &names[..] {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        names => names.concat(),
    };
    Failure::usage(format!("`{}` needs {names}", typed.name())).with_help(typed.usage())
}

fn called(name: &str) -> String {
    let known = ARGUMENTS.iter().find(|(known, _)| *known == name);
    known.map_or(name, |(_, called)| called).to_owned()
}

/// A word too many.
fn extra_word(word: &str, typed: &Typed<'_>) -> Failure {
    let name = typed.name();
    let words = typed.rest.iter().filter(|typed| *typed != word);
    let others: Vec<String> = words.cloned().collect();
    let with_option = |option: &str, value: &str| {
        let mut words = others.clone();
        words.extend([option.to_owned(), value.to_owned()]);
        typed.with(&words)
    };
    if matches!(&*name, "add" | "replace" | "compact") {
        return Failure::usage("the node is one argument, in quotes").with_help(typed.usage());
    }
    if let Some(address) = address(word).filter(|_| typed.has("at")) {
        return Failure::usage(format!("the snapshot to {name} is the value of `--at`"))
            .with_help(with_option("--at", &address));
    }
    if typed.has("output") && is_file(word) && is_file_first(typed) {
        return Failure::usage("the output is the value of `-o`")
            .with_help(with_option("-o", word));
    }
    let mut pieces = typed.rest.iter().filter(|word| is_selector(word));
    if let (Some(a), Some(b), None) = (pieces.next(), pieces.next(), pieces.next())
        && name == "log"
        && address(a).is_some()
        && address(b).is_some()
    {
        let session = typed.rest.iter().filter(|word| is_file(word));
        return Failure::usage("`log` lists all snapshots and takes no times")
            .with_help(format!("pactql diff {} {a} {b}", joined(session)));
    }
    let count = typed.rest.iter().filter(|word| is_selector(word)).count();
    if let Some(first) = typed.rest.iter().position(|word| is_selector(word))
        && count > 1
        && typed.has("edition")
    {
        return unquoted(typed, first);
    }
    if is_file(word) && is_file_first(typed) {
        let message = format!("`{name}` takes one session; `{word}` is a second one");
        return Failure::usage(message).with_help(typed.with(&others));
    }
    Failure::usage(format!("`{name}` takes no argument `{word}` here")).with_help(typed.usage())
}

fn is_file_first(typed: &Typed<'_>) -> bool {
    typed.rest.first().is_some_and(|first| is_file(first))
}

/// A selector in several words, of which the first is at `first`.
fn unquoted(typed: &Typed<'_>, first: usize) -> Failure {
    let is_piece = |word: &&String| !word.starts_with("--");
    // The snapshots that `diff` compares come first; `log` has no time.
    let times = typed.rest[first..]
        .iter()
        .take_while(|word| word.starts_with('@'));
    let times = times.count();
    let (first, skipped) = match &typed.names[..] {
        ["diff"] => (first + times.min(2), 0),
        ["log"] => (first, times),
        _ => (first, 0),
    };
    let (before, pieces) = typed.rest.split_at(first);
    let pieces = &pieces[skipped.min(pieces.len())..];
    let count = pieces.iter().take_while(is_piece).count();
    let (pieces, after) = pieces.split_at(count);
    let mut line = typed.with(before);
    line.extend([" ", &in_quotes(&pieces.join(" "))]);
    if !after.is_empty() {
        line.extend([" ", &joined(after)]);
    }
    not_one_argument().with_help(line)
}

/// A selector that the shell cut into words.
pub(super) fn not_one_argument() -> Failure {
    Failure::plain(Exit::Usage, "a selector is one argument, in quotes")
}

/// The address of a snapshot, with its `@`.
pub(super) fn address(word: &str) -> Option<String> {
    let plain = word.strip_prefix('@').unwrap_or(word);
    let number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let is_address = plain == "t0"
        || plain.strip_prefix("t-").is_some_and(number)
        || plain.strip_prefix('c').is_some_and(number);
    is_address.then(|| format!("@{plain}"))
}

/// The two addresses of a range of snapshots.
pub(super) fn range(word: &str) -> Option<[&str; 2]> {
    let (a, b) = word.split_once("..")?;
    (address(a).is_some() && address(b).is_some()).then_some([a, b])
}

/// One snapshot where `diff` takes two.
pub(super) fn both_snapshots(session: &str, a: &str) -> Failure {
    let help = match address(a) {
        Some(address) if address != "@t0" => format!("pactql diff {} {a} @t0", quoted(session)),
        _ => format!("pactql diff {} @t-1 @t0", quoted(session)),
    };
    Failure::usage("`diff` takes two snapshots, or two sessions").with_help(help)
}

/// A range where `diff` takes two snapshots.
pub(super) fn two_arguments() -> Failure {
    Failure::usage("`diff` takes two snapshots, one argument each")
}
