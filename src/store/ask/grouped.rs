//! Ids of many sessions by statements: the database answers a group of sessions that are not in memory at once.
//!
//! A session that is asked for the first time may never be queried again, and reading the few columns that a selector
//! needs of it costs a part of making it one that answers every selector. Which sessions are read so is decided in
//! [`OpenSessions::are_new`](crate::store::read::open::OpenSessions::are_new). This file must not know what a session in memory is.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::Prepared;
use crate::query::sql::{Dialect, compile_group};
use crate::store::error::StoreError;
use crate::store::read::catalog::Listed;
use crate::store::write::core::Core;

/// Sessions that one statement asks.
const SESSIONS: usize = 32;

/// The statement of a selector for a group of sessions.
#[derive(Debug)]
pub(crate) struct Grouped {
    text: String,
    /// The sessions that were queried, and the bytes of their names and ids.
    asked: AtomicUsize,
    bytes: AtomicUsize,
}

impl Grouped {
    /// That of a selector of nodes; `None` if the dialect cannot say it.
    pub(crate) fn of(prepared: &Prepared, dialect: Dialect) -> Option<Self> {
        Some(Self {
            text: compile_group(prepared.query(), dialect, SESSIONS).ok()??,
            asked: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        })
    }

    /// How many sessions have names and ids of this many bytes, judging by those that were queried.
    pub(crate) fn fitting(&self, bytes: usize) -> usize {
        let asked = self.asked.load(Ordering::Relaxed);
        let average = self.bytes.load(Ordering::Relaxed).checked_div(asked);
        average.map_or(1, |average| bytes / average.max(1))
    }

    /// Calls `each` with the name of the session and the id of every node that is found in some sessions, at most
    /// [`SESSIONS`], in the order of the result. Returns false if one of them has another name meanwhile: what was
    /// found is worth nothing then.
    ///
    /// # Errors
    /// Those of the database.
    pub(crate) fn ask(
        &self,
        core: &Core,
        list: &[Listed],
        mut each: impl FnMut(&str, &str),
    ) -> Result<bool, StoreError> {
        let Some(last) = list.last().filter(|_| list.len() <= SESSIONS) else {
            return Ok(list.is_empty());
        };
        // The parameters that are left over name the last session again.
        let numbers = list.iter().chain(std::iter::repeat(last)).take(SESSIONS);
        let numbers: Vec<_> = numbers.map(|listed| listed.session.into()).collect();
        let (mut at, mut bytes, mut is_known) = (0, 0, true);
        core.read_once(|database| {
            database.query(&self.text, &numbers, &mut |row| {
                let name = row.text(0)?.unwrap_or_default();
                let id = row.text(1)?.unwrap_or_default();
                // Both are in byte order of names.
                let passed = list.iter().skip(at).position(|listed| listed.name == name);
                match passed {
                    Some(passed) => at += passed,
                    None => is_known = false,
                }
                bytes += id.len();
                each(name, id);
                Ok(())
            })
        })?;
        self.asked.fetch_add(list.len(), Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(is_known)
    }
}
