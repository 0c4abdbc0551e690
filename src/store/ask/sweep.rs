//! Goes through the sessions of a list, in parallel and a little ahead of the reader of the answers.
//!
//! This file must not know what a selector or an answer is: it is given a function that answers some
//! sessions.

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use rayon::prelude::*;

use crate::store::ask::asking::Asking;
use crate::store::read::catalog::Listed;
use crate::store::read::open;
use crate::support::cancel;
use crate::support::diag::Error;

/// At least this many sessions are queried at once, and at most this many.
const CHUNK: (usize, usize) = (8, 256);
/// At least this many, if only a few units of each are read.
const FEW_UNITS: usize = 64;
/// At most this many of them are read together.
const GROUP: usize = 32;

/// What some sessions are answered with.
type Answered<T> = Vec<Result<T, Error>>;

/// Answers some sessions, which are read together.
pub(crate) type Answer<T> = fn(&Asking, &[Listed]) -> Answered<T>;

/// The answers of a list of sessions, in its order.
#[derive(Debug)]
pub(crate) struct Sweep<T> {
    asking: Arc<Asking>,
    answer: Answer<T>,
    list: Arc<[Listed]>,
    /// How many of the list were queried.
    asked: usize,
    ready: VecDeque<Result<T, Error>>,
    /// Those that are queried meanwhile.
    coming: Option<Coming<T>>,
    threads: Threads,
}

/// How many threads ask the sessions of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    /// As many as there are cores: the reader of the answers waits for them.
    All,
    /// One, as answers are there before they are read. Others would take the reader's core.
    One,
}

/// Sessions that another thread asks.
#[derive(Debug)]
struct Coming<T> {
    sessions: Range<usize>,
    answered: Receiver<std::thread::Result<Answered<T>>>,
}

impl<T: Send + 'static> Sweep<T> {
    pub(crate) fn new(asking: Asking, answer: Answer<T>, list: Arc<[Listed]>) -> Self {
        Self {
            asking: Arc::new(asking),
            answer,
            list,
            asked: 0,
            ready: VecDeque::new(),
            coming: None,
            threads: Threads::All,
        }
    }

    /// Of answers that are known already.
    pub(crate) fn ready(asking: Asking, answer: Answer<T>, ready: Vec<T>) -> Self {
        Self {
            ready: ready.into_iter().map(Ok).collect(),
            ..Self::new(asking, answer, Arc::default())
        }
    }

    /// Number of sessions in the list.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn asking(&self) -> &Asking {
        &self.asking
    }

    /// Asks otherwise from now on; answers that are ready stay as they are.
    pub(crate) fn ask(&mut self, asking: Asking) {
        self.coming = None;
        self.asking = Arc::new(asking);
    }

    pub(crate) fn next(&mut self) -> Option<Result<T, Error>> {
        while self.ready.is_empty() {
            let answered = match self.coming.take() {
                Some(coming) => {
                    self.asked = coming.sessions.end;
                    let (answered, threads) = coming.wait();
                    self.threads = threads;
                    match answered {
                        Ok(answered) => answered,
                        Err(panic) => resume_unwind(panic),
                    }
                }
                None if self.asked < self.list.len() => {
                    let sessions = self.chunk();
                    self.asked = sessions.end;
                    chunk(
                        &self.asking,
                        self.answer,
                        &self.list[sessions],
                        Threads::All,
                    )
                }
                None => return None,
            };
            self.ready.extend(answered);
            self.look_ahead();
        }
        self.ready.pop_front()
    }

    /// The next sessions to ask.
    fn chunk(&self) -> Range<usize> {
        let fitting = {
            let open = open::lock(&self.asking.open);
            let grouped = self.asking.grouped.as_ref();
            let by_statement = grouped.map_or(0, |grouped| grouped.fitting(open.share()));
            open.fitting().max(by_statement)
        };
        let least = if self.asking.among.is_empty() {
            CHUNK.0
        } else {
            FEW_UNITS
        };
        let end = self.asked + fitting.clamp(least, CHUNK.1);
        self.asked..end.min(self.list.len())
    }

    /// Asks the next sessions on another thread, while the caller reads the answers of those before.
    fn look_ahead(&mut self) {
        // A thread of the pool may not wait for the pool.
        if self.asked == self.list.len() || rayon::current_thread_index().is_some() {
            return;
        }
        let (sender, answered) = sync_channel(1);
        let sessions = self.chunk();
        let (asking, answer) = (Arc::clone(&self.asking), self.answer);
        let (list, range) = (Arc::clone(&self.list), sessions.clone());
        let (tokens, threads) = (cancel::here(), self.threads);
        rayon::spawn(move || {
            let work = || tokens.within(|| chunk(&asking, answer, &list[range], threads));
            let done = catch_unwind(AssertUnwindSafe(work));
            // The store may be closed as soon as it is known to be done.
            drop((asking, list));
            let _ = sender.send(done);
        });
        self.coming = Some(Coming { sessions, answered });
    }
}

impl<T> Coming<T> {
    /// The answers, and how many threads the next ones are worth.
    fn wait(&self) -> (std::thread::Result<Answered<T>>, Threads) {
        let (answered, threads) = match self.answered.try_recv() {
            Err(TryRecvError::Empty) => (self.answered.recv().ok(), Threads::All),
            ready => (ready.ok(), Threads::One),
        };
        // The other end answers before it is dropped.
        (answered.unwrap_or_else(|| Ok(Vec::new())), threads)
    }
}

impl<T> Drop for Coming<T> {
    /// Waits: nothing reads a store that its owner has closed.
    fn drop(&mut self) {
        let _ = self.wait();
    }
}

/// Answers the sessions of a chunk.
fn chunk<T: Send>(
    asking: &Asking,
    answer: Answer<T>,
    list: &[Listed],
    threads: Threads,
) -> Answered<T> {
    if threads == Threads::One {
        let groups = list.chunks(GROUP);
        return groups.flat_map(|group| answer(asking, group)).collect();
    }
    // What is in memory is answered sooner than another thread begins.
    if list.len() <= GROUP && open::lock(&asking.open).has_all(list) {
        return answer(asking, list);
    }
    let tokens = cancel::here();
    let group = list.len().div_ceil(rayon::current_num_threads());
    let answers: Vec<Answered<T>> = list
        .par_chunks(group.clamp(1, GROUP))
        .map(|group| tokens.within(|| answer(asking, group)))
        .collect();
    answers.into_iter().flatten().collect()
}
