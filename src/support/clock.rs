//! What the clock itself costs, so that short times can be told without it.
//!
//! It must not know what is timed.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How many pairs of readings the cost is the least of.
const PAIRS: usize = 256;

/// The least time between two readings of the clock in a row: what every timed piece of work has too much at least.
/// Measured at the first call of the process, in some 10 µs.
pub(crate) fn cost() -> Duration {
    static COST: OnceLock<Duration> = OnceLock::new();
    *COST.get_or_init(|| {
        let pairs = (0..PAIRS).map(|_| {
            let start = Instant::now();
            start.elapsed()
        });
        pairs.min().unwrap_or_default()
    })
}

/// The nanoseconds since `start` without the [`cost`] of the clock; 0 if that is more.
pub(crate) fn nanos_since(start: Instant) -> u64 {
    let taken = start.elapsed().saturating_sub(cost());
    u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX)
}
