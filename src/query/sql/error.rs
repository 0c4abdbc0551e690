//! What a dialect cannot say.

use crate::query::ir::SelectorQuery;
use crate::support::diag::{Code, Diagnostic, Error, Label};

use super::dialect::Dialect;

/// A construct that a dialect cannot say, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// The construct, as canonical text has it.
    construct: String,
    /// Whether it is in the selector.
    is_test: bool,
    reason: String,
    help: &'static str,
}

/// What helps where the engine here can say it.
const ELSEWHERE: &str = "`pactql select`, without `--via sql`, asks the sessions themselves";

impl Refused {
    pub(super) fn new(construct: impl ToString, reason: impl Into<String>) -> Self {
        Self {
            construct: construct.to_string(),
            is_test: true,
            reason: reason.into(),
            help: ELSEWHERE,
        }
    }

    /// A size of a content.
    pub(super) fn size(construct: impl ToString) -> Self {
        Self {
            help: "`pactql select`, without `--via sql`, asks the sessions themselves; of texts, the view `newest_node` \
                   has `bytes`",
            ..Self::new(
                construct,
                "the size of a list or an object is that of its canonical JSON, which no column has",
            )
        }
    }

    pub(super) fn parameter(construct: impl ToString) -> Self {
        Self {
            help: "write the value in its place",
            ..Self::new(
                construct,
                "a parameter has no value; a statement is made for values",
            )
        }
    }

    /// What is said of the whole selector.
    pub(super) fn whole(construct: &str, reason: &str) -> Self {
        Self {
            is_test: false,
            ..Self::new(construct, reason)
        }
    }

    pub(super) fn setting(name: &str, reason: &str) -> Self {
        Self {
            help: "choose another name",
            ..Self::whole(name, reason)
        }
    }

    pub(super) fn into_error(self, query: &SelectorQuery, dialect: Dialect) -> Error {
        let text = query.canonical_text();
        let quote = if self.is_test { "`" } else { "" };
        let (construct, reason) = (&*self.construct, &self.reason);
        let message =
            format!("{quote}{construct}{quote} cannot be said in SQL for {dialect}: {reason}");
        let mut diagnostic = Diagnostic::error(Code::Sql, message);
        if let Some(start) = text.find(construct).filter(|_| self.is_test) {
            let label = Label::new(start..start + construct.len(), "cannot be said in SQL");
            diagnostic.labels.push(label);
        }
        diagnostic.help = Some(self.help.to_owned());
        Error::new(&text, diagnostic)
    }
}
