//! Numeric comparisons as sets of integers.

use std::sync::atomic::{AtomicU64, Ordering};

use super::value::Value;
use crate::query::ir::{CompareOp, Intervals};

/// The numbers that satisfy a comparison, so that asking is a range check.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberSet {
    pub ranges: Intervals,
    pub null: bool,
}

impl NumberSet {
    /// The numbers for which `number op value` is true; `None` if the value cannot be compared
    /// with a number.
    pub fn new(op: CompareOp, value: &Value) -> Option<Self> {
        let equal = Self::equal(value)?;
        // Every comparison is made of two sets: the numbers from a bound on, and its complement.
        // `!=` alone holds for null as well (LANGUAGE §5).
        let (ranges, null) = match op {
            CompareOp::Matches => return None,
            CompareOp::Eq => (equal.ranges, equal.null),
            CompareOp::Ne => (equal.ranges.complement(), !equal.null),
            // Nothing is below what is not a number, and nothing above.
            CompareOp::Lt | CompareOp::Le if !is_number(value) => (Intervals::default(), false),
            CompareOp::Lt => (from(value, true).complement(), false),
            CompareOp::Le => (from(value, false).complement(), false),
            CompareOp::Gt => (from(value, false), false),
            CompareOp::Ge => (from(value, true), false),
        };
        Some(Self { ranges, null })
    }

    /// The numbers of bytes whose fourth, rounded up, is in the set (LANGUAGE §5).
    pub fn of_tokens_as_bytes(self) -> Self {
        let ranges = self.ranges.ranges().iter().map(|(low, high)| {
            let above = low.saturating_sub(1).saturating_mul(4);
            (above.saturating_add(1), high.saturating_mul(4))
        });
        let ranges = Intervals::union_of(ranges);
        Self { ranges, ..self }
    }

    /// The numbers that equal a value, or one of a list.
    fn equal(value: &Value) -> Option<Self> {
        let (ranges, null) = match value {
            Value::List(items) => {
                // A list is the union of its values.
                let sets: Option<Vec<Self>> = items.iter().map(Self::equal).collect();
                let sets = sets?;
                let ranges = sets.iter().flat_map(|set| set.ranges.ranges());
                let null = sets.iter().any(|set| set.null);
                (Intervals::union_of(ranges.copied()), null)
            }
            Value::Null => (Intervals::default(), true),
            Value::Int(number) => (Intervals::range(*number, *number), false),
            Value::Decimal(number) => {
                // An integer equals a decimal only if that is whole.
                let whole = floor(*number).filter(|_| number.fract() == 0.0);
                let range = |number| Intervals::range(number, number);
                (whole.map_or_else(Intervals::default, range), false)
            }
            Value::Text(_) | Value::Spelled(_) => return None,
        };
        Some(Self { ranges, null })
    }

    /// Whether `number` is in the set. Logarithmic in the intervals.
    #[inline]
    pub fn contains(&self, number: Option<i64>) -> bool {
        number.map_or(self.null, |number| self.ranges.contains(number))
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && !self.null
    }
}

/// A comparison of ttls that counts the rows it compares.
#[derive(Debug)]
pub struct ObservedNumbers {
    pub set: NumberSet,
    rows: AtomicU64,
}

impl ObservedNumbers {
    /// Counts from 0.
    pub fn new(set: NumberSet) -> Self {
        let rows = AtomicU64::new(0);
        Self { set, rows }
    }

    /// The rows so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub fn add(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
}

impl Clone for ObservedNumbers {
    fn clone(&self) -> Self {
        Self {
            set: self.set.clone(),
            rows: AtomicU64::new(self.rows()),
        }
    }
}

fn is_number(value: &Value) -> bool {
    match value {
        Value::Int(_) => true,
        Value::Decimal(number) => !number.is_nan(),
        Value::Null | Value::Text(_) | Value::Spelled(_) | Value::List(_) => false,
    }
}

/// The integers above a number, and the number itself if it is `included`.
fn from(value: &Value, included: bool) -> Intervals {
    let low = match value {
        Value::Int(number) if included => Some(*number),
        Value::Int(number) => number.checked_add(1),
        // Decimals are compared exactly: the integers above one are those above its floor.
        Value::Decimal(number) if *number < i64::MIN as f64 => Some(i64::MIN),
        Value::Decimal(number) => match floor(*number) {
            Some(floor) if included && floor as f64 == *number => Some(floor),
            floor => floor.and_then(|floor| floor.checked_add(1)),
        },
        Value::Null | Value::Text(_) | Value::Spelled(_) | Value::List(_) => None,
    };
    low.map_or_else(Intervals::default, |low| Intervals::range(low, i64::MAX))
}

fn floor(number: f64) -> Option<i64> {
    // `None` where the floor is beyond an `i64`, as for infinities.
    let floor = number.floor();
    // 2^63 is exact as a double, and the first one that is not an `i64`.
    (floor >= i64::MIN as f64 && floor < -(i64::MIN as f64)).then_some(floor as i64)
}
