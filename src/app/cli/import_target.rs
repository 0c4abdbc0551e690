//! Where `pactql import` writes.

use crate::app::present::Failure;
use crate::app::present::stores::Address;

/// Where sessions are written.
pub(super) enum Target<'a> {
    Stdout,
    File(&'a str),
    Directory(&'a str),
    Store(Address<'a>),
}

/// The failure for several sessions where there is a place for one.
pub(super) fn several(target: &Target<'_>, count: usize) -> Failure {
    let place = match target {
        Target::File(path) => format!("the file `{path}`"),
        Target::Store(address) => {
            return Failure::usage(format!("{count} sessions cannot have one name"))
                .with_help(format!("-o {} gives each its own name", address.store));
        }
        _ => "standard output".to_owned(),
    };
    Failure::usage(format!(
        "the logs hold {count} sessions, and {place} takes one"
    ))
    .with_help("`-o DIR` writes one file a session; a new directory's name ends in `/`")
}
