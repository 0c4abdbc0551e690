//! The words of the commands that take a store: which they are, and what is said of others.

use super::words::quoted;
use crate::present::Failure;
use crate::present::stores::{Address, Which};

/// The address that a word must be.
///
/// # Errors
/// It names no store.
pub(super) fn address<'a>(command: &str, word: &'a str) -> Result<Address<'a>, Failure> {
    Address::of(word).ok_or_else(|| {
        let message = format!("`{command}` takes a store, and `{word}` is none");
        Failure::usage(message)
            .with_help("a store is a path that ends in .db, `sqlite:PATH`, or a postgres:// URL")
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
