//! Cancelling work that takes long.
//!
//! A [`Cancel`] is a flag that any thread may set. [`Cancel::run`] runs some work under it. The loops of
//! the crate that can take long call [`ensure`] at bounded intervals, of nodes, bytes or snapshots. Once
//! the flag is set, `ensure` does not return: it unwinds to `run`, which returns [`Cancelled`]. So no
//! loop ends early with a part of its result, and what has no errors, such as running a plan or counting
//! tokens, needs none for this. Work that can fail anyway may return an error instead ([`check`]), and
//! what calls Rust from C must ([`stopped`]).
//!
//! The token is found through the thread, not through arguments. Work that is given to other threads
//! takes it along ([`here`]). This module must not know any of that work.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Cancels work: a flag, and a deadline if it has one. Clones are the same token.
///
/// ```
/// use pactql::{Cancel, Cancelled, Engine, Session};
/// let (engine, session) = (Engine::new(), Session::open("fixtures/support-agent.jsonl")?);
/// let cancel = Cancel::new();
/// let stop = cancel.clone(); // for another thread: `stop.cancel()`
/// let ids = cancel.run(|| engine.rows(&session, "@t0 .cb").map(|rows| rows.count()));
/// assert!(ids.is_ok());
///
/// stop.cancel();
/// assert_eq!(cancel.run(|| ()), Err(Cancelled));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Arc<TokenState>);

#[derive(Default)]
struct TokenState {
    set: AtomicBool,
    deadline: Option<Instant>,
    /// For tests: how often the token was polled.
    counts: Option<CheckCounts>,
}

#[derive(Default)]
struct CheckCounts {
    /// The token sets itself at this check; 0 is never.
    at: u64,
    checks: AtomicU64,
    /// The checks that found it set.
    late: AtomicU64,
}

/// The work was cancelled: its token was set, or the deadline passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

impl Cancel {
    /// A token that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// A token that counts as set when this much time has passed. A time that is too long for the clock
    /// never passes.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        Self(Arc::new(TokenState {
            deadline: Instant::now().checked_add(time),
            ..TokenState::default()
        }))
    }

    /// A token that counts its checks and sets itself at one of them, from 1; 0 is never. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn at_check(at: u64) -> Self {
        let counts = CheckCounts {
            at,
            ..CheckCounts::default()
        };
        Self(Arc::new(TokenState {
            counts: Some(counts),
            ..TokenState::default()
        }))
    }

    /// How often a token of [`Cancel::at_check`] was polled, and how often of that it was set.
    #[doc(hidden)]
    pub fn checks(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = self.0.counts.as_ref();
        counts.map_or((0, 0), |counts| (load(&counts.checks), load(&counts.late)))
    }

    /// Sets the token. Work under it ends soon: within 100 ms on a machine of today, unless it waits for another writer, a
    /// database server or an input. It cannot be unset.
    pub fn cancel(&self) {
        self.0.set.store(true, Ordering::Relaxed);
    }

    /// Whether the token is set or its deadline has passed.
    pub fn is_cancelled(&self) -> bool {
        self.0.set.load(Ordering::Relaxed) || self.has_passed()
    }

    /// Whether the deadline has passed. Reading a clock costs more than reading a flag, so it is set then.
    #[inline]
    fn has_passed(&self) -> bool {
        let passed = (self.0.deadline).is_some_and(|deadline| Instant::now() >= deadline);
        if passed {
            self.cancel();
        }
        passed
    }

    /// As [`Cancel::is_cancelled`], by work under the token.
    fn is_asked(&self) -> bool {
        let Some(counts) = &self.0.counts else {
            return self.is_cancelled();
        };
        let number = counts.checks.fetch_add(1, Ordering::Relaxed) + 1;
        if number == counts.at {
            self.cancel();
        }
        let set = self.is_cancelled();
        counts.late.fetch_add(u64::from(set), Ordering::Relaxed);
        set
    }

    /// Runs some work under this token, and under those that the caller runs under. If one is set before
    /// the end, the work unwinds from the loop that finds it set, and what it had found is dropped. No
    /// call of this crate returns a part of its answer. In a program that aborts on panic
    /// (`panic = "abort"`) setting a token under which work runs ends the program.
    ///
    /// Any call of this crate can be the work: queries, ranges, reading and importing sessions, verifying,
    /// building caches and choosing from them. A [`Selection`](crate::Selection) finds its rows when they
    /// are read, so read them inside. Of a call that writes, such as a commit, a set token says only that it
    /// may not be done: it was done as a whole, or not at all.
    ///
    /// # Errors
    /// The token is set.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> Result<T, Cancelled> {
        let mut tokens = here();
        tokens.0.push(self.clone());
        let work = AssertUnwindSafe(|| {
            tokens.within(|| {
                check()?;
                let outcome = work();
                check()?;
                Ok(outcome)
            })
        });
        match catch_unwind(work) {
            Ok(outcome) => outcome,
            Err(payload) if payload.is::<Cancelled>() => Err(Cancelled),
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// How many scopes there are in the process. While there is none, no thread looks for its own.
static SCOPES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The tokens that this thread's work is under, the innermost last.
    static CURRENT: RefCell<Vec<Cancel>> = const { RefCell::new(Vec::new()) };
}

/// Whether the work of this thread is cancelled, so that loops should end. Costs a load while no token
/// is used, and some nanoseconds under one.
#[inline]
pub(crate) fn stopped() -> bool {
    SCOPES.load(Ordering::Relaxed) != 0 && is_stopped()
}

#[inline(never)]
fn is_stopped() -> bool {
    CURRENT.with_borrow(|tokens| tokens.iter().any(Cancel::is_asked))
}

/// Ends the work of this thread if it is cancelled, by unwinding to [`Cancel::run`]. No message is
/// printed: the panic hook does not see it. Costs what [`stopped`] costs.
#[inline]
pub(crate) fn ensure() {
    if stopped() {
        unwind();
    }
}

#[cold]
fn unwind() {
    // A destructor that reads something while the thread unwinds already must not unwind again.
    if !std::thread::panicking() {
        resume_unwind(Box::new(Cancelled));
    }
}

/// As [`stopped`], for code that can fail. Errors: the work is cancelled.
#[inline]
pub(crate) fn check() -> Result<(), Cancelled> {
    if stopped() { Err(Cancelled) } else { Ok(()) }
}

/// The tokens of a thread, for work of it that other threads do.
#[derive(Clone, Debug)]
pub(crate) struct CancelTokens(Vec<Cancel>);

/// Runs what must be done though the work is cancelled, such as giving back a lock.
#[cfg(feature = "store")]
pub(crate) fn free<T>(work: impl FnOnce() -> T) -> T {
    CancelTokens(Vec::new()).within(work)
}

/// The tokens that this thread's work is under.
pub(crate) fn here() -> CancelTokens {
    CancelTokens(match SCOPES.load(Ordering::Relaxed) {
        0 => Vec::new(),
        _ => CURRENT.with_borrow(Clone::clone),
    })
}

impl CancelTokens {
    /// Whether the work can be cancelled by none.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs some work under these tokens instead of those of the calling thread, which may be another
    /// one's for the moment.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.0.is_empty() && SCOPES.load(Ordering::Relaxed) == 0 {
            return work();
        }
        SCOPES.fetch_add(1, Ordering::Relaxed);
        let _scope = TokenScope(CURRENT.replace(self.0.clone()));
        work()
    }
}

/// Gives a thread its tokens back, also when the work panics.
struct TokenScope(Vec<Cancel>);

impl Drop for TokenScope {
    fn drop(&mut self) {
        CURRENT.set(std::mem::take(&mut self.0));
        SCOPES.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_under_all_tokens_around_it() {
        let (outer, inner) = (Cancel::new(), Cancel::new());
        assert!(!stopped());
        let both = outer.run(|| {
            let within = inner.run(|| {
                assert!(!stopped());
                outer.cancel();
                assert!(stopped());
            });
            assert_eq!(within, Err(Cancelled));
            assert!(!inner.is_cancelled());
        });
        assert_eq!(both, Err(Cancelled));
        assert!(!stopped(), "the thread is free again");
        assert_eq!(inner.run(|| 5), Ok(5));
        assert_eq!(outer.run(|| unreachable!("it is set")), Err(Cancelled));
    }

    #[test]
    fn other_threads_take_the_tokens_along() {
        let cancel = Cancel::new();
        let done = cancel.run(|| {
            let tokens = here();
            std::thread::scope(|scope| {
                let asked = || (stopped(), tokens.within(stopped));
                assert_eq!(scope.spawn(asked).join().ok(), Some((false, false)));
                cancel.cancel();
                assert_eq!(scope.spawn(asked).join().ok(), Some((false, true)));
            });
        });
        assert_eq!(done, Err(Cancelled));
    }

    #[test]
    fn cancelled_work_does_not_go_on() {
        let cancel = Cancel::at_check(3);
        let mut steps = 0;
        let outcome = cancel.run(|| {
            for _ in 0..10 {
                ensure();
                steps += 1;
            }
        });
        assert_eq!((outcome, steps), (Err(Cancelled), 1));
        // Other panics pass.
        let other = catch_unwind(|| Cancel::new().run(|| resume_unwind(Box::new("other"))));
        let other = other.expect_err("it panicked");
        assert_eq!(other.downcast_ref(), Some(&"other"));
    }

    #[test]
    fn a_deadline_counts_as_set() {
        assert!(Cancel::after(Duration::ZERO).is_cancelled());
        assert!(!Cancel::after(Duration::MAX).is_cancelled());
    }

    #[test]
    fn checks_are_counted() {
        let cancel = Cancel::at_check(3);
        let _ = cancel.run(|| [stopped(), stopped()]);
        // Once at the start, twice within, once at the end.
        assert_eq!(cancel.checks(), (4, 2));
    }
}
