//! What a dialect cannot say.

use crate::diag::{Code, Diagnostic, Error, Label};
use crate::ir::Query;

use super::dialect::Dialect;

/// A construct that a dialect cannot say, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// The construct, as canonical text has it.
    construct: String,
    reason: String,
}

impl Refused {
    pub(super) fn new(construct: impl ToString, reason: impl Into<String>) -> Self {
        Self {
            construct: construct.to_string(),
            reason: reason.into(),
        }
    }

    /// The error about the canonical text of a query.
    pub(super) fn into_error(self, query: &Query, dialect: Dialect) -> Error {
        let text = query.canonical_text();
        let Self { construct, reason } = self;
        let message = format!("`{construct}` cannot be said in SQL for {dialect}: {reason}");
        let mut diagnostic = Diagnostic::error(Code::Sql, message);
        if let Some(start) = text.find(&construct) {
            let label = Label::new(start..start + construct.len(), "cannot be said in SQL");
            diagnostic.labels.push(label);
        }
        diagnostic.help =
            Some("`pactql select`, without `--via sql`, asks the sessions themselves".to_owned());
        Error::new(&text, diagnostic)
    }
}
