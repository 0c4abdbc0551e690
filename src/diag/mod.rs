//! Coded errors and warnings about a selector, and how they are shown.
//!
//! Every phase keeps its own typed findings and turns them into [`Diagnostic`]s through one
//! trait, [`ToDiagnostic`]. An [`Error`] joins the text that was asked with its diagnostics, the
//! leftmost first, and prints them as text with the places underlined or as JSON. Messages are
//! lower-case fragments without a full stop; what a reader typed stands in backticks; advice is
//! apart in `help`.
//!
//! This room knows no grammar and no data: it only knows texts, places in them and words.

mod code;
mod error;
mod render;
mod suggest;

pub use code::Code;
pub use error::{Diagnostic, Error, Label, Severity, ToDiagnostic, Warning};
pub use render::{ColorChoice, render_diagnostic};
pub use suggest::{SIMILARITY, nearest};
