//! The words of the commands that take a store: which they are, and what is said of others.

use super::words::{joined, quoted};
use crate::app::present::stores::{self, Access, Address, Which};
use crate::app::present::{Exit, Failure};
use crate::store::Store;
use crate::support::diag::Code;
use std::path::Path;

/// The address that a word must be.
///
/// # Errors
/// It names no store.
pub(super) fn address<'a>(command: &str, word: &'a str) -> Result<Address<'a>, Failure> {
    Address::of(word).ok_or_else(|| {
        let message = format!("`{command}` takes a store, and `{word}` is none");
        let with_ending = format!("{word}.db");
        let help = match () {
            () if Path::new(&with_ending).is_file() => {
                format!("did you mean {}?", quoted(&with_ending))
            }
            () if Path::new(word).is_file() => {
                format!(
                    "pactql import {} -o agents.db puts it into one",
                    quoted(word)
                )
            }
            () => {
                "a store is a path that ends in .db, `sqlite:PATH`, or a postgres:// URL".to_owned()
            }
        };
        Failure::usage(message).with_help(help)
    })
}

/// A store, or those sessions of it that match.
///
/// # Errors
/// As [`address`]; an empty name.
pub(super) fn several<'a>(command: &str, word: &'a str) -> Result<Address<'a>, Failure> {
    let address = address(command, word)?;
    if address.which == Which::One("") {
        address.one()?;
    }
    Ok(address)
}

/// A store as a whole.
///
/// # Errors
/// As [`address`]; it names sessions.
pub(super) fn whole<'a>(command: &str, word: &'a str) -> Result<&'a str, Failure> {
    let address = address(command, word)?;
    match address.which {
        Which::All => Ok(address.store),
        Which::Matching(_) | Which::One(_) => {
            let message = format!("`{command}` takes a whole store");
            Err(Failure::usage(message)
                .with_help(format!("pactql {command} {}", quoted(address.store))))
        }
    }
}

/// One session of a store: the store, and the name.
///
/// # Errors
/// As [`address`]; it does not name one session.
pub(super) fn one<'a>(command: &str, word: &'a str) -> Result<(&'a str, &'a str), Failure> {
    let address = address(command, word)?;
    Ok((address.store, address.one()?))
}

/// Adds to the failure of a command line what may have been meant by its words: a session whose name was
/// typed without the `#`, or was cut by the shell.
pub(super) fn advise(failure: Failure, words: &[String]) -> Failure {
    if !matches!(failure.exit(), Exit::Usage | Exit::Selector | Exit::Missing) {
        return failure;
    }
    let meant = (0..words.len()).find_map(|at| without_sign(words, at).or_else(|| cut(words, at)));
    if let Some(meant) = meant {
        return failure.advised(format!("pactql {}", joined(&meant)));
    }
    match &failure {
        Failure::Selector(error, _) if error.code() == Code::SessionNotFound => {
            let general = error.first().help.as_deref().unwrap_or_default();
            let named = words.iter().find_map(|word| Address::of(word));
            match named.filter(|_| general.starts_with("`pactql sessions`")) {
                Some(address) => {
                    let store = quoted(address.store);
                    failure.advised(format!("`pactql sessions {store}` lists its sessions"))
                }
                None => failure,
            }
        }
        _ => failure,
    }
}

/// Opens the store of a word, if it is a file.
fn opened(address: Address<'_>) -> Option<Store> {
    stores::path(address.store)?;
    stores::open(address.store, Access::Read).ok()
}

fn has(store: &Store, name: &str) -> bool {
    let found = store.sessions(name);
    found.is_ok_and(|found| found.iter().any(|info| info.name == name))
}

/// The words with a `#` between a store and the name of one of its sessions, which are the words from `at`.
fn without_sign(words: &[String], at: usize) -> Option<Vec<String>> {
    let [store, name, rest @ ..] = &words[at..] else {
        return None;
    };
    let address = Address::of(store).filter(|address| address.which == Which::All)?;
    if name.starts_with('-') || Path::new(name).exists() || !has(&opened(address)?, name) {
        return None;
    }
    Some([&words[..at], &[format!("{store}#{name}")], rest].concat())
}

/// The words with those from `at` put together that are the name of a session with blanks in it.
fn cut(words: &[String], at: usize) -> Option<Vec<String>> {
    let address = Address::of(&words[at])?;
    let Which::One(first) = address.which else {
        return None;
    };
    let store = opened(address).filter(|store| !has(store, first))?;
    let mut whole = first.to_owned();
    for (more, word) in words.iter().enumerate().skip(at + 1) {
        whole = format!("{whole} {word}");
        if has(&store, &whole) {
            let address = format!("{}#{whole}", address.store);
            return Some([&words[..at], &[address], &words[more + 1..]].concat());
        }
    }
    None
}
