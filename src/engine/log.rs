//! The difference of two snapshots, and the matches that each snapshot added and removed.

use serde::Serialize;

use super::facade::Engine;
use super::prepared::Prepared;
use crate::history::{
    At, Change, DiffOptions, Lookup, RangeOptions, Session, SnapshotDiff, SnapshotRef, Unresolved,
    diff,
};
use crate::query::ir::{Address, RangeAnswer};
use crate::support::diag::{Code, Diagnostic, Error};

/// The matches of a selector, snapshot by snapshot.
///
/// ```
/// let session = pactql::Session::open("fixtures/greenhouse.jsonl")?;
/// let log = pactql::Engine::new().log(&session, ".cb")?;
/// assert_eq!((log.snapshots[0].matches, log.snapshots[0].added), (19, 3)); // of `@t0`
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Log {
    /// The selector with its range.
    pub query: String,
    /// One entry a committed snapshot, newest first.
    pub snapshots: Vec<LogEntry>,
}

/// The matches of one snapshot. See the example of [`Log`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LogEntry {
    /// `@t0`, `@t-1`, …
    pub label: String,
    /// The cycle.
    pub cycle: i64,
    /// How many matches the snapshot has.
    pub matches: usize,
    /// Matches that the snapshot before does not have; in the oldest snapshot, all.
    pub added: usize,
    /// Matches of the snapshot before that this one does not have.
    pub removed: usize,
    /// Matches of both that differ.
    pub changed: usize,
}

impl Engine {
    /// Compares two snapshots of a session, named in either order; with a selector, which takes no
    /// time, only its matches in either. The newer one has the later cycle; the working state is
    /// newest.
    ///
    /// # Errors
    /// Every error of the selector; a time in it; a parameter without a value; an address without a
    /// snapshot.
    pub fn diff(
        &self,
        session: &Session,
        a: At,
        b: At,
        selector: Option<&str>,
        options: &DiffOptions,
    ) -> Result<SnapshotDiff, Error> {
        let prepared = selector.map(|text| self.prepare_timeless(text));
        let prepared = prepared.transpose()?;
        let bound = prepared.as_ref().and_then(Prepared::bound);
        let history = session.moment();
        for at in [a, b] {
            at.fetch(&history)
                .map_err(|failure| failure.about(&at.to_string()))?;
        }
        if let (Some(prepared), Some(bound)) = (&prepared, bound)
            && bound.reads_ages()
        {
            prepared.fetch(&history, &Lookup::All)?;
        }
        diff(&history, a, b, bound.map(|bound| &***bound), options)
            .map_err(|(at, error)| unresolved(at, error))
    }

    /// Counts the matches of a selector, which takes no time, in all committed snapshots. Costs as
    /// much as the range `@t0..@t-*` and one count of the oldest snapshot.
    ///
    /// # Errors
    /// Every error of the selector; a time in it; a parameter without a value; a session
    /// without committed snapshots.
    pub fn log(&self, session: &Session, selector: &str) -> Result<Log, Error> {
        self.log_and_changed(session, selector).map(|(log, _)| log)
    }

    /// A log, and the ids of the matches that changed, for each entry but the oldest.
    pub(crate) fn log_and_changed(
        &self,
        session: &Session,
        selector: &str,
    ) -> Result<(Log, Vec<Vec<String>>), Error> {
        timeless(selector)?;
        let query = format!("@t0..@t-* {selector}");
        let history = session.history();
        let range = self.prepare(&query)?;
        if range.query().controls.mode != RangeAnswer::Pairwise {
            // An open parameter, and then an empty history, is reported before the mode.
            range.ready()?;
            range.resolve(&history)?;
            let message = "a log compares neighbours and takes no other mode";
            return Err(Error::whole(Code::SelectorInvalid, selector, message));
        }
        let range = range.range_in(&history, &RangeOptions::default())?;
        let oldest = history.committed().len().saturating_sub(1);
        let oldest = At::Committed(Address::Back(oldest as u64));
        let mut matches = self
            .prepare(&format!("{oldest} {selector}"))?
            .rows_in(&history)?
            .count();
        let entry = |of: &SnapshotRef, matches, [added, removed, changed]: [usize; 3]| LogEntry {
            label: of.label.clone(),
            cycle: of.cycle,
            matches,
            added,
            removed,
            changed,
        };
        let last = range.snapshots.last();
        let last = last.map(|last| entry(last, matches, [matches, 0, 0]));
        let mut snapshots = Vec::from_iter(last);
        for block in range.diffs.iter().rev() {
            let (added, removed) = (block.added_ids.len(), block.removed_ids.len());
            matches = (matches + added).saturating_sub(removed);
            let counts = [added, removed, block.changed.len()];
            snapshots.push(entry(&block.from, matches, counts));
        }
        snapshots.reverse();
        let ids = |changed: Vec<Change>| changed.into_iter().map(|change| change.id).collect();
        let changed = range.diffs.into_iter().map(|block| ids(block.changed));
        Ok((Log { query, snapshots }, changed.collect()))
    }

    /// As [`Engine::prepare`]; a time in it or a parameter without a value is an error, too.
    pub(crate) fn prepare_timeless(&self, text: &str) -> Result<Prepared, Error> {
        timeless(text)?;
        let prepared = self.prepare(text)?;
        prepared.ready()?;
        Ok(prepared)
    }
}

fn timeless(text: &str) -> Result<(), Error> {
    let time = text.trim_start();
    let at = text.len() - time.len();
    let is_time = time
        .strip_prefix('@')
        .is_some_and(|word| word.starts_with(['t', 'c', '*', 'h']));
    if !is_time {
        return Ok(());
    }
    let end = time
        .find(char::is_whitespace)
        .map_or(text.len(), |end| at + end);
    let diagnostic = Diagnostic::error(Code::SelectorInvalid, "the selector names a time")
        .at(at..end, "which snapshots are queried is said already")
        .with_help("leave the time out");
    Err(Error::new(text, diagnostic))
}

fn unresolved(at: At, error: Unresolved) -> Error {
    let text = at.to_string();
    let diagnostic = Diagnostic::error(Code::SnapshotNotFound, "no such snapshot")
        .at(0..text.len(), error.why)
        .with_help(error.which);
    Error::new(&text, diagnostic)
}
