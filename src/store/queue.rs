//! Group commit: steps that wait for the database at the same time go into one transaction.
//!
//! There is no thread for it. Whoever finds nobody at work takes every step that waits, keeps all of them
//! and hands out the results; those who come meanwhile wait for the next turn.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::error::StoreError;
use super::home::Home;
use super::session::{Job, all_fail, run};

/// Steps that wait.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Wakes those who wait when results were handed out.
    turn: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<(Arc<Slot>, Job)>,
    /// Whether somebody keeps steps.
    busy: bool,
}

/// A step that was kept, and its result.
type Slot = Mutex<Option<(Job, Result<(), StoreError>)>>;

/// A lock whose holder panicked holds what it held before: every change under it is one assignment.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets the next one keep steps, also after a panic.
struct Turn<'q>(&'q Queue);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).busy = false;
        self.0.turn.notify_all();
    }
}

impl Queue {
    /// Keeps a step together with all others that wait. Returns when it is durable or has failed.
    pub(crate) fn keep(&self, home: &Home, job: Job) -> (Job, Result<(), StoreError>) {
        let slot = Arc::new(Slot::default());
        let mut state = lock(&self.state);
        state.waiting.push((Arc::clone(&slot), job));
        while state.busy {
            state = self
                .turn
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(result) = lock(&slot).take() {
                return result;
            }
        }
        // Nobody else has the steps that wait, and this one is among them.
        state.busy = true;
        let taken = std::mem::take(&mut state.waiting);
        drop(state);
        let turn = Turn(self);
        let (slots, mut jobs): (Vec<Arc<Slot>>, Vec<Job>) = taken.into_iter().unzip();
        let results = match home.writer() {
            Ok(mut database) => run(&mut *database, &mut jobs),
            Err(error) => all_fail(jobs.len(), error),
        };
        for ((other, job), result) in slots.iter().zip(jobs).zip(results) {
            *lock(other) = Some((job, result));
        }
        drop(turn);
        match lock(&slot).take() {
            Some(own) => own,
            None => unreachable!("the step was among those that were kept"),
        }
    }
}
