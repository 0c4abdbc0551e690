//! The sessions and selectors among the arguments of a command, and what is said if they are missing, swapped, or
//! cut into words by the shell.

use super::typed::{address, not_one_argument, retyped, whole};
use super::words::{is_file, is_selector};
use crate::app::present::Failure;

/// Splits the arguments of a command whose last one is the selector, unless `given` has some. Returns the
/// sessions and the selectors.
pub(super) fn split<'a>(
    command: &str,
    arguments: &'a [String],
    given: &'a [String],
) -> Result<(&'a [String], &'a [String]), Failure> {
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
pub(super) fn check_selectors(command: &str, selectors: &[String]) -> Result<(), Failure> {
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
