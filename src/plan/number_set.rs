//! Numeric comparisons as sets of integers.

use super::value::Value;
use crate::ir::{Intervals, Op};

/// The numbers that satisfy a comparison, so that asking is a range check.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberSet {
    /// The integers.
    pub ranges: Intervals,
    /// Whether a missing value matches.
    pub null: bool,
}

impl NumberSet {
    /// The numbers for which `number op value` is true; `None` if the value cannot be compared
    /// with a number.
    pub fn new(op: Op, value: &Value) -> Option<Self> {
        let ordered = |low: Option<i64>, high: Option<i64>| Self {
            ranges: low
                .zip(high)
                .map_or_else(Intervals::default, |(low, high)| {
                    Intervals::range(low, high)
                }),
            null: false,
        };
        let equal = Self::equal(value)?;
        Some(match op {
            Op::Eq => equal,
            Op::Ne => Self {
                ranges: equal.ranges.complement(),
                null: !equal.null,
            },
            Op::Matches => return None,
            Op::Lt => ordered(Some(i64::MIN), below(value, false)),
            Op::Le => ordered(Some(i64::MIN), below(value, true)),
            Op::Gt => ordered(above(value, false), Some(i64::MAX)),
            Op::Ge => ordered(above(value, true), Some(i64::MAX)),
        })
    }

    /// The numbers that equal a value, or one of a list.
    fn equal(value: &Value) -> Option<Self> {
        let (ranges, null) = match value {
            Value::List(items) => {
                let sets: Option<Vec<Self>> = items.iter().map(Self::equal).collect();
                let sets = sets?;
                let ranges = sets.iter().flat_map(|set| set.ranges.ranges());
                let null = sets.iter().any(|set| set.null);
                (Intervals::union_of(ranges.copied()), null)
            }
            Value::Null => (Intervals::default(), true),
            Value::Int(number) => (Intervals::range(*number, *number), false),
            Value::Decimal(number) => {
                let whole = floor(*number).filter(|_| number.fract() == 0.0);
                let range = |number| Intervals::range(number, number);
                (whole.map_or_else(Intervals::default, range), false)
            }
            Value::Text(_) => return None,
        };
        Some(Self { ranges, null })
    }

    /// Whether `number` is in the set. Logarithmic in the intervals.
    #[inline]
    pub fn contains(&self, number: Option<i64>) -> bool {
        number.map_or(self.null, |number| self.ranges.contains(number))
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && !self.null
    }
}

/// The largest integer below (or at) a number.
fn below(value: &Value, included: bool) -> Option<i64> {
    match value {
        Value::Int(number) => {
            if included {
                Some(*number)
            } else {
                number.checked_sub(1)
            }
        }
        Value::Decimal(number) => {
            // 2^63 is the first double above every `i64`.
            if *number >= i64::MAX as f64 {
                return Some(i64::MAX);
            }
            let floor = floor(*number)?;
            if !included && floor as f64 == *number {
                floor.checked_sub(1)
            } else {
                Some(floor)
            }
        }
        _ => None,
    }
}

/// The smallest integer above (or at) a number.
fn above(value: &Value, included: bool) -> Option<i64> {
    match value {
        Value::Int(number) => {
            if included {
                Some(*number)
            } else {
                number.checked_add(1)
            }
        }
        Value::Decimal(number) => {
            if *number < i64::MIN as f64 {
                return Some(i64::MIN);
            }
            let floor = floor(*number)?;
            if included && floor as f64 == *number {
                Some(floor)
            } else {
                floor.checked_add(1)
            }
        }
        _ => None,
    }
}

/// The floor, where it is an `i64`.
fn floor(number: f64) -> Option<i64> {
    let floor = number.floor();
    // 2^63 is exact as a double, and the first one that is not an `i64`.
    (floor >= i64::MIN as f64 && floor < -(i64::MIN as f64)).then_some(floor as i64)
}
