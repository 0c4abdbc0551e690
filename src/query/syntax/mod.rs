//! Parses text into a spanned syntax tree.
//!
//! [`parse()`] accepts the constructs of every edition, and slightly more; lowering decides what
//! an edition allows and what a construct means. Mistakes of form are collected, several from one
//! text where possible, each with its place and a help text.
//!
//! Nothing here recurses on the input, and every loop moves forward through it. The module must
//! not know what an attribute, a depth or a snapshot is.

pub mod ast;
mod build;
mod error;
mod hint;
mod lex;
mod parse;
mod print;
mod span;
mod token;
pub(crate) mod words;

pub use error::{Hint, MAX_BYTES, MAX_MISTAKES, Mistake, SyntaxError};
pub(crate) use parse::parse_if_valid;
pub use parse::{ParseFailure, parse, parse_node};
pub(in crate::query) use print::joined;
pub use span::{Span, Spanned};
pub use words::{is_name, quote};
