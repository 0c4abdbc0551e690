//! Sessions that were opened, with their names, and what is said of those in which nothing is found.

use super::command::{Invocation, say};
use crate::advice::EmptyReason;
use crate::app::present::answer::note_empty;
use crate::app::present::stores::{StoreAddress, without_passwords};
use crate::app::present::{Failure, Result, counted, printable};
use crate::engine::{EmptyAnswer, Engine, NothingFound};
use crate::history::Session;
use crate::inspect::{Part, Report, ReportOptions};
use crate::store::Store;
use crate::support::diag::Error;
use crate::support::table::{Paint, Tint};
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct Opened {
    /// What names it, without passwords.
    pub(super) name: String,
    pub(super) session: Arc<Session>,
    /// The log that it was imported from in memory, of several sessions or in a folder.
    pub(super) log: Option<String>,
    /// Whether it may be one of several, so that what is said of it names it.
    pub(super) several: bool,
}

impl Opened {
    pub(super) fn stored(
        address: StoreAddress<'_>,
        name: &str,
        session: Arc<Session>,
        several: bool,
    ) -> Self {
        Self {
            name: stored_name(address, name),
            session,
            log: None,
            several,
        }
    }

    pub(super) fn label(&self) -> Option<&str> {
        self.several.then_some(&*self.name)
    }

    /// Appends its name as a line, if there may be several, after an empty line unless it is the first.
    pub(super) fn title(&self, paint: Paint, is_first: bool, out: &mut String) {
        if let Some(name) = self.label() {
            let before = if is_first { "" } else { "\n" };
            out.extend([before, &paint.tint(Tint::Name, &printable(name)), "\n"]);
        }
    }

    pub(super) fn report<R: Report>(&self, engine: &Engine, options: &ReportOptions) -> Result<R> {
        R::new(engine, &self.session, options).map_err(|error| self.failure(error))
    }

    /// Why a part has nothing, if its selector finds nothing.
    pub(super) fn nothing(&self, engine: &Engine, part: &Part) -> Option<EmptyAnswer> {
        part.nothing(engine, &self.session).ok().flatten()
    }

    pub(super) fn failure(&self, error: Error) -> Failure {
        Failure::in_session(error, self.label())
    }
}

/// What names a session of a store, without passwords.
pub(super) fn stored_name(address: StoreAddress<'_>, name: &str) -> String {
    format!("{}#{name}", without_passwords(address.store))
}

/// The first sessions of those that an address of several names.
pub(super) fn first_stored(
    store: &Store,
    address: StoreAddress<'_>,
    most: usize,
) -> Result<Vec<Opened>> {
    let listed = store.page(address.glob(), "", most)?.into_iter();
    let opened = listed.map(|one| {
        let session = store.session(&one.info.name)?;
        Ok(Opened::stored(address, &one.info.name, session, true))
    });
    opened.collect()
}

/// The most sessions of which it is said together why nothing was found.
pub(super) const MOST_ASKED: usize = 64;

/// What no node has of several sessions, where one selector found nothing in any of them; nothing if these are not all
/// the sessions that were read.
pub(super) fn unknown_in_all<'a>(
    empty: impl ExactSizeIterator<Item = &'a NothingFound>,
    sessions: usize,
) -> Vec<EmptyReason> {
    if sessions > 1 && empty.len() == sessions {
        NothingFound::unknown_in_all(empty)
    } else {
        Vec::new()
    }
}

/// The sessions in which the selector of a part finds nothing: if that is all of them, a note says why.
#[derive(Default)]
pub(super) struct EmptyAnswers {
    pub(super) sessions: usize,
    /// Whether a session has something. Then the others are not kept, as each keeps its snapshots in memory.
    has_any: bool,
    /// Of the first one.
    label: Option<String>,
    /// Of those that are read together.
    asked: Vec<EmptyAnswer>,
}

impl EmptyAnswers {
    pub(super) fn add(&mut self, opened: &Opened, nothing: Option<EmptyAnswer>) {
        self.sessions += 1;
        match nothing {
            None => {
                self.has_any = true;
                self.asked = Vec::new();
            }
            Some(nothing) if !self.has_any && self.asked.len() < MOST_ASKED => {
                if self.asked.is_empty() {
                    self.label = opened.label().map(str::to_owned);
                }
                self.asked.push(nothing);
            }
            Some(_) => {}
        }
    }

    pub(super) fn say(self, with: &Invocation) {
        let Some(first) = self.asked.first() else {
            return;
        };
        let nothing: Vec<&NothingFound> =
            self.asked.iter().filter_map(EmptyAnswer::nothing).collect();
        let (mut why, mut of) = (unknown_in_all(nothing.into_iter(), self.sessions), None);
        if why.is_empty() {
            (why, of) = (first.reasons(), self.label.as_deref());
        }
        say(&note_empty(&why, first.warnings(), of, with.is_json()));
    }
}

/// Of several sessions, those that lack a snapshot that is wanted, such as a fork without a commit. They are left out.
#[derive(Default)]
pub(super) struct WithoutSnapshot {
    count: usize,
    first: Option<(String, Failure)>,
    last: String,
}

impl WithoutSnapshot {
    /// Takes out the failure of one of several sessions that lacks the snapshot.
    pub(super) fn pass<T>(&mut self, opened: &Opened, result: Result<T>) -> Result<Option<T>> {
        match result {
            Err(failure) if opened.several && failure.is_no_snapshot() => {
                if self.count == 0 || self.last != opened.name {
                    self.count += 1;
                    self.last.clone_from(&opened.name);
                }
                let first = || (opened.name.clone(), failure);
                self.first.get_or_insert_with(first);
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Says which were left out of `count` sessions. Returns how many are left.
    ///
    /// # Errors
    /// None is left.
    pub(super) fn left_of(self, count: usize) -> Result<usize> {
        match self.first {
            Some((_, failure)) if self.count == count => return Err(failure),
            Some((name, _)) => say(&format!(
                "note: left out {} without such a snapshot: {}{}\n",
                counted(self.count as u64, "session"),
                printable(&name),
                if self.count > 1 { ", …" } else { "" }
            )),
            None => {}
        }
        Ok(count - self.count)
    }
}
