//! Comparisons of values whose kind each node decides: custom attributes, tags, content.

use std::borrow::Cow;
use std::cmp::Ordering;

use smallvec::SmallVec;

use super::text_test::{UnfitValue, as_text, orders, pattern};
use super::value::Value;
use crate::query::ir::{CompareOp, ExactNumber, Pattern, Patterns};

/// A value of a node as comparisons see it. A list inside a list is [`Scalar::Other`].
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'a> {
    Null,
    /// A text, or a boolean as its text.
    Text(Cow<'a, str>),
    /// A number, as written.
    Number(&'a str),
    List(Vec<Scalar<'a>>),
    /// An object, or a list in a list: equal to nothing.
    Other,
}

/// How an attribute's values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueReading {
    /// As they are: a custom attribute.
    Any,
    /// Texts only, and numbers as written: the content, a string header.
    Text,
    /// A list even where there is none: the tags.
    List,
}

/// A comparison of an attribute whose kind each node decides.
#[derive(Clone, Debug)]
pub struct ValueTest {
    op: CompareOp,
    value: Value,
    wanted: EqualValues,
    pattern: Option<Pattern>,
    reading: ValueReading,
}

impl ValueTest {
    /// `value-of-the-node op value`.
    ///
    /// # Errors
    /// A pattern that cannot be compiled.
    pub fn new(
        op: CompareOp,
        value: Value,
        reading: ValueReading,
        patterns: &mut Patterns,
    ) -> Result<Self, UnfitValue> {
        let pattern = match (op, &value) {
            (CompareOp::Matches, Value::Null) => None,
            (CompareOp::Matches, value) => Some(pattern(value, patterns)?),
            _ => None,
        };
        Ok(Self {
            op,
            wanted: EqualValues::new(&value, reading),
            value,
            pattern,
            reading,
        })
    }

    /// The pattern of `~`; `None` for other comparisons.
    pub fn pattern(&self) -> Option<&Pattern> {
        self.pattern.as_ref()
    }

    pub(super) fn pattern_mut(&mut self) -> Option<&mut Pattern> {
        self.pattern.as_mut()
    }

    pub fn holds(&self, node: &Scalar<'_>) -> bool {
        match self.op {
            CompareOp::Eq => self.wanted.holds(node),
            CompareOp::Ne => !self.wanted.holds(node),
            CompareOp::Matches => self
                .pattern
                .as_ref()
                .is_some_and(|pattern| found(pattern, node)),
            op => self
                .compare(node)
                .is_some_and(|order| orders(op).contains(&order)),
        }
    }

    /// The pattern of `~` as it is written.
    #[cfg(feature = "store")]
    pub fn pattern_text(&self) -> Option<Cow<'_, str>> {
        self.pattern.as_ref().and_then(|_| as_text(&self.value))
    }

    /// The text of an equality with one text.
    pub fn only(&self) -> Option<&str> {
        match (self.op, &self.value) {
            (CompareOp::Eq, Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The order of the node's value and the right side; `None` if there is none.
    fn compare(&self, node: &Scalar<'_>) -> Option<Ordering> {
        let right = as_text(&self.value)?;
        let (left, is_number) = match node {
            Scalar::Text(text) => (&**text, false),
            Scalar::Number(text) => (*text, true),
            Scalar::Null | Scalar::List(_) | Scalar::Other => return None,
        };
        // The content is a string header: it orders by code point even where it reads as a number.
        if self.reading == ValueReading::Text {
            return Some(left.cmp(&*right));
        }
        // Two numbers compare by value, anything else as text (LANGUAGE §5). A text counts as a
        // number only if it is one from end to end.
        let left_number = if is_number {
            ExactNumber::new(left)
        } else {
            ExactNumber::of_text(left)
        };
        let right_number = match &self.value {
            Value::Text(text) => ExactNumber::of_text(text),
            value => number_of(value),
        };
        Some(match (left_number, right_number) {
            (Some(left), Some(right)) => left.compare(&right),
            _ => left.cmp(&*right),
        })
    }
}

/// The right side of an equality, sorted for binary search.
#[derive(Clone, Debug)]
struct EqualValues {
    /// Sorted, without duplicates. With [`ValueReading::Text`] also the numbers, as written.
    texts: SmallVec<[Box<str>; 1]>,
    /// Sorted, without duplicates.
    numbers: Box<[ExactNumber<'static>]>,
    null: bool,
    reading: ValueReading,
}

impl EqualValues {
    fn new(value: &Value, reading: ValueReading) -> Self {
        let items = match value {
            Value::List(items) => items,
            value => std::slice::from_ref(value),
        };
        let mut texts: SmallVec<[Box<str>; 1]> = SmallVec::new();
        let mut numbers: Vec<ExactNumber<'static>> = Vec::new();
        for item in items {
            // Texts and numbers are kept apart, because `=` keeps the type. As text, a number is
            // compared as written.
            match number_of(item) {
                Some(number) if reading != ValueReading::Text => numbers.push(number),
                _ => texts.extend(as_text(item).map(Into::into)),
            }
        }
        texts.sort_unstable();
        texts.dedup();
        numbers.sort_unstable_by(ExactNumber::compare);
        numbers.dedup_by(|a, b| a.compare(b).is_eq());
        Self {
            texts,
            numbers: numbers.into(),
            null: items.contains(&Value::Null),
            reading,
        }
    }

    fn holds(&self, node: &Scalar<'_>) -> bool {
        // A stored list must contain all values, and null is not a member of a list. Anything else
        // must equal one of the values; tags are always a list, so a single one cannot equal
        // several.
        let wanted = self.texts.len() + self.numbers.len() + usize::from(self.null);
        let Scalar::List(items) = node else {
            let one = wanted <= 1 || self.reading != ValueReading::List;
            return one && self.find(node).is_some();
        };
        if self.null {
            return false;
        }
        if wanted <= 1 {
            return items.iter().any(|item| self.find(item).is_some());
        }
        // An element is at most one of the values.
        if items.len() < wanted {
            return false;
        }
        // Each value has to be found once; repeated elements do not count twice.
        let mut missing = vec![true; wanted];
        for at in items.iter().filter_map(|item| self.find(item)) {
            missing[at] = false;
        }
        !missing.contains(&true)
    }

    /// The index of a scalar among the values.
    fn find(&self, node: &Scalar<'_>) -> Option<usize> {
        // Values are numbered texts first, then numbers, then null; each kind is sorted, so a
        // scalar is found in logarithmic time.
        let text = |text: &str| {
            self.texts
                .binary_search_by(|known| (**known).cmp(text))
                .ok()
        };
        match node {
            Scalar::Text(node) => text(node),
            Scalar::Number(node) if self.reading == ValueReading::Text => text(node),
            Scalar::Number(node) => {
                let node = ExactNumber::new(node)?;
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

fn found(pattern: &Pattern, node: &Scalar<'_>) -> bool {
    match node {
        Scalar::Text(text) => pattern.is_match(text),
        // A number is searched as it is written.
        Scalar::Number(text) => pattern.is_match(text),
        Scalar::List(items) => items.iter().any(|item| match item {
            Scalar::List(_) => false,
            item => found(pattern, item),
        }),
        Scalar::Null | Scalar::Other => false,
    }
}

fn number_of(value: &Value) -> Option<ExactNumber<'static>> {
    match value {
        Value::Int(int) => Some(ExactNumber::Int(i128::from(*int))),
        Value::Decimal(decimal) => Some(ExactNumber::decimal(*decimal)),
        Value::Spelled(text) => match ExactNumber::new(text)? {
            ExactNumber::Int(int) => Some(ExactNumber::Int(int)),
            ExactNumber::Decimal(decimal) => Some(ExactNumber::Decimal(decimal)),
            // Unreachable: a literal is an i64 or a double.
            ExactNumber::Long(_) => None,
        },
        Value::Null | Value::Text(_) | Value::List(_) => None,
    }
}
