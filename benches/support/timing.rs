//! Timing several contenders against each other on a machine with other load.
//!
//! Each round gives every contender one short turn, so that other load slows all of them. The time
//! of a contender is the 10th percentile of its rounds: load only adds time, so fast rounds show
//! what the code costs.

use super::queries::Task;
use criterion::Criterion;
use std::time::{Duration, Instant};

/// How long to measure.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// Rounds of each group of contenders.
    pub(crate) rounds: usize,
    /// The shortest turn of a contender, unless a single run is longer.
    pub(crate) turn: Duration,
}

impl Effort {
    /// Enough for a ratio that is right within a few per cent.
    pub(crate) const FULL: Self = Self {
        rounds: 61,
        turn: Duration::from_millis(3),
    };
    /// Enough to see large regressions.
    pub(crate) const QUICK: Self = Self {
        rounds: 21,
        turn: Duration::from_millis(1),
    };
}

/// The time of one run of each task, in nanoseconds.
pub(crate) fn interleaved(effort: Effort, tasks: &mut [Task<'_>]) -> Vec<f64> {
    let repeats: Vec<u32> = tasks.iter_mut().map(|task| repeats(effort, task)).collect();
    let mut times = vec![Vec::with_capacity(effort.rounds); tasks.len()];
    for _ in 0..effort.rounds {
        for ((task, &repeats), times) in tasks.iter_mut().zip(&repeats).zip(&mut times) {
            // One run to bring the contender's data back into the caches.
            task();
            times.push(per_run(task, repeats));
        }
    }
    times.iter_mut().map(|times| settled(times)).collect()
}

/// The number of runs in one turn.
fn repeats(effort: Effort, task: &mut Task<'_>) -> u32 {
    let mut repeats = 1;
    loop {
        let time = per_run(task, repeats) * f64::from(repeats);
        if time * 2.0 >= effort.turn.as_nanos() as f64 || repeats >= 1 << 24 {
            let wanted = effort.turn.as_nanos() as f64 / time * f64::from(repeats);
            return (wanted.ceil() as u32).max(1);
        }
        repeats *= 2;
    }
}

/// The time of one of `repeats` runs in a row, in nanoseconds.
pub(crate) fn per_run(task: &mut Task<'_>, repeats: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..repeats {
        task();
    }
    start.elapsed().as_nanos() as f64 / f64::from(repeats)
}

/// The 10th percentile of the rounds.
pub(crate) fn settled(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 10).copied().unwrap_or(f64::NAN)
}

/// The settings of a criterion bench: samples, and milliseconds for all of them.
pub(crate) fn criterion(samples: usize, millis: u64) -> Criterion {
    Criterion::default()
        .sample_size(samples)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(millis))
}

/// Nanoseconds with three digits and a unit.
pub(crate) fn nice(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        ns if ns.is_nan() => return "-".into(),
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = if value < 10.0 {
        2
    } else if value < 100.0 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {unit}")
}

/// The time of `make` in nanoseconds, without dropping its result. For long runs.
pub(crate) fn once<T>(make: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    let made = std::hint::black_box(make());
    let time = start.elapsed().as_nanos() as f64;
    drop(made);
    time
}
