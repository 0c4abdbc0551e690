//! What a run did, in numbers.

/// Counts that are always kept; they cost an addition each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Counters {
    /// Row numbers in the windows looked at.
    pub rows_seen: u64,
    /// Postings read.
    pub postings: u64,
    /// Rows whose columns or nodes were asked one by one.
    pub probes: u64,
    /// Pieces of the snapshot outside every window.
    pub pieces_pruned: u64,
    /// Pieces of the snapshot inside a window.
    pub pieces_read: u64,
    /// Row numbers never looked at because enough rows were found before.
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

/// What one step of one chain did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct StepTrace {
    /// How many rows an index look-up promises at most; none where nothing was looked up.
    pub estimate: Option<u64>,
    /// How many rows the step kept.
    pub rows: u64,
}

/// The record of a run: counters always, steps when asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The counters.
    pub counters: Counters,
    /// For each chain, its steps; empty when steps are off.
    pub steps: Vec<Vec<StepTrace>>,
    on: bool,
    /// The chain that runs.
    chain: usize,
}

impl Trace {
    /// Counters only.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// Counters and steps.
    #[must_use]
    pub fn on() -> Self {
        Self {
            on: true,
            ..Self::default()
        }
    }

    /// Whether steps are recorded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Adds what another run of the same plan did.
    pub fn add(&mut self, other: &Self) {
        self.counters += other.counters;
        if self.steps.len() < other.steps.len() {
            self.steps.resize_with(other.steps.len(), Vec::new);
        }
        for (chain, added) in self.steps.iter_mut().zip(&other.steps) {
            if chain.len() < added.len() {
                chain.resize(added.len(), StepTrace::default());
            }
            for (step, added) in chain.iter_mut().zip(added) {
                step.rows += added.rows;
                if let Some(estimate) = added.estimate {
                    *step.estimate.get_or_insert(0) += estimate;
                }
            }
        }
    }

    pub(super) fn begin_chain(&mut self, index: usize) {
        if self.on {
            self.chain = index;
            if self.steps.len() <= index {
                self.steps.resize_with(index + 1, Vec::new);
            }
        }
    }

    /// Adds to what step `step` of the chain begun last kept.
    #[inline]
    pub(super) fn step(&mut self, step: usize, rows: impl FnOnce() -> u64, estimate: Option<u64>) {
        if self.on {
            self.add_step(step, rows(), estimate);
        }
    }

    #[cold]
    fn add_step(&mut self, step: usize, rows: u64, estimate: Option<u64>) {
        if let Some(chain) = self.steps.get_mut(self.chain) {
            if chain.len() <= step {
                chain.resize(step + 1, StepTrace::default());
            }
            chain[step].rows += rows;
            if let Some(estimate) = estimate {
                *chain[step].estimate.get_or_insert(0) += estimate;
            }
        }
    }
}
