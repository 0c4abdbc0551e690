//! Counters of a run, and on request rows per step.

use super::strategy::Strategy;

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

/// Rows of one step of one chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct StepTrace {
    /// Upper bound from an index lookup; `None` if nothing was looked up.
    pub estimate: Option<u64>,
    /// Rows kept.
    pub rows: u64,
}

/// The record of a run: counters always, details on request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    pub counters: Counters,
    details: Option<Box<TraceDetails>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TraceDetails {
    steps: Vec<Vec<StepTrace>>,
    chain: usize,
    strategies: Vec<(Strategy, u64)>,
}

impl Trace {
    #[inline]
    pub fn off() -> Self {
        Self::default()
    }

    pub fn on() -> Self {
        Self {
            details: Some(Box::default()),
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
            details.chain = index;
        }
    }

    #[inline]
    pub(super) fn step(&mut self, step: usize, rows: impl FnOnce() -> u64, estimate: Option<u64>) {
        if let Some(details) = &mut self.details {
            let rows = rows();
            details.add_step(details.chain, step, StepTrace { estimate, rows });
        }
    }
}

impl TraceDetails {
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
