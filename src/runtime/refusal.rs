//! Why a mutation was refused.

use crate::support::diag::{Code, Diagnostic, Error};

/// A mutation that was refused. It has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub(crate) struct Refusal {
    /// The code (RUNTIME §3).
    pub code: Code,
    /// What is wrong, with the node's id; one line.
    pub message: String,
    pub help: Option<String>,
    /// The byte of the node's text at which reading stopped.
    pub at: Option<usize>,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            help: None,
            at: None,
        }
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The error about `text`. In a selector or position its span is the whole text, in the text of a node
    /// one byte. A fault of a node's members has no span in a selector.
    pub(crate) fn about(self, text: &str) -> Error {
        let of_node = matches!(self.code, Code::Header | Code::DuplicateId | Code::Input);
        let (text, span) = match self.at {
            Some(at) => (text, Some(at.min(text.len())..text.len().min(at + 1))),
            None if of_node => ("", None),
            None => (text, Some(0..text.len())),
        };
        let mut diagnostic = Diagnostic::error(self.code, self.message);
        if let Some(span) = span {
            diagnostic = diagnostic.at(span, "");
        }
        Error::new(text, diagnostic.with_any_help(self.help))
    }
}

macro_rules! refusals {
    ($($name:ident $code:ident)*) => {$(
        pub(super) fn $name(message: impl Into<String>) -> Refusal {
            Refusal::new(Code::$code, message)
        }
    )*};
}

refusals! { placement Placement sealed Sealed region Region header Header pinned Pinned duplicate DuplicateId input Input }
