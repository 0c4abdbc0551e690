//! The snapshots that a time means.

use std::sync::Arc;

use super::facade::Engine;
use crate::history::{At, History, Lookup, Position};
use crate::index::Snapshot;
use crate::query::ir::Address;
use crate::support::diag::{Code, Diagnostic, Error};

impl Engine {
    /// The snapshots that a time such as `@t0`, `@c12`, `@t-3..@t0`, `@history` or `@*` means, oldest
    /// first, each with its address: by cycle where the time names cycles, else by distance. Has them in
    /// memory. An empty text is the working state, or else the newest snapshot.
    ///
    /// # Errors
    /// The text is not a time; no snapshot has it; a snapshot of a store cannot be loaded.
    ///
    /// ```
    /// use pactql::{Engine, Session};
    /// let history = Session::open("fixtures/greenhouse.jsonl")?.history();
    /// let found = Engine::new().snapshots(&history, "@t-1..@t0")?;
    /// let labels: Vec<String> = found.iter().map(|(at, _)| at.to_string()).collect();
    /// assert_eq!(labels, ["@t-1", "@t0"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshots(
        &self,
        history: &Arc<History>,
        time: &str,
    ) -> Result<Vec<(At, Arc<Snapshot>)>, Error> {
        let time = time.trim();
        let refuse = |message: &str, here: &str| {
            let mistake = Diagnostic::error(Code::SelectorInvalid, message)
                .at(0..time.len(), here)
                .with_help("@t0 is the newest snapshot, @t-3..@t0 a range, @history all of them");
            Error::new(time, mistake)
        };
        let prepared = self.prepare(format!("{time} *").trim_start());
        let prepared = prepared.map_err(|error| {
            let mut first = error.first().clone();
            let corrected = first.correction().and_then(|text| text.strip_suffix(" *"));
            if let Some(corrected) = corrected.map(str::to_owned) {
                first.correct(&corrected);
                return Error::new(time, first);
            }
            // What is wrong with a time is said better than that it is not a selector.
            if time.starts_with('@') || error.message().starts_with("expected a time") {
                error
            } else {
                refuse("expected a time", "a time begins with `@`")
            }
        })?;
        if prepared.statement().time.clone().unwrap_or(0..0) != (0..time.len()) {
            return Err(refuse("expected a time alone", "more than a time"));
        }
        if history.committed().is_empty() && history.has_working() && !time.is_empty() {
            let mistake = Diagnostic::error(Code::SnapshotNotFound, "nothing is committed yet")
                .at(0..time.len(), "no such snapshot")
                .with_help("`pactql show SESSION` shows what waits for a reply");
            return Err(Error::new(time, mistake));
        }
        let lookup = prepared.resolve(history);
        let lookup = lookup.map_err(|error| Error::new(time, error.first().clone()))?;
        let failed = |failure: crate::history::LoadFailure| failure.about(time);
        let last = history.committed().len();
        let (wanted, by_cycle) = match lookup {
            Lookup::One(Position::Working) => {
                history.fetch(Position::Working).map_err(failed)?;
                let working = history.working().cloned();
                return Ok(working
                    .map(|found| (At::Working, found))
                    .into_iter()
                    .collect());
            }
            Lookup::One(Position::Committed(at)) => {
                (at..at.saturating_add(1), time.starts_with("@c"))
            }
            Lookup::All => (0..last, false),
            Lookup::Range(span) => (span.oldest..span.newest.saturating_add(1), span.by_cycle),
        };
        history.fetch_range(wanted.clone()).map_err(failed)?;
        let snapshots = wanted.clone().zip(history.committed().range(wanted));
        let found = snapshots.map(|(index, snapshot)| {
            let address = if by_cycle {
                Address::Cycle(snapshot.cycle())
            } else {
                Address::Back((last - 1 - index) as u64)
            };
            (At::Committed(address), Arc::clone(snapshot))
        });
        Ok(found.collect())
    }
}
