//! Counters of a run, and on request rows per step.

use std::time::Instant;

use super::strategy::Strategy;
use crate::support::clock;

/// Work done by a run. Always counted; an addition each. Example: [`Explain`](crate::explain::Explain).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Counters {
    /// Row numbers in the windows read.
    pub rows_seen: u64,
    /// Posting lists read.
    pub postings: u64,
    /// Rows whose columns or nodes were read one by one.
    pub probes: u64,
    /// Pieces of the snapshot outside every window.
    pub pieces_pruned: u64,
    /// Pieces of the snapshot inside a window.
    pub pieces_read: u64,
    /// Row numbers not read because enough rows were found before.
    pub rows_left: u64,
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.rows_seen += other.rows_seen;
        self.postings += other.postings;
        self.probes += other.probes;
        self.pieces_pruned += other.pieces_pruned;
        self.pieces_read += other.pieces_read;
        self.rows_left += other.rows_left;
    }
}

/// The counters of a run that reads few rows, in half the space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmallCounters([u32; 6]);

impl From<Counters> for SmallCounters {
    #[inline(always)]
    fn from(counters: Counters) -> Self {
        Self([
            counters.rows_seen as u32,
            counters.postings as u32,
            counters.probes as u32,
            counters.pieces_pruned as u32,
            counters.pieces_read as u32,
            counters.rows_left as u32,
        ])
    }
}

impl From<SmallCounters> for Counters {
    fn from(SmallCounters(counters): SmallCounters) -> Self {
        let [
            rows_seen,
            postings,
            probes,
            pieces_pruned,
            pieces_read,
            rows_left,
        ] = counters.map(u64::from);
        Self {
            rows_seen,
            postings,
            probes,
            pieces_pruned,
            pieces_read,
            rows_left,
        }
    }
}

/// What one step of one chain did.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepTrace {
    /// Upper bound from an index lookup; `None` if nothing was looked up.
    pub estimate: Option<u64>,
    /// Rows kept.
    pub rows: u64,
    /// Pieces in the windows it was run over; a piece counts once for each run.
    pub pieces: u64,
    /// Time in nanoseconds since the step before it, without that of the clock; of all threads together.
    pub nanos: u64,
}

/// The record of a run: counters always, details on request.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub counters: Counters,
    details: Option<Box<TraceDetails>>,
}

#[derive(Clone, Debug)]
struct TraceDetails {
    steps: Vec<Vec<StepTrace>>,
    chain: usize,
    /// When the current step began.
    since: Instant,
    /// Rows whose ttls were compared between snapshots.
    ttl_rows: u64,
    strategies: Vec<(Strategy, u64)>,
}

impl Trace {
    #[inline]
    pub fn off() -> Self {
        Self::default()
    }

    pub fn on() -> Self {
        Self {
            details: Some(Box::new(TraceDetails {
                steps: Vec::new(),
                chain: 0,
                since: Instant::now(),
                ttl_rows: 0,
                strategies: Vec::new(),
            })),
            ..Self::default()
        }
    }

    pub fn is_on(&self) -> bool {
        self.details.is_some()
    }

    /// The steps of each chain; empty if details are off.
    pub fn steps(&self) -> &[Vec<StepTrace>] {
        self.details.as_ref().map_or(&[], |details| &details.steps)
    }

    /// The strategies that ran, each with the number of runs, in order of first use; empty if
    /// details are off.
    pub fn strategies(&self) -> &[(Strategy, u64)] {
        self.details
            .as_ref()
            .map_or(&[], |details| &details.strategies)
    }

    /// Adds another run of the same plan.
    pub fn add(&mut self, other: &Self) {
        self.counters += other.counters;
        let (Some(details), Some(other)) = (&mut self.details, &other.details) else {
            return;
        };
        // Runs of one plan have the same chains and steps, so counts add up by place.
        for (chain, added) in other.steps.iter().enumerate() {
            for (step, added) in added.iter().enumerate() {
                details.add_step(chain, step, *added);
            }
        }
        for &(strategy, runs) in &other.strategies {
            details.add_runs(strategy, runs);
        }
        details.ttl_rows += other.ttl_rows;
    }

    /// Rows whose ttls were compared between snapshots; 0 if details are off.
    pub fn ttl_rows(&self) -> u64 {
        self.details.as_ref().map_or(0, |details| details.ttl_rows)
    }

    /// Adds rows whose ttls were compared between snapshots.
    #[inline]
    pub fn compared_ttls(&mut self, rows: impl FnOnce() -> u64) {
        if let Some(details) = &mut self.details {
            details.ttl_rows += rows();
        }
    }

    #[inline]
    pub(super) fn strategy(&mut self, strategy: Strategy) {
        if let Some(details) = &mut self.details {
            details.add_runs(strategy, 1);
        }
    }

    /// The following steps are those of this chain.
    #[inline]
    pub(super) fn begin_chain(&mut self, index: usize) {
        if let Some(details) = &mut self.details {
            details.begin_chain(index);
        }
    }

    /// The step is done: `work` tells its rows and the pieces of its windows.
    #[inline]
    pub(super) fn step(
        &mut self,
        step: usize,
        work: impl FnOnce() -> (u64, usize),
        estimate: Option<u64>,
    ) {
        if let Some(details) = &mut self.details {
            details.end_step(step, work, estimate);
        }
    }
}

impl TraceDetails {
    #[cold]
    fn begin_chain(&mut self, index: usize) {
        self.chain = index;
        self.since = Instant::now();
    }

    #[cold]
    fn end_step(
        &mut self,
        step: usize,
        work: impl FnOnce() -> (u64, usize),
        estimate: Option<u64>,
    ) {
        // Counting rows does not belong to the step, so the clock is read before and after.
        let nanos = clock::nanos_since(self.since);
        let (rows, pieces) = work();
        let done = StepTrace {
            estimate,
            rows,
            pieces: pieces as u64,
            nanos,
        };
        self.add_step(self.chain, step, done);
        self.since = Instant::now();
    }

    #[cold]
    fn add_step(&mut self, chain: usize, step: usize, added: StepTrace) {
        if self.steps.len() <= chain {
            self.steps.resize_with(chain + 1, Vec::new);
        }
        let steps = &mut self.steps[chain];
        if steps.len() <= step {
            steps.resize(step + 1, StepTrace::default());
        }
        steps[step].rows += added.rows;
        steps[step].pieces += added.pieces;
        steps[step].nanos += added.nanos;
        if let Some(estimate) = added.estimate {
            *steps[step].estimate.get_or_insert(0) += estimate;
        }
    }

    #[cold]
    fn add_runs(&mut self, strategy: Strategy, runs: u64) {
        let known = self.strategies.iter_mut();
        match known.into_iter().find(|(known, _)| *known == strategy) {
            Some((_, count)) => *count += runs,
            None => self.strategies.push((strategy, runs)),
        }
    }
}
