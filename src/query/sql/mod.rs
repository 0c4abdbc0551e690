//! Selectors as SQL (STORE §5).
//!
//! A normalized query becomes one statement over the tables of a store, or over those of its export to
//! Parquet, which an engine that exists answers where the data lies. What a step does is one common table
//! expression, named after it, so that the statement can be read. What a dialect cannot say is refused with
//! `E_SQL`, never answered otherwise.
//!
//! The module knows queries and the names of the layout. It runs nothing and must not know a store, a
//! session, or the edition that a selector was written in.

#![warn(missing_docs)]

mod content;
mod dialect;
mod error;
mod inner;
mod listed;
mod number;
mod order;
mod predicate;
mod ranges;
mod regex;
mod statement;
mod steps;
mod tables;
mod words;

pub use dialect::{Dialect, UnknownDialect};
#[cfg(feature = "store")]
pub(crate) use statement::{HAS_ATTRS, compile_columns, required_text};
pub use statement::{Options, Shape, Statement};
#[doc(hidden)]
pub use statement::{compile, compile_with};
#[cfg(feature = "store")]
pub(crate) use tables::{Among, Wanted};

use crate::query::ir::{Literal, Operand};
use error::Refused;

/// The whole number of a control or of a pick.
fn whole(operand: &Operand) -> Result<i64, Refused> {
    match operand {
        Operand::Literal(Literal::Int(value)) => Ok(*value),
        operand => Err(Refused::parameter(operand)),
    }
}
