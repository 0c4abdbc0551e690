//! Where times come from.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use smallvec::SmallVec;

/// A source of times, so that runs can be repeated. Times that do not grow are corrected where they are
/// used: every node gets a later one than the node before.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Nanoseconds since 1970.
    fn now_ns(&self) -> i64;
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ns(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| {
            i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
        })
    }
}

/// A clock that goes on by one step at each reading.
///
/// ```
/// use pactql::context::{Clock, StepClock};
/// let clock = StepClock::new(1_000, 10);
/// assert_eq!([clock.now_ns(), clock.now_ns()], [1_000, 1_010]);
/// ```
#[derive(Debug)]
pub struct StepClock {
    next: AtomicI64,
    step: i64,
}

impl StepClock {
    /// A clock that reads `start`, `start + step`, … nanoseconds.
    pub fn new(start: i64, step: i64) -> Self {
        Self {
            next: AtomicI64::new(start),
            step,
        }
    }
}

impl Clock for StepClock {
    fn now_ns(&self) -> i64 {
        self.next.fetch_add(self.step, Ordering::Relaxed)
    }
}

/// Readings of one operation; most make a node or two.
pub(super) type ReadingGroup = SmallVec<[i64; 4]>;

/// A clock whose readings can be put back: what a refused operation has read, the next one reads again.
#[derive(Clone, Debug)]
pub(super) struct Readings {
    clock: Arc<dyn Clock>,
    /// Readings that were put back, the next one first.
    ahead: VecDeque<i64>,
    group: Option<ReadingGroup>,
}

impl Readings {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            ahead: VecDeque::new(),
            group: None,
        }
    }

    pub(super) fn read(&mut self) -> i64 {
        let read = self
            .ahead
            .pop_front()
            .unwrap_or_else(|| self.clock.now_ns());
        if let Some(group) = &mut self.group {
            group.push(read);
        }
        read
    }

    /// Begins a group. Returns the one around it, for [`Readings::end`].
    pub(super) fn begin(&mut self) -> Option<ReadingGroup> {
        self.group.replace(ReadingGroup::new())
    }

    /// Ends a group; if it failed, its readings are put back.
    pub(super) fn end(&mut self, outer: Option<ReadingGroup>, done: bool) {
        let group = std::mem::replace(&mut self.group, outer).unwrap_or_default();
        if !done {
            for read in group.into_iter().rev() {
                self.ahead.push_front(read);
            }
        } else if let Some(outer) = &mut self.group {
            outer.extend(group);
        }
    }
}
