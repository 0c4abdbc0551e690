//! Comparisons with their values in place.
//!
//! A comparison is prepared once, at binding, so that testing a node is cheap (LANGUAGE §5):
//! numeric headers become sets of integers, string headers sorted texts, other attributes a
//! [`ValueTest`].

use super::number_set::{NumberSet, ObservedNumbers};
use super::text_test::{TextTest, UnfitValue};
use super::value::Value;
use super::value_test::{ValueReading, ValueTest};
use crate::query::ir::{Attr, AttrKind, CompareOp, Patterns, normal_type};

#[derive(Clone, Debug)]
pub enum Compare {
    /// Of a numeric header.
    Number(NumberSet),
    /// Of a string header.
    Text(TextTest),
    /// Of tags, a custom attribute or the content. Boxed because it is large and rare.
    Value(Box<ValueTest>),
    /// Of the ttl, where what it reads is counted.
    Observed(Box<ObservedNumbers>),
}

impl Compare {
    /// `attr op value`.
    ///
    /// # Errors
    /// A value that the attribute or the operator does not take (LANGUAGE §5).
    pub fn new(
        attr: &Attr,
        op: CompareOp,
        value: Value,
        patterns: &mut Patterns,
    ) -> Result<Self, UnfitValue> {
        if matches!(&value, Value::List(items) if items.is_empty()) {
            return Err("a list needs at least one value".into());
        }
        if matches!(value, Value::List(_)) && !op.is_equality() {
            return Err("a list is compared with `=` or `!=`".into());
        }
        // A list of one value is that value, whatever the attribute.
        let value = value.into_alone();
        let reading = match (attr, attr.kind()) {
            (_, AttrKind::Number) => {
                let set = NumberSet::new(op, &value.into_number()).ok_or(match op {
                    CompareOp::Matches => "`~` does not go with a number",
                    _ => "a number is compared with a number or null",
                })?;
                return Ok(Self::Number(match attr {
                    Attr::Tokens => set.of_tokens_as_bytes(),
                    _ => set,
                }));
            }
            (Attr::Content, _) => ValueReading::Text,
            (_, AttrKind::Tags) => ValueReading::List,
            (_, AttrKind::Dynamic) => ValueReading::Any,
            (_, AttrKind::Text) => {
                // Types are compared in one vocabulary; a pattern is searched for in it as it is.
                let is_type = matches!(attr, Attr::StoredType | Attr::NodeType);
                let normalize: fn(Box<str>) -> Box<str> = if is_type && op != CompareOp::Matches {
                    |text| normal_type(&text).into()
                } else {
                    |text| text
                };
                return TextTest::new(op, value, normalize, patterns).map(Self::Text);
            }
        };
        let test = ValueTest::new(op, value, reading, patterns)?;
        Ok(Self::Value(Box::new(test)))
    }
}
