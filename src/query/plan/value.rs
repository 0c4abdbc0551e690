//! Values for a plan's slots.

use crate::query::ir::{Literal, Operand};

/// A value for a slot: a literal of a selector, or the value a caller binds to `$name`.
///
/// ```
/// let session = pactql::Session::open("fixtures/greenhouse.jsonl")?;
/// let by_role = pactql::Engine::new().prepare("@t0 .cb[role=$role]")?;
/// let none = by_role.bind([("role", pactql::Value::Null)])?.rows(&session)?;
/// let some = by_role.bind([("role", "user".into())])?.rows(&session)?;
/// assert!(none.count() < some.count());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// A list of other values, not of lists.
    List(Box<[Value]>),
    /// A number as a selector spells it, where that is not how its value is printed: `007`, `1.50`.
    #[doc(hidden)]
    Spelled(Box<str>),
}

impl Value {
    /// The value, or the element of a list of one, which means the same (LANGUAGE §5).
    #[doc(hidden)]
    pub fn alone(&self) -> &Self {
        match self {
            Self::List(items) if items.len() == 1 => &items[0],
            value => value,
        }
    }

    /// The value as a number, without the spelling.
    pub(super) fn into_number(self) -> Self {
        // `007` keeps its spelling because texts are compared with numbers as written. Where only
        // numbers are compared, the spelling is in the way.
        match self {
            Self::Spelled(text) => match (text.parse(), text.parse()) {
                (Ok(int), _) => Self::Int(int),
                (_, Ok(decimal)) => Self::Decimal(decimal),
                // Unreachable: only numbers are spelled.
                _ => Self::Text(text),
            },
            Self::List(items) => Self::List(items.into_iter().map(Self::into_number).collect()),
            value => value,
        }
    }

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

macro_rules! from_scalars {
    ($($scalar:ty: $Variant:ident,)*) => {$(
        impl From<$scalar> for Value {
            fn from(value: $scalar) -> Self {
                Self::$Variant(value.into())
            }
        }
    )*};
}

from_scalars! { i64: Int, f64: Decimal, String: Text, &str: Text, }

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
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

impl From<&Value> for Operand {
    fn from(value: &Value) -> Self {
        Self::Literal(match value {
            Value::Null => Literal::Null,
            Value::Int(number) => Literal::Int(*number),
            Value::Decimal(number) => Literal::Decimal(*number, number.to_string().into()),
            Value::Text(text) => Literal::Text(text.clone()),
            Value::Spelled(text) => Literal::Spelled(text.clone()),
            Value::List(items) => return Self::List(items.iter().map(Self::from).collect()),
        })
    }
}

#[doc(hidden)]
impl From<&Literal> for Value {
    fn from(literal: &Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Int(value) => Self::Int(*value),
            // A decimal that prints as it was written needs no spelling.
            Literal::Decimal(value, written) if value.to_string() == **written => {
                Self::Decimal(*value)
            }
            Literal::Decimal(_, written) | Literal::Spelled(written) => {
                Self::Spelled(written.clone())
            }
            Literal::Text(text) => Self::Text(text.clone()),
        }
    }
}
