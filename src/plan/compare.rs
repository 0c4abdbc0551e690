//! Comparisons with their values in place: what a bound test asks of an attribute.
//!
//! Each attribute compares in one of three ways (LANGUAGE §5): numeric headers by number, string
//! headers by text, custom attributes by the value each node holds. A comparison is worked out
//! once when values are bound, so that asking it costs no more than it must: every numeric
//! comparison is a set of intervals.

use std::borrow::Cow;
use std::cmp::Ordering;

use smallvec::{SmallVec, smallvec};

use super::{Number, Value};
use crate::ir::{Op, Pattern, PatternError, Patterns};

/// What a bound test asks of its attribute.
#[derive(Clone, Debug)]
pub enum Compare {
    /// Of a numeric header.
    Number(NumberSet),
    /// Of a string header.
    Text(TextTest),
    /// Of tags, a custom attribute, or the content. Boxed, as it is several times as large as the
    /// others and rarer.
    Value(Box<ValueTest>),
}

/// A set of integers, as sorted disjoint inclusive intervals, and whether null is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberSet {
    /// The intervals, ascending.
    pub ranges: SmallVec<[(i64, i64); 2]>,
    /// Whether a missing value matches.
    pub null: bool,
}

impl NumberSet {
    /// The numbers for which `number op value` holds; `None` when the value cannot be compared
    /// with a number.
    #[must_use]
    pub fn new(op: Op, value: &Value) -> Option<Self> {
        let equal = match value {
            Value::List(items) => {
                let mut union = Self {
                    ranges: SmallVec::new(),
                    null: false,
                };
                for item in items {
                    let set = Self::new(Op::Eq, item)?;
                    union.null |= set.null;
                    union.ranges.extend(set.ranges);
                }
                union.ranges.sort_unstable();
                // Numbers that stand side by side are one interval.
                union.ranges.dedup_by(|next, last| {
                    let meets = next.0 <= last.1.saturating_add(1);
                    if meets {
                        last.1 = last.1.max(next.1);
                    }
                    meets
                });
                union
            }
            Value::Null => Self {
                ranges: SmallVec::new(),
                null: true,
            },
            Value::Int(number) => Self {
                ranges: smallvec![(*number, *number)],
                null: false,
            },
            Value::Decimal(number) => {
                let whole = number.fract() == 0.0;
                let ranges = match floor(*number) {
                    Some(floor) if whole => smallvec![(floor, floor)],
                    _ => SmallVec::new(),
                };
                Self {
                    ranges,
                    null: false,
                }
            }
            Value::Text(_) => return None,
        };
        let none = Self {
            ranges: SmallVec::new(),
            null: false,
        };
        let ordered = |low: Option<i64>, high: Option<i64>| match (low, high) {
            (Some(low), Some(high)) if low <= high => Self {
                ranges: smallvec![(low, high)],
                null: false,
            },
            _ => none.clone(),
        };
        Some(match op {
            Op::Eq => equal,
            Op::Ne => equal.complement(),
            Op::Matches => return None,
            Op::Lt | Op::Le | Op::Gt | Op::Ge if matches!(value, Value::Null) => none,
            Op::Lt => ordered(Some(i64::MIN), below(value, false)),
            Op::Le => ordered(Some(i64::MIN), below(value, true)),
            Op::Gt => ordered(above(value, false), Some(i64::MAX)),
            Op::Ge => ordered(above(value, true), Some(i64::MAX)),
        })
    }

    fn complement(&self) -> Self {
        let mut ranges = SmallVec::new();
        let mut next = Some(i64::MIN);
        for &(low, high) in &self.ranges {
            if let Some(start) = next
                && start < low
            {
                ranges.push((start, low - 1));
            }
            next = high.checked_add(1);
        }
        ranges.extend(next.map(|start| (start, i64::MAX)));
        Self {
            ranges,
            null: !self.null,
        }
    }

    /// Whether `number` is in the set. Logarithmic in the intervals.
    #[inline]
    #[must_use]
    pub fn contains(&self, number: Option<i64>) -> bool {
        match number {
            None => self.null,
            Some(number) => {
                let at = self.ranges.partition_point(|&(_, high)| high < number);
                self.ranges.get(at).is_some_and(|&(low, _)| low <= number)
            }
        }
    }

    /// Whether nothing is in the set.
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
            // The bound, 2^63, is the first double above every integer.
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
    // 2^63 is exact as a double, and the first one that is no `i64`.
    (floor >= i64::MIN as f64 && floor < -(i64::MIN as f64)).then_some(floor as i64)
}

/// A comparison of a string header. Texts order by code point.
#[derive(Clone, Debug)]
pub enum TextTest {
    /// One of these texts, or null where `null` is set; negated for `!=`.
    In {
        /// The texts.
        texts: SmallVec<[Box<str>; 1]>,
        /// Whether null is among them.
        null: bool,
        /// Whether the test holds for everything else instead.
        negated: bool,
    },
    /// Ordered against a text in one of these ways.
    Ordered {
        /// The right side.
        text: Box<str>,
        /// Less, equal or greater.
        orders: &'static [Ordering],
    },
    /// Found in the text.
    Matches(Pattern),
    /// Never holds: an ordering with null.
    Never,
}

/// The orderings an operator accepts.
fn orders(op: Op) -> &'static [Ordering] {
    match op {
        Op::Lt => &[Ordering::Less],
        Op::Le => &[Ordering::Less, Ordering::Equal],
        Op::Gt => &[Ordering::Greater],
        Op::Ge => &[Ordering::Greater, Ordering::Equal],
        Op::Eq | Op::Ne | Op::Matches => &[],
    }
}

/// Numbers compare with texts as they are written.
fn as_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Text(text) => Some(Cow::Borrowed(text)),
        Value::Int(number) => Some(number.to_string().into()),
        Value::Decimal(number) => Some(number.to_string().into()),
        Value::Null | Value::List(_) => None,
    }
}

/// As [`as_text`], of a value that is not needed otherwise.
fn into_text(value: Value) -> Option<Box<str>> {
    match value {
        Value::Text(text) => Some(text),
        value => as_text(&value).map(Into::into),
    }
}

impl TextTest {
    /// `text op value`. `normalize` is applied to every text of the right side.
    ///
    /// # Errors
    /// A pattern that is no regular expression or one too much for `patterns`, or a list with
    /// an ordering.
    pub fn new(
        op: Op,
        value: Value,
        normalize: fn(Box<str>) -> Box<str>,
        patterns: &mut Patterns,
    ) -> Result<Self, Unfit> {
        Ok(match (op, value) {
            (Op::Eq | Op::Ne, Value::List(items)) => {
                let null = items.contains(&Value::Null);
                let texts = items.into_iter().filter_map(into_text).map(normalize);
                let mut texts: SmallVec<[Box<str>; 1]> = texts.collect();
                texts.sort_unstable();
                texts.dedup();
                Self::In {
                    texts,
                    null,
                    negated: op == Op::Ne,
                }
            }
            (Op::Eq | Op::Ne, value) => Self::In {
                null: value == Value::Null,
                texts: into_text(value).map(normalize).into_iter().collect(),
                negated: op == Op::Ne,
            },
            (_, Value::Null) => Self::Never,
            (Op::Matches, value) => Self::Matches(pattern(&value, patterns)?),
            (_, value) => match into_text(value) {
                Some(text) => Self::Ordered {
                    text: normalize(text),
                    orders: orders(op),
                },
                None => return Err("a list goes with `=` and `!=` only".into()),
            },
        })
    }

    /// Whether the comparison holds for a text, or for null.
    #[must_use]
    pub fn holds(&self, text: Option<&str>) -> bool {
        match (self, text) {
            (Self::In { texts, negated, .. }, Some(text)) => has_text(texts, text) != *negated,
            (Self::In { null, negated, .. }, None) => null != negated,
            (
                Self::Ordered {
                    text: right,
                    orders,
                },
                Some(text),
            ) => orders.contains(&text.cmp(right)),
            (Self::Matches(pattern), Some(text)) => pattern.is_match(text),
            (Self::Ordered { .. } | Self::Matches(_), None) | (Self::Never, _) => false,
        }
    }

    /// The one text that holds, for a test that is a plain equality.
    #[must_use]
    pub fn only(&self) -> Option<&str> {
        match self {
            Self::In {
                texts,
                null: false,
                negated: false,
            } if texts.len() == 1 => Some(&texts[0]),
            _ => None,
        }
    }
}

/// Whether `text` is among sorted texts.
pub(crate) fn has_text(texts: &[Box<str>], text: &str) -> bool {
    texts.binary_search_by(|known| (**known).cmp(text)).is_ok()
}

/// Compiles the right side of `~`.
fn pattern(value: &Value, patterns: &mut Patterns) -> Result<Pattern, Unfit> {
    let text = as_text(value).ok_or("`~` takes a text")?;
    Ok(patterns.compile(&text)?)
}

/// Why a comparison cannot take a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// What is wrong, in one line.
    pub message: String,
    /// What to write instead.
    pub help: Option<&'static str>,
    /// Whether it is a limit that the value breaks (`E_LIMIT`).
    pub limit: bool,
}

impl From<&str> for Unfit {
    fn from(message: &str) -> Self {
        Self {
            message: message.to_owned(),
            help: None,
            limit: false,
        }
    }
}

impl From<PatternError> for Unfit {
    fn from(error: PatternError) -> Self {
        Self {
            message: error.to_string(),
            help: Some(error.help()),
            limit: error.is_limit(),
        }
    }
}

/// A value of a node as comparisons see it. Lists hold no lists: what is nested equals nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// Absent or null.
    Null,
    /// A text, or a boolean as its text.
    Text(Cow<'a, str>),
    /// A number, as it is written.
    Number(&'a str),
    /// A list.
    List(Vec<Scalar<'a>>),
    /// An object, or a list in a list: equal to nothing.
    Other,
}

/// A comparison of an attribute whose kind each node decides.
#[derive(Clone, Debug)]
pub struct ValueTest {
    op: Op,
    value: Value,
    wanted: Wanted,
    pattern: Option<Pattern>,
    /// Compare as texts only, numbers by how they are written (for string headers).
    text_only: bool,
}

impl ValueTest {
    /// `value-of-the-node op value`.
    ///
    /// # Errors
    /// A pattern that is no regular expression, or one too much for `patterns`.
    pub fn new(
        op: Op,
        value: Value,
        text_only: bool,
        patterns: &mut Patterns,
    ) -> Result<Self, Unfit> {
        let pattern = match (op, &value) {
            (Op::Matches, Value::Null) => None,
            (Op::Matches, value) => Some(pattern(value, patterns)?),
            _ => None,
        };
        Ok(Self {
            op,
            wanted: Wanted::new(&value, text_only),
            value,
            pattern,
            text_only,
        })
    }

    /// Whether the comparison holds.
    #[must_use]
    pub fn holds(&self, node: &Scalar<'_>) -> bool {
        match self.op {
            Op::Eq => self.wanted.holds(node),
            Op::Ne => !self.wanted.holds(node),
            Op::Matches => self
                .pattern
                .as_ref()
                .is_some_and(|pattern| found(pattern, node)),
            op => self
                .compare(node)
                .is_some_and(|order| orders(op).contains(&order)),
        }
    }

    /// The texts that a list must all hold, for an equality.
    #[must_use]
    pub fn texts(&self) -> Option<Vec<&str>> {
        let text = |value: &'_ Value| matches!(value, Value::Text(_));
        match (self.op, &self.value) {
            (Op::Eq, Value::Text(text)) => Some(vec![text]),
            (Op::Eq, Value::List(items)) if items.iter().all(text) => Some(
                items
                    .iter()
                    .filter_map(|item| match item {
                        Value::Text(text) => Some(&**text),
                        _ => None,
                    })
                    .collect(),
            ),
            _ => None,
        }
    }

    /// How the node's value stands to the right side; none where they cannot be ordered.
    fn compare(&self, node: &Scalar<'_>) -> Option<Ordering> {
        let right = as_text(&self.value)?;
        let (left, is_number) = match node {
            Scalar::Text(text) => (&**text, false),
            Scalar::Number(text) => (*text, true),
            Scalar::Null | Scalar::List(_) | Scalar::Other => return None,
        };
        if self.text_only {
            return Some(left.cmp(&*right));
        }
        let left_number = if is_number || reads_as_number(left) {
            Number::new(left)
        } else {
            None
        };
        let right_number = match &self.value {
            Value::Text(text) if !reads_as_number(text) => None,
            Value::Text(text) => Number::new(text),
            value => number_of(value),
        };
        Some(match (left_number, right_number) {
            (Some(left), Some(right)) => left.compare(&right),
            _ => left.cmp(&*right),
        })
    }
}

/// The right side of an equality, sorted to be searched.
#[derive(Clone, Debug)]
struct Wanted {
    /// Sorted, each once. Numbers too, as they are written, where only texts are compared.
    texts: SmallVec<[Box<str>; 1]>,
    /// Sorted, each once.
    numbers: Box<[Number<'static>]>,
    null: bool,
    text_only: bool,
}

impl Wanted {
    fn new(value: &Value, text_only: bool) -> Self {
        let items = match value {
            Value::List(items) => items,
            value => std::slice::from_ref(value),
        };
        let mut texts: SmallVec<[Box<str>; 1]> = SmallVec::new();
        let mut numbers: Vec<Number<'static>> = Vec::new();
        for item in items {
            match number_of(item) {
                Some(number) if !text_only => numbers.push(number),
                _ => texts.extend(as_text(item).map(Into::into)),
            }
        }
        texts.sort_unstable();
        texts.dedup();
        numbers.sort_unstable_by(Number::compare);
        numbers.dedup_by(|a, b| a.compare(b).is_eq());
        Self {
            texts,
            numbers: numbers.into(),
            null: items.contains(&Value::Null),
            text_only,
        }
    }

    /// A list holds all of several values; anything else is one of them.
    fn holds(&self, node: &Scalar<'_>) -> bool {
        let Scalar::List(items) = node else {
            return self.find(node).is_some();
        };
        let wanted = self.texts.len() + self.numbers.len() + usize::from(self.null);
        if wanted <= 1 {
            return items.iter().any(|item| self.find(item).is_some());
        }
        // Each element is one value at most.
        if items.len() < wanted {
            return false;
        }
        let mut missing = vec![true; wanted];
        for at in items.iter().filter_map(|item| self.find(item)) {
            missing[at] = false;
        }
        !missing.contains(&true)
    }

    /// Which of the values a value that is no list is: the texts are counted first, then the
    /// numbers, then null. Logarithmic in their number.
    fn find(&self, node: &Scalar<'_>) -> Option<usize> {
        let text = |text: &str| {
            self.texts
                .binary_search_by(|known| (**known).cmp(text))
                .ok()
        };
        match node {
            Scalar::Text(node) => text(node),
            Scalar::Number(node) if self.text_only => text(node),
            Scalar::Number(node) => {
                let node = Number::new(node)?;
                let at = self
                    .numbers
                    .binary_search_by(|known| known.compare(&node))
                    .ok()?;
                Some(self.texts.len() + at)
            }
            Scalar::Null => self.null.then_some(self.texts.len() + self.numbers.len()),
            Scalar::List(_) | Scalar::Other => None,
        }
    }
}

/// Whether a pattern is found in a text, a number, or an element of a list.
fn found(pattern: &Pattern, node: &Scalar<'_>) -> bool {
    match node {
        Scalar::Text(text) => pattern.is_match(text),
        Scalar::Number(text) => pattern.is_match(text),
        Scalar::List(items) => items.iter().any(|item| match item {
            Scalar::List(_) => false,
            item => found(pattern, item),
        }),
        Scalar::Null | Scalar::Other => false,
    }
}

/// Whether a whole text is `[+-]?digits[.digits]`.
fn reads_as_number(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(text),
    }
}

fn number_of(value: &Value) -> Option<Number<'static>> {
    match value {
        Value::Int(int) => Some(Number::Int(i128::from(*int))),
        Value::Decimal(decimal) => Some(Number::decimal(*decimal)),
        Value::Null | Value::Text(_) | Value::List(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{NumberSet, Patterns, Scalar, TextTest, Value, ValueTest};
    use crate::ir::Op;
    use crate::plan::number::int_with_decimal;

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
                    let order = int_with_decimal(i128::from(left), right);
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
    fn lists_are_searched_and_mean_what_they_say() {
        let values = |items: &[i64]| Value::List(items.iter().map(|&item| item.into()).collect());
        let many: Vec<i64> = (0..1_000).rev().collect();
        let set = NumberSet::new(Op::Eq, &values(&many)).expect("numbers compare");
        assert_eq!(set.ranges.as_slice(), [(0, 999)]);
        let set = NumberSet::new(Op::Eq, &values(&[7, i64::MAX, 3, i64::MIN, 7, 4]));
        let set = set.expect("numbers compare");
        let kept = [(i64::MIN, i64::MIN), (3, 4), (7, 7), (i64::MAX, i64::MAX)];
        assert_eq!(set.ranges.as_slice(), kept);
        for number in [i64::MIN, -1, 2, 3, 4, 5, 7, 8, i64::MAX] {
            let inside = kept
                .iter()
                .any(|&(low, high)| (low..=high).contains(&number));
            assert_eq!(set.contains(Some(number)), inside, "{number}");
        }
        let mixed = Value::List(
            [
                "b".into(),
                2.into(),
                Value::Null,
                2.5.into(),
                "a".into(),
                2.0.into(),
            ]
            .into(),
        );
        let test = ValueTest::new(Op::Eq, mixed, false, &mut Patterns::new()).expect("valid");
        let text = |text: &'static str| Scalar::Text(text.into());
        let number = Scalar::Number;
        for node in [
            text("a"),
            text("b"),
            number("2.0"),
            number("25e-1"),
            Scalar::Null,
        ] {
            assert!(test.holds(&node), "{node:?}");
        }
        for node in [text("2"), text(""), number("3"), Scalar::Other] {
            assert!(!test.holds(&node), "{node:?}");
        }
        let all = vec![
            number("2.5"),
            text("a"),
            Scalar::Null,
            number("2"),
            text("b"),
        ];
        assert!(test.holds(&Scalar::List(all.clone())));
        assert!(!test.holds(&Scalar::List(all[1..].to_vec())));
        let twice = [&all[1..], &all[1..]].concat();
        assert!(!test.holds(&Scalar::List(twice)));
    }

    #[test]
    fn texts_compare_by_code_point_and_null_only_by_equality() {
        let test = |op, value: Value| {
            TextTest::new(op, value, |text| text, &mut Patterns::new()).expect("valid")
        };
        assert!(test(Op::Lt, "é".into()).holds(Some("z")));
        assert!(!test(Op::Lt, "a".into()).holds(None));
        assert!(test(Op::Ne, "a".into()).holds(None));
        assert!(
            test(Op::Eq, Value::Null).holds(None) && !test(Op::Eq, Value::Null).holds(Some(""))
        );
        assert!(test(Op::Eq, 5.into()).holds(Some("5")));
        assert!(!test(Op::Ge, Value::Null).holds(Some("a")));
        assert!(test(Op::Matches, "^a.c$".into()).holds(Some("abc")));
    }

    #[test]
    fn custom_values_keep_their_type_for_equality_and_order_as_numbers_where_both_read_so() {
        let test = |op, value: Value, node: &Scalar<'_>| {
            ValueTest::new(op, value, false, &mut Patterns::new())
                .expect("valid")
                .holds(node)
        };
        let text = |text: &'static str| Scalar::Text(text.into());
        assert!(!test(Op::Eq, "10".into(), &Scalar::Number("10")));
        assert!(test(Op::Eq, 10.into(), &Scalar::Number("10.0")));
        assert!(test(Op::Lt, "10".into(), &text("9")));
        assert!(!test(Op::Lt, "10".into(), &text("9a")));
        assert!(test(
            Op::Gt,
            i64::MAX.into(),
            &Scalar::Number("9223372036854775808")
        ));
        let list = Scalar::List(vec![
            text("a"),
            Scalar::Number("2"),
            Scalar::List(vec![text("z")]),
        ]);
        assert!(test(Op::Eq, "a".into(), &list) && test(Op::Eq, 2.into(), &list));
        assert!(!test(Op::Eq, "z".into(), &list) && !test(Op::Lt, "b".into(), &list));
        let both = Value::List(["a".into(), "b".into()].into());
        assert!(!test(Op::Eq, both.clone(), &list) && test(Op::Eq, both, &text("b")));
        assert!(test(Op::Ne, "a".into(), &Scalar::Other));
        assert!(!test(Op::Eq, Value::Null, &Scalar::List(Vec::new())));
    }
}
