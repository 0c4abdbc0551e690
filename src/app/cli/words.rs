//! Arguments as words: which are selectors and which are files, how a shell is given them, and what is said if they are
//! missing, swapped, or cut into words by the shell.

use crate::app::present::folders::part_of;
pub(super) use crate::app::present::sessions::typed_address as address;
pub(super) use crate::app::present::shell::{in_quotes, quoted};
use crate::app::present::stores::StoreAddress;
use crate::app::present::{Failure, Result};
use clap::{ColorChoice, ValueEnum};
use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

/// What was typed, with the name of the program.
pub(super) static ARGUMENTS: OnceLock<Vec<OsString>> = OnceLock::new();

pub(super) fn words() -> Vec<String> {
    let words = ARGUMENTS.get().map_or(&[][..], Vec::as_slice);
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    words.iter().skip(1).map(text).collect()
}

/// Whether the arguments, which may not parse, give an option this value.
pub(super) fn asks_for(option: &str, value: &str) -> bool {
    let words = words();
    let one = |word: &String| word.split_once('=') == Some((option, value));
    let two = |pair: &[String]| pair[0] == option && pair[1] == value;
    words.iter().any(one) || words.windows(2).any(two)
}

/// Whether the arguments, which may not parse, ask for JSON.
pub(super) fn asks_for_json() -> bool {
    asks_for("--format", "json") || words().iter().any(|word| word == "--json")
}

/// When help and notes are coloured: they are printed before the arguments are known, or without them.
pub(super) fn help_color() -> ColorChoice {
    let mut all = ColorChoice::value_variants().iter().copied();
    all.find(|color| asks_for("--color", &color.to_string()))
        .unwrap_or_default()
}

/// Whether a word reads as a selector, or as a piece of one, and no file has this name.
pub(super) fn is_selector(word: &str) -> bool {
    !exists(word) && !has_file_ending(word) && reads_as_selector(word)
}

/// How a selector begins that begins with a word.
const BARE: [&str; 3] = ["depth(", "within(", "none "];

pub(super) fn reads_as_selector(word: &str) -> bool {
    let mut letters = word.trim_start().chars();
    match letters.next() {
        Some('@' | '^' | '#' | '[' | '{' | '(' | '*' | '>' | '?' | '+') => true,
        // A class or a type; a path such as `./x` or `..` is none.
        Some('.') => letters.next().is_some_and(char::is_alphabetic) && !word.contains('/'),
        Some(':') => letters.next().is_some_and(char::is_alphabetic),
        _ => BARE.iter().any(|start| word.starts_with(start)),
    }
}

/// Whether a word names a file, one that exists or one with the ending of a session or a log; or a store
/// or its sessions.
pub(super) fn is_file(word: &str) -> bool {
    exists(word) || has_file_ending(word) || StoreAddress::parse(word).is_some()
}

/// Whether there is a file, a directory or a store with this name, or one with the session that it means, or it means
/// standard input.
pub(super) fn exists(word: &str) -> bool {
    word == "-"
        || Path::new(word).exists()
        || part_of(word).is_some()
        || StoreAddress::parse(word).is_some_and(StoreAddress::exists)
}

fn has_file_ending(word: &str) -> bool {
    let word = word.strip_suffix(".gz").unwrap_or(word);
    let known = [".json", ".jsonl", ".ndjson"];
    !word.contains(char::is_whitespace) && known.iter().any(|end| word.ends_with(end))
}

/// Words as a shell takes them, each [`quoted`].
pub(super) fn joined<'a>(words: impl IntoIterator<Item = &'a String>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// The command line with other words in the place of some of its arguments.
pub(super) fn retyped(old: &[String], new: Vec<String>) -> String {
    let mut words = words();
    let mut at = words.len();
    for old in old {
        if let Some(found) = words.iter().rposition(|word| word == old) {
            words.remove(found);
            at = found.min(at);
        }
    }
    words.splice(at..at, new);
    format!("pactql {}", joined(&words))
}

/// The words with those that follow each other and are pieces of a selector put together. One with a blank was
/// in quotes.
pub(super) fn whole(words: &[String]) -> Vec<String> {
    let mut whole: Vec<String> = Vec::new();
    let is_piece = |word: &str| is_selector(word) && !word.contains(' ');
    let mut is_open = false;
    for word in words {
        match whole.last_mut() {
            Some(last) if is_open && is_piece(word) => last.extend([" ", word]),
            _ => whole.push(word.clone()),
        }
        is_open = is_piece(word);
    }
    whole
}

pub(super) fn not_one_argument() -> Failure {
    Failure::usage("a selector is one argument, in quotes")
}

/// Splits the arguments of a command whose last one is the selector, unless `given` has some. Returns the
/// sessions and the selectors.
pub(super) fn split_operands<'a>(
    command: &str,
    arguments: &'a [String],
    given: &'a [String],
) -> Result<(&'a [String], &'a [String])> {
    let is_in = |words: &[String]| words.iter().any(|word| is_selector(word));
    if !given.is_empty() {
        return if is_in(arguments) {
            Err(not_one_argument().with_help("several selectors are given after `-e`, one each"))
        } else {
            Ok((arguments, given))
        };
    }
    match arguments {
        [names @ .., last] if !names.is_empty() && !is_in(names) && !is_file(last) => {
            Ok((names, std::slice::from_ref(last)))
        }
        [only] if is_selector(only) => Ok((&[], arguments)),
        [names @ .., last] if is_in(names) && !is_selector(last) && !is_file(last) => {
            let message = format!("a selector is one argument, in quotes; `{last}` is one more");
            Err(Failure::usage(message)
                .with_help("in double quotes, the texts in it are in single ones"))
        }
        _ => Err(mended(command, arguments)),
    }
}

/// The failure for sessions and selectors in a wrong order or number, with the command line in the right one.
fn mended(command: &str, arguments: &[String]) -> Failure {
    let all = whole(arguments);
    let pieces = all.len() < arguments.len();
    let (selectors, files): (Vec<String>, Vec<String>) =
        all.into_iter().partition(|word| is_selector(word));
    let message = match (selectors.len(), files.len()) {
        (0, 0) => format!("`{command}` needs a session and a selector"),
        (0, _) => format!("`{command}` needs a selector"),
        _ if pieces => "a selector is one argument, in quotes".to_owned(),
        (_, 0) => format!("`{command}` needs a session"),
        (1, _) => "the session comes first, then the selector".to_owned(),
        _ => "several selectors are given after `-e`, one each".to_owned(),
    };
    let with_option = command == "select" && (selectors.len() > 1 || files.len() > 1);
    let or = |words: Vec<String>, word: &str| match &words[..] {
        [] => vec![word.to_owned()],
        _ => words,
    };
    let option = with_option.then(|| "-e".to_owned());
    let selectors = or(selectors, "*").into_iter();
    let selectors = selectors.flat_map(|selector| option.clone().into_iter().chain([selector]));
    let new = or(files, "SESSION").into_iter().chain(selectors).collect();
    Failure::usage(message).with_help(retyped(arguments, new))
}

/// Checks the selectors of a command that takes no session with them.
pub(super) fn check_selectors(command: &str, selectors: &[String]) -> Result<()> {
    let is_other = |word: &&String| is_file(word) && *word != "-" && !is_selector(word);
    if let Some(file) = selectors.iter().find(is_other) {
        let message = format!("`{command}` takes a selector, and `{file}` is a file");
        let help = "a selector is an argument such as \"@t0 .cb\"";
        return Err(Failure::usage(message).with_help(help));
    }
    match selectors {
        // A time alone is not a selector.
        [time, _, ..] if address(time).is_some() => {
            Err(not_one_argument().with_help(retyped(selectors, whole(selectors))))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_file, is_selector};

    #[test]
    fn selectors_and_files_are_told_apart() {
        for word in [
            "@t0",
            "@t0 .cb",
            ".cb",
            ".cb[role='x']",
            "^ah",
            "#k",
            "*",
            "+a",
            ":first",
            "depth(1)",
        ] {
            assert!(is_selector(word) && !is_file(word), "{word}");
        }
        for word in [
            "session.jsonl",
            "./x.json",
            "a.json.gz",
            ".hidden.jsonl",
            "Cargo.toml",
            "missing.db",
            "missing.db#a",
            "postgres://host/agents#a-*",
            "-",
        ] {
            assert!(is_file(word) && !is_selector(word), "{word}");
        }
        for word in ["missing", "../x", "", "runs/"] {
            assert!(!is_file(word) && !is_selector(word), "{word}");
        }
    }
}
