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
    help: &'static str,
}

/// What helps where the engine here can say it.
const ELSEWHERE: &str = "`pactql select`, without `--via sql`, asks the sessions themselves";

impl Refused {
    pub(super) fn new(construct: impl ToString, reason: impl Into<String>) -> Self {
        Self {
            construct: construct.to_string(),
            reason: reason.into(),
            help: ELSEWHERE,
        }
    }

    /// A parameter, which has no value.
    pub(super) fn parameter(construct: impl ToString) -> Self {
        Self {
            help: "write the value in its place",
            ..Self::new(
                construct,
                "a parameter has no value; a statement is made for values",
            )
        }
    }

    /// The error about the canonical text of a query.
    pub(super) fn into_error(self, query: &Query, dialect: Dialect) -> Error {
        let text = query.canonical_text();
        let Self {
            construct,
            reason,
            help,
        } = self;
        let message = format!("`{construct}` cannot be said in SQL for {dialect}: {reason}");
        let mut diagnostic = Diagnostic::error(Code::Sql, message);
        if let Some(start) = text.find(&construct) {
            let label = Label::new(start..start + construct.len(), "cannot be said in SQL");
            diagnostic.labels.push(label);
        }
        diagnostic.help = Some(help.to_owned());
        Error::new(&text, diagnostic)
    }
}
