//! Group commit: steps that wait for the database at the same time go into one transaction.
//!
//! There is no thread for it. Whoever gets the connection takes every step that waits, keeps all of them
//! and hands out the results; the others find theirs when it is their turn.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::StoreError;
use super::home::Home;
use super::session::{Job, all_fail, run};

/// Steps that wait.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Vec<(Arc<Slot>, Job)>>,
}

/// A step that was kept, and its result.
type Slot = Mutex<Option<(Job, Result<(), StoreError>)>>;

/// A lock whose holder panicked holds what it held before: every change under it is one assignment.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    /// Keeps a step together with all others that wait. Returns when it is durable or has failed.
    pub(crate) fn keep(&self, home: &Home, job: Job) -> (Job, Result<(), StoreError>) {
        let slot = Arc::new(Slot::default());
        lock(&self.waiting).push((Arc::clone(&slot), job));
        let writer = home.writer();
        if let Some(result) = lock(&slot).take() {
            return result;
        }
        // The own step is among those that wait: whoever takes one hands out its result before it lets
        // the connection go.
        let (slots, mut jobs): (Vec<Arc<Slot>>, Vec<Job>) =
            std::mem::take(&mut *lock(&self.waiting))
                .into_iter()
                .unzip();
        let results = match writer {
            Ok(mut database) => run(&mut *database, &mut jobs),
            Err(error) => all_fail(jobs.len(), error),
        };
        let mut own = None;
        for ((other, job), result) in slots.iter().zip(jobs).zip(results) {
            match Arc::ptr_eq(other, &slot) {
                true => own = Some((job, result)),
                false => *lock(other) = Some((job, result)),
            }
        }
        match own {
            Some(own) => own,
            None => unreachable!("a step is in the queue until it has a result"),
        }
    }
}
