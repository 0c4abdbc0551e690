//! Group commit: steps that wait for the database at the same time go into one transaction.
//!
//! There is no thread for it. A writer that finds no other at work takes every step that waits, keeps all of them
//! and hands out the results; those who come meanwhile wait for the next turn.

use crate::support::lock;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::store::error::{Result, StoreError};
use crate::store::write::writer::CommitStep;
use crate::support::cancel;

#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    /// Wakes those who wait when results were handed out.
    turn: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: Vec<(Arc<StepSlot>, CommitStep)>,
    busy: bool,
}

/// A step that was kept, and its result.
type StepSlot = Mutex<Option<(CommitStep, Result<()>)>>;

/// Steps that are being kept. Dropping it hands out their results and lets the next one keep steps, also
/// after a panic: then those who wait get an error, and their steps back.
struct QueueTurn<'q> {
    queue: &'q Queue,
    slots: Vec<Arc<StepSlot>>,
    steps: Vec<CommitStep>,
    results: Vec<Result<()>>,
}

impl Drop for QueueTurn<'_> {
    fn drop(&mut self) {
        let mut results = self.results.drain(..);
        for (slot, mut step) in self.slots.iter().zip(self.steps.drain(..)) {
            let result = results.next().unwrap_or_else(|| {
                step.writer.doubt();
                Err(StoreError::Database(
                    "the thread that wrote this commit together with others panicked, and whether \
                     it was kept is not known; open the session again to see"
                        .to_owned(),
                ))
            });
            *lock(slot) = Some((step, result));
        }
        lock(&self.queue.state).busy = false;
        self.queue.turn.notify_all();
    }
}

impl Queue {
    /// Keeps a step together with all others that wait; `run` keeps steps, and is called if no other thread does.
    /// Returns when the step is durable or has failed.
    pub(crate) fn keep(
        &self,
        step: CommitStep,
        run: impl FnOnce(&mut [CommitStep]) -> Vec<Result<()>>,
    ) -> (CommitStep, Result<()>) {
        let slot = Arc::new(StepSlot::default());
        let mut state = lock(&self.state);
        state.waiting.push((Arc::clone(&slot), step));
        while state.busy {
            state = self
                .turn
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(result) = lock(&slot).take() {
                return result;
            }
        }
        // No caller keeps steps, and the caller that did has handed out the results of all that it took: this one
        // still waits.
        state.busy = true;
        let taken = std::mem::take(&mut state.waiting);
        drop(state);
        let (slots, steps) = taken.into_iter().unzip();
        let mut turn = QueueTurn {
            queue: self,
            slots,
            steps,
            results: Vec::new(),
        };
        // Its own step is given back here, those of others when the turn ends.
        let own = turn
            .slots
            .iter()
            .position(|other| Arc::ptr_eq(other, &slot));
        // Cancelling this thread must not cancel the steps of others.
        turn.results = cancel::free(|| run(&mut turn.steps));
        let own = own.unwrap_or_default();
        turn.slots.remove(own);
        (turn.steps.remove(own), turn.results.remove(own))
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::channel;

    use super::*;
    use crate::engine::Beside;
    use crate::store::database::home::{Home, HomeOptions};
    use crate::store::write::writer::{SessionWriter, run};

    /// A thread that panics while it keeps the steps of others: each of them gets its step back with an
    /// error, and the next step is kept.
    #[test]
    fn a_panic_is_an_error_of_those_who_wait() {
        let name = format!("pactql-queue-{}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let home = Home::open(path.to_str().unwrap(), &HomeOptions::default()).unwrap();
        let step = |session: &str| {
            let mut database = home.writer().unwrap();
            let writer = SessionWriter::open(&mut *database, session, "test", 1_000_000_000);
            CommitStep {
                writer: writer.unwrap(),
                change: None,
                beside: Beside {
                    runtime: Some("{}".to_owned()),
                    ..Beside::default()
                },
            }
        };
        let steps = ["a", "b", "c", "d"].map(step);
        let [first, others @ ..] = steps;
        let queue = Queue::default();
        let (begun, has_begun) = channel();
        let waiting = || lock(&queue.state).waiting.len();
        let results = std::thread::scope(|scope| {
            let queue = &queue;
            let keeper = scope.spawn(move || {
                queue.keep(first, |steps| {
                    begun.send(()).unwrap();
                    while waiting() < 3 {
                        std::thread::yield_now();
                    }
                    steps.iter().map(|_| Ok(())).collect()
                })
            });
            has_begun.recv().unwrap();
            let others = others.map(|step| {
                scope.spawn(move || {
                    // The one of them that keeps the steps panics.
                    catch_unwind(AssertUnwindSafe(|| {
                        queue.keep(step, |_| panic!("on purpose"))
                    }))
                })
            });
            assert!(keeper.join().unwrap().1.is_ok());
            others.map(|other| other.join().unwrap())
        });
        let panicked = results.iter().filter(|result| result.is_err()).count();
        assert_eq!(panicked, 1);
        for (_, result) in results.into_iter().flatten() {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("not known"), "{error}");
        }
        let (_, kept) = queue.keep(step("e"), |steps| run(&mut *home.writer().unwrap(), steps));
        assert!(kept.is_ok());
        drop(home);
        std::fs::remove_file(&path).unwrap();
    }
}
