//! Copies of bound plans whose tests count what they read, for `explain --analyze`.
//!
//! The counters are in the copy, so a plan that is not observed runs without them. It must not know who asks.

use std::iter::Sum;

use super::bound::{Bound, BoundChain, BoundFilter, BoundPick, BoundStep, BoundTest};
use super::number_set::ObservedNumbers;
use super::predicate::Compare;
use super::text_test::TextTest;
use crate::query::ir::{Attr, Pattern};

/// What tests have read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// Bytes of the texts in which patterns were searched for.
    pub text_bytes: u64,
    /// Rows whose ttl was compared.
    pub ttl_rows: u64,
}

impl Sum for Readings {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            text_bytes: sum.text_bytes + one.text_bytes,
            ttl_rows: sum.ttl_rows + one.ttl_rows,
        })
    }
}

impl Bound {
    /// A copy that counts what its tests read, and gives the same rows in the same way.
    pub fn observed(&self) -> Self {
        let mut copy = self.clone();
        copy.filters.iter_mut().for_each(observe);
        copy.chains.iter_mut().for_each(observe_steps);
        copy
    }

    /// What the tests of a step of a group have read, with those inside of its conditions; 0 in a plan that is not [observed](Self::observed).
    pub fn step_readings(&self, group: usize, step: usize) -> Readings {
        let steps = self.chains.get(group).map(|chain| &chain.steps);
        match steps.and_then(|steps| steps.get(step)) {
            Some(BoundStep::Filter(filter)) => filter.readings(),
            Some(BoundStep::Zone { .. }) | None => Readings::default(),
        }
    }

    /// What the filters of the final set have read; 0 in a plan that is not [observed](Self::observed).
    pub fn filter_readings(&self) -> Readings {
        self.filters.iter().map(readings).sum()
    }
}

impl BoundFilter {
    fn readings(&self) -> Readings {
        self.all_tests().map(readings).sum()
    }
}

fn observe_steps(chain: &mut BoundChain) {
    for step in &mut chain.steps {
        if let BoundStep::Filter(filter) = step {
            filter.tests.iter_mut().for_each(observe);
            for pick in &mut filter.picks {
                if let BoundPick::Test(test) = pick {
                    observe(test);
                }
            }
        }
    }
}

// Recursion is as deep as conditions are inside each other, which is bounded.
fn observe(test: &mut BoundTest) {
    let condition = match test {
        BoundTest::Attr(condition) => condition,
        BoundTest::Inner(inner) => return inner.test.any.iter_mut().for_each(observe_steps),
        BoundTest::Type(_) | BoundTest::Depth(_) => return,
    };
    match &mut condition.compare {
        Compare::Number(set) if condition.attr == Attr::Ttl => {
            condition.compare = Compare::Observed(Box::new(ObservedNumbers::new(set.clone())));
        }
        Compare::Text(TextTest::Matches(pattern)) => *pattern = pattern.counted(),
        Compare::Value(test) => {
            if let Some(pattern) = test.pattern_mut() {
                *pattern = pattern.counted();
            }
        }
        Compare::Number(_) | Compare::Text(_) | Compare::Observed(_) => {}
    }
}

fn readings(test: &BoundTest) -> Readings {
    let of_pattern = |pattern: Option<&Pattern>| Readings {
        text_bytes: pattern.map_or(0, Pattern::searched_bytes),
        ttl_rows: 0,
    };
    let condition = match test {
        BoundTest::Attr(condition) => condition,
        BoundTest::Inner(inner) => return inner.tests().map(readings).sum(),
        BoundTest::Type(_) | BoundTest::Depth(_) => return Readings::default(),
    };
    match &condition.compare {
        Compare::Text(TextTest::Matches(pattern)) => of_pattern(Some(pattern)),
        Compare::Value(test) => of_pattern(test.pattern()),
        Compare::Observed(numbers) => Readings {
            text_bytes: 0,
            ttl_rows: numbers.rows(),
        },
        Compare::Number(_) | Compare::Text(_) => Readings::default(),
    }
}
