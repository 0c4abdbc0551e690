//! Values for a plan's slots.

use crate::ir::{Literal, Operand};

/// A value for a slot: a literal of a selector, or what a caller binds to `$name`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `null`
    Null,
    /// An exact integer.
    Int(i64),
    /// A decimal.
    Decimal(f64),
    /// A text.
    Text(Box<str>),
    /// A list, of anything but lists.
    List(Box<[Value]>),
}

impl Value {
    /// The value itself, or the element of a list of one: the two mean the same wherever a list
    /// may stand (LANGUAGE §5).
    #[doc(hidden)]
    #[must_use]
    pub fn alone(&self) -> &Self {
        match self {
            Self::List(items) if items.len() == 1 => &items[0],
            value => value,
        }
    }

    /// As [`Value::alone`], of a value that is not needed otherwise.
    pub(super) fn into_alone(self) -> Self {
        match self {
            Self::List(items) => match <[Self; 1]>::try_from(items.into_vec()) {
                Ok([only]) => only,
                Err(items) => Self::List(items.into()),
            },
            value => value,
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Decimal(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<bool> for Value {
    /// Booleans are the texts `true` and `false` (LANGUAGE §5).
    fn from(value: bool) -> Self {
        Self::Text(if value { "true" } else { "false" }.into())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// What a slot is filled from, as `explain` shows it: a literal, a parameter, or a list that holds
/// parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Known from the text.
    Value(Value),
    /// `$name`
    Param(Box<str>),
    /// A list with parameters among its elements.
    List(Box<[Source]>),
}

impl From<&Operand> for Source {
    fn from(operand: &Operand) -> Self {
        match operand {
            Operand::Literal(literal) => Self::Value(literal.into()),
            Operand::Param(name) => Self::Param(name.clone()),
            // A list of one means what its element means, everywhere.
            Operand::List(items) if items.len() == 1 => Self::from(&items[0]),
            Operand::List(items) => {
                let items: Box<[Source]> = items.iter().map(Into::into).collect();
                let values: Option<Box<[Value]>> = items
                    .iter()
                    .map(|item| match item {
                        Self::Value(value) => Some(value.clone()),
                        Self::Param(_) | Self::List(_) => None,
                    })
                    .collect();
                match values {
                    Some(values) => Self::Value(Value::List(values)),
                    None => Self::List(items),
                }
            }
        }
    }
}

impl From<&Literal> for Value {
    fn from(literal: &Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Int(value) => Self::Int(*value),
            Literal::Decimal(value, _) => Self::Decimal(*value),
            Literal::Text(text) => Self::Text(text.clone()),
        }
    }
}
