//! `pact_list_sessions`: which sessions there are, and what they have.

use super::arguments::Arguments;
use super::described::{Attributes, Described, describe};
use super::found::{Found, FoundCandidate, FoundFile};
use super::state::{Answer, ServerState};
use crate::app::present::{Failure, answer};
use crate::support::cancel;
use serde::Serialize;
use std::path::Path;

/// How many sessions are described, unless the client says otherwise.
const DESCRIBED: usize = 50;

/// How many bytes of files one call opens.
const OPENED_BYTES: u64 = 256 << 20;

/// After this many files that are not sessions, no further one is opened: the directory is not one of sessions.
const OTHERS: usize = 500;

const SHOWN: usize = 5;

/// The names of how many sessions that were not opened are shown.
const NAMED: usize = 100;

#[derive(Debug, Default, Serialize)]
struct SessionListing {
    /// The longest first: by snapshots, turns, then name.
    sessions: Vec<Described>,
    /// What the nodes of these sessions have besides the headers.
    attributes: Attributes,
    /// Sessions, or what may be some, that were not opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_opened: Vec<Unopened>,
    /// How many there are besides.
    #[serde(skip_serializing_if = "is_none")]
    not_opened_more: usize,
    /// Files that are neither sessions nor logs of one.
    no_session: OtherFiles,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

#[derive(Debug, Serialize)]
struct Unopened {
    session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

#[derive(Debug, Default, Serialize)]
struct OtherFiles {
    files: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    some: Vec<String>,
}

struct ListingMaker<'a> {
    state: &'a ServerState,
    listing: SessionListing,
    limit: usize,
    bytes: u64,
}

/// `pact_list_sessions`: the sessions below a directory, each opened and described, until enough are.
pub(super) fn list(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let name = arguments.text("root").unwrap_or(".");
    let missing = || {
        let message = format!("{name} is not a directory");
        Failure::plain(crate::app::present::Exit::Missing, message)
    };
    let place = state.root.resolve(name)?.ok_or_else(missing)?;
    let dir = state
        .root
        .handle()
        .open_dir(&place)
        .map_err(|_| missing())?;
    let path: Vec<&str> = Path::new(name)
        .iter()
        .filter_map(|part| part.to_str().filter(|part| *part != "."))
        .collect();
    let found = Found::below(&dir, &path.join("/")).map_err(|error| Failure::file(name, &error))?;
    let mut maker = ListingMaker {
        state,
        listing: SessionListing {
            cut: found.cut,
            ..SessionListing::default()
        },
        limit: arguments.size("limit").unwrap_or(DESCRIBED),
        bytes: OPENED_BYTES,
    };
    for candidate in found.candidates {
        cancel::check()?;
        maker.add(candidate)?;
    }
    let mut listing = maker.listing;
    listing.sessions.sort_by(|a, b| {
        let length = |one: &Described| (one.snapshots, one.turns);
        (length(b), &a.session).cmp(&(length(a), &b.session))
    });
    Ok(answer::json(&listing)?.into())
}

impl ListingMaker<'_> {
    fn add(&mut self, candidate: FoundCandidate) -> Result<(), Failure> {
        match candidate {
            FoundCandidate::File(part) => self.file(part),
            FoundCandidate::Store(part) => {
                let store = self.state.kept.stores().open(&self.state.root, &part.path);
                let Ok(store) = store else {
                    self.other(part.path);
                    return Ok(());
                };
                let Ok(infos) = store.sessions("") else {
                    cancel::check()?;
                    self.other(part.path);
                    return Ok(());
                };
                for info in infos {
                    cancel::check()?;
                    let name = format!("{}#{}", part.path, info.name);
                    if !self.describe(name.clone(), None) {
                        self.other(name);
                    }
                }
            }
            FoundCandidate::Directory(name, parts) => {
                let bytes = parts.iter().map(|part| part.bytes).sum();
                if !self.describe(name, Some(bytes)) {
                    // Each may be a log.
                    parts.into_iter().for_each(|part| self.file(part));
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, part: FoundFile) {
        if !self.describe(part.path.clone(), Some(part.bytes)) {
            self.other(part.path);
        }
    }

    fn other(&mut self, name: String) {
        let others = &mut self.listing.no_session;
        others.files += 1;
        if others.some.len() < SHOWN {
            others.some.push(name);
        }
    }

    /// Describes a session, or notes that it was not opened; false if it is none.
    fn describe(&mut self, session: String, bytes: Option<u64>) -> bool {
        let size = bytes.unwrap_or(0);
        let enough = self.listing.sessions.len() >= self.limit
            || self.listing.no_session.files >= OTHERS
            || size > self.bytes;
        if enough {
            if self.listing.not_opened.len() < NAMED {
                self.listing.not_opened.push(Unopened { session, bytes })
            } else {
                self.listing.not_opened_more += 1
            }
            return true;
        }
        self.bytes -= size;
        let Ok(opened) = self.state.kept.open(&self.state.root, &session) else {
            return false;
        };
        let attributes = &mut self.listing.attributes;
        match describe(session, bytes, &opened, attributes) {
            Ok(described) => {
                self.listing.sessions.push(described);
                true
            }
            Err(_) => false,
        }
    }
}
