//! Processes that were forked.
//!
//! A fork copies one thread. The threads that the library shares its work among are not in the child, and code that
//! gives them work there waits for ever; so a child gets threads of its own. Connections to a database are copied,
//! and two processes must not use one; so what has one is refused in a child, and left as it is at its end.

use crate::errors::plain;
use pactql::Code;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many forks led to this process, as far as Python made them.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// The threads of a child, and the fork it comes from.
static POOL: Mutex<Option<(u64, Arc<ThreadPool>)>> = Mutex::new(None);

/// Notes that this process was forked. Called in the child.
#[pyfunction]
pub(crate) fn after_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Does work that the library shares among threads, without the interpreter lock.
pub(crate) fn shared<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| with_threads(work))
}

/// As [`shared`], where the lock is not held.
pub(crate) fn with_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// The threads of a child; none in a process that was not forked, where those of the library serve.
fn pool() -> Option<Arc<ThreadPool>> {
    let forks = FORKS.load(Ordering::Relaxed);
    if forks == 0 {
        return None;
    }
    let mut known = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, pool)) = known.as_ref().filter(|(of, _)| *of == forks) {
        return Some(Arc::clone(pool));
    }
    let pool = Arc::new(ThreadPoolBuilder::new().build().ok()?);
    if let Some(parents) = known.replace((forks, Arc::clone(&pool))) {
        // Its threads are not here, so they cannot be ended.
        std::mem::forget(parents);
    }
    Some(pool)
}

/// The process in which something was made.
#[derive(Clone, Copy)]
pub(crate) struct Origin(u64);

impl Origin {
    /// This process.
    pub(crate) fn here() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether it is this process.
    pub(crate) fn is_here(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }

    /// Refuses what has a connection of the parent.
    ///
    /// # Errors
    /// The process was forked since.
    pub(crate) fn check(self, py: Python<'_>) -> PyResult<()> {
        if self.is_here() {
            return Ok(());
        }
        let message = "the store was opened before this process was forked";
        let help = Some("open it again in each process");
        Err(plain(py, Code::Store.as_str(), message, help))
    }
}
