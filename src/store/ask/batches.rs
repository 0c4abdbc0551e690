//! Answers the sessions of a list in batches, in parallel, and prefetches one batch.
//!
//! It must not know what a selector is, or how a group of sessions is answered.

use crate::support::lock;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use rayon::prelude::*;

use super::question::{Question, SessionAnswer};
use crate::store::read::catalog::ListedSession;
use crate::support::cancel;
use crate::support::diag::Error;

/// At most this many sessions of a batch are one thread's at a time.
const GROUP: usize = 32;

type Answered = Vec<Result<SessionAnswer, Error>>;

#[derive(Debug)]
pub(super) struct Batches {
    question: Arc<Question>,
    list: Arc<[ListedSession]>,
    /// Sessions of the list whose batch was begun.
    begun: usize,
    pub(super) ready: VecDeque<Result<SessionAnswer, Error>>,
    ahead: Option<Ahead>,
}

#[derive(Debug)]
struct Ahead(Receiver<std::thread::Result<Answered>>);

impl Batches {
    pub(super) fn new(question: Question, list: Arc<[ListedSession]>) -> Self {
        Self {
            question: Arc::new(question),
            list,
            begun: 0,
            ready: VecDeque::new(),
            ahead: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn next(&mut self) -> Option<Result<SessionAnswer, Error>> {
        while self.ready.is_empty() {
            let answered = match self.ahead.take() {
                Some(ahead) => ahead.wait().unwrap_or_else(|panic| resume_unwind(panic)),
                None if self.begun < self.list.len() => {
                    let sessions = self.begin();
                    batch(&self.question, &self.list[sessions])
                }
                None => return None,
            };
            self.ready.extend(answered);
            self.look_ahead();
        }
        self.ready.pop_front()
    }

    fn begin(&mut self) -> Range<usize> {
        let size = lock(&self.question.open).fitting();
        let start = self.begun;
        self.begun = (start + size).min(self.list.len());
        start..self.begun
    }

    /// Prefetches the next batch on another thread, while the caller reads the answers of the one before.
    fn look_ahead(&mut self) {
        // A thread of the pool may not wait for the pool.
        if self.begun == self.list.len() || rayon::current_thread_index().is_some() {
            return;
        }
        let (sender, receiver) = sync_channel(1);
        let sessions = self.begin();
        let (question, list) = (Arc::clone(&self.question), Arc::clone(&self.list));
        let tokens = cancel::here();
        rayon::spawn(move || {
            let work = || tokens.within(|| batch(&question, &list[sessions]));
            let done = catch_unwind(AssertUnwindSafe(work));
            // The store may be closed as soon as this batch is known to be done.
            drop((question, list));
            let _ = sender.send(done);
        });
        self.ahead = Some(Ahead(receiver));
    }
}

impl Ahead {
    fn wait(&self) -> std::thread::Result<Answered> {
        // The other end answers before it is dropped.
        self.0.recv().unwrap_or_else(|_| Ok(Vec::new()))
    }
}

impl Drop for Ahead {
    /// Waits: nothing reads a store that its owner has closed.
    fn drop(&mut self) {
        let _ = self.wait();
    }
}

fn batch(question: &Question, list: &[ListedSession]) -> Answered {
    let tokens = cancel::here();
    let group = list.len().div_ceil(rayon::current_num_threads());
    let answers: Vec<Answered> = list
        .par_chunks(group.clamp(1, GROUP))
        .map(|group| tokens.within(|| question.answers(group)))
        .collect();
    answers.into_iter().flatten().collect()
}
