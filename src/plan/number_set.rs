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
    #[must_use]
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
    #[must_use]
    pub fn contains(&self, number: Option<i64>) -> bool {
        number.map_or(self.null, |number| self.ranges.contains(number))
    }

    /// Whether the set is empty.
    #[must_use]
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

#[cfg(test)]
mod tests {
    use super::{NumberSet, Value};
    use crate::ir::{Number, Op};

    #[test]
    fn numeric_comparisons_are_exact_over_all_integers() {
        let numbers = [
            i64::MIN,
            i64::MIN + 1,
            -3,
            -2,
            0,
            2,
            3,
            i64::MAX - 1,
            i64::MAX,
        ];
        let two_63 = 9_223_372_036_854_775_808.0;
        let decimals = [
            -2.5, -2.0, 2.0, 2.5, 9.3e18, -9.3e18, two_63, -two_63, 1e300,
        ];
        let ops = [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge];
        let holds = |op, order: std::cmp::Ordering| match op {
            Op::Eq => order.is_eq(),
            Op::Ne => order.is_ne(),
            Op::Lt => order.is_lt(),
            Op::Le => order.is_le(),
            Op::Gt => order.is_gt(),
            _ => order.is_ge(),
        };
        for op in ops {
            for left in numbers {
                for right in numbers {
                    let set = NumberSet::new(op, &Value::Int(right)).expect("numbers compare");
                    assert_eq!(set.contains(Some(left)), holds(op, left.cmp(&right)));
                }
                for right in decimals {
                    let set = NumberSet::new(op, &Value::Decimal(right)).expect("numbers compare");
                    let order = Number::Int(i128::from(left)).compare(&Number::Decimal(right));
                    assert_eq!(
                        set.contains(Some(left)),
                        holds(op, order),
                        "{left} {op:?} {right}"
                    );
                }
            }
            let null = NumberSet::new(op, &Value::Null).expect("null compares");
            assert_eq!(
                (null.contains(None), null.contains(Some(0))),
                (op == Op::Eq, op == Op::Ne)
            );
            let one = NumberSet::new(op, &Value::Int(1)).expect("numbers compare");
            assert_eq!(one.contains(None), op == Op::Ne);
        }
        assert!(NumberSet::new(Op::Eq, &"1".into()).is_none());
    }

    #[test]
    fn lists_become_intervals() {
        let values = |items: &[i64]| Value::List(items.iter().map(|&item| item.into()).collect());
        let many: Vec<i64> = (0..1_000).rev().collect();
        let set = NumberSet::new(Op::Eq, &values(&many)).expect("numbers compare");
        assert_eq!(set.ranges.ranges(), [(0, 999)]);
        let set = NumberSet::new(Op::Eq, &values(&[7, i64::MAX, 3, i64::MIN, 7, 4]));
        let set = set.expect("numbers compare");
        let kept = [(i64::MIN, i64::MIN), (3, 4), (7, 7), (i64::MAX, i64::MAX)];
        assert_eq!(set.ranges.ranges(), kept);
        for number in [i64::MIN, -1, 2, 3, 4, 5, 7, 8, i64::MAX] {
            let inside = kept
                .iter()
                .any(|&(low, high)| (low..=high).contains(&number));
            assert_eq!(set.contains(Some(number)), inside, "{number}");
        }
    }
}
