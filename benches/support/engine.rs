//! The engine as a contender, used through its public interface.

use super::queries::{Query, Task};
use pactql::internals::index::Segment;
use pactql::{Edition, Engine, Prepared, Session};
use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// A session and an engine.
pub(crate) struct Pact {
    pub(crate) engine: Engine,
    pub(crate) session: Session,
}

/// Reads and indexes a document or lines, with all checks.
pub(crate) fn load(bytes: &[u8]) -> Session {
    Session::from_slice(bytes).expect("the generated document is valid")
}

/// An engine with an empty plan cache. The edition is `v0.1`, where `#` selects by id.
pub(crate) fn engine() -> Engine {
    Engine::builder().edition(Edition::V01).build()
}

impl Pact {
    /// Loads a session.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self {
            engine: engine(),
            session: load(bytes),
        }
    }

    /// The ids that answer `query`.
    pub(crate) fn answer(&self, query: Query, id: &str) -> Vec<String> {
        let selection = self
            .engine
            .rows(&self.session, &query.selector(id))
            .expect("the selector is valid");
        selection.ids().map(str::to_owned).collect()
    }

    fn prepared(&self, query: Query, id: &str) -> Prepared {
        self.engine
            .prepare(&query.selector(id))
            .expect("the selector is valid")
    }

    /// `query` as something to time, prepared.
    pub(crate) fn task<'a>(&'a self, query: Query, id: &str) -> Task<'a> {
        let prepared = self.prepared(query, id);
        Box::new(move || {
            let selection = prepared
                .rows(black_box(&self.session))
                .expect("the selector runs");
            black_box(selection.to_ids()).len()
        })
    }

    /// The same by text, which is in the plan cache.
    pub(crate) fn by_text<'a>(&'a self, query: Query, id: &str) -> Task<'a> {
        let text = query.selector(id);
        Box::new(move || {
            let selection = self
                .engine
                .rows(&self.session, black_box(&text))
                .expect("the selector runs");
            black_box(selection.to_ids()).len()
        })
    }

    /// Only the number of ids.
    pub(crate) fn count<'a>(&'a self, query: Query, id: &str) -> Task<'a> {
        let prepared = self.prepared(query, id);
        Box::new(move || {
            let selection = prepared
                .rows(black_box(&self.session))
                .expect("the selector runs");
            black_box(selection.count())
        })
    }

    /// The time that `threads` threads take to run the ten queries `rounds` times each, from the
    /// moment when all have started to the last end.
    pub(crate) fn in_turn(&self, id: &str, threads: usize, rounds: u64) -> Duration {
        let prepared: Vec<Prepared> = Query::ALL
            .iter()
            .map(|&query| self.prepared(query, id))
            .collect();
        let started = Barrier::new(threads);
        let ask = || {
            started.wait();
            let start = Instant::now();
            for _ in 0..rounds {
                for prepared in &prepared {
                    let selection = prepared
                        .rows(black_box(&self.session))
                        .expect("the selector runs");
                    black_box(selection.to_ids());
                }
            }
            (start, Instant::now())
        };
        let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(ask)).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().ok();
            threads.into_iter().filter_map(join).collect()
        });
        let first = times.iter().map(|(start, _)| *start).min();
        let last = times.iter().map(|(_, end)| *end).max();
        first
            .zip(last)
            .map_or(Duration::MAX, |(first, last)| last - first)
    }
}

/// The bytes of the columns, postings and directories of a session's segments, by their own
/// count.
pub(crate) fn index_bytes(session: &Session) -> usize {
    let history = session.history();
    let mut segments: Vec<&Arc<Segment>> = history
        .committed()
        .iter()
        .chain(history.working())
        .flat_map(|snapshot| snapshot.pieces())
        .map(|piece| piece.segment())
        .collect();
    segments.sort_unstable_by_key(|segment| Arc::as_ptr(segment));
    segments.dedup_by_key(|segment| Arc::as_ptr(segment));
    segments.iter().map(|segment| segment.index_bytes()).sum()
}

/// The time to prepare one of `texts`, in nanoseconds, with a new engine that has seen `before`.
pub(crate) fn compile_time(texts: &[String], before: &[String]) -> f64 {
    let engine = engine();
    for text in before {
        engine.prepare(text).expect("the selector is valid");
    }
    let start = Instant::now();
    for text in texts {
        black_box(
            engine
                .prepare(black_box(text))
                .expect("the selector is valid"),
        );
    }
    start.elapsed().as_nanos() as f64 / texts.len() as f64
}
