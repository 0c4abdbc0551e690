//! The times of one kind of operation.
//!
//! It must not know what is timed, or how it is printed.

use crate::app::present::{Failure, Result};
use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// The longest time that percentiles tell apart, in nanoseconds: an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// Parts of a run whose means are the samples that a baseline is compared by.
pub(crate) const SLICES: usize = 40;

/// Times in nanoseconds.
#[derive(Clone)]
pub(crate) struct Times {
    /// To two significant digits.
    spread: Histogram<u64>,
    sum: u128,
    /// Exact.
    max: u64,
}

impl Times {
    fn new() -> Result<Self> {
        let spread = Histogram::new_with_bounds(1, LONGEST, 2)
            .map_err(|error| Failure::internal(error.to_string()))?;
        Ok(Self {
            spread,
            sum: 0,
            max: 0,
        })
    }

    fn record(&mut self, nanos: u64) {
        self.spread.saturating_record(nanos);
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
    }

    fn add(&mut self, other: &Self) {
        self.spread += &other.spread;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub(crate) fn len(&self) -> u64 {
        self.spread.len()
    }

    /// The mean; 0 of none.
    pub(crate) fn mean(&self) -> f64 {
        self.sum as f64 / self.len().max(1) as f64
    }

    /// The time that this share does not exceed, rounded up by less than 1 %; 0 of none.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        self.spread.value_at_quantile(share).min(self.max)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "mean": self.mean(),
            "p50": self.quantile(0.5),
            "p99": self.quantile(0.99),
            "p99_9": self.quantile(0.999),
            "max": self.max,
        })
    }
}

/// What was measured of a selector, or of commits.
#[derive(Clone)]
pub(crate) struct Tally {
    /// From the beginning of an operation to its end.
    pub(crate) service: Times,
    /// From the moment that an operation was due, where a rate is given.
    pub(crate) response: Option<Times>,
    pub(crate) rows: u64,
    /// Allocations, where they are counted.
    pub(crate) allocations: Option<u64>,
    /// The sum of times and the number of operations of each part of the run.
    slices: Vec<(u64, u64)>,
}

/// One operation.
pub(crate) struct Measured {
    pub(crate) service: u64,
    pub(crate) response: Option<u64>,
    pub(crate) rows: usize,
    pub(crate) allocations: u64,
    /// The part of the run in which it began.
    pub(crate) slice: usize,
}

impl Tally {
    pub(crate) fn new(with_response: bool, with_allocations: bool) -> Result<Self> {
        Ok(Self {
            service: Times::new()?,
            response: with_response.then(Times::new).transpose()?,
            rows: 0,
            allocations: with_allocations.then_some(0),
            slices: vec![(0, 0); SLICES],
        })
    }

    pub(crate) fn record(&mut self, one: &Measured) {
        self.service.record(one.service);
        if let (Some(times), Some(nanos)) = (&mut self.response, one.response) {
            times.record(nanos);
        }
        self.rows += one.rows as u64;
        if let Some(allocations) = &mut self.allocations {
            *allocations += one.allocations;
        }
        let slice = &mut self.slices[one.slice.min(SLICES - 1)];
        slice.0 = slice.0.saturating_add(one.service);
        slice.1 += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.service.add(&other.service);
        if let (Some(times), Some(others)) = (&mut self.response, &other.response) {
            times.add(others);
        }
        self.rows += other.rows;
        if let (Some(count), Some(others)) = (&mut self.allocations, other.allocations) {
            *count += others;
        }
        for (slice, other) in self.slices.iter_mut().zip(&other.slices) {
            slice.0 = slice.0.saturating_add(other.0);
            slice.1 += other.1;
        }
    }

    /// The mean service time of each part of the run that has any, in nanoseconds.
    pub(crate) fn samples(&self) -> Vec<f64> {
        let slices = self.slices.iter().filter(|(_, count)| *count > 0);
        slices
            .map(|(sum, count)| *sum as f64 / *count as f64)
            .collect()
    }

    /// A count for each operation; 0 of none.
    pub(crate) fn each(&self, count: u64) -> f64 {
        count as f64 / self.service.len().max(1) as f64
    }

    pub(crate) fn json(&self, seconds: f64) -> Value {
        let count = self.service.len();
        let mut json = json!({
            "count": count,
            "per_second": count as f64 / seconds,
            "rows": self.each(self.rows),
            "service_ns": self.service.json(),
        });
        if let Some(response) = &self.response {
            json["response_ns"] = response.json();
        }
        if let Some(allocations) = self.allocations {
            json["allocations"] = json!(self.each(allocations));
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::{Measured, SLICES, Tally};

    #[test]
    fn percentiles_are_within_one_per_cent_and_the_maximum_is_exact() {
        let mut tally = Tally::new(true, true).expect("a tally");
        assert_eq!((tally.service.quantile(0.5), tally.service.max), (0, 0));
        assert!(tally.samples().is_empty());
        for micros in 1..=1000 {
            tally.record(&Measured {
                service: micros * 1_000,
                response: Some(micros * 2_000),
                rows: 1,
                allocations: 2,
                slice: micros as usize / 500,
            });
        }
        for (share, exact) in [(0.5, 500_000), (0.99, 990_000), (0.999, 999_000)] {
            let found = tally.service.quantile(share);
            assert!((exact..=exact + exact / 100).contains(&found), "{found}");
        }
        assert_eq!(
            (tally.service.quantile(1.0), tally.service.max),
            (1_000_000, 1_000_000)
        );
        assert_eq!(tally.service.mean(), 500_500.0);
        let samples = tally.samples();
        assert_eq!((samples.len(), samples[0]), (3, 250_000.0));
        let mut sum = tally.clone();
        sum.add(&tally);
        assert_eq!((sum.service.len(), sum.rows), (2000, 2000));
        assert_eq!(sum.samples(), samples);
        let json = sum.json(2.0);
        assert_eq!(
            (&json["allocations"], &json["rows"]),
            (&2.0.into(), &1.0.into())
        );
        assert_eq!(json["response_ns"]["max"], 2_000_000);
        tally.record(&Measured {
            service: 1,
            response: None,
            rows: 0,
            allocations: 0,
            slice: SLICES + 7,
        });
        assert_eq!(tally.samples().len(), 4);
    }
}
