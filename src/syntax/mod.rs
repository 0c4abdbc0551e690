//! From text to a spanned syntax tree.
//!
//! [`parse()`] accepts the constructs of every edition, and a little more; what an edition allows
//! and what a construct means is settled by lowering. Mistakes of form are collected, several
//! of them where the text allows, each with its place and advice. A tree prints as text that
//! parses back to an equal tree.
//!
//! Nothing here recurses on the input, and every loop moves forward through it. This room knows
//! words and brackets; it does not know what an attribute, a depth or a snapshot is.

pub mod ast;
mod build;
mod error;
mod lex;
mod parse;
mod print;
mod span;
mod token;

pub use error::{Hint, Mistake, SyntaxError};
pub use parse::{Failure, parse};
pub use print::{is_name, quote};
pub use span::{Span, Spanned};

/// The longest selector, in bytes (LANGUAGE §10, `E_LIMIT`).
pub const MAX_BYTES: usize = 64 * 1024;

/// The most mistakes of one selector that are told; more help nobody, and looking for them all
/// would cost more than a linear effort.
pub const MAX_MISTAKES: usize = 64;
