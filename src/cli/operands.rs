//! The sessions and selectors among the arguments of a command, and what is said if they are
//! missing, swapped, or cut into words by the shell.

use super::usage::not_one_argument;
use super::words::{exists, in_quotes, is_file, is_selector, joined, quoted};
use crate::present::Failure;

/// Splits the arguments of `select`, whose last one is the selector unless `given` has some.
/// Returns the sessions and the selectors.
///
/// # Errors
/// The selector or the sessions are missing, swapped, or the selector is several arguments.
pub(super) fn split<'a>(
    arguments: &'a [String],
    given: &'a [String],
) -> Result<(&'a [String], &'a [String]), Failure> {
    if let [.., last] = given {
        return match arguments.iter().position(|word| is_selector(word)) {
            None => Ok((arguments, given)),
            Some(_) => Err(cut(arguments, Some(last))),
        };
    }
    match arguments {
        [] => Err(Failure::usage("`select` needs a session and a selector")
            .with_help("pactql select SESSION SELECTOR")),
        [only] if is_selector(only) => Err(Failure::usage("`select` needs a session")
            .with_help(format!("pactql select SESSION {}", in_quotes(only)))),
        [only] => Err(no_selector("select", &[quoted(only)], "")),
        [names @ .., last] => match names.iter().position(|word| is_selector(word)) {
            Some(_) if is_file(last) => {
                let (selectors, files): (Vec<&String>, Vec<&String>) =
                    arguments.iter().partition(|word| is_selector(word));
                Err(swapped("select", &joined(files), &selectors))
            }
            Some(_) => Err(cut(arguments, None)),
            None if exists(last) || is_file(last) => {
                let files: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
                Err(no_selector("select", &files, "-e "))
            }
            None => Ok((names, &arguments[names.len()..])),
        },
    }
}

/// Checks the session and the selector of a command that takes one of each.
///
/// # Errors
/// They are swapped, or a file is in the place of the selector.
pub(super) fn check_pair(command: &str, session: &str, selector: &str) -> Result<(), Failure> {
    if is_selector(session) && is_file(selector) {
        let selector_typed = session.to_owned();
        return Err(swapped(command, &quoted(selector), &[&selector_typed]));
    }
    if is_selector(selector) || !is_file(selector) {
        return Ok(());
    }
    if command == "log" {
        let message = format!("`log` takes one session; `{selector}` is a second one");
        return Err(Failure::usage(message).with_help(format!("pactql log {}", quoted(session))));
    }
    Err(no_selector(command, &[quoted(session)], ""))
}

/// Checks the selector of a command that takes no session with it.
///
/// # Errors
/// It is a file.
pub(super) fn check_selector(command: &str, selector: &str) -> Result<(), Failure> {
    if is_selector(selector) || !is_file(selector) || selector == "-" {
        return Ok(());
    }
    if command == "explain" {
        return Err(no_selector(command, &[quoted(selector)], ""));
    }
    let message = format!("`{command}` takes a selector, and `{selector}` is a file");
    Err(Failure::usage(message).with_help(format!(
        "`pactql verify {}` checks a session",
        quoted(selector)
    )))
}

/// Checks the selectors of a command that takes several.
///
/// # Errors
/// One is a file, or they are the pieces of one selector.
pub(super) fn check_selectors(command: &str, selectors: &[String]) -> Result<(), Failure> {
    for selector in selectors {
        check_selector(command, selector)?;
    }
    match selectors {
        // A time alone is no selector.
        [time, _, ..] if time.starts_with('@') && !time.contains([' ', '.', '{', '#', '(']) => {
            let selector = in_quotes(&selectors.join(" "));
            Err(not_one_argument().with_help(format!("pactql {command} {selector}")))
        }
        _ => Ok(()),
    }
}

/// Checks the snapshots that `diff` compares.
///
/// # Errors
/// One of them is a file.
pub(super) fn check_snapshots(session: &str, a: &str, b: &str) -> Result<(), Failure> {
    if [a, b].into_iter().any(is_file) {
        let session = if exists(session) { session } else { a };
        return Err(
            Failure::usage("`diff` compares two snapshots of one session")
                .with_help(format!("pactql diff {} @t-1 @t0", quoted(session))),
        );
    }
    Ok(())
}

/// Sessions without a selector.
fn no_selector(command: &str, files: &[String], option: &str) -> Failure {
    Failure::usage(format!("`{command}` needs a selector")).with_help(format!(
        "pactql {command} {} {option}\"*\"",
        files.join(" ")
    ))
}

/// The selector comes before the session.
fn swapped(command: &str, files: &str, selectors: &[&String]) -> Failure {
    let selectors: Vec<&str> = selectors.iter().map(|word| word.as_str()).collect();
    Failure::usage("the session comes first, then the selector").with_help(format!(
        "pactql {command} {files} {}",
        in_quotes(&selectors.join(" "))
    ))
}

/// The sessions of a command that takes its selector after `-e`, which is missing.
pub(super) fn after_option(command: &str, arguments: &[String]) -> Failure {
    let (pieces, files): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|word| is_selector(word));
    let pieces: Vec<&str> = pieces.into_iter().map(String::as_str).collect();
    let selector = match pieces.is_empty() {
        true => in_quotes("*"),
        false => in_quotes(&pieces.join(" ")),
    };
    let files = match files.is_empty() {
        true => "SESSION".to_owned(),
        false => joined(files),
    };
    Failure::usage(format!("`{command}` needs a selector after `-e`"))
        .with_help(format!("pactql {command} {files} -e {selector}"))
}

/// A selector that the shell cut into several arguments; `start` is what `-e` got of it.
fn cut(arguments: &[String], start: Option<&String>) -> Failure {
    let first = arguments.iter().position(|word| is_selector(word));
    let first = first.unwrap_or(arguments.len());
    let (files, pieces) = arguments.split_at(first);
    let is_control = |word: &String| {
        let time = ["@t", "@c", "@*", "@history"];
        word.starts_with('@') && !time.iter().any(|start| word.starts_with(start))
    };
    if let [first, others @ ..] = pieces
        && start.is_none()
        && first.contains(' ')
        && !others.iter().any(is_control)
    {
        let each: Vec<String> = pieces.iter().map(|word| in_quotes(word)).collect();
        return Failure::usage("several selectors are given after `-e`, one each").with_help(
            format!("pactql select {} -e {}", joined(files), each.join(" -e ")),
        );
    }
    let pieces = start.into_iter().chain(pieces).map(String::as_str);
    let selector = in_quotes(&pieces.collect::<Vec<_>>().join(" "));
    let files = match files {
        [] => "SESSION".to_owned(),
        files => joined(files),
    };
    not_one_argument().with_help(match start {
        Some(_) => format!("pactql select {files} -e {selector}"),
        None => format!("pactql select {files} {selector}"),
    })
}
