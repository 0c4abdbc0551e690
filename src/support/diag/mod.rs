//! Errors and warnings about a selector, and how they are shown.
//!
//! Each phase has its own error types and turns them into [`Diagnostic`]s. An
//! [`Error`] is the text of a selector with its diagnostics, leftmost first;
//! it prints as text with underlined places, or as JSON. Messages are lower-case fragments without
//! a full stop, with quoted input in backticks; help is separate.
//!
//! The module must not know the grammar or any data, only texts and places in them.

mod code;
mod diagnostic;
mod error;
mod render;
mod suggest;

pub use code::Code;
pub use diagnostic::{Diagnostic, Label, SelectorEdit, Severity};
pub use error::{Error, Warning};
pub use render::{ColorChoice, render_diagnostic};
pub use suggest::{SIMILARITY, nearest, nearest_at};
