//! Comparisons of texts, and why a value does not fit a comparison.

use std::borrow::Cow;
use std::cmp::Ordering;

use smallvec::SmallVec;

use super::value::Value;
use crate::query::ir::{CompareOp, Pattern, PatternError, Patterns};
use crate::support::diag::Code;

/// A comparison of a string header. Texts order by code point.
#[derive(Clone, Debug)]
pub enum TextTest {
    /// `=` and `!=`: one of these texts, or null if `null` is set.
    In {
        texts: SmallVec<[Box<str>; 1]>,
        null: bool,
        /// Whether everything else satisfies the test instead.
        negated: bool,
    },
    /// `<`, `<=`, `>` and `>=`.
    Ordered {
        text: Box<str>,
        /// The orderings of the node's text and the right side that satisfy the test.
        orders: &'static [Ordering],
    },
    /// `~`: a pattern found in the text.
    Matches(Pattern),
    /// An ordering with null, which nothing satisfies.
    Never,
}

pub(super) fn orders(op: CompareOp) -> &'static [Ordering] {
    // Equalities and patterns are not decided by an order.
    match op {
        CompareOp::Lt => &[Ordering::Less],
        CompareOp::Le => &[Ordering::Less, Ordering::Equal],
        CompareOp::Gt => &[Ordering::Greater],
        CompareOp::Ge => &[Ordering::Greater, Ordering::Equal],
        CompareOp::Eq | CompareOp::Ne | CompareOp::Matches => &[],
    }
}

/// The text of a scalar: numbers compare with texts as they are written.
pub(super) fn as_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Text(text) | Value::Spelled(text) => Some(Cow::Borrowed(text)),
        Value::Int(number) => Some(number.to_string().into()),
        Value::Decimal(number) => Some(number.to_string().into()),
        Value::Null | Value::List(_) => None,
    }
}

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
    /// A pattern that cannot be compiled, or a list with an ordering.
    pub fn new(
        op: CompareOp,
        value: Value,
        normalize: fn(Box<str>) -> Box<str>,
        patterns: &mut Patterns,
    ) -> Result<Self, UnfitValue> {
        Ok(match (op, value) {
            (CompareOp::Eq | CompareOp::Ne, Value::List(items)) => {
                let null = items.contains(&Value::Null);
                let texts = items.into_iter().filter_map(into_text).map(normalize);
                let mut texts: SmallVec<[Box<str>; 1]> = texts.collect();
                // Sorted, so that a node is compared in logarithmic time.
                texts.sort_unstable();
                texts.dedup();
                Self::In {
                    texts,
                    null,
                    negated: op == CompareOp::Ne,
                }
            }
            (CompareOp::Eq | CompareOp::Ne, value) => Self::In {
                null: value == Value::Null,
                texts: into_text(value).map(normalize).into_iter().collect(),
                negated: op == CompareOp::Ne,
            },
            // Null has no order and no text.
            (_, Value::Null) => Self::Never,
            (CompareOp::Matches, value) => Self::Matches(pattern(&value, patterns)?),
            (_, value) => match into_text(value) {
                Some(text) => Self::Ordered {
                    text: normalize(text),
                    orders: orders(op),
                },
                None => return Err("a list is compared with `=` or `!=`".into()),
            },
        })
    }

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

    /// The text of an equality with one text.
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

pub(crate) fn has_text(texts: &[Box<str>], text: &str) -> bool {
    texts.binary_search_by(|known| (**known).cmp(text)).is_ok()
}

/// Compiles the right side of `~`.
pub(super) fn pattern(value: &Value, patterns: &mut Patterns) -> Result<Pattern, UnfitValue> {
    let text = as_text(value).ok_or("`~` takes a text")?;
    Ok(patterns.compile(&text)?)
}

/// Why a comparison cannot take a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnfitValue {
    message: Cow<'static, str>,
    pub code: Code,
    /// What to write instead.
    pub help: Option<&'static str>,
}

impl<T: Into<Cow<'static, str>>> From<T> for UnfitValue {
    fn from(message: T) -> Self {
        Self {
            message: message.into(),
            code: Code::SelectorInvalid,
            help: None,
        }
    }
}

impl From<PatternError> for UnfitValue {
    fn from(error: PatternError) -> Self {
        let code = if error.is_limit() {
            Code::Limit
        } else {
            Code::SelectorInvalid
        };
        Self {
            message: error.to_string().into(),
            code,
            help: Some(error.help()),
        }
    }
}
