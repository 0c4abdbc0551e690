//! The sessions and selectors among the arguments of a command, and what is said if they are
//! missing, swapped, or cut into words by the shell.

use super::options::Format;
use super::typed::options;
use super::usage::{address, not_one_argument, range, two_arguments};
use super::words::{exists, in_quotes, is_file, is_selector, joined, quoted};
use crate::app::present::Failure;

/// Splits the arguments of `select`, whose last one is the selector unless `given` has some.
/// Returns the sessions and the selectors.
///
/// # Errors
/// The selector or the sessions are missing, swapped, or the selector is several arguments.
pub(super) fn split<'a>(
    arguments: &'a [String],
    given: &'a [String],
) -> Result<(&'a [String], &'a [String]), Failure> {
    if !given.is_empty() {
        let is_cut = given.last().is_some_and(|last| is_open(last));
        let is_piece = |word: &String| is_selector(word) || (is_cut && !is_file(word));
        return match arguments.iter().position(is_piece) {
            None => Ok((arguments, given)),
            Some(first) => Err(after_selectors(arguments, first, given)),
        };
    }
    match arguments {
        [] => Err(Failure::usage("`select` needs a session and a selector")
            .with_help("pactql select SESSION SELECTOR")),
        [only] if is_selector(only) => Err(Failure::usage("`select` needs a session").with_help(
            format!("pactql select SESSION {}{}", in_quotes(only), options()),
        )),
        [only] => Err(no_selector("select", &[quoted(only)], "")),
        [names @ .., last] => match names.iter().position(|word| is_selector(word)) {
            Some(_) if is_file(last) => {
                let (selectors, files): (Vec<&String>, Vec<&String>) =
                    arguments.iter().partition(|word| is_selector(word));
                Err(swapped("select", &joined(files), &selectors))
            }
            Some(first) if !is_selector(last) => Err(not_selector(arguments, first, last)),
            Some(first) => Err(cut(arguments, first)),
            None if exists(last) || is_file(last) => {
                let files: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
                Err(no_selector("select", &files, "-e "))
            }
            None => Ok((names, &arguments[names.len()..])),
        },
    }
}

/// Splits the arguments of a command whose last one is the selector.
///
/// # Errors
/// The selector or the sessions are missing, or swapped.
pub(super) fn split_last<'a>(
    command: &str,
    arguments: &'a [String],
) -> Result<(&'a [String], &'a str), Failure> {
    let needs = |what: &str| Failure::usage(format!("`{command}` needs {what}"));
    match arguments {
        [] => Err(needs("a session and a selector")
            .with_help(format!("pactql {command} SESSION SELECTOR"))),
        [only] if is_selector(only) => Err(needs("a session").with_help(format!(
            "pactql {command} SESSION {}{}",
            in_quotes(only),
            options()
        ))),
        [only] => Err(no_selector(command, &[quoted(only)], "")),
        [names @ .., last] => match names.iter().find(|word| is_selector(word)) {
            Some(selector) if is_file(last) => Err(swapped(command, &quoted(last), &[selector])),
            Some(_) => Err(Failure::usage("a selector is one argument, in quotes")
                .with_help(format!("pactql {command} SESSION \"SELECTOR\""))),
            None if exists(last) || is_file(last) => {
                let files: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
                Err(no_selector(command, &files, ""))
            }
            None => Ok((names, last)),
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
        let help = format!("pactql log {}{}", quoted(session), options());
        return Err(Failure::usage(message).with_help(help));
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
            let help = format!("pactql {command} {selector}{}", options());
            Err(not_one_argument().with_help(help))
        }
        _ => Ok(()),
    }
}

/// Checks the session and the snapshots that `diff` compares.
///
/// # Errors
/// One of the snapshots is a file: they are swapped, or two sessions are compared.
pub(super) fn check_snapshots(
    session: &str,
    a: &str,
    b: &str,
    selector: Option<&String>,
) -> Result<(), Failure> {
    if let Some([older, newer]) = range(a) {
        let (session, selector) = (quoted(session), in_quotes(b));
        let options = options();
        return Err(two_arguments().with_help(format!(
            "pactql diff {session} {older} {newer} {selector}{options}"
        )));
    }
    if ![a, b].into_iter().any(is_file) {
        return Ok(());
    }
    let is_snapshot = |word: &&str| *word == "working" || address(word).is_some();
    let (snapshots, files): (Vec<&str>, Vec<&str>) =
        [session, a, b].into_iter().partition(is_snapshot);
    let selector = selector.map(|selector| format!(" {}", in_quotes(selector)));
    let rest = selector.unwrap_or_default() + &options();
    if let ([a, b], [file]) = (&snapshots[..], &files[..]) {
        return Err(
            Failure::usage("the session comes first, then the snapshots")
                .with_help(format!("pactql diff {} {a} {b}{rest}", quoted(file))),
        );
    }
    let session = if exists(session) { session } else { a };
    Err(
        Failure::usage("`diff` compares two snapshots of one session")
            .with_help(format!("pactql diff {} @t-1 @t0{rest}", quoted(session))),
    )
}

/// Sessions without a selector.
fn no_selector(command: &str, files: &[String], option: &str) -> Failure {
    Failure::usage(format!("`{command}` needs a selector")).with_help(format!(
        "pactql {command} {} {option}\"*\"{}",
        files.join(" "),
        options()
    ))
}

/// The selector comes before the session.
fn swapped(command: &str, files: &str, selectors: &[&String]) -> Failure {
    let selectors: Vec<&str> = selectors.iter().map(|word| word.as_str()).collect();
    Failure::usage("the session comes first, then the selector").with_help(format!(
        "pactql {command} {files} {}{}",
        in_quotes(&selectors.join(" ")),
        options()
    ))
}

/// The sessions of a command that takes its selector after `-e`, which is missing.
pub(super) fn after_option(command: &str, arguments: &[String]) -> Failure {
    let (pieces, files): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|word| is_selector(word));
    let pieces: Vec<&str> = pieces.into_iter().map(String::as_str).collect();
    let selector = if pieces.is_empty() {
        in_quotes("*")
    } else {
        in_quotes(&pieces.join(" "))
    };
    let files = if files.is_empty() {
        "SESSION".to_owned()
    } else {
        joined(files)
    };
    Failure::usage(format!("`{command}` needs a selector after `-e`")).with_help(format!(
        "pactql {command} {files} -e {selector}{}",
        options()
    ))
}

/// Words that read as selectors, the first of which is at `first`, though `-e` gave some.
fn after_selectors(arguments: &[String], first: usize, given: &[String]) -> Failure {
    let (files, pieces) = arguments.split_at(first);
    let files = match files {
        [] => "SESSION".to_owned(),
        files => joined(files),
    };
    let (start, before) = given.split_last().map_or(("", given), |(a, b)| (&**a, b));
    let each = |words: &mut dyn Iterator<Item = &str>| -> String {
        words
            .map(|word| format!(" -e {}", in_quotes(word)))
            .collect()
    };
    let before = each(&mut before.iter().map(String::as_str));
    let options = options();
    // A selector that was typed in quotes is one, and another one follows.
    let is_whole = start.contains([' ', '[']) && !is_open(start);
    if is_whole {
        let more = each(&mut std::iter::once(start).chain(pieces.iter().map(String::as_str)));
        return several(format!("pactql select {files}{before}{more}{options}"));
    }
    let pieces = std::iter::once(start).chain(pieces.iter().map(String::as_str));
    let (failure, selector) = together(&pieces.collect::<Vec<_>>());
    failure.with_help(format!(
        "pactql select {files}{before} -e {selector}{options}"
    ))
}

/// A selector that the shell cut into several arguments, or several selectors; `first` is where
/// the first one is.
fn cut(arguments: &[String], first: usize) -> Failure {
    let (files, pieces) = arguments.split_at(first);
    let files = match files {
        [] => "SESSION".to_owned(),
        files => joined(files),
    };
    let is_control = |word: &String| {
        let time = ["@t", "@c", "@*", "@history"];
        word.starts_with('@') && !time.iter().any(|start| word.starts_with(start))
    };
    if let [first, others @ ..] = pieces
        && first.contains(' ')
        && !is_open(first)
        && !others.iter().any(is_control)
    {
        let each: Vec<String> = pieces.iter().map(|word| in_quotes(word)).collect();
        let each = each.join(" -e ");
        return several(format!("pactql select {files} -e {each}{}", options()));
    }
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let (failure, selector) = together(&pieces);
    failure.with_help(format!("pactql select {files} {selector}{}", options()))
}

fn several(help: String) -> Failure {
    Failure::usage("several selectors are given after `-e`, one each").with_help(help)
}

/// A word after a selector, the first of which is at `first`, that is neither a selector nor a
/// file: a format, a number, or a piece.
fn not_selector(arguments: &[String], first: usize, last: &str) -> Failure {
    let (before, _) = arguments.split_at(arguments.len() - 1);
    let whole = !before.last().is_some_and(|word| is_open(word));
    let format = last.trim_start_matches("format=").trim_start_matches("--");
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    let options = options();
    let selector = before[first..].join(" ");
    let line = match &before[..first] {
        [] => "pactql select SESSION".to_owned(),
        files => format!("pactql select {}", joined(files)),
    };
    if whole && Format::is_name(format) {
        return Failure::usage("the format is the value of `--format`").with_help(format!(
            "{line} {}{options} --format {format}",
            in_quotes(&selector)
        ));
    }
    if whole && is_number {
        let (message, selector) = if options.contains(" --count") {
            (
                format!("`--count` takes no value, found `{last}`"),
                selector,
            )
        } else {
            (
                format!("`@limit={last}` in the selector takes the first {last}"),
                format!("{selector} @limit={last}"),
            )
        };
        return Failure::usage(message)
            .with_help(format!("{line} {}{options}", in_quotes(&selector)));
    }
    cut(arguments, first)
}

/// Whether a bracket is open at the end of a piece.
fn is_open(piece: &str) -> bool {
    piece.matches('[').count() > piece.matches(']').count()
}

/// The pieces of one selector, joined and in quotes, and the failure. If a bracket was open where
/// the shell cut, the quotes inside it were taken away, and are put back.
fn together(pieces: &[&str]) -> (Failure, String) {
    let selector = pieces.join(" ");
    let Some(value) = pieces.iter().find_map(|piece| unquoted_value(piece)) else {
        return (not_one_argument(), in_quotes(&selector));
    };
    let at = selector.find(value).unwrap_or(0);
    let (before, value) = selector.split_at(at);
    let (value, after) = value.split_at(value.find(']').unwrap_or(value.len()));
    let literal = crate::app::present::literal(value.trim());
    let failure =
        Failure::usage("inside a selector in double quotes, texts are written in single quotes");
    (failure, in_quotes(&format!("{before}{literal}{after}")))
}

/// The start of the value of the test that is open at the end of a piece, if it has no quotes.
fn unquoted_value(piece: &str) -> Option<&str> {
    let start = piece.rfind('[').filter(|_| is_open(piece))?;
    let test = &piece[start..];
    let operator = test.rfind(['=', '~', '<', '>'])?;
    let value = &test[operator + 1..];
    (!value.is_empty() && !value.contains(['\'', '"'])).then_some(value)
}
